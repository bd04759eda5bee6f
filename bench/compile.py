"""Cold compile time against Quadrants: small kernels once the compiler is up, its growth with
the length of a kernel, and a kernel that calls 200 funcs 4,000 times.

    compile.py [--json FILE] [--repeat N] [--python PEER=INTERPRETER ...] [--lines N,N,...]
               [--limit SECONDS]

Each compile is of a text that no cache has seen, in a process with an empty cache folder. The
phases are Ingot's own report (INGOT_LOG=compile); a slope is that of a line through the
logarithms of lines and times, 1.0 = linear.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import _peers

RUNNER = """
import importlib, json, os, sys, time
name, folder = sys.argv[1], sys.argv[2]
sys.path.insert(0, folder)
qd = importlib.import_module(name)
qd.init(arch=qd.cpu, **({} if name == "ingot" else {"offline_cache": False, "log_level": "error"}))
sys.modules["qd"] = qd
x = qd.ndarray(qd.f32, 64)
for module in sys.argv[3:]:
    k = importlib.import_module(module).k
    before = time.perf_counter()
    k(x)
    getattr(qd, "sync")()
    print(json.dumps([module, time.perf_counter() - before]), flush=True)
"""
HEAD = "import qd\nArray = qd.types.ndarray(qd.f32, 1)\n"
PHASES = re.compile(
    r"compile k: (\d+) nodes, (\d+) funcs for (\d+) calls, (\d+) IR instructions, (\d+) LLVM lines"
    r".*front ([\d.]+) passes ([\d.]+) text ([\d.]+) llvm ([\d.]+) link ([\d.]+)")


def small(seed):
    return HEAD + f"""
@qd.kernel
def k(x: Array):
    for i in range(x.shape[0]):
        y = x[i] * {seed}.5 + 1.0
        if y > {seed}.0:
            y = qd.sqrt(y) - x[i]
        x[i] = y + {seed}.25
"""


def long(lines, seed):
    """One loop with `lines` statements, in branches of eight."""
    body = []
    for n in range(lines):
        if n % 8 == 0:
            body.append(f"        if a > {n}.5:")
        body.append(f"            a = a * 0.{n % 7 + 1} + b - {n + seed}.0" if n % 2
                    else f"            b = b + a * {n % 5 + 1}.5")
    return HEAD + ("@qd.kernel\ndef k(x: Array):\n    for i in range(x.shape[0]):\n"
                   "        a = x[i]\n        b = a + 1.0\n" + "\n".join(body)
                   + "\n        x[i] = a + b\n")


def many_calls(funcs, calls, seed):
    text = [HEAD]
    for n in range(funcs):
        text.append(f"""
@qd.func
def f{n}(a, b):
    c = a * {n + seed}.5 + b
    if c > {n}.0:
        c = c - b * 0.5
    return c
""")
    text.append("@qd.kernel\ndef k(x: Array):\n    for i in range(x.shape[0]):\n        a = x[i]")
    text += [f"        a = f{n % funcs}(a, {n}.0)" for n in range(calls)]
    return "\n".join(text) + "\n        x[i] = a\n"


def compile_times(peer, python, programs, limit):
    """Seconds by program, and what Ingot reported of each; the first one warms the compiler.
    Past `limit` seconds that is taken for the time: a bound from below."""
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        names = []
        for n, text in enumerate([small(990), *programs]):
            names.append(f"program{n}")
            pathlib.Path(folder, names[-1] + ".py").write_text(text)
        runner = pathlib.Path(folder, "runner.py")
        runner.write_text(RUNNER)
        env = dict(os.environ, INGOT_CACHE_DIR=str(pathlib.Path(folder, "cache")),
                   INGOT_LOG="compile", QD_OFFLINE_CACHE="0")
        try:
            run = subprocess.run([python, str(runner), peer, folder, *names], env=env,
                                 capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"ended after {limit} s: {peer}", file=sys.stderr)
            return [limit] * len(programs), []
        rows = [json.loads(x) for x in run.stdout.splitlines() if x.startswith('["program')]
        if run.returncode or len(rows) != len(names):
            print(f"not run: {peer} ({run.stderr.strip()[-200:]})", file=sys.stderr)
            return [None] * len(programs), []
        return [t for _, t in rows[1:]], PHASES.findall(run.stderr)[1:]


def slope(lines, times):
    xs, ys = [math.log(n) for n in lines], [math.log(t) for t in times]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def compare(pythons, programs, limit):
    return {p: compile_times(p, python, programs, limit) for p, python in pythons.items() if python}


def main():
    args = _peers.arguments(
        __doc__, python={"action": "append", "default": []},
        limit={"type": float, "default": 600.0}, lines={"default": "100,300,1000,3000,5000"})
    pythons = {"ingot": sys.executable} | dict(pair.split("=", 1) for pair in args.python)
    if "quadrants" not in pythons:
        pythons["quadrants"] = _peers.venv("quadrants")
    rows = []
    # small kernels: the best of as many different ones
    got = compare(pythons, [small(n) for n in range(args.repeat)], args.limit)
    rows.append({"what": "small kernel", "lines": 7} | {
        f"{p}_ms": min(t for t in times if t) * 1e3 for p, (times, _) in got.items() if times[0]})
    lengths = [int(n) for n in args.lines.split(",")]
    ours, phases = compile_times("ingot", pythons["ingot"], [long(n, 7) for n in lengths],
                                 args.limit)
    for n, t, p in zip(lengths, ours, phases):
        rows.append({"what": "one loop", "lines": n, "ingot_ms": t * 1e3,
                     "front_ms": float(p[5]) + float(p[6]), "llvm_ms": float(p[8])})
    theirs = compile_times("quadrants", pythons["quadrants"], [long(lengths[2], 7)],
                           args.limit)[0] \
        if pythons["quadrants"] else [None]
    if theirs[0] and len(rows) > 3:
        rows[3]["quadrants_ms"] = theirs[0] * 1e3
    got = compare(pythons, [many_calls(200, 4000, 3)], args.limit)
    rows.append({"what": "200 funcs, 4,000 calls", "lines": 4000} | {
        f"{p}_ms": times[0] * 1e3 for p, (times, _) in got.items() if times[0]})
    for row in rows:
        if "quadrants_ms" in row:
            row["vs_quadrants"] = row["quadrants_ms"] / row["ingot_ms"]
    fronts = [r["front_ms"] for r in rows if "front_ms" in r]
    if fronts:
        print(f"slope over {args.lines} lines: front end and passes "
              f"{slope(lengths, fronts):.2f}, whole {slope(lengths, ours):.2f}")
    columns = [("what", "kernel", ""), ("lines", "lines", ","), ("ingot_ms", "ms", ".1f"),
               ("front_ms", "front+passes", ".2f"), ("llvm_ms", "LLVM", ".1f"),
               ("quadrants_ms", "Quadrants ms", ".1f"), ("vs_quadrants", "ratio", ".1f")]
    _peers.show("compile: cold, compiler running", columns, rows)
    _peers.write(args.json, "compile", rows)


if __name__ == "__main__":
    main()
