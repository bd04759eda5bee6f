"""Vector and matrix types: `qd.types.vector(3, qd.f32)`, `qd.types.matrix(2, 2, qd.f32)`.

As annotations they say what a parameter or result is; called, they make one from its elements,
from one number for all of them, or by converting another one.
"""

from ingot._matrix import MatrixType, VectorType


def vector(n=None, dtype=None):
    """The type of vectors of n elements."""
    return VectorType(n, dtype)


def matrix(n=None, m=None, dtype=None):
    """The type of matrices with n rows and m columns."""
    return MatrixType(n, m, dtype)
