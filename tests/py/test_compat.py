"""Programs that say `import quadrants` or `import taichi`, on Ingot: the command line, the
finder, the aliases, and what a name does that Ingot lacks."""

import os
import subprocess
import sys
import textwrap

import pytest

import ingot
from ingot import compat
from ingot.compat import quadrants as qd
from ingot.compat.missing import Missing
from ingot.compat.quadrants._test_tools import load_kernel_string, textwrap2, warnings_helper

PROGRAM = """
import sys
import {name} as qd

qd.init(arch=qd.cpu)

@qd.kernel
def double(x: qd.types.ndarray()):
    for i in range(x.shape[0]):
        x[i] = 2 * x[i]

x = qd.ndarray(qd.i32, 3)
x.fill(21)
double(x)
print(x[2], sys.argv[1:], __name__)
"""


def python(*args, code=0, cwd=None, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("QD_")}
    done = subprocess.run(
        [sys.executable, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=cwd,
        env={**clean, **env},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def on_ingot(*args, **more):
    return python("-m", "ingot.compat", *args, **more)


@pytest.fixture(autouse=True)
def defaults():
    qd.init(arch=qd.cpu)
    yield
    qd.reset()


# ---- the command line ----------------------------------------------------------------------


@pytest.mark.parametrize("options, name", [([], "quadrants"), (["--taichi"], "taichi")])
def test_script(tmp_path, options, name):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM.format(name=name))
    assert on_ingot(*options, path, "a", "-b") == "42 ['a', '-b'] __main__\n"


def test_script_finds_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text("import quadrants\nvalue = 7\n")
    (tmp_path / "prog.py").write_text("from neighbour import value\nprint(value)\n")
    assert on_ingot(tmp_path / "prog.py", cwd="/") == "7\n"


def test_module(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM.format(name="quadrants"))
    assert on_ingot("-m", "prog", "a", cwd=tmp_path) == "42 ['a'] __main__\n"


def test_code():
    assert on_ingot("-c", PROGRAM.format(name="quadrants"), "a") == "42 ['a'] __main__\n"


def test_exit_status_and_traceback(tmp_path):
    assert on_ingot("-c", "import sys; sys.exit(3)", code=3) == ""
    path = tmp_path / "prog.py"
    path.write_text("import quadrants\nraise KeyError('here')\n")
    assert "KeyError: 'here'" in on_ingot(path, code=1)


@pytest.mark.parametrize("args", [[], ["-m"], ["-c"], ["--taichi"], ["--colour", "x.py"]])
def test_usage(args):
    assert "usage: python -m ingot.compat" in on_ingot(*args, code=2)


def test_help():
    assert "usage: python -m ingot.compat" in on_ingot("--help")


def test_child_processes(tmp_path):
    path = tmp_path / "prog.py"
    path.write_text(textwrap.dedent("""
        import multiprocessing, subprocess, sys
        import quadrants

        def answer(_):
            import quadrants
            return quadrants.__version__

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(answer, [0]) == [quadrants.__version__], flush=True)
            code = "import quadrants.lang.impl as impl; print(impl.__name__)"
            subprocess.run([sys.executable, "-c", code], check=True)
    """))
    assert on_ingot(path) == "True\ningot.compat.quadrants.lang.impl\n"


@pytest.mark.parametrize("name", ["quadrants", "taichi"])
def test_name_through_the_path(name):
    folder = on_ingot(*(["--taichi"] if name == "taichi" else []), "--path").strip()
    others = os.environ.get("PYTHONPATH", "")
    code = (
        f"import {name}, {name}.lang.exception as e, ingot; "
        f"print({name}.kernel is not None, {name}.Vector is ingot.Vector, "
        "e.QuadrantsTypeError is ingot.IngotTypeError)"
    )
    path = os.pathsep.join(filter(None, [folder, others]))
    assert python("-c", code, PYTHONPATH=path) == "True True True\n"


def test_colours_of_taichi(tmp_path):
    path = tmp_path / "prog.py"
    path.write_text(textwrap.dedent("""
        import numpy as np
        import taichi as ti
        print(hex(ti.rgb_to_hex((1.0, 0.5, -3))), ti.hex_to_rgb(0xff0080)[:2], ti.rgb_to_hex(np.ones((3, 2))))
    """))
    assert on_ingot("--taichi", path) == "0xff7f00 (1.0, 0.0) [16777215 16777215]\n"


@pytest.mark.parametrize("name", ["quadrants", "taichi"])
def test_classes_of_types(tmp_path, name):
    """Programs count the numbers of a struct by the classes of its members' types."""
    path = tmp_path / "prog.py"
    path.write_text(textwrap.dedent(f"""
        import {name} as ti
        from {name}.lang.matrix import MatrixType, VectorType
        from {name}.lang.struct import StructType

        @ti.dataclass
        class Body:
            place: ti.types.vector(3, ti.f32)
            turn: ti.types.matrix(2, 2, ti.f32)
            mass: ti.f32

        def size(kind):
            if isinstance(kind, StructType):
                return sum(map(size, kind.members.values()))
            if isinstance(kind, VectorType):
                return kind.n
            return kind.n * kind.m if isinstance(kind, MatrixType) else 1

        @ti.func
        def f():
            pass

        print(size(Body), isinstance(f, ti.lang.kernel_impl.Func), ti.lang.util.in_python_scope())
    """))
    assert on_ingot(*(["--taichi"] if name == "taichi" else []), path) == "8 True True\n"


# ---- the finder ----------------------------------------------------------------------------


def test_importing_compat_binds_nothing():
    code = "import sys, ingot.compat.quadrants; print('quadrants' in sys.modules)"
    assert python("-c", code) == "False\n"


def test_one_module_under_two_names():
    code = """
        from ingot import compat
        compat.install(); compat.install()
        import sys
        before = len(sys.meta_path)
        import quadrants, quadrants.lang.impl, ingot.compat.quadrants as real
        from quadrants.types import primitive_types
        print(quadrants is real, quadrants.lang.impl is real.lang.impl,
              primitive_types.f32 is real.f32, len(sys.meta_path) == before)
        try:
            import quadrants.no_such_module
        except ModuleNotFoundError as error:
            print(error.name)
    """
    out = python("-c", textwrap.dedent(code))
    assert out == "True True True True\nquadrants.no_such_module\n"


def test_install_refuses():
    with pytest.raises(ValueError, match="knows 'quadrants' and 'taichi'"):
        compat.install("numba")
    code = """
        import sys, types
        sys.modules["taichi"] = types.ModuleType("taichi")
        from ingot import compat
        try:
            compat.install("taichi")
        except RuntimeError as error:
            print(error)
    """
    assert "taichi is imported already" in python("-c", textwrap.dedent(code))


# ---- aliases -------------------------------------------------------------------------------


def test_errors():
    assert issubclass(qd.QuadrantsSyntaxError, (SyntaxError, qd.QuadrantsCompilationError))
    assert issubclass(qd.QuadrantsNameError, NameError)
    assert issubclass(qd.QuadrantsTypeError, TypeError)
    assert issubclass(qd.QuadrantsRuntimeError, RuntimeError)
    assert issubclass(qd.QuadrantsAssertionError, AssertionError)
    assert issubclass(qd.QuadrantsRuntimeTypeError, (TypeError, qd.QuadrantsRuntimeError))
    assert qd.lang.exception.QuadrantsIndexError is ingot.IngotIndexError


def test_an_error_of_a_kernel_is_caught_by_its_name():
    @qd.kernel
    def wrong():
        undefined_name()  # noqa: F821

    with pytest.raises(qd.QuadrantsNameError):
        wrong()


def test_targets_and_extensions():
    core = qd._lib.core
    assert core.arch_from_name("x64") is qd.x64
    assert core.host_arch() is qd.cpu and qd.lang.misc.get_host_arch_list() == [qd.cpu]
    assert core.is_extension_supported(qd.cpu, qd.extension.data64)
    assert not core.is_extension_supported(qd.cuda, qd.extension.data64)
    assert qd.lang.misc.is_extension_enabled(qd.extension.assertion)
    assert not qd.lang.misc.is_arch_supported(qd.vulkan)
    assert qd.__version_str__ == core.get_version_string()


def test_init_and_runtime():
    assert qd.init(arch=qd.cpu) is None
    cfg = qd.init(arch=qd.cpu, _test_mode=True, default_fp=qd.f64, log_level="warn")
    runtime = qd.lang.impl.get_runtime()
    assert cfg.log_level == "warn" and not qd.is_logging_effective("info")
    assert runtime.default_fp is qd.f64 and runtime.default_ip is qd.i32
    assert runtime.prog.config() is qd.lang.impl.current_cfg() is ingot.cfg
    qd.reset()
    assert runtime.default_fp is qd.f32


def test_methods_of_the_runtime_can_be_replaced(monkeypatch):
    """Genesis wraps them and calls through."""
    calls = []
    original = qd.lang.impl.PyQuadrants.clear

    def clear(self):
        calls.append("clear")
        self.prog.synchronize()
        original(self)

    monkeypatch.setattr(qd.lang.impl.PyQuadrants, "clear", clear)
    qd.reset()
    assert calls == ["clear"]


def test_compiled_functions_are_counted():
    @qd.kernel
    def fill(x: qd.types.ndarray(), value: qd.i32):
        for i in range(x.shape[0]):
            x[i] = value

    runtime = qd.lang.impl.get_runtime()
    for dtype, count in ((qd.i32, 1), (qd.i32, 1), (qd.f32, 2)):
        fill(qd.ndarray(dtype, 3), 1)
        assert runtime.get_num_compiled_functions() == count
    assert len(fill._primal.materialized_kernels) == 2
    qd.reset()
    assert runtime.get_num_compiled_functions() == 0


def test_a_variable_that_replaces_code_is_refused(monkeypatch):
    monkeypatch.setenv("QD_LOAD_IR", "1")
    with pytest.raises(ValueError, match="QD_LOAD_IR"):
        qd.init(arch=qd.cpu)
    qd.init(arch=qd.cpu, offline_cache=False, src_ll_cache=False)


def test_printing_code_that_comes_from_a_cache_warns():
    with pytest.warns(UserWarning, match="DUMP_IR_CACHE_MISMATCH"):
        qd.init(arch=qd.cpu, print_ir=True)


def test_log(caplog):
    qd.set_logging_level(qd.WARN)
    qd._logging.info("{}", 1)
    qd._logging.warn("a {} of {x}", 2, x=3)
    assert [r.getMessage() for r in caplog.records] == ["a 2 of 3"]
    with pytest.raises(ValueError, match="log level 'loud'"):
        qd.set_logging_level("loud")


def test_kernel_from_text():
    text = textwrap2.dedent(8, """
        import ingot.compat.quadrants as qd

        @qd.kernel
        def seven() -> qd.i32:
            return 7
    """)
    with load_kernel_string.load_kernel_from_string(text, "seven") as seven:
        assert seven() == 7
        assert "seven" in sys.modules
    assert "seven" not in sys.modules


def test_dtypes():
    assert qd.lang.util.to_numpy_type(qd.u1).__name__.startswith("bool")
    for dtype in qd.types.primitive_types.all_types:
        if isinstance(dtype, qd.DType):
            assert qd.lang.util.to_quadrants_type(qd.lang.util.to_numpy_type(dtype)) is dtype
    assert qd.types.is_signed(qd.i8) and not qd.types.is_signed(qd.u8)
    assert qd.types.is_real(qd.f16) and qd.types.is_integral(qd.u1)


def test_experimental_real_func_warns():
    with pytest.warns(DeprecationWarning, match="Use qd.real_func instead"):
        qd.experimental.real_func(lambda: 1)


# ---- names that Ingot lacks ----------------------------------------------------------------


def test_what_ingot_loads_when_asked_for_is_there():
    """In a process that has asked Ingot for nothing yet."""
    program = (
        "from ingot.compat import quadrants as q; import ingot; from ingot.compat.missing import Missing\n"
        "print([n for n in dir(ingot) if isinstance(getattr(q, n, None), Missing)], q.dataclass.__name__)"
    )
    assert python("-c", program) == "[] dataclass\n"


def test_what_the_reference_refuses():
    """Ingot's own names take both."""
    with pytest.raises(qd.QuadrantsSyntaxError, match="'a' of a real function must be type annotated"):
        @qd.real_func
        def add(a, b: qd.i32) -> qd.i32:
            return a + b

    for shape in (0, (1, 0), [0, 3]):
        with pytest.raises(qd.QuadrantsRuntimeError, match="is not a valid shape for ndarray"):
            qd.ndarray(qd.f32, shape)
    assert qd.ndarray(qd.f32, ()).shape == () and qd.ndarray(dtype=int, shape=2).shape == (2,)


step = 3


def test_a_name_of_the_module_that_a_kernel_assigns():
    """Where its own is out of scope, the reference reads the module's; Ingot's own names refuse."""
    @qd.kernel
    def own_for_a_while() -> qd.i32:
        for i in range(1):
            step = 5  # noqa: F841
        return step

    @qd.kernel
    def own_from_outside() -> qd.i32:
        step = step * 2  # noqa: F823
        return step

    qd.init()
    assert own_for_a_while() == 3 and own_from_outside() == 6


def test_a_missing_name_fails_where_it_is_used():
    thing = Missing("thing")
    assert repr(thing) == "<thing: not provided by Ingot>"
    assert thing.part.__name__ == "part"
    assert not isinstance(1, thing) and not issubclass(int, thing)
    assert (thing | None) is thing and (int | thing) is thing

    class Sub(thing):
        pass

    assert Sub.__mro__ == (Sub, object)
    with pytest.raises(NotImplementedError, match=r"qd\.thing\.part is not provided by Ingot"):
        thing.part(1)
    with pytest.raises(AttributeError):
        thing.__len__


def test_types_and_decorators_that_are_missing_can_be_written_down():
    vector = Missing("types.vector")(3, qd.f32)
    assert isinstance(vector, Missing)
    assert isinstance(qd.types.ndarray(vector, 2), Missing)
    with pytest.raises(NotImplementedError):
        vector(1, 2, 3)

    @Missing("dataclass")
    class Particle:
        pass

    assert isinstance(Particle, Missing)


def test_a_bad_annotation_is_still_an_error():
    with pytest.raises(ValueError, match="ndim"):
        qd.types.ndarray(qd.f32, 99)


@pytest.mark.parametrize("module", ["", "ad", "algorithms", "graph", "math", "simt", "sparse"])
def test_dir_lists_what_is_provided(module):
    namespace = getattr(qd, module) if module else qd
    for name in dir(namespace):
        assert not isinstance(getattr(namespace, name), Missing), name
    assert "kernel" in dir(qd) and "sin" in dir(qd.math)


def test_private_modules_can_be_imported():
    from ingot.compat.quadrants import _private

    for path in _private.MODULES:
        assert f"ingot.compat.quadrants.{path}" in sys.modules
    from ingot.compat.quadrants.lang._func_base import anything

    assert isinstance(anything, Missing)


# ---- perf_dispatch -------------------------------------------------------------------------


def make_race(**options):
    calls = []

    @qd.perf_dispatch(get_geometry_hash=lambda x: x > 0, **options)
    def race(x): ...

    @race.register
    def slow(x):
        import time

        calls.append("slow")
        time.sleep(0.02)
        return x

    @race.register(is_compatible=lambda x: x < 100)
    def fast(x):
        calls.append("fast")
        return x

    return race, calls


def test_perf_dispatch_keeps_the_fastest():
    race, calls = make_race()
    assert [race(1) for _ in range(7)] == [1] * 7
    assert calls == ["slow", "fast"] * 2 + ["fast"] * 3


def test_perf_dispatch_looks_again():
    race, calls = make_race(repeat_after_count=2)
    for _ in range(7):
        race(1)
    assert calls == ["slow", "fast"] * 2 + ["fast"] + ["slow", "fast"]


def test_perf_dispatch_per_geometry_and_compatibility():
    race, calls = make_race()
    race(200)
    race(200)
    assert calls == ["slow", "slow"]
    race(-1)
    race(-1)
    assert calls[2:] == ["slow", "fast"]


def test_perf_dispatch_errors():
    race, _ = make_race()
    with pytest.raises(qd.QuadrantsSyntaxError, match="PERFDISPATCH_ANNOTATION_SEQUENCE_MISMATCH"):

        @race.register
        def other(y): ...

    with pytest.raises(qd.QuadrantsSyntaxError, match="KERNEL_ANNOTATION_ORDER"):

        @qd.kernel
        @race.register
        def wrong_order(x): ...

    @qd.perf_dispatch(get_geometry_hash=lambda: 0)
    def nothing(): ...

    with pytest.raises(qd.QuadrantsRuntimeError, match="no implementation of nothing"):
        nothing()


# ---- observers of the cache ----------------------------------------------------------------


def test_observers_of_the_cache():
    def observed(kernel):
        seen = kernel._primal.src_ll_cache_observations
        return seen.cache_key_generated, seen.cache_stored or seen.cache_loaded

    @qd.kernel
    def plain(x: qd.types.ndarray()):
        x[0] = 1

    @qd.kernel(fastcache=True)
    def marked(x: qd.types.ndarray()):
        x[0] = 2

    warnings_helper._given.clear()
    with pytest.warns(UserWarning, match="qd.pure is deprecated"):

        @qd.pure
        @qd.kernel
        def old(x: qd.types.ndarray()):
            x[0] = 3

    assert marked._primal.is_pure and old._primal.is_pure and not plain._primal.is_pure
    x = qd.ndarray(qd.i32, 1)
    for kernel, value in ((plain, 1), (marked, 2), (old, 3)):
        assert observed(kernel) == (False, False)
        kernel(x)
        assert x[0] == value
    assert observed(plain) == (False, False)
    assert observed(marked) == observed(old) == (True, True)


def test_observers_of_a_method():
    @qd.data_oriented
    class Thing:
        @qd.kernel
        def step(self):
            pass

    assert Thing().step._primal.func.__name__ == "step"


def test_materialize_that_a_program_replaces(tmp_path):
    """A program wraps PyQuadrants.materialize: the reference calls it after fields were made, before
    one of them is used on the host or a kernel runs."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import quadrants as qd
        from quadrants.lang import impl

        waiting, calls, dropped = [], [], []
        before, clear = impl.PyQuadrants.materialize, impl.PyQuadrants.clear

        def after(self):
            before(self)
            calls.append(len(waiting))
            now = waiting.copy()
            waiting.clear()
            for field, value in now:
                field.fill(value)
            self.prog.synchronize()

        def drop(self):
            clear(self)
            dropped.append(len(waiting))
            waiting.clear()

        impl.PyQuadrants.materialize = after
        impl.PyQuadrants.clear = drop
        qd.init(arch=qd.cpu)

        def later(value, shape=()):
            field = qd.tensor(qd.i32, shape=shape, backend=qd.Backend.FIELD)
            waiting.append((field, value))
            return field

        a, b = later(3), later(4, (2,))
        assert a[None] == 3 and calls == [2] and b.to_numpy().tolist() == [4, 4]
        c = later(5)

        @qd.kernel
        def read(f: qd.template()) -> qd.i32:
            return f[None]

        assert read(c) == 5 and calls == [2, 1]
        assert read(c) == 5 and calls == [2, 1]
        d = later(6)
        assert read(d) == 6 and calls == [2, 1, 1]  # code for such a field is there already
        d = later(7)
        qd.init(arch=qd.cpu)
        assert waiting == [] and dropped[-1] == 1
        print("ran")
    """))
    done = subprocess.run([sys.executable, "-m", "ingot.compat", str(program)], capture_output=True, text=True)
    assert done.stdout == "ran\n", done.stderr


