"""Operations by their own names."""

import operator as _operator

from ingot._ops import *  # noqa: F403

add, sub, mul, truediv, floordiv, mod, neg = (
    _operator.add, _operator.sub, _operator.mul, _operator.truediv, _operator.floordiv,
    _operator.mod, _operator.neg,
)
logical_not = _operator.not_
