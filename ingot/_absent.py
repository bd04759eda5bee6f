"""Words about attributes of `ingot` that are not there: names of Quadrants, Taichi and NumPy, and near misses.

Loaded when somebody asks for one; `ingot.__getattr__` raises what is said here.
"""

_PICTURES = "qd.tools.imshow(image) and qd.tools.imwrite(image, 'x.png') show arrays"
_SPARSE = "Ingot's fields are dense: use qd.root.dense"
_MESH = "keep vertices and indices in ndarrays"

_CPU = "Ingot runs kernels on the CPU: qd.cpu"
_OTHERS = "Ingot has kernels, arrays and gradients; libraries for this are other packages"

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
    "synchronize": "qd.sync()", "double": "qd.f64", "half": "qd.f16", "single": "qd.f32", "long": "qd.i64", "short": "qd.i16",
    "launch": "call the kernel: k(a, b); its loops say how many threads there are",
    "arange": "qd.from_numpy(np.arange(n))", "linspace": "qd.from_numpy(np.linspace(0, 1, n))", "full": "a = qd.ndarray(qd.f32, shape); a.fill(x)",
    "zeros_like": "qd.ndarray(a.dtype, a.shape)", "ones_like": "b = qd.ndarray(a.dtype, a.shape); b.fill(1)",
    "empty_like": "qd.ndarray(a.dtype, a.shape)", "asarray": "qd.from_numpy(np.asarray(x))", "from_torch": "kernels take tensors; a.from_torch(t) copies one",
    "vmap": "write the loop: the outermost `for` of a kernel is parallel", "pmap": "write the loop: the outermost `for` of a kernel is parallel",
    "vectorize": "write the loop: the outermost `for` of a kernel is parallel", "guvectorize": "write the loop: the outermost `for` of a kernel is parallel",
    "tid": "for i in range(n): i is the index", "struct_for": "for i in field:", "get_thread_num": "loops have no visible threads: use the index of the loop",
    "get_num_threads": "qd.init(cpu_max_num_threads=n)", "set_num_threads": "qd.init(cpu_max_num_threads=n)",
    "array1d": "qd.types.ndarray(dtype, 1)", "array2d": "qd.types.ndarray(dtype, 2)", "array3d": "qd.types.ndarray(dtype, 3)",
    "copy": "a.copy(), or b.copy_from(a)", "clone": "a.copy()", "load": "np.load(file), then a.from_numpy", "save": "np.save(file, a.to_numpy())",
    "device": "qd.init(arch=qd.cpu)", "lax": "write the loop: branches and loops are those of Python",
    "mean": "np.asarray(a).mean(), or a loop in a kernel", "sum": "np.asarray(a).sum(), or a loop in a kernel",
    "where": "qd.select(condition, x, y)", "maximum": "qd.max", "minimum": "qd.min", "power": "qd.pow", "clip": "qd.math.clamp",
    "fabs": "abs(x)", "absolute": "abs(x)", "square": "x * x", "mod": "x % y", "fmod": "qd.raw_mod", "normalize": "qd.math.normalize, or v.normalized()",
    "cross": "qd.math.cross, or v.cross(w)", "norm": "v.norm()", "transpose": "m.transpose()", "identity": "qd.Matrix.identity(qd.f32, n)",
    "eye": "qd.Matrix.identity(qd.f32, n)", "lerp": "qd.math.mix(x, y, a)", "print": "print(x) works in kernels",
    "grad": "kernel.grad(...), or qd.ad.Tape", "Tape": "qd.ad.Tape", "AOT": "`ingot cache seal` makes a folder to ship", "Axis": "qd.i, qd.j, qd.ij",
    "KernelTemplate": "annotate with qd.template()", "Texture": "keep pictures in ndarrays", "texture": "keep pictures in ndarrays",
    "block_dim": "qd.loop_config(block_dim=n)", "clear_all_gradients": "a.grad.fill(0), or qd.root.lazy_grad() and qd.ad.Tape", "cuda_grid": "use the index of the loop",
    "default_cfg": "qd.cfg", "config": "qd.cfg, or the arguments of qd.init", "log_level": 'qd.init(log_level="info")', "print_ir": "qd.init(print_ir=True)",
    "imread": "qd.tools.imread", "imwrite": "qd.tools.imwrite", "imshow": "qd.tools.imshow", "imresize": "Pillow's Image.resize",
    "rgb_to_hex": "0x10000 * r + 0x100 * g + b, of numbers from 0 to 255", "hex_to_rgb": "(x >> 16) & 255, (x >> 8) & 255, x & 255",
    "gles": _CPU, "opengl": _CPU, "dx11": _CPU, "dx12": _CPU, "wasm": _CPU, "cc": _CPU, "rocm": _CPU, "lang": "everything is in `ingot` itself",
    "num_retries": "leave it out", "parallelize": "qd.loop_config(parallelize=n)", "snode": "field.snode", "unwrap": "leave it out", "TetMesh": _MESH, "TriMesh": _MESH,
    "warp": "write the loop: Ingot runs kernels on the CPU", "block": "write the loop: Ingot runs kernels on the CPU",
    "mat22": "qd.math.mat2", "mat33": "qd.math.mat3", "mat44": "qd.math.mat4", "quat": "qd.math.vec4", "quatf": "qd.math.vec4", "transform": "qd.math.mat4",
    "vec2f": "qd.math.vec2", "vec3f": "qd.math.vec3", "vec4f": "qd.math.vec4", "vec2i": "qd.math.ivec2", "vec3i": "qd.math.ivec3", "vec4i": "qd.math.ivec4",
    "to_torch": "a.to_torch()", "to_numpy": "a.to_numpy()", "ScopedTimer": "qd.profiler", "ScopedDevice": "qd.init(arch=qd.cpu)", "constant": "globals are compiled in",
    "smoothstep": "qd.math.smoothstep", "mix": "qd.math.mix", "fract": "qd.math.fract", "step": "qd.math.step", "distance": "(v - w).norm()", "reflect": "qd.math.reflect",
    "printf": "print(f'{x:.3f}') works in kernels", "rand_init": "qd.init(random_seed=n)", "seed": "qd.init(random_seed=n)", "randf": "qd.random(qd.f32)",
    "randi": "qd.random(qd.i32)", "rand": "qd.random(qd.f32)", "noise": "write it as a @qd.func", "volume_sample": "write it as a @qd.func",
    "HashGrid": "count and sort particles by cell, in ndarrays", "Bvh": "keep its nodes in ndarrays", "sim": _OTHERS, "render": _OTHERS,
    "optim": _OTHERS, "fem": _OTHERS, "capture_launch": "@qd.kernel(graph=True)", "ScopedCapture": "@qd.kernel(graph=True)",
    "launch_tiled": "write the loop: Ingot runs kernels on the CPU", "tile_load": "write the loop: Ingot runs kernels on the CPU",
    "get_device": "qd.cfg.arch", "set_device": "qd.init(arch=qd.cpu)", "device_put": "qd.from_numpy(x)", "block_until_ready": "qd.sync()", "wait": "qd.sync()",
    "typed": "lists whose length changes are arrays with a counter", "boolean": "qd.u1", "bool_": "qd.u1", "objmode": "call it outside of the kernel",
    "literal_unroll": "qd.static(...)", "generated_jit": "if qd.static(...)", "stencil": "write the loop: a[i - 1] + a[i + 1]",
    "cfunc": "decorate with @qd.func", "jitclass": "@qd.data_oriented, or @qd.dataclass", "errno": "leave it out",
    "numpy": "NumPy's functions are for outside of kernels: import numpy as np", "value_and_grad": "kernel.grad(...), or qd.ad.Tape",
    "jacobian": "qd.ad.FwdMode, a column at a time", "jacfwd": "qd.ad.FwdMode, a column at a time", "jacrev": "kernel.grad(...), a row at a time",
    "hessian": "qd.ad.FwdMode of a gradient that is written out", "custom_vjp": "qd.ad.grad_replaced and qd.ad.grad_for", "custom_jvp": "qd.ad.grad_replaced and qd.ad.grad_for",
    "stop_gradient": "qd.stop_grad(x)", "debug": "qd.init(debug=True)", "tree_util": "pass objects and dataclasses: kernels read their members", "make_jaxpr": "qd.init(print_ir=True), or `ingot explain --code`",
    "matmul": "a @ b of qd.Matrix; of arrays np.matmul, or loops", "newaxis": "np.newaxis, outside of kernels", "isnan": "qd.math.isnan", "isinf": "qd.math.isinf",
    "logical_and": "x and y", "logical_or": "x or y", "logical_not": "not x", "dtype": "a.dtype; dtypes are qd.i32, qd.f32, ...", "sort": "qd.algorithms.parallel_sort",
    "cumsum": "qd.algorithms.PrefixSumExecutor", "any": "any((x, y)) of numbers; of arrays np.asarray(a).any()", "all": "all((x, y)) of numbers; of arrays np.asarray(a).all()",
    **dict.fromkeys(("prod", "std", "var", "argsort", "argmax", "argmin", "unique", "einsum", "tensordot", "concatenate", "stack", "vstack", "hstack", "reshape",
                     "meshgrid", "median", "histogram", "diff", "dstack", "tile", "repeat", "roll", "pad", "outer", "inner", "kron", "average"),
                    "NumPy does it: np.asarray(a) is the array without a copy; in a kernel, write the loop"),
    "pi": "qd.math.pi", "e": "qd.math.e", "inf": "qd.math.inf", "nan": "qd.math.nan",
    "int": "Python's own int is the default integer type, qd.i32 and qd.i64 are others",
    "float": "Python's own float is the default float type, qd.f32 and qd.f64 are others", "bool": "qd.u1",
}


