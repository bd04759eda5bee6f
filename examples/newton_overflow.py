"""A graph kernel that runs out of room, asks for more, and goes on.

Many Newton iterations at once, one for each start in the complex plane, for z**3 = 1. All active
points do one step per round; those that have arrived are written to a list of results whose
length nobody knows beforehand. When the list is full the kernel yields, Python doubles the list,
and the launch resumes inside of its loop. Writes a picture of the basins and of how the number of
active points falls:

    python examples/newton_overflow.py [--size N] [--out FILE]
"""

import argparse
import pathlib
from enum import IntEnum
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageDraw

import ingot as qd

F1 = qd.types.NDArray[qd.f32, Literal[1]]
I1 = qd.types.NDArray[qd.i32, Literal[1]]
FLAG = qd.types.NDArray[qd.i32, Literal[0]]
MOST_ROUNDS = 60


class Stage(IntEnum):
    COLLECT = 1


@qd.kernel(graph=True, checkpoints=True)
def newton(re: F1, im: F1, active: I1, arrived: I1, results: I1, used: FLAG, full: FLAG,
           rounds: FLAG, history: I1, go_on: FLAG) -> None:
    while qd.graph.do_while(go_on):
        for k in range(re.shape[0]):
            if active[k] == 1:
                a, b = re[k], im[k]
                a2, b2 = a * a - b * b, 2.0 * a * b  # z**2
                a3, b3 = a2 * a - b2 * b, a2 * b + b2 * a  # z**3
                d = 3.0 * (a2 * a2 + b2 * b2) + 1e-12
                da = ((a3 - 1.0) * a2 + b3 * b2) / d
                db = (b3 * a2 - (a3 - 1.0) * b2) / d
                re[k] = a - da
                im[k] = b - db
                if da * da + db * db < 1e-8:
                    active[k] = 2
        for _ in range(1):
            arrived[0] = 0
            arrived[1] = 0
        for k in range(re.shape[0]):
            if active[k] == 2:
                arrived[0] += 1
            if active[k] == 1:
                arrived[1] += 1
        with qd.checkpoint(Stage.COLLECT, yield_on=full):
            for _ in range(1):
                if used[()] + arrived[0] > results.shape[0]:
                    full[()] = 1
            for k in range(re.shape[0]):
                if full[()] == 0 and active[k] == 2:
                    results[qd.atomic_add(used[()], 1)] = k
                    active[k] = 0
        for _ in range(1):
            history[rounds[()]] = arrived[1]
            rounds[()] += 1
            if arrived[1] == 0 or rounds[()] == history.shape[0]:
                go_on[()] = 0


def flag(value: int = 0) -> Any:
    f = qd.ndarray(qd.i32, ())
    f[()] = value
    return f


def integers(n: int) -> Any:
    return qd.ndarray(qd.i32, (n,))


def solve(size: int, room: int = 1024) -> Any:
    """The final points, the list of those that arrived, the active points by round, how often the list grew."""
    y, x = np.mgrid[-1.5:1.5:size * 1j, -1.5:1.5:size * 1j].astype(np.float32)
    re, im = qd.ndarray(qd.f32, (size * size,)), qd.ndarray(qd.f32, (size * size,))
    re.from_numpy(x.ravel())
    im.from_numpy(y.ravel())
    active, results, history = integers(size * size), integers(room), integers(MOST_ROUNDS)
    active.fill(1)
    used, full, rounds, go_on = flag(), flag(), flag(), flag(1)
    arguments = [re, im, active, integers(2), results, used, full, rounds, history, go_on]
    status: Any = newton(*arguments)
    grown = 0
    while status.yielded:
        assert status.checkpoint is Stage.COLLECT
        larger = integers(2 * arguments[4].shape[0])
        kept = np.zeros(larger.shape, np.int32)
        kept[: used[()]] = arguments[4].to_numpy()[: used[()]]
        larger.from_numpy(kept)
        arguments[4] = larger
        grown += 1
        full[()] = 0
        status = newton.resume(*arguments, from_checkpoint=status.checkpoint)
    ends = re.to_numpy() + 1j * im.to_numpy()
    return ends, arguments[4].to_numpy()[: used[()]], history.to_numpy()[: rounds[()]], grown


def draw(ends: Any, history: Any, size: int, path: pathlib.Path) -> None:
    roots = np.exp(2j * np.pi * np.arange(3) / 3)
    basin = np.abs(ends[:, None] - roots).argmin(axis=1).reshape(size, size)
    colours = np.array([(35, 87, 137), (193, 102, 54), (92, 136, 76)], np.uint8)
    plot = Image.new("RGB", (size, size), (250, 250, 248))
    pen = ImageDraw.Draw(plot)
    left, top, right, bottom = 40, 20, size - 20, size - 30
    pen.line([(left, top), (left, bottom), (right, bottom)], fill=(90, 90, 90))
    height = np.log10(np.maximum(history, 1)) / np.log10(size * size)
    points = [(left + (right - left) * k / max(1, len(history) - 1), bottom - (bottom - top) * h)
              for k, h in enumerate(height)]
    pen.line(points, fill=(193, 102, 54), width=3)
    pen.text(((left + right) // 2, top + 8), "active points (log) by round", fill=(40, 40, 40))
    both = np.concatenate([colours[basin], np.asarray(plot)], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both).save(path)


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--size", type=int, default=400)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/newton.png"))
    args = ap.parse_args()
    qd.init()
    ends, results, history, grown = solve(args.size)
    draw(ends, history, args.size, args.out)
    print(f"{len(results)} of {args.size ** 2} points arrived in {len(history)} rounds; "
          f"the list grew {grown} times; wrote {args.out}")


if __name__ == "__main__":
    main()
