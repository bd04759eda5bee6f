"""Trees of fields: nodes, builders, structs, components, gradients, life and death."""

import copy
import dataclasses
import gc
import pickle
import warnings
import weakref

import ingot as qd
import numpy as np
import pytest
from conftest import needs
from ingot import _core


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=qd.cpu)


def test_cells_are_structs_of_c():
    x, y, v = qd.field(qd.f32), qd.field(qd.i8), qd.Vector.field(3, qd.f32)
    b = qd.root.dense(qd.ij, (2, 4))
    b.dense(qd.i, 3).place(x)
    b.place(y, v)
    assert x.shape == (6, 4) and y.shape == v.shape == b.shape == (2, 4)
    assert x._levels == (0, ((0, 2, 112), (1, 4, 28), (0, 3, 4)))
    assert y._levels == (12, ((0, 2, 112), (1, 4, 28))) and v._levels[0] == 16
    assert b._cell_size_bytes == 28 and v.snode._offset_bytes_in_parent_cell == 16
    assert x._block is y._block is v._block and x._block.bytes == 256  # 8 cells of 28 bytes, and room
    y.fill(3)
    v.fill([1, 2, 3])
    assert (x.to_numpy() == 0).all() and (y.to_numpy() == 3).all() and (v.to_numpy() == [1, 2, 3]).all()


def test_axes():
    assert qd.ij == qd.axes(0, 1) and qd.axes(5) == (5,)
    f = qd.field(qd.i32)
    qd.root.dense(qd.l, 2).dense(qd.j, 3).place(f)  # indices are numbered in the order of the axes that occur
    assert f.shape == (3, 2) and f._levels == (0, ((1, 2, 12), (0, 3, 4)))
    g = qd.field(qd.i32)
    qd.root.dense((1, 0), (3, 2)).place(g)  # one node is row major, whatever the order
    assert g.shape == (2, 3) and g._levels == (0, ((0, 2, 12), (1, 3, 4)))


def test_one_stride_is_one_level():
    f = qd.field(qd.f32)
    qd.root.dense(qd.i, 4).dense(qd.i, 1).dense(qd.i, 8).place(f)
    assert f.shape == (32,) and f._levels == (0, ((0, 32, 4),)) and f._levels == qd.field(qd.f32, shape=32)._levels
    assert f.to_numpy(copy=False).strides == (4,)


def test_deep_trees():
    f, node = qd.field(qd.i64), qd.root
    for _ in range(3000):
        node = node.dense(qd.i, 1)
    node.dense(qd.ij, 2).place(f)
    f[1, 1] = 5
    assert f.to_numpy().tolist() == [[0, 0], [0, 5]]
    g, node = qd.field(qd.i8), qd.root
    for k in range(30):
        node = node.dense((k % 2,), (2 if k < 20 else 1,))
    node.place(g)
    assert g.shape == (1024, 1024) and len(g._levels[1]) == 20
    a = np.random.default_rng(0).integers(0, 100, g.shape)
    g.from_numpy(a)
    assert (g.to_numpy() == a).all() and g[1000, 3] == a[1000, 3]
    with pytest.raises(ValueError, match="levels need more than strides"):
        g.to_numpy(copy=False)


def test_nodes():
    x = qd.field(qd.i32, name="x")
    a = qd.root.dense(qd.k, 3)
    b = a.dense(qd.i, 7)
    b.place(x)
    assert x.snode.parent(0) == x.snode and x.parent() == b and x.snode.parent(2) == a
    assert x.snode.parent(3) == qd.root and x.snode.parent(4) is None and qd.root.parent() is None
    assert x.snode in b._get_children() and b in a._get_children() and a in qd.root._get_children()
    assert str(x.snode) == "qd.root => dense [3] => dense [7, 3] => place [7, 3]"
    assert x.snode._name == "x" and x.snode._dtype is qd.i32
    y = qd.field(qd.i32, shape=(2, 3), order="ji")
    assert y.snode.parent(2) == qd.root and y.parent().shape == (2, 3)
    assert y.parent()._cells._levels == (0, ((1, 3, 8), (0, 2, 4)))
    assert b._cells.shape == (7, 3) and b._cells._levels == (0, ((1, 3, 28), (0, 7, 4)))


