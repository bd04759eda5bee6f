/* Seeing one Python object: which kind of thing it is for the language, and the digest
 * of what was seen (R1). Used by the gate while compiling and by replay and guards
 * afterwards, so that both always answer alike. Runs no user code (R5): exact types, type
 * slots, and for arrays of others the protocol by which they offer themselves. */
#include "py/see/field_gate.h"
#include "py/array/foreign.h"
#include "py/call/kernel.h"
#include "py/array/struct.h"
#include "py/array/tensor.h"

#include <string.h>

ing_py_def *ing_py_def_of(ing_py_state *st, PyObject *obj) {
    if (!obj) return NULL;
    obj = ing_py_unbind(st, obj, NULL);
    if (Py_TYPE(obj) == st->host->func_type) return &((ing_py_func *)obj)->def;
    if (Py_TYPE(obj) == st->host->kernel_type) return &((ing_py_kernel *)obj)->def;
    return NULL;
}

/* May the class be one of enum's? Most are not, and that costs no look-up. */
static bool has_base_called(PyTypeObject *type, const char *name) {
    PyObject *mro = type->tp_flags & Py_TPFLAGS_HEAPTYPE ? type->tp_mro : NULL;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++)
        if (strcmp(((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_name, name) == 0)
            return true;
    return false;
}

int ing_py_is_enum_member(ing_py_state *st, PyObject *obj) {
    PyObject *cls = st->host->enum_class;
    if (!cls) {
        PyObject *module;
        if (!has_base_called(Py_TYPE(obj), "Enum")) return 0;
        int rc = ing_py_loaded("enum", &module);
        if (rc == 1) rc = ing_py_attr_maybe(module, "Enum", &cls);
        Py_XDECREF(module);
        if (rc != 1) return rc;
        if (!PyType_Check(cls)) Py_CLEAR(cls);
        Py_XSETREF(st->host->enum_class, cls);
    }
    return cls && PyType_IsSubtype(Py_TYPE(obj), (PyTypeObject *)cls);
}

int ing_py_is_atom(ing_py_state *st, PyObject *o) {
    if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) ||
        PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyType_Check(o) ||
        PyFunction_Check(o) || PyCFunction_Check(o) || ing_py_is_dtype(st, o) ||
        Py_TYPE(o) == st->host->func_type || Py_TYPE(o) == st->host->kernel_type ||
        ing_py_is_tensor_type(st, o) || ing_py_is_struct_type(st, o) ||
        ing_py_foreign_kind_of(st, o) == ING_FOREIGN_NUMBER)
        return 1;
    return ing_py_is_enum_member(st, o);
}

static ing_status see_int(PyObject *obj, ing_gate_fact *f, ing_err *e) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(obj, &overflow);
    if (v == -1 && PyErr_Occurred()) return ING_PYTHON;
    f->i = v;
    if (overflow) {
        unsigned long long u = PyLong_AsUnsignedLongLong(obj);
        if (u == (unsigned long long)-1 && PyErr_Occurred())
            return ing_py_took(PyExc_OverflowError)
                       ? ing_fail(e, ING_VALUE,
                                  "an integer constant does not fit in 64 bits")
                       : ING_PYTHON;
        f->i = (int64_t)u;
        f->wide = true;
    }
    f->kind = ING_GATE_INT;
    return ING_OK;
}

/* The UTF-8 of a str that holds lone surrogates, which the str itself cannot keep: the host
 * does, for such text is rare. Borrowed; NULL = raised. */
static PyObject *odd_text(ing_py_state *st, PyObject *obj) {
    if (!st->host->odd_texts && !(st->host->odd_texts = PyDict_New())) return NULL;
    PyObject *bytes;
    if (PyDict_GetItemRef(st->host->odd_texts, obj, &bytes) < 0) return NULL;
    if (!bytes) {
        bytes = ing_py_to_utf8(obj);
        if (bytes && PyDict_SetItem(st->host->odd_texts, obj, bytes) < 0)
            Py_CLEAR(bytes);
    }
    Py_XDECREF(bytes); /* the dict has it */
    return bytes;
}

