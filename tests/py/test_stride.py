"""Loops that do something for every m-th index alone (src/pass/stride.c): the same results as
written, whatever the bounds, and near misses."""

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
F1, F2 = Array(qd.f32, 1), Array(qd.f32, 2)


@pytest.fixture(autouse=True)
def exact(target):
    qd.init(fast_math=False)


@qd.kernel
def cells(p: F2, low: qd.i32, high: qd.i32):
    for colour in qd.static(range(2)):
        for i, j in qd.ndrange((1, p.shape[0] - 1), (low, high)):
            if (i + j) % 2 == colour:
                p[i, j] += 1.0 + p[i - 1, j] + p[i, j + 1] + colour


@qd.kernel
def fours(x: F1, begin: qd.i32, end: qd.i32, by: qd.i32):
    for i in range(begin, end):
        if (by - i) % 4 == 3:
            x[i + 50] = x[i + 50] * 2.0 + i


@qd.kernel
def others(x: F1, y: F1, c: qd.i32):
    for i in range(x.shape[0]):
        if i % 2 == c:
            x[i] += 1.0
    for i in range(x.shape[0]):
        if i % 3 == 1:
            x[i] += 10.0
    for i in range(x.shape[0]):
        if i % 2 == 1:
            x[i] += 100.0
        else:
            x[i] -= 1.0
    for i in range(x.shape[0]):
        x[i] += 2.0
        if i % 2 == 0:
            x[i] += 1000.0
    for i in range(x.shape[0]):
        if i % 2 == 0:
            y[0] += x[i]
    for i in range(x.shape[0]):
        if i * c % 2 == 0:
            x[i] += 4.0
    for i in range(x.shape[0]):
        if i % 2 == 5:
            x[i] += 7.0


def test_cells():
    for shape in [(3, 3), (9, 10), (20, 70)]:
        for low, high in ((1, shape[1] - 1), (0, shape[1] - 1), (2, 2), (5, 3)):
            p = np.random.default_rng(3).integers(0, 5, shape).astype("f4")
            want = p.copy()
            for colour in range(2):
                old = want.copy()
                for i in range(1, shape[0] - 1):
                    for j in range(low, high):
                        if (i + j) % 2 == colour:
                            want[i, j] += 1 + old[i - 1, j] + old[i, j + 1] + colour
            cells(p, low, high)
            assert (p == want).all()


def test_bounds():
    for begin, end in ((0, 0), (5, 2), (0, 1), (-50, 50), (-7, 6), (-3, -2), (3, 50)):
        for by in (-9, 0, 1, 2, 3, 2**31 - 1, -(2**31)):
            x = np.random.default_rng(4).integers(0, 9, 100).astype("f4")
            want = x.copy()
            for i in range(begin, end):
                if (by - i) % 4 == 3:
                    want[i + 50] = want[i + 50] * 2 + i
            fours(x, begin, end, by)
            assert (x == want).all()


def test_near_misses():
    for n in (0, 1, 2, 30):
        for c in (0, 1, 2):
            x, y = np.zeros(n, "f4"), np.zeros(1, "f4")
            i = np.arange(n)
            want = (i % 2 == c) + 10.0 * (i % 3 == 1) + np.where(i % 2, 100, -1) + 2 + 1000.0 * (i % 2 == 0)
            total = want[i % 2 == 0].sum()
            want += 4 * (i * c % 2 == 0)
            others(x, y, c)
            assert (x == want).all() and y[0] == total


def test_random_numbers_stay_the_same():
    @qd.kernel
    def draw(x: F1):
        for i in range(x.shape[0]):
            if i % 2 == 1:
                x[i] = qd.random()

    seen = set()
    for threads in (1, 2, 4):
        qd.init(random_seed=3, cpu_max_num_threads=threads)
        x = np.zeros(20_001, "f4")
        draw(x)
        assert not x[::2].any() and len(np.unique(x[1::2])) > 9000
        seen.add(x.tobytes())
    assert len(seen) == 1


