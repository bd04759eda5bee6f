"""Gradients of kernels that draw random numbers (src/ad/draws.c): the numbers of the forward launch are drawn
again, in loops, funcs, branches and several tasks. Compared with central differences of launches that have the
same key."""

import numpy as np
import pytest

import ingot as qd

F = qd.f64
A = qd.types.ndarray()


def nd(n=5):
    a = qd.ndarray(F, n, needs_grad=True)
    a.from_numpy(np.random.default_rng(0).uniform(0.3, 1.5, n))
    return a


@qd.func
def noise(a, n):
    s = 0.0
    for j in range(n):
        s += a * qd.random(F)
        if qd.random(qd.f32) < 0.3:
            break
    return s


@qd.func
def deep(a):
    return noise(a, 2) * qd.random(F) + a


@qd.func
def none(a):
    return a * a


@qd.func
def kick(v: qd.template(), a):
    if qd.random(F) < 0.5:
        v[0] += a * qd.random(F) * v[1]
        return
    v[1] *= qd.random(F)


@qd.kernel
def in_loops(x: A, y: A):
    for i in range(x.shape[0]):
        s = x[i]
        for j in range(4):
            s = s * qd.random(F) + x[i]
            if qd.random(F) < 0.3:
                s *= qd.random(F)
        y[i] = s


@qd.kernel
def in_funcs(x: A, y: A):
    for i in range(x.shape[0]):
        v = qd.Vector([x[i], 1.0], dt=F)
        for j in range(3):
            kick(v, x[i])
        y[i] = noise(x[i], 3) * deep(x[i]) + none(x[i]) + v[0] * v[1]


@qd.kernel
def in_tasks(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * qd.random(F)
    for i in range(x.shape[0]):
        y[i] += none(x[i])
    for i in range(x.shape[0]):
        y[i] += x[i] * qd.random(F) * qd.random(qd.f32)


@qd.kernel
def in_whiles(x: A, y: A):
    for i in range(x.shape[0]):
        s = x[i]
        while qd.random(F) < 0.7:
            s = s * qd.random(F) + x[i]
        y[i] = s


@qd.kernel
def between_tasks(x: A, y: A):
    a = x[0] * qd.random(F)
    b = qd.random(F)
    for i in range(x.shape[0]):
        y[i] = a * x[i] * qd.random(F)
    c = x[1] * qd.random(F) * b
    qd.loop_config(serialize=True)
    for i in range(x.shape[0]):
        y[i] += c * qd.random(F) * x[i]
    d = qd.random(F)
    for i, j in qd.ndrange(2, 2):
        y[i * 2 + j] += d * x[i] * x[j] * qd.random(F)


@qd.kernel
def of_all_types(x: A, y: A):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(qd.random(qd.u32) % 5):
            k = qd.random(qd.i32) % x.shape[0]
            s += x[k] * x[k] * qd.random(qd.f16)
            m = qd.random(qd.i64)
            if m > 0:
                s *= x[i]
        y[i] = s


@qd.kernel
def in_branches(x: A, y: A):
    if x.shape[0] > 3:
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i] * qd.random(F)
    else:
        y[0] = x[0] * qd.random(F)
    z = qd.random(F) * x[2]
    for i in range(x.shape[0]):
        y[i] += z * qd.random(F)


KERNELS = [in_loops, in_funcs, in_tasks, in_whiles, between_tasks, of_all_types, in_branches]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("arch", [qd.cpu, qd.interp])
def test_the_numbers_of_the_launch(kernel, arch):
    qd.init(arch=arch, default_fp=F, random_seed=7)
    for length in (5, 3):
        if length == 5 or kernel is in_branches:
            qd.ad.check_grad(kernel, nd(length), nd(length))
    qd.init()


def test_by_hand_and_by_a_tape():
    """Three launches draw three rows; their gradients go back through them one by one."""
    @qd.kernel
    def scale(x: A, t: qd.i32, drawn: A):
        for i in range(4):
            s = x[t, i]
            for j in range(2):
                r = qd.random(F)
                drawn[t, i, j] = r
                s = s * r
            x[t + 1, i] = s

    @qd.kernel
    def total(x: A, loss: A):
        for i in range(4):
            loss[0] += x[3, i]

    qd.init(default_fp=F)
    x, loss = qd.ndarray(F, (4, 4), needs_grad=True), qd.ndarray(F, 1, needs_grad=True)
    drawn = qd.ndarray(F, (3, 4, 2))
    x.fill(1.0)
    with qd.ad.Tape(loss=loss):
        for t in range(3):
            scale(x, t, drawn)
        total(x, loss)
    assert np.allclose(x.grad.to_numpy()[0], drawn.to_numpy().prod(axis=(0, 2)))
    x.grad.fill(0.0)
    scale(x, 0, drawn)
    x.grad.from_numpy(np.array([[0.0] * 4, [1.0] * 4, [0.0] * 4, [0.0] * 4]))
    scale.grad(x, 0, drawn)
    assert np.allclose(x.grad.to_numpy()[0], drawn.to_numpy()[0].prod(axis=1))
    qd.init()


def test_without_a_launch():
    qd.init(default_fp=F)

    @qd.kernel
    def never(x: A, y: A):
        for i in range(4):
            for j in range(2):
                y[i] += x[i] * qd.random(F)

    with pytest.raises(qd.IngotRuntimeError, match="random numbers of the launch"):
        never.grad(nd(4), nd(4))
    qd.init()


@pytest.mark.parametrize("arch", [qd.cpu, qd.interp])
def test_forward_mode_of_a_loop_that_becomes_serial(arch):
    """It updates by max, so that its iterations go one by one; they draw what they drew."""
    qd.init(arch=arch, default_fp=F, random_seed=7)
    x, drawn, most = (qd.field(F, shape=n, needs_dual=True) for n in (4, 4, 1))

    @qd.kernel
    def peak():
        for i in range(4):
            drawn[i] = qd.random(F)
            qd.atomic_max(most[0], x[i] * drawn[i])

    x.fill(1.0)
    x.dual.fill(1.0)
    peak.dual()
    r = drawn.to_numpy()
    assert len(set(r)) == 4 and most.dual[0] == most[0] == r.max()
    qd.init()
