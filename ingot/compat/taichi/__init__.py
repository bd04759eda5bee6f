"""`import taichi` on Ingot: the names of `ingot.compat.quadrants`, errors under Taichi's names.

Only what Taichi has in common with Quadrants; submodules are shared with it.
"""

from ingot.compat import quadrants as _quadrants
from ingot.compat.quadrants.lang import exception as _exception

globals().update({k: v for k, v in vars(_quadrants).items() if not k.startswith("_")})
globals().update({k: v for k, v in vars(_exception).items() if k.startswith("Taichi")})

__version__ = _quadrants.__version__
__path__ = _quadrants.__path__


def rgb_to_hex(c):
    """The colour (r, g, b), parts of 0 to 1, as one number 0xrrggbb; of arrays an array."""
    import numpy as np

    r, g, b = (np.clip(np.int32(np.asarray(x) * 255), 0, 255) for x in c[:3])
    return r * 65536 + g * 256 + b


def hex_to_rgb(color):
    """The parts of 0xrrggbb as three numbers of 0 to 1."""
    return tuple((color >> shift & 255) / 255 for shift in (16, 8, 0))


def __getattr__(name):
    return getattr(_quadrants, name)
