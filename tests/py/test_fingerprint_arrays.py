"""Memory of any shape has the fingerprint of its contiguous copy, and hashing it can be
interrupted."""

import gc
import random
import signal

import fingerprint_corpus as corpus
import pytest
from conftest import SEED, needs, samples
from fingerprint_checks import distinct, fp, same

DTYPES = ["i1", "i2", "<i4", ">i4", "f8", "c16", "S3", "U2", "S7", "V5", "g", "G", "M8[s]", "f2", "?"]


def view(rng, np):
    """An array of random bytes, and something strided made of it."""
    shape = [rng.randint(1, rng.choice([3, 9, 40])) for _ in range(rng.randint(0, 4))]
    dtype = np.dtype(rng.choice(DTYPES))
    count = int(np.prod(shape, dtype=int)) * dtype.itemsize
    a = np.frombuffer(rng.randbytes(count), dtype=dtype).reshape(shape)
    for _ in range(rng.randint(0, 3) if a.ndim else 0):
        a = a.transpose(rng.sample(range(a.ndim), a.ndim))
        a = a[tuple(slice(rng.randint(0, 2), None, rng.choice([1, 1, 2, 3, -1, -2])) for _ in range(a.ndim))]
        if rng.random() < 0.2:
            a = np.broadcast_to(a, (rng.randint(1, 4), *a.shape))
    return a


@needs("numpy")
def test_views_are_their_copies():
    import numpy as np

    rng = random.Random(SEED)
    for _ in range(samples(20000)):
        a = view(rng, np)
        assert fp(a) == fp(np.array(a, order="C", copy=True)), (a.shape, a.strides, a.dtype)


@needs("numpy")
@pytest.mark.parametrize("shape", [(1000, 1001), (3, 400_000), (400_000, 3), (60, 70, 80), (2, 3, 200_000)])
@pytest.mark.parametrize("dtype", ["i1", "i4", "f8", "g"])
def test_large_views(shape, dtype):
    """More than one slab, and slabs along each axis."""
    import numpy as np

    a = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    f = np.asfortranarray(a)
    same(a, f, f.T.copy().T)
    same(a[::-1, ::2], a[::-1, ::2].copy(), f[::-1, ::2])
    f[1, 1] += 1
    distinct(a, f)


@needs("numpy")
def test_what_lies_between_values_does_not_count():
    import numpy as np

    for dtype in ("g", "G"):
        a = np.zeros(100, dtype)
        b = np.frombuffer(bytes(a.nbytes), dtype).copy()
        memory = b.view("u1").reshape(-1, 16)
        memory[:, 10:] = 0xAB
        same(a, b, b[::-1], a.reshape(10, 10).T.reshape(-1))
    padded = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 24})
    one, two = np.zeros(5, padded), np.zeros(5, padded)
    two.view("u1").reshape(5, 24)[:, 1:8] = 7
    two.view("u1").reshape(5, 24)[:, 16:] = 7
    same(one, two)
    two["a"][0] = 1
    distinct(one, two)


@needs("numpy")
def test_records():
    import numpy as np

    packed = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (2,))])
    one = np.zeros((4, 6), packed)
    one["b"] = np.arange(24).reshape(4, 6)
    same(one, one.copy(), np.asfortranarray(one), one[::-1][::-1])
    same(one[::2, 1::2], one[::2, 1::2].copy())
    two = one.copy()
    two["c"][3, 5, 1] = 1
    distinct(one, two, one["b"], one.view([("x", "i1"), ("b", "f8"), ("c", "i2", (2,))]))
    mixed = np.zeros(2, [("a", "i4"), ("o", object)])
    same(mixed, mixed.copy())
    times = np.zeros(3, [("t", "M8[s]"), ("n", "i4")])
    same(times, times[::-1].copy())


# ---- interrupts --------------------------------------------------------------------------------------


class Last:
    """Says whether hashing came to the end."""

    reached = 0

    def __reduce__(self):
        Last.reached += 1
        return int, ()


def interrupted(value, error=KeyboardInterrupt):
    """Hashes the value with an alarm under way that raises; the end must not be reached."""

    def ring(*_):
        raise error

    Last.reached = 0
    gc.disable()  # errors in its callbacks, of which hypothesis has one, are lost
    old = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(error):
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                fp(value)
                assert not Last.reached, "nothing interrupted it"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        gc.enable()
    assert Last.reached == 0


