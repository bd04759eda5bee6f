"""Dense fields from Python: making them, elements, whole fields, bad input."""

import ingot as qd
import numpy as np
import pytest
from conftest import needs


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=qd.cpu)


def test_elements():
    x = qd.field(qd.f32, shape=(3, 4))
    assert x.shape == (3, 4) and x.dtype is qd.f32 and x[2, 3] == 0
    x[1, 2] = 5
    assert x[1, 2] == 5 and x[[1, 2]] == 5 and x[np.int64(1), np.int8(2)] == 5
    assert x.to_numpy().sum() == 5
    x.fill(2)
    assert (x.to_numpy() == np.full((3, 4), 2, np.float32)).all() and x.to_numpy().dtype == np.float32


def test_no_axes():
    s = qd.field(int, shape=())
    s[None] = 3
    assert s[None] == 3 and s[()] == 3 and s.shape == () and s.to_numpy() == 3
    v = qd.Vector.field(2, qd.f64, ())
    v[None] = [1, 2]
    assert list(v[None]) == [1, 2]


def test_vectors_and_matrices():
    v = qd.Vector.field(3, qd.f32, shape=(2, 2), order="ji")
    v[0, 1] = [1, 2, 3]
    v[1, 0][2] = 9
    assert v.to_numpy()[0, 1].tolist() == [1, 2, 3] and v[1, 0][2] == 9 and (v.n, v.m, v.ndim) == (3, 1, 1)
    a = np.arange(12).reshape(2, 2, 3)
    v.from_numpy(a)
    assert (v.to_numpy() == a).all() and list(v[1, 0]) == [6, 7, 8]
    assert v._levels == (0, ((1, 2, 24), (0, 2, 12)))
    m = qd.Matrix.field(2, 3, qd.i64, shape=5)
    m.fill([[1, 2, 3], [4, 5, 6]])
    assert (m.to_numpy() == np.arange(1, 7).reshape(2, 3)).all() and m[4][1, 2] == 6
    m.fill(7)
    assert (m.to_numpy() == 7).all()
    w = qd.field(qd.math.vec2, shape=3)
    assert isinstance(w, qd.MatrixField) and isinstance(w, qd.Field) and not isinstance(w, qd.ScalarField)


def test_offset():
    o = qd.field(int, shape=4, offset=-2)
    o[-2], o[1] = 7, 8
    assert o.to_numpy().tolist() == [7, 0, 0, 8] and o.offset == (-2,)
    for k in (-3, 2):
        with pytest.raises(IndexError, match=f"index {k} is out of bounds for axis 0 .* -2 to 1"):
            o[k]


@pytest.mark.parametrize("dtype", [qd.u1, qd.i8, qd.u16, qd.i32, qd.u64, qd.f16, qd.f32, qd.f64])
@pytest.mark.parametrize("order", ["ijk", "kij", "jki"])
def test_copies(dtype, order):
    x = qd.field(dtype, shape=(3, 5, 2), order=order)
    a = np.arange(30).reshape(3, 5, 2) % 2
    x.from_numpy(a)
    assert (x.to_numpy() == a).all()
    assert [x[i, j, k] for i in range(3) for j in range(5) for k in range(2)] == a.ravel().tolist()
    x.from_numpy(a[::-1].astype(np.float32))
    assert (x.to_numpy() == a[::-1]).all()


def test_fill_integers_with_floats():
    x, v = qd.field(qd.i32, shape=3), qd.Vector.field(2, qd.u8, shape=3)
    x.fill(2.0)
    v.fill([3.0, 4])
    assert (x.to_numpy() == 2).all() and (v.to_numpy() == [3, 4]).all()
    for value in (1.5, float("nan"), float("inf")):
        with pytest.raises(TypeError, match="integer"):
            x.fill(value)
    with pytest.raises(OverflowError, match="does not fit in i32"):
        x.fill(1e30)
    assert (x.to_numpy() == 2).all()


def test_large():
    x = qd.Vector.field(3, qd.f64, shape=(300, 70), order="ji")
    x.fill([1, 2, 3])
    assert (x.to_numpy() == [1, 2, 3]).all()


def test_part_of_a_vector_field():
    v = qd.Vector.field(3, qd.f32, shape=4)
    before = v._generation
    part = v._part(1)
    part.fill(5)
    assert v.to_numpy()[0].tolist() == [0, 5, 0] and v._generation != before
    assert part._generation == v._generation
    with pytest.raises(IndexError):
        v._part(3)


def test_generations():
    x, y = qd.field(int, shape=3), qd.field(int, shape=3)
    seen = {x._generation, y._generation}
    for change in (lambda: x.fill(1), lambda: x.__setitem__(0, 1), lambda: x.from_numpy(np.zeros(3))):
        change()
        seen.add(x._generation)
    assert len(seen) == 5


def test_gradients():
    x = qd.field(qd.f32, shape=3, needs_grad=True, needs_dual=True)
    x.grad[1] = 4
    assert x[1] == 0 and x.grad[1] == 4 and x.dual.shape == (3,)
    with pytest.raises(RuntimeError, match="needs_grad"):
        qd.field(qd.i32, shape=3, needs_grad=True)


