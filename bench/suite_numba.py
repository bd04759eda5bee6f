"""The kernels of suite.py for Numba, imported by suite_peer.py in its own interpreter. It has no atomics:
what needs them is serial (`once`). On one thread nothing is parallel, which is faster than one worker."""

import math
import os

import numpy as np
from numba import njit, prange

THREADS = int(os.environ.get("NUMBA_NUM_THREADS", "1"))
fast = njit(parallel=THREADS > 1, fastmath=True, error_model="numpy")
exact = njit(parallel=THREADS > 1, error_model="numpy")
once = njit(fastmath=True, error_model="numpy")
F = np.float32


def kernels():
    """All kernels by name, those of the other modules too."""
    import suite_numba_control
    import suite_numba_funcs
    import suite_numba_more

    return globals() | vars(suite_numba_funcs) | vars(suite_numba_more) | vars(suite_numba_control)


@fast
def tiny(x):
    for i in prange(x.shape[0]):
        x[i] = F(1)


@fast
def columns(p):
    c = F(0.01)
    for i in prange(p.shape[0]):
        p[i, 0] += c * p[i, 3]
        p[i, 1] += c * p[i, 4]
        p[i, 2] += c * p[i, 5]
        p[i, 3] -= c * p[i, 0]
        p[i, 4] -= c * p[i, 1]
        p[i, 5] -= c * p[i, 2]


@fast
def ldl_first(L, d):
    n = L.shape[1]
    for e in prange(L.shape[0]):
        for j in range(n):
            for k in range(j):
                L[e, j, j] -= L[e, j, k] * L[e, j, k] * d[e, k]
            d[e, j] = L[e, j, j]
            for i in range(j + 1, n):
                for k in range(j):
                    L[e, i, j] -= L[e, i, k] * L[e, j, k] * d[e, k]
                L[e, i, j] = L[e, i, j] / d[e, j]


@fast
def ldl_last(L, d):
    n = L.shape[0]
    for e in prange(L.shape[2]):
        for j in range(n):
            for k in range(j):
                L[j, j, e] -= L[j, k, e] * L[j, k, e] * d[k, e]
            d[j, e] = L[j, j, e]
            for i in range(j + 1, n):
                for k in range(j):
                    L[i, j, e] -= L[i, k, e] * L[j, k, e] * d[k, e]
                L[i, j, e] = L[i, j, e] / d[j, e]


@fast
def matmul_acc(a, b, c):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@fast
def chol6(a, l):
    for e in prange(a.shape[0]):
        for j in range(6):
            s = a[e, j, j]
            for k in range(j):
                s -= l[e, j, k] * l[e, j, k]
            d = math.sqrt(s)
            l[e, j, j] = d
            for i in range(j + 1, 6):
                t = a[e, i, j]
                for k in range(j):
                    t -= l[e, i, k] * l[e, j, k]
                l[e, i, j] = t / d


@fast
def math_f32(x, y):
    for i in prange(x.shape[0]):
        a = x[i]
        b = math.sin(a) * math.cos(a + a) + math.exp(-a) * math.log(a + F(1))
        c = math.tanh(a) + a ** F(1.7) + math.atan2(a, b)
        y[i] = c + math.sqrt(a) + math.asin(F(0.5) * a) + math.tan(a)


@fast
def math_f64(x, y):
    for i in prange(x.shape[0]):
        a = x[i]
        b = math.sin(a) * math.cos(a + a) + math.exp(-a) * math.log(a + 1.0)
        c = math.tanh(a) + a ** 1.75 + math.atan2(a, b)
        y[i] = c + math.sqrt(a) + math.asin(a / 2) + math.tan(a)


@fast
def minmax(x, out):
    low, high = F(1e30), F(-1e30)
    for i in prange(x.shape[0]):
        low = min(low, x[i])
        high = max(high, x[i])
    out[0] = low
    out[1] = high


@fast
def argmin(x, least, where):
    low, at = F(1e30), np.int64(2147483647)
    for i in prange(x.shape[0]):
        low = min(low, x[i])
    for i in prange(x.shape[0]):
        at = min(at, np.int64(i) if x[i] == low else np.int64(2147483647))
    least[0] = low
    where[0] = at


@fast
def sums3(x, y, s):
    a, b, c = F(0), F(0), F(0)
    for i in prange(x.shape[0]):
        a += x[i]
        b += x[i] * x[i]
        c += x[i] * y[i]
    s[0] += a
    s[1] += b
    s[2] += c


