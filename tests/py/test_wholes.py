"""What is handed to a call made while compiling is compared as a whole (src/py/see/whole.c): things that
look immutable and are not, or that differ in what the language does not see. Each case launches a
kernel, changes something, and compares with Python."""

import collections
import dataclasses
import enum
import functools
import math
import operator
import sys
import types
import typing

import numpy as np
import pytest

import ingot as qd
from ingot import _core

A = qd.types.ndarray()


@pytest.fixture(autouse=True)
def fresh(target):
    qd.init()


X = None


def measure(x):
    return x


@qd.kernel
def uses(a: A):
    n = qd.static(measure(X))
    a[0] = n


def check(values, read, monkeypatch):
    """Each of the values (or what a function makes of the last) in turn, once: read(X) is what
    Python says."""
    monkeypatch.setitem(globals(), "measure", read)
    for value in values:
        monkeypatch.setitem(globals(), "X", value() if getattr(value, "__name__", "") == "<lambda>" else value)
        a = qd.ndarray(qd.f64, 1)
        uses(a)
        assert a[0] == read(X)


# ---- functions, listed and others ----------------------------------------------------------------


@pytest.mark.parametrize("functions", [(math.floor, math.ceil, round), (int, float, bool),
                                       (np.floor, np.ceil, np.negative), (np.int32, np.float32)],
                         ids=["C", "classes", "ufuncs", "NumPy's classes"])
def test_functions_as_arguments(functions, monkeypatch):
    def half_past_three(f):
        return float(f(3.5))

    check(functions, half_past_three, monkeypatch)


def test_attributes_of_functions(monkeypatch):
    def thing():
        pass

    def attribute(f):
        return getattr(f, "n", 0)

    check([thing, lambda: setattr(thing, "n", 3) or thing, lambda: setattr(thing, "n", 4) or thing],
          attribute, monkeypatch)


def test_named_defaults_of_functions(monkeypatch):
    """Those of one that is handed over, and not called."""

    def thing():
        pass

    def named(f):
        return (f.__kwdefaults__ or {}).get("n", 0)

    def assign(n):
        thing.__kwdefaults__ = n and {"n": n}
        return thing

    check([thing, lambda: assign(3), lambda: assign(4), lambda: assign(None)], named, monkeypatch)


def test_closures_as_arguments(monkeypatch):
    def make(n):
        def add(x):
            return x + n

        return add

    def call(f):
        return f(1)

    check([make(1), make(2), make(1), make(5)], call, monkeypatch)


def test_functions_of_equal_text_and_defaults(monkeypatch):
    """Another closure of the same text: its defaults are equal, what it reads is not."""
    def make(n):
        def add(x, *, y=1):
            return x.n + n + y

        def plus(x, y=1):
            return x.n + n + y

        return add, plus

    class Odd(enum.Enum):
        A = 1
        n = property(lambda self: 5)

    for which in 0, 1:
        for n in 2, 3, 3, 2, 7:
            function = make(n)[which]
            monkeypatch.setitem(globals(), "measure", function)
            monkeypatch.setitem(globals(), "X", Odd.A)
            for _ in range(2):
                a = qd.ndarray(qd.f64, 1)
                uses(a)
                assert a[0] == function(Odd.A)


# ---- members of enums ------------------------------------------------------------------------------


def test_members_of_enums(monkeypatch):
    class Planet(enum.Enum):
        EARTH = 1

        def weight(self):
            return getattr(self, "mass", 0) + self.value

    def weight(p):
        return p.weight()

    def given(name, value):
        setattr(Planet.EARTH, name, value)
        return Planet.EARTH

    def method(result):
        type.__setattr__(Planet, "weight", lambda self: result)
        return Planet.EARTH

    check([Planet.EARTH, lambda: given("mass", 5), lambda: given("mass", 6), lambda: given("_value_", 9),
           lambda: method(40), lambda: method(41), lambda: method(42)], weight, monkeypatch)


