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
import dataclasses, json, sys, time
import numpy as np
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

@qd.kernel
def ten(a: A, b: A, c: A, d: A, e: A, f: A, g: A, h: A, i: A, j: A):
    for k in range(16):
        a[k] = b[k] + c[k] + d[k] + e[k] + f[k] + g[k] + h[k] + i[k] + j[k]

@qd.kernel
def total(a: A) -> qd.f32:
    s = 0.0
    for i in range(16):
        s += a[i]
    return s

@qd.kernel
def loops(a: A):
    for i in range(16):
        a[i] = 1.0
    for i in range(16):
        a[i] = a[i] + 1.0
    for i in range(16):
        a[i] = a[i] * 2.0

def made(n, frozen):
    """A dataclass of n arrays and a kernel that reads them all."""
    names = [f"m{{k}}" for k in range(n)]
    State = dataclasses.make_dataclass("State", [(m, A) for m in names], frozen=frozen)
    body = " + ".join(f"s.{{m}}[i]" for m in names[1:])
    path = __file__ + f".{{n}}.{{frozen}}.py"
    text = ["def k(s: State):", " for i in range(16):", "  s.m0[i] = " + body, ""]
    with open(path, "w") as f:
        f.write(chr(10).join(text))
    scope = {{"State": State}}
    exec(compile(chr(10).join(text), path, "exec"), scope)
    kernel = qd.kernel(scope["k"])
    state = State(*(qd.ndarray(qd.f32, (16,)) for _ in names))
    return lambda: kernel(state)

class Sim:
    def __init__(self):
        for k in range(28):
            setattr(self, f"m{{k}}", qd.ndarray(qd.f32, (16,)))
        self.n, self.dt = 16, 0.5

    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.m0[i] = self.m1[i] * self.dt

class AtLaunch(Sim):
    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.m0[i] = self.m1[i] * self.dt

sim = qd.data_oriented(Sim)()
launched = qd.data_oriented(template_primitives=False)(AtLaunch)()
x, y, z, *more = (qd.ndarray(qd.f32, (16,)) for _ in range(10))
nx, ny = np.zeros(16, np.float32), np.zeros(16, np.float32)

@qd.kernel
def pair(a: A, b: A):
    for i in range(16):
        a[i] = b[i]

cases = {{
    "no arguments": lambda: nothing(),
    "1 ndarray": lambda: one(x),
    "3 ndarrays, 2 scalars": lambda: five(x, y, z, 2.0, 4),
    "the same by keyword": lambda: five(a=x, b=y, c=z, s=2.0, n=4),
    "10 ndarrays": lambda: ten(x, y, z, *more),
    "2 NumPy arrays": lambda: pair(nx, ny),
    "frozen dataclass of 3": made(3, True),
    "dataclass of 3": made(3, False),
    "frozen dataclass of 30": made(30, True),
    "dataclass of 30": made(30, False),
    "data_oriented, 4 of 30 read": lambda: sim.step(),
    "template_primitives=False": lambda: launched.step(),
    "scalar return": lambda: total(x),
    "3 small loops": lambda: loops(x),
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
