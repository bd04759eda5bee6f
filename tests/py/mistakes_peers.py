"""Mistakes of people who come from Numba, NumPy and Taichi: more rows for the table of mistakes.py."""

from mistakes import ROWS, body, call, whole  # noqa: F401

V = "v = qd.Vector([a[0] + 2.0, 4.0])\n"

# ---- what Numba and Taichi call otherwise ---------------------------------------------------------

body("prange", "for i in «qd.prange»(n):\n    a[i] = 2", "use range", "for i in range(n):\n    a[i] = 2", {2: 2, 3: 1})
body("arctan2 of the package", "a[0] = «qd.arctan2»(0.0, 1.0)", "qd.atan2", "a[0] = qd.atan2(0.0, 1.0)", {0: 0})
body("pi of the package", "a[0] = «qd.pi»", "qd.math.pi", "a[0] = qd.floor(qd.math.pi)", {0: 3})
body("a module under Taichi's name", "a[0] = «ti».sqrt(4.0)", "import ingot as ti", "a[0] = ti.sqrt(4.0)", {0: 2}, then_before="import ingot as ti")
body("a module that was not imported", "a[0] = «tm».pi", "from ingot import math as tm", "a[0] = tm.floor(tm.pi)", {0: 3},
     then_before="from ingot import math as tm")
body("random between two numbers", "a[0] = «qd.random(2, 3)»", "low + (high - low) * qd.random(qd.f32)",
     "low, high = 2.0, 2.5\na[0] = qd.floor(low + (high - low) * qd.random(qd.f32))", {0: 2})
body("cast the other way round", "a[0] = «qd.cast(qd.i32, a[1])»", "(x, dtype)", "x = 2.5\ndtype = qd.i32\na[0] = qd.cast(x, dtype)", {0: 2})
body("atomic_add of an index", "«qd.atomic_add(a, 0, 1.0)»", "qd.atomic_add(a[i], y)", "i, y = 0, 1.0\nqd.atomic_add(a[i], y)", {0: 2})
body("groups of a range", "for I in «qd.grouped(range(3))»:\n    a[I] = 2", "qd.ndrange(n, m)", "for I in qd.grouped(qd.ndrange(3)):\n    a[I] = 2", {2: 2})
body("extents as a list", "for «i, j» in qd.ndrange([2, 3]):\n    a[i + j] = 2", "qd.ndrange(n, m)", "for i, j in qd.ndrange(2, 3):\n    a[i + j] = 2", {3: 2})
body("two names for a range", "for «i, j» in range(n):\n    a[i] = 2", "qd.ndrange(n, m)", "m = 2\nfor i, j in qd.ndrange(n, m):\n    a[i] = j + 1", {2: 2})
body("a field without its index", "a[0] = «F + 1»", "a[()]", "a[0] = F[()] + 1", {0: 1}, before="F = qd.field(qd.f32, shape=())",
     then_before="F = qd.field(qd.f32, shape=())")
body("a field as an array in a kernel", "b = «F.to_numpy()»", "outside of the kernel", "a[0] = B[0] + 2", {0: 2}, before="F = qd.field(qd.f32, shape=3)",
     then_before="F = qd.field(qd.f32, shape=3)\nB = F.to_numpy()")

# ---- vectors under other names ----------------------------------------------------------------------

body("normalize", V + "w = «v.normalize»()", "v.normalized()", V + "w = v.normalized()\na[0] = qd.floor(10 * w[0])", {0: 6})
body("normalize what is written down", "v = «qd.Vector([3.0, 4.0]).normalize»()", "v.normalized()", "v = qd.Vector([3.0, 4.0])\nv = v.normalized()\na[0] = v[1] + 1.2",
     {0: 2})
