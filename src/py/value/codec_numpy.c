/* NumPy arrays and scalars in stored values. Called by codec.c and codec_read.c. NumPy is
 * asked by name and only when it is there (encode) or needed (decode); a dtype is rebuilt
 * from a short text of a fixed alphabet, or from plain data by ingot/_dtypes.py, so that none
 * can mean Python objects. Elements go from the array to the disk and back in place; only
 * those of an array with gaps are copied, a block at a time.
 *
 * After the tag: flags (1 scalar, 2 Fortran order, 4 dtype as data), u32 n and n bytes of
 * dtype.str or of a value of this codec, u8 ndim and ndim times u64, u64 size, elements. */
#include "py/value/codec.h"

#include <string.h>

enum { SCALAR = 1, FORTRAN = 2, DESCRIBED = 4, MAX_NDIM = 64, MAX_TEXT = 32 };
enum { BLOCK = 1 << 20, MAX_DTYPE = 1 << 20 };

/* `<f8`, `|b1`, `<M8[25us]`, `<U12`: order, kind, then digits and a unit. */
static bool plain_dtype(const char *text, size_t n) {
    if (n < 3 || n > MAX_TEXT) return false;
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

static int what_is(PyObject *v, PyObject *np) {
    PyObject *array = NULL, *generic = NULL;
    int what = ing_py_attr_maybe(np, "ndarray", &array);
    if (what == 1) what = ing_py_attr_maybe(np, "generic", &generic);
    if (what == 1 && PyType_Check(generic)) {
        what = (PyObject *)Py_TYPE(v) == array;
        if (!what && PyType_IsSubtype(Py_TYPE(v), (PyTypeObject *)generic))
            what = is_exact(v) == 1 ? 2 : PyErr_Occurred() ? -1 : 0;
    } else if (what == 1) {
        what = 0;
    }
    Py_XDECREF(array);
    Py_XDECREF(generic);
    return what;
}

int ing_codec_is_numpy(PyObject *v) {
    PyObject *np;
    int what = ing_py_loaded("numpy", &np);
    if (what == 1) what = what_is(v, np);
    Py_XDECREF(np);
    return what;
}

static int size_attr(PyObject *of, const char *name, size_t *out) {
    PyObject *v = ing_py_attr(of, name);
    *out = v ? PyLong_AsSize_t(v) : (size_t)-1;
    Py_XDECREF(v);
    return *out == (size_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Does dtype.str say all? Not of records, of types that others registered (from 256 on), and
 * of long doubles, which differ among machines. 1, 0 or -1 raised. */
static int text_says_all(PyObject *dtype, const char *text, size_t n) {
    size_t number, item;
    PyObject *metadata = ing_py_attr(dtype, "metadata");
    int rc = metadata ? metadata == Py_None : -1;
    Py_XDECREF(metadata);
    if (rc <= 0 || !plain_dtype(text, n)) return rc < 0 ? -1 : 0;
    if (size_attr(dtype, "num", &number) < 0 || size_attr(dtype, "itemsize", &item) < 0)
        return -1;
    bool wide = (text[1] == 'f' && item > 8) || (text[1] == 'c' && item > 16);
    return number < 256 && !wide;
}

/* As plain data, in the codec: 1, 0 when there is no such data, -1 raised. */
static int describe(PyObject *dtype, ing_bytes *into) {
    PyObject *f = ing_py_import("ingot._dtypes", "describe");
    PyObject *data = f ? PyObject_CallOneArg(f, dtype) : NULL;
    int rc = !data ? -1 : data != Py_None;
    ing_codec_out out = {.max = MAX_DTYPE};
    ing_bytes_init(&out.buf);
    if (rc == 1 && ing_py_encode(data, &out) < 0) rc = -1;
    if (rc == 1) ing_bytes_put(into, out.buf.at, out.buf.len);
    ing_bytes_fini(&out.buf);
    Py_XDECREF(f);
    Py_XDECREF(data);
    return rc;
}

/* The dtype's bytes; 1 = text, 2 = data, 0 = none that we store, -1 = raised. */
static int dtype_of(PyObject *v, ing_bytes *into) {
    PyObject *dtype = ing_py_attr(v, "dtype");
    PyObject *str = dtype ? ing_py_attr(dtype, "str") : NULL;
    Py_ssize_t n = 0;
    const char *text = str ? PyUnicode_AsUTF8AndSize(str, &n) : NULL;
    int rc = text ? text_says_all(dtype, text, (size_t)n) : -1;
    if (rc == 1) ing_bytes_put(into, text, (size_t)n);
    if (rc == 0) rc = 2 * describe(dtype, into);
    Py_XDECREF(dtype);
    Py_XDECREF(str);
    return rc < 0 ? -1 : rc;
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

static int flag(PyObject *v, const char *name) {
    PyObject *flags = ing_py_attr(v, "flags");
    PyObject *one = flags ? ing_py_attr(flags, name) : NULL;
    int rc = one ? PyObject_IsTrue(one) : -1;
    Py_XDECREF(flags);
    Py_XDECREF(one);
    return rc;
}

/* The elements of one contiguous array. As plain bytes: dates and records have no buffer. */
static int put_memory(PyObject *v, bool fortran, ing_codec_out *out) {
    PyObject *flat = fortran ? ing_codec_call(v, "ravel", "(s)", "F")
                             : ing_codec_call(v, "reshape", "(i)", -1);
    PyObject *bytes = flat ? ing_codec_call(flat, "view", "(s)", "u1") : NULL;
    Py_buffer view;
    int rc = bytes ? PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) : -1;
    if (rc == 0) {
        rc = ing_codec_run(out, view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
    }
    Py_XDECREF(flat);
    Py_XDECREF(bytes);
    return rc;
}

/* An iterator that gives the elements in order of C as contiguous arrays. */
static PyObject *in_blocks(PyObject *v) {
    size_t item;
    PyObject *np = PyImport_ImportModule("numpy");
    PyObject *make = np ? ing_py_attr(np, "nditer") : NULL;
    PyObject *args = make ? PyTuple_Pack(1, v) : NULL, *kwargs = NULL, *it = NULL;
    if (args && size_attr(v, "itemsize", &item) == 0)
        kwargs =
            Py_BuildValue("{s[ss]s[[ss]]sssn}", "flags", "external_loop", "buffered",
                          "op_flags", "readonly", "contig", "order", "C", "buffersize",
                          (Py_ssize_t)(BLOCK / (item ? item : 1) + 1));
    if (kwargs) it = PyObject_Call(make, args, kwargs);
    if (it) Py_SETREF(it, PyObject_GetIter(it));
    Py_XDECREF(np);
    Py_XDECREF(make);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return it;
}

static int put_blocks(PyObject *v, ing_codec_out *out) {
    PyObject *it = in_blocks(v), *block;
    int rc = it ? 0 : -1;
    while (rc == 0 && (block = PyIter_Next(it))) {
        rc = put_memory(block, false, out);
        Py_DECREF(block);
    }
    Py_XDECREF(it);
    return rc < 0 || PyErr_Occurred() ? -1 : 0;
}

static int put_elements(PyObject *v, bool scalar, bool fortran, ing_codec_out *out) {
    size_t n;
    if (size_attr(v, "nbytes", &n) < 0) return -1;
    if (out->max && n > out->max) {
        PyErr_Format(PyExc_ValueError, "an array of %zu bytes is larger than it may be",
                     n);
        return -1;
    }
    ing_bytes_u64(&out->buf, n);
    if (n == 0) return 0;
    if (scalar) {
        PyObject *bytes = ing_codec_call(v, "tobytes", "()");
        int rc = bytes && PyBytes_Check(bytes)
                     ? ing_codec_run(out, PyBytes_AS_STRING(bytes),
                                     (size_t)PyBytes_GET_SIZE(bytes))
                     : -1;
        Py_XDECREF(bytes);
        return rc;
    }
    int whole = fortran ? 1 : flag(v, "c_contiguous");
    return whole < 0 ? -1 : whole ? put_memory(v, fortran, out) : put_blocks(v, out);
}

int ing_py_encode_numpy(PyObject *v, bool scalar, ing_codec_out *out) {
    ing_bytes dtype;
    ing_bytes_init(&dtype);
    int fortran = scalar ? 0 : flag(v, "fnc");
    int rc = fortran < 0 ? -1 : dtype_of(v, &dtype);
    if (rc > 0) {
        int flags =
            (scalar ? SCALAR : 0) | (fortran ? FORTRAN : 0) | (rc == 2 ? DESCRIBED : 0);
        ing_codec_put_tag(out, ING_CODEC_NUMPY);
        ing_bytes_u8(&out->buf, (uint8_t)flags);
        ing_bytes_u32(&out->buf, (uint32_t)dtype.len);
        ing_bytes_put(&out->buf, dtype.at, dtype.len);
        if (dtype.failed) out->buf.failed = true;
        rc = put_shape(v, &out->buf) < 0 || put_elements(v, scalar, fortran, out) < 0
                 ? -1
                 : 1;
    }
    ing_bytes_fini(&dtype);
    return rc;
}

/* ---- decode -------------------------------------------------------------------------------- */

static PyObject *odd(void) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "stored value: not an array");
    return NULL;
}

/* A dtype from its n bytes, which are copied: what they describe is read like any value. */
static PyObject *get_dtype(ing_codec_in *in, PyObject *np, bool described, uint32_t n) {
    if (n > MAX_DTYPE || n > ing_codec_left(in)) return odd();
    PyObject *text = PyBytes_FromStringAndSize(NULL, n), *dtype = NULL;
    if (!text || ing_codec_take_into(in, PyBytes_AS_STRING(text), n) < 0) {
        Py_XDECREF(text);
        return NULL;
    }
    const char *p = PyBytes_AS_STRING(text);
    if (described) {
        ing_codec_in data = {.p = (const uint8_t *)p, .n = n};
        PyObject *f = ing_py_import("ingot._dtypes", "rebuild");
        PyObject *value = f ? ing_py_decode(&data) : NULL;
        dtype = value ? PyObject_CallOneArg(f, value) : NULL;
        Py_XDECREF(f);
        Py_XDECREF(value);
    } else if (plain_dtype(p, n)) {
        dtype = ing_codec_call(np, "dtype", "(s#)", p, (Py_ssize_t)n);
    }
    Py_DECREF(text);
    return dtype ? dtype : odd();
}

/* The shape as a tuple and the size of all elements. */
static PyObject *get_shape(ing_codec_in *in, size_t item, unsigned ndim,
                           size_t *total) {
    PyObject *shape = ndim <= MAX_NDIM ? PyTuple_New(ndim) : NULL;
    *total = item;
    for (unsigned i = 0; shape && i < ndim; i++) {
        const uint8_t *p = ing_codec_take(in, 8);
        uint64_t extent = p ? ing_codec_u64(p) : 0;
        PyObject *number =
            p && extent <= PTRDIFF_MAX && ing_mul_size(*total, (size_t)extent, total)
                ? PyLong_FromSize_t((size_t)extent)
                : NULL;
        if (!number)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, number);
    }
    return shape ? shape : odd();
}

/* Over a bytearray, so that the array can be written to as the original could. */
static PyObject *get_elements(ing_codec_in *in, PyObject *np, PyObject *dtype,
                              PyObject *shape, size_t size, bool fortran) {
    const uint8_t *p = ing_codec_take(in, 8);
    if (!p || ing_codec_u64(p) != size || size > ing_codec_left(in)) return odd();
    PyObject *data = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
    PyObject *array = NULL;
    if (data && ing_codec_take_into(in, PyByteArray_AS_STRING(data), size) == 0)
        array = ing_codec_call(np, "ndarray", "(OOOiOs)", shape, dtype, data, 0,
                               Py_None, fortran ? "F" : "C");
    Py_XDECREF(data);
    return array;
}

static PyObject *get_array(ing_codec_in *in, PyObject *np, unsigned flags, uint32_t n) {
    size_t item = 0, size = 0;
    PyObject *array = NULL, *shape = NULL;
    PyObject *dtype = get_dtype(in, np, flags & DESCRIBED, n);
    if (dtype && size_attr(dtype, "itemsize", &item) == 0) {
        const uint8_t *ndim = ing_codec_take(in, 1);
        unsigned dims = ndim ? *ndim : 0;
        if (ndim && !(dims && flags & SCALAR)) shape = get_shape(in, item, dims, &size);
    }
    if (shape) array = get_elements(in, np, dtype, shape, size, flags & FORTRAN);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    return array ? array : odd();
}

PyObject *ing_py_decode_numpy(ing_codec_in *in) {
    const uint8_t *p = ing_codec_take(in, 5);
    if (!p) return NULL;
    unsigned flags = p[0];
    uint32_t n = 0;
    for (int i = 0; i < 4; i++) n |= (uint32_t)p[1 + i] << 8 * i;
    if (flags > (SCALAR | FORTRAN | DESCRIBED)) return odd();
    PyObject *np = PyImport_ImportModule("numpy");
    PyObject *value = np ? get_array(in, np, flags, n) : NULL;
    if (value && flags & SCALAR) {
        PyObject *empty = PyTuple_New(0);
        PyObject *item = empty ? PyObject_GetItem(value, empty) : NULL;
        Py_XDECREF(empty);
        Py_SETREF(value, item);
    }
    Py_XDECREF(np);
    return value;
}
