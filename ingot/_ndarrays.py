"""The reference's classes of ndarrays, by what their elements are.

There is one type of arrays, `qd.Ndarray`. These classes exist for `isinstance`; called, they make
an array, and their attributes are those of `Ndarray`. An array of structs is made of others.
"""

from ingot._core import Ndarray, StructsBase, TensorType, _structs, ndarray
from ingot._matrix import MatrixType, VectorType
from ingot._struct import Struct, StructType, element_of


class _Kind(type):
    def __instancecheck__(cls, instance):
        if not isinstance(instance, Ndarray):
            return False
        return cls._element_rank is None or len(instance.element_shape) == cls._element_rank

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Ndarray, name)

    def __dir__(cls):
        return dir(Ndarray)


class ScalarNdarray(metaclass=_Kind):
    """An ndarray of numbers: `ScalarNdarray(dtype, shape)`."""

    _element_rank = 0

    def __new__(cls, dtype, arr_shape):
        return ndarray(dtype, arr_shape)


class VectorNdarray(metaclass=_Kind):
    """An ndarray of vectors: `VectorNdarray(n, dtype, shape)`."""

    _element_rank = 1

    def __new__(cls, n, dtype, shape):
        return ndarray(VectorType(n, dtype), shape)


class MatrixNdarray(metaclass=_Kind):
    """An ndarray of matrices: `MatrixNdarray(n, m, dtype, shape)`."""

    _element_rank = 2

    def __new__(cls, n, m, dtype, shape):
        return ndarray(MatrixType(n, m, dtype), shape)


class NdarrayTypeMetadata:
    """What the reference says of an array's type: see `Ndarray.get_type`."""

    __slots__ = ("element_type", "shape", "needs_grad")

    def __init__(self, element_type, shape=None, needs_grad=False):
        self.element_type = element_type
        self.shape = shape
        self.needs_grad = needs_grad

    def __repr__(self):
        return f"NdarrayTypeMetadata({self.element_type}, {self.shape}, needs_grad={self.needs_grad})"


def get_type(array):
    """Element type, shape in memory and gradient of an array."""
    order = array.layout or range(array.ndim)
    return NdarrayTypeMetadata(array.element_type, tuple(array.shape[k] for k in order), array.has_grad())


def from_numpy(source, needs_grad=False):
    """An ndarray with the elements and the shape of a NumPy array, which is copied."""
    import numpy as np

    if not isinstance(source, np.ndarray):
        raise TypeError(f"qd.from_numpy takes a numpy.ndarray, got {type(source).__name__!r}: use np.asarray(x)")
    array = ndarray(source.dtype.type, source.shape, needs_grad)
    array.from_numpy(source)
    return array


