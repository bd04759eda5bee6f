"""`qd.perf_dispatch` as the reference has it: every process holds its own contests."""

import functools

from ingot._dispatch import (
    DEFAULT_REPEAT_AFTER_COUNT,
    NUM_ACTIVE,
    NUM_FIRST_WARMUP,
    NUM_WARMUP,
    DispatchImpl,
    PerformanceDispatcher,
    parse_forced,
)
from ingot._dispatch import perf_dispatch as _perf_dispatch

perf_dispatch = functools.partial(_perf_dispatch, remember=False)

__all__ = [
    "DEFAULT_REPEAT_AFTER_COUNT", "NUM_ACTIVE", "NUM_FIRST_WARMUP", "NUM_WARMUP", "DispatchImpl",
    "PerformanceDispatcher", "parse_forced", "perf_dispatch",
]
