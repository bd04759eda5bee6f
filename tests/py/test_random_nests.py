"""Random nests of loops (tests/py/random_nests.py): the interpreter on the IR as lowered,
after passes, and native code leave the same in all arrays."""

import pytest
from conftest import SEED, samples
from play_patterns import WAYS
from random_nests import Program, launch
from test_random_kernels import same

import ingot as qd

BATCH = 50
LOWERED, PASSES, ONE, TWO = WAYS


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def check(seeds, ways):
    for seed in seeds:
        program = Program(seed)
        want = launch(program, **WAYS[ways[0]])
        for way in ways[1:]:
            got = launch(program, **WAYS[way])
            wrong = [a for a in want if not same(want[a], got[a])]
            assert not wrong, (f"seed {seed}, {way}: {wrong[0]} of {program.arrays}, fields {program.fields}, "
                               f"overlap {program.overlap}\n{program.text}\n{want[wrong[0]]}\n{got[wrong[0]]}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(-(-samples(10000) // BATCH)))
def test_interpreted(batch):
    check(range(SEED + batch * BATCH, SEED + (batch + 1) * BATCH), [LOWERED, PASSES])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(-(-samples(1000) // 10)))
def test_native(batch):
    """Cold with one thread, then with two and from the cache."""
    check(range(SEED + batch * 10, SEED + (batch + 1) * 10), [PASSES, ONE, TWO])
