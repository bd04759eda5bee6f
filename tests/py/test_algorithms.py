"""Reductions, scans, selections and sorts of whole arrays, against NumPy."""

import numpy as np
import pytest
from conftest import SEED

import ingot as qd

TYPES = {"i32": (qd.i32, np.int32), "u32": (qd.u32, np.uint32), "f32": (qd.f32, np.float32),
         "i64": (qd.i64, np.int64), "u64": (qd.u64, np.uint64), "f64": (qd.f64, np.float64)}
SIZES = [0, 1, 255, 4096, 4097, 20_000]
A = qd.algorithms


@pytest.fixture(params=TYPES)
def number(request):
    qd.init(arch=qd.cpu)
    return TYPES[request.param]


def numbers(np_type, n):
    rng = np.random.default_rng(SEED)
    if np.issubdtype(np_type, np.floating):
        return (rng.standard_normal(n) * 100).astype(np_type)
    info = np.iinfo(np_type)
    return rng.integers(info.min, info.max, n, np_type, endpoint=True)


def words(dtype):
    return np.uint64 if dtype in (qd.i64, qd.u64, qd.f64) else np.uint32


@qd.kernel
def reduce_all(arr: qd.types.ndarray(), out: qd.types.ndarray(), one: qd.types.ndarray(), scratch: qd.types.ndarray(),
               count: qd.types.ndarray(), dtype: qd.template()):
    A.reduce_add(arr, one, scratch, count[0], dtype, 3)
    for _ in range(1):
        out[0] = one[0]
    A.reduce_min(arr, one, scratch, count[0], dtype, 3)
    for _ in range(1):
        out[1] = one[0]
    A.reduce_max(arr, one, scratch, count[0], dtype, 3)
    for _ in range(1):
        out[2] = one[0]


@qd.kernel
def scan_all(arr: qd.types.ndarray(), add: qd.types.ndarray(), low: qd.types.ndarray(), high: qd.types.ndarray(),
             scratch: qd.types.ndarray(), count: qd.types.ndarray(), dtype: qd.template()):
    A.exclusive_scan_add(arr, add, scratch, count[0], dtype, 3)
    A.exclusive_scan_min(arr, low, scratch, count[0], dtype, 3)
    A.exclusive_scan_max(arr, high, scratch, count[0], dtype, 3)


def limits(np_type):
    if np.issubdtype(np_type, np.floating):
        return -np.inf, np.inf
    return np.iinfo(np_type).min, np.iinfo(np_type).max


@pytest.mark.parametrize("n", SIZES)
def test_reduce(number, n):
    dtype, np_type = number
    a, out = numbers(np_type, n + 3), np.zeros(3, np_type)
    scratch = np.zeros(A.reduce_scratch_slots(n, 3), words(dtype))
    reduce_all(a, out, np.zeros(1, np_type), scratch, np.array([n], np.int32), dtype)
    low, high = limits(np_type)
    used = a[:n]
    assert out[1] == used.min(initial=high) and out[2] == used.max(initial=low)
    with np.errstate(over="ignore"):
        want = used.sum(dtype=np_type if np.issubdtype(np_type, np.integer) else np.float64)
    assert out[0] == (want if np.issubdtype(np_type, np.integer) else pytest.approx(want, rel=1e-4, abs=0.05))


@pytest.mark.parametrize("n", SIZES)
def test_scan(number, n):
    dtype, np_type = number
    a = numbers(np_type, n + 3)
    scratch = np.zeros(A.exclusive_scan_scratch_slots(n, 3), words(dtype))
    add, low, high = (np.zeros_like(a) for _ in range(3))
    scan_all(a, add, low, high, scratch, np.array([n], np.int32), dtype)
    least, most = limits(np_type)
    used = a[:n]
    with np.errstate(over="ignore"):
        if np.issubdtype(np_type, np.integer):
            assert (add[:n] == np.concatenate(([0], np.cumsum(used, dtype=np_type)[:-1]))[:n]).all()
        else:
            want = np.concatenate(([0], np.cumsum(used, dtype=np.float64)[:-1]))[:n]
            assert np.allclose(add[:n], want, rtol=1e-4, atol=0.5)
    start = np.array([most, least], np_type)
    assert (low[:n] == np.minimum.accumulate(np.concatenate((start[:1], used)))[:n]).all()
    assert (high[:n] == np.maximum.accumulate(np.concatenate((start[1:], used)))[:n]).all()
    assert (add[n:] == 0).all()


