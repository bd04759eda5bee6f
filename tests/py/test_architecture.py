"""ARCHITECTURE.md is true: each function that it names is defined in the file that it says, each path
exists, and so does each test that a page of the documentation names."""

import re

from conftest import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
WAY = re.compile(r"^\| [^|]+ \| `(\w+)` \| `([\w./]+)` \|", re.M)
PATH = re.compile(r"`((?:src|ingot|tests|tools|docs|bench)/[\w./*]+)`")


def section(title):
    return TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def defined(name, path):
    text = (ROOT / path).read_text()
    if path.endswith(".py"):
        return re.search(rf"^(def|class) {name}\b", text, re.M)
    return re.search(rf"^[A-Za-z][^;=\n]*\b{name}\((?:[^;{{]|\n)*\{{", text, re.M)


def test_functions_are_where_it_says():
    rows = WAY.findall(TEXT)
    assert len(rows) >= 20
    wrong = [f"{name} in {path}" for name, path in rows if not (ROOT / path).is_file() or not defined(name, path)]
    assert not wrong


def test_the_check_finds_what_is_wrong():
    assert defined("ing_py_kernel_call", "src/py/call/call.c")
    assert not defined("ing_py_kernel_call", "src/py/call/bind.c")  # named there at the most
    assert not defined("ing_rt_run", "src/py/call/call.c")  # called there


def test_the_table_of_changes():
    rows = [line for line in section("To change X, open Y").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 25
    missing = [p for row in rows for p in PATH.findall(row) if not list(ROOT.glob(p))]
    assert not missing and all(PATH.search(row) for row in rows)


def test_every_folder_has_its_place():
    layers = re.search(r"^base  store  .*$", TEXT, re.M)[0].split()
    assert {p.name for p in (ROOT / "src").iterdir() if p.is_dir()} <= set(layers)


def test_tests_that_documents_name_exist():
    missing = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`?\b(tests/(?:py|c)/\w+\.(?:py|c))\b", page.read_text()):
            if not (ROOT / name).is_file():
                missing.append(f"{page.name}: {name}")
    assert not missing
