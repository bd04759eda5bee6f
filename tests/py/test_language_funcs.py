"""The language: funcs, their arguments and results. Every test runs as native code and on the
interpreter."""

import linecache
import threading

import pytest

import ingot as qd
from ingot import _core

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


@qd.func
def digits(x, y=3, *, z=4):
    return x * 100 + y * 10 + z


@qd.func
def plus(a, b):
    return a + b


@qd.func
def apply(fn: qd.template(), x):
    return fn(x, 1)


def test_arguments():
    @qd.kernel
    def k(n: qd.i32) -> (qd.i32, qd.i32, qd.i32, qd.i32):
        t = (n, 2)
        return digits(n), digits(n, z=5), digits(y=1, x=n), plus(*t) + plus(*(1, 1))

    assert k(2) == (234, 235, 214, 6)


WRONG = {
    "digits()": "Missing argument 'x'",
    "digits(1, 2, 3)": "Too many arguments",
    "digits(1, q=2)": "Unexpected argument 'q'",
    "digits(1, x=2)": "Multiple values for argument 'x'",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_arguments(text):
    source = f"def k():\n    x = {text}\n"
    scope = {"digits": digits}
    exec(source, scope)
    with pytest.raises(qd.IngotSyntaxError, match=WRONG[text]):
        qd.kernel(source=source)(scope["k"])()


def test_by_value_and_by_reference():
    @qd.func
    def by_value(x):
        x += 1
        return x

    @qd.func
    def typed(x: qd.i32):
        x += 1
        return x

    @qd.func
    def by_reference(x: qd.template()):
        x += 1

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32) -> (qd.i32, qd.i32, qd.f32):
        y = n
        z = by_value(y)
        by_reference(y)
        by_reference(a[1])
        w = typed(2.75)
        return y, z, w

    a = qd.ndarray(qd.i32, 2)
    assert k(a, 5) == (6, 6, 3) and list(a.to_numpy()) == [0, 1]


@qd.func
def doubled_if_short(v):
    if v[0] < 5:
        v = v * 2
    return v


def test_a_vector_of_constants_may_be_assigned():
    @qd.kernel
    def k(out: qd.types.ndarray()):
        a = doubled_if_short(qd.Vector([1.0, 2.0]))
        b = doubled_if_short(qd.Vector([6.0, 2.0]))
        for i in qd.static(range(2)):
            out[i] = a[i]
            out[2 + i] = b[i]

    out = qd.ndarray(qd.f32, (4,))
    k(out)
    assert out.to_numpy().tolist() == [2.0, 4.0, 6.0, 2.0]


def test_funcs_as_values():
    @qd.func
    def minus(a, b):
        return a - b

    ops = (plus, minus)
    table = {"p": plus, "m": minus}

    @qd.kernel
    def k(n: qd.i32) -> (qd.i32, qd.i32, qd.i32):
        r = 0
        for op in qd.static(ops):
            r = r * 100 + op(n, 1)
        return apply(plus, n), r, table["m"](n, 3)

    assert k(5) == (6, 604, 2)


def test_results():
    @qd.func
    def nothing(a):
        a[0] = 1

    @qd.func
    def pair(x):
        return x, x + 0.5

    @qd.func
    def nested(x):
        return (x, (x + 1, 2)), 3

    @qd.func
    def typed(x) -> qd.f64:
        return x

    @qd.func
    def three():
        return 3

    @qd.func
    def named(x):
        return {"low": x - 1, "high": x + 1}

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32) -> (qd.f32, qd.i32, qd.f64, qd.i32, qd.i32):
        nothing(a)
        x, y = pair(n)
        (p, (q, r)), s = nested(n)
        t = 0
        for i in qd.static(range(three())):
            t += i
        d = named(n)
        return x + y, p * 1000 + q * 100 + r * 10 + s, typed(n) / 4, t, d["high"] * 10 + d["low"]

    a = qd.ndarray(qd.i32, 1)
    assert k(a, 3) == (6.5, 3423, 0.75, 3, 42) and a[0] == 1


def test_early_returns():
    @qd.func
    def sign(x):
        if x < 0:
            return -1
        for i in range(3):
            if x == i:
                return i
        return 100

    @qd.kernel
    def k(out: qd.types.ndarray()):
        for i in range(6):
            out[i] = sign(i - 2)

    out = qd.ndarray(qd.i32, 6)
    k(out)
    assert list(out.to_numpy()) == [-1, -1, 0, 1, 2, 100]


