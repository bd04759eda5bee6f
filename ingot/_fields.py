"""Dense fields: making them, and their conversions.

A field is an object of C (src/py/array/field.h); this file checks what `qd.field` and its kin are
given. Trees of fields are in _snode.py. The methods that convert fields to and from NumPy and
torch end here.
"""

from ingot._core import (
    Field,
    IngotRuntimeError,
    IngotSyntaxError,
    MatrixField,
    TensorType,
    _dense_field,
    _new_field,
    settings,
)


AOS, SOA = 1, 2  # members of qd.Layout, which they equal

# The axes of a tree of fields, by name; `qd.axes` has the others.
i, j, k, l = (0,), (1,), (2,), (3,)  # noqa: E741: their names
ij, ik, il, jk, jl, kl = (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
ijk, ijl, ikl, jkl = (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)
ijkl = (0, 1, 2, 3)


# ---- making ----


def _numbers(value):
    """A tuple of one number or of several."""
    return tuple(value) if hasattr(value, "__len__") else (value,)


def _axes_of(order, ndim):
    """order="ji" as numbers of axes, outermost first."""
    if order is None:
        return None
    if not isinstance(order, str):
        raise IngotSyntaxError(f"order is a string of axes, such as \"ji\", got {order!r}")
    if len(order) != ndim:
        raise IngotSyntaxError(
            f"The dimensionality of shape and order must be the same ({ndim} != {len(order)})")
    if len(set(order)) != ndim:
        raise IngotSyntaxError("The axes in order must be different")
    for letter in order:
        if not 0 <= ord(letter) - ord("i") < ndim:
            raise IngotSyntaxError(f"Invalid axis {letter}")
    return tuple(ord(letter) - ord("i") for letter in order)


def _check_placing(shape, order, offset):
    """(shape, axes, offset) of a field that is made with its shape; None: it is made without."""
    if shape is None:
        for name, value in (("offset", offset), ("order", order)):
            if value is not None:
                raise IngotSyntaxError(f"shape cannot be None when {name} is set")
        return None
    shape = _numbers(shape)
    if offset is not None:
        offset = _numbers(offset)
        if len(offset) != len(shape):
            raise IngotSyntaxError(
                f"The dimensionality of shape and offset must be the same ({len(shape)} != {len(offset)})")
    return shape, _axes_of(order, len(shape)), offset


def _check_layout(layout):
    if layout is not None and layout != AOS and layout != SOA:
        raise IngotRuntimeError(f"layout is qd.Layout.AOS or qd.Layout.SOA, got {layout!r}")


def _check_real(kind, needs_grad, needs_dual):
    kinds = kind if isinstance(kind, (list, tuple)) else [kind]
    for one in kinds:
        dtype = one.dtype if isinstance(one, TensorType) else one
        if dtype is not float and str(dtype).rpartition(".")[2][0] != "f":
            raise IngotRuntimeError(
                f"{kind} is not supported for field with `needs_grad=True` or `needs_dual=True`: gradients are floats, "
                "such as qd.f32")


def _wanted(needs_grad, needs_dual):
    return [which for which, needed in (("grad", needs_grad), ("dual", needs_dual)) if needed]


def field(dtype, shape=None, order=None, name="", offset=None, needs_grad=False, needs_dual=False, **options):
    """A field: elements in memory that kernels work on, captured or as arguments.

    dtype       of the elements; a vector or matrix type makes a field of those
    shape       its extents; () has one element, f[None]. Without it the field is placed in a tree:
                `qd.root.dense(qd.ij, (4, 8)).place(f)`
    order       axes in memory, outermost first: "ji" is column major
    offset      the index of the first element
    needs_grad  with a field of gradients, `.grad`
    needs_dual  with a field for forward mode, `.dual`
    layout      of vectors and matrices: qd.Layout.AOS (together) or qd.Layout.SOA (one array per scalar)
    """
    if isinstance(dtype, TensorType):
        return matrix_field(dtype.ndim, dtype.n, dtype.m, dtype.dtype, shape, order, name, offset,
                            needs_grad, needs_dual, **options)
    if options:
        from ingot._absent import no_option

        raise no_option("qd.field", options, ("dtype", "shape", "order", "name", "offset", "needs_grad", "needs_dual"))
    return _together(dtype, shape, order, name, offset, needs_grad, needs_dual)


def _together(kind, shape, order, name, offset, needs_grad, needs_dual):
    """A field of scalars, or of vectors or matrices whose scalars lie together."""
    if shape is None and order is None and offset is None and settings()["python"]:
        shape = ()  # no tree places fields of plain Python
    placing = _check_placing(shape, order, offset)
    if not (needs_grad or needs_dual):
        if placing is None:
            return _expect(_new_field(kind, name), ())
        return _dense_field(kind, *placing, name)
    _check_real(kind, needs_grad, needs_dual)
    wanted = _wanted(needs_grad, needs_dual)
    if placing is None:
        return _expect(_new_field(kind, name), wanted)
    made = _dense_field(kind, *placing, name)
    for which in wanted:
        _give(made, which, _dense_field(kind, *placing, f"{name}.{which}", True))
    return made


def matrix_field(ndim, n, m, dtype, shape=None, order=None, name="", offset=None, needs_grad=False,
                 needs_dual=False, layout=None):
    """`qd.Vector.field` and `qd.Matrix.field`."""
    from ingot._matrix import MatrixType, VectorType

    _check_layout(layout)
    dtypes = _dtypes(ndim, n, m, dtype)
    first = dtype if dtypes is None else dtypes[0]
    kind = VectorType(n, first) if ndim == 1 else MatrixType(n, m, first)
    if dtypes is None and (layout is None or layout == AOS):
        return _together(kind, shape, order, name, offset, needs_grad, needs_dual)
    placing = _check_placing(shape, order, offset)
    dtypes = dtypes or [kind.dtype] * (n * m)
    if needs_grad or needs_dual:
        _check_real(dtypes, needs_grad, needs_dual)
    made = _new_field(kind, name)
    made._parts = tuple(_new_field(one, name) for one in dtypes)
    wanted = _wanted(needs_grad, needs_dual)
    if placing is None:
        return _expect(made, wanted)
    for one in (made, *(getattr(made, which) for which in wanted)):
        _place_in_block([[p] for p in one._parts] if layout == SOA else [one._parts], *placing)
    return made


def _dtypes(ndim, n, m, dtype):
    """The dtype of each scalar where they are given one by one, else None."""
    if hasattr(dtype, "tolist"):
        dtype = dtype.tolist()
    if not isinstance(dtype, (list, tuple)):
        return None
    nested = bool(dtype) and all(isinstance(row, (list, tuple)) for row in dtype)
    rows = [list(row) for row in dtype] if nested else None
    flat = [one for row in rows for one in row] if rows is not None else list(dtype)
    if len(flat) != n * m or (rows is None and m != 1) or (rows is not None and len(rows) != n):
        shape = (n,) if m == 1 else (n, m)
        raise AssertionError(f"Please set correct dtype list: its shape should be {shape}")
    return flat


def _place_in_block(groups, shape, axes, offset):
    """Places fields in one block: those of a group side by side in cells of this shape."""
    from ingot._snode import root

    top = root.dense((), ())
    for group in groups:
        node = top
        if axes is None:
            node = top.dense(tuple(range(len(shape))), shape) if shape else top
        else:
            for axis in axes:
                node = node.dense((axis,), (shape[axis],))
        node.place(*group, offset=offset)
    top._settle()


def _companion(field, which, placed):
    """The gradient or dual of a real field; kept by the field."""
    name = f"{field.name}.{which}"
    if placed:
        made = _dense_field(field.element_type, field.shape, field.layout, field.offset, name, True)
    else:
        made = _new_field(field.element_type, name, True)
    if field.element_shape and field._parts is not None:
        made._parts = tuple(getattr(part, which) for part in field._parts)
    return _give(field, which, made)


_given = {"grad": [], "dual": []}  # weak references to the gradients and duals that were made


def _give(field, which, other):
    """Makes `other` the gradient or dual of a field; returns it."""
    import weakref

    known = _given[which]
    if len(known) % 1000 == 999:
        known[:] = [ref for ref in known if ref() is not None]
    known.append(weakref.ref(other))
    setattr(field, which, other)
    return other


def _all_companions(which):
    """The gradients or duals that exist and hold numbers themselves."""
    found = [ref() for ref in _given[which]]
    return [f for f in found if f is not None and getattr(f, "_parts", None) is None and _is_placed(f) and f._exists]


# ---- what must be placed before a kernel runs ----

NEED = "require"
_expected = []  # (weak reference to a field, which of its companions must be placed)


def _expect(field, wanted):
    """Makes the next look-up of a kernel check that the field is placed; returns the field."""
    import weakref

    if len(_expected) % 1000 == 999:
        _expected[:] = [entry for entry in _expected if entry[0]() is not None]
    _expected.append((weakref.ref(field), tuple(wanted)))
    return field


def _is_placed(field):
    if isinstance(field, MatrixField) and field._parts is not None:
        return all(map(_is_placed, field._parts))
    return field._node is not None or field._levels is not None


def _check_all_placed():
    """Raises if a field that somebody has, or a companion that it needs, has no place."""
    fields = [(ref(), wanted) for ref, wanted in _expected]
    lacking = [field for field, _ in fields if field is not None and not _is_placed(field)]
    if lacking:
        raise IngotRuntimeError(
            f"These field(s) are not placed: {_names(lacking)}. Please consider specifying a shape for them: "
            "x = qd.field(float, shape=(2, 3))")
    for which in ("grad", "dual"):
        lacking = [f for f, wanted in fields if f is not None and which in wanted and not _is_placed(getattr(f, which))]
        if lacking:
            raise IngotRuntimeError(
                f"These field(s) {NEED} `needs_{which}=True`, however their {which} field(s) are not placed: "
                f"{_names(lacking)}. Place them, qd.root.dense(qd.i, 1).place(x.{which}), use "
                f"qd.root.lazy_{which}(), or specify a shape for the field(s)")
    for f, _ in fields:
        if isinstance(f, MatrixField) and f._parts is not None and len({p.shape for p in f._parts}) > 1:
            raise IngotRuntimeError(
                f"Members of the following field have different shapes {[p.shape for p in f._parts]}: {_names([f])}")
    _expected.clear()


def _reset():
    """qd.init and qd.reset: fields of before are expected nowhere."""
    _expected.clear()
    for known in _given.values():
        known.clear()


def _names(fields):
    return ", ".join(field.name or repr(field) for field in fields)


# ---- structs ----


class StructField(Field):
    """A field of structs: a field per member, under the member's name."""

    def __init__(self, field_dict, struct_methods=None, name=None, is_primal=True):
        self.field_dict = dict(field_dict)
        self.struct_methods = dict(struct_methods or {})
        self.name = name or ""
        self._companions = {}
        self._primal = is_primal
        self._struct_type = _type_of_members(self.field_dict, self.struct_methods)
        for key, member in self.field_dict.items():
            setattr(self, key, member)

    def _of_members(self, which):
        """The struct of the members' gradients or duals; those that have none are None in it."""
        if not self._primal:
            return None
        if which not in self._companions:
            members = {key: getattr(member, which) for key, member in self.field_dict.items()}
            self._companions[which] = StructField(members, self.struct_methods, f"{self.name}.{which}", False)
        return self._companions[which]

    @property
    def grad(self):
        """The field of the members' gradients."""
        return self._of_members("grad")

    @property
    def dual(self):
        """The field of the members' duals."""
        return self._of_members("dual")

    @property
    def keys(self):
        """The names of the members."""
        return list(self.field_dict)

    @property
    def _members(self):
        return [member for member in self.field_dict.values() if member is not None]

    @property
    def _items(self):
        return self.field_dict.items()

    @property
    def shape(self):
        """The extents, as a tuple."""
        return self._members[0].shape

    @property
    def offset(self):
        """The index of the first element."""
        return self._members[0].offset

    @property
    def snode(self):
        """The place of the first member in the tree of fields."""
        return self._members[0].snode

    _snode = snode

    def parent(self, n=1):
        """The node of the tree n levels above the first member."""
        return self._members[0].parent(n)

    def get_member_field(self, key):
        """The field of one member."""
        return self.field_dict[key]

    def fill(self, value):
        """Sets every number of every element."""
        for member in self._members:
            member.fill(value)

    def copy_from(self, other):
        """Copies all elements of a field of equal shape with the same members."""
        assert isinstance(other, Field)
        assert set(self.keys) == set(other.keys)
        for key in self.keys:
            self.field_dict[key].copy_from(other.get_member_field(key))

    def to_numpy(self, *, copy=True):
        """A dict of NumPy arrays, one per member."""
        return {key: member.to_numpy(copy=copy) for key, member in self._items}

    def from_numpy(self, arrays):
        """Loads all members from a dict of NumPy arrays."""
        for key, member in self._items:
            member.from_numpy(arrays[key])

    def to_torch(self, device=None, *, copy=True):
        """A dict of torch tensors, one per member."""
        return {key: member.to_torch(device=device, copy=copy) for key, member in self._items}

    def from_torch(self, tensors):
        """Loads all members from a dict of torch tensors."""
        for key, member in self._items:
            member.from_torch(tensors[key])

    def __getitem__(self, key):
        from ingot._struct import element_of

        return element_of(self, key)

    def __setitem__(self, key, value):
        entries = value if isinstance(value, dict) else value._entries
        if entries.keys() != self.field_dict.keys():
            raise IngotRuntimeError(f"a struct with the members {self.keys} is expected, not {list(entries)}")
        for name, member in self._items:
            member[key] = entries[name]

    def __iter__(self):
        return iter(self._members[0])

    def __len__(self):
        return len(self._members[0])

    def __bool__(self):
        return True

    def __str__(self):
        return str(self.to_numpy())

    def __repr__(self):
        return f"<qd.Struct.field {self.keys}>"

    def __reduce__(self):
        return StructField, (self.field_dict, self.struct_methods, self.name)


def _type_of_members(members, methods):
    """The type of the elements; None where a member has none (gradients of integers)."""
    from ingot._struct import StructType

    kinds = {
        key: member._struct_type if isinstance(member, StructField) else member.element_type
        for key, member in members.items() if member is not None
    }
    if len(kinds) != len(members) or None in kinds.values():
        return None
    return StructType(**kinds, __struct_methods=methods)


def struct_field(members, methods, shape=None, name="<Struct>", offset=None, needs_grad=False, needs_dual=False,
                 layout=None):
    """`qd.Struct.field` and the `field` of struct types."""
    _check_layout(layout)
    if not members:
        raise IngotRuntimeError("a field of structs needs members, these have none")
    if shape is None and offset is not None:
        raise IngotSyntaxError("shape cannot be None when offset is being set")
    placing = _check_placing(shape, None, offset)
    if placing is not None and settings()["python"]:
        made = {key: _plain_member(kind, shape) for key, kind in members.items()}
        return StructField(made, methods, name)
    made = {key: _member(kind, f"{name}.{key}", needs_grad, needs_dual) for key, kind in members.items()}
    whole = StructField(made, methods, name)
    if placing is None:
        return whole
    for one in (whole, *(getattr(whole, which) for which in _wanted(needs_grad, needs_dual))):
        _place_in_block([[member] for member in one._members] if layout == SOA else [one._members], *placing)
    return whole


def _member(kind, name, needs_grad, needs_dual):
    from ingot._struct import StructType

    if isinstance(kind, StructType):
        return struct_field(kind.members, kind.methods, None, name, None, needs_grad, needs_dual)
    return field(kind, None, None, name, None, needs_grad, needs_dual)


def _plain_member(kind, shape):
    return kind.field(shape=shape) if hasattr(kind, "field") else field(kind, shape)


# ---- conversions ----


def _numpy_type(dtype):
    from ingot._matrix import _numpy_type

    return _numpy_type(dtype)


def _view(field):
    """A NumPy array that shares the memory of the field."""
    import numpy as np

    return np.asarray(memoryview(field))


def to_numpy(field, *args, **options):
    """The elements as a NumPy array: a copy, a view (copy=False), or what is cheaper (None)."""
    return (_matrix_to_numpy if field.element_shape else _scalar_to_numpy)(field, *args, **options)


def _scalar_to_numpy(field, dtype=None, *, copy=True):
    return _to_numpy(field, field.shape, dtype, copy)


def _matrix_to_numpy(field, keep_dims=False, dtype=None, *, copy=True):
    return _to_numpy(field, _full_shape(field, keep_dims), dtype, copy)


def _full_shape(field, keep_dims=False):
    if not field.element_shape:
        return field.shape
    return field.shape + ((field.n,) if field.m == 1 and not keep_dims else (field.n, field.m))


def _to_numpy(field, shape, dtype, copy):
    if copy is not True:
        view = _shared(field, copy)
        if view is not None and dtype is not None and view.dtype != dtype:
            if copy is False:
                raise ValueError(f"copy=False is incompatible with dtype conversion ({view.dtype} -> {dtype})")
            view = None
        if view is not None:
            return view.reshape(shape)
    made = _stored(field).reshape(shape)
    return made if dtype is None else made.astype(dtype, copy=False)


def _shared(field, copy):
    """A view, or None where there is none; then copy=False is an error."""
    try:
        return _view(field)
    except BufferError as e:
        if copy is False:
            raise ValueError(f"Zero-copy not available: {e}") from None
        return None


def _stored(field):
    """A row-major copy of all elements."""
    import numpy as np

    if field.element_shape and field._parts is not None:
        return np.stack([_stored(part) for part in field._parts], -1).reshape(field.shape + field.element_shape)
    made = np.empty(field.shape + field.element_shape, _numpy_type(field.dtype))
    field._store(made)
    return made


def as_array_for_numpy(field, dtype=None, copy=None):
    """`__array__`, as NumPy 1 and 2 call it."""
    return to_numpy(field, dtype=dtype, copy=copy)


def from_numpy(field, source):
    """Loads all elements from a NumPy array of equal shape, converting its numbers."""
    import numpy as np

    from ingot._interop import MASKED

    if not isinstance(source, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got '{type(source).__name__}'; "
                        "make one of it: numpy.array(x)")
    if isinstance(source, np.ma.MaskedArray):
        raise TypeError(f"from_numpy: {MASKED}")
    _load(field, source)


def _load(field, source):
    import numpy as np

    source = np.asarray(source)
    if source.dtype.kind not in "biuf":
        raise TypeError(f"elements of dtype {source.dtype} are no real numbers; convert them: x.astype(numpy.float64)")
    wanted = field.shape + field.element_shape
    if source.shape != wanted and not _is_column(field, source.shape):
        raise ValueError(f"qd.field shape {wanted} does not match the numpy array shape {source.shape}")
    if field.element_shape and field._parts is not None:
        flat = source.reshape(field.shape + (len(field._parts),))
        for k, part in enumerate(field._parts):
            _load(part, flat[..., k])
    else:
        field._load(np.ascontiguousarray(source, _numpy_type(field.dtype)))


def _is_column(field, shape):
    """Vectors may come as matrices of one column or row, and the other way round."""
    if not field.element_shape or field.m != 1:
        return False
    return shape[:-2] == field.shape and shape[-2:] in ((field.n, 1), (1, field.n)) or shape == field.shape + (field.n,)


def to_torch(field, device=None, keep_dims=False, *, copy=True):
    """The elements as a torch tensor: a copy, shared memory (copy=False), or either (None)."""
    import torch

    shape = _full_shape(field, keep_dims)
    elsewhere = device is not None and torch.device(device).type != "cpu"
    if copy is not True:
        if elsewhere and copy is False:
            raise ValueError(f"copy=False is incompatible with device transfer (data on cpu, requested {device})")
        view = _shared(field, copy)
        if view is not None and not elsewhere:
            return torch.from_numpy(view.reshape(shape))
    made = torch.from_numpy(_stored(field).reshape(shape))
    return made.to(device) if elsewhere else made


def from_torch(field, source):
    """Loads all elements from a torch tensor of equal shape, converting its numbers."""
    import torch

    if not isinstance(source, torch.Tensor):
        raise TypeError(f"from_torch: expected a torch.Tensor, got '{type(source).__name__}'")
    if source.is_complex():
        raise TypeError(f"from_torch: elements of dtype {source.dtype} are no real numbers")
    _load(field, source.detach().cpu().numpy())


def to_dlpack(field, versioned=False):
    """A DLPack capsule that shares the memory of the field, and keeps it."""
    view = _view(field)
    return view.__dlpack__(max_version=(1, 0)) if versioned else view.__dlpack__()


def dlpack(field, **options):
    """`__dlpack__`."""
    return _view(field).__dlpack__(**options)


def dlpack_device(field):
    """`__dlpack_device__`: the CPU."""
    return 1, 0


def copy_from(field, other):
    """Copies all elements of a field of equal shape, converting its numbers."""
    if not isinstance(other, Field) or isinstance(other, StructField):
        raise TypeError("Cannot copy from a non-field object")
    if field.shape != other.shape or field.element_shape != other.element_shape:
        raise ValueError(f"qd.field shape {field.shape} does not match the source field shape {other.shape}")
    _load(field, _stored(other))


# ---- the rest ----


def _text(field):
    return str(to_numpy(field)) if _is_placed(field) else "<Field: Definition of this field is incomplete>"


def _shown(field):
    """What `repr` says: type, shape, and the values as NumPy writes them."""
    if not field._exists:
        return f"<qd.field {field.element_type} destroyed>"
    if not _is_placed(field):
        return f"<qd.field {field.element_type} not placed>"
    import numpy as np

    from ingot._interop import SHOWN

    head = f"qd.field {field.element_type} {field.shape!r}"
    text = np.array2string(to_numpy(field), threshold=SHOWN, separator=", ")
    return f"<{head}\n{text}>" if "\n" in text else f"<{head} {text}>"


def tolist(field):
    """The elements as numbers of Python, in lists per axis; of a field without axes the number."""
    return to_numpy(field).tolist()


def parent(field, n=1):
    """The node of the tree n levels above the field."""
    node = field.snode
    return None if node is None else node.parent(n)


def get_scalar_field(field, *indices):
    """The field of one scalar of each element."""
    assert len(indices) in (1, 2)
    i, j = indices if len(indices) == 2 else (indices[0], 0)
    if not (0 <= i < field.n and 0 <= j < field.m):
        raise IndexError(f"elements are {field.n} x {field.m}, there is no scalar {indices}")
    k = i * field.m + j
    if field._parts is None and not _is_placed(field):
        field._parts = tuple(_new_field(field.dtype, field.name) for _ in range(field.n * field.m))
    if field._parts is not None:
        return field._parts[k]
    field.shape  # the layout is made
    part = field._part(k)
    for which in _wanted(field.has_grad(), field.has_dual()):
        setattr(part, which, get_scalar_field(getattr(field, which), i, j))
    return part


def reduce(field):
    """`__reduce__`: the contents, the shape and the order of axes; not the tree."""
    kind = field.element_type
    others = tuple(which for which, has in (("grad", field.has_grad()), ("dual", field.has_dual())) if has)
    order = None if field.layout is None else tuple(field.layout)
    state = (kind, field.shape, order, field.offset, field.name, others, _stored(field).tobytes())
    return _restore, state, vars(field) or None


def _restore(kind, shape, order, offset, name, others, contents):
    made = _dense_field(kind, shape, order, offset, name)
    made._load(contents)
    for which in others:
        setattr(made, which, _dense_field(kind, shape, order, offset, f"{name}.{which}", True))
    return made


def _repr_html_(field):
    """What notebooks show; called by fields."""
    from ingot import _html

    return _html._repr_html_(field)
