/* The runtime: which iterations run, on which threads, and how a launch ends. Nothing
 * here asserts a time; a hang is ended by alarm. */
#include "check.h"
#include "rt/rt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define BIG_COST 100000u /* makes any loop of a few iterations look large */
#define USER     ING_ABI_USER

/* What the tasks of a test share; args[0] points to it. */
typedef struct shared {
    ing_rt *rt;
    int number;
    int64_t begin, end, total, fail;
    uint8_t shift; /* of a chunk */
    uint32_t row;
    uint8_t *seen;
    atomic_llong iters, calls, bad;
    atomic_int threads; /* distinct ones */
    atomic_int at_once, most_at_once;
    atomic_int signals, releases, acquires, held, go;
    int cancel_after;
    unsigned fp[4];
} shared;

/* A thread counts once per `shared`, which has a number of its own. */
static _Thread_local int last_seen;
static atomic_int numbers;

static shared *of(ing_ctx *ctx) {
    return (shared *)(uintptr_t)ctx->args[0];
}

static void note_thread(shared *s) {
    if (!s->number) abort();
    if (last_seen != s->number) atomic_fetch_add(&s->threads, 1);
    last_seen = s->number;
}

static ing_rt_task range_task(ing_task_fn fn, int64_t begin, int64_t end,
                              uint32_t cost) {
    return (ing_rt_task){.fn = fn,
                         .info.kind = ING_IR_TASK_RANGE,
                         .info.cost = cost,
                         .info.begin.value = begin,
                         .info.end.value = end};
}

static int32_t launch_with(ing_rt *rt, shared *s, const ing_rt_task *t, uint32_t n,
                           uint32_t max_threads, const ing_rt_host *host,
                           ing_rt_launch *out) {
    uint64_t args[1] = {(uint64_t)(uintptr_t)s};
    s->number = ++numbers;
    *out = (ing_rt_launch){.tasks = t,
                           .n_tasks = n,
                           .args = args,
                           .max_threads = max_threads,
                           .host = host};
    int32_t rc = ing_rt_run(rt, out);
    out->args = NULL;
    return rc;
}

static int32_t launch(ing_rt *rt, shared *s, const ing_rt_task *t, uint32_t n) {
    ing_rt_launch l;
    return launch_with(rt, s, t, n, 0, NULL, &l);
}

/* ---- which iterations run ---------------------------------------------------------- */

/* A call is made of whole chunks or rows, and knows the number of the first chunk (R23). */
static bool aligned(const shared *s, int64_t begin, int64_t end, int64_t chunk) {
    int64_t b = begin - s->begin, e = end - s->begin;
    int64_t size = s->row ? (int64_t)s->row : (int64_t)1 << s->shift;
    if (chunk != b >> s->shift) return false;
    return b % size == 0 && (e % size == 0 || end == s->end);
}

static int32_t mark(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    note_thread(s);
    if (begin >= end || !aligned(s, begin, end, chunk)) atomic_fetch_add(&s->bad, 1);
    for (int64_t i = begin; i < end; i++) s->seen[i - s->begin]++;
    atomic_fetch_add(&s->calls, 1);
    atomic_fetch_add(&s->iters, end - begin);
    return 0;
}

static void covers_whole(ing_rt *rt, int64_t begin, int64_t end, uint32_t cost,
                         bool unknown, uint8_t shift, uint32_t row) {
    size_t n = end > begin ? (size_t)(end - begin) : 0, wrong = 0;
    shared s = {.begin = begin, .end = end, .shift = shift, .row = row};
    s.seen = calloc(n + 1, 1);
    ing_rt_task t = range_task(mark, begin, end, cost);
    t.info.may_run_long = unknown;
    t.info.chunk_shift = shift;
    t.info.row = row;
    CHECK(launch(rt, &s, &t, 1) == 0);
    for (size_t i = 0; i < n; i++) wrong += s.seen[i] != 1;
    CHECK(wrong == 0 && s.seen[n] == 0);
    CHECK(s.bad == 0 && s.iters == (long long)n);
    if (n == 0) CHECK(s.calls == 0);
    free(s.seen);
}

static void covers(ing_rt *rt, int64_t begin, int64_t end, uint32_t cost,
                   bool unknown) {
    static const uint32_t rows[] = {3, 46, 256, 4095};
    for (uint8_t shift = 0; shift <= 12; shift += shift ? 8 : 4)
        covers_whole(rt, begin, end, cost, unknown, shift, 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        covers_whole(rt, begin, end, cost, unknown, 0, rows[k]);
}

static void test_coverage(void) {
    static const int64_t trips[] = {0,    1,    2,    3,     7,     64,     100,
                                    4095, 4096, 4097, 12288, 99999, 1 << 20};
    static const uint32_t costs[] = {0, 1, 10, 1000, 1000000, UINT32_MAX};
    static const uint32_t pools[] = {1, 2, 5};
    for (size_t p = 0; p < sizeof pools / sizeof *pools; p++) {
        ing_rt *rt = ing_rt_new(pools[p]);
        CHECK(ing_rt_threads(rt) == pools[p]);
        for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
            for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
                if (trips[i] > 100000 && costs[c] > 1000) continue;
                covers(rt, 0, trips[i], costs[c], false);
                covers(rt, -1000, trips[i] - 1000, costs[c], true);
            }
        }
        covers(rt, 10, -10, 1000, false);
        covers(rt, INT64_MAX - 100000, INT64_MAX, 1000, false);
        covers(rt, INT64_MIN, INT64_MIN + 100000, 1000, true);
        ing_rt_free(rt);
    }
}

