"""The array type and the dtypes: elements, conversions, sharing of memory, life and death.

Operations are run many times and compared with themselves: neither reference counts nor
memory may grow.
"""

import copy
import ctypes
import gc
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import ingot as qd
from ingot import _core

INTS = (qd.i8, qd.i16, qd.i32, qd.i64, qd.u8, qd.u16, qd.u32, qd.u64)
FLOATS = (qd.f16, qd.f32, qd.f64)
ALL = (qd.u1, *INTS, *FLOATS)
NUMPY = {
    qd.u1: np.bool_, qd.i8: np.int8, qd.i16: np.int16, qd.i32: np.int32, qd.i64: np.int64,
    qd.u8: np.uint8, qd.u16: np.uint16, qd.u32: np.uint32, qd.u64: np.uint64,
    qd.f16: np.float16, qd.f32: np.float32, qd.f64: np.float64,
}


def filled(dtype, shape, layout=None):
    """An array with numbers that differ from each other, and the same in NumPy."""
    want = (np.arange(int(np.prod(shape))) % 120).reshape(shape).astype(NUMPY[dtype])
    array = qd.ndarray(dtype, shape, layout=layout)
    array.from_numpy(want)
    return array, want


# ---- dtypes ---------------------------------------------------------------------------------


def test_dtype_names():
    assert [str(t) for t in ALL] == [
        "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"
    ]
    assert repr(qd.f32) == "f32" and qd.f32.name == "f32" and qd.f32.to_string() == "f32"
    assert qd.u1.bits == 1 and qd.f16.bits == 16 and qd.u64.bits == 64
    assert len({t.id for t in ALL}) == len(ALL)
    assert qd.int32 is qd.i32 and qd.uint1 is qd.u1 and qd.float64 is qd.f64


def test_dtype_is_a_singleton():
    for t in ALL:
        assert pickle.loads(pickle.dumps(t)) is t
        assert copy.copy(t) is t and copy.deepcopy([t])[0] is t
        assert t == t and hash(t) == hash(t)
    assert qd.f32 != qd.f64
    with pytest.raises(TypeError):
        qd.DType()
    with pytest.raises((TypeError, AttributeError)):
        qd.f32.name = "x"
    with pytest.raises(TypeError):
        type("Sub", (qd.DType,), {})


@pytest.mark.parametrize("dtype, value, want", [
    (qd.i8, 300, 44), (qd.i8, -129, 127), (qd.u8, -1, 255), (qd.u64, -1, 2**64 - 1),
    (qd.i64, 2**64 - 1, -1), (qd.u64, 2**64 - 1, 2**64 - 1), (qd.i32, 1.9, 1),
    (qd.i32, -1.9, -1), (qd.i8, 1e9, 127), (qd.i8, -1e9, -128), (qd.u8, -3.0, 0),
    (qd.u8, 256.0, 255), (qd.i64, 1e30, 2**63 - 1), (qd.i64, -1e30, -(2**63)),
    (qd.u64, 1e30, 2**64 - 1), (qd.i32, float("nan"), 0), (qd.i32, float("inf"), 2**31 - 1),
    (qd.u1, 0, 0), (qd.u1, 7, 1), (qd.u1, 0.25, 1), (qd.u1, float("nan"), 1),
    (qd.f32, 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]), (qd.f64, 0.1, 0.1),
    (qd.f16, 1.1, 1.099609375), (qd.f16, 1e6, float("inf")), (qd.f32, 2**60 + 1, 2.0**60),
    (qd.f64, True, 1.0), (qd.i32, np.float32(2.7), 2), (qd.f32, np.int64(3), 3.0),
    (qd.i32, np.array(7), 7), (qd.f32, np.array(1.5), 1.5),
])
def test_dtype_call_casts(dtype, value, want):
    got = dtype(value)
    assert got == want and type(got) is type(want)


def test_dtype_call_refuses():
    for bad in ("1", None, [1], 1j, object()):
        with pytest.raises(TypeError):
            qd.i32(bad)
        with pytest.raises(TypeError):
            qd.f32(bad)
    for args in ((), (1, 2)):
        with pytest.raises(TypeError, match="exactly one"):
            qd.f32(*args)
    with pytest.raises(TypeError):
        qd.f32(1, x=2)
    with pytest.raises(OverflowError, match="18446744073709551616 does not fit in i32"):
        qd.i32(2**64)
    with pytest.raises(OverflowError):
        qd.f32(10**400)


