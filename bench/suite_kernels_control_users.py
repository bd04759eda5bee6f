"""More of the control of suite.py: ten kernels as users write them.
Nothing in the compiler was made, or may be made, for one of
these: they were written and measured before."""

import numpy as np

from suite_rows import Vec, arrays, f32, i32, row, zeros

D = np.float64


def tri(rng, n, m):
    """Tridiagonal systems: three diagonals, right sides, scratch, solutions."""
    below, above = rng.random((n, m)) * 0.2, rng.random((n, m)) * 0.2
    return (n, m), [below, rng.random((n, m)) + 2, above, rng.random((n, m)), zeros(n, m, dtype=D), zeros(n, m, dtype=D)]


def neighbours(rng, n, w):
    return (n, w), [Vec(f32(rng.random((n, 3)) * 10)), i32(rng.integers(0, n, (n, w))), Vec(zeros(n, 3))]


def segments(rng, n, k):
    ptr = np.sort(np.concatenate([[0, n], rng.integers(0, n, k - 1)]))
    return (k,), [i32(ptr), f32(rng.random(n)), zeros(k)]


def keys(rng, n, slots):
    return (n, slots), [i32(rng.integers(1, 40000, n)), i32(np.zeros(slots)), i32(np.zeros(slots))]


def chances(rng, n, m):
    return (n, m), [f32(rng.random((m, m))), f32(rng.random((n, m))), zeros(n, m), i32(np.zeros((n, m)))]


def blocks(rng, n, m):
    return (n, m), [i32(rng.random((n, n, n)) < 0.02), zeros(m, m)]


@row(lambda rng: tri(rng, 400, 300), close=1e-9)
def thomas_row(qd):
    """Tridiagonal systems along rows (Thomas)."""
    d2 = arrays(qd, "d2")

    @qd.kernel
    def thomas_row(a: d2, b: d2, c: d2, d: d2, w: d2, x: d2):
        m = a.shape[1]
        for i in range(a.shape[0]):
            w[i, 0] = c[i, 0] / b[i, 0]
            x[i, 0] = d[i, 0] / b[i, 0]
            for j in range(1, m):
                den = b[i, j] - a[i, j] * w[i, j - 1]
                w[i, j] = c[i, j] / den
                x[i, j] = (d[i, j] - a[i, j] * x[i, j - 1]) / den
            for k in range(1, m):
                j = m - 1 - k
                x[i, j] -= w[i, j] * x[i, j + 1]

    return thomas_row


@row(lambda rng: tri(rng, 400, 300), close=1e-9)
def thomas_col(qd):
    """The same along columns."""
    d2 = arrays(qd, "d2")

    @qd.kernel
    def thomas_col(a: d2, b: d2, c: d2, d: d2, w: d2, x: d2):
        n = a.shape[0]
        for j in range(a.shape[1]):
            w[0, j] = c[0, j] / b[0, j]
            x[0, j] = d[0, j] / b[0, j]
            for i in range(1, n):
                den = b[i, j] - a[i, j] * w[i - 1, j]
                w[i, j] = c[i, j] / den
                x[i, j] = (d[i, j] - a[i, j] * x[i - 1, j]) / den
            for k in range(1, n):
                i = n - 1 - k
                x[i, j] -= w[i, j] * x[i + 1, j]

    return thomas_col


@row(lambda rng: ((2000, 300), [f32(rng.random((2000, 300))), zeros(2000), zeros(2000)]), close=1e-3)
def welford(qd):
    """Mean and variance of each row in one pass."""
    f2, f1 = arrays(qd, "f2 f1")

    @qd.kernel
    def welford(x: f2, mean: f1, var: f1):
        for i in range(x.shape[0]):
            m = 0.0
            q = 0.0
            for j in range(x.shape[1]):
                d = x[i, j] - m
                m += d / (j + 1)
                q += d * (x[i, j] - m)
            mean[i] = m
            var[i] = q / x.shape[1]

    return welford


@row(lambda rng: neighbours(rng, 8000, 32), close=1e-2)
def lj(qd):
    """Lennard-Jones forces of listed neighbours."""
    v1, i2 = arrays(qd, "f3v1 i2")

    @qd.kernel
    def lj(x: v1, nb: i2, f: v1):
        for i in range(x.shape[0]):
            s = qd.Vector([0.0, 0.0, 0.0])
            for k in range(nb.shape[1]):
                j = nb[i, k]
                d = x[i] - x[j]
                r2 = d.dot(d) + 0.1
                if r2 < 6.25 and j != i:
                    ir = 1.0 / r2
                    ir6 = ir * ir * ir
                    s += d * (24.0 * ir6 * (2.0 * ir6 - 1.0) * ir)
            f[i] = s

    return lj


