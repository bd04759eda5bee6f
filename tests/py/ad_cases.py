"""Kernels whose gradients are known, for test_ad_cases.py: each construct once.

    CASES: name -> function(dtype) that returns [(what it got, what it must be), ...]

As a program, `python ad_cases.py`, it runs all of them and says as JSON what failed, what was compiled.
"""

import json
import math
import sys

import ingot as qd
import numpy as np

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def array(values, f=qd.f64, grad=True):
    a = np.array(values, np.float64)
    made = qd.ndarray(f, a.shape, needs_grad=grad)
    made.from_numpy(a.astype(made.to_numpy().dtype))
    return made


def backward(kernel, out, *args, seed=1.0):
    """Runs the kernel, seeds what it writes, runs its gradient."""
    kernel(*args)
    out.grad.fill(seed)
    kernel.grad(*args)


@case
def sum_of_squares(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[0] += x[i] * x[i]

    x, y = array([1, 2, 3], f), array([0], f)
    backward(k, y, x, y, seed=2.0)
    return [(x.grad.to_numpy(), [4, 8, 12]), (y.to_numpy(), [14])]


@case
def an_element_read_twice_and_written(f):
    """Both reads of u[0] add to an adjoint that the write just made 0."""

    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            u = qd.Vector([x[i], 2.0 * x[i]])
            u[0] += u[0] * u[0]
            v = x[i]
            v = v * v + v
            y[i] = u[0] + v

    x, y = array([1, 2, 3], f), array([0, 0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [6, 10, 14])]


@case
def loops_in_any_order_and_not(f):
    """The first may go forwards backwards, the others may not: what they carry, elements written twice, an array
    that is read and added to."""

    @qd.kernel
    def k(x: qd.types.ndarray(), w: qd.types.ndarray(), y: qd.types.ndarray(), t: qd.types.ndarray(), n: qd.i32):
        for i in range(1):
            s = 0.0 * x[0]
            for j in range(n):
                s += x[j] * w[j]
            y[0] = s
            a = x[0]
            for j in range(n):
                a = 0.5 * a + w[j]
            y[1] = a
            for j in range(n):
                t[j % 2] = x[j] * 1.0
            for j in range(n):
                y[2 + j + 1] += y[2 + j] * 1.0 + w[j]

    x, w, y, t = array([1, 2, 3, 4], f), array([5, 6, 7, 8], f), array([0] * 8, f), array([0, 0], f)
    k(x, w, y, t, 4)
    for a in x, w:
        a.grad.fill(0)
    y.grad.from_numpy(np.array([1, 1, 0, 0, 0, 0, 1, 0], y.to_numpy().dtype))
    t.grad.fill(1.0)
    k.grad(x, w, y, t, 4)
    return [(x.grad.to_numpy(), [5 + 0.0625, 6, 7 + 1, 8 + 1]),
            (w.grad.to_numpy(), [1 + 0.125 + 1, 2 + 0.25 + 1, 3 + 0.5 + 1, 4 + 1 + 1])]


@case
def gradients_add_up(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = 3.0 * x[i]

    x, y = array([1, 2], f), array([0, 0], f)
    x.grad.fill(10.0)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [13, 13])]


@case
def dynamic_power(f):
    """x to the power n[i], by a loop whose length the data know; no iteration for 0."""
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i] * 0.0 + 1.0
            for j in range(n[i]):
                v = v * x[i]
            y[i] = v

    x, y = array([2, 2, 2, 2], f), array([0] * 4, f)
    backward(k, y, x, np.array([0, 1, 2, 5], np.int32), y)
    return [(x.grad.to_numpy(), [0, 1, 4, 80])]


