"""`ingot doctor`: what is installed, where the caches are, what would fail here and the remedy.

Each check is a function that yields findings: (state, topic, text, remedy). A state is "ok", "warn" (it
works, and costs something) or "fail" (a compile, a cache that was asked for, or `qd.init` would fail).
Nothing is compiled and nothing is changed; everything that waits has an end.
"""

import json
import os
import subprocess
import sys

from ingot import _cachetool, _core

HELPER_SECONDS = 60
LOW_SPACE = 200 << 20
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs", "orangefs", "afs", "coda",
           "ocfs2", "panfs", "vboxsf")  # and all of FUSE; the list that counts is in src/base/os.c
# Variables that are no options of qd.init.
VARIABLES = {
    "INGOT_ARCH", "INGOT_CACHE_DIR", "INGOT_CACHE_PATH", "INGOT_CACHE_SALT", "INGOT_CPU_LEVEL",
    "INGOT_CACHE_REMOTE", "INGOT_CACHE_REMOTE_KEY", "INGOT_CACHE_REMOTE_ROLE", "INGOT_CACHE_REMOTE_TIMEOUT",
    "INGOT_HELPER_PYTHON", "INGOT_LOG", "INGOT_TRACE", "INGOT_PERFDISPATCH_FORCE",
    "INGOT_SERVER",
}
TESTS = ("INGOT_TEST_", "INGOT_BENCH_", "INGOT_STRESS", "INGOT_NOT_RUN_FILE")


# ---- what is installed -------------------------------------------------------------------------


def version_of(package):
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed():
    from ingot import __version__

    about = _core._machine()
    yield "ok", "python", f"{sys.version.split()[0]}, {sys.executable or 'embedded'}", ""
    yield "ok", "ingot", f"{__version__}, front end {about['front'][:12]}, back end {about['back'][:12]}", ""
    cpus = len(os.sched_getaffinity(0))
    asked = os.environ.get("INGOT_CPU_LEVEL", "")
    yield "ok", "machine", f"{about['level']}, {cpus} CPUs" + (f", INGOT_CPU_LEVEL={asked}" if asked else ""), ""
    if asked and asked not in about["levels"]:
        yield ("warn", "machine", f"INGOT_CPU_LEVEL={asked} is none of {', '.join(about['levels'])} and is ignored",
               "unset it, or name one of these")
    for package, use in (("numpy", "arrays of NumPy"), ("torch", "tensors"), ("redis", "the remote cache")):
        found = version_of(package)
        yield "ok", package, found or f"not installed; only {use} would need it", ""


def helper():
    """LLVM, as a compile would start it."""
    from ingot import _helper

    try:
        command = _helper.argv()
    except RuntimeError as e:
        yield "fail", "compiler", str(e), "set INGOT_HELPER_PYTHON"
        return
    code = ("import sys; sys.path += sys.argv[1:]; import llvmlite, llvmlite.binding as b; "
            "print(llvmlite.__version__, '.'.join(map(str, b.llvm_version_info)))")
    try:
        done = subprocess.run([command[0], "-I", "-c", code, *command[5:]], capture_output=True, text=True,
                              timeout=HELPER_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        yield "fail", "compiler", f"llvmlite was not loaded in {HELPER_SECONDS} s", "look at the load of the machine"
        return
    except OSError as e:
        yield ("fail", "compiler", f"{command[0]} cannot be started: {e}",
               "set INGOT_HELPER_PYTHON to an interpreter that has llvmlite")
        return
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        yield ("fail", "compiler", f"llvmlite cannot be loaded: {last}; kernels that are not in a cache fail",
               "pip install llvmlite")
        return
    lite, llvm = done.stdout.split()
    yield "ok", "compiler", f"llvmlite {lite} with LLVM {llvm}, in a process of its own", ""


def memory():
    """May this process run code that it made?"""
    import mmap

    try:
        mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as e:
        yield ("fail", "memory", f"memory cannot be made executable: {e}",
               "a security policy forbids it (SELinux execmem, a seccomp filter): allow it for this program")
    else:
        yield "ok", "memory", "may be made executable", ""


# ---- settings ----------------------------------------------------------------------------------


def environment():
    from ingot import _init

    known = _init._known()
    for name, default in known.items():
        found = _init._environment(name)
        try:
            found and _init._parse(name, *found, default)
        except ValueError as e:
            yield "fail", "environment", f"qd.init would raise: {e}", f"correct or unset {found[0]}"
    names = VARIABLES | {"INGOT_" + n.upper() for n in known}
    for name in sorted(n for n in os.environ if n.startswith("INGOT_") and n not in names):
        if not name.startswith(TESTS):
            import difflib

            near = difflib.get_close_matches(name, names, 1)
            yield ("warn", "environment", f"{name} means nothing to Ingot",
                   f"did you mean {near[0]}?" if near else "unset it")


# ---- caches --------------------------------------------------------------------------------------


def mount_of(path):
    """(type, options) of the file system that the path is on; ("", "") when it cannot be told."""
    best = ("", "", "")
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, point, kind, options, *_ = line.split()
                point = point.replace("\\040", " ")
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best[0]):
                    best = (point, kind, options)
    except OSError:
        pass
    return best[1:]


