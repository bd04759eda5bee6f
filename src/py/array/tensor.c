/* Host vectors and matrices as kernels see them: the base classes of `ingot.Matrix` and of
 * the types that `qd.types.vector` and `qd.types.matrix` make. They hold what seeing and
 * binding read without running Python; arithmetic is in ingot/_matrix.py. Must never call
 * back into the subclasses. */
#include "py/array/tensor.h"
#include "front/front.h"
#include "py/array/foreign.h"

#include <stddef.h>
#include <structmember.h>

enum { MAX_ELEMENTS = 1 << 16 };

/* ---- types ------------------------------------------------------------------------------ */

static void type_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((ing_py_tensor_type *)self)->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

static int type_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((ing_py_tensor_type *)self)->dtype);
    return 0;
}

static PyObject *extent(uint32_t n) {
    if (n == 0) Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(n);
}

static PyObject *type_n(PyObject *self, void *unused) {
    (void)unused;
    return extent(((ing_py_tensor_type *)self)->shape.shape[0]);
}

static PyObject *type_m(PyObject *self, void *unused) {
    (void)unused;
    const ing_gate_tensor *s = &((ing_py_tensor_type *)self)->shape;
    return s->rank == 2 ? extent(s->shape[1]) : PyLong_FromLong(1);
}

static PyObject *type_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(((ing_py_tensor_type *)self)->shape.rank);
}

static PyObject *type_dtype(PyObject *self, void *unused) {
    (void)unused;
    PyObject *t = ((ing_py_tensor_type *)self)->dtype;
    return Py_NewRef(t ? t : Py_None);
}

static Py_hash_t type_hash(PyObject *self) {
    const ing_py_tensor_type *t = (ing_py_tensor_type *)self;
    uint64_t key[3] = {t->shape.rank, t->shape.shape[0], t->shape.shape[1]};
    Py_hash_t h = (Py_hash_t)ing_hash(key, sizeof key).lo;
    return h == -1 ? -2 : h;
}

static PyObject *type_compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    const ing_py_tensor_type *x = (ing_py_tensor_type *)a, *y = (ing_py_tensor_type *)b;
    bool same = x->id == y->id && x->shape.rank == y->shape.rank &&
                x->shape.shape[0] == y->shape.shape[0] &&
                x->shape.shape[1] == y->shape.shape[1];
    return PyBool_FromLong(same == (op == Py_EQ));
}

static const PyGetSetDef type_getset[] = {
    {"n", type_n, NULL, "How many rows, or elements of a vector; None = any.", NULL},
    {"m", type_m, NULL, "How many columns; None = any.", NULL},
    {"ndim", type_ndim, NULL, "1 for vectors, 2 for matrices.", NULL},
    {"dtype", type_dtype, NULL, "The type of the elements; None = any.", NULL},
    {0},
};

static const PyType_Slot type_slots[] = {
    {Py_tp_doc, "A vector or matrix type."},
    {Py_tp_dealloc, type_dealloc},
    {Py_tp_traverse, type_traverse},
    {Py_tp_hash, type_hash},
    {Py_tp_richcompare, type_compare},
    {Py_tp_getset, (void *)type_getset},
    {0, NULL},
};

static const PyType_Spec type_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.TensorType", ing_py_tensor_type, Py_TPFLAGS_BASETYPE, type_slots);

/* ---- values ------------------------------------------------------------------------------- */

static int value_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((ing_py_tensor *)self)->entries);
    Py_VISIT(((ing_py_tensor *)self)->dtype);
    return 0;
}

static int value_clear(PyObject *self) {
    Py_CLEAR(((ing_py_tensor *)self)->entries);
    return 0;
}

static void value_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((ing_py_tensor *)self)->entries);
    Py_CLEAR(((ing_py_tensor *)self)->dtype);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *value_dtype(PyObject *self, void *unused) {
    (void)unused;
    PyObject *t = ((ing_py_tensor *)self)->dtype;
    return Py_NewRef(t ? t : Py_None);
}

