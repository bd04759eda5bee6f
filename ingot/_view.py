"""Views: a stretch of a 1-d ndarray, to be passed to kernels in its place.

Kernels know the class by identity (it is an intrinsic) and read `arr`, `offset` and `size` of
an instance at each launch, so that views of one array, wherever they begin, share their code.
"""

from ingot._core import DType, Ndarray, TensorType, ViewBuffer, register_intrinsic


class BufferViewType:
    """A parameter that takes a view: `v: qd.BufferView[qd.f32]`."""

    __slots__ = ("dtype",)
    _ingot_passing = "view"

    def __init__(self, dtype):
        if not isinstance(dtype, (DType, TensorType)) and dtype not in (int, float, bool):
            raise TypeError(f"qd.BufferView[...]: {dtype!r} is no dtype; use for example qd.f32")
        self.dtype = dtype

    def __repr__(self):
        return f"BufferView[{self.dtype}]"


class BufferView(ViewBuffer):
    """The elements [offset, offset + size) of a 1-d ndarray, sharing its memory.

    Made by slices, `data[8:16]`, of ndarrays and of views. As an annotation of a parameter,
    `BufferView` takes views of any dtype and `BufferView[qd.f32]` those of one. Others see it as
    an array without a copy: by the buffer protocol (NumPy, memoryview) and DLPack (torch).
    """

    __slots__ = {"arr": "The ndarray that it is a part of.", "offset": "The index of its first element there.",
                 "size": "The number of its elements.", "__weakref__": None}
    _ingot_passing = "view"
    _ingot_template_primitives = False  # the numbers are read at each launch

    def __init__(self, arr, offset, size):
        if not isinstance(arr, Ndarray):
            raise TypeError(f"BufferView requires a 1D ndarray, not {type(arr).__name__!r}")
        if arr.ndim != 1:
            raise TypeError(f"BufferView requires a 1D ndarray, got shape {arr.shape}")
        if arr.has_grad():
            raise TypeError("BufferView does not support ndarrays with gradients (needs_grad=True)")
        offset, size = offset.__index__(), size.__index__()
        if offset < 0 or size < 0 or offset + size > arr.shape[0]:
            raise ValueError(
                f"BufferView out of range: offset={offset}, size={size} of {arr.shape[0]} elements")
        for name, value in (("arr", arr), ("offset", offset), ("size", size)):
            object.__setattr__(self, name, value)

    def __class_getitem__(cls, dtype):
        return BufferViewType(dtype)

    def __setattr__(self, name, value):
        raise AttributeError(f"a BufferView cannot be changed ({name}): make another one")

    __delattr__ = None

    @property
    def shape(self):
        """(size,)"""
        return (self.size,)

    @property
    def ndim(self):
        """1"""
        return 1

    def fill(self, value):
        """Sets all of its elements to one value."""
        self.arr[self.offset : self.offset + self.size] = value

    def copy(self):
        """An ndarray with these elements."""
        from ingot._core import ndarray

        made = ndarray(self.arr.element_type, self.size)
        if self.size:
            made.from_numpy(self.arr.to_numpy(copy=None)[self.offset : self.offset + self.size])
        return made

    def get_ndarray(self):
        """The array that it is a view of."""
        return self.arr

    def subview(self, offset, size):
        """A view of `size` elements from `offset` on, counted from the beginning of this one."""
        offset, size = offset.__index__(), size.__index__()
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ValueError(f"subview out of range: offset={offset}, size={size} of {self.size} elements")
        return BufferView(self.arr, self.offset + offset, size)

    def _index(self, key):
        if not hasattr(key, "__index__"):
            raise TypeError(f"a BufferView takes an integer or a slice, view[2:5], not {type(key).__name__!r}")
        index = key.__index__()
        if not -self.size <= index < self.size:
            raise IndexError(f"index {index} is out of bounds for a view of {self.size} elements")
        return self.offset + index % self.size

    def __len__(self):
        return self.size

    def __getitem__(self, key):
        if isinstance(key, slice):
            return self.subview(*_bounds(key, self.size))
        return self.arr[self._index(key)]

    def __setitem__(self, key, value):
        if isinstance(key, slice):
            begin, size = _bounds(key, self.size)
            self.arr[self.offset + begin : self.offset + begin + size] = value
        else:
            self.arr[self._index(key)] = value

    def __iter__(self):
        return (self.arr[k] for k in range(self.offset, self.offset + self.size))

    def to_numpy(self, copy=True):
        """The elements as a NumPy array; with copy=False one that shares their memory."""
        part = self.arr.to_numpy(copy=False)[self.offset : self.offset + self.size]
        return part.copy() if copy else part

    def tolist(self):
        """The elements as a list."""
        return self.to_numpy(copy=False).tolist()

    @property
    def dtype(self):
        """The dtype of its elements."""
        return self.arr.dtype

    @property
    def __array_interface__(self):
        return self.to_numpy(copy=False).__array_interface__

    def __dlpack__(self, **options):
        return self.to_numpy(copy=False).__dlpack__(**options)

    def __dlpack_device__(self):
        return self.to_numpy(copy=False).__dlpack_device__()

    def __repr__(self):
        shown = repr(self.copy()).partition(" ")[2]
        return f"<qd.BufferView at {self.offset} {shown}"

    def __reduce__(self):
        return BufferView, (self.arr, self.offset, self.size)


def _bounds(key, extent):
    if key.step not in (None, 1):
        raise ValueError(f"only slices with step=1 are supported, got step={key.step}")
    start, stop, _ = key.indices(extent)
    return start, max(stop - start, 0)


def slice_of(array, key):
    """array[start:stop]; called by ndarrays."""
    if array.ndim != 1:
        raise TypeError(f"only 1D ndarrays can be sliced, this one has shape {array.shape}: use to_numpy(copy=False)")
    return BufferView(array, *_bounds(key, array.shape[0]))


register_intrinsic(BufferView, "BufferView")
