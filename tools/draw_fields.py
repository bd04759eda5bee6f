#!/usr/bin/env python3
"""Draws docs/fields.svg: where the elements of some fields lie in their blocks.

    python tools/draw_fields.py [PATH]

The fields are made, and the picture shows what their layouts say; nothing in it is drawn by hand.
"""

import itertools
import pathlib
import sys

import ingot as qd

CELL, HEIGHT, LEFT, TOP = 15, 34, 20, 34  # pixels: of 4 bytes, of a row, margins
COLOURS = ("#8ecae6", "#ffb703", "#90be6d", "#e5989b")


def examples():
    """(title, fields by name) of each row."""
    x, y = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.i, 8).place(x, y)
    yield "qd.root.dense(qd.i, 8).place(x, y): AOS, the cells have both", {"x": x, "y": y}
    s = qd.Struct.field({"x": qd.f32, "y": qd.f32}, shape=8, layout=qd.Layout.SOA)
    yield "qd.Struct.field(..., shape=8, layout=qd.Layout.SOA): one array after the other", {"x": s.x, "y": s.y}
    v = qd.Vector.field(3, qd.f32, shape=5)
    yield "qd.Vector.field(3, qd.f32, shape=5): the numbers of a vector lie together", {"v": v}
    w = qd.Vector.field(3, qd.f32, shape=5, layout=qd.Layout.SOA)
    yield "the same with layout=qd.Layout.SOA", {f"v.{k}": p for k, p in zip("xyz", w._parts)}
    m = qd.field(qd.f32, shape=(4, 4))
    yield "qd.field(qd.f32, shape=(4, 4)): row major", {"m": m}
    t = qd.field(qd.f32, shape=(4, 4), order="ji")
    yield "the same with order=\"ji\": column major", {"m": t}
    n = qd.field(qd.f32)
    qd.root.dense(qd.ij, 2).dense(qd.ij, 2).place(n)
    yield "qd.root.dense(qd.ij, 2).dense(qd.ij, 2).place(m): 2 x 2 tiles of 2 x 2", {"m": n}
    a, b = qd.field(qd.f32), qd.field(qd.f32)
    cells = qd.root.dense(qd.i, 3)
    cells.place(a)
    cells.dense(qd.j, 4).place(b)
    yield "c = qd.root.dense(qd.i, 3); c.place(a); c.dense(qd.j, 4).place(b)", {"a": a, "b": b}


def scalars(field):
    """(byte in the block, index as text) of every number of a field; they have 4 bytes."""
    field.shape  # the layout is made
    place, levels = field._levels
    count = max(1, len(field.element_shape) and field.element_shape[0])
    for steps in itertools.product(*(range(extent) for _, extent, _ in levels)):
        index = [0] * len(field.shape)
        for step, (axis, extent, _) in zip(steps, levels):
            index[axis] = index[axis] * extent + step
        at = place + sum(step * stride for step, (_, _, stride) in zip(steps, levels))
        for k in range(count):
            part = "." + "xyzw"[k] if field.element_shape else ""
            yield at + k * 4, ",".join(map(str, index)) + part


def row(top, title, fields):
    """One block: a box per number, coloured by field, with its index."""
    out = [f'<text x="{LEFT}" y="{top - 6}" class="title">{title.replace("<", "&lt;")}</text>']
    for (name, field), colour in zip(fields.items(), COLOURS):
        for at, index in scalars(field):
            x = LEFT + at // 4 * CELL * 2
            out.append(f'<rect x="{x}" y="{top}" width="{CELL * 2}" height="{HEIGHT}" fill="{colour}"/>')
            out.append(f'<text x="{x + CELL}" y="{top + 14}">{name.partition(".")[0]}</text>')
            out.append(f'<text x="{x + CELL}" y="{top + 27}">{index}{name[name.find("."):] if "." in name else ""}</text>')
    return out


def draw():
    """The picture as text."""
    lines, top = [], TOP
    for title, fields in examples():
        lines += row(top, title, fields)
        top += HEIGHT + 40
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * LEFT + 16 * 2 * CELL}" height="{top - 20}" '
        'font-family="sans-serif" font-size="9" text-anchor="middle">\n'
        "<style>rect{stroke:#333}.title{font-size:12px;text-anchor:start}</style>\n"
        '<rect width="100%" height="100%" fill="white" stroke="none"/>\n'
    )
    return head + "\n".join(lines) + "\n</svg>\n"


if __name__ == "__main__":
    home = pathlib.Path(__file__).resolve().parent.parent / "docs" / "fields.svg"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else home).write_text(draw())
