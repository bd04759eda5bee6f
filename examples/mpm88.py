"""A block of weakly compressible fluid falls into a box: the material point method (MLS-MPM).

Particles carry mass, velocity, an affine velocity field and their volume; the grid is where they
meet. A step spreads the particles to the grid, lets gravity and the walls act there, and gathers
the velocities back. Writes a picture with the fall at several times:

    python examples/mpm88.py [--particles N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import numpy as np
from PIL import Image

import ingot as qd

V1 = qd.types.NDArray[qd.math.vec2, Literal[1]]
M1 = qd.types.NDArray[qd.math.mat2, Literal[1]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]
V2 = qd.types.NDArray[qd.math.vec2, Literal[2]]
F2 = qd.types.NDArray[qd.f32, Literal[2]]

GRID = 128
DX = 1.0 / GRID
DT = 2e-4
RHO = 1.0
VOLUME = (DX * 0.5) ** 2
MASS = VOLUME * RHO
STIFFNESS = 400.0
WALL = 3  # cells


@qd.kernel
def step(x: V1, v: V1, c: M1, j: F1, grid_v: V2, grid_m: F2, gravity: qd.f32) -> None:
    for a, b in grid_m:
        grid_v[a, b] = qd.Vector([0.0, 0.0])
        grid_m[a, b] = 0.0
    for p in x:
        base = (x[p] * GRID - 0.5).cast(qd.i32)
        fx = x[p] * GRID - base.cast(qd.f32)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        stress = -DT * 4.0 * STIFFNESS * VOLUME * (j[p] - 1.0) * GRID * GRID
        affine = qd.Matrix([[stress, 0.0], [0.0, stress]]) + MASS * c[p]
        for a, b in qd.static(qd.ndrange(3, 3)):
            offset = qd.Vector([a, b])
            dpos = (offset.cast(qd.f32) - fx) * DX
            weight = w[a][0] * w[b][1]
            grid_v[base + offset] += weight * (MASS * v[p] + affine @ dpos)
            grid_m[base + offset] += weight * MASS
    for a, b in grid_m:
        if grid_m[a, b] > 0.0:
            u = grid_v[a, b] / grid_m[a, b]
            u[1] -= DT * gravity
            if a < WALL and u[0] < 0.0:
                u[0] = 0.0
            if a > GRID - WALL and u[0] > 0.0:
                u[0] = 0.0
            if b < WALL and u[1] < 0.0:
                u[1] = 0.0
            if b > GRID - WALL and u[1] > 0.0:
                u[1] = 0.0
            grid_v[a, b] = u
    for p in x:
        base = (x[p] * GRID - 0.5).cast(qd.i32)
        fx = x[p] * GRID - base.cast(qd.f32)
        w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
        new_v = qd.Vector([0.0, 0.0])
        new_c = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
        for a, b in qd.static(qd.ndrange(3, 3)):
            offset = qd.Vector([a, b])
            dpos = (offset.cast(qd.f32) - fx) * DX
            weight = w[a][0] * w[b][1]
            g = grid_v[base + offset]
            new_v += weight * g
            new_c += 4.0 * weight * GRID * GRID * g.outer_product(dpos)
        v[p] = new_v
        x[p] += DT * new_v
        j[p] *= 1.0 + DT * new_c.trace()
        c[p] = new_c


class Fluid:
    """The state: particles, and the grid they meet on."""

    def __init__(self, particles: int, seed: int = 1) -> None:
        self.x = qd.Vector.ndarray(2, qd.f32, (particles,))
        self.v = qd.Vector.ndarray(2, qd.f32, (particles,))
        self.c = qd.Matrix.ndarray(2, 2, qd.f32, (particles,))
        self.j = qd.ndarray(qd.f32, (particles,))
        self.grid_v = qd.Vector.ndarray(2, qd.f32, (GRID, GRID))
        self.grid_m = qd.ndarray(qd.f32, (GRID, GRID))
        places = np.random.default_rng(seed).random((particles, 2)) * 0.4 + (0.2, 0.3)
        self.x.from_numpy(places.astype(np.float32))
        self.j.fill(1.0)

    def advance(self, steps: int, gravity: float = 9.8) -> None:
        for _ in range(steps):
            step(self.x, self.v, self.c, self.j, self.grid_v, self.grid_m, gravity)

    def picture(self, size: int) -> Any:
        """Where the particles are, brighter where they are fast."""
        image = np.full((size, size, 3), 18, np.uint8)
        places = (self.x.to_numpy() * size).astype(int).clip(0, size - 1)
        speed = np.clip(np.linalg.norm(self.v.to_numpy(), axis=1) / 4.0, 0, 1)[:, None]
        colours = (1 - speed) * (40, 110, 180) + speed * (240, 250, 255)
        image[size - 1 - places[:, 1], places[:, 0]] = colours.astype(np.uint8)
        return image


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--particles", type=int, default=8192)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/mpm88.png"))
    args = ap.parse_args()
    qd.init()
    fluid = Fluid(args.particles)
    frames = []
    for frame in range(4):
        frames.append(fluid.picture(256))
        fluid.advance(600)
        print(f"\rstep {600 * (frame + 1)} of 2400", end="", flush=True)
    frames.append(fluid.picture(256))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(frames, axis=1)).save(args.out)
    print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
