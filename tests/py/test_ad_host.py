"""Derivatives of kernels as objects: k.grad and k.dual, of kernels and of methods."""

import copy
import pickle

import numpy as np
import pytest

import ingot as qd
from ingot.fingerprint import fingerprint


@pytest.fixture(autouse=True)
def _start():
    qd.init()


@qd.kernel
def square(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[0] += x[i] * x[i]


@qd.data_oriented
class Sim:
    def __init__(self, scale):
        self.scale = scale

    @qd.kernel
    def step(self, a: qd.types.ndarray()):
        for i in a:
            a[i] += self.scale


sim = Sim(3)


def test_companions_are_kernels_of_their_own():
    assert repr(square.grad) == "<ingot kernel square.grad>"
    assert repr(square.dual) == "<ingot kernel square.dual>"
    assert square.grad is square.grad and square.grad is not square.dual
    assert square.grad.__name__ == "square"
    assert square.grad.__wrapped__ is square.__wrapped__
    assert copy.copy(square.grad) is square.grad


@pytest.mark.parametrize("mode", ["grad", "dual"])
@pytest.mark.parametrize("again", ["grad", "dual"])
def test_derivatives_have_no_derivatives(mode, again):
    with pytest.raises(AttributeError, match=rf"square\.{mode} is a derivative itself: it has no \.{again}"):
        getattr(getattr(square, mode), again)
    assert not hasattr(square.grad, "grad")


def test_calls_that_do_not_fit_name_the_derivative():
    with pytest.raises(qd.IngotCompilationError, match="Missing argument 'y' of square.grad"):
        square.grad(np.zeros(3, np.float32))
    with pytest.raises(qd.IngotCompilationError, match="Unexpected argument 'z' of square.grad"):
        square.grad(np.zeros(3, np.float32), z=1)


def test_not_in_python():
    qd.init(arch=qd.python)
    with pytest.raises(RuntimeError, match="square.grad: derivatives need a compiled kernel"):
        square.grad(np.zeros(3, np.float32), np.zeros(1, np.float32))


def test_graph_kernels_are_refused():
    @qd.kernel(graph=True)
    def turn(x: qd.types.ndarray()):
        for i in x:
            x[i] = x[i] * 2.0

    with pytest.raises(qd.IngotCompilationError, match="graph kernels are not differentiated"):
        turn.grad(np.zeros(3, np.float32))


def test_pickled_by_way_of_the_kernel():
    assert pickle.loads(pickle.dumps(square.grad)) is square.grad
    assert pickle.loads(pickle.dumps(square.dual)) is square.dual


def test_fingerprints_differ():
    prints = {fingerprint(k) for k in (square, square.grad, square.dual, sim.step.__func__)}
    assert len(prints) == 4
    assert fingerprint(square.grad) == fingerprint(square.grad)


# ---- methods ----


def test_bound_kernels_pass_self():
    a = np.zeros(3, np.float32)
    step = sim.step
    step(a)
    step(a=a)
    step(*[a], **{})
    sim.step(a)
    assert a.tolist() == [12, 12, 12]
    assert step.__self__ is sim and step.__func__ is Sim.step
    assert step.__name__ == "step" and step.__doc__ is None
    assert step == sim.step and step != Sim(3).step and hash(step) == hash(sim.step)
    assert repr(step).startswith("<bound <ingot kernel Sim.step> of ")


def test_gradients_of_methods_are_bound():
    grad = sim.step.grad
    assert grad.__self__ is sim and grad.__func__ is Sim.step.grad
    assert repr(grad).startswith("<bound <ingot kernel Sim.step.grad> of ")
    assert sim.step.dual.__self__ is sim
    with pytest.raises(AttributeError, match="is a derivative itself"):
        grad.grad
    with pytest.raises(qd.IngotCompilationError, match="Missing argument 'a' of Sim.step.grad"):
        grad()


def test_bound_kernels_are_pickled():
    again = pickle.loads(pickle.dumps(sim.step))
    assert again.__func__ is Sim.step and again.__self__.scale == 3
    again = pickle.loads(pickle.dumps(sim.step.grad))
    assert again.__func__ is Sim.step.grad and again.__self__.scale == 3


def test_bound_kernels_have_fingerprints():
    assert len({fingerprint(Sim(k).step) for k in (1, 2)} | {fingerprint(Sim(1).step.grad)}) == 3


def test_bound_kernels_are_collected():
    import gc
    import weakref

    one = Sim(1)
    one.kept = one.step
    gone = weakref.ref(one)
    weakref.ref(one.kept)
    del one
    gc.collect()
    assert gone() is None


def test_kernels_with_derivatives_are_collected():
    import gc
    import weakref

    @qd.kernel
    def f(x: qd.types.ndarray()):
        x[0] = 1

    f.grad
    f.dual
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


# ---- gradients of fields ----


def test_gradients_asked_for_before_lazy_grad():
    x = qd.field(qd.f32, shape=3)
    assert not x.has_grad()
    x.grad
    qd.root.lazy_grad()
    assert x.has_grad()
    x.grad.fill(2)
    assert x.grad.to_numpy().tolist() == [2, 2, 2]
