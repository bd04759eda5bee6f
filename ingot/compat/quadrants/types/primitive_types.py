"""The dtypes, singly and by kind."""

from ingot.types import (
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

real_types = [f16, f32, f64, float]
integer_types = [i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool]
all_types = real_types + integer_types
real_type_ids = [id(t) for t in real_types]
integer_type_ids = [id(t) for t in integer_types]
type_ids = [id(t) for t in all_types]

__all__ = [
    "f16", "f32", "f64", "float16", "float32", "float64", "i16", "i32", "i64", "i8", "int16",
    "int32", "int64", "int8", "u1", "u16", "u32", "u64", "u8", "uint1", "uint16", "uint32",
    "uint64", "uint8",
]
