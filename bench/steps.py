"""What a hit costs: CachedStep in memory and on disk against functools.lru_cache, diskcache
and joblib.Memory, in wall microseconds of one call whose answer is known.

    steps.py [--json FILE] [--repeat N] [--venv DIR | --no-peers]

The peers come from PyPI into a virtual environment of the benchmark's own (--venv, default
build/bench-steps), where this script runs itself again. Times are the best of N rounds, in
turns, in one process, on files that are in the page cache.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import _peers

PEERS = ["diskcache", "joblib", "numpy"]
INSIDE = "INGOT_BENCH_STEPS"


def small(x):
    return x * 2


def table(options):
    return [k * options["scale"] for k in range(1000)]


def array(a):
    return a * 2.0


def cases():
    """name -> (step, input, calls in a round)"""
    import numpy as np

    options = {"scale": 1.5, "solver": "cg", "steps": [1, 2, 3], "tolerance": 1e-6}
    return {
        "int to int": (small, 21, 1000),
        "options to 1,000 floats": (table, options, 200),
        "1 MB array to 1 MB array": (array, np.arange(131072.0), 20),
    }


def hashable(x):
    try:
        hash(x)
    except TypeError:
        return False
    return True


def methods(step, x, folder):
    """name -> a call that is a hit."""
    import ingot

    calls = {}
    if hashable(x):
        calls["lru_cache"] = functools.lru_cache(step)
    calls["memory"] = ingot.CachedStep(step)
    calls["disk"] = ingot.CachedStep(step).persistent(folder / "ingot")
    try:
        import diskcache

        calls["diskcache"] = diskcache.Cache(str(folder / "diskcache")).memoize()(step)
    except ImportError:
        print("not run: diskcache (not installed)")
    try:
        import joblib

        calls["joblib"] = joblib.Memory(folder / "joblib", verbose=0).cache(step)
    except ImportError:
        print("not run: joblib (not installed)")
    for call in calls.values():
        call(x)
    return calls


def row_of(name, step, x, rounds, repeat, folder):
    calls = methods(step, x, folder)
    span = range(rounds)

    def round_of(call):
        for _ in span:
            call(x)

    times = _peers.interleaved(
        {n: functools.partial(round_of, c) for n, c in calls.items()}, repeat
    )
    return {"case": name, **{n: t / rounds * 1e6 for n, t in times.items()}}


def inside_venv(folder):
    """Makes the environment if need be and runs this script in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PEERS], check=False)
    import ingot

    home = str(pathlib.Path(ingot.__file__).parent.parent)
    env = dict(os.environ, PYTHONPATH=home, **{INSIDE: "1"})
    return subprocess.run([str(python), *sys.argv], env=env).returncode


def main():
    default = _peers.HERE.parent / "build" / "bench-steps"
    args = _peers.arguments(
        __doc__, venv={"type": pathlib.Path, "default": default},
        no_peers={"action": "store_true"},
    )
    if INSIDE not in os.environ and not args.no_peers:
        raise SystemExit(inside_venv(args.venv))
    rows = []
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as name:
        for n, (case, (step, x, rounds)) in enumerate(cases().items()):
            folder = pathlib.Path(name, str(n))
            folder.mkdir(mode=0o700)
            rows.append(row_of(case, step, x, rounds, args.repeat, folder))
    columns = [
        ("case", "hit, wall us", ""), ("lru_cache", "lru_cache", ".2f"),
        ("memory", "CachedStep memory", ".2f"), ("disk", "CachedStep disk", ".1f"),
        ("diskcache", "diskcache", ".1f"), ("joblib", "joblib.Memory", ".1f"),
    ]
    _peers.show("steps: what a hit costs", columns, rows)
    _peers.write(args.json, "steps", rows)


if __name__ == "__main__":
    main()
