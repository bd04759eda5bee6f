"""`ingot cache`: what it lists is what is there, what it removes is what it says, and an archive
brings a warm start to another directory, or is refused."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import PARANOID, as_root

PROGRAM = """\
import json
import ingot as qd

qd.init()
N = 3


@qd.func
def scaled(x):
    return x * N


@qd.kernel
def first(a: qd.types.ndarray(), t: qd.template()):
    for i in range(a.shape[0]):
        a[i] = scaled(a[i]) + t


@qd.kernel
def second(a: qd.types.ndarray()) -> qd.f32:
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i]
    return s


a = qd.ndarray(qd.f32, 8)
first(a, 1)
first(a, 2)
assert second(a) == 5 * 8
print(json.dumps(qd._core.counters()))
"""


only_root = as_root("to give files away")


def environment(cache):
    return {**os.environ, "INGOT_ARCH": "cpu", "INGOT_CACHE_DIR": str(cache)}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs the program on a cache: its counters."""
    path = tmp_path_factory.mktemp("program") / "prog.py"
    path.write_text(PROGRAM)

    def run(cache):
        done = subprocess.run([sys.executable, "-B", str(path)], capture_output=True, text=True,
                              timeout=240, env=environment(cache))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    cache = tmp_path_factory.mktemp("made") / "cache"
    assert program(cache)["kernel_stored"] == 3
    return cache


@pytest.fixture
def cache(made, tmp_path):
    """A copy of a filled cache."""
    shutil.copytree(made, tmp_path / "cache")
    return tmp_path / "cache"


def ingot(cache, *args, code=0, stdin=subprocess.DEVNULL):
    """What `ingot cache` prints."""
    done = subprocess.run([sys.executable, "-m", "ingot", "cache", *map(str, args)], text=True,
                          capture_output=True, timeout=120, env=environment(cache), stdin=stdin)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def qd_core():
    from ingot import _core

    return _core


def entries(cache, kinds="ivxan"):
    return sorted(p for kind in kinds for p in (cache / kind).rglob("?" * 32))


def warm(counters):
    read = counters["parses"], counters["lowerings"]
    return (counters["image_compiles"], counters["kernel_disk_hits"]) == (0, 3) and (PARANOID or read == (0, 0))


# ---- looking -------------------------------------------------------------------------------


def test_ls(cache):
    before = {p: p.stat().st_atime_ns for p in entries(cache)}
    rows = json.loads(ingot(cache, "ls", "--json"))
    assert [r["name"] for r in rows] == ["prog.py.first", "prog.py.second"]
    first = rows[0]
    assert first["file"] == "prog.py" and len(first["variants"]) == 2 and first["lost"] == []
    assert len(first["levels"]) == 1 and first["levels"][0].startswith(("x86-64", "armv8"))
    names = {p.name for p in entries(cache)}
    assert names >= {first["address"], *first["variants"], *first["images"]}
    size = {p.name: p.stat().st_size for p in entries(cache)}
    assert first["bytes"] == sum(size[k] for k in [first["address"], *first["variants"], *first["images"]])
    image = next(p for p in entries(cache, "i") if p.name == first["images"][0])
    os.utime(image, (2_000_000_000, image.stat().st_mtime))
    before[image] = image.stat().st_atime_ns
    again = json.loads(ingot(cache, "ls", "--json", "first"))[0]
    assert again["used"] == 2_000_000_000 and again["published"] == first["published"]
    text = ingot(cache, "ls", "second")
    assert "prog.py.second" in text and "first" not in text and first["levels"][0] in text
    ingot(cache, "ls", "nothing", code=1)
    assert {p: p.stat().st_atime_ns for p in entries(cache)} == before  # to look is not to use


def test_the_order_is_that_of_the_names(monkeypatch):
    """Whatever the order of the directory."""
    from ingot import _cachetool

    core = {"_cache_entries": [], "_cache_image": None,
            "_cache_labels": [(str(k), f"k{k * 7 % 10}", "k() in f.py", k, 0) for k in range(10)],
            "_cache_kernels": [(str(k), []) for k in range(10)]}
    for name, value in core.items():
        monkeypatch.setattr(_cachetool._core, name, lambda *_, value=value: value)
    assert [k["name"] for k in _cachetool.kernels("")] == [f"k{k}" for k in range(10)]


