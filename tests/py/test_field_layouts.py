"""Random trees of dense fields in kernels, against NumPy: nested levels, several on one axis,
orders, offsets, fields that share cells, vectors and matrices together and apart. Loops walk
memory in order."""

import random

import numpy as np
import pytest

import ingot as qd
from conftest import SEED, samples

pytestmark = [pytest.mark.usefixtures("each_target"), pytest.mark.filterwarnings("ignore:.*Assign may lose precision")]

TYPES = [qd.i32, qd.f32, qd.f64, qd.i64, qd.i8, qd.u16]
NUMPY = {qd.i32: np.int32, qd.f32: np.float32, qd.f64: np.float64, qd.i64: np.int64, qd.i8: np.int8,
         qd.u16: np.uint16}


def make_field(rng):
    t, kind = rng.choice(TYPES), rng.randrange(4)
    if kind == 0:
        return qd.Vector.field(rng.randint(1, 4), t)
    if kind == 1:
        return qd.Matrix.field(rng.randint(1, 3), rng.randint(1, 3), t)
    return qd.field(t)


def nest(rng, node, ndim):
    """Levels below `node`; every axis has one at least."""
    left, cells = set(range(ndim)), 1
    while left or rng.random() < 0.4:
        axes = sorted(rng.sample(range(ndim), rng.randint(1, ndim)))
        sizes = [rng.choice((1, 2, 3, 4, 5)) for _ in axes]
        if cells * np.prod(sizes) > 3000:
            axes = sorted(left)
            sizes = [1] * len(axes)
            if not axes:
                break
        cells *= int(np.prod(sizes))
        node = node.dense(qd.axes(*axes), sizes)
        left -= set(axes)
    return node


def make_fields(rng):
    """(fields of one shape and offset, ndim): some share cells, some do not."""
    ndim = rng.randint(1, 4)
    node = nest(rng, qd.root, ndim)
    fields = [make_field(rng) for _ in range(rng.randint(1, 3))]
    offset = None if rng.random() < 0.5 else tuple(rng.randint(-5, 5) for _ in range(ndim))
    node.place(*fields, offset=offset)
    shape = fields[0].shape
    order = list("ijkl"[:ndim])
    rng.shuffle(order)
    layout = {"layout": qd.Layout.SOA} if rng.random() < 0.5 else {}
    fields.append(qd.Vector.field(2, qd.f32, shape=shape, offset=offset, order="".join(order), **layout))
    return fields, ndim


@qd.func
def flat(I: qd.template(), f: qd.template(), offset: qd.template()):
    n = 0
    for k in qd.static(range(len(offset))):
        n = n * f.shape[k] + I[k] - offset[k]
    return n


@qd.kernel
def number_elements(f: qd.template(), rows: qd.template(), cols: qd.template(), offset: qd.template()):
    for I in qd.grouped(f):
        n = flat(I, f, offset)
        if qd.static(rows == 0):
            f[I] = n % 100
        elif qd.static(cols == 0):
            for a in qd.static(range(rows)):
                f[I][a] = (n + a) % 100
        else:
            for a, b in qd.static(qd.ndrange(rows, cols)):
                f[I][a, b] = (n + 10 * a + b) % 100


@qd.kernel
def mix(x: qd.template(), y: qd.template(), offset: qd.template()) -> qd.i32:
    """y becomes y plus the x of the mirrored element; and how many there are."""
    count = 0
    for I in qd.grouped(y):
        J = I
        for k in qd.static(range(len(offset))):
            J[k] = 2 * offset[k] + x.shape[k] - 1 - I[k]
        y[I] += x[J]
        count += 1
    return count


def model_of(f):
    n = np.arange(int(np.prod(f.shape))).reshape(f.shape)
    if not f.element_shape:
        want = n % 100
    elif len(f.element_shape) == 1:
        want = (n[..., None] + np.arange(f.n)) % 100
    else:
        want = (n[..., None, None] + 10 * np.arange(f.n)[:, None] + np.arange(f.m)) % 100
    return want.astype(NUMPY[f.dtype])