_ASK_NUMPY = "sum prod mean std var min max argmin argmax any all cumsum cumprod dot trace round clip sort argsort nonzero " \
    "reshape ravel flatten squeeze transpose swapaxes T repeat take astype view real imag conj strides flags itemsize".split()
_OF_ARRAYS = {
    "item": "an element is a[i], the one of an array without axes a[()]",
    "numpy": "a.to_numpy()", "cpu": "a.to_numpy() or a.to_torch()", "cuda": "a.to_torch(device)", "detach": "a.to_torch()",
    "zero_": "a.fill(0)", "fill_": "a.fill(x)", "copy_": "a.copy_from(b)", "clone": "a.copy()", "assign": "a.copy_from(b)",
    "append": "a shape is fixed: make a larger array and copy", "resize": "a shape is fixed: make a larger array and copy",
    "from_list": "a.from_numpy(np.array(x))", "set": "a[i] = x, or a.from_numpy(np.array(x))", "get": "a[i], or a.to_numpy()",
    "to_list": "a.tolist()", "len": "a.shape[0], or len(a)", "length": "a.shape[0], or len(a)",
    "requires_grad": "needs_grad=True where it is made", "backward": "kernel.grad(...), or qd.ad.Tape", "zero_grad": "a.grad.fill(0)",
    "copy": "b = qd.field(dtype, shape); b.copy_from(a)", "place": "qd.root.dense(qd.i, 8).place(a)",
    "ndim": "len(a.shape)", "nbytes": "a.to_numpy().nbytes",
}


def of_array(array, name):
    """What an AttributeError of an ndarray or field says, where there is something to say; else None."""
    if name in _ASK_NUMPY:
        call = f"np.asarray(a).{name}" + ("" if name in ("T", "real", "imag", "strides", "flags", "itemsize") else "(...)")
        instead = f"NumPy does it, {call}; in a kernel, loop over the elements"
    else:
        instead = _OF_ARRAYS.get(name)
    if instead is None:
        import difflib

        near = difflib.get_close_matches(name, [x for x in dir(array) if not x.startswith("_")], 1)
        instead = f"did you mean {near[0]!r}?" if near else None
    kind = f"ingot.{type(array).__name__}"
    return instead and f"{kind!r} object has no attribute {name!r}: {instead}"


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
