"""Random object graphs, with sharing, cycles and shuffled order, against an oracle that is
slow and obviously right: two graphs are equal when no experiment tells them apart."""

import random

import ingot
from conftest import SEED, samples
from hypothesis import given, seed
from hypothesis import strategies as st

KINDS = ("tuple", "list", "dict", "set", "object")
ATOMS = (None, True, False, 0, 1, -1, 2**70, 0.0, -0.0, 1.0, "", "a", "1", b"a", "x" * 70)


class Box:
    """An object that can be in sets and in cycles; hashed by identity, compared by it."""


def spec(draw):
    """A list of nodes: (kind, [child, ...]); a child is an atom's or a node's number."""
    n = draw(st.integers(1, 7))
    child = st.one_of(
        st.tuples(st.just("atom"), st.integers(0, len(ATOMS) - 1)),
        st.tuples(st.just("node"), st.integers(0, n - 1)),
    )
    return [
        (draw(st.sampled_from(KINDS)), draw(st.lists(child, max_size=4))) for _ in range(n)
    ]


graphs = st.composite(spec)()


def build(nodes, order):
    """The graph as Python objects. What cannot be made before its children (tuples, dict
    keys, members of sets) is held in a Box that can."""
    boxes = [[] if kind == "list" else Box() for kind, _ in nodes]

    def value(child):
        return ATOMS[child[1]] if child[0] == "atom" else boxes[child[1]]

    for box, (kind, children) in zip(boxes, nodes):
        if kind == "list":
            box.extend(map(value, children))
            continue
        items = [value(c) for c in children]
        if kind == "tuple":
            box.content = tuple(items)
        elif kind == "dict":
            pairs = [(f"k{i}", v) for i, v in enumerate(items)]
            order.shuffle(pairs)
            box.content = dict(pairs)
        elif kind == "set":
            members = [v for v in items if not isinstance(v, list)]
            members = list(dict.fromkeys(members))  # of 1 and True, always the first
            order.shuffle(members)
            box.content = frozenset(members)
        else:
            attributes = [(f"a{i}", v) for i, v in enumerate(items)]
            order.shuffle(attributes)
            box.__dict__.update(attributes)
    return boxes[0]


def atom_key(value):
    return (type(value).__name__, repr(value))


def parts(value):
    """(label, ordered children, unordered children) of one level."""
    if isinstance(value, Box):
        return "Box", [], [(k, v) for k, v in vars(value).items()]
    if isinstance(value, (tuple, list)):
        return type(value).__name__, list(value), []
    if isinstance(value, dict):
        return "dict", [], list(value.items())
    if isinstance(value, frozenset):
        return "frozenset", [], [("member", v) for v in value]
    return None


def reachable(root):
    found, stack = {}, [root]
    while stack:
        value = stack.pop()
        if id(value) in found or parts(value) is None:
            continue
        found[id(value)] = value
        _, ordered, unordered = parts(value)
        stack.extend(ordered)
        stack.extend(v for _, v in unordered)
    return list(found.values())


def equal(one, two):
    """Bisimilar? Colours of all objects, refined together until nothing splits."""
    values = {id(v): v for root in (one, two) for v in reachable(root)}
    colour = dict.fromkeys(values, 0)

    def seen(value):
        return ("c", colour[id(value)]) if id(value) in colour else ("a", atom_key(value))

    if parts(one) is None or parts(two) is None:
        return seen(one) == seen(two)
    for _ in range(len(values) + 1):
        signature = {}
        for key, value in values.items():
            label, ordered, unordered = parts(value)
            rest = sorted((k, seen(v)) for k, v in unordered)
            signature[key] = (colour[key], label, [seen(v) for v in ordered], rest)
        names = {}
        colour = {k: names.setdefault(repr(s), len(names)) for k, s in signature.items()}
    return colour[id(one)] == colour[id(two)]


@seed(SEED)
@given(graphs, st.randoms(use_true_random=False))
def test_order_and_sharing_do_not_count(nodes, order):
    one, two = build(nodes, order), build(nodes, order)
    assert equal(one, two)
    assert ingot.fingerprint(one) == ingot.fingerprint(two)
    assert not ingot.explain(one, two)


@seed(SEED)
@given(graphs, graphs, st.randoms(use_true_random=False))
def test_two_graphs(first, second, order):
    one, two = build(first, order), build(second, order)
    assert (ingot.fingerprint(one) == ingot.fingerprint(two)) == equal(one, two)


@seed(SEED)
@given(graphs, st.integers(0, 6), st.integers(0, 3), st.randoms(use_true_random=False))
def test_unrolled_and_changed(nodes, at, which, order):
    """The graph with one node doubled (equal) and with one child changed (mostly not)."""
    at %= len(nodes)
    twin = [*nodes, nodes[at]]
    moved = [
        (kind, [("node", len(nodes)) if c == ("node", at) and order.random() < 0.5 else c
                for c in children])
        for kind, children in twin
    ]
    one, two = build(nodes, order), build(moved, order)
    alike = equal(one, two)  # a set with two equal members is another one than with one
    assert alike or any(kind == "set" for kind, _ in nodes)
    assert (ingot.fingerprint(one) == ingot.fingerprint(two)) == alike
    kind, children = nodes[at]
    if children:
        changed = list(children)
        changed[which % len(children)] = ("atom", which)
        three = build([*nodes[:at], (kind, changed), *nodes[at + 1 :]], order)
        same = ingot.fingerprint(one) == ingot.fingerprint(three)
        assert same == equal(one, three)
        assert bool(ingot.explain(one, three)) != same


def test_large_random_graphs():
    """Bigger than Hypothesis makes them: rings, ladders and random wiring."""
    rng = random.Random(SEED)
    for _ in range(samples(400)):
        n = rng.randint(2, 40)
        nodes = []
        for _ in range(n):
            kids = [
                ("node", rng.randrange(n)) if rng.random() < 0.6 else ("atom", rng.randrange(4))
                for _ in range(rng.randint(0, 3))
            ]
            nodes.append((rng.choice(KINDS), kids))
        one, two = build(nodes, rng), build(nodes, rng)
        assert ingot.fingerprint(one) == ingot.fingerprint(two)
        other = list(nodes)
        k = rng.randrange(n)
        other[k] = (rng.choice(KINDS), nodes[k][1])
        three = build(other, rng)
        assert (ingot.fingerprint(one) == ingot.fingerprint(three)) == equal(one, three)
