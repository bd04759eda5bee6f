"""Writes the programs of tests/py/random_patterns.py as kernels and as plain Python, runs both,
compares, and shrinks a program that fails to a few lines."""

import copy
import linecache
import random

import numpy as np
from random_patterns import ARRAYS, INTS

import ingot as qd

NUMPY = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
WAYS = {"as lowered": {"arch": qd.interp, "interp_passes": False}, "after passes": {"arch": qd.interp},
        "one thread": {"arch": qd.cpu, "cpu_max_num_threads": 1},
        "two threads, from the cache": {"arch": qd.cpu, "cpu_max_num_threads": 2}}

# ---- the model ---------------------------------------------------------------------------------


def wrap(bits):
    half = 1 << (bits - 1)
    return lambda v: ((v + half) & ((1 << bits) - 1)) - half


def quotient(a, b):
    return a // b if b else 0


def remainder(a, b):
    return a % b if b else 0


MODEL = {"as_i32": wrap(32), "as_i64": wrap(64), "as_f32": lambda v: float(np.float32(v)), "as_f64": float,
         "quotient": quotient, "remainder": remainder}


class Text:
    """An expression or a block in one of the two languages."""

    def __init__(self, model):
        self.model = model

    def expr(self, e):
        return getattr(self, "x_" + e[0].replace("if", "choice").replace("and", "both").replace("or", "both")
                       .replace("not", "negated"))(e)

    def typed(self, dtype, text):
        return f"as_{dtype}({text})" if self.model else text

    def x_const(self, e):
        return f"({e[2]!r})" if self.model else f"qd.cast({e[2]!r}, qd.{e[1]})"

    def literal(self, e):
        """An operand next to one that has a type."""
        return f"({e[2]!r})" if e[0] == "const" else self.expr(e)

    def x_var(self, e):
        return e[2]

    def x_load(self, e):
        return self.place(e[2], e[3])

    def place(self, array, axes):
        if self.model:
            return array + "".join(f"[{self.expr(a)}]" for a in axes)
        return f"{array}[{', '.join(self.literal(a) for a in axes)}]"

    def x_fit(self, e):
        return f"({self.expr(e[2])} % {e[3]})"

    def x_cmp(self, e):
        return f"({self.expr(e[3])} {e[2]} {self.expr(e[4])})"

    def x_both(self, e):
        return f"({self.expr(e[2])} {e[0]} {self.expr(e[3])})"

    def x_negated(self, e):
        return f"(not {self.expr(e[2])})"

    def x_choice(self, e):
        return f"({self.expr(e[3])} if {self.expr(e[2])} else {self.expr(e[4])})"

    def x_cast(self, e):
        return self.typed(e[1], self.expr(e[2])) if self.model else f"qd.cast({self.expr(e[2])}, qd.{e[1]})"

    def x_call(self, e):
        return f"f({self.expr(e[2])}, {self.expr(e[3])})"

    def x_un(self, e):
        if e[2] == "abs":
            return self.typed(e[1], f"abs({self.expr(e[3])})")
        return self.typed(e[1], f"({e[2]}{self.expr(e[3])})")

    def x_bin(self, e):
        return self.combine(e[1], e[2], self.expr(e[3]), self.expr(e[4]) if self.model else self.literal(e[4]))

    def combine(self, dtype, op, a, b):
        if op in ("min", "max"):
            return f"{op}({a}, {b})"
        if self.model and op in ("//", "%"):
            return self.typed(dtype, f"{'quotient' if op == '//' else 'remainder'}({a}, {b})")
        return self.typed(dtype, f"({a} {op} {b})")

    def block(self, body, depth):
        pad = "    " * depth
        return "".join(self.statement(s, depth, pad) for s in body) or f"{pad}pass\n"

    def statement(self, s, depth, pad):
        return getattr(self, "s_" + s[0])(s, depth, pad)

    def s_let(self, s, depth, pad):
        return f"{pad}{s[1]} = {self.expr(s[3])}\n"

    def s_set(self, s, depth, pad):
        if not self.model and s[3] not in ("", "max", "min"):
            return f"{pad}{s[1]} {s[3]}= {self.literal(s[4])}\n"
        if not self.model and s[3]:
            return f"{pad}qd.atomic_{s[3]}({s[1]}, {self.expr(s[4])})\n"
        value = self.combine(s[2], s[3], s[1], self.expr(s[4])) if s[3] else self.expr(s[4])
        return f"{pad}{s[1]} = {value}\n"

    def s_store(self, s, depth, pad):
        place = self.place(s[1], s[2])
        if not s[3]:
            return f"{pad}{place} = {self.expr(s[4])}\n"
        if self.model:
            return f"{pad}{place} = {self.combine(ARRAYS[s[1]][0], s[3], place, self.expr(s[4]))}\n"
        if s[3] in ("max", "min"):
            return f"{pad}qd.atomic_{s[3]}({place}, {self.expr(s[4])})\n"
        return f"{pad}{place} {s[3]}= {self.expr(s[4])}\n"

    def s_for(self, s, depth, pad):
        lo, hi = self.literal(s[2]), self.literal(s[3])
        return f"{pad}for {s[1]} in range({lo}, {hi}):\n" + self.block(s[4], depth + 1)

    def s_nd(self, s, depth, pad):
        (i, j), (a, b, c, d), body = s[1:]
        if self.model:
            head = f"{pad}for {i}, {j} in [(i, j) for i in range({a}, {b}) for j in range({c}, {d})]:\n"
        else:
            head = f"{pad}for {i}, {j} in qd.ndrange(({a}, {b}), ({c}, {d})):\n"
        return head + self.block(body, depth + 1)

    def s_if(self, s, depth, pad):
        text = f"{pad}if {self.expr(s[1])}:\n" + self.block(s[2], depth + 1)
        return text + (f"{pad}else:\n" + self.block(s[3], depth + 1) if s[3] else "")

    def s_while(self, s, depth, pad):
        return f"{pad}while {self.expr(s[1])}:\n" + self.block(s[2], depth + 1)

    def s_break(self, s, depth, pad):
        return f"{pad}break\n"

    def s_continue(self, s, depth, pad):
        return f"{pad}continue\n"


