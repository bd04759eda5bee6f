"""`template` and its kin."""

from ingot import Template, template

__all__ = ["Template", "template"]
