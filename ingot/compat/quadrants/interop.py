"""Sharing a device with other libraries."""

from ingot.compat.missing import adopt as _adopt
from ingot.compat.missing import provided as _provided

_adopt(globals(), "interop", "")


def get_mps_command_queue():
    """The queue of torch on Apple's GPUs, which there are none of here."""
    raise RuntimeError("get_mps_command_queue needs arch=metal; kernels run on the CPU")


def __dir__():
    return _provided(globals())
