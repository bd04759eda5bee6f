"""What is gone, or raises when it is asked again, has no answer that a kernel was compiled for:
launches raise what Python raises, or take the code of another branch."""

import sys
import types

import pytest

import ingot as qd

A = qd.types.ndarray()


@pytest.fixture(autouse=True, params=[False, True], ids=["plain", "paranoid"])
def interpreted(request):
    qd.init(arch=qd.interp, default_fp=qd.f64, paranoid=request.param)
    yield
    qd.init()


class Base:
    pass


def total(v):
    return sum(v)


def launch(k, *args):
    a = qd.ndarray(qd.f64, 1)
    k(a, *args)
    return a[0]


def test_isinstance_of_a_member_that_is_gone():
    @qd.kernel
    def k(a: A):
        a[0] = 1 if qd.static(isinstance(box.x, Base)) else 0

    box = types.SimpleNamespace(x=3)
    assert launch(k) == 0
    del box.x
    with pytest.raises(qd.IngotAttributeError, match="x"):
        launch(k)
    box.x = Base()
    assert launch(k) == 1


def test_a_module_with_an_array_is_gone():
    """Nothing is asked of the module itself, and what it had is owned by nobody any more."""
    scope = {"cfg": types.ModuleType("cfg"), "A": A}
    text = "def k(a: A):\n    a[0] = cfg.sub.x[0]\n"
    exec(text, scope)
    k = qd.kernel(scope["k"], source=text)
    for value in 1, 2:
        scope["cfg"] = types.ModuleType("cfg")
        scope["cfg"].sub = types.ModuleType("sub")
        scope["cfg"].sub.x = qd.ndarray(qd.f64, 1)
        scope["cfg"].sub.x[0] = value
        assert [launch(k) for _ in range(3)] == [value] * 3
        del scope["cfg"]
        for _ in range(3):
            with pytest.raises(qd.IngotNameError, match="cfg"):
                launch(k)


@pytest.mark.parametrize("ask", ["hasattr(outer.inner, 'x')", "getattr(outer.inner, 'x', 0)",
                                 "outer.inner is other"])
def test_members_of_what_is_gone(ask, tmp_path, monkeypatch):
    (tmp_path / "gone_case.py").write_text(f"""
import types
import ingot as qd
other = types.SimpleNamespace()
outer = types.SimpleNamespace(inner=types.SimpleNamespace())
@qd.kernel
def k(a: qd.types.ndarray()):
    a[0] = 1 if qd.static({ask}) else 0
""")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gone_case", raising=False)
    import gone_case

    assert launch(gone_case.k) == 0
    del gone_case.outer.inner
    with pytest.raises(qd.IngotAttributeError, match="inner"):
        launch(gone_case.k)


def test_the_other_side_of_is_is_gone():
    @qd.kernel
    def k(a: A):
        a[0] = 1 if qd.static(one is box.x) else 0

    one, box = Base(), types.SimpleNamespace(x=Base())
    assert launch(k) == 0
    del box.x
    with pytest.raises(qd.IngotAttributeError, match="x"):
        launch(k)


@pytest.mark.parametrize("first", [[1, 2], (1, 2)])
def test_a_call_that_is_not_reached_any_more_may_raise(first):
    @qd.kernel
    def k(a: A):
        a[0] = -1
        if qd.static(items is not None):
            a[0] = qd.static(total(items)) + 0

    items = first
    assert launch(k) == 3
    items = None
    assert launch(k) == -1
    items = [1, "a"]
    with pytest.raises(TypeError, match="unsupported operand"):
        launch(k)


def test_a_property_that_raises():
    class Odd:
        @property
        def p(self):
            if self.fail:
                raise ValueError("no p")
            raise AttributeError("p")

    @qd.kernel
    def k(a: A):
        a[0] = 0
        if qd.static(odd.use):
            a[0] = qd.static(getattr(odd, "p", 5)) + 0

    odd = Odd()
    odd.fail, odd.use = False, True
    assert launch(k) == 5
    odd.fail = True
    with pytest.raises(ValueError, match="no p"):
        launch(k)
    odd.use = False
    assert launch(k) == 0


def test_defaults_that_a_call_does_not_take():
    @qd.func
    def f(v, n=2):
        return v + n

    @qd.kernel
    def k(a: A):
        a[0] = f(1, 5)

    assert launch(k) == 6
    f.__wrapped__.__defaults__ = None
    assert launch(k) == 6
    assert k._variants == 1


@pytest.mark.parametrize("strict", [False, True])
def test_floats_of_a_module_that_is_none_any_more(request, strict):
    qd.init(arch=qd.interp, default_fp=qd.f64, raise_on_templated_floats=strict,
            paranoid="paranoid" in request.node.name)

    @qd.kernel
    def k(a: A):
        a[0] = cfg.x

    cfg = types.ModuleType("cfg")
    cfg.x = 1.5
    assert launch(k) == 1.5
    cfg = types.SimpleNamespace(x=1.5)
    if not strict:
        assert launch(k) == 1.5
        return
    with pytest.raises(qd.IngotValueError, match="raise_on_templated_floats"):
        launch(k)
