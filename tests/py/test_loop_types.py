"""Loop indices take the type that their bounds need: every kind of bound in `range` and `ndrange`,
at the top level and nested, compared with Python's own loops. What no index can count is an error."""

import itertools

import numpy as np
import pytest

import ingot as qd
from conftest import samples

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}  # fmt: skip
FAR = 2**33


@pytest.fixture(params=TARGETS)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def make(source, **scope):
    scope = {"qd": qd, "np": np, **scope}
    exec(source, scope)
    return qd.kernel(source=source)(scope["k"])


def indices(k, *args):
    """What the kernel noted: its last argument is an array of rows, the first one counts."""
    out = np.zeros((64, 3), np.int64)
    k(*args, out)
    n = int(out[0, 0])
    return sorted(map(tuple, out[1 : n + 1].tolist()))


NOTE = """
def k({params}, out: qd.types.ndarray()):
{pre}    for {names} in {iter}:
{pre}        at = qd.atomic_add(out[0, 0], 1) + 1
{pre}        out[at, 0] = {first}
{pre}        out[at, 1] = {second}
"""


def noting(params, iter, names="i", first="i", second="0", nested=False):
    pre = "    for _ in range(1):\n        " if nested else ""
    text = NOTE.format(params=params, names=names, iter=iter, first=first, second=second, pre="    " * nested)
    if nested:
        head, body = text.split("\n", 2)[1], text.split("\n", 2)[2]
        text = f"{head}\n    for _ in range(1):\n{body}"
    return text


def near(t):
    """Ranges at the ends of the type and around zero, of a few iterations."""
    info = np.iinfo(TYPES[t])
    high = min(info.max, 2**63 - 1)
    pairs = [(0, 3), (1, 4), (high - 3, high), (info.min, info.min + 2), (5, 2), (0, 0)]
    if info.min < 0:
        pairs += [(-3, 2)]
    if info.max > 2**40:
        pairs += [(FAR, FAR + 3), (2**31 - 1, 2**31 + 2), (2**32 - 1, 2**32 + 1)]
    return pairs


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("t", TYPES)
def test_range_and_ndrange(target, t, nested):
    k1 = make(noting(f"a: qd.{t}, b: qd.{t}", "range(a, b)", nested=nested))
    k2 = make(noting(f"a: qd.{t}, b: qd.{t}", "qd.ndrange((a, b))", nested=nested))
    k3 = make(noting(f"a: qd.{t}, b: qd.{t}", "qd.ndrange((a, b), 2)", "i, j", "i", "j", nested))
    k4 = make(noting(f"a: qd.{t}, b: qd.{t}", "qd.ndrange(2, (a, b))", "j, i", "i", "j", nested))
    k5 = make(noting(f"a: qd.{t}, b: qd.{t}", "qd.grouped(qd.ndrange((a, b), 2, axes=(1, 0)))",
                     "I", "I[0]", "I[1]", nested))  # fmt: skip
    for a, b in near(t):
        want = [(i, 0, 0) for i in range(a, b)]
        assert indices(k1, a, b) == want, (t, a, b)
        assert indices(k2, a, b) == want, (t, a, b)
        both = [(i, j, 0) for i in range(a, b) for j in range(2)]
        for k in (k3, k4, k5):
            assert indices(k, a, b) == both, (t, a, b)


@pytest.mark.parametrize("a, b", list(itertools.product(TYPES, TYPES)))
def test_mixed_types(a, b):
    qd.init(arch=qd.interp)
    k = make(noting(f"a: qd.{a}, b: qd.{b}", "range(a, b)"))
    k2 = make(noting(f"a: qd.{a}, b: qd.{b}", "qd.ndrange((a, b), (a, b))", "i, j", "i", "j"))
    begin, end = np.iinfo(TYPES[a]), np.iinfo(TYPES[b])
    tops = [min(begin.max, end.max - 2, 2**63 - 3), min(begin.max, end.max, 2**63 - 1) - 2, 3]
    for low in tops:
        assert indices(k, low, low + 2) == [(low, 0, 0), (low + 1, 0, 0)]
        assert len(indices(k2, low, low + 2)) == 4
    if begin.min < 0:
        assert indices(k, -1, 2) == [(-1, 0, 0), (0, 0, 0), (1, 0, 0)]


CONSTANTS = [(0, 3), (-2, 1), (2**31 - 2, 2**31 - 1), (2**31 - 1, 2**31 + 1), (FAR, FAR + 2),
             (-(2**40), -(2**40) + 2), (2**63 - 3, 2**63 - 1)]  # fmt: skip


