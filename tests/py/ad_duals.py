"""An interpreter of the IR that carries derivatives along, independent of src/ad.

    d = Duals(kernel.lower(*args)[1])           the text of a kernel as lowered, made into Python
    after = d.run(args, active, exact=False)    args: of each IR argument a number or a NumPy array
                                                (key=: of random numbers, as _core.last_launch says)

`run` executes the kernel in order, parallel loops one iteration after the other, on copies of the
arrays. Each float has a tangent beside it: a vector with one entry for every scalar of the arrays in
`active`, or None for "depends on none of them". So one run gives the whole Jacobian of everything
that the arrays hold afterwards. Values are of the program's own precision (each result is rounded to
its type as src/ir/eval.c says), or all floats are f64 with exact=True; tangents are always f64.

`after.kink` is how far the inputs may move (in the largest entry) before, to first order, a
comparison turns out differently or a function with a kink gets to its other side: what lies nearer
than a step of central differences cannot be judged by them. At a kink itself: abs has slope 0,
min and max hand all to the one that is chosen, of equals to the second; floor, ceil, round and what
is compared have slope 0.
"""

import ctypes
import functools
import math
import re
import struct

import numpy as np

FLOATS = ("f16", "f32", "f64")
# operations whose result type the text names
TYPED = set("const arg array param dim axes axis alloca elem load atomic cas cast bitcast select make "
            "extract member member_dyn random loop call address".split())
FLAGS = {"parallel", "serial", "nsw", "private", "volatile", "ordered", "tally", "axis"}
NOTHING = {"check", "print", "detail"}  # for people; programs under test do not fail


class Unsupported(Exception):
    """The program uses what this interpreter does not know."""


# ---- types ---------------------------------------------------------------------------------------


class Type:
    """kind, and the scalars it is made of, in order; an array's are those of an element."""

    def __init__(self, text):
        self.text = text
        head, _, rest = text.partition("<")
        parts = split(rest[:-1]) if rest else []
        self.kind, self.elem, self.members, self.sizes = head, None, [], None
        if head == "tensor":
            n = math.prod(int(k) for k in parts[1].split())
            self.leaves, self.members = [parts[0]] * n, [Type(parts[0])] * n
        elif head == "struct":
            self.members = [Type(re.sub(r"^\w+: ", "", p)) for p in parts]
            self.leaves = [x for m in self.members for x in m.leaves]
        elif head in ("ref", "array", "field"):
            self.elem = Type(parts[0])
            self.leaves = self.elem.leaves
            if head == "field":
                self.sizes = [1] * int(parts[1])
                for p in parts[2:]:
                    if p.startswith("level"):
                        _, axis, extent, _ = p.split()
                        self.sizes[int(axis)] *= int(extent)
        else:
            self.kind, self.leaves = "scalar", [head]
        self.dtype = self.leaves[0] if self.kind == "scalar" and self.leaves else None
        self.n = len(self.leaves)

    def is_float(self):
        return self.dtype in FLOATS

    def offset(self, member):
        return sum(m.n for m in self.members[:member])


@functools.lru_cache(None)
def type_of(text):
    return Type(text)


def split(text):
    """Parts between the commas that stand outside of brackets."""
    parts, depth, at = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "<[") - (c in ">]")
        if c == "," and depth == 0:
            parts.append(text[at:k].strip())
            at = k + 1
    parts.append(text[at:].strip())
    return [p for p in parts if p]


