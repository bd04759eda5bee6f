/* Variants as bytes. Everything read is checked against what it must be for the launch to
 * be safe (words inside the argument block, bounds inside the buffer, trees that exist):
 * a checksum precedes this, but nothing here relies on it. Little-endian; version 10:
 *
 *   u32 version
 *   paths, trace                              as in src/trace/index.c
 *   u32 words, u32 buffer bytes, u8 returns tuple, u8 flush denormals, u64 lo, u64 hi of
 *   what was lowered, u32 results, u8 dtype each
 *   u32 binds, each u8 kind, dtype, written, 0; u32 arg, word, path; u8 element dtype,
 *       ndim, grad, element rank; u32 element shape [2]; 12 bytes of layout; u32 numbers of
 *       a field's place, u64 each
 *   u32 trees, u32 path each
 *   u32 tasks, each u8 kind, long, chunk shift; u32 partials, cost; bounds begin and end
 *       (u8 at, u64 value, u32 offset), u32 node, place, u64 lo, u64 hi of the IR digest, u32
 *       functions, u32 tree each; u32 tallies, each u32 word, width, u8 ndim, dtype, kind
 *   u32 pairs of arrays that lie apart, each twice u32 word, ndim, element size,
 *       u64 place in its block, span; then u64 period
 *   u32 stages, each u64 label, u32 path; u32 steps, each u8 kind, u32 at, u32 word
 *   u32 messages, u32 warnings, texts as u32 length + bytes (a warning is two,
 *       u32 tree + 1 or 0, u32 node, u32 line, u64 stamp) */
#include "launch/record.h"

#include <string.h>

enum { VERSION = 10, MAX_TEXT = 1 << 16, MAX_WORDS = 1 << 20, MAX_BUFFER = 64 << 20 };

void ing_record_init(ing_record *r) {
    memset(r, 0, sizeof *r);
    ing_trace_init(&r->trace);
}

