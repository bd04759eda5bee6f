"""One peer of compute.py, in a process and an interpreter of its own.

    compute_peer.py ingot|quadrants|taichi|numba|numpy|c THREADS

Reads lines `prepare KERNEL SIZE` and `run SECONDS`, answers each with one line of JSON: a
digest of the result after one call, or the shortest time of a call within a turn. What a peer
does not have it answers with null."""

import ctypes
import importlib
import json
import os
import sys
import time

import numpy as np

import compute_kernels

C_SOURCE = """
#include <math.h>
#include <stddef.h>
typedef ptrdiff_t n_t;
void saxpy(n_t n, const float *restrict x, float *restrict y) {
    #pragma omp parallel for simd schedule(static)
    for (n_t i = 0; i < n; i++) y[i] = 0.5f * x[i] + y[i];
}
void stencil(n_t n, const float *restrict a, float *restrict b) {
    #pragma omp parallel for schedule(static)
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            b[i * n + j] = 0.5f * a[i * n + j] + 0.125f * (a[(i - 1) * n + j]
                + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]);
}
void stencil3d(n_t n, const float *restrict a, float *restrict b) {
    n_t m = n * n;
    #pragma omp parallel for schedule(static)
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            for (n_t k = 1; k < n - 1; k++) {
                n_t q = i * m + j * n + k;
                b[q] = 0.4f * a[q] + 0.1f * (a[q - m] + a[q + m] + a[q - n] + a[q + n]
                    + a[q - 1] + a[q + 1]);
            }
}
void nbody(n_t n, const float *restrict p, float *restrict f) {
    #pragma omp parallel for schedule(static)
    for (n_t i = 0; i < n; i++) {
        float x = p[i], y = p[n + i], z = p[2 * n + i], fx = 0, fy = 0, fz = 0;
        for (n_t j = 0; j < n; j++) {
            float dx = p[j] - x, dy = p[n + j] - y, dz = p[2 * n + j] - z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f, w = 1.0f / (d * sqrtf(d));
            fx += dx * w; fy += dy * w; fz += dz * w;
        }
        f[i] = fx; f[n + i] = fy; f[2 * n + i] = fz;
    }
}
void sum_sin(n_t n, const float *restrict x, float *restrict s) {
    float t = 0;
    #pragma omp parallel for simd schedule(static) reduction(+ : t)
    for (n_t i = 0; i < n; i++) t += sinf(x[i]);
    s[0] += t;
}
void exp_cos(n_t n, const float *restrict x, float *restrict y) {
    #pragma omp parallel for simd schedule(static)
    for (n_t i = 0; i < n; i++) y[i] = expf(x[i]) * cosf(x[i]);
}
void matmul(n_t n, const float *restrict a, const float *restrict b, float *restrict c) {
    #pragma omp parallel for schedule(static)
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            float t = 0;
            for (n_t k = 0; k < n; k++) t += a[i * n + k] * b[k * n + j];
            c[i * n + j] = t;
        }
}
void histogram(n_t n, const int *restrict x, int *restrict bins) {
    #pragma omp parallel for schedule(static)
    for (n_t i = 0; i < n; i++) {
        #pragma omp atomic
        bins[x[i]]++;
    }
}
void mandelbrot(n_t n, int *restrict out) {
    #pragma omp parallel for schedule(dynamic, 8)
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            float cr = -2.0f + 3.0f * j / n, ci = -1.5f + 3.0f * i / n, zr = 0, zi = 0;
            int k = 0;
            while (k < 200 && zr * zr + zi * zi < 4.0f) {
                float t = zr * zr - zi * zi + cr;
                zi = 2.0f * zr * zi + ci;
                zr = t;
                k++;
            }
            out[i * n + j] = k;
        }
}
void prefix(n_t n, int *restrict a, int *restrict b) {
    for (int d = 0; d < 20; d += 2) {
        n_t s = (n_t)1 << d, s2 = s * 2;
        #pragma omp parallel for simd schedule(static)
        for (n_t i = 0; i < s; i++) b[i] = a[i];
        #pragma omp parallel for simd schedule(static)
        for (n_t i = s; i < n; i++) b[i] = a[i] + a[i - s];
        #pragma omp parallel for simd schedule(static)
        for (n_t i = 0; i < s2; i++) a[i] = b[i];
        #pragma omp parallel for simd schedule(static)
        for (n_t i = s2; i < n; i++) a[i] = b[i] + b[i - s2];
    }
}
"""


