"""Graph kernels."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "graph", "do_while parallel parallel_context")
__name__ = "quadrants.lang.graph"  # where the reference keeps it


_NAMES = "do_while parallel parallel_context".split()  # those that the reference has here


def __dir__():
    return [name for name in _provided(globals()) if name in _NAMES]
