"""Heat in a plate that is cut into strips, one for each MPI rank.

    mpirun -n 4 python examples/mpi_heat.py [--rows 512] [--steps 400] [--out out]

Each rank has its rows and one row of each neighbour above and below. After a step the outermost rows are
exchanged: mpi4py sends from and receives into the memory of the ndarrays, nothing is copied on the way. Rank 0
compares the plate with one that it computed alone (--check) and writes a picture. --scaling prints a line for a
table of weak scaling: the rows are those of one rank then.
"""

import argparse
import pathlib
import time
from typing import Any, Literal

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found, import-untyped, unused-ignore]

import ingot as qd

Plane = qd.types.NDArray[qd.f32, Literal[2]]


@qd.kernel
def step(now: Plane, after: Plane, first: qd.i32, last: qd.i32) -> None:
    """Rows first to last - 1; the others are the neighbours' or the fixed edge."""
    for i in range(first, last):
        for j in range(1, now.shape[1] - 1):
            around = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
            after[i, j] = now[i, j] + 0.24 * (around - 4.0 * now[i, j])


def start(rows: int, columns: int) -> Any:
    """The whole plate at the beginning: cold, with two hot discs."""
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32)
    discs = [(rows * 0.3, columns * 0.3, columns * 0.18), (rows * 0.7, columns * 0.65, columns * 0.1)]
    plate = np.zeros((rows, columns), np.float32)
    for a, b, r in discs:
        plate[np.hypot(y - a, x - b) < r] = 1
    return plate


def strip_of(rank: int, ranks: int, rows: int) -> tuple[int, int]:
    return rows * rank // ranks, rows * (rank + 1) // ranks


def exchange(comm: Any, a: Any, above: int, below: int) -> None:
    """The neighbours' rows next to ours."""
    comm.Sendrecv(a[1], above, recvbuf=a[-1], source=below)
    comm.Sendrecv(a[-2], below, recvbuf=a[0], source=above)


def simulate(comm: Any, plate: Any, steps: int) -> tuple[Any, float]:
    """This rank's rows after the steps, and the seconds that they took."""
    rank, ranks = comm.Get_rank(), comm.Get_size()
    begin, end = strip_of(rank, ranks, len(plate))
    above = rank - 1 if rank else MPI.PROC_NULL
    below = rank + 1 if rank + 1 < ranks else MPI.PROC_NULL
    shape = (end - begin + 2, plate.shape[1])
    now, after = qd.ndarray(qd.f32, shape), qd.ndarray(qd.f32, shape)
    a, b = np.asarray(now), np.asarray(after)  # these share their memory
    a[1:-1] = plate[begin:end]
    b[:] = a
    first, last = 1 + (begin == 0), end - begin + 1 - (end == len(plate))
    step(now, after, first, first)  # compiles; no row is computed
    comm.Barrier()
    clock = time.perf_counter()
    for _ in range(steps):
        exchange(comm, a, above, below)
        step(now, after, first, last)
        now, after, a, b = after, now, b, a
    comm.Barrier()
    return a[1:-1].copy(), time.perf_counter() - clock


def gather(comm: Any, mine: Any, rows: int) -> Any:
    parts = comm.gather(mine, root=0)
    return np.concatenate(parts) if comm.Get_rank() == 0 else np.empty((0, 0), np.float32)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=512)
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--out", default="out")
    options.add_argument("--check", action="store_true")
    options.add_argument("--scaling", action="store_true")
    args = options.parse_args()
    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    qd.init(cpu_max_num_threads=1)
    rows = args.rows * ranks if args.scaling else args.rows
    plate = start(rows, 512)
    mine, seconds = simulate(comm, plate, args.steps)
    whole = gather(comm, mine, rows)
    if rank:
        return
    cells = whole.size * args.steps / seconds / 1e6
    print(f"ranks {ranks} rows {rows} steps {args.steps} seconds {seconds:.3f} million cells per second {cells:.1f}")
    if args.check:
        alone, _ = simulate(MPI.COMM_SELF, plate, args.steps)
        assert np.array_equal(alone, whole), abs(alone - whole).max()
        print("equal to one process")
    if not args.scaling:
        out = pathlib.Path(args.out)
        out.mkdir(exist_ok=True)
        qd.tools.imwrite(whole, out / "mpi_heat.png", cmap="fire", vmin=0, vmax=1, origin="upper")


if __name__ == "__main__":
    main()
