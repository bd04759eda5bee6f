"""Random programs whose surroundings change between launches, with plain Python as the model.

A program is a few modules in files (a library of classes, enums and functions, two modules
of settings, and one with kernels), and a list of changes, each a Python statement. A kernel
computes one number from what it reads: names, members, items, lengths, truth, identity,
classes, calls, loops that are unrolled, funcs, captured arrays. Its twin has the same text
without `qd.static`, and Python runs it. After each change both are asked: the numbers are
equal, or both raise; a kernel may refuse what Python can do, if the language has no such
thing. Everything is text and follows from the seed, so that another process can go through
the same changes without a launch and ask its kernels on the cache of the first.

Here programs are made; tests/py/play_mutations.py runs and shrinks them.

Not changed: what a Python function called in `qd.static` reads by itself (docs/caching.md).
"""

import random
import re

# ---- values ---------------------------------------------------------------------------------

INTS = ["0", "1", "2", "3", "5", "7", "-4"]
FLOATS = ["0.0", "0.5", "1.5", "2.0", "-1.25", "3.0"]
TEXTS = ['"a"', '"bb"', '""', '"\\u00e9"', '"x\\0y"', '"ccc"']
KEYS = ["a", "b", "c", "d"] * 4 + ["a\\0b"]
COLORS = ["lib.Color.RED", "lib.Color.BLUE", "lib.Color.NONE"]
LEVELS = ["lib.Level.LOW", "lib.Level.HIGH", "lib.Level.ZERO"]
CLASSES = {"plain": "Plain", "orient": "Orient", "data": "Data", "frozen": "Frozen",
           "space": "Space", "slots": "Slots"}
MEMBERS = ["x", "y", "z"]
SCALARS = ["int", "int", "float", "float", "bool", "text", "none", "color", "level"]
NUMBERS = ("int", "float", "bool", "level")
SEQUENCES = ("list", "tuple", "range", "rows", "words")
DICTS = ("dict", "odict")


class Node:
    """A value: its kind, the expression that makes it, and what it holds, by step."""

    def __init__(self, kind, text, kids=None):
        self.kind, self.text, self.kids = kind, text, kids or {}


def scalar(rng, kind=None):
    kind = kind or rng.choice(SCALARS)
    pool = {"int": INTS, "float": FLOATS, "bool": ["True", "False"], "text": TEXTS,
            "none": ["None"], "color": COLORS, "level": LEVELS}[kind]
    return Node(kind, rng.choice(pool))


def number(rng):
    return scalar(rng, rng.choice(["int", "int", "int", "float", "bool", "level"]))


def array(rng):
    dtype = rng.choice(["qd.f64", "qd.f64", "qd.f32", "qd.i32"])
    return Node("array", f"lib.arr({rng.choice(INTS)}, {dtype}, {rng.choice('112')})")


def sequence(rng, kind):
    if kind == "range":
        return Node(kind, f"range({rng.randint(0, 2)}, {rng.randint(2, 5)})")
    count = rng.choice([0, 1, 2, 2, 3, 3])
    if kind == "rows":
        items = [sequence(rng, rng.choice(["list", "tuple"])) for _ in range(count)]
    elif kind == "words":
        items = [scalar(rng, "text") for _ in range(count)]
    else:
        items = [number(rng) for _ in range(count)]
    texts = [n.text for n in items]
    if kind == "tuple" or (kind != "list" and rng.random() < 0.5):
        text = "(" + "".join(t + ", " for t in texts) + ")"
    else:
        text = "[" + ", ".join(texts) + "]"
    return Node(kind, text, {f"[{i}]": n for i, n in enumerate(items)})


def mapping(rng, kind, depth):
    keys = list(dict.fromkeys(rng.sample(KEYS, rng.choice([1, 2, 2, 3]))))
    kids = {f'["{k}"]': number(rng) if rng.random() < 0.7 else value(rng, depth + 1) for k in keys}
    inner = ", ".join(f"{k[1:-1]}: {n.text}" for k, n in kids.items())
    return Node(kind, "{" + inner + "}" if kind == "dict" else
                "collections.OrderedDict({" + inner + "})", kids)


