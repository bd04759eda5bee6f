"""State in objects, one case per promise of docs/compound-types.md. test_compound_process.py
runs them in processes of their own:

    compound_cases.py ARCH DTYPE [DTYPE ...]

Each case gets a dtype for its arrays, launches and asserts. Printed per case and dtype: how
often source was parsed, how often a kernel was lowered, how many images were compiled.
"""

import dataclasses
import enum
import sys
from typing import Final, Optional

import ingot as qd
from ingot import _core
from ingot.compat.quadrants.lang._fast_caching import FIELD_METADATA_CACHE_VALUE

N = 4
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def full(dtype, value):
    a = qd.ndarray(dtype, N)
    a.fill(value)
    return a


# ---- 1. dataclasses by their type ------------------------------------------------------------

vec2 = qd.types.vector(2, qd.f32)


@dataclasses.dataclass(frozen=True)
class Leaf:
    w: qd.Tensor
    g: int


@dataclasses.dataclass
class Middle:
    leaf: Leaf
    x: qd.types.ndarray()


@dataclasses.dataclass(frozen=True)
class Root:
    middle: Middle
    v: vec2
    k: float
    named: "qd.Tensor"


def root(dtype, g=2, k=0.5):
    return Root(Middle(Leaf(full(dtype, 3), g), full(dtype, 0)), vec2(1, 4), k, full(dtype, 5))


@qd.func
def weigh(leaf: Leaf, i):
    return leaf.w[i] * leaf.g


@qd.func
def through(m: Middle, i):
    return weigh(m.leaf, i) + weigh(i=i, leaf=m.leaf)


@qd.func
def plain(m, i):
    t = m.leaf
    return weigh(t, i)


@qd.kernel
def typed(r: Root):
    for i in range(N):
        r.middle.x[i] = r.named[i] + r.v[1] + r.k * 2 + through(r.middle, i)


@case
def nested_flattened_and_passed_to_funcs(dtype):
    r = root(dtype)
    typed(r)
    assert r.middle.x[1] == 5 + 4 + 1 + 12
    r = root(dtype, g=3, k=1.0)  # numbers and vectors are read at launch
    r.v[1] = 0
    typed(r)
    assert r.middle.x[1] == 5 + 0 + 2 + 18


@qd.kernel
def by_sub_struct(m: Middle):
    for i in range(N):
        m.x[i] = weigh(m.leaf, i) + plain(m, i) + plain(i=i, m=m)


@case
def sub_structs_by_position_keyword_and_name(dtype):
    r = root(dtype)
    by_sub_struct(r.middle)
    assert r.middle.x[0] == 18
    by_sub_struct(m=r.middle)
    assert r.middle.x[0] == 18


@qd.kernel
def as_template(r: qd.template()):
    for i in range(N):
        r.middle.x[i] = weigh(r.middle.leaf, i) + r.k


@case
def frozen_and_unfrozen_by_template(dtype):
    for k in (0.5, 2.0, 0.5):
        r = root(dtype, k=k)
        as_template(r)
        assert r.middle.x[0] == 6 + k


@dataclasses.dataclass
class Baked:
    x: qd.Tensor
    n: int
    order: Final[int]
    level: int = dataclasses.field(metadata={FIELD_METADATA_CACHE_VALUE: True})


@qd.kernel
def baked(s: Baked):
    for i in range(N):
        s.x[i] = 0
        for j in qd.static(range(s.n)):
            s.x[i] += 1
        s.x[i] += s.order * 10 + s.level * 100


@case
def static_final_and_marked_numbers_are_baked_and_guarded(dtype):
    s = Baked(full(dtype, 0), 2, 3, 4)
    for n, order, level in [(2, 3, 4), (3, 3, 4), (3, 1, 4), (3, 1, 2), (2, 3, 4)]:
        s.n, s.order, s.level = n, order, level
        baked(s)
        assert s.x[0] == n + 10 * order + 100 * level


# ---- 2. data_oriented ------------------------------------------------------------------------


@qd.data_oriented
class Sim:
    stable_members = True

    def __init__(self, dtype):
        self.x, self.n, self.k = full(dtype, 1), N, 2
        self.grid = Grid(dtype)

    @property
    def doubled(self):
        return self.k * 2

    @staticmethod
    @qd.func
    def add(a, b):
        return a + b

    @classmethod
    def name(cls):
        return cls.__name__

    @qd.func
    def scaled(self, i):
        return self.add(self.x[i] * self.doubled, self.grid.state.leaf.w[i])

    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.x[i] = self.scaled(i)

    @qd.kernel
    def reset(self, value: qd.i32):
        for i in range(self.n):
            self.x[i] = value


class Grid:  # data_oriented, dataclass, dataclass: three levels
    def __init__(self, dtype):
        self.state = Middle(Leaf(full(dtype, 3), 2), full(dtype, 0))


class Derived(Sim):
    @qd.func
    def scaled(self, i):
        return self.x[i] * 100


@case
def methods_inheritance_properties(dtype):
    s = Sim(dtype)
    s.step()
    assert s.x[0] == 7 and s.name() == "Sim"
    s.reset(2)  # several kernels share an instance
    s.k = 1
    s.step()
    assert s.x[0] == 7
    d = Derived(dtype)
    d.step()
    assert d.x[0] == 100


