"""Arrays whose elements are vectors and matrices: those of NumPy, torch and Ingot under one
annotation, without a copy, and what the annotations refuse. Kernels run natively and on the
interpreter."""

import itertools
import pickle

import numpy as np
import pytest
from conftest import needs

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
vec3, vec4 = qd.math.vec3, qd.math.vec4
mat2 = qd.types.matrix(2, 2, qd.f32)


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return TARGETS[request.param]


@qd.kernel
def stretch(a: qd.types.ndarray(dtype=vec3, ndim=1), by: qd.f32):
    for i in a:
        a[i] = a[i] * by + vec3(0, i, 0)
        a[i].z += 1


@qd.kernel
def squared(a: qd.types.ndarray(dtype=mat2, ndim=2)):
    for i, j in a:
        a[i, j] = a[i, j] @ a[i, j]


def test_numpy_vectors_are_used_in_place():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    want = x * 2
    want[:, 1] += np.arange(4)
    want[:, 2] += 1
    address = x.ctypes.data
    own = qd.Vector.ndarray(3, qd.f32, 4)
    own.from_numpy(x)
    stretch(x, 2.0)
    assert x.tolist() == want.tolist() and x.ctypes.data == address
    before = qd._core.counters()["variants"]
    stretch(own, 2.0)  # the same code
    assert qd._core.counters()["variants"] == before
    assert own.to_numpy().tolist() == want.tolist()


def test_numpy_matrices():
    z = np.random.default_rng(1).random((3, 2, 2, 2), np.float32)
    want = z @ z
    squared(z)
    assert np.allclose(z, want)
    base = np.full((2, 3, 2, 2), 2, np.float32)
    squared(base.transpose(1, 0, 2, 3))  # any order of the axes outside of the elements
    assert (base == 8).all()


def test_memory_aligned_to_the_scalar_only():
    @qd.kernel
    def add(a: qd.types.ndarray(dtype=vec4, ndim=1)):
        for i in a:
            a[i] += vec4(1, 2, 3, 4)

    x = np.zeros(4 * 12 + 4, np.uint8)[4:].view(np.float32).reshape(3, 4)
    add(x)
    assert x.tolist() == [[1, 2, 3, 4]] * 3


@needs("torch")
def test_torch_tensors():
    import torch

    t = torch.ones(4, 3)
    stretch(t, 3.0)
    assert t.tolist() == [[3, 3 + i, 4] for i in range(4)]


def test_shape_of_the_elements_left_open():
    @qd.kernel
    def total(a: qd.types.ndarray(element_dim=1), b: qd.types.ndarray(qd.f32, 1, element_shape=(2, 2))) -> qd.f32:
        t = 0.0
        for i in range(a.shape[0]):
            t += a[i].sum()
        return t + b[0].trace()

    b = np.ones((1, 2, 2), np.float32)
    assert total(np.ones((2, 5), np.float32), b) == 12
    assert total(np.ones((3, 4), np.float32), b) == 14
    assert total(qd.Vector.ndarray(4, qd.f32, 3), b) == 2


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: np.ones((4, 2), np.float32), r"required element_shape=\(3,\), array with element shape of \(2,\)"),
        (lambda: np.ones(4, np.float32), "required array has ndim=1 element_dim=1, array with 1 dimensions"),
        (lambda: np.ones((2, 2, 3), np.float32), "element_dim=1, array with 3 dimensions"),
        (lambda: np.ones((4, 3)), "required array has dtype=f32, array with dtype=f64"),
        (lambda: np.asfortranarray(np.ones((4, 3), np.float32)), "its last axis must be the innermost"),
        (lambda: np.ones((4, 0), np.float32), "its last axis must be the innermost"),
        (lambda: qd.ndarray(qd.f32, 4), r"required element type: VectorType\[3, f32\], but f32"),
        (lambda: qd.Vector.ndarray(2, qd.f32, 4), r"VectorType\[3, f32\], but VectorType\[2, f32\]"),
        (lambda: qd.Matrix.ndarray(3, 1, qd.f32, 4), r"VectorType\[3, f32\], but MatrixType\[3,1, f32\]"),
        (lambda: qd.Vector.ndarray(3, qd.i32, 4), r"VectorType\[3, f32\], but VectorType\[3, i32\]"),
        (lambda: qd.Vector.ndarray(3, qd.f32, (4, 4)), "required ndim=1, but 2d ndarray"),
    ],
)
def test_arrays_with_other_elements(make, text):
    with pytest.raises(qd.IngotArgumentError, match=text):
        stretch(make(), 1.0)


