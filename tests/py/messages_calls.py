"""Mistakes that people make, second part: compile time and run time, funcs, kernels and their
arguments, places. What a row is: tests/py/messages.py."""

from messages import ROWS, body, row

# ---- compile time and run time --------------------------------------------------------------------

body("run-time value in static", "C", "compile-time", "x = qd.static(«a[0]»)", help="qd.template")
body("static if of a run-time value", "C", "compile-time", """
    if qd.static(«a[0] > 0»):
        a[1] = 1
""", help="qd.template")
row("scalar parameter in static", "C", "compile-time", """
@qd.kernel
def k(n: qd.i32):
    if qd.static(«n > 0»):
        pass
""", run="k(1)", help="qd.template")
body("static without an argument", "T", "static takes at least 1", "x = «qd.static()»")
body("static assert of a run-time value", "T", "non-static condition",
     "qd.static_assert(«a[0] > 0»)")
body("static assert that fails", "C", "too small", "«qd.static_assert(N > 3, 'too small')»",
     before="N = 2\n", help="assertion")
body("Python function with a run-time value", "C", "runs while compiling", "x = plain(«a[0]»)",
     before="""
def plain(x):
    return x + 1

""", help="@qd.func")
body("math function with a run-time value", "C", "runs while compiling", "x = math.sin(«a[0]»)",
     before="import math\n", help="qd.")
body("NumPy function with a run-time value", "C", "runs while compiling", "x = np.sin(«a[0]»)",
     before="import numpy as np\n", help="qd.")
body("Python function with an array", "C", "runs while compiling", "x = np.sum(«a»)",
     before="import numpy as np\n", help="outside of the kernel")
body("Python function that fails", "ValueError", "mine", "x = plain(1)", before="""
def plain(x):
    raise ValueError('mine')

""", help=None)
body("keywords that would be written to", "S", "cannot write", "x = qd.static(«np.sqrt(4.0, out=None)»)",
     before="""
import numpy as np

""", help="leave it out")
body("a class is called", "C", "runs while compiling", "x = C(«a[0]»)", before="""
class C:
    def __init__(self, x):
        self.x = x

""")
body("a list grows", "S", "append", """
    items = []
    for i in range(3):
        «items.append(i)»
""")

# ---- funcs --------------------------------------------------------------------------------------------

FUNC = """
@qd.func
def f(x, y):
    return x + y

"""
body("missing argument of a func", "P", "Missing argument 'y' of f", "x = «f(1)»", before=FUNC,
     help="it takes (x, y)")
body("too many arguments of a func", "P", "Too many arguments", "x = «f(1, 2, 3)»", before=FUNC,
     help="it takes (x, y)")
body("unknown keyword of a func", "P", "Unexpected argument 'z'", "x = f(1, z=«2»)", before=FUNC,
     help="it takes (x, y)")
body("keyword and position", "P", "Multiple values for argument 'x'", "x = f(1, 2, x=«2»)",
     before=FUNC, help="once")
body("string for a func", "T", "unsupported operand", "z = f('s', 1)", before=FUNC.replace(
    "x + y", "«x + y»"), chain=["in the call of f"])
