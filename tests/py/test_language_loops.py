"""The language: loops and what runs in parallel. Every test runs as native code and on the
interpreter."""

import re

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


def parallel_loops(kernel, *args):
    return len(re.findall(r"= loop parallel", kernel.lower(*args)[1]))


def test_range():
    @qd.kernel
    def k(out: qd.types.ndarray(), a: qd.i32, b: qd.i32):
        for i in range(a, b):
            out[i] += 1
        for i in range(b):
            out[i] += 10

    for a, b in ((2, 5), (5, 2), (0, 0), (-3, 1)):
        out = qd.ndarray(qd.i32, 8)
        k(out, max(a, 0), b)
        want = np.zeros(8, int)
        want[max(a, 0) : max(b, 0)] += 1
        want[: max(b, 0)] += 10
        assert list(out.to_numpy()) == list(want)


def test_range_with_a_step():
    @qd.kernel
    def serial(out: qd.types.ndarray(), a: qd.i32, b: qd.i32, step: qd.i32) -> qd.i32:
        n = 0
        for _ in range(1):
            for i in range(a, b, step):
                out[n] = i
                n += 1
        return n

    @qd.kernel
    def parallel(out: qd.types.ndarray(), a: qd.i64, b: qd.i64, step: qd.i32):
        for i in range(a, b, step):
            out[abs(i - a)] += 1

    @qd.kernel
    def constant(out: qd.types.ndarray()) -> qd.i32:
        n = 0
        for _ in range(1):
            for i in range(-2147483648, 2147483647, 1431655765):
                out[n] = i
                n += 1
            for i in qd.static(range(6, 0, -2)):
                out[n] = i
                n += 1
            for i in range(3, -4, -3):
                out[n] = i
                n += 1
        return n

    out = np.zeros(100, np.int64)
    for a in (-7, 0, 3):
        for b in (-9, 0, 3, 12):
            for step in (-4, -3, -1, 1, 2, 5, 100):
                want = list(range(a, b, step))
                assert list(out[:serial(out, a, b, step)]) == want
                out[:] = 0
                parallel(out, a, b, step)
                assert sorted(np.nonzero(out)[0]) == sorted(abs(i - a) for i in want) and out.max() <= 1
    want = [*range(-2147483648, 2147483647, 1431655765), 6, 4, 2, 3, 0, -3]
    assert list(out[:constant(out)]) == want
    with pytest.raises(qd.IngotValueError, match="the step of a range is 0"):
        serial(out, 0, 3, 0)
    with pytest.raises(qd.IngotValueError, match="iterations or more"):
        parallel(out, -2**63, 2**63 - 1, 1)
    with pytest.raises(qd.IngotSyntaxError, match="Range should have 1 or 2 arguments, found 3"):
        qd.init(reference=True)
        serial(out, 0, 3, 2)


def test_length_of_arrays():
    @qd.kernel
    def k(a: qd.types.ndarray()) -> qd.i32:
        n = 0
        for i in range(len(a)):
            n += 1
        return n * 100 + len(a)

    assert k(qd.ndarray(qd.f32, 7)) == 707 and k(qd.ndarray(qd.f32, (3, 5))) == 303
    assert k(qd.Vector.ndarray(4, qd.f32, 2)) == 202
    f, v = qd.field(qd.f32, (5, 3)), qd.Vector.field(3, qd.f32, 6)

    @qd.kernel
    def others(view: qd.BufferView) -> qd.i32:
        return len(f) * 100 + len(v) * 10 + len(view)

    assert others(qd.ndarray(qd.f32, 9)[2:5]) == 563

    @qd.kernel
    def none(a: qd.types.ndarray(ndim=0)) -> qd.i32:
        return len(a)

    with pytest.raises(qd.IngotTypeError, match="has no length"):
        none(qd.ndarray(qd.f32, ()))


def test_loop_variables_cannot_be_assigned_or_shadowed():
    @qd.kernel
    def assign():
        for i in range(3):
            i = 2

    with pytest.raises(qd.IngotSyntaxError, match="loop variable 'i' cannot be assigned"):
        assign()

    @qd.kernel
    def shadow():
        for i in range(3):
            for i in range(2):
                pass

    with pytest.raises(qd.IngotSyntaxError, match="already declared in the outer scope"):
        shadow()


