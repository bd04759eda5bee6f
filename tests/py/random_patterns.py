"""Random kernels near the patterns that passes look for, each with a model in plain Python.

Sums of a loop, elements that a serial loop updates, columns that a serial loop goes through,
counts at places that the data know, loops over several axes, values that cross from one task
to the next: written almost as src/pass wants them, and sometimes a little beside. A program is
a tree (lists of statements and tuples of expressions) that is written twice, as a kernel and
as a Python function over lists that wraps and rounds where the kernel's types do. Everything
follows from the seed. Half of the programs are parallel and do nothing whose result depends on
the order of iterations; the others run in one iteration, where each read and write may meet any
other, also through two arguments that are one array.

Floats are eighths of small integers, so that sums are exact in any order, and all answers are
the same to the bit. tests/py/play_patterns.py runs and shrinks what is made here.
"""

import random

INTS = ("i32", "i64")
DTYPES = ("i32", "i64", "f32", "f64")
# name: (dtype, axes); small letters have one, capitals two
ARRAYS = {"x": ("i32", 1), "y": ("i64", 1), "u": ("f64", 1), "w": ("f32", 1), "X": ("i32", 2), "U": ("f64", 2),
          "p": ("i32", 1), "q": ("i64", 1), "r": ("f64", 1), "s": ("f32", 1), "P": ("i32", 2), "Q": ("f64", 2)}
