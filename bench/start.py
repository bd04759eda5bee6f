"""Time of a whole process that runs its kernels once: cold (empty cache) and warm (second
run), with 1 and with 20 kernels.

    start.py [--json FILE] [--repeat N] [--quadrants-python PATH]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import _peers

HEAD = """
import {module} as qd
qd.init({init})
A = qd.types.ndarray(qd.f32, 1)
a = qd.ndarray(qd.f32, (1000,))
"""
KERNEL = """
@qd.kernel
def k{n}(a: A, s: qd.f32):
    for i in range(a.shape[0]):
        x = a[i] * s + {n}.0
        for j in range({n} + 2):
            x = x * 0.5 + s
        a[i] = x
k{n}(a, 1.5)
"""


def program(module, init, kernels):
    text = HEAD.format(module=module, init=init)
    return text + "".join(KERNEL.format(n=n) for n in range(kernels))


def run(python, path, env):
    before = time.perf_counter()
    done = subprocess.run([python, str(path)], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path} failed:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - before


def measure(python, module, init, kernels, repeat, folder):
    """(cold, warm, bare) in seconds; bare is the import alone."""
    path = folder / f"start_{module}_{kernels}.py"
    path.write_text(program(module, init, kernels))
    bare = folder / f"bare_{module}.py"
    bare.write_text(f"import {module}\n")
    cold = []
    for k in range(3):
        cache = folder / f"cache-{module}-{kernels}-{k}"
        env = dict(os.environ, INGOT_CACHE_DIR=str(cache), QD_OFFLINE_CACHE_FILE_PATH=str(cache))
        cold.append(run(python, path, env))
    warm = min(run(python, path, env) for _ in range(repeat))
    alone = min(run(python, bare, env) for _ in range(repeat))
    return min(cold), warm, alone


def main():
    args = _peers.arguments(__doc__, quadrants_python={"help": "an interpreter with Quadrants"})
    peers = [("Ingot", sys.executable, "ingot", "")]
    if args.quadrants_python:
        peers.append(("Quadrants", args.quadrants_python, "quadrants", "arch=qd.cpu"))
    else:
        print("not run: Quadrants (--quadrants-python PATH names one)")
    rows = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ingot-bench-"))
    try:
        for kernels in (1, 20):
            for label, python, module, init in peers:
                cold, warm, bare = measure(
                    python, module, init, kernels, min(args.repeat, 7), folder
                )
                rows.append({
                    "peer": label, "kernels": kernels, "cold_ms": cold * 1e3,
                    "warm_ms": warm * 1e3, "import_ms": bare * 1e3,
                })
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    columns = [
        ("peer", "", ""), ("kernels", "kernels", ""), ("cold_ms", "cold ms", ".0f"),
        ("warm_ms", "warm ms", ".0f"), ("import_ms", "import alone ms", ".0f"),
    ]
    _peers.show("start: a whole process, best of several", columns, rows)
    _peers.write(args.json, "start", rows)


if __name__ == "__main__":
    main()
