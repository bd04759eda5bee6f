"""Decompositions and solvers of small matrices, as funcs that kernels call.

Each is lowered once per size and type, and called: hundreds of calls cost one compile. Every one
scales its matrix by a power of two first, which rounds nothing, so that neither tiny nor huge
entries leave the range of the type, and ends after a bounded number of sweeps whatever the
entries are. With fast math the processor takes numbers below the smallest normal one for zero:
tiny matrices are raised by way of their bits, and what comes of them is lowered that way.

1. svd is one-sided Jacobi, as is polar_decompose of 3x3: columns of A are rotated in pairs until they are orthogonal; V is the
   product of the rotations, the columns are U S. Small singular values keep their accuracy.
2. sym_eig is cyclic Jacobi: rotations from both sides until nothing stands off the diagonal.
3. eig solves the quadratic without cancellation and takes each eigenvector from the longer row.
4. solve is elimination on rows of equal size with the largest pivot of each column.
5. Derivatives of 1 and 2 are not those of the rotations: where a matrix needs none, as the identity does, the
   code that rotates does not run, and where two singular values are equal up to rounding it turns by any angle.
   The decomposition of A, taken as constant, is turned by small rotations with the value zero that have the
   derivative: U' = U (1 + P), V' = V (1 + Q), P and Q antisymmetric, and U^T dA V = P S + dS - S Q.
"""

from ingot._annotations import template
from ingot._core import f32, f64, i32, i64
from ingot._decorators import func, real_func
from ingot._matrix import Matrix, Vector
from ingot._ops import _derives, abs, bit_cast, cast, floor, max, min, select, sqrt, static, static_assert

_SWEEPS = 16  # convergence is quadratic: f64 needs 5 sweeps of 3x3, 8 of 6x6


# ---- numbers ------------------------------------------------------------------------------------


@func
def _typed(A, dt):
    """A in the type to compute in: the one asked for, else the wider of its own and default_fp."""
    if static(dt is None):
        return A * 1.0
    else:
        static_assert(dt == f32 or dt == f64, "dt must be qd.f32 or qd.f64")
        return cast(A, dt)


@func
def _eps(A):
    """Half the distance from 1 to the next number."""
    if static(A.dtype == f64):
        return 1.1102230246251565e-16
    else:
        return 5.9604644775390625e-08


@func
def _floor(A):
    """The third power of that: far below what rounding leaves of a number near one."""
    if static(A.dtype == f64):
        return 1.4e-48
    else:
        return 2.1e-22


@func
def _power(v):
    """A power of two near the largest entry, and its inverse; 1 and 1 if all are zero. Constants: bits that become
    the same float again leave its derivative behind."""
    largest = abs(v).max()
    if static(v.dtype == f64):
        m = bit_cast(bit_cast(largest, i64), f64)
        e = select(m == 0, i64(1023), max(min(bit_cast(m, i64) >> 52, i64(2045)), i64(1)))
        return bit_cast(e << 52, f64), bit_cast((2046 - e) << 52, f64)
    else:
        static_assert(v.dtype == f32, "only f32 and f64 matrices are supported")
        m = bit_cast(bit_cast(largest, i32), f32)
        e = select(m == 0, 127, max(min(bit_cast(m, i32) >> 23, 253), 1))
        return bit_cast(e << 23, f32), bit_cast((254 - e) << 23, f32)


@func
def _raised(x, wide: template()):
    """x * 2**32 (f64: 2**64) of a tiny x, from its bits where it is no normal number."""
    if static(wide):
        b = bit_cast(x, i64)
        m = b & 0x7FFFFFFFFFFFFFFF
        s = cast(m, f64) * 2.0**-1010
        return select(m < 2**52, select(b < 0, -s, s), x * 2.0**64)
    else:
        b = bit_cast(x, i32)
        m = b & 0x7FFFFFFF
        s = cast(m, f32) * 2.0**-117
        return select(m < 2**23, select(b < 0, -s, s), x * 2.0**32)


@func
def _lowered(x, wide: template()):
    """The inverse of that."""
    if static(wide):
        m = cast(floor(abs(x) * 2.0**1010 + 0.5), i64)
        s = bit_cast(select(x < 0, m | i64(-(2**63)), m), f64)
        return select(m < 2**52, s, x * 2.0**-64)
    else:
        m = cast(floor(abs(x) * 2.0**117 + 0.5), i32)
        s = bit_cast(select(x < 0, m | i32(-(2**31)), m), f32)
        return select(m < 2**23, s, x * 2.0**-32)


