"""`ingot.FileCache`: values on disk, one immutable checksummed file each.

Readers take no lock and a hit writes nothing; whatever is wrong with a file is a miss and a
counter. The work is done by src/py/value/filecache.c over src/store.
"""

import operator
import os
import pickle
import reprlib
import struct
import time
import warnings
from collections.abc import MutableMapping
from typing import NamedTuple

from ingot._core import FileCacheCore, IngotRuntimeWarning, decode_value, encode_label, step_key
from ingot._flight import MISS, single_flight, single_flight_async
from ingot._numbers import bound

_used = operator.attrgetter("used")  # no lambda: see _declared in fingerprint.py
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


class Label(str):
    """What `FileCache.keys()` gives for an entry whose key is not plain data, or which is a
    step's result: a text for people. The cache takes it for the key."""

    __slots__ = ("digest",)


_IS_KEY, _IS_TEXT = 1, 2  # kinds of labels, part of the format


def _label(key):
    """What an entry is called: its key, as far as that is short and plain."""
    try:
        return _IS_KEY, encode_label(key)
    except (TypeError, ValueError):
        return text_label(_shown(key))


def text_label(text):
    return _IS_TEXT, text.encode("utf-8", "backslashreplace")[:500]


def _shown(key):
    try:
        return reprlib.repr(key)
    except Exception:
        return f"<{type(key).__name__}>"


# A pickle, the buffers of arrays that it refers to, their sizes, and how many they are. What is
# large goes from its object to the disk and back without a copy in between.


def _dump(value, file):
    buffers = []

    def aside(buffer):
        try:
            buffers.append(buffer.raw())
        except BufferError:
            return True  # has gaps: into the pickle

    pickle.Pickler(file, 5, buffer_callback=aside).dump(value)
    for buffer in buffers:
        file.write(buffer)
    file.write(struct.pack(f"<{len(buffers) + 1}Q", *[b.nbytes for b in buffers], len(buffers)))


def _load(file):
    sizes = _sizes(file)
    at = file.size - 8 * (len(sizes) + 1) - sum(sizes)
    if at < 0:
        raise ValueError("stored value: its parts are larger than it is")

    def buffers(at=at):
        for size in sizes:
            back, into = file.tell(), bytearray(size)
            file.seek(at)
            if file.readinto(into) != size:
                raise ValueError("stored value: it ends too early")
            file.seek(back)
            at += size
            yield into

    file.seek(0)
    return pickle.Unpickler(file, buffers=buffers()).load()


def _sizes(file):
    """Of the buffers, from the end of the entry."""
    file.seek(max(0, file.size - 8))
    (n,) = struct.unpack("<Q", file.read(8))
    if n > file.size // 8 - 1:
        raise ValueError("stored value: it has too many parts")
    file.seek(file.size - 8 * (n + 1))
    return struct.unpack(f"<{n}Q", file.read(8 * n))


class FileCache(MutableMapping):
    """Values by key in a directory that any number of processes may share.

        cache = FileCache("cache-dir", max_bytes=100_000_000)
        cache["key"] = {"answer": 42}

    A mapping. A key is any value that `ingot.fingerprint` takes. A value is None, a bool, int,
    float, complex, str or bytes, a NumPy array or scalar, or a tuple, list or dict of those; each
    get returns a new object, in which what was shared is shared. With `codec="pickle"` it is
    whatever pickle takes: then whoever can write to the directory can run code in this process.

    The directory must belong to the user and not be writable by others. All files together,
    those that are being written included, are never above `max_bytes`, nor more than
    `max_entries`: before that the least recently used entries go. `wait` bounds, in seconds,
    how long `get_or_compute` waits for somebody who is computing the same.
    """

    __slots__ = {**dict.fromkeys(("_core", "_codec", "_max", "_where", "_load", "_dump", "_warned", "__weakref__")),
                 "wait": "Seconds that get_or_compute waits for somebody who is computing the same."}

    def __init__(self, path, max_bytes=1 << 30, max_entries=None, *, codec="values", wait=300.0):
        if codec not in ("values", "pickle"):
            raise ValueError(f'codec must be "values" or "pickle", got {codec!r}')
        self._max = (max_bytes, max_entries)
        self._core = FileCacheCore(
            os.fspath(path), bound("max_bytes", max_bytes), bound("max_entries", max_entries)
        )
        self._codec = codec
        self._load, self._dump = (_load, _dump) if codec == "pickle" else (None, None)
        self._where = self._core.path
        self._warned = False
        self.wait = float(wait)

    __eq__, __hash__ = object.__eq__, object.__hash__

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
        return self._core.get(digest, MISS, self._load, counted)

    def _keep(self, digest, value, label):
        """None, or why it is not stored. Raises what the codec says about the value."""
        return self._core.put(digest, value, self._dump, *label)

    def _keep_or_warn(self, digest, value, label):
        """What took long to make is never lost because it cannot be kept."""
        try:
            why = self._keep(digest, value, label)
        except Exception as e:
            why = str(e) or type(e).__name__
        if why and not self._warned:
            self._warned = True
            warnings.warn(f"a value is not stored in {self.path}: {why}", IngotRuntimeWarning, 2)

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
        value = self._find(_digest(key))
        return default if value is MISS else value

    def put(self, key, value):
        """Stores the value and returns True; False when the disk or a bound says no.

        Raises TypeError with the path of what the codec does not know.
        """
        return self._keep(_digest(key), value, _label(key)) is None

    def get_or_compute(self, key, compute):
        """The value, or `compute()`, which is then stored.

        Of several threads and processes that miss together one computes and the others wait,
        at most `wait` seconds. What cannot be stored is returned with one warning.
        """
        digest = _digest(key)
        value = self._find(digest)
        if value is not MISS:
            return value

        def make():
            made = compute()
            self._keep_or_warn(digest, made, _label(key))
            return made

        return self._get_or_make(digest, make, self.wait)

    def setdefault(self, key, default=None):
        """The value, or else `default`, which is stored: of several at once one's default."""
        digest = _digest(key)
        value = self._find(digest)
        if value is not MISS:
            return value

        def make():
            self._keep(digest, default, _label(key))
            return default

        return self._get_or_make(digest, make, self.wait)

    def pop(self, key, default=MISS):
        """Removes the entry and returns its value, which no other `pop` gets."""
        value = self._core.pop(_digest(key), default, self._load)
        if value is MISS:
            raise KeyError(key)
        return value

    def remove(self, key):
        """Removes the entry; whether there was one."""
        return self._core.remove(_digest(key))

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
        return self._find(_digest(key), False) is not MISS  # as [] would say: it is read

    def __iter__(self):
        """The keys, the oldest entry first; a Label where a key is not short and plain."""
        for _, digest, kind, label in self._core.labels(self._load is not None):
            if kind == _IS_KEY:
                yield decode_value(label)
            elif kind == _IS_TEXT:
                text = Label(label.decode("utf-8", "replace"))
                text.digest = digest
                yield text

    def items(self):
        """Pairs of key and value, of all entries that can be read."""
        for key in self:
            value = self._find(_digest(key), False)
            if value is not MISS:
                yield key, value

    def values(self):
        """The values of all entries that can be read."""
        for _, value in self.items():
            yield value

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
        return self._core.clear()[0]

    def stats(self):
        """What happened through this object, as a dict of counts."""
        return {n.removeprefix("store_"): c for n, c in self._core.counters().items()}


def _digest(key):
    return key.digest if type(key) is Label else step_key(_DIRECT, key)


def _reopen(path, max_bytes, max_entries, codec, wait):
    return FileCache(path, max_bytes, max_entries, codec=codec, wait=wait)
