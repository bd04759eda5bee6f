"""Cold compile time of vector and matrix code against Quadrants: inverses by size, svd calls and
static unrolls by number, and local matrices of 32x32.

    compile_vectors.py [--json FILE] [--repeat N] [--python PEER=INTERPRETER ...] [--limit SECONDS]
                       [--only WHAT,WHAT,...] [--peer-all]

Each compile is of a text that no cache has seen, in a process with an empty cache folder and a
compiler that has run once. Times are processor time, of helper processes too, and wall time, the
best of N texts that differ in one number. A slope is that of a line through the logarithms of
size and time, once over all sizes and once over the two largest; 1.0 = linear.
The peer takes so long that it compiles each program once, and without --peer-all only the sizes
that a bar names.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import _peers

RUNNER = """
import importlib, json, os, pathlib, sys, time
name, folder = sys.argv[1], sys.argv[2]
sys.path.insert(0, folder)
qd = importlib.import_module(name)
qd.init(arch=qd.cpu, **({} if name == "ingot" else {"offline_cache": False, "log_level": "error"}))
sys.modules["qd"] = qd
x = qd.ndarray(qd.f32, 2048)
def processor():
    total = time.process_time()
    for row in pathlib.Path("/proc/self/task").glob("*/children"):
        for pid in row.read_text().split():
            total += time.clock_gettime((~int(pid) << 3) | 2)  # the clock of that process
    return total
for module in sys.argv[3:]:
    k = importlib.import_module(module).k
    wall, cpu = time.perf_counter(), processor()
    k(x)
    getattr(qd, "sync")()
    print(json.dumps([module, processor() - cpu, time.perf_counter() - wall]), flush=True)
"""
HEAD = "import qd\nArray = qd.types.ndarray(qd.f32, 1)\n"


def small(seed):
    return HEAD + f"""
@qd.kernel
def k(x: Array):
    for i in range(x.shape[0]):
        x[i] = x[i] * {seed}.5 + 1.0
"""


def matrix(n, seed, body):
    """One loop that fills an n x n matrix `m`, does `body` and stores the sum of `r`."""
    return HEAD + f"""
@qd.kernel
def k(x: Array):
    for p in range(2):
        m = qd.Matrix.zero(qd.f32, {n}, {n})
        for i in range({n}):
            for j in range({n}):
                m[i, j] = x[i * {n} + j] + {seed}.5
{body}
        for i in range({n}):
            for j in range({n}):
                x[i * {n} + j] = r[i, j]
"""


def inverse(n, seed):
    return matrix(n, seed, "        r = m.inverse()")


def matmul(n, seed):
    return matrix(n, seed, "        r = m @ m")


def elementwise(n, seed):
    return matrix(n, seed, "        r = qd.sqrt(abs(m * 2.0 + m)) - m / 3.0")


def svd(calls, seed):
    """As many calls on different matrices, in one loop."""
    lines = [f"        u{c}, s{c}, v{c} = qd.svd(m * {c}.5)\n        r += u{c} @ s{c} @ v{c}"
             for c in range(calls)]
    return HEAD + f"""
@qd.kernel
def k(x: Array):
    for p in range(2):
        m = qd.Matrix([[x[0], x[1], x[2]], [x[3], x[4], x[5]], [x[6], x[7], x[8] + {seed}.5]])
        r = qd.Matrix.zero(qd.f32, 3, 3)
""" + "\n".join(lines) + """
        for i, j in qd.static(qd.ndrange(3, 3)):
            x[i * 3 + j] = r[i, j]
"""


def unroll(statements, seed):
    return HEAD + f"""
