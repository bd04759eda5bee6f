"""Results of funcs: annotations that leave types open, nested tuples, arrays and things from
outside. Every test runs as native code and on the interpreter."""

import dataclasses
import typing

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


def run(source, out, *args, **scope):
    """`source`: a func f(i), and what a kernel stores for each i."""
    func, value = source
    text = f"def k(o: qd.types.ndarray()):\n    for i in range(4):\n        o[i] = {value}\n"
    space = {"qd": qd, "f": func, **scope}
    exec(text, space)
    qd.kernel(source=text)(space["k"])(out)
    return out.tolist()


# ---- what annotations leave open --------------------------------------------------------------


def test_open_dtypes():
    @qd.func
    def pair(x) -> tuple[qd.types.vector(3), qd.types.vector(4)]:
        return qd.Vector([x, 1.0, 2.0]), qd.Vector([x, x, x, 4])

    @qd.func
    def one(x) -> qd.types.vector(3):
        return qd.Vector([x, 1, 2])

    @qd.func
    def listed(x) -> qd.types.vector(2):
        return [x, 1]

    @qd.func
    def matrix(x) -> qd.types.matrix(2, 2):
        return qd.Matrix([[x, 1], [2, x]])

    @qd.func
    def of_floats(x) -> qd.types.vector(dtype=qd.f32):
        return qd.Vector([x, 1])

    @qd.func
    def any_vector(x) -> qd.types.vector():
        return qd.Vector([x, 1, 2, 3])

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            v, w = pair(i)
            o[i, 0] = v[0] + w[3]
            o[i, 1] = one(i)[0] // 2
            o[i, 2] = listed(i)[0] + listed(i).sum()
            o[i, 3] = matrix(i)[1, 1] + matrix(0.5)[0, 0]
            o[i, 4] = of_floats(i)[0] / 2
            o[i, 5] = any_vector(i).sum()

    o = np.zeros((4, 6), np.float64)
    k(o)
    assert o[3].tolist() == [7, 1, 7, 3.5, 1.5, 9]
    assert o[2].tolist() == [6, 1, 5, 2.5, 1, 8]


def test_an_open_dtype_is_that_of_the_value():
    @qd.func
    def f(x) -> qd.types.vector(2):
        return qd.Vector([x, x])

    @qd.kernel
    def k() -> (qd.f64, qd.f64):
        return f(qd.f64(0.1) + 0.0)[0], f(2)[1] / 4

    first, second = k()
    assert second == 0.5 and abs(first - 0.1) < 1e-7


def test_wrong_shapes_are_refused():
    @qd.func
    def short(x) -> qd.types.vector(3):
        return qd.Vector([x, 1])

    @qd.func
    def flat(x) -> qd.types.matrix(2, 2):
        return qd.Vector([x, 1])

    @qd.func
    def number(x) -> tuple[qd.types.vector(2), qd.i32]:
        return x, x

    for f, value in ((short, "f(i)[0]"), (flat, "f(i)[0, 0]"), (number, "f(i)[1]")):
        with pytest.raises(qd.IngotSyntaxError, match="expected to be a Matrix"):
            run((f, value), np.zeros(4))


def test_tuples_in_tuples():
    @qd.func
    def f(x) -> tuple[tuple[qd.i32, qd.f32], qd.types.vector(2), tuple[tuple[qd.u8], qd.i64]]:
        return (x + 0.75, x), qd.Vector([x, 1]), ((x + 256,), x)

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            (a, b), v, ((c,), d) = f(i)
            o[i] = a * 1000 + b / 2 + v[1] * 100 + c * 10 + d

    o = np.zeros(4, np.float64)
    k(o)
    assert o.tolist() == [100, 1111.5, 2123, 3134.5]

    @qd.func
    def short(x) -> tuple[tuple[qd.i32, qd.f32], qd.i32]:
        return (x,), x

    with pytest.raises(qd.IngotTypeError, match="annotated to return 2 values here, this returns 1"):
        run((short, "f(i)[1]"), np.zeros(4))


Pair = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32))


def test_structs_among_open_results():
    @qd.func
    def f(x) -> tuple[tuple[Pair, qd.types.vector(2)], qd.i32]:
        return (Pair(a=x, v=[x, 1]), qd.Vector([x, 2])), x

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            (s, v), n = f(i)
            o[i] = s.a + s.v[1] * 10 + v[1] * 100 + n * 1000

    o = np.zeros(4)
    k(o)
    assert o.tolist() == [210, 1211, 2212, 3213]


