#include "common.h"

void sums3(n_t n, const float *restrict x, const float *restrict y, float *restrict s) {
    float a = 0, b = 0, c = 0;
    #pragma omp parallel for reduction(+ : a, b, c)
    for (n_t i = 0; i < n; i++) {
        a += x[i];
        b += x[i] * x[i];
        c += x[i] * y[i];
    }
    s[0] += a;
    s[1] += b;
    s[2] += c;
}