body("length", V + "a[0] = «v.length»()", "v.norm()", V + "a[0] = v.norm()", {0: 5})
body("T", "m = qd.Matrix([[1.0, 2.0], [3.0, a[1]]])\na[0] = «m.T»[0, 1]", "m.transpose()",
     "m = qd.Matrix([[1.0, 2.0], [3.0, a[1]]])\na[0] = m.transpose()[0, 1]", {0: 3})
body("determinant by a short name", "m = qd.Matrix([[1.0, 2.0], [3.0, a[1]]])\na[0] = «m.det»()", "m.determinant()",
     "m = qd.Matrix([[1.0, 2.0], [3.0, a[1]]])\na[0] = m.determinant()", {0: -5})
body("NumPy's norm of a vector", V + "a[0] = np.linalg.norm(«v»)", "v.norm()", V + "a[0] = v.norm()", {0: 5})
body("NumPy's product of vectors", V + "a[0] = np.dot(«v», v)", "v.dot(w)", V + "w = v\na[0] = v.dot(w)", {0: 25})
body("NumPy's cross product", "v = np.cross(«qd.Vector([1.0, 0.0, 0.0])», qd.Vector([0.0, 1.0, 0.0]))", "v.cross(w)",
     "v, w = qd.Vector([1.0, 0.0, 0.0]), qd.Vector([0.0, 1.0, 0.0])\na[0] = v.cross(w)[2] + 1", {0: 2})
body("astype of a vector", V + "w = «v.astype»(qd.i32)", "v.cast(qd.i32)", V + "w = v.cast(qd.i32)\na[0] = w[1]", {0: 4})

# ---- NumPy's functions that are operators, loops, or for the host ---------------------------------------

body("np.mod", "a[0] = np.mod(«a[0]», 2)", "write x % y", "x, y = 5.0, 2.0\na[0] = x % y", {0: 1})
body("np.square", "a[0] = np.square(«a[0]»)", "write x * x", "x = 3.0\na[0] = x * x", {0: 9})
body("np.floor_divide", "a[0] = np.floor_divide(«n», 2)", "write x // y", "x, y = n, 2\na[0] = x // y", {0: 1})
body("np.logical_and", "a[0] = np.logical_and(«n > 1», n < 5)", "x and y", "x, y = n > 1, n < 5\na[0] = x and y", {0: 1})
body("np.shape", "a[0] = np.shape(«a»)[0]", "a.shape", "a[0] = a.shape[0]", {0: 8})
body("np.size", "a[0] = np.size(«a»)", "a.shape[0]", "a[0] = a.shape[0]", {0: 8})
body("a type of NumPy on an array", "b = np.int32(«a»)", "qd.cast(a[i], qd.i32)", "i = 1\na[0] = qd.cast(a[i], qd.i32) + 1", {0: 2})
body("a shape with parentheses", "a[0] = «a.shape(0)»", "a.shape[0]", "a[0] = a.shape[0]", {0: 8})
body("an ellipsis for all", "a[«...»] = 0.0", "for i in a: a[i] = x", "x = 2.0\nfor i in a: a[i] = x", {7: 2})
body("an element by item", "a[0] = «a.item»(1)", "a[i]", "i = 1\na[0] = a[i] + 1", {0: 2})
body("a sorted array", "«a.sort»()", "qd.algorithms.parallel_sort(a)", "a[0] = B[0]", {0: 1},
     then_before="B = qd.from_numpy(np.array([3, 1, 2], np.int32))\nqd.algorithms.parallel_sort(B)")
body("len of a number", "for i in range(len(«n»)):\n    a[i] = 2", "range(n)", "for i in range(n):\n    a[i] = 2", {2: 2, 3: 1})
body("a seed in a kernel", "«np.random.seed(0)»", "qd.init(random_seed=...)", "a[0] = 2", {0: 2}, then_before="qd.init(random_seed=7)")
body("the numbers that two lists make", "for i, j in itertools.product(«range(2)», range(2)):\n    a[i] = j", "qd.ndrange(n, m)",
     "m = 2\nfor i, j in qd.ndrange(n, m):\n    a[i] = 2", {2: 2}, before="import itertools")
