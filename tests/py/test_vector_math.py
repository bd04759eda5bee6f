"""Math functions under fast math: accurate to 4 ulp, special values included, and the same for
an element wherever in a loop it stands."""

import math

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
UNARY = ["sin", "cos", "tan", "exp", "log", "tanh", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "atan", "exp2",
         "expm1", "log2", "log10", "log1p", "cbrt", "erf", "erfc"]
FUNCTIONS = [getattr(qd, name) for name in UNARY]


@pytest.fixture(autouse=True)
def start():
    qd.init(arch=qd.cpu)


@qd.kernel
def unary(x: Array(ndim=1), y: Array(ndim=1), which: qd.template()):
    for i in range(x.shape[0]):
        y[i] = (qd.static(FUNCTIONS)[which])(x[i])


@qd.kernel
def binary(x: Array(ndim=1), e: Array(ndim=1), p: Array(ndim=1), a: Array(ndim=1), h: Array(ndim=1)):
    for i in range(x.shape[0]):
        p[i] = x[i] ** e[i]
        a[i] = qd.atan2(x[i], e[i])
        h[i] = qd.hypot(x[i], e[i])


@qd.kernel
def mixed(x: Array(qd.f32, 1), y: Array(qd.f64, 1)):
    for i in range(x.shape[0]):
        if x[i] > 0.25:
            y[i] = qd.sin(x[i]) + qd.exp(qd.cast(x[i], qd.f64))


def run(kernel, dtype, *arrays, extra=()):
    held = [qd.ndarray(dtype, a.shape) for a in arrays]
    for h, a in zip(held, arrays):
        h.from_numpy(a)
    kernel(*held, *extra)
    return [h.to_numpy() for h in held]


def ulps(got, want):
    """Distance from the exact value in units of the last place of the result's type."""
    unit = np.spacing(np.abs(want.astype(got.dtype))).astype(np.longdouble)
    return float(np.max(np.abs(got.astype(np.longdouble) - want) / unit))


def samples(name, dtype, n=5003):
    x = np.random.default_rng(2).random(n)
    spans = {"asin": (-1, 1), "acos": (-1, 1), "log": (0.01, 50), "exp": (-20, 20), "log2": (0.01, 50), "log10": (0.01, 50),
             "acosh": (1, 20), "atanh": (-0.99, 0.99), "log1p": (-0.9, 50), "erfc": (-3, 3)}
    low, high = spans.get(name, (-10, 10))
    return (low + (high - low) * x).astype(dtype)


def exact(name, x):
    if name.startswith("erf"):
        return np.array([getattr(math, name)(v) for v in x.tolist()], np.longdouble)
    f = name.replace("a", "arc", 1) if name[0] == "a" else name
    return getattr(np, f)(x.astype(np.longdouble))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", UNARY)
def test_accurate(name, dtype):
    x = samples(name, dtype)
    q = qd.f32 if dtype == "f4" else qd.f64
    _, y = run(unary, q, x, np.zeros_like(x), extra=(UNARY.index(name),))
    assert ulps(y, exact(name, x)) <= 4


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_two_arguments(dtype):
    rng = np.random.default_rng(4)
    x = (rng.random(5003) * 5 + 0.01).astype(dtype)
    e = (rng.random(5003) * 8 - 4).astype(dtype)
    zero = np.zeros_like(x)
    _, _, p, a, h = run(binary, qd.f32 if dtype == "f4" else qd.f64, x, e, zero, zero, zero)
    wide = x.astype(np.longdouble), e.astype(np.longdouble)
    assert ulps(p, np.power(*wide)) <= 4 and ulps(a, np.arctan2(*wide)) <= 4 and ulps(h, np.hypot(*wide)) <= 4


@qd.kernel
def powers(x: Array(ndim=1), y: Array(ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = x[i] ** 1.7
        y[1, i] = x[i] ** -0.3
        y[2, i] = x[i] ** 0.25
        y[3, i] = 2.0 ** x[i]
        y[4, i] = 3.0 ** x[i]
        y[5, i] = x[i] ** 2.5
        y[6, i] = x[i] ** 1.75
        y[7, i] = x[i] ** -0.75
        y[8, i] = x[i] ** 3.25


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_constant_powers(dtype):
    x = (np.random.default_rng(6).random(4003) * 9 + 0.01).astype(dtype)
    q = qd.f32 if dtype == "f4" else qd.f64
    got = run(powers, q, x, np.zeros((9, len(x)), dtype))[1]
    wide = x.astype(np.longdouble)
    for k, e in enumerate((1.7, -0.3, 0.25)):
        assert ulps(got[k], wide ** np.longdouble(np.dtype(dtype).type(e))) <= 4
    assert ulps(got[3], np.longdouble(2) ** wide) <= 4
    assert ulps(got[4], np.longdouble(3) ** wide) <= 4
    assert ulps(got[5], wide ** np.longdouble(2.5)) <= 4
    for k, e in ((6, 1.75), (7, -0.75), (8, 3.25)):
        assert ulps(got[k], wide ** np.longdouble(e)) <= 4


def test_powers_at_the_edges():
    x = np.array([0.0, -0.0, -1.5, np.inf, -np.inf, np.nan, 1.0, -1.0, 200.0, -200.0, 1e-40] * 3, "f4")
    got = run(powers, qd.f32, x, np.zeros((9, len(x)), "f4"))[1]
    with np.errstate(all="ignore"):
        for k, e in ((0, 1.7), (1, -0.3), (2, 0.25), (6, 1.75), (7, -0.75), (8, 3.25)):
            want = x.astype("f8") ** np.float64(np.float32(e))
            near = np.abs(x) != np.float32(1e-40)  # denormals are zero with fast math
            np.testing.assert_allclose(got[k][near], want.astype("f4")[near], rtol=1e-6)
        np.testing.assert_allclose(got[3], (2.0 ** x.astype("f8")).astype("f4"), rtol=1e-6)


def test_special_values():
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 100.0, -200.0], "f4")
    for name in ("sin", "cos", "exp", "tanh"):
        _, y = run(unary, qd.f32, x, np.zeros_like(x), extra=(UNARY.index(name),))
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x.astype("f8")).astype("f4")
        np.testing.assert_allclose(y, want, rtol=1e-6)


