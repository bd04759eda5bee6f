/* The functions that images may import, by name: what LLVM calls without being asked
 * (memory and math functions, the compiler's run-time library), and vector math from
 * libmvec where the machine has it. Called by link.c to decide what is importable and
 * by load.c to fill a GOT. Anything not listed here is not importable: a task reaches
 * the rest of the world through its context only. */
#include "image/image_int.h"
#include "base/libm.h"

#include <dlfcn.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* libgcc; only the addresses are used. */
void __divti3(void);
void __udivti3(void);
void __modti3(void);
void __umodti3(void);
void __multi3(void);
void __powidf2(void);
void __powisf2(void);
void __fixdfti(void);
void __fixsfti(void);
void __fixunsdfti(void);
void __fixunssfti(void);
void __floattidf(void);
void __floattisf(void);
void __floatuntidf(void);
void __floatuntisf(void);

/* ---- half and bfloat16 helpers --------------------------------------------------------
 * Ours, because older libgcc lacks them. Both ABIs pass a 16-bit float in the low bits of
 * the register that a float takes (xmm0; v0), the rest undefined: so these are declared
 * with float and work on its bits, which needs no compiler support for the types. */

static float float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float truncsfhf2(float f) {
    return float_of_bits(ing_f32_to_f16(f));
}

static float truncdfhf2(double d) {
    return float_of_bits(ing_f64_to_f16(d));
}

static float extendhfsf2(float half) {
    return ing_f16_to_f32((uint16_t)bits_of_float(half));
}

/* The older names pass the bits as an integer. */
static float h2f_ieee(uint32_t half) {
    return ing_f16_to_f32((uint16_t)half);
}

static uint32_t f2h_ieee(float f) {
    return ing_f32_to_f16(f);
}

static uint32_t bf16_of_bits(uint32_t bits) {
    if ((bits & 0x7fffffff) > 0x7f800000) return bits >> 16 | 0x40; /* stay a NaN */
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16; /* to nearest, ties to even */
}

static float truncsfbf2(float f) {
    return float_of_bits(bf16_of_bits(bits_of_float(f)));
}

/* Rounding twice to nearest is wrong at ties; rounding to odd first is not. */
static float truncdfbf2(double d) {
    float f = (float)d;
    uint32_t bits = bits_of_float(f);
    if ((double)f != d && d == d && !isinf(f)) {
        if (fabs((double)f) > fabs(d)) bits--; /* toward zero */
        bits |= 1;
    }
    return float_of_bits(bf16_of_bits(bits));
}

/* ---- the table -------------------------------------------------------------------------- */

typedef struct import {
    const char *name;
    void *address;
} import;

