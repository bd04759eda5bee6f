#include "common.h"

void matmul_nt(n_t n, const float *restrict a, const float *restrict b, float *restrict c) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            float s = 0;
            for (n_t k = 0; k < n; k++) s += a[i * n + k] * b[j * n + k];
            c[i * n + j] = s;
        }
}
