"""`import taichi` on Ingot: the names of `ingot.compat.quadrants`, errors under Taichi's names.

Only what Taichi has in common with Quadrants; submodules are shared with it.
"""

from ingot.compat import quadrants as _quadrants
from ingot.compat.quadrants.lang import exception as _exception

globals().update({k: v for k, v in vars(_quadrants).items() if not k.startswith("_")})
globals().update({k: v for k, v in vars(_exception).items() if k.startswith("Taichi")})

__version__ = _quadrants.__version__
__path__ = _quadrants.__path__


def __getattr__(name):
    return getattr(_quadrants, name)
