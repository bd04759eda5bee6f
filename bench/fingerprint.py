"""Fingerprints against the ways in which others make a key out of a Python value: GT4Py's
strict fingerprinter, pickle + XXH3-128, joblib.hash, dask's tokenize and dill + XXH3-128.

    fingerprint.py [--json FILE] [--repeat N] [--venv DIR | --no-peers]

The peers come from PyPI into a virtual environment of the benchmark's own (--venv, default
build/bench-fingerprint), where this script runs itself again. Times are the best of N, in
turns, in one process; the columns are ratios to Ingot's, and lines at the end say whether any
row is slower than pickle. A peer that cannot be installed or that fails on a value says so.

Equal arrays have one fingerprint, whatever their order in memory. pickle keeps that order: an
array and its copy in Fortran's order have two texts, so two keys. What does the same work as
Ingot is pickle of a copy in the order of C (the column "C order"); pickle of the array as it lies
is shown too.
"""

import dataclasses
import os
import pathlib
import pickle
import subprocess
import sys
import time

import _peers

PEERS = ["gt4py", "joblib", "dask", "dill", "xxhash", "numpy", "pandas", "scipy", "pyarrow"]
INSIDE = "INGOT_BENCH_FINGERPRINT"


# ---- values ----------------------------------------------------------------------------------


@dataclasses.dataclass
class Node:
    name: str
    value: int
    children: list


class Call:
    """Stands in for GT4Py's IR when GT4Py is not there."""

    def __init__(self, fun, args):
        self.fun, self.args, self.location = fun, args, None


class Ref:
    def __init__(self, id):
        self.id, self.location = id, None


def ir_classes():
    try:
        from gt4py.next.iterator import ir
    except ImportError:
        return Ref, Call
    return (lambda id: ir.SymRef(id=id)), (lambda fun, args: ir.FunCall(fun=fun, args=args))


def ir_tree(depth, fresh=True):
    """A binary tree of calls; with fresh=False both arguments are the same object."""
    ref, call = ir_classes()
    count = iter(range(1 << 30))

    def build(level):
        if level == 0:
            return ref(f"s{next(count)}")
        left = build(level - 1)
        return call(ref(f"op{next(count)}"), [left, build(level - 1) if fresh else left])

    return build(depth)


def ir_shared():
    """Many calls over few leaves."""
    ref, call = ir_classes()
    leaves = [ref(f"s{k}") for k in range(8)]
    nodes = list(leaves)
    for k in range(800):
        nodes.append(call(leaves[k % 8], [nodes[-1 - k % 4], leaves[(k * 5) % 8]]))
    return call(leaves[0], nodes[-400:])


def ir_chain(depth):
    ref, call = ir_classes()
    node = ref("x")
    for k in range(depth):
        node = call(ref(f"f{k % 16}"), [node])
    return node


def data_tree(depth):
    kids = [data_tree(depth - 1) for _ in range(2)] if depth else []
    return Node(f"n{depth}", depth * 7, kids)


def values():
    rows = {
        "IR tree, distinct nodes": (ir_tree(9), 30),
        "IR, mostly shared": (ir_shared(), 50),
        "IR chain, depth 5,000": (ir_chain(5000), 5),
        "dict, 10k entries": ({f"key{k}": k for k in range(10_000)}, 50),
        "list, 1M ints": (list(range(1_000_000)), 3),
        "dataclass tree, 2,047 nodes": (data_tree(10), 50),
        "set, 10k str": ({f"item{k}" for k in range(10_000)}, 50),
    }
    try:
        import numpy
    except ImportError:
        return rows
    rows["ndarray, 1M int32"] = (numpy.arange(1_000_000, dtype="int32"), 30)
    rows["bytes, 4 MB"] = (bytes(range(256)) * 15_625, 30)
    rows.update(strided(numpy))
    rows.update(libraries(numpy))
    return rows


