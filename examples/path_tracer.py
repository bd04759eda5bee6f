"""A box with two balls, lit from above: light followed backwards along random paths.

Spheres stand for everything, the walls are very large ones. Each pixel follows paths of up to
eight bounces; surfaces are matt, a mirror, or glow. The more samples, the less grain:

    python examples/path_tracer.py [--size N] [--samples N] [--out FILE]
"""

import argparse
import pathlib
from typing import Any, Literal

import numpy as np
from PIL import Image

import ingot as qd

V1 = qd.types.NDArray[qd.math.vec3, Literal[1]]
V2 = qd.types.NDArray[qd.math.vec3, Literal[2]]
F1 = qd.types.NDArray[qd.f32, Literal[1]]
I1 = qd.types.NDArray[qd.i32, Literal[1]]

MATT, MIRROR, GLOW = 0, 1, 2
MOST_BOUNCES = 8
FAR = 1e9


@qd.func
def meet(origin: qd.math.vec3, along: qd.math.vec3, centre: qd.math.vec3, radius: qd.f32) -> qd.f32:
    """How far it is to the sphere, FAR if it is not met."""
    to = centre - origin
    half = to.dot(along)
    under = half * half - to.dot(to) + radius * radius
    far = FAR
    if under > 0.0:
        root = qd.sqrt(under)
        if half - root > 1e-3:
            far = half - root
        elif half + root > 1e-3:
            far = half + root
    return far


@qd.func
def scattered(normal: qd.math.vec3) -> qd.math.vec3:
    """A direction away from a matt surface, more often along the normal (Lambert)."""
    turn = 6.2831853 * qd.random(qd.f32)
    height = 2.0 * qd.random(qd.f32) - 1.0
    flat = qd.sqrt(qd.max(0.0, 1.0 - height * height))
    out = normal + qd.Vector([flat * qd.cos(turn), flat * qd.sin(turn), height])
    if out.norm_sqr() < 1e-8:
        out = normal
    return out.normalized()


@qd.kernel
def trace(centre: V1, radius: F1, colour: V1, kind: I1, light: V2, samples: qd.i32) -> None:
    for row, column in light:
        total = qd.Vector([0.0, 0.0, 0.0])
        for _ in range(samples):
            u = (column + qd.random(qd.f32)) / light.shape[1] * 2.0 - 1.0
            w = 1.0 - (row + qd.random(qd.f32)) / light.shape[0] * 2.0
            origin = qd.Vector([0.0, 0.0, 3.2])
            along = qd.Vector([0.42 * u, 0.42 * w, -1.0]).normalized()
            through = qd.Vector([1.0, 1.0, 1.0])
            going = True
            bounce = 0
            while going and bounce < MOST_BOUNCES:
                near = FAR
                hit = -1
                for k in range(radius.shape[0]):
                    d = meet(origin, along, centre[k], radius[k])
                    if d < near:
                        near = d
                        hit = k
                bounce += 1
                if hit < 0:
                    going = False
                else:
                    through *= colour[hit]
                    if kind[hit] == GLOW:
                        total += through
                        going = False
                    else:
                        origin += near * along
                        normal = (origin - centre[hit]) / radius[hit]
                        if normal.dot(along) > 0.0:
                            normal = -normal
                        if kind[hit] == MIRROR:
                            along = along - 2.0 * along.dot(normal) * normal
                        else:
                            along = scattered(normal)
        light[row, column] = total / samples


# centre, radius, colour, kind
WALL = 1000.0
SCENE = [
    ((-WALL - 1, 0, 0), WALL, (0.75, 0.2, 0.15), MATT),
    ((WALL + 1, 0, 0), WALL, (0.2, 0.35, 0.7), MATT),
    ((0, -WALL - 1, 0), WALL, (0.75, 0.75, 0.72), MATT),
    ((0, WALL + 1, 0), WALL, (0.75, 0.75, 0.72), MATT),
    ((0, 0, -WALL - 1), WALL, (0.75, 0.75, 0.72), MATT),
    ((-0.45, -0.6, -0.4), 0.4, (0.95, 0.95, 0.95), MIRROR),
    ((0.45, -0.65, 0.2), 0.35, (0.85, 0.75, 0.35), MATT),
    ((0, 1.9, 0), 1.0, (9.0, 8.4, 7.2), GLOW),
]


def render(scene: Any, size: int, samples: int) -> Any:
    """The light that arrives in each pixel."""
    n = len(scene)
    centre, colour = qd.Vector.ndarray(3, qd.f32, (n,)), qd.Vector.ndarray(3, qd.f32, (n,))
    radius, kind = qd.ndarray(qd.f32, (n,)), qd.ndarray(qd.i32, (n,))
    centre.from_numpy(np.array([s[0] for s in scene], np.float32))
    radius.from_numpy(np.array([s[1] for s in scene], np.float32))
    colour.from_numpy(np.array([s[2] for s in scene], np.float32))
    kind.from_numpy(np.array([s[3] for s in scene], np.int32))
    light = qd.Vector.ndarray(3, qd.f32, (size, size))
    trace(centre, radius, colour, kind, light, samples)
    return light.to_numpy()


def main() -> None:
    ap = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    ap.add_argument("--size", type=int, default=400)
    ap.add_argument("--samples", type=int, default=200)
    ap.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/path_tracer.png"))
    args = ap.parse_args()
    qd.init()
    light = render(SCENE, args.size, args.samples)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * np.clip(light, 0, 1) ** (1 / 2.2)).astype(np.uint8)).save(args.out)
    print(f"{args.samples} paths for each of {args.size ** 2} pixels; wrote {args.out}")


if __name__ == "__main__":
    main()
