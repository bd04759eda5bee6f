"""Entries and packs that are cut short or have changed bits: the kernels run, their results are right, and
what was damaged is a miss with a counter. Readers are tried with far more bytes in tests/fuzz and in tests/c;
here whole starts run from what is left.

Under stress entries are cut at every length. A pack is cut at every length up to 4,096 from its two ends and
at every 16th in between (a sealed one; of 100 kB every 64th), and every bit of its tail is changed."""

import random
import struct

import pytest
from conftest import SEED, STRESS
from fault_tools import entries, fresh, is_warm, shim, with_shim  # noqa: F401
from fault_tools import all_caches as caches, quick_server, quick_server as server  # noqa: F401

TAIL = 128
NEAR = 4096  # of an end


def some(rng, wanted, these):
    """All in stress, else some."""
    these = list(these)
    return these if STRESS else rng.sample(these, min(wanted, len(these)))


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def flips(rng, data, count):
    return [flipped(data, rng.randrange(8 * len(data))) for _ in range(count)]


# ---- entries ----------------------------------------------------------------------------------


def damaged(rng, cache, kinds):
    """(entry, bytes that it is replaced by): cuts at every length, then changed bits."""
    files = entries(cache, kinds)
    for path in files:
        data = path.read_bytes()
        yield from ((path, data[:n]) for n in some(rng, 3, range(len(data))))
    for _ in range(10_000 // len(files) if STRESS else 4):
        yield from ((path, flips(rng, path.read_bytes(), 1)[0]) for path in files)


READ = {"warm": "ai", "unaliased": "x"}  # entries that a start from such a cache reads


@with_shim
@pytest.mark.parametrize("which, kinds", [("warm", "ai"), ("warm", "nvx"), ("unaliased", "x")])
def test_entries_cut_short_and_with_changed_bits(server, caches, which, kinds):
    """Aliases bring the index and the variant of most kernels along, so a hit does not read those."""
    rng = random.Random(SEED)
    cache = fresh(caches, which)
    for path, data in damaged(rng, caches / which, kinds):
        place = cache / path.relative_to(caches / which)
        place.write_bytes(data)
        got = server(cache)
        bad = got["counters"]["store_bad_entry"]
        assert bad > 0 if kinds == READ[which] else bad == 0 and is_warm(got), (path, len(data))
        if which == "unaliased":  # now it has aliases
            cache = fresh(caches, which)
        else:
            place.write_bytes(path.read_bytes())


@with_shim
def test_an_image_in_the_place_of_another(server, caches):
    """As of a higher level of instructions: the name alone does not make it right."""
    cache = fresh(caches, "warm")
    one, two = entries(cache, "i")[:2]
    two.write_bytes(one.read_bytes())
    got = server(cache)
    assert got["counters"]["store_bad_entry"] and got["counters"]["image_compiles"] == 1


# ---- packs ------------------------------------------------------------------------------------


def lengths(size, stride):
    return sorted({*range(min(NEAR, size)), *range(max(size - NEAR, 0), size), *range(0, size, stride)})


def damaged_packs(rng, data, stride):
    yield from (data[:n] for n in some(rng, 12, lengths(len(data), stride)))
    end = 8 * (len(data) - TAIL)
    yield from (flipped(data, end + bit) for bit in some(rng, 12, range(8 * TAIL)))
    yield from flips(rng, data, 10_000 if STRESS else 30)


def index_of(data):
    """Where the records of a pack begin, and how many bytes they and the times of directories take."""
    n, at, fans = struct.unpack_from("<12xI16xQI", data, len(data) - TAIL)
    return at, 48 * n + 8 * fans


@with_shim
def test_a_damaged_pack_beside_its_files(server, caches):
    """The cache that is written has all in files too: nothing is ever compiled again."""
    rng = random.Random(SEED)
    cache = fresh(caches, "packed")
    pack = cache / "ingot.pack"
    data = pack.read_bytes()
    assert server(cache)["counters"]["pack_hits"] > 0
    at, size = index_of(data)
    before = {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p != pack}
    for bad in damaged_packs(rng, data, 64):
        pack.write_bytes(bad)
        got = server(cache)
        assert is_warm(got) and not got["warnings"]
        whole = len(bad) == len(data)
        spoilt = not whole or bad[at:at + size] != data[at:at + size] or bad[-TAIL:] != data[-TAIL:]
        assert got["counters"]["store_bad_entry"] == 1 and not got["counters"]["pack_hits"] if spoilt else whole
    assert before == {p: p.stat().st_mtime_ns for p in cache.rglob("*") if p != pack}  # a hit writes nothing


@with_shim
def test_a_damaged_pack_that_is_all_there_is(server, caches):
    """A sealed layer alone: what cannot be believed is compiled, in memory."""
    rng = random.Random(SEED)
    cache = fresh(caches, "layers") / "site"
    alone = {"env": {"INGOT_CACHE_PATH": str(cache)}}
    pack = cache / "ingot.pack"
    data = pack.read_bytes()
    assert is_warm(server(cache, **alone))
    cache.chmod(0o755)
    pack.chmod(0o644)
    warm = 0
    for bad in damaged_packs(rng, data, 16):
        pack.write_bytes(bad)
        got = server(cache, **alone)
        warm += is_warm(got)
        assert is_warm(got) or got["counters"]["store_bad_entry"] > 0
        assert len(bad) == len(data) or not is_warm(got)
        assert got["counters"]["store_published"] == 0 and len(list(cache.iterdir())) == 2
    assert warm  # some bits mean nothing to a start: padding, symbols
