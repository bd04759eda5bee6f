"""Graph kernels."""

from ingot.graph import do_while, parallel, parallel_context

__all__ = ["do_while", "parallel", "parallel_context"]
__name__ = "quadrants.lang.graph"  # where the reference keeps it


def __dir__():
    return __all__
