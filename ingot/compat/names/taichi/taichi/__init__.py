"""`import taichi` where this folder is on the path: Ingot under that name."""

import sys

from ingot import compat
from ingot.compat import taichi

sys.modules["taichi"] = taichi
compat.install("taichi")
