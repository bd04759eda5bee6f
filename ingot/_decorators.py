"""`@qd.kernel`, `@qd.func`, `@qd.data_oriented`.

Decorating only notes down the function: nothing is parsed or compiled before the first call.
"""

from ingot import _core


def _decorator(make, fn, options):
    """Serves both forms, `@qd.kernel` and `@qd.kernel(option=...)`; only what was set is passed."""
    options = {name: value for name, value in options.items() if value}
    if fn is not None:
        return make(fn, **options)
    return lambda fn: make(fn, **options)


def kernel(_fn=None, *, pure=None, fastcache=False, graph=False, checkpoints=False, source=None, **others):
    """Marks a function as a kernel: called from Python, it runs as native parallel code.

    fastcache    also check that the kernel reads nothing but its arguments (`pure` is the old
                 name); caching on disk does not depend on it
    graph        run the kernel's loops as one graph
    checkpoints  with graph: `qd.checkpoint` blocks become places to resume from
    source       the text of the function, where Python cannot find it
    """
    if _fn is not None and not (fastcache or graph or checkpoints or source or others) and pure is None:
        return _core.kernel(_fn)
    if others:
        from ingot._absent import no_option

        raise no_option("@qd.kernel", others, ("fastcache", "graph", "checkpoints", "source"))
    if checkpoints and not graph:
        raise _core.IngotSyntaxError("@qd.kernel(checkpoints=True) requires graph=True")
    if graph:
        import ingot.graph  # noqa: F401  makes the statuses of its launches
    if pure is not None:
        import warnings

        warnings.warn("@qd.kernel(pure=...) is called fastcache now", DeprecationWarning, 2)
    options = {
        "fastcache": fastcache or pure,
        "graph": graph,
        "checkpoints": checkpoints,
        "source": source,
    }
    return _decorator(_core.kernel, _fn, options)


def pure(marked):
    """The old way to say `@qd.kernel(fastcache=True)`: `@qd.pure` above `@qd.kernel`."""
    import warnings

    warnings.warn("@qd.pure is @qd.kernel(fastcache=True) now", DeprecationWarning, 2)
    if not hasattr(type(marked), "_fastcache"):
        raise _core.IngotSyntaxError(
            "@qd.pure stands above @qd.kernel; say @qd.kernel(fastcache=True) instead"
        )
    marked._fastcache = True
    return marked


def func(fn=None, *, is_real_function=False, requires_top_level=False, source=None, **others):
    """Marks a function as callable from kernels and from other funcs.

    Funcs are compiled once per signature and shared. One with loops that is called in the
    outermost block of a kernel lends its loops to the kernel, which runs them in parallel.

    is_real_function    always a call: the loops of this func run in order
    requires_top_level  refuse calls below a loop or branch of the kernel
    source              the text of the function, where Python cannot find it
    """
    if others:
        from ingot._absent import no_option

        raise no_option("@qd.func", others, ("is_real_function", "requires_top_level", "source"))
    if is_real_function and requires_top_level:
        raise _core.IngotSyntaxError("a real function is never part of a kernel: requires_top_level contradicts it")
    options = {
        "is_real_function": is_real_function,
        "requires_top_level": requires_top_level,
        "source": source,
    }
    return _decorator(_core.func, fn, options)


def real_func(fn):
    """The same as `func(is_real_function=True)`."""
    return func(fn, is_real_function=True)


def data_oriented(cls=None, *, template_primitives=True, stable_members=False, **others):
    """Marks a class whose methods may be kernels.

    template_primitives  numbers that a kernel reads from `self` are compiled in (the default),
                         or passed at each launch
    stable_members       accepted; members may always be rebound
    """
    del stable_members
    if others:
        from ingot._absent import no_option

        raise no_option("@qd.data_oriented", others, ("template_primitives", "stable_members"))

    def mark(marked):
        marked._data_oriented = True
        marked._ingot_template_primitives = bool(template_primitives)
        return marked

    return mark if cls is None else mark(cls)
