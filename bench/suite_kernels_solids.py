"""Kernels of suite.py: solids, with matrices of 3x3."""

import numpy as np

from suite_rows import Field, Vec, arrays, f32, row, zeros


def matter(rng, n, side):
    x = 0.1 + 0.8 * rng.random((n, 3))
    return (n, side), [Field(f32(x[np.argsort(x[:, 0])]), 1), Field(f32(rng.random((n, 3))), 1),
                       Field(f32(rng.random((n, 3, 3)) * 0.1), 2), Field(zeros(side, side, side, 3), 1), Field(zeros(side, side, side))]


@row(lambda rng: matter(rng, 1 << 13, 32), fresh=(3, 4), atomic=True, close=1e-3)
def p2g3d(qd, x, v, C, grid_v, grid_m):
    """Material points to a grid in three dimensions, on fields."""

    @qd.kernel
    def p2g3d():
        for p in x:
            base = qd.cast(x[p] * 32.0 - 0.5, qd.i32)
            fx = x[p] * 32.0 - qd.cast(base, qd.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j, k in qd.static(qd.ndrange(3, 3, 3)):
                offset = qd.Vector([i, j, k])
                dpos = (qd.cast(offset, qd.f32) - fx) / 32.0
                weight = w[i][0] * w[j][1] * w[k][2]
                grid_v[base + offset] += weight * (v[p] + C[p] @ dpos)
                grid_m[base + offset] += weight

    return p2g3d


def rotated(rng, n):
    return (n,), [Vec(f32(np.eye(3) + 0.6 * (rng.random((n, 3, 3)) - 0.5)), 2), Vec(zeros(n, 3, 3), 2)]


@row(lambda rng: rotated(rng, 1 << 12), close=5e-3)
def svd3(qd):
    """The rotation of 3x3 matrices by their singular values. C has another algorithm (Jacobi)."""
    m1 = arrays(qd, "f3m1")

    @qd.kernel
    def svd3(a: m1, r: m1):
        for i in range(a.shape[0]):
            u, s, v = qd.svd(a[i])
            r[i] = u @ v.transpose()

    return svd3


def block(rng, n):
    """A block of n^3 cubes, each of five tetrahedra."""
    at = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)
    corners = np.stack([at[i:i + n, j:j + n, k:k + n].ravel() for i in (0, 1) for j in (0, 1) for k in (0, 1)], 1)
    tets = corners[:, [[0, 1, 2, 4], [3, 1, 2, 7], [5, 1, 4, 7], [6, 2, 4, 7], [1, 2, 4, 7]]].reshape(-1, 4)
    rest = np.stack(np.mgrid[0:n + 1, 0:n + 1, 0:n + 1], -1).reshape(-1, 3).astype(float)
    edges = np.stack([rest[tets[:, k]] - rest[tets[:, 0]] for k in (1, 2, 3)], -1)
    x = rest + 0.05 * rng.random(rest.shape)
    return (len(tets),), [Vec(f32(x)), tets.astype(np.int32), Vec(f32(np.linalg.inv(edges)), 2), Vec(zeros(len(x), 3))]


@row(lambda rng: block(rng, 20), fresh=(3,), atomic=True, close=1e-3)
def fem(qd):
    """Forces of tetrahedra (Saint Venant and Kirchhoff), added at their corners."""
    v1, i2, m1 = arrays(qd, "f3v1 i2 f3m1")

    @qd.kernel
    def fem(x: v1, tets: i2, inverse: m1, force: v1):
        for t in range(tets.shape[0]):
            a, b, c, d = tets[t, 0], tets[t, 1], tets[t, 2], tets[t, 3]
            edges = qd.Matrix.cols([x[b] - x[a], x[c] - x[a], x[d] - x[a]])
            F = edges @ inverse[t]
            I = qd.Matrix.identity(qd.f32, 3)
            G = 0.5 * (F.transpose() @ F - I)
            P = F @ (2.0 * G + G.trace() * I)
            H = -1.0 / 6.0 * P @ inverse[t].transpose()
            fb = qd.Vector([H[0, 0], H[1, 0], H[2, 0]])
            fc = qd.Vector([H[0, 1], H[1, 1], H[2, 1]])
            fd = qd.Vector([H[0, 2], H[1, 2], H[2, 2]])
            force[b] += fb
            force[c] += fc
            force[d] += fd
            force[a] -= fb + fc + fd

    return fem
