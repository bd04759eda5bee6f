"""Random nests of serial loops for tests/py/test_random_nests.py: the same seed, the same program.

Bounds and subscripts of all kinds (of loops around, reversed, with offsets and strides, halves and rests, from data,
of other integer types, ranges without iterations), arrays and fields of all layouts, plain updates and atomics, locals
that iterations hand on, branches, `break` and `continue`: near what src/pass reorders, unrolls, turns and takes side
by side, and near what it must leave. Subscripts lie within their arrays: each loop index has bounds that are known.

In a program that is `parallel`, an iteration of the outermost loop writes to a row of its own, or updates integers
by one kind of atomics; it reads no row of another one's. In the others there is one iteration, in which every read
and write may meet any other, also through two arrays that overlap. Floats are eighths of small integers.
"""

import random

import numpy as np
from numpy_rules import NUMPY, scope_of

import ingot as qd

INTS = ["i32", "i64", "i32", "i64", "u32", "u64", "i16", "u8"]
FLOATS = ["f32", "f64"]
SIZES = [1, 2, 3, 4, 5, 8, 9, 16, 33, 40, 65, 70]
LAYOUTS = ["rows", "columns", "tiles", "cells"]
CHOSEN = 16  # numbers that only the data know
MOST_WORK = 6000  # iterations of a nest, about
MOST = 2**31 - 1


