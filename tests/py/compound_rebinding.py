"""Cases of compound_cases.py: members rebound between launches. Every kind of container meets
every kind of change; a case is one change, for all of them.

A container holds an array `x`, a number `k`, and `part` with an array `w`. Its kernel computes
out = x + w * k + place, where place tells the axes of x apart.
"""

import dataclasses

from compound_cases import N, case, full, refused

import ingot as qd

KINDS = {}


def kind(f):
    KINDS[f.__name__] = f
    return f


@dataclasses.dataclass
class Part:
    w: qd.Tensor


@qd.func
def sum_of(s: qd.template(), part, i):
    r = part.w[i] * s.k
    if qd.static(len(s.x.shape) == 2):
        r += s.x[i, 1] + i
    else:
        r += s.x[i]
    return r


@kind
def typed(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.Tensor
        k: int
        part: Part

    @qd.kernel
    def run(s: Own, out: qd.types.ndarray()):
        for i in range(N):
            out[i] = sum_of(s, s.part, i)

    return Own(full(dtype, 1), 2, Part(full(dtype, 10))), run, run


@kind
def typed_frozen(dtype):
    @dataclasses.dataclass(frozen=True)
    class Own:
        x: qd.Tensor
        k: int
        part: Part

    @qd.kernel
    def run(s: Own, out: qd.types.ndarray()):
        for i in range(N):
            out[i] = sum_of(s, s.part, i)

    return Own(full(dtype, 1), 2, Part(full(dtype, 10))), run, run


@kind
def template(dtype):
    @dataclasses.dataclass
    class Own:
        x: object
        k: object
        part: object

    @qd.kernel
    def run(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = sum_of(s, s.part, i)

    return Own(full(dtype, 1), 2, Part(full(dtype, 10))), run, run


class Methods:
    def __init__(self, dtype):
        self.x, self.k, self.part = full(dtype, 1), 2, Part(full(dtype, 10))


def with_methods(dtype, **options):
    @qd.data_oriented(**options)
    class Own(Methods):
        @qd.kernel
        def run(self, out: qd.types.ndarray()):
            for i in range(N):
                out[i] = sum_of(self, self.part, i)

    return Own(dtype), Own.run, Own.run


@kind
def class_with_methods(dtype):
    return with_methods(dtype)


@kind
def class_with_stable_members(dtype):
    return with_methods(dtype, stable_members=True)


@kind
def class_with_numbers_at_launch(dtype):
    return with_methods(dtype, template_primitives=False)


@kind
def slots(dtype):
    class Own:
        __slots__ = ("part", "x", "k")
        __init__ = Methods.__init__

    @qd.kernel
    def run(s: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = sum_of(s, s.part, i)

    return Own(dtype), run, run


@kind
def two_levels_down(dtype):
    class Box:
        pass

    @qd.kernel
    def run(box: qd.template(), out: qd.types.ndarray()):
        for i in range(N):
            out[i] = sum_of(box.inner.own, box.inner.own.part, i)

    box = Box()
    box.inner = Box()
    box.inner.own = Methods(dtype)
    return box.inner.own, lambda s, out: run(box, out), run


class Subject:
    """One container, its kernel, and what the kernel should compute."""

    def __init__(self, make, dtype):
        self.s, self.run, self.kernel = make(dtype)
        self.out, self.dtype = full(dtype, 0), dtype
        self.base = self.kernel._variants

    def check(self, value):
        self.run(self.s, self.out)
        assert [self.out[i] for i in range(N)] == ([value] * N if isinstance(value, (int, float)) else value)

    def put(self, **members):
        for name, value in members.items():
            object.__setattr__(self.s, name, value)

    def remove(self, name):
        object.__delattr__(self.s, name)

    def variants(self):
        return self.kernel._variants - self.base


def subjects(dtype):
    for make in KINDS.values():
        subject = Subject(make, dtype)
        subject.check(21)
        yield subject


def other(dtype):
    return qd.i32 if dtype != qd.i32 else qd.f32


@case
def another_array_of_the_same_kind(dtype):
    for s in subjects(dtype):
        for v in range(5):
            s.put(x=full(dtype, v))
            s.check(20 + v)
        s.s.part.w = full(dtype, 1)
        s.check(6)
        assert s.variants() == 1


@case(shares=True)
def an_array_of_another_dtype(dtype):
    for s in subjects(dtype):
        for _ in range(2):
            s.put(x=full(other(dtype), 5))
            s.check(25)
            s.put(x=full(dtype, 7))
            s.check(27)
        s.s.part.w = full(other(dtype), 1)
        s.check(9)
        s.s.part.w = full(dtype, 2)
        s.check(11)
        assert s.variants() == 3


@case(shares=True)
def an_array_of_other_axes(dtype):
    for s in subjects(dtype):
        for _ in range(2):
            plane = qd.ndarray(dtype, (N, 3))
            plane.fill(5)
            s.put(x=plane)
            s.check([25 + i for i in range(N)])
            s.put(x=full(dtype, 7))
            s.check(27)
        assert s.variants() == 2


@case(shares=True)
def an_array_of_another_layout(dtype):
    def plane(**options):
        a = qd.ndarray(dtype, (N, 3), **options)
        for i in range(N):
            for j in range(3):
                a[i, j] = 10 * i + j
        return a

    for s in subjects(dtype):
        for _ in range(2):
            for a in (plane(), plane(layout=(1, 0))):
                s.put(x=a)
                s.check([20 + 10 * i + 1 + i for i in range(N)])
        assert s.variants() == 3


@case(shares=True)
def an_array_of_another_shape(dtype):
    for s in subjects(dtype):
        for n in (N, N + 5, 100):
            longer = qd.ndarray(dtype, n)
            longer.fill(n)
            s.put(x=longer)
            s.check(20 + n)
        assert s.variants() == 1


@case(shares=True)
def an_array_with_a_gradient(dtype):
    for s in subjects(dtype):
        for _ in range(2):
            s.put(x=full(dtype, 5, needs_grad=True))
            s.check(25)
            s.put(x=full(dtype, 7))
            s.check(27)
        assert s.variants() == 2


@case(shares=True)
def a_nested_container(dtype):
    for s in subjects(dtype):
        for v in range(3):
            s.put(part=Part(full(dtype, v)))
            s.check(1 + 2 * v)
        assert s.variants() == 1
        s.put(part=Part(full(other(dtype), 4)))
        s.check(9)
        assert s.variants() == 2


@case(shares=True)
def a_nested_container_of_another_class(dtype):
    class Other:
        def __init__(self, v):
            self.noise, self.w = None, full(dtype, v)

    for s in subjects(dtype):
        for v in range(3):
            s.put(part=Other(v))
            s.check(1 + 2 * v)
            s.put(part=Part(full(dtype, v)))
            s.check(1 + 2 * v)
        assert s.variants() == 1


@case(shares=True)
def attributes_added_later(dtype):
    for s in subjects(dtype):
        if not hasattr(s.s, "__dict__"):
            continue
        for j in range(40):
            s.put(**{f"late{j}": full(dtype, j) if j % 2 else j})
            s.check(21)
        assert s.variants() == 1


@case
def an_attribute_that_is_asked_for_and_comes_later(dtype):
    class Own:
        bias = None

        def __init__(self):
            self.out = full(dtype, 0)

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.out[i] = 1
            if qd.static(s.bias is not None):
                s.out[i] += s.bias[i]

    s = Own()
    k(s)
    assert s.out[0] == 1
    s.bias = full(dtype, 10)
    k(s)
    assert s.out[0] == 11
    del s.bias
    k(s)
    assert s.out[0] == 1 and k._variants == 2


# A declared number that is missing is told by the launch itself, without lowering.
@case(shares=True, lowered=3 * len(KINDS) - 2)
def deleted_and_restored(dtype):
    for s in subjects(dtype):
        x, k, part = s.s.x, s.s.k, s.s.part
        for name, value in [("x", x), ("k", k), ("part", part)]:
            s.remove(name)
            refused(AttributeError, rf"['.]{name}\b", s.check, 21)
            s.put(**{name: value})
            s.check(21)
        assert s.variants() == 1


@case(shares=True, lowered=len(KINDS))
def a_member_of_a_part_deleted_and_restored(dtype):
    for s in subjects(dtype):
        del s.s.part.w
        refused(AttributeError, "no attribute 'w'", s.check, 21)
        s.s.part.w = full(dtype, 3)
        s.check(7)
        assert s.variants() == 1


@case(shares=True)
def a_number_changed_in_place(dtype):
    for s in subjects(dtype):
        for k in (3, 4, 3, 2):
            s.put(k=k)
            s.check(1 + 10 * k)
        assert s.variants() in (1, 3)


@case(shares=True)
def back_and_forth_between_instances(dtype):
    for make in KINDS.values():
        first, second = Subject(make, dtype), None
        first.check(21)
        first.put(x=full(dtype, 5), k=3)
        first.check(35)
        second = Subject(make, dtype)
        second.check(21)
        first.check(35)
        second.put(x=full(other(dtype), 6))
        second.check(26)
        first.check(35)


@case(shares=True)
def everything_at_once(dtype):
    for s in subjects(dtype):
        plane = qd.ndarray(other(dtype), (N, 2), layout=(1, 0), needs_grad=False)
        plane.fill(4)
        s.put(x=plane, k=3, part=Part(full(other(dtype), 5)))
        s.check([19 + i for i in range(N)])
        s.put(x=full(dtype, 1), k=2, part=Part(full(dtype, 10)))
        s.check(21)
        assert s.variants() == 2


@case(shares=True)
def arrays_that_trade_places(dtype):
    for s in subjects(dtype):
        x, w = full(dtype, 3), full(dtype, 5)
        s.put(x=x)
        s.s.part.w = w
        s.check(13)
        s.put(x=w)
        s.s.part.w = x
        s.check(11)
        s.put(x=x)  # one array twice
        s.check(9)
        assert s.variants() == 1
