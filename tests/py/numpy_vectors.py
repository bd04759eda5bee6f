"""The language's vectors, matrices and structs in plain Python over NumPy: what a program of
tests/py/random_vectors.py should compute, for tests/py/test_random_vectors.py.

`run(text)` rewrites a program so that Python runs it with the language's rules: assigning copies
and converts to the type of the variable, parameters are copies unless they are templates. `qd` is
then this module's `Model`, and every value a `T`: a NumPy array of rank 0 to 2 with its dtype. What
is computed from literals and integers alone has no type yet: it is an f32, and in `alt` the f64 that
it is next to one; variables have a type.
Sums, determinants and inverses are computed in the order that the language states, so that
every digit agrees.
"""

import ast

import numpy as np
from numpy_rules import FLOATS, NUMPY, convert, divided, number, promote

SWIZZLES = ("xyzw", "rgba", "stpq")


def lowest(x, y, sign):
    return np.where((y < x if sign < 0 else y > x) | np.isnan(x), y, x)


ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
              "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
              "min": lambda x, y: lowest(x, y, -1), "max": lambda x, y: lowest(x, y, 1)}
COMPARE = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


def value(x):
    """A number or a list as the language takes it."""
    if isinstance(x, T):
        return x
    if isinstance(x, (bool, int, np.integer)):
        return T("i32", np.array(x, np.int32))
    if isinstance(x, float):
        return T("f32", np.array(x, np.float32), np.array(x))
    parts = [value(p) for p in x]
    dtype = parts[0].dtype
    for p in parts[1:]:
        dtype = promote(dtype, p.dtype)
    return T(dtype, np.stack([p.to(dtype) for p in parts]), wide(dtype, np.stack, parts, True))


def wide(dtype, f, parts, as_list=False):
    """The same on f64, where no float that has a type takes part."""
    if dtype != "f32" or any(p.dtype in FLOATS and p.alt is None for p in parts):
        return None
    xs = [p.to("f64") for p in parts]
    return f(xs) if as_list else f(*xs)


def binary(op, a, b):
    a, b = value(a), value(b)
    if op in ("<<", ">>"):
        t = number(a.dtype)
        x, y = a.to(t), b.to(t) & np.array(int(t[1:]) - 1, NUMPY[t])
        return T(t, (np.left_shift if op == "<<" else np.right_shift)(x, y))
    t = promote(a.dtype, b.dtype)
    if op == "/" and t not in FLOATS:
        t = "f32"
    if op in "+-*//%":
        t = number(t)
    if op in COMPARE:
        return T("u1", COMPARE[op](a.to(t), b.to(t)))

    def f(x, y):
        return divided(op, x, y, t) if op in ("//", "%") else ARITHMETIC[op](x, y)

    return T(t, f(a.to(t), b.to(t)), wide(t, f, [a, b]))


def total(items):
    """From left to right, as NumPy's own sums are not."""
    items = list(items)
    got = items[0]
    for x in items[1:]:
        got = got + x
    return got


def index(where):
    where = where if isinstance(where, tuple) else (where,)
    return tuple(w if isinstance(w, slice) else int(w) for w in where)


