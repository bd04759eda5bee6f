"""FileCache as a mapping: keys, labels, pop and setdefault; what is shared in values; records."""

import dataclasses
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from conftest import SEED, samples
from entry_bytes import sealed

from ingot import CachedStep, FileCache, _core
from ingot._filecache import Label


@pytest.fixture
def cache(tmp_path):
    return FileCache(tmp_path / "c")


@dataclasses.dataclass
class Config:
    n: int


def square(x):
    return x * x


# ---- keys -----------------------------------------------------------------------------------------


KEYS = ["a", 1, 1.5, None, True, b"x", ("a", 1), [1, 2], {"k": [1]}, "", "añ\ud800", 10**30]


def test_keys(cache):
    for k, key in enumerate(KEYS):
        cache[key] = k
    assert list(cache) == list(cache.keys()) == KEYS and len(cache.keys()) == len(KEYS)
    assert list(cache.values()) == [*range(len(KEYS))]
    assert list(cache.items()) == [(key, k) for k, key in enumerate(KEYS)]
    assert all(cache[key] == k for k, key in enumerate(cache))
    assert KEYS[-2] in cache.keys() and "b" not in cache.keys()
    cache["a"] = "again"  # now the newest
    assert list(cache) == [*KEYS[1:], "a"]
    again = FileCache(cache.path)
    assert list(again) == list(cache) and list(FileCache(cache.path, codec="pickle")) == list(cache)


def test_labels_of_other_keys(cache):
    keys = [Config(1), Config(2), "x" * 5000, [*range(2000)], np.arange(10_000)]
    for k, key in enumerate(keys):
        cache[key] = k
    step = CachedStep(square, cache)
    assert step(5) == 25
    found = list(cache)
    assert all(type(k) is Label and len(k) < 600 for k in found) and len(found) == 6
    assert found[0] == "Config(n=1)" and found[5] == f"{__name__}.square"
    assert [cache[k] for k in found] == [0, 1, 2, 3, 4, 25]  # a label is as good as the key
    assert found[0] in cache and cache.pop(found[0]) == 0 and Config(1) not in cache
    del cache[found[5]]
    assert len(cache) == 4 and "Config(n=2)" not in cache  # its text alone is another key


def test_labels_are_checked(cache):
    cache["key"] = [1, 2, 3]
    (path,) = [p for p in pathlib.Path(cache.path).rglob("*") if len(p.name) == 32]
    data = path.read_bytes()
    for bit in range(40 * 8):
        bad = bytearray(data)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        assert list(cache) in ([], ["key"]) and "key" not in cache and cache.get("key") is None
    for n in range(len(data)):
        path.write_bytes(data[:n])
        assert list(cache) in ([], ["key"]) and "key" not in cache
    path.write_bytes(data)
    assert list(cache) == ["key"] and cache["key"] == [1, 2, 3]


def test_in_and_item_agree(tmp_path):
    plain, pickled = FileCache(tmp_path / "c"), FileCache(tmp_path / "c", codec="pickle")
    pickled["set"], pickled["list"], plain["n"] = {1}, [1], 5
    pickled["gone"] = Gone()
    del globals()["Gone"]
    for cache in (plain, pickled):
        for key in ("set", "list", "n", "gone", "absent"):
            try:
                cache[key]
                there = True
            except KeyError:
                there = False
            assert (key in cache) is there and (cache.get(key, cache) is not cache) is there
    assert list(plain) == ["n"] and sorted(pickled) == ["gone", "list", "n", "set"]
    assert dict(plain.items()) == {"n": 5} and sorted(k for k, _ in pickled.items()) == ["list", "n", "set"]


class Gone:
    pass


def test_entries_of_another_format_are_misses(cache):
    """As those of the first format, which had no head."""
    cache["k"] = 1
    (entry,) = cache.entries()
    digest = entry.digest
    payload = b"V\x03" + (5).to_bytes(8, "little")
    path = pathlib.Path(cache.path) / "d" / digest[:2] / digest
    old = path.read_bytes()
    path.write_bytes(sealed(old, payload))
    assert cache.get("k", "miss") == "miss" and "k" not in cache and list(cache) == []
    assert cache.stats()["bad_entry"] >= 1 and cache.verify().good == 1
    cache["k"] = 2
    assert cache["k"] == 2 and len(path.read_bytes()) == len(old)


