"""Changes that mean nothing: every kernel is found again, and from the second process on
nothing is parsed (R9: a text that only looks different is compared by its tree once, and
known by its lines from then on)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import PARANOID, output_of

PROGRAM = '''\
import enum
import json
import sys

import ingot as qd
from ingot import _core

qd.init()
A = qd.types.ndarray()
N = 3
SIZES = {"x": 2, "y": 5}


class Mode(enum.IntEnum):
    FAST = 1
    SLOW = 2


class Config:
    def __init__(self):
        self.scale = 2.0
        self.mode = Mode.SLOW


config = Config()


@qd.func
def inner(v):
    return v * N + SIZES["x"]


@qd.func
def outer(v, c: qd.template()):
    """Doc of outer."""
    if qd.static(c.mode == Mode.FAST):
        return inner(v)
    return inner(v) * c.scale


def unrelated():
    return 1


@qd.kernel
def first(a: A, c: qd.template()):
    """What first does."""
    # says nothing
    for i in range(a.shape[0]):
        x = outer(i, c)
        name = "a string"
        if qd.static(name == "a string"):
            a[i] = x + 1


@qd.kernel
def second(a: A, s: qd.f32 = 0.5):
    for i in range(a.shape[0]):
        for j in qd.static(range(N)):
            a[i] += inner(j) * s


a = qd.ndarray(qd.f32, 4)
first(a, config)
second(a)
c = _core.counters()
print(json.dumps({"value": a[3], **c}))
'''


def replace(text, old, new):
    assert old in text, old
    return text.replace(old, new)


def swap(text, one, two):
    """The two pieces of text change places."""
    assert one in text and two in text
    return text.replace(one, "@@").replace(two, one).replace("@@", two)


def block(text, start):
    """A top-level definition with its decorators, up to the two blank lines after it."""
    at = text.index(start)
    end = text.find("\n\n\n", at)
    return text[at:end]


INNER = block(PROGRAM, "@qd.func\ndef inner")
OUTER = block(PROGRAM, "@qd.func\ndef outer")
FIRST = block(PROGRAM, "@qd.kernel\ndef first")
SECOND = block(PROGRAM, "@qd.kernel\ndef second")

# name -> the text after the change
EDITS = {
    "comment above": "# a comment\n" + PROGRAM,
    "blank lines above": "\n\n\n" + PROGRAM,
    "comment above a kernel": replace(PROGRAM, "@qd.kernel\ndef first", "# x\n@qd.kernel\ndef first"),
    "comment inside a kernel": replace(PROGRAM, "    # says nothing\n", "    # says something else\n"),
    "comment removed": replace(PROGRAM, "    # says nothing\n", ""),
    "comment at the end of a line": replace(PROGRAM, "        x = outer(i, c)",
                                            "        x = outer(i, c)  # here"),
    "comment in a func": replace(PROGRAM, "    return v * N", "    # more\n    return v * N"),
    "blank line inside": replace(PROGRAM, "        x = outer(i, c)\n", "        x = outer(i, c)\n\n"),
    "spaces at the end": replace(PROGRAM, "        x = outer(i, c)\n", "        x = outer(i, c)   \n"),
    "reformatted": replace(PROGRAM, "            a[i] += inner(j) * s",
                           "            a[i] += (\n                inner( j )\n                * s)"),
    "other indentation": replace(PROGRAM, FIRST, FIRST.replace("    ", "  ")),
    "re-quoted": replace(replace(PROGRAM, 'name = "a string"', "name = 'a string'"),
                         'SIZES["x"]', "SIZES['x']"),
    "number written differently": replace(PROGRAM, "a[i] = x + 1", "a[i] = x + 0x1"),
    "docstring of a kernel": replace(PROGRAM, "What first does.", "Something else."),
    "docstring removed": replace(PROGRAM, '    """Doc of outer."""\n', ""),
    "docstring added": replace(PROGRAM, "def inner(v):\n", 'def inner(v):\n    """New."""\n'),
    "decorator written differently": replace(PROGRAM, "@qd.kernel\ndef second", "@qd.kernel()\ndef second"),
    "definitions reordered": swap(PROGRAM, FIRST, SECOND),
    "unrelated function edited": replace(PROGRAM, "    return 1\n", "    return 2\n"),
    "unrelated function added": replace(PROGRAM, "def unrelated", "def another():\n    pass\n\n\ndef unrelated"),
    "unrelated member added": replace(PROGRAM, "        self.scale", "        self.other = 7\n        self.scale"),
    "unrelated global added": replace(PROGRAM, "N = 3", "M = 4\nN = 3"),
    "unrelated enum member": replace(PROGRAM, "    SLOW = 2", "    SLOW = 2\n    SLOWER = 3"),
    "order of a dict that is not iterated": replace(PROGRAM, '{"x": 2, "y": 5}', '{"y": 5, "x": 2}'),
    "item of a dict that is not read": replace(PROGRAM, '"y": 5', '"y": 6'),
    "equal value written differently": replace(PROGRAM, "N = 3", "N = 2 + 1"),
    "members in another order": swap(PROGRAM, "        self.scale = 2.0", "        self.mode = Mode.SLOW"),
    "class renamed": PROGRAM.replace("Config", "Settings"),
    "global name of an object renamed": PROGRAM.replace("config", "settings_"),
    "lines end with CR LF": PROGRAM.replace("\n", "\r\n"),
}


def run(path, cache, cwd=None, args=(), **env):
    env = {"INGOT_CACHE_DIR": str(cache), **env}
    return json.loads(output_of(sys.executable, "-B", *args, path, timeout=120, cwd=cwd, **env))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A folder with the program and a cache that holds its kernels."""
    folder = tmp_path_factory.mktemp("invariance")
    path = folder / "prog.py"
    path.write_text(PROGRAM)
    first = run(path, folder / "cache")
    assert (first["parses"], first["kernel_stored"]) == (4, 2)
    return path, folder / "cache", first["value"]


