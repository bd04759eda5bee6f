"""`ingot cache seal`: a cache directory as a layer that is only read.

A sealed layer is two files: `ingot.pack` holds every entry and is what programs map,
`MANIFEST` says to people what is in it. The layer appears under its name at once, complete;
what is replaced by it is a cache or an older layer, and nothing else.
"""

import os
import shutil
import tempfile
import time

from ingot import _core

PACK = "ingot.pack"
MANIFEST = "MANIFEST"
# What a cache directory consists of: kinds of entries, their totals, and the two files above.
OURS = {"i", "v", "x", "d", "a", "n", "total", PACK, PACK + ".tmp", MANIFEST}


def _refusal(target):
    """Why the directory must not be replaced, or None."""
    if os.path.islink(target) or not os.path.isdir(target):
        return "it is not a directory"
    strange = sorted(set(os.listdir(target)) - OURS)
    return f"it holds '{strange[0]}', which is no part of a cache" if strange else None


def _manifest(report):
    from ingot import __version__

    entries = report["entries"]
    lines = [
        "A layer of Ingot's cache that is only read: name this directory in INGOT_CACHE_PATH.",
        "",
        f"made        {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC",
        f"ingot       {__version__}, front end {report['front']}, back end {report['back']}",
        f"pack        {PACK}, {report['bytes']} bytes, checksum {report['checksum']}",
        "entries     " + ", ".join(f"{n} {kind}" for kind, n in entries.items()),
        f"symbols     {report['symbols']}",
        f"left out    {report['left_out']} damaged or unreadable",
    ]
    for text, images in sorted(report["makers"]):
        lines.append(f"images      {images} for {text}")
    return "\n".join(lines) + "\n"


def _write(path, text):
    with open(path, "x", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())


def _sync(directory):
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(directory):
    """A directory that this module made, or whose place it took."""
    os.chmod(directory, 0o700)
    shutil.rmtree(directory)


def seal(source, target):
    """Writes the layer and returns what is in it; an OSError says why not."""
    target = os.path.abspath(target)
    replaces = os.path.lexists(target)
    why = _refusal(target) if replaces else None
    if why:
        raise OSError(f"{target} is not replaced: {why}")
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    work = tempfile.mkdtemp(prefix=".ingot-seal-", dir=parent)
    try:
        report = _core._pack_write(source, os.path.join(work, PACK))
        if not sum(report["entries"].values()):
            raise OSError(f"{source} holds no kernels: run the program once, then seal")
        _write(os.path.join(work, MANIFEST), _manifest(report))
        for name in (PACK, MANIFEST):
            os.chmod(os.path.join(work, name), 0o444)
        _sync(work)
        os.chmod(work, 0o555)
        if replaces:
            _core._exchange(work, target)
        else:
            os.rename(work, target)
            work = None
        _sync(parent)
    finally:
        if work:
            _remove(work)
    return report


def run(args, source):
    report = seal(source, args.target)
    entries = ", ".join(f"{n} {kind}" for kind, n in report["entries"].items())
    print(f"{args.target}: {entries}, {report['bytes']} bytes")
    if report["left_out"]:
        print(f"left out: {report['left_out']} damaged or unreadable")
    return 0
