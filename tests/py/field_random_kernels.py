"""Kernels on the random fields of field_random.py, beside NumPy: a program for test_field_random.py.

    python field_random_kernels.py FIRST END STEP

Each field is written by a loop over it, read by a loop over its indices, added to and compared. Says
at the end, as JSON, how many cases there were and what was compiled.
"""

import json
import sys

import field_random
import ingot as qd
import numpy as np
from ingot import _core


@qd.kernel
def put(f: qd.template(), salt: qd.i32, most: qd.i32):
    for I in qd.grouped(f):
        v = salt
        for k in qd.static(range(len(f.shape))):
            v = v * 7 + I[k]
        f[I] = (v % most + most) % most


@qd.kernel
def put_vectors(f: qd.template(), n: qd.template(), salt: qd.i32, most: qd.i32):
    for I in qd.grouped(f):
        v = salt
        for k in qd.static(range(len(f.shape))):
            v = v * 7 + I[k]
        for c in qd.static(range(n)):
            f[I][c] = ((v + c) % most + most) % most


@qd.kernel
def put_matrices(f: qd.template(), n: qd.template(), m: qd.template(), salt: qd.i32, most: qd.i32):
    for I in qd.grouped(f):
        v = salt
        for k in qd.static(range(len(f.shape))):
            v = v * 7 + I[k]
        for a in qd.static(range(n)):
            for b in qd.static(range(m)):
                f[I][a, b] = ((v + a * m + b) % most + most) % most


@qd.kernel
def add(f: qd.template(), x: qd.types.ndarray(), offset: qd.template()):
    for I in qd.grouped(x):
        f[I + offset] += x[I]


@qd.kernel
def into_first(f: qd.template(), g: qd.template(), first: qd.template()):
    for I in qd.grouped(f):
        g[first] += f[I]
        f[I] = f[I] * 3 + 1


@qd.kernel
def into_bins(f: qd.template(), g: qd.template(), first: qd.template(), n: qd.template()):
    for I in qd.grouped(f):
        g[first + (qd.cast(f[I], qd.i32) & 63) % n] += 1
        f[I] = f[I] * 3 + 1


INTEGERS = [qd.i8, qd.u8, qd.i16, qd.i32, qd.u32, qd.i64]


def together(f, g):
    """Two fields of a case, which may lie in one block, in one loop."""
    values = f.values.astype(np.int64)
    g.values = np.array(g.values)  # also without axes
    if len(g.shape) == 1:
        into_bins(f.field, g.field, g.offset[0], g.shape[0])
        g.values += np.bincount((values & 63).ravel() % g.shape[0], minlength=g.shape[0]).astype(g.values.dtype)
    else:
        into_first(f.field, g.field, qd.Vector(list(g.offset)) if g.shape else None)
        first = (0,) * len(g.shape)
        g.values[first] = (g.values[first].astype(np.int64) + values.sum()).astype(g.values.dtype)
    f.values = (values * 3 + 1).astype(f.values.dtype)


def expected(model, salt, most):
    """What put and its like leave."""
    v = np.full(model.shape, salt, np.int32)
    for axis, (first, n) in enumerate(zip(model.offset, model.shape)):
        shape = [1] * len(model.shape)
        shape[axis] = n
        v = v * 7 + np.arange(first, first + n, dtype=np.int32).reshape(shape)
    count = int(np.prod(model.element, dtype=int))
    if model.element:
        v = (v[..., None] + np.arange(count, dtype=np.int32)).reshape(model.values.shape)
    return (v % most).astype(model.values.dtype)


def write(model, salt, most):
    if not model.element:
        put(model.field, salt, most)
    elif len(model.element) == 1:
        put_vectors(model.field, model.element[0], salt, most)
    else:
        put_matrices(model.field, *model.element, salt, most)
    model.values = expected(model, salt, most)


def accumulate(model, rng):
    """Adds an ndarray to a field of numbers."""
    values = rng.integers(0, 20, model.shape).astype(model.values.dtype)
    x = qd.ndarray(model.dtype, model.shape)
    x.from_numpy(values)
    add(model.field, x, qd.Vector(list(model.offset)))
    model.values = model.values + values


def run(seed):
    models, rng, _ = field_random.case(seed)
    for k, model in enumerate(models):
        write(model, seed % 1000 + k, 2 if model.dtype is qd.u1 else 50)
    for model in models:
        model.check()
    for model in models:
        if not model.element and model.shape and model.dtype is not qd.u1:
            accumulate(model, rng)
    numbers = [model for model in models if not model.element and model.dtype in INTEGERS]
    for f, g in zip(numbers, numbers[1:]):
        together(f, g)
    for model in models:
        model.check()


if __name__ == "__main__":
    first, end, step = map(int, sys.argv[1:4])
    for seed in range(first, end, step):
        try:
            run(seed)
        except Exception as e:
            raise AssertionError(f"case {seed}") from e
    print(json.dumps({"cases": len(range(first, end, step)), **_core.counters()}))
