/* The codec of stored values: plain Python data and NumPy arrays to bytes and back. The
 * bytes name no class and no function, so reading them can run nobody's code (R20). What is
 * large goes from its object to the disk and back without a copy in between. */
#ifndef ING_PY_CODEC_H
#define ING_PY_CODEC_H

#include "py/py.h"

enum {
    ING_CODEC_MAX_DEPTH = 1000,
    ING_CODEC_TAKE = 4096,      /* the most that is looked at in one piece */
    ING_CODEC_STAGE = 64 << 10, /* what is read ahead; larger runs are read in place */
};

/* What stands before a value. Part of the format, whose version is ING_CODEC_VERSION. */
enum { ING_CODEC_VERSION = 2 };
typedef enum ing_codec_tag {
    ING_CODEC_NONE,
    ING_CODEC_FALSE,
    ING_CODEC_TRUE,
    ING_CODEC_INT,     /* 8 bytes, two's complement */
    ING_CODEC_BIG,     /* sign (0, 1), u64 n, n bytes of magnitude, lowest first */
    ING_CODEC_FLOAT,   /* 8 bytes */
    ING_CODEC_COMPLEX, /* real, imaginary */
    ING_CODEC_STR,   /* width (0 ASCII, else bytes of a character: the least that holds
                          all), u64 n, n characters */
    ING_CODEC_BYTES, /* u64 n, n bytes */
    ING_CODEC_TUPLE, /* u64 n, n values */
    ING_CODEC_LIST,  /* the same */
    ING_CODEC_DICT,  /* u64 n, n times key and value, in order */
    ING_CODEC_NUMPY, /* see codec_numpy.c */
    ING_CODEC_SAME,  /* u64 k: the very object whose tag was the k-th with KEEP */
    ING_CODEC_KEEP = 0x80, /* added to the tag of a str, bytes, container or array */
} ing_codec_tag;

/* Where the bytes go: a buffer, which is emptied now and then if there is a `put`. */
typedef struct ing_codec_out {
    ing_bytes buf;
    size_t max; /* of what may be written in all; 0: `put` decides */
    void *self;
    int (*put)(void *self, const void *p, size_t n); /* -1 = raised */
    bool keep; /* the next tag is of something that may come again */
} ing_codec_out;

/* Where they come from: those at hand, and `rest` more that `get` brings. */
typedef struct ing_codec_in {
    const uint8_t *p;
    size_t n;
    uint64_t rest;
    void *self;
    int (*get)(void *self, void *p, size_t n); /* exactly n; -1 = raised */
    uint8_t *stage;
} ing_codec_in;

/* Writes `value`. -1 = raised: a TypeError that names the path of what the codec does not
 * know, a ValueError for what is too deep or too large, or what `put` raised. */
int ing_py_encode(PyObject *value, ing_codec_out *out);
/* A function of the bytes alone: a new reference, or NULL with an exception set. Memory
 * taken is bounded by a multiple of their number, whatever they say. */
PyObject *ing_py_decode(ing_codec_in *in);

void ing_codec_put_tag(ing_codec_out *out, ing_codec_tag tag);
/* A run that may be large, and whatever stands before it. */
int ing_codec_run(ing_codec_out *out, const void *p, size_t n);

/* n bytes at once, borrowed until the next call, n <= ING_CODEC_TAKE; NULL = raised. */
const uint8_t *ing_codec_take(ing_codec_in *in, size_t n);
/* n bytes to a place of the caller's; -1 = raised. */
int ing_codec_take_into(ing_codec_in *in, void *p, uint64_t n);
static inline uint64_t ing_codec_left(const ing_codec_in *in) {
    return in->n + in->rest;
}

/* A method or function by name, interned for the reason of ing_py_attr; arguments as
 * Py_BuildValue has them, which must be a tuple. */
PyObject *ing_codec_call(PyObject *of, const char *name, const char *format, ...);

/* codec_numpy.c. 0 = not NumPy's or none that is stored, 1 = array, 2 = scalar, -1 raised. */
int ing_codec_is_numpy(PyObject *value);
/* 1 = written, 0 = not one that is stored, -1 = raised. */
int ing_py_encode_numpy(PyObject *value, bool scalar, ing_codec_out *out);
/* Reads what follows the tag. */
PyObject *ing_py_decode_numpy(ing_codec_in *in);

static inline uint64_t ing_codec_u64(const uint8_t *p) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

#endif
