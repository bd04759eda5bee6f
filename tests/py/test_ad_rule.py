"""Elements that a launch reads and overwrites (src/ad/rule.c): the gradient is right, or it is refused; and
what qd.stop_grad stops. Right is what central differences say."""

import sys

import numpy as np
import pytest

import ingot as qd

A = qd.types.ndarray()
F = qd.f64
OVER = "is overwritten"


@pytest.fixture(autouse=True)
def fresh():
    qd.init(default_fp=F)
    yield
    qd.init()


def nd(*shape):
    a = qd.ndarray(F, shape, needs_grad=True)
    a.from_numpy(np.random.default_rng(len(shape)).uniform(0.3, 1.5, shape))
    return a


def field(*shape):
    a = qd.field(F, shape, needs_grad=True)
    a.from_numpy(np.random.default_rng(len(shape)).uniform(0.3, 1.5, shape))
    return a


@qd.func
def square(x: qd.template(), i):
    return x[i] * x[i]


@qd.func
def put(x: qd.template(), i, value):
    x[i] = value


@qd.func
def store_then_square(x: qd.template(), i, value):
    x[i] = value
    return x[i] * x[i]


@qd.func
def square_to(x: qd.template(), i, j):
    x[j] = x[i] * x[i]


@qd.func
def chain(x: qd.template(), i):
    for j in range(3):
        x[i * 4 + j + 1] = x[i * 4 + j] * x[i * 4 + j]