def test_vectors_where_scalars_are_wanted():
    @qd.kernel
    def clear(a: qd.types.ndarray(qd.f32, 2)):
        for i, j in a:
            a[i, j] = 0

    with pytest.raises(qd.IngotArgumentError, match=r"Expect element type f32 for argument a, but get \[Tensor \(3\) i32\]"):
        clear(qd.Vector.ndarray(3, qd.i32, (2, 2)))
    with pytest.raises(qd.IngotArgumentError, match=r"but get \[Tensor \(2, 3\) f32\]"):
        clear(qd.Matrix.ndarray(2, 3, qd.f32, (2, 2)))


@pytest.mark.parametrize(
    "args, error, text",
    [
        ({"element_dim": 3}, ValueError, "Only scalars, vectors, and matrices"),
        ({"element_dim": 1, "element_shape": (2, 2)}, ValueError, "element_dim is 1"),
        ({"dtype": vec3, "element_dim": 1}, TypeError, "leave out element_dim"),
    ],
)
def test_annotations_that_contradict_themselves(args, error, text):
    with pytest.raises(error, match=text):
        qd.types.ndarray(**args)


def test_elements_of_another_shape_are_not_stored():
    @qd.kernel
    def put(a: qd.types.ndarray(qd.types.vector(3, qd.i32), 1)):
        for i in a:
            a[i] = [1, 2]

    with pytest.raises(qd.IngotTypeError, match=r"cannot assign '\[Tensor \(2\) i32\]' to '\[Tensor \(3\) i32\]'"):
        put(qd.Vector.ndarray(3, qd.i32, 2))


# ---- boundary="clamp" ------------------------------------------------------------------------


def test_clamped_indices(target):
    @qd.func
    def at(a, i, j):
        return a[i, j]

    @qd.kernel
    def read(a: qd.types.ndarray(boundary="clamp"), i: qd.i32, j: qd.i64) -> qd.i32:
        return at(a, i, j) * 100 + a[i, j]

    @qd.kernel
    def write(a: qd.types.ndarray(boundary="clamp"), i: qd.i32):
        a[i, 0] = -1

    for debug in (False, True):
        qd.init(arch=target, debug=debug)
        x = qd.ndarray(qd.i32, (3, 4))
        x.from_numpy(np.arange(12, dtype=np.int32).reshape(3, 4))
        for i in (-9, -1, 0, 1, 2, 3, 9):
            for j in (-9, 0, 3, 4, 2**40):
                assert read(x, i, j) == 101 * x[min(max(i, 0), 2), min(max(j, 0), 3)]
        write(x, 7)
        assert x[2, 0] == -1


def test_clamped_elements():
    @qd.kernel
    def vector(a: qd.types.ndarray(boundary="clamp"), i: qd.i32) -> qd.f32:
        return a[9][i]

    @qd.kernel
    def plain(a: qd.types.ndarray(), i: qd.i32) -> qd.f32:
        return a[1][i]

    x = qd.Vector.ndarray(3, qd.f32, 2)
    x[1] = [4, 5, 6]
    assert [vector(x, i) for i in (-5, 0, 1, 2, 3)] == [4, 4, 5, 6, 6] and plain(x, 1) == 5


# ---- kinds of arrays -------------------------------------------------------------------------


def test_kinds_of_arrays():
    s, v = qd.ndarray(qd.i32, 3), qd.Vector.ndarray(3, qd.f32, (2, 4))
    m = qd.Matrix.ndarray(2, 3, qd.f64, 5)
    kinds = (qd.ScalarNdarray, qd.VectorNdarray, qd.MatrixNdarray)
    for array, kind in zip((s, v, m), kinds):
        assert [isinstance(array, k) for k in kinds] == [k is kind for k in kinds]
        assert isinstance(array, qd.Ndarray) and not isinstance(array, int)
    assert (v.n, v.m, v.element_shape, v.shape) == (3, 1, (3,), (2, 4))
    assert (m.n, m.m, m.element_shape) == (2, 3, (2, 3))
    assert v.element_type.element_type() is qd.f32 and m.element_type.shape() == [2, 3]
    assert isinstance(qd.VectorNdarray(3, qd.f32, (2,)), qd.VectorNdarray)
    assert isinstance(qd.MatrixNdarray(2, 2, qd.f32, 4), qd.MatrixNdarray)
    assert qd.ScalarNdarray(qd.f32, (2, 2)).shape == (2, 2) and qd.VectorNdarray.fill is qd.Ndarray.fill
    kind = qd.ndarray(qd.i32, (2, 3), layout=(1, 0), needs_grad=False).get_type()
    assert (kind.element_type, kind.shape, kind.needs_grad) == (qd.i32, (3, 2), False)


