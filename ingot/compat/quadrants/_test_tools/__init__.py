"""What the reference's tests use."""

import ingot
from ingot.compat.quadrants._test_tools import textwrap2, warnings_helper

__all__ = ["qd_init_same_arch", "textwrap2", "warnings_helper"]


def qd_init_same_arch(**options):
    """`qd.init` with other options on the target in use."""
    from ingot.compat.quadrants import init

    init(**{**options, "arch": ingot.cfg.arch})
