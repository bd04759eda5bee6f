"""Fingerprints when memory runs out: MemoryError, never another digest, nothing leaked."""

import os
import pathlib
import re
import subprocess
import sys

from conftest import needs

HERE = pathlib.Path(__file__).resolve().parent


@needs("_testcapi")
def test_every_allocation_fails_once(tmp_path):
    script = HERE / "fingerprint_nomemory.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "c")], env=env,
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1, lines[:20]
    numbers = re.fullmatch(r"failed (\d+) in a round (\d+) growth (-?\d+)", lines[0]).groups()
    failed, each, growth = map(int, numbers)
    assert failed > 1000 and growth < each / 2
