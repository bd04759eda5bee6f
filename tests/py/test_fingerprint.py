"""What a fingerprint sees, kind by kind: every rule by its test."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import types
import typing
import unittest.mock
import weakref

import fingerprint_corpus as corpus
import ingot
import pytest
from conftest import HERE, needs
from fingerprint_checks import distinct, fp, lenient, refused, same
from ingot import Content, Fingerprinter, FingerprintError, trace


# ---- section 1: atoms -------------------------------------------------------------------------


def test_form():
    assert len(fp(1)) == 32 and int(fp(1), 16) >= 0 and type(fp(1)) is str


def test_atoms_differ_by_class_and_value():
    distinct(None, True, False, 1, 0, 1.0, "1", b"1", bytearray(b"1"), 1 + 0j, (), [], {}, set(),
             frozenset(), ..., NotImplemented, "", b"", bytearray())


def test_floats_by_bits():
    distinct(0.0, -0.0)
    nan = float("nan")
    same(nan, float("nan"))
    import struct

    distinct(nan, struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0])
    distinct(complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0))


def test_ints_of_any_size():
    edges = [2**k + d for k in (31, 32, 62, 63, 64, 200, 3000) for d in (-1, 0, 1)]
    distinct(*edges, *(-e for e in edges))
    same(2**3000, int("1" + "0" * 3000, 2))


def test_text():
    distinct("a", "á", "Ω", "🎈", "\ud800", "\udc00", "a\0", "\0a", "aa", "x" * 64, "x" * 65, "x" * 66)
    same("x" * 500, "".join(["x"] * 500))
    distinct("\u00e9", "e\u0301")  # no normalisation
    distinct(b"\x00" * 64, b"\x00" * 65, "\x00" * 65, bytearray(65))


def test_no_run_together():
    distinct(("ab", "c"), ("a", "bc"), ("abc",), (("ab",), "c"), ("ab", ("c",)), [["ab"], "c"])
    distinct((1, (2, 3)), (1, 2, 3), ((1, 2), 3))
    for tag in ("s", "s\0", "s\1", "t\2", "b\1"):  # text that looks like the next item
        distinct((f"a{tag}b", "c"), ("a", f"b{tag}c"))
    distinct({"a": "b"}, {"a", "b"}, {"a": {"b"}}, {("a", "b")}, {"ab": ""}, {"": "ab"})
    distinct({1: 2, 3: 4}, {1: 4, 3: 2}, {1: 3, 2: 4}, {(1, 2), (3, 4)})


# ---- containers ------------------------------------------------------------------------------------


def test_ordered_containers():
    distinct((1, 2), (2, 1), [1, 2], [2, 1], collections.deque([1, 2]), collections.deque([2, 1]))
    distinct(collections.deque([1], maxlen=1), collections.deque([1]))
    distinct(corpus.Point(1, 2), (1, 2), corpus.Point(2, 1))


def test_unordered_containers():
    same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    keys = [None, 1, "a", (1, 2), 2.5, b"x", frozenset({1})]
    for order in itertools.islice(itertools.permutations(keys), 0, 5000, 331):
        same(dict.fromkeys(order), dict.fromkeys(keys))
        same(set(order), set(keys))
        same(frozenset(order), frozenset(keys))
    distinct({1}, frozenset({1}), {1: None}, [1])
    distinct({1: 1}, {1: True}, {True: 1})  # not merged by ==
    same(collections.Counter("aab"), collections.Counter("baa"))
    distinct(collections.Counter("aab"), {"a": 2, "b": 1})
    big = {f"k{i}": i for i in range(5000)}
    same(big, dict(reversed(big.items())))
    same(set(big), set(reversed(big)))


def test_ordereddict_keeps_order():
    one, two = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
    distinct(one, two, {"a": 1, "b": 2})
    one.move_to_end("a")
    same(one, two)


def test_defaultdict_adds_its_factory():
    distinct(collections.defaultdict(list), collections.defaultdict(dict), collections.defaultdict(),
             {}, collections.OrderedDict())


def test_views_and_proxies():
    a, b = {"x": 1, "y": 2}, {"y": 2, "x": 1}
    for view in (dict.keys, dict.values, dict.items, types.MappingProxyType):
        same(view(a), view(b))
    distinct(a.keys(), set(a), list(a))
    distinct(a.values(), {"x": 2, "y": 1, "z": 1}.values(), {"x": 1, "y": 1}.values(), {1: 1}.values())
    distinct(a, types.MappingProxyType(a), a.items())


def test_no_user_eq_or_hash():
    class Hostile:
        def __init__(self, v):
            self.v = v

        armed = False

        def __hash__(self):
            assert not Hostile.armed
            return 1

        def __eq__(self, other):
            assert not Hostile.armed
            return self is other

    table = {Hostile(1): 1, Hostile(2): 2}
    items = {Hostile(1), Hostile(2)}
    Hostile.armed = True
    assert fp([table, items, table.keys(), types.MappingProxyType(table)])


# ---- subclasses of builtins ------------------------------------------------------------------------


class DictWithState(dict):
    pass


class SlottedDict(dict):
    __slots__ = ("extra",)


@pytest.mark.parametrize("base, value", [
    (int, 3), (float, 1.5), (str, "s"), (bytes, b"s"), (tuple, (1, 2)), (list, [1, 2]),
    (dict, {"a": 1}), (set, {1}), (frozenset, {1}), (bytearray, b"s"), (complex, 1j),
])
def test_subclass_state_counts(base, value):
    cls = type("Sub", (base,), {})
    a, b, c = cls(value), cls(value), cls(value)
    b.note = 1
    c.note = 2
    distinct(base(value), a, b, c)
    d = cls(value)
    d.note = 1
    same(b, d)
    slotted = type("Slots", (base,), {"__slots__": () if base in (int, tuple, bytes) else ("note",)})
    if base not in (int, tuple, bytes):
        e, f = slotted(value), slotted(value)
        f.note = 1
        distinct(e, f)


class Metres(int):
    pass


class Feet(int):
    pass


class Label(str):
    pass


class Title(str):
    pass


def test_subclasses_with_equal_values():
    distinct(Metres(1), Feet(1), 1, True)
    distinct(Label("a"), Title("a"), "a")


def test_forged_items_do_not_imitate_state():
    a, b = DictWithState(x=1), DictWithState(x=1, __dict__={"y": 2}, y=2)
    a.y = 2
    distinct(a, b, DictWithState(x=1, y=2), {"x": 1, "y": 2})
    c, d = SlottedDict(x=1), SlottedDict(x=1, extra=5)
    c.extra = 5
    distinct(c, d, SlottedDict(x=1))


def test_subclass_overrides_are_not_called():
    class Liar(list):
        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

        def __getattribute__(self, name):
            raise AssertionError(name)

    class LiarSet(set):
        __iter__ = __len__ = None

    assert fp(Liar([1])) != fp(Liar([2]))
    assert fp(LiarSet([1])) != fp(LiarSet([2]))


# ---- enums -------------------------------------------------------------------------------------------


def test_enums():
    distinct(corpus.Colour.RED, corpus.Colour.GREEN, 1, "green", corpus.Colour)
    distinct(corpus.Name.A, "a", corpus.Level.LOW, 1, corpus.Level.HIGH)
    distinct(corpus.Flags.R, corpus.Flags.R | corpus.Flags.W, corpus.Flags(0))
    same(corpus.Flags.R | corpus.Flags.W, corpus.Flags.W | corpus.Flags.R)


class Boxes(enum.Enum):
    """Values that are equal for the fingerprint and not for ==, so no aliases."""

    A = corpus.Plain(x=1)
    B = corpus.Plain(x=1)


def test_enum_names_count_and_mixins_are_enums():
    same(Boxes.A.value, Boxes.B.value)
    distinct(Boxes.A, Boxes.B)
    for member in (corpus.Name.A, corpus.Level.LOW, corpus.Flags.R):
        assert "obj: enum member" in trace(member)


def test_local_enums_by_content():
    def make(value):
        class Local(enum.Enum):
            A = 1
            B = value

        return Local

    same(make(2).A, make(2).A)
    same(make(2), make(2))
    distinct(make(2).A, make(3).A, make(2).B)
    distinct(make(2), make(3))


# ---- dataclasses and the like -----------------------------------------------------------------------


def test_dataclass_fields():
    distinct(corpus.Settings(1), corpus.Settings(2), corpus.Settings(1, "gmres"),
             corpus.Frozen(1), {"steps": 1, "solver": "cg", "tags": set()})
    same(corpus.Settings(1, tags={"a", "b"}), corpus.Settings(1, tags={"b", "a"}))


def test_each_value_belongs_to_its_field():
    distinct(corpus.Frozen(1, 2), corpus.Frozen(2, 1), corpus.Frozen((1, 2)))


def test_opt_out_in_every_variant():
    a, b = corpus.Settings(1, backend="cpu"), corpus.Settings(1, backend="gpu")
    same(a, b)
    assert lenient(a) == lenient(b)
    b.backend = lambda: None
    same(a, b)


def test_extra_attributes_count():
    a, b = corpus.Settings(1), corpus.Settings(1)
    b.extra = 1
    c = corpus.Settings(1)
    c.extra = 2
    distinct(a, b, c)
    del b.extra
    same(a, b)


def test_unset_fields_are_a_value():
    a, b, c = corpus.Slotted(None), corpus.Slotted(None), corpus.Slotted(1)
    b.b = None
    distinct(a, b, c)
    one, two = corpus.Settings(1), corpus.Settings(1)
    del two.solver
    three = corpus.Settings(1, None)
    distinct(one, two, three)


def test_attribute_order_does_not_count_but_fields_order_does():
    same(corpus.Plain(a=1, b=2), corpus.Plain(b=2, a=1))
    one = dataclasses.make_dataclass("Local", ["x", "y"])
    two = dataclasses.make_dataclass("Local", ["y", "x"])
    distinct(one(1, 2), two(2, 1))
    distinct(one(1, 1), two(1, 1))  # the declaration is part of the class
    assert lenient(one) != lenient(two)


def test_instances_read_by_learned_names():
    """After one instance taught the plan, others with more, fewer, other attributes."""
    for _ in range(2):
        distinct(corpus.Plain(a=1, b=2), corpus.Plain(a=1), corpus.Plain(b=2), corpus.Plain(a=1, c=2),
                 corpus.Plain(a=2, b=1), corpus.Plain(), corpus.Plain(a=1, b=2, c=3),
                 corpus.Plain(a={}), corpus.Plain(b={}))
    for made_dict_first in (False, True):
        p = corpus.Plain(a=1, b=2)
        if made_dict_first:
            p.__dict__
        same(p, corpus.Plain(a=1, b=2))


def test_class_defaults_are_not_instance_values():
    @dataclasses.dataclass
    class WithDefault:
        x: int = 3

    a, b = WithDefault(), WithDefault()
    del b.x
    distinct(a, b)


def test_properties_and_getattr_are_not_called():
    class Lazy:
        def __init__(self):
            self.v = 1

        def __getattr__(self, name):
            raise AssertionError(name)

        @property
        def p(self):
            raise AssertionError

    assert fp(Lazy())


def test_local_classes_by_content():
    def make(default, text="a"):
        @dataclasses.dataclass
        class Local:
            x: int = default
            name: str = text

            def double(self):
                return self.x * 2

        return Local

    same(make(1)(5), make(1)(5))
    distinct(make(1)(5), make(1)(6))
    distinct(make(1)(5), make(2)(5))

    class Namespace:
        pass

    a, b = Namespace(), Namespace()
    a.x = b.x = [1, {"y": 2}]
    same(a, b)
    same(types.SimpleNamespace(a=1, b=2), types.SimpleNamespace(b=2, a=1))


@needs("attr")
def test_attrs():
    import attr

    @attr.s(auto_attribs=True)
    class A:
        x: int
        y: int = attr.ib(default=0, metadata={"fingerprint": False})

    @attr.s(auto_attribs=True, slots=True)
    class B:
        x: int
        y: int = attr.ib(default=0, metadata={"fingerprint": False})

    for cls in (A, B):
        same(cls(1, 2), cls(1, 3))
        distinct(cls(1), cls(2))
    late = A(1)
    late.extra = 1
    distinct(A(1), late)

    @attr.s(auto_attribs=True, slots=True)
    class Unset:
        x: int
        z: int = attr.ib(init=False)

    none = Unset(1)
    none.z = None
    distinct(Unset(1), none)
    refused(A(lambda: 0), "obj.x: lambda has no importable name", "help:")


@needs("attr")
@pytest.mark.parametrize("slots", [False, True])
def test_attrs_hash_is_no_state(slots):
    """attrs may keep an instance's hash in it, which another process would not have."""
    import attr

    @attr.s(frozen=True, hash=True, cache_hash=True, slots=slots)
    class C:
        x = attr.ib()

    used = C("text")
    hash(used)
    same(used, C("text"))
    distinct(used, C("other"))


