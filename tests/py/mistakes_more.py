"""Mistakes that were tried by people new to Ingot: more rows for the table of mistakes.py."""

from mistakes_peers import ROWS, body, call, whole  # noqa: F401

V = "v = qd.Vector([a[0] + 2.0, 4.0])\n"
M = "m = qd.Matrix([[1.0, 2.0], [3.0, a[1]]])\n"

# ---- parentheses, brackets, indices ---------------------------------------------------------------

body("a method that is not called", V + "a[0] = «v.norm»", "call it: v.norm(...)", V + "a[0] = v.norm()", {0: 5})
body("a function that is not called", "a[0] = «qd.sqrt»", "call it", "a[0] = qd.sqrt(4.0)", {0: 2})
body("a vector without brackets", "v = «qd.Vector(1.0, 2.0, 3.0)»", "qd.Vector([x, y, z])", "v = qd.Vector([1.0, 2.0, 3.0])\na[0] = v[1]", {0: 2})
body("a vector of a number", "v = qd.Vector(«n»)", "pass a list of numbers", "v = qd.Vector([n, 2])\na[0] = v[1]", {0: 2})
body("a type for a vector", "a[0] = «qd.types.vector(3, qd.f32)[0]»", "call the type", "vec3 = qd.types.vector(3, qd.f32)\nv = vec3(2.0)\na[0] = v[0]", {0: 2})
body("a type for a number", "a[0] = «qd.math.vec3»", "qd.types.vector(3, qd.f32)(0.0)", "a[0] = qd.types.vector(3, qd.f32)(2.0)[0]", {0: 2})
body("a new axis", "b = «a[:, None]»", "leave out None", "b = a[:]\na[0] = b[1] + 1", {0: 2})
body("a new axis by NumPy's name", "a[0] = «a[np.newaxis, 0]»", "leave out None", "a[0] = a[0] + 1", {0: 2})
body("a row of a matrix", M + "r = «m[1]»", "m[i, :]", M + "i = 1\nr = m[1, :]\na[0] = r[0]", {0: 3})
body("every second element assigned", "«a[::2]» = 5.0", "range(start, stop)", "for i in range(0, 8, 2): a[i] = 5.0", {6: 5, 7: 1})
body("append to a vector", V + "«v.append»(2.0)", "qd.Vector([...])", "v = qd.Vector([1.0, 2.0])\na[0] = v[1]", {0: 2})
body("the index of the largest", V + "a[0] = «v.argmax»()", "qd.static(range(v.n))",
     V + "k = 0\nfor i in qd.static(range(v.n)):\n    if v[i] > v[k]:\n        k = i\na[0] = k + 1", {0: 2})
body("the square root by a method", V + "w = «v.sqrt»()", "qd.sqrt(v)", V + "w = qd.sqrt(v)\na[0] = w[1]", {0: 2})

# ---- functions and classes of Python ----------------------------------------------------------------

body("arrays joined", "b = np.concatenate(«[a, a]»)", "outside of the kernel", "a[0] = 2", {0: 2})
body("numbers compared closely", "a[0] = math.isclose(«a[1]», 1.0)", "abs(x - y) <= 1e-6 * qd.max(abs(x), abs(y))",
     "x, y = a[1], 1.0\na[0] = abs(x - y) <= 1e-6 * qd.max(abs(x), abs(y))", {0: 1})
body("the greatest common divisor", "a[0] = math.gcd(«n», 6)", "while b != 0: a, b = b, a % b", "a[0] = gcd(n, 6)", {0: 3},
     then_before="@qd.func\ndef gcd(x, y):\n    a, b = x, y\n    while b != 0: a, b = b, a % b\n    return a")
body("a product of a list", "a[0] = math.prod(«[a[1], 2.0]»)", "multiply them with *", "a[0] = a[1] * 2.0", {0: 2})
body("a sum without rounding", "a[0] = math.fsum(«[a[1], 2.0]»)", "add them with +", "a[0] = a[1] + 2.0", {0: 3})
body("a distance", "a[0] = math.dist(«[a[1], 2.0]», [1.0, 0.0])", "(v - w).norm()",
     "v, w = qd.Vector([a[1], 2.0]), qd.Vector([1.0, 0.0])\na[0] = (v - w).norm()", {0: 2})
body("a complex number", "a[0] = complex(«n», 1)", "in two variables", "re, im = n, 1\na[0] = re - im", {0: 2})
body("an identity", "a[0] = id(«a»)", "leave it out", "a[0] = 2", {0: 2})
body("a class of Python asked", "if isinstance(«n», int):\n    a[0] = 2", "qd.template()", "if isinstance(N, int):\n    a[0] = 2", {0: 2}, then_before="N = 3")
body("a number after None", "x = None\nif n > 1:\n    «x» = 3\na[0] = x", "begin with a number", "x = 0\nif n > 1:\n    x = 3\na[0] = x", {0: 3})
body("a dict of the module", "«D['x']» = n", "in an array", "D[0] = n\na[0] = D[0]", {0: 3}, before="D = {'x': 4}", then_before="D = np.zeros(1)")
body("digits of an integer", "print(f'{«n»:05.2f}')", "float(n)", "print(f'{float(n):05.2f}')")
body("an integer format for a float", "print(f'{«a[0]»:5d}')", "int(x)", "x = a[0]\nprint(f'{int(x):5d}')")

