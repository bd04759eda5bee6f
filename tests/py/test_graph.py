"""Graph kernels: loops on the data, checkpoints, sections; what they refuse and where."""

import dataclasses
import os
import signal
import threading
import warnings
from enum import IntEnum

import numpy as np
import pytest
from conftest import needs

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def flag(value=0):
    f = qd.ndarray(qd.i32, ())
    f[()] = value
    return f


A1 = qd.types.ndarray(qd.i32, ndim=1)
FLAG = qd.types.ndarray(qd.i32, ndim=0)


# ---- loops -----------------------------------------------------------------------------------


@qd.kernel(graph=True)
def count(x: A1, c: FLAG):
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            x[i] += 1
        c[()] -= 1


def test_do_while_runs_until_the_flag_is_zero():
    x, c = qd.ndarray(qd.i32, (40,)), flag(7)
    count(x, c)
    assert (x.to_numpy() == 7).all() and c[()] == 0


def test_other_arrays_rebind_without_a_rebuild():
    for n, trips in ((3, 1), (5, 4), (3, 2)):
        x, c = qd.ndarray(qd.i32, (n,)), flag(trips)
        count(x, c)
        assert (x.to_numpy() == trips).all()
    assert count._variants == 1


@qd.kernel(graph=True)
def once(x: A1, c: FLAG):
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            x[i] += 1


def test_a_flag_that_is_zero_at_launch_still_runs_the_body_once():
    x = qd.ndarray(qd.i32, (3,))
    once(x, flag(0))
    assert (x.to_numpy() == 1).all()


@qd.kernel(graph=True)
def nest(x: A1, outer: FLAG, inner: FLAG):
    x[0] += 100
    while qd.graph.do_while(outer):
        inner[()] = 3
        while qd.graph.do_while(inner):
            for i in range(x.shape[0]):
                x[i] += 1
            inner[()] -= 1
        for i in range(x.shape[0]):
            x[i] += 10
        outer[()] -= 1
    while qd.graph.do_while(inner):
        x[1] += 1000
        inner[()] = 0


def test_nested_sibling_and_plain_loops():
    x, outer, inner = qd.ndarray(qd.i32, (4,)), flag(5), flag()
    nest(x, outer, inner)
    assert list(x.to_numpy()) == [165, 1065, 65, 65]


@qd.func
def body(x: qd.template(), c: qd.template()):
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            x[i] += 2
        c[()] -= 1


@qd.kernel(graph=True)
def through_func(x: A1, c: FLAG, d: FLAG):
    body(x, c)
    while qd.graph.do_while(d):
        c[()] = 2
        body(x, c)
        d[()] -= 1


def test_loops_inside_funcs():
    x, c, d = qd.ndarray(qd.i32, (3,)), flag(3), flag(2)
    through_func(x, c, d)
    assert (x.to_numpy() == 14).all()


@qd.kernel(graph=True)
def carried(out: A1, c: FLAG):
    total = 0
    while qd.graph.do_while(c):
        step = 0
        step = step + c[()]
        total = total + step
        for i in range(out.shape[0]):
            out[i] = total * 10 + step
        c[()] -= 1


def test_locals_live_across_iterations_and_are_fresh_inside():
    out, c = qd.ndarray(qd.i32, (2,)), flag(4)
    carried(out, c)
    assert list(out.to_numpy()) == [101, 101]


@qd.kernel(graph=True)
def bounds(x: A1, n: FLAG, c: FLAG):
    while qd.graph.do_while(c):
        for i in range(n[()]):
            x[i] += 1
        n[()] -= 1
        c[()] -= 1


def test_bounds_are_read_in_every_iteration():
    x, n, c = qd.ndarray(qd.i32, (5,)), flag(4), flag(3)
    bounds(x, n, c)
    assert list(x.to_numpy()) == [3, 3, 2, 1, 0]


@qd.kernel(graph=True)
def summing(x: qd.types.ndarray(qd.f32, ndim=1), total: qd.types.ndarray(qd.f32, ndim=0), c: FLAG):
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            total[()] += x[i]
        c[()] -= 1


