"""Numbers that are written in a kernel, or read from Python, where they meet others: next to an
f64 a float is the f64 that Python has; alone it is default_fp. Each case is an expression that is
compared with Python's own result."""

import math

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
THIRD = 1.0 / 3.0
TENTH = 0.1
NUMBERS = (0.1, 0.2, 0.7)
TABLE = qd.Vector([0.1, 0.2, 0.7])
GRID = qd.Matrix([[0.1, 0.2], [0.3, 0.4]])
BIG = 10**10


class Holder:
    scale = 0.1


HOLDER = Holder()


@pytest.fixture(params=TARGETS)
def target(request):
    qd.init(arch=TARGETS[request.param], fast_math=False)


def make(source, **scope):
    scope = {"qd": qd, "math": math, **globals(), **scope}
    exec(source, scope)
    return qd.kernel(source=source)(scope["k"])


X = 1.7
SCALARS = """
x * 0.1
0.1 * x
x + 0.1
x - 0.1
0.1 - x
x / 0.1
0.1 / x
x // 0.1
x % 0.1
x ** 0.1
0.1 ** x
x + -0.1
x + +0.1
x * TENTH
x * THIRD
x * (1.0 / 3.0)
1.0 / 3.0 * x
x * HOLDER.scale
x * NUMBERS[2]
x * math.pi
x + qd.static(0.1 + 0.2)
min(x, 0.1)
max(-x, 0.1)
max(0.1, -x, 0.05)
abs(-0.1) * x
(0.1 if x > 1 else 0.2) * x
(0.1 if x > 2 else 0.2) * x
-(0.1 if x > 1 else 0.2) + x
(x if x > 2 else 0.1)
(0.1 if x > 1 else x)
((0.1 if x > 1 else 0.2) if x > 1.5 else (0.3 if x > 0 else x)) * x
(x * 2 if x > 2 else math.pi)
(0.1 if x > 1 else 1) * x
math.atan2(0.1, x)
math.atan2(x, 0.1)
math.sqrt(0.1) * x
x * 10000000000
x + 10000000001
BIG * x
x * (2 ** 40 + 1)
float((x * 0.1 < 0.17) + 2 * (x * 0.1 == 0.17) + 4 * (0.17 == x * 0.1))
""".strip().split("\n")
KERNEL_TEXT = {"math.atan2": "qd.atan2", "math.sqrt": "qd.sqrt", "math.pi": "qd.math.pi"}


@pytest.mark.parametrize("text", SCALARS)
def test_next_to_an_f64(target, text):
    want = eval(text, {**globals(), "x": X})
    for name, instead in KERNEL_TEXT.items():
        text = text.replace(name, instead)
    got = make(f"def k(x: qd.f64) -> qd.f64:\n    return {text}\n")(X)
    assert got == pytest.approx(want, rel=4e-16), text
    if "**" not in text and "atan2" not in text:
        assert got == want


@pytest.mark.parametrize("text", [t for t in SCALARS if "0000" not in t and "BIG" not in t and "2 **" not in t])
def test_next_to_an_f32_is_an_f32(target, text):
    """The type of the result does not change: with an f32, literals are f32."""
    for name, instead in KERNEL_TEXT.items():
        text = text.replace(name, instead)
    source = f"def k(x: qd.f32, out: qd.types.ndarray()):\n    y = {text}\n    out[0] = y\n"
    out = np.zeros(1)
    make(source)(X, out)
    assert out[0] == np.float32(out[0])