static const import imports[] = {
    /* sorted by name */
    {"__divti3", (void *)__divti3},
    {"__extendhfsf2", (void *)extendhfsf2},
    {"__fixdfti", (void *)__fixdfti},
    {"__fixsfti", (void *)__fixsfti},
    {"__fixunsdfti", (void *)__fixunsdfti},
    {"__fixunssfti", (void *)__fixunssfti},
    {"__floattidf", (void *)__floattidf},
    {"__floattisf", (void *)__floattisf},
    {"__floatuntidf", (void *)__floatuntidf},
    {"__floatuntisf", (void *)__floatuntisf},
    {"__gnu_f2h_ieee", (void *)f2h_ieee},
    {"__gnu_h2f_ieee", (void *)h2f_ieee},
    {"__modti3", (void *)__modti3},
    {"__multi3", (void *)__multi3},
    {"__powidf2", (void *)__powidf2},
    {"__powisf2", (void *)__powisf2},
    {"__truncdfbf2", (void *)truncdfbf2},
    {"__truncdfhf2", (void *)truncdfhf2},
    {"__truncsfbf2", (void *)truncsfbf2},
    {"__truncsfhf2", (void *)truncsfhf2},
    {"__udivti3", (void *)__udivti3},
    {"__umodti3", (void *)__umodti3},
    {"acos", (void *)acos},
    {"acosf", (void *)acosf},
    {"acosh", (void *)acosh},
    {"acoshf", (void *)acoshf},
    {"asin", (void *)asin},
    {"asinf", (void *)asinf},
    {"asinh", (void *)asinh},
    {"asinhf", (void *)asinhf},
    {"atan", (void *)atan},
    {"atan2", (void *)atan2},
    {"atan2f", (void *)atan2f},
    {"atanf", (void *)atanf},
    {"atanh", (void *)atanh},
    {"atanhf", (void *)atanhf},
    {"bcmp", (void *)bcmp},
    {"cbrt", (void *)cbrt},
    {"cbrtf", (void *)cbrtf},
    {"ceil", (void *)ceil},
    {"ceilf", (void *)ceilf},
    {"copysign", (void *)copysign},
    {"copysignf", (void *)copysignf},
    {"cos", (void *)cos},
    {"cosf", (void *)cosf},
    {"cosh", (void *)cosh},
    {"coshf", (void *)coshf},
    {"erf", (void *)erf},
    {"erfc", (void *)erfc},
    {"erfcf", (void *)erfcf},
    {"erff", (void *)erff},
    {"exp", (void *)exp},
    {"exp10", (void *)exp10},
    {"exp10f", (void *)exp10f},
    {"exp2", (void *)exp2},
    {"exp2f", (void *)exp2f},
    {"expf", (void *)expf},
    {"expm1", (void *)expm1},
    {"expm1f", (void *)expm1f},
    {"fabs", (void *)fabs},
    {"fabsf", (void *)fabsf},
    {"floor", (void *)floor},
    {"floorf", (void *)floorf},
    {"fma", (void *)fma},
    {"fmaf", (void *)fmaf},
    {"fmax", (void *)fmax},
    {"fmaxf", (void *)fmaxf},
    {"fmin", (void *)fmin},
    {"fminf", (void *)fminf},
    {"fmod", (void *)fmod},
    {"fmodf", (void *)fmodf},
    {"frexp", (void *)frexp},
    {"frexpf", (void *)frexpf},
    {"hypot", (void *)hypot},
    {"hypotf", (void *)hypotf},
    {"ldexp", (void *)ldexp},
    {"ldexpf", (void *)ldexpf},
    {"lgamma", (void *)lgamma},
    {"lgammaf", (void *)lgammaf},
    {"llrint", (void *)llrint},
    {"llrintf", (void *)llrintf},
    {"llround", (void *)llround},
    {"llroundf", (void *)llroundf},
    {"log", (void *)log},
    {"log10", (void *)log10},
    {"log10f", (void *)log10f},
    {"log1p", (void *)log1p},
    {"log1pf", (void *)log1pf},
    {"log2", (void *)log2},
    {"log2f", (void *)log2f},
    {"logb", (void *)logb},
    {"logbf", (void *)logbf},
    {"logf", (void *)logf},
    {"lrint", (void *)lrint},
    {"lrintf", (void *)lrintf},
    {"lround", (void *)lround},
    {"lroundf", (void *)lroundf},
    {"memcmp", (void *)memcmp},
    {"memcpy", (void *)memcpy},
    {"memmove", (void *)memmove},
    {"memset", (void *)memset},
    {"modf", (void *)modf},
    {"modff", (void *)modff},
    {"nearbyint", (void *)nearbyint},
    {"nearbyintf", (void *)nearbyintf},
    {"pow", (void *)pow},
    {"powf", (void *)powf},
    {"remainder", (void *)remainder},
    {"remainderf", (void *)remainderf},
    {"rint", (void *)rint},
    {"rintf", (void *)rintf},
    {"round", (void *)round},
    {"roundeven", (void *)roundeven},
    {"roundevenf", (void *)roundevenf},
    {"roundf", (void *)roundf},
    {"scalbn", (void *)scalbn},
    {"scalbnf", (void *)scalbnf},
    {"sin", (void *)sin},
    {"sincos", (void *)sincos},
    {"sincosf", (void *)sincosf},
    {"sinf", (void *)sinf},
    {"sinh", (void *)sinh},
    {"sinhf", (void *)sinhf},
    {"sqrt", (void *)sqrt},
    {"sqrtf", (void *)sqrtf},
    {"tan", (void *)tan},
    {"tanf", (void *)tanf},
    {"tanh", (void *)tanh},
    {"tanhf", (void *)tanhf},
    {"tgamma", (void *)tgamma},
    {"tgammaf", (void *)tgammaf},
    {"trunc", (void *)trunc},
    {"truncf", (void *)truncf},
};

/* ---- libmvec ------------------------------------------------------------------------------ */

/* registry: libmvec handle; NULL = not tried, its own address = absent */
static void *libmvec;

static void *libmvec_get(void) {
    void *h = __atomic_load_n(&libmvec, __ATOMIC_ACQUIRE);
    if (!h) {
        void *mine = dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL);
        void *want = mine ? mine : &libmvec;
        if (__atomic_compare_exchange_n(&libmvec, &h, want, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            h = want;
        else if (mine)
            dlclose(mine); /* another thread was first */
    }
    return h == &libmvec ? NULL : h;
}

/* Vector variants of math functions: _ZGV<isa><mask><lanes><parameters>_<name>. */
static void *vector_import(const char *name) {
    void *h = libmvec_get();
    return h ? dlsym(h, name) : NULL;
}

/* Called for every image key, so it asks the C library's version, which costs nothing; on a
 * machine with that version and without libmvec, images that need it do not load, and
 * `present` is false when one is compiled. */
uint8_t ing_image_vector_math(void) {
#if defined(__x86_64__) && defined(__GLIBC__)
    unsigned major = 0, minor = 0;
    if (sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor) != 2 || major != 2)
        return 0;
    return minor >= 35 ? 2 : minor >= 22 ? 1 : 0;
#else
    return 0;
#endif
}

bool ing_image_vector_math_present(void) {
    return libmvec_get() != NULL;
}

const char *ing_image_import_name(size_t k) {
    return k < sizeof imports / sizeof *imports ? imports[k].name : NULL;
}

void *ing_image_import(const char *name) {
    if (strncmp(name, "_ZGV", 4) == 0) return vector_import(name);
    size_t lo = 0, hi = sizeof imports / sizeof *imports;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(name, imports[mid].name);
        if (order == 0) return imports[mid].address;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
