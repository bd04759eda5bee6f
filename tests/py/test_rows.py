"""Loops over several axes: every shape and every piece of the flat loop gives each index once."""

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


@qd.kernel
def count2(a: qd.types.ndarray(ndim=2)):
    for i, j in a:
        a[i, j] += i * 1000 + j + 1


@qd.kernel
def count3(a: qd.types.ndarray(ndim=3)):
    for i, j, k in qd.ndrange(a.shape[0], a.shape[1], a.shape[2]):
        if k % 3 == 1:
            continue
        a[i, j, k] += i * 10000 + j * 100 + k + 1


@qd.kernel
def inner(a: qd.types.ndarray(ndim=2), b: qd.types.ndarray(ndim=2)):
    for i, j in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]


@qd.kernel
def count4(a: qd.types.ndarray(ndim=4)):
    n = a.shape
    for k, i, m, j in qd.ndrange((1, n[2]), n[0] - 1, 3, (2, n[1]), axes=(1, 3, 0, 2)):
        a[i, j, k, m] += i * 1000 + j * 100 + k * 10 + m + 1


@qd.kernel
def only_outer(a: qd.types.ndarray(ndim=1), n: qd.i32):
    for i, j in qd.ndrange(a.shape[0], n):
        a[i] += 1


@qd.kernel
def from_below(a: qd.types.ndarray(ndim=2), low: qd.i32):
    for i, j in qd.ndrange((-3, a.shape[0] - 3), (low, low + a.shape[1])):
        a[i + 3, j - low] += i * 1000 + j % 7


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 5), (0, 4), (4, 0), (257, 33),
                                   (2, 5000), (5000, 2), (300, 700)])
def test_two_axes(shape, target):
    if target == "interp" and shape[0] * shape[1] > 50_000:
        shape = (60, 70)
    a = qd.ndarray(qd.i64, shape)
    count2(a)
    i, j = np.indices(shape)
    assert (a.to_numpy() == i * 1000 + j + 1).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 1, 9), (40, 30, 20), (3, 0, 2),
                                   (9, 1, 3000), (500, 7, 2)])
def test_three_axes(shape):
    a = qd.ndarray(qd.i64, shape)
    count3(a)
    i, j, k = np.indices(shape)
    want = np.where(k % 3 == 1, 0, i * 10000 + j * 100 + k + 1)
    assert (a.to_numpy() == want).all()


def test_stencil(target):
    n = 600 if target == "native" else 60
    x = np.random.default_rng(1).random((n, n + 13)).astype(np.float64)
    a, b = qd.ndarray(qd.f64, x.shape), qd.ndarray(qd.f64, x.shape)
    a.from_numpy(x)
    inner(a, b)
    want = np.zeros_like(x)
    want[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    np.testing.assert_allclose(b.to_numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (5, 6, 7, 3), (40, 12, 9, 3)])
def test_four_axes_in_another_order(shape):
    a = qd.ndarray(qd.i64, shape)
    count4(a)
    i, j, k, m = np.indices(shape)
    used = (i < shape[0] - 1) & (j >= 2) & (k >= 1)
    assert (a.to_numpy() == np.where(used, i * 1000 + j * 100 + k * 10 + m + 1, 0)).all()


def test_an_axis_that_is_not_used(target):
    n = 3000 if target == "native" else 30
    a = qd.ndarray(qd.i32, (20,))
    only_outer(a, n)
    assert (a.to_numpy() == n).all()


def test_axes_from_below_zero():
    a = qd.ndarray(qd.i64, (9, 50))
    from_below(a, -(2**31))
    i, j = np.indices(a.shape)
    assert (a.to_numpy() == (i - 3) * 1000 + (j - 2**31) % 7).all()
