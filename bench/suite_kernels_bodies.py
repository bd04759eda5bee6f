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
