"""Kernels of suite.py: particles, bodies and rays."""

import numpy as np

from suite_rows import Vec, arrays, f32, i32, row, zeros


@row(lambda rng: ((2048,), [f32(rng.random((2048, 3))), zeros(2048, 3)]), close=1e-3)
def nbody_n3(qd):
    """Gravity; positions are rows of an (N, 3) array."""
    f2 = arrays(qd, "f2")

    @qd.kernel
    def nbody_n3(p: f2, f: f2):
        for i in range(p.shape[0]):
            fx, fy, fz = 0.0, 0.0, 0.0
            for j in range(p.shape[0]):
                dx = p[j, 0] - p[i, 0]
                dy = p[j, 1] - p[i, 1]
                dz = p[j, 2] - p[i, 2]
                inv = 1.0 / qd.sqrt(dx * dx + dy * dy + dz * dz + 0.01)
                w = inv * inv * inv
                fx += dx * w
                fy += dy * w
                fz += dz * w
            f[i, 0] = fx
            f[i, 1] = fy
            f[i, 2] = fz

    return nbody_n3


@row(lambda rng: ((2048,), [Vec(f32(rng.random((2048, 3)))), Vec(zeros(2048, 3))]), close=1e-3)
def nbody_vec(qd):
    """Gravity; positions are vectors."""
    v1 = arrays(qd, "f3v1")

    @qd.kernel
    def nbody_vec(x: v1, f: v1):
        for i in range(x.shape[0]):
            s = qd.Vector([0.0, 0.0, 0.0])
            for j in range(x.shape[0]):
                d = x[j] - x[i]
                r = d.norm_sqr() + 0.01
                s += d / (r * qd.sqrt(r))
            f[i] = s

    return nbody_vec


def sheet(rng, n):
    """A cloth of n * n vertices: springs along rows and columns."""
    at = np.arange(n * n).reshape(n, n)
    pairs = np.concatenate([np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2),
                            np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)])
    x = np.stack([*np.mgrid[0:n, 0:n] * 0.1, rng.random((n, n)) * 0.05], -1).reshape(-1, 3)
    return (len(pairs),), [Vec(f32(x)), i32(pairs[:, 0]), i32(pairs[:, 1]), Vec(zeros(n * n, 3))]


@row(lambda rng: sheet(rng, 256), fresh=(3,), atomic=True, close=1e-3)
def cloth(qd):
    """Corrections of positions, one constraint after the other, added where they meet."""
    v1, i1 = arrays(qd, "f3v1 i1")

    @qd.kernel
    def cloth(x: v1, first: i1, second: i1, move: v1):
        for c in range(first.shape[0]):
            a = first[c]
            b = second[c]
            d = x[b] - x[a]
            length = d.norm() + 1e-6
            g = d * (0.5 * (length - 0.1) / length)
            move[a] += g
            move[b] -= g

    return cloth


def spheres(rng, n):
    """Centres and radii, colours and light of the balls of a picture of n * n."""
    balls = [[0, -100.5, -1, 100], [0, 0, -1, 0.5], [-1, 0, -1, 0.5], [1, 0, -1, 0.5], [0, 5.4, -1, 3.0]]
    colours = [[0.8, 0.8, 0.8, 0], [0.7, 0.3, 0.3, 0], [0.8, 0.6, 0.2, 0], [0.3, 0.6, 0.8, 0], [1, 1, 1, 4]]
    return (n, len(balls)), [f32(balls), f32(colours), zeros(n, n), 4]


