"""Throughput of kernels against hand-written C with OpenMP, Quadrants, Taichi, Numba and
NumPy, in one run.

    compute.py [--json FILE] [--plot FILE] [--repeat N] [--only KERNEL,...] [--threads N]
               [--python PEER=INTERPRETER ...]

Each row is a kernel; a ratio above 1 means that Ingot is faster than that peer. Peers live in
processes of their own and take turns of 15 ms or two calls, whichever is longer; a pause follows
each, since OpenMP's threads (of C and Numba) spin on for 9 ms. A ratio is the median over the
rounds of (best call of the peer's turn / best call of Ingot's turn): other guests of a shared
machine slow down whole rounds, hence not one best call of each. A peer without an interpreter
that has it (_peers.venv makes one) is left out. The work of a row is the same for
all: the C is compiled with `gcc -O3 -march=native -ffast-math`, and -fopenmp on more than one thread.
"""

import os
import pathlib
import statistics
import sys
import time

import _peers
from compute_kernels import SIZES

ALL = ["ingot", "c", "quadrants", "taichi", "numba", "numpy"]
TURN, PAUSE = 0.015, 0.03  # seconds
CLOSE = 2e-3  # of the digests: the sums of some peers are that far off


def start(name, python, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), NUMBA_NUM_THREADS=str(threads))
    return _peers.Peer(name, [python, str(_peers.HERE / "compute_peer.py"), name, str(threads)], env)


def same(a, b):
    return all(abs(x - y) <= CLOSE * max(abs(x), abs(y), 1.0) for x, y in zip(a, b))


def measure(peers, name, repeat):
    size, times = SIZES[name], {}
    results = {p.name: p.ask(f"prepare {name} {size}") for p in peers}
    want = results["ingot"]
    assert want is not None, f"{name} does not run"
    for peer, got in results.items():
        if got is not None and not same(want, got):
            print(f"{name}: {peer} computed {got}, Ingot {want}", file=sys.stderr)
    for _ in range(repeat):
        for p in peers:
            t = p.ask(f"run {TURN}") if results[p.name] is not None else None
            if t is not None:
                times.setdefault(p.name, []).append(t)
                time.sleep(PAUSE)
    row = {"kernel": name, "size": size} | {f"{p}_ms": min(t) * 1e3 for p, t in times.items()}
    return row | {f"vs_{p}": statistics.median(a / b for a, b in zip(t, times["ingot"]))
                  for p, t in times.items() if p != "ingot"}


def plot(path, rows):
    """Bars: how much longer each peer takes than Ingot, logarithmic."""
    plt = _peers.pyplot()
    if plt is None:
        return

    names, shown = [r["kernel"] for r in rows], [p for p in ALL if p != "ingot"]
    figure, axes = plt.subplots(figsize=(11, 4.5))
    for k, peer in enumerate(shown):
        xs = [i + (k - 2) * 0.16 for i in range(len(rows))]
        axes.bar(xs, [r.get(f"vs_{peer}") or 0 for r in rows], 0.15, label=peer)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), names, rotation=20)
    axes.set_ylabel("time / time of Ingot")
    axes.legend(ncols=5, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    args = _peers.arguments(
        __doc__, only={"default": ",".join(SIZES)}, plot={"type": pathlib.Path},
        python={"action": "append", "default": []},
        threads={"type": int, "default": os.cpu_count()})
    pythons = {"ingot": sys.executable, "c": sys.executable, "numpy": sys.executable}
    pythons |= dict(pair.split("=", 1) for pair in args.python)
    for name in ALL:
        if name not in pythons:
            pythons[name] = _peers.venv(name)
    peers = [start(name, pythons[name], args.threads) for name in ALL if pythons[name]]
    rows = [measure(peers, name, args.repeat) for name in args.only.split(",")]
    columns = [("kernel", "kernel", ""), ("size", "size", ","), ("ingot_ms", "ms", ".2f")]
    columns += [(f"vs_{p}", p, ".2f") for p in ALL if p != "ingot"]
    _peers.show("compute: time of the peer / time of Ingot", columns, rows)
    _peers.write(args.json, "compute", rows)
    if args.plot:
        plot(args.plot, rows)


if __name__ == "__main__":
    main()
