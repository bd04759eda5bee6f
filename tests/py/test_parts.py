"""Kernels whose code is compiled in parts and linked: results, the same bytes wherever they are
compiled, helpers that die in between. Each program runs in a process of its own."""

import hashlib
import os
import pathlib

from conftest import run_program

FUNCS = 9

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import ingot as qd
from ingot import _core
qd.init(arch=qd.cpu, fast_math=False)

@qd.func
def small(x: qd.i32) -> qd.i32:
    return x ^ (x >> 3)

@qd.func
def bump(v: qd.template(), x: qd.i32):
    v += small(x) & 15
"""
TAIL = """
def model(x):
    wrap = lambda v: (v + 2**31) % 2**32 - 2**31
    small = lambda v: v ^ (v >> 3)
    total = 0
    for n in range({funcs}):
        if x & 1 << n % 16 or n % 5 == 0:
            a, b = x + n, n
            for k in range(40):
                a = wrap(a * 3 + small(wrap(b + k)))
                b = wrap(b ^ (a >> 5))
                if a > 1000000000:
                    b = wrap(b - k)
            total = wrap(total + a + b)
        total += small(n) & 15
    return total

x = qd.ndarray(qd.i32, 64)
x.from_numpy(np.arange(64, dtype=np.int32) * 37)
"""


def program(checked=False):
    """A kernel of funcs that are too long for LLVM to inline, each with one caller or two."""
    parts = [HEAD]
    for n in range(FUNCS):
        lines = [f"@qd.func\ndef f{n}(x: qd.i32) -> qd.i32:", f"    a = x + {n}", f"    b = {n}"]
        for k in range(40):
            wrap = f"(a * 3 + small(b + {k})) & 65535" if checked else f"a * 3 + small(b + {k})"
            lines += ["    a = " + wrap, "    b = b ^ (a >> 5)"]
            lines += ["    if a > 1000000000:", f"        b -= {k}"]
        if checked:
            lines.append(f"    assert x < 10**6, 'in f{n}'")
        parts.append("\n".join([*lines, "    return a + b", ""]))
    body = ["@qd.kernel\ndef long(x: qd.types.ndarray(qd.i32, 1)):", "    for i in range(x.shape[0]):"]
    body += ["        v = x[i]", "        total = 0"]
    for n in range(FUNCS):
        call = f"total += f{n}(v)"
        body.append("        " + (call if n % 5 == 0 else f"if v & {1 << n % 16}: {call}"))
        body.append(f"        bump(total, {n})")
    parts += ["\n".join([*body, "        x[i] = total", ""]), TAIL.replace("{funcs}", str(FUNCS))]
    return "\n".join(parts)


CALL = """
want = [model(v) for v in x.to_numpy().tolist()]
long(x)
print(x.to_numpy().tolist() == want)
c = _core.counters()
print("#", c["image_compiles"], c["image_parts"], c["helpers_started"])
"""


def counts(out):
    return [int(n) for n in out.split()[-3:]]


def run(tmp_path, text, name="prog.py", **more):
    path = tmp_path / name
    path.write_text(text)
    return run_program(path, **more)


def test_same_as_the_model(tmp_path, cache_dir):
    out = run(tmp_path, program() + CALL)
    assert out.split()[0] == "True"
    compiles, parts, _ = counts(out)
    assert compiles == 1 and parts > 3
    out = run(tmp_path, program() + CALL)
    assert out.split()[0] == "True" and counts(out) == [0, 0, 0]


def images(folder):
    found = [p for p in pathlib.Path(folder).rglob("*") if p.is_file() and b"INGIMAGE" in p.read_bytes()]
    return sorted((p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in found)


def test_the_same_bytes_on_one_processor(tmp_path):
    one = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    for name, head in ("many", ""), ("one", one):
        out = run(tmp_path, head + program() + CALL, INGOT_CACHE_DIR=str(tmp_path / name), agree=False)
        assert out.split()[0] == "True" and counts(out)[1] > 3
    assert images(tmp_path / "many") and images(tmp_path / "many") == images(tmp_path / "one")


KILL = """
def children():
    out = []
    for t in os.listdir("/proc/self/task"):
        try:
            out += [int(p) for p in open(f"/proc/self/task/{t}/children").read().split()]
        except OSError:
            pass
    return out

def kill_one():
    end = time.time() + 60
    while time.time() < end:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
                return
            except ProcessLookupError:
                pass
        time.sleep(0.02)

t = threading.Thread(target=kill_one)
t.start()
"""


def test_a_helper_dies_in_between(tmp_path):
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    out = run(tmp_path, program() + KILL + CALL, INGOT_CACHE_DIR=str(killed), agree=False)
    assert out.split()[0] == "True" and counts(out)[2] >= 2
    run(tmp_path, program() + CALL, INGOT_CACHE_DIR=str(calm), agree=False)
    assert images(killed) and images(killed) == images(calm)


STOP = """
x[5] = 10**7
try:
    long(x)
except AssertionError as e:
    print("in f" in str(e), "x < 10**6" in str(e))
"""


def test_an_assert_in_a_part_names_its_place(tmp_path):
    text = (program(checked=True) + STOP).replace("fast_math=False", "fast_math=False, debug=True")
    assert run(tmp_path, text).split() == ["True", "True"]
