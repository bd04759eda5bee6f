"""Runs the suites in order and ends with one line for each, and one for each thing that was
not run with the reason. Called by the Makefile with the venv's Python.

    run_tests.py [--jobs N] [--only checkers|asan|tsan|valgrind|python|version|random|lowered|paranoid|asan-py|tidy]

`version` is those of the Python tests whose outcome may depend on the version of Python,
`lowered` those that run on the interpreter, with the IR before any pass, `paranoid` all of
them with each launch lowered again and compared, `random` those that make up kernels and
changes between launches, `asan-py` those of guards, cache and arrays on an extension built
with ASan and UBSan.

Exit status 0 only when every suite that ran passed. INGOT_STRESS=1 asks for the full-size
suites, 0.1 for a tenth of the randomised ones; otherwise a twentieth of them with a fixed seed.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(sys.executable).parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
NOT_RUN = 77
STRESS = float(os.environ.get("INGOT_STRESS") or 0) >= 1

# Build directories below build/, each with its options.
BUILDS = {
    "check": ["-Dctests=false"],
    # -O1: building takes 79 s of processor time instead of 124, and the tests the same 50.
    "asan": ["-Dctests=true", "-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Doptimization=1"],
    "tsan": ["-Dctests=true", "-Db_sanitize=thread", "-Dbuildtype=debugoptimized"],
    "valgrind": ["-Dctests=true", "-Dbuildtype=debugoptimized"],
    "asan-py": ["-Dextension=true", "-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized",
                "-Dprefix=/", "-Dpython.purelibdir=/site", "-Dpython.platlibdir=/site"],
    "tsan-py": ["-Dextension=true", "-Db_sanitize=thread", "-Dbuildtype=debugoptimized",
                "-Dprefix=/", "-Dpython.purelibdir=/site", "-Dpython.platlibdir=/site"],
}
TITLES = {
    "asan": "C tests (ASan, UBSan, leaks)",
    "tsan": "C tests (TSan)",
    "valgrind": "C tests (valgrind)",
}


# What valgrind's own machine cannot run; ASan runs all of it.
VALGRIND_CANNOT = {
    "test_helper": "it starts processes that end by signals",
    "test_image": "it maps executable files over each other",
    "test_image_arm": "it maps executable files over each other",
    "test_image_fuzz": "it maps executable files over each other",
    "test_mock": "its device takes more addresses than valgrind has",
    "test_rt": "flush-to-zero is not emulated",
    "test_rt_fork": "threads of the parent are leaks in the child",
    "test_store": "it takes away file descriptors",
}

# Tests of the engine alone: what they find on one version of Python they find on each. All
# others face the interpreter (reading of code, guards, objects, processes).
ENGINE = """
    ad_inplace ad_linalg ad_random ad_rule algorithms apart atomic bounds conversions damage divmod early
    examples extreme faults field_layouts field_turn four_ways fused graph_model hold hold_beside hostile_entries
    image_tools inner_lanes kills lanes linalg lowered math overlap pairs parts private ragged_lanes random
    random_kernels random_nests random_vectors reduce remote remote_mutants repack rows same_result seal
    serial_axes short_loops simulations sparse stampede stride swap tally unroll vector_math weave
""".split()

# What takes 10 to 40 s each goes first, the longest before others: all cores are busy until the end.
LONG = """
    ad_random four_ways mutation language_types round_trips interop stubs fingerprint_edits ad_linalg
    field_layouts random_vectors filecache_bounds literals remedies ad_cases random_kernels
""".split()

# Python tests that reach every guard, the cache in memory and on disk, and arrays of all kinds.
MEMORY = """
    array compound dlpack gone hold launch members moved mutation never_stale paranoid
    random_mutations trace view
