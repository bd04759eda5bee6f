#include "common.h"

void math_f64(n_t n, const double *restrict x, double *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        double a = x[i];
        double b = sin(a) * cos(a + a) + exp(-a) * log(a + 1.0);
        double c = tanh(a) + pow(a, 1.75) + atan2(a, b);
        y[i] = c + sqrt(a) + asin(a / 2) + tan(a);
    }
}
