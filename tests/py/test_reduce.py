"""Sums, extremes and bit operations of a whole loop into one place: right, accurate, and the
same at every number of threads."""

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
Array = qd.types.ndarray


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def array(values):
    a = qd.ndarray({"f": qd.f32, "d": qd.f64, "i": qd.i32, "l": qd.i64}[values.dtype.char],
                   values.shape)
    a.from_numpy(values)
    return a


@qd.kernel
def total(x: Array(ndim=1), s: Array(ndim=1)):
    for i in range(x.shape[0]):
        s[0] += x[i]


@qd.kernel
def total_of_local(x: Array(qd.f32, 2)) -> qd.f32:
    s = 0.0
    for i, j in x:
        s += x[i, j]
    return s


@qd.kernel
def extremes(x: Array(ndim=1), low: Array(ndim=1), high: Array(ndim=1)):
    for i in range(x.shape[0]):
        qd.atomic_min(low[0], x[i])
        qd.atomic_max(high[0], x[i])


@qd.kernel
def bits(x: Array(qd.i32, 1), both: Array(qd.i32, 1), some: Array(qd.i32, 1), odd: Array(qd.i32, 1)):
    for i in range(3, x.shape[0]):
        qd.atomic_and(both[0], x[i])
        if x[i] % 2 == 0:
            qd.atomic_or(some[0], x[i])
        qd.atomic_xor(odd[0], x[i])


@qd.kernel
def some(x: Array(qd.f32, 1), s: Array(qd.f32, 1), limit: qd.f32):
    for i in range(x.shape[0]):
        if x[i] > limit:
            s[0] += x[i]
            s[1] -= x[i]


@qd.kernel
def moments(x: Array(qd.f32, 1), m: Array(qd.types.vector(3, qd.f32), 1)):
    for i in range(x.shape[0]):
        m[0] += qd.Vector([1.0, x[i], x[i] * x[i]])


@qd.kernel
def hits(n: qd.i32) -> qd.i32:
    c = 0
    for i in range(n):
        x, y = qd.random(qd.f32), qd.random(qd.f32)
        if x * x + y * y < 1.0:
            c += 1
    return c


@qd.kernel
def long_rows(n: qd.i32, s: Array(qd.f64, 1)):
    for i in range(n):
        for j in range(i):
            s[0] += 1.0 / (i + j)


@qd.kernel
def sees_own(x: Array(qd.i32, 1), s: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += 1
        x[i] = s[0]


@qd.kernel
def old_values(x: Array(qd.i32, 1), s: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        x[i] = qd.atomic_add(s[0], 1)


def size(target, n):
    return n if target == "native" else min(n, 9000)


@pytest.mark.after_passes
@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 100_003])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_total(n, dtype, target):
    n = size(target, n)
    x = (np.random.default_rng(n).random(n) * 100).astype(dtype)
    s = array(np.array([7], dtype))
    total(array(x), s)
    want = x.astype("f8" if dtype[0] == "f" else "i8").sum() + 7
    assert s.to_numpy()[0] == pytest.approx(want, rel=1e-6 if dtype == "f4" else 1e-14)


def test_accurate():
    """A sum of one sign stays within 1e-6 of the exact one, where a running one is far off."""
    qd.init(arch=qd.cpu)
    x = np.random.default_rng(3).random(1 << 22, dtype=np.float32)
    s = array(np.zeros(1, "f4"))
    total(array(x), s)
    assert s.to_numpy()[0] == pytest.approx(x.astype("f8").sum(), rel=2e-7)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5000), (5000, 3), (0, 4), (91, 97)])
