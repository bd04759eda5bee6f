"""Dense fields in kernels: reading, writing, loops in memory order, where they are found, what
is rebound or destroyed, and that code is made once for a layout."""

import dataclasses

import numpy as np
import pytest

import ingot as qd
from conftest import PARANOID, counted, run_program


pytestmark = pytest.mark.usefixtures("each_target")


def numbers(shape, offset=None):
    offset = offset or [0] * len(shape)
    grid = np.indices(shape)
    return sum((g + o) * 10 ** (len(shape) - 1 - k) for k, (g, o) in enumerate(zip(grid, offset)))


# ---- elements and loops ----


@pytest.mark.parametrize("shape, order, offset", [
    ((7,), None, None), ((5, 6), None, None), ((5, 6), "ji", None), ((5, 6), None, (-3, 2)),
    ((2, 3, 4), "kij", (1, 0, -4)), ((1, 4), None, None), ((4, 1), "ji", (3, 3)), ((1, 1), None, (2, -2)),
])
def test_loops(shape, order, offset):
    x = qd.field(qd.i32, shape=shape, order=order, offset=offset)
    y = qd.field(qd.i32, shape=shape, offset=offset)
    n = len(shape)

    @qd.kernel
    def grouped():
        for I in qd.grouped(x):
            s = 0
            for k in qd.static(range(n)):
                s = s * 10 + I[k]
            x[I] = s
            y[I] += s

    grouped()
    assert (x.to_numpy() == numbers(shape, offset)).all()
    assert (y.to_numpy() == numbers(shape, offset)).all()


def test_named_axes_and_none():
    x, s = qd.field(qd.f32, shape=(4, 3)), qd.field(qd.f64, shape=())

    @qd.kernel
    def fill():
        for i, j in x:
            x[i, j] = i - j
            s[None] += x[i, j]
        s[None] += 100

    fill()
    assert x[3, 1] == 2 and s[None] == 100 + sum(i - j for i in range(4) for j in range(3))


def test_vectors_and_matrices():
    v, m = qd.Vector.field(3, qd.f32, shape=5), qd.Matrix.field(2, 2, qd.i32, shape=(2, 3))

    @qd.kernel
    def work():
        for i in v:
            v[i] = qd.Vector([i, i + 1.0, i + 2.0])
            v[i].y += 10
            v[i][i % 3] *= 2
            v[i].xz = v[i].zx
        for i, j in m:
            for a, b in qd.static(qd.ndrange(2, 2)):
                m[i, j][a, b] = 100 * i + 10 * j + a - b
            m[i, j] += m[i, j].transpose()
        assert v.n == 3 and m.n == 2 and m.m == 2

    work()
    want = np.array([[i, i + 11, i + 2] for i in range(5)], np.float32)
    for i in range(5):
        want[i, i % 3] *= 2
    assert (v.to_numpy() == want[:, [2, 1, 0]]).all()
    assert m[1, 2].to_list() == [[240, 240], [240, 240]]


def test_loops_without_axes():
    x = qd.field(qd.i32, shape=())

    @qd.kernel
    def once():
        for I in qd.grouped(x):
            x[I] += 1

    once()
    assert x[None] == 1


def test_volatile_load_takes_elements():
    x = qd.field(qd.i32, shape=3)
    x[1] = 5

    @qd.kernel
    def read() -> qd.i32:
        return qd.volatile_load(x[1])

    @qd.kernel
    def refused() -> qd.i32:
        return qd.volatile_load(x)

    assert read() == 5
    with pytest.raises(Exception, match="Field directly"):
        refused()


def test_atomics():
    x = qd.field(qd.i32, shape=4)
    low = qd.field(qd.f32, shape=())

    @qd.kernel
    def count():
        for i in range(1000):
            x[i % 4] += 1
            qd.atomic_min(low[None], -float(i))

    count()
    assert x.to_numpy().tolist() == [250] * 4 and low[None] == -999


