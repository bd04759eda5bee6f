"""`ingot cache`: what is in a cache, whether it is sound, and moving it.

src/py/tool/cachetool.c and cachework.c read and change; this formats. Every command is a function of the
parsed arguments and the directory that prints and returns the exit status: 0 for done, 1 for damage
or nothing found, 2 for a command that was not understood or not confirmed.
"""

import json
import os
import stat as st
import sys
import tempfile
import time

from ingot import _core
from ingot._numbers import argument, size, span, whole
from ingot._seal import MANIFEST, PACK

KINDS = {"i": "images", "v": "variants", "x": "indexes", "a": "aliases", "n": "notes", "d": "values"}


# ---- numbers for people --------------------------------------------------------------------


def show_size(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def show_age(when):
    """How long ago; "-" in a sealed layer, whose entries have no times."""
    if not when:
        return "-"
    seconds = max(0, time.time() - when)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def table(headings, rows):
    widths = [max(len(str(row[k])) for row in [headings, *rows]) for k in range(len(headings))]
    for row in [headings, *rows]:
        print("  ".join(str(c).ljust(w) for c, w in zip(row, widths)).rstrip())


def printable(text):
    """Names in a cache were written by others: no control characters on the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


# ---- what is there -------------------------------------------------------------------------


def labels(where):
    """address -> (name, file, when) as the last compile was noted."""
    found = {}
    for address, name, source, when, _ in sorted(_core._cache_labels(where), key=lambda row: row[3]):
        file = source.rpartition(" in ")[2]
        found[address] = (printable(name), printable(file), when)
    return found


def symbol(where, key):
    """The kernel's name as an image has it, "" when there is none."""
    about = _core._cache_image(where, key)
    names = [name for name, _, _ in about["symbols"]] if about else []
    return next((printable(n) for n in names if n != "ing_task"), "")


def kernels(where):
    """One dict per kernel, by name, its variants and images with sizes."""
    files = {(kind, key): row for kind, key, *row in _core._cache_entries(where)}
    known, result = labels(where), []
    for address, variants in _core._cache_kernels(where):
        name, file, _ = known.get(address, ("", "", 0))
        images = {i[0]: i for _, tasks in variants for task in tasks or () for i in task}
        if not name and images:
            name = symbol(where, next(iter(images)))
        parts = [("x", address), *(("v", v) for v, _ in variants), *(("i", i) for i in images)]
        rows = [files[p] for p in parts if p in files]
        result.append({
            "name": name or "?", "file": file, "address": address,
            "variants": [v for v, _ in variants],
            "lost": [v for v, tasks in variants if tasks is None],
            "images": sorted(images), "levels": sorted({i[1] for i in images.values()}),
            "bytes": sum(r[0] for r in rows),
            "published": max((r[1] for r in rows), default=0.0),
            "used": max((r[2] for r in rows), default=0.0),
        })
    return sorted(result, key=lambda k: (k["name"], -k["published"], k["address"]))


def ls(args, where):
    rows = [k for k in kernels(where) if not args.kernel or args.kernel in k["name"]]
    if args.json:
        print(json.dumps(rows, indent=1))
    elif rows:
        table(
            ("kernel", "file", "variants", "size", "used", "level", "key"),
            [(k["name"], k["file"] or "-", len(k["variants"]), show_size(k["bytes"]),
              show_age(k["used"]), " ".join(k["levels"]) or "-", k["address"][:12]) for k in rows],
        )
    else:
        print("no kernel" + (f" whose name holds '{args.kernel}'" if args.kernel else ""))
    return 1 if args.kernel and not rows else 0


# ---- totals, layers -------------------------------------------------------------------------


def layers(where):
    """The directories that a program reads, in order: dicts of path and rights."""
    names = os.environ.get("INGOT_CACHE_PATH", "").split(os.pathsep)
    names = [n or where for n in names] if any(names) else [where]
    result, written = [], False
    for name in names:
        row = {"path": name, "rights": "missing", "reason": ""}
        if os.path.isdir(name):
            try:
                mine = _core._cache_totals(name)[4]
                row["rights"] = "written" if mine and not written else "read"
                written = written or mine
            except OSError as e:
                row |= {"rights": "left out", "reason": str(e)}
        result.append(row)
    return result


def bounds():
    """(entries, bytes) that programs keep within, as the environment stands."""
    from ingot import _init

    known = _core.settings()
    names = ("offline_cache_max_entries", "offline_cache_max_size_of_files")
    given = [_init._environment(name) for name in names]
    return tuple(_init._parse(n, *g, known[n]) if g else known[n] for n, g in zip(names, given))


def free(where):
    disk = os.statvfs(where)
    return disk.f_bavail * disk.f_frsize


def stat(args, where):
    entries, used, values, value_bytes, writable = _core._cache_totals(where)
    kinds = {k: [0, 0] for k in KINDS}
    for kind, _, nbytes, _, _ in _core._cache_entries(where):
        kinds[kind][0] += 1
        kinds[kind][1] += nbytes
    most_entries, most_bytes = bounds()
    compiles = _core._cache_labels(where)
    report = {
        "directory": where, "writable": writable, "entries": entries, "bytes": used,
        "max_entries": most_entries, "max_bytes": most_bytes, "free_bytes": free(where),
        "kinds": {KINDS[k]: {"entries": n, "bytes": b} for k, (n, b) in kinds.items()},
        "kernels": len(_core._cache_kernels(where)),
        "compiles_on_record": len(compiles),
        "last_compile": max((c[3] for c in compiles), default=None),
        "layers": layers(where),
    }
    if args.json:
        print(json.dumps(report, indent=1))
        return 0
    print(f"directory   {where} ({'written' if writable else 'only read'})")
    for layer in report["layers"]:
        if layer["path"] != where:
            print(f"layer       {layer['path']} ({layer['reason'] or layer['rights']})")
    limit = show_size(most_bytes) if most_bytes else "no bound"
    print(f"size        {show_size(used)} of {limit}, {show_size(report['free_bytes'])} free on the disk")
    print(f"entries     {entries:,} of {most_entries:,}" if most_entries else f"entries     {entries:,}, no bound")
    print(f"kernels     {report['kernels']}")
    table(("", "entries", "size"), [
        (name, k["entries"], show_size(k["bytes"])) for name, k in report["kinds"].items() if k["entries"]
    ])
    if values:
        print(f"values      {values:,} of cached steps, {show_size(value_bytes)}: counted for themselves")
    if compiles:
        print(f"compiles    {len(compiles)} on record, the last {show_age(report['last_compile'])} ago")
    print("hits        not counted: a hit writes nothing")
    return 0


# ---- one of them ------------------------------------------------------------------------------


def show_question(ask, what, words, digest):
    answer = words or f"(digest {digest[:12]})"
    lead = {"source": "source of ", "setting": "setting "}.get(ask, "")
    return printable(f"{lead}{what}: {answer}")


def show_variant(where, kernel, key):
    about = _core._cache_variant(where, key, kernel["address"])
    print(f"\nvariant {key}")
    if about is None:
        print("  it is damaged, missing or of another version: the next launch compiles again")
        return
    print(f"  {about['arguments']} arguments and captured arrays, {about['results']} results; it is used when")
    for question in about["questions"]:
        print("    " + show_question(*question))
    for n, (kind, ir, images) in enumerate(about["tasks"]):
        print(f"  task {n}: {kind}, IR {ir[:12]}")
        for image, level, opt_level, fast_math in images:
            print(f"    image {image} for {level}, opt_level={opt_level}, fast_math={fast_math}")
            show_symbols(where, image, "      ")
        if not images:
            print("    no image of this version: the next launch compiles again")


def show_symbols(where, key, indent):
    about = _core._cache_image(where, key)
    if about is None:
        print(f"{indent}damaged, missing or no image")
        return False
    made = f", made for {printable(about['made'])}" if about["made"] else ""
    print(f"{indent}{show_size(about['bytes'])}, {about['machine']}{made}")
    for name, _, nbytes in about["symbols"]:
        print(f"{indent}{printable(name)}: {nbytes} bytes")
    return True


def show(args, where):
    wanted, all_kernels, only = args.what, kernels(where), None
    found = [k for k in all_kernels if k["name"] == wanted or k["name"].endswith("." + wanted)]
    found = found or [k for k in all_kernels if wanted in k["name"] or k["address"].startswith(wanted)]
    if not found:
        found = [k for k in all_kernels if any(v.startswith(wanted) for v in k["variants"])][:1]
        only = [v for k in found for v in k["variants"] if v.startswith(wanted)]
    for k in found:
        print(f"{k['name']}{' in ' + k['file'] if k['file'] else ''}")
        print(f"  address {k['address']}, {len(k['variants'])} variants, {show_size(k['bytes'])}, "
              f"used {show_age(k['used'])} ago")
        for key in only or k["variants"]:
            show_variant(where, k, key)
        print()
    if found:
        return 0
    images = [key for kind, key, *_ in _core._cache_entries(where) if kind == "i" and key.startswith(wanted)]
    for key in images:
        print(f"image {key}")
        show_symbols(where, key, "  ")
    if images:
        return 0
    print(f"ingot: no kernel, variant or image '{wanted}'", file=sys.stderr)
    return 1


# ---- changes ------------------------------------------------------------------------------------


def verify(args, where):
    good, bad = _core._cache_verify(where, args.repair)
    pack, broken = os.path.join(where, PACK), ""
    if os.path.lexists(pack):
        try:
            good += _core._pack_verify(pack)["entries"]
        except OSError as e:
            broken = str(e)
            if args.repair and not os.path.lexists(os.path.join(where, MANIFEST)):
                os.unlink(pack)  # derived: the entries are files as well
    if args.json:
        rows = [{"kind": KINDS[kind], "key": key, "state": state} for kind, key, state in bad]
        report = {"directory": where, "good": good, "bad": rows, "pack": broken, "repaired": args.repair}
        print(json.dumps(report, indent=1))
        return 1 if bad or broken else 0
    for kind, key, state in bad:
        print(f"{state}: {os.path.join(where, kind, key[:2], key)}")
    if broken:
        again = os.path.lexists(os.path.join(where, MANIFEST))
        print(f"damaged: {pack}: {broken}" + ("; seal the layer again" if again else ""))
    damaged = sum(state == "damaged" for _, _, state in bad)
    text = f"{good} entries are good, {damaged} damaged, {len(bad) - damaged} unreadable"
    print(text + (": the damaged ones are removed" if args.repair and damaged else ""))
    if damaged and not args.repair:
        print("damaged entries are misses, never errors; --repair removes them")
    return 1 if bad or broken else 0


def trim(args, where):
    if args.size is None and args.entries is None and args.older is None:
        most_entries, most_bytes = bounds()
    else:
        most_entries, most_bytes = args.entries or 0, args.size or 0
    if args.size == 0 or args.entries == 0:
        print("ingot: to remove everything: ingot cache clear", file=sys.stderr)
        return 2
    entries, nbytes = _core._cache_trim(where, most_entries, most_bytes, args.older or 0.0)
    print(f"removed {entries} entries, {show_size(nbytes)}")
    return 0


def confirmed(args, question):
    if args.yes:
        return True
    if not sys.stdin.isatty():
        print("ingot: nobody to ask; --yes says that you mean it", file=sys.stderr)
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def clear(args, where):
    what = "all values of cached steps" if args.values else "all compiled kernels"
    if not confirmed(args, f"Remove {what} in {where}?"):
        return 2
    entries, nbytes = _core._cache_clear(where, args.values)
    print(f"removed {entries} entries, {show_size(nbytes)}")
    return 0


def export(args, where):
    target = os.path.abspath(args.file)
    if os.path.lexists(target) and not args.force:
        print(f"ingot: {target} exists; --force replaces it", file=sys.stderr)
        return 2
    fd, temp = tempfile.mkstemp(prefix=".ingot-export-", dir=os.path.dirname(target))
    try:
        try:
            report = _core._cache_export(where, fd)
            os.fsync(fd)
        finally:
            os.close(fd)
        if not report["entries"]:
            raise OSError(f"{where}: no kernels to export (of a sealed layer, copy its pack)")
        os.rename(temp, target)
    except BaseException:
        os.unlink(temp)
        raise
    print(f"{target}: {report['entries']} entries, {show_size(report['bytes'])}")
    if report["left_out"]:
        print(f"left out: {report['left_out']} damaged or unreadable")
    print("it holds machine code and no notes; give it to those who trust you to run code")
    return 0


def refusal(fd, path):
    """Why an archive must not be read, or None: who else could change it while we read?"""
    info = os.fstat(fd)
    if not st.S_ISREG(info.st_mode):
        return f"{path} is no file"
    if info.st_uid not in (os.geteuid(), 0):
        return (f"{path} belongs to user {info.st_uid}, who can still change it; copy it, look at where it "
                "comes from, and import the copy")
    if info.st_mode & (st.S_IWGRP | st.S_IWOTH):
        return f"others may write to {path}; run chmod go-w on it"
    return None


def import_(args, where):
    if not args.trust:
        print("ingot: an archive is machine code: whoever made it can do anything that you can, at the next\n"
              f"launch of a kernel. If you know who made {args.file}, say --trust.", file=sys.stderr)
        return 2
    fd = os.open(args.file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        why = refusal(fd, args.file)
        if why:
            print(f"ingot: {why}", file=sys.stderr)
            return 1
        os.makedirs(where, mode=0o700, exist_ok=True)
        report = _core._cache_import(where, fd, *bounds())
    finally:
        os.close(fd)
    print(f"{report['entries']} entries read, {report['new']} of them new here")
    if report["left_out"]:
        print(f"left out: {report['left_out']} of another version, or that could not be written")
    return 0


# ---- the command line ---------------------------------------------------------------------------


def add(commands, command):
    """Puts `cache` and its commands in place. `command` makes one, as in ingot/_cli.py; returns the
    group, for commands that have files of their own."""
    group = commands.add_parser(
        "cache", help="what is in the cache, and changing it",
        description="Looks at the cache of compiled kernels, and changes it.",
    )
    cache = group.add_subparsers(metavar="command", required=True)

    def one(name, run, text, json_too=False, **more):
        made = command(name, run, text, cache, **more)
        if json_too:
            made.add_argument("--json", action="store_true", help="as JSON, for programs")
        return made

    it = one("ls", ls, "lists kernels: name, file, variants, size, last use, machine", True)
    it.add_argument("kernel", nargs="?", help="only names that hold this")
    one("stat", stat, "totals, bounds, layers and their rights", True)
    it = one("show", show, "what a kernel was compiled for: every question with its answer, tasks, images")
    it.add_argument("what", metavar="KEY|KERNEL", help="a part of the name, or the start of a key")
    it = one("verify", verify, "reads and checks every entry; exit status 1 when one is bad", True)
    it.add_argument("--repair", action="store_true", help="remove what is damaged")
    it = one("trim", trim, "removes what was not used for longest; without options down to the bounds")
    it.add_argument("--size", type=argument(size), help="down to so many bytes: 500M, 2G")
    it.add_argument("--entries", type=argument(whole), help="down to so many files")
    it.add_argument("--older", type=argument(span), help="what was not used for so long: 12h, 30d")
    it = one("export", export, "writes all kernels to one file")
    it.add_argument("file")
    it.add_argument("--force", action="store_true", help="replace the file")
    it = one("import", import_, "takes the kernels of such a file in; it is code, see --trust", missing_ok=True)
    it.add_argument("file")
    it.add_argument("--trust", action="store_true", help="you know who made the file, and that is fine")
    it = one("clear", clear, "removes all compiled kernels, and nothing else")
    it.add_argument("--yes", action="store_true", help="without asking")
    it.add_argument("--values", action="store_true", help="the values of cached steps instead")
    return cache
