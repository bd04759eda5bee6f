#include "common.h"

typedef struct {
    float w, x, y, z;
} quat4;

static quat4 times(quat4 a, quat4 b) {
    return (quat4){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                   a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

void quat(n_t n, quat4 *restrict q, const float *restrict w, const float *restrict v, float *restrict out) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        quat4 a = q[i], b = times((quat4){0, w[i * 3], w[i * 3 + 1], w[i * 3 + 2]}, a);
        quat4 r = {a.w + 0.005f * b.w, a.x + 0.005f * b.x, a.y + 0.005f * b.y, a.z + 0.005f * b.z};
        float s = 1.0f / sqrtf(r.w * r.w + r.x * r.x + r.y * r.y + r.z * r.z);
        r = (quat4){r.w * s, r.x * s, r.y * s, r.z * s};
        q[i] = r;
        quat4 p = times(times(r, (quat4){0, v[i * 3], v[i * 3 + 1], v[i * 3 + 2]}), (quat4){r.w, -r.x, -r.y, -r.z});
        out[i * 3] = p.x;
        out[i * 3 + 1] = p.y;
        out[i * 3 + 2] = p.z;
    }
}
