"""`qd.perf_dispatch`: several implementations of one function, the fastest of which is used.

For each geometry (what the user's function says of the arguments) the implementations that can
take the call are tried in turn, one per call, so that none needs to be repeatable; when each has
its timed runs, the one with the lowest mean stays, until it is time to look again.
"""

import time

from ingot._core import IngotRuntimeError, IngotSyntaxError

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

    def __init__(self, candidates, warmup, active):
        self.candidates = candidates
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
        return result


class PerformanceDispatcher:
    """What `qd.perf_dispatch` makes of a function: call it, or register implementations with it."""

    def __init__(self, get_geometry_hash, fn, num_first_warmup=None, num_warmup=None,
                 num_active=None, repeat_after_count=None, repeat_after_seconds=None):
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
        warmup = self.num_warmup if key in self._contests else self.num_first_warmup
        contest = self._contests[key] = _Contest(able, warmup, self.num_active)
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
                  active=NUM_ACTIVE, repeat_after_count=None, repeat_after_seconds=None):
    """Marks a function as a name for the fastest of the implementations registered with it."""

    def decorate(fn):
        return PerformanceDispatcher(
            get_geometry_hash, fn, first_warmup, warmup, active, repeat_after_count,
            repeat_after_seconds,
        )

    return decorate
