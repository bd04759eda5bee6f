"""The kernels of compute.py for Numba, imported by compute_peer.py in its own interpreter."""

import math

import numpy as np
from numba import njit, prange

fast = njit(parallel=True, fastmath=True)


@fast
def saxpy(a, x, y):
    for i in prange(x.shape[0]):
        y[i] = a * x[i] + y[i]


@fast
def stencil(a, b):
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = np.float32(0.5) * a[i, j] + np.float32(0.125) * (
                a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@fast
def stencil3d(a, b):
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            for k in range(1, a.shape[2] - 1):
                b[i, j, k] = np.float32(0.4) * a[i, j, k] + np.float32(0.1) * (
                    a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                    + a[i, j, k - 1] + a[i, j, k + 1])


@fast
def nbody(p, f):
    zero = np.float32(0.0)
    for i in prange(p.shape[1]):
        x, y, z = p[0, i], p[1, i], p[2, i]
        fx, fy, fz = zero, zero, zero
        for j in range(p.shape[1]):
            dx, dy, dz = p[0, j] - x, p[1, j] - y, p[2, j] - z
            d = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            w = np.float32(1.0) / (d * np.sqrt(d))
            fx += dx * w
            fy += dy * w
            fz += dz * w
        f[0, i], f[1, i], f[2, i] = fx, fy, fz


@fast
def sum_sin(x, s):
    t = np.float32(0.0)
    for i in prange(x.shape[0]):
        t += math.sin(x[i])
    s[0] += t


@fast
def exp_cos(x, y):
    for i in prange(x.shape[0]):
        y[i] = math.exp(x[i]) * math.cos(x[i])


@fast
def matmul(a, b, c):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            t = np.float32(0.0)
            for k in range(a.shape[1]):
                t += a[i, k] * b[k, j]
            c[i, j] = t


@fast
def mandelbrot(n):
    f = np.float32
    for i in prange(n.shape[0]):
        for j in range(n.shape[1]):
            cr = f(-2.0) + f(3.0) * f(j) / f(n.shape[1])
            ci = f(-1.5) + f(3.0) * f(i) / f(n.shape[0])
            zr, zi = f(0.0), f(0.0)
            k = 0
            while k < 200 and zr * zr + zi * zi < f(4.0):
                t = zr * zr - zi * zi + cr
                zi = f(2.0) * zr * zi + ci
                zr = t
                k += 1
            n[i, j] = k


@fast
def prefix(a, b):
    for d in range(0, 20, 2):
        s, s2 = 1 << d, 1 << (d + 1)
        for i in prange(s):
            b[i] = a[i]
        for i in prange(s, a.shape[0]):
            b[i] = a[i] + a[i - s]
        for i in prange(s2):
            a[i] = b[i]
        for i in prange(s2, a.shape[0]):
            a[i] = b[i] + b[i - s2]
