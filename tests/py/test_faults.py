"""Every system call that touches the cache fails once, in every way that a disk can: the kernel
runs, its result is right, and the next process finds or makes what is missing. Also disks that are
full, read-only or without execution, homes that are not there, and clocks that jump."""

import errno
import itertools
import os
import random
import subprocess

import pytest
from conftest import SEED, STRESS, as_root, needs
from fault_tools import IMAGES, a_start, fresh, is_warm, shim, with_shim  # noqa: F401
from fault_tools import all_caches as caches, quick_server, quick_server as server  # noqa: F401

ERRORS = [errno.EIO, errno.ESTALE, errno.ENOENT, errno.EBUSY, errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EROFS]
WRITERS = "create write pwrite mkdir mkdirat renameat linkat ftruncate"  # what a full disk refuses
CHANGES = WRITERS + " unlinkat"  # and a read-only one
STRANGER = 65534  # no user that these tests run as
only_root = as_root("to mount, to give away")


def forget(cache):
    """Indexes and images are gone, and the pack that may have them; leases stay."""
    (cache / "ingot.pack").unlink(missing_ok=True)
    for kind in "xi":
        for path in (cache / kind).rglob("?" * 32):
            path.unlink()


def sampled(calls, wanted, all_errors=False):
    """(number of a call, error): each call in stress, with the errors in turns or with all; else some."""
    some = list(range(1, calls + 1))
    if not STRESS:
        some = sorted(random.Random(SEED).sample(some, min(wanted, calls)))
    elif all_errors:
        return list(itertools.product(some, ERRORS))
    return [(k, ERRORS[k % len(ERRORS)]) for k in some]


# ---- one call fails ---------------------------------------------------------------------------

# What of the C library reaches a file; the shim must know each that the extension uses.
FILE_CALLS = set("""access chmod chown close closedir copy_file_range creat creat64 dup2 dup3 faccessat fallocate
    fallocate64 fchmod fchmodat fchown fcntl fcntl64 fdatasync fdopen fdopendir flock fopen fopen64 fstat fstat64
    fstatat fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimens link linkat lockf lockf64 lseek
    lseek64 lstat lstat64 mkdir mkdirat mkostemp mkstemp mmap mmap64 mprotect open open64 openat openat64 opendir
    pread pread64 preadv preadv2 pwrite pwrite64 pwritev read readdir readdir64 readlink readlinkat readv
    realpath remove rename renameat renameat2 rmdir sendfile sendfile64 splice stat stat64 statfs statfs64 statvfs
    statx symlink sync_file_range syncfs truncate unlink unlinkat utimensat write writev""".split())


@needs("nm")
@with_shim
def test_the_shim_knows_all_calls(shim):
    """Else a call that it does not see would never fail."""
    import ingot

    def names(path, *flags):
        out = subprocess.run(["nm", "-D", *flags, path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1].partition("@")[0] for line in out.splitlines()}

    used = names(ingot._core.__file__, "--undefined-only") & FILE_CALLS
    assert len(used) > 20 and used <= names(shim, "--defined-only")


@with_shim
def test_the_shim_sees_what_the_cache_does(server, caches):
    """Else the tests below would say nothing."""
    cold = server(fresh(caches, None))
    assert not is_warm(cold) and cold["seen"] > 100
    assert {"open", "create", "fstat", "fstatat", "write", "pread", "pwrite", "mmap", "mkdir", "mkdirat",
            "renameat", "unlinkat", "flock", "fcntl", "close"} <= set(cold["calls"])
    warm = server(fresh(caches, "warm"))
    assert 30 < warm["seen"] < cold["seen"] and {"open", "read", "mmap", "mprotect"} <= set(warm["calls"])
    assert not {"create", "write", "pwrite", "mkdirat", "renameat", "unlinkat", "flock"} & set(warm["calls"])
    cache, job = a_start(caches, "many")
    packs = server(cache, **job)
    assert packs["counters"]["packs_made"] and {"fdopendir", "readdir", "closedir"} <= set(packs["calls"])
    cache, job = a_start(caches, "full")
    assert server(cache, **job)["counters"]["store_evicted"]


