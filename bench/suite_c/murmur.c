#include "common.h"

static uint32_t mixed(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ (h >> 16);
}

void murmur(n_t n, const uint32_t *restrict x, uint32_t *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) y[i] = mixed(mixed(mixed(x[i])));
}
