"""`ingot.CachedStep`: a function that remembers its results, in memory or on disk; and
`ingot.StepSequence`: steps one after the other.

The key of a result is made of three parts: a version salt, the fingerprint of the step (its
source and configuration) and the fingerprint of the input. So an edited step, another
configuration or another input is another key; nothing else is.
"""

import collections
import contextlib
import dataclasses
import functools
import inspect
import itertools
import os
import sys
import threading
import types
import uuid
import warnings
from collections.abc import Callable
from typing import Any

from ingot._core import IngotRuntimeError, IngotRuntimeWarning, step_key
from ingot._filecache import FileCache, text_label
from ingot._flight import MISS, single_flight, single_flight_async, used_up
from ingot._numbers import bound
from ingot.fingerprint import Fingerprinter, FingerprintError, Identity, Key, Pieces

_STEP = "1" + "0" * 31  # the domain of steps' halves, apart from keys given to a FileCache
_tokens = itertools.count()
_running_lock = threading.Lock()


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
        """The value of a key, or the default."""
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
        """Forgets everything."""
        with self._lock:
            self._values.clear()


# ---- what a step is ------------------------------------------------------------------------------


def _kind(step):
    """"plain", "coroutine" or "generator": what calling it gives. Raises for what gives nothing
    that could be kept."""
    while isinstance(step, functools.partial):
        step = step.func
    if isinstance(step, CachedStep):
        return step._kind
    if isinstance(step, StepSequence):
        return "coroutine" if "coroutine" in map(_kind, step.steps) else "plain"
    for f in (step, getattr(type(step), "__call__", None)):
        if inspect.isasyncgenfunction(f):
            raise TypeError(
                f"{step!r} is an asynchronous generator, which can be read once and so cannot be "
                "cached: collect its items in a coroutine that returns a list"
            )
        if inspect.iscoroutinefunction(f):
            return "coroutine"
        if inspect.isgeneratorfunction(f):
            return "generator"
    return "plain"


def _called(step):
    """A name for people."""
    f = step if hasattr(step, "__qualname__") else type(step)
    return f"{f.__module__}.{f.__qualname__}"


def _named(module, qualname):
    """What that name leads to now; MISS: nothing."""
    found = sys.modules.get(module, MISS)
    for part in qualname.split("."):
        found = getattr(found, part, MISS)
    return found


def _is_method(step):
    """Was it defined in the body of a class? Then its first argument is an object whose methods
    it may call."""
    outer = step.__qualname__.rpartition(".")[0] if isinstance(step, types.FunctionType) else ""
    return bool(outer) and not outer.endswith("<locals>")


class _Default:
    """In a key: the default value of a parameter, where that has no fingerprint."""


class _Arguments:
    """Calls as tuples of values, one for each parameter: `f(1)`, `f(x=1)` and, where 2 is y's
    default, `f(1, 2)` are one call."""

    def __init__(self, step):
        # What a wrapper does with its arguments is its own affair: __wrapped__ is not followed.
        self.signature = inspect.signature(step, follow_wrapped=isinstance(step, CachedStep))
        parameters = self.signature.parameters.values()
        fixed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.simple = all(p.kind in fixed for p in parameters)
        self.defaults = {p.name: _default(p) for p in parameters}

    def values(self, args, kwargs):
        if self.simple and not kwargs and len(args) == len(self.defaults):
            return args
        given = self.signature.bind(*args, **kwargs).arguments
        return tuple([given.get(name, default) for name, default in self.defaults.items()])


def _default(parameter):
    """What stands for the parameter where it is not given."""
    kinds = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}
    default = kinds.get(parameter.kind, parameter.default)
    try:
        step_key(_STEP, default)
    except FingerprintError:
        return _Default
    return default


def _arguments(step):
    try:
        return _Arguments(step)
    except (TypeError, ValueError):
        return None  # some builtins do not tell


def _by_identity(obj):
    return Pieces("identity", (Identity(obj),))


