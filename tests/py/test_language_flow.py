"""The language: branches, loops, names and assignments. Every test runs as native code and
on the interpreter."""

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


def test_if_elif_else():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = 0
        if n < 0:
            r = -1
        elif n == 0:
            r = 0
        elif n < 10:
            r = 1
        else:
            r = 2
        return r

    assert [k(n) for n in (-5, 0, 3, 10)] == [-1, 0, 1, 2]


def test_conditions_are_integers():
    @qd.kernel
    def k(n: qd.i64, b: qd.u1) -> qd.i32:
        r = 0
        if n:
            r += 1
        if not b:
            r += 10
        while n and r < 100:
            r += 100
        return r

    assert [k(0, 0), k(1 << 40, 1)] == [10, 101]

    @qd.kernel
    def bad(x: qd.f32) -> qd.i32:
        r = 0
        if x:
            r = 1
        return r

    with pytest.raises(qd.IngotTypeError, match="`if` conditions must be an integer"):
        bad(1.0)


def test_short_circuit_runs_the_right_side_only_when_needed():
    @qd.func
    def touch(a, i, v):
        a[i] += 1
        return v

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32) -> qd.i32:
        r = 0
        for _ in range(1):
            if n > 2 and touch(a, 0, 1):
                r += 1
            if n > 2 or touch(a, 1, 0):
                r += 10
        return r

    a = qd.ndarray(qd.i32, 2)
    assert k(a, 1) == 0 and list(a.to_numpy()) == [0, 1]
    assert k(a, 3) == 11 and list(a.to_numpy()) == [1, 1]


def test_and_or_give_the_value():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> (qd.i32, qd.i32, qd.i32):
        return a and b, a or b, not a

    assert k(0, 7) == (0, 7, 1)
    assert k(3, 7) == (7, 3, 0)
    assert k(3, 0) == (0, 3, 0)


def test_comparisons_chain():
    @qd.kernel
    def k(a: qd.i32, b: qd.f32, c: qd.i32) -> qd.i32:
        return a < b <= c != 5

    assert [k(1, 2.0, 2), k(2, 2.0, 3), k(1, 2.0, 5), k(1, 3.5, 3)] == [1, 0, 0, 0]


def test_ternary_evaluates_one_side():
    @qd.func
    def touch(a, i):
        a[i] += 1
        return a[i]

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32) -> qd.f32:
        return touch(a, 0) if n > 0 else touch(a, 1) + 0.5

    a = qd.ndarray(qd.i32, 2)
    assert k(a, 1) == 1 and k(a, 0) == 1.5 and list(a.to_numpy()) == [1, 1]


def test_while_break_continue():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        i = 0
        while True:
            i += 1
            if i > n:
                break
            if i % 2 == 0:
                continue
            s += i
        return s

    assert [k(n) for n in (0, 1, 10)] == [0, 1, 25]


def test_nested_loops_break_the_inner_one():
    @qd.kernel
    def k(out: qd.types.ndarray(), n: qd.i32):
        for i in range(n):
            for j in range(10):
                if j == i:
                    break
                if j % 2:
                    continue
                out[i] += j

    out = qd.ndarray(qd.i32, 8)
    k(out, 8)
    assert list(out.to_numpy()) == [sum(range(0, i, 2)) for i in range(8)]


def test_serialized_loop_may_break():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        s = 0
        qd.loop_config(serialize=True)
        for i in range(100):
            if i == n:
                break
            s += i
        return s

    assert k(5) == 10

    @qd.kernel
    def bad(n: qd.i32):
        for i in range(100):
            if i == n:
                break

    with pytest.raises(qd.IngotSyntaxError, match="Cannot break in the outermost loop"):
        bad(3)


def test_assignments():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        a = b = n
        a += 1
        (c, d), e = (a, b), 4
        c, d = d, c
        first = second = (c, d)
        return a * 100000 + b * 10000 + c * 1000 + d * 100 + e * 10 + first[0] - second[1]

    assert k(2) == 3 * 100000 + 2 * 10000 + 2 * 1000 + 3 * 100 + 40 + 2 - 3


def test_variables_keep_their_first_type():
    @qd.kernel
    def k() -> (qd.f32, qd.f32):
        a = 1
        a = 2.9
        b = 1.0
        b = 3
        return a, b / 2

    with pytest.warns(UserWarning, match="may lose precision"):
        assert k() == (2.0, 1.5)


def test_annotated_assignments():
    @qd.kernel
    def k(n: qd.i32) -> (qd.i64, qd.u8, qd.f32):
        x: qd.i64 = n
        y: qd.u8 = 300 - n
        z: float = 2
        return x * qd.i64(1000000000000), y, z / 4

    assert k(1) == (1000000000000, 43, 0.5)


def test_walrus():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = (y := n + 1) * y
        if (z := r + 1) > 10:
            r += z
        return r

    assert [k(2), k(3)] == [9, 33]


