"""Small extents of an array's innermost axis are compiled in where constants index it
(src/py/see/extent.c): right for every shape and kind of array, few variants, never stale."""

import numpy as np
import pytest
from conftest import needs

import ingot as qd

Array = qd.types.ndarray
F2, F3 = Array(qd.f32, 2), Array(qd.f32, 3)


@pytest.fixture(autouse=True)
def exact(target):
    qd.init(fast_math=False)


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype("f4")


@qd.kernel
def by_constants(x: F2, y: F2):
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0] + 2.0 * x[i, 1] + x.shape[1]
        y[i, 1] += x[i, x.shape[1] - 1]


@qd.kernel
def by_short_loop(x: F2, y: F2):
    for i in range(x.shape[0]):
        for k in range(2):
            y[i, k] += x[i, k]


@qd.kernel
def by_indices(x: F2, y: F2):
    for i, j in x:
        y[i, j] = x[i, j] * x.shape[1]


@qd.func
def first_and_third(x, i):
    return x[i, 0] - x[i, 2]


@qd.func
def through(x, i):
    return first_and_third(x, i) * 2.0


@qd.kernel
def by_funcs(x: F2, y: F2):
    for i in range(x.shape[0]):
        y[i, 0] += through(x, i)


@qd.kernel
def three_axes(x: F3):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        x[i, j, 1] += x[i, j, 0] * x.shape[2]


def kinds(values):
    """The same numbers as arrays of several kinds, each with a function that gives them back."""
    yield values.copy(), lambda a: a
    yield np.array(values, order="F"), lambda a: a
    mine = qd.ndarray(qd.f32, values.shape)
    mine.from_numpy(values)
    yield mine, lambda a: a.to_numpy()


SHAPES = [(5, n) for n in (3, 4, 2, 3, 16, 17, 18, 40, 3)] + [(1, 3), (0, 3), (700, 3), (3, 700)]


@pytest.mark.host_memory
def test_every_shape():
    for shape in SHAPES:
        a, b = numbers(*shape), numbers(*shape) + 1
        for (x, _), (y, back) in zip(kinds(a), kinds(b)):
            by_constants(x, y)
            want = b.copy()
            want[:, 0] = a[:, 0] + 2 * a[:, 1] + shape[1]
            want[:, 1] += a[:, -1]
            assert (back(y) == want).all()
            by_short_loop(x, y)
            want[:, :2] += a[:, :2]
            assert (back(y) == want).all()
            if shape[1] > 2:
                by_funcs(x, y)
                want[:, 0] += (a[:, 0] - a[:, 2]) * 2
                assert (back(y) == want).all()
            by_indices(x, y)
            assert (back(y) == a * shape[1]).all()


@pytest.mark.host_memory
def test_arrays_of_different_shapes():
    for n in (2, 3, 5, 20):
        for m in (2, 3, 5, 20):
            x, y = numbers(6, n), numbers(6, m)
            want = y.copy()
            want[:, 0] = x[:, 0] + 2 * x[:, 1] + n
            want[:, 1] += x[:, -1]
            by_constants(x, y)
            assert (y == want).all()


def test_three_axes():
    for shape in [(3, 4, 2), (3, 4, 5), (3, 4, 50), (3, 2, 5)]:
        x = numbers(*shape)
        want = x.copy()
        want[:, :, 1] += x[:, :, 0] * shape[2]
        three_axes(x)
        assert (x == want).all()


@pytest.mark.counts("compiles")
def test_few_variants():
    @qd.kernel
    def some(x: F2, y: F2):
        for i in range(x.shape[0]):
            x[i, 0] += y[0, i]

    for n in range(1, 60):
        some(np.zeros((n, 3), "f4"), np.zeros((2, n), "f4"))
    assert some._variants == 1
    for n in range(1, 60):
        some(np.zeros((4, n), "f4"), np.zeros((2, 4), "f4"))
    assert some._variants == 17

    @qd.kernel
    def none(x: F2):
        for i, j in x:
            x[i, j] += x[j, i]

    for n in range(1, 20):
        none(np.zeros((n, n), "f4"))
    assert none._variants == 1


def test_captured_and_members():
    made = {n: qd.ndarray(qd.f32, (4, n)) for n in (3, 4, 30)}
    for n, a in made.items():
        a.from_numpy(numbers(4, n))

    @qd.data_oriented
    class Holder:
        def __init__(self, x):
            self.x = x

        @qd.kernel
        def sum(self) -> qd.f32:
            s = 0.0
            for i in range(self.x.shape[0]):
                s += self.x[i, 0] * 10.0 + self.x[i, 2]
            return s

    scope = {"qd": qd, "x": None}

    def captured(x):
        scope["x"] = x

        @qd.kernel
        def kernel() -> qd.f32:
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, 0] * 10.0 + x[i, 2]
            return s

        return kernel

    h = Holder(made[3])
    for n in (3, 4, 30, 3, 30, 4):
        want = (numbers(4, n)[:, 0] * 10 + numbers(4, n)[:, 2]).sum()
        h.x = made[n]
        assert h.sum() == want and captured(made[n])() == want


X = None


@qd.kernel
def of_global() -> qd.f32:
    s = 0.0
    for i in range(X.shape[0]):
        s += X[i, 1] + X.shape[1]
    return s


def test_rebound_global():
    global X
    for n in (3, 4, 3, 50, 3):
        X = qd.ndarray(qd.f32, (4, n))
        X.from_numpy(numbers(4, n))
        assert of_global() == numbers(4, n)[:, 1].sum() + 4 * n


@needs("torch")
@pytest.mark.host_memory
def test_tensors():
    import torch

    for n in (3, 4, 2, 40, 3):
        x, y = torch.tensor(numbers(5, n)), torch.zeros(5, n)
        by_constants(x, y)
        assert (y[:, 0] == x[:, 0] + 2 * x[:, 1] + n).all()


def test_gradients():
    for n in (3, 4, 20):
        x, loss = qd.ndarray(qd.f32, (5, n), needs_grad=True), qd.ndarray(qd.f32, (1,), needs_grad=True)
        x.from_numpy(numbers(5, n))

        @qd.kernel
        def squares(x: F2, loss: Array(qd.f32, 1)):
            for i in range(x.shape[0]):
                loss[0] += x[i, 0] * x[i, 0] + x[i, 2]

        loss.grad.from_numpy(np.ones(1, "f4"))
        squares(x, loss)
        squares.grad(x, loss)
        want = np.zeros((5, n), "f4")
        want[:, 0], want[:, 2] = 2 * numbers(5, n)[:, 0], 1
        assert (x.grad.to_numpy() == want).all()
