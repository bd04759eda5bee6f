"""What a serial loop updates is held in a local (src/pass/hold.c): the same results as written,
with arrays apart and with arrays that share memory, at the borders of arrays and in none."""

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
V2 = qd.types.vector(2, qd.f32)
F1, F2, I1 = Array(qd.f32, 1), Array(qd.f32, 2), Array(qd.i32, 1)


@pytest.fixture(autouse=True)
def exact(target):
    qd.init(fast_math=False)


def overlaps(kernel, *args):
    before = qd._core.counters()["launch_overlap"]
    kernel(*args)
    return qd._core.counters()["launch_overlap"] - before


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype("f4")


@qd.func
def weight(x):
    return x * 2.0 if x > 0.0 else x


@qd.kernel
def all_pairs(x: F1, out: Array(V2, 1), n: qd.i32):
    for i in range(out.shape[0]):
        for j in range(n):
            out[i] += qd.Vector([x[j] - i, weight(x[j])])


@qd.kernel
def rows(a: F2, x: F1, y: F1):
    for i in range(a.shape[0]):
        y[i] = 1.0
        for j in range(a.shape[1]):
            y[i] = y[i] + a[i, j] * x[j]


@qd.kernel
def some(x: F1, y: F1, n: qd.i32, limit: qd.f32):
    for i in range(n):
        for j in range(x.shape[0]):
            if x[j] < limit:
                continue
            y[i] += x[j]
            if x[j] > 8.0:
                break


@qd.kernel
def known(x: F1, y: F1):
    for i in y:
        for j in range(5):
            y[i] *= x[j]
            y[i] -= 1.0


@qd.kernel
def one_member(x: F1, out: Array(V2, 1)):
    """Iteration 0 updates one member of a vector, iteration 1 the other one."""
    for i in range(2):
        if i == 1:
            out[0][1] = 5.0
        for j in range(x.shape[0]):
            if i == 0:
                out[0][0] = x[j]


@qd.kernel
def sees_itself(x: F1, y: F1):
    for i in range(y.shape[0]):
        for j in range(x.shape[0]):
            y[i] += x[j]
            x[j] = x[j] - y[i]


def test_pairs():
    x = numbers(70)
    for n in (70, 3, 1, 0, -4):
        out = qd.ndarray(V2, 33)
        out.fill(2)
        all_pairs(x, out, n)
        y = x[: max(n, 0)]
        want = [[2 + (y - i).sum(), 2 + np.where(y > 0, 2 * y, y).sum()] for i in range(33)]
        assert np.array_equal(out.to_numpy(), np.array(want, "f4"))


def test_stored_and_loaded():
    a, x, y = numbers(40, 51), numbers(51), np.zeros(40, "f4")
    assert overlaps(rows, a, x, y) == 0
    assert np.array_equal(y, 1 + a @ x)


@pytest.mark.after_passes
@pytest.mark.parametrize("at", [(0, 0), (10, 30), (0, 39)], ids=str)
def test_arrays_that_share_memory(at):
    """The vector lies in the result, or overlaps it: each sum sees those before it."""
    qd.init(fast_math=False, cpu_max_num_threads=1)
    a, memory = numbers(20, 20) % 2, numbers(60) % 3
    want = memory.copy()
    x, y = want[at[0] :][:20], want[at[1] :][:20]
    for i in range(20):
        y[i] = 1
        for j in range(20):
            y[i] = y[i] + a[i, j] * x[j]
    apart = abs(at[0] - at[1]) >= 20
    assert overlaps(rows, a, memory[at[0] :][:20], memory[at[1] :][:20]) == (not apart)
    assert np.array_equal(memory, want)


def test_an_array_that_is_updated_beside():
    qd.init(fast_math=False, cpu_max_num_threads=1)
    x, y = numbers(6) % 2, numbers(4)
    wx, wy = x.copy(), y.copy()
    for i in range(4):
        for j in range(6):
            wy[i] += wx[j]
            wx[j] -= wy[i]
    assert overlaps(sees_itself, x, y) == 0
    assert np.array_equal(x, wx) and np.array_equal(y, wy)


def test_nothing_beyond_the_array_is_touched():
    """More iterations than elements, none of which updates: its neighbours in memory stay."""
    x, memory = numbers(30), np.full(64, np.nan, "f4")
    want = memory.copy()
    some(x, memory[20:24], 4000, 100.0)
    assert memory.tobytes() == want.tobytes()
    memory[20:24] = 3
    some(x, memory[20:24], 4, 1.0)
    good = x[x >= 1]
    last = np.flatnonzero(good > 8)
    assert np.array_equal(memory[20:24], [3 + good[: last[0] + 1 if len(last) else None].sum()] * 4)
    assert np.isnan(memory[:20]).all() and np.isnan(memory[24:]).all()


def test_loops_of_known_length():
    x, y = numbers(5) % 3, numbers(9)
    want = y.copy()
    for j in range(5):
        want = want * x[j] - 1
    known(x, y)
    assert np.array_equal(y, want)


