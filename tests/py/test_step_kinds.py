"""CachedStep on what people decorate: functions, methods, coroutines, generators; and chains."""

import asyncio
import collections
import functools
import inspect
import pickle
import subprocess
import sys
import textwrap
import threading
import types
import typing
import warnings

import pytest

import ingot
from ingot import CachedStep, FileCache, Fingerprinter, StepSequence, _flight
from ingot.fingerprint import FingerprintError, Identity, Pieces

class Notes:
    """What steps write down: it says that it has no state, so it is no part of a step that names it."""

    def __init__(self):
        self.calls = []

    def __reduce__(self):
        return Notes, ()


_notes = Notes()
_calls = _notes.calls


def note(x):
    _notes.calls.append(x)


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    monkeypatch.delenv("INGOT_CACHE_SALT", raising=False)
    _calls.clear()
    return _calls


@CachedStep
def decorated(x: int, y: int = 2) -> int:
    """Adds."""
    note((x, y))
    return x + y


decorated.step.colour = "red"


class Body:
    def __init__(self, mass):
        self.mass = mass

    def factor(self):
        return 2

    @CachedStep
    def weight(self, g=10):
        """Of a body."""
        note(self.mass)
        return self.mass * g * self.factor()

    @classmethod
    @CachedStep
    def kind(cls, x):
        note(x)
        return cls.__name__, x

    @staticmethod
    @CachedStep
    def twice(x):
        note(x)
        return 2 * x


class Other(Body):
    pass


# ---- as functools.wraps makes it ---------------------------------------------------------------


def test_wraps():
    f = decorated.step
    assert decorated.__wrapped__ is f and inspect.unwrap(decorated) is f
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(decorated, name) == getattr(f, name)
    assert decorated.__name__ == "decorated" and decorated.__doc__ == "Adds."
    assert inspect.signature(decorated) == inspect.signature(f)
    assert typing.get_type_hints(decorated) == {"x": int, "y": int, "return": int}
    assert decorated.colour == "red"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        decorated.nothing
    # The class has its own.
    assert CachedStep.__module__ == "ingot._steps" and "unless" in CachedStep.__doc__
    assert "step" in typing.get_type_hints(CachedStep)
    assert functools.wraps(f)(lambda: 0).__dict__["__wrapped__"] is f


def test_what_is_borrowed_is_no_state():
    """A step inside another counts as what it caches, with or without calls before."""
    a, b = CachedStep(pow), CachedStep(pow)
    before = ingot.fingerprint(a)
    a(2, 3), a.__doc__, a.__wrapped__
    assert ingot.fingerprint(a) == before == ingot.fingerprint(b)


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(CachedStep(len)))([1]) == 1
    bound = pickle.loads(pickle.dumps(Body(30).weight))
    assert bound() == 600


# ---- calls -------------------------------------------------------------------------------------------


def test_forms_of_one_call(calls):
    assert decorated(1) == decorated(x=1) == decorated(1, 2) == decorated(1, y=2) == 3
    assert decorated(y=2, x=1) == 3 and calls == [(1, 2)]
    with pytest.raises(TypeError, match=r"decorated\(\) missing 1 required positional"):
        decorated()
    with pytest.raises(TypeError, match=r"decorated\(\) got an unexpected keyword argument 'z'"):
        decorated(1, z=2)
    assert calls == [(1, 2)]


MISSING = object()


def test_forms_of_calls_with_more_parameters(calls):
    @CachedStep
    def f(a, /, b=MISSING, *rest, c, d=4, **others):
        note((a, b is MISSING, rest, c, d, others))
        return len(_calls)

    same = [f(1, c=3), f(1, c=3, d=4), f(1, d=4, c=3)]
    assert same == [1, 1, 1]
    assert f(1, 2, c=3) == f(1, c=3, b=2) == 2
    assert f(1, 2, 3, c=3) == 3 and f(1, 2, (3,), c=3) == 4
    assert f(1, c=3, e=5, g=6) == f(1, c=3, g=6, e=5) == 5
    assert f(1, c=3, others={}) == 6 and f(1, c=3, rest=()) == 7
    assert len(calls) == 7


def test_a_builtin_without_a_signature():
    step = CachedStep(collections.deque)
    assert step([1]) is step([1]) and step([1], maxlen=3) is not step([1])
    assert CachedStep(max)(1, 2) == 2


def test_a_mutable_default_counts_as_it_is():
    table = [1]

    def f(x, table=table):
        return x + len(table)

    step = CachedStep(f)
    assert step(1) == 2
    table.append(2)
    assert step(1) == 3


# ---- methods ---------------------------------------------------------------------------------------


