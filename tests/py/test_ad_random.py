"""Gradients of random programs (tests/py/ad_programs.py) by `kernel.grad`, on the interpreter and as native
code, against a dual-number interpreter of the same IR (ad_duals.py), which itself is compared with
central differences in f64. A program that disagrees is shrunk and shown.

A difference next to a kink is judged by the dual interpreter: it says how near the nearest one is."""

import collections
import json
import subprocess
import sys

import ad_duals
import numpy as np
import pytest
from ad_play import Case, Expected, by_differences, judge, judge_forward, report, settings, shrink
from ad_programs import CONSTRUCTS, RARE, Program
from conftest import HERE, SEED, STRESS, samples

import ingot as qd

BATCH = 10


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def batches(full):
    n = full if STRESS else max(BATCH, samples(full) // 4)
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
        case = Case(program)
        left, expected = case.launch(), Expected(case)
        if not expected.wild():
            verdict = expected.check(expected.grads, left)
            assert verdict.kind in ("ok", "kink"), f"seed {seed}: {verdict}\n{program.text()}"


# ---- gradients --------------------------------------------------------------------------------------------

FOUND = collections.Counter()  # verdicts of all programs of this run
REFUSALS = collections.defaultdict(list)  # why: seeds


def note(program, verdict, fails):
    FOUND[verdict.kind] += 1
    if verdict.kind == "refused":
        REFUSALS[verdict.what].append(program.seed)
    assert verdict.kind not in ("wrong", "error"), report(program, fails)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(5000), ids=lambda r: str(r.start - SEED))
def test_gradients_interpreted(seeds):
    """After passes; every fifth program as lowered too."""
    for seed in seeds:
        program = Program(seed)
        qd.init(arch=qd.interp, **settings(program))
        note(program, judge(program), judge)
        if seed % 5 == 0:
            qd.init(arch=qd.interp, interp_passes=False, **settings(program))
            verdict = judge(program)
            assert verdict.kind not in ("wrong", "error"), report(program, judge)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(1000), ids=lambda r: str(r.start - SEED))
def test_forward_mode(seeds):
    for seed in seeds:
        program = Program(seed)
        qd.init(arch=qd.interp, **settings(program))
        verdict = judge_forward(program)
        assert verdict.kind in ("ok", "kink", "wild"), report(program, judge_forward)


@pytest.mark.filterwarnings("ignore")
def test_a_loser_that_is_no_number():
    """Seed 20241020: a power of a negative number loses an atomic_max, and so adds nothing (AD7)."""
    program = Program(20241020)
    qd.init(arch=qd.interp, **settings(program))
    assert judge(program).kind == "ok"


def play(seeds, threads):
    done = subprocess.run([sys.executable, "-B", str(HERE / "ad_play.py"), str(seeds.start), str(seeds.stop),
                           f"cpu_max_num_threads={threads}"], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.counts("lowerings")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", batches(1000), ids=lambda r: str(r.start - SEED))
def test_gradients_native(seeds, cache_dir):
    """A process compiles and runs them on one thread, a second one finds everything and uses two."""
    cold, warm = play(seeds, 1), play(seeds, 2)
    assert warm["image_compiles"] == warm["lowerings"] == warm["parses"] == 0
    for seed in seeds:
        program = Program(seed)
        qd.init(arch=qd.interp, **settings(program))
        for got in (cold["gradients"][str(seed)], warm["gradients"][str(seed)]):
            expected = Expected(Case(program, key=0 if isinstance(got, str) else got["key"]))
            if expected.wild() or isinstance(got, str) and got.startswith("refused"):
                continue
            assert not isinstance(got, str), f"seed {seed}: {got}\n{program.text()}"
            verdict = expected.check({n: np.array(a) for n, a in got["grads"].items()})
            assert verdict.kind in ("ok", "kink"), f"seed {seed}: {verdict}\n{program.text()}"


def test_few_are_refused():
    """After those above: each refusal has a reason, and there are few; hardly any overflows."""
    n = sum(FOUND.values())
    if STRESS:
        print(f"\nprograms: {n}, verdicts: {dict(FOUND)}, refusals: {dict(REFUSALS)}")
    assert FOUND["refused"] <= 0.02 * n and FOUND["wild"] <= 0.02 * n + 1 and FOUND["kink"] <= 0.02 * n + 1, REFUSALS


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_gradient_is_found_and_shrunk(monkeypatch):
    """The oracle is told that sin is its own derivative: what is left is little more than a sine."""
    value, _ = ad_duals.UNARY["sin"]
    monkeypatch.setitem(ad_duals.UNARY, "sin", (value, lambda x, r: r))
    for seed in range(SEED, SEED + 50):
        program = Program(seed)
        if program.dtype == "f64":
            qd.init(arch=qd.interp, **settings(program))
            if judge(program).kind == "wrong":
                break
    small = shrink(program, lambda p: judge(p).kind == "wrong", 150)
    assert "sin" in small.text() and len(small.text()) < len(program.text()) * 0.7
