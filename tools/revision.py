"""Writes ing_revision.h: digests of the front end's and of the back end's own files.

A kernel's address on disk depends on the front-end revision and an image's key on the
back-end revision, so that no entry made by another version of our code is ever taken.
The file is rewritten only when its text changes, so an unchanged tree rebuilds nothing.
"""

import argparse
import hashlib
import os
import pathlib

FRONT = ("base", "gate", "ir", "front", "ad", "pass", "trace", "record",
         "cache", "py")
BACK = ("gen", "image")
SOURCE_ENDINGS = (".c", ".h", ".def")
HELPER = "ingot/_helper.py"
# Fingerprints and stored values: no kernel is lowered through them (tools/layers.py has it checked).
NOT_FRONT = ("src/py/value/", "ingot/fingerprint.py", "ingot/_filecache.py", "ingot/_flight.py",
             "ingot/_reach.py", "ingot/_reducers.py", "ingot/_steps.py")


def files_below(root, folder, endings):
    for where, folders, names in os.walk(root / folder):
        folders[:] = [d for d in folders if d != "__pycache__" and not d.startswith(".")]
        for name in names:
            if name.endswith(endings):
                yield pathlib.Path(where, name)


def front_files(root):
    found = [path for folder in FRONT for path in files_below(root, f"src/{folder}", SOURCE_ENDINGS)]
    for path in (*found, *files_below(root, "ingot", (".py",))):
        if not path.relative_to(root).as_posix().startswith(NOT_FRONT):
            yield path


def back_files(root):
    for folder in BACK:  # src/gen/abi.h, the task ABI, is in the first of them
        yield from files_below(root, f"src/{folder}", SOURCE_ENDINGS)
    if (root / HELPER).exists():
        yield root / HELPER


def digest(root, paths):
    """Each file goes in as name and content, both with their length before them."""
    h = hashlib.sha256()
    for path in sorted(set(paths), key=lambda p: p.relative_to(root).as_posix()):
        for part in (path.relative_to(root).as_posix().encode(), path.read_bytes()):
            h.update(len(part).to_bytes(8, "little"))
            h.update(part)
    return h.hexdigest()[:32]


def header(root):
    return (
        "/* Made by tools/revision.py; never edited. */\n"
        "#ifndef ING_REVISION_H\n"
        "#define ING_REVISION_H\n"
        f'#define ING_FRONT_REVISION "{digest(root, front_files(root))}"\n'
        f'#define ING_BACK_REVISION  "{digest(root, back_files(root))}"\n'
        "#endif\n"
    )


def write_if_changed(path, text):
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return True


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--root", type=pathlib.Path, required=True)
    ap.add_argument("--out", type=pathlib.Path, required=True)
    args = ap.parse_args()
    write_if_changed(args.out, header(args.root.resolve()))


if __name__ == "__main__":
    main()
