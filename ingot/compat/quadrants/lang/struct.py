"""Structs."""

import ingot as _ingot
from ingot._struct import StructType  # noqa: F401
from ingot.compat.missing import fill as _fill

_NAMES = "Struct StructField"
globals().update({n: getattr(_ingot, n) for n in _NAMES.split() if hasattr(_ingot, n)})
_fill(globals(), _NAMES)