@dataclasses.dataclass
class Info:
    a: qd.types.ndarray()


def test_annotations_that_say_nothing_of_numbers():
    @qd.func
    def bare(x) -> tuple:
        return qd.Vector([x, 1, 2]), x

    @qd.func
    def some(x) -> tuple[int, ...]:
        return x, 2, 3

    @qd.func
    def old(x) -> typing.Tuple[qd.types.vector(2), qd.i32]:
        return qd.Vector([x, 1]), x + 0.5

    @qd.func
    def mixed(x) -> (qd.types.vector(2), typing.Any, qd.i32):
        return qd.Vector([x, 1]), (x, 7), x + 0.5

    @qd.func
    def anything(x) -> typing.Any:
        return x

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            v, x = bare(i)
            w, y = old(i)
            m, (n, seven), z = mixed(i)
            o[i] = v[2] + x * 10 + some(i)[2] * 100 + w[1] * 1000 + y * 10000 + seven + z + anything(n)

    o = np.zeros(4)
    k(o)
    assert o.tolist() == [1309, 11321, 21333, 31345]


def test_a_kernel_says_all_of_its_result():
    def make(annotation):
        def k():
            return qd.Vector([1.0, 2.0])
        k.__annotations__["return"] = annotation
        return qd.kernel(k, source="def k() -> X:\n    return qd.Vector([1.0, 2.0])\n")

    for annotation in (qd.types.vector(2), qd.types.vector(dtype=qd.f32), (qd.types.vector(2), qd.i32)):
        with pytest.raises(qd.IngotSyntaxError, match="needs a size and a dtype"):
            make(annotation)()
    for annotation in (tuple, list, (tuple, qd.i32), tuple[tuple[qd.i32], qd.i32], Info):
        with pytest.raises(qd.IngotSyntaxError, match="no return type"):
            make(annotation)()


def test_too_many():
    def make(n):
        def f(x):
            return (x,) * n
        f.__annotations__["return"] = (qd.i32,) * n
        f.__annotations__["return"] = tuple[f.__annotations__["return"]]
        return qd.func(f, source=f"def f(x):\n    return (x,) * {n}\n")

    assert run((make(16), "f(i)[15]"), np.zeros(4)) == [0, 1, 2, 3]
    with pytest.raises(qd.IngotSyntaxError, match="a func can return at most 16 values"):
        run((make(17), "f(i)[15]"), np.zeros(4))


# ---- arrays -----------------------------------------------------------------------------------


@qd.func
def doubled(a: qd.Tensor, res: qd.Tensor, n):
    for i in range(n):
        res[i] = a[i] * 2
    return res


@qd.func
def first(a):
    return a


@qd.func
def swapped(a, b):
    return b, (a, a.shape[0])


