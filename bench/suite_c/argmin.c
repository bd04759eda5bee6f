#include "common.h"

void argmin(n_t n, const float *restrict x, float *restrict least, int *restrict where) {
    float low = 1e30f;
    int at = 2147483647;
    #pragma omp parallel for reduction(min : low)
    for (n_t i = 0; i < n; i++) low = x[i] < low ? x[i] : low;
    #pragma omp parallel for reduction(min : at)
    for (n_t i = 0; i < n; i++)
        if (x[i] == low) at = (int)i < at ? (int)i : at;
    least[0] = low;
    where[0] = at;
}
