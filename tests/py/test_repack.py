"""The cache that is written packs itself: a process that publishes much makes the pack, the next
one starts from it, and what changed meanwhile is seen. Tests assert on counters and files."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import needs

# Images are shared: all variants but one are lowered, not compiled.
PROGRAM = """\
import json
import os
import sys

import ingot as qd

qd.init()


def make(n):
    text = f'''
@qd.kernel
def k{n}(a: qd.types.ndarray(qd.f32, ndim=1)):
    "{n}"  # {os.environ.get("NOTE")}
    x{n} = 2.5
    for i in range(a.shape[0]):
        a[i] = i * x{n}
'''
    import linecache
    name = f"<made {n}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"qd": qd}
    exec(compile(text, name, "exec"), scope)
    return scope[f"k{n}"]


a = qd.ndarray(qd.f32, (8,))
for n in range(int(sys.argv[1]), int(sys.argv[2])):
    a.fill(0)
    make(n)(a)
    assert a[3] == 7.5
print(json.dumps(qd._core.counters()))
"""


@pytest.fixture
def run(tmp_path, cache_dir):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)

    def run(first, last, *prefix):
        done = subprocess.run([*prefix, sys.executable, "-B", str(path), str(first), str(last)],
                              capture_output=True, text=True, timeout=240,
                              env={**os.environ, "INGOT_ARCH": "cpu"})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def settle(cache):
    """As if nothing had been written for a while."""
    for p in (cache / "x").iterdir():
        os.utime(p, (1_600_000_000, 1_600_000_000))


@pytest.mark.counts("parses and lowerings")
def test_a_cache_packs_itself(run, cache_dir):
    few = run(0, 8)
    assert few["packs_made"] == 0 and not (cache_dir / "ingot.pack").exists()
    cold = run(8, 60)
    assert cold["packs_made"] >= 1 and (cache_dir / "ingot.pack").stat().st_mode & 0o777 == 0o600
    before = sorted(p.name for p in cache_dir.iterdir())
    warm = run(0, 20)
    assert (warm["lowerings"], warm["parses"], warm["store_published"]) == (0, 0, 0)
    assert warm["pack_hits"] >= 20 and warm["packs_made"] == 0
    assert sorted(p.name for p in cache_dir.iterdir()) == before


@pytest.mark.counts("parses and lowerings")
@needs("strace")
def test_one_file_is_opened(run, cache_dir, tmp_path):
    run(0, 40)
    settle(cache_dir)
    (cache_dir / "ingot.pack").unlink()
    run(40, 41)  # makes it again: there is none
    log = tmp_path / "log"
    warm = run(0, 30, "strace", "-f", "-e", "trace=openat,rename,renameat", "-o", str(log))
    assert warm["lowerings"] == 0
    lines = log.read_text().splitlines()
    assert len([x for x in lines if '"ingot.pack"' in x]) == 1
    assert not [x for x in lines if re.search(r'[/"][0-9a-f]{32}[."]', x)]  # no entry, no new one


@pytest.mark.counts("parses and lowerings")
def test_damage_of_the_pack_is_a_miss(run, cache_dir):
    run(0, 40)
    pack = cache_dir / "ingot.pack"
    data = bytearray(pack.read_bytes())
    for at in (4200, len(data) - 10):  # the image, the tail
        data[at] ^= 16
        pack.write_bytes(data)
        warm = run(0, 40)
        assert (warm["lowerings"], warm["image_compiles"]) == (0, 0)
        assert warm["store_bad_entry"] >= 1
        data[at] ^= 16
    pack.write_bytes(data[:-1])
    assert run(0, 40)["lowerings"] == 0


@pytest.mark.counts("parses and lowerings")
def test_what_was_cleared_is_gone(run, cache_dir, monkeypatch):
    """Indexes that were removed are not found again in the pack. With another comment, because
    the alias of a known text brings the index of its first compile."""
    run(0, 40)
    settle(cache_dir)
    (cache_dir / "ingot.pack").unlink()
    run(40, 41)
    monkeypatch.setenv("NOTE", "one comment")
    assert run(0, 3)["lowerings"] == 0
    for p in list((cache_dir / "x").rglob("?" * 32)):
        p.unlink()
    monkeypatch.setenv("NOTE", "another")
    again = run(0, 3)
    assert again["lowerings"] == 3 and again["image_compiles"] == 0


@pytest.mark.counts("parses and lowerings")
def test_tools_see_the_pack(run, cache_dir):
    """Clearing takes it along; trimming by age keeps what is read through it; repair removes a
    damaged one, because its entries are files as well."""
    run(0, 40)
    pack = cache_dir / "ingot.pack"

    def tool(*args):
        return subprocess.run([sys.executable, "-m", "ingot", "cache", args[0], "--dir", str(cache_dir),
                               *args[1:]], capture_output=True, text=True, timeout=60)

    for p in cache_dir.rglob("?" * 32):
        os.utime(p, (1_600_000_000, 1_600_000_000))
    kept = len(list((cache_dir / "i").rglob("?" * 32)))
    assert tool("trim", "--older", "1d").returncode == 0
    assert len(list((cache_dir / "i").rglob("?" * 32))) == kept > 0
    run(100, 140)
    good = pack.read_bytes()
    pack.write_bytes(good[:-1])
    assert tool("verify").returncode == 1 and pack.exists()
    assert tool("verify", "--repair").returncode == 1 and not pack.exists()
    pack.write_bytes(good)
    os.chmod(pack, 0o600)
    assert tool("clear", "--yes").returncode == 0 and not pack.exists()
    assert run(0, 2)["lowerings"] == 2
