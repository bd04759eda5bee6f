/* Plans: what fingerprints need to know about a type, worked out once and kept for as
 * long as the type lives and stays unchanged (weakly: a plan never keeps a class alive).
 * Called for every object that is not of an exact builtin type. Runs no user code but
 * what imports of the class's module already ran. */
#include "py/value/fingerprint_int.h"
#include "py/see/see.h"

#include <structmember.h>

/* ---- looking around ------------------------------------------------------------------------ */

/* Clears an error that was an answer: there is no such thing. What says nothing about the
 * value (no memory, no stack, an interrupt) is kept, and ends the walk with ing_fp_lost: a
 * digest or a plan made without the answer would be another one. */
void ing_fp_forgive(ing_py_fp *fp) {
    if (!PyErr_Occurred()) return;
    if (ing_py_took_any()) return;
    fp->losses++;
    Py_XSETREF(fp->lost, ing_fp_take_exception());
}

int ing_fp_lost(const ing_py_fp *fp, uint64_t since) {
    if (fp->losses == since) return 0;
    if (fp->lost)
        PyErr_SetObject((PyObject *)Py_TYPE(fp->lost), fp->lost);
    else
        PyErr_NoMemory();
    return -1;
}

PyObject *ing_fp_loaded(ing_py_fp *fp, const char *module) {
    PyObject *modules = PyImport_GetModuleDict(), *name = PyUnicode_FromString(module);
    PyObject *mod = modules && name ? PyDict_GetItemWithError(modules, name) : NULL;
    Py_XDECREF(name);
    if (!mod) ing_fp_forgive(fp);
    return mod && mod != Py_None ? mod : NULL;
}

PyObject *ing_fp_loaded_attr(ing_py_fp *fp, const char *module, const char *name) {
    PyObject *mod = ing_fp_loaded(fp, module);
    PyObject *v = mod ? PyObject_GetAttrString(mod, name) : NULL;
    if (!v) ing_fp_forgive(fp);
    return v;
}

PyObject *ing_fp_attr(ing_py_fp *fp, PyObject *obj, PyObject *name) {
    PyObject *v = PyObject_GetAttr(obj, name);
    if (!v) ing_fp_forgive(fp);
    return v;
}

static PyObject *type_dict(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(type);
#else
    return Py_XNewRef(type->tp_dict);
#endif
}

PyObject *ing_fp_type_attr(ing_py_fp *fp, PyTypeObject *type, PyObject *name) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        PyObject *v = dict ? PyDict_GetItemWithError(dict, name) : NULL;
        Py_XDECREF(dict); /* the type keeps it, and it keeps the value */
        if (v) return v;
        ing_fp_forgive(fp); /* of a key that is no str */
    }
    return NULL;
}

/* Follows a dotted name through attributes, never through <locals>. */
PyObject *ing_fp_resolve(ing_py_fp *fp, PyObject *module, PyObject *qualname) {
    if (!PyUnicode_Check(module) || !PyUnicode_Check(qualname)) return NULL;
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *at = modules ? PyDict_GetItemWithError(modules, module) : NULL;
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *parts = at && dot ? PyUnicode_Split(qualname, dot, -1) : NULL;
    Py_XDECREF(dot);
    Py_XINCREF(at);
    for (Py_ssize_t i = 0; parts && at && i < PyList_GET_SIZE(parts); i++) {
        PyObject *next = PyObject_GetAttr(at, PyList_GET_ITEM(parts, i));
        Py_SETREF(at, next);
    }
    if (!parts) Py_CLEAR(at);
    Py_XDECREF(parts);
    if (!at) ing_fp_forgive(fp);
    return at;
}

static bool is_sub(PyTypeObject *t, PyObject *base) {
    return base && PyType_Check(base) && PyType_IsSubtype(t, (PyTypeObject *)base);
}

