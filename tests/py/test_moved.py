"""What is replaced by something with equal answers is watched from then on, and what it
replaced no longer is."""

import copy
import dataclasses
import importlib
import sys
import textwrap
import types

import pytest

import ingot as qd


@pytest.fixture(autouse=True, params=[False, True], ids=["plain", "paranoid"])
def interpreted(request):
    qd.init(arch=qd.interp, paranoid=request.param)
    yield
    qd.init()


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Writes and imports a module; without a text it is imported again."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, text=None):
        if text:
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module(name)
    return make


def launch(kernel, *args):
    a = qd.ndarray(qd.f64, 1)
    kernel(a, *args)
    return a[0]


DATA = """
    import dataclasses
    import ingot as qd
    import moved_types as types_
    T = qd.f64
    @dataclasses.dataclass
    class Inner:
        x: "T"
    @dataclasses.dataclass
    class S:
        x: "T"
        y: "types_.T"
        z: "Inner"
"""
READER = """
    import ingot as qd, moved_data
    A = qd.types.ndarray()
    @qd.kernel
    def x(a: A, s: moved_data.S):
        a[0] = s.x
    @qd.kernel
    def y(a: A, s: moved_data.S):
        a[0] = s.y
    @qd.kernel
    def z(a: A, s: moved_data.S):
        a[0] = s.z.x
"""


def structs(load):
    kinds = load("moved_types", "import ingot as qd\nT = qd.f64\n")
    data = load("moved_data", DATA)
    return kinds, data, load("moved_reader", READER), data.S(0.1, 0.1, data.Inner(0.1))


def test_the_module_of_a_dataclass_is_imported_again(load):
    _, _, kern, s = structs(load)
    assert launch(kern.x, s) == 0.1
    data = load("moved_data")
    assert launch(kern.x, s) == 0.1
    data.T = qd.f32
    assert launch(kern.x, s) != 0.1


def test_a_module_that_the_type_of_a_field_names_is_replaced(load):
    kinds, data, kern, s = structs(load)
    assert launch(kern.y, s) == 0.1
    data.types_ = types.ModuleType("moved_types")
    data.types_.T = kinds.T
    assert launch(kern.y, s) == 0.1
    kinds.T = qd.i32
    assert launch(kern.y, s) == 0.1
    data.types_.T = qd.f32
    assert launch(kern.y, s) != 0.1


# What the type of a field is, as text, and what makes it another one.
TEXTS = {
    "kinds.T": "kinds.T = qd.f32",
    "kinds . T": "kinds.T = qd.f32",
    "(kinds).T": "kinds.T = qd.f32",
    "[kinds][0].T": "kinds.T = qd.f32",
    "[k.T for k in [kinds]][0]": "kinds.T = qd.f32",
    "[b.T for b in [Box]][0]": "kinds.Box.T = qd.f32",
    "größen.T": "kinds.T = qd.f32",
    "kinds.pick()": "kinds.T = qd.f32",
    "pick()": "kinds.T = qd.f32",
    "Box.T": "kinds.Box.T = qd.f32",
    "Box()[0]": "kinds.Box.T = qd.f32",
    "LIST[0]": "data.LIST[0] = qd.f32",
    "TABLE['T']": "data.TABLE['T'] = qd.f32",
    "kinds.lazy": "kinds.LATER[0] = qd.f32",
    "BUILTIN": "data.builtins.BUILTIN = qd.f32",
    "kinds.T # of a class": "kinds.__class__ = data.Other",
}


@pytest.fixture
def texts(load, monkeypatch):
    kinds = load("moved_kinds", """
        import ingot as qd
        T = qd.f64
        LATER = [qd.f64]
        def pick():
            return T
        class Box:
            T = qd.f64
            def __getitem__(self, i):
                return self.T
        def __getattr__(name):
            if name == "lazy":
                return LATER[0]
            raise AttributeError(name)
    """)
    monkeypatch.setattr("builtins.BUILTIN", qd.f64, raising=False)
    fields = "".join(f"    x{i}: {t.partition(' #')[0]!r}\n" for i, t in enumerate(TEXTS))
    data = load("moved_texts", """
import builtins, dataclasses, types
import ingot as qd
import moved_kinds as kinds, moved_kinds as größen
from moved_kinds import pick, Box
LIST = [qd.f64]
TABLE = {"T": qd.f64}
class Other(types.ModuleType):
    T = property(lambda self: qd.f32)
@dataclasses.dataclass
class S:
""" + fields)
    reads = "".join(f"@qd.kernel\ndef k{i}(a: A, s: moved_texts.S):\n    a[0] = s.x{i}\n"
                    for i in range(len(TEXTS)))
    kern = load("moved_texts_reader", f"import ingot as qd, moved_texts\nA = qd.types.ndarray()\n{reads}")
    return kinds, data, kern


