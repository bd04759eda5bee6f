"""The kernels of fault_server.py under faults: fixtures of test_faults.py and test_kills.py."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile

import pytest
from conftest import PARANOID, ROOT, needs

HERE = pathlib.Path(__file__).resolve().parent
VALUES = [4.0, 11.5]
IMAGES = 3  # two loops, and the results of the second kernel
OTHERS = 29  # kernels: with them a cache has just the number of entries that is worth a pack
FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"]

with_shim = needs("gcc")


def build(out, source, *flags):
    subprocess.run(["gcc", *FLAGS, *flags, "-o", out, ROOT / "tests" / "c" / source, "-ldl"], check=True)
    return str(out)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return build(tmp_path_factory.mktemp("shim") / "fault_shim.so", "fault_shim.c", "-shared", "-fPIC")


@contextlib.contextmanager
def serving(env):
    process = subprocess.Popen([sys.executable, "-B", str(HERE / "fault_server.py")], text=True,
                               env={**os.environ, "INGOT_ARCH": "cpu", **env},
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


@pytest.fixture(scope="module")
def server(shim):
    """Runs the kernels of fault_server.py under faults: what it answers, already checked."""
    with serving({"LD_PRELOAD": shim}) as run:
        yield run


@pytest.fixture(scope="module")
def quick_server(shim, tmp_path_factory):
    """The same with one compiler for all processes, so that a cold start takes no longer than a warm one."""
    relay = build(tmp_path_factory.mktemp("relay") / "fault_relay", "fault_relay.c")
    with tempfile.TemporaryDirectory(prefix="ingot-relay-") as folder:  # names of sockets are short
        helper = subprocess.Popen([sys.executable, "-B", str(HERE / "fault_helper.py"), folder + "/s"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert helper.stdout.readline() == b"ready\n"
        with serving({"LD_PRELOAD": shim, "INGOT_HELPER_PYTHON": relay, "FAULT_HELPER": folder + "/s"}) as run:
            yield run
        helper.stdin.close()
        helper.wait()


def is_warm(got):
    counters = got["counters"]
    found = (counters["image_compiles"], counters["kernel_disk_hits"]) == (0, 2)
    return found and (PARANOID or counters["lowerings"] == 0)


def entries(cache, kinds="aivxn"):
    """Files of entries, the smaller ones first."""
    found = [p for k in kinds for p in (cache / k).glob("??/" + "?" * 32)]
    return sorted(found, key=lambda p: (p.stat().st_size, p.name))


def age(cache):
    """As if nothing had changed for an hour: a pack trusts no directory that has just changed."""
    for path in [p for p in cache.rglob("*") if p.is_dir()]:
        then = path.stat().st_mtime - 3600
        os.utime(path, (then, then))


def seal(cache, out):
    subprocess.run([sys.executable, "-m", "ingot", "cache", "seal", "--dir", str(cache), str(out)],
                   check=True, cwd=cache, stdout=subprocess.DEVNULL)


def fill(server, folder):
    server(folder / "warm")
    assert is_warm(server(folder / "warm"))
    shutil.copytree(folder / "warm", folder / "empty")
    for path in (folder / "empty").glob("?/??"):
        shutil.rmtree(path)
    return folder


@pytest.fixture(scope="module")
def caches(server, tmp_path_factory):
    """In one folder: "warm", a cache that has all; "empty", all but entries."""
    return fill(server, tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def all_caches(quick_server, tmp_path_factory):
    """As those, and "unaliased", all but what saves parsing; "packed", in which a pack has all; "many", to
    which the next entries bring a pack; "layers", where an empty one stands above a sealed one."""
    folder = fill(quick_server, tmp_path_factory.mktemp("faults"))
    for name in ("unaliased", "packed"):
        shutil.copytree(folder / "warm", folder / name)
    for path in (folder / "unaliased").glob("a/??"):
        shutil.rmtree(path)
    age(folder / "packed")
    assert quick_server(folder / "packed", more=OTHERS)["counters"]["packs_made"]
    shutil.copytree(folder / "packed", folder / "many")
    for name in ["total", "ingot.pack", *(p.relative_to(folder / "warm") for p in entries(folder / "warm"))]:
        (folder / "many" / name).unlink()
    age(folder / "many")
    shutil.copytree(folder / "empty", folder / "layers" / "user")
    seal(folder / "warm", folder / "layers" / "site")
    return folder


def fresh(caches, which):
    """A copy to break, always under one name."""
    cache = caches / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    if which:
        shutil.copytree(caches / which, cache)
    return cache


def a_start(caches, which):
    """(directory, what else the server is told) for a start from one of `caches`, or from none."""
    cache = fresh(caches, {"cold": None, "full": "many"}.get(which, which))
    if which == "full":  # what is published goes past the bounds
        return cache, {"env": {"INGOT_OFFLINE_CACHE_MAX_ENTRIES": str(len(entries(caches / "many")) + 5)}}
    if which == "layers":
        path = {"INGOT_CACHE_PATH": f"{cache / 'user'}:{cache / 'site'}"}
        return cache / "user", {"watch": str(cache), "env": path}
    return cache, {}
