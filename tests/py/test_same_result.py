"""R23: the same input gives the same bits, run after run, at one thread and at two. Kernels that
go through every pass (rows, lanes, reductions, fused sums, paired atomics, demotion) at sizes
that are handed out in many pieces; 100 runs of each under `make stress`."""

import numpy as np
import pytest
from conftest import STRESS

import ingot as qd

RUNS = 100 if STRESS else 4
F1, F2 = qd.types.ndarray(qd.f32, 1), qd.types.ndarray(qd.f32, 2)
D1, I1 = qd.types.ndarray(qd.f64, 1), qd.types.ndarray(qd.i32, 1)
V2, V3 = (qd.types.ndarray(qd.types.vector(n, qd.f32), 1) for n in (2, 3))
M1 = qd.types.ndarray(qd.types.matrix(2, 2, qd.f32), 1)


@qd.kernel
def sums(x: F1, out: F1):
    for i in x:
        out[0] += x[i]
        out[1] -= qd.sin(x[i]) * x[i]


@qd.kernel
def wide_sums(x: F1, out: D1):
    for i in x:
        out[0] += qd.cast(x[i], qd.f64) / (i + 1)


@qd.kernel
def local_sum(x: F2, out: F1):
    s = 0.0
    for i, j in x:
        s += x[i, j] * x[i, 0]
    out[0] = s


@qd.kernel
def products(x: F1, out: F1):
    for i in x:
        qd.atomic_mul(out[0], 1.0 + x[i] * 1e-4)


@qd.kernel
def extremes(x: F1, out: F1):
    for i in x:
        qd.atomic_min(out[0], x[i] * x[i] - x[i])
        qd.atomic_max(out[1], x[i])


@qd.kernel
def uneven(x: F1, out: D1):
    """Nobody knows how long an iteration is: probed, and cut by what was measured."""
    for i in range(x.shape[0] // 16):
        v, n = x[i], 0
        while n < i % 97:
            v = v * 0.99 + x[n]
            n += 1
        out[0] += v


@qd.kernel
def moments(x: F1, out: V3):
    for i in x:
        out[0] += qd.Vector([1.0, x[i], x[i] * x[i]])


@qd.kernel
def matrix_sum(x: F1, out: M1):
    for i in x:
        out[0] += qd.Matrix([[x[i], x[i] * 0.3], [x[i] * x[i], 1.0 - x[i]]])


@qd.kernel
def draws(x: F1, out: F1):
    for i in x:
        out[0] += x[i] * qd.random(qd.f32)


@qd.kernel
def matmul(x: F2, out: F2):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        t = 0.0
        for k in range(x.shape[0]):
            t += x[i, k] * x[k, j]
        out[i, j] = t


@qd.kernel
def stencil(x: F2, out: F2):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        out[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@qd.kernel
def orbits(x: F1, out: F1):
    for i in x:
        a, b = x[i], x[i] * 0.5
        for _ in range(30):
            a, b = a * a - b * b + x[i], 2.0 * a * b - 0.3
        out[i] = a - b


@qd.kernel
def bodies(x: F1, out: V2):
    for i in range(x.shape[0] // 512):
        for j in range(x.shape[0] // 512):
            d = qd.Vector([x[j] - x[i], x[i + j] - x[i]])
            out[i] += d / (d.dot(d) + 0.01) ** 1.5


@qd.kernel
def scatter(x: F1, out: V2):
    """Two floats at a time, from many iterations; whole numbers, whose sums are exact."""
    for i in x:
        v = qd.floor(x[i] * 8.0)
        out[i * 7919 % 1024] += qd.Vector([v, 1.0])
        out[i % 64] -= qd.Vector([1.0, v])


@qd.kernel
def histogram(x: F1, out: I1):
    for i in x:
        out[qd.cast(x[i] * 64.0, qd.i32) + 128] += 1


@qd.kernel
def own_places(x: F1, out: F1):
    """Atomics that are nobody else's."""
    for i in x:
        out[i] += x[i]
        for k in range(3):
            out[i] += x[i] * 0.1


CASES = {  # kernel -> shape and type of what it writes; None: that of its input
    sums: (2, qd.f32), wide_sums: (1, qd.f64), local_sum: (1, qd.f32), products: (1, qd.f32),
    extremes: (2, qd.f32), uneven: (1, qd.f64), moments: (1, qd.types.vector(3, qd.f32)),
    matrix_sum: (1, qd.types.matrix(2, 2, qd.f32)), draws: (1, qd.f32), matmul: (None, qd.f32),
    stencil: (None, qd.f32), orbits: (None, qd.f32), bodies: (512, qd.types.vector(2, qd.f32)),
    scatter: (1024, qd.types.vector(2, qd.f32)), histogram: (256, qd.i32),
    own_places: (None, qd.f32),
}  # fmt: skip
SHAPES = {local_sum: (517, 611), matmul: (211, 211), stencil: (517, 611)}


def result(kernel, values, run):
    """The bytes of one run, whose input begins elsewhere in a line of memory each time."""
    shape, dtype = CASES[kernel]
    room = np.empty(values.size + 16, values.dtype)
    x = room[run % 16 :][: values.size].reshape(values.shape)
    x[...] = values
    out = qd.ndarray(dtype, x.shape if shape is None else shape)
    out.fill(1 if kernel is products else 0)
    kernel(x, out)
    return out.to_numpy().tobytes()


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "exact"])
@pytest.mark.parametrize("kernel", CASES, ids=lambda k: k.__name__)
def test_every_run_at_one_and_two_threads(kernel, fast):
    shape = SHAPES.get(kernel, (262_147,))
    values = (np.random.default_rng(7).random(shape) - 0.5).astype(np.float32)
    seen = {}
    for threads in (1, 2):
        for run in range(RUNS):
            if run == 0 or kernel is draws:  # the same random numbers
                qd.init(arch=qd.cpu, cpu_max_num_threads=threads, fast_math=fast)
            before = qd._core.counters()
            seen.setdefault(result(kernel, values, run), (threads, run))
            after = qd._core.counters()
            inline = after["launch_inline"] - before["launch_inline"]
            assert threads == 1 or inline < after["launches"] - before["launches"]
    assert len(seen) == 1, f"other bits at (threads, run): {list(seen.values())}"
    assert any(next(iter(seen)))
