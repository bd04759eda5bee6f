#!/usr/bin/env python3
"""Writes the tables of docs/options.md from the tables of the sources: src/base/base.h (settings of the
engine) and ingot/_options.py. With --check it only says whether the page is as it would be written."""

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "options.md"
DTYPES = {"4": "`qd.i32`", "11": "`qd.f32`"}


def settings():
    """name, default as text, help of each setting of the engine."""
    text = (ROOT / "src" / "base" / "base.h").read_text(encoding="utf-8")
    body = re.search(r"#define ING_SETTING_LIST\(X\)(.*?)\n\ntypedef", text, re.DOTALL)[1]
    for name, kind, default, words in re.findall(
        r"X\((\w+), ([BIS]), ((?:\w|\(|\)| |<)+?), \w+,\s*\"((?:[^\"]|\"\s*\\?\s*\")*)\"\)", body.replace("\\\n", " ")
    ):
        value = {"B": str(default == "1"), "I": default, "S": DTYPES.get(default, default)}[kind]
        value = str(2 << 30) if "INT64_C" in value else value
        yield name, value if kind == "S" else f"`{value}`", re.sub(r"\"\s*\"", "", words)


def tables():
    o = runpy.run_path(str(ROOT / "ingot" / "_options.py"))
    own = [row for row in settings() if row[0] not in o["INNER"]]
    rows = [f"| `{name}` | {default} | {words} |" for name, default, words in own]
    rows.append("| `offline_cache_file_path` | `None` | where the cache on disk is; see INGOT_CACHE_DIR |")
    yield "settings", ["| option | default | what it does |", "|---|---|---|", *rows]
    rows = [f"| `{name}` | `{o['ACCEPTED'][name]!r}` | {words} |" for name, words in o["EFFECTIVE"].items()]
    yield "effective", ["| option | default | what it does |", "|---|---|---|", *rows]
    idle = [name for name in o["ACCEPTED"] if name not in o["EFFECTIVE"]]
    yield "idle", [", ".join(f"`{name}`" for name in sorted(idle))]
    rows = [f"| `{name}` | {words} |" for name, words in o["VARIABLES"].items()]
    yield "variables", ["| variable | what it is |", "|---|---|", *rows]


def written(page):
    for name, lines in tables():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert mark.search(page), name
        page = mark.sub(lambda m, lines=lines: m[1] + "\n" + "\n".join(lines) + "\n\n" + m[2], page)
    return page


def main():
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if "--check" in sys.argv:
        print("options: ok" if new == page else "options: docs/options.md is out of date: tools/write_options.py writes it")
        return new != page
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
