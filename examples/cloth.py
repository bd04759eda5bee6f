"""A cloth of masses and springs falls over a ball.

Each mass is tied to its neighbours up to two away; springs resist stretching, and a little of the
relative speed along each spring is damped. Explicit steps, small ones. Writes a picture of the
cloth, shaded by its normals:

    python examples/cloth.py [--size N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import numpy as np
from PIL import Image

import ingot as qd

V2 = qd.types.NDArray[qd.math.vec3, Literal[2]]

DT = 2e-4
STIFFNESS = 3e4
DAMPING = 1e4
DRAG = 1.0
BALL = 0.3


@qd.kernel
def forces(x: V2, v: V2, f: V2, rest: qd.f32, gravity: qd.f32) -> None:
    for i, j in x:
        force = qd.Vector([0.0, -gravity, 0.0])
        for di, dj in qd.static(qd.ndrange((-2, 3), (-2, 3))):
            if qd.static((di != 0 or dj != 0) and abs(di) + abs(dj) <= 2):
                a = i + di
                b = j + dj
                if 0 <= a and a < x.shape[0] and 0 <= b and b < x.shape[1]:
                    apart = x[i, j] - x[a, b]
                    along = apart.normalized()
                    length = rest * qd.sqrt(float(di * di + dj * dj))
                    stretch = apart.norm() / length - 1.0
                    force -= STIFFNESS * stretch * along
                    force -= DAMPING * rest * (v[i, j] - v[a, b]).dot(along) * along
        f[i, j] = force


@qd.kernel
def move(x: V2, v: V2, f: V2, drag: qd.f32, ball: qd.f32) -> None:
    for i, j in x:
        v[i, j] = (v[i, j] + DT * f[i, j]) * qd.exp(-drag * DT)
        distance = x[i, j].norm()
        if distance <= ball:
            out = x[i, j] / distance
            v[i, j] -= qd.min(v[i, j].dot(out), 0.0) * out
        x[i, j] += DT * v[i, j]


class Cloth:
    """size x size masses, one unit wide, above the ball at the origin."""

    def __init__(self, size: int, height: float = 0.6) -> None:
        self.rest = 1.0 / size
        self.x = qd.Vector.ndarray(3, qd.f32, (size, size))
        self.v = qd.Vector.ndarray(3, qd.f32, (size, size))
        self.f = qd.Vector.ndarray(3, qd.f32, (size, size))
        side = (np.arange(size) * self.rest - 0.5).astype(np.float32)
        places = np.zeros((size, size, 3), np.float32)
        places[..., 0], places[..., 2] = side[:, None] + 0.02, side[None, :] - 0.03
        places[..., 1] = height
        self.x.from_numpy(places)

    def advance(self, steps: int, gravity: float = 9.8, drag: float = DRAG, ball: float = BALL) -> None:
        for _ in range(steps):
            forces(self.x, self.v, self.f, self.rest, gravity)
            move(self.x, self.v, self.f, drag, ball)

    def picture(self, pixels: int) -> Any:
        """Seen from the front and a little above; nearer parts cover those behind."""
        x = self.x.to_numpy()
        du, dv = np.gradient(x, axis=0), np.gradient(x, axis=1)
        normal = np.cross(du, dv)
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
        light = np.abs(normal @ np.array([0.4, 0.8, 0.45]))
        tilt = 0.5
        across = x[..., 0]
        up = np.cos(tilt) * x[..., 1] - np.sin(tilt) * x[..., 2]
        depth = np.sin(tilt) * x[..., 1] + np.cos(tilt) * x[..., 2]
        image = np.full((pixels, pixels, 3), 245, np.uint8)
        column = ((across / 1.6 + 0.5) * pixels).astype(int)
        row = ((0.55 - up / 1.6) * pixels).astype(int)
        dot = max(1, round(1.6 * pixels / 1.6 / x.shape[0]))
        for k in np.argsort(depth, axis=None):
            i, j = divmod(int(k), x.shape[1])
            r, c = row[i, j], column[i, j]
            shade = np.array([176, 62, 52]) if (i // 8 + j // 8) % 2 else np.array([236, 214, 180])
            image[max(r, 0) : max(r + dot, 0), max(c, 0) : max(c + dot, 0)] = shade * (0.35 + 0.65 * light[i, j])
        return image


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/cloth.png"))
    args = ap.parse_args()
    qd.init()
    cloth = Cloth(args.size)
    frames = []
    for frame in range(3):
        cloth.advance(1500)
        frames.append(cloth.picture(400))
        print(f"\rstep {1500 * (frame + 1)} of 4500", end="", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(frames, axis=1)).save(args.out)
    print(f"\nwrote {args.out}")


if __name__ == "__main__":
    main()
