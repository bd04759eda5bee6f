"""`qd.ndrange`."""

from ingot import ndrange

_Ndrange = ndrange

__all__ = ["ndrange"]
