/* Values to bytes, with a stack of our own instead of recursion. Called by the file cache;
 * the format is the list of tags in codec.h, all numbers little-endian; codec_read.c reads
 * it. Only exact built-in types are written: of a subclass something would be lost silently.
 * An object that is reached twice is written once. */
#include "py/value/codec.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "characters are written as they lie");

enum { FLUSH = 1 << 20, LONG = 64 /* shorter text is as good written again */ };

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

/* ---- the way out ------------------------------------------------------------------------- */

static int flush(ing_codec_out *out) {
    if (out->buf.failed) {
        PyErr_NoMemory();
        return -1;
    }
    if (!out->put || !out->buf.len) return 0;
    int rc = out->put(out->self, out->buf.at, out->buf.len);
    ing_bytes_clear(&out->buf);
    return rc;
}

int ing_codec_run(ing_codec_out *out, const void *p, size_t n) {
    if (out->put && n >= ING_CODEC_STAGE)
        return flush(out) < 0 ? -1 : out->put(out->self, p, n);
    if (out->max && n > out->max) {
        PyErr_SetString(PyExc_ValueError, "larger than it may be");
        return -1;
    }
    ing_bytes_put(&out->buf, p, n);
    return 0;
}

/* ---- atoms ------------------------------------------------------------------------------------ */

void ing_codec_put_tag(ing_codec_out *out, ing_codec_tag tag) {
    ing_bytes_u8(&out->buf, (uint8_t)(out->keep ? tag | ING_CODEC_KEEP : tag));
    out->keep = false;
}

static void put_double(ing_codec_out *out, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    ing_bytes_u64(&out->buf, bits);
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

static int put_bytes(PyObject *bytes, ing_codec_out *out) {
    ing_bytes_u64(&out->buf, (uint64_t)PyBytes_GET_SIZE(bytes));
    return ing_codec_run(out, PyBytes_AS_STRING(bytes),
                         (size_t)PyBytes_GET_SIZE(bytes));
}

static int put_int(PyObject *value, ing_codec_out *out) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (v == -1 && PyErr_Occurred()) return -1;
    if (!overflow) {
        ing_codec_put_tag(out, ING_CODEC_INT);
        ing_bytes_u64(&out->buf, (uint64_t)v);
        return 0;
    }
    PyObject *bytes = magnitude(value);
    if (!bytes) return -1;
    ing_codec_put_tag(out, ING_CODEC_BIG);
    ing_bytes_u8(&out->buf, overflow < 0);
    int rc = put_bytes(bytes, out);
    Py_DECREF(bytes);
    return rc;
}

static int put_str(PyObject *value, ing_codec_out *out) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(value) < 0) return -1;
#endif
    size_t width = PyUnicode_KIND(value), n = (size_t)PyUnicode_GET_LENGTH(value);
    ing_codec_put_tag(out, ING_CODEC_STR);
    ing_bytes_u8(&out->buf, PyUnicode_IS_ASCII(value) ? 0 : (uint8_t)width);
    ing_bytes_u64(&out->buf, n);
    return ing_codec_run(out, PyUnicode_DATA(value), n * width);
}

/* 1 = written, 0 = not an atom, -1 = raised. */
static int put_atom(PyObject *v, ing_codec_out *out) {
    if (v == Py_None) return ing_codec_put_tag(out, ING_CODEC_NONE), 1;
    if (v == Py_False) return ing_codec_put_tag(out, ING_CODEC_FALSE), 1;
    if (v == Py_True) return ing_codec_put_tag(out, ING_CODEC_TRUE), 1;
    if (PyLong_CheckExact(v)) return put_int(v, out) < 0 ? -1 : 1;
    if (PyUnicode_CheckExact(v)) return put_str(v, out) < 0 ? -1 : 1;
    if (PyFloat_CheckExact(v)) {
        ing_codec_put_tag(out, ING_CODEC_FLOAT);
        put_double(out, PyFloat_AS_DOUBLE(v));
        return 1;
    }
    if (PyBytes_CheckExact(v)) {
        ing_codec_put_tag(out, ING_CODEC_BYTES);
        return put_bytes(v, out) < 0 ? -1 : 1;
    }
    if (PyComplex_CheckExact(v)) {
        ing_codec_put_tag(out, ING_CODEC_COMPLEX);
        put_double(out, PyComplex_RealAsDouble(v));
        put_double(out, PyComplex_ImagAsDouble(v));
        return 1;
    }
    return 0;
}

/* ---- containers -------------------------------------------------------------------------------- */

typedef struct frame {
    PyObject *of;     /* owned */
    Py_ssize_t i, n;  /* items taken, items promised */
    Py_ssize_t at;    /* of PyDict_Next */
    PyObject *key;    /* owned: of a dict, while its value is to come or written */
    PyObject *second; /* owned: that value, to come */
    bool in_key;      /* it is a key of a dict, or in one */
} frame;

