/* Memory as bytes for fingerprints: hashed where it lies, in stretches, so that other
 * threads run and Ctrl-C is noticed. What is strided, or padded with bytes that mean
 * nothing, is gathered slab by slab into one small buffer in the order of C, which gives
 * the digest of a contiguous copy without making one. Called by fingerprint_enc.c (long
 * text) and fingerprint_array.c. Runs no user code but signal handlers, and none while it
 * has a pointer that such code could take away: the caller holds the memory.
 *
 * A slab is a stretch of rows along one axis with all axes inside it. It is read in the
 * order of the source's strides, smallest innermost, and written in the order of C. So that
 * a whole line of the cache is used when it is read, a slab holds RUN items of the axis
 * whose stride is smallest wherever they fit into SLAB_MAX. */
#include "py/fingerprint_int.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    STRETCH = 16 << 20,  /* bytes between two looks at signals: 2 ms, 100 from a disk */
    GIL_BYTES = 1 << 20, /* 25 us and more: worth letting other threads run */
    SLAB = 128 << 10,    /* fits the second-level cache with what it is read from */
    SLAB_MAX = 8 << 20,
    RUN = 16,
    PAD_ITEM = 16, /* an x87 long double: 10 bytes of value, then whatever was there */
    PAD_VALUE = 10,
};

int ing_fp_signals(fp_walk *w) {
    if (PyErr_CheckSignals() == 0) return 0;
    w->interrupted = true;
    return -1;
}

int ing_fp_hash_memory(fp_walk *w, const void *p, size_t n, bool release,
                       ing_hash128 *out) {
    if (n < GIL_BYTES) {
        *out = ing_hash(p, n);
        return 0;
    }
    ing_hasher h;
    ing_hasher_init(&h);
    for (size_t at = 0; at < n;) {
        size_t take = n - at < STRETCH ? n - at : STRETCH;
        PyThreadState *save = release ? PyEval_SaveThread() : NULL;
        ing_hasher_raw(&h, (const uint8_t *)p + at, take);
        if (save) PyEval_RestoreThread(save);
        at += take;
        if (at < n && ing_fp_signals(w) < 0) return -1;
    }
    *out = ing_hasher_done(&h);
    return 0;
}

/* ---- strided memory ----------------------------------------------------------------------- */

typedef struct axis {
    size_t n;
    Py_ssize_t from, to; /* strides of the source and of the slab, in bytes */
} axis;

typedef struct shape {
    axis at[PyBUF_MAX_NDIM + 1];
    int n;
    size_t item;
    bool pad;
} shape;

static void add_axis(shape *s, Py_ssize_t n, Py_ssize_t stride) {
    axis *last = s->n ? &s->at[s->n - 1] : NULL;
    if (n == 1) return;
    if (last && last->from == n * stride) { /* the two are one */
        last->n *= (size_t)n;
        last->from = stride;
        return;
    }
    s->at[s->n++] = (axis){(size_t)n, stride, 0};
}

static void read_shape(const Py_buffer *v, bool pad, shape *s) {
    s->n = 0;
    s->pad = pad;
    s->item = pad ? PAD_ITEM : (size_t)v->itemsize;
    for (int i = 0; i < v->ndim; i++) add_axis(s, v->shape[i], v->strides[i]);
    if (pad) add_axis(s, v->itemsize / PAD_ITEM, PAD_ITEM);
    size_t bytes = s->item;
    for (int i = s->n; i-- > 0;) {
        s->at[i].to = (Py_ssize_t)bytes;
        bytes *= s->at[i].n;
    }
    if (!s->n) s->at[s->n++] = (axis){1, (Py_ssize_t)bytes, (Py_ssize_t)bytes};
}

#define COPY_RUN(size)                                              \
    for (size_t i = 0; i < a->n; i++, to += a->to, from += a->from) \
        memcpy(to, from, size);

