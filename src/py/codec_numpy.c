/* NumPy arrays and scalars in stored values. Called by codec.c. NumPy is asked by name
 * and only when it is there (encode) or needed (decode); a dtype is rebuilt from a short
 * text of a fixed alphabet, so that no text can mean Python objects or a record.
 *
 * After the tag: flags (1 scalar, 2 Fortran order), u8 n and n bytes of dtype.str, u8
 * ndim and ndim times u64, u64 size and the elements. */
#include "py/codec.h"

#include <string.h>

enum { SCALAR = 1, FORTRAN = 2, MAX_NDIM = 64, MAX_DTYPE = 32 };

/* `<f8`, `|b1`, `<M8[25us]`, `<U12`: order, kind, then digits and a unit. */
static bool plain_dtype(const char *text, size_t n) {
    if (n < 3 || n > MAX_DTYPE) return false;
    if (!memchr("<>|", text[0], 3) || !memchr("biufcmMSU", text[1], 9)) return false;
    for (size_t i = 2; i < n; i++) {
        bool figure = text[i] >= '0' && text[i] <= '9';
        bool unit = text[i] == '[' || text[i] == ']' ||
                    (text[i] >= 'a' && text[i] <= 'z') || text[i] == 'D' ||
                    text[i] == 'M' || text[i] == 'W' || text[i] == 'Y';
        bool dated = text[1] == 'm' || text[1] == 'M';
        if (!figure && !(dated && unit)) return false;
    }
    return text[2] >= '0' && text[2] <= '9';
}

/* ---- encode -------------------------------------------------------------------------------- */

/* Is it of the very class that its dtype names? 1, 0 or -1 raised. */
static int is_exact(PyObject *v) {
    PyObject *dtype = NULL, *type = NULL;
    int rc = ing_py_attr_maybe(v, "dtype", &dtype);
    if (rc == 1) rc = ing_py_attr_maybe(dtype, "type", &type);
    if (rc == 1) rc = type == (PyObject *)Py_TYPE(v);
    Py_XDECREF(dtype);
    Py_XDECREF(type);
    return rc;
}

/* 0 neither, 1 array, 2 scalar, -1 raised; exact classes only. */
static int what_is(PyObject *v, PyObject *np) {
    PyObject *array = NULL, *generic = NULL;
    int what = ing_py_attr_maybe(np, "ndarray", &array);
    if (what == 1) what = ing_py_attr_maybe(np, "generic", &generic);
    if (what == 1 && PyType_Check(generic)) {
        what = (PyObject *)Py_TYPE(v) == array;
        if (!what && PyType_IsSubtype(Py_TYPE(v), (PyTypeObject *)generic))
            what = 2 * is_exact(v);
    } else if (what == 1) {
        what = 0;
    }
    Py_XDECREF(array);
    Py_XDECREF(generic);
    return what;
}

/* Appends dtype.str: 1, 0 when the dtype is none that we store, -1 raised. */
static int put_dtype(PyObject *v, ing_bytes *out) {
    PyObject *dtype = ing_py_attr(v, "dtype");
    PyObject *str = dtype ? ing_py_attr(dtype, "str") : NULL;
    Py_ssize_t n = 0;
    const char *text = str ? PyUnicode_AsUTF8AndSize(str, &n) : NULL;
    int rc = !text ? -1 : plain_dtype(text, (size_t)n);
    if (rc == 1) {
        ing_bytes_u8(out, (uint8_t)n);
        ing_bytes_put(out, text, (size_t)n);
    }
    Py_XDECREF(dtype);
    Py_XDECREF(str);
    return rc;
}

static int put_shape(PyObject *v, ing_bytes *out) {
    PyObject *shape = ing_py_attr(v, "shape");
    if (!shape || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > MAX_NDIM) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an odd shape");
        Py_XDECREF(shape);
        return -1;
    }
    ing_bytes_u8(out, (uint8_t)PyTuple_GET_SIZE(shape));
    int rc = 0;
    for (Py_ssize_t i = 0; rc == 0 && i < PyTuple_GET_SIZE(shape); i++) {
        unsigned long long extent =
            PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(shape, i));
        if (extent == (unsigned long long)-1 && PyErr_Occurred()) rc = -1;
        ing_bytes_u64(out, extent);
    }
    Py_DECREF(shape);
    return rc;
}

/* Whether the elements lie in Fortran order and not in C order; -1 raised. */
static int is_fortran(PyObject *v) {
    PyObject *flags = ing_py_attr(v, "flags");
    PyObject *fnc = flags ? ing_py_attr(flags, "fnc") : NULL;
    int rc = fnc ? PyObject_IsTrue(fnc) : -1;
    Py_XDECREF(flags);
    Py_XDECREF(fnc);
    return rc;
}

static int check_size(PyObject *v, size_t max) {
    PyObject *nbytes = ing_py_attr(v, "nbytes");
    size_t n = nbytes ? PyLong_AsSize_t(nbytes) : (size_t)-1;
    Py_XDECREF(nbytes);
    if (n == (size_t)-1 && PyErr_Occurred()) return -1;
    if (n <= max) return 0;
    PyErr_Format(PyExc_ValueError,
                 "an array of %zu bytes is larger than an entry may be", n);
    return -1;
}

