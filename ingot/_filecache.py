"""`ingot.FileCache`: values on disk, one immutable checksummed file each.

Readers take no lock and a hit writes nothing; whatever is wrong with a file is a miss and a
counter. The work is done by src/py/filecache.c over src/store.
"""

import operator
import os
import pickle
import time
import warnings
from typing import NamedTuple

from ingot._core import FileCacheCore, step_key
from ingot._flight import MISS, single_flight, single_flight_async
from ingot._numbers import bound

_used = operator.attrgetter("used")  # no lambda: see _declared in fingerprint.py
UNKEPT = "the disk or a bound of the cache says no"
_DIRECT = "0" * 32  # in place of a step's half of the key: keys given by the user


class Entry(NamedTuple):
    """One line of `FileCache.entries()`. Times are seconds since 1970."""

    digest: str
    """32 hex digits: the name of the file."""
    nbytes: int
    """Size of the file."""
    published: float
    used: float
    """Last use as far as the file system keeps it, else as `published`."""


class Verified(NamedTuple):
    """What `FileCache.verify()` found."""

    good: int
    damaged: list
    """Digests of entries that were read whole and are not what was written."""
    unreadable: list
    """Digests of entries that could not be read; nothing is known about them."""


def _dumps(value):
    return pickle.dumps(value, protocol=5)


