"""What code can reach, for fingerprints: where a file comes from, what a text imports, what an
annotation names, what was registered with a function or a class.

Called by the engine (src/py/value/fingerprint_code.c, fingerprint_class.c) while it walks functions
and classes; once per code object or class, never per launch. Lists and loops, not generator
expressions: from 3.12 on CPython frees a function's code once too often when there is no memory
for the function, and a generator expression is one.
"""

import abc
import ast
import copyreg
import functools
import importlib
import importlib.util
import os
import re
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
            return _installed(os.sep.join(parts[:at]), parts[at].partition(".")[0]) or _own(path)
    for folder in _library():
        if path.startswith(folder) or os.path.realpath(path).startswith(folder):
            return ""
    return _own(path)


_KNOWN = {}  # file -> origin, as the engine keeps it


def _is_own(module):
    """Is a module the user's own?"""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        file = module_file(module)
    return _is_own_file(file)


def _is_own_file(file):
    return _kept_origin(file) is None


def _kept_origin(file):
    if file not in _KNOWN:
        _KNOWN[file] = origin(file)
    return _KNOWN[file]


def _own(path):
    """Code of C has no text: its file counts."""
    if not path.endswith((".so", ".pyd")) or not os.path.isfile(path):
        return None
    from ingot import _core

    return f"{os.path.basename(path)}=={_core._file_digest(path)[1]}"


_FOLDERS = {}  # folder -> {top-level name: "name==version,..."}


def _installed(folder, top):
    """The distributions of that very folder that have a module or package of this name."""
    from importlib import metadata

    for dist in metadata.distributions(name=top, path=[folder]):
        if top in _tops(dist):
            return f"{top}=={dist.version}"
    if folder not in _FOLDERS:
        found = {}
        for dist in metadata.distributions(path=[folder]):
            for name in _tops(dist):
                found.setdefault(name, []).append(f"{dist.metadata['Name']}=={dist.version}")
        _FOLDERS[folder] = {name: ",".join(sorted(set(found[name]))) for name in found}
    return _FOLDERS[folder].get(top)


def _tops(dist):
    """The top-level names that a distribution has installed."""
    listed = (dist.read_text("top_level.txt") or "").split()
    if listed:
        return set(listed)
    if dist.files is None:  # it does not tell: its own name will be that of its package
        return {str(dist.metadata["Name"]).replace("-", "_")}
    return set([str(file).partition("/")[0].partition(".")[0] for file in dist.files or ()])


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

_IMPORTERS = ("__import__", "builtins.__import__", "importlib.__import__", "importlib.import_module")
# What runs text, loads files as code, or reads text and comments of functions.
_BLIND = (
    "eval", "exec", "builtins.eval", "builtins.exec", "runpy.run_path", "runpy.run_module",
    "pkgutil.resolve_name", "pydoc.locate", "pydoc.safeimport", "importlib.util.spec_from_file_location",
    "importlib.util.spec_from_loader", "importlib.util.module_from_spec", "importlib.machinery.SourceFileLoader",
    "importlib.machinery.SourcelessFileLoader", "inspect.getsource", "inspect.getsourcelines",
    "inspect.findsource", "inspect.getcomments", "inspect.getdoc", "inspect.getmodule", "gc.get_objects",
    "gc.get_referrers", "importlib.metadata.entry_points", "importlib.metadata.EntryPoint",
    "imp.load_source", "imp.load_module",
)
_BLIND_ATTRIBUTES = ("__globals__", "f_globals", "f_locals", "f_back", "exec_module")
_BLIND_ENDS = (".loader.load_module", ".__loader__.load_module")
_HIDDEN = frozenset([*_BLIND, *_IMPORTERS, "globals", "builtins.globals"])
# Methods and functions of pandas and numexpr that look names up in the caller.
_QUERIES = ("query", "eval", "evaluate")
# What `reads` knows by these names.
_UNTOLD = ("import_module", "importlib.import_module", "__import__", "globals", "sys.modules", "sys.modules.get")


def reads(tree):
    """(imports, names, blind) of a syntax tree: [(alias, module, name or None, level)], the
    global names that `globals()["x"]` and the like read, and what nobody can follow."""
    found = _Reads()
    nodes = list(ast.walk(tree))
    for node in nodes:
        found.take_import(node)
    for node in nodes:
        if isinstance(node, ast.Subscript):
            found.take_item(node)
        elif isinstance(node, ast.Call):
            found.take_call(node)
    for node in nodes:
        if id(node) not in found.done:
            found.take_name(node)
    return tuple(found.imports), tuple(found.names), tuple(sorted(set(found.blind)))


