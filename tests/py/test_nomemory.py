"""When memory runs out: the right answer or MemoryError, never another one, then and afterwards;
nothing is leaked."""

import os
import pathlib
import re
import subprocess
import sys

from conftest import needs

HERE = pathlib.Path(__file__).resolve().parent

# NumPy gives a dtype of its own back once too often when memory ends in it, without us too, and says so; where memory
# ends in saying it, Python 3.13 tells. The engine never calls that function (tools/check_swallow.py).
NUMPY = re.compile(
    r"Exception ignored in PySys_GetObject\(\):\n(?:Traceback.*\n(?: .*\n)*)?MemoryError: *\n(?=\*\*\* Reference count error)")


def last_line(script, *args):
    """What a script says at the end that fails every allocation once; before it, what is wrong."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-X", "faulthandler", str(HERE / script), *args], env=env,
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1, lines[:20]
    assert "Exception ignored" not in NUMPY.sub("", done.stderr), done.stderr
    return lines[0]


@needs("_testcapi")
def test_fingerprints(tmp_path):
    line = last_line("fingerprint_nomemory.py", str(tmp_path / "c"))
    numbers = re.fullmatch(r"failed (\d+) in a round (\d+) growth (-?\d+)", line).groups()
    failed, each, growth = map(int, numbers)
    assert failed > 1000 and each > 50 and growth < 20


@needs("_testcapi", "numpy")
def test_kernels(cache_dir):
    failed = int(last_line("nomemory_kernels.py").removeprefix("failed "))
    assert failed > 1500
