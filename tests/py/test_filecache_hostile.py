"""FileCache and CachedStep where things go wrong: writers that are killed, disks that are
full, clocks that jump, leases that nobody gives back, two programs that disagree."""

import os
import pathlib
import random
import resource
import signal
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
import time

import pytest
from conftest import SEED, samples
from ingot import CachedStep, FileCache


def start(code, **env):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def leftovers(path):
    return [f for f in pathlib.Path(path).rglob("*") if f.suffix in (".tmp", ".lease")]


WRITER = """
    import sys, ingot
    cache = ingot.FileCache(sys.argv[1] if len(sys.argv) > 1 else {path!r}, max_bytes=200_000)
    print("ready", flush=True)
    k = 0
    while True:
        cache.put(k % 50, (k % 50, bytes([k % 50]) * 20_000))
        k += 1
"""


def test_writers_killed_at_any_moment(tmp_path):
    path = str(tmp_path / "c")
    cache = FileCache(path, max_bytes=200_000)
    rng = random.Random(SEED)
    for _ in range(max(4, samples(60))):
        writers = [start(WRITER.format(path=path)) for _ in range(2)]
        for w in writers:
            assert w.stdout.readline() == "ready\n"
        time.sleep(rng.random() * 0.1)
        for w in writers:
            w.send_signal(signal.SIGKILL)
        for w in writers:
            w.communicate()
        for k in range(50):
            assert cache.get(k) in (None, (k, bytes([k]) * 20_000))
    assert cache.stats()["bad_entry"] == 0 and not cache.verify().damaged
    for f in leftovers(path):  # as old as those of a crash long ago
        os.utime(f, (1, 1))
    cache.evict()
    assert not leftovers(path) and cache.nbytes <= 200_000
    assert (len(cache), cache.nbytes) == (len(cache.entries()), sum(e.nbytes for e in cache.entries()))


def test_a_disk_that_fills_up(tmp_path):
    """Writing stops in the middle of an entry. What was stored stays, nothing is left over."""
    cache = FileCache(tmp_path / "c")
    assert cache.put("small", b"x" * 100)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
        assert cache.put("large", b"x" * 100_000) is False
        assert cache.put("small", b"y" * 100_000) is False
        assert cache.get_or_compute("made", lambda: b"z" * 50_000) == b"z" * 50_000
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert cache["small"] == b"x" * 100 and "large" not in cache and "made" not in cache
    assert not leftovers(cache.path) and cache.stats()["io_errors"] >= 3 and cache.verify().good == 1


FAILING = """
    import ctypes, platform, struct, sys
    import ingot
    cache = ingot.FileCache(sys.argv[1])
    assert cache["k"] == b"x" * 7777
    # A filter of the kernel's: read() of exactly this many bytes is EIO from here on.
    code = [
        (0x20, 0, 0, 0),  # the call's number
        (0x15, 0, 3, {"x86_64": 0, "aarch64": 63}[platform.machine()]),
        (0x20, 0, 0, 32),  # its third argument
        (0x15, 0, 1, int(sys.argv[2])),
        (0x06, 0, 0, 0x00050000 | 5),
        (0x06, 0, 0, 0x7FFF0000),
    ]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(text)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0
    assert prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
    assert cache.get("k", "miss") == "miss" and "k" not in cache
    stats = cache.stats()
    assert (stats["io_errors"], stats["bad_entry"]) == (2, 0), stats  # of the get and of `in`
    found = cache.verify(remove=True)
    print(found.good, found.damaged, len(found.unreadable))
"""


def test_a_read_error_is_no_damage(tmp_path):
    """A disk that fails for now: nothing is known about the entry, so it stays."""
    cache = FileCache(tmp_path / "c")
    cache["k"] = b"x" * 7777
    (entry,) = cache.entries()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FAILING), cache.path, str(entry.nbytes)],
        capture_output=True, text=True,
    )
    assert (done.returncode, done.stdout) == (0, "0 [] 1\n"), done.stderr
    assert cache["k"] == b"x" * 7777 and cache.verify().good == 1


def test_two_processes_with_different_salts(tmp_path):
    (tmp_path / "saltmod.py").write_text("import os\ndef step(x):\n    return os.environ['WHO']\n")
    code = f"""
        import sys; sys.path.insert(0, {str(tmp_path)!r})
        import ingot, saltmod
        step = ingot.CachedStep(saltmod.step).persistent({str(tmp_path / "c")!r})
        print(*[step(k) for k in range(5)])
    """
    for _ in range(2):  # the second time from disk
        both = [start(code, INGOT_CACHE_SALT=s, WHO=s) for s in ("one", "two")]
        assert [finish(p) for p in both] == ["one " * 4 + "one\n", "two " * 4 + "two\n"]
    assert finish(start(code, INGOT_CACHE_SALT="one", WHO="nobody")) == "one " * 4 + "one\n"
    assert len(FileCache(tmp_path / "c")) == 10


