/* Seeing one Python object: which kind of thing it is for the language, and the digest
 * of what was seen (R1). Used by the gate while compiling and by replay and guards
 * afterwards, so that both always answer alike. Runs no user code (R5): exact types, type
 * slots, and for arrays of others the protocol by which they offer themselves. */
#include "py/foreign.h"
#include "py/kernel.h"
#include "py/struct.h"
#include "py/tensor.h"

#include <string.h>

ing_py_def *ing_py_def_of(ing_py_state *st, PyObject *obj) {
    if (!obj) return NULL;
    if (PyMethod_Check(obj)) obj = PyMethod_GET_FUNCTION(obj);
    if (Py_TYPE(obj) == st->host->func_type) return &((ing_py_func *)obj)->def;
    if (Py_TYPE(obj) == st->host->kernel_type) return &((ing_py_kernel *)obj)->def;
    return NULL;
}

/* enum.Enum, if anybody has imported enum; borrowed, NULL without exception. */
static PyObject *enum_class(ing_py_state *st) {
    if (!st->host->enum_class) {
        PyObject *mods = PyImport_GetModuleDict();
        PyObject *mod = mods ? PyDict_GetItemString(mods, "enum") : NULL;
        st->host->enum_class = mod ? ing_py_attr(mod, "Enum") : NULL;
        if (!st->host->enum_class) PyErr_Clear();
    }
    return st->host->enum_class;
}

bool ing_py_is_enum_member(ing_py_state *st, PyObject *obj) {
    PyObject *cls = enum_class(st);
    return cls && PyType_Check(cls) &&
           PyType_IsSubtype(Py_TYPE(obj), (PyTypeObject *)cls);
}

bool ing_py_is_atom(ing_py_state *st, PyObject *o) {
    return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) ||
           PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyType_Check(o) ||
           PyFunction_Check(o) || PyCFunction_Check(o) || ing_py_is_dtype(st, o) ||
           Py_TYPE(o) == st->host->func_type || Py_TYPE(o) == st->host->kernel_type ||
           ing_py_is_tensor_type(st, o) || ing_py_is_struct_type(st, o) ||
           ing_py_is_enum_member(st, o) ||
           ing_py_foreign_kind_of(st, o) == ING_FOREIGN_NUMBER;
}

static ing_status see_int(PyObject *obj, ing_gate_fact *f, ing_err *e) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(obj, &overflow);
    if (v == -1 && PyErr_Occurred()) return ING_PYTHON;
    f->i = v;
    if (overflow) {
        unsigned long long u = PyLong_AsUnsignedLongLong(obj);
        if (u == (unsigned long long)-1 && PyErr_Occurred()) {
            PyErr_Clear();
            return ing_fail(e, ING_VALUE,
                            "an integer constant does not fit in 64 bits");
        }
        f->i = (int64_t)u;
        f->wide = true;
    }
    f->kind = ING_GATE_INT;
    return ING_OK;
}

static ing_status see_str(PyObject *obj, ing_gate_fact *f) {
    Py_ssize_t n = 0;
    f->s = PyUnicode_AsUTF8AndSize(obj, &n);
    if (!f->s) return ING_PYTHON;
    f->n = (uint32_t)n;
    f->kind = ING_GATE_STR;
    return ING_OK;
}

/* A member that says by itself what it equals is an object like any other. */
static bool compares_itself(PyObject *obj) {
    PyTypeObject *base = PyLong_Check(obj)      ? &PyLong_Type
                         : PyUnicode_Check(obj) ? &PyUnicode_Type
                                                : &PyBaseObject_Type;
    return Py_TYPE(obj)->tp_richcompare != base->tp_richcompare;
}

/* Does `.value` of a member of an IntEnum, which is a property, give its number? */
static bool is_own_value(PyObject *obj, const ing_gate_fact *f) {
    ing_gate_fact v = {0};
    ing_err ignored;
    ing_err_init(&ignored);
    PyObject *value = ing_py_attr(obj, "_value_");
    bool yes = value && PyLong_CheckExact(value) &&
               see_int(value, &v, &ignored) == ING_OK && v.i == f->i &&
               v.wide == f->wide;
    PyErr_Clear();
    ing_err_fini(&ignored);
    Py_XDECREF(value);
    return yes;
}

