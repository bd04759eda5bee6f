"""More programs for test_fingerprint_edits.py, in the form of random_programs.py: kinds of code that
nobody had in mind when the rules were written. `refused`: the step is refused, since what it reaches
cannot be followed; `since`: the first Python that has it, or that can tell it; `alone`: it changes what
other programs of the process share, so that their keys may change too.
"""

MORE = {
    "decorated class": dict(top="def deco#(c):\n    c.k = «1»\n    return c\n@deco#\nclass C#:\n    def f(self):\n"
        "        return self.k + «2»", use="C#().f()"),
    "class replaced by decorator": dict(
        top="def deco#(c):\n    class W(c):\n        def f(self):\n            return super().f() + «1»\n"
        "    return W\n@deco#\nclass C#:\n    def f(self):\n        return «2»", use="C#().f()"),
    "class decorator adds method": dict(
        top="def h#(self):\n    return «1»\ndef deco#(c):\n    c.g = h#\n    return c\n@deco#\nclass C#:\n    pass",
        use="C#().g()"),
    "metaclass __call__": dict(
        top="class M#(type):\n    def __call__(cls, *a):\n        o = super().__call__(*a)\n        o.k = «1»\n"
        "        return o\nclass C#(metaclass=M#):\n    pass", use="C#().k"),
    "metaclass __new__": dict(top="class M#(type):\n    def __new__(m, n, b, d):\n        d['k'] = «1»\n"
        "        return super().__new__(m, n, b, d)\nclass C#(metaclass=M#):\n    pass", use="C#.k"),
    "metaclass property": dict(
        top="class M#(type):\n    @property\n    def k(cls):\n        return «1»\nclass C#(metaclass=M#):\n    pass",
        use="C#.k"),
    "metaclass __getattr__": dict(
        top="class M#(type):\n    def __getattr__(cls, n):\n        return «1»\nclass C#(metaclass=M#):\n    pass",
        use="C#.anything"),
    "metaclass __prepare__": dict(
        top="class M#(type):\n    @classmethod\n    def __prepare__(m, n, b):\n        return {'k': «1»}\n"
        "class C#(metaclass=M#):\n    j = k + 1", use="C#.j"),
    "metaclass of base": dict(
        top="class M#(type):\n    def f(cls):\n        return «1»\nclass B#(metaclass=M#):\n    pass\n"
        "class C#(B#):\n    pass", use="C#.f()"),
    "metaclass __iter__": dict(
        top="class M#(type):\n    def __iter__(cls):\n        yield «1»\nclass C#(metaclass=M#):\n    pass",
        use="sum(C#)"),
    "metaclass attribute": dict(top="class M#(type):\n    k = «1»\nclass C#(metaclass=M#):\n    pass",
        use="type(C#).k"),
    "metaclass in other file": dict(files={
        "m#": "class M(type):\n    def f(cls):\n        return g()\ndef g():\n    return «1»", },
        top="from .m# import M as M#\nclass C#(metaclass=M#):\n    pass", use="C#.f()"),
    "__init_subclass__ with kwargs": dict(
        top="class B#:\n    def __init_subclass__(cls, k=0, **kw):\n        super().__init_subclass__(**kw)\n"
        "        cls.k = k\nclass C#(B#, k=«1»):\n    pass", use="C#.k"),
    "__init_subclass__ closure": dict(
        top="class B#:\n    def __init_subclass__(cls):\n        def f(self):\n            return «1»\n"
        "        cls.f = f\nclass C#(B#):\n    pass", use="C#().f()"),
    "__class_getitem__ subclass": dict(
        top="class B#:\n    def __class_getitem__(cls, k):\n        return type('X', (cls,), {'k': k})\n"
        "    def f(self):\n        return self.k + «1»\nD# = B#[«2»]", use="D#().f()"),
    "__set_name__": dict(top="class D#:\n    def __set_name__(self, o, n):\n        self.n = len(n) + «1»\n"
        "    def __get__(self, o, c):\n        return self.n\nclass C#:\n    abc = D#()", use="C#().abc"),
    "data descriptor": dict(
        top="class D#:\n    def __init__(self, k):\n        self.k = k\n    def __get__(self, o, c):\n"
        "        return o._v + self.k\n    def __set__(self, o, v):\n        o._v = v + «1»\nclass C#:\n"
        "    x = D#(«2»)\n    def __init__(self):\n        self.x = 5", use="C#().x"),
    "descriptor in slots": dict(
        top="class D#:\n    __slots__ = ('k',)\n    def __init__(self, k):\n        self.k = k\n"
        "    def __get__(self, o, c):\n        return self.k\nclass C#:\n    x = D#(«1»)", use="C#().x"),
    "descriptor with lambda": dict(
        top="class D#:\n    def __init__(self, f):\n        self.f = f\n    def __get__(self, o, c):\n"
        "        return self.f()\nclass C#:\n    x = D#(lambda: «1»)", use="C#().x"),
    "partialmethod keyword": dict(
        top="import functools\nclass C#:\n    def f(self, *, k, j=«1»):\n        return k * 3 + j\n"
        "    g = functools.partialmethod(f, k=«2»)", use="C#().g()"),
    "partialmethod of partialmethod": dict(
        top="import functools\nclass C#:\n    def f(self, a, b):\n        return a * 3 + b\n"
        "    g = functools.partialmethod(f, «1»)\n    h = functools.partialmethod(g, «2»)", use="C#().h()"),
    "partialmethod of lambda": dict(
        top="import functools\nclass C#:\n    g = functools.partialmethod(lambda self, a: a + «2», «1»)",
        use="C#().g()"),
    "property setter": dict(
        top="class C#:\n    @property\n    def x(self):\n        return self._x\n    @x.setter\n"
        "    def x(self, v):\n        self._x = v + «1»\n", body="c# = C#()\nc#.x = 2", use="c#.x"),
    "property deleter": dict(
        top="class C#:\n    @property\n    def x(self):\n        return self._x\n    @x.deleter\n    def x(self):\n"
        "        self._x = «1»\n", body="c# = C#()\ndel c#.x", use="c#.x"),
    "property of partial": dict(top="import functools\ndef g#(k, self):\n    return k + «1»\nclass C#:\n"
        "    x = property(functools.partial(g#, «2»))", use="C#().x"),
    "property of lambda": dict(top="class C#:\n    x = property(lambda self: «1»)", use="C#().x"),
    "two lambdas on a line": dict(since=(3, 11),
        top="class C#:\n    x, y = property(lambda self: «1»), property(lambda self: «2»)",
        use="C#().x + 2 * C#().y"),
    "match args": dict(
        top="class P#:\n    __match_args__ = ('a', 'b') if «1» & 1 else ('b', 'a')\n    def __init__(self):\n"
        "        self.a, self.b = 1, 2", body="match P#():\n    case P#(x, y):\n        v# = x * 10 + y",
        use="v#"),
    "slots": dict(top="class P#:\n    __slots__ = ('a',) + (('b',) if «1» & 1 else ())", use="len(P#.__slots__)"),
    "slots or dict": dict(
        top="class P#:\n    __slots__ = ('a',«1?'b'»)\ndef h#():\n    try:\n        p = P#()\n        p.b = 1\n"
        "        return 1\n    except AttributeError:\n        return 0", use="h#()"),
    "hash none": dict(top="class C#:\n    «1?__hash__ = None\n»\n    pass\ndef h#():\n    try:\n"
        "        return hash(C#()) * 0 + 1\n    except TypeError:\n        return 0", use="h#()"),
    "total_ordering": dict(
        top="import functools\n@functools.total_ordering\nclass C#:\n    def __init__(self, k):\n"
        "        self.k = k\n    def __eq__(self, o):\n        return self.k == o.k\n    def __lt__(self, o):\n"
        "        return (self.k < o.k) ^ («1» & 1)", use="int(C#(1) >= C#(2))"),
    "class attribute list of functions": dict(
        top="def a#():\n    return «1»\ndef b#():\n    return «2»\nclass C#:\n    fs = [a#, b#]",
        use="sum(f() for f in C#.fs)"),
    "class attribute dict of lambdas": dict(top="class C#:\n    fs = {'a': lambda: «1»}", use="C#.fs['a']()"),
    "instance dict of functions": dict(
        top="def a#():\n    return «1»\nclass C#:\n    def __init__(self):\n        self.fs = {'a': a#}\nc# = C#()",
        use="c#.fs['a']()"),
    "instance holding a lambda": dict(
        top="class C#:\n    def __init__(self, f):\n        self.f = f\nc# = C#(lambda: «1»)", use="c#.f()"),
    "instance holding a closure": dict(
        top="def mk#(k):\n    def f():\n        return k + «1»\n    return f\nclass C#:\n"
        "    def __init__(self, f):\n        self.f = f\nc# = C#(mk#(«2»))", use="c#.f()"),
    "list of lambdas": dict(top="L# = [lambda: «1»]", use="L#[0]()"),
    "two lambdas in a list": dict(since=(3, 11), top="L# = [lambda: «1», lambda: «2»]",
        use="L#[0]() + 2 * L#[1]()"),
    "defaultdict of lambda": dict(top="import collections\nD# = collections.defaultdict(lambda: «1»)",
        use="D#.copy()['x']"),
    "class in function result": dict(
        top="def mk#():\n    class L:\n        k = «1»\n        def f(self):\n            return self.k + «2»\n"
        "    return L\nL# = mk#()", use="L#().f()"),
    "instance of local class": dict(
        top="def mk#():\n    class L:\n        def f(self):\n            return «1»\n    return L()\nl# = mk#()",
        use="l#.f()"),
    "type() made class": dict(top="def f#(self):\n    return «1»\nT# = type('T#', (), {'f': f#, 'k': «2»})",
        use="T#().f() + T#.k"),
    "type() with lambda": dict(top="T# = type('T#', (), {'f': lambda self: «1»})", use="T#().f()"),
    "mixins in order": dict(
        top="class A#:\n    def f(self):\n        return 1\nclass B#:\n    def f(self):\n        return 2\n"
        "class C#(*((A#, B#) if «1» & 1 else (B#, A#))):\n    pass", use="C#().f()"),
    "bases assigned": dict(
        top="class A#:\n    def f(self):\n        return 1\nclass B#:\n    def f(self):\n        return 2\n"
        "class C#(A#):\n    pass\nif «1» & 1:\n    C#.__bases__ = (B#,)", use="C#().f()"),
    "class assigned": dict(
        top="class A#:\n    def f(self):\n        return 1\nclass B#:\n    def f(self):\n        return 2\n"
        "c# = A#()\nif «1» & 1:\n    c#.__class__ = B#", use="c#.f()"),
    "super in a helper class": dict(files={
        "m#": "class B:\n    def f(self):\n        return g()\ndef g():\n    return «1»", },
        top="from . import m#\nclass C#(m#.B):\n    pass", use="C#().f()"),
    "__mro_entries__": dict(
        top="class R#:\n    def f(self):\n        return «1»\nclass E#:\n    def __mro_entries__(self, bases):\n"
        "        return (R#,)\nclass C#(E#()):\n    pass", use="C#().f()"),
    "__missing__": dict(top="class D#(dict):\n    def __missing__(self, k):\n        return «1»\nd# = D#()",
        use="d#['x']"),
    "__format__": dict(top="class D#:\n    def __format__(self, s):\n        return str(«1»)\nd# = D#()",
        use="int(f'{d#:>3}')"),
    "__index__": dict(top="class D#:\n    def __index__(self):\n        return «1»\nd# = D#()",
        use="range(10**9)[d#]"),
    "__getattribute__": dict(top="class D#:\n    def __getattribute__(self, n):\n        return «1»\nd# = D#()",
        use="d#.x"),
    "__call__ by class attribute": dict(
        top="def h#(self):\n    return «1»\nclass D#:\n    __call__ = h#\nd# = D#()", use="d#()"),
    "__enter__": dict(top="class D#:\n    def __enter__(self):\n        return «1»\n    def __exit__(self, *a):\n"
        "        return False", body="with D#() as v#:\n    pass", use="v#"),
    "__iter__ and __next__": dict(
        top="class D#:\n    def __init__(self):\n        self.n = 0\n    def __iter__(self):\n        return D#()\n"
        "    def __next__(self):\n        self.n += 1\n        if self.n > 2:\n"
        "            raise StopIteration\n        return «1»\nd# = D#()", use="sum(d#)"),
    "__new__": dict(top="class D#(int):\n    def __new__(cls):\n        return super().__new__(cls, «1»)",
        use="int(D#())"),
    "__bool__": dict(top="class D#:\n    def __bool__(self):\n        return bool(«1» & 1)\nd# = D#()",
        use="1 if d# else 0"),
    "__contains__": dict(top="class D#:\n    def __contains__(self, x):\n        return bool(«1» & 1)\nd# = D#()",
        use="int(1 in d#)"),
    "__set_name__ effect on owner": dict(
        top="class D#:\n    def __set_name__(self, o, n):\n        o.k = «1»\nclass C#:\n    abc = D#()",
        use="C#.k"),
    "exceptions __str__": dict(top="class X#(ValueError):\n    def __str__(self):\n        return str(«1»)",
        use="int(str(X#()))"),
    "class private name": dict(top="class C#:\n    __k = «1»\n    def f(self):\n        return self.__k",
        use="C#().f()"),
    "class __dict__ read": dict(top="class C#:\n    k = «1»", use="vars(C#)['k']"),
    "getattr on class": dict(top="class C#:\n    def f(self):\n        return «1»", use="getattr(C#(), 'f')()"),
    "abstract class": dict(
        top="import abc\nclass A#(abc.ABC):\n    @abc.abstractmethod\n    def f(self):\n        return «1»\n"
        "class C#(A#):\n    def f(self):\n        return super().f() + «2»", use="C#().f()"),
    "subclasshook": dict(
        top="import abc\nclass A#(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, c):\n"
        "        return bool(«1» & 1)", use="int(issubclass(int, A#))"),
    "protocol": dict(
        top="import typing\n@typing.runtime_checkable\nclass P#(typing.Protocol):\n    def f(self): ...\n"
        "    «1?def g(self): ...\n»\nclass C#:\n    def f(self):\n        return 1",
        use="int(isinstance(C#(), P#))"),
    "protocol default": dict(
        top="import typing\nclass P#(typing.Protocol):\n    def f(self):\n        return «1»\nclass C#(P#):\n"
        "    pass", use="C#().f()"),
    "protocol annotation": dict(
        top="import typing\nclass P#(typing.Protocol):\n    def f(self):\n        return «1»\nclass C#(P#):\n"
        "    pass", param="j#: P#", arg="C#()", use="j#.f()"),
    "typeddict annotation": dict(since=(3, 11),
        top="import typing\nclass J#:\n    def cost(self):\n        return «1»\nclass T#(typing.TypedDict):\n"
        "    j: J#", param="j#: T#", arg="{'j': J#()}", use="j#['j'].cost()"),
    "typeddict functional": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»\n"
        "T# = typing.TypedDict('T#', {'j': J#})", param="j#: T#", arg="{'j': J#()}", use="j#['j'].cost()"),
    "named tuple annotation": dict(
        top="import typing\nclass J#:\n    def cost(self):\n        return «1»\nclass T#(typing.NamedTuple):\n"
        "    j: J#", param="j#: T#", arg="T#(J#())", use="j#.j.cost()"),
    "newtype of newtype": dict(
        top="import typing\nclass J#:\n    def cost(self):\n        return «1»\nN# = typing.NewType('N#', J#)\n"
        "O# = typing.NewType('O#', N#)", param="j#: O#", arg="J#()", use="j#.cost()"),
    "callable annotation": dict(top="import typing\nclass J#:\n    def cost(self):\n        return «1»",
        param="j#: typing.Callable[[], J#]", arg="J#", use="j#().cost()"),
    "abc callable annotation": dict(
        top="import collections.abc\nclass J#:\n    def cost(self):\n        return «1»",
        param="j#: collections.abc.Callable[[int], J#]", arg="J#", use="j#().cost()"),
    "typevar constraints": dict(
        top="import typing\nclass J#:\n    def cost(self):\n        return «1»\nV# = typing.TypeVar('V#', J#, int)",
        param="j#: V#", arg="J#()", use="j#.cost()"),
    "typevar bound string": dict(
        top="import typing\nV# = typing.TypeVar('V#', bound='J#')\nclass J#:\n    def cost(self):\n"
        "        return «1»", param="j#: V#", arg="J#()", use="j#.cost()"),
    "cast to a name in a string": dict(
        top="import typing\nclass K#:\n    def g(self):\n        return «1»\n    def h(self):\n        return 1\n"
        "def f#(x):\n    return typing.cast('K#', x).g() + len(memoryview(b'abcd').cast('B'))",
        param="k#", arg="K#()", use="f#(k#)"),
    "annotated metadata object": dict(since=(3, 11),
        top="import typing\nclass Chk#:\n    def __init__(self, k):\n        self.k = k\n    def f(self):\n"
        "        return self.k + «1»\nCHK# = Chk#(«2»)\ndef h#(a: typing.Annotated[int, CHK#]):\n    return 1",
        use="typing.get_type_hints(h#, include_extras=True)['a'].__metadata__[0].f()"),
    "annotated metadata alias": dict(
        top="import typing\nclass Chk#:\n    def __init__(self, k):\n        self.k = k\n    def f(self):\n"
        "        return self.k + «1»\nA# = typing.Annotated[int, Chk#(«2»)]\ndef h#(a: A#):\n    return 1",
        use="h#.__annotations__['a'].__metadata__[0].f() if not isinstance(h#.__annotations__['a'], str) else A#.__metadata__[0].f()"),
    "alias used as value": dict(top="import typing\nclass J#:\n    k = «1»\nA# = typing.List[J#]",
        use="typing.get_args(A#)[0].k"),
    "types.UnionType": dict(top="class J#:\n    def cost(self):\n        return «1»\nU# = J# | None",
        param="j#: U#", arg="J#()", use="j#.cost()"),
    "classvar annotation": dict(
        top="import typing\nclass J#:\n    def cost(self):\n        return «1»\nclass C#:\n"
        "    j: typing.ClassVar['J#']\nC#.j = J#()", use="C#.j.cost()"),
    "generic base": dict(
        top="import typing\nT# = typing.TypeVar('T#')\nclass B#(typing.Generic[T#]):\n    def f(self):\n"
        "        return «1»\nclass C#(B#[int]):\n    pass", use="C#().f()"),
    "generic call": dict(
        top="import typing\nT# = typing.TypeVar('T#')\nclass B#(typing.Generic[T#]):\n    def f(self):\n"
        "        return «1»", use="B#[int]().f()"),
    "generic alias held": dict(
        top="import typing\nT# = typing.TypeVar('T#')\nclass B#(typing.Generic[T#]):\n    def f(self):\n"
        "        return «1»\nG# = B#[int]", use="G#().f()"),
    "overload": dict(top="import typing\n@typing.overload\ndef h#(x: int) -> int: ...\n@typing.overload\n"
        "def h#(x: str) -> str: ...\ndef h#(x):\n    return «1»", use="h#(1)"),
    "final and no_type_check": dict(
        top="import typing\n@typing.no_type_check\ndef h#(x: 'nothing really'):\n    return «1»", use="h#(1)"),
    "dataclass InitVar": dict(
        top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n    a: dataclasses.InitVar[int] = «1»\n"
        "    b: int = 0\n    def __post_init__(self, a):\n        self.b = a + «2»", use="C#().b"),
    "dataclass KW_ONLY": dict(
        top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n    a: int = 1\n    «1?_: dataclasses.KW_ONLY\n"
        "»\n    b: int = 2\ndef h#():\n    try:\n        return C#(3, 4).b\n    except TypeError:\n"
        "        return 0", use="h#()"),
    "dataclass field order": dict(
        top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n    «1?a: int = 1\n»\n    b: int = 2\n"
        "    a: int = 1", use="C#(7).b"),
    "dataclass factory function": dict(
        top="import dataclasses\ndef mk#():\n    return «1»\n@dataclasses.dataclass\nclass C#:\n"
        "    a: int = dataclasses.field(default_factory=mk#)", use="C#().a"),
    "dataclass inherited": dict(files={
        "m#": "import dataclasses\n@dataclasses.dataclass\nclass B:\n    a: int = «1»", },
        top="import dataclasses\nfrom . import m#\n@dataclasses.dataclass\nclass C#(m#.B):\n    b: int = «2»",
        use="C#().a + C#().b"),
    "dataclass order": dict(top="import dataclasses\n@dataclasses.dataclass(order=True)\nclass C#:\n"
        "    a: int = dataclasses.field(compare=bool(«1» & 1))\n    b: int = 0", use="int(C#(1, 2) < C#(2, 1))"),
    "dataclass repr flag": dict(top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n"
        "    a: int = dataclasses.field(default=1, repr=bool(«1» & 1))", use="len(repr(C#())) - len('C#')"),
    "dataclass init flag": dict(top="import dataclasses\n@dataclasses.dataclass\nclass C#:\n"
        "    a: int = dataclasses.field(default=1, init=bool(«1» & 1))\ndef h#():\n    try:\n"
        "        return C#(5).a\n    except TypeError:\n        return 0", use="h#()"),
    "dataclass kw_only flag": dict(
        top="import dataclasses\n@dataclasses.dataclass(kw_only=bool(«1» & 1))\nclass C#:\n    a: int = 1\n"
        "def h#():\n    try:\n        return C#(5).a\n    except TypeError:\n        return 0", use="h#()"),
    "dataclass frozen flag": dict(
        top="import dataclasses\n@dataclasses.dataclass(frozen=bool(«1» & 1))\nclass C#:\n    a: int = 1\n"
        "def h#():\n    c = C#()\n    try:\n        c.a = 2\n    except AttributeError:\n        pass\n"
        "    return c.a", use="h#()"),
    "dataclass unsafe_hash": dict(
        top="import dataclasses\n@dataclasses.dataclass(unsafe_hash=bool(«1» & 1))\nclass C#:\n    a: int = 1\n"
        "def h#():\n    try:\n        return 0 * hash(C#()) + 1\n    except TypeError:\n        return 0",
        use="h#()"),
    "dataclass slots flag": dict(
        top="import dataclasses\n@dataclasses.dataclass(slots=bool(«1» & 1))\nclass C#:\n    a: int = 1",
        use="int(hasattr(C#(), '__dict__'))"),
    "dataclass match_args flag": dict(
        top="import dataclasses\n@dataclasses.dataclass(match_args=bool(«1» & 1))\nclass C#:\n    a: int = 1\n",
        use="len(getattr(C#, '__match_args__', ()))"),
    "make_dataclass": dict(top="import dataclasses\ndef f#(self):\n    return self.a + «1»\n"
        "C# = dataclasses.make_dataclass('C#', [('a', int, «2»)], namespace={'f': f#})\n"
        "C#.__module__ = __name__", use="C#().f()"),
    "enum auto": dict(top="import enum\nclass E#(enum.Enum):\n    «1?Z = enum.auto()\n»\n    A = enum.auto()",
        use="E#.A.value"),
    "enum generate": dict(
        top="import enum\nclass E#(enum.Enum):\n    def _generate_next_value_(name, start, count, last):\n"
        "        return «1»\n    A = enum.auto()", use="E#.A.value"),
    "enum missing": dict(top="import enum\nclass E#(enum.Enum):\n    A = 1\n    B = 2\n    @classmethod\n"
        "    def _missing_(cls, v):\n        return cls.A if «1» & 1 else cls.B", use="E#(99).value"),
    "enum alias": dict(top="import enum\nclass E#(enum.Enum):\n    A = 1\n    B = 2\n    C = 1 if «1» & 1 else 2",
        use="E#.C.value"),
    "enum flag boundary": dict(since=(3, 11),
        top="import enum\nclass E#(enum.Flag, boundary=enum.KEEP if «1» & 1 else enum.CONFORM):\n    A = 1",
        use="E#(9).value"),
    "enum class inside": dict(since=(3, 11),
        top="import enum\nclass E#(enum.Enum):\n    A = 1\n    @enum.nonmember\n    class I:\n        k = «1»",
        use="E#.I.k"),
    "enum private attribute": dict(top="import enum\nclass E#(enum.Enum):\n    A = 1\nE#._k = «1»", use="E#._k"),
    "enum property": dict(since=(3, 11),
        top="import enum\nclass E#(enum.Enum):\n    A = 1\n    @property\n    def p(self):\n        return «1»\n"
        "    @enum.property\n    def q(self):\n        return «2»", use="E#.A.p + E#.A.q"),
    "enum metaclass": dict(
        top="import enum\nclass M#(enum.EnumMeta):\n    def __getitem__(cls, n):\n        return «1»\n"
        "class E#(enum.Enum, metaclass=M#):\n    A = 1", use="E#['q']"),
    "enum functional": dict(top="import enum\nE# = enum.Enum('E#', {'A': «1»}, module=__name__)", use="E#.A.value"),
    "enum str mixin": dict(top="import enum\nclass E#(str, enum.Enum):\n    A = str(«1»)\n    def f(self):\n"
        "        return int(self) + «2»", use="E#.A.f()"),
    "enum of dataclass": dict(
        top="import enum, dataclasses\n@dataclasses.dataclass(frozen=True)\nclass D#:\n    k: int\n"
        "    def f(self):\n        return self.k + «1»\nclass E#(enum.Enum):\n    A = D#(«2»)",
        use="E#.A.value.f()"),
    "enum default member": dict(top="import enum\nclass E#(enum.Enum):\n    A = 1\n    B = 2\n    def f(self):\n"
        "        return «1» if self is E#.A else 0", param="e#=E#.A", use="e#.f()"),
    "nonlocal rebound": dict(
        top="def mk#():\n    k = «1»\n    def up():\n        nonlocal k\n        k += «2»\n    def get():\n"
        "        return k\n    up()\n    return get\nget# = mk#()", use="get#()"),
    "closure over closure": dict(
        top="def a#(k):\n    def b(j):\n        def c():\n            return k * 3 + j + «1»\n        return c\n"
        "    return b\nh# = a#(«2»)(«3»)", use="h#()"),
    "closure over class": dict(
        top="def a#():\n    class K:\n        def f(self):\n            return «1»\n    def g():\n"
        "        return K().f()\n    return g\nh# = a#()", use="h#()"),
    "closure over module": dict(files={"m#": "def f():\n    return «1»", },
        top="def a#():\n    from . import m#\n    def g():\n        return m#.f()\n    return g\nh# = a#()",
        use="h#()"),
    "closure over instance": dict(
        top="class K#:\n    def f(self):\n        return «1»\ndef a#(k):\n    def g():\n        return k.f()\n"
        "    return g\nh# = a#(K#())", use="h#()"),
    "closure cell set later": dict(
        top="def a#():\n    def g():\n        return later()\n    def later():\n        return «1»\n    return g\n"
        "h# = a#()", use="h#()"),
    "recursive closure": dict(
        top="def a#():\n    def g(n):\n        return «1» if n == 0 else g(n - 1)\n    return g\nh# = a#()",
        use="h#(2)"),
    "lambda in default": dict(top="def h#(f=lambda: «1»):\n    return f()", use="h#()"),
    "function in default": dict(top="def g#():\n    return «1»\ndef h#(f=g#):\n    return f()", use="h#()"),
    "list of functions in default": dict(top="def g#():\n    return «1»\ndef h#(f=[g#]):\n    return f[0]()",
        use="h#()"),
    "class in default": dict(
        top="class K#:\n    def f(self):\n        return «1»\ndef h#(k=K#):\n    return k().f()", use="h#()"),
    "instance in keyword default": dict(
        top="class K#:\n    def f(self):\n        return «1»\ndef h#(*, k=K#()):\n    return k.f()", use="h#()"),
    "bound method held": dict(top="class K#:\n    def __init__(self, k):\n        self.k = k\n    def f(self):\n"
        "        return self.k + «1»\nh# = K#(«2»).f", use="h#()"),
    "class method held": dict(
        top="class K#:\n    k = «2»\n    @classmethod\n    def f(cls):\n        return cls.k + «1»\nh# = K#.f",
        use="h#()"),
    "method of base held": dict(
        top="class B#:\n    def f(self):\n        return self.g()\nclass K#(B#):\n    def g(self):\n"
        "        return «1»\nh# = K#().f", use="h#()"),
    "unbound method held": dict(top="class K#:\n    def f(self):\n        return «1»\nh# = K#.f", use="h#(None)"),
    "partial of method": dict(top="import functools\nclass K#:\n    def f(self, a):\n        return a + «1»\n"
        "h# = functools.partial(K#().f, «2»)", use="h#()"),
    "partial of lambda": dict(top="import functools\nh# = functools.partial(lambda a: a + «1», «2»)", use="h#()"),
    "partial of partial": dict(top="import functools\ndef g#(a, b):\n    return a * 3 + b\n"
        "h# = functools.partial(functools.partial(g#, «1»), «2»)", use="h#()"),
    "partial with function argument": dict(
        top="import functools\ndef g#(f):\n    return f()\ndef k#():\n    return «1»\n"
        "h# = functools.partial(g#, k#)", use="h#()"),
    "partial of builtin with key": dict(top="import functools\ndef k#(x):\n    return x * (1 if «1» & 1 else -1)\n"
        "h# = functools.partial(max, key=k#)", use="h#([1, 2])"),
    "partial with attributes": dict(
        top="import functools\ndef g#():\n    return h#.k\nh# = functools.partial(g#)\nh#.k = «1»", use="h#()"),
    "partial subclass": dict(top="import functools\nclass P#(functools.partial):\n    def __call__(self):\n"
        "        return super().__call__() + «1»\ndef g#():\n    return «2»\nh# = P#(g#)", use="h#()"),
    "cmp_to_key": dict(top="import functools\ndef c#(a, b):\n    return (a - b) * (1 if «1» & 1 else -1)",
        use="sorted([1, 2], key=functools.cmp_to_key(c#))[0]"),
    "cmp_to_key held": dict(refused=True,
        top="import functools\ndef c#(a, b):\n    return (a - b) * (1 if «1» & 1 else -1)\n"
        "K# = functools.cmp_to_key(c#)", use="sorted([1, 2], key=K#)[0]"),
    "reduce": dict(top="import functools\ndef c#(a, b):\n    return a + b + «1»",
        use="functools.reduce(c#, [1, 2])"),
    "wraps of C function": dict(
        top="import functools, math\ndef deco#(f):\n    @functools.wraps(f)\n    def w(x):\n"
        "        return int(f(x)) + «1»\n    return w\nh# = deco#(math.sqrt)", use="h#(4)"),
    "decorator class with descriptor": dict(
        top="class D#:\n    def __init__(self, f):\n        self.f = f\n    def __get__(self, o, c):\n"
        "        import functools\n        return functools.partial(self, o)\n    def __call__(self, o):\n"
        "        return self.f(o) + «1»\nclass C#:\n    @D#\n    def f(self):\n        return «2»",
        use="C#().f()"),
    "decorator from other file": dict(files={
        "m#": "def deco(f):\n    def w(*a):\n        return f(*a) + g()\n    return w\ndef g():\n    return «1»",
        }, top="from .m# import deco as deco#\n@deco#\ndef h#():\n    return «2»", use="h#()"),
    "decorator with state": dict(
        top="class Reg#:\n    def __init__(self):\n        self.d = {}\n    def __call__(self, f):\n"
        "        self.d[f.__name__] = f\n        return f\nreg# = Reg#()\n@reg#\ndef h#():\n    return «1»",
        use="reg#.d['h#']()"),
    "registry of functions": dict(
        top="REG# = {}\ndef register#(f):\n    REG#['x'] = f\n    return None\n@register#\ndef h#():\n"
        "    return «1»", use="REG#['x']()"),
    "registry in another file": dict(files={
        "r#": "REG = {}\ndef register(f):\n    REG[f.__name__] = f\n    return f",
        "p#": "from .r# import register\n@register\ndef plug():\n    return «1»", }, top="from . import r#, p#",
        use="r#.REG['plug']()"),
    "plugin imported inside": dict(files={
        "r#": "REG = {}\ndef register(f):\n    REG[f.__name__] = f\n    return f",
        "p#": "from .r# import register\n@register\ndef plug():\n    return «1»", }, top="from . import r#",
        body="from . import p#", use="r#.REG['plug']()"),
    "plugin imported by helper": dict(files={
        "r#": "REG = {}\ndef register(f):\n    REG[f.__name__] = f\n    return f",
        "p#": "from .r# import register\n@register\ndef plug():\n    return «1»", },
        top="from . import r#\ndef load#():\n    from . import p#", body="load#()", use="r#.REG['plug']()"),
    "submodule loaded by helper": dict(files={"s#/__init__": "", "s#/sub": "def f():\n    return «1»", },
        top="import $.s#\ndef load#():\n    import $.s#.sub", body="load#()", use="$.s#.sub.f()"),
    "generator expression": dict(top="def g#(i):\n    return i + «1»", use="sum(g#(i) for i in range(3))"),
    "async comprehension": dict(top="import asyncio\nasync def g#():\n    yield «1»\nasync def h#():\n"
        "    return sum([x async for x in g#()])", use="asyncio.run(h#())"),
    "async with": dict(top="import asyncio\nclass A#:\n    async def __aenter__(self):\n        return «1»\n"
        "    async def __aexit__(self, *a):\n        return None\nasync def h#():\n    async with A#() as a:\n"
        "        return a", use="asyncio.run(h#())"),
    "walrus and star": dict(top="def g#(*a, **k):\n    return sum(a) + sum(k.values()) + «1»",
        use="g#(*(y# := [«2»]), **{'k': y#[0]})"),
    "f-string call": dict(top="def g#():\n    return «1»", use="int(f'{g#()}')"),
    "nested f-string": dict(top="W# = «1»", use="len(f'{1:>{(W# & 15) + 1}}')"),
    "global statement": dict(top="S# = «1»\ndef g#():\n    global S#\n    S#, old = S#, S#\n    return old",
        use="g#()"),
    "conditional def": dict(
        top="if «1» & 1:\n    def h#():\n        return 1\nelse:\n    def h#():\n        return 2", use="h#()"),
    "def in a loop": dict(
        top="fs# = []\nfor i# in range(2):\n    def h#(i=i#):\n        return i * «1»\n    fs#.append(h#)",
        use="sum(f() for f in fs#)"),
    "def redefined": dict(top="def h#():\n    return «1»\nold# = h#\ndef h#():\n    return old#() + «2»",
        use="h#()"),
    "same name in class and module": dict(
        top="def f#():\n    return «1»\nclass C#:\n    def f#(self):\n        return f#() + «2»", use="C#().f#()"),
    "exec made function": dict(refused=True, top="ns# = {}\nexec('def f():\\n    return «1»', ns#)\nh# = ns#['f']",
        use="h#()"),
    "eval made lambda": dict(refused=True, top="h# = eval('lambda: «1»')", use="h#()"),
    "types.FunctionType": dict(
        top="import types\ndef g#():\n    return K#\nh# = types.FunctionType(g#.__code__, {'K#': «1»})",
        use="h#()"),
    "function globals": dict(refused=True, top="G# = «1»\ndef g#():\n    return 1", use="g#.__globals__['G#']"),
    "frame globals": dict(refused=True, top="import sys\nG# = «1»", use="sys._getframe().f_globals['G#']"),
    "function closure read": dict(top="def mk#(k):\n    def g():\n        return k\n    return g\ng# = mk#(«1»)",
        use="g#.__closure__[0].cell_contents"),
    "function defaults read": dict(top="def g#(a=«1»):\n    return a", use="g#.__defaults__[0]"),
    "function doc read": dict(top="def g#():\n    '''«1»'''\n    return 1", use="int(g#.__doc__)"),
    "class doc read": dict(top="class C#:\n    '''«1»'''", use="int(C#.__doc__)"),
    "doc by inspect": dict(refused=True, top="import inspect\ndef g#():\n    '''«1»'''\n    return 1",
        use="int(inspect.getdoc(g#))"),
    "module doc": dict(files={"m#": "'''«1»'''\nk = 1", }, top="from . import m#", use="int(m#.__doc__)"),
    "importlib alias": dict(refused=True, files={"m#": "def f():\n    return «1»", },
        top="import importlib as il#", use="il#.import_module('$.m#').f()"),
    "import_module alias": dict(refused=True, files={"m#": "def f():\n    return «1»", },
        top="from importlib import import_module as im#", use="im#('$.m#').f()"),
    "import_module inside alias": dict(files={"m#": "def f():\n    return «1»", },
        body="from importlib import import_module as im#", use="im#('$.m#').f()"),
    "import_module inside": dict(files={"m#": "def f():\n    return «1»", }, body="import importlib",
        use="importlib.import_module('$.m#').f()"),
    "import_module relative": dict(refused=True, files={"m#": "def f():\n    return «1»", },
        top="import importlib", use="importlib.import_module('.m#', '$').f()"),
    "resolve_name": dict(refused=True, files={"m#": "def f():\n    return «1»", }, top="import pkgutil",
        use="pkgutil.resolve_name('$.m#:f')()"),
    "pydoc locate": dict(refused=True, files={"m#": "def f():\n    return «1»", }, top="import pydoc",
        use="pydoc.locate('$.m#.f')()"),
    "eval held": dict(refused=True, top="ev# = eval\nG# = «1»", use="ev#('G#')"),
    "exec of builtins": dict(refused=True, top="import builtins\nG# = «1»", use="builtins.eval('G#')"),
    "spec from file": dict(refused=True, files={"m#": "def f():\n    return «1»", },
        top="import importlib.util, pathlib\ndef load#():\n"
        "    s = importlib.util.spec_from_file_location('q$#', pathlib.Path(__file__).parent / 'm#.py')\n"
        "    m = importlib.util.module_from_spec(s)\n    s.loader.exec_module(m)\n    return m",
        use="load#().f()"),
    "spec from file at top": dict(files={"m#": "def f():\n    return «1»", },
        top="import importlib.util, pathlib\n"
        "s# = importlib.util.spec_from_file_location('q$#', pathlib.Path(__file__).parent / 'm#.py')\n"
        "q# = importlib.util.module_from_spec(s#)\ns#.loader.exec_module(q#)", use="q#.f()"),
    "vars of module": dict(files={"m#": "k = «1»", }, top="from . import m#", use="vars(m#)['k']"),
    "sys.modules computed": dict(refused=True, files={"m#": "def f():\n    return «1»", },
        top="import sys\nfrom . import m#", use="sys.modules['$.' + 'm#'].f()"),
    "sys.modules constant": dict(files={"m#": "def f():\n    return «1»", }, top="import sys\nfrom . import m#",
        use="sys.modules['$.m#'].f()"),
    "sys.modules name": dict(top="import sys\ndef f#():\n    return «1»", use="sys.modules[__name__].f#()"),
    "getattr of sys.modules": dict(refused=True, top="import sys\ndef f#():\n    return «1»",
        use="getattr(sys.modules[__name__], 'f#')()"),
    "star import of package": dict(files={"s#/__init__": "from .a import *\nfrom .b import *",
        "s#/a": "def fa#():\n    return «1»",
        "s#/b": "__all__ = ['fb#']\ndef fb#():\n    return «2»\ndef fa#():\n    return 0", },
        top="from .s# import *", use="fa#() + fb#()"),
    "__all__ decides": dict(files={"s#": "__all__ = ['q#'«1?, 'r#'»]\nq# = r# = 5", },
        top="r# = 1\nfrom .s# import *", use="r#"),
    "relative import two up": dict(files={"s#/__init__": "", "s#/t/__init__": "",
        "s#/t/u": "from ...m# import f\nfrom ..v import g\ndef h():\n    return f() + g()",
        "s#/v": "def g():\n    return «1»", "m#": "def f():\n    return «2»", }, top="from .s#.t.u import h as h#",
        use="h#()"),
    "relative import inside, two up": dict(files={"s#/__init__": "",
        "s#/t": "def h():\n    from ..m# import f\n    return f()", "m#": "def f():\n    return «1»", },
        top="from .s#.t import h as h#", use="h#()"),
    "namespace package": dict(files={"n#/sub": "def f():\n    return «1»", }, top="from .n# import sub as sub#",
        use="sub#.f()"),
    "namespace package inside": dict(files={"/ns$#/sub": "def f():\n    return «1»", }, body="import ns$#.sub",
        use="ns$#.sub.f()"),
    "namespace package from inside": dict(files={"/ns$#/sub": "def f():\n    return «1»", },
        body="from ns$# import sub as q#", use="q#.f()"),
    "lazy submodules": dict(files={
        "s#/__init__": "def __getattr__(name):\n    import importlib\n    if name == 'sub':\n"
        "        return importlib.import_module(__name__ + '.sub')\n    raise AttributeError(name)",
        "s#/sub": "def f():\n    return «1»", }, top="from . import s#", use="s#.sub.f()"),
    "lazy names": dict(files={
        "s#/__init__": "_where = {'f': 'sub'}\ndef __getattr__(name):\n    import importlib\n    if name in _where:\n"
        "        return getattr(importlib.import_module('.' + _where[name], __name__), name)\n"
        "    raise AttributeError(name)", "s#/sub": "def f():\n    return «1»", }, top="from .s# import f as f#",
        use="f#()"),
    "lazy names of module value": dict(files={
        "s#/__init__": "def __getattr__(name):\n    if name == 'k':\n        return «1»\n    raise AttributeError(name)",
        }, top="from . import s#\ndef g#(m):\n    return m.k", use="g#(s#)"),
    "conditional import": dict(files={"a#": "def f():\n    return 1", "b#": "def f():\n    return 2", },
        top="import sys\nif «1» & 1:\n    from .a# import f as f#\nelse:\n    from .b# import f as f#",
        use="f#()"),
    "try import": dict(files={"b#": "def f():\n    return «1»", },
        top="try:\n    from missing_thing import f as f#\nexcept ImportError:\n    from .b# import f as f#",
        use="f#()"),
    "try import own": dict(files={"a#": "«1?raise ImportError\n»\ndef f():\n    return 1",
        "b#": "def f():\n    return 2", },
        top="try:\n    from .a# import f as f#\nexcept ImportError:\n    from .b# import f as f#", use="f#()"),
    "conditional import inside": dict(files={"a#": "def f():\n    return «1»", "b#": "def f():\n    return «2»", },
        top="F# = 1\ndef h#(t):\n    if t:\n        from .a# import f\n    else:\n        from .b# import f\n"
        "    return f()", use="h#(0) + h#(1)"),
    "circular imports": dict(files={"a#": "from . import b#\ndef f():\n    return b#.g() + 1\nK = «1»",
        "b#": "from . import a#\ndef g():\n    return a#.K + «2»", }, top="from . import a#", use="a#.f()"),
    "module alias of alias": dict(files={"a#": "from . import b# as c", "b#": "def g():\n    return «1»", },
        top="from . import a#", use="a#.c.g()"),
    "module set in sys.modules": dict(
        top="import sys, types\nmm# = types.ModuleType('mm$#')\ndef g#():\n    return «1»\nmm#.g = g#\n"
        "sys.modules['mm$#'] = mm#", body="import mm$#", use="mm$#.g()"),
    "module class swapped": dict(files={
        "a#": "import sys, types\nclass M(types.ModuleType):\n    @property\n    def k(self):\n        return «1»\n"
        "sys.modules[__name__].__class__ = M", }, top="from . import a#", use="a#.k"),
    "instance as module": dict(files={
        "a#": "import sys\nclass M:\n    def f(self):\n        return «1»\nsys.modules[__name__] = M()", },
        top="import $.a# as a#", use="a#.f()"),
    "module attribute set elsewhere": dict(files={"a#": "k = 0", "b#": "from . import a#\na#.k = «1»", },
        top="from . import a#, b#", use="a#.k"),
    "module function replaced": dict(files={"a#": "def f():\n    return 0\ndef g():\n    return f()", },
        top="from . import a#\ndef h#():\n    return «1»\na#.f = h#", use="a#.g()"),
    "library function replaced": dict(top="import tabnanny\ndef h#(*a):\n    return «1»\ntabnanny.q$# = h#",
        use="tabnanny.q$#()"),
    "library constant set": dict(top="import tabnanny\ntabnanny.k$# = «1»", use="tabnanny.k$#"),
    "library class added": dict(
        top="import tabnanny\nclass K#:\n    def f(self):\n        return «1»\ntabnanny.K$# = K#",
        use="tabnanny.K$#().f()"),
    "library instance added": dict(
        top="import tabnanny\nclass K#:\n    def f(self):\n        return «1»\ntabnanny.i$# = K#()",
        use="tabnanny.i$#.f()"),
    "library subclass": dict(
        top="import string\nclass E#(string.Formatter):\n    def format_field(self, v, s):\n        return str(«1»)",
        use="int(E#().format('{}', 1))"),
    "dispatch_table": dict(
        top="import copyreg, copy\nclass O#:\n    k = 0\ndef r#(o):\n    return mk#, (), {'k': «1»}\ndef mk#():\n"
        "    return O#()\ncopyreg.pickle(O#, r#)", use="copy.copy(O#()).k"),
    "string template": dict(top="import string\nT# = string.Template('x' + str(«1»))", use="int(T#.template[1:])"),
    "pattern with function": dict(top="import re\ndef s#(m):\n    return str(«1»)\nR# = re.compile('x')",
        use="int(R#.sub(s#, 'x'))"),
    "pathlib path": dict(top="import pathlib\nP# = pathlib.PurePosixPath('a' * (1 + («1» & 1)))",
        use="len(str(P#))"),
    "decimal and fraction": dict(
        top="import decimal, fractions\nD# = decimal.Decimal(«1»)\nF# = fractions.Fraction(«2», 7)",
        use="int(D#) + F#.numerator"),
    "datetime": dict(top="import datetime\nD# = datetime.timedelta(seconds=«1»)",
        use="D#.seconds + D#.days * 86400"),
    "simple namespace": dict(
        top="import types\ndef g#():\n    return «1»\nN# = types.SimpleNamespace(f=g#, k=«2»)",
        use="N#.f() + N#.k"),
    "chainmap": dict(top="import collections\nM# = collections.ChainMap({}, {'a': «1»})", use="M#['a']"),
    "userdict": dict(top="import collections\nclass U#(collections.UserDict):\n    def __getitem__(self, k):\n"
        "        return super().__getitem__(k) + «1»\nM# = U#({'a': «2»})", use="M#['a']"),
    "mapping proxy": dict(top="import types\nM# = types.MappingProxyType({'a': «1»})", use="M#['a']"),
    "deque and counter": dict(
        top="import collections\nD# = collections.deque([«1»])\nC# = collections.Counter(a=«2»)",
        use="D#[0] + C#['a']"),
    "ordered dict": dict(top="import collections\nO# = collections.OrderedDict([('a', «1»)])", use="O#['a']"),
    "dict order": dict(top="O# = {'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}", use="next(iter(O#.values()))"),
    "dict order nested": dict(top="O# = {'t': [{'a': 1, 'b': 2} if «1» & 1 else {'b': 2, 'a': 1}]}",
        use="next(iter(O#['t'][0].values()))"),
    "registry order": dict(top="R# = {}\ndef a#():\n    return 1\ndef b#():\n    return 2\n"
        "for f# in ((a#, b#) if «1» & 1 else (b#, a#)):\n    R#[f#.__name__] = f#",
        use="next(iter(R#.values()))()"),
    "named singleton": dict(
        top="class S#:\n    def __init__(self, k):\n        self.k = k\n    def __reduce__(self):\n"
        "        return 'X#'\nX# = S#(«1»)", use="X#.k"),
    "object with __getstate__": dict(
        top="class S#:\n    def __init__(self, k):\n        self.k = k\n    def __getstate__(self):\n"
        "        return {'k': self.k}\nX# = S#(«1»)", use="X#.k"),
    "object with __getnewargs__": dict(
        top="class S#(int):\n    def __getnewargs__(self):\n        return (int(self),)\n    def f(self):\n"
        "        return self + «2»\nX# = S#(«1»)", use="int(X#.f())"),
    "instance attributes on function object": dict(
        top="class F#:\n    def __call__(self):\n        return self.k\nf# = F#()\nf#.k = «1»", use="f#()"),
    "weak method": dict(refused=True,
        top="import weakref\nclass K#:\n    def f(self):\n        return «1»\nk# = K#()\nr# = weakref.ref(k#)",
        use="r#().f()"),
    "context var": dict(refused=True, top="import contextvars\nV# = contextvars.ContextVar('V#', default=«1»)",
        use="V#.get()"),
    "thread local": dict(refused=True, top="import threading\nL# = threading.local()\nL#.k = «1»", use="L#.k"),
    "range and slice": dict(top="R# = range(«1»)\nS# = slice(«2»)", use="len(R#) + S#.stop"),
    "memoryview": dict(top="M# = memoryview(bytes([«1» & 1]))", use="M#[0]"),
    "array module": dict(top="import array\nA# = array.array('q', [«1»])", use="A#[0]"),
    "ctypes struct": dict(refused=True,
        top="import ctypes\nclass S#(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_int64)]\ns# = S#(«1»)",
        use="s#.a"),
    "ctypes fields": dict(refused=True, top="import ctypes\nclass S#(ctypes.Structure):\n"
        "    _fields_ = [('a', ctypes.c_int8), ('b', ctypes.c_int64 if «1» & 1 else ctypes.c_int8)]",
        use="ctypes.sizeof(S#)"),
    "ctypes callback": dict(refused=True,
        top="import ctypes\ndef g#():\n    return «1»\ncb# = ctypes.CFUNCTYPE(ctypes.c_int64)(g#)", use="cb#()"),
    "numpy structured": dict(needs="numpy",
        top="import numpy\nA# = numpy.array([(1, 2)], dtype=[('a', 'i4'), ('b', 'i8' if «1» & 1 else 'i4')])",
        use="A#.dtype.itemsize"),
    "numpy object array": dict(needs="numpy",
        top="import numpy\ndef g#():\n    return «1»\nA# = numpy.array([g#, None], dtype=object)", use="A#[0]()"),
    "numpy subclass": dict(needs="numpy",
        top="import numpy\nclass A#(numpy.ndarray):\n    def f(self):\n        return int(self[0]) + «1»\n"
        "a# = numpy.array([«2»]).view(A#)", use="a#.f()"),
    "frompyfunc": dict(refused=True, needs="numpy",
        top="import numpy\ndef g#(a):\n    return a + «1»\nu# = numpy.frompyfunc(g#, 1, 1)", use="u#(1)"),
    "step in step by name": dict(top="import ingot\ndef g#(x):\n    return x + «1»\ns# = ingot.CachedStep(g#)",
        use="s#(1)"),
    "sequence of steps": dict(
        top="import ingot\ndef a#(x):\n    return x + «1»\ndef b#(x):\n    return x * 2 + «2»\n"
        "s# = ingot.StepSequence.start(a#).chain(b#)", use="s#(1)"),
    "callable by __getattr__": dict(
        top="class P#:\n    def __init__(self, o):\n        self.__dict__['o'] = o\n    def __getattr__(self, n):\n"
        "        return getattr(self.o, n)\nclass O#:\n    def f(self):\n        return «1»\np# = P#(O#())",
        use="p#.f()"),
    "property on module object": dict(files={
        "a#": "class _C:\n    @property\n    def k(self):\n        return «1»\nc = _C()", },
        top="from .a# import c as c#", use="c#.k"),
    "string concatenated name": dict(
        top="class C#:\n    def run_a(self):\n        return «1»\n    def go(self, n):\n"
        "        return getattr(self, 'run_' + n)()", use="C#().go('a')"),
    "visitor": dict(
        top="import ast\nclass V#(ast.NodeVisitor):\n    def visit_Name(self, n):\n        self.k = «1»\nv# = V#()",
        body="v#.visit(ast.parse('a'))", use="v#.k"),
    "sort key method": dict(
        top="class K#:\n    def __init__(self, k):\n        self.k = k\n    def __lt__(self, o):\n"
        "        return (self.k < o.k) ^ («1» & 1)", use="sorted([K#(1), K#(2)])[0].k"),
    "comparison chain of classes": dict(
        top="class A#:\n    def f(self):\n        return B#().g()\nclass B#:\n    def g(self):\n"
        "        return C#.k\nclass C#:\n    k = «1»", use="A#().f()"),
    "lambda calling helper": dict(top="def g#():\n    return «1»\nh# = lambda: g#()", use="h#()"),
    "lambda with default": dict(top="h# = lambda k=«1»: k", use="h#()"),
    "multi-line lambda": dict(top="h# = (lambda:\n    «1»)", use="h#()"),
    "lambda from a call": dict(top="def mk#(f):\n    return f\nh# = mk#(\n    lambda: «1»\n)", use="h#()"),
    "conditional lambda": dict(since=(3, 11), top="h# = (lambda: 1) if «1» & 1 else (lambda: 2)", use="h#()"),
    "literal annotation": dict(top="import typing\ndef h#(x: typing.Literal[«1»] = 0):\n    return 1",
        use="typing.get_args(typing.get_type_hints(h#)['x'])[0]"),
    "module annotations": dict(files={"m#": "x: 'int' = 1\n«1?y: 'int' = 2\n»", }, top="from . import m#",
        use="len(m#.__annotations__)"),
    "class annotations": dict(top="class C#:\n    x: int\n    «1?y: int\n»", use="len(C#.__annotations__)"),
    "function name set": dict(top="def g#():\n    return 1\ng#.__name__ = 'x' * (1 + («1» & 1))",
        use="len(g#.__name__)"),
    "type params": dict(
        top="import typing\nclass J#:\n    k = «1»\ndef h#(x: 'typing.Iterable[J#]'):\n    return x",
        use="typing.get_args(typing.get_type_hints(h#)['x'])[0].k"),
    "ParamSpec": dict(top="import typing\nPS# = typing.ParamSpec('PS#')\n"
        "def deco#(f: typing.Callable[PS#, int]) -> typing.Callable[PS#, int]:\n"
        "    def w(*a: PS#.args, **k: PS#.kwargs):\n        return f(*a, **k) + «1»\n    return w\n@deco#\n"
        "def h#():\n    return «2»", use="h#()"),
    "staticmethod object": dict(top='def f#():\n    return «1»\nsm# = staticmethod(f#)', use='sm#()'),
    "singledispatchmethod classmethod": dict(
        top='import functools\nclass C#:\n    @functools.singledispatchmethod\n'
        '    @classmethod\n    def f(cls, x):\n        return 0\n    @f.register\n'
        '    @classmethod\n    def _(cls, x: int):\n        return «1»',
        use='C#.f(3)'),
    "singledispatch union": dict(
        since=(3, 11),
        top='import functools\n@functools.singledispatch\ndef f#(x):\n    return 0\n'
        '@f#.register\ndef _(x: int | str):\n    return «1»',
        use='f#(3)'),
    "singledispatch abc": dict(
        top='import functools, collections.abc\n@functools.singledispatch\ndef f#(x):\n'
        '    return 0\n@f#.register(collections.abc.Mapping)\ndef _(x):\n    return «1»',
        use='f#({})'),
    "masked array": dict(
        top='import numpy as np\nm# = np.ma.masked_array([«1», 2], mask=[False, True])',
        use='int(m#.sum())',
        needs='numpy'),
    "masked array mask": dict(
        top='import numpy as np\nm# = np.ma.masked_array([100, 2], mask=[«1» & 1, 0])',
        use='int(m#.sum())',
        needs='numpy'),
    "exception attribute": dict(
        top='class X#(Exception):\n    def __init__(self, *a):\n        super().__init__(*a)\n'
        "        self.k = «1»\ndef r#():\n    raise X#('a')",
        body='try:\n    r#()\nexcept X# as e#:\n    v# = e#.k',
        use='v#'),
    "async generator helper": dict(
        top='import asyncio\nasync def ag#():\n    yield «1»\nasync def g#():\n'
        '    return [v async for v in ag#()][0]',
        use='asyncio.run(g#())'),
    "yield from other file": dict(
        files={'m#': 'def inner():\n    yield «1»'},
        top='from .m# import inner as in#\ndef g#():\n    yield from in#()',
        use='next(g#())'),
    "composed": dict(
        top='import functools\nc# = functools.reduce(lambda f, g: lambda x: g(f(x)), '
        '[lambda x: x + «1», lambda x: x * 3])',
        use='c#(2)', since=(3, 11)),
    "decorator three deep": dict(
        top='def d#(k):\n    def mid(f):\n        def inner(*a):\n'
        '            return f(*a) + k + «1»\n        return inner\n    return mid\n'
        '@d#(«2»)\ndef h#():\n    return «3»',
        use='h#()'),
    "update_wrapper without wrapped": dict(
        top='import functools\ndef deco#(f):\n    def g(*a):\n        return f(*a) + «1»\n'
        '    functools.update_wrapper(g, f)\n    del g.__wrapped__\n    return g\n@deco#\n'
        'def h#():\n    return «2»',
        use='h#()'),
    "globals update at import": dict(top="globals().update({'gu#': «1»})", use='gu#'),
    "setattr on own module": dict(top="import sys\nsetattr(sys.modules[__name__], 'sa#', lambda: «1»)", use='sa#()'),
    "class patched elsewhere": dict(
        files={'m#': 'class C:\n    def f(self):\n        return 0', 'n#': 'from . import m#\nm#.C.f = lambda self: «1»'},
        top='from . import m#, n#',
        use='m#.C().f()'),
    "instance patched elsewhere": dict(
        files={'m#': 'class C:\n    k = 0\nobj = C()', 'n#': 'from .m# import obj\nobj.k = «1»'},
        top='from . import n#\nfrom .m# import obj as ob#',
        use='ob#.k'),
    "annotations read": dict(
        top='def f#(x: «1»):\n    return 0',
        use="f#.__annotations__['x'] if not isinstance(f#.__annotations__['x'], str) else "
        "int(f#.__annotations__['x'])"),
    "signature read": dict(
        top='import inspect\ndef f#(a=«1»):\n    return 0',
        use="inspect.signature(f#).parameters['a'].default"),
    "random instance": dict(
        top='import random\nr# = random.Random(«1»)',
        body='import copy',
        use='copy.deepcopy(r#).randrange(10**9)'),
    "numpy generator": dict(
        top='import numpy as np, copy\ng# = np.random.default_rng(«1»)',
        use='int(copy.deepcopy(g#).integers(10**9))',
        needs='numpy'),
    "frozenset of functions": dict(
        top='def a#():\n    return «1»\ndef b#():\n    return «2»\nfs# = frozenset([a#, b#])',
        use='sum(f() for f in fs#)'),
    "dict keyed by class": dict(
        top='class A#:\n    k = «1»\nclass B#:\n    k = «2»\nT# = {A#: 3, B#: 5}',
        use='sum(c.k * v for c, v in T#.items())'),
    "nested closure default": dict(
        top='def outer#(k):\n    class C:\n        def f(self, x=k):\n'
        '            return x + «1»\n    return C\nC# = outer#(«2»)',
        use='C#().f()'),
    "import in class body": dict(
        files={'m#': 'def f():\n    return «1»'},
        top='class C#:\n    from .m# import f as ff\n    ff = staticmethod(ff)',
        use='C#.ff()'),
    "kernel": dict(
        top='import ingot as qd\nK# = «1»\n@qd.func\ndef fn#(x):\n    return x + «2»\n'
        '@qd.kernel\ndef ker#(x: qd.i32) -> qd.i32:\n    return fn#(x) * 3 + K#\n',
        body="qd.init(log_level='error')",
        use='ker#(2)'),
    "kernel in class": dict(
        top='import ingot as qd\n@qd.data_oriented\nclass D#:\n    def __init__(self):\n'
        '        self.k = «1»\n    @qd.kernel\n    def f(self, x: qd.i32) -> qd.i32:\n'
        '        return x + self.k + «2»\n',
        body="qd.init(log_level='error')\nd# = D#()",
        use='d#.f(2)'),
    "thread target": dict(
        top='import threading\ndef f#(o):\n    o.append(«1»)\ndef g#():\n    o = []\n'
        '    t = threading.Thread(target=f#, args=(o,))\n    t.start()\n    t.join()\n'
        '    return o[0]',
        use='g#()'),
    "struct object": dict(top="import struct\nS# = struct.Struct(str(1 + («1» & 31)) + 'i')", use='S#.size'),
    "hasattr of module": dict(
        files={'m#': '«1?def extra():\n    pass»'},
        top='from . import m#',
        use="hasattr(m#, 'extra')"),
    "dir of module": dict(
        files={'m#': 'A = 1\n«1?B = 2»'},
        top='from . import m#',
        use="len([n for n in dir(m#) if n in 'AB'])"),
    "decorator order": dict(
        top='def a#(f):\n    return lambda: f() + 1\ndef b#(f):\n    return lambda: f() * 2\n'
        '«1?@a#»\n@b#\n«2?@a#»\ndef h#():\n    return 5',
        use='h#()'),
    "default mutated": dict(top='def f#(x=[]):\n    return sum(x)\nf#.__defaults__[0].append(«1»)', use='f#()'),
    "Polynomial": dict(
        top='import numpy as np\np# = np.polynomial.Polynomial([1, «1»])',
        use='int(p#(2))',
        needs='numpy'),
    "recarray": dict(
        top="import numpy as np\nr# = np.rec.array([(1, «1»)], dtype=[('a', 'i8'), ('b', "
        "'i8')])",
        use='int(r#.b[0])',
        needs='numpy'),
    "post_init": dict(
        top='import dataclasses\n@dataclasses.dataclass\nclass D#:\n    a: int = 1\n'
        '    def __post_init__(self):\n        self.b = self.a + «1»',
        use='D#().b'),
    "factory lambda": dict(
        top='import dataclasses\n@dataclasses.dataclass\nclass D#:\n'
        '    a: list = dataclasses.field(default_factory=lambda: [«1»])',
        use='D#().a[0]'),
    "library list set": dict(top="import json\njson.TABLE$# = [«1»]", use="json.TABLE$#[0]"),
    "library dict set": dict(top="import json\njson.DICT$# = {'a': «1»}", use="json.DICT$#['a']"),
    "library tuple set": dict(top="import json\njson.TUP$# = (0, «1»)", use="json.TUP$#[1]"),
    "library partial set": dict(
        top="import json, functools\ndef h#(a):\n    return a + «2»\njson.P$# = functools.partial(h#, «1»)",
        use="json.P$#()"),
    "library bound set": dict(
        top="import json\nclass C#:\n    def f(self):\n        return «1»\njson.B$# = C#().f",
        use="json.B$#()"),
    "library class data set": dict(top="import json\njson.JSONDecoder.item$# = «1»",
        use="json.JSONDecoder.item$#"),
    "library class list set": dict(top="import json\njson.JSONDecoder.lst$# = [«1»]",
        use="json.JSONDecoder.lst$#[0]"),
    "library class method data": dict(alone=True,
        top="import argparse\nargparse.Namespace.width# = property(lambda self: «1»)",
        use="argparse.Namespace().width#"),
    "library lru": dict(
        top="import json, functools\n@functools.lru_cache\ndef h#():\n    return «1»\njson.L$# = h#",
        use="json.L$#()"),
    "library staticmethod in class": dict(alone=True,
        top="import textwrap\ntextwrap.TextWrapper.sm# = staticmethod(lambda: «1»)",
        use="textwrap.TextWrapper.sm#()"),
    "library classmethod in class": dict(alone=True,
        top="import sched\nsched.scheduler.cm# = classmethod(lambda c: «1»)", use="sched.scheduler.cm#()"),
    "library partialmethod in class": dict(alone=True,
        top="import csv, functools\ndef g#(self, k):\n    return k + «2»\n"
        "csv.Sniffer.pm# = functools.partialmethod(g#, «1»)", use="csv.Sniffer().pm#()"),
    "library class in class": dict(alone=True,
        top="import shlex\nclass I#:\n    def f(self):\n        return «1»\nshlex.shlex.I# = I#",
        use="shlex.shlex.I#().f()"),
    "singledispatch of library": dict(alone=True,
        top="import pkgutil\nclass C#:\n    pass\n@pkgutil.iter_importer_modules.register(C#)\n"
        "def _(i, prefix=''):\n    yield ('x', «1»)", use="list(pkgutil.iter_importer_modules(C#()))[0][1]"),
    "abc of library": dict(alone=True,
        top="import numbers\nclass C#:\n    pass\n«1?numbers.Number.register(C#)\n»",
        use="isinstance(C#(), numbers.Number)"),
    "attr of library function": dict(top="import json\njson.dumps.note$# = «1»", use="json.dumps.note$#"),
    "attr of library class fn": dict(top="import json\njson.JSONDecoder.decode.note$# = «1»",
        use="json.JSONDecoder.decode.note$#"),
    "attr of library function list": dict(top="import json\njson.dumps.lst$# = [«1»]",
        use="json.dumps.lst$#[0]"),
    "from library abc": dict(alone=True,
        top="from numbers import Complex as N#\nclass C#:\n    pass\n«1?N#.register(C#)\n»",
        use="isinstance(C#(), N#)"),
    "from library class data": dict(top="from json import JSONDecoder as J#\nJ#.it$# = «1»", use="J#.it$#"),
    "from library function attr": dict(top="from json import dumps as d#\nd#.it$# = [«1»]", use="d#.it$#[0]"),
    "import inside library abc": dict(alone=True,
        top="import numbers\nclass C#:\n    pass\n«1?numbers.Rational.register(C#)\n»",
        body="from numbers import Rational as nn#", use="isinstance(C#(), nn#)"),
    "attrs on_setattr": dict(needs="attr",
        top="import attr\ndef os#(i, a, v):\n    return v + «1»\n@attr.s(on_setattr=os#)\nclass A#:\n"
        "    a = attr.ib()", body="x# = A#(1)\nx#.a = 5", use="x#.a"),
    "attrs eq key": dict(needs="attr", top="import attr\n@attr.s\nclass A#:\n"
        "    a = attr.ib(eq=lambda v: divmod(v, 2)[1] * 0 + v * (divmod(«1», 2)[1]))", use="A#(1) == A#(3)"),
    "pydantic after": dict(needs="pydantic",
        top="import pydantic, typing\ndef av#(x):\n    return x + «1»\nclass P#(pydantic.BaseModel):\n"
        "    a: typing.Annotated[int, pydantic.AfterValidator(av#)]", use="P#(a=1).a"),
    "pydantic constraint": dict(needs="pydantic", top="import pydantic\nclass P#(pydantic.BaseModel):\n"
        "    a: int = pydantic.Field(default=«1», gt=-«2»)",
        use="P#().a + sum(m.gt for m in P#.model_fields['a'].metadata)"),
    "cdll": dict(top="import ctypes\nL# = ctypes.CDLL(None)", use="L#.abs(-«1»)"),
    "getattr globals": dict(refused=True, top="def h#():\n    return 0\nG# = «1»",
        use="getattr(h#, '__globals__')['G#']"),
    "getattr eval": dict(refused=True, top="import builtins\nG# = «1»", use="getattr(builtins, 'eval')('G#')"),
    "builtins subscript": dict(refused=True, top="G# = «1»",
        use="(__builtins__['eval'] if isinstance(__builtins__, dict) else __builtins__.eval)('G#')"),
    "getattr doc": dict(refused=True, top="def h#():\n    '«1»'\n    return 0",
        use="int(getattr(h#, '__doc__'))"),
    "shadowed builtin": dict(top="def max(a#, b#):\n    return a# + «1»", use="max(1, 2)"),
    "builtin chosen": dict(top="F# = [min, max][divmod(«1», 2)[1]]", use="F#(1, 7)"),
    "decorator with lambda arg": dict(
        top="def deco#(h):\n    def w(f):\n        def g(*a):\n            return h(f(*a))\n"
        "        return g\n    return w\n@deco#(lambda v: v + «1»)\ndef f#():\n    return «2»", use="f#()"),
    "attrgetter of module": dict(files={"m#": "def f():\n    return «1»"},
        top="from . import m#\nimport operator\nA# = operator.attrgetter('f')", use="A#(m#)()"),
    "singledispatch lambda": dict(
        top="import functools\n@functools.singledispatch\ndef f#(x):\n    return 0\n"
        "f#.register(int, lambda x: x + «1»)", use="f#(3)"),
    "own tzinfo": dict(top="import datetime\nclass Z#(datetime.tzinfo):\n    def utcoffset(self, d):\n"
        "        return datetime.timedelta(minutes=divmod(«1», 600)[1])\n"
        "D# = datetime.datetime(2020, 1, 1, tzinfo=Z#())", use="D#.utcoffset().seconds"),
    "registry metaclass in other file": dict(
        files={"m#": "R = {}\nclass M(type):\n    def __init__(c, n, b, d):\n        super().__init__(n, b, d)\n"
            "        R[n] = c\nclass B(metaclass=M):\n    pass",
        "n#": "from .m# import B\nclass X(B):\n    def f(self):\n        return «1»"},
        top="from . import n#, m#", use="m#.R['X']().f()"),
    "plugin package": dict(files={"pl#/__init__": "from . import a, b\nALL = [a, b]",
        "pl#/a": "def f():\n    return «1»",
        "pl#/b": "def f():\n    return «2»"}, top="from .pl# import ALL as ALL#",
        use="sum(m.f() for m in ALL#)"),
    "re-export chain": dict(files={"a#": "from .b# import f",
        "b#": "from .c# import f",
        "c#": "def f():\n    return «1»\ndef g():\n    return «-2»"}, top="from .a# import f as f#",
        use="f#()"),
    "star of star": dict(files={"a#": "from .b# import *",
        "b#": "v# = «1»\nw# = «-2»"}, top="from .a# import *", use="v#"),
    "type alias chain": dict(
        top="import typing\nclass A#:\n    def f(self):\n        return «1»\nX# = typing.List[A#]\n"
        "Y# = typing.Dict[str, X#]\ndef g#(y: Y#):\n    return y['a'][0].f()", use="g#({'a': [A#()]})"),
    "closure dict mutated": dict(
        top="def mk#():\n    d = {}\n    def put(k, v):\n        d[k] = v\n    def get(k):\n"
        "        return d[k]\n    return put, get\nput#, get# = mk#()\nput#('a', «1»)", use="get#('a')"),
    "json encoder instance": dict(
        top="import json\ndef d#(o):\n    return «1»\nENC# = json.JSONEncoder(default=d#)",
        use="int(ENC#.encode(object()))"),
    "re scanner": dict(top="import re\ndef cb#(s, t):\n    return «1»\nSC# = re.Scanner([('a', cb#)])",
        use="SC#.scan('a')[0][0]"),
    "argparse type": dict(
        top="import argparse\ndef conv#(s):\n    return int(s) + «1»\nAP# = argparse.ArgumentParser()\n"
        "AP#.add_argument('--a', type=conv#, default='«2»')", use="AP#.parse_args([]).a"),
    "array_function": dict(needs="numpy",
        top="import numpy as np#\nclass A#:\n    def __array_function__(self, f, t, a, k):\n"
        "        return «1»", use="np#.sum(A#())"),
    "pydantic validator": dict(needs="pydantic",
        top="import pydantic\nclass P#(pydantic.BaseModel):\n    a: int\n    @pydantic.field_validator('a')\n"
        "    @classmethod\n    def v(cls, x):\n        return x + «1»", use="P#(a=1).a"),
    "pydantic model validator": dict(needs="pydantic",
        top="import pydantic\nclass P#(pydantic.BaseModel):\n    a: int\n"
        "    @pydantic.model_validator(mode='after')\n    def v(self):\n        self.a += «1»\n"
        "        return self", use="P#(a=1).a"),
    "pydantic type adapter": dict(needs="pydantic",
        top="import pydantic, typing\ndef av#(x):\n    return x + «1»\n"
        "TA# = pydantic.TypeAdapter(typing.Annotated[int, pydantic.AfterValidator(av#)])",
        use="TA#.validate_python(1)"),
    "attrs converter lambda": dict(needs="attr",
        top="import attr\n@attr.s\nclass A#:\n    a = attr.ib(converter=lambda x: x + «1»)", use="A#(1).a"),
    "attrs takes self": dict(needs="attr", top="import attr\n@attr.s\nclass A#:\n    a = attr.ib()\n"
        "    b = attr.ib(default=attr.Factory(lambda self: self.a + «1», takes_self=True))", use="A#(1).b"),
    "kernel with func chain": dict(
        top="import ingot as qd#\n@qd#.func\ndef g#(x):\n    return x + «1»\n@qd#.func\ndef f#(x):\n"
        "    return g#(x) + «2»\n@qd#.kernel\ndef k#(x: qd#.i32) -> qd#.i32:\n    return f#(x) + K#\n"
        "K# = «3»", use="k#(1)"),
    "kernel data oriented": dict(
        top="import ingot as qd#\n@qd#.data_oriented\nclass S#:\n    def __init__(self):\n"
        "        self.n = «1»\n    @qd#.func\n    def h(self):\n        return «3»\n    @qd#.kernel\n"
        "    def k(self) -> qd#.i32:\n        return self.n + self.h() + «2»", use="S#().k()"),
    "kernel static function": dict(
        top="import ingot as qd#\ndef cst#():\n    return «1»\n@qd#.kernel\ndef k#() -> qd#.i32:\n"
        "    return qd#.static(cst#())", use="k#()"),
    "dataclass factory lambda with global": dict(
        top="import dataclasses\nK# = «1»\n@dataclasses.dataclass\nclass C#:\n"
        "    a: list = dataclasses.field(default_factory=lambda: [K#, «2»])", use="sum(C#().a)"),
    "enum from dict": dict(top="import enum\nE# = enum.Enum('E#', {'A': «1», 'B': 0})", use="E#.A.value"),
    "exception notes": dict(top="E# = ValueError('a')\nE#.code = «1»", use="E#.code"),
    "subpackage __init__ side effects": dict(files={"s#/__init__": "REG = {}\nfrom . import a",
        "s#/a": "from . import REG\nREG['k'] = «1»"}, body="from . import s#", use="s#.REG['k']"),
    "module in container": dict(files={"m#": "def f():\n    return «1»"},
        top="from . import m#\nMODS# = {'a': m#}", use="MODS#['a'].f()"),
    "init subclass registry on base": dict(
        top="class B#:\n    reg = []\n    def __init_subclass__(cls):\n        B#.reg.append(cls)\n"
        "class C#(B#):\n    def f(self):\n        return «1»", use="sum(c().f() for c in B#.reg)"),
    "unrelated sibling class": dict(
        top="class B#:\n    def f(self):\n        return «1»\nclass Other#(B#):\n    def g(self):\n"
        "        return «-2»", use="B#().f()"),
    "contextvar set": dict(refused=True,
        top="import contextvars\nV# = contextvars.ContextVar('v#', default=0)\nV#.set(«1»)", use="V#.get()"),
    "pkgutil walk": dict(refused=True, files={"pl#/__init__": "",
        "pl#/a": "def f():\n    return «1»"}, top="from . import pl#\nimport pkgutil, importlib",
        body="t# = 0\nfor i# in pkgutil.iter_modules(pl#.__path__):\n"
        "    t# += importlib.import_module(pl#.__name__ + '.' + i#.name).f()", use="t#"),
    "import_module constant global": dict(refused=True, files={"m#": "def f():\n    return «1»"},
        top="import importlib\nNAME# = '$.m#'", use="importlib.import_module(NAME#).f()"),
}
