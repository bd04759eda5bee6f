"""qd.BufferView: stretches of arrays, made by slices in Python and in kernels. Kernels run
natively and on the interpreter."""

import gc
import pickle
import re
import weakref

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return TARGETS[request.param]


def count(n, dtype=qd.f32):
    a = qd.ndarray(dtype, n)
    a.from_numpy(np.arange(n, dtype=np.float32 if dtype is qd.f32 else np.int32))
    return a


# ---- Python ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, 0, 3, -4, 9, 20, -30])
@pytest.mark.parametrize("stop", [None, 0, 5, -2, 10, 25])
def test_slices_are_those_of_lists(start, stop):
    a = qd.ndarray(qd.f32, 10)
    view = a[start:stop]
    want = list(range(10))[start:stop]
    assert type(view) is qd.BufferView and view.get_ndarray() is a
    assert view.size == len(want) and view.shape == (len(want),)
    assert not want or view.offset == want[0]
    inner = view[1:3]
    assert inner.size == len(want[1:3]) and inner.get_ndarray() is a
    assert not want[1:3] or inner.offset == want[1:3][0]


def test_views_are_made_and_kept():
    a = qd.Vector.ndarray(3, qd.f32, 8)
    view = qd.BufferView(a, offset=2, size=4)
    assert (view.offset, view.size) == (2, 4) and "BufferView at 2 " in repr(view)
    assert (view.subview(1, 2).offset, view.subview(offset=1, size=2).size) == (3, 2)
    back = pickle.loads(pickle.dumps(view))
    assert (back.offset, back.size, back.get_ndarray().shape) == (2, 4, (8,))
    with pytest.raises(AttributeError):
        view.size = 100
    with pytest.raises(AttributeError):
        view.other = 1
    alive = weakref.ref(a)
    del a
    gc.collect()
    assert alive() is view.get_ndarray()


@pytest.mark.host_memory
def test_views_outside_of_kernels(target):
    a = count(10)
    view = a[2:6]
    shared = memoryview(view)
    assert (shared.shape, shared.format, shared.tolist()) == ((4,), "f", [2, 3, 4, 5])
    x = np.asarray(view)
    x[0] = 99
    assert a[2] == view[0] == view[-4] == 99 and len(view) == 4 and list(view) == view.tolist() == [99, 3, 4, 5]
    y = np.from_dlpack(view)
    y[1] = 7
    view[3], view[-1:] = 8, 11
    assert a.tolist() == [0, 1, 99, 7, 4, 11, 6, 7, 8, 9] and view.dtype == qd.f32
    assert view.to_numpy().tolist() == view.to_numpy(copy=False).tolist() == [99, 7, 4, 11]
    assert np.shares_memory(view.to_numpy(copy=False), x) and not np.shares_memory(view.to_numpy(), x)
    vectors = qd.Vector.ndarray(3, qd.f32, 5)[1:3]
    assert np.asarray(vectors).shape == memoryview(vectors).shape == (2, 3)
    alive = weakref.ref(a)
    del a, view, y
    gc.collect()
    assert alive() is not None and x[0] == 99  # the memory stays while somebody looks
    del x, shared
    gc.collect()
    assert alive() is None


def test_views_that_cannot_be_made():
    a = qd.ndarray(qd.f32, 8)
    for offset, size in ((-1, 2), (0, -1), (4, 5), (9, 0)):
        with pytest.raises(ValueError, match="out of range"):
            qd.BufferView(a, offset, size)
    with pytest.raises(ValueError, match="subview out of range"):
        a[:4].subview(2, 3)
    for thing in (a, a[:4]):
        with pytest.raises(ValueError, match="step=1"):
            thing[::2]
    with pytest.raises(TypeError, match="1D"):
        qd.ndarray(qd.f32, (2, 2))[:1]
    with pytest.raises(TypeError, match="1D"):
        qd.BufferView(np.zeros(4), 0, 2)
    with pytest.raises(TypeError, match="grad"):
        qd.ndarray(qd.f32, 4, needs_grad=True)[:2]
    with pytest.raises(TypeError, match="slice"):
        a[:4]["x"]
    for index in (4, -5):
        with pytest.raises(IndexError, match="out of bounds for a view of 4"):
            a[:4][index]
    with pytest.raises(TypeError, match="no dtype"):
        qd.BufferView["f32"]


