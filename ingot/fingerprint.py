"""Fingerprints: digests of Python values that are a function of the value alone.

    ingot.fingerprint(obj)                    32 hexadecimal digits, the same in every process
    ingot.Fingerprinter(overrides={...})      the same with rules of your own
    ingot.explain(a, b)                       where two values differ for the fingerprint
    ingot.trace(obj)                          what is hashed, as text

docs/fingerprint.md says what is hashed for each kind of object. The engine is C
(src/py/value/fingerprint*.c); this module has the wrappers, explain and trace. The module itself
can be called, so `ingot.fingerprint(obj)` works whether or not somebody imported
`ingot.fingerprint`.
"""

import itertools
import os
import struct
import sys
import types
import weakref

from ingot import _core
from ingot._core import FingerprintError
from ingot._signature import Signature

__all__ = [
    "Content", "File", "FingerprintError", "Fingerprinter", "Identity", "Key", "Ordered", "Pieces",
    "explain", "fingerprint", "trace",
]


class Pieces:
    """What an override returns: a tag, the children, and whether their order counts."""

    __slots__ = {"children": "The values that count.", "ordered": "Whether their order counts.", "tag": "A text that counts."}

    def __init__(self, tag, children=(), ordered=True):
        if not isinstance(tag, str):
            raise TypeError(f"Pieces: the tag must be a str, not {type(tag).__name__}")
        self.tag = str(tag)
        self.children = tuple(children)
        self.ordered = bool(ordered)

    def __repr__(self):
        return f"Pieces({self.tag!r}, {self.children!r}, ordered={self.ordered})"


class _Token:
    """Keeps an object alive under a number that is never given twice."""

    __slots__ = ("__weakref__", "nonce", "obj", "serial")

    def __init__(self, obj, serial):
        self.obj = obj
        self.serial = serial
        self.nonce = _process()


_tokens = weakref.WeakValueDictionary()  # id(obj) -> _Token; a live token pins the id
_serials = itertools.count(1)
_nonce = None  # (process id, random text): another process never has equal identities


def _process():
    global _nonce
    if _nonce is None or _nonce[0] != os.getpid():
        _nonce = (os.getpid(), os.urandom(16).hex())
    return _nonce[1]


class Identity:
    """Stands for an object by identity: O(1), whatever it holds.

    The fingerprint is valid in this process only. It keeps the object alive for as long as
    the returned key lives, so that no other object can get its identity.
    """

    __slots__ = {"token": "What stands for the object."}

    def __init__(self, obj):
        token = _tokens.get(id(obj))
        if token is None or token.obj is not obj or token.nonce != _process():
            token = _tokens[id(obj)] = _Token(obj, next(_serials))
        self.token = token

    @property
    def obj(self):
        """The object whose identity counts."""
        return self.token.obj

    def __repr__(self):
        return f"Identity({self.token.obj!r})"


class _Wrapper:
    __slots__ = {"obj": "The object that is wrapped."}

    def __init__(self, obj):
        self.obj = obj

    def __repr__(self):
        return f"{type(self).__name__}({self.obj!r})"


class Ordered(_Wrapper):
    """A mapping whose order counts, because iterating it is part of the product."""

    __slots__ = ()


class Content(_Wrapper):
    """An Ingot array by what it holds now."""

    __slots__ = ()


class File(os.PathLike):
    """A data file by its content at the time of hashing: `TABLE = File("table.csv")`.

    Give it to `open` or to anything that takes a path. A function that names it, has it as a
    default or as an attribute is another value when the file's content is another; where the
    file lies does not count.
    """

    __slots__ = {"path": "The path, as a str."}

    def __init__(self, path):
        self.path = os.fspath(path)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"File({self.path!r})"


class Key(str):
    """A fingerprint that holds objects which it knows by identity."""

    __slots__ = ("_held",)
    __signature__ = Signature(lambda text: None)


_core._fingerprint_register(Pieces, Identity, Ordered, Content)


