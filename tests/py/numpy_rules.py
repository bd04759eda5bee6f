"""The language's rules for numbers in NumPy: dtypes, promotion, conversion, division, and programs
from texts. What the random tests (test_random_kernels.py, numpy_vectors.py) compare with."""

import linecache

import numpy as np

import ingot as qd

NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": np.float32,
         "f64": np.float64, "f16": np.float16, "u1": np.bool_}
FLOATS = ("f32", "f64")


def number(t):
    """The dtype in which numbers of that dtype are added: booleans are integers."""
    return "i32" if t == "u1" else t


def promote(a, b):
    """Floats win, then the wider, then unsigned, then the right one."""
    if (a in FLOATS) != (b in FLOATS):
        return a if a in FLOATS else b
    if a[1:] != b[1:]:
        return a if int(a[1:]) > int(b[1:]) else b
    return a if a[0] == "u" and b[0] == "i" else b


def convert(x, frm, to):
    """Value conversion: floats to integers truncate and saturate, NaN is 0."""
    t = NUMPY[to]
    if frm in FLOATS and to not in FLOATS and to != "u1":
        info, x = np.iinfo(t), np.trunc(np.asarray(x, np.float64))
        inside = (x >= info.min) & (x < 2.0 ** (info.bits - (info.min < 0)))
        whole = np.where(inside, x, 0).astype(t)
        out = np.where(x < 0, np.array(info.min, t), np.array(info.max, t))
        return np.where(inside, whole, np.where(np.isnan(x), np.array(0, t), out))
    return np.asarray(x).astype(t)


def divided(op, x, y, t):
    if t in FLOATS:
        return np.floor_divide(x, y) if op == "//" else np.mod(x, y)
    zero = y == 0
    one = np.where(zero, np.array(1, y.dtype), y)
    got = x // one if op == "//" else x % one
    return np.where(zero, np.array(0, got.dtype), got)


def scope_of(text, file):
    """The names that a program makes; its kernels find their text while it runs."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"qd": qd}
    exec(compile(text, file, "exec"), scope)
    linecache.cache.pop(file)  # the text was taken when the decorator ran
    return scope
