"""Kernels of suite.py: grids and pictures."""

import numpy as np

from suite_rows import Field, Vec, arrays, f32, row, zeros


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


@row(lambda rng: ((128,), [Field(f32(rng.random((128, 128, 128)))), Field(zeros(128, 128, 128)), Field(f32(rng.random((128, 128, 128))))]))
def jacobi3d(qd, a, b, rhs):
    """A sweep of Jacobi for Poisson's equation, on fields."""

    @qd.kernel
    def jacobi3d():
        for i, j, k in qd.ndrange((1, 127), (1, 127), (1, 127)):
            around = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k] + a[i, j, k - 1] + a[i, j, k + 1]
            b[i, j, k] = (around - rhs[i, j, k]) / 6.0

    return jacobi3d


@row(lambda rng: ((768,), [f32(rng.random((768, 768))), f32(rng.random((768, 768)))]), close=1e-3)
def redblack(qd):
    """Gauss and Seidel with overrelaxation, red cells and then black ones."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def redblack(p: f2, rhs: f2):
        for colour in qd.static(range(2)):
            for i, j in qd.ndrange((1, p.shape[0] - 1), (1, p.shape[1] - 1)):
                if (i + j) % 2 == colour:
                    new = 0.25 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - rhs[i, j])
                    p[i, j] += 1.5 * (new - p[i, j])

    return redblack


@row(lambda rng: ((512,), [Field(rng.integers(0, 2, (512, 512), dtype=np.int32)), Field(zeros(512, 512, dtype=np.int32))]))
def life_i32(qd, a, b):
    """Life on a torus, on fields."""
    n = 512

    @qd.func
    def count(i, j):
        c = 0
        for x in qd.static(range(-1, 2)):
            for y in qd.static(range(-1, 2)):
                if qd.static(x != 0 or y != 0):
                    c += a[(i + x) % n, (j + y) % n]
        return c

    @qd.kernel
    def life_i32():
        for i, j in a:
            c = count(i, j)
            b[i, j] = 0
            if c == 3 or (c == 2 and a[i, j] == 1):
                b[i, j] = 1

    return life_i32


@row(lambda rng: ((96,), [Vec(f32(rng.random((96, 96, 96, 3)))), zeros(96, 96, 96), Vec(zeros(96, 96, 96, 3))]))
def grid3(qd):
    """Divergence and curl of vectors on a grid in three dimensions."""
    v3, f3 = arrays(qd, "f3v3 f3")

    @qd.kernel
    def grid3(v: v3, div: f3, curl: v3):
        for i, j, k in qd.ndrange((1, v.shape[0] - 1), (1, v.shape[1] - 1), (1, v.shape[2] - 1)):
            dx = (v[i + 1, j, k] - v[i - 1, j, k]) * 0.5
            dy = (v[i, j + 1, k] - v[i, j - 1, k]) * 0.5
            dz = (v[i, j, k + 1] - v[i, j, k - 1]) * 0.5
            div[i, j, k] = dx[0] + dy[1] + dz[2]
            curl[i, j, k] = qd.Vector([dy[2] - dz[1], dz[0] - dx[2], dx[1] - dy[0]])

    return grid3


E = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
W = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4


def fluid(rng, n):
    f = np.array(W) * (1 + 0.1 * rng.random((n, n, 9)))
    return (n,), [Vec(f32(f)), Vec(zeros(n, n, 9))]


@row(lambda rng: fluid(rng, 256))
def lbm(qd):
    """Lattice Boltzmann, D2Q9: pull from the neighbours, relax."""
    v2 = arrays(qd, "f9v2")

    @qd.kernel
    def lbm(old: v2, new: v2):
        for i, j in qd.ndrange((1, old.shape[0] - 1), (1, old.shape[1] - 1)):
            f = qd.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
            rho = 0.0
            ux = 0.0
            uy = 0.0
            for k in qd.static(range(9)):
                f[k] = old[i - E[k][0], j - E[k][1]][k]
                rho += f[k]
                ux += f[k] * E[k][0]
                uy += f[k] * E[k][1]
            ux /= rho
            uy /= rho
            for k in qd.static(range(9)):
                eu = E[k][0] * ux + E[k][1] * uy
                feq = W[k] * rho * (1.0 + 3.0 * eu + 4.5 * eu * eu - 1.5 * (ux * ux + uy * uy))
                new[i, j][k] = f[k] + 0.6 * (feq - f[k])

    return lbm
