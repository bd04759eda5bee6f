"""The reference's native part: what programs ask of it."""

from ingot.compat.quadrants._lib import core, utils

__all__ = ["core", "utils"]
