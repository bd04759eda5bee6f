"""Random numbers: reproducible for a seed whatever runs them, and as random as they should be."""

import numpy as np
import pytest

import ingot as qd

COUNT = 100_000


@pytest.fixture(autouse=True)
def reset():
    qd.init(arch=qd.cpu)
    yield
    qd.init(arch=qd.cpu)


@qd.kernel
def uniform(x: qd.types.ndarray(), dtype: qd.template()):
    for i in range(x.shape[0]):
        x[i] = qd.random(dtype)


@qd.kernel
def normal(x: qd.types.ndarray(), dtype: qd.template()):
    for i in range(x.shape[0]):
        x[i] = qd.randn(dtype)


def drawn(kernel=uniform, dtype=qd.f32, count=COUNT, store=np.float64):
    x = np.zeros(count, store)
    kernel(x, dtype)
    return x


def test_reproducible():
    first = drawn()
    second = drawn()
    assert not np.array_equal(first, second)  # per launch
    qd.init(arch=qd.cpu)
    assert np.array_equal(first, drawn())
    assert np.array_equal(second, drawn())
    qd.init(arch=qd.cpu, random_seed=1)
    other = drawn()
    assert np.abs(np.corrcoef(first, other)[0, 1]) < 0.02


@pytest.mark.parametrize("options", [
    {"cpu_max_num_threads": 1}, {"fast_math": False}, {"debug": True}, {"opt_level": 0},
], ids=str)
def test_options_change_nothing(options):
    first = drawn(), drawn(normal, qd.f64)
    qd.init(arch=qd.cpu, **options)
    again = drawn(), drawn(normal, qd.f64)
    assert np.array_equal(first[0], again[0])
    assert np.allclose(first[1], again[1], rtol=1e-12)


def test_the_interpreter_agrees():
    first = drawn(count=2000)
    qd.init(arch=qd.interp)
    assert np.array_equal(first, drawn(count=2000))


@pytest.mark.parametrize("dtype", [qd.f16, qd.f32, qd.f64], ids=str)
def test_uniform_floats(dtype):
    x = drawn(dtype=dtype)
    assert x.min() >= 0 and x.max() < 1
    for power in range(1, 5):  # moments of the uniform distribution
        assert (x**power).mean() == pytest.approx(1 / (power + 1), abs=5e-3)
    counts, _ = np.histogram(x, 64, (0, 1))
    expected = COUNT / 64
    assert ((counts - expected) ** 2 / expected).sum() < 115  # chi-square, 63 degrees: p = 6e-5
    lag = np.corrcoef(x[:-1], x[1:])[0, 1]
    assert abs(lag) < 0.012


@pytest.mark.parametrize("dtype", [qd.i8, qd.u8, qd.i16, qd.u16, qd.i32, qd.u32, qd.i64, qd.u64],
                         ids=str)
def test_every_bit_of_integers(dtype):
    bits = int(str(dtype)[1:])
    x = drawn(dtype=dtype, store=np.dtype(f"{'int' if str(dtype)[0] == 'i' else 'uint'}{bits}"))
    as_bits = np.unpackbits(x.view(np.uint8)).reshape(COUNT, bits)
    share = as_bits.mean(axis=0)
    assert np.all(np.abs(share - 0.5) < 0.008)  # five standard deviations


@pytest.mark.parametrize("dtype", [qd.f32, qd.f64], ids=str)
def test_normal(dtype):
    x = drawn(normal, dtype)
    for power, moment, error in ((1, 0, 0.015), (2, 1, 0.02), (3, 0, 0.05), (4, 3, 0.1)):
        assert (x**power).mean() == pytest.approx(moment, abs=error)
    assert np.all(np.isfinite(x))


def test_f64_has_fine_grains():
    fraction, _ = np.modf(drawn(dtype=qd.f64) * 2.0**32)
    assert fraction.max() > 0.9


@qd.kernel
def several(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i, 0] = qd.random()
        for j in range(1, 3):
            x[i, j] = qd.random()
        if i % 2 == 0:
            x[i, 3] = qd.random()
    for i in range(x.shape[0]):
        x[i, 4] = qd.random()
    x[0, 5] = qd.random()
    x[1, 5] = qd.random()


