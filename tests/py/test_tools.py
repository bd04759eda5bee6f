"""Each checker accepts the tree and refuses a bad sample; the Makefile's machine check names
what is missing."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, needs

TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))

import check_format
import check_globals
import check_layers
import check_order
import check_size
import check_swallow
import check_symbols
import list_files
import revision
import run_ci
import run_tests
import version


def put(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def compile_c(tmp_path, text, *flags, name="sample.c", out="sample.o"):
    source = put(tmp_path, name, text)
    target = tmp_path / out
    subprocess.run(["gcc", *flags, "-o", target, source], check=True)
    return target


# ---- layers ---------------------------------------------------------------------------


def test_layers_of_the_tree():
    assert check_layers.check(ROOT) == []


@pytest.mark.parametrize(
    "folder, line, part",
    [
        ("base", '#include "ir/ir.h"', "later layer"),
        ("ir", "#include <Python.h>", "src/py alone"),
        ("ir", '#  include "Python.h"', "src/py alone"),
        ("ir", '#include "ir.h"', "name the folder"),
        ("front", '#include "elsewhere/x.h"', "not a layer"),
        ("py", '#include "ir/ir_int.h"', "internal to ir"),
    ],
)
def test_layers_refuses(tmp_path, folder, line, part):
    put(tmp_path, f"src/{folder}/a.c", f"/* a */\n{line}\n")
    (found,) = check_layers.check(tmp_path)
    assert found.startswith(f"src/{folder}/a.c:2:") and part in found


@pytest.mark.parametrize("file, target, ok", [
    ("see/a.c", "py/array/array.h", True),
    ("value/a.c", "py/see/def.h", True),
    ("module.c", "py/value/codec.h", True),
    ("host.c", "py/value/codec.h", False),
    ("array/a.c", "py/see/see.h", False),
    ("call/a.c", "py/value/codec.h", False),
    ("call/a.c", "py/elsewhere/a.h", False),
])
def test_rooms(tmp_path, file, target, ok):
    put(tmp_path, f"src/py/{file}", f'#include "{target}"\n')
    assert (check_layers.check(tmp_path) == []) is ok


def test_layers_accepts(tmp_path):
    put(tmp_path, "src/base/a.c", '#include "base/base.h"\n#include <stdio.h>\n')
    put(tmp_path, "src/ir/a.c", '#include "gen/abi.h"\n#include "ir/ir_int.h"\n')
    put(tmp_path, "src/py/a.c", '#include <Python.h>\n#include "ing_revision.h"\n')
    assert check_layers.check(tmp_path) == []


def test_layers_unknown_folder(tmp_path):
    put(tmp_path, "src/misc/a.c", "")
    assert "not a layer" in check_layers.check(tmp_path)[0]


# ---- sizes ----------------------------------------------------------------------------


def test_sizes_of_the_tree():
    assert check_size.check(ROOT) == []


def test_size_refuses_a_long_function(tmp_path):
    body = "    x++;\n" * 119
    put(tmp_path, "src/base/a.c", f"struct s {{\n    int x;\n}};\nvoid\nf(int x) {{\n{body}}}\n")
    (found,) = check_size.check(tmp_path)
    assert "f has 121 lines" in found


def test_size_counts_parameters_on_further_lines(tmp_path):
    body = "    x++;\n" * 118
    put(tmp_path, "src/base/a.c", f"int g(void);\nstatic void f(int x,\n         int y) {{\n{body}}}\n")
    assert "f has 121 lines" in check_size.check(tmp_path)[0]


def test_size_leaves_tables_alone(tmp_path):
    rows = "    1,\n" * 300
    put(tmp_path, "src/base/a.c", f"static const int t[] = {{\n{rows}}};\n")
    assert check_size.check(tmp_path) == []


def test_size_refuses_a_long_file(tmp_path):
    put(tmp_path, "src/base/a.c", "\n" * 1001)
    put(tmp_path, "src/base/a.def", "\n" * 1001)
    assert check_size.check(tmp_path) == ["src/base/a.c: 1001 lines, 1000 at most"]


# ---- format ---------------------------------------------------------------------------


def clang_format():
    return check_format.find_clang_format()


@needs("clang-format")
def test_format_refuses_and_fixes(tmp_path):
    shutil.copy(ROOT / ".clang-format", tmp_path)
    path = put(tmp_path, "src/base/a.c", "int f( void ){return 1;}\n")
    assert check_format.check(tmp_path, clang_format()) == ["src/base/a.c:1: not formatted"]
    check_format.check(tmp_path, clang_format(), fix=True)
    assert check_format.check(tmp_path, clang_format()) == []
    assert path.read_text() == "int f(void) {\n    return 1;\n}\n"


# ---- symbols --------------------------------------------------------------------------


@needs("gcc", "nm")
def test_symbols_refuses(tmp_path):
    text = "int PyInit__core(void) { return 0; }\nint ing_leak(void) { return 1; }\n"
    path = compile_c(tmp_path, text, "-shared", "-fPIC", out="_core.so")
    (found,) = check_symbols.check(path)
    assert found.endswith("exports ing_leak")


@needs("gcc", "nm")
def test_symbols_accepts_what_the_version_script_leaves(tmp_path):
    text = "int PyInit__core(void) { return 0; }\nint ing_leak(void) { return 1; }\n"
    script = f"-Wl,--version-script={TOOLS / 'exports.map'}"
    path = compile_c(tmp_path, text, "-shared", "-fPIC", script, out="_core.so")
    assert check_symbols.check(path) == []


@needs("gcc", "nm")
def test_symbols_misses_a_definition(tmp_path):
    text = "int ing_gone(void);\nint PyInit__core(void) { return ing_gone(); }\n"
    path = compile_c(tmp_path, text, "-shared", "-fPIC", out="_core.so")
    assert check_symbols.check(path) == [f"{path}: nothing defines ing_gone"]


@needs("gcc", "nm")
def test_symbols_misses_the_entry(tmp_path):
    path = compile_c(tmp_path, "static int x;\n", "-shared", "-fPIC", out="_core.so")
    assert check_symbols.check(path) == [f"{path}: does not export PyInit__core"]


# ---- globals --------------------------------------------------------------------------

GLOBALS = """
int visible;
static int hidden = 3;
int f(void) { static int inside; return ++inside + ++hidden; }
__thread int each;
static const char *const table[] = {"a", "b"};
const int *g(int i);
const char *h(int i) { return table[i]; }
"""


@needs("gcc", "objdump")
def test_globals_refuses(tmp_path):
    allow = put(tmp_path, "allow", "# nothing\n")
    path = compile_c(tmp_path, GLOBALS, "-c", "-fPIC")
    found = check_globals.check([path], tmp_path, allow)
    names = {line.split(": ")[1].split(" ")[0].split(".")[0] for line in found}
    assert names == {"visible", "hidden", "inside", "each"}


@needs("gcc", "objdump")
def test_globals_allow_list(tmp_path):
    text = "/* registry: for fork handlers, which take no argument */\nint visible;\n"
    path = compile_c(tmp_path, text, "-c", name="src/a.c")
    allow = put(tmp_path, "allow", "# why\nsrc/a.c visible fork handlers take no argument\n")
    assert check_globals.check([path], tmp_path, allow) == []
    put(tmp_path, "src/a.c", "int visible;\n")
    (found,) = check_globals.check([path], tmp_path, allow)
    assert "registry:" in found
    put(tmp_path, "allow", "src/b.c visible why\n")
    assert "does not exist" in check_globals.check([path], tmp_path, allow)[0]


@needs("gcc", "objdump")
def test_globals_accepts_constants(tmp_path):
    text = 'static const char *const t[] = {"a"};\nconst char *h(void) { return t[0]; }\n'
    path = compile_c(tmp_path, text, "-c", "-fPIC", "-O0")
    assert check_globals.check([path], tmp_path, put(tmp_path, "allow", "")) == []


# ---- revision, version, lists -----------------------------------------------------------


def tree(root):
    for name in ("src/base/a.c", "src/gen/abi.h", "src/rt/a.c", "ingot/a.py", "ingot/_helper.py"):
        put(root, name, "one\n")


def revisions(root):
    return (
        revision.digest(root, revision.front_files(root)),
        revision.digest(root, revision.back_files(root)),
    )


@pytest.mark.parametrize(
    "name, front, back",
    [
        ("src/base/a.c", True, False),
        ("src/gen/abi.h", False, True),
        ("src/rt/a.c", False, False),
        ("ingot/a.py", True, False),
        ("ingot/sub/new.py", True, False),
        ("ingot/_helper.py", True, True),
        ("src/py/see/a.c", True, False),
        ("src/py/value/a.c", False, False),
        ("ingot/fingerprint.py", False, False),
    ],
)
def test_revision_follows_the_files(tmp_path, name, front, back):
    tree(tmp_path)
    before = revisions(tmp_path)
    put(tmp_path, name, "two\n")
    after = revisions(tmp_path)
    assert (before[0] != after[0], before[1] != after[1]) == (front, back)


def test_revision_depends_on_names_and_ignores_caches(tmp_path):
    tree(tmp_path)
    before = revisions(tmp_path)
    put(tmp_path, "ingot/__pycache__/a.py", "x")
    assert revisions(tmp_path) == before
    (tmp_path / "src/base/a.c").rename(tmp_path / "src/base/b.c")
    assert revisions(tmp_path)[0] != before[0]


def test_revision_is_written_only_on_change(tmp_path):
    out = tmp_path / "ing_revision.h"
    assert revision.write_if_changed(out, "text")
    os.utime(out, (1, 1))
    assert not revision.write_if_changed(out, "text") and out.stat().st_mtime == 1


def test_version_is_a_version():
    assert version.version().count(".") == 2


def test_list_files(tmp_path):
    for name in ("ingot/a.py", "ingot/sub/b.py", "ingot/c.txt", "ingot/__pycache__/d.py"):
        put(tmp_path, name, "")
    assert list_files.list_files(tmp_path, "ingot", [".py"]) == ["ingot/a.py", "ingot/sub/b.py"]


# ---- the machine check ------------------------------------------------------------------


def machine(tmp_path, *programs, python="python3"):
    """Runs the check with a PATH that has only `programs` (name -> script text or None)."""
    where = tmp_path / "bin"
    where.mkdir()
    for name in ("sh", "mktemp", "rm", "printf", "cat"):
        (where / name).symlink_to(shutil.which(name))
    for name, text in programs:
        put(where, name, text).chmod(0o755)
    env = {"PATH": str(where), "TMPDIR": str(tmp_path)}
    command = [where / "sh", TOOLS / "check_machine.sh", python]
    return subprocess.run(command, env=env, capture_output=True, text=True)


GOOD = "#!/bin/sh\nexit 0\n"


def test_machine_with_everything(tmp_path):
    done = machine(tmp_path, ("python3", GOOD), ("gcc", GOOD))
    assert done.returncode == 0 and done.stderr == ""


def test_machine_without_python(tmp_path):
    done = machine(tmp_path, ("gcc", GOOD))
    assert done.returncode == 1
    assert "apt-get install python3 python3-dev python3-venv" in done.stderr


def test_machine_with_old_python(tmp_path):
    done = machine(tmp_path, ("python3", "#!/bin/sh\nexit 1\n"), ("gcc", GOOD))
    assert done.returncode == 1 and "3.10 or later" in done.stderr


def test_machine_without_headers_and_venv(tmp_path):
    script = '#!/bin/sh\ncase "$2" in *Python.h*|*ensurepip*) exit 1;; esac\nexit 0\n'
    done = machine(tmp_path, ("python3", script), ("gcc", GOOD))
    assert done.returncode == 1
    assert "apt-get install python3-dev python3-venv" in done.stderr


def test_machine_without_compiler(tmp_path):
    done = machine(tmp_path, ("python3", GOOD))
    assert done.returncode == 1 and "apt-get install gcc libc6-dev" in done.stderr


def test_machine_with_half_a_compiler(tmp_path):
    done = machine(tmp_path, ("python3", GOOD), ("cc", "#!/bin/sh\nexit 1\n"))
    assert done.returncode == 1 and "libc6-dev" in done.stderr


# ---- what is not run is said --------------------------------------------------------------


def test_needs_reports(tmp_path):
    put(
        tmp_path, "test_sample.py",
        "from conftest import needs, samples\n"
        "@needs('no_such_module_at_all')\ndef test_a(): assert 0\n"
        "@needs('sys')\ndef test_b(): assert samples(2000) == 100 and samples(3) == 1\n",
    )
    shutil.copy(pathlib.Path(__file__).with_name("conftest.py"), tmp_path)
    notes = tmp_path / "notes"
    env = dict(os.environ, INGOT_NOT_RUN_FILE=str(notes), INGOT_STRESS="0")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "not run: no_such_module_at_all (not installed): 1 test(s)" in done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert notes.read_text() == "no_such_module_at_all (not installed): 1 test(s)\n"


@pytest.mark.parametrize("paranoid", ["0", "1"])
def test_what_counts_is_not_for_paranoid_runs(tmp_path, paranoid):
    put(
        tmp_path, "test_sample.py",
        "import os, pytest\n"
        "@pytest.mark.counts('calls')\ndef test_a(): pass\n"
        f"def test_b(): assert os.environ['INGOT_PARANOID'] == '{paranoid}'\n",
    )
    shutil.copy(pathlib.Path(__file__).with_name("conftest.py"), tmp_path)
    env = dict(os.environ, INGOT_NOT_RUN_FILE=str(tmp_path / "notes"), INGOT_PARANOID=paranoid)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert ("2 passed" if paranoid == "0" else "1 passed, 1 skipped") in done.stdout
    notes = "" if paranoid == "0" else "about calls (not for INGOT_PARANOID=1): 1 test(s)\n"
    assert ((tmp_path / "notes").read_text() if notes else "") == notes


# ---- errors that are lost ---------------------------------------------------------------------


def test_no_error_of_the_tree_is_lost():
    assert check_swallow.check(ROOT) == []


@pytest.mark.parametrize("name", sorted(check_swallow.INSTEAD))
def test_swallow_refuses(tmp_path, name):
    put(tmp_path, "src/py/a.c", f"/* {name}(x) */\nint f(void) {{\n    return {name} (x, \"{name}(\");\n}}\n")
    assert check_swallow.check(tmp_path) == [
        f"src/py/a.c:3: {name} loses errors: {check_swallow.INSTEAD[name]}"]
    put(tmp_path, "src/py/a.c", f"int f(void) {{ return My{name}(x) + {name}Ref(x); }}\n")
    put(tmp_path, "src/py/compat.h", f"int g(void) {{ return {name}(x); }}\n")
    assert check_swallow.check(tmp_path) == []


# ---- orders that C leaves open --------------------------------------------------------------


def test_the_tree_emits_in_a_fixed_order():
    assert check_order.check(ROOT) == []


HELPERS = (
    "static int one(x *b) {\n    return ing_ir_emit(b, 1);\n}\n"
    "static int quiet(x *b) {\n    return b->n;\n}\n"
)


@pytest.mark.parametrize(
    "line, what",
    [
        ("f(b, one(b), one(b));", "arguments"),
        ("f(b, (int)one(b) + 1, g(one(b)).s);", "arguments"),
        ("if (q) f(one(b), q ? quiet(b) : one(b));", "arguments"),
        ("return f(b, ING_MAX, one(b), ing_gen_def(g, q));", "arguments"),
        ("int a = one(b) + one(b);", "operands"),
        ("a[one(b)] = one(b);", "operands"),
        ("int ids[2] = {one(b), one(b)};", "elements"),
        ("t y = (t){.begin = one(b), .end = one(b)};", "elements"),
        ("f(g->ops->attr(x), g->ops->item(x));", "arguments"),
    ],
)
def test_order_refuses(tmp_path, line, what):
    put(tmp_path, "src/pass/a.c", f"{HELPERS}int two(x *b) {{\n    {line}\n}}\n")
    assert check_order.check(tmp_path) == [
        f"src/pass/a.c:8: {what} that emit, in an order that C leaves open"]


@pytest.mark.parametrize(
    "line",
    [
        "f(b, one(b), quiet(b));",
        "if (one(b)) one(b);",
        "for (int i = one(b); i < n; i++) one(b);",
        "return q ? one(b) : one(b);",
        "if (one(b) && one(b)) { one(b); one(b); }",
        "one(one(b));",
        "f(g->ops->describe(x), g->ops->describe(y));",
        "f(two(b), other(b));",
    ],
)
def test_order_accepts(tmp_path, line):
    put(tmp_path, "src/pass/a.c", f"{HELPERS}int three(x *b) {{\n    {line}\n}}\n")
    put(tmp_path, "src/pass/b.c", "static int other(x *b) {\n    return ing_ir_emit(b, 1);\n}\n")
    assert check_order.check(tmp_path) == []


# ---- processes that share the tests ---------------------------------------------------------


def test_each_file_is_run_by_one_process(tmp_path):
    """Each of two tests waits until the other has begun, so each process has one file."""
    for me, other in (("a", "b"), ("b", "a")):
        put(
            tmp_path, f"test_{me}.py",
            "import pathlib, time\nhere = pathlib.Path(__file__).parent\n"
            f"def test_first(): (here / 'began_{me}').open('x').close()\n"
            "def test_other():\n"
            f"    while not (here / 'began_{other}').exists(): time.sleep(0.01)\n"
            f"def test_wrong(): assert {me == 'a'}\n",
        )
    shutil.copy(pathlib.Path(__file__).with_name("conftest.py"), tmp_path)
    put(tmp_path, "claims/readme", "")
    env = dict(os.environ, INGOT_TEST_CLAIMS=str(tmp_path / "claims"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    shards = [subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
              for _ in range(2)]
    out = [shard.communicate(timeout=240)[0] for shard in shards]
    assert sorted(shard.returncode for shard in shards) == [0, 1], out
    last = [text.splitlines()[-1] for text in out]
    assert run_tests.add_up(last).split(", ") in (["1 failed", "5 passed"], ["5 passed", "1 failed"])


def test_counts_and_notes_are_added_up(tmp_path):
    lines = ["== 1 failed, 20 passed, 1 error in 3.25s ==", "3 passed, 2 errors in 61.10s (0:01:01)"]
    assert run_tests.add_up(lines) == "1 failed, 23 passed, 3 error"
    notes = put(tmp_path, "notes", "gdb: 1 test(s)\nsomething else\ngdb: 2 test(s)\nsomething else\n")
    assert run_tests.read_notes(notes) == ["gdb: 3 test(s)", "something else"]
    assert run_tests.read_notes(tmp_path / "none") == []


def test_files_that_may_depend_on_the_version():
    every, some = run_tests.test_files(False), run_tests.test_files(True)
    assert set(some) < set(every) and len(every) - len(some) == len(run_tests.ENGINE)
    assert {f"test_{name}" for name in run_tests.MEMORY + run_tests.LONG} <= {path.stem for path in every}


def test_long_files_go_first():
    files = sorted(run_tests.test_files(False), key=run_tests.turn)
    names = [path.stem.removeprefix("test_") for path in files]
    assert names[: len(run_tests.LONG)] == run_tests.LONG
    assert names[len(run_tests.LONG) :] == sorted(set(names) - set(run_tests.LONG))


# ---- continuous integration -----------------------------------------------------------------


def interpreter(folder, file, version, **about):
    """A program that says of itself what an interpreter would."""
    about = {"version": version, "level": "final", "name": "cpython", "threads": False,
             "headers": True, "venv": True, **about}
    path = put(folder, file, f"#!/bin/sh\ncat <<'END'\n{json.dumps(about)}\nEND\n")
    path.chmod(0o755)
    return path


def test_other_interpreters_are_found(tmp_path, monkeypatch):
    versions = tmp_path / "pyenv" / "versions"
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(run_ci, "candidates", lambda f=run_ci.candidates: (
        p for p in f() if tmp_path in p.parents))
    here = sys.version_info
    interpreter(tmp_path / "bin", f"python3.{here.minor}", here[:3])
    interpreter(tmp_path / "bin", "python3.9", (3, 9, 1))
    interpreter(tmp_path / "bin", "python3.90", (3, 90, 1))
    interpreter(tmp_path / "bin", "python3.91", (3, 91, 7), headers=False)
    interpreter(tmp_path / "bin", "python3.93", (3, 93, 0), venv=False)
    interpreter(tmp_path / "bin", "python3.94", (3, 94, 0), level="beta")
    interpreter(tmp_path / "bin", "python3.95", (3, 95, 0), name="pypy")
    put(tmp_path, "bin/python3.96", "#!/bin/sh\necho 'command not found' >&2\nexit 127\n").chmod(0o755)
    put(tmp_path, "bin/python3.97-config", "#!/bin/sh\n").chmod(0o755)
    newer = interpreter(versions / "3.90.5" / "bin", "python3.90", (3, 90, 5))
    built = interpreter(versions / "3.91.2" / "bin", "python3.91", (3, 91, 2))
    free = interpreter(versions / "3.91t" / "bin", "python3.91t", (3, 91, 2), threads=True)
    not_run = []
    found = run_ci.interpreters(not_run)
    assert found == {"3.90": newer, "3.91": built, "3.91t": free}
    assert not_run == ["Python 3.93 (no venv module with pip)", "Python 3.94 (not released yet)"]


@pytest.mark.parametrize("broken", [None, "redis"])
def test_packages_are_installed_together_or_one_by_one(monkeypatch, broken):
    calls, not_run = [], []

    def quietly(command, seconds=600):
        if "install" not in command:
            return 0, ""
        calls.append([word for word in map(str, command) if word in run_ci.EXTRAS])
        return (1, "no such thing") if broken in calls[-1] else (0, "")

    monkeypatch.setattr(run_ci, "quietly", quietly)
    run_ci.install_extras(not_run)
    assert calls[0] == list(run_ci.EXTRAS)
    assert calls[1:] == [[package] for package in run_ci.EXTRAS if broken]
    assert not_run == (["redis (pip: no such thing)"] if broken else [])


def test_closing_lines():
    rule = "=" * 78
    assert run_ci.closing(["a", rule, "b", rule, "checkers passed", "not run: x"]) == [
        "checkers passed", "not run: x"]
    assert run_ci.closing(["make: *** broken"]) == ["make: *** broken"] and run_ci.closing([]) == []
