"""Nothing that a kernel read goes stale, and nothing that it did not read causes a compile.

Each test changes something between launches and compares with what Python says; `compiles`
counts how often the kernel was lowered. docs/caching.md names these tests in its table."""

import collections
import dataclasses
import decimal
import enum
import fractions
import importlib
import math
import operator
import subprocess
import sys
import textwrap
import types

import pytest

import ingot as qd
from ingot import _core

A = qd.types.ndarray()


@pytest.fixture(autouse=True)
def fresh(target):
    qd.init()


def launch(kernel, *args):
    a = qd.ndarray(qd.f64, 1)
    kernel(a, *args)
    return a[0]


class compiles:
    """with compiles(n): the kernels launched inside are lowered n times in all."""

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        self.before = _core.counters()["lowerings"]

    def __exit__(self, *failed):
        if failed[0] is None and not _core.settings()["paranoid"]:
            assert _core.counters()["lowerings"] - self.before == self.n


def module(name, text, folder, monkeypatch):
    """A module of its own, importable by that name until the test ends."""
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


# ---- calls of listed functions ---------------------------------------------------------------

VALUE = None

CALLS = {
    "math.prod": (lambda: math.prod(VALUE), (2, 3), (4, 3)),
    "sorted": (lambda: sorted(VALUE)[0], (2, 3), (1, 3)),
    "repr": (lambda: len(repr(VALUE)), (2, 3), (2, 333)),
    "math.fsum": (lambda: math.fsum(VALUE), (2.0, 3.0), (2.0, 4.0)),
    "math.dist": (lambda: math.dist(VALUE, (0.0, 0.0)), (3.0, 4.0), (6.0, 8.0)),
    "floor of a Fraction": (lambda: math.floor(VALUE), fractions.Fraction(7, 2), fractions.Fraction(9, 2)),
    "ceil of a Decimal": (lambda: math.ceil(VALUE), decimal.Decimal("1.5"), decimal.Decimal("2.5")),
    "operator.getitem": (lambda: operator.getitem(VALUE, 1), (2, 3), (2, 5)),
    "operator.getitem of a dict": (lambda: operator.getitem(VALUE, "a"), {"a": 1}, {"a": 2}),
    "operator.index": (lambda: operator.index(VALUE), True, False),
    "min": (lambda: operator.add(min(VALUE), 0), [4, 2], [4, 3]),
    "len of a set": (lambda: operator.add(len(VALUE), 0), {1, 2}, {1, 2, 3}),
    "sum of a frozenset": (lambda: math.prod(VALUE), frozenset({2, 3}), frozenset({2, 5})),
    "max of a range": (lambda: operator.add(max(VALUE), 0), range(3), range(5)),
    "nested tuples": (lambda: math.prod(operator.getitem(VALUE, 0)), ((2, 3), 1), ((2, 4), 1)),
    "a list within a tuple": (lambda: len(repr(VALUE)), ([1], 1), ([1, 2], 1)),
    "divmod": (lambda: operator.getitem(divmod(VALUE, 5), 0), 17, 22),
}


def kernel_of(name):
    """A kernel that computes the expression of a case while compiling."""
    source = {
        "math.prod": "math.prod(VALUE)", "sorted": "sorted(VALUE)[0]", "repr": "len(repr(VALUE))",
        "math.fsum": "math.fsum(VALUE)", "math.dist": "math.dist(VALUE, ORIGIN)",
        "floor of a Fraction": "math.floor(VALUE)", "ceil of a Decimal": "math.ceil(VALUE)",
        "operator.getitem": "operator.getitem(VALUE, 1)",
        "operator.getitem of a dict": "operator.getitem(VALUE, 'a')",
        "operator.index": "operator.index(VALUE)", "min": "operator.add(min(VALUE), 0)",
        "len of a set": "operator.add(len(VALUE), 0)", "sum of a frozenset": "math.prod(VALUE)",
        "max of a range": "operator.add(max(VALUE), 0)",
        "nested tuples": "math.prod(operator.getitem(VALUE, 0))",
        "a list within a tuple": "len(repr(VALUE))",
        "divmod": "operator.getitem(divmod(VALUE, 5), 0)",
    }[name]
    text = f"def k(a: A):\n    n = qd.static({source})\n    a[0] = n\n"
    scope = {"A": A, "qd": qd, "math": math, "operator": operator, "VALUE": None, "ORIGIN": (0.0, 0.0)}
    exec(text, scope)
    return qd.kernel(scope["k"], source=text), scope