# ---- rules ----------------------------------------------------------------------------------


class Fingerprinter:
    """Fingerprints with rules of one's own.

    overrides   {type: f}, f(obj) -> Pieces or NotImplemented; looked up along the MRO of
                the object's type, so a rule for a class is also one for its subclasses
    skip        types whose instances do not count, and pairs (type, "field")
    fallback    f(obj) -> Pieces or NotImplemented, for what would be refused
    variant     "strict" or "lenient"
    """

    __slots__ = {"_config": None, "variant": "'strict' or 'lenient'."}

    def __init__(self, overrides=None, skip=(), fallback=None, variant="strict"):
        if variant not in ("strict", "lenient"):
            raise ValueError(f"variant must be 'strict' or 'lenient', not {variant!r}")
        rules = tuple((overrides or {}).items())
        for cls, rule in rules:
            if not isinstance(cls, type) or not callable(rule):
                raise TypeError(f"overrides: expected {{type: function}}, got {cls!r}: {rule!r}")
        skipped = tuple(_skip_rule(s) for s in skip)
        if fallback is not None and not callable(fallback):
            raise TypeError(f"fallback must be a function, not {fallback!r}")
        self.variant = variant
        self._config = (variant == "lenient", rules, skipped, fallback, None, False)

    def __call__(self, obj, *, path="obj"):
        """The digest of obj; `path` is its name in messages."""
        return _digest(obj, (*self._config[:4], path, False))

    fingerprint = __call__

    def _of_code(self, obj, path):
        """The digest of something that is going to be called: instances, at any depth, count
        with the text of their classes, as they do in what a function names."""
        return _digest(obj, (*self._config[:4], path, True))


def _skip_rule(rule):
    if isinstance(rule, type):
        return rule
    if isinstance(rule, tuple) and len(rule) == 2 and isinstance(rule[0], type):
        return (rule[0], str(rule[1]))
    raise TypeError(f"skip: expected a type or (type, field name), got {rule!r}")


_CONFIGS = {"strict": None, "lenient": (True, (), (), None, None, False)}


def _digest(obj, config):
    digest = _core._fingerprint(obj, config)
    if type(digest) is str:
        return digest
    key = Key(digest[0])
    key._held = tuple(digest[1])
    return key


def _config(variant, overrides, skip, fallback):
    if overrides or skip or fallback:
        return Fingerprinter(overrides, skip, fallback, variant)._config
    if variant not in _CONFIGS:
        raise ValueError(f"variant must be 'strict' or 'lenient', not {variant!r}")
    return _CONFIGS[variant]


def fingerprint(obj, *, variant="strict", overrides=None, skip=(), fallback=None):
    """The fingerprint of a value: 32 hexadecimal digits.

    Equal values have equal fingerprints in every process, on every Python from 3.10 on.
    What cannot be hashed so is refused with a FingerprintError that names the path to it.
    """
    return _digest(obj, _config(variant, overrides, skip, fallback))


# ---- what classes were told (called by the engine) ---------------------------------------------
#
# Lists, not generator expressions: from 3.12 on CPython frees a function's code once too often
# when there is no memory for the function, and a generator expression is one.

_FLAGS = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")
_PARTS = ("default", "default_factory", "converter", "validator", "annotation", "on_setattr", "eq_key",
          "order_key", "alias", "repr")
_MADE = ("__eq__", "__hash__", "__init__", "__lt__", "__repr__", "__setattr__")


