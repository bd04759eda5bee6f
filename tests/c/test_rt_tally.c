/* Tallies: threads update copies of arrays and put them together. Whatever the type, the kind,
 * the number of threads, and whether there was memory for copies, the arrays hold the updates of
 * the iterations that ran. */
#include "check.h"
#include "ir/ir.h"
#include "launch/launch.h"
#include "pass/pass.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { WORDS = 6, TRIPS = 60000, COUNT = 60 };

typedef struct shared { /* words[0] points to it */
    ing_rt_task *task;
    pthread_mutex_t lock; /* of updates of the array itself */
    const uint64_t *words;
    const ing_rt_host *host;
    int64_t fail; /* iteration that stops, 0 = none */
    bool slow;    /* each call takes some milliseconds */
    atomic_llong copies, arrays, wrong;
    atomic_uchar ran[TRIPS];
} shared;

static ing_op op_of(uint8_t kind) {
    static const uint8_t ops[] = {ING_OP_ADD, ING_OP_SUB, ING_OP_MUL, ING_OP_MIN,
                                  ING_OP_MAX, ING_OP_AND, ING_OP_OR,  ING_OP_XOR};
    return (ing_op)ops[kind];
}

static uint64_t random_bits(uint64_t n) {
    n = (n + 1) * 0x9E3779B97F4A7C15u;
    n = (n ^ n >> 29) * 0xBF58476D1CE4E5B9u;
    return n ^ n >> 32;
}

/* `atomic`: while a copy may be put together with the array; tests do that to one type. */
static void apply(const ing_ir_tally *y, uint8_t *array, int64_t i, bool atomic) {
    uint32_t size = ing_dtype_bytes(y->dtype);
    uint8_t *p = array + random_bits((uint64_t)i) % COUNT * size;
    uint64_t old = 0, now, v = ing_ir_norm(y->dtype, random_bits(~(uint64_t)i));
    if (atomic && y->dtype == ING_U32 && y->kind == ING_IR_ATOMIC_ADD) {
        __atomic_fetch_add((uint32_t *)(void *)p, (uint32_t)v, __ATOMIC_RELAXED);
        return;
    }
    memcpy(&old, p, size);
    if (!ing_ir_eval(op_of(y->kind), y->dtype, ing_ir_norm(y->dtype, old), v, &now))
        abort(); /* CHECK is for one thread */
    memcpy(p, &now, size);
}

/* What native code does: plain updates of what the words name while there are copies. */
static int32_t work(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = (shared *)(uintptr_t)ctx->args[0];
    const ing_rt_task *t = s->task;
    if (chunk < 0) return 0;
    bool mine = ctx->tallies != 0;
    atomic_fetch_add(mine ? &s->copies : &s->arrays, 1);
    for (uint32_t w = 0; w < WORDS; w++) { /* only the tallied arrays are others */
        bool tallied = false;
        for (uint32_t k = 0; k < t->info.n_tallies; k++)
            tallied |= t->info.tallies[k].word == w;
        bool same = ctx->args[w] == s->words[w];
        if (same == (tallied && mine)) atomic_fetch_add(&s->wrong, 1);
    }
    if (s->slow) usleep(4000);
    if (!mine) pthread_mutex_lock(&s->lock);
    int32_t rc = 0;
    for (int64_t i = begin; i < end && !rc; i++) {
        rc = s->fail && i == s->fail ? ING_ABI_ASSERT : 0;
        for (uint32_t k = 0; k < t->info.n_tallies && !rc; k++)
            apply(&t->info.tallies[k],
                  (uint8_t *)(uintptr_t)ctx->args[t->info.tallies[k].word], i, !mine);
        if (!rc) atomic_fetch_add(&s->ran[i], 1);
    }
    if (!mine) pthread_mutex_unlock(&s->lock);
    if (rc) ctx->error->code = rc;
    return rc;
}

typedef struct arrays {
    uint64_t at[2][COUNT];
} arrays;

static void start_values(arrays *a) {
    for (uint64_t k = 0; k < 2 * COUNT; k++)
        a->at[k / COUNT][k % COUNT] = random_bits(k + 77777);
}

