"""Arrays and numbers of NumPy and torch: as kernel arguments, as constants, and converted."""

import array
import ctypes
import dataclasses
import gc
import itertools
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest
from conftest import ROOT, needs, samples
from test_array import NUMPY
from test_launch import repeat_and_compare

import ingot as qd

try:
    import torch
except ImportError:  # the tests that need it say so
    torch = None

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


@qd.kernel
def double(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] = x[i] + x[i]


@qd.kernel
def invert(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] = x[i] == 0


@qd.kernel
def untouched(x: qd.types.ndarray()):
    pass


@qd.kernel
def number2d(x: qd.types.ndarray(ndim=2)):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = i * 10 + j


@qd.kernel
def first(x: qd.types.ndarray()) -> qd.f64:
    return qd.cast(x[0], qd.f64)


@qd.kernel
def total0(x: qd.types.ndarray()) -> qd.f64:
    return x[()]


@qd.kernel
def total1(x: qd.types.ndarray()) -> qd.f64:
    s = qd.f64(0.0)
    for k in range(1):
        for i in range(x.shape[0]):
            s += x[i] * (i + 1)
    return s


@qd.kernel
def total2(x: qd.types.ndarray()) -> qd.f64:
    s = qd.f64(0.0)
    for k in range(1):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                s += x[i, j] * (i * 10 + j + 1)
    return s


@qd.kernel
def total3(x: qd.types.ndarray()) -> qd.f64:
    s = qd.f64(0.0)
    for k in range(1):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                for m in range(x.shape[2]):
                    s += x[i, j, m] * (i * 100 + j * 10 + m + 1)
    return s


TOTALS = [total0, total1, total2, total3]


def refusal(kernel, *args):
    """The text of the refusal, which is both a TypeError and a ValueError and names the place."""
    with pytest.raises(qd.IngotArgumentError) as caught:
        kernel(*args)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)
    text = str(caught.value)
    assert re.search(r"test_interop\.py:\d+:\d+: ", text) and "help: " in text, text
    return text


# ---- NumPy arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_numpy_dtypes(dtype):
    x = np.arange(5).astype(NUMPY[dtype])
    invert(x)
    assert x.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.host_memory
def test_numpy_shares_memory():
    x = np.arange(10, dtype=np.int32)
    double(x[2:5])
    assert x.tolist() == [0, 1, 4, 6, 8, 5, 6, 7, 8, 9]
    a = qd.ndarray(qd.f32, 4)
    a.fill(3)
    double(a.to_numpy(copy=False))
    assert a[3] == 6


def test_order_of_axes():
    want = np.add.outer(np.arange(2) * 10, np.arange(3))
    for x in (np.zeros((2, 3)), np.zeros((2, 3), order="F"), np.zeros((3, 2)).T,
              np.zeros((1, 2, 3))[0], np.zeros((2, 3, 1))[:, :, 0]):
        number2d(x)
        assert (x == want).all()
    assert "Non contiguous numpy arrays" in refusal(number2d, np.zeros((3, 5, 2)).T[:, 4])


def views(rng):
    """A view of an array in some order, with gaps or without."""
    shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 4)))
    x = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    x = x.transpose(rng.permutation(len(shape))) if shape else x
    for axis in range(x.ndim):
        cut = [slice(None)] * x.ndim
        cut[axis] = [slice(None), slice(1), slice(None, None, 2), slice(None, None, -1),
                     slice(1, None), slice(None)][rng.integers(6)]
        if rng.integers(3) == 0:
            x = x[tuple(cut)]
    return x


def is_dense(x):
    """By brute force: the elements fill the block that starts at the first one."""
    offsets = sorted(sum(i * s for i, s in zip(index, x.strides))
                     for index in itertools.product(*map(range, x.shape)))
    return offsets == [8 * i for i in range(x.size)]