def ends(name, dtype):
    """Arguments where powers begin to be denormal, zero and infinite, with neighbours, and far beyond."""
    least, most = np.finfo(dtype).minexp, np.finfo(dtype).maxexp
    scale = np.log(2.0) if name == "exp" else 1.0
    near = np.array([least - np.finfo(dtype).nmant - 1, least - 9, least - 1, least, least + 1, most - 2, most - 1, most])
    near = np.concatenate([near * scale + d for d in np.linspace(-3, 3, 401)])
    limits = [-746, -745.2, -707, 708, 709.7, 1024, -104, -87, 88, 88.7, 128, -1076, -1021, 1022, 1400, -151, -125, 126, 160]
    edges = [f(np.array(limits, dtype), np.array(to, dtype)) for f in (np.nextafter,) for to in (-9e9, 9e9)] + [limits]
    x = np.concatenate([near, *edges, [3e4, -3e4, np.inf, -np.inf, np.nan, 0.0, -0.0]]).astype(dtype)
    return np.random.default_rng(3).permutation(x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_powers_at_their_ends(name, dtype):
    x = ends(name, dtype)
    _, y = run(unary, qd.f32 if dtype == "f4" else qd.f64, x, np.zeros_like(x), extra=(UNARY.index(name),))
    with np.errstate(all="ignore"):
        want = exact(name, x).astype(dtype)
    normal = np.abs(want) >= np.finfo(dtype).tiny  # others may be zero with fast math
    unit = np.finfo(dtype).eps
    np.testing.assert_allclose(y[normal | np.isnan(want)], want[normal | np.isnan(want)], rtol=4 * unit)
    np.testing.assert_allclose(y[~normal], want[~normal], rtol=0, atol=float(np.finfo(dtype).tiny) * (1 + unit))


@qd.func
def pull(p, i):
    r2 = (p - qd.Vector([0.3 * i, 0.1])).norm_sqr() + 0.01
    return qd.Vector([p.y, -p.x]) / r2 * (1.0 - qd.exp(-r2 * (i + 1)))


@qd.func
def pulled(p):
    u = qd.Vector([0.0, 0.0])
    for i in range(4):
        u += pull(p, i)
    return u


@qd.kernel
def move(x: qd.types.ndarray(qd.math.vec2, 1)):
    for i in x:
        p = x[i]
        p += 0.1 * pulled(p)
        x[i] += 0.1 * pulled(p)


def test_short_loops_of_powers():
    """Loops that are unrolled so that points become vectors."""
    x = np.random.default_rng(8).random((1003, 2)).astype("f4")
    held = qd.ndarray(qd.math.vec2, 1003)
    held.from_numpy(x)
    move(held)

    def u(p):
        out = np.zeros_like(p)
        for i in range(4):
            r2 = (((p - [0.3 * i, 0.1]) ** 2).sum(axis=1) + 0.01)[:, None]
            out += np.stack([p[:, 1], -p[:, 0]], axis=1) / r2 * (1.0 - np.exp(-r2 * (i + 1)))
        return out

    w = x.astype("f8")
    np.testing.assert_allclose(held.to_numpy(), w + 0.1 * u(w + 0.1 * u(w)), rtol=2e-5, atol=2e-6)


def test_mixed_widths():
    x = np.random.default_rng(5).random(3001).astype("f4")
    a, b = qd.ndarray(qd.f32, x.shape), qd.ndarray(qd.f64, x.shape)
    a.from_numpy(x)
    mixed(a, b)
    y = x.astype("f8")
    want = np.where(y > 0.25, np.sin(y) + np.exp(y), 0.0)
    np.testing.assert_allclose(b.to_numpy(), want, rtol=3e-7)


def test_same_wherever_it_stands():
    """The rest of a loop computes as its vectors do, so no piece or thread shows."""
    x = samples("sin", "f4")
    for name in ("sin", "exp", "tan", "tanh", "cos"):
        which = UNARY.index(name)
        whole = run(unary, qd.f32, x, np.zeros_like(x), extra=(which,))[1]
        for first in range(1, 20):
            part = run(unary, qd.f32, x[first:], np.zeros_like(x[first:]), extra=(which,))[1]
            assert part.tobytes() == whole[first:].tobytes()
