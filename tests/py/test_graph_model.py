"""Random graph programs (graph_programs.py) against a plain Python model: on native code, on
the interpreter, and again from a warm cache in a process of its own."""

import json
import os
import random
import subprocess
import sys

import pytest
from conftest import HERE, PARANOID, SEED, samples
from graph_programs import make, play_model, text

BATCH = 50

CHILD = """\
import json
import sys

sys.path.insert(0, {here!r})
import graph_programs as gp
import ingot as qd

import {module} as kernels

qd.init()
log = []
for k, (program, checkpoints, budget, choices) in enumerate(json.load(open({cases!r}))):
    kernel = getattr(kernels, f"k{{k}}")
    arrays = [qd.ndarray(qd.i32, (gp.N,)), qd.ndarray(qd.i32, (4,))]
    arrays += [qd.ndarray(qd.i32, ()) for _ in range(gp.LOOPS + gp.STAGES + 1)]
    arrays[-1][()] = budget
    flags = arrays[2 + gp.LOOPS:-1]

    def launch(resume):
        if not checkpoints:
            return kernel(*arrays)
        s = kernel(*arrays) if resume is None else kernel.resume(*arrays, from_checkpoint=resume * 10)
        return s.checkpoint // 10 if s.yielded else None

    def state():
        x, y = ([int(v) for v in a.to_numpy()] for a in arrays[:2])
        c = [int(a[()]) for a in arrays[2:2 + gp.LOOPS]]
        return [x, y, c, [int(a[()]) for a in flags], int(arrays[-1][()])]

    def clear(number):
        flags[number][()] = 0

    log.append(gp.play(program, budget, choices, launch, state, clear))
print(json.dumps([log, qd._core.counters()["lowerings"]]))
"""


def batches():
    total = samples(1000)
    return [(at, min(BATCH, total - at)) for at in range(0, total, BATCH)]


def cases_of(first, count):
    out = []
    for k in range(first, first + count):
        rng = random.Random(SEED + k)
        checkpoints = rng.random() < 0.6
        budget = rng.randint(0, 4)
        choices = [rng.randint(-2, 2) for _ in range(4)]
        out.append((make(rng, checkpoints), checkpoints, budget, choices))
    return json.loads(json.dumps(out))  # as the other process sees them


@pytest.mark.parametrize("first, count", batches())
def test_random_programs(first, count, tmp_path, cache_dir):
    cases = cases_of(first, count)
    kernels = ["import ingot as qd\n"]
    kernels += [text(c[0], f"k{k}", c[1]) for k, c in enumerate(cases)]
    (tmp_path / "kernels.py").write_text("\n\n".join(kernels))
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    child = tmp_path / "child.py"
    child.write_text(CHILD.format(here=str(HERE), module="kernels", cases=str(tmp_path / "cases.json")))
    want = [play_model(program, budget, choices) for program, _, budget, choices in cases]

    def run(**env):
        done = subprocess.run([sys.executable, "-B", str(child)], capture_output=True, text=True,
                              timeout=900, env={**os.environ, **env})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def check(got, label):
        for k, (a, b) in enumerate(zip(got, want)):
            assert a == b, f"{label}, program {first + k}:\n{kernels[k + 1]}"

    got, lowered = run(INGOT_ARCH="cpu")
    check(got, "native")
    assert PARANOID or lowered == len(cases)
    got, lowered = run(INGOT_ARCH="cpu")
    check(got, "warm")
    assert PARANOID or lowered == 0
    check(run(INGOT_ARCH="interp")[0], "interpreter")


def test_the_model_tells_programs_apart():
    """A model that never differs would agree with anything."""
    logs = {json.dumps(play_model(p, b, c)) for p, _, b, c in cases_of(0, 100)}
    assert len(logs) > 90
