"""State in objects: dataclasses, data_oriented classes, templates, nested and rebound
between launches. What is read counts, what is rebound is seen, numbers that are declared
as such are read at each launch."""

import dataclasses
import enum
import gc
import os
import subprocess
import sys
import textwrap
import typing
import weakref

import pytest
from conftest import filled

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


@dataclasses.dataclass
class Inner:
    w: qd.types.ndarray()
    g: qd.i32


@dataclasses.dataclass(frozen=True)
class State:
    a: qd.types.ndarray()
    b: qd.types.ndarray()
    k: qd.f32
    inner: Inner


@qd.func
def weighted(s: Inner, i):
    return s.w[i] * s.g


@qd.kernel
def advance(s: State):
    for i in range(s.a.shape[0]):
        s.a[i] = s.b[i] * s.k + weighted(s.inner, i)


def test_dataclass_argument():
    inner = Inner(filled(3), 2)
    s = State(filled(0), filled(5), 2.0, inner)
    advance(s)
    assert s.a[1] == 16
    inner.g = 7  # a declared number: read at each launch, no new variant
    advance(s)
    assert s.a[1] == 31
    inner.w = filled(1)  # another array of the same spec
    advance(s)
    assert s.a[1] == 17
    assert advance._variants == 1
    inner.w = filled(1, dtype=qd.i32)
    advance(s)
    assert s.a[1] == 17 and advance._variants == 2
    advance(State(filled(0), filled(1), 10.0, inner))
    assert advance._variants == 2


def test_dataclass_of_the_wrong_kind():
    inner = Inner(filled(3), "text")
    s = State(filled(0), filled(5), 2.0, inner)
    with pytest.raises(qd.IngotError, match=r"s\.inner\.g: it must be an integer"):
        advance(s)
    inner.g = 1
    advance(s)
    assert s.a[0] == 13


class Grid:
    def __init__(self):
        self.w = filled(2)


@qd.data_oriented
class Sim:
    def __init__(self):
        self.x, self.v = filled(0), filled(0)
        self.n, self.dt = 4, 0.5
        self.grid = Grid()
        self.unrelated = [object() for _ in range(50)]

    @qd.func
    def scaled(self, v):
        return v * self.dt

    @qd.kernel
    def step(self):
        for i in range(self.n):
            self.v[i] += self.dt
            self.x[i] += self.scaled(self.v[i]) + self.grid.w[i]

    @property
    def twice(self):
        return self.n * 2

    @qd.kernel
    def put(self, k: qd.i32):
        for i in self.x:
            self.x[i] = k * self.twice


def test_data_oriented():
    s = Sim()
    s.step()
    assert s.x[3] == 2.25
    s.dt = 1.0  # a number of a template is compiled in: another variant
    s.step()
    assert s.x[3] == 2.25 + 1.5 + 2 and Sim.step._variants == 2
    s.x = filled(0)
    s.grid = Grid()
    s.step()
    assert s.x[3] == 4.5 and Sim.step._variants == 2
    s.grid.w = filled(0)
    s.step()
    assert s.x[3] == 8 and Sim.step._variants == 2
    other = Sim()
    other.dt = 1.0
    other.step()
    assert Sim.step._variants == 2  # read members agree: one variant
    s.put(3)
    assert s.x[0] == 24
    s.n = 2
    s.put(3)
    assert s.x[0] == 12


def test_deleted_and_restored_members():
    s = Sim()
    s.step()
    v, s.v = s.v, None
    del s.v
    with pytest.raises(qd.IngotAttributeError, match="no attribute 'v'"):
        s.step()
    s.v = v
    s.step()
    s.extra = 5
    s.step()


@qd.data_oriented(template_primitives=False)
class AtLaunch:
    def __init__(self):
        self.x, self.n, self.f, self.on = filled(1), 3, 0.5, True

    @qd.kernel
    def go(self):
        for i in range(self.x.shape[0]):
            self.x[i] = self.n * self.f
            if self.on:
                self.x[i] += 100


def test_numbers_read_at_launch():
    d = AtLaunch()
    d.go()
    assert d.x[0] == 101.5
    for n in range(20):
        d.n, d.f = n, n / 4
        d.on = n % 2 == 0
        d.go()
        assert d.x[0] == n * n / 4 + 100 * d.on
    assert AtLaunch.go._variants == 1
    d.n = 2.5  # an int that becomes a float is another kind of number
    d.go()
    assert AtLaunch.go._variants == 2
    del d.n
    with pytest.raises(AttributeError):
        d.go()


