/* Memory as bytes for fingerprints: hashed where it lies, in stretches, so that other
 * threads run and Ctrl-C is noticed. What is strided, or padded with bytes that mean
 * nothing, is gathered slab by slab into one small buffer in the order of C, which gives
 * the digest of a contiguous copy without making one. Called by fingerprint_enc.c (long
 * text) and fingerprint_array.c. Runs no user code but signal handlers, and none while it
 * has a pointer that such code could take away: the caller holds the memory.
 *
 * A slab is a stretch of rows along one axis with all axes inside it. It is read in the
 * order of the source's strides, smallest innermost, and written in the order of C. So that
 * whole lines of the cache are used when they are read, a slab holds ING_FP_TURN_BYTES
 * of the axis whose stride is smallest, or as many as fit into SLAB_MAX; all of it where
 * it is short and the last axis goes on where it ends: what is read is then one stretch. */
#include "py/value/fingerprint_int.h"
#include "py/value/fingerprint_turn.h"

enum {
    STRETCH = 16 << 20,  /* bytes between two looks at signals: 2 ms, 100 from a disk */
    GIL_BYTES = 1 << 20, /* 25 us and more: worth letting other threads run */
    SLAB = 128 << 10,    /* fits the second-level cache with what it is read from */
    SLAB_GOOD = 512 << 10, /* so do half lines of each row */
    SLAB_MAX = 8 << 20, /* is kept: a new one costs 16 us of page faults for each MB */
    WHOLE_AXIS =
        512, /* bytes of an axis that is not cut, where the last one goes on behind it */
    LINE = 64,    /* bytes of a line of the cache; items of as many rows */
    WHOLE = 16,   /* rows of the highest block that is turned */
    BLOCK = 1024, /* bytes that the hash takes at a time */
    DIRECT =
        2048, /* bytes of a run that is not copied: fewer end in the hash's own buffer */
    APART = 64, /* put between rows of a slab that would share a set of the cache */
    ALIGN = 64,
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
    ing_fp_item item;
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
    s->item = (ing_fp_item){(size_t)v->itemsize, pad};
    for (int i = 0; i < v->ndim; i++) add_axis(s, v->shape[i], v->strides[i]);
    size_t bytes = s->item.size;
    for (int i = s->n; i-- > 0;) {
        s->at[i].to = (Py_ssize_t)bytes;
        bytes *= s->at[i].n;
    }
    if (!s->n) s->at[s->n++] = (axis){1, (Py_ssize_t)bytes, (Py_ssize_t)bytes};
}