def thing(rng, kind, depth):
    kids = {f".{m}": number(rng) if rng.random() < 0.5 else value(rng, depth + 1)
            for m in MEMBERS}
    if kind != "data" and kind != "frozen" and rng.random() < 0.3:
        kids.pop(".z")
    inner = ", ".join(f"{k[1:]}={n.text}" for k, n in kids.items())
    return Node(kind, f"lib.{CLASSES[kind]}({inner})", kids)


def value(rng, depth=0, kind=None):
    if kind is None:
        kinds = [*SCALARS, "array", "list", "tuple", "range", "words"]
        if depth < 2:
            kinds += ["rows", "dict", "dict", "odict", *CLASSES, *CLASSES]
        kind = rng.choice(kinds)
    if kind in CLASSES:
        return thing(rng, kind, depth)
    if kind in DICTS:
        return mapping(rng, kind, depth)
    if kind in SEQUENCES:
        return sequence(rng, kind)
    return array(rng) if kind == "array" else scalar(rng, kind)


def akin(rng, node):
    """A value of the same or of a near kind."""
    near = {"int": ["float", "bool", "level"], "float": ["int"], "bool": ["int"],
            "level": ["int", "color"], "color": ["level"], "list": ["tuple", "range"],
            "tuple": ["list", "range"], "range": ["tuple"], "dict": ["odict"],
            "odict": ["dict"], "words": ["list"], "rows": ["rows"], "none": ["int"],
            "text": ["none"], **{c: list(CLASSES) for c in CLASSES}}.get(node.kind, [node.kind])
    pick = rng.random()
    if pick < 0.65:
        return value(rng, 1, node.kind)
    if pick < 0.72:
        return Node("none", "None")
    return value(rng, 1, rng.choice(near)) if pick < 0.93 else value(rng, 1)


# ---- the library ----------------------------------------------------------------------------

LIBRARY = '''
import collections, dataclasses, enum, types
import ingot as qd

def arr(v, dtype=qd.f64, n=1):
    a = qd.ndarray(dtype, n)
    a[0] = v
    return a

class Color(enum.Enum):
    RED = 1
    BLUE = "b"
    NONE = 0

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 4
    ZERO = 0

class Made:
    K = @K@
    def __init__(self, **members):
        for name, v in members.items():
            setattr(self, name, v)

class Plain(Made):
    @property
    def p(self):
        return self.x
    def calc(self, n=@D@):
        return len(repr(self.x)) + n
    @qd.func
    def fm(self, v):
        return v + self.K

class Other(Made):
    K = 11
    @property
    def p(self):
        return 6
    def calc(self, n=1):
        return n + 20
    @qd.func
    def fm(self, v):
        return v * 2

@qd.data_oriented
class Orient(Made):
    @property
    def p(self):
        return 4
    def calc(self, n=1):
        return len(repr(self.y)) * n
    @qd.func
    def fm(self, v):
        return v + 3 * self.K

@dataclasses.dataclass
class Data:
    x: object
    y: object
    z: object = None
    K = 5
    def calc(self, n=1):
        return len(repr(self.x)) * 2 + n

@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    y: object
    z: object = None
    K = 6
    def calc(self, n=1):
        return len(repr(self.x)) * 4 + n

class Space(types.SimpleNamespace):
    K = 7

class Slots:
    __slots__ = ("x", "y", "z")
    K = 8
    def __init__(self, **members):
        for name, v in members.items():
            setattr(self, name, v)
    def __bool__(self):
        return self.x != 1
    def __len__(self):
        return 2

T = qd.f64

@dataclasses.dataclass
class Boxed:
    v: "T"

def size(v, n=@D@, *, more=@E@):
    return len(repr(v)) * n + more

def size2(v, n=2, *, more=4):
    return len(repr(v)) + n * more

def total(v, table=[1, 2]):
    return sum(v) + len(table)

def split(v):
    return (len(repr(v)), 2)

def pick(v, w=None):
    return v if w is None else w

QN = @Q@
QT = (1, @Q@)

@qd.func
def q1(v, n=@D@):
    return v + n

@qd.func
def q2(v, t: qd.template()):
    return v + qd.static(size(t))

@qd.func
def q3(v):
    return v * QN + QT[1] + len(QT)

@qd.func
def q4(v):
    r = v * 1.0
    for x in qd.static(QT):
        r += x
    return r + q1(v)

@qd.func
def q5(v):
    return v + 100
'''


