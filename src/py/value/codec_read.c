/* Bytes that codec.c wrote back to values, with a stack of our own instead of recursion.
 * Called by the file cache with bytes that anybody may have written. Must never read outside
 * them, take memory that they do not justify, hash for longer than they are long, or call a
 * function that they name. */
#include "py/value/codec.h"

#include <string.h>

typedef struct open_value {
    PyObject *of;    /* owned: under construction */
    PyObject *key;   /* owned: of a dict, waiting for its value */
    uint64_t left;   /* values to come, for a dict two per item */
    Py_ssize_t next; /* where the next one goes */
    uint32_t number; /* among what is kept; not kept: UINT32_MAX */
    bool in_key;     /* it is a key of a dict, or in one */
} open_value;

typedef struct decoder {
    ing_codec_in *in;
    uint64_t promised; /* values still to begin: each takes a byte at least */
    ing_vec(open_value) stack;
    ing_vec(PyObject *) known; /* owned: what is kept; NULL: not whole yet */
} decoder;

static PyObject *bad(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

/* ---- the way in ------------------------------------------------------------------------------ */

/* At least n bytes at hand, which there are. */
static int stage(ing_codec_in *in, size_t n) {
    if (in->n >= n) return 0; /* as always when all of it lies in memory */
    size_t room = ING_CODEC_STAGE - in->n;
    size_t more = in->rest < room ? (size_t)in->rest : room;
    if (in->n) memmove(in->stage, in->p, in->n);
    if (in->get(in->self, in->stage + in->n, more) < 0) return -1;
    in->p = in->stage;
    in->n += more;
    in->rest -= more;
    return 0;
}

const uint8_t *ing_codec_take(ing_codec_in *in, size_t n) {
    if (n > ing_codec_left(in) || n > ING_CODEC_TAKE) {
        bad("stored value: it ends too early");
        return NULL;
    }
    if (stage(in, n) < 0) return NULL;
    const uint8_t *at = in->p;
    in->p += n;
    in->n -= n;
    return at;
}

int ing_codec_take_into(ing_codec_in *in, void *p, uint64_t n) {
    if (n > ing_codec_left(in)) {
        bad("stored value: it ends too early");
        return -1;
    }
    if (n <= ING_CODEC_TAKE && stage(in, (size_t)n) < 0) return -1;
    size_t here = n < in->n ? (size_t)n : in->n;
    if (here) memcpy(p, in->p, here);
    in->p += here;
    in->n -= here;
    n -= here;
    in->rest -= n;
    return n ? in->get(in->self, (uint8_t *)p + here, (size_t)n) : 0;
}

/* A length, which cannot be above what is left. */
static int take_length(decoder *d, uint64_t each, uint64_t *n) {
    const uint8_t *p = ing_codec_take(d->in, 8);
    if (!p) return -1;
    *n = ing_codec_u64(p);
    if (*n <= ing_codec_left(d->in) / (each ? each : 1) && *n <= PTRDIFF_MAX) return 0;
    bad("stored value: it ends too early");
    return -1;
}

/* ---- atoms ---------------------------------------------------------------------------------------- */

static double get_double(const uint8_t *p) {
    uint64_t bits = ing_codec_u64(p);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static PyObject *get_bytes(decoder *d) {
    uint64_t n;
    if (take_length(d, 1, &n) < 0) return NULL;
    PyObject *v = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (v && ing_codec_take_into(d->in, PyBytes_AS_STRING(v), n) < 0) Py_CLEAR(v);
    return v;
}

static PyObject *get_big(decoder *d) {
    const uint8_t *p = ing_codec_take(d->in, 1);
    int sign = p ? *p : 0;
    if (!p) return NULL;
    if (sign > 1) return bad("stored value: an int with an odd sign");
    PyObject *bytes = get_bytes(d);
    PyObject *v = bytes ? ing_codec_call((PyObject *)&PyLong_Type, "from_bytes", "(Os)",
                                         bytes, "little")
                        : NULL;
    Py_XDECREF(bytes);
    if (v && sign) Py_SETREF(v, PyNumber_Negative(v));
    return v;
}

/* The largest character, all of them looked at. */
static Py_UCS4 largest(const void *data, unsigned width, size_t n) {
    Py_UCS4 most = 0;
    for (size_t i = 0; i < n; i++) {
        Py_UCS4 c = width == 4   ? ((const Py_UCS4 *)data)[i]
                    : width == 2 ? ((const Py_UCS2 *)data)[i]
                                 : ((const Py_UCS1 *)data)[i];
        if (c > most) most = c;
    }
    return most;
}

/* A str in a wider form than it needs is equal to no other: Python takes that for granted. */
static PyObject *get_str(decoder *d) {
    static const Py_UCS4 above[] = {0, 0x7f, 0xff, 0, 0xffff};
    static const Py_UCS4 most[] = {0x7f, 0xff, 0xffff, 0, 0x10ffff};
    const uint8_t *p = ing_codec_take(d->in, 1);
    uint64_t n;
    unsigned width = p ? *p : 0, bytes = width ? width : 1;
    if (!p || take_length(d, bytes, &n) < 0) return NULL;
    if (width > 4 || width == 3) return bad("stored value: characters of an odd width");
    PyObject *v = PyUnicode_New((Py_ssize_t)n, n ? most[width] : 0);
    if (!v) return NULL;
    if (n == 0) {
        if (width == 0) return v;
        Py_DECREF(v);
        return bad("stored value: an empty str of an odd width");
    }
    Py_UCS4 top = 0;
    int rc = ing_codec_take_into(d->in, PyUnicode_DATA(v), n * bytes);
    if (rc == 0) top = largest(PyUnicode_DATA(v), bytes, (size_t)n);
    if (rc == 0 && top <= most[width] && (top > above[width] || width == 0)) return v;
    if (rc == 0) bad("stored value: characters of another width");
    memset(PyUnicode_DATA(v), 0, (size_t)n * bytes); /* nobody sees an impossible one */
    Py_DECREF(v);
    return NULL;
}

/* ---- containers ---------------------------------------------------------------------------------- */

static bool next_in_key(const decoder *d) {
    if (!d->stack.len) return false;
    const open_value *f = &d->stack.at[d->stack.len - 1];
    return f->in_key || (PyDict_CheckExact(f->of) && !f->key);
}

/* A place among what is kept, v's or that of one to come. */
static int keep(decoder *d, PyObject *v) {
    if (d->known.len < UINT32_MAX - 1 && ing_vec_push(&d->known, v)) {
        Py_XINCREF(v);
        return 0;
    }
    PyErr_NoMemory();
    return -1;
}

static PyObject *get_same(decoder *d) {
    const uint8_t *p = ing_codec_take(d->in, 8);
    uint64_t k = p ? ing_codec_u64(p) : 0;
    if (!p) return NULL;
    PyObject *v = k < d->known.len ? d->known.at[k] : NULL;
    if (!v) return bad("stored value: it refers to nothing");
    if (PyTuple_CheckExact(v) && next_in_key(d))
        return bad("stored value: a key that refers to a tuple");
    return Py_NewRef(v);
}

static PyObject *new_container(ing_codec_tag tag, uint64_t n) {
    return tag == ING_CODEC_TUPLE  ? PyTuple_New((Py_ssize_t)n)
           : tag == ING_CODEC_LIST ? PyList_New((Py_ssize_t)n)
                                   : PyDict_New();
}

/* An empty container is whole at once; another one is pushed and NULL returned without
 * an exception. */
static PyObject *open_one(decoder *d, ing_codec_tag tag, bool kept) {
    uint64_t n, values, left;
    if (take_length(d, 0, &n) < 0) return NULL;
    values = tag == ING_CODEC_DICT ? 2 * n : n;
    left = ing_codec_left(d->in);
    if (d->promised > left || values > left - d->promised)
        return bad("stored value: it promises too much");
    if (d->stack.len >= ING_CODEC_MAX_DEPTH) return bad("stored value: too deep");
    PyObject *of = new_container(tag, n);
    if (!of || n == 0) return of;
    open_value f = {.of = of, .left = values, .in_key = next_in_key(d)};
    f.number = kept ? d->known.len : UINT32_MAX;
    if ((kept && keep(d, NULL) < 0) || !ing_vec_push(&d->stack, f)) {
        Py_DECREF(of);
        return PyErr_NoMemory();
    }
    d->promised += values;
    return NULL;
}

static PyObject *get_number(decoder *d, ing_codec_tag tag) {
    const uint8_t *at = ing_codec_take(d->in, tag == ING_CODEC_COMPLEX ? 16 : 8);
    if (!at) return NULL;
    if (tag == ING_CODEC_INT) return PyLong_FromLongLong((long long)ing_codec_u64(at));
    if (tag == ING_CODEC_FLOAT) return PyFloat_FromDouble(get_double(at));
    return PyComplex_FromDoubles(get_double(at), get_double(at + 8));
}

static PyObject *get_tagged(decoder *d, ing_codec_tag tag, bool kept) {
    switch (tag) {
    case ING_CODEC_NONE: Py_RETURN_NONE;
    case ING_CODEC_FALSE: Py_RETURN_FALSE;
    case ING_CODEC_TRUE: Py_RETURN_TRUE;
    case ING_CODEC_INT:
    case ING_CODEC_FLOAT:
    case ING_CODEC_COMPLEX: return get_number(d, tag);
    case ING_CODEC_BIG: return get_big(d);
    case ING_CODEC_STR: return get_str(d);
    case ING_CODEC_BYTES: return get_bytes(d);
    case ING_CODEC_TUPLE:
    case ING_CODEC_LIST:
    case ING_CODEC_DICT: return open_one(d, tag, kept);
    case ING_CODEC_NUMPY: return ing_py_decode_numpy(d->in);
    case ING_CODEC_SAME: return get_same(d);
    default: return bad("stored value: an unknown tag");
    }
}

static PyObject *get_one(decoder *d) {
    const uint8_t *tag = ing_codec_take(d->in, 1);
    if (!tag) return NULL;
    bool kept = *tag & ING_CODEC_KEEP;
    if (d->stack.len) d->promised--;
    PyObject *v = get_tagged(d, (ing_codec_tag)(*tag & ~ING_CODEC_KEEP), kept);
    if (v && kept && keep(d, v) < 0) Py_CLEAR(v);
    return v;
}

/* Steals v. Keys are hashed here: only our own types can be keys, nested at most 1000
 * deep and with no tuple in them twice, so that a hash neither runs foreign code, nor
 * overflows the stack, nor takes longer than reading did. */
static int place(open_value *f, PyObject *v) {
    f->left--;
    if (PyTuple_CheckExact(f->of)) {
        PyTuple_SET_ITEM(f->of, f->next++, v);
        return 0;
    }
    if (PyList_CheckExact(f->of)) {
        PyList_SET_ITEM(f->of, f->next++, v);
        return 0;
    }
    if (!f->key) {
        f->key = v;
        return 0;
    }
    int rc = PyDict_SetItem(f->of, f->key, v);
    Py_CLEAR(f->key);
    Py_DECREF(v);
    return rc;
}

/* Puts v where it belongs and closes what is whole; the outermost value when that is
 * whole, else NULL. */
static PyObject *deliver(decoder *d, PyObject *v) {
    while (d->stack.len) {
        open_value *f = &d->stack.at[d->stack.len - 1];
        if (place(f, v) < 0) return NULL;
        if (f->left) return NULL;
        v = f->of;
        if (f->number != UINT32_MAX) d->known.at[f->number] = Py_NewRef(v);
        d->stack.len--;
    }
    return v;
}

static PyObject *decode(decoder *d) {
    PyObject *whole = NULL;
    while (!whole) {
        PyObject *v = get_one(d);
        if (v) whole = deliver(d, v);
        if (!whole && PyErr_Occurred()) break;
    }
    if (whole && ing_codec_left(d->in)) {
        Py_CLEAR(whole);
        bad("stored value: something follows it");
    }
    return whole;
}

PyObject *ing_py_decode(ing_codec_in *in) {
    decoder d = {.in = in};
    PyObject *whole = NULL;
    in->stage = in->rest ? ing_malloc(ING_CODEC_STAGE) : NULL;
    if (in->rest && !in->stage)
        PyErr_NoMemory();
    else
        whole = decode(&d);
    while (d.stack.len) {
        open_value *f = &d.stack.at[--d.stack.len];
        Py_CLEAR(f->of);
        Py_CLEAR(f->key);
    }
    while (d.known.len) Py_XDECREF(d.known.at[--d.known.len]);
    ing_vec_fini(&d.stack);
    ing_vec_fini(&d.known);
    ing_free(in->stage);
    in->stage = NULL;
    return whole;
}
