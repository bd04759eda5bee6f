"""CachedStep: a step runs once per value of its input, wherever the cache is."""

import dataclasses
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest

import ingot
from ingot import CachedStep, FileCache, _filecache
from ingot._core import step_key
from ingot._steps import _STEP
from ingot.fingerprint import Fingerprinter, FingerprintError, Identity

class Notes:
    """What steps write down: it says that it has no state, so it is no part of a step that names it."""

    def __init__(self):
        self.calls, self.numbers = [], iter(range(1000))

    def __reduce__(self):
        return Notes, ()


_notes = Notes()
_calls = _notes.calls


def note(x):
    _notes.calls.append(x)


def square(x):
    note(x)
    return x * x


def add(a, b=1):
    note((a, b))
    return a + b


def array_sum(a):
    note("sum")
    return {"sum": a.sum(), "twice": a * 2}


def anything(*args, **kwargs):
    return 0


def other(*args, **kwargs):
    return 1


@dataclasses.dataclass
class Scale:
    factor: float
    backend: str = dataclasses.field(default="a", metadata={"fingerprint": False})

    def __call__(self, x):
        note(x)
        return x * self.factor


@dataclasses.dataclass
class Chain:
    """A step made of steps, one of them cached."""

    first: CachedStep
    second: Scale

    def __call__(self, x):
        return self.second(self.first(x))


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    monkeypatch.delenv("INGOT_CACHE_SALT", raising=False)
    _calls.clear()
    return _calls


def on_disk(step, tmp_path, **options):
    return CachedStep(step, **options).persistent(tmp_path / "cache")


# ---- in memory ------------------------------------------------------------------------------------


def test_in_memory(calls):
    step = CachedStep(square)
    assert [step(3), step(3), step(3.0), step(4)] == [9, 9, 9.0, 16]
    assert calls == [3, 3.0, 4] and type(step(3.0)) is float
    assert step.in_memory()(3) == 9 and calls == [3, 3.0, 4, 3]


def test_result_is_the_same_object(calls):
    step = CachedStep(array_sum)
    a = np.arange(4)
    assert step(a) is step(a.copy()) and calls == ["sum"]
    a[0] = 9
    assert step(a)["sum"] == 15 and len(calls) == 2


def test_arguments(calls):
    step = CachedStep(add)
    assert step(1) == 2 and step(1, 2) == 3 and step(1, b=2) == 3 and step(1, 2) == 3
    assert calls == [(1, 1), (1, 2)]  # by position and by name is one input
    assert step(1, 1) == step(a=1) == step(b=1, a=1) == 2 and len(calls) == 2  # as is the default
    assert step((1, 2), (3,)) == (1, 2, 3)
    # No input can imitate another's form.
    inputs = [1, (1,), ((1,), {}), ((1, 2), {}), ((), {}), (1, 1)]
    assert len({*map(step.key, inputs), step.key(1, 2)}) == 7


def test_unstable_steps_work_in_memory(calls):
    steps = [CachedStep(lambda x, k=k: note(x) or x + k) for k in range(3)]
    assert [s(1) for s in steps] == [1, 2, 3] == [s(1) for s in steps] and calls == [1, 1, 1]
    shared = {}
    steps = [CachedStep(lambda x, k=k: x + k, cache=shared) for k in range(3)]
    assert [s(1) for s in steps] == [1, 2, 3] and len(shared) == 3


def test_any_mapping(calls):
    shared = {}
    one, two = CachedStep(square, cache=shared), CachedStep(square, cache=shared)
    assert one(2) == two(2) == 4 and calls == [2] and list(shared) == [one.key(2)]
    assert len(one.key(2)) == 32


def test_least_recently_used_goes(calls):
    step = CachedStep(square).in_memory(max_entries=2)
    step(1), step(2), step(1), step(3), step(1)
    assert calls == [1, 2, 3] and len(step.cache) == 2
    step(2)
    assert calls == [1, 2, 3, 2]
    with pytest.raises(ValueError, match="max_entries"):
        step.in_memory(0)


def test_input_key(calls):
    step = CachedStep(square, input_key=lambda x: int(x))
    assert step(3) == 9 and step(3.9) == 9 and calls == [3]
    with pytest.raises(FingerprintError):
        CachedStep(square)(lambda: 0)
    with pytest.raises(TypeError, match="input_key"):
        CachedStep(square, input_key=5)
    with pytest.raises(TypeError, match="callable"):
        CachedStep(5)