@case
def carried_and_nonlinear(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for j in range(n):
                v = qd.sin(v)
            y[i] = v

    x, y = array([0.5, 1.0], f), array([0, 0], f)
    backward(k, y, x, 3, y)
    want = []
    for v in (0.5, 1.0):
        d = 1.0
        for _ in range(3):
            d, v = d * math.cos(v), math.sin(v)
        want.append(d)
    return [(x.grad.to_numpy(), want)]


@case
def enclosing_index(f):
    """for j in range(i): for l in range(j): triangles of triangles."""
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for j in range(i):
                for _ in range(j):
                    v = v * x[i]
            y[i] = v

    x, y = array([2.0] * 4, f), array([0] * 4, f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [1, 1, 4, 32])]  # exponents 1 1 2 4


@case
def two_sided_range(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            v = 1.0 + 0.0 * x[0]
            for j in range(a[i], b[i]):
                v *= x[j]
            y[i] = v

    x, y = array([2, 3, 5, 7], f), array([0, 0, 0], f)
    backward(k, y, x, np.array([0, 1, 3], np.int32), np.array([2, 4, 1], np.int32), y)
    return [(x.grad.to_numpy(), [3, 2 + 35, 21, 15])]


@case
def while_with_counter(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v, n = x[i], 0
            while n < 3:
                v = v * v
                n += 1
            y[i] = v

    x, y = array([1.5], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [8 * 1.5 ** 7])]


@case
def while_that_the_data_end(f):
    """Newton's method until it is near enough: the derivative of a square root."""
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            r = x[i] * 0.5 + 0.5
            while abs(r * r - x[i]) > 1e-3:
                r = 0.5 * (r + x[i] / r)
            r = 0.5 * (r + x[i] / r)
            r = 0.5 * (r + x[i] / r)
            y[i] = r

    x, y = array([1.0, 2.0, 9.0], f), array([0] * 3, f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [0.5, 0.5 / math.sqrt(2), 0.5 / 3])]


@case
def while_true_break(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            while True:
                v = v * 2.0
                if v > 10.0:
                    break
            y[i] = v

    x, y = array([1.0, 3.0, 6.0], f), array([0] * 3, f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [16, 4, 2])]


@case
def break_and_continue(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            v = x[0]
            for j in range(6):
                if j == 1:
                    continue
                if j == 4:
                    break
                v = v * x[j]
            y[i] = v

    x, y = array([2, 3, 5, 7, 11, 13], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [2 * 2 * 35, 0, 4 * 7, 4 * 5, 0, 0])]


@case
def nested_breaks(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for j in range(5):
                for l in range(5):
                    if l > j:
                        break
                    v = v * x[i]
                if j == 2:
                    break
            y[i] = v

    x, y = array([1.1, 0.9], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [7 * 1.1 ** 6, 7 * 0.9 ** 6])]


@qd.func
def early(a, n):
    r = a
    for j in range(n):
        if r > 20.0:
            return r * 3.0
        r = r * a
    return r


@qd.func
def outer(a, n):
    if n < 0:
        return -a
    return early(a, n) + early(a * 0.5, n)


