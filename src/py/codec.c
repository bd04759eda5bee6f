/* Values to bytes and back, with stacks of our own instead of recursion. Called by the
 * file cache; the format is the list of tags in codec.h, all numbers little-endian. Only
 * exact built-in types are written: of a subclass something would be lost silently. Must
 * never read outside the bytes, take memory that they do not justify, or call a function
 * that they name. */
#include "py/codec.h"

#include <string.h>

PyObject *ing_codec_call(PyObject *of, const char *name, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    PyObject *args = Py_VaBuildValue(format, ap);
    va_end(ap);
    PyObject *f = args ? ing_py_attr(of, name) : NULL;
    PyObject *result = f ? PyObject_CallObject(f, args) : NULL;
    Py_XDECREF(f);
    Py_XDECREF(args);
    return result;
}

/* ---- encode: atoms -------------------------------------------------------------------- */

static void put_tag(ing_bytes *out, ing_codec_tag tag) {
    ing_bytes_u8(out, (uint8_t)tag);
}

static void put_run(ing_bytes *out, ing_codec_tag tag, const void *p, size_t n) {
    put_tag(out, tag);
    ing_bytes_u64(out, n);
    ing_bytes_put(out, p, n);
}

static void put_double(ing_bytes *out, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    ing_bytes_u64(out, bits);
}

/* Bytes of the magnitude, by int's own method: public on every version of Python. */
static PyObject *magnitude(PyObject *value) {
    PyObject *size = ing_codec_call(value, "bit_length", "()");
    size_t bits = size ? PyLong_AsSize_t(size) : (size_t)-1;
    Py_XDECREF(size);
    if (bits == (size_t)-1) return NULL;
    PyObject *positive = PyNumber_Absolute(value);
    if (!positive) return NULL;
    PyObject *bytes = ing_codec_call(positive, "to_bytes", "(ns)",
                                     (Py_ssize_t)(bits / 8 + 1), "little");
    Py_DECREF(positive);
    return bytes;
}

