"""The type stubs: every name that they promise exists, and type checkers are content with the
examples and see mistakes."""

import ast
import importlib
import os
import pathlib
import subprocess
import sys
from typing import Any, Literal

import pytest
from conftest import ROOT, needs

import ingot as qd

PACKAGE = pathlib.Path(qd.__file__).parent
STUBS = {
    "ingot": "__init__.pyi",
    "ingot.ad": "ad.pyi",
    "ingot.math": "math.pyi",
    "ingot.types": "types/__init__.pyi",
}
ONLY_TYPES = {"Arch", "Kernel"}  # classes of values that have no public name

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
import ingot as qd

a = qd.ndarray(qd.f32)
b: str = qd.ndarray(qd.f32, 3)
c = qd.ndarray(qd.f32, 3).fil(1)
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
    names = {name for name in names if not name.startswith("_")} - ONLY_TYPES
    real = importlib.import_module(module)
    assert len(names) > 5 and not [name for name in names if not hasattr(real, name)]
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
    assert all(f"bad.py:{line}" in said for line in (4, 5, 6)), said


@needs("mypy", "PIL")
def test_mypy_strict(tmp_path):
    three_checks(["mypy", "--strict", "--cache-dir", str(tmp_path / "mypy")], tmp_path)


@needs("pyright", "PIL")
def test_pyright(tmp_path):
    three_checks(["pyright", "--pythonpath", sys.executable], tmp_path)
