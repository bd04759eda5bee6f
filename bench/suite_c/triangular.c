#include "common.h"

void triangular(n_t count, n_t n, const float *restrict L, const float *restrict x, float *restrict y) {
    #pragma omp parallel for
    for (n_t e = 0; e < count; e++)
        for (n_t i = 0; i < n; i++) {
            float s = 0;
            for (n_t j = 0; j <= i; j++) s += L[(e * n + i) * n + j] * x[e * n + j];
            y[e * n + i] = s;
        }
}
