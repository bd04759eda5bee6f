"""Random kernels for tests/py/test_random_kernels.py: the same seed, the same program.

A program is a text with up to two funcs and one kernel over arrays of every dtype: the
kernel, or a func that it calls at its top level, reads `in_*`, writes `out_*` and updates
`acc_*` by atomics whose result does not depend on the order. Every operation of the language is defined for every value (division by
zero is 0, shifts count modulo the width, casts saturate), so nothing is guarded against.
"""

import random

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]
DTYPES = INTS + FLOATS
REALS = [*FLOATS, "f16"]  # NumPy's f16 rounds at other places: it is no third opinion
ARRAYS = [*DTYPES, "f16", "u1"]
N = 40  # elements; indices are masked to 0..31
MATH = ["sin", "cos", "tanh", "exp", "log", "sqrt", "tan", "asin", "acos", "rsqrt"]


class Program:
    """One program: `text`, and `k` is the kernel in it."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.seed = seed
        self.lines = ["TABLE = (3, -5, 7)", f"SWITCH = {self.r.random() < 0.5}"]
        self.funcs = []  # (name, kinds of the parameters, kind of the result)
        self.count = 0
        self.left = self.r.randrange(6, 22)  # statements
        for _ in range(self.r.randrange(3)):
            self.func()
        self.kernel()
        self.text = "\n".join(self.lines) + "\n"

    # ---- expressions: kind "i" (integer), "f" (float), "b" (condition) -----------------------

    def chance(self, p):
        return self.r.random() < p

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def literal(self, kind):
        r = self.r
        if kind == "f":
            return repr(r.choice([0.0, 1.0, -2.5, 0.1, 1e-3, 1e10, -1e-30, r.uniform(-9, 9)]))
        return str(r.choice([0, 1, 2, -1, 7, 31, 255, -128, 65535, 2**31 - 1, -(2**31),
                             r.randrange(-1000, 1000)]))

    def leaf(self, scope, kind):
        names = [n for n, k in scope if k == kind]
        choice = self.r.random()
        if names and choice < 0.6:
            return self.r.choice(names)
        if self.arrays and choice < 0.8:
            dtype = self.r.choice(REALS if kind == "f" else [*INTS, "u1"])
            return f"in_{dtype}[{self.index(scope)}]"
        # A cast makes it a run-time value: what is known while compiling follows Python's
        # rules, with their exceptions.
        value = f"TABLE[{self.r.randrange(3)}]" if choice < 0.85 else self.literal("i")
        if kind == "f":
            return f"qd.cast({self.literal('f')}, qd.{self.r.choice(REALS)})"
        return f"qd.cast({value}, qd.{self.r.choice(INTS)})"

    def index(self, scope):
        if ("i", "i") in scope and self.chance(0.6):
            return "i"
        names = [n for n, k in scope if k == "i"]
        return f"{self.r.choice(names)} & 31" if names else str(self.r.randrange(32))

    def condition(self, scope, depth):
        choice = self.r.random()
        if self.arrays and self.chance(0.08):
            return f"in_u1[{self.index(scope)}]"
        if depth <= 0 or choice < 0.55:
            kind = self.r.choice("if")
            op = self.r.choice(["<", "<=", ">", ">=", "==", "!="])
            left, right = self.expr(scope, kind, depth - 1), self.expr(scope, kind, depth - 1)
            if self.chance(0.15):
                return f"({left} < {right} <= {self.expr(scope, kind, depth - 2)})"
            return f"({left} {op} {right})"
        if choice < 0.65:
            return f"(not {self.condition(scope, depth - 1)})"
        word = self.r.choice(["and", "or"])
        return f"({self.condition(scope, depth - 1)} {word} {self.condition(scope, depth - 1)})"

    def call(self, scope, kind, depth):
        fits = [f for f in self.funcs if f[2] == kind]
        if not fits:
            return self.leaf(scope, kind)
        name, kinds, _ = self.r.choice(fits)
        return f"{name}({', '.join(self.expr(scope, k, depth - 1) for k in kinds)})"

    def expr(self, scope, kind, depth=3):
        r = self.r
        if depth <= 0 or self.chance(0.15):
            return self.leaf(scope, kind)

        def sub(k=kind):
            return self.expr(scope, k, depth - 1)

        def right():
            return self.literal(kind) if self.chance(0.25) else sub()

        choice = r.random()
        if choice < 0.08:
            return self.call(scope, kind, depth)
        if choice < 0.16:
            return f"({sub()} if {self.condition(scope, depth - 1)} else {sub()})"
        if choice < 0.2:
            return f"qd.select({self.condition(scope, depth - 1)}, {sub()}, {sub()})"
        if choice < 0.28:
            return f"{r.choice(['min', 'max', 'qd.min', 'qd.max'])}({sub()}, {sub()})"
        if choice < 0.34:
            return f"(-{sub()})"
        if choice < 0.4:
            return f"{r.choice(['abs', 'qd.abs'])}({sub()})"
        if kind == "f":
            if choice < 0.46:
                return f"qd.{r.choice(MATH)}(qd.cast({sub()}, qd.{r.choice(REALS)}))"
            if choice < 0.52:
                return f"qd.{r.choice(['floor', 'ceil', 'round', 'trunc'])}(1.0 * {sub()})"
            if choice < 0.62:
                return f"qd.cast({sub(r.choice('if'))}, qd.{r.choice(REALS)})"
            if choice < 0.66:
                return f"({sub('i')} / {sub('i')})"
            if choice < 0.7:
                return f"({sub()} ** {r.choice(['2', '3', '0.5', '-1.5'])})"
            if choice < 0.73:
                return f"qd.atan2({sub()}, {sub()})"
            return f"({sub()} {r.choice(['+', '-', '*', '/', '//', '%'])} {right()})"
        if choice < 0.5:
            return f"qd.cast({sub(r.choice('iif'))}, qd.{r.choice(INTS)})"
        if choice < 0.54:
            return f"(~{sub()})"
        if choice < 0.58:
            return f"qd.math.{r.choice(['popcnt', 'clz', 'ffs'])}({sub()})"
        if choice < 0.6:
            return r.choice(["int({})", "qd.cast({}, qd.u1)"]).format(self.condition(scope, depth - 1))
        if choice < 0.63:
            return f"({sub()} ** {r.randrange(4)})"
        if choice < 0.65:
            return f"qd.bit_cast(qd.cast({sub()}, qd.{r.choice(['i64', 'u64'])}), qd.i64)"
        if choice < 0.67:
            return f"qd.{r.choice(['raw_div', 'raw_mod'])}({sub()}, {sub()})"
        op = r.choice(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
        return f"({sub()} {op} {right()})"

    # ---- statements -----------------------------------------------------------------------------

    def block(self, scope, indent, loops, parallel):
        """Statements in a scope of their own; `loops`: serial loops around that break leaves."""
        scope = list(scope)
        for _ in range(self.r.randrange(1, 5)):
            self.statement(scope, indent, loops, parallel)
        return scope

    def add(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, scope, indent, loops, parallel):
        self.left -= 1
        r, choice = self.r, self.r.random()
        own = [(n, k) for n, k in scope if n.startswith("v")]
        if self.left <= 0 or indent > 5 or choice < 0.3:
            return self.declare(scope, indent)
        if choice < 0.45 and own:
            name, kind = r.choice(own)
            if self.chance(0.4):
                return self.add(indent, f"{name} = {self.expr(scope, kind)}")
            op = r.choice(["+", "-", "*"] + (["|", "&", "^", ">>", "//"] if kind == "i" else ["/"]))
            return self.add(indent, f"{name} {op}= {self.expr(scope, kind)}")
        if choice < 0.6:
            return self.branch(scope, indent, loops, parallel)
        if choice < 0.78:
            return self.loop(scope, indent, loops, parallel)
        if choice < 0.86 and self.arrays and parallel:
            return self.atomic(scope, indent)
        if choice < (0.87 if loops == "parallel" else 0.9) and loops:
            self.add(indent, f"if {self.condition(scope, 2)}:")
            return self.add(indent + 1, r.choice(["break", "continue"]) if loops == "serial"
                            else "continue")
        if self.arrays:
            return self.store(scope, indent)
        return self.declare(scope, indent)

    def declare(self, scope, indent):
        r = self.r
        if self.chance(0.15):
            a, b = self.fresh(), self.fresh()
            kinds = r.choice("if"), r.choice("if")
            self.add(indent, f"{a}, {b} = {self.expr(scope, kinds[0])}, {self.expr(scope, kinds[1])}")
            scope += [(a, kinds[0]), (b, kinds[1])]
            return
        name, kind = self.fresh(), r.choice("if")
        typed = f": qd.{r.choice(REALS if kind == 'f' else INTS)}" if self.chance(0.3) else ""
        self.add(indent, f"{name}{typed} = {self.expr(scope, kind)}")
        scope.append((name, kind))

    def branch(self, scope, indent, loops, parallel):
        test = "qd.static(SWITCH)" if self.chance(0.15) else self.condition(scope, 2)
        inner = None if loops == "static" and "static" not in test else loops
        self.add(indent, f"if {test}:")
        self.block(scope, indent + 1, inner, parallel)
        if self.chance(0.3):
            self.add(indent, f"elif {self.condition(scope, 2)}:")
            self.block(scope, indent + 1, None if loops == "static" else loops, parallel)
        if self.chance(0.5):
            self.add(indent, "else:")
            self.block(scope, indent + 1, None if loops == "static" else inner, parallel)

    def loop(self, scope, indent, loops, parallel):
        r, name = self.r, self.fresh().replace("v", "j")
        choice = r.random()
        if choice < 0.25:
            self.add(indent, f"for s{name} in qd.static(range({r.randrange(1, 4)})):")
            self.add(indent + 1, f"{name} = qd.cast(s{name}, qd.i32)")
            self.block([*scope, (name, "i")], indent + 1, None, parallel)
        elif choice < 0.35:
            self.add(indent, f"for s{name} in qd.static(TABLE):")
            self.add(indent + 1, f"{name} = qd.cast(s{name}, qd.i64)")
            self.block([*scope, (name, "i")], indent + 1, None, parallel)
        elif choice < 0.5:
            self.add(indent, f"w_{name} = 0")
            self.add(indent, f"while w_{name} < {r.randrange(1, 5)} and {self.condition(scope, 1)}:")
            self.add(indent + 1, f"w_{name} += 1")
            self.block(scope, indent + 1, "serial", parallel)
        elif choice < 0.6:
            self.add(indent, f"for {name}, {name}_ in qd.ndrange({r.randrange(3)}, (1, 3)):")
            self.block([*scope, (name, "i"), (name + "_", "i")], indent + 1, "serial", parallel)
        else:
            bound = r.choice([str(r.randrange(5)), f"{self.index(scope)}"])
            self.add(indent, f"for {name} in range({bound}):")
            self.block([*scope, (name, "i")], indent + 1, "serial", parallel)

    def atomic(self, scope, indent):
        dtype = self.r.choice(["i32", "i64", "u32", "u64"])
        place = f"acc_{dtype}[{self.r.choice([n for n, k in scope if k == 'i'])} & 31]"
        value = self.expr(scope, "i", 2)
        op = self.r.choice(["+=", "-=", "add", "sub", "min", "max", "and", "or", "xor"])
        # Each place sees one kind of operation only: others would not commute.
        group = {"+=": 0, "-=": 0, "add": 0, "sub": 0, "min": 1, "max": 2, "and": 3, "or": 4,
                 "xor": 5}[op]
        place = place.replace("[", f"[{group}, ")
        if op.endswith("="):
            self.add(indent, f"{place} {op} {value}")
        else:
            self.add(indent, f"qd.atomic_{op}({place}, {value})")

    def store(self, scope, indent, dtype=None):
        dtype = dtype or self.r.choice(ARRAYS)
        if dtype == "u1" and self.chance(0.7):
            return self.add(indent, f"out_u1[i] = {self.condition(scope, 2)}")
        kind = "f" if dtype in REALS and self.chance(0.8) else "i"
        self.add(indent, f"out_{dtype}[i] = {self.expr(scope, kind)}")

    # ---- functions ---------------------------------------------------------------------------------

    def func(self):
        name = f"f{len(self.funcs)}"
        kinds = [self.r.choice("if") for _ in range(self.r.randrange(1, 4))]
        result = self.r.choice("if")
        self.arrays = False
        params = [f"p{i}" for i in range(len(kinds))]
        shown = [p + (f": qd.{self.r.choice(REALS if k == 'f' else INTS)}" if self.chance(0.4)
                      else "") for p, k in zip(params, kinds)]
        self.lines += ["", "@qd.func", f"def {name}({', '.join(shown)}):"]
        scope = list(zip(params, kinds))
        for _ in range(self.r.randrange(3)):
            self.statement(scope, 1, None, False)
        cast = self.r.choice(REALS if result == "f" else INTS)
        if self.chance(0.3):
            self.add(1, f"if {self.condition(scope, 2)}:")
            self.add(2, f"return qd.cast({self.expr(scope, result, 2)}, qd.{cast})")
        self.add(1, f"return qd.cast({self.expr(scope, result, 2)}, qd.{cast})")
        self.funcs.append((name, kinds, result))

    def kernel(self):
        """Its loops, some of them in a func that is called at the top level."""
        self.arrays = True
        arrays = ([f"in_{d}" for d in ARRAYS] + [f"out_{d}" for d in ARRAYS]
                  + [f"acc_{d}" for d in ("i32", "i64", "u32", "u64")])
        names = [*arrays, "s_i32", "s_f64"]
        top = self.chance(0.35)
        if top:
            kind = self.r.choice(["", ": qd.template()", ": qd.types.ndarray()"])
            self.lines += ["", "@qd.func",
                           f"def top({', '.join(a + kind for a in arrays)}, s_i32: qd.i32, s_f64):"]
            self.loops()
        params = [f"{a}: qd.types.ndarray()" for a in arrays]
        params += ["s_i32: qd.i32", "s_f64: qd.f64"]
        self.lines += ["", "@qd.kernel", f"def k({', '.join(params)}):"]
        first = len(self.lines)
        if not top or self.chance(0.5):
            self.loops()
        if top:
            at = self.r.choice([first, len(self.lines)])
            self.lines.insert(at, f"    top({', '.join(names)})")

    def loops(self):
        """The loops of one function over the arrays, parallel at the top level."""
        scope = [("s_i32", "i"), ("s_f64", "f")]
        for _ in range(self.r.randrange(1, 3)):
            if self.chance(0.3):  # iterations only read it
                name = self.fresh().replace("v", "g")
                kind = self.r.choice("if")
                # Loops of a func that is called here would be parallel.
                funcs, self.funcs = self.funcs, []
                self.add(1, f"{name} = {self.expr(scope, kind)}")
                self.funcs = funcs
                scope.append((name, kind))
            total = self.fresh().replace("v", "t") if self.chance(0.4) else None
            if total:
                self.add(1, f"{total} = qd.cast(0, qd.{self.r.choice(INTS[2:4] + INTS[6:])})")
            if self.chance(0.15):
                self.add(1, "qd.loop_config(serialize=True)")
            self.add(1, f"for i in range({N}):")
            inner = self.block([*scope, ("i", "i")], 2, "parallel", True)
            for dtype in self.r.sample(ARRAYS, 5):
                self.store(inner, 2, dtype)
            if total:
                self.add(2, f"{total} += {self.expr(inner, 'i')}")
                scope.append((total, "i"))


# ---- straight-line programs with NumPy's opinion ------------------------------------------------


def expression(r, depth):
    """A tree: (op, dtype or None, operands)."""
    if depth <= 0 or r.random() < 0.1:
        return ("in", r.choice(DTYPES), ())
    op = r.choice(["+", "-", "*", "min", "max", "neg", "abs", "cast", "+", "*",
                   "&", "|", "^", "<<", ">>", "//", "%", "<", "==", "/", "sqrt", "floor"])
    count = 1 if op in ("neg", "abs", "cast", "sqrt", "floor") else 2
    return (op, r.choice(DTYPES), tuple(expression(r, depth - 1) for _ in range(count)))
