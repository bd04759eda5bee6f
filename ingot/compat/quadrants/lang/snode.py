"""Nodes of trees of fields."""

import ingot as _ingot
from ingot.compat.missing import fill as _fill

_NAMES = "SNode get_addr rescale_index"
globals().update({n: getattr(_ingot, n) for n in _NAMES.split() if hasattr(_ingot, n)})
_fill(globals(), _NAMES)