def weighted(x):
    weights = np.zeros(x.shape)
    for index in np.ndindex(*x.shape):
        weights[index] = sum(i * 10 ** (x.ndim - 1 - k) for k, i in enumerate(index)) + 1
    return float((x * weights).sum())


def test_any_order_without_gaps():
    rng = np.random.default_rng(7)
    accepted = refused = 0
    for _ in range(samples(2000)):
        x = views(rng)
        if is_dense(x):
            assert TOTALS[x.ndim](x) == weighted(x), (x.shape, x.strides)
            accepted += 1
        else:
            assert "Non contiguous" in refusal(TOTALS[x.ndim], x)
            refused += 1
    assert accepted > 20 and refused > 5


def test_each_order_is_compiled_once():
    from ingot import _core

    @qd.kernel
    def k(x: qd.types.ndarray()):
        x[0, 1] = 5

    def made():
        return _core.counters()["variants"]

    start = made()
    for _ in range(3):
        for x in (np.zeros((2, 3)), np.zeros((2, 3), order="F"), qd.ndarray(qd.f64, (2, 3)),
                  qd.ndarray(qd.f64, (2, 3), layout=(1, 0))):
            k(x)
            assert x[0, 1] == 5
    assert made() - start == 2  # row major, column major; whose array it is does not matter


def test_other_buffers():
    for x in (array.array("f", [1, 2, 3]), (ctypes.c_float * 3)(1, 2, 3),
              memoryview(array.array("f", [1, 2, 3]))):
        double(x)
        assert list(x) == [2, 4, 6]


def test_empty_arrays():
    for shape in ((0,), (0, 5), (5, 0, 5)):
        untouched(np.zeros(shape))
        untouched(np.zeros(shape).T)
    number2d(np.zeros((0, 3), order="F"))
    double(np.zeros(0))


def test_zero_dimensional():
    assert total0(np.array(2.5)) == 2.5


@pytest.mark.parametrize("x, why", [
    (np.zeros((4, 4))[:, ::2], "Non contiguous numpy arrays are not supported"),
    (np.zeros(4)[::-1], "Non contiguous"),
    (np.broadcast_to(np.zeros(1), 4), "Non contiguous"),
    (np.zeros(4, complex), "complex numbers (element format 'Zd') are not supported"),
    (np.zeros(4, ">f4"), "big-endian order (element format '>f') are not supported"),
    (np.zeros(4, "M8[s]"), "cannot include dtype 'M'"),
    (np.zeros(4, object), "element format 'O'"),
    (np.zeros(4, "f4,f4"), "not supported"),
    (np.zeros((1,) * 13), "13 dimensions; at most 12"),
    (np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64), "not aligned to 8 bytes"),
    (np.float32(3), "Invalid type for argument x, got 3.0: it must be an array, not numpy.float32"),
    (b"text", "must be an array, not bytes"),
    (1.5, "Invalid type for argument x, got 1.5"), ([1.0], "not list"), (None, "not NoneType"),
], ids=range(15))
def test_what_cannot_be_an_array(x, why):
    assert why in refusal(double, x)
    good = np.ones(2)
    double(good)  # and again with a variant at hand
    assert why in refusal(double, x)
    assert good[1] == 2


def test_bytes():
    @qd.kernel
    def add(x: qd.types.ndarray(), by: qd.u8) -> qd.i32:
        for i in range(x.shape[0]):
            x[i] += by
        return x[0]

    @qd.kernel
    def first(x: qd.types.ndarray()) -> qd.i32:
        return x[0]

    text = bytearray(b"abc")
    assert add(text, 2) == ord("c") and text == b"cde"
    assert first(memoryview(b"xyz")) == ord("x")
    assert "read-only" in refusal(add, memoryview(b"xyz"), 1)


def test_huge_extent():
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (2**31,), (1,))
    assert "at most 2147483647" in refusal(double, x)


def test_read_only():
    x = np.ones(3)
    x.flags.writeable = False
    assert "read-only" in refusal(double, x)
    assert first(x) == 1  # reading is fine


