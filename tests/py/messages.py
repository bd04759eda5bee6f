"""Mistakes that people make: the table of tests/py/test_messages.py.

Each row is a program and what Ingot must say about it. The text that the message is about is
put between « and » (taken out before the program runs): its line, column and the width of the
caret come from there. `BODY` rows are bodies of a kernel `k(a)`, where `a` is an f32 array of
8 elements; other rows are whole programs that define `k`, called as `run` says.

    row(name, class of the error, substring of the message, program, run=..., help=...)

`help` is a substring of the remedy; None where the message has no remedy to give. A program
can bring a second file, `lib`, which it imports as LIB; the mark may be in either.
"""

BODY = """\
@qd.kernel
def k(a: qd.types.ndarray()):
"""
PREFIX = {"S": "IngotSyntaxError", "T": "IngotTypeError", "N": "IngotNameError",
          "C": "IngotCompilationError", "A": "IngotArgumentError", "I": "IngotIndexError",
          "R": "IngotRuntimeError", "X": "IngotAssertionError"}

ROWS = []


class Row:
    def __init__(self, name, kind, match, text, run, help, lib, chain, init):
        self.name, self.kind, self.match, self.run = name, PREFIX.get(kind, kind), match, run
        self.text, self.help, self.lib, self.chain, self.init = text, help, lib, chain, init


def row(name, kind, match, text, run="k(a)", help="", lib=None, chain=(), init=""):
    """One mistake in a whole program."""
    ROWS.append(Row(name, kind, match, text.lstrip("\n"), run, help, lib, chain, init))


def body(name, kind, match, text, help="", before="", **more):
    """One mistake in the body of a kernel; `before` stands above the kernel."""
    lines = text.strip("\n").split("\n")
    cut = len(lines[0]) - len(lines[0].lstrip(" "))
    text = "\n".join("    " + line[cut:] if line.strip() else "" for line in lines)
    row(name, kind, match, before.lstrip("\n") + BODY + text + "\n", help=help, **more)


# ---- statements that are not in the language --------------------------------------------

body("try", "S", "`try` is not supported", """
    «try:
        a[0] = 1
    except ValueError:
        pass»
""", help="if")
body("try star", "S", "`try` is not supported", """
    «try:
        a[0] = 1
    finally:
        pass»
""")
body("with", "S", "`with` is not supported", """
    «with open("f") as f:
        a[0] = 1»
""")
body("raise", "S", "`raise` is not supported", "«raise ValueError('no')»", help="assert")
body("del", "S", "`del` is not supported", """
    x = 1
    «del x»
""")
body("import", "S", "`import` is not supported", "«import math»", help="top of the file")
body("from import", "S", "`import` is not supported", "«from math import sin»", help="top")
body("global", "S", "`global` is not supported", """
    «global G»
    G = 3
""", before="G = 1\n")
row("nonlocal", "S", "`nonlocal` is not supported", """
def make():
    total = 0

    @qd.kernel
    def k(a: qd.types.ndarray()):
        «nonlocal total»
        total = 3

    return k

k = make()
""", help="arrays")
body("class", "S", "classes cannot be defined", """
    «class C:
        pass»
""", help="outside")
body("nested def", "S", "Function definition is not allowed", """
    «def f(x):
        return x»
    a[0] = f(1)
""", help="@qd.func")
body("nested async def", "S", "Function definition is not allowed", """
    «async def f(x):
        return x»
""", help="@qd.func")
body("match", "S", "`match` is not supported", """
    «match a.shape[0]:
        case 1:
            pass»
""", help="if")
body("lambda", "S", "`lambda` is not supported", "f = «lambda x: x + 1»", help="@qd.func")
body("yield", "S", "`yield` is not supported", "«yield a[0]»", help="array")
body("yield from", "S", "`yield` is not supported", "«yield from a»", help="array")
body("set", "S", "sets are not supported", "s = «{1, 2}»", help="tuple")
body("set comprehension", "S", "set comprehensions are not supported",
     "s = «{i for i in qd.static(range(3))}»", help="list")