static ing_status see_str(ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    Py_ssize_t n = 0;
    f->s = PyUnicode_AsUTF8AndSize(obj, &n);
    if (!f->s) {
        PyObject *odd =
            ing_py_took(PyExc_UnicodeEncodeError) ? odd_text(st, obj) : NULL;
        if (!odd) return ING_PYTHON;
        f->s = PyBytes_AS_STRING(odd);
        n = PyBytes_GET_SIZE(odd);
    }
    f->n = (uint32_t)n;
    f->kind = ING_GATE_STR;
    return ING_OK;
}

/* What a member of an enum is besides. */
static PyTypeObject *base_of_member(PyObject *obj) {
    return PyLong_Check(obj)      ? &PyLong_Type
           : PyUnicode_Check(obj) ? &PyUnicode_Type
                                  : &PyBaseObject_Type;
}

/* Of Python's own Flag, whose `&`, `|` and `^` are those of numbers? */
static bool is_of_flag(PyObject *method) {
    if (!method || !PyFunction_Check(method)) return false;
    PyObject *module = ((PyFunctionObject *)method)->func_module;
    return module && PyUnicode_Check(module) &&
           PyUnicode_CompareWithASCIIString(module, "enum") == 0;
}

/* Has the class operators of its own? */
static bool computes_itself(const ing_py_state *st, PyObject *obj) {
    static const PyNumberMethods none;
    static const size_t slots[] = {
#define SLOT(name) offsetof(PyNumberMethods, nb_##name)
        SLOT(add),      SLOT(subtract),     SLOT(multiply),    SLOT(remainder),
        SLOT(divmod),   SLOT(power),        SLOT(negative),    SLOT(positive),
        SLOT(absolute), SLOT(lshift),       SLOT(rshift),      SLOT(int),
        SLOT(float),    SLOT(floor_divide), SLOT(true_divide), SLOT(index),
#undef SLOT
    };
    static const ing_py_name bits[] = {ING_PY_NAME___and__, ING_PY_NAME___or__,
                                       ING_PY_NAME___xor__, ING_PY_NAME___invert__};
    PyTypeObject *type = Py_TYPE(obj), *base = base_of_member(obj);
    const char *own = (const char *)type->tp_as_number;
    const char *its = (const char *)(base->tp_as_number ? base->tp_as_number : &none);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (memcmp(own + slots[i], its + slots[i], sizeof(unaryfunc)) != 0) return true;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        PyObject *method = ing_py_class_has(st, type, bits[i]);
        if (method != ing_py_class_has(st, base, bits[i]) && !is_of_flag(method))
            return true;
    }
    return false;
}

/* A member that says by itself what it equals, or what it gives in arithmetic, is an object
 * like any other. */
static bool answers_itself(const ing_py_state *st, PyObject *obj) {
    return Py_TYPE(obj)->tp_richcompare != base_of_member(obj)->tp_richcompare ||
           computes_itself(st, obj);
}

/* Does `.value` of a member of an IntEnum, which is a property, give its number? */
static ing_status is_own_value(PyObject *obj, ing_gate_fact *f) {
    ing_gate_fact v = {0};
    ing_err ignored;
    PyObject *value;
    if (ing_py_attr_maybe(obj, "_value_", &value) < 0) return ING_PYTHON;
    ing_err_init(&ignored);
    ing_status s =
        value && PyLong_CheckExact(value) ? see_int(value, &v, &ignored) : ING_DECLINED;
    f->bound = s == ING_OK && v.i == f->i && v.wide == f->wide;
    ing_err_fini(&ignored);
    Py_XDECREF(value);
    return s == ING_PYTHON ? s : ING_OK;
}

