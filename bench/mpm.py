"""mpm88 (examples/mpm88.py, 8,192 particles) against Quadrants, which runs the same kernel, and
hand-written C with OpenMP of the same algorithm, in one run.

    mpm.py [--json FILE] [--repeat N] [--particles N] [--quadrants INTERPRETER]

Each takes turns in a process of its own; a time is the shortest of a turn of 100 steps, as CPU
time of the process with all its threads, so that other programs on the machine count little. A
ratio above 1 means that Ingot is faster than that peer. The C is compiled with `gcc -O3
-march=native -ffast-math -fopenmp` and adds to the grid by `omp atomic`, as the kernels do.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import types

import _peers

EXAMPLE = _peers.HERE.parent / "examples" / "mpm88.py"
STEPS = 100
C = """
#include <string.h>
enum { G = 128, WALL = 3 };
void step(int n, float (*restrict x)[2], float (*restrict v)[2], float (*restrict c)[2][2],
          float *restrict j, float (*restrict gv)[G][2], float (*restrict gm)[G], float gravity) {
    const float dx = 1.0f / G, dt = 2e-4f, vol = dx * 0.5f * dx * 0.5f, mass = vol;
    #pragma omp parallel
    {
    #pragma omp for
    for (int a = 0; a < G; a++) {
        memset(gv[a], 0, sizeof gv[a]);
        memset(gm[a], 0, sizeof gm[a]);
    }
    #pragma omp for
    for (int p = 0; p < n; p++) {
        int base[2];
        float fx[2], w[3][2];
        for (int k = 0; k < 2; k++) {
            base[k] = (int)(x[p][k] * G - 0.5f);
            fx[k] = x[p][k] * G - base[k];
            w[0][k] = 0.5f * (1.5f - fx[k]) * (1.5f - fx[k]);
            w[1][k] = 0.75f - (fx[k] - 1.0f) * (fx[k] - 1.0f);
            w[2][k] = 0.5f * (fx[k] - 0.5f) * (fx[k] - 0.5f);
        }
        float s = -dt * 4.0f * 400.0f * vol * (j[p] - 1.0f) * G * G;
        float m00 = s + mass * c[p][0][0], m01 = mass * c[p][0][1];
        float m10 = mass * c[p][1][0], m11 = s + mass * c[p][1][1];
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                float d0 = (a - fx[0]) * dx, d1 = (b - fx[1]) * dx, wt = w[a][0] * w[b][1];
                float *to = gv[base[0] + a][base[1] + b];
                float f0 = wt * (mass * v[p][0] + m00 * d0 + m01 * d1);
                float f1 = wt * (mass * v[p][1] + m10 * d0 + m11 * d1);
                #pragma omp atomic
                to[0] += f0;
                #pragma omp atomic
                to[1] += f1;
                #pragma omp atomic
                gm[base[0] + a][base[1] + b] += wt * mass;
            }
    }
    #pragma omp for
    for (int a = 0; a < G; a++)
        for (int b = 0; b < G; b++)
            if (gm[a][b] > 0.0f) {
                float u = gv[a][b][0] / gm[a][b], t = gv[a][b][1] / gm[a][b] - dt * gravity;
                if ((a < WALL && u < 0.0f) || (a > G - WALL && u > 0.0f)) u = 0.0f;
                if ((b < WALL && t < 0.0f) || (b > G - WALL && t > 0.0f)) t = 0.0f;
                gv[a][b][0] = u;
                gv[a][b][1] = t;
            }
    #pragma omp for
    for (int p = 0; p < n; p++) {
        int base[2];
        float fx[2], w[3][2], nv[2] = {0}, nc[2][2] = {{0}};
        for (int k = 0; k < 2; k++) {
            base[k] = (int)(x[p][k] * G - 0.5f);
            fx[k] = x[p][k] * G - base[k];
            w[0][k] = 0.5f * (1.5f - fx[k]) * (1.5f - fx[k]);
            w[1][k] = 0.75f - (fx[k] - 1.0f) * (fx[k] - 1.0f);
            w[2][k] = 0.5f * (fx[k] - 0.5f) * (fx[k] - 0.5f);
        }
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) {
                float d0 = (a - fx[0]) * dx, d1 = (b - fx[1]) * dx, wt = w[a][0] * w[b][1];
                const float *g = gv[base[0] + a][base[1] + b];
                float k = 4.0f * wt * G * G;
                for (int e = 0; e < 2; e++) {
                    nv[e] += wt * g[e];
                    nc[e][0] += k * g[e] * d0;
                    nc[e][1] += k * g[e] * d1;
                }
            }
        for (int e = 0; e < 2; e++) {
            v[p][e] = nv[e];
            x[p][e] += dt * nv[e];
            c[p][e][0] = nc[e][0];
            c[p][e][1] = nc[e][1];
        }
        j[p] *= 1.0f + dt * (nc[0][0] + nc[1][1]);
    }
    }
}
"""


# ---- a peer's process: prints its mean place, then a time for each line it is sent -------------


def example(module):
    """examples/mpm88.py with `module` for Ingot."""
    text = EXAMPLE.read_text().replace("import ingot as qd", f"import {module} as qd")
    text = text.replace("from PIL import Image\n", "")
    text = text.replace("Literal[1]", "1").replace("Literal[2]", "2")  # for type checkers
    path = pathlib.Path(sys.argv[3]) / f"mpm88_{module}.py"
    path.write_text(text)
    sys.path.insert(0, str(path.parent))
    return __import__(path.stem)


def language_peer(module, particles):
    made = example(module)
    made.qd.init(arch=made.qd.cpu)
    fluid = made.Fluid(particles)

    def advance(steps):
        fluid.advance(steps)
        made.qd.sync()

    return advance, lambda: fluid.x.to_numpy()


def c_peer(particles):
    import numpy as np

    library = _peers.compile_c(C)
    x = (np.random.default_rng(1).random((particles, 2)) * 0.4 + (0.2, 0.3)).astype(np.float32)
    s = types.SimpleNamespace(
        v=np.zeros((particles, 2), np.float32), c=np.zeros((particles, 2, 2), np.float32),
        j=np.ones(particles, np.float32), gv=np.zeros((128, 128, 2), np.float32),
        gm=np.zeros((128, 128), np.float32))
    arrays = [_peers.pointer(a) for a in (x, s.v, s.c, s.j, s.gv, s.gm)]
    gravity = _peers.ctypes.c_float(9.8)

    def advance(steps):
        for _ in range(steps):
            library.step(particles, *arrays, gravity)

    return advance, lambda: x if s else None


def peer(name, particles):
    advance, places = c_peer(particles) if name == "c" else language_peer(name, particles)
    advance(STEPS)
    say(places().mean(axis=0).tolist())
    for _ in sys.stdin:
        before = time.process_time(), time.perf_counter()
        advance(STEPS)
        say([time.process_time() - before[0], time.perf_counter() - before[1]])


def say(x):
    """Marked, as a peer may print lines of its own."""
    print("=" + json.dumps(x), flush=True)


# ---- the run -----------------------------------------------------------------------------------


def main():
    args = _peers.arguments(__doc__, particles={"type": int, "default": 8192}, quadrants={})
    pythons = {"ingot": sys.executable, "c": sys.executable,
               "quadrants": args.quadrants or _peers.venv("quadrants")}
    with _peers.tempfile.TemporaryDirectory() as folder:
        procs = {n: subprocess.Popen(
            [p, __file__, "--peer", n, folder, str(args.particles)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"})
            for n, p in pythons.items() if p}
        rows = measure(procs, args)
    columns = [("peer", "peer", ""), ("cpu_us", "CPU us/step", ".1f"), ("wall_us", "us/step", ".1f"),
               ("ratio", "CPU / Ingot's", ".2f")]
    _peers.show(f"mpm88, {args.particles} particles", columns, rows)
    _peers.write(args.json, "mpm", rows)


def heard(process):
    for line in process.stdout:
        if line.startswith("="):
            return json.loads(line[1:])
    return None


def measure(procs, args):
    means = {}
    for name, p in list(procs.items()):
        means[name] = heard(p)
        if means[name] is None:
            print(f"not run: {name}", file=sys.stderr)
            del procs[name], means[name]
    for name, mean in means.items():
        assert all(abs(a - b) < 1e-4 for a, b in zip(mean, means["ingot"])), means
    best = {n: [float("inf")] * 2 for n in procs}
    for _ in range(args.repeat):
        for name, p in procs.items():
            p.stdin.write("go\n")
            p.stdin.flush()
            best[name] = [min(a, b) for a, b in zip(best[name], heard(p))]
    for p in procs.values():
        p.stdin.close()
        p.wait()
    return [{"peer": n, "cpu_us": c / STEPS * 1e6, "wall_us": w / STEPS * 1e6,
             "ratio": c / best["ingot"][0]} for n, (c, w) in best.items()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2], int(sys.argv[4]))
    else:
        main()
