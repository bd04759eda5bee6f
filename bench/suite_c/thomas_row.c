#include "common.h"

void thomas_row(n_t n, n_t m, const double *restrict a, const double *restrict b, const double *restrict c,
                const double *restrict d, double *restrict w, double *restrict x) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        w[i * m] = c[i * m] / b[i * m];
        x[i * m] = d[i * m] / b[i * m];
        for (n_t j = 1; j < m; j++) {
            double den = b[i * m + j] - a[i * m + j] * w[i * m + j - 1];
            w[i * m + j] = c[i * m + j] / den;
            x[i * m + j] = (d[i * m + j] - a[i * m + j] * x[i * m + j - 1]) / den;
        }
        for (n_t j = m - 2; j >= 0; j--) x[i * m + j] -= w[i * m + j] * x[i * m + j + 1];
    }
}
