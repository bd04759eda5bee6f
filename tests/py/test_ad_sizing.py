"""The room of a gradient's stacks (src/ad/size.c, src/py/call/sizing.c): found once, found again exactly when what
decided it changed, never too small without a word; and what has no gradient is refused."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from conftest import needs

import ingot as qd
from ingot import _core

F1, I1 = qd.types.ndarray(qd.f32, 1), qd.types.ndarray(qd.i32, 1)


@qd.kernel
def ragged(x: F1, c: I1, n: qd.i32, y: F1):
    for i in range(x.shape[0]):
        a = x[i]
        for t in range(c[i]):
            b = a
            for u in range(t + n):
                b = b * a * 0.5 + 0.1
            a = a * a * 0.3 + 0.2 + b * 0.1
        y[i] = a


@qd.kernel
def bump(c: I1, by: qd.i32):
    for i in c:
        c[i] += by


@qd.kernel
def total(y: F1, loss: F1):
    for i in range(y.shape[0]):
        loss[0] += y[i]


def gradient(x, c, n, y):
    """By kernel.grad, and how often room was found for it."""
    before = _core.counters()["launch_sized"]
    y.grad.fill(1.0)
    x.grad.fill(0.0)
    ragged.grad(x, c, n, y)
    return x.grad.to_numpy(), _core.counters()["launch_sized"] - before


def expected(x, c, n):
    """The derivative of each y[i] by x[i], with dual numbers."""
    out = []
    for a, trips in zip(x.astype(np.float64), c):
        d = 1.0
        for t in range(trips):
            b, e = a, d
            for _ in range(t + n):
                b, e = b * a * 0.5 + 0.1, (e * a + b * d) * 0.5
            a, d = a * a * 0.3 + 0.2 + b * 0.1, 2 * a * d * 0.3 + e * 0.1
        out.append(d)
    return np.array(out)


def arrays(length=40):
    x, y = (qd.ndarray(qd.f32, length, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, length)
    x.from_numpy(np.linspace(0.2, 0.9, length).astype(np.float32))
    c.from_numpy((np.arange(length) % 7).astype(np.int32))
    return x, c, y


def check(x, c, n, y, found):
    got, sized = gradient(x, c, n, y)
    assert np.allclose(got, expected(x.to_numpy(), c.to_numpy(), n), rtol=1e-4, atol=1e-7)
    assert sized == found


@pytest.mark.counts("launches")
def test_found_again_exactly_when_it_changed(target):
    x, c, y = arrays()
    ragged(x, c, 1, y)
    check(x, c, 1, y, 1)
    for _ in range(3):
        check(x, c, 1, y, 0)
    x.fill(0.5)  # decides nothing
    check(x, c, 1, y, 0)
    for change in (
        lambda: c.fill(5),
        lambda: c.__setitem__(3, 40),
        lambda: bump(c, 1),
        lambda: c.from_numpy(np.full(40, 3, np.int32)),
    ):
        change()
        check(x, c, 1, y, 1)
        check(x, c, 1, y, 0)
    check(x, c, 2, y, 1)  # the scalar decides too
    check(x, c, 1, y, 0)  # and the last few answers are remembered


@pytest.mark.host_memory
@pytest.mark.counts("launches")
def test_others_may_write_it(target):
    """NumPy's arrays, and those that are exported, count as changed at every launch."""
    x, c, y = arrays()
    view = np.asarray(c)
    check(x, c, 1, y, 1)
    view[5] = 60
    check(x, c, 1, y, 1)
    foreign = np.array(c.to_numpy())
    got = []
    for trips in (2, 50):
        foreign[:] = trips
        y.grad.fill(1.0)
        x.grad.fill(0.0)
        ragged.grad(x, foreign, 1, y)
        got.append(x.grad.to_numpy())
        assert np.allclose(got[-1], expected(x.to_numpy(), foreign, 1), rtol=1e-4, atol=1e-7)