@pytest.mark.parametrize("name", CALLS)
def test_listed_functions_of_containers(name):
    expected, before, after = CALLS[name]
    k, scope = kernel_of(name)
    for value in (before, after, before):
        scope["VALUE"] = globals()["VALUE"] = value
        assert launch(k) == expected()


PROGRAM = """
import math, sys
import ingot as qd
qd.init()
A = qd.types.ndarray()
DIMS = (int(sys.argv[1]), 3)
def area(d):
    return d[0] * d[1]
@qd.kernel
def k(a: A):
    n = qd.static(math.prod(DIMS))
    m = qd.static(area(DIMS))
    a[0] = n
    for v in qd.static(sorted(DIMS)):
        a[0] = a[0] * 10 + v
    a[0] = a[0] * 100 + m
a = qd.ndarray(qd.f64, 1)
k(a)
print(a[0])
"""


def test_calls_in_the_next_process(tmp_path, cache_dir):
    (tmp_path / "program.py").write_text(PROGRAM)
    for n in (2, 4, 2):
        done = subprocess.run([sys.executable, str(tmp_path / "program.py"), str(n)], capture_output=True,
                              text=True, check=True)
        low, high = sorted((n, 3))
        assert float(done.stdout) == ((n * 3 * 10 + low) * 10 + high) * 100 + n * 3


# ---- calls of Python functions ------------------------------------------------------------------

CALLED = 0


def terms(sim):
    global CALLED
    CALLED += 1
    return sim.order + 1


@qd.data_oriented
class Sim:
    def __init__(self, order):
        self.order = order

    @qd.kernel
    def run(self, a: A):
        for i in qd.static(range(terms(self))):
            a[0] += 1

    def count(self):
        return self.order * 2

    @qd.kernel
    def by_method(self, a: A):
        n = qd.static(self.count())
        a[0] = n


def test_calls_with_objects():
    three, five = Sim(3), Sim(5)
    assert launch(three.run) == 4 and launch(five.run) == 6
    three.order = 9
    assert launch(three.run) == 10 and launch(five.run) == 6


def test_calls_of_methods():
    sim = Sim(3)
    assert launch(sim.by_method) == 6
    sim.order = 4
    assert launch(sim.by_method) == 8


DIMS = (2, 3)


def area(dims):
    global CALLED
    CALLED += 1
    return dims[0] * dims[1]


@qd.kernel
def uses_area(a: A):
    n = qd.static(area(DIMS))
    a[0] = n


@pytest.mark.parametrize("kind", [tuple, list])
def test_calls_with_containers(kind, monkeypatch):
    for dims in ((2, 3), (4, 3), (2, 3)):
        monkeypatch.setitem(globals(), "DIMS", kind(dims))
        assert launch(uses_area) == dims[0] * dims[1]
    if kind is list:
        DIMS.append(1)
        DIMS[0] = 9
        assert launch(uses_area) == 27


def test_immutable_arguments_are_not_called_again(monkeypatch):
    monkeypatch.setitem(globals(), "DIMS", (5, 3))
    launch(uses_area)
    before = CALLED
    launch(uses_area)
    monkeypatch.setitem(globals(), "unrelated", 1)
    launch(uses_area)
    assert CALLED == before or _core.settings()["paranoid"]


def test_mutable_arguments_are_called_at_each_launch():
    sim = Sim(2)
    launch(sim.run)
    before = CALLED
    launch(sim.run)
    assert CALLED > before


def test_explain_tells_what_a_launch_calls(monkeypatch):
    sim = Sim(2)
    launch(sim.run)
    (why,) = qd.explain(sim.run, launch=True)
    assert why.startswith("terms(...) is called: ") and "tuples" in why
    monkeypatch.setitem(globals(), "DIMS", (7, 3))
    launch(uses_area)
    assert qd.explain(uses_area, launch=True) == []
    monkeypatch.setitem(globals(), "DIMS", (8, 3))
    launch(uses_area)
    if _core.settings()["target"] == 1:  # the interpreter: nothing is compiled
        return
    why = qd.explain(uses_area)[0]  # against the nearest compile, which may be another target's
    assert why in ("DIMS: (7, 3) -> (8, 3)", "first compile") or why.startswith("setting target: ")


