#include "common.h"

void ldl_first(n_t count, n_t n, float *restrict Ls, float *restrict ds) {
    #pragma omp parallel for
    for (n_t e = 0; e < count; e++) {
        float *restrict L = Ls + e * n * n, *restrict d = ds + e * n;
        for (n_t j = 0; j < n; j++) {
            for (n_t k = 0; k < j; k++) L[j * n + j] -= L[j * n + k] * L[j * n + k] * d[k];
            d[j] = L[j * n + j];
            for (n_t i = j + 1; i < n; i++) {
                for (n_t k = 0; k < j; k++) L[i * n + j] -= L[i * n + k] * L[j * n + k] * d[k];
                L[i * n + j] = L[i * n + j] / d[j];
            }
        }
    }
}
