"""What code can reach, for fingerprints: where a file comes from, what a text imports, what an
annotation names, what was registered with a function or a class.

Called by the engine (src/py/fingerprint_code.c, fingerprint_class.c) while it walks functions
and classes; once per code object or class, never per launch. Lists and loops, not generator
expressions: from 3.12 on CPython frees a function's code once too often when there is no memory
for the function, and a generator expression is one.
"""

import ast
import functools
import importlib
import importlib.util
import os
import sys
import sysconfig
import types

# ---- where code comes from ---------------------------------------------------------------------

_SITES = ("site-packages", "dist-packages")
_LIBRARY = []  # directories of the standard library
_HOME = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _library():
    if not _LIBRARY:
        for name in ("stdlib", "platstdlib"):
            path = sysconfig.get_path(name)
            if path:
                _LIBRARY.extend([path + os.sep, os.path.realpath(path) + os.sep])
        base = sys.base_prefix
        version = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
        _LIBRARY.append(os.path.join(base, "lib", version) + os.sep)
    return _LIBRARY


def origin(file):
    """Where a file's code comes from: "" the standard library, "name==version" an installed
    distribution, None the user's own, whose text counts. Never by the name of a module."""
    if not isinstance(file, str):
        return None
    if file in ("built-in", "frozen") or file.startswith("<frozen "):
        return ""
    if file.startswith("<"):
        return None
    path = os.path.abspath(file)
    if path.startswith(_HOME):
        import ingot

        return f"ingot=={ingot.__version__}"
    parts = path.split(os.sep)
    for at in range(len(parts) - 1, 0, -1):
        if parts[at - 1] in _SITES:
            return _installed(parts[at].partition(".")[0]) or _own(path)
    for folder in _library():
        if path.startswith(folder) or os.path.realpath(path).startswith(folder):
            return ""
    return _own(path)


def _own(path):
    """Code of C has no text: its file counts."""
    if not path.endswith((".so", ".pyd")) or not os.path.isfile(path):
        return None
    from ingot import _core

    return f"{os.path.basename(path)}=={_core._file_digest(path)[1]}"


def _installed(top):
    from importlib import metadata

    try:
        return f"{top}=={metadata.version(top)}"
    except metadata.PackageNotFoundError:
        pass
    names = sorted(metadata.packages_distributions().get(top, ()))
    return ",".join([f"{n}=={metadata.version(n)}" for n in names]) or None


def module_file(module):
    """The file that a module was loaded from, or what stands for it; None: nobody knows."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return file
    spec = getattr(module, "__spec__", None)
    where = getattr(spec, "origin", None)
    if isinstance(where, str):
        return where
    for folder in list(getattr(module, "__path__", ())):
        return os.path.join(str(folder), "__init__.py")
    if getattr(module, "__name__", None) in sys.builtin_module_names:
        return "built-in"
    return None


# ---- imports inside a function, and what cannot be followed ----------------------------------------

# `sys.modules[name]` is left to whoever writes it: a way to keep something out of the key.
_IMPORTERS = ("__import__", "import_module", "importlib.import_module")
_WHOLE = ("globals",)
_BLIND = ("eval", "exec", "runpy.run_path", "runpy.run_module")


def reads(tree):
    """(imports, names, blind) of a syntax tree: [(alias, module, name or None, level)], the
    global names that `globals()["x"]` reads, and what nobody can follow."""
    imports, names, blind = [], [], []
    seen = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.asname:
                    imports.append((a.asname, a.name, None, 0))
                else:
                    imports.append((a.name.partition(".")[0], a.name, "", 0))
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                imports.append((a.asname or a.name, node.module or "", a.name, node.level))
        elif isinstance(node, ast.Subscript):
            key = node.slice
            constant = isinstance(key, ast.Constant) and isinstance(key.value, str)
            if constant and _called(node.value) == "globals":
                names.append(key.value)
                seen.add(id(node.value))
            elif _dotted(node.value) == "sys.modules" and constant:
                imports.append((f"sys.modules[{key.value!r}]", key.value, None, 0))
        elif isinstance(node, ast.Call) and id(node) not in seen:
            _read_call(node, imports, blind)
    return tuple(imports), tuple(names), tuple(sorted(set(blind)))


def _called(node):
    """The dotted name that a call calls, or None."""
    if not isinstance(node, ast.Call):
        return None
    parts, at = [], node.func
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if not isinstance(at, ast.Name):
        return None
    return ".".join([at.id, *reversed(parts)])


def _read_call(node, imports, blind):
    name = _called(node)
    if name in _BLIND or name in _WHOLE:
        blind.append(f"{name}()")
    if name not in _IMPORTERS:
        return
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and len(node.args) == 1 \
            and not first.value.startswith("."):
        imports.append((f"{name}({first.value!r})", first.value, None, 0))
    else:
        blind.append(f"{name}()")


def imported(module, name, level, scope):
    """What an import inside a function gives: ("own", value), ("foreign", text) without
    importing it, or ("absent", text). Raises what the user's own module raises."""
    full = module
    if level:
        package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
        full = importlib.util.resolve_name("." * level + module, package)
    where = _located(full)
    if where == "absent":
        return "absent", full
    if where is not None:
        return "foreign", f"{full}:{name or ''}:{where}"
    try:
        found = importlib.import_module(full)
        if name == "":
            return "own", sys.modules[full.partition(".")[0]]
        if name is None:
            return "own", found
        if hasattr(found, name):
            return "own", getattr(found, name)
        if getattr(found.__spec__, "_initializing", False):
            raise ImportError(f"{full} is still being imported and has no {name!r} yet")
        return "own", importlib.import_module(f"{full}.{name}")
    except ModuleNotFoundError as e:
        if e.name is None or not f"{full}.{name or ''}.".startswith(e.name + "."):
            raise
        return "absent", f"{full}:{name or ''}"