def library(rng):
    fill = {"K": rng.choice(INTS), "D": rng.choice(INTS), "E": rng.choice(INTS),
            "Q": rng.choice(INTS)}
    return re.sub("@(.)@", lambda m: fill[m[1]], LIBRARY)


# ---- what kernels do ------------------------------------------------------------------------

def when(condition):
    return f"r = r * 2 + (1 if qd.static({condition}) else 0)"


def term(expression):
    return f"r = r * 2 + ({expression})"


def fixed(expression):
    return term(f"qd.static({expression})")


def of_number(rng, p):
    c = rng.choice(INTS)
    return rng.choice([
        [term(p)], [term(f"{p} + 1")], [f"r = r + {p} * 0.5"], [when(f"{p} == {c}")],
        [when(f"{p} > {c}")], [when(p)], [when(f"not {p}")], [fixed(f"max({p}, {c})")],
        [fixed(f"lib.size({p})")],
        [fixed(f"lib.size({p}, {c})")], [when(f"{p} in (1, 2, 5)")],
        [f"r = r + lib.q1({p})"], [f"r = r + lib.q1(1, {p})"], [f"r = r + lib.q2(2, {p})"],
        [fixed(f"len(repr({p}))")], [when(f"isinstance({p}, float)")],
        [fixed(f"math.floor({p})")], [fixed(f"operator.add({p}, {c})")],
        [f"for i in qd.static(range({p})):", "    r = r * 2 + i"],
        [fixed(f"lib.pick({p})")], [fixed(f"lib.split({p})[0]")],
        [f"x{c.strip('-')} = {p}", f"r = r + x{c.strip('-')}"],
        ["n = 1", f"n += {p}", "r = r + n"],
    ])


def of_text(rng, p):
    c = rng.choice(TEXTS)
    return rng.choice([
        [fixed(f"len({p})")], [when(f"{p} == {c}")], [when(f"{p} != {c}")],
        [when(f"{p} in ({c}, 'a')")], [when(p)], [fixed(f"lib.size({p})")],
        [fixed(f"len(repr({p}))")], [when(f"isinstance({p}, str)")], [when(f"{p} < {c}")],
        [fixed(f"ord({p})")], [f"r = r + lib.q2(1, {p})"],
    ])


def of_enum(rng, p):
    c = rng.choice(COLORS)
    return rng.choice([
        [when(f"{p} == {c}")], [when(f"{p} is {c}")], [when(f"{p} != {c}")],
        [when(f"{p} in ({c}, lib.Color.RED)")], [when(p)], [fixed(f"len(repr({p}.value))")],
        [fixed(f"len({p}.name)")], [when(f"isinstance({p}, lib.Color)")],
        [fixed(f"lib.size({p})")],
    ])


