#include "common.h"

static void sweep(n_t n, const double *restrict A, double *restrict B) {
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            B[i * n + j] = 0.2 * (A[i * n + j] + A[i * n + j - 1] + A[i * n + j + 1] + A[(i + 1) * n + j] + A[(i - 1) * n + j]);
}

void jacobi_2d(n_t n, double *restrict A, double *restrict B) {
    sweep(n, A, B);
    sweep(n, B, A);
}
