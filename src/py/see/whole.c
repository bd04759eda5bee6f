/* Values as a whole (R2): what is handed to a call made while compiling is compared by all
 * that it holds, if it is immutable all the way down: numbers, text, bytes, None, members of
 * enums, dtypes, NumPy scalars, tuples, frozensets and ranges of these, frozen dataclasses.
 * Everything else has one answer, "can change", and then the call is the question. Used by
 * the gate, replay and guards, which must always answer alike. Runs no user code. */
#include "py/array/foreign.h"
#include "py/call/kernel.h"
#include "py/array/tensor.h"

#include <stdlib.h>
#include <string.h>

/* Deeper or larger ones count as changing: a guard must stay cheap. */
enum { MAX_DEPTH = 16, MAX_ITEMS = 1 << 16 };

enum {
    TAG_KIND = 1,
    TAG_FACT,
    TAG_INT,
    TAG_BITS,
    TAG_TEXT,
    TAG_BYTES,
    TAG_ITEM,
    TAG_CLASS,
    TAG_CHANGES
};

typedef struct whole {
    ing_py_state *st;
    ing_py_whole_kind kind; /* the loosest of its parts */
    uint32_t items;
    bool plain;       /* nothing of the user's classes: these count as changing */
    uint64_t classes; /* by address and version, which are never those of two */
} whole;

static bool loosen(whole *w, ing_py_whole_kind k) {
    if (k < w->kind) w->kind = k;
    return w->kind != ING_WHOLE_CHANGES;
}

/* Adds a part. False: raised, or it can change (w->kind says which). */
static bool add(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h);

static bool add_number(PyObject *obj, ing_hasher *h) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(obj, &overflow);
    if (v == -1 && PyErr_Occurred()) return false;
    if (!overflow) {
        ing_hasher_u64(h, TAG_INT, (uint64_t)v);
        return true;
    }
    PyObject *text = PyNumber_ToBase(obj, 16);
    const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
    if (s) ing_hasher_str(h, TAG_TEXT, s);
    Py_XDECREF(text);
    return s != NULL;
}

static void add_double(double d, ing_hasher *h) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    ing_hasher_u64(h, TAG_BITS, bits);
}

