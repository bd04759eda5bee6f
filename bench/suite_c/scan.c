#include "common.h"

void scan(n_t n, n_t blocks, const int *restrict x, int *restrict y, int *restrict sums) {
    n_t length = n / blocks;
    #pragma omp parallel for
    for (n_t b = 0; b < blocks; b++) {
        int s = 0;
        for (n_t k = 0; k < length; k++) s += x[b * length + k];
        sums[b] = s;
    }
    for (n_t b = 1; b < blocks; b++) sums[b] += sums[b - 1];
    #pragma omp parallel for
    for (n_t b = 0; b < blocks; b++) {
        int s = b > 0 ? sums[b - 1] : 0;
        for (n_t k = 0; k < length; k++) y[b * length + k] = s += x[b * length + k];
    }
}
