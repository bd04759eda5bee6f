"""How values of other libraries are taken apart for fingerprints: by content, so that what they
keep lazily (caches, flags, how many chunks or blocks the content lies in) does not count.

`find(cls)` is asked once per class by the engine (src/py/value/fingerprint_plan.c) and gives the rule
of the first class in the MRO that has one. A rule returns Pieces; the class itself counts by its
name. docs/fingerprint.md has the table. No library is imported here: a value exists, so it is.
"""

import functools
import os
import struct
import sys

from ingot.fingerprint import Pieces


def find(cls):
    if cls in _EXACT:
        return _EXACT[cls]
    for base in cls.__mro__:
        rule = _RULES.get((base.__module__.partition(".")[0], base.__qualname__))
        if rule is not None and _is_theirs(base):
            return functools.partial(_with_own, rule)
    return None


def _with_own(rule, value):
    """The rule's pieces, and attributes that the library knows nothing of."""
    pieces = rule(value)
    known = _KNOWN.get(pieces.tag)
    if known is None:
        return pieces
    own = {k: v for k, v in getattr(value, "__dict__", {}).items() if k[:1] != "_" and k not in known}
    for base in type(value).__mro__:
        theirs = base.__module__.partition(".")[0] in _LIBRARIES and _is_theirs(base)
        slots = () if theirs else base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name[:1] != "_" and hasattr(value, name):
                own[name] = getattr(value, name)
    return Pieces(pieces.tag, [*pieces.children, own]) if own else pieces


def _is_theirs(base):
    """Is it the library's class, and not one of the same name?"""
    top = base.__module__.partition(".")[0]
    home = getattr(sys.modules.get(top), "__file__", None)
    at = getattr(sys.modules.get(base.__module__), "__file__", None)
    if at is None:  # made by C or Cython code of the library
        return home is not None
    return home is not None and str(at).startswith(home.rpartition("/")[0] + "/")


# ---- of Python ------------------------------------------------------------------------------------


def _method(m):
    """What was put on the object itself counts; what it took from its function does not again."""
    taken = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "__annotations__", "__annotate__"}
    own = {k: v for k, v in vars(m).items() if k not in taken}
    return Pieces(type(m).__name__, [m.__func__, own])


def _super(s):
    """Its attributes are those of the object that it looks into."""
    return Pieces("super", [super.__thisclass__.__get__(s), super.__self__.__get__(s)])


def _object(o):
    """`MISSING = object()` is nothing but itself: the name under which a module made it."""
    from ingot import _reach

    return Pieces("object", [_reach.made_as(o)])


def _entry_point(e):
    raise TypeError("what it loads is said by a text")


def _struct(s):
    return Pieces("struct", [s.format])


def _shared_library(lib):
    """Where it is loaded is no value. A file of its own counts by content, the system's by name."""
    from ingot import _core

    content = _core._file_digest(lib._name) if os.path.isfile(lib._name or "") else None
    told = [(name, *_prototype(lib, f)) for name, f in sorted(vars(lib).items()) if isinstance(f, lib._FuncPtr)]
    told = [t for t in told if t[1:] != (_c_type(lib._func_restype_), None, None)]
    return Pieces("shared library", [lib._name, content, *told])


def _prototype(lib, f):
    """What the program said of a function; where it only called it, what every function has."""
    types_ = None if f.argtypes is None else [_c_type(t) for t in f.argtypes]
    return _c_type(f.restype), types_, getattr(f, "errcheck", None)


def _c_type(t, above=()):
    """A type of ctypes as plain values; of pointers, arrays and structures what is in them."""
    import ctypes

    if not isinstance(t, type) or t.__module__.partition(".")[0] == "numpy" or t in above:
        return getattr(t, "__name__", None) if isinstance(t, type) else t
    fields = [(f[0], _c_type(f[1], (*above, t)), *f[2:]) for f in getattr(t, "_fields_", ())]
    if fields:
        return [t.__name__, ctypes.sizeof(t), fields]
    inner = getattr(t, "_type_", None)
    head = [getattr(t, "_length_", None), ctypes.sizeof(t)] if hasattr(t, "_length_") else [t.__name__]
    return [*head, _c_type(inner, (*above, t)) if isinstance(inner, type) else inner]


