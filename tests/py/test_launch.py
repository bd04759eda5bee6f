"""Launching: arguments and what is refused, returns, references, small and large sizes."""

import gc
import re
import sys

import numpy as np
import pytest

import ingot as qd

TARGETS = {"native": qd.cpu, "interp": qd.interp, "mock": qd._arch.mock}


@pytest.fixture(params=TARGETS, autouse=True)
def target(request):
    qd.init(arch=TARGETS[request.param])
    return request.param


@qd.kernel
def fill(x: qd.types.ndarray(), v: qd.f32):
    for i in range(x.shape[0]):
        x[i] = v


@qd.kernel
def add2d(a: qd.types.ndarray(dtype=qd.i32, ndim=2), b: qd.types.NDArray[qd.i32, 2]):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += b[i, j] * 2


@qd.kernel
def scalars(n: qd.i32, x: qd.f64, flag: qd.u1, big: qd.u64) -> qd.f64:
    r = x * n
    if flag:
        r = r + 0.5
    return r + qd.cast(big, qd.f64)


@qd.kernel
def nothing():
    pass


def test_fill_and_sizes():
    for n in (0, 1, 7, 1000):
        x = qd.ndarray(qd.f32, n)
        fill(x, 2.5)
        assert [x[i] for i in range(n)] == [2.5] * n


def test_large():
    if qd.cfg.arch == qd.interp:
        n = 50_000
    else:
        n = 3_000_000
    x = qd.ndarray(qd.f32, n)
    fill(x, 1.5)
    assert (x.to_numpy() == 1.5).all()


def test_two_dimensions():
    a, b = qd.ndarray(qd.i32, (5, 7)), qd.ndarray(qd.i32, (5, 7))
    b.from_numpy(np.arange(35, dtype=np.int32).reshape(5, 7))
    add2d(a, b)
    add2d(a, b)
    assert (a.to_numpy() == 4 * np.arange(35).reshape(5, 7)).all()


def test_scalars_and_return():
    assert scalars(3, 1.5, True, 2) == 7.0
    assert scalars(3, 1.5, False, 0) == 4.5
    assert scalars(-3, 2, 0, 10) == 4.0
    assert scalars(0, 0.0, 0, 2**63) == 2.0**63
    assert nothing() is None


def test_keywords_and_defaults():
    @qd.kernel
    def k(x: qd.types.ndarray(), a: qd.i32 = 5, *, b: qd.i32 = 7):
        x[0] = a
        x[1] = b

    x = qd.ndarray(qd.i32, 2)
    for args, kwargs, want in [((x,), {}, (5, 7)), ((x, 1), {}, (1, 7)),
                               ((), {"b": 2, "x": x}, (5, 2)), ((x,), {"b": 4, "a": 3}, (3, 4))]:
        k(*args, **kwargs)
        assert (x[0], x[1]) == want


def test_numpy_arguments():
    for t in (np.float32, np.float64, np.int32, np.int8, np.uint16, np.float16):
        x = np.zeros(9, t)
        fill(x, 3)
        assert (x == 3).all()
    b = np.ones((2, 3), np.int32)
    a = np.zeros((2, 3), np.int32)
    add2d(a, b)
    assert (a == 2).all()
    locked = np.zeros(4, np.float32)
    locked.flags.writeable = False
    with pytest.raises(qd.IngotArgumentError, match="read-only"):
        fill(locked, 1)


def place(error, line):
    """The error names this file, that line, and shows a caret."""
    text = str(error.value)
    assert re.search(rf"test_launch\.py:{line}:\d+", text), text
    assert "^" in text, text
    return text


def line_of(kernel, offset=1):
    return kernel.__wrapped__.__code__.co_firstlineno + offset


@pytest.mark.parametrize("args, match", [
    ((), "Missing argument 'x' of fill"),
    ((1, 2, 3), "Too many arguments: fill takes 2, found 3"),
    ((5, 1.0), "must be an array, not int"),
    ((None, 1.0), "must be an array"),
    (("text", 1.0), "must be an array"),
    ((np.zeros((4, 4))[:, 1], 1.0), "Non contiguous"),
    ((np.zeros(4, complex), 1.0), "not supported"),
    ((np.zeros(4), "x"), "must be a number"),
    ((np.zeros(4), None), "must be a number"),
    ((np.zeros(4), [1]), "must be a number"),
])
def test_bad_arguments(args, match):
    with pytest.raises(TypeError, match=match) as error:
        fill(*args)
    place(error, line_of(fill))
    x = qd.ndarray(qd.f32, 3)
    fill(x, 4)  # usable afterwards
    assert x[2] == 4


def test_bad_arrays():
    good = qd.ndarray(qd.i32, (2, 2))
    for bad, match in [(qd.ndarray(qd.f32, (2, 2)), "Expect element type i32 for argument ., but get f32"),
                       (qd.ndarray(qd.i32, 4), r"required ndim=2, but 1d ndarray with shape \(4,\)"),
                       (np.zeros((2, 2), np.int64), "array with dtype=i64")]:
        with pytest.raises(qd.IngotArgumentError, match=match) as error:
            add2d(good, bad)
        place(error, line_of(add2d))
        with pytest.raises(qd.IngotArgumentError, match=match):
            add2d(bad, good)
    add2d(good, good)


