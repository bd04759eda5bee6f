"""ARCHITECTURE.md is true: each function that it names is defined in the file that it says, each path
exists, and so does each test that a page of the documentation names. Pages about a folder name each of its
files, and rules from the first to the last one that there is."""

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


# ---- docs/internals -----------------------------------------------------------------------

INTERNALS = ROOT / "docs" / "internals"


def page(name):
    return (INTERNALS / name).read_text()


def not_named(text, files):
    return [f.name for f in files if not re.search(rf"(?<![\w/]){re.escape(f.name)}`", text)]


def test_pages_name_each_file_of_their_folder():
    for name, folder in ("codegen.md", "gen"), ("images.md", "image"), ("store.md", "store"), ("runtime.md", "rt"):
        files = sorted((ROOT / "src" / folder).glob("*.c"))
        assert len(files) > 8
        assert not not_named(page(name), files), name
    assert not_named("| `ab.c` | `x/b.c`", [ROOT / "b.c"]) == ["b.c"]


def test_the_page_names_each_pass_and_flag():
    passes = re.findall(r'^ +\{"(\w+)", ing_pass_', (ROOT / "src/pass/pipeline.c").read_text(), re.M)
    rows = re.findall(r"^\| (\w+) \|", page("ir.md").split("## Passes\n")[1], re.M)
    assert len(passes) > 10 and rows == ["pass", *passes]
    flags = re.findall(r'\{ING_IR_\w+, "(\w+)"\}', (ROOT / "src/ir/types.c").read_text())
    said = re.search(r"the operation, flags \(([^)]*)\)", page("ir.md"))[1]
    assert len(flags) > 10 and sorted(re.findall(r"`(\w+)`", said)) == sorted(flags)


def test_ranges_of_rules_reach_to_the_last():
    """`REDUCE1 to REDUCE8`: there is no ninth."""
    sources = [p for folder in ("src", "ingot") for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h", ".py")]
    last = {}
    for path in sources:
        for name, number in re.findall(r"\b([A-Z]{2,})(\d+)\b", path.read_text()):
            last[name] = max(last.get(name, 0), int(number))
    wrong, seen = [], 0
    for path in [*sources, *INTERNALS.glob("*.md"), *ROOT.glob("*.md")]:
        for name, end in re.findall(r"\b([A-Z]{2,})1 to \1(\d+)\b", path.read_text()):
            seen += 1
            if last.get(name) != int(end):
                wrong.append(f"{path.name}: {name}1 to {name}{end}, the last is {last.get(name)}")
    assert seen > 15 and not wrong
