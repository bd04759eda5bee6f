/* Calls of Python functions while compiling (R2). Two kinds may be called: functions of a
 * listed pure set (math, operator, builtins, NumPy's scalar types and ufuncs), whose result follows
 * from the arguments, and Python functions and methods. A call is part of the path of its
 * result, and replayed from disk by calling again. At launches it is guarded by its source
 * and by its arguments where these and its result are immutable (whole.c), else by calling.
 *
 * A call in a path: the function, one CALL_... step per argument, then CALL. Arguments
 * that have a path of their own are named by it. */
#include "py/call/kernel.h"

#include <string.h>

enum { TAG_C = 1, TAG_TEXT, TAG_CODE, TAG_TYPE, TAG_UFUNC };

static bool in_list(const char *name, const char *const *list) {
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
static const char *const pure_builtins[] = {"divmod", "round", "sorted", "sum", "abs",
                                            "min",    "max",   "pow",    "len", "chr",
                                            "ord",    "repr",  NULL};

static const char *const live_builtins[] = {"isinstance", NULL};

/* Module name of a builtin function; NULL when it is none of those listed. */
static const char *c_module(PyObject *fn) {
    PyObject *m = ((PyCFunctionObject *)fn)->m_module;
    return m && PyUnicode_Check(m) ? find_in(m, modules) : NULL;
}

static bool pure_c_function(PyObject *fn) {
    const char *module = c_module(fn), *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    return module && (strcmp(module, "builtins") != 0 || in_list(name, pure_builtins));
}

static bool live_c_function(PyObject *fn) {
    const char *module = c_module(fn), *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    return module && strcmp(module, "builtins") == 0 && in_list(name, live_builtins);
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

/* Classes whose call converts a number or makes text. */
static bool pure_type(PyObject *fn) {
    return fn == (PyObject *)&PyLong_Type || fn == (PyObject *)&PyFloat_Type ||
           fn == (PyObject *)&PyBool_Type || fn == (PyObject *)&PyUnicode_Type;
}

/* A method of a class written in Python: the function. Else itself. */
static PyObject *function_of(PyObject *fn) {
    return PyMethod_Check(fn) ? PyMethod_GET_FUNCTION(fn) : fn;
}

/* Python functions whose call is for the host: those that draw numbers, and of the package
 * those that make or change something. Run while compiling, they would run once. */
static bool for_the_host(PyObject *fn) {
    static const char *const wholly[] = {
        "random",          "secrets",         "uuid", "ingot._init", "ingot._fields",
        "ingot._ndarrays", "ingot._profiler", NULL};
    static const char *const makers[] = {"field", "ndarray", "tensor", NULL};
    PyObject *module = PyFunction_GET_MODULE(fn);
    if (!module || !PyUnicode_Check(module)) return false;
    if (find_in(module, wholly)) return true;
    return (PyUnicode_CompareWithASCIIString(module, "ingot._matrix") == 0 ||
            PyUnicode_CompareWithASCIIString(module, "ingot._tensor") == 0) &&
           find_in(((PyFunctionObject *)fn)->func_name, makers);
}

ing_py_callable ing_py_callable_kind(PyObject *fn) {
    if (PyCFunction_CheckExact(fn) && live_c_function(fn)) return ING_PY_CALL_LIVE;
    if (PyCFunction_CheckExact(fn) && pure_c_function(fn)) return ING_PY_CALL_PURE;
    if (numpy_scalar_type(fn) || pure_type(fn)) return ING_PY_CALL_PURE;
    if (fn == (PyObject *)&PyType_Type) return ING_PY_CALL_LIVE;
    int ufunc = numpy_ufunc(fn);
    if (ufunc) return ufunc < 0 ? ING_PY_CALL_RAISED : ING_PY_CALL_PURE;
    if (!PyFunction_Check(function_of(fn)) || for_the_host(function_of(fn)))
        return ING_PY_CALL_NEVER;
    return ING_PY_CALL_RECORDED;
}

/* What a call depends on of the function itself: its name if it is a listed one, its text
 * and code if it is Python. */
int ing_py_callable_digest(ing_py_state *st, PyObject *fn, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    fn = function_of(fn);
    int ufunc = numpy_ufunc(fn);
    if (ufunc < 0) return -1;
    if (PyCFunction_CheckExact(fn) && (pure_c_function(fn) || live_c_function(fn))) {
        ing_hasher_str(&h, TAG_C, c_module(fn));
        ing_hasher_str(&h, TAG_C, ((PyCFunctionObject *)fn)->m_ml->ml_name);
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
        return 0;
    }
    *out = ing_hasher_done(&h);
    return 1;
}

/* The step that names one argument: by path, or by value. 0: it has neither, or raised. */
ing_path ing_py_call_arg_step(ing_paths *p, ing_path parent, ing_path arg,
                              PyObject *value) {
    if (arg) return ing_path_add(p, parent, ING_STEP_CALL_PATH, NULL, (int64_t)arg);
    if (value == Py_None) return ing_path_add(p, parent, ING_STEP_CALL_NONE, NULL, 0);
    if (PyBool_Check(value))
        return ing_path_add(p, parent, ING_STEP_CALL_BOOL, NULL, value == Py_True);
    if (PyLong_CheckExact(value)) {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow ? 0 : ing_path_add(p, parent, ING_STEP_CALL_INT, NULL, v);
    }
    if (PyFloat_CheckExact(value)) {
        double d = PyFloat_AS_DOUBLE(value);
        int64_t bits;
        memcpy(&bits, &d, sizeof bits);
        return ing_path_add(p, parent, ING_STEP_CALL_FLOAT, NULL, bits);
    }
    PyObject *text = PyUnicode_CheckExact(value) ? ing_py_to_utf8(value) : NULL;
    ing_path path = 0;
    if (text && strlen(PyBytes_AS_STRING(text)) == (size_t)PyBytes_GET_SIZE(text))
        path = ing_path_add(p, parent, ING_STEP_CALL_STR, PyBytes_AS_STRING(text), 0);
    Py_XDECREF(text); /* names end with a null: one that holds any is none */
    return path;
}

/* The argument that a step names; new reference, NULL = raised. Paths are resolved by the
 * caller. */
PyObject *ing_py_call_arg_value(const ing_paths *p, const ing_path_node *n) {
    double d;
    switch ((ing_step)n->step) {
    case ING_STEP_CALL_NONE: return Py_NewRef(Py_None);
    case ING_STEP_CALL_BOOL: return PyBool_FromLong(n->i != 0);
    case ING_STEP_CALL_INT: return PyLong_FromLongLong(n->i);
    case ING_STEP_CALL_FLOAT: memcpy(&d, &n->i, sizeof d); return PyFloat_FromDouble(d);
    case ING_STEP_CALL_STR: {
        const char *text = ing_atoms_text(&p->atoms, n->atom);
        return ing_py_from_utf8(text, strlen(text));
    }
    default: PyErr_SetString(PyExc_SystemError, "no argument of a call"); return NULL;
    }
}
