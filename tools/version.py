"""Prints the version of the project, which pyproject.toml alone states."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version(root=ROOT):
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("pyproject.toml: no version line")
    return found.group(1)


if __name__ == "__main__":
    print(version())
