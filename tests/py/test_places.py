"""Where kernels work: what the table of docs/processes.md says of programs that are packed, and of tests in docstrings and a
prompt of colours. Modules, commands, prompts and cells are in test_sources.py, notebooks in test_notebook.py."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from conftest import ROOT, needs

KERNEL = '''
import ingot as qd

@qd.kernel
def double(a: qd.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] = 2 * i
'''
USE = '''
a = qd.ndarray(qd.i32, 4)
double(a)
print("value", a[3])
'''


def run(command, cwd, **env):
    done = subprocess.run([str(x) for x in command], cwd=cwd, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout + done.stderr


def test_doctest(tmp_path, cache_dir):
    prompt = [">>> " + line if not line.startswith((" ", "def")) else "... " + line
              for line in (KERNEL + USE).splitlines() if line]
    at = next(k for k, line in enumerate(prompt) if line.startswith(">>> a = "))
    prompt.insert(at, "...")
    body = "\n".join(prompt) + "\nvalue 6\n"
    (tmp_path / "documented.py").write_text(f'def f():\n    """What it does.\n\n{re.sub("(?m)^", "    ", body)}    """\n')
    out = run([sys.executable, "-m", "doctest", "-v", "documented.py"], tmp_path)
    assert "Test passed" in out


def test_zipapp(tmp_path, cache_dir):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "kernels.py").write_text(KERNEL)
    (tmp_path / "app" / "__main__.py").write_text("from kernels import double, qd\n" + USE + KERNEL.replace("2 *", "3 *") + USE)
    run([sys.executable, "-m", "zipapp", "app", "-o", "app.pyz"], tmp_path)
    (tmp_path / "elsewhere").mkdir()
    assert run([sys.executable, "../app.pyz"], tmp_path / "elsewhere") == "value 6\nvalue 9\n"


@needs("PyInstaller")
def test_pyinstaller(tmp_path, cache_dir):
    """As docs/howto/containers.md says: the kernels' text goes along; LLVM runs in an interpreter, or the cache is full."""
    (tmp_path / "kernels.py").write_text(KERNEL)
    (tmp_path / "main.py").write_text("from kernels import double, qd\n" + USE)
    page = (ROOT / "docs" / "howto" / "containers.md").read_text(encoding="utf-8")
    assert "pyinstaller --collect-all ingot --add-data app/kernels.py:. app/main.py" in page
    left_out = [f"--exclude-module={name}" for name in (  # what this environment may have, and the program does not use
        "torch", "PIL", "pandas", "scipy", "pyarrow", "xarray", "polars", "ray", "dask", "distributed", "IPython", "pytest", "mypy")]
    run([sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR", "--collect-all", "ingot", *left_out,
         "--add-data", "kernels.py:.", "main.py"], tmp_path)
    program = tmp_path / "dist" / "main" / "main"
    refused = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert refused.returncode and "INGOT_HELPER_PYTHON" in refused.stderr
    assert run([program], tmp_path, INGOT_HELPER_PYTHON=sys.executable) == "value 6\n"
    assert run([program], tmp_path) == "value 6\n"  # what was compiled is on disk


@pytest.mark.skipif(sys.version_info < (3, 13), reason="the prompt with colours is Python's from 3.13 on")
def test_the_prompt_with_colours(tmp_path, cache_dir):
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "PYTHONSTARTUP": "", "COLUMNS": "200", "LINES": "50"}
    env.pop("PYTHON_BASIC_REPL", None)
    with subprocess.Popen([sys.executable, "-q"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=env) as process:
        os.close(theirs)
        out = b""
        lines = [*KERNEL.strip().splitlines(), "", "", *USE.strip().splitlines(), "exit()"]
        lines = [line.strip() if line.startswith("        ") else line for line in lines]  # it indents by itself
        lines = [line.strip() if line.startswith("    for") else line for line in lines]
        end = time.monotonic() + 120
        while time.monotonic() < end:
            ready, _, _ = select.select([ours], [], [], 0.5)
            if ready:
                try:
                    got = os.read(ours, 65536)
                except OSError:
                    break
                if not got:
                    break
                out += got
            elif lines:
                os.write(ours, (lines.pop(0) + "\r").encode())
        process.kill()
    os.close(ours)
    assert "value 6" in out.decode(errors="replace"), out
