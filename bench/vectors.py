"""Element-wise work on arrays of vectors and matrices against hand-written C.

    vectors.py [--json FILE] [--repeat N] [--size N]

C is compiled with -O3 -march=native -ffast-math -fopenmp. Both run on one thread over arrays that
fit the second-level cache, so that the code is compared and not the memory; times are processor
time, the best of N turns of 20 calls. The ratio is C's time by ours: 1.0 = as fast.
"""

import ctypes
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import _peers
import ingot as qd

C_SOURCE = """
#include <math.h>
#include <stddef.h>
typedef ptrdiff_t n_t;
typedef float vec3[3], vec4[4], mat3[3][3];
#define EACH _Pragma("omp parallel for schedule(static)") for (n_t i = 0; i < n; i++)
void scale_add3(n_t n, vec3 *restrict x, vec3 *restrict y, vec3 *restrict z) {
    EACH for (int k = 0; k < 3; k++) z[i][k] = 0.5f * x[i][k] + y[i][k];
}
void scale_add4(n_t n, vec4 *restrict x, vec4 *restrict y, vec4 *restrict z) {
    EACH for (int k = 0; k < 4; k++) z[i][k] = 0.5f * x[i][k] + y[i][k];
}
void cross3(n_t n, vec3 *restrict x, vec3 *restrict y, vec3 *restrict z) {
    EACH {
        z[i][0] = x[i][1] * y[i][2] - x[i][2] * y[i][1];
        z[i][1] = x[i][2] * y[i][0] - x[i][0] * y[i][2];
        z[i][2] = x[i][0] * y[i][1] - x[i][1] * y[i][0];
    }
}
void unit3(n_t n, vec3 *restrict x, vec3 *restrict y, vec3 *restrict z) {
    EACH {
        float s = 1.0f / sqrtf(x[i][0] * x[i][0] + x[i][1] * x[i][1] + x[i][2] * x[i][2]);
        for (int k = 0; k < 3; k++) z[i][k] = x[i][k] * s + y[i][k];
    }
}
void unit4(n_t n, vec4 *restrict x, vec4 *restrict y, vec4 *restrict z) {
    EACH {
        float d = 0;
        for (int k = 0; k < 4; k++) d += x[i][k] * x[i][k];
        float s = 1.0f / sqrtf(d);
        for (int k = 0; k < 4; k++) z[i][k] = x[i][k] * s + y[i][k];
    }
}
void bounce3(n_t n, vec3 *restrict x, vec3 *restrict y, vec3 *restrict z) {
    EACH {
        float v[3] = {y[i][0], y[i][1] - 0.0098f, y[i][2]};
        for (int k = 0; k < 3; k++) {
            float p = x[i][k] + v[k] * 0.001f;
            if (p < 0.0f) {
                p = 0.0f;
                v[k] = -0.5f * v[k];
            }
            z[i][k] = p;
            y[i][k] = v[k];
        }
    }
}
void scale_add33(n_t n, mat3 *restrict x, mat3 *restrict y, mat3 *restrict z) {
    EACH for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++) z[i][j][k] = 0.5f * x[i][j][k] + y[i][j][k];
}
void product33(n_t n, mat3 *restrict x, mat3 *restrict y, mat3 *restrict z) {
    EACH for (int j = 0; j < 3; j++)
        for (int k = 0; k < 3; k++)
            z[i][j][k] = x[i][j][0] * y[i][0][k] + x[i][j][1] * y[i][1][k]
                + x[i][j][2] * y[i][2][k];
}
void apply33(n_t n, mat3 *restrict x, vec3 *restrict y, vec3 *restrict z) {
    EACH for (int j = 0; j < 3; j++)
        z[i][j] = x[i][j][0] * y[i][0] + x[i][j][1] * y[i][1] + x[i][j][2] * y[i][2];
}
void inverse33(n_t n, mat3 *restrict x, mat3 *restrict y, mat3 *restrict z) {
    EACH {
        float (*m)[3] = x[i], (*r)[3] = z[i];
        float c0 = m[1][1] * m[2][2] - m[1][2] * m[2][1];
        float c1 = m[1][2] * m[2][0] - m[1][0] * m[2][2];
        float c2 = m[1][0] * m[2][1] - m[1][1] * m[2][0];
        float s = 1.0f / (m[0][0] * c0 + m[0][1] * c1 + m[0][2] * c2);
        r[0][0] = c0 * s; r[1][0] = c1 * s; r[2][0] = c2 * s;
        r[0][1] = (m[0][2] * m[2][1] - m[0][1] * m[2][2]) * s;
        r[1][1] = (m[0][0] * m[2][2] - m[0][2] * m[2][0]) * s;
        r[2][1] = (m[0][1] * m[2][0] - m[0][0] * m[2][1]) * s;
        r[0][2] = (m[0][1] * m[1][2] - m[0][2] * m[1][1]) * s;
        r[1][2] = (m[0][2] * m[1][0] - m[0][0] * m[1][2]) * s;
        r[2][2] = (m[0][0] * m[1][1] - m[0][1] * m[1][0]) * s;
    }
}
"""

