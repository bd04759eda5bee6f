"""Where a launch finds the members of an object: hints are compared with what is there, so
nothing that Python allows to be done to an object or its class goes unseen."""

import dataclasses
import sys

import pytest
from conftest import filled

import ingot as qd


@pytest.fixture(autouse=True)
def target():
    qd.init(arch=qd.cpu)


@qd.kernel
def add(s: qd.template(), out: qd.types.ndarray()):
    for i in range(4):
        out[i] = s.a[i] + 10 * s.b[i] + 100 * s.c[i]


def total(s):
    out = filled(0)
    add(s, out)
    return out[0]


class Plain:
    def __init__(self, a=1, b=2, c=3):
        self.a, self.b, self.c = filled(a), filled(b), filled(c)


class Slots:
    __slots__ = ("c", "a", "b", "__weakref__")
    __init__ = Plain.__init__


class Mixed(Slots):  # slots of a base, and a dictionary
    pass


@dataclasses.dataclass(slots=True, frozen=True)
class FrozenSlots:
    a: object
    b: object
    c: object


@dataclasses.dataclass
class Defaults:
    a: object = None
    b: object = None
    c: object = None


class Dictless(tuple):
    """No dictionary of its own; attributes are computed."""

    __slots__ = ()
    a = property(lambda s: s[0])
    b = property(lambda s: s[1])
    c = property(lambda s: s[2])


class Asked:
    def __init__(self, *parts):
        self.parts = dict(zip("abc", parts))

    def __getattr__(self, name):
        try:
            return self.parts[name]
        except KeyError:
            raise AttributeError(name) from None


class Meta(type):
    def __getattribute__(cls, name):
        return super().__getattribute__(name)

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)


class OddMeta(metaclass=Meta):
    __init__ = Plain.__init__


def other_order():
    s = Plain.__new__(Plain)
    s.c, s.x, s.b, s.a = filled(3), 1, filled(2), filled(1)
    return s


def through_dict():
    s = Plain.__new__(Plain)
    s.__dict__ = {"b": filled(2), "zz": 0, "c": filled(3), "a": filled(1)}
    return s


def general_dict():
    s = Plain()
    s.__dict__[5] = "a key that is no name"
    return s


def uninterned():
    s = Plain.__new__(Plain)
    for name, value in zip("abc", (1, 2, 3)):
        s.__dict__["".join([name, ""]).encode().decode()] = filled(value)
    return s


def crowded():
    s = Plain()
    for k in range(1000):
        setattr(s, f"unrelated{k}", k)
    return s