# ---- peers: each gives a function that makes (call, arrays to look at) ------------------------


def by_c(threads):
    import _peers

    library = _peers.compile_c(C_SOURCE, threads)
    if library is None:
        return None

    def prepare(name, arrays):
        f = getattr(library, name)
        f.restype = None
        args = [ctypes.c_ssize_t(arrays[0].shape[-1]), *map(_peers.pointer, arrays)]
        return lambda: f(*args), arrays

    return prepare


def by_module(module, arch, annotation):
    def start(threads):
        qd = importlib.import_module(module)
        qd.init(cpu_max_num_threads=threads, **arch(qd))
        kernels = compute_kernels.define(qd, annotation(qd))

        def prepare(name, arrays):
            held = []
            for a in arrays:
                held.append(qd.ndarray(qd.f32 if a.dtype == np.float32 else qd.i32, a.shape))
                held[-1].from_numpy(a)
            args = [0.5, *held] if name == "saxpy" else held
            kernel, sync = kernels[name], qd.sync

            def call():
                kernel(*args)
                sync()

            return call, held

        return prepare

    return start


def cpu(qd):
    return {"arch": qd.cpu, "offline_cache": True} | (
        {"log_level": "error"} if qd.__name__ != "ingot" else {})


def by_numba(threads):
    import compute_numba

    def prepare(name, arrays):
        f = getattr(compute_numba, name, None)  # it has no atomics
        if f is None:
            return None
        args = [np.float32(0.5), *arrays] if name == "saxpy" else arrays
        return lambda: f(*args), arrays

    return prepare


def numpy_saxpy(x, y):
    y += np.float32(0.5) * x


def numpy_stencil(a, b):
    b[1:-1, 1:-1] = np.float32(0.5) * a[1:-1, 1:-1] + np.float32(0.125) * (
        a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def numpy_stencil3d(a, b):
    m = slice(1, -1)
    b[m, m, m] = np.float32(0.4) * a[m, m, m] + np.float32(0.1) * (
        a[:-2, m, m] + a[2:, m, m] + a[m, :-2, m] + a[m, 2:, m] + a[m, m, :-2] + a[m, m, 2:])


def numpy_sum_sin(x, s):
    s[0] += np.sin(x).sum()


def numpy_exp_cos(x, y):
    np.multiply(np.exp(x), np.cos(x), out=y)


def numpy_histogram(x, bins):
    bins += np.bincount(x, minlength=256).astype(np.int32)


def by_numpy(threads):
    def prepare(name, arrays):
        f = globals().get("numpy_" + name)
        return (lambda: f(*arrays), arrays) if f else None

    return prepare


PEERS = {
    "ingot": by_module("ingot", cpu, lambda qd: lambda t, n: qd.types.ndarray(t, n)),
    "quadrants": by_module("quadrants", cpu, lambda qd: lambda t, n: qd.types.ndarray(t, n)),
    "taichi": by_module("taichi", cpu, lambda qd: lambda t, n: qd.types.ndarray(t, n)),
    "numba": by_numba,
    "numpy": by_numpy,
    "c": by_c,
}


# ---- the process --------------------------------------------------------------------------------


def digest(arrays):
    """Sums in f64 of what the call left, enough to see that peers did the same."""
    out = []
    for a in arrays:
        a = a if isinstance(a, np.ndarray) else a.to_numpy()
        out.append(float(np.abs(a.astype(np.float64)).sum()))
    return out


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints at start must not get in between
    prepare = PEERS[sys.argv[1]](int(sys.argv[2]))
    call = None
    for line in sys.stdin:
        word, *args = line.split()
        reply = None
        if word == "prepare":
            arrays = compute_kernels.inputs(np, args[0], int(args[1]))
            made = prepare(args[0], arrays) if prepare else None
            call = None
            if made:
                call, held = made
                call()
                reply = digest(held)
        elif call:
            reply, calls, start = float("inf"), 0, time.perf_counter()
            while calls < 2 or time.perf_counter() - start < float(args[0]):
                before = time.perf_counter()
                call()
                reply, calls = min(reply, time.perf_counter() - before), calls + 1
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
