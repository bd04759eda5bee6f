/* Members of Python objects, read from where CPython keeps them. A launch reads the same
 * names of objects of the same class over and over; looking each up costs hundreds of
 * instructions, comparing the name at the place where it was last time a handful. Called
 * by guard.c with the GIL.
 *
 * What is remembered is only ever a hint:
 *  - a class counts as known while its version tag is the one seen. Tags are never given
 *    out twice, and any change of the class or of its bases takes the tag away;
 *  - an index into an instance's table counts only if the name stands there now; else the
 *    table is searched, by the name's hash.
 * So a hint is never stale, and no object is recognised by its address (R13). Everything
 * else goes to PyObject_GetAttr: properties, __getattr__, metaclass tricks, class
 * attributes, versions of Python whose tables are not known here. */
#include "py/call/guard.h"

#include <structmember.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && \
    !defined(Py_GIL_DISABLED)
#define HAS_TABLES 1
#else
#define HAS_TABLES 0
#endif

static ing_status get(PyObject *from, PyObject *name, PyObject **out) {
    return PyObject_GetOptionalAttr(from, name, out) < 0 ? ING_PYTHON : ING_OK;
}

static bool is_known(const ing_py_members *m, PyObject *of) {
    return Py_TYPE(of) == m->type && m->version &&
           Py_TYPE(of)->tp_version_tag == m->version;
}

static void forget(ing_py_members *m, PyObject *of, ing_py_fetch *f) {
    m->type = Py_TYPE(of);
    m->version = m->type->tp_version_tag;
    m->checked = false;
    for (uint32_t i = 0; i < m->n; i++) f[i].place = ING_MEMBER_UNKNOWN;
}

void ing_py_members_held(ing_py_members *m, PyObject *of) {
    if (is_known(m, of)) m->checked = true; /* else Python ran, and launched it too */
}

#if HAS_TABLES

/* CPython's own structures, as they are in the versions above; its headers show them only
 * to itself. Minor versions keep them. */
typedef struct entry {
    PyObject *key, *value; /* value: NULL in tables whose values are apart */
} entry;

typedef struct keys {
    Py_ssize_t refs;
    uint8_t log2_size, log2_index_bytes, kind;
    uint32_t version;
    Py_ssize_t usable, n;
    char indices[]; /* then the entries */
} keys;

typedef struct values {
#if PY_VERSION_HEX >= 0x030D0000
    uint8_t capacity, size, embedded, valid;
#endif
    PyObject *at[1]; /* and more */
} values;

enum { KEYS_GENERAL = 0, MANAGED_DICT = -3 };

/* An instance's attributes: names in order of insertion, values beside them or apart. */
typedef struct table {
    const keys *keys;
    const entry *entries;
    PyObject *const *values; /* NULL: in the entries */
    uint32_t n;
} table;

static void table_of(const void *of, const void *apart, table *t) {
    const keys *k = of;
    const values *v = apart;
    if (!k || k->kind == KEYS_GENERAL) return;
    t->keys = k;
    t->entries = (const entry *)&k->indices[(size_t)1 << k->log2_index_bytes];
    t->values = v ? v->at : NULL;
    t->n = (uint32_t)k->n;
#if PY_VERSION_HEX >= 0x030D0000
    if (v && v->capacity < t->n) t->n = v->capacity;
#endif
}

/* The dictionary of an instance; or NULL, and *apart are its values without one, if any. */
static PyObject *managed(PyObject *of, const void **apart) {
    char *dict = ((char **)of)[MANAGED_DICT];
#if PY_VERSION_HEX >= 0x030D0000
    const values *v = (const void *)(of + 1);
    if (Py_TYPE(of)->tp_flags & Py_TPFLAGS_INLINE_VALUES && v->valid) *apart = v;
#elif PY_VERSION_HEX >= 0x030C0000
    if ((uintptr_t)dict & 1) { /* marks values */
        *apart = dict + 1;
        dict = NULL;
    }
#else
    *apart = ((char **)of)[MANAGED_DICT - 1];
#endif
    return (PyObject *)dict;
}

static void locate(PyObject *of, table *t) {
    PyTypeObject *type = Py_TYPE(of);
    PyObject *dict = NULL;
    const void *apart = NULL;
    *t = (table){0};
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        dict = managed(of, &apart);
    else if (type->tp_dictoffset > 0)
        dict = *(PyObject **)((char *)of + type->tp_dictoffset);
    if (apart)
        table_of(((PyHeapTypeObject *)type)->ht_cached_keys, apart, t);
    else if (dict)
        table_of(((PyDictObject *)dict)->ma_keys, ((PyDictObject *)dict)->ma_values, t);
}

static PyObject *at_hint(const table *t, const ing_py_fetch *f) {
    if (f->at >= t->n || t->entries[f->at].key != f->name) return NULL;
    return t->values ? t->values[f->at] : t->entries[f->at].value;
}

