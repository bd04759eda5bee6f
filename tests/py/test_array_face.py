"""What makes an ndarray pleasant at a prompt: repr with values, copy, size, tolist, assigned slices,
NumPy's dtypes, qd.from_numpy, the array interface."""

import ingot as qd
import numpy as np
import pytest

from conftest import needs


def numbers(dtype, *shape):
    a = qd.ndarray(dtype, shape)
    a.from_numpy(np.arange(a.size).reshape(shape).astype(a.to_numpy().dtype))
    return a


def test_repr_shows_values():
    assert repr(numbers(qd.i32, 4)) == "<qd.ndarray i32 (4,) [0, 1, 2, 3]>"
    assert repr(numbers(qd.f32, 2, 2)) == "<qd.ndarray f32 (2, 2)\n[[0., 1.],\n [2., 3.]]>"
    v = qd.Vector.ndarray(3, qd.f32, 2)
    assert repr(v) == f"<qd.ndarray {qd.types.vector(3, qd.f32)} (2,)\n[[0., 0., 0.],\n [0., 0., 0.]]>"
    assert "..." in repr(numbers(qd.i32, 1000)) and len(repr(numbers(qd.i32, 1000))) < 200
    assert "layout=(1, 0)" in repr(qd.ndarray(qd.i32, (2, 3), layout=(1, 0)))
    assert repr(qd.ndarray(qd.i32, ())) == "<qd.ndarray i32 () 0>"
    assert repr(qd.ndarray(qd.i32, 0)).startswith("<qd.ndarray i32 (0,)")


def test_size_copy_tolist():
    a = numbers(qd.i64, 2, 3)
    assert a.size == 6 and a.tolist() == [[0, 1, 2], [3, 4, 5]]
    b = a.copy()
    b[0, 0] = 9
    assert a[0, 0] == 0 and b.tolist()[0] == [9, 1, 2]
    a.size = 7  # programs keep attributes of their own
    assert a.size == 7
    assert qd.Vector.ndarray(3, qd.f32, (2, 2)).size == 4


def test_what_python_does_with_sequences():
    a = numbers(qd.i32, 3)
    x, y, z = a
    assert list(reversed(a)) == [2, 1, 0] and (x, y, z) == (0, 1, 2) and sorted(a, reverse=True) == [2, 1, 0]
    assert sum(a) == 3 and max(a) == 2 and 2 in a and [*zip(a, a)] == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(TypeError, match="2-d"):
        list(reversed(numbers(qd.i32, 2, 2)))


def test_slices_are_assigned():
    a = numbers(qd.f32, 4)
    before = a._generation
    a[1:3] = 7
    assert a.tolist() == [0, 7, 7, 3] and a._generation != before
    a[:] = [1, 2, 3, 4]
    a[::2] = np.array([8, 9], np.int64)
    assert a.tolist() == [8, 2, 9, 4]
    a[0:2] = a[2:4]
    assert a.tolist() == [9, 4, 9, 4]
    b = numbers(qd.i32, 2, 3)
    b[:, 1] = -1
    b[1, ...] = [5, 6, 7]
    assert b.tolist() == [[0, -1, 2], [5, 6, 7]]
    with pytest.raises(ValueError):
        a[0:2] = [1, 2, 3]
    with pytest.raises(TypeError, match="mask"):
        a[0:2] = np.ma.array([1, 2], mask=[0, 1])


def test_a_kernel_sees_an_assigned_slice():
    qd.init(arch=qd.interp)

    @qd.kernel
    def total(a: qd.types.ndarray()) -> qd.i32:
        s = 0
        for i in range(a.shape[0]):
            s += a[i]
        return s

    a = numbers(qd.i32, 5)
    assert total(a) == 10
    a[1:] = 1
    assert total(a) == 4


@pytest.mark.parametrize("dtype", "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())
def test_dtypes_of_numpy(dtype):
    a = qd.ndarray(getattr(np, dtype), 3)
    assert a.to_numpy().dtype == np.dtype(dtype) and qd.ndarray(np.dtype(dtype), 3).dtype == a.dtype
    back = qd.from_numpy(np.ones((2, 2), dtype))
    assert back.dtype == a.dtype and back.tolist() == [[1, 1], [1, 1]]


def test_numpy_dtypes_in_annotations():
    qd.init(arch=qd.interp)

    @qd.kernel
    def k(x: np.float64, a: qd.types.ndarray(np.int32, 1)) -> np.float64:
        a[0] = 3
        return x / 3

    a = qd.ndarray(qd.i32, 1)
    assert k(1, a) == 1 / 3 and a[0] == 3


def test_what_is_no_dtype():
    for bad in (np.complex64, np.str_, np.ndarray, object):
        with pytest.raises(TypeError):
            qd.ndarray(bad, 3)
    with pytest.raises(TypeError, match="np.asarray"):
        qd.from_numpy([1, 2])
    with pytest.raises(TypeError, match="mask"):
        qd.from_numpy(np.ma.array([1, 2], mask=[0, 1]))
    with pytest.raises(TypeError):
        qd.from_numpy(np.zeros(3, complex))
    assert qd.from_numpy(np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]


def test_the_array_interface_is_read_only():
    a = numbers(qd.u8, 4, 4)

    class Holder:
        __array_interface__ = a.__array_interface__

    seen = np.asarray(Holder())
    assert seen.tolist() == a.tolist() and not seen.flags.writeable


@needs("PIL")
def test_pillow_reads_an_array():
    from PIL import Image

    a = numbers(qd.u8, 2, 3)
    assert np.asarray(Image.fromarray(a)).tolist() == a.tolist()
