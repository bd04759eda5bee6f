"""Mistakes of newcomers, each with the program that follows the remedy: the second table of test_remedies.py.

    body(name, wrong, remedy, right, result)        bodies of k(a, n): a is eight ones of f32, n is 3
    whole(name, wrong, remedy, right, result)       programs that define run()

The text that the message is about stands between « and »; `remedy` is in its help; `result` is what the followed
program leaves in a (by index), or what its run() returns.
"""

import textwrap

KERNEL = """{before}
@qd.kernel
def k(a: qd.types.ndarray(), n: qd.i32):
{body}

def run():
    a = np.ones(8, np.float32)
    k(a, 3)
    return a
"""
ROWS = {}


def body(name, wrong, remedy, right, result=None, before="", then_before=None):
    def program(text, above):
        return KERNEL.format(before=above, body=textwrap.indent(textwrap.dedent(text).strip("\n"), "    "))

    ROWS[name] = (program(wrong, before), remedy, program(right, before if then_before is None else then_before), result)


def whole(name, wrong, remedy, right, result=None):
    ROWS[name] = (wrong, remedy, right, result)


# ---- arrays as in NumPy -------------------------------------------------------------------------

SUM = "s = 0.0\nfor i in range(8):\n    s += a[i]\n"
body("mean", "a[0] = «a.mean»()", "s += a[i]", SUM + "a[0] = s / 8", {0: 1})
body("argmax", "a[0] = «a.argmax»()", "in a loop over the elements", "m = 0.0\nfor i in range(8):\n    m = qd.max(m, a[i])\na[0] = m", {0: 1})
body("fill", "«a.fill»(2.0)", "for i in a: a[i] = x", "x = 2.0\nfor i in a: a[i] = x", {7: 2})
body("size", "a[0] = «a.size»", "multiply the extents", "a[0] = a.shape[0]", {0: 8})
body("a reshaped array", "b = «a.reshape»(2, 4)", "a[i * m + j]", "for i, j in qd.ndrange(2, 4):\n    m = 4\n    a[i * m + j] = i", {7: 1})
body("append", "«a.append»(2.0)", "qd.atomic_add", "for i in range(2):\n    k = qd.atomic_add(a[0], 1.0)\n    a[qd.cast(k, qd.i32)] = 5", {2: 5})
body("a sum by a builtin", "a[0] = sum(«a»)", "add up in a loop", SUM + "a[0] = s", {0: 8})
body("a sum of a range", "a[0] = sum(«range(n)»)", "add up in a loop", "s = 0\nfor i in range(n):\n    s += i\na[0] = s", {0: 3})
body("a maximum by a builtin", "a[0] = max(«a»)", "loop over the array", "m = 0.0\nfor i in range(8):\n    m = max(m, a[i])\na[0] = m", {0: 1})
body("a sum by NumPy", "a[0] = np.sum(«a»)", "call it outside", "a[0] = 8.0", {0: 8})
body("a norm by NumPy", "a[0] = np.linalg.norm(«a»)", "call it outside", "a[0] = 2.0", {0: 2})
body("a number for all", "b = «a + 1.0»", "a[i]", "for i in a: a[i] += 1.0", {5: 2})
body("added to all", "«a» += 1.0", "a[i] += x", "x = 1.0\nfor i in a: a[i] += x", {5: 2})
body("a mask", "a[«a > 0»] = 0.0", "a[i]", "for i in a:\n    if a[i] > 0: a[i] = 0.0", {5: 0})
body("an array as a condition", "if «a and n»:\n    a[0] = 2", "a[i]", "if a[0] != 0 and n != 0:\n    a[0] = 2", {0: 2})
body("an array compared", "if «a == 1.0»:\n    a[0] = 2", "compare its elements", "if a[1] == 1.0:\n    a[0] = 2", {0: 2})
body("a number in an array", "if «n in a»:\n    a[0] = 2", "found |= a[i] == x",
     "x = 1\nfound = False\nfor i in range(a.shape[0]): found |= a[i] == x\nif found:\n    a[0] = 2", {0: 2})