@qd.func
def twice(x: qd.template()):
    return qd.static(terms(x)) * 2


LEFT, RIGHT = Sim(1), Sim(2)


@qd.kernel
def by_func(a: A):
    a[0] = twice(LEFT) * 100 + twice(RIGHT)


def test_calls_inside_funcs(monkeypatch):
    assert launch(by_func) == 406
    monkeypatch.setitem(globals(), "RIGHT", Sim(7))
    assert launch(by_func) == 416
    monkeypatch.setattr(LEFT, "order", 2)
    assert launch(by_func) == 616
    monkeypatch.setitem(globals(), "LEFT", RIGHT)
    assert launch(by_func) == 1616


def with_defaults(x, pair=(1, 2), *, n=2):
    return x * n + sum(pair)


def with_list(x, items=[1, 2]):  # noqa: B006
    return x * len(items)


@qd.kernel
def uses_defaults(a: A):
    n = qd.static(with_defaults(3))
    m = qd.static(with_list(3))
    a[0] = n * 100 + m


def test_defaults_of_called_functions(monkeypatch):
    assert launch(uses_defaults) == 906
    monkeypatch.setitem(with_defaults.__kwdefaults__, "n", 5)
    assert launch(uses_defaults) == 1806
    monkeypatch.setattr(with_defaults, "__defaults__", ((1, 3),))
    assert launch(uses_defaults) == 1906
    with_list.__defaults__[0].append(3)
    try:
        assert launch(uses_defaults) == 1909
    finally:
        with_list.__defaults__[0].pop()


def with_one_default(n=3):
    return n


@qd.kernel
def uses_one_default(a: A):
    n = qd.static(with_one_default())
    a[0] = n


def test_defaults_that_are_assigned(monkeypatch):
    assert launch(uses_one_default) == 3
    monkeypatch.setattr(with_one_default, "__defaults__", (4,))
    assert launch(uses_one_default) == 4


STATE = types.SimpleNamespace(n=3)


def state():
    return STATE


@qd.kernel
def uses_state(a: A):
    n = qd.static(state().n)
    a[0] = n


def test_results_that_change_in_place(monkeypatch):
    assert launch(uses_state) == 3
    monkeypatch.setattr(STATE, "n", 4)
    assert launch(uses_state) == 4


@dataclasses.dataclass(frozen=True)
class Shape:
    n: int
    pair: tuple = (1, 2)


SHAPE = Shape(3)


def measure(shape):
    global CALLED
    CALLED += 1
    return shape.n * 10 + sum(shape.pair)


@qd.kernel
def uses_shape(a: A):
    n = qd.static(measure(SHAPE))
    a[0] = n


def test_frozen_dataclasses_by_members(monkeypatch):
    assert launch(uses_shape) == 33
    before = CALLED
    monkeypatch.setitem(globals(), "SHAPE", Shape(3))
    assert launch(uses_shape) == 33 and launch(uses_shape) == 33
    assert CALLED == before or _core.settings()["paranoid"]
    monkeypatch.setitem(globals(), "SHAPE", Shape(4, (1, 1)))
    assert launch(uses_shape) == 42
    object.__setattr__(SHAPE, "n", 5)
    assert launch(uses_shape) == 52


def make_shape(factor):
    @dataclasses.dataclass(frozen=True)
    class Local:
        n: int

        def size(self):
            return self.n * factor

    return Local(2)


def size_of(shape):
    return shape.size()


LOCAL = make_shape(1)


@qd.kernel
def uses_local(a: A):
    n = qd.static(size_of(LOCAL))
    a[0] = n


def test_classes_of_equal_names(monkeypatch):
    assert launch(uses_local) == 2
    monkeypatch.setitem(globals(), "LOCAL", make_shape(10))
    assert launch(uses_local) == 20


ARRAYS = [qd.ndarray(qd.f64, 1), qd.ndarray(qd.f64, 1)]


def pick(i):
    return ARRAYS[i]


@qd.kernel
def uses_picked(a: A):
    a[0] = qd.static(pick(0))[0]


