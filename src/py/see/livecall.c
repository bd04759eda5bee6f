/* What else can be called while compiling (R2), because a launch can call it again and compare
 * the result: functools.partial and lru_cache of what can be called, objects and classes
 * written in Python, operator's getters, methods of lists, dicts, sets and NumPy arrays that only read, and NumPy's
 * functions that do. Lists of names: what draws numbers, looks at a clock or changes its
 * arguments is on none of them, and is refused. Used by staticcall.c. */
#include "py/call/kernel.h"

#include <string.h>

/* How far partial(lru_cache(partial(...))) is followed. */
enum { MAX_WRAPS = 8 };

static const char *const list_reads[] = {"index", "count", "copy", NULL};
static const char *const dict_reads[] = {"get",   "keys", "values",
                                         "items", "copy", NULL};
static const char *const set_reads[] = {
    "copy",  "isdisjoint",   "issubset",   "issuperset",
    "union", "intersection", "difference", "symmetric_difference",
    NULL};
static const char *const array_reads[] = {
    "all",     "any",    "argmax",  "argmin",    "argsort",      "astype",   "clip",
    "copy",    "cumsum", "cumprod", "diagonal",  "dot",          "flatten",  "item",
    "max",     "mean",   "min",     "nonzero",   "prod",         "ravel",    "repeat",
    "reshape", "round",  "squeeze", "std",       "sum",          "swapaxes", "take",
    "tolist",  "trace",  "var",     "transpose", "searchsorted", NULL};
/* Of numpy and of numpy.linalg. */
static const char *const numpy_reads[] = {
    "all",           "allclose",     "amax",
    "amin",          "any",          "append",
    "arange",        "argmax",       "argmin",
    "argsort",       "argwhere",     "around",
    "array",         "array_equal",  "asarray",
    "atleast_1d",    "atleast_2d",   "average",
    "broadcast_to",  "clip",         "column_stack",
    "concatenate",   "convolve",     "copy",
    "count_nonzero", "cross",        "cumprod",
    "cumsum",        "diag",         "diff",
    "dot",           "dstack",       "einsum",
    "expand_dims",   "flatnonzero",  "flip",
    "full_like",     "gradient",     "histogram",
    "hstack",        "inner",        "interp",
    "isclose",       "isin",         "kron",
    "linspace",      "logspace",     "max",
    "mean",          "median",       "meshgrid",
    "min",           "moveaxis",     "ndim",
    "nonzero",       "ones_like",    "outer",
    "pad",           "percentile",   "prod",
    "ptp",           "quantile",     "ravel",
    "repeat",        "reshape",      "roll",
    "round",         "searchsorted", "shape",
    "size",          "sort",         "split",
    "squeeze",       "stack",        "std",
    "sum",           "swapaxes",     "take",
    "tensordot",     "tile",         "trace",
    "transpose",     "tril",         "triu",
    "unique",        "vander",       "var",
    "vdot",          "vstack",       "where",
    "zeros",         "zeros_like",   NULL};
static const char *const linalg_reads[] = {
    "cholesky", "cond", "det",     "eig",          "eigh",        "eigvals",
    "eigvalsh", "inv",  "lstsq",   "matrix_power", "matrix_rank", "norm",
    "pinv",     "qr",   "slogdet", "solve",        "svd",         NULL};

/* Does module.name exist, and is it `fn`? 1, 0 or -1 = raised, as all of these. */
static int is_held(const char *module, const char *name, PyObject *fn) {
    PyObject *m, *held = NULL;
    int rc = ing_py_loaded(module, &m);
    if (rc == 1) rc = ing_py_attr_maybe(m, name, &held);
    if (rc == 1) rc = held == fn;
    Py_XDECREF(m);
    Py_XDECREF(held);
    return rc;
}

static int numpy_function(PyObject *fn, const char *name) {
    int rc = ing_py_in_names(name, numpy_reads) ? is_held("numpy", name, fn) : 0;
    if (rc == 0 && ing_py_in_names(name, linalg_reads))
        rc = is_held("numpy.linalg", name, fn);
    return rc;
}

