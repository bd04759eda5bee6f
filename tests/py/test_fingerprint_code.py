"""What code works on counts with its text: an edit of what a function, a callable object or a
step can reach by names and methods is another value; an edit of a class is none of its data."""

import copy
import itertools
import linecache
import operator
import sys
import textwrap
import types

import ingot
import pytest
from ingot import CachedStep, FingerprintError, explain, trace

_files = itertools.count()


@pytest.fixture
def module(monkeypatch):
    """A module of this text, as if its file had been edited between two runs."""

    def load(text, name="edited_code"):
        text = textwrap.dedent(text)
        file = f"<{name} {next(_files)}>"
        monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(True), file))
        mod = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, mod)
        exec(compile(text, file, "exec"), mod.__dict__)
        return mod

    return load


TOOL = """
    import dataclasses, enum, functools

    class Tool:
        def m(self):
            return {edit}
        def n(self):
            return self.m()
        @property
        def p(self):
            return self.m()
    class Derived(Tool):
        pass
    class Holder:
        def __init__(self, inner):
            self.inner = inner
    class Slots:
        __slots__ = ("inner",)
        def __init__(self, inner):
            self.inner = inner
    class Number(int):
        def m(self):
            return {edit}
    class Text(str):
        m = Number.m
    class Reduced:
        def __reduce__(self):
            return int, ()
        def m(self):
            return {edit}
    class Single:
        def __reduce__(self):
            return "single"
        def m(self):
            return {edit}
    class Meta(type):
        def m(cls):
            return {edit}
    class Made(metaclass=Meta):
        pass
    class Colour(enum.Enum):
        RED = 1
        def m(self):
            return {edit}
        @classmethod
        def c(cls):
            return {edit}
    class Scale:
        def __call__(self, x):
            return self.scaled(x)
        def scaled(self, x):
            return x * {edit}
    class Pipeline:
        def __init__(self, tool):
            self.tool = tool
        def __call__(self, x):
            return self.tool.m() * x
    @dataclasses.dataclass
    class Data:
        n: int = 0
        def m(self):
            return {edit}

    class Owner:
        tool = Tool()

    def outer(x):
        return x.m()

    tool, derived, number, text = Tool(), Derived(), Number(3), Text("t")
    reduced, single, colour, data = Reduced(), Single(), Colour.RED, Data(1)
    table = {{"a": [Tool()]}}
    holder, slots, scale = Holder(Tool()), Slots(Tool()), Scale()

    def uses():
        return {uses}
    def with_default(t=Tool()):
        return t.m()
    partial = functools.partial(outer, Tool())
"""
USES = ["tool.m()", "tool.p", "derived.m()", "table['a'][0].m()", "holder.inner.m()",
        "slots.inner.m()", "number.m()", "text.m()", "reduced.m()", "single.m()", "Made.m()",
        "colour.m()", "Colour.RED.m()", "Colour.c()", "data.m()", "scale(2)", "Data().m()",
        "[t.m() for t in (tool, derived)]", "partial()"]


@pytest.mark.parametrize("uses", USES)
def test_what_a_function_reaches(module, uses):
    first = ingot.fingerprint(module(TOOL.format(edit="1", uses=uses)).uses)
    assert ingot.fingerprint(module(TOOL.format(edit="1  # one", uses=uses)).uses) == first
    assert ingot.fingerprint(module(TOOL.format(edit="2", uses=uses)).uses) != first


VALUES = ["m.with_default", "m.partial", "m.tool.m", "m.tool.n", "m.table['a'].index", "m.Owner",
          "m.Derived", "{'s': [m.scale]}", "m.Pipeline(m.tool)", "m.Pipeline(m.Holder([m.Tool()]))",
          "m.Made", "m.Colour"]


@pytest.mark.parametrize("value", VALUES)
def test_code_as_a_value(module, value):
    digests = [ingot.fingerprint(eval(value, {"m": module(TOOL.format(edit=edit, uses=0))}))
               for edit in ("1", "1  # one", "2")]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("value", ["m.Pipeline(m.tool)", "m.partial", "m.tool.p and m.outer"])
def test_steps(module, value, tmp_path):
    keys = []
    for edit in ("1", "2"):
        step = eval(value, {"m": module(TOOL.format(edit=edit, uses=0))})
        keys.append(CachedStep(step).persistent(tmp_path / "c").key(1))
    assert (keys[0] != keys[1]) == ("outer" not in value)


def test_the_configuration_of_a_step(module, tmp_path):
    """Objects inside a step are what it works with, though nothing else says that they are code."""
    keys = []
    for edit in ("1", "2"):
        m = module(TOOL.format(edit=edit, uses="0"))
        step = CachedStep(m.Holder, cache={})  # a class: it has the text
        keys.append(step.key(1))
        step = CachedStep(types.MethodType(m.outer, m.Holder({"t": m.tool})), cache={})
        keys.append(step.key(1))
        step = CachedStep(operator.methodcaller("__eq__", m.tool), cache={})  # of C: no text
        keys.append(step.key(1))
    assert keys[0] == keys[3] and keys[1] != keys[4] and keys[2] != keys[5]


