"""Sparse matrices and solvers, on the host: what `qd.linalg` names.

A builder is three arrays that kernels append to; a matrix is compressed rows in NumPy arrays, in
f64 whatever its dtype, rounded to the dtype after each operation. Factors are made by the engine
(src/rt/sparse.c).
"""

from ingot import _core
from ingot._annotations import template
from ingot._core import IngotRuntimeError, IngotTypeError, Ndarray, _dense_field, f32, f64, i32, ndarray
from ingot._decorators import data_oriented, func, kernel
from ingot._ops import atomic_add, cast, grouped

def _np():
    import numpy

    return numpy


def _real(dtype):
    if dtype is not f32 and dtype is not f64:
        raise IngotTypeError(f"sparse matrices are of qd.f32 or qd.f64, not of {dtype}")
    return dtype


# ---- building -------------------------------------------------------------------------------------


@data_oriented
class SparseMatrixBuilder:
    """Collects entries that kernels add, `A[i, j] += x`; those of one place are summed up.

    max_num_triplets  how many entries can be added before `build`
    """

    def __init__(self, num_rows=None, num_cols=None, max_num_triplets=0, dtype=f32,
                 storage_format="col_major"):
        self.num_rows = num_rows
        self.num_cols = num_cols if num_cols else num_rows
        self.dtype = _real(dtype)
        self.storage_format = _format(storage_format)
        self._room = int(max_num_triplets)
        self._count = ndarray(i32, 1)
        self._at = ndarray(i32, (max(self._room, 1), 2))
        self._values = ndarray(dtype, max(self._room, 1))

    @func
    def _kernel_add(self, i, j, x):
        k = atomic_add(self._count[0], 1)
        if k >= 0 and k < self._values.shape[0]:
            self._at[k, 0] = cast(i, i32)
            self._at[k, 1] = cast(j, i32)
            self._values[k] = cast(x, self._values.dtype)

    def _triplets(self):
        count = int(self._count[0])
        if not 0 <= count <= self._room:
            raise IngotRuntimeError(
                f"{count} entries were added to a sparse matrix builder with room for "
                f"max_num_triplets={self._room}")
        at = self._at.to_numpy()[:count]
        return at[:, 0], at[:, 1], self._values.to_numpy()[:count]

    def print_triplets(self):
        """Prints what was added, in no particular order."""
        rows, cols, values = self._triplets()
        print(f"n={self.num_rows}, m={self.num_cols}, num_triplets={len(rows)} (max={self._room})")
        for i, j, x in zip(rows, cols, values):
            print(f"[{i}, {j}] = {_shown(x, self.dtype)}")

    def build(self, dtype=None, _format="CSR"):
        """The matrix of what was added so far; the builder is empty afterwards."""
        matrix = SparseMatrix(self.num_rows, self.num_cols, dtype=dtype or self.dtype,
                              storage_format=self.storage_format)
        matrix._set(*self._triplets())
        self._count.fill(0)
        return matrix


def _format(name):
    if name not in ("col_major", "row_major"):
        raise IngotRuntimeError(f"a storage format is 'col_major' or 'row_major', not {name!r}")
    return name


# ---- matrices ---------------------------------------------------------------------------------------


