#include "common.h"

typedef struct {
    float x, y, z;
} vec3;

void nbody_vec(n_t n, const vec3 *restrict x, vec3 *restrict f) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        vec3 s = {0, 0, 0};
        for (n_t j = 0; j < n; j++) {
            vec3 d = {x[j].x - x[i].x, x[j].y - x[i].y, x[j].z - x[i].z};
            float r = d.x * d.x + d.y * d.y + d.z * d.z + 0.01f, w = r * sqrtf(r);
            s.x += d.x / w;
            s.y += d.y / w;
            s.z += d.z / w;
        }
        f[i] = s;
    }
}
