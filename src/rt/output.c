/* What kernels print: records wait in a bounded buffer of the launch until the launching
 * thread hands them to the host, in the order in which they came. Called by tasks through
 * ing_ctx.print, and by run.c and pool.c on the launching thread. Must never call the host
 * from another thread or under the lock, and must never lose a record of a launch that
 * goes on.
 *
 *  OUTPUT1 The buffer is made by the first print of a launch and published by one exchange; a
 *     launch that prints nothing pays one look at a NULL pointer.
 *  OUTPUT2 A worker that finds the buffer full says so (`wanted`), wakes the launching thread in
 *     case it waits for workers, and sleeps. The launching thread looks at `wanted` between
 *     pieces, at polls, and while it waits; POOL3 makes it wait until all workers
 *     have left, so nobody sleeps for ever.
 *  OUTPUT3 After the host refused (an exception in sys.stdout), or when the launching thread
 *     ends, the buffer is closed: what comes later is dropped, nobody waits.
 *  OUTPUT4 A fault (code below ING_ABI_USER) is kept once per place and launch. */
#include "rt/rt_int.h"

#include <string.h>

/* Some thousand lines; far more than a person reads, little enough to allocate per launch. */
#define OUTPUT_BYTES ((size_t)256 << 10)
#define MAX_FAULTS   64

typedef struct fault {
    uint64_t task;
    uint32_t code, func, node;
    uint64_t what; /* its first word */
} fault;

struct output {
    pthread_mutex_t lock;
    pthread_cond_t drained;
    uint8_t *at; /* OUTPUT_BYTES, NULL while the host has it */
    size_t len;
    atomic_bool wanted;
    bool closed;
    uint32_t n_faults;
    fault faults[MAX_FAULTS];
};

_Static_assert(sizeof(ing_rt_printed) + 8 * ING_ABI_MAX_PRINT < OUTPUT_BYTES,
               "a record fits the buffer");

static void output_free(output *o) {
    if (!o) return;
    pthread_cond_destroy(&o->drained);
    pthread_mutex_destroy(&o->lock);
    ing_free(o->at);
    ing_free(o);
}

/* OUTPUT1 */
static output *output_of(run *r) {
    output *o = atomic_load_explicit(&r->out, memory_order_acquire), *other = NULL;
    if (o) return o;
    o = ing_calloc(1, sizeof *o);
    if (!o) return NULL;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->drained, NULL);
    if (atomic_compare_exchange_strong(&r->out, &other, o)) return o;
    output_free(o);
    return other;
}

/* OUTPUT4; under the lock. True: new here. */
static bool fault_is_new(output *o, uint64_t task, const ing_printed *p) {
    fault f = {task, p->code, p->func, p->node, p->n ? p->words[0] : 0};
    for (uint32_t i = 0; i < o->n_faults; i++) {
        const fault *x = &o->faults[i];
        if (x->task == f.task && x->code == f.code && x->func == f.func &&
            x->node == f.node && x->what == f.what)
            return false;
    }
    if (o->n_faults == MAX_FAULTS) return false;
    o->faults[o->n_faults++] = f;
    return true;
}

/* Makes room for n bytes; under the lock, which it may give up meanwhile. False: drop the
 * record (`*lost` when memory is the reason). */
static bool make_room(seat *s, output *o, size_t n, bool *lost) {
    while (!o->closed) {
        if (!o->at) {
            o->at = ing_malloc(OUTPUT_BYTES);
            o->len = 0;
            *lost = !o->at;
            if (*lost) return false;
        }
        if (OUTPUT_BYTES - o->len >= n) return true;
        if (s->launcher) {
            pthread_mutex_unlock(&o->lock);
            ing_rt_output_drain(s->run);
            pthread_mutex_lock(&o->lock);
        } else { /* OUTPUT2 */
            atomic_store(&o->wanted, true);
            ing_rt_wake_launcher(s->run->rt);
            pthread_cond_wait(&o->drained, &o->lock);
        }
    }
    return false;
}

void ing_rt_print(ing_ctx *ctx, const ing_printed *p) {
    seat *s = ctx->owner;
    if (!s->run->launch->sink) return;
    output *o = output_of(s->run);
    uint64_t task = (uint64_t)(s->task - s->run->launch->tasks);
    bool lost = !o;
    if (o) {
        size_t n = sizeof(ing_rt_printed) + 8 * (size_t)p->n;
        pthread_mutex_lock(&o->lock);
        bool wanted = p->code >= ING_ABI_USER || fault_is_new(o, task, p);
        if (wanted && make_room(s, o, n, &lost)) {
            ing_rt_printed head = {.task = task};
            memcpy(&head.p, p, sizeof *p);
            memcpy(o->at + o->len, &head, sizeof head);
            memcpy(o->at + o->len + sizeof head, p->words, 8 * (size_t)p->n);
            o->len += n;
        }
        pthread_mutex_unlock(&o->lock);
    }
    if (lost && s->error.code == ING_ABI_OK) s->error.code = ING_ABI_MEMORY;
}

bool ing_rt_output_wanted(run *r) {
    output *o = atomic_load_explicit(&r->out, memory_order_acquire);
    return o && atomic_load_explicit(&o->wanted, memory_order_relaxed);
}

void ing_rt_output_drain(run *r) {
    output *o = atomic_load_explicit(&r->out, memory_order_acquire);
    const ing_rt_sink *sink = r->launch->sink;
    if (!o || !sink) return;
    pthread_mutex_lock(&o->lock);
    uint8_t *at = o->closed ? NULL : o->at;
    size_t len = o->len;
    if (at && len) o->at = NULL;
    atomic_store(&o->wanted, false);
    pthread_cond_broadcast(&o->drained);
    pthread_mutex_unlock(&o->lock);
    if (!at || !len) return;
    fp_state task = fp_get(); /* the host's code gets its own rounding back */
    fp_set(r->fp_host);
    ing_rt_host_enter(r);
    int refused = sink->write(sink->self, at, len);
    ing_rt_host_leave(r);
    fp_set(task);
    ing_free(at);
    if (!refused) return;
    ing_rt_output_close(r);
    ing_rt_stop(r, STOP_CANCEL);
}

void ing_rt_output_close(run *r) {
    output *o = atomic_load_explicit(&r->out, memory_order_acquire);
    if (!o) return;
    pthread_mutex_lock(&o->lock);
    o->closed = true;
    pthread_cond_broadcast(&o->drained);
    pthread_mutex_unlock(&o->lock);
}

void ing_rt_output_fini(run *r) {
    output_free(atomic_load_explicit(&r->out, memory_order_acquire));
}
