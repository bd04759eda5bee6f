"""Trees of fields."""

from ingot._snode import FieldsBuilder
from ingot.compat.quadrants._snode import fields_builder

__all__ = ["FieldsBuilder", "fields_builder"]
