"""Structs: in Python, in kernels and funcs, as arguments and results. Kernels run natively and
on the interpreter."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}
vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
mat2 = qd.types.matrix(2, 2, qd.f32)
mat6 = qd.types.matrix(6, 6, qd.f64)

Pair = qd.types.struct(a=qd.i32, v=vec2)
Outer = qd.types.struct(pair=Pair, k=qd.f32)
Big = qd.types.struct(m=mat6, n=qd.i32)
PAIR = Pair(3, [4, 5])


@qd.dataclass
class Ball:
    pos: vec3
    vel: vec3
    mass: qd.f32

    @qd.func
    def energy(self):
        return 0.5 * self.mass * self.vel.dot(self.vel)

    @qd.func
    def move(self, dt):
        self.pos += self.vel * dt

    @qd.func
    def moved(self, dt):
        b = self
        b.move(dt)
        return b

    @qd.func
    def total(self, other: qd.template()):
        return self.mass + other.mass

    def momentum(self):
        return [self.mass * x for x in self.vel]


@qd.dataclass
class Team:
    first: Ball
    second: Ball
    score: qd.i32

    @qd.func
    def energy(self) -> qd.f32:
        return self.first.energy() + self.second.energy()

    @qd.func
    def lighter(self):
        b = self.first
        if self.second.mass < b.mass:
            b = self.second
        return b


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


# ---- Python ------------------------------------------------------------------------------------


def test_python_structs():
    s = qd.Struct(x=1, v=[1.0, 2.0], inner={"y": 2})
    assert (s.x, s.v.to_list(), s.inner.y) == (1, [1.0, 2.0], 2)
    assert s.keys == ["x", "v", "inner"] and len(s) == 3 and s["x"] == 1 and list(s.items)[0] == ("x", 1)
    s.x, s.v, s.inner = 5, [3, 4], {"y": 7}
    assert s.to_dict() == {"x": 5, "v": [3, 4], "inner": {"y": 7}} == eval(repr(s))
    assert qd.Struct({"x": 1}).x == 1
    with pytest.raises(AttributeError, match="no member 'z'"):
        s.z
    with pytest.raises(AttributeError, match="no member 'z'"):
        s.z = 1
    with pytest.raises(TypeError, match="number is expected"):
        s.x = "no"
    with pytest.raises(TypeError, match="shape"):
        s.v = [1, 2, 3]
    with pytest.raises(qd.IngotSyntaxError, match="dictionary or keyword"):
        qd.Struct(1)


def test_python_struct_types():
    s = Outer(Pair(2.7, [1, 2]), k=3)
    assert s.to_dict() == {"pair": {"a": 2, "v": [1.0, 2.0]}, "k": 3.0}
    assert Outer(1).to_dict() == {"pair": {"a": 1, "v": [0.0, 0.0]}, "k": 0.0}
    assert Pair(v=3).to_dict() == {"a": 0, "v": [3.0, 3.0]}
    assert Outer.filled_with_scalar(2).to_dict() == {"pair": {"a": 2, "v": [2.0, 2.0]}, "k": 2.0}
    assert isinstance(s, Outer) and isinstance(s, qd.Struct) and not isinstance(s, Pair)
    assert isinstance(qd.Struct(a=1, v=qd.Vector([1.0, 2.0])), Pair)
    assert Pair(qd.Struct(a=2.5, v=[1, 2])).a == 2 and Pair.cast({"a": 1, "v": [1, 2]}).v[1] == 2.0
    assert list(Pair.members) == ["a", "v"] and Pair.members["a"] is qd.i32
    assert Pair == qd.types.struct(a=qd.i32, v=vec2) and Pair != qd.types.struct(v=vec2, a=qd.i32)
    assert str(Pair) == "<qd.StructType a=i32, v=VectorType[2, f32], struct_methods={}>"
    for bad in ({"a": 1, "x": 2}, {"z": 1}):
        with pytest.raises(qd.IngotSyntaxError, match="does not exist"):
            Pair(**bad)
    with pytest.raises(qd.IngotSyntaxError, match="from 3 values"):
        Pair(1, 2, 3)
    with pytest.raises(qd.IngotSyntaxError, match="twice"):
        Pair(1, a=2)
    with pytest.raises(qd.IngotSyntaxError, match="Incompatible"):
        Pair.cast(s)
    with pytest.raises(TypeError):
        Pair.members["b"] = qd.i32


def test_python_copies():
    s = Outer(Pair(1, [2, 3]), 4)
    for t in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert t.to_dict() == s.to_dict() and isinstance(t, Outer)
        t.pair.v[0] = 9
        assert s.pair.v[0] == 2
    assert pickle.loads(pickle.dumps(Outer)) == Outer


def test_members_and_methods_of_a_type_stay():
    """What is assigned to them, kernels would not see."""
    @qd.dataclass
    class Ball:
        x: qd.f64

        @qd.func
        def twice(self):
            return self.x * 2

    for name in ("x", "twice"):
        with pytest.raises(AttributeError, match=f"'{name}' of a struct type stays as it is"):
            setattr(Ball, name, Ball.methods["twice"])
    Ball.label = "round"  # any other name is an attribute like those of other objects
    assert Ball.label == "round"


def test_python_methods():
    b = Ball([0, 0, 0], [1, 2, 3], 2)
    assert b.momentum() == [2, 4, 6] and set(Ball.methods) == {"energy", "move", "moved", "momentum", "total"}
    assert b.to_dict(include_methods=True)["__struct_methods"] == dict(Ball.methods)


def test_what_a_struct_cannot_hold():
    for kind in (qd.types.ndarray(), qd.ndarray(qd.f32, 3), qd.Tensor, qd.types.NDArray[qd.f32, 1]):
        with pytest.raises(qd.IngotTypeError, match="is an array.*argument of its own"):
            qd.types.struct(a=kind)
    with pytest.raises(qd.IngotTypeError, match="is an array"):
        qd.Struct(a=qd.ndarray(qd.f32, 3))
    for kind in ("x", 3, list, qd.types.vector(3)):
        with pytest.raises(TypeError, match="member 'a' of a struct"):
            qd.types.struct(a=kind)
    with pytest.raises(qd.IngotSyntaxError, match="Default value"):
        @qd.dataclass
        class Bad:
            a: int = 3
    with pytest.raises(ValueError, match="at most"):
        kind = Pair
        for _ in range(40):
            kind = qd.types.struct(x=kind)
    with pytest.raises(ValueError, match="at most"):
        kind = mat6
        for _ in range(10):
            kind = qd.types.struct(a=kind, b=kind, c=kind)


def test_annotations_as_text():
    space = {"qd": qd, "__name__": __name__}
    exec("from __future__ import annotations\n@qd.dataclass\nclass T:\n    a: qd.i32\n    b: float\n", space)
    assert list(space["T"].members.values()) == [qd.i32, qd.f32]


def test_types_are_collected():
    def make():
        @qd.dataclass
        class T:
            a: qd.i32

            @qd.func
            def f(self):
                return T(self.a + 1).a
        @qd.kernel
        def k() -> qd.i32:
            return T(3).f()
        assert k() == 4
        return weakref.ref(T.methods["f"])

    gone = make()
    gc.collect()
    assert gone() is None


# ---- locals ------------------------------------------------------------------------------------


@qd.kernel
def local_structs(out: qd.types.ndarray()):
    for i in range(1):
        s = Pair(1, [2, 3])
        t = s
        t.a = 10
        t.v[0] = 20.0
        t.v.y += 5
        out[0] = s.a + s.v[0] * 100 + s.v[1] * 10000
        out[1] = t.a + t.v[0] * 100 + t.v[1] * 10000
        o = Outer(t, 7)
        o.pair.a -= 1
        o.pair = Pair(a=o.pair.a, v=[o.pair.v[1], o.pair.v[0]])
        out[2] = o.pair.a + o.pair.v[0] * 100 + o.pair.v[1] * 10000
        inner = o.pair
        inner.a = 77
        out[3] = o.pair.a
        out[4] = inner.a + o.k + len(o)
        s, t = t, s
        out[5] = s.a * 100 + t.a
        s = {"v": [8, 9], "a": 4}
        out[6] = s.a + s["v"][1]
        z = Outer()
        out[7] = z.k + z.pair.a + z.pair.v[0] + z.pair.v[1]


def test_locals():
    out = qd.ndarray(qd.f64, 8)
    local_structs(out)
    assert out.to_numpy().tolist() == [30201, 82010, 200809, 9, 86, 1001, 13, 0]


@qd.kernel
def untyped(out: qd.types.ndarray()):
    for i in range(1):
        s = qd.Struct(a=1, b=2.5, c=[1, 2], d={"x": 1, "e": {"y": 2}})
        s.a += i + 3
        s.d.x = 4
        s.d.e.y *= 3
        out[0] = s.a + s.b + s.c[1] + s.d.x + s.d.e.y
        t = qd.Struct({"p": s, "q": i})
        s.a = 0
        out[1] = t.p.a * 10 + t.q
        for name in qd.static(s.d.keys):
            out[2] += len(name)
        out[3] = s.a == 0


def test_untyped():
    out = qd.ndarray(qd.f64, 4)
    untyped(out)
    assert out.to_numpy().tolist() == [4 + 2.5 + 2 + 4 + 6, 40, 2, 1]


@qd.kernel
def dynamic_parts(out: qd.types.ndarray(), n: qd.i32):
    for i in range(n):
        s = Big(n=i)
        for r in range(6):
            for c in range(6):
                s.m[r, c] = r * 10 + c + s.n
        t = s
        t.m[i % 6, 1] = -1
        s.m = s.m + t.m
        out[i] = s.m[i % 6, 1] * 1000 + s.m[5, 5] + t.n


def test_large_members_and_dynamic_indices():
    out = qd.ndarray(qd.f64, 12)
    dynamic_parts(out, 12)
    i = np.arange(12)
    assert out.to_numpy().tolist() == ((i % 6 * 10 + 1 + i - 1) * 1000 + 2 * (55 + i) + i).tolist()


@qd.kernel
def shared(out: qd.types.ndarray(), n: qd.i32):
    s = Pair(0, [0, 0])
    for i in range(n):
        s.a += i
        s.v[1] += 1
    out[0] = s.a
    out[1] = s.v[1]


def test_parallel_updates_of_a_struct():
    out = qd.ndarray(qd.i64, 2)
    shared(out, 10000)
    assert out.to_numpy().tolist() == [10000 * 9999 // 2, 10000]


@qd.kernel
def branches(out: qd.types.ndarray()):
    for i in range(out.shape[0]):
        s = Pair(i, i)
        if i % 2 == 0:
            s = Pair(-i, 1)
        elif i == 3:
            s.v = [7, 8]
        j = 0
        while j < i:
            s.a += 1
            j += 1
        out[i] = s.a + s.v.sum() * 100


def test_branches_and_loops():
    out = qd.ndarray(qd.f32, 6)
    branches(out)
    assert out.to_numpy().tolist() == [200, 202, 200, 1506, 200, 1010]


def test_static_loops():
    names = ("pos", "vel")

    @qd.kernel
    def k(out: qd.types.ndarray()):
        for i in range(1):
            b = Ball([1, 2, 3], [4, 5, 6], 7)
            for name in qd.static(names):
                for j in qd.static(range(3)):
                    b[name][j] += 10 * (j + 1)
            for j in qd.static(range(3)):
                out[j] = b.pos[j] * 100 + b.vel[j]

    out = qd.ndarray(qd.f32, 3)
    k(out)
    assert out.to_numpy().tolist() == [1114, 2225, 3336]


# ---- funcs -------------------------------------------------------------------------------------


@qd.func
def by_value(s):
    s.a = 5
    s.v[0] = 9.0
    return s.a


@qd.func
def by_reference(s: qd.template()):
    s.a = 6
    s.v.x = 16


@qd.func
def annotated(s: Pair):
    s.a += 7
    return s


@qd.func
def result() -> Outer:
    return {"pair": {"a": 2.5, "v": [1, 2]}, "k": 3}


@qd.func
def several(s, t):
    return t, (s.a, s)


@qd.func
def early(n):
    if n > 2:
        return Pair(n, 1)
    return Pair(0, n)


@qd.func
def replace(x: qd.template(), by):
    x = by


@qd.kernel
def parts(s: Outer, m: mat2) -> (Outer, mat2, Outer):
    t = s  # assigned once, and only a part of it is handed on
    replace(t.pair.v, [7, 8])
    replace(x=t.k, by=9)
    n = m
    replace(n[1, 0], 5)
    u = s
    by_reference(u.pair)
    return t, n, u


def test_parts_by_reference():
    t, n, u = parts(Outer(PAIR, 2), [[1, 2], [3, 4]])
    assert (t.pair.v.to_list(), t.pair.a, t.k) == ([7, 8], 3, 9)
    assert n.to_list() == [[1, 2], [5, 4]]
    assert (u.pair.a, u.pair.v.to_list(), u.k) == (6, [16, 5], 2)


@qd.kernel
def funcs(out: qd.types.ndarray()):
    for i in range(1):
        s = Pair(1, 2)
        out[0] = by_value(s) * 100 + s.a * 10 + s.v[0]
        by_reference(s)
        out[1] = s.a * 100 + s.v[0]
        t = annotated(s)
        out[2] = s.a * 100 + t.a
        out[3] = annotated({"a": 1.5, "v": [1, 2]}).a
        r = result()
        out[4] = r.pair.a * 100 + r.k * 10 + r.pair.v[1]
        p, q = several(s, r)
        out[5] = p.pair.a * 100 + q[0] * 10 + q[1].v[0]
        out[6] = early(5).a * 10 + early(2).v[1]
        o = Outer(s, 1)
        by_reference(o.pair)
        out[7] = o.pair.a * 100 + s.a


def test_funcs():
    out = qd.ndarray(qd.f64, 8)
    funcs(out)
    assert out.to_numpy().tolist() == [512, 616, 613, 8, 232, 276, 52, 606]


@qd.func
def make_ball(i):
    return Ball([i, 0, 0], [1, i, 2], i + 1)


@qd.kernel
def methods(out: qd.types.ndarray()):
    for i in range(out.shape[0]):
        b = make_ball(i)
        b.move(2.0)
        c = b.moved(1.0)
        t = Team(b, c, 3)
        t.second.mass = 0.5
        light = t.lighter()
        light.move(1)
        out[i, 0] = b.pos[0]
        out[i, 1] = c.pos[1]
        out[i, 2] = t.energy()
        out[i, 3] = light.mass * 100 + light.pos.x
        out[i, 4] = t.second.total(b) + t.first.moved(3).pos[2]
        out[i, 5] = make_ball(i).energy()


def test_methods():
    out = qd.ndarray(qd.f32, (4, 6))
    methods(out)
    for i in range(4):
        e = 0.5 * (5 + i * i)
        assert out.to_numpy()[i].tolist() == pytest.approx(
            [i + 2, 3 * i, (i + 1.5) * e, 50 + i + 4, 0.5 + i + 1 + 10, (i + 1) * e])


def test_methods_by_struct_methods():
    @qd.func
    def area(self, scale):
        return self.w * self.h * scale

    Box = qd.types.struct(w=qd.f32, h=qd.f32, __struct_methods={"area": area})
    fixed = qd.Struct({"w": 2.0, "h": 3.0, "__struct_methods": {"area": area}})

    @qd.kernel
    def k() -> qd.f32:
        copied = fixed
        copied.w = 10
        return Box(2, 3).area(10) + fixed.area(1) + copied.area(100)

    assert k() == 60 + 6 + 3000


def test_top_level_funcs():
    @qd.func
    def fill(s, out):
        for i in range(10):
            out[i] = s.a + i
        return Ball(0, 0, s.a)

    @qd.kernel
    def k(out: qd.types.ndarray()):
        b = fill(Pair(5, 0), out)
        b.move(1)
        out[0] = b.mass + b.total(b)

    out = qd.ndarray(qd.f32, 10)
    k(out)
    assert out.to_numpy().tolist() == [15, 6, 7, 8, 9, 10, 11, 12, 13, 14]


# ---- kernels: arguments, results, captured structs ---------------------------------------------


def test_arguments():
    small = qd.types.struct(a=qd.i16, b=qd.u1, c=qd.f64)
    nested = qd.types.struct(m=qd.types.matrix(3, 2, qd.f32), s=small, n=qd.i64)

    @qd.kernel
    def k(x: nested, scale: qd.f32, only: small) -> qd.f64:
        total = x.s.c + x.n + x.s.a * scale
        for i in range(3):
            for j in range(2):
                total += x.m[i, j] * (i + 1) * (j + 2)
        if only.b:
            total += 1000
        return total

    m = np.arange(6).reshape(3, 2)
    want = 2**40 + 2 + 0.25 + (m * np.outer([1, 2, 3], [2, 3])).sum() + 1000
    arg = nested(m=m, s=small(qd.i16(65537), 1, 0.25), n=2**40)
    assert k(arg, 2, small(b=True)) == want  # 65537 is 1 as an i16
    assert k(qd.Struct(m=m.tolist(), s=qd.Struct(a=1, b=0, c=0.25), n=2**40), 2, small(b=1)) == want
    arg.s.a = 2
    assert k(arg, 2, small(b=0)) == want + 2 - 1000
    for bad in (3, small(1), {"m": 1}, qd.Struct(m=m.tolist(), s=3, n=1), qd.Struct(m=m.tolist(), s=small(1), n=[1]),
                qd.Struct(m=[1, 2], s=small(1), n=1)):
        with pytest.raises(qd.IngotRuntimeTypeError, match="cannot be converted into required type <qd.StructType"):
            k(bad, 2, small(1))


def test_arguments_are_copies():
    @qd.kernel
    def k(s: Outer) -> qd.f32:
        s.pair.a += 1
        s.pair.v = s.pair.v * 2
        t = s
        t.k = 100
        return s.pair.a + s.pair.v.sum() + s.k + t.k

    s = Outer(Pair(1, [2, 3]), 4)
    assert k(s) == k(s) == 2 + 10 + 4 + 100
    assert s.to_dict() == Outer(Pair(1, [2, 3]), 4).to_dict()


def test_methods_of_arguments():
    @qd.kernel
    def k(t: Team) -> (Ball, qd.f32, Team):
        return t.lighter().moved(2), t.energy(), t

    t = Team(Ball(0, 1, 5), Ball([1, 2, 3], [1, 0, 0], 2), 9)
    b, e, u = k(t)
    assert b.to_dict() == {"pos": [3.0, 2.0, 3.0], "vel": [1.0, 0.0, 0.0], "mass": 2.0}
    assert e == 8.5 and u.to_dict() == t.to_dict() and u.second.momentum() == [2, 0, 0]
    assert isinstance(b, Ball) and isinstance(u, Team)


def test_results():
    small = qd.types.struct(a=qd.i16, b=qd.u1, c=qd.f64, d=qd.u64)
    whole = qd.types.struct(m=mat2, s=small)

    @qd.kernel
    def k(n: qd.i32) -> whole:
        return whole(qd.Matrix([[1, 2], [n, 4]]), small(65537, n, 0.1, 2**63))

    got = k(3)
    assert got.m.to_list() == [[1, 2], [3, 4]] and got.s.a == 1 and got.s.b == 1
    assert got.s.c == np.float32(0.1) and got.s.d == 2**63 and k(0).s.b == 0

    @qd.kernel
    def other() -> Pair:
        return Outer(3)

    with pytest.raises(qd.IngotTypeError, match="another"):
        other()


def test_captured_structs():
    @qd.kernel
    def k(x: qd.template()) -> qd.f32:
        y = x
        y.a = 90
        return y.a + x.a + PAIR.v[1] + y.v[0] + annotated(PAIR).a + early_of(x)

    @qd.func
    def early_of(x):
        return x.v[1]

    assert k(PAIR) == 90 + 3 + 5 + 4 + 10 + 5
    assert k(Pair(1, 2)) == 90 + 1 + 5 + 2 + 10 + 2


@pytest.mark.counts("lowerings")
def test_only_what_is_read_counts():
    from ingot import _core

    s = qd.Struct(a=1, b=2)

    @qd.kernel
    def k() -> qd.i32:
        return s.a

    assert k() == 1
    before = _core.counters()["lowerings"]
    s.b = 3
    assert k() == 1 and _core.counters()["lowerings"] == before
    s.a = 5
    assert k() == 5


def test_special_names():
    @qd.dataclass
    class Odd:
        entries: int
        keys: int
        items: int
        methods: int

    @qd.kernel
    def k(o: Odd) -> int:
        x = Odd(42, 21, 23, 11)
        return x.entries + x.keys + x.items + x.methods + o.keys

    assert k(Odd(1, 2, 3, 4)) == 99
    o = Odd(1, 2, 3, 4)
    assert (o.entries, o.keys, o.items, o.methods) == (1, 2, 3, 4)


def test_empty_and_deep():
    empty = qd.types.struct()
    kind = qd.types.struct(x=qd.i32)
    for _ in range(20):
        kind = qd.types.struct(x=kind, e=empty)

    @qd.kernel
    def k(s: kind) -> kind:
        t = s
        t.x.x.x.e = empty()
        return t

    assert str(k(kind(7))) == str(kind(7).to_dict())


def test_unpacked():
    kind = qd.types.vector(4, qd.f32, unpacked=True)
    for bad in (lambda: kind(1.0), lambda: kind.ndarray(shape=3), lambda: kind.field(shape=3)):
        with pytest.raises(qd.IngotSyntaxError, match="unpacked=True.*@qd.dataclass"):
            bad()
    Tile = qd.types.struct(r=kind, s=qd.f32)
    with pytest.raises(qd.IngotSyntaxError, match="_r2.*unpacked"):
        qd.types.struct(r=kind, _r2=qd.f32)

    @qd.kernel
    def k() -> Tile:
        t = Tile(s=1)
        for i in qd.static(range(4)):
            t.r[i] = i + t.s
        return t

    assert k().to_dict() == {"r": [1.0, 2.0, 3.0, 4.0], "s": 1.0}


def test_many_numbers():
    Row = qd.types.struct(m=qd.types.matrix(12, 12, qd.f32))

    @qd.kernel
    def k(a: Row) -> Row:
        b = Row(a.m.transpose())
        b.m = b.m + a.m
        return b

    m = np.arange(144, dtype=np.float32).reshape(12, 12)
    assert np.array_equal(k(Row(m)).m.to_numpy(), m + m.T)
