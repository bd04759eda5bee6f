"""Tiles that a loop goes through across their rows are turned (src/pass/turn.c): results beside NumPy's, of
loops that are and of neighbours that are not."""

import ingot as qd
import numpy as np
import pytest


@pytest.fixture(autouse=True, params=[1, 4])
def start(request):
    qd.init(arch=qd.cpu, cpu_max_num_threads=request.param)


def tiles(dtype, outer, inner):
    f = qd.field(dtype)
    qd.root.dense(qd.ij, outer).dense(qd.ij, inner).place(f)
    return f


def filled(f, seed=1):
    a = np.random.default_rng(seed).integers(0, 1000, f.shape).astype(f.to_numpy().dtype)
    f.from_numpy(a)
    return a


@qd.kernel
def read(x: qd.template(), y: qd.template()):
    for i, j in y:
        y[i, j] = x[j, i]


@qd.kernel
def write(x: qd.template(), y: qd.template()):
    for i, j in x:
        y[j, i] = x[i, j]


@qd.kernel
def mixed(x: qd.template(), y: qd.template()):
    for i, j in y:
        y[i, j] = 2 * x[j, i] + x[i, j] + i * 100 - j


@qd.kernel
def in_a_branch(x: qd.template(), y: qd.template()):
    for i, j in y:
        if (i + j) % 3 == 0:
            y[i, j] = x[j, i]
        else:
            y[i, j] = -x[i, j]


@qd.kernel
def skipping(x: qd.template(), y: qd.template()):
    for i, j in x:
        if j % 5 == 1:
            continue
        y[j, i] = x[i, j]


@qd.kernel
def flipped(x: qd.template(), y: qd.template()):
    for i, j in y:
        y[i, j] = x[y.shape[1] - 1 - j, i]


@qd.kernel
def own(x: qd.template()):
    for i, j in x:
        if i < j:
            t = x[i, j]
            x[i, j] = x[j, i]
            x[j, i] = t


@qd.kernel
def serial(x: qd.template(), y: qd.template()):
    for i, j in y:
        s = x[j, i] * 0
        for k in range(3):
            s += x[j, i] + k
        y[i, j] = s


SHAPES = [((2, 3), (16, 16)), ((3, 2), (8, 8)), ((2, 2), (32, 32)), ((2, 2), (4, 4)), ((2, 2), (8, 16)), ((1, 4), (16, 8)),
          ((3, 3), (2, 2)), ((2, 2), (64, 16)), ((2, 2), (12, 12)), ((2, 3), (16, 1)), ((2, 2), (32, 64))]
DTYPES = [qd.f32, qd.f64, qd.i32, qd.i64, qd.u8, qd.i16]


@pytest.mark.parametrize("outer, inner", SHAPES)
def test_shapes(outer, inner):
    for dtype in DTYPES:
        x = tiles(dtype, outer, inner)
        y = tiles(dtype, outer[::-1], inner[::-1])
        a = filled(x)
        read(x, y)
        assert (y.to_numpy() == a.T).all()
        z = tiles(dtype, outer[::-1], inner[::-1])
        write(x, z)
        assert (z.to_numpy() == a.T).all()


def square(dtype=qd.f32):
    return [tiles(dtype, 3, 16) for _ in range(2)]


def test_more_than_a_copy():
    x, y = square()
    a = filled(x)
    mixed(x, y)
    i, j = np.indices(a.shape)
    assert (y.to_numpy() == 2 * a.T + a + i * 100 - j).all()


def test_near_misses():
    x, y = square(qd.i32)
    a = filled(x)
    i, j = np.indices(a.shape)
    in_a_branch(x, y)
    assert (y.to_numpy() == np.where((i + j) % 3 == 0, a.T, -a)).all()
    y.fill(-7)
    skipping(x, y)
    assert (y.to_numpy() == np.where(i % 5 == 1, -7, a.T)).all()
    flipped(x, y)
    assert (y.to_numpy() == a.T[:, ::-1]).all()
    own(x)
    assert (x.to_numpy() == a.T).all()
    serial(x, y)
    assert (y.to_numpy() == 3 * a + 3).all()


def test_tiles_that_plain_fields_meet():
    """One of the two is row major: its subscripts are divided or not, the other's are joined."""
    x, y = qd.field(qd.f32, shape=(48, 48)), tiles(qd.f32, 3, 16)
    a = filled(x)
    read(x, y)
    assert (y.to_numpy() == a.T).all()
    b = filled(y, 2)
    read(y, x)
    assert (x.to_numpy() == b.T).all()
    write(y, x)
    assert (x.to_numpy() == b.T).all()


def test_offsets_and_shared_cells():
    x, y = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ij, 2).dense(qd.ij, 16).place(x, offset=(-16, 5))
    qd.root.dense(qd.ij, 2).dense(qd.ij, 16).place(y, offset=(5, -16))
    a = filled(x)
    read(x, y)
    assert (y.to_numpy() == a.T).all()
    p, q = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ij, 2).dense(qd.ij, 16).place(p, q)  # interleaved: no rows of neighbours
    a = filled(p)
    read(p, q)
    assert (q.to_numpy() == a.T).all() and (p.to_numpy() == a).all()


def test_three_axes():
    x, y = qd.field(qd.f32), qd.field(qd.f32)
    for f in (x, y):
        qd.root.dense(qd.ijk, 2).dense(qd.ijk, 8).place(f)

    @qd.kernel
    def turn(x: qd.template(), y: qd.template(), z: qd.template()):
        for i, j, k in y:
            y[i, j, k] = x[i, k, j]
        for i, j, k in z:
            z[i, j, k] = x[k, j, i]

    z = qd.field(qd.f32)
    qd.root.dense(qd.ijk, 2).dense(qd.ijk, 8).place(z)
    a = filled(x)
    turn(x, y, z)
    assert (y.to_numpy() == a.transpose(0, 2, 1)).all() and (z.to_numpy() == a.transpose(2, 1, 0)).all()


def test_memory_that_is_shared():
    """The array is a view of the block of x: what the text says, in the order of tiles."""
    x, y = qd.field(qd.f32, shape=(2, 2, 16, 16)), tiles(qd.f32, 2, 16)
    filled(x)
    view = x.to_numpy(copy=False)

    @qd.kernel
    def turn(x: qd.template(), a: qd.types.ndarray()):
        for p, q, i, j in x:
            a[p, q, i, j] = x[p, q, j, i] + 1

    before = np.array(view)
    other = np.zeros_like(before)
    turn(x, other)
    assert (other == before.transpose(0, 1, 3, 2) + 1).all()
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    x = qd.field(qd.f32, shape=(2, 2, 16, 16))
    x.from_numpy(before)
    turn(x, x.to_numpy(copy=False))
    expected = np.array(before)
    for p, q, i, j in np.ndindex(*expected.shape):
        expected[p, q, i, j] = expected[p, q, j, i] + 1
    assert (x.to_numpy() == expected).all()


def test_it_is_done(cache_dir, capfd):
    """Both kinds have turned loops in the IR; one that writes what it reads has none."""
    qd.init(arch=qd.cpu, print_ir=True)
    x, y = square()

    def text(kernel, *args):
        kernel(*args)
        return "".join(capfd.readouterr())

    assert " turned " in text(read, x, y) and " turned " in text(write, x, y) and " turned " in text(mixed, x, y)
    assert " turned " not in text(own, x) and " turned " not in text(in_a_branch, x, y)
