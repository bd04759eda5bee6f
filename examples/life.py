"""Conway's game of life in fields: two boards that share their cells, and a count by struct-for.

A cell with three living neighbours is born, one with two or three lives on. The board is a torus.
Writes a picture of the last generation:

    python examples/life.py [--size N] [--steps N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any

import numpy as np
from PIL import Image

import ingot as qd


@qd.data_oriented
class Life:
    """size x size cells, stored in tiles of 8 x 8 that hold a cell's state and its next one side by side."""

    def __init__(self, size: int) -> None:
        if size % 8:
            raise ValueError(f"the size is a multiple of 8, not {size}")
        self.size = size
        self.alive = qd.field(qd.i8)
        self.next = qd.field(qd.i8)
        self.living = qd.field(qd.i32, shape=())
        qd.root.dense(qd.ij, size // 8).dense(qd.ij, 8).place(self.alive, self.next)

    @qd.func
    def neighbours(self, i: Any, j: Any) -> Any:
        n = 0
        for di, dj in qd.static(qd.ndrange((-1, 2), (-1, 2))):
            if qd.static(di != 0 or dj != 0):
                n += self.alive[(i + di + self.size) % self.size, (j + dj + self.size) % self.size]
        return n

    @qd.kernel
    def step(self) -> None:
        for i, j in self.alive:
            n = self.neighbours(i, j)
            born = n == 3 or (n == 2 and self.alive[i, j] == 1)
            self.next[i, j] = qd.cast(born, qd.i8)
        self.living[None] = 0
        for i, j in self.alive:
            self.alive[i, j] = self.next[i, j]
            self.living[None] += self.next[i, j]

    def run(self, board: Any, steps: int) -> Any:
        """The board after so many generations."""
        self.alive.from_numpy(board)
        for _ in range(steps):
            self.step()
        return self.alive.to_numpy()


def reference(board: Any) -> Any:
    """One generation, by NumPy."""
    n = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((n == 3) | ((n == 2) & (board == 1))).astype(board.dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", default="out/life.png")
    options = parser.parse_args()
    qd.init(arch=qd.cpu)
    board = (np.random.default_rng(1).random((options.size, options.size)) < 0.3).astype(np.int8)
    life = Life(options.size)
    last = life.run(board, options.steps)
    path = pathlib.Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(last.astype(np.uint8) * 255).save(path)
    print(f"{life.living[None]} cells live after {options.steps} generations; {path}")


if __name__ == "__main__":
    main()
