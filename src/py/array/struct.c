/* Host structs as kernels see them: the base classes of `ingot.Struct` and of the types that
 * `qd.types.struct` and `qd.dataclass` make. They hold what seeing and binding read without
 * running Python; the rest is in ingot/_struct.py.
 *
 * An ndarray of structs (ingot/_ndarrays.py) has an ndarray for each member: what is here is its type.
 * A struct type never changes once it is made: guards compare it by identity and trust what
 * its subscript gives (the types of its members and its methods). Only with the settings, which begin
 * a new epoch, do vectors of qd.math in it change their dtypes. */
#include "py/array/struct.h"
#include "py/array/tensor.h"

#include <stddef.h>
#include <structmember.h>

/* Numbers in a struct: what a kernel's arguments can hold. Structs in structs: functions
 * that walk a layout recurse that deep. */
enum { MAX_NUMBERS = 1 << 14, MAX_DEPTH = 32 };

/* ---- types ------------------------------------------------------------------------------ */

static int type_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((ing_py_struct_type *)self)->types);
    Py_VISIT(((ing_py_struct_type *)self)->methods);
    return 0;
}

/* Cycles lead through methods; the layout needs the names and types to the end. */
static int type_clear(PyObject *self) {
    Py_CLEAR(((ing_py_struct_type *)self)->methods);
    return 0;
}

static void unlink_type(ing_py_struct_type *t) {
    if (!t->link) return;
    *t->link = t->newer;
    if (t->newer)
        t->newer->link = t->link;
    else
        t->st->following_end = t->link;
}

static void type_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    unlink_type((ing_py_struct_type *)self);
    type_clear(self);
    Py_CLEAR(((ing_py_struct_type *)self)->types);
    ing_free(((ing_py_struct_type *)self)->members);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *proxy_of(PyObject *dict) {
    if (dict) return PyDictProxy_New(dict);
    return PyDict_New();
}

static PyObject *type_members(PyObject *self, void *unused) {
    (void)unused;
    return proxy_of(((ing_py_struct_type *)self)->types);
}

static PyObject *type_methods(PyObject *self, void *unused) {
    (void)unused;
    return proxy_of(((ing_py_struct_type *)self)->methods);
}

/* The type of a member, or a method. */
static PyObject *type_item(PyObject *self, PyObject *key) {
    ing_py_struct_type *t = (ing_py_struct_type *)self;
    PyObject *v = PyDict_GetItemWithError(t->types, key);
    if (!v && !PyErr_Occurred() && t->methods)
        v = PyDict_GetItemWithError(t->methods, key);
    if (!v && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
    return Py_XNewRef(v);
}

static const PyGetSetDef type_getset[] = {
    {"members", type_members, NULL, "The types of the members, by name.", NULL},
    {"methods", type_methods, NULL, "The methods, by name.", NULL},
    {0},
};

static const PyType_Slot type_slots[] = {
    {Py_tp_doc, "A struct type."},
    ING_PY_COLLECTED(type),
    {Py_mp_subscript, type_item},
    {Py_tp_getset, (void *)type_getset},
    {0, NULL},
};

static const PyType_Spec type_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.StructType", ing_py_struct_type, Py_TPFLAGS_BASETYPE, type_slots);

/* ---- values ------------------------------------------------------------------------------- */

static int value_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((ing_py_struct *)self)->entries);
    Py_VISIT(((ing_py_struct *)self)->methods);
    Py_VISIT(((ing_py_struct *)self)->type);
    return 0;
}

static int value_clear(PyObject *self) {
    Py_CLEAR(((ing_py_struct *)self)->entries);
    Py_CLEAR(((ing_py_struct *)self)->methods);
    Py_CLEAR(((ing_py_struct *)self)->type);
    return 0;
}

static void value_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    value_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static const PyMemberDef value_members[] = {
    {"_entries", T_OBJECT, offsetof(ing_py_struct, entries), READONLY, "The members."},
    {"_methods", T_OBJECT, offsetof(ing_py_struct, methods), READONLY, "The methods."},
    {"_type", T_OBJECT, offsetof(ing_py_struct, type), READONLY, "Its type, or None."},
    {0},
};

static const PyType_Slot value_slots[] = {
    {Py_tp_doc, "A struct in Python."},
    ING_PY_COLLECTED(value),
    {Py_tp_members, (void *)value_members},
    {0, NULL},
};

