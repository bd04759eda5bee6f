"""The Python blocks of the documentation run: each page's blocks form one program, written
to a real file (kernels need their source) and run in a fresh process."""

import os
import re
import runpy
import subprocess
import sys

import pytest
from conftest import ROOT, needs

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
PAGES = sorted(
    p for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if BLOCK.search(p.read_text())
)
ALL_PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def program(page):
    """The blocks at the lines where the page has them, so that errors point there."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for match in BLOCK.finditer(text):
        first = text.count("\n", 0, match.start(1))
        block = match[1].splitlines()
        lines[first : first + len(block)] = block
    return "\n".join(lines) + "\n"


NEEDS = re.compile(r"^<!-- needs: ([\w ,]+) -->$", re.MULTILINE)


def marked(page):
    """docs/caching.md shows what is counted. A page about another library says which: `<!-- needs: dask -->`."""
    marks = [pytest.mark.counts("lowerings")] if page.stem == "caching" else []
    needed = NEEDS.search(page.read_text(encoding="utf-8"))
    mark = needs(*needed[1].replace(",", " ").split()) if needed else None
    if isinstance(mark, pytest.MarkDecorator):  # something is missing
        marks.append(mark)
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [marked(p) for p in PAGES], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_blocks_run(page, tmp_path, cache_dir):
    path = tmp_path / f"page_{page.stem}.py"  # never the name of a module
    path.write_text(program(page), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=dict(os.environ), capture_output=True,
        text=True, timeout=300,
    )
    assert done.returncode == 0, f"{page}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_index_has_all_pages():
    """Those of the language and the how-to pages as well; internals and generated pages have lists of their own."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in LINK.findall(index)}
    pages = {p for p in (ROOT / "docs").rglob("*.md") if not {"internals", "reference"} & set(p.parts)}
    assert not {p.name for p in pages - linked} - {"index.md", "package.md"}


def test_the_page_of_examples_has_all():
    page = (ROOT / "docs" / "howto" / "examples.md").read_text(encoding="utf-8")
    examples = {p.name for p in (ROOT / "examples").iterdir() if p.suffix in (".py", ".ipynb") and p.name[0] != "_"}
    assert len(examples) > 15 and examples == set(re.findall(r"`(\w+\.(?:py|ipynb))`", page))


def test_the_reference_has_all_public_names():
    """Those of the site, which tools/build_docs.py makes of docstrings."""
    import ingot as qd

    site = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))
    listed = {name for _, _, module, names in site["REFERENCE"] if names and module == "ingot" for name in names.split()}
    public = {name for name in dir(qd) if not name.startswith("_")} - {"compat"}
    assert not public - listed - set(site["ELSEWHERE"].split()), public - listed - set(site["ELSEWHERE"].split())
    assert not {name for name in listed if not hasattr(qd, name)}


def test_bars_in_tables_of_the_site():
    bars = runpy.run_path(str(ROOT / "tools" / "build_docs.py"))["bars_in_tables"]
    text = "| `a \\| b < c` | `d` |\nno `x \\| y` table"
    assert bars(text) == "| <code>a &#124; b &lt; c</code> | `d` |\nno `x \\| y` table"


def test_every_class_of_errors_is_in_the_index_of_errors():
    import ingot as qd

    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    classes = [n for n in dir(qd) if isinstance(getattr(qd, n), type) and issubclass(getattr(qd, n), BaseException)]
    assert len(classes) >= 19 and not [n for n in classes if f"`{n}`" not in text]


def test_getting_started_is_among_them():
    assert ROOT / "docs" / "getting-started.md" in PAGES


# ---- tables whose rows name their tests ------------------------------------------------------------

TABLE = re.compile(r"^\|.*\| tests? \|\n\|[-|: ]+\|\n((?:\|.*\|\n)+)", re.MULTILINE)
FILES = re.compile(r"\b(?:tests/c/|bench/)?[a-z_0-9]+\.(?:py|c)\b")
NAMES = re.compile(r"\btest_[a-z_0-9]+\b(?!\.(?:py|c)\b)")
DEFAULT = "test_never_stale.py"  # named once, at the top of the table in docs/caching.md


def rows():
    for page in ALL_PAGES:
        for table in TABLE.findall(page.read_text(encoding="utf-8")):
            for row in table.splitlines():
                yield page, row.rstrip("|").rpartition(" | ")[2]


def path_of(name):
    tests = ROOT / "tests"
    return ROOT / name if "/" in name else tests / ("c" if name.endswith(".c") else "py") / name


def missing(cell):
    """What a cell names and is not there."""
    files = [f for f in FILES.findall(cell) if not path_of(f).exists()]
    texts = "".join(path_of(f).read_text(encoding="utf-8") for f in {*FILES.findall(cell), DEFAULT} - {*files})
    return files + [n for n in NAMES.findall(cell) if not re.search(rf"\b(?:def|int|void) {n}\(", texts)]


def test_tests_that_tables_name_are_there():
    found = list(rows())
    pages = {page.name for page, _ in found}
    assert {"caching.md", "cache.md", "differences.md", "store.md"} <= pages and len(found) > 160
    for page, cell in found:
        assert FILES.search(cell) or NAMES.search(cell), f"{page}: no test: {cell}"
        assert not missing(cell), f"{page}: {missing(cell)} in: {cell}"


def test_a_test_that_is_not_there_is_noticed():
    assert missing("test_gone_long_ago.py test_nothing, test_in") == ["test_gone_long_ago.py", "test_nothing"]
