#include "common.h"

void voxels(n_t n, n_t m, const int *restrict g, float *restrict o) {
    #pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            float d[3] = {1, i / 80.0f - 0.99f, j / 80.0f - 0.99f}, p[3] = {0.01f, 32.1f, 32.1f}, tm[3], td[3], t = 0;
            float inv = 1 / sqrtf(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            int c[3], st[3];
            for (int k = 0; k < 3; k++) {
                float dk = d[k] * inv;
                c[k] = floorf(p[k]);
                if (fabsf(dk) < 1e-6f) dk = 1e-6f;
                td[k] = 1 / fabsf(dk);
                st[k] = dk < 0 ? -1 : 1;
                tm[k] = dk < 0 ? (p[k] - c[k]) * td[k] : (c[k] + 1 - p[k]) * td[k];
            }
            for (;;) {
                int k = tm[1] < tm[0] ? 1 : 0;
                if (tm[2] < fminf(tm[0], tm[1])) k = 2;
                if (k == 0)
                    t = tm[0], tm[0] += td[0], c[0] += st[0];
                else if (k == 1)
                    t = tm[1], tm[1] += td[1], c[1] += st[1];
                else
                    t = tm[2], tm[2] += td[2], c[2] += st[2];
                if (c[0] < 0 || c[0] >= 64 || c[1] < 0 || c[1] >= 64 || c[2] < 0 || c[2] >= 64) break;
                if (g[(c[0] * 64 + c[1]) * 64 + c[2]]) break;
            }
            o[i * m + j] = t;
        }
}