def test_containers_are_interrupted():
    interrupted([list(range(3_000_000)), Last()])
    interrupted([{k: str(k) for k in range(500_000)}, Last()])
    interrupted([[corpus.Frozen(k) for k in range(300_000)], Last()])


def test_errors_of_handlers_are_no_refusals():
    interrupted([list(range(3_000_000)), Last()], TimeoutError)


@needs("numpy")
def test_memory_is_interrupted():
    import numpy as np

    flat = np.zeros(24 << 20)
    interrupted([flat, Last()])
    interrupted([flat.reshape(4096, -1).T, Last()], TimeoutError)
    interrupted([bytearray(200 << 20), Last()])


def ring_of(n):
    ring = top = []
    for _ in range(n - 1):
        ring.append([])
        ring = ring[0]
    ring.append(top)
    return top


def test_rings_unfold_alike():
    """However many lists there are; none costs time with the square of their number."""
    same(ring_of(1), ring_of(2), ring_of(200_000))


def test_cycles_are_interrupted():
    top = ring_of(200_000)
    old = signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(ZeroDivisionError):
            while True:
                fp(top)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f8", "c16", "longdouble", "V3"])
@needs("numpy")
def test_turned_blocks_and_their_edges(dtype):
    """Sides around those of the blocks in which axes are turned, and of runs at a stride."""
    import numpy as np

    size = np.dtype(dtype).itemsize
    for rows, columns in [(7, 9), (8, 8), (9, 17), (16, 24), (23, 65), (64, 100), (129, 31), (3, 1000), (1000, 5), (3, 4), (3, 1003)]:
        flat = np.arange(rows * columns, dtype="i4") % 251
        plain = np.zeros((rows, columns), dtype)
        if dtype == "V3":
            plain = np.frombuffer(np.random.default_rng(1).bytes(rows * columns * size), "V3").reshape(rows, columns)
        else:
            plain[...] = flat.reshape(rows, columns)
        for view in (np.asfortranarray(plain), plain.T, plain[::-1], plain[:, ::-1], plain[:, ::2], plain[::2, 1::3],
                     plain[::-1, ::-1].T, np.asfortranarray(plain)[1:, 1:], plain.T[::2]):
            assert fp(view) == fp(np.ascontiguousarray(view)), (rows, columns, view.strides)
    cube = (np.arange(20 * 18 * 33) % 251).astype("i4" if dtype in ("V3", "longdouble") else dtype).reshape(20, 18, 33)
    for axes in [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        view = cube.transpose(axes)
        assert fp(view) == fp(np.ascontiguousarray(view)) and fp(view[:, 1::2]) == fp(view[:, 1::2].copy())


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f8", "c16", "g", "G", "S3", "S12", "S40", "S1024"])
@needs("numpy")
def test_layouts_of_any_size(dtype):
    """Axes of lengths around those of blocks, runs and lines, turned, with gaps and backwards, up to several slabs."""
    import numpy as np

    rng = random.Random(f"{SEED} {dtype}")
    size = np.dtype(dtype).itemsize
    for _ in range(samples(2000)):
        left = rng.choice([300, 5000, 200_000, 1_000_000]) // size + 8
        shape = []
        for _ in range(rng.randint(1, 5)):
            shape.append(max(1, min(left, rng.choice([2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 128, 256, 1024, left]))))
            left //= shape[-1]
        rng.shuffle(shape)
        bytes_ = np.frombuffer(rng.randbytes(4096) * (int(np.prod(shape)) * size // 4096 + 1), "u1")
        if dtype in "gG":
            a = bytes_[: int(np.prod(shape))].astype(dtype).reshape(shape)
        else:
            a = bytes_[: int(np.prod(shape)) * size].view(dtype).reshape(shape)
        a = a.transpose(rng.sample(range(a.ndim), a.ndim))
        if rng.random() < 0.7:
            steps = [1, 1, 1, 2, 3, -1, -2, -3, 5, 17]
            a = a[tuple(slice(rng.choice([None, 1]), rng.choice([None, None, -1]), rng.choice(steps)) for _ in shape)]
        assert fp(a) == fp(np.array(a, order="C", copy=True)), (a.shape, a.strides)