def test_members_of_other_iterations():
    x, out = numbers(1000), qd.ndarray(V2, 1)
    for _ in range(50):
        out.fill(0)
        one_member(x, out)
        assert out.to_numpy().tolist() == [[x[-1], 5.0]]


# ---- elements that iterations of the parallel loop hold ---------------------------------------

V3 = qd.types.vector(3, qd.f32)
A3 = Array(V3, 1)


@qd.kernel
def bounce(x: A3, v: A3, early: qd.i32):
    for i in range(x.shape[0]):
        v[i] += 0.5 * (qd.Vector([0.0, -2.0, 4.0]) - v[i])
        x[i] += v[i]
        for k in qd.static(range(3)):
            if x[i][k] < 0.0:
                x[i][k] = 0.0
                v[i][k] = -2.0 * v[i][k]
            if x[i][k] > 8.0:
                x[i][k] = 8.0
                v[i][k] = -2.0 * v[i][k]


@qd.kernel
def bounce_some(x: A3, v: A3, early: qd.i32):
    """Iterations that end early hold nothing."""
    for i in range(x.shape[0]):
        v[i] += 0.5 * (qd.Vector([0.0, -2.0, 4.0]) - v[i])
        x[i] += v[i]
        if i % 3 == early:
            continue
        for k in qd.static(range(3)):
            if x[i][k] < 0.0:
                x[i][k] = 0.0
                v[i][k] = -2.0 * v[i][k]
            if x[i][k] > 8.0:
                x[i][k] = 8.0
                v[i][k] = -2.0 * v[i][k]


def bounced(x, v, keep):
    x, v = x.copy(), v.copy()
    v += np.float32(0.5) * (np.array([0, -2, 4], "f4") - v)
    x += v
    for low, limit in ((True, 0.0), (False, 8.0)):
        out = ((x < limit) if low else (x > limit)) & keep[:, None]
        x[out] = limit
        v[out] *= -2
    return x, v


def vectors(values):
    a = qd.Vector.ndarray(3, qd.f32, len(values))
    a.from_numpy(values)
    return a


def test_iterations_hold_their_elements():
    for n in (0, 1, 7, 8, 33, 1000):
        x0, v0 = numbers(n, 3), numbers(n, 3)[::-1].copy() * 2
        i = np.arange(n)
        for kernel, early, keep in ((bounce, 0, i >= 0), (bounce_some, 1, i % 3 != 1), (bounce_some, 5, i >= 0)):
            x, v = vectors(x0), vectors(v0)
            kernel(x, v, early)
            want_x, want_v = bounced(x0, v0, keep)
            assert (x.to_numpy() == want_x).all() and (v.to_numpy() == want_v).all()


@qd.kernel
def through_both(x: F1, y: F1):
    for i in range(x.shape[0]):
        x[i] += 1.0
        if y[i] > 2.0:
            x[i] = y[i] + 5.0
        y[i] = x[i] * 2.0
        if x[i] < 4.0:
            y[i] += 1.0


@qd.kernel
def its_own_and_next(x: F1, y: F1):
    for i in range(x.shape[0] - 1):
        y[i] = 1.0
        if x[i] > 0.0:
            y[i] = y[i] + x[i + 1]
        for k in range(3):
            if x[i] > k:
                y[i] += k


@qd.kernel
def parts(x: Array(V2, 1), y: F1):
    """Member 1 is written by some iterations alone."""
    for i in range(y.shape[0]):
        x[i][0] = y[i]
        if y[i] > 0.0:
            x[i][1] = y[i] + x[i][0]


def model_both(x, y):
    for i in range(len(x)):
        x[i] += 1
        if y[i] > 2:
            x[i] = y[i] + 5
        y[i] = x[i] * 2
        if x[i] < 4:
            y[i] += 1


def test_iterations_with_shared_memory():
    x, y = numbers(300), numbers(300, 1)[:, 0].copy()
    want_x, want_y = x.copy(), y.copy()
    model_both(want_x, want_y)
    assert overlaps(through_both, x, y) == 0
    assert (x == want_x).all() and (y == want_y).all()


@pytest.mark.host_memory
def test_iterations_of_one_array_by_two_names():
    x = numbers(300)
    want = x.copy()
    model_both(want, want)
    through_both(x, x)
    assert (x == want).all()


def test_iterations_that_hold_less():
    x, y = numbers(300), numbers(300) + 3
    want = y.copy()
    for i in range(299):
        want[i] = 1 + (x[i + 1] if x[i] > 0 else 0) + sum(k for k in range(3) if x[i] > k)
    its_own_and_next(x, y)
    assert (y == want).all()
    p = qd.Vector.ndarray(2, qd.f32, 300)
    before = numbers(300, 2)
    p.from_numpy(before)
    parts(p, x)
    want = np.stack([x, np.where(x > 0, 2 * x, before[:, 1])], 1)
    assert (p.to_numpy() == want).all()
