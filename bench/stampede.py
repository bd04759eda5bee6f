"""Many cold processes on one cache directory: who compiles what, and how long it takes.

    stampede.py [--json FILE] [--repeat N] [--kernels K] [--processes 1,2,4,8]

Each process runs the same K kernels. A row: processes, tasks compiled in all (each unique one
should be compiled once), wall time until all are done, and that as a multiple of one process
alone. Wall time is the best of N rounds, each with an empty directory.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import _peers


def program(kernels):
    text = ["import json, sys", "import ingot as qd", "", "qd.init()", ""]
    for k in range(kernels):
        text += ["@qd.kernel", f"def k{k}(a: qd.types.ndarray(qd.f32, ndim=1), s: qd.f32):",
                 "    for i in range(a.shape[0]):",
                 f"        a[i] = a[i] * {k + 1.5} + s * qd.sin(a[i] + {k})", ""]
    text += ["a = qd.ndarray(qd.f32, (64,))"]
    text += [f"k{k}(a, 0.5)" for k in range(kernels)]
    text += ["print(json.dumps([qd._core.counters(), float(a[3])]))"]
    return "\n".join(text) + "\n"


def run(path, cache, processes):
    env = {**os.environ, "INGOT_CACHE_DIR": str(cache)}
    before = time.perf_counter()
    children = [subprocess.Popen([sys.executable, str(path)], env=env, stdout=subprocess.PIPE, text=True)
                for _ in range(processes)]
    outputs = [c.communicate()[0] for c in children]
    wall = time.perf_counter() - before
    assert all(c.returncode == 0 for c in children)
    results = [json.loads(o) for o in outputs]
    assert len({value for _, value in results}) == 1
    counts = [c for c, _ in results]
    return wall, sum(c["image_compiles"] for c in counts), sum(c["image_waits"] for c in counts)


def main():
    args = _peers.arguments(__doc__, kernels={"type": int, "default": 20}, processes={"default": "1,2,4,8"})
    rows = []
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(program(args.kernels))
        for n in map(int, args.processes.split(",")):
            rounds = []
            for k in range(min(args.repeat, 5)):
                rounds.append(run(path, pathlib.Path(folder, f"cache-{n}-{k}"), n))
            wall, compiles, waits = min(rounds)
            rows.append({"processes": n, "compiles": max(r[1] for r in rounds), "unique": args.kernels,
                         "waits": waits, "seconds": wall, "times": wall / (rows[0]["seconds"] if rows else wall)})
        warm = min(run(path, pathlib.Path(folder, "cache-1-0"), 1)[0] for _ in range(3))
    _peers.show(f"{args.kernels} kernels, an empty directory", [
        ("processes", "processes", "d"), ("unique", "unique", "d"), ("compiles", "compiled at most", "d"),
        ("waits", "waits", "d"), ("seconds", "seconds", ".2f"), ("times", "x one alone", ".2f")], rows)
    print(f"warm, one process: {warm:.2f} s")
    _peers.write(args.json, "stampede", rows)


main()
