"""Gradients against those of Quadrants (dynamic loops on: ad_stack_experimental_enabled).

    grad.py [--json FILE] [--repeat N] [--threads N]

Each row is a kernel and its gradient. Times are processor time on one thread (wall time on more),
best of N rounds in which both engines take turns, each in a process of its own (INGOT_BENCH_PEER names
the Python that has quadrants; without it there are no ratios). `back/fwd` is what a backward launch
costs in forward ones; `Quadrants` its backward time by ours, forward times likewise: above 1 we are
faster. `PyTorch`, `JAX` and `Warp` are their forward and backward times by ours, where INGOT_BENCH_TORCH, INGOT_BENCH_JAX
and INGOT_BENCH_WARP name a Python that has them (_grad_torch.py, _grad_jax.py, _grad_warp.py), each after the others. The
gradients of Quadrants and ours are compared. `stacks` is what a backward launch gives to stacks, by the counter stack_bytes,
and by what Quadrants documents for its own: threads x capacity x 8 bytes a slot of f32 x values that loops carry.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

PEER = "--peer" in sys.argv
if PEER:
    import quadrants as qd
else:
    import ingot as qd

F = qd.f32
A0, A1, A2 = (qd.types.ndarray(F, n) for n in range(3))
I1 = qd.types.ndarray(qd.i32, 1)
V2 = qd.types.vector(2, F)
M2 = qd.types.matrix(2, 2, F)


@qd.kernel
def squares(x: A1, y: A0):
    for i in range(x.shape[0]):
        y[None] += x[i] * x[i]


@qd.kernel
def oscillator(x: A1, p: A1, n: qd.i32, y: A0):
    for i in range(x.shape[0]):
        a = x[i]
        v = 0.0
        for t in range(n):
            v += 0.01 * (-p[0] * a - p[1] * v)
            a += 0.01 * v
        y[None] += a * a


@qd.kernel
def ragged(x: A1, c: I1, y: A1):
    for i in range(x.shape[0]):
        a = x[i]
        for t in range(c[i]):
            a = 0.9 * a - 0.1 * a * a * a + 0.01 * x[t]
        y[i] = a


@qd.kernel
def nbody(x: A2, f: A2):
    for i in range(x.shape[0]):
        fx = 0.0
        fy = 0.0
        for j in range(x.shape[0]):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            r = 1.0 / (dx * dx + dy * dy + 0.01)
            fx += dx * r * r
            fy += dy * r * r
        f[i, 0] = fx
        f[i, 1] = fy


@qd.kernel
def matmul(a: A2, b: A2, c: A2):
    for i, j in qd.ndrange(a.shape[0], b.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@qd.kernel
def springs(x: A2, v: A2, k: A1, first: I1, second: I1, out: A2):
    for s in range(k.shape[0]):
        a = first[s]
        b = second[s]
        dx = x[b, 0] - x[a, 0]
        dy = x[b, 1] - x[a, 1]
        d = qd.sqrt(dx * dx + dy * dy + 1e-6)
        f = k[s] * (d - 0.1) / d
        out[a, 0] += 0.01 * f * dx + v[a, 0] * 0.001
        out[a, 1] += 0.01 * f * dy + v[a, 1] * 0.001
        out[b, 0] -= 0.01 * f * dx
        out[b, 1] -= 0.01 * f * dy


@qd.kernel
def scatter(x: A2, v: A2, gm: A2, gx: A2, gy: A2):
    """The transfer from particles to a grid of a material point method in 2-d."""
    for p in range(x.shape[0]):
        bx = qd.cast(x[p, 0] * 64.0 - 0.5, qd.i32)
        by = qd.cast(x[p, 1] * 64.0 - 0.5, qd.i32)
        fx = x[p, 0] * 64.0 - qd.cast(bx, F)
        fy = x[p, 1] * 64.0 - qd.cast(by, F)
        for i in qd.static(range(3)):
            for j in qd.static(range(3)):
                wx = qd.select(i == 0, 0.5 * (1.5 - fx) * (1.5 - fx),
                               qd.select(i == 1, 0.75 - (fx - 1.0) * (fx - 1.0), 0.5 * (fx - 0.5) * (fx - 0.5)))
                wy = qd.select(j == 0, 0.5 * (1.5 - fy) * (1.5 - fy),
                               qd.select(j == 1, 0.75 - (fy - 1.0) * (fy - 1.0), 0.5 * (fy - 0.5) * (fy - 0.5)))
                gm[bx + i, by + j] += wx * wy
                gx[bx + i, by + j] += wx * wy * v[p, 0]
                gy[bx + i, by + j] += wx * wy * v[p, 1]


def array(values):
    real = values.dtype == np.float32
    a = qd.ndarray(F if real else qd.i32, values.shape, needs_grad=True) if real else qd.ndarray(qd.i32, values.shape)
    a.from_numpy(values)
    return a


def rows():
    """name, kernel, arguments, loops with a bound from data, floats that loops carry and their trips"""
    rng = np.random.default_rng(0)

    def real(*shape):
        return array(rng.random(shape).astype(np.float32))

    def zero(*shape):
        return array(np.zeros(shape, np.float32))

    counts = array(rng.integers(0, 64, 1 << 15).astype(np.int32))
    ends = [array(rng.integers(0, 1 << 14, 1 << 16).astype(np.int32)) for _ in range(2)]
    inside = array((0.1 + 0.8 * rng.random((1 << 15, 2))).astype(np.float32))
    grids = [zero(64, 64) for _ in range(3)]
    return [
        ("sum of squares", squares, (real(1 << 20), zero()), 0, 0),
        ("oscillator, 200 steps", oscillator, (real(1 << 13), array(np.array([2, 0.1], np.float32)), 200, zero()), 2, 200),
        ("range(c[i])", ragged, (real(1 << 15), counts, zero(1 << 15)), 1, 64),
        ("n-body forces", nbody, (real(1 << 10, 2), zero(1 << 10, 2)), 2, 1 << 10),
        ("matrix product", matmul, (real(192, 192), real(192, 192), zero(192, 192)), 1, 192),
        ("springs", springs, (real(1 << 14, 2), real(1 << 14, 2), real(1 << 16), *ends, zero(1 << 14, 2)), 0, 0),
        ("particles to grid", scatter, (inside, real(1 << 15, 2), *grids), 0, 0),
    ]


def clock(threads):
    return time.process_time if threads == 1 else time.perf_counter


def measure(kernel, args, now, repeat):
    best = float("inf")
    for _ in range(repeat):
        start = now()
        kernel(*args)
        best = min(best, now() - start)
    return best


def stack_bytes():
    return 0 if PEER else qd.counters()["stack_bytes"]


def serve(repeat, threads):
    """Answers one line per row: times and a digest of the gradients."""
    # a bound that is an argument is outside of what Quadrants can size: it gets room for all rows
    options = {"ad_stack_experimental_enabled": True, "ad_stack_size": 1056} if PEER else {}
    qd.init(arch=qd.cpu, cpu_max_num_threads=threads, default_fp=F, **options)
    for name, kernel, args, *_ in rows():
        reals = [a for a in args if getattr(a, "grad", None) is not None]
        for a in reals:
            a.grad.fill(0.5)
        kernel(*args)
        before = stack_bytes()
        kernel.grad(*args)
        stacks = stack_bytes() - before
        sums = [float(np.abs(a.grad.to_numpy()).sum()) for a in reals]
        for a in reals:
            a.grad.fill(0.5)
        sys.stdin.readline()
        forward = measure(kernel, args, clock(threads), repeat)
        backward = measure(kernel.grad, args, clock(threads), repeat)
        print(json.dumps({"name": name, "forward": forward, "backward": backward, "sums": sums, "stacks": stacks}),
              flush=True)


def start(python, repeat, threads, *more):
    command = [python, __file__, "--serve", "--repeat", str(repeat), "--threads", str(threads), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


PEERS = {"PyTorch": "torch", "JAX": "jax", "Warp": "warp"}


def peer_times(engine, repeat):
    """{row: times} of PyTorch, JAX or Warp, on one thread."""
    python = os.environ.get(f"INGOT_BENCH_{engine.upper()}")
    if not python:
        return {}
    script = pathlib.Path(__file__).with_name(f"_grad_{engine}.py")
    lines = subprocess.run([python, script, str(repeat)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {row["name"]: row for row in map(json.loads, (line for line in lines if line.startswith("{")))}


def both(row):
    """Seconds forwards and backwards."""
    return row.get("both") or row["forward"] + row["backward"]


def answer(process):
    process.stdin.write("\n")
    process.stdin.flush()
    while (line := process.stdout.readline()) and not line.startswith("{"):
        pass
    return json.loads(line) if line else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    if args.serve:
        return serve(args.repeat, args.threads)
    peer = os.environ.get("INGOT_BENCH_PEER")
    ours = start(sys.executable, args.repeat, args.threads)
    theirs = start(peer, args.repeat, args.threads, "--peer") if peer else None
    others = {label: peer_times(engine, args.repeat) for label, engine in PEERS.items()}
    heads = "".join(f"{label:>9}" for label in PEERS)
    print(f"{'kernel':<24}{'forward ms':>12}{'backward':>10}{'back/fwd':>10}{heads}{'stacks':>9}{'theirs':>8}"
          f"{'Quadrants':>11}{'forward':>9}  gradients")
    found = []
    for name, _, _, carried, trips in rows():
        a, b = answer(ours), answer(theirs) if theirs else None
        row = {"name": name, "ours": a, "quadrants": b, "carried": carried, "trips": trips,
               "quadrants_stacks": args.threads * trips * 8 * carried}
        row |= {PEERS[label]: times.get(name) for label, times in others.items()}
        found.append(row)
        line = f"{name:<24}{1e3 * a['forward']:>12.3f}{1e3 * a['backward']:>10.3f}{a['backward'] / a['forward']:>10.2f}"
        for times in others.values():
            line += f"{both(times[name]) / both(a):>9.2f}" if name in times else f"{'-':>9}"
        line += f"{a['stacks']:>9}{row['quadrants_stacks']:>8}"
        if b:
            same = np.allclose(a["sums"], b["sums"], rtol=1e-3)
            line += f"{b['backward'] / a['backward']:>11.2f}{b['forward'] / a['forward']:>9.2f}  {'same' if same else 'DIFFER'}"
        print(line, flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
