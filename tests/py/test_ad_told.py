"""Subscripts that differ in numbers of the launch: whether an element that the backward pass reads again is overwritten
is compared when the gradient runs. Right is what central differences say."""

import numpy as np
import pytest

import ingot as qd

A = qd.types.ndarray()
F = qd.f64


def nd(*shape):
    a = qd.ndarray(F, shape, needs_grad=True)
    a.from_numpy(np.random.default_rng(len(shape)).uniform(0.3, 1.2, shape))
    return a


@qd.func
def squared(x: qd.template(), a, b, i):
    x[b, i] = x[a, i] ** 2


@qd.kernel
def rows(x: A, a: qd.i32, b: qd.i32):
    for i in range(4):
        x[b, i] = x[a, i] ** 2


@qd.kernel
def rows_by_a_func(x: A, a: qd.i32, b: qd.i32):
    for i in range(4):
        squared(x, a, b, i)


@qd.kernel
def rows_of_other_types(x: A, a: qd.i64, b: qd.u32):
    for i in range(4):
        x[qd.cast(b, qd.i64), i] = x[a, i] ** 2


@qd.kernel
def rows_in_two_tasks(x: A, a: qd.i32, b: qd.i32):
    for i in range(4):
        x[2, i] = x[a, i] ** 2
    for i in range(4):
        x[b, i] = 0.5


@qd.kernel
def rows_unless_equal(x: A, a: qd.i32, b: qd.i32):
    for i in range(4):
        if a == b:
            x[0, i] *= 2.0
        else:
            x[b, i] = x[a, i] ** 2


@pytest.mark.parametrize("kernel", [rows, rows_by_a_func, rows_of_other_types, rows_in_two_tasks])
def test_rows_that_are_one(kernel, target):
    qd.init(default_fp=F)
    qd.ad.check_grad(kernel, nd(4, 4), 0, 1)
    qd.ad.check_grad(kernel, nd(4, 4), 3, 0)
    x = nd(4, 4)
    with pytest.raises(qd.IngotCompilationError, match="with the numbers of this launch"):
        kernel.grad(x, 1, 1)
    assert not x.grad.to_numpy().any()
    qd.ad.check_grad(kernel, x, 0, 1)  # its gradient holds no partial sums


def test_what_is_not_run_overwrites_nothing(target):
    qd.init(default_fp=F)
    for a, b in (1, 2), (1, 1):
        qd.ad.check_grad(rows_unless_equal, nd(4, 4), a, b)

    @qd.kernel
    def halves(x: A):
        n = x.shape[0] // 2
        for i in range(n):
            x[i + n] = x[i] ** 2

    for n in 8, 1:
        qd.ad.check_grad(halves, nd(n))


@qd.kernel
def up(x: A, a: qd.i32, b: qd.i32, n: qd.i32):
    for _ in range(1):
        for t in range(n):
            x[b + t] = x[a + t] ** 2 * 0.5


@qd.kernel
def down(x: A, a: qd.i32, b: qd.i32, n: qd.i32):
    for _ in range(1):
        for t in range(n):
            x[b - 2 * t] = x[a - 2 * t] ** 2 * 0.5


@qd.kernel
def counted(x: A, a: qd.i32, b: qd.i32, n: qd.i32):
    for _ in range(1):
        t = 0
        while t < n:
            x[b + t] = x[a + t] ** 2 * 0.5
            t += 1


RIGHT = [(up, 0, 1), (up, 0, 4), (up, 4, 0), (up, 8, 0), (down, 15, 13), (down, 15, 14), (down, 12, 15), (down, 7, 15), (counted, 0, 1)]
MEET = [(up, 0, 0), (up, 1, 0), (up, 3, 0), (down, 15, 15), (down, 13, 15), (down, 9, 15), (counted, 0, 0), (counted, 1, 0)]


@pytest.mark.parametrize("kernel, a, b", RIGHT)
def test_iterations_that_do_not_come_back(kernel, a, b):
    qd.init(arch=qd.interp, default_fp=F)
    qd.ad.check_grad(kernel, nd(16), a, b, 4)


@pytest.mark.parametrize("kernel, a, b", MEET)
def test_iterations_that_come_back(kernel, a, b):
    qd.init(arch=qd.interp, default_fp=F)
    x = nd(16)
    with pytest.raises(qd.IngotCompilationError, match="with the numbers of this launch"):
        kernel.grad(x, a, b, 4)
    if kernel is not counted:
        kernel.grad(x, a, b, 0)  # no iteration


def test_programs_of_the_reference_promise():
    qd.init(arch=qd.interp, default_fp=F, reference=True)
    rows.grad(nd(4, 4), 1, 1)