static ing_status see_enum(PyObject *obj, ing_gate_fact *f, ing_err *e) {
    if (PyLong_Check(obj)) {
        ING_TRY(see_int(obj, f, e));
        f->bound = is_own_value(obj, f);
    }
    PyObject *name = ing_py_attr(obj, "_name_");
    if (!name || !PyUnicode_Check(name)) {
        PyErr_Clear();
        Py_XDECREF(name);
        f->s = "?";
        f->n = 1;
    } else {
        ing_status s = see_str(name, f); /* the member's own str lives as long as it */
        Py_DECREF(name);
        ING_TRY(s);
    }
    f->kind = ING_GATE_ENUM;
    f->len = PyLong_Check(obj)      ? ING_ENUM_INT
             : PyUnicode_Check(obj) ? ING_ENUM_STR
                                    : ING_ENUM_PLAIN;
    f->of = Py_TYPE(obj)->tp_name;
    return ING_OK;
}

static void see_spec(const ing_py_spec *s, ing_gate_fact *f) {
    f->kind = ING_GATE_ARRAY;
    f->dtype = (ing_dtype)s->dtype;
    f->ndim = s->ndim;
    f->grad = s->grad;
    f->elem_rank = s->elem_rank;
    memcpy(f->elem_shape, s->elem_shape, sizeof f->elem_shape);
    memcpy(f->layout, s->layout, sizeof f->layout);
}

/* The spec alone: an array of another library is not made ready here (no gradient). The
 * last `rank` axes are those of elements. */
static ing_status see_foreign(ing_py_state *st, PyObject *obj, uint32_t rank,
                              ing_gate_fact *f, ing_err *e) {
    ing_py_foreign a;
    Py_buffer hold;
    ing_status s = ing_py_foreign_read(st, obj, false, &a, &hold, e);
    PyBuffer_Release(&hold);
    if (s == ING_OK && rank && a.spec.ndim >= rank &&
        !ing_py_foreign_elements(&a, rank))
        s = ing_fail(e, ING_ARGUMENT,
                     "its last %s must be the innermost in memory, in this order",
                     rank == 1 ? "axis" : "two axes");
    if (s == ING_OK) see_spec(&a.spec, f);
    return s;
}

/* A NumPy scalar is a constant with a type of its own (R4). */
static ing_status see_number(PyObject *obj, ing_gate_fact *f) {
    ing_dtype t;
    ing_py_num v;
    ING_TRY(ing_py_foreign_number(obj, &t, &v));
    f->dtype = t;
    f->i = v.i;
    f->f = v.f;
    f->wide = v.kind == 'U' && v.i < 0;
    f->kind = t == ING_U1     ? ING_GATE_BOOL
              : v.kind == 'F' ? ING_GATE_FLOAT
                              : ING_GATE_INT;
    return ING_OK;
}

static bool see_tensor(ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    const ing_gate_tensor *shape;
    if (ing_py_is_tensor(st, obj)) {
        f->kind = ING_GATE_TENSOR;
        f->dtype = (ing_dtype)((ing_py_tensor *)obj)->id;
        shape = &((ing_py_tensor *)obj)->shape;
    } else if (ing_py_is_tensor_type(st, obj)) {
        f->kind = ING_GATE_TENSOR_TYPE;
        f->dtype = (ing_dtype)((ing_py_tensor_type *)obj)->id;
        shape = &((ing_py_tensor_type *)obj)->shape;
    } else {
        return false;
    }
    f->elem_rank = shape->rank;
    memcpy(f->elem_shape, shape->shape, sizeof f->elem_shape);
    f->s = Py_TYPE(obj)->tp_name;
    return true;
}

static bool see_struct(ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    if (ing_py_is_struct_type(st, obj)) {
        f->kind = ING_GATE_STRUCT_TYPE;
        f->structure = ing_py_layout_of(obj);
        return true;
    }
    if (!ing_py_is_struct(st, obj)) return false;
    f->kind = ING_GATE_STRUCT;
    return true;
}

static bool has_option(PyObject *options, const char *name) {
    return options && PyDict_GetItemString(options, name) == Py_True;
}

static bool see_callable(ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    PyObject *fn = PyMethod_Check(obj) ? PyMethod_GET_FUNCTION(obj) : obj;
    if (Py_TYPE(fn) == st->host->func_type)
        f->kind = ING_GATE_FUNC;
    else if (Py_TYPE(fn) == st->host->kernel_type)
        f->kind = ING_GATE_KERNEL;
    else
        return false;
    f->bound = fn != obj;
    if (f->kind == ING_GATE_FUNC) {
        PyObject *options = ((ing_py_func *)fn)->options;
        f->requires_top_level = has_option(options, "requires_top_level");
        f->is_real_function = has_option(options, "is_real_function");
    }
    f->s = ing_py_def_name(ing_py_def_of(st, fn));
    return true;
}

/* Is a container of a derived class still read as its base is? One with an own __iter__ or
 * __getitem__ is an object that Python is asked about. */
