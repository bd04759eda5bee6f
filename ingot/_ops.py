"""Functions that kernels know: mathematics, casts, loops, atomics.

Inside a kernel each is one operation, found by the identity of the function object. Outside,
those that make sense on numbers work on Python numbers, with the results of floating-point
hardware: the square root of -1 is nan and no error. The others say that they need a kernel.
"""

import builtins as _py
import math as _math

from ingot._core import IngotSyntaxError as _SyntaxError
from ingot._core import IngotTypeError as _TypeError
from ingot._core import TensorValue as _TensorValue
from ingot._core import register_intrinsic as _register


def _intrinsic(function):
    return _register(function, function.__name__)


def _elementwise(function):
    """An intrinsic of numbers that vectors and matrices take element by element."""

    def lifted(*args, **kwargs):
        for arg in args:
            if isinstance(arg, _TensorValue):
                return arg._lift(function, args, kwargs)
        return function(*args, **kwargs)

    lifted.__name__, lifted.__qualname__, lifted.__doc__ = function.__name__, function.__qualname__, function.__doc__
    lifted.__wrapped__ = function
    return _intrinsic(lifted)


def _quiet(function, *args):
    try:
        return function(*args)
    except ValueError:
        return _math.nan
    except OverflowError:
        return _math.inf


def _whole(function, x):
    """A rounding function of Python, which gives an int, as one on floats."""
    return float(function(x)) if _math.isfinite(x) else float(x)


def _as(x, dtype):
    return x if dtype is None else cast(x, dtype)


@_elementwise
def sin(x):
    """The sine of x, in radians."""
    return _quiet(_math.sin, x)


@_elementwise
def cos(x):
    """The cosine of x, in radians."""
    return _quiet(_math.cos, x)


@_elementwise
def tan(x):
    """The tangent of x, in radians."""
    return _quiet(_math.tan, x)


@_elementwise
def asin(x):
    """The arc sine of x."""
    return _quiet(_math.asin, x)


@_elementwise
def acos(x):
    """The arc cosine of x."""
    return _quiet(_math.acos, x)


@_elementwise
def atan2(y, x):
    """The angle of the point (x, y)."""
    return _math.atan2(y, x)


@_elementwise
def tanh(x):
    """The hyperbolic tangent of x."""
    return _math.tanh(x)


@_elementwise
def exp(x):
    """e to the power of x."""
    return _quiet(_math.exp, x)


@_elementwise
def log(x):
    """The natural logarithm of x."""
    return -_math.inf if x == 0 else _quiet(_math.log, x)


@_elementwise
def sinh(x):
    """The hyperbolic sine of x."""
    try:
        return _math.sinh(x)
    except OverflowError:
        return _math.copysign(_math.inf, x)


@_elementwise
def cosh(x):
    """The hyperbolic cosine of x."""
    return _quiet(_math.cosh, x)


@_elementwise
def asinh(x):
    """The inverse of sinh."""
    return _math.asinh(x)


@_elementwise
def acosh(x):
    """The inverse of cosh, from 0 on."""
    return _quiet(_math.acosh, x)


@_elementwise
def atanh(x):
    """The inverse of tanh."""
    return _math.copysign(_math.inf, x) if _py.abs(x) == 1 else _quiet(_math.atanh, x)


@_elementwise
def atan(x):
    """The arc tangent of x."""
    return _math.atan(x)


@_elementwise
def erf(x):
    """The error function: the integral of 2/sqrt(pi) exp(-t*t) from 0 to x."""
    return _math.erf(x)


@_elementwise
def erfc(x):
    """1 - erf(x), also where that is tiny."""
    return _math.erfc(x)


@_elementwise
def exp2(x):
    """2 to the power of x."""
    return _quiet(_math.pow, 2.0, x)


@_elementwise
def expm1(x):
    """exp(x) - 1, also where x is tiny."""
    return _quiet(_math.expm1, x)


@_elementwise
def log2(x):
    """The logarithm of x to base 2."""
    return -_math.inf if x == 0 else _quiet(_math.log2, x)


@_elementwise
def log10(x):
    """The logarithm of x to base 10."""
    return -_math.inf if x == 0 else _quiet(_math.log10, x)


@_elementwise
def log1p(x):
    """log(1 + x), also where x is tiny."""
    return -_math.inf if x == -1 else _quiet(_math.log1p, x)


@_elementwise
def cbrt(x):
    """The cube root of x, which has its sign."""
    if not _math.isfinite(x) or x == 0:
        return float(x)
    root = _math.copysign(_py.abs(x) ** (1 / 3), x)
    return root - (root * root * root - x) / (3 * root * root)


@_elementwise
def hypot(x, y):
    """sqrt(x*x + y*y), without overflow on the way."""
    return _math.hypot(x, y)


@_elementwise
def sqrt(x):
    """The square root of x."""
    return _quiet(_math.sqrt, x)