BAD = [
    (dict(shape=0), "should be positive"),
    (dict(shape=(3, -1)), "should be positive"),
    (dict(shape=1 << 40), "larger than"),
    (dict(shape=(1 << 30,) * 3), "more bytes than there are addresses"),
    (dict(shape=(1,) * 13), "at most 12 axes"),
    (dict(shape="12"), "integers"),
    (dict(shape=2.5), "integers"),
    (dict(shape=(2, 3), order="i"), "dimensionality"),
    (dict(shape=(2, 3), order="ii"), "must be different"),
    (dict(shape=(2, 3), order="ik"), "Invalid axis"),
    (dict(shape=(2, 3), offset=1), "dimensionality"),
    (dict(shape=2, offset=(1 << 40,)), "32 bits"),
    (dict(shape=2, offset=(0.5,)), "integers"),
    (dict(offset=1), "shape cannot be None"),
    (dict(order="i"), "shape cannot be None"),
    (dict(shape=2, name=3), "text"),
]


@pytest.mark.parametrize("options, message", BAD, ids=[m for _, m in BAD])
def test_bad_input(options, message):
    with pytest.raises(Exception, match=message) as e:
        qd.field(qd.f32, **options)
    assert isinstance(e.value, (qd.IngotError, TypeError))


def test_bad_element_type():
    for kind in ("f32", None, 3, qd.types.vector(3)):
        with pytest.raises(TypeError):
            qd.field(kind, shape=2)


def test_bad_indices():
    x = qd.field(qd.f32, shape=(3, 4))
    for key in (1, (1, 2, 3), None):
        with pytest.raises(IndexError, match="2d field indexed with"):
            x[key]
    for key in ((0, slice(None)), (0, "a"), (0, 1.5)):
        with pytest.raises(TypeError, match="integers"):
            x[key]
    for key in ((3, 0), (0, -1), (0, 4), (0, 1 << 70)):
        with pytest.raises(IndexError, match="out of bounds"):
            x[key] = 1
    with pytest.raises(TypeError, match="deleted"):
        del x[0, 0]
    with pytest.raises(TypeError):
        x[0, 0] = "a"
    with pytest.raises(ValueError, match="does not match"):
        x.from_numpy(np.zeros((4, 3)))
    assert (x.to_numpy() == 0).all()


def test_never_placed():
    x = qd.field(qd.f32, name="speed")
    for use in (lambda: x[0], lambda: x.fill(1), lambda: x.to_numpy(), lambda: x.shape):
        with pytest.raises(RuntimeError, match="field speed has no allocation"):
            use()


def test_destroyed_while_used():
    """An index, or a value, that destroys the field: an error, or a write to memory that nobody has."""
    class Index:
        def __index__(self):
            x._block.destroy()
            return 1

    x = qd.field(qd.f32, shape=4, name="speed")
    with pytest.raises(RuntimeError, match="field speed was destroyed"):
        x[Index()]
    x = qd.field(qd.i32, shape=4)
    x[0] = Index()
    for use in (lambda: x[0], lambda: x.fill(1), lambda: x.to_numpy()):
        with pytest.raises(RuntimeError, match="was destroyed"):
            use()
    assert x.shape == (4,)


def test_grouped_as_python():
    """Under arch=qd.python indices of qd.grouped are vectors, also along one axis."""
    qd.init(arch=qd.python)
    try:
        a, b = qd.field(qd.i32, shape=6), qd.field(qd.i32, shape=(3, 4))
        o, v = qd.field(qd.i32, shape=(3, 4), offset=(1, 2)), qd.Vector.field(3, qd.f32, shape=(3, 4))

        @qd.kernel
        def one(a: qd.template()):
            for I in qd.grouped(a):
                a[I] = I[0] * 10

        @qd.kernel
        def two(b: qd.template(), o: qd.template(), v: qd.template()):
            for I in qd.grouped(b):
                b[I] = I.sum() + (I * 2)[1]
                o[I + qd.Vector([1, 2])] = I.x - I.y
                v[I] = qd.Vector([float(I[0]), float(I[1]), float(I.dot(I))])

        one(a)
        two(b, o, v)
        i, j = np.indices((3, 4))
        assert (a.to_numpy() == np.arange(6) * 10).all()
        assert (b.to_numpy() == i + 3 * j).all() and (o.to_numpy() == i - j).all()
        assert (v.to_numpy() == np.stack([i, j, i * i + j * j], 2)).all() and v[1, 2, 2].item() == 5
    finally:
        qd.init(arch=qd.cpu)


@needs("torch")
def test_elements_from_torch():
    import torch

    v, m = qd.Vector.field(3, qd.f32, shape=4), qd.Matrix.field(2, 2, qd.f32, shape=2, layout=qd.Layout.SOA)
    a = qd.Vector.ndarray(3, qd.f32, 2)
    v[2] = a[1] = torch.tensor([1.0, 2, 3])
    m[1] = torch.tensor([[1, 2], [3, 4]])
    v[0] = torch.tensor(5)  # a number
    assert v.to_numpy()[[0, 2]].tolist() == [[5, 5, 5], [1, 2, 3]] and a.to_numpy()[1].tolist() == [1, 2, 3]
    assert m.to_numpy()[1].tolist() == [[1, 2], [3, 4]]
    for wrong in (torch.ones(2), torch.ones(3, 3), torch.ones(0)):
        with pytest.raises((qd.IngotRuntimeTypeError, ValueError)):
            v[1] = wrong
    assert v.to_numpy()[1].tolist() == [0, 0, 0]
