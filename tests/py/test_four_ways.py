"""Random kernels computed in four independent ways: by native code, by the interpreter on the IR
after passes and before any, and by a model in Python. Kernels of tests/py/random_patterns.py, near
the patterns that passes look for, have such a model; those of random_kernels.py are compared
without (with NumPy where they are one straight line, test_random_kernels.py). All to the bit."""

import pytest
from conftest import SEED, samples
from play_patterns import WAYS, Text, model, report, safely, shrink, text_of, wrong_way
from random_kernels import Program as Kernel
from random_patterns import Program
from test_random_kernels import compare

import ingot as qd

BATCH = 50
INTERPRETED, NATIVE = ["as lowered", "after passes"], ["one thread", "two threads, from the cache"]


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def batches(full, size=BATCH):
    return range(-(-samples(full) // size))


def check(seeds, ways):
    for seed in seeds:
        program = Program(seed)
        wrong = wrong_way(program, ways)
        assert wrong is None, report(program, ways, wrong)


@pytest.mark.after_passes
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", batches(10000))
def test_patterns_interpreted(batch):
    check(range(SEED + batch * BATCH, SEED + min((batch + 1) * BATCH, samples(10000))), INTERPRETED)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", batches(2000, 10))
def test_patterns_native(batch):
    """Cold with one thread, then with two and from the cache."""
    check(range(SEED + batch * 10, SEED + batch * 10 + 10), NATIVE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", batches(2000))
def test_kernels_as_lowered(batch):
    seeds = range(SEED + batch * BATCH, SEED + batch * BATCH + BATCH)
    compare([Kernel(s) for s in seeds], seeds, WAYS["after passes"], WAYS["as lowered"])


def test_programs_follow_from_their_seed():
    assert text_of(Program(SEED), False) == text_of(Program(SEED), False) != text_of(Program(SEED + 1), False)


def test_a_wrong_program_is_shrunk(monkeypatch):
    """The model is told that subtraction adds: what is left is one that subtracts."""
    combine = Text.combine

    def wrong(self, dtype, op, a, b):
        return combine(self, dtype, "+" if self.model and op == "-" else op, a, b)

    monkeypatch.setattr(Text, "combine", wrong)
    found = next(p for p in map(Program, range(SEED, SEED + 400)) if safely(p, INTERPRETED[1:]))
    small = text_of(shrink(found, lambda p: safely(p, INTERPRETED[1:])), False)
    assert "-" in small and len(small.splitlines()) < 8, small


def test_models_are_plain_python():
    assert set(model(Program(SEED))) and "qd" not in text_of(Program(SEED), True)
