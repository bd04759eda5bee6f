/* What this machine's processor can do, as a rung of the ladder of instruction set levels
 * (R18, names in src/image/isa.c). Asked once: CPUID may trap in a virtual machine
 * (microseconds). No __builtin_cpu_supports beside it: not every compiler's runtime has what
 * that reads. Must never name a rung whose registers the operating system does not save. */
#include "base/base.h"

#if defined(__x86_64__)

#include <cpuid.h>

static uint64_t xcr0(void) {
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool all(uint32_t reg, uint32_t bits) {
    return (reg & bits) == bits;
}

static uint32_t machine_rung(void) {
    uint32_t a, b, c1, d, b7, c, cx = 0;
    if (!__get_cpuid(1, &a, &b, &c1, &d)) return 0;
    if (!__get_cpuid(0x80000001, &a, &b, &cx, &d)) cx = 0;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c, &d)) b7 = 0;
    enum { LAHF = 1 << 0, LZCNT = 1 << 5 }; /* leaf 0x80000001, ecx */
    if (!all(c1, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT |
                     bit_CMPXCHG16B) ||
        !all(cx, LAHF))
        return 0;
    if (!all(c1, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE) ||
        !all(b7, bit_AVX2 | bit_BMI | bit_BMI2) || !all(cx, LZCNT))
        return 1;
    uint64_t saved = xcr0();
    if ((saved & 0x06) != 0x06) return 1; /* xmm, ymm */
    if (!all(b7,
             bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) ||
        (saved & 0xe6) != 0xe6) /* and opmask, both halves of zmm */
        return 2;
    return 3;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

static uint32_t machine_rung(void) {
    /* HWCAP_CRC32, ATOMICS, FPHP, ASIMDHP, ASIMDRDM, DCPOP */
    const unsigned long need =
        1ul << 7 | 1ul << 8 | 1ul << 9 | 1ul << 10 | 1ul << 12 | 1ul << 16;
    return (getauxval(AT_HWCAP) & need) == need;
}

#else

static uint32_t machine_rung(void) {
    return 0;
}

#endif

/* registry: the rung and 1, 0 = not asked yet: it is the machine's, and the caller may have
 * no struct yet. */
static uint32_t known;

uint32_t ing_cpu_rung(void) {
    uint32_t got = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!got) {
        got = machine_rung() + 1;
        __atomic_store_n(&known, got, __ATOMIC_RELAXED);
    }
    return got - 1;
}
