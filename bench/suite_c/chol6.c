#include "common.h"

void chol6(n_t n, const float *restrict as, float *restrict ls) {
    #pragma omp parallel for
    for (n_t e = 0; e < n; e++) {
        const float *restrict a = as + e * 36;
        float *restrict l = ls + e * 36;
        for (int j = 0; j < 6; j++) {
            float s = a[j * 6 + j];
            for (int k = 0; k < j; k++) s -= l[j * 6 + k] * l[j * 6 + k];
            float d = sqrtf(s);
            l[j * 6 + j] = d;
            for (int i = j + 1; i < 6; i++) {
                float t = a[i * 6 + j];
                for (int k = 0; k < j; k++) t -= l[i * 6 + k] * l[j * 6 + k];
                l[i * 6 + j] = t / d;
            }
        }
    }
}
