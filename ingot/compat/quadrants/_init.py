"""`qd.init` and `qd.reset` with what the reference's return and keep beside."""

import ingot
from ingot.compat.quadrants import _logging
from ingot.compat.quadrants.lang import impl


def init(*args, _test_mode=False, **options):
    """`ingot.init`. In test mode it gives the options in force."""
    ingot.init(*args, **options)
    _logging.set_logging_level(ingot.cfg.log_level)
    impl.get_runtime().began()
    return ingot.cfg if _test_mode else None


def reset():
    """`ingot.reset`."""
    impl.get_runtime().clear()
    ingot.reset()
    impl.get_runtime().began()
