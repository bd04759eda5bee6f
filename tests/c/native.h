/* Runs a program (IR text) on native code and on the interpreter, on copies of the same
 * memory, and compares memory, results, status and error slot: bit for bit but for NaNs
 * (R23). Shared by the test_native programs; native_open first. */
#ifndef ING_TEST_NATIVE_H
#define ING_TEST_NATIVE_H
#include "check.h"
#include "compile/compile_int.h"
#include "gen/gen.h"
#include "helper_argv.h"

#include <math.h>

enum { MAX_ARGS = 64, MAX_RETS = 16 };

typedef struct targ { /* a kernel argument of a test */
    const void *data; /* array: initial contents */
    size_t bytes;
    int64_t extent[3];
    uint64_t scalar;
} targ;

typedef struct setup {
    const char *name;
    const char *ir;
    const char *level; /* NULL = best of this machine */
    bool fast;
    double tolerance; /* of floats, relative and absolute; 0 = exact */
    const targ *args;
    uint32_t n_args;
    int polls;    /* poll says "stop" from this call on; 0 = never */
    bool tallies; /* the arrays count as copies of the one thread */
} setup;

typedef struct side { /* one of the two executions */
    uint8_t *memory[MAX_ARGS];
    uint64_t words[4 * MAX_ARGS];
    uint64_t rets[MAX_RETS];
    uint8_t buffer[4096];
    ing_error_slot error;
    ing_ctx ctx;
    int polls_left, polled;
    int32_t status;
    uint8_t printed[8192]; /* records, one after the other */
    size_t n_printed;
} side;

static ing_helpers *helpers;
static ing_counters counters;

static int32_t poll_side(ing_ctx *ctx) {
    side *s = ctx->owner;
    s->polled++;
    ctx->fuel = 1000;
    return s->polls_left && --s->polls_left == 0;
}

static void print_side(ing_ctx *ctx, const ing_printed *p) {
    side *s = ctx->owner;
    size_t n = sizeof *p + 8 * (size_t)p->n;
    if (s->n_printed + n > sizeof s->printed) return;
    memcpy(s->printed + s->n_printed, p, n);
    s->n_printed += n;
}

/* ---- running ------------------------------------------------------------------------------- */

static void side_init(side *s, const ing_ir_mod *m, const setup *t) {
    memset(s, 0, sizeof *s);
    for (uint32_t k = 0; k < t->n_args; k++) {
        const ing_type_info *i = ing_ir_type(m, m->args.at[k].type);
        uint64_t *w = &s->words[m->args.at[k].word];
        if (i->kind != ING_TYPE_ARRAY) {
            *w = t->args[k].scalar;
            continue;
        }
        s->memory[k] = malloc(t->args[k].bytes + 1);
        memcpy(s->memory[k], t->args[k].data, t->args[k].bytes);
        w[0] = (uint64_t)(uintptr_t)s->memory[k];
        for (uint32_t d = 0; d < i->rank && !i->place; d++)
            w[1 + d] = (uint64_t)t->args[k].extent[d];
    }
    s->polls_left = t->polls;
    s->ctx = (ing_ctx){.args = s->words,
                       .buffer = s->buffer,
                       .rets = s->rets,
                       .error = &s->error,
                       .poll = poll_side,
                       .fuel = 1000,
                       .owner = s,
                       .print = print_side,
                       .key = 0x123456789abcdefu,
                       .place = 3,
                       .tallies = t->tallies};
}

static void side_fini(side *s) {
    for (uint32_t k = 0; k < MAX_ARGS; k++) free(s->memory[k]);
}

static int64_t bound(const side *s, const ing_ir_bound *b) {
    int64_t v = b->value;
    if (b->at == ING_IR_BOUND_WORD) return (int64_t)s->words[b->offset];
    if (b->at == ING_IR_BOUND_BUFFER) memcpy(&v, s->buffer + b->offset, sizeof v);
    return v;
}

static bool report(const setup *t, const char *step, ing_err *e) {
    check_failed++;
    fprintf(stderr, "%s: %s: %s\n", t->name, step, e->text ? e->text : "?");
    ing_err_fini(e);
    return false;
}

static uint32_t part_size; /* ing_gen_options.part_size */

