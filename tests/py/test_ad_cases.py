"""Gradients with known answers: each construct and each function once (tests/py/ad_cases.py), on every
target and in every precision, cold and from the cache of a process before, in debug mode, from threads,
after a fork, interrupted."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from ad_cases import CASES, array, backward, close, slopes
from conftest import HERE

import ingot as qd

FLOATS = {"f64": qd.f64, "f32": qd.f32}


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def check(name, f):
    for got, want in CASES[name](f):
        assert close(got, want, f), (np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("name", CASES)
def test_interpreted(name):
    qd.init(arch=qd.interp, default_fp=qd.f64)
    check(name, qd.f64)


@pytest.mark.parametrize("name", CASES)
def test_as_lowered(name):
    qd.init(arch=qd.interp, interp_passes=False, default_fp=qd.f64)
    check(name, qd.f64)


@pytest.mark.parametrize("name", CASES)
def test_native_in_debug_mode(name):
    qd.init(debug=True)
    check(name, qd.f32)


@pytest.mark.parametrize("f", FLOATS)
def test_functions(f):
    qd.init(arch=qd.interp, default_fp=FLOATS[f])
    for text, points, got, want in slopes(FLOATS[f]):
        assert close(got, want, FLOATS[f]), (text, points, got, want)


def test_half_precision():
    qd.init(arch=qd.interp)
    with pytest.warns(UserWarning):
        for text, points, got, want in slopes(qd.f16):
            assert close(got, want, qd.f16), (text, points, got, want)


# ---- what is refused -----------------------------------------------------------------------------------------


@qd.kernel
def returns_it(x: qd.types.ndarray(), y: qd.types.ndarray()) -> qd.f64:
    return x[0] * 2.0


@qd.kernel
def reads_what_an_update_found(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        old = qd.atomic_add(y[0], x[i])
        y[1] += old * x[i]


@qd.kernel
def multiplies_atomically(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        qd.atomic_mul(y[0], x[i])


@qd.kernel
def overwrites_what_it_read(x: qd.types.ndarray(), y: qd.types.ndarray()):
    for i in x:
        y[i] = x[i] * x[i]
        x[i] = 3.0


REFUSED = {returns_it: "a returned value that depends on an array with a gradient",
           reads_what_an_update_found: "the value that an atomic update found",
           multiplies_atomically: "an atomic update other than add, sub, min and max",
           overwrites_what_it_read: "overwritten"}


@pytest.mark.parametrize("k", REFUSED, ids=lambda k: k.__name__)
def test_refused_with_the_place(k, target):
    qd.init(default_fp=qd.f64)
    x, y = array([1, 2]), array([0, 0])
    for _ in range(2):  # the second time as well
        with pytest.raises(qd.IngotCompilationError, match=r"test_ad_cases.py:\d+:\d+: cannot be differentiated") as e:
            k.grad(x, y)
        assert REFUSED[k] in str(e.value)
    k(x, y)  # and the kernel itself runs


def play(cache_dir, **env):
    done = subprocess.run([sys.executable, "-B", str(HERE / "ad_cases.py")], capture_output=True, text=True,
                          timeout=600, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.counts("lowerings")
def test_natively_cold_and_warm(cache_dir):
    cold = play(cache_dir)
    assert cold["bad"] == [] and cold["image_compiles"] > 0
    warm = play(cache_dir)
    assert warm["bad"] == [] and warm["image_compiles"] == warm["lowerings"] == warm["parses"] == 0


def test_from_threads():
    """Gradients of one kernel launched at once, each on arrays of its own; stacks are not shared."""
    qd.init(default_fp=qd.f64)

    @qd.kernel
    def k(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            v = x[i]
            for j in range(n[i]):
                v = qd.sin(v) + 0.5 * v
            y[i] = v

    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        values, counts = rng.uniform(0.1, 1, 50), rng.integers(0, 9, 50).astype(np.int32)
        v, d = values.copy(), np.ones(50)
        for j in range(9):
            on = counts > j
            d = np.where(on, d * (np.cos(v) + 0.5), d)
            v = np.where(on, np.sin(v) + 0.5 * v, v)
        for _ in range(20):
            x, y = array(values), array(np.zeros(50))
            backward(k, y, x, counts, y)
            if not close(x.grad.to_numpy(), d, qd.f64):
                wrong.append((seed, x.grad.to_numpy(), d))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_iterations(threads):
    """Enough of them for the pool: each thread has stacks of its own, sums of gradients are atomic."""
    qd.init(default_fp=qd.f64, cpu_max_num_threads=threads)
    n = 60000

    @qd.kernel
    def k(x: qd.types.ndarray(), p: qd.types.ndarray(), counts: qd.types.ndarray(), y: qd.types.ndarray(),
          total: qd.types.ndarray()):
        for i in y:
            v, m = x[p[i]], 0
            for j in range(counts[i]):
                v = qd.sin(v) + 0.5 * v
            while m < 3:
                m += 1
                if v > 1.0:
                    break
                v = v * 1.5
            y[i] = v
            total[0] += v * v

    rng = np.random.default_rng(3)
    values, p = rng.uniform(0.1, 1, 500), rng.integers(0, 500, n).astype(np.int32)
    counts, seeds = rng.integers(0, 9, n).astype(np.int32), rng.uniform(-1, 1, n)
    v, d = values[p], np.ones(n)
    for j in range(9):
        on = counts > j
        d = np.where(on, d * (np.cos(v) + 0.5), d)
        v = np.where(on, np.sin(v) + 0.5 * v, v)
    open_ = np.ones(n, bool)
    for _ in range(3):
        open_ &= v <= 1.0
        v, d = np.where(open_, v * 1.5, v), np.where(open_, d * 1.5, d)
    want = np.bincount(p, d * (seeds + 0.25 * 2 * v), 500)
    for _ in range(3):
        x, y, total = array(values), array(np.zeros(n)), array([0])
        k(x, p, counts, y, total)
        y.grad.from_numpy(seeds)
        total.grad.fill(0.25)
        k.grad(x, p, counts, y, total)
        np.testing.assert_allclose(y.to_numpy(), v, rtol=1e-12)
        np.testing.assert_allclose(x.grad.to_numpy(), want, rtol=1e-9, atol=1e-9)


def program(tmp_path, text):
    path = tmp_path / "prog.py"
    path.write_text("import os, sys, time\nimport numpy as np\nimport ingot as qd\n"
                    f"sys.path.insert(0, {str(HERE)!r})\nfrom ad_cases import array, backward\n"
                    + textwrap.dedent(text))
    return path


def test_after_a_fork(tmp_path, cache_dir):
    prog = program(tmp_path, """
        @qd.kernel
        def k(x: qd.types.ndarray(), n: qd.types.ndarray(), y: qd.types.ndarray()):
            for i in x:
                v = x[i]
                for j in range(n[i]):
                    v = v * x[i]
                y[i] = v

        def once(value):
            x, y = array([value] * 1000), array([0.0] * 1000)
            backward(k, y, x, np.full(1000, 2, np.int32), y)
            return abs(x.grad.to_numpy() - 3 * value ** 2).max() < 1e-9

        qd.init(default_fp=qd.f64)
        bad = not once(2.0)
        for r in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if once(r + 1.0) else 1)
            bad += os.waitpid(pid, 0)[1] != 0
            bad += not once(r + 0.5)
        print(bad)
        """)
    done = subprocess.run([sys.executable, "-B", str(prog)], capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == ["0"], done.stdout + done.stderr


def test_ctrl_c_during_a_backward_pass(tmp_path, cache_dir):
    """It is interrupted, the process lives, and the next gradient is right."""
    prog = program(tmp_path, """
        @qd.kernel
        def k(x: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
            for i in x:
                v = x[i]
                for a in range(n):
                    for b in range(n):
                        w = v
                        for c in range(3):
                            w = qd.sin(w) + v * 0.1
                        v = v * 0.5 + w * 0.5
                y[i] = v

        qd.init(default_fp=qd.f64)
        x, y = array([0.5] * 64), array([0.0] * 64)
        backward(k, y, x, 2, y)
        first = x.grad.to_numpy()
        print("ready", flush=True)
        try:
            y.grad.fill(1.0)
            while True:
                k.grad(x, 900, y)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        x, y = array([0.5] * 64), array([0.0] * 64)
        backward(k, y, x, 2, y)
        print((x.grad.to_numpy() == first).all())
        """)
    p = subprocess.Popen([sys.executable, "-B", str(prog)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline().strip() == "ready", p.stderr.read()
        threading.Event().wait(0.5)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=120)
    finally:
        p.kill()
    assert out.split() == ["stopped", "True"], out + err


def test_what_runs_again_is_what_is_needed():
    """TRIM1, TRIM2: the iteration that runs again before its backward code leaves nothing that nobody reads: the
    backward loop stores two adjoints, and no `a`."""
    @qd.kernel
    def drift(x: qd.types.ndarray(), p: qd.types.ndarray(), n: qd.i32, y: qd.types.ndarray()):
        for i in range(x.shape[0]):
            a = x[i]
            for t in range(n):
                a = a * p[0] + qd.sin(0.1 * t)
            y[i] = a

    qd.init(default_fp=qd.f64)
    x, p, y = (qd.ndarray(qd.f64, n, needs_grad=True) for n in (3, 1, 3))
    x.fill(0.5)
    p.fill(0.9)
    loop = drift.grad.lower(x, p, 4, y)[1].split(" = loop i64 ")[-1].split("    }")[0]
    assert loop.count(" = load ") == 4 and loop.count("store ") == 2, loop
    qd.ad.check_grad(drift, x, p, 4, y)
    qd.init()