def test_bad_trees():
    x = qd.field(qd.f32, name="x")
    for bad in (0, -1, (2, 0)):
        with pytest.raises(RuntimeError, match="should be positive"):
            qd.root.dense(qd.ij, bad)
    with pytest.raises(RuntimeError, match="as many extents"):
        qd.root.dense(qd.ij, (1, 2, 3))
    with pytest.raises(RuntimeError, match="not different"):
        qd.root.dense((0, 0), (1, 2))
    with pytest.raises(TypeError, match="integers"):
        qd.root.dense(qd.i, 1.5)
    with pytest.raises(RuntimeError, match="no axis"):
        qd.root.dense((13,), 2)
    with pytest.raises(RuntimeError, match="no axis"):
        qd.axes(12)
    for kind in ("pointer", "bitmasked", "dynamic"):
        with pytest.raises(RuntimeError, match="not supported"):
            getattr(qd.root, kind)(qd.i, 2)
    with pytest.raises(ValueError, match="cannot be placed"):
        qd.root.place(3)
    node = qd.root.dense(qd.i, 4)
    with pytest.raises(RuntimeError, match="offset"):
        node.place(x, offset=(1, 2))
    node.place(x)
    with pytest.raises(RuntimeError, match="the field x is placed already"):
        node.place(x)
    with pytest.raises(RuntimeError, match="placed already"):
        node.place(qd.field(qd.f32, shape=3))
    with pytest.raises(RuntimeError, match="below the place"):
        x.snode.dense(qd.i, 2)
    x.fill(1)
    with pytest.raises(RuntimeError, match="in use already"):
        node.place(qd.field(qd.f32))
    assert (x.to_numpy() == 1).all()


def test_too_large():
    x = qd.field(qd.f32)
    qd.root.dense(qd.ijk, 1 << 30).place(x)
    with pytest.raises(RuntimeError, match="more than there are addresses"):
        x.fill(1)
    with pytest.raises(RuntimeError, match="larger than 2147483647"):
        qd.root.dense(qd.i, 1 << 20).dense(qd.i, 1 << 20)
    with pytest.raises(RuntimeError, match="larger than 2147483647"):
        qd.root.dense(qd.i, 1 << 40)


def test_many_cells():
    """More than 2^31 cells: memory is given by the system when it is touched."""
    x = qd.field(qd.i8, shape=(3, 1 << 30))
    x[2, (1 << 30) - 1] = 7
    assert x[2, (1 << 30) - 1] == 7 and x[0, 5] == 0 and x._block.bytes == 3 << 30


def test_builder():
    fb = qd.FieldsBuilder()
    x, y = qd.field(qd.f32, name="x"), qd.field(qd.i32)
    fb.dense(qd.i, 4).place(x)
    fb.place(y)
    with pytest.raises(RuntimeError, match="not finalized"):
        x[0]
    tree = fb.finalize()
    assert fb.finalized and not fb.empty and tree.id > 0
    x[1], y[None] = 2, 3
    view = x.to_numpy(copy=False)
    for change in (lambda: fb.dense(qd.i, 2), lambda: fb.place(qd.field(qd.f32)), fb.finalize, fb.lazy_grad):
        with pytest.raises(RuntimeError, match="FieldsBuilder finalized"):
            change()
    tree.destroy()
    assert view.tolist() == [0, 2, 0, 0]
    for use in (lambda: x[0], lambda: y.fill(1)):
        with pytest.raises(RuntimeError, match="was destroyed"):
            use()
    for again in (tree.destroy, lambda: tree.id):
        with pytest.raises(RuntimeError, match="has been destroyed"):
            again()
    with pytest.warns(UserWarning, match="empty"):
        qd.FieldsBuilder().finalize()


def test_init_and_reset_drop_fields():
    for drop in (qd.reset, lambda: qd.init(arch=qd.cpu)):
        x, y, z = qd.field(qd.f32, shape=3), qd.field(qd.f32), qd.field(qd.f32)
        node = qd.root.dense(qd.i, 2)
        node.place(y)
        view = x.to_numpy(copy=False)
        array = qd.ndarray(qd.f32, 3)
        drop()
        for field in (x, y):
            with pytest.raises(RuntimeError, match="destroyed"):
                field.fill(1)
        with pytest.raises(RuntimeError, match="destroyed"):
            node.place(z)
        assert view.tolist() == [0, 0, 0] and array.to_numpy().tolist() == [0, 0, 0]
        qd.root.dense(qd.i, 2).place(z)
        z.fill(1)