static void copy_run(const shape *s, const axis *a, uint8_t *to, const uint8_t *from) {
    if (s->pad) {
        for (size_t i = 0; i < a->n; i++, to += a->to, from += a->from) {
            memcpy(to, from, PAD_VALUE);
            memset(to + PAD_VALUE, 0, PAD_ITEM - PAD_VALUE);
        }
        return;
    }
    if (a->from == (Py_ssize_t)s->item && a->to == a->from) {
        memcpy(to, from, a->n * s->item);
        return;
    }
    switch (s->item) {
    case 1: COPY_RUN(1) break;
    case 2: COPY_RUN(2) break;
    case 4: COPY_RUN(4) break;
    case 8: COPY_RUN(8) break;
    case 16: COPY_RUN(16) break;
    default: COPY_RUN(s->item)
    }
}

/* ---- two axes at once ------------------------------------------------------------------------
 * Where the source is contiguous along one axis and the slab along another, items change
 * places in blocks of 16 by 16 bytes. 1,000 x 1,000 items of four bytes in Fortran's order:
 * 0.12 ms against 0.45 one by one (AMD EPYC, gcc 12). */

#if defined(__SSE2__)
static inline __m128i load(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)p);
}

static inline void store(uint8_t *p, __m128i v) {
    _mm_storeu_si128((__m128i *)p, v);
}

/* Row j of the source becomes column j. */
static inline void turn4(uint8_t *to, Py_ssize_t ts, const uint8_t *from,
                         Py_ssize_t fs) {
    __m128i a = load(from), b = load(from + fs);
    __m128i c = load(from + 2 * fs), d = load(from + 3 * fs);
    __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    store(to, _mm_unpacklo_epi64(ab, cd));
    store(to + ts, _mm_unpackhi_epi64(ab, cd));
    ab = _mm_unpackhi_epi32(a, b);
    cd = _mm_unpackhi_epi32(c, d);
    store(to + 2 * ts, _mm_unpacklo_epi64(ab, cd));
    store(to + 3 * ts, _mm_unpackhi_epi64(ab, cd));
}

static inline void turn8(uint8_t *to, Py_ssize_t ts, const uint8_t *from,
                         Py_ssize_t fs) {
    __m128i a = load(from), b = load(from + fs);
    store(to, _mm_unpacklo_epi64(a, b));
    store(to + ts, _mm_unpackhi_epi64(a, b));
}

/* a: the axis along which the source is contiguous; b: the one along which the slab is. */
static void turn(size_t item, const axis *a, const axis *b, uint8_t *to,
                 const uint8_t *from) {
    size_t side = 16 / item, na = a->n / side * side, nb = b->n / side * side;
    for (size_t i0 = 0; i0 < na; i0 += RUN)
        for (size_t j = 0; j < nb; j += side)
            for (size_t i = i0; i < na && i < i0 + RUN; i += side) {
                uint8_t *t = to + (Py_ssize_t)i * a->to + (Py_ssize_t)(j * item);
                const uint8_t *f =
                    from + (Py_ssize_t)j * b->from + (Py_ssize_t)(i * item);
                if (item == 4)
                    turn4(t, a->to, f, b->from);
                else
                    turn8(t, a->to, f, b->from);
            }
    for (size_t j = 0; j < b->n; j++) /* what is left at the edges */
        for (size_t i = j < nb ? na : 0; i < a->n; i++)
            memcpy(to + (Py_ssize_t)i * a->to + (Py_ssize_t)(j * item),
                   from + (Py_ssize_t)j * b->from + (Py_ssize_t)(i * item), item);
}

static bool can_turn(const shape *s, const axis *a, const axis *b) {
    Py_ssize_t item = (Py_ssize_t)s->item;
    return !s->pad && (item == 4 || item == 8) && a->from == item && b->to == item &&
           a->n >= 4 && b->n >= 4;
}
#else
static void turn(size_t item, const axis *a, const axis *b, uint8_t *to,
                 const uint8_t *from) {
    (void)item, (void)a, (void)b, (void)to, (void)from;
}

static bool can_turn(const shape *s, const axis *a, const axis *b) {
    (void)s, (void)a, (void)b;
    return false;
}
#endif

/* Puts the axis along which the slab is contiguous next to the innermost one: true when
 * the two can be turned at once. */
static bool pair_axes(const shape *s, axis *a, int n) {
    for (int i = n - 2; i >= 0; i--) {
        if (!can_turn(s, &a[n - 1], &a[i])) continue;
        axis x = a[i];
        for (; i < n - 2; i++) a[i] = a[i + 1];
        a[n - 2] = x;
        return true;
    }
    return false;
}

