/* The runtime across fork: the child has no workers and perhaps a held lock, and must
 * launch all the same; the parent must not notice. */
#include "check.h"
#include "rt/rt.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIG_COST 100000u
#define THREADS  3

static ing_rt *the_rt; /* as the registry of the Python module holds it */

static void in_child(void) {
    ing_rt_after_fork(the_rt);
}

static int32_t count(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)chunk;
    atomic_fetch_add((atomic_llong *)(uintptr_t)ctx->args[0], end - begin);
    return 0;
}

static bool launch_ok(ing_rt *rt) {
    atomic_llong iters = 0;
    uint64_t args[1] = {(uint64_t)(uintptr_t)&iters};
    ing_rt_task t[2] = {{.fn = count,
                         .info.kind = ING_IR_TASK_RANGE,
                         .info.cost = BIG_COST,
                         .info.end.value = 300},
                        {.fn = count,
                         .info.kind = ING_IR_TASK_RANGE,
                         .info.cost = 1,
                         .info.end.value = 5}};
    ing_rt_launch l = {.tasks = t, .n_tasks = 2, .args = args};
    return ing_rt_run(rt, &l) == 0 && iters == 305;
}

/* Waits until every worker has come, so that a child's pool is seen to be alive. Also
 * done before each fork: AddressSanitizer's allocator, which a starting thread uses, does
 * not survive being forked in the middle (glibc's does). */
static int32_t meet(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    atomic_llong *here = (atomic_llong *)(uintptr_t)ctx->args[0];
    (void)begin, (void)end, (void)chunk;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < THREADS) {
        if (--ctx->fuel <= 0 && ctx->poll(ctx)) return 1;
        sched_yield();
    }
    return 0;
}

static bool meet_ok(ing_rt *rt) {
    atomic_llong here = 0;
    uint64_t args[1] = {(uint64_t)(uintptr_t)&here};
    ing_rt_task t = {.fn = meet,
                     .info.kind = ING_IR_TASK_RANGE,
                     .info.cost = BIG_COST,
                     .info.end.value = THREADS};
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args};
    return ing_rt_run(rt, &l) == 0 && !l.ran_inline;
}

static bool child_was_fine(pid_t pid) {
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static void test_launch_in_child(int times) {
    CHECK(meet_ok(the_rt));
    for (int i = 0; i < times; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            bool ok = launch_ok(the_rt) && meet_ok(the_rt) && launch_ok(the_rt);
            if (i % 2) ing_rt_free(the_rt);
            _exit(!ok);
        }
        CHECK(child_was_fine(pid));
        CHECK(launch_ok(the_rt));
    }
}

static void test_grandchild(void) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        bool ok = meet_ok(the_rt);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            alarm(60);
            _exit(!(meet_ok(the_rt) && launch_ok(the_rt)));
        }
        ok = child_was_fine(grandchild) && meet_ok(the_rt) && ok;
        ing_rt_free(the_rt);
        _exit(!ok);
    }
    CHECK(child_was_fine(pid));
}

/* Nobody told the child's runtime: freeing it must neither hang nor crash. */
static void test_free_untold(void) {
    ing_rt *rt = ing_rt_new(THREADS);
    CHECK(meet_ok(rt));
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        ing_rt_free(rt);
        _exit(0);
    }
    CHECK(child_was_fine(pid));
    CHECK(meet_ok(rt));
    ing_rt_free(rt);
}

static atomic_int busy_stop, busy_running;
static atomic_llong busy_bad;

static void *busy_main(void *arg) {
    (void)arg;
    atomic_fetch_add(&busy_running, 1);
    while (!atomic_load(&busy_stop)) busy_bad += !launch_ok(the_rt);
    return NULL;
}

/* Other threads are in the middle of launches, locks held, while this one forks. */
static void test_fork_while_busy(int times) {
    pthread_t th[4];
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&th[i], NULL, busy_main, NULL) != 0) abort();
    }
    while (atomic_load(&busy_running) < 4) sched_yield();
    for (int i = 0; i < times; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            bool ok = launch_ok(the_rt) && meet_ok(the_rt);
            ing_rt_free(the_rt);
            _exit(!ok);
        }
        CHECK(child_was_fine(pid));
    }
    atomic_store(&busy_stop, 1);
    for (int i = 0; i < 4; i++) pthread_join(th[i], NULL);
    CHECK(busy_bad == 0);
}

static pid_t forked_pid;

static int forking_signals(void *self) {
    int *calls = self;
    if (++*calls == 1) forked_pid = fork();
    return *calls >= 2;
}

static int32_t endless(ing_ctx *ctx, int64_t begin, int64_t end, int64_t chunk) {
    (void)begin, (void)end, (void)chunk;
    atomic_fetch_add((atomic_llong *)(uintptr_t)ctx->args[0], 1);
    for (;;) {
        if (--ctx->fuel <= 0 && ctx->poll(ctx)) return 1;
    }
}

/* A signal handler forks in the middle of its own launch. The child's copy of that
 * launch has lost its workers: it ends as cancelled instead of waiting for them. */
static void test_fork_in_launch(bool unknown) {
    atomic_llong entered = 0;
    int calls = 0;
    uint64_t args[1] = {(uint64_t)(uintptr_t)&entered};
    ing_rt_host host = {.signals = forking_signals, .self = &calls};
    ing_rt_task t = {.fn = endless,
                     .info.kind = ING_IR_TASK_RANGE,
                     .info.cost = BIG_COST,
                     .info.end.value = 100,
                     .info.may_run_long = unknown};
    ing_rt_launch l = {.tasks = &t, .n_tasks = 1, .args = args, .host = &host};
    int32_t rc = ing_rt_run(the_rt, &l);
    if (forked_pid == 0) {
        alarm(60);
        _exit(!(rc == ING_ABI_CANCELLED && meet_ok(the_rt) && launch_ok(the_rt)));
    }
    CHECK(rc == ING_ABI_CANCELLED);
    CHECK(child_was_fine(forked_pid));
    CHECK(meet_ok(the_rt));
}

int main(void) {
#if defined(__SANITIZE_THREAD__)
    /* Its runtime cannot start threads in a child that had them before the fork. */
    puts("not run: fork under ThreadSanitizer");
    return CHECK_DONE();
#endif
    alarm(300);
    the_rt = ing_rt_new(THREADS);
    if (pthread_atfork(NULL, NULL, in_child) != 0) abort();
    test_launch_in_child(100);
    test_grandchild();
    test_free_untold();
    test_fork_while_busy(100);
    test_fork_in_launch(false);
    test_fork_in_launch(true);
    CHECK(launch_ok(the_rt));
    ing_rt_free(the_rt);
    return CHECK_DONE();
}