bool ing_fp_is_a(ing_py_fp *fp, PyTypeObject *t, const char *module, const char *name) {
    PyObject *base = ing_fp_loaded_attr(fp, module, name);
    bool yes = is_sub(t, base);
    Py_XDECREF(base);
    return yes;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* metadata={"fingerprint": False} */
static bool opted_out(ing_py_fp *fp, PyObject *field, PyObject *attr) {
    PyObject *meta = ing_fp_attr(fp, field, attr);
    PyObject *flag = NULL;
    if (meta && PyMapping_Check(meta))
        flag = PyObject_GetItem(meta, fp->n.fingerprint_);
    bool out = flag == Py_False;
    Py_XDECREF(flag);
    Py_XDECREF(meta);
    ing_fp_forgive(fp);
    return out;
}

static int add_field(fp_plan *p, PyObject *list, PyObject *name, bool out) {
    if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError, "a declared field's name is a %.100s",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    if (!out) return PyList_Append(list, name);
    if (!p->skip && !(p->skip = PySet_New(NULL))) return -1;
    return PySet_Add(p->skip, name);
}

/* Dataclass and pydantic fields are dicts of name -> field, in order of declaration. */
static int fields_of_dict(ing_py_fp *fp, fp_plan *p, PyObject *dict, PyObject *meta,
                          PyObject *list) {
    PyObject *name, *field, *kind = ing_fp_loaded_attr(fp, "dataclasses", "_FIELD");
    Py_ssize_t pos = 0;
    int rc = 0;
    while (rc == 0 && PyDict_Next(dict, &pos, &name, &field)) {
        Py_INCREF(name); /* metadata may be of any class, and change the dict */
        Py_INCREF(field);
        PyObject *k = PyObject_GetAttrString(field, "_field_type");
        if (!k) ing_fp_forgive(fp);
        if (!k || k == kind) /* neither ClassVar nor InitVar */
            rc = add_field(p, list, name, opted_out(fp, field, meta));
        Py_XDECREF(k);
        Py_DECREF(name);
        Py_DECREF(field);
    }
    Py_XDECREF(kind);
    return rc;
}

static int fields_of_attrs(ing_py_fp *fp, fp_plan *p, PyObject *attrs, PyObject *list) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(attrs); i++) {
        PyObject *field = PyTuple_GET_ITEM(attrs, i);
        PyObject *name = PyObject_GetAttr(field, fp->n.name_);
        int rc =
            name ? add_field(p, list, name, opted_out(fp, field, fp->n.metadata_)) : -1;
        Py_XDECREF(name);
        if (rc < 0) return -1;
    }
    return add_field(p, list, fp->n.attrs_cached_hash_, true); /* of one process */
}

static PyObject *declared(ing_py_fp *fp, PyTypeObject *type, PyObject *name,
                          PyTypeObject *as) {
    PyObject *v = ing_fp_type_attr(fp, type, name);
    return v && PyObject_TypeCheck(v, as) ? Py_NewRef(v) : NULL;
}

static int plan_fields(ing_py_fp *fp, fp_plan *p) {
    PyObject *list = PyList_New(0), *v;
    if (!list) return -1;
    int rc = 0;
    if ((v = declared(fp, p->type, fp->n.__pydantic_fields__, &PyDict_Type)))
        rc = fields_of_dict(fp, p, v, fp->n.json_schema_extra_, list);
    else if ((v = declared(fp, p->type, fp->n.__attrs_attrs__, &PyTuple_Type)))
        rc = fields_of_attrs(fp, p, v, list);
    else if ((v = declared(fp, p->type, fp->n.__dataclass_fields__, &PyDict_Type)))
        rc = fields_of_dict(fp, p, v, fp->n.metadata_, list);
    Py_XDECREF(v);
    if (rc == 0) p->fields = PyList_AsTuple(list);
    Py_DECREF(list);
    return p->fields ? 0 : -1;
}

static int has_name(PyObject *tuple, PyObject *name) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        int same = PyUnicode_Compare(PyTuple_GET_ITEM(tuple, i), name) == 0;
        if (same) return 1;
    }
    return 0;
}

static int add_slot(ing_py_fp *fp, fp_plan *p, PyObject *list, PyObject *name) {
    bool model = ing_fp_type_attr(fp, p->type, fp->n.__pydantic_fields__) != NULL;
    if (model && PyUnicode_READ_CHAR(name, 0) == '_' &&
        PyUnicode_Compare(name, fp->n.__pydantic_extra__) != 0 &&
        PyUnicode_Compare(name, fp->n.__pydantic_private__) != 0)
        return PyList_Append(list, Py_None); /* which fields were given is no value */
    p->has_slots = true;
    if (has_name(p->fields, name)) return PyList_Append(list, Py_None);
    int out = p->skip ? PySet_Contains(p->skip, name) : 0;
    return out < 0 ? -1 : PyList_Append(list, out ? Py_None : name);
}