def run(seed):
    rng = random.Random(SEED + seed)
    fields, ndim = make_fields(rng)
    offset = tuple(fields[0].offset)
    models = []
    for f in fields:
        rows, cols = (*f.element_shape, 0, 0)[:2]
        number_elements(f, rows, cols, offset)
        models.append(model_of(f))
    for f, want in zip(fields, models):  # all at the end: none wrote into another
        assert np.array_equal(f.to_numpy().reshape(want.shape), want), seed
    for a, x in enumerate(fields):
        for b, y in enumerate(fields):
            if x.element_shape != y.element_shape or x.dtype is not y.dtype or a == b:
                continue
            assert mix(x, y, offset) == np.prod(x.shape)
            models[b] = models[b] + models[a][(slice(None, None, -1),) * ndim]
            assert np.array_equal(y.to_numpy().reshape(models[b].shape), models[b]), seed


@pytest.mark.parametrize("part", range(4))
def test_random_layouts(part):
    n = samples(2000) // 4
    for seed in range(part * n, (part + 1) * n):
        run(seed)
        if seed % 50 == 49:
            qd.init()


def test_loops_walk_memory_in_order():
    x, y, order = qd.field(qd.i32), qd.field(qd.f64), qd.field(qd.i32, shape=())
    qd.root.dense(qd.ij, (2, 3)).dense(qd.i, 2).dense(qd.ij, (4, 2)).place(x, y)

    @qd.kernel
    def visit():
        qd.loop_config(serialize=True)
        for i, j in y:
            x[i, j] = order[None]
            order[None] += 1

    @qd.kernel
    def address(i: qd.i32, j: qd.i32) -> qd.u64:
        return qd.get_addr(y, [i, j])

    visit()
    n, m = y.shape
    places = sorted((address(i, j), x[i, j]) for i in range(n) for j in range(m))
    assert [k for _, k in places] == list(range(n * m))


def test_loops_over_nodes():
    x, count = qd.field(qd.i32), qd.field(qd.i32, shape=())
    block = qd.root.dense(qd.i, 3)
    block.dense(qd.ij, (2, 4)).place(x)

    @qd.kernel
    def cells():
        for i in block:
            count[None] += 10 + i
        for i in x.parent(2):
            count[None] += 100 + i
        for I in qd.grouped(x.parent()):
            x[I] = 1

    cells()
    assert count[None] == 33 + 303 and x.to_numpy().sum() == 24


def test_struct_fields():
    vec = qd.types.vector(3, qd.f32)
    Particle = qd.types.struct(x=vec, v=vec, m=qd.f32)
    for layout in (qd.Layout.AOS, qd.Layout.SOA):
        p = Particle.field(shape=5, layout=layout)

        @qd.kernel
        def step():
            for i in p:
                p[i].m = i
                p[i].v = [1.0, 2.0, i]
                p.x[i] += p[i].v * 2
                p[i].x.y += 1
            for i in range(1):
                p[3] = p[4]

        step()
        assert p[2].x.to_list() == [2, 5, 4] and p[3].m == 4 and p[3].x.to_list() == [2, 5, 8]


def test_methods_of_structs():
    @qd.dataclass
    class Sphere:
        center: qd.types.vector(2, qd.f32)
        radius: qd.f32

        @qd.func
        def area(self):
            return 3.0 * self.radius * self.radius

        @qd.func
        def grow(self, by):
            self.radius += by

    s = Sphere.field(shape=4)

    @qd.kernel
    def run() -> qd.f32:
        for i in s:
            s[i].radius = i
            s[i].grow(1.0)
        return s[2].area()

    assert run() == 27 and s.radius.to_numpy().tolist() == [1, 2, 3, 4]


@qd.kernel
def add_up(x: qd.template(), s: qd.template(), t: qd.template()):
    qd.loop_config(serialize=True)
    for i in range(x.shape[0]):
        s[0] += x[i]
        x[i] = t[1]


@pytest.mark.after_passes
def test_neighbours_in_a_cell_lie_apart():
    x, s, t = qd.field(qd.i32), qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.i, 8).place(x, s, t)
    x.fill(1)
    t.fill(5)
    before = qd._core.counters()["launch_overlap"]
    add_up(x, s, t)
    assert s[0] == 8 and x.to_numpy().tolist() == [5] * 8 and s.to_numpy()[1:].sum() == 0
    assert qd._core.counters()["launch_overlap"] == before
    add_up(x, x, t)
    model = [5] * 8
    for i in range(8):
        model[0] += model[i]
        model[i] = 5
    assert x.to_numpy().tolist() == model


