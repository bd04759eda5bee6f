"""Structs in Python, and their types.

A struct type has named members: numbers, vectors, matrices and other structs. It is immutable;
kernels know it by its members and find its methods in it. A host struct holds Python numbers,
`qd.Vector` and `qd.Matrix` under those names. Kernels take it as an argument, by value, or as a
constant when it is captured, and make structs of their own.
"""

import sys

from ingot._core import (
    IngotAttributeError,
    IngotSyntaxError,
    IngotTypeError,
    StructType as _StructType,
    StructValue,
    TensorType,
    _struct_type,
    _struct_value,
    register_intrinsic,
)
from ingot._matrix import Matrix, _convert, _dtype, _is_number

_METHODS = "__struct_methods"
_BoundMethod = type(Matrix([0]).sum)  # types.MethodType without one more module to load


class Struct(StructValue):
    """A struct: `qd.Struct(x=1, v=[1.0, 2.0])` or `qd.Struct({"x": 1})`. Members are attributes."""

    def __new__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], (dict, Struct)):
            given = dict(args[0]._entries if isinstance(args[0], Struct) else args[0])
        elif not args:
            given = kwargs
        else:
            raise IngotSyntaxError(
                "Custom structs need to be initialized using either dictionary or keyword arguments")
        methods = dict(given.pop(_METHODS, {}))
        given.pop("__matrix_ndim", None)
        return _struct_value(Struct, {k: _member(k, v) for k, v in given.items()}, methods, None)

    def __init__(self, *args, **kwargs):
        pass

    # A member may have any name, also one of these.

    @property
    def keys(self):
        """The names of the members."""
        return self._entries["keys"] if "keys" in self._entries else list(self._entries)

    @property
    def items(self):
        """The members: pairs of name and value."""
        return self._entries["items"] if "items" in self._entries else self._entries.items()

    @property
    def entries(self):
        """The members, by name."""
        return self._entries["entries"] if "entries" in self._entries else self._entries

    @property
    def methods(self):
        """The methods, by name."""
        return self._entries["methods"] if "methods" in self._entries else dict(self._methods)

    def __getattr__(self, name):
        entries = self._entries
        if name in entries:
            return entries[name]
        if name in self._methods:
            return _BoundMethod(self._methods[name], self)
        raise AttributeError(f"the struct has no member '{name}'; its members are {list(entries)}")

    def __setattr__(self, name, value):
        if name not in self._entries:
            raise AttributeError(f"the struct has no member '{name}'; its members are {list(self._entries)}")
        self[name] = value

    def __getitem__(self, name):
        if name in self._entries:
            return self._entries[name]
        return self._methods[name]

    def __setitem__(self, name, value):
        old = self._entries[name]
        if isinstance(old, Struct):
            if not isinstance(value, (dict, Struct)):
                raise TypeError(f"a struct is expected for the member '{name}'")
            for key in old._entries:
                old[key] = value[key]
        elif isinstance(old, Matrix):
            new = Matrix(value, old._dtype)
            if new.get_shape() != old.get_shape():
                raise TypeError(f"the member '{name}' has shape {old.get_shape()}, this has {new.get_shape()}")
            old._entries[:] = new._entries
        elif not _is_number(value):
            raise TypeError(
                f"A number is expected when assigning struct members; '{name}' is given a {type(value).__name__!r}")
        else:
            kind = None if self._type is None else self._type.members[name]
            self._entries[name] = value if kind is None else _number(kind, value, cut=False)

    @classmethod
    def field(cls, members, methods=None, shape=None, name="<Struct>", offset=None, needs_grad=False,
              needs_dual=False, layout=None):
        """A field whose elements are structs with these members."""
        from ingot._fields import struct_field

        return struct_field(members, methods or {}, shape, name, offset, needs_grad, needs_dual, layout)

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        return iter(self._entries.values())

    def __repr__(self):
        return str(self.to_dict())

    __str__ = __repr__

    def to_dict(self, include_methods=False, include_ndim=False):
        """The members as a dict; structs in it are dicts, vectors and matrices are lists."""
        found = {}
        for name, value in self._entries.items():
            if isinstance(value, Struct):
                value = value.to_dict(include_methods, include_ndim)
            found[name] = value.to_list() if isinstance(value, Matrix) else value
        if include_methods:
            found[_METHODS] = dict(self._methods)
        if include_ndim:
            found["__matrix_ndim"] = {k: v.ndim for k, v in self._entries.items() if isinstance(v, Matrix)}
        return found

    def __copy__(self):
        return _struct_value(Struct, {k: _copied(v) for k, v in self._entries.items()}, self._methods, self._type)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        if self._type is not None:
            return _restore, (self._type, self._entries)
        return Struct, ({**self._entries, _METHODS: dict(self._methods)},)


