"""Fingerprints with rules of one's own, plans, explain and trace, and the same digests in
other processes and other Pythons."""

import dataclasses
import gc
import os
import subprocess
import sys
import threading
import types
import weakref

import fingerprint_corpus as corpus
import pytest
from conftest import HERE, ROOT
from fingerprint_checks import fp, lenient, refused
from ingot import Fingerprinter, FingerprintError, Pieces, explain, trace

# ---- overrides -------------------------------------------------------------------------------------------------


class Base:
    def __init__(self, v):
        self.v = v
        self.junk = lambda: 0


class Derived(Base):
    pass


def test_overrides_by_mro():
    rule = Fingerprinter({Base: lambda o: Pieces("base", [o.v])})
    assert rule(Base(1)) == rule(Derived(1)) != rule(Base(2))
    both = Fingerprinter({
        Base: lambda o: Pieces("base", [o.v]),
        Derived: lambda o: Pieces("derived", [o.v]) if o.v else NotImplemented,
    })
    assert both(Derived(1)) != both(Base(1))
    assert both(Derived(0)) == both(Base(0))
    assert rule([Derived(1), {"k": Base(2)}]) == rule([Base(1), {"k": Derived(2)}])
    numbers = Fingerprinter({int: lambda i: Pieces("mod", [str(i % 10)])})
    assert numbers([1, 2]) == numbers([11, 12]) != numbers([1, 3])
    with pytest.raises(TypeError, match="Pieces"):
        Fingerprinter({Base: lambda o: 1})(Base(1))


def test_pieces_order():
    ordered = Fingerprinter({Base: lambda o: Pieces("b", o.v)})
    unordered = Fingerprinter({Base: lambda o: Pieces("b", o.v, ordered=False)})
    assert ordered(Base([1, 2])) != ordered(Base([2, 1]))
    assert unordered(Base([1, 2])) == unordered(Base([2, 1])) != unordered(Base([1, 1]))
    assert ordered(Base([1])) != Fingerprinter({Base: lambda o: Pieces("c", o.v)})(Base([1]))


def test_skip():
    rule = Fingerprinter(skip={types.FunctionType})
    assert rule(Base(1)) == rule(Base(1)) != rule(Base(2))
    names = Fingerprinter(skip={(Base, "junk"), (corpus.Settings, "solver")})
    assert names(Derived(1)) == names(Derived(1)) != names(Derived(2))
    assert names(corpus.Settings(1, "a")) == names(corpus.Settings(1, "b"))
    assert names(corpus.Settings(1, "a")) != names(corpus.Settings(2, "a"))
    with pytest.raises(TypeError):
        Fingerprinter(skip={"name"})


def test_fallback():
    rule = Fingerprinter(fallback=lambda o: Pieces("lock") if "lock" in type(o).__name__ else NotImplemented)
    assert rule([threading.Lock(), 1]) == rule([threading.Lock(), 1])
    with pytest.raises(FingerprintError, match="lambda"):
        rule([lambda: 0])


def test_overrides_compose_with_cycles():
    a = Base(None)
    a.v = [a]
    b = Base(None)
    b.v = [b]
    rule = Fingerprinter({Base: lambda o: Pieces("b", [o.v])})
    assert rule(a) == rule(b)


def test_bad_configurations():
    for bad in ({"variant": "loose"},):
        with pytest.raises(ValueError):
            Fingerprinter(**bad)
        with pytest.raises(ValueError):
            fp(1, **bad)
    for bad in ({"overrides": {1: len}}, {"overrides": {int: 1}}, {"fallback": 1}):
        with pytest.raises(TypeError):
            Fingerprinter(**bad)
    with pytest.raises(TypeError):
        Pieces(1)


def test_containers_that_change_while_hashed():
    class Evil:
        def __reduce__(self):
            target.append(1)
            return (int, ())

    target = [Evil(), 2]
    refused(target, "changed")

    class EvilKey:
        def __reduce__(self):
            table[object()] = 1
            return (int, ())

    table = {"a": EvilKey(), "b": 2}
    refused(table, "changed")


# ---- plans ---------------------------------------------------------------------------------------------------------


def test_plans_do_not_keep_classes_alive():
    refs = []
    for k in range(200):
        cls = dataclasses.make_dataclass(f"Gone{k}", ["x"])
        fp(cls(1))
        refs.append(weakref.ref(cls))
        del cls
    gc.collect()
    assert not [r for r in refs if r() is not None]


def test_changed_classes_get_new_plans():
    class Thing:
        def __init__(self):
            self.x = 1

    first = fp(Thing())
    Thing.__reduce__ = lambda self: (int, (5,))
    assert fp(Thing()) != first
    assert fp(Thing()) == fp(Thing())


