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


# ---- which arrays have gradients is asked ----


def run_square(x, y):
    x.from_numpy(np.arange(3, dtype=np.float32))
    square(x, y)
    if y.grad is not None:
        y.grad.fill(1)
    square.grad(x, y)


@pytest.mark.counts("variants")
def test_a_variant_for_each_set_of_gradients():
    with_, without = (qd.ndarray(qd.f32, 3, needs_grad=yes) for yes in (True, False))
    y = qd.ndarray(qd.f32, 1, needs_grad=True)
    run_square(with_, y)
    assert with_.grad.to_numpy().tolist() == [0, 2, 4]
    run_square(without, y)
    assert square.grad._variants == 2
    run_square(with_, y)
    assert with_.grad.to_numpy().tolist() == [0, 4, 8]
    assert square.grad._variants == 2


def test_a_gradient_of_a_field_that_appears(target):
    x, y = qd.field(qd.f32, shape=3), qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def f():
        for i in x:
            y[None] += x[i] * x[i]

    x.from_numpy(np.arange(3, dtype=np.float32))
    f()
    y.grad[None] = 1
    f.grad()
    f.grad()
    qd.root.lazy_grad()
    assert not x.grad.to_numpy().any()
    f.grad()
    assert x.grad.to_numpy().tolist() == [0, 2, 4]


def test_a_field_that_is_replaced_by_one_with_a_gradient(target):
    @qd.data_oriented
    class Sim:
        @qd.kernel
        def loss(self):
            for i in self.x:
                self.y[None] += self.x[i] * self.x[i]

    sim = Sim()
    sim.y = qd.field(qd.f32, shape=(), needs_grad=True)
    for needs_grad in (False, True, False, True):
        sim.x = qd.field(qd.f32, shape=3, needs_grad=needs_grad)
        sim.x.from_numpy(np.arange(3, dtype=np.float32))
        sim.loss()
        sim.y.grad[None] = 1
        sim.loss.grad()
        if needs_grad:
            assert sim.x.grad.to_numpy().tolist() == [0, 2, 4]


def test_gradients_of_every_kind_of_field(target):
    x = qd.field(qd.f32, shape=2, needs_grad=True)
    v = qd.Vector.field(3, qd.f32, shape=2, needs_grad=True)
    w = qd.Matrix.field(2, 2, qd.f32, shape=2, needs_grad=True, layout=qd.Layout.SOA)
    p = qd.types.struct(a=qd.f32, b=qd.types.vector(2, qd.f32)).field(shape=2, needs_grad=True)
    y = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def f():
        for i in x:
            y[None] += 1 * x[i] + 2 * v[i][1] + 3 * w[i][1, 0] + 4 * p[i].a + 5 * p[i].b[1]

    y.grad[None] = 1
    f.grad()
    assert x.grad.to_numpy().tolist() == [1, 1]
    assert v.grad.to_numpy().tolist() == [[0, 2, 0]] * 2
    assert w.grad.to_numpy().tolist() == [[[0, 0], [3, 0]]] * 2
    assert p.grad.a.to_numpy().tolist() == [4, 4]
    assert p.grad.b.to_numpy().tolist() == [[0, 5]] * 2


def test_arrays_found_by_funcs(target):
    x, y = (qd.field(qd.f32, shape=shape, needs_grad=True) for shape in (3, ()))

    @qd.func
    def twice(a: qd.template(), i):
        return a[i] * 2 + x[i]

    @qd.kernel
    def f():
        for i in x:
            y[None] += twice(x, i)

    y.grad[None] = 1
    f.grad()
    assert x.grad.to_numpy().tolist() == [3, 3, 3]


def test_arrays_in_dataclasses(target):
    import dataclasses

    @dataclasses.dataclass
    class State:
        x: qd.types.ndarray(qd.f32, 1)
        k: qd.f32

    @qd.kernel
    def f(s: State, y: qd.types.ndarray()):
        for i in s.x:
            y[0] += s.k * s.x[i]

    s = State(qd.ndarray(qd.f32, 3, needs_grad=True), 4.0)
    y = qd.ndarray(qd.f32, 1, needs_grad=True)
    y.grad.fill(1)
    f.grad(s, y)
    assert s.x.grad.to_numpy().tolist() == [4, 4, 4]
    s.x = qd.ndarray(qd.f32, 3)
    f.grad(s, y)


def test_an_annotation_can_leave_the_gradient_alone():
    @qd.kernel
    def f(x: qd.types.ndarray(needs_grad=False), y: qd.types.ndarray()):
        for i in x:
            y[0] += x[i]

    x, y = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (3, 1))
    y.grad.fill(1)
    f.grad(x, y)
    assert not x.grad.to_numpy().any()


def test_kernels_that_use_gradients_have_none():
    @qd.kernel
    def f(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[0] += x.grad[i]

    x, y = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (3, 1))
    f(x, y)
    with pytest.raises(RuntimeError, match="Cannot automatically differentiate through a grad tensor"):
        f.grad(x, y)


def test_what_is_refused_has_a_place():
    @qd.kernel
    def f(x: qd.types.ndarray()) -> qd.f32:
        return x[0] * 2

    with pytest.raises(qd.IngotCompilationError, match=r"test_ad_host\.py:\d+:\d+: (.|\n)*return x\[0\] \* 2"):
        f.grad(qd.ndarray(qd.f32, 1, needs_grad=True))