void ing_record_fini(ing_record *r) {
    ing_trace_fini(&r->trace);
    for (uint32_t i = 0; i < r->binds.len; i++) ing_free(r->binds.at[i].place);
    for (uint32_t i = 0; i < r->tasks.len; i++) ing_free(r->tasks.at[i].trees);
    for (uint32_t i = 0; i < r->messages.len; i++) ing_free(r->messages.at[i].text);
    for (uint32_t i = 0; i < r->warnings.len; i++) {
        ing_free(r->warnings.at[i].category);
        ing_free(r->warnings.at[i].text);
    }
    ing_vec_fini(&r->binds);
    ing_vec_fini(&r->tasks);
    ing_vec_fini(&r->steps);
    ing_vec_fini(&r->stages);
    ing_vec_fini(&r->apart);
    ing_vec_fini(&r->trees);
    ing_vec_fini(&r->messages);
    ing_vec_fini(&r->warnings);
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put_text(ing_bytes *out, const char *s) {
    size_t n = s ? strlen(s) : 0;
    if (n > MAX_TEXT) n = MAX_TEXT;
    ing_bytes_u32(out, (uint32_t)n);
    ing_bytes_put(out, s, n);
}

static void put_bind(ing_bytes *out, const ing_record_bind *b, ing_path path) {
    const uint8_t head[4] = {b->kind, b->dtype, b->written, 0};
    const uint8_t spec[4] = {b->elem_dtype, b->ndim, b->grad, b->elem_rank};
    ing_bytes_put(out, head, 4);
    ing_bytes_u32(out, b->arg);
    ing_bytes_u32(out, b->word);
    ing_bytes_u32(out, path);
    ing_bytes_put(out, spec, 4);
    ing_bytes_u32(out, b->elem_shape[0]);
    ing_bytes_u32(out, b->elem_shape[1]);
    ing_bytes_put(out, b->layout, sizeof b->layout);
    ing_bytes_u32(out, b->n_place);
    for (uint32_t i = 0; i < b->n_place; i++) ing_bytes_u64(out, (uint64_t)b->place[i]);
}

static void put_bound(ing_bytes *out, const ing_ir_bound *b) {
    ing_bytes_u8(out, b->at);
    ing_bytes_u64(out, (uint64_t)b->value);
    ing_bytes_u32(out, b->offset);
}

static void put_tallies(ing_bytes *out, const ing_ir_task *t) {
    ing_bytes_u32(out, t->n_tallies);
    for (uint32_t i = 0; i < t->n_tallies; i++) {
        const ing_ir_tally *y = &t->tallies[i];
        ing_bytes_u32(out, y->word);
        ing_bytes_u32(out, y->width);
        ing_bytes_u8(out, y->ndim);
        ing_bytes_u8(out, y->dtype);
        ing_bytes_u8(out, y->kind);
    }
}

static void put_task(ing_bytes *out, const ing_record_task *t) {
    ing_bytes_u8(out, t->info.kind);
    ing_bytes_u8(out, t->info.may_run_long);
    ing_bytes_u8(out, t->info.chunk_shift);
    ing_bytes_u32(out, t->info.partials);
    ing_bytes_u32(out, t->info.cost);
    put_bound(out, &t->info.begin);
    put_bound(out, &t->info.end);
    ing_bytes_u32(out, t->info.loc);
    ing_bytes_u32(out, t->info.place);
    ing_bytes_u64(out, t->ir.lo);
    ing_bytes_u64(out, t->ir.hi);
    ing_bytes_u32(out, t->n_trees);
    for (uint32_t i = 0; i < t->n_trees; i++) ing_bytes_u32(out, t->trees[i]);
    put_tallies(out, &t->info);
}

static void put_apart(ing_bytes *out, const ing_record *r) {
    ing_bytes_u32(out, r->apart.len);
    for (uint32_t i = 0; i < 2 * r->apart.len; i++) {
        const ing_code_apart *p = &r->apart.at[i / 2];
        const ing_code_array *a = i % 2 ? &p->b : &p->a;
        ing_bytes_u32(out, a->word);
        ing_bytes_u32(out, a->ndim);
        ing_bytes_u32(out, a->size);
        ing_bytes_u64(out, a->at);
        ing_bytes_u64(out, a->span);
        if (i % 2) ing_bytes_u64(out, p->period);
    }
}

static void put_graph(ing_bytes *out, const ing_record *r, const ing_path *paths) {
    ing_bytes_u32(out, r->stages.len);
    for (uint32_t i = 0; i < r->stages.len; i++) {
        ing_bytes_u64(out, (uint64_t)r->stages.at[i].label);
        ing_bytes_u32(out, paths[i]);
    }
    ing_bytes_u32(out, r->steps.len);
    for (uint32_t i = 0; i < r->steps.len; i++) {
        ing_bytes_u8(out, r->steps.at[i].kind);
        ing_bytes_u32(out, r->steps.at[i].at);
        ing_bytes_u32(out, r->steps.at[i].word);
    }
}

typedef struct path_lists { /* the paths of a record, by what they are for */
    ing_path *binds, *trees, *stages;
} path_lists;

/* Only the paths that this record needs, numbered by first use. */
static ing_status own_paths(const ing_record *r, const ing_paths *from, ing_paths *own,
                            ing_trace *trace, path_lists l, ing_err *e) {
    ing_path *binds = l.binds, *trees = l.trees;
    ING_TRY(ing_trace_copy(&r->trace, from, own, trace, e));
    bool ok = true;
    for (uint32_t i = 0; i < r->stages.len; i++) {
        ing_path p = r->stages.at[i].path;
        l.stages[i] = p ? ing_path_copy(from, p, own) : 0;
        ok = ok && (!p || l.stages[i]);
    }
    for (uint32_t i = 0; i < r->binds.len; i++) {
        ing_path p = r->binds.at[i].path;
        binds[i] = p ? ing_path_copy(from, p, own) : 0;
        ok = ok && (!p || binds[i]);
    }
    for (uint32_t i = 0; i < r->trees.len; i++) {
        trees[i] = ing_path_copy(from, r->trees.at[i], own);
        ok = ok && trees[i];
    }
    return ok ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a variant's entry");
}

static void put_all(const ing_record *r, const ing_paths *own, const ing_trace *trace,
                    path_lists l, ing_bytes *out) {
    const ing_path *binds = l.binds, *trees = l.trees;
    ing_bytes_u32(out, VERSION);
    ing_paths_write(own, out);
    ing_trace_write(trace, out);
    ing_bytes_u32(out, r->n_words);
    ing_bytes_u32(out, r->buffer_bytes);
    ing_bytes_u8(out, r->returns_tuple);
    ing_bytes_u8(out, r->flush_denormals);
    ing_bytes_u64(out, r->lowered.lo);
    ing_bytes_u64(out, r->lowered.hi);
    ing_bytes_u32(out, r->n_rets);
    ing_bytes_put(out, r->rets, r->n_rets);
    ing_bytes_u32(out, r->binds.len);
    for (uint32_t i = 0; i < r->binds.len; i++)
        put_bind(out, &r->binds.at[i], binds[i]);
    ing_bytes_u32(out, r->trees.len);
    for (uint32_t i = 0; i < r->trees.len; i++) ing_bytes_u32(out, trees[i]);
    ing_bytes_u32(out, r->tasks.len);
    for (uint32_t i = 0; i < r->tasks.len; i++) put_task(out, &r->tasks.at[i]);
    put_apart(out, r);
    put_graph(out, r, l.stages);
    ing_bytes_u32(out, r->messages.len);
    ing_bytes_u32(out, r->warnings.len);
    for (uint32_t i = 0; i < r->messages.len; i++)
        put_text(out, r->messages.at[i].text);
    for (uint32_t i = 0; i < r->warnings.len; i++) {
        put_text(out, r->warnings.at[i].category);
        put_text(out, r->warnings.at[i].text);
        ing_bytes_u32(out, r->warnings.at[i].tree);
        ing_bytes_u32(out, r->warnings.at[i].node);
        ing_bytes_u32(out, r->warnings.at[i].line);
        ing_bytes_u64(out, r->warnings.at[i].stamp);
    }
}

ing_status ing_record_write(const ing_record *r, const ing_paths *paths, ing_bytes *out,
                            ing_err *e) {
    ing_paths own;
    ing_trace trace;
    ing_paths_init(&own);
    ing_trace_init(&trace);
    size_t n = (size_t)r->binds.len + r->trees.len + r->stages.len;
    ing_path *ids = ing_calloc(n + 1, sizeof *ids);
    path_lists l = {ids, ids + r->binds.len, ids + r->binds.len + r->trees.len};
    ing_status s =
        ids ? ING_OK : ing_fail(e, ING_MEMORY, "no memory for a variant's entry");
    if (s == ING_OK) s = own_paths(r, paths, &own, &trace, l, e);
    if (s == ING_OK) put_all(r, &own, &trace, l, out);
    if (s == ING_OK && out->failed)
        s = ing_fail(e, ING_MEMORY, "no memory for an entry");
    ing_free(ids);
    ing_paths_fini(&own);
    ing_trace_fini(&trace);
    return s;
}

/* ---- reading ------------------------------------------------------------------------------- */

static char *get_text(ing_reader *r) {
    uint32_t n = ing_reader_count(r, 1);
    const uint8_t *p = n <= MAX_TEXT ? ing_reader_take(r, n) : NULL;
    char *s = p ? ing_malloc((size_t)n + 1) : NULL;
    if (!s) {
        r->failed = true;
        return NULL;
    }
    memcpy(s, p, n);
    s[n] = 0;
    return s;
}

static ing_path get_path(ing_reader *r, const ing_path_map *map) {
    uint32_t id = ing_reader_u32(r);
    if (id >= map->len) r->failed = true;
    return r->failed ? 0 : map->at[id];
}

static void get_bytes(ing_reader *r, void *to, size_t n) {
    const uint8_t *p = ing_reader_take(r, n);
    if (p) memcpy(to, p, n);
}

/* The words of a bind must lie inside the argument block. */
static bool bind_fits(const ing_record_bind *b, uint32_t n_words) {
    uint32_t need = b->ndim ? 1u + b->ndim + (b->grad != 0) : 1u + (b->grad != 0);
    return b->dtype < ING_DTYPE_N && b->elem_dtype < ING_DTYPE_N &&
           b->ndim <= ING_MAX_NDIM && b->elem_rank <= 2 && b->grad <= 1 &&
           b->word < n_words && need <= n_words - b->word;
}

/* The place of a field, if it is one. */
static bool get_place(ing_reader *r, ing_record_bind *b) {
    ing_place place;
    b->n_place = ing_reader_count(r, 8);
    if (r->failed || b->n_place == 0) return !r->failed;
    b->place = ing_calloc(b->n_place, sizeof *b->place);
    if (!b->place) return false;
    for (uint32_t i = 0; i < b->n_place; i++) b->place[i] = (int64_t)ing_reader_u64(r);
    return !r->failed && ing_place_get(b->place, b->n_place, &place);
}

static ing_status get_binds(ing_reader *r, const ing_path_map *map, ing_record *out) {
    uint32_t n = ing_reader_count(r, 44);
    if (!ing_vec_reserve(&out->binds, n)) return ING_DECLINED;
    for (uint32_t i = 0; i < n; i++) {
        ing_record_bind b = {0};
        uint8_t head[4] = {0}, spec[4] = {0};
        get_bytes(r, head, 4);
        uint32_t arg = ing_reader_u32(r);
        b.word = ing_reader_u32(r);
        b.path = get_path(r, map);
        get_bytes(r, spec, 4);
        b.elem_shape[0] = ing_reader_u32(r);
        b.elem_shape[1] = ing_reader_u32(r);
        get_bytes(r, b.layout, sizeof b.layout);
        b.kind = head[0], b.dtype = head[1], b.written = head[2];
        b.elem_dtype = spec[0], b.ndim = spec[1], b.grad = spec[2],
        b.elem_rank = spec[3];
        b.arg = (uint16_t)arg;
        bool place = get_place(r, &b);
        out->binds.at[out->binds.len++] = b;
        if (!place || r->failed || arg > UINT16_MAX || !bind_fits(&b, out->n_words))
            return ING_DECLINED;
    }
    return r->failed ? ING_DECLINED : ING_OK;
}

static bool get_bound(ing_reader *r, const ing_record *out, ing_ir_bound *b) {
    b->at = ing_reader_u8(r);
    b->value = (int64_t)ing_reader_u64(r);
    b->offset = ing_reader_u32(r);
    if (b->at == ING_IR_BOUND_BUFFER)
        return (uint64_t)b->offset + 8 <= out->buffer_bytes;
    if (b->at == ING_IR_BOUND_WORD) return b->offset < out->n_words;
    return b->at == ING_IR_BOUND_CONST;
}

/* Is it of an array as the record binds it? Its size is what the runtime writes. */
static bool tally_fits(const ing_record *out, const ing_ir_tally *y) {
    for (uint32_t i = 0; i < out->binds.len; i++) {
        const ing_record_bind *b = &out->binds.at[i];
        if (b->word != y->word) continue;
        uint64_t width = 1;
        for (uint32_t k = 0; k < b->elem_rank; k++) width *= b->elem_shape[k];
        return b->elem_dtype == y->dtype && b->ndim == y->ndim && width == y->width &&
               ing_ir_tally_ok((ing_ir_atomic)y->kind, (ing_dtype)y->dtype);
    }
    return false;
}

static bool get_tallies(ing_reader *r, const ing_record *out, ing_ir_task *t) {
    t->n_tallies = ing_reader_count(r, 11);
    if (t->n_tallies > ING_IR_MAX_TALLIES) return false;
    for (uint32_t i = 0; i < t->n_tallies; i++) {
        ing_ir_tally *y = &t->tallies[i];
        y->word = ing_reader_u32(r);
        y->width = ing_reader_u32(r);
        y->ndim = ing_reader_u8(r);
        y->dtype = ing_reader_u8(r);
        y->kind = ing_reader_u8(r);
        if (!tally_fits(out, y)) return false;
    }
    return true;
}

static ing_status get_task(ing_reader *r, ing_record *out) {
    ing_record_task t = {0};
    t.info.kind = ing_reader_u8(r);
    t.info.may_run_long = ing_reader_u8(r);
    t.info.chunk_shift = ing_reader_u8(r);
    t.info.partials = ing_reader_u32(r);
    t.info.cost = ing_reader_u32(r);
    bool ok = get_bound(r, out, &t.info.begin) && get_bound(r, out, &t.info.end) &&
              t.info.kind <= ING_IR_TASK_RANGE &&
              t.info.chunk_shift <= ING_IR_MAX_CHUNK_SHIFT &&
              t.info.partials <= ING_IR_MAX_PARTIALS;
    t.info.loc = ing_reader_u32(r);
    t.info.place = ing_reader_u32(r);
    t.ir.lo = ing_reader_u64(r);
    t.ir.hi = ing_reader_u64(r);
    t.n_trees = ing_reader_count(r, 4);
    if (!ok || r->failed) return ING_DECLINED;
    t.trees = ing_calloc((size_t)t.n_trees + 1, sizeof *t.trees);
    if (!t.trees || !ing_vec_push(&out->tasks, t)) {
        ing_free(t.trees);
        return ING_DECLINED;
    }
    for (uint32_t i = 0; i < t.n_trees; i++) {
        t.trees[i] = ing_reader_u32(r);
        if (t.trees[i] >= out->trees.len) return ING_DECLINED;
    }
    bool fits = get_tallies(r, out, &out->tasks.at[out->tasks.len - 1].info);
    return !fits || r->failed ? ING_DECLINED : ING_OK;
}

static bool get_array(ing_reader *r, const ing_record *out, ing_code_array *a) {
    a->word = ing_reader_u32(r);
    a->ndim = ing_reader_u32(r);
    a->size = ing_reader_u32(r);
    a->at = ing_reader_u64(r);
    a->span = ing_reader_u64(r);
    return a->ndim <= ING_MAX_NDIM && a->word < out->n_words &&
           a->ndim < out->n_words - a->word;
}

static ing_status get_apart(ing_reader *r, ing_record *out) {
    uint32_t n = ing_reader_count(r, 64);
    for (uint32_t i = 0; i < n; i++) {
        ing_code_apart p;
        if (!get_array(r, out, &p.a) || !get_array(r, out, &p.b)) return ING_DECLINED;
        p.period = ing_reader_u64(r);
        if (!ing_vec_push(&out->apart, p)) return ING_DECLINED;
    }
    return r->failed ? ING_DECLINED : ING_OK;
}

/* The runtime follows steps without looking: only a program passes. */
static ing_status get_graph(ing_reader *r, const ing_path_map *map, ing_record *out) {
    uint32_t n = ing_reader_count(r, 12);
    for (uint32_t i = 0; i < n; i++) {
        ing_record_stage s = {.label = (int64_t)ing_reader_u64(r)};
        s.path = get_path(r, map);
        if (!ing_vec_push(&out->stages, s)) return ING_DECLINED;
    }
    n = ing_reader_count(r, 9);
    for (uint32_t i = 0; i < n; i++) {
        ing_ir_step s = {.kind = ing_reader_u8(r)};
        s.at = ing_reader_u32(r);
        s.word = ing_reader_u32(r);
        if (!ing_vec_push(&out->steps, s)) return ING_DECLINED;
    }
    bool ok =
        !r->failed && ing_ir_steps_ok(out->steps.at, out->steps.len, out->tasks.len,
                                      out->n_words, out->stages.len);
    return ok ? ING_OK : ING_DECLINED;
}

static ing_status get_texts(ing_reader *r, ing_record *out) {
    uint32_t messages = ing_reader_count(r, 4), warnings = ing_reader_count(r, 28);
    for (uint32_t i = 0; i < messages + warnings && !r->failed; i++) {
        bool warning = i >= messages;
        ing_record_text t = {0};
        if (warning) t.category = get_text(r);
        t.text = get_text(r);
        if (warning) {
            t.tree = ing_reader_u32(r);
            t.node = ing_reader_u32(r);
            t.line = ing_reader_u32(r);
            t.stamp = ing_reader_u64(r);
        }
        bool ok = !r->failed && t.tree <= out->trees.len &&
                  (warning ? ing_vec_push(&out->warnings, t)
                           : ing_vec_push(&out->messages, t));
        if (ok) continue;
        ing_free(t.category);
        ing_free(t.text);
        return ING_DECLINED;
    }
    return r->failed ? ING_DECLINED : ING_OK;
}

static ing_status get_head(ing_reader *r, ing_record *out) {
    out->n_words = ing_reader_u32(r);
    out->buffer_bytes = ing_reader_u32(r);
    out->returns_tuple = ing_reader_u8(r) != 0;
    out->flush_denormals = ing_reader_u8(r) != 0;
    out->lowered.lo = ing_reader_u64(r);
    out->lowered.hi = ing_reader_u64(r);
    out->n_rets = ing_reader_count(r, 1);
    if (r->failed || out->n_rets > ING_RECORD_MAX_RETS || out->n_words > MAX_WORDS ||
        out->buffer_bytes > MAX_BUFFER)
        return ING_DECLINED;
    get_bytes(r, out->rets, out->n_rets);
    for (uint32_t i = 0; i < out->n_rets; i++)
        if (out->rets[i] == ING_VOID || out->rets[i] >= ING_DTYPE_N)
            return ING_DECLINED;
    return ING_OK;
}

static ing_status get_rest(ing_reader *r, const ing_path_map *map, ing_record *out) {
    ING_TRY(ing_trace_read(r, map, &out->trace));
    ING_TRY(get_head(r, out));
    ING_TRY(get_binds(r, map, out));
    uint32_t n = ing_reader_count(r, 4);
    for (uint32_t i = 0; i < n; i++) {
        ing_path tree = get_path(r, map);
        if (!tree || !ing_vec_push(&out->trees, tree)) return ING_DECLINED;
    }
    n = ing_reader_count(r, 44);
    for (uint32_t i = 0; i < n; i++) ING_TRY(get_task(r, out));
    ING_TRY(get_apart(r, out));
    ING_TRY(get_graph(r, map, out));
    ING_TRY(get_texts(r, out));
    return !r->failed && r->at == r->end ? ING_OK : ING_DECLINED;
}

ing_status ing_record_read(const uint8_t *p, size_t n, ing_paths *paths,
                           ing_record *out) {
    ing_reader r = ing_reader_of(p, n);
    ing_path_map map = {0};
    ing_record_init(out);
    ing_status s = ing_reader_u32(&r) == VERSION ? ING_OK : ING_DECLINED;
    if (s == ING_OK) s = ing_paths_read(&r, paths, &map);
    if (s == ING_OK) s = get_rest(&r, &map, out);
    ing_vec_fini(&map);
    if (s != ING_OK) ing_record_fini(out);
    return s;
}
