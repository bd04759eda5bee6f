"""Random differentiable kernels for tests/py/test_ad_random.py: the same seed, the same program.

The grammar. F is the program's float type, G another; N, M extents, K how long vectors are.

    program   data func* kernel                              fields may have offsets
    data      inputs, constants, intermediates, outputs, sums, extremes: ndarrays, tensors of torch or fields of scalars,
              vectors, matrices, structs (fields AOS or SOA), as arguments, templates or globals; integers
              for bounds and indices, of our arrays, NumPy's or fields; scalar arguments
    kernel    (value | sum | while | if | task)+             values of the outermost level cross tasks
    task      [serialize] [stop_grad of an input] for i in range(..) | array | field | qd.grouped(..) | qd.ndrange(..): body store+
    body      statement*
    statement value | assign | vector | struct | integer | if | loop | while | update | call
    value     v = float                                      also vectors, matrices, structs, integers
    assign    v = float, v += float                          a value that a loop carries
    vector    u[index] = float, m[index, index] += float, u = vector, m = matrix @ matrix
    struct    s.a = float, s.v[index] = float
    integer   k = (k * c + integer) % N                      an index that is carried, or chosen by an if
    if        if condition: body [else: body]                bodies may break or continue the loop around
    loop      for j in range(bound) | range(bound, bound) | qd.static(range(c)) | qd.ndrange(..): body
    bound     c | scalar argument | shape | n[index] | n[p[index]] | index of an enclosing loop | random | + -
    while     while k < bound | float > c and k < c | True (left by break): body
    update    sum[index] += float, -= float; qd.atomic_min, qd.atomic_max(extreme[index], float)
    store     out[i] = float | vector | matrix; mid[i] = float, read in the same iteration or a later task
    call      float = f(..): funcs with loops, early returns, calls of others; of floats, vectors, structs,
              with templates that they assign to or read from
    float     variable | array[index] | element of a vector, matrix, struct | constant | cast of an integer
              | + - * / % // ** | min max abs floor ceil round sgn | sqrt rsqrt sin cos tan asin acos tanh
              exp log atan2 pow | random | select | a if b else c | cast to G and back | dot, norm, sum, trace, det
    index     loop index | its neighbour | p[index] | carried integer | integer made from a float | random, all % N
    condition float < float | integer == integer | and or not

Every read obeys the global data access rule: inputs are never written, an intermediate is read only
after its one store. Magnitudes are followed and what could grow is squashed, denominators and arguments
of roots and logarithms are kept away from 0, every loop ends: the derivatives exist almost everywhere
and are of a size that central differences can see. `marks` are the constructs that a program has;
CONSTRUCTS is the list of all, `test_ad_random.py` asserts each one's share.

A program is a tree, so that ad_play.py can shrink it: Expr and Stmt hold a text with {} for each part.
"""

import random

from ad_tree import Data, Expr, Scope, Stmt, Stopped, Var, write_block

