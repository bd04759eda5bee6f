"""Elements that are held in a local while other places of the same array are read (HOLD1, ACCESS6): in-place
factorisations, substitutions and tables, and loops that come too near."""

import numpy as np
import pytest

import ingot as qd

F1, F2, I2 = qd.types.ndarray(qd.f32, 1), qd.types.ndarray(qd.f32, 2), qd.types.ndarray(qd.i32, 2)


@qd.kernel
def before(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j):
                x[i, j] += x[i, k]


@qd.kernel
def itself(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j + 1):
                x[i, j] += x[i, k]


@qd.kernel
def after(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j + 1, x.shape[1]):
                x[i, j] -= x[i, k]


@qd.kernel
def from_it(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j, x.shape[1]):
                x[i, j] -= x[i, k]


@qd.kernel
def shifted(x: I2):
    for i in range(x.shape[0]):
        for j in range(2, x.shape[1]):
            for k in range(j - 1):
                x[i, j] += x[i, k + 1]


@qd.kernel
def reached(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j):
                x[i, j] += x[i, k + 1]


@qd.kernel
def doubled(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1] // 2):
            for k in range(j):
                x[i, j] += x[i, 2 * k]


@qd.kernel
def greatest(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j):
                x[i, j] = qd.max(x[i, j], x[i, k] + 1)


@qd.kernel
def sometimes(x: I2):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(j):
                if x[i, k] > 1:
                    x[i, j] = x[i, k] - x[i, j]


def model(kind, x):
    n = x.shape[1]
    spans = {"before": lambda j: range(j), "itself": lambda j: range(j + 1), "after": lambda j: range(j + 1, n),
             "from_it": lambda j: range(j, n), "shifted": lambda j: range(1, j), "reached": lambda j: range(1, j + 1),
             "doubled": lambda j: range(0, 2 * j, 2), "greatest": lambda j: range(j), "sometimes": lambda j: range(j)}
    for row in x:
        for j in range(2 if kind == "shifted" else 0, n // 2 if kind == "doubled" else n):
            for k in spans[kind](j):
                if kind == "greatest":
                    row[j] = max(row[j], row[k] + 1)
                elif kind == "sometimes":
                    row[j] = row[k] - row[j] if row[k] > 1 else row[j]
                else:
                    row[j] += row[k] if kind in ("before", "itself", "shifted", "reached", "doubled") else -row[k]


KERNELS = {"before": before, "itself": itself, "after": after, "from_it": from_it, "shifted": shifted,
           "reached": reached, "doubled": doubled, "greatest": greatest, "sometimes": sometimes}


@pytest.mark.parametrize("kind", KERNELS)
def test_rows(target, kind):
    """Integers: they add up to the same in any order."""
    qd.init()
    rng = np.random.default_rng(4)
    for n in (1, 2, 5, 18, 40):
        x = rng.integers(-5, 6, (9, n)).astype("i4")
        want = x.copy()
        with np.errstate(over="ignore"):
            model(kind, want)
        KERNELS[kind](x)
        assert (x == want).all(), n


def test_factors(target):
    @qd.kernel
    def ldl(a: F2, d: F1):
        for _ in range(1):
            for j in range(a.shape[0]):
                for k in range(j):
                    a[j, j] -= a[j, k] * a[j, k] * d[k]
                d[j] = a[j, j]
                for i in range(j + 1, a.shape[0]):
                    for k in range(j):
                        a[i, j] -= a[i, k] * a[j, k] * d[k]
                    a[i, j] = a[i, j] / d[j]

    qd.init()
    rng = np.random.default_rng(5)
    for n in (1, 3, 16, 40):
        m = rng.random((n, n))
        m = m @ m.T + n * np.eye(n)
        a, d = m.astype("f4"), np.zeros(n, "f4")
        ldl(a, d)
        low = np.tril(a.astype("f8"), -1) + np.eye(n)
        assert np.allclose(low @ np.diag(d) @ low.T, m, rtol=1e-4, atol=1e-4)