class T:
    """A number, vector or matrix; changed in place where the language does."""

    def __init__(self, dtype, a, alt=None):
        self.__dict__["dtype"] = dtype
        self.__dict__["a"] = np.asarray(a)
        self.__dict__["alt"] = None if alt is None else np.asarray(alt)
        assert self.a.dtype == NUMPY[dtype], (self.a.dtype, dtype)

    def to(self, dtype):
        if dtype == "f64" and self.alt is not None:
            return self.alt
        return convert(self.a, self.dtype, dtype)

    def cast(self, dtype):
        return T(dtype, self.to(dtype))

    def copy(self):
        return T(self.dtype, self.a.copy())

    def set(self, other):
        self.a[...] = value(other).to(self.dtype)
        return self

    def __int__(self):
        return int(self.a)

    __index__ = __int__

    def __bool__(self):
        return bool(self.a)

    def __len__(self):
        return len(self.a)

    def __iter__(self):
        return (self[k] for k in range(len(self.a)))

    def __getitem__(self, where):
        at = index(where)
        return T(self.dtype, self.a[at], None if self.alt is None else self.alt[at])

    def __setitem__(self, where, other):
        self.a[index(where)] = value(other).to(self.dtype)

    def _places(self, name):
        for letters in SWIZZLES:
            if all(c in letters for c in name):
                return [letters.index(c) for c in name]
        raise AttributeError(name)

    def __getattr__(self, name):
        at = self._places(name)
        return self[at[0]] if len(at) == 1 else value([self[k] for k in at])

    def __setattr__(self, name, other):
        at = self._places(name)
        self.a[at[0] if len(at) == 1 else at] = value(other).to(self.dtype)

    def __neg__(self):
        t = number(self.dtype)
        return T(t, np.negative(self.to(t)), wide(t, np.negative, [self]))

    def __invert__(self):
        return T(self.dtype, np.invert(self.a))

    def __pow__(self, n):
        return T(self.dtype, total_product([self.a] * n))

    def __matmul__(self, other):
        other = value(other)
        t = number(promote(self.dtype, other.dtype))
        x, y = self.to(t), other.to(t)
        columns = y[:, None] if y.ndim == 1 else y
        got = [[total(p * q for p, q in zip(row, columns[:, j])) for j in range(columns.shape[1])]
               for row in (x if x.ndim == 2 else x[None, :])]
        got = np.array(got, NUMPY[t])
        return T(t, got[:, 0] if y.ndim == 1 else got[0] if x.ndim == 1 else got)

    def sum(self):
        t = number(self.dtype)
        return T(t, np.array(total(self.to(t).ravel()), NUMPY[t]))

    def min(self):
        got = T(self.dtype, self.a.ravel()[0])
        for x in self.a.ravel()[1:]:
            got = binary("min", got, T(self.dtype, x))
        return got

    def max(self):
        got = T(self.dtype, self.a.ravel()[0])
        for x in self.a.ravel()[1:]:
            got = binary("max", got, T(self.dtype, x))
        return got

    def dot(self, other):
        return binary("*", self, other).sum()

    def norm_sqr(self):
        return self.dot(self)

    def norm(self):
        return T(self.dtype, np.sqrt(self.norm_sqr().a))

    def cross(self, other):
        a, b = self, value(other)
        if len(a) == 2:
            return a[0] * b[1] - a[1] * b[0]
        return value([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                      a[0] * b[1] - a[1] * b[0]])

    def outer_product(self, other):
        return value([[x * y for y in value(other)] for x in self])

    def transpose(self):
        return T(self.dtype, self.a.T.copy())

    def trace(self):
        return T(self.dtype, np.array(total(self.a[i, i] for i in range(len(self.a))), self.a.dtype))

    def fill(self, x):
        self.set(x)

    def normalized(self):
        return T(self.dtype, self.a * (NUMPY[self.dtype](1) / self.norm().a))

    def determinant(self):
        return T(self.dtype, np.array(expanded(self.a)))

    def inverse(self):
        return T(self.dtype, by_cofactors(self.a) if len(self.a) <= 4 else eliminated(self.a))


def expanded(a):
    """The determinant along the first row."""
    if len(a) <= 1:
        return a[0, 0]
    if len(a) == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    terms = [x * expanded(np.delete(a[1:], j, 1)) for j, x in enumerate(a[0])]
    return total([-t if j % 2 else t for j, t in enumerate(terms)])


def by_cofactors(a):
    scale, n = a.dtype.type(1) / expanded(a), len(a)
    got = np.empty_like(a)
    for i in range(n):
        for j in range(n):
            minor = expanded(np.delete(np.delete(a, i, 0), j, 1)) if n > 1 else a.dtype.type(1)
            got[j, i] = scale * (-minor if (i + j) % 2 else minor)
    return got


def eliminated(a):
    """Gauss-Jordan elimination with partial pivoting."""
    a, got, n = a.copy(), np.eye(len(a), dtype=a.dtype), len(a)
    for k in range(n):
        best, pivot = -1, k
        for i in range(k, n):
            if abs(a[i, k]) > best:
                best, pivot = abs(a[i, k]), i
        p = a[pivot, k]
        for m in (a, got):
            m[pivot], m[k] = m[k].copy(), m[pivot] / p
        for i in range(n):
            if i != k:
                factor = a[i, k]
                for m in (a, got):
                    m[i] = m[i] - factor * m[k]
    return got