def take_type(text):
    """The type at the start of a text, and what follows."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "<") - (c == ">")
        if c == " " and depth == 0:
            return text[:k], text[k + 1:]
    return text, ""


# ---- numbers ---------------------------------------------------------------------------------------


def _wrap(bits, signed):
    full, half = 1 << bits, 1 << (bits - 1)
    low, high = (-half, half) if signed else (0, full)

    def wrap(v):
        if low <= v < high:
            return v
        v &= full - 1
        return v - full if signed and v >= half else v
    return wrap


WRAP = {f"{'i' if s else 'u'}{b}": _wrap(b, s) for b in (8, 16, 32, 64) for s in (True, False)}
WRAP["u1"] = lambda v: v & 1
BITS = {t: int(t[1:]) for t in WRAP}


def _f32(v):
    return ctypes.c_float(v).value


def _f16(v):
    return float(np.float16(np.float32(v)))


ROUND = {"f64": lambda v: v, "f32": _f32, "f16": _f16}


def quiet(fn):
    """The value that C gives where Python raises."""
    def got(*args):
        try:
            return fn(*args)
        except (OverflowError, ValueError, ZeroDivisionError):
            with np.errstate(all="ignore"):
                return float(getattr(np, NUMPY[fn])(*(np.float64(a) for a in args)))
    return got


NUMPY = {math.exp: "exp", math.log: "log", math.sqrt: "sqrt", math.sin: "sin", math.cos: "cos", math.tan: "tan",
         math.asin: "arcsin", math.acos: "arccos", math.tanh: "tanh", math.pow: "power", math.fmod: "fmod"}


def _div(a, b):
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _mod(a, b):
    m = quiet(math.fmod)(a, b)
    if m == 0:
        return math.copysign(0.0, b)
    return m + b if (m < 0) != (b < 0) else m


def _floordiv(a, b):
    if b == 0:
        return _div(a, b)
    m = quiet(math.fmod)(a, b)
    q = (a - m) / b - (m != 0 and (m < 0) != (b < 0))
    whole = math.floor(q)
    return float(whole + (q - whole > 0.5))


def _round(v):
    return math.copysign(math.floor(abs(v) + 0.5), v) if math.isfinite(v) else v


def _sgn(v):
    return float((v > 0) - (v < 0))


def _whole(fn):
    return lambda v: float(fn(v)) if math.isfinite(v) else v


def _min(a, b):
    return b if b < a or a != a else a


def _max(a, b):
    return b if b > a or a != a else a


exp, log, sqrt, power = quiet(math.exp), quiet(math.log), quiet(math.sqrt), quiet(math.pow)
sin, cos, tan, tanh = quiet(math.sin), quiet(math.cos), quiet(math.tan), quiet(math.tanh)
asin, acos = quiet(math.asin), quiet(math.acos)

# name: value, slope at (x, result)
UNARY = {
    "neg": (lambda x: -x, lambda x, r: -1.0),
    "abs": (abs, lambda x, r: _sgn(x)),
    "sqrt": (sqrt, lambda x, r: _div(0.5, r)),
    "rsqrt": (lambda x: _div(1.0, sqrt(x)), lambda x, r: -0.5 * r * r * r),
    "sin": (sin, lambda x, r: cos(x)),
    "cos": (cos, lambda x, r: -sin(x)),
    "tan": (tan, lambda x, r: 1 + r * r),
    "asin": (asin, lambda x, r: _div(1.0, sqrt((1 - x) * (1 + x)))),
    "acos": (acos, lambda x, r: -_div(1.0, sqrt((1 - x) * (1 + x)))),
    "tanh": (tanh, lambda x, r: 1 - r * r),
    "exp": (exp, lambda x, r: r),
    "log": (log, lambda x, r: _div(1.0, x)),
    "sgn": (_sgn, None),
    "floor": (_whole(math.floor), None), "ceil": (_whole(math.ceil), None),
    "round": (_round, None), "trunc": (_whole(math.trunc), None),
}


def _pow_slopes(x, y, r):
    by_x = 0.0 if y == 0 else y * power(x, y - 1)
    by_y = 0.0 if x == 0 and y >= 0 else log(x) * r
    return by_x, by_y


def _atan2_slopes(x, y, r):
    s = x * x + y * y
    return _div(y, s), _div(-x, s)


# name: value, slopes by x and y at (x, y, result)
BINARY = {
    "add": (lambda x, y: x + y, lambda x, y, r: (1.0, 1.0)),
    "sub": (lambda x, y: x - y, lambda x, y, r: (1.0, -1.0)),
    "mul": (lambda x, y: x * y, lambda x, y, r: (y, x)),
    "div": (_div, lambda x, y, r: (_div(1.0, y), -_div(r, y))),
    "mod": (_mod, lambda x, y, r: (1.0, -_floordiv(x, y))),
    "rem": (quiet(math.fmod), lambda x, y, r: (1.0, -float(round(_div(x - r, y))))),
    "floordiv": (_floordiv, None),
    "pow": (power, _pow_slopes),
    "min": (_min, lambda x, y, r: (1.0, 0.0) if x < y else (0.0, 1.0)),
    "max": (_max, lambda x, y, r: (1.0, 0.0) if y < x else (0.0, 1.0)),
    "atan2": (math.atan2, _atan2_slopes),
}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _int_div(op, a, b):
    if b == 0:
        return 0
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return {"div": q, "rem": a - q * b, "floordiv": a // b, "mod": a % b}[op]


def _int_pow(a, b, bits):
    if b < 0:
        return {1: 1, -1: -1 if b & 1 else 1}.get(a, 0)
    return pow(a, b, 1 << bits)


def int_op(op, dtype, a, b):
    """A function on Python's integers, still to be wrapped, as text."""
    bits, mask = BITS[dtype], (1 << BITS[dtype]) - 1
    plain = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "and": "{0} & {1}", "or": "{0} | {1}",
             "xor": "{0} ^ {1}", "min": "min({0}, {1})", "max": "max({0}, {1})", "neg": "-{0}", "not": "~{0}",
             "abs": "abs({0})", "sgn": "({0} > 0) - ({0} < 0)", "floor": "{0}", "ceil": "{0}", "round": "{0}",
             "trunc": "{0}", "shl": f"{{0}} << ({{1}} % {bits})", "shr": f"({{0}} & {mask}) >> ({{1}} % {bits})",
             "sar": f"{{0}} >> ({{1}} % {bits})", "popcnt": f"({{0}} & {mask}).bit_count()",
             "ffs": "({0} & -{0}).bit_length()", "clz": f"{bits} - ({{0}} & {mask}).bit_length()",
             "pow": f"_int_pow({{0}}, {{1}}, {bits})"}
    if op in ("div", "rem", "floordiv", "mod"):
        return f"_int_div({op!r}, {a}, {b})"
    if op not in plain:
        raise Unsupported(op)
    return plain[op].format(a, b)


