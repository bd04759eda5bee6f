"""INGOT_LOG=compile: one line per kernel that was compiled, none without it."""

import os
import re
import subprocess
import sys

PROGRAM = """
import ingot as qd
qd.init(arch=qd.cpu)
@qd.func
def f(x):
    return x * 2.0
@qd.kernel
def k(a: qd.types.ndarray(qd.f32, 1)):
    for i in range(a.shape[0]):
        a[i] = f(a[i]) + f(a[i] + 1.0)
a = qd.ndarray(qd.f32, 8)
k(a)
k(a)
"""


def run(folder, **extra):
    folder.mkdir()
    path = folder / "prog.py"
    path.write_text(PROGRAM)
    env = dict(os.environ, INGOT_CACHE_DIR=str(folder / "cache"), **extra)
    p = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return p.stderr


def test_report(tmp_path):
    assert "compile" not in run(tmp_path / "quiet")
    lines = run(tmp_path / "told", INGOT_LOG="compile")
    found = re.findall(r"^ingot: compile k: (\d+) nodes, (\d+) funcs for (\d+) calls, (\d+) IR "
                       r"instructions, (\d+) LLVM lines in (\d+) of (\d+) tasks; ms: front", lines,
                       re.M)
    assert len(found) == 1
    nodes, funcs, calls, insts, text, compiled, tasks = map(int, found[0])
    assert nodes > 20 and (funcs, calls) == (1, 2) and insts > 10
    assert text > 40 and (compiled, tasks) == (1, 1)