def test_reductions_inside_a_loop():
    x, total = qd.ndarray(qd.f32, (1000,)), qd.ndarray(qd.f32, ())
    x.fill(0.5)
    summing(x, total, flag(4))
    assert total[()] == 2000


# ---- where flags live ----------------------------------------------------------------------------


@dataclasses.dataclass
class Inner:
    counter: qd.types.ndarray(qd.i32, ndim=0)


@dataclasses.dataclass
class Params:
    x: qd.types.ndarray(qd.i32, ndim=1)
    inner: Inner


@qd.kernel(graph=True)
def by_dataclass(p: Params):
    while qd.graph.do_while(p.inner.counter):
        for i in range(p.x.shape[0]):
            p.x[i] += 1
        p.inner.counter[()] -= 1


def test_a_flag_that_is_a_member_of_a_dataclass():
    p = Params(qd.ndarray(qd.i32, (3,)), Inner(flag(6)))
    by_dataclass(p)
    assert (p.x.to_numpy() == 6).all()


class Stage(IntEnum):
    SIM = 10
    AFTER = 20


@qd.data_oriented
class Sim:
    def __init__(self, n=4):
        self.x = qd.ndarray(qd.i32, (n,))
        self.counter, self.full = flag(), flag()
        self.scalar = 7

    @qd.kernel(graph=True)
    def loop(self):
        while qd.graph.do_while(self.counter):
            for i in range(self.x.shape[0]):
                self.x[i] += 1
            self.counter[()] -= 1

    @qd.kernel(graph=True, checkpoints=True)
    def step(self, amount: qd.i32):
        with qd.checkpoint(Stage.SIM, yield_on=self.full):
            for i in range(self.x.shape[0]):
                self.x[i] += amount
                self.full[()] = 1
        with qd.checkpoint(Stage.AFTER, yield_on=self.full):
            for i in range(self.x.shape[0]):
                self.x[i] += 10 * amount


def test_members_of_data_oriented_objects():
    sim = Sim()
    sim.counter[()] = 3
    sim.loop()
    assert (sim.x.to_numpy() == 3).all()
    sim.counter = flag(2)  # rebound: seen
    sim.loop()
    assert (sim.x.to_numpy() == 5).all()


@pytest.mark.after_passes
def test_methods_yield_and_resume():
    sim = Sim()
    status = sim.step(2)
    assert status.yielded and status.checkpoint is Stage.SIM
    sim.full[()] = 0
    step = sim.step
    status = step.resume(2, from_checkpoint=Stage.AFTER)
    assert status == qd.GraphStatus() and (sim.x.to_numpy() == 22).all()
    assert step.__self__ is sim and step.__name__ == "step"
    assert Sim.step.resume(sim, amount=1, from_checkpoint=20) == qd.GraphStatus(False, None)


# ---- checkpoints -------------------------------------------------------------------------------------


@qd.kernel(graph=True, checkpoints=True)
def staged(x: A1, f: FLAG, c: FLAG):
    for i in range(x.shape[0]):
        x[i] += 1
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            x[i] += 10
        with qd.checkpoint(5, yield_on=f):
            """A docstring is no statement."""
            for i in range(x.shape[0]):
                x[i] += 100
        for i in range(x.shape[0]):
            x[i] += 1000
        c[()] -= 1
    for i in range(x.shape[0]):
        x[i] += 100000


@pytest.mark.after_passes
def test_yield_ends_the_launch_and_resume_goes_on_inside_the_loop():
    x, f, c = qd.ndarray(qd.i32, (2,)), flag(1), flag(2)
    status = staged(x, f, c)
    assert status.yielded and status.checkpoint == 5 and repr(status)
    assert x[0] == 111 and f[()] == 1 and c[()] == 2  # the flag is never written
    f[()] = 0
    status = staged.resume(x, f, c, from_checkpoint=status.checkpoint)
    assert not status.yielded and status.checkpoint is None
    assert x[0] == 111 + 100 + 1000 + 10 + 100 + 1000 + 100000


