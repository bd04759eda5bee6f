"""More kernels of suite.py for Numba: see suite_numba.py, which collects them."""

import math

import numpy as np
from numba import njit, prange

from suite_numba import F, exact, fast, once


@fast
def matmul_f64(a, b, c):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@fast
def matmul_tn(a, b, c):
    for i in prange(a.shape[1]):
        for j in range(b.shape[1]):
            s = F(0)
            for k in range(a.shape[0]):
                s += a[k, i] * b[k, j]
            c[i, j] = s


@fast
def matmul_nt(a, b, c):
    for i in prange(a.shape[0]):
        for j in range(b.shape[0]):
            s = F(0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            c[i, j] = s


@fast
def csr(start, col, val, x, y):
    for i in prange(y.shape[0]):
        s = F(0)
        for k in range(start[i], start[i + 1]):
            s += val[k] * x[col[k]]
        y[i] = s


@fast
def floyd(d, k):
    for i in prange(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@fast
def triangular(L, x, y):
    for e in prange(L.shape[0]):
        for i in range(L.shape[1]):
            s = F(0)
            for j in range(i + 1):
                s += L[e, i, j] * x[e, j]
            y[e, i] = s


@exact  # LLVM would call a powi that Numba does not have
def powers(x, e, y):
    for i in prange(x.shape[0]):
        y[i] = x[i] ** F(1.7) + x[i] ** F(e[i])


@fast
def fill(x, value):
    for i in prange(x.shape[0]):
        x[i] = value


@once
def hist64(x, bins):
    for i in range(x.shape[0]):
        bins[x[i]] += 1


@fast
def scan(x, y, sums):
    length = x.shape[0] // sums.shape[0]
    for b in prange(sums.shape[0]):
        s = np.int32(0)
        for k in range(length):
            s += x[b * length + k]
        sums[b] = s
    for b in range(1, sums.shape[0]):
        sums[b] += sums[b - 1]
    for b in prange(sums.shape[0]):
        s = sums[b - 1] if b > 0 else np.int32(0)
        for k in range(length):
            s += x[b * length + k]
            y[b * length + k] = s


@fast
def bitonic_step(a, k, j):
    for i in prange(a.shape[0]):
        other = i ^ j
        if other > i and (a[i] > a[other]) == ((i & k) == 0):
            t = a[i]
            a[i] = a[other]
            a[other] = t


def bitonic(a):
    n, k = a.shape[0], 2
    while k <= n:
        j = k // 2
        while j > 0:
            bitonic_step(a, k, j)
            j //= 2
        k *= 2


@fast
def collatz(out):
    for i in prange(out.shape[0]):
        x, count = np.int64(i + 1), 0
        while x != 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            count += 1
        out[i] = count


@njit
def mixed(h):
    h = h ^ (h >> np.uint32(16))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = h ^ (h >> np.uint32(13))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@fast
def murmur(x, y):
    for i in prange(x.shape[0]):
        y[i] = mixed(mixed(mixed(x[i])))


@njit
def spread(v):
    v = v & 0x3FF
    v = (v | (v << 16)) & 0x030000FF
    v = (v | (v << 8)) & 0x0300F00F
    v = (v | (v << 4)) & 0x030C30C3
    return (v | (v << 2)) & 0x09249249


@njit
def reverse(v):
    v = ((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1)
    v = ((v >> 2) & 0x33333333) | ((v & 0x33333333) << 2)
    v = ((v >> 4) & 0x0F0F0F0F) | ((v & 0x0F0F0F0F) << 4)
    v = ((v >> 8) & 0x00FF00FF) | ((v & 0x00FF00FF) << 8)
    return (v >> 16) | (v << 16)


@njit
def count(v):
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return ((v * 0x01010101) & 0xFFFFFFFF) >> 24


@fast
def bits(x, y):
    for i in prange(x.shape[0]):
        v = np.int64(x[i])
        code = spread(v) | (spread(v >> 10) << 1) | (spread(v >> 20) << 2)
        y[i] = np.uint32((code ^ reverse(v) ^ count(v)) & 0xFFFFFFFF)


@fast
def primes(out):
    for i in prange(2, out.shape[0]):
        found, j, n = 1, np.int32(2), np.int32(i)
        while j * j <= n:
            if n % j == 0:
                found = 0
                break
            j += np.int32(1)
        out[i] = found


@fast
def jacobi3d(a, b, rhs):
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            for k in range(1, a.shape[2] - 1):
                around = (a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
                          + a[i, j, k - 1] + a[i, j, k + 1])
                b[i, j, k] = (around - rhs[i, j, k]) / F(6)


@fast
def redblack(p, rhs):
    for colour in range(2):
        for i in prange(1, p.shape[0] - 1):
            for j in range(1, p.shape[1] - 1):
                if (i + j) % 2 == colour:
                    new = F(0.25) * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - rhs[i, j])
                    p[i, j] += F(1.5) * (new - p[i, j])


@fast
def life_i32(a, b):
    n = a.shape[0]
    for i in prange(n):
        for j in range(n):
            c = 0
            for x in range(-1, 2):
                for y in range(-1, 2):
                    if x != 0 or y != 0:
                        c += a[(i + x) % n, (j + y) % n]
            b[i, j] = 1 if c == 3 or (c == 2 and a[i, j] == 1) else 0


@fast
def grid3(v, div, curl):
    h = F(0.5)
    for i in prange(1, v.shape[0] - 1):
        for j in range(1, v.shape[1] - 1):
            for k in range(1, v.shape[2] - 1):
                div[i, j, k] = (v[i + 1, j, k, 0] - v[i - 1, j, k, 0]) * h + (
                    v[i, j + 1, k, 1] - v[i, j - 1, k, 1]) * h + (v[i, j, k + 1, 2] - v[i, j, k - 1, 2]) * h
                curl[i, j, k, 0] = (v[i, j + 1, k, 2] - v[i, j - 1, k, 2]) * h - (v[i, j, k + 1, 1] - v[i, j, k - 1, 1]) * h
                curl[i, j, k, 1] = (v[i, j, k + 1, 0] - v[i, j, k - 1, 0]) * h - (v[i + 1, j, k, 2] - v[i - 1, j, k, 2]) * h
                curl[i, j, k, 2] = (v[i + 1, j, k, 1] - v[i - 1, j, k, 1]) * h - (v[i, j + 1, k, 0] - v[i, j - 1, k, 0]) * h


EX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
EY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, np.float32)


@fast
def lbm(old, new):
    for i in prange(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            rho, ux, uy = F(0), F(0), F(0)
            for k in range(9):
                f = old[i - EX[k], j - EY[k], k]
                rho += f
                ux += f * F(EX[k])
                uy += f * F(EY[k])
            ux /= rho
            uy /= rho
            for k in range(9):
                f = old[i - EX[k], j - EY[k], k]
                eu = F(EX[k]) * ux + F(EY[k]) * uy
                feq = W[k] * rho * (F(1) + F(3) * eu + F(4.5) * eu * eu - F(1.5) * (ux * ux + uy * uy))
                new[i, j, k] = f + F(0.6) * (feq - f)


@fast
def sph(x, start, rho, side):
    h2 = F(1) / F(side * side)
    for i in prange(x.shape[0]):
        cx, cy, cz = int(x[i, 0] * F(side)), int(x[i, 1] * F(side)), int(x[i, 2] * F(side))
        total = F(0)
        for a in range(max(cx - 1, 0), min(cx + 2, side)):
            for b in range(max(cy - 1, 0), min(cy + 2, side)):
                for c in range(max(cz - 1, 0), min(cz + 2, side)):
                    cell = (a * side + b) * side + c
                    for j in range(start[cell], start[cell + 1]):
                        dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                        r2 = dx * dx + dy * dy + dz * dz
                        if r2 < h2:
                            w = F(1) - r2 / h2
                            total += w * w * w
        rho[i] = total


@fast
def raytri(o, d, a, e1, e2, out):
    for i in prange(o.shape[0]):
        near = F(1e30)
        dx, dy, dz = d[i, 0], d[i, 1], d[i, 2]
        for k in range(a.shape[0]):
            px = dy * e2[k, 2] - dz * e2[k, 1]
            py = dz * e2[k, 0] - dx * e2[k, 2]
            pz = dx * e2[k, 1] - dy * e2[k, 0]
            det = e1[k, 0] * px + e1[k, 1] * py + e1[k, 2] * pz
            if abs(det) > F(1e-8):
                inv = F(1) / det
                sx, sy, sz = o[i, 0] - a[k, 0], o[i, 1] - a[k, 1], o[i, 2] - a[k, 2]
                u = (sx * px + sy * py + sz * pz) * inv
                if u >= F(0) and u <= F(1):
                    qx = sy * e1[k, 2] - sz * e1[k, 1]
                    qy = sz * e1[k, 0] - sx * e1[k, 2]
                    qz = sx * e1[k, 1] - sy * e1[k, 0]
                    v = (dx * qx + dy * qy + dz * qz) * inv
                    if v >= F(0) and u + v <= F(1):
                        t = (e2[k, 0] * qx + e2[k, 1] * qy + e2[k, 2] * qz) * inv
                        if t > F(0) and t < near:
                            near = t
        out[i] = near


@fast
def aos(x, v):
    for i in prange(x.shape[0]):
        for k in range(3):
            g = F(-9.8) if k == 1 else F(0)
            v[i, k] += F(0.001) * (g - F(0.1) * v[i, k])
            x[i, k] += F(0.001) * v[i, k]
            if x[i, k] < F(0):
                x[i, k] = F(0)
                v[i, k] = F(-0.8) * v[i, k]
            if x[i, k] > F(1):
                x[i, k] = F(1)
                v[i, k] = F(-0.8) * v[i, k]


@njit
def bounce(x, v):
    if x < F(0):
        x, v = F(0), F(-0.8) * v
    if x > F(1):
        x, v = F(1), F(-0.8) * v
    return x, v


@fast
def soa(x, y, z, u, v, w):
    h, drag = F(0.001), F(0.1)
    for i in prange(x.shape[0]):
        a, b, c = u[i] - h * drag * u[i], v[i] + h * (F(-9.8) - drag * v[i]), w[i] - h * drag * w[i]
        x[i], u[i] = bounce(x[i] + h * a, a)
        y[i], v[i] = bounce(y[i] + h * b, b)
        z[i], w[i] = bounce(z[i] + h * c, c)


@njit(fastmath=True)
def times(a, b):
    return (a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0])


@fast
def quat(q, w, v, out):
    zero, h = F(0), F(0.005)
    for i in prange(q.shape[0]):
        b = times((zero, w[i, 0], w[i, 1], w[i, 2]), (q[i, 0], q[i, 1], q[i, 2], q[i, 3]))
        r0, r1, r2, r3 = q[i, 0] + h * b[0], q[i, 1] + h * b[1], q[i, 2] + h * b[2], q[i, 3] + h * b[3]
        s = F(1) / math.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + r3 * r3)
        r0, r1, r2, r3 = r0 * s, r1 * s, r2 * s, r3 * s
        q[i, 0], q[i, 1], q[i, 2], q[i, 3] = r0, r1, r2, r3
        p = times(times((r0, r1, r2, r3), (zero, v[i, 0], v[i, 1], v[i, 2])), (r0, -r1, -r2, -r3))
        out[i, 0], out[i, 1], out[i, 2] = p[1], p[2], p[3]