def test_methods(calls):
    a, b, c = Body(3), Body(3), Body(4)
    assert a.weight() == b.weight() == Body.weight(a) == a.weight(10) == a.weight(g=10) == 60
    assert calls == [3]
    assert c.weight() == 80 and calls == [3, 4]
    a.mass = 5  # by value, not by identity
    assert a.weight() == 100 and calls == [3, 4, 5]
    assert a.weight.__name__ == "weight" and Body.weight.__doc__ == "Of a body."
    assert isinstance(Body.weight, CachedStep) and a.weight.__self__ is a


def test_methods_of_classes(calls):
    assert Body.kind(1) == Body(1).kind(1) == ("Body", 1) and Other.kind(1) == ("Other", 1)
    assert Body.twice(4) == Body(1).twice(4) == 8 and calls == [1, 1, 4]


METHODS = """
    import functools, sys, ingot

    on_disk = functools.partial(ingot.CachedStep, cache=ingot.FileCache(sys.argv[1]))

    class Body:
        def __init__(self, mass): self.mass = mass
        def factor(self): return 2
        @on_disk
        def weight(self, g=10):
            print("runs", end=" ")
            return self.mass * g * self.factor()

    @on_disk
    def double(x):
        print("runs", end=" ")
        return x * 2

    if __name__ == "__main__":
        print(Body(3).weight(), double(4))
"""


