/* Declared types: what a dataclass says of its fields. A parameter annotated with a
 * dataclass hands its fields on with their types, so that a number among them is read at
 * each launch instead of being compiled in. Declared types are read by the gate like
 * everything else: the annotation of the parameter, then one FIELD_TYPE step per level. */
#include "py/kernel.h"
#include "py/tensor.h"

#include <string.h>

PyObject *ing_py_field_get(PyObject *cls, PyObject *name) {
    PyObject *fields =
        PyType_Check(cls) ? ing_py_attr(cls, "__dataclass_fields__") : NULL;
    PyObject *f =
        fields && PyDict_Check(fields) ? PyDict_GetItemWithError(fields, name) : NULL;
    Py_XINCREF(f);
    Py_XDECREF(fields);
    PyErr_Clear();
    return f;
}

bool ing_py_is_dataclass(PyObject *cls) {
    if (!PyType_Check(cls)) return false;
    PyObject *fields = ing_py_attr(cls, "__dataclass_fields__");
    bool yes = fields && PyDict_Check(fields);
    Py_XDECREF(fields);
    PyErr_Clear();
    return yes;
}

PyObject *ing_py_field_scope(PyObject *cls) {
    PyObject *name = ing_py_attr(cls, "__module__");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *scope =
        module && PyModule_Check(module) ? Py_NewRef(PyModule_GetDict(module)) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(module);
    return scope;
}

/* `from __future__ import annotations`: the type is text, meant in the class's module. A
 * plain name needs no compiler. */
static PyObject *evaluate(PyObject *cls, PyObject *text) {
    PyObject *scope = ing_py_field_scope(cls);
    PyObject *v = scope ? PyDict_GetItemWithError(scope, text) : NULL;
    const char *s = PyUnicode_AsUTF8(text);
    Py_XINCREF(v);
    if (!v && scope && s && !PyErr_Occurred())
        v = PyRun_String(s, Py_eval_input, scope, scope);
    Py_XDECREF(scope);
    return v;
}

/* By the name of its type first: asking what has no `__origin__` makes an exception. */
static bool is_union(PyObject *type) {
    const char *kind = Py_TYPE(type)->tp_name;
    if (strcmp(kind, "types.UnionType") == 0 || strcmp(kind, "typing.Union") == 0)
        return true;
    if (strcmp(kind, "_UnionGenericAlias") != 0) return false;
    PyObject *origin = ing_py_attr(type, "__origin__");
    PyObject *name = origin ? ing_py_attr(origin, "_name") : NULL;
    bool yes = name && PyUnicode_Check(name) &&
               PyUnicode_CompareWithASCIIString(name, "Union") == 0;
    PyErr_Clear();
    Py_XDECREF(origin);
    Py_XDECREF(name);
    return yes;
}

PyObject *ing_py_strip_optional(PyObject *type, bool *optional) {
    PyObject *none = (PyObject *)Py_TYPE(Py_None), *inner = NULL;
    PyObject *args = is_union(type) ? ing_py_attr(type, "__args__") : NULL;
    if (args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) == 2) {
        PyObject *a = PyTuple_GET_ITEM(args, 0), *b = PyTuple_GET_ITEM(args, 1);
        inner = b == none ? a : a == none ? b : NULL;
    }
    *optional = inner != NULL;
    Py_INCREF(inner ? inner : type);
    Py_XDECREF(args);
    PyErr_Clear();
    return inner ? inner : type;
}

PyObject *ing_py_field_type(PyObject *cls, PyObject *name) {
    PyObject *field = ing_py_field_get(cls, name);
    PyObject *type = field ? ing_py_attr(field, "type") : NULL;
    if (type && PyUnicode_Check(type)) Py_XSETREF(type, evaluate(cls, type));
    bool optional = false; /* a dataclass or None: its fields are those of the class */
    PyObject *inner = type ? ing_py_strip_optional(type, &optional) : NULL;
    if (optional && ing_py_is_dataclass(inner)) Py_SETREF(type, Py_NewRef(inner));
    Py_XDECREF(inner);
    Py_XDECREF(field);
    PyErr_Clear();
    return type;
}

/* An array that may be missing is asked for (`is None`); a number that may be missing is
 * what it is at the time. Takes and returns `type`. */