Array = qd.types.ndarray()


@qd.kernel
def scale_add(x: Array, y: Array, z: Array):
    for i in x:
        z[i] = 0.5 * x[i] + y[i]


@qd.kernel
def cross(x: Array, y: Array, z: Array):
    for i in x:
        z[i] = x[i].cross(y[i])


@qd.kernel
def unit(x: Array, y: Array, z: Array):
    for i in x:
        z[i] = x[i].normalized() + y[i]


@qd.kernel
def bounce(x: Array, y: Array, z: Array):
    for i in x:
        v = y[i] - qd.Vector([0.0, 0.0098, 0.0])
        p = x[i] + v * 0.001
        for k in qd.static(range(3)):
            if p[k] < 0.0:
                p[k] = 0.0
                v[k] = -0.5 * v[k]
        z[i] = p
        y[i] = v


@qd.kernel
def product(x: Array, y: Array, z: Array):
    for i in x:
        z[i] = x[i] @ y[i]


@qd.kernel
def inverse(x: Array, y: Array, z: Array):
    for i in x:
        z[i] = x[i].inverse()


CASES = [  # ours, C's, the shapes of elements
    (scale_add, "scale_add3", (3,), (3,), (3,)),
    (scale_add, "scale_add4", (4,), (4,), (4,)),
    (cross, "cross3", (3,), (3,), (3,)),
    (unit, "unit3", (3,), (3,), (3,)),
    (unit, "unit4", (4,), (4,), (4,)),
    (bounce, "bounce3", (3,), (3,), (3,)),
    (scale_add, "scale_add33", (3, 3), (3, 3), (3, 3)),
    (product, "product33", (3, 3), (3, 3), (3, 3)),
    (product, "apply33", (3, 3), (3,), (3,)),
    (inverse, "inverse33", (3, 3), (3, 3), (3, 3)),
]


def processor_time(calls, repeat, rounds=20):
    """The best processor time of one call of each, taking turns."""
    shortest = dict.fromkeys(calls, float("inf"))
    for _ in range(repeat):
        for name, call in calls.items():
            before = time.process_time()
            for _ in range(rounds):
                call()
            shortest[name] = min(shortest[name], (time.process_time() - before) / rounds)
    return shortest


def arrays(shapes, size):
    rng = np.random.default_rng(3)
    host = [rng.random((size, *s), np.float32) + 0.25 for s in shapes]
    own = []
    for s, a in zip(shapes, host):
        kind = qd.types.vector(*s, qd.f32) if len(s) == 1 else qd.types.matrix(*s, qd.f32)
        own.append(qd.ndarray(kind, size))
        own[-1].from_numpy(a)
    return host, own


def main():
    args = _peers.arguments(__doc__, size={"type": int, "default": 4096})
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    library = _peers.compile_c(C_SOURCE)
    rows = []
    for kernel, name, *shapes in CASES:
        host, own = arrays(shapes, args.size)
        calls = {"ingot": lambda k=kernel, a=own: k(*a)}
        kernel(*own)
        if library:
            function = getattr(library, name)
            pointers = [_peers.pointer(a) for a in host]
            calls["c"] = lambda f=function, p=pointers: f(ctypes.c_ssize_t(args.size), *p)
            calls["c"]()
            assert np.allclose(own[2].to_numpy(), host[2], rtol=2e-3, atol=1e-3), name
        times = processor_time(calls, args.repeat)
        row = {"what": name, "ingot_ns": times["ingot"] / args.size * 1e9}
        if library:
            row |= {"c_ns": times["c"] / args.size * 1e9, "vs_c": times["c"] / times["ingot"]}
        rows.append(row)
    _peers.show(f"vectors: {args.size} elements, one thread, processor time",
                [("what", "kernel", ""), ("ingot_ns", "ns/element", ".3f"), ("c_ns", "C", ".3f"),
                 ("vs_c", "C / ours", ".2f")], rows)
    _peers.write(args.json, "vectors", rows)


if __name__ == "__main__":
    main()
