"""Vectors and matrices in Python, and their types.

A host matrix holds Python numbers in a flat list, row major; kernels read that list (as
constants when it is captured, as scalars when it is an argument) without running code of this
file. Arithmetic here is for setting things up: it works element by element with Python's
operators, and numbers are rounded to the dtype where one was given.
"""

import math as _math

from ingot._core import (
    DType,
    IngotCompilationError,
    IngotRuntimeError,
    IngotRuntimeTypeError,
    IngotSyntaxError,
    IngotTypeError,
    TensorType,
    TensorValue,
    _tensor_type,
    _tensor_value,
    ndarray,
    register_intrinsic,
)

_SWIZZLES = ("xyzw", "rgba", "stpq")
_NUMBERS = (int, float)


def _is_number(x):
    return isinstance(x, _NUMBERS) or (hasattr(x, "dtype") and getattr(x, "shape", None) == ())


def _is_sequence(x):
    return isinstance(x, (list, tuple, Matrix)) or (hasattr(x, "tolist") and getattr(x, "shape", ()) != ())


def _plain(x):
    """Nested Python lists of whatever it is."""
    if isinstance(x, Matrix):
        return x.to_list()
    if hasattr(x, "tolist"):
        if hasattr(x, "mask") and hasattr(x, "filled"):
            raise IngotTypeError("a masked array would lose its mask; pass arr.filled(value)")
        return x.tolist()
    if isinstance(x, (list, tuple)):
        return [_plain(item) for item in x]
    return x


def _convert(x, dtype, *, cut=True):
    """x as an entry: it must fit; of a float for an integer the fraction goes, or (cut=False) must be 0."""
    return x if dtype is None else dtype._entry(x, f"an entry of {dtype}", cut)


def _new(rank, n, m, dtype, entries):
    return _tensor_value(Vector if rank == 1 else Matrix, rank, n, m if rank == 2 else 1, dtype, entries)


def _result(rank, n, m, dtype, entries):
    """What a kernel returns, and elements of arrays."""
    return _new(rank, n, m, dtype, list(entries))


def _type_of(rank, n, m, dtype):
    return VectorType(n, dtype) if rank == 1 else MatrixType(n, m, dtype)


def _fill_array(array, value):
    import numpy as np

    host = array._on_host()
    view = np.asarray(memoryview(host))
    given = np.asarray(_plain(value), object)
    flat = [_convert(x, array.dtype, cut=False) for x in given.flat]
    view[...] = np.array(flat, view.dtype).reshape(given.shape)
    if host is not array:
        array.copy_from(host)


