"""Several interpreters in one process: those that share the GIL work like the main one, and
one with a GIL of its own gets a clear ImportError."""

import sys
import textwrap

import pytest
from conftest import needs, output_of

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
OWN_GIL = lambda test: test
if sys.version_info < (3, 12):
    OWN_GIL = pytest.mark.not_run(reason="interpreters with a GIL of their own (Python 3.12)")

HEAD = f"""
import {MODULE} as interpreters
import sys

def create(isolated):
    if sys.version_info >= (3, 13):
        return interpreters.create("isolated" if isolated else "legacy")
    return interpreters.create(isolated=isolated)

def run(where, text):
    failed = interpreters.run_string(where, text)  # raises itself before 3.13
    assert not failed, failed

"""

KERNELS = """
import ingot as qd

N = 3

@qd.kernel
def fill(a: qd.types.ndarray()):
    for i in a:
        a[i] = N
    for i in range(1):
        print("N is", N)
"""

USE = """
import ingot as qd, kernels
qd.init(arch=qd.cpu)
a = qd.ndarray(qd.i32, 4)
kernels.fill(a)
print([a[i] for i in range(4)], flush=True)
"""


def run(tmp_path, text):
    """What a program prints that makes interpreters, in a process of its own."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(text))
    # PYTHONPATH: other interpreters do not see a program's folder
    return output_of(sys.executable, "-X", "faulthandler", path, cwd=tmp_path, timeout=240, PYTHONPATH=str(tmp_path))


@needs(MODULE)
@OWN_GIL
@pytest.mark.parametrize("first", [False, True], ids=["alone", "after the main interpreter"])
def test_one_with_its_own_gil_is_refused(tmp_path, cache_dir, first):
    out = run(tmp_path, f"""
        if {first}:
            exec({USE!r})
        where = create(True)
        for module in ("ingot", "ingot._core", "ingot.fingerprint", "ingot"):
            run(where, f'''
        try:
            import {{module}}
        except ImportError as e:
            print(e, flush=True)
        ''')
        interpreters.destroy(where)
        exec({USE!r})
    """)
    values = "N is 3\n[3, 3, 3, 3]\n"
    refusal = (
        "Ingot cannot be imported in a subinterpreter that has a GIL of its own: its engine is "
        "shared by the whole process\n"
        "help: use Ingot in the main interpreter or in one that shares its GIL\n")
    assert out == values * first + refusal * 4 + values


@needs(MODULE)
def test_one_that_shares_the_gil(tmp_path, cache_dir):
    """Before, beside and after the main interpreter, and again after one was destroyed."""
    out = run(tmp_path, f"""
        one, two = create(False), create(False)
        run(one, {USE!r})
        exec({USE!r})
        run(two, {USE!r})
        interpreters.destroy(one)
        exec({USE!r})
        run(two, {USE!r})
        interpreters.destroy(two)
        exec({USE!r})
        three = create(False)
        run(three, {USE!r})
    """)
    assert out == "N is 3\n[3, 3, 3, 3]\n" * 7


@needs(MODULE)
def test_arrays_are_shared_and_freed_in_each(tmp_path, cache_dir):
    """The end of a DLPack export asks which interpreter's thread it is on."""
    share = """
import ingot as qd
a = qd.ndarray(qd.i32, 4)
a.fill(5)
b = qd.from_dlpack(a)
a.fill(2)
print(b[3], flush=True)
del a, b
"""
    out = run(tmp_path, f"""
        where = create(False)
        run(where, {share!r})
        exec({share!r})
        run(where, {share!r})
        interpreters.destroy(where)
    """)
    assert out == "2\n" * 3
