"""Columns whose serial loops have different lengths, side by side (LANES6 to LANES8 in src/pass/lanes.h): the same as one by one,
forwards to the bit, gradients as the IR as lowered has them."""

import numpy as np
import pytest

import ingot as qd

A, I1 = qd.types.ndarray(qd.f32, 1), qd.types.ndarray(qd.i32, 1)
D, L1 = qd.types.ndarray(qd.f64, 1), qd.types.ndarray(qd.i64, 1)


@qd.kernel
def chain(x: A, c: I1, y: A):
    for i in range(c.shape[0]):
        a = x[i]
        for t in range(c[i]):
            a = 0.9 * a - 0.1 * a * a * a + 0.01 * x[t]
        y[i] = a


@qd.kernel
def from_elsewhere(x: A, c: I1, first: qd.i32, y: A):
    """Begins at an argument that may be negative, in which case no element has that number."""
    for i in range(c.shape[0]):
        a = x[i] + 0.1
        for t in range(first, c[i]):
            a = a * x[t - first] + 0.5 / (1.0 + a * a)
        y[i] = a


@qd.kernel
def two_loops(x: D, c: L1, d: I1, y: D):
    """Two ragged loops and one of equal length: three stacks, one upon the other."""
    for i in range(c.shape[0]):
        a, b = x[i], x[0] * 0.0 + 1.0
        for t in range(c[i]):
            a = qd.sin(a) + 0.3 * b * x[t]
            b = b * 0.9 + a * 0.1
        for t in range(d[i]):
            b = b * a + 0.1 * x[t]
        for t in range(7, 50):
            a = a * 0.5 + b * b * 0.1
        y[i] += a + b


@qd.kernel
def counted(x: A, c: I1, p: A, y: A):
    """Sums into elements that all columns share: p[1] in the loop, p[0] after it where there was one."""
    for i in range(c.shape[0]):
        a, n = x[i], 0
        for t in range(c[i]):
            a = a + 0.1 * p[0] * qd.cos(a * p[1])
            n += t
        y[i] = a + 0.001 * n * p[0]
        if c[i] > 3:
            y[i] *= 1.0


@qd.kernel
def spread(x: A, c: I1, y: A):
    """No chain: y[t] is a sum over all columns."""
    for i in range(c.shape[0]):
        s = x[i]
        for t in range(c[i]):
            s = s * 1.01 + 0.01
            y[t] += s * x[t]


@qd.kernel
def mirrored(x: A, c: I1, y: A):
    """Counts down by itself; its index is used as it is, too."""
    for i in range(c.shape[0]):
        a = x[i]
        for k in range(c[i]):
            t = c[i] - 1 - k
            a = a * 0.8 + x[t] * a * 0.1 + 0.001 * k
        y[i] = a


def arrays(kernel, n, seed):
    rng = np.random.default_rng(seed)
    real = np.float64 if kernel is two_loops else np.float32
    x = rng.random(max(n, 64)).astype(real)
    c = rng.integers(-3, 60, n)
    if seed % 3 == 0:
        c[rng.random(n) < 0.7] = 0
    y = np.zeros(max(n, 64), real)
    if kernel is two_loops:
        return {"x": x, "c": c.astype(np.int64), "d": rng.integers(-2, 40, n).astype(np.int32), "y": y}
    if kernel is from_elsewhere:
        return {"x": x, "c": c.astype(np.int32) - 5, "first": [-4, 0, 3][seed % 3], "y": y}
    if kernel is counted:
        return {"x": x, "c": c.astype(np.int32), "p": np.array([0.7, 1.3], real), "y": y}
    return {"x": x, "c": c.astype(np.int32), "y": y}


def run(kernel, n, seed, **options):
    """What the kernel leaves in y, and the gradients."""
    qd.init(**options)
    given = arrays(kernel, n, seed)
    args = []
    for v in given.values():
        if isinstance(v, np.ndarray):
            real = v.dtype.kind == "f"
            a = qd.ndarray({"f4": qd.f32, "f8": qd.f64, "i4": qd.i32, "i8": qd.i64}[v.dtype.str[1:]], v.shape,
                           **({"needs_grad": True} if real else {}))
            a.from_numpy(v)
            v = a
        args.append(v)
    reals = [a for a in args if getattr(a, "grad", None) is not None]
    kernel(*args)
    left = reals[-1].to_numpy()
    weights = np.random.default_rng(seed).random(len(left)).astype(left.dtype)
    reals[-1].grad.from_numpy(weights)
    kernel.grad(*args)
    return left, [a.grad.to_numpy() for a in reals]


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


KERNELS = [chain, from_elsewhere, two_loops, counted, spread, mirrored]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 33, 200])
def test_as_lowered(kernel, n):
    for seed in range(3):
        y, grads = run(kernel, n, seed, arch=qd.interp, interp_passes=False, fast_math=False)
        for threads in 1, 2:
            y2, grads2 = run(kernel, n, seed, arch=qd.cpu, cpu_max_num_threads=threads, fast_math=False)
            if kernel is spread:
                np.testing.assert_allclose(y2, y, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_allclose(y2, y, rtol=2e-7 if y.dtype == np.float32 else 1e-15)
            for a, b in zip(grads, grads2):
                np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=lambda k: k.__name__)
def test_side_by_side(kernel, capfd):
    """All but the last go down 16 columns at once; the elements that that one reads are others in each column."""
    run(kernel, 20, 1, arch=qd.cpu, print_ir=True, offline_cache=False)
    text = capfd.readouterr().out
    assert "tensor<f32, 16>" in text or "tensor<f64, 16>" in text, text