@pytest.mark.after_passes
def test_unknown_labels_and_kernels_without_checkpoints():
    x = qd.ndarray(qd.i32, (2,))
    with pytest.raises(RuntimeError, match="does not match any .*staged(.|\n)*it has 5"):
        staged.resume(x, flag(), flag(), from_checkpoint=6)
    for wrong in ("5", 5.0, True, None):
        with pytest.raises(RuntimeError, match="must be an int or IntEnum value"):
            staged.resume(x, flag(), flag(), from_checkpoint=wrong)
    with pytest.raises(RuntimeError, match="does not match"):
        staged.resume(x, flag(), flag(), from_checkpoint=1 << 80)
    with pytest.raises(TypeError, match="from_checkpoint"):
        staged.resume(x, flag(), flag())
    with pytest.raises(RuntimeError, match="no checkpoints to resume from"):
        count.resume(x, flag(), from_checkpoint=1)
    assert (x.to_numpy() == 0).all()


@qd.kernel(graph=True, checkpoints=True)
def plain(x: A1):
    for i in range(x.shape[0]):
        x[i] += 1


def test_a_kernel_without_a_checkpoint_in_it_has_a_status_too():
    assert plain(qd.ndarray(qd.i32, (2,))) == qd.GraphStatus(False, None)


def make_labelled(label):
    @qd.kernel(graph=True, checkpoints=True)
    def k(x: A1, f: FLAG):
        with qd.checkpoint(label, yield_on=f):
            for i in range(x.shape[0]):
                x[i] += 1

    return k


@pytest.mark.after_passes
def test_labels_are_the_users_own_objects():
    class Other(IntEnum):
        HERE = 10

    x = qd.ndarray(qd.i32, (1,))
    for label in (Stage.SIM, Other.HERE, 10, -4):
        status = make_labelled(label)(x, flag(1))
        assert status.checkpoint is label or status.checkpoint == label == -4
        assert type(status.checkpoint) is type(label)


def test_outside_of_kernels_they_do_nothing():
    seen = []
    with qd.checkpoint(0, None), qd.graph.parallel_context(), qd.graph.parallel():
        seen.append(1)
    assert seen == [1]
    with pytest.raises(qd.IngotSyntaxError, match="condition of a `while`"):
        qd.graph.do_while(flag())


# ---- sections ------------------------------------------------------------------------------------------


@qd.kernel(graph=True)
def fork(x: A1, y: A1, z: A1, c: FLAG):
    while qd.graph.do_while(c):
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                for i in range(x.shape[0]):
                    x[i] += 1
                for i in range(x.shape[0]):
                    x[i] *= 2
            with qd.graph.parallel():
                for i in range(y.shape[0]):
                    y[i] += x.shape[0]
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                for i in range(z.shape[0]):
                    z[i] = x[i] + y[i]
        c[()] -= 1


@pytest.mark.parametrize("n", [3, 40_000, 300_000])
def test_sections_fork_and_join(n, target):
    if target == "interp":
        n = min(n, 20_000)
    x, y, z = (qd.ndarray(qd.i32, (n,)) for _ in range(3))
    fork(x, y, z, flag(3))
    assert (x.to_numpy() == 14).all() and (z.to_numpy() == 14 + 3 * n).all()


@qd.data_oriented
class Contacts:
    def __init__(self, n, second):
        self.arrays = [qd.ndarray(qd.i32, (n,)) for _ in range(3)]
        self.second = second
        self.funcs = [self.first, self.other]

    @qd.func
    def first(self):
        for i in range(self.arrays[0].shape[0]):
            self.arrays[0][i] += 1

    @qd.func
    def other(self):
        for i in range(self.arrays[1].shape[0]):
            self.arrays[1][i] += 2

    @qd.kernel(graph=True)
    def run(self):
        with qd.graph.parallel_context():
            for k in qd.static(range(len(self.funcs))):
                with qd.graph.parallel():
                    self.funcs[k]()
            if qd.static(self.second):
                with qd.graph.parallel():
                    for i in range(self.arrays[2].shape[0]):
                        self.arrays[2][i] += 3
            for k in qd.static(range(0)):
                with qd.graph.parallel():
                    self.arrays[2][0] = 1