def of_sequence(rng, p):
    c = rng.choice(INTS)
    return rng.choice([
        [term(f"len({p})")], [fixed(f"len({p})")], [term(f"{p}[0]")], [term(f"{p}[-1]")],
        [fixed(f"{p}[1]")], [f"for x in qd.static({p}):", "    r = r * 2 + x"],
        [f"for i, x in qd.static(enumerate({p})):", "    r = r + i * x"],
        [f"for x in qd.static({p}[1:]):", "    r = r * 2 + x"],
        [fixed(f"sum({p})")], [fixed(f"sorted({p})[-1]")], [fixed(f"math.prod({p})")],
        [fixed(f"sorted({p})[0]")], [fixed(f"operator.getitem({p}, 1)")],
        [when(f"{c} in {p}")], [when(f"{c} not in {p}")], [when(p)], [when(f"not {p}")],
        [fixed(f"lib.size({p})")], [fixed(f"lib.total({p})")], [fixed(f"lib.size({p}, 3)")],
        [when(f"isinstance({p}, tuple)")], [when(f"{p} == (1, 2)")], [when(f"{p} == [1, 2]")],
        [fixed(f"len(repr({p}))")], [fixed(f"lib.pick({p})[0]")], [f"r = r + lib.q2(1, {p})"],
        [f"r = r + qd.static(len([x for x in {p} if x > 1]))"], [fixed(f"math.fsum({p})")],
        [f"for x in qd.static(lib.pick({p})):", "    r = r * 2 + x"],
        [fixed(f"len(tuple({p}))")], [when(f"{p} is None")],
        [f"for i in qd.static(range(len({p}))):", f"    r = r * 2 + {p}[i]"],
    ])


def of_rows(rng, p):
    return rng.choice([
        [f"for row in qd.static({p}):", "    for x in qd.static(row):", "        r = r * 2 + x"],
        [fixed(f"len({p})")], [fixed(f"len({p}[0])")], [term(f"{p}[0][0]")],
        [fixed(f"lib.size({p})")], [fixed(f"lib.size({p}[0])")], [fixed(f"len(repr({p}))")],
        [f"for row in qd.static({p}):", "    r = r * 2 + qd.static(sum(row))"],
        [fixed(f"len(sorted({p})[0])")], [when(f"{p}[-1]")], [f"r = r + lib.q2(1, {p})"],
    ])


def of_words(rng, p):
    c = rng.choice(TEXTS)
    return rng.choice([
        [f"for x in qd.static({p}):", "    r = r * 2 + qd.static(len(x))"],
        [when(f"{c} in {p}")], [fixed(f"len({p})")], [when(f"{p}[0] == {c}")],
        [fixed(f"lib.size({p})")], [fixed(f"len(sorted({p})[-1])")],
    ])


def of_dict(rng, p):
    k, c = f'"{rng.choice(KEYS)}"', rng.choice(INTS)
    return rng.choice([
        [term(f"{p}[{k}]")], [fixed(f"{p}[{k}]")], [fixed(f"{p}.get({k}, {c})")],
        [when(f"{k} in {p}")], [when(f"{k} not in {p}")], [term(f"len({p})")], [when(p)],
        [f"for k in qd.static({p}):", "    r = r * 2 + qd.static(len(repr(k)) + ord(k))"],
        [f"for k, x in qd.static({p}.items()):", "    r = r * 2 + x * len(k)"],
        [f"for x in qd.static({p}.values()):", "    r = r * 2 + x"],
        [fixed(f"lib.size({p})")], [fixed(f"len(repr({p}))")], [fixed(f"len(sorted({p})[0])")],
        [fixed(f"lib.pick({p})[{k}]")], [fixed(f"operator.getitem({p}, {k})")],
        [when(f"isinstance({p}, dict)")], [f"r = r + lib.q2(1, {p})"],
        [fixed(f"lib.pick({p}, {p}[{k}])")],
    ])


