"""Ingot's errors under the reference's names (and Taichi's)."""

from ingot._core import (
    IngotAssertionError,
    IngotCompilationError,
    IngotIndexError,
    IngotNameError,
    IngotRuntimeError,
    IngotRuntimeTypeError,
    IngotSyntaxError,
    IngotTypeError,
)

QuadrantsCompilationError = TaichiCompilationError = IngotCompilationError
QuadrantsSyntaxError = TaichiSyntaxError = IngotSyntaxError
QuadrantsNameError = TaichiNameError = IngotNameError
QuadrantsIndexError = TaichiIndexError = IngotIndexError
QuadrantsTypeError = TaichiTypeError = IngotTypeError
QuadrantsRuntimeError = TaichiRuntimeError = IngotRuntimeError
QuadrantsAssertionError = TaichiAssertionError = IngotAssertionError
QuadrantsRuntimeTypeError = TaichiRuntimeTypeError = IngotRuntimeTypeError

__all__ = [
    "QuadrantsAssertionError", "QuadrantsCompilationError", "QuadrantsIndexError",
    "QuadrantsNameError", "QuadrantsRuntimeError", "QuadrantsRuntimeTypeError",
    "QuadrantsSyntaxError", "QuadrantsTypeError",
]
