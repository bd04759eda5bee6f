#include "common.h"

void life_u8(n_t n, const uint8_t *restrict a, uint8_t *restrict b) {
    #pragma omp parallel for
    for (n_t i = 1; i < n - 1; i++)
        for (n_t j = 1; j < n - 1; j++) {
            uint8_t s = a[(i - 1) * n + j - 1] + a[(i - 1) * n + j] + a[(i - 1) * n + j + 1] + a[i * n + j - 1]
                + a[i * n + j + 1] + a[(i + 1) * n + j - 1] + a[(i + 1) * n + j] + a[(i + 1) * n + j + 1];
            if (s == 3 || (s == 2 && a[i * n + j] == 1))
                b[i * n + j] = 1;
            else
                b[i * n + j] = 0;
        }
}