@needs("pydantic")
def test_pydantic():
    import pydantic

    class M(pydantic.BaseModel):
        x: int
        y: int = pydantic.Field(default=0, json_schema_extra={"fingerprint": False})
        z: str = "z"
        model_config = {"extra": "allow"}
        _private: int = pydantic.PrivateAttr(default=3)

    same(M(x=1, y=2), M(x=1, y=3))
    same(M(x=1), M(x=1, z="z"), M.model_construct(x=1), M(x=1).model_copy())
    distinct(M(x=1), M(x=2), M(x=1, z="q"), M(x=1, other=1), M(x=1, other=2), M.model_construct())
    private = M(x=1)
    private._private = 4
    distinct(M(x=1), private)
    assert ingot.explain(M(x=1), M(x=2)) == ["obj.x: int 1 != int 2"]
    refused(M(x=1, other=lambda: 0), "lambda has no importable name", "help:")


@needs("pydantic")
def test_pydantic_kinds():
    import pydantic

    T = typing.TypeVar("T")

    class Box(pydantic.BaseModel, typing.Generic[T]):
        item: T
        tags: set[str] = set()

    class Root(pydantic.RootModel[list[int]]):
        pass

    @pydantic.dataclasses.dataclass
    class Data:
        x: int

    same(Box[int](item=1, tags={"a", "b"}), Box[int](item=1, tags={"b", "a"}))
    distinct(Box[int](item=1), Box[float](item=1), Box(item=1), Box(item=Box(item=1)))
    distinct(Root([1]), Root([2]), [1], Data(1), Data(2))
    same(Data(1), Data("1"))