def test_annotations_are_checked():
    @qd.kernel
    def exact(x: qd.types.ndarray(qd.i32, ndim=1)):
        x[0] = 1

    @qd.kernel
    def graded(x: qd.types.ndarray(needs_grad=True)):
        x[0] = 1

    assert ("Invalid value for argument x - required array has dtype=i32, array with dtype=i64 is "
            "provided") in refusal(exact, np.zeros(2, np.int64))
    assert ("required array has ndim=1, array with 3 dimensions is provided"
            ) in refusal(exact, np.zeros((1, 2, 3), np.int32))
    assert ("required ndim=1, but 2d ndarray with shape (2, 3) is provided"
            ) in refusal(exact, qd.ndarray(qd.i32, (2, 3)))
    assert "required needs_grad=True" in refusal(graded, qd.ndarray(qd.f32, 2))
    assert "required needs_grad=True" in refusal(graded, np.zeros(2))
    graded(qd.ndarray(qd.f32, 2, needs_grad=True))
    for bad in ({"needs_grad": 2}, {"ndim": True}):
        with pytest.raises(ValueError):
            qd.types.ndarray(**bad)


def test_many_arguments():
    names = [f"a{i}" for i in range(512)]
    head = ", ".join(f"{n}: qd.types.NDArray[qd.i32, 1]" for n in names)
    text = f"def k({head}):\n" + "".join(f"    {n}[0] += {i}\n" for i, n in enumerate(names))
    scope = {"qd": qd}
    exec(text, scope)
    arrays = [np.zeros(1, np.int32) for _ in names]
    qd.kernel(source=text)(scope["k"])(*arrays)
    assert [int(a[0]) for a in arrays] == list(range(512))


# ---- NumPy scalars --------------------------------------------------------------------------------


def test_numpy_scalars_as_arguments():
    @qd.kernel
    def k(i: qd.i32, u: qd.u64, f: qd.f64, b: qd.u1) -> (qd.i32, qd.u64, qd.f64, qd.u1):
        return i, u, f, b

    assert k(np.int8(-3), np.uint64(2**64 - 1), np.float32(0.5), np.bool_(True)) == (
        -3, 2**64 - 1, 0.5, 1)
    assert k(np.bool_(True), np.uint8(4), np.int64(3), np.int32(0)) == (1, 4, 3.0, 0)
    assert "argument 'i' must be an integer (i32), it is of type numpy.float64" in refusal(k, np.float64(1), 0, 0.0, 0)
    assert "does not fit in i32" in refusal(k, np.int64(2**40), 0, 0.0, 0)
    assert "does not fit in u64" in refusal(k, 0, np.int8(-1), 0.0, 0)
    assert "argument 'f'" in refusal(k, 0, 0, np.zeros(3), 0)


HALF = np.float64(0.1)
SMALL = np.int8(100)
BIG = np.uint64(2**63 + 3)
YES = np.bool_(True)
TEXT = np.str_("no number")


def test_numpy_scalars_are_typed_constants():
    @qd.kernel
    def half(x: qd.types.ndarray()):
        x[0] = HALF

    @qd.kernel
    def rest(x: qd.types.ndarray(), y: qd.types.ndarray()):
        y[0] = BIG
        if YES:
            x[0] = SMALL
        x[1] = BIG

    x, y = qd.ndarray(qd.f64, 2), qd.ndarray(qd.u64, 1)
    half(x)
    assert x[0] == 0.1  # not rounded to the default f32 on its way
    rest(x, y)
    assert x[0] == 100 and x[1] == 2.0**63 and y[0] == 2**63 + 3


