"""The program of a graph kernel as text and as a picture (qd.graph.visualize)."""

import os
import re
import shutil
import subprocess


class _Node:
    """A loop, checkpoint, fork, section or task, with what is inside."""

    def __init__(self, kind, label="", runs=0, ns=0):
        self.kind, self.label, self.runs, self.ns = kind, label, runs, ns
        self.inside = []

    def title(self):
        cost = ""
        if self.runs:
            times = f"{self.runs} x " if self.runs > 1 else ""
            cost = f", {times}{_duration(self.ns / self.runs)}"
        return f"{self.kind}{' ' if self.label else ''}{self.label}{cost}"


def _duration(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _tree(steps):
    root = _Node("graph")
    around = [root]
    for kind, number, text, parallel, runs, ns in steps:
        text = re.sub(r"\barg\((\w+)\)", r"\1", text)  # a path, as the kernel says it
        if kind == "TASK":
            place = f" {os.path.basename(text)}" if text else ""
            node = _Node("parallel loop" if parallel else "serial task", place.strip(), runs, ns)
            around[-1].inside.append(node)
        elif kind in ("LOOP", "STAGE", "FORK", "SECTION"):
            if kind == "SECTION" and around[-1].kind == "section":
                around.pop()
            words = {"LOOP": "do while", "STAGE": "checkpoint", "FORK": "parallel", "SECTION": "section"}
            node = _Node(words[kind], str(number) if kind == "STAGE" else "")
            around[-1].inside.append(node)
            around.append(node)
        else:
            if around[-1].kind == "section":
                around.pop()
            node = around.pop()
            if kind == "LOOP_END":
                node.label = text
            elif kind == "STAGE_END":
                node.label += f", yields on {text}"
    return root


def _lines(node, prefix=""):
    for i, inner in enumerate(node.inside):
        last = i + 1 == len(node.inside)
        yield f"{prefix}{'`-- ' if last else '|-- '}{inner.title()}"
        yield from _lines(inner, prefix + ("    " if last else "|   "))


class _Dot:
    """Graphviz text: tasks are boxes in their order, everything else is a frame around them."""

    def __init__(self, name):
        self.lines = [f'digraph "{name}" {{', "  compound=true; rankdir=TB;",
                      '  node [shape=box, fontname="sans-serif", fontsize=10];',
                      '  graph [fontname="sans-serif", fontsize=10, style="rounded"];']
        self.count = 0

    def name(self):
        self.count += 1
        return f"n{self.count}"

    def chain(self, nodes, before, pad):
        """Draws nodes one after the other; returns the boxes that the next one follows."""
        for node in nodes:
            before = self.draw(node, before, pad)
        return before

    def draw(self, node, before, pad):
        if node.kind in ("parallel loop", "serial task"):
            box = self.name()
            title = node.title().replace(", ", "\\n").replace('"', "'")
            self.lines.append(f'{pad}{box} [label="{title}"];')
            self.lines += [f"{pad}{b} -> {box};" for b in before]
            return [box]
        self.lines.append(f"{pad}subgraph cluster_{self.name()} {{")
        title = node.title().replace('"', "'")
        self.lines.append(f'{pad}  label="{title}";')
        if node.kind == "parallel":
            ends = [e for s in node.inside for e in self.draw(s, before, pad + "  ")]
        else:
            ends = self.chain(node.inside, before, pad + "  ")
        self.lines.append(f"{pad}}}")
        return ends or before


def visualize(kernel, path=None):
    kernel = getattr(kernel, "__func__", kernel)
    steps = kernel._graph_text()
    if not steps:
        raise RuntimeError(f"{kernel.__qualname__} has not been launched: there is no program to show yet")
    root = _tree(steps)
    text = "\n".join([f"{kernel.__qualname__}", *_lines(root)]) + "\n"
    if path is None:
        return text
    path = os.fspath(path)
    ending = os.path.splitext(path)[1].lower().lstrip(".")
    if ending in ("svg", "png") and shutil.which("dot"):
        dot = _Dot(kernel.__qualname__)
        dot.chain(root.inside, [], "  ")
        subprocess.run(["dot", f"-T{ending}", "-o", path], input="\n".join([*dot.lines, "}"]) + "\n",
                       text=True, check=True)
        return text
    if ending in ("svg", "png"):
        path = os.path.splitext(path)[0] + ".txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return text
