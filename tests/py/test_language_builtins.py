"""Python's own functions in kernels: int, float, bool, str, round, pow, divmod, min, max, sum,
any, all, sorted, reversed, type, and NumPy's functions of numbers. Every test runs as native code,
on the interpreter and as plain Python."""

import enum
import math
import operator

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock, "python": qd.python}
COMPILED = ("native", "interp")


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def evaluate(text, dtype=np.float64, **scope):
    """What a kernel stores for each i below 4."""
    source = f"def k(o: qd.types.ndarray()):\n    for i in range(4):\n        o[i] = {text}\n"
    space = {"qd": qd, "np": np, "math": math, "operator": operator, **scope}
    exec(source, space)
    o = np.zeros(4, dtype)
    qd.kernel(source=source)(space["k"])(o)
    return o.tolist()


def in_python(text, **scope):
    space = {"qd": qd, "np": np, "math": math, "operator": operator, **scope}
    return [float(eval(text, {**space, "i": i})) for i in range(4)]


CONSTANT = [
    # numbers of text
    'float("inf")', 'float("-inf")', 'float("1.5")', 'float(" 2.5e1_0 ")', 'float("-0.0")', 'float(TEXT)',
    'int("7")', 'int("-7")', 'int("ff", 16)', 'int("0b101", 0)', 'int(TEXT[:1])', "int()", "float()", "bool()",
    'bool("")', 'bool("a")', "bool(())", "bool([0])", "bool({})", "bool(None)", 'float("inf") > 1e300',
    'min(float("inf"), 3.0)', "len(str(123)) + len(str(1.5)) + len(str(True)) + len(str(TEXT))",
    'TEXT[0] == "4"', 'TEXT[-2:] == "25"', 'TEXT[::-1] == "52.4"', 'WORD[1] == "é"', 'WORD[1:3] == "éß"', 'len(WORD[:2])',
    'sorted(WORD)[0] == "a"', 'tuple("ab") == ("a", "b")', 'max("abc") == "c"',
    'len(list(WORD)) + (WORD[0:0] == "")',
    # pow, round, divmod
    "pow(2, 5, 7)", "pow(3, -1, 7)", "pow(2, 10)", "pow(-3, 3, 5)", "round(2.567, 1)", "round(1234.0, -2)",
    "round(2.5)", "round(3.5)", "round(1234, -2)", "round(2.5, None)", "divmod(17, 5)[0] * 10 + divmod(17, 5)[1]",
    "divmod(-7, 2)[0] * 10 + divmod(-7, 2)[1]", "divmod(7.5, 2)[0] + divmod(7.5, 2)[1]",
    # sequences
    "sorted((3, 1, 2))[0] * 100 + sorted((3, 1, 2))[1] * 10 + sorted((3, 1, 2))[2]",
    "sorted([3, 1.5, 2], reverse=True)[0]", "sorted((2, 1), reverse=False)[0]", "sorted(range(5, 0, -1))[4]",
    "sorted(['b', 'aa', 'a']) == ['a', 'aa', 'b']", "len(sorted(()))", "sorted([(2, 1), (1, 9), (1, 3)])[0][1]",
    "sorted([1, True, 0.5, 1.0], reverse=True)[0]", "sorted(LIST)[0] * 10 + sorted(LIST, key=None)[-1]",
    "list(reversed((3, 1, 2)))[0] * 10 + tuple(reversed([3, 1, 2]))[2]", "tuple(reversed(range(2, 9, 3)))[0]",
    "sum((3, 1, 2))", "sum([3, 1, 2], 100)", "sum((), 5)", "sum(range(10))", "sum([0.5, 0.25], 1)",
    "any((0, 1)) * 10 + all((1, 0))", "any(())", "all(())", "any([[], ()])", "all(['a', 1, (0,)])",
    "min((3, 1, 2)) * 10 + max([3, 1])", "min('b', 'a') == 'a'", "max((1, 9), (1, 3))[1]", "min([(2, 1), (1, 5)])[1]",
    "max(LIST) - min(LIST)", "min(3, 1.5)",
    # comparing
    "(0, 1) < (2, 1)", "(1, 2) <= (1, 2)", "(1, 2) < (1, 2, 0)", "[1, 'a'] > [1, 'b']", "(1, 2) >= (1,)", "() < (0,)",
    # type
    "type(3) == int", "type(3.0) == float", "type(True) == bool", "type('a') == str", "type(LIST) == list",
    "type((1, 2)) == tuple", "type([i]) == list", "type(TEXT) == str", "type(3) == float", "type(True) == int",
    "type(None) == type(None)", "type(OBJECT) == Class", "type(OBJECT) == Other", "len(type(OBJECT).__name__)",
    "type(NUMBER) == np.float32", "type(Class) == type", "type(MEMBER) == Stage", "type(3) != int",
    # NumPy
    "np.sqrt(2.0)", "np.minimum(3, 4) + np.hypot(3, 4)", "np.nextafter(np.float32(1), np.float32(0)) < 1",
    "float(np.float32(0.1)) == 0.10000000149011612", "int(np.int64(3)) + 1", "bool(np.bool_(True))",
    "float(NUMBER) * 2", "int(np.float32(2.75))", "float(np.float64(0.1)) == 0.1", "np.deg2rad(180.0)",
    "int(np.floor(2.5))", "np.abs(-3)", "np.float64(2) ** 2",
    # what goes to Python functions
    "math.prod((2, 3, 4))", "math.prod([2, 3])", "math.fsum([0.5, 0.25])", "math.dist((0, 0), (3, 4))",
    "operator.getitem((5, 6), 1)", "plain((1, (2, 3)), [4], {'a': 5})", "plain((MEMBER, (1, 2)), [NUMBER], {'a': 1})",
]