static PyObject *value_n(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((ing_py_tensor *)self)->shape.shape[0]);
}

static PyObject *value_m(PyObject *self, void *unused) {
    (void)unused;
    const ing_gate_tensor *s = &((ing_py_tensor *)self)->shape;
    return PyLong_FromUnsignedLong(s->rank == 2 ? s->shape[1] : 1);
}

static PyObject *value_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(((ing_py_tensor *)self)->shape.rank);
}

static const PyGetSetDef value_getset[] = {
    {"n", value_n, NULL, "How many rows, or elements of a vector.", NULL},
    {"m", value_m, NULL, "How many columns.", NULL},
    {"ndim", value_ndim, NULL, "1 for vectors, 2 for matrices.", NULL},
    {"_dtype", value_dtype, NULL, "The type that was given, or None.", NULL},
    {0},
};

static const PyMemberDef value_members[] = {
    {"_entries", T_OBJECT, offsetof(ing_py_tensor, entries), READONLY,
     "The elements, row major."},
    {0},
};

static const PyType_Slot value_slots[] = {
    {Py_tp_doc, "A vector or matrix in Python."},
    ING_PY_COLLECTED(value),
    {Py_tp_getset, (void *)value_getset},
    {Py_tp_members, (void *)value_members},
    {0, NULL},
};

static const PyType_Spec value_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.TensorValue", ing_py_tensor, Py_TPFLAGS_BASETYPE, value_slots);

/* ---- types that follow the settings ------------------------------------------------------- */

static ing_dtype followed(const ing_settings *s, ing_dtype was) {
    ing_dtype ip = (ing_dtype)s->at[ING_SET_default_ip];
    switch (was) {
    case ING_I32:
    case ING_I64: return ip;
    case ING_U32:
    case ING_U64: return ip == ING_I64 ? ING_U64 : ING_U32;
    default: return (ing_dtype)s->at[ING_SET_default_fp];
    }
}

void ing_py_tensor_types_follow(ing_py_state *st) {
    Py_ssize_t n = st->following ? PyTuple_GET_SIZE(st->following) : 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        ing_py_tensor_type *t =
            (ing_py_tensor_type *)PyTuple_GET_ITEM(st->following, k);
        t->id = (uint8_t)followed(&st->settings, (ing_dtype)t->id);
        Py_XSETREF(t->dtype, Py_NewRef(ing_py_dtype_get(st, (ing_dtype)t->id)));
    }
}

/* These types, which qd.math makes once, are of default_fp or default_ip from now on. */
static PyObject *follow_defaults(PyObject *module, PyObject *types) {
    ing_py_state *st = ing_py_state_in(module);
    bool all = PyTuple_CheckExact(types);
    for (Py_ssize_t k = 0; all && k < PyTuple_GET_SIZE(types); k++)
        all = ing_py_is_tensor_type(st, PyTuple_GET_ITEM(types, k));
    if (!all || st->following) {
        PyErr_SetString(PyExc_TypeError, "a tuple of vector and matrix types, once");
        return NULL;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(types); k++)
        ((ing_py_tensor_type *)PyTuple_GET_ITEM(types, k))->follows = true;
    st->following = Py_NewRef(types);
    ing_py_tensor_types_follow(st);
    Py_RETURN_NONE;
}

/* ---- making --------------------------------------------------------------------------------- */

static int read_shape(uint32_t rank, uint64_t n, uint64_t m, ing_gate_tensor *out) {
    if (rank < 1 || rank > 2 || n > MAX_ELEMENTS || m > MAX_ELEMENTS ||
        n * (rank == 2 ? m : 1) > MAX_ELEMENTS) {
        PyErr_Format(PyExc_ValueError, "a vector or matrix has at most %d elements",
                     MAX_ELEMENTS);
        return -1;
    }
    *out = (ing_gate_tensor){(uint8_t)rank, {(uint32_t)n, rank == 2 ? (uint32_t)m : 0}};
    return 0;
}

