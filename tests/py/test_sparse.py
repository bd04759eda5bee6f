"""Sparse matrices and solvers, against NumPy's full ones."""

import numpy as np
import pytest
from conftest import SEED

import ingot as qd

TYPES = {"f32": (qd.f32, 1e-4), "f64": (qd.f64, 1e-10)}


@pytest.fixture(params=TYPES)
def real(request):
    qd.init(arch=qd.cpu)
    return TYPES[request.param]


@qd.kernel
def add_all(A: qd.types.sparse_matrix_builder(), rows: qd.types.ndarray(), cols: qd.types.ndarray(),
            values: qd.types.ndarray()):
    for k in range(rows.shape[0]):
        A[rows[k], cols[k]] += values[k]


def random_triplets(rng, n, m, count):
    return (rng.integers(0, n, count).astype(np.int32), rng.integers(0, m, count).astype(np.int32),
            rng.integers(-8, 9, count).astype(np.float64) / 4)


def built(dtype, n, m, rows, cols, values):
    builder = qd.linalg.SparseMatrixBuilder(n, m, max_num_triplets=len(rows), dtype=dtype)
    add_all(builder, rows, cols, values)
    return builder.build()


def pair(dtype, rng, n, m, count):
    """The same matrix, sparse and full."""
    rows, cols, values = random_triplets(rng, n, m, count)
    full = np.zeros((n, m))
    np.add.at(full, (rows, cols), values)
    return built(dtype, n, m, rows, cols, values), full


@pytest.mark.parametrize("n, m, count", [(1, 1, 1), (5, 3, 0), (7, 9, 12), (40, 30, 400)])
def test_arithmetic(real, n, m, count):
    dtype, _ = real
    rng = np.random.default_rng(SEED)
    (a, x), (b, y), (c, z) = (pair(dtype, rng, *shape, count) for shape in ((n, m), (n, m), (m, n)))
    assert a.shape == (n, m) and (a.to_numpy() == x).all()
    assert ((a + b).to_numpy() == x + y).all() and ((a - b).to_numpy() == x - y).all()
    assert ((a * b).to_numpy() == x * y).all() and ((2.5 * a).to_numpy() == 2.5 * x).all()
    assert ((a @ c).to_numpy() == x @ z).all() and (a.transpose().to_numpy() == x.T).all()
    v = rng.integers(-4, 5, m).astype(np.float64)
    assert (a @ v == x @ v).all()
    w = qd.ndarray(dtype, m)
    w.from_numpy(v.astype(np.float32 if dtype is qd.f32 else np.float64))
    assert ((a @ w).to_numpy() == x @ v).all()


def test_builder(real):
    dtype, _ = real
    builder = qd.linalg.SparseMatrixBuilder(3, 4, max_num_triplets=4, dtype=dtype)

    @qd.kernel
    def fill(A: qd.types.sparse_matrix_builder()):
        for i in range(3):
            A[i, i + 1] -= 2 * i + 1

    fill(builder)
    a = builder.build()
    assert a.to_numpy().tolist() == [[0, -1, 0, 0], [0, 0, -3, 0], [0, 0, 0, -5]]
    assert builder.build().to_numpy().sum() == 0  # empty again
    fill(builder), fill(builder)
    with pytest.raises(qd.IngotRuntimeError, match="6 entries were added .* max_num_triplets=4"):
        builder.build()

    @qd.kernel
    def outside(A: qd.types.sparse_matrix_builder()):
        A[3, 0] += 1.0

    other = qd.linalg.SparseMatrixBuilder(3, 4, max_num_triplets=4, dtype=dtype)
    outside(other)
    with pytest.raises(qd.IngotRuntimeError, match=r"\[3, 0\] is outside .* 3 x 4"):
        other.build()


def test_text(capsys):
    """As the reference writes matrices and triplets."""
    builder = qd.linalg.SparseMatrixBuilder(2, 3, max_num_triplets=4, dtype=qd.f32)

    @qd.kernel
    def fill(b: qd.types.sparse_matrix_builder()):
        b[0, 0] += 1.5
        b[0, 1] += 1.0 / 3.0
        b[1, 2] += -1234567.25
        b[1, 0] += 2.0

    fill(builder)
    builder.print_triplets()
    assert capsys.readouterr().out == (
        "n=2, m=3, num_triplets=4 (max=4)\n[0, 0] = 1.5\n[0, 1] = 0.33333334\n[1, 2] = -1234567.2\n[1, 0] = 2\n")
    a = builder.build()
    assert str(a) == repr(a) == (
        "[       1.5,     0.3333,          0]\n[         2,          0, -1.235e+06]")


