"""What functions reach, beyond the ways that test_fingerprint_edits.py edits at random: files that
change while a program runs, what is refused and named, skips, lazily kept state, bounded traces."""

import collections
import dataclasses
import functools
import importlib
import os
import subprocess
import sys
import textwrap
import types
import warnings

import fingerprint_corpus as corpus
import ingot
import pytest
from conftest import needs
from fingerprint_checks import distinct, fp, lenient, refused, same
from ingot import Fingerprinter, FingerprintError, Pieces, trace

# ---- programs ----------------------------------------------------------------------------------------


def run(folder, text, *args, bytecode=False):
    """What a program of this text prints, in a process of its own; what it writes on stderr when it fails."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([p for p in sys.path if p]))
    flags = [] if bytecode else ["-B"]
    done = subprocess.run([sys.executable, *flags, str(path), *map(str, args)], env=env, cwd=folder,
                          capture_output=True, text=True, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("bytecode", [False, True])
def test_a_file_that_changed_since_it_was_imported(tmp_path, bytecode):
    (tmp_path / "helper.py").write_text("def step(x):\n    return x * 2\n")
    out = run(tmp_path, """
        import ingot, helper, pathlib
        file = pathlib.Path(helper.__file__)
        old = file.read_text()
        file.write_text(old.replace("2", "333"))
        try:
            ingot.CachedStep(helper.step).persistent("cache")
        except ingot.FingerprintError as e:
            print(e)
        file.write_text(old)
        assert ingot.CachedStep(helper.step).persistent("cache")(10) == 20
        file.write_text(old.replace("2", "333"))
        assert ingot.CachedStep(helper.step).persistent("cache")(10) == 20
    """, bytecode=bytecode)
    assert "its file changed since it was imported" in out and "restart the program" in out, out


def test_methods_in_a_file_that_changed(tmp_path):
    (tmp_path / "helper.py").write_text("class C:\n    def f(self):\n        return 1\n")
    out = run(tmp_path, """
        import ingot, helper, pathlib
        def step(x):
            return helper.C().f()
        pathlib.Path(helper.__file__).write_text("# moved\\nclass C:\\n    def f(self):\\n        return 2\\n")
        try:
            ingot.fingerprint(step)
        except ingot.FingerprintError as e:
            print(e)
    """)
    assert out.startswith("obj.helper.C.f: its file changed"), out


def test_own_extension_modules_count_by_their_file(tmp_path):
    from ingot._reach import origin

    found = []
    for content in (b"one", b"two", b"one"):
        (tmp_path / "own.so").write_bytes(content)
        found.append(origin(str(tmp_path / "own.so")))
    assert found[0] == found[2] != found[1] and found[0].startswith("own.so==")


def test_imports_are_not_made_for_the_key(tmp_path):
    """Of libraries: a function that imports one is keyed without it, the same whether it is loaded."""
    out = run(tmp_path, """
        import ingot, sys
        def step(x):
            import colorsys, wave as w
            from xml.dom import minidom
            return colorsys, w, minidom
        first = ingot.fingerprint(step)
        assert not {"colorsys", "wave", "xml.dom.minidom"} & set(sys.modules)
        step(1)
        assert ingot.fingerprint(step) == first
        print("fine")
    """)
    assert out == "fine", out


def test_modules_that_cannot_be_imported_yet(tmp_path):
    (tmp_path / "late.py").write_text("import early\nVALUE = early.LATER\n")
    (tmp_path / "early.py").write_text(textwrap.dedent("""
        import ingot
        def step(x):
            from late import VALUE
            return VALUE
        try:
            ingot.fingerprint(step)
        except ingot.FingerprintError as e:
            print(e)
        LATER = 1
    """))
    out = run(tmp_path, "import early, ingot\nassert ingot.fingerprint(early.step)\nprint('fine')")
    assert "what it reaches cannot be followed (AttributeError" in out and out.endswith("fine"), out


def test_steps_made_before_what_they_name(tmp_path):
    out = run(tmp_path, """
        import ingot
        def step(x):
            return later(x)
        try:
            ingot.CachedStep(step).persistent("cache")
        except ingot.FingerprintError as e:
            print(e)
        def later(x):
            return x
        assert ingot.CachedStep(step).persistent("cache")(1) == 1
        @ingot.CachedStep
        def itself(n):
            return n and itself(n - 1)
        assert itself(3) == 0
    """)
    assert "name 'later' is not defined" in out, out


# ---- what cannot be followed ----------------------------------------------------------------------------


def evaluates(x):
    return eval("x + 1")


def executes(x):
    exec("y = 1")


def looks(name):
    return globals()[name]


def imports(name):
    return __import__(name)


def subclasses(cls):
    return cls.__subclasses__()


def undefined(x):
    return not_there(x)  # noqa: F821


def sets_it(x):
    global _made_later
    try:
        return _made_later
    except NameError:
        _made_later = x


def class_scope(x):
    class Inner:
        k = 1
        j = k + 1

    return Inner.j


BLIND = {evaluates: "eval()", executes: "exec()", looks: "globals()", imports: "__import__()",
         subclasses: "cls.__subclasses__", undefined: "not_there"}


@pytest.mark.parametrize("function", BLIND, ids=lambda f: f.__name__)
def test_what_cannot_be_followed(function):
    refused(function, "what it reaches cannot be followed", BLIND[function])
    text = trace(function, variant="lenient")
    assert f"<not followed: {BLIND[function]}>" in text
    assert lenient(function) == lenient(function)


def test_names_that_need_no_value():
    assert fp(sets_it) and fp(class_scope)
    rules = Fingerprinter(fallback=lambda o: Pieces("mine", [o.__qualname__]))
    assert rules(evaluates) != rules(looks)


# ---- skips ------------------------------------------------------------------------------------------------


class Stated:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __getstate__(self):
        return {"a": self.a, "b": self.b}


class SlotState:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __getstate__(self):
        return None, {"a": self.a, "b": self.b}


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize("cls", [Stated, SlotState, Pair])
def test_skips_of_every_kind(cls):
    rule = Fingerprinter(skip={(cls, "a")})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rule(cls(1, 0)) == rule(cls(2, 0)) != rule(cls(1, 1))
    assert rule(cls(1, 0)) != fp(cls(1, 0))


@pytest.mark.parametrize("cls", [Stated, SlotState, Pair, corpus.Frozen, corpus.Plain])
def test_skips_that_match_nothing_warn(cls):
    value = cls(a=1, b=2) if cls is corpus.Plain else cls(1, 2)
    with pytest.warns(UserWarning, match="'typo'") as seen:
        Fingerprinter(skip={(cls, "typo")})(value)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fingerprinter(skip={(cls, "typo")})([1, 2])  # none of these was hashed
        with pytest.raises(UserWarning):
            Fingerprinter(skip={(cls, "typo")})([value])


# ---- what is kept lazily ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Lazy:
    x: int

    @functools.cached_property
    def y(self):
        return self.x + 1


class LazyPlain(Stated):
    y = functools.cached_property(lambda self: 1)


class LazyList(list):
    @functools.cached_property
    def y(self):
        return len(self)


class LazyReduced:
    def __init__(self):
        self.x = 1

    def __reduce__(self):
        return LazyReduced, (), dict(self.__dict__)

    @functools.cached_property
    def y(self):
        return 1


@pytest.mark.parametrize("make", [lambda: Lazy(1), lambda: LazyPlain(1, 2), lambda: LazyList([1]), LazyReduced])
def test_cached_properties_are_no_state(make):
    asked, other, fresh = make(), make(), make()
    assert asked.y is not None
    same(asked, fresh)
    other.__dict__["z"] = 1
    if type(asked) is not LazyPlain:  # whose __getstate__ does not give it
        distinct(other, fresh)


@needs("attr")
def test_cached_properties_of_attrs():
    import attr

    for slots in (False, True):
        @attr.s(auto_attribs=True, slots=slots)
        class C:
            x: int

            @functools.cached_property
            def y(self):
                return self.x + 1

        one, two = C(1), C(1)
        assert two.y == 2
        same(one, two)
        distinct(one, C(2))


@needs("pydantic")
def test_cached_properties_of_pydantic():
    import pydantic

    class C(pydantic.BaseModel):
        x: int

        @functools.cached_property
        def y(self):
            return self.x + 1

    one, two = C(x=1), C(x=1)
    assert two.y == 2
    same(one, two)
    distinct(one, C(x=2))


# ---- files, registrations, traces ------------------------------------------------------------------------------


def test_data_files(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"abc" * 1_000_000)
    two.write_bytes(b"abc" * 1_000_000)
    assert os.fspath(ingot.File(one)) == str(one) and open(ingot.File(one), "rb").read(3) == b"abc"
    same(ingot.File(one), ingot.File(str(two)))
    before = fp(ingot.File(one))
    one.write_bytes(b"abd")
    assert fp(ingot.File(one)) != before != fp(str(one))
    refused(ingot.File(tmp_path / "none"), "cannot be taken apart", "No such file")
    refused(ingot.File(tmp_path), "cannot be taken apart")


@needs("numpy")
def test_vectorize_keeps_ufuncs_lazily():
    import numpy as np

    one, two = np.vectorize(corpus.helper), np.vectorize(corpus.helper)
    two([1, 2])
    same(one, two)
    distinct(one, np.vectorize(corpus.caller), np.vectorize(corpus.helper, otypes=[float]),
             np.vectorize(corpus.helper, excluded={0}), np.vectorize(corpus.helper, signature="()->()"))


@functools.singledispatch
def shown(x):
    return 1


@shown.register
def _(x: int):
    return 2


def test_singledispatch_keeps_answers_lazily():
    before = fp(shown)
    assert shown("a") == 1 and shown(2) == 2
    assert fp(shown) == before


def test_traces_are_bounded():
    text = trace(list(range(100_000)), limit=50)
    assert text.count("\n") == 50 and text.endswith("trace(..., limit=None) gives all")
    assert trace(corpus.deep(20_000)).count("\n") == 10_000
    assert len(trace(corpus.deep(9_000))) < 2_000_000
    assert trace([1, 2], limit=3) == trace([1, 2]) and "cut" not in trace([1, 2])
    assert trace(list(range(20_000)), limit=None).count("\n") == 20_000


def test_modules_as_values():
    mod = types.ModuleType("module_as_value")
    mod.__dict__.update(helper=corpus.helper, k=1, cls=corpus.Tool)
    sys.modules["module_as_value"] = mod
    try:
        first = fp(mod)
        mod.k = 2
        second = fp(mod)
        mod.k = 1
        assert first == fp(mod) != second
        mod.f = open
        assert fp(mod) != first
    finally:
        del sys.modules["module_as_value"]


def test_other_errors_pass():
    class Odd:
        def __reduce__(self):
            raise KeyError("odd")

    with pytest.raises(FingerprintError, match="odd"):
        fp([Odd()])


NUMBER = 7


def reads_its_module():
    return sys.modules[__name__].NUMBER


def test_sys_modules_is_no_value(monkeypatch):
    """Also when it holds a module of a class of the user's own."""

    class Odd(types.ModuleType):
        pass

    before = ingot.fingerprint(reads_its_module)
    monkeypatch.setitem(sys.modules, "odd_module", Odd("odd_module"))
    assert ingot.fingerprint(reads_its_module) == before


def test_objects_that_are_nothing_but_themselves(tmp_path, monkeypatch):
    """`MISSING = object()` counts by the name that its module gives it, as an input too."""
    (tmp_path / "marks.py").write_text("A, B = object(), object()\nC: object = object()\nD = A\nE = {'k': object()}\n")
    (tmp_path / "a_user.py").write_text("from marks import B as AA\n")
    monkeypatch.syspath_prepend(tmp_path)
    marks = importlib.import_module("marks")
    before = fp(marks.B)
    importlib.import_module("a_user")
    assert fp(marks.B) == before and fp(marks.A) == fp(marks.D)
    assert len({fp(marks.A), before, fp(marks.C), fp(object())}) == 4
    assert fp(marks.E["k"]) == fp(object())
    step = ingot.CachedStep(lambda x: x is marks.A)
    assert step(marks.A) and not step(marks.B) and not step(object())