@func
def _magnitude(x, wide: template()):
    """The bits of abs(x), which are in the order of the numbers."""
    if static(wide):
        return bit_cast(x, i64) & 0x7FFFFFFFFFFFFFFF
    else:
        return cast(bit_cast(x, i32) & 0x7FFFFFFF, i64)


@func
def _is_tiny(v):
    """Is every entry so small that a number below the smallest normal one might matter?"""
    wide = static(v.dtype == f64)
    m = cast(0, i64)
    if static(v.m == 1):
        for i in static(range(v.n)):
            m = max(m, _magnitude(v[i], wide))
    else:
        for i in range(v.n):
            for j in static(range(v.m)):
                m = max(m, _magnitude(v[i, j], wide))
    return m < static(64 << 52 if v.dtype == f64 else 31 << 23)


@func
def _each(v, tiny, change: template()):
    """v, or if it is tiny change(x) of each entry."""
    wide = static(v.dtype == f64)
    result = v
    if tiny:
        if static(v.m == 1):
            for i in static(range(v.n)):
                result[i] = change(v[i], wide)
        else:
            for i in range(v.n):
                for j in static(range(v.m)):
                    result[i, j] = change(v[i, j], wide)
    return result


@func
def _rotation(difference, twice):
    """Sine and tangent of the half of the smaller angle x with tan(2 x) = twice / difference."""
    m = max(abs(difference), abs(twice))
    u, v = difference / m, twice / m
    t = v / (u + select(u < 0, -1.0, 1.0) * sqrt(u * u + v * v))
    h = sqrt(1.0 + t * t)
    return t / h, t / (1.0 + h)


@func
def _rotate(x, y, s, g):
    """cos x - sin y and sin x + cos y, from the sine and the tangent of the half angle.

    A rounded cosine is too large or too small, and so is what it turns: f32 singular values of 3x3 were wrong
    by 1.1e-7, in the mean by 3e-8. As x and what is added to it, the smaller the angle the smaller the error: 6e-8, 2e-9.
    """
    return x - s * (y + g * x), y + s * (x - g * y)


@func
def _unit(w, least, otherwise):
    """w with length one; `otherwise` if no entry of w is above `least`."""
    m = abs(w).max()
    result = otherwise
    if m > least:
        v = w / m
        result = v / sqrt(v.dot(v))
    return result


@func
def _across(u):
    """A vector of length one at right angles to u, which has three elements and length one."""
    other = select(abs(u[0]) < 0.6, Vector([1.0, 0.0, 0.0]), Vector([0.0, 1.0, 0.0]))
    v = u.cross(other)
    return v / sqrt(v.dot(v))


# ---- derivatives --------------------------------------------------------------------------------


@func
def _tangent(E):
    """Zero, with the derivative of E: bits have none."""
    bits = static(i64 if E.dtype == f64 else i32)
    C = Matrix([[bit_cast(bit_cast(E[i, j], bits), E.dtype) for j in static(range(E.n))] for i in static(range(E.n))])
    return E - C


@func
def _over(x, y, least):
    """x / y, or 0 where y is not told from 0."""
    q = x
    if abs(y) > least:
        q = x / y
    else:
        q = 0.0 * x
    return q


@func
def _svd_with_tangents(A, U, S, V):
    """U, S, V, the svd of A, with the derivative that A gives them (5). Between singular values that are equal S has
    the derivatives of its zeros instead of U and V, so that U @ S @ V.transpose() is right there, and V @ S @ V.transpose()."""
    n = static(A.n)
    E = _tangent(U.transpose() @ A @ V)
    P, Q, T = Matrix.zero(A.dtype, n, n), Matrix.zero(A.dtype, n, n), S
    least = sqrt(_eps(A)) * S[0, 0]
    for i in static(range(n)):
        T[i, i] += E[i, i]
        for j in static(range(i + 1, n)):
            s, t = S[i, i], S[j, j]
            even, odd = 0.5 * (E[i, j] + E[j, i]), 0.5 * (E[i, j] - E[j, i])
            apart, both = _over(even, t - s, least), _over(odd, t + s, least)
            if abs(t - s) <= least:
                T[i, j] += even
                T[j, i] += even
            if abs(t + s) <= least:
                T[i, j] += odd
                T[j, i] -= odd
            P[i, j], P[j, i] = apart + both, -apart - both
            Q[i, j], Q[j, i] = apart - both, both - apart
    return U + U @ P, T, V + V @ Q


