"""The line about long compiles: on a terminal after two seconds, nowhere else, and not if it is off."""

import os
import pty
import re
import subprocess
import sys

import pytest

PROGRAM = """
import ingot as qd
qd.init({options})

@qd.kernel
def slow_one(a: qd.types.ndarray(), b: qd.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] += 1
    for i in range(b.shape[0]):
        b[i] *= 2

a, b = qd.ndarray(qd.f32, 3), qd.ndarray(qd.f32, 5)
slow_one(a, b)
print("result", a[0])
"""

def on_terminal(tmp_path, options, seconds, then=f'exec "{sys.executable}" "$@"', code=0, **env):
    """What a terminal shows of the program, whose compiler starts `seconds` late."""
    (tmp_path / "program.py").write_text(PROGRAM.format(options=options))
    slow = tmp_path / "slow-python"
    slow.write_text(f"#!/bin/sh\nsleep {seconds}\n{then}\n")
    slow.chmod(0o755)
    ours, theirs = pty.openpty()
    done = subprocess.Popen([sys.executable, str(tmp_path / "program.py")], stdin=theirs, stdout=theirs, stderr=theirs,
                            env={**os.environ, "INGOT_HELPER_PYTHON": str(slow), **env})
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert done.wait(timeout=120) == code, text
    return text.decode()


def test_a_long_compile_is_told(tmp_path, cache_dir):
    text = on_terminal(tmp_path, "", 3)
    assert re.search(r"ingot: compiling slow_one: \d of 2 tasks done, \d s", text), text
    assert re.search(r"ingot: compiled slow_one in \d+\.\d s\r\n", text) and "result 1.0" in text


def test_a_failed_one_is_told_as_such(tmp_path, cache_dir):
    text = on_terminal(tmp_path, "", 3, then="exit 1", code=1)
    assert re.search(r"ingot: gave up on slow_one after \d+\.\d s\r\n", text) and "compiled slow_one" not in text, text


@pytest.mark.parametrize("options, env", [("progress=False", {}), ("", {"INGOT_PROGRESS": "0"})])
def test_it_can_be_switched_off(tmp_path, cache_dir, options, env):
    assert "ingot:" not in on_terminal(tmp_path, options, 3, **env)


def test_short_compiles_and_files_stay_quiet(tmp_path, cache_dir):
    (tmp_path / "program.py").write_text(PROGRAM.format(options=""))
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=True)
    assert "compil" not in done.stderr
    assert "compil" not in on_terminal(tmp_path, "", 0)  # from the cache