STORES = """
a[0] = 0.1
a[1] = -0.1; a[0] = -a[1]
a[0] = TENTH
a[0] = qd.math.pi - 3.1415926535897931 + 0.1
a[0] += 0.1
a[0] -= -0.1
a[0] = 0.2; a[0] *= 0.5
a[0] = 1.0; a[0] /= 10.0
a[0] = 0.1; a[0] %= 0.25
qd.atomic_add(a[0], 0.1)
qd.atomic_max(a[0], 0.1)
a[0] = 1.0; qd.atomic_min(a[0], 0.1)
y: qd.f64 = 0.1; a[0] = y
y = qd.f64(0.1); a[0] = y
y = qd.cast(0.1, qd.f64); a[0] = y
y = a[1]; y = 0.1; a[0] = y
y = a[1]; y += 0.1; a[0] = y
a[0] = 0.1 if n > 0 else 0.2
a[0] = qd.select(n > 0, 0.1, 0.2)
a[0] = qd.select(n > 0, 0.1, a[1])
v = qd.Vector([0.1, 0.2], dt=qd.f64); a[0] = v[0]
v = qd.Vector([0.1, a[1]]); a[0] = v[0]
v = qd.Vector([a[1], a[1]]) + qd.Vector([0.1, 0.2]); a[0] = v[0]
v = qd.Vector([a[1], a[1]]) + [0.1, 0.2]; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v += [0.1, 0.2]; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v += 0.1; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v = 0.1; a[0] = v[1]
v = qd.Vector([a[1], a[1]]); v = [0.1, 0.2]; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v.x = 0.1; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v.yx = [0.2, 0.1]; a[0] = v[0]
v = qd.Vector([a[1], a[1]]); v.fill(0.1); a[0] = v[0]
v = qd.Vector([a[1] + 1, a[1]]); a[0] = v.dot(qd.Vector([0.1, 0.2]))
v = qd.Vector([a[1] + 1, a[1]]); a[0] = qd.Vector([0.1, 0.2]).dot(v)
v = qd.Vector([a[1] + 1, a[1]]); a[0] = (v * (qd.Vector([0.05, 0.2]) * 2.0))[0]
v = qd.Vector([a[1] + 1, a[1]]); a[0] = (qd.Matrix([[0.1, 0.2], [0.3, 0.4]]) @ v)[0]
v = qd.Vector([a[1] + 1, a[1]]); a[0] = (GRID @ v)[0]
v = qd.Vector([a[1] + 1, a[1]]); a[0] = (qd.Matrix.diag(2, 0.1) @ v)[0]
v = qd.Vector([a[1] + 1, a[1]]); w = (v if n > 5 else qd.Vector([0.1, 0.2])); a[0] = w[0]
v = vec2(0.1, 0.2); a[0] = v[0]
v = vec2(0.1); a[0] = v[1]
v: vec2 = [0.1, 0.2]; a[0] = v[0]
a[0] = TABLE[n - 1]
a[0] = TABLE[0]
a[0] = TABLE[n - 1] * (a[1] + 1)
a[0] = TABLE.x + a[1]
a[0] = returned() + a[1]
a[0] = returned_f64()
a[0] = chosen(n) + a[1]
a[0] = times(a[1] + 1, 0.1)
a[0] = plus_default(a[1])
a[0] = typed(0.1)
a[0] = first(qd.Vector([0.1, 0.2]), a[1])
a[0] = first(TABLE, a[1])
a[0] = tenths()[0] + a[1]
a[0] = qd.math.clamp(a[1], 0.1, 0.9)
a[0] = qd.math.mix(a[1], a[1] + 1, 0.1)
s = pair(x=0.1, y=0.2); a[0] = s.x
s = pair(0.2, 0.2); s.x = 0.1; a[0] = s.x
b[0] = 0.1; a[0] = b[0]
for i in range(1): a[0] = 0.1 * (i + 1)
a[0] = n / 10
a[0] = 1 / (n * 10)
a[0] = (0.05 + n * 0.05) * (a[1] + 1)
a[0] = qd.sqrt(0.01 * n) + a[1] if n > 5 else 0.1
a[0] = abs(-0.1 * n)
a[0] = max(0.1 * n, -1)
a[0] = qd.select(n > 0, 0.1 * n, n)
v = qd.Vector([a[1], a[1]]) + qd.Vector([0.1 * n, 0.2]); a[0] = v[0]
""".strip().split("\n")


@qd.func
def returned():
    return 0.1


@qd.func
def returned_f64() -> qd.f64:
    return 0.1


@qd.func
def chosen(n):
    return 0.1 if n > 0 else 0.2


@qd.func
def times(x, y):
    return x * y


@qd.func
def plus_default(x, y=0.1):
    return x + y


@qd.func
def typed(x: qd.f64):
    return x


@qd.func
def first(v, x):
    return v[0] + x


@qd.func
def tenths():
    return qd.Vector([0.1, 0.2])


vec2 = qd.types.vector(2, qd.f64)
pair = qd.types.struct(x=qd.f64, y=qd.f64)


