"""Serial loops over several axes: each axis becomes a loop (src/pass/shape.c), in the order of the text. Results are those
of the body as Python runs it."""

import itertools

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
EXTENTS = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 5, 7), (4, 1, 3), (5, 6, 1), (2, 3, 9)]


@qd.kernel
def order(out: Array(qd.i64, 1), a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
    n = 0
    qd.loop_config(serialize=True)
    for i, j, k in qd.ndrange(a, (1, b + 1), (-c, 0)):
        out[n] = (i * 100 + j) * 100 + k
        n += 1
    return n


@qd.kernel
def skips(out: Array(qd.i64, 1), a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
    n = 0
    qd.loop_config(serialize=True)
    for i, j, k in qd.ndrange(a, (1, b + 1), (-c, 0)):
        if (i + j + k) % 3 == 0:
            continue
        for m in range(3):
            if m == 1:
                break
        out[n] = (i * 100 + j) * 100 + k
        n += 1
    return n


@qd.kernel
def leaves(out: Array(qd.i64, 1), a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
    n = 0
    qd.loop_config(serialize=True)
    for i, j, k in qd.ndrange(a, (1, b + 1), (-c, 0)):
        if n == 7:
            if k % 2 == 0:
                break
        out[n] = (i * 100 + j) * 100 + k
        n += 1
    return n


@qd.func
def fill(out: qd.template(), a, b, c):
    n = 0
    for i, j, k in qd.ndrange(a, (1, b + 1), (-c, 0)):
        if i == 1 and k == -2:
            continue
        out[n] = (i * 100 + j) * 100 + k
        n += 1
    return n


@qd.kernel
def by_func(out: Array(qd.i64, 1), a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
    return fill(out, a, b, c)


def places(kernel, a, b, c):
    found = []
    for i, j, k in itertools.product(range(a), range(1, b + 1), range(-c, 0)):
        if kernel is skips and (i + j + k) % 3 == 0:
            continue
        if kernel is leaves and len(found) == 7 and k % 2 == 0:
            break
        if kernel is by_func and i == 1 and k == -2:
            continue
        found.append((i * 100 + j) * 100 + k)
    return found


@pytest.mark.parametrize("kernel", [order, skips, leaves, by_func], ids=lambda k: k.__name__)
def test_places_in_order(target, kernel):
    out = np.zeros(100, np.int64)
    for extents in EXTENTS:
        assert list(out[: kernel(out, *extents)]) == places(kernel, *extents)


def test_empty_inner_axis_is_not_counted_to(target):
    """2**62 iterations of a loop around none."""

    @qd.kernel
    def k(n: qd.i32, m: qd.i32) -> qd.i32:
        found = 0
        for _ in range(1):
            for i, j, h in qd.ndrange(n, n, m):
                found += 1
        return found

    assert k(2**31 - 1, 0) == k(2**31 - 1, -5) == 0 and k(3, 2) == 18


def test_one_place_and_constants(target):
    @qd.kernel
    def k(out: Array(qd.i32, 1)) -> qd.i32:
        n = 0
        for _ in range(1):
            for i, j, h in qd.ndrange((4, 5), (2, 5), (7, 8)):
                out[n] = i * 100 + j * 10 + h
                n += 1
            for i, j in qd.ndrange((4, 5), (6, 7)):
                out[n] = i * 10 + j
                n += 1
            for i, j in qd.ndrange((2147483645, 2147483647), 2):
                out[n] = i - j
                n += 1
        return n

    out = np.zeros(20, np.int32)
    n = k(out)
    assert list(out[:n]) == [427, 437, 447, 46, 2147483645, 2147483644, 2147483646, 2147483645]


def test_numbers_and_bounds_of_before(target):
    """Bounds are those of when the loop began; grouped indices, wide ones."""

    @qd.kernel
    def k(x: Array(qd.i32, 2), out: Array(qd.i64, 1), far: qd.i64) -> qd.i32:
        n = 0
        m = 2
        for _ in range(1):
            for i, j in qd.ndrange(m, (far, far + m)):
                m = 7
                out[n] = j * 10 + i
                n += 1
            for I in qd.grouped(qd.ndrange(x.shape[0], x.shape[1])):
                x[I] += n
                n += I[1]
        return n

    x, out = np.zeros((3, 4), np.int32), np.zeros(9, np.int64)
    far = 2**40
    assert k(x, out, far) == 4 + 3 * 6
    assert list(out[:4]) == [10 * far, 10 * far + 10, 10 * far + 1, 10 * far + 11]
    assert x.tolist() == [[4, 4, 5, 7], [10, 10, 11, 13], [16, 16, 17, 19]]


@pytest.mark.parametrize("threads", [1, 2])
def test_inside_of_a_parallel_loop(target, threads):
    """Each iteration has nests of its own, also with sums that must keep their order."""
    qd.init(cpu_max_num_threads=threads, fast_math=False)

    @qd.kernel
    def k(x: Array(qd.f32, 3), y: Array(qd.f32, 1)):
        for b in range(x.shape[2]):
            for i, j in qd.ndrange(x.shape[0], x.shape[1]):
                if x[i, j, b] > 0.5:
                    y[b] = y[b] * 0.5 + x[i, j, b]

    x = np.random.default_rng(3).random((5, 6, 40), np.float32)
    y, want = np.zeros(40, np.float32), np.zeros(40, np.float32)
    k(x, y)
    for i, j in itertools.product(range(5), range(6)):
        took = x[i, j] > 0.5
        want[took] = want[took] * np.float32(0.5) + x[i, j][took]
    np.testing.assert_array_equal(y, want)


def test_random_numbers_are_those_of_one_loop(target):
    """What a serial loop draws does not depend on how many axes it has."""

    @qd.kernel
    def flat(out: Array(qd.f32, 1)):
        for _ in range(1):
            for i in range(12):
                out[i] = qd.random(qd.f32)

    @qd.kernel
    def nested(out: Array(qd.f32, 1)):
        for _ in range(1):
            for i, j in qd.ndrange(3, 4):
                out[i * 4 + j] = qd.random(qd.f32)

    a, b = np.zeros(12, np.float32), np.ones(12, np.float32)
    for kernel, out in ((flat, a), (nested, b)):
        qd.init(random_seed=5)
        kernel(out)
    np.testing.assert_array_equal(a, b)
