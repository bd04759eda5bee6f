"""The interpreter on the IR as lowered, before any pass (`interp_passes=False`): what it must be
able to run, and what it refuses. That it computes what the other ways do, the random tests say
(test_four_ways.py)."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import ingot as qd

Array = qd.types.ndarray
WAYS = {"native": {"arch": qd.cpu}, "interp": {"arch": qd.interp},
        "lowered": {"arch": qd.interp, "interp_passes": False}}


@pytest.fixture(autouse=True)
def back_to_the_defaults():
    yield
    qd.reset()


def each_way(run, **settings):
    """What run() gives, which must be the same in all three ways."""
    got = {}
    for name, way in WAYS.items():
        qd.init(**settings, **way)
        got[name] = run()
    assert got["native"] == got["interp"] == got["lowered"]
    return got["native"]


@qd.func
def twice(x):
    assert x < 100, f"twice {x}"
    return x * 2


@qd.func
def next_of(x):
    assert x < 50, f"next of {x}"
    return x + 1


@qd.kernel
def several(a: Array(qd.i32, 1), b: Array(qd.i32, 1), n: qd.i32) -> qd.i32:
    s = 0
    for i in range(a.shape[0]):
        a[i] = twice(i) + s
    m = n * 2
    print("bound", m)
    s = a[3] + 1
    for i in range(m):
        b[0] += next_of(i + n)
        qd.atomic_max(b[1], i)
        s += 1
    for i, j in qd.ndrange(2, m):
        qd.atomic_xor(b[2], i * 10 + j)
    return s


def test_loops_values_between_them_and_a_result(capfd):
    def run():
        a, b = np.zeros(8, np.int32), np.zeros(3, np.int32)
        got = several(a, b, 3)
        return got, a.tolist(), b.tolist(), capfd.readouterr().out

    got, a, b, out = each_way(run)
    assert got == 13 and a == [2 * i for i in range(8)] and out == "bound 6\n"
    assert b[:2] == [sum(i + 4 for i in range(6)), 5]


@qd.kernel
def second_func_fails(a: Array(qd.i32, 1)):
    for i in range(3):
        a[i] = twice(i)
    for i in range(51):  # only the last one fails, whichever thread comes first
        a[0] += next_of(i)


def test_errors_name_the_func_that_failed():
    """Also on the interpreter: funcs are counted from the task that calls them."""
    def run():
        a = np.zeros(8, np.int32)
        with pytest.raises(AssertionError) as e:
            second_func_fails(a)
        return str(e.value)

    text = each_way(run, debug=True)
    assert "next of 50" in text and 'assert x < 50, f"next of {x}"' in text


@qd.kernel
def draws(x: Array(qd.i64, 1), n: qd.i32):
    s = 0
    for i in range(x.shape[0]):
        x[i] = i
    for i in range(n):
        x[i] = qd.random(qd.i64)
    s = n * 2
    x[0] ^= qd.random(qd.i64)
    x[1] ^= qd.random(qd.i64)
    for i in range(s):
        x[i] ^= qd.random(qd.i64) & qd.random(qd.i64)


def test_random_numbers():
    def run():
        x = np.zeros(8, np.int64)
        draws(x, 3)
        draws(x, 4)
        return x.tolist()

    each_way(run, random_seed=11)


def test_random_numbers_do_not_depend_on_loops_that_draw_none():
    @qd.kernel
    def one(x: Array(qd.i64, 1)):
        for i in range(x.shape[0]):
            x[i] = qd.random(qd.i64)

    @qd.kernel
    def other(x: Array(qd.i64, 1)):
        for i in range(x.shape[0]):
            x[i] = i
        x[0] = 5
        for i in range(x.shape[0]):
            x[i] = qd.random(qd.i64)

    drawn = []
    for kernel in (one, other):
        qd.init(random_seed=3)
        x = np.zeros(9, np.int64)
        kernel(x)
        drawn.append(x.tolist())
    assert drawn[0] == drawn[1]


@qd.kernel(graph=True)
def graph(x: Array(qd.i32, 1), flag: Array(qd.i32, 0)):
    while qd.graph.do_while(flag):
        flag[()] -= 1
        for i in range(x.shape[0]):
            x[i] = x[i] * 3 + i
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                for i in range(x.shape[0]):
                    if i % 2 == 0:
                        x[i] += 5
            with qd.graph.parallel():
                for i in range(x.shape[0]):
                    if i % 2 == 1:
                        x[i] -= 7


def test_graph_kernels():
    def run():
        x, flag = np.ones(6, np.int32), qd.ndarray(qd.i32, ())
        flag[()] = 4
        graph(x, flag)
        return x.tolist(), int(flag[()])

    each_way(run)


@qd.kernel(graph=True, checkpoints=True)
def stages(x: Array(qd.i32, 1), flag: Array(qd.i32, 0)):
    with qd.checkpoint(1, yield_on=flag):
        for i in range(x.shape[0]):
            x[i] += 1


def test_checkpoints_are_refused():
    qd.init(**WAYS["lowered"])
    with pytest.raises(qd.IngotError, match="checkpoints.*interp_passes=True"):
        stages(np.ones(6, np.int32), qd.ndarray(qd.i32, ()))
    qd.init(**WAYS["interp"])
    x = np.ones(6, np.int32)
    assert not stages(x, qd.ndarray(qd.i32, ())).yielded
    assert (x == 2).all()


@qd.kernel
def total(x: Array(qd.f32, 1), s: Array(qd.f32, 1)):
    for i in range(x.shape[0]):
        s[0] += x[i]


def test_sums_are_added_in_the_order_of_the_text():
    """Which is how one sees that no pass ran."""
    x = np.random.default_rng(4).random(5000, np.float32)
    running = np.float32(0)
    for v in x:
        running += v
    got = {}
    for name, way in WAYS.items():
        qd.init(fast_math=False, **way)
        s = np.zeros(1, np.float32)
        total(x, s)
        got[name] = s[0]
    assert got["lowered"] == running != got["interp"]
    assert got["interp"] == got["native"]


def test_the_setting_is_asked_through_the_gate():
    x, s = np.ones(3, np.float32), np.zeros(1, np.float32)
    qd.init(**WAYS["lowered"])
    assert qd.cfg.interp_passes is False and "interp_passes" in total.lower(x, s)[0]
    qd.init(arch=qd.interp)
    assert qd.cfg.interp_passes is True and "interp_passes" in total.lower(x, s)[0]
    qd.init(interp_passes=False)  # native code does not depend on it
    assert "interp_passes" not in total.lower(x, s)[0]
    total(x, s)
    assert s[0] == 3


def test_the_environment(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import ingot as qd
        qd.init(arch=qd.interp)
        print(qd.cfg.interp_passes)
    """))
    for text, want in (("0", "False"), ("1", "True")):
        done = subprocess.run([sys.executable, "-B", str(program)], capture_output=True, text=True,
                              check=True, env={**os.environ, "INGOT_INTERP_PASSES": text})
        assert done.stdout.strip() == want


def test_it_can_be_interrupted(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import os, signal, threading
        import numpy as np
        import ingot as qd
        qd.init(arch=qd.interp, interp_passes=False)

        @qd.kernel(graph=True)
        def endless(x: qd.types.ndarray(qd.i32, 1), flag: qd.types.ndarray(qd.i32, 0)):
            while qd.graph.do_while(flag):
                for i in range(4):
                    x[i] += 1

        flag = qd.ndarray(qd.i32, ())
        flag[()] = 1
        x = np.zeros(4, np.int32)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            endless(x, flag)
        except KeyboardInterrupt:
            print("stopped", x[0] > 0)
    """))
    done = subprocess.run([sys.executable, "-B", str(program)], capture_output=True, text=True,
                          check=True, timeout=120)
    assert done.stdout.strip() == "stopped True"