static int put_int(PyObject *value, ing_bytes *out) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (v == -1 && PyErr_Occurred()) return -1;
    if (!overflow) {
        put_tag(out, ING_CODEC_INT);
        ing_bytes_u64(out, (uint64_t)v);
        return 0;
    }
    PyObject *bytes = magnitude(value);
    if (!bytes) return -1;
    put_tag(out, ING_CODEC_BIG);
    ing_bytes_u8(out, overflow < 0);
    ing_bytes_u64(out, (uint64_t)PyBytes_GET_SIZE(bytes));
    ing_bytes_put(out, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

static int put_str(PyObject *value, ing_bytes *out) {
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(value, &n);
    if (text) {
        put_run(out, ING_CODEC_STR, text, (size_t)n);
        return 0;
    }
    PyObject *bytes =
        ing_py_took(PyExc_UnicodeEncodeError) ? ing_py_to_utf8(value) : NULL;
    if (!bytes) return -1;
    put_run(out, ING_CODEC_STR, PyBytes_AS_STRING(bytes),
            (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

/* 1 = written, 0 = not an atom, -1 = raised. */
static int put_atom(PyObject *v, ing_bytes *out) {
    if (v == Py_None) return put_tag(out, ING_CODEC_NONE), 1;
    if (v == Py_False) return put_tag(out, ING_CODEC_FALSE), 1;
    if (v == Py_True) return put_tag(out, ING_CODEC_TRUE), 1;
    if (PyLong_CheckExact(v)) return put_int(v, out) < 0 ? -1 : 1;
    if (PyUnicode_CheckExact(v)) return put_str(v, out) < 0 ? -1 : 1;
    if (PyFloat_CheckExact(v)) {
        put_tag(out, ING_CODEC_FLOAT);
        put_double(out, PyFloat_AS_DOUBLE(v));
        return 1;
    }
    if (PyBytes_CheckExact(v)) {
        put_run(out, ING_CODEC_BYTES, PyBytes_AS_STRING(v),
                (size_t)PyBytes_GET_SIZE(v));
        return 1;
    }
    if (PyComplex_CheckExact(v)) {
        put_tag(out, ING_CODEC_COMPLEX);
        put_double(out, PyComplex_RealAsDouble(v));
        put_double(out, PyComplex_ImagAsDouble(v));
        return 1;
    }
    return 0;
}

/* ---- encode: containers ---------------------------------------------------------------- */

typedef struct frame {
    PyObject *of;     /* owned */
    Py_ssize_t i, n;  /* items taken, items promised */
    Py_ssize_t at;    /* of PyDict_Next */
    PyObject *key;    /* owned: of a dict, while its value is to come or written */
    PyObject *second; /* owned: that value, to come */
} frame;

typedef struct encoder {
    ing_bytes *out;
    size_t max;
    ing_vec(frame) stack;
} encoder;

static void frame_fini(frame *f) {
    Py_CLEAR(f->of);
    Py_CLEAR(f->key);
    Py_CLEAR(f->second);
}

/* `value[2]['name']`: the way from the outermost value to the current one. */
static PyObject *path_text(const encoder *e) {
    PyObject *text = PyUnicode_FromString("value");
    for (uint32_t i = 0; text && i < e->stack.len; i++) {
        const frame *f = &e->stack.at[i];
        PyObject *more;
        if (f->i == 0) break; /* none of its items is under way */
        if (i == 20)
            more = PyUnicode_FromFormat("%U...", text);
        else if (PyDict_CheckExact(f->of))
            more = PyUnicode_FromFormat("%U[%.80R]", text, f->key ? f->key : Py_None);
        else
            more = PyUnicode_FromFormat("%U[%zd]", text, f->i - 1);
        Py_SETREF(text, more);
        if (i == 20) break;
    }
    return text;
}

static int refuse(const encoder *e, PyObject *exc, const char *why) {
    PyObject *path = path_text(e);
    if (path) PyErr_Format(exc, "%U: %s", path, why);
    Py_XDECREF(path);
    return -1;
}

static int unknown(const encoder *e, PyObject *value) {
    PyObject *path = path_text(e);
    if (path)
        PyErr_Format(
            PyExc_TypeError,
            "%U is a '%.200s', which this cache cannot store (it takes None, "
            "bool, int, float, complex, str, bytes, tuple, list, dict and NumPy "
            "arrays of plain dtypes, not subclasses of them); return plain data, "
            "or use codec=\"pickle\" if nobody else can write to the cache",
            path, Py_TYPE(value)->tp_name);
    Py_XDECREF(path);
    return -1;
}

static int open_container(encoder *e, PyObject *v, ing_codec_tag tag, Py_ssize_t n) {
    if (e->stack.len >= ING_CODEC_MAX_DEPTH)
        return refuse(e, PyExc_ValueError,
                      "nested more than 1000 deep, or it contains itself");
    frame f = {.of = Py_NewRef(v), .n = n};
    if (!ing_vec_push(&e->stack, f)) {
        Py_DECREF(v);
        PyErr_NoMemory();
        return -1;
    }
    put_tag(e->out, tag);
    ing_bytes_u64(e->out, (uint64_t)n);
    return 0;
}

static int put_one(encoder *e, PyObject *v) {
    int rc = put_atom(v, e->out);
    if (rc == 0) {
        if (PyTuple_CheckExact(v))
            rc = open_container(e, v, ING_CODEC_TUPLE, PyTuple_GET_SIZE(v));
        else if (PyList_CheckExact(v))
            rc = open_container(e, v, ING_CODEC_LIST, PyList_GET_SIZE(v));
        else if (PyDict_CheckExact(v))
            rc = open_container(e, v, ING_CODEC_DICT, PyDict_GET_SIZE(v));
        else if ((rc = ing_py_encode_numpy(v, e->max, e->out)) == 0)
            rc = unknown(e, v);
    }
    if (rc < 0) return -1;
    if (e->out->failed) {
        PyErr_NoMemory();
        return -1;
    }
    if (e->out->len > e->max)
        return refuse(e, PyExc_ValueError, "larger than an entry may be");
    return 0;
}

/* The next child of `f`, a new reference; NULL at the end, or raised. */
static PyObject *next_child(const encoder *e, frame *f) {
    PyObject *child = NULL;
    if (f->second) {
        child = f->second;
        f->second = NULL;
        return child;
    }
    if (f->i == f->n) return NULL;
    if (PyTuple_CheckExact(f->of)) {
        child = Py_NewRef(PyTuple_GET_ITEM(f->of, f->i));
    } else if (PyList_CheckExact(f->of)) {
        if (f->i < PyList_GET_SIZE(f->of))
            child = Py_NewRef(PyList_GET_ITEM(f->of, f->i));
    } else {
        PyObject *key, *value;
        if (PyDict_Next(f->of, &f->at, &key, &value)) {
            Py_XSETREF(f->key, Py_NewRef(key));
            f->second = Py_NewRef(value);
            child = Py_NewRef(key);
        }
    }
    f->i++;
    if (!child) refuse(e, PyExc_RuntimeError, "changed while it was stored");
    return child;
}

int ing_py_encode(PyObject *value, size_t max, ing_bytes *out) {
    encoder e = {.out = out, .max = max};
    PyObject *v = Py_NewRef(value);
    int rc = 0;
    while (v) {
        rc = put_one(&e, v);
        Py_CLEAR(v);
        while (rc == 0 && !v && e.stack.len) {
            frame *f = &e.stack.at[e.stack.len - 1];
            v = next_child(&e, f);
            if (v) break;
            if (PyErr_Occurred()) {
                rc = -1;
            } else {
                frame_fini(f);
                e.stack.len--;
            }
        }
    }
    while (e.stack.len) frame_fini(&e.stack.at[--e.stack.len]);
    ing_vec_fini(&e.stack);
    return rc;
}

/* ---- decode -------------------------------------------------------------------------------- */

typedef struct open_value {
    PyObject *of;    /* owned: under construction */
    PyObject *key;   /* owned: of a dict, waiting for its value */
    uint64_t left;   /* values to come, for a dict two per item */
    Py_ssize_t next; /* where the next one goes */
} open_value;

typedef struct decoder {
    const uint8_t *p;
    size_t n;
    uint64_t promised; /* values still to begin: each takes a byte at least */
    ing_vec(open_value) stack;
} decoder;

static PyObject *bad(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return NULL;
}

static const uint8_t *take(decoder *d, uint64_t n) {
    if (n > d->n) {
        bad("stored value: it ends too early");
        return NULL;
    }
    const uint8_t *at = d->p;
    d->p += n;
    d->n -= (size_t)n;
    return at;
}

/* A run of bytes after its length. */
static const uint8_t *take_run(decoder *d, Py_ssize_t *n) {
    const uint8_t *size = take(d, 8);
    if (!size) return NULL;
    uint64_t v = ing_codec_u64(size);
    *n = v <= d->n ? (Py_ssize_t)v : 0;
    return take(d, v);
}

static double get_double(const uint8_t *p) {
    uint64_t bits = ing_codec_u64(p);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static PyObject *get_big(decoder *d) {
    Py_ssize_t n;
    const uint8_t *sign = take(d, 1);
    const uint8_t *at = sign ? take_run(d, &n) : NULL;
    if (!at) return NULL;
    if (*sign > 1) return bad("stored value: an int with an odd sign");
    PyObject *v = ing_codec_call((PyObject *)&PyLong_Type, "from_bytes", "(y#s)",
                                 (const char *)at, n, "little");
    if (v && *sign) Py_SETREF(v, PyNumber_Negative(v));
    return v;
}

static PyObject *get_str(decoder *d) {
    Py_ssize_t n;
    const uint8_t *at = take_run(d, &n);
    return at ? PyUnicode_DecodeUTF8((const char *)at, n, "surrogatepass") : NULL;
}

static PyObject *get_bytes(decoder *d) {
    Py_ssize_t n;
    const uint8_t *at = take_run(d, &n);
    return at ? PyBytes_FromStringAndSize((const char *)at, n) : NULL;
}

static PyObject *get_numpy(decoder *d) {
    size_t used = 0;
    PyObject *v = ing_py_decode_numpy(d->p, d->n, &used);
    if (v) take(d, used);
    return v;
}

/* An empty container is whole at once; another one is pushed and NULL returned without
 * an exception. */
static PyObject *open_one(decoder *d, ing_codec_tag tag) {
    const uint8_t *size = take(d, 8);
    if (!size) return NULL;
    uint64_t n = ing_codec_u64(size), values = n;
    if (n > d->n || d->promised > d->n)
        return bad("stored value: it promises too much");
    if (tag == ING_CODEC_DICT) values *= 2;
    if (values > d->n - d->promised) return bad("stored value: it promises too much");
    if (d->stack.len >= ING_CODEC_MAX_DEPTH) return bad("stored value: too deep");
    PyObject *of = tag == ING_CODEC_TUPLE  ? PyTuple_New((Py_ssize_t)n)
                   : tag == ING_CODEC_LIST ? PyList_New((Py_ssize_t)n)
                                           : PyDict_New();
    if (!of || n == 0) return of;
    if (!ing_vec_push(&d->stack, ((open_value){.of = of, .left = values}))) {
        Py_DECREF(of);
        return PyErr_NoMemory();
    }
    d->promised += values;
    return NULL;
}

static PyObject *get_one(decoder *d) {
    const uint8_t *tag = take(d, 1), *at;
    if (!tag) return NULL;
    if (d->stack.len) d->promised--;
    switch (*tag) {
    case ING_CODEC_NONE: Py_RETURN_NONE;
    case ING_CODEC_FALSE: Py_RETURN_FALSE;
    case ING_CODEC_TRUE: Py_RETURN_TRUE;
    case ING_CODEC_INT:
        at = take(d, 8);
        return at ? PyLong_FromLongLong((long long)ing_codec_u64(at)) : NULL;
    case ING_CODEC_BIG: return get_big(d);
    case ING_CODEC_FLOAT:
        at = take(d, 8);
        return at ? PyFloat_FromDouble(get_double(at)) : NULL;
    case ING_CODEC_COMPLEX:
        at = take(d, 16);
        return at ? PyComplex_FromDoubles(get_double(at), get_double(at + 8)) : NULL;
    case ING_CODEC_STR: return get_str(d);
    case ING_CODEC_BYTES: return get_bytes(d);
    case ING_CODEC_TUPLE:
    case ING_CODEC_LIST:
    case ING_CODEC_DICT: return open_one(d, (ing_codec_tag)*tag);
    case ING_CODEC_NUMPY: return get_numpy(d);
    default: return bad("stored value: an unknown tag");
    }
}

/* Steals v. Keys are hashed here: only our own types can be keys, nested at most 1000
 * deep, so that a hash neither runs foreign code nor overflows the stack. */
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
        d->stack.len--;
    }
    return v;
}

PyObject *ing_py_decode(const uint8_t *p, size_t n) {
    decoder d = {.p = p, .n = n};
    PyObject *whole = NULL;
    while (!whole) {
        PyObject *v = get_one(&d);
        if (v) whole = deliver(&d, v);
        if (!whole && PyErr_Occurred()) break;
    }
    if (whole && d.n) {
        Py_CLEAR(whole);
        bad("stored value: something follows it");
    }
    while (d.stack.len) {
        open_value *f = &d.stack.at[--d.stack.len];
        Py_CLEAR(f->of);
        Py_CLEAR(f->key);
    }
    ing_vec_fini(&d.stack);
    return whole;
}
