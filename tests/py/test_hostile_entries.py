"""Aliases and indexes that say what they should not, with a right checksum: never a crash, and
the right result. (Whole entries of all kinds, damaged bit by bit: tests/c/test_record.c.)"""

import itertools
import linecache
import random
import shutil

import pytest
from conftest import SEED, samples
from entry_bytes import sealed

import ingot as qd

A = qd.types.ndarray()

# ---- programs --------------------------------------------------------------------------------

NUMBERS = itertools.count()


def make(text):
    """A kernel from text, as a notebook cell makes it."""
    file = f"<entry {next(NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"A": A, "qd": qd}
    exec(compile(text, file, "exec"), scope)
    return qd.kernel(scope["k"])


TEXT = "def k(a: A, s: qd.f32):\n    for i in range(a.shape[0]):\n        a[i] = i * s\n"
OTHERS = {
    "no parameters": ("def k():\n    for i in range(3):\n        pass\n", ()),
    "fewer": ("def k(a: A):\n    for i in range(a.shape[0]):\n        a[i] = 7\n", ("a",)),
    "more": ("def k(a: A, s: qd.f32, t: qd.f32, u: A):\n    for i in range(1):\n"
             "        u[i] = s + t\n", ("a", 1.0, 2.0, "a")),
    "other types": ("def k(s: qd.i32, a: A):\n    for i in range(1):\n        a[i] = s\n",
                    (1, "a")),
    "a template": ("def k(a: A, s: qd.template()):\n    for i in range(1):\n        a[i] = s\n",
                   ("a", 4)),
}


def launch(folder, text, args):
    qd.init(offline_cache_file_path=str(folder))
    a = qd.ndarray(qd.f32, 4)
    a.fill(-1)
    make(text)(*(a if v == "a" else v for v in args))
    return a[3]


def without_variant(payload):
    """An index without the entry of its variant, which stands at its end after its length.
    What a variant's entry may say is for tests/c/test_record.c."""
    at = next(n for n in range(8, len(payload))
              if int.from_bytes(payload[n:n + 4], "little") == len(payload) - n - 4)
    return payload[:at] + bytes(4)


def entries(folder, kind):
    return sorted(p for p in (folder / kind).rglob("*/*") if p.is_file())


def assert_right_and_repaired(folder):
    for _ in range(2):
        assert launch(folder, TEXT, ("a", 0.5)) == 1.5


@pytest.fixture
def warm(tmp_path):
    folder = tmp_path / "cache"
    assert launch(folder, TEXT, ("a", 0.5)) == 1.5
    (alias,), (index,) = entries(folder, "a"), entries(folder, "x")
    yield folder, alias, index
    qd.init()


def test_the_checksum_is_right(warm):
    _, alias, index = warm
    for path in (alias, index):
        data = path.read_bytes()
        assert sealed(data, data[:-64]) == data


def payloads(good):
    rng = random.Random(SEED)
    yield from (good[:n] for n in (0, 1, 7, 8, 15))
    yield from (good + bytes(n) for n in (1, 8, 16))
    yield from (bytes(16), b"\xff" * 16, good[8:] + good[:8], bytes(40))
    for _ in range(samples(200)):
        yield bytes(rng.randrange(256) for _ in range(rng.randrange(0, 40)))
    for _ in range(samples(400)):
        at, bit = rng.randrange(len(good)), rng.randrange(8)
        yield good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:]


@pytest.mark.parametrize("which", ["alias", "index"])
def test_payloads_that_mean_nothing(warm, which):
    folder, alias, index = warm
    path = alias if which == "alias" else index
    good = path.read_bytes()
    payload = good[:-64]
    for payload in payloads(payload[:16] if which == "alias" else without_variant(payload)):
        if len(payload) > 56:
            continue
        path.write_bytes(sealed(good, payload))
        assert_right_and_repaired(folder)
        path.write_bytes(good)


@pytest.mark.counts("lowerings")
def test_an_alias_whose_hint_means_nothing(warm):
    """After the tree: the address, and an index. Without one, or with another's, the real one
    is read."""
    folder, alias, index = warm
    good = alias.read_bytes()
    payload = good[:-64]
    assert payload[32:] == index.read_bytes()[:-64]
    for hint in (b"", payload[16:32], bytes(len(payload) - 16), payload[16:24], payload[16:-1],
                 bytes(16) + payload[32:], payload[16:32] + without_variant(payload[32:]),
                 payload[16:] + b"\0"):
        data = payload[:16] + hint
        if 96 - 40 < len(data) <= 240 - 40:
            continue  # the checksum above is not for these
        alias.write_bytes(sealed(good, data))
        before = qd._core.counters()
        assert_right_and_repaired(folder)
        after = qd._core.counters()
        assert after["lowerings"] == before["lowerings"]
        alias.write_bytes(good)


@pytest.mark.parametrize("name", OTHERS)
def test_an_alias_of_another_kernel(warm, tmp_path, name):
    """Its tree is that of a kernel with other parameters, all of whose entries are there."""
    folder, alias, _ = warm
    other = tmp_path / "other"
    launch(other, *OTHERS[name])
    shutil.copytree(other, folder, dirs_exist_ok=True)
    (its,) = entries(other, "a")
    alias.write_bytes(sealed(alias.read_bytes(), its.read_bytes()[:-64]))
    assert_right_and_repaired(folder)