@pytest.mark.parametrize("second", [False, True])
def test_sections_from_static_loops_and_branches(second):
    s = Contacts(4, second)
    s.run()
    assert [int(a.to_numpy().sum()) for a in s.arrays] == [4, 8, 12 * second]


@qd.kernel(graph=True)
def two_sums(x: qd.types.ndarray(qd.f64, ndim=1), s: qd.types.ndarray(qd.f64, ndim=1)):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                s[0] += x[i]
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                s[1] += 2 * x[i]


def test_reductions_in_two_sections_at_once(target):
    n = 200_000 if target == "native" else 2_000
    x, s = qd.ndarray(qd.f64, (n,)), qd.ndarray(qd.f64, (2,))
    x.from_numpy(np.arange(n, dtype=np.float64))
    for _ in range(20):
        s.fill(0)
        two_sums(x, s)
        assert list(s.to_numpy()) == [n * (n - 1) / 2, n * (n - 1)]


@qd.kernel(graph=True)
def failing(x: A1, y: A1, k: qd.i32):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                assert x[i] >= 0, "below zero"
                x[i] += 1
        with qd.graph.parallel():
            for i in range(y.shape[0]):
                y[i] += k


def test_an_assert_in_a_section(target):
    qd.init(arch=TARGETS[target], debug=True)
    x, y = qd.ndarray(qd.i32, (50_000,)), qd.ndarray(qd.i32, (50_000,))
    x[49_999] = -1
    with pytest.raises(AssertionError, match="below zero"):
        failing(x, y, 1)
    x[49_999] = 0
    failing(x, y, 1)


# ---- threads, signals -----------------------------------------------------------------------------------------


def test_threads_launch_one_kernel_at_once():
    errors = []

    def work():
        try:
            for _ in range(30):
                x, c = qd.ndarray(qd.i32, (50,)), flag(9)
                count(x, c)
                assert (x.to_numpy() == 9).all()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@qd.kernel(graph=True)
def forever(x: A1, c: FLAG):
    while qd.graph.do_while(c):
        for i in range(x.shape[0]):
            x[i] += 1


@qd.kernel(graph=True)
def forever_empty(c: FLAG):
    while qd.graph.do_while(c):
        pass


def test_ctrl_c_ends_an_endless_loop():
    x = qd.ndarray(qd.i32, (10,))
    forever(x, flag(0))
    forever_empty(flag(0))
    for launch in (lambda: forever(x, flag(1)), lambda: forever_empty(flag(1))):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            launch()
        timer.join()
    before = int(x[0])
    forever(x, flag(0))
    assert x[0] == before + 1


# ---- what is refused ---------------------------------------------------------------------------------------------


def refused(kernel, *args, words):
    with pytest.raises(qd.IngotSyntaxError) as e:
        kernel(*args)
    text = str(e.value)
    assert words in text and "\nhelp: " in text and "test_graph.py:" in text and "^" in text, text


def test_places():
    @qd.kernel
    def no_graph(x: A1, c: FLAG):
        while qd.graph.do_while(c):
            x[0] += 1

    @qd.kernel(graph=True)
    def in_for(x: A1, c: FLAG):
        for i in range(3):
            while qd.graph.do_while(c):
                x[0] += 1

    @qd.kernel(graph=True)
    def in_if(x: A1, c: FLAG):
        if x[0] > 0:
            while qd.graph.do_while(c):
                x[0] += 1

    @qd.kernel(graph=True)
    def left(x: A1, c: FLAG):
        while qd.graph.do_while(c):
            break

    @qd.kernel(graph=True)
    def returns(x: A1, c: FLAG):
        while qd.graph.do_while(c):
            return

    @qd.kernel(graph=True)
    def value(x: A1, c: FLAG) -> qd.i32:
        return x[0]

    @qd.kernel(graph=True)
    def no_flag(x: A1, c: FLAG):
        while qd.graph.do_while():
            x[0] += 1

    x, c = qd.ndarray(qd.i32, (4,)), flag(1)
    refused(no_graph, x, c, words="requires @qd.kernel(graph=True)")
    refused(in_for, x, c, words="kernel top level")
    refused(in_if, x, c, words="kernel top level")
    refused(left, x, c, words="`break` cannot leave")
    refused(returns, x, c, words="`return` cannot leave")
    refused(value, x, c, words="cannot return a value")
    refused(no_flag, x, c, words="takes one argument")
    count(x, flag(1))  # usable afterwards


