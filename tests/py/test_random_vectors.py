"""Random programs over vectors, matrices and structs (tests/py/random_vectors.py): native code,
the interpreter and NumPy (tests/py/numpy_vectors.py) agree, without fast math to the last digit."""


import numpy as np
import pytest
from conftest import SEED, samples
from numpy_rules import NUMPY, scope_of
from numpy_vectors import T, run
from random_vectors import FLOATS, N, Program

import ingot as qd

BATCH = 25  # programs between two changes of the settings


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def numbers(rng, dtype, shape):
    if dtype in FLOATS:
        return (rng.integers(-64, 65, shape) / 8).astype(NUMPY[dtype])
    return rng.integers(0 if dtype[0] == "u" else -20, 21, shape).astype(NUMPY[dtype])


class Case:
    """A program with its arguments, the same for everyone who runs it."""

    def __init__(self, seed):
        self.seed, self.program = seed, Program(seed)
        p, rng = self.program, np.random.default_rng(seed)
        self.ins = [numbers(rng, d, (N, *s)) for d, s in p.ins]
        self.args = [self.draw(rng, d, s) for d, s in p.args]
        self.own = rng.random(len(p.ins) + len(p.outs) + len(p.accs)) < 0.4  # not NumPy's

    def draw(self, rng, dtype, shape):
        if dtype in self.program.structs:
            return (dtype, [self.draw(rng, d, s) for _, d, s in self.program.structs[dtype]])
        return numbers(rng, dtype, shape)

    def arrays(self):
        p = self.program
        return ([a.copy() for a in self.ins] + [np.zeros((N, *s), NUMPY[d]) for d, s in p.outs]
                + [np.zeros((4, *s), NUMPY[d]) for d, s in p.accs])

    def native(self):
        scope, arrays = scope_of(self.program.text, f"<random vectors {self.seed}>"), self.arrays()

        def give(x):
            if isinstance(x, tuple):
                return scope[x[0]](*(give(y) for y in x[1]))
            return x.tolist()

        passed = [own_array(a, k) if own else a
                  for a, own, k in zip(arrays, self.own, self.program.kinds())]
        got = scope["k"](*passed, *(give(x) for x in self.args))
        arrays = [x.to_numpy() if isinstance(x, qd.Ndarray) else x for x in passed]
        return arrays + [y for x in got for y in flat(x)]

    def model(self):
        p, scope, arrays = self.program, run(self.program.text), self.arrays()

        def give(x, dtype):
            if isinstance(x, tuple):
                members = zip(x[1], p.structs[dtype])
                return scope[dtype](*(give(y, m[1]) for y, m in members))
            return T(dtype, x)

        with np.errstate(all="ignore"):
            got = scope["k"](*(T(d, a) for a, (d, _) in zip(arrays, p.kinds())),
                             *(give(x, d) for x, (d, _) in zip(self.args, p.args)))
        return arrays + [y for x in got for y in flat(x)]


def own_array(a, kind):
    dtype, shape = getattr(qd, kind[0]), kind[1]
    if len(shape) == 2:
        dtype = qd.types.matrix(*shape, dtype)
    elif shape:
        dtype = qd.types.vector(*shape, dtype)
    made = qd.ndarray(dtype, len(a))
    made.from_numpy(a)
    return made


def flat(x):
    if isinstance(x, T):
        return [x.a]
    if isinstance(x, qd.Matrix):
        return [np.array(x.to_list())]
    if isinstance(x, qd.Struct) or hasattr(x, "members"):
        return [z for n in (x.keys if isinstance(x, qd.Struct) else x.members)
                for z in flat(getattr(x, n))]
    return [np.array(x)]


def same(a, b):
    """As numbers; what a kernel returns is Python's, so dtypes are those of the arrays."""
    return a.shape == b.shape and bool(np.all((a == b) | ((a != a) & (b != b))))


def check(case, left, right, who):
    assert len(left) == len(right)
    for k, (a, b) in enumerate(zip(left, right)):
        assert same(a, b), (f"seed {case.seed}: array or result {k} differs\n{who[0]}: {a}\n"
                            f"{who[1]}: {b}\n{case.program.text}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(-(-samples(2000) // BATCH)))
def test_native_interpreter_and_numpy_agree(batch):
    cases = [Case(SEED + batch * BATCH + i) for i in range(min(BATCH, samples(2000)))]
    results = []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, fast_math=False)
        row = []
        for case in cases:
            try:
                row.append(case.native())
            except Exception as e:
                raise AssertionError(f"seed {case.seed}, {arch}:\n{case.program.text}\n{e}") from e
        results.append(row)
    for case, native, interp in zip(cases, *results):
        check(case, native, interp, ("native", "interpreter"))
        check(case, interp, case.model(), ("interpreter", "NumPy"))