class FileCache:
    """Values by key in a directory that any number of processes may share.

        cache = FileCache("cache-dir", max_bytes=100_000_000)
        cache["key"] = {"answer": 42}

    A key is any value that `ingot.fingerprint` takes. A value is None, a bool, int, float,
    complex, str or bytes, a NumPy array or scalar, or a tuple, list or dict of those; each
    get returns a new object. With `codec="pickle"` it is whatever pickle takes: then
    whoever can write to the directory can run code in this process.

    The directory must belong to the user and not be writable by others. Past `max_bytes` or
    `max_entries` the least recently used entries go. `wait` bounds, in seconds, how long
    `get_or_compute` waits for somebody who is computing the same.
    """

    __slots__ = ("_core", "_codec", "_max", "_where", "_loads", "_dumps", "_warned", "wait", "__weakref__")

    def __init__(self, path, max_bytes=1 << 30, max_entries=None, *, codec="values", wait=300.0):
        if codec not in ("values", "pickle"):
            raise ValueError(f'codec must be "values" or "pickle", got {codec!r}')
        self._max = (max_bytes, max_entries)
        self._core = FileCacheCore(
            os.fspath(path), bound("max_bytes", max_bytes), bound("max_entries", max_entries)
        )
        self._codec = codec
        self._loads, self._dumps = (pickle.loads, _dumps) if codec == "pickle" else (None, None)
        self._where = self._core.path
        self._warned = False
        self.wait = float(wait)

    def __repr__(self):
        return f"FileCache({self.path!r})"

    def __reduce__(self):
        return _reopen, (self.path, *self._max, self._codec, self.wait)

    @property
    def path(self):
        """The directory, absolute."""
        return self._core.path

    # By digest: what CachedStep uses.

    def _find(self, digest, counted=True):
        return self._core.get(digest, MISS, self._loads, counted)

    def _keep(self, digest, value):
        return self._core.put(digest, value, self._dumps)

    def _keep_or_warn(self, digest, value):
        """What took long to make is never lost because it cannot be kept."""
        try:
            why = None if self._keep(digest, value) else UNKEPT
        except Exception as e:
            why = str(e) or type(e).__name__
        if why and not self._warned:
            self._warned = True
            warnings.warn(f"a value is not stored in {self.path}: {why}", RuntimeWarning, 2)

    def _get_or_make(self, digest, make, wait):
        """The stored value or `make()`, which one thread of one process calls and which keeps
        what it makes."""
        return single_flight(
            self._where, digest, lambda: self._find(digest, False),
            lambda: self._leased(digest, make, wait), wait,
        )

    def _leased(self, digest, make, wait):
        core, end = self._core, time.monotonic() + wait
        while True:
            lease = core.take(digest, wait)
            if lease is not None:
                return self._make_under(lease, digest, make)
            left = end - time.monotonic()
            if left <= 0:
                return make()
            core.wait(digest, left)
            value = self._find(digest, False)
            if value is not MISS:
                return value

    def _make_under(self, lease, digest, make):
        if lease is False:
            return make()  # there can be no lease here
        try:
            value = self._find(digest, False)
            return make() if value is MISS else value
        finally:
            self._core.release(lease)

    async def _get_or_make_async(self, digest, make, wait):
        return await single_flight_async(
            self._where, digest, lambda: self._find(digest, False),
            lambda: self._leased_async(digest, make, wait), wait,
        )

    async def _leased_async(self, digest, make, wait):
        """As _leased, by looking now and then: other tasks of the loop go on."""
        import asyncio

        end = time.monotonic() + wait
        while (lease := self._core.take(digest, wait)) is None and time.monotonic() < end:
            await asyncio.sleep(0.01)
        try:
            value = self._find(digest, False)
            return await make() if value is MISS else value
        finally:
            if lease:
                self._core.release(lease)

    # By key.

    def get(self, key, default=None):
        """The value, or `default` when there is none or it cannot be read."""
        value = self._find(step_key(_DIRECT, key))
        return default if value is MISS else value

    def put(self, key, value):
        """Stores the value and returns True; False when the disk or a bound says no.

        Raises TypeError with the path of what the codec does not know.
        """
        return self._keep(step_key(_DIRECT, key), value)

    def get_or_compute(self, key, compute):
        """The value, or `compute()`, which is then stored.

        Of several threads and processes that miss together one computes and the others wait,
        at most `wait` seconds. What cannot be stored is returned with one warning.
        """
        digest = step_key(_DIRECT, key)
        value = self._find(digest)
        if value is not MISS:
            return value

        def make():
            made = compute()
            self._keep_or_warn(digest, made)
            return made

        return self._get_or_make(digest, make, self.wait)

    def remove(self, key):
        """Removes the entry; whether there was one."""
        return self._core.remove(step_key(_DIRECT, key))

    def __getitem__(self, key):
        value = self.get(key, MISS)
        if value is MISS:
            raise KeyError(key)
        return value

    def __setitem__(self, key, value):
        self.put(key, value)

    def __delitem__(self, key):
        if not self.remove(key):
            raise KeyError(key)

    def __contains__(self, key):
        return self._core.verify(step_key(_DIRECT, key), False) == "good"

    __iter__ = None  # keys cannot be had back from their digests: see entries()

    # The whole.

    def __len__(self):
        return self._core.totals()[0]

    def __bool__(self):
        return True  # an empty cache is a cache

    @property
    def nbytes(self):
        """Bytes of all files together."""
        return self._core.totals()[1]

    def entries(self):
        """All entries, the least recently used first."""
        return sorted([Entry(*row) for row in self._core.entries()], key=_used)

    def verify(self, remove=False):
        """Reads every entry and checks it. `remove` takes away what is damaged, and nothing
        that merely could not be read."""
        found = {"good": 0, "damaged": [], "unreadable": [], "missing": []}
        for row in self._core.entries():
            health = self._core.verify(row[0], remove)
            if health == "good":
                found["good"] += 1
            else:
                found[health].append(row[0])
        return Verified(found["good"], sorted(found["damaged"]), sorted(found["unreadable"]))

    def evict(self):
        """Brings the cache within its bounds, removes what crashed writers left and counts
        anew. Done by itself when a put goes past a bound. Returns (entries, bytes) removed."""
        return self._core.sweep() or (0, 0)

    def clear(self):
        """Removes all entries, by whichever cached step; how many."""
        return sum(self._core.remove(row[0]) for row in self._core.entries())

    def stats(self):
        """What happened through this object, as a dict of counts."""
        return {n.removeprefix("store_"): c for n, c in self._core.counters().items()}


def _reopen(path, max_bytes, max_entries, codec, wait):
    return FileCache(path, max_bytes, max_entries, codec=codec, wait=wait)