static int32_t count_only(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    atomic_fetch_add(&of(ctx)->iters, end - begin);
    atomic_fetch_add(&of(ctx)->calls, 1);
    return 0;
}

static int32_t fail_here(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    uint64_t from = (uint64_t)begin - (uint64_t)s->begin; /* a number of 64 bits */
    if (begin < s->begin || end > s->end || begin >= end || (uint64_t)chunk != from)
        s->bad++;
    ctx->error->code = USER;
    ctx->error->detail[0] = (uint64_t)begin;
    return 1;
}

static void test_huge_ranges(void) {
    ing_rt *rt = ing_rt_new(2);
    shared s = {0};
    ing_rt_task t = range_task(count_only, 0, (int64_t)1 << 33, 1);
    CHECK(launch(rt, &s, &t, 1) == 0);
    CHECK(s.iters == (long long)1 << 33);
    CHECK(s.calls > 16);
    /* 2^64 - 1 iterations of the greatest cost: the arithmetic must not wrap. */
    shared w = {.begin = INT64_MIN, .end = INT64_MAX};
    ing_rt_task all = range_task(fail_here, INT64_MIN, INT64_MAX, UINT32_MAX);
    CHECK(launch(rt, &w, &all, 1) == USER);
    all.info.cost = 1;
    CHECK(launch(rt, &w, &all, 1) == USER);
    all.info.may_run_long = true;
    ing_rt_launch l;
    CHECK(launch_with(rt, &w, &all, 1, 0, NULL, &l) == USER);
    CHECK((int64_t)l.error.detail[0] == INT64_MIN);
    CHECK(w.bad == 0);
    ing_rt_free(rt);
}

static int32_t write_bounds(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    int64_t bounds[2] = {-3, 40};
    if (begin != 0 || end != 1 || chunk != 0) return 1;
    memcpy(ctx->buffer + 8, bounds, sizeof bounds);
    ctx->rets[0] = 17;
    return 0;
}

static int32_t interp_count(void *self, ing_ctx *ctx, int64_t begin, int64_t end,
                            int64_t chunk) {
    (void)chunk;
    *(int *)self += 1;
    return count_only(ctx, begin, end, 0);
}

/* ---- partial results ------------------------------------------------------------------ */

/* Each chunk leaves the sum of its indices and one; combined in order. */
static int32_t sum_up(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    if (chunk < 0) {
        for (int64_t c = begin; c < end; c++) {
            s->total += (int64_t)ctx->partials[2 * c];
            atomic_fetch_add(&s->iters, (long long)ctx->partials[2 * c + 1]);
        }
        atomic_fetch_add(&s->calls, 1);
        return 0;
    }
    for (int64_t from = begin; from < end; from += 16, chunk++) {
        int64_t sum = 0, to = from + 16 < end ? from + 16 : end;
        for (int64_t i = from; i < to; i++) sum += i;
        ctx->partials[2 * chunk] = (uint64_t)sum;
        ctx->partials[2 * chunk + 1] = 1;
    }
    if (!s->fail || begin < s->fail) return 0;
    ctx->error->code = ING_ABI_ASSERT;
    return ING_ABI_ASSERT;
}

static void test_partials(void) {
    static const int64_t trips[] = {0, 1, 15, 16, 17, 500, 100000};
    for (uint32_t threads = 1; threads <= 3; threads++) {
        ing_rt *rt = ing_rt_new(threads);
        for (size_t i = 0; i < 2 * sizeof trips / sizeof *trips; i++) {
            int64_t n = trips[i / 2];
            shared s = {0};
            ing_rt_task t = range_task(sum_up, 0, n, 100);
            t.info.may_run_long = i % 2;
            t.info.chunk_shift = 4;
            t.info.partials = 2;
            CHECK(launch(rt, &s, &t, 1) == 0);
            CHECK(s.total == n * (n - 1) / 2 && s.iters == (n + 15) / 16);
            CHECK(s.calls == (n > 0)); /* combined once, not at all for nothing */
        }
        shared s = {.fail = 50000};
        ing_rt_task t = range_task(sum_up, 0, 100000, 100);
        t.info.chunk_shift = 4;
        t.info.partials = 2;
        CHECK(launch(rt, &s, &t, 1) == ING_ABI_ASSERT && s.calls == 0);
        ing_alloc_fail_at(1);
        CHECK(launch(rt, &s, &t, 1) == ING_ABI_MEMORY && s.calls == 0);
        ing_alloc_fail_at(0);
        ing_rt_free(rt);
    }
}