@qd.kernel
def by_template(x: qd.types.ndarray(), cfg: qd.template()):
    for i in range(x.shape[0]):
        x[i] = cfg.scale * cfg.deep.w[i] if qd.static(cfg.deep is not None) else cfg.scale


def test_templates_and_optional_members():
    class Config:
        def __init__(self, scale, deep):
            self.scale, self.deep = scale, deep

    x = filled(0)
    by_template(x, Config(3.0, Grid()))
    assert x[0] == 6
    by_template(x, Config(3.0, None))
    assert x[0] == 3
    by_template(x, Config(3.0, Grid()))
    assert by_template._variants == 2


def test_containers_are_not_kept_alive():
    refs = []
    for _ in range(50):
        s = Sim()
        s.step()
        refs.append(weakref.ref(s))
        refs.append(weakref.ref(s.x))
    del s
    gc.collect()
    assert not any(r() for r in refs)


class Hostile:
    """Members that must not be looked at, cycles, slots."""

    __slots__ = ("x", "me", "n")

    def __init__(self):
        self.x, self.me, self.n = filled(1), self, 2

    def __getattr__(self, name):
        raise RuntimeError(f"{name} was touched")

    @property
    def trap(self):
        raise RuntimeError("touched")


def test_only_what_is_read_is_touched():
    @qd.kernel
    def k(h: qd.template()):
        for i in range(h.me.me.x.shape[0]):
            h.x[i] = h.me.n
            if qd.static(h.n > 5):
                h.x[i] = h.trap

    h = Hostile()
    k(h)
    assert h.x[3] == 2
    h.n = 6
    with pytest.raises(RuntimeError, match="touched"):
        k(h)
    h.n = 3
    k(h)
    assert h.x[0] == 3


# ---- dataclasses by annotation -------------------------------------------------------------


@dataclasses.dataclass
class Options:
    out: qd.Tensor
    steps: int
    scale: typing.Final[float]
    order: int = dataclasses.field(default=1, metadata={"add_value_to_cache_key": True})
    text: "typing.Final[int]" = 0


@qd.kernel
def baked(o: Options):
    for i in range(4):
        o.out[i] = o.scale + o.order + o.steps
        for _ in qd.static(range(o.steps)):
            o.out[i] += 100


def test_static_final_and_marked_fields_are_compiled_in():
    o = Options(filled(0), 2, 0.5)
    for change, value, variants in [
        ({}, 203.5, 1), ({"steps": 3}, 304.5, 2), ({"scale": 1.5}, 305.5, 3), ({"order": 4}, 308.5, 4),
        ({"order": 1, "scale": 0.5, "steps": 2}, 203.5, 4),
    ]:
        for name, v in change.items():
            setattr(o, name, v)
        baked(o)
        assert o.out[0] == value and baked._variants == variants


@qd.func
def by_nothing(s, i):
    return s.w[i] * s.g


@qd.func
def as_template(s: qd.template(), i):
    return s.w[i] * s.g


@qd.func
def inner_of(s: State, i):
    return weighted(s.inner, i) + weighted(s=s.inner, i=i) + by_nothing(s.inner, i)


@qd.kernel
def every_route(s: State):
    for i in range(4):
        t = s.inner
        s.a[i] = weighted(t, i) + by_nothing(t, i) + as_template(s=t, i=i) + inner_of(s, i)


def test_sub_structs_by_every_route_keep_their_numbers():
    s = State(filled(0), filled(0), 1.0, Inner(filled(2), 3))
    for g in range(3, 8):
        s.inner.g = g
        every_route(s)
        assert s.a[1] == 12 * g
    object.__setattr__(s, "inner", Inner(filled(5), 1))  # frozen, yet rebound
    every_route(s)
    assert s.a[1] == 30 and every_route._variants == 1
    object.__setattr__(s, "inner", None)
    with pytest.raises(qd.IngotAttributeError, match="no attribute 'w'"):
        every_route(s)


@qd.func
def bump(s: Inner, i):
    s.w[i] += s.g


@qd.kernel
def two(a: Inner, b: Inner):
    for i in range(4):
        bump(a, i)
        bump(b, i)


def test_objects_that_were_the_same_at_compile_time():
    s, t = Inner(filled(0), 1), Inner(filled(0), 10)
    two(s, s)
    assert s.w[0] == 2
    two(s, t)
    assert (s.w[0], t.w[0]) == (3, 10)


