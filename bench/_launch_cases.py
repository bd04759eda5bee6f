"""The launches that launch.py measures, in a process of their own.

    _launch_cases.py time MODULE ROUNDS REPEAT     nanoseconds per call
    _launch_cases.py count MODULE LIBRARY          under callgrind, see launch.py

MODULE is ingot or quadrants: the same text runs on both. Prints one line of JSON.
"""

import ctypes
import dataclasses
import gc
import importlib
import json
import os
import sys
import tempfile
import time

import numpy as np

qd = importlib.import_module(sys.argv[2])
qd.init(arch=qd.cpu)
A = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def nothing():
    pass


@qd.kernel
def one(a: A):
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0


@qd.kernel
def two(a: A, b: A):
    for i in range(16):
        a[i] = b[i]


@qd.kernel
def three(a: A, b: A, c: A):
    for i in range(16):
        c[i] = a[i] + b[i]


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


DIMS = (4, 4)


class Grid:
    cells = 16


grid = Grid()


def area(dims):
    return dims[0] * dims[1]


def cells(of):
    return of.cells


@qd.kernel
def fixed_call(a: A):
    for i in range(qd.static(area(DIMS))):
        a[i] = 1.0


@qd.kernel
def live_call(a: A):
    for i in range(qd.static(cells(grid))):
        a[i] = 1.0


@qd.kernel
def sum_arrays(a: A, b: A, c: A, d: A, e: A):
    for i in range(16):
        a[i] = b[i] + c[i] + d[i] + e[i]


fa, fb, fc, fd, fe = (qd.field(qd.f32, shape=16) for _ in range(5))


@qd.kernel
def sum_captured():
    for i in range(16):
        fa[i] = fb[i] + fc[i] + fd[i] + fe[i]


@qd.kernel
def sum_fields(a: qd.template(), b: qd.template(), c: qd.template(), d: qd.template(), e: qd.template()):
    for i in range(16):
        a[i] = b[i] + c[i] + d[i] + e[i]


def from_text(name, text, **scope):
    """A function from text that has a file, as the reference wants."""
    with open(os.path.join(tempfile.mkdtemp(dir=folder), name + ".py"), "w") as f:
        f.write(text)
    exec(compile(text, f.name, "exec"), scope)
    return scope[name]


def arrays(n):
    return [qd.ndarray(qd.f32, (16,)) for _ in range(n)]


def of_dataclass(n, frozen):
    """A dataclass of n arrays and a kernel that reads them all."""
    names = [f"m{k}" for k in range(n)]
    State = dataclasses.make_dataclass("State", [(m, A) for m in names], frozen=frozen)
    read = " + ".join(f"s.{m}[i]" for m in names[1:])
    text = f"def k(s: State):\n for i in range(16):\n  s.m0[i] = {read}\n"
    kernel = qd.kernel(from_text("k", text, State=State))
    state = State(*arrays(n))
    return lambda: kernel(state)


def of_solver():
    """149 arrays in five frozen dataclasses and a config, as a solver of Genesis has them."""
    sizes = {"links": 45, "dofs": 40, "geoms": 30, "joints": 20, "entities": 14}
    scope, params, states = {}, [], []
    terms = []
    for name, n in sizes.items():
        fields = [f"m{k}" for k in range(n)]
        cls = dataclasses.make_dataclass(name, [(m, A) for m in fields], frozen=True)
        scope[name.title()] = cls
        params.append(f"{name}: {name.title()}")
        states.append(cls(*arrays(n)))
        terms += [f"{name}.{m}[i]" for m in fields]

    class Config:
        substeps, use_hibernation, para_level = 4, False, 1

    lines = [f"def k({', '.join(params)}, config: qd.template()):", " for i in range(16):"]
    for k in range(0, len(terms) - 1, 12):
        lines.append(f"  {terms[0]} += " + " + ".join(terms[k + 1 : k + 13]))
    lines.append("  if qd.static(config.use_hibernation):")
    lines.append(f"   {terms[0]} = config.substeps * 1.0")
    kernel = qd.kernel(from_text("k", "\n".join(lines) + "\n", qd=qd, **scope))
    config = Config()
    return lambda: kernel(*states, config)