def steps(dtype, m, kind):
    """A kernel that writes every m-th cell, and the same in NumPy: `old` is what the loop reads."""
    A = Array(dtype, 2)

    @qd.kernel
    def own(p: A, r: A, low: qd.i32, high: qd.i32):
        for i, j in qd.ndrange(p.shape[0], (low, high)):
            if (i + j) % m == 1:
                p[i, j] = p[i, j] * 3 + r[i, j - 1]

    @qd.kernel
    def ahead(p: A, r: A, low: qd.i32, high: qd.i32):
        for i, j in qd.ndrange(p.shape[0], (low, high)):
            if (i + j) % m == 1:
                p[i, j + 1] = p[i, j] + r[i, j] + r[i, j + 1]

    @qd.kernel
    def two(p: A, r: A, low: qd.i32, high: qd.i32):
        for i, j in qd.ndrange(p.shape[0], (low, high)):
            if (i + j) % m == 1:
                p[i, j] = r[i, j] - 1
                p[i, j + 1] = r[i, j + 1] + 1

    @qd.kernel
    def branch(p: A, r: A, low: qd.i32, high: qd.i32):
        for i, j in qd.ndrange(p.shape[0], (low, high)):
            if (i + j) % m == 1:
                if r[i, j] > 3:
                    p[i, j] = r[i, j]

    @qd.kernel
    def inner(p: A, r: A, low: qd.i32, high: qd.i32):
        for i, j in qd.ndrange(p.shape[0], (low, high)):
            if (i + j) % m == 1:
                for k in range(i):
                    p[i, j] += r[k, j]

    def model(p, r, low, high):
        for i in range(p.shape[0]):
            for j in range(low, high):
                if (i + j) % m == 1:
                    if kind == "own":
                        p[i, j] = p[i, j] * 3 + r[i, j - 1]
                    elif kind == "ahead":
                        p[i, j + 1] = p[i, j] + r[i, j] + r[i, j + 1]
                    elif kind == "two":
                        p[i, j], p[i, j + 1] = r[i, j] - 1, r[i, j + 1] + 1
                    elif kind == "branch" and r[i, j] > 3:
                        p[i, j] = r[i, j]
                    elif kind == "inner":
                        p[i, j] += r[:i, j].sum()

    return {"own": own, "ahead": ahead, "two": two, "branch": branch, "inner": inner}[kind], model


@pytest.mark.parametrize("kind", ["own", "ahead", "two", "branch", "inner"])
@pytest.mark.parametrize("m", [2, 4, 8, 16])
def test_vectors_of_steps(kind, m):
    rng = np.random.default_rng(m)
    for dtype, name in ((qd.f32, "f4"), (qd.f64, "f8"), (qd.i32, "i4"), (qd.i64, "i8")):
        kernel, model = steps(dtype, m, kind)
        for low, high in ((1, 98), (2, 97), (1, 1 + m), (3, 40), (50, 50), (17, 18)):
            p, r = (rng.integers(0, 7, (5, 100)).astype(name) for _ in range(2))
            want = p.copy()
            model(want, r, low, high)
            kernel(p, r, low, high)
            assert (p == want).all(), (name, low, high)


def test_threads_change_no_bit():
    """Of sums in a checkerboard: vectors and what is left of a row add up alike."""
    @qd.kernel
    def relax(p: F2, rhs: F2):
        for colour in qd.static(range(2)):
            for i, j in qd.ndrange((1, p.shape[0] - 1), (1, p.shape[1] - 1)):
                if (i + j) % 2 == colour:
                    new = 0.25 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - rhs[i, j])
                    p[i, j] += 1.5 * (new - p[i, j])

    seen = set()
    for threads in (1, 2, 3, 4):
        qd.init(cpu_max_num_threads=threads)
        rng = np.random.default_rng(5)
        p, rhs = (rng.random((301, 503)).astype("f4") for _ in range(2))
        relax(p, rhs)
        seen.add(p.tobytes())
    assert len(seen) == 1
