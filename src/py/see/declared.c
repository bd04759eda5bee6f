/* Declared types: what a dataclass says of its fields. A parameter annotated with a
 * dataclass hands its fields on with their types, so that a number among them is read at
 * each launch instead of being compiled in. Declared types are read by the gate like
 * everything else: the annotation of the parameter, then one FIELD_TYPE step per level. */
#include "py/call/kernel.h"
#include "py/array/tensor.h"

#include <string.h>

PyObject *ing_py_fields_of(const ing_py_state *st, PyObject *cls) {
    if (!PyType_Check(cls)) return NULL;
    PyObject *fields =
        ing_py_class_has(st, (PyTypeObject *)cls, ING_PY_NAME___dataclass_fields__);
    return fields && PyDict_Check(fields) ? fields : NULL;
}

bool ing_py_is_dataclass(const ing_py_state *st, PyObject *cls) {
    return ing_py_fields_of(st, cls) != NULL;
}

int ing_py_field_get(const ing_py_state *st, PyObject *cls, PyObject *name,
                     PyObject **out) {
    PyObject *fields = Py_XNewRef(ing_py_fields_of(st, cls));
    *out = NULL;
    int rc = fields ? PyDict_GetItemRef(fields, name, out) : 0;
    Py_XDECREF(fields);
    return rc;
}

int ing_py_field_scope(PyObject *cls, PyObject **out) {
    PyObject *name, *module = NULL;
    *out = NULL;
    int rc = ing_py_attr_maybe(cls, "__module__", &name);
    if (rc == 1) module = PyImport_GetModule(name);
    if (rc == 1 && !module)
        rc = PyErr_Occurred() && !ing_py_took(PyExc_TypeError) ? -1 : 0;
    if (module && PyModule_Check(module)) *out = Py_NewRef(PyModule_GetDict(module));
    Py_XDECREF(name);
    Py_XDECREF(module);
    return rc < 0 ? -1 : *out != NULL;
}

/* `from __future__ import annotations`: the type is text, meant in the class's module. A
 * plain name needs no compiler. What cannot be evaluated declares nothing. */
static int evaluate(PyObject *cls, PyObject *text, PyObject **out) {
    PyObject *scope, *code = NULL;
    *out = NULL;
    int rc = ing_py_field_scope(cls, &scope);
    if (rc == 1) rc = PyDict_GetItemRef(scope, text, out);
    if (rc == 0 && scope) {
        code = ing_py_to_utf8(text);
        if (code)
            *out = PyRun_String(PyBytes_AS_STRING(code), Py_eval_input, scope, scope);
        if (!*out && !PyErr_Occurred()) PyErr_NoMemory(); /* which CPython may forget */
        rc = *out ? 1 : ing_py_took_any() ? 0 : -1;
    }
    Py_XDECREF(code);
    Py_XDECREF(scope);
    return rc;
}

/* Is the name of `typing` that `origin` has this one? 1, 0 or -1. */
static int is_special(PyObject *origin, const char *wanted) {
    PyObject *name;
    int rc = ing_py_attr_maybe(origin, "_name", &name);
    if (rc == 1)
        rc = PyUnicode_Check(name) &&
             PyUnicode_CompareWithASCIIString(name, wanted) == 0;
    Py_XDECREF(name);
    return rc;
}

/* By the name of its type first: most annotations are none of these. 1, 0 or -1. */
static int is_union(PyObject *type) {
    const char *kind = Py_TYPE(type)->tp_name;
    if (strcmp(kind, "types.UnionType") == 0 || strcmp(kind, "typing.Union") == 0)
        return 1;
    if (strcmp(kind, "_UnionGenericAlias") != 0) return 0;
    PyObject *origin;
    int rc = ing_py_attr_maybe(type, "__origin__", &origin);
    if (rc == 1) rc = is_special(origin, "Union");
    Py_XDECREF(origin);
    return rc;
}

PyObject *ing_py_strip_optional(PyObject *type, bool *optional) {
    PyObject *none = (PyObject *)Py_TYPE(Py_None), *inner = NULL, *args = NULL;
    *optional = false;
    int rc = is_union(type);
    if (rc == 1) rc = ing_py_attr_maybe(type, "__args__", &args);
    if (rc < 0) return NULL;
    if (args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 2) {
        PyObject *a = PyTuple_GET_ITEM(args, 0), *b = PyTuple_GET_ITEM(args, 1);
        inner = b == none ? a : a == none ? b : NULL;
    }
    *optional = inner != NULL;
    inner = Py_NewRef(inner ? inner : type);
    Py_XDECREF(args);
    return inner;
}

/* Whatever an exception of its own says, a type that cannot be read declares nothing. */
int ing_py_field_type(const ing_py_state *st, PyObject *cls, PyObject *name,
                      PyObject **out) {
    PyObject *field, *type = NULL, *inner = NULL;
    *out = NULL;
    int rc = ing_py_field_get(st, cls, name, &field);
    if (rc == 1) rc = ing_py_attr_of_maybe(st, field, ING_PY_NAME_type, &type);
    if (rc == 1 && PyUnicode_Check(type)) {
        PyObject *text = type;
        rc = evaluate(cls, text, &type);
        Py_DECREF(text);
    }
    if (rc == 1) {
        bool optional; /* a dataclass or None: its fields are those of the class */
        inner = ing_py_strip_optional(type, &optional);
        if (!inner) rc = -1;
        if (inner && optional && ing_py_is_dataclass(st, inner))
            Py_SETREF(type, Py_NewRef(inner));
    }
    if (rc < 0) Py_CLEAR(type);
    Py_XDECREF(inner);
    Py_XDECREF(field);
    *out = type;
    return rc;
}

