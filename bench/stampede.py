"""Many cold processes on one cache directory: who compiles what, and how long it takes.

    stampede.py [--json FILE] [--repeat N] [--kernels K] [--processes 1,2,4,8]

Each process runs the same K kernels. A row: processes, tasks compiled in all (each unique one
should be compiled once), wall time until all are done, and that as a multiple of one process
alone. Wall time is the best of N rounds, each with an empty directory.

With redis-server and the package redis, a second machine: another home and an empty directory,
nothing but the server in common with a first one that has compiled everything.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import _peers


def program(kernels):
    text = ["import json, sys", "import ingot as qd", "", "qd.init()", ""]
    for k in range(kernels):
        text += ["@qd.kernel", f"def k{k}(a: qd.types.ndarray(qd.f32, ndim=1), s: qd.f32):",
                 "    for i in range(a.shape[0]):",
                 f"        a[i] = a[i] * {k + 1.5} + s * qd.sin(a[i] + {k})", ""]
    text += ["a = qd.ndarray(qd.f32, (64,))"]
    text += [f"k{k}(a, 0.5)" for k in range(kernels)]
    text += ["print(json.dumps([qd._core.counters(), float(a[3])]))"]
    return "\n".join(text) + "\n"


def run(path, cache, processes, **more):
    env = {**os.environ, "INGOT_CACHE_DIR": str(cache), **more}
    before = time.perf_counter()
    children = [subprocess.Popen([sys.executable, str(path)], env=env, stdout=subprocess.PIPE, text=True)
                for _ in range(processes)]
    outputs = [c.communicate()[0] for c in children]
    wall = time.perf_counter() - before
    assert all(c.returncode == 0 for c in children)
    results = [json.loads(o) for o in outputs]
    assert len({value for _, value in results}) == 1
    counts = [c for c, _ in results]
    return wall, *(sum(c[what] for c in counts) for what in ("image_compiles", "image_waits", "helpers_started"))


def start_server(folder):
    """A Redis server of our own: (process, client, address)."""
    import redis

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                               "--dir", folder], stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    for _ in range(500):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.02)
    return server, client, f"redis://127.0.0.1:{port}/0"


def settle(client):
    """Until what the first machine pushed has arrived, which outlives its program."""
    for _ in range(1500):
        if len(client.client_list()) <= 1:
            return
        time.sleep(0.02)


def second_machine(path, folder, repeat):
    """Rows of one process: on a first machine, and on others that have the server alone."""
    server, client, url = start_server(folder)
    remote = {"INGOT_CACHE_REMOTE": url, "INGOT_CACHE_REMOTE_KEY": "a key of this benchmark",
              "INGOT_CACHE_REMOTE_TIMEOUT": "30"}

    def machine(name, role):
        home = str(pathlib.Path(folder, name))
        wall, compiles, *_ = run(path, pathlib.Path(home, "cache"), 1, HOME=home, INGOT_CACHE_REMOTE_ROLE=role, **remote)
        return {"machine": name.rstrip("0123456789-"), "compiles": compiles, "seconds": wall}

    try:
        first = machine("first", "rw")
        settle(client)
        others = [machine(f"second-{k}", "ro") for k in range(repeat)]
    finally:
        server.kill()
        server.wait()
    return [first, min(others, key=lambda row: (-row["compiles"], row["seconds"]))]


def has_redis():
    from importlib.util import find_spec

    return bool(shutil.which("redis-server") and find_spec("redis"))


def main():
    args = _peers.arguments(__doc__, kernels={"type": int, "default": 20}, processes={"default": "1,2,4,8"})
    rows = []
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(program(args.kernels))
        for n in map(int, args.processes.split(",")):
            rounds = []
            for k in range(min(args.repeat, 5)):
                rounds.append(run(path, pathlib.Path(folder, f"cache-{n}-{k}"), n))
            wall, compiles, waits, helpers = min(rounds)
            rows.append({"processes": n, "compiles": max(r[1] for r in rounds), "unique": args.kernels,
                         "waits": waits, "helpers": helpers, "seconds": wall, "times": wall / (rows[0]["seconds"] if rows else wall)})
        warm = min(run(path, pathlib.Path(folder, "cache-1-0"), 1)[0] for _ in range(3)) if rows[0]["processes"] == 1 else None
        far = second_machine(path, folder, 3) if has_redis() else []
    _peers.show(f"{args.kernels} kernels, an empty directory", [
        ("processes", "processes", "d"), ("unique", "unique", "d"), ("compiles", "compiled at most", "d"),
        ("waits", "waits", "d"), ("helpers", "helpers", "d"), ("seconds", "seconds", ".2f"), ("times", "x one alone", ".2f")], rows)
    if warm:
        print(f"warm, one process: {warm:.2f} s")
    if far:
        _peers.show("one process, the server alone", [
            ("machine", "machine", "s"), ("compiles", "compiled", "d"), ("seconds", "seconds", ".2f")], far)
    else:
        print("not run: the second machine (redis-server and the package redis are needed)")
    _peers.write(args.json, "stampede", rows + far)


main()
