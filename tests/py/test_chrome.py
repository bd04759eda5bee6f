"""INGOT_TRACE: what happened when, as a trace that Perfetto opens. The file is JSON at every moment,
spans of a thread nest, and each process has its own."""

import decimal
import json
import os
import signal
import subprocess
import sys

import pytest

HEAD = """\
import os, sys, threading, time
import ingot as qd
from ingot import _core
qd.init()


@qd.func
def scaled(x):
    return x * 3


@qd.kernel
def step(a: qd.types.ndarray(), t: qd.template()):
    for i in range(a.shape[0]):
        a[i] = scaled(a[i]) + scaled(t)
    for i in range(a.shape[0]):
        a[i] += 1


a = qd.ndarray(qd.i32, 8)
"""


@pytest.fixture
def program(tmp_path, cache_dir):
    """Runs a program with a trace: its events."""
    trace = tmp_path / "trace.json"

    def run(body, code=0, env=None):
        path = tmp_path / "prog.py"
        path.write_text(HEAD + body)
        done = subprocess.run([sys.executable, "-B", str(path)], capture_output=True, text=True, timeout=240,
                              env={**os.environ, "INGOT_ARCH": "cpu", "INGOT_TRACE": str(trace), **(env or {})})
        assert done.returncode == code, done.stderr
        return json.loads(trace.read_text(), parse_float=decimal.Decimal) if trace.exists() else []

    run.trace = trace
    return run


def spans(events, name=None):
    return [e for e in events if e["ph"] == "X" and name in (None, e["name"])]


def inside(a, b):
    return b["ts"] <= a["ts"] and a["ts"] + a["dur"] <= b["ts"] + b["dur"]


def check_nesting(events):
    threads = {}
    for e in spans(events):
        threads.setdefault((e["pid"], e["tid"]), []).append(e)
    for rows in threads.values():
        rows.sort(key=lambda e: (e["ts"], -e["dur"]))
        open_spans = []
        for e in rows:
            while open_spans and open_spans[-1]["ts"] + open_spans[-1]["dur"] <= e["ts"]:
                open_spans.pop()
            assert not open_spans or inside(e, open_spans[-1]), (e, open_spans[-1])
            open_spans.append(e)


@pytest.mark.counts("parses")
def test_cold_and_warm(program):
    events = program("step(a, 1)\nstep(a, 1)\n")
    check_nesting(events)
    names = {e["name"] for e in spans(events)}
    assert names >= {"launch", "lookup", "parse", "lower", "passes", "text", "wait for llvm", "llvm", "link",
                     "publish and load", "compile"}
    assert len(spans(events, "launch")) == 2 and len(spans(events, "compile")) == 1
    compiled, = spans(events, "compile")
    args = compiled["args"]
    assert args["kernel"] == "step" and args["tasks"] == args["compiled"] == 2
    assert args["funcs lowered"] == 1 and args["calls sharing them"] == 2 and args["syntax nodes"] > 20
    assert args["LLVM lines"] > 10 and args["IR instructions"] > 10 and args["llvm ms"] > 0
    first = spans(events, "launch")[0]
    for name in ("lookup", "lower", "passes"):
        assert inside(spans(events, name)[0], first), name
    assert inside(spans(events, "lower")[0], compiled)
    # LLVM runs in processes of their own, while a thread of ours waits.
    mine = compiled["pid"]
    helpers = {e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "ingot helper"}
    for e in spans(events, "llvm"):
        assert e["pid"] in helpers and e["pid"] != mine
        assert any(inside(e, w) for w in spans(events, "wait for llvm"))
    assert sum(e["name"] == "process_name" and e["pid"] == mine for e in events) == 1

    program.trace.unlink()
    events = program("step(a, 1)\n")
    check_nesting(events)
    names = {e["name"] for e in spans(events)}
    assert names == {"launch", "lookup", "load"}
    assert [e["args"]["found"] for e in spans(events, "lookup")] == [True]
    assert len(spans(events, "load")) == 2


def test_processes_share_a_file(program):
    """A fork with events held and a kernel compiled in the child, and a process killed in between."""
    events = program("""
step(a, 1)
if (child := os.fork()) == 0:
    step(a, 2)
    _core._trace_flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
step(a, 3)
print(child)
""")
    check_nesting(events)
    pids = {e["pid"] for e in spans(events, "compile")}
    assert len(pids) == 2 and len(spans(events, "compile")) == 3
    before = len(events)
    events = program("step(a, 4)\nos.kill(os.getpid(), 9)\n", code=-signal.SIGKILL)
    assert len(events) > before and len(spans(events, "compile")) == 4
    check_nesting(events)


def test_threads(program):
    events = program("""
step(a, 1)
def work():
    b = qd.ndarray(qd.i32, 8)
    for _ in range(50):
        step(b, 1)
all_threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in all_threads]
[t.join() for t in all_threads]
""")
    check_nesting(events)
    launches = spans(events, "launch")
    assert len(launches) == 201 and len({e["tid"] for e in launches}) >= 2


def test_a_file_that_is_cut_is_mended(program):
    program("step(a, 1)\n")
    whole = program.trace.read_text()
    program.trace.write_text(whole[: len(whole) * 2 // 3])
    events = program("step(a, 1)\n")
    assert len(spans(events, "launch")) >= 1
    check_nesting(events)


def test_nothing_else_is_harmed(program, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("dear diary")
    program("step(a, 1)\n", env={"INGOT_TRACE": str(mine)})
    assert mine.read_text() == "dear diary"
    program("step(a, 1)\n", env={"INGOT_TRACE": str(tmp_path / "none" / "x.json")})
    program("step(a, 1)\nassert _core._trace_flush() == 0\n", env={"INGOT_TRACE": ""})
