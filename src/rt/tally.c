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
 *  SEAT3 Only exact kinds are tallied, so the result does not depend on who had which iteration
 *     (R23). */
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
static void fill(const ing_ir_tally *y, void *to, uint64_t n) {
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

/* ---- a seat's copies --------------------------------------------------------------------------- */

/* One block: the argument words, then the copies, each on lines of its own. */
static size_t block_bytes(const ing_rt_task *t, const uint64_t *args) {
    uint64_t bytes = padded(8ull * t->n_words);
    for (uint32_t k = 0; k < t->info.n_tallies; k++)
        bytes += padded(bytes_of(&t->info.tallies[k], args));
    return bytes;
}

void ing_rt_tally_open(seat *s, const ing_rt_task *t) {
    const uint64_t *args = s->run->launch->args;
    void *block;
    if (ing_rt_alloc_array(block_bytes(t, args), &block) != ING_OK) return; /* SEAT2 */
    uint64_t *words = block;
    memcpy(words, args, 8ull * t->n_words);
    uint8_t *at = (uint8_t *)block + padded(8ull * t->n_words);
    for (uint32_t k = 0; k < t->info.n_tallies; k++) {
        const ing_ir_tally *y = &t->info.tallies[k];
        words[y->word] = (uint64_t)(uintptr_t)at - y->at; /* code adds it */
        fill(y, at, count_of(y, args));
        at += padded(bytes_of(y, args));
    }
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