def float_to_int(v, dtype):
    if dtype == "u1":
        return int(v != 0)
    if v != v:
        return 0
    low = -(1 << (BITS[dtype] - 1)) if dtype[0] == "i" else 0
    high = (1 << (BITS[dtype] - (dtype[0] == "i"))) - 1
    return low if v <= low else high if v >= high else int(v)


def constant(text, dtype):
    if dtype not in FLOATS:
        return repr(int(text))
    sign = -1.0 if text[0] == "-" else 1.0
    text = text.lstrip("-")
    if text.startswith("nan"):
        return "math.nan"
    if text == "inf":
        return f"({sign} * math.inf)"
    if text.startswith("0x"):
        mantissa, exponent = text.split("p")
        return f"({sign * math.ldexp(int(mantissa, 16), int(exponent))!r})"
    return f"({sign * float(text)!r})"


# ---- tangents: vectors, or None for 0 ---------------------------------------------------------------


def scaled(d, f):
    return None if d is None else f * d


def plus(a, b):
    return b if a is None else a if b is None else a + b


class Memory:
    __slots__ = ("v", "d", "shape", "n")

    def __init__(self, v, d, shape=None, n=1):
        self.v, self.d, self.shape, self.n = v, d, shape, n

    def at(self, *index):
        k = 0
        for i, extent in zip(index, self.shape):
            if not 0 <= i < extent:
                raise IndexError(f"{index} of {self.shape}")
            k = k * extent + i
        return k * self.n


MIX_STEP, MIX_A, MIX_B, WORD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, (1 << 64) - 1


def mixed(x, mask):
    x = (x ^ x >> 30) * MIX_A & WORD ^ mask
    x = (x ^ x >> 27) * MIX_B & WORD
    return x ^ x >> 31


