"""Arrays of which a loop reads one place and which it does not write: code assumes that they lie apart from those
that it writes (src/pass/apart.c, src/gen/llvm_alias.c). Launches compare; where two overlap, the order of
the text counts."""

import numpy as np
import pytest
from numpy_rules import scope_of

import ingot as qd

Array = qd.types.ndarray


def scaled(x: Array(qd.f64, 1), w: Array(qd.f64, 1), y: Array(qd.f64, 1)):
    for _ in range(1):
        for i in range(x.shape[0]):
            y[i] = x[i] * w[0] + w[1]


def taps(x: Array(qd.f64, 1), w: Array(qd.f64, 1), y: Array(qd.f64, 1)):
    for _ in range(1):
        for i in range(x.shape[0] - 3):
            s = 0.0 * x[0]
            for k in range(3):
                s += w[k] * x[i + k]
            y[i] = s


def counted(x: Array(qd.f64, 1), w: Array(qd.f64, 1), y: Array(qd.f64, 1)):
    for _ in range(1):
        for i in range(x.shape[0]):
            y[0] += w[1]
            w[0] += x[i]


def both_written(x: Array(qd.f64, 1), w: Array(qd.f64, 1), y: Array(qd.f64, 1)):
    for _ in range(1):
        for i in range(x.shape[0]):
            y[i] = x[i] + w[0]
            w[1] = y[i] * 2.0
            w[0] = w[1] - w[2]


def views(memory, case):
    """x, w and y in one block of memory."""
    n = 60
    return {"apart": (memory[:n], memory[100:104], memory[200 : 200 + n]),
            "w in y": (memory[:n], memory[210:214], memory[200 : 200 + n]),
            "w in x": (memory[:n], memory[20:24], memory[200 : 200 + n]),
            "x is y": (memory[:n], memory[100:104], memory[:n]),
            "y after x": (memory[:n], memory[100:104], memory[7 : 7 + n]),
            "all": (memory[:n], memory[11:15], memory[5 : 5 + n])}[case]


@pytest.mark.parametrize("case", ["apart", "w in y", "w in x", "x is y", "y after x", "all"])
@pytest.mark.parametrize("body", [scaled, taps, counted, both_written], ids=lambda f: f.__name__)
def test_the_order_of_the_text(body, case):
    qd.init(arch=qd.cpu, fast_math=False)
    a = np.random.default_rng(1).integers(-3, 4, 300).astype(np.float64)
    b = a.copy()
    kernel = qd.kernel(body)
    kernel(*views(a, "apart"))
    body(*views(b, "apart"))
    assert np.array_equal(a, b)
    with np.errstate(all="ignore"):
        kernel(*views(a, case))
        body(*views(b, case))
    assert np.array_equal(a, b, equal_nan=True)


def test_fields_of_one_block():
    qd.init(arch=qd.cpu, fast_math=False)
    x, w = qd.field(qd.f64), qd.field(qd.f64)
    qd.root.dense(qd.i, 50).place(x, w)

    @qd.kernel
    def run(n: qd.i32):
        for _ in range(1):
            for i in range(n):
                x[i] = x[i] * w[3] + w[i]

    a, b = np.arange(50.0), np.arange(50.0) + 2
    x.from_numpy(a)
    w.from_numpy(b)
    run(50)
    assert np.array_equal(x.to_numpy(), a * b[3] + b)


def test_more_pairs_than_are_compared():
    """66 loops of 63 pairs each: the last one gets no assumption, and the kernel works."""
    written, read = [f"w{k}" for k in range(198)], [f"r{k}" for k in range(21)]
    text = f"@qd.kernel\ndef k({', '.join(f'{a}: qd.types.ndarray(qd.f32, 1)' for a in written + read)}):\n"
    for k in range(0, 198, 3):
        text += f"    for i in range(w0.shape[0]):\n        t = {' + '.join(f'{a}[0]' for a in read)}\n"
        text += "".join(f"        {a}[i] = t\n" for a in written[k : k + 3])
    qd.init(arch=qd.cpu)
    arrays = [np.zeros(5, np.float32) for _ in written] + [np.ones(1, np.float32) for _ in read]
    scope_of(text, "<many pairs>")["k"](*arrays)
    assert all((a == 21).all() for a in arrays[:198])