def test_members_that_are_containers(monkeypatch):
    class Rows(list, enum.Enum):
        ONE = [1, 2]

    def size(r):
        return len(list.__repr__(r))

    check([Rows.ONE, lambda: list.append(Rows.ONE, 5) or Rows.ONE], size, monkeypatch)


# ---- frozen dataclasses ----------------------------------------------------------------------------


def forced(obj, name, value):
    object.__setattr__(obj, name, value)
    return obj


def test_more_than_the_fields(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Counted:
        n: int
        K: typing.ClassVar[int] = 3
        late: int = dataclasses.field(default=3, init=False)

        def __post_init__(self):
            object.__setattr__(self, "extra", 1)

    def extra(c):
        return c.extra

    one = Counted(2)
    check([one, lambda: forced(one, "extra", 4), lambda: forced(one, "extra", 5)], extra, monkeypatch)


class Table:
    rows = [5]


class Meta(type):
    rate = 2


class Fixed:
    """A descriptor with a number of its own."""

    def __init__(self, n):
        self.n = n

    def __get__(self, obj, cls):
        return self.n


HELD = {
    "a list of a base": (lambda cls: cls.rows[0], lambda c: c.rows.insert(0, 7), lambda c: c.rows.insert(0, 8)),
    "a dict": (lambda cls: cls.named["n"], lambda c: c.named.update(n=7), lambda c: c.named.update(n=8)),
    "a class": (lambda cls: cls.Inner.n, lambda c: setattr(c.Inner, "n", 7), lambda c: setattr(c.Inner, "n", 8)),
    "an object": (lambda cls: cls.made.n, lambda c: setattr(c.made, "n", 7), lambda c: setattr(c.made, "n", 8)),
    "a tuple with a list": (lambda cls: cls.pair[1][0], lambda c: c.pair[1].insert(0, 7),
                            lambda c: c.pair[1].insert(0, 8)),
    "a metaclass": (lambda cls: type(cls).rate, lambda c: setattr(Meta, "rate", 7),
                    lambda c: setattr(Meta, "rate", 8)),
    "a list of a metaclass": (lambda cls: type(cls).rates[0], lambda c: Meta.rates.insert(0, 7),
                              lambda c: Meta.rates.insert(0, 8)),
    "a descriptor": (lambda cls: cls.fixed, lambda c: setattr(vars(c)["fixed"], "n", 7),
                     lambda c: setattr(vars(c)["fixed"], "n", 8)),
    "one of its own": (lambda cls: cls.ZERO.items[0], lambda c: c.ZERO.items.insert(0, 7),
                       lambda c: c.ZERO.items.insert(0, 8)),
}


@pytest.mark.parametrize("name", HELD)
def test_what_a_frozen_class_holds(name, monkeypatch):
    """A frozen dataclass is compared by its members, and what its class holds by the class's version: what
    changes in place beside these has no part in either."""
    monkeypatch.setattr(Table, "rows", [5])
    monkeypatch.setattr(Meta, "rate", 2)
    if name == "a list of a metaclass":
        monkeypatch.setattr(Meta, "rates", [2], raising=False)

    @dataclasses.dataclass(frozen=True)
    class Held(Table, metaclass=Meta):
        x: int
        items: object = ()

        class Inner:
            n = 1

    Held.named, Held.made, Held.pair = {"n": 1}, types.SimpleNamespace(n=1), (1, [2])
    Held.fixed, Held.ZERO = Fixed(3), Held(0, [4])
    keep = {"a class": ("Inner",), "a dict": ("named",), "an object": ("made",), "a tuple with a list": ("pair",),
            "a descriptor": ("fixed",), "one of its own": ("ZERO",)}.get(name, ())
    for other in {"Inner", "named", "made", "pair", "fixed", "ZERO"} - set(keep):
        delattr(Held, other)  # each alone must do
    if name != "a list of a base":
        monkeypatch.setattr(Table, "rows", (5,))
    read, first, second = HELD[name]
    one = Held(1)
    check([one, lambda: (first(Held), one)[1], lambda: (second(Held), one)[1]],
          lambda h: h.x * 100 + read(type(h)), monkeypatch)


def test_what_an_enum_holds(monkeypatch):
    class Scheme(enum.Enum):
        EULER = (1, 2)
        HEUN = [3]

        def order(self):
            return self.weights[0] * 100 + self.value[0] + len(type(self).HEUN.value)

    Scheme.weights = [4]
    check([Scheme.EULER, lambda: Scheme.weights.insert(0, 7) or Scheme.EULER,
           lambda: Scheme.HEUN.value.append(8) or Scheme.EULER,
           lambda: setattr(Scheme, "weights", (9,)) or Scheme.EULER,
           lambda: Scheme.HEUN.value.append(8) or Scheme.EULER], lambda s: s.order(), monkeypatch)


class Kind(enum.Enum):
    A = 1


@pytest.mark.counts("calls")
def test_classes_of_constants_are_not_called_again(monkeypatch):
    """Functions, properties, tuples, objects of its own: nothing that changes in place."""
    @dataclasses.dataclass(frozen=True)
    class Vec:
        x: int
        UNIT: typing.ClassVar[int] = 3
        axes = ("x", "y")

        @property
        def double(self):
            return self.x * 2

        @functools.cached_property
        def slow(self):
            return self.x

        @classmethod
        def make(cls):
            return cls(0)

    @dataclasses.dataclass(frozen=True)
    class Body:
        x: int
        kind: Kind = Kind.A
        at: Vec = Vec(2)

    Vec.ZERO = Vec.make()
    called = []

    def size(v):
        called.append(v)
        return v.x

    for make in lambda: Vec(1), lambda: Body(1):
        check([make()], size, monkeypatch)
        made = len(called)
        check([make()], size, monkeypatch)
        assert len(called) == made + 1  # by Python itself, which it is compared with


@pytest.mark.parametrize("frozen", [False, True])
def test_calls_with_dataclasses(frozen):
    """Members of one that is not frozen can be set, by the function too: the call is made."""

    @dataclasses.dataclass(frozen=frozen)
    class Box:
        n: int = 3

    def number(b):
        return b.n

    box = Box()

    @qd.kernel
    def k(a: A):
        n = qd.static(number(box))
        a[0] = n

    a = qd.ndarray(qd.f64, 1)
    for n in (3, 4, 3):
        object.__setattr__(box, "n", n)
        k(a)
        assert a[0] == n
    assert len(qd.explain(k, launch=True)) == (not frozen)


@pytest.mark.parametrize("name", ["__getattr__", "__getattribute__"])
def test_a_frozen_class_that_answers_by_itself(name, monkeypatch):
    now = [3]

    def answer(self, name):
        return now[0] if name == "more" else object.__getattribute__(self, name)

    def more(box):
        return box.more

    def change(n):
        now[0] = n
        return box

    box = dataclasses.dataclass(frozen=True)(
        type("Box", (), {"n": 1, "__annotations__": {"n": int}, name: answer}))()
    check([box, lambda: change(4), lambda: change(3), lambda: change(5)], more, monkeypatch)


def test_slots_beside_the_fields(monkeypatch):
    class Base:
        __slots__ = ("cache",)

    @dataclasses.dataclass(frozen=True, slots=True)
    class Slotted(Base):
        n: int

    def cache(s):
        return s.cache

    one = forced(Slotted(2), "cache", 3)
    check([one, lambda: forced(one, "cache", 4), lambda: forced(one, "cache", 5)], cache, monkeypatch)


def made(cls, n, *content):
    return forced(cls.__new__(cls, *content), "n", n)


@pytest.mark.parametrize("base, one, other", [(int, 4, 5), (str, "a", "bb"), (tuple, (1,), (2,)), (float, 1.5, 2.5),
                                              (collections.deque, [1], [2, 3]), (list, [1], [2, 3]),
                                              (functools.partial, len, sum)], ids=lambda v: getattr(v, "__name__", ""))
def test_content_of_a_builtin_base(base, one, other, monkeypatch):
    @dataclasses.dataclass(frozen=True, eq=False, repr=False)
    class Both(base):
        n: int

    def content(b):
        return hash(repr(base.__repr__(b))) % 1000

    def make(value):
        both = made(Both, 2, value)
        if base in (list, collections.deque):
            base.extend(both, value)
        return both

    check([make(one), make(other), make(one)], content, monkeypatch)


def test_methods_of_a_frozen_class(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Shape:
        n: int

        def size(self):
            return self.n

    def size(s):
        return s.size()

    def method(k):
        Shape.size = lambda self: self.n * k
        return one

    one = Shape(2)
    check([one, lambda: method(3), lambda: method(4), lambda: method(5)],
          size, monkeypatch)


# ---- NumPy's scalars that are no numbers of a kernel -------------------------------------------------


@pytest.mark.parametrize("one, other", [
    (np.longdouble(1), np.longdouble(1) + np.longdouble(2) ** -62), (np.str_("ab"), np.str_("abc")),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")), (np.complex64(1 + 2j), np.complex64(1 + 3j)),
    (np.bytes_(b"a"), np.bytes_(b"b")), (np.float16(1), np.float16(2))], ids=lambda v: type(v).__name__)
def test_scalars_of_numpy(one, other, monkeypatch):
    def text(x):
        return hash(repr(x)) % 1000

    check([one, other, one], text, monkeypatch)


def test_records_of_numpy(monkeypatch):
    record = np.zeros(1, [("a", "i4")])[0]

    def first(r):
        return int(r["a"])

    def put(n):
        record["a"] = n
        return record

    check([record, lambda: put(5), lambda: put(6)], first, monkeypatch)


def test_derived_scalars_of_numpy(monkeypatch):
    class Measured(np.float64):
        pass

    value = Measured(2.0)
    value.unit = 3

    def unit(x):
        return x.unit

    check([value, lambda: setattr(value, "unit", 4) or value], unit, monkeypatch)


# ---- `in`, and numbers of two kinds ------------------------------------------------------------------

HOLDER, ITEM = None, 5


@qd.kernel
def has(a: A):
    if qd.static(ITEM in HOLDER):
        a[0] = 1


class Odd(list):
    def __contains__(self, item):
        return True


class Turned(list):
    def __iter__(self):
        return iter([5])


@pytest.mark.parametrize("holder", [Odd([1]), Turned([1]), collections.UserList([5]), type("D", (dict,), {
    "__contains__": lambda self, key: True})(a=1)], ids=lambda h: type(h).__name__)
def test_what_says_by_itself_what_is_in_it(holder, monkeypatch):
    monkeypatch.setitem(globals(), "HOLDER", holder)
    with pytest.raises(qd.IngotTypeError, match="operator.contains"):
        has(qd.ndarray(qd.f64, 1))


class Iterated:
    def __iter__(self):
        return iter([1])


@pytest.mark.parametrize("change", ["class", "method"])
def test_contains_of_an_object_that_comes_later(change, monkeypatch):
    """The object stays where it is, in a module that does not change."""
    Plain = type("Plain", (Iterated,), {})
    holder = Plain()
    monkeypatch.setitem(globals(), "HOLDER", holder)
    a = qd.ndarray(qd.f64, 1)
    for _ in range(3):
        has(a)
        assert a[0] == 0
    if change == "class":
        holder.__class__ = type("Own", (Iterated,), {"__contains__": lambda self, item: True})
    else:
        Plain.__contains__ = lambda self, item: True
    for _ in range(2):
        with pytest.raises(qd.IngotTypeError, match="says by itself"):
            has(a)
    holder.__class__ = Iterated
    for _ in range(2):
        has(a)
        assert a[0] == 0


def test_contains_of_a_class_that_comes_later(monkeypatch):
    class Late(list):
        pass

    monkeypatch.setitem(globals(), "HOLDER", Late([1]))
    a = qd.ndarray(qd.f64, 1)
    for _ in range(3):  # from the second one on, guards are skipped where nothing changed
        has(a)
        assert a[0] == 0
    Late.__contains__ = lambda self, item: True
    with pytest.raises(qd.IngotTypeError, match="says by itself"):
        has(a)


@pytest.mark.parametrize("holder", [range(6), range(3), collections.deque([5]), {5: 1}.keys(), {1: 5}.values(), (5.0,)],
                         ids=str)
def test_in_by_comparing_items(holder, monkeypatch):
    monkeypatch.setitem(globals(), "HOLDER", holder)
    a = qd.ndarray(qd.f64, 1)
    has(a)
    assert a[0] == (5 in holder)


LEFT, RIGHT = 0, 0.0


@qd.kernel
def compared(a: A):
    n = qd.static((1 if LEFT == RIGHT else 0) + (2 if LEFT < RIGHT else 0) + (4 if LEFT > RIGHT else 0))
    a[0] = n


@pytest.mark.parametrize("left", [2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 3, -3, True])
@pytest.mark.parametrize("right", [2.0**53, 2.0**63, -(2.0**63), 2.0**64, 3.0, 3.5, -3.5, math.nan, math.inf, -math.inf,
                                   1e300])
def test_integers_and_floats_are_compared_exactly(left, right, monkeypatch):
    for one, other in ((left, right), (right, left)):
        monkeypatch.setitem(globals(), "LEFT", one)
        monkeypatch.setitem(globals(), "RIGHT", other)
        a = qd.ndarray(qd.f64, 1)
        compared(a)
        assert a[0] == (one == other) + 2 * (one < other) + 4 * (one > other)


# ---- text, order and NumPy's numbers ------------------------------------------------------------------


@qd.kernel
def backwards(a: A):
    for v in qd.static(reversed(HOLDER)):
        a[0] = a[0] * 10 + v


def test_what_says_by_itself_how_it_is_reversed(monkeypatch):
    class Turning(list):
        def __reversed__(self):
            return iter([7, 8])

    monkeypatch.setitem(globals(), "HOLDER", Turning([1, 2]))
    with pytest.raises(qd.IngotTypeError, match="says by itself what it is in reverse"):
        backwards(qd.ndarray(qd.f64, 1))
    for holder in (range(1, 4), [3, 4], collections.deque([1, 2]), {1: 2, 3: 4}, type("L", (list,), {})([5, 6])):
        monkeypatch.setitem(globals(), "HOLDER", holder)
        a = qd.ndarray(qd.f64, 1)
        backwards(a)
        assert a[0] == int("".join(map(str, reversed(holder))))


TEXT = None


@qd.kernel
def letters(a: A):
    n = qd.static(len(f"{TEXT}"))
    a[0] = n


@qd.kernel
def quoted(a: A):
    n = qd.static(len(f"{TEXT!r}"))
    a[0] = n


class Shown:
    def __format__(self, how):
        return "shown"


@pytest.mark.parametrize("text", [0.1, 1e16, -3, True, None, "é", 5e-324], ids=repr)
def test_text_of_values(text, monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", text)
    a = qd.ndarray(qd.f64, 1)
    letters(a)
    assert a[0] == len(f"{text}")


@pytest.mark.parametrize("thing", [Shown(), (1,), [1], {"a": 1}, enum.Enum("E", "A").A, len], ids=repr)
def test_things_have_no_text_in_static(thing, monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", thing)
    with pytest.raises(qd.IngotTypeError, match="has no text of its own"):
        letters(qd.ndarray(qd.f64, 1))


def test_conversions_are_refused(monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", "a")
    with pytest.raises(qd.IngotSyntaxError, match="no conversions"):
        quoted(qd.ndarray(qd.f64, 1))


OPERATIONS = ["X + 1", "X * 3", "X - 300", "-X", "~X", "X // 2", "X % 7", "X ** 2", "X / 4", "X + 0.1", "X * 0.5",
              "X << 4", "X == 0.1", "X < 0.3", "X == 16777217", "X * X", "X + Y", "Y - X", "X == Y",
              "(X + 1) * 100", "(X | 1) + 250", "-(-X) + 200", "(X - 1) * 3 + 0.1", "(X + Y) * 50", "(X * 0 + Y * 0) + 200", "sum((X, X, X))"]
SCALARS = [np.int8(100), np.int8(-128), np.uint8(3), np.int32(2**30), np.int64(2**53 + 1), np.uint64(2**63),
           np.float16(0.1), np.float32(0.1), np.float32(16777216), np.float64(0.1), np.float64(2**53), np.bool_(True)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_numbers_of_numpy_are_right_or_refused(operation):
    text = f"def k(a: A):\n    n = qd.static({operation})\n    a[0] = n\n"
    scope = {"A": A, "qd": qd, "X": None, "Y": None}
    exec(text, scope)
    k = qd.kernel(scope["k"], source=text)
    right = 0
    for x in SCALARS:
        for y in SCALARS if "Y" in operation else [None]:
            scope.update(X=x, Y=y)
            a = qd.ndarray(qd.f64, 1)
            try:
                k(a)
            except (qd.IngotError, OverflowError):
                continue
            right += 1
            assert a[0] == float(eval(operation, {"X": x, "Y": y})), (operation, x, y)
    assert right > 2


# ---- the same, or another ------------------------------------------------------------------------------


@qd.func
def are_same(x, y):
    r = 0
    if qd.static(x is y):
        r = 1
    return r


@qd.func
def are_equal(x: qd.template(), y: qd.template()):
    r = 0
    if qd.static(x == y):
        r = 1
    return r


ARRAY = qd.ndarray(qd.f32, 2)


@qd.kernel
def arrays_in_a_func(a: A):
    a[0] = are_same(ARRAY, ARRAY)


@qd.kernel
def equal_arrays(a: A):
    a[0] = are_equal(ARRAY, ARRAY)


@qd.kernel
def own_lists(a: A):
    one = [1]
    other = one
    if qd.static(one is other):
        a[0] = 1


@qd.kernel
def own_dicts(a: A):
    if qd.static({"a": 1} == {"a": 1}):
        a[0] = 1


@pytest.mark.parametrize("kernel", [arrays_in_a_func, equal_arrays, own_lists, own_dicts], ids=lambda k: k.__name__)
def test_what_cannot_be_told_is_refused(kernel):
    with pytest.raises(qd.IngotTypeError, match="cannot be known here"):
        kernel(qd.ndarray(qd.f64, 1))


ONE = OTHER = None


@qd.kernel
def one_is_other(a: A):
    a[0] = 0
    if qd.static(ONE is OTHER):
        a[0] = 1


NAN = float("nan")


@pytest.mark.parametrize("pair", [(1000, int("1000")), (0.5, 0.5), (NAN, NAN), ("ab", "".join("ab")),
                                  (np.int8(3), np.int8(3)), (2**63, 2**63)], ids=str)
def test_identity_of_equal_numbers_is_refused(pair, monkeypatch):
    """Python may have one or two of them."""
    monkeypatch.setattr(sys.modules[__name__], "ONE", pair[0])
    monkeypatch.setattr(sys.modules[__name__], "OTHER", pair[1])
    with pytest.raises(qd.IngotTypeError, match="cannot be known here"):
        one_is_other(qd.ndarray(qd.f64, 1))


@pytest.mark.parametrize("pair", [(5, 5), (5, 6), (True, True), (True, np.True_), (np.True_, np.True_), (1, 1.0),
                                  (1000, 1001), (0.5, NAN), ("a", "b"), (None, 0)], ids=str)
def test_identity_of_numbers(pair, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ONE", pair[0])
    monkeypatch.setattr(sys.modules[__name__], "OTHER", pair[1])
    a = qd.ndarray(qd.f64, 1)
    one_is_other(a)
    assert a[0] == (pair[0] is pair[1])


@qd.kernel
def equal_tuples(a: A):
    if qd.static((1, NAN) == (1, NAN)):
        a[0] = 1


@qd.kernel
def ordered_tuples(a: A):
    if qd.static((NAN, 1) < (NAN, 2)):
        a[0] = 1


@qd.kernel
def in_a_tuple(a: A):
    if qd.static(NAN in (1.0, NAN)):
        a[0] = 1


@qd.kernel
def counted(a: A):
    a[0] = (1.0, NAN).count(NAN)


@pytest.mark.parametrize("kernel", [equal_tuples, ordered_tuples, in_a_tuple, counted], ids=lambda k: k.__name__)
def test_nan_in_containers_is_refused(kernel):
    """There it is equal to itself, if it is that very object."""
    with pytest.raises(qd.IngotValueError, match="NaN in containers"):
        kernel(qd.ndarray(qd.f64, 1))


# ---- enums with operators of their own -------------------------------------------------------------------


@qd.kernel
def enum_operators(a: A):
    a[0] = 1 if qd.static(ONE == OTHER) else 2
    a[1] = 0 + qd.static(ONE + 1)
    a[2] = OTHER * 2


def member_classes():
    class Plain(enum.Enum):
        A, B = 1, 2

    class Number(enum.IntEnum):
        A, B = 1, 2

    class Bits(enum.IntFlag):
        A, B = 1, 2

    return [Plain, Number, Bits]


@pytest.mark.parametrize("method", ["__eq__", "__add__", "__mul__", "__or__", "__int__"])
@pytest.mark.parametrize("which", range(3), ids=["Enum", "IntEnum", "IntFlag"])
def test_operators_that_an_enum_gets_later(which, method, monkeypatch):
    """The members stay, and the modules that name them."""
    cls = member_classes()[which]
    monkeypatch.setattr(sys.modules[__name__], "ONE", cls.A)
    monkeypatch.setattr(sys.modules[__name__], "OTHER", cls.B)
    a = qd.ndarray(qd.f64, 3)
    for _ in range(3):
        enum_operators(a)
        assert a.to_numpy().tolist() == [2, 2, 4]
    kept = cls.__hash__
    setattr(cls, method, lambda self, *other: 70)
    cls.__hash__ = kept
    for _ in range(2):
        with pytest.raises(qd.IngotTypeError):
            enum_operators(a)
    delattr(cls, method)
    a.fill(0)
    for _ in range(2):
        enum_operators(a)
        assert a.to_numpy().tolist() == [2, 2, 4]


@qd.kernel
def inverted(a: A):
    a[0] = 0 + qd.static(~ONE)


@qd.kernel
def inverted_by_python(a: A):
    a[0] = 0 + qd.static(operator.invert(ONE))


@pytest.mark.parametrize("cls", member_classes()[1:], ids=["IntEnum", "IntFlag"])
def test_inverted_members(cls, monkeypatch):
    """Which bits a Flag has is its class's to say."""
    monkeypatch.setattr(sys.modules[__name__], "ONE", cls.A)
    a = qd.ndarray(qd.f64, 1)
    inverted_by_python(a)
    assert a[0] == ~cls.A
    if issubclass(cls, enum.Flag):
        with pytest.raises(qd.IngotTypeError, match="member of a Flag"):
            inverted(a)
    else:
        inverted(a)
        assert a[0] == ~cls.A


def test_functions_that_have_attributes(monkeypatch):
    def counted():
        return counted.n

    counted.n = 3

    @qd.kernel
    def k(a: A):
        n = qd.static(counted())
        a[0] = n

    a = qd.ndarray(qd.f64, 1)
    for counted.n in (3, 4, 3, 5):
        k(a)
        assert a[0] == counted.n
    (why,) = qd.explain(k, launch=True)
    assert why.startswith("counted() is called: ")


@pytest.mark.counts("lowerings")
def test_the_order_of_a_set_means_nothing(monkeypatch):
    def total(items):
        return sum(items)

    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    check([one], total, monkeypatch)
    before = _core.counters()["lowerings"]
    check([other, one], total, monkeypatch)
    assert _core.counters()["lowerings"] == before


# ---- what belongs to a whole ---------------------------------------------------------------------------

ITEMS = []


def launch(kernel):
    a = qd.ndarray(qd.f64, 1)
    kernel(a)
    return a[0]


def with_named_default(*, n=3):
    return n


@qd.kernel
def uses_named_default(a: A):
    n = qd.static(with_named_default())
    a[0] = n


def test_named_defaults_that_are_assigned(monkeypatch):
    assert [launch(uses_named_default) for _ in range(3)] == [3] * 3
    monkeypatch.setattr(with_named_default, "__kwdefaults__", {"n": 4})
    assert launch(uses_named_default) == 4


def with_one_default(n=3):
    return n


@qd.kernel
def uses_one_default(a: A):
    n = qd.static(with_one_default())
    a[0] = n


def test_code_that_is_assigned(monkeypatch):
    def with_another(n=3):
        return n + 10

    assert [launch(uses_one_default) for _ in range(3)] == [3] * 3
    monkeypatch.setattr(with_one_default, "__code__", with_another.__code__)
    assert launch(uses_one_default) == 13


@qd.kernel
def counts_items(a: A):
    n = qd.static(len(ITEMS))
    a[0] = n


@qd.kernel
def adds_items(a: A):
    a[0] = 0
    for x in qd.static(ITEMS):
        a[0] += x + 1


@qd.kernel
def unpacks_items(a: A):
    x, y = ITEMS
    a[0] = 10 * x + y


def test_lengths_that_change(monkeypatch):
    monkeypatch.setitem(globals(), "ITEMS", [1, 2])
    assert (launch(counts_items), launch(adds_items), launch(unpacks_items)) == (2, 5, 12)
    ITEMS[1] = 3
    before = _core.counters()["lowerings"]
    assert launch(counts_items) == 2
    assert _core.settings()["paranoid"] or _core.counters()["lowerings"] == before
    assert (launch(adds_items), launch(unpacks_items)) == (6, 13)
    ITEMS.append(0)
    assert (launch(counts_items), launch(adds_items)) == (3, 7)
    with pytest.raises(qd.IngotError):
        launch(unpacks_items)
    ITEMS.clear()
    assert (launch(counts_items), launch(adds_items)) == (0, 0)


def test_metadata_of_fields(monkeypatch):
    """The metadata of a field are a dict of the user's, which changes in place."""
    units = {"unit": 3}

    @dataclasses.dataclass(frozen=True)
    class Length:
        x: int = dataclasses.field(default=1, metadata=units)

    one = Length(5)
    check([one, lambda: units.update(unit=40) or one, lambda: Length(6)],
          lambda h: dataclasses.fields(h)[0].metadata["unit"] + h.x, monkeypatch)


LENGTH = np.float64(1.5)
PAIR = (LENGTH, 2)


@qd.kernel
def shows(a: A):
    n = qd.static(len(repr(LENGTH)))
    a[0] = n
    m = qd.static(len(str(PAIR)))
    a[1] = m
    o = qd.static(len(repr((1.5, "a", None))))
    a[2] = o


def test_text_follows_the_print_options():
    """What repr makes of a number of NumPy; of Python's own there is one text, which is compiled in."""
    def want():
        return [len(repr(LENGTH)), len(str(PAIR)), len(repr((1.5, "a", None)))]

    a = qd.ndarray(qd.i32, 3)
    shows(a)
    assert a.to_numpy().tolist() == want()
    before = want()
    with np.printoptions(legacy="1.13"):
        shows(a)
        assert a.to_numpy().tolist() == want()
        assert want() != before or np.lib.NumpyVersion(np.__version__) < "2.0.0"
    shows(a)
    assert a.to_numpy().tolist() == want()
