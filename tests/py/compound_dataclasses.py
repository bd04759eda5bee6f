"""Cases of compound_cases.py: dataclasses as parameters by their type, and by qd.template()."""

import dataclasses
from typing import Final, Optional

from compound_cases import N, case, full, refused

import ingot as qd
from ingot.compat.quadrants.lang._fast_caching import FIELD_METADATA_CACHE_VALUE

vec2 = qd.types.vector(2, qd.f32)
mat2 = qd.types.matrix(2, 2, qd.f32)


@dataclasses.dataclass
class Leaf:
    w: qd.types.ndarray()
    g: int


@dataclasses.dataclass(frozen=True)
class Stem:
    leaf: Leaf
    x: qd.Tensor


@dataclasses.dataclass
class Branch:
    stem: Stem
    k: float


@dataclasses.dataclass(frozen=True)
class Tree:
    branch: Branch
    out: qd.types.ndarray()


def tree(dtype, w=3, g=2, x=10, k=0.5):
    return Tree(Branch(Stem(Leaf(full(dtype, w), g), full(dtype, x)), k), full(dtype, 0))


@qd.func
def of_leaf(leaf: Leaf, i):
    return leaf.w[i] * leaf.g


@qd.func
def of_stem(s: Stem, i):
    return s.x[i] + of_leaf(s.leaf, i)


@qd.func
def of_branch(b: Branch, i):
    return of_leaf(leaf=b.stem.leaf, i=i) + of_stem(i=i, s=b.stem)


# ---- members -------------------------------------------------------------------------------------


@case
def an_unfrozen_dataclass(dtype):
    @qd.kernel
    def k(s: Leaf):
        for i in range(N):
            s.w[i] += s.g

    s = Leaf(full(dtype, 1), 2)
    k(s)
    assert s.w[0] == 3


@case
def a_frozen_dataclass(dtype):
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        w: qd.types.ndarray()
        g: int

    @qd.kernel
    def k(s: Frozen):
        for i in range(N):
            s.w[i] += s.g

    for g in (2, 5):
        s = Frozen(full(dtype, 1), g)
        k(s)
        assert s.w[0] == 1 + g
    assert k._variants == 1


@case
def dataclasses_with_slots(dtype):
    @dataclasses.dataclass(slots=True)
    class Slots:
        w: qd.types.ndarray()
        g: int

    @qd.kernel
    def k(s: Slots):
        for i in range(N):
            s.w[i] += s.g

    s = Slots(full(dtype, 1), 2)
    k(s)
    s.w, s.g = full(dtype, 10), 7
    k(s)
    assert s.w[0] == 17 and k._variants == 1


@case
def dataclasses_that_inherit(dtype):
    @dataclasses.dataclass
    class More(Leaf):
        h: float

    @qd.kernel
    def k(s: More):
        for i in range(N):
            s.w[i] = of_leaf(s, i) + s.h

    s = More(full(dtype, 3), 2, 0.5)
    k(s)
    assert s.w[0] == 6.5


@case
def nested_four_deep(dtype):
    @qd.kernel
    def k(t: Tree):
        for i in range(N):
            t.out[i] = t.branch.stem.leaf.w[i] * t.branch.stem.leaf.g + t.branch.stem.x[i] + t.branch.k

    for g, v in [(2, 0.5), (3, 2.0)]:
        t = tree(dtype, g=g, k=v)
        k(t)
        assert t.out[N - 1] == 3 * g + 10 + v
    assert k._variants == 1


@case
def numbers_of_every_declared_type(dtype):
    @dataclasses.dataclass
    class Numbers:
        out: qd.types.ndarray()
        a: int
        b: float
        c: bool
        d: qd.u8
        e: qd.f64
        f: qd.i64

    @qd.kernel
    def k(s: Numbers):
        for i in range(N):
            s.out[i] = s.a + s.b + s.d + s.e + s.f
            if s.c:
                s.out[i] += 1000

    for a, b, c, d, e, f in [(1, 0.5, True, 3, 4.0, 5), (2, 1.5, False, 200, 0.25, -9)]:
        s = Numbers(full(dtype, 0), a, b, c, d, e, f)
        k(s)
        assert s.out[0] == a + b + d + e + f + 1000 * c
    assert k._variants == 1


