"""What is replaced by something with equal answers is watched from then on, and what it
replaced no longer is."""

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
