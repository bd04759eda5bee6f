#include "common.h"

void aos(n_t n, float *restrict x, float *restrict v) {
    static const float g[3] = {0.0f, -9.8f, 0.0f};
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            float u = v[i * 3 + k] + 0.001f * (g[k] - 0.1f * v[i * 3 + k]), p = x[i * 3 + k] + 0.001f * u;
            if (p < 0.0f) {
                p = 0.0f;
                u = -0.8f * u;
            }
            if (p > 1.0f) {
                p = 1.0f;
                u = -0.8f * u;
            }
            x[i * 3 + k] = p;
            v[i * 3 + k] = u;
        }
}
