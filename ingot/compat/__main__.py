"""`python -m ingot.compat [--taichi] [-m module | -c code | script.py] args ...`"""

import os
import sys

from ingot import compat

USAGE = """\
usage: python -m ingot.compat [--taichi] (script.py | -m module | -c code) [args ...]
       python -m ingot.compat [--taichi] --path

Runs a Python program that says `import quadrants` (with --taichi: `import taichi`) on Ingot.
Its child processes get the name as well. --path prints the folder that does it, for PYTHONPATH
or a .pth file of a virtual environment.
"""


def _share(folder):
    """Python processes that the program starts find the name on their path: PYTHONPATH makes it,
    but for those of multiprocessing, which take over ours."""
    sys.path.append(folder)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, paths)])


def _run_code(code, args):
    import types

    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv[:] = ["-c", *args]
    sys.path[0] = ""
    import linecache

    # Kernels need their text: kept where inspect and tracebacks look, too.
    name = "<ingot.compat -c>"
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    exec(compile(code, name, "exec"), main.__dict__)


def main(argv):
    """Runs the program that the arguments name; gives an exit status if there is none."""
    name = "quadrants"
    while argv and argv[0] in ("--taichi", "--quadrants"):
        name = argv.pop(0)[2:]
    if argv == ["--path"]:
        print(compat.search_path(name))
        return 0
    if not argv or argv[0] in ("-h", "--help") or argv[:1] in (["-m"], ["-c"]) and len(argv) < 2:
        asked = bool(argv) and argv[0] in ("-h", "--help")
        print(USAGE, end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    compat.install(name)
    _share(compat.search_path(name))
    import runpy

    if argv[0] == "-c":
        _run_code(argv[1], argv[2:])
    elif argv[0] == "-m":
        sys.argv[:] = argv[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    elif argv[0].startswith("-"):
        print(f"ingot.compat: no option {argv[0]}\n\n{USAGE}", end="", file=sys.stderr)
        return 2
    else:
        sys.argv[:] = argv
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