def text_of(program, model):
    t = Text(model)
    lines = ""
    if program.helper:
        condition, one, other = program.helper
        lines += ("" if model else "@qd.func\n") + "def f(a, b):\n"
        lines += f"    if {t.expr(condition)}:\n        return {t.expr(one)}\n    return {t.expr(other)}\n"
    names = [*ARRAYS, "zero"]
    kinds = [*(f"qd.types.ndarray(qd.{d}, {n})" for d, n in ARRAYS.values()), "qd.i32"]
    params = ", ".join(names if model else [f"{n}: {k}" for n, k in zip(names, kinds)])
    return lines + ("" if model else "@qd.kernel\n") + f"def k({params}):\n" + t.block(program.body, 1)


# ---- running -------------------------------------------------------------------------------------


def arguments(program):
    rng = random.Random(program.seed)
    args = {}
    for name, (dtype, axes) in ARRAYS.items():
        shape = (program.n,) if axes == 1 else program.shape
        if dtype in INTS:
            pick = lambda: rng.choice([rng.randrange(-9, 9), rng.randrange(-2**31, 2**31)])  # noqa: E731
        else:
            pick = lambda: rng.randrange(-64, 64) / 8  # noqa: E731
        args[name] = np.array([pick() for _ in range(int(np.prod(shape)))], NUMPY[dtype]).reshape(shape)
    for one, other in program.aliases:
        args[other] = args[one]
    return args


def model(program):
    args = arguments(program)
    lists = {name: a.tolist() for name, a in args.items()}
    for one, other in program.aliases:
        lists[other] = lists[one]
    scope = dict(MODEL)
    exec(compile(text_of(program, True), "<model>", "exec"), scope)
    scope["k"](*lists.values(), 0)
    return {name: np.array(v, NUMPY[ARRAYS[name][0]]) for name, v in lists.items()}


