#include "common.h"

void life_i32(n_t n, const int *restrict a, int *restrict b) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            int c = 0;
            for (int x = -1; x < 2; x++)
                for (int y = -1; y < 2; y++)
                    if (x || y) c += a[((i + x + n) % n) * n + (j + y + n) % n];
            b[i * n + j] = 0;
            if (c == 3 || (c == 2 && a[i * n + j] == 1)) b[i * n + j] = 1;
        }
}
