"""Small funcs in loops around serial loops, which become part of the task, so that columns go side by side
(INLINE1 and INLINE2 in src/pass/inline.c), and programs that are nearly of that kind."""

import numpy as np
import pytest

import ingot as qd

F2, I1 = qd.types.ndarray(qd.f32, 2), qd.types.ndarray(qd.i32, 1)
SIDE = "side by side"


@qd.func
def gelu(x):
    return 0.5 * x * (1.0 + qd.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


@qd.func
def clip(x):
    r = x
    if x < 0.25:
        r = 0.25
    return r


@qd.func
def nested(x):
    return clip(gelu(x)) + 1.0


@qd.func
def early(x):
    if x > 1.0:
        return x
    return x * 0.5


@qd.func
def looping(x):
    s = x
    for k in range(9):
        s = s * 0.5 + x * k
    return s


@qd.func
def drawing(x):
    return x + 0.0 * qd.random()


@qd.func
def checking(x):
    assert x < 1e9
    return x * 2.0


@qd.func
def long(x):
    for k in qd.static(range(60)):
        x = x * 0.5 + (x - k) * 0.25
    return x


def product(f):
    @qd.kernel
    def product(a: F2, b: F2, c: F2):
        for i, j in c:
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = f(s)

    return product


def scalar(f, s):
    """What the func gives for each element, in a kernel without serial loops."""

    @qd.kernel
    def scalar(s: F2):
        for i, j in s:
            s[i, j] = f(s[i, j])

    out = s.copy()
    scalar(out)
    return out


def operands():
    rng = np.random.default_rng(3)
    return [(rng.random(shape) - 0.5).astype(np.float32) for shape in ((7, 40), (40, 150), (7, 150))]


@pytest.mark.parametrize("f, side", [(gelu, True), (clip, True), (nested, True), (early, False), (looping, False),
                                     (drawing, False), (checking, False), (long, False)])
def test_product_through_a_func(f, side):
    qd.init(fast_math=True, debug=f is checking)
    a, b, c = operands()
    k = product(f)
    k(a, b, c)
    lines = "\n".join(qd.explain(k, code=True))
    assert (SIDE in lines) == side, lines
    np.testing.assert_allclose(c, scalar(f, a @ b), rtol=2e-4, atol=2e-5)
    qd.init()


def test_a_func_in_the_serial_loop(target):
    @qd.func
    def near(d, h):
        r = 0.0
        if d < h:
            r = (h - d) ** 3
        return r

    @qd.kernel
    def density(x: F2, rho: F2):
        for i in range(x.shape[0]):
            rho[i, 0] = 0.0
            for j in range(x.shape[0]):
                rho[i, 0] += near((x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2, 0.1)

    x = np.random.default_rng(5).random((61, 2)).astype(np.float32)
    rho = np.zeros((61, 1), np.float32)
    density(x, rho)
    d = ((x[:, None] - x[None]) ** 2).sum(2)
    np.testing.assert_allclose(rho[:, 0], np.where(d < 0.1, (0.1 - d) ** 3, 0).sum(1), rtol=1e-4)


def test_a_func_that_changes_what_it_is_given(target):
    """A func that has an argument by reference writes to the variable of the caller."""

    @qd.func
    def swap(p: qd.template(), q: qd.template()):
        t = p
        p = q
        q = t

    @qd.kernel
    def run(x: F2, y: F2):
        for i, j in y:
            a, b = 0.0, 1.0
            for k in range(x.shape[0]):
                swap(a, b)
                a += x[k, j]
            y[i, j] = a - b

    x = np.random.default_rng(6).random((11, 90)).astype(np.float32)
    y = np.zeros((3, 90), np.float32)
    run(x, y)
    a, b = np.zeros(90), np.ones(90)
    for k in range(11):
        a, b = b, a
        a = a + x[k]
    np.testing.assert_allclose(y, np.tile(a - b, (3, 1)), rtol=1e-4)


def test_numbers_that_lose_their_ones(target):
    """While loops that do not poll (BRIEF1 to BRIEF3 in src/ir/brief.c), and one that looks like it."""

    @qd.kernel
    def count(x: I1, ones: I1, digits: I1, odd: I1):
        for i in range(x.shape[0]):
            v = x[i]
            n = 0
            while v != 0:
                v &= v - 1
                n += 1
            ones[i] = n
            v = x[i]
            n = 0
            while v > 0:
                v //= 10
                n += 1
            digits[i] = n
            v = x[i]
            n = 0
            while v != 0 and n < 40:
                v >>= 1
                n += 1
            odd[i] = n

    x = np.array([0, 1, -1, 7, 10, 99, 100, 2**31 - 1, -(2**31), 12345, -77], np.int32)
    out = [np.full(len(x), -1, np.int32) for _ in range(3)]
    count(x, *out)
    assert out[0].tolist() == [bin(int(v) & 0xFFFFFFFF).count("1") for v in x]
    assert out[1].tolist() == [len(str(v)) if v > 0 else 0 for v in x]
    assert out[2].tolist() == [int(v).bit_length() if v >= 0 else 40 for v in x]


@pytest.mark.parametrize("dtype", [qd.i32, qd.u32, qd.i64, qd.f32, qd.f64])
def test_extremes_that_change_little(target, dtype):
    """Updates that are only read where they change nothing: the old values too."""
    array = qd.types.ndarray(dtype, 1)

    @qd.kernel
    def run(x: array, at: I1, low: array, high: array, old: array):
        for i in range(x.shape[0]):
            qd.atomic_min(low[at[i]], x[i])
            qd.atomic_max(high[at[i]], x[i])
        qd.loop_config(serialize=True)
        for i in range(x.shape[0]):
            old[i] = qd.atomic_min(low[at[i]], x[i] + x[i])

    kind = {qd.i32: np.int32, qd.u32: np.uint32, qd.i64: np.int64, qd.f32: np.float32, qd.f64: np.float64}[dtype]
    rng = np.random.default_rng(8)
    x, at = (rng.random(3000) * 1000).astype(kind), rng.integers(0, 5, 3000).astype(np.int32)
    low, high, old = np.full(5, 900, kind), np.full(5, 100, kind), np.zeros(3000, kind)
    run(x, at, low, high, old)
    least = np.array([min(900, x[at == k].min()) for k in range(5)])
    assert (high == [max(100, x[at == k].max()) for k in range(5)]).all()
    for i in range(3000):
        assert old[i] == least[at[i]]
        least[at[i]] = min(least[at[i]], x[i] + x[i])
    assert (low == least).all()
