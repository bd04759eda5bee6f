"""The command `ingot`: looks at caches and tells what happened in them.

Each command is a function of the parsed arguments and the directory that prints and returns the exit
status. It reads a cache as a program would, with the same checks of owner and mode; it compiles nothing.
"""

import argparse
import os
import sys
import time

from ingot import _cachetool, _core
from ingot._init import IngotOptionError
from ingot._numbers import argument, positive


def default_directory():
    """Where programs keep their cache, as the environment stands."""
    for name in ("INGOT_OFFLINE_CACHE_FILE_PATH", "QD_OFFLINE_CACHE_FILE_PATH"):
        if os.environ.get(name, "").strip():
            return os.environ[name].strip()
    return _core.cache_dir()


def directory_in_use():
    """Of the layers the one that programs write, else the first that they read."""
    where = default_directory()
    if not os.environ.get("INGOT_CACHE_PATH") or where != _core.cache_dir():
        return where
    rows = _cachetool.layers(where or "")
    if rows[0]["rights"] != "missing":  # else a program would make it
        rows.sort(key=lambda row: {"written": 0, "read": 1}.get(row["rights"], 2))
    return rows[0]["path"] or None


def _directory(args):
    """The cache to look at; a SystemExit says that there is none."""
    if args.anywhere:
        return None
    where = args.dir or directory_in_use()
    if where is None:
        sys.exit("ingot: there is no cache directory: neither INGOT_CACHE_DIR nor a home is set")
    if not os.path.isdir(where) and not args.missing_ok:
        sys.exit(f"ingot: {where}: no such directory")
    return where


def explain(args, where):
    """Prints why kernels were compiled, the last compile last."""
    rows = sorted(_core._explain_all(where), key=lambda row: row[1])
    if args.kernel:
        rows = [row for row in rows if args.kernel in row[0]]
    if not rows:
        print("no compile is on record" + (f" for '{args.kernel}'" if args.kernel else ""))
        return 1 if args.kernel else 0
    if args.code:
        return _code(rows)
    for label, when, pid, why, _ in rows[-args.last:]:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))
        print(f"{stamp}  {pid:>7}  {label}: {why}")
    return 0


def _code(rows):
    """Prints what was made of the loops of each kernel when it was compiled last."""
    for label, code in {row[0]: row[4] for row in rows}.items():
        print(f"{label}:")
        for line in code.split("\n"):
            print("  " + (line or "nothing is on record: it has no loops and no updates"))
    return 0


def doctor(args, where):
    """Tells what would fail here."""
    from ingot import _doctor

    return _doctor.run(args, where)


def seal(args, where):
    """Writes a cache as a layer that is only read."""
    from ingot import _seal

    return _seal.run(args, where)


def version():
    """Ingot, the interface that it provides, Python and the processor's instructions."""
    import platform

    from ingot import __version__, _options

    reference = ".".join(map(str, _options.REFERENCE))
    return f"ingot {__version__} (interface of Quadrants {reference}; Python {platform.python_version()}, {platform.machine()})"


# What others call the commands, and those of `ingot cache`.
_WORDS = {
    "list": "ls", "dir": "ls", "inspect": "show", "cat": "show", "info": "stat", "status": "stat", "stats": "stat", "size": "stat", "du": "stat",
    "gc": "trim", "evict": "trim", "prune": "trim", "clean": "clear", "purge": "clear", "rm": "clear", "remove": "clear", "delete": "clear",
    "check": "verify", "fsck": "verify", "pack": "seal", "freeze": "seal", "save": "export", "load": "import", "why": "explain", "env": "doctor",
    "sysinfo": "doctor", "help": "--help", "version": "--version",
}


class _Parser(argparse.ArgumentParser):
    """Says which command was probably meant."""

    def error(self, message):
        import difflib
        import re

        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong:
            name, known = wrong[1].lower(), re.findall(r"[\w-]+", wrong[2])
            word = _WORDS.get(name, name)
            if self.prog == "ingot" and word in {*_WORDS.values()} - {*known, "--help", "--version"}:
                word = f"cache {word}"
            fits = word in known or word.startswith(("cache ", "--"))
            meant = [word] if fits else difflib.get_close_matches(name, known, 1)
            message = re.sub(r" \(choose from.*", "", message)
            message += f"; did you mean '{self.prog} {meant[0]}'?" if meant else f"; there are {', '.join(known)}"
        super().error(message)


def parser():
    top = _Parser(prog="ingot", description="Looks at Ingot's caches.")
    top.add_argument("--version", action="version", version=version())
    top.set_defaults(run=None)
    commands = top.add_subparsers(metavar="command")

    def command(name, run, text, within=commands, missing_ok=False, anywhere=False):
        one = within.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        one.set_defaults(run=run, missing_ok=missing_ok, anywhere=anywhere)
        if not anywhere:
            one.add_argument("--dir", help="the cache directory (default: the one in use)")
        return one

    one = command("explain", explain, "why kernels were compiled")
    one.add_argument("kernel", nargs="?", help="a part of the name: module.function")
    one.add_argument("-n", "--last", type=argument(positive), default=50, help="at most so many compiles")
    one.add_argument("--code", action="store_true", help="what was made of their loops instead")
    one = command("doctor", doctor, "what is installed, where caches are, what would fail", anywhere=True)
    one.add_argument("--json", action="store_true", help="as JSON, for programs")
    cache = _cachetool.add(commands, command)
    one = command("seal", seal, "writes the kernels of a cache as a layer that is only read", cache)
    one.add_argument("target", metavar="DIR", help="the layer, for INGOT_CACHE_PATH")
    return top


def main(argv=None):
    top = parser()
    args = top.parse_args(argv)
    if args.run is None:
        top.print_help()
        return 2
    try:
        return args.run(args, _directory(args))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, IngotOptionError) as e:
        print(f"ingot: {e}", file=sys.stderr)
        return 1
