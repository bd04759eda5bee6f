"""Expressions give what Python gives: when operands are read and which are evaluated at all
(elements and variables that a later operand changes), and compile-time values that are compared
or made into text. Right, or refused."""

import enum

import numpy as np
import pytest

import ingot as qd


class Access(enum.Flag):
    R = 1
    W = 2
    X = 4
    RW = 3


class Other(enum.Flag):
    R = 1


Pair = qd.types.struct(x=qd.i32, y=qd.i32)
A = qd.types.ndarray()


@pytest.fixture(params=["interp", "cpu"])
def arch(request):
    qd.init(arch=getattr(qd, request.param))
    return request.param


# ---- operands are read in order -----------------------------------------------------------------

@qd.func
def bump(o):
    o[0] += 1
    return o[0]


@qd.func
def raised(x: qd.template()):
    x += 3
    return x


@qd.func
def minus(x, y):
    return x * 10 - y


@qd.func
def of_pair(t, y):
    return t[0] * 10 - y


@qd.func
def add_into(x: qd.template(), y):
    x += y


def run(k):
    o = np.array([4, 0, 0], np.int32)
    k(o)
    return o.tolist()


def test_items_are_read_in_order(arch):
    @qd.kernel
    def unpacked(o: qd.types.ndarray()):
        x, y, z = o[0], bump(o), o[0]
        o[1], o[2] = x * 100 + y * 10 + z, 0

    @qd.kernel
    def nested(o: qd.types.ndarray()):
        (x, y), z = (o[0], o[0]), bump(o)
        o[1], o[2] = x + y, z

    @qd.kernel
    def joined(o: qd.types.ndarray()):
        t = (o[0],) + (bump(o),)
        o[1], o[2] = t[0], t[1]

    @qd.kernel
    def of_a_vector(o: qd.types.ndarray()):
        v = qd.Vector([o[0], bump(o)])
        o[1], o[2] = v[0], v[1]

    @qd.kernel
    def of_a_struct(o: qd.types.ndarray()):
        s = Pair(x=o[0], y=bump(o))
        o[1], o[2] = s.x, s.y

    assert run(unpacked) == [5, 455, 0]
    assert run(nested) == [5, 8, 5]
    for k in (joined, of_a_vector, of_a_struct):
        assert run(k) == [5, 4, 5]


def test_arguments_are_read_in_order(arch):
    @qd.kernel
    def elements(o: qd.types.ndarray()):
        o[1] = minus(o[0], bump(o))
        o[2] = minus(y=o[0], x=bump(o))

    @qd.kernel
    def in_a_tuple(o: qd.types.ndarray()):
        o[1] = of_pair((o[0], 1), bump(o))
        o[2] = min(o[0] * 2, bump(o) * 2)

    @qd.kernel
    def variables(o: qd.types.ndarray()):
        x = 4
        o[1] = minus(x, raised(x))
        o[2] = minus(x, (x := x + 1))
        o[0] = x

    assert run(elements) == [6, 4 * 10 - 5, 6 * 10 - 5]
    assert run(in_a_tuple) == [6, 4 * 10 - 5, 10]
    assert run(variables) == [8, 4 * 10 - 7, 7 * 10 - 8]


def test_variables_are_read_before_what_is_added(arch):
    @qd.kernel
    def k(o: qd.types.ndarray()):
        x = 4
        x += raised(x)
        y = 4
        y *= (y := y + 1)
        o[0], o[1] = x, y

    assert run(k) == [4 + 7, 4 * 5, 0]


def test_references_stay_references(arch):
    @qd.kernel
    def k(o: qd.types.ndarray()):
        x = 10
        add_into(x, bump(o))
        add_into(o[1], bump(o))
        o[2] = x + qd.atomic_add(o[1], bump(o))

    assert run(k) == [7, 6 + 7, 15 + 6]


def test_a_tuple_that_has_a_name_stays_a_variable(arch):
    @qd.kernel
    def k(o: qd.types.ndarray()):
        x = 1
        l = [x, 2]
        both = (l, bump(o))
        l[0] = 7
        o[1] = l[0]
        o[2] = both[0][0]

    assert run(k) == [5, 7, 1]


# ---- chains end at the first comparison that does not hold ------------------------------------------

def test_chains(arch):
    @qd.kernel
    def k(o: qd.types.ndarray(), x: qd.i32):
        if 0 < x < bump(o) < bump(o) + 1:
            o[1] = 1
        while 100 < o[2] < bump(o):
            o[2] += 1

    def result(x):
        o = np.array([4, 0, 0], np.int32)
        k(o, x)
        return o.tolist()

    assert result(-1) == [4, 0, 0]
    assert result(9) == [5, 0, 0]
    assert result(3) == [6, 1, 0]


