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


@qd.kernel
def in_branches(x: qd.types.ndarray(qd.f32, 1), limit: qd.f32, s: qd.types.ndarray(qd.f32, 1)):
    """What a branch of an inner loop adds to a local; s gets a sum for each start."""
    for i in range(s.shape[0]):
        total = 0.0
        least = 100.0
        for j in range(i, x.shape[0]):
            if x[j] < limit:
                w = 1.0 - x[j]
                total += w * w
            elif x[j] > 4.0:
                total -= x[j] * 2.0
            least = qd.min(least, x[j])
        s[i] = total + least


def test_sums_in_branches():
    for fast in (True, False):
        qd.init(fast_math=fast)
        for n in (1, 2, 7, 8, 31, 100):
            x = np.random.default_rng(n).integers(-6, 7, n).astype("f4")
            s = np.zeros(n, "f4")
            in_branches(x, 2.0, s)
            part = np.where(x < 2, (1 - x) ** 2, np.where(x > 4, -2 * x, 0))
            assert (s == [part[i:].sum() + x[i:].min() for i in range(n)]).all()


V3 = qd.types.vector(3, qd.f32)


@qd.kernel
def by_lengths(v: qd.types.ndarray(V3, 1), out: qd.types.ndarray(V3, 1)):
    for i in range(v.shape[0]):
        out[i] = v[i] / (v[i].norm() + 0.5)


def test_vectors_by_numbers():
    v = np.random.default_rng(3).normal(size=(1000, 3)).astype("f4") * np.float32(10)
    for fast, limit in ((True, 1.5), (False, 0.5)):
        qd.init(fast_math=fast)
        a, b = qd.Vector.ndarray(3, qd.f32, len(v)), qd.Vector.ndarray(3, qd.f32, len(v))
        a.from_numpy(v)
        by_lengths(a, b)
        length = np.sqrt((v.astype("f8") ** 2).sum(1)).astype("f4") + np.float32(0.5)
        want = v.astype("f8") / length[:, None].astype("f8")
        ulp = np.spacing(np.abs(want).astype("f4"))
        # the length itself may be two units off
        assert (np.abs(b.to_numpy() - want) <= (limit + 2.5) * ulp).all()


@qd.kernel
def thrice(x: qd.types.ndarray(qd.f32, 1), d: qd.f32, a: qd.types.ndarray(qd.f32, 1), b: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        a[i] = x[i] / d
        b[i] = (x[i] + 1.0) / d + 3.0 / d


def test_three_divisions_by_one_value():
    x = np.random.default_rng(4).normal(size=5000).astype("f4")
    for d in (3.0, -0.1, 49.0, 1e30, 1e-30):
        for fast in (True, False):
            qd.init(fast_math=fast)
            a, b = np.zeros_like(x), np.zeros_like(x)
            thrice(x, d, a, b)
            want = x.astype("f8") / np.float64(np.float32(d))
            assert (np.abs(a - want) <= (1.01 if fast else 0.51) * np.spacing(np.abs(want).astype("f4"))).all()