def run(path, *args):
    done = subprocess.run([sys.executable, "-B", str(path), *map(str, args)], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_decorated_on_disk(tmp_path):
    """By a decorator, before the name exists; an edited method that it calls is seen."""
    program, text = tmp_path / "prog.py", textwrap.dedent(METHODS)
    program.write_text(text)
    assert run(program, tmp_path / "c") == "runs runs 60 8"
    assert run(program, tmp_path / "c") == "60 8"
    program.write_text(text.replace("return 2", "return 3"))
    assert run(program, tmp_path / "c") == "runs 90 8"
    program.write_text(text.replace("x * 2", "x * 3"))
    assert run(program, tmp_path / "c") == "runs 60 12"


def test_on_disk_after_the_decorator(tmp_path, calls):
    step = decorated.persistent(tmp_path / "c")
    assert step(1) == step(x=1) == 3 and calls == [(1, 2)]
    with pytest.raises(FingerprintError, match="lambda"):
        CachedStep(lambda x: x, FileCache(tmp_path / "c"))


# ---- generators --------------------------------------------------------------------------------------


@CachedStep
def rows(n):
    note(n)
    for k in range(n):
        yield k * k


def test_generators(tmp_path, calls):
    for step in (rows, rows.persistent(tmp_path / "c"), rows.persistent(tmp_path / "c")):
        assert list(step(3)) == list(step(3)) == [0, 1, 4]
        it = step(3)
        assert next(it) == 0 and next(it) == 1 and next(step(3)) == 0
    assert calls == [3, 3]
    with pytest.raises(TypeError, match="asynchronous generator.*cannot be cached"):

        @CachedStep
        async def stream():
            yield 1


def test_results_that_can_be_read_once(calls):
    """Each caller gets its own; none is remembered."""
    for f in (lambda n: (k for k in range(n)), lambda n: map(str, range(n)), lambda n: iter([n])):
        step = CachedStep(f)
        with pytest.warns(RuntimeWarning, match="read once") as seen:
            first, second = list(step(2)), list(step(2))
        assert first == second and first and len(seen) == 1 and len(step.cache) == 0


# ---- coroutines ----------------------------------------------------------------------------------------


@CachedStep
async def fetch(n):
    note(n)
    await asyncio.sleep(0.01)
    return {"n": n}


def test_coroutines(tmp_path, calls):
    assert inspect.iscoroutinefunction(fetch) or asyncio.iscoroutinefunction(fetch)
    for step in (fetch, fetch.persistent(tmp_path / "c"), fetch.persistent(tmp_path / "c")):

        async def twice(step=step):
            return [await step(1), await step(n=1), *await asyncio.gather(*[step(2)] * 1, step(2))]

        assert asyncio.run(twice()) == [{"n": 1}] * 2 + [{"n": 2}] * 2
    assert calls == [1, 2, 1, 2]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_tasks_run_it_once(where, tmp_path, calls):
    step = fetch.in_memory() if where == "memory" else fetch.persistent(tmp_path / "c")

    async def many():
        return await asyncio.gather(*[step(k % 5) for k in range(50)])

    assert asyncio.run(many()) == [{"n": k % 5} for k in range(50)] and sorted(calls) == [*range(5)]


def test_loops_in_threads_run_it_once(calls):
    step, gate, results = fetch.in_memory(), threading.Barrier(4), []

    def work():
        async def all_of_them():
            return [await step(k) for k in range(5)]

        gate.wait()
        results.append(asyncio.run(all_of_them()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[{"n": k} for k in range(5)]] * 4 and sorted(calls) == [*range(5)]


def test_a_task_that_fails_or_is_cancelled_holds_up_nobody(calls):
    @CachedStep
    async def hang(x):
        note(x)
        if len(_calls) == 1:
            await asyncio.sleep(600)
        return x

    async def main():
        first = asyncio.create_task(hang(1))
        await asyncio.sleep(0)
        second = asyncio.create_task(hang(1))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(main()) == 1 and calls == [1, 1]


def test_a_coroutine_that_needs_itself():
    @CachedStep
    async def again(x):
        return await asyncio.gather(again(x))

    with pytest.raises(RuntimeError, match="same input"):
        asyncio.run(again(1))


def test_waiting_for_a_task_is_bounded(calls):
    @functools.partial(CachedStep, wait=0.05)
    async def hang(x):
        note(x)
        await asyncio.sleep(0 if len(_calls) > 1 else 600)
        return x

    async def main():
        first = asyncio.create_task(hang(1))
        await asyncio.sleep(0)
        result = await hang(1)
        first.cancel()
        return result

    assert asyncio.run(main()) == 1 and calls == [1, 1]


PROCESS = """
    import asyncio, os, sys, time
    import ingot
    async def step(x):
        with open(sys.argv[2], "ab", buffering=0) as out:
            out.write(b"%d\\n" % x)
        await asyncio.sleep(0.02)
        return x * x
    async def main():
        cached = ingot.CachedStep(step).persistent(sys.argv[1])
        out = await asyncio.gather(*[cached(k) for k in range(10)])
        print(out == [k * k for k in range(10)])
    asyncio.run(main())
"""


def test_tasks_of_processes_run_it_once(tmp_path):
    program = tmp_path / "prog.py"
    program.write_text(textwrap.dedent(PROCESS))
    args = [sys.executable, str(program), str(tmp_path / "c"), str(tmp_path / "log")]
    started = [subprocess.Popen(args, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [p.communicate(timeout=120)[0] for p in started] == ["True\n"] * 4
    assert sorted(map(int, (tmp_path / "log").read_text().split())) == [*range(10)]


def test_a_loop_goes_on_while_a_task_waits_for_a_lease(tmp_path, calls):
    step = fetch.persistent(tmp_path / "c")
    lease = step.cache._core.take(step.key(1), 60.0)

    async def release_later():
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert calls == []
        step.cache._core.release(lease)

    async def main():
        return (await asyncio.gather(step(1), release_later()))[0]

    assert asyncio.run(main()) == {"n": 1} and calls == [1]


# ---- fingerprinters ------------------------------------------------------------------------------------


class Job:
    def __init__(self, name, size):
        self.name, self.size = name, size


def size_of(job):
    note(job.size)
    return job.size


def by_size(job):
    return Pieces("job", [job.size])


def by_name(job):
    return Pieces("job", [job.name])


def test_fingerprinters(tmp_path, calls):
    sizes = CachedStep(size_of, fingerprinter=Fingerprinter(overrides={Job: by_size}))
    assert sizes(Job("a", 4)) == sizes(Job("b", 4)) == 4 and calls == [4]
    skipping = CachedStep(size_of, fingerprinter=Fingerprinter(skip={(Job, "name")}))
    assert skipping(Job("a", 5)) == skipping(job=Job("b", 5)) == 5 and calls == [4, 5]
    assert sizes.persistent(tmp_path / "c").fingerprinter is sizes.fingerprinter
    again = pickle.loads(pickle.dumps(CachedStep(size_of, fingerprinter="lenient")))
    assert again.fingerprinter.variant == "lenient"
    with pytest.raises(TypeError, match="fingerprinter is a Fingerprinter"):
        CachedStep(size_of, fingerprinter=hash)
    with pytest.raises(ValueError, match="variant"):
        CachedStep(size_of, fingerprinter="loose")


def test_other_rules_are_other_keys(tmp_path, calls):
    """In one directory, what one rule takes for equal is nothing to another."""
    cache = FileCache(tmp_path / "c")
    for fp in (None, Fingerprinter(overrides={Job: by_size}), Fingerprinter(overrides={Job: by_name})):
        assert CachedStep(size_of, cache, fingerprinter=fp)(Job(7, 8)) == 8
        assert CachedStep(size_of, cache, fingerprinter=fp)(Job(8, 7)) == 7
    assert calls == [8, 7] * 3
    keys = [CachedStep(size_of, cache, k).key(Job(1, 1)) for k in (by_size, by_name)]
    assert keys[0] != keys[1]


def test_lenient_steps_on_disk(tmp_path, calls):
    """Who asks for it gets functions without a name, by their content."""
    for hits in (0, 1):
        step = CachedStep(lambda x: x + 1, FileCache(tmp_path / "c"), fingerprinter="lenient")
        assert step(1) == 2 and step.cache.stats()["hits"] == hits


def test_identity_through_a_fingerprinter(tmp_path):
    step = CachedStep(len, fingerprinter=Fingerprinter(overrides={list: Identity_of}))
    a = [1]
    key = step.key(Identity(a))
    assert key == step.key(Identity(a)) and key._held and key != step.key(a)
    with pytest.raises(TypeError, match="this process only"):
        step.persistent(tmp_path / "c")(Identity(a))


def Identity_of(x):
    return NotImplemented


# ---- chains ------------------------------------------------------------------------------------------------


def parse(x):
    note("parse")
    return int(x)


def half(x):
    note("half")
    return x + 0.5


def show(x):
    note("show")
    return str(x)


def test_chains(calls):
    chain = StepSequence.start(parse).chain(half).chain(show)
    assert chain("73") == "73.5" and chain.steps == (parse, half, show)
    assert CachedStep(parse).chain(half)("1") == 1.5
    assert StepSequence([parse])("1") == 1 and StepSequence(())("x") == "x"
    with pytest.raises(TypeError, match="callable"):
        chain.chain(5)
    whole = CachedStep(chain)
    calls.clear()
    assert whole("2") == whole("2") == "2.5" and calls == ["parse", "half", "show"]
    assert whole.key("2") != CachedStep(StepSequence((parse, show, half))).key("2")


def test_each_step_of_a_chain_has_its_own_key(tmp_path, calls):
    chain = StepSequence.start(parse).chain(half).chain(show)
    for kept in (chain.in_memory(), chain.persistent(tmp_path / "c")):
        calls.clear()
        assert kept("73") == kept("73") == "73.5" and calls == ["parse", "half", "show"]
        assert kept(" 73 ") == "73.5" and calls[3:] == ["parse"]  # the rest is known
    other = StepSequence((parse, half, repr)).persistent(tmp_path / "c")
    calls.clear()
    assert other("73") == "73.5" and calls == []
    assert len(FileCache(tmp_path / "c")) == 5


def test_chains_of_coroutines(calls):
    async def up(x):
        await asyncio.sleep(0)
        return x + 1

    chain = StepSequence.start(parse).chain(up).chain(half).chain(up)
    assert asyncio.run(chain("1")) == 3.5
    cached = CachedStep(chain)

    async def twice():
        return [await cached("1"), await cached("1")]

    calls.clear()
    assert asyncio.run(twice()) == [3.5, 3.5] and calls == ["parse", "half"]


def test_no_warnings_in_ordinary_use(tmp_path, calls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = decorated.persistent(tmp_path / "c")
        assert step(5) == step(5) == 7
        assert list(rows(2)) == [0, 1]


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


@pytest.mark.parametrize("wrap, read", [
    (lambda it: (1, it), lambda r: r[1]),
    (lambda it: {"a": [it]}, lambda r: r["a"][0]),
    (lambda it: Slotted({"a": it}), lambda r: r.inner["a"]),
    (lambda it: types.SimpleNamespace(a=(it,)), lambda r: r.a[0]),
])
def test_iterators_inside_a_result(wrap, read):
    """What can be read once only is not remembered, wherever in the result it is."""
    step = ingot.CachedStep(lambda n: wrap(iter(range(n))))
    with pytest.warns(UserWarning) as seen:
        assert list(read(step(3))) == list(read(step(3))) == [0, 1, 2]
    assert len(seen) == 1


def test_results_are_looked_into_without_a_lock():
    """What isinstance() asks of an object is its own code, which may call steps."""
    held = []

    class Curious:
        @property
        def __class__(self):
            held.append(_flight._lock.locked())
            return type(self)

    step = ingot.CachedStep(lambda n: [Curious()] * n, cache=ingot.MemoryCache())
    assert len(step(3)) == 3 and held and not any(held)


def test_an_iterator_behind_many_numbers():
    step = ingot.CachedStep(lambda n: [*range(n), {"deep": (iter("ab"),)}])
    with pytest.warns(UserWarning, match="read once"):
        assert list(step(100_000)[-1]["deep"][0]) == ["a", "b"]
    assert not _flight.used_up([*range(100_000)]) and not _flight.used_up({k: str(k) for k in range(1000)})
