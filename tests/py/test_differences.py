"""Rows of docs/differences.md that no other file tests: where Ingot differs from the reference on
purpose. The last column of that table names a test for each row (test_docs.py)."""

import dataclasses
import enum
import threading
import warnings

import numpy as np
import pytest

import ingot as qd

A = qd.types.ndarray()


@pytest.fixture(autouse=True, params=["interp", "cpu"])
def arch(request):
    qd.init(arch=getattr(qd, request.param))


def value_of(kernel, *args):
    out = qd.ndarray(qd.f64, 4)
    kernel(out, *args)
    return out.to_numpy().tolist()


def test_arrays_as_templates():
    @qd.kernel
    def k(a: qd.template(), v: qd.f64):
        for i in range(a.shape[0]):
            a[i] = v + i

    for a in (qd.ndarray(qd.f64, 3), qd.ndarray(qd.i32, 2), qd.ndarray(qd.f64, 0)):
        k(a, 5)
        assert a.to_numpy().tolist() == [5, 6, 7][: a.shape[0]]


class Kind(enum.Enum):
    HALF = 0.5
    TWO = 2


def test_members_of_enums_as_numbers():
    @qd.kernel
    def k(a: A):
        a[0] = Kind.HALF + 1
        a[1] = a[0] * Kind.TWO

    assert value_of(k)[:2] == [1.5, 3]


def test_nan_is_unequal():
    @qd.kernel
    def k(a: A, x: qd.f64):
        a[0] = x != x
        a[1] = x == x

    assert value_of(k, float("nan"))[:2] == [1, 0] and value_of(k, 1.0)[:2] == [0, 1]


@pytest.mark.parametrize("dtype", [qd.i8, qd.u8], ids=str)
def test_narrow_integers_divide(dtype):
    @qd.kernel
    def k(a: A, x: dtype, y: dtype):
        a[0] = x // y
        a[1] = x % y

    for x, y in ((2, 1), (100, 7), (3, 5), *([(-100, 7), (100, -7)] if dtype is qd.i8 else [(255, 16)])):
        assert value_of(k, x, y)[:2] == [x // y, x % y]


def test_powers_of_integers():
    @qd.kernel
    def k(a: A, x: qd.i32, n: qd.i32):
        a[0] = x**n

    for x, n, want in ((2, -1, 0), (1, -5, 1), (-1, -3, -1), (-1, -2, 1), (3, 4, 81)):
        assert value_of(k, x, n)[0] == want


def test_numpy_arrays_from_outside():
    table, box = np.arange(4.0), type("Box", (), {})()
    box.data = np.zeros(3)

    @qd.kernel
    def k(a: A, i: qd.i32):
        a[0] = table[i]
        box.data[i] = 7

    assert value_of(k, 2)[0] == 2 and box.data.tolist() == [0, 0, 7]
    table[1] = 50
    assert value_of(k, 1)[0] == 50


def test_no_gradient_is_none():
    @qd.kernel
    def k(x: A, a: A):
        a[0] = 1 if qd.static(x.grad is None) else 2

    def asked(needs):
        a = qd.ndarray(qd.f64, 1)
        k(qd.ndarray(qd.f64, 2, needs_grad=needs), a)
        return a[0]

    assert (asked(False), asked(True), asked(False)) == (1, 2, 1)


@dataclasses.dataclass
class Config:
    n: int
    scale: float


def test_dataclasses_as_templates():
    @qd.kernel
    def k(a: A, c: qd.template()):
        a[0] = c.n * c.scale

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value_of(k, Config(3, 0.5))[0] == 1.5


def test_numbers_that_become_floats():
    @qd.data_oriented(template_primitives=False)
    class Sim:
        n = 2

        @qd.kernel
        def run(self, a: A):
            a[0] = self.n

    s = Sim()
    assert value_of(s.run)[0] == 2
    s.n = 2.5
    assert value_of(s.run)[0] == 2.5
    s.n = 4
    assert value_of(s.run)[0] == 4


def test_star_arguments_anywhere():
    @qd.func
    def f(w, x, y, z):
        return w * 1000 + x * 100 + y * 10 + z

    more = (2, 3)

    @qd.kernel
    def k(a: A):
        a[0] = f(1, *more, 4)
        a[1] = f(1, *more, z=5)

    assert value_of(k)[:2] == [1234, 1235]


def test_keyword_only_parameters_and_nested_targets():
    @qd.func
    def f(x, *, y):
        return x * 10 + y

    @qd.kernel
    def k(a: A, *, n: qd.i32):
        (p, q), r = (n, n + 1), n + 2
        a[0] = f(p, y=q) * 10 + r

    out = qd.ndarray(qd.f64, 1)
    k(out, n=1)
    assert out[0] == 123


def test_vectors_end_at_minus_one():
    @qd.kernel
    def k(a: A):
        v = qd.Vector([1.0, 2.0, 3.0])
        w = v[:-1]
        a[0] = w.sum()
        a[1] = w.n

    assert value_of(k)[:2] == [3, 2]


def test_vectors_are_compared_as_a_whole():
    v = qd.Vector([1, 2])
    assert not (v == qd.Vector([1, 3])) and v == qd.Vector([1, 2])


def test_unfinished_builders_stop_nobody_else():
    builder, unused = qd.FieldsBuilder(), qd.field(qd.f32)
    builder.dense(qd.i, 4).place(unused)

    @qd.kernel
    def other(a: A):
        a[0] = 1

    @qd.kernel
    def uses():
        for i in unused:
            unused[i] = 1

    assert value_of(other)[0] == 1
    with pytest.raises(qd.IngotRuntimeError):
        uses()
    builder.finalize()
    uses()
    assert unused[3] == 1


def test_negative_indices_of_ndarrays():
    a = qd.ndarray(qd.f64, (2, 3))
    a[1, 2] = 7
    a[-2, 0] = 5
    assert a[-1, -1] == 7 and a[0, 0] == 5
    for bad in (-3, 2):
        with pytest.raises(IndexError):
            a[bad, 0]


def test_first_launch_in_a_thread():
    @qd.kernel
    def k(a: A):
        a[0] = 3

    got = []
    thread = threading.Thread(target=lambda: got.append(value_of(k)[0]))
    thread.start()
    thread.join()
    assert got == [3]


def test_repr_of_a_tensor():
    assert repr(qd.tensor(qd.f32, (2,))) == repr(qd.ndarray(qd.f32, (2,)))


@pytest.mark.after_passes
def test_loop_config_in_a_checkpoint():
    @qd.kernel(graph=True, checkpoints=True)
    def k(a: A, full: qd.types.ndarray(qd.i32, ndim=0)):
        with qd.checkpoint(0, yield_on=full):
            qd.loop_config(serialize=True)
            for i in range(a.shape[0]):
                a[i] = i + 1

    a = qd.ndarray(qd.f64, 3)
    assert not k(a, qd.ndarray(qd.i32, ())).yielded and a.to_numpy().tolist() == [1, 2, 3]