static void test_buffer_and_interp(void) {
    ing_rt *rt = ing_rt_new(2);
    shared s = {0};
    int interp_calls = 0;
    uint64_t args[1] = {(uint64_t)(uintptr_t)&s}, rets[1] = {0};
    uint8_t buffer[32] = {0};
    ing_rt_task t[2] = {{.fn = write_bounds, .info.cost = 5},
                        {.interp = interp_count,
                         .interp_self = &interp_calls,
                         .info.kind = ING_IR_TASK_RANGE,
                         .info.cost = 1,
                         .info.begin = {.at = ING_IR_BOUND_BUFFER, .offset = 8},
                         .info.end = {.at = ING_IR_BOUND_BUFFER, .offset = 16}}};
    ing_rt_launch l = {
        .tasks = t, .n_tasks = 2, .args = args, .rets = rets, .buffer = buffer};
    CHECK(ing_rt_run(rt, &l) == 0);
    CHECK(l.ran_inline && rets[0] == 17 && s.iters == 43 && interp_calls == 1);
    CHECK(ing_rt_run(NULL, &l) == 0); /* no pool: everything inline */
    CHECK(s.iters == 86);
    l.n_tasks = 0;
    CHECK(ing_rt_run(rt, &l) == 0);
    ing_rt_free(rt);
}

/* ---- many launches, many threads ------------------------------------------------------ */

static int32_t uneven(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    (void)chunk;
    int now = atomic_fetch_add(&s->at_once, 1) + 1, most = s->most_at_once;
    while (now > most && !atomic_compare_exchange_weak(&s->most_at_once, &most, now)) {}
    note_thread(s);
    for (int64_t i = begin; i < end; i++) {
        volatile int64_t x = 0;
        for (int64_t k = 0; k < (i % 97 == 0 ? i * 20 : 1); k++) x += k;
    }
    atomic_fetch_add(&s->iters, end - begin);
    atomic_fetch_sub(&s->at_once, 1);
    return 0;
}

static void test_uneven(void) {
    ing_rt *rt = ing_rt_new(4);
    for (int round = 0; round < 10; round++) {
        shared s = {0};
        ing_rt_task t = range_task(uneven, 0, 5000, 1000);
        t.info.may_run_long = round & 1;
        CHECK(launch(rt, &s, &t, 1) == 0);
        CHECK(s.iters == 5000 && s.threads >= 1 && s.threads <= 4);
    }
    ing_rt_free(rt);
}

/* The call that holds an iteration in the middle of the last part waits until all others
 * have run: another thread has then taken what was left of that part. */
static int32_t wait_for_others(ing_ctx *ctx, int64_t begin, int64_t end,
                               int64_t chunk) {
    shared *s = of(ctx);
    mark(ctx, begin, end, chunk);
    int64_t middle = s->end - s->end / 100;
    bool waits = begin <= middle && middle < end;
    uint64_t until = ing_os_now_ns() + 60000000000u;
    while (waits && s->iters < s->end && ing_os_now_ns() < until) sched_yield();
    if (waits && s->iters < s->end) s->bad++;
    return 0;
}

static void test_other_parts(void) {
    static const uint32_t pools[] = {2, 3, 40};
    for (size_t p = 0; p < 2 * sizeof pools / sizeof *pools; p++) {
        ing_rt *rt = ing_rt_new(pools[p / 2]);
        shared s = {.end = 200000, .seen = calloc(200000, 1)};
        ing_rt_task t = range_task(wait_for_others, 0, s.end, 2000);
        t.info.may_run_long = p % 2;
        CHECK(launch(rt, &s, &t, 1) == 0);
        CHECK(s.bad == 0 && s.iters == s.end);
        free(s.seen);
        ing_rt_free(rt);
    }
}

static void test_small_launches(void) {
    ing_rt *rt = ing_rt_new(2);
    shared s = {0};
    ing_rt_task small[2] = {range_task(count_only, 0, 10, 10),
                            range_task(count_only, 0, 5, 10)};
    ing_rt_launch l;
    int bad = 0;
    for (int i = 0; i < 50000; i++) {
        bad += launch_with(rt, &s, small, 2, 0, NULL, &l) != 0 || !l.ran_inline;
    }
    CHECK(bad == 0 && s.iters == 750000 && s.calls == 100000);
    shared b = {0};
    ing_rt_task large = range_task(count_only, 0, 64, BIG_COST);
    for (int i = 0; i < 5000; i++) {
        bad += launch_with(rt, &b, &large, 1, 0, NULL, &l) != 0 || l.ran_inline;
    }
    CHECK(bad == 0 && b.iters == 64 * 5000);
    ing_rt_free(rt);
}

