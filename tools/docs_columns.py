"""Griffe's extension for tools/build_docs.py: parameters that a docstring has in two columns, which help() shows as they are,
become a list; as Markdown they would be one paragraph."""

import re

import griffe

ROW = re.compile(r"([\w*]+(?:, [\w*]+)*)  +(\S.*)")


def listed(text):
    """The text with its rows as items of a list; lines that continue one are indented."""
    out, inside = [], False
    for line in text.splitlines():
        row = ROW.fullmatch(line)
        if row:
            out += [] if inside else [""]
            out.append(f"- `{row[1]}`: {row[2]}")
        else:
            if inside and line[:1] not in (" ", ""):
                out.append("")
            out.append(f"    {line.strip()}" if inside and line[:1] == " " else line)
        inside = bool(row) or (inside and line[:1] == " ")
    return "\n".join(out)


class Columns(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = listed(obj.docstring.value)
