"""DLPack: arrays shared with other libraries, both ways, with hostile capsules."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from conftest import needs
from test_array import ALL, NUMPY, filled

import ingot as qd


# ---- DLPack ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_dlpack_out(dtype):
    a, want = filled(dtype, (2, 3))
    got = np.from_dlpack(a)
    assert got.dtype == want.dtype and (got == want).all()
    assert np.shares_memory(got, np.asarray(a))
    assert a.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)], ids=str)
def test_dlpack_in(dtype, shape):
    source = np.ones(shape, NUMPY[dtype])
    a = qd.from_dlpack(source)
    assert a.dtype is dtype and a.shape == shape and (a.to_numpy() == source).all()
    if source.size:
        source[...] = 0
        assert not a.to_numpy().any() and a._generation == 0
        assert qd.from_dlpack(source, copy=True)._generation != 0


def test_dlpack_in_copies_what_it_cannot_share():
    source = np.arange(12.0).reshape(3, 4)
    for other in (source.T, source[:, ::2], source[::-1], source[1:, 1:]):
        a = qd.from_dlpack(other)
        assert (a.to_numpy() == other).all() and a.shape == other.shape
        with pytest.raises(BufferError, match="copy=False"):
            qd.from_dlpack(other, copy=False)
    assert qd.from_dlpack(source, copy=False)[2, 3] == 11
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    try:
        a = qd.from_dlpack(fixed)
    except BufferError:  # NumPy 1 does not export read-only arrays
        return
    a[0] = 9
    assert fixed[0] == 0


def test_dlpack_round_trip_with_itself():
    a, want = filled(qd.f32, (2, 3))
    b = qd.from_dlpack(a)
    b[0, 0] = 42
    assert a[0, 0] == 42 and a._generation == 0
    c = qd.from_dlpack(qd.from_dlpack(b))
    del a, b
    gc.collect()
    assert c[0, 0] == 42 and c[1, 2] == want[1, 2]
    b = qd.from_dlpack(c, copy=True)
    b[0, 0] = 1
    assert c[0, 0] == 42


def test_dlpack_arguments():
    a = qd.ndarray(qd.f32, 3)
    assert "dltensor_versioned" in repr(a.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" in repr(a.to_dlpack(versioned=True))
    for capsule in (a.__dlpack__(), a.__dlpack__(max_version=(0, 8)), a.to_dlpack()):
        assert '"dltensor"' in repr(capsule)
    assert a.__dlpack__(dl_device=(1, 0), copy=False)
    copied = qd.from_dlpack(a.__dlpack__(copy=True))
    copied[0] = 3
    assert a[0] == 0
    with pytest.raises(BufferError, match="not the CPU"):
        a.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="streams"):
        a.__dlpack__(stream=1)
    for bad in ({"max_version": 1}, {"dl_device": "x"}, {"nope": 1}, {"max_version": (1,)}):
        with pytest.raises(TypeError):
            a.__dlpack__(**bad)
    with pytest.raises(TypeError):
        a.__dlpack__(None)


def test_dlpack_capsule_is_used_once():
    a = qd.ndarray(qd.f32, 3)
    for capsule in (a.to_dlpack(), a.to_dlpack(versioned=True)):
        b = qd.from_dlpack(capsule)
        assert "used_dltensor" in repr(capsule)
        with pytest.raises(BufferError, match="used before"):
            qd.from_dlpack(capsule)
        del b
    del capsule
    assert a._generation != 0


def test_from_dlpack_refuses():
    class Producer:
        def __init__(self, device=(1, 0), result=None):
            self.device, self.result = device, result

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **kwargs):
            if isinstance(self.result, BaseException):
                raise self.result
            return self.result

    for bad in (3, None, "x", object()):
        with pytest.raises(AttributeError):
            qd.from_dlpack(bad)
    for device in ((2, 0), (13, 1)):
        with pytest.raises(BufferError, match="not the CPU"):
            qd.from_dlpack(Producer(device))
    for device in ("cuda", 1, (1,), None and 0, [1, 0]):
        if device is not None:
            with pytest.raises(TypeError):
                qd.from_dlpack(Producer(device))
    with pytest.raises(TypeError, match="no capsule"):
        qd.from_dlpack(Producer(result=3))
    with pytest.raises(ZeroDivisionError):
        qd.from_dlpack(Producer(result=ZeroDivisionError()))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(BufferError, match="no tensor"):
        qd.from_dlpack(new(1, b"something", None))
    with pytest.raises(BufferError, match="counterpart"):
        qd.from_dlpack(np.ones(3, complex))
    with pytest.raises(BufferError):
        qd.from_dlpack(np.ones(3), device=(2, 0))


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


def foreign(memory, shape, strides, *, code=2, bits=32, lanes=1, device=1, offset=0, major=None):
    """A capsule made by hand, what keeps it alive, and a list that its deleter appends to."""
    deleted = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda p: deleted.append(p))
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = (ctypes.c_int64 * max(1, len(shape)))(*strides) if strides is not None else None
    tensor = Tensor(
        memory.ctypes.data if memory is not None else None, (device, 0), len(shape), code, bits,
        lanes, ctypes.addressof(extents), ctypes.addressof(steps) if steps else None, offset,
    )
    address = ctypes.cast(deleter, ctypes.c_void_p)
    if major is None:
        managed, name = Managed(tensor, None, address), b"dltensor"
    else:
        managed, name = Versioned(major, 0, None, address, 0, tensor), b"dltensor_versioned"
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.addressof(managed), name, None)
    return capsule, (memory, deleter, extents, steps, managed, name), deleted


def test_foreign_tensors():
    memory = np.arange(16, dtype=np.float32)
    for major in (None, 1):
        capsule, keep, deleted = foreign(memory, (2, 3), None, offset=8, major=major)
        a = qd.from_dlpack(capsule)
        assert a.to_numpy().tolist() == [[2, 3, 4], [5, 6, 7]]
        a[0, 0] = 100
        assert memory[2] == 100 and not deleted
        memory[2] = 2
        del a
        assert len(deleted) == 1
        capsule, keep, deleted = foreign(memory, (2, 3), (3, 1), offset=2, major=major)
        a = qd.from_dlpack(capsule)  # unaligned: a copy, so theirs is given back at once
        assert a.shape == (2, 3) and len(deleted) == 1
        capsule, keep, deleted = foreign(None, (0, 3), None, major=major)
        assert qd.from_dlpack(capsule).shape == (0, 3) and len(deleted) == 1


@pytest.mark.parametrize("change", [
    {"code": 5}, {"code": 4, "bits": 16}, {"bits": 7}, {"bits": 128}, {"lanes": 4}, {"lanes": 0},
    {"device": 2}, {"major": 2}, {"shape": (-1,)}, {"shape": (2**31,)}, {"shape": (1,) * 13},
    {"shape": (2**31 - 1,) * 3}, {"strides": (2**62,)}, {"memory": None},
], ids=str)
def test_foreign_tensors_that_are_refused(change):
    given = {"memory": np.zeros(4, np.float32), "shape": (3,), "strides": None, **change}
    capsule, keep, deleted = foreign(given.pop("memory"), given.pop("shape"), given.pop("strides"),
                                     **given)
    with pytest.raises(BufferError):
        qd.from_dlpack(capsule)
    assert not deleted  # whoever made it still owns it


def test_deleter_from_another_thread_without_the_gil():
    a = qd.ndarray(qd.f32, 3)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = a.to_dlpack()
    managed = Managed.from_address(pointer(capsule, b"dltensor"))
    used = b"used_dltensor"
    rename(capsule, used)
    count = sys.getrefcount(a)
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)  # drops the GIL to call
    thread = threading.Thread(target=delete, args=(ctypes.addressof(managed),))
    thread.start()
    thread.join()
    assert sys.getrefcount(a) == count - 1 and a._generation != 0


@needs("torch")
def test_torch():
    import torch

    a, want = filled(qd.f32, (2, 3))
    assert (a.to_torch().numpy() == want).all()
    shared = a.to_torch(copy=False)
    shared[0, 0] = 9
    assert a[0, 0] == 9
    a.from_torch(torch.ones(3, 2, dtype=torch.int64).T)
    assert (a.to_numpy() == 1).all()
    with pytest.raises(ValueError, match="shape"):
        a.from_torch(torch.ones(2))
    with pytest.raises(TypeError, match="torch.Tensor"):
        a.from_torch(want)
