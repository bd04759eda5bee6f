"""Gradients and the room of their stacks in a process and in the next one, which finds all code on disk: bounds
in fields, kernels of one name, bounds that are not known beforehand, long axes, launches inside of launches, threads,
fork, Ctrl-C, debug mode. The program below asserts; it is run twice."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ingot as qd
from ingot import _core

F1, I1 = qd.types.ndarray(qd.f64, 1), qd.types.ndarray(qd.i32, 1)


@qd.kernel
def steps(x: F1, c: I1, y: F1):
    for i in range(x.shape[0]):
        a = x[i]
        for _ in range(c[i]):
            a = a * a * 0.5 + 0.1
        y[i] = a


def expected(x, c):
    out = []
    for a, n in zip(x, c):
        d = 1.0
        for _ in range(n):
            a, d = a * a * 0.5 + 0.1, a * d
        out.append(d)
    return np.array(out)


def arrays(n=16, trips=None):
    x, y = (qd.ndarray(qd.f64, n, needs_grad=True) for _ in range(2))
    c = qd.ndarray(qd.i32, n)
    x.from_numpy(np.linspace(0.5, 1.5, n))
    c.from_numpy((np.arange(n) % 5).astype(np.int32) if trips is None else trips)
    y.grad.fill(1.0)
    return x, c, y


def check(x, c, y):
    """Is the gradient right; how often was room looked up?"""
    before = _core.counters()["launch_sized"]
    x.grad.fill(0.0)
    y.grad.fill(1.0)
    steps.grad(x, c, y)
    assert np.allclose(x.grad.to_numpy(), expected(x.to_numpy(), c.to_numpy()))
    return _core.counters()["launch_sized"] - before


def fields():
    x, y = (qd.field(qd.f64, 8, needs_grad=True) for _ in range(2))
    c = qd.field(qd.i32, 8)
    x.from_numpy(np.linspace(0.5, 1.2, 8))

    @qd.kernel
    def of_fields():
        for i in x:
            a = x[i]
            for _ in range(c[i]):
                a = a * a * 0.5 + 0.1
            y[i] = a

    @qd.kernel
    def more():
        for i in c:
            c[i] += 1

    def gradient():
        before = _core.counters()["launch_sized"]
        x.grad.fill(0)
        y.grad.fill(1)
        of_fields.grad()
        assert np.allclose(x.grad.to_numpy(), expected(x.to_numpy(), c.to_numpy()))
        return _core.counters()["launch_sized"] - before

    assert gradient() == 1 and gradient() == 0
    for change in (lambda: c.__setitem__(2, 9), more, lambda: c.fill(3), lambda: c.from_numpy(
            np.arange(8, dtype=np.int32))):
        change()
        assert gradient() == 1 and gradient() == 0


def one_name():
    """Kernels of one name have sizes of their own."""
    def make(factor):
        @qd.kernel
        def same(x: F1, c: I1, y: F1):
            for i in range(x.shape[0]):
                a = x[i]
                for _ in range(c[i] * qd.static(factor)):
                    a = a * a * 0.5 + 0.1
                y[i] = a
        return same

    x, c, y = arrays()
    for factor in (1, 7, 2):
        kernel, before = make(factor), _core.counters()["launch_sized"]
        for _ in range(2):
            x.grad.fill(0.0)
            y.grad.fill(1.0)
            kernel.grad(x, c, y)
            assert np.allclose(x.grad.to_numpy(), expected(x.to_numpy(), c.to_numpy() * factor))
        assert _core.counters()["launch_sized"] == before + 1


@qd.kernel
def halves(x: F1, c: I1, y: F1):
    for i in range(x.shape[0]):
        a, n = x[i], c[i]
        for t in range(3):
            for _ in range(n):  # carried by the loop around it
                a = a * a * 0.5 + 0.1
            n = n // 2
        y[i] = a


def unknown_bounds():
    x, c, y = arrays()
    before = _core.counters()["launch_sized"]
    halves.grad(x, c, y)
    assert _core.counters()["launch_sized"] == before
    trips = [n + n // 2 + n // 4 for n in c.to_numpy()]
    assert np.allclose(x.grad.to_numpy(), expected(x.to_numpy(), trips))


@qd.kernel
def sparse(x: F1, c: I1, y: F1):
    for i in range(c.shape[0]):
        a = x[i % 4]
        for _ in range(c[i]):
            a = a * a * 0.5 + 0.1
        if c[i] > 0:
            y[0] += a


def long_axis():
    """The longest loop is the last of 2**24 + 1."""
    n = (1 << 24) + 1
    trips = np.zeros(n, np.int32)
    trips[-1] = 6
    x, _, y = arrays(4)
    c = qd.ndarray(qd.i32, n)
    c.from_numpy(trips)
    sparse.grad(x, c, y)
    assert np.isclose(x.grad.to_numpy()[0], expected(x.to_numpy()[:1], [6])[0])


@qd.data_oriented
class Nested:
    """Asking how many steps there are runs another gradient of the same kernel first."""

    def __init__(self, n, inner=None):
        self._n, self.inner, self.asked = n, inner, 0
        self.x, self.c, self.y = arrays(4, np.full(4, n, np.int32))

    @property
    def n(self):
        self.asked += 1
        if self.inner and self.asked < 40:
            self.inner.gradient()
        return self._n

    @qd.kernel
    def step(self):
        for i in range(4):
            a = self.x[i]
            for _ in range(self.c[i] + qd.static(self.n) * 0):
                a = a * a * 0.5 + 0.1
            self.y[i] = a

    def gradient(self):
        self.x.grad.fill(0.0)
        self.y.grad.fill(1.0)
        self.step.grad()
        assert np.allclose(self.x.grad.to_numpy(), expected(self.x.to_numpy(), self.c.to_numpy()))


def nested():
    inner, outer = Nested(400), Nested(3)
    inner.gradient()  # compiled: a compile cannot launch what it compiles
    outer.gradient()
    outer.inner, outer.asked = inner, 0
    for _ in range(3):
        outer.gradient()
    assert outer.asked


def threads():
    failed = []

    def work(k):
        try:
            mine = arrays(64 + k, np.full(64 + k, 3 + 5 * k, np.int32))
            for _ in range(20):
                check(*mine)
        except BaseException as e:
            failed.append(e)

    all_of = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for one in all_of:
        one.start()
    for one in all_of:
        one.join()
    assert not failed, failed


def fork():
    mine = arrays()
    check(*mine)
    child = os.fork()
    if child == 0:
        try:
            mine[1].fill(9)
            check(*mine)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    check(*mine)


def interrupted(x, c, y):
    """Whether a gradient was ended by Ctrl-C: it may also end by itself before anybody looks for signals."""
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        for _ in range(1000):
            y.grad.fill(1.0)
            steps.grad(x, c, y)
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        pass
    timer.join()
    assert time.monotonic() - began < 60
    return bool(_core.partials())


def interrupt():
    """A gradient that is interrupted leaves partial sums: they are to be cleared."""
    x, c, y = arrays(1 << 14, np.full(1 << 14, 1 << 16, np.int32))
    steps.grad(*arrays())
    assert any(interrupted(x, c, y) for _ in range(10))
    assert any(one is x.grad for one in _core.partials())
    try:
        steps.grad(x, c, y)
        raise SystemExit("not refused")
    except qd.IngotRuntimeError as e:
        assert "partial sums" in str(e)
    c.fill(2)
    check(x, c, y)
    assert not _core.partials()


def debug():
    qd.init(debug=True)
    check(*arrays())

    @qd.kernel
    def beyond(x: F1, c: I1, y: F1):
        for i in range(x.shape[0]):
            a = x[i]
            for j in range(c[i]):
                a = a * x[j] * 0.5
            y[i] = a

    x, c, y = arrays(4, np.full(4, 9, np.int32))
    try:
        beyond.grad(x, c, y)
        raise SystemExit("not found")
    except qd.IngotIndexError:
        pass
    qd.init()


PARTS = [fields, one_name, unknown_bounds, long_axis, nested, threads, fork, interrupt, debug]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_in_two_processes(part, cache_dir):
    compiled = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-B", __file__, part.__name__], capture_output=True, text=True,
                              timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        compiled.append(int(done.stdout.split()[-1]))
    assert compiled[0] and not compiled[1]


if __name__ == "__main__":
    qd.init()
    globals()[sys.argv[1]]()
    print(_core.counters()["image_compiles"])