def philox(key, place):
    """Two words of 64 bits, as src/ir/random.c says."""
    c, k, low = [place & 0xFFFFFFFF, place >> 32, 0, 0], [key & 0xFFFFFFFF, key >> 32], 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    return c[0] | c[1] << 32, c[2] | c[3] << 32


class Machine:
    """What the generated Python calls: roundings, operations, random numbers, and the nearest kink."""

    def __init__(self, exact, key=0):
        self.key, self.drawn, self.stream = key, 0, 0
        self.kink, self.steps, self.nearest = math.inf, 0, ""
        self.round = dict.fromkeys(FLOATS, ROUND["f64"]) if exact else ROUND

    def near(self, what, gap, d):
        """Something changes when the value whose tangent is d moves by `gap`."""
        if d is None:
            return
        slope = float(np.abs(d).sum())
        if slope and gap / slope < self.kink:
            self.kink, self.nearest = gap / slope, what

    def between(self, what, a, da, b, db):
        if da is not None or db is not None:
            self.near(what, abs(a - b), plus(da, scaled(db, -1.0)))

    def unary(self, op, dtype, x, d):
        value, slope = UNARY[op]
        r = self.round[dtype](value(x))
        if d is not None:
            if op in ("abs", "sgn"):
                self.near(op, abs(x), d)
            elif slope is None:
                y = x + 0.5 if op == "round" else x
                self.near(op, min(y - math.floor(y), math.floor(y) + 1 - y), d)
        return r, None if d is None or slope is None else slope(x, r) * d

    def binary(self, op, dtype, x, dx, y, dy):
        value, slopes = BINARY[op]
        r = self.round[dtype](value(x, y))
        if dx is None and dy is None:
            return r, None
        if op in ("min", "max"):
            self.between(op, x, dx, y, dy)
        elif op in ("mod", "rem", "floordiv"):
            q = _div(x, y)
            gap = min(q - math.floor(q), math.floor(q) + 1 - q) if math.isfinite(q) else 0.0
            self.near(op, gap, plus(scaled(dx, _div(1.0, y)), scaled(dy, -_div(q, y))))
        if slopes is None:
            return r, None
        by_x, by_y = slopes(x, y, r)
        return r, plus(scaled(dx, by_x), scaled(dy, by_y))

    def update(self, how, dtype, m, o, w, dw):
        """An atomic; the old value and its tangent."""
        old, d = m.v[o], m.d[o]
        if dtype not in FLOATS:
            m.v[o] = w if how == "xchg" else WRAP[dtype](eval(int_op(how, dtype, "a", "b"), globals(),
                                                              {"a": old, "b": w}))
        elif how == "xchg":
            m.v[o], m.d[o] = w, dw
        else:
            m.v[o], m.d[o] = self.binary(how, dtype, old, d, w, dw)
        return old, d

    def to_int(self, v, d, dtype):
        self.near("cast", min(v - math.floor(v), math.floor(v) + 1 - v) if math.isfinite(v) else 0.0, d)
        return float_to_int(v, dtype)

    def begin(self, place, index=0):
        """Random numbers are a function of launch, place, iteration and draw."""
        first, second = philox(self.key, place)
        self.drawn = mixed(first + index * MIX_STEP & WORD, 0)
        self.stream = self.drawn ^ second

    def each(self, place, indices):
        """The iterations of a parallel loop that draws."""
        for i in indices:
            self.begin(place, i)
            yield i

    def random(self, dtype):
        self.drawn = self.drawn + MIX_STEP & WORD
        bits = mixed(self.drawn, self.stream)
        if dtype not in FLOATS:
            return WRAP[dtype](bits >> (64 - BITS[dtype]))
        keep = {"f64": 53, "f32": 24, "f16": 11}[dtype]
        return (bits >> (64 - keep)) / (1 << keep)

    def tick(self):
        self.steps += 1
        if self.steps > 20_000:
            raise Unsupported("a loop that does not end")


# ---- the text becomes Python ------------------------------------------------------------------------


