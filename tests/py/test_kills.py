"""Processes that are killed at any moment, leases of processes and machines that are gone: the next start
works, and at most what was in flight is made again."""

import os
import random
import threading
import time

import pytest
from conftest import SEED, STRESS
from entry_bytes import lease
from fault_tools import IMAGES, caches, entries, fresh, is_warm, server, shim, with_shim  # noqa: F401


def leftovers(cache):
    return [p for p in cache.rglob("*") if p.suffix in (".tmp", ".lease")]


# ---- killed -----------------------------------------------------------------------------------


@with_shim
def test_killed_at_any_moment(server, caches):
    """Between the first look at the directory and the last rename; every other time on top of what
    an earlier one has left."""
    rng = random.Random(SEED)
    begin = time.monotonic()
    server(fresh(caches, "empty"))
    whole = time.monotonic() - begin
    killed = 0
    for n in range(1000 if STRESS else 10):
        cache = fresh(caches, "empty") if n % 2 == 0 else caches / "cache"
        killed += "killed" in server(cache, kill=rng.random() * whole * 0.9)
        there = len(entries(cache, "i"))
        after = server(cache)
        counters = after["counters"]
        assert (counters["store_bad_entry"], counters["store_foreign"], after["warnings"]) == (0, 0, [])
        assert counters["image_compiles"] == IMAGES - there, "more than what was in flight was lost"
        assert counters["image_waits"] == 0, "somebody waited for the dead"
        assert len(leftovers(cache)) <= 4
        assert is_warm(server(cache))
    assert killed


@with_shim
def test_what_the_killed_left_is_swept(server, caches):
    """Temporary files and leases, once they are old, by the next sweep."""
    cache = fresh(caches, "warm")
    image = entries(cache, "i")[0]
    old = [image.with_name(image.name + ".0123456789abcdef.tmp"), image.with_name("0" * 32 + ".lease")]
    for path in old:
        path.write_bytes(b"half of someth")
        os.utime(path, (1, 1))
    new = image.with_name(image.name + ".fedcba9876543210.tmp")
    new.write_bytes(b"somebody is at it")
    bounds = {"INGOT_OFFLINE_CACHE_MAX_ENTRIES": "3"}
    for path in entries(cache, "xi"):
        path.unlink()  # so that something is published, which goes past the bounds
    server(cache, env=bounds)
    assert not [p for p in old if p.exists()] and new.exists()


# ---- leases of others ---------------------------------------------------------------------------

SECOND = 10**9
ELSEWHERE = {"boot": b"b" * 16, "host": b"h" * 16}


def now():
    return int(time.time() * SECOND)


def forged(cache, data):
    """Every image is gone, and somebody says that he makes it."""
    images = entries(cache, "i")
    for path in images:
        path.unlink()
        held = path.with_name(path.name + ".lease")
        held.write_bytes(data)
        held.chmod(0o600)
    for path in entries(cache, "x"):
        path.unlink()
    return len(images)


@with_shim
@pytest.mark.parametrize("left", [-3600, -60])
def test_a_lease_of_another_machine_that_is_over(server, caches, left):
    cache = fresh(caches, "warm")
    n = forged(cache, lease(1, **ELSEWHERE, end_real=now() + left * SECOND))
    got = server(cache)["counters"]
    assert (got["leases_healed"], got["image_waits"], got["image_compiles"]) == (n, 0, n)
    assert not leftovers(cache)


@with_shim
@pytest.mark.parametrize("left", [55, 86_400 * 365])
def test_a_lease_of_another_machine_that_never_ends(server, caches, left):
    """It died, or its clock is a year ahead: a minute later whoever waits makes it himself, and
    publishes it."""
    cache = fresh(caches, "warm")
    n = forged(cache, lease(1, **ELSEWHERE, end_real=now() + left * SECOND))
    got = server(cache, hurry=True)["counters"]
    assert got["image_waits"] >= 1 and got["image_compiles"] == n
    assert is_warm(server(cache))


@with_shim
def test_another_machine_makes_it(server, caches):
    """Who waits takes what the other one publishes."""
    cache = fresh(caches, "warm")
    images = {p: p.read_bytes() for p in entries(cache, "i")}
    forged(cache, lease(1, **ELSEWHERE, end_real=now() + 3600 * SECOND))

    def publish():
        time.sleep(0.3)
        for path, data in images.items():
            path.with_name("new").write_bytes(data)
            path.with_name("new").chmod(0o600)
            path.with_name("new").rename(path)
            path.with_name(path.name + ".lease").unlink()

    other = threading.Thread(target=publish)
    other.start()
    got = server(cache)["counters"]
    other.join()
    assert got["image_waits"] >= 1 and got["image_compiles"] == 0 and got["image_disk_hits"] == len(images)


@with_shim
@pytest.mark.parametrize("data", [
    b"", b"INGLEASE", bytes(128), lease(0), lease(2**31), lease(1, end_boot=2**64, end_real=2**64)[:127] + b"?"])
def test_leases_that_say_nothing(server, caches, data):
    """Damaged, and older than a write takes."""
    cache = fresh(caches, "warm")
    n = forged(cache, data)
    for path in leftovers(cache):
        os.utime(path, (10**9, 10**9))
    got = server(cache)["counters"]
    assert (got["image_waits"], got["image_compiles"], got["leases_healed"]) == (0, n, n)
