#include "common.h"

void advect(n_t n, const float *restrict u, const float *restrict v, const float *restrict q, float *restrict out) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            float x = fmaxf(0.0f, fminf(n - 1.001f, i - u[i * n + j]));
            float y = fmaxf(0.0f, fminf(n - 1.001f, j - v[i * n + j]));
            int a = (int)floorf(x), b = (int)floorf(y);
            float s = x - a, t = y - b;
            float top = q[a * n + b] * (1 - t) + q[a * n + b + 1] * t;
            float low = q[(a + 1) * n + b] * (1 - t) + q[(a + 1) * n + b + 1] * t;
            out[i * n + j] = top * (1 - s) + low * s;
        }
}