def _located(full):
    """None: the user's own; "absent": there is none; else the origin, found without importing."""
    top = full.partition(".")[0]
    if top in sys.modules:
        return origin(module_file(sys.modules[top]))
    spec = importlib.util.find_spec(top)
    if spec is None:
        return "absent"
    file = spec.origin
    if not isinstance(file, str):
        for folder in list(spec.submodule_search_locations or ()):
            file = os.path.join(str(folder), "__init__.py")
            break
    return origin(file)


def code_imports(code):
    """The imports of code that has no text, as `reads` gives them: whole modules."""
    import dis

    found, stack = [], [code]
    while stack:
        at = stack.pop()
        stack.extend([c for c in at.co_consts if isinstance(c, types.CodeType)])
        steps = list(dis.get_instructions(at))
        for n in range(len(steps)):
            if steps[n].opname == "IMPORT_NAME":
                level = steps[n - 2].argval if n >= 2 else 0
                module = steps[n].argval
                found.append((f"import {module}", module, None, level or 0))
    return tuple(found)


_LOADS = ("LOAD_GLOBAL",)


def needs_global(code, name):
    """Does the code read this global, and never sets it itself?"""
    import dis

    loads, stack = False, [code]
    while stack:
        at = stack.pop()
        stack.extend([c for c in at.co_consts if isinstance(c, types.CodeType)])
        if name not in at.co_names:
            continue
        for step in dis.get_instructions(at):
            if step.argval != name:
                continue
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return False
            loads = loads or step.opname in _LOADS
    return loads


_CHECKING = {}  # file -> ((time, size), {alias: (module, name, level)})


def checked_import(scope, name):
    """What a name is that the module imports for type checkers only (`if TYPE_CHECKING:`), in
    the form of `imported`; None: it is no such name."""
    file = scope.get("__file__")
    if not isinstance(file, str) or not os.path.isfile(file):
        return None
    stat = os.stat(file)
    state = (stat.st_mtime_ns, stat.st_size)
    if _CHECKING.get(file, (None,))[0] != state:
        _CHECKING[file] = (state, _checked_imports(file))
    found = _CHECKING[file][1].get(name)
    return imported(*found, scope) if found else None


