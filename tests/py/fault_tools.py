"""The kernels of fault_server.py under faults: fixtures of test_faults.py and test_kills.py."""

import json
import os
import pathlib
import select
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, needs

HERE = pathlib.Path(__file__).resolve().parent
VALUES = [4.0, 11.5]
IMAGES = 3  # two loops, and the results of the second kernel

with_shim = needs("gcc")


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "fault_shim.so"
    source = ROOT / "tests" / "c" / "fault_shim.c"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def server(shim):
    """Runs the kernels of fault_server.py under faults: what it answers, already checked."""
    env = {**os.environ, "LD_PRELOAD": str(shim), "INGOT_ARCH": "cpu"}
    process = subprocess.Popen([sys.executable, "-B", str(HERE / "fault_server.py")], env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(cache, **job):
        process.stdin.write(json.dumps({"cache": str(cache), **job}) + "\n")
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 240)[0], job
        got = json.loads(process.stdout.readline())
        assert got.get("values") == VALUES or "killed" in got, (job, got)
        return got

    yield run
    process.stdin.close()
    process.wait()


def is_warm(got):
    counters = got["counters"]
    return (counters["lowerings"], counters["image_compiles"], counters["kernel_disk_hits"]) == (0, 0, 2)


@pytest.fixture(scope="module")
def caches(server, tmp_path_factory):
    """A warm cache, and one that has everything but entries."""
    folder = tmp_path_factory.mktemp("faults")
    server(folder / "warm")
    assert is_warm(server(folder / "warm"))
    shutil.copytree(folder / "warm", folder / "empty")
    for path in (folder / "empty").glob("?/??"):
        shutil.rmtree(path)
    return folder


def fresh(caches, which):
    """A copy to break, always under one name."""
    cache = caches / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    if which:
        shutil.copytree(caches / which, cache)
    return cache