@qd.kernel
def in_a_later_task(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    for i in range(x.shape[0]):
        x[i] = 0.5 * y[i]


@qd.kernel
def added_to_in_a_later_task(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    for i in range(x.shape[0]):
        x[0] += y[i]


@qd.kernel
def read_by_a_func(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = square(x, i)
    for i in range(x.shape[0]):
        x[i] = 0.5 * y[i]


@qd.kernel
def written_by_a_func(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        put(x, i, y[i])


@qd.kernel
def func_with_equal_indices(x: A, y: A):
    for i in range(x.shape[0]):
        square_to(x, i, i)


@qd.kernel
def before_the_loop(x: A, y: A):
    s = x[0] * x[1]
    for i in range(x.shape[0]):
        y[i] = s * x[i]
    t = y[0] * s
    for i in range(x.shape[0]):
        y[i] += t


@qd.kernel
def an_iteration_later(x: A, y: A):
    for _ in range(1):
        for i in range(x.shape[0] - 1):
            y[i] = x[i + 1] * x[i + 1]
            x[i] = y[i]


@qd.kernel
def by_way_of_an_index(x: A, y: A):
    for _ in range(1):
        for i in range(x.shape[0]):
            x[(i * 3) % 5] = x[i] * x[i]


@qd.kernel
def to_and_fro(x: A, y: A):
    qd.loop_config(serialize=True)
    for t in range(3):
        for i in range(4):
            y[i] = x[i] * x[i]
        for i in range(4):
            x[i] = y[i] * 0.7


@qd.kernel
def a_winner_is_overwritten(x: A, y: A):
    for i in range(x.shape[0]):
        qd.atomic_max(y[0], x[i])
    for i in range(1):
        y[i] = 0.0


@qd.kernel
def counted_the_wrong_way(x: A, y: A):
    for _ in range(1):
        t = 0
        while t < 4:
            y[t] = x[t + 1] * x[t + 1]
            x[t] = y[t]
            t += 1


@qd.kernel
def counted_between(x: A, y: A):
    for _ in range(1):
        t = 0
        while t < 4:
            y[t] = x[t] * x[t]
            t += 1
            x[t - 1] = 0.3 * y[t - 1]


@qd.kernel
def counted_sometimes(x: A, y: A):
    for _ in range(1):
        t = 0
        c = 0
        while c < 6:
            c += 1
            x[t] = c * 0.1 * y[t]
            y[t + 1] += x[t] * x[t]
            if c % 2 == 0:
                t += 1


@qd.kernel
def counted_from_the_start_again(x: A, y: A):
    for _ in range(1):
        t = 0
        for c in range(7):
            x[t + 1] = x[t] * x[t] * 0.5 + 0.1
            t += 1
            if t > 3:
                t = 0


@qd.kernel
def counted_by_an_inner_loop(x: A, y: A):
    for _ in range(1):
        t = 0
        for j in range(3):
            y[t] = x[t] * x[t]
            t += 1
        x[t - 1] = 0.5


@qd.kernel
def one_of_two_axes(x: A, y: A):
    qd.loop_config(serialize=True)
    for i, j in qd.ndrange(2, 2):
        y[i] = x[j] * 2
        x[4] += y[i] * y[i]


@pytest.mark.parametrize("kernel", [
    one_of_two_axes, counted_the_wrong_way, counted_between, counted_sometimes, counted_from_the_start_again,
    counted_by_an_inner_loop, in_a_later_task, added_to_in_a_later_task, read_by_a_func, written_by_a_func, func_with_equal_indices,
    before_the_loop, an_iteration_later, by_way_of_an_index, to_and_fro, a_winner_is_overwritten])
def test_what_is_needed_and_overwritten_is_refused(kernel):
    with pytest.raises(qd.IngotCompilationError, match=OVER):
        kernel.grad(nd(5), nd(5))


@qd.kernel
def linear_in_a_later_task(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = 3 * x[i]
    for i in range(x.shape[0]):
        x[i] = 0.5 * y[i]


@qd.kernel
def an_iteration_before(x: A, y: A):
    for _ in range(1):
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] * x[i]


@qd.kernel
def in_other_ranges(x: A, y: A):
    for i in range(2):
        y[i] = x[i] * x[i]
    for i in range(2, 5):
        x[i] = y[i - 2] * 3


@qd.kernel
def written_then_read_by_a_func(x: A, y: A):
    for i in range(1, x.shape[0]):
        x[0] += store_then_square(y, i, x[i] * 2)


@qd.kernel
def func_with_other_indices(x: A, y: A):
    for i in range(2):
        square_to(x, i, i + 2)


@qd.kernel
def func_with_a_loop(x: A, y: A):
    for i in range(1):
        chain(x, i)


@qd.kernel
def until_a_break(x: A, y: A):
    for _ in range(1):
        for t in range(4):
            x[t + 1] = x[t] * x[t] * 0.5 + 0.2
            if x[t + 1] > 50:
                break


@qd.kernel
def counted_up(x: A, y: A):
    for _ in range(1):
        t = 0
        while t < 4:
            x[t + 1] = x[t] * x[t] * 0.5 + 0.2
            t += 1


@qd.kernel
def counted_down(x: A, y: A):
    for _ in range(1):
        t = 4
        while t > 0:
            x[t - 1] = x[t] * x[t] * 0.5
            t -= 1


@qd.kernel
def in_rows(x: A, y: A):
    n = x.shape[0] // 2
    for i in range(2):
        for t in range(n - 1):
            x[i * n + t + 1] = x[i * n + t] * x[i * n + t] * 0.7 + 0.1


@pytest.mark.parametrize("kernel", [
    until_a_break, counted_up, counted_down, in_rows, linear_in_a_later_task, an_iteration_before, in_other_ranges, written_then_read_by_a_func,
    func_with_other_indices, func_with_a_loop])
def test_what_is_written_elsewhere_is_right(kernel):
    qd.ad.check_grad(kernel, nd(5), nd(5))


@qd.kernel
def two_steps(x: A, t: qd.i32):
    for i in range(4):
        x[t + 1, i] = x[t, i] * x[t, i]
    for i in range(4):
        x[t + 2, i] = x[t + 1, i] * x[t + 1, (i + 1) % 4]


@qd.kernel
def from_to(x: A, source: qd.i32, to: qd.i32):
    for i in range(4):
        x[to, i] = x[source, i] * x[source, (i + 1) % 4]
    for i in range(4):
        x[to, i] += 1


@qd.kernel
def double_buffer(x: A, t: qd.i32):
    for i in range(4):
        x[(t + 1) % 2, i] = x[t % 2, i] * x[t % 2, (i + 1) % 4]


@pytest.mark.parametrize("kernel, numbers", [(two_steps, [1]), (from_to, [0, 3]), (double_buffer, [5])])
def test_steps_are_told_apart_by_their_numbers(kernel, numbers):
    qd.ad.check_grad(kernel, nd(4, 4), *numbers)


@qd.kernel
def places_in_order(x: A, y: A):
    qd.loop_config(serialize=True)
    for i, j in qd.ndrange(4, 3):
        y[i, j] = x[i, j] * 2
        x[i, 3] += y[i, j] * y[i, j]


def test_places_of_a_serial_loop_differ():
    qd.ad.check_grad(places_in_order, nd(4, 4), nd(4, 4))


# ---- one array by two names ----


@qd.kernel
def squares(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]


@qd.kernel
def doubles(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = 2 * x[i]


def test_one_array_as_two_arguments():
    a, b = nd(5), nd(5)
    qd.ad.check_grad(squares, a, b)
    for _ in range(2):
        with pytest.raises(qd.IngotCompilationError, match="the same array"):
            squares.grad(a, a)
    qd.ad.check_grad(squares, a, b)
    qd.ad.check_grad(doubles, a, a)


def test_views_of_one_array():
    torch = pytest.importorskip("torch")
    a = torch.rand(6, dtype=torch.double)
    x, y = a[:5].requires_grad_(), a[1:].requires_grad_()
    squares(x, y)
    with pytest.raises(qd.IngotCompilationError, match="the same array"):
        squares.grad(x, y)


def test_one_field_as_two_templates():
    @qd.kernel
    def of(x: qd.template(), y: qd.template()):
        for i in range(5):
            y[i] = x[i] * x[i]

    a, b = field(5), field(5)
    qd.ad.check_grad(of, a, b)
    with pytest.raises(qd.IngotCompilationError, match="of one array"):
        of.grad(a, a)


def test_one_field_captured_and_given():
    a, b = field(5), field(5)

    @qd.kernel
    def of(y: qd.template()):
        for i in range(5):
            y[i] = a[i] * a[i]

    qd.ad.check_grad(of, b)
    with pytest.raises(qd.IngotCompilationError, match="of one array"):
        of.grad(a)


# ---- what stop_grad stops ----


def test_stop_grad_stops_reads_alone():
    """What is stored or added behind it keeps its gradient, in funcs too."""
    x, y, z, w = field(4), field(4), field(4), field()

    @qd.kernel
    def through():
        for i in range(4):
            qd.stop_grad(y)
            qd.stop_grad(z)
            qd.stop_grad(w)
            y[i] = x[i] * x[i]
            put(z, i, y[i] * x[i])
            w[None] += z[i] * 3 + x[i]

    for one in (y, z):
        one.grad.fill(1.0)
    w.grad[None] = 10.0
    through()
    through.grad()
    values = x.to_numpy()
    assert np.allclose(x.grad.to_numpy(), 2 * values + values**2 + 10)


# ---- generations of what a launch writes ----


def test_generations_are_unknown_while_a_launch_writes(monkeypatch):
    """Until it ends, nobody can say what an array holds: another thread could size stacks from half of it."""
    a, b, s = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, 4), field(3)

    @qd.kernel
    def fill(a: A):
        for i in range(4):
            a[i] = i
        for i in range(3):
            s[i] = 1.0
        for i in range(1):
            print("here")

    seen = []

    class Out:
        def write(self, text):
            seen.append((a._generation, b._generation, s._generation))

        def flush(self):
            pass

    known = b._generation
    assert known
    monkeypatch.setattr(sys, "stdout", Out())
    fill(a)
    monkeypatch.undo()
    assert seen and all(one == (0, known, 0) for one in seen)
    assert a._generation and s._generation and b._generation == known


# ---- Tape(validation=True): element by element ----


@qd.kernel
def step(x: A, source: qd.i32, to: qd.i32):
    for i in range(4):
        x[to, i] = x[source, i] * x[source, (i + 1) % 4]


@qd.kernel
def total(x: A, loss: A, t: qd.i32):
    for i in range(4):
        loss[0] += x[t, i] * x[t, i]


@qd.func
def power(x: qd.template(), i, n):
    s = x[i]
    for j in range(n):
        s = s * x[i]
    return s


@qd.kernel
def powers(x: A, n: A, y: A):
    for i in range(4):
        y[i] = power(x, i, n[i])


def tape_of(*steps, **options):
    """The gradients of x, where each step is from one row to another."""
    x, loss = nd(4, 4), nd(1)
    with qd.ad.Tape(loss=loss, validation=True, **options):
        for source, to in steps:
            step(x, source, to)
        total(x, loss, steps[-1][1])
    return x.grad.to_numpy()


@pytest.mark.parametrize("target", [qd.cpu, qd.interp])
def test_validation_finds_indices_that_meet(target):
    qd.init(arch=target, default_fp=F)
    assert np.any(tape_of((0, 1), (1, 2)))
    with pytest.raises(qd.IngotAssertionError, match=r"overwritten here\n *x\[to, i\](.|\n)*where it was read\n"):
        tape_of((1, 1))
    with pytest.raises(qd.IngotAssertionError, match=r"changed between the launch and its gradient\n *x\[to, i\] = x"):
        tape_of((0, 1), (1, 2), (2, 1))
    assert np.any(tape_of((0, 1), (1, 2)))


def test_validation_with_copies_of_the_state():
    x, loss = nd(4, 4), nd(1)
    with qd.ad.Tape(loss=loss, validation=True, state=[x]):
        step(x, 0, 1)
        step(x, 1, 2)
        step(x, 2, 1)
        total(x, loss, 1)
    exact = x.grad.to_numpy()
    y, loss = nd(4, 4), nd(1)
    with qd.ad.Tape(loss=loss, validation=True):
        step(y, 0, 1)
        step(y, 1, 2)
        step(y, 2, 3)
        total(y, loss, 3)
    assert np.allclose(exact[0], y.grad.to_numpy()[0]) and np.any(exact[0])


@pytest.mark.parametrize("change", [lambda n: n.__setitem__(1, 5), lambda n: n.fill(0)])
def test_validation_finds_a_bound_that_changed(change):
    x, y, n = nd(4), nd(4), qd.ndarray(qd.i32, 4)
    n.from_numpy(np.array([1, 2, 3, 0], np.int32))
    with qd.ad.Tape(validation=True) as tape:
        powers(x, n, y)
    change(n)
    with pytest.raises(qd.IngotAssertionError, match="changed between the launch and its gradient"):
        tape.grad()


def test_validation_compares_values():
    """The same numbers once more are no change."""
    x, y, n = nd(4), nd(4), qd.ndarray(qd.i32, 4)
    n.fill(2)
    with qd.ad.Tape(validation=True) as tape:
        powers(x, n, y)
    n.fill(2)
    y.grad.fill(1.0)
    tape.grad()
    assert np.allclose(x.grad.to_numpy(), 3 * x.to_numpy() ** 2)


def test_validation_of_vectors_and_captured_fields():
    for layout in (qd.Layout.AOS, qd.Layout.SOA):
        v = qd.Vector.field(3, F, 4, needs_grad=True, layout=layout)
        v.fill(1.5)

        @qd.kernel
        def scale(source: qd.i32, to: qd.i32):
            for i in range(1):
                v[to] = v[source] * v[source].norm()

        with qd.ad.Tape(validation=True) as tape:
            scale(1, 2)
            scale(2, 3)
        tape.grad()
        with pytest.raises(qd.IngotAssertionError, match="where it was read"):
            with qd.ad.Tape(validation=True):
                scale(1, 1)


def test_validation_leaves_results_and_random_numbers_alone():
    @qd.kernel
    def draw(x: A, y: A) -> F:
        for i in range(4):
            y[i] = x[i] * qd.random(F)
            print(i)
        return 3.5

    x, y = nd(4), nd(4)
    with qd.ad.Tape(validation=True) as tape:
        assert draw(x, y) == 3.5
    drawn = y.to_numpy() / x.to_numpy()
    y.grad.fill(1.0)
    tape.grad()
    assert np.allclose(x.grad.to_numpy(), drawn) and len(set(drawn)) == 4


@qd.kernel
def refused_otherwise(x: A, y: A) -> F:
    for i in range(4):
        y[i] = 2 * x[i]
    return x[1]


def test_validation_of_what_has_no_gradient():
    """The launch is made; what cannot be differentiated says so where its gradient runs."""
    x, y = nd(4), nd(4)
    with qd.ad.Tape(validation=True) as tape:
        assert refused_otherwise(x, y) == x[1]
    assert np.allclose(y.to_numpy(), 2 * x.to_numpy())
    with pytest.raises(qd.IngotCompilationError):
        tape.grad()


# ---- programs of the reference promise that subscripts made of data do not meet ----


@qd.kernel
def squares_of_groups(x: A, y: A, z: A, begin: qd.types.ndarray(qd.i32)):
    qd.loop_config(serialize=True)
    for g in range(begin.shape[0] - 1):
        for i in range(begin[g], begin[g + 1]):
            y[i] = x[i] * 2.0
        for i in range(begin[g], begin[g + 1]):
            z[i] = y[i] * y[i]


@qd.kernel
def squares_in_place(x: A, y: A):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        x[i] = 0.0


def test_ranges_of_data_are_refused_but_for_programs_that_promise():
    begin = qd.ndarray(qd.i32, (3,))
    begin.from_numpy(np.array([0, 2, 5], np.int32))
    x, y, z = nd(5), nd(5), nd(5)
    with pytest.raises(qd.IngotError, match=OVER):
        squares_of_groups.grad(x, y, z, begin)
    qd.init(default_fp=F, reference=True)
    x, y, z = nd(5), nd(5), nd(5)
    begin = qd.ndarray(qd.i32, (3,))
    begin.from_numpy(np.array([0, 2, 5], np.int32))
    squares_of_groups(x, y, z, begin)
    z.grad.fill(1.0)
    squares_of_groups.grad(x, y, z, begin)
    assert np.allclose(x.grad.to_numpy(), 8.0 * x.to_numpy(), rtol=1e-12)


def test_a_promise_does_not_cover_what_meets_for_certain():
    qd.init(default_fp=F, reference=True)
    with pytest.raises(qd.IngotError, match=OVER):
        squares_in_place.grad(nd(5), nd(5))


# ---- looks at what is being updated (RULE6, RULE7) ----


def looking(how):
    @qd.func
    def raise_to(b: qd.template(), v):
        qd.atomic_max(b[0], v)

    @qd.kernel
    def k(a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray()):
        if qd.static(how == "tasks"):
            for i in range(3):
                qd.atomic_max(b[0], a[i])
            for i in range(3):
                y[i] = b[0] * 2
            for i in range(3):
                qd.atomic_max(b[0], a[i + 3])
        elif qd.static(how == "funcs"):
            for i in range(3):
                raise_to(b, a[i])
            for i in range(3):
                y[i] = b[0] * 2
            for i in range(3):
                raise_to(b, a[i + 3])
        elif qd.static(how == "in order"):
            for _ in range(1):
                for i in range(6):
                    qd.atomic_max(b[0], a[i])
                    y[i] = b[0] * 2
        elif qd.static(how == "result in order"):
            for _ in range(1):
                for i in range(6):
                    y[i] = qd.atomic_min(b[0], a[i]) * 2
        elif qd.static(how == "result"):
            for i in range(6):
                y[i] = qd.atomic_add(b[0], a[i]) * 2
        elif qd.static(how == "sum"):
            for i in range(6):
                b[0] += a[i]
                y[i] = b[0] * 2
        elif qd.static(how == "result of sums in order"):
            for _ in range(1):
                for i in range(6):
                    y[i] = qd.atomic_add(b[0], a[i]) * 2
        elif qd.static(how == "before"):
            for i in range(6):
                y[i] = b[i] * 2
                qd.atomic_max(b[i], a[i])
                qd.atomic_max(b[i], a[5 - i])
        elif qd.static(how == "after"):
            for o in range(2):
                for i in range(3):
                    qd.atomic_max(b[o], a[i + 3 * o])
                y[o] = b[o] ** 2

    return k


def looked_at():
    a, b, y = (qd.ndarray(qd.f64, 6, needs_grad=True) for _ in range(3))
    a.from_numpy(np.array([0.5, 0.4, 0.8, 0.7, 0.9, 0.2]))
    b.from_numpy(np.array([0.1, 0.3, 0.6, 0.75, 0.85, 0.05]))
    return a, b, y


@pytest.mark.parametrize("how", ["tasks", "funcs", "in order", "result in order", "result", "sum"])
def test_looks_between_updates_are_refused(how):
    """All but the sums were wrong without a word; those depend on the order of iterations."""
    args = looked_at()
    k = looking(how)
    k(*args)
    with pytest.raises(qd.IngotCompilationError, match="is overwritten here|read here what others update"):
        k.grad(*args)


@pytest.mark.parametrize("how", ["result of sums in order", "before", "after"])
def test_looks_that_nobody_disturbs(how):
    qd.ad.check_grad(looking(how), *looked_at())


@qd.kernel
def highest(a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray(), source: qd.i32, to: qd.i32):
    for i in range(3):
        qd.atomic_max(b[to], a[source + i])
    for i in range(3):
        y[source + i] = b[to] * (i + 1)


@qd.kernel
def of_two_kinds(a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray(), source: qd.i32, to: qd.i32):
    for i in range(3):
        qd.atomic_max(b[source], a[i])
    for i in range(3):
        qd.atomic_min(b[to], a[3 + i])


@qd.kernel
def with_a_look(a: qd.types.ndarray(), b: qd.types.ndarray(), y: qd.types.ndarray(), source: qd.i32, to: qd.i32):
    for i in range(3):
        qd.atomic_max(b[source], a[i])
    y[0] = b[source]
    for i in range(3):
        qd.atomic_max(b[to], a[3 + i])


def winners(kernel, *steps, **options):
    a, b, y = looked_at()
    b.fill(0)
    for array in (a, b, y):
        array.grad.fill(0)
    with qd.ad.Tape(**options) as tape:
        for source, to in steps:
            kernel(a, b, y, source, to)
    y.grad.fill(1)
    tape.grad()
    return a.grad.to_numpy().tolist()


@pytest.mark.parametrize("target", [qd.cpu, qd.interp])
def test_validation_finds_winners_that_are_overwritten(target):
    """What an atomic maximum left is read again: other launches changed it, and nobody saw that."""
    qd.init(arch=target, default_fp=F)
    right = [0, 0, 6, 0, 6, 0]
    assert winners(highest, (0, 0), (3, 1), validation=True) == right
    with pytest.raises(qd.IngotAssertionError, match=r"changed between the launch and its gradient\n *qd.atomic_max"):
        winners(highest, (0, 0), (3, 0), validation=True)


def test_state_keeps_winners():
    a, b, y = looked_at()
    b.fill(0)
    with qd.ad.Tape(state=[b]) as tape:
        highest(a, b, y, 0, 0)
        highest(a, b, y, 3, 0)
    y.grad.fill(1)
    tape.grad()
    assert a.grad.to_numpy().tolist() == [0, 0, 6, 0, 6, 0]


@pytest.mark.parametrize("kernel", [of_two_kinds, with_a_look])
def test_validation_finds_updates_between_in_one_launch(kernel):
    winners(kernel, (0, 1), validation=True)
    with pytest.raises(qd.IngotAssertionError, match=r"is overwritten here\n(.|\n)*where it was read"):
        winners(kernel, (0, 0), validation=True)


# ---- parallel writes of one place (RULE8), bounds of indices (RULE9) ----


def writing(how):
    @qd.kernel
    def k(a: qd.types.ndarray(), b: qd.types.ndarray(), c: qd.types.ndarray()):
        for i in range(6):
            if qd.static(how == "data"):
                b[i] = a[i] ** 2
                b[c[i]] += a[i]
            elif qd.static(how == "stores"):
                b[c[i]] = a[i]
                b[c[5 - i]] = a[i] ** 2
            elif qd.static(how == "next"):
                b[i] = a[i] ** 2
                b[i + 1] += a[i]
            elif qd.static(how == "own"):
                b[c[i]] = a[i]
                for j in range(3):
                    b[c[i]] += a[j] * a[i]
            elif qd.static(how == "sums"):
                b[i] += a[i] ** 2
                b[c[i]] -= a[i]
            elif qd.static(how == "pairs"):
                if i % 2 == 0:
                    b[i] = a[i] ** 2
                    b[i + 1] = a[i]

    return k


def scattered():
    a, b = (qd.ndarray(qd.f64, 7, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, 6)
    a.from_numpy(np.arange(7) + 0.5)
    c.from_numpy(np.array([2, 0, 1, 4, 5, 3], np.int32))
    return a, b, c


@pytest.mark.parametrize("how", ["data", "stores", "next"])
def test_parallel_writes_of_one_place_are_refused(how):
    """Who comes last decides, and adjoints would have to know: they were wrong."""
    with pytest.raises(qd.IngotCompilationError, match="write here what others write"):
        writing(how).grad(*scattered())


@pytest.mark.parametrize("how", ["own", "sums", "pairs"])
def test_parallel_writes_that_need_no_order(how):
    qd.ad.check_grad(writing(how), *scattered())


def triangle(how):
    @qd.kernel
    def k(m: qd.types.ndarray(), x: qd.types.ndarray()):
        for _ in range(1):
            if qd.static(how == "rows"):
                for i in range(5):
                    s = x[i]
                    for j in range(i):
                        s -= m[i, j] * x[5 + j]
                    x[5 + i] = s / m[i, i]
            elif qd.static(how == "updates"):
                for i in range(5):
                    for j in range(i):
                        x[i] -= m[i, j] * x[j]
            elif qd.static(how == "columns"):
                for j in range(5):
                    for i in range(j + 1, 5):
                        x[i] -= m[i, j] * x[j]
            elif qd.static(how == "upwards"):
                for i in range(5):
                    for j in range(5 - i, 5):
                        x[4 - i] -= m[4 - i, j] * x[j]
            elif qd.static(how == "factor"):
                for i in range(5):
                    for j in range(i):
                        s = m[i, j]
                        for t in range(j):
                            s -= m[i + 5, t] * m[j + 5, t]
                        m[i + 5, j] = s / m[j + 5, j]
                    s = m[i, i] + 9
                    for t in range(i):
                        s -= m[i + 5, t] ** 2
                    m[i + 5, i] = qd.sqrt(s)
            elif qd.static(how == "diagonal"):
                for i in range(5):
                    for j in range(i + 1):
                        x[i] -= m[i, j] * x[j]
            elif qd.static(how == "above"):
                for i in range(5):
                    for j in range(i + 1, 5):
                        x[i] -= m[i, j] * x[j]
            elif qd.static(how == "twice"):
                for _t in range(2):
                    for i in range(5):
                        for j in range(i):
                            x[i] -= m[i, j] * x[j]

    return k


def solved():
    m, x = qd.ndarray(qd.f64, (10, 5), needs_grad=True), qd.ndarray(qd.f64, 10, needs_grad=True)
    m.from_numpy(np.random.default_rng(1).uniform(0.5, 1, (10, 5)))
    x.from_numpy(np.random.default_rng(2).uniform(0.5, 1, 10))
    return m, x


@pytest.mark.parametrize("how", ["rows", "updates", "columns", "upwards", "factor"])
def test_what_is_below_the_end_of_a_loop_stays(how):
    qd.ad.check_grad(triangle(how), *solved())


@pytest.mark.parametrize("how", ["diagonal", "above", "twice"])
def test_what_the_bounds_do_not_tell_is_refused(how):
    with pytest.raises(qd.IngotCompilationError, match=OVER):
        triangle(how).grad(*solved())


def unsigned(how):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray(), n: qd.i32):
        for _ in range(1):
            if qd.static(how == "next"):  # 10 - i is read, and written by the next iteration
                for i in range(6):
                    u = qd.cast(i, qd.u32) * qd.u32(4294967295)
                    y[i] = x[u + qd.u32(10)] ** 2
                    x[u + qd.u32(11)] = y[i]
            elif qd.static(how == "bounds"):  # what is read is below 3, as is 4 - i of the last ones
                for i in range(1, 5):
                    for j in range(3):
                        y[i] += x[j] ** 2
                    x[qd.cast(i, qd.u32) * qd.u32(4294967295) + qd.u32(4)] = y[i] * 0.5
            elif qd.static(how == "begin"):  # 4 * 2**30 is 0
                for i in range(1, n):
                    y[i] = x[0] ** 2
                    if i % 4 < 2:
                        for j in range(i * 1073741824, 2):
                            x[j] += y[i]
            elif qd.static(how == "apart"):
                for i in range(n):
                    u = qd.cast(i, qd.u32)
                    y[i] = x[u] ** 2
                    x[u + qd.u32(1)] = y[i] * 0.5
            elif qd.static(how == "upwards"):
                for i in range(n):
                    for j in range(n - i, n):
                        x[n - 1 - i] -= y[i + j] * x[j]

    return k


def lines():
    x, y = (qd.ndarray(qd.f64, 12, needs_grad=True) for _ in range(2))
    x.from_numpy(np.arange(12) * 0.1 + 0.5)
    return x, y, 5


@pytest.mark.parametrize("how", ["next", "bounds", "begin"])
def test_subscripts_and_bounds_that_wrap_are_refused(how):
    """Factors were read as signed numbers of 64 bits: gradients were wrong."""
    with pytest.raises(qd.IngotCompilationError, match=OVER):
        unsigned(how).grad(*lines())


@pytest.mark.parametrize("how", ["apart", "upwards"])
def test_subscripts_and_bounds_that_do_not_wrap(how):
    qd.ad.check_grad(unsigned(how), *lines())


def filtering(how):
    @qd.kernel
    def k(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for j in range(2):
            for i in range(3):
                if qd.static(how == "store"):
                    x[j] = x[j] * 0.5 + y[i]
                elif qd.static(how == "update"):
                    y[5 + 3 * j + i] = x[j] * 0.5
                    x[j] += y[i]
                elif qd.static(how == "inner"):
                    y[5] += x[3 * j]
                    for t in range(2):
                        x[3 * j + t] = y[i] * 0.5

    return k


@pytest.mark.parametrize("how", ["store", "update", "inner"])
def test_what_a_loop_reads_and_writes_at_one_place(how):
    """Its adjoint waited for the end of the loop, and what the loop wrote did not see it (RULE10)."""
    x, y, _ = lines()
    qd.ad.check_grad(filtering(how), x, y)


def test_what_a_loop_writes_by_another_name():
    @qd.kernel
    def k(x: qd.types.ndarray(), z: qd.types.ndarray(), y: qd.types.ndarray()):
        for _ in range(1):
            for i in range(3):
                z[1] = x[1] * 0.5 + y[i]

    x, y, _ = lines()
    k(x, x, y)
    x.grad[1] = 1.0
    k.grad(x, x, y)
    assert x.grad[1] == 0.125 and y.grad.to_numpy()[:3].tolist() == [0.25, 0.5, 1.0]