def test_products_with_fields(real):
    dtype, _ = real
    builder = qd.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=2, dtype=dtype)

    @qd.kernel
    def fill(b: qd.types.sparse_matrix_builder()):
        b[0, 0] += 2.0
        b[1, 1] += 4.0

    fill(builder)
    a = builder.build()
    x = qd.field(dtype, 2)
    x.from_numpy(np.array([1.0, 2.0]))
    assert isinstance(a @ x, np.ndarray) and (a @ x).tolist() == [2.0, 8.0]
    solver = qd.linalg.SparseSolver(dtype, "LU")
    solver.analyze_pattern(a)
    solver.factorize(a)
    assert isinstance(solver.solve(x), np.ndarray) and solver.solve(x).tolist() == [0.5, 0.5]


def test_only_sums_in_kernels():
    qd.init(arch=qd.cpu)
    builder = qd.linalg.SparseMatrixBuilder(3, 3, max_num_triplets=4)

    @qd.kernel
    def fill(A: qd.types.sparse_matrix_builder()):
        A[0, 0] *= 2.0

    with pytest.raises(qd.IngotSyntaxError, match="only .= and -= work"):
        fill(builder)


def test_sums_do_not_depend_on_order():
    """Many entries of one place, added by threads in any order, are summed in one order."""
    qd.init(arch=qd.cpu)
    rng = np.random.default_rng(SEED)
    n = 20_000
    values = rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 8, n)
    zero = np.zeros(n, np.int32)
    forth = built(qd.f64, 2, 2, zero, zero, values)[0, 0]
    back = built(qd.f64, 2, 2, zero, zero, values[::-1].copy())[0, 0]
    assert forth == back


def test_elements(real):
    dtype, _ = real
    a = qd.linalg.SparseMatrix(n=3, m=2, dtype=dtype)
    a[2, 1], a[0, 0], a[2, 0] = 5.0, 0.1, 3.0
    a[2, 1] = 4.0
    assert a.to_numpy().tolist() == [[np.float32(0.1) if dtype is qd.f32 else 0.1, 0], [0, 0], [3, 4]]
    assert a[1, 1] == 0 and a[2, 1] == 4
    with pytest.raises(IndexError):
        a[3, 0]
    triplets = qd.ndarray(dtype, 6)
    triplets.from_numpy(np.array([0, 1, 2.5, 2, 0, 1.5], np.float32 if dtype is qd.f32 else np.float64))
    a.build_from_ndarray(triplets)
    assert a.to_numpy().tolist() == [[0, 2.5], [0, 0], [1.5, 0]]


def test_matrix_market(tmp_path):
    qd.init(arch=qd.cpu)
    a = qd.linalg.SparseMatrix(n=2, m=2, dtype=qd.f64)
    a[1, 0] = 2.5
    a.mmwrite(tmp_path / "a.mtx")
    assert (tmp_path / "a.mtx").read_text().splitlines()[2:] == ["2 2 1", "2 1 2.5"]


def grid(n):
    """The equations of heat on an n x n grid: symmetric, positive definite."""
    at = np.arange(n * n).reshape(n, n)
    pairs = np.concatenate([np.stack((at[1:].ravel(), at[:-1].ravel())),
                            np.stack((at[:, 1:].ravel(), at[:, :-1].ravel()))], axis=1)
    rows = np.concatenate((at.ravel(), pairs[0], pairs[1]))
    cols = np.concatenate((at.ravel(), pairs[1], pairs[0]))
    values = np.concatenate((np.full(n * n, 4.0), np.full(2 * pairs.shape[1], -1.0)))
    return rows.astype(np.int32), cols.astype(np.int32), values


@pytest.mark.parametrize("ordering", ["AMD", "COLAMD"])
@pytest.mark.parametrize("kind", ["LLT", "LDLT", "LU"])
def test_solver(real, kind, ordering):
    dtype, bar = real
    rng = np.random.default_rng(SEED)
    for n in (1, 2, 10, 60):
        x = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.2)
        full = x @ x.T + np.eye(n) if kind != "LU" else x + np.diag(rng.uniform(1, 2, n))[rng.permutation(n)]
        if kind == "LDLT":
            full -= np.diag(rng.uniform(0, 0.5, n)) * 2.5
        full = full.astype(np.float32).astype(np.float64)
        rows, cols = np.nonzero(full)
        a = built(dtype, n, n, rows.astype(np.int32), cols.astype(np.int32), full[rows, cols])
        solver = qd.linalg.SparseSolver(dtype=dtype, solver_type=kind, ordering=ordering)
        solver.analyze_pattern(a)
        solver.factorize(a)
        want = rng.standard_normal(n)
        assert solver.info()
        found = solver.solve(full @ want)
        assert np.abs(full @ found - full @ want).max() < bar * np.abs(full).sum()


