"""What a launch asks once: members of enums and functions of classes stand in what is watched,
and what several funcs read in the same way is read for one of them. Whatever changes any of
these is seen."""

import enum
import gc
import importlib
import sys

import pytest

import ingot as qd


class Kind(enum.IntEnum):
    BOX = 1
    BALL = 2


class Maker:
    def make():
        return 3


class Asks(type):
    pass


class Made(metaclass=Asks):
    def make():
        return 5


@qd.kernel
def kinds() -> qd.i32:
    return Kind.BOX + 10 * qd.static(Kind.BALL == 2)


@qd.kernel
def made() -> qd.i32:
    return qd.static(Maker.make()) + 10 * qd.static(Made.make())


@pytest.fixture(autouse=True)
def target():
    qd.init(arch=qd.cpu)


def swap(cls, name, value):
    """Sets an attribute past Enum's own refusal; gives what undoes it."""
    old = cls.__dict__[name]
    type.__setattr__(cls, name, value)
    return lambda: type.__setattr__(cls, name, old)


def test_a_member_becomes_another():
    assert kinds() == kinds() == 11
    undo = swap(Kind, "BOX", Kind.BALL)
    try:
        assert kinds() == kinds() == 12
    finally:
        undo()
    assert kinds() == kinds() == 11


def test_a_member_becomes_a_number():
    assert kinds() == 11
    undo = swap(Kind, "BOX", 7)
    try:
        assert kinds() == 17
    finally:
        undo()
    assert kinds() == 11


def test_behind_pythons_back():
    assert kinds() == kinds() == 11
    (inside,) = [o for o in gc.get_referents(Kind.__dict__) if type(o) is dict]
    old, inside["BOX"] = inside["BOX"], Kind.BALL
    try:
        sys._clear_type_cache()
        assert kinds() == (12 if Kind.BOX is Kind.BALL else 11)
    finally:
        inside["BOX"] = old
        sys._clear_type_cache()
    assert kinds() == 11


def test_the_class_is_replaced():
    assert kinds() == 11

    class Other(enum.IntEnum):
        BOX = 4
        BALL = 2

    old = globals()["Kind"]
    globals()["Kind"] = Other
    try:
        assert kinds() == kinds() == 14
        type.__setattr__(Other, "BOX", Other.BALL)
        assert kinds() == kinds() == 12
    finally:
        globals()["Kind"] = old
    assert kinds() == 11


def test_functions_of_classes():
    assert made() == made() == 53
    old = Maker.make
    Maker.make = lambda: 4
    try:
        assert made() == 54
    finally:
        Maker.make = old
    assert made() == 53


def test_a_metaclass_has_a_say():
    assert made() == made() == 53
    Asks.make = property(lambda cls: lambda: 6)
    try:
        assert made() == 63
    finally:
        del Asks.make
    assert made() == 53
    Asks.__getattribute__ = lambda cls, name: (lambda: 7) if name == "make" else type.__getattribute__(cls, name)
    try:
        assert made() == 73
    finally:
        del Asks.__getattribute__
    assert made() == 53


class Says(Asks):
    make = property(lambda cls: lambda: 9)


def test_a_class_gets_another_metaclass():
    assert made() == made() == 53
    Made.__class__ = Says
    try:
        assert made() == made() == 93
    finally:
        Made.__class__ = Asks
    assert made() == made() == 53


@pytest.mark.parametrize("way", ["property", "__getattribute__"])
def test_a_metaclass_that_answers_anew(way):
    """A function stands in the class all the time, and is never what the class gives."""
    now = [lambda: 6]
    if way == "property":
        Asks.make = property(lambda cls: now[0])
    else:
        Asks.__getattribute__ = lambda cls, name: now[0] if name == "make" else type.__getattribute__(cls, name)
    try:
        assert made() == made() == 63
        now[0] = lambda: 8
        assert made() == made() == 83
    finally:
        delattr(Asks, "make" if way == "property" else way)


NOW = [3]


class Gives:
    def __get__(self, instance, owner):
        return NOW[0]


Gives.own = Gives()


@qd.kernel
def given() -> qd.i32:
    return Gives.own


def test_an_instance_in_its_own_class_that_answers_anew():
    assert given() == given() == 3
    NOW[0] = 4
    try:
        assert given() == given() == 4
    finally:
        NOW[0] = 3


class Base:
    def make():
        return 1


class Child(Base):
    pass


class Sibling(Base):
    pass