def test_chains_do_not_read_beyond_arrays():
    qd.init(arch=qd.cpu, debug=True)

    @qd.kernel
    def k(a: qd.types.ndarray(), i: qd.i32) -> qd.i32:
        r = 0
        if -1 < i < a.shape[0] != a[i]:
            r = 1
        return r

    a = np.array([3, 1, 3], np.int32)
    assert [k(a, i) for i in (-1, 0, 1, 2, 3, 100)] == [0, 0, 1, 0, 0, 0]


# ---- compile-time values -----------------------------------------------------------------------------

items = [1, 2, 3]
named = {"b": 2, "a": 1}
access = Access.RW
table = np.array([[1, 2], [3, 4]])
row = np.array([1, 2, 3])
text = "abc"
given = (2, 3)


def kind(x):
    return type(x).__name__


def test_slices_of_lists_are_lists(arch):
    @qd.kernel
    def k() -> (qd.i32, qd.i32, qd.i32, qd.i32):
        return (qd.static(items[:2] == [1, 2]), qd.static(items[:2] == (1, 2)),
                qd.static(isinstance(items[1:], list)), qd.static(len(kind(items[::-1]))))

    assert k() == (1, 0, 1, len("list"))


def test_flags_combine_to_flags(arch):
    global access

    @qd.kernel
    def k() -> (qd.i32, qd.i32, qd.i32, qd.i32, qd.i32):
        return (qd.static((access & Access.R) == Access.R), qd.static((access | Access.W) == Access.RW),
                qd.static((access ^ Access.R) is Access.W), qd.static(bool(access & Access.X)),
                qd.static((access & Access.W) in (Access.R, Access.X)))

    for access in (Access.RW, Access.R, Access.X, Access.W, Access.RW):
        assert k() == ((access & Access.R) == Access.R, (access | Access.W) == Access.RW,
                       (access ^ Access.R) is Access.W, bool(access & Access.X),
                       (access & Access.W) in (Access.R, Access.X))


def test_flags_of_two_classes_are_refused(arch):
    @qd.kernel
    def k() -> qd.i32:
        return qd.static(bool(access & Other.R))

    with pytest.raises(qd.IngotCompilationError, match="unsupported operand"):
        k()


def refused(match, k):
    with pytest.raises(qd.IngotCompilationError, match=match):
        k()


def test_what_is_not_compared_is_refused(arch):
    @qd.kernel
    def dicts() -> qd.i32:
        return qd.static(named == {"a": 1, "b": 2})

    @qd.kernel
    def dicts_in_lists() -> qd.i32:
        return qd.static([named] == [{"a": 1, "b": 2}])

    @qd.kernel
    def arrays() -> qd.i32:
        return qd.static(row == (1, 2, 3))

    @qd.kernel
    def rows() -> qd.i32:
        return qd.static(1 in table)

    @qd.kernel
    def dtypes() -> qd.i32:
        return qd.static(row.dtype == np.int64)

    refused("equal cannot be known", dicts)
    refused("equal cannot be known", dicts_in_lists)
    refused("element by element", arrays)
    refused("element by element", rows)
    refused("dtype of an array", dtypes)


def test_shown_text_is_not_pythons(arch):
    @qd.kernel
    def of_a_tuple() -> qd.i32:
        return 1 if f"{given}" == "(2, 3)" else 0

    @qd.kernel
    def passed() -> qd.i32:
        return len(kind(f"{items}"))

    @qd.kernel
    def repr_of_text() -> qd.i32:
        return 1 if f"{text!r}" == "'abc'" else 0

    @qd.kernel
    def named_in_percent():
        print("%(a)s" % named)

    @qd.kernel
    def of_the_run_time(n: qd.i32) -> qd.i32:
        return 1 if f"{n}" == "3" else 0

    refused("cannot be compared", of_a_tuple)
    refused("cannot be passed", passed)
    refused("no conversions", repr_of_text)
    refused("not supported", named_in_percent)
    refused("cannot be compared", lambda: of_the_run_time(3))


def test_numbers_of_booleans(arch):
    @qd.kernel
    def k() -> (qd.i32, qd.i32):
        return qd.static(len(kind(abs(True)))), qd.static(len(kind(round(False))))

    assert k() == (3, 3)


def test_numpy_floats_are_compared_in_their_type(arch):
    tenth = np.float32(0.1)

    @qd.kernel
    def k(x: qd.f32) -> (qd.i32, qd.i32):
        return int(tenth == 0.1), int(x == 0.1)

    assert k(0.1) == (1, 1)


def test_numpy_numbers_in_funcs_are_right_or_refused(arch):
    tenth, yes = np.float32(0.1), np.bool_(True)

    @qd.func
    def length(x: qd.template()):
        return qd.static(len(str(x)))

    @qd.func
    def is_int(x: qd.template()):
        return qd.static(isinstance(x, int))

    @qd.kernel
    def here() -> (qd.i32, qd.i32):
        return qd.static(len(str(tenth))), qd.static(isinstance(yes, int))

    @qd.kernel
    def text() -> qd.i32:
        return length(tenth)

    @qd.kernel
    def kind_of() -> qd.i32:
        return is_int(yes)

    assert here() == (len(str(tenth)), 0)
    refused("a type of its own", text)
    refused("isinstance", kind_of)


