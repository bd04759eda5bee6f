"""Rows of grad.py in Warp on the processor: one line of JSON for each, with the processor time of a launch, of its
backward launch.

    _grad_warp.py REPEAT
"""

import json
import sys
import time

import numpy as np
import warp as wp

wp.config.quiet = True
F1, F2, I1 = wp.array(dtype=float), wp.array(dtype=float, ndim=2), wp.array(dtype=int)


@wp.kernel
def squares(x: F1, y: F1):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i])


@wp.kernel
def oscillator(x: F1, p: F1, n: int, y: F1):
    i = wp.tid()
    a = x[i]
    v = float(0.0)
    for _t in range(n):
        v += 0.01 * (-p[0] * a - p[1] * v)
        a += 0.01 * v
    wp.atomic_add(y, 0, a * a)


@wp.kernel
def ragged(x: F1, c: I1, y: F1):
    i = wp.tid()
    a = x[i]
    for t in range(c[i]):
        a = 0.9 * a - 0.1 * a * a * a + 0.01 * x[t]
    y[i] = a


@wp.kernel
def nbody(x: F2, f: F2):
    i = wp.tid()
    fx = float(0.0)
    fy = float(0.0)
    for j in range(x.shape[0]):
        dx = x[j, 0] - x[i, 0]
        dy = x[j, 1] - x[i, 1]
        r = 1.0 / (dx * dx + dy * dy + 0.01)
        fx += dx * r * r
        fy += dy * r * r
    f[i, 0] = fx
    f[i, 1] = fy


@wp.kernel
def matmul(a: F2, b: F2, c: F2):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@wp.kernel
def springs(x: F2, v: F2, k: F1, first: I1, second: I1, out: F2):
    s = wp.tid()
    a = first[s]
    b = second[s]
    dx = x[b, 0] - x[a, 0]
    dy = x[b, 1] - x[a, 1]
    d = wp.sqrt(dx * dx + dy * dy + 1e-6)
    f = k[s] * (d - 0.1) / d
    wp.atomic_add(out, a, 0, 0.01 * f * dx + v[a, 0] * 0.001)
    wp.atomic_add(out, a, 1, 0.01 * f * dy + v[a, 1] * 0.001)
    wp.atomic_sub(out, b, 0, 0.01 * f * dx)
    wp.atomic_sub(out, b, 1, 0.01 * f * dy)


def rows():
    rng = np.random.default_rng(0)

    def array(values):
        real = values.dtype == np.float32
        return wp.array(values, dtype=float if real else int, requires_grad=real, device="cpu")

    def real(*shape):
        return array(rng.random(shape).astype(np.float32))

    def zero(*shape):
        return array(np.zeros(shape, np.float32))

    counts = array(rng.integers(0, 64, 1 << 15).astype(np.int32))
    ends = [array(rng.integers(0, 1 << 14, 1 << 16).astype(np.int32)) for _ in range(2)]
    return [
        ("sum of squares", squares, 1 << 20, (real(1 << 20),), (zero(1),)),
        ("oscillator, 200 steps", oscillator, 1 << 13,
         (real(1 << 13), array(np.array([2, 0.1], np.float32)), 200), (zero(1),)),
        ("range(c[i])", ragged, 1 << 15, (real(1 << 15), counts), (zero(1 << 15),)),
        ("n-body forces", nbody, 1 << 10, (real(1 << 10, 2),), (zero(1 << 10, 2),)),
        ("matrix product", matmul, (192, 192), (real(192, 192), real(192, 192)), (zero(192, 192),)),
        ("springs", springs, 1 << 16, (real(1 << 14, 2), real(1 << 14, 2), real(1 << 16), *ends), (zero(1 << 14, 2),)),
    ]


def main():
    for name, kernel, dim, inputs, outputs in rows():
        with wp.Tape() as tape:
            wp.launch(kernel, dim, inputs, outputs, device="cpu")
        seed = {out: wp.full(out.shape, 0.5, dtype=float, device="cpu") for out in outputs}
        tape.backward(grads=seed)
        forward = backward = float("inf")
        for _ in range(int(sys.argv[1])):
            start = time.process_time()
            wp.launch(kernel, dim, inputs, outputs, device="cpu")
            middle = time.process_time()
            tape.backward(grads=seed)
            end = time.process_time()
            forward, backward = min(forward, middle - start), min(backward, end - middle)
        print(json.dumps({"name": name, "forward": forward, "backward": backward}), flush=True)


if __name__ == "__main__":
    main()