typedef struct encoder {
    ing_codec_out *out;
    ing_vec(frame) stack;
    ing_map seen;              /* address -> 1 + its number */
    ing_vec(PyObject *) alive; /* owned: what is in `seen` */
    uint32_t counted;
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

/* Whether what comes next is a key of a dict, or in one. */
static bool next_in_key(const encoder *e) {
    if (!e->stack.len) return false;
    const frame *f = &e->stack.at[e->stack.len - 1];
    return f->in_key || f->second;
}

static int open_container(encoder *e, PyObject *v, ing_codec_tag tag, Py_ssize_t n) {
    if (e->stack.len >= ING_CODEC_MAX_DEPTH)
        return refuse(e, PyExc_ValueError, "nested more than 1000 deep");
    frame f = {.of = Py_NewRef(v), .n = n, .in_key = next_in_key(e)};
    if (!ing_vec_push(&e->stack, f)) {
        Py_DECREF(v);
        PyErr_NoMemory();
        return -1;
    }
    ing_codec_put_tag(e->out, tag);
    ing_bytes_u64(&e->out->buf, (uint64_t)n);
    return 0;
}

/* ---- what is written once ------------------------------------------------------------------ */

/* What nobody but the container above and our loop holds is not reached a second time. */
static bool may_come_again(PyObject *v, int numpy) {
    if (Py_REFCNT(v) <= 2) return false;
    if (PyUnicode_CheckExact(v)) return PyUnicode_GET_LENGTH(v) >= LONG;
    if (PyBytes_CheckExact(v)) return PyBytes_GET_SIZE(v) >= LONG;
    if (PyTuple_CheckExact(v)) return PyTuple_GET_SIZE(v) > 0;
    return PyList_CheckExact(v) || PyDict_CheckExact(v) || numpy == 1;
}

static ing_hash128 address(PyObject *v) {
    uint64_t a = (uint64_t)(uintptr_t)v;
    return (ing_hash128){a * 0x9E3779B97F4A7C15u, a};
}

static bool is_open(const encoder *e, PyObject *v) {
    for (uint32_t i = 0; i < e->stack.len; i++)
        if (e->stack.at[i].of == v) return true;
    return false;
}

/* 1: written as one that was before. A tuple in a key is written again: keys are hashed when
 * they are read, and the time for that must be bounded by the bytes. */
static int put_again(encoder *e, PyObject *v) {
    uint32_t number = ing_map_get(&e->seen, address(v));
    if (!number) return 0;
    if (is_open(e, v)) return refuse(e, PyExc_ValueError, "it contains itself");
    if (PyTuple_CheckExact(v) && next_in_key(e)) return 0;
    ing_codec_put_tag(e->out, ING_CODEC_SAME);
    ing_bytes_u64(&e->out->buf, number - 1);
    return 1;
}

static int remember(encoder *e, PyObject *v) {
    if (ing_map_get(&e->seen, address(v))) return 0;
    if (e->counted >= UINT32_MAX - 1)
        return refuse(e, PyExc_ValueError, "it has too many parts");
    if (!ing_vec_push(&e->alive, v)) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(v);
    e->out->keep = true;
    if (ing_map_put(&e->seen, address(v), ++e->counted)) return 0;
    PyErr_NoMemory();
    return -1;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int put_value(encoder *e, PyObject *v, int numpy) {
    int rc = numpy ? 0 : put_atom(v, e->out);
    if (rc) return rc;
    if (PyTuple_CheckExact(v))
        return open_container(e, v, ING_CODEC_TUPLE, PyTuple_GET_SIZE(v));
    if (PyList_CheckExact(v))
        return open_container(e, v, ING_CODEC_LIST, PyList_GET_SIZE(v));
    if (PyDict_CheckExact(v))
        return open_container(e, v, ING_CODEC_DICT, PyDict_GET_SIZE(v));
    if (numpy) rc = ing_py_encode_numpy(v, numpy == 2, e->out);
    return rc ? rc : unknown(e, v);
}

static bool is_plain(PyObject *v) {
    return v == Py_None || PyBool_Check(v) || PyLong_CheckExact(v) ||
           PyUnicode_CheckExact(v) || PyFloat_CheckExact(v) || PyBytes_CheckExact(v) ||
           PyComplex_CheckExact(v) || PyTuple_CheckExact(v) || PyList_CheckExact(v) ||
           PyDict_CheckExact(v);
}

static int put_one(encoder *e, PyObject *v) {
    int numpy = is_plain(v) ? 0 : ing_codec_is_numpy(v), rc = 0;
    if (numpy < 0) return -1;
    if (may_come_again(v, numpy)) {
        rc = put_again(e, v);
        if (rc == 0 && remember(e, v) < 0) rc = -1;
    }
    if (rc == 0) rc = put_value(e, v, numpy);
    if (rc < 0) return -1;
    if (e->out->put && e->out->buf.len >= FLUSH) return flush(e->out);
    if (e->out->buf.failed) return flush(e->out);
    if (e->out->max && e->out->buf.len > e->out->max)
        return refuse(e, PyExc_ValueError, "larger than it may be");
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
        if (PyDict_GET_SIZE(f->of) == f->n &&
            PyDict_Next(f->of, &f->at, &key, &value)) {
            Py_XSETREF(f->key, Py_NewRef(key));
            f->second = Py_NewRef(value);
            child = Py_NewRef(key);
        }
    }
    f->i++;
    if (!child) refuse(e, PyExc_RuntimeError, "changed while it was stored");
    return child;
}

static int run(encoder *e, PyObject *value) {
    PyObject *v = Py_NewRef(value);
    int rc = 0;
    while (v) {
        rc = put_one(e, v);
        Py_CLEAR(v);
        while (rc == 0 && !v && e->stack.len) {
            frame *f = &e->stack.at[e->stack.len - 1];
            v = next_child(e, f);
            if (v) break;
            if (PyErr_Occurred()) {
                rc = -1;
            } else {
                frame_fini(f);
                e->stack.len--;
            }
        }
    }
    return rc;
}

int ing_py_encode(PyObject *value, ing_codec_out *out) {
    encoder e = {.out = out};
    ing_map_init(&e.seen);
    int rc = run(&e, value);
    if (rc == 0) rc = flush(out);
    while (e.stack.len) frame_fini(&e.stack.at[--e.stack.len]);
    while (e.alive.len) Py_DECREF(e.alive.at[--e.alive.len]);
    ing_vec_fini(&e.stack);
    ing_vec_fini(&e.alive);
    ing_map_fini(&e.seen);
    return rc;
}