_STRICT = Fingerprinter()
_LENIENT = Fingerprinter(variant="lenient")
_IN_MEMORY = Fingerprinter(variant="lenient", fallback=_by_identity)  # it refuses nothing
_BOXES = (list, dict, set, bytearray, collections.deque)


# ---- the step ------------------------------------------------------------------------------------


class _Borrowed:
    """An attribute that a class has for itself and that its objects have from their step."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj.step, self.name, self)


class _BorrowedText(_Borrowed, str):
    pass


class _BorrowedDict(_Borrowed, dict):
    pass


def _coroutine_mark(name):
    """What tells inspect and asyncio that calling an object gives a coroutine."""
    if name == "_is_coroutine":  # before Python 3.12
        import asyncio

        return getattr(asyncio.coroutines, name, None)
    return getattr(inspect.markcoroutinefunction(lambda: None), name)


_WRAPPED = {*functools.WRAPPER_ASSIGNMENTS, "__annotations__"}  # from Python 3.14 on the former has what makes the latter


def _private(**options):
    """A field that is no part of a step's fingerprint."""
    return dataclasses.field(metadata={"fingerprint": False}, **options)


class _Signature:
    """`inspect.signature`: of a step that of what it calls, of the class that of making one."""

    def __get__(self, obj, owner=None):
        import inspect

        return inspect.signature(owner.__init__ if obj is None else obj.step)