static bool add_text(PyObject *obj, ing_hasher *h) {
    PyObject *bytes = PyUnicode_AsEncodedString(obj, "utf-8", "surrogatepass");
    if (!bytes) return false;
    ing_hasher_item(h, TAG_TEXT, PyBytes_AS_STRING(bytes),
                    (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return true;
}

static bool add_tuple(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h) {
    Py_ssize_t n = PyTuple_GET_SIZE(obj);
    ing_hasher_u64(h, TAG_ITEM, (uint64_t)n);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!add(w, PyTuple_GET_ITEM(obj, i), depth, h)) return false;
    return true;
}

static int digest_order(const void *a, const void *b) {
    const ing_hash128 *x = a, *y = b;
    if (x->hi != y->hi) return x->hi < y->hi ? -1 : 1;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* The order in which a set gives its items means nothing. */
static bool add_set(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h) {
    PyObject *items = PySequence_Tuple(obj);
    if (!items) return false;
    size_t n = (size_t)PyTuple_GET_SIZE(items);
    ing_hash128 *digests = ing_calloc(n + 1, sizeof *digests);
    bool ok = digests != NULL;
    if (!ok) PyErr_NoMemory();
    for (size_t i = 0; ok && i < n; i++) {
        ing_hasher one;
        ing_hasher_init(&one);
        ok = add(w, PyTuple_GET_ITEM(items, (Py_ssize_t)i), depth, &one);
        if (ok) digests[i] = ing_hasher_done(&one);
    }
    Py_DECREF(items);
    if (ok) {
        qsort(digests, n, sizeof *digests, digest_order);
        ing_hasher_u64(h, TAG_ITEM, n);
        for (size_t i = 0; i < n; i++) ing_hasher_digest(h, TAG_ITEM, digests[i]);
    }
    ing_free(digests);
    return ok;
}

static bool add_attrs(whole *w, PyObject *obj, const char *const *names, uint32_t depth,
                      ing_hasher *h) {
    for (; *names; names++) {
        PyObject *v = ing_py_attr(obj, *names);
        bool ok = v && add(w, v, depth, h);
        Py_XDECREF(v);
        if (!ok) return false;
    }
    return true;
}

/* ---- what classes hold ---------------------------------------------------------------------- */

enum { MAX_CLASSES = 1024 }; /* whose verdicts are kept */

static bool is_stdlib(PyTypeObject *type) {
    static const char *const homes[] = {"enum", "functools", "types"};
    PyObject *home, *key = PyUnicode_InternFromString("__module__");
    int rc = key ? PyDict_GetItemRef(type->tp_dict, key, &home) : -1;
    bool found = false;
    for (size_t i = 0; rc == 1 && i < sizeof homes / sizeof *homes; i++)
        found |= PyUnicode_Check(home) &&
                 PyUnicode_CompareWithASCIIString(home, homes[i]) == 0;
    if (rc == 1) Py_DECREF(home);
    Py_XDECREF(key);
    return found; /* the caller sees what was raised */
}

static bool is_underscore(PyObject *name, Py_ssize_t at) {
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    return PyUnicode_READ_CHAR(name, at < 0 ? n + at : at) == '_';
}

/* What Python and its enum, abc and dataclasses keep in a class. */
static bool is_pythons_name(PyObject *name, bool of_enum) {
    if (!PyUnicode_Check(name) || PyUnicode_GET_LENGTH(name) < 3) return false;
    if (!is_underscore(name, 0)) return false;
    if (PyUnicode_CompareWithASCIIString(name, "_abc_impl") == 0) return true;
    return is_underscore(name, -1) &&
           (of_enum || (is_underscore(name, 1) && is_underscore(name, -2)));
}

/* Is it immutable, and no member of the user's classes, which can be changed by force? 1, 0 or -1 =
 * raised. */
static int is_plain_value(const whole *w, PyObject *value) {
    whole inner = {.st = w->st, .kind = ING_WHOLE_PLAIN, .plain = true};
    ing_hasher ignored;
    ing_hasher_init(&ignored);
    if (add(&inner, value, 1, &ignored)) return 1;
    return inner.kind == ING_WHOLE_CHANGES ? 0 : -1;
}

/* An object of the class that the class itself has: `Vec.ZERO`, members of enums. */
static int is_plain_object(const whole *w, PyObject *obj, PyObject *fields) {
    int member = ing_py_is_enum_member(w->st, obj), plain = member < 0 ? -1 : 1;
    PyObject *names = member > 0 ? Py_BuildValue("(s)", "_value_")
                      : fields   ? PySequence_Tuple(fields)
                                 : PyTuple_New(0);
    if (!names) return -1;
    for (Py_ssize_t i = 0; plain == 1 && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *v;
        if (PyObject_GetOptionalAttr(obj, PyTuple_GET_ITEM(names, i), &v) < 0)
            plain = -1;
        else if (v)
            plain = is_plain_value(w, v);
        Py_XDECREF(v);
    }
    Py_DECREF(names);
    return plain;
}

/* Is it code, which may read anything and is not looked into, or a value that stays as it is? 1, 0
 * or -1 = raised. */
static int is_constant(const whole *w, PyTypeObject *cls, PyObject *fields,
                       PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (type->tp_descr_get)
        return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || is_stdlib(type);
    if (PyType_Check(value))
        return !(((PyTypeObject *)value)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return type == cls ? is_plain_object(w, value, fields) : is_plain_value(w, value);
}

/* The same of all that the class and its bases hold, but for the fields of a dataclass: each
 * object has its own. */
static int holds_constants(const whole *w, PyTypeObject *cls, PyTypeObject *of,
                           PyObject *fields) {
    int constant = 1;
    PyObject *enum_class = w->st->host->enum_class;
    bool enums = enum_class && PyType_IsSubtype(of, (PyTypeObject *)enum_class);
    for (Py_ssize_t i = 0; constant == 1 && i < PyTuple_GET_SIZE(cls->tp_mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(cls->tp_mro, i);
        PyObject *dict, *name, *value;
        Py_ssize_t at = 0;
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
        if (!(dict = PyDict_Copy(base->tp_dict))) return -1;
        while (constant == 1 && PyDict_Next(dict, &at, &name, &value)) {
            int field = fields ? PyDict_Contains(fields, name) : 0;
            if (field || is_pythons_name(name, enums)) {
                constant = field < 0 ? -1 : 1;
                continue;
            }
            constant = is_constant(w, of, fields, value);
            if (PyErr_Occurred()) constant = -1;
        }
        Py_DECREF(dict);
    }
    return constant;
}

/* Has a field of the dataclass metadata? Those are the user's dict, which can change in place. */
static int has_metadata(PyObject *fields) {
    PyObject *all = PyDict_Values(fields), *metadata;
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; all && n == 0 && i < PyList_GET_SIZE(all); i++) {
        int rc = ing_py_attr_maybe(PyList_GET_ITEM(all, i), "metadata", &metadata);
        n = rc < 1 ? rc : PyObject_Size(metadata);
        if (rc == 1) Py_DECREF(metadata);
    }
    Py_XDECREF(all);
    return !all || n < 0 ? -1 : n > 0;
}

/* Is nothing that can be changed in place reached by way of the class: no list, no other class?
 * Changes of what it holds take its version away, so the verdict is that of its version. */
static int is_constant_class(const whole *w, PyTypeObject *cls, PyObject *fields,
                             ing_hash128 key) {
    ing_py_host *h = w->st->host;
    PyTypeObject *meta = Py_TYPE(cls);
    uint32_t known = ing_map_get(&h->class_verdicts, key);
    if (known) return known == 2;
    int constant = holds_constants(w, cls, cls, fields);
    if (constant == 1 && fields) {
        int metadata = has_metadata(fields);
        constant = metadata < 0 ? -1 : !metadata;
    }
    if (constant == 1 && meta != &PyType_Type)
        constant = holds_constants(w, meta, cls, NULL);
    if (constant < 0) return -1;
    if (h->n_class_verdicts++ == MAX_CLASSES) {
        ing_map_fini(&h->class_verdicts);
        ing_map_init(&h->class_verdicts);
        h->n_class_verdicts = 1;
    }
    if (!ing_map_put(&h->class_verdicts, key, constant ? 2 : 1)) {
        PyErr_NoMemory();
        return -1;
    }
    return constant;
}

/* By name: that it is this very class is for the guard to see. Its version, which any change
 * of it or its bases takes away, is given out when something is looked up in it. */
static bool add_class(whole *w, PyTypeObject *cls, PyObject *fields, uint32_t depth,
                      ing_hasher *h) {
    static const char *const names[] = {"__module__", "__qualname__", NULL};
    PyTypeObject *meta = Py_TYPE(cls);
    (void)ing_py_class_has(w->st, cls, ING_PY_NAME___name__);
    (void)ing_py_class_has(w->st, meta, ING_PY_NAME___name__);
    if (!cls->tp_version_tag || !meta->tp_version_tag)
        return loosen(w, ING_WHOLE_CHANGES);
    uint64_t now[4] = {(uint64_t)(uintptr_t)cls, cls->tp_version_tag,
                       (uint64_t)(uintptr_t)meta, meta->tp_version_tag};
    ing_hash128 version = ing_hash(now, sizeof now);
    uint64_t all[2] = {w->classes, version.lo};
    w->classes = ing_hash(all, sizeof all).lo;
    int constant = is_constant_class(w, cls, fields, version);
    if (constant != 1) return constant == 0 && loosen(w, ING_WHOLE_CHANGES);
    return add_attrs(w, (PyObject *)cls, names, depth, h);
}

/* ---- objects of the user's classes -------------------------------------------------------- */

/* What Python itself keeps in a member of an enum. */
static const char *const of_members[] = {"_value_",      "_name_",     "__objclass__",
                                         "_sort_order_", "_inverted_", NULL};

/* Is the name one of a dataclass's fields; without these, one of a member's? -1: raised. */
static int is_own_name(PyObject *name, PyObject *fields) {
    if (fields) return PyDict_Contains(fields, name);
    for (const char *const *n = of_members; PyUnicode_Check(name) && *n; n++)
        if (PyUnicode_CompareWithASCIIString(name, *n) == 0) return 1;
    return 0;
}

static int all_own_names(PyObject *names, PyObject *fields) {
    PyObject *list = PySequence_Tuple(names);
    int own = list ? 1 : -1;
    for (Py_ssize_t i = 0; own == 1 && i < PyTuple_GET_SIZE(list); i++)
        own = is_own_name(PyTuple_GET_ITEM(list, i), fields);
    Py_XDECREF(list);
    return own;
}

/* Numbers and text that a class is derived from are immutable, and a member of an enum has
 * those of its value. */
static bool extends_atom(PyTypeObject *type) {
    return PyType_FastSubclass(type, Py_TPFLAGS_LONG_SUBCLASS) ||
           PyType_FastSubclass(type, Py_TPFLAGS_UNICODE_SUBCLASS) ||
           PyType_FastSubclass(type, Py_TPFLAGS_BYTES_SUBCLASS) ||
           PyType_IsSubtype(type, &PyFloat_Type);
}

/* Have its instances slots of these names, attributes, and nothing that a list, a dict or C
 * code keeps in them? */
static int has_own_slots(PyTypeObject *type, PyObject *fields) {
    Py_ssize_t size = sizeof(PyObject);
    for (PyTypeObject *t = type; t && t->tp_flags & Py_TPFLAGS_HEAPTYPE;
         t = t->tp_base) {
        PyObject *slots = ((PyHeapTypeObject *)t)->ht_slots;
        int own = slots ? all_own_names(slots, fields) : 1;
        if (own != 1) return own;
        if (slots) size += PyObject_Size(slots) * (Py_ssize_t)sizeof(PyObject *);
    }
    if (type->tp_dictoffset > 0) size += (Py_ssize_t)sizeof(PyObject *);
    if (type->tp_weaklistoffset > 0) size += (Py_ssize_t)sizeof(PyObject *);
    return (type->tp_basicsize == size && type->tp_itemsize == 0) ||
           (!fields && extends_atom(type));
}

/* Has an object no more than its fields: no cache, nothing that somebody put there? */
static int has_own_only(PyObject *obj, PyObject *fields) {
    int own = has_own_slots(Py_TYPE(obj), fields);
    if (own != 1 || !Py_TYPE(obj)->tp_dictoffset) return own;
    PyObject *dict = ing_py_attr(obj, "__dict__");
    own = !dict ? -1 : PyDict_Check(dict) ? all_own_names(dict, fields) : 0;
    Py_XDECREF(dict);
    return own;
}

/* The class, and whether that and the fields are all that there is. */
static bool add_owner(whole *w, PyObject *obj, PyObject *fields, uint32_t depth,
                      ing_hasher *h) {
    if (w->plain) return loosen(w, ING_WHOLE_CHANGES);
    if (!loosen(w, ING_WHOLE_CLASSED) || !add_class(w, Py_TYPE(obj), fields, depth, h))
        return false;
    int own = has_own_only(obj, fields);
    return own == 1 || (own == 0 && loosen(w, ING_WHOLE_CHANGES));
}

static bool add_enum(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h) {
    static const char *const names[] = {"_name_", "_value_", NULL};
    return add_owner(w, obj, NULL, depth, h) && add_attrs(w, obj, names, depth, h);
}

/* Made by @dataclass(frozen=True), with nothing of its own about attributes: 1 and its
 * fields, borrowed; 0: it is not; -1 = raised. */
static int frozen_fields(const ing_py_state *st, PyObject *obj, PyObject **out) {
    PyTypeObject *type = Py_TYPE(obj);
    *out = NULL;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        type->tp_getattro != PyObject_GenericGetAttr)
        return 0;
    PyObject *params = ing_py_class_has(st, type, ING_PY_NAME___dataclass_params__);
    PyObject *frozen = NULL;
    int rc = params ? ing_py_attr_of_maybe(st, params, ING_PY_NAME_frozen, &frozen) : 0;
    bool yes = frozen == Py_True;
    Py_XDECREF(frozen);
    if (rc < 0 || !yes) return rc < 0 ? -1 : 0;
    PyObject *fields = ing_py_class_has(st, type, ING_PY_NAME___dataclass_fields__);
    *out = fields && PyDict_CheckExact(fields) ? fields : NULL;
    return *out != NULL;
}

static bool add_frozen(whole *w, PyObject *obj, PyObject *fields, uint32_t depth,
                       ing_hasher *h) {
    if (!add_owner(w, obj, fields, depth, h)) return false;
    PyObject *names = PySequence_Tuple(fields); /* its keys, in order */
    bool ok = names != NULL;
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *v;
        if (PyObject_GetOptionalAttr(obj, PyTuple_GET_ITEM(names, i), &v) == 0) {
            ok = loosen(w, ING_WHOLE_CHANGES);
            break;
        }
        ok = v && add_text(PyTuple_GET_ITEM(names, i), h) && add(w, v, depth, h);
        Py_XDECREF(v);
    }
    Py_XDECREF(names);
    return ok;
}

/* Dtypes, types of vectors, NumPy's numbers: what the language sees of them is all. Others
 * of NumPy's scalars (dates, records, text, numbers that no kernel has) are not seen so. */
static bool is_seen_whole(ing_py_state *st, PyObject *obj) {
    return ing_py_is_dtype(st, obj) || ing_py_is_tensor_type(st, obj) ||
           (ing_py_foreign_kind_of(st, obj) == ING_FOREIGN_NUMBER &&
            !(Py_TYPE(obj)->tp_flags & Py_TPFLAGS_HEAPTYPE));
}

static bool add_seen(whole *w, PyObject *obj, ing_hasher *h) {
    ing_gate_fact f;
    ing_err ignored;
    ing_err_init(&ignored);
    ing_status s = ing_py_see(w->st, obj, &f, &ignored);
    ing_err_fini(&ignored);
    if (s == ING_PYTHON) return false;
    if (s != ING_OK || !ing_py_fact_is_value(&f)) return loosen(w, ING_WHOLE_CHANGES);
    ing_hasher_digest(h, TAG_FACT, ing_py_fact_digest(&f));
    return true;
}

typedef enum part {
    PART_NONE = 1,
    PART_BOOL,
    PART_INT,
    PART_FLOAT,
    PART_COMPLEX,
    PART_TEXT,
    PART_BYTES,
    PART_TUPLE,
    PART_SET,
    PART_RANGE,
    PART_ENUM,
    PART_SEEN,
    PART_DATA,
} part;

static bool add_rest(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h) {
    static const char *const bounds[] = {"start", "stop", "step", NULL};
    if (PyRange_Check(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_RANGE);
        return add_attrs(w, obj, bounds, depth, h);
    }
    int member = ing_py_is_enum_member(w->st, obj);
    if (member < 0) return false;
    if (member) {
        ing_hasher_u64(h, TAG_KIND, PART_ENUM);
        return add_enum(w, obj, depth, h);
    }
    if (is_seen_whole(w->st, obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_SEEN);
        return add_seen(w, obj, h);
    }
    PyObject *fields;
    if (frozen_fields(w->st, obj, &fields) < 0) return false;
    if (!fields) return loosen(w, ING_WHOLE_CHANGES);
    ing_hasher_u64(h, TAG_KIND, PART_DATA);
    return add_frozen(w, obj, fields, depth, h);
}

static bool add(whole *w, PyObject *obj, uint32_t depth, ing_hasher *h) {
    if (depth == MAX_DEPTH || ++w->items > MAX_ITEMS)
        return loosen(w, ING_WHOLE_CHANGES);
    depth++;
    if (obj == Py_None || obj == Py_Ellipsis) {
        ing_hasher_u64(h, TAG_KIND, PART_NONE | (uint64_t)(obj == Py_None) << 8);
        return true;
    }
    if (PyBool_Check(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_BOOL | (uint64_t)(obj == Py_True) << 8);
        return true;
    }
    if (PyLong_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_INT);
        return add_number(obj, h);
    }
    if (PyFloat_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_FLOAT);
        add_double(PyFloat_AS_DOUBLE(obj), h);
        return true;
    }
    if (PyUnicode_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_TEXT);
        return add_text(obj, h);
    }
    if (PyTuple_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_TUPLE);
        return add_tuple(w, obj, depth, h);
    }
    if (PyComplex_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_COMPLEX);
        add_double(PyComplex_RealAsDouble(obj), h);
        add_double(PyComplex_ImagAsDouble(obj), h);
        return true;
    }
    if (PyBytes_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_BYTES);
        ing_hasher_item(h, TAG_BYTES, PyBytes_AS_STRING(obj),
                        (size_t)PyBytes_GET_SIZE(obj));
        return true;
    }
    if (PyFrozenSet_CheckExact(obj)) {
        ing_hasher_u64(h, TAG_KIND, PART_SET);
        return add_set(w, obj, depth, h);
    }
    return add_rest(w, obj, depth, h);
}