/* Launches over `trips` iterations and compares with the iterations that ran, in order. */
static int32_t run(ing_rt *rt, shared *s, ing_rt_task *t, uint64_t trips,
                   uint64_t rows) {
    static arrays got, want;
    start_values(&got);
    start_values(&want);
    uint64_t words[WORDS] = {
        (uint64_t)(uintptr_t)s, (uint64_t)(uintptr_t)got.at[0], rows,
        COUNT / rows,           (uint64_t)(uintptr_t)got.at[1], trips};
    uint64_t before[WORDS];
    memcpy(before, words, sizeof words);
    ing_rt_launch l = {.tasks = t, .n_tasks = 1, .args = words, .host = s->host};
    memset(s->ran, 0, sizeof s->ran);
    s->copies = s->arrays = s->wrong = 0;
    s->task = t;
    s->words = words;
    int32_t rc = ing_rt_run(rt, &l);
    for (uint64_t i = 0; i < trips; i++) {
        if (s->ran[i] > 1) s->wrong++;
        for (uint32_t k = 0; k < t->info.n_tallies && s->ran[i]; k++)
            apply(&t->info.tallies[k], (uint8_t *)want.at[t->info.tallies[k].word == 4],
                  (int64_t)i, false);
    }
    CHECK(memcmp(&got, &want, sizeof got) == 0);
    CHECK(memcmp(before, words, sizeof words) == 0);
    CHECK(s->wrong == 0);
    return rc;
}

static ing_rt_task task_of(const ing_ir_tally *y, uint32_t n) {
    return (ing_rt_task){.fn = work,
                         .info.kind = ING_IR_TASK_RANGE,
                         .info.cost = 100,
                         .info.end = {.at = ING_IR_BOUND_WORD, .offset = 5},
                         .info.tallies = {y[0], n > 1 ? y[1] : (ing_ir_tally){0}},
                         .info.n_tallies = n,
                         .n_words = WORDS};
}

/* Two axes of scalars, and none with all in one vector. */
static ing_ir_tally table_of(ing_dtype t, uint8_t kind) {
    return (ing_ir_tally){.word = 1, .width = 1, .ndim = 2, .dtype = t, .kind = kind};
}

static ing_ir_tally vector_of(ing_dtype t, uint8_t kind) {
    return (ing_ir_tally){
        .word = 4, .width = COUNT, .ndim = 0, .dtype = t, .kind = kind};
}

static void test_kinds(shared *s) {
    for (uint32_t threads = 1; threads <= 3; threads++) {
        ing_rt *rt = ing_rt_new(threads);
        for (ing_dtype t = ING_I8; t <= ING_U64; t++) {
            for (uint8_t kind = 0; kind < ING_IR_ATOMIC_XCHG; kind++) {
                if (!ing_ir_tally_ok(kind, t)) continue;
                ing_ir_tally y = table_of(t, kind);
                ing_rt_task task = task_of(&y, 1);
                CHECK(run(rt, s, &task, 3000, 3) == 0);
                CHECK(s->copies > 0 && s->arrays == 0);
            }
        }
        ing_rt_free(rt);
    }
}

static void test_several(shared *s) {
    ing_ir_tally y[2] = {table_of(ING_I16, ING_IR_ATOMIC_MIN),
                         vector_of(ING_U64, ING_IR_ATOMIC_ADD)};
    ing_rt *rt = ing_rt_new(2);
    for (int k = 0; k < 4; k++) {
        ing_rt_task t = task_of(y, 2);
        t.info.may_run_long = k % 2;
        t.info.partials = k / 2; /* a reduction beside */
        t.info.chunk_shift = k / 2 ? 4 : 0;
        CHECK(run(rt, s, &t, TRIPS, 1) == 0);
        CHECK(s->copies > 0 && s->arrays == 0);
    }
    ing_rt_free(rt);
}

static void test_does_not_pay(shared *s) {
    ing_ir_tally y = table_of(ING_I32, ING_IR_ATOMIC_XOR);
    ing_rt_task t = task_of(&y, 1);
    ing_rt *rt = ing_rt_new(2);
    CHECK(run(rt, s, &t, 100, 2) == 0); /* a short loop */
    CHECK(s->copies == 0 && s->arrays > 0);
    CHECK(run(rt, s, &t, 0, 2) == 0);
    CHECK(s->copies == 0 && s->arrays == 0);
    t.info.tallies[0].width = 1 << 20; /* large, and so large that sizes wrap */
    CHECK(run(rt, s, &t, TRIPS, 2) == 0 && s->copies == 0);
    t.info.tallies[0].width = UINT32_MAX;
    t.info.cost = 1;
    CHECK(run(rt, s, &t, TRIPS, 2) == 0 && s->copies == 0);
    ing_rt_free(rt);
}

static void test_errors(shared *s) {
    ing_ir_tally y = table_of(ING_I64, ING_IR_ATOMIC_MUL);
    ing_rt_task t = task_of(&y, 1);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        ing_rt *rt = ing_rt_new(threads);
        for (int64_t at = 1; at < TRIPS; at = at * 7 + 1) {
            s->fail = at;
            CHECK(run(rt, s, &t, TRIPS, 4) == ING_ABI_ASSERT);
            CHECK(s->copies > 0 && s->ran[at] == 0);
        }
        s->fail = 0;
        ing_rt_free(rt);
    }
}

