/* Scalar types: the table behind ING_DTYPE_LIST and the conversions of binary16. Called
 * by every folder that knows types; compiled images import the conversions. Those must
 * work with any FTZ/DAZ setting, so they compute on bits. */
#include "base/base.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t bits;
    char cls;
} table[] = {
#define X(name, text, bits, cls) {#text, bits, #cls[0]},
    ING_DTYPE_LIST(X)
#undef X
};

static bool known(ing_dtype t) {
    return (uint32_t)t < ING_DTYPE_N;
}

const char *ing_dtype_name(ing_dtype t) {
    return known(t) ? table[t].name : "?";
}

uint32_t ing_dtype_bits(ing_dtype t) {
    return known(t) ? table[t].bits : 0;
}

uint32_t ing_dtype_bytes(ing_dtype t) {
    return (ing_dtype_bits(t) + 7) / 8;
}

char ing_dtype_class(ing_dtype t) {
    return known(t) ? table[t].cls : 'V';
}

float ing_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 0x3FF;
    uint32_t bits;
    if (exp == 31) { /* a signalling NaN comes out quiet, as from the hardware */
        bits = 0x7F800000u | man << 13 | (man ? 0x400000u : 0);
    } else if (exp) {
        bits = (exp + 112) << 23 | man << 13;
    } else if (man) { /* subnormal: man * 2^-24, with the leading one made implicit */
        uint32_t top = 31 - (uint32_t)__builtin_clz(man);
        bits = (top + 103) << 23 | (man << (23 - top) & 0x7FFFFFu);
    } else {
        bits = 0;
    }
    bits |= sign;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* value >> shift, rounded to nearest, ties to even; 1 <= shift <= 63. */
static uint32_t shift_round(uint64_t value, uint32_t shift) {
    uint64_t q = value >> shift, rest = value & ((1ull << shift) - 1);
    uint64_t half = 1ull << (shift - 1);
    return (uint32_t)(q + (rest > half || (rest == half && (q & 1))));
}

/* One rounding, straight from 53 bits to 11: going through float would round twice. */
uint16_t ing_f64_to_f16(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    int exp = (int)(bits >> 52 & 0x7FF) - 1023;
    uint64_t man = bits & 0xFFFFFFFFFFFFFull;
    uint32_t h;
    if (exp == 1024) {
        h = 0x7C00 | (man ? 0x200 | (uint32_t)(man >> 42) : 0);
    } else if (exp > 15) {
        h = 0x7C00;
    } else if (exp >= -14) { /* a carry out of the mantissa raises the exponent */
        h = shift_round((uint64_t)(exp + 15) << 52 | man, 42);
    } else if (exp >= -25) { /* subnormal, in units of 2^-24 */
        h = shift_round(man | 1ull << 52, (uint32_t)(28 - exp));
    } else {
        h = 0;
    }
    return (uint16_t)(sign | h);
}

/* Widening is exact, so this too rounds once. A subnormal float that DAZ turns to zero
 * is far below half of the smallest binary16. */
uint16_t ing_f32_to_f16(float f) {
    return ing_f64_to_f16((double)f);
}
