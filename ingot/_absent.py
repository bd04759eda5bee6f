"""Words about attributes of `ingot` that are not there: names of Quadrants, Taichi and NumPy, and near misses.

Loaded when somebody asks for one; `ingot.__getattr__` raises what is said here.
"""

_PICTURES = "qd.tools.imshow(image) and qd.tools.imwrite(image, 'x.png') show arrays"
_SPARSE = "Ingot's fields are dense: use qd.root.dense"
_MESH = "keep vertices and indices in ndarrays"

# name: what to do instead
_REMEDIES = {
    "GUI": _PICTURES,
    "ui": _PICTURES,
    "aot": "kernels are kept on disk by themselves: `ingot cache seal` makes a folder to ship",
    "graphics": _PICTURES,
    "Mesh": _MESH,
    "MeshInstance": _MESH,
    "mesh_local": _MESH,
    "mesh_patch_idx": _MESH,
    "activate": _SPARSE,
    "append": _SPARSE,
    "deactivate": _SPARSE,
    "deactivate_all_snodes": _SPARSE,
    "is_active": _SPARSE,
    "length": _SPARSE,
    "no_activate": _SPARSE,
    "BitpackedFields": "use fields of i8 or i16",
    "quant": "use fields of i8 or i16",
    "simt": "write the loop: Ingot runs kernels on the CPU",
    "pyfunc": "@qd.func works in kernels; in Python, call a plain function",
    "external_arr": "annotate with qd.types.ndarray()",
    "ext_arr": "annotate with qd.types.ndarray()",
    "any_arr": "annotate with qd.types.ndarray()",
    "math_funcs": "the functions are in qd.math",
    "print_profile_info": "qd.init(kernel_profiler=True) and qd.profiler",
    "clock_counter": "time.perf_counter() around the launch",
    "global_thread_idx": "loops have no visible threads: use the index of the loop",
    "clock_freq_hz": "time.perf_counter() around the launch",
    "loop_unique": "leave it out",
    "set_logging_level": 'qd.init(log_level="info"), or logging.getLogger("ingot").setLevel',
    "is_logging_effective": 'logging.getLogger("ingot").isEnabledFor',
    "TRACE": 'qd.init(log_level="trace")',
    "DEBUG": 'qd.init(log_level="debug")',
    "INFO": 'qd.init(log_level="info")',
    "WARN": 'qd.init(log_level="warn")',
    "ERROR": 'qd.init(log_level="error")',
    "CRITICAL": 'qd.init(log_level="critical")',
    "sparse": _SPARSE,
    "extension": "every dtype and operation of Ingot works on every target: leave the test out",
    "is_extension_enabled": "every dtype and operation of Ingot works on every target: leave the test out",
    "experimental": "qd.real_func is there without it",
    "frexp": "e = qd.floor(qd.log2(abs(x))) + 1 and x / 2 ** e, for x other than 0",
    "print_memory_profiler_info": "qd.profiler tells times; what fields take follows from shape and dtype",
    "dump_compile_config": "repr(qd.cfg)",
    "Format": "pictures are ndarrays: qd.u8 or qd.f32 of shape (h, w, 3)",
    "zeros": "qd.ndarray(qd.f32, shape) is filled with zeros",
    "ones": "a = qd.ndarray(qd.f32, shape); a.fill(1)",
    "empty": "qd.ndarray(qd.f32, shape)",
    "array": "qd.from_numpy(np.array(x))",
    "jit": "decorate with @qd.kernel",
    "njit": "decorate with @qd.kernel",
    "prange": "the outermost `for` of a kernel is parallel: use range",
    "vec2": "qd.math.vec2", "vec3": "qd.math.vec3", "vec4": "qd.math.vec4",
    "mat2": "qd.math.mat2", "mat3": "qd.math.mat3", "mat4": "qd.math.mat4",
    "vector": "qd.types.vector(n, dtype) or qd.Vector([...])",
    "matrix": "qd.types.matrix(n, m, dtype) or qd.Matrix([...])",
    "struct": "qd.types.struct(x=qd.f32) or @qd.dataclass",
    "arcsin": "qd.asin", "arccos": "qd.acos", "arctan": "qd.atan", "arctan2": "qd.atan2",
    "clamp": "qd.math.clamp", "sign": "qd.math.sign", "dot": "qd.math.dot, or v.dot(w)",
    "pi": "qd.math.pi", "e": "qd.math.e", "inf": "qd.math.inf", "nan": "qd.math.nan",
    "int": "Python's own int is the default integer type, qd.i32 and qd.i64 are others",
    "float": "Python's own float is the default float type, qd.f32 and qd.f64 are others", "bool": "qd.u1",
}


def remedy(name):
    """What to do instead of `ingot.name`, where that is known; else None."""
    return _REMEDIES.get(name)


def is_library(function):
    """Is it the standard library's or an installed package's, so that nobody would decorate it?"""
    import os
    import sys
    import types

    function = getattr(function, "__func__", function)
    if isinstance(function, types.FunctionType):
        file = function.__code__.co_filename
        if file.startswith((os.path.dirname(os.__file__) + os.sep, "<frozen")):
            return True
    else:
        module = getattr(function, "__module__", None) or type(function).__module__
        top = str(module).partition(".")[0]
        if top in sys.stdlib_module_names:
            return True
        file = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def no_option(what, others, known):
    """What to raise if `what` was called with a keyword that it has not, else None."""
    for name in others:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            return TypeError(f"{what} has no option {name!r}{hint}")
    return None


class _Nothing:
    """Stands for the module in the error: Python's own guesses among its names would follow ours."""

    def __dir__(self):
        return []


def error(name, known):
    """What `ingot.__getattr__` raises."""
    return AttributeError(message(name, known), name=name, obj=_Nothing())


def message(name, known):
    """Why `ingot.name` fails."""
    text = f"module 'ingot' has no attribute {name!r}"
    if name.startswith("__"):
        return text
    if name in _REMEDIES:
        return f"{text}: {_REMEDIES[name]}"
    import difflib

    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1)
    return f"{text}; did you mean {near[0]!r}?" if near else text
