"""Names that were experimental once."""

import ingot

__all__ = ["real_func"]


def real_func(fn):
    """`qd.real_func` by its old name."""
    import warnings

    warnings.warn(
        "qd.experimental.real_func is deprecated because it is no longer experimental. "
        "Use qd.real_func instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return ingot.real_func(fn)
