"""Gradients of launches that give one array as two arguments: right, or refused where it matters."""

import linecache

import numpy as np
import pytest

import ingot as qd

A = qd.types.ndarray()
F = qd.f64
MANY = 95


def nd(*shape):
    a = qd.ndarray(F, shape, needs_grad=True)
    a.from_numpy(np.random.default_rng(len(shape)).uniform(0.3, 1.5, shape))
    return a


@qd.kernel
def read_twice(a: A, b: A, y: A):
    for i in range(5):
        y[i] = a[i] * b[4 - i]


@qd.kernel
def written_side_by_side(a: A, b: A, c: A):
    for i in range(4):
        b[i] = a[i] * 2.0
        c[i + 1] = a[i] * 5.0


@qd.kernel
def written_at_one_place(a: A, b: A, c: A):
    for i in range(4):
        b[i] = a[i] * 2.0
        c[i] = a[i] * 5.0


@qd.kernel
def written_in_two_tasks(a: A, b: A, c: A):
    for i in range(4):
        b[i] = a[i] * 2.0
    for i in range(4):
        c[i + 1] = a[i] * 5.0


@qd.kernel
def written_in_order(a: A, b: A, c: A):
    for _ in range(1):
        for i in range(4):
            b[i] = a[i] * 2.0
            c[i + 1] = a[i] * 5.0


@qd.kernel
def read_next_to_it(a: A, b: A, c: A):
    for i in range(4):
        b[i + 1] = c[i] * 2.0 + a[i]


@qd.kernel
def a_winner_is_looked_at(a: A, b: A, c: A):
    for _ in range(1):
        for i in range(4):
            qd.atomic_max(b[0], a[i])
            c[i + 1] = c[0] * 2.0


@pytest.mark.parametrize("swap", [False, True])
def test_one_array_that_is_read_twice(target, swap):
    """A launch whose gradients are added to one array by two names, after others or before."""
    qd.init(default_fp=F)
    x, z, y = nd(5), nd(5), nd(5)
    for given in [(x, z), (x, x)] if swap else [(x, x), (x, z), (x, x)]:
        for a in (x, z, y):
            a.grad.fill(0.0)
        read_twice(*given, y)
        y.grad.fill(1.0)
        read_twice.grad(*given, y)
        a, b = (v.to_numpy() for v in given)
        parts = {id(given[0]): 0.0, id(given[1]): 0.0}
        parts[id(given[0])] = parts[id(given[0])] + b[::-1]
        parts[id(given[1])] = parts[id(given[1])] + a[::-1]
        for v in given:
            assert np.allclose(v.grad.to_numpy(), parts[id(v)])


@pytest.mark.parametrize("kernel", [written_in_two_tasks, written_in_order, written_at_one_place])
def test_one_array_that_is_written_twice(kernel, target):
    qd.init(default_fp=F)
    x, y = nd(5), nd(5)
    qd.ad.check_grad(kernel, x, y, y)


@pytest.mark.parametrize("kernel", [written_side_by_side, read_next_to_it, a_winner_is_looked_at])
def test_iterations_that_meet_in_one_array(kernel, target):
    qd.init(default_fp=F)
    x, y = nd(5), nd(5)
    qd.ad.check_grad(kernel, x, y, nd(5))
    with pytest.raises(qd.IngotCompilationError, match="another argument that is the same array"):
        kernel.grad(x, y, y)
    qd.ad.check_grad(kernel, x, y, nd(5))


@qd.kernel
def times_a_constant(x: A, c: A, y: A):
    for _ in range(1):
        for i in range(3):
            y[i] = x[i] * c[i]
        for i in range(3):
            y[i + 1] += 2.0 * x[i]


@pytest.mark.host_memory
def test_a_constant_that_is_a_part_of_what_is_written(target):
    qd.init(default_fp=F)
    x, y, c = nd(3), nd(6), np.full(3, 0.5)
    times_a_constant.grad(x, c, y)
    for part in (slice(0, 3), slice(2, 5)):
        with pytest.raises(qd.IngotCompilationError, match="share memory"):
            times_a_constant.grad(x, y.to_numpy(copy=False)[part], y)
    qd.ad.check_grad(times_a_constant, x, c, y)


@pytest.mark.host_memory
def test_two_shapes_of_one_tensor(target):
    """Their gradients are two tensors, so that what goes through the other one would be lost."""
    torch = pytest.importorskip("torch")
    qd.init(default_fp=F)

    def leaf(t):
        t = t.detach().requires_grad_()
        t.grad = torch.zeros_like(t)
        return t

    @qd.kernel
    def k(p: A, q: A, z: A):
        for i in range(4):
            p[0, i] = p[1, i] * 2.0
        for i in range(4):
            z[i] = q[i] * 3.0

    m, z = torch.rand(8, dtype=torch.double), leaf(torch.zeros(8, dtype=torch.double))
    for other in (leaf(m), leaf(m[2:6])):
        with pytest.raises(qd.IngotCompilationError, match="share memory"):
            k.grad(leaf(m.view(2, 4)), other, z)
    k.grad(leaf(m.view(2, 4)), leaf(m.clone()), z)

    @qd.kernel
    def twice(x: A, y: A):
        for i in range(3):
            y[i + 3] = 2.0 * x[i]

    with pytest.raises(qd.IngotCompilationError, match="share memory"):
        twice.grad(leaf(m), leaf(m))
    x = leaf(m)
    x.grad.fill_(1.0)
    twice.grad(x, x)
    assert x.grad.tolist() == [3, 3, 3, 0, 0, 0, 1, 1]


def squares(params, names):
    text = f"@qd.kernel\ndef k({params}):\n    for i in range(3):\n"
    text += "".join(f"        {b}[i] = {a}[i] * {a}[i]\n" for a, b in names)
    linecache.cache[f"<{params or 'fields'}>"] = (len(text), None, text.splitlines(True), f"<{params or 'fields'}>")
    return compile(text, f"<{params or 'fields'}>", "exec")


@pytest.mark.parametrize("captured", [True, False])
def test_many_arrays(captured):
    """More pairs of arrays that must be different ones than passes may ask for."""
    qd.init(arch=qd.interp, default_fp=F)
    names = [(f"x{k}", f"y{k}") for k in range(MANY)]
    arrays = {n: qd.field(F, 3, needs_grad=True) if captured else nd(3) for pair in names for n in pair}
    scope = {"qd": qd, **arrays}
    params = "" if captured else ", ".join(f"{n}: qd.types.ndarray()" for n in arrays)
    exec(squares(params, names), scope)
    k, args = scope["k"], [] if captured else list(arrays.values())
    arrays["x7"].fill(3.0)
    k(*args)
    arrays["y7"].grad.fill(1.0)
    k.grad(*args)
    assert arrays["x7"].grad.to_numpy().tolist() == [6.0] * 3
    if not captured:
        with pytest.raises(qd.IngotCompilationError, match="the same array"):
            k.grad(*args[:-1], args[0])