def test_calls_that_give_arrays():
    ARRAYS[0].fill(3)
    ARRAYS[1].fill(4)
    assert launch(uses_picked) == 3
    ARRAYS.reverse()
    try:
        assert launch(uses_picked) == 4
    finally:
        ARRAYS.reverse()


# ---- modules, funcs and classes that are replaced ------------------------------------------------


def test_modules_replaced_by_equal_ones(tmp_path, monkeypatch):
    kern = module("stale_kern", """
        import ingot as qd
        A = qd.types.ndarray()
        cfg = None
        @qd.kernel
        def k(a: A):
            a[0] = cfg.N
        @qd.kernel
        def fill(v: qd.f64):
            for i in range(cfg.t.shape[0]):
                cfg.t[i] = v
    """, tmp_path, monkeypatch)

    def make(n):
        m = types.ModuleType("cfg")
        m.N, m.t = n, qd.ndarray(qd.f64, 2)
        return m

    for swap in range(3):
        kern.cfg = make(3)
        assert launch(kern.k) == 3 and launch(kern.k) == 3
        kern.cfg.N = 4 + swap
        assert launch(kern.k) == 4 + swap
        kern.fill(1.0)
        kern.fill(2.0)
        old, kern.cfg.t = kern.cfg.t, qd.ndarray(qd.f64, 2)
        kern.fill(5.0)
        assert kern.cfg.t.to_numpy().tolist() == [5, 5] and old.to_numpy().tolist() == [2, 2]


def test_modules_imported_again(tmp_path, monkeypatch):
    module("stale_conf", "N = 3\n", tmp_path, monkeypatch)
    kern = module("stale_user", """
        import ingot as qd, stale_conf as conf
        A = qd.types.ndarray()
        @qd.kernel
        def k(a: A):
            a[0] = conf.N
    """, tmp_path, monkeypatch)
    assert launch(kern.k) == 3
    del sys.modules["stale_conf"]
    kern.conf = importlib.import_module("stale_conf")
    assert launch(kern.k) == 3
    kern.conf.N = 7
    assert launch(kern.k) == 7
    importlib.reload(kern.conf)
    assert launch(kern.k) == 3


def test_module_attributes_that_move(tmp_path, monkeypatch):
    kern = module("stale_moves", """
        import ingot as qd
        A = qd.types.ndarray()
        cfg = None
        @qd.kernel
        def k(a: A):
            a[0] = cfg.obj.n
    """, tmp_path, monkeypatch)
    cfg = kern.cfg = types.ModuleType("cfg")
    cfg.obj = types.SimpleNamespace(n=3)
    value = [3]
    cfg.__getattr__ = lambda name: types.SimpleNamespace(n=value[0])
    assert launch(kern.k) == 3 and launch(kern.k) == 3
    del cfg.obj
    assert launch(kern.k) == 3
    value[0] = 4
    assert launch(kern.k) == 4

    class Live(types.ModuleType):
        obj = property(lambda self: types.SimpleNamespace(n=value[0]))

    cfg.obj = types.SimpleNamespace(n=5)
    assert launch(kern.k) == 5 and launch(kern.k) == 5
    cfg.__class__ = Live
    for value[0] in (9, 9, 10):  # the dictionary, which has the name too, stays as it is
        assert launch(kern.k) == value[0]


FUNCS = """
    import ingot as qd
    SCALE = {n}
    ARRAY = qd.ndarray(qd.f64, 1)
    ARRAY.fill({n})
    @qd.func
    def scaled(x):
        return x * SCALE
    @qd.func
    def stored():
        return ARRAY[0]
"""


def test_funcs_of_equal_text(tmp_path, monkeypatch):
    one = module("stale_one", FUNCS.format(n=2), tmp_path, monkeypatch)
    two = module("stale_two", FUNCS.format(n=2), tmp_path, monkeypatch)
    f, g = one.scaled, one.scaled
    p, q = one.stored, one.stored

    @qd.kernel
    def k(a: A):
        a[0] = f(1.0) * 10 + g(1.0)

    @qd.kernel
    def arrays(a: A):
        a[0] = p() * 10 + q()

    assert launch(k) == 22 and launch(arrays) == 22
    g, q = two.scaled, two.stored
    two.ARRAY.fill(3)
    assert launch(k) == 22 and launch(arrays) == 23
    two.SCALE = 5
    assert launch(k) == 25
    two.ARRAY = qd.ndarray(qd.f64, 1)
    two.ARRAY.fill(7)
    assert launch(arrays) == 27


