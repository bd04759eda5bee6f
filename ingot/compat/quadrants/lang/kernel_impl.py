"""The decorators and the class of kernels."""

from ingot import data_oriented
from ingot.compat.quadrants._kernel import func, kernel, pyfunc
from ingot.compat.quadrants.lang.impl import Kernel

__all__ = ["Kernel", "data_oriented", "func", "kernel", "pyfunc"]
