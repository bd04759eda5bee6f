"""Atomics: old values, all dtypes, contention; and the functions on bits and numbers."""

import math

import numpy as np
import pytest

import ingot as qd

pytestmark = pytest.mark.filterwarnings("ignore:.*may lose precision")

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


@pytest.fixture(params=[qd.cpu, qd.interp, qd._arch.mock], ids=repr, autouse=True)
def arch(request):
    qd.init(arch=request.param)
    yield
    qd.init(arch=qd.cpu)


@qd.kernel
def update(a: qd.types.ndarray(), old: qd.types.ndarray(), op: qd.template()):
    for i in range(a.shape[0]):
        if qd.static(op == "add"):
            old[i] = qd.atomic_add(a[i], 3)
        if qd.static(op == "sub"):
            old[i] = qd.atomic_sub(a[i], 3)
        if qd.static(op == "mul"):
            old[i] = qd.atomic_mul(a[i], 3)
        if qd.static(op == "min"):
            old[i] = qd.atomic_min(a[i], 3)
        if qd.static(op == "max"):
            old[i] = qd.atomic_max(a[i], 3)
        if qd.static(op == "and"):
            old[i] = qd.atomic_and(a[i], 3)
        if qd.static(op == "or"):
            old[i] = qd.atomic_or(a[i], 3)
        if qd.static(op == "xor"):
            old[i] = qd.atomic_xor(a[i], 3)
        if qd.static(op == "exchange"):
            old[i] = qd.atomic_exchange(a[i], 3)


NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
         "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
         "exchange": lambda a, b: np.full_like(a, b)}


@pytest.mark.parametrize("dtype, op", [
    (dtype, op) for dtype in INTEGERS + FLOATS for op in NUMPY
    if dtype in INTEGERS or op not in ("and", "or", "xor")
])
def test_update(dtype, op):
    before = np.array([0, 1, 2, 3, 4, 5, 100, 120]).astype(dtype)
    a, old = before.copy(), np.zeros_like(before)
    update(a, old, op)
    assert np.array_equal(old, before)
    assert np.array_equal(a, NUMPY[op](before, np.array(3, dtype)).astype(dtype))


@qd.kernel
def bits_of_floats(a: qd.types.ndarray()):
    qd.atomic_and(a[0], 1)


def test_bits_of_floats():
    with pytest.raises(qd.IngotTypeError, match="atomic_and"):
        bits_of_floats(np.zeros(1, np.float32))


@qd.kernel
def slots(counter: qd.types.ndarray(), out: qd.types.ndarray()):
    for i in range(out.shape[0]):
        out[qd.atomic_add(counter[0], 1)] = i


def test_slots_are_unique():
    counter, out = np.zeros(1, np.int32), np.full(20000, -1, np.int32)
    slots(counter, out)
    assert counter[0] == 20000 and np.array_equal(np.sort(out), np.arange(20000))


@qd.kernel
def cas_sum(a: qd.types.ndarray(), n: qd.i32):
    for i in range(n):
        done = False
        while not done:
            seen = qd.atomic_add(a[0], 0)
            done = qd.atomic_cas(a[0], seen, seen + 2) == seen


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_cas(dtype):
    a = np.zeros(1, dtype)
    cas_sum(a, 3000)
    assert a[0] == 6000


@qd.kernel
def cas_local() -> qd.i32:
    x = 5
    first = qd.atomic_cas(x, 4, 9)
    second = qd.atomic_cas(x, 5, 7)
    return first * 100 + second * 10 + x


def test_cas_of_a_local():
    assert cas_local() == 557


@qd.kernel
def cas_float(a: qd.types.ndarray()):
    qd.atomic_cas(a[0], 1.0, 2.0)


@qd.kernel
def atomic_of_a_number(n: qd.i32):
    qd.atomic_add(n, 1)


def test_mistakes():
    with pytest.raises(qd.IngotTypeError, match="atomic_cas takes integers only"):
        cas_float(np.zeros(1, np.float32))
    with pytest.raises(qd.IngotSyntaxError, match="non-writable target"):
        atomic_of_a_number(1)


# ---- functions on bits and numbers ----------------------------------------------------------------


@qd.kernel
def bits(x: qd.types.ndarray(), out: qd.types.ndarray()):
    for i in range(x.shape[0]):
        out[i, 0] = qd.math.popcnt(x[i])
        out[i, 1] = qd.math.clz(x[i])
        out[i, 2] = qd.math.ffs(x[i])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 8, 100, info.max, info.max - 1, info.min, info.min + 1], dtype)
    out = np.zeros((len(x), 3), np.int32)
    bits(x, out)
    for value, (count, leading, first) in zip(x, out):
        text = f"{int(value) % (1 << info.bits):0{info.bits}b}"
        assert count == text.count("1")
        assert leading == len(text) - len(text.lstrip("0"))
        assert first == (len(text) - text.rindex("1") if "1" in text else 0)