@fast
def indices(a, b, width):
    for k in prange(a.shape[0]):
        b[k] = a[k] * F(k // width + 1) + F(k % width)


@fast
def conv5(src, w, dst):
    for i in prange(2, src.shape[0] - 2):
        for j in range(2, src.shape[1] - 2):
            s = F(0)
            for a in range(5):
                for b in range(5):
                    s += w[a, b] * F(src[i + a - 2, j + b - 2])
            dst[i, j] = np.uint8(min(max(s, F(0)), F(255)))


@fast
def advect(u, v, q, out):
    n, one = q.shape[0], F(1)
    for i in prange(n):
        for j in range(n):
            x = max(F(0), min(F(n - 1.001), F(i) - u[i, j]))
            y = max(F(0), min(F(n - 1.001), F(j) - v[i, j]))
            a, b = int(math.floor(x)), int(math.floor(y))
            s, t = x - F(a), y - F(b)
            top = q[a, b] * (one - t) + q[a, b + 1] * t
            low = q[a + 1, b] * (one - t) + q[a + 1, b + 1] * t
            out[i, j] = top * (one - s) + low * s


@fast
def life_u8(a, b):
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            s = (a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j + 1]
                 + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1])
            b[i, j] = 1 if s == 3 or (s == 2 and a[i, j] == 1) else 0


@fast
def nbody_n3(p, f):
    for i in prange(p.shape[0]):
        fx, fy, fz = F(0), F(0), F(0)
        for j in range(p.shape[0]):
            dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
            inv = F(1) / math.sqrt(dx * dx + dy * dy + dz * dz + F(0.01))
            w = inv * inv * inv
            fx += dx * w
            fy += dy * w
            fz += dz * w
        f[i, 0], f[i, 1], f[i, 2] = fx, fy, fz


nbody_vec = nbody_n3


@once
def cloth(x, first, second, move):
    for c in range(first.shape[0]):
        a, b = first[c], second[c]
        dx, dy, dz = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        length = math.sqrt(dx * dx + dy * dy + dz * dz) + F(1e-6)
        s = F(0.5) * (length - F(0.1)) / length
        for k, d in enumerate((dx, dy, dz)):
            move[a, k] += d * s
            move[b, k] -= d * s


@njit
def draw(state):
    """Xorshift, one stream for each pixel: the next state."""
    state ^= (state << np.uint32(13)) & np.uint32(0xFFFFFFFF)
    state ^= state >> np.uint32(17)
    return np.uint32(state ^ (state << np.uint32(5)))


@njit
def real(state):
    return F(state >> np.uint32(8)) * F(1 / 16777216)


@fast
def path(balls, colours, out, samples):
    n, two, scale = out.shape[0], F(2), F(4) / F(out.shape[0])
    for i in prange(n):
        for j in range(n):
            state, total = np.uint32((i * n + j) * 2654435761 + 1), F(0)
            for _ in range(samples):
                state = draw(state)
                dx = (F(j) + real(state)) * scale - two
                state = draw(state)
                dy = (F(i) + real(state)) * scale - two
                s = F(1) / math.sqrt(dx * dx + dy * dy + F(1))
                dx, dy, dz = dx * s, dy * s, -s
                ox, oy, oz, weight = F(0), F(0), F(1), F(1)
                for _ in range(8):
                    near, ball = F(1e10), -1
                    for k in range(balls.shape[0]):
                        mx, my, mz = ox - balls[k, 0], oy - balls[k, 1], oz - balls[k, 2]
                        b = mx * dx + my * dy + mz * dz
                        q = b * b - (mx * mx + my * my + mz * mz) + balls[k, 3] * balls[k, 3]
                        if q > F(0):
                            t = -b - math.sqrt(q)
                            if t > F(1e-3) and t < near:
                                near, ball = t, k
                    if ball < 0:
                        total += weight * F(0.2)
                        break
                    if colours[ball, 3] > F(0):
                        total += weight * colours[ball, 3]
                        break
                    weight *= (colours[ball, 0] + colours[ball, 1] + colours[ball, 2]) / F(3)
                    ox, oy, oz = ox + dx * near, oy + dy * near, oz + dz * near
                    px, py, pz = F(1), F(1), F(1)
                    while px * px + py * py + pz * pz >= F(1):
                        state = draw(state)
                        px = real(state) * two - F(1)
                        state = draw(state)
                        py = real(state) * two - F(1)
                        state = draw(state)
                        pz = real(state) * two - F(1)
                    dx = (ox - balls[ball, 0]) / balls[ball, 3] + px
                    dy = (oy - balls[ball, 1]) / balls[ball, 3] + py
                    dz = (oz - balls[ball, 2]) / balls[ball, 3] + pz
                    s = F(1) / math.sqrt(dx * dx + dy * dy + dz * dz)
                    dx, dy, dz = dx * s, dy * s, dz * s
            out[i, j] = total / F(samples)
