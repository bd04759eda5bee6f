"""Forward mode end to end: duals of fields through kernels, on every target, against values by hand
and central differences. What the transformation does with each operation is tests/c/test_ad_forward.c."""

import math

import numpy as np
import pytest

import ingot as qd
from conftest import run_program


@pytest.fixture(autouse=True)
def start(target, monkeypatch):
    qd.init(default_fp=qd.f64, fast_math=False)
    yield
    monkeypatch.setenv("INGOT_ARCH", "cpu")
    qd.init()


def differences(run, x, way, out, h=1e-6):
    """The derivative of what `run` leaves in `out`, as x moves by `way`."""
    at, left = x.to_numpy(), out.to_numpy()
    sides = []
    for s in (h, -h):
        x.from_numpy(at + s * way)
        out.from_numpy(left)
        run()
        sides.append(out.to_numpy())
    x.from_numpy(at)
    out.from_numpy(left)
    return (sides[0] - sides[1]) / (2 * h)


def along(run, x, way, *args):
    """One launch with derivatives along `way`."""
    x.dual.from_numpy(np.asarray(way, x.to_numpy().dtype))
    run.dual(*args)


def check(run, x, out):
    """Duals against differences along a random direction; values stay what they were."""
    rng = np.random.default_rng(len(out.to_numpy()))
    way = rng.uniform(-1, 1, x.shape)
    want = differences(run, x, way, out)
    left = out.to_numpy()
    run()
    value = out.to_numpy()
    out.from_numpy(left)
    along(run, x, way)
    assert (out.to_numpy() == value).all()
    np.testing.assert_allclose(out.dual.to_numpy(), want, rtol=1e-6, atol=1e-7)


def fields(n, m=None):
    x = qd.field(qd.f64, shape=n, needs_dual=True)
    y = qd.field(qd.f64, shape=m or n, needs_dual=True)
    x.from_numpy(np.linspace(-1.3, 1.7, math.prod(x.shape)).reshape(x.shape))
    y.from_numpy(np.linspace(0.2, 0.9, math.prod(y.shape)).reshape(y.shape))
    return x, y


# ---- the object ----


def test_a_jacobian():
    x, y = fields(3, 4)

    @qd.kernel
    def mixed():
        for i in range(4):
            y[i] = x[i % 3] ** 2 * x[(i + 1) % 3]

    columns = []
    for j in range(3):
        with qd.ad.FwdMode(loss=y, param=x, seed=[float(k == j) for k in range(3)]):
            mixed()
        columns.append(y.dual.to_numpy())
    v = x.to_numpy()
    want = np.zeros((4, 3))
    for i in range(4):
        want[i, i % 3] += 2 * v[i % 3] * v[(i + 1) % 3]
        want[i, (i + 1) % 3] += v[i % 3] ** 2
    np.testing.assert_allclose(np.stack(columns, 1), want, rtol=1e-12)


def test_several_kernels_and_clearing():
    x, y = fields((), ())
    z = qd.field(qd.f64, shape=(), needs_dual=True)
    x[None] = 2.0

    @qd.kernel
    def first():
        y[None] = x[None] ** 2

    @qd.kernel
    def second():
        z[None] += y[None] * x[None]

    for _ in range(3):
        with qd.ad.FwdMode(loss=[y, z], param=x):
            first()
            second()
        assert y.dual[None] == 4 and z.dual[None] == 12
    with qd.ad.FwdMode(loss=z, param=x, clear_gradients=False):
        second()  # on top of what is there
    assert z.dual[None] == 12 + 4 * 2 + 4
    first()
    second()  # outside: values only
    assert z.dual[None] == 24


def test_a_launch_by_hand():
    x, y = fields(4)

    @qd.kernel
    def double(by: qd.f64):
        for i in x:
            y[i] = by * qd.sin(x[i])

    x.dual.fill(1.0)
    double.dual(3.0)
    np.testing.assert_allclose(y.to_numpy(), 3 * np.sin(x.to_numpy()))
    np.testing.assert_allclose(y.dual.to_numpy(), 3 * np.cos(x.to_numpy()))


# ---- what kernels are made of ----


def test_loops_and_branches():
    x, y = fields(6)
    n = qd.field(qd.i32, shape=6)
    n.from_numpy(np.array([3, 0, 5, 1, 4, 2], np.int32))

    @qd.func
    def step(v, w):
        r = v * w + 0.1
        if r > 0.5:
            r = qd.sin(r)
        return r

    @qd.kernel
    def run():
        for i in range(6):
            s = x[i]
            for j in range(n[i]):
                if j == 2:
                    continue
                s = step(s, x[n[i]]) + s * 0.5
            k = 0
            while k < 20:
                k += 1
                if s > 1.2:
                    break
                s = s * 1.1 + x[i] * 0.2
            y[i] = s

    check(run, x, y)


