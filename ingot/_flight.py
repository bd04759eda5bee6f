"""Single flight within a process: of the threads and tasks that want the same thing, one makes it.

Among processes the same is done by leases (src/store/lease.c, FileCache). What anybody waits
for here is bounded, so that a step that hangs never holds up the others for good.
"""

import contextvars
import inspect
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MemberDescriptorType, ModuleType

MISS = object()  # what a look-up returns for "not there": None may be a value

_lock = threading.Lock()
_flights = {}  # (where, key) -> _Flight: only what is under way at this moment
_LOOKED_AT = 10_000  # containers and objects of a result that are looked into
_PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes, bytearray, range])
_own = contextvars.ContextVar("flights of this call and of those that it was made from", default=())


def _odd(items):
    """Those that are not plain data, of which there may be millions."""
    return () if set(map(type, items)) <= _PLAIN else [x for x in items if type(x) not in _PLAIN]


def used_up(value):
    """Can it, or something in it, be read but once? Then it is nobody's but its first owner's. Runs code of the
    value's classes: call it without a lock."""
    todo, seen = [value], set()
    while todo and len(seen) < _LOOKED_AT:
        x = todo.pop()
        if isinstance(x, Iterator) or inspect.isawaitable(x):
            return True
        cls = type(x)
        if cls in _PLAIN or id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, dict):
            todo.extend(_odd(x.values()))
        elif isinstance(x, (tuple, list, set, frozenset, deque)):
            todo.extend(_odd(x))
        elif not isinstance(x, (type, FunctionType, ModuleType)):
            todo.extend(getattr(x, "__dict__", {}).values())
            for base in cls.__mro__:
                slots = base.__dict__.get("__slots__", ())
                for name in (slots,) if isinstance(slots, str) else slots:
                    member = base.__dict__.get(name)
                    if isinstance(member, MemberDescriptorType):
                        todo.append(getattr(x, name, None))
    return False


class _Flight:
    """Something that somebody is making."""

    __slots__ = ("at", "callbacks", "ended", "value", "waits")

    def __init__(self, at):
        self.at = at
        self.ended = threading.Event()
        self.callbacks = []  # of tasks, which wait without blocking their loop
        self.waits = []  # the flights that its maker waits for now
        self.value = MISS

    def land(self, value):
        """The end: `value` is for who waited, unless it is MISS."""
        once = used_up(value)
        with _lock:
            if _flights.get(self.at) is self:
                del _flights[self.at]
            self.value = MISS if once else value
            self.ended.set()
            callbacks, self.callbacks = self.callbacks, None
        for tell in callbacks:
            tell()

    def when_over(self, tell):
        with _lock:
            if self.callbacks is not None:
                self.callbacks.append(tell)
                return
        tell()


def _forget():
    """In a forked child nobody works on anything, and the lock may have been held."""
    global _lock
    _lock = threading.Lock()
    _flights.clear()


os.register_at_fork(after_in_child=_forget)


def _join(at):
    """The flight, and whether it is the caller's to make."""
    with _lock:
        flight = _flights.get(at)
        if flight is None:
            flight = _flights[at] = _Flight(at)
            return flight, True
    if flight in _own.get():
        raise RuntimeError("a cached step calls itself with the same input")
    return flight, False


def _wait_for(flight):
    """Notes that the caller's own flights wait for this one. False: it waits for one of those itself, so
    that neither would end."""
    own = _own.get()
    with _lock:
        stack, seen = [flight], set()
        while stack:
            at = stack.pop()
            if at in own:
                return False
            if at not in seen:
                seen.add(at)
                stack.extend(at.waits)
        for mine in own:
            mine.waits.append(flight)
    return True


def _waited_for(flight):
    with _lock:
        for mine in _own.get():
            mine.waits.remove(flight)


def _brought(flight, find):
    """What there is after somebody else's flight: stored, or else as it was made."""
    value = find()
    return flight.value if value is MISS else value


def single_flight(where, key, find, make, wait):
    """`find()` if it is not MISS, else `make()` by one thread at a time per (where, key).

    Who waited gets what `find` says then, or the maker's own value when it could not be kept.
    After `wait` seconds, or when the maker failed, a waiting thread makes it itself.
    """
    end = time.monotonic() + wait
    while True:
        flight, mine = _join((where, key))
        if mine:
            break
        if not _wait_for(flight):
            return make()
        try:
            over = flight.ended.wait(max(0.0, end - time.monotonic()))
        finally:
            _waited_for(flight)
        if not over:
            return make()
        value = _brought(flight, find)
        if value is not MISS:
            return value
    value, token = MISS, _own.set((*_own.get(), flight))
    try:
        value = find()  # it may have come between the caller's look and ours
        if value is MISS:
            value = make()
        return value
    finally:
        _own.reset(token)
        flight.land(value)


async def single_flight_async(where, key, find, make, wait):
    """The same for tasks of any event loop: `make` is awaited, and so is who makes it."""
    end = time.monotonic() + wait
    while True:
        flight, mine = _join((where, key))
        if mine:
            break
        if not _wait_for(flight):
            return await make()
        try:
            over = await _over(flight, max(0.0, end - time.monotonic()))
        finally:
            _waited_for(flight)
        if not over:
            return await make()
        value = _brought(flight, find)
        if value is not MISS:
            return value
    value, token = MISS, _own.set((*_own.get(), flight))
    try:
        value = find()
        if value is MISS:
            value = await make()
        return value
    finally:
        _own.reset(token)
        flight.land(value)


async def _over(flight, seconds):
    """Whether the flight ends within that time; other tasks of the loop go on meanwhile."""
    import asyncio

    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def tell():
        try:
            loop.call_soon_threadsafe(lambda: over.done() or over.set_result(None))
        except RuntimeError:
            pass  # that loop is closed: nobody waits there

    flight.when_over(tell)
    try:
        await asyncio.wait_for(over, seconds)
    except asyncio.TimeoutError:
        return False
    return True