class _Element(Struct):
    """An element of a field of structs, which writes through: f[i].x = 1."""

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        if not isinstance(self._entries[name], _Element):  # that one has done so
            field, key = self.__dict__["_source"]
            field.get_member_field(name)[key] = value


def element_of(field, key):
    """field[key] of a field of structs."""
    entries = {name: member[key] for name, member in field._items}
    made = _struct_value(_Element, entries, field.struct_methods, None)
    made.__dict__["_source"] = field, key
    return made


def _restore(kind, entries):
    return kind(**entries)


def _copied(value):
    return value.__copy__() if isinstance(value, (Struct, Matrix)) else value


def _member(name, value):
    if isinstance(value, Struct):
        return value
    if isinstance(value, dict):
        return Struct(value)
    if isinstance(value, Matrix) or _is_number(value):
        return value
    if isinstance(value, (list, tuple)) or (hasattr(value, "tolist") and _is_host_array(value)):
        return Matrix(value)
    _refuse_array(name, value)
    raise IngotTypeError(f"the member '{name}' of a struct is {value!r}: use a number, a vector or a struct")


def _is_host_array(value):
    return type(value).__module__ == "numpy"


def _refuse_array(name, value):
    """An array, or the annotation of one, cannot be in a struct: it would not lie in it."""
    what = value if isinstance(value, type) else type(value)
    kind = getattr(value, "_ingot_passing", None)
    if kind in ("ndarray", "tensor") or hasattr(what, "to_numpy") and not issubclass(what, (Matrix, Struct)):
        raise IngotTypeError(
            f"the member '{name}' of a struct is an array: a struct holds numbers, vectors, matrices and structs. "
            "Pass the array as an argument of its own, or use a dataclasses.dataclass")


class StructType(_StructType):
    """The type of structs with these members: an annotation, and a constructor."""

    def __new__(cls, /, **members):
        methods = members.pop(_METHODS, {})
        for name, kind in members.items():
            if getattr(kind, "unpacked", False):
                _refuse_collision(name, kind, members)
            if not isinstance(kind, (TensorType, _StructType)):
                _refuse_array(name, kind)
        return _struct_type(StructType, members, dict(methods))

    def __init__(self, /, **members):
        pass

    def __setattr__(self, name, value):
        """Kernels would go on with what the type was made with, and so would its values in Python."""
        if name in self.members or name in self.methods:
            kind = "member" if name in self.members else "method"
            raise IngotAttributeError(
                f"the {kind} '{name}' of a struct type stays as it is: make another type, with a class of its own")
        super().__setattr__(name, value)

    def __call__(self, *args, **kwargs):
        names = list(self.members)
        if len(args) == 1 and not kwargs and isinstance(args[0], (dict, Struct)):
            if not names or not isinstance(self.members[names[0]], StructType):
                return self.cast(args[0])
        if len(args) > len(names):
            raise IngotSyntaxError(f"a struct of {len(names)} members from {len(args)} values; they are {names}")
        for name in kwargs:
            if name not in self.members or name in names[:len(args)]:
                twice = "is given twice" if name in self.members else "does not exist"
                raise IngotSyntaxError(f"the member '{name}' {twice}; the struct has {names}")
        given = dict(zip(names, args)) | kwargs
        return self._new({
            name: _converted(kind, given[name]) if name in given else _zero(kind)
            for name, kind in self.members.items()
        })

    def _new(self, entries):
        return _struct_value(Struct, entries, self.methods, self)

    def cast(self, value):
        """A struct of this type with the members of another one, or of a dict."""
        entries = value._entries if isinstance(value, Struct) else value
        if entries.keys() != self.members.keys():
            raise IngotSyntaxError(
                f"Incompatible arguments for custom struct members! {list(self.members)}, {list(entries)}")
        return self._new({name: _converted(kind, entries[name]) for name, kind in self.members.items()})

    def filled_with_scalar(self, value):
        """A struct of this type whose numbers all are `value`."""
        return self._new({
            name: kind.filled_with_scalar(value) if isinstance(kind, StructType) else _converted(kind, value)
            for name, kind in self.members.items()
        })

    def field(self, shape=None, **options):
        """A field whose elements are structs of this type: see `qd.Struct.field`."""
        from ingot._fields import struct_field

        return struct_field(self.members, self.methods, shape, **options)

    def ndarray(self, shape, **options):
        """An ndarray whose elements are structs of this type: `qd.ndarray(S, shape)`."""
        from ingot._ndarrays import struct_ndarray

        return struct_ndarray(self, shape, **options)

    def _from_numbers(self, numbers):
        """What a kernel returns: the numbers of all members in a row. Takes them from the list."""
        numbers.reverse()
        return self._take(numbers)

    def _take(self, numbers):
        entries = {}
        for name, kind in self.members.items():
            if isinstance(kind, StructType):
                entries[name] = kind._take(numbers)
            elif isinstance(kind, TensorType):
                entries[name] = kind._packed([numbers.pop() for _ in range(kind.n * kind.m)])
            else:
                entries[name] = numbers.pop()
        return self._new(entries)

    def __instancecheck__(self, value):
        if not isinstance(value, Struct):
            return False
        if value._type is not None:
            return value._type == self
        return list(value._entries) == list(self.members) and all(
            _fits(kind, value._entries[name]) for name, kind in self.members.items())

    def __eq__(self, other):
        if not isinstance(other, StructType):
            return NotImplemented
        return list(self.members.items()) == list(other.members.items())

    def __hash__(self):
        return hash(tuple(self.members.items()))

    def __reduce__(self):
        return _type_of, (dict(self.members), dict(self.methods))

    def __repr__(self):
        parts = [f"{name}={kind}" for name, kind in self.members.items()]
        return f"<qd.StructType {', '.join([*parts, f'struct_methods={dict(self.methods)}'])}>"

    __str__ = __repr__


