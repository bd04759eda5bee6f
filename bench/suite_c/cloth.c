#include "common.h"

void cloth(n_t n, const float *restrict x, const int *restrict first, const int *restrict second, float *restrict move) {
    #pragma omp parallel for
    for (n_t c = 0; c < n; c++) {
        int a = first[c], b = second[c];
        float dx = x[b * 3] - x[a * 3], dy = x[b * 3 + 1] - x[a * 3 + 1], dz = x[b * 3 + 2] - x[a * 3 + 2];
        float length = sqrtf(dx * dx + dy * dy + dz * dz) + 1e-6f;
        float s = 0.5f * (length - 0.1f) / length;
        ADD_F32(&move[a * 3], dx * s);
        ADD_F32(&move[a * 3 + 1], dy * s);
        ADD_F32(&move[a * 3 + 2], dz * s);
        ADD_F32(&move[b * 3], -(dx * s));
        ADD_F32(&move[b * 3 + 1], -(dy * s));
        ADD_F32(&move[b * 3 + 2], -(dz * s));
    }
}