class SparseMatrix:
    """A sparse matrix: `A[i, j]`, `+`, `-`, `*` (a number, or element by element), `@`, `transpose()`."""

    __array_priority__ = 1000

    def __init__(self, n=None, m=None, sm=None, dtype=f32, storage_format="col_major"):
        if sm is not None:
            n, m, dtype = sm.n, sm.m, sm.dtype
        self.n, self.m = int(n), int(m if m else n)
        self.dtype = _real(dtype)
        self.storage_format = _format(storage_format)
        self._set([], [], [])
        if sm is not None:
            self._start, self._col, self._value = sm._start, sm._col, sm._value.copy()

    def _set(self, rows, cols, values):
        """Entries in any order; those of one place are summed up, in an order of their own.

        What threads add comes in any order: sorted by value as well, the sums are always the same.
        """
        np = _np()
        rows, cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        values = np.asarray(values, np.float64)
        bad = (rows < 0) | (rows >= self.n) | (cols < 0) | (cols >= self.m)
        if bad.any():
            k = int(np.argmax(bad))
            raise IngotRuntimeError(
                f"entry [{rows[k]}, {cols[k]}] is outside of a sparse matrix of {self.n} x {self.m}")
        order = np.lexsort((values, cols, rows))
        place = (rows * self.m + cols)[order]
        first = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1]))) if len(place) else order
        sums = np.add.reduceat(values[order], first) if len(place) else values
        self._keep(place[first] // self.m, place[first] % self.m, sums)
        return self

    def _keep(self, rows, cols, values):
        """Sorted entries, each place once."""
        np = _np()
        if self.dtype is f32:
            values = values.astype(np.float32)
        self._start = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=self.n)))).astype(np.int64)
        self._col, self._value = cols.astype(np.int32), values.astype(np.float64)
        return self

    def _rows(self):
        np = _np()
        return np.repeat(np.arange(self.n), np.diff(self._start))

    def _like(self, n=None, m=None):
        return SparseMatrix(self.n if n is None else n, self.m if m is None else m, dtype=self.dtype,
                            storage_format=self.storage_format)

    def _same_shape(self, other):
        assert self.shape == other.shape, f"Dimension mismatch between sparse matrices {self.shape} and {other.shape}"

    @property
    def shape(self):
        """(rows, columns)"""
        return self.n, self.m

    # ---- elements ----

    def _find(self, key):
        np = _np()
        i, j = (index.__index__() for index in key)
        if not (0 <= i < self.n and 0 <= j < self.m):
            raise IndexError(f"[{i}, {j}] is outside of a sparse matrix of {self.n} x {self.m}")
        begin, end = self._start[i], self._start[i + 1]
        at = int(begin + np.searchsorted(self._col[begin:end], j))
        return i, j, at, at < end and self._col[at] == j

    def __getitem__(self, key):
        *_, at, there = self._find(key)
        return float(self._value[at]) if there else 0.0

    def __setitem__(self, key, value):
        np = _np()
        i, j, at, there = self._find(key)
        value = float(np.float32(value)) if self.dtype is f32 else float(value)
        if there:
            self._value[at] = value
            return
        self._col, self._value = np.insert(self._col, at, j), np.insert(self._value, at, value)
        self._start = self._start.copy()
        self._start[i + 1:] += 1

    # ---- arithmetic ----

    def _sum(self, other, sign):
        np = _np()
        self._same_shape(other)
        return self._like()._set(np.concatenate((self._rows(), other._rows())),
                                 np.concatenate((self._col, other._col)),
                                 np.concatenate((self._value, sign * other._value)))

    def __add__(self, other):
        return self._sum(other, 1)

    def __sub__(self, other):
        return self._sum(other, -1)

    def __mul__(self, other):
        np = _np()
        if not isinstance(other, SparseMatrix):
            return self._like()._keep(self._rows(), self._col, self._value * float(other))
        self._same_shape(other)
        places = [a._rows() * self.m + a._col for a in (self, other)]
        both, x, y = np.intersect1d(*places, assume_unique=True, return_indices=True)
        return self._like()._keep(both // self.m, both % self.m, self._value[x] * other._value[y])

    def __rmul__(self, other):
        return self * other

    def transpose(self):
        """The matrix with rows and columns exchanged."""
        return self._like(self.m, self.n)._set(self._col, self._rows(), self._value)

    def __matmul__(self, other):
        np = _np()
        if isinstance(other, SparseMatrix):
            assert self.m == other.n, f"Dimension mismatch between sparse matrices {self.shape} and {other.shape}"
            # Every entry of this matrix meets a row of the other one.
            counts = np.diff(other._start)[self._col]
            mine = np.repeat(np.arange(len(self._col)), counts)
            within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
            theirs = other._start[self._col[mine]] + within
            return self._like(self.n, other.m)._set(
                self._rows()[mine], other._col[theirs], self._value[mine] * other._value[theirs])
        x = _vector(other)
        assert self.m == len(x), f"Dimension mismatch between sparse matrix {self.shape} and vector {x.shape}"
        return _like_vector(other, self.dtype, self._times(x))

    def _times(self, x):
        np = _np()
        return np.bincount(self._rows(), self._value * x[self._col], minlength=self.n)

    # ---- in and out ----

    def build_from_ndarray(self, triplets):
        """Replaces the content by triplets (row, column, value) in an array of numbers or of vectors of 3."""
        np = _np()
        flat = np.asarray(triplets.to_numpy(), np.float64).ravel()
        if flat.size % 3:
            raise IngotRuntimeError("The number of ndarray elements must have a length that is divisible by 3.")
        rows, cols, values = flat.reshape(-1, 3).T
        self._set(rows.astype(np.int64), cols.astype(np.int64), values)

    def to_numpy(self):
        """The matrix with all its zeros."""
        np = _np()
        full = np.zeros(self.shape, np.float32 if self.dtype is f32 else np.float64)
        full[self._rows(), self._col] = self._value
        return full

    def mmwrite(self, filename):
        """Writes a Matrix Market file."""
        with open(filename, "w", encoding="ascii") as out:
            out.write("%%MatrixMarket matrix coordinate real general\n%\n")
            out.write(f"{self.n} {self.m} {len(self._col)}\n")
            for i, j, x in zip(self._rows(), self._col, self._value):
                out.write(f"{i + 1} {j + 1} {float(x)!r}\n")

    def __repr__(self):
        """As the reference writes them: rows of equal width, numbers with 4 digits."""
        rows = [[f"{x:.4g}" for x in row] for row in self.to_numpy().tolist()]
        width = max((len(x) for row in rows for x in row), default=0)
        return "\n".join(f"[{', '.join(x.rjust(width) for x in row)}]" for row in rows)

    __str__ = __repr__


def _shown(x, dtype):
    """The shortest text that means this number of its type; of whole numbers without a point."""
    np = _np()
    x = (np.float32 if dtype is f32 else np.float64)(x)
    if x == 0 or 1e-4 <= abs(x) < 1e16:
        return np.format_float_positional(x, trim="-")
    return np.format_float_scientific(x, trim="-", exp_digits=2)


def _vector(x):
    np = _np()
    values = np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x, np.float64)
    if values.ndim != 1:
        raise IngotRuntimeError(f"a vector is needed, not an array with {values.ndim} axes")
    return values


