"""Gradients of random programs (tests/py/ad_programs.py) by `kernel.grad`, on the interpreter and as native
code, against a dual-number interpreter of the same IR (ad_duals.py), which itself is compared with
central differences in f64. A program that disagrees is shrunk and shown.

A difference next to a kink is judged by the dual interpreter: it says how near the nearest one is."""

import collections

import pytest
from ad_play import Case, Expected, by_differences, settings
from ad_programs import CONSTRUCTS, RARE, Program
from conftest import SEED, STRESS, samples

import ingot as qd

BATCH = 10


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def batches(full):
    n = full if STRESS else max(BATCH, full // 80)
    return [range(SEED + k, SEED + min(k + BATCH, n)) for k in range(0, n, BATCH)]


def test_every_construct_has_its_share():
    n, found = max(400, samples(5000)), collections.Counter()
    for seed in range(SEED, SEED + n):
        found.update(Program(seed).marks)
    assert set(found) <= {*CONSTRUCTS, *RARE}
    low = {m: found[m] / n for m in CONSTRUCTS if found[m] < 0.05 * n}
    assert not low and all(found[m] for m in RARE), low


def test_programs_follow_from_their_seed():
    assert Program(SEED).text() == Program(SEED).text() != Program(SEED + 1).text()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(2000), ids=lambda r: str(r.start - SEED))
def test_duals_agree_with_differences(seeds):
    """The oracle itself, in f64, along random directions and single entries; and what it leaves in the
    arrays is what the kernel leaves, in the program's own precision."""
    for seed in seeds:
        program = Program(seed)
        qd.init(arch=qd.interp, default_fp=qd.f64, fast_math=False)
        verdict, _ = by_differences(program)
        assert verdict.kind in ("ok", "kink"), f"seed {seed}: {verdict}\n{program.text()}"
        qd.init(arch=qd.interp, **settings(program))
        expected = Expected(Case(program))
        if not expected.wild():
            verdict = expected.check(expected.grads, Case(program).launch())
            assert verdict.kind in ("ok", "kink"), f"seed {seed}: {verdict}\n{program.text()}"
