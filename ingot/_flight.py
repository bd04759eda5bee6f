"""Single flight within a process: of the threads that want the same thing, one makes it.

Among processes the same is done by leases (src/store/lease.c, FileCache). What threads wait
for here is bounded, so that a step that hangs never holds up the others for good.
"""

import os
import threading
import time

MISS = object()  # what a look-up returns for "not there": None may be a value

_lock = threading.Lock()
_flights = {}  # (where, key) -> _Flight: only what is under way at this moment


class _Flight:
    __slots__ = ("owner", "ended", "value")

    def __init__(self):
        self.owner = threading.get_ident()
        self.ended = threading.Event()
        self.value = MISS


def _forget():
    """In a forked child nobody works on anything, and the lock may have been held."""
    global _lock
    _lock = threading.Lock()
    _flights.clear()


os.register_at_fork(after_in_child=_forget)


def single_flight(where, key, find, make, wait):
    """`find()` if it is not MISS, else `make()` by one thread at a time per (where, key).

    Who waited gets what `find` says then, or the maker's own value when it could not be kept.
    After `wait` seconds, or when the maker failed, a waiting thread makes it itself.
    """
    end = time.monotonic() + wait
    while True:
        with _lock:
            flight = _flights.get((where, key))
            if flight is None:
                mine = _flights[where, key] = _Flight()
                break
        if flight.owner == threading.get_ident():
            raise RuntimeError("a cached step calls itself with the same input")
        if not flight.ended.wait(max(0.0, end - time.monotonic())):
            return make()
        value = find()
        if value is MISS:
            value = flight.value
        if value is not MISS:
            return value
    try:
        value = find()  # it may have come between the caller's look and ours
        if value is MISS:
            value = make()
        mine.value = value
        return value
    finally:
        with _lock:
            if _flights.get((where, key)) is mine:
                del _flights[where, key]
        mine.ended.set()