def test_a_step_of_c_is_known_by_value(module):
    m = module(TOOL.format(edit="1", uses="0"))
    one, two = (CachedStep(operator.methodcaller("__eq__", m.tool), cache={}) for _ in "12")
    assert one.key(1) == two.key(1)


@pytest.mark.parametrize("value", ["m.tool", "m.number", "m.data", "m.holder", "m.table", "m.colour"])
def test_methods_are_no_part_of_data(module, value):
    one, two = (ingot.fingerprint(eval(value, {"m": module(TOOL.format(edit=e, uses=0))}))
                for e in "12")
    assert one == two


DATACLASS = """
    import dataclasses
    def items():
        return {edit}
    @dataclasses.dataclass({flags})
    class Options:
        a: int = {default}
        b: list = dataclasses.field(default_factory={factory}{more})
    def uses():
        return Options()
"""


def test_what_a_dataclass_was_told(module):
    base = {"edit": "[1]", "flags": "", "default": "1", "factory": "items", "more": ""}
    others = [{"edit": "[2]"}, {"flags": "frozen=True"}, {"flags": "order=True"},
              {"flags": "eq=False"}, {"flags": "slots=True"}, {"flags": "slots=True", "default": "2"},
              {"default": "2"}, {"factory": "list"}, {"factory": "lambda: [1]"},
              {"factory": "lambda: [2]"}, {"more": ", compare=False"}, {"more": ", kw_only=True"}]
    digests = {ingot.fingerprint(module(DATACLASS.format(**{**base, **o})).uses)
               for o in [{}, *others]}
    assert len(digests) == len(others) + 1
    again = module("    # moved\n\n" + DATACLASS.format(**base))
    assert ingot.fingerprint(again.uses) in digests
    options = (ingot.fingerprint(module(DATACLASS.format(**{**base, **o})).Options(1, b=[]))
               for o in [{}, *others])
    assert len(set(options)) == 1  # what was told about the class is no part of the data


def test_several_lambdas_on_a_line(module):
    """They are told by their columns, which code knows from 3.11 on; before, they are refused."""
    text = DATACLASS.format(edit=1, flags="", default="(lambda: 1)()", factory="list", more="")
    two = text.replace("default_factory=list", "default_factory=[lambda: 1, lambda: 2][{}]")
    if sys.version_info < (3, 11):
        with pytest.raises(FingerprintError, match="no source text"):
            ingot.fingerprint(module(two.format(0)).uses)
        return
    keys = [ingot.fingerprint(module(two.format(k)).uses) for k in (0, 1, 0)]
    assert keys[0] == keys[2] != keys[1]


OPTIONS = {
    "attr": """
        import attr
        @attr.s
        class Options:
            a = attr.ib(factory=lambda: {edit})
        def uses():
            return Options()
    """,
    "pydantic": """
        import pydantic
        class Options(pydantic.BaseModel):
            a: int = pydantic.Field(default_factory=lambda: {edit})
        def uses():
            return Options()
    """,
}


@pytest.mark.parametrize("library", OPTIONS)
def test_what_other_libraries_classes_were_told(module, library):
    pytest.importorskip(library)
    text = OPTIONS[library]
    one, same, two = (ingot.fingerprint(module(text.format(edit=e)).uses) for e in "112")
    assert one == same != two


def test_met_both_ways(module):
    """The same object as data and as what a function names: sharing does not count."""
    m = module(TOOL.format(edit="1", uses="holder.inner.m()"))
    copied = copy.deepcopy(m.holder)
    assert ingot.fingerprint([m.holder, m.uses]) == ingot.fingerprint([copied, m.uses])
    assert ingot.fingerprint([m.uses, m.holder]) == ingot.fingerprint([m.uses, copied])
    assert ingot.fingerprint([m.holder, m.uses]) != ingot.fingerprint([m.uses, m.holder])


def test_through_cycles(module):
    text = """
        class Node:
            def __init__(self):
                self.me = [self]
                self.call = walk
            def m(self):
                return walk() * {edit}
        def walk():
            return node.m()
        node = Node()
    """
    one, same, two = (ingot.fingerprint(module(text.format(edit=e)).walk) for e in "112")
    assert one == same != two
    data = [ingot.fingerprint(module(text.format(edit=e)).node) for e in "12"]
    assert data[0] != data[1]  # it holds a function


def test_refused_with_the_path(module):
    text = """
        import threading
        lock = threading.Lock()
        class Tool:
            def m(self):
                return lock
        tool = Tool()
        def uses():
            return tool.m()
    """
    with pytest.raises(FingerprintError, match=r"^obj\.tool\.m\.__class__\.m\.lock: "):
        ingot.fingerprint(module(text).uses)
    assert ingot.fingerprint(module(text).tool)  # as data it needs no text


def test_explain_and_trace_see_it(module):
    m = module(TOOL.format(edit="1", uses="tool.m()"))

    def local(edit):
        mod = module(f"""
            def make():
                class Local:
                    def m(self):
                        return {edit}
                return Local()
        """, "edited_local")
        return m.Pipeline(mod.make())

    one, two = local(1), local(2)
    (line,) = explain(one, two)
    assert line.startswith("obj.tool.__class__.m")
    assert explain(one, one) == [] and trace(one) != trace(two)
    assert "m: function" in trace(m.uses) and "m: function" not in trace(m.tool)