static int cancel(void *self) {
    (void)self;
    return 1;
}

static void test_cancel(shared *s) {
    static const ing_rt_host host = {.signals = cancel};
    ing_ir_tally y = table_of(ING_I8, ING_IR_ATOMIC_AND);
    ing_rt_task t = task_of(&y, 1);
    t.info.cost = 1000;
    s->slow = true;
    s->host = &host;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        ing_rt *rt = ing_rt_new(threads);
        CHECK(run(rt, s, &t, TRIPS, 4) == ING_ABI_CANCELLED);
        CHECK(s->copies > 0 && s->arrays == 0);
        ing_rt_free(rt);
    }
    s->slow = false;
    s->host = NULL;
}

/* A thread without memory for copies updates the array beside others that have some. */
static void test_no_memory(shared *s) {
    ing_ir_tally y = table_of(ING_U32, ING_IR_ATOMIC_ADD);
    ing_rt_task t = task_of(&y, 1);
    ing_rt *rt = ing_rt_new(2);
    CHECK(run(rt, s, &t, TRIPS, 4) == 0); /* starts the worker */
    ing_alloc_fail_at(1);
    CHECK(run(rt, s, &t, TRIPS, 4) == 0);
    CHECK(ing_alloc_fail_left() == 0 && s->arrays > 0 && s->copies == 0);
    for (int k = 0; k < 20;
         k++) { /* that of the thread that comes second, if it does */
        ing_alloc_fail_at(2);
        CHECK(run(rt, s, &t, TRIPS, 4) == 0 && s->copies + s->arrays > 0);
        ing_alloc_fail_at(0);
    }
    ing_rt_free(rt);
}

/* ---- from IR text to the runtime ----------------------------------------------------------- */

static const char histogram[] =
    "arg 0 array<i32, 1>\narg 1 array<i16, 1>\n"
    "kernel @0 {\n%x = array array<i32, 1> 0\n%a = array array<i16, 1> 1\n"
    "%z = const i32 0\n%n = dim i32 %x, 0\n%one = const i16 1\n"
    "%i = loop parallel i32 %z, %n {\n%p = elem ref<i32> %x, [%i]\n%k = load i32 %p\n"
    "%q = elem ref<i16> %a, [%k]\n%o = atomic i16 %q, %one, add\n}\n}\n";

typedef struct watcher { /* calls the interpreter and notes whether there are copies */
    ing_rt_task of;
    atomic_int copies, arrays;
} watcher;

static int32_t watch(void *self, ing_ctx *ctx, int64_t begin, int64_t end,
                     int64_t chunk) {
    watcher *w = self;
    atomic_fetch_add(ctx->tallies ? &w->copies : &w->arrays, 1);
    return w->of.interp(w->of.interp_self, ctx, begin, end, chunk);
}

static void test_whole_path(void) {
    static int32_t x[20000];
    int16_t bins[10] = {0}, want[10] = {0};
    ing_ir_mod *m = NULL;
    ing_pass_options o = {0};
    CHECK(ing_ir_parse(histogram, sizeof histogram - 1, &m, NULL) == ING_OK);
    CHECK(ing_pass_run(m, &o, NULL) == ING_OK && m->tasks.len == 1);
    ing_record_task task = {.info = m->tasks.at[0]};
    ing_record record = {.n_words = m->n_words};
    CHECK(ing_vec_push(&record.tasks, task));
    ing_code code = {.record = &record, .mod = m};
    ing_launch_tasks t;
    CHECK(ing_launch_tasks_init(&t, &code, NULL) == ING_OK);
    watcher w = {.of = t.at[0]};
    t.at[0].interp = watch;
    t.at[0].interp_self = &w;
    for (uint64_t i = 0; i < 20000; i++) want[x[i] = random_bits(i) % 10]++;
    uint64_t words[] = {(uint64_t)(uintptr_t)x, 20000, (uint64_t)(uintptr_t)bins, 10};
    ing_rt *rt = ing_rt_new(2);
    ing_rt_launch l = {.tasks = t.at, .n_tasks = 1, .args = words};
    CHECK(ing_rt_run(rt, &l) == 0);
    CHECK(w.copies > 0 && w.arrays == 0);
    CHECK(memcmp(bins, want, sizeof bins) == 0);
    ing_rt_free(rt);
    ing_launch_tasks_fini(&t);
    ing_vec_fini(&record.tasks);
    ing_ir_mod_free(m);
}

int main(void) {
    static shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    alarm(300);
    test_kinds(&s);
    test_several(&s);
    test_does_not_pay(&s);
    test_errors(&s);
    test_cancel(&s);
    test_no_memory(&s);
    test_whole_path();
    return CHECK_DONE();
}
