"""`qd.math` and numbers made of others, natively and on the interpreter, against Python."""

import cmath

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp}
dvec2 = qd.types.vector(2, qd.f64)


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


@qd.kernel
def complex_numbers(z: dvec2, w: dvec2, n: qd.f64, out: qd.types.ndarray()):
    results = (qd.math.cmul(z, w), qd.math.cdiv(z, w), qd.math.cinv(z), qd.math.cconj(z), qd.math.csqrt(z),
               qd.math.cpow(z, n), qd.math.cexp(z), qd.math.clog(z))
    for k in qd.static(range(8)):
        out[k, 0], out[k, 1] = results[k][0], results[k][1]


@pytest.mark.parametrize("z", [1 + 2j, -3 + 0.5j, -2 - 1j, 0.25j, -4 + 0j])
def test_complex(z):
    w, n = 0.5 - 1.5j, 2.5
    out = np.zeros((8, 2))
    complex_numbers(qd.Vector([z.real, z.imag]), qd.Vector([w.real, w.imag]), n, out)
    want = [z * w, z / w, 1 / z, z.conjugate(), cmath.sqrt(z), z**n, cmath.exp(z), cmath.log(z)]
    assert out[:, 0] + 1j * out[:, 1] == pytest.approx(want, rel=1e-6, abs=1e-6)


def test_complex_zero():
    @qd.kernel
    def kernel() -> dvec2:
        return qd.math.csqrt(dvec2(0.0, 0.0)) + qd.math.cpow(dvec2(0.0, 0.0), 2.0)

    assert kernel().to_list() == [0, 0]


def test_zero_and_one():
    @qd.kernel
    def kernel(x: qd.f64, v: qd.math.ivec3) -> qd.types.vector(6, qd.f64):
        qd.static_assert(qd.zero(v).dtype == qd.i32)
        a, b = qd.zero(x), qd.one(v)
        a += 0.1  # stays an f64
        return qd.Vector([a, b[0], b[2], qd.one(x), qd.zero(v)[1], qd.one(True)])

    assert kernel(float("inf"), qd.Vector([4, 5, 6])).to_list() == pytest.approx([0.1, 1, 1, 1, 0, 1], abs=1e-8)
    assert qd.zero(2.5) == 0 and isinstance(qd.one(3), int)
    assert qd.zero(qd.Vector([1.5, 2.5])).to_list() == [0, 0]


def test_eye():
    @qd.kernel
    def kernel() -> qd.math.mat3:
        return qd.math.eye(3) * 2

    assert kernel().to_list() == (np.eye(3) * 2).tolist()


def test_real_func_keeps_its_loops():
    """In the outermost block of a kernel the loops of a func are the kernel's; those of a real one are not."""

    @qd.real_func
    def last(n: qd.i32):
        total = 0
        for i in range(n):
            total = total * 3 + i  # the order matters
        return total

    @qd.kernel
    def kernel(n: qd.i32) -> qd.i32:
        return last(n)

    want = 0
    for i in range(9):
        want = want * 3 + i
    assert kernel(9) == want
    with pytest.raises(qd.IngotSyntaxError, match="real function"):
        qd.func(lambda: 0, is_real_function=True, requires_top_level=True)