@_elementwise
def rsqrt(x):
    """One over the square root of x."""
    return _math.inf if x == 0 else 1.0 / _quiet(_math.sqrt, x)


@_elementwise
def floor(x, dtype=None):
    """The largest whole number that is not above x, as a float; of another type if dtype says so."""
    return _as(_whole(_math.floor, x), dtype)


@_elementwise
def ceil(x, dtype=None):
    """The smallest whole number that is not below x, as a float; of another type if dtype says so."""
    return _as(_whole(_math.ceil, x), dtype)


@_elementwise
def round(x, dtype=None):
    """The nearest whole number, halves to the even one, as a float; of another type if dtype says so."""
    return _as(_whole(_py.round, x), dtype)


@_elementwise
def trunc(x, dtype=None):
    """x without its fraction, as a float; of another type if dtype says so."""
    return _as(_whole(_math.trunc, x), dtype)


@_elementwise
def abs(x):
    """The absolute value of x."""
    return _py.abs(x)


@_elementwise
def min(*args):
    """The smallest of its arguments."""
    return _py.min(args)


@_elementwise
def max(*args):
    """The largest of its arguments."""
    return _py.max(args)


@_elementwise
def pow(base, exponent):
    """base to the power of exponent."""
    try:
        result = base**exponent
    except (OverflowError, ZeroDivisionError):
        return _math.inf
    return _math.nan if isinstance(result, complex) else result


@_elementwise
def raw_div(x, y):
    """x / y as C has it: on integers the quotient without its fraction."""
    if isinstance(x, int) and isinstance(y, int):
        quotient = _py.abs(x) // _py.abs(y)
        return quotient if (x < 0) == (y < 0) else -quotient
    return x / y


@_elementwise
def raw_mod(x, y):
    """The remainder that goes with raw_div: it has the sign of x."""
    if isinstance(x, int) and isinstance(y, int):
        return x - y * raw_div(x, y)
    return _quiet(_math.fmod, x, y)


@_intrinsic
def popcnt(x):
    """How many bits of the 32-bit integer x are set."""
    return bin(x & 0xFFFFFFFF).count("1")


@_intrinsic
def clz(x):
    """How many bits above the highest set one the 32-bit integer x has."""
    return 32 - (x & 0xFFFFFFFF).bit_length()


@_intrinsic
def ffs(x):
    """The position of the lowest set bit of the 32-bit integer x, from 1; 0 for 0."""
    x &= 0xFFFFFFFF
    return (x & -x).bit_length()


@_elementwise
def cast(x, dtype):
    """x converted to dtype."""
    return dtype(x)


@_elementwise
def zero(x):
    """Zero, of the type and shape of x."""
    return type(x)(0)


@_elementwise
def one(x):
    """One, of the type and shape of x."""
    return type(x)(1)


@_elementwise
def select(condition, x, y):
    """x where the condition holds, else y."""
    return x if condition else y


@_intrinsic
def static(x, *more):
    """x, which must be known at compile time; unrolls loops and decides branches."""
    return [x, *more] if more else x


@_intrinsic
def static_assert(condition, message=None):
    """Fails at compile time unless the condition holds."""
    if not condition:
        raise AssertionError(message) if message is not None else AssertionError


@_intrinsic
def never(why):
    """Marks a place that this machine cannot run: fails where it is reached, in debug mode or not."""
    raise RuntimeError(why)


@_intrinsic
def static_print(*args, **kwargs):
    """Prints at compile time."""
    print(*args, **kwargs)


def _bound(dim):
    """(begin, end) of one argument of ndrange; integers of NumPy count as integers."""
    import operator

    pair = (0, dim) if hasattr(dim, "__index__") else tuple(dim)
    if len(pair) != 2 or not all(hasattr(b, "__index__") for b in pair):
        raise _SyntaxError("qd.ndrange takes numbers and pairs (begin, end) of integers")
    begin, end = map(operator.index, pair)
    return begin, _py.max(begin, end)


def _permutation(axes, n):
    """The axes of ndrange, checked; None where they change nothing."""
    if axes is None:
        return None
    axes = tuple(axes)
    for axis in axes:
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise _TypeError(f"qd.ndrange(axes={axes}) entries must be Python ints; got {axis!r}")
    if len(axes) != n:
        raise _SyntaxError(
            f"qd.ndrange(axes={axes}) has {len(axes)} entries but ndrange was called with {n} "
            "dimension argument(s); they must match"
        )
    if sorted(axes) != list(range(n)):
        raise _SyntaxError(f"qd.ndrange(axes={axes}) is not a permutation of range({n})")
    return None if axes == tuple(range(n)) else axes


