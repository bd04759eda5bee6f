"""Graph kernels."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "graph", "do_while parallel parallel_context")
__name__ = "quadrants.lang.graph"  # where the reference keeps it


def __dir__():
    return _provided(globals())