STARTS = {  # from which cache; how many calls fail in a quick run; whether each fails with each error
    "cold": (4, True), "empty": (4, False), "warm": (30, True), "unaliased": (5, True), "packed": (11, True),
    "layers": (11, True), "many": (3, False), "full": (3, False)}


def settled(server, cache, job, about):
    """After a fault: the next process works, and the one after that finds all."""
    after = server(cache, **job)
    assert after["counters"]["image_waits"] == 0, about  # no lease is left to wait for
    assert is_warm(after) or is_warm(server(cache, **job)), about


@with_shim
@pytest.mark.parametrize("which", STARTS)
def test_a_call_fails(server, caches, which):
    """Once: a miss at worst."""
    wanted, all_errors = STARTS[which]
    cache, job = a_start(caches, which)
    first = server(cache, **job)
    spoilt = True
    for k, error in sampled(first["seen"], wanted, all_errors):
        if spoilt:
            cache, job = a_start(caches, which)
        got = server(cache, k=k, error=error, **job)
        about = which, k, error, got["what"]
        assert got["what"], about
        spoilt = not is_warm(got) or got["counters"]["store_published"] > 0
        if spoilt:
            settled(server, cache, job, about)
        if list(cache.rglob("*.lease")):  # its process is gone: nobody waits for it, and it is removed
            forget(cache)
            again = server(cache, **job)
            assert again["counters"]["image_waits"] == 0 and again["counters"]["leases_healed"], about
            assert not list(cache.rglob("*.lease")), about
            spoilt = True


@with_shim
@pytest.mark.parametrize("which", STARTS)
def test_from_some_call_on_nothing_works(server, caches, which):
    """A disk that goes away in the middle and does not come back."""
    cache, job = a_start(caches, which)
    for k, error in sampled(server(cache, **job)["seen"], 2):
        cache, job = a_start(caches, which)
        got = server(cache, k=k, error=error, sticky=1, **job)
        settled(server, cache, job, (which, k, error, got["what"]))


# ---- the disk as a whole ------------------------------------------------------------------------


@with_shim
@pytest.mark.parametrize("which", ["warm", "empty", None])
@pytest.mark.parametrize("calls, error", [(WRITERS, errno.ENOSPC), (WRITERS, errno.EDQUOT), (CHANGES, errno.EROFS)])
def test_nothing_can_be_written(server, caches, which, calls, error):
    cache = fresh(caches, which)
    got = server(cache, k=1, error=error, sticky=1, only=calls)
    assert is_warm(got) == (which == "warm")
    assert not got["calls"] if which == "warm" else got["what"]  # a hit does not even try
    assert len(got["warnings"]) == (which is None)  # no directory at all is worth one
    if which:
        assert not [p for p in cache.rglob("*") if p.suffix in (".tmp", ".lease")]


