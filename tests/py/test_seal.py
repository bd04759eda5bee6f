"""Sealed layers: `ingot cache seal` writes one file that serves as a cache does, that perf, gdb
and objdump read, and that may be damaged in any way without a wrong result."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import PARANOID, SEED, needs, samples
from ingot import _core, _seal
from test_layers import STRANGER, files, only_root

KERNELS = """\
import json
import os

import ingot as qd

qd.init()
os.seteuid({user})


@qd.kernel
def plain(a: qd.types.ndarray(qd.f32, ndim=1)):
    for i in range(a.shape[0]):
        a[i] = i * 2.5 + 1


@qd.kernel
def curve(a: qd.types.ndarray(qd.f64, ndim=1), e: qd.f64):
    for i in range(a.shape[0]):
        a[i] = qd.pow(qd.cast(i, qd.f64), e)


@qd.kernel
def spin(a: qd.types.ndarray(qd.f32, ndim=1), n: qd.i32):
    for i in range(1):
        x = 0.5
        for j in range(n):
            x = x * 0.999 + 0.25 / (x + 1.0)
        a[i] = x


a = qd.ndarray(qd.f32, (64,))
b = qd.ndarray(qd.f64, (8,))
plain(a)
assert a[3] == 8.5
curve(b, 3.0)
assert abs(b[5] - 125) < 1e-9
spin(a, 10)
counters = qd._core.counters()
{more}
print(json.dumps(counters))
"""


@pytest.fixture
def kernels(tmp_path):
    """Runs the kernels above on a path of layers and returns the counters."""

    def run(path, user=os.geteuid(), at=None, more="", prefix=(), **env):
        file = (at or tmp_path) / "kernels.py"
        file.write_text(KERNELS.replace("{user}", str(user)).replace("{more}", more))
        given = {**os.environ, "INGOT_ARCH": "cpu", **env}
        given["INGOT_CACHE_PATH"] = os.pathsep.join(map(str, path))
        done = subprocess.run([*prefix, sys.executable, "-B", str(file)], capture_output=True,
                              text=True, timeout=240, env=given)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def command(*args):
    return subprocess.run([sys.executable, "-m", "ingot", "cache", "seal", *map(str, args)],
                          capture_output=True, text=True, timeout=60)


@pytest.fixture
def sealed(tmp_path, kernels):
    """(the cache, the layer that was made of it)."""
    user, layer = tmp_path / "user", tmp_path / "layer"
    kernels([user])
    done = command("--dir", user, layer)
    assert done.returncode == 0, done.stderr
    yield user, layer
    if layer.is_dir():
        os.chmod(layer, 0o755)  # so that pytest can remove it


def whole_hit(counters):
    made = counters["image_compiles"], counters["store_published"]
    read = counters["lowerings"], counters["parses"]
    return counters["kernel_disk_hits"] == 3 and made == (0, 0) and (PARANOID or read == (0, 0))


def test_a_sealed_layer_serves_everything(sealed, kernels):
    user, layer = sealed
    assert sorted(p.name for p in layer.iterdir()) == ["MANIFEST", "ingot.pack"]
    assert layer.stat().st_mode & 0o777 == 0o555
    assert {p.stat().st_mode & 0o777 for p in layer.iterdir()} == {0o444}
    before = files(layer)
    alone = kernels([layer])  # the first of the path, and ours: not written all the same
    assert whole_hit(alone) and alone["pack_hits"] >= 6 and alone["store_layers_skipped"] == 0
    below = kernels([user.parent / "fresh", layer])
    assert whole_hit(below) and below["pack_hits"] == alone["pack_hits"]
    assert files(layer) == before


def test_the_manifest_and_verification(sealed):
    _, layer = sealed
    text = (layer / "MANIFEST").read_text()
    found = _core._pack_verify(layer / "ingot.pack")
    assert found["checksum"] in text and f"{found['bytes']} bytes" in text
    assert "3 images, 3 variants, 3 indexes, 3 aliases" in text and found["entries"] == 12
    assert re.search(r"images +3 for x86-64-v\d O2 fast_math=1 llvmlite [\d.]+ LLVM [\d.]+", text)
    with pytest.raises(OSError, match="not a usable pack"):
        _core._pack_verify(layer / "MANIFEST")


def test_nothing_private_is_sealed(sealed):
    """Notes and values of steps stay at home."""
    user, layer = sealed
    assert list((user / "n").rglob("?" * 32))
    notes = [p.read_bytes() for p in (user / "n").rglob("?" * 32)]
    pack = (layer / "ingot.pack").read_bytes()
    assert not any(n[:-64] in pack for n in notes)


@needs("strace")
def test_no_call_writes(sealed, kernels, tmp_path):
    _, layer = sealed
    log = tmp_path / "log"
    assert whole_hit(kernels([layer], prefix=("strace", "-f", "-y", "-o", str(log))))
    lines = [x for x in log.read_text(errors="replace").splitlines() if str(layer) in x]
    opened = [x for x in lines if "openat(" in x]
    assert opened and not [x for x in opened if re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", x)]
    calls = {re.sub(r"^\d+ +", "", x).partition("(")[0] for x in lines}
    assert not calls & {"write", "pwrite64", "rename", "renameat2", "unlinkat", "mkdirat", "fchmod"}
    assert len([x for x in opened if "ingot.pack" in x]) == 1


@only_root
def test_roots_layer_serves_others(kernels):
    place = pathlib.Path(tempfile.mkdtemp(prefix="ingot-seal-"))
    os.chmod(place, 0o755)
    try:
        kernels([place / "cache"], at=place)
        assert command("--dir", place / "cache", place / "layer").returncode == 0
        before = files(place / "layer")
        assert whole_hit(kernels([place / "layer"], user=STRANGER, at=place))
        assert files(place / "layer") == before
    finally:
        shutil.rmtree(place)


@only_root
def test_a_strangers_layer_is_left_out(sealed, kernels):
    _, layer = sealed
    for p in [layer, *layer.iterdir()]:
        os.chown(p, STRANGER, -1)
    counters = kernels([layer.parent / "other", layer])
    assert counters["image_compiles"] == 3 and counters["store_layers_skipped"] == 1


# ---- the command -----------------------------------------------------------------------------


def test_what_is_no_cache_is_not_replaced(sealed, tmp_path):
    user, _ = sealed
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("years of work")
    done = command("--dir", user, strange)
    assert done.returncode == 1 and "thesis.tex" in done.stderr
    assert (strange / "thesis.tex").read_text() == "years of work"
    file = tmp_path / "file"
    file.write_text("text")
    assert command("--dir", user, file).returncode == 1 and file.read_text() == "text"
    empty = tmp_path / "nothing"
    empty.mkdir(mode=0o700)
    done = command("--dir", empty, tmp_path / "new")
    assert done.returncode == 1 and "holds no kernels" in done.stderr
    assert not (tmp_path / "new").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".ingot-seal")]


def test_layers_and_caches_are_replaced(sealed, kernels):
    user, layer = sealed
    assert command("--dir", user, layer).returncode == 0
    assert whole_hit(kernels([layer]))
    assert command("--dir", layer, layer).returncode == 0  # a layer is a source as well
    assert whole_hit(kernels([layer]))
    assert command("--dir", user, user).returncode == 0  # a cache becomes a layer
    assert sorted(p.name for p in user.iterdir()) == ["MANIFEST", "ingot.pack"]
    assert whole_hit(kernels([user]))
    os.chmod(user, 0o755)


TEMPLATE = """
@qd.kernel
def scaled(a: qd.types.ndarray(qd.f32, ndim=1), t: qd.template()):
    for i in range(a.shape[0]):
        a[i] = i * t