@case
def vectors_and_matrices(dtype):
    @dataclasses.dataclass
    class Shapes:
        out: qd.types.ndarray()
        v: vec2
        m: mat2

    @qd.kernel
    def k(s: Shapes):
        for i in range(N):
            s.out[i] = (s.m @ s.v)[1] + s.v[0]

    s = Shapes(full(dtype, 0), vec2(1, 2), mat2([[1, 2], [3, 4]]))
    k(s)
    assert s.out[0] == 12
    s.v, s.m = vec2(3, 0), mat2([[0, 0], [2, 0]])
    k(s)
    assert s.out[0] == 9
    s.v[0] = 1
    k(s)
    assert s.out[0] == 3 and k._variants == 1


@case
def arrays_of_vectors(dtype):
    @dataclasses.dataclass
    class Points:
        p: qd.types.ndarray(dtype=qd.types.vector(3, dtype), ndim=1)

    @qd.kernel
    def k(s: Points):
        for i in range(N):
            s.p[i] = s.p[i] + qd.Vector([1, 2, 3])

    s = Points(qd.Vector.ndarray(3, dtype, N))
    s.p.fill(0)
    k(s)
    k(s)
    assert s.p[2][2] == 6


@case
def declared_kinds_of_array(dtype):
    @dataclasses.dataclass
    class Kinds:
        a: qd.Tensor
        b: qd.types.ndarray()
        c: qd.types.NDArray[dtype, 1]
        d: qd.types.ndarray(dtype, 2)
        e: Optional[qd.types.ndarray()]
        f: "qd.Tensor | None" = None

    @qd.kernel
    def k(s: Kinds):
        for i in range(N):
            s.a[i] = s.b[i] + s.c[i] + s.d[i, 1]
            if qd.static(s.e is not None):
                s.a[i] += s.e[i]
            if qd.static(s.f is not None):
                s.a[i] += s.f[i]

    plane = qd.ndarray(dtype, (N, 2))
    plane.fill(4)
    s = Kinds(full(dtype, 0), full(dtype, 1), full(dtype, 2), plane, None)
    for e, f in [(None, None), (8, None), (None, 16), (8, 16)]:
        s.e = None if e is None else full(dtype, e)
        s.f = None if f is None else full(dtype, f)
        k(s)
        assert s.a[0] == 7 + (e or 0) + (f or 0)
    assert k._variants == 4


@case
def several_parameters_of_one_type(dtype):
    @qd.kernel
    def k(a: Leaf, out: qd.types.ndarray(), b: Leaf, scale: qd.f32):
        for i in range(N):
            out[i] = of_leaf(a, i) + scale * of_leaf(b, i)

    a, b, out = Leaf(full(dtype, 1), 2), Leaf(full(dtype, 3), 4), full(dtype, 0)
    k(a, out, b, 10)
    assert out[0] == 122
    k(b=a, a=b, out=out, scale=10)
    assert out[0] == 32
    k(a, out, a, 1)
    assert out[0] == 4 and k._variants == 1


# ---- passed to funcs -----------------------------------------------------------------------------


@case
def whole_by_position_from_a_kernel(dtype):
    @qd.kernel
    def k(s: Leaf, out: qd.types.ndarray()):
        for i in range(N):
            out[i] = of_leaf(s, i)

    out = full(dtype, 0)
    k(Leaf(full(dtype, 3), 2), out)
    assert out[0] == 6


@case
def whole_by_keyword_from_a_kernel(dtype):
    @qd.kernel
    def k(s: Leaf, out: qd.types.ndarray()):
        for i in range(N):
            out[i] = of_leaf(i=i, leaf=s)

    out = full(dtype, 0)
    k(out=out, s=Leaf(full(dtype, 3), 2))
    assert out[0] == 6


@case
def a_part_by_position(dtype):
    @qd.kernel
    def k(s: Stem):
        for i in range(N):
            s.x[i] = of_leaf(s.leaf, i)

    s = Stem(Leaf(full(dtype, 3), 2), full(dtype, 0))
    k(s)
    assert s.x[0] == 6


@case
def a_part_by_keyword(dtype):
    @qd.kernel
    def k(s: Stem):
        for i in range(N):
            s.x[i] = of_leaf(leaf=s.leaf, i=i)

    s = Stem(Leaf(full(dtype, 3), 2), full(dtype, 0))
    k(s)
    assert s.x[0] == 6


@case
def a_part_from_three_levels_down(dtype):
    @qd.kernel
    def k(t: Tree):
        for i in range(N):
            t.out[i] = of_leaf(t.branch.stem.leaf, i) + of_leaf(i=i, leaf=t.branch.stem.leaf)

    t = tree(dtype)
    k(t)
    assert t.out[0] == 12


@case
def parts_from_funcs_in_funcs(dtype):
    @qd.kernel
    def k(t: Tree):
        for i in range(N):
            t.out[i] = of_branch(t.branch, i)

    for g in (2, 4):
        t = tree(dtype, g=g)
        k(t)
        assert t.out[0] == 6 * g + 10
    assert k._variants == 1


