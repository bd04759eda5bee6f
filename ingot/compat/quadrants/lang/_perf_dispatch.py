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

_parse_force_map = None  # imported by tests of a variable that is not read here

__all__ = [
    "DEFAULT_REPEAT_AFTER_COUNT", "NUM_ACTIVE", "NUM_FIRST_WARMUP", "NUM_WARMUP", "DispatchImpl",
    "PerformanceDispatcher", "perf_dispatch",
]
