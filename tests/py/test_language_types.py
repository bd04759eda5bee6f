"""The language: dtypes, promotion, conversions and what operators compute. The expected types
are those of the reference, asked of it for every pair; here they are a model in Python. Values
are compared with NumPy's. Every test runs as native code and on the interpreter."""

import itertools
import re

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
NAMES = "u1 i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64".split()
NUMPY = {n: np.dtype({"u": "uint", "i": "int", "f": "float"}[n[0]] + n[1:]) for n in NAMES[1:]}
NUMPY["u1"] = np.dtype(bool)
COMPARE = {"lt", "le", "gt", "ge", "eq", "ne"}


@pytest.fixture(params=TARGETS)
def target(request):
    qd.init(arch=TARGETS[request.param], fast_math=False)


def size(t):
    return 1 if t == "u1" else int(t[1:]) // 8


def promote(a, b):
    if (a[0] == "f") != (b[0] == "f"):
        return a if a[0] == "f" else b
    if size(a) != size(b):
        return a if size(a) > size(b) else b
    return a if a[0] == "u" and b[0] == "i" else b


def number(t):
    """Booleans in arithmetic are integers."""
    return "i32" if t == "u1" else t


def result_type(op, a, b):
    """dtype of `a op b`, or None when it is refused."""
    floats = "f" in (a[0], b[0])
    if op in ("<<", ">>", "&", "|", "^", "and") and floats:
        return None
    if op in ("<<", ">>"):
        return number(a)
    if op == "**":
        return number(promote(a, b) if b[0] == "f" else a)
    if op == "/":
        return promote(a if a[0] == "f" else "f32", b if b[0] == "f" else "f32")
    if op in ("<", "=="):
        return "u1"
    if op == "atan2":
        return "f64" if "f64" in (a, b) else "f32"
    if op in ("+", "-", "*", "//", "%", "raw_div", "raw_mod"):
        return number(promote(a, b))
    return promote(a, b)


def make(source):
    scope = {"qd": qd}
    exec(source, scope)
    return qd.kernel(source=source)(scope["k"])


def text_of(op, a, b):
    if op == "select":
        return f"qd.select({a} != 0, {a}, {b})"
    return f"qd.{op}({a}, {b})" if op.replace("_", "").isalnum() and op != "and" else f"{a} {op} {b}"


def type_in_ir(text):
    """dtype of the last value that is stored."""
    types = {}
    for number, op, first in re.findall(r"%(\d+) = (\w+) (\S+?),?(?:\s|$)", text):
        types[number] = (
            "u1" if op in COMPARE else types.get(first[1:]) if first[0] == "%" else first
        )
    return types[re.findall(r"store %\d+, %(\d+)", text)[-1]]


OPS = "+ - * / // % ** << >> & | ^ < == and min max select raw_div raw_mod atan2".split()


@pytest.mark.parametrize("op", OPS)
def test_promotion(op):
    qd.init(arch=qd.interp)
    for a, b in itertools.product(NAMES, NAMES):
        k = make(f"def k(a: qd.{a}, b: qd.{b}):\n    r = {text_of(op, 'a', 'b')}\n    r = r\n")
        want = result_type(op, a, b)
        if want is None:
            with pytest.raises(qd.IngotTypeError, match="unsupported operand|integral"):
                k.lower(1, 1)
        else:
            assert type_in_ir(k.lower(1, 1)[1]) == want, (a, op, b)


@pytest.mark.parametrize("op", "+ - * / // % << & < == min max select".split())
def test_literals_take_the_default_types(op):
    qd.init(arch=qd.interp)
    for a, (literal, b) in itertools.product(NAMES, {"1": "i32", "1.5": "f32", "True": "u1"}.items()):
        k = make(f"def k(a: qd.{a}):\n    r = {text_of(op, 'a', literal)}\n    r = r\n")
        want = result_type(op, a, b)
        if want is None:
            with pytest.raises(qd.IngotTypeError):
                k.lower(1)
        else:
            assert type_in_ir(k.lower(1)[1]) == want, (a, op, literal)


def test_default_types_are_settings():
    qd.init(arch=qd.interp, default_ip=qd.i64, default_fp=qd.f64)
    k = make("def k(a: qd.i32, b: qd.f32):\n    r = a + 1\n    r = r\n    s = a / 2\n    s = s\n")
    text = k.lower(1, 1)[1]
    assert "i64" in text and type_in_ir(text) == "f64"


UNARY = {
    "-a": number,
    "+a": number,
    "abs(a)": number,
    "~a": lambda t: None if t[0] == "f" else t,
    "not a": lambda t: None if t[0] == "f" else "u1",
    "qd.sin(a)": lambda t: t if t[0] == "f" else None,
    "qd.sqrt(a)": lambda t: t if t[0] == "f" else "f32",
    "qd.exp(a)": lambda t: t if t[0] == "f" else "f32",
    "qd.floor(a)": lambda t: t,
    "int(a)": lambda t: "i32",
    "float(a)": lambda t: "f32",
    "bool(a)": lambda t: "u1",
    "qd.cast(a, qd.u16)": lambda t: "u16",
    "qd.f64(a)": lambda t: "f64",
}