def _declared(cls):
    """[(key: tuple, value)]: what the decorator of a dataclass and the like was told beyond the
    fields' names, where the class used as a value does not show it otherwise."""
    own = type.__dict__["__dict__"].__get__(cls)
    if "__dataclass_params__" in own:
        params = own["__dataclass_params__"]
        out = [(("dataclass",), tuple([bool(getattr(params, n, False)) for n in _FLAGS]))]
        for field in own["__dataclass_fields__"].values():
            out += _declared_field(field, sys.modules["dataclasses"].MISSING)
        return out
    if "__attrs_attrs__" in own:
        out = [(("attrs",), tuple([own.get(n) is not None for n in _MADE]))]
        for field in own["__attrs_attrs__"]:
            out += _declared_field(field, sys.modules["attr"].NOTHING)
        out += _attrs_hooks(own.get("__setattr__"))
        kept = getattr(own.get("__getattr__"), "__defaults__", None)
        if kept and isinstance(kept[0], dict):  # cached properties of a class with slots
            out += [(("cached", name), kept[0][name]) for name in kept[0]]
        return out
    if "__pydantic_fields__" in own:
        missing = sys.modules["pydantic_core"].PydanticUndefined
        fields, private = own["__pydantic_fields__"], own.get("__private_attributes__") or {}
        out = [p for n, f in fields.items() for p in _declared_field(f, missing, n)]
        return out + [p for n, f in private.items() for p in _declared_private(f, missing, n)]
    return []


def _declared_private(field, missing, name):
    for part in ("default", "default_factory"):
        value = getattr(field, part, None)
        if value is not None and value is not missing:
            yield ("private", name, part), value


def _attrs_hooks(made):
    """What a class of attrs as a whole was told to do when an attribute is set."""
    out = []
    for cell in getattr(made, "__closure__", None) or ():
        if isinstance(cell.cell_contents, dict):
            hooks = cell.cell_contents
            out += [(("set", name), hooks[name][1]) for name in hooks if isinstance(hooks[name], tuple)]
    return out


def _declared_field(field, missing, name=None):
    meta = getattr(field, "metadata" if name is None else "json_schema_extra", None)
    if isinstance(meta, (dict, types.MappingProxyType)) and meta.get("fingerprint") is False:
        return
    flags = ("init", "repr", "eq", "order", "compare", "hash", "kw_only", "frozen")
    if isinstance(meta, (dict, types.MappingProxyType)) and meta and name is None:
        yield ("field", field.name, "metadata"), dict(meta)
    if name is not None and field.metadata:  # of pydantic: constraints, validators
        yield ("field", name, "metadata"), list(field.metadata)
    said = getattr(field, "_attributes_set", None) if name is not None else None
    if said:  # titles, what a schema is to say
        yield ("field", name, "said"), {k: said[k] for k in said if k not in (*_PARTS, "metadata")}
    name = field.name if name is None else name
    yield ("field", name), tuple([getattr(field, n, None) is True for n in flags])
    for part in _PARTS:
        value = getattr(field, part, None)
        if part == "repr" and not callable(value):
            continue
        if type(value).__name__ == "Factory" and type(value).__module__ in ("attr", "attr._make"):
            value = value.factory  # of attrs
        if value is not None and value is not missing:
            yield ("field", name, part), value


def _span(node):
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _returns(node, code):
    """Is it a lambda that returns the constant that the code does, with the same parameters?"""
    value = getattr(node.body, "value", _span)
    last = code.co_consts[-1] if code.co_consts else None
    names = tuple([a.arg for a in [*node.args.posonlyargs, *node.args.args]])
    return type(value) is type(last) and value == last and names == code.co_varnames[: code.co_argcount]


def _find_lambda(tree, code, line):
    """The lambda in a syntax tree that the code object is of, or None where several may be; `line` is
    that of the tree's first line. From Python 3.11 on code knows its columns."""
    import ast

    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(found) > 1:
        places = [p for p in getattr(code, "co_positions", tuple)() if None not in p and p[2:] != (0, 0)]
        known = [(p[0] - line + 1, p[2], p[1] - line + 1, p[3]) for p in places]
        # In 3.12 code that returns a constant has no columns: which constant it is tells as much.
        if known:
            found = [n for n in found if _span(n.body) in known]
        elif hasattr(code, "co_positions"):
            found = [n for n in found if _returns(n, code)][:1]
    return found[0] if len(found) == 1 else None


# ---- what is hashed, as text ------------------------------------------------------------------