def test_local_over_two_axes(shape, target):
    if target == "interp":
        shape = tuple(min(n, 95) for n in shape)
    x = np.random.default_rng(1).random(shape, dtype=np.float32)
    assert total_of_local(array(x)) == pytest.approx(x.astype("f8").sum(), rel=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_extremes(dtype, target):
    x = ((np.random.default_rng(5).random(size(target, 20_000)) - 0.5) * 1e4).astype(dtype)
    low, high = array(np.array([-3], dtype)), array(np.array([3], dtype))
    extremes(array(x), low, high)
    assert low.to_numpy()[0] == x.min() and high.to_numpy()[0] == x.max()
    low, high = array(np.array([-10**5], dtype)), array(np.array([10**5], dtype))
    extremes(array(x), low, high)
    assert low.to_numpy()[0] == -10**5 and high.to_numpy()[0] == 10**5


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_extremes_of_one_sign(dtype, sign, target):
    """What a lane begins with is not among the values, nor is 0."""
    x = sign * np.random.default_rng(5).integers(7, 900, size(target, 5000)).astype(dtype)
    low, high = array(np.array([10**5], dtype)), array(np.array([-10**5], dtype))
    extremes(array(x), low, high)
    assert low.to_numpy()[0] == x.min() and high.to_numpy()[0] == x.max()


def test_bits(target):
    x = np.random.default_rng(6).integers(-2**31, 2**31, size(target, 10_000)).astype("i4") | 64
    both, any_, odd = (array(np.array([v], "i4")) for v in (-1, 0, 12345))
    bits(array(x), both, any_, odd)
    y = x[3:]
    assert both.to_numpy()[0] == np.bitwise_and.reduce(y)
    assert any_.to_numpy()[0] == np.bitwise_or.reduce(y[y % 2 == 0])
    assert odd.to_numpy()[0] == np.bitwise_xor.reduce(y) ^ 12345


def test_nothing_added_changes_nothing():
    """Not even the sign of zero, nor a NaN."""
    x = array(np.ones(5000, "f4"))
    s = array(np.array([-0.0, np.nan], "f4"))
    some(x, s, 2.0)
    assert np.signbit(s.to_numpy()[0]) and np.isnan(s.to_numpy()[1])
    some(x, s, 0.0)
    assert s.to_numpy()[0] == 5000.0


@pytest.mark.after_passes
def test_vector(target):
    x = np.random.default_rng(7).random(size(target, 50_000), dtype=np.float32)
    m = qd.ndarray(qd.types.vector(3, qd.f32), 1)
    moments(array(x), m)
    y = x.astype("f8")
    np.testing.assert_allclose(m.to_numpy()[0], [len(x), y.sum(), (y * y).sum()], rtol=1e-6)


def test_random_numbers_stay_the_same():
    counts = []
    for threads, arch in ((1, qd.cpu), (2, qd.cpu), (1, qd.interp)):
        qd.init(arch=arch, cpu_max_num_threads=threads, random_seed=5)
        counts.append(hits(20_000))
    assert len(set(counts)) == 1 and 15_400 < counts[0] < 16_000


def test_same_at_every_number_of_threads():
    x = (np.random.default_rng(8).random(300_007) - 0.5).astype("f4")
    seen, seen_long = set(), set()
    for k in range(100):
        if k in (0, 50):
            qd.init(arch=qd.cpu, cpu_max_num_threads=1 + (k > 0))
            data = array(x)
        s, t = array(np.zeros(1, "f4")), array(np.zeros(1, "f8"))
        total(data, s)
        long_rows(300, t)
        seen.add(s.to_numpy()[0].tobytes())
        seen_long.add(t.to_numpy()[0].tobytes())
    assert len(seen) == 1 and len(seen_long) == 1


@pytest.mark.after_passes
def test_native_equals_interpreter():
    """Without fast math the order of additions is the same, so every bit is."""
    x = (np.random.default_rng(9).random(10_007) - 0.5).astype("f4")
    out = []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, fast_math=False)
        s = array(np.zeros(1, "f4"))
        total(array(x), s)
        out.append((s.to_numpy().tobytes(), total_of_local(array(x[:9900].reshape(99, 100)))))
    assert out[0] == out[1]


def test_what_is_read_stays_atomic(target):
    n = size(target, 5000)
    x, s = array(np.zeros(n, "i4")), array(np.zeros(1, "i4"))
    old_values(x, s)
    assert sorted(x.to_numpy()) == list(range(n)) and s.to_numpy()[0] == n
    sees_own(x, s)
    assert s.to_numpy()[0] == 2 * n and x.to_numpy().min() > n


@qd.kernel
def sides(x: Array(ndim=1), n: Array(qd.i32, 1), s: Array(ndim=1)):
    for i in range(x.shape[0]):
        if x[i] > 0:
            n[0] += 1
            if x[i] > 4:
                s[0] += x[i]
            qd.atomic_max(s[2], x[i])
        else:
            n[1] += 1
            s[1] -= x[i]
            qd.atomic_min(s[3], x[i])


@qd.kernel
def sides_of_some(x: Array(ndim=1), n: Array(qd.i32, 1), s: Array(ndim=1)):
    """What ends an iteration early, and loops inside: updates stay where they are."""
    for i in range(x.shape[0]):
        if x[i] == 3:
            continue
        if x[i] > 0:
            n[0] += 1
            s[0] += x[i]
        for k in range(i % 3):
            if x[i] < k:
                n[1] += 1


