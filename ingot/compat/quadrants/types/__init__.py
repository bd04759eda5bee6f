"""Types for annotations."""

from ingot import types as _real
from ingot._view import BufferViewType
from ingot.compat.missing import Missing as _Missing
from ingot.compat.missing import adopt as _adopt

_adopt(
    globals(),
    "types",
    "argpack matrix quant ref sparse_matrix_builder struct vector",
)


class NDArray(_real.NDArray):
    """An array parameter. One with elements that Ingot lacks fails where it is used, not here."""

    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        try:
            _real.NDArray(*args, **kwargs)
        except (TypeError, ValueError):
            lacks = any(isinstance(a, _Missing) for a in (*args, *kwargs.values()))
            if lacks or kwargs.get("element_dim") or kwargs.get("element_shape"):
                return _Missing("types.ndarray()")
            raise
        return super().__new__(cls)


ndarray = NdarrayType = NDArray

from ingot.compat.quadrants.types import annotations, enums, primitive_types  # noqa: E402
from ingot.compat.quadrants.types.utils import (  # noqa: E402
    is_integral,
    is_real,
    is_signed,
    is_tensor,
)
