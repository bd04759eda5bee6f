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


def test_options_of_calls():
    """Keywords that there are not: the one that was meant, which works."""
    with told(TypeError, "@qd.kernel has no option 'fastcach'; did you mean 'fastcache'"):
        qd.kernel(fastcach=True)
    with told(TypeError, "@qd.kernel has no option 'inline'; it has fastcache, graph"):
        qd.kernel(inline=True)
    with told(TypeError, "did you mean 'requires_top_level'"):
        qd.func(require_top_level=True)
    with told(TypeError, "did you mean 'stable_members'"):
        qd.data_oriented(stable_member=True)
    with told(TypeError, "qd.types.ndarray has no option 'dtpe'; did you mean 'dtype'"):
        qd.types.ndarray(dtpe=qd.f32)
    with told(TypeError, "qd.ndarray has no option 'dtpe'; did you mean 'dtype'"):
        qd.ndarray(dtpe=qd.f32, shape=8)
    with told(TypeError, "did you mean 'needs_grad'"):
        qd.ndarray(qd.f32, 8, need_grad=True)
    with told(TypeError, "missing required argument 'shape'"):
        qd.ndarray(dtype=qd.f32)
    with told(TypeError, "did you mean 'needs_grad'"):
        qd.Vector.ndarray(3, qd.f32, 8, need_grad=True)
    with told(TypeError, "qd.field has no option 'need_grad'; did you mean 'needs_grad'"):
        qd.field(qd.f32, shape=8, need_grad=True)
    assert qd.ndarray(dtype=qd.f32, shape=8, needs_grad=True).grad is not None


@qd.kernel
def narrow(n: qd.i32, m: qd.i64) -> qd.i64:
    return n + m


def test_a_number_that_does_not_fit_is_named():
    with told(qd.IngotArgumentError, "argument 'n': the value does not fit in i32", r"\n(.|\n)*wider type"):
        narrow(1 << 40, 1)
    with told(qd.IngotArgumentError, "argument 'm': the value does not fit in i64", r"\n(.|\n)*within its bounds"):
        narrow(1, 1 << 70)
    assert narrow(1, 1 << 40) == (1 << 40) + 1


COMPILES = """
import ingot as qd
qd.init()
@qd.kernel
def k() -> qd.i32:
    return 3
assert k() == 3
"""


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("INGOT_CACHE_DIR", "/proc/nope", "name a directory that you can write to in INGOT_CACHE_DIR"),
    ("INGOT_TRACE", "/proc/nope/trace.json", "no file can be written there"),
    ("INGOT_TRACE", "/tmp", "name a file in a folder of yours"),
])
def test_places_that_cannot_be_written(tmp_path, variable, value, words):
    path = tmp_path / "program.py"
    path.write_text(COMPILES, encoding="utf-8")
    for given, there in ((value, True), (str(tmp_path / "good"), False)):
        done = subprocess.run([sys.executable, "-W", "always", str(path)], env={**os.environ, variable: given},
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and (words in done.stderr) == there, done.stderr


def test_variables_with_impossible_values():
    status, said = in_a_process("import ingot as qd\nqd.init()", INGOT_DEBUG="maybe")
    assert status == 1 and "ingot.IngotOptionError: environment variable INGOT_DEBUG='maybe': expected 0 or 1" in said, said
