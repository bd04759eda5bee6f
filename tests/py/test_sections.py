"""Sums of floats into an array from all iterations of a parallel loop: long loops add up in copies for
stretches of it, in their order (SEAT4 in src/rt/tally.c), so threads change nothing."""

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
SUMMED = "stretches of a long loop"


def down(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[j] += r[i] * a[i, j]


def both(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1), q: Array(ndim=1), t: Array(ndim=1)):
    """Two arrays, a difference, a sum of the iteration's own and one of all."""
    for i in range(a.shape[0]):
        q[i] = 0.0
        for j in range(a.shape[1]):
            s[j] -= r[i] * a[i, j]
            q[i] += a[i, j]
            t[0] += a[i, j]


def newton(x: Array(ndim=1), f: Array(ndim=1)):
    """Each pair once."""
    for i in range(x.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            f[j] += d
            f[i] -= d


def by_argument(a: Array(ndim=2), n: qd.i32, s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(n):
            s[j] += a[i, j]


def planes(a: Array(ndim=3), s: Array(ndim=2)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                s[j, k] += a[i, j, k]


def numbers(shape, dtype=np.float64, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def said(kernel):
    return any(SUMMED in line for line in qd.explain(kernel, code=True))


def runs(make, threads=(1, 2, 3, 2, 5)):
    """The same bits however many threads."""
    found = []
    for n in threads:
        qd.init(arch=qd.cpu, cpu_max_num_threads=n)
        found.append(make())
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other))
    return found[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (40, 5), (64, 64), (257, 33), (1000, 800), (5000, 17)])
def test_columns(shape, dtype):
    a, r = numbers(shape, dtype), numbers(shape[0], dtype)

    def make():
        s = np.ones(shape[1], dtype)
        kernel = qd.kernel(down)
        kernel(a, r, s)
        assert said(kernel)
        return [s]

    want = 1 + r.astype(np.float64) @ a.astype(np.float64)
    size = 1 + np.abs(r).astype(np.float64) @ np.abs(a).astype(np.float64)
    (s,) = runs(make) if shape[0] > 200 else make_once(make)
    assert np.all(np.abs(s - want) <= size * np.finfo(dtype).eps * 64)


def make_once(make):
    qd.init(arch=qd.cpu)
    return make()


def test_other_sums_in_the_loop():
    a, r = numbers((600, 300)), numbers(600)

    def make():
        s, q, t = np.zeros(300), np.zeros(600), np.zeros(1)
        qd.kernel(both)(a, r, s, q, t)
        return s, q, t

    s, q, t = runs(make)
    assert np.allclose(s, -(r @ a)) and np.allclose(q, a.sum(1)) and np.allclose(t, a.sum())


def test_pairs():
    x = numbers(900)

    def make():
        f = np.zeros(900)
        qd.kernel(newton)(x, f)
        return [f]

    d = x[:, None] - x
    qd.init(arch=qd.cpu)
    (f,) = make()
    assert np.allclose(f, -np.tril(d).sum(1) + np.tril(d).sum(0))


def test_several_axes_and_arguments():
    a, b = numbers((300, 20, 30)), numbers((500, 90))

    def make():
        s, t = np.zeros((20, 30)), np.zeros(95)
        qd.kernel(planes)(a, s)
        qd.kernel(by_argument)(b, 60, t)
        return s, t

    s, t = runs(make)
    assert np.allclose(s, a.sum(0)) and np.allclose(t[:60], b.sum(0)[:60]) and not t[60:].any()


def test_fields():
    def make():
        s = qd.field(qd.f32, 50)
        a = numbers((400, 50), np.float32)

        @qd.kernel
        def into(a: Array(qd.f32, 2), m: qd.i32):
            for i in range(a.shape[0]):
                for j in range(m):
                    s[j] += a[i, j]

        s.fill(2.0)
        into(a, 50)
        return [s.to_numpy()]

    (s,) = runs(make)
    assert np.allclose(s, 2 + numbers((400, 50), np.float32).sum(0), rtol=1e-4)


def test_what_is_not_touched_keeps_its_sign():
    qd.init(arch=qd.cpu)
    s = np.full(100, -0.0)
    qd.kernel(by_argument)(numbers((3000, 60)), 60, s)
    assert np.signbit(s[60:]).all()


def test_as_the_interpreter():
    a, r = numbers((300, 40)), numbers(300)
    found = []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, fast_math=False)
        s = np.zeros(40)
        qd.kernel(down)(a, r, s)
        found.append(s)
    assert np.allclose(*found)


def test_an_assert_stops_it():
    """The array holds what ran, nothing twice."""

    def stops(a: Array(ndim=2), s: Array(ndim=1)):
        for i in range(a.shape[0]):
            assert a[i, 0] < 5.0
            for j in range(a.shape[1]):
                s[j] += a[i, j]

    a = np.ones((2000, 50))
    a[1500, 0] = 9.0
    for threads in (1, 2):
        qd.init(arch=qd.cpu, debug=True, cpu_max_num_threads=threads)
        s = np.zeros(50)
        with pytest.raises(AssertionError):
            qd.kernel(stops)(a, s)
        assert np.all(s == s[1]) and 0 <= s[0] < 2000


# ---- near misses: the loop sees the array ---------------------------------------------------------------


def reads_it(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[j] += 0.001 * r[i] * a[i, j]
        r[i] = s[0] * 0.0


def stores_it(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[j] += a[i, j]
        if r[i] > 100.0:
            s[0] = 0.0


def takes_the_old_value(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            r[i] = qd.atomic_add(s[j], a[i, j])


def largest(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            qd.atomic_max(s[j], a[i, j])


def chosen(a: Array(ndim=2), r: Array(ndim=1), s: Array(ndim=1)):
    for i in range(a.shape[0]):
        s[qd.cast(a[i, 0], qd.i32) % 3] += a[i, 1]


@pytest.mark.parametrize("body", [reads_it, stores_it, takes_the_old_value, largest, chosen], ids=lambda f: f.__name__)
def test_near_misses(body):
    qd.init(arch=qd.cpu)
    kernel = qd.kernel(body)
    kernel(np.abs(numbers((300, 40))), numbers(300), np.zeros(40))
    assert not said(kernel)


def test_arrays_that_overlap():
    """s is the first row of a."""
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    a, r = numbers((300, 40)), numbers(300)
    want = a.copy()
    qd.kernel(down)(a, r, a[0])
    for i in range(300):
        for j in range(40):
            want[0, j] += r[i] * want[i, j]
    assert np.allclose(a, want)