def strided(np):
    """Views of 4 to 8 MB: what pickle copies first, or not at all."""
    flat = np.arange(2_000_000, dtype="int32")
    wide = np.arange(1_000_000, dtype="float64")
    return {
        "every second int32": (flat[::2], 30),
        "backwards": (flat[:1_000_000][::-1], 30),
        "every second column": (flat.reshape(1000, 2000)[:, ::2], 30),
        "every third byte": (np.zeros(3_000_000, "int8")[::3], 30),
        "Fortran order, int32": (np.asfortranarray(flat[:1_000_000].reshape(1000, 1000)), 30),
        "Fortran order, float64": (np.asfortranarray(wide.reshape(1000, 1000)), 30),
        "Fortran order, tall": (np.asfortranarray(wide.reshape(100_000, 10)), 30),
        "Fortran order, int8": (np.asfortranarray(np.ones((1000, 1000), "int8")), 30),
        "Fortran order, int16": (np.asfortranarray(np.ones((1000, 1000), "int16")), 30),
        "Fortran order, complex": (np.asfortranarray(np.ones((500, 500), "complex128")), 30),
        "Fortran order, 1,024 x 1,024": (np.asfortranarray(flat[: 1 << 20].reshape(1024, 1024)), 30),
        "points, 3 x 300k": (wide[:900_000].reshape(300_000, 3).T, 30),
        "three axes backwards": (flat[:1_000_000].reshape(100, 100, 100).T, 30),
        "three axes turned": (flat[:1_000_000].reshape(100, 100, 100).transpose(2, 0, 1), 30),
        "long double": (np.arange(500_000, dtype="longdouble"), 30),
        "records": (np.zeros(300_000, dtype=[("a", "i1"), ("b", "f8")]), 30),
    }


def libraries(np):
    rows = {}
    try:
        import pandas

        rows["frame, 100k x 4"] = (pandas.DataFrame({
            "a": np.arange(100_000), "b": np.arange(100_000) / 7, "c": np.arange(100_000) % 5 == 0,
            "t": pandas.date_range("2020", periods=100_000, freq="s")}), 30)
    except ImportError as e:
        print(f"not run: pandas ({e})")
    try:
        import scipy.sparse

        rows["csr, 1M values"] = (scipy.sparse.random(
            10_000, 10_000, 0.01, format="csr", random_state=1), 30)
    except ImportError as e:
        print(f"not run: scipy ({e})")
    try:
        import pyarrow

        rows["Arrow table, 1M x 2"] = (pyarrow.table({
            "a": np.arange(1_000_000), "b": np.arange(1_000_000) / 3}), 30)
    except ImportError as e:
        print(f"not run: pyarrow ({e})")
    return rows


# ---- peers ------------------------------------------------------------------------------------


def methods():
    import ingot

    out = {"ingot": ingot.fingerprint}
    try:
        from gt4py.next import fingerprinting

        out["gt4py"] = fingerprinting.strict_fingerprinter
    except ImportError as e:
        print(f"not run: GT4Py ({e})")
    try:
        import xxhash

        out["pickle"] = lambda v: xxhash.xxh3_128_hexdigest(pickle.dumps(v, 5))
        out["C order"] = lambda v: xxhash.xxh3_128_hexdigest(pickle.dumps(v.copy(order="C"), 5))
        out["raw"] = lambda v: xxhash.xxh3_128_hexdigest(v)
        import dill

        out["dill"] = lambda v: xxhash.xxh3_128_hexdigest(dill.dumps(v, 5))
    except ImportError as e:
        print(f"not run: pickle and dill ({e})")
    try:
        import joblib

        out["joblib"] = joblib.hash
    except ImportError as e:
        print(f"not run: joblib ({e})")
    try:
        from dask.base import tokenize

        out["dask"] = tokenize
    except ImportError as e:
        print(f"not run: dask ({e})")
    return out


def attempt(call, value):
    """None, or why it fails; a call that takes long is not repeated much."""
    try:
        before = time.perf_counter()
        call(value)
        return time.perf_counter() - before
    except Exception as e:  # a peer's refusal, of any class
        return type(e).__name__


def measure(value, repeat, calls):
    """Each is called twice in its turn: what ran before it, which may have emptied the caches of
    the CPU, is then itself for all of them."""
    first = {name: attempt(call, value) for name, call in calls.items()}
    works = {n: c for n, c in calls.items() if isinstance(first[n], float)}
    slow = {n for n in works if first[n] > 0.3}
    shortest = {n: first[n] for n in works}
    for turn in range(repeat):
        for name, call in works.items():
            if name in slow and turn >= 2:
                continue
            shortest[name] = min(shortest[name], _peers.best(lambda: call(value), 2))
    return {n: shortest.get(n, first[n]) for n in calls}


