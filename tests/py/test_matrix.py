"""Vectors and matrices: in Python, in kernels, as arguments, results and elements of arrays.
Kernels run natively and on the interpreter; NumPy says what is right."""

import copy
import pickle

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
vec2, vec3, vec4 = qd.math.vec2, qd.math.vec3, qd.math.vec4
ivec3 = qd.math.ivec3
dvec3 = qd.types.vector(3, qd.f64)
dmat3 = qd.types.matrix(3, 3, qd.f64)
dmat4 = qd.types.matrix(4, 4, qd.f64)
SCALE = qd.Vector([1.5, 2.5, 3.5])


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def rows(m):
    return np.array(m.to_list())


# ---- Python ------------------------------------------------------------------------------------


def test_python_arithmetic():
    a, b = qd.Vector([1.0, 2.0, 3.0]), qd.Vector([4, 5, 6])
    x, y = np.array([1.0, 2, 3]), np.array([4, 5, 6])
    assert rows(a + b).tolist() == (x + y).tolist()
    assert rows(2 - a).tolist() == (2 - x).tolist()
    assert rows(a / b).tolist() == (x / y).tolist()
    assert rows(b // 4 % 2).tolist() == (y // 4 % 2).tolist()
    assert rows(-a**2).tolist() == (-(x**2)).tolist()
    assert rows(a < 2.5).tolist() == [1, 1, 0]
    assert a.dot(b) == 32 and a.cross(b).to_list() == np.cross(x, y).tolist()
    assert a.norm() == pytest.approx(np.linalg.norm(x)) and a.normalized().norm() == pytest.approx(1)
    assert a.outer_product(b).to_list() == np.outer(x, y).tolist()
    assert (a.sum(), a.min(), a.max(), a.any(), a.all()) == (6, 1, 3, 1, 1)
    assert qd.sin(a).to_list() == pytest.approx(np.sin(x).tolist())
    assert qd.max(2.5, a).to_list() == [2.5, 2.5, 3.0]


def test_python_matrices():
    m = qd.Matrix([[1, 2], [3, 4]])
    assert m.shape == (2, 2) and m[1, 0] == 3 and m.transpose().to_list() == [[1, 3], [2, 4]]
    assert (m @ m).to_list() == [[7, 10], [15, 22]] and (m @ qd.Vector([1, 1])).to_list() == [3, 7]
    assert m.trace() == 5 and m.determinant() == -2
    assert np.allclose(rows(m @ m.inverse()), np.eye(2))
    assert qd.Matrix.identity(qd.f32, 3).to_list() == np.eye(3).tolist()
    assert qd.Matrix.zero(qd.i32, 2, 3).shape == (2, 3) and qd.Vector.one(qd.f32, 2).to_list() == [1, 1]
    assert qd.Matrix.rows([[1, 2], [3, 4]]).to_list() == m.to_list()
    assert qd.Matrix.cols([[1, 3], [2, 4]]).to_list() == m.to_list()
    assert qd.Matrix.diag(2, 5).to_list() == [[5, 0], [0, 5]] and qd.Vector.unit(3, 1).to_list() == [0, 1, 0]
    with pytest.raises(qd.IngotTypeError):
        m + qd.Vector([1, 2])
    assert pickle.loads(pickle.dumps(m)).to_list() == copy.deepcopy(m).to_list() == m.to_list()


def test_python_swizzles():
    v = qd.Vector([1, 2, 3])
    assert (v.x, v.g, v.p) == (1, 2, 3) and v.zyx.to_list() == [3, 2, 1] and v.xx.to_list() == [1, 1]
    v.x = 7
    v.zy = [8, 9]
    assert v.to_list() == [7, 9, 8]
    with pytest.raises(qd.IngotSyntaxError, match="only has attributes"):
        v.w
    with pytest.raises(AttributeError):
        v.nothing


def test_types():
    assert vec3 == qd.types.vector(3, qd.f32) and vec3 != vec4 and hash(vec3) == hash(qd.types.vector(3, qd.f32))
    assert vec3(1).to_list() == [1, 1, 1] and vec4(vec2(1, 2).xy, [3, 4]).to_list() == [1, 2, 3, 4]
    assert ivec3(1.9, 2.9, 3.9).to_list() == [1, 2, 3]
    assert pickle.loads(pickle.dumps(vec3)) == vec3
    with pytest.raises(qd.IngotRuntimeError):
        vec3(1, 2)


# ---- kernels: operators ------------------------------------------------------------------------


@qd.kernel
def operators(a: dvec3, b: dvec3, s: qd.f64, out: qd.types.ndarray(dtype=dvec3, ndim=1)):
    out[0] = a + b * s - 1
    out[1] = s / a
    out[2] = -a ** 2 // b
    out[3] = a % b
    out[4] = qd.cast(a < b, qd.f64)
    out[5] = qd.min(a, b, s) + qd.max(s, b)
    out[6] = qd.sin(a) * qd.exp(b) + qd.atan2(a, b)
    out[7] = qd.select(a > b, a, b)
    out[8] = qd.abs(a - b) if s > 0.0 else b
    out[9] = (qd.cast(a, qd.i32) << 1) & 6


def test_operators():
    rng = np.random.default_rng(1)
    for _ in range(5):
        a, b, s = rng.uniform(0.5, 3, 3), rng.uniform(0.5, 3, 3), float(rng.uniform(0.5, 3))
        out = qd.ndarray(dvec3, 10)
        operators(qd.Vector(a), b, s, out)
        expect = [a + b * s - 1, s / a, -(a**2) // b, a % b, a < b,
                  np.minimum(np.minimum(a, b), s) + np.maximum(s, b),
                  np.sin(a) * np.exp(b) + np.arctan2(a, b), np.where(a > b, a, b), np.abs(a - b),
                  (a.astype(int) << 1) & 6]
        assert np.allclose(out.to_numpy(), np.array(expect, dtype=float), rtol=1e-12)


@qd.kernel
def promotion() -> (vec3, ivec3, dvec3):
    a = qd.Vector([1, 2, 3])
    b = qd.Vector([1, 2.5, 3])
    c = qd.Vector([1, 2, 3], qd.f64)
    return a * b, a / 2, c + a


def test_promotion():
    a, b, c = promotion()
    assert a.to_list() == [1, 5, 9] and c.to_list() == [2, 4, 6]
    assert b.to_list() == [0, 1, 1]


# ---- kernels: parts ----------------------------------------------------------------------------


@qd.kernel
def parts(i: qd.i32, m0: dmat3, out: qd.types.ndarray(dtype=qd.f64, ndim=2)):
    v = qd.Vector([1.0, 2.0, 3.0, 4.0], qd.f64)
    m = m0
    v[i] = 10
    v.yx = v.xy
    v.w += 5
    v[1:3] *= 2
    m[i, 2] = v[3 - i]
    m[:, 0] = m[i, :] + 1
    m[1, ::2] = 7
    for j in range(3):
        m[j, j] -= v[j]
    for k in qd.static(range(4)):
        out[0, k] = v[k]
    for p in range(3):
        for q in range(3):
            out[1 + p, q] = m[p, q]
    x, y, z, w = v
    out[4, 0] = x + y * 10 + z * 100 + w * 1000
    out[4, 1] = v.n + m.m
    out[4, 2] = v.zw.sum()


@pytest.mark.parametrize("i", [0, 1, 2])
def test_parts(i):
    m = np.arange(9.0).reshape(3, 3)
    out = qd.ndarray(qd.f64, (5, 4))
    parts(i, m, out)
    v = np.array([1.0, 2, 3, 4])
    v[i] = 10
    v[[1, 0]] = v[[0, 1]]
    v[3] += 5
    v[1:3] *= 2
    m[i, 2] = v[3 - i]
    m[:, 0] = m[i, :] + 1
    m[1, ::2] = 7
    m[np.arange(3), np.arange(3)] -= v[:3]
    got = out.to_numpy()
    assert got[0].tolist() == v.tolist() and got[1:4, :3].tolist() == m.tolist()
    assert got[4].tolist() == [v @ [1, 10, 100, 1000], 7, v[2] + v[3], 0]


# ---- kernels: linear algebra -------------------------------------------------------------------


@qd.kernel
def linear(a: dmat4, b: dmat4, v: qd.types.vector(4, qd.f64), out: qd.types.ndarray(dtype=dmat4, ndim=1)) -> (
        qd.f64, qd.f64, qd.f64, qd.types.vector(4, qd.f64), qd.types.vector(4, qd.f64)):
    out[0] = a @ b
    out[1] = a.transpose() * 2
    out[2] = a.inverse()
    out[3] = v.outer_product(v)
    return a.determinant(), a.trace(), v.dot(v) + a.norm() + v.norm_sqr(), a @ v, v.normalized() + v @ b


def test_linear():
    rng = np.random.default_rng(2)
    for _ in range(5):
        a, b, v = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)
        out = qd.ndarray(dmat4, 4)
        det, trace, norms, av, vb = linear(a, b, v, out)
        o = out.to_numpy()
        assert np.allclose(o[0], a @ b) and np.allclose(o[1], a.T * 2) and np.allclose(o[3], np.outer(v, v))
        assert np.allclose(o[2] @ a, np.eye(4), atol=1e-8)
        assert np.allclose([det, trace], [np.linalg.det(a), np.trace(a)])
        assert norms == pytest.approx(2 * v @ v + np.linalg.norm(a))
        assert np.allclose(rows(av), a @ v) and np.allclose(rows(vb), v / np.linalg.norm(v) + v @ b)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12])