# ---- names of compile-time values -----------------------------------------------------------------

seven = 7


def test_static_values_for_variables(arch):
    @qd.kernel
    def k(o: qd.types.ndarray(), n: qd.i32):
        x, t, u, v = 1, (1, 2), 3, 4
        if n > 0:
            x = qd.static(seven)
            t = qd.static((5, 6))
            u, v = qd.static((8, 9))
        while n > x:
            x = qd.static(seven * 10)
        o[0], o[1], o[2] = x, t[0] * 10 + t[1], u * 10 + v

    o = np.zeros(3, np.int32)
    for n, want in (0, [1, 12, 34]), (5, [7, 56, 89]), (50, [70, 56, 89]):
        k(o, n)
        assert o.tolist() == want


def test_static_values_that_get_others(arch):
    @qd.kernel
    def k() -> (qd.i32, qd.i32):
        x = qd.static(0)
        y = qd.static(1)
        for i in qd.static(range(4)):
            x = qd.static(x + i)
        if qd.static(seven > 3):
            y = qd.static(x * 2)
        return x, y

    assert k() == (6, 12)


def test_names_of_unrolled_loops(arch):
    @qd.kernel
    def k(o: qd.types.ndarray(), n: qd.i32):
        x, a, b, c = 5, 1, 2, 2
        c += 1
        for x in qd.static(range(9)):
            if qd.static(x == 3):
                break
        for a, b in qd.static(((3, 4), (5, 6))):
            o[0] = a
        for c in qd.static(range(0)):
            o[0] = c
        if n > 0:
            for c in qd.static(range(3)):
                o[0] = c
        o[1], o[2] = x * 10 + c, a * 10 + b

    o = np.zeros(3, np.int32)
    for n, want in (0, [5, 33, 56]), (1, [2, 32, 56]):
        k(o, n)
        assert o.tolist() == want


def test_what_only_run_time_knows_is_refused(arch):
    @qd.kernel
    def assigned(n: qd.i32) -> qd.i32:
        x = qd.static(1)
        if n > 0:
            x = qd.static(2)
        return x

    @qd.kernel
    def looped(n: qd.i32) -> qd.i32:
        x = n
        r = 0
        if n > 0:
            for x in qd.static(range(3)):
                r += x
        return x + r

    refused("cannot be assigned", lambda: assigned(1))
    refused("loop that runs only sometimes", lambda: looped(1))


def test_comprehensions_have_names_of_their_own(arch):
    @qd.kernel
    def k(n: qd.i32) -> (qd.i32, qd.i32):
        i = n
        l = [i * 2 for i in range(3)]
        return i, l[2]

    assert k(9) == (9, 4)


# ---- names that the function assigns are its own ------------------------------------------------

step = 3


@qd.func
def own_or_outer(c):
    if c:
        step = 7
    return step


def test_names_that_are_assigned_are_never_those_of_the_module(arch):
    """In Python `step` is the function's own wherever it stands; here a block that assigns it
    first has it alone. The module's would be a wrong number."""
    @qd.kernel
    def in_a_branch(o: A):
        if o[0] > 0:
            step = 5
        o[1] = step

    @qd.kernel
    def in_a_static_branch(o: A):
        if qd.static(True):
            step = 5
        o[1] = step

    @qd.kernel
    def in_a_loop(o: A):
        for i in range(2):
            step = i
        o[1] = step

    @qd.kernel
    def in_an_unrolled_loop(o: A):
        for i in qd.static(range(2)):
            step = i
        o[1] = step

    @qd.kernel
    def in_a_while(o: A):
        while o[0] > 0:
            step = 9
            o[0] -= 1
        o[1] = step

    @qd.kernel
    def of_a_loop(o: A):
        for step in range(3):
            o[0] += step
        o[1] = step

    @qd.kernel
    def before(o: A):
        o[1] = step
        step = 4  # noqa: F841

    @qd.kernel
    def of_itself(o: A):
        step = step * 2  # noqa: F823
        o[1] = step

    @qd.kernel
    def by_an_annotation(o: A):
        if o[0] > 0:
            step: qd.i32 = 5
        o[1] = step

    @qd.kernel
    def by_a_walrus(o: A):
        if o[0] > 0:
            o[0] = (step := 5)
        o[1] = step

    @qd.kernel
    def in_a_func(o: A):
        o[1] = own_or_outer(o[0] > 0)

    @qd.kernel
    def comprehended(o: A):
        b = [step * 2 for step in range(3)]
        o[1] = step + b[1]

    for k in (in_a_branch, in_a_static_branch, in_a_loop, in_an_unrolled_loop, in_a_while, of_a_loop,
              before, of_itself, by_an_annotation, by_a_walrus, in_a_func):
        refused('"step" is not defined', lambda k=k: k(np.ones(2)))
    o = np.ones(2)
    comprehended(o)
    assert o[1] == 5