def test_shape_is_static():
    x = qd.field(qd.i32, shape=(3, 2))

    @qd.kernel
    def fill() -> qd.i32:
        for i in qd.static(range(x.shape[0])):
            x[i, qd.static(x.shape[1] - 1)] = i
        return x.shape[0] * 10 + x.shape[1]

    assert fill() == 32 and x.to_numpy()[:, 1].tolist() == [0, 1, 2]


def test_gradients_are_fields():
    x = qd.field(qd.f32, shape=4, needs_grad=True)

    @qd.func
    def put(f: qd.template(), i):
        f.grad[i] = f[i] * 2

    @qd.kernel
    def fill():
        for i in x:
            x[i] = i
            put(x, i)
            x.grad[i] += 1

    fill()
    assert x.grad.to_numpy().tolist() == [1, 3, 5, 7]


def test_fill():
    x = qd.field(qd.i32, shape=(4, 7), order="ji", offset=(2, -3))
    m = qd.Matrix.field(2, 3, qd.i32, shape=(4, 7))

    @qd.kernel
    def fill(v: qd.i32):
        x.fill(v)
        m.fill(v + 1)

    @qd.kernel
    def fill_more():
        m.fill(qd.Matrix([[1, 2, 3], [4, 5, 6]]))
        for i in range(3):
            x.fill(i)

    fill(3)
    assert (x.to_numpy() == 3).all() and (m.to_numpy() == 4).all()
    fill_more()
    assert m[1, 1].to_list() == [[1, 2, 3], [4, 5, 6]] and (x.to_numpy() == 2).all()


def test_tensors():
    @qd.func
    def add(a: qd.Tensor, i):
        a[i] += 5

    @qd.kernel
    def work(a: qd.Tensor) -> qd.i32:
        s = 0
        for i in range(a.shape[0]):
            add(a, i)
        for I in qd.grouped(a):
            s += a[I]
        return s

    assert work(qd.field(qd.i32, shape=3)) == 15 and work(qd.ndarray(qd.i32, 4)) == 20
    assert work(qd.tensor(qd.i32, (2,), backend=qd.Backend.FIELD)) == 10

    @qd.kernel
    def arrays_only(a: qd.types.ndarray()):
        pass

    with pytest.raises(Exception, match="must be an array"):
        arrays_only(qd.field(qd.i32, shape=3))


def test_graph_flags():
    n, x = qd.field(qd.i32, shape=()), qd.field(qd.i32, shape=4)
    both = qd.types.struct(first=qd.i32, second=qd.i32).field(shape=())
    first, second = both.first, both.second

    @qd.kernel(graph=True)
    def count(flag: qd.template()):
        while qd.graph.do_while(flag):
            for i in x:
                x[i] += 1
            for i in range(1):
                flag[None] -= 1

    n[None] = 3
    count(n)
    assert x.to_numpy().tolist() == [3] * 4
    first[None] = 2
    count(first)
    assert x[0] == 5
    second[None] = 1
    with pytest.raises(Exception, match="not the first one in its block"):
        count(second)


# ---- where they are found ----


@qd.func
def total(f: qd.template()) -> qd.f32:
    s = 0.0
    for i in range(f.shape[0]):
        s += f[i]
    return s


@qd.kernel
def of_template(f: qd.template()) -> qd.f32:
    return total(f)


def test_template_arguments():
    a, b, c = qd.field(qd.f32, shape=4), qd.field(qd.f32, shape=4), qd.field(qd.f32, shape=5)
    a.fill(1), b.fill(2), c.fill(3)
    assert of_template(a) == 4
    assert PARANOID or counted("lowerings", lambda: of_template(b)) == 0
    assert of_template(b) == 8 and of_template(c) == 15 and of_template(a) == 4


@qd.data_oriented
class Sim:
    def __init__(self, n):
        self.x = qd.field(qd.f32, shape=n)
        self.parts = [qd.field(qd.f32, shape=n), qd.field(qd.i32, shape=(n, 2))]
        self.named = {"v": qd.Vector.field(2, qd.f32, shape=n)}
        self.pair = (self.x, self.parts[0])

    @qd.func
    def one(self, i):
        return self.x[i] + self.pair[1][i]

    @qd.kernel
    def step(self):
        for i in self.x:
            self.x[i] += 1
            self.parts[0][i] += 10
            self.parts[1][i, 1] += i
            self.named["v"][i] += qd.Vector([self.one(i), 1.0])


