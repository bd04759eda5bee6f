"""The reference's classes of ndarrays, by what their elements are.

There is one type of arrays, `qd.Ndarray`. These classes exist for `isinstance`; called, they make
an array, and their attributes are those of `Ndarray`.
"""

from ingot._core import Ndarray, ndarray
from ingot._matrix import MatrixType, VectorType


class _Kind(type):
    def __instancecheck__(cls, instance):
        if not isinstance(instance, Ndarray):
            return False
        return cls._element_rank is None or len(instance.element_shape) == cls._element_rank

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Ndarray, name)

    def __dir__(cls):
        return dir(Ndarray)


class ScalarNdarray(metaclass=_Kind):
    """An ndarray of numbers: `ScalarNdarray(dtype, shape)`."""

    _element_rank = 0

    def __new__(cls, dtype, arr_shape):
        return ndarray(dtype, arr_shape)


class VectorNdarray(metaclass=_Kind):
    """An ndarray of vectors: `VectorNdarray(n, dtype, shape)`."""

    _element_rank = 1

    def __new__(cls, n, dtype, shape):
        return ndarray(VectorType(n, dtype), shape)


class MatrixNdarray(metaclass=_Kind):
    """An ndarray of matrices: `MatrixNdarray(n, m, dtype, shape)`."""

    _element_rank = 2

    def __new__(cls, n, m, dtype, shape):
        return ndarray(MatrixType(n, m, dtype), shape)


class NdarrayTypeMetadata:
    """What the reference says of an array's type: see `Ndarray.get_type`."""

    __slots__ = ("element_type", "shape", "needs_grad")

    def __init__(self, element_type, shape=None, needs_grad=False):
        self.element_type = element_type
        self.shape = shape
        self.needs_grad = needs_grad

    def __repr__(self):
        return f"NdarrayTypeMetadata({self.element_type}, {self.shape}, needs_grad={self.needs_grad})"


def get_type(array):
    """Element type, shape in memory and gradient of an array."""
    order = array.layout or range(array.ndim)
    return NdarrayTypeMetadata(array.element_type, tuple(array.shape[k] for k in order), array.has_grad())


def from_numpy(source, needs_grad=False):
    """An ndarray with the elements and the shape of a NumPy array, which is copied."""
    import numpy as np

    if not isinstance(source, np.ndarray):
        raise TypeError(f"qd.from_numpy takes a numpy.ndarray, got {type(source).__name__!r}: use np.asarray(x)")
    array = ndarray(source.dtype.type, source.shape, needs_grad)
    array.from_numpy(source)
    return array
