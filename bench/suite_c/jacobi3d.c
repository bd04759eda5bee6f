#include "common.h"

void jacobi3d(n_t n, const float *restrict a, float *restrict b, const float *restrict rhs) {
    n_t m = n * n;
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            for (n_t k = 1; k < n - 1; k++) {
                n_t q = i * m + j * n + k;
                b[q] = (a[q - m] + a[q + m] + a[q - n] + a[q + n] + a[q - 1] + a[q + 1] - rhs[q]) / 6.0f;
            }
}
