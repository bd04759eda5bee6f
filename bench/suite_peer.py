"""One engine of suite.py, in a process and an interpreter of its own.

    suite_peer.py ingot|quadrants|numba|c THREADS plain|atomics

Reads lines `prepare KERNEL FILE` and `run SECONDS`, answers each with one line of JSON: the time of the
first call less that of a warm one (FILE gets the arrays after the first call), or the shortest processor
and wall time of a call within a turn. What an engine does not have it answers with null."""

import ctypes
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

import suite_rows

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-std=gnu11"]


# ---- engines: each gives a function row, arrays -> (call, reset, arrays to look at) -------------


def copies(row, inputs):
    """A function that sets the arguments of `fresh` anew."""
    pairs = [(suite_rows.plain(inputs[k]), suite_rows.plain(inputs[k]).copy()) for k in row.fresh]

    def reset():
        for a, b in pairs:
            np.copyto(a, b)

    return reset


def by_c(threads, plain):
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None

    def build(row):
        with tempfile.TemporaryDirectory(prefix="ingot-suite-") as folder:
            library = pathlib.Path(folder, "peer.so")
            flags = FLAGS + ["-fopenmp"] * (threads > 1) + ["-DPLAIN"] * plain
            source = HERE / "suite_c" / f"{row.name}.c"
            subprocess.run([*compiler.split(), *flags, "-o", str(library), str(source), "-lm"], check=True)
            return getattr(ctypes.CDLL(str(library)), row.name)

    def prepare(row, sizes, inputs):
        if not (HERE / "suite_c" / f"{row.name}.c").exists():
            return None
        held, args = [], [ctypes.c_ssize_t(n) for n in sizes]
        for x in map(suite_rows.plain, inputs):
            if isinstance(x, np.ndarray):
                args.append(ctypes.c_void_p(x.ctypes.data))
                held.append(x)
            else:
                args.append(ctypes.c_float(x) if isinstance(x, float) else ctypes.c_int(x))
        made = []

        def call():
            if not made:
                made.append(build(row))
                made[0].restype = None
            made[0](*args)

        call.held = inputs  # ctypes does not keep them
        return call, copies(row, inputs), held

    return prepare


def by_numba(threads, plain):
    import suite_numba

    suite_numba.tiny(np.zeros(4, np.float32))

    def prepare(row, sizes, inputs):
        make = suite_numba.kernels().get(row.name)
        if make is None:
            return None
        args = [np.float32(x) if isinstance(x, float) else x for x in map(suite_rows.plain, inputs)]
        return lambda: make(*args), copies(row, inputs), [a for a in args if isinstance(a, np.ndarray)]

    return prepare


def hold(qd, x):
    """An array or field of the engine for an input."""
    kinds = {"float32": qd.f32, "float64": qd.f64, "int32": qd.i32, "int64": qd.i64, "uint32": qd.u32, "uint8": qd.u8}
    array = suite_rows.plain(x)
    dtype, axes = kinds[str(array.dtype)], x.axes if isinstance(x, suite_rows.Vec) else 0
    shape, inner = array.shape[:array.ndim - axes], array.shape[array.ndim - axes:]
    kind = "field" if isinstance(x, suite_rows.Field) else "ndarray"
    if axes:
        held = getattr(qd.Vector if axes == 1 else qd.Matrix, kind)(*inner, dtype, shape=shape)
    else:
        held = getattr(qd, kind)(dtype, shape=shape)
    held.from_numpy(array)
    return held


def by_module(module):
    def start(threads, plain):
        qd = importlib.import_module(module)
        options = {} if module == "ingot" else {"offline_cache": False, "log_level": "error"}
        qd.init(arch=qd.cpu, cpu_max_num_threads=threads, **options)
        note = qd.types.ndarray(qd.f32, 1)

        @qd.kernel
        def tiny(x: note):
            for i in range(x.shape[0]):
                x[i] = 1.0

        one = qd.ndarray(qd.f32, (4,))
        tiny(one)

        def prepare(row, sizes, inputs):
            held = [hold(qd, x) if isinstance(suite_rows.plain(x), np.ndarray) else x for x in inputs]
            fields = [h for h, x in zip(held, inputs) if isinstance(x, suite_rows.Field)]
            args = [h for h, x in zip(held, inputs) if not isinstance(x, suite_rows.Field)]
            kernel, sync = None, qd.sync
            again = [(held[k], suite_rows.plain(inputs[k]).copy()) for k in row.fresh]

            def call():
                nonlocal kernel
                if kernel is None:
                    kernel = row.define(qd, *fields)
                kernel(*args)
                sync()

            def reset():
                for a, b in again:
                    a.from_numpy(b)

            return call, reset, [h for h in held if hasattr(h, "to_numpy")]

        return prepare

    return start


ENGINES = {"ingot": by_module("ingot"), "quadrants": by_module("quadrants"), "numba": by_numba, "c": by_c}


# ---- the process --------------------------------------------------------------------------------


def timed(call, reset):
    reset()
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def begin(prepare, name, path):
    """(call, reset) and the answer to `prepare`."""
    row = (suite_rows.load() | suite_rows.load(True))[name]
    sizes, inputs = row.inputs(np.random.default_rng(1))
    made = prepare(row, sizes, inputs) if prepare else None
    if made is None:
        return None, None
    call, reset, held = made
    first = timed(call, reset)[1]
    if path != "-":
        np.savez(path, *[h if isinstance(h, np.ndarray) else h.to_numpy() for h in held])
    warm = min(timed(call, reset)[1] for _ in range(3))
    return (call, reset), {"cold": max(first - warm, 0.0), "warm": warm}


def turn(call, reset, seconds):
    cpu, wall, calls, start = float("inf"), float("inf"), 0, time.perf_counter()
    while calls < 2 or time.perf_counter() - start < seconds:
        c, w = timed(call, reset)
        cpu, wall, calls = min(cpu, c), min(wall, w), calls + 1
    return {"cpu": cpu, "wall": wall}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints at start must not get in between
    prepare = ENGINES[sys.argv[1]](int(sys.argv[2]), sys.argv[3] == "plain")
    made = None
    for line in sys.stdin:
        word, *args = line.split()
        reply = None
        try:
            if word == "prepare":
                made, reply = begin(prepare, *args)
            elif made:
                reply = turn(*made, float(args[0]))
        except Exception as e:
            traceback.print_exc()
            made, reply = None, {"error": f"{type(e).__name__}: {str(e)[:400]}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