# ---- kernels -----------------------------------------------------------------------------------


@qd.kernel
def scale(v: qd.BufferView[qd.f32], by: qd.f32):
    for i in range(v.size):
        v[i] *= by


@qd.kernel
def mark(v: qd.BufferView):
    for i in range(v.shape[0]):
        v[i] += v.offset


def test_one_kernel_for_all_views():
    a = count(20)
    scale(a[:5], 2.0)
    scale(a[15:], 3.0)
    scale(a[7:7], 9.0)
    want = np.arange(20, dtype=np.float32)
    want[:5] *= 2
    want[15:] *= 3
    assert a.to_numpy().tolist() == want.tolist()
    before = qd._core.counters()["variants"]
    scale(count(9)[2:8], 2.0)
    assert qd._core.counters()["variants"] == before
    b = count(6, qd.i32)
    mark(b[2:4])
    mark(a[3:4])
    assert b.to_numpy().tolist() == [0, 1, 4, 5, 4, 5] and a[3] == want[3] + 3
    assert qd._core.counters()["variants"] == before + 2


def test_writes_are_counted():
    a = count(8)
    before = a._generation
    scale(a[:2], 2.0)
    assert a._generation > before


def test_views_of_one_array_overlap():
    @qd.kernel
    def shift(to: qd.BufferView[qd.i32], source: qd.BufferView[qd.i32]):
        qd.loop_config(serialize=True)
        for i in range(to.size):
            to[i] = source[i] + 1

    a = count(6, qd.i32)
    shift(a[1:], a[:5])
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]
    a.fill(7)
    shift(a[1:], a[:5])
    assert a.to_numpy().tolist() == [7, 8, 9, 10, 11, 12]


