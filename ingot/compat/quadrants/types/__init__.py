"""Types for annotations."""

from ingot.compat.missing import adopt as _adopt

_adopt(
    globals(),
    "types",
    "BufferViewType argpack matrix quant ref sparse_matrix_builder struct vector",
)

from ingot.compat.quadrants.types import annotations, enums, primitive_types  # noqa: E402
from ingot.compat.quadrants.types.utils import (  # noqa: E402
    is_integral,
    is_real,
    is_signed,
    is_tensor,
)
