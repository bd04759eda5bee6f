#include "common.h"

void viterbi(n_t n, n_t m, const float *restrict tr, const float *restrict em, float *restrict d, int *restrict back) {
    for (n_t t = 1; t < n; t++)
        for (n_t s = 0; s < m; s++) {
            float best = -1e30f;
            int arg = 0;
            for (n_t p = 0; p < m; p++) {
                float v = d[(t - 1) * m + p] + tr[p * m + s];
                if (v > best) best = v, arg = p;
            }
            d[t * m + s] = best + em[t * m + s];
            back[t * m + s] = arg;
        }
}