def test_identity_keys_hold_their_objects():
    step = CachedStep(len, input_key=Identity)
    keys = set()
    for n in range(50):
        table = [0] * n
        assert step(table) == n  # never another table's answer
        keys.add(step.key(table))
        del table
        gc.collect()
    assert len(keys) == 50


def test_identity_is_refused_on_disk(tmp_path):
    step = on_disk(square, tmp_path, input_key=Identity)
    with pytest.raises(TypeError, match="this process only"):
        step(5)


def test_errors_are_not_remembered(calls):
    step = CachedStep(square)
    for _ in range(2):
        with pytest.raises(TypeError):
            step("x")
    assert calls == ["x", "x"]


def test_a_step_that_needs_itself():
    steps = []
    step = CachedStep(lambda x: steps[0](x))
    steps.append(step)
    with pytest.raises(RuntimeError, match="same input"):
        step(1)
    fib = CachedStep(lambda n: n if n < 2 else steps[1](n - 1) + steps[1](n - 2))
    steps.append(fib)
    assert fib(30) == 832040


# ---- on disk ----------------------------------------------------------------------------------------


def test_persistent(tmp_path, calls):
    step = on_disk(square, tmp_path)
    assert step(3) == step(3) == 9 and calls == [3]
    again = on_disk(square, tmp_path)
    assert again(3) == 9 and calls == [3]
    a = np.arange(5)
    arrays = on_disk(array_sum, tmp_path)
    assert arrays(a)["sum"] == 10 == arrays(a)["sum"]
    assert arrays(a) is not arrays(a) and type(arrays(a)["sum"]) is np.int64
    assert calls == [3, "sum"]
    assert arrays.cache.stats()["hits"] == 4


def test_refused_at_construction(tmp_path):
    def local(x):
        return x

    for bad in (lambda x: x, local, threading.Lock().acquire, Scale(lambda: 0)):
        with pytest.raises(FingerprintError, match="step"):
            on_disk(bad, tmp_path)
        with pytest.raises(FingerprintError):
            CachedStep(bad, FileCache(tmp_path / "cache"))
    with pytest.raises(FingerprintError, match=r"step\.factor"):
        on_disk(Scale(lambda: 0), tmp_path)


def test_configuration_is_in_the_key(tmp_path, calls):
    two, three, other = Scale(2.0), Scale(3.0), Scale(2.0, backend="b")
    assert on_disk(two, tmp_path)(5) == 10 and on_disk(three, tmp_path)(5) == 15
    assert on_disk(other, tmp_path)(5) == 10 and calls == [5, 5]


@pytest.mark.parametrize("input_key", [None, lambda *args, **kwargs: 0])
def test_configuration_is_in_the_key_of_every_form_of_call(tmp_path, input_key):
    """Also where the step takes several arguments, or input_key stands for them."""
    for a, b in ((Scale(2.0), Scale(3.0)), (square, add), (anything, other)):
        one, two = CachedStep(a, {}, input_key), CachedStep(b, {}, input_key)
        calls = (((1,), {}), ((1, 2), {}), ((), {"x": 1}), ((), {}))
        for args, kwargs in calls if a is anything else calls[:1]:
            assert one.key(*args, **kwargs) != two.key(*args, **kwargs)
            assert one.key(*args, **kwargs) == CachedStep(a, {}, input_key).key(*args, **kwargs)


def test_keys_of_users_are_no_steps(tmp_path):
    """What a user stores under a key in the same directory is never a step's."""
    step = on_disk(square, tmp_path, salt="s")
    parts = (step._salt(), Fingerprinter()._of_code(square, "step"), step._rules())
    assert step_key(_STEP, parts) == step._halves()[0]  # so these are the parts
    step.cache[parts] = "a user's"
    assert [e.digest for e in step.cache.entries()] != [step._halves()[0]]
    assert step(3) == 9 and step.cache[parts] == "a user's"


SCALE, OPTIONS, done = 2, {"offset": 0}, []


def scaled(x, y=1):
    note(x)
    done.append(x)
    return x * SCALE * y + OPTIONS["offset"]


@pytest.fixture
def reading(monkeypatch):
    """Globals that a test may set."""
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 2)
    monkeypatch.setitem(OPTIONS, "offset", 0)
    done.clear()
    return sys.modules[__name__]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_a_step_reads_counts_when_it_is_called(where, tmp_path, calls, reading):
    step = CachedStep(scaled) if where == "memory" else on_disk(scaled, tmp_path)
    first = step.key(1)
    assert step(1) == step(1) == 2 and len(calls) == 1
    reading.SCALE = 3
    assert step(1) == step(1) == 3 and len(calls) == 2
    OPTIONS["offset"] = 10
    assert step(1) == step(1) == 13 and len(calls) == 3
    reading.SCALE, OPTIONS["offset"] = 2, 0
    assert step(1) == 2
    done.clear()
    assert step.key(1) == first and step(1) == 2