@dataclasses.dataclass(eq=False)
class CachedStep:
    __doc__ = _BorrowedText("""Calls `step`, unless it was called with an equal input before.

        solve = CachedStep(solve_slowly)                         # remembers in memory
        solve = CachedStep(solve_slowly).persistent("cache")     # and on disk

    It decorates functions and methods, also coroutines; a generator's items are collected, and
    each call gets an iterator over them. `cache` is a FileCache, or anything with
    `get(key, default)` and `__setitem__` (a dict); keys are 32 hex digits. `input_key` gets the
    arguments and returns what stands for them in the key. `fingerprinter` is a
    `Fingerprinter`, or "strict" or "lenient": the rules for step and input. `verify=True` runs
    the step even when the result is known, twice when it is not, and raises CacheMismatchError
    when results differ. `wait` bounds, in seconds, how long a call waits for another thread,
    task or process that is computing the same.

    The step's half of the key is that of the moment of the call: a global that was set, an
    option of the step that was changed since it was made is another step. What changes while
    the step runs is the step's own doing and does not count. A result from memory is the same
    object each time. A result that cannot be stored is returned all the same, with one warning.
    """)
    __module__ = _BorrowedText(__name__)

    step: Callable
    cache: Any = _private(default=None)
    input_key: Callable | None = _private(default=None)
    salt: str | None = _private(default=None, kw_only=True)
    fingerprinter: Fingerprinter | str | None = _private(default=None, kw_only=True)
    verify: bool = _private(default=False, kw_only=True)
    wait: float = _private(default=300.0, kw_only=True)
    _kind: str = _private(init=False, repr=False)
    _method: bool = _private(init=False, repr=False)
    _arguments: Any = _private(init=False, repr=False)
    _on_disk: bool = _private(init=False, repr=False)
    _token: str = _private(init=False, repr=False)  # stands for a step without a fingerprint
    _known: tuple | None = _private(init=False, repr=False)
    _running: dict = _private(init=False, repr=False, default_factory=dict)  # process -> runs
    _quick: bool = _private(init=False, repr=False)  # one argument is its own normal form
    _warned: bool = _private(init=False, repr=False, default=False)

    def __post_init__(self):
        if not callable(self.step):
            raise TypeError(f"a step is a callable, got {self.step!r}")
        if self.input_key is not None and not callable(self.input_key):
            raise TypeError(f"input_key is a callable, got {self.input_key!r}")
        if isinstance(self.fingerprinter, str):
            self.fingerprinter = Fingerprinter(variant=self.fingerprinter)
        if not isinstance(self.fingerprinter, (Fingerprinter, types.NoneType)):
            raise TypeError(f"fingerprinter is a Fingerprinter, got {self.fingerprinter!r}")
        if self.cache is None:
            self.cache = MemoryCache()
        self._on_disk = isinstance(self.cache, FileCache)
        self._kind = _kind(self.step)
        self._method = _is_method(self.step)
        self._arguments = None
        self._token = ""
        self._known = None
        self._quick = False
        if not self._not_named_yet():
            self._halves()

    # As functools.wraps would make it, without state of its own.

    __signature__ = _Signature()

    @property
    def __wrapped__(self):
        return self.step

    def __getattr__(self, name):
        step = self.__dict__.get("step")
        if name in _WRAPPED or name in getattr(step, "__dict__", ()):
            return getattr(step, name)
        if name in ("_is_coroutine", "_is_coroutine_mark") and self._kind == "coroutine":
            return _coroutine_mark(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        if not self._method:  # put into a class after that was made
            self._method, self._quick = True, False
        return types.MethodType(self, obj)

    def __reduce__(self):
        name = getattr(self, "__qualname__", "")
        if name and _named(self.__module__, name) is self:  # it decorates: known by its name
            return name
        options = {n: getattr(self, n) for n in ("salt", "fingerprinter", "verify", "wait")}
        return _rebuild, (self.step, self.cache, self.input_key, options)

    # Variants.

    def in_memory(self, max_entries=None):
        """The same step with a new cache in memory."""
        return dataclasses.replace(self, cache=MemoryCache(max_entries))

    def persistent(self, path, **options):
        """The same step with a FileCache in the directory `path`; `options` are FileCache's.

        Refused with a FingerprintError when the step cannot be told from others by its
        value: a lambda, a function made inside another, an object with a lock in it.
        """
        return dataclasses.replace(self, cache=FileCache(path, **options))

    def chain(self, next_step):
        """This step, and `next_step` with its result."""
        return StepSequence.start(self).chain(next_step)

    # Keys.

    def _not_named_yet(self):
        """Is it decorated at this moment? Then its name does not lead to it before the first
        call, which has to compute the step's half of the key."""
        name = getattr(self.step, "__qualname__", "<")
        if not self._on_disk or not isinstance(self.step, types.FunctionType) or "<" in name:
            return False
        found = _named(self.step.__module__, name)
        return found is MISS or (found is not self.step and isinstance(found, CachedStep))

    def _salt(self):
        from ingot import __version__

        own = ("salt", self.salt) if self.salt else ("version", __version__)
        salt = own, os.environ.get("INGOT_CACHE_SALT") or None
        level = sys.flags.optimize  # -O runs other code of the same text
        return (*salt, ("optimize", level)) if level else salt

    def _rules(self):
        """What decides which inputs are one: it is part of the key as text, whatever it is."""
        key, fp = self.input_key, self.fingerprinter
        return (
            None if key is None else _LENIENT._of_code(key, path="input_key"),
            None if fp is None else _LENIENT._of_code(fp._config[:4], path="fingerprinter"),
        )

    def _reached(self):
        """What the step is at this moment: itself, and all that it can reach."""
        rules = self._rules()
        if not self._token:
            try:
                return (self.fingerprinter or _STRICT)._of_code(self.step, path="step"), rules
            except FingerprintError as e:
                if self._on_disk:
                    raise FingerprintError(
                        f"a step on disk must be known by its value: {e}"
                    ) from None
            self._token = f"{uuid.uuid4().hex}{next(_tokens)}"
        # In memory the step is this very object, so a key that is its own will do.
        try:
            return _IN_MEMORY._of_code(self.step, path="step"), rules
        except FingerprintError:
            return None, rules

    def _reached_but_boxes(self):
        """The same without what lists, dicts and their like hold."""
        base = _IN_MEMORY if self._token else self.fingerprinter or _STRICT
        lenient, overrides, skip, fallback = base._config[:4]
        rules = Fingerprinter(None, (), fallback, "lenient" if lenient else "strict")
        rules._config = (lenient, overrides, (*skip, *_BOXES), fallback, None, False)
        try:
            return rules._of_code(self.step, path="step")
        except FingerprintError:
            return object()  # equal to nothing

    def _runs(self):
        """How many runs are under way here? In a forked process those of other threads are gone."""
        return self._running and self._running.get(os.getpid(), 0)

    def _alone(self):
        """Does nothing but the step itself run while it runs?"""
        return self._kind != "coroutine" and threading.active_count() == 1

    def _halves(self):
        """The parts of keys that are the step's, for calls with one value, several, others."""
        known = self._known
        if known and self._runs() and (self._alone() or known[2] == self._reached_but_boxes()):
            return known[1]
        reached = self._reached()
        if not known or known[0] != reached:
            step, rules = reached
            if self._token:
                step = self._token, step and str(step)
            half = step_key(_STEP, (self._salt(), step, rules))
            halves = half, step_key(half, "values"), step_key(half, "call")
            self._read_signature()
            self._known = known = reached, halves, self._reached_but_boxes()
        return known[1]

    def _read_signature(self):
        """Parameters and defaults are the step's too, and change with it."""
        self._arguments = _arguments(self.step)
        self._quick = bool(
            self._arguments and self._arguments.simple and len(self._arguments.defaults) == 1
            and not (self._method or self.input_key or self.fingerprinter)
        )

    @contextlib.contextmanager
    def _own_changes(self):
        """Around a run: what the step changes of what it reaches (a list of what was done) makes
        no other step of it. Where others run meanwhile, only contents of lists, dicts and their
        like can be the step's own doing."""
        process = os.getpid()
        with _running_lock:
            self._running[process] = self._running.get(process, 0) + 1
        alone = self._alone()
        try:
            yield
        finally:
            with _running_lock:
                self._running[process] -= 1
            if not self._runs():
                self._look_again(alone and self._alone())

    def _look_again(self, alone):
        known = self._known
        try:
            reached = self._reached()
        except FingerprintError:
            return  # the next call will say so
        if not known or known[0] == reached:
            return
        fixed = self._reached_but_boxes()
        if alone or fixed == known[2]:
            self._known = reached, known[1], fixed

    def _join(self, half, value):
        if self.fingerprinter is None:
            return step_key(half, value)
        digest = self.fingerprinter(value, path="input")
        key = step_key(half, str(digest))
        if type(digest) is str:
            return key
        key = Key(key)
        key._held = digest._held  # what is known by identity must live as long as the key
        return key

    def key(self, *args, **kwargs):
        """The key of a call: 32 hex digits."""
        one, several, other = self._halves()
        if self._quick and len(args) == 1 and not kwargs:
            return step_key(one, args[0])
        if self.input_key is not None:
            return self._join(one, self.input_key(*args, **kwargs))
        values = self._values(args, kwargs)
        if values is None:
            return self._join(other, (args, kwargs))
        if self._method and values:
            fp = self.fingerprinter or Fingerprinter()
            values = ("self", fp._of_code(values[0], path="self"), *values[1:])
        return self._join(one, values[0]) if len(values) == 1 else self._join(several, values)

    def _values(self, args, kwargs):
        """One for each parameter; None: not known, or no call that the step takes, as it will
        say itself."""
        try:
            return self._arguments and self._arguments.values(args, kwargs)
        except TypeError:
            return None

    # Calls.

    def __call__(self, *args, **kwargs):
        key = self.key(*args, **kwargs)
        if self._kind == "coroutine":
            return self._call_async(key, args, kwargs)
        value = self._find(key)
        if value is MISS:
            value = self._miss(key, args, kwargs)
        elif self.verify:
            self._compare(key, value, self._run(args, kwargs))
        return iter(value) if self._kind == "generator" else value

    async def _call_async(self, key, args, kwargs):
        value = self._find(key)
        if value is MISS:
            return await self._miss_async(key, args, kwargs)
        if self.verify:
            self._compare(key, value, await self._run_async(args, kwargs))
        return value

    def _find(self, key, counted=True):
        return self.cache._find(key, counted) if self._on_disk else self.cache.get(key, MISS)

    def _run(self, args, kwargs):
        with self._own_changes():
            value = self.step(*args, **kwargs)
            return list(value) if self._kind == "generator" else value

    async def _run_async(self, args, kwargs):
        with self._own_changes():
            return await self.step(*args, **kwargs)

    def _miss(self, key, args, kwargs):
        def make():
            value = self._run(args, kwargs)
            if self.verify:
                self._compare(key, value, self._run(args, kwargs))
            self._keep(key, value)
            return value

        if self._on_disk:
            return self.cache._get_or_make(key, make, self.wait)
        return single_flight(id(self.cache), key, lambda: self._find(key), make, self.wait)

    async def _miss_async(self, key, args, kwargs):
        async def make():
            value = await self._run_async(args, kwargs)
            if self.verify:
                self._compare(key, value, await self._run_async(args, kwargs))
            self._keep(key, value)
            return value

        if self._on_disk:
            return await self.cache._get_or_make_async(key, make, self.wait)
        find = lambda: self._find(key)  # noqa: E731
        return await single_flight_async(id(self.cache), key, find, make, self.wait)

    def _keep(self, key, value):
        """A result that took long to make is never lost because it cannot be kept."""
        if used_up(value):
            return self._warn(f"a {type(value).__name__!r} can be read once")
        try:
            why = None
            if self._on_disk:
                why = self.cache._keep(key, value, text_label(_called(self.step)))
            else:
                self.cache[key] = value
            if why:
                self._warn(why)
        except Exception as e:
            self._warn(str(e) or type(e).__name__)

    def _warn(self, why):
        if not self._warned:
            self._warned = True
            warnings.warn(f"the result of {self.step!r} is not stored: {why}", IngotRuntimeWarning, 2)

    def _compare(self, key, first, second):
        if step_key(_STEP, first) != step_key(_STEP, second):
            raise CacheMismatchError(
                f"{self.step!r} gave two different results for the input with key {key}: it "
                "reads something that is not part of its key, or its result is random"
            )


if "__annotations__" in CachedStep.__dict__:  # else, from Python 3.14 on, objects do not see it
    CachedStep.__annotations__ = _BorrowedDict(CachedStep.__annotations__)
    CachedStep.__dict__["__annotations__"].name = "__annotations__"


def _rebuild(step, cache, input_key, options):
    return CachedStep(step, cache, input_key, **options)


# ---- steps one after the other -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StepSequence:
    """Steps of one argument each: the result of one is the argument of the next.

        build = StepSequence.start(parse).chain(check).chain(generate)
        build = build.persistent("cache")       # every step with a key of its own

    With coroutines among them the call has to be awaited.
    """

    steps: tuple

    def __post_init__(self):
        object.__setattr__(self, "steps", tuple(self.steps))
        for step in self.steps:
            if not callable(step):
                raise TypeError(f"a step is a callable, got {step!r}")

    @classmethod
    def start(cls, first_step):
        """A sequence of one step."""
        return cls((first_step,))

    def chain(self, next_step):
        """These steps, and then `next_step`."""
        return type(self)((*self.steps, next_step))

    def in_memory(self, max_entries=None):
        """The same steps, each with a cache in memory of its own."""
        return type(self)(tuple([_cached(s).in_memory(max_entries) for s in self.steps]))

    def persistent(self, path, **options):
        """The same steps, each cached in the directory `path` under keys of its own: after an
        edit those that come before it are read, not run."""
        cache = FileCache(path, **options)
        return type(self)(
            tuple([dataclasses.replace(_cached(s), cache=cache) for s in self.steps])
        )

    def __call__(self, value):
        for at, step in enumerate(self.steps):
            value = step(value)
            if inspect.isawaitable(value):
                return self._go_on(value, self.steps[at + 1 :])
        return value

    async def _go_on(self, value, steps):
        value = await value
        for step in steps:
            value = step(value)
            if inspect.isawaitable(value):
                value = await value
        return value


def _cached(step):
    return step if isinstance(step, CachedStep) else CachedStep(step)
