"""`import quadrants` on Ingot: its public names, plus thin aliases for what programs reach inside.

Everything that works is Ingot's own; a name of the reference that Ingot lacks is a stand-in that
says so when it is used. `dir()` lists what is provided.
"""

import ingot as _ingot
from ingot import _options
from ingot._view import BufferView
from ingot.compat.missing import fill as _fill
from ingot.compat.missing import provided as _provided

globals().update(
    {
        name: value
        for name, value in vars(_ingot).items()
        if not name.startswith(("_", "Ingot")) and not isinstance(value, type(_ingot))
    }
)

__version__ = _options.REFERENCE
__version_str__ = ".".join(map(str, __version__))

from ingot.compat.quadrants import (  # noqa: E402
    _lib,
    _logging,
    _private,
    ad,
    algorithms,
    experimental,
    graph,
    interop,
    linalg,
    math,
    profiler,
    simt,
    sparse,
    tools,
    types,
)
from ingot.compat.quadrants._lib import core as _qd_core  # noqa: E402
from ingot.compat.quadrants._lib.core import DeviceCapability  # noqa: E402
from ingot.compat.quadrants._lib.core import Extension as extension  # noqa: E402
from ingot.compat.quadrants._logging import (  # noqa: E402
    CRITICAL,
    DEBUG,
    ERROR,
    INFO,
    TRACE,
    WARN,
    is_logging_effective,
    set_logging_level,
)
from ingot.compat.quadrants._init import init, reset  # noqa: E402
from ingot.compat.quadrants._kernel import func, kernel, pure, pyfunc, real_func  # noqa: E402
from ingot.compat.quadrants._ndarray import (  # noqa: E402
    MatrixNdarray,
    Ndarray,
    ScalarNdarray,
    VectorNdarray,
    ndarray,
)
from ingot.compat.quadrants._dispatch import perf_dispatch  # noqa: E402
from ingot.compat.quadrants._tensor_wrapper import (  # noqa: E402
    MatrixTensor,
    Tensor,
    VectorTensor,
    wrap,
)
from ingot.compat.quadrants._tensor import Backend, tensor  # noqa: E402
from ingot.compat.quadrants.lang.exception import (  # noqa: E402
    QuadrantsAssertionError,
    QuadrantsCompilationError,
    QuadrantsNameError,
    QuadrantsRuntimeError,
    QuadrantsRuntimeTypeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
)
from ingot.compat.quadrants.lang.misc import is_extension_enabled  # noqa: E402
from ingot.compat.quadrants.types.enums import Layout  # noqa: E402
from ingot.compat.quadrants import _test_tools, lang  # noqa: E402
from ingot.compat.quadrants._field import (  # noqa: E402
    Field,
    FieldsBuilder,
    MatrixField,
    ScalarField,
    SNode,
    StructField,
)
from ingot._fields import (  # noqa: E402
    field,
    i,
    ij,
    ijk,
    ijkl,
    ijl,
    ik,
    ikl,
    il,
    j,
    jk,
    jkl,
    jl,
    k,
    kl,
    l,
)
from ingot import _fields  # noqa: E402
from ingot._snode import axes, get_addr, rescale_index, root  # noqa: E402

from ingot import GraphStatus, checkpoint, graph_do_while, graph_parallel, graph_parallel_context  # noqa: E402

_fill(
    globals(),
    "BitpackedFields Event Field FieldsBuilder Format Layout Matrix "
    "MatrixField Mesh MeshInstance SNode ScalarField Stream Struct "
    "StructField Vector activate append assume_in_range axes "
    "bit_shr block_local cache_read_only clock_counter clock_freq_hz create_event "
    "create_stream dataclass deactivate deactivate_all_snodes dump_compile_config eig field frexp "
    "get_addr global_thread_idx i ij ijk ijkl "
    "ijl ik ikl il is_active is_extension_enabled j jk jkl jl k kl l length make_spd mesh_local "
    "mesh_patch_idx no_activate one outer polar_decompose ref rescale_index root "
    "solve sparse_matrix_builder stop_grad stream_parallel svd sym_eig volatile_load "
    "zero",
)
_private.register(__name__)
_Tensor, _VectorTensor, _MatrixTensor, _wrap = Tensor, VectorTensor, MatrixTensor, wrap

_fields.NEED = "requrie"  # the reference's spelling, which programs match

__name__ = "quadrants"  # what messages and tests call it

_OWN = frozenset("DType cfg from_dlpack interp trunc".split())


def __dir__():
    return [name for name in _provided(globals()) if name not in _OWN]
