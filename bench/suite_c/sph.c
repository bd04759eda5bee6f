#include "common.h"

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

void sph(n_t n, n_t unused, const float *restrict x, const int *restrict start, float *restrict rho, int side) {
    (void)unused;
    float h2 = 1.0f / (side * side);
    #pragma omp parallel for schedule(dynamic, 64)
    for (n_t i = 0; i < n; i++) {
        float px = x[i * 3], py = x[i * 3 + 1], pz = x[i * 3 + 2], total = 0;
        int cx = (int)(px * side), cy = (int)(py * side), cz = (int)(pz * side);
        for (int a = most(cx - 1, 0); a < least(cx + 2, side); a++)
            for (int b = most(cy - 1, 0); b < least(cy + 2, side); b++)
                for (int c = most(cz - 1, 0); c < least(cz + 2, side); c++) {
                    int cell = (a * side + b) * side + c;
                    for (int j = start[cell]; j < start[cell + 1]; j++) {
                        float dx = x[j * 3] - px, dy = x[j * 3 + 1] - py, dz = x[j * 3 + 2] - pz;
                        float r2 = dx * dx + dy * dy + dz * dz;
                        if (r2 < h2) {
                            float w = 1.0f - r2 / h2;
                            total += w * w * w;
                        }
                    }
                }
        rho[i] = total;
    }
}
