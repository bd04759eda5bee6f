#include "common.h"

void csr(n_t n, const int *restrict start, const int *restrict col, const float *restrict val, const float *restrict x,
         float *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float s = 0;
        for (int k = start[i]; k < start[i + 1]; k++) s += val[k] * x[col[k]];
        y[i] = s;
    }
}
