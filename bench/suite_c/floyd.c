#include "common.h"

void floyd(n_t n, float *restrict d, int k) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) d[i * n + j] = fminf(d[i * n + j], d[i * n + k] + d[k * n + j]);
}
