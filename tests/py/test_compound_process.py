"""State in objects across processes: what one compiled, the next finds, for every promise of
docs/compound-types.md (compound_cases.py); other dtypes are entries of their own."""

import os
import subprocess
import sys

import pytest
from conftest import HERE

FAILS = {"deleted_and_restored"}  # lowers once in each process: the error is made anew


def run(cache, arch, *dtypes, seed="0"):
    """{(dtype, case): (parses, lowerings, compiles)} of one process."""
    env = dict(os.environ, INGOT_CACHE_DIR=str(cache), PYTHONHASHSEED=seed)
    done = subprocess.run(
        [sys.executable, str(HERE / "compound_cases.py"), arch, *dtypes],
        capture_output=True, text=True, timeout=300, env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("CASE")]
    return {(r[0], r[1]): tuple(map(int, r[2:])) for r in rows}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """The same cache seen by four processes in turn."""
    cache = tmp_path_factory.mktemp("compound") / "cache"
    steps = {
        "cold": ("f32", "1"), "warm": ("f32", "2"), "other": ("f64", "3"), "both": ("f32 f64", "4"),
    }
    return {
        name: run(cache, "cpu", *dtypes.split(), seed=seed)
        for name, (dtypes, seed) in steps.items()
    }


def cases():
    text = (HERE / "compound_cases.py").read_text()
    return [part.split("(")[0][4:] for part in text.split("@case\n")[1:]]


@pytest.mark.parametrize("name", cases())
def test_found_again(history, name):
    assert history["cold"]["f32", name][1] > 0
    assert history["other"]["f64", name][1] > 0  # entries of their own
    for process, dtype in [("warm", "f32"), ("both", "f32"), ("both", "f64")]:
        _, lowerings, compiles = history[process][dtype, name]
        assert lowerings == (name in FAILS) and compiles == 0, (process, dtype)
        if name not in FAILS:
            assert history[process][dtype, name][0] == 0, "source was parsed"


def test_every_case_is_run(history):
    for process in history.values():
        assert {name for _, name in process} == set(cases())


def test_the_same_on_the_interpreter(cache_dir):
    run(cache_dir, "interp", "f32", "f64")
