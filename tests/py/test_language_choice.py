"""`a if c else b` with conditions of the run time: numbers, tuples, lists, dicts, structs,
vectors, as index, as variable, as argument and result. Every test runs as native code, on the
interpreter and as plain Python."""

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock, "python": qd.python}
COMPILED = ("native", "interp")


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


def grid(dtype=np.int32):
    return np.arange(16, dtype=dtype).reshape(4, 4)


def numbers(dtype=np.int32):
    return np.zeros(4, dtype)


@qd.func
def corner(i):
    return (i, 0) if i > 1 else (0, i)


@qd.func
def digits(t):
    return t[0] * 10 + t[1]


def test_index():
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            j = 3 - i
            o[0, i] = a[(j, i) if i > j else (i, j)]
            o[1, i] = a[(i, 0) if i > 2 else ((0, i) if i > 1 else (i, i))]
            o[2, i] = a[corner(i)]
            t = (i, j) if i > 1 else (j, j)
            o[3, i] = a[t] * 100 + a[t[1], t[0]]

    o = np.zeros((4, 4), np.int32)
    k(grid(), o)
    assert o.tolist() == [[3, 6, 6, 3], [0, 5, 2, 12], [0, 1, 8, 12], [1515, 1010, 906, 1203]]


def test_index_of_other_integers():
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            wide = qd.cast(i, qd.i64)
            small = qd.cast(i, qd.u8)
            o[i] = a[(wide, 0) if i > 1 else (0, i)] + a[(small, 0) if i > 2 else (0, wide)]

    o = numbers()
    k(grid(), o)
    assert o.tolist() == [0, 2, 10, 24]


def test_store_and_update():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        for i in range(4):
            a[(i, 0) if i > 1 else (0, i)] = 100 + i
            a[(1, i) if i > 1 else (1, 3 - i)] += 100
            qd.atomic_max(a[(i, 3) if i > 1 else (3, i)], 50)

    a = grid()
    k(a)
    assert a.tolist() == [[100, 101, 2, 3], [4, 5, 206, 207], [102, 9, 10, 50], [103, 50, 14, 50]]


def test_variables():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            t = (i, 5) if i > 1 else (7, i)
            x, y = (i, 1) if i > 2 else (8, i)
            (p, q), r = ((i, 1), 2) if i > 1 else ((7, i), 3)
            o[i] = digits(t) * 100000 + digits((x, y)) * 1000 + p * 100 + q * 10 + r
            o[i] += [i, 0][1] if i > 1 else 0

    o = numbers()
    k(o)
    assert o.tolist() == [7080703, 7181713, 2582212, 3531312]


def test_items_have_types_of_their_own():
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            n, x = (i, 0.5) if i > 1 else (3, 2)
            o[i] = a[n, n] + x + n // 2

    o = numbers(np.float32)
    k(grid(), o)
    assert o.tolist() == [18, 18, 11.5, 16.5]


def test_lists_dicts_and_shapes(target):
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            t = [i, 2] if i > 1 else [0, i]
            d = {"x": i, "y": 1} if i > 1 else {"x": 9, "y": i}
            s = a.shape if i > 1 else (1, 2)
            o[i] = a[t[0], t[1]] * 10000 + d["x"] * 1000 + d["y"] * 100 + s[0] * 10 + s[1]

    o = numbers()
    k(grid(), o)
    assert o.tolist() == [9012, 19112, 102144, 143144]


def test_vectors_and_tuples_of_them():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            v, w = (qd.Vector([i, 1]), qd.Vector([2.5, 3])) if i > 1 else (
                qd.Vector([4, 5]), qd.Vector([6.0, 7]))
            m, n = (qd.Matrix([[i, 1], [2, 3]]), i) if i > 1 else (qd.Matrix([[4, 5], [6, 7]]), 1)
            o[i] = v[0] * 10 + w[0] + m[0, 1] * 100 + n * 1000

    o = numbers(np.float32)
    k(o)
    assert o.tolist() == [1546, 1546, 2122.5, 3132.5]