@pytest.mark.parametrize("i", range(len(TEXTS)), ids=TEXTS)
def test_what_the_text_of_a_type_reads(texts, i):
    kinds, data, kern = texts
    s = data.S(*[0.1] * len(TEXTS))
    kernel = getattr(kern, f"k{i}")
    assert launch(kernel, s) == 0.1 and launch(kernel, s) == 0.1
    exec(list(TEXTS.values())[i], {"kinds": kinds, "data": data, "qd": qd})
    now = launch(kernel, s)
    assert now != 0.1 and now == launch(kernel, s)


def test_a_class_that_the_text_of_a_type_does_not_name(load):
    data = load("moved_nested", """
        import dataclasses
        import ingot as qd
        @dataclasses.dataclass
        class Fine:
            x: qd.f64
        @dataclasses.dataclass
        class Coarse:
            x: qd.f32
        NOW = [Fine]
        @dataclasses.dataclass
        class S:
            z: "NOW[0]"
        @qd.kernel
        def k(a: qd.types.ndarray(), s: S):
            a[0] = s.z.x
    """)
    s = data.S(data.Fine(0.1))
    assert launch(data.k, s) == launch(data.k, s) == 0.1
    data.NOW[0] = data.Coarse
    now = launch(data.k, s)
    assert now != 0.1 and now == launch(data.k, s)


@pytest.mark.parametrize("text", [False, True])
def test_a_field_is_replaced_by_an_equal_one(text):
    """The type of the one that is there is watched from then on."""

    @dataclasses.dataclass
    class S:
        x: "qd.f32" if text else qd.f32

    @qd.kernel
    def k(a: qd.types.ndarray(), s: S):
        a[0] = s.x

    def launch():
        a = qd.ndarray(qd.f64, 1)
        k(a, S(0.1))
        return a[0]

    fields = S.__dataclass_fields__
    for _ in range(2):
        assert [launch() == 0.1 for _ in range(3)] == [False] * 3
        fields["x"] = copy.copy(fields["x"])
        assert [launch() == 0.1 for _ in range(3)] == [False] * 3
        fields["x"].type = "qd.f64" if text else qd.f64
        assert launch() == 0.1
        fields["x"].type = "qd.f32" if text else qd.f32


def test_the_class_of_a_field_is_replaced(load):
    _, data, kern, s = structs(load)
    assert launch(kern.z, s) == 0.1
    old, data.Inner = data.Inner, type(
        "Inner", (data.Inner,), {"__module__": "moved_data"})
    data.Inner.__dataclass_fields__ = dict(old.__dataclass_fields__)
    assert launch(kern.z, s) == 0.1
    data.Inner.__dataclass_fields__["x"] = load("moved_other", DATA.replace(
        '"T"', "qd.f32")).Inner.__dataclass_fields__["x"]
    assert launch(kern.z, s) != 0.1


def test_code_of_a_func_that_was_replaced(load):
    lib = load("moved_lib", """
        import ingot as qd
        @qd.func
        def f():
            return 2.0
        @qd.func
        def g():
            return 3.0
    """)
    kern = load("moved_user", """
        import ingot as qd, moved_lib
        @qd.kernel
        def k(a: qd.types.ndarray()):
            a[0] = moved_lib.f()
    """)
    assert launch(kern.k) == 2
    importlib.reload(lib)
    assert launch(kern.k) == 2 and launch(kern.k) == 2
    lib.f.__wrapped__.__code__ = lib.g.__wrapped__.__code__
    with pytest.raises(qd.IngotSyntaxError, match="was replaced after it was decorated"):
        launch(kern.k)


def test_code_of_a_func_of_the_package():
    @qd.kernel
    def k(a: qd.types.ndarray()):
        a[0] = qd.math.mix(1.0, 2.0, 0.5)

    def other(x, y, a):
        return 7.0

    assert launch(k) == launch(k) == 1.5
    fn = qd.math.mix.__wrapped__
    old, fn.__code__ = fn.__code__, other.__code__
    try:
        for _ in range(2):
            with pytest.raises(qd.IngotSyntaxError, match="was replaced after it was decorated"):
                launch(k)
    finally:
        fn.__code__ = old
    assert launch(k) == launch(k) == 1.5
