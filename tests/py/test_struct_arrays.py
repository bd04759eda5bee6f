"""Ndarrays of structs: in kernels and on the host."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import needs

import ingot as qd
from ingot.fingerprint import Content, fingerprint

Part = qd.types.struct(weight=qd.f32, ids=qd.types.vector(2, qd.i32))
Body = qd.types.struct(pos=qd.math.vec3, mass=qd.f64, turn=qd.types.matrix(2, 2, qd.f32), part=Part, kind=qd.i8)
Pair = qd.types.struct(x=qd.f32, n=qd.i32)


@qd.dataclass
class Ball:
    center: qd.math.vec2
    radius: qd.f32

    @qd.func
    def area(self):
        return 3.0 * self.radius * self.radius


@qd.kernel
def change(a: qd.types.ndarray(Body, 1), dt: qd.f32):
    for i in range(a.shape[0]):
        a[i].mass += 2.0
        a[i].pos += dt * qd.Vector([1.0, 2.0, 3.0])
        a[i].pos[1] = -1.0
        a[i].turn[0, 1] = i
        a[i].part.weight = a[i].mass + 1
        a[i].part.ids[1] += i
        a[i].kind = 3


@qd.kernel
def swap(a: qd.types.ndarray(Body, 1), b: qd.types.ndarray(Body, 1)):
    for i in a:
        t = a[i]
        a[i] = b[i]
        b[i] = t


def model(n, dt):
    want = np.zeros(n, [("pos", "f4", 3), ("mass", "f8"), ("turn", "f4", (2, 2)), ("part", [("weight", "f4"), ("ids", "i4", 2)]), ("kind", "i1")])
    want["mass"] = 2
    want["pos"] = np.float32(dt) * np.array([1, 2, 3], np.float32)
    want["pos"][:, 1] = -1
    want["turn"][:, 0, 1] = np.arange(n)
    want["part"]["weight"] = 3
    want["part"]["ids"][:, 1] = np.arange(n)
    want["kind"] = 3
    return want


def test_members_in_kernels(target):
    a = qd.ndarray(Body, 5)
    change(a, 0.5)
    assert np.array_equal(a.to_numpy(), model(5, 0.5))
    b = Body.ndarray(5)
    swap(a, b)
    assert np.array_equal(b.to_numpy(), model(5, 0.5)) and not a.to_numpy()["kind"].any()


@pytest.mark.counts("variants")
def test_another_length_is_the_same_code():
    small, large = qd.ndarray(Body, 3), qd.ndarray(Body, 70)
    change(small, 0.25)
    before = change._variants
    change(large, 0.25)
    assert change._variants == before and np.array_equal(large.to_numpy(), model(70, 0.25))


@qd.kernel
def fill_all(a: qd.types.ndarray(), x: qd.f32):
    for i, j in a:
        a[i, j] = Pair(x=x + i, n=j)


@qd.kernel
def total(a: qd.types.ndarray(Pair, 2)) -> qd.f32:
    s = 0.0
    for I in qd.grouped(a):
        s += a[I].x * a[I].n
    return s


@qd.kernel
def clear(a: qd.types.ndarray(Pair, 2)):
    a.fill(Pair(x=7, n=7))


@qd.kernel
def sizes(a: qd.types.ndarray(Pair, 2)) -> qd.types.vector(3, qd.i32):
    return qd.Vector([len(a), a.shape[1], a.ndim])


def test_two_axes(target):
    a = qd.ndarray(Pair, (3, 4))
    fill_all(a, 10)
    assert a.tolist()[2][3] == {"x": 12.0, "n": 3}
    assert total(a) == sum((10 + i) * j for i in range(3) for j in range(4))
    assert list(sizes(a)) == [3, 4, 2]
    clear(a)
    assert a[1, 1].to_dict() == {"x": 7.0, "n": 7}


def test_order_of_axes():
    a = qd.ndarray(Pair, (3, 4), layout=(1, 0))
    fill_all(a, 10)
    assert a.layout == (1, 0) and a[2, 3].to_dict() == {"x": 12.0, "n": 3}


def test_ways_to_pass_it():
    a = qd.ndarray(Pair, 4)

    @qd.func
    def bump(b, i):
        b[i].n += 1

    @qd.func
    def typed(b: qd.types.ndarray(Pair, 1), i):
        bump(b, i)

    @qd.func
    def element(p: qd.template()):
        p.n += 10

    @qd.kernel
    def by_template(b: qd.template()):
        for i in b:
            typed(b, i)
            element(b[i])

    @qd.kernel
    def by_tensor(b: qd.Tensor):
        for i in b:
            bump(b, i)

    @qd.kernel
    def captured():
        for i in a:
            a[i].n += 100

    @qd.kernel
    def member(n: qd.types.ndarray(qd.i32, 1)):
        for i in n:
            n[i] += 1000

    @dataclasses.dataclass
    class State:
        b: qd.types.ndarray(Pair, 1)

    @qd.kernel
    def by_dataclass(s: State):
        for i in s.b:
            s.b[i].n += 10000

    by_template(a)
    by_tensor(a)
    captured()
    member(a.n)
    by_dataclass(State(a))
    assert a.n.to_numpy().tolist() == [11112] * 4


def test_methods():
    balls = qd.ndarray(Ball, 3)
    for k in range(3):
        balls[k] = Ball(center=[k, k], radius=k)

    @qd.kernel
    def areas(b: qd.types.ndarray(Ball, 1), out: qd.types.ndarray(qd.f32, 1)):
        for i in b:
            out[i] = b[i].area()

    out = qd.ndarray(qd.f32, 3)
    areas(balls, out)
    assert out.tolist() == [0.0, 3.0, 12.0] and balls[2].center.to_list() == [2, 2]


def test_atomics_and_sums():
    a = qd.ndarray(Pair, 1)

    @qd.kernel
    def count(b: qd.types.ndarray(Pair, 1), n: qd.i32):
        for i in range(n):
            b[0].n += 1
            qd.atomic_max(b[0].x, qd.cast(i, qd.f32))

    count(a, 10000)
    assert a[0].to_dict() == {"x": 9999.0, "n": 10000}


def test_gradients():
    a, loss = qd.ndarray(Pair, 4, needs_grad=True), qd.ndarray(qd.f32, (), needs_grad=True)

    @qd.kernel
    def squares(b: qd.types.ndarray(Pair, 1), out: qd.types.ndarray(qd.f32, 0)):
        for i in b:
            out[None] += b[i].x * b[i].x * b[i].n

    a.from_numpy({"x": np.arange(4, dtype=np.float32), "n": np.array([1, 2, 3, 4], np.int32)})
    loss.grad.fill(1)
    squares(a, loss)
    squares.grad(a, loss)
    assert a.grad.x.tolist() == [0.0, 4.0, 12.0, 24.0] and a.grad.keys == ["x"] and a.n.grad is None
    assert qd.ndarray(Pair, 4).grad is None


def test_elements_on_the_host(target):
    a = qd.ndarray(Body, 3)
    a[1] = {"pos": [1, 2, 3], "mass": 4, "turn": [[1, 2], [3, 4]], "part": {"weight": 5, "ids": [6, 7]}, "kind": 8}
    assert a[1].pos.to_list() == [1, 2, 3] and a[1].part.ids.to_list() == [6, 7] and a[1].turn[1, 0] == 3
    a[1].mass = 9
    a[1].pos[2] = 11
    a[1].part.weight = 12
    assert a.mass[1] == 9 and a.pos[1][2] == 11 and a.part.weight[1] == 12
    a[2] = a[1]
    assert a[2].to_dict() == a[1].to_dict()
    a[-1] = Body()
    assert a[2].mass == 0 and len(a) == 3 and a.shape == (3,) and a.size == 3
    assert [e.mass for e in a] == [0, 9, 0]
    with pytest.raises(IndexError):
        a[3]
    with pytest.raises(IndexError):
        a[3] = a[0]
    with pytest.raises(TypeError, match="with the members"):
        a[0] = {"pos": [1, 2, 3]}
    with pytest.raises(TypeError, match="with the members"):
        a[0] = 3
    with pytest.raises(AttributeError, match="copy_from"):
        a.mass = 3
    with pytest.raises((TypeError, ValueError, qd.IngotError)):
        a[0] = dict(a[1].to_dict(), kind="seven", mass=1)
    assert a[0].mass == 0 and a[0].part.weight == 0  # nothing of it was stored


def test_numpy():
    a = qd.ndarray(Body, (2, 2))
    records = np.zeros((2, 2), a.to_numpy().dtype)
    records["mass"] = [[1, 2], [3, 4]]
    records["part"]["ids"] = 5
    a.from_numpy(records)
    assert np.array_equal(a.to_numpy(), records) and np.array_equal(np.asarray(a), records)
    assert a[1, 0].mass == 3 and a[1, 1].part.ids.to_list() == [5, 5]
    a.fill(2)
    assert (a.to_numpy()["turn"] == 2).all() and (a.to_numpy()["part"]["ids"] == 2).all()
    a.fill(Body(mass=3))
    assert (a.to_numpy()["mass"] == 3).all() and not a.to_numpy()["turn"].any()
    b = a.copy()
    b[0, 0].mass = 100
    a.copy_from(b)
    assert a[0, 0].mass == 100
    with pytest.raises(TypeError, match="members"):
        a.from_numpy(np.zeros((2, 2), np.float32))
    with pytest.raises(TypeError, match="members"):
        a.from_numpy({"mass": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="copy"):
        a.to_numpy(copy=False)
    with pytest.raises(TypeError, match="StructType"):
        a.copy_from(qd.ndarray(Pair, (2, 2)))
    assert "pos: " in repr(a) and "(2, 2)" in repr(a)


def test_mistakes_name_what_differs():
    with pytest.raises(qd.IngotError, match="x: f32.*pos: .*the argument is|the parameter is"):
        change(qd.ndarray(Pair, 3), 0.5)
    with pytest.raises(qd.IngotError, match="qd.ndarray"):
        change(np.zeros(3, np.float32), 0.5)
    with pytest.raises(qd.IngotError, match="2-d"):
        change(qd.ndarray(Body, (3, 3)), 0.5)
    with pytest.raises(qd.IngotError):
        change(Body.field(shape=3), 0.5)

    @qd.kernel
    def numbers(a: qd.types.ndarray(qd.f32, 1)):
        a[0] = 1

    with pytest.raises(qd.IngotError, match="array of f32"):
        numbers(qd.ndarray(Pair, 3))

    @qd.func
    def other(a: qd.types.ndarray(Pair, 1)):
        a[0].n = 1

    @qd.kernel
    def outer(a: qd.types.ndarray(Body, 1)):
        other(a)

    with pytest.raises(qd.IngotError, match="other structs"):
        outer(qd.ndarray(Body, 3))

    @qd.kernel
    def wrong_member(a: qd.types.ndarray(Pair, 1)):
        a[0].y = 1

    with pytest.raises(qd.IngotError, match="'y'"):
        wrong_member(qd.ndarray(Pair, 3))
    with pytest.raises(TypeError, match="without members"):
        qd.ndarray(qd.types.struct(), 3)
    qd.ndarray(Pair, 3)  # and the kernel that was refused takes what fits
    outside = qd.ndarray(Body, 2)
    change(outside, 0.5)
    assert outside[0].kind == 3


def test_a_type_that_equals_another_but_for_what_is_not_read():
    @qd.kernel
    def first(a: qd.types.ndarray(Pair, 1)) -> qd.f32:
        return a[0].x

    Longer = qd.types.struct(x=qd.f32, n=qd.i32, more=qd.f32)
    assert first(qd.ndarray(Pair, 2)) == 0
    with pytest.raises(qd.IngotError, match="more"):
        first(qd.ndarray(Longer, 2))


def test_bounds_in_debug_mode():
    qd.init(debug=True)
    try:
        @qd.kernel
        def beyond(a: qd.types.ndarray(Pair, 1), i: qd.i32):
            a[i].x = 1

        with pytest.raises(qd.IngotError, match="7"):
            beyond(qd.ndarray(Pair, 3), 7)
    finally:
        qd.init()


def test_pickle_copy_and_fingerprint():
    a = qd.ndarray(Body, 3)
    change(a, 0.5)
    b = pickle.loads(pickle.dumps(a))
    assert np.array_equal(a.to_numpy(), b.to_numpy()) and b.element_type == Body
    change(b, 0.5)
    assert b[0].mass == 4 and a[0].mass == 2
    c = copy.deepcopy(a)
    c[0].mass = 50
    assert a[0].mass == 2
    assert fingerprint(Content(a)) == fingerprint(Content(a.copy())) != fingerprint(Content(b))
    before = fingerprint(Content(a))
    a[0].part.ids[0] = 99
    assert fingerprint(Content(a)) != before
    assert fingerprint(Content(qd.ndarray(Pair, 3))) != fingerprint(Content(qd.ndarray(Pair, 4)))
    with pytest.raises(qd.FingerprintError, match="Content"):
        fingerprint(a)


PROGRAM = """
import ingot as qd
qd.init()
S = qd.types.struct(pos=qd.math.vec3, mass=qd.f32)

@qd.kernel
def k(a: qd.types.ndarray(S, 1)):
    for i in range(a.shape[0]):
        a[i].mass += a[i].pos[0] + i

a = qd.ndarray(S, 4)
k(a)
print(a.mass.tolist(), k._cache_observed)
"""


@pytest.mark.counts("compiles")
def test_a_second_process_finds_the_code(tmp_path, cache_dir):
    (tmp_path / "p.py").write_text(PROGRAM)
    outs = [subprocess.run([sys.executable, str(tmp_path / "p.py")], capture_output=True, text=True, check=True).stdout
            for _ in range(2)]
    assert outs[0].startswith("[0.0, 1.0, 2.0, 3.0]") and outs[1].startswith("[0.0, 1.0, 2.0, 3.0]")
    assert outs[0] != outs[1], outs  # what the cache did


@needs("torch")
def test_torch():
    a = qd.ndarray(Pair, 3)
    a.fill(2)
    tensors = a.to_torch()
    tensors["x"] += 1
    a.from_torch(tensors)
    assert a[1].to_dict() == {"x": 3.0, "n": 2}
