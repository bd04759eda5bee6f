"""The targets of the engine's table: the same kernels on each, and what the mock device, whose
memory the host cannot address, does differently: arrays of others are copied in and out, and
what would share memory is refused."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import ingot as qd
from conftest import needs
from ingot import _core

pytestmark = pytest.mark.after_passes


@pytest.fixture
def mock(monkeypatch):
    monkeypatch.setenv("INGOT_ARCH", "mock")
    qd.init()
    yield
    monkeypatch.undo()
    qd.init()


def copies():
    counts = _core.counters()
    return np.array([counts["copies_in"], counts["copies_out"]])


@qd.kernel
def add(a: qd.types.ndarray(), b: qd.types.ndarray()):
    for i in range(b.shape[0]):
        a[i] += b[i]


@qd.kernel
def total(a: qd.types.ndarray()) -> qd.i32:
    s = 0
    for i in range(a.shape[0]):
        s += qd.cast(a[i], qd.i32)
    return s


@pytest.fixture(autouse=True)
def fresh():
    qd.init()
    yield
    qd.init()


def test_each_target(target):
    qd.init()
    assert qd.cfg.arch.name == {"native": qd.cpu.name}.get(target, target)
    a, b = qd.ndarray(qd.f32, 9), qd.ndarray(qd.f32, 9)
    a.fill(2)
    b.from_numpy(np.arange(9, dtype=np.float64))
    before = copies()
    add(a, b)
    assert total(a) == 2 * 9 + 36
    assert (copies() == before).all()  # both are at home
    assert a.to_numpy().tolist() == [2 + i for i in range(9)] and a[3] == 5 and list(a)[8] == 10


def test_arrays_of_others_are_copied(mock):
    a, b = np.zeros(5, np.float32), np.arange(5, dtype=np.float32)
    before = copies()
    add(a, b)
    assert (copies() - before).tolist() == [2, 1]
    assert a.tolist() == b.tolist() == [0, 1, 2, 3, 4]
    b.flags.writeable = False
    add(a, b)
    assert a.tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(qd.IngotArgumentError, match="read-only"):
        add(b, a)
    add(np.zeros(0, np.float32), np.zeros(0, np.float32))  # nothing to be copied
    assert (copies() - before).tolist() == [4, 2]


def test_ours_and_others_together(mock):
    a, b = qd.ndarray(qd.i32, 4), np.arange(4, dtype=np.int32)
    before = copies()
    add(a, b)
    add(b, a)
    assert a.to_numpy().tolist() == [0, 1, 2, 3] and b.tolist() == [0, 2, 4, 6]
    assert (copies() - before).tolist() == [2, 1]


def test_overlapping_arrays_share_a_copy(mock):
    """What one argument writes another reads: as on the CPU, where they are one memory."""

    @qd.kernel
    def chain(a: qd.types.ndarray(), b: qd.types.ndarray()):
        qd.loop_config(serialize=True)
        for i in range(a.shape[0]):
            b[i] = a[i] + 1

    x = np.zeros(12, np.int64)
    chain(x[:11], x[1:])
    assert x.tolist() == list(range(12))
    y = np.zeros(8, np.int32)
    add(y, y)  # the same one twice
    chain(y[:4], y[4:])  # neighbours
    assert y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_overlap_keeps_alignment(mock):
    """A view that begins at an odd byte, before one of larger elements."""

    @qd.kernel
    def both(a: qd.types.ndarray(dtype=qd.u8), b: qd.types.ndarray(dtype=qd.f64)):
        for i in range(b.shape[0]):
            b[i] = 1.0
        for i in range(a.shape[0]):
            a[i] = qd.u8(7)

    raw = np.zeros(80, np.uint8)
    base = -raw.ctypes.data % 8
    both(raw[base + 1:base + 4], raw[base:base + 64].view(np.float64)[1:])
    assert raw[base + 1:base + 4].tolist() == [7, 7, 7] and not raw[base + 4:base + 8].any()
    assert raw[base + 8:base + 64].view(np.float64).tolist() == [1.0] * 7


@needs("torch")
def test_torch(mock):
    import torch

    x = torch.ones(4, requires_grad=True)
    y = torch.arange(4.0)
    add(y, x.detach())
    assert y.tolist() == [1, 2, 3, 4]
    a = qd.ndarray(qd.f32, 4)
    a.from_torch(y)
    assert a.to_torch().tolist() == [1, 2, 3, 4] and a.to_torch(copy=None).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="copy=False"):
        a.to_torch(copy=False)
    a.from_torch(torch.tensor([5, 6, 7, 8]))
    assert a.to_numpy(np.int8).tolist() == [5, 6, 7, 8]
    b = qd.from_dlpack(y)  # copies
    y.zero_()
    assert b.to_numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(BufferError, match="the mock device, which cannot address"):
        qd.from_dlpack(y, copy=False)


def test_what_would_share_memory_is_refused(mock):
    a = qd.ndarray(qd.f32, 4)
    for share in (memoryview, np.from_dlpack, lambda x: x.to_dlpack(), lambda x: x.__dlpack__()):
        with pytest.raises(BufferError, match="lives in memory of the mock device"):
            share(a)
    with pytest.raises(ValueError, match="copy=False"):
        a.to_numpy(copy=False)
    view = a.to_numpy(copy=None)  # a copy, since there is nothing cheaper
    view[:] = 1
    assert a.to_numpy().tolist() == [0] * 4


def test_layouts_and_elements(mock):
    m = qd.Matrix.ndarray(2, 2, qd.f32, 3)
    m.fill([[1, 2], [3, 4]])
    m[1] = [[5, 6], [7, 8]]
    m[2][0, 1] = 9
    assert m.to_numpy().tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 9], [3, 4]]]
    t = qd.ndarray(qd.i32, (2, 3), layout=(1, 0))
    t.from_numpy(np.arange(6).reshape(2, 3))
    assert t.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and t[1, 0] == 3
    assert t.to_numpy().flags.c_contiguous
    s = qd.ndarray(qd.f64, (2, 3))
    s.copy_from(t)
    with pytest.raises(qd.IngotRuntimeTypeError):
        s[0, 0] = "x"
    assert s.to_numpy().tolist() == t.to_numpy().tolist()
    assert pickle.loads(pickle.dumps(t)).to_numpy().tolist() == t.to_numpy().tolist()


def test_arrays_stay_valid_when_the_target_changes(monkeypatch):
    a, b = qd.ndarray(qd.i32, 4), np.arange(4, dtype=np.int32)
    a.fill(1)
    monkeypatch.setenv("INGOT_ARCH", "mock")
    qd.init()
    before = copies()
    add(a, b)  # the CPU's memory on the mock device
    assert (copies() - before).tolist() == [2, 1]
    c = qd.ndarray(qd.i32, 4)
    add(c, a)
    monkeypatch.undo()
    qd.init()
    before = copies()
    add(c, a)  # and the other way round
    assert (copies() - before).tolist() == [1, 1]
    assert a.to_numpy().tolist() == [1, 2, 3, 4] and c.to_numpy().tolist() == [2, 4, 6, 8]


def test_gradients_go_along(monkeypatch):
    x = qd.ndarray(qd.f32, 3, needs_grad=True)
    x.grad.fill(4)

    @qd.kernel
    def read(x: qd.types.ndarray(needs_grad=True), out: qd.types.ndarray()):
        for i in range(3):
            out[i] = x.grad[i]
            x.grad[i] += 1.0

    for arch in ("cpu", "mock", "cpu"):
        monkeypatch.setenv("INGOT_ARCH", arch)
        qd.init()
        out = qd.ndarray(qd.f32, 3)
        was = x.grad[0]
        read(x, out)
        assert out.to_numpy().tolist() == [was] * 3 and x.grad.to_numpy().tolist() == [was + 1] * 3


def test_errors_and_prints(mock, capfd):
    qd.init(debug=True)

    @qd.kernel
    def stops(a: qd.types.ndarray()):
        qd.loop_config(serialize=True)
        for i in range(a.shape[0]):
            assert i < 2, "too far"
            a[i] = 1
            print("at", i)

    a = np.zeros(4, np.int32)
    with pytest.raises(qd.IngotAssertionError, match="too far"):
        stops(a)
    assert a.tolist() == [1, 1, 0, 0]  # what ran before is there
    assert capfd.readouterr().out.split("\n")[:2] == ["at 0", "at 1"]


@pytest.mark.counts("lowerings")
def test_the_target_is_a_question(cache_dir, monkeypatch):
    """Code on disk is found for its target alone; what both compile alike is compiled once."""
    text = textwrap.dedent("""
        import numpy as np, ingot as qd
        from ingot import _core
        qd.init()
        @qd.kernel
        def f(a: qd.types.ndarray()):
            for i in range(a.shape[0]):
                a[i] += 3
        a = np.zeros(4, np.int32)
        f(a)
        c = _core.counters()
        print(a.tolist(), c["lowerings"], c["image_compiles"])
    """)
    path = cache_dir.parent / "program.py"
    path.write_text(text)

    def run(arch):
        monkeypatch.setenv("INGOT_ARCH", arch)
        return subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout

    values = "[3, 3, 3, 3]"
    assert run("cpu") == f"{values} 1 1\n"
    assert run("mock") == f"{values} 1 0\n"  # lowered anew, the image is the CPU's
    assert run("mock") == f"{values} 0 0\n"
    assert run("cpu") == f"{values} 0 0\n"
    assert run("interp") == f"{values} 1 0\n"