row("error inside a func", "N", 'Name "q" is not defined', """
@qd.func
def inner(x):
    return x * «q»

@qd.func
def outer(x):
    return inner(x) + 1

@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(8):
        a[i] = outer(a[i])
""", chain=["in the call of inner at FILE:7:12", "in the call of outer at FILE:12:16"])
row("error inside a func of another file", "T", "indices must be integers", """
from LIB import helper

@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(8):
        helper(a, i / 2)
""", lib="""
import ingot as qd

@qd.func
def helper(a: qd.types.ndarray(), i):
    a[«i»] = 1
""", chain=["in the call of helper at FILE:6:9"], help="int(x)")
row("recursion", "C", "recursi", """
@qd.func
def f(n):
    return «f(n - 1)»

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(3)
""", help="loop")
row("two funcs call each other", "C", "recursi", """
@qd.func
def f(n):
    return g(n - 1)

@qd.func
def g(n):
    return «f(n)»

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(3)
""", help="loop")
row("returns of two types", "T", "return", """
@qd.func
def f(x):
    if x > 0:
        return 1, 2
    «return 3»

@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(3):
        v = f(a[0])
""")
row("func with a wrong annotation", "S", "no parameter type", """
@qd.func
def f(«x: 3»):
    return x

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(1)
""", help="qd.f32")
row("func with *args", "S", "`*args`", """
@qd.func
def f(*«args»):
    return 1

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(1)
""", help="name every")
row("func with **kwargs", "S", "`**kwargs`", """
@qd.func
def f(**«kwargs»):
    return 1

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(x=1)
""", help="name every")
row("array argument of a value parameter", "T", "an array", """
@qd.func
def f(x: qd.f32):
    return x

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(«a»)
""", help="a[i]")
row("value argument of an array parameter", "T", "annotated as an array", """
@qd.func
def f(x: qd.types.ndarray()):
    return x[0]

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(«a[0]»)
""", help="array")
row("func needs the top level", "S", "requires_top_level", """
@qd.func(requires_top_level=True)
def f(a: qd.types.ndarray()):
    for i in range(8):
        a[i] = 1

@qd.kernel
def k(a: qd.types.ndarray()):
    if a[0] > 0:
        «f(a)»
""", help="outermost")
row("func with an unknown default", "N", "not defined", """
@qd.func
def f(x, y=None):
    return «x + y»

@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = f(1)
""")
ROWS[-1].kind, ROWS[-1].match = "IngotTypeError", "unsupported operand"
row("kernel called from a kernel", "S", "cannot be called from a kernel", """
@qd.kernel
def other(a: qd.types.ndarray()):
    a[0] = 1

@qd.kernel
def k(a: qd.types.ndarray()):
    «other(a)»
""", help="@qd.func")
row("kernel calls itself", "S", "cannot be called from a kernel", """
@qd.kernel
def k(a: qd.types.ndarray()):
    «k(a)»
""", help="@qd.func")
row("method that fails", "M", "no attribute 'speed'", """
class Solver:
    def __init__(self):
        self.dt = 0.1

    @qd.func
    def step(self, x):
        return x + self.dt * «self.speed»

    @qd.kernel
    def run(self, a: qd.types.ndarray()):
        for i in range(8):
            a[i] = self.step(a[i])

s = Solver()
""", run="s.run(a)", chain=["in the call of Solver.step at FILE:12:20"])
row("method with a bare parameter", "S", "has no type annotation", """
class Solver:
    @qd.kernel
    def run(this, «b», a: qd.types.ndarray()):
        a[0] = 1

s = Solver()
""", run="s.run(1, a)", help="annotate")
row("closure that is empty", "N", 'Name "later" is not defined', """
def make():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        a[0] = «later»
    return k
    later = 3

k = make()
""")

# ---- kernels: parameters and results ------------------------------------------------------------------