def test_a_declared_array_of_another_kind():
    @dataclasses.dataclass
    class Typed:
        x: qd.types.NDArray[qd.f32, 1]

    @qd.kernel
    def k(t: Typed):
        for i in range(4):
            t.x[i] = 1

    t = Typed(filled(0))
    k(t)
    for bad in (filled(0, dtype=qd.i32), qd.ndarray(qd.f32, (2, 2)), 5, "text", object()):
        t.x = bad
        with pytest.raises(qd.IngotError, match=r"t.*\.x is "):
            k(t)
    t.x = filled(0)
    k(t)
    assert t.x[0] == 1 and k._variants == 1


@dataclasses.dataclass
class Recursive:
    next: "Recursive"
    x: qd.Tensor


def test_recursive_annotations():
    @qd.kernel
    def k(r: Recursive):
        for i in range(4):
            r.next.next.x[i] = 7

    r = Recursive(None, filled(0))
    r.next = r
    k(r)
    assert r.x[0] == 7
    with pytest.raises(qd.IngotError, match="no attribute"):
        k(Recursive(None, filled(0)))


def test_a_data_oriented_field_of_a_typed_dataclass():
    @dataclasses.dataclass
    class Outer:
        sim: Sim

    @qd.kernel
    def typed(o: Outer):
        for i in range(4):
            o.sim.x[i] = 3

    @qd.kernel
    def template(o: qd.template()):
        for i in range(4):
            o.sim.x[i] = 3

    o = Outer(Sim())
    with pytest.raises(qd.IngotSyntaxError, match="'sim'.*data_oriented.*qd.template"):
        typed(o)
    template(o)
    assert o.sim.x[0] == 3


# ---- data_oriented classes --------------------------------------------------------------------


@qd.data_oriented
class Base:
    weight = 2

    def __init__(self):
        self.x = filled(0)
        self.grid = Grid()
        self.grid.state = State(filled(0), filled(0), 1.0, Inner(filled(4), 3))

    @staticmethod
    @qd.func
    def twice(v):
        return v * 2

    @classmethod
    def make(cls):
        return cls()

    @qd.func
    def own(self, i):
        return self.grid.state.inner.w[i] * self.weight

    @qd.kernel
    def run(self, k: qd.i32 = 1, *, shift: qd.f32 = 0.0):
        for i in range(4):
            self.x[i] = self.twice(self.own(i)) * k + shift


@qd.data_oriented(stable_members=True)
class Derived(Base):
    weight = 3

    @qd.func
    def own(self, i):
        return self.grid.w[i] * self.weight


def test_methods_inheritance_and_three_levels():
    b, d = Base.make(), Derived.make()
    b.run()
    d.run(2, shift=0.5)
    assert (b.x[0], d.x[0]) == (16, 24.5)
    b.grid.state.inner.w = filled(1)
    b.run(k=3)
    assert b.x[0] == 12
    b.grid.state = State(filled(0), filled(0), 1.0, Inner(filled(9), 3))
    Base.run(b)
    assert b.x[0] == 36
    Base.weight = 5
    try:
        b.run()
        assert b.x[0] == 90
    finally:
        Base.weight = 2


@qd.kernel
def outside(sim: qd.Template):
    for i in range(4):
        sim.x[i] = sim.own(i) + 1


def test_instances_as_templates_of_other_kernels():
    b, d = Base(), Derived()
    outside(b)
    outside(d)
    outside(b)
    assert (b.x[0], d.x[0]) == (9, 7) and outside._variants == 2


@qd.data_oriented(template_primitives=False)
class Deep:
    def __init__(self):
        self.x, self.n = filled(0), 1
        self.inner, self.list = Inner(filled(0), 2), [Inner(filled(0), 3)]
        for i in range(500):
            setattr(self, f"unread{i}", i)

    @qd.kernel
    def go(self):
        for i in range(4):
            self.x[i] = self.n + 10 * self.inner.g + 100 * self.list[0].g

    @qd.kernel
    def unrolled(self):
        for i in qd.static(range(self.n)):
            self.x[i] = 1


def test_numbers_below_are_read_at_launch_too():
    d = Deep()
    for n in range(5):
        d.n, d.inner.g, d.list[0].g = n, n + 1, n + 2
        d.go()
        assert d.x[0] == n + 10 * (n + 1) + 100 * (n + 2)
    assert Deep.go._variants == 1
    with pytest.raises(qd.IngotSyntaxError, match="template_primitives=False"):
        d.unrolled()


