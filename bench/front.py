"""Front end: microseconds per syntax node from parsed text to IR, and how it grows with the
length of a kernel. Quadrants is measured in the same run when its interpreter is given:

    python bench/front.py [--quadrants-python /path/to/venv/bin/python] [--json FILE]

The kernel is a loop of `n` statements over arrays and locals with a static if and a func call
in each tenth. Ingot's number is `kernel.lower`: lowering of the tree, and writing its IR and trace
as text; Quadrants' is the time inside its own transform of the syntax tree. Both are CPU time
without Python's parser.
"""

import argparse
import ast
import json
import linecache
import math
import subprocess
import sys
import textwrap

SIZES = (50, 200, 400, 800, 1600, 3200)

PEER = """
import importlib, json, sys, time
import quadrants as qd
K = importlib.import_module("quadrants.lang.kernel")
spent = [0.0]
real = K.transform_tree
def timed(tree, ctx):
    before = time.process_time()
    try:
        return real(tree, ctx)
    finally:
        spent[0] += time.process_time() - before
K.transform_tree = timed
qd.init(arch=qd.cpu, offline_cache=False, log_level=qd.ERROR)
sys.path.insert(0, sys.argv[1])
out = {}
for name in sys.argv[2:]:
    best = 1e9
    for _ in range(3):
        sys.modules.pop(name, None)
        module = __import__(name)
        spent[0] = 0.0
        try:
            module.k(qd.ndarray(qd.f32, 4), qd.ndarray(qd.f32, 4), 1.5)
        except Exception as e:
            print(name, repr(e)[:300], file=sys.stderr)
        best = min(best, spent[0])
        if best > 2:
            break
    out[name] = best
print(json.dumps(out))
"""


def program(n, package):
    """Text of a module with a kernel of about `n` statements."""
    lines = []
    for i in range(n):
        kind = i % 10
        if kind == 3:
            lines += ["if qd.static(ON):", f"    t = t * 1.25 + y[i] * {i}"]
        elif kind == 6:
            lines.append(f"t = f(t, {i})")
        elif kind == 8:
            lines += [f"if t > {i}.5:", "    t = t - x[i] / 3.0"]
        else:
            lines.append(f"t = t + x[i] * {i}.25 - y[i] * a")
    body = textwrap.indent("\n".join(lines), "        ")
    return (
        f"import {package} as qd\nON = True\n\n@qd.func\ndef f(p, q):\n    return p * 0.5 + q\n\n"
        "@qd.kernel\ndef k(x: qd.types.ndarray(dtype=qd.f32, ndim=1),"
        " y: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):\n"
        f"    for i in range(x.shape[0]):\n        t = x[i] * 1.0\n{body}\n        y[i] = t\n"
    )


def nodes_of(text):
    return sum(1 for _ in ast.walk(ast.parse(text)))


def ingot(sizes):
    import time

    import ingot as qd

    qd.init(offline_cache=False)
    x = qd.ndarray(qd.f32, 4)
    rows = {}
    for n in sizes:
        text, name = program(n, "ingot"), f"<front {n}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        scope = {}
        exec(compile(text, name, "exec"), scope)
        scope["k"].lower(x, x, 1.5)
        rows[n] = float("inf")
        for _ in range(5):
            before = time.process_time()  # CPU time, as for the peer: machines are shared
            scope["k"].lower(x, x, 1.5)
            rows[n] = min(rows[n], time.process_time() - before)
    return rows


def quadrants(python, sizes):
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        for n in sizes:
            pathlib.Path(folder, f"front_{n}.py").write_text(program(n, "quadrants"))
        names = [f"front_{n}" for n in sizes]
        run = subprocess.run([python, "-c", PEER, folder, *names], capture_output=True, text=True)
    if run.returncode:
        print("not run: Quadrants:", run.stderr.strip()[-300:])
        return {}
    found = json.loads(run.stdout.strip().split("\n")[-1])
    return {n: found[f"front_{n}"] for n in sizes}


def slope(rows):
    """Of log time over log size, between the smallest and the largest."""
    (a, ta), (b, tb) = min(rows.items()), max(rows.items())
    return math.log(tb / ta) / math.log(b / a)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quadrants-python")
    parser.add_argument("--json")
    args = parser.parse_args()
    ours = ingot(SIZES)
    theirs = quadrants(args.quadrants_python, SIZES[:3]) if args.quadrants_python else {}
    print("front end: microseconds per syntax node")
    print(f"  {'statements':>10} {'nodes':>8} {'Ingot':>8} {'Quadrants':>10} {'ratio':>7}")
    for n, seconds in ours.items():
        count = nodes_of(program(n, "ingot"))
        peer = theirs.get(n)
        tail = f"{peer / count * 1e6:10.2f} {peer / seconds:6.1f}x" if peer else ""
        print(f"  {n:>10} {count:>8} {seconds / count * 1e6:8.3f} {tail}")
    print(f"  growth with length: exponent {slope(ours):.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump({"ingot": ours, "quadrants": theirs, "slope": slope(ours)}, out)


if __name__ == "__main__":
    sys.exit(main())