def _validated(w):
    """What `pydantic.validate_call` puts around a function; it keeps the whole module's names."""
    fn = getattr(w, "function", None) or w.raw_function
    config = getattr(getattr(w, "config_wrapper", None), "config_dict", None) or getattr(w, "_config", None)
    checked = getattr(w, "validate_return", None) or getattr(w, "_validate_return", None)
    return Pieces("validated", [fn, dict(config or {}), bool(checked)])


# ---- of Ingot and NumPy ------------------------------------------------------------------------


def _file(f):
    from ingot import _core

    return Pieces("file", _core._file_digest(f.path))


def _vectorize(v):
    return Pieces("vectorize", [v.pyfunc, v.otypes, v.excluded, v.cache, v.signature])


def _masked_array(m):
    """As its data in the order of C, whatever lies in memory; its mask, and what is put under it."""
    import numpy

    kept = m._fill_value  # made when it is asked for
    fill = numpy.asarray(numpy.ma.default_fill_value(m.dtype) if kept is None else kept, m.dtype)
    mask = numpy.ma.getmask(m)
    return Pieces("masked array", [m.data, None if mask is numpy.ma.nomask else mask, fill, m.hardmask])


def _random_state(r):
    """The one of `numpy.random` itself, which statistics of scipy hold, is no value."""
    if r is getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None):
        return Pieces("random state", ["of the process"])
    return Pieces("random state", [r.get_state(legacy=False)])


def _numba(d):
    """A function that numba compiles: its text and what the compiler was told, never what it made."""
    fixed = [] if d._can_compile else [str(s) for s in d.nopython_signatures]
    told = {name: str(value) for name, value in d.targetoptions.items()}
    return Pieces("numba", [d.py_func, told, fixed, {n: str(t) for n, t in d.locals.items()}])


def _spline(s):
    """A smoothing spline: its knots, its data; the room that FITPACK works in is not set."""
    data = list(s._data)
    n = data[7]
    return Pieces("spline", [list(s._eval_args), s.ext, data[:8], data[8][:n], data[9][:n], data[10]])


# ---- pandas ---------------------------------------------------------------------------------------


def _pandas_values(a):
    """An array of pandas: what it holds, and nothing under the masks."""
    kind = type(a).__name__
    if kind == "Categorical":
        return ["categorical", a.codes, a.categories, bool(a.ordered)]
    if hasattr(a, "_mask") and hasattr(a, "_data") and kind != "ArrowExtensionArray":
        data = a._data.copy()
        data[a._mask] = data.dtype.type()
        return ["masked", str(a.dtype), data, a._mask]
    if hasattr(a, "_pa_array"):
        return ["arrow", str(a.dtype), a._pa_array]
    if kind in ("DatetimeArray", "TimedeltaArray", "PeriodArray"):
        return ["times", str(a.dtype), a.asi8]
    if kind == "IntervalArray":
        return ["intervals", str(a.dtype), _pandas_values(a.left.array),
                _pandas_values(a.right.array)]
    if kind == "SparseArray":
        return ["sparse", str(a.dtype), len(a), a.sp_values, a.sp_index.indices, a.fill_value]
    return ["array", str(a.dtype), a.to_numpy()]


def _index(i):
    kind = type(i).__name__
    if kind == "RangeIndex":
        return Pieces("range", [i.start, i.stop, i.step, i.name])
    if kind == "MultiIndex":
        levels = [_pandas_values(i.get_level_values(n).array) for n in range(i.nlevels)]
        return Pieces("levels", [list(i.names), levels])
    freq = getattr(i, "freqstr", None)
    return Pieces("index", [i.name, freq, _pandas_values(i.array)])


def _flags(obj):
    """What set_flags() said, where it is not what every frame says."""
    return [] if obj.flags.allows_duplicate_labels else ["no duplicate labels"]


def _series(s):
    return Pieces("series", [s.name, s.index, _pandas_values(s.array), s.attrs, *_flags(s)])


def _frame(f):
    columns = [_column(f, n) for n in range(f.shape[1])]
    return Pieces("frame", [f.columns, f.index, columns, f.attrs, *_flags(f)])


def _column(f, n):
    """Without a Series around it, which takes 14 us, where this version of pandas has a way."""
    get = getattr(f, "_get_column_array", None)
    a = get(n) if get is not None else f.iloc[:, n].array
    plain = hasattr(a, "__array_interface__") and not hasattr(a, "to_numpy")
    return ["array", str(a.dtype), a] if plain else _pandas_values(a)


