"""Public example programs of Taichi and Quadrants on Ingot, next to the original.

    examples.py FOLDER [PROGRAM...] [--reference P] [--python P] [--out FOLDER] [--frames N | --tapes N]
    examples.py FOLDER --table [--markdown FILE]

FOLDER holds the programs, as `python/taichi/examples` of Taichi's repository does; nothing of it
is part of this one. Each runs for N frames without a window (bench/_headless.py), unmodified:
through `python -m ingot.compat --taichi` by P of --python, and by P of --reference, which has
Taichi. The table says whether what is drawn is the same: the largest difference in the first and
in the last frame, relative to the largest number, or the share of numbers that differ by more
than a thousandth. Programs that draw random numbers differ there; then means are compared. Times of a frame are CPU time,
the least of all but the first two. With --tapes the losses of the first N gradient descents are compared, and times are of
a tape. PROGRAM:WORD:WORD gets words on its command line.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def stem(folder, program):
    path, *words = program.split(":")
    return " ".join([".".join(pathlib.Path(path).relative_to(folder).with_suffix("").parts), *words])


def run(given, program, engine):
    """One program on one engine; a result that is there is kept."""
    name = stem(given.folder, program)
    path, *words = program.split(":")
    out = given.out / f"{name}.{engine}"
    if out.with_name(out.name + ".json").exists() and not given.again:
        return
    compat = ["-m", "ingot.compat", f"--{given.module}"] if engine == "ingot" else []
    python = given.python if engine == "ingot" else given.reference
    command = [python, *compat, str(HERE / "_headless.py"), given.module, path]
    command += [str(out) + ".npz", *words, "--frames", str(given.frames), "--tapes", str(given.tapes)]
    line = {"program": name}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=given.timeout, cwd=pathlib.Path(path).parent)
        texts = [t for t in done.stdout.splitlines() if t.startswith('{"program"')]
        if done.returncode or not texts:
            said = (done.stderr.strip() or f"status {done.returncode}").splitlines()
            errors = [t for t in said if "Error" in t]
            line["error"] = re.sub(r"/\S*/", "", (errors or said)[-1])[:160]
        else:
            line |= json.loads(texts[-1])
        pathlib.Path(str(out) + ".log").write_text(done.stdout + done.stderr)
    except subprocess.TimeoutExpired:
        line["error"] = f"more than {given.timeout} s"
    pathlib.Path(str(out) + ".json").write_text(json.dumps(line, indent=1))
    print(engine, name, line.get("error", "ran"), flush=True)


def uses_random(program):
    text = pathlib.Path(program.split(":")[0]).read_text()
    return any(word in text for word in ("random", "randn(", "time_ns("))


def compare(ours, theirs, random):
    """In words: equal, how much they differ, or how many of the numbers do."""
    if sorted(ours) != sorted(theirs):
        return "other pictures"
    worst = mean = share = ordered = 0.0
    for key, b in theirs.items():
        a = ours[key]
        if a.shape != b.shape:
            return "other shapes"
        if not b.size:
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = max(float(np.max(np.abs(b))), 1e-6)
        off = np.abs(a - b) / scale
        worst = max(worst, float(np.max(off)))
        mean = max(mean, abs(float(a.mean() - b.mean())) / scale)
        share = max(share, float(np.mean(off > 1e-3)))
        ordered = max(ordered, float(np.max(np.abs(np.sort(a, None) - np.sort(b, None)))) / scale)
    if worst == 0.0:
        return "equal"
    if worst <= 1e-3:
        return f"{worst:.0e}"
    if random:
        return f"random or by the clock; means {mean:.0e}"
    if ordered <= 1e-6:
        return "equal, in another order"
    return f"{100 * share:.2g} % of the numbers differ" if share <= 0.01 else f"{worst:.0e}"


def load(given, name, engine):
    file = given.out / f"{name}.{engine}.json"
    if not file.exists():
        return None, None
    line = json.loads(file.read_text())
    states = given.out / f"{name}.{engine}.npz"
    return line, dict(np.load(states)) if "error" not in line and states.exists() else None


def row(given, program):
    name = stem(given.folder, program)
    mine, ours = load(given, name, "ingot")
    other, theirs = load(given, name, "reference")
    if mine is None:
        return None
    runs = "no: " + re.sub(r"/\S*/|ingot\.", "", mine["error"]) if "error" in mine else "yes"
    picture = speed = ""
    if other and "error" in other:
        picture = "the reference fails"
    elif ours is not None and theirs is not None:
        picture = compare(ours, theirs, uses_random(program)) if theirs else "draws nothing"
        if "frame_cpu_s" in mine and "frame_cpu_s" in other:
            speed = f"{other['frame_cpu_s'] / max(mine['frame_cpu_s'], 1e-6):.2f}"
    return name, runs, picture, speed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--module", choices=["taichi", "quadrants"], default="taichi")
    parser.add_argument("--reference")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/examples"))
    parser.add_argument("--frames", type=int, default=6)
    parser.add_argument("--tapes", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    given = parser.parse_args()
    given.folder, given.out = given.folder.resolve(), given.out.resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    programs = [os.path.abspath(p) for p in given.programs] or sorted(map(str, given.folder.rglob("*.py")))
    if given.table:
        rows = [("program", "runs", "picture", "speed"), ("---",) * 4]
        rows += [r for r in (row(given, p) for p in programs) if r]
        text = "".join("| " + " | ".join(r) + " |\n" for r in rows)
        print(text)
        if given.markdown:
            given.markdown.write_text(text)
        return
    for program in programs:
        run(given, program, "ingot")
        if given.reference:
            run(given, program, "reference")


if __name__ == "__main__":
    main()
