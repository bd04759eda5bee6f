"""`qd.perf_dispatch`: several implementations of one function, the fastest of which is used.

For each geometry (what the user's function says of the arguments) the implementations that can
take the call are tried in turn, one per call, so that none needs to be repeatable; when each has
its timed runs, the one with the lowest mean stays, until it is time to look again. Winners are kept
beside the compiled code, by the texts of all implementations, the geometry and the machine: a later
process starts with them.
"""

import os
import time

from ingot._core import IngotRuntimeError, IngotSyntaxError, cache_dir

NUM_FIRST_WARMUP = 1
NUM_WARMUP = 0
NUM_ACTIVE = 1
DEFAULT_REPEAT_AFTER_COUNT = 300

__all__ = ["PerformanceDispatcher", "perf_dispatch"]


class DispatchImpl:
    """One implementation, and whether it can take a call."""

    def __init__(self, function, is_compatible):
        self.__wrapped__ = function
        self.is_compatible = is_compatible

    @property
    def __name__(self):
        return self.__wrapped__.__name__

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)


class _Contest:
    """The runs of one geometry: who is next, how long each took, who won and since when."""

    def __init__(self, candidates, warmup, active, won=lambda name: None):
        self.candidates = candidates
        self.won = won
        self.warmup = warmup
        self.rounds = warmup + active
        self.runs = 0
        self.seconds = [0.0] * len(candidates)
        self.winner = candidates[0] if len(candidates) == 1 else None
        self.calls = 0
        self.since = time.monotonic()

    def run(self, args, kwargs):
        turn = self.runs % len(self.candidates)
        began = time.perf_counter()
        result = self.candidates[turn](*args, **kwargs)
        if self.runs >= self.warmup * len(self.candidates):
            self.seconds[turn] += time.perf_counter() - began
        self.runs += 1
        if self.runs >= self.rounds * len(self.candidates):
            self.winner = self.candidates[self.seconds.index(min(self.seconds))]
            self.since = time.monotonic()
            self.won(self.winner.__name__)
        return result


class _Winners:
    """Names of winners on disk. Whatever is wrong with the cache is no winner, never an error."""

    def __init__(self, implementations, geometry):
        import platform

        texts = [(one.__name__, _text(one.__wrapped__)) for one in implementations]
        self._key = None
        if cache_dir() is not None and all(text for _, text in texts):
            self._key = ("winner", texts, geometry, platform.machine(), platform.processor(), os.cpu_count())

    def _cache(self):
        from ingot._filecache import FileCache

        return FileCache(os.path.join(cache_dir(), "dispatch"), max_bytes=1 << 24)

    def read(self):
        try:
            return self._cache().get(self._key) if self._key else None
        except (OSError, TypeError, ValueError):
            return None

    def write(self, name):
        try:
            if self._key:
                self._cache().put(self._key, name)
        except (OSError, TypeError, ValueError):
            pass


def _text(fn):
    """The source of a function or kernel; None: it has none."""
    import inspect

    try:
        return inspect.getsource(getattr(fn, "__wrapped__", fn))
    except (OSError, TypeError):
        return None


def parse_forced(text):
    """`QD_PERFDISPATCH_FORCE`, "dispatcher:implementation,..." as a dict."""
    forced = {}
    for entry in filter(None, (part.strip() for part in (text or "").split(","))):
        name, colon, implementation = entry.partition(":")
        if not colon:
            raise ValueError(f"Malformed entry {entry!r} in QD_PERFDISPATCH_FORCE: name:implementation is expected")
        forced[name.strip()] = implementation.strip()
    return forced