# ---- making ------------------------------------------------------------------------------------


def test_shape_forms():
    for shape, want in [
        (3, (3,)), ((), ()), ((2, 3), (2, 3)), ([2, 3], (2, 3)), (np.int32(4), (4,)),
        (np.array([2, 2]), (2, 2)), ((0,), (0,)), ((2, 0, 3), (2, 0, 3)), ((1,) * 12, (1,) * 12),
    ]:
        a = qd.ndarray(qd.f32, shape)
        assert a.shape == want and a.ndim == len(want)
        assert a.nbytes == 4 * int(np.prod(want, dtype=np.int64))
        assert all(type(n) is int for n in a.shape)


def test_starts_zeroed_and_aligned():
    for n in (1, 3, 100, 70000, 5_000_000):
        a = qd.ndarray(qd.f64, n)
        view = a.to_numpy(copy=False)
        assert not view.any() and view.ctypes.data % 64 == 0


def test_python_types_follow_settings():
    assert [qd.ndarray(t, 1).dtype for t in (int, float, bool)] == [qd.i32, qd.f32, qd.u1]
    qd.init(default_ip=qd.i64, default_fp=qd.f64)
    try:
        assert [qd.ndarray(t, 1).dtype for t in (int, float, bool)] == [qd.i64, qd.f64, qd.u1]
    finally:
        qd.reset()


@pytest.mark.parametrize("shape, why", [
    (-1, "negative"), ((2, -3), "negative"), (2.5, "integers"), ((2, 3.5), "integers"),
    ("ab", "integers"), (None, "integers"), ({2: 3}, "integers"), ((2, "3"), "integers"),
    (2**31, "2147483647"), (2**70, "2147483647"), (-(2**70), "negative"), ((1,) * 13, "12 axes"),
    ((2**31 - 1, 2**31 - 1, 2**31 - 1), "bytes"), ((np.float32(2),), "integers"),
])
def test_bad_shapes(shape, why):
    with pytest.raises(qd.IngotRuntimeError, match=why):
        qd.ndarray(qd.f32, shape)


def test_empty_arrays():
    with pytest.raises(qd.IngotRuntimeError, match="bytes"):
        qd.ndarray(qd.f64, (2**31 - 1, 2**31 - 1, 0, 2**31 - 1))
    a = qd.ndarray(qd.f64, (2**31 - 1, 2**20, 0, 3))
    assert a.nbytes == 0 and a.to_numpy(copy=False).size == 0
    a.fill(1)
    a.copy_from(qd.ndarray(qd.i8, a.shape))
    assert pickle.loads(pickle.dumps(a)).shape == a.shape
    assert bytes(memoryview(a)) == b""


def test_bad_dtypes():
    for bad in ("f32", np.complex64, np.dtype("M8[s]"), np.dtype("2f4"), 3, None, str, object):
        with pytest.raises(qd.IngotRuntimeError, match="qd.f32") as caught:
            qd.ndarray(bad, 3)
        assert isinstance(caught.value, TypeError)


def test_bad_calls():
    for args, kwargs in [((), {}), ((qd.f32,), {}), ((qd.f32, 1, 0, None, 5), {}),
                         ((qd.f32, 1), {"nope": 1})]:
        with pytest.raises(TypeError):
            qd.ndarray(*args, **kwargs)
    with pytest.raises(TypeError):
        qd.Ndarray(qd.f32, 3)
    with pytest.raises(TypeError):
        type("Sub", (qd.Ndarray,), {})


def test_no_memory_is_an_error():
    with pytest.raises(MemoryError, match="bytes"):
        qd.ndarray(qd.f64, (2**31 - 1, 2**25))  # 2^59 bytes: more than any address space
    assert qd.ndarray(qd.f64, 3)[0] == 0


def test_more_than_2_31_elements():
    a = qd.ndarray(qd.i8, (3, 2**30))  # untouched pages cost nothing
    a[2, 2**30 - 1] = 7
    assert a[-1, -1] == 7 and a[0, 0] == 0 and a.nbytes == 3 * 2**30


