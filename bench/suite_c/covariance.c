#include "common.h"

void covariance(n_t n, n_t m, const double *restrict data, double *restrict mean, double *restrict cov,
                double *restrict centred) {
    for (n_t j = 0; j < m; j++) {
        mean[j] = 0;
        for (n_t i = 0; i < n; i++) mean[j] += data[i * m + j];
        mean[j] /= n;
    }
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < m; j++) centred[i * m + j] = data[i * m + j] - mean[j];
    #pragma omp parallel for schedule(dynamic, 8)
    for (n_t i = 0; i < m; i++)
        for (n_t j = i; j < m; j++) {
            cov[i * m + j] = 0;
            for (n_t k = 0; k < n; k++) cov[i * m + j] += centred[k * m + i] * centred[k * m + j];
            cov[i * m + j] /= n - 1.0;
            cov[j * m + i] = cov[i * m + j];
        }
}
