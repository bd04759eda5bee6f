"""Threads, tasks of several loops, and a clock that went back, with one FileCache: each result is made
once, and everybody gets it. (Full disks and directories that cannot be written: test_filecache_hostile.py.)"""

import asyncio
import concurrent.futures
import os
import pathlib
import time

import numpy as np
import pytest

from ingot import CachedStep, FileCache


class Notes:
    """What a step writes down, which is no part of it."""

    def __init__(self):
        self.calls = []

    def __reduce__(self):
        return Notes, ()


_notes = Notes()


def squares(n):
    _notes.calls.append(n)
    return np.arange(n) ** 2


async def squares_later(n):
    _notes.calls.append(n)
    await asyncio.sleep(0.02)
    return np.arange(n) ** 2


@pytest.fixture(autouse=True)
def calls():
    _notes.calls.clear()
    return _notes.calls


def test_a_clock_that_went_back(tmp_path):
    """Entries of the future are as good as any, and go when the bound says so."""
    cache = FileCache(tmp_path / "c", max_bytes=100_000)
    for k in range(5):
        cache[k] = bytes(10_000)
    later = time.time() + 10 * 365 * 86400
    for path in pathlib.Path(cache.path).rglob("*"):
        if path.is_file():
            os.utime(path, (later, later))
    again = FileCache(tmp_path / "c", max_bytes=100_000)
    assert all(again[k] == bytes(10_000) for k in range(5)) and len(again) == 5
    assert again.get_or_compute("made", lambda: 3) == 3 and again["made"] == 3
    for k in range(10, 40):
        assert again.put(k, bytes([k]) * 10_000) and again[k] == bytes([k]) * 10_000
        assert again.nbytes <= 100_000
    again.evict()
    assert (len(again), again.nbytes) == (len(again.entries()), sum(e.nbytes for e in again.entries()))


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_threads_with_one_cache(tmp_path, where):
    """Each input once, everybody the same, whoever came first."""
    step = CachedStep(squares)
    step = step.persistent(tmp_path / "c") if where == "disk" else step
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda k: step(100 + k % 7), range(400)))
    assert all((v == np.arange(100 + k % 7) ** 2).all() for k, v in enumerate(found))
    assert sorted(_notes.calls) == list(range(100, 107))


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_tasks_and_threads_with_one_cache(tmp_path, where):
    step = CachedStep(squares_later)
    step = step.persistent(tmp_path / "c") if where == "disk" else step

    async def some(n):
        return await asyncio.gather(*[step(50 + k % 5) for k in range(n)])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda n: asyncio.run(some(n)), [40] * 4):
            assert all((v == np.arange(50 + k % 5) ** 2).all() for k, v in enumerate(found))
    assert sorted(_notes.calls) == list(range(50, 55))


def test_an_entry_that_was_made_huge(tmp_path):
    """A file of a gigabyte that is no entry of a gigabyte is a miss, and is not read to find that out."""

    def have_been_read():
        with open("/proc/self/io") as f:
            return int(f.readline().split()[1])

    cache = FileCache(tmp_path / "c")
    cache["k"] = 1
    file, = [p for p in (tmp_path / "c").rglob("*") if p.is_file() and p.name != "total"]
    os.truncate(file, 1 << 30)
    before = have_been_read()
    assert cache.get("k", "miss") == "miss" and "k" not in cache
    assert cache.verify()[0] == 0 and have_been_read() - before < 1 << 20
    cache["k"] = 2
    assert cache["k"] == 2 and len(cache) == 1
