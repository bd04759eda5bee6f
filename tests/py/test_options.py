"""Options that do what they say: texts of kernels, log levels, timelines, warnings, and the page that lists
all of them."""

import json
import logging
import os
import re
import runpy
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import ROOT

import ingot as qd
from ingot import _init, _options


@pytest.fixture(autouse=True)
def start():
    qd.init()
    yield
    qd.init()


def program(tmp_path, text, **env):
    path = tmp_path / "program.py"
    path.write_text("import numpy as np\nimport ingot as qd\n" + text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=200,
                          env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done


KERNEL = """
@qd.kernel
def scale(a: qd.types.ndarray(qd.f32, 1)):
    for i in a:
        a[i] = qd.sin(a[i]) * 3

a = np.ones(8, np.float32)
"""


# ---- texts of kernels ---------------------------------------------------------------------------------


TEXTS = {
    "print_preprocessed_ir": ("IR as lowered", "loop parallel"),
    "print_ir": ("IR after passes", "task.begin"),
    "print_kernel_llvm_ir": ("LLVM IR, task 1 of 1", "define "),
    "print_kernel_llvm_ir_optimized": ("LLVM IR, optimised, task 1 of 1", "define "),
    "print_kernel_asm": ("machine code, task 1 of 1", "ret"),
}


def test_texts_are_printed_from_any_cache(tmp_path, cache_dir, capfd):
    @qd.kernel
    def scale(a: qd.types.ndarray(qd.f32, 1)):
        for i in a:
            a[i] = qd.sin(a[i]) * 3

    a = np.ones(8, np.float32)
    scale(a)  # now it is on disk and in memory
    assert capfd.readouterr().out == ""
    assert set(TEXTS) == set(_options.DUMPS)
    for option, (head, inside) in TEXTS.items():
        qd.init(**{option: True})
        a[:] = 1
        scale(a)
        text = capfd.readouterr().out
        assert f".scale: {head}\n" in text and inside in text and text.count("; ====") == 1, text
        np.testing.assert_allclose(a, 3 * np.sin(1), rtol=1e-6)
        scale(a)
        assert capfd.readouterr().out == ""  # once per variant
    qd.init(arch=qd.interp, print_ir=True, print_kernel_asm=True)
    scale(a)
    assert "IR after passes" in capfd.readouterr().out


# ---- telling ------------------------------------------------------------------------------------------


def test_log_levels(tmp_path, cache_dir):
    for level, words in {"info": [], "debug": ["compiled program.py.scale: "],
                         "trace": ["compiled program.py.scale: ", "compile scale: "]}.items():
        done = program(tmp_path, KERNEL + f"qd.init(log_level={level!r}, offline_cache=False)\nscale(a)\n")
        assert [word in done.stderr for word in ["compiled program.py.scale: ", "compile scale: "][:2]] == [
            word in words for word in ["compiled program.py.scale: ", "compile scale: "]], done.stderr
    with pytest.raises(ValueError, match="log_level is one of"):
        qd.init(log_level="loud")


def test_logging(cache_dir):
    records = []

    class Handler(logging.Handler):
        def emit(self, record):
            records.append((record.levelname, record.getMessage()))

    logger, handler = logging.getLogger("ingot"), Handler()
    logger.addHandler(handler)
    try:
        for level, count in ((logging.WARNING, 0), (logging.INFO, 1), (logging.DEBUG, 2)):
            logger.setLevel(level)
            qd.init(offline_cache=False)
            records.clear()

            @qd.kernel
            def told(a: qd.types.ndarray(qd.f32, 1)):
                for i in a:
                    a[i] += qd.static(count)

            told(np.ones(3, np.float32))
            assert len(records) == count and all("told" in text for _, text in records), records
        assert {name for name, _ in records} == {"INFO", "DEBUG"}
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def test_a_handler_that_raises_is_no_error_of_the_kernel():
    class Handler(logging.Handler):
        def handle(self, record):
            raise OSError("no")

    logger, handler = logging.getLogger("ingot"), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        @qd.kernel
        def fine(x: qd.i32) -> qd.i32:
            return x + 17

        assert fine(1) == 18
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("option, file", [("True", "ingot-timeline.json"), ("'mine.json'", "mine.json")])
def test_timeline(tmp_path, cache_dir, option, file):
    program(tmp_path, KERNEL + f"scale(a)\nqd.init(timeline={option})\nscale(a)\nscale(a)\n")
    events = json.loads((tmp_path / file).read_text())
    launches = [e for e in events if e["name"] == "launch"]
    assert launches and all(e["args"]["kernel"] == "scale" for e in launches)


# ---- warnings -----------------------------------------------------------------------------------------


def test_options_without_effect_are_told():
    for name, default in _options.ACCEPTED.items():
        if name in _options.EFFECTIVE:
            continue
        other = not default if isinstance(default, bool) else "x" if isinstance(default, str) else default + 1
        with pytest.warns(qd.IngotRuntimeWarning, match=f"{name}=.* has no effect") as caught:
            qd.init(**{name: other})
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.init(flatten_if=False, debug=False)  # the default
        qd.init(flatten_if=True, reference=True)  # as ingot.compat does


def test_every_warning_is_ours():
    assert issubclass(qd.IngotWarning, UserWarning) and issubclass(qd.IngotStaticCallWarning, qd.IngotWarning)
    assert issubclass(qd.IngotRuntimeWarning, qd.IngotWarning) and issubclass(qd.IngotRuntimeWarning, RuntimeWarning)

    @qd.kernel
    def lossy(a: qd.types.ndarray(qd.u8, 1)):
        for i in a:
            a[i] = 1.5

    with pytest.warns(qd.IngotWarning, match="may lose precision"):
        lossy(np.zeros(2, np.uint8))


def test_variables_that_mean_nothing(tmp_path):
    done = program(tmp_path, "qd.init()\nqd.init()\n", INGOT_LOG="bogus,cache", INGOT_CACH_DIR="x", INGOT_OTHER="1")
    said = re.findall(r"IngotRuntimeWarning: (.*)", done.stderr)
    assert len(said) == 2 and "no topic 'bogus'" in said[0] + said[1]
    assert "INGOT_CACH_DIR means nothing; did you mean INGOT_CACHE_DIR?" in said[0] + said[1]


# ---- names --------------------------------------------------------------------------------------------


def test_repr_of_cfg():
    assert re.match(rf"<qd\.cfg arch={qd.cpu.name}(, paranoid=True)?; \d+ options", repr(qd.cfg))
    qd.init(debug=True, default_fp=qd.f64, print_ir=True)
    assert "debug=True" in repr(qd.cfg) and "default_fp=f64" in repr(qd.cfg) and "print_ir=True" in repr(qd.cfg)
    qd.cfg.debug = False
    assert "debug" not in repr(qd.cfg) and "dumps" not in repr(qd.cfg)
    for name in _options.INNER:
        with pytest.raises((qd.IngotError, TypeError)):
            qd.init(**{name: 1})


def test_version():
    done = subprocess.run([sys.executable, "-m", "ingot", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith(f"ingot {qd.__version__} (")


def test_the_page_has_all_options_and_variables():
    """docs/options.md is written by tools/write_options.py from the same tables."""
    script = ROOT / "tools" / "write_options.py"
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(script))["written"](page) == page, "run tools/write_options.py"
    for name in _init._known():
        assert f"`{name}`" in page or name in _options.INNER, name
    used = set()
    for path in [*(ROOT / "src").rglob("*.[ch]"), *(ROOT / "ingot").rglob("*.py")]:
        used |= set(re.findall(r"(?:getenv\(|environ(?:\.get\(|\[))\"(INGOT_\w+)\"", path.read_text(encoding="utf-8")))
    options = {"INGOT_" + name.upper() for name in _init._known()}
    assert len(used) >= 8 and not used - options - set(_options.VARIABLES), used


def test_no_scattered_stores(capfd):
    """Members of cells are written where they are: scatters take three times as long."""
    qd.init(arch=qd.cpu, print_kernel_asm=True)
    x, v = qd.Vector.field(3, qd.f32), qd.Vector.field(3, qd.f32)
    qd.root.dense(qd.i, 64).place(x, v)

    @qd.kernel
    def move(x: qd.template(), v: qd.template()):
        for i in x:
            x[i] += 0.5 * v[i]

    v.fill(2.0)
    move(x, v)
    text = capfd.readouterr().out
    assert "machine code" in text and "vscatter" not in text
    assert (x.to_numpy() == 1).all()