RESULTS = ("p", "q", "r", "s", "P", "Q")
SHAPES = [(1, 1), (3, 5), (7, 33), (40, 9), (36, 70)]
UPDATES = ("+", "+", "+", "-", "max", "min", "|", "&", "^")


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.seed = seed
        self.serial = self.rng.random() < 0.5
        self.shape = self.rng.choice(SHAPES)
        self.n = self.rng.choice([1, 5, 33, 40, 100] if self.serial or self.rng.random() < 0.9 else [9000])
        self.aliases = []
        if self.serial and self.rng.random() < 0.3:
            self.aliases = [self.rng.choice([("x", "p"), ("u", "r"), ("X", "P"), ("U", "Q")])]
        self.count = self.nested = 0
        self.helper = None
        self.helper = self.rng.random() < 0.3 and self.function()
        self.body = self.wild() if self.serial else self.parallel()

    def size(self, array, axis):
        return self.n if ARRAYS[array][1] == 1 else self.shape[axis]

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def chance(self, p):
        return self.rng.random() < p

    # ---- expressions: (kind, dtype, ...) -----------------------------------------------------------

    def constant(self, dtype):
        v = self.rng.choice([0, 1, 1, 2, 3, -1, -5, 7, 100, 1 << 20])
        if dtype not in INTS:
            v = self.rng.choice([0.0, 0.5, 1.0, -1.0, 2.0, 0.25])
        return ("const", dtype, v)

    def index(self, env, size):
        """An integer from 0 to size - 1: a loop's index, its neighbour, or anything made to fit."""
        near = [(name, lo, hi) for name, (dtype, lo, hi) in env.items()
                if lo is not None and lo >= 0 and hi <= size]
        if near and self.chance(0.8):
            name, lo, hi = self.rng.choice(near)
            var = ("var", "i32", name)
            shifts = [c for c in (0, 0, 0, 0, 1, -1) if lo + c >= 0 and hi + c <= size]
            c = self.rng.choice(shifts)
            if lo == 0 and hi == size and self.chance(0.1):
                return ("bin", "i32", "-", ("const", "i32", size - 1), var)
            return ("bin", "i32", "+", var, ("const", "i32", c)) if c else var
        if self.nested or self.chance(0.4):
            return ("const", "i32", self.rng.randrange(size))
        return self.fit(env, size)

    def fit(self, env, size):
        """Anything, made to fit; what it loads is at places that are simple."""
        self.nested += 1
        e = ("fit", "i32", self.value("i32", env, 1), size)
        self.nested -= 1
        return e

    def load(self, dtype, env):
        arrays = [a for a in self.readable if ARRAYS[a][0] == dtype]
        if not arrays:
            return self.constant(dtype)
        array = self.rng.choice(arrays)
        axes = [self.index(env, self.size(array, k)) for k in range(ARRAYS[array][1])]
        return ("load", dtype, array, axes)

    def leaf(self, dtype, env):
        names = [n for n, (t, _, _) in env.items() if t == dtype]
        pick = self.rng.random()
        if names and pick < 0.4:
            return ("var", dtype, self.rng.choice(names))
        return self.load(dtype, env) if pick < 0.85 else self.constant(dtype)

    def condition(self, env, depth=1):
        pick = self.rng.random()
        if depth and pick < 0.2:
            return (self.rng.choice(["and", "or"]), "u1", self.condition(env, 0), self.condition(env, 0))
        if depth and pick < 0.25:
            return ("not", "u1", self.condition(env, 0))
        dtype = self.rng.choice(DTYPES)
        op = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return ("cmp", "u1", op, self.leaf(dtype, env), self.leaf(dtype, env))

    def value(self, dtype, env, depth=2):
        pick = self.rng.random()
        if depth == 0 or pick < 0.25:
            return self.leaf(dtype, env)
        if pick < 0.33:
            return ("if", dtype, self.condition(env), self.value(dtype, env, depth - 1),
                    self.value(dtype, env, depth - 1))
        if pick < 0.38 and dtype in INTS:
            other = "i64" if dtype == "i32" else "i32"
            return ("cast", dtype, self.value(other, env, depth - 1))
        if pick < 0.43 and dtype == "i32" and self.helper:
            return ("call", dtype, self.value(dtype, env, depth - 1), self.leaf(dtype, env))
        if dtype not in INTS:  # sums of eighths, and powers of two times them
            if pick < 0.6:
                factor = ("const", dtype, self.rng.choice([0.5, 2.0, -1.0]))
                return ("bin", dtype, "*", self.leaf(dtype, env), factor)
            op = self.rng.choice(["+", "+", "-", "min", "max"])
            return ("bin", dtype, op, self.leaf(dtype, env), self.leaf(dtype, env))
        op = self.rng.choice(["+", "+", "+", "-", "-", "*", "*", "&", "|", "^", "//", "%", "min", "max", "<<", ">>"])
        right = self.value(dtype, env, depth - 1)
        if op in ("<<", ">>"):
            right = ("const", dtype, self.rng.randrange(31))
        if self.chance(0.05):
            return ("un", dtype, self.rng.choice(["-", "~", "abs"]), right)
        return ("bin", dtype, op, self.value(dtype, env, depth - 1), right)

    # ---- statements: [kind, ...] -------------------------------------------------------------------

    def update(self, dtype):
        return self.rng.choice(UPDATES if dtype in INTS else UPDATES[:6])

    def given(self, env, body, p=0.3):
        """Sometimes under a condition."""
        if self.chance(p):
            return [["if", self.condition(env), body, []]]
        return body

    def function(self):
        """x, y -> a number, with a return in a branch."""
        self.readable = []
        env = {"a": ("i32", None, None), "b": ("i32", None, None)}
        return [self.condition(env), self.value("i32", env), self.value("i32", env)]

    def parallel(self):
        kinds = [self.a_sum, self.elements, self.counts, self.held, self.axes, self.columns, self.rows, self.halving,
                 self.neighbours]
        body = []
        self.left = list(RESULTS)
        for _ in range(self.rng.randrange(1, 4)):
            body += self.rng.choice(kinds)()
        return body

    def target(self, axes, fresh=True):
        """An array to write to, which nothing else of the loop reads."""
        names = [a for a in RESULTS if ARRAYS[a][1] == axes]
        array = self.rng.choice(names)
        self.readable = [a for a in ARRAYS if a != array]
        return array, ARRAYS[array][0]

    def bounds(self, size):
        lo = self.rng.choice([0, 0, 0, 1, size - 1]) if size > 1 else 0
        return lo, self.rng.choice([size, size, max(lo, size - 1)])

    def a_sum(self):
        """A local that a parallel loop adds to, stored after it."""
        array, dtype = self.target(1)
        s, i = self.name("s"), self.name("i")
        lo, hi = self.bounds(self.n)
        env = {i: ("i32", lo, hi)}
        op = self.rng.choice(["+", "+", "-", "max", "min", "^"] if dtype in INTS else ["+", "+", "-", "max", "min"])
        body = self.given(env, [["set", s, dtype, op, self.value(dtype, env)]])
        body = self.prelude(env, dtype) + body
        store = ["store", array, [("const", "i32", self.rng.randrange(self.n))], self.rng.choice(["", "+"]),
                 ("var", dtype, s)]
        return [["let", s, dtype, ("const", dtype, 0 if dtype in INTS else 0.0)],
                ["for", i, self.bound(lo), self.bound(hi), body], store]

    def bound(self, n):
        """An end of a range: written, or read from an argument that is always 0."""
        c = ("const", "i32", n)
        return ("bin", "i32", "+", c, ("var", "i32", "zero")) if self.chance(0.3) else c

    def prelude(self, env, dtype):
        """Locals of an iteration."""
        body = []
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            t = self.name("t")
            kind = self.rng.choice([dtype, "i32"])
            body.append(["let", t, kind, self.value(kind, env)])
            env[t] = (kind, None, None)
            if self.chance(0.3):
                body += self.given(env, [["set", t, kind, self.rng.choice(["", "+", "-"]), self.leaf(kind, env)]], 0.7)
        if self.chance(0.15):
            body.append(["if", self.condition(env), [["continue"]], []])
        return body

    def elements(self):
        array, dtype = self.target(1)
        i = self.name("i")
        lo, hi = self.bounds(self.n)
        env = {i: ("i32", lo, hi)}
        body = self.prelude(env, dtype)
        place = ("var", "i32", i)
        if lo == 0 and hi == self.n and self.chance(0.2):
            place = ("bin", "i32", "-", ("const", "i32", self.n - 1), place)
        op = self.rng.choice(["", "", "+", "max"])
        return [["for", i, self.bound(lo), self.bound(hi),
                 body + self.given(env, [["store", array, [place], op, self.value(dtype, env)]])]]

    def counts(self):
        """Updates at places that the data know: integers, whose sums are exact."""
        array, dtype = self.target(1)
        i = self.name("i")
        env = {i: ("i32", 0, self.n)}
        body = self.prelude(env, dtype)
        op = self.rng.choice(["+", "+", "max", "|"]) if dtype in INTS else self.rng.choice(["max", "min"])
        place = self.fit(env, self.n)
        body += self.given(env, [["store", array, [place], op, self.value(dtype, env)]])
        if self.chance(0.3):
            place = self.fit(env, self.n)
            body += [["store", array, [place], op, self.constant(dtype)]]
        return [["for", i, ("const", "i32", 0), ("const", "i32", self.n), body]]

    def held(self):
        """An element that a serial loop updates."""
        array, dtype = self.target(1)
        i, k = self.name("i"), self.name("k")
        rows, cols = min(self.shape[0], self.n), self.shape[1]
        env = {i: ("i32", 0, rows)}
        outer = self.prelude(env, dtype)
        lo, hi = self.bounds(cols)
        inner = {**env, k: ("i32", lo, hi)}
        op = self.update(dtype)
        step = self.prelude(inner, dtype)
        step += self.given(inner, [["store", array, [("var", "i32", i)], op, self.value(dtype, inner)]])
        if self.chance(0.2):
            step += [["store", array, [("var", "i32", i)], "", self.value(dtype, inner)]]
        if self.chance(0.15):
            step.append(["if", self.condition(inner), [["break"]], []])
        return [["for", i, ("const", "i32", 0), self.bound(rows),
                 [*outer, ["for", k, self.bound(lo), self.bound(hi), step]]]]

    def axes(self):
        """A loop over two axes."""
        array, dtype = self.target(2)
        i, j = self.name("i"), self.name("j")
        (a, b), (c, d) = self.bounds(self.shape[0]), self.bounds(self.shape[1])
        env = {i: ("i32", a, b), j: ("i32", c, d)}
        body = self.prelude(env, dtype)
        place = [("var", "i32", i), ("var", "i32", j)]
        op = self.rng.choice(["", "", "+"])
        body += self.given(env, [["store", array, place, op, self.value(dtype, env)]])
        if self.chance(0.5):
            return [["nd", [i, j], [a, b, c, d], body]]
        return [["for", i, self.bound(a), self.bound(b), [["for", j, self.bound(c), self.bound(d), body]]]]

    def columns(self):
        """A serial loop through each column, where an element follows from the one above it."""
        array, dtype = self.target(2)
        i, j = self.name("i"), self.name("j")
        rows, cols = self.shape
        lo = 1 if rows > 1 else 0
        env = {j: ("i32", 0, cols), i: ("i32", lo, rows)}
        before = ("bin", "i32", "-", ("var", "i32", i), ("const", "i32", lo))
        above = ("load", dtype, array, [before, ("var", "i32", j)])
        step = self.prelude(env, dtype)
        value = ("bin", dtype, self.rng.choice(["+", "-", "max"]), above, self.leaf(dtype, env))
        step.append(["store", array, [("var", "i32", i), ("var", "i32", j)], "", value])
        return [["for", j, ("const", "i32", 0), self.bound(cols),
                 [["for", i, self.bound(lo), self.bound(rows), step]]]]

    def rows(self):
        """A local that a serial loop adds to, stored by each iteration."""
        array, dtype = self.target(1)
        i, k, t = self.name("i"), self.name("k"), self.name("t")
        rows = min(self.shape[0], self.n)
        env = {i: ("i32", 0, rows)}
        outer = self.prelude(env, dtype) + [["let", t, dtype, self.leaf(dtype, env)]]
        inner = {**env, k: ("i32", 0, self.shape[1])}
        step = self.prelude(inner, dtype)
        step += self.given(inner, [["set", t, dtype, self.update(dtype), self.value(dtype, inner)]])
        if self.chance(0.2):
            step.append(["if", self.condition(inner), [["break"]], []])
        return [["for", i, ("const", "i32", 0), self.bound(rows),
                 [*outer, ["for", k, ("const", "i32", 0), self.bound(self.shape[1]), step],
                  ["store", array, [("var", "i32", i)], "", ("var", dtype, t)]]]]

    def halving(self):
        """A while loop in each iteration."""
        array, dtype = self.target(1)
        i, v, t = self.name("i"), self.name("v"), self.name("t")
        env = {i: ("i32", 0, self.n)}
        more = ("cmp", "u1", ">", ("var", "i32", v), ("const", "i32", 0))
        first = ("bin", "i32", "&", self.value("i32", env), ("const", "i32", 0xffff))
        inner = {**env, v: ("i32", None, None)}
        step = [["set", t, dtype, self.update(dtype), self.value(dtype, inner, 1)],
                ["set", v, "i32", "//", ("const", "i32", 2)]]
        if self.chance(0.3):
            step.append(["if", self.condition(inner), [["break"]], []])
        return [["for", i, ("const", "i32", 0), self.bound(self.n),
                 [["let", v, "i32", first], ["let", t, dtype, self.constant(dtype)], ["while", more, step],
                  ["store", array, [("var", "i32", i)], "", ("var", dtype, t)]]]]

    def neighbours(self):
        """Updates of an element and of the next: two iterations meet in one place."""
        array, dtype = self.target(1)
        i = self.name("i")
        if self.n < 2:
            return self.elements()
        env = {i: ("i32", 0, self.n - 1)}
        op = self.rng.choice(["+", "-"])
        here, there = ("var", "i32", i), ("bin", "i32", "+", ("var", "i32", i), ("const", "i32", 1))
        body = self.prelude(env, dtype)
        body += [["store", array, [here], op, self.value(dtype, env, 1)],
                 ["store", array, [there], op, self.value(dtype, env, 1)]]
        return [["for", i, self.bound(0), self.bound(self.n - 1), body]]

    # ---- one iteration, in which everything may meet ---------------------------------------------------

    def wild(self):
        self.readable = list(ARRAYS)
        body = self.block({}, 3)
        return [["for", "once", ("const", "i32", 0), ("const", "i32", 1), body]]

    def block(self, env, depth):
        env, body = dict(env), []
        for _ in range(self.rng.randrange(1, 4)):
            body += self.wild_statement(env, depth)
        return body

    def wild_statement(self, env, depth):
        pick = self.rng.random()
        if depth and pick < 0.5:
            i = self.name("i")
            lo, hi = self.bounds(self.rng.choice([self.n if self.n < 50 else 40, *self.shape]))
            inner = {**env, i: ("i32", lo, hi)}
            tail = [["if", self.condition(inner), [["break"]], []]] if self.chance(0.1) else []
            return [["for", i, self.bound(lo), self.bound(hi), self.block(inner, depth - 1) + tail]]
        if depth and pick < 0.6:
            other = self.block(env, depth - 1) if self.chance(0.5) else []
            return [["if", self.condition(env), self.block(env, depth - 1), other]]
        dtype = self.rng.choice(DTYPES)
        own = [n for n, (t, lo, _) in env.items() if t == dtype and lo is None]
        if pick < 0.7 and own:
            return [["set", self.rng.choice(own), dtype, self.rng.choice(["", "+", "-", "max"]),
                     self.value(dtype, env)]]
        if pick < 0.78:
            t = self.name("t")
            statement = [["let", t, dtype, self.value(dtype, env)]]
            env[t] = (dtype, None, None)
            return statement
        array = self.rng.choice([a for a in ARRAYS if ARRAYS[a][0] == dtype])
        axes = [self.index(env, self.size(array, k)) for k in range(ARRAYS[array][1])]
        op = self.rng.choice(["", "", *UPDATES[:6]])
        value = self.value(dtype, env) if dtype in INTS or op in ("max", "min") else self.bounded(dtype, env)
        return [["store", array, axes, op, value]]

    def bounded(self, dtype, env):
        """A float that does not grow from one iteration to the next."""
        low, high = (("const", dtype, v) for v in (-8.0, 8.0))
        return ("bin", dtype, "min", ("bin", dtype, "max", self.value(dtype, env), low), high)
