"""Gradients of long loops keep what every 256th iteration found and run the rest again (src/ad/segment.c): right for
every length, in whatever stands around, in few bytes. Compared with dual numbers in Python."""

import numpy as np
import pytest

import ingot as qd
from ingot import _core

pytestmark = pytest.mark.usefixtures("each_target")

SEGMENT = 256  # of segment.c
LENGTHS = [0, 1, 2, 255, 256, 257, 511, 512, 513, 1000]
A1 = qd.types.ndarray(qd.f64, 1)


class Dual:
    """A number and its derivative."""

    def __init__(self, v, d=0.0):
        self.v, self.d = v, d

    def __add__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.v + o.v, self.d + o.d)

    def __mul__(self, o):
        o = o if isinstance(o, Dual) else Dual(o)
        return Dual(self.v * o.v, self.v * o.d + self.d * o.v)

    __radd__, __rmul__ = __add__, __mul__


def array(values, grad=True):
    a = qd.ndarray(qd.f64, len(values), needs_grad=grad)
    a.from_numpy(np.array(values, np.float64))
    return a


def check(kernel, model, xs, *args):
    """kernel(x, *args, y) against model(x, *args) of each x by itself."""
    x, y = array(xs), array([0.0] * len(xs))
    kernel(x, *args, y)
    y.grad.fill(1.0)
    kernel.grad(x, *args, y)
    want = [model(Dual(v, 1.0), *args) for v in xs]
    assert y.to_numpy() == pytest.approx([w.v for w in want], rel=1e-9)
    assert x.grad.to_numpy() == pytest.approx([w.d for w in want], rel=1e-9, abs=1e-12)


@qd.kernel
def recurrence(x: A1, n: qd.i32, y: A1):
    for i in x:
        a, v = x[i], qd.cast(0.5, qd.f64)
        for t in range(n):
            v = v * 0.999 + a * a * 0.001 * (t % 3)
            a = a * 0.998 + v * a * 0.001
        y[i] = a * v


def recurrence_model(a, n):
    v = Dual(0.5)
    for t in range(n):
        v = v * 0.999 + a * a * (0.001 * (t % 3))
        a = a * 0.998 + v * a * 0.001
    return a * v


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n):
    check(recurrence, recurrence_model, [0.3, 0.7], n)


@pytest.mark.parametrize("columns", [1, 15, 64, 65, 200])
def test_columns_side_by_side(columns):
    check(recurrence, recurrence_model, list(np.linspace(0.1, 0.9, columns)), 300)


@qd.kernel
def counted_down(x: A1, low: qd.i64, high: qd.i64, y: A1):
    for i in x:
        a = x[i]
        for t in range(low, high):
            a = a * 0.99 + a * a * 1e-4 * qd.cast(t, qd.f64)
        y[i] = a


def counted_down_model(a, low, high):
    for t in range(low, high):
        a = a * 0.99 + a * a * (1e-4 * t)
    return a


@pytest.mark.parametrize(("low", "high"), [(-300, 300), (5, 5), (7, -600), (-3, 255)])
def test_bounds(low, high):
    check(counted_down, counted_down_model, [0.2, 0.5, 0.8], low, high)


@qd.kernel
def loops_in_loops(x: A1, n: qd.i32, m: qd.i32, y: A1):
    for i in x:
        a = x[i]
        for t in range(n):
            b = a
            for u in range(m):
                b = b * 0.99 + a * b * 0.01
            for u in range(3):
                b = b * b * 0.5 + 0.1
            a = a * 0.9 + b * 0.05
        y[i] = a


def loops_in_loops_model(a, n, m):
    for _ in range(n):
        b = a
        for _ in range(m):
            b = b * 0.99 + a * b * 0.01
        for _ in range(3):
            b = b * b * 0.5 + 0.1
        a = a * 0.9 + b * 0.05
    return a


@pytest.mark.parametrize(("n", "m"), [(3, 300), (300, 3), (260, 260), (0, 400), (300, 0)])
def test_loops_in_loops(n, m):
    check(loops_in_loops, loops_in_loops_model, [0.4], n, m)


@qd.kernel
def in_branches(x: A1, n: qd.i32, y: A1):
    for i in x:
        a = x[i]
        if a > 0.5:
            for t in range(n):
                a = a * 0.999 + a * a * 0.0005
        else:
            for t in range(n + 5):
                a = a * 1.001 + a * a * 0.0003
        for t in range(n):
            a = a * 0.999 + a * a * 0.0001
        y[i] = a


