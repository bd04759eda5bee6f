"""Graph kernels against a Python loop over kernels, on Ingot and on Quadrants, in one run.

    graph.py [--json FILE] [--repeat N] [--quadrants-python PATH]

Rows: a do-while with three small tasks (cost per task), conjugate gradients, and a relaxation
of three stages until it has converged, each as a Python loop that reads the flag after every
round and as one graph kernel; then two serialised sections side by side and one after the
other (Ingot only: the peer runs them in turn). Times are microseconds per iteration.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import _peers

PROGRAM = '''
import json, sys, time
import numpy as np
import {module} as qd

qd.init({init})
A = qd.types.ndarray(qd.f32, 1)
S = qd.types.ndarray(qd.f32, 0)
F = qd.types.ndarray(qd.i32, 0)
N = 256

@qd.func
def three(a: qd.template(), c: qd.template()):
    for i in range(16):
        a[i] = a[i] + 1.0
    for i in range(16):
        a[i] = a[i] * 0.5
    for i in range(1):
        c[()] = c[()] - 1

@qd.kernel(graph=True)
def small_graph(a: A, c: F):
    while qd.graph.do_while(c):
        three(a, c)

@qd.kernel
def small_step(a: A, c: F):
    three(a, c)

# Conjugate gradients for a tridiagonal system.
@qd.func
def cg_round(x: qd.template(), r: qd.template(), p: qd.template(), q: qd.template(),
             pq: qd.template(), rr: qd.template(), rn: qd.template(), go: qd.template(), left: qd.template()):
    for i in range(N):
        v = 2.1 * p[i]
        if i > 0:
            v -= p[i - 1]
        if i < N - 1:
            v -= p[i + 1]
        q[i] = v
    for i in range(1):
        pq[()] = 0.0
        rn[()] = 0.0
    for i in range(N):
        pq[()] += p[i] * q[i]
    for i in range(N):
        a = rr[()] / (pq[()] + 1e-30)
        x[i] += a * p[i]
        r[i] -= a * q[i]
    for i in range(N):
        rn[()] += r[i] * r[i]
    for i in range(N):
        p[i] = r[i] + rn[()] / (rr[()] + 1e-30) * p[i]
    for i in range(1):
        rr[()] = rn[()]
        left[()] = left[()] - 1
        go[()] = 0
        if left[()] > 0:
            go[()] = 1

@qd.kernel(graph=True)
def cg_graph(x: A, r: A, p: A, q: A, pq: S, rr: S, rn: S, go: F, left: F):
    while qd.graph.do_while(go):
        cg_round(x, r, p, q, pq, rr, rn, go, left)

@qd.kernel
def cg_step(x: A, r: A, p: A, q: A, pq: S, rr: S, rn: S, go: F, left: F):
    cg_round(x, r, p, q, pq, rr, rn, go, left)

# Three stages: smooth, mix back, measure.
@qd.func
def relax_round(a: qd.template(), b: qd.template(), worst: qd.template(), go: qd.template(), left: qd.template()):
    for i in range(1, N - 1):
        b[i] = 0.5 * (a[i - 1] + a[i + 1])
    for i in range(1):
        worst[()] = 0.0
    for i in range(1, N - 1):
        qd.atomic_max(worst[()], qd.abs(b[i] - a[i]))
        a[i] = b[i]
    for i in range(1):
        left[()] = left[()] - 1
        go[()] = 0
        if left[()] > 0 and worst[()] > 1e-12:
            go[()] = 1

@qd.kernel(graph=True)
def relax_graph(a: A, b: A, worst: S, go: F, left: F):
    while qd.graph.do_while(go):
        relax_round(a, b, worst, go, left)

@qd.kernel
def relax_step(a: A, b: A, worst: S, go: F, left: F):
    relax_round(a, b, worst, go, left)

def array(n=N, fill=0.0):
    a = qd.ndarray(qd.f32, (n,))
    a.fill(fill)
    return a

def flag(v=0):
    f = qd.ndarray(qd.i32, ())
    f.fill(v)
    return f

def scalar(v=0.0):
    f = qd.ndarray(qd.f32, ())
    f.fill(v)
    return f

def once(begin, work):
    args = begin()
    before = time.perf_counter()
    work(args)
    return time.perf_counter() - before

def best(begin, work, rounds):
    once(begin, work)
    return min(once(begin, work) for _ in range({repeat})) / rounds * 1e6

def loop(step, args, go):
    while True:
        step(*args)
        if go[()] == 0:
            return

def cg_args(rounds):
    r, p = array(fill=1.0), array(fill=1.0)
    return [array(), r, p, array(), scalar(), scalar(float(N)), scalar(), flag(1), flag(rounds)]

def relax_args(rounds):
    a = qd.ndarray(qd.f32, (N,))
    a.from_numpy(np.random.default_rng(1).random(N).astype(np.float32))
    return [a, array(), scalar(), flag(1), flag(rounds)]

K = {rounds}
out = {{}}
out["small"] = dict(tasks=3,
    graph=best(lambda: [array(16), flag(K)], lambda a: small_graph(*a), K),
    python=best(lambda: [array(16), flag(K)], lambda a: loop(small_step, a, a[1]), K))
for name, make, graph, step, tasks, go in (
        ("conjugate gradients", cg_args, cg_graph, cg_step, 7, 7),
        ("relaxation", relax_args, relax_graph, relax_step, 4, 3)):
    out[name] = dict(tasks=tasks, graph=best(lambda: make(K), lambda a: graph(*a), K),
                     python=best(lambda: make(K), lambda a: loop(step, a, a[go]), K))
print(json.dumps(out))
'''

SECTIONS = '''
import json, time
import ingot as qd

qd.init()
A = qd.types.ndarray(qd.f32, 1)

@qd.func
def work(a: qd.template()):
    qd.loop_config(serialize=True)
    for i in range(2_000_000):
        a[i & 15] = a[i & 15] * 0.999 + 0.5

@qd.kernel(graph=True)
def side_by_side(a: A, b: A):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            work(a)
        with qd.graph.parallel():
            work(b)

@qd.kernel(graph=True)
def in_turn(a: A, b: A):
    work(a)
    work(b)

a, b = qd.ndarray(qd.f32, (16,)), qd.ndarray(qd.f32, (16,))
best = {"side by side": 1e9, "in turn": 1e9}
for k in range(REPEAT):
    for name, kernel in (("side by side", side_by_side), ("in turn", in_turn)):
        before = time.perf_counter()
        kernel(a, b)
        if k:
            best[name] = min(best[name], time.perf_counter() - before)
print(json.dumps(best))
'''


def measure(python, text, label):
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(text)
        done = subprocess.run([python, str(path)], capture_output=True, text=True)
    if done.returncode:
        print(f"not run: {label}: {done.stderr.strip()[-500:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    args = _peers.arguments(__doc__, quadrants_python={"help": "a Python that has Quadrants"})
    peer = args.quadrants_python or _peers.venv("quadrants")
    ours = measure(sys.executable, PROGRAM.format(module="ingot", init="", repeat=args.repeat, rounds=2000), "Ingot")
    theirs = measure(peer, PROGRAM.format(module="quadrants", init="arch=qd.cpu", repeat=3, rounds=200),
                     "Quadrants") if peer else {}
    rows = []
    for name, o in ours.items():
        t = theirs.get(name, {})
        rows.append({"row": name, "python": o["python"], "graph": o["graph"], "task": o["graph"] / o["tasks"],
                     "peer_python": t.get("python"), "peer_graph": t.get("graph"),
                     "ratio": t["graph"] / o["graph"] if t else None})
    _peers.show("microseconds per iteration", [
        ("row", "", "s"), ("python", "Python loop", ".2f"), ("graph", "graph", ".2f"), ("task", "per task", ".3f"),
        ("peer_python", "Quadrants loop", ".1f"), ("peer_graph", "Quadrants graph", ".1f"),
        ("ratio", "graph: times faster", ".1f")], rows)
    both = measure(sys.executable, SECTIONS.replace("REPEAT", str(args.repeat)), "sections")
    if both:
        both = {"row": "two serialised sections", **both, "speedup": both["in turn"] / both["side by side"]}
        print(f"two serialised sections: {both['in turn'] * 1e3:.2f} ms in turn, "
              f"{both['side by side'] * 1e3:.2f} ms side by side, {both['speedup']:.2f} times faster")
        rows.append(both)
    _peers.write(args.json, "graph", rows)


main()
