"""The mark by which a field of a dataclass asks that its value be compiled in."""

FIELD_METADATA_CACHE_VALUE = "add_value_to_cache_key"

__all__ = ["FIELD_METADATA_CACHE_VALUE"]
