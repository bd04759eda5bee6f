"""qd.ad: Tape, gradients by hand, forward mode, comparison with differences, torch."""

import numpy as np
import pytest

import ingot as qd
from conftest import needs


@pytest.fixture(autouse=True)
def _start():
    qd.init()


@qd.kernel
def square(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[0] += x[i] * x[i]


def pair(n=4, dtype=qd.f32):
    x = qd.ndarray(dtype, n, needs_grad=True)
    y = qd.ndarray(dtype, 1, needs_grad=True)
    x.from_numpy(np.arange(n, dtype=np.float32 if dtype == qd.f32 else np.float64))
    return x, y


# ---- recording ----


def test_launches_are_recorded_in_order():
    x, y = pair()
    tape = qd.ad.Tape()
    with tape:
        square(x, y)
        square(y=y, x=x)
    square(x, y)
    assert tape.calls == [(square, (x, y)), (square, (x, y))]


def test_inner_tapes_record_for_themselves():
    x, y = pair()
    outer, inner = qd.ad.Tape(), qd.ad.Tape()
    with outer:
        square(x, y)
        with inner:
            square(x, y)
        square(x, y)
    assert len(outer.calls) == 2 and len(inner.calls) == 1


class Outside:
    factor = 2
    numbers = [3.0]
    array = None


@qd.data_oriented
class Owner:
    def __init__(self):
        self.factor, self.array = 2.0, None

    @qd.kernel
    def add(self, y: qd.types.ndarray()):
        for i in range(3):
            y[0] += self.factor * self.array[i]


@qd.kernel
def add_outside(y: qd.types.ndarray()):
    for i in range(3):
        y[0] += Outside.factor * Outside.numbers[0] * Outside.array[i]


def filled():
    array = qd.ndarray(qd.f32, 3, needs_grad=True)
    array.fill(1.0)
    return array


def change_factor():
    Outside.factor = 5


def change_number():
    Outside.numbers[0] = 4.0


def change_array():
    Outside.array = filled()


@pytest.mark.parametrize("change", [change_factor, change_number, change_array])
@pytest.mark.parametrize("budget", [None, 1 << 20])
def test_what_changes_before_the_gradient_is_refused(change, budget, monkeypatch):
    monkeypatch.setattr(Outside, "factor", 2)
    monkeypatch.setattr(Outside, "numbers", [3.0])
    monkeypatch.setattr(Outside, "array", filled())
    y = qd.ndarray(qd.f32, 1, needs_grad=True)
    how = {} if budget is None else {"state": [Outside.array], "memory_budget": budget}
    with qd.ad.Tape(loss=y, **how):
        add_outside(y)
        add_outside(y)
    assert Outside.array.grad.to_numpy().tolist() == [12, 12, 12]
    with pytest.raises(qd.IngotRuntimeError, match="was assigned between the launch and its gradient"):
        with qd.ad.Tape(loss=y, **how):
            add_outside(y)
            change()
            add_outside(y)


def test_members_that_change_before_the_gradient_are_refused():
    owner = Owner()
    owner.array = filled()
    y = qd.ndarray(qd.f32, 1, needs_grad=True)
    for name, value in (("factor", 3.0), ("factor", 3), ("array", filled())):
        with pytest.raises(qd.IngotRuntimeError, match="was assigned between the launch and its gradient"):
            with qd.ad.Tape(loss=y):
                owner.add(y)
                setattr(owner, name, value)
    with qd.ad.Tape(loss=y):
        owner.add(y)
        owner.unread = 4
    assert owner.array.grad.to_numpy().tolist() == [3, 3, 3]


def test_launches_of_several_kinds_find_what_they_read():
    """Each has code of its own; the gradient of the first is not compared with the code of the last."""
    x, y = pair()
    x64, y64 = pair(dtype=qd.f64)
    with qd.ad.Tape() as tape:
        square(x, y)
        square(x64, y64)
        square(x, y)
    y.grad.fill(1.0)
    y64.grad.fill(1.0)
    tape.grad()
    assert x.grad.to_numpy().tolist() == [0, 4, 8, 12] and x64.grad.to_numpy().tolist() == [0, 2, 4, 6]


def test_other_threads_are_not_recorded():
    import threading

    x, y = pair()
    with qd.ad.Tape() as tape:
        other = threading.Thread(target=square, args=(x, y))
        other.start()
        other.join()
    assert tape.calls == []
    assert y[0] == 14


def test_defaults_and_keywords_are_filled_in():
    @qd.kernel
    def scaled(x: qd.types.ndarray(), *, a: qd.f32 = 2.0):
        for i in x:
            x[i] *= a

    x, _ = pair()
    with qd.ad.Tape() as tape:
        scaled(x)
        scaled(x, a=3.0)
    assert [args[1] for _, args in tape.calls] == [2.0, 3.0]


def test_methods_are_recorded_with_their_object():
    @qd.data_oriented
    class Sim:
        @qd.kernel
        def step(self, x: qd.types.ndarray()):
            for i in x:
                x[i] += 1

    sim, (x, _) = Sim(), pair()
    with qd.ad.Tape() as tape:
        sim.step(x)
        later = sim.step
        later(x)
    assert tape.calls == [(Sim.step, (sim, x))] * 2


def test_nothing_is_recorded_after_an_error():
    x, y = pair()
    tape = qd.ad.Tape(loss=y)
    with pytest.raises(ZeroDivisionError):
        with tape:
            1 / 0
    square(x, y)
    assert tape.calls == [] and not tape.gradient_evaluated


def test_a_failed_launch_is_not_recorded():
    x, y = pair()
    with qd.ad.Tape() as tape:
        with pytest.raises(qd.IngotError):
            square(x)
        with pytest.raises(qd.IngotError):
            square(x, "y")
    assert tape.calls == []


# ---- the loss ----


def test_the_loss_must_be_one_number_with_a_gradient():
    for loss, words in [
        (qd.field(qd.f32, shape=3, needs_grad=True), "0-D field"),
        (qd.field(qd.f32, shape=()), "Gradients of loss are not allocated"),
        (qd.ndarray(qd.f32, 2, needs_grad=True), "only one element"),
        (qd.Vector.ndarray(2, qd.f32, 1, needs_grad=True), "only one element"),
        (qd.ndarray(qd.f32, 1), "Gradients of loss are not allocated"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            with qd.ad.Tape(loss=loss):
                pass
    with pytest.raises(TypeError, match="is a field, an ndarray or a torch tensor"):
        with qd.ad.Tape(loss=3.0):
            pass


def test_the_loss_starts_at_zero():
    loss = qd.field(qd.f32, shape=(), needs_grad=True)
    loss[None] = 5
    loss.grad[None] = 7
    with qd.ad.Tape(loss=loss):
        assert loss[None] == 0 and loss.grad[None] == 0
    assert loss.grad[None] == 1


def test_entered_and_evaluated_once():
    _, y = pair()
    tape = qd.ad.Tape(loss=y)
    with pytest.raises(AssertionError, match="must be entered"):
        tape.grad()
    with tape:
        pass
    with pytest.raises(AssertionError, match="only once"):
        tape.grad()
    with pytest.raises(AssertionError, match="only once"):
        with tape:
            pass


# ---- gradients of all fields ----


def test_clear_all_gradients():
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    v = qd.Vector.field(2, qd.f32, shape=3, needs_grad=True, layout=qd.Layout.SOA)
    p = qd.types.struct(a=qd.f32, b=qd.types.vector(2, qd.f32)).field(shape=2, needs_grad=True)
    placed = qd.field(qd.f32)
    qd.root.dense(qd.i, 4).place(placed, placed.grad)
    lazy = qd.field(qd.f32, shape=2)
    qd.root.lazy_grad()
    nd = qd.ndarray(qd.f32, 2, needs_grad=True)
    fields = [x.grad, v.grad, placed.grad, lazy.grad, p.grad.a, p.grad.b]
    for field in (x, placed, *fields, nd.grad):
        field.fill(3)
    qd.ad.clear_all_gradients()
    for field in fields:
        assert not field.to_numpy().any()
    assert x[0] == 3 and placed[1] == 3 and nd.grad[1] == 3


def test_destroyed_gradients_are_not_cleared():
    builder = qd.FieldsBuilder()
    x = qd.field(qd.f32)
    builder.dense(qd.i, 4).place(x, x.grad)
    tree = builder.finalize()
    qd.ad.clear_all_gradients()
    tree.destroy()
    qd.ad.clear_all_gradients()


# ---- gradients by hand ----


def by_hand(calls):
    @qd.ad.grad_replaced
    def forward(x, y, by=2):
        """Doc."""
        square(x, y)
        return by

    @qd.ad.grad_for(forward)
    def backward(x, y, by=2):
        calls.append(by)

    return forward, backward


def test_gradients_by_hand():
    seen = []
    forward, backward = by_hand(seen)
    x, y = pair()
    with qd.ad.Tape(loss=y) as tape:
        assert forward(x, y) == 2
        forward(x, y, by=3)
    assert seen == [3, 2] and y[0] == 28
    assert tape.calls == [(forward, (x, y))] * 2
    assert forward.__doc__ == "Doc." and forward.grad is backward
    forward(x, y)
    forward.grad(x, y, by=9)
    assert seen == [3, 2, 9]


def test_gradients_by_hand_are_asked_for():
    @qd.ad.grad_replaced
    def forward(x, y):
        square(x, y)

    x, y = pair()
    with pytest.raises(RuntimeError, match="forward has no gradient"):
        with qd.ad.Tape(loss=y):
            forward(x, y)
    with pytest.raises(RuntimeError, match="must be decorated by qd.ad.grad_replaced"):
        qd.ad.grad_for(lambda: 0)(print)
    with pytest.raises(RuntimeError, match="instead of a kernel"):
        qd.ad.grad_for(square)(print)


def test_no_grad():
    @qd.ad.no_grad
    def quiet(x, y):
        square(x, y)

    x, y = pair()
    x.grad.fill(0)
    with qd.ad.Tape(loss=y):
        quiet(x, y)
    quiet.grad(x, y)
    assert y[0] == 14 and not x.grad.to_numpy().any()


def test_recording_goes_on_after_an_error_in_a_function():
    @qd.ad.grad_replaced
    def bad():
        raise ValueError

    x, y = pair()
    with qd.ad.Tape() as tape:
        with pytest.raises(ValueError):
            bad()
        square(x, y)
    assert len(tape.calls) == 1


# ---- gradients ----


def test_ndarrays(target):
    x, y = pair()
    with qd.ad.Tape(loss=y):
        square(x, y)
        square(x, y)
    assert y[0] == 28 and x.grad.to_numpy().tolist() == [0, 4, 8, 12]
    with qd.ad.Tape(y):
        square(x, y)
    assert x.grad.to_numpy().tolist() == [0, 6, 12, 18]  # ndarrays keep theirs


def test_fields_start_at_zero_each_time(target):
    x, loss = (qd.field(qd.f32, shape=shape, needs_grad=True) for shape in (4, ()))
    between = qd.field(qd.f32, shape=4, needs_grad=True)

    @qd.kernel
    def first():
        for i in x:
            between[i] = x[i] * x[i]

    @qd.kernel
    def second():
        for i in x:
            loss[None] += between[i] * 3

    x.from_numpy(np.arange(4, dtype=np.float32))
    for _ in range(2):
        with qd.ad.Tape(loss=loss):
            first()
            second()
        assert x.grad.to_numpy().tolist() == [0, 6, 12, 18]
    with qd.ad.Tape(loss=loss, clear_gradients=False):
        second()
    assert between.grad.to_numpy().tolist() == [3, 3, 3, 3]
    assert x.grad.to_numpy().tolist() == [0, 6, 12, 18]


def test_overwritten_results_have_no_gradient(target):
    x, loss = (qd.ndarray(qd.f32, shape, needs_grad=True) for shape in ((), ()))

    @qd.kernel
    def put(x: qd.types.ndarray(), loss: qd.types.ndarray(), k: qd.f32):
        loss[None] = k * x[None]

    with qd.ad.Tape(loss=loss):
        for k in (1.0, 2.0, 4.0):
            put(x, loss, k)
    assert x.grad[None] == 4


def test_without_a_loss():
    x, y = pair()
    with qd.ad.Tape() as tape:
        square(x, y)
    y.grad.fill(10)
    tape.grad()
    assert x.grad.to_numpy().tolist() == [0, 20, 40, 60]


def test_the_random_numbers_of_each_launch(target):
    x, y, loss = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (4, 4, 1))

    @qd.kernel
    def noisy(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] += x[i] * qd.random(qd.f32)

    @qd.kernel
    def total(y: qd.types.ndarray(), loss: qd.types.ndarray()):
        for i in y:
            loss[0] += y[i]

    x.fill(1)
    with qd.ad.Tape(loss=loss):
        for _ in range(3):
            noisy(x, y)
        total(y, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), y.to_numpy(), rtol=1e-6)


def test_grad_check():
    x = qd.field(qd.f64, shape=(2, 3), needs_grad=True)
    loss = qd.field(qd.f64, shape=(), needs_grad=True)

    @qd.kernel
    def f():
        for i, j in x:
            loss[None] += qd.sin(x[i, j]) * x[i, j]

    x.from_numpy(np.linspace(0.1, 2, 6).reshape(2, 3))
    with qd.ad.Tape(loss=loss, grad_check=[x, loss]):
        f()
    at = x.to_numpy()
    np.testing.assert_allclose(x.grad.to_numpy(), np.sin(at) + at * np.cos(at))
    np.testing.assert_allclose(loss[None], (np.sin(at) * at).sum())

    @qd.ad.grad_replaced
    def wrong():
        f()

    @qd.ad.grad_for(wrong)
    def wrong_grad():
        for i in range(2):
            for j in range(3):
                x.grad[i, j] += 1

    with pytest.raises(AssertionError, match="Grad check failed"):
        with qd.ad.Tape(loss=loss, grad_check=[x]):
            wrong()


def test_grad_check_of_ndarrays_that_change():
    x, y = pair(3, qd.f64)

    @qd.kernel
    def grow(x: qd.types.ndarray()):
        for i in x:
            x[i] *= 3

    with qd.ad.Tape(loss=y, grad_check=[x]):
        grow(x)
        square(x, y)
    assert x.to_numpy().tolist() == [0, 3, 6]


def test_grad_check_is_for_doubles():
    x, y = pair()
    with pytest.raises(AssertionError, match="Only f64"):
        with qd.ad.Tape(loss=y, grad_check=[x]):
            square(x, y)


# ---- comparison with differences ----


@pytest.mark.parametrize("dtype", [qd.f32, qd.f64])
def test_check_grad(dtype):
    x, y = pair(5, dtype)
    x.grad.fill(7)
    report = qd.ad.check_grad(square, x, y)
    assert report.ok and len(report.entries) == 6
    assert x.grad.to_numpy().tolist() == [7] * 5 and y[0] == 0
    assert repr(report).startswith("gradients of square: 6 entries compared, right")


def test_check_grad_finds_what_is_wrong():
    x, y = pair(5, qd.f64)

    @qd.ad.grad_replaced
    def f(x, y):
        square(x, y)

    @qd.ad.grad_for(f)
    def f_grad(x, y):
        square.grad(x, y)
        x.grad[3] += 0.5

    with pytest.raises(qd.IngotAssertionError, match=r"argument 0\[3\]: gradient"):
        qd.ad.check_grad(f, x, y)


def test_check_grad_of_fields_and_random_numbers():
    x, loss = (qd.field(qd.f64, shape=shape, needs_grad=True) for shape in ((3, 4), ()))

    @qd.kernel
    def f():
        for i, j in x:
            loss[None] += qd.random(qd.f64) * qd.exp(x[i, j])

    assert qd.ad.check_grad(f, entries=5).ok


# ---- forward mode ----


def test_forward_mode(target):
    x, y = (qd.field(qd.f32, shape=shape, needs_dual=True) for shape in (5, 5))

    @qd.kernel
    def f():
        y[1] += x[3] * x[4]

    x.from_numpy(np.arange(5, dtype=np.float32))
    with qd.ad.FwdMode(loss=y, param=x, seed=[0, 0, 0, 1, 1]):
        f()
    assert y.dual.to_numpy().tolist() == [0, 7, 0, 0, 0]
    assert y[1] == 12 and not x.dual.to_numpy().any()
    f()
    assert y.dual[1] == 7


def test_forward_mode_of_one_number():
    x, y = (qd.field(qd.f64, shape=(), needs_dual=True) for _ in range(2))

    @qd.kernel
    def f():
        y[None] = qd.sin(x[None])

    x[None] = 0.5
    with qd.ad.FwdMode(loss=y, param=x):
        f()
    assert y.dual[None] == pytest.approx(np.cos(0.5))


def test_forward_mode_says_what_it_needs():
    x, y = (qd.field(qd.f32, shape=3, needs_dual=True) for _ in range(2))
    for param, seed, words in [
        (x, None, "`seed` is not set"),
        (x, [1], "seed has 1 numbers, param 3"),
        (qd.field(qd.f32, shape=3), [1, 1, 1], "Duals of param are not allocated"),
        (qd.Vector.field(2, qd.f32, shape=3), [1, 1, 1], "fields of numbers"),
    ]:
        with pytest.raises((RuntimeError, AssertionError), match=words):
            with qd.ad.FwdMode(loss=y, param=param, seed=seed):
                pass


# ---- torch ----


@needs("torch")
@pytest.mark.host_memory
def test_torch_tensors(target):
    import torch

    x = torch.arange(4.0, requires_grad=True)
    y = torch.zeros(1, requires_grad=True)
    with qd.ad.Tape(loss=y):
        square(x, y)
    assert x.grad.tolist() == [0, 2, 4, 6] and y.item() == 14
    x.grad = None
    with qd.ad.Tape(loss=y):
        square(x, y)
    assert x.grad.tolist() == [0, 2, 4, 6]


@needs("torch")
def test_torch_vectors():
    import torch

    @qd.kernel
    def norms(x: qd.types.ndarray(qd.types.vector(3, qd.f32), 1), y: qd.types.ndarray()):
        for i in x:
            y[0] += x[i].dot(x[i])

    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.zeros(1, requires_grad=True)
    with qd.ad.Tape(loss=y):
        norms(x, y)
    assert x.grad.tolist() == [[0, 2, 4], [6, 8, 10]]


@needs("torch")
def test_torch_function():
    import torch

    @qd.kernel
    def scale(x: qd.types.ndarray(), k: qd.f64, y: qd.types.ndarray()):
        for i, j in x:
            y[i, j] += x[i, j] * x[i, j] * k

    f = qd.ad.torch_function(scale, {"y": lambda x, k: x.shape})
    x = torch.rand(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: f(x, 2.0), x)
    assert torch.autograd.gradcheck(lambda x: f(x.t(), k=2.0), x)  # not contiguous
    out = f(f(x, 2.0), 3.0)
    out.sum().backward()
    torch.testing.assert_close(x.grad, 12 * 4 * x.detach() ** 3)
    fixed = torch.rand(3, 4, dtype=torch.double)
    assert not f(fixed, 1.0).requires_grad or f(fixed, 1.0).grad_fn is not None
    with pytest.raises(TypeError, match=r"takes \(x, k\)"):
        f(x)
    with pytest.raises(TypeError, match="has no parameter 'z'"):
        qd.ad.torch_function(scale, {"z": (1,)})


@needs("torch")
def test_torch_function_with_a_constant_input():
    import torch

    @qd.kernel
    def dot(a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray(), n: qd.types.ndarray()):
        for i in a:
            y[0] += a[i] * b[i]
            n[0] += 1

    f = qd.ad.torch_function(dot, {"y": (1,), "n": ((1,), torch.int32)})
    a = torch.arange(3.0, requires_grad=True)
    b = torch.full((3,), 2.0)
    y, n = f(a, b)
    y.backward()
    assert a.grad.tolist() == [2, 2, 2] and b.grad is None and n.item() == 3


def test_validation():
    x, b, loss = (qd.field(qd.f32, shape=shape, needs_grad=True) for shape in (3, (), ()))

    @qd.kernel
    def bad():
        loss[None] += x[1] * b[None]
        b[None] += 100

    @qd.kernel
    def good():
        loss[None] += x[1] * b[None]

    @qd.ad.no_grad
    def quiet():
        bad()

    with qd.ad.Tape(loss=loss, validation=True):
        quiet()
        good()
        good()
    with pytest.raises(qd.IngotAssertionError, match="between the launch and its gradient(.|\\n)*x\\[1\\] \\* b"):
        with qd.ad.Tape(loss=loss, validation=True):
            good()
            quiet()
    with pytest.raises(qd.IngotAssertionError, match="is overwritten here(.|\\n)*b\\[None\\] \\+= 100"):
        with qd.ad.Tape(loss=loss, validation=True):
            bad()


def test_a_function_of_a_constant():
    x, y = pair(64, qd.f64)

    @qd.kernel
    def f(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[0] += 1.5 ** x[i] + qd.log(x.shape[0] * 0.0 + 2.0)

    x.fill(2)
    with qd.ad.Tape(loss=y):
        f(x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), 1.5**2 * np.log(1.5))


# ---- lambdas ----

FUNCTIONS = [lambda x: x, lambda x: x * x, lambda x: 0.4 * x * x - 3, lambda x: qd.sin(x) / (
    x + 2), lambda x, k=3: x**k]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_lambdas_with_values_of_the_run_time(number):
    function = FUNCTIONS[number]
    x, y = pair(4, qd.f64)

    @qd.kernel
    def total(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[0] += function(x[i] + 1)

    with qd.ad.Tape(loss=y):
        total(x, y)
    import math

    at = np.arange(4) + 1.0
    expected = [
        (at, [1] * 4),
        (at * at, 2 * at),
        (0.4 * at * at - 3, 0.8 * at),
        (np.sin(at) / (at + 2), np.cos(at) / (at + 2) - np.sin(at) / (at + 2) ** 2),
        (at**3, 3 * at**2),
    ][number]
    assert math.isclose(y[0], expected[0].sum(), rel_tol=1e-12)
    np.testing.assert_allclose(x.grad.to_numpy(), expected[1])


def test_kernels_change_no_fingerprint_of_a_lambda():
    from ingot.fingerprint import fingerprint

    function = lambda x: x * 2  # noqa: E731
    before = fingerprint(function, variant="lenient")

    @qd.kernel
    def f(x: qd.types.ndarray()):
        for i in x:
            x[i] = function(x[i])

    f(pair(2)[0])
    assert fingerprint(function, variant="lenient") == before


def test_lambdas_that_are_replaced_are_seen():
    scale = 2.0
    function = lambda x: x * scale  # noqa: E731

    @qd.kernel
    def f(x: qd.types.ndarray()):
        for i in x:
            x[i] = function(x[i])

    x, _ = pair(2)
    x.fill(1)
    f(x)
    scale = 5.0
    f(x)
    function = lambda x: x + 1  # noqa: E731
    f(x)
    assert x.to_numpy().tolist() == [11, 11]
    assert scale == 5.0


# ---- copies of the state ----


@qd.kernel
def push(x: qd.types.ndarray(), v: qd.types.ndarray(), k: qd.f64):
    for i in x:
        v[i] += -k * qd.sin(x[i])


@qd.kernel
def move(x: qd.types.ndarray(), v: qd.types.ndarray(), dt: qd.f64):
    for i in x:
        x[i] += dt * v[i]


@qd.kernel
def energy(x: qd.types.ndarray(), loss: qd.types.ndarray()):
    for i in range(1):
        for j in range(x.shape[0]):
            loss[0] += x[j] * x[j]


def swing(steps, **options):
    x, v, loss = (qd.ndarray(qd.f64, n, needs_grad=True) for n in (3, 3, 1))
    x.from_numpy(np.array([0.1, 0.5, 2.0]))
    with qd.ad.Tape(loss=loss, state=[x, v], **options):
        for k in range(steps):
            push(x, v, 0.1 + 0.001 * k)
            move(x, v, 0.1)
        energy(x, loss)
    return [a.to_numpy().tolist() for a in (x.grad, v.grad, x, v, loss)]


def test_state_is_put_back():
    def loss_of(x0, steps=20):
        x, v = np.array(x0), np.zeros(3)
        for k in range(steps):
            v += -(0.1 + 0.001 * k) * np.sin(x)
            x = x + 0.1 * v
        return (x * x).sum(), x

    found = swing(20)
    at = np.array([0.1, 0.5, 2.0])
    np.testing.assert_allclose(found[2], loss_of(at)[1])
    np.testing.assert_allclose(found[4], [loss_of(at)[0]])
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-6
        difference = (loss_of(at + step)[0] - loss_of(at - step)[0]) / 2e-6
        assert found[0][i] == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("copies", [None, 1, 2, 3, 100])
def test_state_that_a_launch_writes_and_reads(copies):
    """Its gradient reads again what the launch wrote, not what it found."""

    @qd.kernel
    def powers(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * x[i]
            z[i] += y[i] * y[i]

    @qd.kernel
    def twice(x: qd.types.ndarray(), y: qd.types.ndarray(), z: qd.types.ndarray()):
        for i in x:
            y[i] = 2.0 * x[i]
        for i in x:
            z[i] += y[i] * y[i] * y[i]

    x, y, z, loss = (qd.ndarray(qd.f64, n, needs_grad=True) for n in (3, 3, 3, 1))
    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    y.fill(100)
    with qd.ad.Tape(loss=loss, state=[y, z], memory_budget=copies and 48 * copies):
        powers(x, y, z)
        twice(x, y, z)
        powers(x, y, z)
        energy(z, loss)
    at = x.to_numpy()
    total = 2 * at**4 + 8 * at**3
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * total * (8 * at**3 + 24 * at**2))
    np.testing.assert_allclose(y.to_numpy(), at**2)


@pytest.mark.parametrize("copies", [1, 2, 3, 7, 20, 1000])
def test_any_budget_gives_the_same_bits(copies):
    assert swing(30, memory_budget=48 * copies) == swing(30)


def test_remedies_of_updates_in_place_can_be_followed():
    """What is refused in one kernel (x and v are updated where they are read), in two; and sums in an inner loop."""

    @qd.kernel
    def step(x: qd.types.ndarray(), v: qd.types.ndarray(), k: qd.f64, dt: qd.f64):
        for i in x:
            v[i] += -k * qd.sin(x[i])
            x[i] += dt * v[i]

    @qd.kernel
    def sums(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]

    @qd.kernel
    def sums_in_order(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for _ in range(1):
            for i in range(1, x.shape[0]):
                y[i] = y[i - 1] + x[i]

    x, v = (qd.ndarray(qd.f64, 3, needs_grad=True) for _ in range(2))
    with pytest.raises(qd.IngotCompilationError, match=r"help: write to another array(.|\n)*Tape\(loss, state=\[x\]\)"):
        step.grad(x, v, 0.1, 0.1)
    assert swing(2)[0] != [0, 0, 0]  # push and move: as test_state_is_put_back compares
    with pytest.raises(qd.IngotCompilationError, match="help: an inner loop runs in order: `for _ in range"):
        sums.grad(x, v)
    sums_in_order(x, v)
    v.grad.fill(1)
    sums_in_order.grad(x, v)
    assert x.grad.to_numpy().tolist() == [0, 2, 1]


def test_budgets_that_are_too_small():
    with pytest.raises(RuntimeError, match="less than one copy of `state` takes: 48 bytes"):
        swing(3, memory_budget=40)
    with pytest.raises(TypeError, match="name the arrays"):
        qd.ad.Tape(memory_budget=100)


@pytest.mark.counts("launches")
def test_a_tenth_of_the_memory_makes_each_launch_again_once():
    before = qd._core.counters()["launches"]
    swing(500, memory_budget=48 * 100)
    launches = qd._core.counters()["launches"] - before
    assert launches <= 1001 * 3


@pytest.mark.counts("launches")
def test_a_thousand_steps_with_a_tenth_of_the_memory():
    """The same bits, by at most three times the launches."""
    found, launches = [], []
    for budget in (None, 48 * 200):  # of 2,000 copies
        before = qd._core.counters()["launches"]
        found.append(swing(1000, memory_budget=budget))
        launches.append(qd._core.counters()["launches"] - before)
    assert found[0] == found[1] and launches[1] <= 3 * launches[0]


@needs("torch")
def test_torch_functions_refuse_what_changed_since(monkeypatch):
    import torch

    @qd.kernel
    def scale(x: qd.types.ndarray(), out: qd.types.ndarray()):
        for i in x:
            out[i] = Outside.factor * x[i]

    monkeypatch.setattr(Outside, "factor", 2)
    function = qd.ad.torch_function(scale, outputs={"out": lambda x: x.shape})
    x = torch.ones(3, requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    loss = function(x).sum()
    Outside.factor = 7
    with pytest.raises(qd.IngotRuntimeError, match="was assigned between the launch and its gradient"):
        loss.backward()


@pytest.mark.parametrize("kind", ["field", "ndarray", "view", "numpy"])
@pytest.mark.parametrize("last", [False, True])
def test_host_writes_of_the_state_are_seen(kind, last):
    """No copy has what was there, and no gradient is cut off: it was wrong without a word."""
    loss = qd.field(qd.f64, (), needs_grad=True)
    p = qd.field(qd.f64, 3, needs_grad=True)
    x = {"field": p, "numpy": np.ones(3)}.get(kind)
    if x is None:
        x = qd.ndarray(qd.f64, 3, needs_grad=True)
    p.fill(2.0)

    @qd.kernel
    def add(x: qd.template() if kind == "field" else qd.types.ndarray()):
        for i in range(3):
            loss[None] += x[i] ** 2 * p[i]

    view = x.to_numpy(copy=False) if kind == "view" else None
    with pytest.raises(qd.IngotRuntimeError, match="`state` was written between two launches"):
        with qd.ad.Tape(loss=loss, state=[x]):
            add(x)
            if kind == "field":
                x.fill(3.0)
            else:
                (x if view is None else view)[1] = 3.0
            if not last:
                add(x)


def test_state_of_a_struct_field():
    """Its members are kept: it had no size, and the tape failed."""
    s = qd.Struct.field({"x": qd.f64, "v": qd.types.vector(2, qd.f64)}, shape=3, needs_grad=True)
    loss = qd.field(qd.f64, (), needs_grad=True)
    s.x.fill(0.5)
    s.v.fill(1.0)

    @qd.kernel
    def push():
        for i in s:
            s[i].v += qd.Vector([s[i].x ** 2, 1.0])

    @qd.kernel
    def move():
        for i in s:
            s[i].x += s[i].v[0] * 0.5

    @qd.kernel
    def total():
        for i in s:
            loss[None] += s[i].x

    with qd.ad.Tape(loss=loss, state=[s]):
        for _ in range(2):
            push()
            move()
        total()
    # x1 = x0 + (1 + x0^2)/2, v1 = 1 + x0^2; x2 = x1 + (v1 + x1^2)/2
    x0 = 0.5
    x1, dx1 = x0 + (1 + x0**2) / 2, 1 + x0
    np.testing.assert_allclose(s.x.grad.to_numpy(), dx1 + x0 + x1 * dx1, rtol=1e-12)