@case
def a_part_by_a_local_name(dtype):
    @qd.func
    def again(b, i):
        t = b.stem
        u = t.leaf
        return of_leaf(u, i) + of_stem(t, i)

    @qd.kernel
    def k(t: Tree):
        for i in range(N):
            s = t.branch.stem.leaf
            t.out[i] = of_leaf(s, i) + again(t.branch, i)

    for g in (2, 4):
        t = tree(dtype, g=g)
        k(t)
        assert t.out[0] == 9 * g + 10
    assert k._variants == 1


@case
def parameters_without_annotation_keep_what_was_declared(dtype):
    @qd.func
    def bare(s, i):
        return s.leaf.w[i] * s.leaf.g

    @qd.func
    def template(s: qd.template(), i):
        return bare(s, i) + s.leaf.g

    @qd.kernel
    def k(s: Stem):
        for i in range(N):
            s.x[i] = template(s, i)

    s = Stem(Leaf(full(dtype, 3), 2), full(dtype, 0))
    for g in (2, 5, 9):
        s.leaf.g = g
        k(s)
        assert s.x[0] == 4 * g
    assert k._variants == 1


@case
def funcs_that_write_to_parts(dtype):
    @qd.func
    def store(leaf: Leaf, i):
        leaf.w[i] = i + leaf.g

    @qd.kernel
    def k(t: Tree):
        for i in range(N):
            store(t.branch.stem.leaf, i)

    t = tree(dtype)
    k(t)
    assert t.branch.stem.leaf.w[3] == 5


# ---- annotations that are text -------------------------------------------------------------------


@dataclasses.dataclass
class Written:
    w: "qd.types.ndarray()"
    g: "int"
    part: "WrittenPart"
    order: "Final[int]" = 1


@dataclasses.dataclass
class WrittenPart:
    v: "qd.Tensor"
    h: "float"


@qd.func
def of_written(s: "WrittenPart", i):
    return s.v[i] * s.h


@qd.kernel
def written(s: "Written"):
    for i in range(N):
        s.w[i] = s.g + of_written(s.part, i)
        for j in qd.static(range(s.order)):
            s.w[i] += 100


@case
def annotations_that_are_text(dtype):
    before = written._variants
    s = Written(full(dtype, 0), 1, WrittenPart(full(dtype, 4), 0.5))
    for g, h, order in [(1, 0.5, 1), (2, 1.5, 1), (2, 1.5, 2), (7, 2.0, 1)]:
        s.g, s.part.h, s.order = g, h, order
        written(s)
        assert s.w[0] == g + 4 * h + 100 * order
    assert written._variants - before == 2


# ---- by template -------------------------------------------------------------------------------------


def by_template(dtype, frozen):
    @dataclasses.dataclass(frozen=frozen)
    class Own:
        x: qd.types.ndarray()
        leaf: Leaf
        n: int

    @qd.kernel
    def k(s: qd.template()):
        for i in range(N):
            s.x[i] = of_leaf(s.leaf, i) + s.n + qd.static(frozen)

    for n in (1, 2, 1):
        s = Own(full(dtype, 0), Leaf(full(dtype, 3), 2), n)
        k(s)
        assert s.x[0] == 6 + n + frozen
    assert k._variants == 2  # numbers of a template are compiled in


@case
def a_frozen_dataclass_by_template(dtype):
    by_template(dtype, True)


@case
def an_unfrozen_dataclass_by_template(dtype):
    by_template(dtype, False)


@case
def the_same_object_typed_and_as_template(dtype):
    @qd.kernel
    def k(s: Leaf, t: qd.Template):
        for i in range(N):
            s.w[i] = s.g + t.g * 100

    s = Leaf(full(dtype, 0), 2)
    for g in (2, 3):
        s.g = g
        k(s, s)
        assert s.w[0] == 101 * g


# ---- numbers: at launch, or compiled in and compared --------------------------------------------------


@case
def declared_numbers_are_read_at_launch(dtype):
    @qd.kernel
    def k(s: Leaf):
        for i in range(N):
            s.w[i] = s.g

    s = Leaf(full(dtype, 0), 0)
    for g in range(-3, 12):
        s.g = g
        k(s)
        assert s.w[0] == g
    assert k._variants == 1


@case
def static_numbers_are_compiled_in_and_compared(dtype):
    @qd.kernel
    def k(s: Leaf):
        for i in range(N):
            s.w[i] = s.g
            for j in qd.static(range(s.g)):
                s.w[i] += 100

    s = Leaf(full(dtype, 0), 0)
    for g in (2, 3, 2, 3):
        s.g = g
        k(s)
        assert s.w[0] == 101 * g
    assert k._variants == 2