def test_draws_differ():
    x = np.zeros((5000, 6))
    several(x)
    values = np.concatenate([x[:, :3].ravel(), x[::2, 3], x[:, 4], x[:2, 5]])
    # 24 bits each: of 22,500 draws some coincide by chance, about 15
    assert len(np.unique(values)) > len(values) - 50
    for a in range(5):
        for b in range(a):
            assert abs(np.corrcoef(x[::2, a], x[::2, b])[0, 1]) < 0.08


@qd.kernel
def words(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        n = 0
        while True:
            x[i, n] = qd.random(qd.u64)
            n += 1
            if n == x.shape[1]:
                break


@pytest.mark.parametrize("shape", [(1000, 1000), (100_000, 10), (10, 100_000)], ids=str)
def test_streams_are_independent(shape):
    """Words along the draws of an iteration and across iterations: all differ, half of the bits
    change from one to the next, no bit follows another."""
    x = np.zeros(shape, np.uint64)
    words(x)
    assert len(np.unique(x)) == x.size
    for lag in (1, 2, 3, 7):
        for near in (x[lag:] ^ x[:-lag], x[:, lag:] ^ x[:, :-lag], x[lag:, lag:] ^ x[:-lag, :-lag]):
            bits = np.unpackbits(np.ascontiguousarray(near).view(np.uint8)).reshape(-1, 64)
            share, sigma = bits.mean(axis=0), 0.5 / np.sqrt(len(bits))
            assert np.all(np.abs(share - 0.5) < 5.5 * sigma)
            ones = bits.sum(axis=1)
            assert abs(ones.var() - 16) < 6 * 16 * np.sqrt(2 / len(ones))


def test_numbers_fill_planes():
    """Pairs and triples of draws, and of iterations, in cells of equal size."""
    x = np.zeros((300_000, 3), np.uint64)
    words(x)
    cell = (x >> np.uint64(60)).astype(np.int64)
    for a, b, c in ((cell[:, 0], cell[:, 1], cell[:, 2]), (cell[:-2, 0], cell[1:-1, 0], cell[2:, 0])):
        counts = np.bincount((a * 16 + b) * 16 + c, minlength=4096)
        expected = len(a) / 4096
        chi = ((counts - expected) ** 2 / expected).sum()
        assert abs(chi - 4095) < 5 * np.sqrt(2 * 4095)


@qd.func
def pair():
    return qd.random(), qd.random()


@qd.kernel
def in_funcs(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        a, b = pair()
        c, d = pair()
        x[i] = (a != b) and (c != d) and (a != c)


def test_funcs_share_the_stream():
    x = np.zeros(100, np.int32)
    in_funcs(x)
    assert x.all()


@qd.func
def deep(n: qd.i32) -> qd.u64:
    s = qd.u64(0)
    for k in range(n):
        s ^= qd.random(qd.u64) * qd.u64(2 * k + 3)
    return s ^ deeper()


@qd.func
def deeper() -> qd.u64:
    return qd.random(qd.u64) * qd.u64(5)


@qd.kernel
def in_deep_funcs(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        a = qd.random(qd.u64)
        b = deep(i % 4)
        c = deeper()
        x[i, 0] = a
        x[i, 1] = b
        x[i, 2] = c
        x[i, 3] = qd.random(qd.u64)


def test_a_stream_goes_through_calls():
    """What is drawn in funcs that call funcs are the draws of one row."""
    qd.init(arch=qd.cpu)
    x, row = np.zeros((500, 4), np.uint64), np.zeros((500, 8), np.uint64)
    in_deep_funcs(x)
    qd.init(arch=qd.cpu)
    words(row)
    for i in range(500):
        n, r = i % 4, [int(v) for v in row[i]]
        s = 0
        for k in range(n):
            s ^= r[1 + k] * (2 * k + 3) % 2**64
        want = [r[0], s ^ r[1 + n] * 5 % 2**64, r[2 + n] * 5 % 2**64, r[3 + n]]
        assert x[i].tolist() == want


@qd.kernel
def defaults() -> qd.f64:
    return qd.random(float) + qd.random(dtype=qd.f64) + qd.cast(qd.random(int) != 0, qd.f64)


def test_defaults():
    assert 1 <= defaults() < 3


@qd.kernel
def integer_normal() -> qd.f32:
    return qd.randn(qd.i32)


def test_mistake():
    with pytest.raises(qd.IngotTypeError, match="randn gives floats, not 'i32'"):
        integer_normal()