body("starred in an expression", "S", "starred targets", "x, «*y» = 1, 2, 3", help="every item")
body("star of a number", "T", "only compile-time sequences", """
    x = a[0]
    a[1] = max(«*x»)
""", help="tuple")
body("double star", "S", "`**` arguments", "qd.atomic_add(a[0], **«{'y': 1}»)", help="name every")
body("f-string as a value", "T", "formatted string", 'x = «1 + f"{a[0]}"»', help="printed")
body("while else", "S", "'else' clause for 'while'", """
    «while a[0] > 0:
        a[0] -= 1
    else:
        a[0] = 7»
""", help="flag")
body("for else", "S", "'else' clause for 'for'", """
    «for i in range(3):
        a[i] = 1
    else:
        a[0] = 7»
""", help="flag")
body("bytes", "S", "bytes", "x = «b'abc'»")
body("complex", "S", "complex", "x = «2j»")
body("ellipsis", "S", "...", "x = «...»")
body("matrix product of numbers", "S", "'@'", """
    x = a[0]
    a[1] = «x @ x»
""")
row("async kernel", "S", "`async def`", """
@qd.kernel
«async def k(a: qd.types.ndarray()):
    pass»
""", help="plain")

# ---- names --------------------------------------------------------------------------------

body("undefined name", "N", 'Name "nope" is not defined', "a[0] = «nope» + 1")
body("misspelled name", "N", 'Name "velocty" is not defined', """
    velocity = a[0]
    a[1] = 2 * «velocty»
""", help="did you mean 'velocity'")
body("misspelled global", "N", 'Name "GRAVTY" is not defined', "a[0] = «GRAVTY»",
     before="GRAVITY = 9.81\n")
body("name of a branch", "N", 'Name "x" is not defined', """
    if a[0] > 0:
        x = 1
    a[0] = «x»
""", help="inside an `if`")
body("name of a loop", "N", 'Name "i" is not defined', """
    for i in range(3):
        a[i] = 1
    a[0] = «i»
""", help="inside")
body("augmented assignment of nothing", "N", 'Name "total" is not defined', """
    for i in range(8):
        «total» += a[i]
""", help="assign it before")
body("augmented assignment of a global", "S", "'G' is a Python value", """
    «G» += 1
""", before="G = 1\n", help="array")
body("use before assignment", "N", 'Name "x" is not defined', """
    a[0] = «x»
    x = 1
""", help="before this line")
body("module attribute", "N", "no attribute 'sine'", "a[0] = «math.sine»(1.0)",
     before="import math\n")
body("qd attribute", "N", "no attribute 'sinus'", "a[0] = «qd.sinus»(a[1])")
body("attribute of a number", "N", "no attribute 'real'", """
    x = a[0]
    a[1] = «x.real»
""")
body("attribute of an array", "N", "no attribute 'size'", "a[0] = «a.size»", help="shape")
body("array method", "N", "no attribute 'sum'", "a[0] = «a.sum»()")
body("attribute of None", "N", "no attribute 'x'", "a[0] = «nothing.x»",
     before="nothing = None\n")
body("attribute of an object", "N", "no attribute 'dt'", "a[0] = «config.dt»", before="""
class Config:
    step = 0.1

config = Config()
""")
body("builtin hidden by a local", "T", "cannot be called", """
    range = 3
    for i in «range(3)»:
        a[i] = 1
""")
body("builtin hidden by a global", "T", "cannot be called", "a[0] = «max(1, 2)»",
     before="max = 5\n")
body("max hidden by a number", "T", "cannot be called", """
    max = a[0]
    a[1] = «max(a[1], 2)»
""")
body("builtin with an array", "C", "sorted", "x = sorted(«a»)", help="@qd.func")
body("input()", "T", "input cannot be called", "x = «input()»", help="outside")

# ---- assignments ----------------------------------------------------------------------------

body("assign to an array parameter", "S", 'Kernel argument "a" is immutable', "«a» = 3",
     help="new variable")