class _Reads:
    def __init__(self):
        self.imports, self.names, self.blind = [], [], []
        self.aliases = {"import_module": "importlib.import_module"}
        self.bound = set()  # names that the def sets itself
        self.done = set()  # ids of nodes that are followed
        self.itself = set()  # ids of nodes that say `sys.modules[__name__]`

    def dotted(self, node):
        """The full name of what a chain of names says, by the imports of the def."""
        name = _dotted(node)
        first, dot, rest = (name or "").partition(".")
        return self.aliases.get(first, first) + dot + rest if name else None

    def take_import(self, node):
        if isinstance(node, ast.Import):
            for a in node.names:
                alias = a.asname or a.name.partition(".")[0]
                self.imports.append((alias, a.name, None if a.asname else "", 0))
                if a.asname:
                    self.aliases[alias] = a.name
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                self.imports.append((a.asname or a.name, node.module or "", a.name, node.level))
                if not node.level:
                    self.aliases[a.asname or a.name] = f"{node.module}.{a.name}"
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def take_item(self, node):
        """`globals()["x"]`, `sys.modules["x"]`."""
        of, key = node.value, node.slice
        constant = isinstance(key, ast.Constant) and isinstance(key.value, str)
        if constant and isinstance(of, ast.Call) and self.dotted(of.func) == "globals":
            self.names.append(key.value)
            self.done.update([id(of), id(of.func)])
        elif isinstance(key, ast.Name) and key.id == "__name__" and self.dotted(of) == "sys.modules":
            self.itself.add(id(node))
        elif constant and self.dotted(of) == "sys.modules":
            self.imports.append((f"sys.modules[{key.value!r}]", key.value, None, 0))
            self.done.add(id(of))

    def take_call(self, node):
        name = self.dotted(node.func)
        if id(node) in self.done or name is None:
            return
        text = self._text(node)
        if name in _IMPORTERS and text and len(node.args) == 1 and not text.startswith("."):
            self.imports.append((f"{name}({text!r})", text, None, 0))
            self.done.add(id(node.func))
        elif name == "sys.modules.get" and text:
            self.imports.append((f"sys.modules[{text!r}]", text, None, 0))
            self.done.update([id(node.func), id(node.func.value)])
        elif name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            full = f"{self.dotted(node.args[0])}.{node.args[1].value}"
            if full in _HIDDEN or full.endswith(".__doc__"):
                self.blind.append(f"getattr() of {full}")
            elif full.endswith(".__subclasses__"):
                self.take_subclasses(node.args[0], node.args[1])
        elif name == "type.__subclasses__" and node.args:
            self.take_subclasses(node.args[0], None)
        elif name.rpartition(".")[2] in _QUERIES and "." in name:
            self.take_query(node, name)

    def take_subclasses(self, of, said):
        """`type.__subclasses__(C)` and `getattr(C, "__subclasses__")` of a class that is named."""
        name = self.dotted(of)
        if name and name.partition(".")[0] not in self.bound:
            self.names.append(f"{name}.__subclasses__")
            self.done.add(id(said))

    def take_query(self, node, name):
        """`frame.query("a > @LIMIT")`, `pandas.eval("LIMIT + 1")`: names that a library looks up in the
        caller, as far as the text is written there."""
        texts = [n.value for a in [*node.args, *[k.value for k in node.keywords]] for n in ast.walk(a)
                 if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        for text in texts:
            found = re.findall(r"@([\w.]+)", text)
            if not name.endswith(".query"):
                found += names_in(text.replace("@", ""))
            self.names += [n for n in found if n.partition(".")[0] not in self.bound]

    @staticmethod
    def _text(node):
        first = node.args[0] if node.args else None
        is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return first.value if is_text and not node.keywords else None

    def take_name(self, node):
        """Whatever is left of what cannot be followed."""
        if isinstance(node, ast.Compare):  # "numpy" in sys.modules
            self.done.update([id(n) for n in node.comparators])
        if isinstance(node, ast.Attribute) and id(node.value) in self.itself:
            self.names.append(node.attr)
            self.done.add(id(node.value.value))
        if isinstance(node, ast.Constant) and node.value in (*_BLIND_ATTRIBUTES, "__subclasses__"):
            self.blind.append(f".{node.value}")
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            return
        name = self.dotted(node)
        if isinstance(node, ast.Attribute) and (node.attr in _BLIND_ATTRIBUTES or (name or "").endswith(_BLIND_ENDS)):
            self.blind.append(f".{node.attr}")
        elif isinstance(node, ast.Attribute) and node.attr == "__doc__" and name is None:
            self.blind.append(".__doc__")
        elif name in _HIDDEN and not (isinstance(node, ast.Name) and node.id in self.bound):
            self.blind.append(f"{name}()")
        elif name in ("sys.modules", "__builtins__"):
            self.blind.append(name)


def hidden(value):
    """The name of something by which code reaches what nobody can follow, or None."""
    if value is sys.modules:
        return "sys.modules"
    if not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return None
    module = str(value.__module__)
    if module.endswith(("_bootstrap_external", "importlib_external", "_bootstrap", "_frozen_importlib")):
        module = "importlib.machinery" if isinstance(value, type) else "importlib.util"
    name = f"{module}.{value.__qualname__}"
    return f"{name}()" if name in _HIDDEN else None


_PLAIN = (int, float, complex, bool, str, bytes)
_BOXES = (list, tuple, set, frozenset)
_MOST = 10_000  # values that are looked at in one of a library's


def beyond(value, dotted, data=True):
    """What a dotted name leads to, beginning with `value`, beyond the user's own modules:
    ("value", what counts beside the library's version), ("blind", what cannot be followed), or
    None: nothing of the kind. Without `data`, for imports inside a def, plain data of libraries
    does not count."""
    parts = dotted.split(".")[1:]
    module = None
    while parts and isinstance(value, types.ModuleType):
        module = value
        own = _is_own(module)
        value = getattr(value, parts[0], None) if own else vars(value).get(parts[0])
        parts = parts[1:]
    name = hidden(value)
    if name:  # of imports inside a def, and of these names, `reads` says it
        return ("blind", name) if data and dotted not in _UNTOLD else None
    if parts[-1:] == ["__doc__"]:
        for part in parts[:-1]:
            value = getattr(value, part, None)
        return "value", getattr(value, "__doc__", None)
    if isinstance(value, types.ModuleType):
        return None
    found = [value] if module is not None and _is_added(value, module) else []
    found = [v for v in found + _put_on(value, parts) if data or not _is_data(v)]
    return ("value", found[0] if len(found) == 1 else found) if found else None


def _is_added(value, module):
    """Is that the user's own, in a library's module? Or plain data, which anybody can set; of
    the interpreter's own there is too much."""
    return _leads_to_own(value) or (module is not sys and _is_data(value))


def _put_on(value, parts):
    """What the user put on a library's function or class, or on what `parts` name in it:
    registrations, functions, plain data that is read."""
    found, at = [], value
    while isinstance(at, (types.FunctionType, type)) and not _leads_to_own(at, False):
        if isinstance(at, type):
            found += [at] if isinstance(at, abc.ABCMeta) and registered(at) else []
        else:
            found += [pair for pair in dispatched(at) or () if _leads_to_own(pair)]
        if not parts:
            break
        at, parts = _attribute(at, parts[0]), parts[1:]
    if at is not value and (_is_data(at) or _leads_to_own(at)):
        found.append(at)
    return found


def _attribute(value, name):
    """What is stored under a name in a function or a class, as it is there."""
    for at in value.__mro__ if isinstance(value, type) else [value]:
        if name in at.__dict__:
            return at.__dict__[name]
    return None


def _is_data(value):
    """Plain values, and lists, tuples, sets and dicts of them."""
    stack, seen = [value], 0
    while stack and seen < _MOST:
        at = stack.pop()
        seen += 1
        if type(at) in _BOXES or type(at) is dict:
            stack.extend(_held(at))
        elif type(at) not in _PLAIN and (at is not None or at is value):
            return False
    return not stack


def _held(value):
    """What a library's own kinds of values hold."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, _BOXES):
        return list(value)
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, (staticmethod, classmethod, types.MethodType)):
        return [value.__func__, getattr(value, "__self__", None)]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, (types.FunctionType, functools._lru_cache_wrapper)):
        return [value.__dict__.get("__wrapped__")]
    if hasattr(type(value), "__get__") and type(getattr(value, "__dict__", None)) is dict:
        return list(value.__dict__.values())  # a descriptor of a library's class (accessors of pandas)
    return []


def _leads_to_own(value, patched=True):
    """Is it a function, a class or an object of the user's own, or does it hold one? With
    `patched` also a library's class that the user has put something into."""
    stack, seen = [value], {}
    while stack and len(seen) < _MOST:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen[id(at)] = at
        if isinstance(at, types.FunctionType) and at.__code__.co_filename[:1] != "<" \
                and _is_own_file(at.__code__.co_filename):
            return True
        if isinstance(at, type):
            if _is_own_class(at) or (patched and _is_patched(at)):
                return True
        elif _is_own_class(type(at)):
            return True
        else:
            stack.extend(_held(at))
    return False


def _is_own_class(cls):
    name = cls.__module__
    home = sys.modules.get(name)
    if home is None or name == "builtins" or str(name).startswith("_cython_"):  # those have no file
        return False
    return _is_own(home)


def patched(cls):
    """[(key, value)]: what the user has put into a library's class and its bases."""
    out = []
    for base in cls.__mro__:
        if _is_own_class(base):
            continue
        for name, value in list(vars(base).items()):
            if _leads_to_own(value, False):
                out += [((name, n), v) for n, v in enumerate(_unwrapped(value))]
    return out


def _is_patched(cls):
    for base in cls.__mro__:
        if not _is_own_class(base):
            for value in list(vars(base).values()):
                if _leads_to_own(value, False):
                    return True
    return False


def _unwrapped(value):
    """What descriptors hold; anything else is itself."""
    if isinstance(value, functools.partialmethod):
        return [value.func, value.args, value.keywords]
    return _held(value) if isinstance(value, (property, staticmethod, classmethod)) else [value]


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
        return "foreign", f"{full}:{name or ''}:{where}", _if_loaded(full, name)
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


def _if_loaded(full, name):
    """What an import of a library's module gives, if that is loaded, else None."""
    if name == "":
        return sys.modules.get(full.partition(".")[0])
    module = sys.modules.get(full)
    return module if name is None else getattr(module, "__dict__", {}).get(name)


def loaded(module, name, level, scope):
    """The same for an import whose name nothing reads: a module of the user's own is there for
    what importing it does, and counts by its text: ("text", bytes)."""
    kind, value, *_ = imported(module, name or None, level, scope)
    if kind != "own" or not isinstance(value, types.ModuleType):
        return kind, value
    source = getattr(getattr(value, "__loader__", None), "get_source", None)
    text = source(value.__name__) if source else None
    return "text", (text or "").encode("utf-8", "surrogatepass")


def _located(full):
    """None: the user's own; "absent": there is none; else the origin, found without importing.
    Of a namespace package each part may come from elsewhere, so what is in it is looked at."""
    parts, name = full.split("."), ""
    for n, part in enumerate(parts):
        name = f"{name}.{part}" if name else part
        if name in sys.modules:
            loaded_module = sys.modules[name]
            file, spaces = module_file(loaded_module), not getattr(loaded_module, "__file__", None)
        else:
            spec = importlib.util.find_spec(name)
            if spec is None:
                return "absent" if n == 0 else None
            file, folders = spec.origin, list(spec.submodule_search_locations or ())
            spaces = not isinstance(file, str)
            if spaces and folders:
                file = os.path.join(str(folders[0]), "__init__.py")
        if not spaces or n == len(parts) - 1:
            return _kept_origin(file)
    return None


_HOMES = {}  # name -> module


def home_of(obj):
    """The name of the library's module that has an object of C under its own name, which it does not
    say itself: a ufunc, a function of torch."""
    name, homes = obj.__name__, sorted(sys.modules, key=lambda m: (m.count("."), m))
    for home in [_HOMES.get(name, "numpy"), "numpy", "scipy.special", "torch", *homes]:
        module = sys.modules.get(home)
        if getattr(module, "__dict__", {}).get(name) is obj and not _is_own(module):
            _HOMES[name] = home
            return home
    return "numpy"


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


def mangled(dotted, known):
    """What the private names (`__x`) in a dotted name are called in the code of a class's method, by the
    names that the code reads."""
    out = [""]
    for part in dotted.split("."):
        named = [part]
        if part.startswith("__") and not part.endswith("__"):
            named = [k for k in known if k.endswith(part) and len(k) > len(part) and k[0] == "_"]
        out = [f"{head}.{n}" if head else n for head in out for n in sorted(named)]
    return out


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


def annotated(value, scope=None):
    """What an annotation's value leads to: classes, functions, plain values of literals and what
    `Annotated` carries, out of whatever typing makes of them. Names in strings are looked up in
    the dict `scope`."""
    found, stack, seen, kept = [], [value], set(), []
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        kept.append(at)
        if isinstance(at, str) and scope is not None:
            stack.extend(reversed(_values_in(at, scope)))
        if isinstance(at, (type, types.FunctionType)) and not isinstance(at, types.GenericAlias):
            found.append(at)
            continue
        if at is None or isinstance(at, (bool, int, str, bytes)):
            found.append(at)
            continue
        if isinstance(at, (list, tuple)):
            stack.extend(reversed(at))
            continue
        if _is_own_class(type(at)):
            found.append(at)
            continue
        found.extend(getattr(at, "__metadata__", ()))  # what `Annotated` carries
        stack.extend(reversed(_typing_parts(at)))
    return found


def _values_in(text, scope):
    """What the names in an annotation that is a string lead to, as far as `scope` has them."""
    found = []
    for name in names_in(text):
        first, *rest = name.split(".")
        value = scope.get(first, scope)
        for part in rest:
            value = getattr(value, part, scope)
        if value is not scope and not isinstance(value, types.ModuleType):
            found.append(value)
    return found


def _typing_parts(at):
    parts = []
    origin_of = getattr(at, "__origin__", None)
    if isinstance(origin_of, type):
        parts.append(origin_of)
    elif origin_of is not None and type(at).__module__ == "typing":
        parts.append(origin_of)
    for name in ("__args__", "__constraints__"):
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
    if len(notes) > 1:
        out.append((("annotations",), tuple([str(name) for name in notes])))
    if "_member_names_" in own:  # the order in which an enum lists its members
        out.append((("members",), tuple(own["_member_names_"])))
    for name in notes:
        out += _note(cls, own, ("annotation", str(name)), notes[name])
    for base in own.get("__orig_bases__", ()):
        if not isinstance(base, type):
            out += _note(cls, own, ("base",), base)
    reducer = copyreg.dispatch_table.get(cls)
    if reducer is not None:
        out.append((("copyreg",), reducer))
    return out


def _annotations_of(cls, own):
    for name in ("__annotate_func__", "__annotate__"):  # no generator: 3.12 crashes when memory ends in one
        if isinstance(own.get(name), types.FunctionType):
            import annotationlib  # of Python 3.14, where annotations are made when they are asked for

            return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    notes = own.get("__annotations__", own.get("__annotations_cache__"))
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


# ---- objects without a value ---------------------------------------------------------------------------

_MADE = {}  # id of an object() -> (the object, what made_as said, how many modules there were)
_CALLS = {}  # file -> ((time, size), names that its module assigns calls to)


def made_as(obj):
    """(module, name) of the user's own module that made an `object()`, or None: no module has it under
    a name. Modules that import it, and other names for it, do not count."""
    known, count = _MADE.get(id(obj)), len(sys.modules)
    if known is not None and (known[2] == count or _has(known[1], obj)):
        return known[1]
    found = [(home, name) for home, module in list(sys.modules.items())
             if type(getattr(module, "__dict__", None)) is dict and _is_own(module)
             for name, value in list(vars(module).items()) if value is obj and isinstance(name, str)]
    found = [f for f in found if f[1] in _called(sys.modules[f[0]])]
    if len(_MADE) >= _MOST:
        _MADE.clear()
    _MADE[id(obj)] = (obj, min(found, default=None), count)
    return _MADE[id(obj)][1]


def _has(named, obj):
    return named is not None and vars(sys.modules.get(named[0], abc)).get(named[1]) is obj


def _called(module):
    """The names that a module's text assigns something to in which there is a call."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not os.path.isfile(file):
        return ()
    stat = os.stat(file)
    state = (stat.st_mtime_ns, stat.st_size)
    if _CALLS.get(file, (None,))[0] != state:
        with open(file, "rb") as f:
            text = f.read()
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except (SyntaxError, ValueError):
            nodes = []
        found = set()
        for node in nodes:
            made = isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            if made and any([isinstance(n, ast.Call) for n in ast.walk(node.value)]):
                for at in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    found.update([n.id for n in ast.walk(at) if isinstance(n, ast.Name)])
        _CALLS[file] = (state, found)
    return _CALLS[file][1]


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
            if c is not None and _is_own(sys.modules.get(c.__module__))]


# What Python itself puts into a module; its docstring is refused where it is read (`reads`).
_OF_MODULES = frozenset([
    "__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__cached__", "__path__",
    "__builtins__", "__warningregistry__", "__annotate__", "__annotate_func__", "__conditional_annotations__",
])


def whole_module(module):
    """[(name, value)]: all that a module of the user's own holds, for one that is used as a
    value. What Python itself puts there is left out."""
    return [(name, value) for name, value in list(vars(module).items())
            if isinstance(name, str) and name not in _OF_MODULES]


