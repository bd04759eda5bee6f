"""Elements that a branch tells apart, and iterations of parallel loops that never meet, in gradients (RULE12, and what
src/ad/rule.c says of iterations that read what others store). Right is what central differences say."""

import linecache

import numpy as np
import pytest

import ingot as qd

F = qd.f64
OVER = "is overwritten here"
RIGHT = {
    "Cholesky": "for _ in range(1):\n    for i in range(4):\n        for j in range(i + 1):\n"
                "            s = x[i, j] + (8.0 if i == j else 0.0)\n            for k in range(j): s -= l[i, k] * l[j, k]\n"
                "            if i == j: l[i, j] = qd.sqrt(s)\n            else: l[i, j] = s / l[j, j]",
    "not equal": "for i in range(3):\n    for j in range(1):\n        if i != j + 1: x[i, i] = x[i, j + 1] ** 2",
    "not (equal)": "for i in range(3):\n    for j in range(1):\n        if not (i == j + 1): x[i, i] = x[i, j + 1] ** 2",
    "below": "for i in range(3):\n    for j in range(1):\n        if j + 1 < i: x[i, i] = x[i, j + 1] ** 2",
    "not below": "for i in range(3):\n    for j in range(1):\n        if i < j + 1: x[i, 0] += y[i]\n        else: x[i, i + 1] = x[i, j + 1] ** 2",
    "two at once": "for i in range(3):\n    for j in range(1):\n        if (i != j + 1) & (i < 9): x[i, i] = x[i, j + 1] ** 2",
    "either of two": "for i in range(3):\n    for j in range(1):\n        if (i == j + 1) | (i > 9): y[i] += 1.0\n        else: x[i, i] = x[i, j + 1] ** 2",
    "first of and": "for i in range(3):\n    for j in range(1):\n        if i != j + 1 and i < 9: x[i, i] = x[i, j + 1] ** 2",
    "second of and": "for i in range(3):\n    for j in range(1):\n        if i < 9 and i != j + 1 and n > 0: x[i, i] = x[i, j + 1] ** 2",
    "first of or": "for i in range(3):\n    for j in range(1):\n        if i == j + 1 or i > 9: y[i] += 1.0\n        else: x[i, i] = x[i, j + 1] ** 2",
    "diagonal": "for i in range(1, 4):\n    j = n - i\n    if 0 < j and j < 4: x[i, j] = l[i, j] * x[i - 1, j] + x[i, j - 1]",
    "constant diagonal": "for i in range(1, 4): x[i, 4 - i] = x[i - 1, 4 - i] * 0.5 + x[i, 3 - i]",
}
REFUSED = {
    "equal": "for i in range(3):\n    for j in range(1):\n        if i == j + 1: x[i, i] = x[i, j + 1] ** 2",
    "not above": "for i in range(3):\n    for j in range(1):\n        if j + 1 <= i: x[i, i] = x[i, j + 1] ** 2",
    "one of two": "for i in range(3):\n    for j in range(1):\n        if (i != j + 1) | (i > 9): x[i, i] = x[i, j + 1] ** 2",
    "one of or": "for i in range(3):\n    for j in range(1):\n        if i != j + 1 or i > 9: x[i, i] = x[i, j + 1] ** 2",
    "of an iteration before": "for _ in range(1):\n    b = False\n    for i in range(3):\n        for j in range(1):\n"
                              "            if b: x[i, i] = x[i, j + 1] ** 2\n            b = i != j + 1",
    "not both": "for i in range(3):\n    for j in range(1):\n        if i != j + 1 and i < 2: y[i] += 1.0\n        else: x[i, i] = x[i, j + 1] ** 2",
    "another number": "for i in range(3):\n    for j in range(1):\n        if i != j: x[i, i] = x[i, j + 1] ** 2",
    "a later iteration": "for i in range(3):\n    for j in range(3):\n        if i != j: x[i, i] = x[i, j] ** 2",
    "neighbours": "for i in range(1, 4): x[i, 2] = x[i - 1, 2] * 0.5",
    "neighbours on the diagonal": "for i in range(1, 4): x[i, 4 - i] = x[i - 1, 5 - i] * 0.5",
}


def kernel(name, body):
    x, l, y = qd.field(F, (6, 6), needs_grad=True), qd.field(F, (6, 6), needs_grad=True), qd.field(F, 6, needs_grad=True)
    text = "@qd.kernel\ndef k(n: qd.i32):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    scope = {"qd": qd, "x": x, "l": l, "y": y}
    exec(compile(text, f"<{name}>", "exec"), scope)
    for a in (x, l, y):
        a.from_numpy(np.random.default_rng(5).uniform(0.3, 1.2, a.shape))
    return scope["k"]


@pytest.mark.parametrize("name", RIGHT)
def test_places_that_are_apart(name, target):
    qd.init(default_fp=F)
    k = kernel(name, RIGHT[name])
    for n in 3, 5:
        qd.ad.check_grad(k, n)


@pytest.mark.parametrize("name", REFUSED)
def test_places_that_may_be_one(name):
    qd.init(arch=qd.interp, default_fp=F)
    k = kernel(name, REFUSED[name])
    with pytest.raises(qd.IngotCompilationError, match=OVER + "|Cross-iteration"):
        k.grad(3)