row("assign to a scalar parameter", "S", 'Kernel argument "n" is immutable', """
@qd.kernel
def k(n: qd.i32):
    «n» = 3
""", run="k(1)", help="new variable")
row("augmented assignment of a parameter", "S", 'Kernel argument "n" is immutable', """
@qd.kernel
def k(n: qd.i32):
    «n» += 3
""", run="k(1)", help="new variable")
row("assign to a template parameter", "S", 'Kernel argument "n" is immutable', """
@qd.kernel
def k(n: qd.template()):
    «n» = 3
""", run="k(1)", help="new variable")
body("assign to a loop variable", "S", "loop variable 'i' cannot be assigned", """
    for i in range(3):
        «i» = 2
""", help="new variable")
body("augmented assignment of a loop variable", "S", "loop variable 'i' cannot be assigned", """
    for i in range(3):
        «i» += 2
""", help="new variable")
body("loop variable twice", "S", "'i' is already declared", """
    for i in range(3):
        for «i» in range(3):
            a[i] = 1
""", help="another name")
body("loop variable hides a local", "S", "'x' is already declared", """
    x = 1
    for «x» in range(3):
        a[x] = 1
""", help="another name")
body("assign to an attribute", "S", "attributes cannot be assigned", "«c.v» = 3", before="""
class C:
    v = 1

c = C()
""", help="arrays")
body("augmented assignment of an attribute", "S", "attributes cannot be assigned", "«c.v» += 3",
     before="""
class C:
    v = 1

c = C()
""", help="arrays")
body("assign to an item of a tuple", "S", "items of compile-time values", """
    t = (1, 2)
    «t[0]» = 3
""", help="array")
body("assign to an item of a global list", "S", "items of compile-time values", "«L[0]» = 3",
     before="L = [1, 2]\n", help="array")
body("too few targets", "S", "2 targets, 3 values", "«x, y» = 1, 2, 3")
body("too many targets", "S", "3 targets, 2 values", "«x, y, z» = 1, 2")
body("unpack a number", "S", "Cannot unpack", "«x, y» = a[0]")
body("tuple variable changes", "S", "cannot be assigned", """
    x = (1, 2)
    «x» = 3
""", help="another name")
body("annotation without a value", "S", "needs a value", "«x: qd.i32»", help="first value")
body("annotation is no type", "T", "dtype", "x: «3» = 1")
body("annotation of an element", "S", "only names can be annotated", "«a[0]»: qd.f32 = 1",
     help="annotation")
body("annotated twice", "S", "'x' is i32", """
    x: qd.i32 = 1
    «x: qd.f32 = 2»
""", help="another name")
body("static assign of an element", "S", "Static assign", "«a[0]» = qd.static(3)",
     help="leave out")
body("value of a func that returns nothing", "T", "no value", "x = «f()»", before="""
@qd.func
def f():
    pass

""", help="return")
body("None as a number", "T", "None", "a[0] = «None»")
body("None in arithmetic", "T", "unsupported operand type(s) for '+'", "a[0] = «a[1] + None»")
body("string into an array", "T", "a number is needed", "a[0] = «'text'»", help="compile-time")
body("tuple into an array", "T", "tuple", "a[0] = «(1, 2)»")
body("array into an element", "T", "an array", "a[0] = «a»", help="a[i]")
body("dtype as a number", "T", "qd.f32", "a[0] = «qd.f32»", help="convert")
body("func as a number", "T", "func", "a[0] = «f»", before="""
@qd.func
def f():
    return 1

""", help="call it")

# ---- types and operators -------------------------------------------------------------------------

body("string plus number", "T", "unsupported operand type(s) for '+'", "a[0] = «'x' + a[1]»")
body("bits of floats", "T", "unsupported operand type(s) for '&'", "a[0] = «a[1] & 1»",
     help="qd.cast")