def of_thing(rng, p):
    m, c = rng.choice(MEMBERS), rng.choice(INTS)
    return rng.choice([
        [term(f"{p}.K")], [fixed(f"{p}.K")], [fixed(f"{p}.p")], [fixed(f"{p}.calc()")],
        [fixed(f"{p}.calc({c})")], [f"r = r + {p}.fm({c})"], [when(f'hasattr({p}, "{m}")')],
        [when(f'hasattr({p}, "p")')], [fixed(f'getattr({p}, "{m}", {c})')],
        [fixed(f'getattr({p}, "K")')], [when(f"isinstance({p}, lib.Plain)")],
        [when(f"isinstance({p}, lib.Made)")], [when(f"isinstance({p}, (lib.Data, lib.Slots))")],
        [when(p)], [when(f"not {p}")], [when(f"{p} is None")], [when(f"{p} is cfg.A")],
        [fixed(f"lib.size({p}.{m})")],
        [fixed(f"lib.pick({p}).K")], [fixed(f"lib.pick({p}.{m}, {p}.K)")],
    ])


def of_array(rng, p):
    return rng.choice([
        [term(f"{p}[0]")], [term(f"{p}[0]")], [term(f"{p}[0]")], [term(f"{p}.shape[0]")],
        [when(f"{p} is cfg.A")], [when(f"{p} is None")], [f"r = r + lib.q1({p}[0])"],
    ])


def of_module(rng):
    name, c = rng.choice("ABCDE"), rng.choice(INTS)
    return rng.choice([
        [when(f'hasattr(cfg, "{name}")')], [fixed(f'getattr(cfg, "{name}2", {c})')],
        [when("cfg is aux")], [when(f"cfg.{name} is aux.{name}")], [term("cfg.NUM + aux.NUM")],
        [term("lib.q3(2)")], [term("lib.q4(2)")], [term("lib.q3(1) + lib.q4(3)")],
        [term("lib.q1(1)")], [term("lib.QN")], [fixed("lib.size(3)")], [term("cfg.sub.NUM")],
        [term("lib.Level.HIGH")], [term("lib.Plain.K")],
        [when("lib.Color.RED == cfg.lib.Color.RED")], [fixed("lib.split(cfg.NUM)[0]")],
        [term("int(cfg.NUM)")],
    ])


def indented(lines):
    return ["    " + line for line in lines]


def reading(rng, path, node):
    """Lines that read a place, perhaps only if it is fit for that."""
    lines = reads(rng, path, node)
    if rng.random() < 0.8:
        return lines
    fit = {"none": "int", "odict": "dict", "text": "str", "words": "(list, tuple)",
           "rows": "(list, tuple)"}.get(node.kind, node.kind)
    if node.kind in CLASSES:
        fit = "lib." + CLASSES[node.kind]
    if node.kind in ("array", "color", "level"):
        return [f"if qd.static({path} is not None):", *indented(lines)]
    owner = path.rpartition(".")
    conditions = [f"{path} is not None"]
    if fit != "range":
        conditions.append(f"isinstance({path}, {fit})")
    if owner[0] and owner[2].isidentifier():
        conditions.append(f'hasattr({owner[0]}, "{owner[2]}")')
    return [f"if qd.static({rng.choice(conditions)}):", *indented(lines)]


def reads(rng, path, node):
    if rng.random() < 0.06:
        return rng.choice([[when(f"{path} is None")], [fixed(f"lib.size({path})")],
                           [when(f"isinstance({path}, int)")], [fixed(f"len(repr({path}))")]])
    kind = node.kind
    if kind in NUMBERS or kind == "none":
        return of_number(rng, path)
    if kind in CLASSES:
        return of_thing(rng, path)
    if kind in DICTS:
        return of_dict(rng, path)
    return {"text": of_text, "color": of_enum, "array": of_array, "rows": of_rows,
            "words": of_words}.get(kind, of_sequence)(rng, path)


# ---- programs -------------------------------------------------------------------------------

NAMES = "ABCDE"
KERNELS = '''
import collections, math, operator
import ingot as qd
import {0}_lib as lib
import {0}_cfg as cfg
import {0}_aux as aux
A_ = qd.types.ndarray()
'''
MAKER = '''
def make_{name}():
    {c} = {value}
    @qd.kernel
    def {name}(a_: A_, t: qd.template()):
        r = 0.0
{body}
        a_[0] = r
    def twin_{name}(t):
        r = 0.0
{twin}
        return r
    def set_{c}(v):
        nonlocal {c}
        {c} = v
    return {name}, twin_{name}, set_{c}, lambda: {c}
{name}, twin_{name}, set_{name}, get_{name} = make_{name}()
'''
BOXED = '''
@qd.kernel
def boxed(a_: A_, t: lib.Boxed):
    a_[0] = t.v
'''