def in_branches_model(a, n):
    if a.v > 0.5:
        for _ in range(n):
            a = a * 0.999 + a * a * 0.0005
    else:
        for _ in range(n + 5):
            a = a * 1.001 + a * a * 0.0003
    for _ in range(n):
        a = a * 0.999 + a * a * 0.0001
    return a


@pytest.mark.parametrize("n", [3, 256, 700])
def test_in_branches(n):
    check(in_branches, in_branches_model, [0.2, 0.8], n)


@qd.kernel
def whiles(x: A1, n: qd.i32, y: A1):
    for i in x:
        a, t = x[i], 0
        while t < n:
            a = a * 0.999 + a * a * 0.0005
            if a < 0.05:
                break
            u = 0
            while u < 2:
                a = a * 0.9999
                u += 1
            t += 1
        y[i] = a


def whiles_model(a, n):
    t = 0
    while t < n:
        a = a * 0.999 + a * a * 0.0005
        if a.v < 0.05:
            break
        for _ in range(2):
            a = a * 0.9999
        t += 1
    return a


@pytest.mark.parametrize("n", LENGTHS)
def test_whiles(n):
    check(whiles, whiles_model, [0.06, 0.7, 0.9], n)


@qd.kernel
def overwritten_after(x: A1, n: qd.i32, y: A1):
    """What only forward code reads: a local that is another one after the loop, one that the loop carries."""
    for i in x:
        a, c, b = x[i], x[i] * 0.01, qd.cast(0.25, qd.f64)
        for t in range(n):
            b = b * 0.99 + c
            a = a * a * 0.5 + b * 0.1 + c
        c = 7.0
        b = a + c
        y[i] = b * a


def overwritten_after_model(a, n):
    c, b = a * 0.01, Dual(0.25)
    for _ in range(n):
        b = b * 0.99 + c
        a = a * a * 0.5 + b * 0.1 + c
    return (a + 7.0) * a


@pytest.mark.parametrize("n", [0, 3, 256, 700])
def test_what_only_forward_code_reads(n):
    check(overwritten_after, overwritten_after_model, [0.2, 0.8], n)


@qd.kernel
def values_of_a_branch(x: A1, n: qd.i32, y: A1):
    for i in x:
        a = x[i]
        if a > 0.5:
            f, m = a * 0.01, qd.Matrix([[a, 0.5], [0.25, 0.125]], dt=qd.f64)
            t = 0
            while t < n:
                k = m * 0.5
                a = a * a * 0.5 + f + k[t % 2, 0] * 0.1
                t += 1
            for u in range(n):
                a = a * a * 0.5 + f + m[u % 2, 1] * 0.1
            f = 3.0
            a = a * f
        y[i] = a


def values_of_a_branch_model(a, n):
    if a.v <= 0.5:
        return a
    f, m = a * 0.01, [[a, Dual(0.5)], [Dual(0.25), Dual(0.125)]]
    for t in range(n):
        a = a * a * 0.5 + f + m[t % 2][0] * 0.05
    for u in range(n):
        a = a * a * 0.5 + f + m[u % 2][1] * 0.1
    return a * 3.0


@pytest.mark.parametrize("n", [1, 300])
def test_values_of_a_branch(n):
    check(values_of_a_branch, values_of_a_branch_model, [0.2, 0.8], n)


@qd.func
def unless(a: qd.f64, n: qd.i32, gone: qd.i32) -> qd.f64:
    """Forward code alone copies the matrix, which stands in the branch that an early return leaves."""
    if gone >= 1:
        return a
    m, t, b, c = qd.Matrix([[a, 0.5], [0.25, 0.125]], dt=qd.f64), 0, a, a
    while t < n:
        k = m
        b = b + c * 0.01 if k[0, 0] <= 0.5 else a * -1.5
        c = c * c * 0.5 + 0.25
        t += 1
    m *= 100.0
    return b * m[0, 1] * a


@qd.kernel
def early_return(x: A1, n: qd.i32, y: A1):
    for i in x:
        y[i] = unless(x[i], n, i % 3)


@pytest.mark.parametrize("n", [2, 700])
def test_early_return(n):
    xs = [0.25, 0.3, 0.35, 0.75, 0.8]
    x, y = array(xs), array([0.0] * len(xs))
    early_return(x, n, y)
    y.grad.fill(1.0)
    early_return.grad(x, n, y)
    want = []
    for i, v in enumerate(xs):
        a = b = c = Dual(v, 1.0)
        for _ in range(0 if i % 3 else n):
            b = b + c * 0.01 if v <= 0.5 else a * -1.5
            c = c * c * 0.5 + 0.25
        want.append(a if i % 3 else b * 50.0 * a)
    assert y.to_numpy() == pytest.approx([w.v for w in want], rel=1e-9)
    assert x.grad.to_numpy() == pytest.approx([w.d for w in want], rel=1e-9)


