"""Kernels of suite.py: mathematics, reductions and integers."""

import numpy as np

from suite_rows import arrays, f32, row, zeros


@row(lambda rng: ((1 << 18,), [f32(rng.random(1 << 18) + 0.1), zeros(1 << 18)]))
def math_f32(qd):
    f1 = arrays(qd, "f1")

    @qd.kernel
    def math_f32(x: f1, y: f1):
        for i in range(x.shape[0]):
            a = x[i]
            b = qd.sin(a) * qd.cos(a + a) + qd.exp(-a) * qd.log(a + 1.0)
            c = qd.tanh(a) + a ** 1.7 + qd.atan2(a, b)
            y[i] = c + qd.sqrt(a) + qd.asin(0.5 * a) + qd.tan(a)

    return math_f32


@row(lambda rng: ((1 << 17,), [rng.random(1 << 17) + 0.1, zeros(1 << 17, dtype=np.float64)]), close=1e-10)
def math_f64(qd):
    d1 = arrays(qd, "d1")

    @qd.kernel
    def math_f64(x: d1, y: d1):
        for i in range(x.shape[0]):
            a = x[i]
            one = qd.cast(1.0, qd.f64)
            b = qd.sin(a) * qd.cos(a + a) + qd.exp(-a) * qd.log(a + one)
            c = qd.tanh(a) + qd.pow(a, qd.cast(1.75, qd.f64)) + qd.atan2(a, b)
            y[i] = c + qd.sqrt(a) + qd.asin(a / 2) + qd.tan(a)

    return math_f64


@row(lambda rng: ((1 << 22,), [f32(rng.random(1 << 22)), zeros(2)]))
def minmax(qd):
    """The smallest and the largest into two places of one array."""
    f1 = arrays(qd, "f1")

    @qd.kernel
    def minmax(x: f1, out: f1):
        out[0] = 1e30
        out[1] = -1e30
        for i in range(x.shape[0]):
            qd.atomic_min(out[0], x[i])
            qd.atomic_max(out[1], x[i])

    return minmax


@row(lambda rng: ((1 << 22,), [f32(rng.random(1 << 22)), zeros(1), zeros(1, dtype=np.int32)]))
def argmin(qd):
    """Where the smallest is: its value first, then the first index that has it."""
    f1, i1 = arrays(qd, "f1 i1")

    @qd.kernel
    def argmin(x: f1, least: f1, where: i1):
        least[0] = 1e30
        where[0] = 2147483647
        for i in range(x.shape[0]):
            qd.atomic_min(least[0], x[i])
        for i in range(x.shape[0]):
            if x[i] == least[0]:
                qd.atomic_min(where[0], i)

    return argmin


@row(lambda rng: ((1 << 21,), [f32(rng.random(1 << 21)), f32(rng.random(1 << 21)), zeros(3)]), fresh=(2,), close=1e-3)
def sums3(qd):
    f1 = arrays(qd, "f1")

    @qd.kernel
    def sums3(x: f1, y: f1, s: f1):
        for i in range(x.shape[0]):
            s[0] += x[i]
            s[1] += x[i] * x[i]
            s[2] += x[i] * y[i]

    return sums3


@row(lambda rng: ((1 << 20, 1000), [f32(rng.random(1 << 20)), zeros(1 << 20), 1000]))
def indices(qd):
    """Rows and columns from one index, with a width that is known at run time."""
    f1 = arrays(qd, "f1")

    @qd.kernel
    def indices(a: f1, b: f1, width: qd.i32):
        for k in range(a.shape[0]):
            i = k // width
            j = k % width
            b[k] = a[k] * (i + 1) + j

    return indices