static ing_status see_enum(ing_py_state *st, PyObject *obj, ing_gate_fact *f,
                           ing_err *e) {
    if (PyLong_Check(obj)) {
        ING_TRY(see_int(obj, f, e));
        ING_TRY(is_own_value(obj, f));
    }
    PyObject *name;
    if (ing_py_attr_of_maybe(st, obj, ING_PY_NAME__name_, &name) < 0) return ING_PYTHON;
    f->s = "?";
    f->n = 1;
    ing_status s = ING_OK;
    if (name && PyUnicode_Check(name))
        s = see_str(st, name, f); /* the member's own str lives as long as it */
    Py_XDECREF(name);
    ING_TRY(s);
    f->kind = ING_GATE_ENUM;
    f->len = PyLong_Check(obj)      ? ING_ENUM_INT
             : PyUnicode_Check(obj) ? ING_ENUM_STR
                                    : ING_ENUM_PLAIN;
    f->of = Py_TYPE(obj)->tp_name;
    f->flag = is_of_flag(ing_py_class_has(st, Py_TYPE(obj), ING_PY_NAME___invert__));
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

static bool see_callable(ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    PyObject *fn = ing_py_unbind(st, obj, NULL);
    if (Py_TYPE(fn) == st->host->func_type)
        f->kind = ING_GATE_FUNC;
    else if (Py_TYPE(fn) == st->host->kernel_type)
        f->kind = ING_GATE_KERNEL;
    else
        return false;
    f->bound = fn != obj;
    if (f->kind == ING_GATE_FUNC) {
        f->requires_top_level = ((ing_py_func *)fn)->requires_top_level;
        f->is_real_function = ((ing_py_func *)fn)->is_real_function;
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

/* Has a derived class a `+` or `*` of its own, as torch.Size has? */
static bool has_operators(PyObject *obj, PyTypeObject *base) {
    PyTypeObject *t = Py_TYPE(obj);
    const PyNumberMethods *n = t->tp_as_number;
    const PySequenceMethods *s = t->tp_as_sequence, *s0 = base->tp_as_sequence;
    return t != base &&
           ((n && (n->nb_add || n->nb_multiply)) || s->sq_concat != s0->sq_concat ||
            s->sq_repeat != s0->sq_repeat);
}

/* The methods that kernels know are the base's own. */
static bool has_methods_of(const ing_py_state *st, PyTypeObject *t,
                           PyTypeObject *base) {
    static const ing_py_name names[] = {ING_PY_NAME_keys, ING_PY_NAME_values,
                                        ING_PY_NAME_items, ING_PY_NAME_get};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ing_py_class_has(st, t, names[i]) != ing_py_class_has(st, base, names[i]))
            return false;
    return true;
}

/* An ordered dict has an order of its own, and else what a dict has. */
static bool reads_as_dict(const ing_py_state *st, PyObject *obj) {
    PyTypeObject *t = Py_TYPE(obj);
    if (t == &PyDict_Type || t == &PyODict_Type) return true;
    PyTypeObject *base = PyODict_Check(obj) ? &PyODict_Type : &PyDict_Type;
    return t->tp_iter == base->tp_iter &&
           t->tp_as_mapping->mp_length == base->tp_as_mapping->mp_length &&
           t->tp_as_mapping->mp_subscript == base->tp_as_mapping->mp_subscript &&
           t->tp_as_sequence->sq_contains == base->tp_as_sequence->sq_contains &&
           has_methods_of(st, t, base);
}

/* Has a class, derived from this one, its `in`, its iteration and its reversal from there? */
static bool holds_as(const ing_py_state *st, PyTypeObject *t, PyTypeObject *base) {
    static const ing_py_name names[] = {ING_PY_NAME___contains__,
                                        ING_PY_NAME___reversed__};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ing_py_class_has(st, t, names[i]) != ing_py_class_has(st, base, names[i]))
            return false;
    return PyType_IsSubtype(t, base) && t->tp_iter == base->tp_iter;
}

/* Does an object say by itself what is in it, or what it is in reverse? Of others `in` compares
 * the items, as that of ranges and deques does. No class statement makes a name with a dot. */
static bool says_what_is_in_it(const ing_py_state *st, PyTypeObject *t) {
    const PySequenceMethods *s = t->tp_as_sequence;
    if (!(s && s->sq_contains) && !ing_py_class_has(st, t, ING_PY_NAME___reversed__))
        return false;
    return t != &PyRange_Type && t != &PyDictKeys_Type && t != &PyDictValues_Type &&
           t != &PyDictItems_Type && strcmp(t->tp_name, "collections.deque") != 0 &&
           !holds_as(st, t, &PyList_Type) && !holds_as(st, t, &PyTuple_Type) &&
           !holds_as(st, t, &PyDict_Type) && !holds_as(st, t, &PyODict_Type);
}

static void see_rest(const ing_py_state *st, PyObject *obj, ing_gate_fact *f) {
    f->s = Py_TYPE(obj)->tp_name;
    if (PyTuple_Check(obj) && reads_as(obj, &PyTuple_Type)) {
        f->kind = ING_GATE_TUPLE;
        f->bound = has_operators(obj, &PyTuple_Type);
    } else if (PyList_Check(obj) && reads_as(obj, &PyList_Type)) {
        f->kind = ING_GATE_LIST;
        f->bound = has_operators(obj, &PyList_Type);
    } else if (PyDict_Check(obj) && reads_as_dict(st, obj)) {
        f->kind = ING_GATE_DICT;
    } else if (PyModule_Check(obj)) {
        f->kind = ING_GATE_MODULE;
    } else if (PyType_Check(obj)) {
        f->kind = ING_GATE_CLASS;
        f->s = ((PyTypeObject *)obj)->tp_name;
    } else {
        f->kind = ING_GATE_OBJECT;
        f->bound = says_what_is_in_it(st, Py_TYPE(obj));
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
    if (PyUnicode_CheckExact(obj)) return see_str(st, obj, f);
    if (ing_py_is_array(st, obj)) {
        see_spec(((ing_py_array *)obj)->spec, f);
        return ING_OK;
    }
    ing_status field = ing_py_see_field(st, obj, f, e);
    if (field != ING_DECLINED) return field;
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
    int member = ing_py_is_enum_member(st, obj);
    if (member < 0) return ING_PYTHON;
    if (member && !answers_itself(st, obj)) return see_enum(st, obj, f, e);
    if (ing_py_is_view(st, obj)) {
        f->kind = ING_GATE_VIEW;
        f->s = Py_TYPE(obj)->tp_name;
        return ING_OK;
    }
    ing_py_foreign_kind kind = ing_py_foreign_kind_of(st, obj);
    if (kind >= ING_FOREIGN_BUFFER) return see_foreign(st, obj, 0, f, e);
    if (kind == ING_FOREIGN_NUMBER) {
        ing_status s = see_number(obj, f);
        if (s != ING_DECLINED) return s;
    }
    see_rest(st, obj, f);
    return ING_OK;
}

ing_status ing_py_see_arg(ing_py_state *st, const ing_gate_param *p, PyObject *obj,
                          ing_gate_fact *f, ing_err *e) {
    uint32_t rank = p && p->passing == ING_PASS_ARRAY ? p->tensor.rank : 0;
    if (!rank || !obj || ing_py_is_array(st, obj) || ing_py_is_field(st, obj) ||
        !ing_py_is_foreign_array(st, obj))
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

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

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
    case ING_GATE_FLOAT:
        ing_hasher_u64(&h, TAG_TYPE, f->dtype);
        ing_hasher_u64(&h, TAG_FLOAT, bits_of(f->f));
        break;
    case ING_GATE_ENUM:
        ing_hasher_u64(&h, TAG_INT, (uint64_t)f->i);
        ing_hasher_u64(&h, TAG_LEN,
                       (uint64_t)f->len | (uint64_t)f->wide << 8 |
                           (uint64_t)f->flag << 9);
        if (f->len == ING_ENUM_PLAIN) ing_hasher_str(&h, TAG_TYPE, f->of);
        ing_hasher_item(&h, TAG_TEXT, f->s, f->n);
        break;
    case ING_GATE_STR: ing_hasher_item(&h, TAG_TEXT, f->s, f->n); break;
    case ING_GATE_INTRINSIC: ing_hasher_str(&h, TAG_TEXT, f->s); break;
    case ING_GATE_DTYPE:
    case ING_GATE_SCALAR: ing_hasher_u64(&h, TAG_TYPE, f->dtype); break;
    case ING_GATE_BUNDLE:
    case ING_GATE_TENSOR:
    case ING_GATE_TENSOR_TYPE:
        ing_hasher_u64(&h, TAG_TYPE, (uint64_t)f->dtype | (uint64_t)f->elem_rank << 8);
        ing_hasher_u64(&h, TAG_SPEC,
                       (uint64_t)f->elem_shape[0] | (uint64_t)f->elem_shape[1] << 32);
        if (f->kind == ING_GATE_BUNDLE && f->structure) {
            ing_hasher_digest(&h, TAG_SPEC, f->structure->digest);
            ing_hasher_u64(&h, TAG_LEN, f->ndim);
        }
        break;
    case ING_GATE_STRUCT_TYPE:
        ing_hasher_digest(&h, TAG_SPEC, f->structure->digest);
        break;
    case ING_GATE_FIELD:
        ing_hasher_digest(&h, TAG_SPEC, ing_place_digest(f->place));
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
