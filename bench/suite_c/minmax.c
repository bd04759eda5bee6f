#include "common.h"

void minmax(n_t n, const float *restrict x, float *restrict out) {
    float low = 1e30f, high = -1e30f;
    #pragma omp parallel for reduction(min : low) reduction(max : high)
    for (n_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    out[0] = low;
    out[1] = high;
}
