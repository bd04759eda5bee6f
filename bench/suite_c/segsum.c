#include "common.h"

void segsum(n_t n, const int *restrict ptr, const float *restrict x, float *restrict o) {
    #pragma omp parallel for
    for (n_t s = 0; s < n; s++) {
        float t = 0;
        for (int k = ptr[s]; k < ptr[s + 1]; k++) t += x[k];
        o[s] = t;
    }
}
