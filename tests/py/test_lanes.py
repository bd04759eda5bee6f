"""Columns that go through a serial loop side by side: every width, every piece, the same bits
as one by one (src/pass/lanes.h)."""

import numpy as np
import pytest

import ingot as qd

F2, F1, I2 = qd.types.ndarray(ndim=2), qd.types.ndarray(ndim=1), qd.types.ndarray(qd.i32, 2)


@qd.kernel
def matmul(a: F2, b: F2, c: F2):
    for i, j in qd.ndrange(a.shape[0], b.shape[1]):
        t = a[0, 0] * 0.0
        for k in range(a.shape[1]):
            t += a[i, k] * b[k, j]
        c[i, j] = t


@qd.kernel
def columns(x: F2, y: F1, first: qd.i32):
    """Locals, loads and sums before the serial loop, inside and after it."""
    for j in range(1, y.shape[0]):
        scale = y[j] + 1.0
        top, low = scale, x[0, j - 1]
        for k in range(first, x.shape[0]):
            v = x[k, j] - low
            last = v
            last *= scale
            top = max(top, last)
            low = v + x[k, 0] * 0.5
        y[j] = top * scale + low


@qd.kernel
def whole(x: I2, y: I2):
    for i, j in y:
        h = i
        for k in range(x.shape[0]):
            h = h * 31 + x[k, j] ^ k
        y[i, j] = h


@qd.kernel
def sweep(x: F2, a: F1):
    for j in range(x.shape[1]):
        for k in range(1, x.shape[0]):
            x[k, j] = x[k, j] - a[k] * x[k - 1, j]


def by_hand(a, b, y, x):
    """The three kernels on whole rows of NumPy arrays, in the order of each column."""
    c, top, low = np.zeros((len(a), b.shape[1]), a.dtype), y[1:] + a.dtype.type(1), b[0, :-1]
    for k in range(len(b)):
        c = c + a[:, k : k + 1] * b[k]
    scale = top
    for k in range(1, len(b)):
        v = b[k, 1:] - low
        top = np.maximum(top, v * scale)
        low = v + b[k, 0] * a.dtype.type(0.5)
    h = np.broadcast_to(np.arange(len(a), dtype=np.int32)[:, None], c.shape)
    for k in range(len(x)):
        h = (h * np.int32(31) + x[k]) ^ np.int32(k)
    return c, np.concatenate([y[:1], top * scale + low]), h


SHAPES = [(1, 1, 1), (2, 3, 63), (3, 5, 64), (1, 40, 65), (5, 2, 1), (7, 1, 9), (3, 70, 200),
          (130, 33, 129)]


def run(arch, shape, dtype, **options):
    qd.init(arch=arch, default_fp=qd.f32 if dtype == np.float32 else qd.f64, **options)
    n, m, w = shape
    rng = np.random.default_rng(n * 1000 + w)
    a, b = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal((m, w)).astype(dtype)
    y, x = rng.standard_normal(w).astype(dtype), rng.integers(-9, 9, (m, w), dtype=np.int32)
    got = [np.zeros((n, w), dtype), y.copy(), np.zeros((n, w), np.int32)]
    matmul(a, b, got[0])
    columns(b, got[1], 1)
    whole(x, got[2])
    return (a, b, y, x), got


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["native", "interp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_as_one_by_one(shape, dtype, arch):
    inputs, got = run(arch, shape, dtype, fast_math=False)
    for x, y in zip(got, by_hand(*inputs)):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype):
    """R23: where a piece begins and how many lanes it leaves does not matter."""
    shape = (61, 300, 333)
    (a, b, *_), want = run(qd.cpu, shape, dtype, cpu_max_num_threads=1)
    for threads in (2, 3, 2, 5):
        for x, y in zip(run(qd.cpu, shape, dtype, cpu_max_num_threads=threads)[1], want):
            assert np.array_equal(x, y)
    qd.init(arch=qd.cpu)
    for j in range(0, 333, 7):  # a column by itself
        c = np.zeros((61, 1), dtype)
        matmul(a, np.ascontiguousarray(b[:, j : j + 1]), c)
        assert np.array_equal(c[:, 0], want[0][:, j])


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp], ids=["native", "interp"])
@pytest.mark.parametrize("shape", [(2, 1), (9, 63), (20, 64), (30, 150)])
def test_each_row_needs_the_one_above(shape, arch):
    qd.init(arch=arch, fast_math=False)
    x = np.random.default_rng(shape[1]).random(shape, dtype=np.float32)
    a, want = x[:, 0].copy(), x.copy()
    for k in range(1, shape[0]):
        want[k] -= a[k] * want[k - 1]
    sweep(x, a)
    assert np.array_equal(x, want)


@qd.kernel
def oscillate(x: F1, p: F1, n: qd.i32, y: F1):
    """A recurrence: no array is read in the serial loop but what is the same for all columns."""
    for i in range(1, x.shape[0]):
        a, v = x[i], x[i - 1]
        for t in range(n):
            v += 0.01 * (-p[0] * a - p[1] * v)
            a += 0.01 * v
        y[i] = a * v


@pytest.mark.parametrize("width", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("steps", [0, 1, 33, 100])
def test_recurrences(width, steps):
    rng = np.random.default_rng(width)
    x, p = rng.random(width).astype(np.float32), np.array([2.0, 0.1], np.float32)
    found = {}
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, fast_math=False)
        y = np.zeros(width, np.float32)
        oscillate(x, p, steps, y)
        found[arch] = y
    a, v = x[1:].copy(), x[:-1].copy()
    for _ in range(steps):
        v += np.float32(0.01) * (-p[0] * a - p[1] * v)
        a += np.float32(0.01) * v
    assert np.array_equal(found[qd.cpu], found[qd.interp])
    assert np.allclose(found[qd.cpu][1:], a * v, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n, m, w", [(1, 70, 130), (37, 40, 257), (129, 33, 64), (300, 50, 300), (5, 0, 200)])
def test_rows_pass_by_blocks_of_columns(target, n, m, w):
    """Each element is what it was: whole rows, rows that a piece begins or ends within, and what is left of them."""
    matrix = qd.types.ndarray(qd.i32, 2)

    @qd.kernel
    def product(a: matrix, b: matrix, c: matrix):
        for i, j in qd.ndrange((1, a.shape[0] - 1), (3, b.shape[1] - 2)):
            total = i
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j] - b[k, j - 3]
            c[i, j] = total * 2

    rng = np.random.default_rng(n)
    a, b = (rng.integers(-99, 99, shape).astype(np.int32) for shape in ((n + 2, m), (m, w + 5)))
    c = np.full((n + 2, w + 5), 7, np.int32)
    want = c.copy()
    want[1:-1, 3:-2] = 2 * (a[1:-1] @ b[:, 3:-2] - b[:, :-5].sum(0) + np.arange(1, n + 1)[:, None])
    product(a, b, c)
    assert (c == want).all()
