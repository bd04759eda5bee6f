#include "common.h"

void math_f32(n_t n, const float *restrict x, float *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float a = x[i];
        float b = sinf(a) * cosf(a + a) + expf(-a) * logf(a + 1.0f);
        float c = tanhf(a) + powf(a, 1.7f) + atan2f(a, b);
        y[i] = c + sqrtf(a) + asinf(0.5f * a) + tanf(a);
    }
}
