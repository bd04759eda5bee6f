#include "common.h"

void bitonic(n_t n, int *restrict a) {
    for (n_t k = 2; k <= n; k *= 2)
        for (n_t j = k / 2; j > 0; j /= 2) {
            #pragma omp parallel for
            for (n_t i = 0; i < n; i++) {
                n_t other = i ^ j;
                if (other > i && (a[i] > a[other]) == ((i & k) == 0)) {
                    int t = a[i];
                    a[i] = a[other];
                    a[other] = t;
                }
            }
        }
}