@func
def _polar_with_tangents(A, R, S):
    """R, S with A = R @ S, with their derivative: R' = R (1 + W), where S W + W S = R^T dA - dA^T R."""
    n = static(A.n)
    D = _tangent(R.transpose() @ A)
    K = D - D.transpose()
    W = Matrix.zero(A.dtype, n, n)
    trace = S.trace()
    if static(n == 2):
        W[0, 1] = _over(K[0, 1], trace, 0.0)
        W[1, 0] = -W[0, 1]
    else:  # of the vectors w and k of W and K: (trace - S) w = k
        G = trace * Matrix.identity(A.dtype, n) - S
        w = Vector.zero(A.dtype, n)
        if abs(G.determinant()) > _eps(A) * abs(trace * trace * trace):
            w = G.inverse() @ Vector([K[2, 1], K[0, 2], K[1, 0]])
        W = Matrix([[0.0 * w[0], -w[2], w[1]], [w[2], 0.0 * w[0], -w[0]], [-w[1], w[0], 0.0 * w[0]]])
    return R + R @ W, S + D - W @ S


@func
def _symmetric_tangents(A, V):
    """The derivative of V^T A V with the value zero, for a symmetric A."""
    E = _tangent(V.transpose() @ A @ V)
    return 0.5 * (E + E.transpose())


@func
def _gap(A, e):
    """Eigenvalues that are nearer to each other than this are equal."""
    return sqrt(_eps(A)) * max(abs(e[0]), abs(e[e.n - 1]))


@func
def _eig_with_tangents(A, e, V):
    """Eigenvalues and eigenvectors of a symmetric A with their derivative: V' = V (1 + W)."""
    n = static(A.n)
    E = _symmetric_tangents(A, V)
    W, values = Matrix.zero(A.dtype, n, n), e
    for i in static(range(n)):
        values[i] += E[i, i]
        for j in static(range(i + 1, n)):
            w = _over(E[i, j], e[j] - e[i], _gap(A, e))
            W[i, j], W[j, i] = w, -w
    return values, V + V @ W


@func
def _spd_with_tangents(A, M, e, V):
    """M = V max(e, 0) V^T with its derivative: each part of that of V^T A V by how much max changes between its two
    eigenvalues."""
    n = static(A.n)
    E = _symmetric_tangents(A, V)
    for i in static(range(n)):
        for j in static(range(n)):
            least, f = _gap(A, e), select(e[i] > 0, 1.0, 0.0)
            if abs(e[i] - e[j]) > least:
                f = (max(e[i], 0.0) - max(e[j], 0.0)) / (e[i] - e[j])
            E[i, j] *= f
    return M + V @ E @ V.transpose()


# ---- singular values ----------------------------------------------------------------------------


@func
def _turn_columns(B: template(), V: template(), p: template(), q: template()):
    """Makes columns p and q of B orthogonal, V taking part; whether there was anything to do."""
    x, y = B[:, p], B[:, q]
    a, b, d = x.dot(x), y.dot(y), x.dot(y)
    turned = 0
    if abs(d) > max(2 * _eps(B) * sqrt(a) * sqrt(b), _floor(B)):
        turned = 1
        s, g = _rotation(b - a, 2.0 * d)
        B[:, p], B[:, q] = _rotate(x, y, s, g)
        V[:, p], V[:, q] = _rotate(V[:, p], V[:, q], s, g)
    return turned


@func
def _order_columns(B: template(), V: template(), p: template(), q: template()):
    """The longer column first; the sign keeps the determinants of V and B."""
    x, y = B[:, p], B[:, q]
    if x.dot(x) < y.dot(y):
        v, w = V[:, p], V[:, q]
        B[:, p], B[:, q] = y, -x
        V[:, p], V[:, q] = w, -v


