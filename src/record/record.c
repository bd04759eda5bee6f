/* Variants as bytes: writer, reader and end of a record, made from the tables in record.h.
 * Everything read is checked against what it must be for the launch to be safe (words inside
 * the argument block, bounds inside the buffer, trees that exist): a checksum precedes this,
 * but nothing here relies on it. */
#include "record/record.h"

#include <string.h>

enum { VERSION = 21, MAX_TEXT = 1 << 16, MAX_WORDS = 1 << 20, MAX_BUFFER = 64 << 20 };

ing_text ing_text_copy(const char *s) {
    size_t n = s ? strlen(s) + 1 : 0;
    char *copy = n ? ing_malloc(n) : NULL;
    if (copy) memcpy(copy, s, n);
    return copy;
}

/* ---- members that are no struct ------------------------------------------------------------ */

typedef struct writer {
    ing_bytes *out;
    const ing_paths *from;
    ing_paths *own; /* only the paths that this record needs, numbered by first use */
    bool failed;
} writer;

typedef struct source {
    ing_reader in;
    const ing_path_map *paths;
} source;

/* Bytes that an element takes at least: what a count promises must be there. */
enum {
    WIRE_uint8_t = 1,
    WIRE_uint32_t = 4,
    WIRE_uint64_t = 8,
    WIRE_int64_t = 8,
    WIRE_ing_hash128 = 16,
    WIRE_ing_path = 4,
    WIRE_ing_text = 4,
};

static void put_uint8_t(writer *w, const uint8_t *v) {
    ing_bytes_u8(w->out, *v);
}

static void put_uint32_t(writer *w, const uint32_t *v) {
    ing_bytes_u32(w->out, *v);
}

static void put_uint64_t(writer *w, const uint64_t *v) {
    ing_bytes_u64(w->out, *v);
}

static void put_int64_t(writer *w, const int64_t *v) {
    ing_bytes_u64(w->out, (uint64_t)*v);
}

static void put_ing_hash128(writer *w, const ing_hash128 *v) {
    ing_bytes_u64(w->out, v->lo);
    ing_bytes_u64(w->out, v->hi);
}

static void put_ing_path(writer *w, const ing_path *v) {
    ing_path here = *v ? ing_path_copy(w->from, *v, w->own) : 0;
    w->failed |= *v && !here;
    ing_bytes_u32(w->out, here);
}

static void put_ing_text(writer *w, const ing_text *v) {
    size_t n = *v ? strlen(*v) : 0;
    if (n > MAX_TEXT) n = MAX_TEXT;
    ing_bytes_u32(w->out, (uint32_t)n);
    ing_bytes_put(w->out, *v, n);
}

static void get_uint8_t(source *s, uint8_t *v) {
    *v = ing_reader_u8(&s->in);
}

static void get_uint32_t(source *s, uint32_t *v) {
    *v = ing_reader_u32(&s->in);
}

static void get_uint64_t(source *s, uint64_t *v) {
    *v = ing_reader_u64(&s->in);
}

static void get_int64_t(source *s, int64_t *v) {
    *v = (int64_t)ing_reader_u64(&s->in);
}

static void get_ing_hash128(source *s, ing_hash128 *v) {
    v->lo = ing_reader_u64(&s->in);
    v->hi = ing_reader_u64(&s->in);
}

static void get_ing_path(source *s, ing_path *v) {
    uint32_t id = ing_reader_u32(&s->in);
    if (id >= s->paths->len) s->in.failed = true;
    *v = s->in.failed ? 0 : s->paths->at[id];
}

static void get_ing_text(source *s, ing_text *v) {
    uint32_t n = ing_reader_count(&s->in, 1);
    const uint8_t *p = n <= MAX_TEXT ? ing_reader_take(&s->in, n) : NULL;
    *v = p ? ing_malloc((size_t)n + 1) : NULL;
    if (!*v) {
        s->in.failed = true;
        return;
    }
    memcpy(*v, p, n);
    (*v)[n] = 0;
}

static void fini_ing_text(ing_text *v) {
    ing_free(*v);
}

#define fini_uint8_t(v)     (void)(v)
#define fini_uint32_t(v)    (void)(v)
#define fini_uint64_t(v)    (void)(v)
#define fini_int64_t(v)     (void)(v)
#define fini_ing_hash128(v) (void)(v)
#define fini_ing_path(v)    (void)(v)