/* The dtype as our object (new reference) and its id; None is no dtype. */
static int read_dtype(ing_py_state *st, PyObject *o, PyObject **out, ing_dtype *id) {
    *out = NULL;
    *id = ING_VOID;
    if (o == Py_None) return 0;
    *id = ing_py_dtype_from(st, o);
    if (*id == ING_VOID) {
        PyErr_Format(PyExc_TypeError, "%.100R is no dtype; use for example qd.f32", o);
        return -1;
    }
    *out = Py_NewRef(ing_py_dtype_get(st, *id));
    return 0;
}

static PyObject *make_type(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *cls;
    PyObject *dtype, *object;
    uint32_t rank;
    uint64_t n, m;
    ing_gate_tensor shape;
    ing_dtype id;
    if (!PyArg_ParseTuple(args, "O!O&O&O&O:_tensor_type", &PyType_Type, &cls,
                          ing_py_as_u32, &rank, ing_py_as_u64, &n, ing_py_as_u64, &m,
                          &dtype) ||
        read_shape(rank, n, m, &shape) < 0 || read_dtype(st, dtype, &object, &id) < 0)
        return NULL;
    ing_py_tensor_type *t = NULL;
    if (!PyType_IsSubtype(cls, st->tensor_type))
        PyErr_SetString(PyExc_TypeError, "not a class of tensor types");
    else
        t = (ing_py_tensor_type *)cls->tp_alloc(cls, 0);
    if (!t) {
        Py_XDECREF(object);
        return NULL;
    }
    t->shape = shape;
    t->dtype = object;
    t->id = (uint8_t)id;
    return (PyObject *)t;
}

static PyObject *make_value(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *cls;
    PyObject *dtype, *entries, *object;
    uint32_t rank;
    uint64_t n, m;
    ing_gate_tensor shape;
    ing_dtype id;
    if (!PyArg_ParseTuple(args, "O!O&O&O&OO!:_tensor_value", &PyType_Type, &cls,
                          ing_py_as_u32, &rank, ing_py_as_u64, &n, ing_py_as_u64, &m,
                          &dtype, &PyList_Type, &entries) ||
        read_shape(rank, n, m, &shape) < 0)
        return NULL;
    if (PyList_GET_SIZE(entries) != (Py_ssize_t)(n * (rank == 2 ? m : 1)) ||
        !PyType_IsSubtype(cls, st->tensor_value)) {
        PyErr_SetString(PyExc_ValueError, "the elements do not fit the shape");
        return NULL;
    }
    if (read_dtype(st, dtype, &object, &id) < 0) return NULL;
    ing_py_tensor *v = (ing_py_tensor *)cls->tp_alloc(cls, 0);
    if (!v) {
        Py_XDECREF(object);
        return NULL;
    }
    v->shape = shape;
    v->dtype = object;
    v->id = (uint8_t)id;
    v->entries = Py_NewRef(entries);
    return (PyObject *)v;
}

PyObject *ing_py_tensor_result(const ing_gate_tensor *shape, PyObject *dtype,
                               PyObject *entries) {
    PyObject *make = ing_py_import("ingot._matrix", "_result");
    PyObject *v = NULL;
    if (make)
        v = PyObject_CallFunction(make, "IIIOO", (unsigned)shape->rank, shape->shape[0],
                                  shape->shape[1], dtype, entries);
    Py_XDECREF(make);
    return v;
}

PyObject *ing_py_tensor_type_of(const ing_gate_tensor *shape, PyObject *dtype) {
    PyObject *make = ing_py_import("ingot._matrix", "_type_of");
    PyObject *v = NULL;
    if (make)
        v = PyObject_CallFunction(make, "IIIO", (unsigned)shape->rank, shape->shape[0],
                                  shape->shape[1], dtype);
    Py_XDECREF(make);
    return v;
}

