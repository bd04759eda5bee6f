"""Flow past a cylinder by the lattice Boltzmann method (D2Q9, one relaxation time).

Every cell holds nine densities, one per direction of travel. A step lets them travel to
the neighbour cells and then relaxes them towards equilibrium. Cells are numbered row by
row, so that the neighbours of cell i are i - 1, i + 1, i - width and i + width, and one
flat parallel loop does the whole grid. Two arrays take turns as source and destination.

    directions      6 2 5       weights 4/9 (0), 1/9 (1 to 4), 1/36 (5 to 8)
                    3 0 1
                    7 4 8
"""

from typing import Any, Literal

import numpy as np

import ingot as qd

F2 = qd.types.NDArray[qd.f32, Literal[2]]  # nine densities by cell
F1 = qd.types.NDArray[qd.f32, Literal[1]]  # one number per cell
I1 = qd.types.NDArray[qd.i32, Literal[1]]


@qd.func
def equilibrium(weight: qd.f32, rho: qd.f32, cu: qd.f32, uu: qd.f32) -> qd.f32:
    """Density in a direction c, from c.u and u.u."""
    return weight * rho * (1.0 + 3.0 * cu + 4.5 * cu * cu - 1.5 * uu)


@qd.func
def set_stream(f: F2, i: qd.i32, u: qd.f32) -> None:
    """Puts cell i at rest density, moving to the right with speed u."""
    uu = u * u
    f[0, i] = equilibrium(4.0 / 9.0, 1.0, 0.0, uu)
    f[1, i] = equilibrium(1.0 / 9.0, 1.0, u, uu)
    f[2, i] = equilibrium(1.0 / 9.0, 1.0, 0.0, uu)
    f[3, i] = equilibrium(1.0 / 9.0, 1.0, -u, uu)
    f[4, i] = equilibrium(1.0 / 9.0, 1.0, 0.0, uu)
    f[5, i] = equilibrium(1.0 / 36.0, 1.0, u, uu)
    f[6, i] = equilibrium(1.0 / 36.0, 1.0, -u, uu)
    f[7, i] = equilibrium(1.0 / 36.0, 1.0, -u, uu)
    f[8, i] = equilibrium(1.0 / 36.0, 1.0, u, uu)


@qd.kernel
def start(f: F2, speed: F1) -> None:
    for i in range(f.shape[1]):
        set_stream(f, i, speed[i])


