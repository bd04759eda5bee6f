"""The decorators of kernels, with the observers that tests of the reference read."""

import inspect
import weakref

import ingot
from ingot.compat.quadrants._dispatch import DispatchImpl
from ingot.compat.quadrants._test_tools.warnings_helper import warn_once


class SrcLlCacheObservations:
    """What the cache of kernels did since `qd.init`.

    Ingot's serves every kernel; the reference's, and so this report, those with fastcache=True.
    """

    def __init__(self, cache_key_generated=False, cache_validated=False, cache_loaded=False,
                 cache_stored=False):
        self.cache_key_generated = cache_key_generated
        self.cache_validated = cache_validated
        self.cache_loaded = cache_loaded
        self.cache_stored = cache_stored


class _Mapper:
    """The reference's table from arguments to compiled kernels; of it only the size is read."""

    __slots__ = ("mapping", "_mapping_cache")

    def __init__(self, kernels):
        self.mapping = self._mapping_cache = kernels


class _Primal:
    """`kernel._primal`: what is known of one kernel."""

    __slots__ = ("_kernel", "options", "__weakref__")

    def __init__(self, kernel, options):
        self._kernel = weakref.ref(kernel)
        self.options = options

    @property
    def func(self):
        return self._kernel().__wrapped__

    @property
    def is_pure(self):
        return self._kernel()._fastcache

    @property
    def materialized_kernels(self):
        return range(self._kernel()._variants)

    @property
    def mapper(self):
        return _Mapper(self.materialized_kernels)

    @property
    def src_ll_cache_observations(self):
        observed = self._kernel()._cache_observed if self.is_pure else {}
        return SrcLlCacheObservations(**observed)


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
    made._primal = _Primal(made, options)
    return made


func = ingot.func


def real_func(fn):
    """`ingot.real_func` of a function whose parameters are all annotated: what is not runs on
    Ingot, but not on the reference."""
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.annotation is parameter.empty and name != "self":
            raise ingot.IngotSyntaxError(
                f"{fn.__qualname__}: the parameter '{name}' of a real function must be type annotated"
            )
    return ingot.real_func(fn)


def pyfunc(fn):
    """A func that Python calls as well: every func of Ingot is."""
    return ingot.func(fn)


def pure(fn):
    """The old way to say `@qd.kernel(fastcache=True)`, above `@qd.kernel`."""
    warn_once("@qd.pure is deprecated: use @qd.kernel(fastcache=True)")
    fn._fastcache = True
    return fn
