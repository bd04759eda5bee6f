"""The main job of `make demo`: a simulation with a picture, then what it cost here.

    demo.py [--steps N] [--out DIR] [--quick]

Simulates 192,000 cells of flow past a cylinder (examples/flow.py), writes out/demo.png and
out/demo.gif, and prints cold start, warm start, launch cost and throughput of this machine.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

import ingot as qd

F1 = qd.types.NDArray[qd.f32, Literal[1]]
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WIDTH, HEIGHT = 800, 240
FRAMES = 60
GIF_FROM = 0.6  # the wake has to form first


# ---- the simulation -------------------------------------------------------------------


class Progress:
    """One line, rewritten in place on a terminal, every tenth elsewhere."""

    def __init__(self, total: int, cells: int) -> None:
        self.total, self.cells, self.tenth = total, cells, 0
        self.started = time.perf_counter()

    def show(self, done: int) -> None:
        part = done / self.total
        seconds = time.perf_counter() - self.started
        rate = done * self.cells / seconds / 1e6
        bar = "#" * int(part * 36)
        left = seconds / part - seconds
        text = f"  [{bar:<36}] {part:4.0%}  {rate:6.1f} M cells/s  {left:4.0f} s left"
        if sys.stdout.isatty():
            print("\r" + text, end="\n" if done == self.total else "", flush=True)
        elif int(part * 10) > self.tenth:
            self.tenth = int(part * 10)
            print(text, flush=True)


def simulate(steps: int, out: pathlib.Path) -> float:
    """Runs the flow; returns cells per second of the steps alone."""
    sys.path.insert(0, str(HERE))
    import _picture
    from flow import Flow

    flow = Flow(WIDTH, HEIGHT, radius=15, reynolds=180, speed=0.13)
    scale = 0.35 * flow.inflow
    flow.advance(2)  # compiles
    cells = WIDTH * HEIGHT
    each = max(1, steps // 150)
    print(f"flow past a cylinder: {WIDTH} x {HEIGHT} = {cells:,} cells, {steps:,} steps")
    frames: list[Any] = []
    busy, done = 0.0, 0
    first_frame = int(steps * GIF_FROM)
    every = max(1, (steps - first_frame) // FRAMES)
    bar = Progress(steps, cells)
    while done < steps:
        n = min(each, steps - done)
        before = time.perf_counter()
        flow.advance(n)
        busy += time.perf_counter() - before
        done += n
        if done >= first_frame + len(frames) * every and len(frames) < FRAMES:
            curl, _, solid = flow.picture()
            frames.append(_picture.frame(curl, solid, scale))
        bar.show(done)

    curl, speed, solid = flow.picture()
    if not np.isfinite(speed).all():
        raise SystemExit("the simulation became unstable")
    out.mkdir(parents=True, exist_ok=True)
    _picture.still(curl, speed, solid, flow.inflow, scale).save(out / "demo.png")
    _picture.save_gif(out / "demo.gif", frames)
    for name in ("demo.png", "demo.gif"):
        print(f"  wrote {out / name} ({(out / name).stat().st_size // 1024} KB)")
    return steps * cells / busy


# ---- what it costs here ---------------------------------------------------------------


@qd.kernel
def touch(a: F1) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] + 1.0


@qd.kernel
def saxpy(a: qd.f32, x: F1, y: F1) -> None:
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


def best(call: Callable[[], object], repeat: int) -> float:
    """Shortest of several times, in seconds."""
    times = []
    for _ in range(repeat):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return min(times)


def measure_start(repeat: int) -> tuple[float, float, float]:
    """(cold, warm, bare): seconds of a whole process that runs examples/saxpy.py with an
    empty cache and with a filled one, and of one that imports NumPy alone."""

    def run(*command: str) -> None:
        subprocess.run([sys.executable, *command], check=True, env=env, stdout=subprocess.DEVNULL)

    env = dict(os.environ)
    cold = []
    folder = tempfile.mkdtemp(prefix="ingot-demo-")
    try:
        for k in range(2):
            env["INGOT_CACHE_DIR"] = os.path.join(folder, f"cache{k}")
            before = time.perf_counter()
            run(str(HERE / "saxpy.py"))
            cold.append(time.perf_counter() - before)
        warm = best(lambda: run(str(HERE / "saxpy.py")), repeat)
        bare = best(lambda: run("-c", "import numpy"), repeat)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return min(cold), warm, bare


def measure_launch(repeat: int) -> float:
    """Seconds per launch of a kernel with one small ndarray."""
    a = qd.ndarray(qd.f32, (4,))
    touch(a)
    many = range(10_000)

    def launches() -> None:
        for _ in many:
            touch(a)

    def empty() -> None:
        for _ in many:
            pass

    return (best(launches, repeat) - best(empty, repeat)) / len(many)


def measure_saxpy(repeat: int, n: int = 16 << 20) -> tuple[float, float]:
    """(GB/s of saxpy, GB/s of NumPy's copy), counting bytes read and written."""
    x, y = qd.ndarray(qd.f32, (n,)), qd.ndarray(qd.f32, (n,))
    x.fill(1.0)
    y.fill(2.0)
    saxpy(0.5, x, y)
    ours = best(lambda: saxpy(0.5, x, y), repeat)
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    theirs = best(lambda: np.copyto(target, source), repeat)
    return 12e-9 * n / ours, 8e-9 * n / theirs


def table(rows: Sequence[tuple[str, str, str]]) -> None:
    width = max(len(name) for name, _, _ in rows)
    for name, value, remark in rows:
        print(f"  {name:<{width}}  {value:>14}  {remark}")


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=10_000)
    ap.add_argument("--out", type=pathlib.Path, default=ROOT / "out")
    ap.add_argument("--quick", action="store_true", help="a few steps, for tests")
    args = ap.parse_args()
    steps, repeat = (min(args.steps, 300), 2) if args.quick else (args.steps, 7)

    qd.init()
    rate = simulate(steps, args.out)
    print("measuring ...", flush=True)
    launch = measure_launch(repeat)
    ours, copy = measure_saxpy(repeat)
    cold, warm, bare = measure_start(repeat)
    print()
    table(
        [
            ("cold start", f"{cold * 1e3:.0f} ms", "a process that compiles a kernel and runs it"),
            ("warm start", f"{warm * 1e3:.0f} ms",
             f"the same again, from the cache (NumPy's import alone: {bare * 1e3:.0f} ms)"),
            ("launch", f"{launch * 1e9:.0f} ns", "a kernel with one small ndarray"),
            ("simulation", f"{rate / 1e6:.0f} M cells/s", "lattice Boltzmann, 72 bytes a cell"),
            ("saxpy, 16M floats", f"{ours:.1f} GB/s", f"NumPy's copy: {copy:.1f} GB/s"),
        ]
    )


if __name__ == "__main__":
    main()
