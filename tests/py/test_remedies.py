"""Remedies that work: each mistake is made, the message names the remedy, and the program that follows
the remedy runs. Bodies are those of a kernel k(a, n), where a is an f32 array of eight ones and n an
i32; whole programs define `run`."""

import functools
import re
import textwrap

import mistakes_more as mistakes  # those of mistakes.py, mistakes_peers.py and its own
import numpy as np
import pytest
from test_messages import check_place

import ingot as qd

KERNEL = """
@qd.kernel
def k(a: qd.types.ndarray(), {n}):
{body}

def run():
    a = np.ones(8, np.float32)
    k(a, 3)
    return a
"""
ROWS = {}


def body(name, wrong, remedy, right, result=None, n="n: qd.i32", then_n=None):
    """A mistake in the body of a kernel; `result` is what a holds in the end."""
    ROWS[name] = (KERNEL.format(body=textwrap.indent(textwrap.dedent(wrong).strip("\n"), "    "), n=n), remedy,
                  KERNEL.format(body=textwrap.indent(textwrap.dedent(right).strip("\n"), "    "), n=then_n or n), result)


def whole(name, wrong, remedy, right, result=None):
    ROWS[name] = (wrong, remedy, right, result)


body("a list of the run time", "t = [i * i for i in range(n)]\na[0] = t[2]", "qd.template()",
     "t = [i * i for i in range(n)]\na[0] = t[2]", {0: 4}, then_n="n: qd.template()")
body("a list repeated at run time", "t = [2] * n\na[0] = t[1]", "qd.template()", "t = [2] * n\na[0] = t[1]", {0: 2}, then_n="n: qd.template()")
body("a list of an array", "t = [x for x in a]\na[0] = t[2]", "for i in range(a.shape[0])",
     "for i in range(a.shape[0]):\n    a[i] = i", {7: 7})
body("assigned slice", "a[:] = 0.0", "for i in a: a[i] = x", "for i in a: a[i] = 0.0", {3: 0})
body("assigned slice of an axis", "m = a\nm[1:3] = 2.0", "for i in a: a[i] = x", "for i in range(1, 3): a[i] = 2.0",
     {1: 2, 3: 1})
body("enumerate of an array", "for i, x in enumerate(a):\n    a[i] = x + i", "for i in range(a.shape[0])",
     "for i in range(a.shape[0]):\n    x = a[i]\n    a[i] = x + i", {4: 5})
body("zip of arrays", "for x, y in zip(a, a):\n    a[0] += x * y", "for i in range(a.shape[0])",
     "for i in range(a.shape[0]):\n    a[0] += a[i]")
body("text of the run time", "x = str(n)\na[0] = 1", "print(x)", "print(n)\na[0] = 1")
body("NumPy makes an array", "x = np.zeros(3)\na[0] = x[1]", "qd.Vector([...])", "x = qd.Vector([0.0, 0.0, 0.0])\na[0] = x[1]", {0: 0})
body("NumPy makes an array of the run time", "x = np.zeros(a.shape[0])", "outside of the kernel", "a[0] = 1")
body("math.erf", "a[0] = math.erf(a[1])", "use qd.erf", "a[0] = qd.erf(a[1])")
body("math.hypot", "a[0] = math.hypot(a[1], 0.0)", "use qd.hypot", "a[0] = qd.hypot(a[1], 0.0)", {0: 1})
body("math.sinh", "a[0] = math.sinh(a[1])", "use qd.sinh", "a[0] = qd.sinh(a[1])")
body("np.arctan2", "a[0] = np.arctan2(a[1], a[2])", "use qd.atan2", "a[0] = qd.atan2(a[1], a[2])")
body("np.clip", "a[0] = np.clip(a[1], 0.0, 0.5)", "use qd.math.clamp", "a[0] = qd.math.clamp(a[1], 0.0, 0.5)", {0: 0.5})
body("math.gamma", "a[0] = math.gamma(a[1])", "call it outside of the kernel", "a[0] = math.gamma(5.0)", {0: 24})
body("a float type of an integer", "a[0] = qd.f64(0)", "qd.f64(0.0)", "a[0] = qd.f64(0.0)", {0: 0})
body("an integer type of a float", "a[0] = qd.i32(2.5)", "qd.cast(x, dtype)", "a[0] = qd.cast(2.5, qd.i32)", {0: 2})
body("numbers with @", "a[0] = a[1] @ a[2]", "'*'", "a[0] = a[1] * a[2]", {0: 1})
body("arrays with @", "x = a @ a", "loop over the elements", "for i in a: a[i] *= a[i]")
body("NumPy draws a number", "a[0] = np.random.rand()", "qd.random(qd.f32)", "a[0] = 2.0 + qd.random(qd.f32)")
body("an array is given another", "a = a", "for i in a: a[i] = b[i]", "b = a\nfor i in a: a[i] = b[i] + 1", {3: 2})
body("the sum of an array", "a[0] = a.sum()", "s += a[i]", "s = 0.0\nfor i in range(8):\n    s += a[i]\na[0] = s", {0: 8})
body("astype of an array", "x = a.astype(qd.i32)", "qd.cast(a[i], qd.i32)", "i = 2\nx = qd.cast(a[i], qd.i32)\na[0] = x + 1", {0: 2})
body("astype of a number", "x = a[0].astype(qd.i32)", "qd.cast(x, qd.i32)", "x = a[0]\na[0] = qd.cast(x, qd.i32)", {0: 1})
body("a negative index", "a[-1] = 3.0", "a.shape[k] - 1", "a[a.shape[0] - 1] = 3.0", {7: 3})
body("for else", "for i in range(n):\n    a[i] = 2\nelse:\n    a[0] = 1", "flag variable",
     "done = 0\nfor i in range(n):\n    a[i] = 2\n    done = 1\nif done == 1:\n    a[0] = 5", {0: 5})