# ---- pop, setdefault and the rest --------------------------------------------------------------------


def test_pop(cache):
    cache["a"], cache["b"] = 1, None
    assert cache.pop("a") == 1 and "a" not in cache and cache.pop("b", 5) is None
    with pytest.raises(KeyError):
        cache.pop("a")
    assert cache.pop("a", None) is None and len(cache) == 0
    cache["x"] = 1
    assert cache.popitem() == ("x", 1) and len(cache) == 0
    cache.update({"p": 1, "q": 2}, r=3)
    assert dict(cache) == {"p": 1, "q": 2, "r": 3} and cache.clear() == 3
    assert cache != {} and cache == cache and hash(cache) == hash(cache)


def test_one_gets_what_is_popped(cache):
    for _ in range(max(5, samples(100))):
        cache["k"] = 1
        got, gate = [], threading.Barrier(4)

        def take():
            gate.wait()
            got.append(cache.pop("k", None))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(got, key=str) == [1, None, None, None]


def test_setdefault(cache):
    assert cache.setdefault("a", 1) == 1 and cache.setdefault("a", 2) == 1 and cache["a"] == 1
    assert cache.setdefault("none") is None and "none" in cache
    with pytest.raises(TypeError, match="cannot store"):
        cache.setdefault("b", object())
    results, gate = [], threading.Barrier(4)

    def work(k):
        gate.wait()
        results.append(cache.setdefault("k", k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(results)) == 1 and cache["k"] == results[0]


# ---- what is shared -----------------------------------------------------------------------------------


def again(value):
    return _core.decode_value(_core.encode_value(value))


def test_shared_parts_are_stored_once():
    value = ["leaf" * 100]
    for _ in range(900):  # 2**900 if it were written out
        value = [value, value]
    data = _core.encode_value(value)
    assert len(data) < 40_000
    got, depth = _core.decode_value(data), 0
    while len(got) == 2:
        assert got[0] is got[1]
        got, depth = got[0], depth + 1
    assert depth == 900 and got == ["leaf" * 100]


def test_sharing_is_kept():
    a, text, raw, array = [1], "t" * 100, b"r" * 100, np.arange(100)
    value = {"a": a, "b": (a, [a]), "t": [text, text], "r": [raw, raw], "n": [array, (array,)],
             "e": [[]] * 2, "d": [{}] * 2, "x": [(1, 2)] * 2}
    got = again(value)
    assert got["a"] is got["b"][0] is got["b"][1][0] and got["t"][0] is got["t"][1]
    assert got["r"][0] is got["r"][1] and got["n"][0] is got["n"][1][0]
    assert got["e"][0] is got["e"][1] and got["d"][0] is got["d"][1] and got["x"][0] is got["x"][1]
    got["a"].append(2)
    assert got["b"][1][0] == [1, 2]
    assert len(_core.encode_value([array] * 1000)) < 12_000
    apart = again([[1], [1]])
    assert apart[0] is not apart[1]


def test_tuples_in_keys():
    """Keys are hashed when they are read, in a time that their bytes pay for."""
    key = ("leaf",)
    for _ in range(8):
        key = (key, key)
    value = {key: key, (key, 1): [key], "l": [{key: 1}, {key: 2}]}
    assert again(value) == value
    one = b"\x89" + (1).to_bytes(8, "little") + b"\0"  # a tuple that is kept
    same = b"\x0d" + (0).to_bytes(8, "little")
    pair = b"\x0a" + (2).to_bytes(8, "little")  # a list
    a_dict = b"\x0b" + (1).to_bytes(8, "little")
    assert _core.decode_value(pair + one + same) == [(None,), (None,)]
    with pytest.raises(ValueError, match="a key that refers to a tuple"):
        _core.decode_value(pair + one + a_dict + same + b"\0")
    for number in (1, 2**32, 2**64 - 1):
        with pytest.raises(ValueError, match="refers to nothing"):
            _core.decode_value(pair + one + b"\x0d" + number.to_bytes(8, "little"))
    with pytest.raises(ValueError, match="refers to nothing"):  # itself, not whole yet
        _core.decode_value(b"\x8a" + (1).to_bytes(8, "little") + same)


def test_what_contains_itself_is_refused():
    loop, table = [1], {}
    loop.append((loop,))
    table["k"] = [table]
    for value in (loop, table, [loop]):
        with pytest.raises(ValueError, match="contains itself"):
            _core.encode_value(value)


def test_strings_of_any_width():
    for text in ("", "a", "é", "€", "\U0001f600", "\ud800", "a" * 5000, "é" * 70_000, "€" * 70_000,
                 "\U0001f600" * 70_000, "\0" * 3):
        got = again([text, {text: 1}])
        assert got == [text, {text: 1}] and hash(got[0]) == hash(text) and got[0].isascii() is text.isascii()

    def coded(width, n, data):
        return b"\x07" + bytes([width]) + n.to_bytes(8, "little") + data

    assert _core.decode_value(coded(0, 1, b"a")) == "a"
    for bad in (coded(0, 1, b"\xe9"), coded(1, 1, b"a"), coded(2, 1, b"a\0"), coded(4, 1, b"a\0\0\0"),
                coded(4, 1, b"\0\0\x11\0"), coded(4, 1, b"\xff" * 4), coded(3, 1, b"abc"), coded(9, 1, b"a" * 9),
                coded(1, 0, b""), coded(2, 2**62, b""), coded(4, 2**62, b"")):
        with pytest.raises(ValueError):
            _core.decode_value(bad)


# ---- NumPy --------------------------------------------------------------------------------------------


RECORDS = [
    np.dtype([("a", "i4"), ("b", "f8")]),
    np.dtype([("a", "i4"), ("b", "f8")], align=True),
    np.dtype([("x", "f4", (3, 2)), ("t", "M8[us]"), ("s", "U5"), ("r", [("p", "i1"), ("q", ">u2")])]),
    np.dtype({"names": ["a", "b"], "formats": ["u1", "u2"], "offsets": [5, 1], "itemsize": 12}),
    np.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 0]}),
    np.dtype([(("title", "a"), "i4"), ("ñ", "S3")]),
    np.dtype([]),
    np.dtype("V7"),
    np.dtype("longdouble"),
    np.dtype("clongdouble"),
    np.dtype("longdouble").newbyteorder(),
    np.dtype([("w", "longdouble")]),
]


