"""Rows of grad.py in JAX, as a user writes them: one line of JSON for each, with the processor time of a jitted
forward pass and of a jitted pass forwards and backwards (`both`) on one thread.

    _grad_jax.py REPEAT
"""

import json
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
import jax
import jax.numpy as jnp
import numpy as np


def squares(x):
    return (x * x).sum()


def oscillator(x, p):
    def step(s, _):
        a, v = s
        v = v + 0.01 * (-p[0] * a - p[1] * v)
        return (a + 0.01 * v, v), None

    (a, _), _ = jax.lax.scan(step, (x, jnp.zeros_like(x)), None, length=200)
    return (a * a).sum()


def ragged(x, c):
    """As long as the longest: JAX has no reverse mode of loops whose length the data decide."""
    def step(a, t):
        return jnp.where(t < c, 0.9 * a - 0.1 * a * a * a + 0.01 * x[t], a), None

    return jax.lax.scan(step, x, jnp.arange(64))[0].sum()


def nbody(x):
    d = x[None, :, :] - x[:, None, :]
    r = 1.0 / ((d * d).sum(-1) + 0.01)
    return (d * (r * r)[..., None]).sum()


def matmul(a, b):
    return (a @ b).sum()


def springs(x, v, k, first, second):
    d = x[second] - x[first]
    length = jnp.sqrt((d * d).sum(-1) + 1e-6)
    force = (0.01 * k * (length - 0.1) / length)[:, None] * d
    out = jnp.zeros_like(x).at[first].add(force + 0.001 * v[first])
    return out.at[second].add(-force).sum()


def rows():
    rng = np.random.default_rng(0)

    def real(*shape):
        return jnp.asarray(rng.random(shape), jnp.float32)

    counts = jnp.asarray(rng.integers(0, 64, 1 << 15))
    ends = [jnp.asarray(rng.integers(0, 1 << 14, 1 << 16)) for _ in range(2)]
    return [
        ("sum of squares", squares, (real(1 << 20),), 1),
        ("oscillator, 200 steps", oscillator, (real(1 << 13), jnp.array([2, 0.1])), 2),
        ("range(c[i])", ragged, (real(1 << 15), counts), 1),
        ("n-body forces", nbody, (real(1 << 10, 2),), 1),
        ("matrix product", matmul, (real(192, 192), real(192, 192)), 2),
        ("springs", springs, (real(1 << 14, 2), real(1 << 14, 2), real(1 << 16), *ends), 3),
    ]


def best(call, args, repeat):
    jax.block_until_ready(call(*args))
    shortest = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        jax.block_until_ready(call(*args))
        shortest = min(shortest, time.process_time() - start)
    return shortest


def main():
    repeat = int(sys.argv[1])
    for name, function, args, active in rows():
        forward = best(jax.jit(function), args, repeat)
        both = best(jax.jit(jax.value_and_grad(function, argnums=tuple(range(active)))), args, repeat)
        print(json.dumps({"name": name, "forward": forward, "both": both}), flush=True)


if __name__ == "__main__":
    main()
