"""Tuples, lists and dicts as variables: items assigned, lists that grow, variables that become
another tuple, comparisons. Every test runs as native code, on the interpreter and as plain
Python, unless it is about what differs from Python."""

import enum
import sys

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock, "python": qd.python}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def numbers(dtype=np.int32, n=4):
    return np.zeros(n, dtype)


@qd.func
def digits(l):
    r = 0
    for x in qd.static(l):
        r = r * 10 + x
    return r


# ---- items ------------------------------------------------------------------------------------


def test_items_are_assigned():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            l = [1, 2, 3]
            l[1] = 7
            l[-1] = i
            o[i, 0] = digits(l)
            l[0] += i
            l[2] *= 2
            o[i, 1] = digits(l)
            l[0], l[1] = l[1], l[0]
            o[i, 2] = digits(l)
            if i > 1:
                l[0] = 5
                l[2] -= 1
            else:
                l[1] = 6
            o[i, 3] = digits(l)
            for j in range(3):
                l[0] += j
            while l[1] > 2:
                l[1] -= 2
            o[i, 4] = digits(l)

    o = np.zeros((4, 5), np.int32)
    k(o)
    assert o.tolist() == [[170, 170, 710, 760, 1020], [171, 272, 722, 762, 1022],
                          [172, 374, 734, 533, 813], [173, 476, 746, 545, 825]]


def test_items_are_read_when_they_are():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            x = 5
            l = [x, i]
            x = 6
            y = l[0]
            l[0] = 8
            t = (l[0], l[1])
            l[1] = 9
            a, b = l
            l[0] = 1
            s = 0
            for v in qd.static(l):
                l[1] = 2
                s = s * 10 + v
            o[i] = y * 100000 + t[0] * 10000 + t[1] * 1000 + a * 100 + b * 10 + x + s * 1000000

    o = numbers()
    k(o)
    assert o.tolist() == [12580896 + 1000 * i for i in range(4)]


def test_kinds_of_items():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            l = [i, 0.5, qd.Vector([1, 2]), [3, 4], (5, 6), True, "text", None]
            l[1] += 1
            l[2][0] = 7
            l[3][1] = i
            if i > 1:
                l[0] = 9
                l[2] = qd.Vector([8, i])
                l[3] = [i, i]
                l[4] = (i, 1)
                l[5] = False
            l[6] = "other"
            l[7] = i
            o[i] = (l[0] + l[1] + l[2][0] * 10 + l[2][1] * 100 + l[3][0] * 1000 + l[3][1] * 10000
                    + l[4][0] * 0.25 + l[7] + len(l[6]))
            if l[5]:
                o[i] += 100000

    o = numbers(np.float64)
    k(o)
    assert o.tolist() == [103277.75, 113279.75, 22298, 33399.25]


def test_lists_from_everywhere():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            a = [j * i for j in range(3)]
            a[1] = 50
            b = [i] * 3
            b[0] = 1
            c = list((1, 2, 3))
            c[2] = i
            d = a[:2] + [i]
            d[0] = 4
            e = [None, None]
            for j in qd.static(range(2)):
                e[j] = i + j
            o[i] = sum(a) + digits(b) * 100 + digits(c) * 100000 + d[0] + d[1] + d[2] + e[0] + e[1]

    o = numbers(np.int64)
    k(o)
    assert o.tolist() == [50 + 2 * i + (100 + 11 * i) * 100 + (120 + i) * 100000 + 4 + 50 + i + 2 * i + 1
                          for i in range(4)]


def test_dicts():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            d = {"a": 1, 2: i}
            d["a"] = i
            d[2] += 5
            d["new"] = 7
            if i > 1:
                d["new"] = d["a"] + 1
            o[i] = d["a"] * 100 + d[2] * 10 + d["new"]

    o = numbers()
    k(o)
    assert o.tolist() == [57, 167, 273, 384]


def test_iterating_over_what_changes():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            l = [1, 2, i]
            s = 0
            for j, x in qd.static(enumerate(l)):
                l[(j + 1) % 3] += x
                s = s * 100 + x
            for x, y in qd.static(zip(l, [7, 8, 9])):
                l[2] = 5
                s = s * 10 + x
            rows = [[1, 2], [3, i]]
            rows[0][0] = 1
            for row in qd.static(rows):
                row[1] += 1
            o[i] = s + digits(rows[0]) + digits(rows[1])

    o = numbers(np.int64)
    k(o)
    assert o.tolist() == [10303435 + 13 + 31, 10304535 + 13 + 32, 10305635 + 13 + 33, 10306735 + 13 + 34]


# ---- assigning copies -------------------------------------------------------------------------