def filled(dtype, shape):
    """Random bytes, so that no part can be taken for another; padding is nobody's."""
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    a = np.zeros(shape, dtype)
    if dtype.names is None and dtype.kind in "fc":
        a[...] = np.random.default_rng(3).random(shape)
        return a
    raw = random.Random(SEED).randbytes(a.nbytes)
    if "U" in str(dtype) or "M8" in str(dtype) or "f" in str(dtype):
        for k, one in enumerate(a.reshape(-1)):
            one["x" if "x" in dtype.names else dtype.names[0]] = k
        return a
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


@pytest.mark.parametrize("dtype", RECORDS, ids=str)
def test_records_and_other_dtypes(dtype):
    for value in (filled(dtype, (4, 3)), filled(dtype, (4, 3)).T, filled(dtype, (8, 3))[::2, 1:], filled(dtype, (0, 2)),
                  filled(dtype, ())):
        got = again([value, value])
        assert got[0] is got[1] and got[0].dtype == value.dtype and got[0].shape == value.shape
        assert got[0].dtype.isalignedstruct == dtype.isalignedstruct
        assert got[0].dtype.fields == dtype.fields and got[0].flags.writeable
        assert repr(got[0]) == repr(value)
    if dtype.itemsize and dtype.newbyteorder("=") == dtype:
        scalar = filled(dtype, (2,))[1]
        got = again({"k": scalar})["k"]
        assert type(got) is type(scalar) and repr(got) == repr(scalar)


def test_arrays_with_gaps():
    rng = np.random.default_rng(SEED)
    base = rng.random((6, 5, 4, 3))
    views = [base[::2], base[:, ::-1], base.transpose(2, 0, 3, 1), base[..., 1], base[::-1, ::-1, ::-1, ::-1],
             np.broadcast_to(base[0], (3, 5, 4, 3)), np.broadcast_to(np.float64(2), (7, 3)), base[:0, ::2]]
    views.append(np.zeros((400_000, 3))[:, 1])  # more than a block
    for value in views:
        got = again(value)
        assert got.shape == value.shape and (got == value).all() and got.flags.c_contiguous or got.flags.fnc


