/* The codec of stored values: plain Python data and NumPy arrays to bytes and back. The
 * bytes name no class and no function, so reading them can run nobody's code (R20). */
#ifndef ING_PY_CODEC_H
#define ING_PY_CODEC_H

#include "py/py.h"

enum { ING_CODEC_MAX_DEPTH = 1000 };

/* Appends `value`. -1 = raised: a TypeError that names the path of what the codec does
 * not know, a ValueError for what is too deep or too large. */
int ing_py_encode(PyObject *value, size_t max, ing_bytes *out);
/* A function of the bytes alone: a new reference, or NULL with an exception set. Memory
 * taken is bounded by a multiple of `n`, whatever the bytes say. */
PyObject *ing_py_decode(const uint8_t *p, size_t n);

/* A method or function by name, interned for the reason of ing_py_attr; arguments as
 * Py_BuildValue has them, which must be a tuple. */
PyObject *ing_codec_call(PyObject *of, const char *name, const char *format, ...);

/* codec_numpy.c. `put`: 1 = written, 0 = not NumPy's, -1 = raised. */
int ing_py_encode_numpy(PyObject *value, size_t max, ing_bytes *out);
/* Reads what follows the tag; *used is how much. */
PyObject *ing_py_decode_numpy(const uint8_t *p, size_t n, size_t *used);

/* What stands before a value. Part of the format: append only. */
typedef enum ing_codec_tag {
    ING_CODEC_NONE,
    ING_CODEC_FALSE,
    ING_CODEC_TRUE,
    ING_CODEC_INT,     /* 8 bytes, two's complement */
    ING_CODEC_BIG,     /* sign (0, 1), u64 n, n bytes of magnitude, lowest first */
    ING_CODEC_FLOAT,   /* 8 bytes */
    ING_CODEC_COMPLEX, /* real, imaginary */
    ING_CODEC_STR,     /* u64 n, n bytes of UTF-8; lone surrogates pass */
    ING_CODEC_BYTES,   /* u64 n, n bytes */
    ING_CODEC_TUPLE,   /* u64 n, n values */
    ING_CODEC_LIST,    /* the same */
    ING_CODEC_DICT,    /* u64 n, n times key and value, in order */
    ING_CODEC_NUMPY,   /* see codec_numpy.c */
} ing_codec_tag;

static inline uint64_t ing_codec_u64(const uint8_t *p) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

#endif