def _extension_array(a):
    return Pieces("values", _pandas_values(a))


# ---- xarray ---------------------------------------------------------------------------------------


def _variable(v):
    data = v._data if hasattr(v._data, "__dask_graph__") else v.values
    return Pieces("variable", [tuple(v.dims), data, dict(v.attrs)])


def _data_array(a):
    coords = {name: c.variable for name, c in a.coords.items()}
    return Pieces("data array", [a.name, a.variable, coords])


def _dataset(d):
    variables = {name: d.variables[name] for name in d.variables}
    return Pieces("dataset", [variables, set(d.coords), dict(d.attrs)])


# ---- scipy.sparse ---------------------------------------------------------------------------------


def _sparse(m):
    """Rows, columns and values in order, doubles added up: how they were stored, and what is
    known about their order, does not count."""
    if m.format in ("csr", "csc", "bsr"):
        if not m.has_canonical_format:
            m = m.copy()
            m.sum_duplicates()
        return Pieces("sparse", [m.format, m.shape, m.data, m.indices, m.indptr])
    c = m.tocoo(copy=True)
    c.sum_duplicates()
    parts = list(c.coords) if hasattr(c, "coords") else [c.row, c.col]
    return Pieces("sparse", [m.format, m.shape, c.data, *parts])


# ---- torch ----------------------------------------------------------------------------------------


def _tensor(t):
    import torch

    with torch.no_grad():
        plain = t.detach()
        head = [str(t.dtype), tuple(t.shape), t.requires_grad, str(t.layout), dict(t.__dict__)]
        if t.layout == torch.sparse_coo:
            plain = plain.coalesce()
            return Pieces("tensor", [*head, plain.indices(), plain.values()])
        if t.layout in (torch.sparse_csr, torch.sparse_bsr):
            return Pieces("tensor", [*head, t.crow_indices(), t.col_indices(), plain.values()])
        if t.layout in (torch.sparse_csc, torch.sparse_bsc):
            return Pieces("tensor", [*head, t.ccol_indices(), t.row_indices(), plain.values()])
        if t.is_quantized:
            head.append(str(t.q_scale()) + " " + str(t.q_zero_point()))
            plain = plain.int_repr()
        plain = plain.cpu().resolve_conj().resolve_neg()
        return Pieces("tensor", [*head, _tensor_data(torch, plain)])


def _tensor_data(torch, plain):
    try:
        return plain.numpy()
    except TypeError:  # bfloat16 and other types that NumPy lacks: their bits
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        return plain.contiguous().view(bits[plain.element_size()]).numpy()


# ---- Arrow ----------------------------------------------------------------------------------------