body("shift of a float", "T", "unsupported operand type(s) for '<<'", """
    x = «a[1] << 2»
""", help="qd.cast")
body("augmented bits of floats", "T", "unsupported operand type(s)", "«a[1] |= 2»", help="int")
body("invert a float", "T", "'~'", "x = «~a[0]»")
body("not of a float", "T", "f32", "x = «not a[0]»")
body("float as a condition", "T", "`if` conditions must be an integer", """
    if «a[0]»:
        a[1] = 1
""", help="x != 0")
body("float as a loop condition", "T", "`while` conditions must be an integer", """
    while «a[0]»:
        a[0] -= 1
""", help="x != 0")
body("array as a condition", "T", "an array", """
    if «a»:
        pass
""", help="a[i]")
body("compare with a string", "T", "'=='", """
    if «a[0] == 'x'»:
        pass
""")
body("order of strings and numbers", "T", "'<'", """
    if «a[0] < 'x'»:
        pass
""")
body("compare with None", "T", "None", """
    if «a[0] < None»:
        pass
""")
body("is at run time", "S", '"is"', """
    if «a[0] is 1»:
        pass
""", help="==")
body("in at run time", "C", '"In" is only supported', """
    if «a[0] in a»:
        pass
""")
body("add arrays", "T", "unsupported operand type(s) for '+'", "x = «a + a»", help="loop")
body("negative of an array", "T", "an array", "x = «-a»", help="a[i]")
body("large literal", "T", "exceeded the range of default_ip", "x = «3000000000»", help="qd.i64")
body("huge literal", "T", "64 bits", "x = «100000000000000000000000000»")
body("literal of a small type", "T", "exceeded the range of specified dtype: i8",
     "x = «qd.i8(300)»", help="wider")
body("float literal of an integer type", "T", "Floating-point literals", "x = «qd.i32(1.5)»",
     help="qd.cast")
body("integer literal of a float type", "T", "Integer literals", "x = «qd.f32(1)»",
     help="qd.cast")
body("cast to no type", "T", "dtype", "x = qd.cast(a[0], «'f32'»)")
body("cast without a type", "T", "cast takes 2 arguments, found 1", "x = «qd.cast(a[0])»",
     help="(x, dtype)")
body("bit_cast of another size", "T", "sizes differ", "x = «qd.bit_cast(a[0], qd.f64)»",
     help="same size")
body("sin of an integer", "T", "'sin' takes real inputs", "x = qd.sin(«a.shape[0]»)",
     help="qd.cast")
body("sqrt of a string", "T", "a number is needed", "x = qd.sqrt(«'4'»)")
body("too many arguments of a function", "T", "sqrt takes 1 argument, found 2", "x = «qd.sqrt(1.0, 2.0)»")
body("popcnt of a float", "T", "integral", "x = qd.math.popcnt(«a[0]»)", help="integer")
body("division of literals by zero", "C", "division by zero", "x = «1 // 0»")
body("static division by zero", "C", "division by zero", "x = qd.static(«1 / 0»)")
body("negative shift count", "C", "shift", "x = qd.static(«1 << -1»)")
body("atomic on a value", "S", "non-writable", "qd.atomic_add(«3», 1)")
body("atomic of floats", "T", "atomic_and", "«qd.atomic_and(a[0], 1)»", help="integers")
body("select with a float", "T", "qd.select", "x = qd.select(«a[0]», 1, 2)", help="x != 0")
body("min of a string", "T", "number", "x = min(a[0], «'x'»)")
body("call a number", "T", "cannot be called", """
    x = a[0]
    a[1] = «x(1)»
""")
body("call an array", "T", "cannot be called", "x = «a(0)»", help="a[i]")
body("format of an unknown kind", "S", "format", "print(f'{«a[0]»:q}')", help="formats")

# ---- subscripts ------------------------------------------------------------------------------

body("float index", "T", "indices must be integers, however 'f32'", "x = a[«a[0]»]", help="int(x)")
body("float literal index", "T", "indices must be integers", "x = a[«1.5»]", help="int(x)")
body("division as an index", "T", "indices must be integers", """
    for i in range(8):
        a[«i / 2»] = 1
""", help="//")
body("string index", "T", "must be an integer", "x = a[«'x'»]")
body("None index", "T", "must be an integer", "x = a[«None»]")
body("negative index", "S", "Negative indices", "x = a[«-1»]", help="a.shape")
body("slice of an array", "S", "slices of arrays", "x = a[«1:3»]", help="loop")
body("too many indices", "I", "dim 1 accessed with indices of dim 2", "x = «a[0, 1]»",
     help="one index per axis")
