"""Cases of compound_cases.py: only what a kernel reads counts, objects that resist, arrays that
may be missing, and what else a template may hold."""

import dataclasses
import enum
from typing import Optional

import numpy as np
from compound_cases import N, case, full, refused

import ingot as qd


@dataclasses.dataclass
class Leaf:
    w: qd.types.ndarray()
    g: int


# ---- only what is read ---------------------------------------------------------------------------


class Touchy:
    """Raises whatever is done to it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def _fail(self, *args):
        raise RuntimeError("touched")

    __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __getitem__ = __call__ = _fail
    __int__ = __float__ = __index__ = __repr__ = __str__ = _fail


@case
def unread_members_of_any_type(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x, self.bad = full(dtype, 0), Touchy()

        @property
        def explosive(self):
            raise RuntimeError("touched")

        @qd.kernel
        def go(self):
            for i in range(N):
                self.x[i] = 7

    s = Own()
    for bad in (Touchy(), object(), [Touchy()], {Touchy: 1}, lambda: 1, 1j, b"bytes", {1, 2}, ...):
        s.bad = bad
        s.go()
        assert s.x[0] == 7
    del s.bad
    s.go()
    assert Own.go._variants == 1


@case
def unread_fields_of_a_typed_dataclass(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        n: int
        rest: object
        missing: "NoSuchName"  # noqa: F821

    @qd.func
    def store(s: Own, i):
        s.x[i] = 7

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            store(s, i)

    for n, rest in [(1, Touchy()), ("text", None), (None, full(qd.i32, 1)), (Touchy(), 5)]:
        s = Own(full(dtype, 0), n, rest, Touchy())
        k(s)
        assert s.x[0] == 7
    assert k._variants == 1


@case
def what_only_a_dead_branch_reads(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x, self.debug, self.bad = full(dtype, 0), False, Touchy()

        @property
        def explosive(self):
            raise RuntimeError("touched")

        @qd.kernel
        def go(self):
            for i in range(N):
                self.x[i] = 7
                if qd.static(self.debug):
                    self.x[i] = self.bad.nothing + self.explosive + undefined  # noqa: F821
                if qd.static(not self.debug):
                    self.x[i] += 1
                else:
                    self.x[i] = self.missing.member

    s = Own()
    s.go()
    s.bad = 1
    s.go()
    del s.bad
    s.go()
    assert s.x[0] == 8 and Own.go._variants == 1


@case
def a_read_object_of_an_unknown_type(dtype):
    """Counts by what is read of it: that it is there, its members, its type's name never."""

    class Odd:
        __slots__ = ("k",)

    class Stranger:
        k = 4

    @qd.kernel
    def k(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = 0
            if qd.static(s.part is not None):
                out[i] += s.part.k

    class Box:
        part = None

    out, s = full(dtype, 0), Box()
    odd = Odd()
    for part, value in [(None, 0), (Stranger(), 4), (Stranger, 4), (odd, 5), (None, 0), (Stranger(), 4)]:
        odd.k, s.part = 5, part
        k(s, out)
        assert out[0] == value
    assert k._variants <= 4


@case
def only_that_an_object_is_there(dtype):
    class Box:
        part = None

    class Empty:
        __slots__ = ()

    @qd.kernel
    def k(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            if qd.static(s.part is None):
                out[i] = 1
            else:
                out[i] = 2

    out, s = full(dtype, 0), Box()
    for part in (Empty(), None, Empty(), Box(), None, 3, full(qd.i32, 1), "text", None, [Touchy()], Box()):
        s.part = part
        k(s, out)
        assert out[0] == (1 if part is None else 2), part


@case(lowered=3)
def a_read_value_of_an_unknown_type_is_refused(dtype):
    class Box:
        def __init__(self, k):
            self.k = k

    @qd.kernel
    def k(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = s.k

    out = full(dtype, 0)
    k(Box(3), out)
    for bad in (1j, b"bytes", object()):
        refused(qd.IngotError, r"s\.k", k, Box(bad), out)
    k(Box(3), out)
    assert out[0] == 3 and k._variants == 1


# ---- objects that resist -------------------------------------------------------------------------


@case
def cycles(dtype):
    class Node:
        def __init__(self, v):
            self.x, self.n, self.me, self.all = full(dtype, v), v, self, [self]

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.me.me.x[i] = s.next.next.n + s.all[0].me.next.me.n * 10

    a, b = Node(1), Node(2)
    a.next, b.next = b, a
    k(a)
    assert a.x[0] == 21
    a.next = a
    k(a)
    assert a.x[0] == 11


@case
def slots_and_dictionaries(dtype):
    class Slots:
        __slots__ = ("x", "n", "__weakref__")

        def __init__(self, n):
            self.x, self.n = full(dtype, 0), n

    class Both(Slots):
        pass

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = s.n

    for cls in (Slots, Both):
        s = cls(2)
        for n in (2, 3, 2):
            s.n = n
            k(s)
            assert s.x[0] == n
    assert k._variants == 2


@case
def objects_that_make_up_attributes(dtype):
    class Asked:
        def __init__(self):
            self.parts = {"x": full(dtype, 0), "n": 2}

        def __getattr__(self, name):
            try:
                return self.parts[name]
            except KeyError:
                raise AttributeError(name) from None

    class AlwaysAsked(Asked):
        def __getattribute__(self, name):
            parts = super().__getattribute__("parts")
            return parts[name] if name in parts else super().__getattribute__(name)

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = s.n + 1

    for cls in (Asked, AlwaysAsked):
        s = cls()
        for n in (2, 3, 2):
            s.parts["n"] = n
            k(s)
            assert s.x[0] == n + 1
    assert k._variants == 2


@case
def ten_thousand_unrelated_members(dtype):
    class Own:
        def __init__(self, first):
            if first:
                self.x, self.n = full(dtype, 0), 2
            for j in range(10_000):
                setattr(self, f"unrelated{j}", Touchy)
            self.x, self.n = full(dtype, 0), 2

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = s.n + 2

    for first in (True, False):
        s = Own(first)
        for n in (2, 3):
            s.n = n
            k(s)
            assert s.x[0] == n + 2
    assert k._variants == 2


@case
def odd_metaclasses(dtype):
    class Meta(type):
        def __getattribute__(cls, name):
            if name == "_ingot_template_primitives":
                raise AttributeError(name)
            return super().__getattribute__(name)

        def __instancecheck__(cls, obj):
            raise RuntimeError("asked")

        __subclasscheck__ = __instancecheck__

        def __eq__(cls, other):
            raise RuntimeError("compared")

        def __hash__(cls):
            raise RuntimeError("hashed")

        def __prepare__(name, bases, **options):
            return {"weight": 3}

        def __len__(cls):
            raise RuntimeError("measured")

        __bool__ = __len__

    class Own(metaclass=Meta):
        def __init__(self):
            self.x, self.n = full(dtype, 0), 2

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = s.n * s.weight

    s = Own()
    for n in (2, 3, 2):
        s.n = n
        k(s)
        assert s.x[0] == 3 * n
    Own.weight = 5
    k(s)
    assert s.x[0] == 10 and k._variants == 3


@case
def a_class_made_at_run_time(dtype):
    def make():
        return type("Made", (), {"n": 2, "x": full(dtype, 0)})

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = s.n + 3

    for cls in (make(), make()):
        k(cls())
        k(cls)  # a class is an object
        assert cls.x[0] == 5
        cls.n = 4
        k(cls)
        assert cls.x[0] == 7
    assert k._variants == 2


@case
def two_objects_that_agree_share_a_variant(dtype):
    class Own:
        def __init__(self, noise):
            self.noise, self.x, self.n = noise, full(dtype, 0), 2

        def __eq__(self, other):
            raise RuntimeError("compared")

        def __hash__(self):
            raise RuntimeError("hashed")

    @qd.kernel
    def k(s: qd.template(), t: qd.template()):
        for i in range(N):
            s.x[i] = s.n + t.n

    for j in range(3):
        s, t = Own(j), Own(object())
        k(s, t)
        assert s.x[0] == 4
    s.n = 5
    k(s, t)
    assert s.x[0] == 7 and k._variants == 2


# ---- what may be missing -------------------------------------------------------------------------


@case
def none_for_a_tensor_parameter(dtype):
    @qd.kernel
    def k(out: qd.Tensor, bias: qd.Tensor):
        for i in range(N):
            out[i] = 1
            if qd.static(bias is not None):
                out[i] += bias[i]

    out = full(dtype, 0)
    for bias, value in [(None, 1), (full(dtype, 2), 3), (None, 1), (full(qd.i32, 4), 5)]:
        k(out, bias)
        assert out[0] == value
    assert k._variants == 3


@case
def none_for_an_optional_parameter(dtype):
    @qd.kernel
    def k(out: qd.Tensor, a: qd.Tensor | None, b: Optional[qd.types.ndarray()] = None):
        for i in range(N):
            out[i] = 1
            if qd.static(a is None):
                out[i] += 10
            else:
                out[i] += a[i]
            if qd.static(b is not None):
                out[i] += b[i]

    out, two = full(dtype, 0), full(dtype, 2)
    for args, value in [((None,), 11), ((two,), 3), ((two, two), 5), ((None, two), 13), ((None, None), 11)]:
        k(out, *args)
        assert out[0] == value
    assert k._variants == 4


@case
def none_for_a_template_parameter(dtype):
    @qd.kernel
    def k(out: qd.types.ndarray(), s: qd.template()):
        for i in range(N):
            out[i] = 1
            if qd.static(s is not None):
                out[i] += s.w[i] * s.g

    out = full(dtype, 0)
    for s, value in [(None, 1), (Leaf(full(dtype, 3), 2), 7), (None, 1), (Leaf(full(dtype, 1), 2), 3)]:
        k(out, s)
        assert out[0] == value
    assert k._variants == 2


@case
def none_for_members(dtype):
    @dataclasses.dataclass
    class Own:
        out: qd.types.ndarray()
        bias: qd.Tensor
        part: Optional[Leaf] = None

    @qd.func
    def add(s: Own, i):
        if qd.static(s.bias is not None):
            s.out[i] += s.bias[i]
        if qd.static(s.part is not None):
            s.out[i] += s.part.w[i] * s.part.g

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            s.out[i] = 1
            add(s, i)

    s = Own(full(dtype, 0), None)
    for bias, part, value in [
        (None, None, 1), (2, None, 3), (2, 3, 9), (None, 3, 7), (2, None, 3), (None, None, 1),
    ]:
        s.bias = None if bias is None else full(dtype, bias)
        s.part = None if part is None else Leaf(full(dtype, part), 2)
        k(s)
        assert s.out[0] == value
    assert k._variants == 4


@case
def none_passed_on_to_funcs(dtype):
    @qd.func
    def add(v, bias, i):
        r = v
        if qd.static(bias is not None):
            r += bias[i]
        return r

    @qd.kernel
    def k(out: qd.Tensor, bias: qd.Tensor):
        for i in range(N):
            out[i] = add(1, bias, i) + add(1, None, i)

    out = full(dtype, 0)
    for bias, value in [(None, 2), (full(dtype, 5), 7), (None, 2)]:
        k(out, bias)
        assert out[0] == value


# ---- what a template may hold --------------------------------------------------------------------


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Style(enum.Enum):
    PLAIN = "plain"
    FANCY = "fancy"


@case
def a_config_as_template(dtype):
    class Config:
        steps, scale, name, on = 2, 0.5, "a", True

    @qd.kernel
    def k(out: qd.types.ndarray(), c: qd.template()):
        for i in range(N):
            out[i] = c.scale
            for j in qd.static(range(c.steps)):
                out[i] += 10
            if qd.static(c.name == "b"):
                out[i] += 100
            if qd.static(c.on):
                out[i] += 1000

    out, c = full(dtype, 0), Config()
    for steps, scale, name, on in [
        (2, 0.5, "a", True), (3, 0.5, "a", True), (3, 1.5, "b", False), (2, 0.5, "a", True),
    ]:
        c.steps, c.scale, c.name, c.on = steps, scale, name, on
        k(out, c)
        assert out[0] == scale + 10 * steps + 100 * (name == "b") + 1000 * on
    assert k._variants == 3


@case
def enums(dtype):
    class Config:
        def __init__(self, mode, style):
            self.mode, self.style = mode, style

    @qd.kernel
    def k(out: qd.types.ndarray(), c: qd.template(), m: qd.template()):
        for i in range(N):
            out[i] = c.mode
            if qd.static(c.style == Style.FANCY):
                out[i] += 10
            if qd.static(m == Mode.FAST):
                out[i] += 100

    out = full(dtype, 0)
    for mode, style, m in [
        (Mode.SLOW, Style.PLAIN, Mode.SLOW), (Mode.FAST, Style.PLAIN, Mode.SLOW),
        (Mode.FAST, Style.FANCY, Mode.FAST), (Mode.SLOW, Style.PLAIN, Mode.SLOW),
    ]:
        k(out, Config(mode, style), m)
        assert out[0] == mode + 10 * (style is Style.FANCY) + 100 * (m is Mode.FAST)
    assert k._variants == 3
    for value in (1, 7, 1):  # the same name, another value
        mode = enum.IntEnum("Mode", {"SLOW": value}).SLOW
        k(out, Config(mode, Style.PLAIN), Mode.SLOW)
        assert out[0] == value
    assert k._variants == 4


@qd.func
def twice(x):
    return x * 2


@qd.func
def negated(x):
    return -x


@case
def funcs(dtype):
    class Config:
        def __init__(self, f):
            self.f = f

    @qd.kernel
    def k(out: qd.types.ndarray(), c: qd.template(), g: qd.template()):
        for i in range(N):
            out[i] = c.f(5) + g(1)

    out = full(dtype, 0)
    for f, g, value in [(twice, twice, 12), (negated, twice, -3), (twice, negated, 9), (twice, twice, 12)]:
        k(out, Config(f), g)
        assert out[0] == value
    assert k._variants == 3


@case
def tuples(dtype):
    @qd.kernel
    def k(out: qd.types.ndarray(), t: qd.template()):
        for i in range(N):
            out[i] = t[0] + t[1][0] * 10
            for n in qd.static(t[1]):
                out[i] += n * 100
            out[i] += t[2].w[i]

    out = full(dtype, 0)
    leaf = Leaf(full(dtype, 1000), 0)
    for a, b in [(1, (2, 3)), (1, (2,)), (4, (2, 3)), (1, (2, 3))]:
        k(out, (a, b, leaf))
        assert out[0] == a + 10 * b[0] + 100 * sum(b) + 1000
    assert k._variants == 3


@case
def lists_of_objects_in_static_loops(dtype):
    class Config:
        def __init__(self, parts):
            self.parts = parts

    @qd.kernel
    def k(out: qd.types.ndarray(), c: qd.template()):
        for i in range(N):
            out[i] = 0
            for p in qd.static(c.parts):
                out[i] += p.w[i] * p.g
            for j in qd.static(range(len(c.parts))):
                out[i] += c.parts[j].g * 100

    out = full(dtype, 0)
    parts = [Leaf(full(dtype, 1), 2), Leaf(full(dtype, 10), 3)]
    c = Config(parts)
    for _ in range(2):
        k(out, c)
        assert out[0] == 532
    parts[0].w = full(dtype, 2)
    k(out, c)
    assert out[0] == 534 and k._variants == 1
    parts.append(Leaf(full(dtype, 1), 1))
    k(out, c)
    assert out[0] == 635
    parts[0], parts[1] = parts[1], parts[0]
    k(out, c)
    assert out[0] == 635
    parts.pop()
    parts.reverse()
    k(out, Config(tuple(parts)))
    assert out[0] == 534


@case
def dictionaries(dtype):
    @qd.kernel
    def k(out: qd.types.ndarray(), d: qd.template()):
        for i in range(N):
            out[i] = d["leaf"].w[i] + d["n"]
            for key in qd.static(d["parts"]):
                out[i] += d["parts"][key].g * 100

    out = full(dtype, 0)
    d = {"n": 2, "leaf": Leaf(full(dtype, 1), 0), "parts": {"a": Leaf(None, 1), "b": Leaf(None, 2)}, 5: Touchy()}
    k(out, d)
    assert out[0] == 303
    d["parts"]["c"] = Leaf(None, 4)
    k(out, d)
    assert out[0] == 703
    del d["parts"]["c"]
    d["n"] = 3
    k(out, d)
    assert out[0] == 304
    d["n"] = 2
    k(out, d)
    assert out[0] == 303 and k._variants == 3


@case
def gradients_of_members_two_funcs_deep(dtype):
    @qd.func
    def store(a, i, v):
        a.grad[i] = a[i] * v

    @qd.func
    def of_part(p, i):
        store(p.w, i, p.g)
        p.w.grad[i] += 1

    @qd.func
    def of_own(s: qd.template(), i):
        of_part(s.part, i)
        store(s.x, i, 5)

    class Own:
        def __init__(self):
            self.x, self.part = full(dtype, 3, needs_grad=True), Leaf(full(dtype, 4, needs_grad=True), 2)

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            of_own(s, i)

    s = Own()
    k(s)
    assert (s.x.grad[1], s.part.w.grad[1]) == (15, 9)
    old, s.part.w = s.part.w, full(dtype, 1, needs_grad=True)
    k(s)
    assert (s.part.w.grad[1], old.grad[1]) == (3, 9) and k._variants == 1


@case
def gradients_of_typed_members_two_funcs_deep(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray(needs_grad=True)
        leaf: Leaf

    @qd.func
    def store(leaf: Leaf, i):
        leaf.w.grad[i] = leaf.w[i] * leaf.g

    @qd.func
    def outer(s: Own, i):
        store(s.leaf, i)
        s.x.grad[i] = 7

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            outer(s, i)

    s = Own(full(dtype, 3, needs_grad=True), Leaf(full(dtype, 4, needs_grad=True), 2))
    k(s)
    assert (s.x.grad[1], s.leaf.w.grad[1]) == (7, 8)


@case
def gradients_of_arrays_handed_down_two_funcs(dtype):
    @qd.func
    def store(a, i):
        a.grad[i] = a[i] * 2

    @qd.func
    def hand_on(a: qd.template(), i):
        store(a, i)

    @qd.func
    def rename(a, i):
        b = a
        hand_on(b, i)

    class Own:
        def __init__(self):
            self.x, self.y = full(dtype, 3, needs_grad=True), full(dtype, 4, needs_grad=True)

    @qd.kernel
    def k(s: qd.template(), a: qd.types.ndarray()):
        for i in range(N):
            hand_on(s.x, i)
            rename(s.y, i)
            rename(a, i)

    s, a = Own(), full(dtype, 5, needs_grad=True)
    k(s, a)
    assert (s.x.grad[1], s.y.grad[1], a.grad[1]) == (6, 8, 10)
    s.x, s.y = s.y, s.x
    s.x.fill(1)
    k(s, a)
    assert (s.x.grad[1], s.y.grad[1]) == (2, 6) and k._variants == 1


@case
def gradients_asked_for(dtype):
    """One func for arrays with and without a gradient."""

    @qd.func
    def store(a, i):
        if qd.static(a.grad is not None):
            a.grad[i] = 5
        a[i] = 1

    @qd.func
    def of_own(s, i):
        store(s.x, i)

    class Own:
        pass

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            of_own(s, i)

    s = Own()
    for grad in (True, False, True):
        s.x = full(dtype, 0, needs_grad=grad)
        k(s)
        assert s.x[0] == 1 and (not grad or s.x.grad[0] == 5)
    assert k._variants == 2


# ---- arrays of other libraries -----------------------------------------------------------------------


@case(parses=True)
def numpy_arrays_as_members(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        leaf: Leaf

    @qd.func
    def of_leaf(leaf: Leaf, i):
        return leaf.w[i] * leaf.g

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            s.x[i] = of_leaf(s.leaf, i)

    np_type = {"f32": np.float32, "f64": np.float64}[str(dtype)]
    s = Own(np.zeros(N, np_type), Leaf(np.full(N, 3, np_type), 2))
    k(s)
    assert s.x.tolist() == [6] * N
    s.leaf.w = full(dtype, 5)  # the same kind of array: ours or theirs
    k(s)
    assert s.x.tolist() == [10] * N and k._variants == 1
    s.x = np.zeros(N, np.int64)
    k(s)
    assert s.x.tolist() == [10] * N and k._variants == 2
    s.x = np.zeros(2 * N, np_type)[::2]
    refused(qd.IngotError, r"s\.x.*contiguous|s\.x.*gaps", k, s)
    s.x = np.zeros(N, np_type)
    s.x.flags.writeable = False
    refused(qd.IngotError, r"s\.x.*read-only", k, s)
    s.x = np.zeros(N, np_type)
    k(s)
    assert s.x[0] == 10 and k._variants == 2


@case
def numpy_arrays_of_modules_and_closures(dtype):
    np_type = {"f32": np.float32, "f64": np.float64}[str(dtype)]
    table = np.arange(N, dtype=np_type)

    @qd.kernel
    def k(out: qd.types.ndarray()):
        for i in range(N):
            out[i] = table[i]

    out = full(dtype, 0)
    k(out)
    table[2] = 50
    k(out)
    assert (out[1], out[2]) == (1, 50)
    table = np.full(N, 7, np_type)
    k(out)
    assert out[2] == 7 and k._variants == 1