@row(lambda rng: ((1 << 18,), [f32(rng.random(1 << 18)), zeros(1 << 18)]))
def funcs30(qd):
    """Thirty easing curves, each a func, mixed."""
    f1 = arrays(qd, "f1")

    @qd.func
    def square(t):
        return t * t

    @qd.func
    def cube(t):
        return t * t * t

    @qd.func
    def quart(t):
        return square(square(t))

    @qd.func
    def quint(t):
        return quart(t) * t

    @qd.func
    def flip(t):
        return 1.0 - t

    @qd.func
    def clamp(t):
        return qd.max(0.0, qd.min(1.0, t))

    @qd.func
    def mix(a, b, t):
        return a + (b - a) * t

    @qd.func
    def out_square(t):
        return flip(square(flip(t)))

    @qd.func
    def out_cube(t):
        return flip(cube(flip(t)))

    @qd.func
    def out_quart(t):
        return flip(quart(flip(t)))

    @qd.func
    def out_quint(t):
        return flip(quint(flip(t)))

    @qd.func
    def both_square(t):
        return qd.select(t < 0.5, 2.0 * square(t), flip(2.0 * square(flip(t))))

    @qd.func
    def both_cube(t):
        return qd.select(t < 0.5, 4.0 * cube(t), flip(4.0 * cube(flip(t))))

    @qd.func
    def both_quart(t):
        return qd.select(t < 0.5, 8.0 * quart(t), flip(8.0 * quart(flip(t))))

    @qd.func
    def both_quint(t):
        return qd.select(t < 0.5, 16.0 * quint(t), flip(16.0 * quint(flip(t))))

    @qd.func
    def smooth(t):
        return square(t) * (3.0 - 2.0 * t)

    @qd.func
    def smoother(t):
        return cube(t) * (t * (t * 6.0 - 15.0) + 10.0)

    @qd.func
    def circle(t):
        return flip(qd.sqrt(flip(square(t))))

    @qd.func
    def out_circle(t):
        return qd.sqrt(flip(square(flip(t))))

    @qd.func
    def back(t):
        return 2.70158 * cube(t) - 1.70158 * square(t)

    @qd.func
    def out_back(t):
        return flip(back(flip(t)))

    @qd.func
    def both_back(t):
        return mix(back(t), out_back(t), smooth(t))

    @qd.func
    def hump(t):
        return 4.0 * t * flip(t)

    @qd.func
    def spike(t):
        return qd.select(t < 0.5, 2.0 * t, 2.0 * flip(t))

    @qd.func
    def gain(t):
        return mix(smooth(t), smoother(t), hump(t))

    @qd.func
    def bias(t, b):
        return t / ((1.0 / b - 2.0) * flip(t) + 1.0)

    @qd.func
    def step(t, e):
        return qd.select(t < e, 0.0, 1.0)

    @qd.func
    def ramp(t, a, b):
        return clamp((t - a) / (b - a))

    @qd.func
    def pulse(t, a, b):
        return step(t, a) - step(t, b)

    @qd.func
    def bump(t):
        return smooth(ramp(t, 0.1, 0.4)) * smooth(ramp(flip(t), 0.1, 0.4))

    @qd.kernel
    def funcs30(x: f1, y: f1):
        for i in range(x.shape[0]):
            t = clamp(x[i])
            a = square(t) + cube(t) + quart(t) + quint(t) + out_square(t) + out_cube(t)
            b = out_quart(t) + out_quint(t) + both_square(t) + both_cube(t) + both_quart(t)
            c = both_quint(t) + smooth(t) + smoother(t) + circle(t) + out_circle(t) + back(t)
            d = out_back(t) + both_back(t) + hump(t) + spike(t) + gain(t) + bias(t, 0.3)
            y[i] = a + b + c + d + pulse(t, 0.2, 0.7) + bump(t)

    return funcs30


@row(lambda rng: ((1 << 18,), [f32(rng.random(1 << 18) + 0.5), rng.integers(-4, 9, 1 << 18, dtype=np.int32), zeros(1 << 18)]))
def powers(qd):
    """A constant exponent, and one from an array of integers."""
    f1, i1 = arrays(qd, "f1 i1")

    @qd.kernel
    def powers(x: f1, e: i1, y: f1):
        for i in range(x.shape[0]):
            y[i] = x[i] ** 1.7 + x[i] ** e[i]

    return powers


@row(lambda rng: ((1 << 24,), [zeros(1 << 24), 1.5]))
def fill(qd):
    f1 = arrays(qd, "f1")

    @qd.kernel
    def fill(x: f1, value: qd.f32):
        for i in range(x.shape[0]):
            x[i] = value

    return fill
