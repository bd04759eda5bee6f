/* Prints of tasks: nothing is lost and each thread's order is kept, however small the
 * buffer is against what is printed; a host that refuses cancels the launch; faults come
 * once per place. */
#include "check.h"
#include "rt/rt.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MANY = 60000 }; /* times 40 bytes: several buffers */

typedef struct seen {
    uint32_t count, writes, faults;
    uint32_t at_most; /* refuse after so many writes, 0 = never */
    uint8_t *got;     /* by number printed */
    bool foreign;     /* a write came from another thread, or without the host's lock */
    bool released;
    pthread_t launcher;
    uint64_t last_task;
} seen;

static int take(void *self, const uint8_t *records, size_t n) {
    seen *s = self;
    s->writes++;
    if (!pthread_equal(s->launcher, pthread_self()) || s->released) s->foreign = true;
    for (size_t at = 0; at < n;) {
        const ing_rt_printed *r = (const void *)(records + at);
        const uint64_t *words = (const void *)(records + at + sizeof *r);
        if (r->p.code < ING_ABI_USER)
            s->faults++;
        else if (words[0] < MANY)
            s->got[words[0]]++;
        s->last_task = r->task;
        s->count++;
        at += sizeof *r + 8 * (size_t)r->p.n;
    }
    return s->at_most && s->writes >= s->at_most;
}

static void *release(void *self) {
    seen *s = self;
    s->released = true;
    return s;
}

static void acquire(void *self, void *token) {
    seen *s = self;
    if (token != self || !s->released) s->foreign = true;
    s->released = false;
}

typedef union record {
    ing_printed p;
    uint64_t room[4];
} record;

static int32_t talk(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        record r = {.p = {ING_ABI_USER, 0, 0, 2}};
        r.room[2] = (uint64_t)i;
        r.room[3] = 7;
        ctx->print(ctx, &r.p);
    }
    return 0;
}

static int32_t overflow(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    for (int64_t i = begin; i < end; i++) {
        record r = {.p = {ING_ABI_OVERFLOW, 1, (uint32_t)(i % 3), 1}};
        r.room[2] = ING_ABI_OVERFLOW_ADD;
        ctx->print(ctx, &r.p);
    }
    return 0;
}

static int32_t run(ing_rt *rt, ing_task_fn fn, uint32_t n_tasks, seen *s) {
    ing_rt_task tasks[2] = {{.fn = fn,
                             .info.kind = ING_IR_TASK_RANGE,
                             .info.end.value = MANY,
                             .info.cost = 1000},
                            {.fn = fn,
                             .info.kind = ING_IR_TASK_RANGE,
                             .info.end.value = MANY,
                             .info.cost = 1000}};
    ing_rt_sink sink = {take, s};
    ing_rt_host host = {.release = release, .acquire = acquire, .self = s};
    ing_rt_launch l = {
        .tasks = tasks, .n_tasks = n_tasks, .sink = &sink, .host = &host};
    s->launcher = pthread_self();
    s->got = calloc(MANY, 1);
    int32_t rc = ing_rt_run(rt, &l);
    if (s->released) s->foreign = true;
    return rc;
}

int main(void) {
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        ing_rt *rt = ing_rt_new(threads);
        seen s = {0};
        CHECK(run(rt, talk, 1, &s) == 0);
        bool once = true;
        for (uint32_t i = 0; i < MANY; i++) once = once && s.got[i] == 1;
        CHECK(once && s.count == MANY && !s.foreign && s.writes > 2);
        free(s.got);

        seen stop = {.at_most = 2};
        CHECK(run(rt, talk, 2, &stop) == ING_ABI_CANCELLED);
        CHECK(stop.writes == 2 && stop.last_task == 0);
        free(stop.got);

        seen f = {0};
        CHECK(run(rt, overflow, 2, &f) == 0);
        CHECK(f.faults == 6 && f.count == 6);
        free(f.got);
        ing_rt_free(rt);
    }
    return CHECK_DONE();
}