/* An array that may be missing is asked for (`is None`); a number that may be missing is
 * what it is at the time. Takes and returns `type`; NULL = raised. */
static PyObject *strip_field(ing_py_state *st, PyObject *type) {
    bool optional;
    ing_gate_param p = {0};
    PyObject *inner = type ? ing_py_strip_optional(type, &optional) : NULL;
    ing_status s = inner && optional ? ing_py_passing_of(st, inner, &p) : ING_DECLINED;
    if (s == ING_OK) Py_SETREF(type, Py_NewRef(inner));
    if (!inner || s == ING_PYTHON) Py_CLEAR(type);
    Py_XDECREF(inner);
    return type;
}

/* `Final[T]`: T, and the value is meant to be compiled in. Takes and returns `type`; NULL =
 * raised. */
static PyObject *strip_final(PyObject *type, bool *final) {
    PyObject *origin, *args = NULL;
    *final = false;
    int rc = ing_py_attr_maybe(type, "__origin__", &origin);
    if (rc == 1) rc = is_special(origin, "Final");
    if (rc == 1) rc = ing_py_attr_maybe(type, "__args__", &args);
    *final = rc == 1 && PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 1;
    if (*final) Py_SETREF(type, Py_NewRef(PyTuple_GET_ITEM(args, 0)));
    if (rc < 0) Py_CLEAR(type);
    Py_XDECREF(origin);
    Py_XDECREF(args);
    return type;
}

/* field(metadata={"add_value_to_cache_key": True}), the reference's way to say it. 1, 0, -1. */
static int wants_value(const ing_py_state *st, PyObject *cls, PyObject *name) {
    PyObject *field, *metadata = NULL, *v = NULL;
    int rc = ing_py_field_get(st, cls, name, &field);
    if (rc == 1) rc = ing_py_attr_maybe(field, "metadata", &metadata);
    if (rc == 1)
        rc = PyMapping_GetOptionalItemString(metadata, "add_value_to_cache_key", &v);
    if (rc == 1) rc = PyObject_IsTrue(v);
    Py_XDECREF(field);
    Py_XDECREF(metadata);
    Py_XDECREF(v);
    return rc;
}

static bool is_data_oriented(const ing_py_state *st, PyObject *cls) {
    return PyType_Check(cls) && ing_py_class_has(st, (PyTypeObject *)cls,
                                                 ING_PY_NAME__data_oriented) == Py_True;
}

/* Of a type that is known; -1 = raised. */
static int meaning_of(ing_py_state *st, PyObject *cls, PyObject *name, PyObject *type,
                      bool final, ing_py_declared *out) {
    ing_dtype dtype = ing_py_dtype_from(st, type);
    bool tensor = ing_py_is_tensor_type(st, type);
    if (dtype != ING_VOID || tensor) {
        int value = final ? 1 : wants_value(st, cls, name);
        if (value < 0) return -1;
        out->kind = value    ? ING_FIELD_VALUE
                    : tensor ? ING_FIELD_TENSOR
                             : ING_FIELD_NUMBER;
        out->dtype = tensor ? (ing_dtype)((ing_py_tensor_type *)type)->id : dtype;
        if (tensor) out->array.tensor = ((ing_py_tensor_type *)type)->shape;
    } else if (ing_py_is_dataclass(st, type)) {
        out->kind = ING_FIELD_STRUCT;
    } else if (is_data_oriented(st, type)) {
        out->kind = ING_FIELD_REFUSED;
    } else {
        ing_status s = ing_py_passing_of(st, type, &out->array);
        if (s == ING_PYTHON) return -1;
        if (s == ING_OK && out->array.passing == ING_PASS_ARRAY)
            out->kind = ING_FIELD_ARRAY;
    }
    return 0;
}

int ing_py_field_meaning(ing_py_state *st, PyObject *cls, PyObject *name,
                         ing_py_declared *out) {
    *out = (ing_py_declared){0};
    bool final = false;
    PyObject *type;
    int rc = ing_py_field_type(st, cls, name, &type);
    if (rc != 1) return rc;
    type = strip_final(type, &final);
    if (type) type = strip_field(st, type);
    rc = type ? meaning_of(st, cls, name, type, final, out) : -1;
    Py_XDECREF(type);
    return rc;
}

ing_hash128 ing_py_field_digest(const ing_py_declared *f) {
    ing_hash128 array = ing_py_param_digest(&f->array);
    uint64_t key[4] = {f->kind, f->dtype, array.lo, array.hi};
    return ing_hash(key, sizeof key);
}

ing_dtype ing_py_number_dtype(const ing_py_state *st, PyObject *value) {
    if (PyBool_Check(value)) return ING_U1;
    if (PyLong_CheckExact(value)) return (ing_dtype)st->settings.at[ING_SET_default_ip];
    if (PyFloat_CheckExact(value))
        return (ing_dtype)st->settings.at[ING_SET_default_fp];
    return ING_VOID;
}

bool ing_py_members_at_launch(const ing_py_state *st, PyObject *obj) {
    /* Nobody has marked a type that is no class statement's: Python's own, or ours. */
    unsigned long class_like = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_BASETYPE;
    return obj && (PyType_GetFlags(Py_TYPE(obj)) & class_like) == class_like &&
           ing_py_class_has(st, Py_TYPE(obj), ING_PY_NAME__ingot_template_primitives) ==
               Py_False;
}

void ing_py_as_number(const ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    ing_dtype t = obj ? ing_py_number_dtype(st, obj) : ING_VOID;
    if (t != ING_VOID)
        *f = (ing_gate_fact){.kind = ING_GATE_SCALAR, .dtype = t, .s = ""};
}