def test_memory_goes_with_the_fields():
    qd.reset()
    gc.disable()
    try:
        for make in (lambda: qd.field(qd.f32, shape=5), lambda: qd.Vector.field(2, qd.f32, shape=5, needs_grad=True)):
            x = make()
            block, seen = weakref.ref(x._block), weakref.ref(x)
            del x
            assert block() is None and seen() is None
        x = qd.field(qd.f32)
        qd.root.dense(qd.i, 4).place(x)
        x[0] = 1
        block = weakref.ref(x._block)
        assert x.snode.parent()._cells.shape == (4,)
        del x
        assert block() is None
    finally:
        gc.enable()
    gc.collect()
    assert not [node for node in qd.root._get_children()]


def test_part_holds_the_memory():
    v = qd.Vector.field(2, qd.f32, shape=3)
    part = v.get_scalar_field(1)
    del v
    part[0] = 4
    assert part[0] == 4


def test_components():
    v = qd.Vector.field(3, qd.f32)
    for k in range(3):
        qd.root.dense(qd.i, 4).place(v.get_scalar_field(k))
    v[1] = [1, 2, 3]
    assert v.shape == (4,) and len({id(p._block) for p in v._parts}) == 3
    v[2][1] = 5
    assert list(v[1]) == [1, 2, 3] and v.to_numpy()[2].tolist() == [0, 5, 0] and v.get_scalar_field(1)[2] == 5
    v.fill([7, 8, 9])
    assert (v.to_numpy() == [7, 8, 9]).all()
    v.from_numpy(np.arange(12).reshape(4, 3))
    assert list(v[3]) == [9, 10, 11]
    before = v._generation
    v.get_scalar_field(0).fill(1)
    assert v._generation > before
    with pytest.raises(ValueError, match="Zero-copy not available"):
        v.to_numpy(copy=False)
    with pytest.raises(IndexError):
        v.get_scalar_field(3)
    m = qd.Matrix.field(2, 2, [[qd.f32, qd.i32], [qd.i64, qd.f64]], shape=3)
    m[1] = [[1.5, 2], [3, 4.25]]
    assert m.to_numpy().tolist()[1] == [[1.5, 2], [3, 4.25]] and m.get_scalar_field(1, 0).dtype is qd.i64
    with pytest.raises(AssertionError):
        qd.Vector.field(3, [qd.f32], shape=2)


def test_soa():
    v = qd.Vector.field(2, qd.f64, shape=(2, 3), order="ji", layout=qd.Layout.SOA)
    assert [p._levels for p in v._parts] == [(0, ((1, 3, 16), (0, 2, 8))), (48, ((1, 3, 16), (0, 2, 8)))]
    assert v._parts[0]._block is v._parts[1]._block


def test_structs():
    kind = {"pos": qd.math.vec3, "mass": qd.f32, "inner": qd.types.struct(a=qd.i32, b=qd.f64)}
    s = qd.Struct.field(kind, shape=(2, 2))
    assert s.keys == ["pos", "mass", "inner"] and s.shape == (2, 2) and isinstance(s, (qd.StructField, qd.Field))
    assert s.mass._levels == (12, ((0, 2, 80), (1, 2, 40))) or s.mass._levels[0] == 12
    s[0, 1].mass = 4
    s[0, 1].pos = [1, 2, 3]
    s[0, 1].pos[1] = 9
    s[1, 1].inner.a = 7
    s[1, 0].inner = {"a": 5, "b": 2.5}
    assert s.mass[0, 1] == 4 and list(s.pos[0, 1]) == [1, 9, 3] and s.inner.a[1, 1] == 7 and s.inner.b[1, 0] == 2.5
    s[0, 0] = s[0, 1]
    assert s[0, 0].to_dict() == s[0, 1].to_dict()
    with pytest.raises(AttributeError):
        s[0, 0].speed = 1
    with pytest.raises(RuntimeError, match="members"):
        s[0, 0] = {"mass": 1}
    arrays = s.to_numpy()
    other = qd.types.struct(**kind).field(shape=(2, 2), layout=qd.Layout.SOA)
    other.from_numpy(arrays)
    assert (other.pos.to_numpy() == s.pos.to_numpy()).all() and other.inner.a[1, 1] == 7
    assert other.pos._block is other.inner.b._block and other.mass._levels[1] == ((0, 2, 8), (1, 2, 4))
    s.fill(0)
    s.copy_from(other)
    assert s.mass[0, 1] == 4
    lone = qd.Struct.field({"x": qd.f32}, shape=())
    lone[None].x = 3
    assert lone.x[None] == 3


