"""Checks that each rule that a file cites (R11, POOL2) is defined, and defined once: those of the
whole project in docs/internals/rules.md, those of one file at its head. Called by
tools/run_tests.py.

    check_rules.py [folder]

A definition is a row `| R1 | ...` of rules.md, or a line ` *  POOL1 Text` in a comment of src.
What looks like a rule but is none (I32, S_8) is not taken for one: a name counts when its letters
are those of some definition.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"^\| ([A-Z]+\d+) \|", re.M)
HEAD = re.compile(r"^ \*  ?([A-Z]+\d+) \S", re.M)
CITED = re.compile(r"(?<![\w-])([A-Z]+)(\d+)(?![\w-])")
# Letters that also stand for something else in code or texts, and where they are rules.
AMBIGUOUS = {"I": ("src", "docs/internals", "tests/c"), "D": ("src", "docs/internals", "tests/c")}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def texts(root):
    """(path, the part of the file in which rules are cited)."""
    for folder, endings in (("src", ".c .h .def"), ("docs", ".md"), ("ingot", ".py"),
                            ("tests", ".c .h .py"), ("tools", ".py"), ("bench", ".py")):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in endings.split() and path.name != "check_rules.py":
                text = path.read_text(errors="replace")
                if path.suffix in (".c", ".h", ".def"):
                    text = "\n".join(COMMENT.findall(text))
                yield path.relative_to(root), text
    for path in sorted(root.glob("*.md")):
        yield path.relative_to(root), path.read_text(errors="replace")


def definitions(root, problems):
    found = {}
    rules = root / "docs" / "internals" / "rules.md"
    places = [(rules.relative_to(root), TABLE, rules.read_text())]
    places += [(p, HEAD, t) for p, t in texts(root) if p.parts[0] == "src"]
    for path, pattern, text in places:
        for name in pattern.findall(text):
            if name in found:
                problems.append(f"{path}: {name} is defined in {found[name]} already")
            found[name] = path
    return found


def letters(name):
    return name.rstrip("0123456789")


def counts(prefix, path):
    where = AMBIGUOUS.get(prefix)
    return not where or any(str(path).startswith(w) for w in where)


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    problems = []
    defined = definitions(root, problems)
    known = {letters(name) for name in defined}
    cited = 0
    for path, text in texts(root):
        for prefix, number in CITED.findall(text):
            if prefix in known and counts(prefix, path) and prefix + number not in ("I32", "I64"):
                cited += 1
                if prefix + number not in defined:
                    problems.append(f"{path}: {prefix}{number} is defined nowhere")
    for line in dict.fromkeys(problems):
        print(line)
    if not problems:
        print(f"rules: {len(defined)} defined, {cited} times named")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
