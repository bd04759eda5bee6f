"""Calls in `qd.static` of what a launch can call again: rows of the table of tests/py/mutations.py.

Each row: name, what stands before the kernel, the argument of `qd.static`, the two texts that
fill the hole, what the kernel computes, and the statement that makes the change between two
launches."""

IMPORTS = "import dataclasses, enum, functools\nimport numpy as np\n"

ROWS = [
    # methods of immutable values: by their value
    ("method of text", "S = @@\n", "S.find('d')", "'abcd'", "'d'", (3, 0), "m.S = @@"),
    ("method of text that gives a list", "S = @@\n", "len(S.split('.')) * 10 + int(S.split('.')[1])",
     "'a.3'", "'a.4.b'", (23, 34), "m.S = @@"),
    ("method of text with a list", "S = '--'\nL = ['a', 'b']\nL[1:] = @@\n", "len(S.join(L))", "['b']", "['b', 'c']",
     (4, 7), "m.L[1:] = @@"),
    ("method of literal text with a text", "S = @@\n", "'a,b,cc'.split(S)[1] == 'b'", "','", "'b'", (1, 0),
     "m.S = @@"),
    ("method of a number", "N = @@\n", "N.bit_length()", "7", "8", (3, 4), "m.N = @@"),
    ("method of a tuple that holds a list", "L = [@@]\nT = (1, L)\n", "T.count(1) * 10 + T[1].index(3)", "3", "9, 3",
     (10, 11), "m.L[:] = [@@]"),
    ("class method of int", "B = @@\n", "int.from_bytes(B, 'big')", "b'\\x03'", "b'\\x04'", (3, 4), "m.B = @@"),
    # containers
    ("method of a list", "L = [9, 9, 5]\nL[0] = @@\n", "L.index(5)", "9", "5", (2, 0), "m.L[0] = @@"),
    ("method of a set", "X = {1, 2}\nX.@@(7)\n", "len(X.union([7, 8]))", "add", "discard", (4, 4), None),
    ("method of a set that grows", "X = {1, 2}\nX |= @@\n", "X.issubset([1, 2, 3])", "{3}", "{4}", (1, 0),
     "m.X.clear(); m.X |= @@"),
    ("set of a list", "L = [1, 1]\nL[1] = @@\n", "len(set(L))", "1", "2", (1, 2), "m.L[1] = @@"),
    ("dict of keywords", "N = @@\n", "dict(a=N, b=2)['a']", "3", "4", (3, 4), "m.N = @@"),
    # wrappers of functions
    ("partial", "def f(x, y):\n    return x * 10 + y\np = functools.partial(f, @@)\n", "p(2)", "3", "4", (32, 42),
     "m.p = m.functools.partial(m.f, @@)"),
    ("keywords of a partial", "def f(x, y=0):\n    return x * 10 + y\np = functools.partial(f, y=1)\np.keywords['y'] = @@\n",
     "p(2)", "3", "4", (23, 24), "m.p.keywords['y'] = @@"),
    ("list in a partial", "L = [@@]\np = functools.partial(sum, L)\n", "p()", "3", "4", (3, 4), "m.L[0] = @@"),
    ("cached function", "def f(x):\n    return x + @@\nc = functools.lru_cache(f)\n", "c(2)", "3", "4", (5, 6),
     "m.c = m.functools.lru_cache(lambda x: x + @@)"),
    ("argument of a cached function", "@functools.cache\ndef c(x):\n    return x + 1\nN = @@\n", "c(N)", "3", "4", (4, 5),
     "m.N = @@"),
    # objects and classes written in Python
    ("state of an object that is called", "class C:\n    def __call__(self, x):\n        return x + self.n\nc = C()\nc.n = @@\n",
     "c(2)", "3", "4", (5, 6), "m.c.n = @@"),
    ("__call__ that is assigned", "class C:\n    def __call__(self):\n        return @@\nc = C()\n", "c()", "3", "4", (3, 4),
     "m.C.__call__ = lambda self: @@"),
    ("object of a class", "class C:\n    def __init__(self, n):\n        self.n = n + @@\n", "C(2).n", "3", "4", (5, 6),
     "m.C.__init__ = lambda self, n: setattr(self, 'n', n + @@)"),
    ("default of a dataclass", "@dataclasses.dataclass\nclass C:\n    a: int\n    b: int = @@\n", "C(a=1).b", "3", "4", (3, 4),
     None),
    ("class that is rebound", "class P:\n    n = 3\nclass Q:\n    n = 4\nC = @@\n", "C().n", "P", "Q", (3, 4), "m.C = m.@@"),
    ("member of an enum by value", "class E(enum.IntEnum):\n    X = 1\n    Y = 2\nN = @@\n", "E(N) == E.Y", "1", "2", (0, 1),
     "m.N = @@"),
    ("replace of a dataclass", "@dataclasses.dataclass(frozen=True)\nclass C:\n    a: int\n    b: int\nc = C(1, @@)\n",
     "dataclasses.replace(c, a=5).b", "3", "4", (3, 4), "m.c = m.C(1, @@)"),
    # NumPy
    ("sum of an array", "X = np.array([1, 2])\nX[0] = @@\n", "int(X.sum())", "3", "4", (5, 6), "m.X[0] = @@"),
    ("list of an array", "X = np.array([1, 2])\nX[0] = @@\n", "X.tolist()[0]", "3", "4", (3, 4), "m.X[0] = @@"),
    ("function of an array", "X = np.array([1, 2])\nX[0] = @@\n", "int(np.max(X))", "3", "4", (3, 4), "m.X[0] = @@"),
    ("function of an array with a keyword", "X = np.array([[1, 2], [3, 4]])\nX[0, 0] = @@\n",
     "int(np.sum(X, axis=0)[0])", "3", "4", (6, 7), "m.X[0, 0] = @@"),
    ("array that is made", "N = @@\n", "np.arange(N)[2] + len(np.zeros(N))", "3", "4", (5, 6), "m.N = @@"),
    ("extent of an array", "X = np.zeros(@@)\n", "X.size", "3", "4", (3, 4), "m.X = m.np.zeros(@@)"),
    # arguments that the kernel makes
    ("method with a list of its own", "class C:\n    def f(self, x):\n        return self.n + x[0]\nc = C()\nc.n = @@\n",
     "c.f([1])", "3", "4", (4, 5), "m.c.n = @@"),
    ("list beside a list of its own", "def f(x, y):\n    return x[0] + y['a'][1]\nL = [@@]\n", "f(L, {'a': (0, 1)})",
     "3", "4", (4, 5), "m.L[0] = @@"),
    ("list of its own that holds a value", "def f(x):\n    return sum(x)\nN = @@\n", "f([N, N + 1])", "3", "4", (7, 9),
     "m.N = @@"),
    ("mutable result for a list of its own", "G = [@@]\ndef f(x):\n    return G\n", "f([1])[0]", "3", "4", (3, 4),
     "m.G[0] = @@"),
    ("keyword of a Python function", "def f(x, *, y):\n    return x * 10 + y[0]\nL = [@@]\n", "f(1, y=L)", "3", "4",
     (13, 14), "m.L[0] = @@"),
    ("keyword that is a number", "def f(x, y):\n    return x * 10 + y\nN = @@\n", "f(y=N, x=2)", "3", "4", (23, 24),
     "m.N = @@"),
]
