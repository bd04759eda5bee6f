"""Run by test_nomemory.py in a process of its own: each allocation fails once, of Python or of
the engine, while kernels are decorated, compiled, found again and called. The result is the
right one or MemoryError, then and afterwards. Prints what went wrong, and how often an
allocation was made to fail."""

import dataclasses
import enum
import math
import sys

import _testcapi
import ingot as qd
from ingot import _core

QUIET = 25  # so many in a row without effect: there are no more allocations


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@dataclasses.dataclass
class Cell:
    weight: qd.f32
    values: qd.types.ndarray(qd.i32, 1)


@qd.data_oriented
class Sim:
    def __init__(self, n):
        self.n, self.mode, self.table = n, Mode.FAST, {"a": n, "b": (1, 2.5)}
        self.data = qd.ndarray(qd.i32, shape=(4,))

    @qd.kernel
    def step(self):
        for i in range(4):
            self.data[i] = self.n + qd.static(self.table["a"])


N, NAMES, CELL = 3, {"x": 1, "y": 2}, None


def plain():
    a = qd.ndarray(qd.i32, shape=(4,))

    @qd.kernel
    def k(a: qd.types.ndarray(qd.i32, 1), x: qd.i32) -> qd.i32:
        for i in range(4):
            a[i] = x + N
        return a[3] + qd.static(len(NAMES))

    return lambda: (k(a, 2), a[0])


def funcs():
    @qd.func
    def twice(x: qd.template(), y=2):
        return x * y

    @qd.kernel
    def k(n: qd.i32, mode: qd.template()) -> qd.f32:
        s = 0.0
        for j in qd.static(range(3)):
            s += twice(qd.cast(j, qd.f32)) * math.pi
        if qd.static(mode is Mode.FAST):
            s = s + NAMES["y"]
        return s + n

    return lambda: round(k(1, Mode.FAST), 3)


def objects():
    sim = Sim(5)
    cell = Cell(0.5, sim.data)

    @qd.kernel
    def total(c: Cell) -> qd.f32:
        s = 0.0
        for i in range(4):
            s += c.values[i] * c.weight
        return s

    def call():
        sim.step()
        return total(cell)

    return call


def numbers():
    from numpy import arange, float32

    a = arange(4, dtype=float32)

    @qd.kernel
    def k(a: qd.types.ndarray(), v: qd.types.vector(3, qd.f32)) -> qd.types.vector(2, qd.f32):
        for i in a:
            a[i] = v[1]
        return qd.Vector([v[0] + v[2], v[1]])

    return lambda: k(a, [1, 2, 3])._entries


def mistakes():
    def wrong(x: qd.i32):
        y = x + undefined_name  # noqa: F821
        return y.shape  # noqa: B018

    k = qd.kernel(wrong)

    def call():
        try:
            k(1)
        except qd.IngotNameError as e:
            return str(e)

    return call


CASES = [plain, funcs, objects, numbers, mistakes]


def python_fails(n):
    _testcapi.set_nomemory(n, n + 1)


def engine_fails(n):
    _core.fail_allocation(n + 1)


def again():
    _testcapi.remove_mem_hooks()
    _core.fail_allocation(0)


def outcome(call):
    try:
        return call()
    except MemoryError:
        return MemoryError
    except Exception as e:
        return f"{type(e).__name__}: {e}"


@qd.kernel
def nothing():
    pass


def prepare(make, mode):
    """What is called while an allocation fails. Never what parses or evaluates text or imports
    modules: CPython's parser and importer themselves crash without memory."""
    call = make()
    call()
    if mode == "lowered":  # again, from the trees that there are
        qd.init(arch=qd.interp)
    elif mode == "replayed":  # by a kernel that was never called, from the cache on disk
        qd.init(arch=qd.cpu)
        call = make()
    nothing()
    return call


def is_lost(got):
    """CPython itself has lost the MemoryError: a function that is none of ours returned nothing
    without an error, or something with one, and its caller says so, as Python 3.10 does."""
    text = str(got)
    return (text.startswith("SystemError: ") and "ingot" not in text and
            ("returned NULL without setting an exception" in text or
             "returned a result with an exception set" in text))


def run(make, fail, mode):
    """How many allocations were made to fail."""
    want = outcome(make())
    n = quiet = 0
    while quiet < QUIET:
        call = prepare(make, mode)
        fail(n)
        got = outcome(call)
        try:
            again()
        except MemoryError:  # the one that was to fail
            again()
        if got is not MemoryError and got != want and not is_lost(got):
            print(f"{make.__name__} {mode}, allocation {n}: {got!r} instead of {want!r}", flush=True)
        after = outcome(call)
        if after != want:
            print(f"{make.__name__} {mode}, after allocation {n}: {after!r}, not {want!r}", flush=True)
        quiet = quiet + 1 if got == want else 0
        n += 1
    return n - QUIET


def main(names):
    total = 0
    for mode in ("called", "lowered", "replayed"):
        qd.init(arch=qd.cpu if mode == "replayed" else qd.interp)
        for make in CASES:
            if (not names or make.__name__ in names) and not (make is mistakes and mode == "replayed"):
                total += run(make, python_fails, mode) + run(make, engine_fails, mode)
    print(f"failed {total}")


if __name__ == "__main__":
    main(sys.argv[1:])
