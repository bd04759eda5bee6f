#include "common.h"

void welford(n_t n, n_t m, const float *restrict x, float *restrict mean, float *restrict var) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float mu = 0, q = 0;
        for (n_t j = 0; j < m; j++) {
            float d = x[i * m + j] - mu;
            mu += d / (j + 1);
            q += d * (x[i * m + j] - mu);
        }
        mean[i] = mu;
        var[i] = q / m;
    }
}
