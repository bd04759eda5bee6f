"""Throughput of kernels against hand-written C with OpenMP and against NumPy, in one run.

    compute.py [--json FILE] [--repeat N] [--size N]

Each row is a kernel; a ratio above 1 means that Ingot is faster than that peer.
"""

import ctypes

import numpy as np

import _peers
import ingot as qd

C_SOURCE = """
#include <stddef.h>
void saxpy(float a, const float *restrict x, float *restrict y, ptrdiff_t n) {
    #pragma omp parallel for simd schedule(static)
    for (ptrdiff_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
"""


@qd.kernel
def saxpy(a: qd.f32, x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


def prepare_saxpy(c, size):
    """Calls by peer, bytes moved by one of them, and a check that all did the same."""
    start = np.random.default_rng(1).random(size, dtype=np.float32)
    x, y = qd.ndarray(qd.f32, (size,)), qd.ndarray(qd.f32, (size,))
    x.from_numpy(start)
    c_x, c_y = start.copy(), np.zeros(size, np.float32)
    n_x, n_y, spare = start.copy(), np.zeros(size, np.float32), np.empty(size, np.float32)
    a = np.float32(0.5)

    def by_numpy():
        np.multiply(n_x, a, out=spare)
        np.add(spare, n_y, out=n_y)

    calls = {"ingot": lambda: saxpy(0.5, x, y), "numpy": by_numpy}
    if c is not None:
        f = c.saxpy
        f.argtypes = [ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t]
        f.restype = None
        p_x, p_y = _peers.pointer(c_x), _peers.pointer(c_y)
        calls["c"] = lambda keep=(c_x, c_y): f(0.5, p_x, p_y, size)  # pointers own nothing

    def check():
        y.fill(0.0)
        c_y[:] = n_y[:] = 0.0
        for call in calls.values():
            call()
        for peer in [c_y, n_y] if c is not None else [n_y]:
            assert np.allclose(y.to_numpy(), peer, rtol=1e-6)

    return calls, 12 * size, check


KERNELS = {"saxpy": prepare_saxpy}


def main():
    args = _peers.arguments(__doc__, size={"type": int, "default": 16 << 20})
    qd.init()
    c = _peers.compile_c(C_SOURCE)
    rows = []
    for name, prepare in KERNELS.items():
        calls, moved, check = prepare(c, args.size)
        check()
        t = _peers.interleaved(calls, args.repeat)
        row = {"kernel": name, "size": args.size, "GB_s": moved / t["ingot"] / 1e9}
        row |= {f"{peer}_ms": seconds * 1e3 for peer, seconds in t.items()}
        row |= {f"vs_{p}": t[p] / t["ingot"] for p in t if p != "ingot"}
        rows.append(row)
    columns = [
        ("kernel", "kernel", ""), ("size", "size", ","), ("ingot_ms", "ms", ".2f"),
        ("GB_s", "GB/s", ".1f"), ("vs_c", "C + OpenMP", ".2f"), ("vs_numpy", "NumPy", ".2f"),
    ]
    _peers.show("compute: time of the peer / time of Ingot", columns, rows)
    _peers.write(args.json, "compute", rows)


if __name__ == "__main__":
    main()
