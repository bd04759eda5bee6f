#include "common.h"

void matmul_tn(n_t n, const float *restrict a, const float *restrict b, float *restrict c) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        for (n_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (n_t k = 0; k < n; k++)
            for (n_t j = 0; j < n; j++) c[i * n + j] += a[k * n + i] * b[k * n + j];
    }
}
