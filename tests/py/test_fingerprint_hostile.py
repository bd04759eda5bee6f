"""Fingerprints of objects that lie, raise, change under the walk or look like others. Most
of these crashed or collided once."""

import collections
import ctypes
import dataclasses
import gc
import sys
import threading
import types

import ingot
import pytest
from conftest import needs
from fingerprint_checks import distinct, fp, refused, same
from ingot import Fingerprinter, FingerprintError, Pieces

# ---- attributes that look like others ---------------------------------------------------------


def make(cls, **state):
    obj = object.__new__(cls)
    obj.__dict__.update(state)
    return obj


def test_class_values_are_not_instance_values():
    """`a` in one, the class's very value under another name in the other."""
    class Plain:
        a = None

    @dataclasses.dataclass
    class Data:
        x: int
        a: object = None

    for _ in range(3):  # the plan has learned the names
        one, two = Plain(), Plain()
        one.a, two.c = None, None
        distinct(one, two, Plain())
        first, other = Data(1), Data(1)
        del other.a
        other.c = None
        distinct(first, other, Data(1, 2))
        same(Data(1), Data(1))


def test_instances_without_their_fields():
    """The first one that is seen of its class has no attribute at all."""
    cls = dataclasses.make_dataclass("Bare", ["x", "y"])
    bare = object.__new__(cls)
    distinct(bare, cls(1, 2), cls(None, None))
    same(bare, object.__new__(cls))


def test_properties_that_change_the_plan():
    class Odd:
        def __init__(self, **state):
            self.__dict__.update(state)

        @property
        def b(self):
            Odd.count += 1
            if Odd.count < 40:
                fp(Odd(one=1, two=2, three=3, four=4))
                for _ in range(20):
                    fp(type("Gone", (), {})())
            return 1

    Odd.count = 0
    assert fp(Odd(a=1, b=1)) == fp(Odd(a=1, b=1)) != fp(Odd(a=1, b=2))
    assert Odd.count == 0  # what is in the dict is read from the dict


def test_names_that_are_looked_up_with_side_effects():
    class Module(types.ModuleType):
        def __getattr__(self, name):
            Lost.changed = Module.count = Module.count + 1
            if Module.count < 100:
                fp(Lost())
                gc.collect()
            raise AttributeError(name)

    Module.count = 0
    sys.modules["ingot_test_odd"] = Module("ingot_test_odd")
    try:
        class Lost:
            __module__ = "ingot_test_odd"

            def __init__(self):
                self.q = 1

        assert fp([Lost() for _ in range(5)])
        assert Module.count
    finally:
        del sys.modules["ingot_test_odd"]


def test_metaclasses_that_interfere():
    class Meddler(type):
        count = 0

        def __getattribute__(cls, name):
            if name in ("__module__", "__qualname__") and Meddler.count < 60:
                Meddler.count += 1
                type.__setattr__(cls, "version", Meddler.count)
                fp(type.__getattribute__(cls, "__new__")(cls))
            return type.__getattribute__(cls, name)

    class Instance(metaclass=Meddler):
        pass

    class Items(list, metaclass=Meddler):
        pass

    one = Instance()
    one.k = 1
    items = Items([1])
    items.s = 3
    assert fp([one, Instance(), one, items, items])

    class Refuser(type):
        def __getattribute__(cls, name):
            raise RuntimeError(name)

    class Unreadable(metaclass=Refuser):
        pass

    refused([Unreadable()], "obj[0]")
    refused([Unreadable], "obj[0]")

    class Short(type):
        def mro(cls):
            return [cls, object]

    assert fp(Short("Local", (), {})())


@pytest.mark.parametrize("name, value", [
    ("__dataclass_fields__", {1: 2}), ("__dataclass_fields__", 5), ("__dataclass_fields__", {"x": 5}),
    ("__attrs_attrs__", (1,)), ("__attrs_attrs__", (types.SimpleNamespace(name=5),)),
    ("__pydantic_fields__", {"x": 1, 3: 4}), ("__slots__", ("a",)),
])
def test_declarations_that_are_none(name, value):
    for extra in ({}, {"__slots__": ("s",)} if name != "__slots__" else {}):
        obj = type("Local", (), {name: value, **extra})()
        try:
            assert fp(obj)
        except FingerprintError as e:
            assert str(e).startswith("obj: ")


def test_metadata_that_changes_the_fields():
    class Metadata(dict):
        def __getitem__(self, key):
            Local.__dataclass_fields__.clear()
            raise KeyError(key)

    Local = dataclasses.make_dataclass("Local", ["a", "b"])
    for field in dataclasses.fields(Local):
        field.metadata = Metadata()
    assert fp(Local(1, 2))