def test_returns_from_loops_that_run():
    """A loop that runs at least once and returns in it ends the func."""

    @qd.func
    def first(x) -> qd.i32:
        for i in range(3, 10):
            if x > 0:
                return x + i
            else:
                return i

    @qd.func
    def forever(x) -> qd.i32:
        go = 1
        while go:
            x += 7
            if x > 50:
                return x

    @qd.func
    def skips(x) -> qd.i32:
        for i in range(3, 10):
            if i < x:
                continue
            return i

    @qd.func
    def leaves(x) -> qd.i32:
        for i in range(3, 10):
            if i < x:
                break
            return i

    @qd.func
    def may_not_run(x) -> qd.i32:
        for i in range(x):
            return i

    @qd.func
    def never_runs(x) -> qd.i32:
        for i in range(3, 3):
            return i

    @qd.func
    def changes(x) -> qd.i32:
        go = 1
        while go:
            if x > 50:
                return x
            go = 0

    def launched(f, x):
        @qd.kernel
        def k(x: qd.i32) -> qd.i32:
            return f(x)

        return k(x)

    assert [launched(first, x) for x in (5, -5)] == [8, 3]
    assert [launched(forever, x) for x in (1, 60)] == [57, 67]
    for f in (skips, leaves, may_not_run, never_runs, changes):
        with pytest.raises(qd.IngotTypeError, match="on some paths"):
            launched(f, 20)


def test_mismatched_returns():
    @qd.func
    def f(x):
        if x > 0:
            return 1
        return 1, 2

    @qd.kernel
    def k(n: qd.i32):
        f(n)

    with pytest.raises(qd.IngotTypeError, match="does not match an earlier one"):
        k(1)


def test_recursion():
    @qd.func
    def forever(x):
        return forever(x)

    @qd.func
    def power(x, n: qd.template()):
        r = x
        if qd.static(n > 1):
            r = x * power(x, n - 1)
        return r

    @qd.kernel
    def good(n: qd.i32) -> qd.i32:
        return power(n, 4)

    @qd.kernel
    def bad(n: qd.i32) -> qd.i32:
        return forever(n)

    assert good(3) == 81
    with pytest.raises(qd.IngotCompilationError, match="recursion is not supported"):
        bad(1)


@qd.data_oriented
class Model:
    factor = 7

    def __init__(self, n):
        self.n = n
        self.table = (1, 2, 3)

    @qd.func
    def scaled(self, x):
        return x * self.n

    @staticmethod
    @qd.func
    def shifted(x):
        return x + 100

    @classmethod
    @qd.func
    def classy(cls, x):
        return x * cls.factor

    @qd.kernel
    def run(self, x: qd.i32) -> (qd.i32, qd.i32, qd.i32, qd.i32):
        return self.scaled(x), self.shifted(x), self.classy(x), self.table[1]


def test_methods():
    assert Model(3).run(5) == (15, 105, 35, 2)
    assert Model(4).run(5) == (20, 105, 35, 2)


@pytest.mark.counts("lowerings")
def test_one_specialisation_per_signature():
    @qd.func
    def square(a):
        return a * a

    @qd.kernel
    def k(x: qd.types.ndarray()):
        for i in range(x.shape[0]):
            x[i] = square(x[i]) + square(x[i] + 1) + square(2.5) + square(i)

    before = _core.counters()
    k(qd.ndarray(qd.f32, 2))
    after = _core.counters()
    assert after["func_lowered"] - before["func_lowered"] == 3  # for f32, for i32, and for a float without a type
    assert after["func_shared"] - before["func_shared"] == 1


def test_kernels_cannot_call_kernels():
    @qd.kernel
    def inner():
        pass

    @qd.kernel
    def k():
        inner()

    with pytest.raises(qd.IngotSyntaxError, match="a kernel cannot be called from a kernel"):
        k()


def test_star_parameters():
    @qd.func
    def f(*args):
        return 1

    @qd.kernel
    def k():
        f(1)

    with pytest.raises(qd.IngotSyntaxError, match=r"`\*args` parameters are not supported"):
        k()


# ---- references, volatile loads ---------------------------------------------------------------