def test_code_of_a_decorated_function():
    def other():
        return 3.0

    @qd.func
    def f():
        return 2.0

    @qd.kernel
    def k(a: A):
        a[0] = f()

    assert launch(k) == 2
    f.__wrapped__.__code__ = other.__code__
    with pytest.raises(qd.IngotSyntaxError, match="was replaced after it was decorated"):
        launch(k)


def test_code_of_a_kernel():
    def other(a):
        a[0] = 3.0

    @qd.kernel
    def k(a: A):
        a[0] = 2.0

    assert launch(k) == 2
    k.__wrapped__.__code__ = other.__code__
    with pytest.raises(qd.IngotSyntaxError, match="was replaced after it was decorated"):
        launch(k)


def test_descriptors_that_come_later():
    class Late:
        pass

    class Holder:
        n = Late()

    @qd.kernel
    def k(a: A, h: qd.template()):
        a[0] = h.n

    h = Holder()
    h.__dict__["n"] = 3
    assert [launch(k, h) for _ in range(3)] == [3, 3, 3]
    Late.__get__ = lambda self, obj, cls: 9
    Late.__set__ = lambda self, obj, value: None
    assert launch(k, h) == 9


def test_types_of_fields(tmp_path, monkeypatch):
    data = module("stale_data", """
        from __future__ import annotations
        import dataclasses
        import ingot as qd
        T = qd.f32
        @dataclasses.dataclass
        class S:
            x: T
            y: qd.f32
    """, tmp_path, monkeypatch)
    kern = module("stale_reader", """
        import ingot as qd, stale_data
        A = qd.types.ndarray()
        @qd.kernel
        def k(a: A, s: stale_data.S):
            a[0] = s.x
        @qd.kernel
        def y(a: A, s: stale_data.S):
            a[0] = s.y
    """, tmp_path, monkeypatch)
    s = data.S(0.1, 0.1)
    rounded = launch(kern.k, s)
    assert rounded != 0.1 and launch(kern.k, s) == rounded
    data.T = qd.f64
    assert launch(kern.k, s) == 0.1
    data.T = qd.f32
    assert launch(kern.k, s) == rounded
    assert launch(kern.y, s) == rounded and launch(kern.y, s) == rounded
    data.S.__dataclass_fields__["y"].type = qd.f64
    assert launch(kern.y, s) == 0.1
    of_y = data.S.__dataclass_fields__["y"]
    data.S.__dataclass_fields__["y"] = data.S.__dataclass_fields__["x"]
    assert launch(kern.y, s) == rounded and launch(kern.y, s) == rounded
    data.S.__dataclass_fields__ = {**data.S.__dataclass_fields__, "y": of_y}
    assert launch(kern.y, s) == 0.1


# ---- what Python says of a thing ------------------------------------------------------------------


class Off(enum.Enum):
    NO = 0


class Falsy:
    truth = False

    def __bool__(self):
        return self.truth


class Sized:
    n = 0

    def __len__(self):
        return self.n


class Strange(list):
    def __iter__(self):
        return iter([10, 20])


def local_enum():
    class Mode(enum.Enum):
        A = 1

    return Mode


THING = None


@qd.kernel
def truth(a: A):
    if qd.static(THING):
        a[0] = 1


@pytest.mark.parametrize("thing", [Off.NO, set(), {1}, frozenset(), Falsy(), Sized(), "", "0", b"", 0.0, {}, [],
                                   (), [0], collections.deque(), collections.deque([1]), range(0), range(2),
                                   Falsy, math, len, fractions.Fraction(0), decimal.Decimal(1)],
                         ids=lambda t: repr(t)[:20])
def test_truth(thing, monkeypatch):
    monkeypatch.setitem(globals(), "THING", thing)
    assert launch(truth) == bool(thing)


def test_truth_that_changes(monkeypatch):
    falsy, sized = Falsy(), Sized()
    monkeypatch.setitem(globals(), "THING", falsy)
    assert launch(truth) == 0
    falsy.truth = True
    assert launch(truth) == 1
    monkeypatch.setitem(globals(), "THING", sized)
    assert launch(truth) == 0
    sized.n = 2
    assert launch(truth) == 1


