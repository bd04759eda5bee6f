#include "common.h"

void primes(n_t n, int *restrict out) {
    #pragma omp parallel for schedule(dynamic, 256)
    for (int i = 2; i < (int)n; i++) {
        int found = 1;
        for (int j = 2; j * j <= i; j++)
            if (i % j == 0) {
                found = 0;
                break;
            }
        out[i] = found;
    }
}