body("a number in a list", "if «n in [1, 3]»:\n    a[0] = 2", "x == 1 or x == 2", "x = n\nif x == 1 or x == 3:\n    a[0] = 2", {0: 2})
body("the root of an array", "b = np.sqrt(«a»)", "use qd.sqrt", "for i in a: a[i] = qd.sqrt(4.0)", {3: 2})
body("the absolute value of an array", "b = abs(«a»)", "a[i]", "for i in a: a[i] = abs(a[i] - 3)", {3: 2})
body("two indices for one axis", "«a[0, 1]» = 2.0", "one index per axis", "a[1] = 2.0", {1: 2})
body("a quotient as an index", "a[«n / 3»] = 2.0", "//", "a[n // 3] = 2.0", {1: 2})
body("a float as an index", "x = 1.0\na[«x»] = 2.0", "int(x)", "x = 1.0\na[int(x)] = 2.0", {1: 2})
body("an array made in a kernel", "b = «qd.ndarray(qd.f32, 3)»", "outside of the kernel", "a[0] = 2", {0: 2})
body("a field made in a kernel", "b = «qd.field(qd.f32, shape=3)»", "outside of the kernel", "b[0] = 5\na[0] = b[0]", {0: 5},
     then_before="b = qd.field(qd.f32, shape=3)")
body("a field of vectors made in a kernel", "b = «qd.Vector.field(3, qd.f32)»", "outside of the kernel", "a[0] = 2", {0: 2})
body("init in a kernel", "«qd.init()»", "outside of the kernel", "a[0] = 2", {0: 2})
body("a range of NumPy", "for i in «np.arange(3)»:\n    a[i] = 2", "qd.Vector", "for i in range(3):\n    a[i] = 2", {2: 2})

# ---- Python's data and functions -------------------------------------------------------------------

body("a list of a range", "t = list(«range(n)»)", "qd.template()", "t = list(range(N))\na[0] = t[2]", {0: 2}, then_before="N = 3")
body("a generator", "a[0] = sum(a[i] for i in «range(n)»)", "qd.template()", "a[0] = sum([a[i] for i in range(N)])", {0: 3}, then_before="N = 3")
body("a list times a number", "v = «[1.0, 2.0] * 2.0»", "qd.Vector([...]) * x", "x = 2.0\nv = qd.Vector([1.0, 2.0]) * x\na[0] = v[1]", {0: 4})
body("the norm of a list", "v = [3.0, 4.0]\na[0] = «v.norm»()", "qd.Vector([...])", "v = qd.Vector([3.0, 4.0])\na[0] = v.norm()", {0: 5})
body("a loop over a list", "for x in «[1, 2]»:\n    a[x] = 3", "qd.static(...)", "for x in qd.static([1, 2]):\n    a[x] = 3", {2: 3})
body("a loop over a number", "for i in «n»:\n    a[i] = 3", "range(n)", "for i in range(n):\n    a[i] = 3", {2: 3, 3: 1})
body("a range backwards", "for i in «reversed(range(n))»:\n    a[i] = i", "n - 1 - i", "for i in range(n):\n    a[n - 1 - i] = i", {0: 2})
body("a percent sign", "print(«'%d' % n»)", "f-string", 'x = n\nprint(f"x is {x}")')
body("print to a file", "print(n, file=«sys.stderr»)", "sys.stdout", "print(n)", before="import sys")
body("text as a value", "s = 'abc'\na[0] = «s»", "use a number", "a[0] = 2", {0: 2})
body("text and a number", "s = «'abc' + n»", "use a number", "print('abc', n)")
body("None as a value", "x = None\na[0] = «x»", "give it a number", "x = 2\na[0] = x", {0: 2})
body("is None", "if «n is None»:\n    a[0] = 2", "`==`", "if n == 3:\n    a[0] = 2", {0: 2})
body("a clock", "a[0] = «time.time()»", "outside of the kernel", "a[0] = NOW", {0: 5}, before="import time", then_before="NOW = 5")
body("a file", "f = «open('x')»", "outside of the kernel", "a[0] = 2", {0: 2})
body("input", "a[0] = «input()»", "outside of the kernel", "a[0] = 2", {0: 2})
body("a random number", "a[0] = «random.random()»", "qd.random(qd.f32)", "a[0] = 2 + qd.floor(qd.random(qd.f32))", {0: 2}, before="import random")
body("a random integer", "a[0] = «random.randint(0, 3)»", "qd.cast(qd.random(qd.f32) * n, qd.i32)",
     "a[0] = qd.cast(qd.random(qd.f32) * n, qd.i32) // n", {0: 0}, before="import random")
body("the floor of math", "a[0] = math.floor(«a[1]»)", "use qd.floor", "a[0] = qd.floor(a[1])", {0: 1})
body("digits to round to", "x = a[1] / 3\na[0] = round(«x», 2)", "round(x * 100) / 100", "x = a[1] / 4\na[0] = round(x * 100) / 100", {0: 0.25})
body("a type of NumPy", "a[0] = np.float32(«n»)", "qd.cast(x, qd.f32)", "x = n\na[0] = qd.cast(x, qd.f32)", {0: 3})
body("a type by text", "a[0] = qd.cast(n, «'f32'»)", "qd.f32", "a[0] = qd.cast(n, qd.f32)", {0: 3})
body("a plain function", "a[0] = f(«n»)", "@qd.func", "a[0] = f(n)", {0: 4}, before="def f(x):\n    return x + 1",
     then_before="@qd.func\ndef f(x):\n    return x + 1")
