"""State in objects: dataclasses, data_oriented classes, templates, nested and rebound
between launches. What is read counts, what is rebound is seen, numbers that are declared
as such are read at each launch."""

import dataclasses
import gc
import weakref

import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])


def array(value, n=4, dtype=qd.f32):
    a = qd.ndarray(dtype, n)
    a.fill(value)
    return a


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
    inner = Inner(array(3), 2)
    s = State(array(0), array(5), 2.0, inner)
    advance(s)
    assert s.a[1] == 16
    inner.g = 7  # a declared number: read at each launch, no new variant
    advance(s)
    assert s.a[1] == 31
    inner.w = array(1)  # another array of the same spec
    advance(s)
    assert s.a[1] == 17
    assert advance._variants == 1
    inner.w = array(1, dtype=qd.i32)
    advance(s)
    assert s.a[1] == 17 and advance._variants == 2
    advance(State(array(0), array(1), 10.0, inner))
    assert advance._variants == 2


def test_dataclass_of_the_wrong_kind():
    inner = Inner(array(3), "text")
    s = State(array(0), array(5), 2.0, inner)
    with pytest.raises(qd.IngotError, match=r"inner\.g.* must be a number"):
        advance(s)
    inner.g = 1
    advance(s)
    assert s.a[0] == 13


class Grid:
    def __init__(self):
        self.w = array(2)


@qd.data_oriented
class Sim:
    def __init__(self):
        self.x, self.v = array(0), array(0)
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
    s.x = array(0)
    s.grid = Grid()
    s.step()
    assert s.x[3] == 4.5 and Sim.step._variants == 2
    s.grid.w = array(0)
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
    with pytest.raises(qd.IngotNameError, match="no attribute 'v'"):
        s.step()
    s.v = v
    s.step()
    s.extra = 5
    s.step()


@qd.data_oriented(template_primitives=False)
class AtLaunch:
    def __init__(self):
        self.x, self.n, self.f, self.on = array(1), 3, 0.5, True

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
    with pytest.raises(qd.IngotNameError):
        d.go()


@qd.kernel
def by_template(x: qd.types.ndarray(), cfg: qd.template()):
    for i in range(x.shape[0]):
        x[i] = cfg.scale * cfg.deep.w[i] if qd.static(cfg.deep is not None) else cfg.scale


def test_templates_and_optional_members():
    class Config:
        def __init__(self, scale, deep):
            self.scale, self.deep = scale, deep

    x = array(0)
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
        self.x, self.me, self.n = array(1), self, 2

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
