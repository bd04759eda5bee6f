"""Kernels as plain Python, under `qd.init(arch=qd.python)`: for a debugger, and to look at values.

Kernels and funcs are called as the functions they are, on one thread, in order. Reading an array
element gives a number that remembers its place, so that `qd.atomic_add(a[i], 1)` can write there.
Only imported in that mode.
"""

import itertools

from ingot import _core


class _IntCell(int):
    """An integer that was read from `_place`: (array, index)."""


class _FloatCell(float):
    """A float that was read from `_place`: (array, index)."""


def cell(value, array, key):
    """`value`, read at array[key], as a number that knows that."""
    kind = _FloatCell if isinstance(value, float) else _IntCell
    if not isinstance(value, (bool, int, float)):
        return value
    number = kind(value)
    number._place = (array, key)
    return number


def indices(array):
    """What `for i in array` runs over in kernels: indices, or tuples of them."""
    shape = tuple(array.shape)
    ranges = [range(first, first + n) for first, n in zip(getattr(array, "offset", (0,) * len(shape)), shape)]
    return iter(ranges[0]) if len(ranges) == 1 else itertools.product(*ranges)


class _View:
    """A NumPy or torch array as kernels see it."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, key):
        return cell(self._array[key].item(), self, key)

    def __setitem__(self, key, value):
        self._array[key] = value

    def __iter__(self):
        return indices(self)

    def __len__(self):
        return len(self._array)

    @property
    def shape(self):
        return tuple(self._array.shape)

    @property
    def dtype(self):
        return getattr(_core, str(self._array.dtype).rpartition(".")[2].replace("bool", "u1"))


def _seen(value):
    """An argument as the kernel's body sees it."""
    foreign = hasattr(value, "__array_interface__") or type(value).__module__ == "torch"
    array = foreign and not isinstance(value, _core.Ndarray) and hasattr(value, "shape")
    return _View(value) if array and value.shape != () else value


def run(fn, args, kwargs):
    """Calls the function of a kernel."""
    return fn(*map(_seen, args), **{name: _seen(value) for name, value in kwargs.items()})


def _wrapped(value, dtype):
    """`value` as an element of the dtype: integers wrap."""
    name = str(dtype)
    if name[0] == "f" or name == "u1":
        return value
    bits = int(name[1:])
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value


def update(name, target, new):
    """Writes new(old) where `target` was read; gives the old value."""
    if not hasattr(target, "_place"):
        raise _core.IngotSyntaxError(
            f"cannot use a non-writable target as the first operand of '{name}': with "
            "arch=qd.python it must be an array element"
        )
    array, key = target._place
    old = array[key]
    array[key] = _wrapped(new(old), array.dtype)
    return old