/* Copies `rows` items of axis k, and all of the axes inside it. */
static void copy_slab(const shape *s, int k, size_t rows, uint8_t *to,
                      const uint8_t *from) {
    axis a[PyBUF_MAX_NDIM + 1];
    size_t at[PyBUF_MAX_NDIM + 1] = {0};
    int n = 0;
    for (int i = k; i < s->n; i++) { /* sorted by stride, the smallest last */
        axis x = s->at[i];
        if (i == k) x.n = rows;
        int j = n++;
        for (; j && labs(a[j - 1].from) < labs(x.from); j--) a[j] = a[j - 1];
        a[j] = x;
    }
    bool both = pair_axes(s, a, n);
    for (;;) {
        if (both)
            turn(s->item, &a[n - 1], &a[n - 2], to, from);
        else
            copy_run(s, &a[n - 1], to, from);
        int i = n - (both ? 3 : 2);
        for (; i >= 0 && ++at[i] == a[i].n; i--) {
            at[i] = 0;
            to -= a[i].to * (Py_ssize_t)(a[i].n - 1);
            from -= a[i].from * (Py_ssize_t)(a[i].n - 1);
        }
        if (i < 0) return;
        to += a[i].to;
        from += a[i].from;
    }
}

/* The axis that slabs are cut along, and how many of its rows each has. */
static int choose_slab(const shape *s, size_t *rows) {
    int fast = 0, k = 0;
    size_t want = SLAB;
    for (int i = 1; i < s->n; i++)
        if (labs(s->at[i].from) <= labs(s->at[fast].from)) fast = i;
    size_t row = (size_t)s->at[fast].to;
    if (row <= SLAB_MAX / RUN && row * RUN > want) want = row * RUN;
    while (k < s->n - 1 && (size_t)s->at[k].to > want) k++;
    *rows = want / (size_t)s->at[k].to;
    if (!*rows) *rows = 1;
    if (*rows > s->at[k].n) *rows = s->at[k].n;
    return k;
}

typedef struct cursor { /* which slab is next */
    size_t at[PyBUF_MAX_NDIM + 1];
    const uint8_t *from;
    bool done;
} cursor;

static void advance(const shape *s, int k, size_t rows, cursor *c) {
    c->at[k] += rows;
    c->from += s->at[k].from * (Py_ssize_t)rows;
    for (int i = k; c->at[i] == s->at[i].n; i--) {
        c->at[i] = 0;
        c->from -= s->at[i].from * (Py_ssize_t)s->at[i].n;
        if (i == 0) {
            c->done = true;
            return;
        }
        c->at[i - 1]++;
        c->from += s->at[i - 1].from;
    }
}

/* Hashes slabs until all are done or about STRETCH bytes are. */
static void hash_some(const shape *s, int k, size_t most, uint8_t *buf, cursor *c,
                      ing_hasher *h) {
    for (size_t bytes = 0; !c->done && bytes < STRETCH;) {
        size_t left = s->at[k].n - c->at[k], rows = left < most ? left : most;
        size_t size = rows * (size_t)s->at[k].to;
        copy_slab(s, k, rows, buf, c->from);
        ing_hasher_raw(h, buf, size);
        bytes += size;
        advance(s, k, rows, c);
    }
}

int ing_fp_hash_view(fp_walk *w, const Py_buffer *v, bool pad, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    if (!v->len) {
        *out = ing_hasher_done(&h);
        return 0;
    }
    shape s;
    size_t rows;
    read_shape(v, pad, &s);
    int k = choose_slab(&s, &rows);
    uint8_t *buf = ing_malloc(rows * (size_t)s.at[k].to);
    if (!buf) return ing_fp_no_memory();
    cursor c = {.from = v->buf};
    int rc = 0;
    while (rc == 0 && !c.done) {
        PyThreadState *save = v->len >= GIL_BYTES ? PyEval_SaveThread() : NULL;
        hash_some(&s, k, rows, buf, &c, &h);
        if (save) PyEval_RestoreThread(save);
        rc = ing_fp_signals(w);
    }
    ing_free(buf);
    *out = ing_hasher_done(&h);
    return rc;
}
