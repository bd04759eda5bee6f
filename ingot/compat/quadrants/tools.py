"""Writing files."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "tools", "PLYWriter diagnose np2ply vtk write_vtk")


def __dir__():
    return _provided(globals())