/* What a Python function has of its own besides its text: arguments that a call leaves out,
 * and attributes, which can change (functools.wraps leaves the function that is called). */
static bool add_function(whole *w, PyObject *fn, ing_hasher *h) {
    if (ing_py_has_attributes(fn)) return loosen(w, ING_WHOLE_CHANGES);
    PyObject *defaults = PyFunction_GET_DEFAULTS(fn);
    PyObject *named = PyFunction_GET_KW_DEFAULTS(fn), *name, *v;
    if (defaults && PyTuple_Check(defaults) && !add_tuple(w, defaults, 1, h))
        return false;
    Py_ssize_t pos = 0;
    if (!named || !PyDict_Check(named)) return true;
    while (PyDict_Next(named, &pos, &name, &v))
        if (!add(w, name, 1, h) || !add(w, v, 1, h)) return false;
    return true;
}

/* One of the listed functions: which. */
static bool add_listed(whole *w, PyObject *obj, ing_hasher *h) {
    ing_hash128 digest;
    int known = ing_py_callable_digest(w->st, obj, &digest);
    if (known == 1) ing_hasher_digest(h, TAG_FACT, digest);
    return known == 1 || (known == 0 && loosen(w, ING_WHOLE_CHANGES));
}

static bool add_callable(whole *w, PyObject *obj, ing_hasher *h) {
    if (PyMethod_Check(obj) && PyFunction_Check(PyMethod_GET_FUNCTION(obj)))
        return add(w, PyMethod_GET_SELF(obj), 1, h) &&
               add_function(w, PyMethod_GET_FUNCTION(obj), h);
    if (PyFunction_Check(obj)) return add_function(w, obj, h);
    PyObject *self = ing_py_pure_method_self(obj);
    if (self && !PyType_Check(self) && !add(w, self, 1, h)) return false;
    return add_listed(w, obj, h);
}

