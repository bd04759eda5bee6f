"""Cold compile time against Quadrants: small kernels once the compiler is up, its growth with
the length of a kernel, and a kernel that calls 200 funcs 4,000 times.

    compile.py [--json FILE] [--repeat N] [--python PEER=INTERPRETER ...] [--lines N,N,...]
               [--limit SECONDS] [--growth NAME,...|all [--whole]]

With --growth only this: kernels of one shape each (bench/_shapes.py) and of all lengths; CPU
time of the first call on the interpreter, which is Python's parser, front end and passes, best
of several texts; with --whole also that of the first call as native code, LLVM's included.

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
from _shapes import HEAD, SHAPES, branches

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
GROWTH = """
import gc, glob, importlib, json, os, sys, time
folder, arch = sys.argv[1:3]
sys.path.insert(0, folder)
qd = sys.modules["qd"] = importlib.import_module("ingot")
qd.init(arch=getattr(qd, arch), **({"offline_cache": False} if arch == "interp" else {}))
def clock():
    # of this process and of those that compile for it
    spent = time.process_time()
    for path in glob.glob("/proc/self/task/*/children"):
        for child in open(path).read().split():
            rest = open(f"/proc/{child}/stat").read().rpartition(")")[2].split()
            spent += (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")
    return spent
x = qd.ndarray(qd.f32, 0)
gc.disable()
for module in sys.argv[3:]:
    k = importlib.import_module(module).k
    gc.collect()
    before = clock()
    k(x)
    print(json.dumps(clock() - before), flush=True)
"""
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


def growth(shape, lengths, arch, repeat, limit):
    """Shortest time of a first call by length; None: it did not end well."""
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        names = []
        for n in lengths:
            for k in range(repeat):
                names.append(f"program{n}_{k}")
                text = f"# {k}\n" + SHAPES[shape](n)
                pathlib.Path(folder, names[-1] + ".py").write_text(text)
        runner = pathlib.Path(folder, "runner.py")
        runner.write_text(GROWTH)
        env = dict(os.environ, INGOT_CACHE_DIR=str(pathlib.Path(folder, "cache")))
        command = [sys.executable, "-W", "ignore", str(runner), folder, arch, *names]
        try:
            run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
        times = [json.loads(x) for x in run.stdout.splitlines()]
        if len(times) != len(names):
            print(f"not run: {shape} ({run.stderr.strip()[-300:]})", file=sys.stderr)
            return None
        return [min(times[k:k + repeat]) for k in range(0, len(times), repeat)]


def show_growth(args, lengths):
    rows = []
    for shape in SHAPES if args.growth == "all" else args.growth.split(","):
        row = {"what": shape, "lines": lengths[-1]}
        for arch, key in [("interp", "front"), ("cpu", "whole")][:1 + args.whole]:
            times = growth(shape, lengths, arch, args.repeat if arch == "interp" else 1, args.limit)
            if times:
                row |= {f"{key}_ms": times[-1] * 1e3, f"{key}_slope": slope(lengths, times)}
        rows.append(row)
    columns = [("what", "kernel", ""), ("lines", "lines", ","),
               ("front_ms", "front+passes ms", ".1f"), ("front_slope", "slope", ".2f"),
               ("whole_ms", "whole ms", ".1f"), ("whole_slope", "slope", ".2f")]
    _peers.show(f"growth over {args.lines} lines", columns, rows)
    _peers.write(args.json, "growth", rows)


def compare(pythons, programs, limit):
    return {p: compile_times(p, python, programs, limit) for p, python in pythons.items() if python}


def main():
    args = _peers.arguments(
        __doc__, python={"action": "append", "default": []},
        limit={"type": float, "default": 600.0}, lines={"default": "100,300,1000,3000,5000"},
        growth={"default": ""}, whole={"action": "store_true"})
    lengths = [int(n) for n in args.lines.split(",")]
    if args.growth:
        show_growth(args, lengths)
        return
    pythons = {"ingot": sys.executable} | dict(pair.split("=", 1) for pair in args.python)
    if "quadrants" not in pythons:
        pythons["quadrants"] = _peers.venv("quadrants")
    rows = []
    # small kernels: the best of as many different ones
    got = compare(pythons, [small(n) for n in range(args.repeat)], args.limit)
    rows.append({"what": "small kernel", "lines": 7} | {
        f"{p}_ms": min(t for t in times if t) * 1e3 for p, (times, _) in got.items() if times[0]})
    ours, phases = compile_times("ingot", pythons["ingot"], [branches(n) for n in lengths],
                                 args.limit)
    for n, t, p in zip(lengths, ours, phases):
        rows.append({"what": "one loop", "lines": n, "ingot_ms": t * 1e3,
                     "front_ms": float(p[5]) + float(p[6]), "llvm_ms": float(p[8])})
    theirs = compile_times("quadrants", pythons["quadrants"], [branches(lengths[2])],
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