def test_assigning_copies(target):
    if target == "python":
        return  # names share a list there

    @qd.func
    def by_value(l):
        l[0] = 9
        return l[0]

    @qd.func
    def by_reference(l: qd.template()):
        l[0] = 8
        l[1] += 1

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            l = [1, i]
            m = l
            m[0] = 7
            n = [l, l]
            n[0][0] = 6
            l[0] = 2
            x = by_value(l)
            o[i, 0] = l[0] * 1000 + m[0] * 100 + n[0][0] * 10 + n[1][0]
            by_reference(l)
            o[i, 1] = x * 100 + digits(l)

    o = np.zeros((4, 2), np.int32)
    k(o)
    assert o.tolist() == [[2761, 981], [2761, 982], [2761, 983], [2761, 984]]


L = [1, 2, 3]


def test_a_list_from_outside_is_copied(target):
    if target == "python":
        return

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            m = L
            m[1] = i
            o[i] = digits(m)

    o = numbers()
    k(o)
    assert o.tolist() == [103, 113, 123, 133] and L == [1, 2, 3]
    L[2] = 4
    try:
        k(o)
        assert o.tolist() == [104, 114, 124, 134]
    finally:
        L[2] = 3


# ---- lists that grow ---------------------------------------------------------------------------


def test_lists_grow():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            l = []
            for j in qd.static(range(3)):
                l.append(i + j)
            x = i
            l.append(x)
            x = 100
            l.extend((7, 8))
            l.insert(0, 9)
            l.insert(-1, 6)
            last = l.pop()
            first = l.pop(0)
            l.reverse()
            o[i, 0] = digits(l)
            o[i, 1] = last * 100 + first * 10 + len(l)
            c = l.copy()
            l.clear()
            l.append(1)
            o[i, 2] = len(c) * 10 + len(l)
            l += [2, 3]
            l += (4,)
            l *= 2
            o[i, 3] = len(l) * 10 + l[-1]

    o = np.zeros((4, 4), np.int32)
    k(o)
    assert o.tolist() == [[670210, 896, 61, 84], [671321, 896, 61, 84],
                          [672432, 896, 61, 84], [673543, 896, 61, 84]]


def test_what_a_list_is_given_stays_known():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            dims = []
            for n in qd.static((2, 3)):
                dims.append(n)
            for n in qd.static(dims):
                for j in qd.static(range(n)):
                    o[i] += j

    o = numbers()
    k(o)
    assert o.tolist() == [4, 4, 4, 4]


def test_a_list_that_grows_much(target):
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(1):
            l = [i]
            for j in qd.static(range(2000)):
                l.append(j)
            l.pop(5)
            o[0] = l[1999] + len(l)

    o = numbers()
    k(o)
    assert o[0] == 3999


# ---- variables that become another tuple ----------------------------------------------------------


def test_tuples_again():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            t = (i, 0)
            t = (t[1], 5, t[0])
            o[i, 0] = digits(t)
            u = (1, 2)
            if i > 1:
                u = (u[1], i)
            o[i, 1] = digits(u)
            f = (1, 0)
            for j in range(5):
                f = (f[1], f[0] + f[1])
            o[i, 2] = f[1]
            n = ((1, 2), 3)
            while n[1] > 0:
                n = ((n[0][1], n[0][0]), n[1] - 1)
            o[i, 3] = digits(n[0])
            w = ()
            for j in qd.static(range(3)):
                w = w + (i + j,)
            w += (9,)
            o[i, 4] = digits(w)
            l = [1, i]
            if i > 1:
                l = [l[1], l[0]]
            o[i, 5] = digits(l)

    o = np.zeros((4, 6), np.int32)
    k(o)
    assert o.tolist() == [[50, 12, 5, 21, 129, 10], [51, 12, 5, 21, 1239, 11],
                          [52, 22, 5, 21, 2349, 21], [53, 23, 5, 21, 3459, 31]]


def test_tuples_of_other_kinds_in_one_block():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            t = (i, 1)
            t = (0.5, i, "abc")
            o[i] = t[0] + t[1] + len(t[2])

    o = numbers(np.float64)
    k(o)
    assert o.tolist() == [3.5, 4.5, 5.5, 6.5]


def test_parameters_again(target):
    @qd.func
    def turned(t, n):
        if n > 1:
            t = (t[1], t[0])
        return t

    @qd.func
    def longer(t):
        t = t + (7,)
        return t

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            t = (i, 9)
            o[i] = digits(turned(t, i)) * 10000 + digits(longer(t)) * 10 + t[0]

    o = numbers()
    k(o)
    assert o.tolist() == [90970, 191971, 922972, 933973]


def test_arms_have_names_of_their_own():
    """Two assignments in two blocks make two names: nothing is turned into a variable."""

    @qd.kernel
    def k(o: qd.types.ndarray(), c: qd.template()):
        for i in range(4):
            if qd.static(c):
                dims = [2, 3]
                for j in qd.static(range(dims[0])):
                    o[i] += dims[1]
            else:
                dims = [4]
                for j in qd.static(range(dims[0])):
                    o[i] += 1

    o = numbers()
    k(o, True)
    k(o, False)
    assert o.tolist() == [10] * 4