def test_stat(cache, monkeypatch, tmp_path):
    site = tmp_path / "site"
    site.mkdir(mode=0o700)
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    monkeypatch.setenv("INGOT_CACHE_PATH", f":{site}:{loose}:{tmp_path / 'none'}")
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_ENTRIES", "77")
    found = json.loads(ingot(cache, "stat", "--json"))
    files = entries(cache)
    assert found["entries"] == len(files) and found["bytes"] == sum(p.stat().st_size for p in files)
    assert found["max_entries"] == 77 and found["max_bytes"] == 2 << 30 and found["free_bytes"] > 0
    assert found["kernels"] == 2 and found["compiles_on_record"] == 3
    for letter, kind in zip("ivxan", ("images", "variants", "indexes", "aliases", "notes")):
        sizes = [p.stat().st_size for p in entries(cache, letter)]
        assert found["kinds"][kind] == {"entries": len(sizes), "bytes": sum(sizes)}
    assert found["last_compile"] == max(row[3] for row in qd_core()._cache_labels(str(cache)))
    assert [x["rights"] for x in found["layers"]] == ["written", "read", "left out", "missing"]
    assert "mode 0777" in found["layers"][2]["reason"]
    text = ingot(cache, "stat")
    assert f"{len(files)} of 77" in text and str(loose) in text


def test_show(cache):
    text = ingot(cache, "show", "first")
    for line in ("source of the kernel: first() in prog.py", "N, read by scaled: 3", "t: 1", "t: 2",
                 "a: f32 1-d", "setting fast_math: True", "first: "):
        assert line in text, line
    assert "second" not in text
    rows = json.loads(ingot(cache, "ls", "--json"))
    one = rows[0]["variants"][1]
    text = ingot(cache, "show", one[:12])
    assert text.count("\nvariant ") == 1 and one in text
    assert "first: " in ingot(cache, "show", rows[0]["images"][0])
    assert rows[1]["variants"][0] in ingot(cache, "show", rows[1]["address"])
    ingot(cache, "show", "nothing", code=1)
    for p in entries(cache, "n"):
        p.unlink()
    text = ingot(cache, "show", "second")  # named by its image, answers by their digests
    assert "a: (digest " in text
    (cache / "v" / one[:2] / one).unlink()
    assert "missing" in ingot(cache, "show", one)
    assert json.loads(ingot(cache, "ls", "--json", "first"))[0]["lost"] == [one]


# ---- verify, trim, clear --------------------------------------------------------------------