static const PyType_Spec value_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.StructValue", ing_py_struct, Py_TPFLAGS_BASETYPE, value_slots);

/* ---- ndarrays of structs ------------------------------------------------------------------ */

static int structs_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((ing_py_structs *)self)->type);
    return 0;
}

/* The type stays to the end: what is seen of the array points into it. It leads back to no
 * array but through its methods, which it clears. */
static void structs_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((ing_py_structs *)self)->type);
    type->tp_free(self);
    Py_DECREF(type);
}

static const PyMemberDef structs_members[] = {
    {"element_type", T_OBJECT, offsetof(ing_py_structs, type), READONLY,
     "The type of the elements."},
    {"ndim", T_INT, offsetof(ing_py_structs, ndim), READONLY, "The number of axes."},
    {0},
};

static const PyType_Slot structs_slots[] = {
    {Py_tp_doc, "An ndarray of structs."},
    {Py_tp_dealloc, structs_dealloc},
    {Py_tp_traverse, structs_traverse},
    {Py_tp_members, (void *)structs_members},
    {0, NULL},
};

static const PyType_Spec structs_spec = ING_PY_COLLECTED_TYPE(
    "ingot._core.StructsBase", ing_py_structs, Py_TPFLAGS_BASETYPE, structs_slots);

/* _structs(cls, struct type, ndim) */
static PyObject *make_structs(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *cls;
    PyObject *type;
    int ndim;
    if (!PyArg_ParseTuple(args, "O!Oi:_structs", &PyType_Type, &cls, &type, &ndim))
        return NULL;
    if (!PyType_IsSubtype(cls, st->structs_type) || !ing_py_is_struct_type(st, type) ||
        ndim < 0 || ndim > ING_MAX_NDIM) {
        PyErr_SetString(PyExc_TypeError, "not an ndarray of structs");
        return NULL;
    }
    ing_py_structs *a = (ing_py_structs *)cls->tp_alloc(cls, 0);
    if (!a) return NULL;
    a->type = Py_NewRef(type);
    a->ndim = ndim;
    return (PyObject *)a;
}

/* ---- making --------------------------------------------------------------------------------- */

/* One member; *depth is that of the deepest struct among them. -1 = raised. */
static int read_member(ing_py_state *st, PyObject *types, PyObject *key, PyObject *type,
                       ing_gate_member *m, uint32_t *depth) {
    m->name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;
    if (!m->name) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the name of a member must be a str");
        return -1;
    }
    if (ing_py_is_struct_type(st, type)) {
        const ing_py_struct_type *inner = (ing_py_struct_type *)type;
        m->inner = &inner->layout;
        if (inner->depth + 1 > *depth) *depth = inner->depth + 1;
    } else if (ing_py_is_tensor_type(st, type)) {
        m->dtype = (ing_dtype)((ing_py_tensor_type *)type)->id;
        m->tensor = ((ing_py_tensor_type *)type)->shape;
    } else {
        m->dtype = ing_py_dtype_from(st, type);
        PyObject *dtype = m->dtype ? ing_py_dtype_get(st, m->dtype) : NULL;
        if (dtype && PyDict_SetItem(types, key, dtype) < 0) return -1; /* int, float */
    }
    if (m->inner || (m->dtype && ing_gate_count(&m->tensor))) return 0;
    PyErr_Format(PyExc_TypeError,
                 "member '%U' of a struct is %.100R: use a dtype, a vector or matrix "
                 "type of known size and dtype, or a struct type",
                 key, type);
    return -1;
}

static uint32_t numbers_of(const ing_gate_member *m) {
    return m->inner ? m->inner->n_numbers : ing_gate_count(&m->tensor);
}

static ing_hash128 digest_of(const ing_gate_member *members, uint32_t n) {
    ing_hasher h;
    ing_hasher_init(&h);
    for (const ing_gate_member *m = members; m < members + n; m++) {
        ing_hasher_str(&h, 1, m->name);
        ing_hasher_u64(&h, 2, (uint64_t)m->dtype | (uint64_t)m->tensor.rank << 8);
        ing_hasher_u64(&h, 3, m->tensor.shape[0] | (uint64_t)m->tensor.shape[1] << 32);
        if (m->inner) ing_hasher_digest(&h, 4, m->inner->digest);
    }
    return ing_hasher_done(&h);
}