static void *launcher_main(void *arg) {
    shared *s = arg, mine = {.rt = s->rt};
    ing_rt_task t[3] = {range_task(count_only, 0, 3, 10),
                        range_task(count_only, 0, 100, BIG_COST),
                        range_task(uneven, 0, 300, 5000)};
    while (!atomic_load(&s->go)) sched_yield();
    for (int i = 0; i < 50; i++) {
        t[2].info.may_run_long = i & 1;
        if (launch(s->rt, &mine, t, 3) != 0) atomic_fetch_add(&s->bad, 1);
    }
    if (mine.iters != 50 * 403) atomic_fetch_add(&s->bad, 1);
    return NULL;
}

static void test_64_threads(void) {
    shared s = {.rt = ing_rt_new(3)};
    pthread_t th[64];
    for (int i = 0; i < 64; i++) {
        if (pthread_create(&th[i], NULL, launcher_main, &s) != 0) abort();
    }
    atomic_store(&s.go, 1);
    for (int i = 0; i < 64; i++) pthread_join(th[i], NULL);
    CHECK(s.bad == 0);
    ing_rt_free(s.rt);
}

static int32_t nest(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        uint64_t args[1] = {ctx->args[0]};
        ing_rt_task inner[2] = {range_task(count_only, 0, 20, BIG_COST),
                                range_task(count_only, 0, 2, 1)};
        ing_rt_launch l = {.tasks = inner, .n_tasks = 2, .args = args};
        if (ing_rt_run(s->rt, &l) != 0) atomic_fetch_add(&s->bad, 1);
    }
    return 0;
}

static int32_t nest_twice(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    uint64_t args[1] = {ctx->args[0]};
    ing_rt_task t = range_task(nest, begin, end, BIG_COST);
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
    (void)chunk;
    return ing_rt_run(s->rt, &l);
}

static void test_nested(void) {
    shared s = {.rt = ing_rt_new(4)};
    ing_rt_task t = range_task(nest_twice, 0, 200, BIG_COST);
    for (int i = 0; i < 5; i++) CHECK(launch(s.rt, &s, &t, 1) == 0);
    CHECK(s.bad == 0 && s.iters == 5 * 200 * 22);
    ing_rt_free(s.rt);
}

/* Slow enough for every worker that may come to come. */
static int32_t doze(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    usleep(1000);
    return uneven(ctx, begin, end, chunk);
}

/* Keeps every worker of the pool awake and looking for jobs. */
static void *restless_main(void *arg) {
    shared *s = arg, mine = {0};
    ing_rt_task t = range_task(doze, 0, 8, BIG_COST);
    while (!atomic_load(&s->go)) {
        if (launch(s->rt, &mine, &t, 1) != 0) atomic_fetch_add(&s->bad, 1);
    }
    return NULL;
}

/* A launch wakes no more workers than it may use, so the limit only shows when others
 * are awake for another launch. */
static void test_max_threads(void) {
    ing_rt *rt = ing_rt_new(4);
    shared noise = {.rt = rt};
    pthread_t th;
    ing_rt_launch l;
    if (pthread_create(&th, NULL, restless_main, &noise) != 0) abort();
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t most = round % 5 + 1;
        shared s = {0};
        ing_rt_task t = range_task(doze, 0, 40, BIG_COST);
        CHECK(launch_with(rt, &s, &t, 1, most, NULL, &l) == 0);
        CHECK(s.iters == 40 && s.threads <= (int)most);
        CHECK(s.most_at_once <= (int)(most < 4 ? most : 4));
        CHECK(l.ran_inline == (most == 1));
    }
    atomic_store(&noise.go, 1);
    pthread_join(th, NULL);
    CHECK(noise.bad == 0);
    ing_rt_free(rt);
    rt = ing_rt_new(0);
    CHECK(ing_rt_threads(rt) >= 1);
    ing_rt_free(rt);
    ing_rt_free(NULL);
}

/* ---- tasks of unknown cost --------------------------------------------------------------- */

/* Iteration 0 ends only after iteration 1 has begun: someone else must have come. */
static int32_t rendezvous(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        atomic_fetch_add(&s->go, 1);
        while (atomic_load(&s->go) < 2) {
            if (--ctx->fuel <= 0 && ctx->poll(ctx)) return 1;
        }
    }
    return 0;
}

static void test_probe(void) {
    ing_rt *rt = ing_rt_new(2);
    ing_rt_launch l;
    for (int i = 0; i < 20; i++) {
        shared s = {0};
        ing_rt_task t = range_task(rendezvous, 0, 2, 5);
        t.info.may_run_long = true;
        CHECK(launch_with(rt, &s, &t, 1, 0, NULL, &l) == 0);
        CHECK(s.go == 2 && !l.ran_inline);
    }
    /* A short one stays where it is (unless this thread was put aside meanwhile). */
    int inlined = 0;
    for (int i = 0; i < 100; i++) {
        shared s = {0};
        ing_rt_task t = range_task(count_only, 0, 10, 5);
        t.info.may_run_long = true;
        CHECK(launch_with(rt, &s, &t, 1, 0, NULL, &l) == 0 && s.iters == 10);
        inlined += l.ran_inline;
    }
    CHECK(inlined > 0);
    ing_rt_free(rt);
}

