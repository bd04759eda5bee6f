"""State in objects under load: threads, object graphs that resist, temporaries by the
thousand, and mistakes that must be told with the full path and leave the process usable."""

import collections
import dataclasses
import gc
import os
import re
import statistics
import subprocess
import sys
import threading
import tracemalloc
import types
import weakref

import numpy as np
import pytest
from conftest import filled, needs, samples

import ingot as qd


@pytest.fixture(autouse=True)
def target():
    qd.init(arch=qd.cpu)


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
        self.x, self.out, self.k = filled(value, dtype=dtype), filled(0, dtype=dtype), 2

    @qd.kernel
    def go(self):
        for i in range(4):
            self.out[i] = self.x[i] * self.k


# ---- threads ---------------------------------------------------------------------------------


def in_threads(*works, steps=samples(4000)):
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        try:
            start.wait()
            for step in range(steps):
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
    arrays = [filled(v) for v in range(8)] + [filled(v, dtype=qd.f64) for v in range(8)]
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
    s = State(filled(0), Part(filled(1), 1))

    def launch(step):
        typed(s)

    def replace(step):
        s.part = Part(filled(1), 1)
        s.x = filled(0)

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


LARGE = 60_000  # so many elements run without the GIL


def large(value, dtype=qd.f32):
    a = qd.ndarray(dtype, LARGE)
    a.fill(value)
    return a


class Big:
    def __init__(self, value, dtype=qd.f32):
        self.x, self.out, self.k = large(value, dtype), large(0, dtype), 2


@qd.kernel
def scale(s: qd.template(), out: qd.types.ndarray(), shift: qd.i32):
    for i in range(s.x.shape[0]):
        out[i] = s.x[i] * s.k + shift


def all_are(out, value):
    found = out.to_numpy(copy=False)
    return (found == value).all()


def test_threads_run_one_kernel_at_once_on_objects_of_their_own():
    def worker(value, dtype):
        s = Big(value, dtype)

        def work(step):
            s.k = 2 + step % 2
            scale(s, s.out, step)
            assert all_are(s.out, value * s.k + step)

        return work

    in_threads(worker(1, qd.f32), worker(2, qd.f32), worker(3, qd.f64), steps=samples(1000))


def test_threads_run_one_kernel_at_once_on_one_object():
    s = Big(3)

    def worker(own):
        def work(step):
            scale(s, own, step)
            assert all_are(own, 6 + step)

        return work

    in_threads(worker(large(0)), worker(large(0)), worker(large(0, qd.f64)), steps=samples(1000))


def test_threads_replace_what_others_are_working_on():
    """A launch keeps what it works on, though nobody else does."""
    s = Big(1)
    values = [1.0, 2.0, 3.0]

    def launch(step):
        out = large(0)
        scale(s, out, 0)
        found = out.to_numpy()
        assert (found == found[0]).all() and found[0] / 2 in values, found[0]

    def replace(step):
        s.x = large(values[step % 3])

    in_threads(launch, replace, launch, steps=samples(1000))


# ---- object graphs ---------------------------------------------------------------------------


def test_cycles():
    s = State(filled(0), Part(filled(1), 2))
    s.me, s.part.up, s.part.parts = s, s, [s, s.part]
    typed(s)
    assert s.x[0] == 3

    @qd.kernel
    def around(s: qd.template()):
        for i in range(4):
            s.x[i] = s.me.me.part.up.part.w[i]

    around(s)
    assert s.x[0] == 1
    s.me = State(filled(5), s.part)
    s.me.me = State(filled(6), Part(filled(7), 1))
    s.me.me.part.up = s.me.me
    around(s)
    assert s.x[0] == 7


def test_a_read_member_that_raises():
    class Raises:
        def __init__(self):
            self.x, self.fail = filled(0), False

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


class Reader:
    """An object whose property `n` runs what is given, each time it is read."""

    def __init__(self, read):
        self.x, self.read = filled(0), read

    @property
    def n(self):
        return self.read(self)


@qd.kernel
def read_n(s: qd.template()):
    for i in range(4):
        s.x[i] = s.n


