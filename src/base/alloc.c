/* The allocator behind everything in the engine: malloc plus a test hook that makes the
 * n-th allocation fail. Called by every folder. Must never abort on failure, and costs
 * one relaxed load over malloc when the hook is idle. */
#include "base/base.h"

#include <stdlib.h>

static uint64_t fail_countdown; /* registry: fault injection */

void ing_alloc_fail_at(uint64_t n) {
    __atomic_store_n(&fail_countdown, n, __ATOMIC_RELAXED);
}

uint64_t ing_alloc_fail_left(void) {
    return __atomic_load_n(&fail_countdown, __ATOMIC_RELAXED);
}

/* True for exactly one allocation, also when threads race for the count. */
static bool fails_now(void) {
    uint64_t n = __atomic_load_n(&fail_countdown, __ATOMIC_RELAXED);
    while (n && !__atomic_compare_exchange_n(&fail_countdown, &n, n - 1, true,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return n == 1;
}

void *ing_malloc(size_t n) {
    return fails_now() ? NULL : malloc(n ? n : 1);
}

void *ing_calloc(size_t n, size_t size) {
    size_t total;
    if (!ing_mul_size(n, size, &total) || fails_now()) return NULL;
    return calloc(1, total ? total : 1);
}

void *ing_realloc(void *p, size_t n) {
    return fails_now() ? NULL : realloc(p, n ? n : 1);
}

void ing_free(void *p) {
    free(p);
}
