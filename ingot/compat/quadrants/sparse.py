"""Sparse grids."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "sparse", "grid usage")


def __dir__():
    return _provided(globals())
