#include "common.h"

void fill(n_t n, float *restrict x, float value) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) x[i] = value;
}
