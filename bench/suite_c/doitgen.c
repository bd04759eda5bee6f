#include "common.h"

void doitgen(n_t nr, n_t nq, n_t np, double *restrict A, const double *restrict C4, double *restrict total) {
    #pragma omp parallel for
    for (n_t r = 0; r < nr * nq; r++) {
        for (n_t p = 0; p < np; p++) {
            total[r * np + p] = 0;
            for (n_t s = 0; s < np; s++) total[r * np + p] += A[r * np + s] * C4[s * np + p];
        }
        for (n_t p = 0; p < np; p++) A[r * np + p] = total[r * np + p];
    }
}