def test_structs(target):
    if target == "python":
        return  # structs are values of kernels
    pair = qd.types.struct(a=qd.i32, b=qd.types.vector(2, qd.f32))

    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            p = pair(a=1, b=[2, 3])
            q = pair(a=4, b=[5, 6])
            s = p if i > 1 else q
            t = pair(a=i, b=[1, 1]) if i > 1 else q
            o[i] = s.a * 100 + s.b[1] * 10 + t.a

    o = numbers()
    k(o)
    assert o.tolist() == [464, 464, 132, 133]


def test_only_the_chosen_side_is_evaluated():
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            t = (qd.atomic_add(a[0], 1), 0) if i > 1 else (qd.atomic_add(a[1], 1), i)
            o[i] = t[1]

    a, o = numbers(), numbers()
    k(a, o)
    assert a.tolist() == [2, 2, 0, 0] and o.tolist() == [0, 1, 0, 0]


def test_arguments_and_results():
    @qd.func
    def swapped(a, i):
        return a[(i, 0) if i > 1 else (0, i)], ((i, 1), 2) if i > 1 else ((3, i), 4)

    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            x, (t, y) = swapped(a, i)
            o[i] = x * 10000 + digits(t) * 100 + y * 10 + digits((1, i) if i > 2 else (0, i))

    o = numbers()
    k(grid(), o)
    assert o.tolist() == [3040, 13141, 82122, 123133]


def test_loop_bounds_and_spread():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            for j in range(*((0, i) if i > 1 else (1, 3))):
                o[i] += j

    o = numbers()
    k(o)
    assert o.tolist() == [3, 3, 1, 3]


def test_static_conditions():
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray(), c: qd.template()):
        for i in range(4):
            o[i] = a[(i, 0) if qd.static(c) else (0, i)] + len((i, i, i) if qd.static(c) else (i,))

    o = numbers()
    k(grid(), o, True)
    assert o.tolist() == [3, 7, 11, 15]
    k(grid(), o, False)
    assert o.tolist() == [1, 2, 3, 4]


def test_what_has_no_run_time_must_agree():
    @qd.kernel
    def k(o: qd.types.ndarray()):
        for i in range(4):
            x, name, nothing = (i, "a", None) if i > 1 else (7, "a", None)
            o[i] = x + len(name)

    o = numbers()
    k(o)
    assert o.tolist() == [8, 8, 3, 4]


REFUSED = {
    "(i, 5, 6) if i > 1 else (7, i)": "a tuple of 3 and a tuple of 2",
    "(i, 'a') if i > 1 else (7, 'b')": "the string 'a' and the string 'b'",
    "(i, None) if i > 1 else (7, i)": "None and a run-time i32",
    "5 if i > 1 else (7, i)": "the integer 5 and a tuple of 2",
    "{'x': i} if i > 1 else {'y': i}": "a dict of 1 and a dict of 1",
    "qd.Struct(a=i) if i > 1 else qd.Struct(b=i)": "a struct of 1 members and a struct",
    "a if i > 1 else o": "an array and an array",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text, target):
    if target not in COMPILED:
        return
    source = f"def k(a: qd.types.ndarray(), o: qd.types.ndarray()):\n    for i in range(4):\n        t = {text}\n"
    scope = {"qd": qd}
    exec(source, scope)
    with pytest.raises(qd.IngotTypeError, match=f"cannot choose between {REFUSED[text]}"):
        qd.kernel(source=source)(scope["k"])(grid(), numbers())


def test_select_of_tuples_is_a_vector(target):
    if target == "python":
        return
    @qd.kernel
    def k(a: qd.types.ndarray(), o: qd.types.ndarray()):
        for i in range(4):
            v = qd.select(i > 1, (i, 0), (0, i))
            o[i] = a[v] * 10 + (v + 1).sum()

    o = numbers()
    k(grid(), o)
    assert o.tolist() == [2, 13, 84, 125]