class Function:
    """One function of the module, as lines of Python. Value %3 is v3 and, of floats and aggregates,
    d3; a ref is m3 (Memory) and o3; an array is m3."""

    def __init__(self, head, returns, rets):
        self.types, self.axes, self.lines, self.depth = {}, {}, [], 1
        self.places = {}  # of parallel loops that draw random numbers, by their results
        self.returns = returns  # Type of each function
        kind, number = re.match(r"(\w+) @(\d+)", head).groups()
        self.me = returns.get(int(number))
        params = re.search(r"\((.*)\) \S+", head)
        self.params = [Type(p) for p in split(params[1])] if params and kind == "func" else []
        names = [n for k, t in enumerate(self.params) for n in self.names(t, f"p{k}")]
        self.lines.append(f"def f{number}({', '.join(['M', 'A', *names])}):")
        self.add("pass")

    @staticmethod
    def names(t, suffix):
        """Variables that hold a value of type t."""
        if t.kind == "ref":
            return [f"m{suffix}", f"o{suffix}"]
        if t.kind in ("array", "field"):
            return [f"m{suffix}"]
        return [f"v{suffix}", f"d{suffix}"]

    def add(self, text):
        self.lines.append("    " * self.depth + text)

    def both(self, value):
        """The variables of an operand; integers have no tangent."""
        t = self.types[value]
        return [f"v{value}", f"d{value}" if not t.dtype or t.is_float() else "None"] if t.kind not in (
            "ref", "array", "field") else self.names(t, value)

    def line(self, text):
        text = re.sub(r" !\d+(?= \{$|$)", "", text.strip())
        opens = text.endswith("{")
        text = text.removesuffix("{").strip()
        if text in ("}", ""):
            self.depth -= text == "}"
            return
        if text == "} else":
            self.depth -= 1
            self.add("else:")
            self.depth += 1
            self.add("pass")
            return
        m = re.match(r"(?:%(\w+) = )?([\w.]+) ?(.*)", text)
        result, op, rest = m.groups()
        words = rest.split(" ")
        while words[0] in FLAGS:
            words.pop(0)
        rest, t = " ".join(words), None
        if op in TYPED:
            text, rest = take_type(rest)
            t = type_of(text)
        operands = split(rest)
        if op not in NOTHING:
            name = "op_" + op if hasattr(self, "op_" + op) else "arith"
            getattr(self, name)(*([op] if name == "arith" else []), result, t, operands)
        if opens:
            self.depth += 1
            self.add("pass")

    @staticmethod
    def ids(text):
        return [x[1:] for x in split(text.strip("[]"))]

    def made(self, result, t, value, tangent="None"):
        self.types[result] = t
        self.add(f"v{result} = {value}")
        if not t.dtype or t.is_float():
            self.add(f"d{result} = {tangent}")

    # ---- inputs and memory

    def op_const(self, r, t, o):
        self.made(r, t, constant(o[0], t.dtype))

    def op_arg(self, r, t, o):
        self.made(r, t, f"M.round[{t.dtype!r}](float(A[{o[0]}]))" if t.is_float() else f"A[{o[0]}]")

    def op_array(self, r, t, o):
        self.types[r] = t
        self.add(f"m{r} = A[{o[0]}]")

    def op_param(self, r, t, o):
        self.types[r] = t
        self.add(f"{', '.join(self.names(t, r))} = {', '.join(self.names(t, 'p' + o[0]))}")

    def op_dim(self, r, t, o):
        self.made(r, t, f"m{o[0][1:]}.shape[{o[1]}]")

    def op_axes(self, r, t, o):
        b = self.ids(o[0])
        self.axes[r] = [(f"v{x}", f"max(0, v{y} - v{x})") for x, y in zip(b[::2], b[1::2])]
        self.made(r, t, " * ".join(n for _, n in self.axes[r]) or "1")

    def op_axis(self, r, t, o):
        axes, k = self.axes[o[0][1:]], int(o[2])
        inner = " * ".join(["1", *(n for _, n in axes[k + 1:])])
        self.made(r, t, f"{axes[k][0]} + v{o[1][1:]} // ({inner}) % ({axes[k][1]})")

    def op_alloca(self, r, t, o):
        self.types[r] = t
        zeros = ", ".join("0.0" if x in FLOATS else "0" for x in t.leaves)
        self.add(f"m{r} = Memory([{zeros}], [None] * {t.n})")
        self.add(f"o{r} = 0")

    def op_elem(self, r, t, o):
        self.types[r] = t
        a = o[0][1:]
        index = ", ".join(f"v{x}" for x in self.ids(", ".join(o[1:])))
        self.add(f"m{r} = m{a}")
        self.add(f"o{r} = m{a}.at({index})")

    def op_member(self, r, t, o):
        a = o[0][1:]
        self.types[r] = t
        self.add(f"m{r} = m{a}")
        self.add(f"o{r} = o{a} + {self.types[a].elem.offset(int(o[1]))}")

    def op_member_dyn(self, r, t, o):
        a = o[0][1:]
        self.types[r] = t
        self.add(f"m{r} = m{a}")
        self.add(f"assert 0 <= v{o[1][1:]} < {self.types[a].elem.n}")
        self.add(f"o{r} = o{a} + v{o[1][1:]}")

    def op_load(self, r, t, o):
        a = o[0][1:]
        if t.kind == "scalar":
            self.made(r, t, f"m{a}.v[o{a}]", f"m{a}.d[o{a}]")
        else:
            self.made(r, t, f"m{a}.v[o{a}:o{a} + {t.n}]", f"m{a}.d[o{a}:o{a} + {t.n}]")

    def op_store(self, r, t, o):
        a, b = o[0][1:], o[1][1:]
        v, d = self.both(b)
        n = self.types[b].n
        at = f"o{a}" if self.types[b].kind == "scalar" else f"o{a}:o{a} + {n}"
        self.add(f"m{a}.v[{at}] = {v}")
        if d != "None":
            self.add(f"m{a}.d[{at}] = {d}")

    def op_atomic(self, r, t, o):
        a = o[0][1:]
        v, d = self.both(o[1][1:])
        self.types[r] = t
        self.add(f"v{r}, d{r} = M.update({o[2]!r}, {t.dtype!r}, m{a}, o{a}, {v}, {d})")

    def op_set_ret(self, r, t, o):
        pass

    # ---- values

    def op_cast(self, r, t, o):
        a = o[0][1:]
        from_float = self.types[a].is_float()
        if t.is_float():
            self.made(r, t, f"M.round[{t.dtype!r}](float(v{a}))", f"d{a}" if from_float else "None")
        elif from_float and t.dtype != "u1":
            self.made(r, t, f"M.to_int(v{a}, d{a}, {t.dtype!r})")
        elif t.dtype == "u1":
            self.made(r, t, f"int(v{a} != 0)")
        else:
            self.made(r, t, f"WRAP[{t.dtype!r}](v{a})")

    def op_bitcast(self, r, t, o):
        a = o[0][1:]
        codes = {"f32": "f", "f64": "d", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "i16": "h", "u16": "H",
                 "f16": "e", "i8": "b", "u8": "B"}
        from_, to = codes[self.types[a].dtype], codes[t.dtype]
        self.made(r, t, f"struct.unpack({to!r}, struct.pack({from_!r}, v{a}))[0]")

    def op_select(self, r, t, o):
        c, a, b = (x[1:] for x in o)
        (va, da), (vb, db) = self.both(a), self.both(b)
        self.made(r, t, f"{va} if v{c} else {vb}", f"{da} if v{c} else {db}")

    def op_make(self, r, t, o):
        v, d = [], []
        for x in self.ids(", ".join(o)):
            a, b = self.both(x)
            star = "" if self.types[x].kind == "scalar" else "*"
            v.append(star + a)
            d.append(star + b)
        self.made(r, t, f"[{', '.join(v)}]", f"[{', '.join(d)}]")

    def op_extract(self, r, t, o):
        a, at = o[0][1:], self.types[o[0][1:]].offset(int(o[1]))
        where = f"[{at}]" if t.kind == "scalar" else f"[{at}:{at + t.n}]"
        self.made(r, t, f"v{a}{where}", f"d{a}{where}")

    def op_insert(self, r, t, o):
        a, b = o[0][1:], o[1][1:]
        t, part, at = self.types[a], self.types[b], self.types[a].offset(int(o[2]))
        vb, db = self.both(b)
        if part.kind == "scalar":
            vb, db = f"[{vb}]", f"[{db}]"
        self.made(r, t, f"[*v{a}[:{at}], *{vb}, *v{a}[{at + part.n}:]]",
                  f"[*d{a}[:{at}], *{db}, *d{a}[{at + part.n}:]]")

    def arith(self, op, r, t, o):
        ids = [x[1:] for x in o]
        if not ids or ids[0] not in self.types or not self.types[ids[0]].dtype:
            raise Unsupported(op)
        t = self.types[ids[0]]
        if op in COMPARE:
            if t.is_float():
                a, b = ids
                self.add(f"M.between({op!r}, v{a}, d{a}, v{b}, d{b})")
            return self.made(r, type_of("u1"), f"int(v{ids[0]} {COMPARE[op]} v{ids[1]})")
        if not t.is_float():
            return self.made(r, t, f"WRAP[{t.dtype!r}]({int_op(op, t.dtype, *[f'v{x}' for x in (ids * 2)[:2]])})")
        if op not in UNARY and op not in BINARY:
            raise Unsupported(op)
        self.types[r] = t
        args = ", ".join(f"v{x}, d{x}" for x in ids)
        self.add(f"v{r}, d{r} = M.{'unary' if op in UNARY else 'binary'}({op!r}, {t.dtype!r}, {args})")
        return None

    # ---- control

    def op_if(self, r, t, o):
        self.add(f"if v{o[0][1:]}:")

    def op_loop(self, r, t, o):
        self.types[r] = t
        over = f"range(v{o[0][1:]}, v{o[1][1:]})"
        place = self.places.get(r)
        self.add(f"for v{r} in {over if place is None else f'M.each({place}, {over})'}:")

    def op_while(self, r, t, o):
        self.add("while True:")
        self.depth += 1
        self.add("M.tick()")
        self.depth -= 1

    def op_break(self, r, t, o):
        self.add("break")

    def op_continue(self, r, t, o):
        self.add("continue")

    def zero(self):
        t = self.me
        if t is None or t.text == "void":
            return "None, None"
        if t.kind == "scalar":
            return "0.0, None" if t.is_float() else "0, None"
        return f"[{', '.join('0.0' if x in FLOATS else '0' for x in t.leaves)}], [None] * {t.n}"

    def op_return(self, r, t, o):
        self.add("return " + (", ".join(self.both(o[0][1:])) if o else self.zero()))

    def op_call(self, r, t, o):
        number = int(o[0][1:])
        args = [v for x in self.ids(", ".join(o[1:])) for v in self.both(x)]
        call = f"f{number}({', '.join(['M', 'A', *args])})"
        if not r:
            return self.add(call)
        self.types[r] = t
        return self.add(f"v{r}, d{r} = {call}")

    def op_random(self, r, t, o):
        self.made(r, t, f"M.random({t.dtype!r})")


