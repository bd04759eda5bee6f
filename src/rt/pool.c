/* The thread pool: workers that join jobs, sleep when there is none, and die at
 * ing_rt_free. Called by run.c for tasks worth sharing. Never holds the lock while a
 * task or a callback of the host runs; never touches a job outside join .. leave.
 *
 * The rules of the pool:
 * POOL1 A job is listed by its launcher and joined by workers under rt->lock. The launcher
 *    works too, so a job ends even when no worker ever comes.
 * POOL2 A worker touches a job only between join (inside + 1, under the lock, while listed)
 *    and leave (inside - 1, with release order: its last touch).
 * POOL3 The launcher takes the job off the list under the lock, so nobody joins any more,
 *    then waits until inside is 0, read with acquire order. Only then does its stack
 *    frame, which holds job and run, go away. It does so even when the thread is ended
 *    from inside a host callback (pthread_exit at interpreter exit): a cleanup handler.
 * POOL4 Sleeping is by sequence number: read the number, look for the condition, sleep only
 *    if the number is unchanged; the other side makes the condition true, bumps the
 *    number, then looks for sleepers. Both numbers belong to the pool, not to a job.
 * POOL5 No cycle of waiting: a thread waits only for workers that joined its newest job after
 *    it was listed, and a worker joins only from the bottom of its own stack.
 * POOL6 After fork the child has none of the workers and perhaps a held lock: everything is
 *    made anew, and jobs of the old generation are not waited for. */
#include "rt/rt_int.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- sleeping (POOL4) -------------------------------------------------------------------------- */

static void futex_wait(atomic_uint *word, unsigned seen, uint64_t ns) {
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, ns ? &ts : NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, uint32_t n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* True once *word differs from `seen`, false when `ns` passed first. */
static bool spin(const atomic_uint *word, unsigned seen, uint64_t ns) {
    uint64_t until = ing_os_now_ns() + ns;
    do {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen) return true;
            cpu_relax();
        }
    } while (ing_os_now_ns() < until);
    return false;
}

/* ---- workers ----------------------------------------------------------------------------------- */

static bool wants_worker(job *j) {
    return j->room > 0 && ing_rt_job_has_pieces(j) &&
           atomic_load_explicit(&j->run->stop, memory_order_relaxed) == STOP_NO;
}

static job *join_job(ing_rt *rt) {
    pthread_mutex_lock(&rt->lock);
    job *j = rt->head;
    while (j && !wants_worker(j)) j = j->next;
    if (j) {
        j->room--;
        atomic_fetch_add_explicit(&j->inside, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&rt->lock);
    return j;
}

void ing_rt_wake_launcher(ing_rt *rt) {
    if (!rt) return;
    atomic_fetch_add(&rt->done_seq, 1);
    if (atomic_load(&rt->waiters)) futex_wake(&rt->done_seq, INT32_MAX);
}

static void leave_job(ing_rt *rt, job *j) {
    if (atomic_fetch_sub(&j->inside, 1) != 1) return; /* last touch of j (POOL2) */
    ing_rt_wake_launcher(rt);
}

/* The kernel may wake a worker on the CPU of the thread that woke it and leave it there,
 * where the two only take turns. Leaving that CPU out for a moment moves this thread;
 * the mask it had is then put back, so nothing stays pinned. */
static void step_aside(int cpu) {
    cpu_set_t mine, rest;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu) return;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) < 2) return;
    rest = mine;
    CPU_CLR(cpu, &rest);
    if (sched_setaffinity(0, sizeof rest, &rest) == 0) {
        sched_setaffinity(0, sizeof mine, &mine);
    }
}