row("missing annotation", "S", "has no type annotation", """
@qd.kernel
def k(«a»):
    a[0] = 1
""", help="annotate")
row("one missing annotation of two", "S", "'n' has no type annotation", """
@qd.kernel
def k(a: qd.types.ndarray(), «n»):
    a[0] = n
""", run="k(a, 1)", help="annotate")
row("annotation that is no type", "S", "no parameter type", """
@qd.kernel
def k(«a: 'list of numbers'[0:4]»):
    pass
""", help="qd.types.ndarray")
row("annotation str", "S", "no parameter type", """
@qd.kernel
def k(«a: str»):
    pass
""", help="qd.template()", run="k('x')")
row("annotation that is undefined", "N", "nonsense", """
from __future__ import annotations

@qd.kernel
def k(«a: nonsense.foo»):
    pass
""")
row("kernel with *args", "S", "`*args`", """
@qd.kernel
def k(*«args»):
    pass
""", run="k()", help="name every")
row("kernel with **kwargs", "S", "`**kwargs`", """
@qd.kernel
def k(**«kwargs»):
    pass
""", run="k()", help="name every")
row("too few arguments", "P", "Missing argument 'n' of k", """
@qd.kernel
«def k(a: qd.types.ndarray(), n: qd.i32):
    pass»
""", help="(a, n)")
row("too many arguments", "P", "Too many arguments: k takes 1, found 2", """
@qd.kernel
«def k(a: qd.types.ndarray()):
    pass»
""", run="k(a, 1)", help="(a)")
row("unknown keyword", "P", "Unexpected argument 'b' of k", """
@qd.kernel
«def k(a: qd.types.ndarray()):
    pass»
""", run="k(a, b=1)", help="(a)")
row("float for an integer", "A", "must be an integer", """
@qd.kernel
def k(«n: qd.i32»):
    pass
""", run="k(1.5)")
row("string for a number", "A", "argument 'n' must be an integer (i32), it is of type str", """
@qd.kernel
def k(«n: qd.i32»):
    pass
""", run="k('1')")
row("number too large", "A", "does not fit", """
@qd.kernel
def k(«n: qd.i32»):
    pass
""", run="k(2**31)")
row("list for an array", "A", "must be an array, not list", """
@qd.kernel
def k(«a: qd.types.ndarray()»):
    pass
""", run="k([1, 2])", help="numpy.array")
row("wrong dtype of an array", "A", "Expect element type i32 for argument a, but get f32", """
@qd.kernel
def k(«a: qd.types.ndarray(dtype=qd.i32)»):
    pass
""", help="convert")
row("wrong ndim of an array", "A", "required ndim=2", """
@qd.kernel
def k(«a: qd.types.ndarray(ndim=2)»):
    pass
""", help="reshape")
row("array that is not contiguous", "A", "contiguous", """
import numpy as np

@qd.kernel
def k(«a: qd.types.ndarray()»):
    pass
""", run="k(np.zeros((4, 4))[:, 1])", help="contiguous")
row("array of complex numbers", "A", "arrays of complex numbers", """
import numpy as np

@qd.kernel
def k(«a: qd.types.ndarray()»):
    pass
""", run="k(np.zeros(3, complex))", help="x.real.copy()")
row("return without annotation", "S", "must be annotated with a return type", """
@qd.kernel
def k(a: qd.types.ndarray()):
    «return a[0]»
""", help="-> qd.f32")
row("annotation without return", "S", "return", """
@qd.kernel
def k(a: qd.types.ndarray()) -> «qd.f32»:
    a[0] = 1
""")
row("return in a branch", "S", "Return inside non-static if/for", """
@qd.kernel
def k(a: qd.types.ndarray()) -> qd.f32:
    if a[0] > 0:
        «return a[0]»
    return 1.0
""", help="at the end")
row("return in a loop", "S", "Return inside non-static if/for", """
@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(8):
        if a[i] > 0:
            «return»
""", help="at the end")
row("too many results", "T", "return 1 value", """
@qd.kernel
def k(a: qd.types.ndarray()) -> qd.f32:
    «return a[0], a[1]»
""")
row("too few results", "T", "return 2 values", """
@qd.kernel
def k(a: qd.types.ndarray()) -> (qd.f32, qd.f32):
    «return a[0]»
""")
row("string as a result", "T", "a number is needed", """
@qd.kernel
def k(a: qd.types.ndarray()) -> qd.f32:
    return «'x'»
""")
row("array as a result", "T", "an array", """
@qd.kernel
def k(a: qd.types.ndarray()) -> qd.f32:
    return «a»
""")
row("return annotation is no type", "S", "no return type", """
@qd.kernel
def k(a: qd.types.ndarray()) -> «str»:
    return a[0]
""", help="dtype")
row("lambda as a kernel", "S", "a lambda cannot be a kernel", """
k = qd.kernel(lambda a: a[0])
""", help="def")
row("kernel of a class", "TypeError", "expected a Python function", """
class C:
    pass

def k(a):
    qd.kernel(C)
""", help=None)
row("generator as a kernel", "S", "`yield` is not supported", """
@qd.kernel
def k(a: qd.types.ndarray()):
    for i in range(3):
        «yield i»
""", help="array")
row("kernel option", "TypeError", "fast", """
def k(a):
    @qd.kernel(fast=True)
    def f():
        pass
""", help=None)

