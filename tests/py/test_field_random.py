"""Random layouts of fields against a NumPy model: host access to each of them, and kernels."""

import itertools
import json
import pathlib
import subprocess
import sys

import field_random
import ingot as qd
import numpy as np
import pytest
from conftest import samples


@pytest.fixture(autouse=True)
def fresh():
    qd.init(arch=qd.cpu)


def addresses(field):
    """The bytes of every scalar, by a view of each field of C; what lies where, from its levels."""
    fields = [field] if getattr(field, "_parts", None) is None else field._parts
    for one in fields:
        place, levels = one._levels
        item = one.to_numpy().dtype.itemsize
        count = int(np.prod(one.element_shape, dtype=int))
        for steps in itertools.product(*(range(extent) for _, extent, _ in levels)):
            start = place + sum(k * stride for k, (_, _, stride) in zip(steps, levels))
            for k in range(count):
                yield id(one._block), start + k * item, item


def check_apart(models):
    """No byte of a block belongs to two scalars, and scalars are aligned."""
    taken = set()
    for model in models:
        for block, start, item in addresses(model.field):
            assert start % item == 0
            for byte in range(start, start + item):
                assert (block, byte) not in taken
                taken.add((block, byte))


def check_elements(model, r):
    keys = list(model.keys())
    for key in r.sample(keys, min(8, len(keys))):
        value = r.choice([0, 1]) if model.dtype is qd.u1 else r.randint(0, 99)
        model.values[model.at(key)] = value
        model.field[key or None] = value
        got = model.field[key or None]
        assert (np.asarray(got.to_list() if model.element else got) == model.values[model.at(key)]).all()
    for k in range(len(model.shape)):
        for step in (-1, model.shape[k]):
            wrong = list(model.offset)
            wrong[k] += step
            with pytest.raises(IndexError, match="out of bounds"):
                model.field[tuple(wrong)]


def check_views(model):
    try:
        view = model.field.to_numpy(copy=False)
    except ValueError:
        return
    assert (view.reshape(model.values.shape) == model.values).all()
    view[...] = 1
    model.values[...] = 1


@pytest.mark.parametrize("part", range(4))
def test_random_layouts(part):
    total = samples(2000)
    for seed in range(part, total, 4):
        models, rng, r = field_random.case(seed)
        for model in models:
            model.check()
        check_apart(models)
        for model in models:
            model.randomize(rng)
            model.field.from_numpy(model.values)
        for model in models:
            model.check()
            check_elements(model, r)
        for model in models:
            model.check()
            check_views(model)
        for model in models:
            model.check()
        models[0].field.fill(1)
        models[0].values[...] = 1
        for model in models:
            model.check()


def run_kernels(first, end):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "field_random_kernels.py", str(first), str(end), "1"],
        cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.counts("lowerings")
def test_random_kernels(cache_dir):
    """Kernels on random layouts; a second process has all of them from the cache."""
    total = samples(2000)
    total = total if total == 2000 else 20  # each is half a dozen kernels to compile
    for first in range(0, total, 100):
        end = min(first + 100, total)
        cold = run_kernels(first, end)
        assert cold["cases"] == end - first and cold["image_compiles"] > 0
        warm = run_kernels(first, end)
        assert warm["launches"] == cold["launches"]
        assert warm["lowerings"] == warm["image_compiles"] == warm["parses"] == 0
