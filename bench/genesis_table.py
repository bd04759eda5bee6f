"""Genesis on Ingot and on Quadrants: the scenes of bench/genesis_scenes.py on both, compared.

    genesis_table.py run ENGINE [SCENE...] [--python P] [--out FOLDER] [--perturb EPS]
    genesis_table.py table [--out FOLDER] [--markdown FILE]

`run` steps scenes on ENGINE (`ingot` or `quadrants`) with an interpreter P that has
genesis-world, torch, quadrants and ingot, and keeps states and times in FOLDER; scenes that are
there already are not run again (`--again` does). A process that dies costs its scene alone.
`table` compares: for each state the largest difference, relative to the largest number in it (at
least 0.1), and the step time as CPU time, the best of nine stretches of ten steps. With runs
perturbed by EPS there, of Quadrants or else of Ingot, it also says how far those are from the
unperturbed of the same engine: what differs less than that is the scene's own chaos, not the engine. The same of the totals of each body:
centre, lowest point (how deep it is in the floor), mean velocity, mean square of velocities (momentum
and energy). Times of runs that waited for the machine more than they had it are left out.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

import genesis_scenes

HERE = pathlib.Path(__file__).resolve().parent
FLOOR = 0.1
CLOSE = 1e-4
STARVED = 1.5


def result_file(folder, name, engine, eps):
    return folder / (f"{name}.{engine}" + (f".{eps:g}" if eps else "") + ".json")


def run(given):
    folder = given.out
    folder.mkdir(parents=True, exist_ok=True)
    names = given.scenes or list(genesis_scenes.SCENES)
    left = [n for n in names if given.again or not result_file(folder, n, given.engine, given.perturb).exists()]
    command = [given.python, *(["-m", "ingot.compat"] if given.engine == "ingot" else [])]
    while left:
        tail = [str(HERE / "genesis_scenes.py"), str(folder), *left, "--perturb", str(given.perturb)]
        child = subprocess.Popen([*command, *tail], stdout=subprocess.PIPE, text=True)
        done = []
        for text in child.stdout:
            if not text.startswith('{"scene"'):
                continue
            line = json.loads(text)
            done.append(line["scene"])
            result_file(folder, line["scene"], given.engine, given.perturb).write_text(json.dumps(line, indent=1))
            print(line["scene"], line.get("error", f"{line.get('step_cpu_s', 0) * 1e3:.3f} ms a step"), flush=True)
        if child.wait() and len(done) < len(left):
            lost = left[len(done)]
            line = {"scene": lost, "error": f"the process died with status {child.returncode}"}
            result_file(folder, lost, given.engine, given.perturb).write_text(json.dumps(line, indent=1))
            print(lost, line["error"], flush=True)
            done.append(lost)
        left = left[len(done) :]


def load(folder, name, engine, eps=0.0):
    file = result_file(folder, name, engine, eps)
    if not file.exists():
        return None, None
    line = json.loads(file.read_text())
    states = file.with_suffix(".npz")
    return line, dict(np.load(states)) if "error" not in line and states.exists() else None


def difference(ours, theirs):
    """The largest relative difference over all states, and where it is."""
    worst, where = 0.0, "-"
    if ours.keys() != theirs.keys():
        return float("inf"), "other states"
    for key, b in theirs.items():
        a = ours[key]
        if a.shape != b.shape:
            return float("inf"), f"{key}: shapes {a.shape} and {b.shape}"
        if not b.size:
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):  # infinities of both
            off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        value = float(np.max(off) / max(FLOOR, np.max(np.abs(b[np.isfinite(b)]), initial=0.0)))
        if not value <= worst:
            worst, where = value, key
    return worst, where


def totals(states):
    """What chaos leaves alone: of all points of a body the centre, the lowest, momentum and energy by mass."""
    found = {}
    for key, array in states.items():
        name = key.rsplit(".", 1)[-1]
        if array.ndim < 2 or not array.size:
            continue
        points = array.reshape(-1, array.shape[-1])
        if name in ("pos", "get_particles_pos", "get_links_pos"):
            found[key + " centre"] = points.mean(axis=0)
            found[key + " lowest"] = points[:, 2].min(keepdims=True)
        elif name in ("vel", "get_particles_vel"):
            found[key + " momentum"] = points.mean(axis=0)
            found[key + " energy"] = (points**2).sum(axis=1).mean(keepdims=True) / 2
    return found


def decimals(ours, theirs):
    """How many getters agree to four decimals."""
    good = [k for k in theirs if np.allclose(ours[k], theirs[k], rtol=1e-6, atol=5e-5, equal_nan=True)]
    names = {k.rsplit(".", 1)[0] for k in theirs}
    print(f"accessors: {len(good)} of {len(theirs)} arrays of {len(names)} reads agree to 4 decimals;")
    print("  others:", *sorted(set(theirs) - set(good)))


def starved(line):
    """Did others take the machine meanwhile? Genesis steps on one thread; such times say nothing."""
    return line["step_wall_s"] > STARVED * line["step_cpu_s"]


def broken(ours, theirs):
    """Did the scene itself end in NaN? Then equal states say nothing."""
    return any(np.isnan(ours[key]).any() and np.isnan(theirs[key]).any() for key in theirs.keys() & ours.keys())


def beside(ours, moved):
    """Ingot's difference and, where it was run, that of the perturbed run."""
    return f"{ours:.1e}" + (f" ({moved:.1e})" if moved is not None else "")


