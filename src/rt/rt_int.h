/* rt_int: what the files of src/rt share. A `run` is one launch, a `seat` is one thread
 * taking part in it, a `job` is one range task offered to the pool. All three live on
 * stacks; POOL3 says why that is safe. */
#ifndef ING_RT_INT_H
#define ING_RT_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "rt/rt.h"

/* ---- constants; docs/internals/runtime.md has the measurements behind them ------------ */

/* `cost` counts rough instructions. Measured: 0.09 to 0.20 ns each in scalar code, 0.02 to
 * 0.03 ns vectorised. 0.25 ns is on the high side: memory is slower than the benchmark. */
#define UNITS_PER_US      4000u
/* The interpreter against native code; a guess, only scales the estimate. */
#define INTERP_SLOWDOWN   64u
/* Below this estimate a range task stays on the calling thread. Sharing with a spinning
 * worker pays from 6 us on, with a sleeping one (20 to 55 us to wake) from somewhere
 * between 50 and 110 us; a wrong choice costs about 4 us, the call that wakes it. */
#define INLINE_UNITS      (50u * UNITS_PER_US)
/* Above this estimate the host's lock is dropped. Dropping and taking the GIL costs 40 ns
 * alone, 26 to 104 us a time when another thread computes in Python (CPython 3.11). */
#define RELEASE_UNITS     (20u * UNITS_PER_US)
#define RELEASE_NS        20000u
/* The least work handed out at once, as long as there is plenty: taking a piece costs 18 to
 * 76 ns, and calling the task for it some 50 ns, so 40 us keeps that under 0.3 %, and under
 * 6 % when vectorised code beats the estimate twenty times over. */
#define PIECE_UNITS       (40u * UNITS_PER_US)
#define PIECE_NS          40000u
/* Pieces per thread wanted for balance, as long as each has PIECE_MIN_UNITS of work; and
 * at most, when only a measurement of the first iterations says how long one takes. */
#define PIECES_PER_THREAD 8u
#define PIECES_MOST       256u
#define PIECE_MIN_UNITS   (2u * UNITS_PER_US)
/* A thread takes one in so many of the pieces that are left where it looks, and at most
 * PIECES_AT_ONCE: then those 6 % are paid at the end of the loop only, and a thread that
 * comes late, or meets heavier iterations, finds work left. The second number is for loops
 * whose iterations nobody can compare. The third also bounds how long code without polls
 * goes on after a cancel. */
#define SHARE_EVEN        2u
#define SHARE_UNEVEN      8u
#define PIECES_AT_ONCE    32u
/* Pieces of a job, so that two halves of a word hold a range of them; and parts that they
 * are cut into, one for each thread up to here. */
#define PIECES_LIMIT      ((uint64_t)1 << 30)
#define PARTS_MAX         16u
/* Pieces of at least so many iterations begin at multiples of it. */
#define EDGE_ITERS        64u
/* A task's threads get copies of the arrays that it tallies (tally.c) when those take at most
 * so many bytes, and when each thread has so many iterations for each integer of a copy; a
 * copy itself and the argument words count for some more. Against atomics, at random places, one thread and two:
 * 1.2 to 4 times as fast at 4 iterations, 3 to 5 times at 16; 1 MiB is where a second thread
 * begins to gain less, since the copies share a cache. */
#define TALLY_BYTES       (1u << 20)
#define TALLY_TRIPS       4u
#define TALLY_SETUP       64u
/* Copies of floats are for stretches of the loop, as many as it has updates for SECTION_UPDATES times the
 * copies' numbers, up to SECTIONS_MOST; below SECTIONS_LEAST there are none. 3 passes over a copy
 * for each: sums of 1,000 rows of 800 f64 lose 4 %. Never by the number of threads (R23). */
#define SECTION_UPDATES   8u
#define SECTIONS_MOST     32u
#define SECTIONS_LEAST    4u
/* Partial results of so many words are kept on the stack: those of small launches. */
#define FEW_PARTIALS      64u
/* A task whose cost nobody knows runs on the calling thread for this long first. */
#define PROBE_NS          10000u
/* A worker without work, and a launcher waiting for workers, spins this long, then
 * sleeps. As long as a wake-up takes on a guest whose other CPU is idle (60 to 130 us), so
 * that spinning never costs more than twice the best choice. A worker that has just worked
 * for long spins for a SPIN_PART-th of that, up to SPIN_MOST_NS: a kernel that went through
 * much memory leaves the caller's caches cold, and a Python loop then takes 15 to 90 us to
 * its next launch. */
#ifndef SPIN_NS
#define SPIN_NS      100000u
#define SPIN_PART    8u
#define SPIN_MOST_NS 200000u
#endif
/* R24: how often the host is asked about signals. */
#define SIGNALS_NS   50000000u
/* Fuel starts small and grows with each poll until polls are this far apart, so that a
 * back edge worth a millisecond is noticed as soon as one worth a nanosecond. */
