"""qd.profiler: counts, bytes and places of kernels and tasks; no times are compared but with each other."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import ingot as qd

F1 = qd.types.ndarray(qd.f32, 1)
F2 = qd.types.ndarray(qd.f32, 2)


@pytest.fixture
def measured():
    qd.init(kernel_profiler=True)
    qd.profiler.clear_kernel_profiler_info()
    yield qd.profiler
    qd.init()


def tasks(name):
    return {r.task: r for r in qd.profiler.task_profiles() if r.kernel == name}


def test_counts_bytes_and_places(measured):
    @qd.kernel
    def parts(x: F1, y: F1, z: F1):
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
        z[3] = 1.0
        for i in range(100):
            y[i] += x[i] + z[0]

    x, y, z = (qd.ndarray(qd.f32, (n,)) for n in (5000, 5000, 7))
    for _ in range(6):
        parts(x, y, z)
    got = tasks("parts")
    assert sorted(got, key=str) == [0, 1, 2, None]
    assert all(r.count == 6 and 0 < r.min <= r.total / 6 <= r.max <= r.total for r in got.values())
    assert [got[k].bytes for k in range(3)] == [6 * 2 * 20000, 6 * 4, 6 * (400 + 2 * 400 + 4 * 7)]
    assert got[None].bytes == sum(got[k].bytes for k in range(3))
    assert [got[k].parallel for k in range(3)] == [True, False, True]
    line = parts.__wrapped__.__code__.co_firstlineno if hasattr(parts, "__wrapped__") else None
    places = [got[k].place.rpartition(":") for k in range(3)]
    assert all(p[0].endswith("test_profiler.py") for p in places)
    lines = [int(p[2]) for p in places]
    assert [n - lines[0] for n in lines] == [0, 2, 3] and (line is None or lines[0] > line)
    assert got[None].total >= max(got[k].total for k in range(3))


def test_inner_loops_count_arrays_once(measured):
    @qd.kernel
    def rows(a: F2, s: F1):
        for i in range(a.shape[0]):
            t = 0.0
            for j in range(a.shape[1]):
                t += a[i, j]
            s[i] = t

    rows(qd.ndarray(qd.f32, (30, 50)), qd.ndarray(qd.f32, (30,)))
    assert tasks("rows")[0].bytes == 30 * 50 * 4 + 30 * 4


def test_funcs_and_fields(measured):
    f = qd.field(qd.f32, shape=(40,))

    @qd.func
    def put(i):
        f[i] = 1.0

    @qd.kernel
    def through():
        for i in range(40):
            put(i)

    through()
    assert tasks("through")[0].bytes in (160, 320)  # the func is inlined, or may read what it is given


def test_query_total_and_clear(measured):
    @qd.kernel
    def one(x: F1):
        for i in range(x.shape[0]):
            x[i] += 1.0

    x = qd.ndarray(qd.f32, (10,))
    for _ in range(5):
        one(x)
    q = measured.query_kernel_profiler_info("one")
    assert q.counter == 5 and 0 < q.min <= q.avg <= q.max
    assert measured.get_kernel_profiler_total_time() * 1e3 >= q.avg * 5 * 0.999
    assert measured.query_kernel_profiler_info("other").counter == 0
    measured.clear_kernel_profiler_info()
    assert measured.query_kernel_profiler_info("one").counter == 0
    one(x)
    assert measured.query_kernel_profiler_info("one").counter == 1
    np.testing.assert_array_equal(x.to_numpy(), 6.0)


def test_specialisations_count_together(measured):
    @qd.kernel
    def twice(n: qd.template(), x: F1):
        for i in range(n):
            x[i] = n

    x = qd.ndarray(qd.f32, (10,))
    twice(3, x)
    twice(4, x)
    assert tasks("twice")[None].count == 2 and tasks("twice")[0].count == 2


def test_tables(measured, capsys):
    @qd.kernel
    def shown(x: F1):
        for i in range(x.shape[0]):
            x[i] = 1.0

    shown(qd.ndarray(qd.f32, (10,)))
    measured.print_kernel_profiler_info()
    measured.print_kernel_profiler_info("trace")
    measured.print_scoped_profiler_info()
    out = capsys.readouterr().out
    assert "shown" in out and "test_profiler.py" in out and "peak" in out and "1 runs of tasks" in out and "LLVM" in out
    with pytest.raises(ValueError, match="'count' or 'trace'"):
        measured.print_kernel_profiler_info("all")


def test_off_measures_nothing():
    qd.init()

    @qd.kernel
    def quiet(x: F1):
        for i in range(x.shape[0]):
            x[i] = 1.0

    quiet(qd.ndarray(qd.f32, (10,)))
    with pytest.warns(UserWarning, match="kernel_profiler=True"):
        assert qd.profiler.query_kernel_profiler_info("quiet") is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert qd.profiler.task_profiles() == [] and qd.profiler.get_kernel_profiler_total_time() == 0.0


def test_random_numbers_errors_and_returns_stay(measured):
    def run():
        @qd.kernel
        def draw(x: F1) -> qd.f32:
            for i in range(x.shape[0]):
                x[i] = qd.random()
            return x[0] + x[1]

        x = qd.ndarray(qd.f32, (100,))
        return draw(x), x.to_numpy()

    a, xs = run()
    qd.init()
    b, ys = run()
    assert a == b
    np.testing.assert_array_equal(xs, ys)
    qd.init(kernel_profiler=True, debug=True)

    @qd.kernel
    def beyond(x: F1, i: qd.i32):
        x[i] = 1.0

    with pytest.raises(Exception, match="beyond|out of|index"):
        beyond(qd.ndarray(qd.f32, (3,)), 7)


def test_graph_kernels_keep_their_own_times(measured):
    @qd.kernel(graph=True)
    def steps(x: F1, n: qd.types.ndarray(qd.i32, 0)):
        while qd.graph.do_while(n):
            for i in range(x.shape[0]):
                x[i] += 1.0
            n[None] -= 1

    x, n = qd.ndarray(qd.f32, (10,)), qd.ndarray(qd.i32, ())
    n.fill(3)
    steps(x, n)
    np.testing.assert_array_equal(x.to_numpy(), 3.0)
    got = tasks("steps")
    assert got[None].count == 1 and got[0].count == 3


def test_trace_has_tasks(tmp_path):
    program = """