REFUSED = [
    np.zeros(2, np.dtype([("a", object)])), np.rec.array([(1, 2)], dtype=[("a", int), ("b", int)]),
    np.zeros(2, np.dtype("i4", metadata={"k": 1})), np.zeros(2, np.dtype([("a", np.dtype("f8", metadata={"k": 1}))])),
    np.zeros(2, np.dtype((np.record, [("a", "i4")]))), np.ma.array([1]),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda v: f"{type(v).__name__}-{v.dtype}")
def test_what_would_lose_something_is_refused(value):
    with pytest.raises(TypeError, match="cannot store"):
        _core.encode_value(value)


def test_dtypes_of_others_are_refused():
    """Of one that somebody registered: its text would mean another."""
    pytest.importorskip("ml_dtypes")
    import ml_dtypes

    with pytest.raises(TypeError, match="cannot store"):
        _core.encode_value(np.zeros(2, ml_dtypes.bfloat16))


def quietly(call, *args):
    try:
        call(*args)
    except (ValueError, TypeError, OverflowError, KeyError, RecursionError, MemoryError):
        pass


def test_damaged_records_never_crash():
    rng = random.Random(SEED)
    shared = [np.arange(3)] * 2
    for value in [filled(d, (2,)) for d in RECORDS] + [[shared, shared], {("k", "x" * 70): ["x" * 70]}]:
        data = _core.encode_value(value)
        for _ in range(samples(20_000)):
            bad = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                bad[rng.randrange(len(bad))] = rng.choice((0, 1, 7, 9, 10, 11, 13, 127, 128, 255, rng.randrange(256)))
            quietly(_core.decode_value, bytes(bad))


def test_forged_dtypes():
    from ingot import _dtypes

    for data in ["O", "|O8", "<i4,<i4", "i4", ("record", 8, False, (("a", None, 0, "|O8"),)), ("array", "<i4", (-1,)),
                 ("array", "<i4", (2**40,)), ("record", -1, False, ()), ("record", 8, 1, ()), ("wide", "<f8", 52),
                 ("wide", "<f16", 1), "<f16", ("record", 4, False, (("a", None, 2, "<i4"),)),
                 ("record", 8, False, (("a", 5, 0, "<i4"),)), None, 5, (), ["<i4"], ("array", "<i4", [2]),
                 "<M8[(1, 2)]", "<U99999999999999"]:
        with pytest.raises((ValueError, TypeError)):
            _dtypes.rebuild(data)
    deep = "<i4"
    for _ in range(40):
        deep = ("array", deep, (1,))
    with pytest.raises(ValueError, match="too deep"):
        _dtypes.rebuild(deep)


# ---- pickle --------------------------------------------------------------------------------------------


def test_pickled_values(tmp_path):
    cache = FileCache(tmp_path / "c", codec="pickle")
    array = np.arange(100_000.0)
    values = [{1, 2}, array, [array, array[::2], array.reshape(-1, 2).T], b"x" * 200_000, {"a": Config(3)}, None,
              bytearray(b"y" * 70_000), [np.zeros(0), np.float32(1)]]
    for k, value in enumerate(values):
        cache[k] = value
    for k, value in enumerate(values):
        assert repr(cache[k]) == repr(value)
    assert (cache[1] == array).all() and cache[1].flags.writeable and (cache[2][2] == values[2][2]).all()
    cache["shared"] = [array, array]
    shared = cache["shared"]
    assert shared[0] is shared[1]


def test_an_entry_file_is_good_for_one_call(tmp_path):
    kept = []

    class Keeps:
        def __reduce__(self):
            return bytes, ()

    cache = FileCache(tmp_path / "c", codec="pickle")
    inner = cache._dump

    def dump(value, file):
        kept.append(file)
        inner(value, file)

    cache._dump = dump
    cache["k"] = Keeps()
    for call in (lambda: kept[0].write(b"x"), lambda: kept[0].read(1), lambda: kept[0].readline(), kept[0].tell):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(TypeError):
        type(kept[0])()


PROGRAM = """
    import sys, ingot
    cache = ingot.FileCache(sys.argv[1])
    print(sorted(cache), cache["b"]["x"] is cache["b"]["y"], [*cache["b"].values()][0] is None)
    b = cache["b"]
    print(b["x"] is b["y"], b["x"])
"""


def test_another_process_reads_it(cache):
    part = ["p"]
    cache["a"], cache["b"] = 1, {"x": part, "y": part}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), cache.path], capture_output=True, text=True,
                          env={**os.environ, "PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['a', 'b'] False False\nTrue ['p']\n"
