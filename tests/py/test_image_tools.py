"""Other programs read cached images: objdump and nm name a kernel's code in the file, perf and gdb in
the process that runs it. (Files of packs: test_seal.py; images that are linked without Python: test_image.c.)"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import needs

PROGRAM = """\
import re, subprocess, sys
import ingot as qd

qd.init()


@qd.kernel
def saxpy(a: qd.types.ndarray(qd.f32, 1), x: qd.f32):
    for i in range(a.shape[0]):
        a[i] = a[i] * x + 1


saxpy(qd.ndarray(qd.f32, 64), 2.0)
maps = [x.split() for x in open("/proc/self/maps") if re.search(r"/i/../[0-9a-f]{32}$", x.rstrip())]
code = next(m for m in maps if "x" in m[1])
image = code[-1]
first = min(int(m[0].split("-")[0], 16) for m in maps if m[-1] == image)
print(image)
if "gdb" in sys.argv:
    out = subprocess.run(["nm", image], capture_output=True, text=True, check=True).stdout
    at = next(int(x.split()[0], 16) for x in out.splitlines() if x.split()[-1] == "saxpy")
    script = ["-ex", f"add-symbol-file {image} -o {first:#x}", "-ex", f"info symbol {first + at + 1:#x}"]
    done = subprocess.run(["gdb", "-batch", "-nx", *script], capture_output=True, text=True)
    print(done.stdout + done.stderr)
"""


@pytest.fixture
def run(tmp_path, cache_dir):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)

    def run(*args):
        done = subprocess.run([sys.executable, "-B", str(path), *args], capture_output=True, text=True, timeout=240,
                              env={**os.environ, "INGOT_ARCH": "cpu"})
        assert done.returncode == 0, done.stderr
        image, _, said = done.stdout.partition("\n")
        assert pathlib.Path(image).is_relative_to(cache_dir)
        return image, said

    return run


@needs("objdump", "nm")
def test_objdump_and_nm(run):
    image, _ = run()
    code = subprocess.run(["objdump", "-d", "--disassemble=saxpy", image], capture_output=True, text=True,
                          check=True).stdout
    assert "<saxpy>:" in code and "ret" in code
    names = subprocess.run(["nm", image], capture_output=True, text=True, check=True).stdout
    assert {"saxpy", "ing_task"} <= {x.split()[-1] for x in names.splitlines()}


@needs("gdb", "nm")
def test_gdb(run):
    _, said = run("gdb")
    assert "saxpy + 1 in section .text" in said, said


# ---- while a kernel runs --------------------------------------------------------------------------

RUNNING = """\
import os, signal, sys, threading, time
import numpy as np
import ingot as qd

qd.init(gdb="gdb" in sys.argv)


@qd.func
def step(x):
    return x * 0.999 + 0.25 / (x + 1.0)


@qd.kernel
def endless(a: qd.types.ndarray(qd.f32, 1), stop: qd.f32):
    a[0] = 1.0
    for i in range(1):  # where it runs
        x = 0.5
        while x != stop:
            x = step(x)
        a[1] = x


@qd.kernel
def spin(a: qd.types.ndarray(qd.f32, 1), n: qd.i32):
    for i in range(1):
        x = 0.5
        for j in range(n):
            x = step(x)
        a[0] = x


def stop_it():
    while a[0] == 0:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGUSR1)


a = np.zeros(64, np.float32)
endless(a, 0.5)
spin(a, 1)
if "gdb" in sys.argv:
    a[0] = 0
    threading.Thread(target=stop_it, daemon=True).start()
    endless(a, -1.0)
if "perf" in sys.argv:
    spin(a, 60_000_000)
print(qd._core.counters())
"""
RECORD = ("perf", "record", "-q", "-e", "cpu-clock:u")
GDB = ("gdb", "-batch", "-nx", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off")


def permitted(what, program, allowed):
    """A sandbox may have a program and not let it look at others."""
    return lambda test: needs(program)(
        test if not shutil.which(program) or allowed() else pytest.mark.not_run(reason=what)(test))


def can_record():
    return subprocess.run([*RECORD, "-o", os.devnull, "true"], capture_output=True).returncode == 0


def can_trace():
    done = subprocess.run([*GDB, "-ex", "run", "--args", sys.executable, "-c", ""], capture_output=True, text=True)
    return "exited normally" in done.stdout


@pytest.fixture(params=["file", "pack"])
def running(request, tmp_path, cache_dir):
    """Runs the kernels above from files of a cache or from a pack, nothing of them compiled."""
    path = tmp_path / "running.py"
    path.write_text(RUNNING)
    env = {**os.environ, "INGOT_ARCH": "cpu"}

    def run(*command, **more):
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**env, **more})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    python = sys.executable, "-B", str(path)
    run(*python)
    layer = tmp_path / "layer"
    if request.param == "pack":
        run(sys.executable, "-m", "ingot", "cache", "seal", "--dir", str(cache_dir), str(layer))
        shutil.rmtree(cache_dir)
        env["INGOT_CACHE_PATH"] = f"{cache_dir}{os.pathsep}{layer}"
    assert "'image_compiles': 0" in run(*python)
    yield lambda *prefix, kind: run(*prefix, *python, kind)
    if layer.is_dir():
        layer.chmod(0o755)  # so that pytest can remove it


@permitted("gdb (may not trace here)", "gdb", can_trace)
def test_gdb_in_a_running_kernel(running):
    """The stack from inside of the kernel, with its line, down to the interpreter."""
    said = running(*GDB, "-ex", "run", "-ex", "bt", "-ex", "list", "-ex", "kill", "--args", kind="gdb")
    line = next(k for k, text in enumerate(RUNNING.splitlines(), 1) if "# where it runs" in text)
    assert re.search(rf"#0 +0x[0-9a-f]+ in endless \(\) at .*/running\.py:{line}\n", said), said
    frames = re.findall(r"^#(\d+) ", said, re.M)
    assert len(frames) > 10 and frames == [str(k) for k in range(len(frames))], said
    assert "Backtrace stopped" not in said and "corrupt stack" not in said, said
    assert f"{line}\t    for i in range(1):  # where it runs" in said, said


@permitted("perf (may not record here)", "perf", can_record)
def test_perf_in_a_running_kernel(running, tmp_path):
    data = str(tmp_path / "perf.data")
    running(*RECORD, "-o", data, kind="perf")
    out = subprocess.run(["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol"],
                         capture_output=True, text=True).stdout
    assert re.search(r"(ingot\.pack|[0-9a-f]{32}) +\[\.\] spin", out), out
