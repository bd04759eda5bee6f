"""Names that were experimental once."""

from ingot import real_func

__all__ = ["real_func"]
