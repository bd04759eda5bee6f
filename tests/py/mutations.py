"""Ways to change what a kernel means: the table of tests/py/test_mutation.py.

Each case is a program with one hole, `@@`, and the two texts that fill it. `run()` of the
program returns what the kernel computed; `want` says what that must be before and after.
`live` is the same change made between two launches of one process: a statement with `@@`
(the module is `m`), or None where only a file can change. A case may bring further files:
`lib` and `lib2`, which the program imports as LIB and LIB2. `later`: the language may not have
it yet; then an error says so, and no value is wrong.
"""

from mutations_calls import IMPORTS, ROWS

HEAD = """
import ingot as qd
A = qd.types.ndarray()
"""
RUN = """
def run():
    a = qd.ndarray(qd.f64, 4)
    k(a)
    return a[0]
"""


class Case:
    def __init__(self, name, text, before, after, want, live=None, lib=None, lib2=None, run=RUN,
                 later=False):
        self.name, self.text, self.hole, self.want = name, text, (before, after), want
        self.live, self.lib, self.lib2, self.later = live, lib, lib2, later
        self.run = "" if "def run(" in text else run
        self.module = "case_" + "".join(c if c.isalnum() else "_" for c in name)

    def files(self, which):
        """{file name: text} before (0) or after (1) the change."""
        texts = {"": HEAD + self.text + self.run, "_lib": self.lib, "_lib2": self.lib2}
        out = {}
        for suffix, text in texts.items():
            if text is not None:
                text = text.replace("LIB2", self.module + "_lib2").replace(
                    "LIB", self.module + "_lib")
                out[self.module + suffix + ".py"] = text.replace("@@", self.hole[which])
        return out


def body(expression, extra=""):
    """A kernel that writes one expression."""
    return f"""
@qd.kernel
def k(a: A):
    {extra or "pass"}
    for i in range(1):
        a[0] = {expression}
"""


# Shows the type of `N` as well as its value: an integer variable cuts 0.75 off.
TYPED = """
@qd.kernel
def k(a: A):
    for i in range(1):
        x = N
        x += 0.75
        a[0] = x
"""

# Calls a Python function while it is compiled.
STATIC = """
@qd.kernel
def k(a: A):
    for i in range(1):
        x = qd.static(f())
        a[0] = x
"""

# A struct that is made, passed to a func by value, returned from it, and asked by a method.
STRUCT = """
N = 1
@qd.dataclass
class Inner:
    w: qd.f64
    @qd.func
    def twice(self):
        return 2 * self.w
@qd.dataclass
class S:
    x: MEMBER
    v: qd.types.vector(VECTOR)
    inner: Inner
    @qd.func
    def sum(self):
        return BODY + self.inner.twice()
@qd.func
def bump(s, d):
    s.x += d
    return s
@qd.kernel
def k(a: A):
    for i in range(1):
        s = bump(S(2.75, 3.5, inner=Inner(10)), 1)
        a[0] = s.sum()
"""


def struct(member="qd.f64", vector="2, qd.f64", body="self.x + self.v.sum()", n="1"):
    text = STRUCT.replace("MEMBER", member).replace("VECTOR", vector).replace("BODY", body)
    return text.replace("N = 1", "N = " + n)