def test_inverse(n):
    mat = qd.types.matrix(n, n, qd.f64)

    @qd.kernel
    def inverse(x: qd.types.ndarray(dtype=mat, ndim=1)):
        for i in x:
            x[i] = x[i].inverse()

    rng = np.random.default_rng(n)
    a = rng.normal(size=(5, n, n))
    a[0] = np.eye(n)[::-1]  # needs pivots
    x = qd.ndarray(mat, 5)
    x.from_numpy(a)
    inverse(x)
    assert np.allclose(x.to_numpy() @ a, np.eye(n), atol=1e-8)


def test_large_matrices():
    mat = qd.types.matrix(32, 32, qd.f32)

    @qd.func
    def twice(m):
        m = m * 2
        return m

    @qd.kernel
    def work(x: qd.types.ndarray(dtype=mat, ndim=1), n: qd.i32) -> qd.f32:
        a = x[0]
        b = twice(a) + 1
        b[n, 3] += 5
        x[1] = a @ b.transpose()
        x[2] = qd.select(b > 1, b, -b) if n > 0 else a
        x[2] -= a
        return b.max() + a.sum()

    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, size=(32, 32)).astype(np.float32)
    x = qd.ndarray(mat, 3)
    x[0] = a.tolist()
    total = work(x, 7)
    b = a * 2 + 1
    b[7, 3] += 5
    assert total == b.max() + a.sum()
    assert np.array_equal(x.to_numpy()[1], a @ b.T)
    assert np.array_equal(x.to_numpy()[2], np.where(b > 1, b, -b) - a)