static bool reads_as(PyObject *obj, PyTypeObject *base) {
    PyTypeObject *t = Py_TYPE(obj);
    const PySequenceMethods *s = t->tp_as_sequence, *s0 = base->tp_as_sequence;
    const PyMappingMethods *m = t->tp_as_mapping, *m0 = base->tp_as_mapping;
    return t == base ||
           (t->tp_iter == base->tp_iter && s && m && s->sq_length == s0->sq_length &&
            s->sq_item == s0->sq_item && s->sq_contains == s0->sq_contains &&
            m->mp_length == m0->mp_length && m->mp_subscript == m0->mp_subscript &&
            t->tp_richcompare == base->tp_richcompare);
}

/* The methods that kernels know are the base's own. */
static bool has_methods_of(PyTypeObject *t, PyTypeObject *base) {
    static const char *const names[] = {"keys", "values", "items", "get"};
    bool same = true;
    for (size_t i = 0; same && i < sizeof names / sizeof *names; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        same = name && _PyType_Lookup(t, name) == _PyType_Lookup(base, name);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    return same;
}

/* An ordered dict has an order of its own, and else what a dict has. */
static bool reads_as_dict(PyObject *obj) {
    PyTypeObject *t = Py_TYPE(obj);
    if (t == &PyDict_Type || t == &PyODict_Type) return true;
    PyTypeObject *base = PyODict_Check(obj) ? &PyODict_Type : &PyDict_Type;
    return t->tp_iter == base->tp_iter &&
           t->tp_as_mapping->mp_length == base->tp_as_mapping->mp_length &&
           t->tp_as_mapping->mp_subscript == base->tp_as_mapping->mp_subscript &&
           t->tp_as_sequence->sq_contains == base->tp_as_sequence->sq_contains &&
           has_methods_of(t, base);
}

static void see_rest(PyObject *obj, ing_gate_fact *f) {
    f->s = Py_TYPE(obj)->tp_name;
    if (PyTuple_Check(obj) && reads_as(obj, &PyTuple_Type)) {
        f->kind = ING_GATE_TUPLE;
    } else if (PyList_Check(obj) && reads_as(obj, &PyList_Type)) {
        f->kind = ING_GATE_LIST;
    } else if (PyDict_Check(obj) && reads_as_dict(obj)) {
        f->kind = ING_GATE_DICT;
    } else if (PyModule_Check(obj)) {
        f->kind = ING_GATE_MODULE;
    } else if (PyType_Check(obj)) {
        f->kind = ING_GATE_CLASS;
        f->s = ((PyTypeObject *)obj)->tp_name;
    } else {
        f->kind = ING_GATE_OBJECT;
    }
}

ing_status ing_py_see(ing_py_state *st, PyObject *obj, ing_gate_fact *f, ing_err *e) {
    memset(f, 0, sizeof *f);
    f->s = "";
    if (!obj) return ING_OK; /* ABSENT is 0 */
    if (obj == Py_None) {
        f->kind = ING_GATE_NONE;
        return ING_OK;
    }
    if (PyBool_Check(obj)) {
        f->kind = ING_GATE_BOOL;
        f->i = obj == Py_True;
        return ING_OK;
    }
    if (PyLong_CheckExact(obj)) return see_int(obj, f, e);
    if (PyFloat_CheckExact(obj)) {
        f->kind = ING_GATE_FLOAT;
        f->f = PyFloat_AS_DOUBLE(obj);
        return ING_OK;
    }
    if (PyUnicode_CheckExact(obj)) return see_str(obj, f);
    if (ing_py_is_array(st, obj)) {
        see_spec(((ing_py_array *)obj)->spec, f);
        return ING_OK;
    }
    if (ing_py_is_dtype(st, obj)) {
        f->kind = ING_GATE_DTYPE;
        f->dtype = ((ing_py_dtype *)obj)->id;
        return ING_OK;
    }
    if (see_tensor(st, obj, f) || see_struct(st, obj, f) || see_callable(st, obj, f))
        return ING_OK;
    f->id = ing_py_intrinsic_of(st, obj);
    if (f->id != ING_IN_NONE) {
        f->kind = ING_GATE_INTRINSIC;
        f->s = ing_intrinsic_name((ing_intrinsic)f->id);
        return ING_OK;
    }
    if (ing_py_is_enum_member(st, obj) && !compares_itself(obj))
        return see_enum(obj, f, e);
    ing_py_foreign_kind kind = ing_py_foreign_kind_of(st, obj);
    if (kind >= ING_FOREIGN_BUFFER) return see_foreign(st, obj, 0, f, e);
    if (kind == ING_FOREIGN_NUMBER && see_number(obj, f) == ING_OK) return ING_OK;
    if (ing_py_is_view(st, obj)) {
        f->kind = ING_GATE_VIEW;
        f->s = Py_TYPE(obj)->tp_name;
        return ING_OK;
    }
    see_rest(obj, f);
    return ING_OK;
}

ing_status ing_py_see_arg(ing_py_state *st, const ing_gate_param *p, PyObject *obj,
                          ing_gate_fact *f, ing_err *e) {
    uint32_t rank = p && p->passing == ING_PASS_ARRAY ? p->tensor.rank : 0;
    if (!rank || !obj || ing_py_is_array(st, obj) || !ing_py_is_foreign_array(st, obj))
        return ing_py_see(st, obj, f, e);
    memset(f, 0, sizeof *f);
    f->s = "";
    return see_foreign(st, obj, rank, f, e);
}

bool ing_py_fact_is_value(const ing_gate_fact *f) {
    switch (f->kind) {
    case ING_GATE_NONE:
    case ING_GATE_BOOL:
    case ING_GATE_INT:
    case ING_GATE_FLOAT:
    case ING_GATE_STR:
    case ING_GATE_DTYPE:
    case ING_GATE_TENSOR_TYPE:
    case ING_GATE_ENUM:
    case ING_GATE_INTRINSIC: return true;
    default: return false;
    }
}

enum { TAG_KIND = 1, TAG_TYPE, TAG_INT, TAG_FLOAT, TAG_TEXT, TAG_LEN, TAG_SPEC };

/* Only what the language sees of each kind: two objects that look alike digest alike. */
ing_hash128 ing_py_fact_digest(const ing_gate_fact *f) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, TAG_KIND,
                   (uint64_t)f->kind | (uint64_t)f->bound << 8 |
                       (uint64_t)f->requires_top_level << 9 |
                       (uint64_t)f->is_real_function << 10);
    switch (f->kind) {
    case ING_GATE_BOOL:
    case ING_GATE_INT:
        ing_hasher_u64(&h, TAG_TYPE, (uint64_t)f->dtype | (uint64_t)f->wide << 8);
        ing_hasher_u64(&h, TAG_INT, (uint64_t)f->i);
        break;
    case ING_GATE_FLOAT: {
        uint64_t bits;
        memcpy(&bits, &f->f, sizeof bits);
        ing_hasher_u64(&h, TAG_TYPE, f->dtype);
        ing_hasher_u64(&h, TAG_FLOAT, bits);
        break;
    }
    case ING_GATE_ENUM:
        ing_hasher_u64(&h, TAG_INT, (uint64_t)f->i);
        ing_hasher_u64(&h, TAG_LEN, (uint64_t)f->len | (uint64_t)f->wide << 8);
        if (f->len == ING_ENUM_PLAIN) ing_hasher_str(&h, TAG_TYPE, f->of);
        ing_hasher_item(&h, TAG_TEXT, f->s, f->n);
        break;
    case ING_GATE_STR: ing_hasher_item(&h, TAG_TEXT, f->s, f->n); break;
    case ING_GATE_INTRINSIC: ing_hasher_str(&h, TAG_TEXT, f->s); break;
    case ING_GATE_DTYPE:
    case ING_GATE_SCALAR: ing_hasher_u64(&h, TAG_TYPE, f->dtype); break;
    case ING_GATE_TENSOR:
    case ING_GATE_TENSOR_TYPE:
        ing_hasher_u64(&h, TAG_TYPE, (uint64_t)f->dtype | (uint64_t)f->elem_rank << 8);
        ing_hasher_u64(&h, TAG_SPEC,
                       (uint64_t)f->elem_shape[0] | (uint64_t)f->elem_shape[1] << 32);
        break;
    case ING_GATE_STRUCT_TYPE:
        ing_hasher_digest(&h, TAG_SPEC, f->structure->digest);
        break;
    case ING_GATE_ARRAY:
        ing_hasher_u64(&h, TAG_TYPE, f->dtype);
        ing_hasher_u64(&h, TAG_SPEC,
                       (uint64_t)f->ndim | (uint64_t)f->grad << 8 |
                           (uint64_t)f->elem_rank << 16);
        ing_hasher_item(&h, TAG_SPEC, f->layout, f->ndim);
        ing_hasher_u64(&h, TAG_SPEC,
                       (uint64_t)f->elem_shape[0] | (uint64_t)f->elem_shape[1] << 32);
        break;
    default: break;
    }
    return ing_hasher_done(&h);
}
