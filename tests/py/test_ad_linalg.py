"""Derivatives of svd, polar_decompose, sym_eig and make_spd, above all where a matrix needs no rotation or has
singular values that are equal: the identity, diagonals, rotations. Right is what central differences say. And what
derivatives are of floats made of bits."""

import numpy as np
import pytest

import ingot as qd


def matrices(n, symmetric):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    some = {
        "identity": np.eye(n), "twice": 2 * np.eye(n), "diagonal": np.diag(np.arange(n) + 1.0),
        "one differs": np.diag([1.0] * (n - 1) + [2.0]), "falling": np.diag(3.0 - np.arange(n)),
    }
    if symmetric:
        return some | {"any": a + a.T, "nearly": np.eye(n) + 1e-9 * (a + a.T), "turned": turn @ np.diag([2.0] * (n - 1) + [5.0]) @ turn.T}
    return some | {"any": a, "nearly": np.eye(n) + 1e-9 * a, "rotation": turn, "reflected": turn @ np.diag([1.0] * (n - 1) + [-0.5]),
                   "stretched": turn @ np.diag([1.0] * (n - 1) + [3.0])}


@qd.func
def cubes(s):
    """A function of all singular values that does not care which is which."""
    r = 0.0 * s[0, 0]
    for k in qd.static(range(s.n)):
        r += s[k, k] ** 3 / 3
    return r


@qd.func
def summed(w, m):
    return (w * m).sum()


def polar(A, w):
    r, s = qd.polar_decompose(A)
    return summed(w, r) + summed(w.transpose(), s)


def rotation_of_svd(A, w):
    u, s, v = qd.svd(A)
    return summed(w, u @ v.transpose())


def values_of_svd(A, w):
    u, s, v = qd.svd(A)
    return cubes(s)


def whole_of_svd(A, w):
    u, s, v = qd.svd(A)
    return summed(w, u @ s @ v.transpose()) + summed(w, v @ s @ v.transpose())


GENERAL = [polar, rotation_of_svd, values_of_svd, whole_of_svd]


def values_of_sym_eig(A, w):
    e, v = qd.sym_eig(A)
    return (e * e * e).sum()


def spd(A, w):
    return summed(w, qd.make_spd(A))


SYMMETRIC = [values_of_sym_eig, spd]


def problem(function, n, dtype):
    f = qd.func(function)
    A = qd.Matrix.field(n, n, dtype, shape=(), needs_grad=True)
    w = qd.Matrix.field(n, n, dtype, shape=())
    loss = qd.field(dtype, shape=(), needs_grad=True)
    w[None] = np.random.default_rng(7).normal(size=(n, n)).tolist()

    @qd.kernel
    def k():
        for _ in range(1):
            loss[None] += f(A[None], w[None])

    return A, loss, k


def gradient(A, loss, k, at):
    A[None], loss[None] = at.tolist(), 0
    with qd.ad.Tape(loss):
        k()
    return A.grad.to_numpy().reshape(at.shape)


def differences(A, loss, k, at, symmetric, h):
    out = np.zeros_like(at)
    for i, j in np.ndindex(at.shape):
        d = np.zeros_like(at)
        d[i, j] = 1
        if symmetric:
            d = (d + d.T) / 2
        for sign in (1, -1):
            A[None], loss[None] = (at + sign * h * d).tolist(), 0
            k()
            out[i, j] += sign * loss[None] / (2 * h)
    return out


def check(function, n, at, symmetric, dtype=qd.f64, h=1e-4, close=1e-6):
    A, loss, k = problem(function, n, dtype)
    want = differences(A, loss, k, at, symmetric, h)
    got = gradient(A, loss, k, at)
    if symmetric:
        got = (got + got.T) / 2
    assert np.abs(got - want).max() <= close * max(1, np.abs(want).max()), (got, want)


CASES = [(f, n, name, s) for s, fs in ((False, GENERAL), (True, SYMMETRIC)) for f in fs for n in (2, 3)
         for name in matrices(n, s)]


@pytest.mark.parametrize("function, n, name, symmetric", CASES, ids=[f"{f.__name__}-{n}-{m}" for f, n, m, _ in CASES])
def test_gradient(function, n, name, symmetric):
    qd.init(default_fp=qd.f64)
    check(function, n, matrices(n, symmetric)[name], symmetric)


@pytest.mark.parametrize("function", [polar, rotation_of_svd, whole_of_svd], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["identity", "diagonal", "any", "rotation"])
def test_in_single_precision(function, name, target):
    qd.init(arch=target)
    check(function, 3, matrices(3, False)[name], False, qd.f32, h=1e-2, close=5e-3)


def test_larger_matrices():
    qd.init(default_fp=qd.f64)
    for n in (4, 6):
        for name in ("identity", "any", "turned"):
            for function in SYMMETRIC:
                check(function, n, matrices(n, True)[name], True)


def test_eigenvectors():
    """Of eigenvalues that differ, also where nothing stands off the diagonal."""
    qd.init(default_fp=qd.f64)

    def first(A, w):
        e, v = qd.sym_eig(A)
        return summed(w, v[:, 0].outer_product(v[:, 0]))

    for name in ("diagonal", "falling", "any"):
        check(first, 3, matrices(3, True)[name], True)


