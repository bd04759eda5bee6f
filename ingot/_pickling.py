"""How kernels and funcs are pickled: by their name where that finds them again, as functions are;
under cloudpickle (joblib, Dask, Ray) also by their text with what it names.

Called by the engine for `__reduce_ex__` of both types. A kernel that arrives somewhere has
its text with it, so it is found in the cache of that machine as any other.
"""

import ast
import pickle
import sys
import textwrap

from ingot import _core


def reduce(obj, kind, options, source):
    """What `__reduce_ex__` returns. `kind`: "kernel" or "func"; `source`: its text or None."""
    by_value = _by_value(obj)
    if not by_value and _found(obj):
        return obj.__qualname__
    if by_value is None:
        raise pickle.PicklingError(
            f"cannot pickle {obj!r}: {obj.__module__}.{obj.__qualname__} is not this {kind}; define it "
            "at the top level of a module, or use cloudpickle")
    if source is None:
        raise pickle.PicklingError(f"cannot pickle {obj!r} by value: it has no source text; define it in a module")
    fn = obj.__wrapped__
    return _restore, (kind, fn, dict(options or {}), source, _names(fn, source)), obj.__dict__ or None


def _restore(kind, fn, options, source, names):
    for name, value in names.items():
        fn.__globals__.setdefault(name, value)
    make = _core.kernel if kind == "kernel" else _core.func
    return make(fn, source=source, **options)


def _found(obj):
    """Is it what its module calls by that name?"""
    found = sys.modules.get(obj.__module__)
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is obj


def _by_value(obj):
    """None: this pickler cannot. Else whether it should, as cloudpickle decides for functions:
    what other processes cannot import."""
    pickler = _cloud_pickler()
    if pickler is None:
        return None
    module = obj.__module__
    if module in ("__main__", None) or not _found(obj):
        return True
    package = sys.modules.get(pickler.__module__.partition(".")[0])
    registered = getattr(package, "list_registry_pickle_by_value", None)
    chosen = registered() if registered else ()
    return any(module == name or module.startswith(name + ".") for name in chosen)


def _cloud_pickler():
    """The class of the cloudpickle (there are copies of it) that is at work in this thread."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "dump":
            cls = type(frame.f_locals.get("self"))
            for base in cls.__mro__:
                if base.__name__ in ("CloudPickler", "Pickler") and "cloudpickle" in base.__module__:
                    return base
        frame = frame.f_back
    return None


def _names(fn, source):
    """Globals that the text names and the code does not: annotations of variables leave nothing
    in the code, and those of parameters may be strings."""
    code = set(fn.__code__.co_names)
    named = set()
    texts = [textwrap.dedent(source), *(a for a in fn.__annotations__.values() if isinstance(a, str))]
    for text in texts:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        named.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name: fn.__globals__[name] for name in sorted(named - code) if name in fn.__globals__}
