"""Text that has no UTF-8 (lone surrogates), wherever a kernel or its maker meets text: values, keys,
names, paths, messages. It works as any other text, or is refused in words; UnicodeEncodeError and
UnicodeDecodeError are neither."""

import enum
import os
import subprocess
import sys
import types

import ingot as qd
import pytest

ODD = "\ud800x"
OTHER = "\udfffx"
TABLE = {ODD: 3, "a": 1, "é": 2}


class Odd(enum.Enum):
    A = ODD


pytestmark = pytest.mark.usefixtures("target")


@pytest.fixture(autouse=True)
def init():
    qd.init()


def text(s):
    return len(s)


def test_values():
    s = ODD

    @qd.kernel
    def k() -> qd.i32:
        n = 0
        if qd.static(s == "\ud800x"):
            n += 1
        if qd.static(s != "\udfffx"):
            n += 10
        n += 100 * qd.static(len(s))
        n += 1000 * qd.static(text(s))
        n += 10000 * qd.static(text("\udfff"))
        return n

    assert k() == 12211
    s = OTHER
    assert k() == 12200
    s = "ab"
    assert k() == 12210


def test_keys():
    @qd.kernel
    def k() -> qd.i32:
        return qd.static(TABLE["\ud800x"]) + 10 * qd.static(len(TABLE))

    assert k() == 33
    TABLE[ODD] = 5
    try:
        assert k() == 35
    finally:
        TABLE[ODD] = 3


def test_templates_and_members():
    @qd.kernel
    def k(s: qd.template()) -> qd.i32:
        if qd.static(s == "\ud800x"):
            return 1
        return 2

    holder = types.SimpleNamespace(name=ODD)

    @qd.kernel
    def of(h: qd.template()) -> qd.i32:
        if qd.static(h.name == "\ud800x"):
            return 1
        return 2

    assert [k(ODD), k(OTHER), k("é"), k(ODD)] == [1, 2, 2, 1]
    assert of(holder) == 1
    holder.name = OTHER
    assert of(holder) == 2


def test_members_of_enums():
    member = Odd.A
    odd = enum.Enum("Names", {ODD: 4})

    @qd.kernel
    def k() -> qd.i32:
        if qd.static(member is Odd.A):
            return 1
        return 2

    @qd.kernel
    def named(m: qd.template()) -> qd.i32:
        return qd.static(m.value)

    assert k() == 1
    assert named(odd[ODD]) == 4


def test_attributes():
    holder = types.SimpleNamespace(**{ODD: 7})

    @qd.kernel
    def k() -> qd.i32:
        return qd.static(getattr(holder, "\ud800x"))

    try:
        assert k() == 7
    except qd.IngotError as e:  # getattr may be refused, in words
        assert "getattr" in str(e)


def test_what_is_printed(capfd, cache_dir):
    s = ODD

    @qd.kernel
    def k():
        qd.static_print(s, "static")
        for _ in range(1):
            print("\ud800x literal", f"{1}\udfff")
            print(s)

    try:
        k()
    except qd.IngotError as e:
        assert "print" in str(e)
    else:
        out = capfd.readouterr().out
        assert "literal" in out and "static" in out


def test_an_assertion():
    @qd.kernel
    def k(n: qd.i32):
        assert n > 3, "\ud800x is small"

    qd.init(debug=True)
    with pytest.raises(AssertionError, match="is small"):
        k(1)


def wrongly(n: qd.i32):
    y = n + not_there  # noqa: F821
    y = 1