body("a kernel calls a kernel", "«f(n)»", "@qd.func", "a[0] = f(n)", {0: 4}, before="@qd.kernel\ndef f(x: qd.i32):\n    pass",
     then_before="@qd.func\ndef f(x):\n    return x + 1")
body("a name of a branch", "if n > 1:\n    x = 2\na[0] = «x»", "before this line", "x = 0\nif n > 1:\n    x = 2\na[0] = x", {0: 2})
body("a loop's name after it", "for i in range(n):\n    a[i] = 2\na[0] = «i»", "before this line",
     "last = 0\nqd.loop_config(serialize=True)\nfor i in range(n):\n    last = i\na[0] = last", {0: 2})
body("break in parallel", "for i in a:\n    if i == 3:\n        «break»\n    a[i] = 2", "serialize=True",
     "qd.loop_config(serialize=True)\nfor i in a:\n    if i == 3:\n        break\n    a[i] = 2", {2: 2, 3: 1})
body("return in a loop", "for i in a:\n    if a[i] > 2:\n        «return»", "set a variable", "x = 0\nfor i in a:\n    if a[i] > 2:\n        x = 1\na[0] = x", {0: 0})
body("a parameter assigned", "«n» = n + 1", "new variable", "m = n + 1\na[0] = m", {0: 4})
body("bits of floats", "a[0] = «a[1] ^ a[2]»", "qd.cast(x, qd.i32)", "a[0] = qd.cast(a[1], qd.i32) ^ 2", {0: 3})
body("a large number", "x = «3000000000»", "qd.i64(...)", "x = qd.i64(3000000000)\na[0] = x // 1000000000", {0: 3})
body("a vector for a number", "a[0] = «qd.Vector([1.0, 2.0])»", "v[0]", "v = qd.Vector([5.0, 2.0])\na[0] = v[0]", {0: 5})
body("vectors of two sizes", "v = «qd.Vector([1.0, 2.0]) + qd.Vector([1.0, 2.0, 3.0])»", "must be equal",
     "v = qd.Vector([1.0, 2.0]) + qd.Vector([1.0, 2.0])\na[0] = v[1]", {0: 4})
body("z of two", "v = qd.Vector([1.0, 2.0])\na[0] = «v.z»", "v[i]", "v = qd.Vector([1.0, 2.0])\na[0] = v[1]", {0: 2})
body("static of the run time", "for i in qd.static(«range(n)»):\n    a[i] = 2", "leave out qd.static", "for i in range(n):\n    a[i] = 2", {2: 2})
body("a variable of the module", "«COUNT» += 1", "local variable", "c = COUNT\nc += 1\na[0] = c", {0: 2}, before="COUNT = 1")
body("a list of the module", "«T[0]» = n", "array", "T[0] = n\na[0] = T[0]", {0: 3}, before="T = [1, 2]", then_before="T = np.zeros(2)")
body("an attribute of an object", "«O.x» = 3.0", "arrays", "O.x[0] = 3.0\na[0] = O.x[0]", {0: 3},
     before="class O:\n    x = 1", then_before="class O:\n    x = qd.ndarray(qd.f32, 1)")

# ---- parameters and arguments ----------------------------------------------------------------------

CALL = """
@qd.kernel
def k({param}) -> qd.i32:
    return {value}

def run():
    return k({given})
"""


def call(name, param, value, given, remedy, then_param=None, then_given=None, result=1):
    plain = (then_param or param).replace("«", "").replace("»", "")
    ROWS[name] = (CALL.format(param=param, value=value, given=given), remedy,
                  CALL.format(param=plain, value=value, given=then_given or given), result)


