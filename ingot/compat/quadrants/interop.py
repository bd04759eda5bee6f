"""Sharing a device with other libraries."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "interop", "")


def get_mps_command_queue():
    """The queue of torch on Apple's GPUs: 0, as wherever there is none."""
    return 0


def __dir__():
    return _provided(globals())
