"""Gradients through locals of a kernel that the iterations of a parallel loop share: the winner of a minimum or
maximum, sums, and what depends on the order of iterations, which is refused. Derivatives of the first kinds were
lost without a word, or belonged to what the local held in the end."""

import linecache

import numpy as np
import pytest

import ingot as qd

MOST = "for i in x: qd.atomic_max(m, x[i] * (i + 1))\n"
RIGHT = {
    "winner": "m = -1e9\n" + MOST + "loss[None] = m * 2",
    "winner in a loop": "m = -1e9\n" + MOST + "for i in x: loss[None] += m",
    "winner squared": "m = -1e9\n" + MOST + "loss[None] = m * m",
    "of two loops": "m = -1e9\n" + MOST + "for i in x: qd.atomic_max(m, x[i] * 3)\nloss[None] = m * m",
    "read between": "m = -1e9\n" + MOST + "a = m\nfor i in x: qd.atomic_max(m, x[i] * 30)\nloss[None] = m * m + a * a",
    "changed later": "m = -1e9\n" + MOST + "m = m * 3\nloss[None] = m * m",
    "added to later": "m = -1e9\n" + MOST + "m += 3.0\nfor i in x: qd.atomic_max(m, x[i] * 3)\nloss[None] = m * m",
    "what was there": "m = x[0] * 20\n" + MOST + "loss[None] = m * m",
    "softmax": "m = -1e9\n" + MOST + "s = 0.0\nfor i in x: s += qd.exp(x[i] - m)\nloss[None] = qd.log(s) + m",
    "two of them": "m = -1e9\nn = 1e9\nfor i in x:\n    qd.atomic_max(m, x[i])\n    qd.atomic_min(n, x[i] ** 2)\n"
                   "for i in x: loss[None] += ((x[i] - m) / (n + 1)) ** 2",
    "vector": "m = qd.Vector([-1e9, -1e9])\nfor i in x: qd.atomic_max(m[i % 2], x[i] * (i + 1))\nloss[None] = m[0] + m[1]",
    "in an inner loop": "m = -1e9\nfor i in x:\n    for j in range(6): qd.atomic_max(m, x[i] * x[j] * (i + 1))\n"
                        "loss[None] = m",
    "sum": "m = 0.0\nfor i in x: m += x[i] * x[i]\nm = m * m\nfor i in x: m -= x[i]\nloss[None] = m * m",
    "spelled out": "m = 0.0\nfor i in x: m = m + x[i] * x[i]\nfor i in x: m = x[i] + m\nfor i in x: m = m - 3 * x[i] * m0\n"
                   "loss[None] = m * m",
    "one iteration's": "m = 0.0\nfor i in x:\n    if i == 3: m = x[i] * i\nloss[None] = m",
    "one iteration": "m = 0.0\nfor _ in range(1):\n    for i in range(6): m = m * 0.5 + x[i] * x[i]\nloss[None] = m * m",
    "one iteration that is left": "m = 0.0\nfor _ in range(1):\n    for i in range(6):\n        if m > 0.5: break\n"
                                  "        m += x[i] ** 2\nloss[None] = m * m",
    "one element": "s = x[0] * x[1]\nfor i in x: y[0] = s * s\nfor i in x:\n    if i == 2: y[1] = x[i] * s\n"
                   "for i in x:\n    for j in range(3): y[3] += x[i] * j\nloss[None] = y[0] * y[1] + y[3]",
    "in order": "m = 0.0\nqd.loop_config(serialize=True)\nfor i in x:\n    m += x[i] ** 2\n    y[i] = m\n"
                "for i in x: loss[None] += y[i] * i",
}
REFUSED = {
    "found by an update": "m = 0.0\nfor i in x: y[i] = qd.atomic_add(m, x[i])\nfor i in x: loss[None] += y[i] * i",
    "found by a maximum": "m = -1e9\nfor i in x: y[i] = qd.atomic_max(m, x[i])\nloss[None] = m * m + y[0]",
    "read": "m = 0.0\nfor i in x:\n    m += x[i]\n    y[i] = m\nfor i in x: loss[None] += y[i] * i",
    "last": "m = 0.0\nfor i in x:\n    m = x[i] * i\nloss[None] = m",
    "last of an element": "for i in x: y[0] = x[i] * i\nloss[None] = y[0]",
    "last of a member": "for i in x:\n    v = x[i] * x[i]\n    y[2] = v\nloss[None] = y[2]",
    "either of two": "m = 0.0\nfor i in x:\n    if i == 3: m = x[i]\n    if i == 4: m = x[i]\nloss[None] = m",
    "sum and maximum": "m = 0.0\nfor i in x:\n    m += x[i]\n    qd.atomic_max(m, x[i])\nloss[None] = m",
    "least and greatest": "m = 0.0\nfor i in x:\n    qd.atomic_min(m, x[i])\n    qd.atomic_max(m, x[i] * 2)\nloss[None] = m",
    "an older value": "m = 0.0\nfor i in x:\n    t = m\n    m += 1.0\n    m = t + x[i]\nloss[None] = m",
    "a value from outside of a loop": "m = 0.0\nfor i in x:\n    t = m\n    for j in range(3): m = t + x[i] * j\nloss[None] = m",
    "product": "m = 1.0\nfor i in x: m *= x[i]\nloss[None] = m",
    "by a func": "m = 0.0\nfor i in x: put(m, x[i])\nloss[None] = m",
}


@qd.func
def put(m: qd.template(), v):
    m = v


def kernel(name, body):
    """(kernel, x)"""
    x, y = (qd.field(qd.f64, 6, needs_grad=True) for _ in range(2))
    loss = qd.field(qd.f64, (), needs_grad=True)
    text = "@qd.kernel\ndef k():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    scope = {"qd": qd, "x": x, "y": y, "loss": loss, "put": put, "m0": 0.5}
    exec(compile(text, f"<{name}>", "exec"), scope)
    x.from_numpy(np.random.default_rng(5).uniform(-1.0, 1.0, 6))
    return scope["k"], x


@pytest.mark.parametrize("name", RIGHT)
def test_shared_locals(name, target):
    qd.init(default_fp=qd.f64)
    k, _ = kernel(name, RIGHT[name])
    qd.ad.check_grad(k)


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_the_order_is_refused(name):
    qd.init(arch=qd.interp, default_fp=qd.f64)
    k, x = kernel(name, REFUSED[name])
    with pytest.raises(qd.IngotCompilationError, match="a local that iterations of a parallel loop change and read, or what they store to"):
        k.grad()