def test_the_configuration_counts_when_it_is_called(tmp_path, calls):
    scale = Scale(2.0)
    step = on_disk(scale, tmp_path)
    assert step(3) == 6.0
    scale.factor = 4.0
    assert step(3) == step(3) == 12.0 and len(calls) == 2
    assert step.key(1) == on_disk(scale, tmp_path).key(1)


def test_a_lambda_reads_at_its_calls(calls, reading):
    lock = threading.Lock()
    step = CachedStep(lambda x: (note(x), lock, x * SCALE)[2])
    assert step(1) == step(1) == 2 and len(calls) == 1
    reading.SCALE = 3
    assert step(1) == step(1) == 3 and len(calls) == 2


def test_a_step_that_cannot_be_known_any_more(tmp_path, reading, monkeypatch):
    step, other = on_disk(scaled, tmp_path), CachedStep(scaled)
    assert step(1) == other(1) == 2
    monkeypatch.setitem(OPTIONS, "lock", threading.Lock())
    with pytest.raises(FingerprintError, match="known by its value"):
        step(1)
    reading.SCALE = 3
    assert other(1) == 3


def test_defaults_that_are_set_later(tmp_path, reading, monkeypatch):
    step = on_disk(scaled, tmp_path)
    assert step(2) == step(2, 1) == 4
    monkeypatch.setattr(scaled, "__defaults__", (5,))
    assert step(2) == 20 and step(2, 1) == 4


def test_what_a_run_changes_makes_no_other_step(tmp_path, calls, reading):
    step = on_disk(scaled, tmp_path)
    assert [step(x) for x in (1, 2, 1, 2)] == [2, 4, 2, 4] and done == [1, 2]
    done.append("somebody else")
    assert step(1) == 2 and len(calls) == 3


def run_program(tmp_path, text, *args):
    file = tmp_path / "read_program.py"
    file.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(file), *map(str, args)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_a_step_changes_before_it_calls_itself(tmp_path):
    """In a process with one thread all that changes during a run is the run's own doing."""
    assert run_program(tmp_path, """
        from ingot import CachedStep

        class Counts:
            runs = 0

            def __call__(self, n):
                self.runs += 1
                return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

        counts = Counts()
        fibonacci = CachedStep(counts)
        print(fibonacci(30), counts.runs, fibonacci(30), counts.runs)
    """) == ["832040", "31", "832040", "31"]


def test_processes_that_set_a_global_after_making_the_step(tmp_path):
    """What one process stores after it has set a global is found by those that have the same value
    there, whenever they set it, and by no other."""
    text = """
        import sys
        from ingot import CachedStep

        SCALE = 2

        def scaled(x):
            print("run")
            return x * SCALE

        folder, early, late = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        SCALE = early
        step = CachedStep(scaled).persistent(folder)
        SCALE = late
        print(step(1))
    """
    folder = tmp_path / "cache"
    assert run_program(tmp_path, text, folder, 2, 3) == ["run", "3"]
    assert run_program(tmp_path, text, folder, 3, 3) == ["3"]
    assert run_program(tmp_path, text, folder, 3, 2) == ["run", "2"]
    assert run_program(tmp_path, text, folder, 2, 2) == ["2"]
    assert run_program(tmp_path, text, folder, 2, 3) == ["3"]


def slowly(x):
    note(x)
    done.append(x)
    started.set()
    assert go_on.wait(60)
    return x * SCALE


started, go_on = threading.Event(), threading.Event()


def test_a_global_set_while_the_step_runs_elsewhere(calls, reading, monkeypatch):
    step = CachedStep(slowly)
    for event in (started, go_on):
        event.clear()
    thread = threading.Thread(target=step, args=(1,))
    thread.start()
    assert started.wait(60)
    waits = [threading.Thread(target=step, args=(1,)) for _ in range(3)]
    for t in waits:
        t.start()
    reading.SCALE = 3
    go_on.set()
    assert step(2) == 6  # it runs, and what it stores is no result of the first step
    for t in (thread, *waits):
        t.join()
    assert step(2) == 6
    reading.SCALE = 2
    assert step(2) == 4