ing_hash128 ing_py_whole_changes(void) {
    ing_hasher h;
    ing_hasher_init(&h);
    ing_hasher_u64(&h, TAG_CHANGES, 1);
    return ing_hasher_done(&h);
}

ing_status ing_py_whole_of(ing_py_state *st, PyObject *obj, ing_py_whole *out) {
    whole w = {.st = st, .kind = ING_WHOLE_PLAIN};
    ing_hasher h;
    ing_hasher_init(&h);
    bool ok = false;
    ing_py_callable kind = obj ? ing_py_callable_kind(obj) : ING_PY_CALL_NEVER;
    if (kind == ING_PY_CALL_RAISED) return ING_PYTHON;
    if (!obj)
        w.kind = ING_WHOLE_CHANGES;
    else if (kind == ING_PY_CALL_PURE || kind == ING_PY_CALL_RECORDED ||
             ing_py_is_live_builtin(obj) || ing_py_makes_text(obj))
        ok = add_callable(&w, obj, &h);
    else
        ok = add(&w, obj, 0, &h);
    if (!ok && w.kind != ING_WHOLE_CHANGES) return ING_PYTHON;
    out->kind = w.kind;
    out->classes = w.classes;
    out->answer =
        w.kind == ING_WHOLE_CHANGES ? ing_py_whole_changes() : ing_hasher_done(&h);
    return ING_OK;
}
