"""Why a kernel was compiled: the explanation names the cause that was injected (each case of
tests/py/mutations.py is one), live in the log, by `qd.explain`, by the command, and instead of
compiling with frozen=True. What is read here was made by earlier processes."""

import json
import os
import subprocess
import sys
import textwrap

import ingot as qd
import pytest
from conftest import STRESS
from explanations import WANT
from mutations import CASES

RUNNER = textwrap.dedent("""
    import importlib, json, os, sys, warnings
    warnings.simplefilter("ignore")
    import ingot as qd

    out = {}
    for name in json.load(open(sys.argv[1])):
        os.environ["INGOT_OFFLINE_CACHE_FILE_PATH"] = os.path.join(sys.argv[2], name)
        qd.init()
        m = importlib.import_module(name)
        try:
            m.run()
        except qd.IngotError:
            pass
        out[name] = qd.explain(m.k if hasattr(m, "k") else m.C.k)
    json.dump(out, sys.stdout)
""")


def python(folder, *args, **env):
    done = subprocess.run(
        [sys.executable, "-B", *args], capture_output=True, text=True, timeout=600, cwd=folder,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def explained(folder, cases, which):
    for case in cases:
        for name, text in case.files(which).items():
            (folder / name).write_text(text)
    (folder / "jobs.json").write_text(json.dumps([case.module for case in cases]))
    (folder / "runner.py").write_text(RUNNER)
    return json.loads(python(folder, "runner.py", "jobs.json", "caches").stdout)


def test_the_injected_cause_is_named_first(tmp_path):
    cases = CASES[:: 1 if STRESS else 4]
    first = explained(tmp_path, cases, 0)
    assert {why for whys in first.values() for why in whys} == {"first compile"}
    second = explained(tmp_path, cases, 1)
    expected = [case for case in cases if case.name in WANT]
    wrong = [(case.name, second[case.module]) for case in expected
             if second[case.module][:1] != [WANT[case.name]]]
    assert len(wrong) <= len(expected) * 0.05, wrong
    assert not [case.name for case in cases if case not in expected and second[case.module] != first[case.module]]


PROGRAM = """
import sys, ingot as qd
options = eval(sys.argv[1])
N = int(sys.argv[2])
qd.init(**options)

@qd.kernel
def count(a: qd.types.ndarray()):
    for i in range(1):
        a[0] += N

a = qd.ndarray(qd.f32, 1)
try:
    count(a)
except qd.IngotCompilationError as e:
    print(e)
print(qd.explain(count))
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    cache = str(tmp_path / "cache")

    def run(n, options="{}", **env):
        return python(tmp_path, "program.py", options, str(n), INGOT_CACHE_DIR=cache, **env)

    run.cache = cache
    run.folder = tmp_path
    return run


def test_log_frozen_and_command(program):
    assert program(3, INGOT_LOG="cache").stderr == "ingot: compiled program.py.count: first compile\n"
    assert program(3, INGOT_LOG="cache").stderr == ""  # a hit says nothing
    assert program(4, INGOT_LOG="other, cache").stderr.endswith("count: N: 3 -> 4\n")
    done = program(5, "{'frozen': True}")
    assert "frozen=True: N: 4 -> 5" in done.stdout
    assert "frozen" not in program(4, "{'frozen': True}").stdout
    listed = python(program.folder, "-m", "ingot", "explain", "count", "--dir", program.cache).stdout
    first, second = listed.splitlines()
    assert first.endswith("program.py.count: first compile")
    assert second.endswith("program.py.count: N: 3 -> 4")


def test_lost_and_damaged_entries(program):
    program(3)
    for letter in "avx":
        for folder, _, files in os.walk(os.path.join(program.cache, letter)):
            for name in files:
                os.remove(os.path.join(folder, name))
    assert "its entry is damaged or missing" in program(3).stdout
    for folder, _, files in os.walk(os.path.join(program.cache, "n")):
        for name in files:
            path = os.path.join(folder, name)
            data = bytearray(open(path, "rb").read())
            data[len(data) // 2] ^= 1
            open(path, "wb").write(data)
    assert "['first compile']" in program(4).stdout  # notes that are damaged are no notes


def test_hits_write_no_notes(program):
    program(3)
    before = {(f, os.stat(os.path.join(d, f)).st_mtime_ns) for d, _, fs in os.walk(program.cache) for f in fs}
    program(3)
    after = {(f, os.stat(os.path.join(d, f)).st_mtime_ns) for d, _, fs in os.walk(program.cache) for f in fs}
    assert before == after


def test_without_a_disk(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM + "N = 9\ncount(a)\nprint(qd.explain(count))\n")
    done = python(tmp_path, "program.py", "{'offline_cache': False}", "3")
    assert done.stdout.splitlines() == ["['first compile']", "['N: 3 -> 9', 'first compile']"]


SCALE = None


def test_floats_look_as_in_python():
    @qd.kernel
    def scaled() -> qd.f64:
        return SCALE * 1.0

    global SCALE
    values = [2.0, 10.0, 1e15, 1e16, -123456.789, 1e-4, 1e-5]
    qd.init(offline_cache=False)
    for value in values:
        SCALE = value
        scaled()
    want = [f"SCALE: {a!r} -> {b!r}" for a, b in zip(values, values[1:])]
    assert qd.explain(scaled) == [*reversed(want), "first compile"]


def test_two_values_are_still_compared():
    assert qd.explain([1], [2]) == ["obj[0]: int 1 != int 2"]
    with pytest.raises(TypeError, match="expected a kernel"):
        qd.explain(3)
