"""A tape of many steps within a memory budget, and what a backward launch costs the host.

    tape.py [--steps N] [--cells N] [--repeat N] [--json FILE]

A wave in a string of N cells is stepped in place; the gradient of its end by its start goes back through
all steps. `memory_budget=inf` keeps what every launch found, a tenth of that the rest is made again: the
gradients must have the same bits. Times are processor time on one thread, best of N rounds that take turns.
`sized` is how often the room of stacks was looked up in 2,000 backward launches with unchanged bounds;
`host` is what a warm launch of one element costs, forwards and backwards, of a kernel without and one with a
stack: the shortest of many, taking turns, in us.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np

import ingot as qd

A1 = qd.types.ndarray(qd.f32, 1)
I1 = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def kick(x: A1, v: A1):
    for i in range(1, x.shape[0] - 1):
        bend = x[i - 1] - 2.0 * x[i] + x[i + 1]
        v[i] += 0.1 * (bend - 0.2 * x[i] * x[i] * x[i])


@qd.kernel
def drift(x: A1, v: A1):
    for i in range(x.shape[0]):
        x[i] += 0.1 * v[i]


@qd.kernel
def energy(x: A1, loss: A1):
    for _ in range(1):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * x[i]
        loss[0] = s


@qd.kernel
def ragged(x: A1, c: I1, y: A1):
    for i in range(x.shape[0]):
        a = x[i]
        for _ in range(c[i]):
            a = a * a * 0.5 + 0.1
        y[i] = a


def swing(steps, cells, budget):
    """The gradient, launches that were made, and seconds."""
    x, v, loss = (qd.ndarray(qd.f32, n, needs_grad=True) for n in (cells, cells, 1))
    x.from_numpy(np.sin(np.linspace(0, 3, cells)).astype(np.float32))
    launches, start = qd._core.counters()["launches"], time.process_time()
    with qd.ad.Tape(loss=loss, state=[x, v], memory_budget=budget):
        for _ in range(steps):
            kick(x, v)
            drift(x, v)
        energy(x, loss)
    seconds = time.process_time() - start
    return x.grad.to_numpy(), qd._core.counters()["launches"] - launches, seconds


def sizings(launches):
    """How often room was looked up in so many backward launches."""
    x, y = (qd.ndarray(qd.f32, 64, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, 64)
    c.fill(3)
    before = qd._core.counters()["launch_sized"]
    for _ in range(launches):
        ragged.grad(x, c, y)
    return qd._core.counters()["launch_sized"] - before


@qd.kernel
def square(x: A1, y: A1):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]


def launch_costs(rounds=300, calls=200):
    """{kernel: (forward, backward)} in us."""
    x, y = (qd.ndarray(qd.f32, 1, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, 1)
    found = {}
    for kernel, args in ((square, (x, y)), (ragged, (x, c, y))):
        best = [math.inf, math.inf]
        for _ in range(rounds):
            for k, launch in enumerate((kernel, kernel.grad)):
                start = time.perf_counter()
                for _ in range(calls):
                    launch(*args)
                best[k] = min(best[k], (time.perf_counter() - start) / calls * 1e6)
        found[kernel.__name__] = best
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--cells", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    qd.init(arch=qd.cpu, cpu_max_num_threads=1)
    full = (2 * args.steps + 1) * 8 * args.cells  # bytes of x and v for each launch
    budgets = {"all": math.inf, "1/10": full // 10, "1/100": full // 100}
    best, first = dict.fromkeys(budgets, math.inf), None
    for budget in budgets.values():
        swing(3, args.cells, budget)
    for _ in range(args.repeat):
        for name, budget in budgets.items():
            gradient, launches, seconds = swing(args.steps, args.cells, budget)
            first = gradient if first is None else first
            assert np.array_equal(first, gradient) and np.any(gradient), "gradients differ"
            best[name] = min(best[name], seconds)
            print(f"{name:<8}{launches:>8} launches {1e3 * seconds:>10.1f} ms{best[name] / best['all']:>8.2f} x", flush=True)
    found = {"seconds": best, "ratio": best["1/10"] / best["all"], "sized": sizings(2000),
             "host": launch_costs()}
    print(f"a tenth of the memory: {found['ratio']:.2f} x the time, the same bits; sized {found['sized']} time(s)")
    for name, (forward, backward) in found["host"].items():
        print(f"{name:<8} a launch {forward:.3f} us, backwards {backward:.3f}: {backward - forward:+.3f}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
