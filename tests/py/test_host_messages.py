"""Mistakes outside of kernels: names, options, the environment, fields and decorators. Each is told with a remedy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ingot as qd


TOTAL = None


@qd.kernel
def changed_as_a_whole():
    TOTAL += 1  # noqa: F821, F823


@qd.kernel
def changed():
    TOTAL[None] += 1


def told(kind, *words):
    """The block raises this class, and the message has these words."""
    return pytest.raises(kind, match=".*".join(words))


def in_a_process(text, **variables):
    """(status, stderr) of a program."""
    done = subprocess.run([sys.executable, "-W", "always", "-c", text], env={**os.environ, **variables},
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_one_suggestion_for_a_misspelt_name():
    for name, words in (("feild", "did you mean 'field'?"), ("ui", "qd.tools.imshow")):
        status, said = in_a_process(f"import ingot as qd\nqd.{name}")
        assert status == 1 and words in said and said.lower().count("did you mean") == words.count("did you mean"), said


def test_options():
    with told(qd.IngotOptionError, "did you mean 'arch'"):
        qd.init(archh=qd.cpu)
    with told(qd.IngotOptionError, r"dir\(qd.cfg\)"):
        qd.init(zzzz=1)
    assert qd.IngotOptionError.__module__ == "ingot"


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("INGOT_NUM_THREADS", "4", "did you mean INGOT_CPU_MAX_NUM_THREADS?"),
    ("INGOT_CACHE_SIZE", "4", "did you mean INGOT_OFFLINE_CACHE_MAX_SIZE_OF_FILES?"),
    ("INGOT_CPU_LEVEL", "v9", "INGOT_CPU_LEVEL=v9 is none of x86-64, "),
])
def test_variables_that_are_told(variable, value, words):
    status, said = in_a_process("import ingot as qd\nqd.init()", **{variable: value})
    assert status == 0 and words in said, said


def test_a_target_of_the_environment():
    status, said = in_a_process("import ingot as qd\nqd.init()", INGOT_ARCH="toaster")
    assert status == 1 and "environment variable INGOT_ARCH='toaster': arch 'toaster' is not known" in said


def test_levels_are_those_of_the_engine():
    from ingot import _core, _options

    assert set(_options.CPU_LEVELS) == set(_core._machine()["levels"])


def test_places_of_fields():
    x, y = qd.field(qd.f32), qd.field(qd.f32)
    node = qd.root.dense(qd.i, 8)
    node.place(x)
    with told(qd.IngotRuntimeError, "placed already", "leave one of them out"):
        qd.root.dense(qd.i, 8).place(x)
    with told(ValueError, "ndarray cannot be placed", "qd.field"):
        node.place(np.zeros(8))
    x[0] = 1
    with told(qd.IngotRuntimeError, "in use already", "before the first is used"):
        node.place(y)
    qd.root.dense(qd.i, 8).place(y)  # the remedy
    y[7] = 2
    assert (x[0], y[7]) == (1, 2)
    with told(qd.IngotRuntimeError, "Pointer SNode is not supported", "use dense"):
        qd.root.pointer(qd.i, 8)


def test_elements_of_fields():
    with told(qd.IngotRuntimeTypeError, r"it comes first: qd.field\(qd.f32, 10\)"):
        qd.field((8, 8), qd.f32)
    v = qd.Vector.field(3, qd.f32, shape=2)
    with told(qd.IngotRuntimeTypeError, "a vector of 3 numbers; this list does not fit"):
        v[0] = [1, 2]
    with told(TypeError, r"numpy.array\(x\)"):
        qd.field(qd.f32, 2).from_numpy([1.0, 2.0])
    with told(TypeError, r"x.astype\(numpy.float64\)"):
        qd.field(qd.f32, 2).from_numpy(np.zeros(2, complex))
    x = qd.field(qd.f32, 2)
    qd.init()
    with told(qd.IngotRuntimeError, "was destroyed", "make it again"):
        x[0] = 1


def test_decorators_and_annotations():
    with told(TypeError, "got staticmethod: put its decorator above"):
        qd.kernel(staticmethod(lambda: 0))
    with told(TypeError, "got int: kernels and funcs are written as a `def`"):
        qd.kernel(3)
    with told(TypeError, "2 is no dtype; use for example qd.f32; the number of axes is ndim=2"):
        qd.types.ndarray(2)


def test_a_field_that_is_changed_as_a_whole():
    global TOTAL
    TOTAL = qd.field(qd.f32, ())
    with pytest.raises(qd.IngotSyntaxError, match="from outside") as e:
        changed_as_a_whole()
    assert "x[None] += y" in str(e.value)
    changed()
    assert TOTAL[None] == 1
