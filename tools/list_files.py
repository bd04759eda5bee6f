"""Lists the files below a folder whose names end in one of the given endings.

Called by meson.build, which has no glob: `list_files.py ingot .py .pyi`. Paths are
relative to the repository, sorted, one per line; hidden and cache folders are left out.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def list_files(root, folder, endings, prefix=""):
    found = []
    for where, folders, names in os.walk(pathlib.Path(root) / folder):
        folders[:] = [d for d in folders if d != "__pycache__" and not d.startswith(".")]
        for name in names:
            if name.startswith(prefix) and name.endswith(tuple(endings)):
                path = pathlib.Path(where, name).relative_to(root)
                found.append(path.as_posix())
    return sorted(found)


if __name__ == "__main__":
    for line in list_files(ROOT, sys.argv[1], sys.argv[2:]):
        print(line)