@pytest.mark.parametrize("text", STORES)
def test_stored_in_an_f64(target, text):
    lines = [line.strip() for line in text.split(";")]
    a, b = np.zeros(2), np.zeros((1,))
    body = "".join(f"    {line}\n" for line in lines)
    make(f"def k(n: qd.i32, a: qd.types.ndarray(), b: qd.types.ndarray()):\n{body}")(1, a, b)
    assert a[0] == 0.1, a[0]


def test_results(target):
    assert make("def k() -> qd.f64:\n    return 0.1\n")() == 0.1
    assert make("def k() -> qd.f64:\n    return qd.math.pi\n")() == math.pi
    assert make("def k() -> (qd.f64, qd.f32):\n    return 0.1, 0.1\n")() == (0.1, np.float32(0.1))
    v = make("def k() -> vec2:\n    return qd.Vector([0.1, 0.2])\n")()
    assert list(v) == [0.1, 0.2]
    s = make("def k() -> pair:\n    return pair(0.1, 0.2)\n")()
    assert (s.x, s.y) == (0.1, 0.2)


def test_alone_and_in_variables(target):
    """A variable has a type: default_fp where nothing else says so."""
    assert make("def k() -> qd.f64:\n    y = 0.1\n    return y\n")() == np.float32(0.1)
    assert make("def k() -> qd.f64:\n    t = (0.1, 0.2)\n    return t[0]\n")() == np.float32(0.1)
    assert make("def k() -> qd.f64:\n    v = qd.Vector([0.1, 0.2])\n    return v[0]\n")() == np.float32(0.1)
    assert make("def k(x: qd.f32) -> qd.f64:\n    return x * 0.1\n")(1.5) == np.float32(1.5) * np.float32(0.1)
    qd.init(default_fp=qd.f64)
    assert make("def k() -> qd.f64:\n    y = 0.1\n    return y\n")() == 0.1
    assert make("def k(c: qd.i32) -> qd.f64:\n    return 0.1 if c > 0 else 0.2\n")(1) == 0.1


def test_f16_keeps_its_rules(target):
    out = np.zeros(1)
    make("def k(x: qd.f16, out: qd.types.ndarray()):\n    out[0] = x * 0.1\n")(1.5, out)
    assert out[0] == np.float32(1.5) * np.float32(0.1)


INTEGERS = """
i64: x + 10000000000
i64: 10000000000 - x
i64: x * -3000000000
i64: x // 10000000000
i64: x % 10000000001
i64: x & 0xFFFFFFFFF
i64: min(x, 10000000000)
i64: (x if x > 5 else 10000000000)
i64: (10000000000 if x > 5 else x)
i64: (x < 10000000000) + x
i64: x + BIG
u64: x + 9223372036854775808
u64: x ^ 18446744073709551615
u32: x + 3000000000
u32: x ^ 0xFFFFFFFF
u64: qd.select(x > 5, x, 18446744073709551615)
""".strip().split("\n")


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_beyond_i32(target, case):
    t, _, text = case.partition(": ")
    for x in (7, 2):
        want = eval(text, {**globals(), "x": x, "qd": type("", (), {"select": lambda c, a, b: a if c else b})})
        bits = int(t[1:])
        want = want % 2**bits if t[0] == "u" else want
        assert make(f"def k(x: qd.{t}) -> qd.{t}:\n    return {text}\n")(x) == want


def test_integers_that_fit_nowhere(target):
    with pytest.raises(qd.IngotError, match="exceeded the range"):
        make("def k(x: qd.i32) -> qd.i32:\n    return x + 10000000000\n")(1)
    with pytest.raises(qd.IngotError, match="exceeded the range"):
        make("def k() -> qd.i32:\n    y = 10000000000\n    return 1\n")()


def test_vectors_beyond_registers(target):
    """Large vectors go through memory; the numbers are the same."""
    numbers = [i / 10 for i in range(80)]

    @qd.kernel
    def large(a: qd.types.ndarray(dtype=qd.types.vector(80, qd.f64), ndim=1), out: qd.types.ndarray()):
        v = a[0] + qd.Vector(numbers)
        out[0], out[1] = v[3], v[79]
        a[0] = qd.Vector(numbers)
        a[1] = 0.1
        out[2], out[3] = a[0][7], a[1][79]

    a, out = np.zeros((2, 80)), np.zeros(4)
    large(a, out)
    assert list(out) == [0.3, 7.9, 0.7, 0.1]