def test_flags():
    sim = Sim()

    @qd.kernel(graph=True)
    def expression(x: A1, c: FLAG):
        while qd.graph.do_while(c[()]):
            x[0] += 1

    @qd.kernel(graph=True)
    def undefined(x: A1, c: FLAG):
        while qd.graph.do_while(nothing):  # noqa: F821
            x[0] += 1

    @qd.kernel(graph=True)
    def wide(x: A1, c: FLAG):
        while qd.graph.do_while(x):
            x[0] += 1

    @qd.kernel(graph=True)
    def floats(x: A1, c: qd.types.ndarray(qd.f32, ndim=0)):
        while qd.graph.do_while(c):
            x[0] += 1

    @qd.kernel(graph=True)
    def absent(s: qd.template()):
        while qd.graph.do_while(s.counters):
            s.x[0] += 1

    @qd.kernel(graph=True)
    def scalar(s: qd.template()):
        while qd.graph.do_while(s.scalar):
            s.x[0] += 1

    x, c = qd.ndarray(qd.i32, (4,)), flag(1)
    refused(expression, x, c, words="must reference a kernel ndarray argument")
    for k, args in ((undefined, (x, c)), (wide, (x, c)), (floats, (x, qd.ndarray(qd.f32, ()))),
                    (absent, (sim,)), (scalar, (sim,))):
        refused(k, *args, words="does not resolve to an ndarray kernel parameter")


@pytest.mark.after_passes
def test_checkpoints_that_are_refused():
    with pytest.raises(qd.IngotSyntaxError, match="requires graph=True"):
        qd.kernel(checkpoints=True)

    @qd.kernel(graph=True, checkpoints=True)
    def lost(x: A1, f: FLAG):
        v = x[0]
        with qd.checkpoint(0, yield_on=f):
            for i in range(x.shape[0]):
                x[i] += v

    @qd.kernel(graph=True, checkpoints=True)
    def twice(x: A1, f: FLAG):
        for k in qd.static(range(2)):
            with qd.checkpoint(Stage.SIM, yield_on=f):
                for i in range(x.shape[0]):
                    x[i] += 1

    @qd.kernel(graph=True, checkpoints=True)
    def bare(x: A1, f: FLAG):
        with qd.checkpoint(0, yield_on=f):
            x[0] += 1

    @qd.kernel(graph=True, checkpoints=True)
    def label(x: A1, f: FLAG):
        with qd.checkpoint(x[0], yield_on=f):
            pass

    @qd.kernel(graph=True, checkpoints=True)
    def nested(x: A1, f: FLAG):
        with qd.checkpoint(0, yield_on=f):
            with qd.checkpoint(1, yield_on=f):
                pass

    @qd.kernel(graph=True, checkpoints=True)
    def loop(x: A1, f: FLAG):
        with qd.checkpoint(0, yield_on=f):
            while qd.graph.do_while(f):
                pass

    @qd.kernel(graph=True, checkpoints=True)
    def named(x: A1, f: FLAG):
        with qd.checkpoint(0, yield_on=f) as name:  # noqa: F841
            pass

    x, f = qd.ndarray(qd.i32, (4,)), flag()
    refused(lost, x, f, words="a resume from there would skip its computation")
    refused(twice, x, f, words="already used by another checkpoint")
    refused(bare, x, f, words="bare top-level AugAssign statement")
    refused(label, x, f, words="must be an int literal or an IntEnum value")
    refused(nested, x, f, words="cannot be nested")
    refused(loop, x, f, words="kernel top level")
    refused(named, x, f, words="nothing that could be named")


