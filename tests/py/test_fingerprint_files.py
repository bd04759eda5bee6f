"""Where code comes from, and what happens to files: zips, bytecode alone, links, two modules of one
file, folders that others share, edits that leave size and time, text that pytest rewrote. Each program
runs in a process of its own; a step never gives another result than its code does."""

import os
import py_compile
import shutil
import subprocess
import sys
import textwrap
import zipfile

import pytest


def run(folder, text, *args, bytecode=False, file="program.py", command=()):
    """What a program of this text prints, in a process of its own, or what it says when it fails."""
    path = folder / file
    path.write_text(textwrap.dedent(text))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([p for p in sys.path if p]))
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    flags = [] if bytecode else ["-B"]
    done = subprocess.run([sys.executable, *flags, *command, str(path), *map(str, args)], env=env, cwd=folder,
                          capture_output=True, text=True, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else done.stderr + done.stdout


CALL = """
    import sys
    sys.path[:0] = sys.argv[1:]
    import ingot, helper
    def step(x):
        return helper.f(x)
    try:
        print(ingot.CachedStep(step).persistent("cache")(10), step(10))
    except ingot.FingerprintError as e:
        print(e)
"""
TEXT = "def f(x):\n    return g(x)\ndef g(x):\n    return x * {}\n"


def test_zips(tmp_path):
    """Their text is read by their loader."""
    for k in (2, 3, 2):
        with zipfile.ZipFile(tmp_path / "lib.zip", "w") as z:
            z.writestr("helper.py", TEXT.format(k))
        assert run(tmp_path, CALL, tmp_path / "lib.zip") == f"{k * 10} {k * 10}"


def test_asserts_left_out(tmp_path):
    """-O runs other code of the same text: `assert` is gone and `__debug__` is False; -OO has no docstrings."""
    text = """
        import ingot
        def held(x):
            "doc"
            assert x > 10
        def step(x):
            try:
                held(x)
            except AssertionError:
                return __debug__, held.__doc__
            return __debug__, held.__doc__, x
        print(ingot.CachedStep(step).persistent("cache")(10) == step(10))
    """
    for command in ([], ["-O"], ["-OO"], []):
        assert run(tmp_path, text, command=command) == "True", command


def test_bytecode_alone(tmp_path):
    """There is no text: refused, and under the lenient rules by its code."""
    lenient = CALL.replace("CachedStep(step)", "CachedStep(step, fingerprinter='lenient')")
    for k in (2, 3, 2):
        (tmp_path / "made.py").write_text(TEXT.format(k))
        py_compile.compile(str(tmp_path / "made.py"), str(tmp_path / "helper.pyc"), doraise=True)
        (tmp_path / "made.py").unlink()
        assert "there is no source text" in run(tmp_path, CALL, tmp_path)
        assert run(tmp_path, lenient, tmp_path) == f"{k * 10} {k * 10}"


@pytest.mark.parametrize("check", ["size and time", "unchecked"])
def test_bytecode_of_other_text(tmp_path, check):
    """Python runs the old bytecode of a file that was edited without changing its size and, in whole
    seconds, its time: the old result is not one of the new text."""
    helper = tmp_path / "helper.py"
    helper.write_text(TEXT.format(2))
    os.utime(helper, ns=(10**18, 10**18 + 1000))
    assert run(tmp_path, CALL, tmp_path, bytecode=True) == "20 20"
    if check == "unchecked":
        py_compile.compile(str(helper), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        helper.write_text(TEXT.format(3))
    else:
        (made,) = (tmp_path / "__pycache__").iterdir()
        os.utime(made, ns=(10**18, 10**18 + 2000))
        helper.write_text(TEXT.format(3))
        os.utime(helper, ns=(10**18, 10**18 + 3000))
    old = run(tmp_path, CALL, tmp_path, bytecode=True)
    assert "its file changed since it was imported" in old, old
    shutil.rmtree(tmp_path / "__pycache__")
    assert run(tmp_path, CALL, tmp_path) == "30 30"


def test_links(tmp_path):
    """What a link leads to counts, wherever it lies."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "helper.py").write_text(TEXT.format(2))
    (tmp_path / "two" / "helper.py").write_text(TEXT.format(3))
    for target, k in (("one", 2), ("two", 3), ("one", 2)):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path / target)
        assert run(tmp_path, CALL, tmp_path / "link") == f"{k * 10} {k * 10}"


def test_two_modules_of_one_file(tmp_path):
    """Loaded before and after an edit: the one that has the old text is refused."""
    (tmp_path / "shared.py").write_text(TEXT.format(2))
    out = run(tmp_path, """
        import importlib.util, pathlib, sys
        import ingot
        file = pathlib.Path("shared.py").resolve()
        def load(name):
            spec = importlib.util.spec_from_file_location(name, file)
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        one = load("one")
        file.write_text(file.read_text().replace("2", "33"))
        two = load("two")
        for module in (one, two, one):
            try:
                print(ingot.CachedStep(module.f).persistent("cache")(10), module.f(10))
            except ingot.FingerprintError as e:
                print("changed" if "changed since" in str(e) else e)
    """)
    assert out.split("\n") == ["changed", "330 330", "changed"], out


def test_reloaded_modules(tmp_path):
    (tmp_path / "helper.py").write_text(TEXT.format(2))
    out = run(tmp_path, """
        import importlib, pathlib, os
        import ingot, helper
        def step(x):
            return helper.f(x)
        for k in (2, 33, 2):
            file = pathlib.Path(helper.__file__)
            file.write_text(file.read_text().replace("33", "2").replace("2", str(k)))
            importlib.reload(helper)
            print(ingot.CachedStep(step).persistent("cache")(10), step(10))
    """)
    assert out.split("\n") == ["20 20", "330 330", "20 20"], out


def test_own_parts_of_namespace_packages(tmp_path):
    """A folder of the user's beside one among the installed packages."""
    site = tmp_path / "venv" / "site-packages"
    (site / "space").mkdir(parents=True)
    (site / "space" / "theirs.py").write_text("def f():\n    return 1\n")
    (tmp_path / "mine" / "space").mkdir(parents=True)
    text = CALL.replace("import ingot, helper", "import ingot").replace(
        "return helper.f(x)", "import space.own, space.theirs\n        return space.own.f(x) * space.theirs.f()")
    for k in (2, 3, 2):
        (tmp_path / "mine" / "space" / "own.py").write_text(TEXT.format(k))
        assert run(tmp_path, text, site, tmp_path / "mine") == f"{k * 10} {k * 10}"


def test_folders_that_are_called_like_those_of_packages(tmp_path):
    """Another distribution of the same name is installed elsewhere: not this one."""
    site = tmp_path / "vendored" / "site-packages"
    site.mkdir(parents=True)
    for k in (2, 3, 2):
        (site / "pytest.py").write_text(TEXT.format(k))
        text = CALL.replace("helper", "pytest")
        assert run(tmp_path, text, site) == f"{k * 10} {k * 10}"


def test_installed_packages_count_by_their_version(tmp_path):
    site = tmp_path / "venv" / "site-packages"
    (site / "thing-1.dist-info").mkdir(parents=True)
    (site / "thing-1.dist-info" / "RECORD").write_text("helper.py,,\n")
    (site / "helper.py").write_text(TEXT.format(2))
    text = CALL.replace("print(", "print(ingot.fingerprint(step), ").replace(", step(10))", ")")
    keys = []
    for version in ("1", "2", "1"):
        (site / "thing-1.dist-info" / "METADATA").write_text(f"Name: thing\nVersion: {version}\n")
        keys.append(run(tmp_path, text, site).split()[0])
    assert keys[0] == keys[2] != keys[1] and len(keys[0]) == 32


def test_text_that_pytest_rewrote(tmp_path):
    """Functions of test modules, with asserts in them, are known by the text of their file."""
    for k in (2, 3, 2):
        out = run(tmp_path, f"""
            import ingot

            def helper(x):
                assert x > 0, "it is large"
                return x * {k}

            def step(x):
                assert helper(x) > 1
                return helper(x)

            def test_it(tmp_path_factory):
                assert ingot.CachedStep(step).persistent({str(tmp_path / "cache")!r})(10) == {k * 10}
        """, "-q", "-p", "no:cacheprovider", file="test_program.py", command=("-m", "pytest"))
        assert "1 passed" in out, out


def test_steps_that_are_put_into_a_class(tmp_path):
    """What the object's methods are counts as for a step in the class's body."""
    text = """
        import ingot
        class C:
            def scale(self):
                return {}
        def run(self, x):
            return self.scale() * x
        C.run = ingot.CachedStep(run).persistent("cache")
        print(C().run(10), run(C(), 10))
    """
    for k in (2, 3, 2):
        assert run(tmp_path, text.format(k)) == f"{k * 10} {k * 10}"


def test_imports_inside_that_appear(tmp_path):
    """A module that was not there, and then is."""
    text = """
        import ingot
        def step(x):
            try:
                import fast as way
            except ImportError:
                import slow as way
            return way.f(x)
        print(ingot.CachedStep(step).persistent("cache")(10), step(10))
    """
    (tmp_path / "slow.py").write_text(TEXT.format(2))
    assert run(tmp_path, text) == "20 20"
    (tmp_path / "fast.py").write_text(TEXT.format(3))
    assert run(tmp_path, text) == "30 30"
    (tmp_path / "fast.py").unlink()
    assert run(tmp_path, text) == "20 20"


def test_a_registry_that_imports_fill(tmp_path):
    """What an import changes is looked at after it, and importing is part of the key."""
    (tmp_path / "registry.py").write_text("REG = {}\ndef register(f):\n    REG[f.__name__] = f\n    return f\n")
    text = """
        import ingot, registry
        def load():
            import plugin
        def step(x):
            load()
            return registry.REG["f"](x)
        print(ingot.CachedStep(step).persistent("cache")(10), step(10))
    """
    for k in (2, 3, 2):
        (tmp_path / "plugin.py").write_text("from registry import register\n@register\n" + TEXT.format(k))
        assert run(tmp_path, text) == f"{k * 10} {k * 10}"
