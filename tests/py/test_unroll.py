"""Short loops of constant length in serial loops (src/pass/unroll.c): results are those of the text."""

import numpy as np
import pytest

import ingot as qd

L1, L3 = qd.types.ndarray(qd.i64, 1), qd.types.ndarray(qd.i64, 3)


def window(x: L3, w: L3, y: L3):
    for o, i, j in qd.ndrange(y.shape[0], y.shape[1], y.shape[2]):
        s = x[0, 0, 0] * 0
        for c in range(x.shape[0]):
            for p in range(3):
                for q in range(-1, 2):
                    s = s * 3 + x[c, i + p, j + q + 1] * w[o, p, q + 1]
        y[o, i, j] = s


def leaves(x: L3, w: L3, y: L3):
    for o, i, j in qd.ndrange(y.shape[0], y.shape[1], y.shape[2]):
        s = x[0, 0, 0] * 0
        for c in range(x.shape[0]):
            for p in range(3):
                if x[c, i + p, j] == 4:
                    break
                if x[c, i + p, j] == 5:
                    continue
                s = s * 3 + x[c, i + p, j]
        y[o, i, j] = s


def branches(x: L3, w: L3, y: L3):
    for o, i, j in qd.ndrange(y.shape[0], y.shape[1], y.shape[2]):
        s = x[0, 0, 0] * 0
        t = s
        for c in range(x.shape[0]):
            t = t + 1
            for p in range(2):
                k = x[c, i + p, j] + p
                for q in range(0):
                    s = s + 1000
                if k > 0:
                    s = s + k * t
                else:
                    for q in range(2):
                        s = s - k * q
            t = t * 2 % 1001
        y[o, i, j] = s + t


def writes(x: L3, w: L3, y: L3):
    for o in range(y.shape[0]):
        for i in range(y.shape[1]):
            for p in range(2):
                for j in range(3):
                    y[o, i, j] = y[o, i, j] * 3 + x[p, i, j]


@pytest.mark.parametrize("shape", [(1, 1, 4), (3, 5, 70), (2, 40, 64), (4, 3, 131)])
@pytest.mark.parametrize("body", [window, leaves, branches, writes], ids=lambda f: f.__name__)
def test_as_python(body, shape):
    qd.init(arch=qd.cpu)
    rng = np.random.default_rng(shape[2])
    o, h, n = shape
    x, w = rng.integers(-9, 9, (max(h, 2), h + 2, n + 2)), rng.integers(-9, 9, (o, 3, 3))
    y = rng.integers(-9, 9, (o, h, n))
    want = y.copy()
    with np.errstate(over="ignore"):
        if body is writes:
            body(x, w, want)
        else:
            ndrange(body, x, w, want)
    qd.kernel(body)(x, w, y)
    assert np.array_equal(y, want)


def ndrange(body, x, w, y):
    """The kernel as Python: qd.ndrange is itertools.product there."""
    import itertools
    import types

    fake = types.SimpleNamespace(ndrange=lambda *n: itertools.product(*map(range, n)))
    types.FunctionType(body.__code__, {**body.__globals__, "qd": fake})(x, w, y)
