"""Types of ingot.profiler, for type checkers."""

from typing import NamedTuple

__all__ = [
    "clear_kernel_profiler_info", "clear_scoped_profiler_info", "get_kernel_profiler_total_time", "peak_bandwidth",
    "print_kernel_profiler_info", "print_scoped_profiler_info", "query_kernel_profiler_info", "task_profiles",
]

class KernelProfilerQueryResult(NamedTuple):
    counter: int
    min: float
    max: float
    avg: float

class TaskProfile(NamedTuple):
    kernel: str
    place: str
    task: int | None
    parallel: bool
    count: int  # type: ignore[assignment]
    total: float
    min: float
    max: float
    bytes: int
    threads: int
    share: float | None

def peak_bandwidth() -> float: ...
def task_profiles() -> list[TaskProfile]: ...
def print_kernel_profiler_info(mode: str = "count") -> None: ...
def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult | None: ...
def clear_kernel_profiler_info() -> None: ...
def get_kernel_profiler_total_time() -> float: ...
def print_scoped_profiler_info() -> None: ...
def clear_scoped_profiler_info() -> None: ...