class Hostile:
    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error

    __int__ = __float__ = __index__

    def __len__(self):
        raise self.error

    def __getitem__(self, i):
        raise self.error


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyboardInterrupt(), MemoryError()])
def test_hostile_numbers(error):
    a, bad = qd.ndarray(qd.i32, 3), Hostile(error)
    f = qd.ndarray(qd.f32, 3)
    for action in (
        lambda: qd.ndarray(qd.f32, (bad,)), lambda: qd.ndarray(qd.f32, bad), lambda: a[bad],
        lambda: a.__setitem__(0, bad), lambda: f.__setitem__(0, bad), lambda: a.fill(bad),
        lambda: qd.i32(bad), lambda: qd.f32(bad), lambda: qd.ndarray(qd.f32, (1,), layout=bad),
    ):
        with pytest.raises(type(error)):
            action()
    assert a.to_numpy().tolist() == [0, 0, 0]


def test_key_that_changes_itself():
    a = qd.ndarray(qd.i32, (2, 2))
    key = []

    class Index:
        def __index__(self):
            key.clear()
            return 1

    key += [Index(), Index()]
    assert a[key] == 0


# ---- elements -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_elements(dtype):
    a = qd.ndarray(dtype, (3, 4))
    assert a[1, 2] == 0
    a[1, 2] = 1
    a[2, -1] = 1
    assert a[1, 2] == 1 and a[-2, -2] == 1 and a[[1, 2]] == 1
    assert type(a[1, 2]) is (float if dtype in FLOATS else int)
    assert a.to_numpy().sum() == 2 and a.to_numpy().dtype == NUMPY[dtype]


def test_zero_dimensional():
    a = qd.ndarray(qd.i32, ())
    a[None] = 3
    assert a[None] == 3 and a[()] == 3 and a.shape == () and a.ndim == 0
    a[()] = 4
    assert a.to_numpy().shape == () and a.to_numpy() == 4
    with pytest.raises(qd.IngotIndexError, match="0d ndarray indexed with 1d"):
        a[0]
    with pytest.raises(TypeError):
        len(a)
    with pytest.raises(TypeError):
        iter(a)


def test_bad_indices():
    a = qd.ndarray(qd.f32, (3, 4))
    for key in [(3, 0), (0, 4), (-4, 0), (0, -5), (2**70, 0), (-(2**70), 0)]:
        with pytest.raises(qd.IngotIndexError, match="out of bounds") as caught:
            a[key]
        assert isinstance(caught.value, (IndexError,)) and isinstance(caught.value, RuntimeError)
        with pytest.raises(IndexError):
            a[key] = 1
    for key in [0, (0,), (0, 0, 0), None, ()]:
        with pytest.raises(qd.IngotIndexError, match="2d ndarray indexed with"):
            a[key]
    for key in [(1.0, 2), ("a", 0), (0, None), (Ellipsis, 0), (np.array([1.5]), 0)]:
        with pytest.raises(TypeError, match="integers"):
            a[key]
    with pytest.raises(TypeError, match="sliced"):
        a[:, 0]
    with pytest.raises(TypeError, match="deleted"):
        del a[0, 0]
    assert a[np.int64(1), np.uint8(2)] == 0


def test_values_that_are_stored():
    a = qd.ndarray(qd.i8, 1)
    for value, want in [(127, 127), (-1, -1), (True, 1), (np.float32(2), 2), (np.int64(5), 5),
                        (np.array(3.0), 3), (4.0, 4)]:
        a[0] = value
        assert a[0] == want
    for bad in (1.7, "1", None, 1j, [1], np.float32(2.5), np.array(3.7), np.complex64(1)):
        with pytest.raises(TypeError, match="ndarray of i8"):
            a[0] = bad
    with pytest.raises(OverflowError):
        a[0] = 2**64
    u = qd.ndarray(qd.u64, 1)
    u[0] = 2**64 - 1
    assert u[0] == 2**64 - 1
    f = qd.ndarray(qd.f32, 1)
    for value, want in [(3, 3.0), (True, 1.0), (np.float64(0.5), 0.5), (np.array(2.0), 2.0)]:
        f[0] = value
        assert f[0] == want
    for bad in ("1", None, 1j, [1]):
        with pytest.raises(TypeError, match="ndarray of f32"):
            f[0] = bad
    with pytest.raises(OverflowError):
        f[0] = 10**400