def test_vectors_structs_and_funcs():
    x, y = fields(6)
    Pair = qd.types.struct(a=qd.f64, n=qd.i32, v=qd.types.vector(3, qd.f64))

    @qd.func
    def turn(m, v):
        w = m @ v
        return w / (1.0 + w.norm())

    @qd.func
    def early(v, k):
        for j in range(5):
            if j == k:
                return v * j
            v = v * v + 0.3
        return v

    @qd.kernel
    def run():
        for i in range(6):
            p = Pair(a=x[i], n=i, v=qd.Vector([x[i], 1.0, x[5 - i]]))
            m = qd.Matrix([[x[i], 0.2, 0.1], [0.5, 1.0, x[0]], [0.0, p.a, 0.3]])
            for j in range(3):
                p.v[(i + j) % 3] += p.v[j] * p.a
            p.v = turn(m, p.v)
            p.n += 1
            y[i] = early(p.v.sum(), p.n % 4) + qd.max(p.a, p.v[2])

    check(run, x, y)


@pytest.mark.parametrize("how", ["add", "sub", "min", "max", "mul"])
def test_updates_of_one_place(how):
    x, y = fields(2000, 3)
    update = {"add": qd.atomic_add, "sub": qd.atomic_sub, "min": qd.atomic_min, "max": qd.atomic_max,
              "mul": qd.atomic_mul}[how]
    x.from_numpy(np.random.default_rng(5).uniform(0.9999, 1.0001, 2000))

    @qd.kernel
    def run():
        for i in range(2000):
            update(y[i % 3], x[i] * x[(i * 7) % 2000])

    rng = np.random.default_rng(3)
    way = rng.uniform(-1, 1, 2000)
    v = x.to_numpy()
    j = np.arange(2000) * 7 % 2000
    u, du = v * v[j], way * v[j] + v * way[j]
    want, start_at = [], y.to_numpy()
    for k in range(3):
        at = np.arange(k, 2000, 3)
        if how in ("add", "sub"):
            want.append((1 if how == "add" else -1) * du[at].sum())
        elif how == "mul":
            want.append((start_at[k] * np.prod(u[at]) * (du[at] / u[at]).sum()))
        else:
            best = at[np.argmin(u[at]) if how == "min" else np.argmax(u[at])]
            wins = u[best] < start_at[k] if how == "min" else u[best] > start_at[k]
            want.append(du[best] if wins else 0.0)
    along(run, x, way)
    np.testing.assert_allclose(y.dual.to_numpy(), want, rtol=1e-9, atol=1e-9)


def test_fields_of_vectors_and_structs():
    x, y = fields(4)
    v = qd.Vector.field(2, qd.f64, shape=4, needs_dual=True)
    s = qd.Struct.field({"a": qd.f64, "v": qd.types.vector(2, qd.f64)}, shape=4, needs_dual=True)

    @qd.kernel
    def run():
        for i in range(4):
            v[i] = qd.Vector([x[i], x[i] ** 2])
            v[i][1] *= x[3 - i]
        for i in range(4):
            s[i].a = v[i].norm()
            s[i].v = v[i] * s[i].a
        for i in range(4):
            y[i] = s[i].v[1] - s[i].a + v[i][0]

    check(run, x, y)


def test_what_has_no_dual_is_a_constant():
    x, y = fields(3)
    c = qd.field(qd.f64, shape=3)
    a = qd.ndarray(qd.f64, 3)
    c.from_numpy(np.array([2.0, 3.0, 4.0]))
    a.from_numpy(np.array([5.0, 6.0, 7.0]))

    @qd.kernel
    def run(a: qd.types.NDArray[qd.f64, 1]):
        for i in range(3):
            y[i] = x[i] * c[i] + a[i]
            y[i] += c[i]

    along(run, x, [1.0, 1.0, 1.0], a)
    assert y.dual.to_numpy().tolist() == [2, 3, 4]


def test_stopped_fields_are_constants_to_read():
    x, y = fields(3)

    @qd.func
    def bump(f: qd.template(), i, v):
        f[i] += v * f[i]

    @qd.kernel
    def run():
        for i in range(3):
            qd.stop_grad(y)
            y[i] = x[i] * 2 + y[i] * 5
            bump(y, i, x[i])

    y.dual.fill(7.0)
    before = y.to_numpy()
    along(run, x, [1.0, 2.0, 3.0])
    v, way = x.to_numpy(), np.array([1.0, 2.0, 3.0])
    # y = 2 x + 5 y0, then y += x y: what is read there is constant, what is written has its dual
    np.testing.assert_allclose(y.dual.to_numpy(), way * 2 + way * (v * 2 + before * 5), rtol=1e-12)


