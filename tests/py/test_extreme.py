"""Serial loops that keep the least or the greatest of floats under conditions (src/pass/extreme.c): what
the text says, of NaN and infinities too, and near misses."""

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
F1, F2 = Array(qd.f32, 1), Array(qd.f32, 2)
D1, D2 = Array(qd.f64, 1), Array(qd.f64, 2)
I1 = Array(qd.i32, 1)
N = 37


@qd.kernel
def nearest(x: F2, w: F2, begin: F1, out: F1):
    for i in range(x.shape[0]):
        near = begin[i]
        for k in range(x.shape[1]):
            t = x[i, k]
            if w[i, k] > 0.5 and t < near:
                near = t
        out[i] = near


@qd.kernel
def first_asked(x: D2, w: D2, begin: D1, out: D1):
    for i in range(x.shape[0]):
        near = begin[i]
        for k in range(x.shape[1]):
            if near < x[i, k] and w[i, k] > 0.5:
                near = x[i, k]
        out[i] = near


@qd.kernel
def in_branches(x: F2, w: F2, begin: F1, out: F1):
    for i in range(x.shape[0]):
        low, high = begin[i], -begin[i]
        for k in range(x.shape[1]):
            if w[i, k] > 0.25:
                t = x[i, k] * 2.0
                if w[i, k] < 0.75:
                    if t <= low:
                        low = t
                else:
                    t = -t
                    if t > high:
                        high = t
        out[i] = low - high


@qd.kernel
def bits(x: F2, w: F2, begin: F1, out: F1):
    for i in range(x.shape[0]):
        near = begin[i]
        for k in range(x.shape[1]):
            if (x[i, k] < near) & (w[i, k] > 0.5) & (w[i, k] < 0.9):
                near = x[i, k]
        out[i] = near


def model(kernel, x, w, begin):
    out = np.zeros_like(begin)
    for i in range(len(x)):
        low, high = begin[i], -begin[i]
        for t, v in zip(x[i], w[i]):
            if kernel is nearest and v > 0.5 and t < low:
                low = t
            if kernel is first_asked and low < t and v > 0.5:
                low = t
            if kernel is bits and t < low and 0.5 < v < 0.9:
                low = t
            if kernel is in_branches and v > 0.25:
                if v < 0.75:
                    low = t * 2 if t * 2 <= low else low
                else:
                    high = -2 * t if -2 * t > high else high
        out[i] = low - high if kernel is in_branches else low
    return out


def values(rng, n, m, name, odd):
    x = rng.normal(size=(n, m)).astype(name)
    if odd:
        x[rng.random((n, m)) < 0.2] = np.nan
        x[rng.random((n, m)) < 0.1] = np.inf
        x[rng.random((n, m)) < 0.1] = -np.inf
    return x


@pytest.mark.parametrize("kernel", [nearest, first_asked, in_branches, bits])
@pytest.mark.parametrize("odd", [False, True])
def test_as_written(target, kernel, odd):
    qd.init()
    rng = np.random.default_rng(7)
    name = "f8" if kernel is first_asked else "f4"
    for m in (0, 1, 3, 8, 16, 17, 33, 100):
        x, w = values(rng, N, m, name, odd), rng.random((N, m)).astype(name)
        begin = rng.choice([1.0, -1.0, 1e30, np.inf, -np.inf, np.nan], N).astype(name)
        out = np.zeros(N, name)
        kernel(x, w, begin, out)
        with np.errstate(invalid="ignore"):
            want = model(kernel, x, w, begin)
        assert np.array_equal(out, want, equal_nan=True), m


