"""The order of accesses within an iteration, where their places are known at run time only, or two
names are one array: LLVM's vectoriser joins strided accesses of loops that are called parallel."""

import numpy as np
import pytest

import ingot as qd

N = 67
V = qd.types.ndarray(qd.types.vector(3, qd.f32), 1)


pytestmark = pytest.mark.usefixtures("each_target")


def swapped(v):
    """What the kernels below make of it."""
    want = np.array([[i, i + 11, i + 2] for i in range(N)], np.float32)
    want[np.arange(N), np.arange(N) % 3] *= 2
    return (v.to_numpy() == want[:, [2, 1, 0]]).all()


def test_a_member_chosen_at_run_time():
    v = qd.Vector.field(3, qd.f32, shape=N)
    a = qd.Vector.ndarray(3, qd.f32, N)

    @qd.func
    def work(x: qd.template(), i):
        x[i] = qd.Vector([i, i + 1.0, i + 2.0])
        x[i].y += 10
        x[i][i % 3] *= 2
        x[i].xz = x[i].zx

    @qd.kernel
    def of_field():
        for i in v:
            v[i] = qd.Vector([i, i + 1.0, i + 2.0])
            v[i].y += 10
            v[i][i % 3] *= 2
            v[i].xz = v[i].zx

    @qd.kernel
    def of_array(x: V):
        for i in x:
            work(x, i)

    of_field()
    of_array(a)
    assert swapped(v) and swapped(a)


def test_two_names_for_one_array():
    @qd.kernel
    def run(a: V, b: V):
        for i in a:
            a[i].x = i
            t = b[i].x
            a[i].y = t + 1.0
            a[i].z = 5.0

    a, b = (qd.Vector.ndarray(3, qd.f32, N) for _ in range(2))
    run(a, a)
    assert (a.to_numpy()[:, 1] == np.arange(N) + 1).all()
    run(a, b)
    assert (a.to_numpy()[:, 1] == 1).all()


def test_every_second_element():
    x, where = qd.field(qd.i32, shape=2 * N), qd.field(qd.i32, shape=N)
    where.from_numpy(2 * np.arange(N, dtype=np.int32))

    @qd.kernel
    def run():
        for i in range(N):
            x[2 * i] = i
            t = x[where[i]]
            x[2 * i + 1] = t + 7

    run()
    assert (x.to_numpy()[1::2] == np.arange(N) + 7).all()


def test_columns_of_a_field():
    m = qd.field(qd.i32, shape=(N, 4))

    @qd.kernel
    def run():
        for i in range(N):
            m[i, 0] = i
            m[i, 1] = i + 1
            m[i, 2] = i + 2
            m[i, 3] = i + 3
            m[i, i % 4] += 10
            m[i, 0], m[i, 2] = m[i, 2], m[i, 0]

    run()
    want = np.arange(N)[:, None] + np.arange(4)
    want[np.arange(N), np.arange(N) % 4] += 10
    assert (m.to_numpy() == want[:, [2, 1, 0, 3]]).all()


def test_short_loops_inside():
    """They are unrolled, and their accesses joined."""
    x = qd.Vector.field(4, qd.i32, shape=N)
    k = qd.field(qd.i32, shape=N)
    k.from_numpy((np.arange(N) * 7 % 4).astype(np.int32))

    @qd.kernel
    def run():
        for i in x:
            for c in range(4):
                x[i][c] = c + x[i][k[i]]

    x.fill(1)
    run()
    want = np.ones((N, 4), np.int32)
    for i in range(N):
        for c in range(4):
            want[i, c] = c + want[i, i * 7 % 4]
    assert (x.to_numpy() == want).all()


def test_fields_of_one_cell():
    x, y = qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.i, N).place(x, y)
    where = qd.field(qd.i32, shape=N)
    where.from_numpy(np.arange(N, dtype=np.int32))

    @qd.kernel
    def run():
        for i in x:
            x[i] = i + 3
            t = x[where[i]]
            y[i] = t * 2

    run()
    assert (y.to_numpy() == 2 * np.arange(N) + 6).all()


def test_plain_loops_are_not_marked():
    """Particles in cells, a stencil, a gather."""
    x, v = qd.Vector.field(3, qd.f32), qd.Vector.field(3, qd.f32)
    qd.root.dense(qd.i, N).place(x, v)

    @qd.kernel
    def run():
        for i in x:
            v[i] -= qd.Vector([0.0, 0.5, 0.0])
            x[i] += 2.0 * v[i]

    x.fill(1.0)
    run()
    assert (x.to_numpy() == [1, 0, 1]).all() and (v.to_numpy() == [0, -0.5, 0]).all()
