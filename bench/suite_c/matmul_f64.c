#include "common.h"

void matmul_f64(n_t n, const double *restrict a, const double *restrict b, double *restrict c) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        for (n_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (n_t k = 0; k < n; k++)
            for (n_t j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}