def test_large_grid():
    """The order of elimination keeps the factors of 40,000 equations small enough to be had."""
    qd.init(arch=qd.cpu)
    n = 200
    a = built(qd.f64, n * n, n * n, *grid(n))
    b = np.random.default_rng(SEED).standard_normal(n * n)
    for kind in ("LLT", "LU"):
        solver = qd.linalg.SparseSolver(dtype=qd.f64, solver_type=kind)
        solver.compute(a)
        x = solver.solve(b)
        assert np.abs(a @ x - b).max() < 1e-10


def test_singular():
    qd.init(arch=qd.cpu)
    a = qd.linalg.SparseMatrix(n=2, m=2, dtype=qd.f64)
    a[0, 0] = a[0, 1] = a[1, 0] = a[1, 1] = 1.0
    b = np.ones(2)
    for kind in ("LLT", "LDLT", "LU"):
        solver = qd.linalg.SparseSolver(dtype=qd.f64, solver_type=kind)
        with pytest.raises(qd.IngotRuntimeError, match="call compute"):
            solver.solve(b)
        solver.compute(a)
        assert not solver.info()
        with pytest.raises(qd.IngotRuntimeError, match="singular"):
            solver.solve(b)
    a[0, 1] = a[1, 0] = 2.0
    solver = qd.linalg.SparseSolver(dtype=qd.f64, solver_type="LLT")
    solver.compute(a)
    with pytest.raises(qd.IngotRuntimeError, match="not positive definite"):
        solver.solve(b)
    with pytest.raises(qd.IngotRuntimeError, match="square"):
        solver.compute(qd.linalg.SparseMatrix(n=2, m=3))
    with pytest.raises(qd.IngotRuntimeError, match="QR"):
        qd.linalg.SparseSolver(solver_type="QR")


def test_engine_checks_its_input():
    from ingot import _core

    start, col, value = np.array([0, 1, 2]), np.array([0, 5], np.int32), np.array([1.0, 1.0])
    for args in ((start, col, value, 0), (start[:2], col, value, 0), (start, col, value[:1], 0), (start, col, value, 9)):
        with pytest.raises(ValueError):
            _core.sparse_factorize(*args)


def test_conjugate_gradients(real):
    dtype, bar = real
    n = 12
    a = built(dtype, n * n, n * n, *grid(n))
    b = np.random.default_rng(SEED).standard_normal(n * n)
    x, done = qd.linalg.SparseCG(a, b, max_iter=200, atol=1e-8).solve()
    assert done and np.abs(a @ x - b).max() < max(bar, 1e-6)
    assert not qd.linalg.SparseCG(a, b, max_iter=2).solve()[1]


@pytest.mark.parametrize("solve", ["MatrixFreeCG", "MatrixFreeBICGSTAB"])
def test_matrix_free(real, solve):
    dtype, _ = real

    @qd.kernel
    def heat(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i, j in x:
            s = 4.5 * x[i, j]
            if i > 0:
                s -= x[i - 1, j]
            if j > 0:
                s -= x[i, j - 1]
            if i + 1 < x.shape[0]:
                s -= x[i + 1, j]
            if j + 1 < x.shape[1]:
                s -= x[i, j + 1]
            y[i, j] = s

    b, x, y = (qd.ndarray(dtype, (9, 7)) for _ in range(3))
    b.from_numpy(np.random.default_rng(SEED).standard_normal((9, 7)).astype(
        np.float32 if dtype is qd.f32 else np.float64))
    operator = qd.linalg.LinearOperator(heat)
    assert getattr(qd.linalg, solve)(operator, b, x, tol=1e-5)
    operator.matvec(x, y)
    assert np.abs(y.to_numpy() - b.to_numpy()).max() < 1e-4
    with pytest.raises(qd.IngotRuntimeError, match="Dimension mismatch"):
        getattr(qd.linalg, solve)(operator, b, qd.ndarray(dtype, (9, 8)))