# ---- kernels: funcs, loops, captured ones, arrays ------------------------------------------------


@qd.func
def by_value(v):
    v.x = 100
    return v, v.sum()


@qd.func
def by_reference(v: qd.template()):
    v[1] = 200
    v += 1


@qd.func
def typed(v: ivec3) -> vec3:
    return v * 0.5


@qd.kernel
def through_funcs() -> (vec3, vec3, vec3, qd.f32):
    v = vec3(1, 2, 3)
    w, s = by_value(v)
    by_reference(v)
    return v, w, typed([3, 4, 5]), s


def test_funcs():
    v, w, t, s = through_funcs()
    assert v.to_list() == [2, 201, 4] and w.to_list() == [100, 2, 3]
    assert t.to_list() == [1.5, 2, 2.5] and s == 105


@qd.kernel
def captured(out: qd.types.ndarray(dtype=vec3, ndim=1)) -> qd.f32:
    for i in out:
        out[i] = SCALE * i
    return SCALE.norm_sqr() + SCALE.y


def test_captured():
    global SCALE
    out = qd.ndarray(vec3, 3)
    try:
        assert captured(out) == pytest.approx(1.5**2 + 2.5**2 + 3.5**2 + 2.5)
        assert out.to_numpy().tolist() == [[0, 0, 0], [1.5, 2.5, 3.5], [3, 5, 7]]
        SCALE[0] = 10.0  # never stale
        captured(out)
        assert out[1].to_list() == [10, 2.5, 3.5]
    finally:
        SCALE = qd.Vector([1.5, 2.5, 3.5])