/* A member of C code may be of any type; __slots__ makes T_OBJECT_EX. */
static bool is_slot(PyObject *v) {
    return Py_IS_TYPE(v, &PyMemberDescr_Type) &&
           ((PyMemberDescrObject *)v)->d_member->type == T_OBJECT_EX;
}

static int add_offset(fp_plan *p, PyObject *descr) {
    Py_ssize_t *at = ing_realloc(p->offsets, (p->n_slots + 1) * sizeof *at);
    if (!at) return ing_fp_no_memory();
    at[p->n_slots++] = ((PyMemberDescrObject *)descr)->d_member->offset;
    p->offsets = at;
    return 0;
}

/* The storage that __slots__ made, found by its descriptors. */
static int plan_slots(ing_py_fp *fp, fp_plan *p) {
    PyObject *list = PyList_New(0), *mro = p->type->tp_mro, *name, *v;
    int rc = list ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
        PyObject *dict = type_dict(base);
        Py_ssize_t pos = 0;
        while (rc == 0 && dict && PyDict_Next(dict, &pos, &name, &v))
            if (is_slot(v) && PyUnicode_Check(name)) {
                rc = add_offset(p, v);
                if (rc == 0) rc = add_slot(fp, p, list, name);
            }
        Py_XDECREF(dict);
    }
    if (rc == 0) p->slots = PyList_AsTuple(list);
    Py_XDECREF(list);
    return p->slots ? 0 : -1;
}

/* ---- rules -------------------------------------------------------------------------------------- */

