"""What an installed wheel must do: compile and run a kernel, find it again in another process, have its
licence and stubs, and be imported in little time. Run with the interpreter that it is installed in
(cibuildwheel does, and tests/py/test_wheel.py)."""

import importlib.metadata
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import time
begin = time.perf_counter()
import ingot as qd
took = time.perf_counter() - begin
qd.init()

@qd.kernel
def total(n: qd.i32) -> qd.i64:
    s = qd.i64(0)
    for i in range(n):
        s += i
    return s

assert total(1000) == 499500
print(took, qd._core.counters()["image_compiles"])
"""


def run(folder):
    path = os.path.join(folder, "program.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    out = subprocess.run([sys.executable, path], cwd=folder, check=True, capture_output=True, text=True,
                         env={**os.environ, "INGOT_CACHE_DIR": os.path.join(folder, "cache")}).stdout
    took, compiles = out.split()
    return float(took), int(compiles)


def main():
    files = [str(f) for f in importlib.metadata.files("ingot")]
    for name in ("LICENSE", "py.typed", "__init__.pyi"):
        assert any(f.endswith("/" + name) for f in files), f"the wheel has no {name}"
    about = importlib.metadata.metadata("ingot")
    assert about["License-Expression"] == "Apache-2.0" and "](docs" not in about.get_payload()
    with tempfile.TemporaryDirectory() as folder:
        first, second = run(folder), run(folder)
    assert first[1] > 0 and second[1] == 0, (first, second)
    print(f"wheel: ok; imported in {1000 * min(first[0], second[0]):.1f} ms")


if __name__ == "__main__":
    main()