def _checked_imports(file):
    try:
        with open(file, "rb") as f:
            tree = ast.parse(f.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    out = {}
    for node in tree.body:
        if not isinstance(node, ast.If) or (_dotted(node.test) or "").rpartition(".")[2] != "TYPE_CHECKING":
            continue
        for part in node.body:
            for alias, module, name, level in reads(part)[0]:
                out[alias] = (module, name, level)
    return out


def subclasses(cls):
    """All classes below a class, as far as they are loaded."""
    found, stack = [], [cls]
    while stack:
        for below in type.__subclasses__(stack.pop()):
            if below not in found:
                found.append(below)
                stack.append(below)
    return found


# ---- annotations ---------------------------------------------------------------------------------------


def names_in(text):
    """The dotted names in an annotation that is a string."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return ()
    found, stack = set(), [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = _dotted(node)
            if name:
                found.add(name)
                continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(names_in(node.value))
        stack.extend(list(ast.iter_child_nodes(node)))
    return tuple(sorted(found))


def _dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def annotated(value):
    """What an annotation's value leads to: classes, functions, and plain values of literals,
    out of whatever typing makes of them."""
    found, stack, seen = [], [value], set()
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, (type, types.FunctionType)) and not isinstance(at, types.GenericAlias):
            found.append(at)
            continue
        if at is None or isinstance(at, (bool, int, str, bytes)):
            found.append(at)
            continue
        if isinstance(at, (list, tuple)):
            stack.extend(reversed(at))
            continue
        stack.extend(reversed(_typing_parts(at)))
    return found


def _typing_parts(at):
    parts = []
    origin_of = getattr(at, "__origin__", None)
    if isinstance(origin_of, type):
        parts.append(origin_of)
    elif origin_of is not None and type(at).__module__ == "typing":
        parts.append(origin_of)
    for name in ("__args__", "__metadata__", "__constraints__"):
        more = getattr(at, name, None)
        if isinstance(more, tuple):
            parts.extend(more)
    for name in ("__bound__", "__supertype__", "__forward_arg__"):
        more = getattr(at, name, None)
        if more is not None:
            parts.append(more)
    if type(at).__name__ == "TypeAliasType":
        parts.append(at.__value__)
    return parts


def class_notes(cls):
    """[(key, value)]: what the annotations of a class's body, and the arguments of its bases,
    lead to."""
    own = type.__dict__["__dict__"].__get__(cls)
    out = []
    notes = _annotations_of(cls, own)
    for name in notes:
        out += _note(cls, own, ("annotation", str(name)), notes[name])
    for base in own.get("__orig_bases__", ()):
        if not isinstance(base, type):
            out += _note(cls, own, ("base",), base)
    return out


def _annotations_of(cls, own):
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    notes = own.get("__annotations__", {})
    return notes if isinstance(notes, dict) else {}


def _note(cls, own, key, value):
    found = []
    for at in annotated(value):
        if isinstance(at, str):
            found.append(at)
            for name in names_in(at):
                known, v = _named(cls, own, name)
                if known:
                    found += annotated(v)
        else:
            found.append(at)
    return [((*key, n), found[n]) for n in range(len(found))]


def _named(cls, own, dotted):
    parts = dotted.split(".")
    scope = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    if parts[0] in own:
        value = own[parts[0]]
    elif parts[0] in scope:
        value = scope[parts[0]]
    else:
        found = checked_import(scope, parts[0])
        if found is None or found[0] != "own":
            return False, None
        value = found[1]
    for part in parts[1:]:
        if not hasattr(value, part):
            return False, None
        value = getattr(value, part)
    return True, value


# ---- what was registered ---------------------------------------------------------------------------------


def dispatched(fn):
    """[(class, implementation)] of a `functools.singledispatch` function, else None."""
    if fn.__code__.co_filename != functools.singledispatch.__code__.co_filename:
        return None
    registry, dispatch = fn.__dict__.get("registry"), fn.__dict__.get("dispatch")
    if not isinstance(registry, types.MappingProxyType) or not isinstance(
            dispatch, types.FunctionType):
        return None
    return list(registry.items())


def registered(cls):
    """The user's own classes that `ABC.register` was told."""
    try:
        from _abc import _get_dump

        registry = _get_dump(cls)[0]
    except (ImportError, TypeError):
        return []
    found = [ref() for ref in registry]
    return [c for c in found
            if c is not None and origin(module_file(sys.modules.get(c.__module__))) is None]


def whole_module(module):
    """[(name, value)]: all that a module of the user's own holds, for one that is used as a
    value. What Python itself puts there is left out."""
    out = []
    for name, value in list(vars(module).items()):
        if not isinstance(name, str):
            continue
        if name.startswith("__") and name.endswith("__") and name not in ("__getattr__", "__dir__"):
            continue
        out.append((name, value))
    return out