@qd.kernel
def k(x: Array):
    for p in range(x.shape[0]):
        v = qd.Vector([x[p], 1.0, {seed}.0])
        for c in qd.static(range({statements // 2})):
            v = v * 0.5 + qd.Vector([c, 1.0, x[p]])
            v[c % 3] += v.norm()
        x[p] = v.sum()
"""


# What is measured: its programs, the sizes, and those that a bar compares with the peer.
CASES = {
    "inverse": (inverse, (2, 3, 4, 5, 6, 8, 12, 16), (12,)),
    "svd": (svd, (10, 20, 50, 100, 200), (200,)),
    "unroll": (unroll, (100, 200, 500, 1000), (1000,)),
    "local matmul": (matmul, (4, 8, 16, 32), (32,)),
    "local inverse": (inverse, (24, 32), (32,)),
    "elementwise": (elementwise, (4, 8, 16, 32), (32,)),
}


def compile_times(peer, python, programs, limit):
    """(processor, wall) seconds by program; the first one warms the compiler. Past `limit`
    seconds, that is taken for the wall time: a bound from below."""
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        names = []
        for n, text in enumerate([small(990), *programs]):
            names.append(f"program{n}")
            pathlib.Path(folder, names[-1] + ".py").write_text(text)
        runner = pathlib.Path(folder, "runner.py")
        runner.write_text(RUNNER)
        env = dict(os.environ, INGOT_CACHE_DIR=str(pathlib.Path(folder, "cache")),
                   QD_OFFLINE_CACHE="0")
        try:
            run = subprocess.run([python, str(runner), peer, folder, *names], env=env,
                                 capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"ended after {limit} s: {peer}", file=sys.stderr)
            return [(None, limit)] * len(programs)
        rows = [json.loads(x) for x in run.stdout.splitlines() if x.startswith('["program')]
        if run.returncode or len(rows) != len(names):
            print(f"not run: {peer} ({run.stderr.strip()[-300:]})", file=sys.stderr)
            return None
        return [(cpu, wall) for _, cpu, wall in rows[1:]]


def slope(sizes, times):
    xs, ys = [math.log(n) for n in sizes], [math.log(t) for t in times]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def best_of(peer, python, make, sizes, repeat, limit):
    """The best (processor, wall) milliseconds by size, each of `repeat` processes."""
    found = None
    for seed in range(repeat):
        got = compile_times(peer, python, [make(n, 3 * seed + 1) for n in sizes], limit)
        if got is None:
            return None
        found = got if found is None else [tuple(map(min, a, b)) for a, b in zip(found, got)]
    return [(cpu and cpu * 1e3, wall * 1e3) for cpu, wall in found]


def main():
    args = _peers.arguments(
        __doc__, python={"action": "append", "default": []},
        limit={"type": float, "default": 600.0}, only={"default": ",".join(CASES)},
        peer_all={"action": "store_true"})
    pythons = {"ingot": sys.executable} | dict(pair.split("=", 1) for pair in args.python)
    if "quadrants" not in pythons:
        pythons["quadrants"] = _peers.venv("quadrants")
    rows, slopes = [], []
    for what in args.only.split(","):
        make, sizes, bar = CASES[what]
        ours = best_of("ingot", pythons["ingot"], make, sizes, args.repeat, args.limit)
        if ours is None:
            continue
        at = sizes if args.peer_all else bar
        theirs = best_of("quadrants", pythons["quadrants"], make, at, 1, args.limit) \
            if pythons["quadrants"] else None
        peer = dict(zip(at, theirs)) if theirs else {}
        for n, (cpu, wall) in zip(sizes, ours):
            row = {"what": what, "size": n, "ingot_cpu_ms": cpu, "ingot_ms": wall}
            if n in peer:
                row |= {"quadrants_cpu_ms": peer[n][0], "quadrants_ms": peer[n][1],
                        "vs_quadrants_cpu": peer[n][0] and peer[n][0] / cpu,
                        "vs_quadrants": peer[n][1] / wall}
            rows.append(row)
        if len(sizes) > 2:
            cpus = [cpu for cpu, _ in ours]
            slopes.append({"what": what, "slope": slope(sizes, cpus),
                           "last_slope": slope(sizes[-2:], cpus[-2:])})
    columns = [("what", "kernel", ""), ("size", "size", ","), ("ingot_cpu_ms", "CPU ms", ".1f"),
               ("ingot_ms", "wall ms", ".1f"), ("quadrants_cpu_ms", "Quadrants CPU", ".1f"),
               ("quadrants_ms", "wall", ".1f"), ("vs_quadrants_cpu", "ratio CPU", ".1f"),
               ("vs_quadrants", "wall", ".1f")]
    _peers.show("compile_vectors: cold, compiler running", columns, rows)
    _peers.show("slopes", [("what", "kernel", ""), ("slope", "slope", ".2f"),
                           ("last_slope", "last two", ".2f")], slopes)
    _peers.write(args.json, "compile_vectors", rows + slopes)


if __name__ == "__main__":
    main()