@pytest.mark.host_memory
def test_behind_our_back():
    qd.init(arch=qd.interp)
    x, c, y = arrays()
    gradient(x, c, 1, y)
    with memoryview(c) as view:
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    # the buffer is given back; what is written by its address nobody can know of
    gradient(x, c, 1, y)
    ctypes.cast(address, ctypes.POINTER(ctypes.c_int32))[7] = 5000
    with pytest.raises(Exception, match="more room than was found.*behind Ingot's back") as caught:
        gradient(x, c, 1, y)
    assert "ragged" in str(caught.value) and "for t in range(c[i])" in str(caught.value)
    assert "x.grad" in str(caught.value) and "y.grad" in str(caught.value)
    ctypes.cast(address, ctypes.POINTER(ctypes.c_int32))[7] = 60
    with pytest.raises(qd.IngotRuntimeError, match=r"[xy]\.grad holds partial sums(.|\n)*\.grad\.fill\(0\)"):
        ragged.grad(x, c, 1, y)
    y.grad.fill(1.0)
    with pytest.raises(qd.IngotRuntimeError, match=r"x\.grad holds partial sums"):
        ragged.grad(x, c, 1, y)
    check(x, c, 1, y, 0)  # filled; its room was found afresh by those that were refused


@needs("torch")
@pytest.mark.host_memory
def test_partial_sums_of_torch():
    import torch

    qd.init(arch=qd.interp)
    ours, c, _ = arrays()
    x = torch.from_numpy(ours.to_numpy()).requires_grad_()
    y = torch.zeros(x.shape[0], requires_grad=True)

    def back():
        ragged.grad(x, c, 1, y)

    def clear():
        x.grad, y.grad = torch.zeros_like(x), torch.ones_like(y)

    clear()
    back()
    with memoryview(c) as view:
        bound = ctypes.cast(ctypes.addressof(ctypes.c_char.from_buffer(view)), ctypes.POINTER(ctypes.c_int32))
    back()
    was, bound[7] = bound[7], 5000
    with pytest.raises(Exception, match="x.grad"):
        back()
    bound[7] = was
    for _ in range(2):
        with pytest.raises(qd.IngotRuntimeError, match=r"[xy]\.grad holds partial sums(.|\n)*\.grad\.zero_\(\)"):
            back()
    x.grad.zero_()
    y.grad.fill_(1.0)
    back()
    want = expected(ours.to_numpy(), c.to_numpy(), 1)
    assert np.allclose(x.grad.numpy(), want, rtol=1e-4, atol=1e-7)
    bound[7] = 5000
    with pytest.raises(Exception, match="x.grad"):
        back()
    bound[7] = was
    clear()  # others in their place
    back()
    assert np.allclose(x.grad.numpy(), want, rtol=1e-4, atol=1e-7)


@pytest.mark.host_memory
def test_a_tape_clears_partial_sums():
    """Behind our back too: the tape fails, and is right when it is run, or recorded, again."""
    qd.init(arch=qd.interp)
    x, c, y = arrays()
    loss = qd.ndarray(qd.f32, 1, needs_grad=True)
    gradient(x, c, 1, y)
    with memoryview(c) as view:
        bound = ctypes.cast(ctypes.addressof(ctypes.c_char.from_buffer(view)), ctypes.POINTER(ctypes.c_int32))
    for again in (lambda tape: tape.grad(), lambda tape: run(False)):
        def run(harm):
            with qd.ad.Tape(loss=loss) as tape:
                ragged(x, c, 1, y)
                total(y, loss)
                if harm:
                    bound[7] = 5000
                    tape_of.append(tape)

        tape_of, was = [], bound[7]
        x.grad.fill(0.0)
        gradient(x, c, 1, y)
        for one in (x, y, loss):
            one.grad.fill(0.0)
        with pytest.raises(qd.IngotAssertionError, match="x.grad"):
            run(True)
        bound[7] = was
        again(tape_of[0])
        assert np.allclose(x.grad.to_numpy(), expected(x.to_numpy(), c.to_numpy(), 1), rtol=1e-4, atol=1e-7)