def kernel(program):
    text = text_of(program, False)
    name = f"<pattern {program.seed} {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"qd": qd}
    exec(compile(text, name, "exec"), scope)
    return scope["k"]


def launch(program, **settings):
    """What a kernel leaves in its arrays."""
    qd.init(fast_math=False, **settings)
    args = arguments(program)
    kernel(program)(*args.values(), 0)
    return args


def difference(want, got):
    for name in ARRAYS:
        if want[name].tobytes() != got[name].tobytes():
            at = tuple(int(k[0]) for k in np.nonzero(want[name] != got[name])) or "sign of zero"
            return f"{name}{at}: {got[name][at] if at != 'sign of zero' else ''}, not {want[name][at]}"
    return None


def wrong_way(program, ways):
    """(the first way that does not give what the model gives, what is wrong), or None."""
    want = model(program)
    for name in ways:
        try:
            wrong = difference(want, launch(program, **WAYS[name]))
        except Exception as e:
            wrong = f"{type(e).__name__}: {e}"
        if wrong:
            return name, wrong
    return None


# ---- shrinking -----------------------------------------------------------------------------------


def blocks(body):
    """Every list of statements below."""
    yield body
    for s in body:
        for part in s:
            if isinstance(part, list) and part and isinstance(part[0], list):
                yield from blocks(part)


def smaller(e):
    """Expressions of the same type that are part of one, then constants."""
    if isinstance(e, tuple):
        parts = [p for p in e[2:] if isinstance(p, tuple) and p[1] == e[1]]
        yield from parts
        if e[0] != "const" and e[1] != "u1":
            yield ("const", e[1], 1 if e[1] in INTS else 1.0)


def places(node):
    """(list, index) of every expression that a statement holds."""
    for i, part in enumerate(node):
        if isinstance(part, tuple):
            yield node, i
        elif isinstance(part, list):
            yield from places(part)


def shrink(program, fails):
    """Drops statements and takes expressions apart as long as the program still fails."""
    best = copy.deepcopy(program)

    def tried(change):
        nonlocal best
        new = copy.deepcopy(best)
        if not change(new):
            return None
        if fails(new):
            best = new
            return True
        return False

    def drop(b, i):
        def change(p):
            body = list(blocks(p.body))
            return b < len(body) and i < len(body[b]) and (body[b].pop(i), True)[1]
        return change

    def lift(b, i):  # a block in place of the loop or condition around it, but no loop made parallel
        def change(p):
            body = list(blocks(p.body))
            inside = b + 1
            if inside >= len(body) or i >= len(body[inside]) or body[inside][i][0] not in ("for", "if"):
                return False
            inner = body[inside][i][4 if body[inside][i][0] == "for" else 2]
            body[inside][i:i + 1] = inner
            return True
        return change

    def simplify(at, which):
        def change(p):
            spots = list(places(p.body))
            if at >= len(spots):
                return False
            node, i = spots[at]
            options = list(smaller(node[i]))
            if which >= len(options) or options[which] == node[i]:
                return False
            node[i] = options[which]
            return True
        return change

    moved = True
    while moved:
        moved = False
        for kind in (drop, lift, simplify):
            first = 0
            while first < 200:
                second, result = 0, False
                while second < 60:
                    result = tried(kind(first, second))
                    if result is None:
                        break
                    moved |= result
                    second += not result
                if second == 0 and result is None:
                    break
                first += 1
    return best


def report(program, ways, wrong):
    fails = lambda p: safely(p, ways)  # noqa: E731
    small = shrink(program, fails)
    return (f"seed {program.seed}, {wrong[0]}: {wrong[1]}\nshrunk: {fails(small)}\n{text_of(small, False)}\n"
            f"arrays of {program.n} and {program.shape}, the same: {program.aliases}")


def safely(program, ways):
    """Does it fail? A program that makes no sense any more does not."""
    try:
        model(program)
    except Exception:
        return None
    return wrong_way(program, ways)