#define FUEL_START   64
#define POLL_NS      500000u
#define FUEL_GROWTH  8
#define THREADS_MAX  1024u
#define WORKER_STACK ((size_t)8 << 20)

/* ---- floating-point control (R23: FTZ/DAZ on exactly when asked for) ------------------- */

typedef uint64_t fp_state;

#if defined(__x86_64__)
#define FP_FLUSH ((fp_state)0x8040) /* FTZ and DAZ of MXCSR */
#define FP_FLAGS ((fp_state)0x003f) /* sticky exception flags */
static inline fp_state fp_get(void) {
    return __builtin_ia32_stmxcsr();
}
static inline void fp_set(fp_state s) {
    __builtin_ia32_ldmxcsr((unsigned)s);
}
#elif defined(__aarch64__)
#define FP_FLUSH ((fp_state)((1u << 24) | (1u << 19))) /* FZ and FZ16 of FPCR */
#define FP_FLAGS ((fp_state)0)
static inline fp_state fp_get(void) {
    fp_state s;
    __asm__ volatile("mrs %0, fpcr" : "=r"(s));
    return s;
}
static inline void fp_set(fp_state s) {
    __asm__ volatile("msr fpcr, %0" : : "r"(s));
}
#else
#define FP_FLUSH ((fp_state)0)
#define FP_FLAGS ((fp_state)0)
static inline fp_state fp_get(void) {
    return 0;
}
static inline void fp_set(fp_state s) {
    (void)s;
}
#endif

static inline void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- one launch ---------------------------------------------------------------------- */

enum { STOP_NO, STOP_CANCEL, STOP_ERROR }; /* run.stop; the first change wins */

typedef struct output output; /* output.c */

typedef struct run {
    ing_rt *rt; /* NULL: no pool */
    ing_rt_launch *launch;
    atomic_uint stop;
    _Atomic(output *) out;     /* NULL until something is printed */
    fp_state fp_host, fp_task; /* before the launch, while tasks run */
    /* The rest belongs to the launching thread. */
    uint64_t units;     /* estimated work so far, saturating */
    uint64_t first_ns;  /* when the clock was first read, 0 = not yet */
    uint64_t next_ns;   /* when the host is asked about signals again */
    struct job *probed; /* runs here to see how long it takes; not offered yet */
    uint64_t probe_ns;  /* when that began */
    void *token;        /* of host->release */
    bool released;
} run;

/* One thread of a launch. `ctx` is what native code sees; ctx.owner points back here.
 * The error slot is private, so two errors never mix; the first to report is copied. */
/* Scratch of a seat, when code asks for it: the first piece, and where an endless loop is taken
 * for one. */
#define SCRATCH_MIN 4096u
#define SCRATCH_MAX (UINT64_C(1) << 40)

typedef struct seat {
    ing_ctx ctx;
    ing_error_slot error;
    run *run;
    const ing_rt_task *task; /* that it calls, for its prints */
    int64_t fuel;            /* the last refill */
    uint64_t poll_ns;        /* clock at the last poll, 0 = none yet */
    uint8_t *grown;          /* scratch that outgrew the launch's, NULL: none */
    uint32_t number;         /* the launcher is 0, a worker has its own */
    bool launcher;
} seat;

void ing_rt_seat_init(seat *s, run *r, uint32_t number, bool launcher);
static inline void ing_rt_seat_fini(seat *s) {
    if (__builtin_expect(s->grown != NULL, 0)) ing_free(s->grown);
}
/* Calls the task over [begin, end) counted from the loop's `base`; false = stop. */
bool ing_rt_seat_call(seat *s, const ing_rt_task *t, int64_t begin, int64_t end,
                      int64_t base);
bool ing_rt_stop(run *r, unsigned why); /* true: this call was the first */
/* The launching thread, now and then: releases the host's lock, asks about signals. */
void ing_rt_tick(run *r, uint64_t now);
/* Around code of the host's: takes its lock if the launch has released it, and releases it
 * again. Launching thread only. */
void ing_rt_host_enter(const run *r);
void ing_rt_host_leave(run *r);

/* ---- copies of arrays (tally.c) ------------------------------------------------------------ */

/* Would copies of the task's tallies pay in a loop so long, on so many threads? */
bool ing_rt_tally_pays(const ing_rt_task *t, const uint64_t *args, uint64_t trips,
                       uint32_t threads);
/* The seat updates copies from here on, if there is memory for them; else the arrays. */
void ing_rt_tally_open(seat *s, const ing_rt_task *t);
/* Puts its copies, if any, together with the arrays. */
void ing_rt_tally_close(seat *s, const ing_rt_task *t);

/* Copies of floats, for stretches of a loop. The total of those that are done, from the first on, is kept
 * apart, and the arrays get it at the end. */