body("a step of 0", "for i in range(0, 8, 0):\n    a[i] = 3.0", "not 0", "for i in range(0, 8, 2):\n    a[i] = 3.0",
     {4: 3, 5: 1})

PLAIN = """
@qd.kernel
def k(x: qd.types.ndarray(), n: qd.i32) -> qd.i32:
    return x.shape[0] * n

def run():
    x = {x}
    return k({arg}, {n})
"""


def argument(name, x, arg, remedy, n="1", then="x", then_n="1"):
    ROWS[name] = (PLAIN.format(x=x, arg=arg, n=n), remedy, PLAIN.format(x=x, arg=then, n=then_n), None)


argument("a float for an i32", "np.zeros(3)", "x", "int(...)", n="2.5", then_n="int(2.5)")
argument("complex numbers", "np.zeros(3, complex)", "x", "x.real.copy()", then="x.real.copy()")
argument("big-endian numbers", "np.zeros(3, '>f4')", "x", "x.astype(x.dtype.newbyteorder('='))",
         then="x.astype(x.dtype.newbyteorder('='))")
argument("records", "np.zeros(3, 'f4,i4')", "x", "x['name'].copy()", then="x['f0'].copy()")
argument("objects", "np.zeros(3, object)", "x", "x.astype(np.float64)", then="x.astype(np.float64)")
argument("long doubles", "np.zeros(3, np.longdouble)", "x", "x.astype(np.float64)", then="x.astype(np.float64)")
argument("a list", "[1, 2, 3]", "x", "numpy.array(x, numpy.float32)", then="np.array(x, np.float32)")
argument("bytes", "b'abc'", "x", "memoryview(x)", then="memoryview(x)")
argument("a view", "qd.ndarray(qd.f32, 8)[2:5]", "x", "x.to_numpy(copy=False)", then="x.to_numpy(copy=False)")

NAMED = """
@qd.kernel
def k(s: {annotation}) -> qd.i32:
    return {value}

def run():
    return k({given})
"""
whole("a string", NAMED.format(annotation="str", value="1", given="'x'"), "qd.template()",
      NAMED.format(annotation="qd.template()", value="1 if s == 'x' else 0", given="'x'"), 1)
whole("a list parameter", NAMED.format(annotation="list", value="1", given="[1]"), "qd.template()",
      NAMED.format(annotation="qd.template()", value="s[0]", given="[1]"), 1)
whole("an array parameter", NAMED.format(annotation="np.ndarray", value="1", given="np.ones(2)"), "qd.types.ndarray()",
      NAMED.format(annotation="qd.types.ndarray()", value="len(s)", given="np.ones(2)"), 2)


class Table:
    """As those of pandas."""

    def to_numpy(self):
        return np.ones(2)


class Lines:
    def __str__(self):
        return "one\ntwo"


def execute(text, file):
    import linecache
    import math

    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"qd": qd, "np": np, "math": math, "Table": Table, "Lines": Lines}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope["run"]()


@pytest.fixture(autouse=True)
def start():
    qd.init()