def test_properties_that_launch():
    def read(s):
        typed(s.state)
        return int(s.state.x[0])

    s = Reader(read)
    s.state = State(filled(0), Part(filled(1), 2))
    for k in (2, 5, 2):
        s.state.part.k = k
        read_n(s)
        assert s.x[0] == 1 + k


def test_properties_that_start_again():
    def read(s):
        s.count = getattr(s, "count", 0) + 1
        if s.count % 3 == 0:
            qd.init(arch=qd.cpu)
        return 4

    s = Reader(read)
    for _ in range(6):
        s.x.fill(0)
        read_n(s)
        assert s.x[3] == 4


def test_properties_that_never_end():
    with pytest.raises(RecursionError):
        read_n(Reader(read_n))
    count = iter(range(10_000))
    with pytest.raises(qd.IngotRuntimeError, match="changes each time it is read"):
        read_n(Reader(lambda s: next(count)))
    s = Reader(lambda s: 3)
    read_n(s)
    assert s.x[0] == 3


LATER = None


@qd.kernel
def read_later(s: qd.template()):
    for i in range(4):
        s.x[i] = 1 if qd.static(s.n == LATER) else 2


@pytest.mark.counts("reads of a property, which gives another value after some of them")
@pytest.mark.parametrize("values", [(3, 4), ("a", "b"), (None, 0), (qd.f32, qd.i32)], ids=str)
@pytest.mark.parametrize("reads", range(8))
def test_a_property_that_changes_its_mind(reads, values, monkeypatch):
    """Between any two of the times that a compile and its launch read it: the next launch has the
    value of now, not that of then."""
    monkeypatch.setattr(sys.modules[__name__], "LATER", values[1])
    count = iter([values[0]] * reads)
    s = Reader(lambda s: next(count, values[1]))
    read_later(s)
    for _ in count:
        pass
    for _ in range(2):
        s.x.fill(0)
        read_later(s)
        assert s.x[0] == 1


def test_a_property_that_settles():
    """What another thread changes may be another value after each compile, for a while."""
    count = iter(range(10))
    s = Reader(lambda s: next(count, 10))
    read_n(s)
    assert s.x[0] == 10


def test_a_property_that_replaces_itself():
    class Once:
        def __init__(self):
            self.x = filled(0)

        @property
        def n(self):
            del Once.n
            self.n = 4
            return 4

    s = Once()
    for _ in range(3):
        read_n(s)
        assert s.x[0] == 4


def test_objects_of_other_kinds():
    class Lies:
        def __init__(self):
            self.x, self.n = filled(0), 2

        __class__ = property(lambda self: int)

    class Attributes(dict):
        __getattr__ = dict.__getitem__

    named = collections.namedtuple("Named", "x n")
    module = types.ModuleType("module")
    module.x, module.n = filled(0), 2
    kinds = [
        Lies(), types.SimpleNamespace(x=filled(0), n=2), named(filled(0), 2), module,
        Attributes(x=filled(0), n=2),
    ]
    for _ in range(2):
        for s in kinds:
            s.x.fill(0)
            read_n(s)
            assert s.x[0] == 2
    module.n = kinds[4]["n"] = 5
    read_n(module)
    read_n(kinds[4])
    assert module.x[0] == kinds[4].x[0] == 5


# ---- lifetime --------------------------------------------------------------------------------


def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_temporaries():
    watched = []

    def once(watch):
        s = State(filled(0), Part(filled(1), 2))
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


def test_temporary_classes_and_funcs():
    """Containers of a class of their own, parts of other classes, funcs of their own."""

    @qd.kernel
    def sum_up(out: qd.types.ndarray(), s: qd.template()):
        for i in range(4):
            out[i] = s.f(s.part.w[i]) + s.k

    def once(step):
        class Own:
            pass

        class Inside:
            pass

        @qd.func
        def twice(v):
            return v * 2

        s = Own()
        s.part, s.f, s.k = Inside(), twice, step % 3
        s.part.w = filled(5)
        sum_up(out, s)
        assert out[0] == 10 + step % 3
        return [weakref.ref(o) for o in (s, s.part, s.part.w, Own, Inside)]

    out, watched = filled(0), []
    for step in range(50):
        once(step)
    gc.collect()
    tracemalloc.start()
    sizes = [tracemalloc.get_traced_memory()[0]]
    for _ in range(5):
        for step in range(200):
            watched += once(step)
        gc.collect()
        assert not any(w() is not None for w in watched)
        watched.clear()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # Python's table of all classes doubles or shrinks in some rounds: the median says what stays
    grown = statistics.median(b - a for a, b in zip(sizes, sizes[1:]))
    assert grown < 8 << 10 and sum_up._variants == 3