def test_a_global_set_in_a_process_forked_while_the_step_runs(tmp_path):
    """The run of a thread that the child has not got does not keep it from looking."""
    assert run_program(tmp_path, """
        import os, threading
        from ingot import CachedStep

        SCALE, started, go_on = 2, threading.Event(), threading.Event()

        def scaled(x):
            if x == 0:
                started.set()
                go_on.wait(60)
            return x * SCALE

        step = CachedStep(scaled)
        print(step(1), flush=True)
        thread = threading.Thread(target=step, args=(0,))
        thread.start()
        started.wait(60)
        child = os.fork()
        SCALE = 3
        if child == 0:
            print(step(1), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        go_on.set()
        thread.join()
    """) == ["2", "3"]


def test_cache_and_key_function_are_not_configuration(tmp_path):
    inner = [CachedStep(square), CachedStep(square, {}, abs), CachedStep(square, wait=1.0)]
    inner.append(on_disk(square, tmp_path))
    inner[0](5)
    assert len({ingot.fingerprint(s) for s in inner}) == 1
    chains = [CachedStep(Chain(s, Scale(2.0))) for s in inner]
    assert len({c.key(1) for c in chains}) == 1
    assert CachedStep(Chain(CachedStep(add), Scale(2.0))).key(1) != chains[0].key(1)
    assert chains[3].persistent(tmp_path / "other")(3) == 18.0


def test_salt(tmp_path, monkeypatch, calls):
    keys = [CachedStep(square).key(1), CachedStep(square, salt="2").key(1)]
    monkeypatch.setattr(ingot, "__version__", "99.0")
    keys += [CachedStep(square).key(1)]
    assert CachedStep(square, salt="2").key(1) == keys[1]
    monkeypatch.setenv("INGOT_CACHE_SALT", "run 7")
    keys += [CachedStep(square).key(1), CachedStep(square, salt="2").key(1)]  # both count
    keys += [CachedStep(square, salt="run 7").key(1), CachedStep(square, salt="3").key(1)]
    assert len(set(keys)) == 7
    monkeypatch.setenv("INGOT_CACHE_SALT", "")
    assert CachedStep(square).key(1) == keys[2]
    monkeypatch.setenv("GT4PY_CACHE_SALT", "x")  # other prefixes mean nothing
    assert CachedStep(square).key(1) == keys[2]


def test_what_cannot_be_stored(tmp_path, calls):
    """The result is returned, with one warning for each step."""
    assert on_disk(len, tmp_path)("abc") == 3
    step = on_disk(set, tmp_path)
    with pytest.warns(RuntimeWarning, match=r"'set'.*not stored: .*'set'.*codec=\"pickle\"") as seen:
        assert step("abc") == step("abc") == step("ab") | {"c"} == set("abc")
    assert len(seen) == 1
    assert CachedStep(set).persistent(tmp_path / "p", codec="pickle")("abc") == set("abc")
    small = CachedStep(bytes).persistent(tmp_path / "s", max_bytes=1000)
    with pytest.warns(RuntimeWarning, match="above the bounds") as seen:
        assert small(5000) == small(6000)[:5000] == bytes(5000)
    assert len(seen) == 1
    picky = CachedStep(square, cache=Picky())
    with pytest.warns(RuntimeWarning, match="not mine") as seen:
        assert picky(3) == picky(3) == 9 and calls == [3, 3]
    assert len(seen) == 1


class Picky(dict):
    def __setitem__(self, key, value):
        raise ValueError("not mine")


def test_pickled_steps(tmp_path, calls):
    step = on_disk(square, tmp_path, wait=7.0)
    assert step(6) == 36
    again = pickle.loads(pickle.dumps(step))
    assert again(6) == 36 and calls == [6] and again.wait == 7.0
    memory = pickle.loads(pickle.dumps(CachedStep(square).in_memory(5)))
    assert memory.cache.max_entries == 5 and memory(2) == 4


# ---- verify -------------------------------------------------------------------------------------------


def test_verify_runs_twice(tmp_path, calls):
    for step in (CachedStep(square, verify=True), on_disk(square, tmp_path, verify=True)):
        calls.clear()
        assert step(3) == 9 and calls == [3, 3]
        assert step(3) == 9 and calls == [3, 3, 3]


def changing(x):
    return x + next(_notes.numbers)


