"""Random programs over vectors, matrices and structs for tests/py/test_random_vectors.py: the
same seed, the same program.

A program is a text: structs with methods, funcs (some change what a template parameter stands
for), and a kernel that takes arrays, vectors and structs, stores what it computes in arrays `o0, o1, ...` and returns values. Every expression is
known by its shape and dtype, so `outs` and `results` list the exact types that it must have.
"""

import random

from numpy_vectors import promote

INTS = ["i32", "i64", "u32", "i16", "u8"]
FLOATS = ["f32", "f64"]
N = 6  # elements of the arrays
SHAPES = [(), (2,), (3,), (4,), (2, 2), (3, 3), (2, 3), (3, 2), (4, 4)]
LARGE = [(7,), (20,), (5, 5), (9, 9)]


def type_text(dtype, shape):
    if not shape:
        return f"qd.{dtype}"
    kind = "vector" if len(shape) == 1 else "matrix"
    return f"qd.types.{kind}({', '.join(map(str, shape))}, qd.{dtype})"


class Program:
    """`text`; `ins` and `outs`: (dtype, shape) of the arrays; `results`: of what k returns."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.funcs, self.structs = [], [], {}
        self.changers = []  # funcs with a template parameter: (name, params, result)
        self.outs, self.accs, self.count = [], [], 0
        self.shapes = self.r.sample(SHAPES, 5) + ([self.r.choice(LARGE)] if self.chance(0.2) else [])
        for k in range(self.r.randrange(1, 3)):
            self.struct(f"S{k}")
        for k in range(self.r.randrange(1, 4)):
            self.func(f"f{k}")
        if self.chance(0.6):
            self.func("g0", template=True)
        self.kernel()
        self.text = "\n".join(self.lines) + "\n"

    def chance(self, p):
        return self.r.random() < p

    def add(self, indent, text):
        self.lines.append("    " * indent + text)

    def fresh(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def dtype(self, kind=None):
        return self.r.choice({"i": INTS, "f": FLOATS}.get(kind) or INTS + FLOATS)

    # ---- values: a scope lists (text, dtype, shape), a struct's dtype is its name -----------------

    def places(self, scope):
        """What a scope holds, members of structs as well."""
        todo, got = list(scope), []
        while todo:
            text, dtype, shape = todo.pop()
            if dtype in self.structs:
                todo += [(f"{text}.{n}", d, s) for n, d, s in self.structs[dtype]]
            else:
                got.append((text, dtype, shape))
        return sorted(got)

    def at(self, scope, n):
        """An index below n, static or not."""
        ints = [t for t, d, s in self.places(scope) if not s and d not in FLOATS]
        if not ints or self.chance(0.5):
            return str(self.r.randrange(n))
        return f"(qd.cast({self.r.choice(ints)}, qd.i32) & 31) % {n}"

    def leaf(self, scope, shape, kind):
        fits = [(t, d) for t, d, s in self.places(scope)
                if s == shape and (d in FLOATS) == (kind == "f")]
        if fits and self.chance(0.8):
            return self.r.choice(fits)
        parts = [(t, d, s) for t, d, s in self.places(scope) if s and (d in FLOATS) == (kind == "f")]
        if parts and not shape:
            text, dtype, s = self.r.choice(parts)
            if len(s) == 1 and s[0] <= 4 and self.chance(0.5):
                return f"{text}.{self.r.choice('xyzw'[:s[0]])}", dtype
            return f"{text}[{', '.join(self.at(scope, n) for n in s)}]", dtype
        vectors = [p for p in parts if len(p[2]) == 1 and p[2][0] <= 4]
        if len(shape) == 1 and shape[0] <= 4 and vectors and self.chance(0.7):
            text, dtype, s = self.r.choice(vectors)
            return f"{text}.{''.join(self.r.choice('xyzw'[:s[0]]) for _ in range(shape[0]))}", dtype
        rows = [p for p in parts if len(p[2]) == 2 and p[2][1:] == shape]
        if rows and self.chance(0.7):
            text, dtype, s = self.r.choice(rows)
            return f"{text}[{self.at(scope, s[0])}, :]", dtype
        return self.make(scope, shape, kind)

    def number(self, kind):
        return repr(round(self.r.uniform(-4, 4), 2)) if kind == "f" else str(self.r.randrange(-9, 10))

    def make(self, scope, shape, kind):
        dtype = self.dtype(kind)
        if not shape:
            return f"qd.cast({self.number(kind)}, qd.{dtype})", dtype
        if shape[-1] > 4 or self.chance(0.3):
            return f"{type_text(dtype, shape)}({self.number(kind)})", dtype
        if len(shape) == 1:
            items = ", ".join(self.number(kind) for _ in range(shape[0]))
            return f"qd.Vector([{items}], qd.{dtype})", dtype
        rows = ", ".join("[" + ", ".join(self.number(kind) for _ in range(shape[1])) + "]"
                         for _ in range(shape[0]))
        return f"qd.Matrix([{rows}], qd.{dtype})", dtype

    def expr(self, scope, shape, kind, depth=3):
        """(text, dtype) of an expression of that shape; kind: i or f."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf(scope, shape, kind)
        for _ in range(20):
            got = self.r.choice([self.operator, self.operator, self.function, self.linear,
                                 self.call, self.choose])(scope, shape, kind, depth - 1)
            if got:
                return got
        return self.leaf(scope, shape, kind)

    def operator(self, scope, shape, kind, depth):
        a, s = self.expr(scope, shape, kind, depth)
        if self.chance(0.12):
            return f"(-{a})", s
        other = self.r.choice([shape, shape, ()])  # a number meets every element
        b, t = self.expr(scope, other, "i" if kind == "f" and self.chance(0.15) else kind, depth)
        if kind == "i" and self.chance(0.15):
            return f"({a} {self.r.choice(['<<', '>>'])} {self.r.randrange(5)})", s
        op = self.r.choice(["+", "-", "*", "//", "%"] + (["/"] if kind == "f" else ["&", "|", "^"]))
        if self.chance(0.3):
            a, s, b, t = b, t, a, s
        return f"({a} {op} {b})", promote(s, t)

    def function(self, scope, shape, kind, depth):
        a, s = self.expr(scope, shape, kind, depth)
        choice = self.r.random()
        if choice < 0.3:
            dtype = self.dtype(kind)
            a, _ = self.expr(scope, shape, self.r.choice("if"), depth)
            return f"qd.cast({a}, qd.{dtype})", dtype
        if choice < 0.6:
            b, t = self.expr(scope, shape, kind, depth)
            return f"qd.{self.r.choice(['min', 'max'])}({a}, {b})", promote(s, t)
        if kind == "f" and choice < 0.8:
            return f"qd.{self.r.choice(['floor', 'sqrt'])}({a})", s
        return f"qd.abs({a})", s

    def choose(self, scope, shape, kind, depth):
        (a, s), (b, t) = (self.expr(scope, shape, kind, depth) for _ in range(2))
        if self.chance(0.4) and s == t:
            return f"({a} if {self.condition(scope)} else {b})", s
        (x, _), (y, _) = (self.expr(scope, shape, kind, 1) for _ in range(2))
        return f"qd.select({x} {self.r.choice(['<', '<=', '==', '!='])} {y}, {a}, {b})", promote(s, t)

    def condition(self, scope):
        (a, _), (b, _) = (self.expr(scope, (), "i", 1) for _ in range(2))
        return f"({a} {self.r.choice(['<', '<=', '=='])} {b})"

    def linear(self, scope, shape, kind, depth):
        def sub(s):
            return self.expr(scope, s, kind, depth - 1)

        if not shape:
            s = self.r.choice([s for s in self.shapes if s] or [(3,)])
            a, t = sub(s)
            if len(s) == 2 and s[0] == s[1] and self.chance(0.4):
                whole = s[0] <= 4 and self.chance(0.6)
                return f"({a}).{'determinant' if whole else 'trace'}()", t
            if len(s) == 1 and self.chance(0.5):
                b, u = sub(s)
                return f"({a}).dot({b})", promote(t, u)
            names = ["sum", "min", "max"] + (["norm", "norm_sqr"] if kind == "f" else [])
            return f"({a}).{self.r.choice(names)}()", t
        if kind == "f" and self.chance(0.25):
            if len(shape) == 1:
                a, s = sub(shape)
                return f"({a}).normalized()", s
            if shape[0] == shape[1]:
                a, s = sub(shape)
                return f"({a}).inverse()", s
        if shape[0] > 5:
            return None
        if len(shape) == 1:
            if shape == (3,) and self.chance(0.5):
                (a, s), (b, t) = sub(shape), sub(shape)
                return f"({a}).cross({b})", promote(s, t)
            inner = self.r.choice([2, 3])
            (a, s), (b, t) = sub((*shape, inner)), sub((inner,))
            return f"({a} @ {b})", promote(s, t)
        choice = self.r.random()
        if choice < 0.35:
            a, s = sub(shape[::-1])
            return f"({a}).transpose()", s
        if choice < 0.7:
            (a, s), (b, t) = sub(shape[:1]), sub(shape[1:])
            return f"({a}).outer_product({b})", promote(s, t)
        inner = self.r.choice([2, 3])
        (a, s), (b, t) = sub((shape[0], inner)), sub((inner, shape[1]))
        return f"({a} @ {b})", promote(s, t)

    def call(self, scope, shape, kind, depth):
        fits = [f for f in self.funcs if f[2][1] == shape and (f[2][0] in FLOATS) == (kind == "f")]
        if not fits:
            return None
        name, params, result = self.r.choice(fits)
        values = [self.argument(scope, d, s, depth) for d, s in params]
        return (f"{name}({', '.join(values)})", result[0]) if all(values) else None

    def argument(self, scope, dtype, shape, depth):
        """For a parameter without annotation its type is the argument's: exactly that."""
        if dtype in self.structs:
            names = [t for t, d, _ in scope if d == dtype]
            return self.r.choice(names) if names else self.build(scope, dtype)
        text, got = self.expr(scope, shape, "f" if dtype in FLOATS else "i", depth)
        return text if got == dtype else f"qd.cast({text}, qd.{dtype})"

    def build(self, scope, name):
        return f"{name}({', '.join(self.argument(scope, d, s, 1) for _, d, s in self.structs[name])})"

    # ---- statements ----------------------------------------------------------------------------------

    def statement(self, scope, indent):
        choice = self.r.random()
        own = [p for p in self.places([v for v in scope if v[0][0] in "vp"])]
        if choice < 0.4 or not own:
            return self.declare(scope, indent)
        if choice < 0.48 and self.change(scope, indent):
            return None
        text, dtype, shape = self.r.choice(own)
        kind = "f" if dtype in FLOATS else "i"
        if choice < 0.55:
            return self.add(indent, f"{text} = {self.expr(scope, shape, self.r.choice(['i', kind]))[0]}")
        if choice < 0.62:
            value = self.expr(scope, self.r.choice([shape, ()]), kind)[0]
            return self.add(indent, f"{text} {self.r.choice('+-*')}= {value}")
        if choice < 0.75 and shape:
            return self.part(scope, indent, text, shape, kind)
        if choice < 0.82 and indent < 4:
            self.add(indent, f"if {self.condition(scope)}:")
            self.block(scope, indent + 1)
            self.add(indent, "else:")
            return self.block(scope, indent + 1)
        if choice < 0.9 and indent < 4:
            j, n = self.fresh("j"), self.r.randrange(1, 4)
            span = f"qd.static(range({n}))" if self.chance(0.4) else f"range({n})"
            self.add(indent, f"for {j} in {span}:")
            known = (f"qd.cast({j}, qd.i32)", "i32", ())
            return self.block([*scope, known], indent + 1)
        bodies = [(t, d) for t, d, _ in scope if d in self.structs and t[0] in "vp"]
        if bodies:
            text, dtype = self.r.choice(bodies)
            return self.add(indent, f"{text}.put({self.argument(scope, 'i32', (), 2)})")
        return self.declare(scope, indent)

    def change(self, scope, indent):
        """Calls a func that changes its first argument: a statement of its own."""
        own = [v for v in scope if v[0][0] in "vp"]
        own += self.places(own)
        fits = [(f, text) for f in self.changers for text, d, s in own if (d, s) == f[1][0]]
        if not fits:
            return False
        (func, params, (dtype, shape)), text = self.r.choice(fits)
        values = [self.argument(scope, d, s, 1) for d, s in params[1:]]
        name = self.fresh()
        self.add(indent, f"{name} = {func}({', '.join([text, *values])})")
        scope.append((name, dtype, shape))
        return True

    def part(self, scope, indent, text, shape, kind):
        """Writes an element, a swizzle or a slice."""
        op = self.r.choice(["=", "+=", "*="])
        choice = self.r.random()
        if len(shape) == 1 and shape[0] <= 4 and choice < 0.35:
            letters = self.r.sample("xyzw"[:shape[0]], self.r.randrange(2, shape[0] + 1))
            value = self.expr(scope, (len(letters),), kind)[0]
            return self.add(indent, f"{text}.{''.join(letters)} {op} {value}")
        if len(shape) == 1 and shape[0] > 2 and choice < 0.5:
            value = self.expr(scope, (shape[0] - 1,), kind)[0]
            return self.add(indent, f"{text}[1:] {op} {value}")
        if len(shape) == 2 and choice < 0.4:
            axis = self.r.randrange(2)
            where = [":", ":"]
            where[axis] = self.at(scope, shape[axis])
            value = self.expr(scope, (shape[1 - axis],), kind)[0]
            return self.add(indent, f"{text}[{', '.join(where)}] {op} {value}")
        where = ", ".join(self.at(scope, n) for n in shape)
        return self.add(indent, f"{text}[{where}] {op} {self.expr(scope, (), kind)[0]}")

    def declare(self, scope, indent):
        name = self.fresh()
        choice = self.r.random()
        if choice < 0.2:
            kind = self.r.choice(list(self.structs))
            names = [t for t, d, _ in scope if d == kind]
            text = self.r.choice(names) if names and self.chance(0.4) else self.build(scope, kind)
            self.add(indent, f"{name} = {text}")
            return scope.append((name, kind, None))
        shape = self.r.choice(self.shapes)
        text, dtype = self.expr(scope, shape, self.r.choice("if"))
        self.add(indent, f"{name} = {text}")
        scope.append((name, dtype, shape))

    def block(self, scope, indent):
        scope = list(scope)
        for _ in range(self.r.randrange(1, 4)):
            self.statement(scope, indent)

    # ---- definitions ---------------------------------------------------------------------------------

    def struct(self, name):
        members = [(f"m{k}", self.dtype(), self.r.choice(self.shapes))
                   for k in range(self.r.randrange(1, 4))]
        if self.structs and self.chance(0.6):
            members.append(("inner", self.r.choice(list(self.structs)), None))
        self.lines += ["", "@qd.dataclass", f"class {name}:"]
        for n, d, s in members:
            self.add(1, f"{n}: {d if d in self.structs else type_text(d, s)}")
        scope = [(f"self.{n}", d, s) for n, d, s in members]
        self.lines += ["", "    @qd.func", "    def put(self, p0):"]
        own = [*scope, ("p0", "i32", ())]
        for text, dtype, shape in self.r.sample(self.places(scope), 1):
            value = self.expr(own, shape, "f" if dtype in FLOATS else "i", 2)[0]
            self.add(2, f"{text} {self.r.choice(['=', '+=', '-='])} {value}")
        self.structs[name] = members

    def func(self, name, template=False):
        params = [(self.dtype(), self.r.choice(self.shapes)) for _ in range(self.r.randrange(1, 3))]
        if self.chance(0.5):
            params.append((self.r.choice(list(self.structs)), None))
        shown = [f"p{k}" + (f": {d if d in self.structs else type_text(d, s)}" if self.chance(0.4) else "")
                 for k, (d, s) in enumerate(params)]
        if template:
            if self.chance(0.3):
                params[0] = (self.r.choice(list(self.structs)), None)
            shown[0] = "p0: qd.template()"
        self.lines += ["", "@qd.func", f"def {name}({', '.join(shown)}):"]
        scope = [(f"p{k}", d, s) for k, (d, s) in enumerate(params)]
        for _ in range(self.r.randrange(3)):
            self.statement(scope, 1)
        if template:
            text, dtype, shape = self.r.choice(self.places(scope[:1]))
            value = self.expr(scope, shape, "f" if dtype in FLOATS else "i", 2)[0]
            self.add(1, f"{text} {self.r.choice(['=', '+=', '*='])} {value}")
        shape, kind = self.r.choice(self.shapes), self.r.choice("if")
        text, dtype = self.expr(scope, shape, kind, 2)
        if self.chance(0.3):
            other, got = self.expr(scope, shape, kind, 2)
            self.add(1, f"if {self.condition(scope)}:")
            self.add(2, f"return {other if got == dtype else f'qd.cast({other}, qd.{dtype})'}")
        self.add(1, f"return {text}")
        (self.changers if template else self.funcs).append((name, params, (dtype, shape)))

    def kernel(self):
        self.ins = [(self.dtype(), self.r.choice(self.shapes)) for _ in range(4)]
        self.args = [(self.dtype(), self.r.choice(self.shapes)) for _ in range(2)]
        self.args.append((self.r.choice(list(self.structs)), None))
        at = len(self.lines)
        given = [(f"a{k}", d, s) for k, (d, s) in enumerate(self.args)]
        scope = [*given, *((f"in{k}[i]", d, s) for k, (d, s) in enumerate(self.ins)),
                 ("qd.cast(i, qd.i32)", "i32", ())]
        self.add(1, f"for i in range({N}):")
        for _ in range(self.r.randrange(4, 10)):
            self.statement(scope, 2)
        for text, dtype, shape in self.places([v for v in scope if v[0][0] == "v"]):
            self.add(2, f"o{len(self.outs)}[i] = {text}")
            self.outs.append((dtype, shape))
        dtype, shape = self.r.choice([("i32", (3,)), ("i64", (2, 2)), ("u32", ())])
        value = self.expr(scope, shape, "i")[0]
        self.add(2, f"acc[(i * 5) & 3] += {value}")
        self.accs.append((dtype, shape))
        funcs, self.funcs = self.funcs, []  # their loops would be parallel here
        values = [(self.r.choice(self.shapes), self.r.choice("if")) for _ in range(2)]
        values = [(*self.expr(given, s, k, 2), s) for s, k in values]
        self.funcs, self.results = funcs, [(d, s) for _, d, s in values]
        self.results.append((self.args[2][0], None))
        self.add(1, f"return {', '.join(v[0] for v in values)}, a2")
        params = [f"in{k}: {self.array(*t)}" for k, t in enumerate(self.ins)]
        params += [f"o{k}: {self.array(*t)}" for k, t in enumerate(self.outs)]
        params += [f"acc: {self.array(*self.accs[0])}"]
        params += [f"a{k}: {self.name(*t)}" for k, t in enumerate(self.args)]
        returns = ", ".join(self.name(*t) for t in self.results)
        self.lines[at:at] = ["", "@qd.kernel", f"def k({', '.join(params)}) -> ({returns}):"]

    def kinds(self):
        """(dtype, shape) of all arrays in the order of the parameters."""
        return [*self.ins, *self.outs, *self.accs]

    def name(self, dtype, shape):
        return dtype if dtype in self.structs else type_text(dtype, shape)

    def array(self, dtype, shape):
        return f"qd.types.ndarray(dtype={type_text(dtype, shape)}, ndim=1)"