@qd.kernel
def grouped(x: qd.types.ndarray(dtype=qd.i32, ndim=2), n: qd.i32):
    for I in qd.grouped(x):
        J = (I + n) % 3
        x[I] = J[0] * 10 + J.y + I.sum() * 100
        for D in qd.static(qd.grouped(qd.ndrange(2, (1, 3)))):
            x[I] += (D * 1000).sum() + D[1]


def test_grouped():
    x = qd.ndarray(qd.i32, (3, 3))
    grouped(x, 1)
    i, j = np.indices((3, 3))
    extra = sum((a + b) * 1000 + b for a in range(2) for b in range(1, 3))
    assert np.array_equal(x.to_numpy(), (i + 1) % 3 * 10 + (j + 1) % 3 + (i + j) * 100 + extra)


@qd.kernel
def from_itself(v: dvec3, n: qd.i32) -> (dvec3, dvec3, dvec3):
    a, b, c = v, v, v
    a -= a[0]
    b += b[n]
    c += c.yzx
    return a, b, c


def test_updates_read_their_operand_first():
    a, b, c = from_itself([1, 2, 4], 1)
    assert a.to_list() == [0, 1, 3] and b.to_list() == [3, 4, 6] and c.to_list() == [3, 6, 5]


@qd.kernel
def from_parts(o: qd.types.ndarray(qd.i32, ndim=1)):
    for _ in range(1):
        v = qd.Vector([1, 2, 3])
        v.yzx += v
        w = qd.Vector([1, 2, 3])
        w.xyz += w.zyx
        m = qd.Matrix([[1, 2], [3, 4]])
        m[:, 0] += m[0, :]
        for j in qd.static(range(3)):
            o[j], o[3 + j] = v[j], w[j]
        o[6], o[7] = m[0, 0], m[1, 0]


def test_updates_of_parts_read_the_whole_first():
    o = qd.ndarray(qd.i32, (8,))
    from_parts(o)
    assert list(o.to_numpy()) == [4, 3, 5, 4, 4, 4, 2, 5]


@qd.kernel
def scatter(x: qd.types.ndarray(dtype=vec2, ndim=1), n: qd.i32) -> vec2:
    total = vec2(0)
    for i in range(n):
        x[i % 4] += vec2(1, i)
        x[0].y -= 1
        total += [1, 2]
        qd.atomic_max(x[1], vec2(5000, 0))
    return total


def test_atomics():
    x = qd.Vector.ndarray(2, qd.f32, 4)
    assert scatter(x, 4000).to_list() == [4000, 8000]
    assert x[0].to_list() == [1000, sum(range(0, 4000, 4)) - 4000]
    assert x[1].x >= 5000 and x[2].x == 1000


