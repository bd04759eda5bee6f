"""Numbers that the host writes, one by one: they fit, or the error says why not. Nothing wraps."""

import decimal
import subprocess
import sys

import ingot as qd
import numpy as np
import pytest

S = qd.types.struct(a=qd.i32, b=qd.f32)


def places(dtype):
    """Each way to write one number: a name, what writes it, what reads it back."""
    kind = qd.types.struct(a=dtype, b=qd.f32)
    f, f0, n = qd.field(dtype, shape=2), qd.field(dtype, shape=()), qd.ndarray(dtype, 2)
    vf, vn = qd.Vector.field(2, dtype, shape=2), qd.Vector.ndarray(2, dtype, 2)
    v, m = qd.Vector([0, 0], dt=dtype), qd.Matrix([[0, 0], [0, 0]], dt=dtype)
    sf, sn, s = kind.field(shape=2), kind.ndarray(2), kind()

    def entry(x):
        vf[1][0] = x

    def member(x):
        sf[0].a = x

    def of_array(x):
        sn[0].a = x

    def of_value(x):
        s.a = x

    return [
        ("field", lambda x: f.__setitem__(0, x), lambda: f[0]),
        ("0-d field", lambda x: f0.__setitem__(None, x), lambda: f0[None]),
        ("fill of a field", f.fill, lambda: f[1]),
        ("ndarray", lambda x: n.__setitem__(0, x), lambda: n[0]),
        ("fill of an ndarray", n.fill, lambda: n[1]),
        ("slice", lambda x: n.__setitem__(slice(None), x), lambda: n[1]),
        ("view", lambda x: n[1:].__setitem__(0, x), lambda: n[1]),
        ("vectors of a field", lambda x: vf.__setitem__(0, [x, 0]), lambda: vf[0][0]),
        ("entry of a field", entry, lambda: vf[1][0]),
        ("fill with a vector", lambda x: vf.fill([0, x]), lambda: vf[1][1]),
        ("vectors of an ndarray", lambda x: vn.__setitem__(0, [x, 0]), lambda: vn[0][0]),
        ("fill with a number", vn.fill, lambda: vn[1][1]),
        ("fill of an ndarray with a vector", lambda x: vn.fill([0, x]), lambda: vn[1][1]),
        ("entry", lambda x: v.__setitem__(0, x), lambda: v[0]),
        ("fill of a matrix", m.fill, lambda: m[1, 1]),
        ("member of a field", member, lambda: sf[0].a),
        ("field of a member", lambda x: sf.a.__setitem__(1, x), lambda: sf[1].a),
        ("struct of a field", lambda x: sf.__setitem__(1, {"a": x, "b": 0}), lambda: sf[1].a),
        ("member of an ndarray", of_array, lambda: sn[0].a),
        ("member", of_value, lambda: s.a),
    ]


@pytest.mark.parametrize("dtype, good, bad", [
    (qd.i32, (2**31 - 1, -(2**31), True, np.uint8(255)), (2**31, -(2**31) - 1, 0xFFFFFFFF, 1 << 40, np.int64(1 << 40), 1e10, 10**5000)),
    (qd.u32, (0, 2**32 - 1), (-1, 2**32, np.int8(-1), -1.0)),
    (qd.i8, (127, -128), (128, -129, 200.0)),
    (qd.u1, (0, 1, True, np.bool_(True)), (2, -1)),
    (qd.i64, (2**63 - 1, -(2**63)), (2**63, 2.0**63, 1 << 70)),
    (qd.u64, (2**64 - 1,), (-1, 2**64, 1e30)),
])
def test_integers_must_fit(dtype, good, bad):
    for name, write, read in places(dtype):
        for x in good:
            write(x)
            assert read() == x, name
        kept = read()
        for x in bad:
            with pytest.raises(OverflowError, match=f"does not fit in {dtype}, which") as e:
                write(x)
            assert read() == kept, name
            if "low bits" in str(e.value):  # the remedy
                write(dtype(x))
                assert (int(read()) - int(x)) % 2**dtype.bits == 0, name
                write(kept)


def test_floats_for_integers():
    for name, write, read in places(qd.i32):
        for x in (3.0, np.float32(-3), np.float16(2), np.array(4.0), decimal.Decimal(5)):
            if "member" not in name or not isinstance(x, decimal.Decimal):
                write(x)
                assert read() == int(x), name
        for x in (3.7, np.float32(2.5), float("nan"), float("inf"), np.float32("nan"), np.array(0.5)):
            with pytest.raises(TypeError, match="expected an integer .i32., got"):
                write(x)


@pytest.mark.filterwarnings("error")
def test_what_is_no_number():
    for dtype in (qd.i32, qd.f32):
        for name, write, read in places(dtype):
            for x in (1j, np.complex64(1), np.array(1j), "3", "x", b"1", None, object()):
                with pytest.raises(TypeError, match="number"):
                    write(x)
            assert read() == 0, name


def test_constructors():
    vec = qd.types.vector(2, qd.i32)
    for make in (lambda x: qd.Vector([x, 0], dt=qd.i32)[0], lambda x: vec(x, 0)[0], lambda x: S(x, 0).a,
                 lambda x: S.cast({"a": x, "b": 0}).a):
        assert [make(x) for x in (3.7, -3.7, np.float32(2.5), True, 7)] == [3, -3, 2, 1, 7]
        for x in (1 << 40, 1e10):
            with pytest.raises(OverflowError, match="does not fit in i32"):
                make(x)
        for x in (float("nan"), "3", 1j, None):
            with pytest.raises(TypeError, match="number|integer"):
                make(x)
    assert qd.Vector([1 << 33, 3.9]).cast(qd.i32).to_list() == [0, 3]
    assert S(1, 0.1).b == 0.1


def test_floats_are_rounded():
    for name, write, read in places(qd.f32):
        write(1e300)
        assert read() in (float("inf"), 1e300), name
        with pytest.raises(OverflowError, match="past the range of f32"):
            write(10**400)
        write(2**24 + 1)
        assert read() in (2.0**24, 2**24 + 1), name
    assert qd.f32(1 << 200) == float("inf") and qd.f64(1 << 200) == 2.0**200


def test_structs_as_arguments():
    @qd.kernel
    def first(s: S) -> qd.i32:
        return s.a

    assert first(qd.Struct(a=3, b=0)) == 3
    with pytest.raises(OverflowError, match="a member of a struct: 1099511627776 does not fit in i32"):
        first(qd.Struct(a=1 << 40, b=0))


def test_as_the_reference_does():
    program = """
import numpy as np
import ingot.compat.quadrants as qd
qd.init(arch=qd.cpu)
f, u = qd.field(qd.i16, shape=2), qd.field(qd.u8, shape=2)
s = qd.types.struct(a=qd.i16)
f[0], u[0], f[1] = 65535, -128, np.float32(2.7)
print(f[0], u[0], f[1], s(a=65537).a)
for bad in (3.7, float("nan"), 1e10, 1 << 70, "3"):
    try:
        f[0] = bad
        print("stored", bad)
    except (TypeError, OverflowError):
        pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "-1 128 2 1", done.stdout + done.stderr