# ---- vectors and matrices -----------------------------------------------------------------------------

V = "v = qd.Vector([1.0, 2.0])\n"
body("vector assigned to an element", "T", "a number is needed here; this is a vector",
     "a[0] = «qd.Vector([1, 2])»", help="pick an element")
body("vector added to an element", "T", "cannot be added to a number", "«a[0] += qd.Vector([1, 2])»",
     help="sum()")
body("atomic with a vector", "T", "this is a vector", "«qd.atomic_add(a[0], qd.Vector([1, 2]))»",
     help="pick an element")
body("loop over a vector", "T", "this is a vector", """
    for i in range(«qd.Vector([1, 2])»):
        a[i] = 1
""", help="pick an element")
body("string in a vector", "T", "this is the string 's'", "v = qd.Vector(«['s', 1]»)", help="number")
body("None in a vector", "T", "this is None", "v = qd.Vector(«[1, None]»)")
body("rows of different lengths", "T", "differ in length", "m = qd.Matrix(«[[1, 2], [3]]»)",
     help="every row")
body("vector of another length", "T", "cannot assign",
     "v = qd.Vector([1, 2, 3])\n«v» = qd.Vector([1, 2])", help="shapes")
body("element beyond a vector", "C", "index 2 is out of bounds", V + "a[0] = «v[2]»", help="from 0")
body("component that is not there", "S", "vec2 only has attributes", V + "a[0] = «v.z»", help="v[i]")
body("attribute of a vector", "M", "has no attribute 'colour'", V + "a[0] = «v.colour»", help="x, y")
body("float as an index of a vector", "T", "indices must be integers", V + "a[0] = «v[a[1]]»",
     help="int(x)")
body("text as an index of a vector", "T", "cannot be indexed with", V + "a[0] = «v['x']»", help="integer")
S = "@qd.dataclass\nclass S:\n    x: qd.f32\n    size: qd.i32\n"
body("misspelt member of a struct", "N", "the struct has no member 'sise'", "s = S(1, 2)\na[0] = «s.sise»",
     before=S, help="did you mean 'size'?")
body("member that a struct does not have", "N", "the struct has no member 'colour'",
     "s = S(1, 2)\na[0] = «s['colour']»", before=S, help="['x', 'size']")
body("number as an index of a struct", "T", "a struct cannot be indexed with", "s = S(1, 2)\na[0] = «s[0]»",
     before=S, help="s.x")
body("method that a struct does not have", "N", "'area'", "s = S(1, 2)\na[0] = «s.area»()", before=S)
body("structs with other members", "T", "Member mismatch",
     "s = S(1, 2)\n«s» = qd.Struct(x=1.0, y=2)", before=S, help="same members")
body("number assigned to a struct", "T", "Only dict or Struct", "s = S(1, 2)\n«s» = 3.0", before=S,
     help="same members")
body("array in a struct", "T", "a struct cannot hold an array", "s = «qd.Struct(x=a)»", help="beside the struct")
body("slice with a step of zero", "V", "step of zero", V + "w = «v[0:2:0]»", help="step")
body("empty slice", "I", "an empty slice", V + "w = «v[1:1]»", help="before the end")
body("vectors of two lengths", "T", "Dimension mismatch", V + "w = «v + qd.Vector([1, 2, 3])»",
     help="equal")
