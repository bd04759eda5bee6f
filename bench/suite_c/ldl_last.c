#include "common.h"

#define AT(i, j) L[((i) * n + (j)) * count + e]

void ldl_last(n_t count, n_t n, float *restrict L, float *restrict d) {
    #pragma omp parallel for
    for (n_t e = 0; e < count; e++)
        for (n_t j = 0; j < n; j++) {
            for (n_t k = 0; k < j; k++) AT(j, j) -= AT(j, k) * AT(j, k) * d[k * count + e];
            d[j * count + e] = AT(j, j);
            for (n_t i = j + 1; i < n; i++) {
                for (n_t k = 0; k < j; k++) AT(i, j) -= AT(i, k) * AT(j, k) * d[k * count + e];
                AT(i, j) = AT(i, j) / d[j * count + e];
            }
        }
}