CASES = [
    # ---- names -----------------------------------------------------------------------------
    Case("global int", "N = @@\n" + body("N"), "3", "5", (3, 5), live="m.N = @@"),
    Case("global float", "N = @@\n" + body("N * 2"), "0.5", "0.25", (1, 0.5), live="m.N = @@"),
    Case("int to float", "N = @@\n" + TYPED, "1", "1.0", (1, 1.75), live="m.N = @@"),
    Case("float to bool", "N = @@\n" + body("qd.cast(N, qd.f64) + (1 if qd.static(N is True) "
                                             "else 0)"), "1.0", "True", (1, 2), live="m.N = @@"),
    Case("sign of zero", "N = @@\n" + body("N * 1.0"), "0.0", "-0.0", ("0.0", "-0.0"),
         live="m.N = @@", run=RUN.replace("a[0]", "str(a[0])")),
    Case("large unsigned", "N = @@\n" + body("qd.cast(N, qd.f64)"), str(2**63), str(2**63 - 2**11),
         (2.0**63, 2.0**63 - 2**11), live="m.N = @@", later=True),
    Case("imported name", "from LIB import N\n" + body("N"), "3", "4", (3, 4), lib="N = @@\n",
         live="m.N = @@"),
    Case("module attribute", "import LIB as lib\n" + body("lib.N"), "3", "4", (3, 4),
         lib="N = @@\n", live="m.lib.N = @@"),
    Case("attribute of a module in a module", "import LIB as lib\n" + body("lib.other.N"), "3", "4",
         (3, 4), lib="import LIB2 as other\n", lib2="N = @@\n", live="m.lib.other.N = @@"),
    Case("module __getattr__", "import LIB as lib\n" + body("lib.N"), "3", "4", (3, 4),
         lib="hidden = @@\ndef __getattr__(name):\n    if name == 'N':\n        return hidden\n"
             "    raise AttributeError(name)\n", live="m.lib.hidden = @@"),
    Case("module attribute over __getattr__", "import LIB as lib\n" + body("lib.N"), "pass",
         "N = 4", (3, 4),
         lib="def __getattr__(name):\n    if name == 'N':\n        return 3\n"
             "    raise AttributeError(name)\n@@\n", live="m.lib.__dict__.__setitem__('N', 4)"),
    Case("builtin shadowed", "@@\n" + body("max(1, 2)"), "pass",
         "@qd.func\ndef max(a, b):\n    return a", (2, 1)),
    Case("closure cell", """
def make(n):
    @qd.kernel
    def k(a: A):
        for i in range(1):
            a[0] = n
    def put(v):
        nonlocal n
        n = v
    return k, put
k, put = make(@@)
""", "3", "7", (3, 7), live="m.put(@@)"),
    Case("type in a closure", """
def make(N):
    @qd.kernel
    def k(a: A):
        for i in range(1):
            x = N
            x += 0.75
            a[0] = x
    def put(v):
        nonlocal N
        N = v
    return k, put
k, put = make(@@)
""", "1", "1.0", (1, 1.75), live="m.put(@@)"),
    Case("closure or module", """
n = 3
def outer():
    @@
    @qd.kernel
    def k(a: A):
        for i in range(1):
            a[0] = n
    return k
k = outer()
""", "pass", "n = 4", (3, 4)),
    Case("global of a func", "from LIB import f\n" + body("f()"), "3", "4", (3, 4),
         lib="import ingot as qd\nN = @@\n@qd.func\ndef f():\n    return N\n",
         live="__import__('sys').modules[m.__name__ + '_lib'].N = @@"),
    Case("closure of a func", """
def make(n):
    @qd.func
    def f(x):
        return x + n
    return f
f = make(@@)
""" + body("f(1)"), "3", "4", (4, 5), live="m.f = m.make(@@)"),
    # ---- text --------------------------------------------------------------------------------
    Case("constant in the text", body("@@"), "3", "4", (3, 4)),
    Case("type of a constant in the text", """
@qd.kernel
def k(a: A):
    for i in range(1):
        x = @@
        x += 0.75
        a[0] = x
""", "1", "1.0", (1, 1.75)),
    Case("folded constant", "def run():\n    qd.init(default_fp=qd.f64)\n    a = qd.ndarray(qd.f64, 1)"
         "\n    k(a)\n    return a[0]\n" + body("@@"), "1 / 3", "0.3333333333333333",
         (1 / 3, 0.3333333333333333)),
    Case("folded constant, other digits", "def run():\n    qd.init(default_fp=qd.f64)\n"
         "    a = qd.ndarray(qd.f64, 1)\n    k(a)\n    return a[0]\n" + body("@@"), "1 / 3",
         "0.333333", (1 / 3, 0.333333)),
    Case("operator", body("(i + 5) @@ 2"), "*", "-", (10, 3)),
    Case("loop bound", """
@qd.kernel
def k(a: A):
    for i in range(@@):
        a[0] += 1
""", "3", "4", (3, 4)),
    Case("local annotation", """
@qd.kernel
def k(a: A):
    for i in range(1):
        x: @@ = 1.75
        a[0] = x
""", "qd.i32", "qd.f32", (1, 1.75)),
    Case("local annotation by name", """
T = @@
@qd.kernel
def k(a: A):
    for i in range(1):
        x: T = 1.75
        a[0] = x
""", "qd.i32", "qd.f32", (1, 1.75), live="m.T = m.@@"),
    Case("order of parameters", """
@qd.kernel
def k(a: A, @@):
    for i in range(1):
        a[0] = x - y
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, 5, 3)
    return a[0]
""", "x: qd.i32, y: qd.i32", "y: qd.i32, x: qd.i32", (2, -2)),
    Case("callee in another file", "from LIB import f\n" + body("f(i)"), "3", "4", (3, 4),
         lib="import ingot as qd\n@qd.func\ndef f(i):\n    return i + @@\n"),
    Case("callee of a callee", "from LIB import f\n" + body("f(i)"), "3", "4", (6, 8),
         lib="import ingot as qd\nfrom LIB2 import g\n@qd.func\ndef f(i):\n    return g(i) * 2\n",
         lib2="import ingot as qd\n@qd.func\ndef g(i):\n    return i + @@\n"),
    Case("func of equal name", """
@qd.func
def f(i):
    return i + 1
@qd.func
def g(i):
    return i + 2
h = @@
""" + body("h(i)"), "f", "g", (1, 2), live="m.h = m.@@"),
    Case("string compared", "S = @@\n" + body("1 if qd.static(S == 'x') else 2"), "'x'", "'y'",
         (1, 2), live="m.S = @@"),
    # ---- definitions: annotations, defaults, options ---------------------------------------------
    Case("default of a func", body("f()") + "@qd.func\ndef f(x=@@):\n    return x\n", "3", "4",
         (3, 4), live="m.f.__defaults__ = (@@,)"),
    Case("default of a func, of its function", body("f()") + "def g(x=@@):\n    return x\n"
         "f = qd.func(g)\n", "3", "4", (3, 4), live="m.g.__defaults__ = (@@,)"),
    Case("keyword default of a func", body("f()") + "@qd.func\ndef f(*, x=@@):\n    return x\n",
         "3", "4", (3, 4), live="m.f.__kwdefaults__ = {'x': @@}"),
    Case("keyword default of a func, in place", body("f(i)") +
         "@qd.func\ndef f(y, *, x=@@):\n    return x + y\n", "3", "4", (3, 4),
         live="m.f.__kwdefaults__['x'] = @@"),
    Case("type of a default", body("f() / 2") + "@qd.func\ndef f(x=@@):\n    return x\n", "3",
         "3.5", (1.5, 1.75), live="m.f.__defaults__ = (@@,)"),
    Case("default of a method", """
@qd.data_oriented
class C:
    @qd.func
    def f(self, x=@@):
        return x
    @qd.kernel
    def k(self, a: A):
        for i in range(1):
            a[0] = self.f()
def run():
    a = qd.ndarray(qd.f32, 1)
    C().k(a)
    return a[0]
""", "3", "4", (3, 4), live="m.C.f.__defaults__ = (@@,)"),
    Case("default that is taken away", body("f()") + "@qd.func\ndef f(x=3):\n    return x\n"
         "f.__defaults__ = @@\n", "(3,)", "None", (3, "IngotCallError"),
         live="m.f.__defaults__ = @@"),
    Case("default of a func by value", """
def make(n):
    @qd.func
    def f(x=n):
        return x
    return f
f = make(@@)
""" + body("f()"), "3", "4", (3, 4), live="m.f = m.make(@@)"),
    Case("annotation of a func by value", """
def make(T):
    @qd.func
    def f(x: T):
        y = x
        y += 0.75
        return y
    return f
f = make(@@)
""" + body("f(i + 1)"), "qd.i32", "qd.f32", (1, 1.75), live="m.f = m.make(m.@@)"),
    Case("default of a kernel", """
@qd.kernel
def k(a: A, n: qd.template() = @@):
    for i in range(1):
        a[0] = n
""", "3", "4", (3, 4), live="m.k.__defaults__ = (@@,)"),
    Case("default of a kernel, at launch", """
@qd.kernel
def k(a: A, n: qd.f32 = @@):
    for i in range(1):
        a[0] = n
""", "3", "4", (3, 4), live="m.k.__wrapped__.__defaults__ = (@@,)"),
    Case("keyword default of a kernel", """
@qd.kernel
def k(a: A, *, n: qd.template() = @@):
    for i in range(1):
        a[0] = n
""", "3", "4", (3, 4), live="m.k.__kwdefaults__['n'] = @@"),
    Case("default of a kernel by value", """
N = @@
def make(n):
    @qd.kernel
    def k(a: A, n: qd.template() = n):
        for i in range(1):
            a[0] = n
    return k
k = make(N)
""", "3", "4", (3, 4), live="m.k = m.make(@@)"),
    Case("annotation of a scalar", """
T = @@
@qd.kernel
def k(a: A, x: T):
    for i in range(1):
        a[0] = x
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, 1.75 if T == qd.f32 else 1)
    return a[0]
""", "qd.i32", "qd.f32", (1, 1.75)),
    Case("return annotation", """
@qd.kernel
def k() -> @@:
    return 1.75
def run():
    return k()
""", "qd.f32", "qd.i32", (1.75, 1)),
    Case("option of a func", "@qd.func(requires_top_level=@@)\ndef f(i):\n    return i + 1\n"
         + body("f(i)"), "False", "True", (1, "IngotSyntaxError")),
    # ---- arguments ---------------------------------------------------------------------------------
    Case("template value", """
V = @@
@qd.kernel
def k(a: A, n: qd.template()):
    for i in range(1):
        a[0] = n
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, V)
    return a[0]
""", "3", "4", (3, 4), live="m.V = @@"),
    Case("type of a template value", """
V = @@
@qd.kernel
def k(a: A, N: qd.template()):
    for i in range(1):
        x = N
        x += 0.75
        a[0] = x
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, V)
    return a[0]
""", "1", "1.0", (1, 1.75), live="m.V = @@"),
    Case("dtype of an argument", """
T = @@
@qd.kernel
def k(a: A):
    for i in range(1):
        a[0] = 1.75
def run():
    a = qd.ndarray(T, 1)
    k(a)
    return a[0]
""", "qd.f32", "qd.i32", (1.75, 1), live="m.T = m.@@"),
    Case("dimensions of an argument", """
S = @@
@qd.kernel
def k(a: A):
    for I in qd.grouped(a):
        a[I] = 1 if qd.static(len(a.shape) == 1) else 2
def run():
    a = qd.ndarray(qd.f32, S)
    k(a)
    return a[(0,) * len(S)]
""", "(2,)", "(2, 2)", (1, 2), live="m.S = @@"),
    Case("None or a value", """
V = @@
@qd.kernel
def k(a: A, n: qd.template()):
    for i in range(1):
        if qd.static(n is None):
            a[0] = -1
        else:
            a[0] = n
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, V)
    return a[0]
""", "None", "4", (-1, 4), live="m.V = @@"),
    # ---- objects -------------------------------------------------------------------------------------
    Case("class attribute", "class C:\n    n = @@\n" + body("C.n"), "3", "4", (3, 4),
         live="m.C.n = @@"),
    Case("inherited attribute", "class B:\n    n = @@\nclass C(B):\n    pass\n" + body("C.n"), "3",
         "4", (3, 4), live="m.B.n = @@"),
    Case("attribute that hides an inherited one", "class B:\n    n = 3\nclass C(B):\n    @@\n"
         + body("C.n"), "pass", "n = 4", (3, 4), live="m.C.n = 4"),
    Case("attribute of an object", "class C:\n    pass\nc = C()\nc.n = @@\n" + body("c.n"), "3", "4",
         (3, 4), live="m.c.n = @@"),
    Case("object replaced", "class C:\n    def __init__(self, n):\n        self.n = n\nc = C(@@)\n"
         + body("c.n"), "3", "4", (3, 4), live="m.c = m.C(@@)"),
    Case("attribute at depth", """
class C:
    pass
c = C()
c.a = C()
c.a.b = C()
c.a.b.n = @@
""" + body("c.a.b.n"), "3", "4", (3, 4), live="m.c.a.b.n = @@"),
    Case("slot", "class C:\n    __slots__ = ('n',)\nc = C()\nc.n = @@\n" + body("c.n"), "3", "4",
         (3, 4), live="m.c.n = @@"),
    Case("property", "class C:\n    v = @@\n    @property\n    def n(self):\n        return self.v * 2\n"
         "c = C()\n" + body("c.n"), "3", "4", (6, 8), live="m.C.v = @@"),
    Case("__getattr__", "V = @@\nclass C:\n    def __getattr__(self, name):\n"
         "        if name == 'n':\n            return V\n        raise AttributeError(name)\n"
         "c = C()\n" + body("c.n"), "3", "4", (3, 4), live="m.V = @@"),
    Case("attribute of a template object", """
class C:
    n = @@
c = C()
@qd.kernel
def k(a: A, c: qd.template()):
    for i in range(1):
        a[0] = c.n
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, c)
    return a[0]
""", "3", "4", (3, 4), live="m.c.n = @@"),
    Case("method of a template object", """
class C:
    n = 10
    @qd.func
    def f(self, i):
        return self.n + i + @@
    @qd.func
    def g(self, i):
        return self.n + i + 4
c = C()
@qd.kernel
def k(a: A, c: qd.template()):
    for i in range(1):
        a[0] = c.f(i)
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, c)
    return a[0]
""", "3", "4", (13, 14), live="m.C.f = m.C.g"),
    Case("member read by a kernel method", """
@qd.data_oriented
class C:
    def __init__(self):
        self.n = @@
    @qd.kernel
    def k(self, a: A):
        for i in range(1):
            a[0] = self.n
c = C()
def run():
    a = qd.ndarray(qd.f64, 1)
    c.k(a)
    return a[0]
""", "3", "4", (3, 4), live="m.c.n = @@"),
    Case("member of a frozen dataclass", """
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    n: int = 0
c = C(n=@@)
@qd.kernel
def k(a: A, c: qd.template()):
    for i in range(1):
        a[0] = c.n
def run():
    a = qd.ndarray(qd.f64, 1)
    k(a, c)
    return a[0]
""", "3", "4", (3, 4), live="m.c = m.C(n=@@)"),
    Case("default in a dataclass", "import dataclasses\n@dataclasses.dataclass\nclass C:\n"
         "    n: int = @@\nc = C()\n" + body("c.n"), "3", "4", (3, 4), live="m.c = m.C(n=@@)"),
    Case("named tuple", "import collections\nT = collections.namedtuple('T', 'n m')\nc = T(@@, 1)\n"
         + body("c.n"), "3", "4", (3, 4), live="m.c = m.T(@@, 1)"),
    # ---- enums ---------------------------------------------------------------------------------------
    Case("enum value in another file", "from LIB import E\n" + body("E.X"), "3", "4", (3, 4),
         lib="import enum\nclass E(enum.IntEnum):\n    W = 1\n    X = @@\n"),
    Case("enum value by attribute", "from LIB import E\n" + body("E.X.value"), "0.5", "0.25",
         (0.5, 0.25), lib="import enum\nclass E(enum.Enum):\n    X = @@\n"),
    Case("order of an enum", "from LIB import E\n" + body("E.X.value"), "X, Y", "Y, X", (1, 2),
         lib="import enum\nE = enum.Enum('E', '@@')\n"),
    Case("member of an enum", "import enum\nclass E(enum.IntEnum):\n    X = 3\n    Y = 4\nV = E.@@\n"
         + body("V"), "X", "Y", (3, 4), live="m.V = m.E.@@"),
    Case("enum member or its number", "import enum\nclass E(enum.IntEnum):\n    X = 3\n    Y = 4\n"
         "V = @@\n" + body("1 if qd.static(V == E.X) else 2"), "E.X", "4", (1, 2)),
    # ---- containers ------------------------------------------------------------------------------------
    Case("item of a list", "L = [1, @@]\n" + body("L[1]"), "3", "4", (3, 4), live="m.L[1] = @@"),
    Case("item of a tuple", "L = (1, @@)\n" + body("L[1]"), "3", "4", (3, 4), live="m.L = (1, @@)"),
    Case("item of a dict", "L = {'x': @@}\n" + body("L['x']"), "3", "4", (3, 4),
         live="m.L['x'] = @@"),
    Case("item of a dict by number", "L = {7: @@}\n" + body("L[7]"), "3", "4", (3, 4),
         live="m.L[7] = @@"),
    Case("type of an item", "L = [@@]\n" + TYPED.replace("= N", "= L[0]"), "1", "1.0", (1, 1.75),
         live="m.L[0] = @@"),
    Case("item at depth", "L = {'x': [(1, @@)]}\n" + body("L['x'][0][1]"), "3", "4", (3, 4),
         live="m.L['x'][0] = (1, @@)"),
    Case("length of a list", "L = [1, 2@@]\n" + body("len(L)"), "", ", 3", (2, 3),
         live="m.L.append(3)"),
    Case("static loop over a list", """
L = [1, 2@@]
@qd.kernel
def k(a: A):
    for i in range(1):
        for v in qd.static(L):
            a[0] += v
""", "", ", 3", (3, 6), live="m.L.append(3)"),
    Case("static loop over a tuple", """
L = (1, @@)
@qd.kernel
def k(a: A):
    for i in range(1):
        for v in qd.static(L):
            a[0] = a[0] * 10 + v
""", "2", "3", (12, 13), live="m.L = (1, @@)"),
    Case("static range", """
N = @@
@qd.kernel
def k(a: A):
    for i in range(1):
        for j in qd.static(range(N)):
            a[0] += j
""", "3", "4", (3, 6), live="m.N = @@"),
    Case("static if", "FLAG = @@\n" + body("1 if qd.static(FLAG) else undefined"), "True", "1",
         (1, 1)),
    Case("static if, other way", """
FLAG = @@
@qd.kernel
def k(a: A):
    for i in range(1):
        if qd.static(FLAG):
            a[0] = 1
        else:
            a[0] = 2
""", "True", "False", (1, 2), live="m.FLAG = @@"),
    # ---- captured arrays -----------------------------------------------------------------------------------
    Case("dtype of a captured array", "t = qd.ndarray(@@, 1)\nt.fill(7)\n" + body("t[0] / 2"),
         "qd.f32", "qd.i32", (3.5, 3.5), live="m.t = m.qd.ndarray(m.@@, 1); m.t.fill(7)"),
    Case("dimensions of a captured array", "t = qd.ndarray(qd.f32, @@)\nt.fill(7)\n"
         + body("t.shape[0] * 10 + qd.static(len(t.shape))"), "(2,)", "(3, 3)", (21, 32),
         live="m.t = m.qd.ndarray(m.qd.f32, @@)"),
    Case("captured array replaced", "t = qd.ndarray(qd.f32, 1)\nt.fill(@@)\n" + body("t[0]"), "3",
         "4", (3, 4), live="m.t = m.qd.ndarray(m.qd.f32, 1); m.t.fill(@@)"),
    # ---- dtypes and NumPy scalars --------------------------------------------------------------------------
    Case("dtype by name", "T = @@\n" + body("qd.cast(1.75, T)"), "qd.i32", "qd.f32", (1, 1.75),
         live="m.T = m.@@"),
    Case("type of a NumPy scalar", "import numpy as np\nN = @@\n" + TYPED, "np.int32(1)",
         "np.float64(1)", (1, 1.75), live="m.N = m.@@"),
    # ---- settings ---------------------------------------------------------------------------------------------
    Case("default_fp", "OPTIONS = dict(default_fp=@@)\ndef run():\n    qd.init(**OPTIONS)\n"
         "    a = qd.ndarray(qd.f64, 1)\n    k(a)\n    return a[0] == 0.1\n"
         + body("qd.cast(0.1, float)"), "qd.f32", "qd.f64", (False, True),
         live="m.OPTIONS['default_fp'] = m.@@"),
    Case("default_ip", "OPTIONS = dict(default_ip=@@)\ndef run():\n    qd.init(**OPTIONS)\n"
         "    a = qd.ndarray(qd.f64, 1)\n    k(a)\n    return a[0]\n" + """
@qd.kernel
def k(a: A):
    for i in range(1):
        x = 2000000000
        x += 2000000000
        a[0] = x
""", "qd.i32", "qd.i64", (-294967296, 4000000000), live="m.OPTIONS['default_ip'] = m.@@"),
    Case("debug", "OPTIONS = dict(debug=@@)\ndef run():\n    qd.init(**OPTIONS)\n"
         "    a = qd.ndarray(qd.f64, 1)\n    k(a)\n    return a[0]\n" + """
@qd.kernel
def k(a: A):
    for i in range(1):
        assert a[0] > 1
        a[0] = 3
""", "False", "True", (3, "IngotAssertionError"), live="m.OPTIONS['debug'] = @@"),
    Case("check_out_of_bound", "OPTIONS = dict(check_out_of_bound=@@)\ndef run():\n"
         "    qd.init(**OPTIONS)\n    a = qd.ndarray(qd.f64, 1)\n    k(a, 0)\n    k(a, 1)\n"
         "    return a[0]\n" + """
@qd.kernel
def k(a: A, n: qd.i32):
    for i in range(1):
        if n == 2 or a[n * a.shape[0] - n] == 7:
            a[0] = 2
        a[0] = 3
""", "False", "True", (3, 3), live="m.OPTIONS['check_out_of_bound'] = @@"),
    Case("fast_math", "OPTIONS = dict(fast_math=@@)\ndef run():\n    qd.init(**OPTIONS)\n"
         "    a = qd.ndarray(qd.f32, 1)\n    a.fill(2e-38)\n    k(a)\n    return a[0] > 0\n"
         + body("a[0] * 0.5"), "True", "False", (False, True), live="m.OPTIONS['fast_math'] = @@"),
    Case("text of an assertion", "OPTIONS = dict(debug=True)\ndef run():\n    qd.init(**OPTIONS)\n"
         "    a = qd.ndarray(qd.f64, 1)\n    try:\n        k(a)\n    except AssertionError as e:\n"
         "        return 'first' in str(e), 'second' in str(e)\n" + """
@qd.kernel
def k(a: A):
    for i in range(1):
        assert a[0] > 1, "@@"
""", "first", "second", ([True, False], [False, True])),
    # ---- structs ---------------------------------------------------------------------------
    Case("type of a member", struct(member="@@"), "qd.f64", "qd.i32", (30.75, 30.0)),
    Case("size of a vector in a struct", struct(vector="@@, qd.f64"), "2", "3", (30.75, 34.25)),
    Case("dtype of a vector in a struct", struct(vector="2, @@"), "qd.f64", "qd.i32", (30.75, 29.75)),
    Case("method of a struct", struct(body="self.x @@ self.v.sum()"), "+", "-", (30.75, 16.75)),
    Case("method of a struct in a struct", struct().replace("2 * self.w", "@@ * self.w"), "2", "3",
         (30.75, 40.75)),
    Case("global of a method", struct(body="self.x * N", n="@@"), "1", "2", (23.75, 27.5), live="m.N = @@"),
    Case("order of members", "S = qd.types.struct(@@)\n" + body("S(1, 2).p"), "p=qd.f64, q=qd.f64",
         "q=qd.f64, p=qd.f64", (1, 2), live="qd = m.qd; m.S = qd.types.struct(@@)"),
    Case("another type with other methods", "@qd.func\ndef one(self):\n    return self.p\n@qd.func\ndef two(self):\n"
         "    return self.p * 2\ndef make(f):\n    return qd.types.struct(p=qd.f64, __struct_methods={'f': f})\n"
         "S = make(@@)\n" + body("S(3).f()"), "one", "two", (3, 6), live="m.S = m.make(m.@@)"),
    Case("member of a captured struct", "S = qd.Struct(x=@@, y=2)\n" + body("S.x"), "3", "4", (3, 4), live="m.S.x = @@"),
    Case("captured struct as a whole", "S = qd.Struct(x=@@, v=[1, 2])\n" + body("t.x + t.v[1]", "t = S"), "3", "4", (5, 6),
         live="m.S.x = @@"),
    Case("vector of a captured struct", "S = qd.Struct(x=1, v=[@@, 2])\n" + body("t.x + t.v[0]", "t = S"), "3", "4", (4, 5),
         live="m.S.v[0] = @@"),
    Case("method of a captured struct", "@qd.func\ndef f(self):\n    return self.x @@ 2\nS = qd.Struct({'x': 3, "
         "'__struct_methods': {'f': f}})\n" + body("S.f()"), "+", "*", (5, 6)),
    Case("annotation of a struct parameter", "S = qd.types.struct(x=@@)\ns = S(2.5)\n@qd.kernel\ndef k(a: A, s: S):\n"
         "    for i in range(1):\n        a[0] = s.x\ndef run():\n    a = qd.ndarray(qd.f64, 1)\n    k(a, s)\n"
         "    return a[0]\n", "qd.f64", "qd.i32", (2.5, 2)),
    Case("struct result", "S = qd.types.struct(x=@@, y=qd.i32)\n@qd.kernel\ndef k() -> S:\n    return S(2.5, 3)\n"
         "def run():\n    s = k()\n    return [s.x, s.y]\n", "qd.f64", "qd.i32", ([2.5, 3], [2, 3])),
    # ---- calls while compiling (R2) -------------------------------------------------------------------------------
    Case("body of a Python function", "def size():\n    return @@\n" + body("qd.static(size())"), "3",
         "4", (3, 4), live="m.size = lambda: @@", later=True),
    Case("order of a dict", """
D = {@@}
@qd.kernel
def k(a: A):
    for i in range(1):
        for name in qd.static(D):
            a[0] = a[0] * 10 + D[name]
""", "'x': 1, 'y': 2", "'y': 2, 'x': 1", (12, 21), live="m.D = {@@}", later=True),
    # ---- Python at its most dynamic --------------------------------------------------------------
    Case("class of an object", "class P:\n    n = 3\nclass Q:\n    n = 4\nc = @@()\n" + body("c.n"),
         "P", "Q", (3, 4), live="m.c.__class__ = m.@@"),
    Case("bases of a class", "class P:\n    n = 3\nclass Q:\n    n = 4\nclass C(@@):\n    pass\n"
         + body("C.n"), "P", "Q", (3, 4), live="m.C.__bases__ = (m.@@,)"),
    Case("attribute of a metaclass", "class M(type):\n    n = @@\nclass C(metaclass=M):\n    pass\n"
         + body("C.n"), "3", "4", (3, 4), live="m.M.n = @@"),
    Case("dictionary of an object", "class C:\n    pass\nc = C()\nc.__dict__ = {'n': @@}\n"
         + body("c.n"), "3", "4", (3, 4), live="m.c.__dict__ = {'n': @@}"),
    Case("state of a descriptor", """
class D:
    def __init__(self, v):
        self.v = v
    def __get__(self, obj, cls):
        return self.v
class C:
    n = D(@@)
c = C()
""" + body("c.n"), "3", "4", (3, 4), live="m.C.__dict__['n'].v = @@"),
    Case("__getattribute__", """
V = @@
class C:
    def __getattribute__(self, name):
        return V if name == "n" else object.__getattribute__(self, name)
c = C()
""" + body("c.n"), "3", "4", (3, 4), live="m.V = @@"),
    Case("name of a module rebound", "import math\nmath.half = @@\n" + body("math.half"), "0.5",
         "0.25", (0.5, 0.25), live="m.math.half = @@"),
    Case("name in builtins", "import builtins\nbuiltins.ingot_test_n = @@\n" + body("ingot_test_n"),
         "3", "4", (3, 4), live="m.builtins.ingot_test_n = @@"),
    Case("name that hides a builtin one", "import builtins\nbuiltins.ingot_test_m = 3\n@@\n"
         + body("ingot_test_m"), "pass", "ingot_test_m = 4", (3, 4), live="m.ingot_test_m = 4"),
    Case("enum of equal names", """
import enum
P = enum.IntEnum("E", {"X": 3})
Q = enum.IntEnum("E", {"X": 4})
E = @@
""" + body("E.X"), "P", "Q", (3, 4), live="m.E = m.@@"),
    Case("list in a tuple", "T = ([1, @@],)\n" + body("T[0][1]"), "3", "4", (3, 4),
         live="m.T[0][1] = @@"),
    Case("dict in a dict", "T = {'a': {'b': @@}}\n" + body("T['a']['b']"), "3", "4", (3, 4),
         live="m.T['a']['b'] = @@"),
    Case("ordered dict", "import collections\nT = collections.OrderedDict(a=@@)\n" + body("T['a']"),
         "3", "4", (3, 4), live="m.T['a'] = @@"),
    Case("last item", "T = [1, 3]\n@@\n" + body("T[-1]"), "pass", "T.append(4)", (3, 4),
         live="m.T.append(4)"),
    Case("code of a Python function", "def f():\n    return 3\ndef g():\n    return 4\n@@\n"
         + STATIC, "pass", "f.__code__ = g.__code__", (3, 4), live="m.f.__code__ = m.g.__code__"),
    Case("default of a Python function", "def f(v=@@):\n    return v\n" + STATIC, "3", "4", (3, 4),
         live="m.f.__defaults__ = (@@,)"),
    Case("keyword default of a Python function", "def f(*, v=@@):\n    return v\n" + STATIC, "3",
         "4", (3, 4), live="m.f.__kwdefaults__ = {'v': @@}"),
    Case("Python function of equal text", "def make(n):\n    def f():\n        return n\n"
         "    return f\nf = make(@@)\n" + STATIC, "3", "4", (3, 4), live="m.f = m.make(@@)"),
]
CASES += [Case(name, IMPORTS + before + body(f"qd.cast(qd.static({call}), qd.f64)"), *hole, want, live=live)
          for name, before, call, *hole, want, live in ROWS]
