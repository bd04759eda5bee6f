"""Finds the stiffness of every spring of a hanging chain from how it was seen to swing.

Twelve masses hang on springs of different stiffness. Their motion is recorded once; then all springs
are guessed equal, and gradients of the distance between the two motions, through 300 steps of time,
lead to the true ones. Writes the loss over the rounds and the springs that were found:

    python examples/fit_springs.py [--rounds N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import _picture
import numpy as np
from PIL import Image

import ingot as qd

V2 = qd.types.NDArray[qd.math.vec2, Literal[2]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]

MASSES = 12
STEPS = 300
DT = 0.01
REST = 0.1
DAMPING = 0.5
GRAVITY = 1.0


@qd.kernel
def step(x: V2, v: V2, k: F1, t: qd.i32) -> None:
    for i in range(MASSES):
        force = qd.Vector([0.0, -GRAVITY]) - DAMPING * v[t, i]
        above = x[t, i] - (x[t, i - 1] if i > 0 else qd.Vector([0.0, 0.0]))
        force -= k[i] * (above.norm() - REST) * above.normalized()
        if i < MASSES - 1:
            below = x[t, i + 1] - x[t, i]
            force += k[i + 1] * (below.norm() - REST) * below.normalized()
        v[t + 1, i] = v[t, i] + DT * force
        x[t + 1, i] = x[t, i] + DT * v[t + 1, i]


@qd.kernel
def distance(x: V2, seen: V2, loss: F1) -> None:
    for t, i in qd.ndrange(STEPS + 1, MASSES):
        loss[0] += (x[t, i] - seen[t, i]).norm_sqr() / (STEPS * MASSES)


class Chain:
    """Where the masses are at each step, from springs of stiffness k."""

    def __init__(self) -> None:
        shape = (STEPS + 1, MASSES)
        self.x = qd.Vector.ndarray(2, qd.f32, shape, needs_grad=True)
        self.v = qd.Vector.ndarray(2, qd.f32, shape, needs_grad=True)
        self.seen = qd.Vector.ndarray(2, qd.f32, shape)
        self.k = qd.ndarray(qd.f32, MASSES, needs_grad=True)
        self.loss = qd.ndarray(qd.f32, 1, needs_grad=True)
        start = np.zeros((STEPS + 1, MASSES, 2), np.float32)
        start[0, :, 0] = REST * 0.8 * np.arange(1, MASSES + 1)  # held out to the side
        start[0, :, 1] = -REST * 0.6 * np.arange(1, MASSES + 1)
        self.x.from_numpy(start)

    def run(self) -> None:
        for t in range(STEPS):
            step(self.x, self.v, self.k, t)

    def loss_and_gradient(self) -> tuple[float, Any]:
        for array in (self.x, self.v, self.k):
            array.grad.fill(0)
        with qd.ad.Tape(loss=self.loss):
            self.run()
            distance(self.x, self.seen, self.loss)
        return float(self.loss[0]), self.k.grad.to_numpy()


def fit(rounds: int) -> tuple[list[float], Any, Any]:
    """The loss of each round, the springs that were found, the true ones."""
    chain = Chain()
    true = (200.0 * np.exp(np.random.default_rng(1).normal(0, 0.25, MASSES))).astype(np.float32)
    chain.k.from_numpy(true)
    chain.run()
    chain.seen.from_numpy(chain.x.to_numpy())
    log = np.full(MASSES, np.log(200.0), np.float32)  # of the guess: it stays positive
    first, second, losses = np.zeros(MASSES), np.zeros(MASSES), []
    for n in range(1, rounds + 1):  # Adam
        chain.k.from_numpy(np.exp(log))
        loss, gradient = chain.loss_and_gradient()
        losses.append(loss)
        gradient = gradient * np.exp(log)
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        rate = 0.05 * min(1.0, 2.0 * (1.0 - n / (rounds + 1)))
        log -= (rate * first / (1 - 0.9**n) / (np.sqrt(second / (1 - 0.99**n)) + 1e-12)).astype(np.float32)
    return losses, np.exp(log), true


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--rounds", type=int, default=150)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/fit_springs.png"))
    args = ap.parse_args()
    qd.init()
    losses, found, true = fit(args.rounds)
    print(f"loss {losses[0]:.3g} -> {losses[-1]:.3g}, springs off by {np.abs(found / true - 1).max():.1%} at most")
    left = _picture.curve(losses, "loss by round", log=True)
    right = _picture.curve(found, "stiffness: found (line), true (dots)", dots=true)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate([left, right], axis=1)).save(args.out)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
