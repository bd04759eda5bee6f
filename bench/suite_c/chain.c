#include "common.h"

void chain(n_t n, n_t m, const float *restrict ang, float *restrict out, const float *restrict ax) {
    #pragma omp parallel for
    for (n_t e = 0; e < n; e++) {
        float r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, p[3] = {0, 0, 0};
        for (n_t k = 0; k < m; k++) {
            float x = ax[k * 3], y = ax[k * 3 + 1], z = ax[k * 3 + 2], inv = 1 / sqrtf(x * x + y * y + z * z),
                  c = cosf(ang[e * m + k]), s = sinf(ang[e * m + k]), t = 1 - c;
            x *= inv;
            y *= inv;
            z *= inv;
            float b[9] = {t * x * x + c,     t * x * y - s * z, t * x * z + s * y, t * x * y + s * z, t * y * y + c,
                          t * y * z - s * x, t * x * z - s * y, t * y * z + s * x, t * z * z + c},
                  o[9];
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    o[i * 3 + j] = r[i * 3] * b[j] + r[i * 3 + 1] * b[3 + j] + r[i * 3 + 2] * b[6 + j];
            for (int i = 0; i < 9; i++) r[i] = o[i];
            for (int i = 0; i < 3; i++) {
                p[i] += r[i * 3 + 2] * 0.3f;
                out[(e * m + k) * 3 + i] = p[i];
            }
        }
    }
}
