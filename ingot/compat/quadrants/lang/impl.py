"""The runtime and its program, as far as programs reach them."""

import operator

import ingot
from ingot import _core
from ingot.compat.quadrants.lang.exception import QuadrantsSyntaxError

__all__ = [
    "Kernel", "Program", "PyQuadrants", "QuadrantsSyntaxError", "current_cfg",
    "get_cuda_compute_capability", "get_max_shared_memory_bytes", "get_runtime",
    "is_python_backend", "pyquadrants",
]

Kernel = _core.Kernel
qd_int, qd_float, qd_bool = int, float, bool  # what casts are, in kernels too


class Program:
    """`get_runtime().prog`."""

    _sized = 0  # the counter when it was reset

    def config(self):
        """The options in force."""
        return ingot.cfg

    def synchronize(self):
        """Waits for kernels to finish."""
        ingot.sync()

    def finalize(self):
        """Nothing is left to end: `qd.reset` did."""

    def get_num_offloaded_tasks_on_last_call(self):
        """How many tasks the last kernel that was launched has."""
        return _core.last_launch()[0]

    def get_graph_num_checkpoints_on_last_call(self):
        """How many checkpoints it has."""
        return _core.last_launch()[1]

    def get_graph_last_yield_cp_id_on_last_call(self):
        """The number, in order of the text, of the checkpoint that ended the last launch; -1: none."""
        return _core.last_launch()[2]

    def get_graph_cache_size(self):
        """Graphs of a GPU driver that are kept: none, on the CPU the program needs none."""
        return 0

    def get_graph_cache_used_on_last_call(self):
        """Whether the last launch was one of those."""
        return False

    def get_graph_num_nodes_on_last_call(self):
        """How many nodes that graph has."""
        return 0

    def get_graph_total_builds(self):
        """How many were built."""
        return 0

    def _get_max_reducer_dispatch_count(self):
        """How often bounds of loops were looked up in data for gradients, since it was set to 0."""
        return _core.counters()["launch_sized"] - self._sized

    def _reset_max_reducer_dispatch_count(self):
        """Sets it to 0; from the first time on, also loops whose gradients need no bound count."""
        _core.observe_bounds()
        self._sized = _core.counters()["launch_sized"]

    def get_device_caps(self):
        """The capabilities of a GPU device: none."""
        return _NoCapabilities()


class _NoCapabilities:
    def get(self, capability):
        """0: the CPU has no capabilities of that kind."""
        return 0


class _Replaceable(type):
    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name == "materialize":  # the reference calls it before new fields are used
            _core._on_fields(lambda: pyquadrants.materialize())


class PyQuadrants(metaclass=_Replaceable):
    """The reference's runtime object. Programs replace its methods by wrappers around them."""

    def __init__(self):
        self._prog = Program()
        self._options = ingot.cfg
        self.began()

    def began(self):
        """Notes that `qd.init` or `qd.reset` dropped all compiled code."""
        self._variants = _core.counters()["variants"]

    @property
    def prog(self):
        return self._prog

    def set_default_fp(self, dtype):
        """`default_fp` of `qd.init`."""
        ingot.cfg.default_fp = dtype

    def set_default_ip(self, dtype):
        """`default_ip` of `qd.init`. Integers take the unsigned type that they meet anyway."""
        ingot.cfg.default_ip = {ingot.u32: ingot.i32, ingot.u64: ingot.i64}.get(dtype, dtype)

    # read in qd.static by programs, that is in each launch: no Python frame
    default_fp = property(operator.attrgetter("_options.default_fp"), set_default_fp)
    default_ip = property(operator.attrgetter("_options.default_ip"), set_default_ip)

    def materialize(self):
        """Takes the memory of all fields that are placed."""
        self.materialize_root_fb(True)

    @staticmethod
    def materialize_root_fb(is_first_call):
        """The same, in the reference's own words."""
        ingot.root._tree._materialize()

    def clear(self):
        """What `qd.reset` calls first."""

    def sync(self):
        """Waits for kernels to finish."""
        self.materialize()
        self.prog.synchronize()

    def get_num_compiled_functions(self):
        """How many variants of kernels were made since `qd.init`."""
        return _core.counters()["variants"] - self._variants


pyquadrants = PyQuadrants()


def get_runtime():
    """The one runtime object."""
    return pyquadrants


def current_cfg():
    """The options in force."""
    return ingot.cfg


def is_python_backend():
    """Whether kernels run as plain Python."""
    return ingot.cfg.arch is ingot.python


def get_cuda_compute_capability():
    """0: there is no CUDA device."""
    return 0


def get_max_shared_memory_bytes(*, is_lowerbound_ok=False):
    """Shared memory is a thing of GPUs."""
    raise RuntimeError(f"arch {ingot.cfg.arch.name} has no shared memory")