# ---- parameters, arguments, results --------------------------------------------------------------------

whole("two results, one annotated", "@qd.kernel\ndef k(n: qd.i32) -> qd.i32:\n    «return n, n»\n\ndef run():\n    return k(1)\n", "-> (qd.i32, qd.f32)",
      "@qd.kernel\ndef k(n: qd.i32) -> (qd.i32, qd.f32):\n    return n, n\n\ndef run():\n    return k(1)[0]\n", 1)
call("a dtype in quotes alone", "«a: 'f32'»", "1", "1", "written qd.f32", then_param="a: 'qd.f32'")
call("a generic array", "«a: 'np.ndarray[float]'»", "1", "np.ones(2)", "qd.types.ndarray()", then_param="a: qd.types.ndarray()")
call("an array of numpy.typing", "«a: 'npt.NDArray[np.float32]'»", "1", "np.ones(2)", "qd.types.ndarray()", then_param="a: qd.types.ndarray()")
ROWS["an array of numpy.typing"] = tuple("import numpy.typing as npt\n" + t if i in (0, 2) else t for i, t in enumerate(ROWS["an array of numpy.typing"]))
call("a list of ints", "«a: list[int]»", "1", "[1]", "qd.template()", then_param="a: qd.template()")
call("the maker of vector types", "«a: qd.types.vector»", "1", "[1, 2, 3]", "qd.types.vector(3, qd.f32)", then_param="a: qd.types.vector(3, qd.f32)")
call("two for a bool", "«a: bool»", "1", "2", "bool(x)", then_given="bool(2)")
call("None for a number", "«a: qd.i32»", "1", "None", "qd.template()", then_param="a: qd.template()")
call("a list for a number", "«a: qd.i32»", "1", "[1]", "x[0]", then_given="[1][0]")
call("an array for an integer", "«a: qd.i32»", "a[0]", "np.ones(2)", "qd.types.ndarray()", then_param="a: qd.types.ndarray()")
call("text for an integer", "«a: qd.i32»", "1", "'7'", "int(x)", then_given="int('7')")
call("a complex number for a float", "«a: qd.f32»", "1", "1j", "x.real", then_given="(1j).real")
call("too large for any float", "«a: qd.f32»", "1", "10 ** 400", "within the bounds", then_given="10.0 ** 30")
call("a fraction of NumPy for an integer", "«a: qd.i32»", "1", "np.float64(1.5)", "int(...)", then_given="int(np.float64(1.5))")

# ---- called and read otherwise ---------------------------------------------------------------------------

body("an argument by its name", "a[0] = qd.sqrt(x=«4.0»)", "by position", "a[0] = qd.sqrt(4.0)", {0: 2})
body("the gradient of an array without one", "«a.grad[0]» = 3.0", "needs_grad=True", "B.grad[0] = 3.0\na[0] = B.grad[0]", {0: 3},
     then_before="B = qd.ndarray(qd.f32, 1, needs_grad=True)")
body("a list for its number", "a[0] = «T»", "t[0]", "t = T\na[0] = t[0]", {0: 2}, before="T = [2, 3]", then_before="T = [2, 3]")
body("a number of another class", "a[0] = «D»", "x = float(x)", "a[0] = D", {0: 1.5}, before="from decimal import Decimal\nD = Decimal('1.5')",
     then_before="from decimal import Decimal\nD = float(Decimal('1.5'))")
body("the sum of a field", "a[0] = «F.sum»()", "s += a[i]", "s = 0.0\nfor i in F:\n    s += F[i] + 1\na[0] = s", {0: 2}, before="F = qd.field(qd.f32, 2)",
     then_before="F = qd.field(qd.f32, 2)")
body("an element of a vector in one subscript", "«V[0, 1]» = 3.0", "a[i][k]", "V[0][1] = 3.0\na[0] = V[0][1]", {0: 3}, before="V = qd.Vector.field(3, qd.f32, 2)",
     then_before="V = qd.Vector.field(3, qd.f32, 2)")
body("the gradient of a field without one", "«F.grad»[0] = 3.0", "needs_grad=True", "F.grad[0] = 3.0\na[0] = F.grad[0]", {0: 3}, before="F = qd.field(qd.f32, 2)",
     then_before="F = qd.field(qd.f32, 2, needs_grad=True)")
body("a loop over a vector's elements", "v = qd.Vector([a[0], 2.0])\nfor x in qd.static(«v»):\n    a[0] += x", "qd.static(range(v.n))",
     "v = qd.Vector([a[0], 2.0])\nfor i in qd.static(range(v.n)):\n    a[0] += v[i]", {0: 4})
body("a flat matrix", "m = qd.Matrix([[1.0, a[0]], [3.0, 4.0]])\nx = «m.flatten»()", "qd.static(qd.ndrange(m.n, m.m))",
     "m = qd.Matrix([[1.0, a[0]], [3.0, 4.0]])\ns = 0.0\nfor i, j in qd.static(qd.ndrange(m.n, m.m)):\n    s += m[i, j]\na[0] = s", {0: 9})
