#include "common.h"

void mvt(n_t n, const double *restrict A, double *restrict x1, double *restrict x2, const double *restrict y1,
         const double *restrict y2) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) x1[i] += A[i * n + j] * y1[j];
    #pragma omp parallel for reduction(+ : x2[:n])
    for (n_t j = 0; j < n; j++)
        for (n_t i = 0; i < n; i++) x2[i] += A[j * n + i] * y2[j];
}
