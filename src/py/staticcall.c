/* Calls of Python functions while compiling (R2). Two kinds may be called: functions of a
 * listed pure set (math, operator, builtins, NumPy's scalar types and ufuncs), whose result follows
 * from the arguments, and Python functions and methods. A call is part of the path of its
 * result, and replayed from disk by calling again. At launches it is guarded by its source
 * and by its arguments where these and its result are immutable (whole.c), else by calling.
 *
 * A call in a path: the function, one CALL_... step per argument, then CALL. Arguments
 * that have a path of their own are named by it. */
#include "py/kernel.h"

#include <string.h>

enum { TAG_C = 1, TAG_TEXT, TAG_CODE, TAG_TYPE, TAG_UFUNC };

static bool in_list(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(name, *list) == 0) return true;
    return false;
}

static const char *const pure_modules[] = {"math", "cmath", "_operator", "operator",
                                           NULL};
static const char *const pure_builtins[] = {"divmod", "round", "sorted", "sum", "abs",
                                            "min",    "max",   "pow",    "len", "chr",
                                            "ord",    "repr",  NULL};

static const char *const live_builtins[] = {"isinstance", NULL};

/* Module name of a builtin function as UTF-8; NULL when it has none. */
static const char *c_module(PyObject *fn) {
    PyObject *m = ((PyCFunctionObject *)fn)->m_module;
    const char *s = m && PyUnicode_Check(m) ? PyUnicode_AsUTF8(m) : NULL;
    if (!s) PyErr_Clear();
    return s;
}

static bool pure_c_function(PyObject *fn) {
    const char *module = c_module(fn), *name = ((PyCFunctionObject *)fn)->m_ml->ml_name;
    if (!module) return false;
    return in_list(module, pure_modules) ||
           (strcmp(module, "builtins") == 0 && in_list(name, pure_builtins));
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
 * which NumPy does not hold under their names. */
static bool numpy_ufunc(PyObject *fn) {
    if (strcmp(Py_TYPE(fn)->tp_name, "numpy.ufunc") != 0 ||
        (Py_TYPE(fn)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return false;
    PyObject *key = PyUnicode_FromString("numpy");
    PyObject *numpy = key ? PyImport_GetModule(key) : NULL;
    PyObject *name = numpy ? ing_py_attr(fn, "__name__") : NULL;
    PyObject *held =
        name && PyUnicode_Check(name) ? PyObject_GetAttr(numpy, name) : NULL;
    bool yes = held == fn;
    PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(numpy);
    Py_XDECREF(name);
    Py_XDECREF(held);
    return yes;
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

ing_py_callable ing_py_callable_kind(PyObject *fn) {
    if (PyCFunction_CheckExact(fn) && live_c_function(fn)) return ING_PY_CALL_LIVE;
    if (PyCFunction_CheckExact(fn) && pure_c_function(fn)) return ING_PY_CALL_PURE;
    if (numpy_scalar_type(fn) || pure_type(fn) || numpy_ufunc(fn))
        return ING_PY_CALL_PURE;
    if (fn == (PyObject *)&PyType_Type) return ING_PY_CALL_LIVE;
    return PyFunction_Check(function_of(fn)) ? ING_PY_CALL_RECORDED : ING_PY_CALL_NEVER;
}

/* What a call depends on of the function itself: its name if it is a listed one, its text
 * and code if it is Python. */
bool ing_py_callable_digest(ing_py_state *st, PyObject *fn, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    fn = function_of(fn);
    if (PyCFunction_CheckExact(fn) && (pure_c_function(fn) || live_c_function(fn))) {
        ing_hasher_str(&h, TAG_C, c_module(fn));
        ing_hasher_str(&h, TAG_C, ((PyCFunctionObject *)fn)->m_ml->ml_name);
    } else if (numpy_scalar_type(fn) || pure_type(fn) ||
               fn == (PyObject *)&PyType_Type) {
        ing_hasher_str(&h, TAG_TYPE, ((PyTypeObject *)fn)->tp_name);
    } else if (numpy_ufunc(fn)) {
        PyObject *name = ing_py_attr(fn, "__name__");
        const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
        if (text) ing_hasher_str(&h, TAG_UFUNC, text);
        Py_XDECREF(name);
        if (!text) PyErr_Clear();
        if (!text) return false;
    } else if (PyFunction_Check(fn)) {
        ing_hash128 code;
        if (!ing_py_code_digest(PyFunction_GET_CODE(fn), &code)) return false;
        ing_hasher_digest(&h, TAG_CODE, code);
        ing_py_def d;
        if (ing_py_def_init(st, &d, fn, NULL) < 0) {
            PyErr_Clear();
            return false;
        }
        if (d.text) /* not of the package's own, which the revision answers for (R10) */
            ing_hasher_digest(&h, TAG_TEXT,
                              ing_py_source_digest(PyBytes_AS_STRING(d.text),
                                                   (size_t)PyBytes_GET_SIZE(d.text)));
        ing_py_def_fini(&d);
    } else {
        return false;
    }
    *out = ing_hasher_done(&h);
    return true;
}

/* The step that names one argument: by path, or by value. False: it has neither. */
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
    Py_ssize_t size = 0;
    const char *s =
        PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (!s) PyErr_Clear();
    if (!s || strlen(s) != (size_t)size) return 0; /* names end with a null */
    return ing_path_add(p, parent, ING_STEP_CALL_STR, s, 0);
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
    case ING_STEP_CALL_STR:
        return PyUnicode_FromString(ing_atoms_text(&p->atoms, n->atom));
    default: PyErr_SetString(PyExc_SystemError, "no argument of a call"); return NULL;
    }
}
