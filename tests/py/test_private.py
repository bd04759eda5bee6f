"""Updates that need no atomics because all writes of an array tell the iteration (src/pass/demote.c),
and near misses, in which iterations meet: integers, so that a lost update shows, and many threads."""

import numpy as np
import pytest

import ingot as qd

I1, I2, I3 = (qd.types.ndarray(qd.i32, n) for n in (1, 2, 3))
F2 = qd.types.ndarray(qd.f32, 2)


@pytest.fixture(params=["native", "interp"], autouse=True)
def arch(request):
    qd.init(arch=qd.cpu if request.param == "native" else qd.interp, cpu_max_num_threads=4)
    return request.param


def rounds(arch):
    return 20 if arch == "native" else 1


@qd.kernel
def constants(p: I2):
    for i in range(p.shape[0]):
        p[i, 0] += i
        p[i, 3] += 2 * i
        p[i, 0] += 1


@qd.kernel
def triangle(m: I3, n: qd.i32):
    for e in range(m.shape[0]):
        for j in range(n):
            for k in range(j, n):
                m[e, j, k] += j * 10 + k + e
                m[e, k, j] += 1


@qd.kernel
def blocks(p: I1):
    for i0, i1 in qd.ndrange(1000, 4):
        i = i0 * 4 + i1
        p[i] += i // 4 + 1000 * (i % 4)


@qd.kernel
def next_row(p: I2):
    for i in range(p.shape[0] - 1):
        p[i, 0] += 1
        p[i + 1, 0] += 1


@qd.kernel
def crossed(p: I2):
    for i in range(p.shape[0]):
        p[i, 0] += 1
        p[0, i] += 1


@qd.kernel
def wrapped_blocks(p: I1):
    for i0, i1 in qd.ndrange(1000, 5):
        p[i0 * 4 + i1] += 1


@qd.kernel
def one_of_two(p: I1):
    for i, j in qd.ndrange(100, 300):
        p[j] += 1


@qd.kernel
def shared_row(p: I2):
    for i in range(30000):
        for j in range(p.shape[0]):
            p[j, 0] += 1


def test_private(arch):
    n = 20000 if arch == "native" else 300
    p = np.zeros((n, 4), np.int32)
    constants(p)
    i = np.arange(n)
    assert (p == np.stack([i + 1, 0 * i, 0 * i, 2 * i], 1)).all()
    m, want = np.zeros((200, 7, 7), np.int32), np.zeros((200, 7, 7), np.int32)
    triangle(m, 7)
    for j in range(7):
        for k in range(j, 7):
            want[:, j, k] += j * 10 + k + np.arange(200)
            want[:, k, j] += 1
    assert (m == want).all()
    p = np.zeros(4000, np.int32)
    blocks(p)
    assert (p == np.arange(4000) // 4 + 1000 * (np.arange(4000) % 4)).all()


def test_iterations_that_meet(arch):
    for _ in range(rounds(arch)):
        p = np.zeros((3000, 2), np.int32)
        next_row(p)
        assert (p[1:-1, 0] == 2).all() and p[0, 0] == p[-1, 0] == 1 and not p[:, 1].any()
        p = np.zeros((1000, 1000), np.int32)
        crossed(p)
        assert p[0, 0] == 2 and (p[1:, 0] == 1).all() and (p[0, 1:] == 1).all()
        p = np.zeros(4001, np.int32)
        wrapped_blocks(p)
        assert (p[4:-1:4] == 2).all() and p[0] == p[-1] == 1 and p.sum() == 5000
        p = np.zeros(300, np.int32)
        one_of_two(p)
        assert (p == 100).all()
    p = np.zeros((2, 1), np.int32)
    shared_row(p)
    assert (p == 30000).all()


@qd.kernel
def extremes(x: I1, s: I1, at: qd.i32):
    for i in range(x.shape[0]):
        qd.atomic_min(s[0], x[i])
        qd.atomic_max(s[1], x[i])
        s[2] += x[i]


@qd.kernel
def extremes_anywhere(x: I1, s: I1, at: qd.i32):
    for i in range(x.shape[0]):
        qd.atomic_min(s[at], x[i])
        s[1] += x[i]


@qd.kernel
def both_ways(x: I1, s: I1, at: qd.i32):
    for i in range(x.shape[0]):
        qd.atomic_max(s[1], x[i])
        s[1] += 1


def test_two_kinds_in_one_array(arch):
    x = np.random.default_rng(1).integers(-1000, 1000, 30000, dtype=np.int32)
    s = np.array([5, 5, 5], np.int32)
    extremes(x, s, 0)
    assert s.tolist() == [x.min(), x.max(), 5 + x.sum()]
    s = np.zeros(3, np.int32)
    extremes_anywhere(x, s, 2)
    assert s.tolist() == [0, x.sum(), min(0, x.min())]
    s = np.zeros(2, np.int32)
    extremes_anywhere(-abs(x), s, 1)  # one place, updated in two ways, in some order
    s = np.zeros(2, np.int32)
    both_ways(x, s, 1)
    assert x.max() <= s[1] <= x.max() + len(x)


@qd.kernel
def product(a: F2, b: F2, c: F2, n: qd.i32):
    for i, j in qd.ndrange(c.shape[0], c.shape[1]):
        for k in range(n):
            c[i, j] += a[i, k] * b[k, j]


@qd.kernel
def beyond(a: F2, b: F2, c: F2, n: qd.i32):
    """The subscript lies out of c where the serial loop never runs."""
    for i, j in qd.ndrange(c.shape[0] + 9, c.shape[1] + 9):
        for k in range(n * (i < c.shape[0]) * (j < c.shape[1])):
            c[i, j] += a[i, k] * b[k, j]


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 200])
def test_product_in_place(columns):
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 9, (7, 40)), rng.integers(0, 9, (40, columns))
    a, b = a.astype(np.float32), b.astype(np.float32)
    for n in (40, 33, 1, 0, -3):
        for kernel in product, beyond:
            c = rng.integers(0, 9, (7, columns)).astype(np.float32)
            want = c + a[:, : max(n, 0)] @ b[: max(n, 0)]
            kernel(a, b, c, n)
            assert (c == want).all()
    empty = np.zeros((0, 0), np.float32)
    product(a, b, empty, 40)
    product(empty, empty, c, 0)