def test_logical_not_of_vectors():
    qd.init()
    assert qd.lang.ops.logical_not(qd.Vector([2, 0, -1])).to_numpy().tolist() == [0, 1, 0]
    assert qd.lang.ops.logical_not(qd.Matrix([[0.0, 1.5]])).to_numpy().tolist() == [[1, 0]]
    assert qd.lang.ops.logical_not(0) and not qd.lang.ops.logical_not(3)


def test_subgroups_where_a_cpu_does_not_come(tmp_path):
    """Programs for both have functions of GPU threads in branches that a CPU does not take."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent("""
        import quadrants as qd

        qd.init(arch=qd.cpu)

        @qd.func
        def first(value):
            total = qd.simt.subgroup.reduce_all_add_tiled(value, 5)
            return qd.simt.subgroup.shuffle(total, qd.u32(qd.simt.subgroup.invocation_id() >> 5 << 5))

        @qd.kernel
        def k(a: qd.types.ndarray(qd.i32, 1), device: qd.template(), n: qd.i32):
            for i in range(4):
                spread = False
                if qd.static(device):
                    spread = n > 0
                if spread:
                    a[i] = first(a[i])
                    if qd.simt.subgroup.ballot(a[i] > 0) & qd.u64(1) != 0:
                        qd.simt.subgroup.sync()
                else:
                    a[i] += n

        a = qd.ndarray(qd.i32, (4,))
        k(a, False, 3)
        k(a, True, 0)
        print(a.to_numpy().tolist())
        try:
            k(a, True, 1)
        except qd.QuadrantsAssertionError as error:
            print("a CPU has no subgroups" in str(error))
    """))
    assert on_ingot(path).splitlines() == ["[3, 3, 3, 3]", "True"]


def test_there_is_no_queue_of_another_device(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("from quadrants.interop import get_mps_command_queue\nprint(get_mps_command_queue())\n")
    assert on_ingot(path).split() == ["0"]