@real_func
def _svd(A):
    """U, the diagonal, V; both rotations, so that the last number has the sign of det(A)."""
    n = static(A.n)
    up, down = _power(A)
    B = A * down
    V = Matrix.identity(A.dtype, n)
    turned = 1
    for _ in range(_SWEEPS):
        if turned == 0:
            break
        turned = 0
        for p in static(range(n - 1)):
            for q in static(range(p + 1, n)):
                turned += _turn_columns(B, V, p, q)
    for last in static(range(n - 1, 0, -1)):
        for p in static(range(last)):
            _order_columns(B, V, p, p + 1)
    U = Matrix.identity(A.dtype, n)
    S = Vector.zero(A.dtype, n)
    least = _floor(A)
    U[:, 0] = _unit(B[:, 0], least, U[:, 0])
    if static(n == 2):
        U[0, 1], U[1, 1] = -U[1, 0], U[0, 0]
    else:
        # What rounding left of a column that is zero may point anywhere, along u as well; with
        # fast math that is what this difference may be made of, so it is taken twice.
        u, b = U[:, 0], B[:, 1]
        w = _unit(b - u.dot(b) * u, max(least, 0.5 * abs(b).max()), _across(u))
        U[:, 1] = _unit(w - u.dot(w) * u, 0.5, _across(u))
        U[:, 2] = u.cross(U[:, 1])
    for k in static(range(n)):
        S[k] = U[:, k].dot(B[:, k])
        if static(k > 0):
            S[k] = max(min(S[k], S[k - 1]), -S[k - 1] if k == n - 1 else 0.0)
    return U, S * up, V


@func
def _svd_raised(A):
    """U, S, V of A, S raised if A is tiny, and whether it is."""
    tiny = _is_tiny(A)
    U, s, V = _svd(_each(A, tiny, _raised))
    S = Matrix.zero(s.dtype, A.n, A.n)
    if static(A.n == 2):
        if s[1] < 0:
            s[1] = -s[1]
            U[:, 1] = -U[:, 1]
    for k in static(range(A.n)):
        S[k, k] = s[k]
    return U, S, V, tiny


@real_func
def svd(A, dt=None):
    """U, S, V with A = U @ S @ V.transpose(); S diagonal, largest first. For 2x2 and 3x3.

    U and V of 3x3 are rotations, and the last number has the sign of det(A); of 2x2 both numbers
    are positive or zero.
    """
    static_assert(A.n == A.m and (A.n == 2 or A.n == 3), "SVD only supports 2×2 and 3×3 matrices.")
    B = _typed(A, dt)
    if static(_derives()):
        C = bit_cast(bit_cast(B, static(i64 if B.dtype == f64 else i32)), B.dtype)
        U, S, V, tiny = _svd_raised(C)
        return _svd_with_tangents(B, U, _each(S, tiny, _lowered), V)
    else:
        U, S, V, tiny = _svd_raised(B)
        return U, _each(S, tiny, _lowered), V


@func
def _nearest_orthogonal(A):
    """Of 2x2 the rotation, or of a negative determinant the reflection, that is nearest to A; of zero the identity."""
    turn = select(A[0, 0] * A[1, 1] < A[0, 1] * A[1, 0], -1.0, 1.0)
    x, y = A[0, 0] + turn * A[1, 1], A[1, 0] - turn * A[0, 1]
    h = sqrt(x * x + y * y)
    c, s = 1.0 + 0.0 * x, 0.0 * y
    if h > 0:
        c, s = x / h, y / h
    return Matrix([[c, -turn * s], [s, turn * c]])


@func
def _polar(A):
    if static(A.n == 2):
        tiny = _is_tiny(A)
        B = _each(A, tiny, _raised)
        up, down = _power(B)
        B = B * down
        R = _nearest_orthogonal(B)
        S = R.transpose() @ B
        return R, _each(0.5 * up * (S + S.transpose()), tiny, _lowered)
    else:
        U, S, V, tiny = _svd_raised(A)
        W = V.transpose()
        return U @ W, _each(V @ S @ W, tiny, _lowered)


@real_func
def polar_decompose(A, dt=None):
    """R, S with A = R @ S, R orthogonal, S symmetric. For 2x2 and 3x3.

    Of 3x3 R is a rotation, and S has a negative eigenvalue where det(A) is negative; of 2x2 S is
    positive semi-definite, and R a reflection then.
    """
    static_assert(A.n == A.m and (A.n == 2 or A.n == 3),
                  "Polar decomposition only supports 2×2 and 3×3 matrices.")
    B = _typed(A, dt)
    if static(_derives()):
        C = bit_cast(bit_cast(B, static(i64 if B.dtype == f64 else i32)), B.dtype)
        R, S = _polar(C)
        return _polar_with_tangents(B, R, S)
    else:
        return _polar(B)


