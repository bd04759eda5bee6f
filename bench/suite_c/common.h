/* What the C of suite.py shares. Where the program needs atomics the macros give them (PLAIN: not, which
   is another program); gcc's own `omp atomic` would be the same loop, but only with -fopenmp. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef ptrdiff_t n_t;

#ifdef PLAIN
#define ADD_F32(p, v) (*(p) += (v))
#define ADD_INT(p, v) (*(p) += (v))
#else
static inline void add_f32(float *p, float v) {
    uint32_t old = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED), now;
    do {
        float f;
        memcpy(&f, &old, 4);
        f += v;
        memcpy(&now, &f, 4);
    } while (!__atomic_compare_exchange_n((uint32_t *)p, &old, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
#define ADD_F32(p, v) add_f32(p, v)
#define ADD_INT(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#endif
