#include "common.h"

static float whole(float x, int e) { /* powf would take e as a float: a C programmer multiplies */
    float r = 1;
    unsigned n = e < 0 ? 0u - (unsigned)e : (unsigned)e;
    for (; n; n >>= 1, x *= x)
        if (n & 1) r *= x;
    return e < 0 ? 1 / r : r;
}

void powers(n_t n, const float *restrict x, const int *restrict e, float *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) y[i] = powf(x[i], 1.7f) + whole(x[i], e[i]);
}