static void help(ing_rt *rt, job *j, uint32_t number) {
    seat s;
    step_aside(j->cpu);
    fp_state mine = fp_get();
    fp_set(j->run->fp_task & ~FP_FLAGS);
    ing_rt_seat_init(&s, j->run, number, false);
    if (s.ctx.scratch) s.ctx.scratch += number * j->run->launch->scratch_bytes;
    s.ctx.partials = j->partials;
    if (j->tallies) ing_rt_tally_open(&s, j->task);
    ing_rt_job_work(j, &s);
    if (j->tallies) ing_rt_tally_close(&s, j->task);
    ing_rt_seat_fini(&s);
    fp_set(mine);
    leave_job(rt, j);
}

static void *worker_main(void *arg) {
    worker *w = arg;
    ing_rt *rt = w->rt;
    char name[16];
    snprintf(name, sizeof name, "ingot-%u", w->number);
    pthread_setname_np(pthread_self(), name);
    uint64_t patience = SPIN_NS;
    for (;;) {
        unsigned seq = atomic_load(&rt->work_seq);
        if (atomic_load(&rt->quit)) return NULL;
        job *j = join_job(rt);
        if (j) {
            uint64_t start = ing_os_now_ns();
            help(rt, j, w->number);
            patience = (ing_os_now_ns() - start) / SPIN_PART;
            if (patience < SPIN_NS) patience = SPIN_NS;
            if (patience > SPIN_MOST_NS) patience = SPIN_MOST_NS;
        } else if (!spin(&rt->work_seq, seq, patience)) {
            patience = SPIN_NS;
            atomic_fetch_add(&rt->sleepers, 1);
            futex_wait(&rt->work_seq, seq, 0);
            atomic_fetch_sub(&rt->sleepers, 1);
        }
    }
}

static bool start_worker(ing_rt *rt, uint32_t i) {
    pthread_attr_t attr;
    size_t stack = 0;
    if (pthread_attr_init(&attr) != 0) return false;
    if (pthread_attr_getstacksize(&attr, &stack) == 0 && stack < WORKER_STACK) {
        pthread_attr_setstacksize(&attr, WORKER_STACK);
    }
    rt->workers[i] = (worker){.rt = rt, .number = i + 1};
    int rc =
        pthread_create(&rt->workers[i].thread, &attr, worker_main, &rt->workers[i]);
    pthread_attr_destroy(&attr);
    return rc == 0;
}

/* Makes sure of n workers, or of as many as the system grants; under the lock. Signals
 * are for the host's threads: a worker is born with all of them blocked. */
static void start_workers(ing_rt *rt, uint32_t n) {
    if (rt->started >= n) return;
    sigset_t all, old;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0) return;
    while (rt->started < n && start_worker(rt, rt->started)) rt->started++;
    rt->pid = getpid();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- jobs ----------------------------------------------------------------------------------------- */

void ing_rt_job_list(job *j) {
    ing_rt *rt = j->run->rt;
    uint32_t workers = j->threads - 1;
    if (j->pieces < workers) workers = (uint32_t)j->pieces;
    /* A worker lists jobs only within a fork, which the launching thread listed. */
    if (j->run->launch->ran_inline) j->run->launch->ran_inline = false;
    j->cpu = sched_getcpu();
    pthread_mutex_lock(&rt->lock);
    start_workers(rt, workers);
    j->room = workers;
    j->prev = rt->tail;
    *(rt->tail ? &rt->tail->next : &rt->head) = j;
    rt->tail = j;
    j->listed = true;
    j->generation = atomic_load(&rt->generation);
    pthread_mutex_unlock(&rt->lock);
    atomic_fetch_add(&rt->work_seq, 1);
    if (atomic_load(&rt->sleepers)) futex_wake(&rt->work_seq, workers);
}

static void unlist_job(ing_rt *rt, job *j) {
    pthread_mutex_lock(&rt->lock);
    *(j->prev ? &j->prev->next : &rt->head) = j->next;
    *(j->next ? &j->next->prev : &rt->tail) = j->prev;
    pthread_mutex_unlock(&rt->lock);
    j->listed = false;
}