class After:
    """What a run left: `values[k]` of IR argument k, and the Jacobian of its scalars."""

    def __init__(self, memory, shapes, machine, width):
        self.memory, self.shapes = memory, shapes
        self.kink, self.nearest, self.width = machine.kink, machine.nearest, width

    def values(self, k):
        return np.array(self.memory[k].v).reshape(self.shapes[k])

    def jacobian(self, k):
        zero = np.zeros(self.width)
        return np.array([zero if d is None else d for d in self.memory[k].d]).reshape(-1, self.width)

    def gradient(self, adjoints):
        """sum over k of adjoints[k] times the Jacobian of argument k: a vector over all inputs."""
        total = np.zeros(self.width)
        for k, adjoint in adjoints.items():
            for w, d in zip(np.asarray(adjoint, np.float64).reshape(-1), self.memory[k].d):
                if d is not None:
                    total += w * d
        return total


def drawing(text):
    """Numbers of the functions that draw random numbers, by themselves or in calls."""
    bodies = {int(m[1]): m[2] for m in re.finditer(r"^(?:kernel|func) @(\d+)[^\n]*\n(.*?)^}", text, re.M | re.S)}
    found, before = set(), None
    while found != before:
        before = set(found)
        found = {k for k, body in bodies.items() if draws(body, before)}
    return found


