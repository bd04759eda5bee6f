"""Random trees of fields beside a NumPy model, for test_field_random.py.

A case is made from its number alone: nodes, axes, extents, offsets, orders and element types. The
model of a field is a NumPy array.
"""

import itertools
import random

import ingot as qd
import numpy as np

DTYPES = [qd.i8, qd.u8, qd.i16, qd.i32, qd.u32, qd.i64, qd.f16, qd.f32, qd.f64, qd.u1]


class Model:
    """A field and what it should hold."""

    def __init__(self, field, shape, offset, dtype, element):
        self.field, self.shape, self.offset, self.dtype, self.element = field, shape, offset, dtype, element
        self.values = np.zeros(shape + element, qd._fields._numpy_type(dtype))

    def keys(self):
        return itertools.product(*(range(o, o + n) for o, n in zip(self.offset, self.shape)))

    def at(self, key):
        return tuple(k - o for k, o in zip(key, self.offset))

    def check(self):
        assert self.field.shape == self.shape and self.field.offset == self.offset
        got = self.field.to_numpy(keep_dims=len(self.element) == 2) if self.element else self.field.to_numpy()
        assert got.dtype == self.values.dtype and got.shape == self.values.shape
        assert (got == self.values).all()

    def randomize(self, rng):
        self.values = rng.integers(0, 2 if self.dtype is qd.u1 else 100, self.values.shape).astype(self.values.dtype)


def _element(r):
    return r.choice([(), (), (), (2,), (3,), (4,), (2, 2), (3, 2)])


def _new(r, **options):
    dtype, element = r.choice(DTYPES), _element(r)
    if not element:
        made = qd.field(dtype, **options)
    elif len(element) == 1:
        made = qd.Vector.field(*element, dtype, **options)
    else:
        made = qd.Matrix.field(*element, dtype, **options)
    return made, dtype, element


def shaped(r):
    """A field that is made with its shape."""
    shape = tuple(r.randint(1, 5) for _ in range(r.randint(0, 4)))
    options = {"shape": shape}
    offset = (0,) * len(shape)
    if r.random() < 0.4 and shape:
        offset = options["offset"] = tuple(r.randint(-9, 9) for _ in shape)
    if r.random() < 0.5:
        options["order"] = "".join(r.sample("ijkl"[:len(shape)], len(shape)))
    probe = random.Random(r.random())
    made, dtype, element = _new(probe, **options) if r.random() < 0.7 else _soa(probe, **options)
    return [Model(made, shape, offset, dtype, element)]


def _soa(r, **options):
    dtype, n = r.choice(DTYPES), r.randint(2, 4)
    return qd.Vector.field(n, dtype, layout=qd.Layout.SOA, **options), dtype, (n,)


def tree(r, root):
    """A child of the root with nodes below it and fields in them."""
    models, nodes = [], [(root, {})]
    for _ in range(r.randint(1, 5)):
        parent, extents = r.choice(nodes[1:] or nodes)
        axes = tuple(sorted(r.sample(range(4), r.randint(1, 2))))
        sizes = tuple(r.randint(1, 3) for _ in axes)
        below = dict(extents)
        for axis, n in zip(axes, sizes):
            below[axis] = below.get(axis, 1) * n
        if np.prod(list(below.values())) > 400:
            continue
        nodes.append((parent.dense(axes, sizes), below))
    for node, extents in nodes[1:]:
        for _ in range(r.randint(0, 2)):
            models.append(_placed(r, node, extents))
    if not models:
        models.append(_placed(r, *nodes[-1]))
    return models


def _placed(r, node, extents):
    made, dtype, element = _new(r)
    shape = tuple(extents[axis] for axis in sorted(extents))
    offset = tuple(r.randint(-5, 5) for _ in shape) if r.random() < 0.3 else (0,) * len(shape)
    if element and r.random() < 0.3:
        made.get_scalar_field(0)  # from now on each scalar is a field of its own
    node.place(made, offset=offset)
    return Model(made, shape, offset, dtype, element)


def case(seed):
    """The fields of case number `seed`, and a random generator for their contents."""
    r = random.Random(seed)
    models = []
    for _ in range(r.randint(1, 3)):
        models += shaped(r) if r.random() < 0.4 else tree(r, qd.root)
    return models, np.random.default_rng(seed), r