/* Compiles all texts of a task and links them. */
static ing_status make_image(const ing_gen_texts *texts, const char *options,
                             ing_bytes *linked, ing_err *e) {
    ing_gen_texts objects = {0};
    ing_status s = ing_parts_compile(helpers, options, texts, 2, &objects, e);
    ing_object *list = calloc(objects.len + 1, sizeof *list);
    for (uint32_t i = 0; i < objects.len; i++)
        list[i] = (ing_object){objects.at[i].at, objects.at[i].len};
    if (s == ING_OK) s = ing_image_link(list, objects.len, NULL, linked, e);
    ing_gen_texts_fini(&objects);
    free(list);
    return s;
}

/* Native code of task k, or NULL with the failure counted. */
static ing_image *build(const ing_ir_mod *m, uint32_t k, const setup *t) {
    ing_gen_options o = {.target = &ing_gen_cpu,
                         .fast_math = t->fast,
                         .vector_math = ing_image_vector_math(),
                         .opt_level = 2,
                         .part_size = part_size,
                         .isa_level = t->level ? t->level : ing_image_isa_level()};
    ing_ir_mod *one = NULL;
    ing_image *image = NULL;
    ing_gen_texts texts = {0};
    ing_bytes options, linked;
    ing_err e;
    ing_err_init(&e);
    ing_bytes_init(&options);
    ing_bytes_init(&linked);
    ing_gen_helper_options(&o, &options);
    const char *step = "extract";
    ing_status s = ing_ir_extract_task(m, k, &one, &e);
    if (s == ING_OK) step = "gen", s = ing_gen_llvm(one, &o, &texts, &e);
    if (s == ING_OK)
        step = "make", s = make_image(&texts, (const char *)options.at, &linked, &e);
    if (s == ING_OK)
        step = "load", s = ing_image_load(-1, linked.at, linked.len, &image, &e);
    if (s != ING_OK) {
        report(t, step, &e);
        for (uint32_t i = 0; i < texts.len && getenv("INGOT_TEST_VERBOSE"); i++)
            fwrite(texts.at[i].at, 1, texts.at[i].len, stderr);
    }
    ing_gen_texts_fini(&texts);
    ing_bytes_fini(&options);
    ing_bytes_fini(&linked);
    ing_ir_mod_free(one);
    return image;
}

enum { MAX_CHUNKS = 4096 }; /* of a reduction in a test */

/* Runs task k on native code, or on the interpreter when fn is NULL; a reduction is combined
 * at the end, as the runtime does. */
static void run_task(const ing_ir_mod *m, uint32_t k, side *s, ing_task_fn fn) {
    static uint64_t partials[MAX_CHUNKS * ING_IR_MAX_PARTIALS];
    const ing_ir_task *task = &m->tasks.at[k];
    bool range = task->kind == ING_IR_TASK_RANGE;
    int64_t from = range ? bound(s, &task->begin) : 0;
    int64_t to = range ? bound(s, &task->end) : 1, chunk = 0;
    s->ctx.partials = partials;
    for (bool again = true; again && !s->status;) {
        s->status = fn ? fn(&s->ctx, from, to, chunk)
                       : ing_ir_interp(m, k, &s->ctx, from, to, chunk);
        again = chunk == 0 && task->partials && from < to;
        to = ((to - from - 1) >> task->chunk_shift) + 1;
        from = 0;
        chunk = -1;
    }
}

static void run_interp(const ing_ir_mod *m, side *s) {
    for (uint32_t k = 0; k < m->tasks.len && !s->status; k++) run_task(m, k, s, NULL);
}