class PerformanceDispatcher:
    """What `qd.perf_dispatch` makes of a function: call it, or register implementations with it."""

    def __init__(self, get_geometry_hash, fn, num_first_warmup=None, num_warmup=None,
                 num_active=None, repeat_after_count=None, repeat_after_seconds=None, remember=True):
        if repeat_after_count is None and repeat_after_seconds is None:
            repeat_after_count = DEFAULT_REPEAT_AFTER_COUNT
        self.__name__ = fn.__name__
        self.num_first_warmup = NUM_FIRST_WARMUP if num_first_warmup is None else num_first_warmup
        self.num_warmup = NUM_WARMUP if num_warmup is None else num_warmup
        self.num_active = NUM_ACTIVE if num_active is None else num_active
        self.repeat_after_count = repeat_after_count or 0
        self.repeat_after_seconds = repeat_after_seconds or 0
        self._geometry = get_geometry_hash
        self._parameters = set(_parameters(fn))
        self._implementations = []
        self._contests = {}
        self._remember = remember
        asked = os.environ.get("INGOT_PERFDISPATCH_FORCE") or os.environ.get("QD_PERFDISPATCH_FORCE")
        self._tells = asked is not None
        self._forced = parse_forced(asked if asked != "?" else "").get(fn.__name__)

    def register(self, implementation=None, *, is_compatible=None):
        """Adds an implementation; `is_compatible` of the arguments says if it can take a call."""
        if implementation is None:
            return lambda fn: self.register(fn, is_compatible=is_compatible)
        names = _parameters(implementation)
        if set(names) != self._parameters:
            raise IngotSyntaxError(
                f"{implementation.__name__} has the parameters ({', '.join(names)}), other than "
                f"{self.__name__}, which it implements "
                "[err_code=PERFDISPATCH_ANNOTATION_SEQUENCE_MISMATCH]"
            )
        self._implementations.append(DispatchImpl(implementation, is_compatible))
        if self._tells:
            print(f"perf_dispatch {self.__name__!r}: registered {self._implementations[-1].__name__!r}")
        return self._implementations[-1]

    def _begin(self, key, args, kwargs):
        able = [
            one
            for one in self._implementations
            if one.is_compatible is None or one.is_compatible(*args, **kwargs)
        ]
        if not able:
            raise IngotRuntimeError(
                f"no implementation of {self.__name__} can take these arguments"
            )
        again = key in self._contests
        winners = _Winners(self._implementations, key) if self._remember and len(able) > 1 else None
        contest = _Contest(able, self.num_warmup if again else self.num_first_warmup, self.num_active,
                           winners.write if winners else lambda name: None)
        name = self._forced or (winners.read() if winners and not again else None)
        chosen = [one for one in able if one.__name__ == name]
        if chosen:
            contest.winner = chosen[0]
        elif self._forced:
            names = [one.__name__ for one in self._implementations]
            print(f"perf_dispatch {self.__name__!r}: {name!r} is none of {names}; the fastest is used")
        self._contests[key] = contest
        return contest

    def _is_over(self, contest):
        contest.calls += 1
        if 0 < self.repeat_after_count <= contest.calls:
            return True
        age = time.monotonic() - contest.since
        return 0 < self.repeat_after_seconds <= age

    def __call__(self, *args, **kwargs):
        key = self._geometry(*args, **kwargs)
        contest = self._contests.get(key)
        if contest is None or contest.winner is not None and self._is_over(contest):
            contest = self._begin(key, args, kwargs)
        if contest.winner is not None:
            return contest.winner(*args, **kwargs)
        return contest.run(args, kwargs)


def _parameters(fn):
    import inspect

    return list(inspect.signature(getattr(fn, "__wrapped__", fn)).parameters)


def perf_dispatch(*, get_geometry_hash, first_warmup=NUM_FIRST_WARMUP, warmup=NUM_WARMUP,
                  active=NUM_ACTIVE, repeat_after_count=None, repeat_after_seconds=None, remember=True):
    """Marks a function as a name for the fastest of the implementations registered with it.

    get_geometry_hash     of the arguments: what decides which one is the fastest
    first_warmup, warmup  untimed calls of each at the first contest, and at later ones
    active                timed calls of each
    repeat_after_count    a new contest after so many calls (300 if nothing is said; 0: never)
    repeat_after_seconds  a new contest after so much time
    remember              start with the winner of an earlier process
    """

    def decorate(fn):
        return PerformanceDispatcher(
            get_geometry_hash, fn, first_warmup, warmup, active, repeat_after_count,
            repeat_after_seconds, remember,
        )

    return decorate
