"""The package as seen from outside: names, options, annotations, functions outside kernels."""

import copy
import math
import os
import pickle
import sys
import warnings

import pytest
from conftest import output_of

import ingot as qd
from ingot import _core, _ops


@pytest.fixture(autouse=True)
def defaults():
    yield
    qd.reset()


def run(program, **environment):
    """Output of a fresh interpreter."""
    return output_of(sys.executable, "-c", program, timeout=120, **environment).strip()


# ---- import ------------------------------------------------------------------------------------


def test_import_is_light():
    program = (
        "import sys; before = set(sys.modules); import ingot; "
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = run(program).split()
    heavy = {"ast", "inspect", "dataclasses", "typing", "numpy", "llvmlite", "re", "enum",
             "subprocess", "threading", "torch", "warnings", "difflib", "linecache"}
    assert not heavy & set(loaded)
    assert not [name for name in loaded if "." not in name and name not in ("ingot", "math")]


def test_arrays_need_no_numpy():
    program = (
        "import sys, ingot as qd\n"
        "a = qd.ndarray(qd.f32, (2, 3)); a.fill(2); a[0, 0] = 1; b = a.__copy__()\n"
        "memoryview(a); a.to_dlpack(); qd.from_dlpack(a)\n"
        "print('numpy' in sys.modules, b[0, 0])"
    )
    assert run(program) == "False 1.0"


def test_names():
    names = (
        "init reset sync cfg kernel func real_func data_oriented ndarray static template Template "
        "types math cpu x64 x86_64 arm64 gpu cuda vulkan metal amdgpu interp DType Ndarray "
        "i8 i16 i32 i64 u1 u8 u16 u32 u64 f16 f32 f64 int8 int16 int32 int64 uint1 uint8 uint16 "
        "uint32 uint64 float16 float32 float64 sin cos tan asin acos atan2 tanh exp log sqrt rsqrt "
        "floor ceil round abs min max pow raw_div raw_mod select cast bit_cast ndrange grouped "
        "loop_config static_assert static_print random randn atomic_add atomic_sub atomic_mul "
        "atomic_min atomic_max atomic_and atomic_or atomic_xor"
    ).split()
    assert not [name for name in names if not hasattr(qd, name)]
    assert qd.__version__ == "0.1.0"


def test_every_intrinsic_is_registered():
    names = [line.split('"')[1] for line in open(INTRINSICS, encoding="utf-8")
             if line.startswith("INTRINSIC(")]
    assert len(names) > 50
    import builtins

    for name in names:
        if name.startswith("builtins."):
            function = getattr(builtins, name.partition(".")[2])
        elif "." in name:
            owner, _, part = name.partition(".")
            function = getattr(getattr(qd, owner), part)
        else:
            function = getattr(qd, name, None) or getattr(qd.math, name, None) or getattr(_ops, name)
        assert _core.intrinsic_name(function) == name


INTRINSICS = os.path.join(os.path.dirname(__file__), "../../src/gate/intrinsic.def")


def test_intrinsics_are_found_by_identity():
    class Rude:
        def __eq__(self, other):
            raise AssertionError("compared")

        def __hash__(self):
            raise AssertionError("hashed")

    assert _core.intrinsic_name(Rude()) is None
    assert _core.intrinsic_name([]) is None
    rude = Rude()
    assert _core.register_intrinsic(rude, "sin") is rude
    assert _core.intrinsic_name(rude) == "sin"
    with pytest.raises(ValueError, match="nope"):
        _core.register_intrinsic(rude, "nope")


def test_exceptions():
    assert issubclass(qd.IngotSyntaxError, (SyntaxError,))
    for mine, also in [
        (qd.IngotSyntaxError, SyntaxError), (qd.IngotTypeError, TypeError),
        (qd.IngotNameError, NameError), (qd.IngotAttributeError, AttributeError), (qd.IngotRuntimeError, RuntimeError),
        (qd.IngotAssertionError, AssertionError), (qd.IngotIndexError, IndexError),
        (qd.IngotRuntimeTypeError, TypeError), (qd.IngotCompilationError, Exception),
        (qd.IngotArgumentError, TypeError), (qd.IngotArgumentError, ValueError),
        (qd.IngotCallError, SyntaxError), (qd.IngotCallError, TypeError),
        (qd.IngotValueError, ValueError),
    ]:
        assert issubclass(mine, qd.IngotError) and issubclass(mine, also)
        assert mine.__module__ == "ingot" and getattr(qd, mine.__name__) is mine
        error = mine("what\nhappened")
        assert str(error) == "what\nhappened"
        assert str(pickle.loads(pickle.dumps(error))) == "what\nhappened"
    for compiling in (qd.IngotSyntaxError, qd.IngotTypeError, qd.IngotNameError,
                      qd.IngotAttributeError, qd.IngotValueError):
        assert issubclass(compiling, qd.IngotCompilationError)
    assert issubclass(qd.IngotCallError, qd.IngotSyntaxError)
    assert issubclass(qd.IngotIndexError, qd.IngotAssertionError)
    assert issubclass(qd.IngotAssertionError, qd.IngotRuntimeError)


# ---- init ---------------------------------------------------------------------------------------


def test_settings_reach_the_engine():
    assert _core.settings()["fast_math"] is True
    qd.init(arch=qd.cpu, fast_math=False, cpu_max_num_threads=3, default_fp=qd.f64, opt_level=1)
    got = _core.settings()
    assert (got["fast_math"], got["cpu_max_num_threads"], got["opt_level"]) == (False, 3, 1)
    assert got["default_fp"] is qd.f64 and got["default_ip"] is qd.i32
    qd.init()
    assert _core.settings()["cpu_max_num_threads"] == 0
    qd.init(debug=True)
    assert _core.settings()["check_out_of_bound"] is True
    qd.reset()
    assert _core.settings()["debug"] is False


def test_python_types_as_defaults():
    qd.init(default_fp=float, default_ip=int)
    assert _core.settings()["default_fp"] is qd.f32 and _core.settings()["default_ip"] is qd.i32


def test_bad_settings_change_nothing():
    qd.init(opt_level=1)
    for bad in ({"opt_level": "2"}, {"debug": "yes"}, {"default_fp": qd.i32}, {"default_ip": qd.u8},
                {"default_ip": 32}, {"cpu_max_num_threads": -1}, {"fast_math": 1.5},
                {"fast_math": None}, {"opt_level": 2**40}, {"offline_cache_file_path": 3}):
        with pytest.raises(TypeError, match=next(iter(bad))):
            qd.init(**bad)
        assert _core.settings()["opt_level"] == 1 and _core.settings()["fast_math"] is True


def test_unknown_options():
    with pytest.raises(qd.IngotOptionError, match="did you mean 'offline_cache'") as caught:
        qd.init(offline_cahce=True)
    assert isinstance(caught.value, KeyError) and str(caught.value).startswith("qd.init has no")
    with pytest.raises(KeyError, match="'zzzzzz': dir"):
        qd.init(zzzzzz=1)
    with pytest.raises(KeyError, match="default_ip"):
        qd.init(default_up=qd.u32)


def test_options_of_the_reference_are_accepted():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.init(
            arch=qd.cpu, reference=True, print_ir=True, kernel_profiler=True, device_memory_GB=2.0, log_level="warn",
            ad_stack_experimental_enabled=True, cfg_optimization=False, unrolling_limit=0,
            enable_fallback=True, src_ll_cache=False, print_non_pure=True, require_version="1.3.0",
            num_compile_threads=2, random_seed=-5, offline_cache=False,
        )
    assert qd.cfg.print_ir is True and qd.cfg.device_memory_GB == 2.0
    assert qd.cfg.num_compile_threads == 2 and qd.cfg.random_seed == -5


def test_require_version():
    qd.init(require_version="1.0.9")
    for bad in ("1.3.4", "1.4.0", "2.0.0", "0.9.0"):
        with pytest.raises(qd.IngotRuntimeError, match="version"):
            qd.init(require_version=bad)
    for bad in ("1.3", "x", 3):
        with pytest.raises(ValueError):
            qd.init(require_version=bad)


def test_arch():
    qd.init(arch=qd.cpu)
    assert qd.cfg.arch is qd.cpu and repr(qd.x64) == "Arch.x64"
    qd.init(arch=qd.interp)
    assert _core.settings()["target"] == 1 and qd.cfg.arch is qd.interp
    qd.init(arch="cpu")
    assert _core.settings()["target"] == 0
    for arch in (qd.cuda, qd.gpu, [qd.vulkan, qd.metal]):
        with pytest.warns(RuntimeWarning, match="falling back") as caught:
            qd.init(arch=arch)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert qd.cfg.arch is qd.cpu
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qd.init(arch=[qd.cuda, qd.cpu])
    with pytest.raises(RuntimeError, match="cuda"):
        qd.init(arch=qd.cuda, enable_fallback=False)
    with pytest.raises(TypeError, match="qd.cpu"):
        qd.init(arch=3)
    with pytest.raises(ValueError, match="toaster"):
        qd.init(arch="toaster")
    assert pickle.loads(pickle.dumps(qd.cuda)) is qd.cuda and copy.deepcopy(qd.cpu) is qd.cpu


def test_environment(monkeypatch):
    monkeypatch.setenv("QD_OPT_LEVEL", "3")
    monkeypatch.setenv("QD_FAST_MATH", "0")
    monkeypatch.setenv("INGOT_FAST_MATH", "1")
    monkeypatch.setenv("QD_DEFAULT_FP", "64")
    monkeypatch.setenv("INGOT_DEFAULT_IP", "i64")
    monkeypatch.setenv("QD_OFFLINE_CACHE", "")
    qd.init()
    got = _core.settings()
    assert got["opt_level"] == 3 and got["fast_math"] is True and got["offline_cache"] is True
    assert got["default_fp"] is qd.f64 and got["default_ip"] is qd.i64
    with pytest.warns(RuntimeWarning, match="QD_OPT_LEVEL=3"):
        qd.init(opt_level=0)
    assert _core.settings()["opt_level"] == 0
    for name, value in [("QD_DEBUG", "maybe"), ("INGOT_OPT_LEVEL", "x"), ("QD_DEFAULT_FP", "f7"),
                        ("QD_ARCH", "toaster")]:
        with monkeypatch.context() as m:
            m.setenv(name, value)
            with pytest.raises(ValueError, match=value):
                qd.init()


def test_environment_decides_the_arch(monkeypatch):
    monkeypatch.setenv("QD_ARCH", "interp")
    qd.init(arch=qd.cpu)
    assert qd.cfg.arch is qd.interp
    monkeypatch.setenv("INGOT_ARCH", "cpu")
    qd.init(arch=qd.interp)
    assert qd.cfg.arch is qd.cpu


def test_cfg():
    qd.init(opt_level=1)
    qd.cfg.fast_math = False
    assert _core.settings()["fast_math"] is False and _core.settings()["opt_level"] == 1
    assert {"arch", "fast_math", "print_ir"} <= set(dir(qd.cfg))
    with pytest.raises(AttributeError, match="nope"):
        qd.cfg.nope
    with pytest.raises(qd.IngotOptionError):
        qd.cfg.nope = 1


def test_configure_refuses():
    for bad in (3, None, [], {1: 2}):
        with pytest.raises(TypeError):
            _core.configure(bad)
    with pytest.raises(KeyError):
        _core.configure({"nope": 1})


def test_counters():
    counters = _core.counters()
    assert counters["launches"] >= 0 and all(isinstance(n, int) for n in counters.values())


def test_arrays_survive_init_and_reset():
    a = qd.ndarray(qd.i32, 3)
    a.fill(7)
    qd.init(arch=qd.cpu)
    qd.reset()
    assert list(a) == [7, 7, 7] and a.dtype is qd.i32


# ---- annotations ----------------------------------------------------------------------------------


def test_ndarray_annotation():
    for t in (qd.types.ndarray(qd.f32, 2), qd.types.NDArray[qd.f32, 2],
              qd.types.ndarray(dtype=qd.f32, ndim=2)):
        assert t.dtype is qd.f32 and t.ndim == 2 and t.needs_grad is None
        assert repr(t) == "NdarrayType(dtype=f32, ndim=2, needs_grad=None)"
    assert qd.types.ndarray().dtype is None and qd.types.NDArray[qd.i32].ndim is None
    assert qd.types.ndarray(element_dim=0).ndim is None
    for bad in ({"ndim": -1}, {"ndim": 13}, {"ndim": "2"}, {"field_dim": 2}, {"boundary": "x"},
                {"element_dim": 3}, {"element_shape": (3, 3, 3)}):
        with pytest.raises(ValueError):
            qd.types.ndarray(**bad)
    for bad in ("f32", 3, str):
        with pytest.raises(TypeError, match="qd.f32"):
            qd.types.ndarray(bad)


def test_template_annotation():
    assert qd.template is qd.Template and isinstance(qd.template(), qd.Template)
    assert isinstance(qd.Template[int], qd.Template) and repr(qd.template()) == "Template()"


# ---- functions outside kernels --------------------------------------------------------------------


def test_mathematics():
    for name in "sin cos tan tanh exp sqrt log sinh cosh asinh atanh atan erf erfc expm1 log2 log10 log1p".split():
        assert getattr(qd, name)(0.5) == getattr(math, name)(0.5)
    assert qd.acosh(2) == math.acosh(2) and qd.hypot(3, 4) == 5 and qd.exp2(3) == 8 and math.isnan(qd.acosh(0))
    assert [round(qd.cbrt(x), 14) for x in (27.0, -8.0, 0.0, 2)] == [3.0, -2.0, 0.0, 1.25992104989487]
    assert (qd.sinh(-800), qd.cosh(800), qd.atanh(-1), qd.log2(0), qd.log10(0), qd.log1p(-1), qd.cbrt(-math.inf)) == (
        -math.inf, math.inf, -math.inf, -math.inf, -math.inf, -math.inf, -math.inf)
    assert qd.asin(0.5) == math.asin(0.5) and qd.atan2(1, 2) == math.atan2(1, 2)
    assert qd.rsqrt(4) == 0.5 and qd.rsqrt(0) == math.inf
    assert qd.floor(-1.5) == -2.0 and qd.ceil(-1.5) == -1.0 and qd.trunc(-1.5) == -1.0
    assert [qd.round(x) for x in (0.5, 1.5, 2.5)] == [0.0, 2.0, 2.0]
    assert qd.floor(math.inf) == math.inf and type(qd.floor(2.5)) is float
    assert math.isnan(qd.sqrt(-1)) and math.isnan(qd.asin(2)) and math.isnan(qd.log(-1))
    assert qd.log(0) == -math.inf and qd.exp(800) == math.inf and math.isnan(qd.sin(math.inf))
    assert qd.abs(-3) == 3 and qd.min(3, 1, 2) == 1 and qd.max(3, 1, 2) == 3
    assert qd.pow(2, 3) == 8 and qd.pow(0.0, -1) == math.inf and math.isnan(qd.pow(-1, 0.5))
    assert (qd.raw_div(-7, 2), qd.raw_mod(-7, 2), qd.raw_div(7, 2)) == (-3, -1, 3)
    assert qd.raw_div(7.0, 2) == 3.5 and qd.raw_mod(-7.5, 2) == -1.5
    assert qd.math.popcnt(-1) == 32 and qd.math.clz(1) == 31 and qd.math.clz(0) == 32
    assert qd.math.ffs(8) == 4 and qd.math.ffs(0) == 0 and qd.math.pi == math.pi
    assert qd.cast(1.7, qd.i32) == 1 and qd.cast(1, float) == 1.0
    assert qd.select(True, 1, 2) == 1 and qd.select(0, 1, 2) == 2


def test_static():
    assert qd.static(3) == 3 and qd.static(1, 2) == [1, 2]
    r = range(3)
    assert qd.static(r) is r
    qd.static_assert(True, "fine")
    with pytest.raises(AssertionError, match="broken"):
        qd.static_assert(False, "broken")
    assert list(qd.ndrange(2, (1, 3))) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert list(qd.ndrange((3, 1), 2)) == []
    with pytest.raises(qd.IngotSyntaxError):
        qd.ndrange(2.5 if False else (1, 2, 3))


def test_kernel_only_functions():
    for name in ("atomic_add", "atomic_min", "atomic_xor", "atomic_exchange", "atomic_cas"):
        with pytest.raises(qd.IngotSyntaxError, match=f"qd.{name} can only"):
            getattr(qd, name)(1)
        assert getattr(qd, name).__name__ == name and getattr(qd, name).__doc__
    assert qd.sync() is None


# ---- decorators --------------------------------------------------------------------------------------


def test_data_oriented():
    @qd.data_oriented
    class A:
        pass

    @qd.data_oriented(template_primitives=False, stable_members=True)
    class B:
        pass

    assert isinstance(A, type) and A._data_oriented and A._ingot_template_primitives
    assert isinstance(B, type) and not B._ingot_template_primitives


def test_decorators_are_lazy():
    def broken(x: "no such name"):  # noqa: F722
        import nothing

    for decorate in (qd.kernel, qd.kernel(), qd.kernel(fastcache=True), qd.func, qd.func(),
                     qd.real_func, qd.kernel(source="def broken(): pass")):
        assert decorate(broken).__name__ == "broken"
    with pytest.warns(DeprecationWarning, match="fastcache"):
        qd.kernel(pure=True)(broken)
    with pytest.raises(qd.IngotSyntaxError, match="graph=True"):
        qd.kernel(checkpoints=True)


def test_decorating_parses_nothing():
    program = (
        "import sys, ingot as qd\n"
        "exec('\\n'.join(f'@qd.kernel\\ndef k{i}(x: qd.f32):\\n    pass\\n' for i in range(1000)))\n"
        "print('ast' in sys.modules, 'numpy' in sys.modules)"
    )
    assert run(program) == "False False"


def test_copies_of_functions_are_themselves():
    @qd.func
    def f(x):
        return x

    @qd.data_oriented
    class Holder:
        def __init__(self):
            self.n, self.f, self.g, self.k = 4, f, self.method, self.kernel

        @qd.func
        def method(self, x):
            return x * self.n

        @qd.kernel
        def kernel(self) -> qd.i32:
            return self.g(self.f(2))

    qd.init()
    held = Holder()
    for made in (copy.copy(held), copy.deepcopy(held)):
        assert made.f is f and made.k.__func__ is held.k.__func__
    made = copy.deepcopy(held)
    assert made.g.__self__ is made and made.k.__self__ is made
    made.n = 5
    assert held.k() == 8 and made.k() == 10
    for one in (f, Holder.kernel, qd.math.mod):
        assert copy.copy(one) is one and copy.deepcopy([one, one]) == [one, one]
