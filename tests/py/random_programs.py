"""Random programs for test_fingerprint_edits.py: files whose step reaches numbers in many ways, and
numbers that it does not reach. An edit changes one number, or puts a piece of text in or takes it
out; running the program before and after says whether the step's result can change by it.

In a text, `«n»` stands for the number of site n and `«n?text»` for a text that is there when the
number is odd. `$` in names is the program's own name, `#` the number of the piece.
"""

import random
import re
import sys

from code_programs import CODE
from hard_programs import MORE

# Ways to reach a number: parts of main.py and other files.
#   top    before the step            after   behind it           body   lines in it
#   use    what is added to the sum   param   one more parameter  arg    what the call gives for it
#   files  {name: text}               deco    a decorator of the step
WAYS = {
    "literal": dict(use="«1»"),
    "global": dict(top="G# = «1»", use="G#"),
    "table": dict(top="T# = {'a': [«1»], 'b': 0}", use="T#['a'][0]"),
    "helper": dict(top="def h#():\n    return «1»", use="h#()"),
    "chain": dict(top="def a#():\n    return b#()\ndef b#():\n    return «1» + C#\nC# = «2»", use="a#()"),
    "mutual": dict(top="def a#(n):\n    return «1» if n == 0 else b#(n - 1)\n"
                       "def b#(n):\n    return a#(n) + «2»", use="a#(2)"),
    "module": dict(files={"m#": "def f():\n    return «1»\ndef other():\n    return «-2»"},
                   top="from . import m#", use="m#.f()"),
    "module global": dict(files={"m#": "K = «1»\nL = «-2»"}, top="import $.m#", use="$.m#.K"),
    "from module": dict(files={"m#": "def f():\n    return g()\ndef g():\n    return «1»"},
                        top="from .m# import f as f#", use="f#()"),
    "star": dict(files={"m#": "def star#():\n    return «1»\nunused# = «-2»"},
                 top="from .m# import *", use="star#()"),
    "package": dict(files={"s#/__init__": "from .inner import f", "s#/inner": "def f():\n    return «1»"},
                    top="from .s# import f as f#", use="f#()"),
    "deep module": dict(files={"s#/__init__": "", "s#/d": "def f():\n    return «1»"},
                        top="import $.s#.d", use="$.s#.d.f()"),
    "two modules": dict(files={"m#": "from . import n#\ndef f():\n    return n#.g() + «1»",
                               "n#": "def g():\n    return «2»\ndef h():\n    return «-3»"},
                        top="from . import m#", use="m#.f()"),
    "import inside": dict(files={"m#": "def f():\n    return «1»\ndef g():\n    return «-2»"},
                          body="import $.m# as i#", use="i#.f()"),
    "dotted import inside": dict(files={"m#": "def f():\n    return «1»"},
                                 top="def h#():\n    import $.m#\n    return $.m#.f()", use="h#()"),
    "from import inside": dict(files={"m#": "def f():\n    return «1»\ndef g():\n    return «-2»"},
                               body="from .m# import f as i#", use="i#()"),
    "module import inside": dict(files={"m#": "K = «1»"}, body="from . import m#", use="m#.K"),
    "import inside a helper": dict(files={"m#": "class C:\n    def f(self):\n        return «1»"},
                                   top="def h#():\n    def inner():\n        from $.m# import C\n"
                                       "        return C().f()\n    return inner()", use="h#()"),
    "import if there": dict(files={"m#": "def f():\n    return «1»"},
                            body="try:\n    from .m# import f as i#\nexcept ImportError:\n    i# = None",
                            use="i#()"),
    "import_module": dict(files={"m#": "def f():\n    return «1»"}, top="import importlib",
                          use="importlib.import_module('$.m#').f()"),
    "__import__": dict(files={"/$x#": "def f():\n    return «1»"}, use="__import__('$x#').f()"),
    "which import": dict(files={"m#": "def f():\n    return 1", "n#": "def f():\n    return 2"},
                         top="from .m# import f as f#\n«1?from .n# import f as f#\n»", use="f#()"),
    "annotation": dict(top="class J#:\n    def cost(self):\n        return «1»", param="j#: J#", arg="J#()",
                       use="j#.cost()"),
    "string annotation": dict(top="class J#:\n    def cost(self):\n        return «1»", param="j#: 'J#'",
                              arg="J#()", use="j#.cost()"),
    "generic annotation": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»",
                               param="j#: typing.Optional[list[J#]]", arg="[J#()]", use="j#[0].cost()"),
    "string in a generic": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»",
                                param="j#: \"typing.Dict[str, 'J#']\"", arg="{'a': J#()}", use="j#['a'].cost()"),
    "alias annotation": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»\n"
                                 "A# = typing.Union[J#, None]", param="j#: A#", arg="J#()", use="j#.cost()"),
    "annotation elsewhere": dict(files={"m#": "class J:\n    def cost(self):\n        return «1»"},
                                 top="from . import m#", param="j#: m#.J", arg="m#.J()", use="j#.cost()"),
    "bound of a type": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»\n"
                                "V# = typing.TypeVar('V#', bound=J#)", param="j#: V#", arg="J#()",
                            use="j#.cost()"),
    "new type": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»\n"
                         "N# = typing.NewType('N#', J#)", param="j#: N#", arg="N#(J#())", use="j#.cost()"),
    "annotated": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»",
                      param="j#: typing.Annotated[J#, 'meta']", arg="J#()", use="j#.cost()"),
    "field annotation": dict(top="class J#:\n    def cost(self):\n        return «1»\nclass C#:\n    job: J#\n"
                                 "    def __init__(self, j):\n        self.job = j",
                             param="c#: C#", arg="C#(J#())", use="c#.job.cost()"),
    "field annotation, string": dict(
        top="import dataclasses\nclass J#:\n    def cost(self):\n        return «1»\n@dataclasses.dataclass\n"
            "class C#:\n    job: 'J#'\n    more: \"list[J#] | None\" = None",
        param="c#: C#", arg="C#(J#())", use="c#.job.cost()"),
    "argument of a base": dict(
        top="import typing\nW# = typing.TypeVar('W#')\nclass J#:\n    def cost(self):\n        return «1»\n"
            "class B#(typing.Generic[W#]):\n    pass\nclass C#(B#[J#]):\n    def __init__(self, j):\n"
            "        self.j = j", param="c#: C#", arg="C#(J#())", use="c#.j.cost()"),
    "return annotation": dict(top="class J#:\n    def cost(self):\n        return «1»\nR# = []\n"
                                  "def make#() -> J#:\n    return R#[0]\n", after="R#_ = R#.append(J#())",
                              use="make#().cost()"),
    "local annotation": dict(top="class J#:\n    def cost(self):\n        return «1»", param="j#=None",
                             arg="J#()", body="k#: J# = j#", use="k#.cost()"),
    "default": dict(param="d#=«1»", use="d#"),
    "default object": dict(top="class D#:\n    def __init__(self, n):\n        self.n = n\n    def get(self):\n"
                               "        return self.n + «2»", param="d#=D#(«1»)", use="d#.get()"),
    "default function": dict(param="d#=lambda: «1»", use="d#()"),
    "keyword default": dict(top="def h#(*, k=«1»):\n    return k", use="h#()"),
    "attribute": dict(after="step.k# = «1»", use="step.k#"),
    "attribute of a helper": dict(top="def h#():\n    return h#.k\nh#.k = «1»\ndef o#():\n    return 1\no#.k = «-2»",
                                  use="h#()"),
    "attribute that is a function": dict(top="def h#():\n    return «1»\ndef g#():\n    return 0\ng#.inner = h#",
                                         use="g#.inner()"),
    "attribute that is a lambda": dict(top="def g#():\n    return 0\ng#.inner = lambda: «1»", use="g#.inner()"),
    "decorator": dict(top="def scaled#(k):\n    def deco(f):\n        def w():\n            return f() * k + «2»\n"
                          "        return w\n    return deco\n@scaled#(«1»)\ndef h#():\n    return «3»", use="h#()"),
    "decorator with wraps": dict(
        top="import functools\ndef deco#(f):\n    @functools.wraps(f)\n    def w(*a):\n"
            "        return f(*a) + «1»\n    return w\n@deco#\ndef h#():\n    return «2»", use="h#()"),
    "decorator in or out": dict(top="def twice#(f):\n    def w():\n        return 2 * f() + 1\n    return w\n"
                                    "«1?@twice#\n»def h#():\n    return «2»", use="h#()"),
    "decorated step": dict(
        top="import functools\ndef deco#(f):\n    @functools.wraps(f)\n    def w(*a, **k):\n"
            "        return f(*a, **k) + «1»\n    return w", deco="@deco#", use="0"),
    "decorator that marks": dict(top="def mark#(f):\n    f.mark = «1»\n    return f\n@mark#\ndef h#():\n"
                                     "    return h#.mark", use="h#()"),
    "class as decorator": dict(top="class Deco#:\n    def __init__(self, f):\n        self.f = f\n"
                                   "    def __call__(self):\n        return self.f() + «1»\n@Deco#\ndef h#():\n"
                                   "    return «2»", use="h#()"),
    "__wrapped__": dict(top="import functools\ndef deco#(f):\n    @functools.wraps(f)\n    def w():\n"
                            "        return w.__wrapped__() + 1\n    return w\n@deco#\ndef h#():\n    return «1»",
                        use="h#()"),
    "lru_cache": dict(top="import functools\n@functools.lru_cache\ndef h#():\n    return «1»", use="h#()"),
    "lru_cache of a partial": dict(top="import functools\ndef g#(n):\n    return n + «1»\n"
                                       "h# = functools.lru_cache(functools.partial(g#, «2»))\n"
                                       "h#.__module__, h#.__qualname__ = __name__, 'h#'", use="h#()"),
    "partial": dict(top="import functools\ndef h#(a, b):\n    return a * 3 + b + «1»\n"
                        "p# = functools.partial(h#, «2», b=«3»)", use="p#()"),
    "partialmethod": dict(top="import functools\nclass P#:\n    def f(self, k):\n        return k + «1»\n"
                              "    g = functools.partialmethod(f, «2»)\np# = P#()", use="p#.g()"),
    "singledispatch": dict(top="import functools\n@functools.singledispatch\ndef h#(x):\n    return «1»\n"
                               "@h#.register\ndef _(x: int):\n    return «2»\n@h#.register(str)\ndef _(x):\n"
                               "    return «3»", use="h#(1) + h#('a') + h#(1.5)"),
    "registered or not": dict(top="import functools\n@functools.singledispatch\ndef h#(x):\n    return 1\n"
                                  "«1?@h#.register\ndef _(x: int):\n    return 2\n»", use="h#(1)"),
    "registered in another module": dict(
        files={"m#": "from .n# import h\n@h.register\ndef _(x: int):\n    return «1»",
               "n#": "import functools\n@functools.singledispatch\ndef h(x):\n    return «2»"},
        top="from . import m#\nfrom .n# import h as h#", use="h#(1) + h#('a')"),
    "singledispatchmethod": dict(
        top="import functools\nclass D#:\n    @functools.singledispatchmethod\n    def f(self, x):\n"
            "        return «1»\n    @f.register\n    def _(self, x: int):\n        return «2»\nd# = D#()",
        use="d#.f(1) + d#.f('a')"),
    "vectorize": dict(needs="numpy", top="import numpy\n@numpy.vectorize\ndef h#(a):\n    return a + «1»",
                      use="int(h#([1, 2]).sum())"),
    "vectorize options": dict(needs="numpy", top="import numpy\ndef g#(a, b):\n    return a * b + «1»\n"
                              "h# = numpy.vectorize(g#, excluded={'b'})", use="int(h#([1, 2], b=«2»).sum())"),
    "context manager": dict(top="import contextlib\n@contextlib.contextmanager\ndef h#():\n    yield «1»",
                            body="with h#() as v#:\n    pass", use="v#"),
    "context manager method": dict(top="import contextlib\nclass C#:\n    @contextlib.contextmanager\n"
                                       "    def h(self):\n        yield «1»\nc# = C#()",
                                   body="with c#.h() as v#:\n    pass", use="v#"),
    "method": dict(top="class C#:\n    def f(self):\n        return «1»\nc# = C#()", use="c#.f()"),
    "property": dict(top="class C#:\n    @property\n    def f(self):\n        return «1»\nc# = C#()", use="c#.f"),
    "cached property": dict(top="import functools\nclass C#:\n    @functools.cached_property\n    def f(self):\n"
                                "        return «1»\nc# = C#()", use="c#.f"),
    "static and class methods": dict(
        top="class C#:\n    k = «3»\n    @staticmethod\n    def s():\n        return «1»\n    @classmethod\n"
            "    def c(cls):\n        return cls.k + «2»", use="C#.s() + C#.c()"),
    "static partial": dict(top="import functools\ndef g#(a):\n    return a + «2»\nclass C#:\n"
                               "    s = staticmethod(functools.partial(g#, «1»))", use="C#.s()"),
    "__class_getitem__": dict(top="class C#:\n    def __class_getitem__(cls, k):\n        return k + «1»", use="C#[1]"),
    "__init_subclass__": dict(top="class B#:\n    def __init_subclass__(cls):\n        cls.k = «1»\n"
                                  "class C#(B#):\n    pass", use="C#.k"),
    "dunder constant": dict(top="class C#:\n    __version__ = «1»\n    __slots__ = ()", use="C#.__version__"),
    "nested class": dict(top="class C#:\n    class D:\n        k = «1»\n        def f(self):\n            return «2»",
                         use="C#.D.k + C#.D().f()"),
    "metaclass": dict(top="class M#(type):\n    def f(cls):\n        return «1»\nclass C#(metaclass=M#):\n    pass",
                      use="C#.f()"),
    "enum": dict(top="import enum\nclass E#(enum.Enum):\n    A = «1»\n    B = -1\n    def f(self):\n"
                     "        return self.value + «2»", use="E#.A.f()"),
    "enum with functions": dict(top="import enum, functools\ndef g#():\n    return «1»\nclass E#(enum.Enum):\n"
                                    "    A = (functools.partial(g#),)", use="E#.A.value[0]()"),
    "base class": dict(files={"m#": "class B:\n    def f(self):\n        return «1»"},
                       top="from .m# import B as B#\nclass C#(B#):\n    def f(self):\n"
                           "        return super().f() + «2»\nc# = C#()", use="c#.f()"),
    "overridden or not": dict(top="class B#:\n    def f(self):\n        return 5\nclass C#(B#):\n    x = 1\n"
                                  "«1?    def f(self):\n        return 6\n»\nc# = C#()", use="c#.f()"),
    "closure": dict(top="def make#(k):\n    def inner():\n        return k + «1»\n    return inner", use="make#(«2»)()"),
    "closure kept": dict(top="def make#(k):\n    def inner():\n        return k + «1»\n    def outer():\n"
                             "        return inner()\n    outer.__qualname__ = 'h#'\n    return outer\n"
                             "h# = make#(«2»)", use="h#()"),
    "data file": dict(top="import ingot, pathlib\nF# = ingot.File(pathlib.Path(__file__).parent / 'd#.txt')",
                      files={"d#.txt": "«1»", "o#.txt": "«-2»"}, use="int(open(F#).read())"),
    "data file as attribute": dict(top="import ingot, pathlib\nP# = pathlib.Path(__file__).parent",
                                   after="step.reads# = ingot.File(P# / 'd#.txt')",
                                   files={"d#.txt": "«1»"}, use="int(open(step.reads#).read())"),
    "library's name": dict(files={"/%": "def f():\n    return «1»\ndef g():\n    return «-2»"},
                           top="import %", use="%.f()"),
    "library's name inside": dict(files={"/%": "def f():\n    return «1»"}, body="import %", use="%.f()"),
    "globals()": dict(top="G# = «1»", use="globals()['G#']"),
    "getattr of a module": dict(files={"m#": "def f():\n    return «1»"}, top="from . import m#",
                                use="getattr(m#, 'f')()"),
    "module of modules": dict(files={"m#": "from .n# import g\ndef f():\n    return g()",
                                     "n#": "def g():\n    return «1»\ndef u():\n    return «-2»"},
                              top="from . import m#", use="getattr(m#, 'f')()"),
    "module __getattr__": dict(files={"m#": "def __getattr__(name):\n    if name == 'k':\n        return «1»\n"
                                            "    raise AttributeError(name)"},
                               top="from . import m#", use="m#.k"),
    "patched library": dict(alone=True, top="import json\ndef cost#(self):\n    return «1»\njson.JSONEncoder.cost# = cost#\n"
                                "E# = json.JSONEncoder", use="E#().cost#()"),
    "patched builtin": dict(top="import builtins\ndef cost$#():\n    return «1»\nbuiltins.b$# = cost$#",
                            use="b$#()"),
    "state": dict(top="class C#:\n    def __init__(self, k):\n        self.k = k\nc# = C#(«1»)\nu# = C#(«-2»)",
                  use="c#.k"),
    "state in slots": dict(top="class C#:\n    __slots__ = ('k',)\nc# = C#()\nc#.k = «1»", use="c#.k"),
    "method in a table": dict(top="def h#():\n    return «1»\nclass C#:\n    def f(self):\n        return «2»\n"
                                  "T# = {'h': h#, 'c': [C#().f]}", use="T#['h']() + T#['c'][0]()"),
    "class in a table": dict(top="class C#:\n    def f(self):\n        return «1»\nT# = [C#]", use="T#[0]().f()"),
    "operator": dict(top="import operator\nclass C#:\n    def f(self, k):\n        return k + «1»\n"
                         "o# = operator.methodcaller('f', «2»)", use="o#(C#())"),
    "generator": dict(top="def h#():\n    yield from g#()\ndef g#():\n    yield «1»", use="sum(h#())"),
    "coroutine": dict(top="import asyncio\nasync def h#():\n    return «1»", use="asyncio.run(h#())"),
    "comprehension": dict(top="K# = «1»\ndef h#(x):\n    return x + K#", use="sum([h#(i) for i in (1, 2)])"),
    "nested function": dict(top="def h#():\n    return «1»", body="def n#():\n    return h#() + «2»", use="n#()"),
    "lambda in the body": dict(top="def h#():\n    return «1»", use="(lambda: h#())()"),
    "class in the body": dict(top="def h#():\n    return «1»",
                              body="class N#:\n    k = 1\n    j = k + «2»\n    def f(self):\n        return h#() + self.j",
                              use="N#().f()"),
    "dataclass": dict(top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n    a: int = «1»\n"
                          "    b: list = dataclasses.field(default_factory=lambda: [«2»])\n"
                          "    def f(self):\n        return self.a + self.b[0]", use="C#().f()"),
    "dataclass flag": dict(top="import dataclasses\n@dataclasses.dataclass(eq=«1?True or »False)\nclass C#:\n"
                               "    a: int = 1", use="int(C#() == C#())"),
    "named tuple": dict(top="import typing\nclass C#(typing.NamedTuple):\n    a: int = «1»\n    def f(self):\n"
                            "        return self.a + «2»\nc# = C#()", use="c#.f()"),
    "namedtuple": dict(top="import collections\nC# = collections.namedtuple('C#', 'a', defaults=[0])\n"
                           "c# = C#(«1»)", use="c#.a"),
    "descriptor": dict(top="class D#:\n    def __init__(self, func):\n        self.func = func\n"
                           "    def __get__(self, obj, cls):\n        return self.func(obj) + «1»\nclass C#:\n"
                           "    @D#\n    def f(self):\n        return «2»\nc# = C#()", use="c#.f"),
    "property subclass": dict(top="class D#(property):\n    def __get__(self, obj, cls=None):\n"
                                  "        return super().__get__(obj, cls) + «1»\nclass C#:\n    @D#\n"
                                  "    def f(self):\n        return «2»\nc# = C#()", use="c#.f"),
    "virtual subclass": dict(top="import abc\nclass A#(abc.ABC):\n    pass\nclass C#:\n    pass\n"
                                 "«1?A#.register(C#)\n»", use="int(isinstance(C#(), A#))"),
    "__instancecheck__": dict(top="class M#(type):\n    def __instancecheck__(cls, x):\n        return «1?not »False\n"
                                  "class A#(metaclass=M#):\n    pass", use="int(isinstance(1, A#))"),
    "exception": dict(top="class X#(Exception):\n    code = «1»",
                      body="try:\n    raise X#\nexcept X# as e:\n    v# = e.code", use="v#"),
    "pattern": dict(top="class P#:\n    __match_args__ = ('k',)\n    def __init__(self, k):\n        self.k = k + «1»\n",
                    body="match P#(«2»):\n    case P#(k):\n        v# = k", use="v#"),
    "operator of a class": dict(top="class C#:\n    def __add__(self, o):\n        return «1»\n    __radd__ = __add__\n"
                                    "c# = C#()", use="(c# + 1) + (1 + c#)"),
    "library function": dict(top="import math\nh# = [math.floor, math.ceil][«1?not »False]", use="h#(1.5)"),
    "library function as method": dict(top="import textwrap, json\nclass C#:\n"
                                           "    f = staticmethod([textwrap.dedent, json.dumps][«1?not »False])",
                                       use="len(C#.f('a'))"),
    "set": dict(top="X# = {«1», «2», 1000}", use="sum(X#)"),
    "array": dict(needs="numpy", top="import numpy\nA# = numpy.arange(10)[::2] * «1» + «2»", use="int(A#.sum())"),
    "type checking": dict(files={"m#": "class J:\n    def cost(self):\n        return «1»"},
                          top="import typing\nif typing.TYPE_CHECKING:\n    from .m# import J as J#",
                          param="j#: 'J#'", arg="__import__('$.m#', fromlist=['J']).J()", use="j#.cost()"),
    "type checking of a field": dict(
        files={"m#": "class J:\n    def cost(self):\n        return «1»"},
        top="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import m#\nclass C#:\n    j: 'm#.J'\n"
            "    def __init__(self, j):\n        self.j = j",
        param="c#: C#", arg="C#(__import__('$.m#', fromlist=['J']).J())", use="c#.j.cost()"),
    "two imports of a name": dict(
        files={"m#": "def f():\n    return «1»", "n#": "def f():\n    return «2»"},
        body="from .m# import f as i#\nk# = i#()\nfrom .n# import f as i#", use="k# + i#()"),
    "two submodules": dict(
        files={"s#/__init__": "", "s#/a": "def f():\n    return «1»", "s#/b": "def f():\n    return «2»"},
        top="def h#():\n    import $.s#.a\n    import $.s#.b\n    return $.s#.a.f() + $.s#.b.f()", use="h#()"),
    "no such module": dict(files={"m#": "def f():\n    return «1»"},
                           body="try:\n    import missing#$ as i#\nexcept ImportError:\n    from . import m# as i#",
                           use="i#.f()"),
    "subclasses": dict(top="class B#:\n    pass\nclass C#(B#):\n    def f(self):\n        return «1»\n"
                           "class D#(C#):\n    def f(self):\n        return «2»",
                       use="sum(c().f() for c in B#.__subclasses__()) + sum(c().f() for c in C#.__subclasses__())"),
    "registered by subclassing": dict(
        top="R# = {}\nclass B#:\n    def __init_subclass__(cls):\n        R#[cls.__name__] = cls\n"
            "class C#(B#):\n    def f(self):\n        return «1»", use="R#['C#']().f()"),
    "module __dict__": dict(files={"m#": "def f():\n    return «1»"}, top="from . import m#",
                            use="m#.__dict__['f']()"),
    "enum __new__": dict(top="import enum\nclass E#(enum.Enum):\n    A = 1\n    def __new__(cls, v):\n"
                             "        self = object.__new__(cls)\n        self._value_ = v\n        self.k = «1»\n"
                             "        return self", use="E#.A.k"),
    "field metadata": dict(top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n"
                               "    a: int = dataclasses.field(default=1, metadata={'k': «1»})",
                           use="dataclasses.fields(C#)[0].metadata['k']"),
    "cached step in a step": dict(top="import ingot\n@ingot.CachedStep\ndef h#(x):\n    return x + «1»", use="h#(1)"),
    "lambda": dict(top="h# = lambda: «1»", use="h#()"),
    "code exchanged": dict(top="def h#():\n    return 0\ndef g#():\n    return «1»\nh#.__code__ = g#.__code__",
                           use="h#()"),
    "defaults exchanged": dict(top="def h#(k=0):\n    return k\nh#.__defaults__ = («1»,)", use="h#()"),
    "import in a method": dict(files={"m#": "def f():\n    return «1»"},
                               top="class C#:\n    def f(self):\n        from .m# import f\n        return f()\nc# = C#()",
                               use="c#.f()"),
    "function in a slot of a class": dict(top="def h#(self):\n    return «1»\nclass C#:\n    pass\nC#.f = h#\n",
                                          use="C#().f()"),
    "method put on an object": dict(top="import types\ndef h#(self):\n    return «1»\nclass C#:\n    pass\n"
                                        "c# = C#()\nc#.f = types.MethodType(h#, c#)", use="c#.f()"),
    "__getattr__": dict(top="class C#:\n    def __getattr__(self, name):\n        return «1»\nc# = C#()", use="c#.any"),
    "attrs": dict(needs="attr", top="import attr\n@attr.s(auto_attribs=True, slots=True)\nclass C#:\n    a: int = «1»\n"
                  "    def f(self):\n        return self.a + «2»", use="C#().f()"),
    "pydantic": dict(needs="pydantic", top="import pydantic\nclass C#(pydantic.BaseModel):\n    a: int = «1»\n"
                     "    def f(self):\n        return self.a + «2»", use="C#().f()"),
    "chain of wrappers": dict(top="import functools\ndef one#(f):\n    @functools.wraps(f)\n    def w(*a):\n"
                                  "        return f(*a) + «1»\n    return w\n@one#\n@functools.lru_cache\n@one#\n"
                                  "def h#(x):\n    return x + «2»", use="h#(1)"),
    "sorted by a key": dict(top="def k#(x):\n    return x * (-1 if «1» & 1 else 1)", use="sorted([1, 2], key=k#)[0]"),
    "type of a parameter": dict(top="class J#:\n    @classmethod\n    def make(cls):\n        return cls()\n"
                                    "    def cost(self):\n        return «1»", param="j#: type[J#]", arg="J#",
                                use="j#.make().cost()"),
}
COMMON = tuple(WAYS)
WAYS.update(MORE)
WAYS.update(CODE)