def test_one_kernel_for_both_kinds_of_class():
    class Mixed(Sim):
        pass

    qd.data_oriented(template_primitives=False)(Mixed)
    s, m = Sim(), Mixed()
    for dt in (0.5, 1.0, 2.0):
        for o in (s, m):
            o.v.fill(0)
            o.x.fill(0)
            o.dt = dt
            o.step()
            assert o.x[0] == dt * dt + 2


# ---- what may be read ---------------------------------------------------------------------------


class Mode(enum.IntEnum):
    FAST = 2
    SLOW = 5


class Config:
    """Never compared, never hashed."""

    __slots__ = ("mode", "parts", "extra")

    def __init__(self, mode, parts, extra=None):
        self.mode, self.parts, self.extra = mode, parts, extra

    def __eq__(self, other):
        raise AssertionError("compared")

    def __hash__(self):
        raise AssertionError("hashed")


@qd.kernel
def configured(x: qd.Tensor, c: qd.template()):
    for i in range(4):
        x[i] = c.mode
        for p in qd.static(c.parts):
            x[i] += p.w[i] * p.g
        if qd.static(c.extra is not None):
            x[i] += c.extra[i]


def test_configs_lists_enums_and_optional_arrays():
    x = filled(0)
    parts = [Inner(filled(1), 2), Inner(filled(10), 3)]
    configured(x, Config(Mode.FAST, parts))
    assert x[0] == 34
    configured(x, Config(Mode.SLOW, tuple(parts), filled(100)))
    assert x[0] == 137
    configured(x, Config(Mode.FAST, [parts[1], parts[0]]))  # same values, another order
    assert x[0] == 34
    parts.append(Inner(filled(1), 1))
    configured(x, Config(Mode.FAST, parts))
    assert x[0] == 35


def test_rebinding_finds_earlier_variants_again():
    s = Sim()
    specs = [
        filled(0), filled(0, dtype=qd.f64), qd.ndarray(qd.f32, 4, needs_grad=True), filled(0, dtype=qd.i32),
    ]
    before = Sim.put._variants
    for _ in range(3):
        for x in specs:
            s.x = x
            s.put(1)
            assert s.x[0] == 8
    assert Sim.put._variants - before <= len(specs)


# ---- across processes ------------------------------------------------------------------------------

PROGRAM = """
    import dataclasses, sys
    import ingot as qd
    from ingot import _core
    qd.init(arch=qd.cpu)

    @dataclasses.dataclass
    class Inner:
        w: qd.Tensor
        g: int

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        n: int

    @qd.data_oriented(template_primitives=False)
    class Sim:
        def __init__(self, dtype):
            self.x, self.k = qd.ndarray(dtype, 4), 3
            self.o = Outer(Inner(qd.ndarray(dtype, 4), 5), 2)

        @qd.kernel
        def go(self, o: Outer, maybe: qd.Tensor):
            for i in range(4):
                self.x[i] = self.k + o.inner.g * qd.static(o.n) + o.inner.w[i]
                if qd.static(maybe is not None):
                    self.x[i] += 100

    s = Sim(getattr(qd, sys.argv[1]))
    s.o.n = int(sys.argv[2])
    s.k = int(sys.argv[3])
    s.go(s.o, s.x if sys.argv[4] == "x" else None)
    assert s.x[0] == s.k + 5 * s.o.n + (100 if sys.argv[4] == "x" else 0)
    c = _core.counters()
    print(c["image_compiles"], c["parses"])
"""


@pytest.mark.counts("parses")
def test_entries_are_found_again_by_another_process(tmp_path, cache_dir, request):
    if "interp" in request.node.name:
        pytest.skip("one target is enough for what lies on disk")
    path = tmp_path / "prog.py"
    path.write_text(textwrap.dedent(PROGRAM))

    def run(*args):
        done = subprocess.run(
            [sys.executable, str(path), *args], capture_output=True, text=True, timeout=120,
            env=dict(os.environ),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [int(n) for n in done.stdout.split()]

    kinds = [("f32", "2", "3", "-"), ("f64", "2", "3", "-"), ("f32", "4", "3", "-"), ("f32", "2", "3", "x")]
    for kind in kinds:
        assert run(*kind)[1] > 0, kind  # each a distinct entry
    for kind in kinds:
        assert run(*kind) == [0, 0], kind
    assert run("f32", "2", "77", "-") == [0, 0]  # read at launch: no entry of its own