@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_ndrange_order(axes):
    text = "" if axes is None else f", axes={axes}"
    source = (
        "def k(out: qd.types.ndarray()):\n"
        "    n = 0\n"
        "    qd.loop_config(serialize=True)\n"
        f"    for i, j, l in qd.ndrange(2, (1, 4), 2{text}):\n"
        "        out[i, j, l] = n\n"
        "        n += 1\n"
    )
    scope = {"qd": qd}
    exec(source, scope)
    out = qd.ndarray(qd.i32, (2, 4, 2))
    qd.kernel(source=source)(scope["k"])(out)
    want = np.zeros((2, 4, 2), int)
    order = axes or (0, 1, 2)
    ranges = [range(2), range(1, 4), range(2)]
    n = 0
    for a in ranges[order[0]]:
        for b in ranges[order[1]]:
            for c in ranges[order[2]]:
                at = [0, 0, 0]
                at[order[0]], at[order[1]], at[order[2]] = a, b, c
                want[tuple(at)] = n
                n += 1
    assert (out.to_numpy() == want).all()


def test_ndrange_grouped_and_arrays():
    @qd.kernel
    def k(a: qd.types.ndarray(), m: qd.i32):
        for I in qd.grouped(qd.ndrange(m, (0, 3))):
            a[I] += I[0] * 10 + I[1]
        for i, j in a:
            a[i, j] += 100
        for I in qd.grouped(a):
            a[I] += 1000 * len(I)
        for i, j in qd.ndrange(0, 5):
            a[i, j] = -1

    a = qd.ndarray(qd.i32, (2, 3))
    k(a, 2)
    want = np.fromfunction(lambda i, j: i * 10 + j + 2100, (2, 3), dtype=int)
    assert (a.to_numpy() == want).all()


def test_wrong_number_of_targets():
    @qd.kernel
    def one():
        for i in qd.ndrange(2, 3):
            pass

    with pytest.raises(qd.IngotSyntaxError, match="number of the loop variables not equal"):
        one()

    @qd.kernel
    def two(a: qd.types.ndarray()):
        for i, j in a:
            pass

    with pytest.raises(qd.IngotSyntaxError, match="Number of struct-for indices"):
        two(qd.ndarray(qd.i32, 3))


def test_static_loops():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        for i in qd.static(range(1, 8, 3)):
            s = s * 10 + i
        for i, v in qd.static(enumerate((5, n), 1)):
            s += i * v
        for a, b in qd.static(zip([1, 2], (3, 4))):
            s += a * b
        for I in qd.static(qd.ndrange(2, (1, 3))):
            s += I[0] + I[1]
        for i in qd.static([1, 2, 3, 4]):
            if qd.static(i == 2):
                continue
            if qd.static(i == 4):
                break
            s += i * 10000
        return s

    assert k(7) == 147 + 5 + 14 + 3 + 8 + (1 + 2 + 2 + 3) + 40000


def test_break_of_a_static_loop_needs_a_static_if():
    @qd.kernel
    def k(n: qd.i32):
        for i in qd.static(range(3)):
            if n > i:
                break

    with pytest.raises(qd.IngotSyntaxError, match="You are trying to `break` a static `for` loop"):
        k(1)


def test_what_is_parallel():
    flag = True

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32):
        for i in range(n):  # 1
            a[i] = i
            for j in range(n):
                a[j] += 0
        if n > 2:
            for i in range(n):
                a[i] += 1
        if qd.static(flag):
            for i in range(n):  # 2
                a[i] += 1
        for _ in qd.static(range(2)):
            for i in range(n):  # 3, 4
                a[i] += 1
        qd.loop_config(serialize=True)
        for i in range(n):
            a[i] += 1

    a = qd.ndarray(qd.i32, 4)
    assert parallel_loops(k, a, 4) == 4
    k(a, 4)
    assert list(a.to_numpy()) == [5, 6, 7, 8]


@qd.func
def fill(a, n: qd.i32, v):
    for i in range(n):
        a[i] += v
    s = 0
    for i in range(n):
        s += a[i]
    return s


@qd.func
def fill_twice(a, n):
    return fill(a, n, 2) + fill(a, n, 3)


def test_loops_of_funcs_at_the_top_level_are_parallel():
    @qd.kernel
    def top(a: qd.types.ndarray()) -> qd.i32:
        r = fill_twice(a, a.shape[0])
        return r

    @qd.kernel
    def below(a: qd.types.ndarray(), n: qd.i32) -> qd.i32:
        r = 0
        if n > 0:
            r = fill_twice(a, a.shape[0])
        return r

    a = qd.ndarray(qd.i32, 10)
    assert parallel_loops(top, a) == 4 and parallel_loops(below, a, 1) == 0
    assert top(a) == 10 * 2 + 10 * 5
    assert below(a, 1) == 10 * 7 + 10 * 10
    assert list(a.to_numpy()) == [10] * 10