static PyTypeObject *builtin_base(PyTypeObject *t) {
    static PyTypeObject *const all[] = {
        &PyTuple_Type,     &PyList_Type,      &PyDict_Type,    &PySet_Type,
        &PyFrozenSet_Type, &PyUnicode_Type,   &PyLong_Type,    &PyFloat_Type,
        &PyBytes_Type,     &PyByteArray_Type, &PyComplex_Type,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (PyType_IsSubtype(t, all[i])) return all[i];
    return NULL;
}

/* Is the type's own storage only what __dict__ and __slots__ show? The same reckoning as
 * object.__reduce_ex__ makes before it trusts them. */
static bool plain_layout(const fp_plan *p) {
    const PyTypeObject *t = p->type;
    Py_ssize_t size = PyBaseObject_Type.tp_basicsize;
    size += (Py_ssize_t)(p->n_slots * sizeof(PyObject *));
    if (t->tp_dictoffset > 0) size += (Py_ssize_t)sizeof(PyObject *);
    if (t->tp_weaklistoffset > 0) size += (Py_ssize_t)sizeof(PyObject *);
    return t->tp_itemsize == 0 && t->tp_basicsize <= size;
}

/* Does the type reduce in object's way, so that its state is its attributes? */
static bool default_reduce(ing_py_fp *fp, const fp_plan *p) {
    PyTypeObject *t = p->type;
    if (ing_fp_type_attr(fp, t, fp->n.__reduce_ex__) != fp->object_reduce_ex ||
        ing_fp_type_attr(fp, t, fp->n.__reduce__) != fp->object_reduce ||
        ing_fp_type_attr(fp, t, fp->n.__getstate__) != fp->object_getstate ||
        ing_fp_type_attr(fp, t, fp->n.__getnewargs__) ||
        ing_fp_type_attr(fp, t, fp->n.__getnewargs_ex__))
        return false;
    PyObject *table = ing_fp_loaded_attr(fp, "copyreg", "dispatch_table");
    bool listed = table && PyDict_Check(table) &&
                  PyDict_GetItemWithError(table, (PyObject *)t) != NULL;
    ing_fp_forgive(fp);
    Py_XDECREF(table);
    return !listed && plain_layout(p);
}

static bool is_view(PyTypeObject *t) {
    return PyType_IsSubtype(t, &PyDictKeys_Type) ||
           PyType_IsSubtype(t, &PyDictValues_Type) ||
           PyType_IsSubtype(t, &PyDictItems_Type);
}

static void refuse(fp_plan *p, const char *why, const char *remedy) {
    p->rule = FP_RULE_REFUSE;
    p->why = why;
    p->remedy = remedy;
}

static bool ours(ing_py_state *st, fp_plan *p) {
    PyTypeObject *t = p->type;
    ing_py_fp *fp = st->fp;
    if (fp->identity && t == fp->identity)
        p->rule = FP_RULE_IDENTITY;
    else if (fp->ordered && t == fp->ordered)
        p->rule = FP_RULE_ORDERED;
    else if (fp->content && t == fp->content)
        p->rule = FP_RULE_CONTENT;
    else if (t == st->dtype_type)
        p->rule = FP_RULE_ING_DTYPE;
    else if (st->host && (t == st->host->kernel_type || t == st->host->func_type))
        p->rule = FP_RULE_KERNEL;
    else if (st->host && t == st->host->bound_type)
        p->rule = FP_RULE_METHOD;
    else if (t == st->array_type || PyType_IsSubtype(t, st->structs_type))
        refuse(p, "an Ingot array has no fingerprint of its own",
               "wrap it in Content(a) to hash what it holds");
    else if (t == st->scalar_field || t == st->matrix_field)
        p->rule = FP_RULE_REDUCE; /* its memory may have gaps that are not its own */
    else
        return false;
    return true;
}

static bool numpy_rule(ing_py_fp *fp, fp_plan *p) {
    PyTypeObject *t = p->type;
    if (!ing_fp_loaded(fp, "numpy")) return false;
    if (ing_fp_is_a(fp, t, "numpy.ma", "MaskedArray"))
        return false; /* of _reducers.py */
    if (ing_fp_is_a(fp, t, "numpy", "ndarray"))
        p->rule = FP_RULE_ARRAY;
    else if (ing_fp_is_a(fp, t, "numpy", "generic") && !builtin_base(t))
        p->rule = FP_RULE_SCALAR;
    else if (ing_fp_is_a(fp, t, "numpy", "generic") &&
             !PyType_IsSubtype(t, &PyUnicode_Type) &&
             !PyType_IsSubtype(t, &PyBytes_Type))
        p->rule = FP_RULE_SCALAR;
    else if (ing_fp_is_a(fp, t, "numpy", "dtype"))
        p->rule = FP_RULE_DTYPE;
    else if (ing_fp_is_a(fp, t, "numpy", "ufunc"))
        p->rule = FP_RULE_UFUNC;
    else
        return false;
    return true;
}

static bool python_rule(ing_py_fp *fp, fp_plan *p) {
    PyTypeObject *t = p->type;
    if (PyType_IsSubtype(t, &PyType_Type))
        p->rule = FP_RULE_CLASS;
    else if (ing_fp_is_a(fp, t, "enum", "Enum"))
        p->rule = FP_RULE_ENUM;
    else if (t == &PyFunction_Type)
        p->rule = FP_RULE_FUNCTION;
    else if (t == &PyMethod_Type)
        p->rule = FP_RULE_METHOD;
    else if (PyType_IsSubtype(t, &PyCFunction_Type))
        p->rule = FP_RULE_BUILTIN;
    else if (PyType_IsSubtype(t, &PyModule_Type))
        p->rule = FP_RULE_MODULE;
    else if (t == &PyCode_Type)
        p->rule = FP_RULE_CODE;
    else if (t == &PyDictProxy_Type)
        p->rule = FP_RULE_PROXY;
    else if (is_view(t))
        p->rule = FP_RULE_VIEW;
    else if (ing_fp_is_a(fp, t, "unittest.mock", "NonCallableMock"))
        refuse(p, "a mock has no value", "hash what it stands for");
    else
        return false;
    return true;
}

/* The rest: instances with attributes, buffers, whatever has a reducer. */
static void other_rule(ing_py_state *st, fp_plan *p) {
    PyTypeObject *t = p->type;
    bool declared = PyTuple_GET_SIZE(p->fields) || p->skip ||
                    ing_fp_type_attr(st->fp, t, st->fp->n.__dataclass_fields__) ||
                    ing_fp_type_attr(st->fp, t, st->fp->n.__attrs_attrs__) ||
                    ing_fp_type_attr(st->fp, t, st->fp->n.__pydantic_fields__);
    if (builtin_base(t))
        p->rule = FP_RULE_SUB;
    else if (ing_fp_is_a(st->fp, t, "collections", "deque"))
        p->rule = FP_RULE_DEQUE;
    else if (declared && plain_layout(p))
        p->rule = FP_RULE_INSTANCE;
    else if (t->tp_as_buffer && t->tp_as_buffer->bf_getbuffer)
        p->rule = FP_RULE_BUFFER;
    else if (t == &PyBaseObject_Type || default_reduce(st->fp, p))
        p->rule = FP_RULE_INSTANCE;
    else
        p->rule = FP_RULE_REDUCE;
}

/* Is an instance something to be called, with Python code behind it? */
static bool is_called(ing_py_fp *fp, PyTypeObject *t) {
    PyObject *call = ing_fp_type_attr(fp, t, fp->n.__call__);
    return (call && PyFunction_Check(call)) ||
           ing_fp_is_a(fp, t, "functools", "partial");
}

/* Fields are storage unless a property or another descriptor stands in between. */
static bool plain_storage(ing_py_fp *fp, fp_plan *p) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(p->fields); i++) {
        PyObject *v = ing_fp_type_attr(fp, p->type, PyTuple_GET_ITEM(p->fields, i));
        if (v && Py_TYPE(v)->tp_descr_set && Py_TYPE(v) != &PyMemberDescr_Type)
            return false;
    }
    return true;
}