def test_arrays_from_python():
    a = qd.Matrix.ndarray(2, 3, qd.i32, (4,))
    assert (a.shape, a.element_shape, a.n, a.m, a.to_numpy().shape) == ((4,), (2, 3), 2, 3, (4, 2, 3))
    a[1] = [[1, 2, 3], [4, 5, 6]]
    a[1][0, 2] = 9
    assert a[1].to_list() == [[1, 2, 9], [4, 5, 6]] and a[1, 1, 2] == 6
    a.fill(3)
    assert a.to_numpy().tolist() == np.full((4, 2, 3), 3).tolist()
    b = pickle.loads(pickle.dumps(a))
    assert b.element_type == a.element_type and b[0].to_list() == a[0].to_list()
    with pytest.raises(qd.IngotRuntimeTypeError):
        a[0] = [1, 2]


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("text, match", [
    ("vec2(1, 2) + vec3(1)", "Dimension mismatch"),
    ("qd.Vector([1, 2])[2]", "out of bounds"),
    ("qd.Vector([1, 2])[0, 0]", "Expected 1 indices, got 2"),
    ("vec2(1, 2).z", "only has attributes"),
    ("qd.Matrix([[1, 2], [3]])", "differ in length"),
    ("vec3(1).transpose()", "outer_product"),
    ("vec3(1, 2)", "from 2 numbers"),
    ("qd.Matrix([[1, 2, 3]]).trace()", "square"),
    ("vec3(1).nothing", "no attribute"),
])
def test_refused(tmp_path, text, match):
    source = f"def k():\n    x = {text}\n"
    scope = {"qd": qd, "vec2": vec2, "vec3": vec3}
    exec(source, scope)
    with pytest.raises(qd.IngotCompilationError, match=match):
        qd.kernel(scope["k"], source=source)()


def test_refused_arguments():
    @qd.kernel
    def k(v: vec3) -> vec3:
        return v

    assert k((1, 2, 3)).to_list() == k(np.array([1, 2, 3])).to_list() == [1, 2, 3]
    for bad in ([1, 2], 3, qd.Matrix([[1], [2], [3]]), "abc"):
        with pytest.raises(qd.IngotArgumentError):
            k(bad)


# ---- constructors in kernels ------------------------------------------------------------------


@qd.kernel
def made(out: qd.types.ndarray()):
    for _ in range(1):
        qd.static_assert(qd.Vector.zero(qd.i64, 3).dtype == qd.i64)
        qd.static_assert(qd.Vector([1, 2.5], dt=qd.i32).dtype == qd.i32)
        qd.static_assert(qd.math.uvec2(1.9).dtype == qd.u32)
        v = (qd.Vector.one(qd.f32, 2), qd.Vector.unit(2, 1), qd.Vector([1.75, 2], dt=qd.i32),
             qd.math.ivec2(2.9, -2.9), vec3(1, qd.math.vec2(5, 6)).yz, qd.math.vec4(7).xw)
        for k in qd.static(range(6)):
            out[k, 0], out[k, 1] = v[k][0], v[k][1]
        p, q = qd.Vector([1, 2]), qd.Vector([3.0, 4.0])
        m = (qd.Matrix.zero(qd.i32, 2, 2), qd.Matrix.one(qd.i32, 2, 2), qd.Matrix.identity(qd.f32, 2),
             qd.Matrix.diag(2, 5), qd.Matrix.rows([p, q]), qd.Matrix.cols([p, q]),
             qd.math.mat2([[1, 2], [3, 4]]), qd.Matrix([[1, 2], [3, 4]]).cast(qd.f32) / 2)
        for k in qd.static(range(8)):
            for i, j in qd.static(qd.ndrange(2, 2)):
                out[6 + 2 * k + i, j] = m[k][i, j]
        w = qd.Vector([1, 0, 3])
        out[22, 0], out[22, 1] = w.any(), w.all()
        w.fill(2)
        out[23, 0], out[23, 1] = w.all(), w.sum()


def test_constructors():
    out = np.zeros((24, 2))
    made(out)
    want = [[1, 1], [0, 1], [1, 2], [2, -2], [5, 6], [7, 7],
            [0, 0], [0, 0], [1, 1], [1, 1], [1, 0], [0, 1], [5, 0], [0, 5],
            [1, 2], [3, 4], [1, 3], [2, 4], [1, 2], [3, 4], [0.5, 1], [1.5, 2], [1, 0], [1, 6]]
    assert out.tolist() == want


# ---- large results of funcs ---------------------------------------------------------------------

big, long = qd.types.matrix(12, 12, qd.f64), qd.types.vector(100, qd.i32)
Pack = qd.types.struct(m=big, k=qd.i32, v=long)