def row_of(label, value, repeat, calls):
    flags = getattr(value, "flags", None)
    raw = isinstance(value, bytes) or getattr(flags, "c_contiguous", False)
    turned = getattr(flags, "c_contiguous", True) is False
    used = {n: c for n, c in calls.items() if {"raw": raw, "C order": turned}.get(n, True)}
    times = measure(value, repeat, used)
    ours = times["ingot"]
    row = {"value": label, "ingot_ms": ours * 1e3}
    for name, t in times.items():
        if name != "ingot":
            row[name] = f"{t / ours:.1f}" if isinstance(t, float) else t
            row[name + "_ms"] = t * 1e3 if isinstance(t, float) else None
    return row


# ---- memory -------------------------------------------------------------------------------------


MEMORY = """
import sys, gc, re
sys.path[:0] = {path!r}
import fingerprint as bench, ingot
def status(key):
    return int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
ingot.fingerprint(bench.data_tree(3))
value, objects = {value}
gc.collect()
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again
before = status("VmRSS")
ingot.fingerprint(value)
print((status("VmHWM") - before) * 1024 / objects)
"""
MEMORY_VALUES = {
    "list of 2M ints": "(list(range(2_000_000)), 2_000_001)",
    "nested tuples, depth 1M": "(bench.nested(1_000_000), 1_000_001)",
    "dict of 1M": "({f'k{k}': k for k in range(1_000_000)}, 2_000_001)",
    "set of 1M str": "({f'k{k}' for k in range(1_000_000)}, 1_000_001)",
    "dataclass tree, 262,143 nodes": "(bench.data_tree(17), 262_143 * 4)",
    "shared tuples, 1M": "((lambda t: (t, t))(tuple((k,) for k in range(1_000_000))), 2_000_001)",
}


def nested(n):
    value = ()
    for _ in range(n):
        value = (value,)
    return value


def memory():
    """Bytes of extra peak memory per visited object, each in a fresh process."""
    rows = []
    for label, value in MEMORY_VALUES.items():
        text = MEMORY.format(path=sys.path, value=value)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        per = float(done.stdout) if done.returncode == 0 else None
        if per is None:
            print(f"not run: memory of {label}: {done.stderr.strip().splitlines()[-1:]}")
        rows.append({"value": label, "bytes": per})
    return rows


# ---- running ------------------------------------------------------------------------------------


def inside_venv(folder):
    """Makes the environment if need be and runs this script in it; None when that fails."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for peer in PEERS:
            done = subprocess.run([str(python), "-m", "pip", "install", "-q", peer])
            if done.returncode:
                print(f"not installed: {peer}")
    import ingot

    home = str(pathlib.Path(ingot.__file__).resolve().parent.parent)
    loaded = pathlib.Path(ingot.__file__).parent.parent
    env = dict(os.environ, PYTHONPATH=f"{loaded}{os.pathsep}{home}", **{INSIDE: "1"})
    return subprocess.run([str(python), *sys.argv], env=env).returncode


def slower_than(peer, otherwise, rows):
    """The rows in which a peer, or where it was not run the other one, takes less time."""
    found = []
    for r in rows:
        other = r.get(f"{peer}_ms") or r.get(f"{otherwise}_ms")
        if other and other < r["ingot_ms"]:
            found.append(f"{r['value']} ({other / r['ingot_ms']:.2f})")
    return ", ".join(found) or "none"


def main():
    default = _peers.HERE.parent / "build" / "bench-fingerprint"
    args = _peers.arguments(
        __doc__, venv={"type": pathlib.Path, "default": default},
        no_peers={"action": "store_true"}, memory={"action": "store_true"},
    )
    if INSIDE not in os.environ and not args.no_peers:
        raise SystemExit(inside_venv(args.venv))
    sys.setrecursionlimit(3000)
    calls = methods()
    rows = [row_of(n, v, min(r, args.repeat), calls) for n, (v, r) in values().items()]
    columns = [("value", "", ""), ("ingot_ms", "Ingot ms", ".3f")]
    columns += [(n, n, "") for n in calls if n != "ingot"]
    _peers.show("fingerprint: time as a multiple of Ingot's", columns, rows)
    print(f"slower than pickle + XXH3-128: {slower_than('C order', 'pickle', rows)}")
    print(f"slower than pickle that keeps the order of memory: {slower_than('pickle', None, rows)}")
    if args.memory:
        extra = memory()
        _peers.show("memory per visited object", [("value", "", ""), ("bytes", "bytes", ".1f")], extra)
        rows += extra
    _peers.write(args.json, "fingerprint", rows)


if __name__ == "__main__":
    main()
