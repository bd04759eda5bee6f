"""Nothing stale: every way to change what a kernel means (tests/py/mutations.py) is seen by
the next process and, where it applies, by the next launch.

The programs of all cases run in a few processes that share one cache: before, after, before
again (which must find everything it needs), and once with each change made in between two
launches. The interpreter, which has no cache, must say the same."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from mutations import CASES

RUNNER = textwrap.dedent("""
    import importlib, json, sys, traceback, warnings
    warnings.simplefilter("ignore")
    import ingot as qd
    from ingot import _core
    warnings.simplefilter("error", qd.IngotStaticCallWarning)  # of paranoid mode

    def value(m):
        try:
            return m.run()
        except Exception as e:
            kind = type(e).__name__
            if not kind.startswith("Ingot") or "paranoid:" in str(e):
                traceback.print_exc()
                return repr(e)
            return kind

    out = {}
    for name, live in json.load(open(sys.argv[1])).items():
        qd.init()
        try:
            m = importlib.import_module(name)
        except Exception as e:
            traceback.print_exc()
            out[name] = ["import: " + repr(e)]
            continue
        before = _core.counters()
        got = [value(m)]
        if live is not None:
            there, back = live
            try:
                exec(there, {"m": m})
            except Exception as e:
                got.append(repr(e))
            got.append(value(m))
            if back is not None:
                exec(back, {"m": m})
                got.append(value(m))
        after = _core.counters()
        out[name] = got + [{k: after[k] - before[k] for k in after}]
    json.dump(out, sys.stdout)
""")


def run(folder, jobs, **env):
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "runner.py").write_text(RUNNER)
    done = subprocess.run(
        [sys.executable, "-B", str(folder / "runner.py"), str(folder / "jobs.json")],
        capture_output=True, text=True, timeout=600, env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def write(folder, which):
    for case in CASES:
        for name, text in case.files(which).items():
            (folder / name).write_text(text)


def live_of(case):
    """The statements that make the change and, where the same statement does, undo it."""
    if case.live is None:
        return None
    there = case.live.replace("@@", case.hole[1])
    back = case.live.replace("@@", case.hole[0]) if "@@" in case.live else None
    return [there, None if back == there else back]


INTERPRETED = {"INGOT_ARCH": "interp"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """name of a run -> name of a case -> values, last the counters."""
    folder = tmp_path_factory.mktemp("mutations")
    cache = {"INGOT_CACHE_DIR": str(folder / "cache")}
    plain = {case.module: None for case in CASES}
    out = {}
    write(folder, 0)
    out["before"] = run(folder, plain, **cache)
    out["before, interpreted"] = run(folder, plain, **INTERPRETED)
    write(folder, 1)
    out["after"] = run(folder, plain, **cache)
    out["after, interpreted"] = run(folder, plain, **INTERPRETED)
    write(folder, 0)
    out["again"] = run(folder, plain, **cache)
    lives = {case.module: live_of(case) for case in CASES if case.live}
    out["live"] = run(folder, lives, **cache)
    out["live cold"] = run(folder, lives, INGOT_CACHE_DIR=str(folder / "cold"))
    out["live, interpreted"] = run(folder, lives, **INTERPRETED)
    return out


def test_there_are_enough():
    assert len(CASES) >= 40 and len({c.module for c in CASES}) == len(CASES)
    assert sum(c.live is not None for c in CASES) >= 30


def assert_right(case, got, want):
    if case.later and isinstance(got, str) and got.startswith("Ingot") and "paranoid:" not in got:
        return
    assert got == want


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_next_process(results, case):
    for which, want in (("before", 0), ("after", 1), ("again", 0), ("before, interpreted", 0),
                        ("after, interpreted", 1)):
        assert_right(case, results[which][case.module][0], case.want[want])


@pytest.mark.counts("parses and lowerings")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_back_again_is_a_hit(results, case):
    """A -> B -> A: what was published first is still there, and nothing is parsed."""
    if str(results["again"][case.module][0]).startswith("Ingot"):
        return  # no kernel was made
    counters = results["again"][case.module][-1]
    assert counters["kernel_disk_hits"] >= 1, counters
    if "assert" in case.text:
        counters["parses"] = 0  # a message that names the line needs the text
    assert (counters["parses"], counters["lowerings"], counters["helpers_started"]) == (0, 0, 0)


@pytest.mark.parametrize("case", [c for c in CASES if c.live], ids=lambda c: c.name)
@pytest.mark.parametrize("start", ["live", "live cold", "live, interpreted"])
def test_next_launch(results, case, start):
    got = results[start][case.module][:-1]
    for value, want in zip(got, (*case.want, case.want[0])):
        assert_right(case, value, want)
    assert results[start][case.module][-1]["trace_conflicts"] == 0
