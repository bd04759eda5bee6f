"""Tensors: `qd.tensor` makes one on the backend of your choice, `qd.Tensor` is their type.

A tensor is an `Ndarray`, or on the field backend a field; there is no wrapper around it: what
takes an array takes a tensor, and the other way round. `Tensor` is the name of the type, for
annotations and `isinstance`; a parameter annotated with it takes an array or field of any dtype
and any number of axes, or None.
"""

from enum import IntEnum

from ingot._core import DenseField, DType, Ndarray, ndarray


class Backend(IntEnum):
    """Where the elements of a tensor are kept."""

    FIELD = 0
    NDARRAY = 1


class _TensorType(type):
    def __instancecheck__(cls, instance):
        if not isinstance(instance, (Ndarray, DenseField)):
            return False
        return cls._element_rank is None or len(instance.element_shape) == cls._element_rank


class Tensor(metaclass=_TensorType):
    """An array of any backend: `def k(x: qd.Tensor)`, `isinstance(x, qd.Tensor)`.

    `Tensor(x)` is x itself, which must be an array.
    """

    _ingot_passing = "tensor"
    _element_rank = None

    def __new__(cls, impl):
        if not isinstance(impl, cls):
            raise TypeError(f"{cls.__name__}(impl) requires an array of Ingot, not {type(impl).__name__}")
        return impl


class VectorTensor(Tensor):
    """A tensor whose elements are vectors."""

    _element_rank = 1


class MatrixTensor(Tensor):
    """A tensor whose elements are matrices."""

    _element_rank = 2


def wrap(impl):
    """An array as a tensor: itself."""
    return Tensor(impl)


def _backend(backend):
    try:
        return Backend(backend)
    except ValueError:
        names = ", ".join(f"qd.Backend.{member.name}" for member in Backend)
        raise ValueError(f"backend={backend!r} is none of {names}") from None


def _refuse(name, others, known):
    elsewhere = name.replace("tensor()", "ndarray(..., layout=...)")  # as in the reference
    if "order" in others:
        remedy = "pass layout=(...) instead" if "layout" in known else f"{elsewhere} orders the axes"
        raise TypeError(f"{name} does not accept order=; {remedy}")
    if others:
        remedy = f"; {elsewhere} orders the axes" if "layout" in others else ""
        raise TypeError(
            f"{name} got unexpected keyword arguments {sorted(others)}; "
            f"it knows {', '.join(known)}{remedy}"
        )


def _layout(layout, shape):
    layout = tuple(layout)
    ndim = 1 if isinstance(shape, int) else len(tuple(shape))
    if len(layout) != ndim:
        raise ValueError(f"layout has {len(layout)} entries, the shape {ndim} axes")
    if sorted(layout) != list(range(ndim)):
        raise ValueError(f"layout={layout} is not a permutation of range({ndim})")
    return layout


def tensor(dtype, shape, *, backend=Backend.NDARRAY, layout=None, needs_grad=False, **others):
    """A zeroed tensor.

    backend     qd.Backend.NDARRAY, or qd.Backend.FIELD: a field, as qd.field makes it
    layout      order of the axes in memory, outermost first; indices and shape stay as they are
    needs_grad  with an array of gradients, `.grad`
    """
    _refuse("qd.tensor()", others, ("dtype", "shape", "backend", "layout", "needs_grad"))
    if isinstance(dtype, Tensor):
        raise TypeError("qd.tensor() makes a new tensor; an array is one already, see qd.wrap()")
    if layout is not None and not isinstance(dtype, DType) and dtype not in (int, float, bool):
        raise TypeError(
            "layout= is not supported with compound dtypes (vectors, matrices); "
            "qd.ndarray(dtype, shape, layout=...) orders the axes of an array of them"
        )
    if layout is not None:
        layout = _layout(layout, shape)
    if _backend(backend) is Backend.NDARRAY:
        return ndarray(dtype, shape, needs_grad=needs_grad, layout=layout)
    from ingot._fields import field

    order = None if layout is None else "".join(chr(ord("i") + axis) for axis in layout)
    return field(dtype, shape, order=order, needs_grad=needs_grad)


def vector_tensor(n, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **others):
    """`qd.Vector.tensor`: a tensor whose elements are vectors of n."""
    _refuse("qd.Vector.tensor()", others, ("n", "dtype", "shape", "backend", "needs_grad"))
    from ingot._matrix import Vector

    make = Vector.field if _backend(backend) is Backend.FIELD else Vector.ndarray
    return make(n, dtype, shape, needs_grad=needs_grad)


def matrix_tensor(n, m, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **others):
    """`qd.Matrix.tensor`: a tensor whose elements are n by m matrices."""
    _refuse("qd.Matrix.tensor()", others, ("n", "m", "dtype", "shape", "backend", "needs_grad"))
    from ingot._matrix import Matrix

    make = Matrix.field if _backend(backend) is Backend.FIELD else Matrix.ndarray
    return make(n, m, dtype, shape, needs_grad=needs_grad)
