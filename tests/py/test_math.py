"""`qd.math` and numbers made of others, natively and on the interpreter, against Python."""

import cmath

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
dvec2 = qd.types.vector(2, qd.f64)


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


@qd.kernel
def complex_numbers(z: dvec2, w: dvec2, n: qd.f64, out: qd.types.ndarray()):
    results = (qd.math.cmul(z, w), qd.math.cdiv(z, w), qd.math.cinv(z), qd.math.cconj(z), qd.math.csqrt(z),
               qd.math.cpow(z, n), qd.math.cexp(z), qd.math.clog(z))
    for k in qd.static(range(8)):
        out[k, 0], out[k, 1] = results[k][0], results[k][1]


@pytest.mark.parametrize("z", [1 + 2j, -3 + 0.5j, -2 - 1j, 0.25j, -4 + 0j])
def test_complex(z):
    w, n = 0.5 - 1.5j, 2.5
    out = np.zeros((8, 2))
    complex_numbers(qd.Vector([z.real, z.imag]), qd.Vector([w.real, w.imag]), n, out)
    want = [z * w, z / w, 1 / z, z.conjugate(), cmath.sqrt(z), z**n, cmath.exp(z), cmath.log(z)]
    assert out[:, 0] + 1j * out[:, 1] == pytest.approx(want, rel=1e-6, abs=1e-6)


def test_complex_zero():
    @qd.kernel
    def kernel() -> dvec2:
        return qd.math.csqrt(dvec2(0.0, 0.0)) + qd.math.cpow(dvec2(0.0, 0.0), 2.0)

    assert kernel().to_list() == [0, 0]


def test_zero_and_one():
    @qd.kernel
    def kernel(x: qd.f64, v: qd.math.ivec3) -> qd.types.vector(6, qd.f64):
        qd.static_assert(qd.zero(v).dtype == qd.i32)
        a, b = qd.zero(x), qd.one(v)
        a += 0.1  # stays an f64
        return qd.Vector([a, b[0], b[2], qd.one(x), qd.zero(v)[1], qd.one(True)])

    assert kernel(float("inf"), qd.Vector([4, 5, 6])).to_list() == pytest.approx([0.1, 1, 1, 1, 0, 1], abs=1e-8)
    assert qd.zero(2.5) == 0 and isinstance(qd.one(3), int)
    assert qd.zero(qd.Vector([1.5, 2.5])).to_list() == [0, 0]


def test_eye():
    @qd.kernel
    def kernel() -> qd.math.mat3:
        return qd.math.eye(3) * 2

    assert kernel().to_list() == (np.eye(3) * 2).tolist()


# ---- functions of numbers and vectors -------------------------------------------------------------

dvec3 = qd.types.vector(3, qd.f64)
X, Y, A = np.array([-1.75, 0.25, 3.5]), np.array([2.0, -0.5, 3.5]), 0.3


@qd.kernel
def by_element(x: dvec3, y: dvec3, a: qd.f64, out: qd.types.ndarray()):
    results = (qd.math.mix(x, y, a), qd.math.mix(x, y, y), qd.math.clamp(x, -1.0, 1.0), qd.math.clamp(x, y, 9.0),
               qd.math.step(0.25, x), qd.math.smoothstep(-2.0, 2.0, x), qd.math.fract(x), qd.math.sign(x),
               qd.math.mod(x, y), qd.math.log2(abs(y)), qd.math.degrees(x), qd.math.radians(x),
               qd.math.sign(x[0]) + qd.math.clamp(x, x, y))
    for k in qd.static(range(13)):
        for j in qd.static(range(3)):
            out[k, j] = results[k][j]


def test_by_element():
    out = np.zeros((13, 3))
    by_element(X, Y, A, out)
    t = np.clip((X + 2) / 4, 0, 1)
    want = [X * (1 - A) + Y * A, X * (1 - Y) + Y * Y, np.clip(X, -1, 1), np.minimum(9, np.maximum(X, Y)),
            X >= 0.25, t * t * (3 - 2 * t), X - np.floor(X), np.sign(X), X - Y * np.floor(X / Y),
            np.log2(np.abs(Y)), np.degrees(X), np.radians(X), np.sign(X[0]) + np.minimum(Y, X)]
    assert np.allclose(out, want, rtol=1e-6, atol=1e-7)


