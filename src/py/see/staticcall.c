/* Which Python functions can be called while compiling (R2). Those of a listed pure set (math,
 * operator, builtins, methods of immutable values, NumPy's scalar types and ufuncs), whose
 * result follows from the arguments; Python functions and methods; and what can be called again
 * at each launch (livecall.c). A call is part of the path of its result, and replayed from disk
 * by calling again. At launches it is guarded by its source and by its arguments where these
 * and its result are immutable (whole.c), else by calling. */
#include "py/call/kernel.h"

#include <string.h>

enum { TAG_C = 1, TAG_TEXT, TAG_CODE, TAG_TYPE, TAG_UFUNC, TAG_METHOD, TAG_LIVE };

bool ing_py_in_names(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(name, *list) == 0) return true;
    return false;
}

/* The entry of the list that a str equals, or NULL. */
static const char *find_in(PyObject *name, const char *const *list) {
    for (; *list; list++)
        if (PyUnicode_CompareWithASCIIString(name, *list) == 0) return *list;
    return NULL;
}

static const char *const modules[] = {"math",     "cmath",    "_operator",
                                      "operator", "builtins", NULL};
static const char *const pure_builtins[] = {
    "divmod", "round", "sorted", "sum", "abs", "min", "max",    "pow",   "len",
    "chr",    "ord",   "repr",   "bin", "hex", "oct", "format", "ascii", NULL};

static const char *const live_builtins[] = {"isinstance", "issubclass", "callable",
                                            NULL};

/* Module name of a builtin function; NULL when it is none of those listed. */
static const char *c_module(PyObject *fn) {
    PyObject *m = ((PyCFunctionObject *)fn)->m_module;
    return m && PyUnicode_Check(m) ? find_in(m, modules) : NULL;
}

static bool pure_c_function(PyObject *fn) {
    const char *module = c_module(fn), *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    return module &&
           (strcmp(module, "builtins") != 0 || ing_py_in_names(name, pure_builtins));
}

/* What makes text: that of NumPy's numbers follows its print options, that of format "n" the locale,
 * that of the user's objects what their class does. */
bool ing_py_makes_text(PyObject *fn) {
    static const char *const builtins[] = {"repr", "ascii", "format", NULL};
    static const char *const methods[] = {"format", "format_map", NULL};
    if (fn == (PyObject *)&PyUnicode_Type) return true;
    if (!PyCFunction_CheckExact(fn)) return false;
    const char *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    PyObject *self = PyCFunction_GET_SELF(fn);
    if (self && PyUnicode_CheckExact(self)) return ing_py_in_names(name, methods);
    const char *module = c_module(fn);
    return module && strcmp(module, "builtins") == 0 && ing_py_in_names(name, builtins);
}

bool ing_py_is_live_builtin(PyObject *fn) {
    if (fn == (PyObject *)&PyType_Type) return true;
    if (!PyCFunction_CheckExact(fn)) return false;
    const char *module = c_module(fn), *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    return module && strcmp(module, "builtins") == 0 &&
           ing_py_in_names(name, live_builtins);
}