def test_an_array_that_is_returned_is_the_array():
    @qd.kernel
    def inside(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for _ in range(1):
            r = doubled(a, o, 4)
            r[0] += 100

    @qd.kernel
    def on_top(a: qd.types.ndarray(), o: qd.types.ndarray()):
        r = doubled(a, o, 4)
        for i in r:
            r[i] += first(first(a))[i]

    @qd.kernel
    def others(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            x, (y, n) = swapped(a, o)
            first(x)[i] = y[i] + n
        x, (y, n) = swapped(o, a)
        for i in range(n):
            y[i] += x[i] * 10

    a, o = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    inside(a, o)
    assert o.tolist() == [100, 2, 4, 6]
    on_top(a, o)
    assert o.tolist() == [0, 3, 6, 9]
    others(a, o)
    assert o.tolist() == [4, 15, 26, 37]


TABLE = qd.ndarray(qd.i32, (4,))


@qd.func
def table():
    return TABLE


@qd.func
def member(s: qd.template()):
    return s.a


@qd.func
def either(a, b, which: qd.template()):
    if qd.static(which):
        return a
    return b


def test_captured_arrays_members_and_choices():
    @qd.kernel
    def k(o: qd.types.ndarray(), s: qd.template()):
        for i in range(4):
            table()[i] = i
            member(s)[i] = table()[i] * 10
            either(o, member(s), True)[i] = either(o, member(s), False)[i] + 1

    o, s = np.zeros(4, np.int32), Info(qd.ndarray(qd.i32, (4,)))
    k(o, s)
    assert o.tolist() == [1, 11, 21, 31]
    assert s.a.to_numpy().tolist() == [0, 10, 20, 30]


def test_a_new_array_behind_the_name_is_seen():
    global TABLE

    @qd.kernel
    def k(x: qd.i32):
        for i in range(4):
            table()[i] = x

    old = TABLE
    try:
        k(1)
        TABLE = qd.ndarray(qd.i32, (4,))
        k(2)
        assert old.to_numpy().tolist() == [1] * 4 and TABLE.to_numpy().tolist() == [2] * 4
    finally:
        TABLE = old


def test_elements_and_gradients():
    @qd.kernel
    def k(v: qd.types.ndarray(), a: qd.types.ndarray()):
        for i in range(4):
            first(v)[i][1] = i
            first(a).grad[i] = 2 * i

    v = qd.Vector.ndarray(2, qd.f32, (4,))
    a = qd.ndarray(qd.f32, (4,), needs_grad=True)
    k(v, a)
    assert v.to_numpy()[:, 1].tolist() == [0, 1, 2, 3]
    assert a.grad.to_numpy().tolist() == [0, 2, 4, 6]


def test_views():
    @qd.func
    def same(v):
        return v

    @qd.func
    def tail(v):
        return v[1:]

    @qd.kernel
    def k(a: qd.types.ndarray()):
        for _ in range(1):
            v = same(a[1:3])
            v[0] = 5
            tail(a)[2] = 7

    a = qd.ndarray(qd.i32, (4,))
    k(a)
    assert a.to_numpy().tolist() == [0, 5, 0, 7]


def test_which_array_is_known_while_compiling():
    @qd.func
    def f(a, b, c):
        if c > 1:
            return a
        return b

    @qd.func
    def same(a, c):
        if c > 1:
            return a, 1
        return a, 2

    @qd.kernel
    def k(a: qd.types.ndarray(), b: qd.types.ndarray()):
        for i in range(4):
            f(a, b, i)[i] = 1

    @qd.kernel
    def good(a: qd.types.ndarray()):
        for i in range(4):
            r, n = same(a, i)
            r[i] = n

    a = np.zeros(4, np.int32)
    with pytest.raises(qd.IngotTypeError, match="an array, an earlier one another"):
        k(a, a.copy())
    good(a)
    assert a.tolist() == [2, 2, 1, 1]


# ---- things from outside ------------------------------------------------------------------------


class Config:
    n = 3
    names = ("a", "b")
    sub = {"x": 5}


CONFIG = Config()


@qd.func
def config():
    return CONFIG


@qd.func
def part(c: qd.template()):
    return c.sub, c


def test_things():
    @qd.kernel
    def k(c: qd.template()) -> qd.i32:
        sub, all_of_it = part(c)
        r = 0
        for _ in qd.static(range(config().n)):
            r += sub["x"]
        return r * 100 + len(all_of_it.names) + plus_of(1)(2, 3)

    other = Config()
    assert k(other) == 1507
    try:
        CONFIG.n = 4
        assert k(other) == 2007
        other.sub = {"x": 6}
        assert k(other) == 2407
    finally:
        CONFIG.n = 3


@qd.func
def plus(a, b):
    return a + b


@qd.func
def plus_of(x):
    return plus


def test_things_that_differ_are_refused():
    @qd.func
    def f(a: qd.template(), b: qd.template(), c):
        if c > 1:
            return a
        return b

    @qd.kernel
    def k(a: qd.template(), b: qd.template()) -> qd.i32:
        r = 0
        for i in range(4):
            r += f(a, b, i).n
        return r

    with pytest.raises(qd.IngotTypeError, match="an earlier one another"):
        k(Config(), Config())


def test_slices_and_vectors_are_returned_alike(target):
    """A row of a matrix at an index of the run time, a computed vector, constants: one kind."""
    if target == "python":
        return

    @qd.func
    def pick(m: qd.types.matrix(3, 3, qd.f32), i: qd.i32):
        v = qd.Vector([1.0, 2.0, 3.0])
        if i == 0:
            return m[(i + 2) % 3, :]
        if i == 1:
            return m[:, 0] + m[i, :]
        if i == 2:
            return qd.Vector([7.0, 8.0, 9.0])
        return v

    @qd.kernel
    def k(o: qd.types.ndarray()):
        m = qd.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
        for i in range(4):
            v = pick(m, i)
            o[i] = v[0] * 100 + v[1] * 10 + v[2]

    o = np.zeros(4)
    k(o)
    assert o.tolist() == [789, 603, 789, 123]
