"""State in objects, one small case per sentence of docs/compound-types.md, in four modules:
compound_dataclasses, compound_classes, compound_rebinding, compound_reading.
test_compound_process.py runs them in processes of their own, one after the other on one cache:

    compound_cases.py ARCH DTYPE [DTYPE ...]

A case is a function of the dtype of its arrays that launches and asserts, with kernels of its own.
Printed per case and dtype: whether it held, how often source was parsed, how often a kernel was
lowered, how many images were compiled.
"""

import importlib
import json
import re
import sys
import traceback
import warnings

import ingot as qd
from ingot import _core

N = 4
CASES = {}
MODULES = ("compound_dataclasses", "compound_classes", "compound_rebinding", "compound_reading")


class Case:
    def __init__(self, run, lowered, shares, parses):
        self.run, self.lowered, self.shares, self.parses = run, lowered, shares, parses


def case(run=None, *, lowered=0, shares=False, parses=False):
    """Registers a case. `lowered`: how many kernels are lowered even when all is on disk,
    because what ends in an error is not kept. `shares`: its kernels have the text of another
    case's, which may have been compiled before. `parses`: a launch is refused, with the text."""
    if run is None:
        return lambda f: case(f, lowered=lowered, shares=shares, parses=parses)
    assert run.__name__ not in CASES, run.__name__
    CASES[run.__name__] = Case(run, lowered, shares, parses or lowered > 0)
    return run


def load():
    for name in MODULES:
        importlib.import_module(name)
    return CASES


def full(dtype, value, **options):
    a = qd.ndarray(dtype, N, **options)
    a.fill(value)
    return a


def refused(error, pattern, call, *args):
    """`call` must fail with `error`, and the text of that match the pattern."""
    try:
        call(*args)
    except error as e:
        assert re.search(pattern, str(e), re.DOTALL), f"no {pattern!r} in {e}"
        return
    raise AssertionError("not refused")


def outcome(run, dtype):
    """"ok" with what was done, or "failed" with the error."""
    names = ("parses", "lowerings", "image_compiles")
    before = _core.counters()
    try:
        run(dtype)
    except BaseException:  # noqa: BLE001
        return ["failed", traceback.format_exc()]
    after = _core.counters()
    return ["ok", [after[n] - before[n] for n in names]]


def main(arch, dtypes):
    load()
    warnings.simplefilter("ignore")  # i32 <- f32 and the like
    qd.init(arch=getattr(qd, arch))
    for dtype in dtypes:
        for name, c in CASES.items():
            print("CASE", json.dumps([dtype, name, *outcome(c.run, getattr(qd, dtype))]))


if __name__ == "__main__":
    import compound_cases  # the module that the cases register with, not __main__

    compound_cases.main(sys.argv[1], sys.argv[2:])
