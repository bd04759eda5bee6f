"""`qd.math`: the functions of `qd` that are mathematics, and constants."""

from ingot._ops import (
    acos,
    asin,
    atan2,
    ceil,
    clz,
    cos,
    exp,
    ffs,
    floor,
    log,
    max,
    min,
    popcnt,
    pow,
    round,
    sin,
    sqrt,
    tan,
    tanh,
)

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")

__all__ = [
    "acos", "asin", "atan2", "ceil", "clz", "cos", "e", "exp", "ffs", "floor", "inf", "log",
    "max", "min", "nan", "pi", "popcnt", "pow", "round", "sin", "sqrt", "tan", "tanh",
]