def existing(path):
    """The path, or what there is of it."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def origin():
    """What decided where the cache is."""
    for name in ("INGOT_OFFLINE_CACHE_FILE_PATH", "QD_OFFLINE_CACHE_FILE_PATH", "INGOT_CACHE_DIR"):
        if os.environ.get(name, "").strip():
            return name
    if os.environ.get("XDG_CACHE_HOME", "").startswith("/"):
        return "XDG_CACHE_HOME"
    return "HOME" if os.environ.get("HOME", "").startswith("/") else "the user's home"


def place(where):
    """Space, rights and mount of a directory that is to be written."""
    base = existing(os.path.abspath(where))
    left = _cachetool.free(base)
    text = f"{_cachetool.show_size(left)} free"
    kind, options = mount_of(os.path.realpath(base))
    if left < LOW_SPACE:
        yield ("warn", "space", text, "ingot cache trim, or another disk (INGOT_CACHE_DIR); "
               "what cannot be written is compiled again by the next process")
    else:
        yield "ok", "space", text, ""
    if kind in NETWORK or kind.startswith("fuse"):
        yield "ok", "mount", f"{kind}, shared: code is copied to memory", ""
    if "noexec" in options.split(","):
        yield "ok", "mount", "noexec: code is copied to memory, which costs a little at each start", ""


def caches():
    from ingot._cli import default_directory

    where = default_directory()
    listed = os.environ.get("INGOT_CACHE_PATH", "")
    if where is None and not listed:
        yield ("fail", "cache", "there is no home: each process compiles everything again",
               "set INGOT_CACHE_DIR to a directory of this user")
        return
    rows = _cachetool.layers(where or "")
    for row in rows:
        if row["rights"] == "left out":
            yield "fail", "cache", row["reason"], "see the reason; the layer is left out until then"
        elif row["rights"] == "missing" and row["path"] != where:
            yield "warn", "cache", f"{row['path']}: no such layer", "correct INGOT_CACHE_PATH"
        elif row["rights"] != "missing":
            entries, nbytes = _core._cache_totals(row["path"])[:2]
            yield ("ok", "cache", f"{row['path']} ({row['rights']}): {entries:,} entries, "
                   f"{_cachetool.show_size(nbytes)}", "")
    first = next((r["path"] for r in rows if r["rights"] == "written"), None)
    if first is None and rows[0]["rights"] == "missing":
        base = existing(os.path.abspath(rows[0]["path"]))
        if os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK):
            yield "ok", "cache", f"{rows[0]['path']} (by {origin()}): made by the first compile", ""
            first = rows[0]["path"]
        else:
            yield ("fail", "cache", f"{rows[0]['path']} cannot be made: {base} is not writable",
                   "set INGOT_CACHE_DIR to a directory of this user")
    elif first is None:
        yield ("warn", "cache", "no layer can be written: what is not in one is compiled by each process",
               "put a directory of this user first in INGOT_CACHE_PATH")
    if first is not None:
        yield from place(first)


def remote():
    from ingot import _remote

    url = os.environ.get("INGOT_CACHE_REMOTE", "")
    if not url:
        return
    reason = _remote.refusal(url, os.environ.get("INGOT_CACHE_REMOTE_KEY"))
    if reason:
        yield "fail", "remote", f"it is refused: {reason}", "see docs/caching.md"
        return
    if version_of("redis") is None:
        yield "fail", "remote", "the package redis is not installed", "pip install 'ingot[remote]'"
        return
    import redis

    seconds = _remote.patience()
    try:
        redis.Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=None).ping()
    except (redis.RedisError, OSError, ValueError) as e:
        yield ("fail", "remote", f"no answer within {seconds:g} s: {type(e).__name__}: {str(e)[:200]}",
               "programs go on without it; look at the address, the server, or raise INGOT_CACHE_REMOTE_TIMEOUT")
    else:
        role = os.environ.get("INGOT_CACHE_REMOTE_ROLE") or "ro"
        yield "ok", "remote", f"answers; role {role}", ""


CHECKS = (installed, helper, memory, environment, caches, remote)


def run(args, _):
    findings = [f for check in CHECKS for f in check()]
    bad = [f for f in findings if f[0] == "fail"]
    if args.json:
        print(json.dumps([dict(zip(("state", "topic", "text", "remedy"), f)) for f in findings], indent=1))
        return 1 if bad else 0
    for state, topic, text, remedy in findings:
        print(f"{'' if state == 'ok' else state.upper():<5} {topic:<12} {_cachetool.printable(text)}")
        if remedy:
            print(f"{'':<18} remedy: {remedy}")
    print(f"{len(bad)} of these would fail" if bad else "nothing here would fail")
    return 1 if bad else 0