static int add_lazy(fp_plan *p, PyObject *name) {
    if (!PyUnicode_CheckExact(name) || has_name(p->fields, name)) return 0;
    if (!p->skip && !(p->skip = PySet_New(NULL))) return -1;
    return PySet_Add(p->skip, name);
}

/* In a class with slots attrs puts cached properties into slots, and their functions into
 * the defaults of a __getattr__. */
static int add_attrs_lazy(ing_py_fp *fp, fp_plan *p, PyObject *getattr) {
    if (!PyFunction_Check(getattr)) return 0;
    const char *file =
        PyUnicode_AsUTF8(((PyCodeObject *)PyFunction_GET_CODE(getattr))->co_filename);
    if (!file) ing_fp_forgive(fp);
    PyObject *defaults = PyFunction_GetDefaults(getattr), *name, *v;
    if (!file || strncmp(file, "<attrs generated", 16) != 0 || !defaults ||
        !PyTuple_GET_SIZE(defaults) || !PyDict_Check(PyTuple_GET_ITEM(defaults, 0)))
        return 0;
    Py_ssize_t pos = 0;
    int rc = 0;
    while (rc == 0 && PyDict_Next(PyTuple_GET_ITEM(defaults, 0), &pos, &name, &v))
        rc = add_lazy(p, name);
    return rc;
}

/* The names under which functools.cached_property keeps what it computed: no state. */
static int plan_lazy(ing_py_fp *fp, fp_plan *p) {
    PyObject *lazy = ing_fp_loaded_attr(fp, "functools", "cached_property");
    PyObject *mro = p->type->tp_mro, *name, *v;
    int rc = 0;
    if (!lazy || !PyType_Check(lazy)) mro = NULL;
    for (Py_ssize_t i = 0; rc == 0 && mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *dict = base->tp_flags & Py_TPFLAGS_HEAPTYPE ? type_dict(base) : NULL;
        Py_ssize_t pos = 0;
        while (rc == 0 && dict && PyDict_Next(dict, &pos, &name, &v)) {
            if (PyObject_TypeCheck(v, (PyTypeObject *)lazy))
                rc = add_lazy(p, name);
            else if (PyUnicode_Check(name) &&
                     PyUnicode_CompareWithASCIIString(name, "__getattr__") == 0)
                rc = add_attrs_lazy(fp, p, v);
        }
        Py_XDECREF(dict);
    }
    Py_XDECREF(lazy);
    return rc;
}

/* Is it a class that ingot/_reducers.py knows, or one of a library that is known there? Names only
 * say whether to ask there; the class itself is compared. */