# ---- eigenvalues --------------------------------------------------------------------------------


@func
def _turn_both(S: template(), V: template(), p: template(), q: template()):
    """Makes S[p, q] zero, V taking part; whether there was anything to do."""
    turned = 0
    d = S[p, q]
    if abs(d) > _eps(S) * 0.0625:
        turned = 1
        s, g = _rotation(S[q, q] - S[p, p], 2.0 * d)
        for k in static(range(S.n)):
            S[k, p], S[k, q] = _rotate(S[k, p], S[k, q], s, g)
        for k in static(range(S.n)):
            S[p, k], S[q, k] = _rotate(S[p, k], S[q, k], s, g)
            V[k, p], V[k, q] = _rotate(V[k, p], V[k, q], s, g)
        S[p, q], S[q, p] = 0.0, 0.0
    return turned


@func
def _order_both(e: template(), V: template(), p: template(), q: template()):
    """The smaller eigenvalue first."""
    x, y = e[p], e[q]
    if x > y:
        e[p], e[q] = y, x
        for k in static(range(V.n)):
            V[k, p], V[k, q] = V[k, q], V[k, p]


@real_func
def _sym_eig(A):
    n = static(A.n)
    up, down = _power(A)
    S = A * down
    V = Matrix.identity(A.dtype, n)
    e = Vector.zero(A.dtype, n)
    turned = 1
    for _ in range(_SWEEPS):
        if turned == 0:
            break
        turned = 0
        if static(n <= 3):
            for p in static(range(n - 1)):
                for q in static(range(p + 1, n)):
                    turned += _turn_both(S, V, p, q)
        else:
            for p in range(n - 1):
                for q in range(p + 1, n):
                    turned += _turn_both(S, V, p, q)
    for k in static(range(n)):
        e[k] = S[k, k] * up
    for last in range(n - 1):
        for p in range(n - 1 - last):
            _order_both(e, V, p, p + 1)
    return e, V


@func
def _sym_eig_raised(A):
    """Eigenvalues, raised if A is tiny, eigenvectors, and whether it is."""
    tiny = _is_tiny(A)
    e, V = _sym_eig(_each(A, tiny, _raised))
    return e, V, tiny


@func
def _spd(e, V):
    """V max(e, 0) V^T."""
    M = Matrix.zero(e.dtype, V.n, V.n)
    for i in range(V.n):
        for j in range(V.n):
            s = cast(0, e.dtype)
            for k in static(range(V.n)):
                s += V[i, k] * V[j, k] * max(e[k], 0.0)
            M[i, j] = s
    return M


@real_func
def sym_eig(A, dt=None):
    """The eigenvalues of a symmetric matrix, smallest first, and its eigenvectors as columns. Up to 6x6."""
    static_assert(A.n == A.m and A.n >= 2 and A.n <= 6,
                  "Symmetric eigen solver currently supports sizes up to 6×6.")
    B = _typed(A, dt)
    if static(_derives()):
        bits = static(i64 if B.dtype == f64 else i32)
        C = Matrix([[bit_cast(bit_cast(B[i, j], bits), B.dtype) for j in static(range(B.n))] for i in static(range(B.n))])
        e, V, tiny = _sym_eig_raised(C)
        return _eig_with_tangents(B, _each(e, tiny, _lowered), V)
    else:
        e, V, tiny = _sym_eig_raised(B)
        return _each(e, tiny, _lowered), V


@real_func
def make_spd(A, dt=None):
    """The symmetric matrix without negative eigenvalues that is nearest to the symmetric A. Up to 6x6."""
    static_assert(A.n == A.m and A.n >= 2 and A.n <= 6,
                  "Symmetric eigen solver currently supports sizes up to 6×6.")
    B = _typed(A, dt)
    if static(_derives()):
        bits = static(i64 if B.dtype == f64 else i32)
        C = Matrix([[bit_cast(bit_cast(B[i, j], bits), B.dtype) for j in static(range(B.n))] for i in static(range(B.n))])
        e, V, tiny = _sym_eig_raised(C)
        M = _each(_spd(e, V), tiny, _lowered)
        return _spd_with_tangents(B, M, _each(e, tiny, _lowered), V)
    else:
        e, V, tiny = _sym_eig_raised(B)
        return _each(_spd(e, V), tiny, _lowered)