/* ---- errors --------------------------------------------------------------------------------- */

static int32_t fail_all(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    (void)end;
    atomic_fetch_add(&of(ctx)->calls, 1);
    /* Written slowly and without care for others, as native code does. */
    ctx->error->code = USER + (int32_t)begin;
    ctx->error->func = (uint32_t)begin;
    for (int i = 0; i < 4; i++) {
        sched_yield();
        ctx->error->detail[i] = (uint64_t)begin;
    }
    ctx->error->node = (uint32_t)begin;
    return 1;
}

static void test_errors(void) {
    ing_rt *rt = ing_rt_new(4);
    ing_rt_launch l;
    for (int round = 0; round < 200; round++) {
        shared s = {0}, after = {0};
        ing_rt_task t[3] = {range_task(count_only, 0, 10, BIG_COST),
                            range_task(fail_all, 0, 1000, BIG_COST),
                            range_task(count_only, 0, 10, 1)};
        t[1].info.may_run_long = round & 1;
        int32_t rc = launch_with(rt, &s, t, 3, 0, NULL, &l);
        int64_t at = rc - USER;
        CHECK(rc >= USER && l.error.code == rc && l.error.task == 1);
        CHECK(l.error.func == (uint32_t)at && l.error.node == (uint32_t)at);
        for (int i = 0; i < 4; i++) CHECK((int64_t)l.error.detail[i] == at);
        CHECK(s.calls <= 10 + 4 && s.iters == 10); /* the rest was abandoned */
        CHECK(launch(rt, &after, &t[0], 1) == 0 && after.iters == 10);
    }
    ing_rt_free(rt);
}

static int32_t fail_mute(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)ctx, (void)begin, (void)end, (void)chunk;
    return 1;
}

static int32_t fail_quiet(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)begin, (void)end, (void)chunk;
    ctx->error->code = ING_ABI_BOUNDS;
    return 0;
}

static void test_odd_errors(void) {
    ing_rt *rt = ing_rt_new(2);
    shared s = {0};
    for (uint32_t cost = 1; cost <= BIG_COST; cost += BIG_COST - 1) {
        ing_rt_task mute = range_task(fail_mute, 0, 10, cost);
        CHECK(launch(rt, &s, &mute, 1) == ING_RT_INTERNAL);
        ing_rt_task quiet = range_task(fail_quiet, 0, 10, cost);
        CHECK(launch(rt, &s, &quiet, 1) == ING_ABI_BOUNDS);
    }
    ing_rt_task serial = {.fn = fail_mute};
    CHECK(launch(rt, &s, &serial, 1) == ING_RT_INTERNAL);
    ing_rt_free(rt);
}

/* ---- the host: signals, cancel, release -------------------------------------------------------- */

static void *host_release(void *self) {
    shared *s = self;
    s->releases++;
    s->held = 0;
    return &s->held;
}

static void host_acquire(void *self, void *token) {
    shared *s = self;
    if (token != &s->held) s->bad++;
    s->held = 1;
    s->acquires++;
}

static int host_signals(void *self) {
    shared *s = self;
    if (!s->held) s->bad++; /* always with the host's lock */
    return atomic_fetch_add(&s->signals, 1) + 1 >= s->cancel_after;
}

static ing_rt_host host_of(shared *s) {
    s->held = 1;
    return (ing_rt_host){.release = host_release,
                         .acquire = host_acquire,
                         .signals = host_signals,
                         .self = s};
}

static int32_t endless(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)begin, (void)end, (void)chunk;
    atomic_fetch_add(&of(ctx)->calls, 1);
    for (;;) {
        if (--ctx->fuel <= 0 && ctx->poll(ctx)) return 1;
    }
}

/* The launching thread runs out of work and waits while a worker goes on for ever. */
static int32_t endless_elsewhere(ing_ctx *ctx, int64_t begin, int64_t end,
                                 int64_t chunk) {
    shared *s = of(ctx);
    if (!pthread_equal(pthread_self(), *(pthread_t *)s->seen)) {
        atomic_store(&s->go, 1);
        return endless(ctx, begin, end, chunk);
    }
    while (!atomic_load(&s->go)) sched_yield();
    return 0;
}