def twin_of(line):
    """Without what Python lacks, and with the type that `n` has in a kernel."""
    line = re.sub(r"n \+= (.*)", r"n = int(n + \1)", line)
    return line.replace("qd.static(", "(")


class Kernel:
    def __init__(self, name, closure, node, blocks):
        self.name, self.closure, self.node, self.blocks = name, closure, node, blocks

    def text(self):
        lines = [line for block in self.blocks for line in block] or ["pass"]
        return MAKER.format(name=self.name, c=self.closure, value=self.node.text,
                            body="\n".join("        " + line for line in lines),
                            twin="\n".join("        " + twin_of(line) for line in lines))


def walk(path, node):
    """All places in a value: (path, node)."""
    out = [(path, node)]
    for at, kid in out:
        out += [(at + step, below) for step, below in kid.kids.items()]
    return out


def settings_text(prefix, values, extra=""):
    return (f"import collections, types\nimport ingot as qd\nimport {prefix}_lib as lib\n"
            "class Sub: NUM = 4\nsub = Sub()\n" + extra +
            "".join(f"{n} = {v}\n" for n, v in values.items()))


class Program:
    """A program: texts of its files, kernels, and changes. Its names begin with `@@`."""

    def __init__(self, seed, changes=30, kernels=6):
        rng = random.Random(seed)
        self.seed = seed
        self.lib = library(rng)
        self.cfg = {n: value(rng) for n in NAMES}
        self.aux = {n: value(rng) for n in NAMES}
        self.own = {f"G{i}": value(rng) for i in range(4)}
        self.arg = value(rng)
        self.num = (rng.choice(INTS), rng.choice(INTS))
        places = [w for n in NAMES for w in walk("cfg." + n, self.cfg[n])]
        places += [w for n in NAMES for w in walk("aux." + n, self.aux[n])]
        places += [w for n, v in self.own.items() for w in walk(n, v)]
        places += walk("t", self.arg) * 2
        self.kernels, self.read = [], []
        for i in range(kernels):
            node = value(rng)
            closed = walk(f"c{i}", node)
            blocks = []
            for _ in range(rng.choice([1, 1, 2, 2, 3])):
                if rng.random() < 0.15:
                    blocks.append(of_module(rng))
                    continue
                at, kid = rng.choice(closed if rng.random() < 0.25 else places)
                self.read.append((at, kid))
                blocks.append(reading(rng, at, kid))
            self.kernels.append(Kernel(f"k{i}", f"c{i}", node, blocks))
        self.changes = [change(rng, self) for _ in range(changes)]

    def files(self, prefix):
        def texts(values, num):
            return {**{n: v.text for n, v in values.items()}, "NUM": num}
        own = "".join(f"{n} = {v.text}\n" for n, v in self.own.items())
        kern = (KERNELS.format(prefix) + own + f"ARG = {self.arg.text}\n" + BOXED +
                "".join(k.text() for k in self.kernels))
        return {f"{prefix}_lib": self.lib, f"{prefix}_lib2": self.lib,
                f"{prefix}_cfg": settings_text(prefix, texts(self.cfg, self.num[0])),
                f"{prefix}_aux": settings_text(prefix, texts(self.aux, self.num[1])),
                f"{prefix}_kern": kern}

    def script(self, prefix="w"):
        """The program as one text, for people."""
        out = [f"# {name}.py\n{text.strip()}\n" for name, text in self.files(prefix).items()]
        out = out[2:] + ["# changes, each followed by launches", *self.changes, "", *out[:1]]
        return "\n".join(out) + "\n"