@qd.kernel
def misses(x: F2, w: F2, at: I1, out: F2):
    for i in range(x.shape[0]):
        near, which = 2.0, -1
        for k in range(x.shape[1]):  # which one it was
            if x[i, k] < near:
                near = x[i, k]
                which = k
        out[i, 0] = near + which
        near = 2.0
        for k in range(x.shape[1]):  # either condition
            if x[i, k] < near or w[i, k] > 0.9:
                near = x[i, k]
        out[i, 1] = near
        near = 2.0
        for k in range(x.shape[1]):  # another value than the one compared
            if x[i, k] < near:
                near = w[i, k]
        out[i, 2] = near
        near, count = 2.0, 0
        for k in range(x.shape[1]):  # how often
            if x[i, k] < near:
                near = x[i, k]
                count += 1
        out[i, 3] = near + count
        near, total = 2.0, 0.0
        for k in range(x.shape[1]):  # on the way
            if x[i, k] < near:
                near = x[i, k]
            total += near
        out[i, 4] = total
        near = 2.0
        for k in range(x.shape[1]):  # the last that was not beyond
            if x[i, k] < near:
                near = x[i, k]
            else:
                near += 0.5
        out[i, 5] = near
        near = 2.0
        for k in range(x.shape[1]):  # the comparison is asked again
            nearer = x[i, k] < near
            if nearer:
                near = x[i, k]
            if nearer and w[i, k] > 0.5:
                out[i, 6] += 1.0
        near = 2.0
        for k in range(x.shape[1]):  # places that the data choose
            t = x[i, at[k]]
            if t < near:
                near = t
        out[i, 7] = near
        near = 2.0
        for k in range(x.shape[1]):
            if not x[i, k] >= near:
                near = x[i, k]
        out[i, 8] = near
        near = 2.0
        for k in range(x.shape[1]):  # left at the first
            if x[i, k] < near:
                near = x[i, k]
                if near < -1.0:
                    break
        out[i, 9] = near
        near = 2.0
        for k in range(x.shape[1]):  # a step towards it
            if x[i, k] + 1.0 < near:
                near = near - 0.25
        out[i, 10] = near


def miss(x, w, at, out):
    m = x.shape[1]
    for i in range(len(x)):
        s = [np.float32(2)] * 11
        which, count, total = -1, 0, np.float32(0)
        left = False
        for k in range(m):
            t, v = x[i, k], w[i, k]
            if t < s[0]:
                s[0], which = t, k
            if t < s[1] or v > 0.9:
                s[1] = t
            if t < s[2]:
                s[2] = v
            if t < s[3]:
                s[3], count = t, count + 1
            s[4] = min(s[4], t)
            total += s[4]
            s[5] = t if t < s[5] else s[5] + np.float32(0.5)
            if t < s[6]:
                s[6] = t
                out[i, 6] += v > 0.5
            s[7] = min(s[7], x[i, at[k]])
            if not t >= s[8]:
                s[8] = t
            if not left and t < s[9]:
                s[9], left = t, t < -1.0
            if t + 1 < s[10]:
                s[10] = s[10] - np.float32(0.25)
        out[i, [0, 3, 4]] = s[0] + which, s[3] + count, total
        for k in (1, 2, 5, 7, 8, 9, 10):
            out[i, k] = s[k]


def test_near_misses(target):
    qd.init()
    rng = np.random.default_rng(8)
    for m in (0, 1, 20, 65):
        x = (rng.integers(-64, 64, (N, m)) / 32).astype("f4")
        w = (rng.integers(0, 32, (N, m)) / 32).astype("f4")
        at = rng.integers(0, max(m, 1), m).astype("i4")
        out, want = np.zeros((N, 11), "f4"), np.zeros((N, 11), "f4")
        misses(x, w, at, out)
        miss(x, w, at, want)
        assert (out == want).all(), np.argwhere(out != want)[:5]


def test_loads_stay_guarded():
    """What a branch reads is not read without it: the other array is shorter."""
    @qd.kernel
    def guarded(x: F1, short: F1, out: F1):
        for i in range(out.shape[0]):
            near = 1e30
            for k in range(x.shape[0]):
                if k < short.shape[0]:
                    t = x[k] + short[k] + i
                    if t < near:
                        near = t
            out[i] = near

    qd.init()
    page = np.zeros(1 << 20, "f4")
    x, out = np.arange(10_000_000, dtype="f4")[::-1].copy(), np.zeros(3, "f4")
    guarded(x, page[:1], out)
    assert (out == x[0] + np.arange(3, dtype="f4")).all()
