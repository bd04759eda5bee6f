"""Finds the throw with which a soft body lands on a mark: a material point method, differentiated.

The body is of particles that carry velocity, an affine velocity field and their volume; each step
spreads them to a grid of its own, lets gravity and the floor act there, and gathers velocities back.
Gradients of where the body ends go back through all steps to the velocity that it was thrown with.
Writes the loss over the rounds and the flights of the first and the last round:

    python examples/fit_throw.py [--rounds N] [--particles N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import _picture
import numpy as np
from PIL import Image

import ingot as qd

V2 = qd.types.NDArray[qd.math.vec2, Literal[2]]
M2 = qd.types.NDArray[qd.math.mat2, Literal[2]]
F2 = qd.types.NDArray[qd.f32, Literal[2]]
V3 = qd.types.NDArray[qd.math.vec2, Literal[3]]
F3 = qd.types.NDArray[qd.f32, Literal[3]]
V1 = qd.types.NDArray[qd.math.vec2, Literal[1]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]

GRID = 32
STEPS = 160
DT = 2e-3
DX = 1.0 / GRID
VOLUME = (DX * 0.5) ** 2
STIFFNESS = 20.0
GRAVITY = 9.8
FLOOR = 3  # cells
MARK = (0.78, 0.25)


@qd.kernel
def throw(x: V2, v: V2, velocity: V1) -> None:
    for p in range(x.shape[1]):
        v[0, p] = velocity[0]


@qd.kernel
def spread(x: V2, v: V2, c: M2, j: F2, grid_v: V3, grid_m: F3, t: qd.i32) -> None:
    for p in range(x.shape[1]):
        base = (x[t, p] * GRID - 0.5).cast(qd.i32)
        fx = x[t, p] * GRID - base.cast(qd.f32)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        stress = -DT * 4.0 * STIFFNESS * VOLUME * (j[t, p] - 1.0) * GRID * GRID
        affine = qd.Matrix([[stress, 0.0], [0.0, stress]]) + VOLUME * c[t, p]
        for a, b in qd.static(qd.ndrange(3, 3)):
            dpos = (qd.Vector([a, b]).cast(qd.f32) - fx) * DX
            weight = w[a][0] * w[b][1]
            grid_v[t, base[0] + a, base[1] + b] += weight * (VOLUME * v[t, p] + affine @ dpos)
            grid_m[t, base[0] + a, base[1] + b] += weight * VOLUME


@qd.kernel
def act(grid_v: V3, grid_m: F3, grid_out: V3, t: qd.i32) -> None:
    for a, b in qd.ndrange(GRID, GRID):
        if grid_m[t, a, b] > 0.0:
            u = grid_v[t, a, b] / grid_m[t, a, b]
            u[1] -= DT * GRAVITY
            if b < FLOOR and u[1] < 0.0:
                u[1] = 0.0
            if (a < FLOOR and u[0] < 0.0) or (a > GRID - FLOOR and u[0] > 0.0):
                u[0] = 0.0
            grid_out[t, a, b] = u


@qd.kernel
def gather(x: V2, v: V2, c: M2, j: F2, grid_out: V3, t: qd.i32) -> None:
    for p in range(x.shape[1]):
        base = (x[t, p] * GRID - 0.5).cast(qd.i32)
        fx = x[t, p] * GRID - base.cast(qd.f32)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        new_v = qd.Vector([0.0, 0.0])
        new_c = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for a, b in qd.static(qd.ndrange(3, 3)):
            dpos = (qd.Vector([a, b]).cast(qd.f32) - fx) * DX
            weight = w[a][0] * w[b][1]
            u = grid_out[t, base[0] + a, base[1] + b]
            new_v += weight * u
            new_c += 4.0 * weight * u.outer_product(dpos) * GRID * GRID
        v[t + 1, p] = new_v
        x[t + 1, p] = x[t, p] + DT * new_v
        j[t + 1, p] = j[t, p] * (1.0 + DT * new_c.trace())
        c[t + 1, p] = new_c


@qd.kernel
def centre(x: V2, middle: V1) -> None:
    for p in range(x.shape[1]):
        middle[0] += x[STEPS, p] / x.shape[1]


@qd.kernel
def miss(middle: V1, loss: F1) -> None:
    for _ in range(1):
        loss[0] += (middle[0] - qd.Vector([MARK[0], MARK[1]])).norm_sqr()


class Body:
    """A square of particles, and what happens to them in every step."""

    def __init__(self, particles: int) -> None:
        def vectors(*shape: int) -> Any:
            return qd.Vector.ndarray(2, qd.f32, shape, needs_grad=True)

        self.x, self.v = vectors(STEPS + 1, particles), vectors(STEPS + 1, particles)
        self.c = qd.Matrix.ndarray(2, 2, qd.f32, (STEPS + 1, particles), needs_grad=True)
        self.j = qd.ndarray(qd.f32, (STEPS + 1, particles), needs_grad=True)
        self.grid_v, self.grid_out = vectors(STEPS, GRID, GRID), vectors(STEPS, GRID, GRID)
        self.grid_m = qd.ndarray(qd.f32, (STEPS, GRID, GRID), needs_grad=True)
        self.velocity, self.middle = vectors(1), vectors(1)
        self.loss = qd.ndarray(qd.f32, 1, needs_grad=True)
        self.active = [self.x, self.v, self.c, self.j, self.grid_v, self.grid_out, self.grid_m, self.velocity,
                       self.middle]
        places = np.zeros((STEPS + 1, particles, 2), np.float32)
        places[0] = 0.2 + 0.12 * np.random.default_rng(0).random((particles, 2))
        volumes = np.zeros((STEPS + 1, particles), np.float32)
        volumes[0] = 1
        self.x.from_numpy(places)
        self.j.from_numpy(volumes)

    def fly(self) -> None:
        throw(self.x, self.v, self.velocity)
        for t in range(STEPS):
            spread(self.x, self.v, self.c, self.j, self.grid_v, self.grid_m, t)
            act(self.grid_v, self.grid_m, self.grid_out, t)
            gather(self.x, self.v, self.c, self.j, self.grid_out, t)
        centre(self.x, self.middle)
        miss(self.middle, self.loss)

    def loss_and_gradient(self, velocity: Any) -> tuple[float, Any]:
        self.velocity.from_numpy(np.asarray(velocity, np.float32).reshape(1, 2))
        for array in (self.grid_v, self.grid_m, self.grid_out, self.middle, *(one.grad for one in self.active)):
            array.fill(0)
        with qd.ad.Tape(loss=self.loss):
            self.fly()
        return float(self.loss[0]), self.velocity.grad.to_numpy()[0]

    def flight(self, pixels: int) -> Any:
        """The body at six times, and the mark."""
        image = np.full((pixels, pixels, 3), 245, np.uint8)
        x = self.x.to_numpy()
        for n, t in enumerate(range(0, STEPS + 1, STEPS // 5)):
            at = np.clip((x[t] * pixels).astype(int), 0, pixels - 2)
            shade = np.array([40, 90, 170]) * (0.4 + 0.12 * n)
            for d in (0, 1):
                image[pixels - 1 - at[:, 1], at[:, 0] + d] = shade
        c, r = int(MARK[0] * pixels), pixels - 1 - int(MARK[1] * pixels)
        image[r - 6 : r + 7, c] = image[r, c - 6 : c + 7] = (200, 40, 40)
        return image


def fit(particles: int, rounds: int, pixels: int = 300) -> tuple[list[float], Any, list[Any]]:
    """The loss of each round, the throw that was found, pictures of the first flight and the last."""
    body = Body(particles)
    velocity, losses, pictures = np.array([0.8, 1.0]), [], []
    for n in range(rounds):
        loss, gradient = body.loss_and_gradient(velocity)
        losses.append(loss)
        if n in (0, rounds - 1):
            pictures.append(body.flight(pixels))
        else:
            velocity = velocity - 3.0 * gradient
    return losses, velocity, pictures


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--rounds", type=int, default=24)
    ap.add_argument("--particles", type=int, default=600)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/fit_throw.png"))
    args = ap.parse_args()
    qd.init()
    losses, velocity, pictures = fit(args.particles, args.rounds)
    print(f"misses by {losses[0] ** 0.5:.3f} -> {losses[-1] ** 0.5:.4f}, thrown with {velocity.round(3)}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate([_picture.curve(losses, "loss by round", log=True), *pictures], axis=1)).save(args.out)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