typedef struct sections {
    const ing_rt_task *task;
    const uint64_t *args; /* of the launch */
    uint64_t length;      /* iterations of each but the last */
    uint32_t n, next;     /* how many; the one whose turn it is to be added */
    pthread_mutex_t lock;
    uint64_t *total;               /* blocks: words and copies, as a seat has */
    uint64_t *done[SECTIONS_MOST]; /* of later ones */
    uint64_t *spare[SECTIONS_MOST + 1];
    uint32_t n_spare;
} sections;

/* Whether copies pay in a loop so long, and how it is cut then. */
bool ing_rt_sections_pay(sections *x, const ing_rt_task *t, const uint64_t *args,
                         uint64_t trips);
/* The seat begins one; false: no memory. */
bool ing_rt_section_open(sections *x, seat *s);
/* It is done, or has stopped. */
void ing_rt_section_close(sections *x, seat *s, uint64_t number);
/* When nobody is at work: the arrays get what there is. */
void ing_rt_sections_end(sections *x);

/* ---- what is printed (output.c) ---------------------------------------------------------- */

void ing_rt_print(ing_ctx *ctx, const ing_printed *p); /* ing_ctx.print */
bool ing_rt_output_wanted(run *r);                     /* somebody waits for room */
/* Launching thread: hands what there is to the host. */
void ing_rt_output_drain(run *r);
void ing_rt_output_close(run *r); /* what comes later is dropped */
void ing_rt_output_fini(run *r);  /* when nobody runs any more */
void ing_rt_wake_launcher(
    ing_rt *rt); /* pool.c: those that wait for workers look again */

/* ---- one range task, or one fork, on the pool -------------------------------------------------------- */

/* Pieces [next, end), as next << 32 | end: a thread takes from the front of its own part
 * and, once that is empty, from the back of another's. So a thread goes over the same
 * memory in one loop after the other, and few takes meet. */
typedef struct part {
    _Alignas(64) atomic_uint_fast64_t left;
} part;

typedef struct job {
    run *run;
    const ing_rt_task *task;
    const ing_rt_fork *fork; /* or lists of tasks, one for each iteration */
    int64_t base;            /* start of the loop: chunks count from here */
    uint64_t first, trips;   /* iterations [first, trips) from base are to be shared */
    uint64_t grain, pieces;  /* iterations handed out at once, and how many hand-outs */
    uint64_t skip;           /* multiples of grain that lie before `first` */
    uint32_t threads;        /* participants at most, the launcher included */
    uint32_t n_parts;        /* of `parts`, 0 = not cut yet */
    uint32_t share;          /* one in so many pieces of a part is taken at once */
    uint64_t *partials;      /* of a reduction, NULL = none */
    bool tallies;            /* each thread has copies of its own (tally.c) */
    sections *sections;      /* each piece has, NULL: none */
    bool probe;              /* cost unknown: share only what proves long */
    bool listed;             /* in the pool's list; launcher only */
    uint32_t generation; /* of the pool when listed (0: never); differs after fork */
    int cpu;             /* where the launcher ran when listing, -1 = unknown */
    uint32_t room;       /* workers that may still join; under the pool's lock */
    struct job *prev, *next;
    part parts[PARTS_MAX];
    _Alignas(64) atomic_uint inside; /* workers between join and leave */
    atomic_uint worked;              /* of them, those that got pieces */
} job;

static inline uint64_t part_pack(uint64_t next, uint64_t end) {
    return next << 32 | end;
}

static inline uint64_t part_len(uint64_t left) {
    return (left & UINT32_MAX) - (left >> 32);
}

/* pool.c: runs the job to its end on this thread and on workers. */
void ing_rt_job_run(job *j, seat *s);
void ing_rt_job_list(job *j); /* offers it to the workers */
/* run.c: whether a part has pieces left. */
bool ing_rt_job_has_pieces(job *j);
/* run.c: runs the first iterations; true when the rest was offered. */
bool ing_rt_job_probe(job *j, seat *s);
/* run.c: pieces by one thread until none is left or the launch stops. */
void ing_rt_job_work(job *j, seat *s);

typedef struct worker {
    ing_rt *rt;
    pthread_t thread;
    uint32_t number;
} worker;

struct ing_rt {
    uint32_t threads; /* participants at most, the launching thread included */
    pthread_mutex_t lock;
    job *head, *tail;       /* jobs that want workers, oldest first; under lock */
    uint32_t started;       /* workers; under lock */
    pid_t pid;              /* whose workers they are; under lock */
    atomic_uint generation; /* bumped by fork */
    atomic_bool quit;
    _Alignas(64) atomic_uint work_seq; /* futex: bumped when a job is listed */
    atomic_uint sleepers;
    _Alignas(64)
        atomic_uint done_seq; /* futex: bumped when a job loses its last worker */
    atomic_uint waiters;
    worker workers[];
};

uint32_t ing_rt_default_threads(void);

#endif
