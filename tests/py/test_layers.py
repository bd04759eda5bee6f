"""Layers of the cache: a directory that is written before others that are only read. Tests
assert on counters: what hit, what was published, what was left out."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import as_root, needs

PROGRAM = """\
import json
import os
import warnings

import urllib.parse

import ingot as qd
from ingot import _numbers, _remote

qd.init()
os.seteuid({user})  # the interpreter may be where that user cannot read


@qd.kernel
def k(a: qd.types.ndarray(qd.f32, ndim=1), t: qd.template()):
    for i in range(a.shape[0]):
        a[i] = i * 2.5 + t


a = qd.ndarray(qd.f32, (64,))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for t in {values}:
        k(a, t)
        assert a[3] == 7.5 + t
print(json.dumps([qd._core.counters(), [str(w.message) for w in seen]]))
"""

STRANGER = 65534  # no user that these tests run as
only_root = as_root("to become another user")


@pytest.fixture
def program(tmp_path):
    """Runs kernels on a path of layers: (counters, warnings)."""

    def run(path, values=(1,), user=os.geteuid(), at=None, **env):
        file = (at or tmp_path) / "prog.py"
        text = PROGRAM.replace("{values}", repr(tuple(values)))
        file.write_text(text.replace("{user}", str(user)))
        given = {**os.environ, "INGOT_ARCH": "cpu", **env}
        given["INGOT_CACHE_PATH"] = os.pathsep.join(map(str, path))
        done = subprocess.run([sys.executable, "-B", str(file)], capture_output=True, text=True,
                              timeout=240, env=given)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def files(directory):
    return sorted((str(p), p.stat().st_mtime_ns) for p in directory.rglob("*"))


@pytest.mark.counts("lowerings")
def test_reading_goes_through_all_layers_and_writing_to_the_first(tmp_path, program):
    user, site = tmp_path / "user", tmp_path / "site"
    cold, _ = program([site], values=(1,))
    assert cold["image_compiles"] == 1 and cold["kernel_stored"] == 1
    before = files(site)
    warm, said = program([user, site], values=(1,))
    assert (warm["image_compiles"], warm["lowerings"], warm["kernel_disk_hits"]) == (0, 0, 1)
    assert warm["store_published"] == 0 and said == []
    more, _ = program([user, site], values=(1, 2))
    assert more["kernel_disk_hits"] == 1 and more["kernel_stored"] == 1
    assert files(site) == before and list((user / "v").rglob("?" * 32))


@pytest.mark.counts("lowerings")
def test_indexes_of_layers_are_merged(tmp_path, program):
    user, site = tmp_path / "user", tmp_path / "site"
    program([site], values=(1,))
    program([user], values=(2,))
    both, _ = program([user, site], values=(1, 2))
    assert (both["lowerings"], both["kernel_disk_hits"]) == (0, 2)
    third, _ = program([user, site], values=(1, 2, 3))
    assert (third["lowerings"], third["kernel_disk_hits"]) == (1, 2)
    again, _ = program([user, site], values=(3, 2, 1))
    assert (again["lowerings"], again["kernel_disk_hits"]) == (0, 3)


@pytest.mark.counts("lowerings")
def test_an_empty_name_is_the_users_directory(tmp_path, program, cache_dir):
    site = tmp_path / "site"
    program([site])
    program(["", site], values=(5,))
    assert (cache_dir / "v").is_dir()
    warm, _ = program(["", site], values=(5, 1))
    assert (warm["lowerings"], warm["kernel_disk_hits"]) == (0, 2)


def test_a_missing_layer_is_no_fault_and_is_not_made(tmp_path, program):
    site = tmp_path / "nowhere" / "site"
    counters, said = program([tmp_path / "user", site])
    assert said == [] and counters["store_layers_skipped"] == 0 and not site.parent.exists()


@pytest.mark.counts("lowerings")
def test_what_others_may_write_is_left_out(tmp_path, program):
    user, site = tmp_path / "user", tmp_path / "site"
    program([site])
    os.chmod(site, 0o777)
    counters, said = program([user, site])
    assert counters["image_compiles"] == 1 and counters["store_layers_skipped"] == 1
    assert len(said) == 1 and "others may write" in said[0]
    os.chmod(site, 0o755)
    for kind in "ax":
        fan = next((site / kind).iterdir())
        os.chmod(fan, 0o777)  # below the top: skipped entry by entry
    counters, said = program([tmp_path / "user2", site])
    assert counters["lowerings"] == 1 and counters["store_foreign"] >= 1 and said == []


@pytest.fixture
def open_dir():
    """A directory that every user reaches."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ingot-layers-"))
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@only_root
def test_roots_layer_serves_others(open_dir, program):
    site = open_dir / "site"
    program([site])
    for p in [site, *site.rglob("*")]:
        os.chmod(p, 0o755 if p.is_dir() else 0o644)
    before = files(site)
    counters, said = program([site], user=STRANGER, at=open_dir)
    assert (counters["kernel_disk_hits"], counters["image_compiles"]) == (1, 0)
    assert (counters["store_published"], counters["store_io_errors"]) == (0, 0)
    assert said == [] and files(site) == before


