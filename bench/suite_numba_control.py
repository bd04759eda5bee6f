"""The control kernels of suite.py for Numba: see suite_numba.py, which collects them."""

from numba import prange

from suite_numba import F, fast


@fast
def atax(A, x, tmp, y):
    for i in prange(A.shape[0]):
        s = 0.0
        for j in range(A.shape[1]):
            s += A[i, j] * x[j]
        tmp[i] = s
    for j in prange(A.shape[1]):
        s = 0.0
        for i in range(A.shape[0]):
            s += A[i, j] * tmp[i]
        y[j] = s


@fast
def bicg(A, p, r, q, s):
    for j in prange(A.shape[1]):
        t = 0.0
        for i in range(A.shape[0]):
            t += r[i] * A[i, j]
        s[j] = t
    for i in prange(A.shape[0]):
        t = 0.0
        for j in range(A.shape[1]):
            t += A[i, j] * p[j]
        q[i] = t


@fast
def mvt(A, x1, x2, y1, y2):
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            x1[i] += A[i, j] * y1[j]
    for i in prange(A.shape[0]):
        for j in range(A.shape[0]):
            x2[i] += A[j, i] * y2[j]


@fast
def gesummv(A, B, x, y):
    for i in prange(A.shape[0]):
        s, t = 0.0, 0.0
        for j in range(A.shape[0]):
            s += A[i, j] * x[j]
            t += B[i, j] * x[j]
        y[i] = 1.5 * s + 1.25 * t


@fast
def syrk(A, C):
    for i in prange(A.shape[0]):
        for j in range(i + 1):
            C[i, j] *= 1.25
        for k in range(A.shape[1]):
            for j in range(i + 1):
                C[i, j] += 1.5 * A[i, k] * A[j, k]


@fast
def doitgen(A, C4, total):
    for r in prange(A.shape[0]):
        for q in range(A.shape[1]):
            for p in range(A.shape[2]):
                total[r, q, p] = 0.0
                for s in range(A.shape[2]):
                    total[r, q, p] += A[r, q, s] * C4[s, p]
            for p in range(A.shape[2]):
                A[r, q, p] = total[r, q, p]


@fast
def covariance(data, mean, cov, centred):
    for j in prange(data.shape[1]):
        s = 0.0
        for i in range(data.shape[0]):
            s += data[i, j]
        mean[j] = s / data.shape[0]
    for i in prange(data.shape[0]):
        for j in range(data.shape[1]):
            centred[i, j] = data[i, j] - mean[j]
    for i in prange(data.shape[1]):
        for j in range(i, data.shape[1]):
            s = 0.0
            for k in range(data.shape[0]):
                s += centred[k, i] * centred[k, j]
            cov[i, j] = s / (data.shape[0] - 1.0)
            cov[j, i] = cov[i, j]


@fast
def fdtd_2d(ex, ey, hz):
    for j in prange(ey.shape[1]):
        ey[0, j] = F(0.25)
    for i in prange(1, ey.shape[0]):
        for j in range(ey.shape[1]):
            ey[i, j] = ey[i, j] - F(0.5) * (hz[i, j] - hz[i - 1, j])
    for i in prange(ex.shape[0]):
        for j in range(1, ex.shape[1]):
            ex[i, j] = ex[i, j] - F(0.5) * (hz[i, j] - hz[i, j - 1])
    for i in prange(hz.shape[0] - 1):
        for j in range(hz.shape[1] - 1):
            hz[i, j] = hz[i, j] - F(0.7) * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@fast
def heat_sweep(A, B):
    h, two, n = F(0.125), F(2), A.shape[0]
    for i in prange(1, n - 1):
        for j in range(1, n - 1):
            for k in range(1, n - 1):
                B[i, j, k] = (h * (A[i + 1, j, k] - two * A[i, j, k] + A[i - 1, j, k])
                              + h * (A[i, j + 1, k] - two * A[i, j, k] + A[i, j - 1, k])
                              + h * (A[i, j, k + 1] - two * A[i, j, k] + A[i, j, k - 1]) + A[i, j, k])


def heat_3d(A, B):
    heat_sweep(A, B)
    heat_sweep(B, A)


@fast
def jacobi_sweep(A, B):
    for i in prange(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])


def jacobi_2d(A, B):
    jacobi_sweep(A, B)
    jacobi_sweep(B, A)
