"""Messages: every mistake of tests/py/messages.py and messages_calls.py is told at its place,
with a remedy, and leaves the process as it was."""

import importlib
import linecache
import re
import sys
import types
import unicodedata

import numpy as np
import pytest
from conftest import ROOT
from messages_calls import ROWS  # all of them: it adds to those of messages.py

import ingot as qd

REMEDIES = 0.9  # the part of all messages that must name one


class Program:
    """A row's text without its marks, and where they were."""

    def __init__(self, row):
        self.row = row
        self.lib = "lib_" + re.sub(r"\W", "_", row.name)
        self.file = f"<mistake: {row.name}>"
        self.text, self.place = self.take(row.text, self.file)
        if row.lib:
            text, place = self.take(row.lib.lstrip("\n"), f"<{self.lib}>")
            self.lib_text, self.place = text, place or self.place

    def take(self, text, file):
        text = text.replace("LIB", self.lib)
        start = text.find("«")
        if start < 0:
            return text, None
        marked = text[start + 1:text.index("»")]
        line = text.count("\n", 0, start) + 1
        col = start - (text.rfind("\n", 0, start) + 1) + 1
        text = text.replace("«", "").replace("»", "")
        return text, (file, line, col, marked.split("\n")[0])


def program(row):
    return Program(row)


def execute(text, file, scope):
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec", dont_inherit=True), scope)


def run_row(row, p):
    """The exception that the program ends with."""
    scope = {"qd": qd, "M": np.zeros((4, 4), np.float32)}
    try:
        if row.init:
            exec(f"qd.init({row.init})", scope)
        if row.lib:
            module = types.ModuleType(p.lib)
            sys.modules[p.lib] = module
            execute(p.lib_text, f"<{p.lib}>", module.__dict__)
        execute(p.text, p.file, scope)
        given = {"a": qd.ndarray(qd.f32, 8), "m": qd.ndarray(qd.f32, (4, 4))}
        exec(row.run, scope | given)
    except Exception as e:
        return e
    finally:
        if row.init:
            qd.init()
    return None


def check(row, p, error):
    """What is wrong with the error, as a list of words."""
    if error is None:
        return ["no error"]
    text, wrong = str(error), []
    kind = type(error).__name__
    if kind != row.kind:
        wrong.append(f"{kind} instead of {row.kind}")
    if row.match not in text:
        wrong.append(f"{row.match!r} is not in the message")
    if p.place:
        wrong += check_place(text, *p.place)
    remedy = re.search(r"^help: (.*)", text, re.M)
    if row.help is None:
        if remedy:
            wrong.append("an unexpected remedy")
    elif not remedy or row.help not in remedy[1]:
        wrong.append(f"the remedy {row.help!r} is missing")
    for step in row.chain:
        if step.replace("FILE", p.file) not in text:
            wrong.append(f"{step!r} is not in the message")
    if re.search(r"\b0x[0-9a-f]{6}|\.c:\d|_core|SystemError", text):
        wrong.append("it shows the inside")
    return wrong


def check_place(text, file, line, col, marked):
    wrong, lines = [], text.split("\n")
    if not lines[0].startswith(f"{file}:{line}:{col}: "):
        wrong.append(f"it does not start with {file}:{line}:{col}")
    source = linecache.getline(file, line).rstrip("\n")
    before = source[:col - 1]
    caret = "".join("\t" if c == "\t" else " " * columns(c) for c in before)
    caret += "^" + "~" * (columns(marked) - 1)
    if len(lines) < 3 or lines[1] != source:
        wrong.append("the source line is not shown")
    elif lines[2] != caret:
        wrong.append(f"the caret is not under {marked!r}")
    return wrong


def columns(text):
    """How wide a terminal shows it."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@qd.kernel
def good(a: qd.types.ndarray(), v: qd.f32):
    for i in range(a.shape[0]):
        a[i] = v * i


@pytest.fixture(scope="module", autouse=True)
def settings():
    qd.init()
    yield
    for row in ROWS:
        sys.modules.pop(Program(row).lib, None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_mistake(row):
    p = Program(row)
    error = run_row(row, p)
    assert not check(row, p, error), f"{type(error).__name__}: {error}"
    frames = []
    at = error.__traceback__
    while at:
        frames.append(at.tb_frame.f_code.co_filename)
        at = at.tb_next
    ours = importlib.import_module("ingot").__file__.rsplit("/", 1)[0]
    assert not [f for f in frames if f.startswith(ours) and "_decorators" not in f], frames
    a = qd.ndarray(qd.f32, 5)
    good(a, 2.0)  # the process is as good as before
    assert a[4] == 8


def test_the_corpus():
    assert len(ROWS) >= 120
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert sum(row.help is not None for row in ROWS) >= REMEDIES * len(ROWS)


def test_every_refusal_has_a_remedy():
    """Also those that no row of the corpus meets."""
    for path in sorted((ROOT / "src" / "front").glob("*.c")):
        bare = re.findall(r"ing_front_fail_at\([^,;]+,[^,;]+,[^,;]+,\s*NULL,\s*(\S.*)",
                          path.read_text())
        assert not bare, (path.name, bare)