@qd.kernel
def least(x: Array(qd.f32, 1), best: Array(qd.i64, 1), low: Array(qd.f32, 1), at: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        key = (qd.cast(qd.bit_cast(x[i], qd.i32), qd.i64) << 32) | qd.cast(i, qd.i64)
        qd.atomic_min(best[0], key)
        qd.atomic_min(low[0], x[i])
    for i in range(x.shape[0]):
        if x[i] == low[0]:
            qd.atomic_min(at[0], i)


@qd.kernel
def by_rows(x: Array(qd.f32, 2), s: Array(qd.f32, 1), n: Array(qd.i32, 1)):
    for i, j in x:
        s[0] += x[i, j]
        if x[i, j] > 0.0 and i != j:
            n[0] += 1
            s[1] += x[i, j] * x[i, j]


LENGTHS = [0, 1, 15, 16, 17, 31, 33, 63, 64, 65, 255, 4095, 4096, 4097, 9001]


@pytest.mark.after_passes
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_in_branches(dtype, target):
    for n in LENGTHS:
        x = np.random.default_rng(n).integers(-9, 9, size(target, n)).astype(dtype)
        count, s = array(np.array([5, 7], "i4")), array(np.array([1, 2, -100, 100], dtype))
        sides(array(x), count, s)
        up = x > 0
        assert count.to_numpy().tolist() == [5 + up.sum(), 7 + (~up).sum()]
        want = [1 + x[x > 4].sum(), 2 - x[~up].sum(), x[up].max(initial=-100), x[~up].min(initial=100)]
        assert s.to_numpy().tolist() == want
        count, s = array(np.array([5, 7], "i4")), array(np.array([1], dtype))
        sides_of_some(array(x), count, s)
        i, on = np.arange(len(x)), x != 3
        inner = sum((on & (k < i % 3) & (x < k)).sum() for k in range(2))
        assert count.to_numpy().tolist() == [5 + (up & on).sum(), 7 + inner]
        assert s.to_numpy()[0] == 1 + x[up & on].sum()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5000), (5000, 3), (0, 4), (70, 64), (64, 70), (9, 16)])
def test_branches_over_rows(shape, target):
    shape = size(target, shape[0]), size(target, shape[1])
    x = np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype("f4")
    s, n = array(np.zeros(2, "f4")), array(np.zeros(1, "i4"))
    by_rows(array(x), s, n)
    i, j = np.indices(shape)
    some = (x > 0) & (i != j)
    assert n.to_numpy()[0] == some.sum() and s.to_numpy().tolist() == [x.sum(), (x[some] ** 2).sum()]


def test_where_the_least_is(target):
    for n in LENGTHS[1:]:
        x = np.random.default_rng(n).integers(1, 1000, size(target, n)).astype("f4")
        best, low = array(np.array([(1 << 63) - 1])), array(np.array([1e9], "f4"))
        at = array(np.array([1 << 30], "i4"))
        least(array(x), best, low, at)
        assert low.to_numpy()[0] == x.min() and at.to_numpy()[0] == x.argmin()
        assert best.to_numpy()[0] & 0xFFFFFFFF == x.argmin()


@qd.kernel
def many(x: Array(qd.f32, 1), s: Array(qd.f32, 1), t: Array(qd.f64, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        s[1] += x[i] * x[i]
        if x[i] > 0.0:
            s[2] += 1.0 / x[i]
            t[0] += x[i]
        s[3] -= x[i] + 1.0


@pytest.mark.after_passes
def test_many_at_every_number_of_threads():
    """And, without fast math, as the interpreter: every bit."""
    x = (np.random.default_rng(8).random(40_007) - 0.5).astype("f4")
    for fast in (True, False):
        seen = set()
        for threads, arch in ((1, qd.cpu), (2, qd.cpu), (4, qd.cpu), (1, qd.interp)):
            if fast and arch == qd.interp:
                continue
            qd.init(arch=arch, cpu_max_num_threads=threads, fast_math=fast)
            s, t = array(np.zeros(4, "f4")), array(np.zeros(1, "f8"))
            many(array(x), s, t)
            seen.add((s.to_numpy().tobytes(), t.to_numpy().tobytes()))
        assert len(seen) == 1
