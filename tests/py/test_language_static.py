"""The language: compile-time values. Every test runs as native code and on the interpreter."""

import enum
import math
import types

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 5


class Kind(enum.Enum):
    A = "a"
    B = 7


settings = types.SimpleNamespace(n=3, inner=types.SimpleNamespace(scale=2.5), names=("x", "y"))
TABLE = {"b": 2, "a": 1}


def test_static_branches_prune():
    @qd.kernel
    def k(flag: qd.template(), n: qd.i32) -> qd.i32:
        r = n
        if qd.static(flag):
            r = r + 1
        else:
            r = undefined_name  # noqa: F821
        r += 10 if qd.static(flag) else undefined_name  # noqa: F821
        return r

    assert k(True, 1) == 12
    with pytest.raises(qd.IngotNameError, match="undefined_name"):
        k(False, 1)


def test_static_needs_a_compile_time_value():
    @qd.kernel
    def k(n: qd.i32):
        if qd.static(n > 1):
            pass

    with pytest.raises(qd.IngotCompilationError, match="compile-time constant"):
        k(1)


def test_names_of_compile_time_values():
    @qd.kernel
    def k() -> qd.i32:
        n = qd.static(3)
        r = 0
        for i in qd.static(range(n)):
            r += i
        return r

    assert k() == 3

    @qd.kernel
    def again():
        a = 1
        a = qd.static(2)

    with pytest.raises(qd.IngotCompilationError, match="Recreating variables is not allowed"):
        again()


def test_enums_modules_and_attributes():
    @qd.kernel
    def k(n: qd.i32) -> (qd.i32, qd.f32, qd.i32):
        r = 0
        if n == Mode.FAST:
            r += Mode.SLOW + 10
        if qd.static(Kind.B.value == 7 and Kind.A != Kind.B):
            r += 100
        if n == Kind.B.value:
            r += 1000
        return r, math.pi * settings.inner.scale, len(settings.names) + settings.n

    assert k(5) == (111, pytest.approx(math.pi * 2.5), 5)
    assert k(7)[0] == 1100


def test_containers():
    @qd.kernel
    def k(n: qd.i32) -> (qd.i32, qd.i32, qd.i32, qd.i32):
        t = (1, n, 3, 4)
        u = [n, *t[1:3]]
        v = [i * n for i in range(5) if i % 2]
        s = 0
        for x in qd.static(t[::2]):
            s += x
        return t[-1] + len(t), u[0] * 100 + u[1] * 10 + u[2], v[0] + v[1], s + sum(u)

    assert k(5) == (8, 553, 20, 4 + 13)

    @qd.kernel
    def dynamic(n: qd.i32) -> qd.i32:
        t = (1, 2, 3)
        return t[n]

    with pytest.raises(qd.IngotCompilationError, match="compile-time integer"):
        dynamic(1)


def test_dicts():
    @qd.kernel
    def k(n: qd.i32, x: qd.f32) -> (qd.f32, qd.i32, qd.i32, qd.i32, qd.i32):
        d = {"foo": 2 + n, "bar": 3 + x}
        e = {5: 6, **{1: n, 5: 7}}
        squares = {i: i * i for i in range(10) if i % 3 if i % 2}
        total = 0
        for key in qd.static(squares):
            total += key
        for key, v in qd.static(TABLE.items()):
            total = total * 10 + v
        return (
            d["foo"] * 100 + d["bar"],
            e[1] * 10 + e[5] + len(e),
            squares[7] + sum(squares.values()),
            total,
            TABLE.get("c", 5) + TABLE.get("a", 9),
        )

    assert k(2, 0.5) == (403.5, 20 + 7 + 2, 49 + 75, 1300 + 21, 6)

    @qd.kernel
    def missing() -> qd.i32:
        return {1: 2}[3]

    with pytest.raises(qd.IngotCompilationError, match="has no item for"):
        missing()


def test_order_of_keys_counts():
    global TABLE

    @qd.kernel
    def k() -> qd.i32:
        r = 0
        for key in qd.static(TABLE):
            r = r * 10 + TABLE[key]
        return r

    old = TABLE
    try:
        assert k() == 21
        TABLE = {"a": 1, "b": 2}
        assert k() == 12
        TABLE = {"a": 1, "b": 2, "c": 3}
        assert k() == 123
    finally:
        TABLE = old


def test_membership_and_identity():
    @qd.kernel
    def k(t: qd.template(), x: qd.template()) -> qd.i32:
        r = 0
        if qd.static(t in (qd.i32, qd.f32)):
            r += 1
        if qd.static("a" in TABLE and "q" not in TABLE):
            r += 10
        if qd.static(x is None):
            r += 100
        return r

    assert k(qd.f32, None) == 111 and k(qd.f64, 3) == 10

    @qd.kernel
    def plain(t: qd.template()):
        if t in (qd.i32, qd.f32):
            pass

    with pytest.raises(qd.IngotCompilationError, match='"In" is only supported inside'):
        plain(qd.f32)

    @qd.kernel
    def identity(n: qd.i32):
        if n is None:
            pass

    with pytest.raises(qd.IngotSyntaxError, match='Operator "is"'):
        identity(1)


