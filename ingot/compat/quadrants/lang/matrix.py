"""Matrices and vectors."""

import ingot as _ingot
from ingot._matrix import MatrixType, VectorType  # noqa: F401
from ingot.compat.missing import fill as _fill

_NAMES = "Matrix MatrixField MatrixNdarray Vector VectorNdarray"
globals().update({n: getattr(_ingot, n) for n in _NAMES.split() if hasattr(_ingot, n)})
_fill(globals(), _NAMES)


def _generate_swizzle_patterns(key_group, required_length=4):
    """All strings of up to `required_length` of the letters."""
    import itertools

    lengths = range(1, required_length + 1)
    return ["".join(p) for n in lengths for p in itertools.product(key_group, repeat=n)]