def test_elements_from_python():
    v = qd.Vector.ndarray(2, qd.f32, (2, 2))
    v.fill(qd.Vector([1.0, 2.0]))
    assert isinstance(v[1, 1], qd.Vector) and v[1, 1].to_list() == v[1, 1].tolist() == [1, 2]
    v[0, 1] = [5, 6]
    v[1, 0][1] = 9
    assert v.to_numpy().tolist() == [[[1, 2], [5, 6]], [[1, 9], [1, 2]]]
    m = qd.Matrix.ndarray(2, 2, qd.i32, 3)
    m.fill([[1, 2], [3, 4]])
    m.from_numpy(m.to_numpy() * 2)
    assert m[2].to_list() == [[2, 4], [6, 8]]


# ---- layouts ----------------------------------------------------------------------------------


@qd.kernel
def count(a: qd.types.ndarray()):
    for I in qd.grouped(a):
        a[I] = qd.Vector([0, 1000, 2000]) + I[0] * 100 + I[1] * 10 + I[2]


@qd.kernel
def reverse(a: qd.types.ndarray(), b: qd.types.ndarray()):
    for i, j, k in a:
        b[i, j, k] = a[i, j, k].zyx * 2
        b[i, j, k][1] += 1


@pytest.mark.host_memory
@pytest.mark.parametrize("layout", list(itertools.permutations(range(3))), ids=str)
def test_layout_of_vectors(layout):
    """The axes of the array are ordered, the elements of a vector stay together."""
    a, b = (qd.Vector.ndarray(3, qd.i32, (2, 3, 4), layout=x) for x in (layout, layout[::-1]))
    assert a.shape == (2, 3, 4) and (a.layout or (0, 1, 2)) == layout
    i, j, k = np.indices((2, 3, 4))
    want = np.stack([i * 100 + j * 10 + k + x for x in (0, 1000, 2000)], -1)
    count(a)
    assert (a.to_numpy() == want).all() and a[1, 2, 3].to_list() == [123, 1123, 2123]
    view = a.to_numpy(copy=False)
    in_memory = sorted(range(3), key=lambda axis: -view.strides[axis])
    assert tuple(in_memory) == layout and view.strides[3] == 4
    reverse(a, b)
    twice = want[..., ::-1] * 2 + [0, 1, 0]
    assert (b.to_numpy() == twice).all()
    a[0, 1, 2] = [7, 8, 9]
    assert view[0, 1, 2].tolist() == [7, 8, 9]
    b.from_numpy(want)
    assert b[1, 0, 3].to_list() == [103, 1103, 2103]
    a.copy_from(b)
    back = pickle.loads(pickle.dumps(a))
    assert (a.to_numpy() == want).all()
    assert back.layout == a.layout and (back.to_numpy() == want).all()


@pytest.mark.host_memory
def test_layout_of_matrices():
    a = qd.Matrix.ndarray(2, 2, qd.f32, (3, 4), layout=(1, 0), needs_grad=True)
    z = np.random.default_rng(2).random((3, 4, 2, 2), np.float32)
    a.from_numpy(z)
    squared(a)
    assert np.allclose(a.to_numpy(), z @ z)
    assert a.layout == a.grad.layout == (1, 0) and a.to_numpy(copy=False).strides == (16, 48, 8, 4)


@needs("torch")
@pytest.mark.host_memory
def test_layout_seen_by_torch():
    import torch

    a = qd.Vector.ndarray(3, qd.i32, (2, 3, 4), layout=(2, 0, 1))
    count(a)
    assert (a.to_torch().numpy() == a.to_numpy()).all()
    shared = torch.utils.dlpack.from_dlpack(a)
    assert shared.stride() == (9, 3, 18, 1) and (shared.numpy() == a.to_numpy()).all()
