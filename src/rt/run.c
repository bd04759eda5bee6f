/* Runs one launch: estimates each task, runs it inline when small, cuts it into pieces
 * when large, and watches for errors and signals. Called by src/py for every kernel
 * call, so the path of a small task takes no lock, no allocation and no system call.
 * Must never call the host while holding a lock, nor run on after a stop. */
#include "rt/rt_int.h"

#include <string.h>

/* ---- stopping, signals, polls ----------------------------------------------------------- */

bool ing_rt_stop(run *r, unsigned why) {
    unsigned no = STOP_NO;
    return atomic_compare_exchange_strong(&r->stop, &no, why);
}

static bool stopped(run *r) {
    return atomic_load_explicit(&r->stop, memory_order_relaxed) != STOP_NO;
}

static void release_host(run *r) {
    const ing_rt_host *h = r->launch->host;
    if (r->released || !h) return;
    r->released = true;
    if (h->release) r->token = h->release(h->self);
}

void ing_rt_host_enter(const run *r) {
    const ing_rt_host *h = r->launch->host;
    if (r->released && h->acquire) h->acquire(h->self, r->token);
}

void ing_rt_host_leave(run *r) {
    const ing_rt_host *h = r->launch->host;
    if (r->released && h->release) r->token = h->release(h->self);
}

static void offer_probed(job *j, uint64_t ns);

void ing_rt_tick(run *r, uint64_t now) {
    if (!r->first_ns) {
        r->first_ns = now;
        r->next_ns = now + SIGNALS_NS;
    }
    job *j = r->probed;
    if (j && now - r->probe_ns > PROBE_NS && j->first < j->trips) {
        r->probed = NULL;
        offer_probed(j, now - r->probe_ns);
    }
    if (!r->released && now - r->first_ns > RELEASE_NS) release_host(r);
    if (ing_rt_output_wanted(r)) ing_rt_output_drain(r);
    if (now < r->next_ns) return;
    ing_rt_output_drain(r); /* a long kernel shows what it prints while it runs */
    const ing_rt_host *h = r->launch->host;
    if (h && h->signals) {
        /* A handler may run any code of the user's: give it its own rounding back. */
        fp_set(r->fp_host);
        ing_rt_host_enter(r);
        int cancel = h->signals(h->self);
        ing_rt_host_leave(r);
        fp_set(r->fp_task);
        if (cancel) ing_rt_stop(r, STOP_CANCEL);
    }
    r->next_ns = ing_os_now_ns() + SIGNALS_NS;
}

/* Fuel for the next stretch: what would have taken POLL_NS at the speed of the last. */
static int64_t refill(const seat *s, uint64_t now) {
    int64_t fuel = s->fuel;
    uint64_t took = now - s->poll_ns;
    if (!s->poll_ns || took < POLL_NS / FUEL_GROWTH)
        fuel *= FUEL_GROWTH;
    else if (took < POLL_NS / 2)
        fuel *= 2;
    else if (took > POLL_NS * 2)
        fuel = (int64_t)((uint64_t)fuel * POLL_NS / took);
    if (fuel < 1) return 1;
    return fuel > ING_ABI_FUEL ? ING_ABI_FUEL : fuel;
}

static int32_t poll_seat(ing_ctx *ctx) {
    seat *s = ctx->owner;
    uint64_t now = ing_os_now_ns();
    s->fuel = refill(s, now);
    s->poll_ns = now;
    ctx->fuel = s->fuel;
    if (s->launcher) ing_rt_tick(s->run, now);
    return stopped(s->run);
}

/* More scratch for this seat: at least twice as much as it had, so that a stack that grows one
 * entry at a time is copied few times. */
static int32_t room(ing_ctx *ctx, uint64_t bytes, int32_t grow) {
    seat *s = ctx->owner;
    uint64_t have = ctx->scratch_bytes;
    if (!grow && ctx->scratch) return 1;
    if (bytes > SCRATCH_MAX) return 1;
    uint64_t want = bytes > 2 * have ? bytes : 2 * have;
    if (want < SCRATCH_MIN) want = SCRATCH_MIN;
    uint8_t *p = ing_malloc(want);
    if (!p) return 1;
    if (have) memcpy(p, ctx->scratch, have);
    ing_free(s->grown);
    ctx->scratch = s->grown = p;
    ctx->scratch_bytes = want;
    __atomic_fetch_add(&s->run->launch->grown, want - have, __ATOMIC_RELAXED);
    return 0;
}

