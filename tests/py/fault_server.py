"""Runs two kernels under faults, once per line of its input, each time in a fresh fork of a process
that has nothing but imported Ingot. Started by fault_tools.py with tests/c/fault_shim.c in LD_PRELOAD.

    {"cache": dir, "k": call that fails (0: none), "error": errno, "sticky": and all after it,
     "watch": where calls count (the cache), "only": names of the calls that count, "clock": seconds,
     "no_exec": bool, "no_home": bool, "mount": f_type, "link_twice": bool, "hurry": sleep is cut short,
     "kill": seconds until it is killed, "more": how many other kernels run first, "env": {}}
    -> {"killed": true} or {"values": [...], "counters": {...}, "seen": how many calls, "calls": their names,
        "what": the one that failed, "warnings": [...]}
"""

import ctypes
import json
import linecache
import os
import select
import signal
import sys
import traceback
import warnings

import ingot as qd

SHIM = ctypes.CDLL(None)
SHIM.fault_what.restype = SHIM.fault_calls.restype = ctypes.c_char_p
SHIM.fault_seen.restype = ctypes.c_long
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
A = qd.types.ndarray(qd.f32, ndim=1)
N = 3


@qd.func
def scaled(x):
    return x * N


@qd.kernel
def fill(a: A):
    for i in range(a.shape[0]):
        a[i] = scaled(i + 0.5)


@qd.kernel
def shift(a: A, s: qd.f32) -> qd.f32:
    for i in range(a.shape[0]):
        a[i] += s
    return s


def others(n):
    """Small kernels that share one image, for caches that hold more."""
    for i in range(n):
        name = f"<other {i}>"
        text = f"@qd.kernel\ndef other{i}(a: A):\n    x{i} = 1.5\n    for i in a:\n        a[i] = x{i}\n"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        scope = {"qd": qd, "A": A}
        exec(compile(text, name, "exec"), scope)
        yield scope[f"other{i}"]


def prepare(job):
    watched = job.get("watch", job["cache"]).encode()
    os.environ["INGOT_CACHE_DIR"] = job["cache"]
    os.environ.update(job.get("env", {}))
    SHIM.fault_move_clock(ctypes.c_long(job.get("clock", 0)))
    SHIM.fault_only("".join(f" {name} " for name in job.get("only", "").split()).encode())
    if job.get("no_exec"):
        SHIM.fault_no_exec(watched)
    if job.get("hurry"):
        SHIM.fault_hurry()
    if job.get("link_twice"):
        SHIM.fault_link_twice()
    if job.get("no_home"):
        for name in ("INGOT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
            os.environ.pop(name, None)
        SHIM.fault_no_home()
    SHIM.fault_mount(ctypes.c_long(job.get("mount", 0)))
    return watched


def work(job):
    watched = prepare(job)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        SHIM.fault_arm(watched, job.get("k", 0), job.get("error", 0), job.get("sticky", 0))
        qd.init(num_compile_threads=1)
        a = qd.ndarray(qd.f32, (8,))
        for other in others(job.get("more", 0)):
            other(a)
        fill(a)
        values = [shift(a, 4), a[2]]
        seen, what, calls = SHIM.fault_seen(), SHIM.fault_what().decode(), SHIM.fault_calls().decode()
        SHIM.fault_arm(b"", 0, 0, 0)
    return {"values": values, "counters": qd._core.counters(), "seen": seen, "what": what,
            "calls": calls.split(), "warnings": [str(w.message) for w in said]}


def in_a_fork(job):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(200)
        try:
            result = work(job)
        except BaseException:
            SHIM.fault_arm(b"", 0, 0, 0)
            result = {"error": traceback.format_exc()}
        os.write(write, json.dumps(result).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as f:
        if "kill" in job and not select.select([f], [], [], job["kill"])[0]:
            os.kill(pid, signal.SIGKILL)
        data = f.read()
    _, status = os.waitpid(pid, 0)
    if data:
        return json.loads(data)
    return {"killed": True} if status == signal.SIGKILL and "kill" in job else {"error": f"status {status}"}


def main():
    for line in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