""".split()


# Python tests that make up kernels, and what changes between their launches.
RANDOM = "four_ways mutation random_kernels random_mutations random_nests random_vectors".split()

# Python tests of what several threads write at once.
THREADS = ["chrome", "profiler"]


class Report:
    """What ran, what it said, and what did not run."""

    def __init__(self):
        self.rows = []
        self.not_run = []

    def add(self, suite, ok, seconds, detail):
        self.rows.append((suite, ok, seconds, detail))

    def show(self):
        print("\n" + "=" * 78)
        for suite, ok, seconds, detail in self.rows:
            state = "passed" if ok else "FAILED"
            print(f"{suite:<28} {state}  {seconds:6.1f} s   {detail}")
        for line in dict.fromkeys(self.not_run):
            print(f"not run: {line}")
        return all(ok for _, ok, _, _ in self.rows)


def heading(text):
    print(f"== {text}", flush=True)


def environment(scratch):
    """The tests' environment: our tools first on PATH, never the user's cache."""
    env = dict(os.environ)
    env["PATH"] = f"{BIN}{os.pathsep}{env.get('PATH', '')}"
    env["INGOT_CACHE_DIR"] = str(scratch / "cache")
    env["INGOT_NOT_RUN_FILE"] = str(scratch / "not-run.txt")
    return env


def call(command, env, cwd=ROOT):
    """Runs, shows the output as it comes, and returns (status, output)."""
    lines = []
    with subprocess.Popen(
        [str(c) for c in command], cwd=cwd, env=env, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    return process.returncode, "".join(lines)


def quietly(command, env, cwd=ROOT):
    """Runs and shows the output only of a failure."""
    run = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=env, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    if run.returncode:
        print(run.stdout, flush=True)
    return run.returncode


# ---- suites ---------------------------------------------------------------------------


def build(name, env, jobs):
    """Brings build/<name> up to date, warnings being errors; False when it does not build."""
    where = ROOT / "build" / name
    mode = []
    if (where / "build.ninja").exists():
        mode = ["--reconfigure"]  # asks again for the list of files, which may have grown
    else:
        shutil.rmtree(where, ignore_errors=True)
    options = ["-Dextension=false", "-Dwerror=true", *BUILDS[name]]
    return (
        quietly([BIN / "meson", "setup", *mode, where, *options], env) == 0
        and quietly([BIN / "ninja", "-C", where, f"-j{jobs}"], env) == 0
    )


def run_checkers(report, env, jobs):
    heading("checkers: layers, lost errors, orders, sizes, rules, format, symbols, globals")
    start = time.monotonic()
    tools = ROOT / "tools"
    results = []
    checks = [("layers", []), ("swallow", []), ("order", []), ("size", []), ("rules", []), ("format", []), ("symbols", [])]
    if build("check", env, jobs):
        library = ROOT / "build" / "check" / "libingot_engine.a"
        checks.append(("globals", [library, *extension()]))
    else:
        results.append(("build with -Werror", 1))
    for name, arguments in checks:
        # From the tools folder, so that the working tree's ingot hides nothing installed.
        command = [sys.executable, tools / f"check_{name}.py", *arguments]
        status, output = call(command, env, cwd=tools)
        if status == NOT_RUN:
            report.not_run.append(output.strip().partition("not run: ")[2])
        else:
            results.append((name, status))
    bad = [name for name, status in results if status]
    detail = "failed: " + ", ".join(bad) if bad else f"{len(results)} checks"
    report.add("checkers", not bad, time.monotonic() - start, detail)


def extension():
    sys.path.insert(0, str(ROOT / "tools"))
    import check_symbols

    path = check_symbols.find_extension()
    return [path] if path else []


def run_c_tests(report, env, jobs, name):
    heading(TITLES[name])
    start = time.monotonic()
    detail = "did not build"
    ok = build(name, env, jobs)
    if ok:
        where = ROOT / "build" / name
        command = [BIN / "meson", "test", "-C", where, "--no-rebuild", "--print-errorlogs"]
        command += ["--num-processes", str(jobs)]
        if STRESS or name != "asan":
            command += ["--timeout-multiplier", "10"]
        if name == "tsan":
            command += ["--no-suite", "fork"]
            report.not_run.append("tests with fork (TSan loses track of threads after fork)")
        if name == "valgrind":
            command += ["--wrap", "valgrind -q --error-exitcode=9 --leak-check=full"]
            names = sorted(p.stem for p in (ROOT / "tests" / "c").glob("test_*.c"))
            command += [n for n in names if n not in VALGRIND_CANNOT]
            report.not_run += [f"{n} under valgrind ({why})" for n, why in VALGRIND_CANNOT.items()]
        status, output = call(command, env)
        ok = status == 0
        passed = re.search(r"^Ok:\s+(\d+)", output, re.MULTILINE)
        failed = re.findall(r"^(?:Fail|Timeout):\s+(\d+)", output, re.MULTILINE)
        bad = sum(int(n) for n in failed)
        detail = f"{passed[1] if passed else 0} programs passed, {bad} failed"
    report.add(TITLES[name], ok, time.monotonic() - start, detail)


def test_files(version):
    """The files of Python tests, or those of them that may depend on the version of Python."""
    files = sorted((ROOT / "tests" / "py").glob("test_*.py"))
    left_out = {f"test_{name}" for name in ENGINE} if version else set()
    strange = left_out - {path.stem for path in files}
    if strange:
        raise SystemExit(f"run_tests.py: ENGINE names what is not there: {strange}")
    return [path for path in files if path.stem not in left_out]


def turn(path):
    """When a file of Python tests has its turn: those of LONG first."""
    name = path.stem.removeprefix("test_")
    return LONG.index(name) if name in LONG else len(LONG)


def files_of(names):
    return [ROOT / "tests" / "py" / f"test_{name}.py" for name in names]


def shard(number, env, scratch, files):
    """A pytest process that takes files from those that are left (conftest.py)."""
    env = dict(env)
    env["INGOT_TEST_CLAIMS"] = str(scratch / "claims")
    env["INGOT_CACHE_DIR"] = str(scratch / f"cache-{number}")
    # From tests/py, so that `import ingot` takes the installed package.
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-v"]
    command += ["--no-header", "--color=no", "-o", "console_output_style=classic"]
    command += ["--rootdir", ROOT, *files]
    return subprocess.Popen(
        [str(c) for c in command], cwd=ROOT / "tests" / "py", env=env, text=True,
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def follow(process, tail):
    """Shows a shard's line for each file as it comes; from the first heading after them on
    (failures, warnings, counts) the lines are kept for the end."""
    for line in process.stdout:
        if tail or (line.startswith("=") and "test session starts" not in line):
            tail.append(line)
        elif line.strip() and not line.startswith(("=", "collect")):
            print(line, end="", flush=True)
    process.wait()


def add_up(lines):
    """The sum of lines such as `== 1 failed, 20 passed in 3.2s ==`."""
    counts = {}
    for line in lines:
        for number, what in re.findall(r"(\d+) ([a-z]+)", line.rpartition(" in ")[0]):
            what = what.removesuffix("s")
            counts[what] = counts.get(what, 0) + int(number)
    return ", ".join(f"{n} {what}" for what, n in counts.items()) or "no summary"


def run_python(report, env, jobs, version=False, title="Python tests", select=(), files=None):
    title += " (version)" if version else ""
    heading(f"{title}, {jobs} at a time" + (", full size" if STRESS else ""))
    files = [*sorted(files or test_files(version), key=turn), *select]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ingot-shards-") as folder:
        scratch = pathlib.Path(folder)
        (scratch / "claims").mkdir()
        shards = [shard(k, env, scratch, files) for k in range(jobs)]
        tails = [[] for _ in shards]
        readers = [threading.Thread(target=follow, args=a) for a in zip(shards, tails)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        for tail in tails:
            print("".join(tail), end="", flush=True)
    ok = all(s.returncode == 0 for s in shards)
    detail = add_up([tail[-1] for tail in tails if tail])
    died = [str(s.returncode) for s, tail in zip(shards, tails) if not tail]
    detail += f"; ended early with status {', '.join(died)}" if died else ""
    report.add(title, ok, time.monotonic() - start, detail)
    if version:
        here = "%d.%d" % sys.version_info[:2]
        report.not_run.append(f"{len(ENGINE)} files of tests of the engine on {here} (make pythons)")


def run_random(report, env, jobs):
    run_python(report, env, jobs, title="Python tests, random", files=files_of(RANDOM))


def run_lowered(report, env, jobs):
    env = {**env, "INGOT_INTERP_PASSES": "0"}
    select = ["-k", "interp", "-m", "not after_passes"]
    run_python(report, env, jobs, title="Python tests as lowered", select=select)


def run_paranoid(report, env, jobs):
    run_python(report, {**env, "INGOT_PARANOID": "1"}, jobs, title="Python tests, paranoid")


def preloaded(env, site, name="asan"):
    """The environment for an uninstrumented Python that imports the package in `site`, which is;
    None without GCC's library. Python never frees all that it has, so leaks are not looked for;
    with malloc, each Python object is one that ASan knows."""
    compiler = shutil.which("gcc", path=env["PATH"])
    if compiler is None:
        return None
    command = [compiler, f"-print-file-name=lib{name}.so"]
    library = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(library):
        return None
    return {**env, "LD_PRELOAD": library, "PYTHONPATH": str(site), "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def run_sanitized(report, env, jobs, name, title, files, select=()):
    where = ROOT / "build" / f"{name}-py"
    with_library = preloaded(env, where / "root" / "site", name)
    if with_library is None:
        report.not_run.append(f"{title} (needs gcc with its lib{name}.so)")
        return
    start = time.monotonic()
    install = [BIN / "meson", "install", "-C", where, "--no-rebuild", "--destdir", where / "root"]
    if build(f"{name}-py", env, jobs) and quietly(install, env) == 0:
        run_python(report, with_library, jobs, title=title, files=files_of(files), select=select)
    else:
        report.add(title, False, time.monotonic() - start, "did not build")


def run_asan_python(report, env, jobs):
    run_sanitized(report, env, jobs, "asan", "Python tests (ASan, UBSan)", MEMORY)


def run_tsan_python(report, env, jobs):
    """Profiler and trace, which threads of Python and of the pool write to; a race fails its process."""
    run_sanitized(report, env, jobs, "tsan", "Python tests (TSan)", THREADS, ["-k", "not share_a_file"])


def run_tidy(report, env, jobs):
    heading("tidy: format, clang-tidy, cppcheck")
    start = time.monotonic()
    status, output = call([sys.executable, ROOT / "tools" / "check_format.py"], env)
    if status == NOT_RUN:
        report.not_run.append(output.strip().partition("not run: ")[2])
    else:
        report.add("format", status == 0, time.monotonic() - start, "clang-format")
    sources = sorted(
        p for p in (ROOT / "src").rglob("*.c") if p.relative_to(ROOT).parts[1] != "py"
    )
    if shutil.which("cppcheck"):
        start = time.monotonic()
        command = ["cppcheck", "--quiet", "--std=c11", "--error-exitcode=1", f"-j{jobs}"]
        command += ["--enable=warning,portability", "--inline-suppr", f"-I{ROOT / 'src'}"]
        command += ["--suppress=missingIncludeSystem", *sources]
        report.add("cppcheck", call(command, env)[0] == 0, time.monotonic() - start, "src")
    else:
        report.not_run.append("cppcheck (not installed)")
    if shutil.which("clang-tidy") and build("valgrind", env, jobs):
        start = time.monotonic()
        command = ["clang-tidy", "-p", ROOT / "build" / "valgrind", "--quiet", *sources]
        status = call(command, env)[0]
        report.add("clang-tidy", status == 0, time.monotonic() - start, "src")
    else:
        report.not_run.append("clang-tidy (not installed)")


def run_valgrind(report, env, jobs):
    if shutil.which("valgrind") is None:
        report.not_run.append("valgrind (not installed)")
    else:
        run_c_tests(report, env, jobs, "valgrind")


def read_notes(path):
    """What tests said that they did not run; `...: 2 test(s)` of each process added up."""
    counts = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        what, number = re.fullmatch(r"(.*?)(?:: (\d+) test\(s\))?", line).groups()
        counts[what] = counts.get(what, 0) + int(number or 0)
    return [f"{what}: {n} test(s)" if n else what for what, n in counts.items()]


def note_optional(report):
    """Adds what one run by its nature leaves out."""
    here = "%d.%d" % sys.version_info[:2]
    others = ", ".join(v for v in PYTHONS if v != here)
    report.not_run.append(f"Python {others} (this run is {here}; make test PYTHON=... picks one)")
    if not STRESS:
        report.not_run.append("TSan, valgrind, full-size randomised suites, tests on the IR as "
                              "lowered, in paranoid mode and on an extension with ASan (make stress)")


SUITES = {
    "checkers": run_checkers,
    "asan": lambda r, e, j: run_c_tests(r, e, j, "asan"),
    "tsan": lambda r, e, j: run_c_tests(r, e, j, "tsan"),
    "valgrind": run_valgrind,
    "python": run_python,
    "version": lambda r, e, j: run_python(r, e, j, version=True),
    "random": run_random,
    "lowered": run_lowered,
    "paranoid": run_paranoid,
    "asan-py": run_asan_python,
    "tsan-py": run_tsan_python,
    "tidy": run_tidy,
}


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    ap.add_argument("--only", choices=sorted(SUITES), action="append")
    args = ap.parse_args()
    suites = args.only or ["checkers", "asan", "python"]
    if STRESS and not args.only:
        suites[2:2] = ["tsan", "valgrind"]
        suites += ["lowered", "paranoid", "asan-py", "tsan-py"]
    report = Report()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ingot-test-") as folder:
        scratch = pathlib.Path(folder)
        env = environment(scratch)
        for suite in suites:
            SUITES[suite](report, env, args.jobs)
        report.not_run += read_notes(scratch / "not-run.txt")
        if not args.only:
            note_optional(report)
    return 0 if report.show() else 1


if __name__ == "__main__":
    sys.exit(main())
