"""Differentiation."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(
    globals(),
    "ad",
    "FwdMode Tape clear_all_gradients grad_for grad_replaced no_grad",
)


def __dir__():
    return _provided(globals())