@qd.kernel(graph=True, checkpoints=True)
def made_again(x: A1, k: qd.i32, f: FLAG):
    n = x.shape[0] * k + 1
    with qd.checkpoint(0, yield_on=f):
        for i in range(x.shape[0]):
            x[i] += n


@pytest.mark.after_passes
def test_values_of_arguments_may_cross_a_checkpoint():
    x = qd.ndarray(qd.i32, (4,))
    made_again(x, 2, flag())
    made_again.resume(x, 2, flag(), from_checkpoint=0)
    assert x[0] == 18


def test_sections_that_are_refused():
    @qd.kernel(graph=True)
    def alone(x: A1, n: qd.i32):
        with qd.graph.parallel():
            x[0] += 1

    @qd.kernel(graph=True)
    def work(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            x[0] += 1

    @qd.kernel(graph=True)
    def runtime_loop(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            for _ in range(n):
                with qd.graph.parallel():
                    x[0] += 1

    @qd.kernel(graph=True)
    def runtime_if(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            if n > 0:
                with qd.graph.parallel():
                    x[0] += 1

    @qd.kernel(graph=True)
    def nested(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                with qd.graph.parallel():
                    x[0] += 1

    @qd.kernel(graph=True)
    def context_in_section(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                with qd.graph.parallel_context():
                    pass

    @qd.kernel(graph=True, checkpoints=True)
    def checkpoints(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            pass

    @qd.kernel(graph=True)
    def arguments(x: A1, n: qd.i32):
        with qd.graph.parallel_context():
            with qd.graph.parallel(n):
                pass

    @qd.kernel(graph=True)
    def other(x: A1, n: qd.i32):
        with open("file"):
            pass

    only = "may contain only `with qd.graph.parallel():` blocks"
    x = qd.ndarray(qd.i32, (4,))
    for k, words in ((alone, "can only be used directly inside"), (work, only), (runtime_loop, only),
                     (runtime_if, only), (nested, "sections cannot be nested"),
                     (context_in_section, "cannot appear inside a qd.graph.parallel() section"),
                     (checkpoints, "checkpoints=True"), (arguments, "takes no arguments"),
                     (other, "`with` only supports")):
        refused(k, x, 1, words=words)


def test_flat_names_warn():
    @qd.kernel(graph=True)
    def old(x: A1, c: FLAG):
        while qd.graph_do_while(c):
            with qd.graph_parallel_context():
                with qd.graph_parallel():
                    for i in range(x.shape[0]):
                        x[i] += 1
            c[()] -= 1

    assert qd.graph_do_while is qd.graph.do_while
    x = qd.ndarray(qd.i32, (2,))
    with pytest.warns(DeprecationWarning) as seen:
        old(x, flag(2))
    text = " ".join(str(w.message) for w in seen)
    assert all(f"write {name}" in text for name in
               ("qd.graph.do_while()", "qd.graph.parallel_context()", "qd.graph.parallel()"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        count(x, flag(1))
    assert (x.to_numpy() == 3).all()


# ---- the cache --------------------------------------------------------------------------------------------------

PROGRAM = """\
import enum

import ingot as qd

qd.init()
I32 = qd.types.ndarray(qd.i32, ndim=1)
FLAG = qd.types.ndarray(qd.i32, ndim=0)

class Stage(enum.IntEnum):
    {name} = {value}

@qd.kernel(graph=True, checkpoints=True)
def step(x: I32, f: FLAG, c: FLAG, with_stage: qd.template()):
    while qd.graph.do_while(c):
        if qd.static(with_stage):
            with qd.checkpoint(Stage.{name}, yield_on=f):
                for i in range(x.shape[0]):
                    x[i] += 1
        for i in range(x.shape[0]):
            x[i] += 10
        c[()] -= 1

x, f, c = qd.ndarray(qd.i32, (3,)), qd.ndarray(qd.i32, ()), qd.ndarray(qd.i32, ())
for with_stage in (True, False, True):
    f[()], c[()] = 1, 2
    s = step(x, f, c, with_stage)
    print(s, s.checkpoint is (Stage.{name} if with_stage else None), x.to_numpy())
try:
    step.resume(x, f, c, False, from_checkpoint={value})
except RuntimeError as e:
    print("does not match" in str(e))
f[()] = 0
print(step.resume(x, f, c, True, from_checkpoint=Stage.{name}), x.to_numpy())
print("#", qd._core.counters()["lowerings"])
"""


@pytest.mark.counts("lowerings")
@pytest.mark.after_passes
def test_tables_are_restored_whole(tmp_path, cache_dir):
    from conftest import run_program

    program = tmp_path / "program.py"

    def run(name="SIM", value=3):
        program.write_text(PROGRAM.format(name=name, value=value))
        return run_program(program).splitlines()

    first = run()
    assert first[0] == "GraphStatus(yielded=True, checkpoint=<Stage.SIM: 3>) True [1 1 1]"
    assert first[1] == "GraphStatus(yielded=False, checkpoint=None) True [21 21 21]"
    assert first[3] == "True" and first[-1] == "2"
    again = run()
    assert again[:-1] == first[:-1] and again[-1] == "0"
    renamed = run(name="LOAD")
    assert "<Stage.LOAD: 3>" in renamed[0] and renamed[-1] == "2"
    assert run(value=4)[-1] == "1"  # the other variant never reads it
    assert run()[-1] == "0"  # the first entries are still there


# ---- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.after_passes
def test_visualize_as_text(tmp_path):
    @qd.kernel(graph=True)
    def shown(x: A1, c: FLAG):
        while qd.graph.do_while(c):
            with qd.graph.parallel_context():
                with qd.graph.parallel():
                    for i in range(x.shape[0]):
                        x[i] += 1
                with qd.graph.parallel():
                    pass
            c[()] -= 1

    with pytest.raises(RuntimeError, match="has not been launched"):
        qd.graph.visualize(shown)
    shown(qd.ndarray(qd.i32, (4,)), flag(3))
    text = qd.graph.visualize(shown, tmp_path / "g.txt")
    assert (tmp_path / "g.txt").read_text() == text
    lines = text.splitlines()
    assert lines[0].endswith("shown") and lines[1] == "`-- do while c"
    assert "parallel loop test_graph.py:" in text and "section" in text and ", 3 x " in text
    assert "checkpoint 10, yields on self.full" in staged_text()


def staged_text():
    sim = Sim()
    sim.step(1)
    return qd.graph.visualize(sim.step)


@pytest.mark.after_passes
@needs("graphviz")
@pytest.mark.parametrize("ending, magic", [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_visualize_as_picture(tmp_path, ending, magic):
    x, outer, inner = qd.ndarray(qd.i32, (4,)), flag(2), flag()
    nest(x, outer, inner)
    fork(x, qd.ndarray(qd.i32, (4,)), qd.ndarray(qd.i32, (4,)), flag(1))
    for k in (nest, fork):
        path = tmp_path / f"{k.__name__}.{ending}"
        qd.graph.visualize(k, path)
        assert path.read_bytes().startswith(magic)
    if ending == "svg":
        assert "do while outer" in (tmp_path / "nest.svg").read_text()


def test_without_graphviz_a_picture_is_text(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    x = qd.ndarray(qd.i32, (4,))
    count(x, flag(1))
    text = qd.graph.visualize(count, tmp_path / "g.png")
    assert (tmp_path / "g.txt").read_text() == text and not (tmp_path / "g.png").exists()


# ---- plain Python -------------------------------------------------------------------------------------------------------


def test_python_arch():
    try:
        qd.init(arch=qd.python)
        x, outer, inner = qd.ndarray(qd.i32, (4,)), flag(5), flag()
        nest(x, outer, inner)
        assert list(x.to_numpy()) == [165, 1065, 65, 65]
        once(x, flag(0))
        assert x[2] == 66 and not qd.graph._loops
        with pytest.raises(RuntimeError, match="checkpoints need a compiled kernel"):
            staged(x, flag(), flag())
    finally:
        qd.init()
