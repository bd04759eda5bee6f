"""Atomic sums of neighbouring floats that are made as one (src/gen/llvm_pair.c), beside those that
must not be: whole numbers from many iterations at few places, at two threads, exactly."""

import numpy as np
import pytest

import ingot as qd

N, PLACES = 40_000, 8
V2, V4 = qd.types.vector(2, qd.f32), qd.types.vector(4, qd.f32)
Array, F1 = qd.types.ndarray, qd.types.ndarray(qd.f32, 1)


@qd.kernel
def sums(x: F1, a: Array(V2, 1), b: Array(V4, 1), m: Array(qd.types.matrix(2, 2, qd.f32), 1)):
    for i in x:
        j = i % a.shape[0]
        a[j] += qd.Vector([x[i], 1.0])
        b[j] -= qd.Vector([x[i], 1.0, 2.0 * x[i], 3.0])
        m[j] += qd.Matrix([[1.0, x[i]], [x[i] + 1.0, 2.0]])


@qd.kernel
def others(x: F1, a: Array(V2, 1), b: Array(V2, 1), c: Array(V2, 1), d: Array(V2, 1)):
    for i in x:
        j = i % a.shape[0]
        a[j][0] += x[i]
        b[j][1] += x[i] + 1.0
        c[j][0] += x[i]
        c[j][1] -= x[i] * 2.0
        qd.atomic_max(d[j][0], x[i])
        qd.atomic_max(d[j][1], x[i] - 1.0)


def bins(values):
    return values.reshape(-1, PLACES).astype("f8").sum(0)


@pytest.fixture
def x(target):
    qd.init(cpu_max_num_threads=2)
    n = N if target == "native" else 400
    return np.random.default_rng(3).integers(-5, 6, n).astype("f4")


@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "between"])
def test_sums(x, offset):
    """Also at addresses that are no multiple of 8."""
    a, b, m = (np.zeros(PLACES * k + 1, "f4")[offset:][: PLACES * k] for k in (2, 4, 4))
    sums(x, a.reshape(-1, 2), b.reshape(-1, 4), m.reshape(-1, 2, 2))
    one, s = bins(np.ones_like(x)), bins(x)
    assert np.array_equal(a.reshape(-1, 2), np.stack([s, one], 1))
    assert np.array_equal(b.reshape(-1, 4), -np.stack([s, one, 2 * s, 3 * one], 1))
    assert np.array_equal(m.reshape(-1, 4), np.stack([one, s, s + one, 2 * one], 1))


def test_no_pairs(x):
    a, b, c, d = (np.zeros((PLACES, 2), "f4") for _ in range(4))
    d -= 100
    others(x, a, b, c, d)
    one, s, nothing = bins(np.ones_like(x)), bins(x), np.zeros(PLACES)
    assert np.array_equal(a, np.stack([s, nothing], 1))
    assert np.array_equal(b, np.stack([nothing, s + one], 1))
    assert np.array_equal(c, np.stack([s, -2 * s], 1))
    top = x.reshape(-1, PLACES).max(0)
    assert np.array_equal(d, np.stack([top, top - 1], 1))