def test_views_inside_of_kernels():
    @qd.func
    def put(v: qd.BufferView[qd.f32], i: qd.i32, x: qd.f32):
        v[i] = x

    @qd.kernel
    def run(v: qd.BufferView, a: qd.types.ndarray(), n: qd.i32) -> qd.f32:
        inner = v.subview(offset=1, size=4)
        for i in range(inner.size):
            put(inner, i, 10.0 + i)
        for i in range(2):
            put(inner[: inner.size // 2], i, -1.0)
        own = qd.BufferView(a, n, size=2)
        for i in range(own.size):
            own[i] = 5.0
        piece = a[n + 2 : n + 3]
        piece[0] = 6.0
        return piece[0] + own.offset + len(own.shape)

    a, b = count(12), count(8)
    assert run(a[3:9], b, 4) == 6 + 4 + 1
    assert a.to_numpy().tolist() == [0, 1, 2, 3, -1, -1, 12, 13, 8, 9, 10, 11]
    assert b.to_numpy().tolist() == [0, 1, 2, 3, 5, 5, 6, 7]


def test_views_of_vectors_and_matrices():
    @qd.kernel
    def run(v: qd.BufferView, m: qd.BufferView[qd.math.mat2]):
        for i in range(v.size):
            v[i] = qd.Vector([1.0, 2.0, 3.0]) * i
            v[i][0] = 9.0
            m[i][1, 0] = v[i].z

    v, m = qd.Vector.ndarray(3, qd.f32, 6), qd.Matrix.ndarray(2, 2, qd.f32, 6)
    run(v[2:4], m[3:5])
    assert v.to_numpy()[2:4].tolist() == [[9, 0, 0], [9, 2, 3]] and not v.to_numpy()[[0, 1, 4, 5]].any()
    assert m.to_numpy()[4].tolist() == [[0, 0], [3, 0]]


def test_views_in_objects():
    class State:
        def __init__(self, view):
            self.view = view

    @qd.kernel
    def total(s: qd.template()) -> qd.f32:
        t = 0.0
        for i in range(s.view.size):
            t += s.view[i]
        return t

    a = count(10)
    state = State(a[2:4])
    assert total(state) == 5
    state.view = a[5:8]
    assert total(state) == 18
    state.view = count(3, qd.i32)[:]
    assert total(state) == 3


def test_atomics_and_references():
    @qd.kernel
    def run(v: qd.BufferView[qd.i32]):
        for i in range(100):
            v[i % v.size] += 1
            qd.atomic_max(v[0], i)

    a = qd.ndarray(qd.i32, 8)
    run(a[2:6])
    assert a.to_numpy().tolist()[3:] == [25, 25, 25, 0, 0] and a[2] >= 99


def test_arguments_that_are_no_views():
    a = count(4)
    with pytest.raises(qd.IngotRuntimeTypeError, match="must be a BufferView"):
        scale(a, 2.0)
    with pytest.raises(TypeError, match="annotated as an array of f32"):
        scale(count(4, qd.i32)[:2], 2.0)
    with pytest.raises(TypeError):
        mark(3)

    @qd.func
    def takes(v: qd.BufferView):
        v[0] = 1

    @qd.kernel
    def gives(x: qd.types.ndarray()):
        takes(x)

    with pytest.raises(TypeError, match="annotated as a BufferView; the argument is an array"):
        gives(a)


def test_mistakes_in_kernels():
    @qd.kernel
    def step(v: qd.BufferView):
        x = v[::2]
        x[0] = 1

    @qd.kernel
    def negative(v: qd.BufferView):
        v[-1] = 0

    @qd.kernel
    def floating(v: qd.BufferView):
        v[0.5] = 0

    @qd.kernel
    def few(v: qd.BufferView):
        x = v.subview(1)
        x[0] = 1

    @qd.kernel
    def attribute(v: qd.BufferView) -> qd.i32:
        return v.length

    @qd.kernel
    def axes(x: qd.types.ndarray()) -> qd.i32:
        return qd.BufferView(x, 0, 1).size

    view = count(8)[:4]
    for kernel, arg, error, text in (
        (step, view, qd.IngotSyntaxError, "explicit step"),
        (negative, view, qd.IngotSyntaxError, "Negative indices"),
        (floating, view, qd.IngotTypeError, "must be an integer"),
        (few, view, qd.IngotTypeError, "subview takes 2 arguments, found 1"),
        (attribute, view, qd.IngotAttributeError, "no attribute 'length'"),
        (axes, qd.ndarray(qd.f32, (2, 2)), qd.IngotTypeError, "requires a 1D ndarray"),
    ):
        with pytest.raises(error, match=text):
            kernel(arg)


# ---- debug mode ----------------------------------------------------------------------------------


def test_debug_checks_the_view_and_not_the_array(target):
    qd.init(arch=target, debug=True)

    @qd.func
    def put(v: qd.BufferView, i: qd.i32):
        v[i] = 1

    @qd.kernel
    def run(v: qd.BufferView, i: qd.i32):
        for _ in range(1):
            put(v, i)

    a = count(32)
    run(a[8:24], 15)
    assert a[23] == 1
    for index in (16, -1):
        with pytest.raises(qd.IngotAssertionError) as caught:
            run(a[8:24], index)
        text = str(caught.value)
        assert "BufferView Out Of Range: kernel[" in text and "tid=?" in text
        assert f"got index {index} (offset=8, size=16)" in text
        assert re.search(r"Callstack:\n\S*run\n  \S*put\n", text) and "v[i] = 1" in text
    assert a[24] == 24 and a[7] == 7


def test_debug_checks_how_views_are_made(target):
    qd.init(arch=target, debug=True)

    @qd.kernel
    def sub(v: qd.BufferView, offset: qd.i32, size: qd.i32) -> qd.i32:
        return v.subview(offset, size).size

    @qd.kernel
    def make(x: qd.types.ndarray(), offset: qd.i32, size: qd.i32) -> qd.i32:
        return qd.BufferView(x, offset, size).size

    a = count(32)
    assert sub(a[8:24], 16, 0) == 0 and make(a, 30, 2) == 2
    for offset, size in ((16, 1), (-1, 2), (0, -1)):
        with pytest.raises(qd.IngotAssertionError, match="subview Out Of Range"):
            sub(a[8:24], offset, size)
    for offset, size in ((31, 2), (-1, 2), (0, -1)):
        with pytest.raises(qd.IngotAssertionError, match="construction out of range"):
            make(a, offset, size)
