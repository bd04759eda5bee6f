"""Random kernels (tests/py/random_kernels.py): native code equals the interpreter bit for bit
(R23, without fast math), and both equal NumPy where a kernel is one straight line."""

import random

import numpy as np
import pytest
from conftest import SEED, samples
from numpy_rules import NUMPY, convert, divided, promote, scope_of
from random_kernels import ARRAYS, DTYPES, FLOATS, MATH, N, REALS, Program, expression

import ingot as qd

ACC = ["i32", "i64", "u32", "u64"]
BATCH = 25  # programs between two changes of the settings


@pytest.fixture(autouse=True)
def fresh():
    yield
    qd.init()


def make(text, name):
    return scope_of(text, f"<random {name}>")["k"]


def numbers(rng, dtype, n=N):
    """Numbers at the borders and in between."""
    t = NUMPY[dtype]
    if dtype == "u1":
        return rng.random(n) < 0.5
    if dtype in REALS:
        special = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-40, -1e-300, 3e38, np.inf, -np.inf, np.nan, 1e18]
        with np.errstate(over="ignore", under="ignore"):
            return np.where(rng.random(n) < 0.3, rng.choice(special, n),
                            rng.normal(0, 50, n)).astype(t)
    info = np.iinfo(t)
    wide = rng.integers(info.min, info.max, n, dtype=t, endpoint=True)
    small = rng.integers(0 if info.min == 0 else -20, 20, n).astype(t)
    border = rng.choice(np.array([info.min, info.max, 0, 1], dtype=t), n)
    return np.where(rng.random(n) < 0.5, small, np.where(rng.random(n) < 0.5, wide, border))


def arguments(seed):
    rng = np.random.default_rng(seed)
    ins = [numbers(rng, d) for d in ARRAYS]
    outs = [np.zeros(N, NUMPY[d]) for d in ARRAYS]
    accs = [np.zeros((6, 32), NUMPY[d]) for d in ACC]
    for a in accs:
        a[3] = -1 if a.dtype.kind == "i" else np.iinfo(a.dtype).max
    return [*ins, *outs, *accs, int(rng.integers(-100, 100)), float(rng.normal())]


def same(a, b):
    """Bit for bit; NaN is NaN, whatever its sign and payload."""
    if a.dtype.kind == "f":
        nan = np.isnan(a) & np.isnan(b)
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return a.tobytes() == b.tobytes()


def compare(programs, seeds, one, other):
    results = []
    for settings in (one, other):
        qd.init(fast_math=False, **settings)
        row = []
        for program, seed in zip(programs, seeds):
            args = arguments(seed)
            try:
                make(program.text, seed)(*args)
                row.append(args)
            except Exception as e:
                raise AssertionError(f"seed {seed}, {settings}:\n{program.text}\n{e}") from e
        results.append(row)
    names = [f"in_{d}" for d in ARRAYS] + [f"out_{d}" for d in ARRAYS] + [f"acc_{d}" for d in ACC]
    for program, seed, left, right in zip(programs, seeds, *results):
        for name, a, b in zip(names, left, right):
            assert same(a, b), (f"seed {seed}: {name} differs at "
                                f"{[i for i in np.ndindex(a.shape) if not same(a[i], b[i])][:4]}\n"
                                f"{one}: {a}\n{other}: {b}\n{program.text}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(-(-samples(2000) // BATCH)))
def test_native_equals_the_interpreter(batch):
    seeds = [SEED + batch * BATCH + i for i in range(min(BATCH, samples(2000)))]
    programs = [Program(seed) for seed in seeds]
    compare(programs, seeds, {"arch": qd.cpu}, {"arch": qd.interp})


@pytest.mark.filterwarnings("ignore")
def test_threads_change_nothing():
    seeds = [SEED * 2 + i for i in range(samples(200))]
    programs = [Program(seed) for seed in seeds]
    compare(programs, seeds, {"cpu_max_num_threads": 1}, {"cpu_max_num_threads": 4})


LIBRARY = """
@qd.kernel
def k(x: qd.types.ndarray(), a: qd.types.ndarray()):
    for i in range(x.shape[0]):
        a[0, i] = x[i] ** 0.5
        a[1, i] = x[i] ** -0.5
"""


def test_the_functions_of_the_library(samples):
    """Also of constants, and where another function would do, the library's own is called."""
    rng = np.random.default_rng(SEED)
    calls = [f"{f}(qd.cast({rng.uniform(0, 1)!r}, qd.{t}))" for f in MATH for t in FLOATS
             for _ in range(samples(200))]
    text = LIBRARY + "".join(f"    a[2, {i}] = qd.{c}\n" for i, c in enumerate(calls))
    x, results = rng.uniform(0, 9, len(calls)).astype(np.float32), []
    for arch in (qd.cpu, qd.interp):
        qd.init(arch=arch, fast_math=False)
        a = np.zeros((3, len(calls)))
        make(text, "library")(x, a)
        results.append(a)
    assert same(*results)


# ---- NumPy's opinion ---------------------------------------------------------------------------


def text_of(node):
    op, dtype, parts = node
    if op == "in":
        return f"in_{dtype}[i]"
    args = [text_of(p) for p in parts]
    if op == "cast":
        return f"qd.cast({args[0]}, qd.{dtype})"
    if op in ("min", "max"):
        return f"{op}({args[0]}, {args[1]})"
    if op in ("abs", "floor", "sqrt"):
        return f"qd.{op}({args[0]})"
    if op == "neg":
        return f"(-{args[0]})"
    if op in ("<", "=="):
        return f"qd.cast({args[0]} {op} {args[1]}, qd.i32)"
    return f"({args[0]} {op} {args[1]})"


def legal(node):
    """Casts the operands of operators that take integers only, or floats only."""
    op, dtype, parts = node
    if op == "in":
        return node
    parts = tuple(legal(p) for p in parts)
    if op in ("&", "|", "^", "<<", ">>"):
        parts = tuple(("cast", "i32", (p,)) if kind_of(p) in FLOATS else p for p in parts)
    if op in ("/", "sqrt", "floor"):
        parts = tuple(("cast", "f64", (p,)) if kind_of(p) not in FLOATS else p for p in parts)
    return (op, dtype, parts)


def kind_of(node):
    """The dtype of an expression."""
    op, dtype, parts = node
    if op in ("in", "cast"):
        return dtype
    if op in ("<", "=="):
        return "i32"
    kinds = [kind_of(p) for p in parts]
    if len(kinds) == 1 or op in ("<<", ">>"):
        return kinds[0]
    return promote(*kinds)


UNARY = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor}
BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "&": np.bitwise_and,
          "|": np.bitwise_or, "^": np.bitwise_xor, "<": np.less, "==": np.equal}