def test_a_change_of_a_numpy_scalar_is_seen():
    from ingot import _core

    @qd.kernel
    def k(x: qd.types.ndarray()):
        x[0] = value

    x = qd.ndarray(qd.f64, 1)
    start = _core.counters()["variants"]
    for value, variants in [(np.float32(0.5), 1), (np.float32(0.1), 2), (np.float64(0.1), 3),
                            (np.float32(0.5), 3), (np.int16(7), 4), (7, 5)]:
        k(x)
        assert x[0] == float(value)
        assert _core.counters()["variants"] - start == variants


def test_numpy_scalar_in_static_places():
    n = np.int32(3)

    @qd.kernel
    def k(x: qd.types.ndarray(), m: qd.template()):
        for i in qd.static(range(n)):
            x[i] = m
        for i, j in qd.ndrange((n, np_five), 1):
            x[i] = 1

    np_five = np.int64(5)
    x = qd.ndarray(qd.i32, 6)
    k(x, np.int32(4))
    assert [x[i] for i in range(6)] == [4, 4, 4, 1, 1, 0]


# ---- returns and defaults ---------------------------------------------------------------------------


def test_returns():
    @qd.kernel
    def one(a: qd.f32) -> qd.f32:
        return a

    @qd.kernel
    def two(a: qd.i64, b: qd.f64) -> tuple[qd.i64, qd.f64]:
        return a + 1, b * 2

    @qd.kernel
    def single(a: int) -> (qd.u8,):
        return a

    @qd.kernel
    def truth(a: float) -> bool:
        return a > 0

    assert one(0.1) == np.float32(0.1) and type(one(1)) is float
    assert two(2**40, 0.1) == (2**40 + 1, 0.2)
    assert single(300) in ((44,), 44)
    assert truth(1.0) == 1 and truth(-1.0) == 0


def test_defaults():
    shared = qd.ndarray(qd.f32, 2)

    @qd.kernel
    def k(x: qd.types.ndarray() = shared, v: qd.f32 = np.float32(2.5), *, n: qd.i32 = 1):
        x[n] = v

    k()
    assert shared[1] == 2.5
    k(v=4, n=0)
    assert shared[0] == 4 and shared[1] == 2.5
    mine = np.zeros(2, np.float32)
    k(mine)
    assert mine[1] == 2.5
    k(n=np.int64(0), x=mine)
    assert mine.tolist() == [2.5, 2.5]


# ---- layouts and gradients ---------------------------------------------------------------------------


@pytest.mark.host_memory
@pytest.mark.parametrize("layout", list(itertools.permutations(range(3))), ids=str)
def test_layouts_in_kernels(layout):
    @qd.kernel
    def index(x: qd.types.ndarray(qd.i32, 3)):
        for i, j, k in qd.ndrange(x.shape[0], x.shape[1], x.shape[2]):
            x[i, j, k] = i * 100 + j * 10 + k

    a = qd.ndarray(qd.i32, (2, 3, 4), layout=layout)
    index(a)
    i, j, k = np.indices((2, 3, 4))
    want = i * 100 + j * 10 + k
    assert (a.to_numpy() == want).all() and a.to_numpy().flags.c_contiguous
    view = a.to_numpy(copy=False)
    assert view.shape == (2, 3, 4) and (view == want).all()
    flat = np.frombuffer(memoryview(a).cast("B") if layout == (0, 1, 2) else bytes(
        (ctypes.c_char * a.nbytes).from_address(view.__array_interface__["data"][0])), np.int32)
    assert (flat == want.transpose(layout).ravel()).all()
    index(view)  # the view has the same strides, so the same code
    view[1, 2, 3] = -1
    assert a[1, 2, 3] == -1


def test_gradients_are_arrays():
    a = qd.ndarray(qd.f32, (2, 3), needs_grad=True, layout=(1, 0))
    assert a.grad.shape == (2, 3) and a.grad.layout == (1, 0) and a.grad.dtype is qd.f32
    number2d(a)
    number2d(a.grad)
    assert (a.to_numpy() == a.grad.to_numpy()).all() and a.grad[1, 2] == 12
    assert a.grad.grad is None