@case
def static_numbers_two_funcs_deep(dtype):
    @qd.func
    def inner(s, i):
        r = 0
        for j in qd.static(range(s.g)):
            r += 10
        return r

    @qd.func
    def outer(s: Stem, i):
        return inner(s.leaf, i)

    @qd.kernel
    def k(s: Stem):
        for i in range(N):
            s.x[i] = outer(s, i)

    s = Stem(Leaf(full(dtype, 0), 0), full(dtype, 0))
    for g in (2, 3, 2):
        s.leaf.g = g
        k(s)
        assert s.x[0] == 10 * g
    assert k._variants == 2


@case
def final_numbers(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        n: Final[int]
        f: Final[qd.f32]

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            s.x[i] = s.n + s.f

    for n, f in [(1, 0.5), (2, 0.5), (2, 1.5), (1, 0.5)]:
        s = Own(full(dtype, 0), n, f)
        k(s)
        assert s.x[0] == n + f
    assert k._variants == 3


@case
def marked_numbers(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        n: int = dataclasses.field(metadata={FIELD_METADATA_CACHE_VALUE: True})

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            s.x[i] = s.n

    for n in (1, 2, 1):
        s = Own(full(dtype, 0), n)
        k(s)
        assert s.x[0] == n
    assert k._variants == 2


@case
def what_is_declared_counts(dtype):
    """Kernels of one text whose dataclasses declare the field differently."""

    def make(declared):
        @dataclasses.dataclass
        class Own:
            x: qd.types.ndarray()
            n: declared

        @qd.kernel
        def k(s: Own):
            for i in range(N):
                s.x[i] = s.n / 2

        return Own, k

    for declared, values, variants in [
        (int, (1, 2, 3), 1), (float, (1, 2.5), 1), (Final[int], (1, 2), 2), (qd.f64, (1, 0.25), 1),
        ("Final[int]", (4, 5), 2), (object, (1, 2.5), 2), (qd.f32, (1.5, 2), 1),
    ]:
        own, k = make(declared)
        for n in values:
            s = own(full(dtype, 0), n)
            k(s)
            assert s.x[0] == n / 2, (declared, n)
        assert k._variants == variants, declared


@case
def numbers_of_a_field_without_a_known_type_are_never_stale(dtype):
    @dataclasses.dataclass
    class Own:
        x: qd.types.ndarray()
        n: object
        m: "int | None" = None

    @qd.kernel
    def k(s: Own):
        for i in range(N):
            s.x[i] = s.n
            if qd.static(s.m is not None):
                s.x[i] += s.m

    for n, m in [(1, None), (2, None), (2, 40), (2, 50), (1, None)]:
        s = Own(full(dtype, 0), n, m)
        k(s)
        assert s.x[0] == n + (m or 0)


@case(lowered=1)
def a_data_oriented_field_is_refused(dtype):
    @qd.data_oriented
    class Solver:
        def __init__(self):
            self.x = full(dtype, 0)

    @dataclasses.dataclass
    class Outer:
        solver: Solver

    @qd.kernel
    def typed(o: Outer):
        for i in range(N):
            o.solver.x[i] = 3

    @qd.kernel
    def template(o: qd.template()):
        for i in range(N):
            o.solver.x[i] = 3

    o = Outer(Solver())
    refused(qd.IngotSyntaxError, "'solver' of .*Outer.*data_oriented.*qd.template", typed, o)
    template(o)
    assert o.solver.x[0] == 3


@case(lowered=1)
def a_data_oriented_field_two_levels_down_is_refused(dtype):
    @qd.data_oriented
    class Solver:
        def __init__(self):
            self.x = full(dtype, 0)

    @dataclasses.dataclass
    class Inner:
        solver: Solver
        x: qd.types.ndarray()

    @dataclasses.dataclass
    class Outer:
        inner: Inner

    @qd.func
    def store(inner: Inner, i):
        inner.solver.x[i] = 1

    @qd.kernel
    def typed(o: Outer):
        for i in range(N):
            store(o.inner, i)

    @qd.kernel
    def other_members(o: Outer):
        for i in range(N):
            o.inner.x[i] = 1

    o = Outer(Inner(Solver(), full(dtype, 0)))
    refused(qd.IngotSyntaxError, "'solver' of .*Inner.*data_oriented.*qd.template", typed, o)
    other_members(o)
    assert o.inner.x[0] == 1
