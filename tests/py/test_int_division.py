"""Divisions of integers in loops of vectors, which are done in floats: every pair of edges, divisors
that are the same for a whole loop, and loops whose iterations wait for each other."""

import numpy as np
import pytest
from numpy_rules import NUMPY, divided

import ingot as qd

NAMES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


@qd.kernel
def both(x: qd.types.ndarray(), y: qd.types.ndarray(), q: qd.types.ndarray(), r: qd.types.ndarray()):
    for i in range(x.shape[0]):
        q[i] = x[i] // y[i]
        r[i] = x[i] % y[i]


@qd.kernel
def cut(x: qd.types.ndarray(), y: qd.types.ndarray(), q: qd.types.ndarray(), r: qd.types.ndarray()):
    for i in range(x.shape[0]):
        q[i] = qd.raw_div(x[i], y[i])
        r[i] = qd.raw_mod(x[i], y[i])


@qd.kernel
def by_one(x: qd.types.ndarray(), y: qd.types.ndarray(), at: qd.i32, q: qd.types.ndarray(), r: qd.types.ndarray()):
    for i in range(x.shape[0]):
        n = y[at]
        q[i] = x[i] // n
        r[i] = x[i] % n


def edges(name):
    info = np.iinfo(NUMPY[name])
    near = [info.min + k for k in range(4)] + [info.max - k for k in range(4)]
    near += [0, 1, 2, 3, 5, 7, 10, 37, 100, info.max // 2, info.max // 2 + 1, info.max // 3, info.max // 7]
    if info.min < 0:
        near += [-k for k in (1, 2, 3, 5, 7, 10, 37, 100)] + [info.min // 2, info.min // 3, info.min // 2 - 1]
    for bits in (11, 12, 23, 24, 25, 30, 31):
        near += [k for k in (2**bits - 1, 2**bits, 2**bits + 1) if k <= info.max]
    rng = np.random.default_rng(3)
    some = rng.integers(info.min, info.max, 60, dtype=NUMPY[name], endpoint=True)
    return np.concatenate([np.array(near, NUMPY[name]), some])


def pairs(name):
    one = edges(name)
    x, y = np.meshgrid(one, one)
    x, y = x.ravel(), y.ravel()
    # products and their neighbours: quotients that are integers or just miss one
    with np.errstate(over="ignore"):
        x = np.concatenate([x, x // np.where(y == 0, 1, y) * y, x // np.where(y == 0, 1, y) * y - 1])
    return x, np.concatenate([y, y, y])


def want(x, y, name, floor):
    info = np.iinfo(NUMPY[name])
    q, r = [], []
    for a, b in zip(x.tolist(), y.tolist()):
        if b == 0:
            q.append(0), r.append(0)
            continue
        whole = a // b if floor else int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        rest = a - whole * b
        q.append(info.min if whole > info.max else whole)  # the least one divided by -1 wraps
        r.append(rest)
    return np.array(q, NUMPY[name]), np.array(r, NUMPY[name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel", [both, cut], ids=["floor", "cut"])
def test_every_pair(name, kernel):
    x, y = pairs(name)
    q, r = np.ones_like(x), np.ones_like(x)
    kernel(x, y, q, r)
    wq, wr = want(x, y, name, kernel is both)
    bad = np.flatnonzero((q != wq) | (r != wr))[:5]
    assert not len(bad), [(int(x[k]), int(y[k]), int(q[k]), int(r[k])) for k in bad]


@pytest.mark.parametrize("name", NAMES)
def test_one_divisor_for_all(name):
    x, y = edges(name), edges(name)
    for at in range(len(y)):
        q, r = np.ones_like(x), np.ones_like(x)
        by_one(x, y, at, q, r)
        n = np.full_like(x, y[at])
        with np.errstate(all="ignore"):
            assert np.array_equal(q, want(x, n, name, True)[0]) and np.array_equal(r, divided("%", x, n, name))


@qd.kernel
def waiting(x: qd.types.ndarray(), m: qd.i32, out: qd.types.ndarray()):
    for i in range(x.shape[0]):
        h = x[i]
        n = m
        while n != 0:
            t = h % n
            h = n
            n = t
        s = 0
        for k in range(5):
            s = (s * 31 + x[i] + k) % m
        out[i, 0] = h
        out[i, 1] = s


def test_iterations_that_wait():
    x = np.random.default_rng(5).integers(0, 10**6, 300, dtype=np.int32)
    out = np.zeros((300, 2), np.int32)
    waiting(x, 9973, out)
    for i, v in enumerate(x.tolist()):
        s = 0
        for k in range(5):
            s = (s * 31 + v + k) % 9973
        assert out[i].tolist() == [np.gcd(v, 9973), s]