static void cancels(ing_rt *rt, ing_rt_task t, uint32_t max_threads) {
    shared s = {.cancel_after = 2};
    ing_rt_host host = host_of(&s);
    ing_rt_task tasks[2] = {t, range_task(count_only, 0, 10, 1)};
    ing_rt_launch l;
    CHECK(launch_with(rt, &s, tasks, 2, max_threads, &host, &l) == ING_ABI_CANCELLED);
    CHECK(l.error.code == ING_ABI_CANCELLED);
    CHECK(s.signals >= 2 && s.bad == 0 && s.held == 1); /* until all have stopped */
    CHECK(s.releases == 1 + s.signals && s.acquires == 1 + s.signals);
    if (t.fn == endless) CHECK(s.iters == 0);
    shared after = {0};
    ing_rt_task again = range_task(count_only, 0, 100, BIG_COST);
    CHECK(launch(rt, &after, &again, 1) == 0 && after.iters == 100);
}

static void test_cancel(void) {
    ing_rt *rt = ing_rt_new(3);
    ing_rt_task serial = {.fn = endless, .info.cost = 5};
    cancels(rt, serial, 0); /* inline and, as far as anyone knows, short */
    serial.info.may_run_long = true;
    cancels(rt, serial, 0);
    ing_rt_task t = range_task(endless, 0, 10, 5);
    cancels(rt, t, 0);
    t.info.may_run_long = true;
    cancels(rt, t, 0); /* probed, then pooled */
    cancels(rt, t, 1);
    cancels(rt, range_task(endless, 0, 100, BIG_COST), 0);
    /* No poll in the body: chunk starts must do. */
    cancels(rt, range_task(count_only, 0, INT64_MAX, 1), 1);
    cancels(rt, range_task(count_only, 0, INT64_MAX, 1), 0);
    cancels(NULL, serial, 0);
    ing_rt_free(rt);
}

static void test_cancel_while_waiting(void) {
    ing_rt *rt = ing_rt_new(2);
    pthread_t me = pthread_self();
    shared s = {.cancel_after = 3, .seen = (uint8_t *)&me};
    ing_rt_host host = host_of(&s);
    ing_rt_task t = range_task(endless_elsewhere, 0, 100, BIG_COST);
    ing_rt_launch l;
    CHECK(launch_with(rt, &s, &t, 1, 0, &host, &l) == ING_ABI_CANCELLED);
    CHECK(s.signals == 3 && s.bad == 0 && s.calls == 1);
    ing_rt_free(rt);
}

static void test_release(void) {
    ing_rt *rt = ing_rt_new(2);
    ing_rt_launch l;
    static const struct {
        int64_t trips;
        uint32_t cost;
        bool unknown;
        int want;
    } cases[] = {{10, 10, false, 0},
                 {10, 10, true, 1},
                 {100, 1000, false, 1},
                 {0, 1000, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shared s = {.cancel_after = 1000};
        ing_rt_host host = host_of(&s);
        ing_rt_task t = range_task(count_only, 0, cases[i].trips, cases[i].cost);
        t.info.may_run_long = cases[i].unknown;
        ing_rt_task tasks[2] = {t, t}; /* once per launch, not per task */
        CHECK(launch_with(rt, &s, tasks, 2, 0, &host, &l) == 0);
        CHECK(s.releases == cases[i].want && s.acquires == cases[i].want);
        CHECK(s.held == 1 && s.bad == 0);
    }
    /* Many small tasks add up. */
    shared s = {.cancel_after = 1000};
    ing_rt_host host = host_of(&s);
    ing_rt_task many[40];
    for (int i = 0; i < 40; i++) many[i] = range_task(count_only, 0, 10, 500);
    CHECK(launch_with(rt, &s, many, 40, 0, &host, &l) == 0);
    CHECK(s.releases == 1 && s.acquires == 1 && s.iters == 400 && l.ran_inline);
    ing_rt_host none = {0};
    CHECK(launch_with(rt, &s, many, 40, 0, &none, &l) == 0);
    ing_rt_free(rt);
}

/* A handler that launches, in the middle of a launch of the same thread. */
static int launching_signals(void *self) {
    shared *s = self;
    shared inner = {0};
    ing_rt_task t = range_task(count_only, 0, 50, BIG_COST);
    uint64_t args[1] = {(uint64_t)(uintptr_t)&inner};
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
    if (ing_rt_run(s->rt, &l) != 0 || inner.iters != 50) s->bad++;
    return ++s->signals >= 3;
}

static void test_launch_in_signals(void) {
    shared s = {.rt = ing_rt_new(2)};
    ing_rt_host host = {.signals = launching_signals, .self = &s};
    ing_rt_task t = range_task(endless, 0, 100, BIG_COST);
    ing_rt_launch l;
    CHECK(launch_with(s.rt, &s, &t, 1, 0, &host, &l) == ING_ABI_CANCELLED);
    CHECK(s.bad == 0 && s.signals == 3);
    ing_rt_free(s.rt);
}

static int exiting_signals(void *self) {
    (void)self;
    pthread_exit(NULL);
}

static int32_t endless_counted(ing_ctx *ctx, int64_t begin, int64_t end,
                               int64_t chunk) {
    atomic_fetch_add(&of(ctx)->at_once, 1);
    int32_t rc = endless(ctx, begin, end, chunk);
    atomic_fetch_sub(&of(ctx)->at_once, 1);
    return rc;
}

static void *exiting_main(void *arg) {
    shared *s = arg;
    ing_rt_host host = {.signals = exiting_signals, .self = s};
    ing_rt_task t = range_task(endless_counted, 0, 100, BIG_COST);
    t.info.may_run_long = s->cancel_after;
    ing_rt_launch l;
    launch_with(s->rt, s, &t, 1, 0, &host, &l);
    return arg;
}

/* The launching thread ends inside a callback, as at interpreter exit: workers must be
 * out of its stack before that goes away. */
static void test_thread_exit(void) {
    shared s = {.rt = ing_rt_new(3)};
    for (int i = 0; i < 4; i++) {
        pthread_t th;
        void *result = &s;
        s.cancel_after = i & 1;
        s.at_once = 0;
        if (pthread_create(&th, NULL, exiting_main, &s) != 0) abort();
        pthread_join(th, &result);
        CHECK(result == NULL);
        CHECK(s.at_once == 1); /* its own call, which never returned */
    }
    shared after = {0};
    ing_rt_task t = range_task(count_only, 0, 100, BIG_COST);
    CHECK(launch(s.rt, &after, &t, 1) == 0 && after.iters == 100);
    ing_rt_free(s.rt);
}

/* ---- state of threads ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define FLUSH 0x8040u
static unsigned mxcsr(void) {
    return __builtin_ia32_stmxcsr();
}

static int32_t note_fp(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    (void)begin, (void)end, (void)chunk;
    note_thread(s);
    if ((mxcsr() & (FLUSH | 0x6000)) != s->fp[0]) s->bad++;
    while (s->fp[1] && s->threads < 2) sched_yield();
    return 0;
}

static int fp_signals(void *self) {
    shared *s = self;
    if ((mxcsr() & FLUSH) != 0) s->bad++;
    __builtin_ia32_ldmxcsr(0x1f80); /* a handler may leave anything behind */
    s->signals++;
    return 1;
}