def test_verify(cache, program):
    good = json.loads(ingot(cache, "verify", "--json"))
    assert good["bad"] == [] and good["good"] == len(entries(cache))
    broken = [entries(cache, kind)[0] for kind in "ivx"]
    for p in broken:
        data = bytearray(p.read_bytes())
        data[len(data) // 3] ^= 4
        p.write_bytes(data)
    found = json.loads(ingot(cache, "verify", "--json", code=1))
    assert {b["key"] for b in found["bad"]} == {p.name for p in broken}
    text = ingot(cache, "verify", code=1)
    assert all(str(p) in text for p in broken) and "--repair" in text and all(p.exists() for p in broken)
    ingot(cache, "verify", "--repair", code=1)
    assert not any(p.exists() for p in broken)
    assert "0 damaged" in ingot(cache, "verify")
    program(cache)
    assert warm(program(cache))


def test_verify_and_a_pack(cache, program, tmp_path):
    """A damaged pack beside its files goes, a sealed one is reported."""
    ingot(cache, "seal", tmp_path / "site")
    for where in (cache, tmp_path / "site"):
        where.chmod(0o700)
        pack = where / "ingot.pack"
        data = bytearray((tmp_path / "site" / "ingot.pack").read_bytes())
        data[len(data) // 2] ^= 1
        pack.unlink(missing_ok=True)
        pack.write_bytes(data)
        pack.chmod(0o600)
        assert f"damaged: {pack}" in ingot(cache, "verify", "--dir", where, code=1) and pack.exists()
    ingot(cache, "verify", "--repair", code=1)
    assert not (cache / "ingot.pack").exists() and "0 damaged" in ingot(cache, "verify")
    ingot(cache, "verify", "--repair", "--dir", tmp_path / "site", code=1)
    assert (tmp_path / "site" / "ingot.pack").exists()
    assert warm(program(cache))


def test_trim(cache, program):
    files = entries(cache)
    assert "removed 0" in ingot(cache, "trim") and entries(cache) == files
    old = entries(cache, "v")[0]
    os.utime(old, (1_500_000_000, 1_500_000_000))
    assert "removed 1 entries" in ingot(cache, "trim", "--older", "30d") and not old.exists()
    ingot(cache, "trim", "--entries", 5)
    assert 1 <= len(entries(cache)) <= 5
    ingot(cache, "trim", "--size", "1k")
    assert sum(p.stat().st_size for p in entries(cache)) <= 1024
    ingot(cache, "trim", "--size", "many", code=2)
    ingot(cache, "trim", "--entries", "0", code=2)
    program(cache)
    assert warm(program(cache))


def test_trim_without_options_keeps_to_the_bounds(cache, monkeypatch):
    """The least recently used go first."""
    files = entries(cache)
    for age, p in enumerate(files):
        os.utime(p, (1_600_000_000 - age, 1_600_000_000 - age))
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_ENTRIES", "8")
    said = ingot(cache, "trim")
    left = entries(cache)
    assert 1 <= len(left) <= 8 and left == files[: len(left)]
    assert f"removed {len(files) - len(left)} entries" in said
    assert json.loads(ingot(cache, "stat", "--json"))["entries"] == len(left)
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_SIZE_OF_FILES", "1000")
    ingot(cache, "trim")
    assert sum(p.stat().st_size for p in entries(cache)) <= 1000


def test_what_trim_removes_is_in_no_pack_either(cache, program, tmp_path):
    """A pack counts as used when it is; whatever is removed by hand takes it along."""
    ingot(cache, "seal", tmp_path / "site")
    pack = cache / "ingot.pack"
    shutil.copyfile(tmp_path / "site" / "ingot.pack", pack)
    pack.chmod(0o600)
    for p in entries(cache):
        os.utime(p, (1_500_000_000, 1_500_000_000))
    notes = len(entries(cache, "n"))  # in no pack
    assert f"removed {notes} entries" in ingot(cache, "trim", "--older", "30d")
    shutil.copyfile(tmp_path / "site" / "ingot.pack", pack)
    pack.chmod(0o600)
    os.utime(pack, (1_500_000_000, 1_500_000_000))
    assert f"removed {len(entries(cache))} entries" in ingot(cache, "trim", "--older", "30d")
    assert not pack.exists() and entries(cache) == []
    assert program(cache)["image_compiles"] > 0


def test_numbers_for_people():
    from ingot._cachetool import show_age, show_size, size, span

    assert [size(x) for x in ("7", "7b", "2k", "1.5M", "2g", "1TiB")] == [
        7, 7, 2048, 3 << 19, 2 << 30, 1 << 40]
    assert [span(x) for x in ("90s", "2m", "12h", "30d", "1w")] == [90, 120, 43200, 30 * 86400, 604800]
    for bad in ("", "x", "5x"):
        with pytest.raises(ValueError):
            size(bad)
        with pytest.raises(ValueError):
            span(bad)
    assert [show_size(n) for n in (5, 2048, 3 << 19, 5 << 40)] == ["5 B", "2.0 KiB", "1.5 MiB", "5120.0 GiB"]
    assert show_age(0) == "-"


def test_names_of_others_do_not_reach_the_terminal():
    from ingot._cachetool import printable

    assert printable("a\x1b[31mb\nc\u202e") == "a?[31mb?c?"


def test_the_layer_that_is_written(cache, monkeypatch, tmp_path):
    """Without --dir: of the layers that programs read the one that they write."""
    ingot(cache, "seal", tmp_path / "site")
    nowhere = tmp_path / "nowhere"
    kept = {str(x): json.loads(ingot(nowhere, "stat", "--json", "--dir", x))["entries"]
            for x in (cache, tmp_path / "site")}
    for path, want in ((f"{tmp_path / 'site'}:{cache}", cache), (f"{cache}:{tmp_path / 'site'}", cache),
                       (tmp_path / "site", tmp_path / "site")):
        monkeypatch.setenv("INGOT_CACHE_PATH", str(path))
        found = json.loads(ingot(nowhere, "stat", "--json"))
        assert (found["directory"], found["entries"]) == (str(want), kept[str(want)])
    monkeypatch.setenv("INGOT_CACHE_PATH", f":{cache}")  # a program would make the first
    assert f"{nowhere}: no such directory" in ingot(nowhere, "stat", code=1)
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_FILE_PATH", str(cache))
    monkeypatch.setenv("INGOT_CACHE_PATH", str(tmp_path / "site"))
    assert json.loads(ingot(nowhere, "stat", "--json"))["directory"] == str(cache)


def test_clear_values(cache):
    """Kernels and values of cached steps are removed one without the other."""
    from ingot import FileCache

    values = FileCache(cache)
    values["a key"] = 5
    kernels = entries(cache)
    assert "removed 1 entries" in ingot(cache, "clear", "--yes", "--values")
    assert entries(cache) == kernels and values.get("a key") is None
    values["a key"] = 5
    assert f"removed {len(kernels)} entries" in ingot(cache, "clear", "--yes")
    assert entries(cache) == [] and values["a key"] == 5


def test_clear(cache, tmp_path):
    mine = cache / "i" / "mine.txt"
    mine.write_text("not a cache entry")
    (cache / "photos").mkdir()
    (cache / "photos" / ("0" * 32)).write_text("x")
    ingot(cache, "clear", code=2)  # nobody to ask
    assert entries(cache)
    ingot(cache, "clear", "--yes")
    left = {p.relative_to(cache).as_posix() for p in cache.rglob("*")}
    assert left == {"i", "i/mine.txt", "photos", "photos/" + "0" * 32}
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o777)
    ingot(cache, "clear", "--yes", "--dir", other, code=1)


# ---- export, import ---------------------------------------------------------------------------


def test_there_and_back(cache, program, tmp_path):
    archive, other = tmp_path / "kernels.ingot", tmp_path / "other"
    ingot(cache, "export", archive)
    ingot(cache, "export", archive, code=2)  # it exists
    assert archive.stat().st_mode & 0o777 == 0o600
    ingot(other, "import", archive, code=2)  # not trusted
    assert not other.exists()
    said = ingot(other, "import", "--trust", archive)
    assert f"{len(entries(cache, 'ivxa'))} entries read" in said and "left out" not in said
    assert [p.relative_to(other) for p in entries(other)] == [p.relative_to(cache) for p in entries(cache, "ivxa")]
    assert not entries(other, "n")  # notes stay at home
    assert warm(program(other))
    assert " 0 of them new" in ingot(other, "import", "--trust", archive)
    ingot(other, "export", "--force", archive)
    assert "left out" not in ingot(cache, "verify")
    assert [r["name"] for r in json.loads(ingot(other, "ls", "--json"))] == ["first", "second"]


def test_exports_that_are_not_whole(cache, tmp_path):
    """Of nothing there is none, and no temporary file stays; damaged entries are left out, and it says so."""
    out, empty = tmp_path / "out", tmp_path / "empty"
    out.mkdir()
    empty.mkdir(mode=0o700)
    assert "no kernels to export" in ingot(empty, "export", out / "a.ingot", code=1)
    assert list(out.iterdir()) == []
    (out / "a.ingot").write_text("old")
    image = entries(cache, "i")[0]
    image.write_bytes(image.read_bytes()[:-1])
    assert "left out: 1 damaged" in ingot(cache, "export", "--force", out / "a.ingot")
    assert [p.name for p in out.iterdir()] == ["a.ingot"] and (out / "a.ingot").read_bytes()[:8] == b"INGOTARC"
    assert "left out: 1 damaged" in ingot(cache, "seal", tmp_path / "site")


def test_an_import_keeps_to_the_bounds(cache, monkeypatch, tmp_path):
    ingot(cache, "export", tmp_path / "a.ingot")
    monkeypatch.setenv("INGOT_OFFLINE_CACHE_MAX_ENTRIES", "5")
    ingot(tmp_path / "other", "import", "--trust", tmp_path / "a.ingot")
    assert 1 <= len(entries(tmp_path / "other")) <= 5


def test_an_import_adds_to_what_is_there(cache, program, tmp_path):
    """Each side knows a variant that the other lacks; after it both are found."""
    archive, other = tmp_path / "kernels.ingot", tmp_path / "other"
    ingot(cache, "export", archive)
    text = PROGRAM.replace("first(a, 1)\nfirst(a, 2)", "first(a, 1)\nfirst(a, 5)").replace("5 * 8", "8 * 8")
    path = tmp_path / "prog.py"
    path.write_text(text)
    command = [sys.executable, "-B", str(path)]
    assert subprocess.run(command, env=environment(other), stdout=subprocess.DEVNULL).returncode == 0
    ingot(other, "import", "--trust", archive)
    assert warm(program(other))
    done = subprocess.run(command, env=environment(other), capture_output=True, text=True, check=True)
    assert warm(json.loads(done.stdout))


def test_bad_archives_are_refused(cache, tmp_path):
    archive, other = tmp_path / "kernels.ingot", tmp_path / "other"
    ingot(cache, "export", archive)
    whole = archive.read_bytes()
    head = 16
    second = head + 8 + int.from_bytes(whole[head : head + 8], "little")
    for data in (b"", whole[:-1], whole[: len(whole) // 2], whole[:500] + b"x" + whole[501:], whole + b"x",
                 whole[:-1] + bytes([whole[-1] ^ 1]), whole[:head] + whole[second:]):
        archive.write_bytes(data)
        assert "damaged" in ingot(other, "import", "--trust", archive, code=1)
        assert not entries(other)
    archive.write_bytes(whole)
    archive.chmod(0o622)
    assert "chmod" in ingot(other, "import", "--trust", archive, code=1)
    os.mkfifo(tmp_path / "pipe")
    assert "no file" in ingot(other, "import", "--trust", tmp_path / "pipe", code=1)
    ingot(other, "import", "--trust", tmp_path / "none", code=1)


@only_root
def test_a_foreign_archive_is_refused(cache, tmp_path):
    archive = tmp_path / "kernels.ingot"
    ingot(cache, "export", archive)
    os.chown(archive, 12345, 12345)
    assert "belongs to user 12345" in ingot(tmp_path / "other", "import", "--trust", archive, code=1)


def test_a_sealed_layer(cache, tmp_path):
    """Listed, shown and checked like any other; never changed."""
    site = tmp_path / "site"
    ingot(cache, "seal", site)
    want, have = (json.loads(ingot(cache, "ls", "--json", "--dir", x)) for x in (cache, site))
    assert [(k["address"], k["variants"], k["images"], k["bytes"]) for k in want] == [
        (k["address"], k["variants"], k["images"], k["bytes"]) for k in sorted(have, key=lambda k: [
            w["address"] for w in want].index(k["address"]))]
    assert "a: (digest " in ingot(cache, "show", "--dir", site, "second")
    assert json.loads(ingot(cache, "verify", "--json", "--dir", site))["pack"] == ""
    assert "sealed" in ingot(cache, "export", "--dir", site, tmp_path / "none.ingot", code=1)
    assert "only be read" in ingot(cache, "clear", "--yes", "--dir", site, code=1)
    pack = site / "ingot.pack"
    site.chmod(0o755)
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)
    assert "damaged" in ingot(cache, "verify", "--dir", site, code=1)


def test_help_and_no_directory(tmp_path):
    from ingot import _cli

    assert "ls" in ingot(tmp_path, "--help")
    for name in ("ls", "stat", "show", "verify", "trim", "export", "import", "clear", "seal"):
        assert "usage: ingot cache " + name in ingot(tmp_path, name, "--help")
    assert "no such directory" in ingot(tmp_path / "none", "ls", code=1)
    assert callable(_cli.main)


@pytest.mark.parametrize("words, meant", [
    ("cach", "ingot cache"), ("list", "ingot cache ls"), ("clear", "ingot cache clear"), ("help", "ingot --help"), ("doctr", "ingot doctor"), ("cache list", "ingot cache ls"),
    ("cache gc", "ingot cache trim"), ("cache stats", "ingot cache stat"), ("cache cleer", "ingot cache clear"), ("bogus", None), ("cache bogus", None)])
def test_misspelt_commands(words, meant):
    from ingot import _cli

    with pytest.raises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()) as said:
        _cli.parser().parse_args(words.split())
    assert caught.value.code == 2
    assert f"did you mean '{meant}'?" in said.getvalue() if meant else "; there are " in said.getvalue()
