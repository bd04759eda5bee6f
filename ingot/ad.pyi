"""Types of ingot.ad, for type checkers."""

from types import TracebackType
from typing import Any, Callable, Sequence, TypeVar

from typing_extensions import Self

__all__ = [
    "FwdMode", "GradCheck", "Tape", "check_grad", "clear_all_gradients", "grad_for", "grad_replaced",
    "no_grad", "torch_function",
]

_F = TypeVar("_F", bound=Callable[..., Any])

class Tape:
    loss: Any
    clear_gradients: bool
    validation: bool
    grad_check: list[Any]
    gradient_evaluated: bool
    def __init__(
        self,
        loss: Any = None,
        clear_gradients: bool = True,
        validation: bool = False,
        grad_check: Sequence[Any] | None = None,
        *,
        state: Sequence[Any] | None = None,
        memory_budget: float | None = None,
    ) -> None: ...
    @property
    def calls(self) -> list[tuple[Any, tuple[Any, ...]]]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...
    def grad(self) -> None: ...

class FwdMode:
    loss: list[Any]
    param: Any
    seed: Sequence[float] | None
    clear_gradients: bool
    def __init__(
        self, loss: Any, param: Any, seed: Sequence[float] | None = None, clear_gradients: bool = True
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...

class GradCheck:
    name: str
    entries: list[tuple[str, tuple[int, ...], float, float, float]]
    ok: bool
    def __init__(self, name: str, entries: Sequence[tuple[str, tuple[int, ...], float, float, float]]) -> None: ...

def clear_all_gradients() -> None: ...
def grad_replaced(func: _F) -> _F: ...
def grad_for(primal: Callable[..., Any]) -> Callable[[_F], _F]: ...
def no_grad(func: _F) -> _F: ...
def check_grad(
    kernel: Callable[..., Any],
    *args: Any,
    entries: int = 32,
    seed: int = 0,
    rtol: float | None = None,
    **kwargs: Any,
) -> GradCheck: ...
def torch_function(kernel: Callable[..., Any], outputs: dict[str, Any]) -> Callable[..., Any]: ...