class StructNdarray(StructsBase):
    """An ndarray of structs, `qd.ndarray(S, shape)`: an ndarray per member, under the member's name.

    The numbers of one member lie together, those of different members apart.
    """

    def __new__(cls, element_type, members):
        first = next(iter(members.values()), None)
        made = _structs(cls, element_type, first.ndim)
        vars(made).update(members, field_dict=dict(members), struct_methods=dict(element_type.methods))
        return made

    def __init__(self, *args):
        pass

    @property
    def _members(self):
        return self.field_dict.values()

    @property
    def _items(self):
        return self.field_dict.items()

    @property
    def keys(self):
        """The names of the members."""
        return list(self.field_dict)

    @property
    def shape(self):
        """The extents, as a tuple."""
        return next(iter(self._members)).shape

    @property
    def size(self):
        """The number of elements."""
        return next(iter(self._members)).size

    @property
    def nbytes(self):
        """The bytes of all members."""
        return sum(member.nbytes for member in self._members)

    @property
    def layout(self):
        """The order of the axes in memory; None: as written."""
        return next(iter(self._members)).layout

    @property
    def grad(self):
        """The array of the gradients, of those members that have one; or None."""
        if "_grad" not in vars(self):
            grads = {name: member.grad for name, member in self._items if member.grad is not None}
            kinds = {name: member.element_type for name, member in grads.items()}
            vars(self)["_grad"] = StructNdarray(StructType(**kinds), grads) if grads else None
        return vars(self)["_grad"]

    def has_grad(self):
        """Has a member a gradient?"""
        return self.grad is not None

    def get_member_field(self, key):
        """The ndarray of one member."""
        return self.field_dict[key]

    def fill(self, value):
        """Sets every number of every element, or every element to a struct or dict."""
        entries = self._entries_of(value) if isinstance(value, (dict, Struct)) else None
        for name, member in self._items:
            member.fill(entries[name] if entries else value)

    def copy_from(self, other):
        """Copies all elements of an array of equal shape with the same members."""
        if not isinstance(other, StructNdarray) or other.element_type != self.element_type:
            raise TypeError(f"an array of {self.element_type} is expected, got {type(other).__name__!r}")
        for name, member in self._items:
            member.copy_from(other.field_dict[name])

    def copy(self):
        """A new array with the same elements."""
        return StructNdarray(self.element_type, {name: member.copy() for name, member in self._items})

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def to_numpy(self, *, copy=True):
        """A structured NumPy array, a copy: `a.to_numpy()["mass"]`."""
        if not copy:
            raise ValueError("the members of an ndarray of structs lie apart: view one, a.mass.to_numpy(copy=False)")
        import numpy as np

        out = np.empty(self.shape, numpy_dtype(self.element_type))
        for name, member in self._items:
            out[name] = member.to_numpy()
        return out

    def from_numpy(self, source):
        """Loads all elements from a structured array, or from a dict of arrays."""
        names = list(source) if isinstance(source, dict) else getattr(getattr(source, "dtype", None), "names", None)
        if names is None or set(names) != set(self.field_dict):
            raise TypeError(
                f"from_numpy: a structured array or a dict with the members {self.keys} is expected, got "
                f"{list(names) if names else type(source).__name__}")
        import numpy as np

        for name, member in self._items:
            part = source[name]
            nested = isinstance(member, StructNdarray)
            member.from_numpy(part if nested else np.ascontiguousarray(part))

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("the members of an ndarray of structs lie apart: NumPy gets a copy")
        made = self.to_numpy()
        return made if dtype is None else made.astype(dtype)

    def to_torch(self, device=None):
        """A dict of torch tensors, one per member."""
        return {name: member.to_torch(device=device) for name, member in self._items}

    def from_torch(self, tensors):
        """Loads all members from a dict of torch tensors."""
        for name, member in self._items:
            member.from_torch(tensors[name])

    def tolist(self):
        """The elements as dicts, in nested lists."""
        return _lists(self, self.shape, ())

    @property
    def _content(self):
        """What `Content` of it is the fingerprint of."""
        from ingot.fingerprint import Content

        return "ndarray of structs", self.element_type, {name: Content(member) for name, member in self._items}

    def _entries_of(self, value):
        entries = value if isinstance(value, dict) else getattr(value, "_entries", None)
        if entries is None or entries.keys() != self.field_dict.keys():
            given = list(entries) if entries is not None else type(value).__name__
            raise TypeError(f"a struct or dict with the members {self.keys} is expected, got {given}")
        return entries

    def __getitem__(self, key):
        return element_of(self, key)

    def __setitem__(self, key, value):
        entries = self._entries_of(value)
        at = {name: member[key] for name, member in self._items}  # an index that is wrong stores nothing
        try:
            for name, member in self._items:
                member[key] = entries[name]
        except BaseException:  # nor does a value that does not fit
            for name, member in self._items:
                member[key] = at[name]
            raise

    def __setattr__(self, name, value):
        hint = f": load it, a.{name}.copy_from(...)" if name in self.field_dict else ""
        raise AttributeError(f"the members of an ndarray of structs are fixed{hint}")

    def __len__(self):
        return len(next(iter(self._members)))

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        inner = ", ".join(f"{name}: {kind}" for name, kind in self.element_type.members.items())
        return f"qd.ndarray struct({inner}) {self.shape!r}\n{self.to_numpy()}"

    def _repr_html_(self):
        from ingot import _html

        return _html._repr_html_(self)

    def __reduce__(self):
        return StructNdarray, (self.element_type, self.field_dict)


def _lists(array, shape, at):
    if not shape:
        return array[at].to_dict()
    return [_lists(array, shape[1:], (*at, k)) for k in range(shape[0])]


def numpy_dtype(kind):
    """The NumPy dtype of a struct type: its members as they are written, without gaps."""
    import numpy as np

    if isinstance(kind, StructType):
        return np.dtype([(name, numpy_dtype(member)) for name, member in kind.members.items()])
    scalar = np.dtype(_NUMPY.get(str(kind.dtype if isinstance(kind, TensorType) else kind)))
    return np.dtype((scalar, tuple(kind.get_shape()))) if isinstance(kind, TensorType) else scalar


_NUMPY = {f"{k}{8 * n}": f"{k}{n}" for k in "iuf" for n in (1, 2, 4, 8)} | {"u1": "?"}


def struct_ndarray(kind, shape, needs_grad=False, layout=None):
    """`qd.ndarray` of a struct type."""
    if not kind.members:
        raise TypeError("qd.ndarray: a struct without members has no elements to store")
    return StructNdarray(kind, {name: _one(member, shape, needs_grad, layout) for name, member in kind.members.items()})


def _one(kind, shape, needs_grad, layout):
    if isinstance(kind, StructType):
        return struct_ndarray(kind, shape, needs_grad, layout)
    number = kind.dtype if isinstance(kind, TensorType) else kind
    return ndarray(kind, shape, needs_grad and str(number).startswith("f"), layout)
