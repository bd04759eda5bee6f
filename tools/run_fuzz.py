"""Builds the harnesses of tests/fuzz with clang and runs each under libFuzzer, ASan and UBSan.

    run_fuzz.py [--jobs N] [name ...]     FUZZ_SECONDS each (600); exit status 1 after a finding

Seeds are entries that the installed package makes now (tests/fuzz/seeds.py); what libFuzzer adds
to them is kept in build/fuzz-corpus for the next run, and findings in build/fuzz-found.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(sys.executable).parent
BUILD, CORPUS, FOUND = (ROOT / "build" / n for n in ("fuzz", "fuzz-corpus", "fuzz-found"))
OPTIONS = ["-Dfuzz=true", "-Dctests=false", "-Dextension=false", "-Dbuildtype=debugoptimized",
           "-Db_sanitize=address,undefined", "-Dc_args=-fsanitize=fuzzer-no-link"]
TRY = "int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return p + n == 0; }"


def missing():
    """What is not installed, or None."""
    if not shutil.which("clang"):
        return "clang (with its libFuzzer: on Debian the packages clang and libclang-rt-dev)"
    command = ["clang", "-x", "c", "-", "-fsanitize=fuzzer,address", "-o", os.devnull]
    if subprocess.run(command, input=TRY, text=True, capture_output=True).returncode:
        return "clang's libFuzzer (on Debian the package libclang-rt-dev or libclang-rt-N-dev)"
    return None


def build(jobs):
    env = {**os.environ, "CC": "clang", "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    mode = ["--reconfigure"] if (BUILD / "build.ninja").exists() else []
    for command in (["meson", "setup", *mode, BUILD, *OPTIONS], ["ninja", "-C", BUILD, f"-j{jobs}"]):
        done = subprocess.run([BIN / command[0], *command[1:]], env=env, cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(done.stdout)


def run(name, seconds):
    """(name, whether nothing was found, what it says)"""
    for folder in (CORPUS / name, FOUND):
        folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    command = [BUILD / "tests" / "fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", "-verbosity=0",
               "-print_final_stats=1", "-rss_limit_mb=4096", f"-artifact_prefix={FOUND}/{name}-",
               CORPUS / name, CORPUS / "seeds" / name]
    done = subprocess.run(command, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stdout)
    return name, done.returncode == 0, f"{runs[1]} runs" if runs and not done.returncode else done.stdout


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    ap.add_argument("names", nargs="*")
    args = ap.parse_args()
    seconds = int(os.environ.get("FUZZ_SECONDS") or 600)
    if lacking := missing():
        print(f"not run: the fuzzers need {lacking}")
        return 77
    build(args.jobs)
    shutil.rmtree(CORPUS / "seeds", ignore_errors=True)
    subprocess.run([sys.executable, ROOT / "tests" / "fuzz" / "seeds.py", CORPUS / "seeds"], check=True)
    names = args.names or sorted(p.stem[5:] for p in (ROOT / "tests" / "fuzz").glob("fuzz_*.c"))
    print(f"{len(names)} harnesses, {seconds} s each, {args.jobs} at a time", flush=True)
    bad = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, ok, text in pool.map(lambda n: run(n, seconds), names):
            print(f"{name:<10} {'passed' if ok else 'FOUND'}  {text}", flush=True)
            bad += [] if ok else [name]
    print(f"findings in {FOUND}: {', '.join(bad)}" if bad else "no finding")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
