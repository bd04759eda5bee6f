"""The builder of a tree of fields."""

from ingot._snode import FieldsBuilder

__all__ = ["FieldsBuilder"]