@row(lambda rng: spheres(rng, 128), compare="mean", close=0.05)
def path(qd):
    """A path tracer: balls, light, and a loop that leaves at the light or after eight bounces."""
    f2 = arrays(qd, "f2")

    @qd.func
    def hit_ball(o, d, c, r):
        m = o - c
        b = m.dot(d)
        q = b * b - m.dot(m) + r * r
        t = -1.0
        if q > 0.0:
            t = -b - qd.sqrt(q)
        return t

    @qd.func
    def on_ball():
        p = qd.Vector([1.0, 1.0, 1.0])
        while p.dot(p) >= 1.0:
            p = qd.Vector([qd.random() * 2.0 - 1.0, qd.random() * 2.0 - 1.0, qd.random() * 2.0 - 1.0])
        return p

    @qd.kernel
    def path(balls: f2, colours: f2, out: f2, samples: qd.i32):
        for i, j in qd.ndrange(out.shape[0], out.shape[1]):
            total = 0.0
            for s in range(samples):
                u = (j + qd.random()) / out.shape[1] * 4.0 - 2.0
                v = (i + qd.random()) / out.shape[0] * 4.0 - 2.0
                o = qd.Vector([0.0, 0.0, 1.0])
                d = qd.Vector([u, v, -1.0]).normalized()
                weight = 1.0
                bounce = 0
                while bounce < 8:
                    near = 1e10
                    ball = -1
                    for k in range(balls.shape[0]):
                        t = hit_ball(o, d, qd.Vector([balls[k, 0], balls[k, 1], balls[k, 2]]), balls[k, 3])
                        if t > 1e-3 and t < near:
                            near = t
                            ball = k
                    if ball < 0:
                        total += weight * 0.2
                        break
                    if colours[ball, 3] > 0.0:
                        total += weight * colours[ball, 3]
                        break
                    weight *= (colours[ball, 0] + colours[ball, 1] + colours[ball, 2]) / 3.0
                    o = o + d * near
                    normal = (o - qd.Vector([balls[ball, 0], balls[ball, 1], balls[ball, 2]])) / balls[ball, 3]
                    d = (normal + on_ball()).normalized()
                    bounce += 1
            out[i, j] = total / samples

    return path


def cells(rng, n, side):
    """Particles sorted by the cells of a grid, and where each cell begins."""
    x = rng.random((n, 3))
    cell = ((x * side).astype(int) * [side * side, side, 1]).sum(1)
    order = np.argsort(cell, kind="stable")
    start = np.searchsorted(cell[order], np.arange(side**3 + 1))
    return (n, side), [Vec(f32(x[order])), i32(start), zeros(n), side]


@row(lambda rng: cells(rng, 1 << 13, 8), close=1e-3)
def sph(qd):
    """Densities by smoothed particles: neighbours from the lists of 27 cells."""
    v1, i1, f1 = arrays(qd, "f3v1 i1 f1")

    @qd.kernel
    def sph(x: v1, start: i1, rho: f1, side: qd.i32):
        h2 = 1.0 / (side * side)
        for i in range(x.shape[0]):
            cx = int(x[i][0] * side)
            cy = int(x[i][1] * side)
            cz = int(x[i][2] * side)
            total = 0.0
            for a in range(qd.max(cx - 1, 0), qd.min(cx + 2, side)):
                for b in range(qd.max(cy - 1, 0), qd.min(cy + 2, side)):
                    for c in range(qd.max(cz - 1, 0), qd.min(cz + 2, side)):
                        cell = (a * side + b) * side + c
                        for j in range(start[cell], start[cell + 1]):
                            r2 = (x[j] - x[i]).norm_sqr()
                            if r2 < h2:
                                w = 1.0 - r2 / h2
                                total += w * w * w
            rho[i] = total

    return sph


def rays(rng, n, m):
    o = np.concatenate([rng.random((n, 2)), np.zeros((n, 1))], 1)
    d = np.concatenate([rng.random((n, 2)) * 0.2 - 0.1, np.ones((n, 1))], 1)
    a = rng.random((m, 3)) + [0, 0, 1]
    return (n, m), [Vec(f32(o)), Vec(f32(d)), Vec(f32(a)), Vec(f32(rng.random((m, 3)) - 0.5)),
                    Vec(f32(rng.random((m, 3)) - 0.5)), zeros(n)]