# ---- changes --------------------------------------------------------------------------------

def outside(path):
    """A place as the statements of changes name it."""
    if path == "t" or path.startswith(("t.", "t[")):
        return "kern.ARG" + path[1:]
    if re.match(r"c\d", path):
        return f"kern.get_k{path[1]}()" + path[2:]
    return "kern." + path


def assignment(path, text):
    if re.fullmatch(r"c\d", path):
        return f"kern.set_k{path[1]}({text})"
    return f"{outside(path)} = {text}"


def change_place(rng, program):
    """The value of a place that a kernel reads, or of one on the way to it."""
    path, node = rng.choice(program.read) if program.read else ("cfg.A", program.cfg["A"])
    if rng.random() < 0.1:
        return f"del {outside(path)}" if not re.fullmatch(r"c\d", path) else "pass"
    if rng.random() < 0.15:
        return assignment(path, f"copy.deepcopy({outside(path)})")
    return assignment(path, akin(rng, node).text)


def change_inside(rng, program):
    """A container or an object, in place."""
    path, node = rng.choice(program.read) if program.read else ("cfg.A", program.cfg["A"])
    if node.kind not in (*SEQUENCES, *DICTS, *CLASSES, "array"):
        path = re.sub(r"(\.\w+|\[[^]]*\])$", "", path) if rng.random() < 0.7 else path
        if path in ("cfg", "aux"):
            return f"kern.{path}.{rng.choice(NAMES)} = {value(rng, 1).text}"
    p, v = outside(path), number(rng).text
    key, name = rng.choice(KEYS), rng.choice(MEMBERS)
    if node.kind in DICTS:
        return rng.choice([
            f'{p}["{key}"] = {v}', f'{p}.pop("{key}", None)', f'{p}.update({{"{key}": {v}}})',
            f"swap_items({p})", f"{p}.move_to_end('{key}')", f"{p}.clear()",
            f'{p}["other"] = {v}', f'{p}["{key}"] = {value(rng, 1).text}'])
    if node.kind in CLASSES:
        return rng.choice([
            f"{p}.{name} = {v}", f"del {p}.{name}", f"{p}.{name} = {value(rng, 1).text}",
            f"{p}.K = {v}", f"{p}.other = {v}", f"{p}.__dict__ = dict({p}.__dict__)",
            f"{p}.__dict__ = {{'x': {v}}}", f"{p}.__class__ = lib.Other",
            f"{p}.__class__ = lib.Plain", f"{p}.__class__ = lib.Orient",
            f"object.__setattr__({p}, '{name}', {v})", f"{p}.__dict__['{name}'] = {v}",
            f"{p}.__class__ = type({p}.__class__.__name__, ({p}.__class__,), {{'K': {v}}})"])
    if node.kind == "array":
        return rng.choice([f"{p}[0] = {v}", assignment(path, array(rng).text)])
    return rng.choice([
        f"{p}.append({v})", f"{p}.insert(0, {v})", f"{p}.pop()", f"{p}.reverse()",
        f"{p}.sort()", f"{p}[0] = {v}", f"{p}[-1] = {v}", f"{p}.clear()", f"{p}.extend((1, 2))",
        f"{p}[1:] = [{v}]", f"{p}[0] = {value(rng, 2).text}"])


