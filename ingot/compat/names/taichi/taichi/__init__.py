"""`import taichi` for interpreters that have this folder on their path: Ingot under that name."""

import sys

from ingot import compat
from ingot.compat import taichi

compat.install("taichi")
sys.modules["taichi"] = taichi