@pytest.mark.parametrize("name", ROWS)
def test_remedy(name):
    wrong, remedy, right, result = ROWS[name]
    with pytest.raises(qd.IngotError) as caught:
        execute(wrong, f"<wrong: {name}>")
    text = str(caught.value)
    helps = re.findall(r"^help: (.*)", text, re.M)
    assert len(helps) == 1 and remedy in helps[0], text
    assert re.match(r"<wrong: .*>:\d+:\d+: ", text) and "^" in text and "Quadrants" not in text
    got = execute(right, f"<right: {name}>")
    if isinstance(result, dict):
        assert {i: float(got[i]) for i in result} == result
    elif result is not None:
        assert got == result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", mistakes.ROWS)
def test_mistake_of_a_newcomer(name):
    wrong, remedy, right, result = mistakes.ROWS[name]
    start = wrong.index("«")
    marked = wrong[start + 1:wrong.index("»")]
    line, col = wrong.count("\n", 0, start) + 1, start - wrong.rfind("\n", 0, start)
    file = f"<newcomer: {name}>"
    with pytest.raises(qd.IngotError) as caught:
        execute(wrong.replace("«", "").replace("»", ""), file)
    text = str(caught.value)
    assert not check_place(text, file, line, col, marked.split("\n")[0]), text
    helps = re.findall(r"^help: (.*)", text, re.M)
    assert len(helps) == 1 and remedy in helps[0] and text.count("\n") == 3, text
    assert "Quadrants" not in text
    got = execute(right, f"<followed: {name}>")
    if isinstance(result, dict):
        assert {i: float(got[i]) for i in result} == result
    elif result is not None:
        assert got == result


def test_division_by_zero_in_debug_mode():
    @qd.kernel
    def wrong(a: qd.types.ndarray(), y: qd.i32):
        for i in range(a.shape[0]):
            a[i] = 7 // (i - y)

    @qd.kernel
    def right(a: qd.types.ndarray(), y: qd.i32):
        for i in range(a.shape[0]):
            a[i] = 7 // (i - y) if i - y != 0 else 0

    a = np.ones(1000, np.int32)
    wrong(a, 500)
    assert a[500] == 0  # without debug mode it is 0
    qd.init(debug=True)
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        wrong(a, 500)
    assert isinstance(caught.value, qd.IngotZeroDivisionError) and "x // y if y != 0" in str(caught.value)
    right(a, 500)
    assert a[500] == 0 and a[501] == 7 and a[499] == -7


@pytest.mark.parametrize("text", ["7 // x", "7 % x", "qd.raw_div(7, x)", "qd.raw_mod(7, x)", "divmod(7, x)[1]",
                                  "(qd.Vector([1, 2]) // x)[1]", "(qd.Vector([1, 2]) % qd.Vector([1, x]))[1]"])
def test_every_division_by_zero(text):
    execute(f"""
@qd.kernel
def k(x: qd.i32) -> qd.i32:
    return {text}

def run():
    assert k(3) is not None
    qd.init(debug=True)
    assert k(3) is not None
    try:
        k(0)
    except qd.IngotZeroDivisionError:
        return
    raise SystemExit("not reached")
""", f"<divides: {text}>")


def test_division_that_is_not_done():
    qd.init(debug=True)

    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        r = 7 // x if x != 0 else 3
        if x != 0 and 7 // x > 0:
            r += 10
        return r + int(7 / x > 0)  # floats divide as they do

    assert k(0) == 4 and k(7) == 12


# ---- names that are not there -----------------------------------------------------------------------


@pytest.mark.parametrize("name, remedy", [("GUI", "qd.tools.imshow"), ("extension", "leave the test out"), ("INFO", "log_level"), ("vec3", "qd.math.vec3"), ("feild", "did you mean 'field'"),
                                          ("activate", "qd.root.dense"), ("njit", "@qd.kernel"), ("arctan2", "qd.atan2")])
def test_names_of_peers(name, remedy):
    with pytest.raises(AttributeError, match=re.escape(remedy)):
        getattr(qd, name)
    assert not hasattr(qd, name)


def test_what_is_advised_exists():
    from ingot import _absent

    for name, text in _absent._REMEDIES.items():
        assert not hasattr(qd, name), name
        for path in re.findall(r"qd\.([\w.]+)", text):
            thing = qd
            for part in path.rstrip(".").split("."):
                thing = getattr(thing, part)


def test_any_number_of_arguments():
    @qd.kernel
    def positional(*a):
        pass

    @qd.kernel
    def named(**a):
        pass

    with pytest.raises(qd.IngotCallError, match=r"\*args, which kernels cannot have: name each parameter"):
        positional(1)
    with pytest.raises(qd.IngotCallError, match=r"\*\*kwargs, which kernels cannot have: name each parameter"):
        named(a=1)
    with pytest.raises(qd.IngotCallError, match="help: name every parameter; a tuple can be one of them"):
        positional(1)


