/* Entries of the kernel level, damaged in every way with their checksum put right: paths,
 * traces, trees and whole variants either read back as written or are declined, and
 * nothing is read outside the bytes or left behind. Golden bytes of the format. */
#include "check.h"
#include "record/record.h"

static ing_hash128 digest_of(uint64_t n) {
    return (ing_hash128){n * 0x9E3779B97F4A7C15u, n + 7};
}

/* ---- what is written -------------------------------------------------------------------- */

static ing_path paths_fill(ing_paths *p) {
    ing_path kernel = ing_path_add(p, 0, ING_STEP_KERNEL, NULL, 0);
    ing_path arg = ing_path_add(p, 0, ING_STEP_ARG, "a", 0);
    (void)ing_path_add(p, arg, ING_STEP_ATTR, "cfg", 0);
    ing_path f = ing_path_add(p, kernel, ING_STEP_GLOBAL, "f", 0);
    ing_path item = ing_path_add(p, f, ING_STEP_ITEM_INT, NULL, -3);
    (void)ing_path_add(p, 0, ING_STEP_CONFIG, "debug", 0);
    return item;
}

static void record_fill(ing_record *r, ing_paths *p) {
    ing_record_init(r);
    ing_path last = paths_fill(p);
    for (ing_path i = 1; i <= last; i++)
        CHECK(ing_trace_add(&r->trace, i, (ing_ask)(1 + i % 4), digest_of(i)));
    r->n_words = 12;
    r->flush_denormals = true;
    r->sized = 64;
    r->n_rule = 1;
    r->n_views = 1;
    r->draws = 1;
    r->overlap = true;
    r->buffer_bytes = 64;
    r->n_rets = 2;
    r->rets[0] = ING_F32, r->rets[1] = ING_I64;
    r->returns_tuple = true;
    r->lowered = digest_of(5);
    ing_record_bind array = {
        .kind = 1,
        .word = 2,
        .path = 2,
        .written = 1,
        .reads = 2,
        .array = {.dtype = ING_I32, .ndim = 2, .grad = 1, .layout = {0, 1}}};
    ing_record_bind scalar = {.dtype = ING_I32, .arg = 1, .word = 8};
    ing_record_bind matrices = {
        .kind = 2,
        .word = 9,
        .path = last,
        .array = {.dtype = ING_F32, .ndim = 1, .elem_rank = 2, .elem_shape = {2, 3}}};
    CHECK(ing_vec_push(&r->binds, array) && ing_vec_push(&r->binds, scalar) &&
          ing_vec_push(&r->binds, matrices));
    ing_place place = {.dtype = ING_I32,
                       .ndim = 1,
                       .n_levels = 1,
                       .at = 4,
                       .from = {-2},
                       .level = {{0, 8, 12}}};
    ing_record_bind field = {.kind = 1, .word = 7, .path = 2};
    CHECK(ing_vec_reserve(&field.place, ING_PLACE_MAX_NUMBERS));
    field.place.len = ing_place_put(&place, field.place.at);
    CHECK(ing_vec_push(&r->binds, field));
    CHECK(ing_vec_push(&r->trees, (ing_path)1) && ing_vec_push(&r->trees, last));
    ing_record_task t = {.ir = digest_of(99)};
    t.info.may_run_long = 1;
    t.info.loc = 77;
    t.info.kind = ING_IR_TASK_RANGE;
    t.info.chunk_shift = 6;
    t.info.row = 46;
    t.info.block = 64;
    t.info.partials = 3;
    t.info.cost = 12;
    t.info.place = 9;
    t.info.n_tallies = 2;
    t.info.tallies[1] = (ing_ir_tally){.word = 7,
                                       .width = 22,
                                       .at = 4,
                                       .dtype = ING_I32,
                                       .kind = ING_IR_ATOMIC_ADD,
                                       .times = 6,
                                       .over = 3,
                                       .over2 = 5};
    t.info.tallies[0] = (ing_ir_tally){
        .word = 2, .width = 1, .ndim = 2, .dtype = ING_I32, .kind = ING_IR_ATOMIC_MAX};
    t.info.begin = (ing_ir_bound){.at = ING_IR_BOUND_CONST, .value = -4};
    t.info.end = (ing_ir_bound){.at = ING_IR_BOUND_BUFFER, .offset = 56};
    CHECK(ing_vec_push(&t.trees, 1) && ing_vec_push(&t.trees, 0));
    ing_record_touch touch = {
        .array = {2, 2, 12, 0, 0}, .reads = 1, .writes = 1, .each = 3};
    CHECK(ing_vec_push(&t.touches, touch));
    CHECK(ing_vec_push(&r->tasks, t));
    static const ing_ir_step steps[] = {
        {ING_IR_STEP_LOOP, 4, 0},     {ING_IR_STEP_STAGE, 0, 0},
        {ING_IR_STEP_TASK, 0, 0},     {ING_IR_STEP_STAGE_END, 0, 8},
        {ING_IR_STEP_LOOP_END, 0, 2}, {ING_IR_STEP_FORK, 9, 0},
        {ING_IR_STEP_SECTION, 8, 0},  {ING_IR_STEP_TASK, 0, 0},
        {ING_IR_STEP_SECTION, 9, 0},  {ING_IR_STEP_JOIN, 5, 0},
    };
    static const ing_record_array arrays[] = {
        {2, 2, 12, 0, 0}, {6, 1, 4, 8, 400}, {9, 0, 4, 0, 64}};
    static const ing_record_apart pairs[] = {{2, 1}, {1, 0}, {2, 0}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(ing_vec_push(&r->arrays, arrays[i]));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        CHECK(ing_vec_push(&r->apart, pairs[i]));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        CHECK(ing_vec_push(&r->steps, steps[i]));
    ing_record_stage stage = {.label = -3, .path = last};
    CHECK(ing_vec_push(&r->stages, stage));
    char *message = ing_text_copy("it must be small");
    ing_record_warning warning = {.category = ing_text_copy("note"),
                                  .text = ing_text_copy("this is slow"),
                                  .tree = 1,
                                  .node = 7,
                                  .line = 3,
                                  .stamp = 0x123456789abcdef0};
    CHECK(ing_vec_push(&r->messages, message) && ing_vec_push(&r->warnings, warning));
}

static void record_bytes(ing_bytes *out) {
    ing_paths p;
    ing_record r;
    ing_paths_init(&p);
    record_fill(&r, &p);
    ing_bytes_init(out);
    CHECK(ing_record_write(&r, &p, out, NULL) == ING_OK);
    ing_record_fini(&r);
    ing_paths_fini(&p);
}

/* Trace v of the five that the index tells apart: they part at question v. */
static void trace_fill(ing_trace *t, uint32_t v, ing_path last) {
    for (ing_path i = 1; i <= last; i++) {
        bool differs = i >= 3 && v >= i;
        CHECK(ing_trace_add(t, i, ING_ASK_SOURCE, digest_of(differs ? v + 50 : i)));
        if (differs) break;
    }
}

static ing_status trace_of(void *self, uint32_t variant, ing_trace *out) {
    trace_fill(out, variant, *(ing_path *)self);
    return ING_OK;
}

/* An index as src/trace/index.c lays it out, but for the list of keys. */
static void index_bytes(ing_bytes *out) {
    ing_paths p;
    ing_paths_init(&p);
    ing_path last = paths_fill(&p);
    ing_tree *tree = ing_tree_new();
    for (uint32_t v = 0; v < 5; v++) {
        ing_trace t;
        ing_trace_init(&t);
        trace_fill(&t, v, last);
        CHECK(ing_tree_insert(tree, &t, v, trace_of, &last, NULL) == ING_OK);
        ing_trace_fini(&t);
    }
    ing_bytes_init(out);
    ing_tree_write(tree, &p, out);
    CHECK(!out->failed);
    ing_tree_free(tree);
    ing_paths_fini(&p);
}

/* ---- what is read ------------------------------------------------------------------------ */

/* A tally is of an array that is bound just so: its size is what the runtime writes. */
static bool tally_is_bound(const ing_record *r, const ing_ir_tally *y) {
    bool found = false;
    for (uint32_t i = 0; i < r->binds.len; i++) {
        const ing_record_bind *b = &r->binds.at[i];
        const ing_spec *s = &b->array;
        ing_place p;
        if (b->word != y->word) continue;
        if (ing_place_get(b->place.at, b->place.len, &p))
            found |=
                p.dtype == y->dtype && (uint64_t)p.at == y->at && !y->ndim &&
                ing_place_span(&p) / ing_dtype_bytes((ing_dtype)p.dtype) == y->width;
        else
            found |= s->ndim == y->ndim && s->dtype == y->dtype && !y->at &&
                     (s->elem_rank ? s->elem_shape[0] : 1) *
                             (s->elem_rank == 2 ? s->elem_shape[1] : 1) ==
                         y->width;
    }
    return found && y->kind < ING_IR_ATOMIC_XCHG && y->dtype > ING_U1 &&
           y->dtype <= ING_U64;
}

/* Reads a record and uses what it says as a launch would: every word, offset and tree is
 * inside its bounds. True: accepted. */
static bool record_try(const uint8_t *p, size_t n, ing_bytes *again) {
    ing_paths paths;
    ing_record r;
    ing_paths_init(&paths);
    bool ok = ing_record_read(p, n, &paths, &r) == ING_OK;
    if (ok) {
        for (uint32_t i = 0; i < r.binds.len; i++) {
            const ing_record_bind *b = &r.binds.at[i];
            CHECK(b->word < r.n_words && b->word + b->array.ndim < r.n_words + 1);
            CHECK(b->path < paths.nodes.len);
        }
        for (uint32_t i = 0; i < r.tasks.len; i++) {
            const ing_record_task *t = &r.tasks.at[i];
            for (uint32_t j = 0; j < t->trees.len; j++)
                CHECK(t->trees.at[j] < r.trees.len);
            if (t->info.end.at == ING_IR_BOUND_BUFFER)
                CHECK((uint64_t)t->info.end.offset + 8 <= r.buffer_bytes);
            for (uint32_t j = 0; j < t->info.n_tallies; j++)
                CHECK(tally_is_bound(&r, &t->info.tallies[j]));
        }
        for (uint32_t i = 0; i < r.warnings.len; i++)
            CHECK(r.warnings.at[i].tree <= r.trees.len);
        for (uint32_t i = 0; i < r.trace.list.len; i++)
            CHECK(r.trace.list.at[i].path < paths.nodes.len);
        for (uint32_t i = 0; i < r.trees.len; i++)
            CHECK(r.trees.at[i] && r.trees.at[i] < paths.nodes.len);
        ing_bytes text;
        ing_bytes_init(&text);
        ing_trace_print(&r.trace, &paths, &text);
        ing_bytes_fini(&text);
        if (again) CHECK(ing_record_write(&r, &paths, again, NULL) == ING_OK);
        ing_record_fini(&r);
    }
    ing_paths_fini(&paths);
    return ok;
}

typedef struct walker {
    const ing_paths *paths;
    uint64_t state, asked;
} walker;

static ing_status answer(void *self, ing_path path, ing_ask ask, ing_hash128 *out,
                         ing_err *e) {
    (void)ask, (void)e;
    walker *w = self;
    CHECK(path && path < w->paths->nodes.len);
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    *out = digest_of(w->state % 3 ? path : w->state >> 60);
    return ++w->asked > 1000 ? ING_INTERNAL : ING_OK;
}

/* Reads paths and tree, then walks the tree with several answers. */
static bool index_try(const uint8_t *p, size_t n) {
    ing_paths paths;
    ing_tree *tree = ing_tree_new();
    ing_paths_init(&paths);
    ing_reader r = ing_reader_of(p, n);
    bool ok = ing_tree_read(&r, &paths, 5, tree) == ING_OK && r.at == r.end;
    for (uint64_t seed = 0; ok && seed < 4; seed++) {
        walker w = {&paths, seed, 0};
        uint32_t variant = 0;
        ing_questions asked = {0};
        ing_status s = ing_tree_walk(tree, answer, &w, &variant, &asked, NULL);
        CHECK(s == ING_OK || s == ING_DECLINED); /* it ends: edges lead downwards */
        if (s == ING_OK) CHECK(variant < 5);
        ing_vec_fini(&asked);
    }
    ing_tree_free(tree);
    ing_paths_fini(&paths);
    return ok;
}

/* ---- the tests ---------------------------------------------------------------------------- */

static void test_round_trip(void) {
    ing_bytes one, two;
    record_bytes(&one);
    ing_bytes_init(&two);
    CHECK(record_try(one.at, one.len, &two));
    CHECK(one.len == two.len && memcmp(one.at, two.at, one.len) == 0);
    ing_bytes_fini(&two);
    ing_bytes_fini(&one);
    index_bytes(&one);
    CHECK(index_try(one.at, one.len));
    ing_bytes_fini(&one);
}

/* What lowering would answer: trace `v` of the five, as far as it goes. */
typedef struct replayer {
    ing_trace trace;
    uint32_t asked, wrong_at; /* question that gets a new answer; UINT32_MAX: none */
} replayer;

static ing_status replay(void *self, ing_path path, ing_ask ask, ing_hash128 *out,
                         ing_err *e) {
    (void)e;
    replayer *w = self;
    CHECK(w->asked < w->trace.list.len);
    const ing_question *q = &w->trace.list.at[w->asked];
    CHECK(q->path == path && q->ask == ask); /* never out of order, never twice */
    *out = w->asked++ == w->wrong_at ? digest_of(12345) : q->answer;
    return ING_OK;
}

/* The tree holds what tells variants apart and no more; the rest is asked from the trace of
 * the one that is left; any other answer, wherever it is, is a miss. */
static void test_tree_ends_early(void) {
    ing_paths p;
    ing_paths_init(&p);
    ing_path last = paths_fill(&p);
    ing_tree *tree = ing_tree_new();
    ing_bytes b;
    for (uint32_t v = 0; v < 5; v++) {
        ing_trace t;
        ing_trace_init(&t);
        trace_fill(&t, v, last);
        CHECK(ing_tree_insert(tree, &t, v, trace_of, &last, NULL) == ING_OK);
        if (v == 0) { /* alone: not one question in the index, and not one path */
            ing_bytes_init(&b);
            ing_tree_write(tree, &p, &b);
            CHECK(b.len == 4 + 4 + 4 + 12 + 4);
            ing_bytes_fini(&b);
        }
        ing_trace_fini(&t);
    }
    static const uint32_t leaf_of[] = {2, 2, 2, 3, 4}; /* 0 and 1 ask the same as 2 */
    for (uint32_t v = 0; v < 5; v++) {
        for (uint32_t wrong = 0; wrong <= last; wrong++) {
            replayer w = {.wrong_at = wrong == last ? UINT32_MAX : wrong};
            ing_trace_init(&w.trace);
            trace_fill(&w.trace, v, last);
            ing_questions asked = {0};
            uint32_t variant = 99;
            ing_trace of;
            ing_trace_init(&of);
            ing_status s = ing_tree_walk(tree, replay, &w, &variant, &asked, NULL);
            if (s == ING_OK) {
                trace_fill(&of, variant, last);
                s = ing_trace_holds(&of, replay, &w, &asked, NULL);
            }
            bool right = wrong >= w.trace.list.len;
            CHECK(s == (right ? ING_OK : ING_DECLINED));
            if (right) CHECK(variant == leaf_of[v]);
            CHECK(asked.len == w.asked &&
                  w.asked == (right ? w.trace.list.len : wrong + 1));
            ing_trace_fini(&of);
            ing_trace_fini(&w.trace);
            ing_vec_fini(&asked);
        }
    }
    ing_tree_free(tree);
    ing_paths_fini(&p);
}

static ing_status trace_lost(void *self, uint32_t variant, ing_trace *out) {
    (void)self, (void)variant, (void)out;
    return ING_DECLINED;
}

/* A leaf whose variant is gone is taken over; a leaf that names a variant of elsewhere is a
 * miss; a tree that asks something else is a conflict. */
static void test_tree_leaves(void) {
    ing_paths p;
    ing_paths_init(&p);
    ing_path last = paths_fill(&p);
    ing_tree *tree = ing_tree_new();
    ing_trace a, b, other;
    ing_trace_init(&a);
    ing_trace_init(&b);
    ing_trace_init(&other);
    trace_fill(&a, 0, last);
    trace_fill(&b, 3, last);
    CHECK(ing_trace_add(&other, 2, ING_ASK_LOOK, digest_of(1)));
    CHECK(ing_tree_insert(tree, &a, 0, trace_lost, NULL, NULL) == ING_OK);
    CHECK(ing_tree_insert(tree, &b, 3, trace_lost, NULL, NULL) == ING_OK);
    replayer w = {.wrong_at = UINT32_MAX};
    ing_trace_init(&w.trace);
    trace_fill(&w.trace, 3, last);
    ing_questions asked = {0};
    uint32_t variant = 99;
    CHECK(ing_tree_walk(tree, replay, &w, &variant, &asked, NULL) == ING_OK);
    CHECK(variant == 3 && asked.len == 0);
    asked.len = 0;
    CHECK(ing_tree_insert(tree, &a, 0, trace_of, &last, NULL) == ING_OK);
    w.asked = 0;
    CHECK(ing_tree_walk(tree, replay, &w, &variant, &asked, NULL) == ING_OK);
    CHECK(variant == 3 && asked.len == 3);
    CHECK(ing_trace_holds(&a, replay, &w, &asked, NULL) == ING_DECLINED);
    CHECK(ing_trace_holds(&other, replay, &w, &asked, NULL) == ING_DECLINED);
    CHECK(asked.len == 3); /* nothing more was asked */
    CHECK(ing_tree_insert(tree, &other, 7, trace_of, &last, NULL) == ING_INTERNAL);
    ing_vec_fini(&asked);
    ing_trace_fini(&w.trace);
    ing_trace_fini(&other);
    ing_trace_fini(&b);
    ing_trace_fini(&a);
    ing_tree_free(tree);
    ing_paths_fini(&p);
}

/* ---- each member, by the tables ---------------------------------------------------------------- */

/* Which members some element of the record has a value for. */
static struct {
    const char *name;
    bool set;
} members[100];
static uint32_t n_members;

static void note(const char *name, const void *p, size_t n) {
    uint32_t i = 0;
    while (i < n_members && strcmp(members[i].name, name)) i++;
    CHECK(i < sizeof members / sizeof *members);
    if (i == n_members) members[n_members++].name = name;
    for (size_t k = 0; k < n; k++) members[i].set |= ((const uint8_t *)p)[k] != 0;
}

/* Both are walked at once: the record as filled and as it came back. */
#define same_uint8_t(a, b)     CHECK(*(a) == *(b))
#define same_uint32_t(a, b)    CHECK(*(a) == *(b))
#define same_uint64_t(a, b)    CHECK(*(a) == *(b))
#define same_int64_t(a, b)     CHECK(*(a) == *(b))
#define same_ing_path(a, b)    CHECK(*(a) == *(b))
#define same_ing_hash128(a, b) CHECK(ing_hash_eq(*(a), *(b)))
#define same_ing_text(a, b)    CHECK_STR(*(a), *(b))
#define SAME_ONE(type, name)                      \
    note(OF "." #name, &a->name, sizeof a->name); \
    same_##type(&a->name, &b->name);
#define SAME_FIXED(type, name, n)                \
    note(OF "." #name, a->name, sizeof a->name); \
    for (uint32_t i = 0; i < (n); i++) same_##type(&a->name[i], &b->name[i]);
#define SAME_UP_TO(type, name, max)    \
    CHECK(a->n_##name == b->n_##name); \
    SAME_FIXED(type, name, a->n_##name)
#define SAME_LIST(type, name)                             \
    note(OF "." #name, &a->name.len, sizeof a->name.len); \
    CHECK(a->name.len == b->name.len);                    \
    for (uint32_t i = 0; i < a->name.len; i++)            \
        same_##type(&a->name.at[i], &b->name.at[i]);
#define SAME(type, table)                                   \
    static void same_##type(const type *a, const type *b) { \
        table(SAME_ONE, SAME_FIXED, SAME_UP_TO, SAME_LIST)  \
    }
#define OF "bound"
SAME(ing_ir_bound, ING_IR_BOUND_MEMBERS)
#undef OF
#define OF "tally"
SAME(ing_ir_tally, ING_IR_TALLY_MEMBERS)
#undef OF
#define OF "task's info"
SAME(ing_ir_task, ING_IR_TASK_MEMBERS)
#undef OF
#define OF "step"
SAME(ing_ir_step, ING_IR_STEP_MEMBERS)
#undef OF
#define OF "spec"
SAME(ing_spec, ING_SPEC_MEMBERS)
#undef OF
#define OF "bind"
SAME(ing_record_bind, ING_RECORD_BIND_MEMBERS)
#undef OF
#define OF "array"
SAME(ing_record_array, ING_RECORD_ARRAY_MEMBERS)
#undef OF
#define OF "touch"
SAME(ing_record_touch, ING_RECORD_TOUCH_MEMBERS)
#undef OF
#define OF "task"
SAME(ing_record_task, ING_RECORD_TASK_MEMBERS)
#undef OF
#define OF "pair"
SAME(ing_record_apart, ING_RECORD_APART_MEMBERS)
#undef OF
#define OF "stage"
SAME(ing_record_stage, ING_RECORD_STAGE_MEMBERS)
#undef OF
#define OF "warning"
SAME(ing_record_warning, ING_RECORD_WARNING_MEMBERS)
#undef OF
#define OF "record"
SAME(ing_record, ING_RECORD_MEMBERS)
#undef OF

/* A member that record_fill forgets fails here, one that the bytes forget as well. */
static void test_every_member(void) {
    ing_paths p;
    ing_record r, back;
    ing_bytes b;
    ing_paths_init(&p);
    ing_bytes_init(&b);
    record_fill(&r, &p);
    CHECK(ing_record_write(&r, &p, &b, NULL) == ING_OK);
    CHECK(ing_record_read(b.at, b.len, &p, &back) == ING_OK);
    same_ing_record(&r, &back);
    for (uint32_t i = 0; i < n_members; i++)
        CHECK_STR(members[i].set ? "" : members[i].name, ""); /* fill it in above */
    CHECK(n_members > 50);
    ing_record_fini(&back);
    ing_record_fini(&r);
    ing_bytes_fini(&b);
    ing_paths_fini(&p);
}

/* What is empty comes back empty (R17). */
static void test_empty(void) {
    ing_paths p;
    ing_record r, back;
    ing_bytes b;
    ing_paths_init(&p);
    ing_record_init(&r);
    ing_bytes_init(&b);
    CHECK(ing_record_write(&r, &p, &b, NULL) == ING_OK);
    CHECK(ing_record_read(b.at, b.len, &p, &back) == ING_OK);
    CHECK(!back.trace.list.len && !back.binds.len && !back.tasks.len &&
          !back.trees.len);
    CHECK(!back.messages.len && !back.warnings.len && !back.n_rets && !back.n_words);
    ing_record_fini(&back);
    ing_bytes_fini(&b);
    ing_paths_fini(&p);
}

/* The bytes are copied to their exact size, so that ASan sees a read past the end. */
static bool try_copy(const uint8_t *p, size_t n, bool record) {
    uint8_t *exact = ing_malloc(n ? n : 1);
    memcpy(exact, p, n);
    bool ok = record ? record_try(exact, n, NULL) : index_try(exact, n);
    ing_free(exact);
    return ok;
}

static void test_truncations(bool record) {
    ing_bytes b;
    record ? record_bytes(&b) : index_bytes(&b);
    for (size_t n = 0; n < b.len; n++) CHECK(!try_copy(b.at, n, record));
    ing_bytes_put(&b, "", 1);
    CHECK(!try_copy(b.at, b.len, record)); /* nothing may follow either */
    ing_bytes_fini(&b);
}

static void test_bit_flips(bool record) {
    ing_bytes b;
    record ? record_bytes(&b) : index_bytes(&b);
    size_t accepted = 0;
    for (size_t i = 0; i < b.len * 8; i++) {
        b.at[i / 8] ^= (uint8_t)(1u << i % 8);
        accepted += try_copy(b.at, b.len, record);
        b.at[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    CHECK(accepted < b.len * 8); /* a digest may be any number; a count may not */
    ing_bytes_fini(&b);
}

/* Words replaced by numbers that tempt: 0, 1, large, negative. */
static void test_words(bool record) {
    static const uint32_t tempting[] = {0,       1,          2,          255,      256,
                                        0xFFFFu, 0x10000u,   0x7FFFFFFF, 1u << 31, ~0u,
                                        ~1u,     0x3FFFFFFF, 0x20000000, 1u << 30};
    ing_bytes b;
    record ? record_bytes(&b) : index_bytes(&b);
    for (size_t at = 0; at + 4 <= b.len; at++)
        for (size_t k = 0; k < sizeof tempting / sizeof *tempting; k++) {
            uint8_t old[4];
            memcpy(old, b.at + at, 4);
            memcpy(b.at + at, &tempting[k], 4);
            (void)try_copy(b.at, b.len, record);
            memcpy(b.at + at, old, 4);
        }
    ing_bytes_fini(&b);
}

/* Several random changes at once, from a fixed seed. */
static void test_random(bool record) {
    ing_bytes b;
    record ? record_bytes(&b) : index_bytes(&b);
    uint8_t *p = ing_malloc(b.len);
    uint64_t state = 20240229;
    for (int round = 0; round < 20000; round++) {
        memcpy(p, b.at, b.len);
        for (int k = 0; k <= round % 7; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            p[(state >> 20) % b.len] = (uint8_t)(state >> 56);
        }
        (void)try_copy(p, b.len, record);
    }
    ing_free(p);
    ing_bytes_fini(&b);
}

/* No allocation that fails leaves anything behind or is taken for success. */
static void put32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Edges of an index, which are its last bytes: down, to a node that there is, ascending. */
static void test_edges(void) {
    enum { EDGE = 24, NODES = 8, EDGES = NODES - 1 };
    ing_bytes b;
    index_bytes(&b);
    uint8_t *edges = b.at + b.len - EDGES * EDGE, was[EDGES * EDGE];
    memcpy(was, edges, sizeof was);
    CHECK(edges[-4] == EDGES && index_try(b.at, b.len));
    for (uint32_t i = 0; i < EDGES; i++) {
        uint8_t *d = edges + i * EDGE;
        const uint32_t to[] = {0, 1, d[0], NODES + 1, UINT32_MAX};
        for (size_t k = 0; k < sizeof to / sizeof to[0]; k++) {
            put32(d + 4, to[k]);
            CHECK(!index_try(b.at, b.len));
            memcpy(edges, was, sizeof was);
        }
        put32(d, 0);
        CHECK(!index_try(b.at, b.len));
        memcpy(edges, was, sizeof was);
        if (i == 0) continue;
        memcpy(d, d - EDGE, EDGE); /* twice */
        CHECK(!index_try(b.at, b.len));
        memcpy(d - EDGE, was + i * EDGE, EDGE); /* the other way round */
        CHECK(!index_try(b.at, b.len));
        memcpy(edges, was, sizeof was);
    }
    CHECK(index_try(b.at, b.len));
    ing_bytes_fini(&b);
}

static void test_no_memory(void) {
    ing_bytes b;
    record_bytes(&b);
    for (uint64_t n = 1;; n++) {
        ing_paths paths;
        ing_record r;
        ing_paths_init(&paths);
        ing_alloc_fail_at(n);
        ing_status s = ing_record_read(b.at, b.len, &paths, &r);
        bool over = ing_alloc_fail_left() != 0;
        ing_alloc_fail_at(0);
        if (s == ING_OK) ing_record_fini(&r);
        ing_paths_fini(&paths);
        if (over) {
            CHECK(s == ING_OK);
            break;
        }
        CHECK(s == ING_DECLINED);
    }
    ing_bytes_fini(&b);
}

/* Version 20, byte by byte. Whoever changes the format changes its number. */
static void test_golden(void) {
    static const char want[] =
        "1500000004000000000000000100000061030000006366670100000066050000"
        "0000000000010000000000000000000000000000000000000002000000010000"
        "000000000000000000020000000b000000020000000000000000000000010000"
        "0005000000030000000000000000000000040000000c00000000000000fdffff"
        "ffffffffff050000000100000002000000157c4a7fb979379e08000000000000"
        "0002000000030000002af894fe72f36e3c090000000000000003000000040000"
        "003f74df7d2c6da6da0a00000000000000040000000100000054f029fde5e6dd"
        "780b000000000000000500000002000000696c747c9f6015170c000000000000"
        "000c0000004000000001014001000000010000000101696c747c9f6015170c00"
        "000000000000020000000b050400000001000102000000000200000002000000"
        "0402010000000000000000000001000000000000000000000000000000040000"
        "0100000008000000000000000000000000000000000000000000000000000000"
        "0000000000000000020000000000000009000000050000000b01000202000000"
        "0300000000000000000000000000000000000000010000000000000007000000"
        "020000000000000000000000000000000000000000000000000000000b000000"
        "0400000000000000000000000000000000000000000000000000000000000000"
        "040000000000000001000000000000000100000000000000feffffffffffffff"
        "000000000000000008000000000000000c000000000000000200000001000000"
        "05000000010000000101062e00000040000000030000000c00000000fcffffff"
        "ffffffff00000000010000000000000000380000004d00000009000000020000"
        "0002000000010000000000000000000000020404000000000000000000000000"
        "070000001600000004000000000000000004000600000003000000050000001f"
        "fccd39bc12742f6a000000000000000200000001000000000000000100000002"
        "000000020000000c000000000000000000000000000000000000000101030000"
        "000300000002000000020000000c000000000000000000000000000000000000"
        "0006000000010000000400000008000000000000009001000000000000090000"
        "0000000000040000000000000000000000400000000000000003000000020000"
        "00010000000100000000000000020000000000000001000000fdffffffffffff"
        "ff050000000a0000000104000000000000000300000000000000000000000000"
        "0000000004000000000800000002000000000200000005090000000000000006"
        "0800000000000000000000000000000000060900000000000000070500000000"
        "00000001000000100000006974206d75737420626520736d616c6c0100000004"
        "0000006e6f74650c0000007468697320697320736c6f77010000000700000003"
        "000000f0debc9a78563412";
    ing_bytes b, hex;
    record_bytes(&b);
    ing_bytes_init(&hex);
    for (size_t i = 0; i < b.len; i++) ing_bytes_printf(&hex, "%02x", b.at[i]);
    CHECK_STR((const char *)hex.at, want);
    ing_bytes_fini(&hex);
    ing_bytes_fini(&b);
}

/* Paths that were read have the ids that adding them gives, and so have those of a second
 * entry: nothing is there twice. */
static void test_paths_are_interned(void) {
    ing_paths p;
    ing_record first, second;
    ing_bytes b;
    record_bytes(&b);
    ing_paths_init(&p);
    CHECK(ing_record_read(b.at, b.len, &p, &first) == ING_OK);
    uint32_t nodes = p.nodes.len, atoms = p.atoms.text.len;
    CHECK(nodes > 4 && atoms > 2);
    CHECK(ing_record_read(b.at, b.len, &p, &second) == ING_OK);
    CHECK(p.nodes.len == nodes && p.atoms.text.len == atoms);
    for (uint32_t i = 0; i < first.trace.list.len; i++)
        CHECK(first.trace.list.at[i].path == second.trace.list.at[i].path);
    (void)paths_fill(&p); /* one path more: a setting that the trace does not ask for */
    CHECK(p.nodes.len == nodes + 1 && p.atoms.text.len == atoms + 1);
    ing_record_fini(&first);
    ing_record_fini(&second);
    ing_paths_fini(&p);
    ing_bytes_fini(&b);
}

int main(void) {
    test_paths_are_interned();
    test_round_trip();
    test_every_member();
    test_empty();
    test_tree_ends_early();
    test_tree_leaves();
    for (int record = 0; record < 2; record++) {
        test_truncations(record);
        test_bit_flips(record);
        test_words(record);
        test_random(record);
    }
    test_edges();
    test_no_memory();
    test_golden();
    return CHECK_DONE();
}