@pytest.mark.parametrize("a, b", CONSTANTS)
def test_constants(target, a, b):
    want = [(i, 0, 0) for i in range(a, b)]
    assert indices(make(noting("x: qd.i32", f"range({a}, {b})")), 0) == want
    assert indices(make(noting("x: qd.i32", "range(A, B)"), A=a, B=b), 0) == want
    assert indices(make(noting("x: qd.i32", f"qd.ndrange(({a}, {b}), 1)", "i, j")), 0) == want
    assert indices(make(noting("x: qd.i32", f"qd.static(range({a}, {b}))")), 0) == want
    assert indices(make(noting("x: qd.i32", f"qd.static(qd.ndrange(({a}, {b}), 1))", "i, j")), 0) == want
    far = make(noting(f"x: qd.i64", f"range(x, {b})"))
    assert indices(far, a) == want


def index_type(text):
    return "i64" if "loop parallel i64" in text else "i32"


def test_the_type_of_the_index():
    qd.init(arch=qd.interp)

    def type_of(params, iter, *args):
        k = make(f"def k({params}, o: qd.types.ndarray()):\n    for i in {iter}:\n        o[0] = i\n")
        return index_type(k.lower(*args, np.zeros(1))[1])

    for t in ("i8", "i16", "u8", "u16", "i32"):
        assert type_of(f"n: qd.{t}", "range(n)", 1) == "i32"
    for t in ("u32", "i64", "u64"):
        assert type_of(f"n: qd.{t}", "range(n)", 1) == "i64"
        assert type_of(f"n: qd.{t}", "range(3, n)", 1) == "i64"
        assert type_of(f"n: qd.{t}", "range(n, 3)", 1) == "i64"
    assert type_of("n: qd.i32", "range(2**31 - 1)", 1) == "i32"
    assert type_of("n: qd.i32", "range(2**31)", 1) == "i64"
    assert type_of("n: qd.i32", "range(np.int64(5))", 1) == "i32"
    qd.init(arch=qd.interp, default_ip=qd.i64)
    assert type_of("n: qd.i32", "range(10)", 1) == "i32"


def test_differences_beyond_i32(target):
    """end - begin of two i32 does not fit in one."""
    k = make("""
def k(a: qd.i32, b: qd.i32, out: qd.types.ndarray()):
    for _ in range(1):
        n = 0
        for i, j in qd.ndrange((a, b), 2):
            if n == 3:
                break
            out[n, 0] = i
            out[n, 1] = j
            n += 1
        m = 0
        for i in qd.ndrange((a, b)):
            if m == 2:
                break
            out[3 + m, 0] = i
            m += 1
""")
    out = np.zeros((5, 2), np.int64)
    k(-1100000000, 1100000000, out)
    assert out.tolist() == [[-1100000000, 0], [-1100000000, 1], [-1099999999, 0],
                            [-1100000000, 0], [-1099999999, 0]]  # fmt: skip
    out[:] = 7
    k(1, -(2**31), out)
    assert (out == 7).all()


def test_all_of_them_run():
    qd.init(arch=qd.cpu)
    for iter, names in {"qd.ndrange((a, b))": "i", "qd.ndrange(1, (a, b))": "j, i"}.items():
        k = make(f"def k(a: qd.i32, b: qd.i32, n: qd.types.ndarray()):\n    for {names} in {iter}:\n"
                 "        n[0] += 1\n")  # fmt: skip
        last = make(f"def k(a: qd.i32, b: qd.i32, n: qd.types.ndarray()):\n    for {names} in {iter}:\n"
                    "        qd.atomic_max(n[0], i)\n")  # fmt: skip
        n, top = np.zeros(1, np.int64), np.zeros(1, np.int64)
        k(-1100000000, 1100000000, n)
        last(-1100000000, 1100000000, top)
        assert (n[0], top[0]) == (2200000000, 1099999999)


def test_rows_from_anywhere(target):
    """Loops over several axes that begin below zero, or where an argument says."""
    k = make("""
def k(a: qd.i32, b: qd.i32, out: qd.types.ndarray()):
    for i, j in qd.ndrange((a, b), (a - 1, b + 1)):
        out[i - a, j - a + 1] += i * 1000 + j
    for i, j, l in qd.ndrange((-2, 2), (a, b), (-1, 1)):
        out[i + 2, j - a] += l
""")
    for a, b in [(0, 7), (-5, 6), (3, 40), (4, 4), (2, -3)]:
        n = max(b - a, 0)
        out, want = (np.zeros((max(n, 4), n + 2), np.int32) for _ in range(2))
        k(a, b, out)
        for i in range(a, b):
            for j in range(a - 1, b + 1):
                want[i - a, j - a + 1] += i * 1000 + j
        for i in range(-2, 2):
            for j in range(a, b):
                want[i + 2, j - a] -= 1
        assert np.array_equal(out, want), (a, b)


