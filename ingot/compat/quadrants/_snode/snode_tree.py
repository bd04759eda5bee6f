"""A finished tree of fields."""

from ingot._snode import SNodeTree

__all__ = ["SNodeTree"]
