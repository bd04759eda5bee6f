"""Seeds for the harnesses of tests/fuzz: real entries of a cache that a few kernels fill.

    seeds.py <directory>      one folder per harness; exit status 77 without ingot or llvmlite
"""

import os
import pathlib
import subprocess
import sys
import tempfile

TRAILER = 64
KINDS = {"image": "i", "index": "x", "notes": "n", "record": "v"}  # payloads of these entries
OBJECTS = pathlib.Path(__file__).resolve().parent.parent / "py" / "image_objects.py"

# Loops, results, a struct, messages, a warning, a graph; several variants of one kernel.
PROGRAM = '''
import ingot as qd

A = qd.types.ndarray(qd.f32, ndim=1)
FLAG = qd.types.ndarray(qd.i32, ndim=0)
N = 2
V = qd.types.vector(3, qd.f32)

@qd.func
def twice(x):
    return x * N

@qd.kernel
def total(a: A, s: qd.f32) -> qd.f32:
    t = 0.0
    for i in range(a.shape[0]):
        a[i] = qd.sin(twice(a[i])) + s
    for i in range(a.shape[0]):
        t += a[i]
    return t

@qd.kernel
def vector(a: qd.template(), b: qd.types.ndarray(qd.i32, ndim=2)) -> V:
    for i, j in b:
        assert b[i, j] < 100, "it must be small"
        b[i, j] += i * a
    return V(1.0, 2.0, 3.0)

@qd.kernel(graph=True)
def count(a: A, c: FLAG):
    while qd.graph.do_while(c):
        for i in range(a.shape[0]):
            a[i] += 1
        c[()] -= 1

for debug in (False, True):
    qd.init(debug=debug)
    a, b, c = qd.ndarray(qd.f32, (64,)), qd.ndarray(qd.i32, (4, 4)), qd.ndarray(qd.i32, ())
    for N in (2, 3, 4):
        total(a, 1.0)
        vector(N, b)
    c[()] = 3
    count(a, c)
'''

# For a pack: as small as can be.
SMALL = """
import ingot as qd

qd.init()

@qd.kernel
def one(x: qd.types.ndarray(qd.i32, ndim=1), n: qd.template()):
    for i in x:
        x[i] = n

x = qd.ndarray(qd.i32, (3,))
for n in (1, 2):
    one(x, n)
"""


def run(folder, cache, *command):
    env = {**os.environ, "INGOT_CACHE_DIR": str(cache), "INGOT_CACHE_PATH": "", "INGOT_ARCH": "cpu"}
    for name in ("LD_PRELOAD", "INGOT_CACHE_REMOTE"):
        env.pop(name, None)
    subprocess.run([sys.executable, "-B", *command], env=env, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def fill(folder, name, text):
    """The cache directory after a program."""
    (folder / f"{name}.py").write_text(text)
    run(folder, folder / name, folder / f"{name}.py")
    return folder / name


def put(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def split(cache, out):
    for path in cache.glob("?/??/" + "?" * 32):
        data, kind = path.read_bytes(), path.parts[-3]
        if len(data) < 8192:
            put(out / "entry", path.name, data)
        for name, letter in KINDS.items():
            if kind == letter:
                put(out / name, path.name, data[:-TRAILER])


def frame(kind, body, options=0):
    head = b"INGH" + (1).to_bytes(2, "little") + kind.to_bytes(2, "little")
    return head + options.to_bytes(4, "little") + len(body).to_bytes(4, "little") + body


def replies(out):
    put(out / "reply", "object", frame(2, b"\x7fELF and so on"))
    put(out / "reply", "error", frame(3, "no such function é".encode()))
    put(out / "reply", "none", frame(2, b""))
    put(out / "reply", "two", frame(3, b"first") + frame(2, bytes(5000)))
    put(out / "reply", "short", frame(2, bytes(100))[:40])


def heads(out):
    for n in (0, 5, 4096):
        fixed = b"INGV\x02V\x01\0" + n.to_bytes(4, "little")
        put(out / "head", f"label{n}", fixed + b"l" * n + bytes(8))


def main():
    out = pathlib.Path(sys.argv[1])
    (out / "link").mkdir(parents=True, exist_ok=True)
    if subprocess.run([sys.executable, OBJECTS, out / "link"]).returncode:
        return 77
    # From there, so that the working tree hides nothing that is installed.
    probe = [sys.executable, "-c", "import ingot._core"]
    if subprocess.run(probe, stderr=subprocess.DEVNULL, cwd=out).returncode:
        return 77
    with tempfile.TemporaryDirectory(prefix="ingot-seeds-") as folder:
        folder = pathlib.Path(folder)
        split(fill(folder, "program", PROGRAM), out)
        cache = fill(folder, "small", SMALL)
        run(folder, cache, "-m", "ingot", "cache", "seal", "--dir", cache, folder / "sealed")
        put(out / "pack", "sealed", (folder / "sealed" / "ingot.pack").read_bytes())
    replies(out)
    heads(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
