"""Booleans in arithmetic are integers, as in Python: every operator on every pair of run-time
booleans, compile-time ones, vectors of them, updates and elements of u1 arrays."""

import itertools
import operator

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS)
def target(request):
    qd.init(arch=TARGETS[request.param])


def make(source):
    scope = {"qd": qd}
    exec(source, scope)
    return qd.kernel(source=source)(scope["k"])


BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<<": operator.lshift,
    ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
def test_operators(target, op):
    """Compared at run time, read from parameters and arrays, and next to integers."""
    k = make(
        "def k(x: qd.i32, y: qd.i32, a: qd.u1, b: qd.u1, u: qd.types.ndarray(), out: qd.types.ndarray()):\n"
        f"    out[0] = (x > 3) {op} (y > 3)\n"
        f"    out[1] = a {op} b\n"
        f"    out[2] = u[0] {op} u[1]\n"
        f"    p = x > 3\n    q = y > 3\n    out[3] = p {op} q\n"
        f"    out[4] = (x > 3) {op} 1\n"
        f"    out[5] = 3 {op} (y > 3)\n"
        f"    out[6] = (x > 3) {op} True\n"
    )
    f = BINARY[op]
    for a, b in itertools.product((False, True), repeat=2):
        if op in ("/", "//", "%") and not b:
            continue
        out = np.zeros(7, np.float64)
        k(5 * a, 5 * b, a, b, np.array([a, b]), out)
        want = [f(a, b)] * 4 + [f(a, 1), f(3, b), f(a, True)]
        assert list(out) == want, (a, op, b)


def test_unary(target):
    k = make(
        "def k(x: qd.i32, out: qd.types.ndarray()):\n"
        "    out[0] = -(x > 3)\n    out[1] = +(x > 3)\n    out[2] = abs(x > 3)\n"
        "    out[3] = not (x > 3)\n    out[4] = ~(x > 3)\n    out[5] = -(x > 3) - (x > 3)\n"
        "    out[6] = min(x > 3, True) + max(x > 3, False)\n"
        "    out[7] = qd.raw_div(x > 3, True) + qd.raw_mod(x > 3, 2)\n"
    )
    for a in (False, True):
        out = np.zeros(8, np.int32)
        k(5 * a, out)
        assert list(out) == [-a, a, a, not a, not a, -2 * a, 2 * a, 2 * a]


def test_compile_time_agrees(target):
    k = make(
        "def k(x: qd.i32, out: qd.types.ndarray()):\n"
        "    out[0] = True + True\n    out[1] = (x > 3) + (x > 4)\n"
        "    out[2] = -True\n    out[3] = -(x > 3)\n"
        "    out[4] = ~True\n    out[5] = ~(x > 3)\n"
        "    out[6] = qd.static(True + True) + 0\n    out[7] = True << 2\n    out[8] = (x > 3) << 2\n"
    )
    out = np.zeros(9, np.int32)
    k(9, out)
    assert list(out) == [2, 2, -1, -1, 0, 0, 2, 4, 4]


def test_sums(target):
    k = make(
        "def k(x: qd.i32, v: qd.types.vector(3, qd.i32), out: qd.types.ndarray()):\n"
        "    out[0] = (x > 3) + (x > 4) + (x > 5) + (x > 6)\n"
        "    out[1] = (v == v).sum()\n"
        "    out[2] = (v > 1).sum()\n"
        "    out[3] = sum(v > 1)\n"
        "    out[4] = sum((x > 3, x > 4, x > 5))\n"
        "    out[5] = (v > 0).dot(v > 1)\n"
        "    out[6] = ((v > 0) + (v > 1))[2]\n"
        "    out[7] = (v > 0).norm_sqr()\n"
        "    out[8] = ((v > 0).outer_product(v > 0) @ (v > 0))[1]\n"
        "    m = qd.Matrix([[v[0] > 0, v[1] > 0], [v[2] > 0, x > 0]])\n"
        "    out[9] = m.trace() + m.sum()\n"
        "    out[10] = (m @ m)[0, 0]\n"
        "    one = qd.Vector([x > 3])\n    s = one.sum()\n    s += 1\n    out[11] = s\n"
    )
    out = np.zeros(12, np.int32)
    k(9, (1, 2, 3), out)
    assert list(out) == [4, 3, 2, 2, 3, 2, 2, 3, 3, 6, 2, 2]


def test_large_vectors(target):
    wide = qd.types.vector(100, qd.i32)

    @qd.kernel
    def k(a: qd.types.ndarray(dtype=wide, ndim=1), out: qd.types.ndarray()):
        out[0] = (a[0] > 9).sum()
        out[1] = ((a[0] > 9) + (a[0] > 19)).sum()
        out[2] = (a[0] >= 0).dot(a[0] >= 0)

    out = np.zeros(3, np.int32)
    k(np.arange(100, dtype=np.int32).reshape(1, 100), out)
    assert list(out) == [90, 170, 100]


def test_updates(target):
    """Into integers they count; a place of booleans keeps whether the result is not 0."""

    @qd.kernel
    def k(n: qd.i32, count: qd.types.ndarray(), flags: qd.types.ndarray()):
        inner = 0
        for i in range(n):
            count[0] += i > 4
            qd.atomic_add(count[1], i > 4)
            count[2] -= i > 4
            inner += i > 4
            flags[0] += i > 4
            flags[1] += i > n
            flags[3] *= i >= 0
        count[3] = inner
        flags[2] += True
        flags[2] -= True
        b = n > 3
        b += n > 4
        count[4] = b
        c = 0
        c += n > 3
        c += n > 4
        count[5] = c

    count, flags = np.zeros(6, np.int32), np.array([False, False, False, True])
    k(10, count, flags)
    assert list(count) == [5, 5, -5, 5, 1, 2]
    assert list(flags) == [True, False, False, True]


def test_u1_arrays(target):
    @qd.kernel
    def k(u: qd.types.ndarray(), out: qd.types.ndarray()):
        for i in range(u.shape[0]):
            out[0] += u[i]
            out[1] += u[i] + u[i]
            out[2] += u[i] * 3 - u[i]
        t = 0
        for i in range(u.shape[0]):
            t += u[i]
        out[3] = t

    u = np.array([True, False, True, True])
    for array in (u, qd.ndarray(qd.u1, 4)):
        if array is not u:
            array.from_numpy(u)
        out = np.zeros(4, np.int32)
        k(array, out)
        assert list(out) == [3, 6, 6, 3]


def test_integers_of_the_default_type(target):
    qd.init(default_ip=qd.i64)
    k = make("def k(x: qd.i32) -> qd.i64:\n    return (x > 3) << 40\n")
    assert k(5) == 1 << 40