class Matrix(TensorValue):
    """A matrix: `qd.Matrix([[1, 2], [3, 4]], dt=qd.f32)`. In kernels it is a value of its own."""

    __array_priority__ = 1000

    def __new__(cls, arr, dt=None, *more):
        if more or not _is_sequence(arr):
            raise IngotTypeError("a vector or matrix is made of one list of its elements: "
                                 "qd.Vector([x, y, z]), qd.Matrix([[a, b], [c, d]])")
        rows = _plain(arr)
        dt = _dtype(dt)
        if rows and isinstance(rows[0], list):
            if any(not isinstance(row, list) or len(row) != len(rows[0]) for row in rows):
                raise IngotTypeError("the rows of a matrix differ in length")
            entries = [_convert(x, dt) for row in rows for x in row]
            return _tensor_value(Matrix, 2, len(rows), len(rows[0]), dt, entries)
        kind = cls if issubclass(cls, Vector) else Vector
        return _tensor_value(kind, 1, len(rows), 1, dt, [_convert(x, dt) for x in rows])

    def __init__(self, arr, dt=None, *more):
        pass

    # ---- shape and elements ----

    def get_shape(self):
        """(n,) of a vector, (n, m) of a matrix."""
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    @property
    def shape(self):
        """(n,) of a vector, (n, m) of a matrix."""
        return self.get_shape()

    @property
    def entries(self):
        """The elements as a NumPy array."""
        return self.to_numpy()

    def __bool__(self):
        """Of comparisons: whether all of it holds."""
        return all(x != 0 for x in self._entries)

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(self.to_list())

    def _position(self, key):
        if not isinstance(key, tuple):
            key = tuple(key) if isinstance(key, list) else (key,)
        assert len(key) == self.ndim, f"Expected {self.ndim} indices, got {len(key)}"
        at = 0
        for index, extent in zip(key, self.get_shape()):
            index = index.__index__()
            if not -extent <= index < extent:
                raise IndexError(f"index {index} is out of range for an axis of {extent} elements")
            at = at * extent + index % extent
        return at, key

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, slice) for part in parts):
            part = self.to_numpy()[key]
            return Matrix(part, self._dtype) if part.ndim == 2 else Vector(part, self._dtype)
        return self._entries[self._position(key)[0]]

    def __setitem__(self, key, value):
        at, key = self._position(key)
        self._entries[at] = _convert(value, self._dtype, cut=False)
        source = self.__dict__.get("_source")
        if source is not None:
            array, outer = source
            outer = () if outer is None else tuple(outer) if isinstance(outer, (tuple, list)) else (outer,)
            array[outer + key] = value

    def to_list(self):
        """The elements as a list, of a matrix as a list of rows."""
        if self.ndim == 1:
            return list(self._entries)
        return [self._entries[i * self.m:(i + 1) * self.m] for i in range(self.n)]

    def to_numpy(self):
        """The elements as a NumPy array."""
        import numpy as np

        return np.array(self.to_list(), None if self._dtype is None else _numpy_type(self._dtype))

    def __array__(self, dtype=None, copy=None):
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self):
        return str(self.to_numpy())

    __str__ = __repr__

    def __reduce__(self):
        return _restore, (self.ndim, self.n, self.m, self._dtype, self._entries)

    def __copy__(self):
        return _new(self.ndim, self.n, self.m, self._dtype, list(self._entries))

    def __deepcopy__(self, memo):
        return self.__copy__()

    # ---- swizzles: v.x, v.xy, v.rgb ----

    def __getattr__(self, name):
        found = _swizzle(name)
        if name == "tolist":  # NumPy's name for it
            return self.to_list
        if found is None:
            from ingot._core import _vector_remedy

            instead = None if name.startswith("_") else _vector_remedy(name)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'" + (f": use {instead}" if instead else ""))
        _check_swizzle(self, found[1], name)
        parts = [self[i] for i in found[0]]
        return parts[0] if len(parts) == 1 else Vector(parts, self._dtype)

    def __setattr__(self, name, value):
        found = _swizzle(name)
        if found is None:
            object.__setattr__(self, name, value)
            return
        if len(name) > 1 and len(value) != len(name):
            raise IngotRuntimeError(f"value len does not match the swizzle pattern={name}")
        _check_swizzle(self, found[1], name)
        for k, i in enumerate(found[0]):
            self[i] = value if len(name) == 1 else value[k]

    # ---- element by element ----

    def _map(self, function, *others):
        return self._lift(function, (self, *others), {})

    def _lift(self, function, args, kwargs):
        """function, of numbers, on every element; other arguments are the same for all."""
        columns = []
        for arg in args:
            if _is_sequence(arg):
                other = arg if isinstance(arg, Matrix) else Matrix(arg)
                if other.get_shape() != self.get_shape():
                    raise IngotTypeError(
                        f"Dimension mismatch between shapes {self.get_shape()}, {other.get_shape()}")
                columns.append(other._entries)
            else:
                columns.append([arg] * len(self._entries))
        made = [function(*row, **kwargs) for row in zip(*columns)]
        return _new(self.ndim, self.n, self.m, None, made)

    def cast(self, dtype):
        """The same with elements of another dtype."""
        dtype = _dtype(dtype)
        return _new(self.ndim, self.n, self.m, dtype, [dtype(x) for x in self._entries])

    def fill(self, value):
        """Sets every element."""
        for i in range(self.n):
            for j in range(self.m if self.ndim == 2 else 1):
                self[(i, j)[:self.ndim]] = value

    def __pos__(self):
        return self

    def __neg__(self):
        return self._map(lambda x: -x)

    def __abs__(self):
        return self._map(abs)

    def __invert__(self):
        return self._map(lambda x: ~x)

    # ---- reductions ----

    def sum(self):
        """The sum of the elements."""
        return sum(self._entries)

    def max(self):
        """The largest element."""
        return max(self._entries)

    def min(self):
        """The smallest element."""
        return min(self._entries)

    def any(self):
        """1 if some element is not 0, else 0."""
        return int(any(x != 0 for x in self._entries))

    def all(self):
        """1 if no element is 0, else 0."""
        return int(all(x != 0 for x in self._entries))

    def norm_sqr(self):
        """The sum of the squares of the elements."""
        return sum(x * x for x in self._entries)

    def norm(self, eps=0):
        """sqrt(norm_sqr() + eps)."""
        return _math.sqrt(self.norm_sqr() + eps)

    def norm_inv(self, eps=0):
        """1 / norm(eps)."""
        return 1.0 / self.norm(eps)

    def normalized(self, eps=0):
        """The vector divided by norm() + eps."""
        scale = 1.0 / (self.norm() + eps)
        return self._map(lambda x: x * scale)

    def frobenius_inner(self, other):
        """The sum of the products of elements at the same place."""
        return (self * other).sum()

    # ---- products ----

    def _vector(self, what):
        if self.ndim != 1:
            raise IngotCompilationError(f"{what} is not a vector")
        return self._entries

    def dot(self, other):
        """The scalar product of two vectors."""
        self._vector("lhs for dot")
        other._vector("rhs for dot")
        return (self * other).sum()

    def cross(self, other):
        """The cross product: a vector of three, a number for vectors of two."""
        a, b = self._vector("lhs for cross"), other._vector("rhs for cross")
        if len(a) != len(b) or len(a) not in (2, 3):
            raise IngotCompilationError("cross takes two vectors of 2 or of 3 elements")
        if len(a) == 2:
            return a[0] * b[1] - a[1] * b[0]
        return Vector([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])

    def outer_product(self, other):
        """The matrix of the products of all pairs of elements."""
        a, b = self._vector("lhs for outer_product"), other._vector("rhs for outer_product")
        return Matrix([[x * y for y in b] for x in a])

    def __matmul__(self, other):
        if not isinstance(other, Matrix):
            other = Matrix(other)
        if self.ndim == 1 and other.ndim == 1:
            return self.dot(other)
        left = [self._entries] if self.ndim == 1 else self.to_list()
        right = [[x] for x in other._entries] if other.ndim == 1 else other.to_list()
        if len(left[0]) != len(right):
            raise IngotCompilationError(
                f"dimension mismatch between {self.get_shape()} and {other.get_shape()} for matrix multiplication")
        rows = [[sum(row[k] * right[k][j] for k in range(len(right))) for j in range(len(right[0]))]
                for row in left]
        if self.ndim == 1:
            return Vector(rows[0])
        return Vector([row[0] for row in rows]) if other.ndim == 1 else Matrix(rows)

    def transpose(self):
        """The matrix with rows and columns exchanged."""
        rows = self.to_list() if self.ndim == 2 else [[x] for x in self._entries]
        return Matrix([list(column) for column in zip(*rows)], self._dtype)

    def trace(self):
        """The sum of the diagonal."""
        self._square()
        return sum(self._entries[i * self.m + i] for i in range(self.n))

    def _square(self):
        if self.ndim != 2 or self.n != self.m:
            raise IngotCompilationError(f"expected a square matrix, got shape {self.get_shape()}")
        return self.to_list()

    def determinant(self):
        """The determinant, up to 4 x 4."""
        rows = self._square()
        if self.n > 4:
            raise IngotCompilationError("Determinants of matrices with sizes >= 5 are not supported")
        return _determinant(rows)

    def inverse(self):
        """The inverse matrix."""
        import numpy as np

        rows = self._square()
        return Matrix(np.linalg.inv(np.array(rows, dtype=np.float64)).tolist(), self._dtype)

    # ---- constructors; kernels know them by identity ----

    @staticmethod
    def zero(dt, n, m=None):
        """A vector of n, or an n x m matrix, of zeros."""
        return _filled(dt, n, m, 0)

    @staticmethod
    def one(dt, n, m=None):
        """A vector of n, or an n x m matrix, of ones."""
        return _filled(dt, n, m, 1)

    @staticmethod
    def identity(dt, n):
        """The n x n identity matrix."""
        return Matrix([[int(i == j) for j in range(n)] for i in range(n)], dt)

    @staticmethod
    def unit(n, i, dt=None):
        """The vector of n elements whose element i is one, the others zero."""
        assert 0 <= i < n
        return Vector([int(i == j) for j in range(n)], int if dt is None else dt)

    @staticmethod
    def diag(dim, val):
        """The matrix with val on its diagonal, zero elsewhere."""
        return Matrix([[val if i == j else 0 for j in range(dim)] for i in range(dim)])

    @staticmethod
    def rows(rows):
        """The matrix of these rows."""
        return Matrix(_same_length(rows))

    @staticmethod
    def cols(cols):
        """The matrix of these columns."""
        return Matrix(_same_length(cols)).transpose()

    @classmethod
    def ndarray(cls, n, m, dtype, shape, **options):
        """An ndarray whose elements are n x m matrices."""
        _check_sizes("Matrix.ndarray(3, 3, qd.f32, 10)", n, m)
        return ndarray(MatrixType(n, m, dtype), shape, **options)

    @staticmethod
    def field(n, m, dtype, shape=None, order=None, name="", offset=None, needs_grad=False,
              needs_dual=False, layout=None, ndim=2):
        """A field whose elements are n x m matrices: see `qd.field`."""
        from ingot._fields import matrix_field

        _check_sizes("Matrix.field(3, 3, qd.f32, shape=10)", n, m)
        return matrix_field(ndim, n, m, dtype, shape, order, name, offset, needs_grad, needs_dual, layout)

    @staticmethod
    def tensor(n, m, dtype, shape, **options):
        """A tensor of n by m matrices: see `qd.tensor`."""
        from ingot._tensor import matrix_tensor

        _check_sizes("Matrix.tensor(3, 3, qd.f32, 10)", n, m)
        return matrix_tensor(n, m, dtype, shape, **options)


