#include "common.h"

void conv5(n_t n, const uint8_t *restrict src, const float *restrict w, uint8_t *restrict dst) {
    #pragma omp parallel for
    for (n_t i = 2; i < n - 2; i++)
        for (n_t j = 2; j < n - 2; j++) {
            float s = 0;
            for (int a = 0; a < 5; a++)
                for (int b = 0; b < 5; b++) s += w[a * 5 + b] * src[(i + a - 2) * n + j + b - 2];
            dst[i * n + j] = (uint8_t)fminf(fmaxf(s, 0.0f), 255.0f);
        }
}