def total_product(items):
    got = items[0]
    for x in items[1:]:
        got = got * x
    return got


def operand(op, a, b):
    """An update that is atomic on shared values converts its operand first, on all values."""
    return value(b).cast(a.dtype) if op in "+-" else b


def _operators():
    for name, op in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//",
                     "mod": "%", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
                     "rshift": ">>"}.items():
        setattr(T, f"__{name}__", lambda a, b, op=op: binary(op, a, b))
        setattr(T, f"__r{name}__", lambda a, b, op=op: binary(op, b, a))
        setattr(T, f"__i{name}__", lambda a, b, op=op: a.set(binary(op, a, operand(op, a, b))))
    for name, op in {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}.items():
        setattr(T, f"__{name}__", lambda a, b, op=op: binary(op, a, b))


_operators()


# ---- the language's module --------------------------------------------------------------------


class Type:
    """A dtype (shape ()), a vector or a matrix type."""

    def __init__(self, dtype, shape=()):
        self.dtype, self.shape = dtype, shape

    def take(self, x):
        x = value(x)
        return T(self.dtype, np.broadcast_to(x.to(self.dtype), self.shape).copy())

    def __call__(self, *args):
        if len(args) == 1:
            return self.take(args[0])
        flat = [y for x in args for y in (value(x).a.ravel() if value(x).a.ndim else [value(x).a])]
        kinds = [value(x).dtype for x in args for _ in range(max(1, value(x).a.size))]
        return T(self.dtype, np.array([convert(x, k, self.dtype) for x, k in zip(flat, kinds)]
                                      ).reshape(self.shape))


class Struct:
    def __init__(self, members):
        self.__dict__["members"] = members

    def __getattr__(self, name):
        try:
            return self.members[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, x):
        self.members[name] = convert_to(self.members[name], x)

    def copy(self):
        got = type(self).__new__(type(self))
        got.__dict__["members"] = {n: m.copy() for n, m in self.members.items()}
        return got


def convert_to(old, x):
    """A value for a variable or member that holds `old`."""
    if isinstance(old, Struct):
        return x.copy()
    if isinstance(old, T):
        return T(old.dtype, np.broadcast_to(value(x).to(old.dtype), old.a.shape).copy())
    return x


def assign(old, x):
    """Stores in the variable that a template parameter stands for."""
    if isinstance(old, Struct):
        old.__dict__["members"] = x.copy().members
    else:
        old.set(x)


def dataclass(cls):
    kinds = dict(cls.__annotations__)

    class Made(Struct):
        def __init__(self, *args):
            Struct.__init__(self, {n: take(k, x) for (n, k), x in zip(kinds.items(), args)})

    for name, f in cls.__dict__.items():
        if callable(f) and not name.startswith("__"):
            setattr(Made, name, f)
    return Made


def take(kind, x):
    return kind.take(x) if isinstance(kind, Type) else x.copy()


def mapped(f, x):
    x = value(x)
    return T(x.dtype, f(x.a), wide(x.dtype, f, [x]))


class Model:
    kernel = func = staticmethod(lambda f: f)
    dataclass = staticmethod(dataclass)
    static = staticmethod(lambda x: x)
    sqrt = staticmethod(lambda x: mapped(np.sqrt, x))
    sin = staticmethod(lambda x: mapped(np.sin, x))
    exp = staticmethod(lambda x: mapped(np.exp, x))
    floor = staticmethod(lambda x: mapped(np.floor, x))
    abs = staticmethod(lambda x: mapped(np.abs, x))
    min = staticmethod(lambda a, b: binary("min", a, b))
    max = staticmethod(lambda a, b: binary("max", a, b))
    cast = staticmethod(lambda x, t: value(x).cast(t.dtype))

    @staticmethod
    def select(c, a, b):
        a, b = value(a), value(b)
        t = promote(a.dtype, b.dtype)
        return T(t, np.where(c.a, a.to(t), b.to(t)), wide(t, lambda x, y: np.where(c.a, x, y), [a, b]))

    @staticmethod
    def Vector(items, dt=None):
        got = value(items)
        return got.cast(dt.dtype) if dt else got

    Matrix = Vector

    class types:
        vector = staticmethod(lambda n, t: Type(t.dtype, (n,)))
        matrix = staticmethod(lambda n, m, t: Type(t.dtype, (n, m)))
        ndarray = staticmethod(lambda **_: None)

    template = staticmethod(lambda: "template")