def test_references():
    @qd.real_func
    def bump(x: qd.ref(qd.f32), by: qd.f32):
        x += by
        x = x * 2

    @qd.func
    def turn(v: qd.ref(qd.math.vec2)):
        v = v.yx

    @qd.kernel
    def run(a: qd.types.ndarray()) -> qd.f32:
        x = 1.0
        bump(x, 2.0)
        bump(a[1], 1.0)
        v = qd.math.vec2(1, 7)
        turn(v)
        return x * 10 + v.x

    a = qd.ndarray(qd.f32, 2)
    assert run(a) == 67 and a.to_numpy().tolist() == [0, 2]


def test_references_that_do_not_fit():
    @qd.func
    def bump(x: qd.ref(qd.f32)):
        x += 1

    @qd.kernel
    def other_type():
        i = 1
        bump(i)

    @qd.kernel
    def expression():
        x = 1.0
        bump(x + 1)

    for kernel in (other_type, expression):
        with pytest.raises(qd.IngotTypeError, match="a reference to f32; the argument is"):
            kernel()
    with pytest.raises(TypeError, match="no dtype"):
        qd.ref(3)


def test_volatile_load():
    @qd.kernel
    def add(a: qd.types.ndarray(), out: qd.types.ndarray()):
        for i in range(4):
            a[i] = i
            out[i] = qd.volatile_load(a[i]) + 1

    a, out = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, 4)
    add(a, out)
    assert out.to_numpy().tolist() == [1, 2, 3, 4]
    assert qd.volatile_load(out[2]) == 3

    @qd.kernel
    def expression(a: qd.types.ndarray()) -> qd.i32:
        return qd.volatile_load(a[0] + 1)

    @qd.kernel
    def local() -> qd.i32:
        v = qd.Vector([1, 2])
        return qd.volatile_load(v)

    with pytest.raises(qd.IngotSyntaxError, match="lvalue"):
        expression(a)
    with pytest.raises(qd.IngotTypeError, match="local array"):
        local()


# ---- compile-time values -----------------------------------------------------------------------


def test_powers_and_repeated_sequences():
    @qd.kernel
    def ones() -> qd.u64:
        return qd.u64(2**64 - 1)

    @qd.kernel
    def shifted() -> qd.u64:
        return qd.u64((1 << 64) - 2)

    @qd.kernel
    def repeated() -> qd.i32:
        t = 0
        for i in qd.grouped(qd.ndrange(*[[1, 3]] * 3)):
            t += i.sum()
        for x in qd.static((1, 2) * 2 + 0 * (5,)):
            t += 100 * x
        return t

    assert ones() == 2**64 - 1 and shifted() == 2**64 - 2 and repeated() == 36 + 600

    @qd.kernel
    def too_large() -> qd.u64:
        return qd.u64(2**65 - 1)

    with pytest.raises(qd.IngotError, match="64 bits"):
        too_large()


def test_long_results():
    big = qd.types.vector(1024, qd.i32)

    @qd.kernel
    def count() -> big:
        r = big(0)
        for i in range(1024):
            r[i] = i
        return r

    assert count().to_list() == list(range(1024))


def test_annotated_func_without_return():
    @qd.func
    def nothing() -> qd.i32:
        pass

    @qd.kernel
    def run() -> qd.i32:
        return nothing()

    with pytest.raises(qd.IngotSyntaxError, match="Function has a return type but does not have a return"):
        run()


CHAIN = "@qd.func\ndef f0(x):\n    return x + 1\n"


def chain_of(n):
    text = CHAIN + "".join(f"@qd.func\ndef f{i}(x):\n    return f{i - 1}(x) + 1\n" for i in range(1, n))
    text += f"@qd.kernel\ndef k(x: qd.i32) -> qd.i32:\n    return f{n - 1}(x)\n"
    name = f"<chain of {n}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"qd": qd}
    exec(compile(text, name, "exec"), scope)
    return scope["k"]


def test_long_chains_of_funcs():
    assert chain_of(400)(2) == 402


def test_chains_that_are_too_long():
    with pytest.raises(qd.IngotSyntaxError, match="deep, from k down to f"):
        chain_of(2000)(2)


def test_chains_on_a_small_stack():
    """As deep as the stack of the thread allows, then an error."""
    results = []

    def run():
        try:
            results.append(chain_of(400)(2))
        except qd.IngotSyntaxError as e:
            results.append(str(e))

    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results == [402] or "deep, from k down to f" in results[0]