for t in {times}:
    scaled(a, t)
    assert a[3] == 3 * t
counters = qd._core.counters()
"""


def test_a_cache_above_a_layer_is_sealed(tmp_path, kernels):
    """The upper layer holds what the lower lacked: a variant of a kernel that both know. Together
    they serve everything; alone it is right, and compiles the rest."""
    low, top, lower, upper = (tmp_path / x for x in ("low", "top", "lower", "upper"))

    def run(path, *times):
        counters = kernels(path, more=TEMPLATE.replace("{times}", str(times)))
        return [counters[x] for x in ("kernel_disk_hits", "image_compiles", "store_published")]

    assert run([low], 2)[:2] == [0, 4]
    assert command("--dir", low, lower).returncode == 0
    assert run([top, lower], 5)[:2] == [3, 1]
    done = command("--dir", top, upper)
    assert done.returncode == 0 and ": 1 images, 1 variants, 1 indexes, " in done.stdout
    assert run([upper, lower], 2, 5) == run([lower, upper], 5, 2) == [5, 0, 0]
    assert run([lower], 2) == [4, 0, 0]
    assert run([upper], 5, 2) == [1, 4, 0]
    for layer in (lower, upper):
        layer.chmod(0o755)


AS_STRANGER = """\
import os, random, sys
from ingot import _seal
os.seteuid(int(sys.argv[1]))
try:
    _seal.seal(*sys.argv[2:])
except OSError as e:
    sys.exit(str(e))