@qd.kernel
def inherited() -> qd.i32:
    return qd.static(Child.make())


def test_a_class_gets_what_it_inherited(monkeypatch):
    assert inherited() == inherited() == 1
    monkeypatch.setattr(Child, "make", lambda: 2, raising=False)
    assert inherited() == inherited() == 2


def test_a_class_is_replaced_by_one_of_the_same_base(monkeypatch):
    assert inherited() == inherited() == 1
    monkeypatch.setitem(globals(), "Child", Sibling)
    assert inherited() == inherited() == 1
    monkeypatch.setattr(Sibling, "make", lambda: 2, raising=False)
    assert inherited() == inherited() == 2


class Counts(enum.IntEnum):
    def __add__(self, other):
        return 100


class Plain(enum.IntEnum):
    ONE = 1


@qd.kernel
def adds() -> qd.i32:
    return Plain.ONE + 1


def test_a_member_gets_another_class():
    assert adds() == adds() == 2
    Plain.ONE.__class__ = Counts
    try:
        with pytest.raises(qd.IngotTypeError):  # it computes by itself
            adds()
    finally:
        Plain.ONE.__class__ = Plain
    assert adds() == 2


# ---- two modules that read the same function ---------------------------------------------------

SOURCE = """
import ingot as qd
from twin_source import state

@qd.func
def scaled(x):
    return x * qd.static(state().scale)
"""

STATE = """
class State:
    scale = 2

here = State()
calls = []

def state():
    calls.append(1)
    return here
"""

KERNEL = """
import ingot as qd
import twin_a, twin_b

@qd.kernel
def both(x: qd.i32) -> qd.i32:
    return twin_a.scaled(x) + 100 * twin_b.scaled(x)
"""


@pytest.fixture
def twins(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"twin_source": STATE, "twin_a": SOURCE, "twin_b": SOURCE, "twin_kernel": KERNEL}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    modules = {name: importlib.import_module(name) for name in files}
    yield modules
    for name in files:
        sys.modules.pop(name, None)


@pytest.mark.counts("calls")
def test_one_call_for_both(twins):
    both, calls = twins["twin_kernel"].both, twins["twin_source"].calls
    for _ in range(3):
        assert both(1) == 202
    calls.clear()
    assert both(1) == 202
    assert len(calls) == 1


def test_what_both_read_changes(twins):
    both, source = twins["twin_kernel"].both, twins["twin_source"]
    for scale in (2, 2, 2, 3, 3, 4, 2):
        source.here.scale = scale
        assert both(1) == 101 * scale


def test_one_of_them_gets_another(twins):
    both, source = twins["twin_kernel"].both, twins["twin_source"]
    for _ in range(3):
        assert both(1) == 202
    scope = {}
    exec(compile(STATE, source.__file__, "exec"), scope)  # the same code, a state of its own
    twins["twin_b"].state = scope["state"]
    scope["here"].scale = 5
    assert both(1) == 502
    assert both(1) == 502
    scope["here"].scale = 6
    assert both(1) == 602
    source.here.scale = 3
    assert both(1) == 603
    twins["twin_b"].state = source.state
    assert both(1) == 303
    source.here.scale = 4
    assert both(1) == 404
    assert both(1) == 404


def test_the_function_gets_other_code(twins):
    both, source = twins["twin_kernel"].both, twins["twin_source"]
    for _ in range(3):
        assert both(1) == 202
    source.other = type("S", (), {"scale": 7})()
    source.state.__code__ = compile("def state():\n    return other\n", "x", "exec").co_consts[0]
    assert both(1) == 707
    assert both(1) == 707


class Thing:
    def __init__(self, n):
        self.n = n


left = right = None


@qd.kernel
def of_two() -> qd.i32:
    return left.n * 10 + right.n


def test_one_object_under_two_names(monkeypatch):
    """Its member is read once for both; when one name gets an equal object, once for each."""
    one, other = Thing(1), Thing(1)
    monkeypatch.setitem(globals(), "left", one)
    monkeypatch.setitem(globals(), "right", one)
    assert of_two() == of_two() == of_two() == 11
    monkeypatch.setitem(globals(), "right", other)
    assert of_two() == of_two() == 11
    other.n = 2
    assert of_two() == 12
    one.n = 3
    assert of_two() == 32
    monkeypatch.setitem(globals(), "left", other)
    assert of_two() == of_two() == 22
    other.n = 4
    assert of_two() == 44
