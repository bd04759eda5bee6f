"""What continuous integration runs: `make test` on the default Python, with the optional
packages that tests use, then the Python tests on every other interpreter from 3.10 on that
this machine has, each in a virtual environment of its own below build/.

    run_ci.py [--jobs N] [--full | --random]

--full: every Python test on the others as well. --random: on the others alone, and of their tests
those that make up kernels and changes between launches, as many as INGOT_STRESS says.

What cannot be had here (a package, a server, an interpreter without headers) is listed as
"not run" with the reason. What can be built and tested must pass: exit status 0 only then.
Writes below this directory, and lets pip and apt do what they do elsewhere.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
OLDEST = (3, 10)

# Optional packages of the tests, and what must run for each to be of use.
EXTRAS = {
    "torch==2.13.0": ["-c", "import torch"],
    "redis": ["-c", "import redis"],
    "attrs": ["-c", "import attr"],
    "pydantic": ["-c", "import pydantic"],
    "pandas": ["-c", "import pandas"],
    "scipy": ["-c", "import scipy.sparse"],
    "xarray": ["-c", "import xarray"],
    "pyarrow": ["-c", "import pyarrow"],
    "joblib": ["-c", "import joblib"],
    "cloudpickle": ["-c", "import cloudpickle"],
    "nbclient": ["-c", "import nbclient, nbformat"],
    "ipykernel": ["-c", "import ipykernel"],
    "distributed": ["-c", "import distributed"],
    "mpi4py": ["-c", "from mpi4py import MPI"],
    "mypy": ["-m", "mypy", "--version"],
    "pyright": ["-m", "pyright", "--version"],
}
# Debian packages, and the program of each.
PROGRAMS = {"redis-server": "redis-server", "openmpi-bin": "mpirun", "graphviz": "dot"}

PROBE = """
import importlib.util, json, os, sys, sysconfig
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
print(json.dumps({
    "version": sys.version_info[:3], "level": sys.version_info.releaselevel,
    "name": sys.implementation.name, "threads": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "headers": os.path.exists(header),
    "venv": bool(importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")),
}))
"""


def say(text):
    print(f"== {text}", flush=True)


def run(command, env=None):
    """Shows the output as it comes; (status, lines)."""
    lines = []
    with subprocess.Popen(
        [str(c) for c in command], cwd=ROOT, env=env, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            print(line, end="", flush=True)
    return process.returncode, lines


def quietly(command, seconds=600):
    """(status, the last line of what it said)."""
    try:
        done = subprocess.run(
            [str(c) for c in command], cwd=ROOT, text=True, errors="replace", timeout=seconds,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return 1, str(e).splitlines()[0]
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return done.returncode, lines[-1].strip() if lines else "no output"


# ---- what the tests of the default Python can use --------------------------------------------


def install_programs(not_run):
    for package, program in PROGRAMS.items():
        if shutil.which(program):
            continue
        say(f"apt: {package}")
        if not shutil.which("apt-get"):
            not_run.append(f"{package} (no apt-get here to install it)")
            continue
        install = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q",
                   "--no-install-recommends", package]
        if quietly(install)[0]:
            quietly(["apt-get", "update", "-q"])
            status, why = quietly(install)
            if status:
                not_run.append(f"{package} (apt-get: {why})")


def install_extras(not_run):
    python = VENV / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    say(f"pip: {', '.join(EXTRAS)}")
    together = quietly([*pip, *EXTRAS], 1800)[0] == 0
    for package, use in EXTRAS.items():
        status, why = (0, "") if together else quietly([*pip, package], 900)
        if status:
            not_run.append(f"{package} (pip: {why})")
            continue
        status, why = quietly([python, *use])
        if status:
            not_run.append(f"{package} (installed, does not start: {why})")
            quietly([python, "-m", "pip", "uninstall", "--yes", re.split("[=<>]", package)[0]])


# ---- other interpreters ------------------------------------------------------------------------


def candidates():
    """Programs that may be interpreters: pythonX.Y on PATH, and those of pyenv."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield from sorted(pathlib.Path(folder).glob("python3.*"))
    root = os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv"
    yield from sorted(pathlib.Path(root).glob("versions/*/bin/python3.*"))


def probe(path):
    """What an interpreter says about itself, or None."""
    try:
        done = subprocess.run([str(path), "-I", "-c", PROBE], capture_output=True, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def tag(about):
    return "%d.%d" % tuple(about["version"][:2]) + ("t" if about["threads"] else "")


def lacks(about):
    """Why these tests cannot run on an interpreter, or None."""
    if about["level"] != "final":
        return "not released yet"
    if not about["headers"]:
        return "no C headers"
    return None if about["venv"] else "no venv module with pip"


def interpreters(not_run):
    """{tag: path} of one interpreter for each version but this one, the newest of each; of
    equals the first."""
    best = {}
    for path in candidates():
        about = probe(path) if re.fullmatch(r"python3\.\d+t?", path.name) else None
        if not about or about["name"] != "cpython" or tuple(about["version"][:2]) < OLDEST:
            continue
        key = tag(about)
        if key not in best or rank(about) > rank(best[key][1]):
            best[key] = (path, about)
    best.pop(tag(probe(sys.executable)), None)
    found = {}
    for key in sorted(best, key=lambda k: (best[k][1]["version"], k)):
        why = lacks(best[key][1])
        if why:
            not_run.append(f"Python {key} ({why})")
        else:
            found[key] = best[key][0]
    return found


def rank(about):
    return lacks(about) is None, about["version"]


# ---- the runs ----------------------------------------------------------------------------------


def closing(lines):
    """What tools/run_tests.py ends with: a line for each suite, and what was not run."""
    rule = [i for i, line in enumerate(lines) if line == "=" * 78]
    return lines[rule[-1] + 1 :] if rule else lines[-1:]


def test_default(jobs, env, rows):
    status, lines = run(["make", "--no-print-directory", "test", f"PYTHON={sys.executable}",
                         f"JOBS={jobs}"], env)
    rows.append((tag(probe(sys.executable)), status, closing(lines)))


def test_other(name, path, args, env, rows, not_run):
    venv = ROOT / "build" / f"venv-{name}"
    make = ["make", "--no-print-directory", f"PYTHON={path}", f"VENV={venv.relative_to(ROOT)}"]
    say(f"Python {name}")
    status, why = quietly([*make, "packages"], 900)
    if status:
        not_run.append(f"Python {name} (its packages cannot be installed: {why})")
        return
    status, lines = run([*make, "setup"], env)
    if status == 0:
        command = [venv / "bin" / "python", "tools/run_tests.py", "--jobs", args.jobs]
        command += ["--only", "python" if args.full else "random" if args.random else "version"]
        status, lines = run(command, env)
    rows.append((name, status, closing(lines)))


def test_refusal(name, path, rows, not_run):
    """A free-threaded build: the extension builds, and importing it is refused."""
    venv = ROOT / "build" / f"venv-{name}"
    make = ["make", "--no-print-directory", f"PYTHON={path}", f"VENV={venv.relative_to(ROOT)}"]
    make += ["TOOLS=meson meson-python ninja", "EXTRAS=pip"]
    say(f"Python {name}")
    status, why = quietly([*make, "packages"], 900)
    if status:
        not_run.append(f"Python {name} (its packages cannot be installed: {why})")
        return
    status, lines = run([*make, "setup"])
    if status == 0:
        command = [str(venv / "bin" / "python"), "-c", "import ingot"]
        done = subprocess.run(command, cwd=venv, capture_output=True, text=True)
        refused = done.returncode == 1 and "free-threaded build" in done.stderr
        status, lines = int(not refused), done.stderr.splitlines()[-2:]
    rows.append((name, status, lines[-2:]))


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    ap.add_argument("--full", action="store_true")
    ap.add_argument("--random", action="store_true")
    args = ap.parse_args()
    start, rows, not_run = time.monotonic(), [], []
    if not args.random:
        say(f"Python {tag(probe(sys.executable))}")
        if run(["make", "--no-print-directory", "setup", f"PYTHON={sys.executable}"])[0]:
            return 1
        install_programs(not_run)
        install_extras(not_run)
    with tempfile.TemporaryDirectory(prefix="ingot-ci-") as scratch:
        env = {**os.environ, "INGOT_CACHE_DIR": os.path.join(scratch, "cache")}
        if not args.random:
            test_default(args.jobs, env, rows)
        for name, path in interpreters(not_run).items():
            if name.endswith("t"):
                test_refusal(name, path, rows, not_run)
            else:
                test_other(name, path, args, env, rows, not_run)
    print("\n" + "#" * 78)
    for name, status, lines in rows:
        print(f"Python {name}: {'FAILED' if status else 'passed'}")
        print("".join(f"    {line}\n" for line in lines), end="")
    for line in not_run:
        print(f"not run: {line}")
    print(f"in {(time.monotonic() - start) / 60:.1f} minutes")
    return 1 if any(status for _, status, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
