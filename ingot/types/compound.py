"""Vector and matrix types: `qd.types.vector(3, qd.f32)`, `qd.types.matrix(2, 2, qd.f32)`.

As annotations they say what a parameter or result is; called, they make one from its elements,
from one number for all of them, or by converting another one.
"""

from ingot._matrix import MatrixType, UnpackedVectorType, VectorType


def vector(n=None, dtype=None, unpacked=False):
    """The type of vectors of n elements. `unpacked`: a member of a struct, its elements apart."""
    return UnpackedVectorType(n, dtype) if unpacked else VectorType(n, dtype)


def matrix(n=None, m=None, dtype=None):
    """The type of matrices with n rows and m columns."""
    if m is not None and not hasattr(m, "__index__"):
        raise TypeError(f"qd.types.matrix takes rows, columns and dtype: qd.types.matrix(3, 3, qd.f32); {m!r} is no number of columns")
    return MatrixType(n, m, dtype)


def struct(**members):
    """The type of structs with these members: numbers, vectors, matrices, other structs."""
    from ingot._struct import StructType

    return StructType(**members)
