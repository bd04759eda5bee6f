"""Sums of products that are fused (src/gen/llvm_fuse.c): every arrangement of signs, with an
addend from outside of the loop and from inside, on whole numbers, whose sums are exact."""

import itertools

import numpy as np
import pytest

import ingot as qd

FORMS = [form.format(*signs) for signs in itertools.product("+-", "+-") for form in (
    "(a * b {} c * d) {} e", "e {} (a * b {} c * d)", "(e {} a * b) {} c * d",
    "a * b {} e {} d", "(a {} b) * c {} d * e")]
TEXT = "\n".join(f"        o[i, {k}] = {form}" for k, form in enumerate(FORMS))
HEADS = {
    "outside": "    e = x[0, 4]\n    for i in range(x.shape[0]):\n",
    "inside": "    for i in range(x.shape[0]):\n        e = x[i, 4]\n",
}
LOADS = "".join(f"        {name} = x[i, {k}]\n" for k, name in enumerate("abcd"))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("where", HEADS)
def test_every_sign(target, where, dtype, tmp_path):
    path = tmp_path / "fused.py"
    path.write_text(
        "import ingot as qd\n@qd.kernel\ndef k(x: qd.types.ndarray(), o: qd.types.ndarray()):\n"
        + HEADS[where] + LOADS + TEXT + "\n")
    scope = {}
    exec(compile(path.read_text(), path, "exec"), scope)
    qd.init(default_fp=getattr(qd, dtype))
    x = np.random.default_rng(4).integers(-9, 9, (40, 5)).astype(dtype.replace("f", "float"))
    out = np.zeros((40, len(FORMS)), x.dtype)
    scope["k"](x, out)
    a, b, c, d, e = x.T
    if where == "outside":
        e = x[0, 4]
    want = [eval(form, {}, {"a": a, "b": b, "c": c, "d": d, "e": e}) for form in FORMS]
    assert np.array_equal(out, np.array(want).T)
