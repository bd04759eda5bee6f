"""Cases of compound_cases.py: @qd.data_oriented classes, nested in each other and in dataclasses."""

import dataclasses

from compound_cases import N, case, full, refused

import ingot as qd


@dataclasses.dataclass
class Leaf:
    w: qd.types.ndarray()
    g: int


@qd.func
def of_leaf(leaf: Leaf, i):
    return leaf.w[i] * leaf.g


# ---- methods -------------------------------------------------------------------------------------


@case
def kernels_as_methods(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x = full(dtype, 1)

        @qd.kernel
        def step(self, v: qd.i32, w: qd.i32 = 5):
            for i in range(N):
                self.x[i] += v * w

    s = Own()
    s.step(2)
    Own.step(s, 2, 1)
    bound = s.step
    bound(w=1, v=3)
    assert s.x[0] == 1 + 10 + 2 + 3


@case
def funcs_as_methods(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x = full(dtype, 3)

        @qd.func
        def get(self, i):
            return self.x[i]

        @qd.func
        def put(self, i, v):
            self.x[i] = v + self.get(i=i)

        @qd.kernel
        def step(self):
            for i in range(N):
                self.put(i, v=10)

    s = Own()
    s.step()
    assert s.x[0] == 13


@case
def methods_replaced_between_launches(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self, v):
            self.x, self.out = full(dtype, v), full(dtype, 0)

        @qd.func
        def get(self, i):
            return self.x[i]

        @qd.kernel
        def step(self):
            for i in range(N):
                self.out[i] = self.get(i)

    class Other:
        @qd.func
        def get(self, i):
            return self.x[i] * 100

    @qd.func
    def alone(i):
        return 7

    a, b, get = Own(1), Own(2), Own.get

    def gives(value):
        a.step()
        assert a.out[0] == value

    gives(1)
    a.get = b.get  # bound to another
    gives(2)
    b.x = full(dtype, 3)
    gives(3)
    a.get = alone  # bound to nothing
    gives(7)
    del a.get
    gives(1)
    Own.get = Other.get
    gives(100)
    Own.get = staticmethod(alone)
    gives(7)
    Own.get = get
    gives(1)
    b.step()
    assert b.out[0] == 3 and Own.step._variants == 3


@case
def static_methods(dtype):
    @qd.data_oriented
    class Own:
        @staticmethod
        @qd.func
        def twice(v):
            return v * 2

        @staticmethod
        @qd.kernel
        def double(x: qd.types.ndarray()):
            for i in range(N):
                x[i] = Own.twice(x[i])

        @qd.kernel
        def step(self, x: qd.types.ndarray()):
            for i in range(N):
                x[i] = self.twice(x[i]) + Own.twice(1)

    x = full(dtype, 3)
    Own.double(x)
    Own().double(x)
    Own().step(x)
    assert x[0] == 26


@case
def class_methods(dtype):
    @qd.data_oriented
    class Own:
        scale = 3

        def __init__(self):
            self.x = full(dtype, 2)

        @classmethod
        def make(cls):
            return cls()

        @classmethod
        @qd.func
        def scaled(cls, v):
            return v * cls.scale

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.scaled(self.x[i])

    class Other(Own):
        scale = 5

    a, b = Own.make(), Other.make()
    a.step()
    b.step()
    assert (a.x[0], b.x[0]) == (6, 10)
    Own.scale = 7
    a.step()
    b.step()
    assert (a.x[0], b.x[0]) == (42, 50)


@case
def class_methods_that_are_kernels(dtype):
    @qd.data_oriented
    class Own:
        scale = 3

        @classmethod
        @qd.kernel
        def fill(cls, x: qd.types.ndarray()):
            for i in range(N):
                x[i] = cls.scale

    class Other(Own):
        scale = 5

    x = full(dtype, 0)
    Own.fill(x)
    assert x[0] == 3
    Other.fill(x)
    assert x[0] == 5
    Own().fill(x)
    assert x[0] == 3


class Base:
    weight = 2

    def __init__(self, dtype):
        self.x = full(dtype, 10)

    @qd.func
    def own(self, i):
        return self.x[i] * self.weight

    @qd.func
    def shared(self, i):
        return self.own(i) + 1

    @qd.kernel
    def run(self):
        for i in range(N):
            self.x[i] = self.shared(i)


@qd.data_oriented
class Inherits(Base):
    pass


@qd.data_oriented
class Overrides(Base):
    weight = 3

    @qd.func
    def own(self, i):
        return self.x[i] + self.weight


@qd.data_oriented
class Further(Overrides):
    @qd.kernel
    def run(self):
        for i in range(N):
            self.x[i] = self.own(i) * 100


@case
def inheritance(dtype):
    for cls, value in [(Inherits, 21), (Overrides, 14), (Further, 1300), (Inherits, 21)]:
        s = cls(dtype)
        s.run()
        assert s.x[0] == value, cls


@case
def properties(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self._x, self.n = full(dtype, 0), 2

        @property
        def x(self):
            return self._x

        @property
        def doubled(self):
            return self.n * 2

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.doubled

    s = Own()
    for n in (2, 5, 2):
        s.n = n
        s.step()
        assert s.x[0] == 2 * n
    s._x = full(dtype, 1)
    s.step()
    assert s._x[0] == 4
    assert Own.step._variants == 2


@case
def instances_as_templates_of_kernels_outside(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self, k):
            self.x, self.k = full(dtype, 1), k

        @qd.func
        def scaled(self, i):
            return self.x[i] * self.k

    @qd.kernel
    def outside(s: qd.Template, out: qd.types.ndarray()):
        for i in range(N):
            out[i] = s.scaled(i)

    @qd.kernel
    def called(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = s.scaled(i) + 1

    out = full(dtype, 0)
    for k in (2, 3, 2):
        outside(Own(k), out)
        assert out[0] == k
        called(out=out, s=Own(k))
        assert out[0] == k + 1
    assert outside._variants == 2


@case
def several_kernels_share_an_instance(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 1), 2

        @qd.kernel
        def grow(self):
            for i in range(N):
                self.x[i] += self.k

        @qd.kernel
        def scale(self):
            for i in range(N):
                self.x[i] *= self.k

    s = Own()
    for k in (2, 3):
        s.k, s.x = k, full(dtype, 1)
        s.grow()
        s.scale()
        s.grow()
        assert s.x[0] == (1 + k) * k + k


@case
def members_through_funcs_outside_of_the_class(dtype):
    @qd.func
    def deepest(s, i):
        return s.inner.w[i] * s.inner.g

    @qd.func
    def deeper(s: qd.template(), i):
        return deepest(s, i) + of_leaf(s.inner, i)

    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x, self.inner = full(dtype, 0), Leaf(full(dtype, 3), 2)

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = deeper(self, i)

    s = Own()
    s.step()
    assert s.x[0] == 12
    s.inner = Leaf(full(dtype, 1), 5)
    s.step()
    assert s.x[0] == 10


# ---- in each other -------------------------------------------------------------------------------


@case
def classes_in_classes_three_deep(dtype):
    @qd.data_oriented
    class C:
        def __init__(self):
            self.x, self.n = full(dtype, 1), 2

        @qd.func
        def get(self, i):
            return self.x[i] + self.n

    @qd.data_oriented
    class B:
        def __init__(self):
            self.c, self.n = C(), 10

        @qd.func
        def get(self, i):
            return self.c.get(i) + self.n

    @qd.data_oriented
    class A:
        def __init__(self):
            self.b, self.out = B(), full(dtype, 0)

        @qd.kernel
        def step(self):
            for i in range(N):
                self.out[i] = self.b.get(i) + self.b.c.x[i] * 100 + self.b.c.n * 1000

    a = A()
    a.step()
    assert a.out[0] == 3 + 10 + 100 + 2000
    a.b.c.x, a.b.c.n = full(dtype, 2), 3
    a.step()
    assert a.out[0] == 5 + 10 + 200 + 3000
    a.b.c = C()
    a.b.n = 20
    a.step()
    assert a.out[0] == 3 + 20 + 100 + 2000


@case
def dataclasses_in_classes_three_deep(dtype):
    @dataclasses.dataclass
    class Middle:
        leaf: Leaf
        k: float

    @dataclasses.dataclass(frozen=True)
    class Outer:
        middle: Middle

    @qd.data_oriented
    class Own:
        def __init__(self):
            self.out = full(dtype, 0)
            self.state = Outer(Middle(Leaf(full(dtype, 3), 2), 0.5))

        @qd.kernel
        def step(self):
            for i in range(N):
                self.out[i] = of_leaf(self.state.middle.leaf, i) + self.state.middle.k

    s = Own()
    for g, k in [(2, 0.5), (4, 0.5), (2, 1.5)]:
        s.state.middle.leaf.g, s.state.middle.k = g, k
        s.step()
        assert s.out[0] == 3 * g + k


@case
def classes_in_dataclasses_three_deep(dtype):
    @qd.data_oriented
    class Innermost:
        def __init__(self):
            self.x, self.n = full(dtype, 3), 2

        @qd.func
        def get(self, i):
            return self.x[i] * self.n

    @dataclasses.dataclass
    class Middle:
        part: Innermost

    @dataclasses.dataclass(frozen=True)
    class Outer:
        middle: Middle
        out: qd.types.ndarray()

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.out[i] = s.middle.part.get(i)

    s = Outer(Middle(Innermost()), full(dtype, 0))
    k(s)
    assert s.out[0] == 6
    s.middle.part.n = 5
    k(s)
    assert s.out[0] == 15
    s.middle.part = Innermost()
    k(s)
    assert s.out[0] == 6 and k._variants == 2


@case
def classes_and_dataclasses_by_turns(dtype):
    @qd.data_oriented
    class Four:
        def __init__(self):
            self.leaf = Leaf(full(dtype, 2), 3)

    @dataclasses.dataclass
    class Three:
        four: Four

    @qd.data_oriented
    class Two:
        def __init__(self):
            self.three = Three(Four())

    @dataclasses.dataclass
    class One:
        two: Two
        out: qd.types.ndarray()

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.out[i] = of_leaf(s.two.three.four.leaf, i)

    s = One(Two(), full(dtype, 0))
    for g in (3, 4, 3):
        s.two.three.four.leaf.g = g
        k(s)
        assert s.out[0] == 2 * g
    assert k._variants == 1  # the func declares it a dataclass: its numbers come at launch


@case
def a_typed_parameter_next_to_self(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 0), 10

        @qd.kernel
        def step(self, s: Leaf):
            for i in range(N):
                self.x[i] = of_leaf(s, i) + self.k

    o = Own()
    for g in (1, 2, 3):
        o.step(Leaf(full(dtype, 2), g))
        assert o.x[0] == 2 * g + 10
    assert Own.step._variants == 1


# ---- numbers ---------------------------------------------------------------------------------------


@case
def numbers_are_compiled_in(dtype):
    @qd.data_oriented
    class Own:
        def __init__(self, k):
            self.x, self.k = full(dtype, 0), k

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.k
            for j in qd.static(range(self.k)):
                self.x[0] += 10

    for k, variants in [(2, 1), (3, 2), (2, 2), (3, 2)]:
        s = Own(k)
        s.step()
        assert s.x[0] == 11 * k and s.x[1] == k and Own.step._variants == variants


@case
def numbers_at_launch(dtype):
    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.k, self.f, self.on = full(dtype, 0), 2, 0.5, True

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.k + self.f
                if self.on:
                    self.x[i] += 100

    s = Own()
    for k, f, on in [(2, 0.5, True), (3, 2.5, False), (-7, -0.5, True)]:
        s.k, s.f, s.on = k, f, on
        s.step()
        assert s.x[0] == k + f + 100 * on
    assert Own.step._variants == 1


@case
def numbers_at_launch_of_what_is_inside(dtype):
    @qd.data_oriented
    class Inside:
        def __init__(self):
            self.n = 1

    @qd.func
    def handed(inside):
        return inside.n

    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.inside, self.leaf = full(dtype, 0), Inside(), Leaf(full(dtype, 1), 1)
            self.parts = (Inside(), Inside())

        @qd.func
        def inner(self, i):
            return handed(self.inside) + 10 * self.leaf.g

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.inner(i)
                for p in qd.static(self.parts):
                    self.x[i] += 100 * p.n

    s = Own()
    for n in (1, 2, 3):
        s.inside.n, s.leaf.g, s.parts[1].n = n, n + 1, n + 2
        s.step()
        assert s.x[0] == n + 10 * (n + 1) + 100 * (n + 3)
    assert Own.step._variants == 1


@case
def a_number_at_launch_of_another_type(dtype):
    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 0), 1

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.k / 2

    s = Own()
    for k, variants in [(1, 1), (2.5, 2), (True, 3), (3, 3), (1.5, 3)]:
        s.k = k
        s.step()
        assert s.x[0] == k / 2 and Own.step._variants == variants


@case
def the_default_types_of_numbers_at_launch(dtype):
    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 0), 1 << 30

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = (self.k * 4) // 4  # wraps in i32

    s = Own()
    s.step()
    assert s.x[0] == 0
    s.k = 7
    s.step()
    assert s.x[0] == 7


@case(lowered=1)
def static_of_a_number_at_launch_is_refused(dtype):
    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 0), 2

        @qd.kernel
        def unrolled(self):
            for i in qd.static(range(self.k)):
                self.x[i] = 1

        @qd.kernel
        def plain(self):
            for i in range(self.k):
                self.x[i] = 1

    s = Own()
    refused(qd.IngotSyntaxError, "template_primitives=False.*qd.static", s.unrolled)
    s.plain()
    assert (s.x[1], s.x[2]) == (1, 0)


@case
def unread_numbers_are_free(dtype):
    @qd.data_oriented(template_primitives=False)
    class Own:
        def __init__(self):
            self.x, self.k = full(dtype, 0), 2
            for j in range(500):
                setattr(self, f"unread{j}", j)

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.k

    s = Own()
    for k in range(4):
        s.k = k
        for j in range(500):
            setattr(s, f"unread{j}", (j, str(k))[j % 2])
        s.step()
        assert s.x[0] == k
    assert Own.step._variants == 1


@case
def template_primitives_of_bases_and_subclasses(dtype):
    @qd.data_oriented
    class Compiled:
        def __init__(self, k):
            self.x, self.k = full(dtype, 0), k

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] = self.k

    @qd.data_oriented(template_primitives=False)
    class AtLaunch(Compiled):
        pass

    class Inherited(AtLaunch):
        pass

    for k in (1, 2, 3):
        for cls in (AtLaunch, Inherited):
            s = cls(k)
            s.step()
            assert s.x[0] == k
    assert Compiled.step._variants == 1
    for k in (1, 2, 3):
        s = Compiled(k)
        s.step()
        assert s.x[0] == k
    assert Compiled.step._variants == 4


@case
def stable_members_changes_nothing(dtype):
    @qd.data_oriented(stable_members=True)
    class Argument:
        def __init__(self):
            self.x, self.k = full(dtype, 1), 2

        @qd.kernel
        def step(self):
            for i in range(N):
                self.x[i] *= self.k

    @qd.data_oriented
    class Attribute:
        _qd_stable_members = True
        __init__ = Argument.__init__
        step = Argument.step

    for cls in (Argument, Attribute):
        s = cls()
        s.step()
        s.x, s.k = full(dtype, 3), 4
        s.step()
        assert s.x[0] == 12
        s.x = full(qd.i32, 5)
        s.step()
        assert s.x[0] == 20
