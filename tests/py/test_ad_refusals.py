"""What gradients refuse names what to do instead; done, the gradient is right."""

import linecache

import numpy as np
import pytest

import ingot as qd

F = qd.f64
CASES = {  # refused, what the message says, what it names
    "found by an update": (
        "for i in range(4):\n    j = qd.atomic_add(n[0], 1)\n    y[j] += x[i] ** 2", "atomic update found there",
        "keep it in an array, in a kernel of its own", "for i in range(4): y[at[i]] += x[i] ** 2"),
    "product": ("for i in range(4): qd.atomic_mul(y[0], x[i])", "an atomic update other than", r"`p = p \* x\[i\]` in a loop",
                "for _ in range(1):\n    p = y[0]\n    for i in range(4): p = p * x[i]\n    y[1] = p"),
    "returned": ("s = 0.0\nfor i in range(4): s += x[i] ** 2\nreturn s", "a returned value", r"`loss\[None\] \+= s`",
                 "s = 0.0\nfor i in range(4): s += x[i] ** 2\nloss[None] += s\nreturn 0.0"),
}


def kernel(name, body):
    x, y, loss = (qd.field(F, shape, needs_grad=True) for shape in (4, 4, ()))
    n, at = qd.field(qd.i32, 1), qd.field(qd.i32, 4)
    at.from_numpy(np.array([2, 0, 3, 1], np.int32))
    result = " -> qd.f64" if "return" in body else ""
    text = f"@qd.kernel\ndef k(){result}:\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    scope = {"qd": qd, "x": x, "y": y, "loss": loss, "n": n, "at": at}
    exec(compile(text, f"<{name}>", "exec"), scope)
    x.from_numpy(np.linspace(0.3, 1.2, 4))
    y.from_numpy(np.linspace(0.7, 0.2, 4))
    return scope["k"]


@pytest.mark.parametrize("name", CASES)
def test_refusals_name_what_to_do(name):
    qd.init(arch=qd.interp, default_fp=F)
    refused, why, remedy, instead = CASES[name]
    with pytest.raises(qd.IngotCompilationError, match=f"(?s){why}.*help: .*{remedy}"):
        kernel(name, refused).grad()
    qd.ad.check_grad(kernel(name + " instead", instead))
