"""The funcs of suite.py's funcs30 for Numba: see suite_numba.py, which collects them."""

import math

from numba import njit, prange

from suite_numba import F, fast


@njit(fastmath=True)
def square(t):
    return t * t


@njit(fastmath=True)
def cube(t):
    return t * t * t


@njit(fastmath=True)
def quart(t):
    return square(square(t))


@njit(fastmath=True)
def quint(t):
    return quart(t) * t


@njit(fastmath=True)
def flip(t):
    return F(1.0) - t


@njit(fastmath=True)
def clamp(t):
    return max(F(0.0), min(F(1.0), t))


@njit(fastmath=True)
def mix(a, b, t):
    return a + (b - a) * t


@njit(fastmath=True)
def out_square(t):
    return flip(square(flip(t)))


@njit(fastmath=True)
def out_cube(t):
    return flip(cube(flip(t)))


@njit(fastmath=True)
def out_quart(t):
    return flip(quart(flip(t)))


@njit(fastmath=True)
def out_quint(t):
    return flip(quint(flip(t)))


@njit(fastmath=True)
def both_square(t):
    return F(2.0) * square(t) if t < F(0.5) else flip(F(2.0) * square(flip(t)))


@njit(fastmath=True)
def both_cube(t):
    return F(4.0) * cube(t) if t < F(0.5) else flip(F(4.0) * cube(flip(t)))


@njit(fastmath=True)
def both_quart(t):
    return F(8.0) * quart(t) if t < F(0.5) else flip(F(8.0) * quart(flip(t)))


@njit(fastmath=True)
def both_quint(t):
    return F(16.0) * quint(t) if t < F(0.5) else flip(F(16.0) * quint(flip(t)))


@njit(fastmath=True)
def smooth(t):
    return square(t) * (F(3.0) - F(2.0) * t)


@njit(fastmath=True)
def smoother(t):
    return cube(t) * (t * (t * F(6.0) - F(15.0)) + F(10.0))


@njit(fastmath=True)
def circle(t):
    return flip(math.sqrt(flip(square(t))))


@njit(fastmath=True)
def out_circle(t):
    return math.sqrt(flip(square(flip(t))))


@njit(fastmath=True)
def back(t):
    return F(2.70158) * cube(t) - F(1.70158) * square(t)


@njit(fastmath=True)
def out_back(t):
    return flip(back(flip(t)))


@njit(fastmath=True)
def both_back(t):
    return mix(back(t), out_back(t), smooth(t))


@njit(fastmath=True)
def hump(t):
    return F(4.0) * t * flip(t)


@njit(fastmath=True)
def spike(t):
    return F(2.0) * t if t < F(0.5) else F(2.0) * flip(t)


@njit(fastmath=True)
def gain(t):
    return mix(smooth(t), smoother(t), hump(t))


@njit(fastmath=True)
def bias(t, b):
    return t / ((F(1.0) / b - F(2.0)) * flip(t) + F(1.0))


@njit(fastmath=True)
def step(t, e):
    return F(0.0) if t < e else F(1.0)


@njit(fastmath=True)
def ramp(t, a, b):
    return clamp((t - a) / (b - a))


@njit(fastmath=True)
def pulse(t, a, b):
    return step(t, a) - step(t, b)


@njit(fastmath=True)
def bump(t):
    return smooth(ramp(t, F(0.1), F(0.4))) * smooth(ramp(flip(t), F(0.1), F(0.4)))


@fast
def funcs30(x, y):
    for i in prange(x.shape[0]):
        t = clamp(x[i])
        a = square(t) + cube(t) + quart(t) + quint(t) + out_square(t) + out_cube(t)
        b = out_quart(t) + out_quint(t) + both_square(t) + both_cube(t) + both_quart(t)
        c = both_quint(t) + smooth(t) + smoother(t) + circle(t) + out_circle(t) + back(t)
        d = out_back(t) + both_back(t) + hump(t) + spike(t) + gain(t) + bias(t, F(0.3))
        y[i] = a + b + c + d + pulse(t, F(0.2), F(0.7)) + bump(t)
