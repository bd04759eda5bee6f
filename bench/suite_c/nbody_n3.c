#include "common.h"

void nbody_n3(n_t n, const float *restrict p, float *restrict f) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float fx = 0, fy = 0, fz = 0;
        for (n_t j = 0; j < n; j++) {
            float dx = p[j * 3] - p[i * 3], dy = p[j * 3 + 1] - p[i * 3 + 1], dz = p[j * 3 + 2] - p[i * 3 + 2];
            float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), w = inv * inv * inv;
            fx += dx * w;
            fy += dy * w;
            fz += dz * w;
        }
        f[i * 3] = fx;
        f[i * 3 + 1] = fy;
        f[i * 3 + 2] = fz;
    }
}
