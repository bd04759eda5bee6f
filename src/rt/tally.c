/* Copies of the arrays that a task tallies (src/pass/tally.c): each thread that takes part may
 * update copies of its own, plainly, and puts them together with the arrays when it is done.
 * Called by run.c for the launching thread and by pool.c for workers. Must never leave a copy
 * behind that was not put together: however a loop ends, the arrays hold the updates of the
 * iterations that ran.
 *
 *  SEAT1 A seat with copies has argument words of its own, which name them instead of the arrays;
 *     everything else in the words is as the launch has it. ctx.tallies says so to the code.
 *  SEAT2 Each seat decides for itself: one that gets no memory updates the arrays atomically, and
 *     since copies are put together atomically too, all of that may happen at once, as may
 *     other launches that update the same array.
 *  SEAT3 Only exact kinds are tallied so, and the result does not depend on who had which iteration
 *     (R23).
 *  SEAT4 Sums of floats have copies for sections of the loop, cut by its length and the sizes of the arrays
 *     alone. They are added in the order of the sections, whoever is done first, and the arrays get the
 *     total: neither threads nor grain change it. */
#include "ir/ir.h"
#include "rt/rt_int.h"

#include <string.h>

enum { LINE = 64 };

static uint64_t padded(uint64_t bytes) {
    return (bytes + LINE - 1) & ~(uint64_t)(LINE - 1);
}

/* Integers in the array, saturating. */
static uint64_t count_of(const ing_ir_tally *y, const uint64_t *args) {
    uint64_t n = y->width;
    for (uint32_t k = 1; k <= y->ndim; k++)
        if (__builtin_mul_overflow(n, args[y->word + k], &n)) return UINT64_MAX;
    return n;
}

static uint64_t bytes_of(const ing_ir_tally *y, const uint64_t *args) {
    return count_of(y, args) * ing_dtype_bytes((ing_dtype)y->dtype);
}

bool ing_rt_tally_pays(const ing_rt_task *t, const uint64_t *args, uint64_t trips,
                       uint32_t threads) {
    uint64_t count = TALLY_SETUP + t->n_words, bytes = 0;
    for (uint32_t k = 0; k < t->info.n_tallies; k++) {
        uint64_t n = count_of(&t->info.tallies[k], args);
        if (n > TALLY_BYTES) return false;
        count += n;
        bytes += bytes_of(&t->info.tallies[k], args);
    }
    return bytes <= TALLY_BYTES && count * TALLY_TRIPS * threads <= trips;
}

/* ---- integers of every type ------------------------------------------------------------------ */

/* `to` with `n` integers of `from`, one by one. Sums and products are made of unsigned words,
 * which wrap. */