@with_shim
@only_root
@pytest.mark.parametrize("kilobytes", [4, 16, 40])
def test_a_disk_that_is_full(server, tmp_path, kilobytes):
    """Full from the start, after some entries, in the middle of one."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "tmpfs", tmp_path], check=True)
    try:
        assert server(tmp_path)["counters"]["image_compiles"] == IMAGES
        server(tmp_path)
        assert not [p for p in tmp_path.rglob("*.tmp")]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@with_shim
@only_root
def test_a_mount_without_execution(server, tmp_path):
    """Images are copied to memory, and count as hits."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700,noexec", "tmpfs", tmp_path], check=True)
    try:
        server(tmp_path)
        warm = server(tmp_path)
        assert is_warm(warm) and warm["counters"]["image_disk_hits"] == IMAGES
        assert warm["counters"]["store_bad_entry"] == 0 and not warm["warnings"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


MOUNTS = {"nfs": 0x6969, "cifs": 0xff534d42, "fuse": 0x65735546, "lustre": 0x0bd00bd0, "9p": 0x01021997}


@with_shim
@pytest.mark.parametrize("which", ["warm", "packed", "layers"])
@pytest.mark.parametrize("mount", MOUNTS)
def test_a_mount_of_the_network(server, caches, mount, which):
    """No page is mapped that a server might not bring, and hits stay hits."""
    cache, job = a_start(caches, which)
    here = server(cache, **job)
    there = server(cache, mount=MOUNTS[mount], **job)
    assert {"mmap", "mprotect"} <= set(here["calls"]) and not {"mmap", "mprotect"} & set(there["calls"])
    assert is_warm(there) and there["counters"]["image_disk_hits"] == IMAGES
    assert there["counters"]["store_bad_entry"] == 0 and not there["warnings"]
    assert here["counters"]["pack_hits"] == there["counters"]["pack_hits"]


@with_shim
def test_images_are_published_to_a_mount_of_the_network(server, caches):
    cache = fresh(caches, None)
    cold = server(cache, mount=MOUNTS["nfs"])
    assert cold["counters"]["image_compiles"] == IMAGES and "mmap" not in cold["calls"]
    assert is_warm(server(cache)) and is_warm(server(cache, mount=MOUNTS["nfs"]))


@with_shim
@pytest.mark.parametrize("how", [{"k": 1, "error": errno.EPERM, "sticky": 1, "only": "linkat"}, {"link_twice": True}])
def test_a_mount_without_links(server, caches, how):
    """Or one whose server makes a link and then says that there is one: leases work all the same."""
    cache = fresh(caches, "empty")
    got = server(cache, **how)
    assert (got["counters"]["leases_taken"], got["counters"]["image_waits"]) == (IMAGES, 0)
    assert is_warm(server(cache)) and not [p for p in cache.rglob("*") if p.suffix in (".tmp", ".lease")]


@with_shim
def test_no_file_may_be_executed(server, caches):
    """The same as a security policy would have it, for users who cannot mount."""
    warm = server(fresh(caches, "warm"), no_exec=True)
    assert is_warm(warm) and warm["counters"]["image_disk_hits"] == IMAGES
    cold = server(fresh(caches, None), no_exec=True)
    assert cold["counters"]["image_compiles"] == IMAGES and cold["counters"]["store_bad_entry"] == 0


# ---- whose it is, and where -----------------------------------------------------------------------


@with_shim
def test_a_user_without_a_home(server, tmp_path):
    got = server(tmp_path / "none", no_home=True)
    assert len(got["warnings"]) == 1 and "no home" in got["warnings"][0]
    assert got["counters"]["store_published"] == 0 and not any(tmp_path.iterdir())


@with_shim
@pytest.mark.parametrize("place", ["/proc/nobody/ingot", "/dev/null/ingot", "/dev/null"])
def test_a_place_where_no_directory_can_be(server, place):
    got = server(place)
    assert len(got["warnings"]) == 1 and place in got["warnings"][0]


@with_shim
@only_root
@pytest.mark.parametrize("what", ["top", "entries"])
def test_a_cache_of_somebody_else(server, caches, what):
    cache = fresh(caches, "warm")
    for path in [cache] if what == "top" else [p for p in cache.rglob("*") if p.is_file()]:
        os.chown(path, STRANGER, STRANGER)
    got = server(cache)
    assert got["counters"]["image_compiles"] == IMAGES and got["counters"]["kernel_disk_hits"] == 0
    if what == "top":
        assert len(got["warnings"]) == 1 and f"belongs to user {STRANGER}" in got["warnings"][0]
    else:
        assert got["counters"]["store_foreign"] > 0 and is_warm(server(cache))  # replaced by ours


# ---- clocks ------------------------------------------------------------------------------------------


@with_shim
@pytest.mark.parametrize("seconds", [-(10**9), -3600, 3600, 10**9])
def test_a_clock_that_is_wrong(server, caches, seconds):
    """An hour or thirty years off, in the process that writes or in the one that reads."""
    assert is_warm(server(fresh(caches, "warm"), clock=seconds))
    cache = fresh(caches, None)
    server(cache, clock=seconds)
    assert is_warm(server(cache)) and not list(cache.rglob("*.lease"))


@with_shim
@pytest.mark.parametrize("when", [0, 2**33])
def test_files_of_another_time(server, caches, when):
    cache = fresh(caches, "warm")
    for path in [*cache.rglob("*"), cache]:
        os.utime(path, (when, when))
    before = sorted((str(p), p.stat().st_mtime) for p in cache.rglob("*"))
    assert is_warm(server(cache))
    assert sorted((str(p), p.stat().st_mtime) for p in cache.rglob("*")) == before
