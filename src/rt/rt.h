/* rt: runs the tasks of a launch: inline when small, on the thread pool when large.
 * Knows nothing of Python: the host passes callbacks for signals and for the GIL. */
#ifndef ING_RT_H
#define ING_RT_H

#include "base/base.h"
#include "gen/abi.h"
#include "ir/ir.h"

/* launch->error.code when a task stopped without saying why and nobody cancelled it: a
 * bug in generated code. Negative, so that it never meets a code of ing_abi_error. */
#define ING_RT_INTERNAL (-1)

typedef struct ing_rt ing_rt; /* the pool; one per process, made lazily, fork-aware */

/* What the embedding program does around work and while waiting. Any may be NULL. */
typedef struct ing_rt_host {
    void *(*release)(void *self);             /* before long work (drop the GIL) */
    void (*acquire)(void *self, void *token); /* after it */
    /* Called every 50 ms from the launching thread while work runs, with the host's lock
     * (the GIL); non-zero = cancel the launch (Ctrl-C). */
    int (*signals)(void *self);
    void *self;
} ing_rt_host;

/* What tasks print, as records in order of arrival. Each is an ing_rt_printed, then as many
 * words as p.n says; all are multiples of 8 bytes. */
typedef struct ing_rt_printed {
    uint64_t task; /* number in the launch */
    ing_printed p;
} ing_rt_printed;

typedef struct ing_rt_sink {
    /* Launching thread only, with the host's lock and none of ours; non-zero = cancel the
     * launch, what is printed later is dropped. */
    int (*write)(void *self, const uint8_t *records, size_t n);
    void *self;
} ing_rt_sink;

typedef struct ing_rt_task {
    ing_task_fn fn; /* native code, or NULL: interp is called */
    int32_t (*interp)(void *self, ing_ctx *ctx, int64_t begin, int64_t end,
                      int64_t chunk);
    void *interp_self;
    ing_ir_task
        info; /* as its record has it; a serial one is called once with [0, 1) */
    uint32_t n_words; /* of the arguments */
} ing_rt_task;

/* The order of tasks when it is not that of the table. */
typedef struct
    ing_rt_fork { /* lists of tasks that may run at once, each in its order */
    const uint32_t *tasks;
    const uint32_t *starts; /* list k is tasks[starts[k]] to tasks[starts[k + 1] - 1] */
    uint32_t n;
} ing_rt_fork;

/* Instead of a task's number: the end, nothing to do just now, a fork. */
#define ING_RT_DONE    UINT32_MAX
#define ING_RT_NOTHING (UINT32_MAX - 1)
#define ING_RT_FORKED  (UINT32_MAX - 2)

typedef struct ing_rt_time { /* of one task in a launch */
    uint64_t runs, ns;
    uint32_t threads; /* that worked on it together, at most; 0: not counted, one */
} ing_rt_time;

typedef struct ing_rt_order {
    /* What runs next; called by the launching thread when all before it is done. */
    uint32_t (*next)(void *self, ing_rt_fork *fork);
    void *self;
    ing_rt_time *times; /* per task, added to; NULL: nobody asks */
} ing_rt_order;

typedef struct ing_rt_launch {
    const ing_rt_task *tasks;
    uint32_t n_tasks;
    const ing_rt_order *order; /* NULL: one by one */
    uint64_t *args;            /* these three as in ing_ctx: copied together */
    uint8_t *buffer;           /* zeroed by the caller */
    uint64_t *rets;
    bool flush_denormals; /* FTZ/DAZ while tasks run, restored after */
    uint32_t max_threads; /* 0 = as many as the pool has */
    const ing_rt_host *host;
    const ing_rt_sink *sink; /* NULL: prints are dropped */
    uint64_t key;            /* of random numbers: one per launch */
    /* What tasks need for themselves: `scratch_bytes` for each of the ing_rt_slots slots,
     * one after the other, NULL: none. */
    uint8_t *scratch;
    size_t scratch_bytes;
    ing_error_slot error; /* out */
    uint64_t grown;       /* out: bytes of scratch that code asked for on top */
    bool ran_inline;      /* out: nothing left the calling thread */
} ing_rt_launch;

ing_rt *ing_rt_new(
    uint32_t threads); /* 0 = one per usable core; starts no thread yet */
void ing_rt_free(ing_rt *rt);
uint32_t ing_rt_threads(const ing_rt *rt);
/* How many tasks of a launch may run at once. NULL: no pool. */
static inline uint32_t ing_rt_slots(const ing_rt *rt) {
    return rt ? ing_rt_threads(rt) : 1;
}
/* Runs the tasks in their order. 0 = done; else launch->error says why (code). Safe from any
 * thread, from inside a callback of another launch, and from several threads at once. */
int32_t ing_rt_run(ing_rt *rt, ing_rt_launch *launch);
/* In the child after fork: the pool's threads are gone; forget them. It re-makes every
 * lock, so nothing needs to be called before fork or in the parent. */
void ing_rt_after_fork(ing_rt *rt);

/* A block, such as the memory of an array (mem.h): zeroed, 64-byte aligned, at least `bytes` long (never NULL, even
 * for 0). ING_MEMORY when there is none. Freed with the same `bytes`. */
ing_status ing_rt_alloc_array(size_t bytes, void **out);
void ing_rt_free_array(void *p, size_t bytes);

#endif