@qd.kernel
def of_vectors(x: dvec3, y: dvec3, n: dvec3, out: qd.types.ndarray()):
    results = (qd.math.reflect(x, n), qd.math.refract(x, n, 0.5), qd.math.refract(x, n, 8.0),
               qd.math.normalize(x), qd.math.cross(x, y))
    for k in qd.static(range(5)):
        for j in qd.static(range(3)):
            out[k, j] = results[k][j]
    out[5, 0] = qd.math.dot(x, y)
    out[5, 1] = qd.math.length(x)
    out[5, 2] = qd.math.distance(x, y)
    d = qd.math.vdir(qd.math.radians(qd.f64(30.0)))
    out[6, 0], out[6, 1] = d[0], d[1]
    out[6, 2] = x.norm_inv()


def test_of_vectors():
    x, n = X / np.linalg.norm(X), np.array([0.0, 0.6, 0.8])
    out = np.zeros((7, 3))
    of_vectors(x, Y, n, out)
    along = x @ n
    k = 1 - 0.25 * (1 - along**2)
    want = [x - 2 * along * n, 0.5 * x - (0.5 * along + np.sqrt(k)) * n, np.zeros(3), x, np.cross(x, Y),
            [x @ Y, 1, np.linalg.norm(x - Y)], [np.sqrt(0.75), 0.5, 1]]
    assert np.allclose(out, want, rtol=1e-6, atol=1e-7)
    # What is bent towards the normal: sines are as the indices.
    bent = out[1]
    assert np.isclose(np.linalg.norm(np.cross(bent, n)), 0.5 * np.linalg.norm(np.cross(x, n)))


@qd.kernel
def transforms(a: qd.f32, b: qd.f32, c: qd.f32, out: qd.types.ndarray(dtype=qd.math.mat4, ndim=1)):
    out[0] = qd.math.translate(a, b, c)
    out[1] = qd.math.scale(a, b, c)
    out[2] = qd.math.rot_by_axis(qd.math.vec3(0, 0, 3), a)
    out[3] = qd.math.rot_by_axis(qd.math.vec3(1, -2, 0.5), b)
    out[4] = qd.math.rot_yaw_pitch_roll(a, b, c)
    out[5] = qd.math.rotation3d(b, c, a)
    r = qd.math.rotation2d(a)
    for i, j in qd.static(qd.ndrange(2, 2)):
        out[6][i, j] = r[i, j]


def test_transforms():
    a, b, c = 0.5, -1.25, 2.0
    out = qd.Matrix.ndarray(4, 4, qd.f32, 7)
    transforms(a, b, c, out)
    move, stretch, about_z, about, turned, again, flat = out.to_numpy().astype(np.float64)
    assert np.allclose(move @ [1, 2, 3, 1], [1 + a, 2 + b, 3 + c, 1])
    assert np.allclose(stretch @ [1, 2, 3, 1], [a, 2 * b, 3 * c, 1])
    for r in (about_z, about, turned):
        assert np.allclose(r @ r.T, np.eye(4), atol=1e-6) and np.isclose(np.linalg.det(r), 1)
    assert np.allclose([1, 0, 0, 0] @ about_z, [np.cos(a), np.sin(a), 0, 0], atol=1e-6)  # of row vectors
    axis = np.array([1, -2, 0.5, 0])
    assert np.allclose(axis @ about, axis, atol=1e-6) and np.isclose(np.trace(about), 2 + 2 * np.cos(b))
    assert np.allclose(again, turned)
    assert np.allclose(flat[:2, :2], [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def test_special_numbers():
    @qd.kernel
    def kernel(x: dvec3) -> (qd.math.ivec3, qd.math.ivec3, qd.f64):
        constants = qd.math.pi * 10 + qd.math.e
        return qd.math.isnan(x), qd.math.isinf(x), constants

    nan, inf, constants = kernel([float("nan"), float("-inf"), 2.0])
    assert nan.to_list() == [1, 0, 0] and inf.to_list() == [0, 1, 0]
    assert constants == pytest.approx(np.pi * 10 + np.e, rel=1e-6)
    assert qd.math.inf == float("inf") and qd.math.nan != qd.math.nan


def test_real_func_keeps_its_loops():
    """In the outermost block of a kernel the loops of a func are the kernel's; those of a real one are not."""

    @qd.real_func
    def last(n: qd.i32) -> qd.i32:
        total = 0
        for i in range(n):
            total = total * 3 + i  # the order matters
        return total

    @qd.kernel
    def kernel(n: qd.i32) -> qd.i32:
        return last(n)

    want = 0
    for i in range(9):
        want = want * 3 + i
    assert kernel(9) == want
    with pytest.raises(qd.IngotSyntaxError, match="real function"):
        qd.func(lambda: 0, is_real_function=True, requires_top_level=True)