class Vector(Matrix):
    """A vector: `qd.Vector([1, 2, 3], dt=qd.f32)`. In kernels it is a value of its own."""

    @classmethod
    def ndarray(cls, n, dtype, shape, **options):
        """An ndarray whose elements are vectors of n."""
        _check_sizes("Vector.ndarray(3, qd.f32, 10)", n)
        return ndarray(VectorType(n, dtype), shape, **options)

    @staticmethod
    def field(n, dtype, shape=None, order=None, name="", offset=None, needs_grad=False,
              needs_dual=False, layout=None, ndim=1):
        """A field whose elements are vectors of n: see `qd.field`."""
        from ingot._fields import matrix_field

        _check_sizes("Vector.field(3, qd.f32, shape=10)", n)
        return matrix_field(ndim, n, 1, dtype, shape, order, name, offset, needs_grad, needs_dual, layout)

    @staticmethod
    def tensor(n, dtype, shape, **options):
        """A tensor of vectors of n: see `qd.tensor`."""
        from ingot._tensor import vector_tensor

        _check_sizes("Vector.tensor(3, qd.f32, 10)", n)
        return vector_tensor(n, dtype, shape, **options)


def _check_sizes(example, *sizes):
    """Sizes of elements come before their dtype, and are positive."""
    for size in sizes:
        try:
            positive = bool(range(size))  # whatever is an index; the module operator would be one more to load
        except TypeError:
            raise IngotRuntimeTypeError(f"the size of a vector or matrix is an integer, not {size!r}; "
                                        f"sizes come first: qd.{example}") from None
        if not positive:
            raise IngotRuntimeTypeError(f"a vector or matrix of size {size} has no elements: say at least 1, as in qd.{example}")


