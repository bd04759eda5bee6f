"""Arrays, fields and vectors outside of kernels: what NumPy, torch and Taichi have and they have not says what to
write instead; what is said works."""

import subprocess
import sys

import numpy as np
import pytest

import ingot as qd

OPERATORS = ["a + 1", "1 + a", "a - 1.5", "a * 2", "2 * a", "a / 2", "a // 2", "a % 2", "a @ a", "a & 1", "a | 1", "a ^ 1", "a ** 2", "-a", "[1] + a", "a + None"]


@pytest.fixture(params=["ndarray", "field", "Vector.field"])
def a(request):
    qd.init(arch=qd.interp)
    if request.param == "ndarray":
        return qd.ndarray(qd.f32, 3)
    return qd.field(qd.f32, 3) if request.param == "field" else qd.Vector.field(2, qd.f32, 3)


@pytest.mark.parametrize("text", OPERATORS)
def test_operators_are_numpys(a, text):
    with pytest.raises(TypeError, match=r"np.asarray\(a\)"):
        eval(text)


def test_the_other_side_of_an_operator_gets_its_turn(a):
    wanted = np.asarray(a) + np.ones(a.to_numpy().shape, np.float32)
    for found in (a + np.ones(wanted.shape), np.ones(wanted.shape) + a, a + np.float64(1), np.float64(1) + a):
        assert (found == wanted).all()

    class Other:
        def __radd__(self, other):
            return "mine"

    assert a + Other() == "mine"
    assert a == a and (a == 1) is False and a in [1, a] and bool(a)


@pytest.mark.parametrize("name, remedy", [("sum", r"np.asarray\(a\).sum"), ("T", r"np.asarray\(a\).T"), ("item", r"a\[i\]"), ("numpy", "to_numpy"),
                                          ("reshape", "np.asarray"), ("shap", "did you mean 'shape'"), ("length", r"a.shape\[0\]")])
def test_attributes_that_others_have(a, name, remedy):
    with pytest.raises(AttributeError, match=remedy):
        getattr(a, name)
    assert not hasattr(a, name) and getattr(a, name, 7) == 7
    with pytest.raises(AttributeError, match="has no attribute '_hidden'$"):
        a._hidden


def test_fields_show_their_values():
    qd.init(arch=qd.interp)
    f, late = qd.field(qd.i32, (2, 2)), qd.field(qd.f32)
    f.from_numpy(np.arange(4, dtype=np.int32).reshape(2, 2))
    assert repr(f) == "<qd.field i32 (2, 2)\n[[0, 1],\n [2, 3]]>"
    assert repr(late) == "<qd.field f32 not placed>"
    assert repr(qd.field(qd.f32, ())) == "<qd.field f32 () 0.>"
    assert len(repr(qd.field(qd.f32, 10000))) < 200
    assert len(f) == 2 and f.tolist() == [[0, 1], [2, 3]]
    qd.root.dense(qd.i, 2).place(late)
    assert late.tolist() == [0, 0] and len(late) == 2
    qd.init(arch=qd.interp)
    assert repr(f) == "<qd.field i32 destroyed>"
    program = "import ingot as qd; qd.init(); print(qd.field(qd.i32, (2, 3)).size, qd.field(qd.i32, ()).size)"  # ingot.compat makes it a method
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.split()[-2:] == ["6", "1"]


def test_numbers_of_arrays_without_axes():
    qd.init(arch=qd.interp)
    for one in (qd.field(qd.f32, ()), qd.ndarray(qd.f32, ())):
        one[()] = 2.5
        assert float(one) == 2.5 and int(one) == 2 and f"{float(one):.2f}" == "2.50"
        with pytest.raises(TypeError, match="without axes"):
            len(one) if hasattr(one, "snode") else float(qd.ndarray(qd.f32, 1))
        with pytest.raises(TypeError):
            range(one)
    with pytest.raises(qd.IngotRuntimeTypeError, match=r"an element, a\[i\]"):
        float(qd.field(qd.f32, 3))
    with pytest.raises(qd.IngotRuntimeTypeError, match="this one has 1"):
        qd.ndarray(qd.f32, 3)[0] = qd.ndarray(qd.f32, 3)

    @qd.kernel
    def twice(x: qd.f32) -> qd.f32:
        return 2 * x

    assert twice(qd.ndarray(qd.f32, ())) == 0
    with pytest.raises(qd.IngotArgumentError, match="must be a number"):
        twice(qd.ndarray(qd.f32, 1))