@_intrinsic
class ndrange:
    """All tuples of indices in the given ranges: `for i, j in qd.ndrange(n, (1, m)):`.

    axes  the order in which they are run through, outermost first
    """

    def __init__(self, *dims, axes=None):
        self.bounds = [_bound(dim) for dim in dims]
        self.dimensions = [end - begin for begin, end in self.bounds]
        self.axes = _permutation(axes, len(dims))

    def __iter__(self):
        import itertools

        order = self.axes or tuple(range(len(self.bounds)))
        where = [order.index(axis) for axis in range(len(order))]
        for index in itertools.product(*(range(*self.bounds[axis]) for axis in order)):
            yield tuple(index[k] for k in where)


@_intrinsic
def bit_shr(x, y):
    """x shifted right by y bits, zeros coming in from the left; x as a 32-bit integer."""
    result = (x & 0xFFFFFFFF) >> y
    return result - (1 << 32) if result >> 31 else result


@_intrinsic
def volatile_load(target):
    """The array element `target` as it is in memory now: for loops that wait for another thread."""
    return target


@_intrinsic
def block_local(*fields):
    """A hint for GPUs, to keep parts of the fields near; here it does nothing."""


@_intrinsic
def cache_read_only(*fields):
    """A hint for GPUs, that the fields are only read; here it does nothing."""


@_intrinsic
def assume_in_range(val, base, low, high):
    """val; a hint that it lies in [base + low, base + high), of which nothing is made here."""
    return val


@_intrinsic
def stop_grad(x):
    """From here on to the end of the block, no gradients flow through the field or array x."""


@_intrinsic
def _derives():
    """Whether what is compiled is the derivative of a kernel: for functions that know theirs."""
    return False


@_intrinsic
def bit_cast(x, dtype):
    """The bits of x as a value of another dtype of equal size."""
    import struct

    letters = {"8": "b", "16": "h", "32": "i", "64": "q", "f16": "e", "f32": "f", "f64": "d"}

    def letter(name):
        code = letters.get(name) or letters[name[1:]]
        return code.upper() if name[0] == "u" else code

    target = letter(str(dtype))
    size = struct.calcsize(target)
    source = {2: "e", 4: "f", 8: "d"} if isinstance(x, float) else {1: "b", 2: "h", 4: "i", 8: "q"}
    if isinstance(x, int) and x >> (8 * size - 1) > 0:
        source = {k: v.upper() for k, v in source.items()}
    return struct.unpack("<" + target, struct.pack("<" + source[size], x))[0]


@_intrinsic
def grouped(x):
    """Loops over index vectors in place of single indices."""
    from ingot import _core

    if _core.settings()["python"]:
        from ingot._pyarch import grouped as vectors

        return vectors(x)
    return iter(x)


@_intrinsic
def loop_config(**options):
    """Options of the loop that follows; outside of kernels it does nothing."""


_numbers = None


def _generator():
    """Numbers for kernels that run as Python, from the seed of `qd.init`."""
    global _numbers
    from ingot import _core

    seed = _core.settings()["random_seed"]
    if _numbers is None or _numbers[0] != seed:
        import random as _random

        _numbers = (seed, _random.Random(seed))
    return _numbers[1]


@_intrinsic
def random(dtype=float):
    """A random number of the dtype: in [0, 1) for floats, all bits for integers."""
    name = "f32" if dtype is float else "i32" if dtype is int else str(dtype)
    if name[0] == "f":
        return _generator().random()
    bits = int(name[1:])
    value = _generator().getrandbits(bits)
    return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value


@_intrinsic
def randn(dtype=None):
    """A random number of the standard normal distribution."""
    return _generator().gauss(0.0, 1.0)


def _atomic(name, doc, operation):
    def function(x, *values):
        from ingot import _core

        if not _core.settings()["python"]:
            raise _SyntaxError(f"qd.{name} can only be used inside a kernel or func")
        from ingot import _pyarch

        return _pyarch.update(name, x, lambda old: operation(old, *values))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return _register(function, name)


atomic_add = _atomic("atomic_add", "x += y in one step; gives the old x.", lambda x, y: x + y)
atomic_sub = _atomic("atomic_sub", "x -= y in one step; gives the old x.", lambda x, y: x - y)
atomic_mul = _atomic("atomic_mul", "x *= y in one step; gives the old x.", lambda x, y: x * y)
atomic_min = _atomic("atomic_min", "x = min(x, y) in one step; gives the old x.", _py.min)
atomic_max = _atomic("atomic_max", "x = max(x, y) in one step; gives the old x.", _py.max)
atomic_and = _atomic("atomic_and", "x &= y in one step; gives the old x.", lambda x, y: x & y)
atomic_or = _atomic("atomic_or", "x |= y in one step; gives the old x.", lambda x, y: x | y)
atomic_xor = _atomic("atomic_xor", "x ^= y in one step; gives the old x.", lambda x, y: x ^ y)
atomic_exchange = _atomic("atomic_exchange", "x = y in one step; gives the old x.", lambda x, y: y)
atomic_cas = _atomic(
    "atomic_cas",
    "x = z in one step if x equals y; gives the old x.",
    lambda x, y, z: z if x == y else x,
)
