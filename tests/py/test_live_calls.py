"""Calls in `qd.static` that a launch makes again (src/py/see/livecall.c): what is refused, and how
they are told. That each of them sees what changed: tests/py/mutations_calls.py."""

import functools
import itertools
import linecache
import math
import operator
import random
import time
import uuid

import numpy as np
import pytest

import ingot as qd

S, L, D, X = "abc", [3, 1, 2], {"a": 1}, {1, 2}
A = np.array([3.0, 1.0, 2.0])
numbers = itertools.count()


class Draws:
    __call__ = random.randint


class Adds:
    def __init__(self, n):
        self.n = n

    def f(self, x):
        return self.n + sum(x)


adds = Adds(1)
draw = functools.partial(random.random)
draw_deep = functools.partial(functools.lru_cache(functools.partial(random.randint, 1)), 2)
itself = functools.lru_cache(lambda: 1)
itself.__wrapped__ = itself


def kernel_of(expression):
    name = f"<live {next(numbers)}>"
    text = f"@qd.kernel\ndef k() -> qd.f64:\n    q = qd.static({expression})\n    return q\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = dict(globals())
    exec(compile(text, name, "exec"), scope)
    return scope["k"]


@pytest.mark.parametrize("expression", [
    "random.random()", "random.randint(1, 2)", "random.Random(3).n", "np.random.rand()", "np.random.default_rng().random()",
    "draw()", "draw_deep()", "Draws()(1, 2)", "time.time()", "time.perf_counter()", "uuid.uuid4().int", "L.pop()",
    "L.sort()", "D.setdefault('b', 1)", "X.add(3)", "A.fill(1.0)", "A.sort()", "A.put(0, 1.0)", "np.copyto(A, A)",
    "np.put(A, 0, 1.0)", "np.empty(3)[0]", "next(iter(L))", "id(L)", "S.__hash__()", "itself()", "open('x')",
    "np.sum(A, out=A)", "A.cumsum(out=A)[0]", "exec('1')", "input()",
])
def test_what_cannot_be_asked_again_is_refused(expression):
    before = (list(L), dict(D), set(X), A.tolist())
    with pytest.raises(qd.IngotCompilationError, match="help: "):
        kernel_of(expression)()
    assert before == (L, D, X, A.tolist())


def test_arrays_of_the_run_time_have_no_methods_of_numpy():
    @qd.kernel
    def k(a: qd.types.ndarray()) -> qd.f64:
        return qd.static(a.mean())

    with pytest.raises(qd.IngotCompilationError, match="arrays have no attribute 'mean'"):
        k(A)


class Own(tuple):
    def __add__(self, other):
        return (7,)


own = Own((1, 2))


@pytest.mark.parametrize("expression", [
    "sum(own + (4,))", "sum((4,) + own)", "len(L + (1,))", "len(L * 1.5)", "len(L + A)", "range(3)[3]", "range(3)[1:]",
    "zip(L, L)[0]", "operator.methodcaller('pop')(L)", "dict(range(3))[0]", "len(D + D)",
])
def test_operators_that_are_refused(expression):
    """What is no operator of Python's own containers, or is wrong there too."""
    before = list(L)
    with pytest.raises((qd.IngotCompilationError, qd.IngotIndexError, TypeError), match="."):
        kernel_of(expression)()
    assert before == L


def test_an_argument_without_a_name():
    """More items than a path names: no launch could make the call again."""
    items = "[" + "1, " * 70 + "]"
    assert kernel_of(f"sum({items})")() == 70
    with pytest.raises(qd.IngotCompilationError, match="outside of the kernel"):
        kernel_of(f"adds.f({items})")()


def test_what_a_launch_calls_is_told():
    k = kernel_of("adds.f([1, 2]) + adds.f(x=(3,))")
    assert k() == 8
    text = str(qd.explain(k, launch=True))
    assert "adds.f([1, 2]) is called" in text and "adds.f(x=(3)) is called" in text


OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "or_", "xor", "and_"]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_the_run_time(name):
    """operator.add(x, y) is x + y; the function itself is compared at each launch."""
    op = getattr(operator, name)

    @qd.kernel
    def k(x: qd.i32, y: qd.i32) -> qd.f64:
        return op(x, y) + 1

    assert k(13, 2) == getattr(operator, name)(13, 2) + 1
    op = operator.add
    assert k(13, 2) == 16
    op = math.gcd
    with pytest.raises(qd.IngotCompilationError, match="runs while compiling"):
        k(13, 2)


def test_operators_of_vectors():
    v = qd.Vector([1, 2])
    m = qd.Matrix([[1, 2], [3, 4]])
    f = qd.Vector.field(2, qd.i32, shape=())
    f[None] = [10, 20]

    @qd.kernel
    def k(out: qd.types.ndarray()):
        for i in qd.static(range(2)):
            out[i] = operator.add(v, f[None])[i]
            out[2 + i] = operator.matmul(m, f[None])[i]

    out = np.zeros(4, np.int32)
    k(out)
    assert out.tolist() == [11, 22, 50, 110]


def test_an_array_of_numpy_is_made_in_static_alone():
    """A loop over an array counts its elements: `for i in np.arange(2, 5)` would run from 0 to 2."""
    @qd.kernel
    def numbers(a: qd.types.ndarray()):
        for i in qd.static(np.arange(2, 5)):
            a[i] = 2

    @qd.kernel
    def places(a: qd.types.ndarray()):
        for i in np.arange(2, 5):
            a[i] = 2

    a = np.zeros(6)
    numbers(a)
    assert list(a) == [0, 0, 2, 2, 2, 0]
    with pytest.raises(qd.IngotTypeError, match="arange cannot be called in kernels"):
        places(a)


Z = 0.0


@qd.kernel
def sign_of_zero() -> qd.f64:
    s = qd.static(math.copysign(1.0, Z))
    return s


def test_zeros_of_either_sign(monkeypatch):
    """Equal numbers of one type that are not the same."""
    for zero in (0.0, -0.0, 0.0):
        monkeypatch.setitem(globals(), "Z", zero)
        assert sign_of_zero() == math.copysign(1.0, zero)


ALIKE = [1, True, 1.0, "1", b"1", 1 + 0j, None, (), (1,), (True,), (1, 2), ((1, 2),), ((1,), 2), (1, (2,)), ("ab", "c"),
         ("a", "bc"), ("abc",), b"abc", "abc", (b"ab",), frozenset({1}), frozenset({True, 2}), frozenset({(1, 2)}), range(1),
         range(1, 1), range(0, 1, 2), 0, False, 0.0, -0.0, (0.0,), (-0.0,), (0,), (b"abc",), "", b"", ..., np.int32(1), np.int64(1),
         np.float32(1), np.bool_(True), "a\0b", "a\0c"]
ONE = None


def shown(x):
    return sum((i + 1) * c for i, c in enumerate(repr(x).encode()))


@qd.kernel
def shows() -> qd.f64:
    n = qd.static(shown(ONE))
    return n


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("order", [1, -1])
def test_values_that_look_alike(order, monkeypatch):
    """Each is immutable, so the call is not made again for the same one; and none stands for another."""
    for value in ALIKE[::order]:
        monkeypatch.setitem(globals(), "ONE", value)
        assert shows() == shown(value), repr(value)
