"""Two serial loops that change places (src/pass/swap.c): which do, and that the results are those of the text."""

import numpy as np
import pytest

import ingot as qd

L2, D2 = qd.types.ndarray(qd.i64, 2), qd.types.ndarray(qd.f64, 2)
INSIDE = "runs inside of the next loop"


def triangle(a: L2, c: L2):
    for i in range(a.shape[0]):
        for j in range(i + 1):
            c[i, j] *= 3
        for k in range(a.shape[1]):
            for j in range(i + 1):
                c[i, j] += 2 * a[i, k] * a[j, k]


def scaled(a: L2, c: L2):
    for i in range(a.shape[0]):
        for k in range(1, a.shape[1]):
            t = a[i, k] * 5
            for j in range(2, a.shape[0]):
                c[i, j] = c[i, j] * 3 + t * a[j, k]


def transposed(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                c[j, i] += a[j, k]


def its_own_row(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                c[i, j] += a[j, k] * c[i, k]


def itself(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1] - 1):
            for j in range(a.shape[0]):
                a[j, k] = a[j, k] + a[j, k + 1] * 2


def downwards(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1] - 1):
            for j in range(a.shape[0] - 1):
                a[j, k] = a[j + 1, k] * 2 + a[j, k]


def diagonal(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                c[i, j + k] = c[i, j + k] * 3 + a[j, k]


def one_place(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                c[i, 0] = c[i, 0] * 3 + a[j, k]


def growing(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(k):
                c[i, j] = c[i, j] * 3 + a[j % a.shape[0], k]


def after(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                c[i, j] = c[i, j] * 3 + a[j, k]
            c[i, 1] = k


def before(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            c[i, 1] = k
            for j in range(a.shape[0]):
                c[i, j] = c[i, j] * 3 + a[j, k]


def leaves(a: L2, c: L2):
    for i in range(1):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                if a[j, k] == 7:
                    break
                c[i, j] = c[i, j] * 3 + a[j, k]


def keeps_a_local(a: L2, c: L2):
    for i in range(1):
        t = a[0, 0]
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                t = t * 3 + a[j, k]
                c[i, j] += t


@pytest.mark.parametrize("shape", [(1, 1), (5, 40), (70, 33), (131, 66)])
@pytest.mark.parametrize("body, swapped", [
    (triangle, True), (scaled, True), (transposed, True), (its_own_row, False), (itself, True), (downwards, False),
    (diagonal, False), (one_place, False), (growing, False), (after, False), (before, False), (leaves, False),
    (keeps_a_local, False)], ids=lambda f: getattr(f, "__name__", ""))
def test_results_are_those_of_the_text(body, swapped, shape):
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    rng = np.random.default_rng(shape[0])
    size = sum(shape) + 1
    a, c = rng.integers(-9, 9, shape), rng.integers(-9, 9, (size, size))
    want = a.copy(), c.copy()
    with np.errstate(over="ignore"):
        body(*want)
    kernel = qd.kernel(body)
    kernel(a, c)
    assert np.array_equal(a, want[0]) and np.array_equal(c, want[1])
    assert any(INSIDE in line for line in qd.explain(kernel, code=True)) == swapped


def test_arrays_that_overlap():
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    x = np.random.default_rng(1).integers(-9, 9, 9000)
    y = x.copy()
    qd.kernel(triangle)(*(x[k : k + 4900].reshape(70, 70) for k in (0, 2001)))
    with np.errstate(over="ignore"):
        triangle(*(y[k : k + 4900].reshape(70, 70) for k in (0, 2001)))
    assert np.array_equal(x, y)


@pytest.mark.parametrize("fast", [True, False])
def test_floats(fast):
    """Sums of floats are chains once the loops changed places: under fast math alone."""

    def product(a: D2, c: D2):
        for i in range(a.shape[0]):
            for k in range(a.shape[1]):
                for j in range(a.shape[0]):
                    c[i, j] += a[i, k] * a[j, k]

    qd.init(arch=qd.cpu, fast_math=fast)
    a = np.random.default_rng(2).standard_normal((40, 70))
    c, want = np.zeros((40, 40)), np.zeros((40, 40))
    kernel = qd.kernel(product)
    kernel(a, c)
    for k in range(70):
        want += a[:, k : k + 1] * a[:, k]
    assert np.allclose(c, want, rtol=1e-12, atol=1e-12) if fast else np.array_equal(c, want)
    assert any(INSIDE in line for line in qd.explain(kernel, code=True)) == fast