def test_what_takes_no_arguments_says_so():
    @qd.func
    def one():
        return 1

    @qd.kernel
    def bare() -> qd.i32:
        return 1

    @qd.kernel
    def calls() -> qd.i32:
        return one(2)

    for kernel, args in ((bare, (5,)), (calls, ())):
        with pytest.raises(qd.IngotCallError, match="help: it takes none"):
            kernel(*args)


def test_names_of_compile_time_values_stay_what_they_are():
    table = [1, 2]

    @qd.kernel
    def again(n: qd.i32) -> qd.i32:
        t = qd.static(table)
        for _ in range(n):
            t = 3
        return 0

    with pytest.raises(qd.IngotSyntaxError, match="'t' cannot be assigned here: it is a list .*, which is known"):
        again(3)


def test_arguments_of_arrays_turned_about():
    with pytest.raises(qd.IngotRuntimeTypeError, match=r"it comes first: qd.ndarray\(qd.f32, 10\)"):
        qd.ndarray(10, qd.f32)
    with pytest.raises(ValueError, match="use one of cpu"):
        qd.init(arch="cpuu")


@pytest.mark.parametrize("call", ["Vector.field(0, qd.f32, shape=3)", "Vector.field(qd.f32, 3)", "Matrix.field(2, 0, qd.f32, 3)", "Vector.ndarray(0, qd.f32, 3)",
                                  "Matrix.ndarray(qd.f32, 2, 2, 3)", "Vector.tensor(-1, qd.f32, 3)", "Matrix.tensor(0, 2, qd.f32, 3)"])
def test_sizes_of_elements(call):
    with pytest.raises(qd.IngotRuntimeTypeError, match="sizes come first|say at least 1") as caught:
        eval(f"qd.{call}")
    example = re.search(r"qd\..*$", str(caught.value))[0]
    assert call.startswith(example[3:example.index("(")])
    assert eval(example) is not None  # the remedy works


def test_no_message_speaks_of_the_reference_on_its_own():
    """Its words are for programs that run under ingot.compat, which is asked a line or two before."""
    from conftest import ROOT

    for path in sorted((ROOT / "src").rglob("*.c")):
        lines = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S).splitlines()
        for k, line in enumerate(lines):
            if re.search(r'"[^"]*Quadrants[^"]*"', line):
                assert re.search("ING_SET_reference|speaks_reference", "\n".join(lines[max(0, k - 2):k + 1])), (path, line)


@pytest.mark.parametrize("reference", [False, True])
def test_whose_words_are_spoken(reference):
    execute(f"""
import warnings

@qd.kernel
def same(n: qd.i32) -> qd.i32:
    return 1 if n is None else 2

@qd.kernel
def part(n: qd.i32) -> qd.f32:
    v = qd.Vector([1.0, 2.0, 3.0])
    return v[0:n][0]

def words(wrong):
    try:
        wrong()
    except Exception as e:
        return str(e)

def run():
    qd.init(reference={reference})
    said = [words(lambda: same(1)), words(lambda: part(1)), words(lambda: qd.field(qd.f32, -3)), words(lambda: list(qd.field(qd.f32, 3)))]
    assert all(("Quadrants" in one) is {reference} for one in said), said
    qd.init()
""", f"<words: {reference}>")


def test_fractions_that_are_dropped_are_told_with_what_keeps_them():
    @qd.kernel
    def total(n: qd.i32) -> qd.f32:
        s = 0
        for _ in range(n):
            s += 1.5
        return s

    with pytest.warns(qd.IngotWarning, match=r"i32 <- f32 \(fractions are dropped: a variable that begins as 0.0 keeps them"):
        assert total(3) == 3


def test_a_float_as_a_bound_is_told_with_what_to_write():
    @qd.kernel
    def count(n: qd.i32) -> qd.i32:
        s = 0
        for _ in range(n / 2):
            s += 1
        return s

    with pytest.warns(qd.IngotWarning, match=r"numerical issues \(write n // 2 for n / 2, or int\(x\)\)"):
        assert count(7) == 3


@pytest.mark.parametrize("wrap", [property, functools.lru_cache, functools.partial, staticmethod])
def test_decorators_below_ours_are_told_where_to_go(wrap):
    def number(n: qd.i32) -> qd.i32:
        return n

    with pytest.raises(TypeError, match="put its decorator above @qd.kernel|written as a `def`") as caught:
        qd.kernel(wrap(number))
    assert ("above" in str(caught.value)) == (wrap is not functools.partial)
