#include "common.h"

static float square(float t) { return t * t; }
static float cube(float t) { return t * t * t; }
static float quart(float t) { return square(square(t)); }
static float quint(float t) { return quart(t) * t; }
static float flip(float t) { return 1.0f - t; }
static float clamp(float t) { return fmaxf(0.0f, fminf(1.0f, t)); }
static float mix(float a, float b, float t) { return a + (b - a) * t; }
static float out_square(float t) { return flip(square(flip(t))); }
static float out_cube(float t) { return flip(cube(flip(t))); }
static float out_quart(float t) { return flip(quart(flip(t))); }
static float out_quint(float t) { return flip(quint(flip(t))); }
static float both_square(float t) { return t < 0.5f ? 2.0f * square(t) : flip(2.0f * square(flip(t))); }
static float both_cube(float t) { return t < 0.5f ? 4.0f * cube(t) : flip(4.0f * cube(flip(t))); }
static float both_quart(float t) { return t < 0.5f ? 8.0f * quart(t) : flip(8.0f * quart(flip(t))); }
static float both_quint(float t) { return t < 0.5f ? 16.0f * quint(t) : flip(16.0f * quint(flip(t))); }
static float smooth(float t) { return square(t) * (3.0f - 2.0f * t); }
static float smoother(float t) { return cube(t) * (t * (t * 6.0f - 15.0f) + 10.0f); }
static float circle(float t) { return flip(sqrtf(flip(square(t)))); }
static float out_circle(float t) { return sqrtf(flip(square(flip(t)))); }
static float back(float t) { return 2.70158f * cube(t) - 1.70158f * square(t); }
static float out_back(float t) { return flip(back(flip(t))); }
static float both_back(float t) { return mix(back(t), out_back(t), smooth(t)); }
static float hump(float t) { return 4.0f * t * flip(t); }
static float spike(float t) { return t < 0.5f ? 2.0f * t : 2.0f * flip(t); }
static float gain_(float t) { return mix(smooth(t), smoother(t), hump(t)); }
static float bias(float t, float b) { return t / ((1.0f / b - 2.0f) * flip(t) + 1.0f); }
static float step(float t, float e) { return t < e ? 0.0f : 1.0f; }
static float ramp(float t, float a, float b) { return clamp((t - a) / (b - a)); }
static float pulse(float t, float a, float b) { return step(t, a) - step(t, b); }
static float bump(float t) { return smooth(ramp(t, 0.1f, 0.4f)) * smooth(ramp(flip(t), 0.1f, 0.4f)); }

void funcs30(n_t n, const float *restrict x, float *restrict y) {
    #pragma omp parallel for
    for (n_t i = 0; i < n; i++) {
        float t = clamp(x[i]);
        float a = square(t) + cube(t) + quart(t) + quint(t) + out_square(t) + out_cube(t);
        float b = out_quart(t) + out_quint(t) + both_square(t) + both_cube(t) + both_quart(t);
        float c = both_quint(t) + smooth(t) + smoother(t) + circle(t) + out_circle(t) + back(t);
        float d = out_back(t) + both_back(t) + hump(t) + spike(t) + gain_(t) + bias(t, 0.3f);
        y[i] = a + b + c + d + pulse(t, 0.2f, 0.7f) + bump(t);
    }
}
