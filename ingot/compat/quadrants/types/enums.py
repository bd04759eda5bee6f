"""Enumerations that programs name."""

import enum

from ingot._layout import Layout


class AutodiffMode(enum.Enum):
    """What a kernel is compiled for."""

    NONE = 0
    VALIDATION = 1
    FORWARD = 2
    REVERSE = 3


class SNodeGradType(enum.Enum):
    """What a field holds."""

    PRIMAL = 0
    ADJOINT = 1
    DUAL = 2
    ADJOINT_CHECKBIT = 3


__all__ = ["AutodiffMode", "Layout", "SNodeGradType"]