def test_members():
    s = Sim(3)
    s.step()
    s.step()
    assert s.x.to_numpy().tolist() == [2] * 3 and s.parts[0][2] == 20 and s.parts[1][2, 1] == 4
    assert s.named["v"][1].to_list() == [33, 2]
    other = s.x
    s.x = qd.field(qd.f32, shape=3)  # rebound: seen at the next launch
    s.step()
    assert s.x[0] == 1 and other[0] == 2
    s.x = qd.field(qd.f32, shape=2)
    s.step()
    assert s.x.to_numpy().tolist() == [1, 1]


@dataclasses.dataclass
class State:
    x: qd.template()
    y: qd.template()


def test_dataclasses():
    @qd.kernel
    def copy(s: qd.template()):
        for i in s.x:
            s.y[i] = s.x[i] + 1

    s = State(qd.field(qd.f32, shape=4), qd.field(qd.f32, shape=4))
    s.x.fill(3)
    copy(s)
    assert s.y.to_numpy().tolist() == [4] * 4


captured = None


@qd.kernel
def of_global():
    for i in captured:
        captured[i] += 1


def test_rebound_global():
    global captured
    first = captured = qd.field(qd.f32, shape=3)
    of_global()
    captured = qd.field(qd.f64, shape=5)
    of_global()
    assert first[0] == 1 and captured.to_numpy().tolist() == [1] * 5
    captured = qd.ndarray(qd.f32, 4)
    of_global()
    assert captured[3] == 1
    captured = first
    of_global()
    assert first[2] == 2
    captured = None


# ---- life ----


def test_destroyed():
    x = qd.field(qd.f32, shape=3)

    @qd.kernel
    def fill():
        for i in x:
            x[i] = 1

    fill()
    x._block.destroy()
    with pytest.raises(RuntimeError, match="was destroyed"):
        fill()
    with pytest.raises(RuntimeError, match="was destroyed"):
        fill()


def test_generations():
    x, y = qd.field(qd.f32, shape=3), qd.field(qd.f32, shape=3)

    @qd.kernel
    def copy():
        for i in x:
            y[i] = x[i]

    copy()
    before = x._generation, y._generation
    copy()
    assert x._generation == before[0] and y._generation != before[1]


def test_resized_neighbours_cost_nothing():
    x = qd.field(qd.f32, shape=6)
    other = qd.field(qd.f32, shape=3)

    @qd.kernel
    def fill():
        for i in x:
            x[i] += 1

    fill()
    other = qd.field(qd.f32, shape=30)  # noqa: F841
    assert counted("lowerings", fill) == 0 or PARANOID
    assert x[5] == 2


# ---- one field by two names ----


@qd.kernel
def shift(a: qd.template(), b: qd.template()):
    qd.loop_config(serialize=True)
    for i in range(7):
        a[i + 1] = b[i] + 1


@qd.kernel
def sums(x: qd.template(), s: qd.template(), t: qd.template()):
    qd.loop_config(serialize=True)
    for i in range(x.shape[0]):
        s[0] += x[i]
        x[i] = t[0]


def test_same_field_twice():
    x, y = qd.field(qd.i32, shape=8), qd.field(qd.i32, shape=8)
    shift(x, x)
    assert x.to_numpy().tolist() == list(range(8))
    x.fill(0)
    shift(x, y)
    assert x.to_numpy().tolist() == [0] + [1] * 7
    a, s = qd.field(qd.i32, shape=4), qd.field(qd.i32, shape=4)
    a.fill(1)
    sums(a, s, s)
    assert s[0] == 4 and a.to_numpy().tolist() == [1, 2, 3, 4]
    a.fill(1)
    sums(a, a, a)
    model = [1] * 4
    for i in range(4):
        model[0] += model[i]
        model[i] = model[0]
    assert a.to_numpy().tolist() == model