# ---- classes, functions, methods, builtins, modules ----------------------------------------------------


def test_names_are_verified():
    distinct(corpus.helper, corpus.caller, len, print, corpus.Plain, corpus.Frozen, dict, types, sys)

    def local():
        pass

    refused(local, "local function has no importable name", "obj:")
    refused(lambda: 0, "lambda has no importable name")
    fake = types.FunctionType(corpus.helper.__code__, corpus.helper.__globals__, "helper")
    fake.__qualname__, fake.__module__ = "helper", corpus.__name__
    refused(fake, "not the one that its name imports")

    class Local:
        pass

    refused(Local, "no importable name")
    assert lenient(Local) and lenient(local) and lenient(fake)
    refused(types.ModuleType("nobody"), "module")


def test_bound_methods_include_self():
    distinct(corpus.Plain(a=1).method, corpus.Plain(a=2).method, corpus.Plain.method)
    same(corpus.Plain(a=1).method, corpus.Plain(a=1).method)
    distinct([1].append, [2].append, [1].extend)


def test_partials():
    distinct(functools.partial(corpus.helper, 1), functools.partial(corpus.helper, 2),
             functools.partial(corpus.helper, x=1), functools.partial(corpus.recursive, 1))
    refused(functools.partial(lambda: 0), "lambda")