for _name in NUMPY:
    setattr(Model, _name, Type(_name))


# ---- running ----------------------------------------------------------------------------------


def copied(x):
    if isinstance(x, tuple):
        return tuple(copied(y) for y in x)
    return (x if isinstance(x, (T, Struct)) else value(x)).copy()


def kept(x):
    """The same, but what has no type yet stays so."""
    if isinstance(x, tuple):
        return tuple(kept(y) for y in x)
    got = copied(x)
    alt = None if isinstance(x, Struct) else value(x).alt
    if alt is not None and alt.size <= 16:
        got.__dict__["alt"] = alt
    return got


def handed_on(node):
    """Names that a function assigns, or gives to something that may be one more function."""
    computes = {"abs", "min", "max", "sqrt", "sin", "exp", "floor", "select", "cast", *NUMPY}
    found, called = set(), set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.add(n.id)
        places = []
        if isinstance(n, (ast.Assign, ast.AugAssign)):
            places = n.targets if isinstance(n, ast.Assign) else [n.target]
        if isinstance(n, ast.Call):
            name = getattr(n.func, "attr", getattr(n.func, "id", None))
            places = [*n.args, n.func.value] if isinstance(n.func, ast.Attribute) else n.args
            if name in computes:
                called |= {p.id for p in places if isinstance(p, ast.Name)}
                places = []
        for place in places:
            while isinstance(place, (ast.Subscript, ast.Attribute)):
                place = place.value
            if isinstance(place, ast.Name):
                found.add(place.id)
    return found, called


def parameter(x, only_computed):
    """An argument of a parameter without annotation."""
    vector = not isinstance(x, Struct) and value(x).a.ndim
    return kept(x) if only_computed == 2 or (only_computed and not vector) else copied(x)


class Rewrite(ast.NodeTransformer):
    """Assignments copy and convert; so do parameters and results."""

    def visit_FunctionDef(self, node):
        self.known, self.templates, first = set(), set(), []
        handed, called = handed_on(node)
        self.early = any(isinstance(n, ast.Return) for s in node.body
                         if not isinstance(s, ast.Return) for n in ast.walk(s))
        for a in node.args.args:
            text = ast.unparse(a.annotation) if a.annotation else ""
            self.known.add(a.arg)
            if "template" in text:
                self.templates.add(a.arg)
                a.annotation = None
            if "template" in text or "ndarray" in text or a.arg == "self":
                continue
            only = 0 if a.arg in handed else 1 if a.arg in called else 2
            how = f"take_({text}, {a.arg})" if text else f"parameter_({a.arg}, {only})"
            first.append(ast.parse(f"{a.arg} = {how}").body[0])
            a.annotation = None
        self.returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.body = first + node.body
        return node

    def visit_Return(self, node):
        if self.returns is None:
            node.value = _call("copied_" if self.early else "kept_", node.value)
        elif isinstance(self.returns, ast.Tuple):
            node.value.elts = [_call("take_", k, v)
                               for k, v in zip(self.returns.elts, node.value.elts)]
        else:
            node.value = _call("take_", self.returns, node.value)
        return node

    def visit_Assign(self, node):
        target = node.targets[0]
        node.value = _call("copied_", node.value)
        if isinstance(target, ast.Name):
            if target.id in self.templates:  # the caller's variable
                return ast.Expr(_call("assign_", ast.Name(target.id, ast.Load()), node.value))
            if target.id in self.known:
                node.value = _call("convert_to_", ast.Name(target.id, ast.Load()), node.value)
            self.known.add(target.id)
        return node


def _call(name, *args):
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def run(text):
    """The names that a program defines."""
    tree = ast.fix_missing_locations(Rewrite().visit(ast.parse(text)))
    scope = {"qd": Model, "copied_": copied, "convert_to_": convert_to, "take_": take,
             "assign_": assign, "kept_": kept, "parameter_": parameter,
             "abs": Model.abs, "min": Model.min, "max": Model.max}
    exec(compile(tree, "<model>", "exec"), scope)
    return scope
