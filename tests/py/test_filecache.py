"""FileCache: what is stored comes back; damage of any kind is a miss and a counter."""

import gc
import math
import os
import pathlib
import pickle
import random
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import SEED, samples
from hypothesis import given
from hypothesis import strategies as st

import ingot
from ingot import _core

ATOMS = [
    None, True, False, 0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**400, -(10**400),
    0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324, 1j, complex(-0.0, math.inf), "", "text",
    "\0", "añ\U0001f600", "\ud800lone", b"", b"\0\xff" * 40,
]
NESTED = [
    (), [], {}, (1, (2, [3, {"a": (4,)}])), {1: 2, (1, "x"): [None], b"k": {}, None: ()},
    [[], [[]], {}, ()], {"b": 1, "a": 2}, [1] * 1000,
]
ARRAYS = [
    np.arange(10), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3).T, np.array(5),
    np.arange(10)[::-2], np.array(["a", "bcd"]), np.array([b"a", b"bc"]), np.zeros(3, bool),
    np.array(["2020-01-01", "NaT"], "M8[D]"), np.array([1, 2], "m8[25us]"),
    np.arange(3, dtype=">i4"), np.array([1, 2], np.float16), np.full((2, 2, 2), 1j, np.complex64),
    np.asfortranarray(np.arange(24).reshape(2, 3, 4)), np.array([np.nan, -0.0]),
]
SCALARS = [
    np.float32(1.5), np.int64(3), np.str_("abc"), np.bytes_(b"x"), np.datetime64("2020"),
    np.bool_(True), np.complex128(1j), np.uint8(255),
]


class Lonely(int):
    pass


REFUSED = [
    {1}, object(), np.array([None]), np.zeros(2, [("a", int), ("b", object)]), range(3), np.ma.array([1]),
    bytearray(b"x"), int, len, Lonely(1), memoryview(b"x"),
]