import ingot as qd
qd.init(kernel_profiler=True)
@qd.kernel
def traced(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        x[i] = 1.0
traced(qd.ndarray(qd.f32, (1000,)))
"""
    script = tmp_path / "p.py"
    script.write_text(program)
    import os

    env = dict(os.environ, INGOT_TRACE=str(tmp_path / "t.json"))
    subprocess.run([sys.executable, str(script)], check=True, env=env)
    text = (tmp_path / "t.json").read_text().rstrip().rstrip(",")
    events = json.loads(text if text.endswith("]") else text + "]")
    found = [e["args"] for e in events if e.get("name") == "task" and e["args"]["kernel"] == "traced"]
    assert found and found[0]["bytes"] == 4000 and found[0]["threads"] == 1


def test_reference_names():
    import ingot.compat.quadrants.profiler as theirs

    for name in ("print_kernel_profiler_info query_kernel_profiler_info clear_kernel_profiler_info "
                 "get_kernel_profiler_total_time print_scoped_profiler_info clear_scoped_profiler_info").split():
        assert getattr(theirs, name) is getattr(qd.profiler, name)


THREADS = """
import threading
import ingot as qd

qd.init(kernel_profiler=True, timeline="timeline.json")

@qd.kernel
def twice(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        x[i] *= 2.0

def launch():
    x = qd.ndarray(qd.f32, 100_000)
    for _ in range(50):
        twice(x)

threads = [threading.Thread(target=launch) for _ in range(4)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    assert all(row.count <= 200 for row in qd.profiler.task_profiles())
print(*(row.count for row in qd.profiler.task_profiles()))
"""


def test_threads_are_counted_one_by_one(tmp_path, cache_dir):
    """Launches of several threads, whose tasks run on the pool, while another reads and a timeline is kept."""
    (tmp_path / "threads.py").write_text(THREADS)
    done = subprocess.run([sys.executable, "threads.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "200 200\n", done.stdout + done.stderr
    events = json.loads((tmp_path / "timeline.json").read_text())
    events = events if isinstance(events, list) else events["traceEvents"]
    launches = [e for e in events if "twice" in json.dumps(e)]
    assert len({e["tid"] for e in launches if "tid" in e}) >= 4