@row(lambda rng: ((4096, 8), [f32(rng.random((4096, 8))), zeros(4096, 8, 3), f32(rng.random((8, 3)))]), close=1e-3)
def chain(qd):
    """Forward kinematics of chains of eight joints."""
    f2, f3 = arrays(qd, "f2 f3")

    @qd.func
    def rot(axis, a):
        c = qd.cos(a)
        s = qd.sin(a)
        x, y, z = axis[0], axis[1], axis[2]
        t = 1.0 - c
        return qd.Matrix([[t * x * x + c, t * x * y - s * z, t * x * z + s * y], [t * x * y + s * z, t * y * y + c, t * y * z - s * x],
                          [t * x * z - s * y, t * y * z + s * x, t * z * z + c]])

    @qd.kernel
    def chain(ang: f2, out: f3, ax: f2):
        for e in range(ang.shape[0]):
            r = qd.Matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
            p = qd.Vector([0.0, 0.0, 0.0])
            for k in range(ang.shape[1]):
                n = qd.Vector([ax[k, 0], ax[k, 1], ax[k, 2]]).normalized()
                r = r @ rot(n, ang[e, k])
                p += r @ qd.Vector([0.0, 0.0, 0.3])
                for c in qd.static(range(3)):
                    out[e, k, c] = p[c]

    return chain


@row(lambda rng: ((5000, 20), [Vec(f32(rng.random((5000, 20, 3)))), Vec(f32(rng.random((5000, 20, 3))))]), fresh=(0,), close=1e-2)
def rope(qd):
    """Position based ropes: relaxation in order, one rope per iteration."""
    v2 = arrays(qd, "f3v2")

    @qd.kernel
    def rope(x: v2, v: v2):
        for r in range(x.shape[0]):
            for it in range(4):
                for k in range(x.shape[1] - 1):
                    d = x[r, k + 1] - x[r, k]
                    l = d.norm() + 1e-6
                    c = d * ((l - 0.1) / l * 0.5)
                    x[r, k] += c
                    x[r, k + 1] -= c

    return rope


@row(lambda rng: blocks(rng, 64, 160), strays=0.02, close=1e-2)
def voxels(qd):
    """Rays through a grid of voxels, from cell to cell."""
    i3, f2 = arrays(qd, "i3 f2")

    @qd.kernel
    def voxels(g: i3, o: f2):
        for i, j in o:
            d = qd.Vector([1.0, i / 80.0 - 0.99, j / 80.0 - 0.99]).normalized()
            p = qd.Vector([0.01, 32.1, 32.1])
            c = qd.cast(qd.floor(p), qd.i32)
            step = qd.Vector([1, 1, 1])
            tmax = qd.Vector([0.0, 0.0, 0.0])
            tdel = qd.Vector([0.0, 0.0, 0.0])
            for k in qd.static(range(3)):
                dk = d[k]
                if abs(dk) < 1e-6:
                    dk = 1e-6
                tdel[k] = 1.0 / abs(dk)
                if dk < 0:
                    step[k] = -1
                    tmax[k] = (p[k] - c[k]) * tdel[k]
                else:
                    tmax[k] = (c[k] + 1 - p[k]) * tdel[k]
            t = 0.0
            go = 1
            while go == 1:
                k = 0
                if tmax[1] < tmax[0]:
                    k = 1
                if tmax[2] < qd.min(tmax[0], tmax[1]):
                    k = 2
                if k == 0:
                    t = tmax[0]
                    tmax[0] += tdel[0]
                    c[0] += step[0]
                elif k == 1:
                    t = tmax[1]
                    tmax[1] += tdel[1]
                    c[1] += step[1]
                else:
                    t = tmax[2]
                    tmax[2] += tdel[2]
                    c[2] += step[2]
                if c[0] < 0 or c[0] >= 64 or c[1] < 0 or c[1] >= 64 or c[2] < 0 or c[2] >= 64:
                    go = 0
                elif g[c[0], c[1], c[2]] != 0:
                    go = 0
            o[i, j] = t

    return voxels


@row(lambda rng: segments(rng, 1000000, 20000), close=1e-3)
def segsum(qd):
    """Sums of segments of different lengths."""
    i1, f1 = arrays(qd, "i1 f1")

    @qd.kernel
    def segsum(ptr: i1, x: f1, o: f1):
        for s in range(o.shape[0]):
            t = 0.0
            for k in range(ptr[s], ptr[s + 1]):
                t += x[k]
            o[s] = t

    return segsum


@row(lambda rng: keys(rng, 60000, 1 << 17), fresh=(1, 2))
def hashins(qd):
    """Insertion into a hash table with open addressing."""
    i1 = arrays(qd, "i1")

    @qd.kernel
    def hashins(key: i1, slot: i1, cnt: i1):
        mask = slot.shape[0] - 1
        qd.loop_config(serialize=True)
        for i in range(key.shape[0]):
            k = key[i]
            h = (k * 1640531527) >> 7 & mask
            while slot[h] != 0 and slot[h] != k:
                h = (h + 1) & mask
            slot[h] = k
            cnt[h] += 1

    return hashins


@row(lambda rng: chances(rng, 200, 48), strays=0.01, close=1e-3)
def viterbi(qd):
    """The likeliest path through states, step by step."""
    f2, i2 = arrays(qd, "f2 i2")

    @qd.kernel
    def viterbi(tr: f2, em: f2, d: f2, back: i2):
        qd.loop_config(serialize=True)
        for t in range(1, em.shape[0]):
            for s in range(em.shape[1]):
                best = -1e30
                arg = 0
                for p in range(em.shape[1]):
                    v = d[t - 1, p] + tr[p, s]
                    if v > best:
                        best = v
                        arg = p
                d[t, s] = best + em[t, s]
                back[t, s] = arg

    return viterbi