def test_classes_as_values_have_their_fields():
    assert fp(collections.Counter) == fp(collections.Counter)
    distinct(type(None), int, bool, type(...), types.FunctionType)


MODULE = """
import math
import {name}_other as other
from {name}_other import thing

LIMIT = {limit}

def leaf(x):
    {doc}
    return x {op} 1

class Tool:
    size = {size}

    def run(self, x):
        return leaf(x)

def top(x):
    def inner(y):
        return leaf(y) + LIMIT
    return inner(x) + Tool().run(x) + other.helper(x) + thing(x) + math.floor(x)

def unrelated():
    return {unrelated}

class Settings:
    def __init__(self):
        self.x = 1
"""
OTHER = """
def helper(x):
    return x + {k}

def thing(x):
    return x * {k}
"""


def edited(tmp_path, expression="m.top", name="userpkg", before="", **change):
    """The digest that a fresh process gives after the module was written anew."""
    base = dict(limit=3, op="+", size=1, unrelated=0, doc='"doc"', k=2, name=name)
    base.update(change)
    folder = tmp_path / "code"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(before + MODULE.format(**base))
    (folder / f"{name}_other.py").write_text(OTHER.format(**base))
    program = f"import {name} as m, ingot; print(ingot.fingerprint({expression}))"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(folder), *sys.path]),
               PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True,
                          cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("expression", ["m.top", "[m.top]", "m.Settings().__class__ and m.top"])
