"""What type checkers see of `qd.types`: see ingot/__init__.pyi."""

from typing import Any, Generic, TypeVar

from typing_extensions import TypeAlias
from typing_extensions import TypeVar as _DefaultTypeVar

import ingot as _qd

_T = TypeVar("_T")
_N = _DefaultTypeVar("_N", default=Any)

class NDArray(_qd.Ndarray[_T], Generic[_T, _N]):
    """An array parameter: `NDArray[qd.f32]`, `NDArray[qd.f32, Literal[2]]`."""

    def __init__(self, dtype: Any = None, ndim: int | None = None, **options: Any) -> None: ...
    def __getitem__(self, key: Any) -> _T: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...

ndarray: Any
NdarrayType: TypeAlias = NDArray[Any, Any]
Template: TypeAlias = Any
template: Any
ref: Any

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

def vector(n: int | None = None, dtype: Any = None) -> Any: ...
def matrix(n: int | None = None, m: int | None = None, dtype: Any = None) -> Any: ...
def __getattr__(name: str) -> Any: ...
