#include "common.h"

void thomas_col(n_t n, n_t m, const double *restrict a, const double *restrict b, const double *restrict c,
                const double *restrict d, double *restrict w, double *restrict x) {
    for (n_t j = 0; j < m; j++) {
        w[j] = c[j] / b[j];
        x[j] = d[j] / b[j];
    }
    for (n_t i = 1; i < n; i++)
        for (n_t j = 0; j < m; j++) {
            double den = b[i * m + j] - a[i * m + j] * w[(i - 1) * m + j];
            w[i * m + j] = c[i * m + j] / den;
            x[i * m + j] = (d[i * m + j] - a[i * m + j] * x[(i - 1) * m + j]) / den;
        }
    for (n_t i = n - 2; i >= 0; i--)
        for (n_t j = 0; j < m; j++) x[i * m + j] -= w[i * m + j] * x[(i + 1) * m + j];
}
