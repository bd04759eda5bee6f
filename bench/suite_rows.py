"""The register of suite.py's kernels: what a row is made of, and how its annotations are written."""

import dataclasses
import importlib

import numpy as np

MODULES = ["suite_kernels_linear", "suite_kernels_math", "suite_kernels_integers", "suite_kernels_grids",
           "suite_kernels_bodies", "suite_kernels_solids"]
CONTROL = ["suite_kernels_control", "suite_kernels_control_users"]
ROWS = {}


@dataclasses.dataclass
class Row:
    """`define(qd, *fields)` gives the kernel, `inputs(rng)` the sizes that C takes first and what
    all engines take: arrays, Vec (an array of vectors), Field (a field that the kernel closes over)."""

    name: str
    define: object
    inputs: object
    close: float = 1e-4  # relative, of results
    strays: float = 0.0  # share of elements that may differ (a float on the edge of a branch)
    fresh: tuple = ()  # arguments that are set anew before each call, outside of the time
    atomic: bool = False  # the program needs atomics: C has them
    compare: str = "all"  # or "mean", for random numbers


class Vec:
    """An array of vectors: the last axis (the last two: of matrices) is the element."""

    def __init__(self, array, axes=1):
        self.array, self.axes = array, axes


class Field(Vec):
    """A field that the kernel closes over; `axes` as above, 0 of scalars."""

    def __init__(self, array, axes=0):
        super().__init__(array, axes)


def row(inputs, **options):
    def register(define):
        ROWS[define.__name__] = Row(define.__name__, define, inputs, **options)
        return define

    return register


def plain(x):
    """The NumPy array of an input."""
    return x.array if isinstance(x, Vec) else x


def arrays(qd, words):
    """Annotations from words: a letter for the dtype and the number of dimensions, with the length
    of the vectors in between: `f2` is 2-d of f32, `f3v1` 1-d of vectors of three f32, `f3m1` of 3x3 matrices."""
    letters = {"f": qd.f32, "d": qd.f64, "i": qd.i32, "l": qd.i64, "u": qd.u32, "b": qd.u8}
    out = []
    for word in words.split():
        dtype, n = letters[word[0]], int(word[-1])
        if "v" in word:
            dtype = qd.types.vector(int(word[1:-2]), dtype)
        if "m" in word:
            dtype = qd.types.matrix(int(word[1:-2]), int(word[1:-2]), dtype)
        out.append(qd.types.ndarray(dtype, n))
    return out if len(out) > 1 else out[0]


def load(control=False):
    """The rows of the suite, or of the control, by name."""
    names = CONTROL if control else MODULES
    for name in names:
        importlib.import_module(name)
    return {k: r for k, r in ROWS.items() if r.define.__module__ in names}


def f32(a):
    return np.ascontiguousarray(a, dtype=np.float32)


def i32(a):
    return np.ascontiguousarray(a, dtype=np.int32)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)
