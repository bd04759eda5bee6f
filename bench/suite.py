"""Kernels as users of Taichi, Quadrants and Numba write them, against C, Quadrants and Numba.

    suite.py [--only NAME,..] [--threads 1,2] [--rounds N] [--cold] [--control]
             [--json FILE] [--picture FILE] [--python ENGINE=INTERPRETER ..]

Each row is a kernel; a ratio above 1 means that Ingot is faster. The rows are in suite_kernels_*.py
(Ingot and Quadrants run the same text), suite_c/*.c and suite_numba*.py; `--control` runs ten kernels
of PolyBench and ten of users instead, which nobody may tune for. Engines live in processes of their own and take turns of
10 ms or two calls, whichever is longer. A ratio is the median over the rounds of (best call of the
engine's turn / best call of Ingot's turn), in processor time on one thread and wall time on more;
both are in the JSON. C is gcc -O3 -march=native -ffast-math: without -fopenmp on one thread (its
outlined bodies lose `restrict`), with it on more. Where the program needs atomics, C has them too, and
`c plain` is C on one thread without them: not the same program. What all engines computed is compared
in full; a difference is an error. `cold` is the first call with empty caches less a warm one, in a
process that has compiled another kernel before; with --cold nothing else is measured, best of N.
INGOT_BENCH_PEER names the Python that has quadrants; without it and --python, _peers.venv makes one."""

import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np

import _peers
import suite_rows

ENGINES = ["ingot", "c", "quadrants", "numba"]
TURN, PAUSE = 0.01, 0.012  # seconds; OpenMP's threads spin on for 9 ms


class Engine(_peers.Peer):
    """One engine in a process of its own, with empty caches below `folder`."""

    def __init__(self, name, python, threads, folder):
        self.folder = pathlib.Path(folder, f"{name}-{threads}-{time.monotonic_ns()}")
        self.folder.mkdir()
        env = dict(os.environ, INGOT_CACHE_DIR=str(self.folder / "cache"), NUMBA_NUM_THREADS=str(threads),
                   OMP_NUM_THREADS=str(threads), QD_OFFLINE_CACHE="0")
        command = [python, str(_peers.HERE / "suite_peer.py"), name.removesuffix(" plain"), str(threads),
                   "plain" if name.endswith(" plain") else "atomics"]
        self.errors = open(self.folder / "stderr", "w+")
        super().__init__(name, command, env, self.errors)

    def lost(self, line):
        self.errors.seek(0)
        print(f"{self.name} ended at `{line}`: {self.errors.read()[-1500:]}", file=sys.stderr)

    def close(self):
        super().close()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def differences(row, want, got):
    """Why `got` is not what Ingot computed, or None."""
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        a, b = a.astype(np.float64), b.astype(np.float64)
        if row.compare == "mean":  # of random numbers
            a, b = np.array([a.mean(), a.std()]), np.array([b.mean(), b.std()])
        scale = float(np.sqrt(np.mean(a * a))) if a.size else 0.0
        bad = ~(np.abs(a - b) <= row.close * (np.abs(a) + scale))
        if bad.mean() > row.strays:
            at = np.unravel_index(int(np.argmax(bad)), bad.shape)
            return f"array {k}, {int(bad.sum())} of {bad.size}, at {tuple(map(int, at))}: {b[at]:.9g}, Ingot {a[at]:.9g}"
    return None


def prepare(engines, row, scratch):
    """Engines that have the kernel, by name, what each said, and differences of results."""
    ready, said, wrong, want = {}, {}, [], None
    for e in engines:
        path = scratch / f"{e.name.replace(' ', '-')}.npz"
        answer = e.ask(f"prepare {row.name} {path}")
        if answer is None or "error" in answer:
            if answer:
                wrong.append(f"{e.name}: {answer['error']}")
            continue
        ready[e.name], said[e.name] = e, answer
        with np.load(path) as file:
            got = [file[k] for k in file.files]
        want = got if want is None else want
        why = differences(row, want, got)
        if why:
            wrong.append(f"{e.name}: {why}")
    return ready, said, wrong


def measure(engines, row, threads, rounds, scratch):
    ready, said, wrong = prepare(engines, row, scratch)
    out = {"kernel": row.name, "threads": threads, "wrong": wrong}
    out |= {f"cold_{n}_ms": s["cold"] * 1e3 for n, s in said.items()}
    turns = {n: [] for n in ready}
    for _ in range(rounds):
        for n, e in ready.items():
            turns[n].append(e.ask(f"run {TURN}"))
            if threads > 1:
                time.sleep(PAUSE)
    for clock in ("cpu", "wall"):
        for n, ts in turns.items():
            ts = [t and t[clock] for t in ts]
            if None in ts or not ts:
                continue
            out[f"{n}_{clock}_ms"] = min(ts) * 1e3
            if n != "ingot" and "ingot" in turns:
                out[f"vs_{n}_{clock}"] = statistics.median(
                    t / u[clock] for t, u in zip(ts, turns["ingot"]) if u and u[clock] > 0)
    return out


def heads(threads):
    clock = "cpu" if threads == 1 else "wall"
    return [("kernel", "kernel", ""), (f"ingot_{clock}_ms", "ms", ".2f"), (f"vs_c_{clock}", "c", ".2f"),
            (f"vs_c plain_{clock}", "c plain", ".2f"), (f"vs_quadrants_{clock}", "quadrants", ".2f"),
            (f"vs_numba_{clock}", "numba", ".2f"), ("cold_ingot_ms", "cold ms", ".0f"),
            ("cold_vs_quadrants", "cold/quadrants", ".2f"), ("same", "results", "")]