/* Details are set with the code, so they need no clearing. */
static void clear_error(ing_error_slot *e) {
    e->code = ING_ABI_OK;
    e->func = e->node = e->task = 0;
}

/* ---- a thread's part ---------------------------------------------------------------------- */

/* Member by member: as one literal gcc clears it with `rep stos`, which takes longer than
 * the rest of a small launch. `place` is set for each task. */
static inline void init_seat(seat *s, run *r, uint32_t number, bool launcher) {
    const ing_rt_launch *l = r->launch;
    ing_ctx *c = &s->ctx;
    c->args = l->args;
    c->buffer = l->buffer;
    c->rets = l->rets;
    c->error = &s->error;
    c->poll = poll_seat;
    c->fuel = FUEL_START;
    c->owner = s;
    c->print = ing_rt_print;
    c->key = l->key;
    c->stream = 0;
    c->draw = 0;
    c->partials = NULL;
    c->tallies = 0;
    c->scratch = l->scratch; /* slot 0's; a worker goes on to its own */
    c->slot = number;
    c->scratch_bytes = l->scratch ? l->scratch_bytes : 0;
    c->room = room;
    s->grown = NULL;
    clear_error(&s->error);
    s->run = r;
    s->fuel = FUEL_START;
    s->poll_ns = 0;
    s->number = number;
    s->launcher = launcher;
}

void ing_rt_seat_init(seat *s, run *r, uint32_t number, bool launcher) {
    init_seat(s, r, number, launcher);
}

/* A task stopped. The first reason of a launch is kept; a task that merely obeyed poll
 * finds the stop already there. */
static void report(seat *s, const ing_rt_task *t) {
    run *r = s->run;
    if (s->error.code == ING_ABI_OK) {
        if (stopped(r)) return;
        s->error.code = ING_RT_INTERNAL;
    }
    if (!ing_rt_stop(r, STOP_ERROR)) return;
    s->error.task = (uint32_t)(t - r->launch->tasks);
    r->launch->error = s->error;
}

static bool call_task(seat *s, const ing_rt_task *t, int64_t begin, int64_t end,
                      int64_t chunk) {
    s->task = t;
    s->ctx.place = t->info.place;
    int32_t rc = t->fn ? t->fn(&s->ctx, begin, end, chunk)
                       : t->interp(t->interp_self, &s->ctx, begin, end, chunk);
    if (__builtin_expect(rc == 0 && s->error.code == ING_ABI_OK, 1)) return true;
    report(s, t);
    return false;
}

bool ing_rt_seat_call(seat *s, const ing_rt_task *t, int64_t begin, int64_t end,
                      int64_t base) {
    uint64_t from = (uint64_t)begin - (uint64_t)base;
    return call_task(s, t, begin, end, (int64_t)(from >> t->info.chunk_shift));
}

/* ---- range tasks --------------------------------------------------------------------------- */

static int64_t at_offset(int64_t base, uint64_t iters) {
    return (int64_t)((uint64_t)base + iters);
}

static void run_section(job *j, seat *s, uint64_t k);

static void part_out(job *j) {
    uint64_t n = j->threads < j->pieces ? j->threads : j->pieces;
    j->n_parts = (uint32_t)(n < PARTS_MAX ? n : PARTS_MAX);
    for (uint64_t k = 0; k < j->n_parts; k++) {
        uint64_t from = j->pieces * k / j->n_parts;
        uint64_t to = j->pieces * (k + 1) / j->n_parts;
        atomic_init(&j->parts[k].left, part_pack(from, to));
    }
}

bool ing_rt_job_has_pieces(job *j) {
    for (uint32_t k = 0; k < j->n_parts; k++)
        if (part_len(atomic_load_explicit(&j->parts[k].left, memory_order_relaxed)))
            return true;
    return false;
}

