"""What the benchmarks share: timing, hand-written C as a peer, tables and JSON."""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

# No server of compilers: each process pays for its own. bench/start.py measures one.
os.environ.setdefault("INGOT_SERVER", "0")

HERE = pathlib.Path(__file__).resolve().parent
C_FLAGS = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]


def leave_path():
    """This folder is no longer looked in for modules: `import genesis` is the package, not genesis.py."""
    sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]


def pyplot():
    """matplotlib's, drawing into files; None and a word where it is missing."""
    try:
        import matplotlib
    except ImportError:
        print("not drawn: matplotlib is missing", file=sys.stderr)
        return None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def best(call, repeat, rounds=1):
    """Shortest time of one call in seconds, over `repeat` rounds of `rounds` calls."""
    shortest = float("inf")
    span = range(rounds)
    for _ in range(repeat):
        before = time.perf_counter()
        for _ in span:
            call()
        shortest = min(shortest, (time.perf_counter() - before) / rounds)
    return shortest


def interleaved(calls, repeat):
    """Best time of each named call, taking turns, so that a disturbance meets all alike."""
    shortest = dict.fromkeys(calls, float("inf"))
    for _ in range(repeat):
        for name, call in calls.items():
            shortest[name] = min(shortest[name], best(call, 1))
    return shortest


def compile_c(text, threads=2):
    """A loaded library made from C, or None without a compiler. On more than one thread with OpenMP, else
    without: gcc forgets `restrict` in the bodies that it takes out of functions for OpenMP."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        source, library = pathlib.Path(folder, "peer.c"), pathlib.Path(folder, "peer.so")
        source.write_text(text)
        command = [*compiler.split(), *C_FLAGS, *["-fopenmp"] * (threads > 1), "-o", str(library), str(source), "-lm"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            print(f"not run: C peer ({compiler} failed: {run.stderr.strip()[:200]})")
            return None
        return ctypes.CDLL(str(library))


class Peer:
    """An engine in a process of its own, asked line by line; its answers are JSON."""

    def __init__(self, name, command, env, errors=subprocess.DEVNULL):
        self.name, self.process = name, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                         stderr=errors, text=True, env=env)

    def ask(self, line):
        """The answer to a line; None when the engine does not have the kernel or is gone."""
        if self.process is None:
            return None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            self.lost(line)
            self.close()
            return None

    def lost(self, line):
        """Told once, when it is gone."""
        print(f"not run from here on: {self.name}", file=sys.stderr)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


# What a peer's interpreter installs, and the module that shows that it is there.
VENVS = {"quadrants": ("quadrants", "quadrants numpy"), "taichi": ("taichi", "taichi numpy"),
         "numba": ("numba", "numba numpy")}


def venv(name):
    """The interpreter of a peer's own virtual environment below the user's cache folder, made
    from PyPI at first use, or None (with a line that says so) when that cannot be."""
    module, packages = VENVS[name]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "ingot-bench" / name
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            command = [str(python), "-m", "pip", "install", "-q", *packages.split()]
            subprocess.run(command, check=True)
        subprocess.run([str(python), "-c", f"import {module}"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"not run: {name} ({e})", file=sys.stderr)
        return None
    return str(python)


def pointer(array):
    """Address of a NumPy array's data for a C function."""
    return ctypes.c_void_p(array.ctypes.data)


def arguments(doc, **extra):
    ap = argparse.ArgumentParser(description=doc)
    ap.add_argument("--json", type=pathlib.Path, help="also write the rows there")
    ap.add_argument("--repeat", type=int, default=15)
    for name, options in extra.items():
        ap.add_argument("--" + name.replace("_", "-"), **options)
    return ap.parse_args()


def show(title, columns, rows):
    """Rows are dicts; columns are (key, heading, format)."""
    cells = [[h for _, h, _ in columns]]
    for row in rows:
        cells.append([
            "-" if row.get(key) is None else format(row[key], how) for key, _, how in columns
        ])
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    print(title)
    for line in cells:
        first, *rest = (f"{c:<{w}}" if k == 0 else f"{c:>{w}}"
                        for k, (c, w) in enumerate(zip(line, widths)))
        print("  " + "  ".join([first, *rest]))


def machine():
    return {
        "cpu": cpu_name(), "cores": os.cpu_count(), "system": platform.platform(),
        "python": platform.python_version(),
    }


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def write(path, name, rows):
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"bench": name, "machine": machine(), "rows": rows}, indent=1) + "\n")
    print(f"wrote {path}", file=sys.stderr)