def _type_of(members, methods):
    return StructType(**members, **{_METHODS: methods})


def _refuse_collision(name, kind, members):
    """The reference keeps the elements of an unpacked vector under names of their own."""
    for k in range(kind.n):
        if f"_{name}{k}" in members:
            raise IngotSyntaxError(
                f"the member '_{name}{k}' collides with element {k} of the unpacked vector '{name}'")


def _zero(kind):
    return kind() if isinstance(kind, StructType) else _converted(kind, 0)


def _converted(kind, value):
    if isinstance(kind, StructType):
        return kind.cast(value) if isinstance(value, (dict, Struct)) else kind(value)
    if isinstance(kind, TensorType):
        return kind._packed_from(value)
    if isinstance(value, (Struct, dict, list, tuple)):
        raise IngotTypeError(f"a number is expected for a member of type {kind}, this is {value!r}")
    return _number(kind, value, cut=True)


def _number(kind, value, *, cut):
    """value as a member: an integer must fit; floats are rounded when they come to a kernel or into a field."""
    made = _convert(value, _dtype(kind), cut=cut)
    return float(value) if isinstance(made, float) else made


def _fits(kind, value):
    if isinstance(kind, StructType):
        return isinstance(value, kind)
    if isinstance(kind, TensorType):
        return isinstance(value, Matrix) and value.get_shape() == kind.get_shape()
    return _is_number(value)


def dataclass(cls):
    """Makes a struct type of a class: its annotations are the members, its methods those of the structs.

        @qd.dataclass
        class Sphere:
            center: qd.math.vec3
            radius: qd.f32

            @qd.func
            def volume(self):
                return 4 / 3 * qd.math.pi * self.radius**3
    """
    members = _annotations(cls)
    for name in members:
        if hasattr(cls, name):
            raise IngotSyntaxError("Default value in @dataclass is not supported."
                                   f" Give it where a struct is made: {cls.__name__}({name}=...)")
    values = [name for name, value in vars(cls).items() if not name.startswith("__") and not callable(value)]
    if values and not members:
        raise IngotSyntaxError(f"the struct {cls.__name__} has no member: members have a type, {values[0]}: qd.f32")
    methods = {
        name: getattr(cls, name)
        for name in dir(cls)
        if not name.startswith("__") and callable(getattr(cls, name))
    }
    return StructType(**members, **{_METHODS: methods})


def _annotations(cls):
    """Those of the class alone; texts are evaluated in its module."""
    found = dict(cls.__annotations__)
    names = vars(sys.modules.get(cls.__module__, object))
    return {name: eval(kind, dict(names)) if isinstance(kind, str) else kind for name, kind in found.items()}


register_intrinsic(Struct, "Struct")
