"""What observers of kernels report."""

import enum

from ingot.compat.quadrants._kernel import SrcLlCacheObservations


class KernelBatchedArgType(enum.IntEnum):
    """Kinds of arguments that launches count."""

    FLOAT = 0
    INT = 1
    UINT = 2
    QD_ARRAY = 3
    QD_ARRAY_WITH_GRAD = 4


__all__ = ["KernelBatchedArgType", "SrcLlCacheObservations"]