@qd.func
def settle(a: qd.f64, n: qd.i32) -> qd.f64:
    b, t = a, 0
    while t < n:
        b = b * 0.999 + a * b * 0.001
        t += 1
    for u in range(n):
        b = b * 0.999 + b * b * 0.0001
    return b


@qd.kernel
def in_funcs(x: A1, n: qd.i32, y: A1):
    for i in x:
        a = x[i]
        for t in range(n):
            a = a * 0.99 + settle(a, t % 4) * 0.01
        y[i] = settle(a, n)


def in_funcs_model(a, n):
    def settle(a, n):
        b = a
        for _ in range(n):
            b = b * 0.999 + a * b * 0.001
        for _ in range(n):
            b = b * 0.999 + b * b * 0.0001
        return b

    for t in range(n):
        a = a * 0.99 + settle(a, t % 4) * 0.01
    return settle(a, n)


@pytest.mark.parametrize("n", [2, 257, 600])
def test_in_funcs(n):
    check(in_funcs, in_funcs_model, [0.3], n)


@qd.kernel
def bound_in_an_array(x: A1, c: qd.types.ndarray(qd.i32, 1), y: A1):
    for i in x:
        a = x[i]
        for t in range(c[1]):
            a = a * 0.999 + a * a * 0.0005
        for t in range(c[i]):
            a = a * 0.999 + a * a * 0.0003
        y[i] = a


def test_bounds_in_arrays():
    """The same for all columns, and one for each."""
    counts, xs = [3, 300, 700, 256, 0], [0.2, 0.4, 0.6, 0.8, 0.9]
    c = qd.ndarray(qd.i32, len(counts))
    c.from_numpy(np.array(counts, np.int32))
    x, y = array(xs), array([0.0] * len(xs))
    bound_in_an_array(x, c, y)
    y.grad.fill(1.0)
    bound_in_an_array.grad(x, c, y)
    want = []
    for v, own in zip(xs, counts):
        a = Dual(v, 1.0)
        for _ in range(300):
            a = a * 0.999 + a * a * 0.0005
        for _ in range(own):
            a = a * 0.999 + a * a * 0.0003
        want.append(a.d)
    assert x.grad.to_numpy() == pytest.approx(want, rel=1e-9)


def test_random_numbers_are_drawn_again():
    """The same ones in a segment that runs a second time: the derivative is the sum of what was drawn."""

    @qd.kernel
    def walk(x: A1, n: qd.i32, y: A1, steps: A1):
        for i in range(1):
            a = x[0]
            for t in range(n):
                r = qd.random(qd.f64)
                steps[t] = r
                a += r * a * 0.01
            y[0] = a

    n = 600
    x, y, steps = array([1.0]), array([0.0]), array([0.0] * n, grad=False)
    walk(x, n, y, steps)
    y.grad.fill(1.0)
    walk.grad(x, n, y, steps)
    assert x.grad.to_numpy()[0] == pytest.approx(np.prod(1 + 0.01 * steps.to_numpy()), rel=1e-9)


def test_forced_size_keeps_each_iteration():
    """qd.init(ad_stack_size=N) counts iterations."""
    qd.init(ad_stack_size=400)
    check(recurrence, recurrence_model, [0.3], 400)
    x, y = array([0.3]), array([0.0])
    with pytest.raises(qd.IngotRuntimeError, match="stack"):
        recurrence.grad(x, 401, y)


def bytes_of(kernel, *args):
    before = _core.counters()["stack_bytes"]
    kernel.grad(*args)
    return _core.counters()["stack_bytes"] - before


@pytest.mark.parametrize("n", [10, 256, 100_000])
def test_bytes(n):
    """An entry for each iteration of a segment and for each segment, and never more than a cache line beside."""
    qd.init(cpu_max_num_threads=1)

    @qd.kernel
    def one(x: A1, n: qd.i32, y: A1):
        for i in range(1):
            a = x[i]
            for t in range(n):
                if a > 9.0:  # a branch: one column by itself
                    a *= 0.5
                a = a * a * 0.5 + 0.1
            y[i] = a

    taken = bytes_of(one, array([0.1]), n, array([0.0]))
    entries = min(n, SEGMENT) + -(-n // SEGMENT)
    assert 8 * entries <= taken <= 8 * entries + 64