@pytest.mark.parametrize("content", [b"", b"INGLEASE", b"\xff" * 128, b"INGLEASE" + b"\0" * 120])
@pytest.mark.parametrize("age", [-1000, 1000])
def test_leases_that_nobody_holds(tmp_path, content, age):
    """Whatever stands in an old lease, or in one from the future, it holds nobody up."""
    cache = FileCache(tmp_path / "c", wait=60.0)
    digest = "12" + "3" * 30
    folder = pathlib.Path(cache.path) / "d" / digest[:2]
    folder.mkdir(parents=True, mode=0o700)
    lease = folder / f"{digest}.lease"
    lease.write_bytes(content)
    lease.chmod(0o600)
    os.utime(lease, (time.time() - age,) * 2)
    begin = time.monotonic()
    assert cache._get_or_make(digest, lambda: cache._keep(digest, 5, (2, b"five")) or 5, 60.0) == 5
    assert time.monotonic() - begin < 50 and not lease.exists()
    assert cache._find(digest) == 5 and cache.stats()["leases_healed"] == 1


def test_clocks_that_jump(tmp_path):
    """Entries from the future and from 1970 are found, listed, evicted."""
    cache = FileCache(tmp_path / "c", max_entries=20)
    for k in range(20):
        cache[k] = k
    stored = [f for f in pathlib.Path(cache.path).rglob("*") if len(f.name) == 32]
    assert len(stored) == 20
    for i, f in enumerate(stored):
        os.utime(f, ((0, 2**33, time.time() + 1e6)[i % 3],) * 2)
    assert [cache.get(k) for k in range(20)] == [*range(20)]
    assert len(cache.entries()) == 20 and cache.verify().good == 20
    for k in range(20, 60):
        assert cache.put(k, k)
    assert len(cache) <= 20


def answer(x):
    return x + 1


def test_entries_exchanged_among_keys(tmp_path):
    """A whole, undamaged entry under another key's name is no entry of that key."""
    step = CachedStep(answer).persistent(tmp_path / "c")
    assert [step(1), step(2)] == [2, 3]
    one, two = sorted(f for f in pathlib.Path(step.cache.path).rglob("*") if len(f.name) == 32)
    one.write_bytes(two.read_bytes())
    assert [step(1), step(2)] == [2, 3] and step.cache.stats()["bad_entry"] >= 1


# ---- a directory that may be read only ---------------------------------------------------------


def as_nobody(call):
    """Calls in a forked child that may not write wherever it likes, as root may."""
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture
def public_dir():
    """A directory of the user that as_nobody makes, below one that all may enter."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="ingot-public-"))
    path.chmod(0o755)
    home = path / "home"
    home.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(home, 65534, 65534)
    yield home
    for folder in [home, *home.rglob("*")]:
        if folder.is_dir():
            folder.chmod(0o755)
    shutil.rmtree(path)


def protect(path):
    for f in [*path.rglob("*"), path]:
        f.chmod(0o555 if f.is_dir() else 0o444)


def listing(path):
    return {f: (f.stat().st_mtime_ns, f.stat().st_size) for f in sorted(path.rglob("*"))}


def test_a_directory_that_is_read_only(public_dir):
    """What is there is found, what is not is computed; nothing is written, nothing raised."""
    calls = []

    def step_of(path, **options):
        return CachedStep(answer).persistent(path, **options)

    def fill():
        assert step_of(public_dir / "c")(1) == 2
        FileCache(public_dir / "c")["key"] = [1, 2]
        protect(public_dir)

    def use():
        before = listing(public_dir)
        step, cache = step_of(public_dir / "c", max_entries=1), FileCache(public_dir / "c")
        assert step(1) == 2 and step.cache.stats()["hits"] == 1
        assert step(5) == 6 == step(5) and step.cache.stats()["published"] == 0
        assert cache["key"] == [1, 2] and "key" in cache and cache.get("absent") is None
        assert cache.put("key", 3) is False and cache["key"] == [1, 2]
        assert cache.get_or_compute("new", lambda: calls.append(1) or 7) == 7 and calls == [1]
        assert cache.remove("key") is False and cache.clear() == 0
        assert step.cache.evict() == (0, 0) and len(cache) == 2
        assert cache.verify(remove=True) == (2, [], [])
        assert listing(public_dir) == before

    as_nobody(fill)
    as_nobody(use)


def test_no_directory_can_be_made(public_dir):
    def use():
        protect(public_dir)
        with pytest.raises(OSError, match="cache directory|ermission"):
            CachedStep(answer).persistent(public_dir / "c")

    as_nobody(use)
