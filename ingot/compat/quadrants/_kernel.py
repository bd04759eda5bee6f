"""The decorators of kernels, with the observers that tests of the reference read."""

import weakref

import ingot
from ingot.compat.quadrants._dispatch import DispatchImpl


class SrcLlCacheObservations:
    """What the cache of kernels did at the last call; Ingot's always applies."""

    cache_key_generated = True
    cache_validated = False
    cache_loaded = False
    cache_stored = False


class _Primal:
    """`kernel._primal`: counts of one kernel."""

    __slots__ = ("_kernel", "src_ll_cache_observations", "__weakref__")

    def __init__(self, kernel):
        self._kernel = weakref.ref(kernel)
        self.src_ll_cache_observations = SrcLlCacheObservations()

    @property
    def func(self):
        return self._kernel().__wrapped__

    @property
    def materialized_kernels(self):
        return range(self._kernel()._variants)


def kernel(_fn=None, **options):
    """`ingot.kernel`, the kernel having `_primal`."""
    if _fn is None:
        return lambda fn: kernel(fn, **options)
    if isinstance(_fn, DispatchImpl):
        raise ingot.IngotSyntaxError(
            f"{_fn.__name__}: @qd.kernel goes below @register of a perf_dispatch function "
            "[err_code=KERNEL_ANNOTATION_ORDER]"
        )
    made = ingot.kernel(_fn, **options)
    made._primal = _Primal(made)
    return made


func = ingot.func


def pyfunc(fn):
    """A func that Python calls as well: every func of Ingot is."""
    return ingot.func(fn)


def pure(fn):
    """Marks a kernel as reading nothing but its arguments; says nothing that Ingot needs told."""
    return fn
