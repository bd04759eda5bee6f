"""Fields that share a block share its word: which ones do is asked, compared at each launch, and
decides what overlaps. Tallies and other updates of fields."""

import numpy as np
import pytest

import ingot as qd
from conftest import counted, run_program


pytestmark = pytest.mark.usefixtures("each_target")


def pair(n=64, together=True, dtype=qd.i32):
    x, y = qd.field(dtype), qd.field(dtype)
    if together:
        qd.root.dense(qd.i, n).place(x, y)
    else:
        qd.root.dense(qd.i, n).place(x)
        qd.root.dense(qd.i, n).place(y)
    return x, y


@qd.kernel
def twice(x: qd.template(), y: qd.template()):
    for i in x:
        x[i] = i
        y[i] = 2 * x[i] + 1


def test_words_are_shared():
    x, y = pair()
    u, v = pair(together=False)
    lines = [line for line in twice.lower(x, y)[1].splitlines() if line.startswith("arg")]
    assert len(lines) == 2 and lines[1].endswith(" with 0")
    assert " with " not in twice.lower(u, v)[1]
    trace = twice.lower(x, y)[0]
    assert sum(line.split()[-2] == "blocks" for line in trace.splitlines()) == 1
    twice(x, y)
    twice(u, v)
    for a, b in ((x, y), (u, v)):
        assert (a.to_numpy() == np.arange(64)).all() and (b.to_numpy() == 2 * np.arange(64) + 1).all()


def test_one_field_asks_nothing():
    x = qd.field(qd.i32, shape=4)

    @qd.kernel
    def fill():
        for i in x:
            x[i] = 3

    assert "blocks" not in fill.lower()[0]


@pytest.mark.counts("variants")
def test_rebinding_to_another_block():
    x, y = pair()
    u, v = pair()
    for f in (x, y, u, v):
        f.fill(-1)

    @qd.data_oriented
    class Holder:
        def __init__(self):
            self.a, self.b = x, y

        @qd.kernel
        def run(self):
            for i in self.a:
                self.a[i] = i + 5
                self.b[i] = self.a[i] + 1

    h = Holder()
    h.run()
    h.a, h.b = x, v  # the same layouts, two blocks
    assert counted("variants", h.run) == 1
    assert (v.to_numpy() == np.arange(64) + 6).all() and (u.to_numpy() == -1).all()
    h.a, h.b = u, v  # one again
    assert counted("variants", h.run) == 0
    assert (u.to_numpy() == np.arange(64) + 5).all()
    h.a, h.b = u, y
    assert counted("variants", h.run) == 0


def test_two_names_for_one_field():
    x = qd.field(qd.i32, shape=50)
    names = {"one": x, "other": x}

    @qd.kernel
    def through(a: qd.template(), b: qd.template()):
        for i in a:
            a[i] = i
            b[i] += 1
            a[i] = a[i] * 2

    @qd.kernel
    def captured():
        for _ in range(1):
            for k in range(49):
                names["one"][k + 1] = names["other"][k] + 1

    assert counted("launch_overlap", lambda: through(x, x)) == 0
    assert (x.to_numpy() == 2 * (np.arange(50) + 1)).all()
    x.fill(7)
    captured()
    assert (x.to_numpy() == 7 + np.arange(50)).all()


def test_a_part_and_its_whole_overlap():
    v = qd.Vector.field(3, qd.i32, shape=40)
    part = v.get_scalar_field(1)

    @qd.kernel
    def both(total: qd.types.ndarray(qd.i32, 1)):
        for _ in range(1):
            for i in range(40):
                v[i] = [i, i, i]
                part[i] += 1
                total[0] += v[i][1]

    total = qd.ndarray(qd.i32, 1)
    both(total)
    assert total[0] == sum(i + 1 for i in range(40))

    @qd.kernel
    def summed():
        for i in v:
            part[i] += 1
            v[0][1] += 1

    before = v.to_numpy()[:, 1].sum()
    summed()
    assert v.to_numpy()[:, 1].sum() == before + 80


def test_interleaved_fields_are_apart():
    """Sums and updates of fields in one cell run the code that assumes so."""
    x, y = pair(512)
    z = qd.field(qd.i32)
    deep = qd.field(qd.i32)
    cell = qd.root.dense(qd.i, 512)
    cell.place(z)
    cell.dense(qd.j, 8).place(deep)

    @qd.kernel
    def run():
        for i in x:
            x[i] += i
            y[i] += 2 * i
        for i, j in deep:
            deep[i, j] += j
        for i in z:
            s = 0
            for j in range(8):
                z[i] += deep[i, j]

    assert counted("launch_overlap", run) == 0
    assert (y.to_numpy() == 2 * np.arange(512)).all() and (x.to_numpy() == np.arange(512)).all()
    assert (z.to_numpy() == 28).all()