@qd.func(requires_top_level=True)
def phases(a, n: qd.i32):
    for i in range(n):
        a[i] += 1


@qd.func
def through(a, n):
    phases(a, n)


def test_requires_top_level():
    @qd.kernel
    def good(a: qd.types.ndarray()):
        phases(a, 3)
        through(a, 2)
        for _ in qd.static(range(2)):
            phases(a, 1)

    a = qd.ndarray(qd.i32, 3)
    good(a)
    assert list(a.to_numpy()) == [4, 2, 1]

    @qd.kernel
    def in_if(a: qd.types.ndarray(), n: qd.i32):
        if n > 0:
            phases(a, 3)

    @qd.kernel
    def in_loop(a: qd.types.ndarray(), n: qd.i32):
        for i in range(n):
            through(a, 3)

    for bad in (in_if, in_loop):
        with pytest.raises(qd.IngotSyntaxError, match="requires_top_level=True"):
            bad(a, 1)


def test_a_func_that_returns_early_has_serial_loops():
    @qd.func
    def early(a, n: qd.i32):
        if n > 5:
            return 1
        for i in range(n):
            a[i] = i
        return 2

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32) -> qd.i32:
        return early(a, n)

    a = qd.ndarray(qd.i32, 4)
    assert parallel_loops(k, a, 3) == 0
    assert k(a, 6) == 1 and k(a, 4) == 2 and list(a.to_numpy()) == [0, 1, 2, 3]


def test_errors_in_opened_funcs_have_their_place():
    qd.init(arch=qd.cfg.arch, debug=True)

    @qd.func
    def reach(a, n: qd.i32):
        for i in range(n):
            a[i] = i  # here

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32):
        reach(a, n)

    with pytest.raises(qd.IngotIndexError, match=r"(?s)test_language_loops.*# here"):
        k(qd.ndarray(qd.i32, 4), 5)


def test_sums_over_parallel_loops():
    @qd.kernel
    def k(a: qd.types.ndarray()) -> (qd.i64, qd.f64, qd.i32, qd.i32):
        s = qd.i64(0)
        f = qd.f64(0.0)
        low = 1000000
        high = -1000000
        for i in range(a.shape[0]):
            s += a[i]
            f += a[i] * 0.5
            qd.atomic_min(low, a[i])
            qd.atomic_max(high, a[i])
        return s, f, low, high

    n = 20_000
    v = (np.arange(n, dtype=np.int64) * 7919 % 10007 - 5000).astype(np.int32)
    a = qd.ndarray(qd.i32, n)
    a.from_numpy(v)
    assert k(a) == (v.sum(), v.sum() * 0.5, v.min(), v.max())


def test_iterating_python_sequences_needs_static():
    @qd.kernel
    def k():
        for i in [1, 2]:
            pass

    with pytest.raises(qd.IngotSyntaxError, match="qd.static"):
        k()


def test_iterators_travel_through_funcs():
    @qd.func
    def stencil():
        return qd.ndrange(3, 3)

    @qd.func
    def both(n):
        return range(1, n), qd.ndrange(n, 2)

    @qd.func
    def total(r: qd.template()):
        s = 0
        for i in r:
            s += i
        return s

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32):
        for _ in range(1):
            for I in qd.static(qd.grouped(stencil())):
                a[I] += I[0] * 10 + I[1]
            for i, j in stencil():
                a[i, j] += 100
            m = n
            once, pairs = both(m)
            later = range(m)
            m = 3
            for i in once:
                a[2, 0] += 1000 * i
            for i, j in pairs:
                a[2, 1] += 1000
            for i in later:
                a[2, 2] += 1000
            a[0, 0] += total(range(n)) + total(range(n, 4)) * 1000

    a = np.zeros((3, 3), np.int32)
    k(a, 2)
    assert a.tolist() == [[5101, 101, 102], [110, 111, 112], [1120, 4121, 2122]]


def test_a_choice_of_iterators_is_refused():
    @qd.func
    def pick(n):
        if n > 2:
            return range(n)
        return range(2)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        for i in pick(n):
            s += i
        return s

    with pytest.raises(qd.IngotTypeError, match="a range cannot be returned"):
        k(3)
