#include "common.h"

static void bounce(float *x, float *v) {
    if (*x < 0.0f) {
        *x = 0.0f;
        *v = -0.8f * *v;
    }
    if (*x > 1.0f) {
        *x = 1.0f;
        *v = -0.8f * *v;
    }
}

void soa(n_t n, float *restrict x, float *restrict y, float *restrict z, float *restrict u, float *restrict v,
         float *restrict w) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float a = u[i] - 0.001f * 0.1f * u[i], b = v[i] + 0.001f * (-9.8f - 0.1f * v[i]), c = w[i] - 0.001f * 0.1f * w[i];
        float p = x[i] + 0.001f * a, q = y[i] + 0.001f * b, r = z[i] + 0.001f * c;
        bounce(&p, &a);
        bounce(&q, &b);
        bounce(&r, &c);
        x[i] = p;
        y[i] = q;
        z[i] = r;
        u[i] = a;
        v[i] = b;
        w[i] = c;
    }
}