/* Pieces [*first, *first + result) from the front or the back of a part, 0 = it is empty. */
static uint64_t take_from(const job *j, part *p, bool front, uint64_t *first) {
    uint64_t n, next, left = atomic_load_explicit(&p->left, memory_order_relaxed);
    do {
        uint64_t from = left >> 32, to = left & UINT32_MAX;
        if (from >= to) return 0;
        n = (to - from) / j->share;
        if (n > PIECES_AT_ONCE) n = PIECES_AT_ONCE;
        if (n < 1 || j->fork || j->sections) n = 1;
        *first = front ? from : to - n;
        next = front ? part_pack(from + n, to) : part_pack(from, to - n);
    } while (!atomic_compare_exchange_weak_explicit(
        &p->left, &left, next, memory_order_relaxed, memory_order_relaxed));
    return n;
}

/* Hands out the next pieces: of the thread's own part, then of the others. Returns how
 * many, 0 = none is left. */
static uint64_t take(job *j, const seat *s, uint64_t *first) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < j->n_parts && !n; k++) {
        part *p = &j->parts[(s->number + k) % j->n_parts];
        n = take_from(j, p, k == 0, first);
    }
    return n;
}

static bool open_section(job *j, seat *s) {
    if (ing_rt_section_open(j->sections, s)) return true;
    s->error.code = ING_ABI_MEMORY;
    report(s, j->task);
    return false;
}

void ing_rt_job_work(job *j, seat *s) {
    for (bool first = true;; first = false) {
        if (s->launcher) ing_rt_tick(j->run, ing_os_now_ns());
        if (stopped(j->run)) return;
        uint64_t piece, n = take(j, s, &piece);
        if (!n) return;
        if (first && !s->launcher)
            atomic_fetch_add_explicit(&j->worked, 1, memory_order_relaxed);
        if (j->fork) {
            run_section(j, s, piece);
            continue;
        }
        uint64_t b = (j->skip + piece) * j->grain, most = n * j->grain;
        uint64_t e = j->trips - b <= most ? j->trips : b + most;
        if (b < j->first) b = j->first;
        if (j->sections && !open_section(j, s)) return;
        bool ok = ing_rt_seat_call(s, j->task, at_offset(j->base, b),
                                   at_offset(j->base, e), j->base);
        if (j->sections) ing_rt_section_close(j->sections, s, piece);
        if (!ok) return;
    }
}

/* R23: whole chunks or rows, counted from the loop's start; else edges where lines of memory have
 * theirs, when iterations are that small. */
static uint64_t round_grain(uint64_t grain, uint64_t chunk) {
    if (chunk == 1 && grain >= EDGE_ITERS) chunk = EDGE_ITERS;
    return grain < chunk ? chunk : grain - grain % chunk;
}

/* Iterations of a block go side by side in about a quarter of the time that they take one by one, so
 * threads may stay idle for whole ones, up to three of four. */
static uint64_t chunk_of(const job *j) {
    const ing_ir_task *t = &j->task->info;
    if (t->block && j->trips >= (uint64_t)t->block * j->threads / 4) return t->block;
    return t->row ? t->row : (uint64_t)1 << t->chunk_shift;
}

/* Cuts the rest of the loop, from j->first on, into pieces: `full` iterations take about
 * as long as a piece should, fewer than `least` would not pay for handing them out. */
static void cut(job *j, uint64_t full, uint64_t least) {
    uint64_t grain = (j->trips - j->first) / ((uint64_t)j->threads * PIECES_PER_THREAD);
    if (grain > full) grain = full;
    if (grain < least) grain = least;
    if (grain < j->trips / PIECES_LIMIT + 1) grain = j->trips / PIECES_LIMIT + 1;
    j->grain = round_grain(grain, chunk_of(j));
    j->skip = j->first / j->grain;
    j->pieces = (j->trips - 1) / j->grain + 1 - j->skip;
    j->share = j->task->info.may_run_long ? SHARE_UNEVEN : SHARE_EVEN;
    part_out(j);
}

/* The probed job has run for `ns` on its first iterations (the last of them may still
 * be under way): time to share the rest. The first iterations may have met page faults
 * or lost the CPU, so `least` bounds how many pieces a wrong measurement can make. */
static void offer_probed(job *j, uint64_t ns) {
    uint64_t each = ns / j->first;
    uint64_t least = (j->trips - j->first) / ((uint64_t)j->threads * PIECES_MOST);
    cut(j, PIECE_NS / (each ? each : 1), least);
    ing_rt_job_list(j);
}