@pytest.mark.host_memory
def test_a_field_and_an_array_over_its_memory():
    x = qd.field(qd.i32, shape=100)
    array = np.asarray(memoryview(x))
    array[:] = 1

    @qd.kernel
    def shift(a: qd.types.ndarray(qd.i32, 1)):
        for _ in range(1):
            for i in range(99):
                x[i + 1] += a[i]

    shift(array)
    assert (x.to_numpy() == np.arange(100) + 1).all()


# ---- tallies ----


@pytest.mark.parametrize("kind", ["alone", "columns", "nested", "vector", "cell"])
def test_tallies(kind):
    n, bins = 40000, 17
    rng = np.random.default_rng(3)
    data = rng.integers(0, bins, n).astype(np.int32)
    x = qd.field(qd.i32, shape=n)
    x.from_numpy(data)
    h = qd.Vector.field(2, qd.i32) if kind == "vector" else qd.field(qd.i32)
    other = qd.field(qd.f64) if kind == "cell" else None
    if kind == "alone":
        qd.root.dense(qd.i, bins).place(h)
    elif kind == "columns":
        qd.root.dense(qd.j, 3).dense(qd.i, bins).place(h)
    elif kind == "nested":
        qd.root.dense(qd.i, 5).dense(qd.i, 4).place(h)
    elif kind == "vector":
        qd.root.dense(qd.i, bins).place(h)
    else:
        qd.root.dense(qd.i, bins).place(other, h)
        other.fill(2.5)

    @qd.kernel
    def count():
        for i in x:
            if qd.static(kind == "columns"):
                h[x[i], i % 3] += 1
            elif qd.static(kind == "vector"):
                h[x[i]][i % 2] += 1
            else:
                h[x[i]] += 1

    @qd.kernel
    def largest():
        for i in x:
            qd.atomic_max(h[x[i]], i)

    count()
    count()
    want = np.bincount(data, minlength=bins) * 2
    got = h.to_numpy()
    if kind in ("columns", "vector"):
        got = got.sum(axis=1)
    assert (got[:bins] == want).all() and not got[bins:].any()
    if kind in ("alone", "nested", "cell"):
        largest()
        last = np.zeros(bins, np.int64)
        last[data] = np.arange(n)
        assert (h.to_numpy()[:bins] == np.maximum(last, want)).all()
    if kind == "cell":
        assert (other.to_numpy() == 2.5).all()


def test_a_tally_beside_a_field_that_is_read():
    """The copy of one field would hide the others of its block."""
    n = 20000
    key, count = qd.field(qd.i32), qd.field(qd.i32)
    qd.root.dense(qd.i, n).place(key, count)
    key.from_numpy((np.arange(n) % 7).astype(np.int32))

    @qd.kernel
    def run():
        for i in key:
            count[key[i]] += 1

    run()
    assert (count.to_numpy()[:7] == np.bincount(np.arange(n) % 7)).all()


# ---- other processes ----

PROGRAM = """
import sys
import ingot as qd
qd.init()
x, y, z = (qd.field(qd.i32) for _ in range(3))
if sys.argv[1] == "later":
    qd.root.dense(qd.i, 100).place(qd.field(qd.f64))
if sys.argv[2] == "together":
    qd.root.dense(qd.i, 32).place(x, y)
    qd.root.place(z)
else:
    qd.root.dense(qd.i, 32).place(x, z)
    qd.root.dense(qd.i, 32).place(qd.field(qd.i32), y)

@qd.kernel
def run():
    for i in x:
        x[i] = 3 * i
        y[i] = x[i] + 1

run()
print([y[i] for i in range(32)] == [3 * i + 1 for i in range(32)])
c = qd._core.counters()
print("#", c["image_compiles"], c["kernel_disk_hits"])
"""


@pytest.mark.counts("lowerings")
def test_other_processes(tmp_path, cache_dir):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)

    def run(*args):
        return run_program(path, *args).split()

    assert run("alone", "together") == ["True", "1", "0"]
    assert run("later", "together") == ["True", "0", "1"]
    assert run("alone", "apart") == ["True", "1", "0"]  # the same layouts in two blocks
    assert run("later", "apart") == ["True", "0", "1"]


@pytest.mark.counts("lowerings")
def test_explain_names_the_blocks(cache_dir, target):
    if target == "interp":
        return  # nothing is compiled there
    x, y = pair()
    u, v = pair()

    @qd.kernel
    def copy(x: qd.template(), y: qd.template()):
        for i in x:
            y[i] = x[i]

    copy(x, y)
    copy(u, y)
    text = qd.explain(copy)[0]
    assert "blocks of x, y: blocks 1, 1 -> blocks 1, 2" in text
