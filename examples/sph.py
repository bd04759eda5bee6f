"""A dam breaks: smoothed particle hydrodynamics in two dimensions.

Water is particles; the density at each is a sum over its neighbours, the pressure follows from the
density, and the pressure pushes. Neighbours are found through a grid of cells as wide as the
kernel's reach: count, running sum, then every particle is put into its place. Writes a picture
with the fall at several times:

    python examples/sph.py [--particles N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import numpy as np
from PIL import Image

import ingot as qd

V1 = qd.types.NDArray[qd.math.vec2, Literal[1]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]
I1 = qd.types.NDArray[qd.i32, Literal[1]]

WIDTH, HEIGHT = 2.0, 1.0
REST = 1000.0
STIFFNESS = 400.0  # pressure per excess density
VISCOSITY = 0.08
GRAVITY = 9.8


@qd.func
def cell_of(p: qd.math.vec2, reach: qd.f32, columns: qd.i32, rows: qd.i32) -> qd.i32:
    a = qd.min(qd.max(int(p[0] / reach), 0), columns - 1)
    b = qd.min(qd.max(int(p[1] / reach), 0), rows - 1)
    return b * columns + a


@qd.func
def weight(r2: qd.f32, reach: qd.f32) -> qd.f32:
    """Poly6 in two dimensions: 1 in all over the plane."""
    q = qd.max(reach * reach - r2, 0.0)
    return 4.0 / (3.14159265 * reach**8) * q * q * q


@qd.kernel
def sort(x: V1, start: I1, fill: I1, order: I1, reach: qd.f32, columns: qd.i32, rows: qd.i32) -> None:
    for c in start:
        start[c] = 0
    for p in x:
        start[cell_of(x[p], reach, columns, rows) + 1] += 1
    qd.loop_config(serialize=True)
    for c in range(1, start.shape[0]):
        start[c] += start[c - 1]
    for c in fill:
        fill[c] = start[c]
    for p in x:
        order[qd.atomic_add(fill[cell_of(x[p], reach, columns, rows)], 1)] = p


@qd.kernel
def densities(x: V1, rho: F1, start: I1, order: I1, mass: qd.f32, reach: qd.f32, columns: qd.i32,
              rows: qd.i32) -> None:
    for p in x:
        a = int(x[p][0] / reach)
        b = int(x[p][1] / reach)
        total = 0.0
        for j in range(qd.max(b - 1, 0), qd.min(b + 2, rows)):
            first = start[j * columns + qd.max(a - 1, 0)]
            last = start[j * columns + qd.min(a + 1, columns - 1) + 1]
            for k in range(first, last):
                d = x[p] - x[order[k]]
                total += mass * weight(d.dot(d), reach)
        rho[p] = total


@qd.kernel
def forces(x: V1, v: V1, f: V1, rho: F1, start: I1, order: I1, mass: qd.f32, reach: qd.f32,
           columns: qd.i32, rows: qd.i32) -> None:
    for p in x:
        a = int(x[p][0] / reach)
        b = int(x[p][1] / reach)
        mine = qd.max(rho[p] - REST, 0.0) * STIFFNESS / (rho[p] * rho[p])
        total = qd.Vector([0.0, 0.0])
        for j in range(qd.max(b - 1, 0), qd.min(b + 2, rows)):
            first = start[j * columns + qd.max(a - 1, 0)]
            last = start[j * columns + qd.min(a + 1, columns - 1) + 1]
            for k in range(first, last):
                o = order[k]
                d = x[p] - x[o]
                r = d.norm()
                if o != p and r < reach and r > 1e-6:
                    near = reach - r
                    slope = -30.0 / (3.14159265 * reach**5) * near * near  # spiky
                    other = qd.max(rho[o] - REST, 0.0) * STIFFNESS / (rho[o] * rho[o])
                    total -= mass * (mine + other) * slope * d / r
                    drag = 20.0 / (3.14159265 * reach**5) * near  # of the viscosity kernel
                    total += VISCOSITY * REST * mass * drag / (rho[p] * rho[o]) * (v[o] - v[p])
        f[p] = total


@qd.kernel
def move(x: V1, v: V1, f: V1, dt: qd.f32, gravity: qd.f32, edge: qd.f32) -> None:
    for p in x:
        v[p] += dt * (f[p] - qd.Vector([0.0, gravity]))
        x[p] += dt * v[p]
        for k in qd.static(range(2)):
            top = qd.static((WIDTH, HEIGHT)[k]) - edge
            if x[p][k] < edge:
                x[p][k] = edge
                v[p][k] *= -0.3
            if x[p][k] > top:
                x[p][k] = top
                v[p][k] *= -0.3


class Water:
    """A column of water at the left wall of a box."""

    def __init__(self, particles: int, seed: int = 4) -> None:
        across = max(4, round((particles / 2) ** 0.5))
        self.gap = 0.5 / across
        up = particles // across
        a, b = np.meshgrid(np.arange(across), np.arange(up), indexing="xy")
        places = (np.stack([a.ravel(), b.ravel()], axis=1) + 1.0) * self.gap
        places += np.random.default_rng(seed).normal(0, 0.02 * self.gap, places.shape)
        n = len(places)
        self.reach, self.mass = 2.2 * self.gap, REST * self.gap**2
        self.columns, self.rows = int(WIDTH / self.reach) + 1, int(HEIGHT / self.reach) + 1
        self.x, self.v, self.f = (qd.Vector.ndarray(2, qd.f32, (n,)) for _ in range(3))
        self.rho = qd.ndarray(qd.f32, (n,))
        self.order = qd.ndarray(qd.i32, (n,))
        self.start = qd.ndarray(qd.i32, (self.columns * self.rows + 1,))
        self.fill = qd.ndarray(qd.i32, (self.columns * self.rows,))
        self.x.from_numpy(places.astype(np.float32))
        self.dt = 0.1 * self.gap / (STIFFNESS**0.5 + 4.0)

    def density(self) -> None:
        sort(self.x, self.start, self.fill, self.order, self.reach, self.columns, self.rows)
        densities(self.x, self.rho, self.start, self.order, self.mass, self.reach, self.columns, self.rows)

    def advance(self, steps: int, gravity: float = GRAVITY) -> None:
        for _ in range(steps):
            self.density()
            forces(self.x, self.v, self.f, self.rho, self.start, self.order, self.mass, self.reach,
                   self.columns, self.rows)
            move(self.x, self.v, self.f, self.dt, gravity, 0.5 * self.gap)

    def picture(self, width: int) -> Any:
        """The particles, from blue to white by speed."""
        image = np.full((width // 2, width, 3), 250, np.uint8)
        speed = np.clip(np.linalg.norm(self.v.to_numpy(), axis=1) / 3.0, 0, 1)[:, None]
        colours = ((1 - speed) * (24, 78, 140) + speed * (150, 205, 240)).astype(np.uint8)
        at = (self.x.to_numpy() * width / WIDTH).astype(int)
        dot = max(1, round(self.gap * width / WIDTH))
        for (column, row), colour in zip(at, colours):
            r = image.shape[0] - 1 - row
            image[max(r - dot + 1, 0) : r + 1, column : column + dot] = colour
        return image


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--particles", type=int, default=5000)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/sph.png"))
    args = ap.parse_args()
    qd.init()
    water = Water(args.particles)
    steps = int(0.25 / water.dt)
    frames = [water.picture(480)]
    for frame in range(3):
        water.advance(steps)
        frames.append(water.picture(480))
        print(f"\rstep {steps * (frame + 1)} of {steps * 3}", end="", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate([np.concatenate(frames[:2], 1), np.concatenate(frames[2:], 1)])).save(args.out)
    print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
