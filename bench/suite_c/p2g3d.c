#include "common.h"

void p2g3d(n_t n, n_t side, const float *restrict x, const float *restrict v, const float *restrict C,
           float *restrict grid_v, float *restrict grid_m) {
    #pragma omp parallel for
    for (n_t p = 0; p < n; p++) {
        int base[3];
        float fx[3], w[3][3];
        for (int c = 0; c < 3; c++) {
            base[c] = (int)(x[p * 3 + c] * 32.0f - 0.5f);
            fx[c] = x[p * 3 + c] * 32.0f - base[c];
            w[0][c] = 0.5f * (1.5f - fx[c]) * (1.5f - fx[c]);
            w[1][c] = 0.75f - (fx[c] - 1.0f) * (fx[c] - 1.0f);
            w[2][c] = 0.5f * (fx[c] - 0.5f) * (fx[c] - 0.5f);
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                for (int k = 0; k < 3; k++) {
                    float d[3] = {(i - fx[0]) / 32.0f, (j - fx[1]) / 32.0f, (k - fx[2]) / 32.0f};
                    float weight = w[i][0] * w[j][1] * w[k][2];
                    n_t q = ((base[0] + i) * side + base[1] + j) * side + base[2] + k;
                    for (int c = 0; c < 3; c++)
                        ADD_F32(&grid_v[q * 3 + c], weight * (v[p * 3 + c] + C[p * 9 + c * 3] * d[0]
                            + C[p * 9 + c * 3 + 1] * d[1] + C[p * 9 + c * 3 + 2] * d[2]));
                    ADD_F32(&grid_m[q], weight);
                }
    }
}