def test_scalars_out_of_range():
    for args in [(2**31, 0.0, 0, 0), (-(2**31) - 1, 0.0, 0, 0), (0, 0.0, 2, 0),
                 (0, 0.0, 0, -1), (0, 0.0, 0, 2**64), (10**30, 0.0, 0, 0)]:
        with pytest.raises(qd.IngotArgumentError, match="does not fit"):
            scalars(*args)
    with pytest.raises(qd.IngotArgumentError, match="must be an integer"):
        scalars(1.5, 0.0, 0, 0)


def test_unknown_keyword_and_twice():
    x = qd.ndarray(qd.f32, 1)
    with pytest.raises(qd.IngotCallError, match="Unexpected argument 'w' of fill"):
        fill(x, w=1)
    with pytest.raises(qd.IngotCallError, match="Multiple values for argument 'v' of fill"):
        fill(x, 1.0, v=1)


def with_parameters(n):
    names = [f"p{i}" for i in range(n)]
    text = f"def k({', '.join(f'{p}: qd.i32' for p in names)}) -> qd.i64:\n    return p0 + p{n - 1}\n"
    scope = {"qd": qd}
    exec(text, scope)
    return qd.kernel(source=text)(scope["k"])


def test_the_most_parameters():
    assert with_parameters(512)(*range(512)) == 511
    with pytest.raises(qd.IngotCallError, match="Too many arguments: k takes 512, found 513"):
        with_parameters(512)(*range(513))
    for call in (lambda k: k(*range(513)), lambda k: k(**{f"p{i}": i for i in range(513)})):
        with pytest.raises(qd.IngotSyntaxError, match="has 513 parameters; at most 512"):
            call(with_parameters(513))


def test_missing_annotation():
    @qd.kernel
    def bad(x):
        x[0] = 1

    with pytest.raises(qd.IngotSyntaxError, match="has no type annotation") as error:
        bad(qd.ndarray(qd.f32, 1))
    place(error, line_of(bad))


def test_no_source_text():
    scope = {"qd": qd}
    exec("def k(x: qd.types.ndarray()):\n    x[0] = 3\n", scope)
    bare = qd.kernel(scope["k"])
    with pytest.raises(qd.IngotSyntaxError, match="linecache"):
        bare(qd.ndarray(qd.f32, 1))
    given = qd.kernel(source="def k(x: qd.types.ndarray()):\n    x[0] = 3\n")(scope["k"])
    x = qd.ndarray(qd.f32, 1)
    given(x)
    assert x[0] == 3


def test_methods():
    class Thing:
        @qd.kernel
        def set(self, x: qd.types.ndarray(), v: qd.i32):
            x[0] = v

        @staticmethod
        @qd.kernel
        def clear(x: qd.types.ndarray()):
            x[0] = 0

    x = qd.ndarray(qd.i32, 1)
    thing = Thing()
    thing.set(x, 4)
    assert x[0] == 4
    bound = thing.set
    bound(x, 5)
    assert x[0] == 5
    Thing.clear(x)
    assert x[0] == 0


def repeat_and_compare(action, *watched, n=400):
    """No reference is lost or left behind by `action`. Blocks are counted over three rounds,
    because caches of the interpreter fill up now and then: the best round must be flat."""
    for _ in range(n // 4):
        action()
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    growth = []
    for _ in range(3):
        blocks = sys.getallocatedblocks()
        for _ in range(n):
            action()
        gc.collect()
        growth.append(sys.getallocatedblocks() - blocks)
    assert [sys.getrefcount(w) for w in watched] == before
    assert min(growth) < n // 4, growth


def test_references_of_launches():
    x = qd.ndarray(qd.f32, 4)
    a = np.zeros(4, np.float32)
    v = 2.5
    repeat_and_compare(lambda: fill(x, v), x, v, fill)
    repeat_and_compare(lambda: fill(a, v), a, v, fill)
    repeat_and_compare(lambda: fill(x=x, v=v), x, v, fill)
    repeat_and_compare(lambda: scalars(1, 2.0, 1, 3), scalars)


def test_references_of_errors():
    x = qd.ndarray(qd.f32, 4)

    def fails():
        with pytest.raises(qd.IngotArgumentError):
            fill(x, "text")

    repeat_and_compare(fails, x, fill, n=200)


def test_references_of_decorating_and_compiling():
    def go():
        @qd.kernel
        def k(x: qd.types.ndarray(), n: qd.template()):
            for i in range(x.shape[0]):
                x[i] = n

        k(x, 3)

    x = qd.ndarray(qd.f32, 4)
    repeat_and_compare(go, x, n=200)


def test_decorating_is_cheap():
    """A thousand decorated functions read their file once and parse nothing."""
    from ingot import _core

    before = _core.counters()["parses"]
    made = [qd.kernel(fill.__wrapped__) for _ in range(1000)]
    assert len(made) == 1000
    assert _core.counters()["parses"] == before
