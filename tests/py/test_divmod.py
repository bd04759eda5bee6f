"""`//` and `%` of floats: the numbers of Python and NumPy to the bit, in every mode. Dense sets of
multiples and of edge values, by variables and by constants, as scalars, vectors, updates and
compile-time values."""

import itertools
import math

import numpy as np
import pytest

import ingot as qd

MODES = {
    "fast": dict(arch=qd.cpu, fast_math=True),
    "strict": dict(arch=qd.cpu, fast_math=False),
    "interp": dict(arch=qd.interp, fast_math=False),
    "interp fast": dict(arch=qd.interp, fast_math=True),
}
DTYPES = [np.float16, np.float32, np.float64]


@pytest.fixture(params=MODES)
def mode(request):
    qd.init(**MODES[request.param])
    return request.param


def same(got, want):
    """Bit for bit; any NaN is a NaN."""
    bits = f"u{got.itemsize}"
    return np.array_equal(
        np.where(np.isnan(got), 0, got.view(bits)), np.where(np.isnan(want), 0, want.view(bits))
    ) and np.array_equal(np.isnan(got), np.isnan(want))


def operands(dtype):
    info = np.finfo(dtype)
    edge = [0.0, -0.0, 1, -1, 0.1, -0.1, 0.3, 41, -41, 7, -7, 3, 10, np.inf, -np.inf, np.nan]
    edge += [info.max, -info.max, info.tiny, -info.tiny, 1 - info.epsneg, 1 + info.eps]
    edge = np.array(edge, dtype)
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(5000) * 10.0 ** rng.integers(-3, 4, 5000) for _ in range(2))
    y = y.astype(dtype)
    a, b = (list(v) for v in zip(*itertools.product(edge, edge)))
    a = np.concatenate([a, x, rng.integers(-900, 900, 5000) * y, x * info.max / 1e4, np.arange(5000) * 0.1])
    b = np.concatenate([b, y, y, y, np.full(5000, 0.1)])
    return a.astype(dtype), b.astype(dtype)


@qd.kernel
def divmod_all(a: qd.types.ndarray(), b: qd.types.ndarray(), q: qd.types.ndarray(), r: qd.types.ndarray()):
    for i in range(a.shape[0]):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(mode, dtype):
    with np.errstate(all="ignore"):
        a, b = operands(dtype)
        q, r = np.zeros_like(a), np.zeros_like(a)
        divmod_all(a, b, q, r)
        assert same(q, np.floor_divide(a, b))
        assert same(r, np.mod(a, b))


@pytest.mark.parametrize("by", [0.1, 41.0, -3.0, 1.0, 6.283185307179586, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constants(mode, dtype, by):
    @qd.kernel
    def constant(a: qd.types.ndarray(), q: qd.types.ndarray(), r: qd.types.ndarray()):
        for i in range(a.shape[0]):
            q[i] = a[i] // by
            r[i] = a[i] % by

    with np.errstate(all="ignore"):
        a = np.concatenate([operands(dtype)[0], (np.arange(20000) * by).astype(dtype)])
        q, r = np.zeros_like(a), np.zeros_like(a)
        constant(a, q, r)
        assert same(q, np.floor_divide(a, dtype(by)))
        assert same(r, np.mod(a, dtype(by)))


def test_remainder_of_positives_is_not_negative(mode):
    @qd.kernel
    def lowest(n: qd.i32, a: qd.types.ndarray()) -> qd.f32:
        low = 1.0
        for i in range(n):
            qd.atomic_min(low, a[i] % 0.1)
        return low

    assert lowest(20000, (np.arange(20000) * 0.1).astype(np.float32)) >= 0


def test_vectors_and_updates(mode):
    @qd.kernel
    def vectors(v: qd.types.vector(3, qd.f64), w: qd.types.vector(3, qd.f64)) -> qd.types.vector(12, qd.f64):
        a, b = v % w, v // w
        c = v
        c %= w
        d = v[0]
        d //= w[0]
        e = v[1]
        e %= w[1]
        f = qd.math.mod(v[2], w[2])
        return qd.Vector([a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2], d, e, f])

    for v, w in [((1.0, -7.5, 0.3), (0.1, 2.0, -0.1)), ((5.0, -5.0, 1e300), (np.inf, np.inf, 3.0))]:
        m, q = [x % y for x, y in zip(v, w)], [x // y for x, y in zip(v, w)]
        assert list(vectors(v, w)) == [*m, *q, *m, q[0], m[1], m[2]]


def test_compile_time(mode):
    numbers = [1.0, -1.0, 0.1, 0.3, -0.3, 41.0, 1e16, math.inf, -5.0, 5.0]
    for x, y in itertools.product(numbers, numbers):
        if math.isinf(x):
            continue

        @qd.kernel
        def folded(a: qd.f64, b: qd.f64) -> (qd.f64, qd.f64, qd.f64, qd.f64):
            return qd.static(x // y), qd.static(x % y), a // b, a % b

        assert folded(x, y) == (x // y, x % y, x // y, x % y)