def assert_hit(got, value, parses=0):
    """Both kernels came from disk; their texts were known, or parsed once."""
    assert got["value"] == value
    assert got["kernel_disk_hits"] == 2 and got["kernel_stored"] == 0
    assert (got["image_compiles"], got["helpers_started"]) == (0, 0)
    assert PARANOID or (got["lowerings"] == 0 and got["parses"] <= parses)


def test_there_are_enough():
    assert len(EDITS) >= 20 and all(text != PROGRAM for text in EDITS.values())


def test_same_text(warm):
    path, cache, value = warm
    assert_hit(run(path, cache), value)


@pytest.mark.parametrize("name", EDITS)
def test_edit(warm, tmp_path, name):
    _, cache, value = warm
    path = tmp_path / "prog.py"
    path.write_bytes(EDITS[name].encode())
    assert_hit(run(path, cache), value, parses=4)
    assert_hit(run(path, cache), value)


def test_moved_file(warm, tmp_path):
    path, cache, value = warm
    folder = tmp_path / "elsewhere" / "deep"
    folder.mkdir(parents=True)
    assert_hit(run(shutil.copy(path, folder / "other_name.py"), cache), value)


def test_moved_cache(warm, tmp_path):
    path, cache, value = warm
    shutil.copytree(cache, tmp_path / "copy")
    assert_hit(run(path, tmp_path / "copy"), value)


def test_as_a_module(warm, tmp_path):
    """Imported under another name instead of run: module and qualname are only labels."""
    path, cache, value = warm
    shutil.copy(path, tmp_path / "imported.py")
    script = tmp_path / "main.py"
    script.write_text("import imported\n")
    assert_hit(run(script, cache), value)


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_hash_seed(warm, seed):
    path, cache, value = warm
    assert_hit(run(path, cache, PYTHONHASHSEED=seed), value)


def test_working_directory(warm, tmp_path):
    path, cache, value = warm
    assert_hit(run(path, cache, cwd=tmp_path), value)


def test_environment(warm, tmp_path):
    path, cache, value = warm
    got = run(path, cache, HOME=str(tmp_path), LANG="C", TZ="UTC", SOMETHING="else",
              PYTHONUNBUFFERED="1")
    assert_hit(got, value)


def test_options_of_python(warm):
    path, cache, value = warm
    assert_hit(run(path, cache, args=["-X", "dev", "-W", "ignore"]), value)
    # Without docstrings and asserts the code objects differ: compared by tree once.
    assert_hit(run(path, cache, args=["-OO"]), value, parses=4)
    assert_hit(run(path, cache, args=["-OO"]), value)


def test_settings_that_do_not_affect_code(warm, tmp_path):
    path, cache, value = warm
    other = tmp_path / "prog.py"
    other.write_text(PROGRAM.replace("qd.init()", "qd.init(cpu_max_num_threads=1, random_seed=7)"))
    assert_hit(run(other, cache), value)


def test_nothing_else_was_published(warm):
    """All of the above shared the entries of one kernel each."""
    _, cache, _ = warm
    kinds = {p.name: sum(f.is_file() for f in p.rglob("*")) for p in pathlib.Path(cache).iterdir()}
    assert kinds["x"] == 2 and kinds["v"] == 2, kinds


FAILING = '''\
import ingot as qd
from ingot import _core
qd.init(debug=True)


@qd.func
def check(v):
    assert v < 3, "too much"
    return v


@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] = check(i)


try:
    k(qd.ndarray(qd.i32, 8))
except qd.IngotAssertionError as e:
    print(str(e))
print("lowerings", _core.counters()["lowerings"])
'''


@pytest.mark.counts("lowerings")
def test_errors_name_the_line_after_an_edit(tmp_path):
    """R19: code found in the cache reports the lines of the text as it is now."""
    path = tmp_path / "prog.py"
    env = {**os.environ, "INGOT_CACHE_DIR": str(tmp_path / "cache")}

    def lines_of(text):
        path.write_text(text)
        out = subprocess.run([sys.executable, "-B", str(path)], capture_output=True, text=True,
                             env=env, check=True).stdout
        return out

    cold = lines_of(FAILING)
    assert "prog.py:8" in cold and "too much" in cold and "lowerings 1" in cold
    moved = lines_of("# one\n# two\n" + FAILING)
    assert "prog.py:10" in moved and "lowerings 0" in moved
    inside = lines_of(FAILING.replace("def check(v):\n", "def check(v):\n    # why\n\n"))
    assert "prog.py:10" in inside and "lowerings 0" in inside
    assert 'assert v < 3, "too much"' in inside