@case
def early_returns(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = outer(x[i], n[i])

    x, y = array([2, 3, 3, 2], f), array([0] * 4, f)
    backward(k, y, x, np.array([2, 2, 9, -1], np.int32), y)
    # x^3 + (x/2)^3;  x^3 (27, after two factors) + ...;  3 x^3 (27 > 20) + 3 (x/2)^8 (25.6 > 20)
    want = [12 + 0.375 * 4, 27 + 0.375 * 9, 81 + 24 * 0.5 * 1.5 ** 7, -1]
    return [(x.grad.to_numpy(), want)]


@qd.func
def doubled(a: qd.template(), b):
    a = a * b + a


@case
def funcs_that_change_their_argument(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for _ in range(2):
                doubled(v, x[i])
            y[i] = v

    x, y = array([2.0], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [1 + 4 * 2 + 3 * 4])]  # x (1 + x)^2


@case
def ifs(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            if v > 1.0:
                v = v * v
            elif v > 0.0:
                v = 3.0 * v
            else:
                v = v * v * v
            y[i] = v

    x, y = array([2.0, 0.5, -2.0], f), array([0] * 3, f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [4, 3, 12])]


@case
def branches_of_carried_values(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for j in range(4):
                if v > 4.0:
                    v = v * 0.5
                else:
                    v = v * v
            y[i] = v

    x, y = array([1.5, 3.0], f), array([0, 0], f)
    backward(k, y, x, y)
    # 1.5: 2.25, 5.0625, /2, square; 3: 9, 4.5, 2.25, square
    return [(x.grad.to_numpy(), [8 * 1.5 ** 7 / 4, 4 * 3.0 ** 3 / 16])]


@case
def indirect_reads(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), p: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            y[i] = x[p[p[i]]] * x[p[i]]

    x, y = array([2, 3, 5], f), array([0] * 3, f)
    backward(k, y, x, np.array([1, 2, 0], np.int32), y)
    return [(x.grad.to_numpy(), [8, 7, 5])]


@case
def indices_that_are_carried(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), p: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            at, v = i, 1.0 + 0.0 * x[0]
            for j in range(4):
                v = v * x[at]
                at = p[at]
            y[i] = v

    x, y = array([2, 3, 5], f), array([0], f)
    backward(k, y, x, np.array([1, 2, 0], np.int32), y)  # 2 * 3 * 5 * 2
    return [(x.grad.to_numpy(), [60, 20, 12])]


@case
def atomics(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            qd.atomic_add(y[0], x[i] * x[i])
            y[1] -= 2.0 * x[i]
            qd.atomic_sub(y[i % 2], x[i])

    x, y = array([1, 2, 3], f), array([0, 0], f)
    k(x, y)
    y.grad.from_numpy(np.array([1, 10]).astype(y.to_numpy().dtype))
    k.grad(x, y)
    return [(x.grad.to_numpy(), [2 - 20 - 1, 4 - 20 - 10, 6 - 20 - 1]), (y.grad.to_numpy(), [1, 10])]


@case
def extremes_have_a_winner(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), hi: qd.types.ndarray(), lo: qd.types.ndarray()):
        for i in x:
            qd.atomic_max(hi[0], x[i] * 2.0)
            qd.atomic_min(lo[0], x[i] * 3.0)

    x, hi, lo = array([1, 7, -3, 2], f), array([-100], f), array([100], f)
    k(x, hi, lo)
    hi.grad.fill(1.0)
    lo.grad.fill(1.0)
    k.grad(x, hi, lo)
    return [(x.grad.to_numpy(), [0, 2, 3, 0])]


@case
def what_was_not_taken_adds_nothing(f):
    """AD7: an infinite or undefined derivative of what select, min, max or an if left aside."""

    @qd.func
    def root(v):
        return qd.sqrt(v)

    @qd.kernel
    def k(x: qd.types.ndarray(), w: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            d = qd.sqrt(x[i])
            n = x[i] / qd.sqrt(x[i] * x[i])
            u = qd.Vector([x[i], 0.0]).normalized()
            if x[i] > 0.0:
                y[i, 0] = d
            else:
                n = 0.0
                u = qd.Vector([0.0, 0.0])
            y[i, 1] = n + u[0]
            y[i, 2] = qd.select(x[i] > 0.0, qd.sqrt(x[i]), 0.0)
            y[i, 3] = qd.max(qd.log(x[i]), -3.0) + qd.min(3.0, 1.0 / x[i])
            y[i, 4] = qd.max(1.0, root(x[i] - 9.0))
            y[i, 5] = qd.select(w[i] == w[i], x[i] * w[i], 0.0)  # not where w is NaN
            qd.atomic_max(y[i, 6], qd.pow(x[i], -0.5) * w[i])

    x, w, y = array([0, 4, -1, 1], f), array([math.nan, 2, math.nan, 1], f), array(np.zeros((4, 7)), f)
    backward(k, y, x, w, y)
    roots, logs, inverses, products = [0, 0.5, 0, 1], [0, 0.25, 0, 1], [0, -1 / 16, -1, -1], [0, 2, 0, 1]
    powers = [0, 2 * -0.5 * 4**-1.5, 0, -0.5]
    return [(x.grad.to_numpy(), np.sum([roots, logs, inverses, products, powers], axis=0)), (w.grad.to_numpy(), [0, 4 + 0.5, 0, 1 + 1])]


@case
def a_product_that_is_zero_counts(f):
    """Not silently 0 where the derivative is 1 and cannot be had from that of the root."""

    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            d = qd.sqrt(x[i])
            y[i] = d * d
            for _ in range(2):
                y[i + 2] += d * d

    x, y = array([0, 4], f), array([0, 0, 0, 0], f)
    backward(k, y, x, y)
    got = x.grad.to_numpy()
    return [(got[1], 3), (np.isnan(got[0]), True)]


@case
def several_tasks(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), t: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            t[i] = x[i] * x[i]
        for i in t:
            y[0] += t[i] * t[i]

    x, t, y = array([1, 2], f), array([0, 0], f), array([0], f)
    backward(k, y, x, t, y)
    return [(x.grad.to_numpy(), [4, 32])]


@case
def values_that_cross_tasks(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        a = x[0] * x[1]
        for i in y:
            y[i] = a * x[i]

    x, y = array([2, 3], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [3 * 2 + 3 * 3 + 6, 2 * 2 + 2 * 3 + 6])]


@case
def sums_of_the_outermost_level(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        y[0] = x[0] * x[1]
        y[0] += x[1]

    x, y = array([2, 3], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [3, 3])]


@case
def sums_in_a_local_of_the_outermost_level(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        v = 0.0
        for i in x:
            v += x[i]
        y[0] = v * v

    x, y = array([1, 2], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [6, 6])]


@case
def updates_in_place(f):
    """Linear: what was there is not needed."""
    @qd.kernel
    def k(x: qd.types.ndarray()):
        for i in x:
            x[i] = x[i] * 2.0 + 1.0

    x = array([1, 2], f)
    backward(k, x, x)
    return [(x.to_numpy(), [3, 5]), (x.grad.to_numpy(), [2, 2])]


@case
def static_and_dynamic_mixed(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for a in qd.static(range(2)):
                for b in range(n):
                    for c in qd.static(range(2)):
                        v = v * (x[i] + a)
            y[i] = v

    x, y = array([2.0], f), array([0], f)
    backward(k, y, x, 2, y)
    # x * x^4 * (x + 1)^4
    return [(x.grad.to_numpy(), [5 * 16 * 81 + 32 * 4 * 27])]


@case
def two_axes(f):
    @qd.kernel
    def k(x: qd.types.ndarray(ndim=2), y: qd.types.ndarray()):
        for i, j in x:
            y[i] += x[i, j] * x[i, 0]
        for i, j in qd.ndrange(2, (1, 3)):
            y[i] += x[i, j]
        for I in qd.grouped(x):
            y[I[0]] += x[I] * 0.5

    x, y = array([[1, 2, 3], [4, 5, 6]], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [[2 + 2 + 3 + .5, 2.5, 2.5], [8 + 5 + 6 + .5, 5.5, 5.5]])]


@case
def local_vectors_at_dynamic_indices(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in y:
            u = qd.Vector([x[0], x[1], x[2]])
            for j in range(n):
                u[j % 3] = u[j % 3] * u[(j + 1) % 3]
            y[i] = u[0] + u[1] + u[2]

    x, y = array([2, 3, 5], f), array([0], f)
    backward(k, y, x, 4, y)
    # u0 = ab, u1 = bc, u2 = c a b, u0 = ab * bc: a b^2 c + b c + a b c
    a, b, c = 2, 3, 5
    return [(x.grad.to_numpy(), [b * b * c + b * c, 2 * a * b * c + c + a * c, a * b * b + b + a * b])]


@case
def local_matrices(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in y:
            m = qd.Matrix([[x[0], 1.0], [0.0, x[1]]])
            r = qd.Matrix([[1.0, 0.0], [0.0, 1.0]]) * (1.0 + 0.0 * x[0])
            for j in range(n):
                r = r @ m
                r[j % 2, 1] += 0.0 * x[0]
            y[i] = r[0, 0] + r[0, 1]

    x, y = array([2, 3], f), array([0], f)
    backward(k, y, x, 3, y)
    # a^3 + a^2 + a b + b^2
    return [(x.grad.to_numpy(), [12 + 4 + 3, 2 + 6])]


@case
def structs_that_are_carried(f):
    S = qd.types.struct(a=f, v=qd.types.vector(2, f))

    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            s = S(a=x[0], v=qd.Vector([x[1], x[1]], dt=f))
            for j in range(3):
                s.v[j % 2] = s.v[j % 2] * s.a
                s.a = s.a + s.v[0]
            y[i] = s.a + s.v[1]

    x, y = array([2.0, 3.0], f), array([0], f)
    backward(k, y, x, y)

    def value(a, b):
        v = [b, b]
        for j in range(3):
            v[j % 2] *= a
            a += v[0]
        return a + v[1]

    h = 1e-5
    want = [(value(2 + h, 3) - value(2 - h, 3)) / (2 * h), (value(2, 3 + h) - value(2, 3 - h)) / (2 * h)]
    return [(x.grad.to_numpy(), want)]


@case
def vectors_and_matrices_in_arrays(f):
    @qd.kernel
    def k(m: qd.types.ndarray(), u: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in u:
            w = m[i] @ u[i]
            y[0] += w.dot(w)

    m = qd.ndarray(qd.types.matrix(2, 2, f), 1, needs_grad=True)
    u = qd.ndarray(qd.types.vector(2, f), 1, needs_grad=True)
    t = np.dtype(array([0], f).to_numpy().dtype)
    M, U = np.array([[[1, 2], [3, 4]]]), np.array([[5, 6]])
    m.from_numpy(M.astype(t))
    u.from_numpy(U.astype(t))
    y = array([0], f)
    backward(k, y, m, u, y)
    W = M[0] @ U[0]
    return [(m.grad.to_numpy(), [2 * np.outer(W, U[0])]), (u.grad.to_numpy(), [2 * M[0].T @ W])]


def fields_of(layout):
    def run(f):
        x = qd.field(f, shape=3, needs_grad=True)
        u = qd.Vector.field(2, f, shape=3, needs_grad=True, layout=layout)
        s = qd.Struct.field({"a": f, "v": qd.types.vector(2, f)}, shape=3, needs_grad=True, layout=layout)
        loss = qd.field(f, shape=(), needs_grad=True)

        @qd.kernel
        def k():
            for i in x:
                loss[None] += x[i] * u[i][0] * s[i].a + s[i].v.dot(u[i])

        for i in range(3):
            x[i], u[i], s.a[i], s.v[i] = i + 1, [2, i], 3, [i, 1]
        k()
        loss.grad[None] = 1
        k.grad()
        return [(x.grad.to_numpy(), [6, 6, 6]), (u.grad.to_numpy(), [[3, 1], [7, 1], [11, 1]]),
                (s.a.grad.to_numpy(), [2, 4, 6]), (s.v.grad.to_numpy(), [[2, 0], [2, 1], [2, 2]])]
    return run


CASES["fields_aos"] = fields_of(qd.Layout.AOS)
CASES["fields_soa"] = fields_of(qd.Layout.SOA)


@case
def templates(f):
    x, y = qd.field(f, shape=2, needs_grad=True), qd.field(f, shape=2, needs_grad=True)

    @qd.kernel
    def k(a: qd.template(), b: qd.template(), n: qd.template()):
        for i in a:
            b[i] = a[i] ** n

    x.from_numpy(np.array([2, 3]).astype(x.to_numpy().dtype))
    backward(k, y, x, y, 3)
    first = x.grad.to_numpy()
    x.grad.fill(0)
    backward(k, y, x, y, 2)
    return [(first, [12, 27]), (x.grad.to_numpy(), [4, 6])]


@case
def numpy_arrays_are_constants(f):
    @qd.kernel
    def k(c: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = c[i] * x[i] * x[i]

    x, y = array([1, 2], f), array([0, 0], f)
    backward(k, y, np.array([3.0, 4.0]).astype(x.to_numpy().dtype), x, y)
    return [(x.grad.to_numpy(), [6, 16])]


@case
def arrays_without_gradient_are_constants(f):
    @qd.kernel
    def k(c: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = c[i] * x[i]

    x, y, c = array([1, 2], f), array([0, 0], f), array([3, 4], f, grad=False)
    backward(k, y, c, x, y)
    return [(x.grad.to_numpy(), [3, 4])]


@case
def gradients_that_are_stopped(f):
    @qd.kernel
    def k(w: qd.types.ndarray(), x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = w[i] * x[i]
            qd.stop_grad(w)
            for j in range(2):
                y[i] += w[i] * x[i]

    w, x, y = array([2, 3], f), array([4, 5], f), array([0, 0], f)
    backward(k, y, w, x, y)
    return [(w.grad.to_numpy(), [4, 5]), (x.grad.to_numpy(), [6, 9])]


@case
def stored_then_read(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), t: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            t[i] = x[i] * x[i]
            y[i] = t[i] * x[i]

    x, t, y = array([2, 3], f), array([0, 0], f), array([0, 0], f)
    backward(k, y, x, t, y)
    return [(x.grad.to_numpy(), [12, 27])]


@case
def stored_then_added_to(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            y[i] = x[i]
            for j in range(3):
                y[i] += x[i] * x[j]

    x, y = array([1, 2, 3], f), array([9, 9, 9], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [1 + 6 + 6, 1 + 6 + 6, 1 + 6 + 6]), (y.to_numpy(), [7, 14, 21])]


@case
def what_is_overwritten_counts_for_nothing(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            y[i] = x[i] * 5.0
            y[i] = x[i] * x[i]

    x, y = array([2, 3], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [4, 6])]


@case
def loops_in_a_branch_read_its_locals(f):
    """What follows the exit of a while is a branch; `m` is made in it."""
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in y:
            v, n = x[0], 0
            while n < 2:
                n += 1
                m = x[1] * n
                for j in range(n):
                    v = v * -0.5 + qd.tanh(m)
            y[i] = v

    x, y = array([0.25, 0.75], f), array([0], f)
    backward(k, y, x, y)
    slope = 0.25 * (1 - math.tanh(0.75) ** 2) + 0.5 * 2 * (1 - math.tanh(1.5) ** 2)
    return [(x.grad.to_numpy(), [-0.125, slope])]


@case
def loops_in_loops_read_values_from_outside(f):
    """A loop that only makes an index, inside a parallel one, with a value of the outermost level."""
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        a = x[0] * x[1]
        for i in y:
            at = 0
            for j in range(2):
                if x[at] < a:
                    at = at + 1
            y[i] = x[at] * a

    x, y = array([2, 3, 5], f), array([0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [15, 10, 6])]


@case
def casts(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = qd.cast(qd.cast(x[i], qd.f32), f) * 2.0 + qd.cast(x[i], qd.i32) * x[i]

    x, y = array([1.5, 2.5], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [3, 4])]


@case
def nothing_depends(f):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = 3.0

    x, y = array([1, 2], f), array([0, 0], f)
    backward(k, y, x, y)
    return [(x.grad.to_numpy(), [0, 0])]


# ---- functions: text, derivative, points ----------------------------------------------------------------

SLOPES = {
    "x + 2.0 * x": (lambda x: 3.0, [0.5, -1.0]),
    "x - x * x": (lambda x: 1 - 2 * x, [0.5, -1.0]),
    "1.0 / x": (lambda x: -1 / x ** 2, [0.5, -2.0]),
    "x / (x + 1.0)": (lambda x: 1 / (x + 1) ** 2, [0.5, 2.0]),
    "-x": (lambda x: -1.0, [0.5]),
    "qd.sqrt(x)": (lambda x: 0.5 / math.sqrt(x), [0.25, 4.0]),
    "qd.rsqrt(x)": (lambda x: -0.5 * x ** -1.5, [0.25, 4.0]),
    "qd.sin(x)": (math.cos, [0.0, 0.5, -2.0]),
    "qd.cos(x)": (lambda x: -math.sin(x), [0.0, 0.5, -2.0]),
    "qd.tan(x)": (lambda x: 1 / math.cos(x) ** 2, [0.0, 0.5, -1.0]),
    "qd.asin(x)": (lambda x: 1 / math.sqrt(1 - x * x), [0.0, 0.5, -0.75]),
    "qd.acos(x)": (lambda x: -1 / math.sqrt(1 - x * x), [0.0, 0.5, -0.75]),
    "qd.tanh(x)": (lambda x: 1 - math.tanh(x) ** 2, [0.0, 0.5, -2.0]),
    "qd.exp(x)": (math.exp, [0.0, 0.5, -2.0]),
    "qd.sinh(x)": (math.cosh, [0.0, 0.5, -2.0]),
    "qd.cosh(x)": (math.sinh, [0.0, 0.5, -2.0]),
    "qd.asinh(x)": (lambda x: 1 / math.sqrt(x * x + 1), [0.0, 0.5, -2.0]),
    "qd.acosh(x)": (lambda x: 1 / math.sqrt(x * x - 1), [1.25, 4.0]),
    "qd.atanh(x)": (lambda x: 1 / (1 - x * x), [0.0, 0.5, -0.75]),
    "qd.atan(x)": (lambda x: 1 / (1 + x * x), [0.0, 0.5, -2.0]),
    "qd.erf(x)": (lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x), [0.0, 0.5, -2.0]),
    "qd.erfc(x)": (lambda x: -2 / math.sqrt(math.pi) * math.exp(-x * x), [0.0, 0.5, -2.0]),
    "qd.exp2(x)": (lambda x: math.log(2) * 2 ** x, [0.0, 0.5, -2.0]),
    "qd.expm1(x)": (math.exp, [0.0, 0.5, -2.0]),
    "qd.log2(x)": (lambda x: 1 / (x * math.log(2)), [0.25, 4.0]),
    "qd.log10(x)": (lambda x: 1 / (x * math.log(10)), [0.25, 4.0]),
    "qd.log1p(x)": (lambda x: 1 / (1 + x), [0.0, 0.5, -0.5]),
    "qd.cbrt(x)": (lambda x: abs(x) ** (-2 / 3) / 3, [0.125, 4.0, -8.0]),
    "qd.hypot(x, 3.0)": (lambda x: x / math.hypot(x, 3), [0.0, 4.0, -4.0]),
    "qd.hypot(3.0, x)": (lambda x: x / math.hypot(x, 3), [0.0, 4.0, -4.0]),
    "qd.hypot(x, 0.0 * x)": (lambda x: (x > 0) - (x < 0), [2.0, -2.0, 0.0]),
    "qd.log(x)": (lambda x: 1 / x, [0.25, 4.0]),
    "qd.abs(x)": (lambda x: (x > 0) - (x < 0), [2.0, -2.0, 0.0]),
    "qd.floor(x)": (lambda x: 0.0, [0.5, 1.0, -1.5]),
    "qd.ceil(x)": (lambda x: 0.0, [0.5, 1.0, -1.5]),
    "qd.round(x)": (lambda x: 0.0, [0.25, 1.0, -1.75]),
    "qd.math.sign(x)": (lambda x: 0.0, [0.5, 0.0, -1.5]),
    "x - qd.floor(x)": (lambda x: 1.0, [0.5, -1.5]),
    "qd.cast(qd.cast(x, qd.i32), F)": (lambda x: 0.0, [0.5, 1.5]),
    "x // 0.75": (lambda x: 0.0, [0.5, 2.0]),
    "x % 0.75": (lambda x: 1.0, [0.5, 2.0, -0.5]),
    "5.0 % x": (lambda x: -math.floor(5.0 / x), [1.5, 3.0]),
    "x ** 2": (lambda x: 2 * x, [0.0, 1.5, -2.0]),
    "x ** 3": (lambda x: 3 * x * x, [0.0, 1.5, -2.0]),
    "x ** 0": (lambda x: 0.0, [0.0, 1.5]),
    "x ** 1": (lambda x: 1.0, [0.0, 1.5]),
    "x ** -1": (lambda x: -1 / x ** 2, [0.5, -2.0]),
    "x ** 0.5": (lambda x: 0.5 / math.sqrt(x), [0.25, 4.0]),
    "qd.pow(2.0, x)": (lambda x: math.log(2) * 2 ** x, [0.0, 1.5]),
    "qd.pow(x, x)": (lambda x: x ** x * (math.log(x) + 1), [0.5, 1.5]),
    "qd.pow(0.0 * x, x)": (lambda x: 0.0, [1.5]),
    "qd.atan2(x, 2.0)": (lambda x: 2 / (x * x + 4), [0.0, 0.5, -2.0]),
    "qd.atan2(2.0, x)": (lambda x: -2 / (x * x + 4), [0.5, -2.0]),
    "qd.max(x, 1.0)": (lambda x: float(x > 1), [0.5, 1.0, 2.0]),
    "qd.max(1.0, x)": (lambda x: float(x >= 1), [0.5, 1.0, 2.0]),
    "qd.min(x, 1.0)": (lambda x: float(x < 1), [0.5, 1.0, 2.0]),
    "qd.min(1.0, x)": (lambda x: float(x <= 1), [0.5, 1.0, 2.0]),
    "max(x, 2.0 * x)": (lambda x: 2.0 if x >= 0 else 1.0, [0.5, -0.5, 0.0]),
    "qd.select(x > 1.0, x * x, 3.0 * x)": (lambda x: 2 * x if x > 1 else 3.0, [0.5, 1.0, 2.0]),
    "(x * x if x > 1.0 else 3.0 * x)": (lambda x: 2 * x if x > 1 else 3.0, [0.5, 1.0, 2.0]),
}


def slope_kernels(f):
    """One kernel for each function: (text, kernel)."""
    import linecache
    for n, text in enumerate(SLOPES):
        source = f"@qd.kernel\ndef k(a: qd.types.ndarray(), b: qd.types.ndarray()):\n    for i in a:\n" \
                 f"        x = a[i]\n        b[i] = {text}\n"
        name = f"<slope {n} {f}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        scope = {"qd": qd, "F": f}
        exec(compile(source, name, "exec"), scope)
        yield text, scope["k"]


def slopes(f, only=None):
    """[(text, points, what it got, what it must be)]."""
    out = []
    for text, k in slope_kernels(f):
        if only and text not in only:
            continue
        slope, points = SLOPES[text]
        x, y = array(points, f), array([0] * len(points), f)
        backward(k, y, x, y)
        out.append((text, points, x.grad.to_numpy().astype(float), np.array([slope(p) for p in points], float)))
    return out


def close(got, want, f):
    room = {qd.f64: 1e-9, qd.f32: 2e-5, qd.f16: 1e-2}[f]
    got, want = np.asarray(got, float), np.asarray(want, float)
    return got.shape == want.shape and bool((np.abs(got - want) <= room * (1 + np.abs(want))).all())


def failures(f, names=None):
    """What is not as it must be, in words."""
    out = []
    for name in names or CASES:
        try:
            out += [f"{name}: {np.asarray(g).tolist()}, not {np.asarray(w).tolist()}"
                    for g, w in CASES[name](f) if not close(g, w, f)]
        except Exception as e:
            out.append(f"{name}: {type(e).__name__}: {e}")
    return out


def main():
    from ingot import _core
    qd.init(default_fp=qd.f64)
    bad = failures(qd.f64)
    bad += [f"{t} at {p}: {g}, not {w}" for t, p, g, w in slopes(qd.f64) if not close(g, w, qd.f64)]
    json.dump({"bad": bad, **_core.counters()}, sys.stdout)


if __name__ == "__main__":
    main()