class Base:
    pass


class Derived(Base):
    width = 4


def test_isinstance_hasattr_getattr():
    @qd.kernel
    def k(x: qd.template()) -> qd.i32:
        r = 0
        if qd.static(isinstance(x, int)):
            r += 1
        if qd.static(isinstance(x, (Base, tuple))):
            r += 10
        if qd.static(isinstance(x, Derived)):
            r += 100
        if qd.static(hasattr(x, "width")):
            r += 1000 * getattr(x, "width", 1)
        return r

    assert [k(3), k(True), k(2.5), k((1, 2))] == [1, 1, 0, 10]
    assert [k(Base()), k(Derived())] == [10, 4110]


def test_numpy_scalars_are_typed_constants():
    n = np.int8(100)
    x = np.float64(0.1)

    @qd.kernel
    def k() -> (qd.i32, qd.f64):
        return n + n, x

    assert k() == (-56, 0.1)


def test_methods_of_lists():
    @qd.kernel
    def k() -> qd.i32:
        t = (5, 6, 6)
        return t.index(6) * 10 + t.count(6)

    assert k() == 12


def test_generators_cannot_be_unpacked():
    items = (n for n in range(3))

    @qd.kernel
    def k():
        for i in qd.grouped(qd.ndrange(*items)):
            pass

    with pytest.raises(ValueError, match="only compile-time sequences"):
        k()


class Bag:
    size = 2.5


def test_captured_floats_can_be_refused():
    captured = 0.5
    bag = Bag()

    @qd.kernel
    def closure() -> qd.f64:
        return captured

    @qd.kernel
    def member() -> qd.f64:
        return bag.size

    @qd.kernel
    def argument(x: qd.template()) -> qd.f64:
        return x

    @qd.kernel
    def fine(x: qd.template(), y: qd.f64) -> qd.f64:
        return math.pi * x + y + 0.25

    calls = (closure, member, lambda: argument(0.5))
    assert [call() for call in calls] == [0.5, 2.5, 0.5]
    arch = qd.cfg.arch
    qd.init(arch=arch, raise_on_templated_floats=True)  # what is in the cache counts no more
    for call in calls:
        with pytest.raises(ValueError, match="raise_on_templated_floats") as error:
            call()
        assert isinstance(error.value, qd.IngotCompilationError)
        assert "help: pass it as an argument" in str(error.value)
    assert argument(3) == 3.0 and fine(2, 0.5) == pytest.approx(2 * math.pi + 0.75)
    qd.init(arch=arch)
    assert closure() == 0.5


def test_numpy_arrays_are_sequences():
    """Found outside, of one axis: unpacked anywhere, constants in qd.static, never stale."""
    size = np.array([2, 3, 4], np.int32)
    table = np.arange(6, dtype=np.int32).reshape(2, 3)

    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in qd.static(range(size[1])):
            a[i] += 1
        for row in qd.static(range(len(table))):
            a[5] += table[row, 1]
        if qd.static(table[1, 2] == 5 and table[1][0] == 3 and table.shape[1] == 3):
            a[5] += 100
        for i in qd.static(size):
            a[6] += i
        x, y, z = size
        a[7] = x * 100 + y * 10 + z
        for i, j, l in qd.ndrange(*size):
            a[8] += 1
        a[9] = qd.Vector(size).sum()
        for I in qd.grouped(qd.ndrange(*(size - 1))):
            a[10] += 1
        half = size // 2 + qd.Vector([0, 10, 20])
        a[11] = half[0] + half[1] + half[2]

    def run():
        a = np.zeros(12, np.int32)
        k(a)
        return a.tolist()

    assert run() == [1, 1, 1, 0, 0, 105, 9, 234, 24, 9, 6, 34]
    size[1] = 5
    assert run() == [1, 1, 1, 1, 1, 105, 11, 254, 40, 11, 12, 35]
    size = np.array([1, 2, 7], np.int32)
    table[1, 2] = 6
    assert run() == [1, 1, 0, 0, 0, 5, 10, 127, 14, 10, 0, 34]
    size = np.array([1, 2], np.int32)
    with pytest.raises(qd.IngotError, match="3 targets, 2 values"):
        run()


def test_static_names_an_array():
    """qd.static(x) of an array or field is that array, to be indexed at run time."""
    plain = np.arange(4, dtype=np.int32)
    field = qd.field(qd.i32, shape=4)

    @qd.kernel
    def k(a: qd.types.ndarray()):
        x, f = qd.static(plain, field)
        y = qd.static(plain)
        for i in range(4):
            f[i] = 10 * y[i]
            a[i] = x[i] + f[i]
            x[i] += 1

    a = np.zeros(4, np.int32)
    k(a)
    assert a.tolist() == [0, 11, 22, 33] and plain.tolist() == [1, 2, 3, 4]


def test_array_arguments_are_no_constants():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in qd.static(range(a[0])):
            a[i] += 1

    with pytest.raises(qd.IngotError, match="compile-time"):
        k(np.zeros(3, np.int32))