static bool may_reduce(ing_py_fp *fp, PyTypeObject *t) {
    static const char *const tops[] = {"pandas",    "xarray",   "scipy", "torch",
                                       "pyarrow",   "numpy",    "ingot", "ctypes",
                                       "importlib", "pydantic", "numba"};
    PyObject *mro = t->tp_mro;
    if (t == &PyStaticMethod_Type || t == &PyClassMethod_Type || t == &PySuper_Type ||
        t == &PyBaseObject_Type || ing_fp_is_a(fp, t, "_struct", "Struct"))
        return true;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *module = ing_fp_attr(fp, PyTuple_GET_ITEM(mro, i), fp->n.__module__);
        const char *text =
            module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
        bool yes = false;
        for (size_t k = 0; text && !yes && k < sizeof tops / sizeof *tops; k++) {
            size_t n = strlen(tops[k]);
            yes = strncmp(text, tops[k], n) == 0 && (!text[n] || text[n] == '.');
        }
        if (!text) ing_fp_forgive(fp);
        Py_XDECREF(module);
        if (yes) return true;
    }
    return false;
}

/* 1: the type has a reducer of ours. */
static int plan_reducer(ing_py_fp *fp, fp_plan *p) {
    if (!may_reduce(fp, p->type)) return 0;
    PyObject *module = PyImport_ImportModule("ingot._reducers");
    PyObject *f = module ? PyObject_CallMethod(module, "find", "O", p->type) : NULL;
    Py_XDECREF(module);
    if (!f) return -1;
    if (f == Py_None) {
        Py_DECREF(f);
        return 0;
    }
    p->reducer = f;
    p->rule = FP_RULE_PIECES;
    return 1;
}

static int plan_fill(ing_py_state *st, fp_plan *p) {
    PyTypeObject *t = p->type;
    if (plan_fields(st->fp, p) < 0 || plan_slots(st->fp, p) < 0) return -1;
    p->base_type = builtin_base(t);
#if PY_VERSION_HEX >= 0x030B0000
    p->has_dict = t->tp_dictoffset != 0 || (t->tp_flags & Py_TPFLAGS_MANAGED_DICT);
#else
    p->has_dict = t->tp_dictoffset != 0;
#endif
    if (!ours(st, p) && !python_rule(st->fp, p) && !numpy_rule(st->fp, p)) {
        int found = plan_reducer(st->fp, p);
        if (found < 0) return -1;
        if (!found) other_rule(st, p);
    }
    if (plan_lazy(st->fp, p) < 0) return -1;
    p->stored = plain_storage(st->fp, p);
    p->calls = is_called(st->fp, t);
    return 0;
}

/* ---- the table -------------------------------------------------------------------------------------- */

static void plan_free(fp_plan *p) {
    if (!p) return;
    Py_XDECREF(p->ref);
    Py_XDECREF(p->fields);
    Py_XDECREF(p->slots);
    Py_XDECREF(p->skip);
    Py_XDECREF(p->learned);
    Py_XDECREF(p->reducer);
    ing_free(p->offsets);
    ing_free(p);
}

static void retire(fp_plans *t, fp_plan *p) {
    p->next = t->retired;
    t->retired = p;
}

static void free_retired(fp_plans *t) {
    while (t->retired) {
        fp_plan *p = t->retired;
        t->retired = p->next;
        plan_free(p);
    }
}

void ing_fp_plans_release(fp_plans *t) {
    if (--t->walks == 0) free_retired(t);
}

static bool plan_alive(const fp_plan *p) {
    return ing_py_refers(p->ref, p->type);
}

static uint32_t plan_slot(const fp_plans *t, const PyTypeObject *type) {
    uint64_t h = (uint64_t)(uintptr_t)type * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(h >> 32) & (t->cap - 1);
    while (t->at[at] && t->at[at]->type != type) at = (at + 1) & (t->cap - 1);
    return at;
}

/* Growing is when plans of classes that are gone are dropped. */
static int plans_grow(fp_plans *t) {
    fp_plans old = *t;
    uint32_t live = 0;
    for (uint32_t i = 0; i < old.cap; i++) live += old.at[i] && plan_alive(old.at[i]);
    uint32_t cap = 64;
    while (cap / 2 <= live) cap *= 2;
    t->at = ing_calloc(cap, sizeof *t->at);
    if (!t->at) {
        *t = old;
        return ing_fp_no_memory();
    }
    t->cap = cap;
    t->len = 0;
    for (uint32_t i = 0; i < old.cap; i++) {
        fp_plan *p = old.at[i];
        if (!p) continue;
        if (plan_alive(p)) {
            t->at[plan_slot(t, p->type)] = p;
            t->len++;
        } else {
            retire(t, p);
        }
    }
    ing_free(old.at);
    return 0;
}

