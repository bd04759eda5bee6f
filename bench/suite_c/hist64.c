#include "common.h"

void hist64(n_t n, const int *restrict x, int64_t *restrict bins) {
    #pragma omp parallel for reduction(+ : bins[:1000])
    for (n_t i = 0; i < n; i++) bins[x[i]]++;
}
