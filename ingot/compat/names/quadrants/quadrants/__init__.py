"""`import quadrants` where this folder is on the path: Ingot under that name."""

import sys

from ingot import compat
from ingot.compat import quadrants

sys.modules["quadrants"] = quadrants
compat.install("quadrants")
