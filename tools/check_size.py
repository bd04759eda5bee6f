"""Checks that no C function of the engine is longer than 60 lines, none of the tests longer than
120, and no file longer than 1,000.

Tables and emitters may be exempt, each listed in EXEMPT with its reason. Functions are
found by what every formatted definition has: a line that starts in column one and ends in
`{`, up to the `}` in column one.

    check_size.py [root]
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_FUNCTION = {"src": 60}
MAX_OTHER = 120
MAX_FILE = 1000

# Path, or path:function -> why it may be longer.
EXEMPT = {}

FOLDERS = ("src", "tests/c", "tests/fuzz", "ingot", "tools", "bench", "examples", "tests/py")
NOT_FUNCTION = re.compile(r"^(typedef\b|struct\b[^()]*\{|enum\b[^()]*\{|union\b[^()]*\{|.*=\s*\{)")
NAME = re.compile(r"(\w+)\s*\(")


def functions(lines):
    """(name, first line, number of lines) of each function definition."""
    start = None
    head = 0
    for number, line in enumerate(lines, 1):
        if start is None:
            if line[:1].strip() and line[0] not in "#/*{}":
                head = number  # a definition's first line; its parameters may go on
            if line.rstrip().endswith(";"):
                head = 0
            elif line.rstrip().endswith("{") and head:
                text = " ".join(lines[head - 1 : number])
                name = None if NOT_FUNCTION.match(text) else NAME.search(text)
                start = (name and name[1], head)
        elif line.startswith("}"):
            if start[0]:
                yield start[0], start[1], number - start[1] + 1
            start = None
            head = 0


def check_file(path, where):
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > MAX_FILE and where not in EXEMPT and path.suffix != ".def":
        yield f"{where}: {len(lines)} lines, {MAX_FILE} at most"
    if path.suffix not in (".c", ".h"):
        return
    most = MAX_FUNCTION.get(where.partition("/")[0], MAX_OTHER)
    for name, first, size in functions(lines):
        if size > most and f"{where}:{name}" not in EXEMPT:
            yield f"{where}:{first}: {name} has {size} lines, {most} at most"


def check(root):
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".def", ".py"):
                found.extend(check_file(path, path.relative_to(root).as_posix()))
    return found


def main(argv):
    found = check(pathlib.Path(argv[1]).resolve() if len(argv) > 1 else ROOT)
    print("\n".join(found) if found else "sizes: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