body("math.factorial", "a[0] = math.factorial(«n»)", "@qd.func", "a[0] = factorial(n)", {0: 6},
     then_before="@qd.func\ndef factorial(n):\n    p = 1\n    for i in range(1, n + 1):\n        p *= i\n    return p")
body("a mean of the standard library", "a[0] = statistics.mean(«[1, n]»)", "outside of the kernel", "a[0] = (1 + n) / 2", {0: 2}, before="import statistics")

# ---- Python around them ----------------------------------------------------------------------------------

body("a log", "logging.info(«n»)", "use print", "print(n)", before="import logging")
body("a log of text", "«logging.info('here')»", "use print", "print('here')", before="import logging")
body("the end of the program", "if n > 5:\n    «exit()»", "leave it out", "if n > 5:\n    a[0] = 2", {0: 1})
body("sys.exit", "«sys.exit(1)»", "outside of the kernel", "a[0] = 2", {0: 2}, before="import sys")
body("super", "a[0] = «super()».f(n)", "name the class", "a[0] = O.k(n)", {0: 4},
     then_before="@qd.data_oriented\nclass Base:\n    @qd.func\n    def method(self, x):\n        return x + 1\n\n@qd.data_oriented\n"
                 "class C(Base):\n    @qd.func\n    def k(self, x):\n        return Base.method(self, x)\n\nO = C()")
body("map", "t = list(«map(abs, [-2, 1])»)", "[f(x) for x in t]", "t = [-2, 1]\nt = [abs(x) for x in t]\na[0] = t[0]", {0: 2})
body("filter", "t = list(«filter(None, [0, 2])»)", "[x for x in t if x > 0]", "t = [0, 2]\nu = [x for x in t if x > 0]\na[0] = u[0]", {0: 2})
body("numbers joined to text", "print(','.join(«[n]»))", "sep=', '", "x, y = n, 2\nprint(x, y, sep=', ')")
body("a loop over a list of numbers of the run time", "t = [n, 2]\nfor x in «t»:\n    a[x] = 5", "qd.static(...)", "t = [n, 2]\nfor x in qd.static(t):\n    a[x] = 5", {3: 5})
body("a member of a dict", "a[0] = «D.x»", "d['x']", "d = D\na[0] = d['x']", {0: 2}, before="D = {'x': 2}", then_before="D = {'x': 2}")
body("a dict by a number of the run time", "d = {0: 5, 1: 6}\na[0] = «d[n]»", "in an array", "a[0] = d[n]", {0: 8}, then_before="d = np.array([5, 6, 7, 8])")
body("a new key of the run time", "d = {}\n«d[n]» = 2", "in an array", "d[n] = 2\na[0] = d[n]", {0: 2}, then_before="d = np.zeros(9)")
body("self of nowhere", "«self».x = 3.0", "the first parameter", "a[0] = 2", {0: 2})
whole("self forgotten", "class C:\n    @qd.kernel\n    «def k(n: qd.i32) -> qd.i32:»\n        return n\n\ndef run():\n    return C().k(3)\n", "write `self`",
      "@qd.data_oriented\nclass C:\n    @qd.kernel\n    def k(self, n: qd.i32) -> qd.i32:\n        return n\n\ndef run():\n    return C().k(3)\n", 3)
call("a vector of another size", "«a: qd.math.vec3»", "1", "[1, 2]", "as many numbers as it has elements", then_given="[1, 2, 3]")
call("an array for a vector", "«a: qd.math.vec3»", "1", "np.ones(4)", "as many numbers as it has elements", then_given="np.ones(3)")
call("a matrix of another size", "«a: qd.math.mat2»", "1", "[[1, 2, 3]]", "a list of its rows", then_given="[[1, 2], [3, 4]]")
call("a negative number for u8", "«a: qd.u8»", "1", "-1", "qd.i32", then_param="a: qd.i32")
