#include "common.h"

void gesummv(n_t n, const double *restrict A, const double *restrict B, const double *restrict x, double *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        double s = 0, t = 0;
        for (n_t j = 0; j < n; j++) {
            s += A[i * n + j] * x[j];
            t += B[i * n + j] * x[j];
        }
        y[i] = 1.5 * s + 1.25 * t;
    }
}
