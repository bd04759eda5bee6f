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
PREFIX = {"S": "IngotSyntaxError", "P": "IngotCallError", "V": "IngotValueError", "T": "IngotTypeError", "N": "IngotNameError",
          "C": "IngotCompilationError", "A": "IngotArgumentError", "I": "IngotIndexError",
          "R": "IngotRuntimeError", "X": "IngotAssertionError", "M": "IngotAttributeError"}

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
body("with", "S", "`with` only supports", """
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
body("module attribute", "M", "no attribute 'sine'", "a[0] = «math.sine»(1.0)",
     before="import math\n")
body("qd attribute", "M", "no attribute 'sinus'", "a[0] = «qd.sinus»(a[1])")
body("attribute of a number", "M", "no attribute 'real'", """
    x = a[0]
    a[1] = «x.real»
""")
body("attribute of an array", "M", "no attribute 'size'", "a[0] = «a.size»", help="shape")
body("array method", "M", "no attribute 'sum'", "a[0] = «a.sum»()")
body("attribute of None", "M", "no attribute 'x'", "a[0] = «nothing.x»",
     before="nothing = None\n")
body("attribute of an object", "M", "no attribute 'dt'", "a[0] = «config.dt»", before="""
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
body("builtin with an array", "T", "sorted", "x = sorted(«a»)", help="loop over")
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
body("assign to an item of a tuple", "S", "items of a tuple cannot be assigned", """
    t = (1, 2)
    «t[0]» = 3
""", help="list")
body("assign to an item of a list, chosen at run time", "C", "compile-time integer", """
    l = [1, 2]
    for i in range(2):
        «l[i]» = 3
""", help="qd.Vector")
body("assign to an item that a list does not have", "I", "index 2 of a list of 2", """
    l = [1, 2]
    «l[2]» = 3
""")
body("a string becomes another in a branch", "S", "the string 'a'", """
    l = ["a", 1]
    if a[0] > 0:
        «l[0]» = "b"
""", help="block")
body("a list of another length in a branch", "T", "a list of 2 cannot become a list of 3", """
    l = [1, 2]
    if a[0] > 0:
        «l» = [1, 2, 3]
""", help="same shape")
body("a new key in a branch", "C", "cannot get new keys", """
    d = {"x": 1}
    if a[0] > 0:
        «d["y"]» = 2
""", help="where the dict is made")
body("pop of an empty list", "I", "index -1 of a list of 0", """
    l = []
    x = «l.pop()»
""")
body("assign to an item by another name", "S", "has another name", """
    l = [[1], [2]]
    for row in qd.static(l):
        «row[0]» = 3
""", help="its own name")
body("append to a list of lists", "S", "only a list that is a variable", """
    l = [[1], [2]]
    «l[0].append(3)»
""", help="list of your own")
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
body("division of literals by zero", "V", "division by zero", "x = «1 // 0»")
body("static division by zero", "V", "division by zero", "x = qd.static(«1 / 0»)")
body("negative shift count", "V", "shift", "x = qd.static(«1 << -1»)")
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
body("None index", "I", "dim 1 accessed with indices of dim 0", "x = «a[None]»", help="one index per axis")
body("negative index", "S", "Negative indices", "x = a[«-1»]", help="a.shape")
row("slice of a 2d array", "S", "slices of arrays", """
@qd.kernel
def k(m: qd.types.ndarray(ndim=2)):
    x = m[«1:3», 0]
""", run="k(m)", help="loop")
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
body("range with a step of 0", "V", "the step of a range is 0", """
    for i in range(0, 8, «0»):
        a[i] = 1
""", help="not 0")
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
body("ndrange of nothing", "S", "0 axes", """
    for «i» in qd.ndrange():
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
body("too long an unrolling", "V", "more than 65536", """
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
