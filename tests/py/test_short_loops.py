"""Short loops that call math functions in parallel loops (PLAN10 in src/gen/llvm_plan.c), made at random with what
forbids unrolling them: the same as without fast math, where no vector library is called and nothing is unrolled."""

import importlib.util
import random

import numpy as np
import pytest
from conftest import SEED, samples

import ingot as qd

N = 37


class Program:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.loops = [], 0
        helper = self.rng.random() < 0.5
        self.add(0, "@qd.func\ndef f(x, i):\n    u = qd.Vector([x, 0.5])")
        self.loop(1, "i", "u[{}]", depth=1 if helper else 2)
        self.add(1, "return u[0] - u[1]")
        self.add(0, "@qd.kernel\ndef k(a: qd.types.ndarray(qd.f32, 1), b: qd.types.ndarray(qd.f32, 1),"
                    " c: qd.types.ndarray(qd.i32, 1), m: qd.i32):")
        self.add(1, "for i in range(a.shape[0]):")
        self.add(2, "x = a[i]\n        u = qd.Vector([x, x * x])")
        self.loop(2, "i", "u[{}]", depth=2)
        self.add(2, "b[i] = u[0] + u[1] * 0.5 + " + ("f(x, i) + f(x * 0.5, i + 1)" if helper else "x"))
        self.text = "import ingot as qd\n\n\n" + "\n".join(self.lines) + "\n"

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    def value(self, names):
        x = f"({self.rng.choice(['x', 'x * x', '0.3'])} + {self.rng.choice(names)} * 0.125)"
        name = self.rng.choice(["exp", "sin", "cos", "sqrt", "tanh"])
        inner = {"exp": f"-abs({x}) * {self.rng.choice([1, 60, 1000])}", "sqrt": f"abs({x}) + 0.1"}.get(name, x)
        return f"qd.{name}({inner})"

    def loop(self, at, outer, place, depth, names=None):
        name = f"j{self.loops}"
        self.loops += 1
        names = [*(names or [outer]), name]
        begin = self.rng.choice([0, 0, 1, -2])
        kernel = at >= 2 and len(self.lines) > 4 and any("def k" in t for t in self.lines)
        end = self.rng.choice([begin + n for n in (1, 2, 3, 4, 4, 5, 8, 9)] + (["m"] if kernel else []))
        self.add(at, f"for {name} in range({begin}, {end}):")
        if self.rng.random() < 0.3:
            self.add(at + 1, f"if ({' + '.join(names)}) % 3 == 1: {self.rng.choice(['continue', 'break'])}")
        self.add(at + 1, f"{place.format(self.rng.choice(['0', '1', f'({name} + 2) % 2']))} += {self.value(names)}")
        if kernel and self.rng.random() < 0.15:
            self.add(at + 1, f"qd.atomic_add(c[({name} + 2) % 4], 1)")
        if kernel and self.rng.random() < 0.15:
            self.add(at + 1, f"b[i] = u[0] * {self.value(names)}\n{'    ' * (at + 1)}u[1] += b[i] * 0.25")
        if depth > 1 and self.rng.random() < 0.5:
            self.loop(at + 1, outer, place, depth - 1, names)


def launch(folder, seed, text, **settings):
    qd.init(arch=qd.cpu, **settings)
    path = folder / f"short{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    a, b, c = qd.ndarray(qd.f32, N), qd.ndarray(qd.f32, N), qd.ndarray(qd.i32, 4)
    a.from_numpy(np.random.default_rng(seed).random(N).astype("f4"))
    module.k(a, b, c, 3)
    return b.to_numpy(), c.to_numpy()


@pytest.mark.parametrize("batch", range(-(-samples(1000) // 10)))
def test_random(batch, tmp_path):
    for seed in range(SEED + batch * 10, SEED + (batch + 1) * 10):
        text = Program(seed).text
        want = launch(tmp_path, seed, text, fast_math=False)
        got = launch(tmp_path, seed, text, fast_math=True)
        np.testing.assert_allclose(got[0], want[0], rtol=2e-5, atol=2e-5, err_msg=text)
        np.testing.assert_array_equal(got[1], want[1], err_msg=text)