def test_rebound_classes_are_noticed(monkeypatch):
    old = corpus.Frozen(1)
    first = fp(old)
    monkeypatch.setattr(corpus, "Frozen", dataclasses.make_dataclass("Frozen", ["x", "y"]))
    assert fp(old) != first  # no longer what its name imports: by content


# ---- explain and trace ------------------------------------------------------------------------------------------------


def test_explain():
    assert explain([1, 2], [1, 2]) == []
    assert explain([1, {"a": (1, 2)}], [1, {"a": (1, 3)}]) == ["obj[1]['a'][1]: int 2 != int 3"]
    assert explain(corpus.Settings(1), corpus.Settings(2)) == ["obj.steps: int 1 != int 2"]
    assert explain({"a": 1}, {"b": 1}) and "only in the first" in " ".join(explain({"a": 1}, {"b": 1}))
    assert "obj: int 1 != str '1'" in explain(1, "1")
    assert explain({1, 2}, {1, 3})
    assert len(explain(list(range(100)), list(range(1, 101)))) == 10
    assert explain(corpus.Settings(1), corpus.Frozen(1))
    a = []
    a.append([a, 1])
    b = []
    b.append([b, 2])
    assert explain(a, b) == ["obj[0][1]: int 1 != int 2"]
    assert explain(corpus.deep(3000), corpus.deep(3001))


def test_trace():
    text = trace({"a": [1, 2.5], "s": corpus.Settings(1)})
    assert "int 1" in text and "float 2.5" in text and ".steps" in text
    loop = []
    loop.append(loop)
    assert "as in line 1" in trace(loop)
    assert trace(corpus.deep(3000)).count("\n") == 3000
    for name, value in corpus.corpus():
        assert trace(value), name


# ---- across processes -------------------------------------------------------------------------------------------------------


def run_corpus(python, path, seed):
    env = dict(os.environ, PYTHONHASHSEED=str(seed), PYTHONPATH=path)
    done = subprocess.run([python, str(HERE / "fingerprint_corpus.py")], env=env, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


def test_corpus_is_all_different():
    seen = {}
    for name, value in corpus.corpus():
        assert seen.setdefault(fp(value), name) == name


def test_three_hash_seeds():
    path = os.pathsep.join(sys.path)
    first = run_corpus(sys.executable, path, 0)
    assert len(first) > 80
    for seed in (1, 4711):
        assert run_corpus(sys.executable, path, seed) == first


def golden():
    lines = (HERE / "fingerprint_golden.txt").read_text().splitlines()
    return dict(line.split("\t") for line in lines)


def test_stability():
    """The same digests on every Python and with every NumPy that this runs on. A new format
    (FP_FORMAT) needs new ones: python fingerprint_corpus.py > fingerprint_golden.txt."""
    mine = run_corpus(sys.executable, os.pathsep.join(sys.path), 3)
    assert mine.keys() <= golden().keys()
    assert {k for k in mine if mine[k] != golden()[k]} <= corpus.EXEMPT


def test_the_table_of_what_is_not_stable():
    text = (ROOT / "docs" / "fingerprint.md").read_text().partition("## Stability")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines() if row.startswith("|")]
    assert {row[0] for row in rows if row[1] == "no" and row[0] in golden()} == corpus.EXEMPT


def other_pythons():
    """INGOT_TEST_PYTHONS: "python=folder of its ingot" pairs, separated by os.pathsep."""
    pairs = os.environ.get("INGOT_TEST_PYTHONS", "")
    return [p.split("=") for p in pairs.split(os.pathsep) if p]


@pytest.mark.parametrize("python, path", other_pythons() or [pytest.param("", "", marks=pytest.mark.not_run(
    reason="other Pythons (INGOT_TEST_PYTHONS names none)"))])
def test_other_pythons(python, path):
    mine = run_corpus(sys.executable, os.pathsep.join(sys.path), 0)
    theirs = run_corpus(python, path, 5)
    both = mine.keys() & theirs.keys()
    assert len(both) > 60
    assert {k for k in both if mine[k] != theirs[k]} <= corpus.EXEMPT


def test_references_are_released():
    numpy = pytest.importorskip("numpy")
    values = [v for _, v in corpus.corpus()] + [numpy.zeros(3)]

    def once():
        for v in values:
            fp(v)
            lenient(v) if not callable(v) else None
        for bad in (lambda: 0, [threading.Lock()]):
            with pytest.raises(FingerprintError):
                fp(bad)

    growth = []
    for _ in range(20):  # free lists of the interpreter fill up; a leak stays
        before = sys.getallocatedblocks()
        for _ in range(40):
            once()
        gc.collect()
        growth.append(sys.getallocatedblocks() - before)
        if growth[-1] < 40:
            return
    pytest.fail(f"blocks allocated in each of the rounds: {growth}")
