#include "common.h"

void atax(n_t n, n_t m, const double *restrict A, const double *restrict x, double *restrict tmp, double *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        double s = 0;
        for (n_t j = 0; j < m; j++) s += A[i * m + j] * x[j];
        tmp[i] = s;
    }
    for (n_t j = 0; j < m; j++) y[j] = 0;
    #pragma omp parallel for reduction(+ : y[:m])
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < m; j++) y[j] += A[i * m + j] * tmp[i];
}
