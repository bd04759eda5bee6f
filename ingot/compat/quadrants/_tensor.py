"""Tensors, and what programs of the reference reach inside of them."""

from ingot._core import DenseField, Ndarray
from ingot._tensor import Backend, MatrixTensor, Tensor, VectorTensor, tensor, wrap

__all__ = ["Backend", "Tensor", "tensor"]


def _with_layout(array, layout):
    """Takes the array's memory for that of a tensor with this layout; returns the array."""
    layout = tuple(layout)
    if len(layout) != array.ndim:
        raise ValueError(f"layout has {len(layout)} entries, the array {array.ndim} axes")
    if sorted(layout) != list(range(array.ndim)):
        raise ValueError(f"layout={layout} is not a permutation of range({array.ndim})")
    array._relabel(layout)
    return array


def _physical_shape(array):
    """The extents in the order of memory."""
    return tuple(array.shape[axis] for axis in array.layout or range(array.ndim))


Ndarray._qd_layout = property(lambda array: array.layout, _with_layout)
Ndarray._physical_shape = property(_physical_shape)
Ndarray._impl = property(Ndarray._unwrap)
DenseField._qd_layout = property(lambda field: field.layout)
DenseField._impl = property(DenseField._unwrap)
