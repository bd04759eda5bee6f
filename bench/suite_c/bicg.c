#include "common.h"

void bicg(n_t n, n_t m, const double *restrict A, const double *restrict p, const double *restrict r, double *restrict q,
          double *restrict s) {
    for (n_t j = 0; j < m; j++) s[j] = 0;
    #pragma omp parallel for reduction(+ : s[:m])
    for (n_t i = 0; i < n; i++) {
        double t = 0;
        for (n_t j = 0; j < m; j++) {
            s[j] += r[i] * A[i * m + j];
            t += A[i * m + j] * p[j];
        }
        q[i] = t;
    }
}