/* Puts the axis along which the slab is contiguous last but one, if it is not the last. */
static bool pair_axes(const shape *s, axis *a, int n) {
    for (int i = n - 2; i >= 0; i--) {
        if (a[i].to != (Py_ssize_t)s->item.size) continue;
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
    return rows > 8 && size % BLOCK == 0 ? size + APART : size;
}

/* The axes of a slab of `rows` rows, sorted by stride, the smallest last. Where the source
 * goes backwards, the copy does instead, so that what it reads goes forwards. */
static int sort_axes(const shape *s, int k, size_t rows, size_t step, axis *a,
                     uint8_t **to, const uint8_t **from) {
    int n = 0;
    for (int i = k; i < s->n; i++) {
        axis x = s->at[i];
        bool last = i == s->n - 1;
        if (i == k) x.n = rows, x.to = (Py_ssize_t)step;
        if (x.from < 0 && !last) {
            *from += x.from * (Py_ssize_t)(x.n - 1);
            *to += x.to * (Py_ssize_t)(x.n - 1);
            x.from = -x.from;
            x.to = -x.to;
        }
        int j = n++;
        for (; j && labs(a[j - 1].from) < labs(x.from); j--) a[j] = a[j - 1];
        a[j] = x;
    }
    return n;
}

/* How copy_slab moves what is inside its odometer. */
typedef enum way {
    RUNS, /* the last axis */
    ROWS, /* the last axis as rows that are contiguous in both, along the last but one */
    TURNS, /* the last two, turned */
} way;

static way choose_way(const shape *s, axis *a, int n, ing_fp_item *row) {
    bool together = a[n - 1].to == (Py_ssize_t)s->item.size;
    *row = s->item;
    if (!together) return n > 1 && pair_axes(s, a, n) ? TURNS : RUNS;
    if (a[n - 1].from != a[n - 1].to) return RUNS;
    row->size *= a[n - 1].n;
    return n > 1 ? ROWS : RUNS;
}

/* The axes of copy_slab but for those that are moved at once. */
typedef struct odometer {
    axis *a;
    int n;
    size_t at[PyBUF_MAX_NDIM + 1];
} odometer;

static bool turn_over(odometer *o, uint8_t **to, const uint8_t **from) {
    int i = o->n - 1;
    for (; i >= 0 && ++o->at[i] == o->a[i].n; i--) {
        o->at[i] = 0;
        *to -= o->a[i].to * (Py_ssize_t)(o->a[i].n - 1);
        *from -= o->a[i].from * (Py_ssize_t)(o->a[i].n - 1);
    }
    if (i < 0) return false;
    *to += o->a[i].to;
    *from += o->a[i].from;
    return true;
}

/* Copies `rows` items of axis k, `step` bytes apart, and all of the axes inside it. */
static void copy_slab(const shape *s, int k, size_t rows, size_t step, uint8_t *to,
                      const uint8_t *from) {
    axis a[PyBUF_MAX_NDIM + 1];
    ing_fp_item row;
    int n = sort_axes(s, k, rows, step, a, &to, &from);
    way how = choose_way(s, a, n, &row);
    odometer o = {a, n - (how == RUNS ? 1 : 2), {0}};
    do {
        if (how == TURNS)
            ing_fp_turn(s->item, &a[n - 1], &a[n - 2], to, from);
        else if (how == ROWS)
            ing_fp_rows(row, &a[n - 2], to, from);
        else if (row.size != s->item.size)
            ing_fp_rows(row, &(axis){1, 0, 0}, to, from);
        else if (a[n - 1].to == (Py_ssize_t)s->item.size)
            ing_fp_gather(s->item, to, from, a[n - 1].from, a[n - 1].n);
        else
            ing_fp_rows(s->item, &a[n - 1], to, from);
    } while (turn_over(&o, &to, &from));
}

/* Items of the axis whose stride is smallest that a slab should have: whole lines of the
 * cache, and several of them while the slab stays in its second level. */
static size_t choose_run(const shape *s, const axis *fast) {
    size_t row = (size_t)fast->to, size = s->item.size;
    bool stretch = s->at[s->n - 1].from == (Py_ssize_t)(fast->n * size);
    if (stretch && fast->n <= WHOLE_AXIS / size && row <= SLAB_MAX / fast->n)
        return fast->n;
    size_t line = size < LINE / 2 ? LINE / 2 / size : 1;
    size_t run = size < ING_FP_TURN_BYTES / LINE ? ING_FP_TURN_ITEMS(size) : LINE;
    while (run > line && row > SLAB_GOOD / run) run /= 2;
    while (run > 1 && row > SLAB_MAX / run) run /= 2;
    return run < fast->n ? run : fast->n;
}

/* The axis that slabs are cut along, and how many of its rows each has. */
static int choose_slab(const shape *s, size_t *rows) {
    int fast = 0, k = 0;
    size_t want = SLAB;
    for (int i = 1; i < s->n; i++)
        if (labs(s->at[i].from) <= labs(s->at[fast].from)) fast = i;
    size_t row = (size_t)s->at[fast].to, run = choose_run(s, &s->at[fast]);
    if (row <= SLAB_MAX / run && row * run > want) want = row * run;
    while (k < s->n - 1 && (size_t)s->at[k].to > want) k++;
    if (k < fast && row % BLOCK == 0) k = fast; /* its rows can be put apart */
    *rows = want / (size_t)s->at[k].to;
    if (!*rows) *rows = 1;
    size_t n = s->at[k].n;
    if (*rows > LINE) *rows -= *rows % LINE; /* whole blocks */
    if (*rows > n) *rows = n;
    if (n % *rows && n % *rows < WHOLE) { /* too few for a block: all slabs get less */
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
        advance(s, k, rows, c);
        if (step == row) ing_hasher_raw(h, buf, rows * row);
        for (size_t i = 0; step != row && i < rows; i++)
            if (c->done && i == rows - 1)
                ing_hasher_raw(h, buf + i * step, row);
            else
                ing_hasher_blocks(h, buf + i * step, row);
        bytes += rows * row;
    }
}

/* Long runs are hashed where they lie: until all are done or about STRETCH bytes are. */
static void hash_runs(const shape *s, cursor *c, ing_hasher *h) {
    const axis *last = &s->at[s->n - 1];
    size_t run = last->n * s->item.size;
    for (size_t bytes = 0; !c->done && bytes < STRETCH; bytes += run) {
        ing_hasher_raw(h, c->from, run);
        advance(s, s->n - 1, last->n, c);
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
    if (size > SLAB_MAX + ALIGN || (fp->slab && fp->slab_size >= size)) {
        ing_free(slab);
        return;
    }
    ing_free(fp->slab);
    fp->slab = slab;
    fp->slab_size = size;
}

static int hash_shape(fp_walk *w, const shape *s, const Py_buffer *v, ing_hasher *h) {
    const axis *last = &s->at[s->n - 1];
    bool direct =
        !s->item.pad && last->from == last->to && last->n >= DIRECT / s->item.size;
    size_t rows = 0, size = ALIGN;
    int k = direct ? 0 : choose_slab(s, &rows);
    if (!direct) size += rows * step_of(s, k, rows);
    uint8_t *slab = direct ? NULL : take_slab(w->fp, &size);
    if (!direct && !slab) return ing_fp_no_memory();
    uint8_t *buf = slab ? slab + (ALIGN - (uintptr_t)slab % ALIGN) : NULL;
    cursor c = {.from = v->buf};
    int rc = 0;
    while (rc == 0 && !c.done) {
        PyThreadState *save = v->len >= GIL_BYTES ? PyEval_SaveThread() : NULL;
        if (direct)
            hash_runs(s, &c, h);
        else
            hash_some(s, k, rows, buf, &c, h);
        if (save) PyEval_RestoreThread(save);
        rc = ing_fp_signals(w);
    }
    if (slab) leave_slab(w->fp, slab, size);
    return rc;
}

int ing_fp_hash_view(fp_walk *w, const Py_buffer *v, bool pad, ing_hash128 *out) {
    ing_hasher h;
    ing_hasher_init(&h);
    int rc = 0;
    if (v->len) {
        shape s;
        read_shape(v, pad, &s);
        rc = hash_shape(w, &s, v, &h);
    }
    if (rc == 0) *out = ing_hasher_done(&h); /* else it may wait for more */
    return rc;
}
