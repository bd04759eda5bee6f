"""The reference's classes of ndarrays. There is one type in Ingot; these are for `isinstance`, and
`dir()` lists what the reference documents."""

import ingot
from ingot import _ndarrays

_PUBLIC = (
    "copy_from element_shape fill from_numpy from_torch get_type has_dual has_grad layout shape "
    "to_dlpack to_numpy to_torch"
).split()


def ndarray(dtype, shape, needs_grad=False, **options):
    """`ingot.ndarray`; an empty array works on Ingot, but not on the reference."""
    if 0 in (shape if isinstance(shape, (tuple, list)) else (shape,)):
        raise ingot.IngotRuntimeError(f"{shape!r} is not a valid shape for ndarray: an axis is empty")
    return ingot.ndarray(dtype, shape, needs_grad=needs_grad, **options)


class _Kind(_ndarrays._Kind):
    def __dir__(cls):
        return list(_PUBLIC)


class _AnyKind(_Kind):
    def __dir__(cls):
        return [name for name in _PUBLIC if not name.endswith(("numpy", "torch"))]


class Ndarray(metaclass=_AnyKind):
    """Any ndarray."""

    _element_rank = None


class ScalarNdarray(_ndarrays.ScalarNdarray, metaclass=_Kind):
    """An ndarray of numbers."""


class VectorNdarray(_ndarrays.VectorNdarray, metaclass=_Kind):
    """An ndarray of vectors."""


class MatrixNdarray(_ndarrays.MatrixNdarray, metaclass=_Kind):
    """An ndarray of matrices."""
