"""Decompositions and solvers of small matrices: residuals, orthogonality and order on random
matrices of every difficult kind (singular, nearly so, graded, tiny, huge, repeated values).
100,000 of each kind of call under `make stress`, a twentieth otherwise."""

import numpy as np
import pytest
from conftest import SEED, samples

import ingot as qd

TYPES = {"f32": (qd.f32, np.float32, 1e-5), "f64": (qd.f64, np.float64, 1e-10)}
FULL = 100_000


@pytest.fixture(params=TYPES)
def real(request):
    return TYPES[request.param]


# ---- matrices -------------------------------------------------------------------------------------


def _orthogonal(rng, count, n):
    return np.linalg.qr(rng.standard_normal((count, n, n)))[0]


def _family(rng, kind, count, n):
    """`count` matrices of one kind, in f64 with entries around one; scaling comes later."""
    plain = rng.standard_normal((count, n, n))
    if kind == "plain":
        return plain
    if kind == "whole":
        return rng.integers(-2, 3, (count, n, n)).astype(float)
    if kind == "rank one":
        return plain[:, :, :1] @ plain[:, :1, :]
    if kind == "nearly singular":
        left, right = _orthogonal(rng, count, n), _orthogonal(rng, count, n)
        return left * (10.0 ** -rng.uniform(0, 16, (count, 1, n))) @ right
    if kind == "repeated":
        left, right = _orthogonal(rng, count, n), _orthogonal(rng, count, n)
        return left * rng.integers(0, 2, (count, 1, n)) @ right
    if kind == "nearly diagonal":
        return np.eye(n) * plain + 10.0 ** -rng.uniform(3, 20, (count, 1, 1)) * plain[::-1]
    if kind == "graded":
        rows, cols = (10.0 ** rng.uniform(-8, 0, (count, *s)) for s in ((n, 1), (1, n)))
        return plain * rows * cols
    if kind == "triangular":
        return np.triu(plain) * rng.integers(0, 2, (count, n, n))
    if kind == "equal":
        return np.broadcast_to(rng.standard_normal((count, 1, 1)), (count, n, n)).copy()
    raise AssertionError(kind)


KINDS = ("plain", "whole", "rank one", "nearly singular", "repeated", "nearly diagonal", "graded",
         "triangular", "equal")


def matrices(n, np_type, symmetric=False, times=1):
    """All kinds, their largest entries anywhere in the range of normal numbers; the others may lie
    below, where the processor takes them for zero (fast_math)."""
    rng = np.random.default_rng(SEED + n)
    count = times * samples(FULL) // len(KINDS) + 1
    a = np.concatenate([_family(rng, kind, count, n) for kind in KINDS])
    if symmetric:
        a = (a + a.transpose(0, 2, 1)) / 2
    info = np.finfo(np_type)
    high = np.log10(float(info.max)) - 1
    low = np.log10(float(info.tiny)) + 1
    exponent = rng.choice([0, 0, low, high], len(a)) * rng.uniform(0, 1, len(a))
    a = (scaled(a)[0] * 10.0 ** exponent[:, None, None]).astype(np_type)
    special = np.zeros((5, n, n), np_type)
    special[1], special[2] = np.eye(n), -np.eye(n)
    special[3], special[4] = info.max / (2 * n), np.eye(n) * info.tiny
    assert np.isfinite(a).all()
    return np.concatenate([special, a])


def run(call, dtype, a, *outs, extra=None):
    """Calls `call`, a func, on every matrix; outs are the shapes of its results."""
    ins = [_array(dtype, a)] + ([] if extra is None else [_array(dtype, extra)])
    results = [_empty(dtype, len(a), shape) for shape in outs]
    kernels = {(1, 1): _one, (1, 2): _two, (1, 3): _three, (2, 1): _with}
    kernels[len(ins), len(outs)](call, *ins, *results)
    return [r.to_numpy().astype(np.float64) for r in results]


def _empty(dtype, count, shape):
    if len(shape) == 1:
        return qd.Vector.ndarray(*shape, dtype, count)
    return qd.Matrix.ndarray(*shape, dtype, count)


def _array(dtype, a):
    made = _empty(dtype, len(a), a.shape[1:])
    made.from_numpy(a)
    return made


@qd.kernel
def _one(call: qd.template(), a: qd.types.ndarray(), x: qd.types.ndarray()):
    for i in range(a.shape[0]):
        x[i] = call(a[i], dt=a.dtype)


