/* The digest of a code object without positions (R9a): what it does, not where it stands.
 * Our own walk, because marshal keeps line tables and interning. Together with the raw
 * lines it decides that a text is known without parsing it. */
#include "py/call/kernel.h"

enum {
    MAX_DEPTH = 200
}; /* of constants in constants; the compiler's own limit is lower */

enum {
    TAG_NONE = 1,
    TAG_TRUE,
    TAG_FALSE,
    TAG_ELLIPSIS,
    TAG_INT,
    TAG_FLOAT,
    TAG_COMPLEX,
    TAG_STR,
    TAG_BYTES,
    TAG_TUPLE,
    TAG_SET,
    TAG_CODE,
    TAG_INT_LONG,
    TAG_SLICE
};

static bool hash_const(ing_hasher *h, PyObject *o, int depth);

/* As it is stored, which is the same for equal text: lone surrogates have no UTF-8. */
static bool hash_text(ing_hasher *h, PyObject *o) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(o) < 0) return false;
#endif
    size_t unit = (size_t)PyUnicode_KIND(o), n = (size_t)PyUnicode_GET_LENGTH(o);
    ing_hasher_u64(h, TAG_STR, unit);
    ing_hasher_item(h, TAG_STR, PyUnicode_DATA(o), n * unit);
    return true;
}

static bool hash_int(ing_hasher *h, PyObject *o) {
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (v == -1 && PyErr_Occurred()) return false;
    if (!overflow) return ing_hasher_u64(h, TAG_INT, (uint64_t)v), true;
    PyObject *hex = PyNumber_ToBase(o, 16);
    Py_ssize_t n = 0;
    const char *s = hex ? PyUnicode_AsUTF8AndSize(hex, &n) : NULL;
    if (s) ing_hasher_item(h, TAG_INT_LONG, s, (size_t)n);
    Py_XDECREF(hex);
    return s != NULL;
}

static bool hash_tuple(ing_hasher *h, PyObject *o, int depth) {
    ing_hasher_u64(h, TAG_TUPLE, (uint64_t)PyTuple_GET_SIZE(o));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
        if (!hash_const(h, PyTuple_GET_ITEM(o, i), depth + 1)) return false;
    return true;
}

/* A constant from Python 3.14 on. */
static bool hash_slice(ing_hasher *h, PyObject *o, int depth) {
    const PySliceObject *s = (const PySliceObject *)o;
    ing_hasher_u64(h, TAG_SLICE, 0);
    return hash_const(h, s->start, depth + 1) && hash_const(h, s->stop, depth + 1) &&
           hash_const(h, s->step, depth + 1);
}

/* Members in the order of their digests, so that the hash seed does not matter. */
static bool hash_set(ing_hasher *h, PyObject *o, int depth) {
    PyObject *items = PySequence_List(o);
    if (!items) return false;
    uint64_t lo = 0, hi = 0;
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(items); i++) {
        ing_hasher one;
        ing_hasher_init(&one);
        ok = hash_const(&one, PyList_GET_ITEM(items, i), depth + 1);
        ing_hash128 d = ing_hasher_done(&one);
        lo += d.lo; /* a sum is the same in any order; members are distinct */
        hi += d.hi ^ (d.lo >> 1);
    }
    ing_hasher_u64(h, TAG_SET, (uint64_t)PyList_GET_SIZE(items));
    ing_hasher_u64(h, TAG_SET, lo);
    ing_hasher_u64(h, TAG_SET, hi);
    Py_DECREF(items);
    return ok;
}

/* Takes the reference. */
static bool hash_made(ing_hasher *h, PyObject *v, int depth) {
    bool ok = v && hash_const(h, v, depth + 1);
    Py_XDECREF(v);
    return ok;
}

/* What earlier versions keep as it is, later ones make when asked. */
static bool hash_variables(ing_hasher *h, PyCodeObject *c, int depth) {
#if PY_VERSION_HEX >= 0x030B0000
    return hash_made(h, PyCode_GetCode(c), depth) &&
           hash_made(h, PyCode_GetVarnames(c), depth) &&
           hash_made(h, PyCode_GetFreevars(c), depth) &&
           hash_made(h, PyCode_GetCellvars(c), depth) &&
           hash_const(h, c->co_exceptiontable, depth + 1);
#else
    return hash_const(h, c->co_code, depth + 1) &&
           hash_const(h, c->co_varnames, depth + 1) &&
           hash_const(h, c->co_freevars, depth + 1) &&
           hash_const(h, c->co_cellvars, depth + 1);
#endif
}

static bool hash_code(ing_hasher *h, PyObject *o, int depth) {
    PyCodeObject *c = (PyCodeObject *)o;
    const int counts[] = {c->co_flags, c->co_argcount, c->co_posonlyargcount,
                          c->co_kwonlyargcount};
    ing_hasher_item(h, TAG_CODE, counts, sizeof counts);
    return hash_const(h, c->co_consts, depth + 1) &&
           hash_const(h, c->co_names, depth + 1) &&
           hash_const(h, c->co_name, depth + 1) && hash_variables(h, c, depth);
}

static bool hash_const(ing_hasher *h, PyObject *o, int depth) {
    if (depth > MAX_DEPTH) return false;
    if (o == Py_None) return ing_hasher_u64(h, TAG_NONE, 0), true;
    if (o == Py_True) return ing_hasher_u64(h, TAG_TRUE, 0), true;
    if (o == Py_False) return ing_hasher_u64(h, TAG_FALSE, 0), true;
    if (o == Py_Ellipsis) return ing_hasher_u64(h, TAG_ELLIPSIS, 0), true;
    if (PyLong_CheckExact(o)) return hash_int(h, o);
    if (PyUnicode_CheckExact(o)) return hash_text(h, o);
    if (PyTuple_CheckExact(o)) return hash_tuple(h, o, depth);
    if (PyFrozenSet_CheckExact(o)) return hash_set(h, o, depth);
    if (PyCode_Check(o)) return hash_code(h, o, depth);
    if (PySlice_Check(o)) return hash_slice(h, o, depth);
    if (PyFloat_CheckExact(o)) {
        double d = PyFloat_AS_DOUBLE(o);
        ing_hasher_item(h, TAG_FLOAT, &d, sizeof d);
        return true;
    }
    if (PyComplex_CheckExact(o)) {
        Py_complex c = PyComplex_AsCComplex(o);
        ing_hasher_item(h, TAG_COMPLEX, &c, sizeof c);
        return true;
    }
    if (PyBytes_CheckExact(o)) {
        ing_hasher_item(h, TAG_BYTES, PyBytes_AS_STRING(o),
                        (size_t)PyBytes_GET_SIZE(o));
        return true;
    }
    return false;
}

int ing_py_code_digest(PyObject *code, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    bool ok = hash_const(&h, code, 0);
    *out = ing_hasher_done(&h);
    return ok ? 1 : PyErr_Occurred() ? -1 : 0;
}
