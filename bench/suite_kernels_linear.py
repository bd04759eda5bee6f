"""Kernels of suite.py: matrices, factorisations and updates of rows."""

import numpy as np

from suite_rows import arrays, f32, i32, row, zeros


def symmetric(rng, count, n, last=False):
    """`count` positive definite matrices, (count, n, n) or (n, n, count)."""
    a = rng.random((count, n, n))
    a = a + a.transpose(0, 2, 1)
    a[:, range(n), range(n)] += 2 * n
    return f32(a.transpose(1, 2, 0) if last else a)


@row(lambda rng: ((1 << 18,), [f32(rng.random((1 << 18, 6)))]))
def columns(qd):
    """Oscillators: positions and speeds are columns of one array."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def columns(p: f2):
        for i in range(p.shape[0]):
            p[i, 0] += 0.01 * p[i, 3]
            p[i, 1] += 0.01 * p[i, 4]
            p[i, 2] += 0.01 * p[i, 5]
            p[i, 3] -= 0.01 * p[i, 0]
            p[i, 4] -= 0.01 * p[i, 1]
            p[i, 5] -= 0.01 * p[i, 2]

    return columns


@row(lambda rng: ((2048, 16), [symmetric(rng, 2048, 16), zeros(2048, 16)]), fresh=(0,))
def ldl_first(qd):
    """L D L^T in place, a batch with the environment as the first axis."""
    f2, f3 = arrays(qd, "f2 f3")

    @qd.kernel
    def ldl_first(L: f3, d: f2):
        for e in range(L.shape[0]):
            for j in range(L.shape[1]):
                for k in range(j):
                    L[e, j, j] -= L[e, j, k] * L[e, j, k] * d[e, k]
                d[e, j] = L[e, j, j]
                for i in range(j + 1, L.shape[1]):
                    for k in range(j):
                        L[e, i, j] -= L[e, i, k] * L[e, j, k] * d[e, k]
                    L[e, i, j] = L[e, i, j] / d[e, j]

    return ldl_first


@row(lambda rng: ((2048, 16), [symmetric(rng, 2048, 16, True), zeros(16, 2048)]), fresh=(0,))
def ldl_last(qd):
    """The same with the environment as the last axis."""
    f2, f3 = arrays(qd, "f2 f3")

    @qd.kernel
    def ldl_last(L: f3, d: f2):
        for e in range(L.shape[2]):
            for j in range(L.shape[0]):
                for k in range(j):
                    L[j, j, e] -= L[j, k, e] * L[j, k, e] * d[k, e]
                d[j, e] = L[j, j, e]
                for i in range(j + 1, L.shape[0]):
                    for k in range(j):
                        L[i, j, e] -= L[i, k, e] * L[j, k, e] * d[k, e]
                    L[i, j, e] = L[i, j, e] / d[j, e]

    return ldl_last


def square(rng, n, dtype="float32"):
    return (n,), [rng.random((n, n)).astype(dtype), rng.random((n, n)).astype(dtype), zeros(n, n, dtype=dtype)]


@row(lambda rng: square(rng, 512), fresh=(2,))
def matmul_acc(qd):
    """C += A B, straight into the result."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def matmul_acc(a: f2, b: f2, c: f2):
        for i, j in qd.ndrange(a.shape[0], b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]

    return matmul_acc


@row(lambda rng: ((1 << 15,), [symmetric(rng, 1 << 15, 6), zeros(1 << 15, 6, 6)]))
def chol6(qd):
    """Cholesky factors of 6x6 matrices, one per item."""
    f3 = arrays(qd, "f3")

    @qd.kernel
    def chol6(a: f3, l: f3):
        for e in range(a.shape[0]):
            for j in range(6):
                s = a[e, j, j]
                for k in range(j):
                    s -= l[e, j, k] * l[e, j, k]
                d = qd.sqrt(s)
                l[e, j, j] = d
                for i in range(j + 1, 6):
                    t = a[e, i, j]
                    for k in range(j):
                        t -= l[e, i, k] * l[e, j, k]
                    l[e, i, j] = t / d

    return chol6


@row(lambda rng: square(rng, 384, "float64"), close=1e-10)
def matmul_f64(qd):
    d2 = arrays(qd, "d2")

    @qd.kernel
    def matmul_f64(a: d2, b: d2, c: d2):
        for i, j in qd.ndrange(a.shape[0], b.shape[1]):
            s = qd.cast(0.0, qd.f64)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    return matmul_f64


@row(lambda rng: square(rng, 384))
def matmul_tn(qd):
    """A^T B."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def matmul_tn(a: f2, b: f2, c: f2):
        for i, j in qd.ndrange(a.shape[1], b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k, i] * b[k, j]
            c[i, j] = s

    return matmul_tn


@row(lambda rng: square(rng, 384))
def matmul_nt(qd):
    """A B^T."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def matmul_nt(a: f2, b: f2, c: f2):
        for i, j in qd.ndrange(a.shape[0], b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            c[i, j] = s

    return matmul_nt


def sparse(rng, n, most):
    counts = rng.integers(1, most, n)
    start = np.concatenate([[0], np.cumsum(counts)])
    return (n,), [i32(start), i32(rng.integers(0, n, start[-1])), f32(rng.random(start[-1])), f32(rng.random(n)), zeros(n)]


@row(lambda rng: sparse(rng, 1 << 16, 32))
def csr(qd):
    """A sparse matrix by a vector."""
    f1, i1 = arrays(qd, "f1 i1")

    @qd.kernel
    def csr(start: i1, col: i1, val: f1, x: f1, y: f1):
        for i in range(y.shape[0]):
            s = 0.0
            for k in range(start[i], start[i + 1]):
                s += val[k] * x[col[k]]
            y[i] = s

    return csr


@row(lambda rng: ((1024,), [f32(rng.random((1024, 1024))), 17]))
def floyd(qd):
    """One step of Floyd and Warshall: shorter ways by vertex k."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def floyd(d: f2, k: qd.i32):
        for i, j in qd.ndrange(d.shape[0], d.shape[1]):
            d[i, j] = qd.min(d[i, j], d[i, k] + d[k, j])

    return floyd


@row(lambda rng: ((4096, 24), [f32(rng.random((4096, 24, 24))), f32(rng.random((4096, 24))), zeros(4096, 24)]))
def triangular(qd):
    """A lower triangle by a vector, for each environment."""
    f2, f3 = arrays(qd, "f2 f3")

    @qd.kernel
    def triangular(L: f3, x: f2, y: f2):
        for e in range(L.shape[0]):
            for i in range(L.shape[1]):
                s = 0.0
                for j in range(i + 1):
                    s += L[e, i, j] * x[e, j]
                y[e, i] = s

    return triangular
