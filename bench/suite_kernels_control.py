"""The control of suite.py: ten kernels of PolyBench in its sizes for caches, chosen before anything was
measured. Nothing in the compiler may be made for one of these; they show what the rules do elsewhere."""

import numpy as np

from suite_rows import arrays, f32, row, zeros

D = np.float64


@row(lambda rng: ((1000, 800), [rng.random((1000, 800)), rng.random(800), zeros(1000, dtype=D), zeros(800, dtype=D)]), close=1e-9)
def atax(qd):
    """y = A^T (A x)."""
    d1, d2 = arrays(qd, "d1 d2")

    @qd.kernel
    def atax(A: d2, x: d1, tmp: d1, y: d1):
        for i in range(A.shape[0]):
            tmp[i] = 0.0
            for j in range(A.shape[1]):
                tmp[i] += A[i, j] * x[j]
        for j in range(A.shape[1]):
            y[j] = 0.0
            for i in range(A.shape[0]):
                y[j] += A[i, j] * tmp[i]

    return atax


@row(lambda rng: ((1000, 800), [rng.random((1000, 800)), rng.random(800), rng.random(1000), zeros(1000, dtype=D), zeros(800, dtype=D)]),
     close=1e-9)
def bicg(qd):
    """q = A p, s = A^T r."""
    d1, d2 = arrays(qd, "d1 d2")

    @qd.kernel
    def bicg(A: d2, p: d1, r: d1, q: d1, s: d1):
        for j in range(A.shape[1]):
            s[j] = 0.0
        for i in range(A.shape[0]):
            q[i] = 0.0
            for j in range(A.shape[1]):
                s[j] += r[i] * A[i, j]
                q[i] += A[i, j] * p[j]

    return bicg


@row(lambda rng: ((800,), [rng.random((800, 800)), zeros(800, dtype=D), zeros(800, dtype=D), rng.random(800), rng.random(800)]),
     fresh=(1, 2), close=1e-9)
def mvt(qd):
    """x1 += A y1, x2 += A^T y2."""
    d1, d2 = arrays(qd, "d1 d2")

    @qd.kernel
    def mvt(A: d2, x1: d1, x2: d1, y1: d1, y2: d1):
        for i in range(A.shape[0]):
            for j in range(A.shape[0]):
                x1[i] += A[i, j] * y1[j]
        for i in range(A.shape[0]):
            for j in range(A.shape[0]):
                x2[i] += A[j, i] * y2[j]

    return mvt


@row(lambda rng: ((800,), [rng.random((800, 800)), rng.random((800, 800)), rng.random(800), zeros(800, dtype=D)]), close=1e-9)
def gesummv(qd):
    """y = a A x + b B x."""
    d1, d2 = arrays(qd, "d1 d2")

    @qd.kernel
    def gesummv(A: d2, B: d2, x: d1, y: d1):
        for i in range(A.shape[0]):
            s = qd.cast(0.0, qd.f64)
            t = qd.cast(0.0, qd.f64)
            for j in range(A.shape[0]):
                s += A[i, j] * x[j]
                t += B[i, j] * x[j]
            y[i] = 1.5 * s + 1.25 * t

    return gesummv


@row(lambda rng: ((240, 200), [rng.random((240, 200)), rng.random((240, 240))]), fresh=(1,), close=1e-9)
def syrk(qd):
    """The lower triangle of b C + a A A^T."""
    d2 = arrays(qd, "d2")

    @qd.kernel
    def syrk(A: d2, C: d2):
        for i in range(A.shape[0]):
            for j in range(i + 1):
                C[i, j] *= 1.25
            for k in range(A.shape[1]):
                for j in range(i + 1):
                    C[i, j] += 1.5 * A[i, k] * A[j, k]

    return syrk


@row(lambda rng: ((50, 40, 60), [rng.random((50, 40, 60)), rng.random((60, 60)), zeros(50, 40, 60, dtype=D)]), fresh=(0,), close=1e-9)
def doitgen(qd):
    """Each row of three-dimensional data by a matrix."""
    d2, d3 = arrays(qd, "d2 d3")

    @qd.kernel
    def doitgen(A: d3, C4: d2, total: d3):
        for r, q in qd.ndrange(A.shape[0], A.shape[1]):
            for p in range(A.shape[2]):
                total[r, q, p] = 0.0
                for s in range(A.shape[2]):
                    total[r, q, p] += A[r, q, s] * C4[s, p]
            for p in range(A.shape[2]):
                A[r, q, p] = total[r, q, p]

    return doitgen


@row(lambda rng: ((260, 240), [rng.random((260, 240)), zeros(240, dtype=D), zeros(240, 240, dtype=D), zeros(260, 240, dtype=D)]), close=1e-9)
def covariance(qd):
    d1, d2 = arrays(qd, "d1 d2")

    @qd.kernel
    def covariance(data: d2, mean: d1, cov: d2, centred: d2):
        for j in range(data.shape[1]):
            mean[j] = 0.0
            for i in range(data.shape[0]):
                mean[j] += data[i, j]
            mean[j] /= data.shape[0]
        for i, j in qd.ndrange(data.shape[0], data.shape[1]):
            centred[i, j] = data[i, j] - mean[j]
        for i in range(data.shape[1]):
            for j in range(i, data.shape[1]):
                cov[i, j] = 0.0
                for k in range(data.shape[0]):
                    cov[i, j] += centred[k, i] * centred[k, j]
                cov[i, j] /= data.shape[0] - 1.0
                cov[j, i] = cov[i, j]

    return covariance


@row(lambda rng: ((500, 600), [f32(rng.random((500, 600))) for _ in range(3)]), fresh=(0, 1, 2))
def fdtd_2d(qd):
    """A step of Maxwell's equations in two dimensions."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def fdtd_2d(ex: f2, ey: f2, hz: f2):
        for j in range(ey.shape[1]):
            ey[0, j] = 0.25
        for i, j in qd.ndrange((1, ey.shape[0]), ey.shape[1]):
            ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i, j in qd.ndrange(ex.shape[0], (1, ex.shape[1])):
            ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i, j in qd.ndrange(hz.shape[0] - 1, hz.shape[1] - 1):
            hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])

    return fdtd_2d


@row(lambda rng: ((80,), [f32(rng.random((80, 80, 80))), f32(rng.random((80, 80, 80)))]))
def heat_3d(qd):
    """Two steps of heat in three dimensions."""
    f3 = arrays(qd, "f3")

    @qd.kernel
    def heat_3d(A: f3, B: f3):
        n = A.shape[0]
        for i, j, k in qd.ndrange((1, n - 1), (1, n - 1), (1, n - 1)):
            B[i, j, k] = (0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                          + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                          + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1]) + A[i, j, k])
        for i, j, k in qd.ndrange((1, n - 1), (1, n - 1), (1, n - 1)):
            A[i, j, k] = (0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                          + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                          + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1]) + B[i, j, k])

    return heat_3d


@row(lambda rng: ((500,), [rng.random((500, 500)), rng.random((500, 500))]), close=1e-9)
def jacobi_2d(qd):
    """Two sweeps of Jacobi in two dimensions."""
    d2 = arrays(qd, "d2")

    @qd.kernel
    def jacobi_2d(A: d2, B: d2):
        n = A.shape[0]
        fifth = qd.cast(1.0, qd.f64) / 5
        for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
            B[i, j] = fifth * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
            A[i, j] = fifth * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])

    return jacobi_2d
