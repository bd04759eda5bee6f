"""Where kernels come from (R8): every way by which Python gets a function works, or the first
call says exactly why not and what to do."""

import code
import compileall
import functools
import importlib
import importlib.util
import linecache
import os
import pty
import subprocess
import sys
import textwrap
import types
import zipfile

import pytest

import ingot as qd

KERNEL = """
@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] = {value}
"""
MODULE = "import ingot as qd\n" + KERNEL


def launch(kernel):
    a = qd.ndarray(qd.i32, 3)
    kernel(a)
    assert a[0] == a[2]
    return int(a[2])


def refusal(kernel):
    """The message; trying again makes no difference."""
    texts = set()
    for _ in range(2):
        with pytest.raises(qd.IngotSyntaxError) as caught:
            launch(kernel)
        texts.add(str(caught.value))
    assert len(texts) == 1
    return texts.pop()


def run(*command, cwd=None, program=None, env=None):
    """The output of a Python process."""
    done = subprocess.run([sys.executable, *command], input=program, cwd=cwd, timeout=120,
                          capture_output=True, text=True, env={**os.environ, **(env or {})})
    return done.stdout + done.stderr[-3000:]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes and imports a module of the given text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []

    def make(text, name=None):
        name = name or f"source_{tmp_path.name}_{len(names)}".replace("-", "_")
        names.append(name)
        path = tmp_path / f"{name}.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        importlib.invalidate_caches()
        return importlib.import_module(name), path

    yield make
    for name in names:
        sys.modules.pop(name, None)


def edit(path, text):
    """Another text, and another time of change for sure."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 2_000_000_000, before + 2_000_000_000))


# ---- files ----------------------------------------------------------------------------------


def test_a_module(module):
    m, _ = module(MODULE.format(value=4))
    assert launch(m.k) == 4


def test_a_file_edited_after_import(module):
    """The text was taken when the decorator ran."""
    m, path = module(MODULE.format(value=4))
    edit(path, MODULE.format(value=5))
    assert launch(m.k) == 4
    m = importlib.reload(m)
    assert launch(m.k) == 5


FACTORY = """import ingot as qd
{before}
def make():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in range(a.shape[0]):
            a[i] = {value}
    return k