def test_len_and_iteration():
    a, want = filled(qd.i32, (5,))
    assert len(a) == 5 and list(a) == want.tolist() and 3 in a and 99 not in a
    b = qd.ndarray(qd.i32, (2, 3))
    assert len(b) == 2
    with pytest.raises(TypeError, match="1-d"):
        list(b)
    assert bool(a) and bool(qd.ndarray(qd.i32, 0)) and bool(qd.ndarray(qd.i32, ()))


def test_identity_not_contents_compares():
    a, b = qd.ndarray(qd.i32, 2), qd.ndarray(qd.i32, 2)
    assert a == a and a != b and len({a, b}) == 2
    assert repr(a) == "<qd.ndarray i32 (2,) [0, 0]>"


# ---- whole arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (300, 300)], ids=str)
def test_fill(dtype, shape):
    a = qd.ndarray(dtype, shape)
    a.fill(1)
    want = np.full(shape, 1, NUMPY[dtype])
    assert (a.to_numpy() == want).all() and a.to_numpy().dtype == want.dtype
    with pytest.raises(TypeError, match="fill"):
        a.fill("x")


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "f64"])
def test_fill_of_any_length(dtype):
    """Less than a line, lines and what is left of one, and more than the caches hold."""
    t = np.dtype(NUMPY[getattr(qd, dtype)])
    value = t.type(int.from_bytes(bytes(range(1, 9)), "little") & (0x7F if t.itemsize == 1 else 0x7FFF))
    for n in [*range(1, 140), 1000, 4099, (17 << 20) // t.itemsize + 5]:
        a = qd.ndarray(getattr(qd, dtype), (n,))
        a.fill(value)
        got = a.to_numpy()
        assert (got == value).all(), n


def test_numpy_round_trip():
    for dtype in ALL:
        for shape in [(), (4,), (2, 3, 4), (0, 3)]:
            a, want = filled(dtype, shape)
            got = a.to_numpy()
            assert got.dtype == want.dtype and got.shape == want.shape
            assert (got == want).all() and got.flags.c_contiguous and got.flags.writeable
            got[...] = 0  # a copy
            assert (a.to_numpy() == want).all()


def test_to_numpy_dtype_and_views():
    a, want = filled(qd.f32, (2, 3))
    assert a.to_numpy(np.int64).dtype == np.int64
    view = a.to_numpy(copy=False)
    view[1, 2] = 77
    assert a[1, 2] == 77
    assert a.to_numpy(copy=None).base is not None
    with pytest.raises(ValueError, match="copy=False"):
        a.to_numpy(np.int32, copy=False)
    with pytest.raises(TypeError):
        a.to_numpy(nope=1)


def test_array_protocol():
    a, want = filled(qd.i32, (2, 3))
    assert np.shares_memory(np.asarray(a), a.to_numpy(copy=False))
    assert (np.array(a) == want).all() and not np.shares_memory(np.array(a), np.asarray(a))
    assert a.__array__(np.float64).dtype == np.float64
    assert not np.shares_memory(a.__array__(copy=True), np.asarray(a))
    with pytest.raises(ValueError):
        a.__array__(np.float64, copy=False)
    assert (np.add(a, 1) == want + 1).all()


def test_from_numpy_converts_and_checks():
    a = qd.ndarray(qd.f32, (3, 4))
    for source in (np.ones((3, 4)), np.ones((3, 4), np.int64), np.ones((4, 3)).T,
                   np.ones((3, 4), bool), np.ones((6, 8))[::2, ::2]):
        a.fill(0)
        a.from_numpy(source)
        assert (a.to_numpy() == 1).all()
    for bad in (np.ones((4, 3)), np.ones((3, 4, 1)), np.ones(4), np.ones(())):
        with pytest.raises(ValueError, match=r"expected shape \(3, 4\)"):
            a.from_numpy(bad)
    for bad in ([[1]], 1, None, "x"):
        with pytest.raises(TypeError, match="numpy.ndarray"):
            a.from_numpy(bad)
    for bad in (np.ones((3, 4), complex), np.full((3, 4), "x"), np.full((3, 4), None)):
        with pytest.raises(TypeError, match="real numbers"):
            a.from_numpy(bad)
    a.from_numpy(a.to_numpy(copy=False))  # from itself
    assert (a.to_numpy() == 1).all()


@pytest.mark.parametrize("to", ALL, ids=str)
def test_copy_from_converts(to):
    for source in ALL:
        a, _ = filled(source, (4, 5))
        b = qd.ndarray(to, (4, 5))
        b.copy_from(a)
        want = [[to(a[i, j]) for j in range(5)] for i in range(4)]
        assert b.to_numpy().tolist() == [[v for v in row] for row in want]


def test_copy_from_checks():
    a = qd.ndarray(qd.f32, (3, 4))
    for shape in [(4, 3), (3,), (), (3, 4, 1)]:
        with pytest.raises(AssertionError, match=r"\(3, 4\) here") as caught:
            a.copy_from(qd.ndarray(qd.f32, shape))
        assert isinstance(caught.value, qd.IngotError)
    for bad in (np.zeros((3, 4)), None, 3):
        with pytest.raises(TypeError, match="expected an ndarray"):
            a.copy_from(bad)
    a.copy_from(a)


def test_copy_between_overlapping_memory():
    base = np.zeros(64, np.int64)
    base[:] = np.arange(64)
    x = qd.from_dlpack(base.view(np.int32)[:32])
    y = qd.from_dlpack(base[8:40])
    want = x.to_numpy().astype(np.int64)
    y.copy_from(x)  # same memory, other width
    assert (y.to_numpy() == want).all()


# ---- layouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)], ids=str)
def test_layouts(layout):
    a, want = filled(qd.i32, (2, 3, 4), layout)
    assert a.shape == (2, 3, 4) and a.layout == (None if layout == (0, 1, 2) else layout)
    view = np.asarray(a)
    order = sorted(range(3), key=lambda axis: -view.strides[axis])
    assert tuple(order) == layout and (view == want).all()
    assert all(a[i] == want[i] for i in np.ndindex(2, 3, 4))
    a[1, 2, 3] = 999
    assert view[1, 2, 3] == 999
    plain = qd.ndarray(qd.i32, (2, 3, 4))
    plain.copy_from(a)
    assert (plain.to_numpy() == view).all()
    b = qd.ndarray(qd.f32, (2, 3, 4), layout=layout)
    b.copy_from(plain)
    assert (b.to_numpy() == view).all() and b.to_numpy().flags.c_contiguous
    for other in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert other.layout == a.layout and (other.to_numpy() == view).all()
    assert (np.from_dlpack(a) == view).all()


def test_bad_layouts():
    for bad in [(0,), (0, 0), (0, 2), (-1, 0), (0.0, 1.0), (0, 1, 2), ("0", "1"), (2**70, 0)]:
        with pytest.raises(qd.IngotRuntimeError, match="permutation"):
            qd.ndarray(qd.f32, (2, 3), layout=bad)
    with pytest.raises(TypeError):
        qd.ndarray(qd.f32, (2, 3), layout=5)


# ---- buffers and generations --------------------------------------------------------------------------


def test_buffer_formats():
    for dtype in ALL:
        a, want = filled(dtype, (2, 3))
        view = memoryview(a)
        assert view.format == want.dtype.char or view.itemsize == want.itemsize
        assert view.shape == (2, 3) and not view.readonly and view.c_contiguous
        assert view.itemsize == want.itemsize and view.nbytes == want.nbytes
        assert view.tobytes() == want.tobytes()
        assert np.asarray(view).dtype == want.dtype
    assert memoryview(qd.ndarray(qd.i32, ())).shape == ()


def test_buffer_requests():
    a = qd.ndarray(qd.f32, (2, 3), layout=(1, 0))
    assert memoryview(a).f_contiguous and not memoryview(a).c_contiguous
    with pytest.raises(BufferError, match="layout|order"):
        bytes_io_write(a)
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(a)
    assert a._generation != 0  # refused requests export nothing
    b = qd.ndarray(qd.f32, (2, 3))
    assert bytes_io_write(b) == bytes(24)
    assert hash(bytes(b)) == hash(bytes(24))


def bytes_io_write(array):
    import io

    out = io.BytesIO()
    out.write(array)  # asks for a simple buffer
    return out.getvalue()


def test_generation_follows_writes():
    a = qd.ndarray(qd.i32, 3)
    seen = [a._generation]
    for write in (
        lambda: a.__setitem__(0, 1), lambda: a.fill(2), lambda: a.copy_from(qd.ndarray(qd.i32, 3)),
        lambda: a.from_numpy(np.zeros(3)), lambda: memoryview(a).release(),
    ):
        write()
        assert a._generation not in seen and a._generation != 0
        seen.append(a._generation)
    before = a._generation
    for read in (lambda: a[0], lambda: list(a), lambda: a.shape, lambda: repr(a), a.to_numpy, a.tolist,
                 lambda: a.__array_interface__):
        read()
        assert a._generation == before
    assert qd.ndarray(qd.i32, 3)._generation not in seen


def test_generation_is_unknown_while_exported():
    a = qd.ndarray(qd.i32, 3)
    view = np.asarray(a)
    tail = view[1:]
    assert a._generation == 0
    a[0] = 5
    assert a._generation == 0
    del view
    assert a._generation == 0  # the slice still shares memory
    del tail
    assert a._generation != 0
    capsule = a.to_dlpack()
    assert a._generation == 0
    del capsule
    assert a._generation != 0


def test_view_keeps_the_memory():
    a, want = filled(qd.f64, (1000,))
    view, gone = np.asarray(a), weakref.ref(a)
    del a
    gc.collect()
    assert gone() is not None and (view == want).all()
    del view
    assert gone() is None


# ---- copy and pickle -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    for dtype in ALL:
        a, want = filled(dtype, (2, 3))
        a.name = "left"
        b = pickle.loads(pickle.dumps(a, protocol))
        assert b is not a and b.dtype is dtype and b.shape == (2, 3) and b.name == "left"
        assert (b.to_numpy() == want).all()
    scalar = qd.ndarray(qd.i32, ())
    scalar[None] = 5
    assert pickle.loads(pickle.dumps(scalar, protocol))[None] == 5


def test_hostile_pickles():
    restore = _core._restore_array
    good = (qd.f32, (2,), None, False, bytes(8))
    assert restore(*good).shape == (2,)
    for bad in [
        (qd.f32, (2,), None, False, bytes(7)), (qd.f32, (2,), None, False, bytes(9)),
        ("f32", (2,), None, False, bytes(8)), (qd.f32, (-2,), None, False, bytes(8)),
        (qd.f32, (2,), (3,), False, bytes(8)), (qd.f32, (2,), None, False, "text"),
        (qd.i32, (2,), None, True, bytes(8)), (qd.f32, (2,)), (),
    ]:
        with pytest.raises((ValueError, TypeError, qd.IngotRuntimeError)):
            restore(*bad)


def test_copy():
    a, want = filled(qd.f32, (2, 3))
    a.tags = ["x"]
    for b, shallow in ((copy.copy(a), True), (copy.deepcopy(a), False)):
        assert (b.to_numpy() == want).all() and (b.tags is a.tags) is shallow
        b[0, 0] = 50
        assert a[0, 0] == 0
    a.me = a
    b = copy.deepcopy(a)
    assert b.me is b
    pair = copy.deepcopy([a, a])
    assert pair[0] is pair[1] is not a
    pair = pickle.loads(pickle.dumps(a))
    assert pair.me is pair


def test_gradients():
    a = qd.ndarray(qd.f32, (2, 3), needs_grad=True)
    assert a.has_grad() and a.grad.shape == (2, 3) and a.grad.dtype is qd.f32
    assert not a.grad.has_grad() and a.grad.grad is None and not a.has_dual()
    assert a.grad is a.grad and not qd.ndarray(qd.f32, 2).has_grad()
    a.grad.fill(3)
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert b.has_grad() and not b.grad.to_numpy().any()
    for dtype in (qd.u1, *INTS):
        with pytest.raises(qd.IngotRuntimeError, match="float"):
            qd.ndarray(dtype, 3, needs_grad=True)
    with pytest.raises(AttributeError):
        a.grad = None


def test_attributes():
    a = qd.ndarray(qd.f32, (2, 3))
    assert a.element_shape == () and a.element_type is qd.f32 and a.nbytes == 24
    assert a.__dict__ == {}
    a.note = 5
    assert a.note == 5 and a.__dict__ == {"note": 5}
    del a.note
    for name in ("shape", "dtype", "ndim", "layout", "_generation"):
        with pytest.raises(AttributeError):
            setattr(a, name, 1)
    assert isinstance(a, qd.Ndarray) and isinstance(a, qd.ScalarNdarray)


# ---- life and death --------------------------------------------------------------------------------------------


def test_weak_references():
    a = qd.ndarray(qd.f32, 3)
    called = []
    reference = weakref.ref(a, called.append)
    assert reference() is a
    del a
    assert reference() is None and called == [reference]


def test_cycles_are_collected():
    gone = []
    for make in (
        lambda a: setattr(a, "me", a),
        lambda a: setattr(a.grad, "owner", a),
        lambda a: setattr(a, "view", np.asarray(a)),
        lambda a: setattr(a, "views", [memoryview(a)]),
    ):
        a = qd.ndarray(qd.f32, 3, needs_grad=True)
        make(a)
        gone.append(weakref.ref(a))
        del a
    for _ in range(3):
        gc.collect()
    # NumPy arrays do not take part in garbage collection: that cycle is theirs to break.
    assert [r() is None for r in gone] == [True, True, False, True]
    del gone[2]().view


def test_long_chains_are_freed():
    a = None
    for _ in range(100_000):
        b = qd.ndarray(qd.i8, 1)
        b.next = a
        a = b
    del a, b


def operations():
    a, want = filled(qd.f32, (2, 3))
    b = qd.ndarray(qd.i64, (2, 3), layout=(1, 0))
    one = qd.ndarray(qd.i32, 4)
    zero = np.zeros((2, 3), np.float32)

    def fails(*actions):
        for action in actions:
            try:
                action()
            except Exception:
                continue
            raise AssertionError("should have failed")

    return {
        "make": lambda: qd.ndarray(qd.f32, (2, 3)),
        "make_grad": lambda: qd.ndarray(qd.f32, (2, 3), needs_grad=True, layout=(1, 0)),
        "make_fails": lambda: fails(
            lambda: qd.ndarray(qd.f32, (2, -3)), lambda: qd.ndarray("x", 2),
            lambda: qd.ndarray(qd.f32, (2, 2.5)), lambda: qd.ndarray(qd.f32, (2, 3), layout=(0, 0)),
            lambda: qd.ndarray(qd.i32, 2, needs_grad=True), lambda: qd.ndarray(qd.f32, (2**31 - 1,) * 4),
        ),
        "get": lambda: (a[1, 2], a[[1, 2]], b[0, 0], one[-1]),
        "set": lambda: (a.__setitem__((1, 2), 3), b.__setitem__([1, 2], np.int8(3))),
        "get_fails": lambda: fails(lambda: a[5, 5], lambda: a[0], lambda: a[1.5, 0], lambda: a[:, 0]),
        "set_fails": lambda: fails(
            lambda: a.__setitem__((0, 0), "x"), lambda: b.__setitem__((0, 0), 1.5),
            lambda: b.__setitem__((0, 0), 2**80), lambda: a.__delitem__((0, 0)),
        ),
        "iterate": lambda: (list(one), len(one), 3 in one),
        "fill": lambda: (a.fill(1), b.fill(2)),
        "copy_from": lambda: (a.copy_from(b), b.copy_from(a), a.copy_from(a)),
        "copy_fails": lambda: fails(lambda: a.copy_from(one), lambda: a.copy_from(3)),
        "attributes": lambda: (a.shape, a.dtype, a.ndim, a.layout, b.layout, a.grad, repr(a),
                               a.element_shape, a.nbytes, a._generation, a.__dict__),
        "to_numpy": lambda: (a.to_numpy(), b.to_numpy(copy=False), np.asarray(a), a.__array__()),
        "from_numpy": lambda: a.from_numpy(zero),
        "from_numpy_fails": lambda: fails(lambda: a.from_numpy(zero.T), lambda: a.from_numpy(1)),
        "buffer": lambda: (memoryview(a).release(), memoryview(b).tobytes()),
        "buffer_fails": lambda: fails(lambda: bytes_io_write(b)),
        "dlpack_out": lambda: (a.to_dlpack(), a.__dlpack__(max_version=(1, 0)), np.from_dlpack(a),
                               a.__dlpack__(copy=True), a.__dlpack_device__()),
        "dlpack_in": lambda: (qd.from_dlpack(zero), qd.from_dlpack(zero.T), qd.from_dlpack(a),
                              qd.from_dlpack(zero, copy=True)),
        "dlpack_fails": lambda: fails(
            lambda: qd.from_dlpack(zero.T, copy=False), lambda: qd.from_dlpack(zero.astype(complex)),
            lambda: qd.from_dlpack(3), lambda: a.__dlpack__(stream=1),
        ),
        "pickle": lambda: pickle.loads(pickle.dumps(a)),
        "pickle_fails": lambda: fails(
            lambda: _core._restore_array(qd.f32, (2,), None, False, b"x")),
        "copy": lambda: (copy.copy(a), copy.deepcopy(b)),
        "copy_with_attributes": lambda: copy.deepcopy(tagged()),
        "weakref": lambda: weakref.ref(qd.ndarray(qd.i8, 1)),
        "cast": lambda: (qd.f32(1), qd.i8(300), qd.u1(0.5), qd.f16(np.float32(1)), qd.i32(np.array(1))),
        "cast_fails": lambda: fails(lambda: qd.f32("x"), lambda: qd.f32(), lambda: qd.i32(2**80)),
        "dtype": lambda: (repr(qd.f32), qd.f32.name, qd.f32.bits, qd.f32.id, pickle.dumps(qd.f32)),
        "settings": lambda: (_core.settings(), _core.counters(), _core.configure({})),
        "settings_fail": lambda: fails(
            lambda: _core.configure({"nope": 1}), lambda: _core.configure({"debug": "x"}),
            lambda: _core.configure(3), lambda: _core.configure({"default_fp": qd.i32}),
            lambda: _core.configure({"offline_cache_file_path": 3}),
        ),
        "cache_dir": lambda: _core.configure({"offline_cache_file_path": "/nowhere"}),
        "intrinsic": lambda: (_core.register_intrinsic(qd.sin, "sin"), _core.intrinsic_name(qd.sin),
                              _core.intrinsic_name(3)),
        "intrinsic_fails": lambda: fails(lambda: _core.register_intrinsic(qd.sin, "nope")),
    }


def tagged():
    a = qd.ndarray(qd.i8, 1)
    a.tags = [1, {"a": a}]
    return a


WATCHED = (*ALL, qd.Ndarray, qd.DType, None, True, False, 0, 1, 2, 3, (), float, int, qd.sin,
           qd.IngotIndexError, qd.IngotRuntimeError, qd.IngotRuntimeTypeError)


def counts():
    return [sys.getrefcount(o) for o in WATCHED]


@pytest.mark.parametrize("name", sorted(operations()))
def test_nothing_grows(name):
    operation = operations()[name]
    for _ in range(10):
        operation()
    gc.collect()
    before, growth = counts(), []
    tracemalloc.start()
    for _ in range(4):
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            operation()
        gc.collect()
        growth.append(tracemalloc.get_traced_memory()[0] - start)
    tracemalloc.stop()
    # Immortal objects (3.12) report a huge constant; a leak would add 1200.
    for o, x, y in zip(WATCHED, before, counts()):
        assert abs(x - y) < 100, o
    # Free lists and tables inside Python grow once; a leak grows each time.
    assert min(growth) < 300 * 24


def test_array_memory_is_freed():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096

    def work():
        for n in (100, 50_000, 3_000_000):
            a = qd.ndarray(qd.f32, n, needs_grad=True)
            a.fill(1)
            a.grad.fill(1)
            np.from_dlpack(copy.copy(a))

    for _ in range(3):
        work()
    before = resident()
    for _ in range(100):
        work()
    assert resident() - before < 20 << 20


def test_exit_with_live_views():
    """Arrays, views and capsules that are alive when Python ends."""
    program = (
        "import ingot as qd, numpy as np, sys\n"
        "a = qd.ndarray(qd.f32, 10, needs_grad=True)\n"
        "v = np.asarray(a); c = a.to_dlpack(); d = np.from_dlpack(a); m = memoryview(a)\n"
        "b = qd.from_dlpack(v); a.me = a; a.m = m; sys.keep = [a, c, d, b]\n"
        "import builtins; builtins.keep_too = qd.from_dlpack(np.ones(3))\n"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""


def test_threads_share_an_array():
    a = qd.ndarray(qd.i64, 200_000)

    def work(value):
        for _ in range(20):
            a.fill(value)
            a.copy_from(a)
            a[value] = value
            np.from_dlpack(a).sum()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert a._generation != 0
