/* Memory as bytes for fingerprints: hashed where it lies, in stretches, so that other
 * threads run and Ctrl-C is noticed. What is strided, or padded with bytes that mean
 * nothing, is gathered slab by slab into one small buffer in the order of C, which gives
 * the digest of a contiguous copy without making one. Called by fingerprint_enc.c (long
 * text) and fingerprint_array.c. Runs no user code but signal handlers, and none while it
 * has a pointer that such code could take away: the caller holds the memory.
 *
 * A slab is a stretch of rows along one axis with all axes inside it. It is read in the
 * order of the source's strides, smallest innermost, and written in the order of C. So that
 * whole lines of the cache are used when they are read, a slab holds ING_FP_TURN_RUN items
 * of the axis whose stride is smallest, or as many as fit into SLAB_MAX. */
#include "py/fingerprint_int.h"
#include "py/fingerprint_turn.h"

enum {
    STRETCH = 16 << 20,  /* bytes between two looks at signals: 2 ms, 100 from a disk */
    GIL_BYTES = 1 << 20, /* 25 us and more: worth letting other threads run */
    SLAB = 128 << 10,    /* fits the second-level cache with what it is read from */
    SLAB_MAX = 8 << 20,
    LINE = 16,           /* items that are worth a line of the cache */
    SLAB_KEPT = 1 << 20, /* a new one costs 16 us of page faults */
    APART = 64,    /* put between rows of a slab that would share a set of the cache */
    PAD_ITEM = 16, /* an x87 long double: 10 bytes of value, then whatever was there */
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

typedef ing_fp_axis axis; /* from the source to the slab */

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

static void copy_run(const shape *s, const axis *a, uint8_t *to, const uint8_t *from) {
    bool together = a->to == (Py_ssize_t)s->item;
    if (s->pad && together)
        ing_fp_gather_padded(to, from, a->from, a->n);
    else if (together && a->from == a->to)
        memcpy(to, from, a->n * s->item);
    else if (together)
        ing_fp_gather(s->item, to, from, a->from, a->n);
    else
        for (size_t i = 0; i < a->n; i++, to += a->to, from += a->from) {
            if (s->pad)
                ing_fp_gather_padded(to, from, a->from, 1);
            else
                memcpy(to, from, s->item);
        }
}

/* Puts the axis along which the slab is contiguous next to the innermost one: true when
 * the two can be turned at once. */
static bool pair_axes(const shape *s, axis *a, int n) {
    for (int i = n - 2; i >= 0; i--) {
        if (s->pad || !ing_fp_can_turn(s->item, &a[n - 1], &a[i])) continue;
        axis x = a[i];
        for (; i < n - 2; i++) a[i] = a[i + 1];
        a[n - 2] = x;
        return true;
    }
    return false;
}

/* Rows whose addresses differ by a multiple of a page's quarter end up in few sets of the cache:
 * 1,024 x 1,024 numbers in Fortran's order took 3.4 times as long side by side. */
static size_t step_of(const shape *s, int k, size_t rows) {
    size_t size = (size_t)s->at[k].to;
    return rows > 8 && size % 1024 == 0 ? size + APART : size;
}

/* Copies `rows` items of axis k, `step` bytes apart, and all of the axes inside it. */
static void copy_slab(const shape *s, int k, size_t rows, size_t step, uint8_t *to,
                      const uint8_t *from) {
    axis a[PyBUF_MAX_NDIM + 1];
    size_t at[PyBUF_MAX_NDIM + 1] = {0};
    int n = 0;
    for (int i = k; i < s->n; i++) { /* sorted by stride, the smallest last */
        axis x = s->at[i];
        if (i == k) x.n = rows, x.to = (Py_ssize_t)step;
        int j = n++;
        for (; j && labs(a[j - 1].from) < labs(x.from); j--) a[j] = a[j - 1];
        a[j] = x;
    }
    bool both = pair_axes(s, a, n);
    for (;;) {
        if (both)
            ing_fp_turn(s->item, &a[n - 1], &a[n - 2], to, from);
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
    size_t row = (size_t)s->at[fast].to, run = ING_FP_TURN_RUN;
    while (run > LINE && row > SLAB_KEPT / run) run /= 2;
    while (run > 1 && row > SLAB_MAX / run) run /= 2;
    if (run > s->at[fast].n) run = s->at[fast].n;
    if (row <= SLAB_MAX / run && row * run > want) want = row * run;
    while (k < s->n - 1 && (size_t)s->at[k].to > want) k++;
    *rows = want / (size_t)s->at[k].to;
    if (!*rows) *rows = 1;
    size_t n = s->at[k].n;
    if (*rows > LINE) *rows -= *rows % LINE; /* whole blocks */
    if (*rows > n) *rows = n;
    if (n % *rows && n % *rows < 8) { /* too few for a block: all slabs get less */
        size_t slabs = (n - 1) / *rows + 1;
        *rows = (n - 1) / slabs + 1;
    }
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
    size_t step = step_of(s, k, most), row = (size_t)s->at[k].to;
    for (size_t bytes = 0; !c->done && bytes < STRETCH;) {
        size_t left = s->at[k].n - c->at[k], rows = left < most ? left : most;
        copy_slab(s, k, rows, step, buf, c->from);
        if (step == row) ing_hasher_raw(h, buf, rows * row);
        for (size_t i = 0; step != row && i < rows; i++)
            ing_hasher_raw(h, buf + i * step, row);
        bytes += rows * row;
        advance(s, k, rows, c);
    }
}

/* One slab is kept for the next array. */
static uint8_t *take_slab(ing_py_fp *fp, size_t *size) {
    uint8_t *kept = fp->slab;
    if (!kept || fp->slab_size < *size) return ing_malloc(*size);
    *size = fp->slab_size;
    fp->slab = NULL;
    return kept;
}

static void leave_slab(ing_py_fp *fp, uint8_t *slab, size_t size) {
    if (size > SLAB_KEPT || (fp->slab && fp->slab_size >= size)) {
        ing_free(slab);
        return;
    }
    ing_free(fp->slab);
    fp->slab = slab;
    fp->slab_size = size;
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
    size_t size = rows * step_of(&s, k, rows);
    uint8_t *buf = take_slab(w->fp, &size);
    if (!buf) return ing_fp_no_memory();
    cursor c = {.from = v->buf};
    int rc = 0;
    while (rc == 0 && !c.done) {
        PyThreadState *save = v->len >= GIL_BYTES ? PyEval_SaveThread() : NULL;
        hash_some(&s, k, rows, buf, &c, &h);
        if (save) PyEval_RestoreThread(save);
        rc = ing_fp_signals(w);
    }
    leave_slab(w->fp, buf, size);
    *out = ing_hasher_done(&h);
    return rc;
}
