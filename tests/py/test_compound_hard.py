"""State in objects under load: threads, object graphs that resist, temporaries by the
thousand, and mistakes that must be told with the full path and leave the process usable."""

import dataclasses
import gc
import os
import threading
import tracemalloc
import weakref

import pytest
from conftest import samples

import ingot as qd


@pytest.fixture(autouse=True)
def target():
    qd.init(arch=qd.cpu)


def array(value, dtype=qd.f32):
    a = qd.ndarray(dtype, 4)
    a.fill(value)
    return a


@dataclasses.dataclass
class Part:
    w: qd.Tensor
    k: int


@dataclasses.dataclass
class State:
    x: qd.types.ndarray()
    part: Part


@qd.kernel
def typed(s: State):
    for i in range(4):
        s.x[i] = s.part.w[i] + s.part.k


@qd.data_oriented
class Sim:
    def __init__(self, value=1, dtype=qd.f32):
        self.x, self.out, self.k = array(value, dtype), array(0, dtype), 2

    @qd.kernel
    def go(self):
        for i in range(4):
            self.out[i] = self.x[i] * self.k


# ---- threads ---------------------------------------------------------------------------------


def in_threads(*works):
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait()
            for step in range(samples(4000)):
                work(step)
        except BaseException as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=run, args=(w,)) for w in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[0]


def test_threads_with_objects_of_their_own():
    def worker(value, dtype):
        s = Sim(value, dtype)

        def work(step):
            s.k = 2 + step % 3  # each its own variant, and each finds the other's
            s.go()
            assert s.out[3] == value * s.k

        return work

    in_threads(worker(1, qd.f32), worker(2, qd.f32), worker(3, qd.f64))


def test_threads_with_one_object():
    s = Sim()
    arrays = [array(v) for v in range(8)] + [array(v, qd.f64) for v in range(8)]
    seen = set()

    def launch(step):
        s.go()
        seen.add(float(s.out[0]))

    def rebind(step):
        s.x = arrays[step % len(arrays)]
        s.unrelated = step

    in_threads(launch, launch, rebind)
    assert seen <= {v * 2.0 for v in range(8)}


def test_threads_drop_what_others_use():
    s = State(array(0), Part(array(1), 1))

    def launch(step):
        typed(s)

    def replace(step):
        s.part = Part(array(1), 1)
        s.x = array(0)

    in_threads(launch, replace, launch)
    typed(s)
    assert s.x[0] == 2


def test_threads_and_init():
    def launch(step):
        s = Sim(3)
        s.go()
        assert s.out[0] == 6

    def reset(step):
        if step % 50 == 0:
            qd.init(arch=qd.cpu)

    in_threads(launch, reset)


# ---- object graphs ---------------------------------------------------------------------------


def test_cycles():
    s = State(array(0), Part(array(1), 2))
    s.me, s.part.up, s.part.parts = s, s, [s, s.part]
    typed(s)
    assert s.x[0] == 3

    @qd.kernel
    def around(s: qd.template()):
        for i in range(4):
            s.x[i] = s.me.me.part.up.part.w[i]

    around(s)
    assert s.x[0] == 1
    s.me = State(array(5), s.part)
    s.me.me = State(array(6), Part(array(7), 1))
    s.me.me.part.up = s.me.me
    around(s)
    assert s.x[0] == 7


def test_a_read_member_that_raises():
    class Raises:
        def __init__(self):
            self.x, self.fail = array(0), False

        @property
        def n(self):
            if self.fail:
                raise ZeroDivisionError("from the property")
            return 3

    @qd.kernel
    def put(s: qd.template()):
        for i in range(4):
            s.x[i] = s.n

    s = Raises()
    put(s)
    s.fail = True
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="from the property"):
            put(s)
    s.fail = False
    put(s)
    assert s.x[0] == 3


def test_funcs_reach_gradients():
    @qd.func
    def store(a, i):
        a.grad[i] = a[i] * 2

    @qd.func
    def of_member(s: qd.template(), i):
        store(s.x, i)

    @qd.kernel
    def go(a: qd.types.ndarray(needs_grad=True), s: qd.template()):
        for i in range(4):
            store(a, i)
            of_member(s, i)

    a, s = qd.ndarray(qd.f32, 4, needs_grad=True), Sim()
    a.fill(3)
    s.x = qd.ndarray(qd.f32, 4, needs_grad=True)
    s.x.fill(5)
    go(a, s)
    assert a.grad[1] == 6 and s.x.grad[1] == 10


# ---- lifetime --------------------------------------------------------------------------------


def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_temporaries():
    watched = []

    def once(watch):
        s = State(array(0), Part(array(1), 2))
        typed(s)
        sim = Sim()
        sim.go()
        if watch:
            watched.extend(map(weakref.ref, (s, s.part, s.x, s.part.w, sim, sim.x)))

    for _ in range(50):
        once(False)
    gc.collect()
    tracemalloc.start()
    before, resident = tracemalloc.get_traced_memory()[0], memory()
    for _ in range(1000):
        once(True)
    gc.collect()
    alive = sum(w() is not None for w in watched)
    watched.clear()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert alive == 0
    assert grown < 64 << 10
    assert memory() - resident < 16 << 20


# ---- mistakes --------------------------------------------------------------------------------


def spoil_text(s):
    s.part.w = "text"


def spoil_object(s):
    s.part.w = object()


def spoil_number(s):
    s.part.k = "three"


def spoil_missing(s):
    del s.part.w


def spoil_part(s):
    s.part = 7


def spoil_part_missing(s):
    del s.part


def spoil_list(s):
    s.part.w = [1.0, 2.0]


@pytest.mark.parametrize("spoil, path", [
    (spoil_text, r"part\.w"), (spoil_object, r"part\.w"), (spoil_number, r"part\.k"),
    (spoil_missing, "'w'"), (spoil_part, "'w'"), (spoil_part_missing, "'part'"),
    (spoil_list, r"part\.w"),
])
@pytest.mark.parametrize("launched", [False, True])
def test_members_that_do_not_fit(spoil, path, launched):
    s = State(array(0), Part(array(1), 2))
    if launched:
        typed(s)
    spoil(s)
    for _ in range(2):
        with pytest.raises(qd.IngotError, match=path):
            typed(s)
    s.part = Part(array(10), 2)
    typed(s)
    assert s.x[0] == 12


def test_a_number_that_may_be_missing_is_no_parameter():
    @qd.kernel
    def bad(n: "int | None"):
        pass

    with pytest.raises(qd.IngotSyntaxError, match="'n' is a number or None"):
        bad(3)