row("too few indices", "I", "dim 2 accessed with indices of dim 1", """
@qd.kernel
def k(m: qd.types.ndarray(ndim=2)):
    m[0, 0] = «m[0]»
""", run="k(m)", help="one index per axis")
row("chained indices", "I", "dim 2 accessed with indices of dim 1", """
@qd.kernel
def k(m: qd.types.ndarray(ndim=2)):
    «m[0]»[1] = 3.0
""", run="k(m)", help="one index per axis")
body("float in the second index", "T", "provided as index 1", "x = m[0, «a[0]»]",
     before="m = M\n", help="int(x)")
body("index of a number", "T", "cannot be indexed", """
    x = a[0]
    a[1] = «x[0]»
""")
body("run-time index of a tuple", "C", "compile-time integer", """
    t = (1.0, 2.0)
    for i in range(2):
        a[i] = «t[i]»
""", help="qd.static")
body("index past a tuple", "I", "index 2", """
    t = (1.0, 2.0)
    a[0] = «t[2]»
""")
body("axis that is not there", "I", "no axis 1", "x = «a.shape[1]»")
body("missing key", "C", "no item", "x = «D['b']»", before="D = {'a': 1}\n")
body("string index of a tuple", "T", "cannot be indexed", "x = «T['x']»", before="T = (1, 2)\n")
row("index of a scalar parameter", "T", "cannot be indexed", """
@qd.kernel
def k(n: qd.i32):
    x = «n[0]»
""", run="k(1)")

# ---- loops -----------------------------------------------------------------------------------

body("break in a parallel loop", "S", "Cannot break in the outermost loop", """
    for i in range(8):
        if a[i] > 1:
            «break»
""", help="serialize=True")
body("break in a parallel loop over an array", "S", "Cannot break", """
    for i in a:
        «break»
""", help="while")
body("break of a static loop", "S", "`break` a static `for`", """
    for i in qd.static(range(3)):
        if a[i] > 1:
            «break»
""", help="static")
body("continue of a static loop", "S", "`continue` a static `for`", """
    for i in qd.static(range(3)):
        if a[i] > 1:
            «continue»
""", help="static")
body("range with a step", "S", "Range should have 1 or 2 arguments", """
    for i in «range(0, 8, 2)»:
        a[i] = 1
""", help="step")
body("range of nothing", "T", "range takes at least 1", """
    for i in «range()»:
        a[i] = 1
""")
body("range of a string", "T", "number", """
    for i in range(«'8'»):
        a[i] = 1
""")
body("range of an array", "T", "number", """
    for i in range(«a»):
        a[i] = 1
""", help="shape")
body("loop over a number", "S", "cannot run over", """
    for i in «8»:
        a[i] = 1
""", help="range(")
body("loop over a list", "S", "cannot run over", """
    for i in «[1, 2, 3]»:
        a[i] = 1
""", help="qd.static")
body("loop over enumerate", "S", "cannot run over", """
    for i, x in «enumerate(T)»:
        a[i] = x
""", before="T = (1, 2)\n", help="qd.static")
body("loop over a set", "C", "cannot iterate over", """
    for i in «qd.static(S)»:
        a[i] = 1
""", before="S = {1, 2}\n")
body("two variables of one axis", "S", "(2 names, 1 axes)", """
    for «i, j» in a:
        a[i] = 1
""", help="one name per axis")
body("one variable of two axes", "S", "(1 names, 2 axes)", """
    for «i» in qd.ndrange(2, 3):
        a[i] = 1
""", help="qd.grouped")
body("grouped with two names", "S", "1 loop target", """
    for «i, j» in qd.grouped(a):
        a[i] = 1
""", help="one name")
body("ndrange of a float", "T", "ndrange", """
    for i, j in qd.ndrange(«2.5», 3):
        a[i] = 1
""", help="int(x)")
body("ndrange of three bounds", "S", "ndrange", """
    for i, j in qd.ndrange(«(0, 3, 1)», 3):
        a[i] = 1
""")
body("ndrange of nothing", "S", "ndrange", """
    for i in «qd.ndrange()»:
        a[i] = 1
""")
body("subscript as loop variable", "S", "must be a name", """
    for «a[0]» in range(3):
        pass
""", help="names")
body("static loop over a run-time count", "C", "compile-time", """
    n = a.shape[0]
    for i in qd.static(«range(n)»):
        a[i] = 1
""", help="qd.static")
body("too long an unrolling", "C", "more than 65536", """
    for i in «qd.static(range(1000000))»:
        a[0] = i
""", help="qd.static")
body("comprehension over a run-time count", "C", "compile-time", """
    x = [i for i in «range(a.shape[0])»]
""")
body("loop_config with an unknown option", "T", "no parameter 'parallel'", """
    qd.loop_config(parallel=«True»)
    for i in range(3):
        a[i] = 1
""")

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
     before="N = 2\n", help=None)
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
     before="import numpy as np\n", help="@qd.func")
