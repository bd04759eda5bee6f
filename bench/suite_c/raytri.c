#include "common.h"

typedef struct {
    float x, y, z;
} vec3;

static float dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec3 cross(vec3 a, vec3 b) {
    return (vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

void raytri(n_t n, n_t m, const vec3 *restrict o, const vec3 *restrict d, const vec3 *restrict a, const vec3 *restrict e1,
            const vec3 *restrict e2, float *restrict out) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float near = 1e30f;
        for (n_t k = 0; k < m; k++) {
            vec3 p = cross(d[i], e2[k]);
            float det = dot(e1[k], p);
            if (fabsf(det) > 1e-8f) {
                float inv = 1.0f / det;
                vec3 s = {o[i].x - a[k].x, o[i].y - a[k].y, o[i].z - a[k].z};
                float u = dot(s, p) * inv;
                if (u >= 0.0f && u <= 1.0f) {
                    vec3 q = cross(s, e1[k]);
                    float v = dot(d[i], q) * inv;
                    if (v >= 0.0f && u + v <= 1.0f) {
                        float t = dot(e2[k], q) * inv;
                        if (t > 0.0f && t < near) near = t;
                    }
                }
            }
        }
        out[i] = near;
    }
}