def _like_vector(x, dtype, values):
    """A result as an ndarray for an argument that is one, else (an array of NumPy, a field) as NumPy's."""
    np = _np()
    values = values.astype(np.float32 if dtype is f32 else np.float64)
    if not isinstance(x, Ndarray):
        return values
    made = ndarray(dtype, len(values))
    made.from_numpy(values)
    return made


# ---- direct solvers -----------------------------------------------------------------------------------

_KINDS = {"LLT": 0, "LDLT": 1, "LU": 2}


class SparseSolver:
    """Solves A x = b by factors of A: "LLT" (symmetric and positive definite), "LDLT" (symmetric), "LU".

    ordering  accepted: the order of elimination is by approximate minimum degree
    """

    def __init__(self, dtype=f32, solver_type="LLT", ordering="AMD"):
        if solver_type not in _KINDS or ordering not in ("AMD", "COLAMD"):
            raise IngotRuntimeError(
                f"The solver type {solver_type} with {ordering} is not supported: it is one of "
                "LLT, LDLT and LU with AMD or COLAMD")
        self.dtype = _real(dtype)
        self.solver_type = solver_type
        self._factors = None

    def analyze_pattern(self, sparse_matrix):
        """Kept for programs that call it: `factorize` does all of it."""
        self._check(sparse_matrix)

    def _check(self, matrix):
        if not isinstance(matrix, SparseMatrix):
            raise IngotRuntimeError(
                f"The parameter type: {type(matrix)} is not supported in linear solvers for now.")
        if matrix.n != matrix.m:
            raise IngotRuntimeError(f"a square matrix is needed, not one of {matrix.n} x {matrix.m}")

    def factorize(self, sparse_matrix):
        """Computes the factors, for `solve`."""
        self._check(sparse_matrix)
        a = sparse_matrix
        self._factors = _core.sparse_factorize(a._start, a._col, a._value, _KINDS[self.solver_type])

    compute = factorize

    def solve(self, b):
        """The vector x with A x = b."""
        np = _np()
        if self._factors is None:
            raise IngotRuntimeError("Please call compute() before calling solve().")
        if not self.info():
            raise IngotRuntimeError(f"{self._factors}: it cannot be solved with {self.solver_type}")
        x = np.frombuffer(_core.sparse_solve(self._factors, np.ascontiguousarray(_vector(b))))
        return _like_vector(b, self.dtype, x)

    def info(self):
        """Whether the factors could be made."""
        return self._factors is not None and not isinstance(self._factors, str)


# ---- iterations ---------------------------------------------------------------------------------------


class SparseCG:
    """Solves A x = b by conjugate gradients; A is symmetric and positive definite."""

    def __init__(self, A, b, x0=None, max_iter=50, atol=1e-6):
        self.A, self.b, self.x0 = A, b, x0
        self.max_iter, self.atol = max_iter, atol

    def solve(self):
        """The solution, and whether the residual fell to atol times |b|."""
        np = _np()
        b = _vector(self.b)
        x = np.zeros_like(b) if self.x0 is None else _vector(self.x0)
        r = b - self.A._times(x)
        p, rr, goal = r.copy(), r @ r, (self.atol * np.linalg.norm(b)) ** 2
        for _ in range(self.max_iter):
            if rr <= goal:
                break
            q = self.A._times(p)
            pq = p @ q
            if not pq > 0:
                break
            x, r = x + rr / pq * p, r - rr / pq * q
            rr, old = r @ r, rr
            p = r + rr / old * p
        return _like_vector(self.b, self.A.dtype, x), bool(rr <= goal)


