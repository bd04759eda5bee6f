"""Names of the reference's interface that Ingot does not provide.

A program may import, read or annotate with such a name, put it into a union or test against it
with `isinstance`; it fails with a clear message where it would need the thing itself. That way a
program that has the name in a branch it never takes runs.
"""

import importlib
import types as _types

import ingot

# Made at import time by many programs: types and decorated functions, which do no work yet.
_INERT = frozenset(
    "types.vector types.matrix types.struct types.quant types.argpack types.buffer_view "
    "dataclass pyfunc axes".split()
)
_DECORATED = (_types.FunctionType, type)


class Missing:
    """Stands for one name."""

    __slots__ = ("_name", "__weakref__")

    def __init__(self, name, *_):
        self._name = name

    @property
    def __name__(self):
        return self._name.rpartition(".")[2]

    def __repr__(self):
        return f"<{self._name}: not provided by Ingot>"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        decorates = len(args) == 1 and not kwargs and isinstance(args[0], _DECORATED)
        if decorates or self._name in _INERT:
            return Missing(f"{self._name}()")
        raise NotImplementedError(f"qd.{self._name} is not provided by Ingot {ingot.__version__}")

    def __instancecheck__(self, instance):
        return False

    def __subclasscheck__(self, cls):
        return False

    def __mro_entries__(self, bases):
        return ()

    def __or__(self, other):
        return self

    __ror__ = __or__


def fill(namespace, names, prefix=""):
    """Gives `namespace` each of the names, separated by blanks, that it lacks: what Ingot loads
    when it is asked for, else a stand-in."""
    for name in names.split():
        if name not in namespace:
            real = None if prefix else getattr(ingot, name, None)
            namespace[name] = Missing(prefix + name) if real is None else real


def provided(namespace):
    """The public names of a module that stand for something: its `dir()`."""
    return sorted(
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, Missing)
    )


def adopt(namespace, module, names):
    """Makes `namespace` the reference's `module`: Ingot's of that name, where there is one, plus
    stand-ins for those of the names that it lacks."""
    try:
        real = importlib.import_module("ingot." + module)
    except ModuleNotFoundError as error:
        if error.name != "ingot." + module:
            raise
    else:
        namespace.update({k: v for k, v in vars(real).items() if not k.startswith("_")})
    fill(namespace, names, module + ".")
    if "__path__" not in namespace:  # a package still needs its name to find its modules
        namespace["__name__"] = "quadrants." + module