def test_of_nothing():
    """The zero matrix: singular values have a kink there, their sum of cubes has none."""
    qd.init(default_fp=qd.f64)
    for n in (2, 3):
        check(values_of_svd, n, np.zeros((n, n)), False, close=1e-7)
        check(whole_of_svd_alone, n, np.zeros((n, n)), False)


def whole_of_svd_alone(A, w):
    u, s, v = qd.svd(A)
    return summed(w, u @ s @ v.transpose())


@pytest.mark.parametrize("name", ["identity", "rotation", "any"])
def test_forward(name):
    qd.init(default_fp=qd.f64)
    at = matrices(3, False)[name]
    d = np.random.default_rng(3).normal(size=(3, 3))
    a = qd.field(qd.f64, shape=(3, 3), needs_dual=True)
    w = qd.Matrix.field(3, 3, qd.f64, shape=())
    loss = qd.field(qd.f64, shape=(), needs_dual=True)
    w[None] = np.random.default_rng(7).normal(size=(3, 3)).tolist()
    f = qd.func(polar)

    @qd.kernel
    def k():
        for _ in range(1):
            A = qd.Matrix([[a[i, j] for j in qd.static(range(3))] for i in qd.static(range(3))])
            loss[None] += f(A, w[None])

    a.from_numpy(at)
    with qd.ad.FwdMode(loss=loss, param=a, seed=d.reshape(-1).tolist()):
        k()
    got = loss.dual[None]
    value = []
    for sign in (1, -1):
        a.from_numpy(at + sign * 1e-4 * d)
        loss[None] = 0
        k()
        value.append(loss[None])
    assert got == pytest.approx((value[0] - value[1]) / 2e-4, rel=1e-6, abs=1e-6)


# ---- bits, by which those functions take a matrix as constant ----


def numbers():
    a = qd.field(qd.f64, 4, needs_grad=True)
    a.from_numpy(np.random.default_rng(1).uniform(0.3, 1.5, 4))
    return a


def test_floats_made_of_bits_are_refused():
    """The derivative of a float does not go through its bits: it was lost, and the gradient wrong."""
    x, y = numbers(), numbers()

    @qd.kernel
    def root():
        for i in range(4):
            k = 0x5FE6EB50C7B537A9 - (qd.bit_cast(x[i], qd.i64) >> 1)
            z = qd.bit_cast(k, qd.f64)
            y[i] = z * (1.5 - 0.5 * x[i] * z * z)

    with pytest.raises(qd.IngotCompilationError, match=r"made of the bits of one\n.*\n *\^"):
        root.grad()


def test_bits_that_count_or_return_are_constants():
    """Those that no float is made of, and a float of its own bits, which is that number without a derivative."""
    x, y, n = numbers(), numbers(), qd.field(qd.i64, 4)

    @qd.kernel
    def both():
        for i in range(4):
            n[i] = qd.bit_cast(x[i], qd.i64) >> 52
            y[i] = x[i] * qd.bit_cast(qd.bit_cast(x[i], qd.i64), qd.f64)

    both()
    y.grad.fill(1.0)
    both.grad()
    assert (x.grad.to_numpy() == x.to_numpy()).all() and (n.to_numpy() >= 1020).all()


@qd.func
def bits_of(v):
    return qd.bit_cast(v, qd.i64)


@qd.func
def float_of(k):
    return qd.bit_cast(k, qd.f64)


@qd.func
def halved(k: qd.template()):
    k = k >> 1


@pytest.mark.parametrize("way", ["func", "there", "back", "place", "array", "element"])
def test_bits_are_followed_through_funcs_and_arrays(way):
    """Taken in one func and made a float in another, its derivative was lost without a word."""
    x, y, kept = numbers(), numbers(), qd.field(qd.i64, 4)

    @qd.kernel
    def root():
        for i in range(4):
            k = qd.i64(0)
            if qd.static(way in ("func", "there")):
                k = bits_of(x[i]) >> 1
            elif qd.static(way == "place"):
                k = bits_of(x[i])
                halved(k)
            elif qd.static(way == "array"):
                kept[i] = qd.bit_cast(x[i], qd.i64) >> 1
                k = kept[i]
            elif qd.static(way == "element"):
                v = qd.Vector([qd.i64(1), qd.bit_cast(x[i], qd.i64)])
                v[i % 2] = v[1] >> 1
                k = v[1]
            else:
                k = qd.bit_cast(x[i], qd.i64) >> 1
            k = 0x5FE6EB50C7B537A9 - k
            if qd.static(way == "there"):
                y[i] = qd.bit_cast(k, qd.f64)
            else:
                y[i] = float_of(k)

    place = r"y\[i\] = qd" if way == "there" else r"return qd.bit_cast\(k, qd.f64\)"
    with pytest.raises(qd.IngotCompilationError, match=rf"made of the bits of one\n *{place}.*\n *\^"):
        root.grad()


def test_bits_that_only_steer_make_no_floats():
    """Converted, compared and counted they are no bits any more; floats may be made of others."""
    x, y = numbers(), numbers()

    @qd.kernel
    def steered():
        for i in range(4):
            k = bits_of(x[i])
            e = qd.select(k > 0, 1023, 1022)
            if k & 1 == 3:
                e += 1
            y[i] = float_of(qd.i64(e) << 52) * x[i] * x[i] + qd.cast(k >> 52, qd.f64)

    steered()
    y.grad.fill(1.0)
    steered.grad()
    assert (x.grad.to_numpy() == 2 * x.to_numpy()).all()
