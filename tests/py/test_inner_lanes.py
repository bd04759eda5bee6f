"""Serial loops over columns: which are taken through the loop inside side by side (LANES5 in src/pass/lanes.h), and
which updates of triangles are plain (ACCESS5 in src/ir/access.h). Each kernel is also run as Python."""

import numpy as np
import pytest

import ingot as qd

L1, L2 = qd.types.ndarray(qd.i64, 1), qd.types.ndarray(qd.i64, 2)
D2 = qd.types.ndarray(qd.f64, 2)
SIDE, PLAIN = "side by side", "plain updates"


def product(a: L2, b: L2, c: L2):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def sums(a: L2, b: L2, c: L2):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            t = c[i, j]
            for k in range(a.shape[1]):
                t = t * 3 + a[i, k] * b[k, j]
            c[i, j] = t - i


def mirrored(a: L2, b: L2, c: L2):
    for i in range(b.shape[1]):
        for j in range(i, b.shape[1]):
            c[i, j] = 0
            for k in range(b.shape[0]):
                c[i, j] += b[k, i] * b[k, j]
            c[i, j] //= 2
            c[j, i] = c[i, j]


def mirrored_below(a: L2, b: L2, c: L2):
    for i in range(b.shape[1]):
        for j in range(i):
            c[i, j] = 0
            for k in range(b.shape[0]):
                c[i, j] += b[k, i] * b[k, j]
            c[j, i] = c[i, j]


def in_place(a: L2, b: L2, c: L2):
    for i in range(1, c.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i % a.shape[0], k] * b[k, j]
            c[i, j] = c[i, j] + j


def one_thread(a: L2, b: L2, c: L2):
    for i in range(1):
        for j in range(b.shape[1]):
            t = b[0, j] * 0
            for k in range(b.shape[0]):
                t = t * 5 + b[k, j]
            c[0, j] = t + i


# ---- near misses: columns need each other ---------------------------------------------------------


def left(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(1, b.shape[1]):
            c[i, j] = c[i, j - 1] + 1
            for k in range(a.shape[1]):
                c[i, j] += a[i % a.shape[0], k] * b[k, j]


def right(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1] - 1):
            t = c[i, j + 1]
            for k in range(a.shape[1]):
                t = t * 3 + b[k, j]
            c[i, j] = t


def running(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        total = b[0, 0] * 0
        for j in range(b.shape[1]):
            t = b[0, j] * 0
            for k in range(a.shape[1]):
                t = t * 2 + b[k, j]
            total += t
            c[i, j] = total


def halves(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1]):
            t = c[i, j // 2]
            for k in range(a.shape[1]):
                t = t * 3 + b[k, j]
            c[i, j // 2] = t


def backwards(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1]):
            t = c[i, c.shape[1] - 1 - j]
            for k in range(a.shape[1]):
                t = t + 7 * b[k, j]
            c[i, j] = t


def twice(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1] // 2):
            t = c[i, j]
            for k in range(a.shape[1]):
                t = t * 3 + b[k, j]
            c[i, 2 * j] = t


def chosen(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1]):
            t = c[i, b[0, j] % 5]
            for k in range(a.shape[1]):
                t = t + b[k, j]
            c[i, b[0, j] % 5] = t


def whole_row(a: L2, b: L2, c: L2):
    for i in range(c.shape[0]):
        for j in range(b.shape[1]):
            t = c[i, j] * 0
            for k in range(j):
                t = t * 3 + c[i, k]
            c[i, j] = t % 1000


def reads_what_it_writes(a: L2, b: L2, c: L2):
    for i in range(1):
        for j in range(b.shape[1]):
            t = b[0, j] * 0
            for k in range(b.shape[0]):
                t = t * 5 + b[k, j]
            b[i, (j * 7) % b.shape[1]] = t % 1000


def transposed_by_one(a: L2, b: L2, c: L2):
    for i in range(1):
        for j in range(b.shape[1]):
            t = c[j, 2]
            for k in range(b.shape[0]):
                t = t * 5 + b[k, j]
            c[3, j] = t % 1000


TAKEN = [product, sums, mirrored, mirrored_below, in_place, one_thread]
LEFT = [left, right, running, halves, backwards, twice, chosen, whole_row, reads_what_it_writes, transposed_by_one]


def inputs(n, m, w):
    rng = np.random.default_rng(n * 100 + w)
    size = max(n, w) + 4
    return [rng.integers(-9, 9, s) for s in ((n, m), (m, w), (size, size))]


def check(body, shape):
    a, b = inputs(*shape), inputs(*shape)
    kernel = qd.kernel(body)
    if body in (product, sums):
        a[2], b[2] = (np.ascontiguousarray(x[: shape[0], : shape[2]]) for x in (a[2], b[2]))
    with np.errstate(over="ignore"):
        body(*a)
    kernel(*b)
    for x, y in zip(a, b):
        assert np.array_equal(x, y), body.__name__
    return qd.explain(kernel, code=True)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 40, 63), (2, 33, 64), (5, 35, 65), (70, 34, 131)])
@pytest.mark.parametrize("body", TAKEN, ids=lambda f: f.__name__)
def test_columns_of_a_serial_loop(body, shape):
    qd.init(arch=qd.cpu)
    assert any(SIDE in line for line in check(body, shape))


@pytest.mark.parametrize("shape", [(3, 40, 63), (5, 35, 65), (7, 34, 131)])
@pytest.mark.parametrize("body", LEFT, ids=lambda f: f.__name__)
def test_columns_that_need_each_other(body, shape):
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    assert not any(SIDE in line for line in check(body, shape))