@qd.kernel
def outside(s: qd.Template, out: qd.types.ndarray()):
    for i in range(N):
        out[i] = s.x[i] + s.grid.state.leaf.g


@case
def instances_as_templates_of_other_kernels(dtype):
    out = full(dtype, 0)
    outside(Sim(dtype), out)
    assert out[0] == 3


@qd.data_oriented(template_primitives=False)
class AtLaunch:
    def __init__(self, dtype):
        self.x, self.k, self.flag = full(dtype, 0), 2, True
        self.inner = Grid(dtype)
        self.inner.depth = 1.5
        for j in range(50):
            setattr(self, f"unread{j}", j)

    @qd.kernel
    def go(self):
        for i in range(N):
            self.x[i] = self.k + self.inner.depth
            if self.flag:
                self.x[i] += 100


@case
def numbers_at_launch(dtype):
    s = AtLaunch(dtype)
    for k, depth, flag in [(2, 1.5, True), (3, 2.5, False), (-7, 0.5, True)]:
        s.k, s.inner.depth, s.flag = k, depth, flag
        s.go()
        assert s.x[0] == k + depth + (100 if flag else 0)


# ---- 3. rebinding ----------------------------------------------------------------------------


@qd.data_oriented(stable_members=True)
class Rebound:
    def __init__(self, dtype):
        self.x, self.k = full(dtype, 1), 1
        self.inner = Grid(dtype)

    @qd.kernel
    def go(self):
        for i in self.x:
            self.x[i] = self.x[i] + self.inner.state.leaf.w[0] + self.k


@case
def rebinding_is_seen(dtype):
    s = Rebound(dtype)
    s.go()
    assert s.x[0] == 5
    s.x = full(dtype, 2)
    s.go()
    assert s.x[0] == 6
    s.x = qd.ndarray(dtype, N, needs_grad=True)
    s.go()
    assert s.x[0] == 4
    s.inner = Grid(dtype)
    s.inner.state = Middle(Leaf(full(dtype, 10), 0), None)
    s.go()
    assert s.x[0] == 15
    s.k = 5
    s.late = "an attribute that came later"
    s.go()
    assert s.x[0] == 30


@case
def deleted_and_restored(dtype):
    s = Rebound(dtype)
    s.go()
    x = s.x
    del s.x
    try:
        s.go()
        raise SystemExit("a deleted member went unnoticed")
    except AttributeError as e:
        assert "'x'" in str(e)
    s.x = x
    s.go()
    assert s.x[0] == 9


# ---- 4. only what is read counts -------------------------------------------------------------


class Touchy:
    """Raises whatever is done to it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __getattr__


@qd.data_oriented
class Picky:
    def __init__(self, dtype):
        self.x, self.debug = full(dtype, 0), False
        self.bad, self.worse = Touchy(), object()

    @property
    def explosive(self):
        raise RuntimeError("touched")

    @qd.kernel
    def go(self):
        for i in range(N):
            self.x[i] = 7
            if qd.static(self.debug):
                self.x[i] = self.worse.nothing + self.explosive + undefined  # noqa: F821


@case
def unread_members_of_any_type(dtype):
    s = Picky(dtype)
    s.me = s  # a cycle
    s.go()
    assert s.x[0] == 7
    s.bad, s.worse = 1, Touchy()
    s.go()
    assert s.x[0] == 7


# ---- 5. optional tensors, configs ------------------------------------------------------------


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


@qd.func
def twice(x):
    return x * 2


class Config:
    def __init__(self, mode, f, parts, sizes):
        self.mode, self.f, self.parts, self.sizes = mode, f, parts, sizes


@qd.kernel
def optional(out: qd.Tensor, bias: qd.Tensor, more: qd.Tensor | None, c: qd.template(),
             last: Optional[qd.types.ndarray()] = None):
    for i in range(N):
        out[i] = 1
        if qd.static(bias is not None):
            out[i] += bias[i]
        if qd.static(more is None):
            out[i] += 10
        if qd.static(last is not None):
            out[i] += last[i]
        if qd.static(c is not None):
            if qd.static(c.mode == Mode.FAST):
                out[i] += 100
            for p in qd.static(c.parts):
                out[i] += c.f(p.w[i])
            for n in qd.static(c.sizes):
                out[i] += n * 1000


@case
def optional_tensors_and_configs(dtype):
    out, bias = full(dtype, 0), full(dtype, 2)
    optional(out, None, None, None)
    assert out[0] == 11
    optional(out, bias, bias, None, bias)
    assert out[0] == 5
    parts = [Leaf(full(dtype, 1), 0), Leaf(full(dtype, 2), 0)]
    optional(out, None, bias, Config(Mode.FAST, twice, parts, (1, 2)))
    assert out[0] == 1 + 100 + 6 + 3000
    optional(out, None, bias, Config(Mode.SLOW, twice, tuple(parts[:1]), []))
    assert out[0] == 3


def main(arch, dtypes):
    qd.init(arch=getattr(qd, arch))
    names = ("parses", "lowerings", "image_compiles")
    for dtype in dtypes:
        for name, run in CASES.items():
            before = _core.counters()
            run(getattr(qd, dtype))
            after = _core.counters()
            print("CASE", dtype, name, *(after[n] - before[n] for n in names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