class Class:
    y = 5


class Other(Class):
    pass


class Stage(enum.IntEnum):
    A = 3


def plain(t, l, d):
    return t[0] + t[1][1] + l[0] + d["a"]


SCOPE = dict(TEXT="4.25", WORD="béßa", LIST=[4, 2, 3], OBJECT=Class(), Class=Class, Other=Other, NUMBER=np.float32(0.5),
             Stage=Stage, MEMBER=Stage.A, plain=plain)


@pytest.mark.parametrize("text", CONSTANT)
def test_as_python_computes_it(text):
    got, want = evaluate(text, **SCOPE), in_python(text, **SCOPE)
    assert got == pytest.approx(want, rel=1e-6, abs=0), text


@pytest.mark.parametrize("text", [t for t in CONSTANT if "[i]" not in t])
def test_inside_static(text):
    source = f"def k(o: qd.types.ndarray()):\n    x = qd.static({text})\n    for i in range(4):\n        o[i] = x\n"
    space = {"qd": qd, "np": np, "math": math, "operator": operator, **SCOPE}
    exec(source, space)
    o = np.zeros(4)
    qd.kernel(source=source)(space["k"])(o)
    assert o.tolist() == pytest.approx(in_python(text, **SCOPE), rel=1e-6, abs=0), text


def test_nan():
    assert all(math.isnan(x) for x in evaluate('float("nan")'))


RUN_TIME = [
    "divmod(i, 3)[0] * 10 + divmod(i, 3)[1]", "divmod(7.5, i + 1)[1]", "any((i > 1, i > 2)) * 10 + all((i > 1, i > 2))",
    "any([i, 0])", "all([i, 1])", "any((0, i > 2, 0))", "all((1, i > 0))", "sum((i, 2), 10)", "sum([i, 0.5], i)",
    "sum([len(c) + (c == 'é') for c in 'béa'])", "getattr(OBJECT, 'xyz'[1])",
    "min((3, i, 2)) * 10 + max([1, i])", "list(reversed((i, 1)))[1]", "pow(i, 2) + pow(2, i)", "int(i / 2) + float(i)",
    "type((i, 1)) == tuple",
]