@qd.kernel
def numbers(x: qd.types.ndarray(), out: qd.types.ndarray()):
    for i in range(x.shape[0]):
        v = x[i]
        out[i, 0] = qd.round(v)
        out[i, 1] = qd.floor(v)
        out[i, 2] = qd.ceil(v)
        out[i, 3] = qd.trunc(v)
        out[i, 4] = qd.round(v, qd.i32)
        out[i, 5] = qd.math.sign(v)
        out[i, 6] = qd.math.clamp(v, -1, 1)
        out[i, 7] = qd.max(v, 0.25, -3)
        out[i, 8] = qd.min(v, 0.25, 3, 2)
        out[i, 9] = qd.math.fract(v)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers(dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, -0.75, 3, 0], dtype)
    out = np.zeros((len(x), 10), np.float64)
    numbers(x, out)
    for v, row in zip(x.astype(float), out):
        away = math.copysign(math.floor(abs(v) + 0.5), v)
        assert list(row) == [
            away, math.floor(v), math.ceil(v), math.trunc(v), away, float(np.sign(v)),
            min(max(v, -1), 1), max(v, 0.25), min(v, 0.25), v - math.floor(v),
        ]


@qd.kernel
def conversions(f: qd.f32, i: qd.i32, u: qd.u32) -> (qd.u32, qd.f32, qd.i32, qd.i32, qd.u32, qd.f64):
    return (qd.bit_cast(f, qd.u32), qd.bit_cast(qd.u32(1069547520), qd.f32), qd.raw_div(-7, i),
            qd.raw_mod(-7, i), qd.bit_shr(u, 4), qd.select(i > 2, qd.sqrt(i * 3), qd.exp(0)))


def test_conversions():
    assert conversions(1.5, 3, 0xF0000000) == (0x3FC00000, 1.5, -2, -1, 0x0F000000, 3.0)


@qd.kernel
def real_only(i: qd.i32) -> qd.f32:
    return qd.sin(i)


@qd.kernel
def integral_only(f: qd.f32) -> qd.i32:
    return qd.math.ffs(f)


def test_wrong_kind():
    with pytest.raises(qd.IngotTypeError, match="'sin' takes real inputs only"):
        real_only(1)
    with pytest.raises(qd.IngotTypeError, match="'ffs' takes integral inputs only"):
        integral_only(1.0)


@qd.kernel
def fns(mask: qd.u32, base: qd.u32, offset: qd.i32) -> qd.u32:
    return qd.math.fns(mask, base, offset)


def test_fns():
    none = 0xFFFFFFFF
    for mask, base, offset, at in [(0b1011, 0, 1, 0), (0b1011, 0, 2, 1), (0b1011, 0, 3, 3),
                                   (0b1011, 0, 4, none), (0b1011, 2, 1, 3), (0b1011, 3, -2, 1),
                                   (0b1011, 0, -2, none), (0b1011, 2, 0, none), (0b1011, 3, 0, 3),
                                   (1 << 31, 0, 1, 31)]:
        assert fns(mask, base, offset) == at == qd.math.fns(mask, base, offset), (mask, base, offset)


def spreader(element):
    @qd.kernel
    def spread(a: qd.types.ndarray(element, 1), v: qd.types.ndarray(element, 1)):
        for i in range(v.shape[0]):
            a[i % 7] += v[i]
            a[i % 5] -= 2.0 * v[i]

    return spread


@pytest.mark.parametrize("shape", [(2,), (3,), (4,), (2, 2)])
@pytest.mark.parametrize("odd", [0, 1])
def test_neighbours(shape, odd):
    """Floats that are updated two at a time, also in memory that begins between two."""
    element = qd.types.vector(*shape, qd.f32) if len(shape) == 1 else qd.types.matrix(*shape, qd.f32)
    n, k = 30_000 if qd.cfg.arch is qd.cpu else 500, math.prod(shape)
    room = np.zeros(7 * k + 3, np.float32)
    first = (room.ctypes.data // 4 + odd) % 2
    a = room[first : first + 7 * k].reshape(7, *shape)
    assert a.ctypes.data % 8 == 4 * odd
    v = (np.arange(n * k) % 11).astype(np.float32).reshape(n, *shape)
    spreader(element)(a, v)
    want = np.zeros((7, *shape))
    np.add.at(want, np.arange(n) % 7, v)
    np.subtract.at(want, np.arange(n) % 5, 2 * v)
    assert np.array_equal(a, want)
    assert not room[:first].any() and not room[first + 7 * k :].any()