@pytest.mark.parametrize("call, remedy", [
    ("qd.Vector(1, 2, 3)", "one list"), ("qd.Vector(3)", "one list"), ("qd.Vector('ab')", "one list"), ("qd.Vector([1, 2]).length()", r"v.norm\(\)"),
    ("qd.Vector([1, 2]).normalize()", r"v.normalized\(\)"), ("qd.types.matrix(3, qd.f32)", "rows, columns and dtype"), ("qd.ndarray([1, 2])", "qd.from_numpy"),
    ("qd.ndarray(qd.f32)", r"qd.ndarray\(qd.f32, 10\)"), ("qd.ndarray(np.ones(3))", "qd.from_numpy"), ("qd.ndarray(qd.f32, 3).from_numpy([1, 2, 3])", "numpy.array"),
    ("qd.ndarray(qd.f32, 3).fill([1, 2, 3])", "from_numpy"), ("qd.ndarray(qd.f32, 3)[np.array([True, False, True])]", "np.asarray"),
    ("qd.ndarray(qd.f32, (3, 3))[0]", "np.asarray"), ("qd.root.dense(3, qd.i)", "axes come first"), ("qd.init(default_fp='f64')", "qd.f64"),
    ("qd.init(default_ip=qd.f32)", "qd.i32 or qd.i64")])
def test_calls_that_are_turned_about(call, remedy):
    qd.init(arch=qd.interp)
    with pytest.raises((TypeError, AttributeError, qd.IngotError), match=remedy):
        eval(call)
    qd.init(arch=qd.interp)


PEERS = """synchronize double launch arange linspace full zeros_like asarray vmap vectorize tid array1d device lax where maximum power norm eye grad
Tape AOT imread opengl lang snode warp mat33 quat to_torch ScopedTimer printf randf HashGrid render capture_launch get_device typed boolean objmode
stencil cfunc jitclass numpy value_and_grad jacobian custom_vjp debug matmul isnan logical_and dtype sort cumsum any einsum concatenate unique argmax
newaxis block_until_ready config seed""".split()


@pytest.mark.parametrize("name", PEERS)
def test_no_peer_is_answered_by_a_guess(name):
    with pytest.raises(AttributeError) as caught:
        getattr(qd, name)
    assert f"{name!r}: " in str(caught.value) and "did you mean" not in str(caught.value)


def test_structs_without_types():
    class Plain:
        x = 1.0

    with pytest.raises(qd.IngotSyntaxError, match="members have a type, x: qd.f32"):
        qd.dataclass(Plain)

    class Default:
        x: qd.f32 = 1.0

    with pytest.raises(qd.IngotSyntaxError, match=r"Default\(x=...\)"):
        qd.dataclass(Default)


def test_gradients_of_integers():
    qd.init(arch=qd.interp)
    with pytest.raises(qd.IngotRuntimeError, match="gradients are floats, such as qd.f32"):
        qd.field(qd.i32, 3, needs_grad=True)


def test_views_outside_of_kernels():
    qd.init(arch=qd.interp)
    a = qd.ndarray(qd.f32, 12)
    v = a[2:5]
    v.fill(7)
    assert v.ndim == 1 and repr(v) == "<qd.BufferView at 2 f32 (3,) [7., 7., 7.]>" and a.tolist()[1:6] == [0, 7, 7, 7, 0]
    b = v.copy()
    b[0] = 1
    assert isinstance(b, qd.Ndarray) and v.tolist() == [7, 7, 7] and b.tolist() == [1, 7, 7]
    assert len(a[3:3].copy()) == 0 and repr(a[3:3]).startswith("<qd.BufferView at 3 f32 (0,)")
    w = qd.Vector.ndarray(2, qd.f32, 4)[1:3]
    w.fill(3)
    assert w.copy().to_numpy().tolist() == [[3, 3], [3, 3]] and w.copy().element_shape == (2,)