def test_class_that_lies():
    class Liar:
        @property
        def __class__(self):
            return int

    class Other:
        __class__ = dict

    distinct(Liar(), Other(), 0, {})


def test_odd_attribute_names():
    class Str(str):
        pass

    class Local:
        pass

    distinct(make(Local), make(Local, a=1), make(Local, **{"\ud800": 1}))
    one, two = Local(), Local()
    one.__dict__[5] = 1
    two.__dict__[Str("a")] = 1
    distinct(one, two, make(Local, a=1))


# ---- reducers ------------------------------------------------------------------------------------


class Reducer:
    def __init__(self, result):
        self.result = result

    def __reduce_ex__(self, protocol):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class Silent(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("result", [
    ValueError("x"), RecursionError(), SystemError(), Silent(), None, 7, (), (1,), (int,), (int, 1), (int, []),
    (int, (), None, 5), (int, (), None, None, 5), ("x", ()), (None, ()), (int, ()) + (None,) * 5, "", "a.b",
    "\ud800", [int, ()],
])
def test_reducers_that_give_garbage(result):
    refused([Reducer(result)], "obj[0]: ")


def test_ctrl_c_in_a_reducer():
    with pytest.raises(KeyboardInterrupt):
        fp(Reducer(KeyboardInterrupt()))


def test_reducers_that_change_what_is_walked():
    class Evil:
        def __init__(self, act):
            self.act = act

        def __reduce__(self):
            self.act()
            return (int, ())

    items = []
    items += [Evil(items.clear), 1, 2, 3]
    refused(items, "changed")
    table = {}
    table.update(a=Evil(table.clear), b=1)
    refused(table, "changed")
    keys = {}
    keys.update({Evil(keys.clear): 1, "b": 2})
    refused(keys, "changed")
    queue = collections.deque([1, 2])
    queue.append(Evil(queue.clear))
    assert fp(queue)  # read before
    group = set()
    group.update({Evil(group.clear), 1})
    assert fp(group)
    holder = types.SimpleNamespace()
    holder.a = Evil(lambda: vars(holder).clear())
    holder.b = 1
    refused(holder, "changed")


def test_overrides_that_change_the_class():
    class Base:
        pass

    class Local(Base):
        pass

    def rule(obj):
        Local.__bases__ = (type("Other", (), {}),)
        gc.collect()
        return NotImplemented

    assert Fingerprinter({Local: rule, object: lambda o: NotImplemented})(Local())
    with pytest.raises(ZeroDivisionError):
        Fingerprinter({int: lambda i: 1 // 0})([1])
    with pytest.raises(FingerprintError):
        Fingerprinter({int: lambda i: Pieces("i", [lambda: 0])})([1])


# ---- memory --------------------------------------------------------------------------------------


class Named(ctypes.Structure):
    """Names of fields that are codes of formats, too."""

    _fields_ = [("g", ctypes.c_ubyte * 32), ("P", ctypes.c_int)]


class Pointer(ctypes.Structure):
    _fields_ = [("p", ctypes.POINTER(ctypes.c_int))]


class Long(ctypes.Structure):
    _fields_ = [("a", ctypes.c_longdouble), ("b", ctypes.c_int)]


def test_ctypes_by_value_not_by_address():
    one, two = Named(), Named()
    for k in range(32):
        two.g[k] = 1
        distinct(one, two)
        two.g[k] = 0
    same(one, two)
    for value in (
        ctypes.c_char_p(b"x"), ctypes.c_wchar_p("x"), (ctypes.c_char_p * 2)(b"x", b"y"), Pointer(),
        ctypes.pointer(ctypes.c_int(1)), ctypes.py_object([]), ctypes.CFUNCTYPE(None)(lambda: None),
        ctypes.c_void_p(1), Long(),
    ):
        refused(value, "its memory holds")
    same(ctypes.c_double(1.5), ctypes.c_double(1.5))
    distinct(ctypes.c_double(1.5), ctypes.c_double(2.5))


@needs("numpy")
def test_arrays_of_odd_kinds():
    import numpy as np

    distinct(np.zeros(3, []), np.zeros(4, []), np.zeros((2, 2), []))
    distinct(np.zeros(4, [("a", "i4")]), np.zeros((2, 2), [("a", "i4")]))

    class Tagged(np.ndarray):
        pass

    for plain in (np.array([1, "a"], object), np.zeros(2, [("a", "i4")]), np.zeros(2), np.zeros(2, "M8[s]")):
        one, two, three = plain.view(Tagged), plain.view(Tagged), plain.view(Tagged)
        two.tag, three.tag = 1, 2
        distinct(plain, one, two, three)
        same(one, plain.copy().view(Tagged))
    loop = np.empty(2, object)
    loop[0] = loop
    assert fp(loop)
    frozen = np.arange(5)
    frozen.setflags(write=False)
    same(frozen, np.arange(5))
    same(np.arange(5)[::-1], np.arange(5)[::-1].copy())
    wide = np.broadcast_to(np.arange(3), (4, 3))
    same(wide, wide.copy())
    nested = np.dtype([("a", [("b", "i4"), ("c", "O")]), ("d", "f4", (2, 2))])
    same(np.zeros(2, nested), np.zeros(2, nested))
    values = [np.array(5), np.array({"a": 1}, object), np.array("2020", "M8[D]"), np.void(b"abc"),
              np.void(b"abd"), np.zeros(3, "V5"), np.zeros(3, "f2"), np.zeros((0, 2), object),
              np.array(["a", "b"]), np.zeros(2, "G"), np.zeros(1, nested)[0],
              np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])]
    distinct(*values)


# ---- classes as values --------------------------------------------------------------------------


class Unit:
    """A descriptor of one's own, with a value in it."""

    def __init__(self, k):
        self.k = k

    def __get__(self, obj, cls=None):
        return self.k if obj else self


def test_descriptors_of_ones_own_are_values():
    def make_class(k):
        class Local:
            unit = Unit(k)

        return Local

    same(make_class(1)(), make_class(1)())
    distinct(make_class(1)(), make_class(2)())


# ---- cycles, size, threads -------------------------------------------------------------------------


def ring(kind):
    box = types.SimpleNamespace()
    box.inner = kind(box)
    return box


@pytest.mark.parametrize("kind", [
    lambda b: [b], lambda b: (b,), lambda b: {"k": b}, lambda b: {1: (b,)}, lambda b: collections.deque([b]),
    lambda b: collections.OrderedDict(k=b), lambda b: collections.defaultdict(None, k=b),
    lambda b: types.MappingProxyType({"k": b}), lambda b: {"k": b}.values(), lambda b: {"k": b}.items(),
    lambda b: collections.namedtuple("N", "x")(b), lambda b: dataclasses.make_dataclass("D", ["x"])(b),
    lambda b: type("L", (list,), {})([b]), lambda b: Reducer((tuple, ([b],))), lambda b: ingot.Ordered({"k": b}),
    lambda b: ValueError(b),
])
def test_cycles_through_every_kind(kind):
    same(ring(kind), ring(kind))
    one = ring(kind)
    one.other = 1
    distinct(one, ring(kind))


def test_a_million_elements():
    big = list(range(1_000_000))
    same(big, list(big))
    assert fp(set(map(str, big[:200_000]))) == fp(set(map(str, reversed(big[:200_000]))))


def test_threads_that_change_what_is_hashed():
    """Any result or refusal will do, but no crash."""
    class Slow:
        def __reduce__(self):
            return (int, (len(shared),))

    shared = {k: [k, Slow()] for k in range(50)}
    stop = threading.Event()

    def change():
        k = 0
        while not stop.is_set():
            k += 1
            shared[k % 97] = [k, Slow()]
            shared.pop(k % 89, None)
            Slow.k = k
            fp(type("Gone", (), {})())

    threads = [threading.Thread(target=change) for _ in range(2)]
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for _ in range(200):
            try:
                fp(shared)
            except FingerprintError as e:
                assert "changed" in str(e)
    finally:
        stop.set()
        for t in threads:
            t.join()
        sys.setswitchinterval(old)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RecursionError, SystemExit])
@pytest.mark.parametrize("name", ["__qualname__", "__module__", "__reduce_ex__"])
def test_what_is_no_answer_ends_the_walk(error, name):
    """No memory or an interrupt while looking is not the same as "there is none"."""
    armed = []

    class Meta(type):
        def __getattribute__(cls, asked):
            if armed and asked == name:
                raise error("not an answer")
            return super().__getattribute__(asked)

    def value():
        class Local(metaclass=Meta):
            def __init__(self):
                self.x = 1

        return [Local()]

    want, fresh = fp(value()), value()
    armed.append(1)
    with pytest.raises(error, match="not an answer"):
        fp(fresh)
    armed.clear()
    assert fp(fresh) == want