@qd.func
def doubled(m):
    return m * 2


@qd.func
def several(m, n) -> (big, qd.f64, big):
    return m @ n, m[0, 0], m + n


@qd.func
def either(m, c):
    if c > 0:
        return doubled(m) + c, c
    return m, -c


@qd.func
def packed(m, i):
    p = Pack(m, i, long(i))
    p.v[3] += 1
    return p


@qd.func
def through(p):
    p.m[1, 1] = -1
    return p, p.m


@qd.kernel
def large_results(x: qd.types.ndarray(dtype=big, ndim=1), y: qd.types.ndarray(dtype=big, ndim=1),
                  out: qd.types.ndarray(dtype=qd.f64, ndim=2)):
    for i in range(x.shape[0]):
        m = x[i]
        a, corner, b = several(doubled(m), m)
        c, sign = either(m, i - 1)
        p = packed(m, i)
        q, n = through(p)
        y[i] = a + b * corner + c - doubled(doubled(m))
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = sign, p.v[3] + p.v[4], q.m[1, 1], p.m[1, 1]
        out[i, 4] = n[1, 1] + n[2, 2]


def test_large_results():
    """They are stored in memory of the caller, by each of its calls."""
    z = np.random.default_rng(4).integers(-3, 4, (3, 12, 12)).astype(np.float64)
    x, y = (qd.ndarray(big, 3) for _ in range(2))
    x.from_numpy(z)
    out = np.zeros((3, 5))
    large_results(x, y, out)
    assert (x.to_numpy() == z).all()
    for i, m in enumerate(z):
        c, sign = (2 * m + i - 1, i - 1) if i > 1 else (m, 1 - i)
        assert (y.to_numpy()[i] == 2 * m @ m + 3 * m * (2 * m[0, 0]) + c - 4 * m).all()
        assert out[i].tolist() == [sign, 2 * i + 1, -1, m[1, 1], -1 + m[2, 2]]


def test_large_results_that_differ():
    @qd.func
    def sometimes(c):
        if c > 0:
            return big(c)

    @qd.func
    def unlike(c):
        if c > 0:
            return big(c)
        return qd.types.matrix(12, 11, qd.f64)(c)

    @qd.kernel
    def one(c: qd.i32) -> qd.f64:
        return sometimes(c)[0, 0]

    @qd.kernel
    def other(c: qd.i32) -> qd.f64:
        return unlike(c)[0, 0]

    with pytest.raises(qd.IngotCompilationError, match="ends without one on others"):
        one(1)
    with pytest.raises(qd.IngotCompilationError, match="an earlier one|does not match"):
        other(1)


def test_methods_by_their_class():
    @qd.kernel
    def k(x: qd.types.ndarray(), r: qd.types.ndarray(qd.f32, 2)):
        for i in range(2):
            d = qd.Vector.normalized(x[i], 1e-6)
            e = x[i].normalized(1e-6)
            m = qd.Vector.outer_product(x[i], d)
            r[i, 0] = qd.Vector.dot(x[i], d) - x[i].dot(e)
            r[i, 1] = qd.Matrix.norm(x[i] - 0.5, eps=1e-3) - (x[i] - 0.5).norm(1e-3)
            r[i, 2] = qd.Matrix.trace(m) - x[i].outer_product(e).trace()
            r[i, 3] = d[1]

    x = qd.Vector.ndarray(2, qd.f32, shape=2)
    x.from_numpy(np.array([[3, 4], [0, 2]], np.float32))
    r = qd.ndarray(qd.f32, shape=(2, 4))
    k(x, r)
    assert (r.to_numpy()[:, :3] == 0).all() and r.to_numpy()[:, 3] == pytest.approx([0.8, 1])

    @qd.kernel
    def number():
        qd.Vector.normalized(1.0)

    @qd.kernel
    def nothing():
        qd.Matrix.transpose()

    for kernel, found in (number, "the number 1"), (nothing, "no argument"):
        with pytest.raises(TypeError, match=f"is a method, found .*{found}"):
            kernel()