_TEXT = {"s": 1, "t": 2, "u": 4, "b": 0, "a": 0, "j": 0, "d": 0}
_LONG = "S24BAJD"
_WORDS = {
    "N": "None", "T": "True", "F": "False", "E": "Ellipsis", "M": "NotImplemented",
    "x": "<unset>", "-": "<skipped>", "@": "<self>",
}
_DIGESTS = {"r": "ref", "k": "class", "n": "name", "C": "child"}


def _decode(data):
    """The encodings in `data`, as text."""
    out, at = [], 0
    while at < len(data):
        text, size = _decode_one(data, at)
        out.append(text)
        at += size
    return out


def _decode_one(data, at):
    tag = chr(data[at])
    if tag in _WORDS:
        return _WORDS[tag], 1
    if tag == "i":
        return f"int {struct.unpack_from('<q', data, at + 1)[0]}", 9
    if tag == "f":
        return f"float {struct.unpack_from('<d', data, at + 1)[0]!r}", 9
    if tag == "c":
        return f"complex {complex(*struct.unpack_from('<2d', data, at + 1))!r}", 17
    if tag in _TEXT:
        size = data[at + 1]
        return _short(tag, bytes(data[at + 2 : at + 2 + size])), 2 + size
    low, high = struct.unpack_from("<2Q", data, at + (9 if tag in _LONG else 1))
    if tag in _LONG:
        size = struct.unpack_from("<Q", data, at + 1)[0]
        kind = {"B": "bytes", "A": "bytearray", "J": "int", "D": "data"}.get(tag, "str")
        return f"{kind} of {size} bytes {high:016x}{low:016x}", 25
    return f"{_DIGESTS[tag]} {high:016x}{low:016x}", 17


def _short(tag, raw):
    width = _TEXT[tag]
    if width:
        coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width]
        return f"str {raw.decode(coding, 'surrogatepass')!r}"
    if tag == "j":
        return f"int {raw.decode()}"
    return f"{ {'b': 'bytes', 'a': 'bytearray', 'd': 'data'}[tag] } {raw!r}"


def _mark_key(obj):
    """Identity of a child: engine marks are made anew each time, what they show is not."""
    return (id(obj.obj), repr(obj)) if type(obj) is _core.FingerprintMark else (id(obj), "")


def _seen_as(config, live):
    """The configuration for a child of what code works on, or of what is data."""
    return (*(config or (False, (), (), None, None))[:5], live)


_DEEP = 32  # levels of indentation: deeper ones say how deep they are


def _pad(depth):
    return "  " * depth if depth <= _DEEP else "  " * _DEEP + f"[{depth}] "


def trace(obj, *, variant="strict", overrides=None, skip=(), fallback=None, limit=10_000):
    """What is hashed, as text: one line per value, children below their parent; past `limit`
    lines (None: no bound) it ends with a line that says so. Under the lenient rules, lines with
    "not followed" name what functions reach that no key can see."""
    config = _config(variant, overrides, skip, fallback)
    lines, seen, keep = [], {}, []
    stack = [("obj", obj, 0, False)]
    while stack:
        if limit is not None and len(lines) >= limit:
            lines.append(f"... cut after {limit} lines; trace(..., limit=None) gives all")
            break
        label, value, depth, live = stack.pop()
        pad = _pad(depth)
        level = _core._fingerprint_level(value, _seen_as(config, live))
        if level[0] is None:
            lines.append(f"{pad}{label}: {', '.join(_decode(level[1]))}")
            continue
        kind, head, ordered, size, children, below = level
        key = (_mark_key(value), live)
        if key in seen:
            lines.append(f"{pad}{label}: {kind}, as in line {seen[key]}")
            continue
        seen[key] = len(lines) + 1
        keep.append((value, children))
        rest = (len(children) - ordered) // size
        counts = f"{ordered} in order" * bool(ordered) + " and " * bool(ordered and rest)
        counts += f"{rest} in any order" * bool(rest)
        lines.append(f"{pad}{label}: " + ", ".join(filter(None, [kind, counts, *_decode(head)])))
        if limit is not None and len(children) > limit - len(lines):
            children = children[: max(0, limit - len(lines)) + 1]
        stack.extend((name, child, depth + 1, below) for name, child in reversed(children))
    return "\n".join(lines)


