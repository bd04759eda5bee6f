"""Many cold processes on one cache directory: each image is compiled once in all."""

import json
import os
import subprocess
import sys

import pytest
from conftest import STRESS

PROGRAM = """\
import json

import ingot as qd

qd.init()

{kernels}

a = qd.ndarray(qd.f32, (64,))
for k in ({names}):
    k(a, 0.5)
print(json.dumps([qd._core.counters(), float(a[3])]))
"""

KERNEL = """\
@qd.kernel
def k{k}(a: qd.types.ndarray(qd.f32, ndim=1), s: qd.f32):
    for i in range(a.shape[0]):
        a[i] = a[i] * {k}.5 + s
"""


def write(path, kernels):
    text = "\n\n".join(KERNEL.format(k=k) for k in range(kernels))
    path.write_text(PROGRAM.format(kernels=text, names="".join(f"k{k}, " for k in range(kernels))))


def stampede(path, processes):
    children = [subprocess.Popen([sys.executable, str(path)], env=dict(os.environ), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(processes)]
    outputs = [c.communicate(timeout=600) for c in children]
    assert all(c.returncode == 0 for c in children), outputs
    results = [json.loads(out) for out, _ in outputs]
    assert len({value for _, value in results}) == 1
    return [counters for counters, _ in results]


@pytest.mark.counts("lowerings")
def test_each_image_is_compiled_once(tmp_path, cache_dir):
    kernels, processes = (20, 64) if STRESS else (4, 6)
    write(tmp_path / "program.py", kernels)
    counts = stampede(tmp_path / "program.py", processes)
    assert sum(c["image_compiles"] for c in counts) == kernels
    assert all(c["lowerings"] + c["kernel_disk_hits"] == kernels for c in counts)
    assert not list(cache_dir.rglob("*.lease")) and not list(cache_dir.rglob("*.tmp"))
    for c in stampede(tmp_path / "program.py", 2):
        assert (c["image_compiles"], c["lowerings"], c["kernel_disk_hits"]) == (0, 0, kernels)


def test_a_lease_of_a_dead_process_is_no_obstacle(tmp_path, cache_dir):
    """A process killed in the middle of a compile leaves its lease; the next one goes on at once."""
    write(tmp_path / "program.py", 1)
    killed = tmp_path / "killed.py"
    killed.write_text((tmp_path / "program.py").read_text().replace(
        "import ingot as qd\n", "import os, threading, time\nimport ingot as qd\n"
        "def watch():\n"
        "    while not any(f.endswith('.lease') for _, _, fs in os.walk(os.environ['INGOT_CACHE_DIR']) for f in fs):\n"
        "        time.sleep(0.0005)\n"
        "    os.kill(os.getpid(), 9)\n"
        "threading.Thread(target=watch, daemon=True).start()\n", 1))
    done = subprocess.run([sys.executable, str(killed)], env=dict(os.environ), capture_output=True)
    assert done.returncode == -9 and len(list(cache_dir.rglob("*.lease"))) == 1
    assert stampede(tmp_path / "program.py", 1)[0]["image_compiles"] == 1
    assert not list(cache_dir.rglob("*.lease"))
