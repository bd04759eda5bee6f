"""Trees of dense fields: `qd.root`, `qd.FieldsBuilder`, `SNode`.

A tree says how fields lie in memory: `root.dense(qd.i, 8).place(x, y)` is 8 cells with an x and
a y in each. Every child of a root is one block of memory. Its layout is computed, and the memory
taken, when somebody first needs one of the fields in it; from then on the child cannot grow.

Nodes hold their children and their parent, but fields only weakly, and a root holds its children
weakly: the memory of fields that nobody has any more is free at once.
"""

import weakref

from ingot._annotations import template
from ingot._core import (
    Field,
    IngotRuntimeError,
    MatrixField,
    ScalarField,
    _lazy_companions,
    _new_block,
    _new_field,
    i8,
    register_intrinsic,
)
from ingot._decorators import func
from ingot._matrix import Vector
from ingot._ops import static

_MOST_AXES = 12


# ---- axes ----


def axes(*numbers):
    """Axes by number: `qd.axes(0, 1)` is `qd.ij`."""
    for n in numbers:
        if not 0 <= n.__index__() < _MOST_AXES:
            raise IngotRuntimeError(f"there is no axis {n}: they are numbered from 0 to {_MOST_AXES - 1}")
    return tuple(n.__index__() for n in numbers)


def _extents(count, sizes):
    """One extent per axis; a single number stands for all."""
    sizes = tuple(sizes) if hasattr(sizes, "__len__") else (sizes,)
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) != count:
        raise IngotRuntimeError(f"{count} axes need as many extents, or one for all of them, got {sizes}")
    for n in sizes:
        if not hasattr(n, "__index__"):
            raise TypeError(f"extents of a dense node are integers, got {n!r}")
    sizes = tuple(n.__index__() for n in sizes)
    if any(n <= 0 for n in sizes):
        raise IngotRuntimeError(f"Every dimension of a field should be positive, got {sizes}: axes come first, dense(qd.ij, (4, 8))")
    return sizes


# ---- nodes ----


