"""Types for annotations: `qd.types.ndarray`, `qd.types.NDArray[...]`, and the dtypes."""

from ingot._annotations import NDArray, NdarrayType, Template, ndarray, ref, sparse_matrix_builder, template
from ingot._core import (
    f16,
    f32,
    f64,
    float16,
    float32,
    float64,
    i8,
    i16,
    i32,
    i64,
    int8,
    int16,
    int32,
    int64,
    u1,
    u8,
    u16,
    u32,
    u64,
    uint1,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ingot.types.compound import matrix, struct, vector

__all__ = [
    "NDArray", "NdarrayType", "Template", "f16", "f32", "f64", "float16", "float32", "float64",
    "i16", "i32", "i64", "i8", "int16", "int32", "int64", "int8", "matrix", "ndarray", "ref",
    "sparse_matrix_builder", "struct", "template", "u1", "u16", "u32", "u64", "u8", "uint1", "uint16", "uint32",
    "uint64", "uint8", "vector",
]