def test_augmented_assignments():
    @qd.kernel
    def k(a: qd.types.ndarray(), x: qd.f32) -> qd.f32:
        r = x
        r += 1
        r -= 0.5
        r *= 4
        r /= 2
        r //= 1
        r %= 4
        r **= 2
        n = 13
        n <<= 2
        n >>= 1
        n |= 1
        n &= 27
        n ^= 3
        a[0] += n
        a[1] -= n
        a[2] *= n
        a[3] //= 3
        a[4] |= 8
        return r

    a = qd.ndarray(qd.i32, 5)
    a.from_numpy(np.array([1, 2, 3, -7, 1], np.int32))
    n = (((13 << 2 >> 1) | 1) & 27) ^ 3
    assert k(a, 2.0) == ((((2 + 1 - 0.5) * 4 / 2) // 1) % 4) ** 2
    assert list(a.to_numpy()) == [1 + n, 2 - n, 3 * n, -3, 9]


@pytest.mark.filterwarnings("ignore:.*may lose precision")
def test_sums_convert_what_is_added_however_it_is_computed():
    """To the type of the variable, before the addition; products are computed in the wider type."""
    @qd.func
    def same(x):
        return x

    @qd.kernel
    def k(x: qd.types.ndarray(dtype=qd.f64, ndim=1), whole: qd.types.ndarray(dtype=qd.i32, ndim=1),
          part: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for _ in range(1):
            a, b, c, d = 3, 3, 3, 3
            a += -x[0]
            b += -same(x[0])
            c -= qd.floor(x[0]) + 0.5
            d *= same(x[0])
            whole[0], whole[1], whole[2], whole[3] = a, b, c, d
            e, f, g = qd.f32(-1.22), qd.f32(-1.22), qd.Vector([0.0, -1.22], qd.f32)
            e += x[1]
            f += same(x[1])
            g[1] += same(x[1])
            part[0], part[1], part[2] = e, f, g[1]

    x, whole, part = np.array([1.5, 8.688400425910949]), np.zeros(4, np.int32), np.zeros(3, np.float32)
    k(x, whole, part)
    assert list(whole) == [2, 2, 2, 4]
    want = np.float32(-1.22) + np.float32(x[1])
    assert want != np.float32(np.float64(np.float32(-1.22)) + x[1]) and list(part) == [want] * 3


def test_names_live_in_their_block():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        r = 0
        if n > 0:
            t = 1
            r += t
        else:
            t = 2.5
            r += int(t * 2)
        for _ in range(1):
            t = 100
            r += t
        return r

    assert [k(1), k(0)] == [101, 105]

    @qd.kernel
    def bad(n: qd.i32) -> qd.i32:
        if n > 0:
            t = 1
        return t

    with pytest.raises(qd.IngotNameError, match='Name "t" is not defined'):
        bad(1)


def test_docstring_ellipsis_pass():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        """Says nothing."""
        ...
        pass
        if n > 3:
            pass
        return n

    assert k(4) == 4


UNSUPPORTED = {
    "def f(x):\n        return x": "Function definition is not allowed in 'qd.kernel'",
    "while n > 0:\n        n2 = 1\n    else:\n        n3 = 2": "'else' clause for 'while'",
    "for i in range(n):\n        n2 = 1\n    else:\n        n3 = 2": "'else' clause for 'for'",
    "global n2": '"Global"',
    "nonlocal n2": '"Nonlocal"',
    "import os": '"Import"',
    "del n": '"Delete"',
    "raise ValueError": '"Raise"',
    "try:\n        pass\n    except ValueError:\n        pass": '"Try"',
    "with open('f'):\n        pass": '"With"',
    "with n:\n        pass": "`with` requires a call",
    "class C:\n        pass": '"ClassDef"',
    "x = lambda: 3": '"Lambda"',
    "x = {1, 2}": '"Set"',
    "x = 1j": "complex",
    "x = b'a'": "bytes",
    "x = [1, 2]; x.sort()": "cannot be changed",
    "x, *y = 1, 2, 3": "starred|number of targets",
}


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_what_is_not_in_the_language(text):
    scope = {"qd": qd}
    if text.startswith("nonlocal"):
        source = f"def outer():\n  n2 = 1\n  def k(n: qd.i32):\n    {text}\n  return k\n"
        exec(source, scope)
        fn, source = scope["outer"](), source.split("\n", 2)[2].rsplit("\n", 2)[0] + "\n"
    else:
        source = f"def k(n: qd.i32):\n    {text}\n"
        exec(source, scope)
        fn = scope["k"]
    kernel = qd.kernel(source=source)(fn)
    with pytest.raises(qd.IngotError, match=UNSUPPORTED[text]):
        kernel(1)


def made(text, name, make=None):
    scope = {"qd": qd}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return (make or qd.kernel)(scope[name], source=text)


def arms(n, test, body, indent="    "):
    return "".join(f"{indent}{'elif' if i else 'if'} {test.format(i)}:\n{indent}    {body.format(i)}\n"
                   for i in range(n))


@pytest.mark.parametrize("n", [31, 32, 33, 66, 240])
def test_long_chains_of_elif(n):
    """Longer than branches may nest, at the lengths where chains are broken up."""
    f = made("def f(x):\n    r = -1\n" + arms(n, "x == {0}", "r = {0} * 3") + "    return r\n", "f", qd.func)
    g = made("def g(x):\n" + arms(n, "x == {0}", "return {0} * 5") + "    else:\n        return -2\n", "g",
             qd.func)

    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in range(a.shape[0]):
            a[i] = f(i) * 10000 + g(i)

    a = qd.ndarray(qd.i32, n + 2)
    k(a)
    assert a.to_numpy().tolist() == [i * 30005 for i in range(n)] + [-10002] * 2


def test_chains_of_elif_have_no_limit():
    n = 2000
    k = made("def k(x: qd.template()) -> qd.i32:\n    r = -1\n" + arms(n, "qd.static(x == {0})", "r = {0} * 3")
             + "    return r\n", "k")
    assert [k(0), k(n - 1), k(n)] == [0, 3 * n - 3, -1]
    # Some known, some not: what is known is left out.
    k = made("def k(t: qd.template(), x: qd.i32) -> qd.i32:\n    r = -1\n"
             + arms(200, "t == {0} and x == 7", "r = {0} * 3") + "    return r\n", "k")
    assert [k(150, 7), k(150, 6), k(200, 7)] == [450, -1, -1]