def row(folder, name, eps):
    mine, ours = load(folder, name, "ingot")
    other, theirs = load(folder, name, "quadrants")
    kind = genesis_scenes.SCENES[name][1]
    if mine is None:
        return (name, kind, "not run", "", "", "", "")
    if ours is None:
        return (name, kind, "no: " + mine["error"].splitlines()[0][:60], "", "", "", "")
    if theirs is None:
        why = "" if other is None else "Quadrants: " + other["error"].splitlines()[0][:60]
        return (name, kind, "yes", why, "", "", "")
    worst, where = difference(ours, theirs)
    moved, still = load(folder, name, "quadrants", eps)[1], theirs
    if not moved:
        moved, still = load(folder, name, "ingot", eps)[1], ours
    spread = beside(worst, moved and difference(moved, still)[0]) + (", NaN on both" if broken(ours, theirs) else "")
    of_totals = beside(
        difference(totals(ours), totals(theirs))[0], moved and difference(totals(moved), totals(still))[0]
    )
    if starved(mine) or starved(other):
        return (name, kind, "yes", spread, of_totals, "", "")
    speed = other["step_cpu_s"] / mine["step_cpu_s"]
    build = other["build_s"] / mine["build_s"]
    return (name, kind, "yes", spread, of_totals, f"{speed:.2f}", f"{build:.1f}")


def table(given):
    head = ("scene", "kind", "runs", "difference (spread)", "of totals (spread)", "step", "build")
    rows = [row(given.out, name, given.perturb) for name in given.scenes or genesis_scenes.SCENES]
    if given.run_only:
        rows = [r for r in rows if r[2] != "not run"]
    lines = ["| " + " | ".join(r) + " |" for r in [head, ("---",) * len(head), *rows]]
    text = "\n".join(lines) + "\n"
    print(text)
    for name in given.scenes or genesis_scenes.SCENES:
        _, ours = load(given.out, name, "ingot")
        _, theirs = load(given.out, name, "quadrants")
        if ours and theirs:
            worst, where = difference(ours, theirs)
            if worst > CLOSE:
                print(f"{name}: {worst:.2e} at {where}")
            if name == "accessors":
                decimals(ours, theirs)
    if given.markdown:
        given.markdown.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("engine", nargs="?", choices=["ingot", "quadrants"])
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/genesis"))
    parser.add_argument("--perturb", type=float)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--run-only", action="store_true", help="leave out what was not run")
    parser.add_argument("--markdown", type=pathlib.Path)
    given = parser.parse_args()
    given.out = given.out.resolve()
    if given.perturb is None:
        given.perturb = 0.0 if given.what == "run" else 1e-7
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    (run if given.what == "run" else table)(given)


if __name__ == "__main__":
    main()
