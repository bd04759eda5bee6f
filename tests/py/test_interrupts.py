"""What a program raises where Ingot asks it something. An interrupt, an exit, lack of memory or of
stack says nothing about the question and comes out as it is, from wherever it is raised; an
ordinary exception may be an answer, but never the wrong one. And afterwards the kernel works."""

import dataclasses
import linecache
import sys
import types

import ingot as qd
import pytest

GRAVE = [KeyboardInterrupt, SystemExit, MemoryError, RecursionError]


class Switch:
    """Raises while it is on."""

    def __init__(self):
        self.what = None

    def __call__(self, value=None):
        if self.what:
            raise self.what("from a hook")
        return value


def attribute(switch):
    class Owner:
        @property
        def n(self):
            return switch(3)

    owner = Owner()

    @qd.kernel
    def k(o: qd.template()) -> qd.i32:
        return o.n

    return lambda: k(owner), 3


def missing_attribute(switch):
    class Owner:
        def __getattr__(self, name):
            return switch(4)

    owner = Owner()

    @qd.kernel
    def k(o: qd.template()) -> qd.i32:
        return o.n

    return lambda: k(owner), 4


def module_attribute(switch):
    module = types.ModuleType("with_getattr")
    module.__getattr__ = lambda name: switch(5)

    @qd.kernel
    def k() -> qd.i32:
        return module.n

    return k, 5


def converted(method):
    def case(switch):
        number = type("Number", (), {method: lambda self: switch(2 if method == "__index__" else 2.0)})()

        @qd.kernel
        def of_int(n: qd.i32) -> qd.i32:
            return n + 1

        @qd.kernel
        def of_float(n: qd.f32) -> qd.f32:
            return n + 1

        return (lambda: of_int(number), 3) if method == "__index__" else (lambda: of_float(number), 3.0)

    case.__name__ = method
    return case


def static(method, value):
    def case(switch):
        thing = type("Thing", (), {
            "__len__": lambda self: switch(2) if method == "__len__" else 2,
            "__bool__": lambda self: switch(True) if method == "__bool__" else True,
            "__iter__": lambda self: switch(iter((1, 2))) if method == "__iter__" else iter((1, 2)),
            "__getitem__": lambda self, i: switch(7) if method == "__getitem__" else 7,
        })()

        @qd.kernel
        def length() -> qd.i32:
            return qd.static(len(thing))

        @qd.kernel
        def truth() -> qd.i32:
            if qd.static(thing):
                return 1
            return 0

        @qd.kernel
        def items() -> qd.i32:
            s = 0
            for i in qd.static(thing):
                s += i
            return s

        @qd.kernel
        def item() -> qd.i32:
            return qd.static(thing[1])

        k = {"__len__": length, "__bool__": truth, "__iter__": items, "__getitem__": item}[method]
        return k, value

    case.__name__ = "static" + method
    return case


def called(switch):
    def compute(n):
        return switch(n * 2)

    @qd.kernel
    def k(n: qd.template()) -> qd.i32:
        return qd.static(compute(n))

    return lambda: k(4), 8


class Key:
    """A key of a dict that is asked whether it is another one."""

    def __init__(self, name, switch):
        self.hash, self.switch = hash(name), switch

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return self.switch(False)


def hostile_globals(switch):
    scope = {"qd": qd, Key("N", switch): 0, "N": 6}
    text = "@qd.kernel\ndef k() -> qd.i32:\n    return N\n"
    linecache.cache["<hostile>"] = (len(text), None, text.splitlines(True), "<hostile>")
    exec(compile(text, "<hostile>", "exec"), scope)
    return scope["k"], 6


def hostile_defaults(switch):
    def plain(*, n: qd.i32 = 3) -> qd.i32:
        return n

    plain.__kwdefaults__ = {Key("n", switch): 1, "n": 8}
    return qd.kernel(plain), 8


def hostile_dict(switch):
    table = {Key("a", switch): 1, "a": 9}

    @qd.kernel
    def k() -> qd.i32:
        return qd.static(table["a"])

    return k, 9


def annotation(name):
    def case(switch):
        class Annotation:
            _ingot_passing = "template"

            def __getattribute__(self, asked):
                if asked == name:
                    switch()
                return super().__getattribute__(asked)

        def plain(x) -> qd.i32:
            return x

        plain.__annotations__ = {"x": Annotation(), "return": qd.i32}
        k = qd.kernel(plain)
        return lambda: k(4), 4

    case.__name__ = f"annotation.{name}"
    return case


class Refused:
    """An argument that no kernel takes: the message says what it is."""

    def __init__(self, switch):
        self.switch = switch

    def __str__(self):
        return self.switch("refused")

    def __dir__(self):
        return self.switch(["nearly"])


def message(switch):
    value = Refused(switch)

    @qd.kernel
    def k(a: qd.types.ndarray()):
        a[0] = 1

    def call():
        with pytest.raises(ValueError, match="refused" if not switch.what else r"\?"):
            k(value)

    return call, None


def near(switch):
    value = Refused(switch)

    @qd.kernel
    def k(v: qd.template()) -> qd.i32:
        return v.nearby

    def call():
        with pytest.raises(AttributeError, match="nearby"):
            k(value)

    return call, None


