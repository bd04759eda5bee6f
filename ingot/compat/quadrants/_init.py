"""`qd.init` and `qd.reset` with what the reference's check, return and keep beside."""

import os
import warnings

import ingot
from ingot.compat.quadrants import _logging
from ingot.compat.quadrants.lang import impl


def _set(variable):
    return os.environ.get(variable, "0") not in ("", "0")


def _check_dumps(src_ll_cache):
    """Code that comes from a cache was not made now: there is nothing to print or to replace."""
    cached = ingot.cfg.offline_cache or src_ll_cache
    if _set("QD_LOAD_IR") and cached:
        raise ValueError(
            "QD_LOAD_IR is set: kernels come from a cache, and no IR is read; unset it, or switch "
            "the caches off with offline_cache=False and src_ll_cache=False"
        )
    if cached and (ingot.cfg.print_ir or _set("QD_DUMP_IR")):
        warnings.warn(
            "print_ir and QD_DUMP_IR show nothing of a kernel that comes from a cache: pass "
            "offline_cache=False [warning_code=DUMP_IR_CACHE_MISMATCH]",
            UserWarning,
            stacklevel=3,
        )


def init(*args, _test_mode=False, src_ll_cache=True, **options):
    """`ingot.init`. In test mode it gives the options in force."""
    impl.get_runtime().clear()
    ingot.init(*args, **{"reference": True} | options)
    _check_dumps(src_ll_cache)
    _logging.set_logging_level(ingot.cfg.log_level)
    impl.get_runtime().began()
    return ingot.cfg if _test_mode else None


def reset():
    """`ingot.reset`."""
    impl.get_runtime().clear()
    ingot.reset()
    ingot.cfg.reference = True
    impl.get_runtime().began()
