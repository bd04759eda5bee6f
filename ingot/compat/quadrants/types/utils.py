"""Questions about dtypes."""

from ingot._core import DType


def is_real(dtype):
    """Whether it is a floating-point dtype."""
    return str(dtype).startswith("f")


def is_integral(dtype):
    """Whether it is an integer dtype, u1 included."""
    return str(dtype)[:1] in ("i", "u")


def is_signed(dtype):
    """Whether it has negative numbers."""
    return isinstance(dtype, DType) and str(dtype)[0] in "if"


def is_tensor(dtype):
    """Whether values of it have several numbers; no dtype has."""
    return not isinstance(dtype, DType)