body("Python function that fails", "ValueError", "mine", "x = plain(1)", before="""
def plain(x):
    raise ValueError('mine')

""", help=None)
body("keywords of a Python function", "S", "keyword arguments", "x = «plain(x=1)»", before="""
def plain(x):
    return x

""", help="position")
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
body("missing argument of a func", "S", "Missing argument 'y' of f", "x = «f(1)»", before=FUNC,
     help="it takes (x, y)")
body("too many arguments of a func", "S", "Too many arguments", "x = «f(1, 2, 3)»", before=FUNC,
     help="it takes (x, y)")
body("unknown keyword of a func", "S", "Unexpected argument 'z'", "x = f(1, z=«2»)", before=FUNC,
     help="it takes (x, y)")
body("keyword and position", "S", "Multiple values for argument 'x'", "x = f(1, 2, x=«2»)",
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
row("method that fails", "N", "no attribute 'speed'", """
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
row("method without self", "S", "has no type annotation", """
class Solver:
    @qd.kernel
    def run(«this», a: qd.types.ndarray()):
        a[0] = 1

s = Solver()
""", run="s.run(a)", help="annotate")
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
""", help="qd.types.ndarray", run="k('x')")
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
row("too few arguments", "T", "takes 2 arguments, got 1", """
@qd.kernel
«def k(a: qd.types.ndarray(), n: qd.i32):
    pass»
""", help="(a, n)")
row("too many arguments", "T", "takes 1 argument", """
@qd.kernel
«def k(a: qd.types.ndarray()):
    pass»
""", run="k(a, 1)", help="(a)")
row("unknown keyword", "T", "no parameter is called 'b'", """
@qd.kernel
«def k(a: qd.types.ndarray()):
    pass»
""", run="k(a, b=1)", help="(a)")
row("float for an integer", "A", "must be an integer", """
@qd.kernel
def k(«n: qd.i32»):
    pass
""", run="k(1.5)")
row("string for a number", "A", "cannot be converted into required type i32", """
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
""", run="k([1, 2])", help="NumPy")
row("wrong dtype of an array", "A", "required array has dtype=i32", """
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
row("array of objects", "A", "not supported", """
import numpy as np

@qd.kernel
def k(«a: qd.types.ndarray()»):
    pass
""", run="k(np.zeros(3, complex))", help="dtype")
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
""", init="debug=True", help=None)
body("index out of bounds in a func", "I", "out of bounds for axis 0", """
    for i in range(8):
        f(a, i)
""", before="""
@qd.func
def f(x, i):
    x[«i + 8»] = 1

""", init="debug=True", help=None)
body("assert", "X", "negative: -1.0", """
    a[3] = -1.0
    for i in range(8):
        «assert a[i] >= 0, f"negative: {a[i]}"»
""", init="debug=True", help=None)
body("assert without a message", "X", "assertion failed", "«assert a[0] > 100»",
     init="debug=True", help=None)