@pytest.mark.parametrize("name", OTHERS)
def test_an_index_that_names_another_variant(warm, tmp_path, name):
    """The leaf is a hint: a trace that does not hold is a miss."""
    folder, alias, index = warm
    other = tmp_path / "other"
    launch(other, *OTHERS[name])
    shutil.copytree(other, folder, dirs_exist_ok=True)
    (its,) = entries(other, "x")
    index.write_bytes(sealed(index.read_bytes(), its.read_bytes()[:-64]))
    good = alias.read_bytes()
    for hint in b"", good[16:32] + its.read_bytes()[:-64]:  # the index, and that of the alias
        alias.write_bytes(sealed(good, good[:16] + hint))
        assert_right_and_repaired(folder)


TEMPLATE = "def k(a: A, t: qd.template()):\n    for i in range(1):\n        a[3] = t\n"


def test_an_index_whose_leaves_are_exchanged(tmp_path):
    """Each names a variant of this kernel, whose trace begins with another answer."""
    folder = tmp_path / "cache"
    for t in (4, 5):
        assert launch(folder, TEMPLATE, ("a", t)) == t
    (index,) = entries(folder, "x")
    one, other = (bytes.fromhex(path.name)[::-1] for path in entries(folder, "v"))
    good = index.read_bytes()
    payload = good[:-64]
    assert payload.count(one) == payload.count(other) == 1
    payload = payload.replace(one, b"?" * 16).replace(other, one).replace(b"?" * 16, other)
    index.write_bytes(sealed(good, payload))
    for t in (5, 4, 5, 4):
        assert launch(folder, TEMPLATE, ("a", t)) == t
    qd.init()


# ---- variants that say something else about results -----------------------------------------------

RETURNS = "def k(a: A, s: qd.f32) -> qd.f32:\n    for i in range(a.shape[0]):\n        a[i] = i * s\n    return s\n"


def results_at(record):
    """Where a variant has: u8 returns tuple, u8 overlap, u8 sized, u32 rules, u8 flush denormals,
    u8 draws, 16 bytes digest; where behind that: u32 results, u8 dtype of each, u32 binds."""
    (at,) = [at for at in range(len(record) - 34)
             if record[at:at + 9] == bytes(7) + b"\1\0"
             and record[at + 25:at + 29] == b"\1\0\0\0" and record[at + 30:at + 34] == b"\2\0\0\0"]
    return at, at + 25


def with_record(index, record, other):
    """The payload of an index whose copy of the variant is another one."""
    at = index.index(len(record).to_bytes(4, "little") + record)
    assert at + 4 + len(record) == len(index)
    return index[:at] + len(other).to_bytes(4, "little") + other


def with_results(record, n, of=None):
    """Another number of results."""
    at = results_at(record)[1]
    return record[:at] + n.to_bytes(4, "little") + (of or record[at + 4:at + 5] * n) + record[at + 5:]


def with_tuple(record):
    at = results_at(record)[0]
    return record[:at] + b"\1" + record[at + 1:]


def with_argument(record):
    """Its first bind, an array (u8 each: kind, dtype, written, reads), is of an eighth parameter."""
    at = results_at(record)[1] + 9
    assert record[at:at + 8] == record[at:at + 4] + bytes(4) and record[at] == 1
    return record[:at + 4] + b"\7\0\0\0" + record[at + 8:]


CHANGES = {
    "of a parameter that is not there": with_argument,
    "none": lambda r: with_results(r, 0),
    "two": lambda r: with_results(r, 2),
    "a thousand": lambda r: with_results(r, 1000),
    "a tuple": with_tuple,
    "of no type": lambda r: with_results(r, 1, b"\0"),
}


def result(folder):
    qd.init(offline_cache_file_path=str(folder))
    a = qd.ndarray(qd.f32, 4)
    return make(RETURNS)(a, 0.5), a[3], qd._core.counters()["kernel_disk_hits"]


@pytest.mark.counts("a forged entry, which is an error there")
@pytest.mark.parametrize("name", CHANGES)
def test_a_variant_with_other_results(tmp_path, name):
    """Results are read as the annotation says: a variant that returns something else is none."""
    folder = tmp_path / "cache"
    assert result(folder)[:2] == (0.5, 1.5)
    hits = result(folder)[2]
    assert result(folder)[2] == hits + 1
    (alias,), (index,), (variant,) = (entries(folder, kind) for kind in "axv")
    told, good, record = alias.read_bytes(), index.read_bytes(), variant.read_bytes()
    other = CHANGES[name](record[:-64])
    index.write_bytes(sealed(good, with_record(good[:-64], record[:-64], other)))
    alias.write_bytes(sealed(told, with_record(told[:-64], record[:-64], other)))
    variant.write_bytes(sealed(record, other))
    hits = result(folder)
    assert hits[:2] == (0.5, 1.5)
    assert result(folder) == (0.5, 1.5, hits[2] + 1)  # repaired
    qd.init()
