"""Checks that every folder of src/ includes only folders that stand above it in the list of
layers, and that Python.h is included in src/py alone.

    check_layers.py [root]      exit status 1 and one line per violation
"""

import pathlib
import re
import sys

from layers import EVERYWHERE, EXCEPTIONS, LAYERS, ROOMS

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
PYTHON_HEADERS = re.compile(r"^(Python|structmember|frameobject|datetime|numpy/.*)\.h$")


def sources(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".c", ".h", ".def"):
            yield path


def judge(folder, quote, target):
    """Why `folder` may not include `target`, or None."""
    if quote == "<" or PYTHON_HEADERS.match(target):
        if PYTHON_HEADERS.match(target) and folder != "py":
            return "Python's headers belong to src/py alone"
        return None
    if target in EVERYWHERE or (folder, target) in EXCEPTIONS:
        return None
    above, slash, _ = target.partition("/")
    if not slash:
        return f'name the folder: #include "{folder}/{target}"'
    if above not in LAYERS:
        return f"{above} is not a layer (tools/layers.py)"
    if LAYERS.index(above) > LAYERS.index(folder):
        return f"{above} is a later layer than {folder}"
    if target.endswith("_int.h") and above != folder:
        return f"{target} is internal to {above}"
    return None


def judge_room(where, target):
    """Why the file `where` of src/py may not include `target`, another room's, or None."""
    if not target.startswith("py/") or target.count("/") == 1:
        return None
    theirs = target.split("/")[1]
    if theirs not in ROOMS:
        return f"{theirs} is no room of src/py (tools/layers.py)"
    own = where.parts[2] if len(where.parts) == 4 else None
    if own is None:
        allowed = where.name == "module.c" or theirs != "value"
    else:
        allowed = theirs == own or theirs in ROOMS.get(own, ())
    return None if allowed else f"{where.parent} may not use src/py/{theirs} (tools/layers.py)"


def check(root):
    found = []
    for path in sources(root):
        where = path.relative_to(root)
        folder = where.parts[1]
        if folder not in LAYERS:
            found.append(f"{where}: {folder} is not a layer (tools/layers.py)")
            continue
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            why = judge(folder, match[1], match[2]) or judge_room(where, match[2])
            if why:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{where}:{line}: {match[0].strip()}: {why}")
    return found


def main(argv):
    found = check(pathlib.Path(argv[1]).resolve() if len(argv) > 1 else ROOT)
    print("\n".join(found) if found else "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
