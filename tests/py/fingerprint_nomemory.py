"""Run by test_nomemory.py in a process of its own: each allocation fails once,
of Python or of the engine, and the answer is the right digest or MemoryError, then and
afterwards. Prints what went wrong, and how often an allocation was made to fail."""

import dataclasses
import enum
import gc
import sys

import _testcapi
import fingerprint_corpus as corpus
import ingot
from ingot import _core

QUIET = 25  # so many in a row without effect: there are no more allocations


def fresh():
    """Values of classes that were never hashed, so that plans are made."""

    @dataclasses.dataclass
    class Data:
        x: int
        y: list = dataclasses.field(default_factory=list)
        out: object = dataclasses.field(default=None, metadata={"fingerprint": False})

    class Slots:
        __slots__ = ("a", "b", "__dict__")

    class Choice(enum.Enum):
        A = 1

    class Items(list):
        pass

    class Reduced:
        def __reduce__(self):
            return Items, ([1],), {"k": 2}

    slots = Slots()
    slots.a, slots.c = 1, Data(1, [2], 3)
    items = Items([1])
    items.z = {slots}
    return [Data(1, [slots, slots], lambda: 0), Choice.A, items, {Choice.A: Data(2)}, Reduced()]


def changing(values):
    """Gives the values after a change to their classes, so that plans are made again; new classes
    would be kept by their addresses, and hide what leaks."""
    classes = [type(v) for v in values if type(v) not in (dict, list)]

    def change():
        for cls in classes:
            type.__setattr__(cls, "changed", 1)
            type.__delattr__(cls, "changed")
        return values

    return change


def cases(scratch):
    """Name, what makes the argument (allocations there do not fail), what is called."""
    yield "fresh classes", fresh, ingot.fingerprint
    for name, value in corpus.corpus():
        if name != "deep":
            yield name, lambda value=value: value, ingot.fingerprint
    cache = ingot.FileCache(scratch)
    value = {"a": [1, 2.5, "three", b"x" * 300], "b": (None, True, 1 << 200)}
    step = ingot.CachedStep(corpus.helper)
    yield "put", lambda: value, lambda v: cache.put("k", v)
    yield "get", lambda: "k", cache.get
    yield "entries", lambda: "k", lambda k: k in cache and len(cache.entries())
    yield "step", lambda: 3, step


def python_fails(n):
    _testcapi.set_nomemory(n, n + 1)


def engine_fails(n):
    _core.fail_allocation(n + 1)


def again():
    _testcapi.remove_mem_hooks()
    _core.fail_allocation(0)


def outcome(call, value):
    try:
        return call(value)
    except MemoryError:
        return MemoryError
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def allowed(name, got, want):
    """NumPy's dtypes lose a MemoryError (SystemError, which fingerprints report), and so does
    Python 3.10 where it calls a function; a cache may miss or not store."""
    if got is MemoryError or got == want:
        return True
    if sys.version_info < (3, 11) and "NULL without setting an exception" in str(got):
        return True
    if name.startswith("np record") and "returned a result with an exception set" in str(got):
        return True
    return name in ("put", "get", "entries") and not got


def run(name, make, call, fail):
    """How many allocations of one call were made to fail."""
    want = outcome(call, make())
    n = quiet = 0
    while quiet < QUIET:
        value = make()
        fail(n)
        got = outcome(call, value)
        try:
            again()
        except MemoryError:  # the one that was to fail
            again()
        if not allowed(name, got, want):
            print(f"{name}, allocation {n}: {got!r} instead of {want!r}")
        after = outcome(call, value)
        if after != want:
            print(f"{name}, after allocation {n}: {after!r} instead of {want!r}")
        quiet = quiet + 1 if got == want else 0
        n += 1
    return n - QUIET


def main(scratch):
    total = sum(run(*case, fail) for case in cases(scratch) for fail in (python_fails, engine_fails))
    growth, each, changed = [], 0, changing(fresh())
    for _ in range(5):  # a leak is in every round
        gc.collect()
        before = sys.getallocatedblocks()
        each = sum(run("classes", changed, ingot.fingerprint, fail) for fail in (python_fails, engine_fails))
        gc.collect()
        growth.append(sys.getallocatedblocks() - before)
    print(f"failed {total} in a round {each} growth {min(growth)}")


if __name__ == "__main__":
    main(sys.argv[1])
