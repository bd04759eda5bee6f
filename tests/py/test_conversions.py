"""Floats that become integers in loops of vectors: they truncate and saturate, NaN is 0, at every
edge of every dtype, in whole vectors and in what is left of a row."""

import numpy as np
import pytest
from numpy_rules import NUMPY, convert

import ingot as qd


@qd.kernel
def converted(x: qd.types.ndarray(), y: qd.types.ndarray(), dtype: qd.template()):
    for i in range(x.shape[0]):
        y[i] = qd.cast(x[i], dtype)


def edges(name, to):
    """Bounds of the integers and their neighbours among the floats, and what is no number."""
    t, info = NUMPY[name], np.iinfo(NUMPY[to])
    values = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.0, -1.0, 1.5, -1.5, np.nan, -np.nan, np.inf, -np.inf,
              np.finfo(t).max, np.finfo(t).min, np.finfo(t).tiny]
    for bits in (7, 8, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 63, 64):
        values += [2.0 ** bits, -(2.0 ** bits), 2.0 ** bits - 1, 1 - 2.0 ** bits, 2.0 ** bits - 0.5,
                   -(2.0 ** bits) - 1, -(2.0 ** bits) - 0.5]
    values += [float(info.min), float(info.max)]
    with np.errstate(all="ignore"):
        at = np.array(values).astype(t)
        return np.concatenate([at, np.nextafter(at, t(np.inf)), np.nextafter(at, t(-np.inf))])


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("to", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_floats_to_integers(name, to, fast):
    qd.init(arch=qd.cpu, fast_math=fast)
    one = edges(name, to)
    for shift in (0, 5):  # each value as part of a vector and in the rest of the row
        x = np.concatenate([one, one[::-1], one])[shift:]
        y = np.ones(x.shape, NUMPY[to])
        converted(x, y, getattr(qd, to))
        assert np.array_equal(y, convert(x, name, to)), (x[y != convert(x, name, to)], y[y != convert(x, name, to)])
    qd.init(arch=qd.cpu)


def test_half_precision():
    x = np.array([0.0, -1.5, np.nan, np.inf, -np.inf, 300.7, -300.7, 65504.0, -65504.0] * 5, np.float16)
    for to in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        y = np.ones(x.shape, NUMPY[to])
        converted(x, y, getattr(qd, to))
        assert np.array_equal(y, convert(x.astype(np.float32), "f32", to)), to