static void test_flush(void) {
    ing_rt *rt = ing_rt_new(2);
    unsigned was = mxcsr();
    for (int mode = 0; mode < 8; mode++) {
        unsigned up = mode & 4 ? 0x4000 : 0; /* rounding mode of the launching thread */
        shared s = {.fp = {(mode & 1 ? FLUSH : 0) | up, mode & 2}};
        uint64_t args[1] = {(uint64_t)(uintptr_t)&s};
        ing_rt_task t = range_task(note_fp, 0, 16, mode & 2 ? BIG_COST : 1);
        ing_rt_launch l = {
            .tasks = &t, .n_tasks = 1, .args = args, .flush_denormals = mode & 1};
        s.number = ++numbers;
        /* The other way round before, to see that it is set, and restored. */
        unsigned before = 0x1f80 | up | (mode & 1 ? 0 : FLUSH);
        __builtin_ia32_ldmxcsr(before);
        CHECK(ing_rt_run(rt, &l) == 0);
        CHECK((mxcsr() & 0xffc0) == (before & 0xffc0));
        __builtin_ia32_ldmxcsr(was);
        CHECK(s.bad == 0 && s.threads == (mode & 2 ? 2 : 1));
    }
    shared s = {0};
    ing_rt_host host = {.signals = fp_signals, .self = &s};
    uint64_t args[1] = {(uint64_t)(uintptr_t)&s};
    ing_rt_task t = range_task(endless, 0, 16, BIG_COST);
    ing_rt_launch l = {.tasks = &t,
                       .n_tasks = 1,
                       .args = args,
                       .host = &host,
                       .flush_denormals = true};
    CHECK(ing_rt_run(rt, &l) == ING_ABI_CANCELLED);
    CHECK(s.signals == 1 && s.bad == 0 && (mxcsr() & FLUSH) == (was & FLUSH));
    ing_rt_free(rt);
}
#else
static void test_flush(void) {}
#endif

static int32_t inspect(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    shared *s = of(ctx);
    (void)begin, (void)end, (void)chunk;
    note_thread(s);
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strncmp(name, "ingot-", 6) == 0) {
        sigset_t mask;
        pthread_attr_t attr;
        size_t stack = 0;
        pthread_sigmask(SIG_BLOCK, NULL, &mask);
        if (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGUSR1)) s->bad++;
        if (pthread_getattr_np(pthread_self(), &attr) == 0) {
            pthread_attr_getstacksize(&attr, &stack);
            pthread_attr_destroy(&attr);
        }
        if (stack < (size_t)8 << 20) s->bad++;
        atomic_fetch_add(&s->go, 1);
    }
    while (!atomic_load(&s->go)) sched_yield();
    return 0;
}