def test_verify_finds_what_changes(tmp_path):
    for step in (CachedStep(changing, verify=True), on_disk(changing, tmp_path, verify=True)):
        with pytest.raises(ingot.CacheMismatchError, match="two different results"):
            step(1)
    quiet = on_disk(changing, tmp_path)
    quiet(1)
    loud = on_disk(changing, tmp_path, verify=True)
    with pytest.raises(ingot.CacheMismatchError):
        loud(1)


def test_verify_sees_equal_arrays(calls):
    step = CachedStep(array_sum, verify=True)
    a = np.array([1.0, np.nan])
    step(a), step(a)
    assert len(calls) == 3


# ---- many at once ----------------------------------------------------------------------------------------


def slow_square(x):
    note(x)
    time.sleep(0.01)
    return x * x


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_threads_run_it_once(where, tmp_path, calls):
    step = CachedStep(slow_square) if where == "memory" else on_disk(slow_square, tmp_path)
    gate = threading.Barrier(8)
    results = []

    def work():
        gate.wait()
        results.append([step(k) for k in range(10)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[k * k for k in range(10)]] * 8 and sorted(calls) == [*range(10)]


def test_steps_that_need_each_other_from_two_threads():
    """Neither waits for the other, which waits for it: one of them runs the step itself."""
    inside, given = threading.Barrier(2), []

    def call(step, other, n):
        inside.wait(30)  # both have begun
        given.append(threading.current_thread().name)
        return other(n) + 1 if len(given) < 4 else 1

    def first(n):
        return call(one, two, n) if threading.current_thread().name not in given else 10

    def second(n):
        return call(two, one, n) if threading.current_thread().name not in given else 20

    one, two = ingot.CachedStep(first, wait=600), ingot.CachedStep(second, wait=600)
    results = []
    threads = [threading.Thread(target=lambda s=s: results.append(s(1)), name=name, daemon=True)
               for name, s in (("a", one), ("b", two))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads) and len(results) == 2


def test_waiting_is_bounded(tmp_path):
    """A step that hangs holds up nobody for longer than `wait`."""
    hanging, let_go = threading.Event(), threading.Event()

    def hang(x):
        if not hanging.is_set():
            hanging.set()
            let_go.wait(60)
        return x

    step = CachedStep(hang, wait=0.05)
    first = threading.Thread(target=step, args=(1,))
    first.start()
    hanging.wait()
    assert step(1) == 1 and first.is_alive()  # it did not wait for the other's end
    let_go.set()
    first.join()


MODULE = """
    import os, sys, time
    import ingot

    def step(x):
        with open(os.environ["INGOT_TEST_LOG"], "ab", buffering=0) as out:
            out.write(b"%d\\n" % x)
        time.sleep(float(os.environ.get("INGOT_TEST_SLEEP", "0.002")))
        return {"x": x, "square": x * x}

    def cached(path, **options):
        return ingot.CachedStep(step, **options).persistent(path)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Starts `code` in a process that can import the module above."""
    (tmp_path / "stepmod.py").write_text(textwrap.dedent(MODULE))
    log_path = tmp_path / "log"
    log_path.touch()
    monkeypatch.setenv("INGOT_TEST_LOG", str(log_path))

    def start(code, **env):
        code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport stepmod\n" + code
        return subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, **env}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )

    def runs():
        return sorted(map(int, log_path.read_text().split()))

    start.runs = runs
    start.path = str(tmp_path / "cache")
    return start


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def test_eight_processes_run_a_hundred_keys_once(program):
    code = f"""
import random, time
step = stepmod.cached({program.path!r})
keys = list(range(100))
random.Random({{seed}}).shuffle(keys)
while time.time() < {{start}}: time.sleep(0.001)
for k in keys:
    assert step(k) == {{{{"x": k, "square": k * k}}}}
s = step.cache.stats()
print(s["bad_entry"], s["io_errors"], s["foreign"])
"""
    begin = time.time() + 2.0
    started = [program(code.format(seed=i // 2, start=begin)) for i in range(8)]
    assert {finish(p) for p in started} == {"0 0 0\n"}
    assert program.runs() == [*range(100)]
    cache = FileCache(program.path)
    assert len(cache) == 100 and cache.verify().good == 100
    assert not [n for _, _, names in os.walk(program.path) for n in names if "." in n]


def test_a_killed_process_leaves_no_trace(program):
    code = f"stepmod.cached({program.path!r})(5)"
    victim = program(code, INGOT_TEST_SLEEP="60")
    while not program.runs():
        time.sleep(0.01)
    waiting = program(code + "\nprint('done')")
    time.sleep(0.3)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert finish(waiting) == "done\n" and program.runs() == [5, 5]


def test_a_waiting_process_can_be_interrupted(program):
    code = f"stepmod.cached({program.path!r})(5)"
    holder = program(code, INGOT_TEST_SLEEP="60")
    while not program.runs():
        time.sleep(0.01)
    waiting = program(
        f"print('up', flush=True)\ntry: stepmod.cached({program.path!r})(5)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    assert waiting.stdout.readline() == "up\n"
    time.sleep(0.5)
    waiting.send_signal(signal.SIGINT)
    assert finish(waiting) == "interrupted\n"
    holder.kill()
    holder.communicate()
    assert program.runs() == [5]


def test_a_process_waits_no_longer_than_it_may(program):
    code = "step = stepmod.cached({!r}, wait={})\nprint(step(5)['square'])"
    holder = program(code.format(program.path, 600), INGOT_TEST_SLEEP="600")
    while not program.runs():
        time.sleep(0.01)
    try:
        assert finish(program(code.format(program.path, 0.2))) == "25\n"
        assert program.runs() == [5, 5]
    finally:
        holder.kill()
        holder.communicate()


def test_waiting_for_a_lease_has_an_end(tmp_path, monkeypatch):
    """By a clock that only waiting moves: another process has the lease and never gives it back."""
    clock = [100.0]

    def wait(digest, seconds):
        assert 0 < seconds <= 102.0 - clock[0]
        clock[0] += min(seconds, 0.75)  # it may return before its time
        return False

    monkeypatch.setattr(_filecache, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    cache = FileCache(tmp_path / "cache", wait=2.0)
    real = cache._core
    cache._core = types.SimpleNamespace(
        take=lambda digest, seconds: None, wait=wait, get=real.get, put=real.put)
    assert cache.get_or_compute("key", lambda: 7) == 7 and clock[0] == 102.0
    assert cache.get("key") == 7


def test_fork_in_the_middle_of_a_step(program):
    """The child starts with no flights and no leases of its parent's."""
    code = f"""
import os, threading
import ingot
inside, go = threading.Event(), threading.Event()
def slow(x):
    inside.set()
    go.wait(60)
    return x
memory = ingot.CachedStep(slow)
t = threading.Thread(target=memory, args=(1,))
t.start()
inside.wait()
pid = os.fork()
if pid == 0:
    go.set()
    os._exit(0 if memory(1) == 1 else 1)
go.set()
t.join()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("ok")
"""
    assert finish(program(code)) == "ok\n"


def test_edited_step_is_another_step(program, tmp_path):
    code = f"print(stepmod.cached({program.path!r})(3)['square'])"
    assert finish(program(code)) == "9\n" and finish(program(code)) == "9\n"
    text = (tmp_path / "stepmod.py").read_text()
    (tmp_path / "stepmod.py").write_text("# moved\n\n" + text.replace("x * x}", "x * x}  # as ever"))
    assert finish(program(code)) == "9\n" and program.runs() == [3]
    (tmp_path / "stepmod.py").write_text(text.replace("x * x", "x * x * x"))
    assert finish(program(code)) == "27\n" and program.runs() == [3, 3]


def test_import_stays_light():
    heavy = ["ingot._" + name for name in ("filecache", "flight", "seal", "snode", "sparse", "steps", "streams", "struct")]
    code = f"import sys, ingot; print([m for m in {heavy + ['pickle', 'uuid', 'numpy']} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"CachedStep", "FileCache", "CacheMismatchError"} <= set(dir(ingot))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ingot.nonsense


def test_edited_call_of_an_object_is_another_step(tmp_path, program):
    """An object's fingerprint has its class by name; a step is what it does."""
    text = """
        import dataclasses, ingot
        @dataclasses.dataclass
        class Power:
            n: int
            def __call__(self, x):
                return x ** self.n
        def run(path):
            return ingot.CachedStep(Power(2)).persistent(path)(3)
    """
    module = tmp_path / "powermod.py"
    code = f"import powermod\nprint(powermod.run({program.path!r}))"
    module.write_text(textwrap.dedent(text))
    assert finish(program(code)) == "9\n"
    module.write_text("# moved\n" + textwrap.dedent(text))
    assert finish(program(code)) == "9\n" and len(FileCache(program.path)) == 1
    module.write_text(textwrap.dedent(text).replace("x ** self.n", "x ** self.n + 1"))
    assert finish(program(code)) == "10\n" and len(FileCache(program.path)) == 2