def test_edited_functions_are_other_values(tmp_path, expression):
    first = edited(tmp_path, expression)
    for change in ({"op": "-"}, {"limit": 4}, {"k": 3}, {"size": 2}):
        assert edited(tmp_path, expression, **change) != first, change


def test_location_only_edits_are_not(tmp_path):
    first = edited(tmp_path)
    assert edited(tmp_path, before="# moved down\n\n\n") == first
    assert edited(tmp_path, doc='"another docstring"') == first
    assert edited(tmp_path, doc="# a comment instead") == first
    assert edited(tmp_path, unrelated=99) == first


def test_edited_methods_of_a_class_as_value(tmp_path):
    first = edited(tmp_path, "m.Tool")
    assert edited(tmp_path, "m.Tool", size=2) != first
    assert edited(tmp_path, "m.Tool", op="-") != first  # through Tool.run -> leaf
    assert edited(tmp_path, "m.Tool().run", op="-") != edited(tmp_path, "m.Tool().run")


def test_edited_modules_are_other_values(tmp_path):
    first = edited(tmp_path, "m")
    assert edited(tmp_path, "m", unrelated=5) != first  # all of its text counts
    assert edited(tmp_path, "m", before="# moved\n") == first


def test_local_annotations_count(tmp_path):
    """They leave no trace in a code object."""
    digests = set()
    for kind in ("int", "float"):
        (tmp_path / "ann.py").write_text(f"def f():\n    x: {kind} = 1.7\n    return x\n")
        done = subprocess.run(
            [sys.executable, "-c", "import ann, ingot; print(ingot.fingerprint(ann.f))"],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])),
            capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 2


def test_captured_values_count():
    old = corpus.LIMIT
    first = fp(corpus.decorated)
    try:
        corpus.LIMIT = old + 1
        assert fp(corpus.decorated) != first
    finally:
        corpus.LIMIT = old
    assert fp(corpus.decorated) == first


def test_installed_packages_by_version():
    numpy = pytest.importorskip("numpy")
    from ingot._reach import module_file, origin

    def of(name):
        return origin(module_file(importlib.import_module(name)))

    assert of("json.decoder") == "" == of("builtins") == of("sys") == of("_json") == of("zipimport")
    assert of("numpy.linalg") == f"numpy=={numpy.__version__}"
    assert of("ingot.math") == f"ingot=={ingot.__version__}"
    assert of(corpus.__name__) is None and origin("<string>") is None


