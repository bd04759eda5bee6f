"""Loops that read rows of an array and write others of it: LLVM asks before each loop whether they lie apart, so
rows that are the same, or overlap, have to come out as if each number were computed alone."""

import numpy as np
import pytest

import ingot as qd

D2, I1, I2 = qd.types.ndarray(qd.f64, 2), qd.types.ndarray(qd.i32, 1), qd.types.ndarray(qd.i32, 2)


@qd.kernel
def lu(a: D2, first: qd.i32):
    """first = 1: LU. first = 0: row k is divided by itself and taken from itself too."""
    qd.loop_config(serialize=True)
    for k in range(a.shape[0]):
        for i in range(k + first, a.shape[0]):
            a[i, k] /= a[k, k]
            for j in range(k + 1, a.shape[0]):
                a[i, j] -= a[i, k] * a[k, j]


@qd.kernel
def shifted(a: D2, rows: I2, by: qd.i32):
    """Of rows that data choose, some to themselves, moved by some places."""
    qd.loop_config(serialize=True)
    for k in range(rows.shape[0]):
        for j in range(8, a.shape[1] - 8):
            a[rows[k, 0], j] += 0.5 * a[rows[k, 1], j + by]


@qd.kernel
def knapsack(w: I1, v: I1, t: I2):
    qd.loop_config(serialize=True)
    for i in range(1, t.shape[0]):
        for c in range(t.shape[1]):
            t[i, c] = t[i - 1, c]
            if c >= w[i - 1]:
                t[i, c] = qd.max(t[i, c], t[i - 1, c - w[i - 1]] + v[i - 1])


@pytest.mark.parametrize("n", [1, 2, 7, 16, 33, 70])
@pytest.mark.parametrize("first", [0, 1])
def test_lu(target, n, first):
    a = np.random.default_rng(n).random((n, n)) + n * np.eye(n)
    want = a.copy()
    for k in range(n):
        for i in range(k + first, n):
            want[i, k] /= want[k, k]
            for j in range(k + 1, n):
                want[i, j] -= want[i, k] * want[k, j]
    lu(a, first)
    np.testing.assert_allclose(a, want, rtol=1e-9)


@pytest.mark.parametrize("by", [-8, -3, -1, 0, 1, 2, 8])
def test_shifted_rows(target, by):
    rng = np.random.default_rng(by + 20)
    a, rows = rng.random((4, 90)), rng.integers(0, 4, (20, 2)).astype(np.int32)
    want = a.copy()
    for to, of in rows:
        for j in range(8, 82):
            want[to, j] += 0.5 * want[of, j + by]
    shifted(a, rows, by)
    np.testing.assert_allclose(a, want, rtol=1e-12)


@pytest.mark.parametrize("most", [1, 5, 60])
def test_knapsack(target, most):
    rng = np.random.default_rng(most)
    w, v = rng.integers(0, most + 1, 9).astype(np.int32), rng.integers(1, 50, 9).astype(np.int32)
    t = np.zeros((10, 101), np.int32)
    want = t.copy()
    for i in range(1, 10):
        want[i] = want[i - 1]
        m = w[i - 1]
        want[i, m:] = np.maximum(want[i, m:], want[i - 1, : 101 - m] + v[i - 1])
    knapsack(w, v, t)
    assert (t == want).all()
