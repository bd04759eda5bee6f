#include "common.h"

void redblack(n_t n, float *restrict p, const float *restrict rhs) {
    for (int colour = 0; colour < 2; colour++) {
        #pragma omp parallel for
        for (n_t i = 1; i < n - 1; i++)
            for (n_t j = 1 + ((i + 1 + colour) & 1); j < n - 1; j += 2) {
                n_t q = i * n + j;
                float now = 0.25f * (p[q - n] + p[q + n] + p[q - 1] + p[q + 1] - rhs[q]);
                p[q] += 1.5f * (now - p[q]);
            }
    }
}
