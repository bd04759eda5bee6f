"""What holds for fingerprints of all kinds: identity, order, depth, cycles, variants."""

import copy
import gc
import pickle
import sys
import types
import weakref

import fingerprint_corpus as corpus
import pytest
from fingerprint_checks import distinct, fp, lenient, same
from ingot import Identity, Ordered


# The numbers are those of docs/internals/fingerprint-rules.md.


def test_semantic_types_change_the_key():  # 1
    numpy = pytest.importorskip("numpy")
    distinct(numpy.int32(1), numpy.float64(1), 1, 1.0)


def test_identity():  # 4
    keys, tables = [], []
    for k in range(50):
        table = {k: k}
        keys.append(fp(Identity(table)))
        del table
    assert len(set(keys)) == 50
    big = list(range(1000))
    assert fp(Identity(big)) == fp(Identity(big)) != fp(Identity(list(big)))
    key = fp([Identity(big)])
    big.append(1)
    assert fp([Identity(big)]) == key
    tables.append(corpus.Plain())
    ref = weakref.ref(tables[0])
    key = fp({"a": Identity(tables[0])})
    tables.clear()
    gc.collect()
    assert ref() is not None
    del key
    gc.collect()
    assert ref() is None


def test_ordered_wrapper():  # 5
    one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    same(one, two)
    distinct(Ordered(one), Ordered(two), one)
    same(Ordered(one), Ordered(dict(one)))


def test_hashing_leaves_no_trace():  # 11
    value = corpus.Settings(1, tags={"a"})
    value.extra = [1, 2]
    before = pickle.dumps(value)
    attributes = set(vars(value)), set(vars(type(value)))
    fp(value)
    assert pickle.dumps(value) == before and copy.deepcopy(value) == value
    assert (set(vars(value)), set(vars(type(value)))) == attributes


def test_any_depth():  # 12
    assert fp(corpus.deep(100_000)) == fp(corpus.deep(100_000)) != fp(corpus.deep(99_999))
    node = None
    for k in range(100_000):
        node = corpus.Frozen(k % 3, node)
    assert fp(node)
    while node:  # freeing it would recurse
        node = node.y


def test_copies_equal_shared_references():
    part = [1, {"x": (2, 3)}]
    same([part, part], [part, copy.deepcopy(part)])
    key = corpus.Frozen([1], [2])
    same({"a": key, "b": key}, {"a": key, "b": copy.deepcopy(key)})


def test_cycles_by_unfolding():  # 13
    one = []
    one.append(one)
    two = []
    two.append([two])
    three = [one]
    four = []
    four.append([[four]])
    same(one, two, three, four, [[[one]]], two[0])
    distinct(one, [], [[]], (one,), [one, one])


def test_cycles_unlike():
    def ring(n, last):
        nodes = [[k] for k in range(n)]
        for k in range(n):
            nodes[k].append(nodes[(k + 1) % n])
        nodes[-1][1] = nodes[last]
        return nodes[0]

    distinct(*(ring(4, k) for k in range(4)))
    same(ring(4, 0), ring(4, 0))
    full = []
    full.extend([full, full])
    above = []
    above.extend([above, full])
    same(full, above, [above, full])
    other = []
    other.extend([other, 1])
    distinct(full, other, [other, full])


def test_cycles_same_local_view():
    """Equal at depth one, different below: x -> y -> x against x -> y -> y."""
    def pair(back):
        x, y = ["x"], ["y"]
        x.append(y)
        y.append(x if back else y)
        return x

    distinct(pair(True), pair(False))


def test_cycles_that_differ_far_away():
    """Each node of a ring sees the one odd node at another distance."""
    def nodes(n):
        ring = [["odd" if k == 0 else "even"] for k in range(n)]
        for k in range(n):
            ring[k].append(ring[(k + 1) % n])
        return ring

    distinct(*nodes(12))
    distinct(*(nodes(n)[1] for n in range(2, 12)))


def test_cycles_in_unordered_containers():
    def make(order):
        a, b = corpus.Plain(name="a"), corpus.Plain(name="b")
        items = {"a": a, "b": b}
        a.all = {k: items[k] for k in order}
        b.all = {k: items[k] for k in reversed(order)}
        a.group = b.group = None
        return a

    same(make("ab"), make("ba"))
    nodes = [corpus.Plain(k=k % 2) for k in range(6)]
    for n in nodes:
        n.peers = set(nodes)
    shuffled = [corpus.Plain(k=k % 2) for k in (1, 0, 1, 0, 1, 0)]
    for n in shuffled:
        n.peers = set(reversed(shuffled))
    assert fp(nodes[0]) == fp(shuffled[1]) != fp(nodes[1])


def test_cycle_through_the_root_keeps_the_memo():
    """2**40 paths: only a memo makes this end."""
    value = root = []
    for _ in range(40):
        value = [value, value]
    root.append(value)
    assert fp(value)
    flat = [0]
    for _ in range(40):
        flat = [flat, flat]
    assert fp(flat)


def test_long_chain_above_a_cycle():
    value = []
    value.append(value)
    value.append(0)
    for k in range(20_000):
        value = (value, k)
    assert fp(value)


def test_dict_cycles():
    a = {}
    a["self"] = a
    b = {"self": a}
    same(a, b)
    d = {"x": 1}
    d["d"] = d
    distinct(a, d)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no exception tables before 3.11")
def test_exception_tables_count_leniently():  # 14
    def make():
        def f(x):
            try:
                x()
            except ValueError:
                pass

        return f

    f, g = make(), make()
    assert lenient(f) == lenient(g)
    code = f.__code__
    g.__code__ = code.replace(co_exceptiontable=code.co_exceptiontable[:-1] + b"\x01")
    assert g.__code__.co_code == code.co_code
    assert lenient(f) != lenient(g)


def test_lenient_functions():
    def make(k, default=0):
        def f(x, y=default):
            return x + k

        return f

    assert lenient(make(1)) == lenient(make(1)) != lenient(make(2))
    assert lenient(make(1, 2)) != lenient(make(1, 3))
    assert lenient(lambda x: x + 1) == lenient(lambda x: x + 1) != lenient(lambda x: x + 2)
    old = corpus.LIMIT
    reads = types.FunctionType(compile("lambda: LIMIT", "f", "eval").co_consts[0], vars(corpus))
    first = lenient(reads)
    corpus.LIMIT = old + 5
    try:
        assert lenient(reads) != first
    finally:
        corpus.LIMIT = old

    def cls(v):
        class Local:
            const = v

            def m(self):
                return v

        return Local

    assert lenient(cls(1)) == lenient(cls(1)) != lenient(cls(2))
    assert fp(1) != lenient(1)


def nested_cycles(n, first=0):
    """n cycles, each above the one before."""
    below = None
    for k in range(n):
        a = [0 if k else first]
        b = [a]
        a += [b] if below is None else [b, below]
        below = a
    return below


def test_cycles_above_cycles_in_linear_time():
    """Comparing each with all below it would take hours."""
    same(nested_cycles(3000), nested_cycles(3000))
    distinct(nested_cycles(3000), nested_cycles(2999), nested_cycles(3000, first=1))
    unrolled = nested_cycles(50)
    same(unrolled, [0, [unrolled], unrolled[2]])