void ing_fp_plans_fini(fp_plans *t) {
    for (uint32_t i = 0; i < t->cap; i++) plan_free(t->at[i]);
    free_retired(t);
    ing_free(t->at);
    memset(t, 0, sizeof *t);
}

static fp_plan *plan_new(fp_walk *w, PyTypeObject *type) {
    fp_plan *p = ing_calloc(1, sizeof *p);
    if (!p) {
        ing_fp_no_memory();
        return NULL;
    }
    p->type = type;
    p->ref = PyWeakref_NewRef((PyObject *)type, NULL);
    uint64_t losses = w->fp->losses;
    int rc = p->ref ? plan_fill(w->st, p) : -1;
    if (rc == 0) {
        PyObject *any = ing_fp_attr(w->fp, (PyObject *)type, w->fp->n.__reduce_ex__);
        Py_XDECREF(any); /* a look-up gives the type its version tag */
        rc = ing_fp_lost(w->fp, losses);
    }
    if (rc < 0) {
        plan_free(p);
        return NULL;
    }
    p->version = type->tp_version_tag;
    return p;
}

static fp_plan *plan_find(const fp_plans *t, PyTypeObject *type) {
    fp_plan *p = t->cap ? t->at[plan_slot(t, type)] : NULL;
    return p && plan_alive(p) ? p : NULL;
}

fp_plan *ing_fp_plan_get(fp_walk *w, PyTypeObject *type) {
    fp_plans *t = &w->fp->plans;
    fp_plan *p = plan_find(t, type);
    if (p && (p->version ? p->version == type->tp_version_tag : p->epoch == w->epoch))
        return p;
    fp_plan *fresh =
        plan_new(w, type); /* may run user code: the table may be another */
    if (!fresh) return NULL;
    if (t->len + 1 > t->cap / 4 * 3 && plans_grow(t) < 0) {
        plan_free(fresh);
        return NULL;
    }
    uint32_t at = plan_slot(t, type);
    if (t->at[at])
        retire(t, t->at[at]);
    else
        t->len++;
    t->at[at] = fresh;
    return fresh;
}

/* ---- the name of a class --------------------------------------------------------------------------------- */

/* Classes of builtins that have no name there, such as NoneType, go by the name that the
 * module `types` has for them. */
static int types_alias(PyTypeObject *type, PyObject **module, PyObject **qualname) {
    PyObject *types = PyImport_ImportModule("types");
    PyObject *dict = types ? PyModule_GetDict(types) : NULL, *key, *value;
    Py_ssize_t pos = 0;
    int found = 0;
    while (dict && !found && PyDict_Next(dict, &pos, &key, &value)) {
        if (value != (PyObject *)type) continue;
        Py_XSETREF(*module, PyUnicode_FromString("types"));
        Py_XSETREF(*qualname, Py_NewRef(key));
        found = *module ? 1 : -1;
    }
    Py_XDECREF(types);
    return PyErr_Occurred() ? -1 : found;
}

int ing_fp_plan_verify(fp_walk *w, fp_plan *p) {
    if (p->epoch == w->epoch) return 0;
    PyObject *module = ing_fp_attr(w->fp, (PyObject *)p->type, w->fp->n.__module__);
    PyObject *qualname = ing_fp_attr(w->fp, (PyObject *)p->type, w->fp->n.__qualname__);
    int rc = 0;
    p->named = false;
    if (module && qualname && PyUnicode_Check(module) && PyUnicode_Check(qualname)) {
        PyObject *found = ing_fp_resolve(w->fp, module, qualname);
        p->named = found == (PyObject *)p->type;
        Py_XDECREF(found);
        if (!p->named && !(p->type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
            rc = types_alias(p->type, &module, &qualname);
            p->named = rc > 0;
        }
        bool ok = true;
        if (rc >= 0 && p->named)
            p->name = ing_fp_hash_pair(FP_CLASS, module, qualname, &ok);
        if (rc >= 0) rc = ok ? 0 : -1;
    }
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    if (rc == 0) p->epoch = w->epoch;
    return rc;
}