static int read_layout(ing_py_state *st, ing_py_struct_type *t) {
    Py_ssize_t at = 0, n = PyDict_GET_SIZE(t->types);
    PyObject *key, *type;
    t->members = ing_calloc((size_t)n + 1, sizeof *t->members);
    if (!t->members) return PyErr_NoMemory(), -1;
    uint32_t count = 0;
    uint64_t numbers = 0;
    while (PyDict_Next(t->types, &at, &key, &type)) {
        ing_gate_member *m = &t->members[count++];
        if (read_member(st, t->types, key, type, m, &t->depth) < 0) return -1;
        m->first = (uint32_t)numbers;
        numbers += numbers_of(m);
        if (numbers > MAX_NUMBERS || t->depth > MAX_DEPTH) {
            PyErr_Format(PyExc_ValueError,
                         "a struct holds at most %d numbers, and structs %d deep",
                         MAX_NUMBERS, MAX_DEPTH);
            return -1;
        }
    }
    t->layout = (ing_gate_struct){.n = count,
                                  .n_numbers = (uint32_t)numbers,
                                  .members = t->members,
                                  .digest = digest_of(t->members, count)};
    return 0;
}

static bool follows(const ing_py_state *st, PyObject *member) {
    if (ing_py_is_struct_type(st, member))
        return ((ing_py_struct_type *)member)->link != NULL;
    return ing_py_is_tensor_type(st, member) && ((ing_py_tensor_type *)member)->follows;
}

/* Appends it to those that follow, after the structs in it, if it is one. */
static void link_type(ing_py_state *st, ing_py_struct_type *t) {
    Py_ssize_t at = 0;
    PyObject *type;
    bool any = false;
    while (PyDict_Next(t->types, &at, NULL, &type)) any |= follows(st, type);
    if (!any) return;
    t->link = st->following_structs ? st->following_end : &st->following_structs;
    *t->link = t;
    t->st = st;
    st->following_end = &t->newer;
}

void ing_py_struct_types_follow(ing_py_state *st) {
    for (ing_py_struct_type *t = st->following_structs; t; t = t->newer) {
        Py_ssize_t at = 0;
        PyObject *type;
        for (uint32_t k = 0; PyDict_Next(t->types, &at, NULL, &type); k++)
            if (ing_py_is_tensor_type(st, type))
                t->members[k].dtype = (ing_dtype)((ing_py_tensor_type *)type)->id;
        t->layout.digest = digest_of(t->members, t->layout.n);
    }
}

static PyObject *make_type(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *cls;
    PyObject *types, *methods;
    if (!PyArg_ParseTuple(args, "O!O!O!:_struct_type", &PyType_Type, &cls, &PyDict_Type,
                          &types, &PyDict_Type, &methods))
        return NULL;
    if (!PyType_IsSubtype(cls, st->struct_type)) {
        PyErr_SetString(PyExc_TypeError, "not a class of struct types");
        return NULL;
    }
    ing_py_struct_type *t = (ing_py_struct_type *)cls->tp_alloc(cls, 0);
    if (!t) return NULL;
    t->types = PyDict_Copy(types);
    t->methods = t->types ? PyDict_Copy(methods) : NULL;
    if (!t->methods || read_layout(st, t) < 0)
        Py_CLEAR(t);
    else
        link_type(st, t);
    return (PyObject *)t;
}

