"""Checks that the C files are as clang-format writes them (.clang-format decides).

Versions of clang-format differ, so only the one that pyproject.toml asks for counts.
Exit status 0 formatted, 1 not, 77 clang-format is not installed.

    check_format.py [--fix] [root]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_RUN = 77


def find_clang_format():
    beside = pathlib.Path(sys.executable).with_name("clang-format")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("clang-format")


def c_files(root):
    for folder in ("src", "tests/c", "tests/fuzz"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            yield path


def check(root, tool, fix=False):
    """One run for all files: the tool takes longer to start than to read them."""
    run = subprocess.run(
        [tool, f"--style=file:{root / '.clang-format'}", *(["-i"] if fix else ["-n", "-Werror"]),
         *map(str, c_files(root))], capture_output=True, text=True)
    found = {}
    for line in run.stderr.splitlines():
        path, _, rest = line.partition(":")
        where = rest.partition(":")[0]
        if where.isdigit():  # the first of each file
            found.setdefault(path, f"{pathlib.Path(path).relative_to(root)}:{where}: not formatted")
    if run.returncode and not found:
        raise RuntimeError(f"clang-format failed: {run.stderr}")
    return list(found.values())


def main(argv):
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("root", nargs="?", type=pathlib.Path, default=ROOT)
    ap.add_argument("--fix", action="store_true", help="rewrite the files")
    args = ap.parse_args(argv[1:])
    tool = find_clang_format()
    if tool is None:
        print("format: not run: clang-format is not installed")
        return NOT_RUN
    found = check(args.root.resolve(), tool, args.fix)
    print("\n".join(found) if found else "format: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
