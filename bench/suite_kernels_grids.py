"""Kernels of suite.py: grids and pictures."""

import numpy as np

from suite_rows import arrays, f32, row, zeros


def photo(rng, n):
    weights = f32([[1, 4, 6, 4, 1]]).T @ f32([[1, 4, 6, 4, 1]]) / 201.7
    return (n,), [rng.integers(0, 256, (n, n), dtype=np.uint8), weights, zeros(n, n, dtype=np.uint8)]


@row(lambda rng: photo(rng, 1024), strays=1e-3)
def conv5(qd):
    """A 5x5 convolution of bytes, clamped to bytes."""
    b2, f2 = arrays(qd, "b2 f2")

    @qd.kernel
    def conv5(src: b2, w: f2, dst: b2):
        for i, j in qd.ndrange((2, src.shape[0] - 2), (2, src.shape[1] - 2)):
            s = 0.0
            for a in qd.static(range(5)):
                for b in qd.static(range(5)):
                    s += w[a, b] * src[i + a - 2, j + b - 2]
            dst[i, j] = qd.cast(qd.min(qd.max(s, 0.0), 255.0), qd.u8)

    return conv5


def flow(rng, n):
    y, x = np.mgrid[0:n, 0:n] / n
    u, v = 3 * np.sin(6 * y), 3 * np.cos(6 * x)
    return (n,), [f32(u), f32(v), f32(rng.random((n, n))), zeros(n, n)]


@row(lambda rng: flow(rng, 768), close=1e-3)
def advect(qd):
    """Back along the flow, then between four cells."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def advect(u: f2, v: f2, q: f2, out: f2):
        n = q.shape[0]
        for i, j in qd.ndrange(n, n):
            x = qd.max(0.0, qd.min(n - 1.001, i - u[i, j]))
            y = qd.max(0.0, qd.min(n - 1.001, j - v[i, j]))
            a = int(qd.floor(x))
            b = int(qd.floor(y))
            s = x - a
            t = y - b
            top = q[a, b] * (1 - t) + q[a, b + 1] * t
            low = q[a + 1, b] * (1 - t) + q[a + 1, b + 1] * t
            out[i, j] = top * (1 - s) + low * s

    return advect


@row(lambda rng: ((1024,), [rng.integers(0, 2, (1024, 1024), dtype=np.uint8), zeros(1024, 1024, dtype=np.uint8)]))
def life_u8(qd):
    b2 = arrays(qd, "b2")

    @qd.kernel
    def life_u8(a: b2, b: b2):
        for i, j in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
            s = (a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j + 1]
                 + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1])
            if s == 3 or (s == 2 and a[i, j] == 1):
                b[i, j] = 1
            else:
                b[i, j] = 0

    return life_u8
