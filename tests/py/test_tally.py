"""Updates of integer arrays at places that the data choose: histograms and their kin. Threads
may update copies of a small array and put them together at the end (src/pass/tally.c); results
are those of NumPy, bit for bit, whoever ran which iteration and whether there were copies."""

import threading

import numpy as np
import pytest

import ingot as qd
from conftest import SEED, samples

Array = qd.types.ndarray
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
KINDS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
         "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.fixture(autouse=True)
def fresh(target):
    qd.init()


@qd.kernel
def count(x: Array(ndim=1), bins: Array(ndim=1)):
    for i in range(x.shape[0]):
        bins[x[i]] += 1


@qd.kernel
def update(x: Array(qd.i32, 1), v: Array(ndim=1), bins: Array(ndim=1), kind: qd.template()):
    for i in range(x.shape[0]):
        if qd.static(kind == "add"):
            bins[x[i]] += v[i]
        if qd.static(kind == "sub"):
            bins[x[i]] -= v[i]
        if qd.static(kind == "mul"):
            qd.atomic_mul(bins[x[i]], v[i])
        if qd.static(kind == "min"):
            qd.atomic_min(bins[x[i]], v[i])
        if qd.static(kind == "max"):
            qd.atomic_max(bins[x[i]], v[i])
        if qd.static(kind == "and"):
            qd.atomic_and(bins[x[i]], v[i])
        if qd.static(kind == "or"):
            qd.atomic_or(bins[x[i]], v[i])
        if qd.static(kind == "xor"):
            qd.atomic_xor(bins[x[i]], v[i])


def trips(target, n):
    return n if target == "native" else min(n, 6000)


def numbers(rng, dtype, n):
    """All bits of every number are random, so sums and products wrap."""
    return rng.integers(0, 256, (n, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype).ravel()


def places(rng, bins, n):
    return rng.integers(0, bins, n, dtype=np.int32)


def expected(kind, start, x, v):
    """`start` after the updates, as NumPy makes them one by one."""
    bins = start.copy()
    with np.errstate(over="ignore"):
        KINDS[kind].at(bins, x, v)
    return bins


@pytest.mark.filterwarnings("ignore:.*may lose precision")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_kinds(kind, dtype, target):
    rng = np.random.default_rng([SEED, INTEGERS.index(dtype), list(KINDS).index(kind)])
    for bins, n in (40, 30_011), (40, 101), (3, 700):
        n = trips(target, n)
        x, v, start = places(rng, bins, n), numbers(rng, dtype, n), numbers(rng, dtype, bins)
        got = start.copy()
        update(x, v, got, kind)
        assert np.array_equal(got, expected(kind, start, x, v))


@pytest.mark.parametrize("bins", [0, 1, 2, 255, 256, 70_000, 300_000])
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 400_000])
def test_sizes(bins, n, target):
    """From none to more than is copied."""
    n = trips(target, n) if bins else 0
    x, got = places(np.random.default_rng(n), max(bins, 1), n), np.zeros(bins, "i4")
    for k in range(1, 3):
        count(x, got)
        assert np.array_equal(got, k * np.bincount(x, minlength=bins))


def test_threads(target):
    """The same on one thread, on two and on five."""
    rng = np.random.default_rng(SEED)
    n = trips(target, 200_000)
    x, v, start = places(rng, 99, n), numbers(rng, "int64", n), numbers(rng, "int64", 99)
    for threads in 1, 2, 5:
        qd.init(cpu_max_num_threads=threads)
        for kind in KINDS:
            got = start.copy()
            update(x, v, got, kind)
            assert np.array_equal(got, expected(kind, start, x, v)), (threads, kind)


@qd.kernel
def mixed(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), low: Array(qd.i64, 1), total: Array(qd.i64, 1),
          mean: Array(qd.f64, 1)):
    for i in range(1, x.shape[0]):
        bins[x[i]] += 1
        bins[x[i - 1]] -= 2
        bins[0] += 5
        qd.atomic_min(low[x[i] % 7], qd.i64(i) * x[i])
        total[0] += x[i]
        mean[x[i]] += 0.5


