"""What many variants of one kernel cost the next process: the time of its first launch, which
finds the variant on disk by asking again, with 1 and with N variants of the kernel there
(templates with N values).

    variants.py [--json FILE] [--repeat N] [--variants 1000]

A launch after qd.init replays from disk as a new process does, so one process takes many
samples, in CPU time of its thread; the best is shown. Making the variants takes one LLVM run
each (opt_level 0 here): about 15 s for 1,000.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import _peers

PROGRAM = """
import sys, time, warnings
warnings.simplefilter("ignore")
import ingot as qd
qd.init(opt_level=0)
@qd.func
def f(v, t: qd.template()):
    return v * 2 + t
@qd.kernel
def k(a: qd.types.ndarray(), t: qd.template(), s: qd.f32):
    for i in range(a.shape[0]):
        a[i] = f(a[i], t) * s
a = qd.ndarray(qd.f32, 8)
first, end, repeat = map(int, sys.argv[1:])
for t in range(first, end):
    k(a, t, 0.5)
best = float("inf")
for _ in range(repeat):
    qd.init(opt_level=0)
    before = time.thread_time_ns()
    k(a, first, 0.5)
    best = min(best, time.thread_time_ns() - before)
print(best / 1e3)
"""


def run(path, env, first, end, repeat):
    """Microseconds of the best replay of variant `first`, once all up to `end` are there."""
    command = [sys.executable, str(path), str(first), str(end), str(repeat)]
    return float(subprocess.run(command, env=env, check=True, capture_output=True).stdout)


def main():
    args = _peers.arguments(__doc__, variants={"type": int, "default": 1000})
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ingot-bench-"))
    rows = []
    try:
        path = folder / "prog.py"
        path.write_text(PROGRAM)
        for n in (1, args.variants):
            env = dict(os.environ, INGOT_CACHE_DIR=str(folder / f"cache{n}"))
            run(path, env, 0, n, 1)
            which = n // 2
            best = min(run(path, env, which, which + 1, 300) for _ in range(max(args.repeat, 3)))
            index = max(p.stat().st_size for p in (folder / f"cache{n}/x").rglob("*/*"))
            rows.append({"variants": n, "replay_us": best, "index_kb": index / 1024,
                         "ratio": best / rows[0]["replay_us"] if rows else 1.0})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    columns = [("variants", "variants", ""), ("replay_us", "replay us", ".1f"),
               ("ratio", "ratio", ".2f"), ("index_kb", "index KB", ".1f")]
    _peers.show("variants: CPU time of the first launch, best of many", columns, rows)
    _peers.write(args.json, "variants", rows)


if __name__ == "__main__":
    main()