def test_arrays_that_overlap():
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    x = np.random.default_rng(1).integers(-9, 9, 9000)
    y = x.copy()
    kernel = qd.kernel(product)
    kernel(*(x[k : k + 4900].reshape(70, 70) for k in (0, 2000, 4001)))
    with np.errstate(over="ignore"):
        product(*(y[k : k + 4900].reshape(70, 70) for k in (0, 2000, 4001)))
    assert np.array_equal(x, y)


MOST = 2**31 - 1


@pytest.mark.parametrize("first, end", [(MOST, -MOST - 1), (MOST, -5), (5, 2), (7, 7), (-3, 90)])
def test_columns_from_anywhere(first, end):
    """Also where there are none: the distance of the two is no i32 then."""

    @qd.kernel
    def between(b: L2, c: L2, first: qd.i32, end: qd.i32):
        for i in range(c.shape[0]):
            for j in range(first, end):
                t = b[0, 0] * 0
                for k in range(b.shape[0]):
                    t = t * 3 + b[k, j + 3]
                c[i, j + 3] = t

    qd.init(arch=qd.cpu)
    b, c = inputs(1, 40, 100)[1], np.full((2, 100), 7)
    between(b, c, first, end)
    want = np.full((2, 100), 7)
    for j in range(first, end):
        want[:, j + 3] = np.polyval(b[:, j + 3], 3)  # wraps, as the kernel does
    assert np.array_equal(c, want)
    assert any(SIDE in line for line in qd.explain(between, code=True))


@pytest.mark.parametrize("n", [1, 50, 64, 100, 200])
def test_floats_have_the_same_bits(n):
    """Each column adds up in its order, however many there are."""

    def floats(a: D2, b: D2, c: D2):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                c[i, j] = 0.0
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    qd.init(arch=qd.cpu, fast_math=False)
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((3, 80)), rng.standard_normal((80, n))
    c, want = np.zeros((3, n)), np.zeros((3, n))
    qd.kernel(floats)(a, b, c)
    for k in range(80):
        want += a[:, k : k + 1] * b[k]
    assert np.array_equal(c, want)


# ---- updates of triangles ---------------------------------------------------------------------------


N = 90


def of_any_size(c: D2):
    for i in range(c.shape[0]):
        for j in range(i + 1, c.shape[0]):
            c[i, j] += j
            c[j, i] -= i


def of_any_size_below(c: D2):
    for i in range(c.shape[0]):
        for j in range(i + 1):
            c[i, j] += j
            c[j, i] -= i


def upper(c: D2):
    for i in range(N):
        for j in range(i, N):
            c[i, j] += j
            c[j, i] -= i


def upper_from_next(c: D2):
    for i in range(N):
        for j in range(i + 1, N):
            c[i, j] += j
            c[j, i] -= i


def lower(c: D2):
    for i in range(N):
        for j in range(i + 1):
            c[j, i] += j
            c[i, j] = i


def one_too_early(c: D2):
    for i in range(1, N):
        for j in range(i - 1, N):
            c[i, j] += j
            c[j, i] -= i


def one_too_far(c: D2):
    for i in range(N - 1):
        for j in range(i + 2):
            c[i, j] += j
            c[j, i] -= i


def shifted(c: D2):
    for i in range(1, N - 1):
        for j in range(i, N - 1):
            c[i, j] += j
            c[j - 1, i] -= i


def all_of_it(c: D2):
    for i in range(N):
        for j in range(N):
            c[i, j] += j
            c[j, i] -= i


def two_triangles(c: D2):
    for i in range(N):
        for j in range(i, N):
            c[i, j] += j
        for k in range(i + 1):
            c[k, i] -= i


@pytest.mark.parametrize("body, plain", [(of_any_size, True), (of_any_size_below, True), (upper, True), (upper_from_next, True), (lower, True), (one_too_early, False),
                                         (one_too_far, False), (shifted, False), (all_of_it, False),
                                         (two_triangles, False)], ids=lambda f: getattr(f, "__name__", ""))
def test_triangles(body, plain):
    qd.init(arch=qd.cpu)
    a = np.random.default_rng(3).integers(-9, 9, (N, N)).astype(np.float64)
    b = a.copy()
    kernel = qd.kernel(body)
    kernel(a)
    body(b)
    assert np.array_equal(a, b)
    said = [line for line in qd.explain(kernel, code=True) if ": c: " in line]
    assert said and all((PLAIN in line) == plain for line in said)


def test_a_triangle_whose_bound_wraps():
    """i is negative, and j counts from 2**32 - 6 up to it as a number of 32 bits: no bound that j stays below."""

    @qd.kernel
    def wrapped(c: D2, end: qd.i32):
        for i in range(-3, end):
            for j in range(qd.i64(4294967290), qd.cast(qd.cast(i, qd.u32) + qd.cast(1, qd.u32), qd.i64)):
                c[i + 3, j - 4294967290] += 1.0
                c[j - 4294967290, i + 3] -= 2.0

    qd.init(arch=qd.cpu)
    c, want = np.zeros((6, 6)), np.zeros((6, 6))
    wrapped(c, 0)
    for i in range(2):
        want[i, : 4 + i] += 1
        want[: 4 + i, i] -= 2
    assert np.array_equal(c, want)
    said = [line for line in qd.explain(wrapped, code=True) if ": c: " in line]
    assert said and not any(PLAIN in line for line in said)