PROGRAM = """
import os, sys
sys.path.insert(0, {here!r})
from ingot import _core
cache = os.environ["INGOT_CACHE_DIR"]
from test_ad_sizing import *
os.environ["INGOT_CACHE_DIR"] = cache  # conftest.py has another one for each process of pytest
qd.init()
x, c, y = arrays()
ragged(x, c, 1, y)
check(x, c, 1, y, 1)
check(x, c, 1, y, 0)
c.fill(4)
check(x, c, 1, y, 1)
print(_core.counters()["image_compiles"])
"""


@pytest.mark.counts("compiles")
def test_in_a_second_process(cache_dir):
    here = __file__.rsplit("/", 1)[0]
    runs = [subprocess.run([sys.executable, "-c", PROGRAM.format(here=here)], capture_output=True, text=True,
                           check=True).stdout.split()[-1] for _ in range(2)]
    assert int(runs[0]) > 0 and int(runs[1]) == 0


# ---- what is refused --------------------------------------------------------------------------


@qd.kernel
def squared(x: F1, y: F1, c: F1):
    for i in x:
        y[i] = x[i] * x[i] * c[i]


@qd.kernel
def overwrites(x: F1):
    for i in x:
        x[i] = x[i] * x[i]


@qd.kernel
def scales(x: F1):
    for i in x:
        x[i] = x[i] * 3.0


@qd.kernel
def chained(x: F1, y: F1):
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]


@qd.kernel
def chained_in_order(x: F1, y: F1):
    for _ in range(1):
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]


