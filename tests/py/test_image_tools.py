"""Other programs read cached images: objdump and nm name a kernel's code in the file, gdb in the
process that runs it. (Packs: test_seal.py; images that are linked without Python: test_image.c.)"""

import os
import pathlib
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