@pytest.mark.parametrize("dtype", [qd.f16, qd.f32, qd.f64])
def test_types(dtype):
    x = qd.field(dtype, shape=4, needs_dual=True)
    y = qd.field(dtype, shape=4, needs_dual=True)
    x.from_numpy(np.array([0.5, 1.0, 1.5, 2.0], y.to_numpy().dtype))

    @qd.kernel
    def run():
        for i in range(4):
            y[i] = qd.exp(x[i]) / x[i] + qd.sqrt(x[i])

    along(run, x, [1.0] * 4)
    v = x.to_numpy().astype(np.float64)
    want = np.exp(v) / v - np.exp(v) / v ** 2 + 0.5 / np.sqrt(v)
    room = {qd.f16: 2e-2, qd.f32: 1e-5, qd.f64: 1e-12}[dtype]
    np.testing.assert_allclose(y.dual.to_numpy(), want, rtol=room, atol=room)


def test_bits_are_refused():
    x, y = fields(3)

    @qd.kernel
    def run():
        for i in range(3):
            y[i] = qd.cast(qd.bit_cast(x[i], qd.i64), qd.f64)

    with pytest.raises(qd.IngotCompilationError, match="bits of a float"):
        run.dual()
    run()


# ---- the cache ----

CACHED = """
import ingot as qd
qd.init(default_fp=qd.f64)
x = qd.field(qd.f64, shape=3, needs_dual=True)
y = qd.field(qd.f64, shape=3, needs_dual=True)

@qd.func
def square(v):
    return v * v

@qd.kernel
def run():
    for i in range(3):
        y[i] = square(x[i]) * 3.0

for i in range(3):
    x[i] = i + 1.0
    x.dual[i] = i + 1.0
run()
run.dual()
assert y.to_numpy().tolist() == [3, 12, 27]
assert y.dual.to_numpy().tolist() == [6, 24, 54]
c = qd._core.counters()
print("#", c["lowerings"], c["image_compiles"])
"""


@pytest.mark.counts("lowerings")
def test_cold_and_warm(tmp_path):
    path = tmp_path / "cached.py"
    path.write_text(CACHED)
    cold, warm = (run_program(path, INGOT_CACHE_DIR=str(tmp_path / "cache")).split() for _ in range(2))
    assert cold == ["2", "2"] and warm == ["0", "0"]


def test_gradients_in_forward_mode_are_refused():
    """They would be plain ones: second derivatives of 0, without a word."""
    x = qd.field(qd.f64, (), needs_grad=True, needs_dual=True)
    y = qd.field(qd.f64, (), needs_grad=True, needs_dual=True)

    @qd.kernel
    def cube():
        y[None] = x[None] ** 3

    x[None] = 2.0
    y.grad[None] = 1.0
    with qd.ad.FwdMode(loss=y, param=x):
        cube()
        with pytest.raises(qd.IngotRuntimeError, match="derivatives of gradients are not computed"):
            cube.grad()
    assert y.dual[None] == 12.0
    cube.grad()
    assert x.grad[None] == 12.0


@pytest.mark.parametrize("how", ["store", "add", "member", "func", "ref", "numpy"])
def test_arrays_without_duals_lose_none(how):
    """An ndarray has no dual: what is read of it again would be a constant, without a word."""
    x, y = fields(3)
    kind = qd.types.vector(2, qd.f64) if how == "member" else qd.f64
    a = np.zeros(3) if how == "numpy" else qd.ndarray(kind, 3, needs_grad=True)

    @qd.func
    def put(to: qd.template(), i, v):
        to[i] = v

    @qd.func
    def bump(to: qd.template(), v):
        to += v

    @qd.kernel
    def through(a: qd.types.ndarray()):
        for i in x:
            if qd.static(how == "add"):
                a[i] += x[i]
            elif qd.static(how == "member"):
                a[i][1] = x[i]
            elif qd.static(how == "func"):
                put(a, i, x[i])
            elif qd.static(how == "ref"):
                bump(a[i], x[i])
            else:
                a[i] = x[i]

    @qd.kernel
    def apart(a: qd.types.ndarray()):
        for i in x:
            if qd.static(how == "member"):
                a[i][0] = i
                y[i] = x[i] * a[i][0]
            else:
                a[i] = qd.cast(qd.cast(x[i], qd.i32), qd.f64) + i
                y[i] = x[i] * a[i]

    with qd.ad.FwdMode(loss=y, param=x, seed=[1.0, 1.0, 1.0]):
        with pytest.raises(qd.IngotCompilationError, match="array without duals, which would lose it"):
            through(a)
        apart(a)
    held = a if how == "numpy" else a.to_numpy()
    assert y.dual.to_numpy().tolist() == (held[:, 0] if how == "member" else held).tolist()
    through(a)