# ---- messages ----


@pytest.fixture
def debug(target):
    qd.init(debug=True)


def test_out_of_bounds(debug):
    field_of_mine = qd.field(qd.f32, shape=(3, 4), offset=(0, -2))

    @qd.kernel
    def read(i: qd.i32, j: qd.i32) -> qd.f32:
        return field_of_mine[i, j]

    assert read(2, -2) == 0 and read(0, 1) == 0
    for index, axis, which in ((2, -3), 1, -3), ((2, 2), 1, 2), ((3, 0), 0, 3), ((-1, 0), 0, -1):
        with pytest.raises(IndexError) as e:
            read(*index)
        text = str(e.value)
        assert "field_of_mine of shape (3, 4)" in text
        assert f"index {which} is out of bounds for axis {axis}" in text


def test_wrong_number_of_indices():
    x = qd.field(qd.f32, shape=(3, 4))

    @qd.kernel
    def read() -> qd.f32:
        return x[1]

    with pytest.raises(Exception, match="Field with dim 2 accessed with indices of dim 1"):
        read()


# ---- across processes ----

PROGRAM = """
import sys
import ingot as qd
from ingot import _core
qd.init(arch=qd.cpu)
n = int(sys.argv[1])
unrelated = qd.field(qd.f32, shape=n)
x = qd.field(qd.f32, shape=(8, 6), order="ji", offset=(1, -2))
v = qd.Vector.field(3, qd.f32, shape=5)

@qd.kernel
def step(f: qd.template()):
    for i, j in x:
        x[i, j] += i * 10 + j
    for i in f:
        f[i] += x[8, 3]

step(v)
assert x[8, 3] == 83 and v[4].to_list() == [83, 83, 83]
c = _core.counters()
print("#", c["parses"], c["lowerings"], c["image_compiles"])
"""


@pytest.mark.counts("parses")
def test_warm_in_the_next_process(tmp_path, cache_dir):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert run_program(path, "3").split() == ["1", "1", "2"]
    assert run_program(path, "4").split() == ["0", "0", "0"]


def test_vectors_among_indices():
    """As in the reference, a vector stands for as many indices as it has parts."""
    f = qd.Matrix.field(2, 2, qd.f32, shape=(2, 3, 3, 2))
    shift = qd.Vector([1, -1, 40])

    @qd.kernel
    def k(a: qd.types.ndarray(), n: qd.i32):
        for b in range(2):
            for I in qd.static(qd.grouped(qd.ndrange(3, 3))):
                f[b, I, 1].fill(2.0)
                f[b, I, 0][0, 1] += b
            for J in qd.grouped(qd.ndrange(3, 3)):
                a[b, J, n] += J[0] * 10 + J[1]
                a[b, J + 0, 0] = a[b, J[0], J[1], n] + 1
            v = qd.Vector([b, 1])
            w = qd.Vector([2, n])
            a[v, w] = 77
            t = (b, 2)
            a[t, v] += 100
            pos = (b, 1, 2) + shift
            a[b, pos[0], 0, 0] = pos[2]

    a = np.zeros((2, 3, 3, 2), np.int32)
    k(a, 1)
    plain = [[0, 1, 2], [10, 11, 77], [120, 21, 22]]
    assert a[0, :, :, 1].tolist() == plain
    assert (a[0, 1, 0, 0], a[1, 2, 0, 0], a[1, 2, 1, 1]) == (42, 42, 121)
    assert a[1, 1, :, 0].tolist() == [11, 12, 13]
    assert f.to_numpy()[1, 2, 2].tolist() == [[[0, 1], [0, 0]], [[2, 2], [2, 2]]]


def test_vectors_among_too_many_indices():
    @qd.kernel
    def k(a: qd.types.ndarray(qd.f32, 3)):
        v = qd.Vector([0, 1])
        a[0, v, 2] = 1

    with pytest.raises(IndexError, match="dim 3 accessed with indices of dim 4"):
        k(np.zeros((2, 2, 2), np.float32))