@pytest.mark.parametrize("text", UNARY)
def test_unary_types(text):
    qd.init(arch=qd.interp)
    for t in NAMES:
        k = make(f"def k(a: qd.{t}):\n    r = {text}\n    r = r\n")
        want = UNARY[text](t)
        if want is None:
            with pytest.raises(qd.IngotTypeError):
                k.lower(1)
        elif not (text == "qd.floor(a)" and t[0] != "f"):
            assert type_in_ir(k.lower(1)[1]) == want, (text, t)


def edges(t):
    if t == "u1":
        return np.array([0, 1], bool)
    if t[0] == "f":
        return np.array([0, 1, -1, 2, -2.5, 3, 0.5, 7.25, -7, 100], NUMPY[t])
    low, high = np.iinfo(NUMPY[t]).min, np.iinfo(NUMPY[t]).max
    values = [0, 1, -1, 2, 3, -3, 7, -7, 100, high, low]
    return np.array([v for v in values if low <= v <= high], NUMPY[t])


def compute(op, x, y):
    with np.errstate(all="ignore"):
        if op in ("//", "%"):
            zero = y == 0
            r = (np.floor_divide if op == "//" else np.mod)(x, np.where(zero, y.dtype.type(1), y))
            if x.dtype.kind == "f":
                return np.floor_divide(x, y) if op == "//" else np.mod(x, y)
            return np.where(zero, r.dtype.type(0), r)
        return {
            "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and,
            "|": np.bitwise_or, "^": np.bitwise_xor, "<": np.less, "==": np.equal,
            "min": np.minimum, "max": np.maximum,
        }[op](x, y)  # fmt: skip


@pytest.mark.parametrize("op", "+ - * // % & | ^ < == min max".split())
def test_values(target, op):
    """In the promoted type, wrapping; division by zero of integers gives 0."""
    for a, b in itertools.product(NAMES[1:], NAMES[1:]):
        want_type = promote(a, b)
        if result_type(op, a, b) is None or want_type == "f16":
            continue
        x, y = (v.ravel() for v in np.meshgrid(edges(a), edges(b)))
        out = qd.ndarray(qd.u1 if op in ("<", "==") else getattr(qd, want_type), len(x))
        k = make(
            "def k(x: qd.types.ndarray(), y: qd.types.ndarray(), o: qd.types.ndarray()):\n"
            f"    for i in range(o.shape[0]):\n        o[i] = {text_of(op, 'x[i]', 'y[i]')}\n"
        )
        k(np.ascontiguousarray(x), np.ascontiguousarray(y), out)
        with np.errstate(all="ignore"):
            want = compute(op, x.astype(NUMPY[want_type]), y.astype(NUMPY[want_type]))
        same = want.astype(out.to_numpy().dtype)
        assert np.array_equal(out.to_numpy(), same, equal_nan=want_type[0] == "f"), (a, op, b)


def test_sums_of_literals(target):
    """Literals are Python's numbers until they meet a type: nothing wraps in silence."""

    @qd.kernel
    def fits() -> (qd.i64, qd.u64):
        return qd.i64(2**40), qd.u64(2**63 - 1 + 2**63)

    assert fits() == (2**40, 2**64 - 1)

    @qd.kernel
    def too_large(x: qd.types.ndarray()):
        x[0] = 65536 * 65536

    with pytest.raises(qd.IngotTypeError, match="4294967296 exceeded the range"):
        too_large(qd.ndarray(qd.i32, 1))


def test_shifts(target):
    @qd.kernel
    def k(x: qd.i32, u: qd.u32, n: qd.i32) -> (qd.i32, qd.i32, qd.u32):
        return x << n, x >> n, u >> n

    assert k(-8, 0x80000000, 1) == (-16, -4, 0x40000000)
    assert k(1, 1, 31) == (-(2**31), 0, 0)
    assert k(1, 2, 33) == (2, 0, 1)  # counts are taken modulo the width


def test_true_division_and_modulo(target):
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> (qd.f32, qd.i32, qd.i32, qd.i32, qd.i32):
        return a / b, a // b, a % b, qd.raw_div(a, b), qd.raw_mod(a, b)

    assert k(-7, 2) == (-3.5, -4, 1, -3, -1)
    assert k(7, -2) == (-3.5, -4, -1, -3, 1)


def test_power(target):
    @qd.kernel
    def k(a: qd.i32, n: qd.i32, x: qd.f32) -> (qd.i32, qd.f32, qd.f32):
        return a**n, x**n, x**0.5

    assert k(3, 4, 4.0) == (81, 256.0, 2.0)
    assert k(-2, 31, 1.0)[0] == -(2**31)
    # 1/x**n, towards zero
    assert [k(a, -3, 1.0)[0] for a in (1, -1, 2, -2, 0)] == [1, -1, 0, 0, 0]