class Program:
    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random(seed)
        self.pick, self.count = self.rng.choice, 0
        self.parallel = self.chance(0.5)
        self.sizes = [self.pick(SIZES) for _ in range(3)]
        if self.chance(0.3):
            self.sizes[1] = self.sizes[0]
        self.arrays = {name: self.array() for name in "abcd"[: self.rng.randrange(2, 5)]}
        names = list(self.arrays)
        self.written = sorted(self.rng.sample(names, self.rng.randrange(1, min(3, len(names)))))
        self.fields = {a: self.pick(LAYOUTS) for a in names if self.chance(0.15)}
        self.overlap = None
        same = [(a, b) for a in names for b in names if a < b and self.arrays[a][0] == self.arrays[b][0]
                and not {a, b} & set(self.fields)]
        if same and not self.parallel and self.chance(0.5):
            self.overlap = (*self.pick(same), self.pick([0, 1, 3, 17]))
        self.lines = []
        for _ in range(self.pick([1, 1, 2])):
            self.task()
        params = [f"{a}: qd.types.ndarray(qd.{t}, {len(s)})" for a, (t, s) in self.arrays.items() if a not in self.fields]
        head = f"def k({', '.join([*params, 'q: qd.types.ndarray(qd.i32, 1)', 'zero: qd.i32', 'big: qd.i32'])}):"
        self.text = "\n".join(["@qd.kernel", head, *self.lines, ""])

    def chance(self, p):
        return self.rng.random() < p

    def array(self):
        n, m, k = self.sizes
        dtype = self.pick([self.pick(INTS), self.pick(FLOATS)])
        return dtype, self.pick([(n,), (m,), (n, m), (m, k), (n, k), (m, n), (n, n), (n + m, n + m), (n, m, k), (m, n, 3)])

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    # ---- places: indices are {name: (first, end)} ------------------------------------------------------

    def affine(self, size):
        """A subscript of loop indices, and the numbers between which it lies."""
        v, (lo, hi) = self.pick(list(self.indices.items())[-3:] if self.chance(0.7) else list(self.indices.items()))
        w, (first, end) = self.pick(list(self.indices.items()))
        c = self.pick([1, 2, 3])
        return self.pick([(v, lo, hi - 1)] * 6 + [
            (f"{v} + {c}", lo + c, hi - 1 + c), (f"{v} - {c}", lo - c, hi - 1 - c),
            (f"{size - 1} - {v}", size - hi, size - 1 - lo), (f"{v} * {c} + 1", lo * c + 1, hi * c - c + 1),
            (f"{v} // 2", lo // 2, (hi - 1) // 2), (f"{v} % {c}", 0, c - 1), (f"{v} + {w}", lo + first, hi + end - 2),
            (f"{v} - {w} + {end}", lo + 1, hi - 1 - first + end), (f"q[{v} % {CHOSEN}] % {size}", 0, size - 1)])

    def subscript(self, size):
        for _ in range(6 if self.indices else 0):
            text, lo, hi = self.affine(size)
            if 0 <= lo and hi < size:
                return f"qd.cast({text}, qd.{self.pick(['i64', 'u32', 'u8', 'i16'])})" if self.chance(0.05) else text
        return str(self.pick([0, size - 1]))

    def place(self, array):
        shape = self.arrays[array][1]
        own = self.owned.get(array)
        return f"{array}[{', '.join('i' if k == own else self.subscript(n) for k, n in enumerate(shape))}]"

    # ---- values ----------------------------------------------------------------------------------------

    def leaf(self, kind):
        arrays = [a for a, (t, _) in self.arrays.items() if (t[0] == "f") == (kind == "f") and
                  not (self.parallel and a in self.written and a not in self.owned)]
        own = [n for n, k in self.locals.items() if k == kind]
        pick = self.rng.random()
        if arrays and pick < 0.65:
            return self.place(self.pick(arrays))
        if own and pick < 0.85:
            return self.pick(own)
        if kind == "f":
            return self.pick(["0.5", "2.0", "-1.0"])
        return self.pick([*self.indices, "1", "2", "3", "-1", "7"])

    def value(self, kind, depth=2):
        pick = self.rng.random()
        if depth == 0 or pick < 0.3:
            return self.leaf(kind)
        if pick < 0.4:
            return f"({self.leaf(kind)} if {self.condition()} else {self.leaf(kind)})"
        if pick < 0.5:
            return f"{self.pick(['min', 'max'])}({self.leaf(kind)}, {self.leaf(kind)})"
        if kind == "f":
            return self.pick([f"({self.leaf('f')} * {self.pick(['0.5', '2.0', '-1.0'])})",
                              f"({self.value('f', depth - 1)} {self.pick('+-')} {self.leaf('f')})"])
        op = self.pick(["+", "+", "-", "*", "&", "|", "^", "//", "%"])
        right = self.pick([*self.indices, "3", "-7"]) if op in ("//", "%") else self.value("i", depth - 1)
        return f"({self.value('i', depth - 1)} {op} {right})"

    def condition(self):
        return f"{self.leaf('i')} {self.pick(['<', '>', '==', '!='])} {self.leaf('i')}"

    # ---- statements ------------------------------------------------------------------------------------

    def write(self, depth):
        array = self.pick(self.written)
        kind = "f" if self.arrays[array][0][0] == "f" else "i"
        place, value = self.place(array), self.value(kind)
        if self.parallel and array not in self.owned:
            if kind == "f":  # of floats, only what is exact in any order
                return self.add(depth, f"qd.atomic_max({place}, {self.leaf('f')})")
            op = self.shared.setdefault(array, self.pick(["add", "add", "sub", "max", "min", "or", "xor", "and"]))
            return self.add(depth, f"qd.atomic_{op}({place}, {value})")
        factor = self.pick(["3", "2"] if kind == "i" else ["0.5", "-1.0"])
        return self.add(depth, self.pick([f"{place} = {value}"] * 3 + [f"{place} += {value}"] * 3 + [
            f"{place} -= {value}", f"{place} = {place} * {factor} + {value}", f"qd.atomic_max({place}, {value})"]))

    def bounds(self):
        """Text of a range, its first index and its end."""
        n = self.pick(self.sizes)
        if self.indices and self.chance(0.35):
            v, (lo, hi) = self.pick(list(self.indices.items()))
            return self.pick([(v, 0, hi - 1), (f"{v} + 1", 0, hi), (f"{v}, {n}", lo, n), (f"{v} + 1, {n}", lo + 1, n),
                              (f"{n} - {v}", 0, n - lo), (f"{v} - 1, {v} + 2", lo - 1, hi + 1), (f"min({v}, {n})", 0, n)])
        array = self.pick(list(self.arrays))
        axis = self.rng.randrange(len(self.arrays[array][1]))
        return self.pick([(f"{n}", 0, n)] * 4 + [(f"{array}.shape[{axis}]", 0, self.arrays[array][1][axis])] * 2 + [
            (f"1, {n}", 1, n), (f"{n} + zero", 0, n), ("-1, 3", -1, 3), (f"q[3] % {n + 1}", 0, n), ("big, zero - 7", 0, 0),
            (f"qd.cast({n}, qd.{self.pick(['i64', 'u32', 'u8'])})", 0, n), ("5, zero", 5, 0), (f"{n} // 2", 0, n // 2)])

    def loop(self, depth):
        text, lo, hi = self.bounds()
        if self.work * max(hi - lo, 1) > MOST_WORK:
            text, lo, hi = "2", 0, 2
        k, around = self.name("k"), (dict(self.indices), dict(self.locals), self.work)
        self.add(depth, f"for {k} in range({text}):")
        self.indices[k] = (lo, max(hi, lo + 1))  # of one without iterations anything
        self.work *= max(hi - lo, 1)
        if depth < 5 and self.chance(0.5):
            if self.chance(0.2):
                self.declare(depth + 1)
            self.loop(depth + 1)
        else:
            self.write(depth + 1)
        for _ in range(self.pick([0, 0, 1, 2])):
            self.statement(depth + 1, True)
        self.indices, self.locals, self.work = around

    def declare(self, depth):
        t, kind = self.name("t"), self.pick("if")
        self.add(depth, f"{t} = {'qd.i32(0)' if kind == 'i' else 'qd.f64(0.0)'} + {self.leaf(kind)}")
        self.locals[t] = kind

    def statement(self, depth, in_loop=False):
        pick = self.rng.random()
        if depth < 5 and pick < 0.25:
            return self.loop(depth)
        if pick < 0.35 and self.locals:
            t = self.pick(list(self.locals))
            return self.add(depth, f"{t} = {self.pick([t + ' + ', ''])}{self.value(self.locals[t], 1)}")
        if pick < 0.45:
            return self.declare(depth)
        if pick < 0.55:
            self.add(depth, f"if {self.condition()}:")
            return self.write(depth + 1)
        if pick < 0.6 and in_loop:
            self.add(depth, f"if {self.condition()}:")
            return self.add(depth + 1, self.pick(["break", "continue"]))
        return self.write(depth)

    def task(self):
        self.indices, self.locals, self.owned, self.shared, self.work = {}, {}, {}, {}, 1
        n = 1
        if self.parallel:
            n = self.work = self.pick(self.sizes)
            for a in self.written:
                axes = [k for k, size in enumerate(self.arrays[a][1]) if size >= n]
                if axes and (self.arrays[a][0] in FLOATS or self.chance(0.8)):
                    self.owned[a] = self.pick(axes)
        elif self.chance(0.2):
            self.add(1, "qd.loop_config(serialize=True)")
        self.add(1, f"for i in range({n}):")
        self.indices["i"] = (0, n)
        for _ in range(self.pick([1, 1, 2])):
            self.loop(2)


# ---- running -------------------------------------------------------------------------------------------


def field(layout, dtype, shape):
    axes, dtype = [qd.i, qd.ij, qd.ijk][len(shape) - 1], getattr(qd, dtype)
    if layout == "tiles" and all(n % 4 == 0 for n in shape):
        f = qd.field(dtype)
        qd.root.dense(axes, tuple(n // 4 for n in shape)).dense(axes, 4).place(f)
    elif layout == "cells":
        f = qd.field(dtype)
        qd.root.dense(axes, shape).place(f, qd.field(qd.i64))
    else:
        f = qd.field(dtype, shape=shape, **({"order": "ji"} if layout == "columns" and len(shape) == 2 else {}))
    return f


def arguments(program):
    rng, args = np.random.default_rng(program.seed), {}
    for a, (dtype, shape) in program.arrays.items():
        numbers = rng.integers(0 if dtype[0] == "u" else -9, 12, shape)
        args[a] = (numbers / 8 if dtype in FLOATS else numbers).astype(NUMPY[dtype])
    if program.overlap:
        a, b, by = program.overlap
        n, m = args[a].size, args[b].size
        memory = np.resize(args[a], max(n, by + m))
        args[a], args[b] = memory[:n].reshape(args[a].shape), memory[by : by + m].reshape(args[b].shape)
    return args, rng.integers(0, 1000, CHOSEN).astype(np.int32)


def launch(program, **settings):
    """What a program leaves in its arrays."""
    qd.init(fast_math=False, **settings)
    args, chosen = arguments(program)
    fields = {a: field(layout, *program.arrays[a]) for a, layout in program.fields.items()}
    for a, f in fields.items():
        f.from_numpy(args[a])
    scope = scope_of(program.text, f"<nest {program.seed}>")
    scope.update(fields)
    scope["k"](*[v for a, v in args.items() if a not in fields], chosen, 0, MOST)
    return {a: fields[a].to_numpy() if a in fields else v.copy() for a, v in args.items()}