def cold_heads():
    return [("kernel", "kernel", ""), *((f"cold_{n}_ms", f"{n} ms", ".0f") for n in ENGINES),
            ("cold_vs_quadrants", "ingot/quadrants", ".2f")]


def mean(values):
    values = [v for v in values if v and v > 0]
    return statistics.geometric_mean(values) if values else None


def finish(rows):
    for r in rows:
        ours, theirs = r.get("cold_ingot_ms"), r.get("cold_quadrants_ms")
        if ours and theirs:
            r["cold_vs_quadrants"] = ours / theirs
        r["same"] = "DIFFER" if r.get("wrong") else "same"


def report(rows, threads, cold):
    rows = [r for r in rows if r["threads"] == threads]
    if not rows:
        return
    columns = cold_heads() if cold else heads(threads)
    means = {"kernel": "geometric mean", "same": ""}
    means |= {key: mean(r.get(key) for r in rows) for key, _, _ in columns
              if key.startswith("vs_") or key == "cold_vs_quadrants"}
    title = f"suite, {threads} thread{'s' * (threads > 1)}: time of the engine / time of Ingot"
    _peers.show("suite: cold compile" if cold else title, columns, rows + [means])
    for r in rows:
        for why in r["wrong"]:
            print(f"  {r['kernel']}: {why}")


def cold(pythons, rows, rounds, scratch, names):
    """Compile times alone: the best of `rounds` processes each."""
    found = []
    for row in rows:
        out = {"kernel": row.name, "threads": 1, "wrong": []}
        for _ in range(rounds):
            for n in names:
                engine = Engine(n, pythons[n], 1, scratch)
                answer = engine.ask(f"prepare {row.name} -")
                engine.close()
                if answer and "cold" in answer:
                    out[f"cold_{n}_ms"] = min(out.get(f"cold_{n}_ms", 1e9), answer["cold"] * 1e3)
        found.append(out)
        print(row.name, {k: round(v) for k, v in out.items() if k.startswith("cold")}, file=sys.stderr, flush=True)
    return found


def picture(path, rows):
    """Bars for each kernel: how much longer C and Quadrants take than Ingot, logarithmic."""
    plt = _peers.pyplot()
    if plt is None:
        return

    counts = sorted({r["threads"] for r in rows})
    figure, grid = plt.subplots(len(counts), 1, figsize=(15, 4.5 * len(counts)), squeeze=False)
    for axes, threads in zip(grid[:, 0], counts):
        shown = [r for r in rows if r["threads"] == threads]
        clock = "cpu" if threads == 1 else "wall"
        for k, engine in enumerate(["c", "quadrants", "numba"]):
            xs = [i + (k - 1) * 0.27 for i in range(len(shown))]
            axes.bar(xs, [r.get(f"vs_{engine}_{clock}") or 0 for r in shown], 0.25, label=engine)
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xticks(range(len(shown)), [r["kernel"] for r in shown], rotation=60, ha="right", fontsize=8)
        axes.set_ylabel(f"time / time of Ingot, {threads} thread{'s' * (threads > 1)}")
        axes.legend(ncols=3, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only")
    ap.add_argument("--engines", default=",".join(ENGINES))
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--cold", action="store_true")
    ap.add_argument("--control", action="store_true")
    ap.add_argument("--json", type=pathlib.Path)
    ap.add_argument("--picture", type=pathlib.Path)
    ap.add_argument("--python", action="append", default=[])
    return ap.parse_args()


def interpreters(args):
    pythons = {"ingot": sys.executable, "c": sys.executable, "c plain": sys.executable}
    if os.environ.get("INGOT_BENCH_PEER"):
        pythons["quadrants"] = os.environ["INGOT_BENCH_PEER"]
    pythons |= dict(pair.split("=", 1) for pair in args.python)
    for name in ("quadrants", "numba"):
        if name not in pythons and name in args.engines.split(","):
            pythons[name] = _peers.venv(name)
    return pythons


def run(args, pythons, rows, scratch):
    found = []
    names = [n for n in args.engines.split(",") if pythons.get(n)]
    if args.cold:
        return cold(pythons, rows, args.rounds, scratch, names)
    for threads in map(int, args.threads.split(",")):
        engines = {n: Engine(n, pythons[n], threads, scratch) for n in names}
        if threads == 1 and "c" in engines:
            engines["c plain"] = Engine("c plain", pythons["c"], 1, scratch)
        for row in rows:
            playing = [e for n, e in engines.items() if n != "c plain" or row.atomic]
            found.append(measure(playing, row, threads, args.rounds, scratch))
            finish(found[-1:])
            print(row.name, threads, *found[-1]["wrong"], *(
                f"{k[3:]} {v:.2f}" for k, v in found[-1].items() if k.startswith("vs_")),
                file=sys.stderr, flush=True)
            for n, e in engines.items():
                if e.process is None:  # one kernel took it down; the others still count
                    engines[n] = Engine(n, pythons[n], threads, scratch)
        for e in engines.values():
            e.close()
    return found


def main():
    args = arguments()
    known = suite_rows.load(args.control)
    rows = [known[n] for n in (args.only.split(",") if args.only else known)]
    with tempfile.TemporaryDirectory(prefix="ingot-suite-") as folder:
        found = run(args, interpreters(args), rows, pathlib.Path(folder))
    finish(found)
    for threads in sorted({r["threads"] for r in found}):
        report(found, threads, args.cold)
    _peers.write(args.json, "control" if args.control else "suite", found)
    if args.picture:
        picture(args.picture, found)
    return 1 if any(r["wrong"] for r in found) else 0


if __name__ == "__main__":
    sys.exit(main())
