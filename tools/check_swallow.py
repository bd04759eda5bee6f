"""Checks that src/py asks CPython by functions that tell "there is none" from an error. Those
listed here take lack of memory, an interrupt or a failing `__eq__` for a "no", or clear what
they find: src/py/compat.h has their siblings, and the two ways to take an exception for an
answer (ing_py_took, ing_py_took_any), and is the only file that may use them.

    check_swallow.py [root]     exit status 1 and one line per use
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOME = "compat.h"

INSTEAD = {
    "PyDict_GetItem": "PyDict_GetItemRef",
    "PyDict_GetItemString": "PyDict_GetItemStringRef",
    "PyErr_Clear": "ing_py_took, ing_py_took_any",
    "PyErr_Print": "hand the exception on",
    "PyErr_PrintEx": "hand the exception on",
    "PyMapping_HasKey": "PyMapping_GetOptionalItem",
    "PyMapping_HasKeyString": "PyMapping_GetOptionalItemString",
    "PyObject_HasAttr": "PyObject_GetOptionalAttr",
    "PyObject_HasAttrString": "ing_py_attr_maybe",
    "PySys_FormatStderr": "ing_py_say",
    "PySys_FormatStdout": "ing_py_say",
    "PySys_GetObject": "ing_py_loaded, ing_py_attr_maybe",
    "PySys_WriteStderr": "ing_py_say",
    "PySys_WriteStdout": "ing_py_say",
    "PyWeakref_GET_OBJECT": "PyWeakref_GetRef, ing_py_refers",
    "PyWeakref_GetObject": "PyWeakref_GetRef, ing_py_refers",
    "_PyDict_GetItemId": "PyDict_GetItemRef",
    "_PyObject_LookupAttr": "PyObject_GetOptionalAttr",
}
USE = re.compile(r"\b(" + "|".join(map(re.escape, INSTEAD)) + r")\s*\(")
QUIET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def code_of(text):
    """The text with comments and strings blanked, line for line."""
    return QUIET.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def check(root):
    found = []
    for path in sorted((root / "src" / "py").rglob("*.[ch]")):
        if path.name == HOME:
            continue
        code = code_of(path.read_text(encoding="utf-8"))
        for use in USE.finditer(code):
            line = code.count("\n", 0, use.start()) + 1
            found.append(f"{path.relative_to(root)}:{line}: {use[1]} loses errors: {INSTEAD[use[1]]}")
    return found


def main(argv):
    found = check(pathlib.Path(argv[1]).resolve() if len(argv) > 1 else ROOT)
    print("\n".join(found) if found else "swallow: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
