"""Dense fields: making them, and their conversions.

A field is an object of C (src/py/field.h); this file checks what `qd.field` and its kin are
given. Trees of fields are in _snode.py. The methods that convert fields to and from NumPy and
torch end here.
"""

from enum import IntEnum

from ingot._core import (
    DType,
    IngotRuntimeError,
    IngotSyntaxError,
    TensorType,
    _dense_field,
    _new_field,
)


class Layout(IntEnum):
    """How the scalars of vectors, matrices and structs lie in a field.

    AOS  together: one element after the other
    SOA  apart: one array for each scalar, or for each member of a struct
    """

    AOS = 1
    SOA = 2


# ---- making ----


def _numbers(value):
    """A tuple of one number or of several."""
    return tuple(value) if hasattr(value, "__len__") else (value,)


def _axes_of(order, ndim):
    """order="ji" as numbers of axes, outermost first."""
    if order is None:
        return None
    if len(order) != ndim:
        raise IngotSyntaxError(
            f"The dimensionality of shape and order must be the same ({ndim} != {len(order)})")
    if len(set(order)) != ndim:
        raise IngotSyntaxError("The axes in order must be different")
    for letter in order:
        if not 0 <= ord(letter) - ord("i") < ndim:
            raise IngotSyntaxError(f"Invalid axis {letter}")
    return tuple(ord(letter) - ord("i") for letter in order)


def _check_placing(shape, order, offset):
    """(shape, axes, offset) of a field that is made with its shape; None: it is made without."""
    if shape is None:
        for name, value in (("offset", offset), ("order", order)):
            if value is not None:
                raise IngotSyntaxError(f"shape cannot be None when {name} is set")
        return None
    shape = _numbers(shape)
    if offset is not None:
        offset = _numbers(offset)
        if len(offset) != len(shape):
            raise IngotSyntaxError(
                f"The dimensionality of shape and offset must be the same ({len(shape)} != {len(offset)})")
    return shape, _axes_of(order, len(shape)), offset


def _check_real(kind, needs_grad, needs_dual):
    if (needs_grad or needs_dual) and str(kind.dtype if isinstance(kind, TensorType) else kind)[0] != "f":
        raise IngotRuntimeError(
            f"{kind} is not supported for field with `needs_grad=True` or `needs_dual=True`.")


def _make(kind, placing, name):
    return _new_field(kind, name) if placing is None else _dense_field(kind, *placing, name)


def _with_companions(kind, shape, order, name, offset, needs_grad, needs_dual):
    placing = _check_placing(shape, order, offset)
    if needs_grad or needs_dual:
        _check_real(kind, needs_grad, needs_dual)
    made = _make(kind, placing, name)
    if needs_grad:
        made.grad = _make(kind, placing, name + ".grad")
    if needs_dual:
        made.dual = _make(kind, placing, name + ".dual")
    return made


def field(dtype, shape=None, order=None, name="", offset=None, needs_grad=False, needs_dual=False, **options):
    """A field: elements in memory that kernels work on, captured or as arguments.

    dtype       of the elements; a vector or matrix type makes a field of those
    shape       its extents; () has one element, f[None]. Without it the field is placed in a tree:
                `qd.root.dense(qd.ij, (4, 8)).place(f)`
    order       axes in memory, outermost first: "ji" is column major
    offset      the index of the first element
    needs_grad  with a field of gradients, `.grad`
    needs_dual  with a field for forward mode, `.dual`
    """
    if isinstance(dtype, TensorType):
        return matrix_field(dtype.ndim, dtype.n, dtype.m, dtype.dtype, shape, order, name, offset,
                            needs_grad, needs_dual, **options)
    if options:
        raise TypeError(f"qd.field got unexpected keyword arguments {sorted(options)}")
    return _with_companions(dtype, shape, order, name, offset, needs_grad, needs_dual)


def matrix_field(ndim, n, m, dtype, shape=None, order=None, name="", offset=None, needs_grad=False,
                 needs_dual=False, layout=None):
    """`qd.Vector.field` and `qd.Matrix.field`."""
    from ingot._matrix import MatrixType, VectorType

    kind = VectorType(n, dtype) if ndim == 1 else MatrixType(n, m, dtype)
    return _with_companions(kind, shape, order, name, offset, needs_grad, needs_dual)


# ---- NumPy ----


def _numpy_type(dtype):
    from ingot._matrix import _numpy_type

    return _numpy_type(dtype)


def to_numpy(field, *args, **options):
    """The elements as a NumPy array: a copy, a view (copy=False), or what is cheaper (None)."""
    return (_matrix_to_numpy if field.element_shape else _scalar_to_numpy)(field, *args, **options)


def _scalar_to_numpy(field, dtype=None, *, copy=True):
    return _to_numpy(field, field.shape, dtype, copy)


def _matrix_to_numpy(field, keep_dims=False, dtype=None, *, copy=True):
    element = (field.n,) if field.m == 1 and not keep_dims else (field.n, field.m)
    return _to_numpy(field, field.shape + element, dtype, copy)


def _to_numpy(field, shape, dtype, copy):
    import numpy as np

    made = np.empty(shape, _numpy_type(field.dtype))
    field._store(made)
    return made if dtype is None else made.astype(dtype, copy=False)


def as_array_for_numpy(field, dtype=None, copy=None):
    """`__array__`, as NumPy 1 and 2 call it."""
    return to_numpy(field, dtype=dtype)


def from_numpy(field, source):
    """Loads all elements from a NumPy array of equal shape, converting its numbers."""
    import numpy as np

    from ingot._interop import MASKED

    if not isinstance(source, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got '{type(source).__name__}'")
    if isinstance(source, np.ma.MaskedArray):
        raise TypeError(f"from_numpy: {MASKED}")
    if source.dtype.kind not in "biuf":
        raise TypeError(f"from_numpy: elements of dtype {source.dtype} are no real numbers")
    wanted = field.shape + field.element_shape
    if source.shape != wanted and not _is_column(field, source.shape):
        raise ValueError(f"qd.field shape {wanted} does not match the numpy array shape {source.shape}")
    field._load(np.ascontiguousarray(source, _numpy_type(field.dtype)))


def _is_column(field, shape):
    """Vectors may come as n x 1 matrices, and the other way round."""
    if not field.element_shape or field.m != 1:
        return False
    return shape in (field.shape + (field.n,), field.shape + (field.n, 1))