@only_root
@needs("redis")
@pytest.mark.counts("lowerings")
def test_with_nothing_to_write_the_remote_is_not_asked(open_dir, program):
    """There is no place for what it would send. Nobody listens on that port."""
    site = open_dir / "site"
    program([site])
    for kind in "xa":  # a miss that needs no compiler
        shutil.rmtree(site / kind)
    for p in [site, *site.rglob("*")]:
        os.chmod(p, 0o755 if p.is_dir() else 0o644)
    remote = {"INGOT_CACHE_REMOTE": "redis://127.0.0.1:1", "INGOT_CACHE_REMOTE_ROLE": "rw",
              "INGOT_CACHE_REMOTE_KEY": "a key of the tests, long enough"}
    counters, said = program([site], user=STRANGER, at=open_dir, **remote)
    assert (counters["lowerings"], counters["image_compiles"]) == (1, 0) and said == []
    assert counters["remote_misses"] == counters["remote_pushes"] == 0


@only_root
def test_the_layer_of_another_user_is_left_out(open_dir, program):
    other = open_dir / "other"
    program([other])
    for p in [other, *other.rglob("*")]:
        os.chown(p, STRANGER, STRANGER)
    counters, said = program([open_dir / "root", other])
    assert counters["image_compiles"] == 1 and counters["store_layers_skipped"] == 1
    assert len(said) == 1 and f"belongs to user {STRANGER}" in said[0]
    os.chown(other, 0, 0)  # its top alone does not make the rest trustworthy
    counters, _ = program([open_dir / "root2", other])
    assert counters["image_compiles"] == 1 and counters["store_foreign"] >= 1


def test_levels_share_a_directory_and_never_an_image(tmp_path, program):
    """An entry of a higher level is not used on a lower one, and both stay."""
    one = tmp_path / "one"
    high, _ = program([one])
    low, _ = program([one], INGOT_CPU_LEVEL="x86-64-v2")
    assert high["image_compiles"] == 1 and low["image_compiles"] == 1
    images = [p for p in (one / "i").rglob("?" * 32)]
    assert len(images) == 2
    for level in ({}, {"INGOT_CPU_LEVEL": "x86-64-v2"}):
        warm, _ = program([one], **level)
        assert (warm["image_compiles"], warm["kernel_disk_hits"]) == (0, 1)


def test_an_image_of_a_higher_level_is_never_run(tmp_path, program):
    """Not even under the name of one for this machine: the entry says what it is for."""
    high, low = tmp_path / "high", tmp_path / "low"
    program([high])
    program([low], INGOT_CPU_LEVEL="x86-64-v2")
    (its,), (ours,) = (list((d / "i").rglob("?" * 32)) for d in (high, low))
    assert its.name != ours.name
    ours.write_bytes(its.read_bytes())
    forged, said = program([low], INGOT_CPU_LEVEL="x86-64-v2")
    assert forged["image_compiles"] == 1 and forged["store_bad_entry"] >= 1 and said == []
    shutil.copytree(high, low, dirs_exist_ok=True)
    warm, _ = program([low], INGOT_CPU_LEVEL="x86-64-v2")
    assert (warm["image_compiles"], warm["kernel_disk_hits"]) == (0, 1)
