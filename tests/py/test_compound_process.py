"""State in objects, every case of compound_cases.py: in one process after the other on the same
cache. What one compiled, the next finds; other dtypes are entries of their own; hash seeds differ."""

import json
import os
import subprocess
import sys

import compound_cases
import pytest
from conftest import HERE

CASES = compound_cases.load()
STEPS = {  # name: (arch, dtypes)
    "cold": ("cpu", "f32"), "warm": ("cpu", "f32"), "other": ("cpu", "f64"),
    "both": ("cpu", "f32 f64"), "interp": ("interp", "f32 f64"),
}


def run(cache, arch, dtypes, seed):
    """{(dtype, case): ("ok", [parses, lowerings, compiles]) or ("failed", why)}"""
    env = dict(os.environ, INGOT_CACHE_DIR=str(cache), PYTHONHASHSEED=seed)
    done = subprocess.run(
        [sys.executable, str(HERE / "compound_cases.py"), arch, *dtypes.split()],
        capture_output=True, text=True, timeout=400, env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("CASE")]
    return {(dtype, name): (how, what) for dtype, name, how, what in rows}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """What each process of STEPS saw, run when first asked for."""
    cache = tmp_path_factory.mktemp("compound") / "cache"
    return {name: run(cache, *step, str(i)) for i, (name, step) in enumerate(STEPS.items())}


@pytest.mark.parametrize("name", CASES)
def test_case(history, name):
    for step, (_, dtypes) in STEPS.items():
        for dtype in dtypes.split():
            how, what = history[step][dtype, name]
            assert how == "ok", f"{step} {dtype}: {what}"


@pytest.mark.counts("parses, lowerings and compiles")
@pytest.mark.parametrize("name", CASES)
def test_what_a_case_costs(history, name):
    if not CASES[name].shares:  # both compile: entries of their own
        for step, dtype in [("cold", "f32"), ("other", "f64")]:
            assert history[step][dtype, name][1][1] > CASES[name].lowered
    for step, dtype in [("warm", "f32"), ("both", "f32"), ("both", "f64")]:
        parses, lowerings, compiles = history[step][dtype, name][1]
        assert lowerings == CASES[name].lowered and compiles == 0, (step, dtype)
        assert parses == 0 or CASES[name].parses