#define COMBINE(T)                                                                     \
    static T updated_##T(uint8_t kind, T a, T b) {                                     \
        switch (kind) {                                                                \
        case ING_IR_ATOMIC_MUL: return (T)((uint64_t)a * (uint64_t)b);                 \
        case ING_IR_ATOMIC_MIN: return b < a ? b : a;                                  \
        case ING_IR_ATOMIC_MAX: return b > a ? b : a;                                  \
        case ING_IR_ATOMIC_AND: return (T)(a & b);                                     \
        case ING_IR_ATOMIC_OR: return (T)(a | b);                                      \
        case ING_IR_ATOMIC_XOR: return (T)(a ^ b);                                     \
        default: return (T)((uint64_t)a + (uint64_t)b);                                \
        }                                                                              \
    }                                                                                  \
    static void combine_##T(uint8_t kind, T *to, const T *from, uint64_t n,            \
                            T neutral) {                                               \
        for (uint64_t k = 0; k < n; k++) {                                             \
            if (from[k] == neutral) continue;                                          \
            T old = __atomic_load_n(&to[k], __ATOMIC_RELAXED);                         \
            while (!__atomic_compare_exchange_n(&to[k], &old,                          \
                                                updated_##T(kind, old, from[k]), true, \
                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { \
            }                                                                          \
        }                                                                              \
    }                                                                                  \
    static void fill_##T(T *to, uint64_t n, T neutral) {                               \
        for (uint64_t k = 0; k < n; k++) to[k] = neutral;                              \
    }

#define TYPES(X)         \
    X(ING_I8, int8_t)    \
    X(ING_U8, uint8_t)   \
    X(ING_I16, int16_t)  \
    X(ING_U16, uint16_t) \
    X(ING_I32, int32_t)  \
    X(ING_U32, uint32_t) \
    X(ING_I64, int64_t)  \
    X(ING_U64, uint64_t)

#define X(dtype, T) COMBINE(T)
TYPES(X)
#undef X

static void combine(const ing_ir_tally *y, void *to, const void *from, uint64_t n) {
    uint64_t neutral = ing_ir_neutral((ing_ir_atomic)y->kind, (ing_dtype)y->dtype);
    switch (y->dtype) {
#define X(dtype, T) \
    case dtype: combine_##T(y->kind, to, from, n, (T)neutral); break;
        TYPES(X)
#undef X
    default: break;
    }
}

/* A fresh copy is all zero. */
static void clear(const ing_ir_tally *y, void *to, uint64_t n);

static void fill(const ing_ir_tally *y, void *to, uint64_t n) {
    if (ing_dtype_is_float((ing_dtype)y->dtype)) {
        clear(y, to, n);
        return;
    }
    uint64_t neutral = ing_ir_neutral((ing_ir_atomic)y->kind, (ing_dtype)y->dtype);
    if (!neutral) return;
    switch (y->dtype) {
#define X(dtype, T) \
    case dtype: fill_##T(to, n, (T)neutral); break;
        TYPES(X)
#undef X
    default: break;
    }
}

/* ---- sums of floats ------------------------------------------------------------------------------ */

#define SUM(T)                                                                      \
    static void sum_##T(T *to, const T *from, uint64_t n) {                         \
        for (uint64_t k = 0; k < n; k++) to[k] += from[k];                          \
    }                                                                               \
    static void share_##T(T *to, const T *from, uint64_t n) {                       \
        for (uint64_t k = 0; k < n; k++) {                                          \
            T old, new;                                                             \
            __atomic_load(&to[k], &old, __ATOMIC_RELAXED);                          \
            do new = old + from[k];                                                 \
            while (!__atomic_compare_exchange(&to[k], &old, &new, true,             \
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
        }                                                                           \
    }                                                                               \
    static void clear_##T(T *to, uint64_t n) {                                      \
        for (uint64_t k = 0; k < n; k++)                                            \
            to[k] = (T) - 0.0; /* which changes nothing */                          \
    }
SUM(float)
SUM(double)

static void clear(const ing_ir_tally *y, void *to, uint64_t n) {
    if (y->dtype == ING_F32)
        clear_float(to, n);
    else
        clear_double(to, n);
}

/* ---- a seat's copies --------------------------------------------------------------------------- */

/* One block: the argument words, then the copies, each on lines of its own. */
static size_t block_bytes(const ing_rt_task *t, const uint64_t *args) {
    uint64_t bytes = padded(8ull * t->n_words);
    for (uint32_t k = 0; k < t->info.n_tallies; k++)
        bytes += padded(bytes_of(&t->info.tallies[k], args));
    return bytes;
}

/* A block whose copies are neutral; NULL: no memory. */
static uint64_t *new_block(const ing_rt_task *t, const uint64_t *args) {
    void *block;
    if (ing_rt_alloc_array(block_bytes(t, args), &block) != ING_OK) return NULL;
    uint64_t *words = block;
    memcpy(words, args, 8ull * t->n_words);
    uint8_t *at = (uint8_t *)block + padded(8ull * t->n_words);
    for (uint32_t k = 0; k < t->info.n_tallies; k++) {
        const ing_ir_tally *y = &t->info.tallies[k];
        words[y->word] = (uint64_t)(uintptr_t)at - y->at; /* code adds it */
        fill(y, at, count_of(y, args));
        at += padded(bytes_of(y, args));
    }
    return words;
}

void ing_rt_tally_open(seat *s, const ing_rt_task *t) {
    uint64_t *words = new_block(t, s->run->launch->args);
    if (!words) return; /* SEAT2 */
    s->ctx.args = words;
    s->ctx.tallies = 1;
}

void ing_rt_tally_close(seat *s, const ing_rt_task *t) {
    uint64_t *args = s->run->launch->args, *words = s->ctx.args;
    if (!s->ctx.tallies) return;
    for (uint32_t k = 0; k < t->info.n_tallies; k++) {
        const ing_ir_tally *y = &t->info.tallies[k];
        combine(y, (void *)(uintptr_t)(args[y->word] + y->at),
                (const void *)(uintptr_t)(words[y->word] + y->at), count_of(y, args));
    }
    s->ctx.args = args;
    s->ctx.tallies = 0;
    ing_rt_free_array(words, block_bytes(t, args));
}

/* ---- sections of a loop (SEAT4) --------------------------------------------------------------- */

