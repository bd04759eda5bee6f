#include "common.h"

void collatz(n_t n, int *restrict out) {
    #pragma omp parallel for schedule(dynamic, 256)
    for (n_t i = 0; i < n; i++) {
        int64_t x = i + 1;
        int count = 0;
        while (x != 1) {
            if (x % 2 == 0)
                x = x / 2;
            else
                x = 3 * x + 1;
            count++;
        }
        out[i] = count;
    }
}