/* In a child that was forked from a callback of this very launch the workers are gone,
 * and with them the pieces they had taken: such a launch ends as cancelled (POOL6). */
static bool forked(ing_rt *rt, job *j) {
    if (atomic_load(&rt->generation) == j->generation) return false;
    if (atomic_load(&j->inside)) ing_rt_stop(j->run, STOP_CANCEL);
    j->listed = false;
    return true;
}

static void wait_workers(ing_rt *rt, job *j, bool ask) {
    bool spun = false;
    for (;;) {
        unsigned seq = atomic_load(&rt->done_seq);
        if (forked(rt, j) || atomic_load(&j->inside) == 0) return;
        if (ask && ing_rt_output_wanted(j->run)) ing_rt_output_drain(j->run);
        if (!spun && spin(&rt->done_seq, seq, SPIN_NS)) continue;
        spun = true;
        atomic_fetch_add(&rt->waiters, 1);
        futex_wait(&rt->done_seq, seq, SIGNALS_NS);
        atomic_fetch_sub(&rt->waiters, 1);
        if (ask) ing_rt_tick(j->run, ing_os_now_ns());
    }
}

static void finish_job(ing_rt *rt, job *j, bool ask) {
    if (!j->listed || forked(rt, j)) return;
    unlist_job(rt, j);
    wait_workers(rt, j, ask);
}

/* POOL3: the launching thread ends in the middle of its job. */
static void abandon_job(void *arg) {
    job *j = arg;
    ing_rt_stop(j->run, STOP_CANCEL);
    ing_rt_output_close(j->run);
    if (j->listed)
        finish_job(j->run->rt, j, false);
    else if (j->generation)
        wait_workers(j->run->rt, j, false);
}

void ing_rt_job_run(job *j, seat *s) {
    if (j->threads < 2 || (!j->probe && j->pieces < 2)) {
        ing_rt_job_work(j, s);
        return;
    }
    pthread_cleanup_push(abandon_job, j);
    bool shared = true;
    if (j->probe)
        shared = ing_rt_job_probe(j, s);
    else
        ing_rt_job_list(j);
    if (shared) ing_rt_job_work(j, s);
    finish_job(j->run->rt, j, s->launcher);
    pthread_cleanup_pop(0);
}

/* ---- the pool --------------------------------------------------------------------------------------- */

static size_t pool_size(uint32_t threads) {
    return sizeof(ing_rt) + threads * sizeof(worker);
}

ing_rt *ing_rt_new(uint32_t threads) {
    if (threads == 0) threads = ing_rt_default_threads();
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    void *p; /* not ing_calloc: the counters want cache lines of their own */
    if (ing_rt_alloc_array(pool_size(threads), &p) != ING_OK) return NULL;
    ing_rt *rt = p;
    rt->threads = threads;
    rt->generation = 1;
    pthread_mutex_init(&rt->lock, NULL);
    return rt;
}

void ing_rt_free(ing_rt *rt) {
    if (!rt) return;
    /* A forked child that was not told of the fork has no one to join. */
    if (rt->started && rt->pid == getpid()) {
        atomic_store(&rt->quit, true);
        atomic_fetch_add(&rt->work_seq, 1);
        futex_wake(&rt->work_seq, INT32_MAX);
        for (uint32_t i = 0; i < rt->started; i++) {
            pthread_join(rt->workers[i].thread, NULL);
        }
    }
    ing_rt_free_array(rt, pool_size(rt->threads));
}

uint32_t ing_rt_threads(const ing_rt *rt) {
    return rt->threads;
}

void ing_rt_after_fork(ing_rt *rt) {
    if (!rt) return;
    pthread_mutex_init(&rt->lock, NULL);
    rt->head = rt->tail = NULL;
    rt->started = 0;
    atomic_store(&rt->sleepers, 0);
    atomic_store(&rt->waiters, 0);
    atomic_fetch_add(&rt->generation, 1);
}
