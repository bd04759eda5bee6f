#include "common.h"

void fem(n_t n, const float *restrict x, const int *restrict tets, const float *restrict inverse, float *restrict force) {
    #pragma omp parallel for
    for (n_t t = 0; t < n; t++) {
        const int *v = tets + t * 4;
        const float *restrict B = inverse + t * 9;
        float D[3][3], F[3][3], G[3][3], P[3][3], H[3][3], trace = 0;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) D[i][j] = x[v[j + 1] * 3 + i] - x[v[0] * 3 + i];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) F[i][j] = D[i][0] * B[j] + D[i][1] * B[3 + j] + D[i][2] * B[6 + j];
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++)
                G[i][j] = 0.5f * (F[0][i] * F[0][j] + F[1][i] * F[1][j] + F[2][i] * F[2][j] - (i == j));
            trace += G[i][i];
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) G[i][j] = 2.0f * G[i][j] + (i == j ? trace : 0.0f);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) P[i][j] = F[i][0] * G[0][j] + F[i][1] * G[1][j] + F[i][2] * G[2][j];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                H[i][j] = -1.0f / 6.0f * (P[i][0] * B[j * 3] + P[i][1] * B[j * 3 + 1] + P[i][2] * B[j * 3 + 2]);
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) ADD_F32(&force[v[j + 1] * 3 + i], H[i][j]);
            ADD_F32(&force[v[0] * 3 + i], -(H[i][0] + H[i][1] + H[i][2]));
        }
    }
}