@row(lambda rng: rays(rng, 4096, 64), strays=1e-3)
def raytri(qd):
    """The nearest triangle of each ray, by Moeller and Trumbore."""
    v1, f1 = arrays(qd, "f3v1 f1")

    @qd.kernel
    def raytri(o: v1, d: v1, a: v1, e1: v1, e2: v1, out: f1):
        for i in range(o.shape[0]):
            near = 1e30
            for k in range(a.shape[0]):
                p = d[i].cross(e2[k])
                det = e1[k].dot(p)
                if qd.abs(det) > 1e-8:
                    inv = 1.0 / det
                    s = o[i] - a[k]
                    u = s.dot(p) * inv
                    if u >= 0.0 and u <= 1.0:
                        q = s.cross(e1[k])
                        v = d[i].dot(q) * inv
                        if v >= 0.0 and u + v <= 1.0:
                            t = e2[k].dot(q) * inv
                            if t > 0.0 and t < near:
                                near = t
            out[i] = near

    return raytri


@row(lambda rng: ((1 << 18,), [Vec(f32(rng.random((1 << 18, 3)))), Vec(f32(rng.random((1 << 18, 3)) - 0.5))]), fresh=(0, 1))
def aos(qd):
    """Particles as vectors: gravity, drag, and a box that they bounce off."""
    v1 = arrays(qd, "f3v1")

    @qd.kernel
    def aos(x: v1, v: v1):
        for i in range(x.shape[0]):
            g = qd.Vector([0.0, -9.8, 0.0])
            v[i] += 0.001 * (g - 0.1 * v[i])
            x[i] += 0.001 * v[i]
            for k in qd.static(range(3)):
                if x[i][k] < 0.0:
                    x[i][k] = 0.0
                    v[i][k] = -0.8 * v[i][k]
                if x[i][k] > 1.0:
                    x[i][k] = 1.0
                    v[i][k] = -0.8 * v[i][k]

    return aos


@row(lambda rng: ((1 << 18,), [f32(rng.random(1 << 18)) for _ in range(3)] + [f32(rng.random(1 << 18) - 0.5) for _ in range(3)]),
     fresh=(0, 1, 2, 3, 4, 5))
def soa(qd):
    """The same with an array for each component."""
    f1 = arrays(qd, "f1")

    @qd.func
    def bounce(x, v):
        if x < 0.0:
            x = 0.0
            v = -0.8 * v
        if x > 1.0:
            x = 1.0
            v = -0.8 * v
        return x, v

    @qd.kernel
    def soa(x: f1, y: f1, z: f1, u: f1, v: f1, w: f1):
        for i in range(x.shape[0]):
            u[i] -= 0.001 * 0.1 * u[i]
            v[i] += 0.001 * (-9.8 - 0.1 * v[i])
            w[i] -= 0.001 * 0.1 * w[i]
            x[i], u[i] = bounce(x[i] + 0.001 * u[i], u[i])
            y[i], v[i] = bounce(y[i] + 0.001 * v[i], v[i])
            z[i], w[i] = bounce(z[i] + 0.001 * w[i], w[i])

    return soa


def turning(rng, n):
    q = rng.random((n, 4)) - 0.5
    q /= np.linalg.norm(q, axis=1)[:, None]
    return (n,), [Vec(f32(q)), Vec(f32(rng.random((n, 3)))), Vec(f32(rng.random((n, 3)))), Vec(zeros(n, 3))]


@row(lambda rng: turning(rng, 1 << 17), fresh=(0,), close=1e-3)
def quat(qd):
    """Quaternions: turned by a speed of rotation, made unit, and a vector turned by them."""
    v4, v3 = arrays(qd, "f4v1 f3v1")

    @qd.func
    def times(a, b):
        return qd.Vector([a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
                          a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
                          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
                          a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]])

    @qd.func
    def turned(q, v):
        p = times(times(q, qd.Vector([0.0, v[0], v[1], v[2]])), qd.Vector([q[0], -q[1], -q[2], -q[3]]))
        return qd.Vector([p[1], p[2], p[3]])

    @qd.kernel
    def quat(q: v4, w: v3, v: v3, out: v3):
        for i in range(q.shape[0]):
            r = q[i] + 0.005 * times(qd.Vector([0.0, w[i][0], w[i][1], w[i][2]]), q[i])
            r = r / qd.sqrt(r.dot(r))
            q[i] = r
            out[i] = turned(r, v[i])

    return quat