# ---- where two values differ ------------------------------------------------------------------


def explain(a, b, *, variant="strict", overrides=None, skip=(), fallback=None, limit=10):
    """The first paths at which two values differ for the fingerprint, as a list of strings;
    empty when their fingerprints are equal."""
    config = _config(variant, overrides, skip, fallback)
    if _core._fingerprint(a, config) == _core._fingerprint(b, config):
        return []
    found, seen, keep = [], set(), []
    stack = [("obj", a, b, False)]
    while stack and len(found) < limit:
        path, left, right, live = stack.pop()
        pair = (_mark_key(left), _mark_key(right), live)
        if pair in seen:
            continue
        seen_as = _seen_as(config, live)
        one, two = (_core._fingerprint_level(v, seen_as) for v in (left, right))
        if one[0] is not None:
            seen.add(pair)
        keep.append((left, right, one, two))
        live = one[-1] is True
        below = _seen_as(config, live)
        pairs = _differences(path, one, two, left, right, below, found)
        stack.extend((*p, live) for p in reversed(pairs))
    return found or ["obj: the values unfold differently"]


def _differences(path, one, two, left, right, config, found):
    """Adds what differs at this level; returns the pairs of children to look into."""
    if one[0] is None or two[0] is None or one[0] != two[0]:
        if one[:2] != two[:2]:
            found.append(f"{path}: {_brief(one)} != {_brief(two)}")
        return []
    if one[1] != two[1]:
        found.append(f"{path}: {_brief(one, left)} != {_brief(two, right)}")
        return []
    ordered = (one[2], two[2])
    pairs = [
        (path + name, x, y)
        for (name, x), (_, y) in zip(one[4][: ordered[0]], two[4][: ordered[1]])
    ]
    if ordered[0] != ordered[1]:
        found.append(f"{path}: {ordered[0]} != {ordered[1]} items in order")
    return pairs + _unordered(path, one, two, config, found)


def _unordered(path, one, two, config, found):
    """Groups are matched by the digest of their first child: the key, the name, the item."""
    groups = [_groups(level, config) for level in (one, two)]
    pairs = []
    for digest in groups[0].keys() | groups[1].keys():
        mine, theirs = groups[0].get(digest, ()), groups[1].get(digest, ())
        if len(mine) != len(theirs):
            label, child = (mine or theirs)[0][-1]
            where = "only in the first" if mine and not theirs else (
                "only in the second" if theirs and not mine else "not equally often")
            found.append(f"{path}{label}: {where}: {_brief_value(child, config)}")
            continue
        for group, other in zip(mine, theirs):
            if len(group) == 2:
                pairs.append((path + group[1][0], group[1][1], other[1][1]))
    return sorted(pairs, key=lambda p: p[0])


def _groups(level, config):
    out, size = {}, level[3]
    rest = level[4][level[2] :]
    for at in range(0, len(rest), size):
        group = rest[at : at + size]
        out.setdefault(_core._fingerprint(group[0][1], config), []).append(group)
    return out


def _brief(level, value=None):
    head = ", ".join(_decode(level[1]))
    if level[0] is None:
        return head
    if value is not None and type(value) is not _core.FingerprintMark:
        return f"{level[0]} ({type(value).__name__}: {head})"
    return f"{level[0]} ({head})" if head else level[0]


def _brief_value(value, config):
    return _brief(_core._fingerprint_level(value, config), value)


# ---- the module can be called -------------------------------------------------------------------


class _Module(types.ModuleType):
    """`ingot.fingerprint` is this module as soon as it is imported, and the function before:
    both can be called."""

    def __call__(self, obj, **options):
        return fingerprint(obj, **options)


sys.modules[__name__].__class__ = _Module