def draws(text, funcs):
    calls = {int(n) for n in re.findall(r" = call [^@\n]*@(\d+)|^ *call [^@\n]*@(\d+)", text, re.M) for n in n if n}
    return " = random " in text or bool(calls & funcs)


def places(text, funcs):
    """What a kernel's text is made of, in order: (its lines, its place or None). A parallel loop is a piece, and
    what stands between two of them; those that draw are numbered."""
    pieces = re.split(r"(^  %\d+ = loop parallel .*?^  }\n)", text, flags=re.M | re.S)
    count = 0
    for piece in pieces:
        place = count if draws(piece, funcs) else None
        count += place is not None
        yield piece, place


class Duals:
    def __init__(self, text):
        self.args, function, returns, lines = [], None, {}, []
        starts, loops, funcs, at = {}, {}, drawing(text), 0
        for piece, place in places(text[:text.find("\n}\n") + 1], funcs):
            loop = re.match(r"  %(\d+) = loop parallel", piece)
            if place is not None:
                inside = next(k for k, x in enumerate(piece.splitlines()) if x.startswith("  "))
                (loops if loop else starts)[loop[1] if loop else at + inside] = place
            at += piece.count("\n")
        for m in re.finditer(r'^func @(\d+)(?: "[^"]*")? \(.*\) (\S.*) \{$', text, re.M):
            returns[int(m[1])] = Type(m[2])
        for number, line in enumerate(text.splitlines()):
            if line.startswith("arg "):
                self.args.append(Type(re.sub(r" (with|last) \d+$", "", line.split(" ", 2)[2])))
            elif re.match(r"(kernel|func|task) @", line):
                head = re.sub(r' "[^"]*"', "", line.removesuffix(" {"))
                function = Function(head, returns, None)
                function.places = loops if line.startswith("kernel") else {}
            elif line == "}":
                function.add(f"return {function.zero()}")
                lines += function.lines
            elif line.startswith(" "):
                if number in starts:
                    function.add(f"M.begin({starts[number]})")
                function.line(line)
        self.source = "\n".join(lines)
        scope = dict(globals())
        exec(compile(self.source, "<duals>", "exec"), scope)
        self.kernel = scope["f0"]

    def run(self, args, active, exact=False, same=None, key=0):
        """Each argument in the order of the IR; `active`: those whose scalars are inputs; `same`: number
        of an argument -> of an earlier one that is the same array; `key`: of the launch's random numbers."""
        width = sum(np.asarray(args[k]).size for k in active)
        start, at = {}, 0
        for k in active:
            start[k] = at
            at += np.asarray(args[k]).size
        given, shapes = [], {}
        for k, (t, a) in enumerate(zip(self.args, args)):
            if t.elem is None or (same and k in same):
                given.append(given[same[k]] if t.elem else a)
                shapes[k] = np.shape(a)
                continue
            shapes[k] = a.shape
            flat = a.reshape(-1).astype(np.float64 if t.leaves[0] in FLOATS else object).tolist()
            d = [None] * len(flat)
            if k in start:
                for j in range(len(flat)):
                    d[j] = np.zeros(width)
                    d[j][start[k] + j] = 1.0
            n_axes = len(t.sizes) if t.sizes is not None else int(split(t.text.partition("<")[2][:-1])[1])
            given.append(Memory(flat, d, a.shape[:n_axes], t.n))
        machine = Machine(exact, key)
        with np.errstate(all="ignore"):
            self.kernel(machine, given)
        return After({k: m for k, m in enumerate(given) if isinstance(m, Memory)}, shapes, machine, width)
