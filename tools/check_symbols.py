"""Checks that the extension module exports nothing but its entry point and the two symbols
by which gdb finds code made at run time, and lacks no function of our own (the linker lets
a shared object have undefined symbols, because Python's are).

    check_symbols.py [_core.so]     default: the installed ingot._core
"""

import importlib.util
import pathlib
import subprocess
import sys

ALLOWED = {"PyInit__core", "__jit_debug_descriptor", "__jit_debug_register_code"}
# Put there by the toolchain in every shared object, not by us.
TOOLCHAIN = {"_init", "_fini", "_edata", "_end", "__bss_start"}


def exported(path):
    out = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", str(path)],
        check=True, capture_output=True, text=True,
    ).stdout
    # A versioned symbol reads name@@VERSION; absolute ones (A) are the version names.
    rows = [line.split() for line in out.splitlines() if line.strip()]
    return sorted(row[0].split("@")[0] for row in rows if row[1] != "A")


def undefined(path):
    """Functions of ours that nothing defines."""
    out = subprocess.run(
        ["nm", "-D", "--undefined-only", "--format=posix", str(path)],
        check=True, capture_output=True, text=True,
    ).stdout
    return sorted(line.split()[0] for line in out.splitlines() if line.startswith("ing_"))


def check(path):
    names = set(exported(path))
    found = [f"{path}: exports {n}" for n in sorted(names - ALLOWED - TOOLCHAIN)]
    found += [f"{path}: nothing defines {n}" for n in undefined(path)]
    if "PyInit__core" not in names:
        found.append(f"{path}: does not export PyInit__core")
    return found


def find_extension():
    """The installed module's path, without running it."""
    package = importlib.util.find_spec("ingot")
    if package is None or not package.submodule_search_locations:
        return None
    for folder in package.submodule_search_locations:
        for path in sorted(pathlib.Path(folder).glob("_core*.so")):
            return path
    return None


def main(argv):
    path = pathlib.Path(argv[1]) if len(argv) > 1 else find_extension()
    if path is None:
        print("symbols: no extension module found: install ingot or name the file")
        return 1
    found = check(path)
    print("\n".join(found) if found else "symbols: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
