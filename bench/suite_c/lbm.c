#include "common.h"

static const int ex[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, ey[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const float w[9] = {4 / 9.0f, 1 / 9.0f, 1 / 9.0f, 1 / 9.0f, 1 / 9.0f, 1 / 36.0f, 1 / 36.0f, 1 / 36.0f, 1 / 36.0f};

void lbm(n_t n, const float *restrict old, float *restrict new) {
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++) {
            float f[9], rho = 0, ux = 0, uy = 0;
            for (int k = 0; k < 9; k++) {
                f[k] = old[((i - ex[k]) * n + j - ey[k]) * 9 + k];
                rho += f[k];
                ux += f[k] * ex[k];
                uy += f[k] * ey[k];
            }
            ux /= rho;
            uy /= rho;
            for (int k = 0; k < 9; k++) {
                float eu = ex[k] * ux + ey[k] * uy;
                float feq = w[k] * rho * (1.0f + 3.0f * eu + 4.5f * eu * eu - 1.5f * (ux * ux + uy * uy));
                new[(i * n + j) * 9 + k] = f[k] + 0.6f * (feq - f[k]);
            }
        }
}