def _same_length(rows):
    rows = [_plain(row) for row in rows]
    if any(not isinstance(row, list) for row in rows):
        raise IngotCompilationError("Cols/rows must be a list of lists, or a list of vectors")
    return rows


def _filled(dt, n, m, value):
    return Vector([value] * n, dt) if m is None else Matrix([[value] * m for _ in range(n)], dt)


def _restore(rank, n, m, dtype, entries):
    return _new(rank, n, m, dtype, list(entries))


def _determinant(rows):
    if len(rows) == 1:
        return rows[0][0]
    if len(rows) == 2:
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    total = 0
    for j, x in enumerate(rows[0]):
        minor = [row[:j] + row[j + 1:] for row in rows[1:]]
        total += (-1) ** j * x * _determinant(minor)
    return total


def _dtype(dt):
    if dt is None or isinstance(dt, DType):
        return dt
    return VectorType(1, dt).dtype


def _numpy_type(dtype):
    import numpy as np

    name = str(dtype).split(".")[-1]
    kinds = {"f": "float", "i": "int", "u": "uint"}
    return np.dtype("bool" if name == "u1" else kinds[name[0]] + name[1:])


# Spelt out: the module operator would be one more to load.
_BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "lshift": lambda x, y: x << y,
    "rshift": lambda x, y: x >> y,
}
_COMPARE = {
    "lt": lambda x, y: int(x < y),
    "le": lambda x, y: int(x <= y),
    "gt": lambda x, y: int(x > y),
    "ge": lambda x, y: int(x >= y),
    "eq": lambda x, y: int(x == y),
    "ne": lambda x, y: int(x != y),
}