def test_struct_gradients():
    s = qd.Struct.field({"x": qd.f32, "v": qd.math.vec2}, shape=3, needs_grad=True)
    s.grad.x[1] = 2
    s.grad.v[0] = [1, 2]
    assert s.x[1] == 0 and s.x.grad[1] == 2 and list(s.v.grad[0]) == [1, 2] and s.grad.grad is None

    @qd.dataclass
    class Ball:
        pos: qd.math.vec3
        radius: qd.f32

    b = Ball.field(shape=2)
    b[1].radius = 4
    assert b[1].to_dict() == {"pos": [0, 0, 0], "radius": 4}


def test_gradients_in_trees():
    x, y = qd.field(qd.f32), qd.field(qd.i32)
    assert not x.has_grad() and x.grad.grad is None and y.grad is None
    qd.root.dense(qd.i, 3).place(x, y)
    early = qd.field(qd.f32, shape=2, order="i")
    qd.root.lazy_grad()
    late = qd.field(qd.f32, shape=2)
    assert x.has_grad() and not x.has_dual() and early.has_grad() and not late.has_grad()
    x.grad[1] = 2
    assert x._levels == (0, ((0, 3, 12),)) and x.grad._levels == (8, ((0, 3, 12),))
    early.grad.fill(1)
    with pytest.raises(RuntimeError, match="no allocation"):
        late.grad.fill(1)
    z = qd.Vector.field(2, qd.f64, shape=2, needs_dual=True, layout=qd.Layout.SOA)
    z.dual[1] = [1, 2]
    assert z.get_scalar_field(1).dual[1] == 2 and not z.has_grad()
    qd.root.lazy_dual()
    late.dual.fill(3)
    assert late.has_dual()


def test_numpy_and_dlpack():
    m = qd.Matrix.field(2, 1, qd.f32, shape=3)
    m.fill([[1], [2]])
    assert m.to_numpy().shape == (3, 2) and m.to_numpy(keep_dims=True).shape == (3, 2, 1)
    view = m.to_numpy(copy=False)
    assert m._generation == 0
    view[0] = 5
    assert m[0][1, 0] == 5 and (np.from_dlpack(m) == m.to_numpy(keep_dims=True)).all()
    del view
    gc.collect()
    assert m._generation
    x, y = qd.field(qd.f32), qd.field(qd.i8)
    qd.root.dense(qd.i, 3).place(x, y)
    assert y.to_numpy(copy=None).strides == (8,) and x.to_numpy(dtype=np.float64).dtype == np.float64
    y.to_numpy(copy=False)[...] = -1
    assert (x.to_numpy() == 0).all() and (np.asarray(y) == -1).all()
    with pytest.raises(ValueError, match="dtype"):
        x.to_numpy(dtype=np.float64, copy=False)
    with pytest.raises(BufferError, match="not in C order|strides"):
        x._load(x)  # asks for memory without gaps
    x.copy_from(y)
    assert (x.to_numpy() == -1).all()
    with pytest.raises(TypeError):
        x.copy_from(np.zeros(3))
    with pytest.raises(ValueError):
        x.copy_from(qd.field(qd.f32, shape=4))
    assert str(y) == "[-1 -1 -1]" and repr(y) == "<qd.field i8 (3,) [-1, -1, -1]>"


@needs("torch")
def test_torch():
    import torch

    v = qd.Vector.field(2, qd.f32, shape=3)
    v.from_torch(torch.arange(6.0).reshape(3, 2))
    assert v.to_torch().tolist() == v.to_numpy().tolist()
    shared = v.to_torch(copy=False)
    shared[0, 0] = 9
    assert v[0][0] == 9 and torch.from_dlpack(v.to_dlpack())[0, 0] == 9
    with pytest.raises(TypeError):
        v.from_torch(np.zeros((3, 2)))
    with pytest.raises(ValueError):
        v.from_torch(torch.zeros(2, 2))