call("no annotation", "«a»", "a", "1", "qd.i32", then_param="a: qd.i32")
call("a vector's class", "«a: qd.Vector»", "1", "qd.Vector([1.0, 2.0, 3.0])", "qd.types.vector(3, qd.f32)", then_param="a: qd.types.vector(3, qd.f32)")
call("a matrix' class", "«a: qd.Matrix»", "1", "qd.Matrix([[1.0]])", "qd.types.matrix(", then_param="a: qd.types.matrix(1, 1, qd.f32)")
call("qd.ndarray for a type", "«a: qd.ndarray»", "1", "np.ones(2)", "qd.types.ndarray()", then_param="a: qd.types.ndarray()")
call("qd.field for a type", "«a: qd.field»", "1", "qd.field(qd.f32, 3)", "qd.template()", then_param="a: qd.template()")
call("a field for an array", "«a: qd.types.ndarray()»", "1", "qd.field(qd.f32, 3)", "qd.template()", then_param="a: qd.template()")
call("a field's numbers", "«a: qd.types.ndarray()»", "1", "qd.Vector.field(2, qd.f32, 3)", "x.to_numpy()", then_given="qd.Vector.field(2, qd.f32, 3).to_numpy()")
call("None for an array", "«a: qd.types.ndarray()»", "1", "None", "a NumPy array", then_given="np.ones(2)")
call("a number for an array", "«a: qd.types.ndarray()»", "1", "3.0", "a NumPy array", then_given="np.array([3.0])")
call("text for a number", "«a: qd.f32»", "1", "'1'", "pass a number", then_given="float('1')")
call("an array for a number", "«a: qd.f32»", "1", "np.ones(3)", "pass a number", then_given="np.ones(3)[0]")
call("too large for an i32", "«a: qd.i32»", "1", "2**40", "wider type", then_param="a: qd.i64")
call("another dtype", "«a: qd.types.ndarray(qd.f32, 1)»", "1", "np.ones(3)", "convert it", then_given="np.ones(3).astype(np.float32)")
call("another number of axes", "«a: qd.types.ndarray(qd.f32, 1)»", "1", "np.ones((2, 2), np.float32)", "reshape it",
     then_given="np.ones((2, 2), np.float32).reshape(4)")
call("columns", "«a: qd.types.ndarray()»", "1", "np.ones((4, 4))[:, ::2]", "contiguous", then_given="np.ascontiguousarray(np.ones((4, 4))[:, ::2])")
call("dates", "«a: qd.types.ndarray()»", "1", "np.zeros(3, 'M8[s]')", "x.view(np.int64)", then_given="np.zeros(3, 'M8[s]').view(np.int64)")
call("time spans", "«a: qd.types.ndarray()»", "1", "np.zeros(3, 'm8[s]')", "x.view(np.int64)", then_given="np.zeros(3, 'm8[s]').view(np.int64)")
call("what has to_numpy", "«a: qd.types.ndarray()»", "1", "Table()", "x.to_numpy()", then_given="Table().to_numpy()")
call("text of several lines", "«a: qd.types.ndarray()»", "1", "Lines()", "a NumPy array", then_given="np.ones(2)")
whole("a result without an annotation", "@qd.kernel\ndef k(n: qd.i32):\n    «return n + 1»\n\ndef run():\n    return k(3)\n", "-> qd.f32",
      "@qd.kernel\ndef k(n: qd.i32) -> qd.f32:\n    return n + 1\n\ndef run():\n    return k(3)\n", 4)
whole("a result of a branch", "@qd.kernel\ndef k(n: qd.i32) -> qd.i32:\n    if n > 1:\n        «return 1»\n\ndef run():\n    return k(3)\n", "return it at the end",
      "@qd.kernel\ndef k(n: qd.i32) -> qd.i32:\n    r = 0\n    if n > 1:\n        r = 1\n    return r\n\ndef run():\n    return k(3)\n", 1)
whole("a result that is an array", "@qd.kernel\ndef k(a: qd.types.ndarray()) -> «qd.types.ndarray()»:\n    return a\n\ndef run():\n    return k(np.ones(2))\n", "the dtype",
      "@qd.kernel\ndef k(a: qd.types.ndarray()) -> qd.f64:\n    return a[0]\n\ndef run():\n    return k(np.ones(2))\n", 1)
whole("a missing argument", "@qd.kernel\n«def k(a: qd.i32, b: qd.i32) -> qd.i32:»\n    return a + b\n\ndef run():\n    return k(1)\n", "it takes (a, b)",
      "@qd.kernel\ndef k(a: qd.i32, b: qd.i32) -> qd.i32:\n    return a + b\n\ndef run():\n    return k(1, 2)\n", 3)
whole("a misspelled argument", "@qd.kernel\n«def k(alpha: qd.i32) -> qd.i32:»\n    return alpha\n\ndef run():\n    return k(alfa=1)\n", "it takes (alpha)",
      "@qd.kernel\ndef k(alpha: qd.i32) -> qd.i32:\n    return alpha\n\ndef run():\n    return k(alpha=1)\n", 1)
