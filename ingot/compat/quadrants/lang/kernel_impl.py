"""The decorators, the classes of kernels and of funcs."""

from ingot import data_oriented
from ingot._core import Func
from ingot.compat.quadrants._kernel import func, kernel, pyfunc
from ingot.compat.quadrants.lang.impl import Kernel

__all__ = ["Func", "Kernel", "data_oriented", "func", "kernel", "pyfunc"]