static uint64_t saturating(uint64_t a, uint64_t b) {
    uint64_t out;
    return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

/* Updates of one iteration, about. */
static uint64_t updates_of(const ing_ir_tally *y, const uint64_t *args,
                           uint64_t trips) {
    uint64_t n = y->times;
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t over = k ? y->over2 : y->over;
        bool half = over == (uint32_t)ING_IR_TALLY_TRIPS;
        int64_t times = !over  ? 1
                        : half ? (int64_t)(trips / 2)
                               : (int64_t)args[over - 1];
        n = saturating(n, times > 0 ? (uint64_t)times : 0);
    }
    return n;
}

bool ing_rt_sections_pay(sections *x, const ing_rt_task *t, const uint64_t *args,
                         uint64_t trips) {
    uint64_t numbers = TALLY_SETUP + t->n_words, updates = 0, bytes = 0;
    for (uint32_t k = 0; k < t->info.n_tallies; k++) {
        const ing_ir_tally *y = &t->info.tallies[k];
        if (count_of(y, args) > TALLY_BYTES) return false;
        numbers += count_of(y, args);
        bytes += bytes_of(y, args);
        uint64_t n = saturating(updates_of(y, args, trips), trips);
        updates = n > UINT64_MAX - updates ? UINT64_MAX : updates + n;
    }
    uint64_t n = updates / (SECTION_UPDATES * numbers), chunk = t->info.chunk_shift;
    if (n > SECTIONS_MOST) n = SECTIONS_MOST;
    if (n > trips) n = trips;
    if (bytes > TALLY_BYTES || n < SECTIONS_LEAST) return false;
    memset(x, 0, sizeof *x);
    x->task = t;
    x->args = args;
    x->length = ((((trips - 1) / n) >> chunk) + 1) << chunk; /* whole chunks */
    x->n = (uint32_t)((trips - 1) / x->length + 1);
    return pthread_mutex_init(&x->lock, NULL) == 0;
}

bool ing_rt_section_open(sections *x, seat *s) {
    pthread_mutex_lock(&x->lock);
    uint64_t *words = x->n_spare ? x->spare[--x->n_spare] : NULL;
    pthread_mutex_unlock(&x->lock);
    for (uint32_t k = 0; words && k < x->task->info.n_tallies; k++) {
        const ing_ir_tally *y = &x->task->info.tallies[k];
        fill(y, (void *)(uintptr_t)(words[y->word] + y->at), count_of(y, x->args));
    }
    if (!words) words = new_block(x->task, x->args);
    if (!words) return false;
    s->ctx.args = words;
    s->ctx.tallies = 1;
    return true;
}

/* Adds the copies of a block to those of the total, or to the arrays, which others may update too. */
static void add_block(const sections *x, const uint64_t *to, const uint64_t *from,
                      bool shared) {
    for (uint32_t k = 0; k < x->task->info.n_tallies; k++) {
        const ing_ir_tally *y = &x->task->info.tallies[k];
        void *a = (void *)(uintptr_t)(to[y->word] + y->at);
        const void *b = (const void *)(uintptr_t)(from[y->word] + y->at);
        uint64_t n = count_of(y, x->args);
        if (y->dtype == ING_F32)
            (shared ? share_float : sum_float)(a, b, n);
        else
            (shared ? share_double : sum_double)(a, b, n);
    }
}

/* The next one's turn; under the lock. */
static void take_turn(sections *x) {
    uint64_t *words = x->done[x->next];
    x->done[x->next++] = NULL;
    if (!words) return;
    if (x->total) {
        add_block(x, x->total, words, false);
        x->spare[x->n_spare++] = words;
    } else {
        x->total = words;
    }
}

void ing_rt_section_close(sections *x, seat *s, uint64_t number) {
    pthread_mutex_lock(&x->lock);
    x->done[number] = s->ctx.args;
    while (x->next < x->n && x->done[x->next]) take_turn(x);
    pthread_mutex_unlock(&x->lock);
    s->ctx.args = s->run->launch->args;
    s->ctx.tallies = 0;
}

void ing_rt_sections_end(sections *x) {
    while (x->next < x->n) take_turn(x); /* after a stop some are missing */
    size_t bytes = block_bytes(x->task, x->args);
    if (x->total) add_block(x, x->args, x->total, true);
    if (x->total) ing_rt_free_array(x->total, bytes);
    while (x->n_spare) ing_rt_free_array(x->spare[--x->n_spare], bytes);
    pthread_mutex_destroy(&x->lock);
}
