"""The cloth of cloth.py in fields: a struct per mass, captured by the kernels.

Position, speed and force of a mass lie side by side in one cell (AOS), as particle programs
often keep them. The picture is that of cloth.py:

    python examples/cloth_fields.py [--size N] [--out FILE]
"""

import argparse
import pathlib

import cloth
import numpy as np
from PIL import Image

import ingot as qd


@qd.dataclass
class Mass:
    """One mass of the cloth."""

    x: qd.math.vec3
    v: qd.math.vec3
    f: qd.math.vec3


@qd.data_oriented
class Cloth:
    """size x size masses, one unit wide, above the ball at the origin."""

    def __init__(self, size: int, height: float = 0.6) -> None:
        self.size = size
        self.rest = 1.0 / size
        self.mass = Mass.field(shape=(size, size))  # type: ignore[attr-defined]
        start = np.zeros((size, size, 3), np.float32)
        side = (np.arange(size) * self.rest - 0.5).astype(np.float32)
        start[..., 0], start[..., 2] = side[:, None] + 0.02, side[None, :] - 0.03
        start[..., 1] = height
        self.mass.x.from_numpy(start)

    @qd.kernel
    def forces(self, gravity: qd.f32) -> None:
        for i, j in self.mass:
            force = qd.Vector([0.0, -gravity, 0.0])
            for di, dj in qd.static(qd.ndrange((-2, 3), (-2, 3))):
                if qd.static((di != 0 or dj != 0) and abs(di) + abs(dj) <= 2):
                    a = i + di
                    b = j + dj
                    if 0 <= a and a < self.size and 0 <= b and b < self.size:
                        apart = self.mass[i, j].x - self.mass[a, b].x
                        along = apart.normalized()
                        length = self.rest * qd.sqrt(float(di * di + dj * dj))
                        force -= cloth.STIFFNESS * (apart.norm() / length - 1.0) * along
                        speed = self.mass[i, j].v - self.mass[a, b].v
                        force -= cloth.DAMPING * self.rest * speed.dot(along) * along
            self.mass[i, j].f = force

    @qd.kernel
    def move(self) -> None:
        for i, j in self.mass:
            v = (self.mass[i, j].v + cloth.DT * self.mass[i, j].f) * qd.exp(-cloth.DRAG * cloth.DT)
            x = self.mass[i, j].x
            distance = x.norm()
            if distance <= cloth.BALL:
                out = x / distance
                v -= qd.min(v.dot(out), 0.0) * out
            self.mass[i, j].v = v
            self.mass[i, j].x = x + cloth.DT * v

    def step(self, gravity: float = 9.8) -> None:
        """One step of time."""
        self.forces(gravity)
        self.move()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", default="out/cloth_fields.png")
    options = parser.parse_args()
    qd.init(arch=qd.cpu)
    made = Cloth(options.size)
    for _ in range(options.steps):
        made.step()
    path = pathlib.Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    x = made.mass.x.to_numpy()
    shown = cloth.Cloth(options.size)
    shown.x.from_numpy(x)
    Image.fromarray(shown.picture(400)).save(path)
    print(f"{options.steps} steps, lowest point {x[..., 1].min():.3f}; {path}")


if __name__ == "__main__":
    main()