def evaluate(node, env):
    op, dtype, parts = node
    if op == "in":
        return env[dtype]
    values, kinds = [evaluate(p, env) for p in parts], [kind_of(p) for p in parts]
    if op == "cast":
        return convert(values[0], kinds[0], dtype)
    if op in UNARY:
        return UNARY[op](values[0])
    t = kinds[0] if op in ("<<", ">>") else promote(*kinds)
    x, y = (convert(v, k, t) for v, k in zip(values, kinds))
    if op in ("<<", ">>"):
        y = y & np.array(int(t[1:]) - 1, NUMPY[t])
        return np.left_shift(x, y) if op == "<<" else np.right_shift(x, y)
    if op in ("//", "%"):
        return divided(op, x, y, t)
    if op in ("min", "max"):
        less = y < x if op == "min" else y > x
        return np.where(less | np.isnan(x), y, x)
    got = BINARY[op](x, y)
    return got.astype(np.int32) if op in ("<", "==") else got


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_numpy_agrees(arch):
    """Forty expressions for each kernel."""
    qd.init(arch=getattr(qd, arch), fast_math=False)
    for seed in range(SEED, SEED + samples(200)):
        r, rng = random.Random(seed), np.random.default_rng(seed)
        trees = [legal(expression(r, r.randrange(1, 5))) for _ in range(40)]
        env = {d: numbers(rng, d) for d in DTYPES}
        outs = [np.zeros(N, NUMPY[kind_of(t)]) for t in trees]
        params = [f"in_{d}" for d in DTYPES] + [f"o{i}" for i in range(len(trees))]
        lines = ["@qd.kernel", f"def k({', '.join(p + ': qd.types.ndarray()' for p in params)}):",
                 f"    for i in range({N}):"]
        lines += [f"        o{i}[i] = {text_of(t)}" for i, t in enumerate(trees)]
        make("\n".join(lines) + "\n", seed)(*env.values(), *outs)
        with np.errstate(all="ignore"):
            for tree, out in zip(trees, outs):
                want = evaluate(tree, env)
                assert want.dtype == out.dtype
                bad = [i for i in range(N) if not same(want[i], out[i])]
                if bad:
                    i = bad[0]
                    raise AssertionError(
                        f"seed {seed}: {text_of(tree)} at {i}: NumPy {want[i]!r}, "
                        f"{arch} {out[i]!r}, of {({d: v[i] for d, v in env.items()})}")