def exception_text(switch):
    class Own(Exception):
        def __str__(self):
            return switch("own")

    class Bad:
        def __class_getitem__(cls, item):
            raise Own

    def plain(x) -> qd.i32:
        return x

    fn = types.FunctionType(plain.__code__, {**plain.__globals__, "Bad": Bad}, "plain")
    fn.__annotations__ = {"x": "Bad[1]", "return": qd.i32}
    k = qd.kernel(fn)

    def call():
        with pytest.raises(qd.IngotCompilationError, match="own" if not switch.what else r"\?"):
            k(1)

    return call, None


def tensor_rows(switch):
    class Rows:
        def __iter__(self):
            return switch(iter((1.0, 2.0, 3.0)))

    rows = Rows()

    @qd.kernel
    def k(v: qd.types.vector(3, qd.f32)) -> qd.f32:
        return v[0] + v[2]

    return lambda: k(rows), 4.0


def shared(method):
    def case(switch):
        import numpy as np

        a = np.zeros(3, dtype=np.int32)

        class Foreign:
            def __dlpack_device__(self):
                return switch((1, 0)) if method == "__dlpack_device__" else (1, 0)

            def __dlpack__(self, **how):
                return switch(a.__dlpack__()) if method == "__dlpack__" else a.__dlpack__()

        value = Foreign()

        @qd.kernel
        def k(a: qd.types.ndarray(qd.i32, 1)) -> qd.i32:
            return a.shape[0]

        return lambda: k(value), 3

    case.__name__ = method
    return case


def field_metadata(switch):
    class Meta(dict):
        def __getitem__(self, key):
            return switch(super().__getitem__(key))

    @dataclasses.dataclass
    class Cell:
        n: qd.i32 = dataclasses.field(default=3, metadata={"add_value_to_cache_key": True})

    Cell.__dataclass_fields__["n"].metadata = Meta(Cell.__dataclass_fields__["n"].metadata)
    cell = Cell()

    @qd.kernel
    def k(c: Cell) -> qd.i32:
        return c.n

    return lambda: k(cell), 3


CASES = [
    attribute, missing_attribute, module_attribute, converted("__index__"), converted("__float__"),
    static("__len__", 2), static("__bool__", 1), static("__iter__", 3), static("__getitem__", 7), called,
    hostile_globals, hostile_defaults, hostile_dict, annotation("_ingot_passing"),
    message, near, exception_text, tensor_rows, shared("__dlpack__"), shared("__dlpack_device__"),
    field_metadata,
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_what_is_grave_comes_out(case):
    qd.init(arch=qd.interp)
    switch = Switch()
    for grave in GRAVE:
        call, value = case(switch)
        switch.what = grave
        with pytest.raises(grave, match="from a hook"):
            call()
        switch.what = None
        assert call() == value
        switch.what = grave  # a later call may know without asking
        try:
            got = call()
        except grave as e:
            assert e.args == ("from a hook",)
        else:
            assert got == value
        switch.what = None
        assert call() == value


# A mapping whose KeyError comes and goes says each time something else about how a number is
# passed, not about its value: launches do not ask it again, paranoid mode does.
ORDINARY = [pytest.param(c, marks=pytest.mark.counts("metadata that changes") if c is field_metadata else [])
            for c in CASES]


@pytest.mark.parametrize("case", ORDINARY, ids=lambda c: c.__name__)
def test_what_is_ordinary_is_no_wrong_answer(case):
    qd.init(arch=qd.interp)
    switch = Switch()
    for ordinary in (ValueError, TypeError, AttributeError, KeyError, RuntimeError):
        call, value = case(switch)
        for _ in range(2):
            switch.what = ordinary
            try:
                got = call()
            except (ordinary, qd.IngotError):
                pass
            else:
                assert got == value
            switch.what = None
            assert call() == value


# ---- where the text of a function comes from ------------------------------------------------------


class Loader:
    def __init__(self, text, switch):
        self.text, self.switch = text, switch

    def get_source(self, name):
        return self.switch(self.text)


@pytest.mark.parametrize("grave", GRAVE)
def test_a_loader(grave):
    qd.init(arch=qd.interp)
    text = "def plain() -> qd.i32:\n    return 11\n"
    switch = Switch()
    scope = {"qd": qd, "__name__": "loaded", "__loader__": Loader(text, switch)}
    exec(compile(text, "<loaded>", "exec"), scope)
    switch.what = grave
    with pytest.raises(grave, match="from a hook"):
        qd.kernel(scope["plain"])
    switch.what = None
    assert qd.kernel(scope["plain"])() == 11
    switch.what = ImportError  # no text: said at the first call
    k = qd.kernel(scope["plain"])
    with pytest.raises(qd.IngotSyntaxError, match="no source text"):
        k()


@pytest.mark.parametrize("grave", GRAVE)
def test_a_cache_that_cannot_be_opened(grave, monkeypatch):
    """The warning about it is the program's own code, too."""
    qd.init(arch=qd.cpu, offline_cache_file_path="/dev/null/nowhere")

    @qd.kernel
    def k() -> qd.i32:
        return 12

    switch = Switch()
    monkeypatch.setattr("warnings.showwarning", lambda *a, **k: switch())
    monkeypatch.setattr("warnings._showwarnmsg_impl", lambda *a: switch(), raising=False)
    switch.what = grave
    with pytest.raises(grave, match="from a hook"):
        k()
    switch.what = None
    assert k() == 12
    qd.init(arch=qd.cpu)
    assert "numpy" not in sys.modules or k() == 12