/* Iterations (chunks, of a reduction) here in steps of 1, 1, 2, 4, ... until the task has proved long. A single
 * long step is noticed by its polls (ing_rt_tick), else when it returns. */
bool ing_rt_job_probe(job *j, seat *s) {
    run *r = j->run;
    uint64_t start = ing_os_now_ns(), now = start;
    r->probed = j;
    r->probe_ns = start;
    bool ok = true;
    while (ok && !j->listed && j->first < j->trips && now - start < PROBE_NS) {
        uint64_t b = j->first, step = b ? b : chunk_of(j);
        j->first = step < j->trips - b ? b + step : j->trips;
        ok = ing_rt_seat_call(s, j->task, at_offset(j->base, b),
                              at_offset(j->base, j->first), j->base);
        now = ing_os_now_ns();
    }
    r->probed = NULL;
    if (!ok || j->first == j->trips || stopped(r)) return false;
    if (!j->listed) offer_probed(j, now - start);
    return true;
}

static uint64_t saturating_mul(uint64_t a, uint64_t b) {
    uint64_t out;
    return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

static int64_t bound(const ing_rt_launch *l, const ing_ir_bound *b) {
    int64_t v = b->value;
    if (b->at == ING_IR_BOUND_BUFFER) memcpy(&v, l->buffer + b->offset, sizeof v);
    if (b->at == ING_IR_BOUND_WORD) v = (int64_t)l->args[b->offset];
    return v;
}

static uint32_t usable_threads(const run *r) {
    uint32_t n = r->rt ? r->rt->threads : 1, most = r->launch->max_threads;
    return most && most < n ? most : n;
}

/* Notes the estimate of the next task; the host's lock goes once the sum is worth it. The
 * launching thread's business: a worker has tasks of its own only in a fork. */
static void expect_work(run *r, const seat *s, const ing_rt_task *t, uint64_t units) {
    if (!s->launcher) return;
    if (__builtin_add_overflow(r->units, units, &r->units)) r->units = UINT64_MAX;
    if (t->info.may_run_long || r->units > RELEASE_UNITS) release_host(r);
}

/* Kept out of line: the job's alignment would burden every small launch. */
__attribute__((noinline)) static void run_long(run *r, seat *s, const ing_rt_task *t,
                                               int64_t base, uint64_t trips,
                                               uint64_t each) {
    job j = {.run = r,
             .task = t,
             .base = base,
             .trips = trips,
             .partials = s->ctx.partials,
             .tallies = s->ctx.tallies != 0,
             .threads = usable_threads(r)};
    j.probe = t->info.may_run_long && j.threads > 1 && s->launcher;
    if (!j.probe) cut(&j, PIECE_UNITS / each, PIECE_MIN_UNITS / each);
    ing_rt_job_run(&j, s);
    const ing_rt_order *o = r->launch->order;
    if (!o || !o->times) return;
    uint32_t threads = 1 + atomic_load_explicit(&j.worked, memory_order_relaxed);
    ing_rt_time *time = &o->times[t - r->launch->tasks];
    if (time->threads < threads) time->threads = threads;
}

static bool stays_here(const ing_rt_task *t, uint64_t trips, uint64_t units) {
    return units < INLINE_UNITS && (!t->info.may_run_long || trips == 1);
}

static bool sums_floats(const ing_rt_task *t) {
    return t->info.n_tallies && ing_dtype_is_float((ing_dtype)t->info.tallies[0].dtype);
}

static void run_sections(run *r, seat *s, sections *x, int64_t base, uint64_t trips);

static void run_pieces(run *r, seat *s, const ing_rt_task *t, uint64_t each,
                       int64_t begin, int64_t end) {
    uint64_t trips = (uint64_t)end - (uint64_t)begin;
    uint64_t units = saturating_mul(trips, each);
    expect_work(r, s, t, units);
    sections x;
    if (sums_floats(t) && ing_rt_sections_pay(&x, t, r->launch->args, trips)) {
        run_sections(r, s, &x, begin, trips);
        return;
    }
    if (stays_here(t, trips, units)) {
        ing_rt_seat_call(s, t, begin, end, begin);
        return;
    }
    run_long(r, s, t, begin, trips, each);
}

/* Each piece is a section (tally.c), whoever runs it. */
__attribute__((noinline)) static void run_sections(run *r, seat *s, sections *x,
                                                   int64_t base, uint64_t trips) {
    job j = {.run = r,
             .task = x->task,
             .base = base,
             .trips = trips,
             .grain = x->length,
             .pieces = x->n,
             .share = SHARE_EVEN,
             .partials = s->ctx.partials,
             .sections = x,
             .threads = usable_threads(r)};
    part_out(&j);
    ing_rt_job_run(&j, s);
    ing_rt_sections_end(x);
}

/* A task with partial results: room for them, the loop, then one call that combines. */
static void run_reduction(run *r, seat *s, const ing_rt_task *t, uint64_t each,
                          int64_t begin, int64_t end) {
    uint64_t few[FEW_PARTIALS], *room = few;
    uint64_t trips = (uint64_t)end - (uint64_t)begin;
    uint64_t chunks = ((trips - 1) >> t->info.chunk_shift) + 1;
    if (chunks > FEW_PARTIALS / t->info.partials) {
        size_t bytes = 0;
        bool fits = !__builtin_mul_overflow(chunks, 8ull * t->info.partials, &bytes);
        room = fits ? ing_malloc(bytes) : NULL;
    }
    if (!room) {
        s->error.code = ING_ABI_MEMORY;
        report(s, t);
        return;
    }
    s->ctx.partials = room;
    run_pieces(r, s, t, each, begin, end);
    if (!stopped(r)) call_task(s, t, 0, (int64_t)chunks, -1);
    s->ctx.partials = NULL;
    if (room != few) ing_free(room);
}

static bool copies_pay(const run *r, const ing_rt_task *t, uint64_t each,
                       uint64_t trips) {
    bool here = stays_here(t, trips, saturating_mul(trips, each));
    return ing_rt_tally_pays(t, r->launch->args, trips, here ? 1 : usable_threads(r));
}

/* A task with partial results or tallies. What was tallied goes to the arrays however the loop
 * ends: they hold the updates of the iterations that ran. Kept out of line, as run_long is. */
__attribute__((noinline)) static void run_gathering(run *r, seat *s,
                                                    const ing_rt_task *t, uint64_t each,
                                                    int64_t begin, int64_t end) {
    bool pays = t->info.n_tallies && !sums_floats(t) &&
                copies_pay(r, t, each, (uint64_t)end - (uint64_t)begin);
    if (pays) ing_rt_tally_open(s, t);
    if (t->info.partials)
        run_reduction(r, s, t, each, begin, end);
    else
        run_pieces(r, s, t, each, begin, end);
    if (pays) ing_rt_tally_close(s, t);
}

static void run_range(run *r, seat *s, const ing_rt_task *t, uint64_t each) {
    int64_t begin = bound(r->launch, &t->info.begin);
    int64_t end = bound(r->launch, &t->info.end);
    if (begin >= end) return;
    if (__builtin_expect((t->info.partials | t->info.n_tallies) != 0, 0)) {
        run_gathering(r, s, t, each, begin, end);
    } else {
        run_pieces(r, s, t, each, begin, end);
    }
}

static void run_task(run *r, seat *s, const ing_rt_task *t) {
    uint64_t each = t->info.cost ? t->info.cost : 1;
    if (!t->fn) each *= INTERP_SLOWDOWN;
    if (t->info.kind == ING_IR_TASK_RANGE) {
        run_range(r, s, t, each);
    } else {
        expect_work(r, s, t, each);
        ing_rt_seat_call(s, t, 0, 1, 0);
    }
}

/* ---- orders of their own -------------------------------------------------------------------- */

/* Task i, begun at `start`; returns when it ended. */
static uint64_t run_numbered(run *r, seat *s, uint32_t i, uint64_t start) {
    ing_rt_time *times = r->launch->order->times;
    run_task(r, s, &r->launch->tasks[i]);
    uint64_t end = ing_os_now_ns();
    if (!times) return end;
    times[i].runs++;
    times[i].ns += end - start;
    return end;
}

static void run_section(job *j, seat *s, uint64_t k) {
    const ing_rt_fork *f = j->fork;
    uint64_t now = ing_os_now_ns();
    for (uint32_t i = f->starts[k]; i < f->starts[k + 1] && !stopped(j->run); i++)
        now = run_numbered(j->run, s, f->tasks[i], now);
}

/* Is the fork worth waking others? Bounds that tasks of its own compute are unknown. */
static bool fork_pays(const run *r, const ing_rt_fork *f) {
    const ing_rt_launch *l = r->launch;
    uint64_t sum = 0;
    for (uint32_t i = f->starts[0]; i < f->starts[f->n]; i++) {
        const ing_rt_task *t = &l->tasks[f->tasks[i]];
        uint64_t trips = 1, each = t->info.cost ? t->info.cost : 1;
        bool unknown = t->info.begin.at == ING_IR_BOUND_BUFFER ||
                       t->info.end.at == ING_IR_BOUND_BUFFER;
        if (t->info.may_run_long || (t->info.kind == ING_IR_TASK_RANGE && unknown))
            return true;
        int64_t begin = bound(l, &t->info.begin);
        int64_t end = bound(l, &t->info.end);
        if (t->info.kind == ING_IR_TASK_RANGE)
            trips = begin < end ? (uint64_t)end - (uint64_t)begin : 0;
        if (!t->fn) each *= INTERP_SLOWDOWN;
        if (__builtin_add_overflow(sum, saturating_mul(trips, each), &sum)) return true;
    }
    return sum >= INLINE_UNITS;
}

__attribute__((noinline)) static void run_fork(run *r, seat *s, const ing_rt_fork *f) {
    job j = {.run = r,
             .fork = f,
             .trips = f->n,
             .grain = 1,
             .share = 1,
             .pieces = f->n,
             .threads = fork_pays(r, f) ? usable_threads(r) : 1};
    if (j.threads > 1 && f->n > 1) release_host(r);
    part_out(&j);
    ing_rt_job_run(&j, s);
}

/* Tasks may be small and their number endless: the clock is read after each. */
static void run_ordered(run *r, seat *s) {
    const ing_rt_order *o = r->launch->order;
    uint64_t now = ing_os_now_ns();
    while (!stopped(r)) {
        ing_rt_fork f;
        uint32_t i = o->next(o->self, &f);
        if (i == ING_RT_DONE) return;
        if (i == ING_RT_FORKED) run_fork(r, s, &f);
        now = i < ING_RT_FORKED ? run_numbered(r, s, i, now) : ing_os_now_ns();
        ing_rt_tick(r, now);
    }
}

/* ---- the launch -------------------------------------------------------------------------------- */

/* Member by member, as a seat. */
static inline void init_run(run *r, ing_rt *rt, ing_rt_launch *l) {
    r->rt = rt;
    r->launch = l;
    atomic_init(&r->stop, STOP_NO);
    atomic_init(&r->out, NULL);
    r->fp_host = fp_get();
    r->fp_task = (r->fp_host & ~FP_FLUSH) | (l->flush_denormals ? FP_FLUSH : 0);
    r->units = 0;
    r->first_ns = 0;
    r->next_ns = 0;
    r->probed = NULL;
    r->probe_ns = 0;
    r->token = NULL;
    r->released = false;
}

int32_t ing_rt_run(ing_rt *rt, ing_rt_launch *l) {
    run r;
    init_run(&r, rt, l);
    clear_error(&l->error);
    l->ran_inline = true;
    seat s;
    init_seat(&s, &r, 0, true);
    if (r.fp_task != r.fp_host) fp_set(r.fp_task);
    if (l->order) run_ordered(&r, &s);
    for (uint32_t i = 0; !l->order && i < l->n_tasks && !stopped(&r); i++) {
        run_task(&r, &s, &l->tasks[i]);
    }
    ing_rt_seat_fini(&s);
    if (r.fp_task != r.fp_host) fp_set(r.fp_host);
    if (r.released) {
        ing_rt_host_enter(&r);
        r.released = false;
    }
    if (__builtin_expect(atomic_load_explicit(&r.out, memory_order_relaxed) != NULL,
                         0)) {
        ing_rt_output_drain(&r);
        ing_rt_output_fini(&r);
    }
    if (atomic_load_explicit(&r.stop, memory_order_relaxed) == STOP_CANCEL) {
        l->error.code = ING_ABI_CANCELLED;
    }
    return l->error.code;
}