static int put_elements(PyObject *v, bool fortran, ing_bytes *out) {
    PyObject *bytes = ing_codec_call(v, "tobytes", "(s)", fortran ? "F" : "C");
    if (!bytes || !PyBytes_Check(bytes)) {
        Py_XDECREF(bytes);
        return -1;
    }
    ing_bytes_u64(out, (uint64_t)PyBytes_GET_SIZE(bytes));
    ing_bytes_put(out, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

int ing_py_encode_numpy(PyObject *v, size_t max, ing_bytes *out) {
    PyObject *np;
    int what = ing_py_loaded("numpy", &np);
    if (what == 1) what = what_is(v, np);
    size_t start = out->len;
    Py_XDECREF(np);
    if (what <= 0) return what < 0 ? -1 : 0;
    int fortran = what == 1 ? is_fortran(v) : 0;
    if (fortran < 0 || check_size(v, max) < 0) return -1;
    ing_bytes_u8(out, ING_CODEC_NUMPY);
    ing_bytes_u8(out, (uint8_t)((what == 2 ? SCALAR : 0) | (fortran ? FORTRAN : 0)));
    int rc = put_dtype(v, out);
    if (rc == 0 && ing_bytes_ok(out)) out->len = start; /* as if nothing was written */
    if (rc != 1) return rc;
    if (put_shape(v, out) < 0 || put_elements(v, fortran, out) < 0) return -1;
    return 1;
}

/* ---- decode -------------------------------------------------------------------------------- */

typedef struct record {
    uint8_t flags, ndim;
    const uint8_t *dtype, *shape, *data;
    size_t dtype_len, size;
} record;

/* The parts of the record, all inside the n bytes; false when they are not. */
static bool split(const uint8_t *p, size_t n, record *r, size_t *used) {
    size_t at = 2;
    if (n < 2) return false;
    r->flags = p[0];
    r->dtype_len = p[1];
    r->dtype = p + at;
    if (r->dtype_len > MAX_DTYPE || n - at < r->dtype_len + 1) return false;
    at += r->dtype_len;
    r->ndim = p[at++];
    r->shape = p + at;
    if (r->ndim > MAX_NDIM || n - at < 8u * r->ndim + 8u) return false;
    at += 8u * r->ndim;
    uint64_t size = ing_codec_u64(p + at);
    at += 8;
    if (size > n - at) return false;
    r->data = p + at;
    r->size = (size_t)size;
    *used = at + r->size;
    return r->flags <= 3 && plain_dtype((const char *)r->dtype, r->dtype_len);
}

/* The shape as a tuple, and the number of elements; NULL without an exception when the
 * extents and the size do not agree. */
static PyObject *get_shape(const record *r, size_t itemsize) {
    size_t total = itemsize;
    PyObject *shape = PyTuple_New(r->ndim);
    for (unsigned i = 0; shape && i < r->ndim; i++) {
        uint64_t extent = ing_codec_u64(r->shape + 8u * i);
        PyObject *number =
            extent <= PTRDIFF_MAX && ing_mul_size(total, (size_t)extent, &total)
                ? PyLong_FromSize_t((size_t)extent)
                : NULL;
        if (!number)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, number);
    }
    if (shape && total != r->size) Py_CLEAR(shape);
    return shape;
}

static PyObject *get_dtype(const record *r, PyObject *np, size_t *itemsize) {
    PyObject *dtype = ing_codec_call(np, "dtype", "(s#)", (const char *)r->dtype,
                                     (Py_ssize_t)r->dtype_len);
    PyObject *size = dtype ? ing_py_attr(dtype, "itemsize") : NULL;
    *itemsize = size ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred()) Py_CLEAR(dtype);
    return dtype;
}

/* Over a bytearray, so that the array can be written to as the original could. */
static PyObject *make_array(const record *r, PyObject *np, PyObject *dtype,
                            PyObject *shape) {
    PyObject *data =
        PyByteArray_FromStringAndSize((const char *)r->data, (Py_ssize_t)r->size);
    PyObject *array =
        data ? ing_codec_call(np, "ndarray", "(OOOiOs)", shape, dtype, data, 0, Py_None,
                              r->flags & FORTRAN ? "F" : "C")
             : NULL;
    Py_XDECREF(data);
    if (array && r->flags & SCALAR) {
        PyObject *empty = PyTuple_New(0);
        PyObject *item = empty ? PyObject_GetItem(array, empty) : NULL;
        Py_XDECREF(empty);
        Py_SETREF(array, item);
    }
    return array;
}

PyObject *ing_py_decode_numpy(const uint8_t *p, size_t n, size_t *used) {
    record r;
    size_t itemsize = 0;
    PyObject *np = NULL, *dtype = NULL, *shape = NULL, *value = NULL;
    if (!split(p, n, &r, used) || ((r.flags & SCALAR) && r.ndim)) goto done;
    np = PyImport_ImportModule("numpy");
    dtype = np ? get_dtype(&r, np, &itemsize) : NULL;
    shape = dtype ? get_shape(&r, itemsize) : NULL;
    value = shape ? make_array(&r, np, dtype, shape) : NULL;
done:
    if (!value && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "stored value: not an array");
    Py_XDECREF(np);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    return value;
}