@once
def p2g3d(x, v, C, grid_v, grid_m):
    w, fx, base = np.empty((3, 3), np.float32), np.empty(3, np.float32), np.empty(3, np.int64)
    for p in range(x.shape[0]):
        for c in range(3):
            base[c] = int(x[p, c] * F(32) - F(0.5))
            fx[c] = x[p, c] * F(32) - F(base[c])
            w[0, c] = F(0.5) * (F(1.5) - fx[c]) ** 2
            w[1, c] = F(0.75) - (fx[c] - F(1)) ** 2
            w[2, c] = F(0.5) * (fx[c] - F(0.5)) ** 2
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    d0, d1, d2 = (F(i) - fx[0]) / F(32), (F(j) - fx[1]) / F(32), (F(k) - fx[2]) / F(32)
                    weight = w[i, 0] * w[j, 1] * w[k, 2]
                    for c in range(3):
                        grid_v[base[0] + i, base[1] + j, base[2] + k, c] += weight * (
                            v[p, c] + C[p, c, 0] * d0 + C[p, c, 1] * d1 + C[p, c, 2] * d2)
                    grid_m[base[0] + i, base[1] + j, base[2] + k] += weight


@fast
def svd3(a, r):
    for i in prange(a.shape[0]):
        u, _, vt = np.linalg.svd(a[i])
        r[i] = np.dot(u, vt)


@once
def fem(x, tets, inverse, force):
    for t in range(tets.shape[0]):
        D, B = np.empty((3, 3), np.float32), inverse[t]
        for i in range(3):
            for j in range(3):
                D[i, j] = x[tets[t, j + 1], i] - x[tets[t, 0], i]
        deform = np.dot(D, B)
        G = F(0.5) * (np.dot(deform.T, deform) - np.eye(3, dtype=np.float32))
        trace = G[0, 0] + G[1, 1] + G[2, 2]
        P = np.dot(deform, F(2) * G + trace * np.eye(3, dtype=np.float32))
        H = F(-1 / 6) * np.dot(P, B.T)
        for i in range(3):
            for j in range(3):
                force[tets[t, j + 1], i] += H[i, j]
            force[tets[t, 0], i] -= H[i, 0] + H[i, 1] + H[i, 2]
