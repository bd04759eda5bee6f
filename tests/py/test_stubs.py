"""The type stubs: every name that they promise exists, and type checkers are content with the
examples and see mistakes."""

import ast
import importlib
import inspect
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import types
from typing import Any, Literal

import pytest
from conftest import ROOT, needs

import ingot as qd

PACKAGE = pathlib.Path(qd.__file__).parent
STUBS = {
    "ingot": "__init__.pyi",
    "ingot.ad": "ad.pyi",
    "ingot.algorithms": "algorithms.pyi",
    "ingot.fingerprint": "fingerprint.pyi",
    "ingot.graph": "graph.pyi",
    "ingot.linalg": "linalg.pyi",
    "ingot.math": "math.pyi",
    "ingot.profiler": "profiler.pyi",
    "ingot.tools": "tools.pyi",
    "ingot.types": "types/__init__.pyi",
}

GOOD = """
from typing import Any, Literal

import ingot as qd

vec3 = qd.math.vec3
V1 = qd.types.NDArray[qd.math.vec3, Literal[1]]


@qd.func
def pull(a: vec3, b: vec3) -> vec3:
    d = b - a
    return d / (d.norm_sqr() + 1e-3)


@qd.func
def twice(x: Any) -> Any:
    return x * 2


@qd.kernel
def step(x: V1, dt: qd.f32) -> qd.f32:
    total = 0.0
    for i in x:
        a = vec3(0, 0, 0)
        for j in range(x.shape[0]):
            a += pull(x[i], x[j])
        x[i] += a * dt
        total += x[i].norm() + twice(qd.sqrt(dt))
    return total


@qd.data_oriented
class Body:
    def __init__(self, n: int) -> None:
        self.x = qd.Vector.ndarray(3, qd.f32, n)

    @qd.kernel
    def scale(self, by: qd.f32, v: qd.BufferView[qd.f32]) -> None:
        for i in range(v.size):
            self.x[i] = qd.Vector([1.0, 2.0, 3.0]) * by * v[i]


qd.init(arch=qd.cpu)
body = Body(8)
body.scale(0.5, qd.ndarray(qd.f32, 16)[2:6])
energy: float = step(body.x, 0.1)
"""

BAD = """
from typing import Literal

import numpy as np

import ingot as qd

F1 = qd.types.NDArray[qd.f32, Literal[1]]


@qd.kernel
def scale(x: F1, by: qd.f32) -> qd.i32:
    return 1


@qd.kernel(fastcache=True)
def fast(x: F1, by: qd.f32) -> None:
    pass


@qd.data_oriented
class Body:
    @qd.kernel
    def move(self, x: F1, n: qd.i32) -> None:
        pass


x = qd.ndarray(qd.f32, 3)
y = np.zeros(3, np.float32)
body = Body()
scale(x, 0.5), scale(y, by=2), fast(y, 1), body.move(x, 3), scale.grad(x, 1.0), Body.move(body, x, 3)  # fine
a = qd.ndarray(qd.f32)  # wrong
b: str = qd.ndarray(qd.f32, 3)  # wrong
c = qd.ndarray(qd.f32, 3).fil(1)  # wrong
scale(x)  # wrong: missing
scale(x, 0.5, 3)  # wrong: extra
scale(x, "fast")  # wrong: a string for a number
scale(3.0, 0.5)  # wrong: a number for an array
scale(x, size=0.5)  # wrong: no such name
fast(x)  # wrong: missing
body.move(x)  # wrong: missing
body.move(x, 1, 2)  # wrong: extra
body.move(x, "much")  # wrong: a string for a number
scale.grad(x)  # wrong: missing
d: str = scale(x, 0.5)  # wrong: the result is a number
qd.feild(qd.f32, 3)  # wrong: no such name
qd.math.clmp(1, 2, 3)  # wrong: no such name
"""


@pytest.mark.parametrize("module", STUBS)
def test_promised_names_exist(module):
    tree = ast.parse((PACKAGE / STUBS[module]).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets}
    real = importlib.import_module(module)
    if module == "ingot.fingerprint":
        real = sys.modules[module]  # a module that can be called, not the function of its name
    public = {name for name in names if not name.startswith("_")}
    assert len(public) > 5 and not [name for name in public if not hasattr(real, name)]
    listed = getattr(real, "__all__", None) or [name for name in dir(real) if not name.startswith("_")]
    listed = [name for name in listed if not isinstance(getattr(real, name), types.ModuleType)]  # what was imported so far
    assert not [name for name in listed if name not in names]
    assert (PACKAGE / "py.typed").exists()


def test_promised_members_exist():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in ("Ndarray", "BufferView", "Matrix", "Vector"):
            methods = [m.name for m in node.body if isinstance(m, ast.FunctionDef)]
            real = getattr(qd, node.name)
            known = [m for m in methods if m != "__setitem__" or node.name != "BufferView"]
            assert not [m for m in known if not hasattr(real, m)], node.name


def test_annotations_for_type_checkers():
    t = qd.types.NDArray[qd.f32, Literal[2]]
    assert (t.dtype, t.ndim) == (qd.f32, 2)
    qd.init()

    @qd.func
    def twice(x: Any) -> Any:
        return x * 2

    @qd.kernel
    def run(a: qd.types.NDArray[qd.f32, Literal[1]]) -> qd.f32:
        return twice(a[0]) + twice(3)

    a = qd.ndarray(qd.f32, 1)
    a[0] = 0.5
    assert run(a) == 7

    @qd.kernel
    def anything(a: Any):
        pass

    with pytest.raises(qd.IngotSyntaxError, match="no parameter type"):
        anything(1)