@qd.kernel
def step(src: F2, dst: F2, solid: I1, width: qd.i32, omega: qd.f32, inflow: qd.f32) -> None:
    cells = src.shape[1]
    for i in range(width, cells - width):
        # What travels into this cell.
        f0 = src[0, i]
        f1 = src[1, i - 1]
        f2 = src[2, i - width]
        f3 = src[3, i + 1]
        f4 = src[4, i + width]
        f5 = src[5, i - width - 1]
        f6 = src[6, i - width + 1]
        f7 = src[7, i + width + 1]
        f8 = src[8, i + width - 1]

        rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
        ux = (f1 - f3 + f5 - f6 - f7 + f8) / rho
        uy = (f2 - f4 + f5 + f6 - f7 - f8) / rho
        uu = ux * ux + uy * uy
        keep = 1.0 - omega
        straight = omega / 9.0
        diagonal = omega / 36.0

        # Fluid relaxes; a solid cell sends everything back where it came from.
        n0 = keep * f0 + equilibrium(4.0 * straight, rho, 0.0, uu)
        n1 = keep * f1 + equilibrium(straight, rho, ux, uu)
        n2 = keep * f2 + equilibrium(straight, rho, uy, uu)
        n3 = keep * f3 + equilibrium(straight, rho, -ux, uu)
        n4 = keep * f4 + equilibrium(straight, rho, -uy, uu)
        n5 = keep * f5 + equilibrium(diagonal, rho, ux + uy, uu)
        n6 = keep * f6 + equilibrium(diagonal, rho, uy - ux, uu)
        n7 = keep * f7 + equilibrium(diagonal, rho, -ux - uy, uu)
        n8 = keep * f8 + equilibrium(diagonal, rho, ux - uy, uu)
        if solid[i] != 0:
            n0 = f0
            n1 = f3
            n2 = f4
            n3 = f1
            n4 = f2
            n5 = f7
            n6 = f8
            n7 = f5
            n8 = f6

        dst[0, i] = n0
        dst[1, i] = n1
        dst[2, i] = n2
        dst[3, i] = n3
        dst[4, i] = n4
        dst[5, i] = n5
        dst[6, i] = n6
        dst[7, i] = n7
        dst[8, i] = n8

    # The undisturbed stream outside: first and last row, and the column on the left.
    for x in range(width):
        set_stream(dst, x, inflow)
        set_stream(dst, cells - width + x, inflow)
    for y in range(cells // width):
        set_stream(dst, y * width, inflow)
        # What reaches the right-hand column leaves: it copies its neighbour.
        for q in qd.static(range(9)):
            dst[q, y * width + width - 1] = dst[q, y * width + width - 2]


@qd.kernel
def velocity(f: F2, solid: I1, ux: F1, uy: F1) -> None:
    for i in range(ux.shape[0]):
        rho = 0.0
        for q in qd.static(range(9)):
            rho += f[q, i]
        ux[i] = (f[1, i] - f[3, i] + f[5, i] - f[6, i] - f[7, i] + f[8, i]) / rho
        uy[i] = (f[2, i] - f[4, i] + f[5, i] + f[6, i] - f[7, i] - f[8, i]) / rho
        if solid[i] != 0:
            ux[i] = 0.0
            uy[i] = 0.0


@qd.kernel
def vorticity(ux: F1, uy: F1, out: F1, width: qd.i32) -> None:
    for i in range(width, out.shape[0] - width):
        out[i] = 0.5 * (uy[i + 1] - uy[i - 1] - ux[i + width] + ux[i - width])


class Flow:
    """A channel of width x height cells with a cylinder in it; speed in cells per step."""

    def __init__(self, width: int, height: int, radius: float, reynolds: float, speed: float = 0.1) -> None:
        self.width, self.height, self.inflow = width, height, speed
        viscosity = speed * 2.0 * radius / reynolds
        self.omega = 1.0 / (0.5 + 3.0 * viscosity)
        cells = width * height
        # A little off the middle line, so that the wake does not stay symmetric.
        y, x = np.mgrid[0:height, 0:width]
        inside = (x - width * 0.2) ** 2 + (y - height * 0.5 - 1.5) ** 2 < radius**2
        self.solid = qd.ndarray(qd.i32, (cells,))
        self.solid.from_numpy(inside.astype(np.int32).ravel())
        gust = 1.0 + 0.05 * np.sin(2.0 * np.pi * y / height)
        profile = qd.ndarray(qd.f32, (cells,))
        profile.from_numpy((speed * gust).astype(np.float32).ravel())

        self.now = qd.ndarray(qd.f32, (9, cells))
        self.next = qd.ndarray(qd.f32, (9, cells))
        self.ux = qd.ndarray(qd.f32, (cells,))
        self.uy = qd.ndarray(qd.f32, (cells,))
        self.curl = qd.ndarray(qd.f32, (cells,))
        start(self.now, profile)

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            step(self.now, self.next, self.solid, self.width, self.omega, self.inflow)
            self.now, self.next = self.next, self.now

    def picture(self) -> tuple[Any, Any, Any]:
        """(vorticity, speed, solid) as NumPy arrays of height x width."""
        velocity(self.now, self.solid, self.ux, self.uy)
        vorticity(self.ux, self.uy, self.curl, self.width)
        shape = (self.height, self.width)
        ux, uy = self.ux.to_numpy(), self.uy.to_numpy()
        speed = np.sqrt(ux * ux + uy * uy)
        solid = self.solid.to_numpy() != 0
        return self.curl.to_numpy().reshape(shape), speed.reshape(shape), solid.reshape(shape)