# ---- torch -------------------------------------------------------------------------------------------


@needs("torch")
@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                                  "float32", "float64", "uint16", "uint32", "uint64"])
def test_torch_dtypes(name):
    x = torch.arange(5).to(getattr(torch, name))
    invert(x)
    assert x.tolist() == [1, 0, 0, 0, 0]


@needs("torch")
def test_torch_shares_memory():
    x = torch.arange(10, dtype=torch.int32)
    double(x[2:5])
    assert x.tolist() == [0, 1, 4, 6, 8, 5, 6, 7, 8, 9]
    y = torch.zeros(2, 3)
    number2d(y)
    assert y.tolist() == [[0, 1, 2], [10, 11, 12]]
    number2d(torch.zeros(3, 2, 3)[1])
    assert total0(torch.tensor(2.5, dtype=torch.float64)) == 2.5
    for shape in ((0,), (0, 5), (5, 0, 5)):
        untouched(torch.zeros(shape))


@needs("torch")
def test_torch_numpy_and_ours_are_one_variant():
    from ingot import _core

    @qd.kernel
    def k(x: qd.types.ndarray()):
        x[0] = 1

    start = _core.counters()["variants"]
    for x in (torch.zeros(2), np.zeros(2, np.float32), qd.ndarray(qd.f32, 2)):
        k(x)
        assert x[0] == 1
    assert _core.counters()["variants"] - start == 1


@needs("torch")
def test_torch_refusals():
    z = torch.ones(1, dtype=torch.complex64) * 1j
    for x, why in [
        (torch.zeros(3, 2).t(), "Non contiguous tensors are not supported"),
        (torch.zeros(4, 4)[:, 0], "Non contiguous tensors are not supported"),
        (torch.zeros(1).expand(4), "Non contiguous"),
        (torch.zeros(2, dtype=torch.complex64), "this dtype"),
        (torch.zeros(2, dtype=torch.bfloat16), "this dtype"),
        (torch.zeros(2, device="meta"), "meta"),
        (torch.zeros(2).to_sparse(), "storage"),
        (torch.zeros((1,) * 13), "13 dimensions"),
        (z.conj().imag, "resolve_neg"),
    ]:
        for _ in range(2):
            assert why in refusal(double, x)
            double(torch.ones(2))
    double(z.conj().imag.resolve_neg())


@needs("torch")
def test_torch_scalars():
    @qd.kernel
    def k(i: qd.i32, f: qd.f32) -> (qd.i32, qd.f32):
        return i, f

    assert k(torch.tensor(3), torch.tensor(0.5)) == (3, 0.5)
    assert "argument 'i' must be an integer (i32), it is of type Tensor" in refusal(k, torch.tensor(3.5), 1)
    a = qd.ndarray(qd.f32, 3)
    a.fill(torch.tensor(2.5))
    a[1] = torch.tensor(1.5)
    a[torch.tensor(2)] = np.float64(4)
    assert [a[i] for i in range(3)] == [2.5, 1.5, 4]
    a.fill(np.float16(0.5))
    assert a[0] == 0.5
    b = qd.ndarray(qd.i32, 2)
    b.fill(np.int64(7))
    b[0] = torch.tensor(-3)
    assert [b[0], b[1]] == [-3, 7]


@needs("torch")
def test_torch_gradients():
    x = torch.ones(4, requires_grad=True)
    assert x.grad is None
    double(x)
    assert x.grad is not None and x.grad.tolist() == [0] * 4  # as the reference does
    mine = x.grad
    double(x)
    assert x.grad is mine and x.tolist() == [4] * 4 and x.requires_grad
    y = x * 2  # not a leaf
    double(y)
    assert y.tolist() == [16] * 4
    parameter = torch.nn.Parameter(torch.ones(2))
    double(parameter)
    assert parameter.tolist() == [2, 2] and parameter.grad.tolist() == [0, 0]

    @qd.kernel
    def graded(x: qd.types.ndarray(needs_grad=True)):
        x[0] = 1

    graded(torch.zeros(2, requires_grad=True))
    assert "needs_grad" in refusal(graded, torch.zeros(2))