FUNCTIONS = ["sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "tanh", "exp", "log", "atan2", "pow"]
CONSTRUCTS = FUNCTIONS + """
    par_range par_range2 par_array par_field par_ndrange par_grouped several_tasks crossing top_sum
    static_for for_const for_scalar for_shape for_array for_indirect for_two_sided for_enclosing for_sum
    for_ndrange nested nested_three mixed while_counter while_data while_true break continue early_return
    func func_in_func func_vector func_struct func_template func_array func_loop if if_else and_or
    carried carried_vector carried_matrix carried_struct carried_index chosen_index dynamic_element
    indirect atomic_add atomic_sub atomic_min atomic_max select choice min max abs floor ceil round sgn
    cast_int cast_float cast_back mod floordiv pow_const pow_int divide dot norm matmul
    f32 f64 mixed_precision nd_scalar nd_vector nd_matrix field_scalar field_vector_aos field_vector_soa
    field_matrix field_struct_aos field_struct_soa template_field numpy_constant mid_task mid_same
    store_update stop_grad offset integer_field matrix_field_soa func_returns_vector serialized top_while top_if
    random random_func random_loop random_index for_random torch_scalar torch_vector torch_matrix""".split()
RARE = ["f16"]  # there are a few


MOST = 8.0  # of values that are used on; more is squashed


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.seed, self.count, self.marks, self.room = seed, 0, set(), 26
        self.dtype = self.pick(["f64"] * 9 + ["f32"] * 10 + ["f16"])
        self.other = self.pick(["f64", "f32"])
        self.marks.add(self.dtype)
        self.n, self.m, self.k = self.pick([3, 4, 5]), self.pick([2, 3]), self.pick([2, 3])
        self.bound = self.pick([2, 3, 4])  # the scalar argument
        self.draws = self.chance(0.4)
        self.data, self.funcs, self.globals_read = {}, [], True
        self.make_data()
        self.make_twin()
        self.readable = [d for d in self.data.values() if d.role in ("in", "const") and not d.twin]
        for _ in range(self.pick([0, 1, 1, 2, 2, 3])):
            self.make_func()
        self.body = self.make_kernel()

    # ---- chance

    def pick(self, items):
        return self.r.choice(items)

    def chance(self, p):
        return self.r.random() < p

    def mark(self, *names):
        self.marks.update(names)

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def number(self, low=-2.0, high=2.0):
        v = round(self.r.uniform(low, high), 2)
        return v if abs(v) > 0.1 else 0.37

    # ---- data

    def add(self, name, role, kind, axes, **more):
        home = more.pop("home", None) or self.pick(["nd", "nd", "nd", "nd", "torch", "field", "field"])
        how = "arg" if home != "field" else self.pick(["global", "global", "template"])
        d = Data(name, role, kind, axes, home, how, soa=home == "field" and self.chance(0.5), **more)
        self.data[name] = d
        if home == "field" and d.axes and d.role != "int" and name not in ("x", "t") and self.chance(0.2):
            d.offset = self.pick([-2, 3])  # x and t are given to funcs and looped over
            self.mark("offset")
        if d.role in ("const", "int"):
            return
        words = {"f": "scalar", "v": "vector", "m": "matrix", "s": "struct"}
        mark = f"{home}_{words[kind]}"
        if home == "field" and kind in "vs":
            mark += "_soa" if d.soa else "_aos"
        if home == "field" and kind == "m" and d.soa:
            self.mark("matrix_field_soa")
        self.mark(mark)
        if how == "template":
            self.mark("template_field")

    def make_data(self):
        self.add("x", "in", "f", 1)
        if self.chance(0.5):
            self.add("y", "in", "f", 2)
        if self.chance(0.6):
            self.add("w", "in", "v", 1)
        if self.chance(0.4):
            self.add("g", "in", "m", 1)
        if self.chance(0.4):
            self.add("fs", "in", "s", 1, home="field")
        if self.chance(0.25):
            self.add("z", "in", "f", 0, home="field")
        if self.chance(0.4):
            self.add("c", "const", "f", 1, home="numpy")
        self.add("n", "int", "i", 1, home=self.pick(["nd", "numpy", "field"]), top=4)
        self.add("p", "int", "i", 1, home=self.pick(["nd", "numpy", "field"]), top=self.n)
        self.add("t", "mid", "f", 1)
        if self.chance(0.3):
            self.add("tv", "mid", "v", 1)
        self.add("o", "out", "f", 1)
        if self.chance(0.7):
            self.add("q", "out", "f", 2)
        if self.chance(0.5):
            self.add("ov", "out", "v", 1)
        if self.chance(0.3):
            self.add("om", "out", "m", 1)
        if self.chance(0.3):
            self.add("os", "out", "s", 1, home="field")
        self.add("s", "sum", "f", 1)
        if self.chance(0.3):
            self.add("sv", "sum", "v", 1)
        self.add("lo", "low", "f", 1)
        self.add("hi", "high", "f", 1)

    def make_twin(self):
        """The input that a task stops, and a constant with its numbers for oracles."""
        fits = [d for d in self.data.values() if d.role == "in" and d.kind in "fv" and d.how != "global"]
        self.stopped = None
        if fits and self.chance(0.25):
            d = self.stopped = self.pick(fits)
            twin = Data(d.name + "k", "const", d.kind, d.axes, d.home, d.how, d.soa)
            twin.offset, twin.twin = d.offset, d.name
            self.data[twin.name] = twin

    def extents(self, d):
        if d.role in ("sum", "low", "high"):
            return (2,)
        return ((), (self.n,), (self.n, self.m))[d.axes]

    def shape(self, d):
        """As allocated: fields that funcs read by their names are known by their extents (ad_play.py)."""
        shape, order = self.extents(d), ["w", "g", "fs", "y", "n", "p"]
        if d.home == "field" and d.how == "global" and d.name in order:
            shape = (shape[0] + 1 + order.index(d.name), *shape[1:])
        return shape

    # ---- integers and indices

    def integer(self, sc, depth=1):
        known = sc.of("i")
        roll = self.r.random()
        if known and roll < 0.6:
            name, v = self.pick(known)
            return Expr("i", name, span=v.span)
        if roll < 0.75 and depth:
            return Expr("i", self.pick(["({} + {})", "({} * {})", "({} - {})"]),
                        [self.integer(sc, 0), self.integer(sc, 0)], span=(-99, 99))
        if roll < 0.9 and depth:
            return self.integer_read(sc, self.pick(["n", "p"]))
        c = self.r.randrange(0, 4)
        return Expr("i", str(c), span=(c, c))

    def integer_read(self, sc, name):
        d = self.data[name]
        if sc.func and d.how != "global":
            return Expr("i", "2", span=(2, 2))
        if d.home == "field":
            self.mark("integer_field")
        return Expr("i", name + "[{}]", [self.index(sc, self.n, deep=False)], span=(0, d.top - 1))

    def index(self, sc, n, deep=True):
        """An integer from 0 to n - 1."""
        fits = [(k, v) for k, v in sc.of("i") if v.span and v.span[0] >= 0 and v.span[1] < n]
        roll = self.r.random()
        if fits and roll < 0.5:
            name, v = self.pick(fits)
            if v.carried:
                self.mark("carried_index")
            return Expr("i", name, span=v.span)
        if deep and roll < 0.65 and (not sc.func or self.data["p"].how == "global"):
            self.mark("indirect")
            inner = self.integer_read(sc, "p")
            return inner if n == self.n else Expr("i", f"({{}} % {n})", [inner], span=(0, n - 1))
        if deep and roll < 0.7 and sc.of("f"):
            self.mark("cast_int")
            return Expr("i", f"(qd.cast(qd.abs({{}}) * 7.0, qd.i32) % {n})", [self.leaf(sc)], span=(0, n - 1))
        if roll < 0.9:
            return Expr("i", f"(({{}}) % {n})", [self.integer(sc, int(deep))], span=(0, n - 1))
        if self.draws and roll < 0.95:
            self.mark("random_index")
            return Expr("i", f"qd.cast(qd.random(qd.f32) * {n}.0, qd.i32)", span=(0, n - 1))
        c = self.r.randrange(n)
        return Expr("i", str(c), span=(c, c))

    # ---- floats

    def squash(self, e, most):
        if e.size <= most:
            return e
        roll = self.r.random()
        if most >= 1 and roll < 0.35:
            return Expr("f", "qd.sin({})", [e], 1.0)
        if most >= 1 and roll < 0.6:
            return Expr("f", "qd.tanh({})", [e], 1.0)
        return Expr("f", f"({{}} * {most / e.size:.3g})", [e], most)

    def read(self, sc, d):
        """A float out of an array."""
        at = [self.index(sc, n) for n in self.extents(d)]
        place = d.name + "[" + (", ".join("{}" + self.shift(d) for _ in at) or "None") + "]"
        size = 2.5 if d.role in ("mid",) else 1.5
        if d.kind == "s":
            if self.chance(0.5):
                return Expr("f", place + ".a", at, size)
            place += ".v"
        if d.kind in "vs":
            return self.element(sc, place, at, "v", size)
        if d.kind == "m":
            return self.element(sc, place, at, "m", size)
        return Expr("f", place, at, size)

    @staticmethod
    def shift(d):
        """From an index that counts from 0."""
        return f" + ({d.offset})" if d.offset else ""

    def element(self, sc, text, parts, kind, size):
        def one():
            if self.chance(0.5):
                return Expr("i", str(self.r.randrange(self.k)))
            self.mark("dynamic_element")
            return self.index(sc, self.k, deep=False)
        if kind == "v":
            return Expr("f", text + "[{}]", [*parts, one()], size)
        return Expr("f", text + "[{}, {}]", [*parts, one(), one()], size)

    def leaf(self, sc):
        roll = self.r.random()
        if roll < 0.4 and sc.of("f"):
            name, v = self.pick(sc.of("f"))
            return Expr("f", name, size=v.size)
        if roll < 0.5 and sc.of("v") + sc.of("m"):
            name, v = self.pick(sc.of("v") + sc.of("m"))
            return self.element(sc, name, [], v.kind, v.size)
        if roll < 0.55 and sc.of("s"):
            name, v = self.pick(sc.of("s"))
            return Expr("f", name + ".a", size=v.size) if self.chance(0.5) else \
                self.element(sc, name + ".v", [], "v", v.size)
        arrays = [d for d in self.readable if not sc.func or d.how == "global"]
        if roll < 0.87 and arrays:
            d = self.pick(arrays)
            if d.role == "const":
                self.mark("numpy_constant")
            if d.role == "mid":
                self.mark("mid_task")
            return self.read(sc, d)
        if roll < 0.91 and sc.of("i"):
            name, v = self.pick(sc.of("i"))
            self.mark("cast_float")
            return Expr("f", f"qd.cast({name}, F)", size=float(max(map(abs, v.span))))
        if roll < 0.93 and not sc.func:
            return Expr("f", "fa", size=1.5)
        if roll < 0.95 and self.draws:
            self.mark("random", *(["random_func"] if sc.func else []), *(["random_loop"] if sc.dynamic else []))
            return Expr("f", self.pick(["qd.random(F)", "qd.random(F)", "qd.cast(qd.random(G), F)"]), size=1.0)
        c = self.number()
        return Expr("f", f"{c}", size=abs(c))

    def above(self, e, least):
        """Something of at least `least`."""
        e = self.squash(e, MOST)
        if self.chance(0.7) or "random" in e.write():
            self.mark("abs")
            return Expr("f", f"(qd.abs({{}}) + {least})", [e], e.size + least)
        return Expr("f", f"({{}} * {{}} + {least})", [e, e], e.size ** 2 + least)

    def float(self, sc, depth=3):
        if depth <= 0 or self.chance(0.12):
            return self.leaf(sc)
        e = self.pick([self.sum_or_product] * 4 + [self.function] * 5 + [self.kinked] * 4 + [self.chosen]
                      + [self.casted] + [self.reduced] + [self.called] * 2)(sc, depth - 1)
        return self.squash(e, MOST)

    def sum_or_product(self, sc, depth):
        a, b = self.float(sc, depth), self.float(sc, depth)
        op = self.pick("++-**/")
        if op == "/":
            self.mark("divide")
            return Expr("f", "({} / {})", [a, self.above(b, 0.6)], a.size / 0.6)
        return Expr("f", f"({{}} {op} {{}})", [a, b], a.size * b.size if op == "*" else a.size + b.size)

    def function(self, sc, depth):
        name = self.pick(FUNCTIONS + ["**", "** int"])
        e = self.float(sc, depth)
        if name == "** int":
            self.mark("pow_int")
            e = self.squash(e, 2.0)
            n = self.pick([2, 2, 3, 4])
            return Expr("f", f"({{}} ** {n})", [e], max(1.0, e.size) ** n)
        if name == "**":
            self.mark("pow_const")
            c = self.pick([-1.5, -1.0, 0.5, 1.5, 2.0, 2.5])
            return Expr("f", f"({{}} ** ({c}))", [self.above(self.squash(e, 2.0), 0.4)], 13.0)
        self.mark(name)
        if name in ("sin", "cos", "tanh"):
            return Expr("f", f"qd.{name}({{}})", [e], 1.0)
        if name == "tan":
            return Expr("f", "qd.tan({})", [self.squash(e, 1.1)], 2.0)
        if name in ("asin", "acos"):
            return Expr("f", f"qd.{name}(0.9 * qd.sin({{}}))", [e], 2.7)
        if name == "exp":
            return Expr("f", "qd.exp({})", [self.squash(e, 1.5)], 4.5)
        if name == "atan2":
            return Expr("f", "qd.atan2({}, {})", [e, self.above(self.float(sc, depth), 0.4)], 1.6)
        if name == "pow":
            y = self.squash(self.float(sc, depth), 1.5)
            return Expr("f", "qd.pow({}, {})", [self.above(self.squash(e, 1.5), 0.5), y], 5.0)
        e = self.above(e, 0.4)
        size = {"sqrt": max(1.0, e.size ** 0.5), "rsqrt": 1.6, "log": max(1.0, e.size)}[name]
        return Expr("f", f"qd.{name}({{}})", [e], size)

    def kinked(self, sc, depth):
        a = self.float(sc, depth)
        name = self.pick(["min", "max", "min", "max", "abs", "floor", "ceil", "round", "sgn", "mod", "floordiv"])
        self.mark(name)
        if name in ("min", "max"):
            b = self.float(sc, depth)
            text = self.pick([f"qd.{name}({{}}, {{}})", f"{name}({{}}, {{}})"])
            return Expr("f", text, [a, b], max(a.size, b.size))
        if name in ("abs", "sgn"):
            return Expr("f", "qd.abs({})" if name == "abs" else "qd.math.sign({})", [a], max(a.size, 1.0))
        if name in ("floor", "ceil", "round"):
            return Expr("f", f"(qd.{name}(1.7 * {{}}) * {{}})", [a, self.leaf(sc)], a.size * 6 + 3)
        c = abs(self.number(0.5, 1.9))
        if name == "floordiv":
            return Expr("f", f"(({{}} // {c}) * {{}})", [a, self.leaf(sc)], a.size / c * 2.5 + 3)
        if self.chance(0.3):
            return Expr("f", "({} % {})", [a, self.above(self.leaf(sc), 0.7)], MOST)
        return Expr("f", f"({{}} % {c})", [a], c)

    def chosen(self, sc, depth):
        a, b, c = self.float(sc, depth), self.float(sc, depth), self.condition(sc)
        if self.chance(0.5):
            self.mark("select")
            return Expr("f", "qd.select({}, {}, {})", [c, a, b], max(a.size, b.size))
        self.mark("choice")
        return Expr("f", "({} if {} else {})", [a, c, b], max(a.size, b.size))

    def casted(self, sc, depth):
        e = self.float(sc, depth)
        if self.chance(0.6):
            self.mark("cast_back", "mixed_precision")
            return Expr("f", "qd.cast(qd.cast({}, G), F)", [e], e.size)
        self.mark("cast_int")
        return Expr("f", "(qd.cast({} * 2.0, qd.i32) * {})", [e, self.leaf(sc)], e.size * 5)

    def reduced(self, sc, depth):
        vs, ms = sc.of("v"), sc.of("m")
        if vs and (not ms or self.chance(0.6)):
            (a, va), (b, vb) = self.pick(vs), self.pick(vs)
            if self.chance(0.5):
                self.mark("dot")
                return Expr("f", f"{a}.dot({b})", size=self.k * va.size * vb.size)
            self.mark("norm")
            text = self.pick([f"{a}.norm_sqr()", f"qd.sqrt({a}.norm_sqr() + 0.2)", f"{a}.sum()"])
            return Expr("f", text, size=self.k * max(1.0, va.size ** 2))
        if ms:
            name, v = self.pick(ms)
            return Expr("f", f"{name}.{self.pick(['trace()', 'determinant()', 'sum()'])}",
                        size=self.k ** 2 * max(1.0, v.size ** self.k))
        return self.sum_or_product(sc, depth)

    def called(self, sc, depth):
        usable = [f for f in self.funcs if f["result"] == "f"]
        if not usable or sc.top:
            return self.sum_or_product(sc, depth)
        f = self.pick(usable)
        args = [self.argument(sc, kind) for kind in f["kinds"]]
        if None in args:
            return self.sum_or_product(sc, depth)
        self.mark("func", *f["marks"])
        if sc.func:
            self.mark("func_in_func")
        return Expr("f", f["name"] + "(" + ", ".join("{}" for _ in args) + ")", args, 3.0)

    def argument(self, sc, kind):
        if kind == "f":
            return self.squash(self.float(sc, 1), 5.0)
        if kind == "i":
            return Expr("i", "(({}) % 4)", [self.integer(sc)], span=(0, 3))
        if kind == "array":
            fits = [d for d in self.data.values() if d.role == "in" and d.kind == "f" and d.axes == 1]
            return None if sc.func else Expr("array", self.pick(fits).name)
        known = [n for n, v in sc.of(kind) if v.size <= 5]
        if kind == "s" or (known and self.chance(0.7)):
            return Expr(kind, self.pick(known)) if known else None
        return self.vector(sc, 0) if kind == "v" else None

    def vector(self, sc, depth):
        usable = [f for f in self.funcs if f["result"] == "v"]
        if usable and depth and not sc.top and self.chance(0.4):
            f = self.pick(usable)
            self.mark("func", *f["marks"])
            args = [self.argument(sc, kind) for kind in f["kinds"]]
            return Expr("v", f["name"] + "(" + ", ".join("{}" for _ in args) + ")", args, 2.0)
        roll = self.r.random()
        known = [n for n, v in sc.of("v")]
        if roll < 0.35 or not known:
            parts = [self.squash(self.float(sc, 1), 2.0) for _ in range(self.k)]
            return Expr("v", "qd.Vector([" + ", ".join("{}" for _ in parts) + "], dt=F)", parts, 2.0)
        a = Expr("v", self.pick(known), size=2.0)
        if roll < 0.6:
            return Expr("v", f"({{}} * {self.number(-0.5, 0.5)} + {{}} * 0.5)",
                        [a, Expr("v", self.pick(known), size=2.0)], 2.0)
        if roll < 0.8 and sc.of("m"):
            self.mark("matmul")
            return Expr("v", f"(({{}} @ {{}}) * {0.4 / self.k:.2f})", [Expr("m", self.pick(sc.of("m"))[0]), a], 2.0)
        text = self.pick(["qd.sin({})", "qd.tanh({})", "qd.max({}, 0.1)", "qd.abs({})"])
        return Expr("v", text, [a], 2.0)

    def matrix(self, sc, depth):
        known = [n for n, v in sc.of("m")]
        if known and self.chance(0.5):
            self.mark("matmul")
            a, b = Expr("m", self.pick(known)), Expr("m", self.pick(known))
            return Expr("m", f"(({{}} @ {{}}) * {0.5 / self.k:.2f})", [a, b], 2.0)
        if known and self.chance(0.4):
            return Expr("m", self.pick(["{}.transpose()", "qd.cos({})", "({} * 0.7)"]),
                        [Expr("m", self.pick(known))], 2.0)
        parts = [self.squash(self.float(sc, 0), 2.0) for _ in range(self.k ** 2)]
        rows = ", ".join("[" + ", ".join("{}" for _ in range(self.k)) + "]" for _ in range(self.k))
        return Expr("m", f"qd.Matrix([{rows}], dt=F)", parts, 2.0)

    # ---- conditions

    def condition(self, sc, deep=True):
        roll = self.r.random()
        if deep and roll < 0.2:
            self.mark("and_or")
            return Expr("b", f"({{}} {self.pick(['and', 'or'])} {{}})",
                        [self.condition(sc, False), self.condition(sc, False)])
        if deep and roll < 0.27:
            return Expr("b", "(not {})", [self.condition(sc, False)])
        if roll < 0.5 and sc.of("i"):
            name, v = self.pick(sc.of("i"))
            return Expr("b", f"({name} {self.pick(['<', '>=', '==', '!='])} {self.r.randrange(0, 4)})")
        a, b = self.float(sc, 1), self.float(sc, 0)
        return Expr("b", f"({{}} {self.pick(['<', '>', '<=', '>='])} {{}})", [a, b])

    # ---- statements

    def block(self, sc, least=1, most=4):
        out = []
        for _ in range(self.r.randint(least, most)):
            if self.room <= 0:
                break
            self.room -= 1
            got = self.statement(sc)
            out += got
        return out or self.let(sc)

    def statement(self, sc):
        makers = [self.let] + [self.assign] * 5 + [self.vectors] * 3 + [self.structs] * 2 + [self.integers] * 2
        makers += [self.if_] * 3
        if sc.loops < 3:
            makers += [self.loop] * 5 + [self.while_] * 2
        if not sc.func:
            makers += [self.update] * 2
        if any(f["result"] == "" for f in self.funcs) and not sc.top:
            makers += [self.changed]
        if sc.inside and sc.dynamic and self.chance(0.3):
            makers += [self.leave] * 6
        return self.pick(makers)(sc)

    def let(self, sc):
        name, e = self.fresh("v"), self.squash(self.float(sc), 4.0)
        sc.vars[name] = Var("f", 4.0, carried=True)
        return [Stmt(name + " = {}", [e if e.text[0] not in "-0123456789" else Expr("f", "qd.cast({}, F)", [e])])]

    def assign(self, sc):
        names = [n for n, v in sc.of("f") if v.carried]
        if not names:
            return self.let(sc)
        name = self.pick(names)
        if sc.dynamic:
            self.mark("carried")
        roll, size = self.r.random(), sc.vars[name].size
        if roll < 0.25:
            e = self.squash(self.float(sc), 1.0)
            sc.vars[name].size = max(size, 40.0)  # a few dozen times at most
            return [Stmt(name + self.pick([" += {}", " -= {}"]), [e])]
        e = self.squash(self.float(sc, 2), size / 2)
        if roll < 0.6:
            return [Stmt(f"{name} = {name} * {self.pick([0.5, 0.4, -0.5])} + {{}}", [e])]
        if roll < 0.8:
            return [Stmt(f"{name} = qd.sin({name} * {{}}) + {{}}", [self.squash(self.float(sc, 1), 2.0),
                                                                     self.squash(e, max(0.5, size - 1))])]
        return [Stmt(name + " = {}", [self.squash(self.float(sc), size)])]

    def vectors(self, sc):
        kind = self.pick("vm")
        known = [n for n, v in sc.of(kind) if v.carried]
        if not known or self.chance(0.1):
            name = self.fresh("u" if kind == "v" else "m")
            e = self.vector(sc, 1) if kind == "v" else self.matrix(sc, 1)
            sc.vars[name] = Var(kind, 2.0, carried=True)
            return [Stmt(name + " = {}" + ("" if e.text[0] in "q(" else " + 0.0"), [e])]
        name = self.pick(known)
        if sc.dynamic:
            self.mark("carried_vector" if kind == "v" else "carried_matrix")
        if self.chance(0.35):
            return [Stmt(name + " = {}", [self.vector(sc, 1) if kind == "v" else self.matrix(sc, 1)])]
        place = self.element(sc, name, [], kind, 2.0)
        if self.chance(0.4):
            sc.vars[name].size = 40.0
            return [Stmt("{} += {}", [place, self.squash(self.float(sc, 2), 1.0)])]
        return [Stmt("{} = {}", [place, self.squash(self.float(sc, 2), 2.0)])]

    def structs(self, sc):
        known = [n for n, v in sc.of("s")]
        if not known:
            name = self.fresh("s")
            parts = [self.squash(self.float(sc, 1), 2.0), self.vector(sc, 1)]
            sc.vars[name] = Var("s", 2.0, carried=True)
            return [Stmt(name + " = S(a={}, v={})", parts)]
        name = self.pick(known)
        if sc.dynamic:
            self.mark("carried_struct")
        if self.chance(0.4):
            return [Stmt(f"{name}.a = {{}}", [self.squash(self.float(sc, 2), 2.0)])]
        place = self.element(sc, name + ".v", [], "v", 2.0)
        return [Stmt("{} = {}", [place, self.squash(self.float(sc, 2), 2.0)])]

    def integers(self, sc):
        known = [n for n, v in sc.of("i") if v.carried]
        if not known:
            name, e = self.fresh("k"), self.index(sc, self.n)
            sc.vars[name] = Var("i", span=(0, self.n - 1), carried=True)
            return [Stmt(name + " = {} + 0", [e])]
        name = self.pick(known)
        step = Stmt(f"{name} = ({name} * {self.r.randrange(1, 4)} + {{}}) % {self.n}", [self.integer(sc)])
        if self.chance(0.5):
            self.mark("chosen_index")
            return [Stmt("if {}:", [self.condition(sc)], [step])]
        return [step]

    def if_(self, sc):
        self.mark("if")
        c = self.condition(sc)
        body = self.block(sc.inner(), 1, 2)
        other = None
        if self.chance(0.4):
            self.mark("if_else")
            other = self.block(sc.inner(), 1, 2)
        return [Stmt("if {}:", [c], body, other)]

    def leave(self, sc):
        word = self.pick(["break", "continue"])
        if sc.inside == "static":
            return self.assign(sc)
        self.mark(word)
        body = [Stmt(word)]
        if self.chance(0.4):
            body = self.assign(sc.inner()) + body
        return [Stmt("if {}:", [self.condition(sc)], body)]

    # ---- loops

    def limit(self, sc):
        """(text, parts, most) of a bound."""
        ints = [(n, v) for n, v in sc.of("i") if v.span[0] >= 0 and v.span[1] < 5 and not v.carried]
        outer = not sc.func
        roll = self.r.random()
        if roll < 0.17:
            c = self.r.randrange(1, 4)
            self.mark("for_const")
            return str(c), [], c
        if roll < 0.32 and outer:
            self.mark("for_scalar")
            return "nb", [], self.bound
        if roll < 0.42 and outer:
            self.mark("for_shape")
            return self.pick(["x.shape[0]", "o.shape[0]"]), [], self.n
        if roll < 0.62 and (outer or self.data["n"].how == "global"):
            self.mark("for_array")
            return "{}", [self.integer_read(sc, "n")], 3
        if roll < 0.75 and all(outer or self.data[a].how == "global" for a in "np"):
            self.mark("for_indirect")
            return "n[{}]", [self.integer_read(sc, "p")], 3
        if self.draws and roll < 0.85:
            self.mark("for_random")
            return "qd.cast(qd.random(qd.f32) * 4.0, qd.i32)", [], 3
        if ints:
            self.mark("for_enclosing")
            name, v = self.pick(ints)
            return (name, [], v.span[1]) if self.chance(0.5) else (f"({name} + 1)", [], v.span[1] + 1)
        self.mark("for_const")
        return "2", [], 2

    def loop(self, sc):
        kind = self.pick(["static"] * 2 + ["range"] * 6 + ["two"] * 2 + ["nd"])
        name = self.fresh("j")
        if kind == "static":
            c = self.r.randrange(1, 4)
            self.mark("static_for", *(["mixed"] if sc.dynamic else []))
            inner = sc.inner(loops=sc.loops + 1, static=sc.static + 1, inside="static")
            inner.vars[name] = Var("i", span=(0, c - 1))
            return [Stmt(f"for {name} in qd.static(range({c})):", body=self.block(inner, 1, 3))]
        inner = sc.inner(loops=sc.loops + 1, dynamic=sc.dynamic + 1, inside="for")
        self.mark(*(["nested"] if sc.dynamic else []), *(["nested_three"] if sc.dynamic > 1 else []),
                  *(["mixed"] if sc.static else []))
        text, parts, most = self.limit(sc)
        if kind == "nd":
            self.mark("for_ndrange")
            other = self.fresh("j")
            inner.vars[name], inner.vars[other] = Var("i", span=(0, 1)), Var("i", span=(0, most))
            return [Stmt(f"for {name}, {other} in qd.ndrange(2, {text}):", parts, self.block(inner, 1, 3))]
        if kind == "two":
            self.mark("for_two_sided")
            low, more, _ = self.limit(sc)
            inner.vars[name] = Var("i", span=(0, most))
            if self.chance(0.4):
                self.mark("for_sum")
                return [Stmt(f"for {name} in range({low}, {low} + {text}):", more + more + parts,
                             self.block(self.widened(inner, name), 1, 3))]
            return [Stmt(f"for {name} in range({low}, {text}):", more + parts, self.block(inner, 1, 3))]
        inner.vars[name] = Var("i", span=(0, most))
        return [Stmt(f"for {name} in range({text}):", parts, self.block(inner, 1, 3))]

    def widened(self, sc, name):
        sc.vars[name] = Var("i", span=(0, 12))
        return sc

    def while_(self, sc):
        kind, name = self.pick(["counter", "data", "true"]), self.fresh("k")
        self.mark("while_" + kind, *(["nested"] if sc.dynamic else []))
        inner = sc.inner(loops=sc.loops + 1, dynamic=sc.dynamic + 1, inside="while")
        most = self.r.randrange(2, 6)
        count = Stmt(f"{name} += 1")
        start = Stmt(f"{name} = 0")
        inner.vars[name] = Var("i", span=(0, max(most + 1, 7)))
        if kind == "counter":
            text, parts, limit = self.limit(sc)
            inner.vars[name] = Var("i", span=(0, max(limit, 1)))
            return [start, Stmt(f"while {name} < {text}:", parts, [count, *self.block(inner, 1, 3)])]
        if kind == "true":
            self.mark("break")
            end = Stmt("if {}:", [Expr("b", f"({name} > {most} or {{}})", [self.condition(sc)])], [Stmt("break")])
            body = [count, end, *self.block(inner, 1, 3)] if self.chance(0.5) else \
                [count, Stmt(f"if {name} > 6:", body=[Stmt("break")]), *self.block(inner, 1, 3), end]
            return [start, Stmt("while True:", body=body)]
        floats = [n for n, v in sc.of("f") if v.carried]
        first = [] if floats else self.let(sc)
        v = self.pick([n for n, v in sc.of("f") if v.carried])
        inner.vars[v] = sc.vars[v]
        shrinks = Stmt(f"{v} = {v} * {self.pick([0.6, 0.7, -0.5])} + {{}}", [self.squash(self.float(inner, 1), 0.3)])
        return [*first, start, Stmt(f"while qd.abs({v}) > {self.pick([0.2, 0.5, 0.8])} and {name} < {most}:",
                                    body=[count, *self.block(inner, 1, 2), shrinks])]

    # ---- updates of arrays and calls that change a variable

    def update(self, sc):
        name = self.pick(["s", "s", "s", "sv", "lo", "hi"])
        if name not in self.data:
            name = "s"
        d, e = self.data[name], self.squash(self.float(sc, 2), 3.0)
        at = self.index(sc, 2)
        if d.offset:
            at = Expr("i", "{}" + self.shift(d), [at])
        if d.role in ("low", "high"):
            word = "min" if d.role == "low" else "max"
            self.mark(f"atomic_{word}")
            return [Stmt(f"qd.atomic_{word}({name}[{{}}], {{}})", [at, e])]
        place = Expr("f", name + "[{}]", [at])
        if d.kind == "v":
            place = Expr("f", name + f"[{{}}][{self.r.randrange(self.k)}]", [at]) if d.soa else \
                self.element(sc, name + "[{}]", [at], "v", 1.0)  # of SOA: not at a dynamic index
        op = self.pick("+-")
        self.mark("atomic_add" if op == "+" else "atomic_sub")
        if self.chance(0.5):
            return [Stmt(f"qd.atomic_{'add' if op == '+' else 'sub'}({{}}, {{}})", [place, e])]
        return [Stmt(f"{{}} {op}= {{}}", [place, e])]

    def changed(self, sc):
        f = self.pick([f for f in self.funcs if f["result"] == ""])
        names = [n for n, v in sc.of("f") if v.carried]
        if not names:
            return self.let(sc)
        name = self.pick(names)
        self.mark("func", *f["marks"])
        return [Stmt(f"{f['name']}({name}, {{}})", [self.squash(self.float(sc, 1), 5.0)])]

    # ---- funcs

    def make_func(self):
        name = f"f{len(self.funcs)}"
        form = self.pick(["floats", "floats", "vector", "vector result", "struct", "template", "array"])
        sc, room = Scope({}, func=True), self.room
        marks, kinds, params, self.room = set(), [], [], 6
        if form == "floats":
            kinds, params = ["f", "f", "i"], ["a", "b", "e"]
            sc.vars.update(a=Var("f", 5.0), b=Var("f", 5.0), e=Var("i", span=(0, 3)))
        elif form.startswith("vector"):
            kinds, params, marks = ["v", "f"], ["a", "b"], {"func_vector"}
            sc.vars.update(a=Var("v", 5.0), b=Var("f", 5.0))
        elif form == "struct":
            kinds, params, marks = ["s", "f"], ["a", "b"], {"func_struct"}
            sc.vars.update(a=Var("s", 5.0), b=Var("f", 5.0))
        elif form == "array":
            kinds, params, marks = ["array", "i", "f"], ["a: qd.template()", "e", "b"], {"func_array"}
            sc.vars.update(b=Var("f", 5.0), e=Var("i", span=(0, 3)))
        else:
            kinds, params, marks = ["f", "f"], ["a: qd.template()", "b"], {"func_template"}
            sc.vars.update(b=Var("f", 5.0))
        outer, self.marks = self.marks, set()
        result = {"template": "", "vector result": "v"}.get(form, "f")
        self.returns = result
        body = []
        if result == "v":
            self.marks.add("func_returns_vector")
        if form == "array":
            body = [Stmt(f"r0 = a[e % {self.n}] * b")]
            sc.vars["r0"] = Var("f", 8.0, carried=True)
        if form == "template":
            sc.vars["a"] = Var("f", 8.0, carried=True)
        if result and self.chance(0.6):
            self.marks.add("early_return")
            early = self.early(sc)
            if self.chance(0.6):
                self.marks.add("func_loop")
                inner = sc.inner(loops=1, dynamic=1, inside="for")
                text, parts, most = self.limit(sc)
                j = self.fresh("j")
                body += self.let(sc)
                inner.vars.update(sc.vars)
                inner.vars[j] = Var("i", span=(0, most))
                first = [self.early(inner)] if self.chance(0.5) else []
                inside = first + self.block(inner, 1, 2)
                inside += [] if first else [self.early(inner)]
                body.append(Stmt(f"for {j} in range({text}):", parts, inside))
            else:
                body.append(early)
        body += self.block(sc, 1, 3)
        if form == "template":
            body.append(Stmt(f"a = a * {self.pick([0.4, -0.3])} + {{}}", [self.squash(self.float(sc, 2), 2.0)]))
        else:
            body.append(Stmt("return {}", [self.returned(sc)]))
        marks |= self.marks
        self.marks, self.room = outer, room
        self.funcs.append(dict(name=name, kinds=kinds, params=params, body=body, result=result, marks=marks))

    def returned(self, sc):
        if self.returns == "v":
            return Expr("v", "(qd.tanh({}) + {} * 0.5)", [self.vector(sc, 0), self.squash(
                self.all_of(sc, self.float(sc, 1)), 1.0)], 2.0)
        return Expr("f", "qd.cast({}, F)", [self.squash(self.all_of(sc, self.float(sc, 2)), 3.0)], 3.0)

    def early(self, sc):
        return Stmt("if {}:", [self.condition(sc)], [Stmt("return {}", [self.returned(sc)])])

    # ---- the kernel

    def make_kernel(self):
        body, top = [], Scope({}, top=True)
        for k in range(self.pick([1, 2, 2, 3])):
            if self.chance(0.25):
                self.mark("crossing")
                body += self.let(top)
                next(v for v in reversed(top.vars.values())).carried = False
            if self.chance(0.15):
                self.mark("top_sum")
                body.append(Stmt(f"s[{self.r.randrange(2)}{self.shift(self.data['s'])}] += {{}}", [self.squash(self.float(top, 2), 3.0)]))
            if self.chance(0.12):
                self.mark("top_while")
                body += self.let(top) + self.without_draws(self.while_, top)
            if self.chance(0.1):
                self.mark("top_if")
                body += self.let(top) + self.without_draws(self.if_, top)
            self.room = 16 if k else 22
            body += self.task(top, first=k == 0)
            if k:
                self.mark("several_tasks")
        return body

    def without_draws(self, maker, top):
        """Between tasks random numbers are not drawn in branches: one that is never taken counts for the numbers
        of later tasks where a kernel is interpreted as lowered, not where passes have removed it."""
        draws, self.draws, self.room = self.draws, False, 3
        got = maker(top)
        self.draws = draws
        return got

    def stores(self, axes):
        return [d for d in self.data.values() if d.role in ("mid", "out") and d.axes == axes and not d.top]

    def task(self, top, first):
        sc = top.inner(top=False)
        for v in sc.vars.values():
            v.carried = False
        axes = self.pick([1, 1, 1, 2]) if "q" in self.data or "y" in self.data else 1
        head, names = self.head(axes)
        for n, most in zip(names, (self.n, self.m)):
            sc.vars[n] = Var("i", span=(0, most - 1))
        body = []
        pre = self.stores(axes)
        if pre and self.chance(0.3):  # a store, read again in the same iteration
            d = self.pick(pre)
            if d.kind == "f":
                self.mark("mid_same")
                d.top = True
                body += self.store(sc, d, names)
                v = self.fresh("v")
                at = ", ".join(n + self.shift(d) for n in names)
                body.append(Stmt(f"{v} = {d.name}[{at}] * {{}}", [self.squash(self.float(sc, 1), 2.0)]))
                sc.vars[v] = Var("f", 6.0, carried=True)
        body += self.start(sc)
        body += self.block(sc, 3, 6)
        free = self.stores(axes)
        self.r.shuffle(free)
        if first and axes == 1 and not self.data["t"].top:
            free = [self.data["t"], *(d for d in free if d.name != "t")]
        for d in free[:self.r.randint(1, 2)]:
            d.top = True
            body += self.store(sc, d, names)
        if not free or self.chance(0.3):
            self.mark("atomic_add")
            body.append(Stmt("s[{}" + self.shift(self.data["s"]) + "] += {}", [self.index(sc, 2), self.squash(self.all_of(sc, self.leaf(sc)), 3.0)]))
        self.readable += [d for d in self.data.values() if d.role == "mid" and d.top and d not in self.readable]
        loop = Stmt(head, body=body)
        if self.stopped and self.chance(0.6):
            self.mark("stop_grad")
            loop = Stopped(self.stopped.name, loop)
        if self.chance(0.07):
            self.mark("serialized")
            return [Stmt("qd.loop_config(serialize=True)"), loop]
        return [loop]

    def start(self, sc):
        """What the loops of a task will carry."""
        out = self.let(sc)
        if self.draws:  # for the same reason every task draws
            name = self.fresh("v")
            sc.vars[name] = Var("f", 1.0, carried=True)
            out.append(Stmt(name + " = qd.random(F) + 0.0"))
        for maker, p in ((self.let, 0.4), (self.vectors, 0.6), (self.structs, 0.35), (self.integers, 0.3)):
            out += maker(sc) if self.chance(p) else []
        if self.chance(0.3):
            name = self.fresh("m")
            e = self.matrix(sc, 1)
            sc.vars[name] = Var("m", 2.0, carried=True)
            out.append(Stmt(name + " = {}", [e]))
        return out

    def all_of(self, sc, e):
        """e and what the statements before it made."""
        for name, v in list(sc.vars.items()):
            if v.carried and v.kind in "fvms":
                part = Expr("f", {"f": "{}", "v": "{}.sum()", "m": "{}.sum()", "s": "{}.a"}[v.kind].format(name),
                            size=v.size * self.k)
                e = Expr("f", "({} + {})", [e, self.squash(part, 1.0)], e.size + 1.0)
        return e

    def head(self, axes):
        i, j = self.fresh("i"), self.fresh("i")
        arrays = [d for d in self.data.values() if d.axes == axes and d.kind in "fvm" and d.home != "numpy"
                  and d.role in ("in", "out", "mid") and not d.offset and self.shape(d) == self.extents(d)]
        roll = self.r.random()
        if roll < 0.4 and arrays:
            d = self.pick(arrays)
            self.mark("par_field" if d.home == "field" else "par_array")
            if self.chance(0.3):
                self.mark("par_grouped")
                names = [f"{i}[{k}]" for k in range(axes)]
                return f"for {i} in qd.grouped({d.name}):", names
            return f"for {', '.join([i, j][:axes])} in {d.name}:", [i, j][:axes]
        if axes == 2:
            self.mark("par_ndrange")
            return f"for {i}, {j} in qd.ndrange({self.n}, {self.m}):", [i, j]
        if roll < 0.55:
            self.mark("par_range2")
            return f"for {i} in range(1, x.shape[0]):", [i]
        self.mark("par_range")
        return f"for {i} in range({self.pick([str(self.n), 'x.shape[0]', 'nb'])}):" .replace(
            "nb", "nb" if self.bound <= self.n else str(self.n)), [i]

    def store(self, sc, d, names):
        place = f"{d.name}[{', '.join(n + self.shift(d) for n in names)}]"
        size = 2.5
        if d.kind == "f":
            out = [Stmt(place + " = {}", [self.squash(self.all_of(sc, self.float(sc)), size)])]
            if d.role == "out" and d.name == "o" and self.chance(0.4):
                self.mark("store_update")
                j = self.fresh("j")
                inner = sc.inner(loops=sc.loops + 1, dynamic=sc.dynamic + 1)
                inner.vars[j] = Var("i", span=(0, 2))
                out.append(Stmt(f"for {j} in range(2):", body=[
                    Stmt(place + " += {}", [self.squash(self.float(inner, 2), size)])]))
            return out
        if d.kind == "s":
            return [Stmt(place + ".a = {}", [self.squash(self.all_of(sc, self.float(sc)), size)]),
                    Stmt(place + ".v = {}", [self.vector(sc, 1)])]
        return [Stmt(place + " = {}", [self.vector(sc, 1) if d.kind == "v" else self.matrix(sc, 1)])]

    # ---- text

    def annotation(self, d):
        if d.home == "field":
            return "qd.template()"
        t = {"f": "F", "i": "qd.i32", "v": f"qd.types.vector({self.k}, F)",
             "m": f"qd.types.matrix({self.k}, {self.k}, F)"}[d.kind]
        return f"qd.types.ndarray({t}, {d.axes})"

    def params(self):
        return [d for d in self.data.values() if d.how != "global"]

    def text(self, twin=False):
        """twin: for oracles, without qd.stop_grad."""
        Stopped.twin = twin
        out = f"S = qd.types.struct(a=F, v=qd.types.vector({self.k}, F))\n"
        for f in self.funcs:
            out += f"\n\n@qd.func\ndef {f['name']}({', '.join(f['params'])}):\n" + write_block(f["body"], 1)
        names = [f"{d.name}: {self.annotation(d)}" for d in self.params()]
        out += f"\n\n@qd.kernel\ndef k({', '.join([*names, 'nb: qd.i32', 'fa: F'])}):\n"
        return out + write_block(self.body, 1)