@qd.kernel
def sort_all(keys: qd.types.ndarray(), tmp_keys: qd.types.ndarray(), values: qd.types.ndarray(),
             tmp_values: qd.types.ndarray(), scratch: qd.types.ndarray(), n: qd.i32, dtype: qd.template(),
             has_values: qd.template(), end_bit: qd.template()):
    A.sort(keys, tmp_keys, values, tmp_values, scratch, n, dtype, has_values, end_bit, 3)


@pytest.mark.parametrize("n", [0, 1, 300, 20_000])
def test_sort(number, n):
    dtype, np_type = number
    keys = numbers(np_type, n)
    keys[: n // 2] = keys[n - n // 2:]  # each twice: the order of equal keys counts
    want = np.argsort(keys, kind="stable")
    sorted_keys, values = keys.copy(), np.arange(n, dtype=np.int32)
    scratch = np.zeros(A.sort_scratch_slots(n, 3), np.uint32)
    room = np.zeros_like(keys), np.zeros_like(values)
    if n:
        sort_all(sorted_keys, room[0], values, room[1], scratch, n, dtype, True, 8 * keys.itemsize)
    assert (sorted_keys == keys[want]).all() and (values == want).all()


@qd.kernel
def sort_counted(keys: qd.types.ndarray(), room: qd.types.ndarray(), scratch: qd.types.ndarray(),
                 n: qd.types.ndarray(qd.i32, ndim=0)):
    A.sort(keys, room, keys, room, scratch, n, qd.f32, False, 32, 3)


def test_sort_with_the_count_in_an_array():
    qd.init(arch=qd.cpu)
    keys, n = numbers(np.float32, 3000), qd.ndarray(qd.i32, ())
    got, scratch = keys.copy(), np.zeros(A.sort_scratch_slots(3000, 3), np.uint32)
    for count in (2000, 3000):
        n.fill(count)
        sort_counted(got, np.zeros_like(keys), scratch, n)
        assert (got[:count] == np.sort(keys[:count])).all() and (got[count:] == keys[count:]).all()


def test_sort_lowest_bits():
    qd.init(arch=qd.cpu)
    keys = numbers(np.uint32, 3000)
    got, room = keys.copy(), np.zeros_like(keys)
    sort_all(got, room, got, room, np.zeros(A.sort_scratch_slots(3000, 3), np.uint32), 3000, qd.u32, False, 8)
    assert (got == keys[np.argsort(keys & 0xFF, kind="stable")]).all()


@qd.kernel
def select_some(arr: qd.types.ndarray(), flags: qd.types.ndarray(), out: qd.types.ndarray(),
                num_out: qd.types.ndarray(), scratch: qd.types.ndarray(), n: qd.i32):
    A.select(arr, flags, out, num_out, scratch, n, 3)


@qd.kernel
def runs(keys: qd.types.ndarray(), values: qd.types.ndarray(), keys_out: qd.types.ndarray(),
         values_out: qd.types.ndarray(), num: qd.types.ndarray(), scratch: qd.types.ndarray(), n: qd.i32):
    A.reduce_by_key_add(keys, values, keys_out, values_out, num, scratch, n, qd.f32, 3)


@pytest.mark.parametrize("n", [1, 5, 4097, 20_000])
def test_select_and_runs(n):
    qd.init(arch=qd.cpu)
    rng = np.random.default_rng(SEED)
    a, flags = rng.standard_normal(n), rng.integers(0, 2, n, np.int32)
    out, count = np.zeros(n), np.zeros(1, np.int32)
    select_some(a, flags, out, count, np.zeros(A.select_scratch_slots(n), np.uint32), n)
    assert count[0] == flags.sum() and (out[: count[0]] == a[flags == 1]).all()

    keys = np.repeat(rng.integers(0, 5, n), rng.integers(1, 9, n))[:n].astype(np.int32)
    values = rng.integers(0, 9, n).astype(np.float32)
    keys_out, values_out = np.zeros_like(keys), np.zeros_like(values)
    runs(keys, values, keys_out, values_out, count, np.zeros(A.reduce_by_key_scratch_slots(n), np.uint32), n)
    heads = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    assert count[0] == len(heads) and (keys_out[: len(heads)] == keys[heads]).all()
    assert (values_out[: len(heads)] == np.add.reduceat(values, heads)).all()


def test_from_the_host():
    qd.init(arch=qd.cpu)
    n = 5000
    keys, values = qd.ndarray(qd.f32, n), qd.ndarray(qd.i32, n)
    a = numbers(np.float32, n)
    keys.from_numpy(a), values.from_numpy(np.arange(n, dtype=np.int32))
    A.parallel_sort(keys, values)
    assert (keys.to_numpy() == np.sort(a)).all() and (a[values.to_numpy()] == np.sort(a)).all()
    keys.from_numpy(a)
    A.parallel_sort(keys)
    assert (keys.to_numpy() == np.sort(a)).all()
    sums = A.PrefixSumExecutor(n)
    values.fill(3)
    sums.run(values)
    assert (values.to_numpy() == 3 * np.arange(1, n + 1)).all()
    with pytest.raises(RuntimeError, match="Only qd.i32"):
        sums.run(keys)


def test_scratch_slots():
    """The numbers of the reference: programs allocate by them."""
    assert [A.reduce_scratch_slots(n) for n in (0, 1, 256, 257, 65536, 65537, 1_000_000)] == [1, 1, 1, 2, 256, 259, 3923]
    assert [A.exclusive_scan_scratch_slots(300, d) for d in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert [A.select_scratch_slots(n) for n in (0, 1, 256, 257, 65537)] == [1, 2, 257, 259, 65796]
    assert [A.reduce_by_key_scratch_slots(n) for n in (0, 1, 256, 257, 65536)] == [1, 1, 256, 259, 65792]
    assert [A.sort_scratch_slots(n) for n in (0, 1, 256, 257, 65537)] == [1, 256, 256, 514, 66051]
    with pytest.raises(ValueError, match="log256_max_n"):
        A.reduce_scratch_slots(10, 5)


def test_only_in_the_outermost_block():
    qd.init(arch=qd.cpu)

    @qd.kernel
    def nested(arr: qd.types.ndarray()):
        for _ in range(2):
            A.reduce_add(arr, arr, arr, 3, qd.i32, 1)

    with pytest.raises(qd.IngotSyntaxError, match="requires_top_level"):
        nested(np.zeros(3, np.int32))


@pytest.mark.parametrize("offset", [-5000, -1, 3, 100_000])
def test_fields_with_an_offset(offset):
    """The first n elements are those of lowest index, wherever indices begin."""
    qd.init(arch=qd.cpu, debug=True)
    n = 5000
    host = np.random.default_rng(SEED).integers(0, 50, n).astype(np.int32)

    def made(dtype=qd.i32, size=n, values=None):
        f = qd.field(dtype, shape=size, offset=offset)
        if values is not None:
            f.from_numpy(values)
        return f

    @qd.kernel
    def some(arr: qd.template(), flags: qd.template(), out: qd.template(), one: qd.template(), scratch: qd.template(),
             sums: qd.template(), order: qd.template()):
        A.reduce_add(arr, one, scratch, n, qd.i32, 3)
        A.exclusive_scan_add(arr, sums, scratch, n, qd.i32, 3)
        A.select(arr, flags, out, one, scratch, n, 3)
        A.reduce_by_key_add(order, arr, order, out, one, scratch, n, qd.i32, 3)

    keys, values = made(values=host), made(values=np.arange(n, dtype=np.int32))
    A.parallel_sort(keys, values)
    assert (keys.to_numpy() == np.sort(host)).all()
    assert (values.to_numpy() == np.argsort(host, kind="stable")).all()
    arr, flags, out, sums = made(values=host), made(values=(host % 2).astype(np.int32)), made(), made()
    one, scratch = made(size=1), made(qd.u32, A.select_scratch_slots(n))
    some(arr, flags, out, one, scratch, sums, keys)
    assert (sums.to_numpy() == np.cumsum(host) - host).all()
    runs = len(np.unique(host))
    assert one.to_numpy()[0] == runs and (keys.to_numpy()[:runs] == np.unique(host)).all()
    starts = np.searchsorted(np.sort(host), np.unique(host))
    assert (out.to_numpy()[:runs] == np.add.reduceat(host, starts)).all()
    A.PrefixSumExecutor(n).run(arr)
    assert (arr.to_numpy() == np.cumsum(host)).all()


def test_offset_in_kernels():
    qd.init(arch=qd.cpu)

    @qd.func
    def known(x):
        return qd.static(hasattr(x, "offset"))

    @qd.kernel
    def of_field(x: qd.template()) -> qd.i32:
        return x.offset[0] * 100 + x.offset[1] if known(x) else 7

    @qd.kernel
    def of_array(x: qd.types.ndarray()) -> qd.i32:
        return known(x)

    assert of_field(qd.field(qd.f32, shape=(4, 5), offset=(-3, 2))) == -298
    assert of_field(qd.field(qd.f32, shape=(4, 5))) == 0
    assert of_array(np.zeros((2, 2))) == 0 and of_array(qd.ndarray(qd.f32, 3)) == 0
