"""Gradients through funcs that change what they are given by reference, or whose results are needed and made of
what is overwritten. Backward code runs such funcs again, on what the launch left: that gave wrong gradients
without a word. They are right or refused."""

import linecache

import numpy as np
import pytest

import ingot as qd

EACH = "for i in x: loss[None] += f(y[i], x[i]) * x[i]\nfor i in x: loss[None] += y[i] * x[i]"
OWN = "for i in x: loss[None] += f(i) * x[i]\nfor i in x: loss[None] += y[i] * x[i]"
LATER = "for i in x: loss[None] += f(i) * x[i]\nfor i in x: y[i] = x[i] * x[i]\nfor i in x: loss[None] += y[i]"
TWICE = "for i in x:\n    a = x[i] * 2\n    loss[None] += f(a, a, x[i]) * a"
PARTS = "for i in x:\n    a = qd.Vector([x[i] * 2, x[i] * x[i], 1.0])\n    "
PLACE, INDEX, TWO = "s: qd.template(), v", "i", "s: qd.template(), t: qd.template(), v"
RIGHT = {  # parameters, body, kernel
    "stored first": (PLACE, "s = v * 2\nreturn s * s", EACH),
    "only read": (PLACE, "return s * s * v", EACH),
    "added to": (PLACE, "for j in range(3): s += v * j\nreturn v * v", EACH),
    "found and added": (PLACE, "return qd.atomic_add(s, v * v)", EACH.replace(" * x[i]\n", "\n")),
    "maximum": (PLACE, "qd.atomic_max(s, v)\nreturn v", EACH),
    "of an array, read later": (INDEX, "y[i] += x[i] ** 2\nreturn y[i]", OWN),
    "a local read twice": (TWO, "return s * t * v", TWICE),
    "a local added to twice": (TWO, "s += v\nt += v * v\nreturn v", TWICE),
    "two members": (TWO, "s += t * v\nt *= s\nreturn s * t", PARTS + "loss[None] += f(a[0], a[1], x[i]) * a[0]"),
    "neighbours": (TWO, "q = s\ns = t\nt = q * v\nreturn v",
                   PARTS + "for b in range(2):\n        f(a[b], a[b + 1], x[i])\n    loss[None] += a[0] * a[1] + a[2]"),
}
OVERWRITTEN = {
    "updated, then read": (PLACE, "s += v * v\nreturn s * s", EACH),
    "updated, then given": (PLACE, "s += v * v\nreturn s", EACH),
    "given, then updated": (PLACE, "o = s\ns += v * v\nreturn o", EACH),
    "found by an update": (PLACE, "return qd.atomic_add(s, v * v)", EACH),
    "found by a maximum": (PLACE, "return qd.atomic_max(s, v)", EACH),
    "a branch on it": (PLACE, "r = 0.0\nif qd.atomic_add(s, v * v) > 0.1: r = v * v\nreturn r", EACH),
    "given of an array, then updated": (INDEX, "o = y[i]\ny[i] += x[i] ** 2\nreturn o", OWN),
    "given of an array that is written later": (INDEX, "return y[i] * 2.0", LATER),
    "an integer made of it": (INDEX, "r = 1\nif y[i] > 0.1: r = 3\nreturn r", LATER),
}
ONE = {
    "a local changed twice": (TWO, "s += t * v\nt *= s\nreturn s * t", TWICE),
    "elements of one number": (TWO, "s += t * v\nt *= s\nreturn s * t",
                               PARTS + "loss[None] += f(a[i % 2], a[1 - i % 2], x[i]) * a[0]"),
    "a part and the whole": ("s: qd.template(), t: qd.template(), v", "s += t[0] * t[1] * v\nt *= s\nreturn s",
                             PARTS + "loss[None] += f(a[0], a, x[i]) * a[1]"),
}


def kernel(name, params, body, launch):
    x, y = (qd.field(qd.f64, 4, needs_grad=True) for _ in range(2))
    loss = qd.field(qd.f64, (), needs_grad=True)
    text = f"@qd.func\ndef f({params}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    text += "\n\n@qd.kernel\ndef k():\n" + "".join(f"    {line}\n" for line in launch.splitlines())
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    scope = {"qd": qd, "x": x, "y": y, "loss": loss}
    exec(compile(text, f"<{name}>", "exec"), scope)
    rng = np.random.default_rng(5)
    x.from_numpy(rng.uniform(-1.0, 1.0, 4))
    y.from_numpy(rng.uniform(-1.0, 1.0, 4))
    return scope["k"]


@pytest.mark.parametrize("name", RIGHT)
def test_places_that_funcs_are_given(name, target):
    qd.init(default_fp=qd.f64)
    qd.ad.check_grad(kernel(name, *RIGHT[name]))


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_what_a_func_found_and_is_overwritten(name):
    qd.init(arch=qd.interp, default_fp=qd.f64)
    k = kernel(name, *OVERWRITTEN[name])
    with pytest.raises(qd.IngotCompilationError, match="an element that was read, and whose value the backward pass"):
        k.grad()


@pytest.mark.parametrize("name", ONE)
def test_two_places_that_are_one(name):
    qd.init(arch=qd.interp, default_fp=qd.f64)
    k = kernel(name, *ONE[name])
    with pytest.raises(qd.IngotCompilationError, match="two parameters of a func that are one variable"):
        k.grad()


@pytest.mark.parametrize("way", ["result", "integer", "place", "found"])
def test_validation_knows_what_funcs_read(way):
    """A launch that overwrites what a func of an earlier one read, and what its gradient reads again."""
    qd.init(arch=qd.interp, default_fp=qd.f64)
    x, y = (qd.field(qd.f64, 4, needs_grad=True) for _ in range(2))
    loss = qd.field(qd.f64, (), needs_grad=True)
    x.fill(0.5)

    @qd.func
    def doubled(i):
        return y[i] * 2.0

    @qd.func
    def sign(i):
        return 1 if y[i] > 0.0 else -1

    @qd.func
    def square(s: qd.template()):
        return s * s

    @qd.func
    def given(s: qd.template()):
        return s + 1.0

    @qd.kernel
    def first():
        for i in x:
            if qd.static(way == "result"):
                loss[None] += doubled(i) * x[i]
            elif qd.static(way == "integer"):
                loss[None] += sign(i) * x[i]
            elif qd.static(way == "place"):
                loss[None] += square(y[i])
            else:
                loss[None] += given(y[i]) * x[i]

    @qd.kernel
    def second():
        for i in x:
            y[i] = x[i] * x[i] + 1.0

    with qd.ad.Tape(loss=loss, validation=True):
        second()
        first()
    y.fill(3.0)
    with pytest.raises(qd.IngotAssertionError, match="was read"), qd.ad.Tape(loss=loss, validation=True):
        first()
        second()