ORDERED = collections.OrderedDict(a=1, b=2, c=3)


@qd.kernel
def digits(a: A):
    for v in qd.static(THING):
        a[0] = a[0] * 10 + v


@qd.kernel
def ordered(a: A):
    for v in qd.static(ORDERED.values()):
        a[0] = a[0] * 10 + v


def test_order_of_an_ordered_dict(monkeypatch):
    assert launch(ordered) == 123
    ORDERED.move_to_end("a")
    try:
        assert launch(ordered) == 231
    finally:
        ORDERED.move_to_end("a", last=False)
    assert launch(ordered) == 123


@pytest.mark.parametrize("thing", [Strange([1, 2]), range(4), collections.deque([3, 1]), (4, 2), [7]],
                         ids=lambda t: type(t).__name__)
def test_iteration(thing, monkeypatch):
    monkeypatch.setitem(globals(), "THING", thing)
    want = 0
    for v in thing:
        want = want * 10 + v
    assert launch(digits) == want


@pytest.mark.parametrize("thing", [{1, 2}, frozenset({1}), iter([1, 2])], ids=lambda t: type(t).__name__)
def test_iteration_that_is_refused(thing, monkeypatch):
    monkeypatch.setitem(globals(), "THING", thing)
    with pytest.raises(qd.IngotError):
        launch(digits)


TEXT = "é"


@qd.kernel
def length(a: A):
    n = qd.static(len(TEXT))
    a[0] = n


@pytest.mark.parametrize("text", ["", "é", "ab", "𝔸b", "中文字"])
def test_length_of_text(text, monkeypatch):
    monkeypatch.setitem(globals(), "TEXT", text)
    assert launch(length) == len(text)


ONE, OTHER = local_enum(), None


@qd.kernel
def same_member(a: A):
    if qd.static(ONE.A == OTHER.A):
        a[0] = 1


def test_members_of_enums_of_equal_names(monkeypatch):
    for cls in (ONE, local_enum(), ONE):
        monkeypatch.setitem(globals(), "OTHER", cls)
        assert launch(same_member) == (cls is ONE)


class Odd(enum.Enum):
    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


def test_members_that_compare_themselves_are_refused():
    @qd.kernel
    def k(a: A):
        if qd.static(Odd.A == Odd.B):
            a[0] = 1

    with pytest.raises(qd.IngotTypeError, match="cannot be compared"):
        launch(k)


FIRST = qd.ndarray(qd.f32, 2)
SECOND = FIRST


@qd.kernel
def same_array(a: A):
    if qd.static(FIRST is SECOND):
        a[0] = 1


def test_identity_of_arrays(monkeypatch):
    for other in (FIRST, qd.ndarray(qd.f32, 2), FIRST):
        monkeypatch.setitem(globals(), "SECOND", other)
        assert launch(same_array) == (other is FIRST)


def test_isinstance_of_classes_of_equal_names(monkeypatch):
    def make():
        class K:
            pass

        return K

    first, second = make(), make()
    thing, cls = first(), first

    @qd.kernel
    def k(a: A):
        if qd.static(isinstance(thing, cls)):
            a[0] = 1

    assert launch(k) == 1
    cls = second
    assert launch(k) == 0
    thing = second()
    assert launch(k) == 1


def test_keys_with_a_null_are_refused():
    table = {"a\0b": 3, "a": 4}

    @qd.kernel
    def k(a: A):
        a[0] = table["a\0b"]

    with pytest.raises(qd.IngotValueError, match="null character"):
        launch(k)


MISSING = collections.defaultdict(int, a=1)


@qd.kernel
def has_b(a: A):
    if qd.static("b" in MISSING):
        a[0] = 1
    a[0] += MISSING.get("a", 7) * 10


def test_defaultdict_is_not_filled(monkeypatch):
    assert launch(has_b) == 10 and list(MISSING) == ["a"]
    MISSING["b"] = 2
    assert launch(has_b) == 11
    del MISSING["b"], MISSING["a"]
    try:
        assert launch(has_b) == 70
    finally:
        MISSING["a"] = 1