bool ing_py_is_ndarray(PyObject *obj) {
    return strcmp(Py_TYPE(obj)->tp_name, "numpy.ndarray") == 0 &&
           !(Py_TYPE(obj)->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

static int c_function(PyObject *fn) {
    PyObject *self = PyCFunction_GET_SELF(fn);
    const char *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    if (!self || PyModule_Check(self)) {
        int rc = numpy_function(fn, name);
        return rc                            ? rc
               : strcmp(name, "reduce") == 0 ? is_held("functools", name, fn)
                                             : 0;
    }
    return (PyList_CheckExact(self) && ing_py_in_names(name, list_reads)) ||
           (PyDict_CheckExact(self) && ing_py_in_names(name, dict_reads)) ||
           (PySet_CheckExact(self) && ing_py_in_names(name, set_reads)) ||
           (ing_py_is_ndarray(self) && ing_py_in_names(name, array_reads));
}

/* NumPy's functions of arrays, since 1.25 objects of a class of their own. */
static int dispatcher(PyObject *fn) {
    if (strcmp(Py_TYPE(fn)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return 0;
    PyObject *name;
    int rc = ing_py_attr_maybe(fn, "__name__", &name);
    if (rc != 1) return rc;
    char s[32] = "";
    rc = PyUnicode_Check(name) ? ing_py_show(name, s, sizeof s) : 0;
    Py_DECREF(name);
    return rc < 0 ? -1 : numpy_function(fn, s);
}

/* What a partial or a cache calls: 1 and a new reference; 0: it is neither. */
static int wrapped(PyObject *fn, PyObject **out) {
    static const char *const classes[][2] = {{"partial", "func"},
                                             {"_lru_cache_wrapper", "__wrapped__"}};
    *out = NULL;
    for (int i = 0; i < 2; i++) {
        int rc = is_held("functools", classes[i][0], (PyObject *)Py_TYPE(fn));
        if (rc) return rc < 0 ? -1 : ing_py_attr_maybe(fn, classes[i][1], out);
    }
    return 0;
}

static int wraps_callable(PyObject *fn) {
    PyObject *at = Py_NewRef(fn), *inner = NULL;
    uint32_t n = 0;
    int rc;
    while ((rc = wrapped(at, &inner)) == 1 && n++ < MAX_WRAPS) Py_SETREF(at, inner);
    if (rc == 1) Py_DECREF(inner); /* too many */
    ing_py_callable kind = rc == 0 && n ? ing_py_callable_kind(at) : ING_PY_CALL_NEVER;
    Py_DECREF(at);
    return rc < 0 || kind == ING_PY_CALL_RAISED ? -1 : kind != ING_PY_CALL_NEVER;
}

/* A function written in Python, by someone else, and not for the host. */
static int is_users(PyObject *fn) {
    PyObject *module = PyFunction_Check(fn) ? PyFunction_GET_MODULE(fn) : NULL;
    char name[64];
    if (!module || !PyUnicode_Check(module)) return PyFunction_Check(fn);
    if (ing_py_show(module, name, sizeof name) < 0) return -1;
    return !ing_py_is_our_module(name) && !ing_py_is_for_host(fn);
}

/* One of Python's own classes that hold values has this method. */
static bool is_plain_method(PyObject *fn) {
    static PyTypeObject *const plain[] = {
        &PyBaseObject_Type, &PyTuple_Type, &PyLong_Type, &PyFloat_Type,
        &PyUnicode_Type,    &PyDict_Type,  &PyList_Type, &PySet_Type};
    PyObject *owner = PyCFunction_CheckExact(fn) ? PyCFunction_GET_SELF(fn) : NULL;
    if (Py_IS_TYPE(fn, &PyWrapperDescr_Type)) owner = (PyObject *)PyDescr_TYPE(fn);
    for (size_t i = 0; owner && i < sizeof plain / sizeof *plain; i++)
        if (owner == (PyObject *)plain[i]) return true;
    return false;
}

/* Is the method that a class has under this name written in Python, or a plain one? */
static int is_open(PyTypeObject *cls, const char *name) {
    PyObject *text = PyUnicode_InternFromString(name), *inner;
    PyObject *fn = text ? Py_XNewRef(_PyType_Lookup(cls, text)) : NULL;
    int rc = text ? fn != NULL : -1;
    Py_XDECREF(text);
    if (rc == 1 && Py_IS_TYPE(fn, &PyStaticMethod_Type)) {
        rc = ing_py_attr_maybe(fn, "__func__", &inner);
        if (rc == 1) Py_SETREF(fn, inner);
    }
    if (rc == 1) rc = is_plain_method(fn) ? 1 : is_users(fn);
    Py_XDECREF(fn);
    return rc;
}

/* An object with a __call__ of a Python class; of classes those of enums. */
static int has_python_call(PyObject *fn) {
    PyTypeObject *type = Py_TYPE(fn);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_call == PyType_Type.tp_call)
        return 0;
    return is_open(type, "__call__");
}

/* A class whose objects are made by Python code. */
static int is_python_class(PyObject *fn) {
    PyTypeObject *cls = (PyTypeObject *)fn;
    if (!PyType_Check(fn) || !(cls->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        Py_TYPE(fn)->tp_call != PyType_Type.tp_call)
        return 0;
    int rc = is_open(cls, "__new__");
    return rc == 1 ? is_open(cls, "__init__") : rc;
}

/* operator.itemgetter and attrgetter, which read, and what they make. */
static int is_getter(PyObject *fn) {
    PyObject *cls = PyType_Check(fn) ? fn : (PyObject *)Py_TYPE(fn);
    int rc = is_held("operator", "itemgetter", cls);
    return rc ? rc : is_held("operator", "attrgetter", cls);
}

int ing_py_is_live_callable(PyObject *fn) {
    if (PyCFunction_CheckExact(fn)) return c_function(fn);
    int rc = dispatcher(fn);
    if (rc == 0) rc = is_getter(fn);
    if (rc == 0) rc = wraps_callable(fn);
    if (rc == 0) rc = has_python_call(fn);
    return rc ? rc : is_python_class(fn);
}