static PyObject *make_value(PyObject *module, PyObject *args) {
    ing_py_state *st = ing_py_state_in(module);
    PyTypeObject *cls;
    PyObject *entries, *methods, *type;
    if (!PyArg_ParseTuple(args, "O!O!OO:_struct_value", &PyType_Type, &cls,
                          &PyDict_Type, &entries, &methods, &type))
        return NULL;
    if (!PyType_IsSubtype(cls, st->struct_value) ||
        (type != Py_None && !ing_py_is_struct_type(st, type))) {
        PyErr_SetString(PyExc_TypeError, "not a class of structs, or no struct type");
        return NULL;
    }
    ing_py_struct *v = (ing_py_struct *)cls->tp_alloc(cls, 0);
    if (!v) return NULL;
    v->entries = Py_NewRef(entries);
    v->methods = Py_NewRef(methods);
    v->type = type == Py_None ? NULL : Py_NewRef(type);
    return (PyObject *)v;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static ing_status add_tensor(ing_py_state *st, const ing_gate_member *m, PyObject *v,
                             PyObject *list) {
    PyObject *flat = NULL;
    ing_status s = ing_py_tensor_flatten(st, v, &m->tensor, &flat);
    if (s != ING_OK) return s;
    Py_ssize_t n = PyList_GET_SIZE(list);
    if (PyList_SetSlice(list, n, n, flat) < 0) s = ING_PYTHON;
    Py_DECREF(flat);
    return s;
}

/* The nesting of the layout bounds the recursion. */
static ing_status add_numbers(ing_py_state *st, const ing_py_struct_type *t,
                              PyObject *obj, PyObject *list) {
    if (!ing_py_is_struct(st, obj)) return ING_DECLINED;
    PyObject *entries = ((ing_py_struct *)obj)->entries, *key, *type;
    if (!entries || PyDict_GET_SIZE(entries) != (Py_ssize_t)t->layout.n)
        return ING_DECLINED;
    Py_ssize_t at = 0;
    ing_status s = ING_OK;
    for (uint32_t k = 0; s == ING_OK && PyDict_Next(t->types, &at, &key, &type); k++) {
        const ing_gate_member *m = &t->members[k];
        PyObject *v = PyDict_GetItemWithError(entries, key);
        if (!v) return PyErr_Occurred() ? ING_PYTHON : ING_DECLINED;
        Py_INCREF(v); /* reading a sequence may run code that changes the struct */
        if (m->inner)
            s = add_numbers(st, (ing_py_struct_type *)type, v, list);
        else if (m->tensor.rank)
            s = add_tensor(st, m, v, list);
        else
            s = PyList_Append(list, v) < 0 ? ING_PYTHON : ING_OK;
        Py_DECREF(v);
    }
    return s;
}

ing_status ing_py_struct_numbers(ing_py_state *st, PyObject *type, PyObject *obj,
                                 PyObject **out) {
    *out = PyList_New(0);
    if (!*out) return ING_PYTHON;
    ing_status s = add_numbers(st, (ing_py_struct_type *)type, obj, *out);
    if (s != ING_OK) Py_CLEAR(*out);
    return s;
}

/* The nesting of the layout bounds the recursion. */
static int load_numbers(const ing_gate_struct *layout, const uint64_t **at,
                        PyObject *list) {
    for (uint32_t k = 0; k < layout->n; k++) {
        const ing_gate_member *m = &layout->members[k];
        uint32_t n = m->inner ? 0 : ing_gate_count(&m->tensor);
        if (m->inner && load_numbers(m->inner, at, list) < 0) return -1;
        for (uint32_t i = 0; i < n; i++) {
            PyObject *o = ing_py_scalar_load(m->dtype, (*at)++);
            int bad = o ? PyList_Append(list, o) : -1;
            Py_XDECREF(o);
            if (bad) return -1;
        }
    }
    return 0;
}

PyObject *ing_py_struct_result(PyObject *type, const uint64_t **at) {
    PyObject *list = PyList_New(0), *v = NULL;
    if (list && load_numbers(ing_py_layout_of(type), at, list) == 0)
        v = PyObject_CallMethod(type, "_from_numbers", "O", list);
    Py_XDECREF(list);
    return v;
}

/* ---- in the module ------------------------------------------------------------------------------ */

static const PyMethodDef functions[] = {
    {"_struct_type", make_type, METH_VARARGS, NULL},
    {"_struct_value", make_value, METH_VARARGS, NULL},
    {"_structs", make_structs, METH_VARARGS, NULL},
    {0},
};

int ing_py_struct_add(PyObject *module, ing_py_state *st) {
    st->struct_type = ing_py_add_type(module, &type_spec);
    st->struct_value = st->struct_type ? ing_py_add_type(module, &value_spec) : NULL;
    st->structs_type = st->struct_value ? ing_py_add_type(module, &structs_spec) : NULL;
    if (!st->structs_type) return -1;
    return PyModule_AddFunctions(module, (PyMethodDef *)functions);
}

int ing_py_struct_traverse(ing_py_state *st, visitproc visit, void *arg) {
    Py_VISIT(st->struct_type);
    Py_VISIT(st->struct_value);
    Py_VISIT(st->structs_type);
    return 0;
}

void ing_py_struct_clear(ing_py_state *st) {
    Py_CLEAR(st->struct_type);
    Py_CLEAR(st->struct_value);
    Py_CLEAR(st->structs_type);
}
