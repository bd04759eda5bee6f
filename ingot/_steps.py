"""`ingot.CachedStep`: a function that remembers its results, in memory or on disk.

The key of a result is made of three parts: a version salt, the fingerprint of the step (its
source and configuration) and the fingerprint of the input. So an edited step, another
configuration or another input is another key; nothing else is.
"""

import dataclasses
import itertools
import os
import threading
import uuid
from collections.abc import Callable
from typing import Any

from ingot._core import IngotRuntimeError, step_key
from ingot._filecache import FileCache
from ingot._flight import MISS, single_flight
from ingot._numbers import bound
from ingot.fingerprint import Fingerprinter, FingerprintError

_STEP = "1" + "0" * 31  # the domain of steps' halves, apart from keys given to a FileCache
_CALL = "call"  # the domain of inputs that are not one positional argument
_tokens = itertools.count()


class CacheMismatchError(IngotRuntimeError):
    """With `verify=True`: the step gave two different results for one input."""


class MemoryCache:
    """Values by digest in a dict; past `max_entries` the least recently used go."""

    def __init__(self, max_entries=None):
        bound("max_entries", max_entries)
        self.max_entries = max_entries
        self._values = {}
        self._lock = threading.Lock()

    def __reduce__(self):
        return MemoryCache, (self.max_entries,)  # a copy in another process starts empty

    def __len__(self):
        return len(self._values)

    def __bool__(self):
        return True

    def get(self, key, default=None):
        if self.max_entries is None:
            return self._values.get(key, default)
        with self._lock:
            value = self._values.pop(key, MISS)
            if value is MISS:
                return default
            self._values[key] = value  # now the last to go
            return value

    def __setitem__(self, key, value):
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            if self.max_entries is not None and len(self._values) > self.max_entries:
                del self._values[next(iter(self._values))]

    def clear(self):
        with self._lock:
            self._values.clear()


def _private(**options):
    """A field that is no part of a step's fingerprint."""
    return dataclasses.field(metadata={"fingerprint": False}, **options)


@dataclasses.dataclass(eq=False)
class CachedStep:
    """Calls `step`, unless it was called with an equal input before.

        solve = CachedStep(solve_slowly)                         # remembers in memory
        solve = CachedStep(solve_slowly).persistent("cache")     # and on disk

    `cache` is a FileCache, or anything with `get(key, default)` and `__setitem__` (a dict);
    keys are 32 hex digits. `input_key` gets the arguments and returns what stands for them in
    the key. `verify=True` runs the step even when the result is known, twice when it is not,
    and raises CacheMismatchError when results differ. `wait` bounds, in seconds, how long a
    call waits for another thread or process that is computing the same.

    The step's half of the key is computed once: changing the step's configuration afterwards
    is not seen. A result from memory is the same object each time.
    """

    step: Callable
    cache: Any = _private(default=None)
    input_key: Callable | None = _private(default=None)
    salt: str | None = _private(default=None, kw_only=True)
    verify: bool = _private(default=False, kw_only=True)
    wait: float = _private(default=300.0, kw_only=True)
    _half: str = _private(init=False, repr=False)
    _call_half: str = _private(init=False, repr=False)
    _on_disk: bool = _private(init=False, repr=False)

    def __post_init__(self):
        if not callable(self.step):
            raise TypeError(f"a step is a callable, got {self.step!r}")
        if self.input_key is not None and not callable(self.input_key):
            raise TypeError(f"input_key is a callable, got {self.input_key!r}")
        if self.cache is None:
            self.cache = MemoryCache()
        self._on_disk = isinstance(self.cache, FileCache)
        self._half = self._compute_half()
        self._call_half = step_key(self._half, _CALL)

    def __reduce__(self):
        options = {"salt": self.salt, "verify": self.verify, "wait": self.wait}
        return _rebuild, (self.step, self.cache, self.input_key, options)

    def in_memory(self, max_entries=None):
        """The same step with a new cache in memory."""
        return dataclasses.replace(self, cache=MemoryCache(max_entries))

    def persistent(self, path, **options):
        """The same step with a FileCache in the directory `path`; `options` are FileCache's.

        Refused with a FingerprintError when the step cannot be told from others by its
        value: a lambda, a function made inside another, an object with a lock in it.
        """
        return dataclasses.replace(self, cache=FileCache(path, **options))

    def key(self, *args, **kwargs):
        """The key of a call: 32 hex digits."""
        if self.input_key is not None:
            return step_key(self._half, self.input_key(*args, **kwargs))
        if len(args) == 1 and not kwargs:
            return step_key(self._half, args[0])
        return step_key(self._call_half, (args, kwargs))

    def __call__(self, *args, **kwargs):
        key = self.key(*args, **kwargs)
        value = self.cache._find(key) if self._on_disk else self.cache.get(key, MISS)
        if value is MISS:
            return self._miss(key, args, kwargs)
        if self.verify:
            self._compare(key, value, self.step(*args, **kwargs))
        return value

    def _compute_half(self):
        salt = os.environ.get("INGOT_CACHE_SALT") or self.salt
        if not salt:
            from ingot import __version__

            salt = "ingot " + __version__
        try:
            return step_key(_STEP, (salt, Fingerprinter()._of_code(self.step, path="step")))
        except FingerprintError as e:
            if self._on_disk:
                raise FingerprintError(f"a step on disk must be known by its value: {e}") from None
        # In memory the step is this very object, so a key that is its own will do.
        return step_key(_STEP, (salt, uuid.uuid4().hex, next(_tokens)))

    def _miss(self, key, args, kwargs):
        def make():
            value = self.step(*args, **kwargs)
            if self.verify:
                self._compare(key, value, self.step(*args, **kwargs))
            return value

        if self._on_disk:
            return self.cache._get_or_make(key, make, self.wait)

        def make_and_keep():
            self.cache[key] = value = make()
            return value

        return single_flight(
            id(self.cache), key, lambda: self.cache.get(key, MISS), make_and_keep, self.wait
        )

    def _compare(self, key, first, second):
        if step_key(_STEP, first) != step_key(_STEP, second):
            raise CacheMismatchError(
                f"{self.step!r} gave two different results for the input with key {key}: it "
                "reads something that is not part of its key, or its result is random"
            )


def _rebuild(step, cache, input_key, options):
    return CachedStep(step, cache, input_key, **options)
