"""Streams and events."""

import ingot as _ingot
from ingot.compat.missing import fill as _fill

_NAMES = "Event Stream create_event create_stream stream_parallel"
globals().update({n: getattr(_ingot, n) for n in _NAMES.split() if hasattr(_ingot, n)})
_fill(globals(), _NAMES)
