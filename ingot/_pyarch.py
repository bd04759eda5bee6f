"""Kernels as plain Python, under `qd.init(arch=qd.python)`: for a debugger, and to look at values.

Kernels and funcs are called as the functions they are, on one thread, in order. Reading an array
element gives a number that remembers its place, so that `qd.atomic_add(a[i], 1)` can write there.
Only imported in that mode.
"""

import inspect
import itertools

from ingot import _core


class _IntCell(int):
    """An integer that was read from `_place`: (array, index)."""

    def item(self):
        """As a plain number."""
        return int(self)


class _FloatCell(float):
    """A float that was read from `_place`: (array, index)."""

    def item(self):
        """As a plain number."""
        return float(self)


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


class _Indices(tuple):
    """What `qd.grouped` gives: a vector that is also an index."""

    def __getattr__(self, name):
        from ingot._matrix import Vector

        return getattr(Vector(list(self)), name)


def _through_vector(name):
    def operator(self, *others):
        from ingot._matrix import Vector

        plain = [Vector(list(x)) if isinstance(x, _Indices) else x for x in (self, *others)]
        made = getattr(plain[0], name)(*plain[1:])
        whole = isinstance(made, Vector) and all(type(x) is int for x in made.to_list())
        return _Indices(made.to_list()) if whole else made

    operator.__name__ = name
    return operator


for _name in "add sub mul floordiv mod and or xor lshift rshift truediv pow".split():
    for _side in (f"__{_name}__", f"__r{_name}__"):
        setattr(_Indices, _side, _through_vector(_side))
for _name in "__neg__ __abs__ __invert__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__".split():
    setattr(_Indices, _name, _through_vector(_name))


def grouped(places):
    """Indices, or tuples of them, as vectors."""
    return (_Indices(at if isinstance(at, tuple) else (at,)) for at in iter(places))


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


def _is_foreign(value):
    foreign = hasattr(value, "__array_interface__") or type(value).__module__ == "torch"
    return foreign and not isinstance(value, _core.Ndarray) and hasattr(value, "shape") and value.shape != ()


def _annotations(fn):
    """By name, in order; those that cannot be evaluated as they are written."""
    try:
        parameters = inspect.signature(fn, eval_str=True).parameters
    except Exception:
        parameters = inspect.signature(fn).parameters
    return {name: p.annotation for name, p in parameters.items()}


def _with_elements(array, rank):
    """An ndarray of vectors or matrices with the numbers of an array of another library."""
    import ingot

    make = ingot.types.vector if rank == 1 else ingot.types.matrix
    dtype = make(*map(int, array.shape[-rank:]), _View(array).dtype)
    copy = ingot.ndarray(dtype, tuple(array.shape[:-rank]))
    (copy.from_torch if type(array).__module__ == "torch" else copy.from_numpy)(array)
    return copy


def _bring_back(array, copy):
    if type(array).__module__ == "torch":
        array.copy_(copy.to_torch())
    elif array.flags.writeable:
        array[...] = copy.to_numpy()


class _Arguments:
    """Arguments as the kernel's body sees them; arrays whose elements are vectors or matrices are
    copied, and brought back at the end."""

    def __init__(self):
        self.copies = {}  # id -> (array, copy); one array given twice stays one

    def seen(self, value, annotation):
        if not _is_foreign(value):
            return value
        rank = getattr(getattr(annotation, "dtype", None), "ndim", 0)
        if rank not in (1, 2) or len(value.shape) <= rank:
            return _View(value)
        if id(value) not in self.copies:
            self.copies[id(value)] = (value, _with_elements(value, rank))
        return self.copies[id(value)][1]


def run(fn, args, kwargs):
    """Calls the function of a kernel."""
    known, arguments = _annotations(fn), _Arguments()
    if "qd_stream" in kwargs and "qd_stream" not in fn.__code__.co_varnames[:fn.__code__.co_argcount
                                                                            + fn.__code__.co_kwonlyargcount]:
        from ingot._streams import check_launch

        check_launch(kwargs.pop("qd_stream"), None)
    kinds = itertools.chain(known.values(), itertools.repeat(None))
    try:
        return fn(*map(arguments.seen, args, kinds),
                  **{name: arguments.seen(value, known.get(name)) for name, value in kwargs.items()})
    finally:
        for array, copy in arguments.copies.values():
            _bring_back(array, copy)


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
