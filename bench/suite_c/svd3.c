#include "common.h"

/* Eigenvectors V of A^T A by Jacobi's rotations, the columns of A V made unit: U; the result is U V^T. */
static void rotate(float s[3][3], float v[3][3], int p, int q) {
    if (fabsf(s[p][q]) < 1e-12f) return;
    float theta = (s[q][q] - s[p][p]) / (2.0f * s[p][q]);
    float t = copysignf(1.0f, theta) / (fabsf(theta) + sqrtf(theta * theta + 1.0f));
    float c = 1.0f / sqrtf(t * t + 1.0f), n = t * c;
    for (int k = 0; k < 3; k++) {
        float a = s[k][p], b = s[k][q];
        s[k][p] = c * a - n * b;
        s[k][q] = n * a + c * b;
    }
    for (int k = 0; k < 3; k++) {
        float a = s[p][k], b = s[q][k];
        s[p][k] = c * a - n * b;
        s[q][k] = n * a + c * b;
        a = v[k][p], b = v[k][q];
        v[k][p] = c * a - n * b;
        v[k][q] = n * a + c * b;
    }
}

void svd3(n_t n, const float *restrict as, float *restrict rs) {
    #pragma omp parallel for
    for (n_t e = 0; e < n; e++) {
        const float *restrict a = as + e * 9;
        float s[3][3], v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, u[3][3];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) s[i][j] = a[i] * a[j] + a[3 + i] * a[3 + j] + a[6 + i] * a[6 + j];
        for (int sweep = 0; sweep < 4; sweep++) {
            rotate(s, v, 0, 1);
            rotate(s, v, 0, 2);
            rotate(s, v, 1, 2);
        }
        for (int j = 0; j < 3; j++) {
            float length = 0;
            for (int i = 0; i < 3; i++) {
                u[i][j] = a[i * 3] * v[0][j] + a[i * 3 + 1] * v[1][j] + a[i * 3 + 2] * v[2][j];
                length += u[i][j] * u[i][j];
            }
            length = 1.0f / sqrtf(length);
            for (int i = 0; i < 3; i++) u[i][j] *= length;
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) rs[e * 9 + i * 3 + j] = u[i][0] * v[j][0] + u[i][1] * v[j][1] + u[i][2] * v[j][2];
    }
}