static PyObject *strip_field(ing_py_state *st, PyObject *type) {
    bool optional;
    ing_gate_param p = {0};
    PyObject *inner = ing_py_strip_optional(type, &optional);
    if (optional && ing_py_passing_of(st, inner, &p) == ING_OK)
        Py_SETREF(type, Py_NewRef(inner));
    Py_DECREF(inner);
    return type;
}

/* `Final[T]`: T, and the value is meant to be compiled in. Takes and returns `type`. */
static PyObject *strip_final(PyObject *type, bool *final) {
    PyObject *origin = ing_py_attr(type, "__origin__");
    PyObject *args = origin ? ing_py_attr(type, "__args__") : NULL;
    PyObject *name = args ? ing_py_attr(origin, "_name") : NULL;
    *final = name && PyUnicode_Check(name) && PyTuple_Check(args) &&
             PyTuple_GET_SIZE(args) == 1 &&
             PyUnicode_CompareWithASCIIString(name, "Final") == 0;
    if (*final) Py_SETREF(type, Py_NewRef(PyTuple_GET_ITEM(args, 0)));
    PyErr_Clear();
    Py_XDECREF(origin);
    Py_XDECREF(args);
    Py_XDECREF(name);
    return type;
}

/* field(metadata={"add_value_to_cache_key": True}), the reference's way to say it. */
static bool wants_value(PyObject *cls, PyObject *name) {
    PyObject *field = ing_py_field_get(cls, name);
    PyObject *metadata = field ? ing_py_attr(field, "metadata") : NULL;
    PyObject *v =
        metadata ? PyMapping_GetItemString(metadata, "add_value_to_cache_key") : NULL;
    bool yes = v && PyObject_IsTrue(v) == 1;
    PyErr_Clear();
    Py_XDECREF(field);
    Py_XDECREF(metadata);
    Py_XDECREF(v);
    return yes;
}

static bool is_data_oriented(PyObject *cls) {
    PyObject *mark = PyType_Check(cls) ? ing_py_attr(cls, "_data_oriented") : NULL;
    bool yes = mark == Py_True;
    PyErr_Clear();
    Py_XDECREF(mark);
    return yes;
}

void ing_py_field_meaning(ing_py_state *st, PyObject *cls, PyObject *name,
                          ing_py_field *out) {
    *out = (ing_py_field){0};
    bool final = false;
    PyObject *type = ing_py_field_type(cls, name);
    if (type) type = strip_field(st, strip_final(type, &final));
    if (!type) return;
    ing_dtype dtype = ing_py_dtype_from(st, type);
    if (dtype != ING_VOID) {
        bool value = final || wants_value(cls, name);
        out->kind = value ? ING_FIELD_VALUE : ING_FIELD_NUMBER;
        out->dtype = dtype;
    } else if (ing_py_is_tensor_type(st, type)) {
        bool value = final || wants_value(cls, name);
        out->kind = value ? ING_FIELD_VALUE : ING_FIELD_TENSOR;
        out->dtype = (ing_dtype)((ing_py_tensor_type *)type)->id;
        out->array.tensor = ((ing_py_tensor_type *)type)->shape;
    } else if (ing_py_is_dataclass(type)) {
        out->kind = ING_FIELD_STRUCT;
    } else if (is_data_oriented(type)) {
        out->kind = ING_FIELD_REFUSED;
    } else if (ing_py_passing_of(st, type, &out->array) == ING_OK &&
               out->array.passing == ING_PASS_ARRAY) {
        out->kind = ING_FIELD_ARRAY;
    }
    Py_DECREF(type);
}

ing_hash128 ing_py_field_digest(const ing_py_field *f) {
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

bool ing_py_members_at_launch(PyObject *obj) {
    /* Nobody has marked a type that is no class statement's: Python's own, or ours. */
    unsigned long class_like = Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_BASETYPE;
    if (!obj || (PyType_GetFlags(Py_TYPE(obj)) & class_like) != class_like)
        return false;
    PyObject *flag =
        ing_py_attr((PyObject *)Py_TYPE(obj), "_ingot_template_primitives");
    bool yes = flag == Py_False;
    Py_XDECREF(flag);
    PyErr_Clear();
    return yes;
}

void ing_py_as_number(const ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    ing_dtype t = obj ? ing_py_number_dtype(st, obj) : ING_VOID;
    if (t != ING_VOID)
        *f = (ing_gate_fact){.kind = ING_GATE_SCALAR, .dtype = t, .s = ""};
}