class SNode:
    """A node of a tree of fields: the root, cells (dense) or the place of a field."""

    __slots__ = ("_kind", "_up", "_down", "_tree", "_axes", "_sizes", "_ready", "_cell", "_at",
                 "_field", "_element", "_offset", "_block", "__weakref__")

    def __init__(self, kind, up, tree, axes=(), sizes=()):
        self._kind = kind
        self._up = up  # None: the root
        self._down = []
        self._tree = tree
        self._axes, self._sizes = axes, sizes  # ascending axes
        self._ready = False  # of a child of a root: the layout is made
        self._cell = self._at = None  # bytes of a cell; offset in a cell of the parent
        self._field = self._element = self._offset = None  # of a place
        self._block = None  # weak: of a child of a root

    # ---- building ----

    def dense(self, axes, dimensions):
        """Adds cells: as many as the product of the dimensions, along these axes."""
        axes = tuple(axes) if hasattr(axes, "__len__") else (axes,)
        sizes = _extents(len(axes), dimensions)
        if len(set(axes)) != len(axes):
            raise IngotRuntimeError(f"the axes {axes} of a dense node are not different")
        for axis in axes:
            if not isinstance(axis, int) or not 0 <= axis < _MOST_AXES:
                raise IngotRuntimeError(f"{axis!r} is no axis: use qd.i to qd.l, or qd.axes")
        above = self._extents_by_axis()
        if any(above.get(axis, 1) * size >= 1 << 31 for axis, size in zip(axes, sizes)):
            raise IngotRuntimeError(f"an extent is larger than 2147483647: {sizes} below {self.shape}")
        pairs = sorted(zip(axes, sizes))
        return self._add(SNode("dense", self, self._tree, *map(tuple, zip(*pairs)) if pairs else ((), ())))

    def _add(self, node):
        self._tree._check_open()
        if self._top()._ready:
            raise IngotRuntimeError(
                "FieldsBuilder finalized: fields of this child of the root are in use already, and its layout is "
                "made; place all fields of it before the first is used, or this one below a node of its own: "
                "qd.root.dense(...).place(x)")
        if self._kind == "place":
            raise IngotRuntimeError("nothing can be put below the place of a field")
        if self._up is None:
            self._tree._adopt(node)
        else:
            self._down.append(node)
        self._tree.empty = False
        return node

    def _unsupported(self, what):
        raise IngotRuntimeError(f"{what} SNode is not supported on this backend. Fields are dense: use dense(axes, dimensions)")

    def pointer(self, axes, dimensions):
        """Sparse nodes are not supported."""
        self._unsupported("Pointer")

    def bitmasked(self, axes, dimensions):
        """Sparse nodes are not supported."""
        self._unsupported("Bitmasked")

    def dynamic(self, axis, dimension, chunk_size=None):
        """Sparse nodes are not supported."""
        self._unsupported("Dynamic")

    def quant_array(self, axes, dimensions, max_num_bits):
        """Quantised types are not supported."""
        self._unsupported("Quant_array")

    def place(self, *args, offset=None):
        """Places fields in each cell, in this order. Returns the node itself."""
        for arg in args:
            if isinstance(arg, (list, tuple)):
                self.place(*arg, offset=offset)
            elif isinstance(arg, Field):
                for one in _placeable(arg):
                    self._place(one, offset)
            else:
                raise ValueError(f"{type(arg).__name__} cannot be placed: place takes fields, made by qd.field(dtype) "
                                 "without a shape")
        return self

    def _place(self, field, offset):
        if field._node is not None or field._levels is not None:
            name = f" {field.name}" if field.name else ""
            raise IngotRuntimeError(f"the field{name} is placed already, by an earlier place() or by its shape=; "
                                    "leave one of them out, or make another field")
        node = SNode("place", self, self._tree)
        node._offset = _check_offset(offset, len(self.shape))
        node._field = weakref.ref(field)
        node._element = _size_of(field)
        self._add(node)
        field._node = node

    def _settle(self):
        _materialize(self)

    def lazy_grad(self):
        """Places the gradients of the fields below, each beside its field."""
        _place_companions(self, "grad")

    def lazy_dual(self):
        """Places the duals of the fields below, each beside its field."""
        _place_companions(self, "dual")

    # ---- looking ----

    def _top(self):
        """The child of the root that this is or belongs to; of the root, itself."""
        node = self
        while node._up is not None and node._up._up is not None:
            node = node._up
        return node

    def parent(self, n=1):
        """The node n levels up; None beyond the root."""
        node = self
        while node is not None and n > 0:
            node = node._up
            if node is None or not (node._kind == "dense" and not node._axes):
                n -= 1  # what only groups others is not seen
        return root if node is not None and node._up is None and node._tree is root._tree else node

    @property
    def _ancestors(self):
        """parent(1), parent(2), ... : what kernels take them from."""
        found = [self.parent()]
        while found[-1] is not None:
            found.append(found[-1].parent())
        return tuple(found[:-1])

    def _path_from_root(self):
        node, path = self, [self]
        while path[-1] != root and path[-1].parent() is not None:
            path.append(path[-1].parent())
        return path[::-1]

    def _extents_by_axis(self):
        """axis -> extent, from the root to here."""
        found, node = {}, self
        while node is not None:
            for axis, size in zip(node._axes, node._sizes):
                found[axis] = found.get(axis, 1) * size
            node = node._up
        return found

    @property
    def shape(self):
        """How many cells there are from the root on, along each axis that occurs."""
        found = self._extents_by_axis()
        return tuple(found[axis] for axis in sorted(found))

    def _physical_index_position(self):
        return {k: axis for k, axis in enumerate(sorted(self._extents_by_axis()))}

    @property
    def snode(self):
        """The node itself."""
        return self

    _snode = snode

    @property
    def _dtype(self):
        field = self._field() if self._kind == "place" else None
        return None if field is None else field.dtype

    @property
    def _name(self):
        field = self._field() if self._kind == "place" else None
        return "" if field is None else field.name

    @property
    def _id(self):
        return id(self)

    @property
    def _snode_tree_id(self):
        return self._tree._id

    def _get_children(self):
        if self._up is not None:
            return list(self._down)
        return [node for node in (ref() for ref in self._tree._children) if node is not None]

    @property
    def _num_dynamically_allocated(self):
        return 0

    @property
    def _cell_size_bytes(self):
        _materialize(self)
        return self._cell

    @property
    def _offset_bytes_in_parent_cell(self):
        _materialize(self)
        return self._at

    def _loop_range(self):
        """What a loop over the node goes through."""
        return self

    @property
    def _cells(self):
        """A field of the first byte of each cell: a loop over the node is a loop over it."""
        _materialize(self)
        top = self._top()
        block = top._block() if top._block is not None else None
        if block is None:
            raise IngotRuntimeError("there is no field below this node")
        made = _new_field(i8)
        at, levels, shape = _path(self)
        if self._field is not None:  # the node of a field in a block of its own
            levels = self._field()._levels[1]
        made._place(block, at, shape, None, levels)
        return made

    def deactivate_all(self):
        """Sets the fields below to zero, as far as sparse nodes would: dense nodes stay as they are."""

    def __repr__(self):
        return f"<qd.SNode of type {self._kind}>"

    def __str__(self):
        return f"{self.parent()} => {self._kind} {list(self.shape)}"