def test_sums_over_threads(target):
    @qd.kernel
    def k(a: qd.types.ndarray()) -> (qd.i32, qd.i32, qd.i32):
        l = [0, 0]
        d = {"x": 0}
        for i in a:
            l[0] += a[i]
            l[1] += 1
            d["x"] += 2
        return l[0], l[1], d["x"]

    a = np.arange(20000, dtype=np.int32) % 7
    assert tuple(k(a)) == (int(a.sum()), 20000, 40000)


def test_everything_on_the_right_is_read_first():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            x = 1
            y = i
            z = 5
            (x, y), z = (y, x), x
            l = [x, y]
            (l[0], (l[1], z)) = (l[1], (l[0], l[1]))
            o[i] = x * 10000 + y * 1000 + l[0] * 100 + l[1] * 10 + z

    o = numbers()
    k(o)
    assert o.tolist() == [1101, 11111, 21121, 31131]


# ---- comparisons ---------------------------------------------------------------------------------


def test_comparing_tuples():
    @qd.kernel
    def k(o: qd.types.ndarray(), n: qd.i32):
        for i in range(4):
            t = (i, 1)
            if t == (2, 1):
                o[i] += 1
            if t != (2, 1):
                o[i] += 2
            if (i, (1, i)) == (n, (1, 3)):
                o[i] += 4
            if [i, 2] != [1, n]:
                o[i] += 8
            if t == (2, 1, 3):
                o[i] += 16
            if (i, 1) == (i, 2):
                o[i] += 32
            if (i, 1) != (i, 2):
                o[i] += 64
            if qd.static((1, 2) == (1, 2)):
                o[i] += 128

    o = numbers()
    k(o, 3)
    base = 128 + 64
    assert o.tolist() == [base + 10, base + 10, base + 9, base + 14]


# ---- members of enums -------------------------------------------------------------------------------


class Stage(enum.IntEnum):
    A = 0
    B = 1
    C = 2


class Flag(enum.IntFlag):
    X = 1
    Y = 2


@qd.func
def next_stage(stage, i):
    if i > 1:
        stage = Stage.B
    return stage


@qd.func
def last_of(i):
    r = Stage.A
    if i > 1:
        r = Stage.C
    return r


def test_members_of_enums_are_variables():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            stage = Stage.A
            n = 0
            while stage != Stage.C:
                if stage == Stage.A:
                    stage = Stage.B
                elif stage == Stage.B:
                    stage = Stage.C
                n += 1
            m = Flag.X
            m |= Flag.Y
            a, b = Stage.B, Stage.C
            a, b = b, a
            c = [Stage.A, Stage.B]
            c[0] = Stage.C
            o[i] = (n + stage * 10 + m * 100 + a * 1000 + b * 10000 + next_stage(Stage.C, i) * 100000
                    + last_of(i) * 1000000 + c[0] * 10000000)

    o = numbers()
    k(o)
    assert o.tolist() == [20212322, 20212322, 22112322, 22112322]


def test_a_member_that_stays_is_known():
    @qd.kernel
    def k(o: qd.types.ndarray(), c: qd.template()):
        for i in range(4):
            if qd.static(c):
                stage = Stage.C
                for j in qd.static(range(stage.value)):
                    o[i] += 1
            else:
                stage = Stage.B
                if qd.static(stage == Stage.B):
                    o[i] += 10

    o = numbers()
    k(o, True)
    k(o, False)
    assert o.tolist() == [12] * 4


class Odd(enum.IntEnum):
    """Its `.value` is not the number that a member is."""

    def __new__(cls, n):
        self = int.__new__(cls, n)
        self._value_ = 10 * n
        return self

    A = 1
    B = 2


class Plain(enum.Enum):
    A = 5


class Box:
    stage = Stage.B


def test_values_of_members():
    @qd.kernel
    def k(b: qd.template()) -> (qd.i32, qd.i32, qd.i32):
        return Stage.C + b.stage.value * 10, Odd.B + Odd.B.value * 10, Plain.A.value

    assert tuple(k(Box())) == (12, 202, 5)


@pytest.mark.counts("calls")
def test_what_a_member_costs(target):
    if target == "python":
        return

    @qd.kernel
    def known(b: qd.template()) -> qd.i32:
        s = Stage.A
        s = Stage.C
        return s + b.stage.value + Stage.B.value

    @qd.kernel
    def asked() -> qd.i32:
        return Plain.A.value

    def python_calls(kernel, *args):
        calls = []
        sys.setprofile(lambda frame, event, arg: calls.append(1) if event == "call" else None)
        try:
            kernel(*args)
        finally:
            sys.setprofile(None)
        return len(calls)

    box = Box()
    assert known(box) == 4 and asked() == 5
    assert python_calls(known, box) == 0 and python_calls(asked) > 0
    box.stage = Stage.C
    assert known(box) == 5


def test_an_enum_that_changes_is_seen(target):
    global Stage

    @qd.kernel
    def k() -> qd.i32:
        s = Stage.A
        s = Stage.C
        return s

    old = Stage
    assert k() == 2
    try:
        Stage = enum.IntEnum("Stage", {"A": 0, "B": 1, "C": 7})
        assert k() == 7
    finally:
        Stage = old
