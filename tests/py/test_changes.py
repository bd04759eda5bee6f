"""Programs as people write them, which change something that a kernel reads between launches
(changes_*.txt): each launch is what plain Python gives, or a refusal; in one process, and on disk
in processes of which each makes another one of the launches."""

import json
import math
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import samples
from play_changes import programs

HERE = pathlib.Path(__file__).parent
FILES = sorted(p.name for p in HERE.glob("changes_*.txt"))


def play(folder, mode, file, *more, **env):
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-B", str(HERE / "play_changes.py"), mode, str(HERE / file), str(folder), *more],
        capture_output=True, text=True, timeout=600, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout)


def is_same(want, got):
    """Floats of kernels may have fewer digits."""
    if isinstance(want, str) or isinstance(got, str):
        return isinstance(want, str) and isinstance(got, str)
    return all(math.isclose(float(w), float(g), rel_tol=2e-6) or w == g for w, g in zip(want, got))


def is_refusal(got):
    return isinstance(got, str) and got.startswith("Ingot") and "paranoid:" not in got


def compare(want, got):
    """How many launches there were, and how many of them gave a number."""
    launches = numbers = 0
    for name, results in want.items():
        assert len(results) == len(got[name]), name
        for i, (w, g) in enumerate(zip(results, got[name])):
            if w is None and g is None:
                continue
            assert is_same(w, g) or is_refusal(g), (name, i, w, g)
            launches += 1
            numbers += not isinstance(g, str)
    return launches, numbers


def test_there_are_enough():
    assert sum(len(programs(HERE / file)) for file in FILES) >= 150


@pytest.mark.parametrize("file", FILES)
def test_in_one_process(file, tmp_path):
    want = play(tmp_path / "python", "python", file)
    got = play(tmp_path / "ingot", "ingot", file, INGOT_ARCH="interp")
    launches, numbers = compare(want, got)
    assert numbers > 0.85 * launches


@pytest.mark.parametrize("file", FILES)
def test_across_processes(file, tmp_path, cache_dir):
    names = sorted(programs(HERE / file))
    names = names[:: max(1, len(names) // samples(len(names)))]
    for which in "012":
        want = play(tmp_path / f"python{which}", "python", file, which, *names)
        got = play(tmp_path / "ingot", "ingot", file, which, *names, INGOT_ARCH="cpu")
        compare(want, got)


INIT = """
import threading
import ingot as qd
from ingot import _core

@qd.kernel
def k(a: qd.types.ndarray(), n: qd.template()):
    for i in range(a.shape[0]):
        a[i] = qd.sin(a[i]) + n

for n in range(8):
    qd.init(arch=qd.cpu)
    a, before = qd.ndarray(qd.f64, 8), _core.counters()["lowerings"]
    thread = threading.Thread(target=k, args=(a, n))
    thread.start()
    while thread.is_alive() and _core.counters()["lowerings"] == before:
        pass
    qd.init(arch=qd.interp)
    thread.join()
    print(a[0])
"""


def test_another_target_while_a_kernel_is_compiled(tmp_path, cache_dir):
    """What is noted of a compile is of its own target: the interpreter has no instruction set."""
    (tmp_path / "program.py").write_text(INIT)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [f"{n}.0" for n in range(8)]