/* ---- structs, from their tables --------------------------------------------------------------- */

#define WIRE_ONE(type, name)        +WIRE_##type
#define WIRE_FIXED(type, name, n)   +(n) * WIRE_##type
#define WIRE_UP_TO(type, name, max) +4
#define WIRE_LIST(type, name)       +4

#define PUT_ONE(type, name) put_##type(w, &x->name);
#define PUT_FIXED(type, name, n) \
    for (uint32_t i = 0; i < (n); i++) put_##type(w, &x->name[i]);
#define PUT_UP_TO(type, name, max)      \
    ing_bytes_u32(w->out, x->n_##name); \
    PUT_FIXED(type, name, x->n_##name)
#define PUT_LIST(type, name)            \
    ing_bytes_u32(w->out, x->name.len); \
    for (uint32_t i = 0; i < x->name.len; i++) put_##type(w, &x->name.at[i]);

#define GET_ONE(type, name) get_##type(s, &x->name);
#define GET_FIXED(type, name, n) \
    for (uint32_t i = 0; i < (n); i++) get_##type(s, &x->name[i]);
#define GET_UP_TO(type, name, max)                                 \
    x->n_##name = ing_reader_count(&s->in, WIRE_##type);           \
    if (x->n_##name > (max)) x->n_##name = 0, s->in.failed = true; \
    GET_FIXED(type, name, x->n_##name)
/* Each element counts before it is read: what was read of it is freed with the rest. */
#define GET_LIST(type, name)                                    \
    {                                                           \
        uint32_t n = ing_reader_count(&s->in, WIRE_##type);     \
        if (!ing_vec_reserve(&x->name, n)) s->in.failed = true; \
        for (uint32_t i = 0; i < n && !s->in.failed; i++) {     \
            memset(&x->name.at[i], 0, sizeof x->name.at[i]);    \
            x->name.len = i + 1;                                \
            get_##type(s, &x->name.at[i]);                      \
        }                                                       \
    }

#define FINI_ONE(type, name) fini_##type(&x->name);
#define FINI_FIXED(type, name, n) \
    for (uint32_t i = 0; i < (n); i++) fini_##type(&x->name[i]);
#define FINI_UP_TO(type, name, max) FINI_FIXED(type, name, x->n_##name)
#define FINI_LIST(type, name)                                               \
    for (uint32_t i = 0; i < x->name.len; i++) fini_##type(&x->name.at[i]); \
    ing_vec_fini(&x->name);

#define STRUCT(type, table)                                                      \
    enum { WIRE_##type = 0 table(WIRE_ONE, WIRE_FIXED, WIRE_UP_TO, WIRE_LIST) }; \
    static void put_##type(writer *w, const type *x) {                           \
        table(PUT_ONE, PUT_FIXED, PUT_UP_TO, PUT_LIST)                           \
    }                                                                            \
    static void get_##type(source *s, type *x) {                                 \
        table(GET_ONE, GET_FIXED, GET_UP_TO, GET_LIST)                           \
    }                                                                            \
    static void fini_##type(type *x) {                                           \
        table(FINI_ONE, FINI_FIXED, FINI_UP_TO, FINI_LIST)                       \
    }

STRUCT(ing_ir_bound, ING_IR_BOUND_MEMBERS)
STRUCT(ing_ir_tally, ING_IR_TALLY_MEMBERS)
STRUCT(ing_ir_task, ING_IR_TASK_MEMBERS)
STRUCT(ing_ir_step, ING_IR_STEP_MEMBERS)
STRUCT(ing_spec, ING_SPEC_MEMBERS)
STRUCT(ing_record_bind, ING_RECORD_BIND_MEMBERS)
STRUCT(ing_record_array, ING_RECORD_ARRAY_MEMBERS)
STRUCT(ing_record_touch, ING_RECORD_TOUCH_MEMBERS)
STRUCT(ing_record_task, ING_RECORD_TASK_MEMBERS)
STRUCT(ing_record_apart, ING_RECORD_APART_MEMBERS)
STRUCT(ing_record_stage, ING_RECORD_STAGE_MEMBERS)
STRUCT(ing_record_warning, ING_RECORD_WARNING_MEMBERS)
STRUCT(ing_record, ING_RECORD_MEMBERS)

/* ---- what a launch relies on ----------------------------------------------------------------- */

static bool array_ok(const ing_record *r, uint32_t word, uint32_t ndim) {
    return ndim <= ING_MAX_NDIM && word < r->n_words && ndim < r->n_words - word;
}

/* The words of a bind must lie inside the argument block. */
static bool bind_ok(const ing_record *r, const ing_record_bind *b) {
    const ing_spec *s = &b->array;
    ing_place place;
    uint32_t need = 1u + s->ndim + (s->grad != 0);
    bool array = b->kind == ING_BIND_ARRAY || b->kind == ING_BIND_CAPTURED;
    bool by_path = b->kind == ING_BIND_CAPTURED || b->kind == ING_BIND_NUMBER;
    return b->kind <= ING_BIND_NUMBER && (!by_path || b->path) &&
           b->arg <= UINT16_MAX && b->dtype < ING_DTYPE_N && s->dtype < ING_DTYPE_N &&
           s->ndim <= ING_MAX_NDIM && s->elem_rank <= 2 && s->grad <= 1 &&
           b->word < r->n_words && need <= r->n_words - b->word &&
           (!b->place.len ||
            (array && ing_place_get(b->place.at, b->place.len, &place)));
}

static bool bound_ok(const ing_record *r, const ing_ir_bound *b) {
    if (b->at == ING_IR_BOUND_BUFFER) return (uint64_t)b->offset + 8 <= r->buffer_bytes;
    if (b->at == ING_IR_BOUND_WORD) return b->offset < r->n_words;
    return b->at == ING_IR_BOUND_CONST;
}

static bool of_array(const ing_record_bind *b, const ing_ir_tally *y) {
    const ing_spec *s = &b->array;
    uint64_t width = 1;
    for (uint32_t k = 0; k < s->elem_rank; k++) width *= s->elem_shape[k];
    return s->dtype == y->dtype && s->ndim == y->ndim && width == y->width && !y->at;
}

static bool of_field(const ing_record_bind *b, const ing_ir_tally *y) {
    ing_place p;
    if (!ing_place_get(b->place.at, b->place.len, &p)) return false;
    return p.dtype == y->dtype && y->ndim == 0 && (uint64_t)p.at == y->at &&
           ing_place_span(&p) ==
               (uint64_t)y->width * ing_dtype_bytes((ing_dtype)p.dtype);
}

/* Is it of an array as the record binds it? Its size is what the runtime writes. */
static bool tally_ok(const ing_record *r, const ing_ir_tally *y) {
    bool found = false;
    for (uint32_t i = 0; i < r->binds.len && !found; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        if (b->word == y->word) found = b->place.len ? of_field(b, y) : of_array(b, y);
    }
    return found && ing_ir_tally_ok((ing_ir_atomic)y->kind, (ing_dtype)y->dtype) &&
           ing_ir_tally_over_ok(y->over, r->n_words) &&
           ing_ir_tally_over_ok(y->over2, r->n_words);
}

static bool task_ok(const ing_record *r, const ing_record_task *t) {
    bool ok = bound_ok(r, &t->info.begin) && bound_ok(r, &t->info.end) &&
              t->info.kind <= ING_IR_TASK_RANGE &&
              t->info.chunk_shift <= ING_IR_MAX_CHUNK_SHIFT &&
              t->info.partials <= ING_IR_MAX_PARTIALS &&
              t->info.row <= ING_IR_MAX_ROW && t->info.block <= ING_IR_MAX_ROW;
    for (uint32_t i = 0; i < t->trees.len; i++) ok &= t->trees.at[i] < r->trees.len;
    for (uint32_t i = 0; i < t->info.n_tallies; i++)
        ok &= tally_ok(r, &t->info.tallies[i]);
    for (uint32_t i = 0; i < t->touches.len; i++) {
        const ing_record_array *a = &t->touches.at[i].array;
        ok &= array_ok(r, a->word, a->ndim);
    }
    return ok;
}

static bool record_ok(const ing_record *r) {
    bool ok = r->n_words <= MAX_WORDS && r->buffer_bytes <= MAX_BUFFER &&
              r->returns_tuple <= 1 && r->flush_denormals <= 1 && r->sized <= 64 &&
              r->n_rule + (uint64_t)2 * r->n_views <= r->apart.len && r->overlap <= 1 &&
              r->draws <= 1;
    for (uint32_t i = 0; i < r->n_rets; i++)
        ok &= r->rets[i] != ING_VOID && r->rets[i] < ING_DTYPE_N;
    for (uint32_t i = 0; ok && i < r->binds.len; i++) ok = bind_ok(r, &r->binds.at[i]);
    for (uint32_t i = 0; i < r->trees.len; i++) ok &= r->trees.at[i] != 0;
    for (uint32_t i = 0; ok && i < r->tasks.len; i++) ok = task_ok(r, &r->tasks.at[i]);
    for (uint32_t i = 0; i < r->arrays.len; i++)
        ok &= array_ok(r, r->arrays.at[i].word, r->arrays.at[i].ndim);
    for (uint32_t i = 0; i < r->apart.len; i++)
        ok &= r->apart.at[i].a < r->arrays.len && r->apart.at[i].b < r->arrays.len;
    for (uint32_t i = 0; i < r->warnings.len; i++)
        ok &= r->warnings.at[i].tree <= r->trees.len;
    /* The runtime follows steps without looking: only a program passes. */
    return ok && ing_ir_steps_ok(r->steps.at, r->steps.len, r->tasks.len, r->n_words,
                                 r->stages.len);
}

/* ---- whole records ---------------------------------------------------------------------------- */

void ing_record_init(ing_record *r) {
    memset(r, 0, sizeof *r);
    ing_trace_init(&r->trace);
}

void ing_record_fini(ing_record *r) {
    ing_trace_fini(&r->trace);
    fini_ing_record(r);
}

ing_hash128 ing_record_overlap_answer(bool overlap) {
    int64_t answer = overlap; /* as a setting's */
    return ing_hash(&answer, sizeof answer);
}

bool ing_record_ask_overlap(ing_record *r, ing_paths *paths) {
    if (!r->apart.len) return true;
    ing_path p = ing_path_add(paths, 0, ING_STEP_CONFIG, "overlap", ING_ASKED_OVERLAP);
    return p && ing_trace_add(&r->trace, p, ING_ASK_CONFIG,
                              ing_record_overlap_answer(r->overlap));
}

ing_status ing_record_write(const ing_record *r, const ing_paths *paths, ing_bytes *out,
                            ing_err *e) {
    ing_paths own;
    ing_trace trace;
    ing_bytes members; /* written first: they tell which paths are needed */
    ing_paths_init(&own);
    ing_trace_init(&trace);
    ing_bytes_init(&members);
    writer w = {&members, paths, &own, false};
    ing_status s = ing_trace_copy(&r->trace, paths, &own, &trace, e);
    if (s == ING_OK) {
        put_ing_record(&w, r);
        ing_bytes_u32(out, VERSION);
        ing_paths_write(&own, out);
        ing_trace_write(&trace, out);
        ing_bytes_put(out, members.at, members.len);
        if (w.failed || members.failed || out->failed)
            s = ing_fail(e, ING_MEMORY, "no memory for a variant's entry");
    }
    ing_bytes_fini(&members);
    ing_paths_fini(&own);
    ing_trace_fini(&trace);
    return s;
}

ing_status ing_record_read(const uint8_t *p, size_t n, ing_paths *paths,
                           ing_record *out) {
    ing_path_map map = {0};
    source from = {ing_reader_of(p, n), &map};
    ing_record_init(out);
    ing_status s = ing_reader_u32(&from.in) == VERSION ? ING_OK : ING_DECLINED;
    if (s == ING_OK) s = ing_paths_read(&from.in, paths, &map);
    if (s == ING_OK) s = ing_trace_read(&from.in, &map, &out->trace);
    if (s == ING_OK) {
        get_ing_record(&from, out);
        bool whole = !from.in.failed && from.in.at == from.in.end;
        s = whole && record_ok(out) ? ING_OK : ING_DECLINED;
    }
    ing_vec_fini(&map);
    if (s != ING_OK) {
        ing_record_fini(out);
        ing_record_init(out); /* who owns it may end it again */
    }
    return s;
}
