"""The launches of _launch_cases.py that other systems can express.

    _launch_peers.py numba|warp ROUNDS REPEAT

Names are those of _launch_cases.py. Arrays are the peer's own kind: NumPy for Numba, Warp's
for Warp. Prints one line of JSON.
"""

import gc
import json
import sys
import time

import numpy as np


def arrays(n, size=16):
    return [np.zeros(size, np.float32) for _ in range(n)]


def numba_cases():
    import numba as nb

    @nb.njit
    def nothing():
        pass

    @nb.njit
    def one(a):
        for i in range(a.shape[0]):
            a[i] = a[i] + 1.0

    @nb.njit
    def two(a, b):
        for i in range(16):
            a[i] = b[i]

    @nb.njit
    def three(a, b, c):
        for i in range(16):
            c[i] = a[i] + b[i]

    @nb.njit
    def five(a, b, c, s, n):
        for i in range(n):
            c[i] = s * a[i] + b[i]

    @nb.njit
    def ten(a, b, c, d, e, f, g, h, i, j):
        for k in range(16):
            a[k] = b[k] + c[k] + d[k] + e[k] + f[k] + g[k] + h[k] + i[k] + j[k]

    @nb.njit
    def total(a):
        s = 0.0
        for i in range(16):
            s += a[i]
        return s

    @nb.njit
    def loops(a):
        for i in range(16):
            a[i] = 1.0
        for i in range(16):
            a[i] = a[i] + 1.0
        for i in range(16):
            a[i] = a[i] * 2.0

    @nb.njit(parallel=True)
    def whole(a):
        for i in nb.prange(a.shape[0]):
            a[i] = a[i] + 1.0

    x, y, z, *more = arrays(10)
    middle, large = arrays(1, 4096)[0], arrays(1, 1 << 20)[0]
    return {
        "no arguments": lambda: nothing(),
        "1 ndarray": lambda: one(x),
        "3 ndarrays": lambda: three(x, y, z),
        "10 ndarrays": lambda: ten(x, y, z, *more),
        "3 ndarrays, 2 scalars": lambda: five(x, y, z, 2.0, 16),
        "the same by keyword": lambda: five(a=x, b=y, c=z, s=2.0, n=16),
        "2 NumPy arrays": lambda: two(x, y),
        "scalar return": lambda: total(x),
        "3 small loops": lambda: loops(x),
        "1 ndarray of 4,096": lambda: one(middle),
        "1 ndarray of 1M": lambda: whole(large),
    }


def warp_cases():
    import warp as wp

    wp.config.quiet = True
    wp.init()
    A = wp.array(dtype=wp.float32)

    @wp.kernel
    def nothing():
        pass

    @wp.kernel
    def one(a: A):
        i = wp.tid()
        a[i] = a[i] + 1.0

    @wp.kernel
    def two(a: A, b: A):
        i = wp.tid()
        a[i] = b[i]

    @wp.kernel
    def three(a: A, b: A, c: A):
        i = wp.tid()
        c[i] = a[i] + b[i]

    @wp.kernel
    def five(a: A, b: A, c: A, s: wp.float32, n: wp.int32):
        i = wp.tid()
        if i < n:
            c[i] = s * a[i] + b[i]

    @wp.kernel
    def ten(a: A, b: A, c: A, d: A, e: A, f: A, g: A, h: A, i: A, j: A):
        k = wp.tid()
        a[k] = b[k] + c[k] + d[k] + e[k] + f[k] + g[k] + h[k] + i[k] + j[k]

    @wp.struct
    class Three:
        m0: A
        m1: A
        m2: A

    @wp.kernel
    def of_struct(s: Three):
        i = wp.tid()
        s.m0[i] = s.m1[i] + s.m2[i]

    made = [wp.zeros(16, dtype=wp.float32, device="cpu") for _ in range(10)]
    x, y, z, *more = made
    state = Three()
    state.m0, state.m1, state.m2 = x, y, z
    middle = wp.zeros(4096, dtype=wp.float32, device="cpu")
    large = wp.zeros(1 << 20, dtype=wp.float32, device="cpu")

    def launch(kernel, *inputs, dim=16):
        return lambda: wp.launch(kernel, dim=dim, inputs=inputs, device="cpu")

    nx, ny = arrays(2)
    return {
        "no arguments": launch(nothing),
        "1 ndarray": launch(one, x),
        "3 ndarrays": launch(three, x, y, z),
        "10 ndarrays": launch(ten, x, y, z, *more),
        "3 ndarrays, 2 scalars": launch(five, x, y, z, 2.0, 16),
        "2 NumPy arrays": launch(two, nx, ny),
        "dataclass of 3": launch(of_struct, state),
        "1 ndarray of 4,096": launch(one, middle, dim=4096),
        "1 ndarray of 1M": launch(one, large, dim=1 << 20),
    }


def best(call, rounds, repeat):
    before = time.perf_counter()
    call()
    once = time.perf_counter() - before
    span = range(max(1, min(rounds, int(0.02 / once))))
    shortest = float("inf")
    for _ in range(repeat):
        before = time.perf_counter()
        for _ in span:
            call()
        shortest = min(shortest, (time.perf_counter() - before) / len(span))
    return shortest * 1e9


def main(module, rounds, repeat):
    gc.disable()
    cases = {"numba": numba_cases, "warp": warp_cases}[module]()
    empty = best(lambda: None, rounds, repeat)
    out = {}
    for name, call in cases.items():
        call()
        out[name] = best(call, rounds, repeat) - empty
    print("RESULT " + json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
