"""Nothing stale, at random: programs of tests/py/random_mutations.py, everything around whose
kernels changes between launches, compared with plain Python after each change; one half
under paranoid mode, which lowers at each launch and compares as well. In one process on the
interpreter, and natively in two that share a cache."""

import pytest
from conftest import SEED, samples
from play_mutations import Tally, run_here, run_processes, shrink
from random_mutations import Program

import ingot as qd

CHANGES = 30  # of each program
BATCH = 8  # programs of one test


def batches(changes):
    """[seeds] of all tests that together make so many changes."""
    seeds = range(SEED, SEED + -(-samples(changes) // CHANGES))
    return [seeds[i:i + BATCH] for i in range(0, len(seeds), BATCH)]


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(20000), ids=lambda s: str(s[0]))
def test_in_one_process(tmp_path, seeds):
    tally = Tally()
    paranoid = seeds[0] // BATCH % 2 == 1
    wrong = run_here([Program(s, CHANGES) for s in seeds], tmp_path, tally, paranoid=paranoid)
    assert wrong is None, wrong
    refused = sum(map(len, tally.refused.values()))
    assert tally.equal > 0.4 * tally.launches, "too few launches show anything"
    assert refused < 0.15 * tally.launches, {k: len(v) for k, v in tally.refused.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(2400), ids=lambda s: str(s[0]))
def test_in_two_processes(tmp_path, seeds):
    wrong, cold, warm = run_processes([Program(s + 10**7, CHANGES) for s in seeds], tmp_path)
    assert wrong is None, wrong
    assert warm["launches"] and warm["equal"] > 0.4 * warm["launches"]
    assert warm["kernel_disk_hits"] > 10 * warm["variants"], (cold, warm)


def test_programs_follow_from_their_seed():
    one, other = Program(SEED), Program(SEED)
    assert one.script() == other.script() != Program(SEED + 1).script()


def test_failures_are_shrunk():
    def fails(program):
        text = program.script()
        return culprit in program.changes and block in program.kernels[-1].blocks and text
    program = Program(SEED)
    culprit, block = program.changes[12], program.kernels[-1].blocks[0]
    small = shrink(program, fails)
    assert set(small.changes) == {culprit}
    assert [k.blocks for k in small.kernels] == [[block]]
