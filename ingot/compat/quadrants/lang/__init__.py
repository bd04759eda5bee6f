"""The reference's inner package: the submodules that programs reach, and the targets."""

from ingot.compat.quadrants import graph, simt
from ingot.compat.quadrants._kernel import func, kernel, pure, pyfunc
from ingot.compat.quadrants.lang import (
    _fast_caching,
    _ndrange,
    _perf_dispatch,
    _template_mapper,
    exception,
    field,
    impl,
    kernel_impl,
    matrix,
    misc,
    ops,
    snode,
    stream,
    struct,
    util,
)
from ingot.compat.quadrants.lang.exception import *  # noqa: F403
from ingot.compat.quadrants.lang.misc import *  # noqa: F403
