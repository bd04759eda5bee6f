"""Two small galaxies meet: gravity between all pairs of stars.

Every star feels every other one, with the force softened at short distances. Leapfrog steps, so
that the energy stays what it was. Writes a picture with the meeting at several times:

    python examples/nbody.py [--stars N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import numpy as np
from PIL import Image

import ingot as qd

V1 = qd.types.NDArray[qd.math.vec3, Literal[1]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]

SOFT = 0.03
DT = 2e-3


@qd.kernel
def accelerations(x: V1, m: F1, a: V1) -> None:
    for i in range(x.shape[0]):
        sum_ = qd.Vector([0.0, 0.0, 0.0])
        here = x[i]
        for j in range(x.shape[0]):
            d = x[j] - here
            inverse = 1.0 / qd.sqrt(d.dot(d) + SOFT * SOFT)
            sum_ += m[j] * inverse * inverse * inverse * d
        a[i] = sum_


@qd.kernel
def kick(v: V1, a: V1, dt: qd.f32) -> None:
    for i in range(v.shape[0]):
        v[i] += dt * a[i]


@qd.kernel
def drift(x: V1, v: V1, dt: qd.f32) -> None:
    for i in range(x.shape[0]):
        x[i] += dt * v[i]


@qd.kernel
def energy(x: V1, v: V1, m: F1) -> qd.f64:
    total = qd.f64(0.0)
    for i in range(x.shape[0]):
        potential = qd.f64(0.0)
        for j in range(x.shape[0]):
            if i != j:
                d = x[i] - x[j]
                potential -= 0.5 * m[j] / qd.sqrt(d.dot(d) + SOFT * SOFT)
        total += m[i] * (0.5 * v[i].dot(v[i]) + potential)
    return total


class Stars:
    """Two discs, each turning around its own centre."""

    def __init__(self, stars: int, seed: int = 2) -> None:
        rng = np.random.default_rng(seed)
        r, turn = rng.random(stars) ** 0.5 * 0.5 + 0.05, rng.random(stars) * 2 * np.pi
        place = np.stack([r * np.cos(turn), r * np.sin(turn), rng.normal(0, 0.02, stars)], axis=1)
        round_ = np.sqrt(0.5 * r) / (r + SOFT)
        speed = np.stack([-np.sin(turn) * round_ * r, np.cos(turn) * round_ * r, 0 * r], axis=1)
        side = np.where(np.arange(stars) % 2 == 0, 1.0, -1.0)[:, None]
        self.x, self.v, self.a = (qd.Vector.ndarray(3, qd.f32, (stars,)) for _ in range(3))
        self.m = qd.ndarray(qd.f32, (stars,))
        self.m.fill(1.0 / stars)
        self.x.from_numpy((place + side * (0.7, 0.25, 0.0)).astype(np.float32))
        self.v.from_numpy((speed - side * (0.35, 0.0, 0.0)).astype(np.float32))
        accelerations(self.x, self.m, self.a)

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            kick(self.v, self.a, 0.5 * DT)
            drift(self.x, self.v, DT)
            accelerations(self.x, self.m, self.a)
            kick(self.v, self.a, 0.5 * DT)

    def energy(self) -> float:
        return float(energy(self.x, self.v, self.m))

    def picture(self, size: int) -> Any:
        """The light of the stars, seen from above."""
        x = self.x.to_numpy()
        light, _, _ = np.histogram2d(-x[:, 1], x[:, 0], bins=size, range=[[-1.3, 1.3], [-1.3, 1.3]])
        blue = np.clip(np.log1p(light) / 2.2, 0, 1)[..., None]
        return (blue ** [1.1, 0.8, 0.5] * (255, 240, 255)).astype(np.uint8)


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--stars", type=int, default=4096)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/nbody.png"))
    args = ap.parse_args()
    qd.init()
    stars = Stars(args.stars)
    before = stars.energy()
    frames = [stars.picture(256)]
    for frame in range(4):
        stars.advance(250)
        frames.append(stars.picture(256))
        print(f"\rstep {250 * (frame + 1)} of 1000", end="", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(frames, axis=1)).save(args.out)
    print(f"\nenergy {before:.5f} at the start, {stars.energy():.5f} at the end; wrote {args.out}")


if __name__ == "__main__":
    main()