LIGHT = """
import sys
import ingot as qd
before = set(sys.modules)
qd.init()
x = qd.field(qd.f32, shape=(8, 6))
v = qd.Vector.field(3, qd.f32, shape=5)
print(sorted(m for m in set(sys.modules) - before if not m.startswith("ingot")))
"""


def test_making_fields_loads_no_module(tmp_path):
    """A process with fields starts as fast as one with ndarrays."""
    path = tmp_path / "program.py"
    path.write_text(LIGHT)
    assert run_program(path).strip() == "[]"


def test_a_constant_that_is_no_index_is_an_error_where_it_is_reached():
    """Also when nobody asks for checks: there is no other memory that could be meant."""
    a, b = qd.field(qd.i32, shape=55), qd.field(qd.i32, shape=(3, 4), offset=(-1, 2))

    @qd.func
    def far(x: qd.template()):
        x[70] = 5

    @qd.kernel
    def k(case: qd.i32):
        if case == 1:
            far(a)
        if case == 2:
            b[-2, 3] = 3
        if case == 3:
            b[2, 3] = 1
        if case == 4:
            b[-1, 6] += 1
        a[54] = case
        b[-1, 2] = case
        b[1, 5] = case

    k(0)
    for case, text in ((1, r"of shape \(55,\): index 70"), (2, "-2"), (3, "2"), (4, "6")):
        with pytest.raises(qd.IngotError, match=text):
            k(case)
        assert a[54] == 0 and b[-1, 2] == 0 and b[1, 5] == 0
    k(7)
    assert a[54] == 7 and b[-1, 2] == 7 and b[1, 5] == 7


def test_members_of_structs_by_their_names():
    qd.init(arch=qd.cpu, debug=True)
    masses = qd.types.struct(a=qd.f32, b=qd.types.vector(2, qd.f32)).field(shape=4)

    @qd.kernel
    def put(i: qd.i32):
        masses[i].b[1] = 2.0

    put(3)
    with pytest.raises(qd.IngotIndexError, match=r"the field masses\.b of shape \(4,\): index 4 "):
        put(4)


@pytest.mark.parametrize("separate", [True, False])
def test_named_struct_field_in_blocks(separate):
    """What one block looked at of a field that has a name is no value of the next block."""
    Pair = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32))
    layout = qd.Layout.SOA if separate else qd.Layout.AOS
    pairs = Pair.field(shape=8, layout=layout)

    @qd.kernel
    def k(m: qd.i32) -> qd.f32:
        named = qd.static(pairs)
        for i in range(8):
            if i < m:
                named[i].a = i
                named[i].v = qd.Vector([1.0, 2.0]) * i
        total = 0.0
        for i in range(m):
            pair = named[i]
            total += pair.a + pair.v[1] + named.v[i][0]
        if m > 1:
            named.fill(Pair(a=7, v=qd.Vector([8.0, 9.0])))
        return total + named[0].a

    assert k(5) == 4 * 10 + 7
    assert pairs.a.to_numpy().tolist() == [7] * 8 and pairs.v.to_numpy().tolist() == [[8, 9]] * 8


def test_hints_for_other_processors_change_nothing():
    """block_local, cache_read_only, assume_in_range: accepted, also on the host."""
    x, y = qd.field(qd.i32, shape=6), qd.field(qd.i32, shape=6)

    @qd.kernel
    def run(n: qd.i32):
        qd.block_local(y)
        qd.cache_read_only(x)
        for i in range(6):
            j = qd.assume_in_range((i + n) % 6, i, 0, 6)
            y[i] = 10 * x[j] + qd.assume_in_range(i, 0, 0, 6)

    x.from_numpy(np.arange(6, dtype=np.int32))
    run(2)
    assert y.to_numpy().tolist() == [20, 31, 42, 53, 4, 15]
    assert qd.assume_in_range(5, 0, 0, 9) == 5