static bool run_native(const ing_ir_mod *m, const setup *t, side *s) {
    for (uint32_t k = 0; k < m->tasks.len && !s->status; k++) {
        ing_image *image = build(m, k, t);
        if (!image) return false;
        run_task(m, k, s, ing_image_entry(image));
        ing_image_unref(image);
    }
    return true;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double as_double(ing_dtype t, const uint8_t *p) {
    uint64_t bits = 0;
    memcpy(&bits, p, ing_dtype_bytes(t));
    uint64_t wide = ing_ir_eval_cast(t, ING_F64, bits);
    double d;
    memcpy(&d, &wide, sizeof d);
    return d;
}

static bool same(ing_dtype t, const uint8_t *a, const uint8_t *b, double tolerance) {
    if (memcmp(a, b, ing_dtype_bytes(t)) == 0) return true;
    if (!ing_dtype_is_float(t)) return false;
    double x = as_double(t, a), y = as_double(t, b);
    if (x != x || y != y) return x != x && y != y;
    return fabs(x - y) <= tolerance * (1 + fabs(x));
}

/* The dtype of an array's elements when those are scalars or tensors, else u8. */
static ing_dtype unit_of(const ing_ir_mod *m, ing_type elem) {
    const ing_type_info *i = ing_ir_type(m, elem);
    if (i->kind == ING_TYPE_SCALAR || i->kind == ING_TYPE_TENSOR)
        return (ing_dtype)i->dtype;
    return ING_U8;
}

static void compare(const ing_ir_mod *m, const setup *t, const side *want,
                    const side *got) {
    int bad = 0;
    for (uint32_t k = 0; k < t->n_args; k++) {
        const ing_type_info *i = ing_ir_type(m, m->args.at[k].type);
        if (i->kind != ING_TYPE_ARRAY) continue;
        ing_dtype u = unit_of(m, i->elem);
        uint32_t size = ing_dtype_bytes(u);
        for (size_t at = 0; at + size <= t->args[k].bytes; at += size) {
            const uint8_t *a = want->memory[k] + at, *b = got->memory[k] + at;
            if (same(u, a, b, t->tolerance)) continue;
            uint64_t x = 0, y = 0;
            memcpy(&x, a, size);
            memcpy(&y, b, size);
            if (bad++ < 3)
                fprintf(stderr,
                        "%s: argument %u (%s) element %zu: interpreter %#llx (%g), "
                        "native %#llx"
                        " (%g)\n",
                        t->name, k, ing_dtype_name(u), at / size, (unsigned long long)x,
                        as_double(u, a), (unsigned long long)y, as_double(u, b));
        }
    }
    for (uint32_t k = 0; k < m->rets.len; k++) {
        ing_dtype u = (ing_dtype)m->rets.at[k];
        if (same(u, (const uint8_t *)&want->rets[k], (const uint8_t *)&got->rets[k],
                 t->tolerance))
            continue;
        fprintf(stderr, "%s: result %u: %#llx, native %#llx\n", t->name, k,
                (unsigned long long)want->rets[k], (unsigned long long)got->rets[k]);
        bad++;
    }
    CHECK(bad == 0);
    CHECK((want->status != 0) == (got->status != 0));
    CHECK(memcmp(want->buffer, got->buffer, sizeof want->buffer) == 0);
    CHECK(want->error.code == got->error.code && want->error.func == got->error.func &&
          want->error.node == got->error.node);
    CHECK(memcmp(want->error.detail, got->error.detail, sizeof want->error.detail) ==
          0);
    CHECK(want->n_printed == got->n_printed &&
          memcmp(want->printed, got->printed, want->n_printed) == 0);
}

/* Runs a program both ways; `out` (may be NULL) receives the native side's outcome. */
static void both(const setup *t, side *out) {
    ing_ir_mod *m = NULL;
    ing_err e;
    ing_err_init(&e);
    if (ing_ir_parse(t->ir, strlen(t->ir), &m, &e) != ING_OK ||
        ing_ir_verify(m, &e) != ING_OK) {
        report(t, "parse", &e);
        ing_ir_mod_free(m);
        return;
    }
    CHECK(m->args.len == t->n_args && m->args.len <= MAX_ARGS &&
          m->rets.len <= MAX_RETS && m->buffer_bytes <= 4096);
    side *s = calloc(3, sizeof *s);
    for (int i = 0; i < 3; i++) side_init(&s[i], m, t);
    run_interp(m, &s[0]);
    if (run_native(m, t, &s[1])) compare(m, t, &s[0], &s[1]);
    if (m->funcs.len > m->tasks.len) { /* each function in a part of its own */
        part_size = 1;
        if (run_native(m, t, &s[2])) compare(m, t, &s[0], &s[2]);
        part_size = 0;
    }
    if (out) {
        *out = s[1];
        memset(out->memory, 0, sizeof out->memory);
    }
    for (int i = 0; i < 3; i++) side_fini(&s[i]);
    free(s);
    ing_ir_mod_free(m);
}

static bool native_open(void) {
    static helper_command cmd;
    if (!helper_command_get(&cmd)) return false;
    ing_helpers_config config = {.argv = cmd.argv, .max = 2};
    helpers = ing_helpers_new(&config, &counters);
    return helpers != NULL;
}

#endif