def test_pickle_and_copy():
    x = qd.Vector.field(2, qd.i16, shape=(2, 3), order="ji", offset=(1, -1), name="x")
    x.from_numpy(np.arange(12).reshape(2, 3, 2))
    x.note = "kept"
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert other is not x and other.name == "x" and other.note == "kept" and other.offset == (1, -1)
        assert (other.to_numpy() == x.to_numpy()).all() and other._levels == x._levels
    y = qd.field(qd.f32, shape=2, needs_grad=True)
    y.grad.fill(3)
    assert pickle.loads(pickle.dumps(y)).grad.to_numpy().tolist() == [0, 0]
    w = qd.Vector.field(2, qd.f32, shape=3, layout=qd.Layout.SOA)
    w.fill([1, 2])
    assert (pickle.loads(pickle.dumps(w)).to_numpy() == [1, 2]).all()
    s = qd.Struct.field({"a": qd.f32, "b": qd.math.ivec2}, shape=2)
    s[1].b = [3, 4]
    assert list(pickle.loads(pickle.dumps(s)).b[1]) == [3, 4]


def test_tensors():
    t = qd.tensor(qd.f32, (2, 3), backend=qd.Backend.FIELD, layout=(1, 0), needs_grad=True)
    assert isinstance(t, qd.ScalarField) and isinstance(t, qd.Tensor) and t.layout == (1, 0) and t.has_grad()
    v = qd.Vector.tensor(3, qd.f32, 4, backend=qd.Backend.FIELD)
    assert isinstance(v, qd.VectorTensor) and not isinstance(v, qd.MatrixTensor) and isinstance(v, qd.MatrixField)
    assert isinstance(qd.Matrix.tensor(2, 2, qd.f32, 4, backend=qd.Backend.FIELD), qd.MatrixTensor)


def test_rescale_index():
    a, b = qd.field(qd.f32, shape=(8, 4)), qd.field(qd.f32, shape=(4, 8))
    assert list(qd.rescale_index(a, b, [5, 3])) == list(qd.rescale_index(a, b, qd.Vector([5, 3]))) == [2, 6]

    @qd.kernel
    def count():
        for I in qd.grouped(a):
            b[qd.rescale_index(a, b, I)] += 1

    count()
    assert (b.to_numpy() == [[2, 0] * 4] * 4).all()


def test_thousands():
    made = [qd.field(qd.f32, shape=(k % 7 + 1,)) for k in range(8000)]
    made[17].fill(1)
    assert made[16].to_numpy().sum() == 0 and made[17].to_numpy().sum() == len(made[17].to_numpy())


