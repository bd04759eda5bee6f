"""Debug mode: asserts, bounds and overflow, with their place, from any thread; and arch=qd.python."""

import contextlib
import io
import itertools

import numpy as np
import pytest

import ingot as qd

ARCHS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=list(ARCHS))
def arch(request):
    qd.init(arch=ARCHS[request.param], debug=True)
    yield ARCHS[request.param]
    qd.init(arch=qd.cpu)


@pytest.fixture
def plain():
    qd.init(arch=qd.cpu)
    yield
    qd.init(arch=qd.cpu)


def output(call):
    to = io.StringIO()
    with contextlib.redirect_stdout(to):
        call()
    return to.getvalue()


# ---- assert ----------------------------------------------------------------------------------------


@qd.kernel
def asserts(x: qd.i32, f: qd.f64):
    assert x != 1
    assert x != 2, "plain text"
    assert x != 3, f"x is {x}, {f}, {f:.2f}, {True}"
    assert x != 4, "x is %d, %s" % (x, f)
    assert x != 5, "{} {:.1f}".format(x, f)
    assert x != 6, 17


@pytest.mark.parametrize("x, text", [
    (1, "assertion failed"),
    (2, "plain text"),
    (3, "x is 3, 0.5, 0.50, True"),
    (4, "x is 4, 0.5"),
    (5, "5 0.5"),
    (6, "17"),
])
def test_assert(arch, x, text):
    with pytest.raises(qd.IngotAssertionError) as caught:
        asserts(x, 0.5)
    line = asserts.__wrapped__.__code__.co_firstlineno + 1 + x
    assert str(caught.value).startswith(f"{__file__}:{line}:5: {text}\n    assert x != {x}")
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, RuntimeError)
    asserts(0, 0.5)


def test_assert_only_in_debug(plain):
    asserts(1, 0.5)


@qd.func
def positive(v):
    assert v > 0, f"{v} is not positive"
    return v


@qd.kernel
def in_parallel(a: qd.types.ndarray(), at: qd.i32):
    for i in range(a.shape[0]):
        a[i] = positive(1 if i != at else -i)


