#include "common.h"

static void sweep(n_t n, const float *restrict A, float *restrict B) {
    n_t m = n * n;
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            for (n_t k = 1; k < n - 1; k++) {
                n_t q = i * m + j * n + k;
                B[q] = 0.125f * (A[q + m] - 2.0f * A[q] + A[q - m]) + 0.125f * (A[q + n] - 2.0f * A[q] + A[q - n])
                    + 0.125f * (A[q + 1] - 2.0f * A[q] + A[q - 1]) + A[q];
            }
}

void heat_3d(n_t n, float *restrict A, float *restrict B) {
    sweep(n, A, B);
    sweep(n, B, A);
}
