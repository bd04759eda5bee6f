"""Loops over dense fields against the same loops over ndarrays, hand-written C and Quadrants.

    fields.py [--json FILE] [--repeat N]

C is compiled with -O3 -march=native -ffast-math -fopenmp. All run on one thread; times are
processor time, medians of N rounds in which everybody takes turns (Quadrants in a process of its
own, with its own medians). Ratios are the other's time by that of fields: 1.0 = as fast.
"""

import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

PEER = len(sys.argv) > 1 and sys.argv[1] == "--peer"
if PEER:
    import quadrants as qd
else:
    import ingot as qd

C_SOURCE = """
#include <stddef.h>
typedef ptrdiff_t n_t;
#define EACH(i, from, to) for (n_t i = from; i < to; i++)
void saxpy(n_t n, float *restrict x, float *restrict y) {
    EACH(i, 0, n) y[i] += 2.5f * x[i];
}
void stencil2(n_t n, float *restrict x, float *restrict y) {
    EACH(i, 1, n - 1) EACH(j, 1, n - 1)
        y[i * n + j] = 0.25f * (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1]
            + x[i * n + j + 1]);
}
void stencil3(n_t n, float *restrict x, float *restrict y) {
    n_t m = n * n;
    EACH(i, 1, n - 1) EACH(j, 1, n - 1) EACH(k, 1, n - 1) {
        n_t a = i * m + j * n + k;
        y[a] = (x[a - m] + x[a + m] + x[a - n] + x[a + n] + x[a - 1] + x[a + 1]) / 6.0f;
    }
}
typedef struct { float x[3], v[3]; } mass;
void particles(n_t n, mass *restrict p, float *unused) {
    EACH(i, 0, n) for (int k = 0; k < 3; k++) {
        p[i].v[k] -= k == 1 ? 0.00098f : 0.0f;
        p[i].x[k] += 0.001f * p[i].v[k];
    }
}
void transpose(n_t n, float *restrict x, float *restrict y) { /* tiles of 16 x 16 */
    n_t t = n / 16;
    EACH(a, 0, t) EACH(b, 0, t) EACH(i, 0, 16) EACH(j, 0, 16)
        y[((a * t + b) * 16 + i) * 16 + j] = x[((b * t + a) * 16 + j) * 16 + i];
}
"""


@qd.kernel
def saxpy(x: qd.template(), y: qd.template()):
    for i in x:
        y[i] += 2.5 * x[i]


@qd.kernel
def stencil2(x: qd.template(), y: qd.template()):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@qd.kernel
def stencil3(x: qd.template(), y: qd.template()):
    for i, j, k in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1), (1, x.shape[2] - 1)):
        around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k] + x[i, j, k - 1] + x[i, j, k + 1]
        y[i, j, k] = around / 6.0


@qd.kernel
def particles(x: qd.template(), v: qd.template()):
    for i in x:
        v[i] -= qd.Vector([0.0, 0.00098, 0.0])
        x[i] += 0.001 * v[i]


@qd.kernel
def transpose(x: qd.template(), y: qd.template()):
    for i, j in y:
        y[i, j] = x[j, i]


def plain(dims):
    return lambda n: [qd.field(qd.f32, shape=(n,) * dims) for _ in range(2)]


def shared(n):
    """Position and speed in the same cells."""
    x, v = qd.Vector.field(3, qd.f32), qd.Vector.field(3, qd.f32)
    qd.root.dense(qd.i, n).place(x, v)
    return [x, v]


def tiled(n):
    made = []
    for _ in range(2):
        made.append(qd.field(qd.f32))
        qd.root.dense(qd.ij, n // 16).dense(qd.ij, 16).place(made[-1])
    return made


def vectors(n):
    return [qd.Vector.ndarray(3, qd.f32, n) for _ in range(2)]


def arrays(dims):
    return lambda n: [qd.ndarray(qd.f32, (n,) * dims) for _ in range(2)]


CASES = {  # name: kernel, fields, ndarrays (which have no tiles), extent
    "saxpy": (saxpy, plain(1), arrays(1), 1 << 16),
    "stencil2": (stencil2, plain(2), arrays(2), 256),
    "stencil3": (stencil3, plain(3), arrays(3), 48),
    "particles": (particles, shared, vectors, 1 << 13),
    "transpose": (transpose, tiled, arrays(2), 256),
}


def filled(made):
    rng = np.random.default_rng(5)
    for one in made:
        shape = tuple(one.shape) + ((3,) if "Matrix" in type(one).__name__ or getattr(one, "element_shape", ()) else ())
        one.from_numpy(rng.random(shape, np.float32))
    return made


def medians(calls, repeat, rounds=20):
    """The median processor time of one call of each, taking turns."""
    taken = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeat):
        for name, call in calls.items():
            before = time.process_time()
            for _ in range(rounds):
                call()
            taken[name].append((time.process_time() - before) / rounds)
    return {name: statistics.median(times) for name, times in taken.items()}


def peer(repeat):
    """What runs under Quadrants: its times as JSON."""
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    times = {}
    for name, (kernel, fields, _, n) in CASES.items():
        made = filled(fields(n))
        times |= medians({name: lambda k=kernel, m=made: k(*m)}, repeat)
    print(json.dumps(times))


def quadrants(repeat):
    import _peers

    python = _peers.venv("quadrants")
    if python is None:
        return {}
    run = subprocess.run([python, str(pathlib.Path(__file__).resolve()), "--peer", str(repeat)],
                         capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {}


def c_call(library, name, n):
    """C's function on memory of its own."""
    import _peers

    host = [np.random.default_rng(5).random(max(n**3 if name == "stencil3" else n * n if n < 1000 else 6 * n, n),
                                            np.float32) for _ in range(2)]
    function, pointers = getattr(library, name), [_peers.pointer(a) for a in host]
    return lambda: (function(ctypes.c_ssize_t(n), *pointers), host)[0]


def main():
    import _peers

    args = _peers.arguments(__doc__)
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    library, theirs, rows = _peers.compile_c(C_SOURCE), quadrants(args.repeat), []
    for name, (kernel, fields, ndarrays, n) in CASES.items():
        ours, others = filled(fields(n)), filled(ndarrays(n))
        calls = {"field": lambda k=kernel, m=ours: k(*m), "ndarray": lambda k=kernel, m=others: k(*m)}
        if library:
            calls["c"] = c_call(library, name, n)
        times = medians(calls, args.repeat)
        row = {"what": name, "field_us": times["field"] * 1e6}
        for other in ("ndarray", "c"):
            row[f"vs_{other}"] = times[other] / times["field"] if other in times else None
        row["vs_quadrants"] = theirs[name] / times["field"] if name in theirs else None
        rows.append(row)
    _peers.show("fields: one thread, processor time",
                [("what", "kernel", ""), ("field_us", "us", ".1f"), ("vs_ndarray", "ndarray / field", ".2f"),
                 ("vs_c", "C / field", ".2f"), ("vs_quadrants", "Quadrants / field", ".2f")], rows)
    _peers.write(args.json, "fields", rows)


if __name__ == "__main__":
    if PEER:
        peer(int(sys.argv[2]))
    else:
        main()
