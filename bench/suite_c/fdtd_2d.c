#include "common.h"

void fdtd_2d(n_t n, n_t m, float *restrict ex, float *restrict ey, float *restrict hz) {
    for (n_t j = 0; j < m; j++) ey[j] = 0.25f;
    #pragma omp parallel for
    for (n_t i = 1; i < n; i++)
        for (n_t j = 0; j < m; j++) ey[i * m + j] -= 0.5f * (hz[i * m + j] - hz[(i - 1) * m + j]);
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 1; j < m; j++) ex[i * m + j] -= 0.5f * (hz[i * m + j] - hz[i * m + j - 1]);
    #pragma omp parallel for
    for (n_t i = 0; i < n - 1; i++)
        for (n_t j = 0; j < m - 1; j++)
            hz[i * m + j] -= 0.7f * (ex[i * m + j + 1] - ex[i * m + j] + ey[(i + 1) * m + j] - ey[i * m + j]);
}