class LinearOperator:
    """A matrix known by its product with a vector: a kernel `matvec(x, Ax)`."""

    def __init__(self, matvec_kernel):
        self._matvec = matvec_kernel

    def matvec(self, x, Ax):
        """Writes A x to Ax, by calling the kernel."""
        if x.shape != Ax.shape:
            raise IngotRuntimeError(f"Dimension mismatch x.shape{x.shape} != Ax.shape{Ax.shape}.")
        self._matvec(x, Ax)


@kernel
def _combine(out: template(), x: template(), a: f64, y: template(), b: f64, z: template()):
    """out = x + a y + b z; out may be one of them."""
    for k in grouped(out):
        out[k] = x[k] + cast(a, out.dtype) * y[k] + cast(b, out.dtype) * z[k]


@kernel
def _dot(x: template(), y: template()) -> f64:
    total = cast(0.0, f64)
    for k in grouped(x):
        total += cast(x[k], f64) * cast(y[k], f64)
    return total


def _check_free(b, x):
    if b.dtype is not x.dtype:
        raise IngotTypeError(f"Dtype mismatch b.dtype({b.dtype}) != x.dtype({x.dtype}).")
    if b.dtype is not f32 and b.dtype is not f64:
        raise IngotTypeError(f"Not supported dtype: {b.dtype}")
    if b.shape != x.shape:
        raise IngotRuntimeError(f"Dimension mismatch b.shape{b.shape} != x.shape{x.shape}.")
    if _first(b) != _first(x):
        raise IngotRuntimeError(f"the indices of b begin at {_first(b)}, those of x at {_first(x)}")


def _first(x):
    """The index of the first element; fields may have an offset."""
    return getattr(x, "offset", (0,) * len(x.shape))


def _like(b):
    """Room for as many numbers as b has, under the same indices."""
    return ndarray(b.dtype, b.shape) if isinstance(b, Ndarray) else _dense_field(b.dtype, b.shape, None, b.offset)


def MatrixFreeCG(A, b, x, tol=1e-6, maxiter=5000, quiet=True):
    """Solves A x = b by conjugate gradients, starting from x, which gets the solution.

    A is a LinearOperator, symmetric and positive definite. Whether the residual fell below tol.
    """
    _check_free(b, x)
    p, r, q = (_like(b) for _ in range(3))
    A.matvec(x, q)
    _combine(r, b, -1.0, q, 0.0, q)
    _combine(p, r, 0.0, q, 0.0, q)
    rr = _dot(r, r)
    for turn in range(maxiter):
        if rr**0.5 <= tol:
            return True
        A.matvec(p, q)
        pq = _dot(p, q)
        if not pq > 0:
            return False
        _combine(x, x, rr / pq, p, 0.0, p)
        _combine(r, r, -rr / pq, q, 0.0, q)
        rr, old = _dot(r, r), rr
        _combine(p, r, rr / old, p, 0.0, p)
        if not quiet:
            print(f"iteration {turn + 1}: residual {rr**0.5}")
    return rr**0.5 <= tol


def MatrixFreeBICGSTAB(A, b, x, tol=1e-6, maxiter=5000, quiet=True):
    """Solves A x = b for any LinearOperator by stabilised bi-conjugate gradients; see MatrixFreeCG."""
    _check_free(b, x)
    p, v, r, r0, s, t = (_like(b) for _ in range(6))
    A.matvec(x, v)
    _combine(r, b, -1.0, v, 0.0, v)
    _combine(r0, r, 0.0, r, 0.0, r)
    v.fill(0)
    rho = alpha = omega = 1.0
    for turn in range(maxiter):
        size = _dot(r, r) ** 0.5
        if size <= tol:
            return True
        rho, old = _dot(r0, r), rho
        if rho == 0 or omega == 0:
            return False
        beta = rho / old * alpha / omega
        _combine(p, r, beta, p, -beta * omega, v)
        A.matvec(p, v)
        alpha = rho / _dot(r0, v)
        _combine(s, r, -alpha, v, 0.0, v)
        A.matvec(s, t)
        tt = _dot(t, t)
        omega = _dot(t, s) / tt if tt else 0.0
        _combine(x, x, alpha, p, omega, s)
        _combine(r, s, -omega, t, 0.0, t)
        if not quiet:
            print(f"iteration {turn + 1}: residual {_dot(r, r) ** 0.5}")
    return _dot(r, r) ** 0.5 <= tol