def fits(way, have):
    """Can this Python, with these libraries, run it?"""
    return way.get("needs", "") in ("", *have) and sys.version_info >= way.get("since", (3, 10))


# Names of modules of the standard library that nothing here uses.
LIBRARY = ["profile", "sched", "colorsys", "wave", "cmd", "tabnanny", "pyclbr", "cProfile", "timeit", "sndhdr",
           "chunk", "mailcap", "xdrlib", "nntplib", "telnetlib", "mailbox", "plistlib", "netrc", "rlcompleter",
           "trace", "turtle", "wsgiref", "xmlrpc", "zipapp", "imaplib"]

SHAPES = ["step", "step", "Runner(«80»).run", "Runner(«80»)", "functools.partial(held, «80»)"]
STEP = '''{future}"""A program."""
import functools
{top}

{deco}
def step(x{params}):
    """Adds up. «-90»"""
    total = x  # «-91»
{body}
    return total

{after}

def unreached():
    return «-92»
unreached.k = «-93»
class Unreached:
    def f(self):
        return «-94»
UNREACHED = «-95»
{blank}

def call():
    return step(10{args})

class Runner:
    """The step as a method, as an object, as a partial."""
    def __init__(self, k):
        self.k = k
    def run(self, *a, **k):
        return step(*a, **k) + self.k + «81»
    def __call__(self, *a, **k):
        return self.run(*a, **k)

def held(k, *a, **b):
    return step(*a, **b) + k
target = {shape}
'''


