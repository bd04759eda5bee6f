"""Sharing a device with other libraries."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "interop", "get_mps_command_queue")


def __dir__():
    return _provided(globals())
