"""A whole process, from exec to the last result, that runs each of its kernels once: with 1,
20 and 300 kernels, cold (empty cache) and warm (a second process), import included.

    start.py [--json FILE] [--repeat N] [--kernels 1,20,300] [--quadrants-python PATH]
             [--numba-python PATH] [--taichi-python PATH]

The kernels are in a module of their own that is imported, so that Python's own compiler is
not measured. Beside wall time: CPU time (user + system), page faults, peak memory, and, where
strace is installed, system calls, files opened and bytes read. "Ingot pack" starts from a layer that
was sealed (`ingot cache seal`); "Ingot server" finds a server of compilers (docs/processes.md), the others
none. Cold times are the best of three, each with an empty cache; "Python" is a process that does nothing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import _peers

LANGUAGE = """
import {module} as qd
qd.init({init})
A = {array}
a = qd.ndarray(qd.f32, (8,))
"""
KERNEL = """
@qd.kernel{options}
def k{n}(a: A, s: qd.f32):
    for i in range(a.shape[0]):
        x = a[i] * s + {n}.0
        for j in range(3):
            x = x * 0.5 + s
        a[i] = x
k{n}(a, 1.5)
"""
NUMBA = """
import numba
import numpy as np
a = np.zeros(8, np.float32)
"""
NUMBA_KERNEL = """
@numba.njit(cache=True)
def k{n}(a, s):
    for i in range(a.shape[0]):
        x = a[i] * s + {n}.0
        for j in range(3):
            x = x * 0.5 + s
        a[i] = x
k{n}(a, np.float32(1.5))
"""
ARRAY = "qd.types.ndarray(qd.f32, 1)"


def program(peer, kernels):
    if peer["module"] == "numba":
        return NUMBA + "".join(NUMBA_KERNEL.format(n=n) for n in range(kernels))
    if peer["module"] is None:
        return "pass\n"
    head = LANGUAGE.format(module=peer["module"], init=peer["init"], array=ARRAY)
    options = peer.get("options", "")
    return head + "".join(KERNEL.format(n=n, options=options) for n in range(kernels))


def run(python, path, env):
    """(seconds, CPU seconds, page faults, peak KB) of one process."""
    before = time.perf_counter()
    p = subprocess.Popen([python, str(path)], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    error = p.stderr.read()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = status
    wall = time.perf_counter() - before
    if status:
        raise RuntimeError(f"{path} failed:\n{error.decode()[-2000:]}")
    return wall, used.ru_utime + used.ru_stime, used.ru_minflt + used.ru_majflt, used.ru_maxrss


def counted(python, path, env):
    """(system calls, files opened, bytes read) as strace sees them, or Nones."""
    if not shutil.which("strace"):
        return None, None, None
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run(["strace", "-f", "-o", out.name, python, str(path)], env=env,
                       stdout=subprocess.DEVNULL, check=True, stderr=subprocess.DEVNULL)
        calls = opened = read = 0
        for line in out:
            calls += 1
            call, _, result = line.rpartition(" = ")
            name = call.partition("(")[0].split()[-1:]
            if name not in (["open"], ["openat"], ["read"], ["pread64"]):
                continue
            number = result.split()[0] if result.split() else "?"
            if not number.lstrip("-").isdigit() or int(number) < 0:
                continue
            if "open" in name[0]:
                opened += 1
            else:
                read += int(number)
    return calls, opened, read


def measure(peer, kernels, repeat, folder):
    name = f"{peer['label'].replace(' ', '_')}_{kernels}".lower()
    place = folder / name
    place.mkdir()
    module = place / f"kernels_{kernels}.py"
    module.write_text(program(peer, kernels))
    path = place / "main.py"
    path.write_text(f"import kernels_{kernels}\n")
    caches = [place / f"cache{k}" for k in range(3)]
    cache = caches[-1]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if peer.get("server"):
        env.update(INGOT_SERVER="60", XDG_RUNTIME_DIR=str(place), INGOT_CACHE_DIR=str(place / "cache"))
        run(peer["python"], path, env)  # leaves one behind, which ends by itself
    cold = []
    for each in caches:
        env.update(INGOT_CACHE_DIR=str(each), QD_OFFLINE_CACHE_FILE_PATH=str(each),
                   TI_OFFLINE_CACHE_FILE_PATH=str(each), NUMBA_CACHE_DIR=str(each))
        cold.append(run(peer["python"], path, env))
    if peer.get("sealed"):
        layer = place / "layer"
        subprocess.run([peer["python"], "-m", "ingot", "cache", "seal", "--dir", str(cache), str(layer)],
                       env=env, check=True, stdout=subprocess.DEVNULL, cwd=place)
        env["INGOT_CACHE_PATH"] = str(layer)
    for _ in range(2):  # the reference publishes at exit, and some entries a process later
        run(peer["python"], path, env)
    warm = [run(peer["python"], path, env) for _ in range(repeat)]
    calls, opened, read = counted(peer["python"], path, env)
    return {
        "peer": peer["label"], "kernels": kernels, "cold_ms": min(c[0] for c in cold) * 1e3,
        "warm_ms": min(w[0] for w in warm) * 1e3, "warm_cpu_ms": min(w[1] for w in warm) * 1e3,
        "calls": calls, "faults": min(w[2] for w in warm), "peak_mb": warm[0][3] / 1024, "opened": opened,
        "read_kb": None if read is None else read / 1024,
    }


def peers_of(args):
    ingot = {"python": sys.executable, "module": "ingot", "init": ""}
    yield {"label": "Python", "python": sys.executable, "module": None}
    yield {"label": "Ingot", **ingot}
    yield {"label": "Ingot server", "server": True, **ingot}
    yield {"label": "Ingot pack", "sealed": True, **ingot}
    if args.quadrants_python:
        both = {"python": args.quadrants_python, "module": "quadrants",
                "init": "arch=qd.cpu, log_level='error'"}
        yield {"label": "Quadrants", **both}
        yield {"label": "Quadrants fastcache", "options": "(fastcache=True)", **both}
    else:
        print("not run: Quadrants (--quadrants-python PATH names one)")
    for label, python in (("numba", args.numba_python), ("taichi", args.taichi_python)):
        if python:
            yield {"label": label.capitalize(), "python": python, "module": label,
                   "init": "arch=qd.cpu, log_level='error'"}
        else:
            print(f"not run: {label.capitalize()} (--{label}-python PATH names one)")


def main():
    args = _peers.arguments(
        __doc__, quadrants_python={"help": "an interpreter with Quadrants"},
        numba_python={"help": "an interpreter with Numba"},
        taichi_python={"help": "an interpreter with Taichi"}, kernels={"default": "1,20,300"},
    )
    rows = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ingot-bench-"))
    try:
        for kernels in map(int, args.kernels.split(",")):
            for peer in peers_of(args):
                rows.append(measure(peer, kernels, min(args.repeat, 15), folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    columns = [
        ("peer", "", ""), ("kernels", "kernels", ""), ("cold_ms", "cold ms", ".0f"),
        ("warm_ms", "warm ms", ".1f"), ("warm_cpu_ms", "warm CPU ms", ".1f"),
        ("calls", "system calls", ""), ("opened", "files opened", ""), ("read_kb", "KB read", ".0f"),
        ("faults", "page faults", ""), ("peak_mb", "peak MB", ".1f"),
    ]
    _peers.show("start: a whole process, best of several", columns, rows)
    _peers.write(args.json, "start", rows)


if __name__ == "__main__":
    main()
