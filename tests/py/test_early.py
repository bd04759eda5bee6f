"""Serial loops up to a capacity with an `if` around what they do (src/pass/early.c): which end where that fails, and that
the results are those of the text."""

import numpy as np
import pytest

import ingot as qd

L1, L2 = qd.types.ndarray(qd.i64, 1), qd.types.ndarray(qd.i64, 2)


def items(n: L1, x: L2, y: L2):
    qd.loop_config(serialize=True)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < n[b]:
                for k in range(x[b, i]):
                    y[b, i] = y[b, i] * 3 + k


def two_reads(n: L1, x: L2, y: L2):
    qd.loop_config(serialize=True)
    for i, b in qd.ndrange(x.shape[1], x.shape[0], axes=(1, 0)):
        first = n[0]
        if n[b] - first >= i:
            for k in range(x[b, i]):
                y[b, (i + first) % 7] += k + 1


def bound_grows(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < n[b]:
                for k in range(x[b, i]):
                    y[b, i] += k
                if x[b, i] > 2:
                    n[b] = n[b] + 1


def bound_shrinks_and_grows(n: L1, x: L2, y: L2):
    qd.loop_config(serialize=True)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i <= n[b]:
                for k in range(2):
                    y[b, i] += k + n[b]
                n[b] = n[b] - 3 + x[b, i]


def bound_of_others(n: L1, x: L2, y: L2):
    qd.loop_config(serialize=True)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < y[0, 0]:
                for k in range(x[b, i]):
                    y[b % 2, i] += 1


def local_bound(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        m = n[b]
        for i in range(x.shape[1]):
            if i < m:
                for k in range(x[b, i]):
                    y[b, i] += k
                if x[b, i] % 2 == 0:
                    m += 1


def leaves(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < n[b]:
                if x[b, i] == 1:
                    continue
                if x[b, i] == 3:
                    break
                for k in range(x[b, i]):
                    y[b, i] += k


def depends_on_the_index(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < x[b, i]:
                for k in range(x[b, i]):
                    y[b, i] += k + 1


def from_below(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i >= n[b]:
                for k in range(x[b, i]):
                    y[b, i] += k + 1


def writes_before(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[b, i] += 7
            if i < n[b]:
                for k in range(x[b, i]):
                    y[b, i] += k + 1


def counts(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        m = n[b] * 0
        for i in range(x.shape[1]):
            m += x[b, i]
            if i < m:
                for k in range(x[b, i]):
                    y[b, i] += k + 1


def goes_on(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < n[b]:
                for k in range(x[b, i]):
                    y[b, i] += k + 1
            else:
                y[b, i] -= 1


def few(n: L1, x: L2, y: L2):
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            if i < n[b]:
                y[b, i] += x[b, i]


END = [items, two_reads, bound_grows, bound_shrinks_and_grows, bound_of_others, local_bound, leaves]
STAY = [depends_on_the_index, from_below, writes_before, counts, goes_on, few]


def as_python(f, *arrays):
    """What the body does, run by Python."""
    class Names:
        loop_config = staticmethod(lambda **_: None)

        @staticmethod
        def ndrange(inner, outer, axes):
            return ((i, b) for b in range(outer) for i in range(inner))

    code = type(f)(f.__code__, {"qd": Names, "range": range})
    code(*arrays)


@pytest.mark.parametrize("f", END + STAY, ids=lambda f: f.__name__)
def test_results(f, target):
    kernel = qd.kernel(f)
    rng = np.random.default_rng(5)
    for rows, cols in [(1, 1), (4, 7), (9, 30)]:
        n = rng.integers(0, cols + 3, rows)
        n[0] = 1
        x, y = rng.integers(0, 5, (2, max(rows, 2), max(cols, 7)))
        mine, theirs = (n.copy(), x.copy(), y.copy()), (n.copy(), x.copy(), y.copy())
        mine[0].resize(len(x), refcheck=False)
        theirs[0].resize(len(x), refcheck=False)
        kernel(*mine)
        as_python(f, *theirs)
        for a, b in zip(mine, theirs):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", END + STAY, ids=lambda f: f.__name__)
def test_which_end(f, capfd):
    qd.init(arch=qd.cpu, print_ir=True)
    n, x, y = np.ones(4, np.int64), np.ones((4, 7), np.int64), np.ones((4, 7), np.int64)
    qd.kernel(f)(n, x, y)
    told = "".join(capfd.readouterr()).split()
    assert ("break" in told) == (f in END)