/* Number i of the keys' indices: 1, 2, 4 or 8 bytes each; negative: no entry. */
static int64_t index_at(const keys *k, size_t i) {
    switch (k->log2_index_bytes - k->log2_size) {
    case 0: return ((const int8_t *)k->indices)[i];
    case 1: return ((const int16_t *)k->indices)[i];
    case 2: return ((const int32_t *)k->indices)[i];
    default: return ((const int64_t *)k->indices)[i];
    }
}

/* Finds the name as CPython's own look-up does: along the sequence of its hash, up to an
 * index that was never used. */
static void search(const table *t, ing_py_fetch *f) {
    enum { NEVER_USED = -1, SHIFT = 5 };
    f->at = UINT32_MAX;
    if (!t->keys) return;
    size_t hash = (size_t)PyObject_Hash(f->name); /* of a str: known, never fails */
    size_t mask = ((size_t)1 << t->keys->log2_size) - 1;
    size_t i = hash & mask, rest = hash;
    for (size_t steps = 0; steps <= mask + sizeof hash * 8; steps++) {
        int64_t at = index_at(t->keys, i);
        if (at == NEVER_USED) return;
        if (at >= 0 && at < t->n && t->entries[at].key == f->name) {
            f->at = (uint32_t)at;
            return;
        }
        rest >>= SHIFT;
        i = (i * 5 + rest + 1) & mask;
    }
}

/* Where `value`, the attribute just read, is found in instances of this class. */
static void learn(PyObject *of, const table *t, PyObject *value, ing_py_fetch *f) {
    PyTypeObject *type = Py_TYPE(of);
    if (f->place != ING_MEMBER_UNKNOWN) return;
    f->place = ING_MEMBER_ANY;
    if (type == &PyMethod_Type && value == PyMethod_GET_SELF(of) &&
        PyUnicode_CompareWithASCIIString(f->name, "__self__") == 0) {
        f->at = (uint32_t)offsetof(PyMethodObject, im_self);
        f->place = ING_MEMBER_SLOT;
    }
    if (type->tp_getattro != PyObject_GenericGetAttr || !value) return;
    PyObject *in_class = _PyType_Lookup(type, f->name); /* borrowed */
    if (in_class && Py_IS_TYPE(in_class, &PyMemberDescr_Type)) {
        const PyMemberDef *member = ((PyMemberDescrObject *)in_class)->d_member;
        if (member->type != T_OBJECT_EX || member->offset <= 0) return;
        if (!PyType_IsSubtype(type, PyDescr_TYPE(in_class))) return;
        f->at = (uint32_t)member->offset;
        f->place = ING_MEMBER_SLOT;
        return;
    }
    /* A descriptor of the class that can be assigned to goes first. What is of a class written
     * in Python may become one, and the version of that class is not looked at. */
    if (in_class && (Py_TYPE(in_class)->tp_descr_set ||
                     Py_TYPE(in_class)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return;
    search(t, f);
    if (at_hint(t, f) == value) f->place = ING_MEMBER_TABLE;
}

/* Those that stand where they stood, up to the first that does not; how many. */
static uint32_t read_in_place(const table *t, const ing_py_fetch *f, uint32_t n,
                              PyObject **out) {
    const entry *entries = t->entries;
    PyObject *const *apart = t->values;
    uint32_t i = 0, size = apart ? t->n : 0;
    for (; i < n; i++) {
        uint32_t at = f[i].at;
        if (f[i].place != ING_MEMBER_TABLE || at >= size) break;
        PyObject *o = apart[at];
        if (!o || entries[at].key != f[i].name) break;
        out[i] = Py_NewRef(o);
    }
    return i;
}

ing_status ing_py_members_get(ing_py_members *m, ing_py_fetch *f, PyObject *of,
                              PyObject **out) {
    table t;
    if (!is_known(m, of)) forget(m, of, f);
    locate(of, &t);
    for (uint32_t i = read_in_place(&t, f, m->n, out); i < m->n; i++) {
        PyObject *o = NULL;
        if (f[i].place == ING_MEMBER_TABLE) {
            o = at_hint(&t, &f[i]);
            if (!o) {
                search(&t, &f[i]);
                o = at_hint(&t, &f[i]);
            }
        } else if (f[i].place == ING_MEMBER_SLOT)
            o = *(PyObject **)((char *)of + f[i].at);
        if (o) {
            out[i] = Py_NewRef(o);
            continue;
        }
        ING_TRY(get(of, f[i].name, &out[i]));
        /* Python may have run, and changed both the class and the table. */
        if (!is_known(m, of)) forget(m, of, f);
        locate(of, &t);
        learn(of, &t, out[i], &f[i]);
    }
    return ING_OK;
}

#else

ing_status ing_py_members_get(ing_py_members *m, ing_py_fetch *f, PyObject *of,
                              PyObject **out) {
    for (uint32_t i = 0; i < m->n; i++) ING_TRY(get(of, f[i].name, &out[i]));
    if (!is_known(m, of)) forget(m, of, f);
    return ING_OK;
}

#endif