def test_no_memory_for_a_field():
    with pytest.raises((MemoryError, RuntimeError)):
        qd.field(qd.f64, shape=((1 << 31) - 1, (1 << 20)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.field(qd.f32, shape=2).fill(1)


@qd.kernel
def nothing():
    pass


def test_kernels_wait_for_places():
    nothing()
    x = qd.field(qd.f32, name="x")

    @qd.kernel
    def other():
        pass

    nothing()  # the last variant again: nothing is looked up
    with pytest.raises(RuntimeError, match=r"These field\(s\) are not placed: x"):
        other()
    qd.root.dense(qd.i, 2).place(x)
    other()
    y = qd.Vector.field(2, qd.f32, needs_grad=True, name="y")
    node = qd.root.dense(qd.i, 2).place(y)

    @qd.kernel
    def third():
        pass

    with pytest.raises(RuntimeError, match=r"requ(ire|rie) `needs_grad=True`.*not placed: y"):
        third()
    node.lazy_grad()
    third()
    m = qd.Vector.field(2, qd.i32, name="m")
    for k in range(2):
        qd.root.dense(qd.i, 3 + k).place(m.get_scalar_field(k))

    @qd.kernel
    def fourth():
        pass

    with pytest.raises(RuntimeError, match="different shapes.*m"):
        fourth()
    del m
    fourth()
    z = qd.field(qd.f32)
    qd.reset()
    nothing()
    assert z.name == ""


def lots(k):
    """Layouts that no earlier k has."""
    x, y = qd.field(qd.f32), qd.Vector.field(3, qd.i16)
    node = qd.root.dense(qd.ij, (4, k + 5))
    node.dense(qd.i, 3).place(x)
    node.place(y)
    x.fill(1)
    y[1, 1] = [1, 2, 3]
    y.to_numpy(copy=False)
    x.to_numpy()
    y.get_scalar_field(1).fill(2)
    w = qd.Vector.field(3, qd.f32, shape=k + 7, layout=qd.Layout.SOA, needs_grad=True)
    w.fill([1, 2, 3])
    w.from_numpy(np.zeros((k + 7, 3)))


def test_no_memory_at_any_allocation():
    lots(0)
    failed = k = left = 0
    while not left:
        k += 1
        _core.fail_allocation(k)
        try:
            lots(k)
        except MemoryError:
            failed += 1
        left = _core.fail_allocation(0)
    assert failed == k - 1 > 10


def test_fingerprints():
    x = qd.field(qd.f32, shape=(2, 3))
    same = qd.field(qd.f32, shape=(2, 3))
    first = qd.fingerprint(x)
    assert qd.fingerprint(same) == first
    same[1, 1] = 1
    others = [same, qd.field(qd.f64, shape=(2, 3)), qd.field(qd.f32, shape=6), qd.field(qd.f32, shape=(2, 3), order="ji"),
              qd.field(qd.f32, shape=(2, 3), offset=(1, 0)), qd.Vector.field(3, qd.f32, shape=2),
              qd.Vector.field(3, qd.i32, shape=2, layout=qd.Layout.SOA)]
    assert len({first, *map(qd.fingerprint, others)}) == len(others) + 1
    tiles, beside = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ij, 2).dense(qd.ij, 2).place(tiles, beside)
    before = qd.fingerprint(tiles)
    beside.fill(1)
    assert qd.fingerprint(tiles) == before
    tiles[3, 3] = 1
    assert qd.fingerprint(tiles) != before


def test_solvers_and_sums_of_fields():
    b, x = (qd.field(qd.f64, shape=(4, 4), offset=(2, -1)) for _ in range(2))
    b.fill(3)

    @qd.kernel
    def twice(v: qd.template(), out: qd.template()):
        for i, j in v:
            out[i, j] = 2 * v[i, j]

    for solve in (qd.linalg.MatrixFreeCG, qd.linalg.MatrixFreeBICGSTAB):
        x.fill(0)
        assert solve(qd.linalg.LinearOperator(twice), b, x) and np.allclose(x.to_numpy(), 1.5)
    with pytest.raises(RuntimeError, match="begin at"):
        qd.linalg.MatrixFreeCG(qd.linalg.LinearOperator(twice), b, qd.field(qd.f64, shape=(4, 4)))
    n = qd.field(qd.i32, shape=10)
    n.fill(1)
    qd.algorithms.PrefixSumExecutor(10).run(n)
    assert n.to_numpy().tolist() == list(range(1, 11))
    moved = qd.field(qd.i32, shape=10, offset=3)
    moved.fill(2)
    qd.algorithms.PrefixSumExecutor(10).run(moved)
    assert moved.to_numpy().tolist() == list(range(2, 22, 2))


@dataclasses.dataclass
class Held:
    x: qd.Tensor
    scale: qd.i32


@qd.kernel
def scaled(held: Held):
    for i in held.x:
        held.x[i] = i * held.scale


def test_tensors_in_dataclasses():
    for x in (qd.field(qd.i32, shape=4), qd.ndarray(qd.i32, 4), qd.tensor(qd.i32, 4, backend=qd.Backend.FIELD)):
        scaled(Held(x, 3))
        assert x.to_numpy().tolist() == [0, 3, 6, 9]


def test_what_is_no_field():
    cases = [
        (lambda: qd.field(qd.f32, shape=(2, 3), order=5), "order is a string of axes"),
        (lambda: qd.Vector.field(2, qd.f32, shape=3, layout=7), "layout is qd.Layout.AOS or qd.Layout.SOA, got 7"),
        (lambda: qd.Struct.field({"a": qd.f32}, shape=3, layout="SOA"), "got 'SOA'"),
        (lambda: qd.Vector.field(-1, qd.f32, shape=3), "of size -1 has no elements"),
        (lambda: qd.Matrix.field(2, -2, qd.f32, shape=3), "of size -2 has no elements"),
        (lambda: qd.types.struct().field(shape=3), "needs members"),
    ]
    for make, words in cases:
        with pytest.raises((qd.IngotRuntimeError, qd.IngotSyntaxError), match=words):
            make()
    for dtypes in ([qd.f32, qd.i32], [], [[qd.f32, qd.i32]], [[qd.f32], qd.i32]):
        with pytest.raises(AssertionError, match="correct dtype list"):
            qd.Matrix.field(2, 2, dtypes, shape=3)
    f = qd.field(qd.f32, shape=3)
    f.fill(2)
    assert f.to_numpy().sum() == 6
