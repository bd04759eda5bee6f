"""`qd.perf_dispatch`."""

from ingot.compat.quadrants._dispatch import (
    DEFAULT_REPEAT_AFTER_COUNT,
    NUM_ACTIVE,
    NUM_FIRST_WARMUP,
    NUM_WARMUP,
    DispatchImpl,
    PerformanceDispatcher,
    perf_dispatch,
)
from ingot.compat.quadrants._dispatch import parse_forced as _parse_force_map  # noqa: F401

__all__ = [
    "DEFAULT_REPEAT_AFTER_COUNT", "NUM_ACTIVE", "NUM_FIRST_WARMUP", "NUM_WARMUP", "DispatchImpl",
    "PerformanceDispatcher", "perf_dispatch",
]