body("condition with a vector", "T", "this is a vector", V + """
if «v»:
    a[0] = 1
""", help=".any()")
body("cross product with a number", "C", "is not a vector", V + "w = «v.cross(1)»", help="qd.Vector")
body("determinant of no square", "C", "expected a square matrix",
     "x = «qd.Matrix([[1, 2]]).determinant()»", help="as many rows")
body("matrix product with a number", "T", "for '@'", V + "w = «v @ 2»", help="`*`")
body("arguments of a method of vectors", "T", "sum takes 0 arguments, found 1", V + "x = «v.sum(3)»",
     help="leave out")
body("vector without a size", "T", "the size is missing", "v = «qd.Vector.zero(qd.f32)»", help="dtype, n")
body("vector of no elements", "T", "1 to", "v = «qd.Vector.zero(qd.f32, 0)»", help="array")
body("unit vector beyond its size", "I", "unit vector 3 of 2", "v = «qd.Vector.unit(2, 3)»", help="(n, i)")
body("diagonal without a value", "T", "takes a size and a value", "m = «qd.Matrix.diag(2)»", help="val")

# ---- places: tabs, wide characters, long expressions, files ------------------------------------

row("tabs", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
\tfor i in range(8):
\t\tif i > 1:
\t\t\ta[i] =\t«nope» + 1
""")
row("unicode names", "N", 'Name "größe" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    länge = a[0]
    ß = länge + «größe»
""")
row("wide characters before the column", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    print("長さ は 🦀", «nope»)
""")
row("unicode misspelled", "N", 'Name "lange" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    längen = a[0]
    a[1] = «lange»
""")
row("second line of an expression", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = (a[1]
            + a[2]
            + «nope»)
""")
row("expression over several lines", "T", "unsupported operand type(s) for '|'", """
@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = («a[1]
            | a[2]»)
""", help="qd.cast")
row("argument on its own line", "T", "a number is needed", """
@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = qd.max(
        a[1],
        «'two'»,
    )
""")
row("backslash", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = a[1] + \\
        «nope»
""")
row("one line", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()): a[0] = 1; a[1] = «nope»
""")
row("decorators and comments above", "N", 'Name "nope" is not defined', """
def mark(**kw):
    return lambda f: f

@qd.kernel
# a comment
@mark(x=1,
      y=2)

def k(a: qd.types.ndarray()):
    "a docstring
    with \\"quotes\\""
    a[0] = «nope»
""".replace('"a doc', '"""a doc').replace('\\""', '\\""""'))
row("after a string over lines", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    '''text
  less indented
'''
    a[0] = «nope»
""")
row("in a class in a function", "N", 'Name "nope" is not defined', """
def make():
    class C:
        @qd.kernel
        def k(self, a: qd.types.ndarray()):
            a[0] = «nope»
    return C()

k = make().k
""")
row("in an f-string", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    print(f"value: {«nope»}")
""")
row("with an asserted message", "N", 'Name "nope" is not defined', """
@qd.kernel
def k(a: qd.types.ndarray()):
    assert a[0] > 0, f"{«nope»}"
""", init="debug=True")

# ---- at run time ---------------------------------------------------------------------------------

body("index out of bounds", "I", "index 8 is out of bounds for axis 0 with size 8", """
    for i in range(9):
        a[«i»] = 1
""", init="debug=True", help="the last one is 7: end the loop at a.shape[0]")
body("index out of bounds in a func", "I", "out of bounds for axis 0", """
    for i in range(8):
        f(a, i)
""", before="""
@qd.func
def f(x, i):
    x[«i + 8»] = 1

""", init="debug=True", help="the last one is 7")
body("index below the first", "I", "index -1 is out of bounds for axis 0", """
    i = 0
    a[«i - 1»] = 1
""", init="debug=True", help="the last one is a.shape[0] - 1")
body("assert", "X", "negative: -1.0", """
    a[3] = -1.0
    for i in range(8):
        «assert a[i] >= 0, f"negative: {a[i]}"»
""", init="debug=True", help=None)
body("assert without a message", "X", "assertion failed", "«assert a[0] > 100»",
     init="debug=True", help=None)