def same(a, b):
    """Equal in class, value and bits, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    return a == b


@pytest.fixture
def cache(tmp_path):
    return ingot.FileCache(tmp_path / "cache")


def files(cache):
    return sorted(p for p in pathlib.Path(cache.path).rglob("*") if len(p.name) == 32)


def snapshot(cache):
    """Changes when anything below the directory is written, made, renamed or removed."""
    found = []
    for path in sorted(pathlib.Path(cache.path).rglob("*")):
        stat = path.lstat()
        found.append((str(path), stat.st_ino, stat.st_size, stat.st_ctime_ns, stat.st_mtime_ns))
    return found


# ---- the codec ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ATOMS + NESTED, ids=lambda v: repr(v)[:30])
def test_plain_values(value):
    assert same(_core.decode_value(_core.encode_value(value)), value)


@pytest.mark.parametrize("value", ARRAYS, ids=lambda v: f"{v.dtype}{v.shape}")
def test_arrays(value):
    got = _core.decode_value(_core.encode_value(value))
    assert same(got, value)
    assert got.flags.writeable and got.flags.fnc == value.flags.fnc


@pytest.mark.parametrize("value", SCALARS, ids=lambda v: type(v).__name__)
def test_numpy_scalars(value):
    got = _core.decode_value(_core.encode_value([value]))
    assert type(got[0]) is type(value) and got[0] == value


@pytest.mark.parametrize("value", REFUSED, ids=lambda v: type(v).__name__)
def test_refused_with_the_path(value):
    with pytest.raises(TypeError, match=r"value\['a'\]\[1\] is a .*pickle"):
        _core.encode_value({"a": (0, value)})
    with pytest.raises(TypeError, match=r"^value is a"):
        _core.encode_value(value)


def test_depth_is_bounded():
    value = 1
    for _ in range(1000):
        value = [value]
    assert _core.decode_value(_core.encode_value(value)) is not None
    for deep in ([value], {"k": value}, (value,)):
        with pytest.raises(ValueError, match="1000 deep"):
            _core.encode_value(deep)
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        _core.encode_value(loop)
    too_deep = b"\x0a\x01" + bytes(7)  # a list of one
    with pytest.raises(ValueError, match="too deep"):
        _core.decode_value(too_deep * 1001 + b"\0")


def test_nothing_is_allocated_on_a_promise():
    for tag in (9, 10, 11, 7, 8):
        for n in (1, 2**20, 2**31, 2**62, 2**63, 2**64 - 1):
            with pytest.raises(ValueError):
                _core.decode_value(bytes([tag]) + n.to_bytes(8, "little"))
    nested = b"".join(b"\x0a" + (2**16).to_bytes(8, "little") for _ in range(900))
    with pytest.raises(ValueError, match="promises"):
        _core.decode_value(nested + bytes(2**16))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers()
    | st.text() | st.binary() | st.integers(-(2**200), 2**200),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple)
    | st.dictionaries(st.text() | st.integers() | st.tuples(st.text(), st.none()), inner),
    max_leaves=30,
)


@given(plain)
def test_any_plain_value(value):
    assert same(_core.decode_value(_core.encode_value(value)), value)


def quietly_decode(data):
    try:
        _core.decode_value(data)
    except (ValueError, TypeError, OverflowError, UnicodeDecodeError, RecursionError):
        pass


@given(st.binary(max_size=200))
def test_any_bytes(data):
    quietly_decode(data)


def test_damaged_bytes_never_crash():
    """The codec alone, without the checksum that stands before it."""
    rng = random.Random(SEED)
    for value in [*NESTED, *ARRAYS, *SCALARS, ATOMS, [10**50, {"k": ARRAYS[0]}]]:
        data = _core.encode_value(value)
        for n in range(min(len(data), 300)):
            quietly_decode(data[:n])
        with pytest.raises(ValueError):
            _core.decode_value(data + b"\0")
        for _ in range(samples(4000)):
            bad = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                bad[rng.randrange(len(bad))] = rng.choice((0, 1, 7, 127, 255, rng.randrange(256)))
            quietly_decode(bytes(bad))


def test_no_references_are_lost():
    value = [*ATOMS, *NESTED, *ARRAYS, *SCALARS]
    data = _core.encode_value(value)

    def once():
        _core.decode_value(data)
        _core.encode_value(value)
        quietly_decode(data[: len(data) // 2])
        quietly_decode(data[:-1] + b"\xff")
        for bad in REFUSED[:4]:
            with pytest.raises(TypeError):
                _core.encode_value([{"k": [value, bad]}])

    def growth():
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(50):
            once()
        gc.collect()
        return sys.getallocatedblocks() - before

    # CPython's cache of attributes fills at its own pace; a leak is in every round.
    assert min(growth() for _ in range(5)) < 50


# ---- the cache ----------------------------------------------------------------------------------


def test_get_and_put(cache):
    assert cache.get("k") is None and cache.get("k", 7) == 7 and "k" not in cache
    assert cache.put("k", {"v": [1, 2.5]}) is True
    assert cache.get("k") == {"v": [1, 2.5]} and "k" in cache and len(cache) == 1
    assert cache["k"] is not cache["k"]
    cache["none"] = None
    assert cache.get("none", 1) is None
    with pytest.raises(KeyError):
        cache["absent"]
    del cache["k"]
    assert "k" not in cache and not cache.remove("k")
    with pytest.raises(KeyError):
        del cache["k"]
    assert list(cache) == ["none"]
    assert cache.clear() == 1 and len(cache) == 0 and cache.nbytes == 0 and bool(cache)


def test_keys_are_values(cache):
    for k, key in enumerate([1, 1.0, "1", b"1", (1,), [1], {"a": 1}, True, None]):
        cache[key] = k
    assert [cache[k] for k in (1, 1.0, "1", b"1", (1,), [1], {"a": 1}, True, None)] == [*range(9)]


def test_another_process_sees_it(cache):
    cache["k"] = {"v": np.arange(4)}
    code = f"import ingot; print(ingot.FileCache({cache.path!r})['k']['v'].sum())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"


def test_options(tmp_path):
    for bad in ({"max_bytes": 0}, {"max_bytes": -5}, {"max_bytes": 1.5}, {"max_entries": True}):
        with pytest.raises(ValueError, match="positive int or None"):
            ingot.FileCache(tmp_path / "c", **bad)
    with pytest.raises(ValueError, match="codec"):
        ingot.FileCache(tmp_path / "c", codec="json")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="not a directory"):
        ingot.FileCache(tmp_path / "file")
    os.mkdir(tmp_path / "open")
    os.chmod(tmp_path / "open", 0o777)
    with pytest.raises(OSError, match="others may write"):
        ingot.FileCache(tmp_path / "open")
    again = pickle.loads(pickle.dumps(ingot.FileCache(tmp_path / "c", 12345, wait=3)))
    assert again.path == str(tmp_path / "c") and again.wait == 3 and again._max == (12345, None)


def test_a_hit_writes_nothing(cache):
    for k in range(5):
        cache[k] = k
    before = snapshot(cache)
    for _ in range(3):
        assert [cache[k] for k in range(5)] == [*range(5)]
        assert cache.get("absent") is None and "absent" not in cache
        cache.entries(), cache.verify(), cache.stats(), len(cache), cache.nbytes
    assert snapshot(cache) == before


def test_every_truncation_is_a_miss(cache):
    value = {"a": [1, 2.5, "three"], "b": np.arange(20)}
    cache["k"] = value
    (path,) = files(cache)
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        assert cache.get("k", "miss") == "miss"
    assert cache.stats()["bad_entry"] == len(data) == cache.stats()["misses"]
    path.write_bytes(data + b"\0")
    assert cache.get("k", "miss") == "miss"
    path.write_bytes(data)
    assert same(cache["k"], value)


def test_every_bit_flip_is_a_miss(cache):
    """Every bit of a small entry, and 10,000 random ones of larger entries."""
    value = ("small", 1)
    cache["k"] = value
    (path,) = files(cache)
    data = path.read_bytes()
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert cache.get("k", "miss") == "miss"
    assert cache.stats()["bad_entry"] == len(data) * 8
    rng = random.Random(SEED)
    for value in ({"text": "x" * 300, "n": [*range(40)]}, np.arange(1000.0), b"y" * 5000, ATOMS):
        cache["k"] = value
        data = path.read_bytes()
        fd = os.open(path, os.O_RDWR)
        for _ in range(2500):
            at = rng.randrange(len(data))
            os.pwrite(fd, bytes([data[at] ^ 1 << rng.randrange(8)]), at)
            assert cache.get("k", "miss") is not None and cache.get("k", MISS) is MISS
            os.pwrite(fd, data[at : at + 1], at)
        os.close(fd)
        assert same(cache["k"], value)


MISS = object()


def test_a_damaged_entry_is_replaced(cache):
    cache["k"] = 1
    (path,) = files(cache)
    path.write_bytes(b"rubbish")
    assert cache.get("k") is None
    assert cache.get_or_compute("k", lambda: 2) == 2 and cache["k"] == 2


def test_what_is_damaged_is_not_in_the_cache(cache):
    cache["k"] = [1, 2, 3]
    assert "k" in cache
    (path,) = files(cache)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert "k" not in cache and path.exists()
    path.write_bytes(data)
    assert "k" in cache


def test_verify(cache):
    for k in range(6):
        cache[k] = k
    paths = files(cache)
    paths[0].write_bytes(b"rubbish")
    os.chmod(paths[1], 0o666)
    assert cache.verify() == (4, [paths[0].name], [paths[1].name])
    assert cache.verify(remove=True).damaged == [paths[0].name]
    assert not paths[0].exists() and paths[1].exists()
    os.chmod(paths[1], 0o600)
    assert cache.verify() == (5, [], []) and len(cache) == 5


def test_entries(cache):
    before = os.stat(cache.path).st_mtime - 10
    cache["a"], cache["b"] = 1, b"x" * 1000
    found = cache.entries()
    assert sorted(e.digest for e in found) == [p.name for p in files(cache)]
    assert sum(e.nbytes for e in found) == cache.nbytes == sum(
        p.stat().st_size for p in files(cache)
    )
    assert all(before < e.published <= e.used for e in found)


def test_trouble_with_the_disk_deletes_nothing(cache):
    cache["k"] = [1, 2]
    cache._find("0" * 32)  # warm
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = len(os.listdir("/proc/self/fd"))
    try:
        for room in range(taken - 1, taken + 3):
            resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
            assert cache.get("k", "miss") in ("miss", [1, 2])
            cache.put("k", [1, 2])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert cache.stats()["io_errors"] > 0 and cache["k"] == [1, 2]
    os.rename(cache.path, cache.path + "-away")
    assert cache.get("k", "miss") in ("miss", [1, 2])  # its directories may be open still
    assert ingot.FileCache(cache.path).get("k", "miss") == "miss"
    os.rmdir(cache.path)
    os.rename(cache.path + "-away", cache.path)
    assert cache["k"] == [1, 2]


def test_bounds(tmp_path):
    cache = ingot.FileCache(tmp_path / "c", max_bytes=50_000)
    for k in range(100):
        assert cache.put(k, b"x" * 1000) and cache.get(k) is not None
        assert cache.nbytes <= 50_000
    assert cache.stats()["evicted"] >= 50 and 30 <= len(cache) <= 50
    assert cache.put("large", b"x" * 50_000) is False and cache.stats()["too_large"] == 1
    assert cache.evict() == (0, 0)
    few = ingot.FileCache(tmp_path / "c", max_bytes=None, max_entries=10)
    removed, nbytes = few.evict()
    assert removed > 0 and nbytes > 0 and len(few) <= 10


def test_pickle_only_when_asked_for(tmp_path):
    plain = ingot.FileCache(tmp_path / "c")
    with pytest.raises(TypeError, match="pickle"):
        plain["k"] = {1, 2}
    pickled = ingot.FileCache(tmp_path / "c", codec="pickle")
    pickled["k"] = {1, 2}
    assert pickled["k"] == {1, 2}
    assert plain.get("k", "miss") == "miss" and plain.stats()["bad_entry"] == 1
    plain["n"] = 5
    assert pickled["n"] == 5


class Exploding:
    def __reduce__(self):
        return Exploding._fail, ()

    @staticmethod
    def _fail():
        raise RuntimeError("unpickling ran")


def test_what_cannot_be_unpickled_is_a_miss(tmp_path):
    cache = ingot.FileCache(tmp_path / "c", codec="pickle")
    cache["k"] = Exploding()
    assert cache.get("k", "miss") == "miss" and cache.stats()["bad_entry"] == 1


def test_get_or_compute(cache):
    calls = []

    def compute():
        calls.append(1)
        return {"n": len(calls)}

    assert cache.get_or_compute("k", compute) == {"n": 1} == cache.get_or_compute("k", compute)
    assert cache.stats()["hits"] == 1 and cache.stats()["misses"] == 1
    with pytest.raises(ZeroDivisionError):
        cache.get_or_compute("bad", lambda: 1 / 0)
    assert cache.get_or_compute("bad", lambda: 3) == 3
    with pytest.warns(RuntimeWarning, match="cannot store") as seen:
        assert type(cache.get_or_compute("object", object)) is object
        assert type(cache.get_or_compute("object", object)) is object
    assert len(seen) == 1
    assert not list(pathlib.Path(cache.path).rglob("*.lease"))


def test_a_lease_is_given_back_at_once(cache):
    """Not when the last traceback that holds it is dropped."""
    with pytest.raises(ZeroDivisionError) as held:
        cache.get_or_compute("bad", lambda: 1 / 0)
    assert not list(pathlib.Path(cache.path).rglob("*.lease"))
    assert held.value.__traceback__ is not None


def test_threads_share_one_computation(cache):
    calls = []
    gate = threading.Barrier(8)

    def work():
        gate.wait()
        for k in range(20):
            assert cache.get_or_compute(k, lambda k=k: calls.append(k) or k * k) == k * k

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(calls) == [*range(20)]


def test_a_cache_that_cannot_be_written(tmp_path):
    """A directory taken away for good: everything still works, from computation."""
    cache = ingot.FileCache(tmp_path / "c")
    os.rmdir(tmp_path / "c")
    (tmp_path / "c").write_text("in the way")
    assert cache.get("k") is None and cache.put("k", 1) is False
    assert cache.get_or_compute("k", lambda: 5) == 5
    assert cache.entries() == [] and cache.verify() == (0, [], []) and len(cache) == 0
