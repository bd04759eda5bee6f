"""Sums that a serial loop makes in memory, as physics code writes them, against hand-written C.

    held.py [--json FILE] [--repeat N]

Each kernel adds to an element of one array what it reads from others. C has `restrict` on every
pointer and is compiled with -O3 -march=native -ffast-math; without a proof that the arrays lie
apart each of these takes up to four times as long (src/pass/hold.c). No kernel divides: C has
estimates of 12 bits for that, which fast math does not mean here. One thread, processor time, the
best of N turns. The ratio is C's time by ours: 1.0 = as fast.
"""

import ctypes
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import _peers
import ingot as qd

C_SOURCE = """
typedef float vec3[3];
void pairs(int n, vec3 *restrict x, vec3 *restrict f) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float d[3], s = 0.01f;
            for (int k = 0; k < 3; k++) d[k] = x[j][k] - x[i][k], s += d[k] * d[k];
            for (int k = 0; k < 3; k++) f[i][k] += d[k] * s;
        }
}
void neighbours(int n, int m, vec3 *restrict x, int *restrict near, vec3 *restrict f,
                float *restrict w) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            int at = near[i * m + j];
            float d[3], s = 0;
            for (int k = 0; k < 3; k++) d[k] = x[i][k] - x[at][k], s += d[k] * d[k];
            if (s < 0.25f)
                for (int k = 0; k < 3; k++) f[i][k] += d[k] * (w[i] * w[at] * (0.25f - s));
        }
}
void rows(int n, int m, float *restrict a, float *restrict x, float *restrict y) {
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = 0; j < m; j++) y[i] += a[i * m + j] * x[j];
    }
}
void sparse(int n, int *restrict first, int *restrict at, float *restrict v,
            float *restrict x, float *restrict y) {
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int j = first[i]; j < first[i + 1]; j++) y[i] += v[j] * x[at[j]];
    }
}
"""

Array, V3 = qd.types.ndarray, qd.types.vector(3, qd.f32)
Vectors, F1, F2 = Array(V3, 1), Array(qd.f32, 1), Array(qd.f32, 2)
I1, I2 = Array(qd.i32, 1), Array(qd.i32, 2)


@qd.kernel
def pairs(x: Vectors, f: Vectors):
    for i in x:
        for j in range(x.shape[0]):
            d = x[j] - x[i]
            f[i] += d * (d.dot(d) + 0.01)


@qd.kernel
def neighbours(x: Vectors, near: I2, f: Vectors, w: F1):
    for i in x:
        for j in range(near.shape[1]):
            at = near[i, j]
            d = x[i] - x[at]
            s = d.dot(d)
            if s < 0.25:
                f[i] += d * (w[i] * w[at] * (0.25 - s))


@qd.kernel
def rows(a: F2, x: F1, y: F1):
    for i in y:
        y[i] = 0.0
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]


@qd.kernel
def sparse(first: I1, at: I1, v: F1, x: F1, y: F1):
    for i in y:
        y[i] = 0.0
        for j in range(first[i], first[i + 1]):
            y[i] += v[j] * x[at[j]]


def cases(n=2000, m=64, width=27):
    """name -> kernel, its arguments, sizes that C is told"""
    rng = np.random.default_rng(1)
    x, w, y = rng.random((n, 3), np.float32), rng.random(n, np.float32), np.zeros(n, np.float32)
    near, a = rng.integers(0, n, (n, m), np.int32), rng.random((n, m), np.float32)
    first = np.arange(0, (n + 1) * width, width, dtype=np.int32)
    at, v = rng.integers(0, n, n * width, np.int32), rng.random(n * width, np.float32)
    f = np.zeros((n, 3), np.float32)
    return {
        "all pairs": (pairs, [x, f], [n]),
        "neighbours within reach": (neighbours, [x, near, f, w], [n, m]),
        "matrix times vector": (rows, [a, w[:m], y], [n, m]),
        "sparse matrix times vector": (sparse, [first, at, v, w, y], [n]),
    }


def processor_time(call, repeat):
    times = []
    for _ in range(repeat):
        before = time.process_time()
        call()
        times.append(time.process_time() - before)
    return min(times)


def main():
    args = _peers.arguments(__doc__)
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    library, table = _peers.compile_c(C_SOURCE), []
    for name, (kernel, arrays, sizes) in cases().items():
        kernel(*arrays)
        row = {"what": name, "ms": processor_time(lambda: kernel(*arrays), args.repeat * 10) * 1e3}
        if library:
            peer = getattr(library, kernel.__name__)
            given = [*map(ctypes.c_int, sizes), *map(_peers.pointer, arrays)]
            row["c_ms"] = processor_time(lambda: peer(*given), args.repeat * 10) * 1e3
            row["ratio"] = row["c_ms"] / row["ms"]
        table.append(row)
    columns = [("what", "kernel", ""), ("ms", "ms", ".3f"), ("c_ms", "C ms", ".3f"),
               ("ratio", "ratio", ".2f")]
    _peers.show("sums in memory, one thread", columns, table)
    _peers.write(args.json, "held", table)


if __name__ == "__main__":
    main()