# ---- what a launch costs ---------------------------------------------------------------------

CROWDED = """
import ctypes, sys
import ingot as qd

qd.init(arch=qd.cpu)


class State:
    def __init__(self, more):
        for j in range(more // 2):
            setattr(self, f"before{j}", j)
        self.x, self.k = qd.ndarray(qd.f32, 4), 2
        for j in range(more // 2):
            setattr(self, f"after{j}", j)


@qd.kernel
def fill(s: qd.template()):
    for i in range(4):
        s.x[i] = s.k


def several(call, s):
    for _ in range(100):
        call(s)


states = [State(0), State(10_000)]
for s in states:
    several(fill, s)
if len(sys.argv) > 1:
    marks = ctypes.PyDLL(sys.argv[1])
    begin, end = marks.begin, marks.end
    for s in states:
        name = str(len(vars(s))).encode()
        several(fill, s)
        begin()
        several(fill, s)
        end(name)
"""

MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


@needs("valgrind", "gcc")
def test_unrelated_members_cost_no_instruction(tmp_path, cache_dir):
    (tmp_path / "crowded.py").write_text(CROWDED)
    (tmp_path / "marks.c").write_text(MARKS)
    library = tmp_path / "marks.so"
    env = dict(os.environ, INGOT_CPU_LEVEL="x86-64-v3", PYTHONHASHSEED="0")

    def run(*command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    run("gcc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "marks.c")
    run(sys.executable, tmp_path / "crowded.py")  # compiles
    run("valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={tmp_path / 'counts'}",
        sys.executable, tmp_path / "crowded.py", library)
    counts = {}
    for path in tmp_path.glob("counts.*"):
        text = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: ?(\d+)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if name and total:
            counts[int(name[1])] = int(total[1])
    assert set(counts) == {2, 10_002}
    # Python 3.10 looks members up in tables whose collisions depend on addresses.
    assert abs(counts[10_002] / counts[2] - 1) < (0.03 if sys.version_info >= (3, 11) else 0.06), counts


# ---- mistakes --------------------------------------------------------------------------------


def member(path):
    """What sets a member of a State, or with no value deletes it."""
    *owners, name = path.split(".")

    def change(s, *value):
        for owner in owners:
            s = getattr(s, owner)
        setattr(s, name, *value) if value else delattr(s, name)

    return change


@qd.func
def of_part(p: Part, i):
    return p.w[i] + p.k


@qd.func
def of_state(s, i):
    return of_part(s.part, i)


@qd.kernel
def in_funcs(s: State):
    for i in range(4):
        s.x[i] = of_state(s, i)


@qd.kernel
def by_template(s: qd.template()):
    for i in range(4):
        s.x[i] = of_state(s, i)


KERNELS = {"typed": typed, "in funcs": in_funcs, "template": by_template}
WHERE = "where p is s.part"
SPOILED = [  # path, value if any, what each kernel says
    ("part.w", ["text"], {"": r"s\.part\.w is declared as an array, it is str"}),
    ("part.w", [object()], {"": r"s\.part\.w is declared as an array, it is object"}),
    ("part.w", [[1.0, 2.0]], {"": r"s\.part\.w is declared as an array, it is list"}),
    ("part.w", [3.5], {"": r"s\.part\.w is declared as an array, it is float"}),
    ("part.w", [None], {"typed": r"None cannot be indexed.*s\.part\.w\[i\]", "": WHERE}),
    ("part.w", [], {"typed": r"no attribute 'w'.*s\.part\.w", "": f"no attribute 'w'.*{WHERE}"}),
    ("part.k", ["three"], {"": r"s\.part\.k: it must be an integer \(i32\), it is str"}),
    ("part.k", [2.5], {"": r"s\.part\.k: it must be an integer \(i32\), it is float"}),
    ("part.k", [None], {"": r"s\.part\.k: it must be an integer \(i32\), it is NoneType"}),
    ("part.k", [1 << 40], {"": r"s\.part\.k: the value does not fit in i32"}),
    ("part.k", [], {"": r"s\.part\.k: there is no such attribute"}),
    ("part", [7], {"typed": r"no attribute 'w'.*s\.part\.w", "": f"the integer 7 has no attribute 'w'.*{WHERE}"}),
    ("part", [None], {"typed": r"no attribute 'w'.*s\.part\.w", "": f"None has no attribute 'w'.*{WHERE}"}),
    ("part", [], {"": r"no attribute 'part'.*s\.part"}),
    ("x", [np.zeros(8, np.float32)[::2]], {"": r"s\.x.*(contiguous|gaps)"}),
    ("x", [np.zeros(4, "U3")], {"": r"s\.x"}),
    ("x", ["text"], {"template": r"s\.x\[i\]", "": r"s\.x is declared as an array, it is str"}),
    ("x", [], {"": r"no attribute 'x'.*s\.x"}),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("path, value, says", SPOILED)
def test_members_that_do_not_fit(path, value, says, kernel):
    """Before the first launch and between launches; the kernel works again afterwards."""
    launch, pattern = KERNELS[kernel], says.get(kernel, says.get(""))
    for launched in (False, True):
        s = State(filled(0), Part(filled(1), 2))
        if launched:
            launch(s)
        member(path)(s, *value)
        for _ in range(2):
            with pytest.raises(qd.IngotError) as caught:
                launch(s)
            assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)
        s.x, s.part = filled(0), Part(filled(10), 2)
        launch(s)
        assert s.x[0] == 12


def test_vectors_of_another_size():
    vec3, mat2 = qd.types.vector(3, qd.f32), qd.types.matrix(2, 2, qd.f32)

    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        v: vec3
        m: mat2

    @qd.kernel
    def first(s: Own):
        for i in range(4):
            s.x[i] = s.v[0] + s.m[0, 1]

    s = Own(filled(0), vec3(1, 2, 3), mat2([[1, 2], [3, 4]]))
    first(s)
    for name, bad, says in [
        ("v", qd.Vector([1.0, 2.0]), r"s\.v: it is declared as a vector of 3, it is a vector of 2"),
        ("v", mat2([[1, 2], [3, 4]]), r"s\.v: it is declared as a vector of 3, it is a matrix of 2 x 2"),
        ("m", qd.Matrix([[1.0, 2.0, 3.0]]), r"s\.m: it is declared as a matrix of 2 x 2, it is a matrix of 1 x 3"),
    ]:
        good = getattr(s, name)
        setattr(s, name, bad)
        with pytest.raises(qd.IngotTypeError, match=says):
            first(s)
        setattr(s, name, good)
        first(s)
    assert s.x[0] == 3 and first._variants == 1


@dataclasses.dataclass
class Link:
    w: qd.types.ndarray()
    next: "Other"


@dataclasses.dataclass
class Other:
    link: "Link"
    k: int


@qd.func
def chain(n: Link, i):
    r = n.w[i]
    if qd.static(n.next is not None):
        r += n.next.k
        if qd.static(n.next.link is not None):
            r += chain(n.next.link, i)
    return r


@qd.kernel
def follow(n: Link, out: qd.types.ndarray()):
    for i in range(4):
        out[i] = chain(n, i)


def test_annotations_that_mention_each_other():
    out, last = filled(0), Link(filled(100), None)
    n = Link(filled(1), Other(Link(filled(2), Other(last, 20)), 10))
    for k in (20, 30):
        n.next.link.next.k = k
        follow(n, out)
        assert out[0] == 1 + 10 + 2 + k + 100
    assert follow._variants == 1
    last.next = Other(n, 5)  # a ring: no end of it
    with pytest.raises(qd.IngotError, match="chain"):
        follow(n, out)
    last.next = None
    follow(n, out)
    assert out[0] == 143


def test_a_number_that_may_be_missing_is_no_parameter():
    @qd.kernel
    def bad(n: "int | None"):
        pass

    with pytest.raises(qd.IngotSyntaxError, match="'n' is a number or None"):
        bad(3)