def test_quotients_of_ones_own_are_no_axes():
    """raw_div and raw_mod of the index by a width of 0 give 0 each time: one place for all."""
    qd.init(arch=qd.cpu, cpu_max_num_threads=2)
    for t in ("i32", "i64"):
        k = make(f"""
def k(n: qd.{t}, w: qd.{t}, out: qd.types.ndarray()):
    for i in range(n):
        out[qd.raw_div(i, w), qd.raw_mod(i, w)] += 1
""")
        out = np.zeros((2, 2), np.int64)
        k(3000000, 0, out)
        assert out.tolist() == [[3000000, 0], [0, 0]]


@pytest.mark.parametrize("nested", [False, True])
def test_what_no_index_counts(target, nested):
    one = make(noting("a: qd.u64, b: qd.u64", "range(a, b)", nested=nested))
    two = make(noting("a: qd.u64, b: qd.u64", "qd.ndrange((a, b), 2)", "i, j", nested=nested))
    for k in (one, two):
        for a, b in [(0, 2**63), (2**63, 2**63 + 3), (2**64 - 2, 2**64 - 1)]:
            with pytest.raises(qd.IngotValueError, match=r"an index counts up to 2\*\*63 - 1"):
                indices(k, a, b)
        assert len(indices(k, 3, 5)) in (2, 4)
    wide = make(noting("a: qd.i64, b: qd.i64", "qd.ndrange((a, b), 2)", "i, j", nested=nested))
    for a, b in [(-(2**63), 2**63 - 1), (-(2**62), 2**62), (0, 2**62)]:
        with pytest.raises(qd.IngotValueError, match=r"2\*\*63 iterations or more"):
            indices(wide, a, b)
    assert indices(wide, 2**63 - 1, -(2**63)) == []
    long = make(noting("n: qd.i32, m: qd.i32", "qd.ndrange(n, n, n, m)", "i, j, l, o", nested=nested))
    with pytest.raises(qd.IngotValueError, match=r"2\*\*63 iterations or more"):
        indices(long, 2**31 - 1, 5)
    assert indices(long, 2**31 - 1, 0) == []
    assert len(indices(long, 2, 3)) == 24


def test_what_no_index_counts_while_compiling():
    qd.init(arch=qd.interp)
    for iter, names in {
        "range(2**63)": "i",
        "range(x, 2**63 + 5)": "i",
        "qd.ndrange(2**63, 2)": "i, j",
        "qd.ndrange((-(2**62), 2**62), 2)": "i, j",
        "qd.ndrange(2**31, 2**31, 2)": "i, j, l",
    }.items():
        with pytest.raises(qd.IngotError, match=r"2\*\*63"):
            indices(make(noting("x: qd.i64", iter, names)), 0)
    assert indices(make(noting("x: qd.i64", "qd.ndrange(2**31, 2**31, 2, 0)", "i, j, l, m")), 0) == []


def test_unrolled_beyond_i64(target):
    k = make("def k(out: qd.types.ndarray()):\n    for i in qd.static(range(2**63 - 1, 2**63 + 2)):\n"
             "        out[i - (2**63 - 1)] = i\n")  # fmt: skip
    out = np.zeros(3, np.uint64)
    k(out)
    assert out.tolist() == [2**63 - 1, 2**63, 2**63 + 1]


def test_floats(target):
    """Cut to an i32 with a warning, as in the reference; never to another number."""
    k = make(noting("a: qd.f64", "range(a)"))
    with pytest.warns(UserWarning, match="from f64 to i32"):
        assert indices(k, 2.9) == [(0, 0, 0), (1, 0, 0)]
    for a in (2.0**31, 3e9, 1e300, float("inf"), float("nan"), -3e9):
        with pytest.raises(qd.IngotValueError, match="no i32 holds"):
            indices(k, a)


def test_random_nests(target):
    """Nests of loops with bounds of random types and places, on both targets alike."""
    rng = np.random.default_rng(5)
    for _ in range(samples(40)):
        types = [str(rng.choice(list(TYPES))) for _ in range(3)]
        axes, args, want_axes = [], [], []
        for n, t in enumerate(types):
            info = np.iinfo(TYPES[t])
            low = int(rng.integers(max(info.min, -(2**62)), min(info.max, 2**62) - 3))
            count = int(rng.integers(0, 4))
            axes.append(f"(a{n}, b{n})")
            args += [low, low + count]
            want_axes.append(range(low, low + count))
        params = ", ".join(f"a{n}: qd.{t}, b{n}: qd.{t}" for n, t in enumerate(types))
        text = noting(params, f"qd.ndrange({', '.join(axes)})", "i, j, l", "i - j", "l")
        want = sorted(((i - j + 2**63) % 2**64 - 2**63, l, 0) for i, j, l in itertools.product(*want_axes))
        if all(t not in ("u32", "i64", "u64") for t in types[:2]):
            want = sorted(((x + 2**31) % 2**32 - 2**31, l, z) for x, l, z in want)
        if len(want) < 60:
            assert indices(make(text), *args) == want, (types, args)