static void test_worker_state(void) {
    ing_rt *rt = ing_rt_new(2);
    shared s = {0};
    ing_rt_task t = range_task(inspect, 0, 4, BIG_COST);
    CHECK(launch(rt, &s, &t, 1) == 0);
    CHECK(s.bad == 0 && s.threads == 2 && s.go >= 1);
    sigset_t mask; /* and this thread got its own mask back */
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGINT));
    ing_rt_free(rt);
}

/* ---- scratch ------------------------------------------------------------------------------------ */

enum { SCRATCH = 192, SLOTS = 3 };
static _Alignas(64) uint8_t scratch[SLOTS * SCRATCH];

/* Counts in its own slot's memory, plainly: a slot that two threads shared would lose some. */
static int32_t count_in_scratch(ing_ctx *ctx, int64_t begin, int64_t end,
                                int64_t chunk) {
    (void)chunk;
    shared *s = of(ctx);
    if (ctx->slot >= SLOTS || ctx->scratch != scratch + ctx->slot * SCRATCH) {
        atomic_fetch_add(&s->bad, 1);
        return 0;
    }
    note_thread(s);
    for (int64_t i = begin; i < end; i++) ++*(volatile uint64_t *)ctx->scratch;
    return 0;
}

static int32_t has_no_scratch(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)begin, (void)end, (void)chunk;
    if (ctx->scratch) atomic_fetch_add(&of(ctx)->bad, 1);
    return 0;
}

static void test_scratch(void) {
    ing_rt *rt = ing_rt_new(SLOTS);
    CHECK(ing_rt_slots(rt) == SLOTS && ing_rt_slots(NULL) == 1);
    shared s = {.number = atomic_fetch_add(&numbers, 1) + 1};
    uint64_t args[1] = {(uint64_t)(uintptr_t)&s}, sum = 0;
    ing_rt_task t[2] = {range_task(count_in_scratch, 0, 300000, 1000),
                        range_task(count_in_scratch, 0, 7, 1)};
    ing_rt_launch l = {.tasks = t,
                       .n_tasks = 2,
                       .args = args,
                       .scratch = scratch,
                       .scratch_bytes = SCRATCH};
    CHECK(ing_rt_run(rt, &l) == 0 && s.bad == 0);
    for (size_t k = 0; k < SLOTS; k++) {
        uint64_t n;
        memcpy(&n, scratch + k * SCRATCH, sizeof n);
        sum += n;
    }
    CHECK(sum == 300007);
    ing_rt_task none = range_task(has_no_scratch, 0, 64, BIG_COST);
    CHECK(launch(rt, &s, &none, 1) == 0 && s.bad == 0);
    ing_rt_free(rt);
}

/* ---- memory of arrays ----------------------------------------------------------------------------- */

static void test_memory(void) {
    static const size_t sizes[] = {0,         1,
                                   63,        64,
                                   1000,      (256 << 10) - 1,
                                   256 << 10, (256 << 10) + 1,
                                   1 << 20,   (4 << 20) - 1,
                                   4 << 20,   (9 << 20) + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *p = NULL;
        CHECK(ing_rt_alloc_array(sizes[i], (void **)&p) == ING_OK && p);
        CHECK((uintptr_t)p % 64 == 0);
        size_t dirty = 0;
        for (size_t k = 0; k < sizes[i]; k++) dirty += p[k] != 0;
        CHECK(dirty == 0);
        memset(p, 0xff, sizes[i]);
        ing_rt_free_array(p, sizes[i]);
    }
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX,
                                  (size_t)PTRDIFF_MAX + 1, (size_t)1 << 60};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        void *p = &p;
        CHECK(ing_rt_alloc_array(huge[i], &p) == ING_MEMORY && p == NULL);
    }
    /* 64 GiB untouched cost nothing where the system overcommits, else are refused. */
    uint8_t *lazy = NULL;
    if (ing_rt_alloc_array((size_t)64 << 30, (void **)&lazy) == ING_OK) {
        CHECK(lazy[(size_t)40 << 30] == 0);
        ing_rt_free_array(lazy, (size_t)64 << 30);
    }
    void *p = NULL;
    ing_alloc_fail_at(1);
    CHECK(ing_rt_alloc_array(100, &p) == ING_MEMORY);
    ing_alloc_fail_at(1);
    CHECK(ing_rt_new(2) == NULL);
    ing_alloc_fail_at(0);
    ing_rt_free_array(NULL, 100);
}

int main(void) {
    alarm(300);
    test_coverage();
    test_huge_ranges();
    test_partials();
    test_buffer_and_interp();
    test_uneven();
    test_other_parts();
    test_small_launches();
    test_64_threads();
    test_nested();
    test_max_threads();
    test_probe();
    test_errors();
    test_odd_errors();
    test_cancel();
    test_cancel_while_waiting();
    test_release();
    test_launch_in_signals();
    test_thread_exit();
    test_flush();
    test_worker_state();
    test_memory();
    test_scratch();
    return CHECK_DONE();
}
