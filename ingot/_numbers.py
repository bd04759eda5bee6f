"""Numbers that people write: on the command line, in the environment, as bounds in calls. One way
to read each kind, with its limits; what is none raises ValueError, and its text says what was
expected. Texts are ASCII: `int` and `float` would take digits of any script, `_`, `nan` and `inf`.
"""

MOST = (1 << 63) - 1  # of what the engine counts
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_WHOLE = r"[+-]?[0-9]{1,40}"
_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:e[0-9]{1,9})?)"
_SIZE = _NUMBER + r"\s*([kmgt]?)(?:i?b)?"
_SPAN = _NUMBER + r"\s*([smhdw])"


def _match(pattern, text):
    import re  # not with `import ingot`, which stays light

    return re.fullmatch(pattern, text.strip().lower())


def whole(text, least=0, most=MOST):
    """An integer within bounds."""
    found = _match(_WHOLE, text)
    value = int(found[0]) if found else None
    if value is None or not least <= value <= most:
        raise ValueError(f"expected an integer from {least} to {most}, got {text!r}")
    return value


def positive(text):
    return whole(text, 1)


def size(text):
    """Bytes: 500M, 2G, 1024."""
    found = _match(_SIZE, text)
    exact = found and found[1].isdigit()
    value = (int(found[1][:40]) if exact else float(found[1])) * UNITS[found[2]] if found else None
    if value is None or value > MOST:
        raise ValueError(f"expected a size below 2**63 bytes such as 1024, 500M or 2G, got {text!r}")
    return int(value)


def span(text):
    """Seconds: 90s, 12h, 30d."""
    found = _match(_SPAN, text)
    value = float(found[1]) * SPANS[found[2]] if found else None
    if value is None or value > MOST:
        raise ValueError(f"expected a length of time such as 90s, 12h or 30d, got {text!r}")
    return value


def number(text, least=0.0, most=float(MOST)):
    """A number within bounds, with or without a fraction."""
    found = _match(_NUMBER, text)
    value = float(found[0]) if found else None
    if value is None or not least <= value <= most:
        raise ValueError(f"expected a number from {least:g} to {most:g}, got {text!r}")
    return value


def bound(name, value):
    """A bound that a caller gives: a positive int; None is no bound, and 0 for the engine."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST:
        raise ValueError(f"{name} must be a positive int or None, below 2**63, got {value!r}")
    return int(value)


def argument(parse):
    """The parser as a type for argparse, which hides the text of a ValueError."""

    def read(text):
        try:
            return parse(text)
        except ValueError as e:
            import argparse

            raise argparse.ArgumentTypeError(str(e)) from None

    return read
