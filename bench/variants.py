"""What many variants of one kernel cost the next process: CPU time of a whole process that
launches a kernel once, with 1 and with N variants of it on disk (templates with N values).

    variants.py [--json FILE] [--repeat N] [--variants 1000]

Making the variants takes one LLVM run each (opt_level 0 here): about 15 s for 1,000.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import _peers

PROGRAM = """
import sys, warnings
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
for t in range(int(sys.argv[1]), int(sys.argv[2])):
    k(a, t, 0.5)
"""


def run(path, env, first, end):
    before = time.perf_counter()
    p = subprocess.Popen([sys.executable, str(path), str(first), str(end)], env=env)
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = status
    if status:
        raise SystemExit("the program failed")
    return time.perf_counter() - before, used.ru_utime + used.ru_stime


def main():
    args = _peers.arguments(__doc__, variants={"type": int, "default": 1000})
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ingot-bench-"))
    rows = []
    try:
        path = folder / "prog.py"
        path.write_text(PROGRAM)
        for n in (1, args.variants):
            env = dict(os.environ, INGOT_CACHE_DIR=str(folder / f"cache{n}"))
            run(path, env, 0, n)
            which = n // 2
            times = [run(path, env, which, which + 1) for _ in range(max(args.repeat, 10))]
            index = max(p.stat().st_size for p in (folder / f"cache{n}/x").rglob("*"))
            rows.append({"variants": n, "wall_ms": min(t[0] for t in times) * 1e3,
                         "cpu_ms": min(t[1] for t in times) * 1e3, "index_kb": index / 1024})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    columns = [("variants", "variants", ""), ("wall_ms", "wall ms", ".1f"),
               ("cpu_ms", "CPU ms", ".1f"), ("index_kb", "index KB", ".1f")]
    _peers.show("variants: one launch in a fresh process, best of several", columns, rows)
    _peers.write(args.json, "variants", rows)


if __name__ == "__main__":
    main()