@needs("torch")
def test_torch_bad_gradients():
    x = torch.ones(4, 2, requires_grad=True)
    x.grad = torch.zeros(2, 4).t()
    assert "Non contiguous" in refusal(number2d, x)
    x.grad = None
    number2d(x)


@needs("torch")
def test_torch_autograd_function():
    @qd.kernel
    def square(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]

    @qd.kernel
    def back(gx: qd.types.ndarray(), x: qd.types.ndarray(), gy: qd.types.ndarray()):
        for i in range(x.shape[0]):
            gx[i] = 2 * x[i] * gy[i]

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.zeros_like(x)
            ctx.save_for_backward(x)
            square(x, y)
            return y

        @staticmethod
        def backward(ctx, gy):
            (x,) = ctx.saved_tensors
            gx = torch.zeros_like(x)
            back(gx, x, gy.contiguous())
            return gx

    x = torch.full((3,), 2.0, requires_grad=True)
    Square.apply(Square.apply(x)).sum().backward()
    assert x.grad.tolist() == [32.0] * 3  # of x ** 4


@needs("torch")
@pytest.mark.host_memory
def test_torch_conversions():
    a = qd.ndarray(qd.f32, (2, 3), layout=(1, 0))
    number2d(a)
    copied, view = a.to_torch(), a.to_torch(copy=False)
    assert copied.is_contiguous() and view.stride() == (1, 2) and torch.equal(copied, view)
    assert view.data_ptr() == a.to_torch(copy=None).data_ptr()
    view[1, 2] = 99
    assert a[1, 2] == 99 and copied[1, 2] == 12
    assert torch.equal(a.to_torch("cpu"), a.to_torch(device=torch.device("cpu")))
    with pytest.raises(ValueError, match="copy=False cannot move"):
        a.to_torch("meta", copy=False)
    assert a.to_torch("meta").device.type == "meta"

    a.from_torch(torch.arange(6).reshape(3, 2).t())  # another dtype, another order
    assert a.to_numpy().tolist() == [[0, 2, 4], [1, 3, 5]]
    a.from_torch(torch.full((2, 3), 1.5, dtype=torch.bfloat16, requires_grad=True))
    assert a[1, 1] == 1.5
    b = qd.ndarray(qd.i32, 3)
    b.from_torch(torch.tensor([1.9, -1.9, 3.0]))
    assert [b[i] for i in range(3)] == [1, -1, 3]
    for bad in (torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.complex64), np.zeros((2, 3))):
        with pytest.raises((ValueError, TypeError), match="from_torch"):
            a.from_torch(bad)
    for dtype in NUMPY:
        c = qd.ndarray(dtype, ())
        c[()] = 1
        assert c.to_torch().item() == 1 and c.to_torch(copy=False).shape == ()


@needs("torch")
@pytest.mark.host_memory
def test_torch_view_keeps_the_memory():
    a = qd.ndarray(qd.f32, 1000)
    a.fill(3)
    view, gone = a.to_torch(copy=False), weakref.ref(a)
    del a
    gc.collect()
    assert gone() is not None and view.sum() == 3000
    del view
    gc.collect()
    assert gone() is None


@needs("torch")
def test_torch_references():
    t, g = torch.zeros(4), torch.zeros(4, requires_grad=True)
    one, bad = torch.zeros(1), torch.zeros(4, 4)[:, 0]
    repeat_and_compare(lambda: double(t), t, double)
    repeat_and_compare(lambda: double(one), one, double)
    repeat_and_compare(lambda: double(g), g, g.grad, double)
    repeat_and_compare(lambda: refusal(double, bad), bad, double, n=40)


