"""Kernels of suite.py: integers, sorting and counting."""

import numpy as np

from suite_rows import arrays, i32, row, zeros


@row(lambda rng: ((1 << 21,), [rng.integers(0, 1000, 1 << 21, dtype=np.int32), zeros(1000, dtype=np.int64)]), fresh=(1,))
def hist64(qd):
    """Counts in 64 bits."""
    i1, l1 = arrays(qd, "i1 l1")

    @qd.kernel
    def hist64(x: i1, bins: l1):
        for i in range(x.shape[0]):
            bins[x[i]] += 1

    return hist64


@row(lambda rng: ((1 << 20, 1024), [rng.integers(0, 9, 1 << 20, dtype=np.int32), zeros(1 << 20, dtype=np.int32),
                                    zeros(1024, dtype=np.int32)]))
def scan(qd):
    """Sums up to each place: of blocks first, then across blocks, then within."""
    i1 = arrays(qd, "i1")

    @qd.kernel
    def scan(x: i1, y: i1, sums: i1):
        length = x.shape[0] // sums.shape[0]
        for b in range(sums.shape[0]):
            s = 0
            for k in range(length):
                s += x[b * length + k]
            sums[b] = s
        qd.loop_config(serialize=True)
        for b in range(1, sums.shape[0]):
            sums[b] += sums[b - 1]
        for b in range(sums.shape[0]):
            s = 0
            if b > 0:
                s = sums[b - 1]
            for k in range(length):
                s += x[b * length + k]
                y[b * length + k] = s

    return scan


@row(lambda rng: ((1 << 15,), [i32(rng.permutation(1 << 15))]), fresh=(0,))
def bitonic(qd):
    """A sorting network, a launch for each of its steps."""
    i1 = arrays(qd, "i1")

    @qd.kernel
    def step(a: i1, k: qd.i32, j: qd.i32):
        for i in range(a.shape[0]):
            other = i ^ j
            if other > i:
                up = (i & k) == 0
                if (a[i] > a[other]) == up:
                    t = a[i]
                    a[i] = a[other]
                    a[other] = t

    def bitonic(a):
        n, k = a.shape[0], 2
        while k <= n:
            j = k // 2
            while j > 0:
                step(a, k, j)
                j //= 2
            k *= 2

    return bitonic


@row(lambda rng: ((1 << 15,), [zeros(1 << 15, dtype=np.int32)]))
def collatz(qd):
    i1 = arrays(qd, "i1")

    @qd.kernel
    def collatz(out: i1):
        for i in range(out.shape[0]):
            x = qd.cast(i + 1, qd.i64)
            count = 0
            while x != 1:
                if x % 2 == 0:
                    x = x // 2
                else:
                    x = 3 * x + 1
                count += 1
            out[i] = count

    return collatz


@row(lambda rng: ((1 << 20,), [rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32), zeros(1 << 20, dtype=np.uint32)]))
def murmur(qd):
    """The finaliser of murmur3, three times."""
    u1 = arrays(qd, "u1")

    @qd.func
    def mixed(h):
        h = h ^ (h >> 16)
        h = h * qd.u32(0x85EBCA6B)
        h = h ^ (h >> 13)
        h = h * qd.u32(0xC2B2AE35)
        return h ^ (h >> 16)

    @qd.kernel
    def murmur(x: u1, y: u1):
        for i in range(x.shape[0]):
            y[i] = mixed(mixed(mixed(x[i])))

    return murmur


@row(lambda rng: ((1 << 20,), [rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32), zeros(1 << 20, dtype=np.uint32)]))
def bits(qd):
    """Morton codes, bits reversed, bits counted."""
    u1 = arrays(qd, "u1")

    @qd.func
    def spread(v):
        v = v & 0x3FF
        v = (v | (v << 16)) & 0x030000FF
        v = (v | (v << 8)) & 0x0300F00F
        v = (v | (v << 4)) & 0x030C30C3
        return (v | (v << 2)) & 0x09249249

    @qd.func
    def reverse(v):
        v = ((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1)
        v = ((v >> 2) & 0x33333333) | ((v & 0x33333333) << 2)
        v = ((v >> 4) & 0x0F0F0F0F) | ((v & 0x0F0F0F0F) << 4)
        v = ((v >> 8) & 0x00FF00FF) | ((v & 0x00FF00FF) << 8)
        return (v >> 16) | (v << 16)

    @qd.func
    def count(v):
        v = v - ((v >> 1) & 0x55555555)
        v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F
        return (v * 0x01010101) >> 24

    @qd.kernel
    def bits(x: u1, y: u1):
        for i in range(x.shape[0]):
            v = x[i]
            code = spread(v) | (spread(v >> 10) << 1) | (spread(v >> 20) << 2)
            y[i] = code ^ reverse(v) ^ count(v)

    return bits


@row(lambda rng: ((1 << 15,), [zeros(1 << 15, dtype=np.int32)]))
def primes(qd):
    i1 = arrays(qd, "i1")

    @qd.kernel
    def primes(out: i1):
        for i in range(2, out.shape[0]):
            found = 1
            j = 2
            while j * j <= i:
                if i % j == 0:
                    found = 0
                    break
                j += 1
            out[i] = found

    return primes