def test_several_arrays(target):
    """Two tallies, a sum of one place and floats, which stay atomic, in one loop."""
    n = trips(target, 50_000)
    x = places(np.random.default_rng(SEED), 100, n)
    bins, low = np.zeros(100, "i4"), np.full(7, 1 << 40)
    total, mean = np.zeros(1, "i8"), np.zeros(100)
    mixed(x, bins, low, total, mean)
    want = np.bincount(x[1:], minlength=100) - 2 * np.bincount(x[:-1], minlength=100)
    want[0] += 5 * (n - 1)
    least = np.full(7, 1 << 40)
    np.minimum.at(least, x[1:] % 7, np.arange(1, n) * x[1:].astype("i8"))
    assert np.array_equal(bins, want) and np.array_equal(low, least)
    assert total[0] == x[1:].sum() and np.array_equal(mean, np.bincount(x[1:], minlength=100) / 2)


@qd.kernel
def many(x: Array(qd.i32, 1), a: Array(qd.i32, 1), b: Array(qd.i32, 1), c: Array(qd.i32, 1),
         d: Array(qd.i32, 1), e: Array(qd.i32, 1), f: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        a[x[i]] += 1
        b[x[i]] += 2
        c[x[i]] += 3
        d[x[i]] += 4
        e[x[i]] += 5
        f[x[i]] += 6


def test_more_arrays_than_are_tallied(target):
    x = places(np.random.default_rng(SEED), 50, trips(target, 20_000))
    arrays = [np.zeros(50, "i4") for _ in range(6)]
    many(x, *arrays)
    for k, a in enumerate(arrays, 1):
        assert np.array_equal(a, k * np.bincount(x, minlength=50))


@qd.kernel
def pairs(x: Array(qd.i32, 2), grid: Array(ndim=2), steps: qd.i32):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        for k in range(steps):
            if x[i, j] != 5:
                grid[x[i, j], k % 3] += 1


def test_axes_and_inner_loops(target):
    """A table of two axes, in both layouts, updated in an inner loop over rows of the input."""
    x = places(np.random.default_rng(SEED), 20, 12_000).reshape(60, 200)
    want = np.bincount(x.ravel(), minlength=20)[:, None] * np.array([2, 1, 1])
    want[5] = 0
    for layout in None, (1, 0):
        grid = qd.ndarray(qd.i32, (20, 3), layout=layout)
        pairs(x, grid, 4)
        assert np.array_equal(grid.to_numpy(), want)


@qd.kernel
def vectors(x: Array(qd.i32, 1), bins: Array(qd.types.vector(3, qd.u32), 1)):
    for i in range(x.shape[0]):
        bins[x[i]] += qd.Vector([1, x[i], i], qd.u32)


@pytest.mark.filterwarnings("ignore:.*may lose precision")
def test_vector_elements(target):
    n = trips(target, 30_000)
    x = places(np.random.default_rng(SEED), 30, n)
    bins = qd.Vector.ndarray(3, qd.u32, (30,))
    vectors(x, bins)
    want = np.zeros((30, 3), "u4")
    np.add.at(want, x, np.stack([np.ones(n), x, np.arange(n)], 1).astype("u4"))
    assert np.array_equal(bins.to_numpy(), want)


@qd.kernel
def sees(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), also: Array(qd.i32, 1), out: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        bins[x[i]] += 1
        out[i] = also[x[i]]


@pytest.mark.after_passes
def test_overlap(target):
    """Through another array an iteration sees its own update; when both are one, that is kept."""
    qd.init(cpu_max_num_threads=1)
    n = trips(target, 9000)
    x = places(np.random.default_rng(SEED), 10, n)
    bins, out = np.zeros(10, "i4"), np.zeros(n, "i4")
    sees(x, bins, np.full(10, -1, "i4"), out)
    assert (out == -1).all() and np.array_equal(bins, np.bincount(x, minlength=10))
    before = qd._core.counters()["launch_overlap"]
    bins[:] = 0
    sees(x, bins, bins, out)
    assert qd._core.counters()["launch_overlap"] == before + 1
    want, seen = np.zeros(n, "i4"), np.zeros(10, "i4")
    for i, k in enumerate(x):
        seen[k] += 1
        want[i] = seen[k]
    assert np.array_equal(out, want) and np.array_equal(bins, seen)


@qd.kernel
def stops(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), ran: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        bins[x[i]] += 1
        ran[i] = 1


@qd.kernel
def stops_in_debug_mode(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), ran: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        assert x[i] < 64, "here"
        qd.atomic_xor(bins[x[i]], i + 1)
        ran[i] = 1


@pytest.mark.parametrize("kernel, settings, error, message", [
    (stops, {"check_out_of_bound": True}, IndexError, "out of bounds"),
    (stops, {"debug": True}, IndexError, "out of bounds"),
    (stops_in_debug_mode, {"debug": True}, AssertionError, "here"),
], ids=["checked", "debug", "assert"])
def test_error_in_the_loop(kernel, settings, error, message, target):
    """The array holds the updates of the iterations that ran, no more and no less."""
    n = trips(target, 300_000)
    x = places(np.random.default_rng(SEED), 64, n)
    for threads in 1, 2:
        qd.init(cpu_max_num_threads=threads, **settings)
        for at in 0, 1, n // 3, n - 1:
            bins, ran, bad = np.full(64, 7, "i4"), np.zeros(n, "i4"), x.copy()
            bad[at] = 64
            with pytest.raises(error, match=message):
                kernel(bad, bins, ran)
            done = ran == 1
            assert not done[at]
            if kernel is stops:
                want = expected("add", np.full(64, 7, "i4"), x[done], np.int32(1))
            else:
                want = expected("xor", np.full(64, 7, "i4"), x[done], np.arange(1, n + 1, dtype="i4")[done])
            assert np.array_equal(bins, want)


def test_launches_at_once(target):
    """Several threads of the program count into one array."""
    x = places(np.random.default_rng(SEED), 16, trips(target, 50_000))
    bins = qd.ndarray(qd.i32, (16,))
    source = qd.ndarray(qd.i32, x.shape)
    source.from_numpy(x)
    count(source, bins)
    threads = [threading.Thread(target=lambda: [count(source, bins) for _ in range(5)]) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert np.array_equal(bins.to_numpy(), 16 * np.bincount(x, minlength=16))


@qd.kernel(graph=True)
def sections(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), low: Array(qd.i32, 1)):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                bins[x[i]] += 1
            for i in range(x.shape[0]):
                qd.atomic_min(low[x[i]], -i)
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                bins[15 - x[i]] -= 3


def test_sections_at_once(target):
    """Two sections of a graph kernel count into one array, on workers that share their tasks."""
    n = trips(target, 100_000)
    x = places(np.random.default_rng(SEED), 16, n)
    times = np.bincount(x, minlength=16)
    for _ in range(10):
        bins, low = np.zeros(16, "i4"), np.zeros(16, "i4")
        sections(x, bins, low)
        assert np.array_equal(bins, times - 3 * times[::-1])
        assert np.array_equal(low, expected("min", np.zeros(16, "i4"), x, -np.arange(n, dtype="i4")))


@qd.kernel
def old(x: Array(qd.i32, 1), bins: Array(qd.i32, 1), out: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        out[i] = qd.atomic_add(bins[x[i]], 1)


def test_old_values_are_kept(target):
    """Each old value of a bin is handed out once."""
    n = trips(target, 20_000)
    x = places(np.random.default_rng(SEED), 8, n)
    bins, out = np.zeros(8, "i4"), np.zeros(n, "i4")
    old(x, bins, out)
    for k in range(8):
        assert np.array_equal(np.sort(out[x == k]), np.arange(bins[k]))


def test_random_sample(target):
    rng = np.random.default_rng(SEED)
    for _ in range(samples(400 if target == "native" else 100)):
        kind, dtype = rng.choice(list(KINDS)), rng.choice(INTEGERS)
        bins, n = int(rng.integers(1, 3000)), trips(target, int(2 ** rng.uniform(0, 17)))
        x, v, start = places(rng, bins, n), numbers(rng, dtype, n), numbers(rng, dtype, bins)
        qd.init(cpu_max_num_threads=int(rng.integers(1, 4)))
        got = start.copy()
        update(x, v, got, str(kind))
        assert np.array_equal(got, expected(kind, start, x, v)), (kind, dtype, bins, n)
