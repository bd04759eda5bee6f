"""Stable fluids in fields: smoke that rises and swirls.

Speed and smoke are carried back along the flow (semi-Lagrangian, so that any time step is
stable), then the flow is made free of divergence by a number of Jacobi sweeps for the pressure.
The fields are captured by the kernels. Writes a picture of the smoke:

    python examples/stable_fluids.py [--size N] [--steps N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any

import numpy as np
from PIL import Image

import ingot as qd

DT = 0.03
SWEEPS = 40


@qd.data_oriented
class Fluid:
    """size x size cells; what has two states (before and after) is a pair of fields in the same cells."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.speed = qd.Vector.field(2, qd.f32)
        self.carried = qd.Vector.field(2, qd.f32)
        self.smoke = qd.field(qd.f32)
        self.smoke_carried = qd.field(qd.f32)
        self.pressure = qd.field(qd.f32, shape=(size, size))
        self.pressure_next = qd.field(qd.f32, shape=(size, size))
        self.divergence = qd.field(qd.f32, shape=(size, size))
        cells = qd.root.dense(qd.ij, size)
        cells.place(self.speed, self.smoke)
        qd.root.dense(qd.ij, size).place(self.carried, self.smoke_carried)

    @qd.func
    def at(self, f: qd.Template, i: Any, j: Any) -> Any:
        """The element there, or the nearest one on the edge."""
        last = self.size - 1
        return f[qd.max(0, qd.min(last, i)), qd.max(0, qd.min(last, j))]

    @qd.func
    def between(self, f: qd.Template, x: Any, y: Any) -> Any:
        """Bilinear between the four elements around (x, y)."""
        i, j = int(qd.floor(x)), int(qd.floor(y))
        s, t = x - i, y - j
        low = self.at(f, i, j) * (1 - t) + self.at(f, i, j + 1) * t
        high = self.at(f, i + 1, j) * (1 - t) + self.at(f, i + 1, j + 1) * t
        return low * (1 - s) + high * s

    @qd.kernel
    def advect(self) -> None:
        for i, j in self.speed:
            back = qd.Vector([i, j]) - DT * self.size * self.speed[i, j]
            self.carried[i, j] = self.between(self.speed, back[0], back[1])
            self.smoke_carried[i, j] = self.between(self.smoke, back[0], back[1])

    @qd.kernel
    def lift(self) -> None:
        for i, j in self.speed:
            source = qd.Vector([i / self.size - 0.1, j / self.size - 0.5])
            self.smoke[i, j] = self.smoke_carried[i, j] * 0.999
            if source.norm() < 0.06:
                self.smoke[i, j] = 1.0
            self.speed[i, j] = self.carried[i, j] + qd.Vector([1.0, 0.0]) * DT * self.smoke[i, j]

    @qd.kernel
    def diverge(self) -> None:
        for i, j in self.divergence:
            across = self.at(self.speed, i + 1, j)[0] - self.at(self.speed, i - 1, j)[0]
            along = self.at(self.speed, i, j + 1)[1] - self.at(self.speed, i, j - 1)[1]
            self.divergence[i, j] = 0.5 * (across + along)

    @qd.kernel
    def relax(self, p: qd.Template, out: qd.Template) -> None:
        for i, j in p:
            around = self.at(p, i - 1, j) + self.at(p, i + 1, j) + self.at(p, i, j - 1) + self.at(p, i, j + 1)
            out[i, j] = 0.25 * (around - self.divergence[i, j])

    @qd.kernel
    def project(self) -> None:
        for i, j in self.speed:
            p = self.pressure
            rise = qd.Vector([self.at(p, i + 1, j) - self.at(p, i - 1, j), self.at(p, i, j + 1) - self.at(p, i, j - 1)])
            self.speed[i, j] -= 0.5 * rise

    def step(self) -> None:
        """One step of time."""
        self.advect()
        self.lift()
        self.diverge()
        for _ in range(SWEEPS // 2):
            self.relax(self.pressure, self.pressure_next)
            self.relax(self.pressure_next, self.pressure)
        self.project()

    def disorder(self) -> float:
        """The mean divergence that is left."""
        self.diverge()
        return float(np.abs(self.divergence.to_numpy()).mean())


def picture(fluid: Fluid) -> Any:
    """The smoke, rising upwards."""
    smoke = np.clip(fluid.smoke.to_numpy(), 0, 1)[::-1]
    return np.stack([smoke * 255, smoke**2 * 220, smoke**4 * 180], axis=-1).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="out/stable_fluids.png")
    options = parser.parse_args()
    qd.init(arch=qd.cpu)
    fluid = Fluid(options.size)
    for _ in range(options.steps):
        fluid.step()
    path = pathlib.Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(fluid)).save(path)
    print(f"{options.steps} steps, smoke {fluid.smoke.to_numpy().sum():.0f}; {path}")


if __name__ == "__main__":
    main()
