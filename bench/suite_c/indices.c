#include "common.h"

void indices(n_t n, n_t unused, const float *restrict a, float *restrict b, int width) {
    (void)unused;
    #pragma omp parallel for
    for (n_t k = 0; k < n; k++) {
        int i = (int)k / width, j = (int)k % width;
        b[k] = a[k] * (i + 1) + j;
    }
}
