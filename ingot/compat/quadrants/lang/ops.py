"""Operations by their own names."""

import operator as _operator

from ingot._ops import *  # noqa: F403

add, sub, mul, truediv, floordiv, mod, neg = (
    _operator.add, _operator.sub, _operator.mul, _operator.truediv, _operator.floordiv,
    _operator.mod, _operator.neg,
)


def logical_not(a):
    """1 where `a` is 0, for each element of a vector or matrix."""
    return a == 0
