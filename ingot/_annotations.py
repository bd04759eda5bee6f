"""Annotations of kernel and func parameters.

What a parameter is, the gate reads from `_ingot_passing`; classes carry it as well as
instances, so `x: qd.template` and `x: qd.template()` mean the same.
"""

from ingot import _core
from ingot._core import DType, StructType, TensorType

_PYTHON_DTYPES = (int, float, bool)
_structs = {}  # struct types of arrays, kept: their layouts are referred to by address


def _element_type(dtype, dim, shape):
    """dtype with the shape of an element, as element_dim= and element_shape= give it."""
    if isinstance(dtype, TensorType):
        raise TypeError(f"qd.types.ndarray: {dtype} says what an element is; leave out element_dim and element_shape")
    if shape is not None and dim is not None and len(shape) != dim:
        raise ValueError(f"qd.types.ndarray: element_shape={shape} has {len(shape)} axes, element_dim is {dim}")
    if dim is None:
        dim = len(shape)
    if dim not in (0, 1, 2):
        raise ValueError("qd.types.ndarray: Only scalars, vectors, and matrices are allowed as elements of qd.types.ndarray()")
    if dim == 0:
        return dtype
    from ingot.types.compound import matrix, vector

    shape = shape or (None,) * dim
    return vector(shape[0], dtype) if dim == 1 else matrix(shape[0], shape[1], dtype)


class _Annotation:
    """What may stand in `Optional[...]`: Python 3.10 takes there only what can be called."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self!r} is an annotation, it cannot be called")


def _of_numpy(dtype):
    """qd.f32 for numpy.float32 and numpy.dtype("f4"); anything else as it is."""
    if type(dtype).__module__.partition(".")[0] == "numpy":
        dtype = getattr(dtype, "type", dtype)
    if not isinstance(dtype, type) or dtype.__module__ != "numpy":
        return dtype
    name = "uint1" if dtype.__name__ in ("bool", "bool_") else dtype.__name__
    found = getattr(_core, name, None)
    return found if isinstance(found, DType) else dtype


class NdarrayType(_Annotation):
    """An array parameter: `qd.types.ndarray(dtype=qd.f32, ndim=2)`, `qd.types.NDArray[qd.f32, 2]`.

    What is left out may be anything: one kernel then serves every dtype or number of axes, each
    compiled on its own. Arrays of Ingot, NumPy and torch are accepted. needs_grad=True refuses
    arrays without a gradient; False and None take both.
    """

    __slots__ = {
        "dtype": "The dtype of the elements, or the type of vectors, matrices or structs; None: any.",
        "ndim": "The number of axes; None: any.",
        "needs_grad": "True: only arrays with a gradient.",
        "boundary": "What an index out of bounds is: 'unsafe', or 'clamp' for the nearest element.",
    }
    _ingot_passing = "ndarray"

    def __init__(self, dtype=None, ndim=None, element_dim=None, element_shape=None,
                 field_dim=None, needs_grad=None, boundary="unsafe", **others):
        if others:
            from ingot._absent import no_option

            raise no_option("qd.types.ndarray", others, ("dtype", "ndim", "needs_grad", "boundary"))
        if field_dim is not None:
            raise ValueError("qd.types.ndarray: field_dim is gone, use ndim")
        if element_dim is not None or element_shape is not None:
            dtype = _element_type(dtype, element_dim, element_shape)
        dtype = _of_numpy(dtype)
        if isinstance(dtype, StructType):
            dtype = _structs.setdefault(dtype, dtype)
        elif dtype is not None and not isinstance(dtype, (DType, TensorType)) and dtype not in _PYTHON_DTYPES:
            number = type(dtype) is int and ndim is None
            axes = f"; the number of axes is ndim={dtype}" if number else ""
            raise TypeError(f"qd.types.ndarray: {dtype!r} is no dtype; use for example qd.f32{axes}")
        literal = getattr(ndim, "__args__", None)  # Literal[2], for type checkers
        if literal is not None and len(literal) == 1:
            ndim = literal[0]
        if ndim is not None and (type(ndim) is bool or not isinstance(ndim, int) or not 0 <= ndim <= 12):
            raise ValueError(f"qd.types.ndarray: ndim is a number from 0 to 12, not {ndim!r}")
        if needs_grad not in (None, True, False):
            raise ValueError(f"qd.types.ndarray: needs_grad is True, False or None, not {needs_grad!r}")
        if boundary not in ("unsafe", "clamp"):
            raise ValueError(f"qd.types.ndarray: boundary is 'unsafe' or 'clamp', not {boundary!r}")
        self.dtype = dtype
        self.ndim = ndim
        self.needs_grad = needs_grad
        self.boundary = boundary

    def __class_getitem__(cls, args):
        return cls(*args) if isinstance(args, tuple) else cls(args)

    def __repr__(self):
        return f"NdarrayType(dtype={self.dtype}, ndim={self.ndim}, needs_grad={self.needs_grad})"


class Template(_Annotation):
    """A parameter known at compile time: `x: qd.template()`. Each value is compiled on its own."""

    __slots__ = {"element_type": "What it was given, for people.", "ndim": "What it was given, for people."}
    _ingot_passing = "template"

    def __init__(self, element_type=object, ndim=None):
        self.element_type = element_type
        self.ndim = ndim

    def __class_getitem__(cls, element_type):
        return cls(element_type)

    def __repr__(self):
        return "Template()"


class Ref:
    """A parameter of a func that is a variable or element of the caller: `x: qd.ref(qd.f32)`.

    What the func assigns to it is seen by the caller.
    """

    __slots__ = {"dtype": "The type of the variable."}
    _ingot_passing = "ref"

    def __init__(self, dtype):
        if not isinstance(dtype, (DType, TensorType)) and dtype not in _PYTHON_DTYPES:
            raise TypeError(f"qd.ref: {dtype!r} is no dtype; use for example qd.f32")
        self.dtype = dtype

    def __repr__(self):
        return f"ref({self.dtype})"


class SparseMatrixBuilderType:
    """A parameter that is a `qd.linalg.SparseMatrixBuilder`: `A[i, j] += x` adds an entry."""

    __slots__ = ()
    _ingot_passing = "template"


template = Template
ref = Ref
sparse_matrix_builder = SparseMatrixBuilderType
ndarray = NdarrayType
NDArray = NdarrayType