/* numpy.float32 and its kin: static types of NumPy's own. */
static bool numpy_scalar_type(PyObject *fn) {
    return PyType_Check(fn) &&
           strncmp(((PyTypeObject *)fn)->tp_name, "numpy.", 6) == 0 &&
           !(((PyTypeObject *)fn)->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
           PyType_IsSubtype((PyTypeObject *)fn, &PyBaseObject_Type);
}

/* A function of NumPy's own that works on single numbers; numpy.frompyfunc() makes others,
 * which NumPy does not hold under their names. 1, 0 or -1 = raised. */
static int numpy_ufunc(PyObject *fn) {
    if (strcmp(Py_TYPE(fn)->tp_name, "numpy.ufunc") != 0 ||
        (Py_TYPE(fn)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return 0;
    PyObject *numpy, *name = NULL, *held = NULL;
    int rc = ing_py_loaded("numpy", &numpy);
    if (rc == 1) rc = ing_py_attr_maybe(fn, "__name__", &name);
    if (rc == 1)
        rc = PyUnicode_Check(name) ? PyObject_GetOptionalAttr(numpy, name, &held) : 0;
    if (rc == 1) rc = held == fn;
    Py_XDECREF(numpy);
    Py_XDECREF(name);
    Py_XDECREF(held);
    return rc;
}

/* Classes whose call converts a number, makes text or a container of what it is given. */
static bool pure_type(PyObject *fn) {
    return fn == (PyObject *)&PyLong_Type || fn == (PyObject *)&PyFloat_Type ||
           fn == (PyObject *)&PyBool_Type || fn == (PyObject *)&PyUnicode_Type ||
           fn == (PyObject *)&PyComplex_Type || fn == (PyObject *)&PyBytes_Type ||
           fn == (PyObject *)&PyDict_Type || fn == (PyObject *)&PySet_Type ||
           fn == (PyObject *)&PyFrozenSet_Type;
}

/* A method of a number, of text, or of an immutable container, by name. */
static bool pure_method(PyObject *fn) {
    PyObject *self = PyCFunction_GET_SELF(fn);
    if (!self || ((PyCFunctionObject *)fn)->m_ml->ml_name[0] == '_') return false;
    if (PyType_Check(self))
        return self == (PyObject *)&PyLong_Type || self == (PyObject *)&PyFloat_Type ||
               self == (PyObject *)&PyBytes_Type;
    return PyUnicode_CheckExact(self) || PyBytes_CheckExact(self) ||
           PyLong_CheckExact(self) || PyBool_Check(self) || PyFloat_CheckExact(self) ||
           PyComplex_CheckExact(self) || PyTuple_CheckExact(self) ||
           PyFrozenSet_CheckExact(self) || PyRange_Check(self);
}

/* A method of a class written in Python: the function. Else itself. */
static PyObject *function_of(PyObject *fn) {
    return PyMethod_Check(fn) ? PyMethod_GET_FUNCTION(fn) : fn;
}

/* Python functions whose call is for the host: those that draw numbers, write a log or end the
 * process, and of the package those that make or change something. Run while compiling, they
 * would run once. */
bool ing_py_is_for_host(PyObject *fn) {
    static const char *const wholly[] = {"random",
                                         "secrets",
                                         "uuid",
                                         "ingot._init",
                                         "ingot._fields",
                                         "ingot._ndarrays",
                                         "ingot._profiler",
                                         "logging",
                                         "_sitebuiltins",
                                         "IPython.core.autocall",
                                         NULL};
    static const char *const makers[] = {"field", "ndarray", "tensor", NULL};
    PyObject *module = PyFunction_GET_MODULE(fn);
    if (!module || !PyUnicode_Check(module)) return false;
    if (find_in(module, wholly)) return true;
    return (PyUnicode_CompareWithASCIIString(module, "ingot._matrix") == 0 ||
            PyUnicode_CompareWithASCIIString(module, "ingot._tensor") == 0) &&
           find_in(((PyFunctionObject *)fn)->func_name, makers);
}

ing_py_callable ing_py_callable_kind(PyObject *fn) {
    if (!PyCallable_Check(fn)) return ING_PY_CALL_NEVER;
    if (ing_py_is_live_builtin(fn) || ing_py_makes_text(fn)) return ING_PY_CALL_LIVE;
    if (PyCFunction_CheckExact(fn) && pure_method(fn)) return ING_PY_CALL_PURE;
    if (PyCFunction_CheckExact(fn) && pure_c_function(fn)) return ING_PY_CALL_PURE;
    if (numpy_scalar_type(fn) || pure_type(fn)) return ING_PY_CALL_PURE;
    int ufunc = numpy_ufunc(fn);
    if (ufunc) return ufunc < 0 ? ING_PY_CALL_RAISED : ING_PY_CALL_PURE;
    if (PyFunction_Check(function_of(fn)))
        return ing_py_is_for_host(function_of(fn)) ? ING_PY_CALL_NEVER
                                                   : ING_PY_CALL_RECORDED;
    int live = ing_py_is_live_callable(fn);
    return live < 0 ? ING_PY_CALL_RAISED : live ? ING_PY_CALL_LIVE : ING_PY_CALL_NEVER;
}

PyObject *ing_py_pure_method_self(PyObject *fn) {
    return PyCFunction_CheckExact(fn) && pure_method(fn) ? PyCFunction_GET_SELF(fn)
                                                         : NULL;
}

/* What is called again at each launch: only what kind of thing it is. */
static int live_digest(PyObject *fn, ing_hasher *h) {
    int live = ing_py_is_live_callable(fn);
    if (live != 1) return live;
    PyTypeObject *type = PyType_Check(fn) ? (PyTypeObject *)fn : Py_TYPE(fn);
    ing_hasher_str(h, TAG_LIVE, type->tp_name);
    if (PyCFunction_CheckExact(fn))
        ing_hasher_str(h, TAG_LIVE, ((PyCFunctionObject *)fn)->m_ml->ml_name);
    return 1;
}

/* What a call depends on of the function itself: its name if it is a listed one, its text
 * and code if it is Python. */
int ing_py_callable_digest(ing_py_state *st, PyObject *fn, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    fn = function_of(fn);
    int ufunc = numpy_ufunc(fn);
    if (ufunc < 0) return -1;
    if (PyCFunction_CheckExact(fn) &&
        (pure_c_function(fn) || ing_py_is_live_builtin(fn))) {
        ing_hasher_str(&h, TAG_C, c_module(fn));
        ing_hasher_str(&h, TAG_C, ((PyCFunctionObject *)fn)->m_ml->ml_name);
    } else if (PyCFunction_CheckExact(fn) && pure_method(fn)) {
        PyObject *self = PyCFunction_GET_SELF(fn);
        ing_hasher_str(&h, TAG_METHOD, ((PyCFunctionObject *)fn)->m_ml->ml_name);
        ing_hasher_str(&h, TAG_METHOD,
                       PyType_Check(self) ? ((PyTypeObject *)self)->tp_name
                                          : Py_TYPE(self)->tp_name);
    } else if (numpy_scalar_type(fn) || pure_type(fn) ||
               fn == (PyObject *)&PyType_Type) {
        ing_hasher_str(&h, TAG_TYPE, ((PyTypeObject *)fn)->tp_name);
    } else if (ufunc) {
        PyObject *name = ing_py_attr(fn, "__name__");
        PyObject *text = name ? ing_py_to_utf8(name) : NULL;
        if (text) ing_hasher_str(&h, TAG_UFUNC, PyBytes_AS_STRING(text));
        Py_XDECREF(name);
        Py_XDECREF(text);
        if (!text) return -1;
    } else if (PyFunction_Check(fn)) {
        ing_hash128 code;
        int known = ing_py_code_digest(PyFunction_GET_CODE(fn), &code);
        if (known != 1) return known;
        ing_hasher_digest(&h, TAG_CODE, code);
        ing_py_def d;
        if (ing_py_def_init(st, &d, fn, NULL) < 0) return ing_py_took_any() ? 0 : -1;
        if (d.text) /* not of the package's own, which the revision answers for (R10) */
            ing_hasher_digest(&h, TAG_TEXT,
                              ing_py_source_digest(PyBytes_AS_STRING(d.text),
                                                   (size_t)PyBytes_GET_SIZE(d.text)));
        ing_py_def_fini(&d);
    } else {
        int live = live_digest(fn, &h);
        if (live != 1) return live;
    }
    *out = ing_hasher_done(&h);
    return 1;
}
