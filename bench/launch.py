"""Host time of one launch of a kernel that does next to nothing.

    launch.py [--json FILE] [--repeat N] [--quadrants-python PATH]

With a Python that has Quadrants, the same launches are measured there too, in a process of
their own right after ours.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import _peers

# The measured program, the same for both but for its import.
PROGRAM = '''
import json, sys, time
import {module} as qd

qd.init({init})
A = qd.types.ndarray(qd.f32, 1)

@qd.kernel
def nothing():
    pass

@qd.kernel
def one(a: A):
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0

@qd.kernel
def five(a: A, b: A, c: A, s: qd.f32, n: qd.i32):
    for i in range(n):
        c[i] = s * a[i] + b[i]

x, y, z = (qd.ndarray(qd.f32, (4,)) for _ in range(3))
cases = {{
    "no arguments": lambda: nothing(),
    "1 ndarray": lambda: one(x),
    "3 ndarrays, 2 scalars": lambda: five(x, y, z, 2.0, 4),
}}
rounds = {rounds}
span = range(rounds)
baseline = lambda: None

def best(call):
    shortest = float("inf")
    for _ in range({repeat}):
        before = time.perf_counter()
        for _ in span:
            call()
        shortest = min(shortest, (time.perf_counter() - before) / rounds)
    return shortest

out = {{}}
empty = best(baseline)
for name, call in cases.items():
    call()
    out[name] = (best(call) - empty) * 1e9
print("RESULT " + json.dumps(out))
'''


def measure(python, module, init, repeat, rounds, folder):
    path = folder / f"launch_{module}.py"
    path.write_text(PROGRAM.format(module=module, init=init, repeat=repeat, rounds=rounds))
    run = subprocess.run([python, str(path)], capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    raise SystemExit(f"{module}: no result\n{run.stdout}{run.stderr}")


def main():
    args = _peers.arguments(__doc__, quadrants_python={"help": "an interpreter with Quadrants"})
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as name:
        folder = pathlib.Path(name)
        ours = measure(sys.executable, "ingot", "", args.repeat, 20_000, folder)
        theirs = {}
        if args.quadrants_python:
            theirs = measure(
                args.quadrants_python, "quadrants", "arch=qd.cpu", args.repeat, 500, folder
            )
        else:
            print("not run: Quadrants (--quadrants-python PATH names one)")
    rows = [
        {"case": case, "ingot_ns": ns, "quadrants_ns": theirs.get(case),
         "ratio": theirs[case] / ns if case in theirs else None}
        for case, ns in ours.items()
    ]
    columns = [
        ("case", "launch with", ""), ("ingot_ns", "Ingot ns", ".0f"),
        ("quadrants_ns", "Quadrants ns", ".0f"), ("ratio", "ratio", ".1f"),
    ]
    _peers.show("launch: host time of one call", columns, rows)
    _peers.write(args.json, "launch", rows)


if __name__ == "__main__":
    main()