"""


def test_a_factory_in_a_file_edited_after_import(module):
    m, path = module(FACTORY.format(value=4, before=""))
    edit(path, FACTORY.format(value=5, before=""))
    text = refusal(m.make())  # nothing of this file was seen before the edit
    assert "changed since it was imported" in text and str(path) in text
    assert "help: restart the program" in text
    assert launch(importlib.reload(m).make()) == 5


def test_a_factory_whose_file_was_seen_before(module):
    """What was seen at import still serves, through several edits."""
    m, path = module(FACTORY.format(value=4, before=""))
    assert launch(m.make()) == 4
    for value in (5, 6):
        edit(path, FACTORY.format(value=value, before="# a comment\n"))
        assert launch(m.make()) == 4
    assert launch(importlib.reload(m).make()) == 6


def test_an_edit_elsewhere_in_the_file(module):
    m, path = module(FACTORY.format(value=4, before="X = 1"))
    edit(path, FACTORY.format(value=4, before="X = 2  # the function is the same"))
    assert launch(m.make()) == 4


def test_a_file_that_shrank(module):
    m, path = module(FACTORY.format(value=4, before=""))
    edit(path, "")
    assert "changed since it was imported" in refusal(m.make())


def test_a_file_that_went(module):
    m, path = module(FACTORY.format(value=4, before=""))
    path.unlink()
    text = refusal(m.make())
    assert "there is no source text" in text and "help: ship the .py file" in text
    m, path = module(MODULE.format(value=4))
    path.unlink()
    assert launch(m.k) == 4  # decorated before


def test_touched_only(module):
    m, path = module(FACTORY.format(value=4, before=""))
    edit(path, path.read_text())
    assert launch(m.make()) == 4


def test_pyc_only(tmp_path, module):
    name = "source_pyc_only"
    path = tmp_path / f"{name}.py"
    path.write_text(MODULE.format(value=4))
    compileall.compile_file(str(path), quiet=2, legacy=True)
    path.unlink()
    importlib.invalidate_caches()
    text = refusal(importlib.import_module(name).k)
    sys.modules.pop(name)
    assert "k cannot be compiled" in text
    for remedy in ("ship the .py file", "linecache", "source="):
        assert remedy in text


def test_zip(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as z:
        z.writestr("source_in_zip/__init__.py", "")
        z.writestr("source_in_zip/inner.py", MODULE.format(value=6))
    monkeypatch.syspath_prepend(str(tmp_path / "lib.zip"))
    assert launch(importlib.import_module("source_in_zip.inner").k) == 6


@pytest.mark.parametrize("flags", [(), ("-O",), ("-OO",), ("-B",), ("-X", "frozen_modules=off")])
def test_flags(tmp_path, flags, cache_dir):
    (tmp_path / "flagged.py").write_text('"""doc"""\n' + MODULE.format(value=7))
    program = ("import ingot as qd, flagged\na = qd.ndarray(qd.i32, 3)\nflagged.k(a)\n"
               "print(a[1])\n")
    for _ in range(2):  # with and without a .pyc
        assert run(*flags, "-c", program, cwd=tmp_path) == "7\n"


def test_relative_path_and_chdir(tmp_path, cache_dir):
    other = tmp_path / "other"
    other.mkdir()
    program = ("import os\nos.chdir('other')\n" + MODULE.format(value=8)
               + "a = qd.ndarray(qd.i32, 3)\nk(a)\nprint(a[1])\n")
    (tmp_path / "prog.py").write_text(program)
    (other / "prog.py").write_text("# another file of that name\n" * 30)
    assert run("prog.py", cwd=tmp_path) == "8\n"


def test_main_by_name_and_stdin(tmp_path, cache_dir):
    (tmp_path / "app.py").write_text(MODULE.format(value=9) + "a = qd.ndarray(qd.i32, 3)\nk(a)\n"
                                     "print(a[1])\n")
    assert run("-m", "app", cwd=tmp_path) == "9\n"
    text = run("-", cwd=tmp_path, program=(tmp_path / "app.py").read_text())
    assert "k cannot be compiled" in text and "help: " in text  # a pipe is read once
    with open(tmp_path / "app.py") as script:
        done = subprocess.run([sys.executable], stdin=script, capture_output=True, text=True)
    assert done.stdout == "9\n", done.stderr
    text = (tmp_path / "app.py").read_text()
    assert run("-c", text, cwd=tmp_path) == "9\n"
    assert run("-Ic" + text, cwd=tmp_path) == "9\n" == run("-B", "-c", text, "more", cwd=tmp_path)


def test_exec_below_a_command_is_another_text(tmp_path, cache_dir):
    """"<string>" is the name of both; only the text that compiles to the function counts."""
    text = MODULE.format(value=9) + "exec('@qd.kernel\\ndef k(a: qd.types.ndarray()):\\n  a[1] = 4')\n"
    text += "a = qd.ndarray(qd.i32, 3)\ntry: k(a)\nexcept qd.IngotError as e: print(e)\n"
    assert "there is no source text for '<string>'" in run("-c", text, cwd=tmp_path)


# ---- text without a file -----------------------------------------------------------------------


def test_exec_with_linecache():
    name, text = "<made up 1>", "import ingot as qd\n" + KERNEL.format(value=11)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {}
    exec(compile(text, name, "exec"), scope)
    assert launch(scope["k"]) == 11


def test_exec_without_text():
    scope = {"qd": qd}
    exec(KERNEL.format(value=11), scope)  # decorating is no error
    text = refusal(scope["k"])
    assert "k cannot be compiled: there is no source text for '<string>'" in text
    assert "help: put it into a .py file" in text and "source=" in text


def test_code_by_the_name_of_another_file(module):
    """A text that a program made is not what the file has that it is named after; its own is."""
    m, path = module(MODULE.format(value=4))
    for scope in {"qd": qd}, dict(vars(m), __file__="x"), {"__file__": str(path), "__loader__": None}:
        exec(compile(MODULE.format(value=5), str(path), "exec"), scope)
        assert f"{path} is not what this function was compiled from" in refusal(scope["k"])
        exec(compile(MODULE.format(value=4), str(path), "exec"), scope)
        assert launch(scope["k"]) == 4
    assert launch(m.k) == 4


def test_text_that_is_registered_too_late():
    """Until then the name is that of what was made before."""
    name, texts = "<made again>", [MODULE.format(value=v) for v in (1, 2)]
    scope = {}
    for text in texts:
        exec(compile(text, name, "exec"), scope)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    assert "there is no source text for '<made again>'" in refusal(scope["k"])
    exec(compile(texts[1], name, "exec"), scope)
    assert launch(scope["k"]) == 2


def test_a_prompt_with_a_future(monkeypatch):
    """What an earlier text imported from __future__ holds for later ones, as in notebooks."""
    shell, scope = code.InteractiveInterpreter(), {}
    compiler = shell.compile.compiler
    compiler("from __future__ import annotations\n", "<in 1>", "exec")
    for n, text in enumerate((MODULE.format(value=3), MODULE.format(value=4))):
        linecache.cache[f"<in {n}>"] = (len(text), None, text.splitlines(True), f"<in {n}>")
        exec(compiler(text, f"<in {n}>", "exec"), scope)
        assert launch(scope["k"]) == 3 + n
        plain = {}
        exec(compile(text, f"<in {n}>", "exec"), plain)  # the same text without it
        assert launch(plain["k"]) == 3 + n


def test_source_given():
    text = "def k(a: qd.types.ndarray()):\n    for i in range(3):\n        a[i] = helper(i)\n"
    helper = "def helper(i):\n    return 12\n"
    scope = {"qd": qd}
    exec(text + helper, scope)
    scope["helper"] = qd.func(source=helper)(scope["helper"])
    assert launch(qd.kernel(scope["k"], source=text)) == 12
    indented = "    @decorated\n" + textwrap.indent(text, "    ")
    assert launch(qd.kernel(scope["k"], source=indented)) == 12
    with pytest.raises(TypeError, match="source= must be the text"):
        qd.kernel(scope["k"], source=3)


def test_source_of_another_function():
    scope = {"qd": qd}
    exec("def k(a: qd.types.ndarray()):\n    a[0] = 1\n", scope)
    text = refusal(qd.kernel(scope["k"], source="def other(a):\n    pass\n"))
    assert "expected the definition of k here, found other" in text
    text = refusal(qd.kernel(scope["k"], source="x = 1\n"))
    assert "plain `def`" in text
    with pytest.raises(SyntaxError):
        launch(qd.kernel(scope["k"], source="def k(:\n"))


class Loader:
    """As IPython and lazy importers give text: asked only when it is needed."""

    def __init__(self, text):
        self.text = text

    def get_source(self, name):
        return self.text


def test_cells_with_lazy_text():
    for cell in range(2):  # each cell is a file of its own
        text = "import ingot as qd\n" + KERNEL.format(value=20 + cell)
        file = f"<ipython-input-{cell}-0123456789ab>"
        scope = {"__name__": "__main__", "__loader__": Loader(text), "qd": qd}
        linecache.lazycache(file, scope)
        exec(compile(text, file, "exec"), scope)
        assert launch(scope["k"]) == 20 + cell


def test_cells_of_a_kernel_process(tmp_path):
    """ipykernel names files that do not exist and fills linecache."""
    file = str(tmp_path / "ipykernel_123" / "456.py")
    for value in (3, 4):  # the cell is run again with another text
        text = "import ingot as qd\n" + KERNEL.format(value=value)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        scope = {"__name__": "__main__"}
        exec(compile(text, file, "exec"), scope)
        assert launch(scope["k"]) == value


def test_an_interactive_console():
    console = code.InteractiveConsole({"qd": qd})
    for line in KERNEL.format(value=30).strip().splitlines() + [""]:
        console.push(line)
    kernel = console.locals["k"]
    file = kernel.__wrapped__.__code__.co_filename
    if linecache.getlines(file):  # 3.13 and later keep what was typed
        assert launch(kernel) == 30
    else:
        assert f"there is no source text for {file!r}" in refusal(kernel)


def test_what_python_keeps_by_code(monkeypatch):
    """As the prompt of 3.14 does: lines by the code that they became, those of a lambda too, and none in linecache.cache."""
    text = KERNEL.format(value=32).lstrip() + "add = lambda x, y: x + y\n"
    kept = {"k": text, "<lambda>": text}
    monkeypatch.setattr(linecache, "_getlines_from_code", lambda c: kept.get(c.co_name, "").splitlines(True), raising=False)
    scope = {"qd": qd, "__file__": "script.py", "__name__": "__main__"}  # python -i script.py
    exec(compile(text, "<stdin-7>", "exec"), scope)
    assert launch(scope["k"]) == 32
    add = scope["add"]

    @qd.kernel
    def use() -> qd.i32:
        return add(3, 4)

    assert use() == 7


def test_the_prompt_of_python(tmp_path, cache_dir):
    """A real terminal: a kernel that was typed, then one from a file."""
    (tmp_path / "typed.py").write_text(MODULE.format(value=31))
    lines = ["import ingot as qd, typed", *KERNEL.format(value=30).strip().splitlines(), "",
             "a = qd.ndarray(qd.i32, 3)", "try: k(a)", "except qd.IngotError as e: print(e)", "",
             "print('value', a[1])", "typed.k(a)", "print('value', a[1])", "exit()"]
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "dumb", "PYTHON_BASIC_REPL": "1", "PYTHONSTARTUP": ""}
    with subprocess.Popen([sys.executable, "-i", "-q"], stdin=slave, stdout=slave, stderr=slave,
                          cwd=tmp_path, env=env, close_fds=True) as process:
        os.close(slave)
        os.write(master, ("\n".join(lines) + "\n").encode())
        out = b""
        while True:
            try:
                got = os.read(master, 65536)
            except OSError:
                break
            if not got:
                break
            out += got
        process.wait(60)
    os.close(master)
    text = out.decode()
    assert "value 31" in text and "value 30" in text, text


# ---- hooks -----------------------------------------------------------------------------------


def test_code_rewritten_by_an_import_hook(tmp_path, monkeypatch):
    """The running code is not what the text compiles to; the text is what the user wrote."""
    import ast
    import importlib.machinery

    class Rewrite(importlib.machinery.SourceFileLoader):
        def source_to_code(self, data, path, *, _optimization=-1):
            tree = ast.parse(data)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    node.body.insert(0, ast.parse("hook = 1").body[0])
            return compile(ast.fix_missing_locations(tree), path, "exec")

    path = tmp_path / "rewritten.py"
    path.write_text(MODULE.format(value=40))
    spec = importlib.util.spec_from_loader("rewritten", Rewrite("rewritten", str(path)))
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    assert launch(m.k) == 40


def test_pytest_rewrites_this_file():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in range(a.shape[0]):
            assert i >= 0, "rewritten by pytest"
            a[i] = 41

    assert launch(k) == 41


# ---- forms of text ---------------------------------------------------------------------------------


FORMS = {
    "crlf": MODULE.format(value=5).replace("\n", "\r\n").encode(),
    "old mac": MODULE.format(value=5).replace("\n", "\r").encode(),
    "tabs": MODULE.format(value=5).replace("    ", "\t").encode(),
    "mixed indentation": MODULE.format(value=5).replace("        a[i]", "    \ta[i]").encode(),
    "form feed": ("import ingot as qd\n\f\n\f" + KERNEL.format(value=5).lstrip()).encode(),
    "bom": b"\xef\xbb\xbf" + MODULE.format(value=5).encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\nS = '\xe4'\n" + MODULE.format(value=5).encode(),
    "cp1252 in the kernel": b"# coding: cp1252\nimport ingot as qd\n@qd.kernel\n"
                            b"def k(a: qd.types.ndarray()):\n    w\xe4rme = 5  # \x80\n"
                            b"    for i in range(3):\n        a[i] = w\xe4rme\n",
    "one line": b"import ingot as qd\n@qd.kernel\ndef k(a: qd.types.ndarray()): "
                b"a[0] = 5; a[1] = 5; a[2] = 5\n",
    "one line without an end": b"import ingot as qd\n@qd.kernel\ndef k(a: qd.types.ndarray()): "
                               b"a[0] = 5; a[2] = 5",
    "backslash in the def": b"import ingot as qd\n@qd.kernel\ndef \\\n  k(a: qd.types.ndarray()):"
                            b"\n    a[0] = 5\n    a[2] = \\\n5\n",
    "backslash before the def": b"import ingot as qd\n@qd.kernel\n\\\ndef k(a: "
                                b"qd.types.ndarray()):\n    a[0] = 5\n    a[2] = 5\n",
    "brackets over lines": b"import ingot as qd\n@qd.kernel\ndef k(\n    a: qd.types.ndarray(),\n"
                           b"):\n    a[0] = (\n5\n)\n    a[2] = 5\n",
    "text in strings": b"import ingot as qd\n@qd.kernel\ndef k(a: qd.types.ndarray()):\n"
                       b"    '''a\ndef k():\n#'''\n    a[0] = 5  # ' \"\n    a[2] = 5\n",
    "comments less indented": b"import ingot as qd\n@qd.kernel\ndef k(a: qd.types.ndarray()):\n"
                              b"    a[0] = 5\n# a comment\n  # another\n\n    a[2] = 5\n",
    "under an if": b"import ingot as qd\nif True:\n  @qd.kernel\n  def k(a: qd.types.ndarray()):"
                   b"\n    a[0] = 5\n    a[2] = 5\n  x = 1\n",
    "many decorators": b"import ingot as qd\ndef same(**kw):\n    return lambda f: f\n@same(x=1)\n"
                       b"# between\n@qd.kernel\n\n@same(\n  y=(2,\n3))\ndef k(a: "
                       b"qd.types.ndarray()):\n    a[0] = 5\n    a[2] = 5\n",
    "decorated by a call": b"import ingot as qd\ndef k(a: qd.types.ndarray()):\n    a[0] = 5\n"
                           b"    a[2] = 5\nk = qd.kernel(k)\n",
    "semicolons": b"import ingot as qd; x = 1\n@qd.kernel\ndef k(a: qd.types.ndarray()): a[0] = 5;"
                  b"a[2] = 5;\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_text(module, form):
    m, _ = module(FORMS[form])
    assert launch(m.k) == 5


def test_equal_names(module):
    m, _ = module(textwrap.dedent("""
        import ingot as qd

        def make(which):
            if which == 0:
                @qd.kernel
                def k(a: qd.types.ndarray()):
                    for i in range(3): a[i] = 50
            elif which == 1:
                @qd.kernel
                def k(a: qd.types.ndarray()):
                    for i in range(3): a[i] = 51
            else:
                def k(a: qd.types.ndarray()):
                    def k(b):
                        return b
                    for i in range(3): a[i] = 52
                k = qd.kernel(k)
            return k

        class A:
            @qd.kernel
            def k(self, a: qd.types.ndarray()):
                for i in range(3): a[i] = 53

            class B:
                @staticmethod
                @qd.kernel
                def k(a: qd.types.ndarray()):
                    for i in range(3): a[i] = 54
        """))
    assert [launch(m.make(i)) for i in (0, 1)] == [50, 51]
    assert "Function definition is not allowed" in refusal(m.make(2))
    assert launch(m.A().k) == 53 and launch(m.A.B.k) == 54


def test_lambda():
    k = qd.kernel(lambda a: a[0])
    text = refusal(k)
    assert "test_sources.py" in text and "a lambda cannot be a kernel" in text
    assert "help: write it as a `def`" in text


def test_wrapped_functions():
    def around(f):
        @functools.wraps(f)
        def wrapper(*args, **kw):
            return f(*args, **kw)
        return wrapper

    def marked(f):
        f.mark = 1
        return f

    @around
    @qd.kernel
    def outside(a: qd.types.ndarray()):
        for i in range(3):
            a[i] = 60

    @qd.kernel
    @marked
    def inside(a: qd.types.ndarray()):
        for i in range(3):
            a[i] = 61

    @qd.kernel
    @around
    def wrapped(a: qd.types.ndarray()):
        for i in range(3):
            a[i] = 62

    assert launch(outside) == 60 and launch(inside) == 61
    text = refusal(wrapped)
    assert "is wrapped by another decorator" in text
    assert "help: put @qd.kernel or @qd.func next to the `def`" in text


def test_things_that_are_no_functions():
    for thing in (3, "def k(): pass", print, functools.partial(launch), types.SimpleNamespace(),
                  type):
        with pytest.raises(TypeError, match="expected a Python function"):
            qd.kernel(thing)


def test_errors_show_the_line_of_an_old_text(module):
    m, path = module("import ingot as qd\n@qd.kernel\ndef k(a: qd.types.ndarray()):\n"
                     "    a[0] = wrong\n")
    edit(path, "\n\n\n# something else\n")
    with pytest.raises(qd.IngotNameError) as caught:
        launch(m.k)
    text = str(caught.value)
    assert text.startswith(f"{path}:4:12: Name \"wrong\" is not defined\n    a[0] = wrong\n")


class Answers(dict):
    def __missing__(self, name):
        return 42


class Changes(dict):
    def __getitem__(self, name):
        return 42 if name == "N" else dict.__getitem__(self, name)


@pytest.mark.parametrize("kind", [Answers, Changes, dict, type("Plain", (dict,), {})],
                         ids=lambda c: c.__name__)
def test_globals_that_answer_by_themselves(kind):
    text = "def k(a: A):\n    a[0] = N\n"
    scope = kind({"qd": qd, "A": qd.types.ndarray(), "N": 3, "__name__": "somewhere"})
    exec(compile(text, "<globals>", "exec"), scope)
    k = qd.kernel(scope["k"], source=text)
    a = qd.ndarray(qd.f64, 1)
    if kind in (Answers, Changes):
        with pytest.raises(qd.IngotTypeError, match="says by itself what is in it"):
            k(a)
        return
    k(a)
    assert a[0] == 3
    scope["N"] = 4
    k(a)
    assert a[0] == 4


WHICH = """
def make({free}):
    @qd.func
    def f():
        r = ONE
        if qd.static(False):
            r = TWO
        return r
    return f
"""


def test_which_names_are_free():
    """Of one text, with as many free names: in one function ONE is a variable of the module, in the other its own."""
    scope, funcs = {"qd": qd, "ONE": 3, "TWO": 4}, []
    for free in ("TWO", "ONE"):
        text, name = WHICH.format(free=free), f"<which {free}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), scope)
        funcs.append(scope["make"](7))

    @qd.kernel
    def k() -> qd.i32:
        return f()

    for f, want in zip(funcs * 2, (3, 7, 3, 7)):
        assert k() == want