# ---- what was there, and what nobody read ---------------------------------------------------------

OBJECT = types.SimpleNamespace(x=1)
TABLE = {"a": 1}
ITEMS = [1, 2]


@qd.kernel
def has_x(a: A):
    if qd.static(hasattr(OBJECT, "x")):
        a[0] = 1


@qd.kernel
def has_a(a: A):
    if qd.static("a" in TABLE):
        a[0] = 1


def test_hasattr():
    assert launch(has_x) == 1
    del OBJECT.x
    assert launch(has_x) == 0
    OBJECT.x = 2
    with compiles(0):
        assert launch(has_x) == 1
    OBJECT.x = 3
    with compiles(0):
        assert launch(has_x) == 1
    OBJECT.x = None  # which is there as well; whether it is None is part of the answer
    with compiles(1):
        assert launch(has_x) == 1 and launch(has_x) == 1
    OBJECT.x = 2
    with compiles(0):
        assert launch(has_x) == 1


def test_in():
    assert launch(has_a) == 1
    del TABLE["a"]
    assert launch(has_a) == 0
    TABLE["a"] = 5
    with compiles(0):
        assert launch(has_a) == 1


@qd.kernel
def reads_items(a: A):
    a[0] = TABLE["a"] * 100 + TABLE.get("a") * 10 + ITEMS[0]


def test_items_that_nobody_read(monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", {"a": 1})
    monkeypatch.setitem(globals(), "ITEMS", [1, 2])
    assert launch(reads_items) == 111
    with compiles(0):
        TABLE["unrelated"] = 3
        ITEMS[1:] = [9, 4]
        assert launch(reads_items) == 111
    ITEMS.insert(0, 5)
    assert launch(reads_items) == 115
    TABLE["a"] = 2
    assert launch(reads_items) == 225
    globals().update(TABLE={"a": 2, "b": 3, "c": 4}, ITEMS=[5])
    with compiles(0):  # nor how many there are
        assert launch(reads_items) == 225


PLAIN = 3


@qd.kernel
def kinds(a: A):
    if qd.static(PLAIN is None):
        a[0] = 1
    if qd.static(isinstance(PLAIN, int)):
        a[0] += 2
    if qd.static(type(PLAIN) == int):  # noqa: E721
        a[0] += 4


def test_questions_that_do_not_read_the_value(monkeypatch):
    assert launch(kinds) == 6
    with compiles(0):
        for n in (4, 5, 10**30):
            monkeypatch.setitem(globals(), "PLAIN", n)
            assert launch(kinds) == 6
    monkeypatch.setitem(globals(), "PLAIN", True)
    assert launch(kinds) == 2
    monkeypatch.setitem(globals(), "PLAIN", None)
    assert launch(kinds) == 1
    monkeypatch.setitem(globals(), "PLAIN", 2.0)
    assert launch(kinds) == 0


# ---- interpreters in one process -----------------------------------------------------------------------

SUB = """
import sys
sys.path.insert(0, {folder!r})
import ingot as qd
qd.init()
import stale_sub as m
a = qd.ndarray(qd.f64, 1)
seen = []
for n in (None, None, 2, 3):
    if n:
        m.N = n
    m.k(a)
    seen.append(a[0])
assert seen == [1, 1, 2, 3], seen
"""

HOST = """
import sys
sys.path.insert(0, {folder!r})
import ingot as qd
qd.init()
import stale_sub as m
a = qd.ndarray(qd.f64, 1)
m.k(a)
code = {code!r}
try:
    import _interpreters as sub
    bad = sub.exec(sub.create("legacy"), code)
    assert bad is None, bad
except ImportError:
    import _xxsubinterpreters as sub
    one = sub.create(isolated=False)
    sub.run_string(one, code)
m.N = 5
m.k(a)
assert a[0] == 5
"""


def test_interpreters_that_share_a_lock(tmp_path):
    (tmp_path / "stale_sub.py").write_text(
        "import ingot as qd\nA = qd.types.ndarray()\nN = 1\n@qd.kernel\ndef k(a: A):\n    a[0] = N\n")
    code = SUB.format(folder=str(tmp_path))
    program = tmp_path / "host.py"
    program.write_text(HOST.format(folder=str(tmp_path), code=code))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