@qd.kernel
def odd_from_even(y: F1):
    for i in range(y.shape[0] // 2):
        y[2 * i + 1] = y[2 * i] * 3.0


@qd.kernel
def draws(x: F1, y: F1, r: F1):
    for i in x:
        a = qd.random(qd.f32)
        b = qd.random(qd.f32)
        r[i] = b
        y[i] = x[i] * b + a


@qd.kernel
def returns(x: F1) -> qd.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


def test_refused():
    qd.init(arch=qd.interp)
    x, _, y = arrays(8)
    c = np.ones(8, np.float32)
    squared.grad(x, y, c)  # NumPy's arrays are constants
    with pytest.raises(Exception, match="values that have a derivative, and it has no gradient"):
        squared.grad(x, np.zeros(8, np.float32), c)
    with pytest.raises(Exception, match="overwritten here"):
        overwrites.grad(x)
    x.grad.fill(1.0)
    scales.grad(x)  # its old value is not needed
    assert np.array_equal(x.grad.to_numpy(), np.full(8, 3.0))
    with pytest.raises(Exception, match="iterations of a parallel loop read what others store"):
        chained.grad(x, y)
    x.grad.fill(0.0)
    y.grad.fill(0.0)
    y.grad[7] = 1.0
    chained_in_order.grad(x, y)
    assert x.grad.to_numpy().tolist() == [0.0] + [1.0] * 7
    y.grad.fill(1.0)
    odd_from_even.grad(y)
    assert y.grad.to_numpy().tolist() == [4.0, 0.0] * 4
    with pytest.raises(Exception, match="a returned value"):
        returns.grad(x)


@qd.func
def put(o, i, v):
    o[i] = v


@qd.func
def put_place(o: qd.template(), v):
    o = v


@qd.func
def put_square(o, x, i):
    put(o, i, x[i] * x[i])


@pytest.mark.parametrize("way", ["element", "place", "of its own"])
def test_an_output_without_a_gradient_is_found_in_funcs(way):
    """What went through a NumPy array that a func writes was lost without a word."""
    qd.init(arch=qd.interp)
    x, _, y = arrays(8)

    @qd.kernel
    def through(x: F1, y: F1, c: F1):
        for i in x:
            if qd.static(way == "element"):
                put(c, i, x[i] * x[i])
            elif qd.static(way == "place"):
                put_place(c[i], x[i] * x[i])
            else:
                put_square(c, x, i)
        for i in x:
            y[i] = x[i] * c[i]

    @qd.kernel
    def constants(x: F1, y: F1, c: F1):
        for i in x:
            put(c, i, 2.0 * i)
        for i in x:
            put(y, i, x[i] * c[i])

    with pytest.raises(Exception, match="values that have a derivative, and it has no gradient"):
        through.grad(x, y, np.zeros(8, np.float32))
    c = np.zeros(8, np.float32)
    constants(x, y, c)
    y.grad.fill(1.0)
    constants.grad(x, y, c)
    assert np.array_equal(x.grad.to_numpy(), c)


def test_random_numbers_are_those_of_the_forward_launch(target):
    x, _, y = arrays(100)
    r = qd.ndarray(qd.f32, 100)
    draws(x, y, r)
    y.grad.fill(1.0)
    draws.grad(x, y, r)
    assert np.array_equal(x.grad.to_numpy(), r.to_numpy())


# ---- as the reference counts ----


@qd.kernel
def sums(x: F1, c: I1, y: F1):
    """No stack is needed: a sum is only added to."""
    for i in range(c.shape[0]):
        s = 0.0
        for j in range(c[i]):
            s = s + x[j] * x[j]
        y[0] += s


@qd.kernel
def constant_bounds(x: F1, y: F1):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(3):
            v = v * 0.95 + 0.01
        y[0] += v


COUNTED = """
import sys
sys.path.insert(0, {here!r})
from test_ad_sizing import *
from ingot.compat.quadrants.lang import impl
qd.init()
x, y = (qd.ndarray(qd.f32, 8, needs_grad=True) for _ in range(2))
c = qd.ndarray(qd.i32, 4)
x.fill(0.5), y.grad.fill(1.0), c.fill(2)
prog = impl.get_runtime().prog
count = prog._get_max_reducer_dispatch_count
sums.grad(x, c, y)
assert count() == 0, "nobody counts, nothing is sized"
prog._reset_max_reducer_dispatch_count()
assert count() == 0
constant_bounds.grad(x, y)
assert count() == 0
for k in range(1, 4):
    sums.grad(x, c, y)
    sums.grad(x, c, y)
    assert count() == k, (k, count())
    bump(c, 1)
before = count()
a, d, b = arrays()
ragged.grad(a, d, 1, b)
assert count() == before + 1
prog._reset_max_reducer_dispatch_count()
assert count() == 0
"""


def test_bounds_are_counted_for_those_who_ask(cache_dir):
    here = __file__.rsplit("/", 1)[0]
    for _ in range(2):  # cold, warm
        done = subprocess.run([sys.executable, "-B", "-c", COUNTED.format(here=here)], capture_output=True, text=True,
                              timeout=600)
        assert done.returncode == 0, done.stderr


# ---- qd.init(ad_stack_size=N) ----


@qd.kernel
def with_while(x: F1, c: I1, n: qd.i32, y: F1):
    for i in range(x.shape[0]):
        a, t = x[i], 0
        while t < c[i]:
            a = a * a * 0.3 + 0.2
            t += n
        y[i] = a


@pytest.mark.parametrize("kernel, most", [(ragged, 6), (with_while, 7)])
def test_a_forced_stack_size(kernel, most):
    """Stacks for so many iterations: fewer are an error that names the loop, no room is looked for."""
    found = []
    for size in (0, most, most - 1, 10 * most):
        qd.init(ad_stack_size=size)
        x, c, y = arrays()
        y.grad.fill(1.0)
        before = _core.counters()["launch_sized"]
        if size == most - 1:
            with pytest.raises(qd.IngotAssertionError, match=r"ad_stack_size(.|\n)*(for [tu] in|while t <)"):
                kernel.grad(x, c, 1, y)
            continue
        kernel.grad(x, c, 1, y)
        assert size == 0 or _core.counters()["launch_sized"] == before
        found.append(x.grad.to_numpy())
    assert all(np.array_equal(found[0], one) for one in found)
    qd.init()


TURNS = 3


@qd.kernel
def turns(x: F1, y: F1):
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(TURNS):
            a = a * x[i]
        y[i] = a


def test_code_without_stacks_follows_code_with_them(monkeypatch):
    """The room is asked of launches that the code fits: here the next one has no stacks."""
    qd.init()
    x, y = (qd.ndarray(qd.f32, 2, needs_grad=True) for _ in range(2))
    x.from_numpy(np.array([1.5, 2.0], np.float32))
    for n in (3, 0, 2, 1, 0):
        monkeypatch.setitem(globals(), "TURNS", n)
        x.grad.fill(0.0)
        y.grad.fill(1.0)
        turns.grad(x, y)
        np.testing.assert_allclose(x.grad.to_numpy(), (n + 1) * x.to_numpy() ** n)


@pytest.mark.parametrize("gone", ["reset", "destroy"])
def test_partial_sums_in_fields_that_are_gone(gone):
    """A tape clears gradients with partial sums; those of destroyed fields are nobody's concern."""
    qd.init(arch=qd.cpu, debug=True)
    builder = qd.FieldsBuilder()
    x, y = qd.field(qd.f32, needs_grad=True), qd.Vector.field(2, qd.f32, needs_grad=True)
    builder.dense(qd.i, 8).place(x, y, x.grad, y.grad)
    tree = builder.finalize()

    @qd.kernel
    def shifted(x: qd.template(), y: qd.template(), by: qd.i32):
        for i in x:
            y[i] += qd.Vector([x[i + by] * x[i], 1.0])

    with pytest.raises(AssertionError):
        shifted.grad(x, y, 1)
    with pytest.raises(qd.IngotRuntimeError, match="holds partial sums"):
        shifted.grad(x, y, 0)
    qd.reset() if gone == "reset" else tree.destroy()
    if gone == "reset":
        qd.init(arch=qd.cpu)
    z, loss = qd.field(qd.f32, shape=8, needs_grad=True), qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def square():
        for i in z:
            loss[None] += z[i] ** 2

    z.fill(3.0)
    with qd.ad.Tape(loss):
        square()
    assert (z.grad.to_numpy() == 6).all()


# ---- how much they take ------------------------------------------------------------------------------------


def bytes_of(kernel, *args):
    before = _core.counters()["stack_bytes"]
    kernel.grad(*args)
    return _core.counters()["stack_bytes"] - before


def real(values):
    a = qd.ndarray(qd.f32, len(values), needs_grad=True)
    a.from_numpy(np.array(values, np.float32))
    return a


def test_bytes_of_stacks():
    """By the counter: an entry is as large as what it keeps; sums need none; columns side by side have one each."""

    @qd.kernel
    def one(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in range(1):
            a = x[i]
            for t in range(n):
                if a > 9.0:  # a branch: one column by itself
                    a *= 0.5
                a = a * a * 0.5 + 0.1
            y[i] = a

    @qd.kernel
    def sums(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in x:
            s = 0.0
            for t in range(n):
                s += x[i] * x[i]
            y[i] = s

    @qd.kernel
    def columns(x: qd.types.ndarray(), c: qd.types.ndarray(qd.i32, 1), y: qd.types.ndarray()):
        for i in x:
            a = x[i]
            for t in range(c[i]):
                a = a * a * 0.5 + 0.1
            y[i] = a

    @qd.kernel
    def endless(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in range(1):
            a, t = x[i], 0
            while t < n:
                a = a * a * 0.5 + 0.1
                t += 1
            y[i] = a

    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    x, y = real([0.1] * 40), real([0.0] * 40)
    assert bytes_of(one, x, 1000, y) == 1088  # 256 and 4 floats (segment.c), whole cache lines
    assert bytes_of(sums, x, 1000, y) == 0
    c = qd.ndarray(qd.i32, 40)
    c.from_numpy(np.arange(40, dtype=np.int32) * 4)
    assert bytes_of(columns, x, c, y) == 16 * 640  # the longest has 156 floats
    grown = bytes_of(endless, x, 1000, y)  # asked for as it grew
    assert 4000 <= grown <= 2 * 8192