def check(command, files, folder):
    """Output of a type checker, '' when it is content."""
    env = dict(os.environ)
    if "site-packages" not in PACKAGE.parts:
        env["MYPYPATH"] = env["PYTHONPATH"] = str(PACKAGE.parent)
    done = subprocess.run(
        [sys.executable, "-m", *command, *map(str, files)], cwd=folder, env=env,
        capture_output=True, text=True, timeout=500,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def three_checks(command, tmp_path):
    examples = ROOT / "examples"
    assert check(command, sorted(p.name for p in examples.glob("*.py")), examples) == ""
    (tmp_path / "good.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    assert check(command, ["good.py"], tmp_path) == ""
    said = check(command, ["bad.py"], tmp_path)
    told = {int(line) for line in re.findall(r"bad\.py:(\d+)(?::\d+)?(?: -|:) error", said)}
    wrong = {i for i, line in enumerate(BAD.splitlines(), 1) if "# wrong" in line}
    assert told == wrong, said


@needs("mypy", "PIL")
def test_mypy_strict(tmp_path):
    three_checks(["mypy", "--strict", "--cache-dir", str(tmp_path / "mypy")], tmp_path)


@needs("pyright", "PIL")
def test_pyright(tmp_path):
    three_checks(["pyright", "--pythonpath", sys.executable], tmp_path)


# ---- what people see ---------------------------------------------------------------------------------


@needs("mypy")
def test_stubs_say_what_there_is(tmp_path):
    """mypy's stubtest; stubtest.allow has what differs on purpose."""
    for name in PACKAGE.rglob("*.pyi"):
        copy = tmp_path / "stubs" / "ingot" / name.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(name.read_text(encoding="utf-8"), encoding="utf-8")
    allow = ROOT / "tests" / "py" / "stubtest.allow"
    env = dict(os.environ, MYPYPATH=str(tmp_path / "stubs"), PYTHONPATH=str(PACKAGE.parent))
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "ingot", "--concise", "--allowlist", str(allow), "--ignore-unused-allowlist"],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def public_things():
    """(name, object) of all public names, and of what classes define."""
    modules = [sys.modules[importlib.import_module(name).__name__] for name in STUBS]
    modules[list(STUBS).index("ingot.fingerprint")] = sys.modules["ingot.fingerprint"]
    for module in modules:
        for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
            thing = getattr(module, name)
            yield f"{module.__name__}.{name}", thing
            if isinstance(thing, type) and not issubclass(thing, BaseException):
                yield from ((f"{module.__name__}.{name}.{k}", getattr(thing, k)) for k in vars(thing) if not k.startswith("_"))


def test_everything_public_has_words_and_a_signature():
    values = (int, float, str, bool, tuple, list, dict, type(None), type(qd.cpu), type(qd))
    without_words, without_signature, count = [], [], 0
    for name, thing in public_things():
        if isinstance(thing, values):
            continue
        count += 1
        if not inspect.getdoc(thing):
            without_words.append(name)
        if callable(thing):
            try:
                inspect.signature(thing)
            except (TypeError, ValueError):
                without_signature.append(name)
    assert count > 400 and not without_words and not without_signature, (count, without_words, without_signature)


def test_signatures_of_what_is_made_in_c():
    assert str(inspect.signature(qd.f32)) == str(inspect.signature(qd.u1)) == "(x)"
    assert str(inspect.signature(qd.Kernel)) == "(function)" and str(inspect.signature(qd.IngotTypeError)) == "(*args)"

    class Mine(qd.IngotError):
        def __init__(self, where, why):
            super().__init__(where, why)

    assert str(inspect.signature(Mine)) == "(where, why)"

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return n

    assert str(inspect.signature(k)) == "(n: i32) -> i32" and not hasattr(k, "__signature__")
    assert "native code" in inspect.getdoc(qd.Kernel) and k.__doc__ is None
    k.__doc__ = "Mine."
    assert k.__doc__ == k.__wrapped__.__doc__ == "Mine."
    del k.__doc__
    assert k.__doc__ is None
    assert inspect.getdoc(qd.Template.ndim) and inspect.getdoc(qd.BufferView.arr) and inspect.getdoc(qd.GraphStatus.yielded)


def test_help_on_everything():
    """help() of public names, and of what kernels, funcs, fields and arrays have."""
    @qd.data_oriented
    class Holder:
        @qd.kernel
        def step(self, n: qd.i32):
            """Steps."""

    @qd.kernel
    def plain(n: qd.i32):
        """Does nothing."""

    @qd.func
    def one():
        """One."""
        return 1

    found = dict(public_things())
    for thing in (plain, one, Holder.step, Holder().step, qd.ndarray(qd.f32, 3), qd.field(qd.f32, 3),
                  qd.Vector.field(3, qd.f32, 2), qd.Struct.field({"x": qd.f32}, shape=2), qd.Vector([1, 2])):
        found[repr(thing)] = thing
        for name in dir(thing):
            if not name.startswith("_") and name not in ("grad", "dual"):
                found[f"{thing!r}.{name}"] = getattr(thing, name)
    assert len(found) > 600
    for name, thing in found.items():
        assert isinstance(thing, str) or pydoc.render_doc(thing), name
    assert "Does nothing." in pydoc.plain(pydoc.render_doc(plain)) and "Steps." in pydoc.plain(pydoc.render_doc(Holder().step))
    for kind in (type(plain), type(one), type(Holder().step)):
        assert kind.__module__ == "ingot"
    assert plain.__module__ == one.__module__ == Holder().step.__module__ == __name__
    assert plain.lower.__doc__ and str(inspect.signature(plain.lower)) == "(*args)"
    assert str(inspect.signature(plain)) == "(n: i32)" and str(inspect.signature(Holder().step.resume)) == "(*args, from_checkpoint)"
    assert str(inspect.signature(Holder().step)) == str(inspect.signature(Holder().step.grad)) == "(n: i32)"
