#include "common.h"

typedef struct {
    float x, y, z;
} vec3;

static float draw(uint32_t *state) { /* xorshift, one stream for each pixel */
    uint32_t s = *state;
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    *state = s;
    return (float)(s >> 8) * (1.0f / 16777216.0f);
}

static float dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static vec3 unit(vec3 a) {
    float s = 1.0f / sqrtf(dot(a, a));
    return (vec3){a.x * s, a.y * s, a.z * s};
}

static float hit_ball(vec3 o, vec3 d, const float *ball) {
    vec3 m = {o.x - ball[0], o.y - ball[1], o.z - ball[2]};
    float b = dot(m, d), q = b * b - dot(m, m) + ball[3] * ball[3];
    return q > 0.0f ? -b - sqrtf(q) : -1.0f;
}

static vec3 on_ball(uint32_t *state) {
    vec3 p = {1, 1, 1};
    while (dot(p, p) >= 1.0f) {
        p.x = draw(state) * 2.0f - 1.0f;
        p.y = draw(state) * 2.0f - 1.0f;
        p.z = draw(state) * 2.0f - 1.0f;
    }
    return p;
}

void path(n_t n, n_t count, const float *restrict balls, const float *restrict colours, float *restrict out, int samples) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++)
        for (n_t j = 0; j < n; j++) {
            uint32_t state = (uint32_t)(i * n + j) * 2654435761u + 1u;
            float total = 0;
            for (int s = 0; s < samples; s++) {
                float u = (j + draw(&state)) / n * 4.0f - 2.0f, v = (i + draw(&state)) / n * 4.0f - 2.0f, weight = 1;
                vec3 o = {0, 0, 1}, d = unit((vec3){u, v, -1});
                for (int bounce = 0; bounce < 8; bounce++) {
                    float near = 1e10f;
                    n_t ball = -1;
                    for (n_t k = 0; k < count; k++) {
                        float t = hit_ball(o, d, balls + k * 4);
                        if (t > 1e-3f && t < near) {
                            near = t;
                            ball = k;
                        }
                    }
                    if (ball < 0) {
                        total += weight * 0.2f;
                        break;
                    }
                    const float *c = colours + ball * 4, *b = balls + ball * 4;
                    if (c[3] > 0) {
                        total += weight * c[3];
                        break;
                    }
                    weight *= (c[0] + c[1] + c[2]) / 3.0f;
                    o = (vec3){o.x + d.x * near, o.y + d.y * near, o.z + d.z * near};
                    vec3 r = on_ball(&state);
                    d = unit((vec3){(o.x - b[0]) / b[3] + r.x, (o.y - b[1]) / b[3] + r.y, (o.z - b[2]) / b[3] + r.z});
                }
            }
            out[i * n + j] = total / samples;
        }
}