def change_module(rng, program):
    m = rng.choice(["cfg", "cfg", "cfg", "aux", "lib"])
    name, v = rng.choice([*NAMES, "NUM"]), value(rng, 1).text
    if m == "lib":
        name, v = rng.choice(["QN", "QT"]), rng.choice(["4", "(2, 3)", "(1, 2, 5)", "2.5"])
    return rng.choice([
        f"kern.{m} = clone(kern.{m})", f"kern.old = kern.{m}; kern.{m} = clone(kern.{m})",
        f"kern.{m} = clone(kern.{m}); kern.{m}.{name} = {v}", f"kern.{m}.{name} = {v}",
        f"kern.{m} = kern.old", f"kern.old.{name} = {v}", f"del kern.{m}.{name}",
        f"reload('{m}')", f"again('{m}')", f"rewrite('{m}', '{name}', {v!r}); reload('{m}')",
        f"rewrite('{m}', '{name}', {v!r}); again('{m}')",
        f"kern.{m}.__getattr__ = lambda name: {number(rng).text}",
        f"hide(kern.{m}, '{name}')", f"del kern.{m}.__getattr__",
        f"kern.{m}.__class__ = classed({name!r}, {number(rng).text})",
        f"kern.{m} = space(kern.{m})", f"del kern.{m}", "kern.cfg, kern.aux = kern.aux, kern.cfg",
        f"kern.{m} = start('{m}')", f"kern.{m} = start('{m}')",
    ])


def change_class(rng, program):
    c, v = rng.choice(["Plain", "Plain", "Made", "Orient", "Data", "Frozen", "Slots", "Space"]), \
        number(rng).text
    name = rng.choice([*MEMBERS, "K", "p"])
    return rng.choice([
        f"lib.{c}.K = {v}", f"del lib.{c}.K", f"lib.{c}.{name} = {v}", f"del lib.{c}.{name}",
        f"lib.{c}.{name} = property(lambda self: {v})", f"lib.{c}.calc = lambda self, n=1: {v}",
        f"lib.{c}.calc = lib.Other.calc", f"lib.{c}.fm = lib.Other.fm",
        f"lib.{c}.calc.__defaults__ = ({v},)", f"lib.{c}.__bool__ = lambda self: {v} > 1",
        f"del lib.{c}.__bool__", f"lib.{c}.__len__ = lambda self: 0",
        f"lib.{c} = lib.Other", f"lib.{c} = type('{c}', (lib.{c},), {{}})",
        "lib.Color = enum.Enum('Color', {'RED': 1, 'BLUE': 'b', 'NONE': 0})",
        "lib.Color = enum.Enum('Color', {'RED': 2, 'BLUE': 'b', 'NONE': 0})",
        "lib.Level = enum.IntEnum('Level', {'LOW': 2, 'HIGH': 9, 'ZERO': 0})",
        f"lib.{c}.__getattr__ = lambda self, name: {v}", f"del lib.{c}.__getattr__",
    ])


def change_function(rng, program):
    v, f = rng.choice(INTS), rng.choice(["size", "size", "total", "q1", "q3", "q4"])
    wrapped = f"lib.{f}" + (".__wrapped__" if f[0] == "q" else "")
    other = {"size": "size2", "total": "size2"}.get(f, "q5")
    return rng.choice([
        f"{wrapped}.__defaults__ = ({v},)", "lib.total.__defaults__[0].append(3)",
        "lib.total.__defaults__[0].clear()", f"lib.size.__kwdefaults__['more'] = {v}",
        f"lib.size.__kwdefaults__ = {{'more': {v}}}", f"lib.{f} = lib2.{f}",
        f"lib.{f} = lib2.{f}; lib2.QN = {v}", f"lib2.QN = {v}", f"lib.{f} = lib.{other}",
        f"{wrapped}.__code__ = {wrapped.replace(f, other)}.__code__",
        f"lib.{f} = start('lib').{f}", f"lib.QN = {v}", f"lib.QT = (1, {v})",
        "lib.size = lambda v, n=1, more=2: n + more", f"del {wrapped}.__defaults__",
        "lib.size.__kwdefaults__ = None", "lib.T = qd.f32", "lib.T = qd.f64", "lib.T = qd.i32",
        f"lib.QT = [1, {v}]", f"lib.QT.append({v})",
    ])


def change(rng, program):
    pick = rng.random()
    for share, make in ((0.3, change_place), (0.6, change_inside), (0.76, change_module),
                        (0.88, change_class), (1, change_function)):
        if pick < share:
            return make(rng, program)