class Sim:
    def __init__(self):
        for k, a in enumerate(arrays(28)):
            setattr(self, f"m{k}", a)
        self.n, self.dt = 16, 0.5

    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.m0[i] = self.m1[i] * self.dt


class Methods(Sim):
    @qd.func
    def scaled(self, i):
        return self.m1[i] * self.dt

    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.m0[i] = self.scaled(i)


class AtLaunch(Sim):
    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.m0[i] = self.m1[i] * self.dt


def torch_case():
    try:
        import torch
    except ImportError:
        return {}
    a, b = torch.zeros(16), torch.zeros(16)
    return {"2 torch tensors": lambda: two(a, b)}


def whole_path(n):
    x = qd.ndarray(qd.f32, (n,))
    return lambda: one(x)


def make_cases():
    sim = qd.data_oriented(Sim)()
    at_launch = qd.data_oriented(template_primitives=False)(AtLaunch)()
    methods = qd.data_oriented(Methods)()
    crowded = qd.data_oriented(Sim)()
    for k in range(10_000):
        setattr(crowded, f"unrelated{k}", k)
    x, y, z, *more = arrays(10)
    u, v, *_ = more
    nx, ny = np.zeros(16, np.float32), np.zeros(16, np.float32)
    return {
        "no arguments": lambda: nothing(),
        "1 ndarray": lambda: one(x),
        "3 ndarrays": lambda: three(x, y, z),
        "5 ndarrays": lambda: sum_arrays(x, y, z, u, v),
        "5 fields, captured": lambda: sum_captured(),
        "5 fields, arguments": lambda: sum_fields(fa, fb, fc, fd, fe),
        "10 ndarrays": lambda: ten(x, y, z, *more),
        "3 ndarrays, 2 scalars": lambda: five(x, y, z, 2.0, 16),
        "the same by keyword": lambda: five(a=x, b=y, c=z, s=2.0, n=16),
        "2 NumPy arrays": lambda: two(nx, ny),
        **torch_case(),
        "frozen dataclass of 3": of_dataclass(3, True),
        "dataclass of 3": of_dataclass(3, False),
        "frozen dataclass of 30": of_dataclass(30, True),
        "dataclass of 30": of_dataclass(30, False),
        "data_oriented, 4 of 30 read": lambda: sim.step(),
        "the same, 10,000 more members": lambda: crowded.step(),
        "the same by way of a method": lambda: methods.step(),
        "template_primitives=False": lambda: at_launch.step(),
        "scalar return": lambda: total(x),
        "3 small loops": lambda: loops(x),
        "static call, immutable argument": lambda: fixed_call(x),
        "static call, mutable argument": lambda: live_call(x),
        "149 arrays in 5 dataclasses": of_solver(),
        "1 ndarray of 4,096": whole_path(4096),
        "1 ndarray of 1M": whole_path(1 << 20),
    }


def best(call, rounds, repeat):
    """Shortest time of a call in nanoseconds; long calls are repeated less often."""
    before = time.perf_counter()
    call()
    once = time.perf_counter() - before
    span = range(max(1, min(rounds, int(0.02 / once))))
    shortest = float("inf")
    for _ in range(repeat):
        before = time.perf_counter()
        for _ in span:
            call()
        shortest = min(shortest, (time.perf_counter() - before) / len(span))
    return shortest * 1e9


def timed(rounds, repeat):
    empty = best(lambda: None, rounds, repeat)
    out = {}
    for name, call in make_cases().items():
        call()
        out[name] = best(call, rounds, repeat) - empty
    return out


def count(library):
    """Makes one callgrind dump per case."""
    lib = ctypes.PyDLL(library)
    begin, end = lib.begin, lib.end
    cases = {"empty": lambda: None} | make_cases()
    del cases["1 ndarray of 1M"]  # of the pool's threads, not of a launch
    rounds = 200
    end(b"start")  # counts what went before
    for name, call in cases.items():
        begin()
        for _ in range(50):
            call()  # let the interpreter settle
        begin()
        for _ in range(rounds):
            call()
        end(name.encode())
    return {"rounds": rounds}


with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
    gc.disable()
    if sys.argv[1] == "count":
        result = count(sys.argv[3])
    else:
        result = timed(int(sys.argv[3]), int(sys.argv[4]))
print("RESULT " + json.dumps(result))
