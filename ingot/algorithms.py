"""`qd.algorithms`: reductions, scans, selections and sorts of whole arrays."""

from ingot._algorithms import (
    PrefixSumExecutor,
    exclusive_scan_add,
    exclusive_scan_max,
    exclusive_scan_min,
    exclusive_scan_scratch_slots,
    parallel_sort,
    reduce_add,
    reduce_by_key_add,
    reduce_by_key_scratch_slots,
    reduce_max,
    reduce_min,
    reduce_scratch_slots,
    select,
    select_scratch_slots,
    sort,
    sort_scratch_slots,
)

__all__ = [
    "PrefixSumExecutor", "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min",
    "exclusive_scan_scratch_slots", "parallel_sort", "reduce_add", "reduce_by_key_add",
    "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
    "select_scratch_slots", "sort", "sort_scratch_slots",
]