@func
def _null_vector(M, otherwise):
    """The vector v of length one that solves M v = 0 best, of a 2x2 matrix that is singular."""
    x, y = M[0, :], M[1, :]
    longer = select(x.dot(x) < y.dot(y), y, x)
    return _unit(Vector([-longer[1], longer[0]]), _floor(M), otherwise)


@real_func
def eig(A, dt=None):
    """Eigenvalues and eigenvectors of a 2x2 matrix, which may be complex.

    Row i of the first result is eigenvalue i: real part, imaginary part. Column i of the second one
    is its eigenvector: real and imaginary part of the first element, then of the second. Larger
    real part first, or the positive imaginary part.
    """
    static_assert(A.n == 2 and A.m == 2, "Eigen solver only supports 2×2 matrices.")
    B = _typed(A, dt)
    tiny = _is_tiny(B)
    B = _each(B, tiny, _raised)
    up, down = _power(B)
    B = B * down
    p = 0.5 * (B[0, 0] - B[1, 1])
    bc = B[0, 1] * B[1, 0]
    d = p * p + bc
    values = Matrix.zero(B.dtype, 2, 2)
    vectors = Matrix.zero(B.dtype, 4, 2)
    if d >= 0:
        z = p + select(p < 0, -1.0, 1.0) * sqrt(d)
        far = B[1, 1] + z
        near = far
        if z != 0:
            near = B[1, 1] - bc / z
        values[0, 0], values[1, 0] = max(far, near), min(far, near)
        for k in static(range(2)):
            C = B - values[k, 0] * Matrix.identity(B.dtype, 2)
            other = Vector.zero(B.dtype, 2)
            other[k] = 1.0
            v = _null_vector(C, other)
            vectors[0, k], vectors[2, k] = v[0], v[1]
    else:
        w = sqrt(-d)
        for k in static(range(2)):
            values[k, 0] = 0.5 * (B[0, 0] + B[1, 1])
            values[k, 1] = w if k == 0 else -w
            # One row of (A - value) v = 0: (p, -w) and B[0, 1], or B[1, 0] and (-p, -w).
            v = Vector([B[0, 1], 0.0, -p, values[k, 1]])
            if abs(B[0, 1]) < abs(B[1, 0]):
                v = Vector([p, values[k, 1], B[1, 0], 0.0])
            vectors[:, k] = _unit(v, 0.0, v)
    return _each(values * up, tiny, _lowered), vectors


# ---- equations ----------------------------------------------------------------------------------


@func
def _pivot(R: template(), col: template(), row: template()):
    """The row with the larger entry in a column comes first."""
    if abs(R[col, col]) < abs(R[row, col]):
        x, y = R[col, :], R[row, :]
        R[col, :], R[row, :] = y, x


@real_func
def _solve(A, b):
    n = static(A.n)
    R = Matrix.zero(A.dtype, n, n + 1)
    for i in static(range(n)):
        row = A[i, :]
        tiny = _is_tiny(row)
        row = _each(row, tiny, _raised)
        up, down = _power(row)
        for j in static(range(n)):
            R[i, j] = row[j] * down
        if tiny:
            R[i, n] = b[i] * static(2.0**64 if A.dtype == f64 else 2.0**32) * down
        else:
            R[i, n] = b[i] * down
    for col in static(range(n)):
        for row in static(range(col + 1, n)):
            _pivot(R, col, row)
        assert R[col, col] != 0.0, "Matrix is singular in linear solve."
        for row in static(range(col + 1, n)):
            f = R[row, col] / R[col, col]
            R[row, :] = R[row, :] - f * R[col, :]
    x = Vector.zero(A.dtype, n)
    for i in static(range(n - 1, -1, -1)):
        s = R[i, n]
        for j in static(range(i + 1, n)):
            s -= R[i, j] * x[j]
        x[i] = s / R[i, i]
    return x


@real_func
def solve(A, b, dt=None):
    """The vector x with A @ x = b. For 2x2 and 3x3; of a singular A it is no number."""
    static_assert(A.n == A.m and (A.n == 2 or A.n == 3), "Solver only supports 2D and 3D matrices.")
    static_assert(A.n == b.n and b.m == 1, "Matrix and vector dimensions dismatch.")
    c = _typed(b, dt)
    tiny = _is_tiny(c)
    return _each(_solve(_typed(A, dt), _each(c, tiny, _raised)), tiny, _lowered)


__all__ = ["eig", "make_spd", "polar_decompose", "solve", "svd", "sym_eig"]