def test_parts_of_a_vector_field():
    """A scalar field inside of a field of vectors overlaps it: results are those of the text."""
    v = qd.Vector.field(2, qd.i32, shape=8)
    y = v.get_scalar_field(1)
    v.fill(1)

    @qd.kernel
    def work():
        qd.loop_config(serialize=True)
        for i in range(7):
            y[i + 1] = v[i].y + 1

    work()
    assert y.to_numpy().tolist() == list(range(1, 9)) and v.to_numpy()[:, 0].tolist() == [1] * 8


def test_algorithms_take_fields():
    from ingot import algorithms

    x = qd.field(qd.i32, shape=300)
    numbers = np.random.default_rng(SEED).integers(0, 1000, 300).astype(np.int32)
    x.from_numpy(numbers)
    algorithms.parallel_sort(x)
    assert (x.to_numpy() == np.sort(numbers)).all()
    algorithms.PrefixSumExecutor(300).run(x)
    assert (x.to_numpy() == np.cumsum(np.sort(numbers))).all()
    y, out = qd.field(qd.i32, shape=(300,)), qd.field(qd.i32, shape=1)
    scratch = qd.field(qd.u32, shape=algorithms.reduce_scratch_slots(300, 2))
    y.from_numpy(numbers)

    @qd.kernel
    def total():
        algorithms.reduce_add(y, out, scratch, 300, qd.i32, 2)

    total()
    assert out[0] == numbers.sum()


def test_dispatch_takes_fields():
    @qd.perf_dispatch(get_geometry_hash=lambda a: a.shape[0])
    def work(a):
        ...

    @work.register
    @qd.kernel
    def one(a: qd.template()):
        for i in a:
            a[i] += 1

    x = qd.field(qd.i32, shape=5)
    work(x)
    assert x[4] == 1


@qd.func
def shape_and_first(f: qd.template()):
    return f.shape[0] * 1000 + f[0].x


@qd.func
def mass(p: qd.template(), i):
    return p[i].m


def test_bundles_through_funcs():
    a = qd.Vector.field(2, qd.i32, shape=3, layout=qd.Layout.SOA)
    b = qd.Vector.field(2, qd.i32, shape=4, layout=qd.Layout.SOA)
    S = qd.types.struct(m=qd.i32, x=qd.types.vector(2, qd.f32))
    p, q = S.field(shape=2), S.field(shape=5)
    a[0], b[0] = [1, 2], [3, 4]
    p.m[1], q.m[1] = 7, 8

    @qd.kernel
    def read() -> qd.i32:
        return shape_and_first(a) + shape_and_first(b) + 100000 * (mass(p, 1) + 10 * mass(q, 1))

    assert read() == 3001 + 4003 + 100000 * 87


@pytest.mark.counts("lowerings")
def test_members_that_nobody_reads_cost_nothing():
    S = qd.types.struct(m=qd.i32, x=qd.types.vector(2, qd.f32))
    p = S.field(shape=3, layout=qd.Layout.SOA)

    @qd.kernel
    def work(s: qd.template()):
        for i in s:
            s[i].m += 1

    work(p)
    T = qd.types.struct(m=qd.i32, x=qd.types.vector(3, qd.f64))
    q = T.field(shape=3, layout=qd.Layout.SOA)
    before = qd._core.counters()["lowerings"]
    work(q)
    assert q.m[2] == 1 and qd._core.counters()["lowerings"] == before


@pytest.mark.after_passes
def test_explained_in_words():
    x = qd.field(qd.f32, shape=(8, 4))

    @qd.kernel
    def fill(f: qd.template()):
        for i, j in f:
            f[i, j] = 1

    fill(x)
    fill(qd.field(qd.f32, shape=(8, 6)))
    fill(qd.field(qd.f32, shape=(8, 6), offset=(1, 0)))
    why = qd.explain(fill)
    assert "argument f: a field of f32 8 x 4 -> a field of f32 8 x 6" in why
    assert any("axis 0 from 1" in text for text in why)


def test_rescaled_indices():
    a, b = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ij, 4).dense(qd.ij, 4).place(a)
    qd.root.dense(qd.ij, 4).place(b)

    @qd.kernel
    def down():
        for I in qd.grouped(a):
            b[qd.rescale_index(a, b, I)] += 1.0

    @qd.kernel
    def up():
        for I in qd.grouped(b):
            a[qd.rescale_index(b, a, I)] = 1.0

    down()
    up()
    assert (b.to_numpy() == 16).all() and a.to_numpy().sum() == 16 and a[4, 8] == 1
