"""Ingot: kernels written in Python, compiled to native parallel code, and remembered.

    import ingot as qd

    qd.init(arch=qd.cpu)

    @qd.kernel
    def saxpy(a: qd.f32, x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] += a * x[i]

Importing this package loads no compiler, no NumPy and no parser: those come with the first
kernel that is not in the cache yet, or with the first conversion that needs them.
"""

try:
    from ingot import _core
except ImportError as e:
    if "_core" in str(e) and "cannot import name" in str(e):
        raise ImportError(
            f"ingot was imported from {__path__[0]}, which has no compiled part for this Python: it is a source "
            "folder, or was installed for another version\nhelp: start Python in another folder to use the installed "
            "package, or run `make inplace` in the source folder; `pip install .` installs it"
        ) from e
    if "subinterpreters" not in str(e):
        raise
    raise ImportError(
        "Ingot cannot be imported in a subinterpreter that has a GIL of its own: its engine is "
        "shared by the whole process\nhelp: use Ingot in the main interpreter or in one that shares "
        "its GIL"
    ) from e

from ingot import _signature, math, types
from ingot._annotations import Template, ref, sparse_matrix_builder, template
from ingot._arch import Arch, amdgpu, arm64, cpu, cuda, gpu, interp, metal, python, vulkan, x64, x86_64
from ingot._core import (
    DType,
    Field,
    IngotArgumentError,
    IngotAssertionError,
    IngotAttributeError,
    IngotCallError,
    IngotCompilationError,
    IngotError,
    IngotIndexError,
    IngotNameError,
    IngotRuntimeError,
    IngotRuntimeTypeError,
    IngotRuntimeWarning,
    IngotStaticCallWarning,
    IngotSyntaxError,
    IngotTypeError,
    IngotValueError,
    IngotWarning,
    IngotZeroDivisionError,
    Kernel,
    MatrixField,
    Ndarray,
    ScalarField,
    counters,
    f16,
    f32,
    f64,
    float16,
    float32,
    float64,
    from_dlpack,
    i8,
    i16,
    i32,
    i64,
    int8,
    int16,
    int32,
    int64,
    ndarray,
    u1,
    u8,
    u16,
    u32,
    u64,
    uint1,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ingot._decorators import data_oriented, func, kernel, pure, real_func
from ingot._init import IngotOptionError, cfg, init, reset, sync
from ingot._linalg import eig, make_spd, polar_decompose, solve, svd, sym_eig
from ingot._matrix import Matrix, Vector
from ingot._ops import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_mul,
    atomic_or,
    atomic_sub,
    atomic_xor,
    bit_cast,
    bit_shr,
    assume_in_range,
    block_local,
    cache_read_only,
    cast,
    cbrt,
    ceil,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    grouped,
    hypot,
    log,
    log10,
    log1p,
    log2,
    loop_config,
    max,
    min,
    ndrange,
    one,
    pow,
    randn,
    random,
    raw_div,
    raw_mod,
    round,
    rsqrt,
    select,
    sin,
    sinh,
    sqrt,
    static,
    static_assert,
    static_print,
    stop_grad,
    tan,
    tanh,
    trunc,
    volatile_load,
    zero,
)

__version__ = "0.1.0"

_signature.give(_core._describe, DType, Kernel, (IngotError, IngotWarning, IngotRuntimeWarning, IngotStaticCallWarning, _core.FingerprintError))

# Names that come with their first use, so that importing Ingot stays light.
_LAZY = {
    "Backend": "ingot._tensor",
    "BufferView": "ingot._view",
    "CacheMismatchError": "ingot._steps",
    "CachedStep": "ingot._steps",
    "Content": "ingot.fingerprint",
    "FieldsBuilder": "ingot._snode",
    "File": "ingot.fingerprint",
    "FileCache": "ingot._filecache",
    "FingerprintError": "ingot.fingerprint",
    "Fingerprinter": "ingot.fingerprint",
    "GraphStatus": "ingot.graph",
    "Identity": "ingot.fingerprint",
    "MatrixNdarray": "ingot._ndarrays",
    "MatrixTensor": "ingot._tensor",
    "MemoryCache": "ingot._steps",
    "Ordered": "ingot.fingerprint",
    "Layout": "ingot._layout",
    "Pieces": "ingot.fingerprint",
    "SNode": "ingot._snode",
    "Event": "ingot._streams",
    "ScalarNdarray": "ingot._ndarrays",
    "StepSequence": "ingot._steps",
    "Stream": "ingot._streams",
    "Struct": "ingot._struct",
    "StructField": "ingot._fields",
    "StructNdarray": "ingot._ndarrays",
    "Tensor": "ingot._tensor",
    "VectorNdarray": "ingot._ndarrays",
    "VectorTensor": "ingot._tensor",
    "axes": "ingot._snode",
    "checkpoint": "ingot.graph",
    "create_event": "ingot._streams",
    "create_stream": "ingot._streams",
    "dataclass": "ingot._struct",
    "explain": "ingot._explain",
    "get_addr": "ingot._snode",
    "fingerprint": "ingot.fingerprint",
    "from_numpy": "ingot._ndarrays",
    "graph": "ingot.graph",
    "graph_do_while": "ingot.graph",
    "graph_parallel": "ingot.graph",
    "graph_parallel_context": "ingot.graph",
    "perf_dispatch": "ingot._dispatch",
    "rescale_index": "ingot._snode",
    "root": "ingot._snode",
    "stream_parallel": "ingot._streams",
    "tensor": "ingot._tensor",
    "trace": "ingot.fingerprint",
    "wrap": "ingot._tensor",
} | dict.fromkeys("field i ij ijk ijkl ijl ik ikl il j jk jkl jl k kl l".split(), "ingot._fields")


_MODULES = ("ad", "algorithms", "linalg", "profiler", "tools")


def __getattr__(name):
    home = _LAZY.get(name)
    if home is None and name not in _MODULES:
        if name.startswith("__"):
            raise AttributeError(f"module 'ingot' has no attribute {name!r}")
        from ingot._absent import error

        raise error(name, __dir__())
    module = __import__(home or f"ingot.{name}", fromlist=[name])  # without loading importlib
    if home is None:
        return module
    value = globals()[name] = getattr(module, name)
    return value


def __dir__():
    return sorted({*globals(), *_LAZY, *_MODULES})