def _arrow_values(a):
    """The content of an Arrow array: how it is cut into chunks, where it begins in its buffers
    and what lies under the nulls does not count."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(a, pa.ChunkedArray):
        a = a.combine_chunks() if a.num_chunks != 1 else a.chunk(0)
        if isinstance(a, pa.ChunkedArray):  # too much text for one array
            a = pa.concat_arrays([c.cast(_large(pa, c.type)) for c in a.chunks])
    head = [str(a.type), len(a)]
    if a.null_count:
        head.append(pc.is_null(a).to_numpy(zero_copy_only=False))
    t = a.type
    if isinstance(a, pa.ExtensionArray):
        return [*head, _arrow_values(a.storage)]
    if pa.types.is_dictionary(t):
        return [*head, _arrow_values(a.dictionary_decode())]
    if pa.types.is_boolean(t) or pa.types.is_primitive(t):
        return [*head, _arrow_fixed(pa, pc, a, t)]
    if pa.types.is_binary(t) or pa.types.is_string(t) or pa.types.is_large_binary(t) \
            or pa.types.is_large_string(t):
        return [*head, *_arrow_text(pa, pc, a)]
    if pa.types.is_struct(t):
        return [*head, *[_arrow_values(f) for f in a.flatten()]]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        lengths = pc.fill_null(pc.list_value_length(a), 0).to_numpy()
        return [*head, lengths, _arrow_values(a.flatten())]
    return [*head, a.to_pylist()]


def _large(pa, t):
    if pa.types.is_string(t):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(t) else t


def _arrow_fixed(pa, pc, a, t):
    if pa.types.is_boolean(t):
        return (pc.fill_null(a, False) if a.null_count else a).to_numpy(zero_copy_only=False)
    bits = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}.get(t.bit_width)
    if bits is None:  # decimals; intervals, whose class has no name of its own
        return [tuple(v) if isinstance(v, tuple) else v for v in a.to_pylist()]
    a = a.view(bits)
    return (pc.fill_null(a, pa.scalar(0, bits)) if a.null_count else a).to_numpy()


def _arrow_text(pa, pc, a):
    import numpy

    if a.null_count:
        a = pc.fill_null(a, "" if pa.types.is_string(a.type) or pa.types.is_large_string(a.type)
                         else b"")
    wide = pa.types.is_large_binary(a.type) or pa.types.is_large_string(a.type)
    _, offsets, data = a.buffers()
    if offsets is None or not len(a):
        return [numpy.zeros(0, "i8"), b""]
    at = numpy.frombuffer(offsets, "i8" if wide else "i4")[a.offset : a.offset + len(a) + 1]
    text = memoryview(data)[at[0] : at[-1]] if data is not None else b""
    return [numpy.diff(at).astype("i8"), numpy.frombuffer(text, "u1")]


def _arrow_array(a):
    return Pieces("arrow", _arrow_values(a))


def _arrow_table(t):
    columns = [_arrow_values(t.column(n)) for n in range(t.num_columns)]
    return Pieces("arrow table", [t.schema, t.num_rows, columns])


def _arrow_schema(s):
    fields = [s.field(n) for n in range(len(s))]
    return Pieces("arrow schema", [fields, _metadata(s)])


def _arrow_field(f):
    return Pieces("arrow field", [f.name, str(f.type), f.nullable, _metadata(f)])


def _metadata(x):
    return dict(x.metadata) if x.metadata else {}


def _arrow_type(t):
    return Pieces("arrow type", [str(t)])


def _arrow_scalar(s):
    return Pieces("arrow scalar", [str(s.type), s.as_py()])


# Public attributes that a library itself sets on the values with such pieces.
_KNOWN = {
    "masked array": {"fill_value", "mask", "shape", "dtype"},
    "vectorize": {"pyfunc", "cache", "signature", "otypes", "excluded"},
    "series": {"index", "name"},
    "frame": {"index", "columns"},
    "index": {"name"},
    "range": {"name"},
    "levels": {"name", "names"},
    "sparse": {"maxprint", "data", "indices", "indptr", "row", "col", "coords", "offsets", "rows",
               "has_sorted_indices", "has_canonical_format"},
    "variable": set(),
    "data array": set(),
    "dataset": set(),
}

# Classes of Python itself; subclasses are taken apart as other instances.
_EXACT = {staticmethod: _method, classmethod: _method, struct.Struct: _struct, super: _super, object: _object}

_RULES = {
    ("ingot", "File"): _file,
    ("importlib", "EntryPoint"): _entry_point,
    ("ctypes", "CDLL"): _shared_library,
    ("numpy", "vectorize"): _vectorize,
    ("numpy", "MaskedArray"): _masked_array,
    ("numpy", "RandomState"): _random_state,
    ("numba", "Dispatcher"): _numba,
    ("pydantic", "ValidateCallWrapper"): _validated,
    ("scipy", "UnivariateSpline"): _spline,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _index,
    ("pandas", "ExtensionArray"): _extension_array,
    ("xarray", "Variable"): _variable,
    ("xarray", "DataArray"): _data_array,
    ("xarray", "Dataset"): _dataset,
    ("scipy", "spmatrix"): _sparse,
    ("scipy", "sparray"): _sparse,
    ("scipy", "_spbase"): _sparse,
    ("torch", "Tensor"): _tensor,
    ("pyarrow", "Array"): _arrow_array,
    ("pyarrow", "ChunkedArray"): _arrow_array,
    ("pyarrow", "Table"): _arrow_table,
    ("pyarrow", "RecordBatch"): _arrow_table,
    ("pyarrow", "Schema"): _arrow_schema,
    ("pyarrow", "Field"): _arrow_field,
    ("pyarrow", "DataType"): _arrow_type,
    ("pyarrow", "Scalar"): _arrow_scalar,
}
_LIBRARIES = {library for library, _ in _RULES}