class Program:
    """Texts with sites, and the numbers at them."""

    def __init__(self, name, seed, library, have=(), ways=None):
        self.name, self.random = name, random.Random(seed)
        self.sites, self.files, self.ways = {}, {}, []
        self._library = library
        self._build(ways or self._choose(have))
        self.values = {site: self.random.randrange(1, 10**6) for site in self.sites}

    def _choose(self, have):
        good = [w for w, parts in WAYS.items()
                if fits(parts, have) and not parts.get("refused") and not parts.get("alone")]
        return [self.random.choice(good) for _ in range(self.random.randint(2, 5))]

    def _build(self, ways):
        parts = {key: [] for key in ("top", "body", "after", "params", "args", "deco")}
        for n, way in enumerate(ways):
            named = "library's name" in way
            if named and not self._library:
                continue
            module = self._library.pop() if named else ""
            self.ways.append(way)
            self._add(WAYS[way], n, module, parts)
        fill = {"top": "\n".join(parts["top"]), "after": "\n".join(parts["after"]),
                "deco": "\n".join(parts["deco"]), "params": "".join(sorted(parts["params"], key=lambda p: "=" in p)),
                "shape": self.random.choice(SHAPES), "args": "".join(parts["args"]), "body": "\n".join(parts["body"]), "blank": "«-96?\n»",
                "future": self.random.choice(["", "from __future__ import annotations\n"])}
        text = STEP
        for key, value in fill.items():
            text = text.replace("{" + key + "}", value)
        self.files["main.py"] = self._number(text, 90)
        self.files["unused.py"] = self._number("def f():\n    return «-97»\n", 90)
        self.files.setdefault("__init__.py", "")

    def _add(self, way, n, module, parts):
        def fix(text):
            text = text.replace("$", self.name).replace("#", str(n)).replace("%", module)
            return self._number(text, n)

        for key in ("top", "after", "deco"):
            if key in way:
                parts[key].append(fix(way[key]))
        if "param" in way:
            parts["params"].append(", " + fix(way["param"]))
        if "arg" in way:
            name = fix(way["param"]).partition(":")[0].partition("=")[0].strip()
            parts["args"].append(f", {name}={fix(way['arg'])}")
        lines = fix(way["body"]).split("\n") if "body" in way else []
        lines.append(f"total += {n + 2} * ({fix(way['use'])})")
        parts["body"].append("\n".join(["    " + line for line in lines]))
        for name, text in way.get("files", {}).items():
            name = name.replace("$", self.name).replace("#", str(n)).replace("%", module)
            self.files[name if name.endswith(".txt") else name + ".py"] = fix(text)

    def _number(self, text, n):
        """Makes the numbers of sites the program's own: whether one is reached is in its name."""

        def site(found):
            k = int(found[1])
            kind = "u" if k < 0 else "r" if n < 90 else "s"  # s: reached or not, by the shape
            name = f"{kind}{n}_{abs(k)}"
            self.sites[name] = True
            return f"«{name}"

        return re.sub(r"«(-?\d+)", site, text)

    def edit(self, which=None):
        """Changes one site, the given or a random one; its name."""
        sites = sorted(self.sites)
        site = self.random.choice(sites) if which is None else sites[which]
        self.values[site] += self.random.choice([1, 3, 5])
        return site

    def render(self):
        """{name below the folder of all programs: text}"""
        out = {}
        for name, text in self.files.items():
            path = name[1:] if name.startswith("/") else f"{self.name}/{name}"
            out[path] = re.sub(r"«(\w+)(?:\?([^»]*))?»", self._value, text)
        return out

    def _value(self, found):
        value = self.values[found[1]]
        return str(value) if found[2] is None else found[2] if value % 2 else ""