@qd.kernel
def _two(call: qd.template(), a: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in range(a.shape[0]):
        x[i], y[i] = call(a[i], dt=a.dtype)


@qd.kernel
def _three(call: qd.template(), a: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray(),
           z: qd.types.ndarray()):
    for i in range(a.shape[0]):
        x[i], y[i], z[i] = call(a[i], dt=a.dtype)


@qd.kernel
def _with(call: qd.template(), a: qd.types.ndarray(), b: qd.types.ndarray(), x: qd.types.ndarray()):
    for i in range(a.shape[0]):
        x[i] = call(a[i], b[i], dt=a.dtype)


def scaled(a, *others):
    """The matrices divided by their largest entry, and others by the same number."""
    top = np.abs(a).max(axis=(1, 2), keepdims=True).astype(np.float64)
    top[top == 0] = 1
    return [a.astype(np.float64) / top] + [x / (top if x.ndim == 3 else top[:, 0]) for x in others]


def T(a):
    return a.transpose(0, 2, 1)


def worst(*differences):
    """The largest of all numbers; one that is none counts as infinite."""
    return max(float(np.nan_to_num(np.abs(d), nan=np.inf).max(initial=0)) for d in differences)


def from_orthogonal(q):
    return T(q) @ q - np.eye(q.shape[1])


def use(fast_math=True):
    qd.init(arch=qd.cpu, fast_math=fast_math)


# ---- accuracy -------------------------------------------------------------------------------------


def svd_errors(np_type, dtype, a):
    n = a.shape[1]
    u, s, v = run(qd.svd, dtype, a, (n, n), (n, n), (n, n))
    a, s = scaled(a, s)
    d = np.diagonal(s, axis1=1, axis2=2)
    assert (s == d[:, :, None] * np.eye(n)).all() and (np.diff(d) <= 0).all()
    assert (d[:, :n - 1 if n == 3 else n] >= 0).all()
    signs = [np.linalg.det(u) - 1, np.linalg.det(v) - 1] if n == 3 else []
    return worst(u @ s @ T(v) - a, from_orthogonal(u), from_orthogonal(v),
                 np.abs(d) - np.linalg.svd(a)[1], *signs)


@pytest.mark.parametrize("n", [2, 3])
def test_svd(real, n):
    dtype, np_type, bar = real
    use()
    off = svd_errors(np_type, dtype, matrices(n, np_type))
    assert off < bar


def test_svd_of_rank_one(real):
    """Whole or equal numbers: what rotations leave of other columns is pure rounding, or nothing."""
    dtype, np_type, bar = real
    use()
    rng = np.random.default_rng(SEED)
    x, y = rng.integers(-3, 4, (2, samples(FULL), 3))
    equal = _family(rng, "equal", samples(2 * FULL), 3)
    off = svd_errors(np_type, dtype, np.concatenate([x[:, :, None] * y[:, None, :], equal]).astype(np_type))
    assert off < bar


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_f32_values_lean_to_no_side(n, fast_math):
    """A simulation decomposes what it decomposed before, thousands of times: what one is wrong by in the
    mean adds up. Of rounding alone it is 1e-9 here."""
    use(fast_math)
    rng = np.random.default_rng(7)
    a = (np.eye(n) + 0.01 * rng.standard_normal((20_000, n, n))).astype(np.float32)
    u, s, v = run(qd.svd, qd.f32, a, (n, n), (n, n), (n, n))
    right = np.linalg.svd(a.astype(np.float64), compute_uv=False)
    assert abs((np.diagonal(s, axis1=1, axis2=2) - right).mean()) < 1e-8
    assert abs(np.diagonal(T(v) @ v, axis1=1, axis2=2).mean() - 1) < 1e-8
    symmetric = a + a.transpose(0, 2, 1)
    e, w = run(qd.sym_eig, qd.f32, symmetric, (n,), (n, n))
    assert abs((e - np.linalg.eigvalsh(symmetric.astype(np.float64))).mean()) < 1e-8
    assert abs(np.diagonal(T(w) @ w, axis1=1, axis2=2).mean() - 1) < 1e-8


@pytest.mark.parametrize("n", [2, 3])
def test_svd_without_fast_math(real, n):
    dtype, np_type, bar = real
    use(fast_math=False)
    off = svd_errors(np_type, dtype, matrices(n, np_type))
    assert off < bar


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_below_the_smallest_normal_number(real, n, fast_math):
    """Matrices of such numbers alone: right to a few units of the last place that there is."""
    dtype, np_type, bar = real
    use(fast_math)
    info, rng = np.finfo(np_type), np.random.default_rng(SEED)
    unit = float(info.smallest_subnormal)
    sizes = 2.0 ** rng.uniform(0, info.nmant + 8, (samples(2000), 1, 1))
    a = (rng.standard_normal((len(sizes), n, n)) * sizes * unit).astype(np_type)
    b = (a + T(a)).astype(np_type)

    def off(result, of):
        """In the matrix's size, without what the last place cannot hold; a power of two first."""
        top = np.maximum(np.abs(of).max(axis=(1, 2)), 8 * unit)
        return worst(np.maximum(np.abs(result - of).max(axis=(1, 2)) - 4 * unit, 0) / top)

    up = 2.0**900 if np_type is np.float64 else 1.0
    a, b, unit = a.astype(np.float64), b.astype(np.float64), unit * up
    u, s, v = run(qd.svd, dtype, a, (n, n), (n, n), (n, n))
    r, p = run(qd.polar_decompose, dtype, a, (n, n), (n, n))
    e, w = run(qd.sym_eig, dtype, b, (n,), (n, n))
    m, = run(qd.make_spd, dtype, b, (n, n))
    for q in (u, v, r, w):
        assert worst(from_orthogonal(q)) < bar
    assert off(u @ (s * up) @ T(v), a * up) < bar
    assert off(r @ (p * up), a * up) < bar
    assert off(w * (e * up)[:, None, :] @ T(w), b * up) < bar
    values, vectors = np.linalg.eigh(b * up)
    assert off(m * up, vectors * np.maximum(values, 0)[:, None, :] @ T(vectors)) < bar
    easy = np.linalg.cond(a * up) < 30
    x, = run(qd.solve, dtype, a[easy], (n,), extra=b[easy][:, 0])
    left = (a[easy] * up @ x[:, :, None])[:, :, 0] - b[easy][:, 0] * up
    assert worst(left / (np.abs(x).max(1, keepdims=True) * np.abs(a[easy] * up).max((1, 2))[:, None])) < bar


@pytest.mark.parametrize("n", [2, 3])
def test_polar(real, n):
    dtype, np_type, bar = real
    use()
    a = matrices(n, np_type)
    r, s = run(qd.polar_decompose, dtype, a, (n, n), (n, n))
    a, s = scaled(a, s)
    off = worst(r @ s - a, from_orthogonal(r), s - T(s))
    assert off < bar
    if n == 3:
        off = worst(np.linalg.det(r) - 1)
    else:
        off = -np.linalg.eigvalsh(s).min()
    assert off < bar


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_sym_eig(real, n):
    dtype, np_type, bar = real
    use()
    a = matrices(n, np_type, symmetric=True)
    e, v = run(qd.sym_eig, dtype, a, (n,), (n, n))
    a, e = scaled(a, e)
    off = worst(a @ v - v * e[:, None, :], from_orthogonal(v), e - np.linalg.eigvalsh(a))
    assert off < bar and (np.diff(e) >= 0).all()


@pytest.mark.parametrize("n", [2, 6])
def test_make_spd(real, n):
    dtype, np_type, bar = real
    use()
    a = matrices(n, np_type, symmetric=True)
    m, = run(qd.make_spd, dtype, a, (n, n))
    a, m = scaled(a, m)
    e, v = np.linalg.eigh(a)
    off = worst(m - v * np.maximum(e, 0)[:, None, :] @ T(v))
    assert off < bar


def test_eig(real):
    dtype, np_type, bar = real
    use()
    a = matrices(2, np_type)
    e, v = run(qd.eig, dtype, a, (2, 2), (4, 2))
    a, e = scaled(a, e)
    values, vectors = e[:, :, 0] + 1j * e[:, :, 1], v[:, 0::2] + 1j * v[:, 1::2]
    off = worst(a @ vectors - vectors * values[:, None, :], np.linalg.norm(vectors, axis=1) - 1,
                values.sum(1) - np.trace(a, axis1=1, axis2=2), values.prod(1) - np.linalg.det(a))
    assert off < bar
    assert (e[:, 0, 0] >= e[:, 1, 0]).all() and (e[:, 0, 1] >= 0).all()
    twins = (a == a[:, :1, :1] * np.eye(2)).all(axis=(1, 2))  # multiples of the identity
    assert twins.any()
    off = worst(np.abs(np.linalg.det(vectors[twins])) - 1)
    assert off < bar


@pytest.mark.parametrize("n", [2, 3])
def test_solve(real, n):
    """The backward error, whatever the condition; the error itself where the condition is good."""
    dtype, np_type, bar = real
    use()
    info = np.finfo(np_type)
    a = matrices(n, np_type, times=3)
    unit, = scaled(a)
    a = a[(np.linalg.cond(unit) < 0.01 / info.eps) & (np.abs(a).max((1, 2)) > info.tiny)]
    assert len(a) > samples(FULL)
    rng = np.random.default_rng(SEED)
    want = rng.uniform(-1, 1, (len(a), n))
    b = (a.astype(np.float64) @ want[:, :, None])[:, :, 0].astype(np_type)
    x, = run(qd.solve, dtype, a, (n,), extra=b)
    a, b = scaled(a, b)
    top = np.abs(x).max(1, keepdims=True)
    off = worst(((a @ x[:, :, None])[:, :, 0] - b) / (top + np.abs(b).max(1, keepdims=True)))
    assert off < bar
    easy = np.linalg.cond(a) < 10
    off = worst(((x - np.linalg.solve(a, b[:, :, None])[:, :, 0]) / top)[easy])
    assert off < bar


# ---- behaviour --------------------------------------------------------------------------------------


def test_interpreter_agrees():
    a = np.array([[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [0.0, 1.0, -2.0]], np.float32)[None]
    found = []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch)
        found.append([*run(qd.svd, qd.f32, a, (3, 3), (3, 3), (3, 3)),
                      *run(qd.sym_eig, qd.f32, a @ T(a), (3,), (3, 3)),
                      *run(qd.eig, qd.f32, a[:, :2, :2], (2, 2), (4, 2)),
                      *run(qd.solve, qd.f32, a, (3,), extra=a[:, 0])])
    for native, interp in zip(*found):
        assert np.abs(native - interp).max() < 1e-5


def test_type_of_the_result():
    """f64 where the matrix or default_fp is, unless dt= says otherwise; integers are taken."""

    @qd.kernel
    def kernel(out: qd.types.ndarray()):
        for _ in range(1):
            third = 1.0 / 3.0
            one = qd.Matrix([[qd.f64(third), 0.0], [0.0, 1.0]])
            qd.static_assert(qd.svd(one)[1].dtype == qd.f64)
            qd.static_assert(qd.svd(one, qd.f32)[1].dtype == qd.f32)
            qd.static_assert(qd.sym_eig(qd.cast(one, qd.f32))[0].dtype == qd.f32)
            out[0] = qd.solve(qd.Matrix([[2, 0], [0, 4]]), qd.Vector([1, 1]))[1]

    qd.init(arch=qd.cpu)
    out = np.zeros(1, np.float32)
    kernel(out)
    assert out[0] == 0.25


def test_outermost_block():
    """Their loops are their own: in the outermost block of a kernel they do not run in parallel."""

    @qd.kernel
    def kernel(m: qd.types.matrix(4, 4, qd.f64)) -> qd.types.vector(4, qd.f64):
        e, v = qd.sym_eig(m, qd.f64)
        return e

    qd.init(arch=qd.cpu)
    a = np.diag([3.0, 1.0, 2.0, 0.5]) + 0.25
    assert np.allclose(kernel(qd.Matrix(a.tolist())).to_list(), np.linalg.eigvalsh(a))


@pytest.mark.parametrize("call, n, text", [
    (qd.svd, 4, "SVD only supports 2×2 and 3×3"), (qd.polar_decompose, 1, "Polar decomposition only supports"),
    (qd.eig, 3, "Eigen solver only supports 2×2"), (qd.sym_eig, 7, "supports sizes up to 6×6"),
    (qd.make_spd, 7, "supports sizes up to 6×6")])
def test_sizes_refused(call, n, text):
    qd.init(arch=qd.cpu)
    with pytest.raises(qd.IngotCompilationError, match=text):
        run(call, qd.f32, np.ones((1, n, n), np.float32), (n, n))


def test_singular_in_debug():
    qd.init(arch=qd.cpu, debug=True)
    with pytest.raises(qd.IngotAssertionError, match="Matrix is singular in linear solve"):
        run(qd.solve, qd.f32, np.ones((1, 2, 2), np.float32), (2,), extra=np.ones((1, 2), np.float32))


def test_many_calls_are_one_function():
    """Calls share one function, whose results are told apart."""

    @qd.kernel
    def many(a: qd.types.ndarray(), s: qd.types.ndarray()):
        for i in range(a.shape[0]):
            total = qd.Matrix.zero(qd.f32, 3, 3)
            for k in qd.static(range(30)):
                u, d, v = qd.svd(a[i] + k)
                total += d
            s[i] = total

    qd.init(arch=qd.cpu)
    a, s = _array(qd.f32, np.eye(3, dtype=np.float32)[None]), _empty(qd.f32, 1, (3, 3))
    many(a, s)
    want = sum(np.linalg.svd(np.eye(3) + k)[1] for k in range(30))
    assert np.allclose(np.diag(s.to_numpy()[0]), want, rtol=1e-4)
