#include "common.h"

void syrk(n_t n, n_t m, const double *restrict A, double *restrict C) {
    #pragma omp parallel for schedule(dynamic, 8)
    for (n_t i = 0; i < n; i++) {
        for (n_t j = 0; j <= i; j++) C[i * n + j] *= 1.25;
        for (n_t k = 0; k < m; k++)
            for (n_t j = 0; j <= i; j++) C[i * n + j] += 1.5 * A[i * m + k] * A[j * m + k];
    }
}
