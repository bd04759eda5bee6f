"""Levels and functions of the reference's log. Messages go to `logging.getLogger("quadrants")`."""

TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL = (
    "trace", "debug", "info", "warn", "error", "critical",
)
_ORDER = (TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL)
_NUMBERS = (5, 10, 20, 30, 40, 50)  # of these levels in the logging module

supported_log_levels = list(_ORDER)
_level = _ORDER.index(INFO)


def _rank(level):
    if level not in _ORDER:
        raise ValueError(f"log level {level!r} is not known: use one of " + ", ".join(_ORDER))
    return _ORDER.index(level)


def set_logging_level(level):
    """Messages of this level and of those above it are shown."""
    global _level
    _level = _rank(level)


def is_logging_effective(level):
    """Whether messages of this level are shown."""
    return _rank(level) >= _level


def _get_logging(name):
    def write(text, *args, **kwargs):
        if is_logging_effective(name):
            import logging

            number = _NUMBERS[_rank(name)]
            logging.getLogger("quadrants").log(number, text.format(*args, **kwargs))

    write.__name__ = name
    return write


trace, debug, info, warn, error, critical = map(_get_logging, _ORDER)
