#include "common.h"

void columns(n_t n, float *restrict p) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        p[i * 6 + 0] += 0.01f * p[i * 6 + 3];
        p[i * 6 + 1] += 0.01f * p[i * 6 + 4];
        p[i * 6 + 2] += 0.01f * p[i * 6 + 5];
        p[i * 6 + 3] -= 0.01f * p[i * 6 + 0];
        p[i * 6 + 4] -= 0.01f * p[i * 6 + 1];
        p[i * 6 + 5] -= 0.01f * p[i * 6 + 2];
    }
}
