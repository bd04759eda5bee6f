"""Arrays that share memory: one array passed twice, and slices of one array that overlap.
Passes assume some pairs of arrays to lie apart; a launch compares them, and runs other code when
they do not. Results are those of the loop written in Python, at every number of threads."""

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray


def launches(kernel, *args):
    """How many of the launches that this makes found arrays that overlap."""
    before = qd._core.counters()["launch_overlap"]
    kernel(*args)
    return qd._core.counters()["launch_overlap"] - before


@pytest.fixture
def one_thread(target):
    """Iterations run in order."""
    def init(**options):
        qd.init(cpu_max_num_threads=1, **options)
    init()
    return init


@qd.kernel
def running(x: Array(qd.i32, 1), s: Array(qd.i32, 1), t: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        x[i] = t[0]


@qd.kernel
def resets(x: Array(qd.i32, 1), s: Array(qd.i32, 1), t: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        if x[i] == 3:
            t[0] = 100


@qd.kernel
def two_kinds(x: Array(qd.i32, 1), s: Array(qd.i32, 1), t: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        qd.atomic_min(t[0], 10)


@qd.kernel
def one_kind(x: Array(qd.i32, 1), s: Array(qd.i32, 1), t: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        t[0] -= 1


@qd.func
def read(a: qd.template()):
    return a[0]


@qd.kernel
def by_func(x: Array(qd.i32, 1), s: Array(qd.i32, 1), t: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]
        x[i] = read(t)


def model(kernel, x, s, t):
    for i in range(len(x)):
        s[0] += x[i]
        if kernel in (running, by_func):
            x[i] = t[0]
        elif kernel is resets and x[i] == 3:
            t[0] = 100
        elif kernel is two_kinds:
            t[0] = min(t[0], 10)
        elif kernel is one_kind:
            t[0] -= 1


KERNELS = (running, resets, two_kinds, one_kind, by_func)


@pytest.mark.after_passes
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("shared", ["same", "slices", "apart"])
def test_as_in_python(kernel, shared, one_thread):
    x = np.random.default_rng(1).integers(0, 6, 300).astype("i4")
    memory = np.full(8, 4, "i4")
    s, t = {"same": (slice(2, 3), slice(2, 3)), "slices": (slice(2, 5), slice(2, 7)),
            "apart": (slice(2, 3), slice(3, 5))}[shared]
    for _ in range(2):  # the second launch finds everything in memory
        want_x, want = x.copy(), memory.copy()
        model(kernel, want_x, want[s], want[t])
        got = launches(kernel, x, memory[s], memory[t])
        np.testing.assert_array_equal(memory, want)
        np.testing.assert_array_equal(x, want_x)
        assert got == (shared != "apart")


@pytest.mark.after_passes
def test_own_arrays(one_thread):
    x, s = qd.ndarray(qd.i32, 100), qd.ndarray(qd.i32, 1)
    x.fill(1)
    assert launches(running, x, s, s) == 1
    np.testing.assert_array_equal(x.to_numpy(), np.arange(1, 101))


@pytest.mark.after_passes
def test_the_array_itself(one_thread):
    """The target is an element of the array that is summed up."""
    x = np.arange(50, dtype="i4")
    want = x.copy()
    model(running, want, want, want)
    assert launches(running, x, x, x) == 1
    np.testing.assert_array_equal(x, want)


def test_neighbours_are_apart(one_thread):
    """Byte ranges that touch do not overlap, nor do empty ones."""
    memory = np.zeros(12, "i4")
    memory[4:] = 1
    assert launches(running, memory[4:8], memory[3:4], memory[8:]) == 0
    assert memory[3] == 4
    assert launches(running, memory[4:4], memory[3:4], memory[4:4]) == 0


@qd.kernel
def many(x: Array(qd.i32, 1), y: Array(qd.i32, 1), a: Array(qd.i32, 1), b: Array(qd.i32, 1), c: Array(qd.i32, 1)):
    for i in range(x.shape[0]):
        a[0] += x[i]
        b[0] += y[i]
        c[0] += 1
        x[i] = a[0] + b[0]
        y[i] = c[0]


@pytest.mark.after_passes
def test_many_pairs(one_thread):
    """The launch before is remembered, with addresses and extents: an array that moves, grows or comes back is seen."""
    memory = np.arange(40, dtype="i4")

    def launch(*slices):
        memory[:] = np.arange(40)  # sums stay small
        want = memory.copy()
        x, y, a, b, c = (want[s] for s in slices)
        for i in range(len(x)):
            a[0] += x[i]
            b[0] += y[i]
            c[0] += 1
            x[i] = a[0] + b[0]
            y[i] = c[0]
        got = launches(many, *(memory[s] for s in slices))
        np.testing.assert_array_equal(memory, want)
        return got

    x, longer, y, a, b, c = slice(0, 10), slice(0, 13), slice(20, 40), slice(12, 13), slice(14, 15), slice(16, 18)
    for _ in range(2):
        assert launch(x, y, a, b, c) == launch(x, y, a, b, c) == 0
        assert launch(x, y, a, b, b) == launch(x, y, a, b, b) == 1  # moved
        assert launch(x, y, a, b, c) == 0  # and back
        assert launch(longer, y, a, b, c) == launch(longer, y, a, b, c) == 1  # grown
        assert launch(longer, y, b, b, c) == 1


def test_only_assumed_pairs_count(one_thread):
    """What the loop only reads may overlap as it likes."""
    memory = np.arange(1, 9, dtype="i4")
    s = np.zeros(1, "i4")

    @qd.kernel
    def dot(x: Array(qd.i32, 1), y: Array(qd.i32, 1), s: Array(qd.i32, 1)):
        for i in range(x.shape[0]):
            s[0] += x[i] * y[i]

    assert launches(dot, memory[:7], memory[1:], s) == 0
    assert s[0] == (memory[:7] * memory[1:]).sum()


@pytest.mark.after_passes
def test_mixed_launches(one_thread):
    """Both kinds of code serve one kernel, in any order, also after what was in memory is gone."""
    for overlap in (False, True, True, False, "again", True, False):
        if overlap == "again":
            one_thread()
            continue
        x, s = np.ones(20, "i4"), np.zeros(1, "i4")
        t = s if overlap else np.full(1, 7, "i4")
        assert launches(running, x, s, t) == overlap
        np.testing.assert_array_equal(x, np.arange(1, 21) if overlap else 7)
        assert s[0] == 20


@pytest.mark.after_passes
@pytest.mark.counts("lowerings")
def test_kept_on_disk(one_thread, target):
    """Code for arrays that share memory is a variant like any: the next process finds it."""
    x, s = np.ones(20, "i4"), np.zeros(1, "i4")
    assert launches(running, x, s, s) == 1
    for frozen in (False, True):
        one_thread(frozen=frozen)
        before = qd._core.counters()["lowerings"]
        x, s = np.ones(20, "i4"), np.zeros(1, "i4")
        assert launches(running, x, s, s) == 1
        np.testing.assert_array_equal(x, np.arange(1, 21))
        assert launches(running, np.ones(20, "i4"), s, s.copy()) == 0
        if target != "interp":
            assert qd._core.counters()["lowerings"] == before


def test_frozen(cache_dir, one_thread, target):
    """Code for arrays that share memory was never made, so it is refused."""
    x, s = np.ones(5, "i4"), np.zeros(1, "i4")
    running(x.copy(), s, s.copy())
    qd.init(frozen=True)
    running(x.copy(), s, s.copy())
    assert s[0] == 10
    if target == "interp":  # nothing is compiled
        running(x, s, s)
        assert x[0] == 11
        return
    with pytest.raises(qd.IngotCompilationError, match="share memory"):
        running(x, s, s)
    assert s[0] == 10 and (x == 1).all()


@qd.kernel
def two_updates(y: Array(qd.i64, 1), z: Array(qd.i64, 1)):
    for i in range(y.shape[0]):
        y[i] += 1
        z[i] += 2


@pytest.mark.after_passes
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shift", [0, 1, 5])
def test_updates_of_overlapping_slices(target, threads, shift):
    qd.init(cpu_max_num_threads=threads)
    n = 200_000 if target == "native" else 2000
    memory = np.zeros(n + shift, "i8")
    want = memory.copy()
    want[:n] += 1
    want[shift:] += 2
    for k in range(1, 4):
        assert launches(two_updates, memory[:n], memory[shift:]) == 1
        np.testing.assert_array_equal(memory, want * k)
    y, z = np.zeros(n, "i8"), np.zeros(n, "i8")
    assert launches(two_updates, y, z) == 0
    assert (y == 1).all() and (z == 2).all()


@pytest.mark.after_passes
def test_sums_at_every_number_of_threads(target):
    """Integer sums through two names of one place do not depend on the order."""
    n = 300_000 if target == "native" else 9000
    x = np.random.default_rng(2).integers(0, 100, n).astype("i4")
    for threads in (1, 2):
        qd.init(cpu_max_num_threads=threads)
        for _ in range(20 if target == "native" else 2):
            s = np.zeros(1, "i4")
            assert launches(one_kind, x, s, s) == 1
            assert s[0] == x.sum() - n


@qd.kernel
def narrow(a: Array(qd.i32, 1), n: qd.i32):
    for i in range(n):
        a[qd.cast(i, qd.u8)] += 1


def test_iterations_that_meet(target):
    """An index that is cut to 8 bits names each element many times."""
    qd.init(cpu_max_num_threads=2)
    n = 1 << (24 if target == "native" else 12)
    a = np.zeros(256, "i4")
    narrow(a, n)
    assert (a == n // 256).all()
