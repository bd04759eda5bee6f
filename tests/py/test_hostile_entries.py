"""Aliases and indexes that say what they should not, with a right checksum: never a crash, and
the right result. (Whole entries of all kinds, damaged bit by bit: tests/c/test_record.c.)"""

import itertools
import linecache
import random
import shutil

import pytest
from conftest import SEED, samples

import ingot as qd

A = qd.types.ndarray()

# ---- the checksum of entries: XXH3-128 of 17 to 96 and of more than 240 bytes, seed 0 -----

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
MASK = 2**64 - 1
PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63
LANES = (0xC2B2AE3D, PRIMES[0], PRIMES[1], 0x165667B19E3779F9, PRIMES[2], 0x85EBCA77,
         0x27D4EB2F165667C5, 0x9E3779B1)


def word(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def mix16(data, at, secret):
    product = (word(data, at) ^ word(SECRET, secret)) * (word(data, at + 8) ^ word(SECRET, secret + 8))
    return (product & MASK) ^ (product >> 64)


def avalanche(v):
    v = (v ^ v >> 37) * 0x165667919E3779F9 & MASK
    return v ^ v >> 32


def accumulate(acc, data, at, secret):
    for i in range(8):
        value = word(data, at + 8 * i)
        key = value ^ word(SECRET, secret + 8 * i)
        acc[i ^ 1] = (acc[i ^ 1] + value) & MASK
        acc[i] = (acc[i] + (key & 0xFFFFFFFF) * (key >> 32)) & MASK


def merged(acc, start, secret):
    for i in range(0, 8, 2):
        product = (acc[i] ^ word(SECRET, secret + 8 * i)) * (acc[i + 1] ^ word(SECRET, secret + 8 * i + 8))
        start += (product & MASK) ^ (product >> 64)
    return avalanche(start & MASK)


def long_checksum(data):
    n, acc = len(data), list(LANES)
    for at in range(0, (n - 1) // 64 * 64, 64):
        if at and at % 1024 == 0:
            acc = [((v ^ v >> 47 ^ word(SECRET, 128 + 8 * i)) * LANES[7]) & MASK
                   for i, v in enumerate(acc)]
        accumulate(acc, data, at, at % 1024 // 8)
    assert (n - 1) % 1024 >= 64 or n <= 1024
    accumulate(acc, data, n - 64, 192 - 71)
    low = merged(acc, n * PRIMES[0] & MASK, 11)
    high = merged(acc, ~(n * PRIMES[1]) & MASK, 192 - 75)
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def checksum(data):
    n = len(data)
    if n > 240:
        return long_checksum(data)
    assert 17 <= n <= 96
    low, high = n * PRIMES[0] & MASK, 0
    for k in range((n - 1) // 32, -1, -1):
        one, two, secret = 16 * k, n - 16 * (k + 1), 32 * k
        low = (low + mix16(data, one, secret)) & MASK
        low ^= (word(data, two) + word(data, two + 8)) & MASK
        high = (high + mix16(data, two, secret + 16)) & MASK
        high ^= (word(data, one) + word(data, one + 8)) & MASK
    both = (low * PRIMES[0] + high * PRIMES[2] + n * PRIMES[1]) & MASK
    low, high = avalanche(low + high & MASK), -avalanche(both) & MASK
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def sealed(entry, payload):
    """The entry with another payload, its length and checksum put right."""
    head = entry[-64:-32] + len(payload).to_bytes(8, "little")
    return payload + head + checksum(payload + head) + bytes(8)


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
    """An index without the entry of its variant, which stands at its end after its length."""
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
    for payload in payloads(payload if which == "alias" else without_variant(payload)):
        if len(payload) > 56:
            continue
        path.write_bytes(sealed(good, payload))
        assert_right_and_repaired(folder)
        path.write_bytes(good)


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
    folder, _, index = warm
    other = tmp_path / "other"
    launch(other, *OTHERS[name])
    shutil.copytree(other, folder, dirs_exist_ok=True)
    (its,) = entries(other, "x")
    index.write_bytes(sealed(index.read_bytes(), its.read_bytes()[:-64]))
    assert_right_and_repaired(folder)