@pytest.mark.parametrize("text", RUN_TIME)
def test_values_of_the_run_time(text):
    assert evaluate(text, **SCOPE) == pytest.approx(in_python(text, **SCOPE), rel=1e-6)


REFUSED = {
    "pow(2, i, 7)": "pow with a modulus needs compile-time values",
    "round(i / 3, 1)": "round with a number of digits needs compile-time values",
    "sorted((3, i, 2))[0]": "sorted needs items known while compiling",
    "sorted((3, float('nan'), 2))[0]": "cannot be put in order",
    "sorted((3, 'a'))[0]": "cannot be put in order",
    "sorted((3, 2), key=abs)[0]": "no parameter 'key'",
    "sorted(o)[0]": "sorted needs a sequence known while compiling",
    "tuple(reversed(range(i)))[0]": "reversed needs a range known while compiling",
    "int('7', i)": "int needs compile-time values",
    "type(i) == int": "type needs a compile-time value",
    "(i, 1) < (2, 1)": "unsupported operand",
    "plain((o, 1), [1], 1)": "an array inside a tuple of 2 cannot be passed",
    "plain((i, 1), [1], 1)": "it cannot take a tuple of 2",
    "mine(2.0)": "cannot be called in kernels",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text, target):
    if target in COMPILED:
        with pytest.raises(qd.IngotError, match=REFUSED[text]):
            evaluate(text, plain=plain, mine=np.frompyfunc(lambda x: x, 1, 1))


def test_the_type_of_an_array(target):
    if target not in COMPILED:
        return

    @qd.kernel
    def k(o: qd.types.ndarray()):
        o[0] = 1 if type(o) == np.ndarray else 2

    o, own = np.zeros(1), qd.ndarray(qd.i32, (1,))
    k(o)
    k(own)
    assert o[0] == 1 and own[0] == 2
    k(o)
    assert o[0] == 1


def test_what_python_raises():
    for text, error in (('float("x")', ValueError), ('int("8", 8)', ValueError), ("pow(2, -1, 4)", ValueError)):
        with pytest.raises(error):
            evaluate(text)


def test_enumerate_starts_where_it_is_told(target):
    @qd.kernel
    def k(o: qd.types.ndarray(), n: qd.i32):
        for i in range(4):
            for j, x in qd.static(enumerate((5, 6), n)):
                o[i] += j * x

    if target in COMPILED:
        with pytest.raises(qd.IngotCompilationError, match="enumerate starts at a compile-time integer"):
            k(np.zeros(4, np.int32), 3)


# ---- what they were told may change ----------------------------------------------------------------


LIMIT, ITEMS, SCALE, THING = "2.5", [3, 1], np.float32(0.5), 3


def test_new_values_are_seen():
    global LIMIT, ITEMS, SCALE, THING

    @qd.kernel
    def k(o: qd.types.ndarray(), x: qd.template()):
        o[0] = float(LIMIT)
        o[1] = sorted(ITEMS)[0]
        o[2] = float(SCALE)
        root = qd.static(np.sqrt(SCALE))
        o[3] = root
        o[4] = 1 if type(THING) == int else 2
        if qd.static(type(x) is float):
            o[5] = 5
        elif qd.static(type(x) == str):
            o[5] = 6
        else:
            o[5] = 7
        o[6] = max(sorted(ITEMS, reverse=True))
        o[7] = len(str(THING))

    o = np.zeros(8)
    k(o, 1)
    assert o.tolist() == pytest.approx([2.5, 1, 0.5, 0.5**0.5, 1, 7, 3, 1])
    try:
        LIMIT, SCALE, THING = "inf", np.float32(4), "text"
        ITEMS.append(0)
        k(o, 1.5)
        assert o.tolist() == [math.inf, 0, 4, 2, 2, 5, 3, 4]
        ITEMS = (8, 9)
        THING = True
        k(o, "s")
        assert o.tolist() == [math.inf, 8, 4, 2, 2, 6, 9, 4]
    finally:
        LIMIT, ITEMS, SCALE, THING = "2.5", [3, 1], np.float32(0.5), 3
