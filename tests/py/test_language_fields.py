"""Statements whose meaning programs written for fields rely on: asserts that call, powers, loops without
axes, numbers in arrays without axes."""

import numpy as np
import pytest

import ingot as qd


pytestmark = pytest.mark.usefixtures("each_target")


def test_assert_calls_outside_of_debug_mode():
    x = qd.field(qd.i32, shape=())

    @qd.real_func
    def add(n: qd.i32) -> qd.i32:
        x[None] += n
        return 0

    @qd.kernel
    def run():
        assert add(15) == 0
        assert add(10) == 5, "not checked"
        assert x[None] == 77

    run()
    assert x[None] == 25


def test_negative_powers_in_debug_mode():
    qd.init(debug=True)
    z = qd.field(qd.i32, shape=())

    @qd.kernel
    def power(x: qd.i32, y: qd.i32):
        z[None] = x**y

    power(2, 5)
    assert z[None] == 32
    with pytest.raises(qd.IngotRuntimeError, match="Negative exponent"):
        power(10, -3)


def test_ndrange_without_axes():
    x = qd.field(qd.i32, shape=())
    y = qd.field(qd.i32, shape=())

    @qd.kernel
    def run():
        for I in qd.grouped(qd.ndrange()):
            x[I] += 42
        for I in qd.static(qd.grouped(qd.ndrange())):
            y[I] = 7

    run()
    assert x[None] == 42 and y[None] == 7


def test_grouped_ndrange_of_a_function():
    v = qd.Vector.field(3, qd.i32, shape=(3, 3))

    def around():
        return qd.ndrange(3, 3, 3)

    @qd.kernel
    def run():
        for I in qd.static(qd.grouped(around())):
            v[I[0], I[1]][I[2]] = I[0] + I[1] * 3 + I[2] * 10

    run()
    i = np.indices((3, 3, 3))
    assert (v.to_numpy() == i[0] + 3 * i[1] + 10 * i[2]).all()


def test_arrays_without_axes_are_numbers():
    x = qd.field(qd.i32, shape=20)
    first, last = np.array(3, np.int32), np.array(9, np.int64)

    @qd.kernel
    def run():
        for i in range(first, last):
            x[i] += 6

    run()
    assert x.to_numpy().tolist() == [6 if 3 <= i < 9 else 0 for i in range(20)]
    first[()] = 7  # read at each launch
    run()
    assert x[7] == 12 and x[6] == 6


def test_real_functions_say_what_they_return():
    @qd.real_func
    def add(a: qd.i32, b: qd.i32):
        return a + b

    @qd.kernel
    def run():
        add(30, 2)

    with pytest.raises(qd.IngotCompilationError, match="return value must be annotated"):
        run()


def test_conditions_of_vectors_in_expressions():
    v = qd.Vector.field(3, qd.f32, shape=4)

    @qd.kernel
    def run():
        for i in v:
            v[i] = 0 if v[i] < 1 else v[i]

    with pytest.raises(qd.IngotSyntaxError, match='Please use "qd.select" instead.'):
        run()


def test_writes_past_a_small_field_reach_nobody():
    """As in the reference, where an axis is padded to a power of two. A constant index is refused."""
    fields = [qd.field(qd.i32, shape=55) for _ in range(20)]

    @qd.kernel
    def beyond(f: qd.template(), at: qd.i32):
        for _ in range(1):
            f[at] = 5

    for f in fields:
        f.fill(1)
    for f in fields:
        beyond(f, 60)
    assert all((f.to_numpy() == 1).all() for f in fields)


@pytest.mark.after_passes
def test_denormal_constants_with_fast_math():
    """Processors take them for zero then, and so does what is only stored."""
    a = qd.field(qd.f32, shape=2)

    @qd.kernel
    def store():
        a[0] = 1e-45
        a[1] = -1e-40

    store()
    assert a[0] == 0 and a[1] == 0
    qd.init(fast_math=False)
    b = qd.field(qd.f32, shape=2)

    @qd.kernel
    def keep():
        b[0] = 1e-45

    keep()
    assert b[0] > 0
