"""Runs programs that say `import quadrants` (or `import taichi`) on Ingot, unchanged.

    python -m ingot.compat script.py          the program's own name for this run
    ingot.compat.install()                    the same, from within a program

The names are bound by a finder on `sys.meta_path`: `quadrants` is `ingot.compat.quadrants`, and
`quadrants.x` is `ingot.compat.quadrants.x`, the same module object under both names.
"""

import importlib
import importlib.machinery
import os
import sys

_PACKAGES = {"quadrants": "ingot.compat.quadrants", "taichi": "ingot.compat.taichi"}
_SUBMODULES = "ingot.compat.quadrants"


class _Finder:
    """Finder and loader for one top-level name and everything below it. (importlib.abc, whose
    classes it could derive from, takes longer to import than all of Ingot.)"""

    def __init__(self, name):
        self.name = name

    def _real(self, fullname):
        if fullname == self.name:
            return _PACKAGES[self.name]
        return _SUBMODULES + fullname[len(self.name):]

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        real = self._real(fullname)
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name and (real + ".").startswith(error.name + "."):
                return None
            raise
        return importlib.machinery.ModuleSpec(
            fullname, self, loader_state=module, is_package=hasattr(module, "__path__")
        )

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # The import system looks here again, and takes what it finds.
        sys.modules[module.__name__] = module.__spec__.loader_state


def install(name="quadrants"):
    """Binds `name` ('quadrants' or 'taichi') to Ingot in this process."""
    if name not in _PACKAGES:
        raise ValueError(f"ingot.compat knows 'quadrants' and 'taichi', not {name!r}")
    if any(isinstance(f, _Finder) and f.name == name for f in sys.meta_path):
        return
    loaded = sys.modules.get(name)
    if loaded is not None and loaded is not sys.modules.get(_PACKAGES[name]):
        where = getattr(loaded, "__file__", None) or "a folder without code"
        raise RuntimeError(f"{name} is imported already, from {where}")
    sys.meta_path.insert(0, _Finder(name))
    _speak_reference()


def _speak_reference():
    """Before the first `init` of the program, too, kernels refuse what the reference refuses."""
    import ingot

    if not ingot.cfg._given:
        ingot.cfg.reference = True


def search_path(name="quadrants"):
    """A folder for PYTHONPATH or a .pth file: with it, `import quadrants` finds Ingot.

    It is how child processes get the name, and how a virtual environment can have it for good.
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "names", name)