KINDS = {
    "plain": Plain, "slots": Slots, "mixed": Mixed,
    "frozen slots": lambda: FrozenSlots(filled(1), filled(2), filled(3)),
    "defaults": lambda: Defaults(filled(1), filled(2), filled(3)),
    "properties": lambda: Dictless((filled(1), filled(2), filled(3))),
    "getattr": lambda: Asked(filled(1), filled(2), filled(3)),
    "metaclass": OddMeta, "other order": other_order, "own dict": through_dict,
    "general dict": general_dict, "names of one's own": uninterned, "crowded": crowded,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object(kind):
    made = [KINDS[kind]() for _ in range(3)]
    for _ in range(4):
        for s in made:
            assert total(s) == 321


def test_all_kinds_in_turn():
    made = [make() for make in KINDS.values()]
    before = add._variants
    for _ in range(3):
        for s in made:
            assert total(s) == 321
    assert add._variants - before <= 1  # read members agree


def test_an_instance_changes_under_the_hints():
    s = Plain()
    assert [total(s) for _ in range(3)] == [321] * 3
    a = s.a
    del s.a  # and back, now the last of the names
    s.a = a
    assert [total(s) for _ in range(3)] == [321] * 3
    s.a, s.b = s.b, s.a
    assert total(s) == 312
    for k in range(200):  # the table grows and moves
        setattr(s, f"more{k}", k)
    assert [total(s) for _ in range(3)] == [312] * 3
    for k in range(200):
        delattr(s, f"more{k}")
    s.__dict__ = {"c": filled(1), "a": filled(2), "b": filled(3)}
    assert total(s) == 132
    s.__dict__.update(a=filled(4))
    assert total(s) == 134
    s.__dict__["b"].fill(0)
    assert total(s) == 104
    s.__class__ = type("Other", (), {"b": filled(5)})
    assert total(s) == 104  # the instance's own goes first
    del s.b
    assert total(s) == 154
    s.__dict__.clear()
    with pytest.raises(AttributeError, match="'a'"):
        total(s)
    s.__dict__ = Plain().__dict__
    assert total(s) == 321


def test_the_names_of_another_class():
    """Its instances keep theirs in another order; s gets the names of one of them."""

    class Turned:
        def __init__(self):
            self.c, self.b, self.a = filled(4), filled(5), filled(6)

    s = Plain()
    for t in (Turned() for _ in range(3)):
        assert total(t) == 456
    assert [total(s) for _ in range(3)] == [321] * 3
    s.__dict__ = Turned().__dict__
    assert [total(s) for _ in range(3)] == [456] * 3


def test_a_class_changes_under_the_hints():
    class Base:
        pass

    class Own(Base):
        __init__ = Plain.__init__

    s, seven = Own(), filled(7)
    assert [total(s) for _ in range(3)] == [321] * 3
    Base.a = property(lambda self: seven)  # a data descriptor goes before the instance
    assert [total(s) for _ in range(3)] == [327] * 3
    Base.a = filled(8)  # a plain one does not
    assert [total(s) for _ in range(3)] == [321] * 3
    del s.a
    assert [total(s) for _ in range(3)] == [328] * 3
    Base.a = filled(9)
    assert total(s) == 329
    Own.a = filled(6)
    assert total(s) == 326
    Own.__getattribute__ = lambda self, name: seven
    assert total(s) == 777
    del Own.__getattribute__
    assert total(s) == 326
    Own.__bases__ = (Plain,)
    assert total(s) == 326
    s.a = filled(1)
    assert total(s) == 321


def test_slots_change():
    s = Slots()
    assert [total(s) for _ in range(3)] == [321] * 3
    s.b = filled(0)
    assert total(s) == 301
    del s.b
    with pytest.raises(AttributeError, match="'b'"):
        total(s)
    s.b = filled(2)
    assert total(s) == 321
    hidden = Slots.b
    Slots.b = filled(4)  # hides the slot
    try:
        assert total(s) == 341
    finally:
        Slots.b = hidden
    assert total(s) == 321


def test_frozen_is_no_promise():
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        a: object
        b: object
        c: object

    s = Frozen(filled(1), filled(2), filled(3))
    assert [total(s) for _ in range(3)] == [321] * 3
    object.__setattr__(s, "a", filled(5))
    assert total(s) == 325
    s.__dict__["c"] = filled(0)
    assert total(s) == 25
    object.__delattr__(s, "b")
    with pytest.raises(AttributeError, match="'b'"):
        total(s)


def test_a_property_that_moves_the_others():
    class Moving:
        __init__ = Plain.__init__

        @property
        def b(self):
            for k in range(self.__dict__.setdefault("n", 0), self.n + 40):
                self.__dict__[f"k{k}"] = None
            self.n += 40
            a = self.__dict__.pop("a")
            self.a = a
            type(self).count = self.n
            return self.a

        @b.setter
        def b(self, value):
            pass

    s = Moving()
    assert [total(s) for _ in range(6)] == [311] * 6


@pytest.mark.parametrize("where", ["class", "instance"])
def test_a_property_that_changes_what_is_read_after_it(where):
    change, kept, one, nine = [False], [], filled(1), filled(9)

    class Changing:
        __init__ = Plain.__init__

        @property
        def a(self):
            if change[0] and where == "class":
                type(self).c = property(lambda self: nine)
            elif change[0]:
                kept.append(self.__dict__)
                self.__dict__ = {**self.__dict__, "c": nine}
            return one

        @a.setter
        def a(self, value):
            pass

    s = Changing()
    assert [total(s) for _ in range(3)] == [321] * 3
    change[0] = True
    assert [total(s) for _ in range(3)] == [921] * 3


@pytest.mark.counts("reads of members")
def test_a_property_that_becomes_a_slot_of_another_class():
    change, two = [False], filled(2)

    class Becoming:
        __slots__ = ("p", "q", "r", "s")  # one of them lies where Slots has its b
        a, c = filled(1), filled(3)

        def __init__(self):
            self.p, self.q, self.r, self.s = (filled(9) for _ in range(4))

        @property
        def b(self):
            if change[0]:
                type(self).b = Slots.b
                assert self.p[0] == 9  # looked up: the class has a version again
            return two

    s = Becoming()
    assert [total(s) for _ in range(3)] == [321] * 3
    change[0] = True
    assert total(s) == 321
    for _ in range(2):
        with pytest.raises(TypeError, match="doesn't apply"):
            total(s)


def test_a_property_that_gives_what_the_instance_has():
    change, nine = [False], filled(9)

    class Gives(Plain):
        @property
        def c(self):
            return nine if change[0] else self.__dict__["c"]

        @c.setter
        def c(self, value):
            self.__dict__["c"] = value

    s = Gives()
    assert [total(s) for _ in range(3)] == [321] * 3
    change[0] = True
    assert [total(s) for _ in range(3)] == [921] * 3


@pytest.mark.parametrize("name", ["__getattribute__", "__getattr__"])
def test_a_class_that_is_asked_answers_anew(name):
    change, nine = [False], filled(9)

    def answer(self, name):
        return nine if change[0] and name == "c" else object.__getattribute__(self, name)

    s = type("Asking", (Plain,), {name: answer})()
    assert [total(s) for _ in range(3)] == [321] * 3
    change[0] = True
    assert [total(s) for _ in range(3)] == [921 if name == "__getattribute__" else 321] * 3
    del s.c
    assert total(s) == 921


def test_references_of_members():
    s = Plain()
    total(s)
    before = [sys.getrefcount(x) for x in (s, s.a, s.b, Plain)]
    for _ in range(100):
        total(s)
    assert [sys.getrefcount(x) for x in (s, s.a, s.b, Plain)] == before
