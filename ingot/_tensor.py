"""Tensors: `qd.tensor` makes one on the backend of your choice, `qd.Tensor` is their type.

A tensor on the ndarray backend is an `Ndarray`, there is no wrapper around it: what takes an
array takes a tensor, and the other way round. `Tensor` is the name of the type, for annotations
and `isinstance`; a parameter annotated with it takes an array of any dtype and any number of
axes, or None.
"""

from enum import IntEnum

from ingot._core import DType, Ndarray, ndarray


class Backend(IntEnum):
    """Where the elements of a tensor are kept."""

    FIELD = 0
    NDARRAY = 1


class _TensorType(type):
    def __instancecheck__(cls, instance):
        if not isinstance(instance, Ndarray):
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
        chosen = Backend(backend)
    except ValueError:
        names = ", ".join(f"qd.Backend.{member.name}" for member in Backend)
        raise ValueError(f"backend={backend!r} is none of {names}") from None
    if chosen is Backend.FIELD:
        raise NotImplementedError(
            "fields are not supported yet: leave out backend=, or say qd.Backend.NDARRAY"
        )
    return chosen


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

    backend     qd.Backend.NDARRAY (fields are to come)
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
    _backend(backend)
    return ndarray(dtype, shape, needs_grad=needs_grad, layout=layout)


def vector_tensor(n, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **others):
    """`qd.Vector.tensor`: a tensor whose elements are vectors of n."""
    _refuse("qd.Vector.tensor()", others, ("n", "dtype", "shape", "backend", "needs_grad"))
    _backend(backend)
    from ingot._matrix import Vector

    return Vector.ndarray(n, dtype, shape, needs_grad=needs_grad)


def matrix_tensor(n, m, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **others):
    """`qd.Matrix.tensor`: a tensor whose elements are n by m matrices."""
    _refuse("qd.Matrix.tensor()", others, ("n", "m", "dtype", "shape", "backend", "needs_grad"))
    _backend(backend)
    from ingot._matrix import Matrix

    return Matrix.ndarray(n, m, dtype, shape, needs_grad=needs_grad)