def test_rounding(target):
    @qd.kernel
    def k(x: qd.f32) -> (qd.f32, qd.f32, qd.f32, qd.i32, qd.i32):
        return qd.round(x), qd.floor(x), qd.ceil(x), qd.cast(x, qd.i32), qd.floor(x, qd.i32)

    assert k(2.5) == (3, 2, 3, 2, 2)
    assert k(-2.5) == (-3, -3, -2, -2, -3)
    assert k(0.49999997)[0] == 0


def test_casts(target):
    @qd.kernel
    def k(x: qd.f64) -> (qd.i8, qd.u8, qd.i64, qd.u1, qd.f16):
        return (
            qd.cast(qd.cast(x, qd.i32), qd.i8),
            qd.cast(qd.cast(x, qd.i32), qd.u8),
            qd.cast(x, qd.i64),
            qd.cast(x, qd.u1),
            qd.cast(x, qd.f16),
        )

    assert k(300.7) == (44, 44, 300, True, np.float16(300.7))
    assert k(-1.5) == (-1, 255, -1, True, -1.5)
    assert k(0.0) == (0, 0, 0, False, 0)


def test_bit_cast(target):
    @qd.kernel
    def k(x: qd.f32, n: qd.i64) -> (qd.u32, qd.f64):
        return qd.bit_cast(x, qd.u32), qd.bit_cast(n, qd.f64)

    assert k(1.5, 0x4000000000000000) == (0x3FC00000, 2.0)

    @qd.kernel
    def bad(x: qd.f32) -> qd.i64:
        return qd.bit_cast(x, qd.i64)

    with pytest.raises(qd.IngotTypeError, match="sizes differ"):
        bad(1.0)


def test_typed_literals(target):
    @qd.kernel
    def k() -> (qd.u8, qd.i64, qd.f64, qd.f64):
        return qd.u8(200) + qd.u8(100), qd.i64(1) << 40, qd.f64(0.1), 0.1

    assert k() == (44, 1 << 40, 0.1, 0.1)

    for text, message in {
        "qd.u8(300)": "exceeded the range",
        "qd.i32(1.5)": "Floating-point literals must be annotated",
        "qd.f32(1)": "Integer literals must be annotated",
        "3000000000": "exceeded the range of default_ip",
    }.items():
        with pytest.raises(qd.IngotTypeError, match=message):
            make(f"def k():\n    x = {text}\n").lower()


def test_what_is_stored_is_converted(target):
    @qd.kernel
    def k(a: qd.types.ndarray(), x: qd.f32):
        a[0] = x
        a[1] += x
        a[2] = x > 1
        a[3] = qd.u8(255)

    a = qd.ndarray(qd.i16, 4)
    with pytest.warns(UserWarning, match="may lose precision: i16 <- f32"):
        k(a, 2.75)
    assert list(a.to_numpy()) == [2, 2, 1, 255]


def test_floats_are_no_indices(target):
    @qd.kernel
    def k(a: qd.types.ndarray(), x: qd.f32):
        a[x] = 1

    with pytest.raises(qd.IngotTypeError, match="indices must be integers"):
        k(qd.ndarray(qd.i32, 3), 1.0)


def test_index_types(target):
    @qd.kernel
    def k(a: qd.types.ndarray(), i: qd.u8, j: qd.i64, b: qd.u1):
        a[i] += 1
        a[j] += 2
        a[b] += 4

    a = qd.ndarray(qd.i32, 4)
    k(a, 3, 2, True)
    assert list(a.to_numpy()) == [0, 4, 2, 1]


def test_arrays_without_axes(target):
    @qd.kernel
    def k(a: qd.types.ndarray()) -> qd.f32:
        a[None] += 1.5
        a[()] *= 2
        return a[None]

    a = qd.ndarray(qd.f32, ())
    a[None] = 1
    assert k(a) == 5


INDICES = ["(x[i] * x[i]) % 33", "(x[i] * 73856093 + x[0] * 19349663) % 32", "(x[i] + x[i]) & 31", "(x[i] * x[i] >> 27) + 16",
           "abs((x[i] - 2000000000) // 100000000)", "-((x[i] + x[i]) % -32)", "(~(x[i] * 3)) % 17"]


@pytest.mark.parametrize("index", INDICES)
def test_what_wraps_inside_of_a_subscript(index, target):
    """The index that it is as a variable: a remainder or a mask of what wrapped is one."""
    text = f"def k(x: A, a: A):\n    for i in range(x.shape[0]):\n        a[{index}] += 1\n"
    plain = f"def k(x: A, a: A):\n    for i in range(x.shape[0]):\n        j = {index}\n        a[j] += 1\n"
    scope, other = ({"A": qd.types.ndarray(qd.i32, 1)} for _ in range(2))
    exec(text, scope)
    exec(plain, other)
    x = np.random.default_rng(3).integers(-2**31, 2**31, 5000).astype(np.int32)
    got, want = np.zeros(50, np.int32), np.zeros(50, np.int32)
    qd.kernel(scope["k"], source=text)(x, got)
    qd.kernel(other["k"], source=plain)(x, want)
    assert got.tolist() == want.tolist() and want.sum() == len(x)