def _check_offset(offset, count):
    if offset is None:
        return None
    offset = tuple(offset) if hasattr(offset, "__len__") else (offset,)
    if not offset:
        return None
    if len(offset) != count:
        raise IngotRuntimeError(f"the offset {offset} has {len(offset)} numbers, the field {count} axes")
    return tuple(n.__index__() for n in offset)


def _placeable(field):
    """The fields of C that a field consists of."""
    if isinstance(field, ScalarField):
        return [field]
    if isinstance(field, MatrixField):
        return [field] if field._parts is None else list(field._parts)
    return [one for member in field._members for one in _placeable(member)]


def _size_of(field):
    """(bytes, alignment) of an element."""
    name = str(field.dtype)
    size = max(int("".join(c for c in name.split(".")[-1] if c.isdigit())) // 8, 1)
    count = 1
    for n in field.element_shape:
        count *= n
    return size * count, size


def _walk(node):
    """All nodes below, and the node, parents first; without recursion, since trees may be deep."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(node._get_children()))


def _place_companions(node, which):
    if node._up is None:
        _lazy_companions(which == "dual")
    for one in list(_walk(node)):
        if one._kind != "place" or one._top()._ready:
            continue
        field = one._field()
        other = None if field is None else getattr(field, which)
        if other is None or other._node is not None or other._levels is not None:
            continue
        one._up._place(other, one._offset)


# ---- layout ----


def _path(node):
    """(offset in the block, levels, shape) of the cells of a node, or of a place."""
    numbers = {axis: k for k, axis in enumerate(sorted(node._extents_by_axis()))}
    shape, at, levels = node.shape, 0, []
    while node._up is not None:
        stride = node._cell
        for axis, size in reversed(tuple(zip(node._axes, node._sizes))):
            levels.append((numbers[axis], size, stride))
            stride *= size
        at += node._at
        node = node._up
    return at, tuple(levels[::-1]), shape


def _measure(top):
    """Sizes and offsets of all nodes of a block; its bytes. Cells are laid out as structs of C."""
    sizes = {}  # node -> (bytes, alignment)
    for node in reversed(list(_walk(top))):
        if node._kind == "place":
            node._cell = node._element[0]
            sizes[node] = node._element
            continue
        end, alignment = 0, 1
        for child in node._down:
            size, wanted = sizes.pop(child)
            child._at = -(-end // wanted) * wanted
            end, alignment = child._at + size, max(alignment, wanted)
        node._cell = -(-end // alignment) * alignment
        count = 1
        for n in node._sizes:
            count *= n
        sizes[node] = node._cell * count, alignment
    top._at = 0
    return sizes[top][0]


def _materialize(node):
    """Gives all fields of the block that the node belongs to their layout and memory."""
    top = node._top()
    if top._ready or top._up is None:
        return
    top._tree._check_usable()
    size = _measure(top)
    if size >= 1 << 63:
        raise IngotRuntimeError(f"the fields need {size} bytes, more than there are addresses")
    places = [one for one in _walk(top) if one._kind == "place"]
    block = _new_block(size)
    for one in places:
        field = one._field()
        if field is not None:
            at, levels, shape = _path(one)
            field._place(block, at, shape, one._offset, levels)
    top._block = weakref.ref(block)
    top._ready = True


# ---- trees ----


class _Tree:
    """What nodes know of the tree that they are in."""

    __slots__ = ("root", "_children", "_alive", "finalized", "empty", "dropped", "_id", "automatic")
    _last = 0

    def __init__(self, automatic):
        _Tree._last += 1
        self._id = _Tree._last
        self.root = SNode("root", None, self)
        self._children = []
        self._alive = 16  # more than that: those that are gone are left out
        self.finalized = self.dropped = False
        self.automatic = automatic  # qd.root: usable without finalize
        self.empty = True

    def _adopt(self, node):
        if len(self._children) > self._alive:
            self._children = [ref for ref in self._children if ref() is not None]
            self._alive = 2 * len(self._children) + 16
        self._children.append(weakref.ref(node))

    def _check_open(self):
        if self.finalized:
            raise IngotRuntimeError("FieldsBuilder finalized")
        self._check_alive()

    def _check_alive(self):
        if self.dropped:
            raise IngotRuntimeError("the tree of fields was destroyed, or belongs to the time before qd.init or qd.reset")

    def _check_usable(self):
        self._check_alive()
        if not self.finalized and not self.automatic:
            raise IngotRuntimeError("the FieldsBuilder is not finalized: call finalize() when all fields are placed")

    def _materialize(self):
        for node in self.root._get_children():
            _materialize(node)

    def _destroy(self):
        self.dropped = True
        for node in self.root._get_children():
            block = node._block() if node._block is not None else None
            if block is not None:
                block.destroy()


class FieldsBuilder:
    """A tree of fields of its own, which can be destroyed.

        fb = qd.FieldsBuilder()
        fb.dense(qd.ij, (4, 8)).place(x, y)
        tree = fb.finalize()
        ...
        tree.destroy()
    """

    def __init__(self):
        self._tree = _Tree(automatic=False)
        _live.add(self._tree.root)

    @property
    def root(self):
        """The root of the tree."""
        return self._tree.root

    @property
    def finalized(self):
        """Whether finalize was called."""
        return self._tree.finalized

    @property
    def empty(self):
        """Whether nothing was added yet."""
        return self._tree.empty

    @classmethod
    def _finalized_roots(cls):
        trees = sorted((node._tree for node in _live), key=lambda tree: tree._id)
        return [tree.root for tree in trees if any(child._ready for child in tree.root._get_children())]

    def _node(self):
        self._tree._check_open()
        return self._tree.root

    def dense(self, indices, dimensions):
        """As SNode.dense."""
        return self._node().dense(indices, dimensions)

    def pointer(self, indices, dimensions):
        """As SNode.pointer."""
        return self._node().pointer(indices, dimensions)

    def bitmasked(self, indices, dimensions):
        """As SNode.bitmasked."""
        return self._node().bitmasked(indices, dimensions)

    def dynamic(self, index, dimension, chunk_size=None):
        """As SNode.dynamic."""
        return self._node().dynamic(index, dimension, chunk_size)

    def quant_array(self, indices, dimensions, max_num_bits):
        """As SNode.quant_array."""
        return self._node().quant_array(indices, dimensions, max_num_bits)

    def place(self, *args, offset=None):
        """Places fields that have no axes."""
        self._node().place(*args, offset=offset)

    def lazy_grad(self):
        """As SNode.lazy_grad."""
        self._node().lazy_grad()

    def lazy_dual(self):
        """As SNode.lazy_dual."""
        self._node().lazy_dual()

    def deactivate_all(self):
        """As SNode.deactivate_all."""

    def finalize(self, raise_warning=True):
        """Takes the memory. Nothing can be added afterwards."""
        self._tree._check_open()
        if self.empty and raise_warning:
            import warnings

            warnings.warn("Finalizing an empty FieldsBuilder!", stacklevel=2)
        self._tree.finalized = True
        self._tree._materialize()
        return SNodeTree(self._tree)


class SNodeTree:
    """What FieldsBuilder.finalize returns."""

    def __init__(self, tree):
        self._tree = tree
        self.destroyed = False

    def destroy(self):
        """Gives the memory back. The fields can be used no more; views of them keep what they show."""
        if self.destroyed:
            raise IngotRuntimeError("SNode tree has been destroyed")
        self.destroyed = True
        self._tree._destroy()

    @property
    def id(self):
        """A number of its own."""
        if self.destroyed:
            raise IngotRuntimeError("SNode tree has been destroyed")
        return self._tree._id


class _Root:
    """`qd.root`: the tree of fields that have no builder."""

    def __init__(self):
        self._start()

    def _start(self):
        self._tree = _Tree(automatic=True)
        _live.add(self._tree.root)

    def __getattr__(self, name):
        return getattr(self._tree.root, name)

    def parent(self, n=1):
        """None: it is the root."""
        return None if n > 0 else self

    @property
    def finalized(self):
        """False: fields can be added at any time."""
        return False

    @property
    def empty(self):
        """Whether nothing was added yet."""
        return self._tree.empty

    def finalize(self, raise_warning=True):
        """Takes the memory of all fields that are placed."""
        self._tree._materialize()
        return SNodeTree(self._tree)

    def __eq__(self, other):
        return other is self or other is self._tree.root

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return "qd.root"


_live = weakref.WeakSet()  # the roots of all trees
root = _Root()


def _reset():
    """qd.init and qd.reset: all fields are gone, and what is placed from now on is in another tree."""
    for node in list(_live):
        node._tree.dropped = True
    root._start()


def snode_of(field):
    """The place of a field, as a node. For one that was made with its shape it is made now."""
    if not isinstance(field, (ScalarField, MatrixField)):
        return field._members[0].snode
    if isinstance(field, MatrixField) and field._parts is not None:
        return snode_of(field._parts[0])
    if field._node is None and field._levels is not None:
        field._node = _node_for(field)
    return field._node


def _node_for(field):
    """The nodes that say what the layout of a field in a block of its own says."""
    tree = root._tree
    top = SNode("dense", tree.root, tree, tuple(range(len(field.shape))), field.shape) if field.shape else tree.root
    node = SNode("place", top, tree)
    node._field, node._element = weakref.ref(field), _size_of(field)
    node._offset = field.offset
    node._cell, node._at = node._element[0], 0
    for one in (top, node) if field.shape else (node,):
        one._ready = True
    if field.shape:
        top._cell, top._at, top._field = node._cell, 0, node._field
        top._down.append(node)
    (top if field.shape else node)._block = weakref.ref(field._block)
    tree._adopt(top if field.shape else node)
    return node


@func
def rescale_index(a: template(), b: template(), I: template()):  # noqa: E741, N803: as the reference names it
    """The index I of the field or node a, scaled to the shape of b. Also in kernels."""
    J = Vector([I[k] for k in static(range(len(I)))])  # noqa: N806
    for k in static(range(min(len(I), len(a.shape), len(b.shape)))):
        if static(a.shape[k] > b.shape[k]):
            J[k] = I[k] // (a.shape[k] // b.shape[k])
        elif static(a.shape[k] < b.shape[k]):
            J[k] = I[k] * (b.shape[k] // a.shape[k])
    return J


def get_addr(f, indices):
    """The address of an element, as a u64: in kernels."""
    raise IngotRuntimeError("qd.get_addr is available in kernels only")


get_addr = register_intrinsic(get_addr, "get_addr")
