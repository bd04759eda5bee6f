"""The bounds of the kernel cache: set by options and variables, kept by the writer that goes past
them, and never felt by a hit. Evicted entries are compiled again. Tests assert on counters, on files
and on system calls, not on time."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import needs

PROGRAM = """\
import json
import sys

import ingot as qd

qd.init(**json.loads(sys.argv[1]))


@qd.kernel
def k(a: qd.types.ndarray(qd.f32, ndim=1), t: qd.template()):
    for i in range(a.shape[0]):
        a[i] = i * 2.5 + t


a = qd.ndarray(qd.f32, (8,))
for t in json.loads(sys.argv[2]):
    k(a, t)
    assert a[3] == 7.5 + t
print(json.dumps(qd._core.counters()))
"""


@pytest.fixture
def program(tmp_path, cache_dir):
    """Runs the kernel for some values; the counters."""
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)

    def run(values=(1,), before=(), env=None, **options):
        command = [*before, sys.executable, "-B", str(path), json.dumps(options),
                   json.dumps(list(values))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240,
                              env={**os.environ, "INGOT_ARCH": "cpu", **(env or {})})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def entries(folder, kinds="ivxan"):
    return [p for kind in kinds for p in (folder / kind).rglob("?" * 32)]


def test_bounds_are_kept(program, cache_dir):
    n = program(range(8), offline_cache_max_entries=12)
    assert n["store_evicted"] > 0 and n["kernel_stored"] == 8
    assert len(entries(cache_dir)) <= 12
    n = program(range(8), offline_cache_max_size_of_files=40_000)
    assert sum(p.stat().st_size for p in entries(cache_dir)) <= 40_000 and n["store_evicted"] > 0
    n = program(range(20, 23), offline_cache_max_size_of_files=100)  # nothing fits
    assert n["store_too_large"] > 0 and n["kernel_stored"] == 0


def test_variables_and_never(program, cache_dir):
    bound = {"INGOT_OFFLINE_CACHE_MAX_ENTRIES": "12"}
    assert program(range(8), env=bound)["store_evicted"] > 0
    never = program(range(8), env=bound, offline_cache_cleaning_policy="never")
    assert never["store_evicted"] == 0 and len(entries(cache_dir)) > 12


def test_defaults():
    from ingot import _core

    have = _core.settings()
    assert have["offline_cache_max_size_of_files"] == 2 << 30
    assert have["offline_cache_max_entries"] == 100_000


@pytest.mark.counts("lowerings")
def test_an_evicted_entry_is_a_miss(program, cache_dir):
    """Whatever an index or a variant still names may be gone."""
    program(range(3))
    for kinds in ("i", "v", "x", "a", "n", "ixn"):
        gone = entries(cache_dir, kinds)
        for p in gone:
            p.unlink()
        n = program(range(3))
        assert gone and n["image_compiles"] == (3 if "i" in kinds else 0), kinds
    again = program(range(3))
    assert (again["lowerings"], again["image_compiles"], again["kernel_disk_hits"]) == (0, 0, 3)


def calls(log, folder):
    """System calls on files below the folder, by name; temporary names are random."""
    lines = [x.partition(" ")[2].strip() for x in log.read_text(errors="replace").splitlines()
             if str(folder) in x]
    return sorted(re.sub(r"\(.*", "", x) for x in lines if "(" in x)


@needs("strace")
def test_work_does_not_grow_with_entries(program, tmp_path):
    """A compile with its puts, and a warm start: the same calls among 200 and among 3,000 entries, both
    enough for a pack."""
    seen = {}
    for many in (200, 3000):
        folder, log = tmp_path / f"cache{many}", tmp_path / "log"
        env = {"INGOT_CACHE_DIR": str(folder)}
        program([1], env=env)
        for i in range(5 * 256):  # in both, so that neither has to make some
            (folder / "ivxan"[i % 5] / f"{i // 5:02x}").mkdir(mode=0o700, exist_ok=True)
        for i in range(many):
            key = f"{i:032x}"[::-1]
            (folder / "ivxan"[i % 5] / key[:2] / key).write_bytes(b"x" * 100)
        (folder / "total").unlink()
        assert program([2], env=env)["store_walks"] == 5  # counts
        for state in ("cold", "warm"):
            program([3], ("strace", "-f", "-y", "-o", str(log)), env)
            seen[state, many] = calls(log, folder)
    cold, warm = seen["cold", 3000], seen["warm", 3000]
    assert cold == seen["cold", 200] and "renameat" in cold
    assert warm == seen["warm", 200]
    assert "getdents64" not in cold + warm
    assert not [c for c in warm if c.startswith(("write", "pwrite", "rename", "unlink"))]