@qd.func
def add_to(p, i, x):
    p[i, 0] += x
    p[i, 1] -= x


@qd.func
def add_around(p, i, x):
    for k in range(p.shape[1]):
        p[i, k] += x
    add_to(p, i, 2 * x)


@qd.func
def add_before(p, i, x):
    if x > 0:
        p[i - 1, 0] += x
    add_to(p, i, x)


@qd.kernel
def by_funcs(p: I2):
    for i in range(p.shape[0]):
        add_around(p, i, i)
        if i % 3 == 0:
            add_to(p, i, 5)


@qd.kernel
def by_funcs_that_meet(p: I2):
    for i in range(1, p.shape[0]):
        add_before(p, i, i % 2 + 1)


@qd.kernel
def pairs_of(p: I1, n: qd.i32):
    for i in range(n):
        j = 2 * i
        p[j] += i
        p[j + 1] -= i


@qd.kernel
def pairs_that_meet(p: I1, n: qd.i32):
    for i in range(n):
        j = 2 * i
        p[j] += 1
        p[j + 2] += 1


@qd.kernel
def threes(p: I1, n: qd.i32):
    for i in range(n):
        for k in range(3):
            p[3 * i + k] += i + k
        for k in qd.static(range(3)):
            p[3 * i + k] += 1


@qd.kernel
def fours_by_threes(p: I1, n: qd.i32):
    for i in range(n):
        for k in range(4):
            p[3 * i + k] += 1


@qd.kernel
def to_both(p: I2, q: I2):
    for i in range(p.shape[0] - 1):
        p[i, 0] += 1
        q[i + 1, 0] += 1


def test_private_in_funcs(arch):
    n = 20000 if arch == "native" else 300
    p = np.zeros((n, 4), np.int32)
    by_funcs(p)
    i = np.arange(n)
    t = 5 * (i % 3 == 0)
    assert (p == np.stack([3 * i + t, -i - t, i, i], 1)).all()
    for _ in range(rounds(arch)):
        p = np.zeros((3000, 2), np.int32)
        by_funcs_that_meet(p)
        x = np.arange(3001) % 2 + 1
        want = np.where(np.arange(3000) > 0, x[:-1], 0)
        want[:-1] += x[1:3000]
        assert (p[:, 0] == want).all()


def test_private_in_steps(arch):
    n = 20000 if arch == "native" else 300
    i = np.arange(n)
    p = np.zeros(2 * n, np.int32)
    pairs_of(p, n)
    assert (p[::2] == i).all() and (p[1::2] == -i).all()
    p = np.zeros(3 * n, np.int32)
    threes(p, n)
    assert (p == np.repeat(i, 3) + np.arange(3 * n) % 3 + 1).all()
    for _ in range(rounds(arch)):
        p = np.zeros(2 * n + 2, np.int32)
        pairs_that_meet(p, n)
        assert (p[2:-2:2] == 2).all() and p[0] == p[-2] == 1 and p.sum() == 2 * n
        p = np.zeros(3 * n + 1, np.int32)
        fours_by_threes(p, n)
        assert (p[3:-1:3] == 2).all() and p[0] == p[-1] == 1 and p.sum() == 4 * n


def test_one_array_by_two_names(arch):
    for _ in range(rounds(arch)):
        p = np.zeros((5000, 2), np.int32)
        to_both(p, p)
        assert (p[1:-1, 0] == 2).all() and p[0, 0] == p[-1, 0] == 1
        p, q = np.zeros((5000, 2), np.int32), np.zeros((5000, 2), np.int32)
        to_both(p, q)
        assert (p[:-1, 0] == 1).all() and (q[1:, 0] == 1).all() and p.sum() == q.sum() == 4999


def test_fields_in_funcs(arch):
    f = qd.field(qd.i32, (4000, 2))

    @qd.func
    def there(i, x):
        f[i, 0] += x

    @qd.func
    def read(i):
        return f[i, 1]

    @qd.kernel
    def kernel():
        for i in range(4000):
            f[i, 1] += i
            there(i, read(i))

    @qd.kernel
    def meet():
        for i in range(3999):
            f[i, 1] += 1
            there(i, 1)
            there(i + 1, 1)

    kernel()
    i = np.arange(4000)
    assert (f.to_numpy() == np.stack([i, i], 1)).all()
    f.fill(0)
    for _ in range(rounds(arch)):
        meet()
    want = np.full(4000, 2)
    want[0] = want[-1] = 1
    assert (f.to_numpy()[:, 0] == want * rounds(arch)).all()