def test_from_any_thread(arch):
    n = 2000 if arch is qd.interp else 1_000_000
    a = np.zeros(n, np.int32)
    for at in (0, n // 2, n - 1):
        if at == 0:
            continue
        with pytest.raises(qd.IngotAssertionError, match=f"-{at} is not positive"):
            in_parallel(a, at)
        assert a[at] != -at  # what came before may be there, what failed is not
    in_parallel(a, -1)
    assert (a == 1).all()


# ---- bounds ----------------------------------------------------------------------------------------


@qd.kernel
def read(a: qd.types.ndarray(), i: qd.i32, j: qd.i64) -> qd.i32:
    return a[i, j]


@pytest.mark.parametrize("i, j, axis, index, size", [
    (3, 0, 0, 3, 3), (-1, 0, 0, -1, 3), (0, 4, 1, 4, 4), (2, -(2**40), 1, -(2**40), 4),
])
@pytest.mark.parametrize("options", [{"debug": True}, {"check_out_of_bound": True}], ids=str)
def test_bounds(options, i, j, axis, index, size):
    qd.init(arch=qd.cpu, **options)
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    with pytest.raises(qd.IngotIndexError) as caught:
        read(a, i, j)
    text = str(caught.value)
    assert f"Out of bound access: index {index} is out of bounds for axis {axis}" in text
    assert f"with size {size}\n    return a[i, j]" in text
    assert text.splitlines()[2] == " " * (13 + 3 * axis) + "^"
    assert isinstance(caught.value, (AssertionError, IndexError))
    assert read(a, 2, 3) == 11
    qd.init(arch=qd.cpu)


@qd.kernel
def write_beyond(a: qd.types.ndarray(), n: qd.i32):
    for i in range(n):
        a[i] += 1


def test_partial_results(arch):
    a = qd.ndarray(qd.i32, (8,))
    with pytest.raises(qd.IngotIndexError, match="index 8 "):
        write_beyond(a, 9)
    write_beyond(a, 8)
    assert set(a.to_numpy()) <= {1, 2}


# ---- overflow ---------------------------------------------------------------------------------------


@qd.kernel
def wraps(op: qd.template(), x: qd.template(), y: qd.types.ndarray()):
    a = y[0]
    b = y[1]
    if qd.static(op == "+"):
        y[2] = a + b
    if qd.static(op == "-"):
        y[2] = a - b
    if qd.static(op == "*"):
        y[2] = a * b
    if qd.static(op == "<<"):
        y[2] = a << b


NAMES = {"+": "Addition", "-": "Subtraction", "*": "Multiplication", "<<": "Shift left"}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64"])
@pytest.mark.parametrize("op", list(NAMES))
def test_overflow(op, dtype):
    qd.init(arch=qd.cpu, debug=True)
    info = np.iinfo(dtype)
    values = sorted({info.min, info.min + 1, -1, 0, 1, 2, 3, info.bits // 2, info.max // 2, info.max}
                    - ({-1} if info.min == 0 else set()))
    exact = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
             "<<": lambda a, b: a << b}[op]
    for a in values:
        for b in values:
            if op == "<<" and not 0 <= b < info.bits:
                continue
            y = np.array([a, b, 0], dtype)
            text = output(lambda: wraps(op, dtype, y))
            result = exact(a, b)
            wrapped = (result - info.min) % (1 << info.bits) + info.min
            assert y[2] == wrapped, (a, b)
            fits = info.min <= result <= info.max
            assert (f"{NAMES[op]} overflow detected" in text) != fits, (a, b, text)
            assert fits or f"y[2] = a {op} b\n" in text
    qd.init(arch=qd.cpu)


@qd.kernel
def updates(op: qd.template(), x: qd.template(), y: qd.types.ndarray()):
    for i in range(1):
        a = y[0]
        if qd.static(op == "+"):
            y[2] += y[1]
            a += y[1]
        if qd.static(op == "-"):
            y[2] -= y[1]
            a -= y[1]
        if qd.static(op == "*"):
            y[2] *= y[1]
            a *= y[1]
        y[3] = a


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_overflow_of_updates(arch, op, dtype):
    """Of an element, which is atomic, and of a local."""
    info = np.iinfo(dtype)
    exact = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[op]
    for a, b in itertools.product((info.min, 0, 1, 7, info.max), (0, 1, 2, info.max)):
        y = np.array([a, b, a, 0], dtype)
        text = output(lambda: updates(op, dtype, y))
        result = exact(a, b)
        wrapped = (result - info.min) % (1 << info.bits) + info.min
        assert y[2] == wrapped and y[3] == wrapped, (a, b)
        times = 0 if info.min <= result <= info.max else 2
        assert text.count(f"{NAMES[op]} overflow detected") == times, (a, b, text)
        assert not times or f"y[2] {op}= y[1]\n" in text and f"a {op}= y[1]\n" in text


@qd.kernel
def overflows_often(n: qd.i32) -> qd.i32:
    for i in range(n):
        for j in range(3):
            x = 2147483647 + i
    return 1


def test_overflow_is_said_once_per_place(arch):
    text = output(lambda: overflows_often(100))
    assert text.count("Addition overflow detected") == 1
    assert "x = 2147483647 + i" in text and __file__ in text
    assert overflows_often(1) == 1


def test_no_overflow_reports_otherwise(plain):
    assert output(lambda: overflows_often(10)) == ""


# ---- static_assert, sync ---------------------------------------------------------------------------


@qd.kernel
def static_asserts(x: qd.template()):
    qd.static_assert(x == 4, f"x is {x}, not 4")
    qd.sync()


@qd.kernel
def static_assert_at_run_time(x: qd.i32):
    qd.static_assert(x == 4)


def test_static_assert(plain):
    static_asserts(4)
    with pytest.raises(qd.IngotCompilationError, match="Static assertion failed: x is 3, not 4"):
        static_asserts(3)
    with pytest.raises(qd.IngotTypeError, match="Static assert with non-static condition"):
        static_assert_at_run_time(4)


# ---- arch=qd.python ----------------------------------------------------------------------------------


@qd.func
def doubled(x):
    return x * 2


@qd.kernel
def everything(a: qd.types.ndarray(), c: qd.types.ndarray(), n: qd.i32) -> qd.i32:
    for i in range(n):
        a[i] = doubled(i) + 0.5
        qd.atomic_add(c[0], i)
    count = 0
    for i in a:
        count += 1
    for i, j in qd.ndrange(2, 3):
        qd.atomic_max(c[1], i * 10 + j)
    old = qd.atomic_cas(c[2], 0, 7) + qd.atomic_exchange(c[3], 9)
    for i in qd.static(range(2)):
        c[4] += i
    qd.loop_config(serialize=True)
    for i in range(3):
        c[5] += qd.bit_shr(-1, 28) + qd.cast(qd.floor(2.5), qd.i32)
    qd.atomic_sub(c[6], -5)
    qd.atomic_mul(c[6], 3)
    qd.atomic_xor(c[7], 6)
    return count + old


@pytest.mark.parametrize("make", [
    lambda: (qd.ndarray(qd.f32, (4,)), qd.ndarray(qd.i32, (8,))),
    lambda: (np.zeros(4, np.float32), np.zeros(8, np.int32)),
], ids=["ndarray", "numpy"])
def test_python(make, plain):
    results = []
    for arch in (qd.cpu, qd.python, qd.interp):
        qd.init(arch=arch)
        a, c = make()
        count = everything(a, c, n=4)
        results.append((count, [float(a[i]) for i in range(4)], [int(c[i]) for i in range(8)]))
    assert results[0] == results[1] == results[2]


def test_python_shows_frames(plain):
    import sys

    qd.init(arch=qd.python)
    frames = []

    @qd.kernel
    def stops(x: qd.i32):
        frames.append(sys._getframe().f_locals["x"])

    stops(3)
    assert frames == [3]


def test_python_atomics_need_a_place(plain):
    qd.init(arch=qd.python)
    with pytest.raises(qd.IngotSyntaxError, match="must be an array element"):
        qd.atomic_add(3, 1)


def needs_torch(array):
    return pytest.importorskip("torch").from_numpy(array)


@qd.kernel
def elements(a: qd.types.ndarray(qd.types.vector(3, qd.f32), 1), m: "qd.types.ndarray(qd.types.matrix(2, 2, qd.i32), 1)",
             b: qd.types.ndarray(qd.types.vector(3, qd.f32), 1)) -> qd.f32:
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i].sum() + b[i][1]
        a[i] = a[i] * 2
        a[i][0] = 7
        m[i] = m[i] @ m[i]
        m[i][1, 0] += 1
    return s


@pytest.mark.parametrize("make", [np.asarray, needs_torch], ids=["numpy", "torch"])
@pytest.mark.parametrize("shared", [False, True])
def test_python_elements_of_other_libraries(make, shared, plain):
    """Vectors and matrices in arrays of NumPy and torch, also one array given twice."""
    results = []
    for arch in (qd.cpu, qd.python):
        qd.init(arch=arch)
        a, m = make(np.arange(6, dtype=np.float32).reshape(2, 3)), make(np.ones((2, 2, 2), np.int32))
        b = a if shared else make(np.ones((2, 3), np.float32))
        results.append((elements(a, m, b), a.tolist(), m.tolist(), b.tolist()))
    assert results[0] == results[1]
