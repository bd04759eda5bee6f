#include "common.h"

void grid3(n_t n, const float *restrict v, float *restrict div, float *restrict curl) {
    n_t m = n * n;
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++)
            for (n_t k = 1; k < n - 1; k++) {
                n_t q = i * m + j * n + k;
                float dx[3], dy[3], dz[3];
                for (int c = 0; c < 3; c++) {
                    dx[c] = (v[(q + m) * 3 + c] - v[(q - m) * 3 + c]) * 0.5f;
                    dy[c] = (v[(q + n) * 3 + c] - v[(q - n) * 3 + c]) * 0.5f;
                    dz[c] = (v[(q + 1) * 3 + c] - v[(q - 1) * 3 + c]) * 0.5f;
                }
                div[q] = dx[0] + dy[1] + dz[2];
                curl[q * 3] = dy[2] - dz[1];
                curl[q * 3 + 1] = dz[0] - dx[2];
                curl[q * 3 + 2] = dx[1] - dy[0];
            }
}