def _add_operators():
    for name, function in (_BINARY | _COMPARE).items():
        def forward(self, other, function=function):
            return self._map(function, other)

        setattr(Matrix, f"__{name}__", forward)
    for name, function in _BINARY.items():
        def backward(self, other, function=function):
            return self._map(lambda x, y: function(y, x), other)

        setattr(Matrix, f"__r{name}__", backward)
    Matrix.__hash__ = object.__hash__


def _swizzle(name):
    """The positions that the letters of name stand for, and their group; None: no swizzle."""
    if 1 <= len(name) <= 4:
        for group in _SWIZZLES:
            if all(letter in group for letter in name):
                return [group.index(letter) for letter in name], group
    return None


def _check_swizzle(self, group, name):
    have = group[:self.n] if self.ndim == 1 else ""
    if not set(name) <= set(have):
        raise IngotSyntaxError(f"vec{self.n} only has attributes={tuple(sorted(have))}, got={tuple(name)}")


_add_operators()


# ---- types ----------------------------------------------------------------------------------------


def _extent(n):
    """How many rows or columns; 0: any."""
    if isinstance(n, int) and n < 0:
        raise IngotRuntimeError(f"vectors and matrices have at least one row and column, got {n}")
    return n or 0


class MatrixType(TensorType):
    """The type of n x m matrices: an annotation, and a constructor."""

    def __new__(cls, n=None, m=None, dtype=None):
        return _tensor_type(MatrixType, 2, _extent(n), _extent(m), dtype)

    def __init__(self, *args, **kwargs):
        pass

    def get_shape(self):
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    def element_type(self):
        """The dtype of the elements."""
        return self.dtype

    def shape(self):
        """As the reference gives it: [n] or [n, m]."""
        return list(self.get_shape())

    def __call__(self, *args):
        if not args:
            raise IngotSyntaxError("Custom type instances need to be created with an initial value.")
        entries = []
        for arg in args:
            _flatten(arg, entries)
        count = self.n * self.m
        if len(args) == 1 and len(entries) == 1 and not _is_sequence(args[0]):
            entries *= count
        if len(entries) != count:
            raise IngotRuntimeError(f"{self!r} needs {count} numbers, got {len(entries)}")
        entries = [_convert(x, self.dtype) for x in entries]
        return _new(self.ndim, self.n, self.m, self.dtype, entries)

    def cast(self, value):
        return self(value)

    def _packed(self, entries):
        """A member of a struct: these are its elements."""
        return _new(self.ndim, self.n, self.m, self.dtype, entries)

    def _packed_from(self, value):
        return MatrixType.__call__(self, value)

    def ndarray(self, shape, **options):
        return ndarray(self, shape, **options)

    def field(self, shape=None, **options):
        """A field whose elements are of this type: see `qd.field`."""
        from ingot._fields import field

        return field(self, shape, **options)

    def __reduce__(self):
        return type(self), (self.n, self.m, self.dtype)

    def __repr__(self):
        return f"MatrixType[{self.n},{self.m}, {self.dtype}]"

    to_string = __repr__


class VectorType(MatrixType):
    """The type of vectors of n elements: an annotation, and a constructor."""

    def __new__(cls, n=None, dtype=None):
        return _tensor_type(cls, 1, _extent(n), 1, dtype)

    def __reduce__(self):
        return type(self), (self.n, self.dtype)

    def __repr__(self):
        return f"VectorType[{self.n}, {self.dtype}]"

    to_string = __repr__


class UnpackedVectorType(VectorType):
    """A vector as a member of a struct whose elements the reference keeps apart. Ours always are."""

    unpacked = True

    def _refuse(self, *args, **kwargs):
        raise IngotSyntaxError(
            "a vector type with unpacked=True can only annotate members of a @qd.dataclass; leave unpacked=True out")

    __call__ = ndarray = field = _refuse


def _flatten(x, out):
    if _is_sequence(x):
        for item in _plain(x):
            _flatten(item, out)
    else:
        out.append(x)


for _name in ("zero", "one", "identity", "unit", "diag", "rows", "cols"):
    register_intrinsic(getattr(Matrix, _name), f"Matrix.{_name}")
register_intrinsic(Matrix, "Matrix")
register_intrinsic(Vector, "Vector")
