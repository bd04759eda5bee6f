"""Warnings that come once."""

import warnings

_given = set()


def warn_once(message):
    """Warns unless the same was said before in this process."""
    if message not in _given:
        _given.add(message)
        warnings.warn(message)
