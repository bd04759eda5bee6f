"""What kernels on other processes cost against one process, by engine, and weak scaling of examples/mpi_heat.py.

    python bench/engines.py [--rounds 3] [--workers 2] [--json FILE] [engine ...]

Per engine: `start`, the seconds until workers exist and each has run a kernel (its code is on disk); `job`, the microseconds that one
job of no work takes beyond the launch in one process; `speed`, one process' time for 64 jobs of about 3 ms, one thread each, by the
engine's. Best of the rounds. Engines that are not installed are left out, and named. For MPI: `mpirun -n 1, 2, 4`, 4096 rows of 512 cells
per rank, cells per second per rank against one rank's. More ranks than cores share them.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS, STEPS, NONE = 64, 3000, 0

MODULE = """
import numpy as np
import ingot as qd

@qd.kernel
def decay(x: qd.types.ndarray(qd.f32, 1), steps: qd.i32) -> qd.f32:
    total = 0.0
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(steps):
            v = v * 0.999 + 0.001
        total += v
    return total

DATA = np.ones(1 << 15, np.float32)
ready = False

def job(steps):
    global ready
    if not ready:
        qd.init(cpu_max_num_threads=1)
        ready = True
    return decay(DATA, steps)
"""


def alone(work, _workers):
    yield lambda args: [work.job(a) for a in args]


def multiprocessing_by(method):
    def engine(work, workers):
        import multiprocessing

        with multiprocessing.get_context(method).Pool(workers) as pool:
            yield lambda args: pool.map(work.job, args, chunksize=1)
    return engine


def joblib(work, workers):
    from joblib import Parallel, delayed

    with Parallel(n_jobs=workers, batch_size=1) as parallel:
        yield lambda args: parallel(delayed(work.job)(a) for a in args)


def dask(work, workers):
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield lambda args: client.gather(client.map(work.job, args, pure=False))


def ray(work, workers):
    import ray as engine

    engine.init(num_cpus=workers, include_dashboard=False, log_to_driver=False,
                runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})
    remote = engine.remote(work.job)
    yield lambda args: engine.get([remote.remote(a) for a in args])
    engine.shutdown()


ENGINES = {"one process": (alone, None)}
ENGINES |= {f"multiprocessing, {m}": (multiprocessing_by(m), None) for m in ("fork", "spawn", "forkserver")}
ENGINES |= {"joblib": (joblib, "joblib"), "Dask": (dask, "distributed"), "Ray": (ray, "ray")}


def seconds(call, *args):
    clock = time.perf_counter()
    call(*args)
    return time.perf_counter() - clock


def measure(name, workers):
    """One round of an engine, in a process of its own: see the page's top."""
    import engine_work as work

    engine = contextlib.contextmanager(ENGINES[name][0])
    clock = time.perf_counter()
    with engine(work, workers) as run:
        run([1] * 4 * workers)
        start = time.perf_counter() - clock
        run([STEPS] * 2 * workers)
        print(json.dumps({"start": start, "empty": min(seconds(run, [NONE] * JOBS) for _ in range(3)) / JOBS,
                          "work": min(seconds(run, [STEPS] * JOBS) for _ in range(3))}), flush=True)


def rounds_of(name, args, env):
    command = [sys.executable, __file__, "--child", name, "--workers", str(args.workers)]
    found = []
    for _ in range(args.rounds):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: min(row[key] for row in found) for key in found[0]}


def scaling(args, env):
    """Cells per second of 1, 2 and 4 ranks, in millions: the best of the rounds."""
    if not (importlib.util.find_spec("mpi4py") and shutil.which("mpirun")):
        print("not installed: mpi4py, mpirun")
        return {}
    env = {**env, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    best = {}
    for _ in range(args.rounds):
        for ranks in (1, 2, 4):
            idle = ["--mca", "mpi_yield_when_idle", str(int(ranks > (os.cpu_count() or 1)))]
            command = ["mpirun", "--oversubscribe", *idle, "-n", str(ranks), sys.executable, str(ROOT / "examples" / "mpi_heat.py"),
                       "--rows", "4096", "--steps", "100", "--scaling"]
            out = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=600).stdout
            best[ranks] = max(best.get(ranks, 0), float(out.split()[-1]))
    return best


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--json")
    options.add_argument("--child", help=argparse.SUPPRESS)
    options.add_argument("engines", nargs="*")
    args = options.parse_args()
    if args.child:
        return measure(args.child, args.workers)
    with tempfile.TemporaryDirectory(prefix="ingot-engines-") as folder:
        pathlib.Path(folder, "engine_work.py").write_text(MODULE)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")])),
               "INGOT_CACHE_DIR": os.path.join(folder, "cache"), "RAY_USAGE_STATS_ENABLED": "0"}
        wanted = ["one process", *(n for n in ENGINES if n in args.engines or (not args.engines and n != "one process"))]
        found = {}
        for name in wanted:
            module = ENGINES[name][1]
            if module and not importlib.util.find_spec(module):
                print(f"not installed: {module}")
                continue
            row = found[name] = rounds_of(name, args, env)
            one = found["one process"]
            print(f"{name:28} start {row['start']:6.2f} s   job {1e6 * (row['empty'] - one['empty']):8.0f} us   "
                  f"speed {one['work'] / row['work']:5.2f}", flush=True)
        ranks = scaling(args, env) if not args.engines or "MPI" in args.engines else {}
        for n, cells in ranks.items():
            print(f"MPI, {n} rank(s) {cells:12.1f} million cells/s   per rank {cells / n / ranks[1]:5.2f} of one rank's")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"workers": args.workers, "engines": found, "mpi": ranks}, indent=1) + "\n")


if __name__ == "__main__":
    main()
