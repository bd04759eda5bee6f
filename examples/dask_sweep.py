"""A sweep over parameters on a Dask cluster: each worker draws tiles of the picture.

    python examples/dask_sweep.py [--workers 2] [--size 512] [--out out]

Gray and Scott's reaction of two substances, for a grid of feed and kill rates: each tile is a simulation of its own. The kernel
is in this file, which the workers cannot import under its name: it is shipped to them as text, and compiled once on the whole
machine, because they share the cache.
"""

import argparse
import pathlib
import time
from typing import Any, Literal

import numpy as np

import ingot as qd

Plane = qd.types.NDArray[qd.f32, Literal[2]]


@qd.kernel
def react(u: Plane, v: Plane, u2: Plane, v2: Plane, feed: qd.f32, kill: qd.f32) -> None:
    n = u.shape[0]
    for i in range(n):
        for j in range(n):
            up, down, left, right = (i + n - 1) % n, (i + 1) % n, (j + n - 1) % n, (j + 1) % n
            lu = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]
            lv = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4.0 * v[i, j]
            r = u[i, j] * v[i, j] * v[i, j]
            u2[i, j] = u[i, j] + 0.2 * lu - r + feed * (1.0 - u[i, j])
            v2[i, j] = v[i, j] + 0.1 * lv + r - (feed + kill) * v[i, j]


def tile(feed: float, kill: float, n: int, steps: int) -> Any:
    """One simulation: how much of the second substance there is, and how many compiles of the kernel are on record."""
    qd.init(cpu_max_num_threads=1)
    u, v = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    middle = slice(n // 2 - n // 8, n // 2 + n // 8)
    v[middle, middle] = 0.5
    v += np.random.default_rng(1).random((n, n)).astype(np.float32) * 0.05
    u2, v2 = u.copy(), v.copy()
    for _ in range(steps):
        react(u, v, u2, v2, feed, kill)
        u, v, u2, v2 = u2, v2, u, v
    return v, len(qd.explain(react))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--size", type=int, default=96, help="of a tile")
    options.add_argument("--grid", type=int, default=5, help="tiles in a row")
    options.add_argument("--steps", type=int, default=3000)
    options.add_argument("--out", default="out")
    args = options.parse_args()
    import distributed  # type: ignore[import-not-found, import-untyped, unused-ignore]

    dask: Any = distributed

    feeds, kills = np.linspace(0.02, 0.06, args.grid), np.linspace(0.05, 0.065, args.grid)
    cluster = dask.LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=None)
    with cluster, dask.Client(cluster) as client:
        clock = time.perf_counter()
        jobs = [client.submit(tile, float(f), float(k), args.size, args.steps, pure=False) for f in feeds for k in kills]
        results = client.gather(jobs)
        seconds = time.perf_counter() - clock
    tiles = [image for image, _ in results]
    compiles = max(count for _, count in results)  # of the whole machine: workers share the cache
    rows = [np.concatenate(tiles[r * args.grid : (r + 1) * args.grid], axis=1) for r in range(args.grid)]
    out = pathlib.Path(args.out)
    out.mkdir(exist_ok=True)
    qd.tools.imwrite(np.concatenate(rows), out / "dask_sweep.png", cmap="ice", vmin=0, vmax=0.4, origin="upper")
    print(f"{len(tiles)} simulations on {args.workers} workers in {seconds:.2f} s; the kernel was compiled {compiles} times")


if __name__ == "__main__":
    main()