NAMES = ["__name__", "__qualname__", "__module__"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_functions(name):
    def plain() -> qd.i32:
        return 5

    setattr(plain, name, ODD)
    k = qd.kernel(plain)
    assert k() == 5
    assert isinstance(qd.explain(k), (str, list)) and repr(k)
    bad = types.FunctionType(wrongly.__code__, wrongly.__globals__, "wrongly")
    bad.__annotations__ = wrongly.__annotations__
    setattr(bad, name, ODD)
    with pytest.raises(qd.IngotNameError, match="not_there"):
        qd.kernel(bad)(1)


def test_arguments():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return n

    with pytest.raises(qd.IngotError, match="Unexpected argument"):
        k(1, **{ODD: 2})

    @qd.kernel
    def of_array(a: qd.types.ndarray()):
        a[0] = 1

    with pytest.raises(ValueError, match=r"\\ud800x"):
        of_array(ODD)
    with pytest.raises(qd.IngotError):
        k(ODD)


def test_annotations():
    def plain(x) -> qd.i32:
        return x

    for annotation in (ODD, f"'{ODD}'", f"qd.{ODD}"):
        plain.__annotations__ = {"x": annotation, "return": qd.i32}
        with pytest.raises(qd.IngotCompilationError, match="annotation"):
            qd.kernel(plain)(1)


def test_names_that_no_program_holds():
    def plain(x: qd.i32) -> qd.i32:
        return x

    plain.__code__ = plain.__code__.replace(co_varnames=(ODD,))
    plain.__annotations__ = {ODD: qd.i32, "return": qd.i32}
    with pytest.raises(TypeError, match="no name that a program can hold"):
        qd.kernel(plain)


def test_what_is_near():
    holder = types.SimpleNamespace(**{ODD: 1, "nearly": 2})

    @qd.kernel
    def k() -> qd.i32:
        return holder.nearla

    with pytest.raises(qd.IngotAttributeError, match="nearly"):
        k()


def test_errors_of_others():
    def raising():
        raise ValueError(ODD)

    @qd.kernel
    def k() -> qd.i32:
        return qd.static(raising())

    with pytest.raises(ValueError) as caught:
        k()
    assert caught.value.args == (ODD,)


@pytest.mark.parametrize("option", ["arch", "offline_cache_file_path", ODD, "default_fp", "log_level"])
def test_options(option, tmp_path):
    value = str(tmp_path / "\udcff") if option == "offline_cache_file_path" else ODD
    try:
        qd.init(**{option: value})
    except (qd.IngotError, KeyError, TypeError, ValueError) as e:
        assert not isinstance(e, UnicodeError)
    qd.init()


PROGRAM = """
import ingot as qd
qd.init()

NAME = "\\ud800x"

def words(s):
    return len(s)

@qd.kernel
def k() -> qd.i32:
    return qd.static(words(NAME)) + {more}

@qd.kernel
def wrong() -> qd.i32:
    return not_there

print(k())
try:
    wrong()
except qd.IngotNameError as e:
    print(ascii(str(e)).count("not_there"))
print(isinstance(qd.explain(k), (str, list)))
"""


@pytest.mark.parametrize("folder", [b"\xff", b"\xc3\xa9", b"plain"])
def test_paths_that_are_no_text(tmp_path, folder):
    """A program, and a cache, in a folder whose name is no UTF-8: found, run, and found again."""
    where = os.path.join(os.fsencode(tmp_path), folder)
    os.mkdir(where, 0o700)
    program = os.path.join(where, b"pro\xfegram.py")
    env = {**os.environb, b"INGOT_CACHE_DIR": os.path.join(where, b"cache")}
    seen = []
    for more in (0, 0, 5):
        with open(program, "w") as out:
            out.write(PROGRAM.format(more=more))
        done = subprocess.run([os.fsencode(sys.executable), b"-B", program], env=env, capture_output=True)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.split())
    assert seen == [[b"2", b"2", b"True"]] * 2 + [[b"7", b"2", b"True"]]
    if os.environ.get("INGOT_ARCH") != "interp":
        for command in (["explain"], ["cache", "ls"], ["cache", "stat"], ["cache", "verify"], ["doctor"]):
            done = subprocess.run([sys.executable, "-m", "ingot", *command], env=env, capture_output=True)
            assert b"Traceback" not in done.stderr and b"Unicode" not in done.stderr, done.stderr


def test_across_processes(tmp_path, cache_dir):
    """What was stored with such text in its trace is found by the next process."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(more=1) + "from ingot import _core\nprint(_core.counters()['lowerings'])\n")
    outs = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-B", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout.split())
    assert outs[0][:3] == outs[1][:3] == ["3", "2", "True"]
    if os.environ.get("INGOT_ARCH") != "interp":
        assert int(outs[1][3]) < int(outs[0][3])
