#include "common.h"

void rope(n_t n, n_t m, float *restrict x, const float *restrict v) {
    #pragma omp parallel for
    for (n_t r = 0; r < n; r++)
        for (int it = 0; it < 4; it++)
            for (n_t k = 0; k < m - 1; k++) {
                float *a = x + (r * m + k) * 3, *b = a + 3, d0 = b[0] - a[0], d1 = b[1] - a[1], d2 = b[2] - a[2],
                      l = sqrtf(d0 * d0 + d1 * d1 + d2 * d2) + 1e-6f, w = (l - 0.1f) / l * 0.5f;
                a[0] += d0 * w;
                a[1] += d1 * w;
                a[2] += d2 * w;
                b[0] -= d0 * w;
                b[1] -= d1 * w;
                b[2] -= d2 * w;
            }
}
