"""qd.tensor and qd.Tensor: arrays under their other name, as values and as annotations."""

import pickle

import pytest

import ingot as qd


@pytest.fixture(autouse=True)
def init():
    qd.init(arch=qd.cpu)


def test_a_tensor_is_an_ndarray():
    t = qd.tensor(qd.f32, (3, 4))
    assert type(t) is qd.Ndarray and isinstance(t, qd.Tensor)
    assert t._unwrap() is t and qd.wrap(t) is t and qd.Tensor(t) is t
    assert not isinstance(t, qd.VectorTensor) and not isinstance(5, qd.Tensor)
    assert qd.tensor(qd.i32, 8, backend=1).shape == (8,)
    with pytest.raises(TypeError, match="requires an array"):
        qd.Tensor(42)


def test_layout_is_that_of_the_memory():
    t = qd.tensor(qd.i32, (2, 3), layout=(1, 0))
    assert (t.shape, t.layout) == ((2, 3), (1, 0)) and "(1, 0)" in repr(t)
    assert qd.tensor(qd.i32, (2, 3), layout=(0, 1)).layout is None

    @qd.kernel
    def fill(x: qd.Tensor):
        for i, j in qd.ndrange(x.shape[0], x.shape[1]):
            x[i, j] = 10 * i + j

    fill(t)
    assert t[1, 2] == 12
    back = pickle.loads(pickle.dumps(t))
    assert back.layout == (1, 0) and back[1, 2] == 12


@pytest.mark.parametrize("make, text", [
    (lambda **o: qd.Vector.tensor(3, qd.f32, (2, 4), **o), "qd.Vector.ndarray"),
    (lambda **o: qd.Matrix.tensor(3, 2, qd.f32, (2, 4), **o), "qd.Matrix.ndarray"),
    (lambda **o: qd.tensor(qd.math.vec3, (2, 4), **o), "qd.ndarray")])
def test_elements_without_layout(make, text):
    """As in the reference; the message tells what does have one."""
    with pytest.raises(TypeError, match=f"layout.*{text}.*orders the axes"):
        make(layout=(1, 0))
    with pytest.raises(TypeError, match="does not accept order=.*layout="):
        make(order="ji")
    assert make().layout is None


def test_relabelled_memory():
    t = qd.tensor(qd.f32, (2, 3), needs_grad=True)
    t[0, 2] = 5
    t._relabel((1, 0))
    assert t.shape == t.grad.shape == (3, 2) and t[2, 0] == 5
    view = memoryview(t)
    with pytest.raises(BufferError):
        t._relabel((0, 1))
    del view


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"layout": (0, 1, 2)}, ValueError, "layout has 3 entries"),
        ({"layout": (0, 0)}, ValueError, "not a permutation"),
        ({"order": "ji"}, TypeError, "layout="),
        ({"offset": 1}, TypeError, "unexpected keyword"),
        ({"backend": 42}, ValueError, "backend=42"),
    ],
)
def test_refused(options, error, text):
    with pytest.raises(error, match=text):
        qd.tensor(qd.f32, (4, 5), **options)
    with pytest.raises(TypeError, match="makes a new tensor"):
        qd.tensor(qd.tensor(qd.f32, 4), 4)


@qd.func
def shifted(x: qd.Tensor, i):
    r = 0.0
    if qd.static(x is not None):
        r = x[i]
    return r


@qd.kernel
def add(out: qd.types.NDArray[qd.f32, 1], bias: qd.Tensor):
    for i in range(out.shape[0]):
        out[i] = i + shifted(bias, i)


def test_none_for_a_tensor():
    out, bias = qd.tensor(qd.f32, 4), qd.tensor(qd.f32, 4)
    bias.fill(100)
    for _ in range(2):
        add(out, bias)
        assert out[3] == 103
        add(out, None)
        assert out[3] == 3
    assert add._variants == 2
    with pytest.raises(qd.IngotError, match="must be an array"):
        add(out, 5)


def test_gradients_in_kernels():
    @qd.kernel
    def fill(x: qd.Tensor):
        for i in range(4):
            x[i] = i
            x.grad[i] = 10 * i

    x = qd.tensor(qd.f32, 4, needs_grad=True)
    fill(x)
    assert (x[3], x.grad[3]) == (3, 30) and x.has_grad()
    with pytest.raises(qd.IngotError):
        fill(qd.tensor(qd.f32, 4))
    fill(x)


def test_elements_that_are_vectors_and_matrices():
    v = qd.Vector.tensor(3, qd.f32, 4)
    m = qd.Matrix.tensor(2, 2, qd.f32, (4,), needs_grad=True)
    assert isinstance(v, qd.VectorTensor) and not isinstance(v, qd.MatrixTensor)
    assert isinstance(m, qd.MatrixTensor) and m.has_grad() and isinstance(m, qd.Tensor)

    @qd.kernel
    def fill(x: qd.Tensor, y: qd.Tensor):
        for i in range(4):
            x[i][2] = i
            y[i][1, 0] = i + 1

    fill(v, m)
    assert v[3][2] == 3 and m[3][1, 0] == 4
    for make in (lambda: qd.Vector.tensor(3, qd.f32, 4, layout=(0,)), lambda: qd.Matrix.tensor(2, 2, qd.f32, 4, order="i")):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError, match="compound"):
        qd.tensor(qd.types.vector(3, qd.f32), 4, layout=(0,))
