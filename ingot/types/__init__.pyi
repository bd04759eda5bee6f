"""What type checkers see of `qd.types`: see ingot/__init__.pyi."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from typing_extensions import TypeAlias
from typing_extensions import TypeVar as _DefaultTypeVar

__all__ = [
    "NDArray", "NdarrayType", "Template", "f16", "f32", "f64", "float16", "float32", "float64", "i16",
    "i32", "i64", "i8", "int16", "int32", "int64", "int8", "matrix", "ndarray", "ref",
    "sparse_matrix_builder", "struct", "template", "u1", "u16", "u32", "u64", "u8", "uint1", "uint16",
    "uint32", "uint64", "uint8", "vector",
]


_T = TypeVar("_T", covariant=True)
_N = _DefaultTypeVar("_N", default=Any, covariant=True)

class NDArray(Protocol[_T, _N]):
    """An array parameter: `NDArray[qd.f32]`, `NDArray[qd.f32, Literal[2]]`. Ndarrays, NumPy arrays, torch
    tensors and whatever else is like them can be passed."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> _T: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...

ndarray: Any
NdarrayType: TypeAlias = NDArray[Any, Any]
Template: TypeAlias = Any
template: Any
ref: Any
sparse_matrix_builder: Any

f16: TypeAlias = float
f32: TypeAlias = float
f64: TypeAlias = float
i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u1: TypeAlias = bool
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
float16: TypeAlias = float
float32: TypeAlias = float
float64: TypeAlias = float
int8: TypeAlias = int
int16: TypeAlias = int
int32: TypeAlias = int
int64: TypeAlias = int
uint1: TypeAlias = bool
uint8: TypeAlias = int
uint16: TypeAlias = int
uint32: TypeAlias = int
uint64: TypeAlias = int

def vector(n: int | None = None, dtype: Any = None, unpacked: bool = False) -> Any: ...
def struct(**members: Any) -> Any: ...
def matrix(n: int | None = None, m: int | None = None, dtype: Any = None) -> Any: ...
