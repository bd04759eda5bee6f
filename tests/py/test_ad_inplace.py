"""Random kernels that read and write the same arrays, in loops that run in order: their gradients are right, by
central differences, or refused. `ad_programs.py` obeys the global data access rule; these are made to break it.

A program is run in plain Python first, which sees to it that subscripts stay within the arrays."""

import collections
import importlib.util
import random

import numpy as np
import pytest
from conftest import SEED, STRESS, samples

import ingot as qd

BATCH, LENGTH, COUNT = 50, 48, 4
FOUND = collections.Counter()


def subscript(r, names):
    """A sum of indices near the middle, signed or not, or made of data."""
    first, how = 20 + r.choice([0, 0, 0, 1, 1, -1, 2, 3, -2]), r.random()
    terms = [(r.choice([1, 1, 1, 1, -1, 2, -2]), name) for name in names if r.random() < 0.55]
    if how < 0.12:
        return f"c[{names[-1] if names else 0}] + {r.choice([0, 8])}"
    if how < 0.22:
        return f"qd.u32({first})" + "".join(f" + qd.cast({v}, qd.u32) * qd.u32({k % 2**32})" for k, v in terms)
    return str(first) + "".join(f" + {k} * {v}" if k > 0 else f" - {-k} * {v}" for k, v in terms)


def bounds(r, names):
    some = ["3", "4", "1, 4", "n", "1, n"]
    if names:
        i = r.choice(names)
        some += [i, f"{i} + 1", f"{i}, 4", f"{i} + 1, 4", f"{i} + 1, n", f"n - {i}, n", f"4 - {i}", f"{i} - 2, {i}"] * 2
    return r.choice(some)


def statement(r, names):
    def at(name):
        return f"{name}[{subscript(r, names)}]"

    same = at("x")
    return r.choice([
        f"{at('y')} = {at('x')} * {at('x')}",
        f"{at('x')} = qd.sin({at('x')}) * 0.5 + 0.3",
        f"{at('x')} += {at('x')} * {at('x')} * 0.1",
        f"{at('x')} -= {at('x')} * {at('y')} * 0.1",
        f"{same} = {same} * 0.5 + {at('y')}",
        f"{at('x')} = {at('y')} ** 2 + 0.1",
        f"{at('x')} = {at('x')} * 0.5 + {at('y')}",
        f"{at('y')} += qd.sin({at('x')})",
        f"{at('x')} *= {at('y')}",
    ])


class Program:
    def __init__(self, seed):
        self.r, self.lines, self.names = random.Random(seed), [], 0
        self.lines += [f"def k{seed}(x: qd.types.ndarray(), y: qd.types.ndarray(), c: qd.types.ndarray(), n: qd.i32):",
                       "    for _ in range(1):"]
        self.block([], 2)

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, names, depth):
        r = self.r
        for _ in range(r.choice([1, 1, 2, 2, 3])):
            if len(names) < 3 and len(self.lines) < 14 and r.random() < (0.4 if names else 0.75):
                self.loop(names, depth)
            elif names and r.random() < 0.12:
                self.put(depth, f"if {names[-1]} {r.choice(['== 1', '< 2', '!= ' + names[0]])}:")
                self.put(depth + 1, statement(r, names))
                self.put(depth, "else:")
                self.put(depth + 1, statement(r, names))
            else:
                self.put(depth, statement(r, names))

    def loop(self, names, depth):
        name, first = f"i{self.names}", self.r.random() < 0.5
        self.names += 1
        if self.r.random() < 0.8:
            self.put(depth, f"for {name} in range({bounds(self.r, names)}):")
            return self.block([*names, name], depth + 1)
        start, end, step = self.r.choice([("0", "< 3", "+= 1"), ("3", "> 0", "-= 1")])
        self.put(depth, f"{name} = {start}")
        self.put(depth, f"while {name} {end}:")
        if first:
            self.put(depth + 1, f"{name} {step}")
        self.block([*names, name], depth + 1)
        if not first:
            self.put(depth + 1, f"{name} {step}")

    def text(self):
        return "\n".join(self.lines) + "\n"


class Strict(list):
    def __getitem__(self, k):
        assert 0 <= k < len(self)
        return super().__getitem__(int(k))

    def __setitem__(self, k, v):
        assert 0 <= k < len(self)
        super().__setitem__(int(k), v)


class Plain:
    """What stands for `qd` in plain Python."""

    types, i32, u32, sin = qd.types, qd.i32, np.uint32, np.sin

    @staticmethod
    def cast(v, t):
        return t(int(v) % 2**32)


def is_tame(program, seed, arrays):
    names = {"qd": Plain}
    exec(program.text(), names)
    given = [Strict(a.to_numpy().tolist()) for a in arrays]
    try:
        with np.errstate(all="ignore"):
            names[f"k{seed}"](*given, COUNT)
    except AssertionError:
        return False
    return max(abs(v) for a in given[:2] for v in a) < 50


def arrays_of(seed):
    g = np.random.default_rng(seed)
    x, y = (qd.ndarray(qd.f64, LENGTH, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, LENGTH)
    x.from_numpy(g.uniform(0.3, 1.2, LENGTH))
    y.from_numpy(g.uniform(0.3, 1.2, LENGTH))
    c.from_numpy(g.integers(16, 26, LENGTH).astype(np.int32))
    return x, y, c


@pytest.mark.parametrize("first", range(0, samples(5000), BATCH))
def test_updates_in_place_are_right_or_refused(first, tmp_path):
    seeds = range(SEED + first, SEED + first + BATCH)
    programs = {s: Program(s) for s in seeds}
    path = tmp_path / f"inplace{first}.py"
    path.write_text("import ingot as qd\n\n" + "\n\n".join("@qd.kernel\n" + p.text() for p in programs.values()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    qd.init(arch=qd.interp, default_fp=qd.f64, fast_math=False)
    for seed, program in programs.items():
        arrays = arrays_of(seed)
        if not is_tame(program, seed, arrays):
            continue
        try:
            qd.ad.check_grad(getattr(kernels, f"k{seed}"), *arrays, COUNT)
            FOUND["right"] += 1
        except qd.IngotCompilationError as e:
            assert "overwritten here" in str(e)
            FOUND["refused"] += 1
        except AssertionError as e:
            pytest.fail(f"seed {seed}: {e}\n{program.text()}")


def test_some_are_right():
    """After those above: the test tells nothing if all are refused."""
    if STRESS:
        print(f"\nkernels that write in place: {dict(FOUND)}")
    assert FOUND["right"] > 0.1 * FOUND.total()