def test_another_version_is_another_value(tmp_path):
    """The text is the same; what it calls inside its package may not be."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "someones.py").write_text("class C:\n    pass\ndef f():\n    return 1\n")
    seen = []
    for version in ("1.0", "1.1", "1.0"):
        info = folder / "someones-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: someones\nVersion: {version}\n")
        done = subprocess.run(
            [sys.executable, "-c", "import someones, ingot\nfor x in (someones.f, someones.C, someones):"
             "\n    print(ingot.fingerprint(x))"],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([str(folder), *sys.path])),
            capture_output=True, text=True, check=True)
        seen.append(done.stdout.split())
    assert seen[0] == seen[2] and not set(seen[0]) & set(seen[1])


# ---- NumPy --------------------------------------------------------------------------------------------


@needs("numpy")
def test_numpy_scalars_and_dtypes():
    import numpy as np

    distinct(np.int32(1), np.int64(1), np.float64(1), np.float32(1), 1, 1.0, np.bool_(True), True,
             np.str_("1"), "1", np.bytes_(b"1"), b"1", np.uint32(1))
    distinct(np.dtype("<i4"), np.dtype(">i4"), np.dtype("<i8"), np.int32, np.dtype([("a", "<i4")]))
    same(np.dtype("i4"), np.dtype("<i4"))
    distinct(np.datetime64("2024-01-01"), np.datetime64("2024-01-02"), np.datetime64("2024-01-01", "s"))
    distinct(np.datetime64(1, "D"), np.datetime64(1, "s"), np.timedelta64(1, "s"), np.timedelta64(1, "m"))
    same(np.longdouble(1), np.longdouble(3) / 3)


@needs("numpy")
def test_numpy_arrays():
    import numpy as np

    a = np.arange(24, dtype="<i4").reshape(4, 6)
    same(a, a.copy(), np.asfortranarray(a), np.ascontiguousarray(a))
    same(a[::2, 1::2], a[::2, 1::2].copy())
    same(a.T, a.T.copy())
    distinct(a, a.T, a.reshape(6, 4), a.ravel(), a.astype("<i8"), a.astype(">i4"), a.astype("<u4"),
             a.tolist(), a.tobytes())
    b = a.copy()
    b[3, 5] += 1
    distinct(a, b)
    distinct(np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(0))
    distinct(np.array([0.0]), np.array([-0.0]))
    distinct(np.array(1.5), np.float64(1.5), np.array([1.5]))


@needs("numpy")
def test_numpy_padding_is_no_value():
    import numpy as np

    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    one, two = np.zeros(3, kind), np.full(3 * kind.itemsize, 255, "u1").view(kind)
    for x in (one, two):
        x["a"], x["b"] = 1, 2.5
    assert one.tobytes() != two.tobytes()
    same(one, two)
    two["a"][1] = 9
    distinct(one, two)


@needs("numpy")
def test_numpy_objects_times_and_subclasses():
    import numpy as np

    same(np.array([1, "a", {"k": 1}], object), np.array([1, "a", {"k": 1}], object))
    distinct(np.array([1, 2], object), np.array([2, 1], object), np.array([[1, 2]], object), [1, 2])
    distinct(np.array(["2024-01-01"], "M8[D]"), np.array(["2024-01-02"], "M8[D]"),
             np.array(["2024-01-01"], "M8[s]"))
    masked = np.ma.array([1, 2], mask=[0, 1])
    distinct(masked, np.ma.array([1, 2], mask=[1, 0]), np.array([1, 2]))

    class Tagged(np.ndarray):
        pass

    a, b = np.zeros(2).view(Tagged), np.zeros(2).view(Tagged)
    b.tag = 1
    distinct(a, b, np.zeros(2))


@needs("numpy")
def test_memory_mapped_arrays_by_content(tmp_path):
    import numpy as np

    maps = []
    for name in ("one", "two"):
        np.arange(5).tofile(tmp_path / name)
        maps.append(np.memmap(tmp_path / name, dtype=int, mode="r"))
    same(*maps)


@needs("numpy")
def test_ufuncs():
    import numpy as np

    distinct(np.add, np.subtract)
    refused(np.frompyfunc(lambda x: x, 1, 1), "no importable name")


def test_buffers():
    import array

    distinct(array.array("i", [1, 2]), array.array("l", [1, 2]), array.array("i", [2, 1]),
             memoryview(b"ab"), b"ab", memoryview(b"ab").cast("c"))
    same(memoryview(b"abcd")[::2], memoryview(b"ac"))
    import ctypes

    same((ctypes.c_int * 2)(1, 2), (ctypes.c_int * 2)(1, 2))
    refused((ctypes.c_void_p * 1)(4096), "address")


# ---- everything else, and what is refused ---------------------------------------------------------------


def test_reducers():
    same(decimal.Decimal("1.0"), decimal.Decimal("1.0"))
    distinct(decimal.Decimal("1.0"), decimal.Decimal("1.00"))
    distinct(corpus.Reduced(1), corpus.Reduced(2))
    distinct(range(3), range(4), slice(3), slice(4))
    distinct(ValueError("a"), ValueError("b"), KeyError("a"))

    class Bad:
        def __reduce__(self):
            raise ZeroDivisionError("no")

    error = refused([Bad()], "obj[0]", "ZeroDivisionError")
    assert isinstance(error.__cause__, ZeroDivisionError)

    class Nameless:
        def __reduce__(self):
            return "no_such_name"

    refused(Nameless(), "importable name")

    class Odd:
        def __reduce__(self):
            return 7

    refused(Odd())


def test_datetimes_with_a_fold():
    """The second 2:30 of the night when clocks go back: protocols below 4 leave it out."""
    for cls, args in ((datetime.datetime, (2024, 10, 27, 2, 30)), (datetime.time, (2, 30))):
        same(cls(*args), cls(*args, fold=0))
        distinct(cls(*args), cls(*args, fold=1))


def test_copyreg():
    import copyreg

    class Foreign:
        def __init__(self, v):
            self.v = v
            self.noise = threading.Lock()  # refused, if anybody asked

    copyreg.pickle(Foreign, lambda f: (int, (f.v,)))
    try:
        same(Foreign(1), Foreign(1))
        distinct(Foreign(1), Foreign(2))
    finally:
        del copyreg.dispatch_table[Foreign]


def test_refused_kinds(tmp_path):
    for value in (
        lambda: 0, threading.Lock(), threading.RLock(), (x for x in ()), weakref.ref(corpus.Plain()),
        unittest.mock.Mock(), unittest.mock.MagicMock(), sys._getframe(), open(os.devnull),
        (lambda: 0).__code__, threading.Thread(),
    ):
        for place in (value, [value], {"k": value}, corpus.Plain(a=value), (1, (2, value))):
            refused(place)


def test_paths():
    bad = lambda: 0  # noqa: E731
    refused(corpus.Plain(config={"solver": corpus.Plain(callback=bad)}),
            "obj.config['solver'].callback: lambda has no importable name")
    refused([0, (1, {"a": [bad]})], "obj[1][1]['a'][0]:")
    refused({bad: 1}, ".keys()[<function>]")
    refused(corpus.Frozen(1, bad), "obj.y:")
    refused(collections.OrderedDict(a=1, b=bad), "obj['b']:")
    refused(functools.partial(corpus.helper, bad), "obj.__reduce_ex__(4)")
    with pytest.raises(FingerprintError, match=r"^arg\[0\]"):
        Fingerprinter()([bad], path="arg")
    message = str(refused(corpus.deep(1000) and [corpus.deep(3), bad]))
    assert "help:" in message


def test_deep_path_is_cut():
    value = lambda: 0  # noqa: E731
    for _ in range(5000):
        value = [value]
    assert len(str(refused(value))) < 1000


# ---- kernels and arrays ---------------------------------------------------------------------------------


def test_ingot_values():
    distinct(ingot.f32, ingot.f64, ingot.i32)
    a = ingot.ndarray(ingot.i32, (3,))
    b = ingot.ndarray(ingot.i32, (3,))
    refused(a, "Content(a)")
    same(Content(a), Content(b))
    a[1] = 7
    distinct(Content(a), Content(b), Content(ingot.ndarray(ingot.f32, (3,))))


def test_kernels_by_source():
    folder = HERE / "fingerprint_kernels.py"
    text = textwrap.dedent("""
        import ingot as qd
        SCALE = 2
        @qd.func
        def twice(x):
            return x * SCALE
        @qd.kernel
        def k(x: qd.i32) -> qd.i32:
            return twice(x) + {n}
    """)
    assert not folder.exists()
    import linecache

    def make(n, scale=2, comment=""):
        name = f"<kernel {n} {scale} {comment}>"
        source = comment + text.format(n=n)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space = {"__name__": "nowhere"}
        exec(compile(source, name, "exec"), space)
        space["SCALE"] = scale
        return space["k"]

    same(make(1), make(1, comment="\n# moved\n"))
    distinct(make(1), make(2), make(1, scale=3))