/* ---- flat elements ---------------------------------------------------------------------------- */

/* Appends the numbers of one row; -1 = raised, 1 = the length differs. */
static int add_row(PyObject *row, uint32_t n, PyObject *list) {
    PyObject *items = PySequence_Fast(row, "not a sequence");
    if (!items) return ing_py_took_any() ? 1 : -1;
    int rc = PySequence_Fast_GET_SIZE(items) == (Py_ssize_t)n ? 0 : 1;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = i < PySequence_Fast_GET_SIZE(items)
                 ? PyList_Append(list, PySequence_Fast_GET_ITEM(items, i))
                 : 1;
    Py_DECREF(items);
    return rc;
}

ing_status ing_py_tensor_flatten(ing_py_state *st, PyObject *obj,
                                 const ing_gate_tensor *t, PyObject **out) {
    *out = NULL;
    if (ing_py_is_tensor(st, obj)) {
        const ing_py_tensor *v = (ing_py_tensor *)obj;
        if (v->shape.rank != t->rank || v->shape.shape[0] != t->shape[0] ||
            v->shape.shape[1] != t->shape[1] || !v->entries)
            return ING_DECLINED;
        *out = Py_NewRef(v->entries);
        return ING_OK;
    }
    if (ing_py_is_masked(st, obj)) {
        ing_py_fail(st, ING_PY_EXC_RUNTIME_TYPE, ING_PY_MASKED);
        return ING_PYTHON;
    }
    PyObject *list = PyList_New(0), *rows = NULL;
    if (!list) return ING_PYTHON;
    int rc = 0;
    if (t->rank == 1) {
        rc = add_row(obj, t->shape[0], list);
    } else {
        rows = PySequence_Fast(obj, "not a sequence");
        rc = rows ? PySequence_Fast_GET_SIZE(rows) != (Py_ssize_t)t->shape[0]
                  : (ing_py_took_any() ? 1 : -1);
        for (uint32_t i = 0; rc == 0 && i < t->shape[0]; i++) {
            if (i >= PySequence_Fast_GET_SIZE(rows)) { /* a row's __iter__ ran */
                rc = 1;
                break;
            }
            PyObject *row = Py_NewRef(PySequence_Fast_GET_ITEM(rows, i));
            rc = add_row(row, t->shape[1], list);
            Py_DECREF(row);
        }
    }
    Py_XDECREF(rows);
    if (rc) {
        Py_DECREF(list);
        return rc < 0 ? ING_PYTHON : ING_DECLINED;
    }
    *out = list;
    return ING_OK;
}

/* ---- in the module ------------------------------------------------------------------------------ */

static PyObject *vector_remedy(PyObject *module, PyObject *name) {
    (void)module;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    const char *remedy = text ? ing_front_vector_remedy(text) : NULL;
    if (PyErr_Occurred()) return NULL;
    return remedy ? PyUnicode_FromString(remedy) : Py_NewRef(Py_None);
}

static const PyMethodDef functions[] = {
    {"_vector_remedy", vector_remedy, METH_O,
     "What a method of vectors is called that has this name elsewhere, or None."},
    {"_tensor_type", make_type, METH_VARARGS, NULL},
    {"_tensor_value", make_value, METH_VARARGS, NULL},
    {"_follow_defaults", follow_defaults, METH_O, NULL},
    {0},
};

int ing_py_tensor_add(PyObject *module, ing_py_state *st) {
    st->tensor_type = ing_py_add_type(module, &type_spec);
    st->tensor_value = st->tensor_type ? ing_py_add_type(module, &value_spec) : NULL;
    if (!st->tensor_value) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

int ing_py_tensor_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->tensor_type);
    Py_VISIT(st->tensor_value);
    Py_VISIT(st->following);
    return 0;
}

void ing_py_tensor_clear(ing_py_state *st) {
    Py_CLEAR(st->tensor_type);
    Py_CLEAR(st->tensor_value);
    Py_CLEAR(st->following);
}