# ---- qd.stop_grad ----


def test_stop_grad(target):
    x, y = (qd.field(qd.f32, shape=shape, needs_grad=True) for shape in (3, ()))

    @qd.func
    def own(i):
        return x[i]

    @qd.func
    def given(a: qd.template(), i):
        return a[i]

    @qd.kernel
    def f(a: qd.template()):
        for i in range(3):
            y[None] += 100 * x[i]
            if i < 5:
                qd.stop_grad(x)
                y[None] += x[i] + own(i) + given(x, i) + a[i]
            y[None] += 10 * x[i]
        for i in range(3):
            y[None] += x[i] + own(i) + given(x, i)

    f(x)
    assert y[None] == 0
    y.grad[None] = 1
    f.grad(x)
    assert x.grad.to_numpy().tolist() == [113] * 3
    other = qd.field(qd.f32, shape=3, needs_grad=True)
    f.grad(other)
    assert other.grad.to_numpy().tolist() == [1] * 3


STOPPED = True


@pytest.mark.parametrize("stopped", [True, False])
def test_stop_grad_in_what_is_chosen_while_compiling(stopped, monkeypatch):
    """qd.static leaves no block of its own; loops and other branches do."""
    monkeypatch.setitem(globals(), "STOPPED", stopped)
    x, y, z = (qd.field(qd.f32, shape=(), needs_grad=True) for _ in range(3))

    @qd.kernel
    def k():
        if qd.static(STOPPED):
            qd.stop_grad(x)
        for i in range(1):
            y[None] += 3 * x[None]
            for _ in qd.static(range(2)):
                qd.stop_grad(z)
            y[None] += 5 * z[None]
        for i in range(1):
            y[None] += 7 * z[None]

    y.grad[None] = 1
    k.grad()
    assert x.grad[None] == (0 if stopped else 3) and z.grad[None] == 7


def test_stop_grad_of_vectors_and_structs():
    v = qd.Vector.field(2, qd.f32, shape=2, needs_grad=True, layout=qd.Layout.SOA)
    p = qd.types.struct(a=qd.f32, b=qd.types.vector(2, qd.f32)).field(shape=2, needs_grad=True)
    y = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def f():
        for i in v:
            qd.stop_grad(v)
            qd.stop_grad(p)
            y[None] += v[i][0] + p[i].a + p[i].b[1]

    y.grad[None] = 1
    f.grad()
    assert not v.grad.to_numpy().any() and not p.grad.a.to_numpy().any() and not p.grad.b.to_numpy().any()


def test_stop_grad_is_of_fields():
    @qd.kernel
    def f(x: qd.types.ndarray()):
        qd.stop_grad(x[0])

    with pytest.raises(qd.IngotCompilationError, match="stop_grad takes a field or an array"):
        f(qd.ndarray(qd.f32, 1))
    assert qd.stop_grad(3) is None


def test_loops_in_loops_can_be_refused():
    qd.init(ad_stack_experimental_enabled=False)
    x, y = (qd.field(qd.f32, shape=shape, needs_grad=True) for shape in (3, ()))

    @qd.kernel
    def f():
        for i in x:
            v = x[i]
            for _ in range(3):
                v *= v
            y[None] += v

    f()
    with pytest.raises(qd.IngotCompilationError, match="Cannot use non static range in Backwards mode"):
        f.grad()


# ---- random numbers ----


@qd.kernel
def noisy(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * qd.random(qd.f32)


def test_the_reverse_draws_the_same_numbers(target):
    x, y = (qd.ndarray(qd.f32, 5, needs_grad=True) for _ in range(2))
    x.fill(1)
    noisy(x, y)
    noisy(x, y)
    y.grad.fill(1)
    noisy.grad(x, y)
    assert x.grad.to_numpy().tolist() == y.to_numpy().tolist()
    x.grad.fill(0)
    y.grad.fill(1)
    noisy.grad(x, y)
    assert x.grad.to_numpy().tolist() == y.to_numpy().tolist()


def test_the_reverse_of_no_launch_is_refused():
    @qd.kernel
    def fresh(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * qd.random(qd.f32)

    x, y = (qd.ndarray(qd.f32, 5, needs_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="needs the random numbers of the launch"):
        fresh.grad(x, y)
    fresh(x, y)
    fresh.grad(x, y)


# ---- the cache ----

WARM = """
import ingot as qd, numpy as np
qd.init()
@qd.kernel
def f(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[0] += x[i] * x[i]
x, y = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (3, 1))
x.fill(2)
f(x, y)
y.grad.fill(1)
f.grad(x, y)
f.dual(x, y)
print(x.grad.to_numpy().tolist(), qd._core.counters()["lowerings"], [line.split()[0] for line in qd.explain(f.grad)])
"""


@pytest.mark.counts("lowerings")
def test_gradients_are_kept_on_disk(cache_dir, tmp_path):
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text(WARM)
    lines = [
        subprocess.run([sys.executable, program], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
        for _ in range(2)
    ]
    assert lines[0].startswith("[4.0, 4.0, 4.0] 3 ['first']")
    assert lines[1].startswith("[4.0, 4.0, 4.0] 0 ['first']")