@needs("torch")
def test_importing_ingot_does_not_import_torch():
    code = """if True:
        import sys, numpy as np, ingot as qd
        qd.init(arch=qd.interp)
        k = qd.kernel(source="def k(x: qd.types.ndarray()): x[0] = 1")
        def k_(x: qd.types.ndarray()): pass
        a = qd.ndarray(qd.f32, 2); a.fill(1); a.to_numpy()
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- anything with DLPack -----------------------------------------------------------------------------


class Tensor:
    """A tensor of a library from before the table of C functions."""

    def __init__(self, x):
        self.x = x
        self.asked = 0

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **how):
        self.asked += 1
        return self.x.__dlpack__(**how)


@pytest.mark.host_memory
def test_dlpack_arguments():
    x = Tensor(np.ones(3, np.float32))
    double(x)
    double(x)
    assert x.x.tolist() == [4] * 3
    a = qd.ndarray(qd.f32, 2)
    a.fill(1)
    double(Tensor(a))
    assert a[1] == 2 and a._generation != 0  # nothing of it is held after the launch
    repeat_and_compare(lambda: double(x), x, x.x, double, n=100)
    assert "Non contiguous tensors" in refusal(double, Tensor(np.zeros((2, 2))[:, 0]))


def test_dlpack_arguments_that_fail():
    class Elsewhere(Tensor):
        def __dlpack_device__(self):
            return (2, 0)

    class Angry(Tensor):
        def __dlpack__(self, **how):
            raise RuntimeError("not today")

    class Wrong(Tensor):
        def __dlpack__(self, **how):
            return 3

    class Used(Tensor):
        def __dlpack__(self, **how):
            capsule = self.x.__dlpack__(**how)
            Tensor.keep = qd.from_dlpack(capsule)
            return capsule

    class Bare:
        __dlpack_c_exchange_api__ = "no capsule"

    x = np.ones(3)
    for bad, why in [(Elsewhere(x), "CPU"), (Angry(x), "not today"), (Wrong(x), "capsule"),
                     (Used(x), "used before"), (Bare(), "must be an array, not Bare")]:
        assert why in refusal(double, bad)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    try:
        fixed.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):  # NumPy before 2.1
        return
    assert "read-only" in refusal(double, Tensor(fixed))


def test_types_are_not_kept_alive():
    class Short(Tensor):
        pass

    double(Short(np.ones(2)))
    gone = weakref.ref(Short)
    del Short
    gc.collect()
    assert gone() is None


def test_a_type_that_changes():
    class Late:
        pass

    x = Late()
    assert "must be an array" in refusal(double, x)
    inner = np.ones(2)
    Late.__dlpack_device__ = lambda self: inner.__dlpack_device__()
    Late.__dlpack__ = lambda self, **how: inner.__dlpack__(**how)
    double(x)
    assert inner[1] == 2
    del Late.__dlpack__
    assert "must be an array" in refusal(double, x)


@needs("torch")
def test_dlpack_tensor_with_a_gradient():
    class Old(Tensor):  # torch refuses capsules of tensors that require a gradient
        requires_grad = property(lambda self: self.x.requires_grad)
        is_leaf = property(lambda self: self.x.is_leaf)
        grad = property(lambda self: Old(self.x.grad))

        def detach(self):
            return Old(self.x.detach())

    t = torch.ones(3, requires_grad=True)
    t.grad = torch.zeros(3)
    x = Old(t)
    double(x)
    assert t.tolist() == [2] * 3
    repeat_and_compare(lambda: double(x), t, t.grad, double, n=60)


# ---- the page about it ----------------------------------------------------------------------------------


@needs("torch")
def test_the_torch_blocks_of_the_page_run(tmp_path):
    text = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert any("torch" in b for b in blocks)
    path = tmp_path / "page.py"
    path.write_text("\n".join(blocks), encoding="utf-8")
    subprocess.run([sys.executable, str(path)], check=True, timeout=300)


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


@dataclasses.dataclass
class WithArray:
    x: qd.types.ndarray()


@qd.data_oriented
class WithMembers:
    def __init__(self, x):
        self.x, self.some, self.by_name = x, [x], {"x": x}

    @qd.kernel
    def member(self) -> qd.f64:
        return self.x[1]

    @qd.kernel
    def item(self) -> qd.f64:
        return self.some[0][1]

    @qd.kernel
    def named(self) -> qd.f64:
        return self.by_name["x"][1]


def test_masked_arrays_are_refused():
    """A kernel would read what the mask hides; arr.data and arr.filled(value) are plain arrays."""

    @qd.kernel
    def second(x: qd.types.ndarray()) -> qd.f64:
        return x[1]

    @qd.kernel
    def of_template(x: qd.template()) -> qd.f64:
        return x[1]

    @qd.kernel
    def of_dataclass(d: WithArray) -> qd.f64:
        return d.x[1]

    @qd.kernel
    def captured() -> qd.f64:
        return MASKED[1]

    @qd.kernel
    def of_vector(v: qd.types.vector(3, qd.f64)) -> qd.f64:
        return v[1]

    @qd.kernel
    def number(x: qd.f64) -> qd.f64:
        return x

    array, calls = qd.ndarray(qd.f64, 3), {
        "argument": lambda: second(MASKED),
        "2d": lambda: second(MASKED.reshape(1, 3)),
        "nothing masked": lambda: second(np.ma.array([1.0, 2.0])),
        "subclass": lambda: second(MASKED.view(type("Mine", (np.ma.MaskedArray,), {}))),
        "template": lambda: of_template(MASKED),
        "dataclass": lambda: of_dataclass(WithArray(MASKED)),
        "captured": captured,
        "member": lambda: WithMembers(MASKED).member(),
        "item": lambda: WithMembers(MASKED).item(),
        "named": lambda: WithMembers(MASKED).named(),
        "vector": lambda: of_vector(MASKED),
        "number": lambda: number(MASKED[1]),
        "from_numpy": lambda: array.from_numpy(MASKED),
        "Vector": lambda: qd.Vector(MASKED),
        "element": lambda: array.__setitem__(0, MASKED[1]),
        "fill": lambda: array.fill(MASKED[1]),
    }
    assert second(MASKED.data) == 2  # compiled for such arrays now
    for name, call in calls.items():
        with pytest.raises((TypeError, qd.IngotError), match="mask|number"):
            call()
            pytest.fail(name)
    assert second(MASKED.filled(7.0)) == 7
    assert WithMembers(MASKED.data).item() == 2


def test_other_subclasses_of_ndarray(tmp_path):
    @qd.kernel
    def double(x: qd.types.ndarray()):
        for I in qd.grouped(x):
            x[I] *= 2

    matrix = np.ones((2, 3)).view(np.matrix)
    double(matrix)
    assert (np.asarray(matrix) == 2).all()
    mapped = np.memmap(tmp_path / "m", np.float32, "w+", shape=4)
    mapped[:] = 1
    double(mapped)
    assert (mapped == 2).all()
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    with pytest.raises(qd.IngotArgumentError, match="element format"):
        double(records)


def test_the_remedy_for_gaps_works():
    """What the message says, done: the result arrives where it belongs."""

    @qd.kernel
    def double(x: qd.types.ndarray()):
        for i in range(x.shape[0]):
            x[i] *= 2

    whole = np.arange(16.0).reshape(4, 4)
    arr = whole[:, 1]
    with pytest.raises(ValueError) as caught:
        double(arr)
    text = str(caught.value)
    assert "copy = np.ascontiguousarray(arr) before" in text and "arr[...] = copy" in text
    copy = np.ascontiguousarray(arr)
    double(copy)
    arr[...] = copy
    assert list(whole[:, 1]) == [2.0, 10.0, 18.0, 26.0]
