"""Streams and events: programs that use them run, in one order; what devices refuse is refused here too."""

import numpy as np
import pytest

import ingot as qd

N = 64


@pytest.fixture
def fields():
    qd.init(arch=qd.cpu)
    return qd.field(qd.f32, N), qd.field(qd.f32, N)


def test_launches_in_streams(fields):
    a, b = fields

    @qd.kernel
    def produce(x: qd.f32):
        for i in range(N):
            a[i] = x

    @qd.kernel
    def consume(scale: qd.f32):
        for i in range(N):
            b[i] = a[i] * scale

    with qd.create_stream() as s1, qd.create_stream() as s2, qd.create_event() as reached:
        produce(3.0, qd_stream=s1)
        reached.record(s1)
        reached.wait(qd_stream=s2)
        consume(scale=2.0, qd_stream=s2)
        s2.synchronize()
        reached.synchronize()
        assert (s1.handle, reached.handle) == (0, 0)
    consume(scale=2.0, qd_stream=None)
    assert np.all(b.to_numpy() == 6.0)
    assert "destroyed" in repr(s1)
    s1.destroy()
    with pytest.raises(qd.IngotRuntimeError, match="create_stream"):
        produce(1.0, qd_stream=s1)
    for bad in (1, "s1", reached):
        with pytest.raises(qd.IngotArgumentError, match="create_stream"):
            produce(1.0, qd_stream=bad)
        with pytest.raises(qd.IngotArgumentError, match="create_stream"):
            qd.create_event().record(bad)


def test_a_parameter_of_that_name_is_the_kernels(fields):
    a, _ = fields

    @qd.kernel
    def fill(qd_stream: qd.f32):
        for i in range(N):
            a[i] = qd_stream

    fill(qd_stream=7.0)
    assert np.all(a.to_numpy() == 7.0)


def test_what_does_not_go_with_streams(fields):
    x = qd.field(qd.f32, (), needs_grad=True)
    loss = qd.field(qd.f32, (), needs_grad=True)
    s = qd.create_stream()

    @qd.kernel
    def square():
        loss[None] = x[None] ** 2

    @qd.kernel(graph=True)
    def in_graph():
        for i in range(N):
            fields[0][i] = 1.0

    with pytest.raises(RuntimeError, match="not compatible with autodiff"):
        square.grad(qd_stream=s)
    with pytest.raises(RuntimeError, match="not compatible with autograd Tape"), qd.ad.Tape(loss):
        square(qd_stream=s)
    with pytest.raises(RuntimeError, match="not compatible with graph=True"):
        in_graph(qd_stream=s)
    in_graph(qd_stream=None)


def test_blocks(fields):
    a, b = fields

    @qd.kernel
    def both(n: qd.i32):
        """Two blocks, the second one with two loops."""
        with qd.stream_parallel():
            for i in range(n):
                a[i] = i
        with qd.stream_parallel():
            for i in range(n):
                b[i] = 1.0
            for i in range(n):
                b[i] += a[i]

    both(N)
    assert np.array_equal(b.to_numpy(), np.arange(N) + 1)
    with qd.stream_parallel():  # in Python it does nothing
        both(N)


def test_blocks_on_python():
    qd.init(arch=qd.python)
    a = qd.field(qd.f32, N)

    @qd.kernel
    def fill():
        with qd.stream_parallel():
            for i in range(N):
                a[i] = 2.0

    fill(qd_stream=qd.create_stream())
    assert np.all(a.to_numpy() == 2.0)


def test_blocks_that_are_refused(fields):
    a, _ = fields

    @qd.kernel
    def mixed():
        with qd.stream_parallel():
            for i in range(N):
                a[i] = 1.0
        for i in range(N):
            a[i] = 2.0

    @qd.kernel
    def nested():
        with qd.stream_parallel():
            with qd.stream_parallel():
                for i in range(N):
                    a[i] = 1.0

    @qd.func
    def inside():
        with qd.stream_parallel():
            for i in range(N):
                a[i] = 1.0

    @qd.kernel
    def in_func():
        inside()

    @qd.kernel
    def in_loop():
        for i in range(N):
            with qd.stream_parallel():
                a[i] = 1.0

    @qd.kernel(graph=True)
    def in_graph():
        with qd.stream_parallel():
            for i in range(N):
                a[i] = 1.0

    @qd.kernel
    def with_argument():
        with qd.stream_parallel(2):
            for i in range(N):
                a[i] = 1.0

    @qd.kernel
    def named():
        with qd.stream_parallel() as s:
            for i in range(N):
                a[i] = 1.0

    @qd.kernel
    def two():
        with qd.stream_parallel(), qd.stream_parallel():
            for i in range(N):
                a[i] = 1.0

    @qd.kernel
    def not_called():
        with qd.stream_parallel:
            for i in range(N):
                a[i] = 1.0

    for kernel, words in ((mixed, "all top-level statements"), (nested, "cannot be nested"),
                          (in_func, "inside @qd.kernel, at its top level"), (in_loop, "inside @qd.kernel, at its top level"),
                          (in_graph, "not compatible with graph=True"), (with_argument, "takes no arguments"),
                          (named, "`with ... as`"), (two, "a single context manager"),
                          (not_called, "requires a call expression")):
        with pytest.raises(qd.IngotSyntaxError, match=words) as caught:
            kernel()
        if kernel is not mixed:  # there it is the other statement
            assert "with qd.stream_parallel" in str(caught.value)  # the line that the caret is under
        assert "test_streams.py:" in str(caught.value) and "help:" in str(caught.value)
    assert np.all(a.to_numpy() == 0.0)
