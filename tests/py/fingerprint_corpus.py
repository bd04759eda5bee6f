"""Values whose strict fingerprints must be the same in every process, under every hash seed
and on every Python: `python fingerprint_corpus.py` prints one line per value."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import types
import uuid

LIMIT = 7
TABLE = {"a": 1, "b": (2, 3)}


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Name(str, enum.Enum):
    A = "a"


class Flags(enum.Flag):
    R = 1
    W = 2
    X = 4


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Settings:
    steps: int
    solver: str = "cg"
    tags: set = dataclasses.field(default_factory=set)
    backend: str = dataclasses.field(default="cpu", metadata={"fingerprint": False})


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    y: object = None


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Plain:
    def __init__(self, **state):
        self.__dict__.update(state)

    def method(self, k):
        return helper(k) + LIMIT


class Reduced:
    def __init__(self, v):
        self.v = v

    def __reduce__(self):
        return (Reduced, (self.v,), None)


class MyDict(dict):
    pass


class MyStr(str):
    pass


class MyList(list):
    __slots__ = ("extra",)


def helper(x):
    """Doc."""
    return x * 2  # comment


def caller(x, y=LIMIT):
    total = 0
    for k in range(y):
        try:
            total += helper(x) + TABLE["a"]
        except (ValueError, KeyError) as e:
            raise RuntimeError(f"bad {x!r:>{y}}") from e
    return [t for t in (total, y) if t] and operator.add(total, 1)


def recursive(n):
    return n and recursive(n - 1)


@functools.lru_cache(maxsize=None)
def cached(x):
    return helper(x)


def decorator(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args) + LIMIT

    return wrapper


@decorator
def decorated(x):
    return x


class Meta(type):
    def build(cls):
        return cls(LIMIT)


class Tool(metaclass=Meta):
    """What code works on: counts with its text."""

    def __init__(self, size):
        self.size, self.next = size, None

    def run(self, x, opts=None):
        return helper(x) + self.size + (opts or Options()).first

    def __call__(self, x):
        return self.run(x)


class Kind(enum.Enum):
    ONE = 1

    def tool(self):
        return TOOLS[self.value]

    @classmethod
    def _missing_(cls, value):
        return cls.ONE


@dataclasses.dataclass(order=True)
class Options:
    first: int = LIMIT
    rest: list = dataclasses.field(default_factory=lambda: [1, 2], compare=False)


TOOLS = {1: Tool(1), 2: Tool.build()}
TOOLS[1].next = TOOLS[2]
TOOLS[2].next = TOOLS[1]


def working(x, kind=Kind.ONE, limit=decimal.Decimal(3)):
    return TOOLS[2].run(x) + kind.tool().next.size + PARTIAL() + limit


PARTIAL = functools.partial(helper, 3)


def cyclic():
    a, b = [], {}
    a.append(b)
    b["up"] = a
    b["also"] = {"b": b, "a": a}
    return a


def parents():
    root = Plain(name="root", children=[])
    for k in range(5):
        child = Plain(name=f"c{k % 2}", parent=root, children=[])
        root.children.append(child)
    return root


def deep(n):
    value = ()
    for _ in range(n):
        value = (value,)
    return value


def corpus():
    shared = ["shared", {"k": (1, 2)}]
    slotted = Slotted(1)
    lists = MyList([1, 2])
    lists.extra = "more"
    texts = MyStr("text")
    texts.note = 1
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    ordered.move_to_end("b")
    yield from {
        "none": None, "true": True, "int": 1, "negative": -1, "big": 2**200, "bigger": -(3**900),
        "float": 1.0, "zero": -0.0, "nan": float("nan"), "inf": float("-inf"),
        "complex": 1 + 2j, "str": "text", "empty": "", "latin": "é", "wide": "Ω€", "astral": "🎈",
        "surrogate": "\ud800", "long str": "x" * 1000, "bytes": b"bytes", "long bytes": b"y" * 999,
        "bytearray": bytearray(b"z"), "ellipsis": ..., "tuple": (1, "a", None), "list": [1, [2, [3]]],
        "dict": {"a": 1, 2: "b", (3, 4): None, None: 1.5}, "set": {"a", "b", "c", 1, 2.5, None},
        "frozenset": frozenset({"x", "y", ("z", frozenset({1}))}), "nested": {"s": {1, 2}, "d": {}},
        "many": {f"key{k}": k for k in range(300)}, "many set": {f"s{k}" for k in range(300)},
        "deque": collections.deque([1, 2], maxlen=4), "ordered": ordered,
        "default": collections.defaultdict(list, {"a": [1]}), "counter": collections.Counter("abca"),
        "proxy": types.MappingProxyType({"b": 1, "a": 2}), "keys": {"p": 1, "q": 2}.keys(),
        "values": {"p": 1, "q": 2}.values(), "items": {"p": 1, "q": 2}.items(),
        "enum": Colour.RED, "enum class": Colour, "int enum": Level.HIGH, "str enum": Name.A,
        "flag": Flags.R | Flags.X, "namedtuple": Point(1, 2), "settings": Settings(3, tags={"t"}),
        "frozen": Frozen(Frozen(1, 2), [Frozen(None)]), "slotted": slotted,
        "plain": Plain(a=1, b={"c": 2}), "reduced": Reduced([1, 2]), "my dict": MyDict(a=1),
        "my list": lists, "my str": texts, "shared": [shared, shared, list(shared)],
        "cyclic": cyclic(), "parents": parents(), "deep": deep(20000),
        "class": Settings, "builtin class": dict, "none class": type(None), "stdlib": collections.Counter,
        "function": helper, "caller": caller, "recursive": recursive, "cached": cached,
        "decorated": decorated, "method": Plain(a=1).method, "working": working, "tool": TOOLS[1], "kind": Kind, "options": Options,
        "builtin": len, "bound": [1].append,
        "partial": functools.partial(helper, 3), "module": types, "operator": operator.itemgetter(1, 2),
        "range": range(1, 9, 2), "slice": slice(1, None, 2), "decimal": decimal.Decimal("1.50"),
        "fraction": fractions.Fraction(1, 3), "date": datetime.date(2024, 2, 29),
        "delta": datetime.timedelta(seconds=5), "uuid": uuid.UUID(int=5),
        "path": pathlib.PurePosixPath("/a/b"), "exception": ValueError("x", 1),
        "namespace": types.SimpleNamespace(b=1, a=[2]), "property": Plain.method,
    }.items()
    try:
        import numpy as np
    except ImportError:
        return
    record = np.zeros(3, dtype=[("a", "i1"), ("b", "f8")])
    yield from {
        "np int": np.int32(1), "np float": np.float64(1), "np bool": np.bool_(True),
        "np str": np.str_("s"), "np time": np.datetime64("2024-02-29"), "np dtype": np.dtype("<f4"),
        "np record dtype": record.dtype, "np array": np.arange(12, dtype="<i4").reshape(3, 4),
        "np strided": np.arange(24, dtype="<i4").reshape(3, 8)[:, ::2], "np record": record,
        "np object": np.array([1, "a", None], dtype=object), "np scalar class": np.float32,
        "np ufunc": np.add, "np times": np.array(["2024-02-29"], dtype="M8[D]"),
        "np empty": np.zeros((0, 3)), "np zero": np.array(1.5),
    }.items()


# What __reduce_ex__ gives differs between versions of Python or of the module: no such
# value is in the corpus but these, which are compared only within one version.
EXEMPT = {
    "path",  # 3.12 gives the parts, 3.13 the whole string
    "fraction",  # 3.10 gives its text, later ones two ints
}


def main():
    import ingot

    for name, value in corpus():
        print(f"{name}\t{ingot.fingerprint(value)}")


if __name__ == "__main__":
    main()