"""


@only_root
def test_a_place_that_cannot_be_written(sealed):
    """By a user who may read the layer and write nowhere beside it."""
    user, layer = sealed
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        place.chmod(0o755)
        shutil.copytree(layer, place / "layer")
        for target in (place / "new", place / "layer"):
            done = subprocess.run([sys.executable, "-c", AS_STRANGER, str(STRANGER), str(place / "layer"),
                                   str(target)], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "Permission denied" in done.stderr, done.stderr
            assert "Traceback" not in done.stderr
            assert [p.name for p in place.iterdir()] == ["layer"]
        (place / "layer").chmod(0o755)
    done = command("--dir", user, user / "total" / "below")  # below a file
    assert done.returncode == 1 and str(user / "total") in done.stderr and "Traceback" not in done.stderr


def test_levels_stand_side_by_side(tmp_path, kernels):
    """One layer for machines of several levels (R18)."""
    cache, layer = tmp_path / "cache", tmp_path / "layer"
    kernels([cache], INGOT_CPU_LEVEL="x86-64-v2")
    kernels([cache])
    report = _seal.seal(str(cache), str(layer))
    levels = {text.split()[0] for text, _ in report["makers"]}
    assert "x86-64-v2" in levels and len(levels) == (1 if report["entries"]["images"] == 3 else 2)
    for env in ({}, {"INGOT_CPU_LEVEL": "x86-64-v2"}):
        assert whole_hit(kernels([layer], **env))


# ---- damage ----------------------------------------------------------------------------------


def test_a_damaged_pack_is_a_miss(sealed, kernels, tmp_path):
    """Flipped bits, cuts, an empty file: the program below it answers."""
    user, layer = sealed
    good = (layer / "ingot.pack").read_bytes()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "MANIFEST").write_text("")
    rng = random.Random(SEED)
    for n in range(samples(200)):
        data = bytearray(good)
        if n % 4 == 0:
            del data[rng.randrange(len(data)):]
        else:
            data[rng.randrange(4096, len(data))] ^= 1 << rng.randrange(8)
        (broken / "ingot.pack").write_bytes(data)
        counters = kernels([user, broken])
        assert whole_hit(counters), (n, counters)


# ---- other programs read it --------------------------------------------------------------------


@needs("objdump", "nm")
def test_objdump_and_nm_read_the_pack(sealed):
    _, layer = sealed
    pack = str(layer / "ingot.pack")
    out = subprocess.run(["nm", "-S", pack], capture_output=True, text=True, check=True).stdout
    symbols = {x.split()[-1]: [int(n, 16) for n in x.split()[:2]] for x in out.splitlines()}
    assert {"plain", "curve", "spin"} <= set(symbols)
    start, size = symbols["curve"]
    code = subprocess.run(["objdump", "-d", f"--start-address={start}", f"--stop-address={start + size}",
                           pack], capture_output=True, text=True, check=True).stdout
    assert "<curve>:" in code and re.search(r"\b(call|jmp|ret)\b", code) and "(bad)" not in code


@needs("gdb")
def test_gdb_names_code_of_a_pack(sealed, kernels):
    """The process asks gdb about itself: where the mapping of the pack begins, and what is at
    the offset of each function in it."""
    _, layer = sealed
    more = """
import re, subprocess
maps = [x.split() for x in open("/proc/self/maps") if x.rstrip().endswith("ingot.pack")]
code = next(m for m in maps if "x" in m[1])
base = int(code[0].split("-")[0], 16) - int(code[2], 16)
pack = code[-1]
out = subprocess.run(["nm", pack], capture_output=True, text=True, check=True).stdout
at = {x.split()[-1]: int(x.split()[0], 16) for x in out.splitlines()}
script = ["-ex", f"add-symbol-file {pack} -o {base:#x}"]
for name in ("plain", "spin"):
    script += ["-ex", f"info symbol {base + at[name] + 1:#x}"]
done = subprocess.run(["gdb", "-batch", "-nx", *script], capture_output=True, text=True)
counters = {"said": done.stdout + done.stderr}
"""
    said = kernels([layer], more=more)["said"]
    assert "plain + 1 in section .text" in said and "spin + 1 in section .text" in said, said


RECORD = ("perf", "record", "-q", "-e", "cpu-clock:u")


def can_record():
    """A sandbox may have perf and not let it count."""
    return subprocess.run([*RECORD, "-o", os.devnull, "true"], capture_output=True).returncode == 0


@needs("perf")
@(lambda test: test) if shutil.which("perf") and can_record() else pytest.mark.not_run(
    reason="perf (may not record here)")
def test_perf_names_code_of_a_pack(sealed, kernels, tmp_path):
    _, layer = sealed
    data = tmp_path / "perf.data"
    kernels([layer], more="spin(a, 60_000_000)", prefix=(*RECORD, "-o", str(data)))
    out = subprocess.run(["perf", "report", "-i", str(data), "--stdio", "--sort", "dso,symbol"],
                         capture_output=True, text=True).stdout
    assert re.search(r"ingot\.pack +\[\.\] spin", out), out
