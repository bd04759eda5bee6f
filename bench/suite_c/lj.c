#include "common.h"

void lj(n_t n, n_t w, const float *restrict x, const int *restrict nb, float *restrict f) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float a = 0, b = 0, c = 0;
        for (n_t k = 0; k < w; k++) {
            int j = nb[i * w + k];
            float dx = x[i * 3] - x[j * 3], dy = x[i * 3 + 1] - x[j * 3 + 1], dz = x[i * 3 + 2] - x[j * 3 + 2],
                  r2 = dx * dx + dy * dy + dz * dz + 0.1f;
            if (r2 < 6.25f && j != i) {
                float ir = 1 / r2, ir6 = ir * ir * ir, s = 24 * ir6 * (2 * ir6 - 1) * ir;
                a += dx * s;
                b += dy * s;
                c += dz * s;
            }
        }
        f[i * 3] = a;
        f[i * 3 + 1] = b;
        f[i * 3 + 2] = c;
    }
}
