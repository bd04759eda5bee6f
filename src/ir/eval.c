/* What every scalar operation means: the one definition, used by the interpreter at run
 * time and by the simplifier at compile time, so that the two cannot differ. Values are
 * 64-bit words as in CONST. No state, no traps: whatever the operands, a value comes out. */
#include "ir/ir.h"
#include "base/libm.h"

#include <string.h>

/* ---- words ----------------------------------------------------------------------- */

uint64_t ing_ir_norm(ing_dtype t, uint64_t v) {
    switch (t) {
    case ING_U1: return v & 1;
    case ING_I8: return (uint64_t)(int64_t)(int8_t)v;
    case ING_I16: return (uint64_t)(int64_t)(int16_t)v;
    case ING_I32: return (uint64_t)(int64_t)(int32_t)v;
    case ING_U8: return (uint8_t)v;
    case ING_U16:
    case ING_F16: return (uint16_t)v;
    case ING_U32:
    case ING_F32: return (uint32_t)v;
    default: return v;
    }
}

static float to_f32(uint64_t v) {
    uint32_t bits = (uint32_t)v;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint64_t of_f32(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static double to_f64(uint64_t v) {
    double d;
    memcpy(&d, &v, sizeof d);
    return d;
}

static uint64_t of_f64(double d) {
    uint64_t v;
    memcpy(&v, &d, sizeof v);
    return v;
}

/* ---- places --------------------------------------------------------------------- */

static uint64_t extent(const uint64_t *bounds) {
    return (int64_t)bounds[1] > (int64_t)bounds[0] ? bounds[1] - bounds[0] : 0;
}

uint64_t ing_ir_axes_count(const uint64_t *bounds, uint32_t n) {
    uint64_t count = 1;
    for (uint32_t k = 0; k < n; k++) count *= extent(bounds + 2u * k);
    return count;
}

uint64_t ing_ir_axes_index(const uint64_t *bounds, uint32_t n, uint64_t number,
                           uint32_t axis) {
    uint64_t rest = number, own = extent(bounds + 2u * axis);
    for (uint32_t k = n; k-- > axis + 1;) {
        uint64_t width = extent(bounds + 2u * k);
        rest = width ? rest / width : 0;
    }
    if (axis) rest = own ? rest % own : 0;
    return bounds[2u * axis] + rest;
}

/* ---- integers -------------------------------------------------------------------- */

static uint64_t int_div(ing_op op, bool is_signed, uint64_t a, uint64_t b) {
    bool quotient = op == ING_OP_DIV || op == ING_OP_FLOORDIV;
    if (b == 0) return 0;
    if (!is_signed) return quotient ? a / b : a % b;
    int64_t x = (int64_t)a, y = (int64_t)b;
    if (y == -1) return quotient ? 0 - a : 0; /* INT_MIN / -1 traps in C */
    int64_t q = x / y, r = x % y;
    if (op == ING_OP_DIV) return (uint64_t)q;
    if (op == ING_OP_REM) return (uint64_t)r;
    bool down = r != 0 && (r < 0) != (y < 0);
    if (op == ING_OP_FLOORDIV) return (uint64_t)(q - down);
    return (uint64_t)(down ? r + y : r);
}

static uint64_t int_pow(bool is_signed, uint64_t a, uint64_t b) {
    if (is_signed && (int64_t)b < 0) {
        if (a == 1) return 1;
        if (a == UINT64_MAX) return b & 1 ? a : 1;
        return 0;
    }
    uint64_t r = 1;
    for (; b; b >>= 1) {
        if (b & 1) r *= a;
        a *= a;
    }
    return r;
}

static uint64_t int_shift(ing_op op, ing_dtype t, uint64_t a, uint64_t b) {
    uint32_t width = ing_dtype_bits(t), n = (uint32_t)(b % width);
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    if (op == ING_OP_SHL) return a << n;
    if (op == ING_OP_SHR || !ing_dtype_is_signed(t)) return (a & mask) >> n;
    uint64_t sign = (int64_t)a < 0 ? ~(UINT64_MAX >> n) : 0;
    return a >> n | sign;
}

static uint64_t int_clz(ing_dtype t, uint64_t a) {
    uint32_t width = ing_dtype_bits(t);
    a <<= 64 - width;
    return a ? (uint64_t)__builtin_clzll(a) : width;
}

static uint64_t int_count(ing_dtype t, uint64_t a) {
    return (uint64_t)__builtin_popcountll(a << (64 - ing_dtype_bits(t)));
}

static bool int_less(bool is_signed, uint64_t a, uint64_t b) {
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static bool eval_int(ing_op op, ing_dtype t, uint64_t a, uint64_t b, uint64_t *out) {
    bool s = ing_dtype_is_signed(t);
    uint64_t r;
    switch (op) {
    case ING_OP_ADD: r = a + b; break;
    case ING_OP_SUB: r = a - b; break;
    case ING_OP_MUL: r = a * b; break;
    case ING_OP_DIV:
    case ING_OP_REM:
    case ING_OP_FLOORDIV:
    case ING_OP_MOD: r = int_div(op, s, a, b); break;
    case ING_OP_POW: r = int_pow(s, a, b); break;
    case ING_OP_MIN: r = int_less(s, b, a) ? b : a; break;
    case ING_OP_MAX: r = int_less(s, a, b) ? b : a; break;
    case ING_OP_AND: r = a & b; break;
    case ING_OP_OR: r = a | b; break;
    case ING_OP_XOR: r = a ^ b; break;
    case ING_OP_SHL:
    case ING_OP_SHR:
    case ING_OP_SAR: r = int_shift(op, t, a, b); break;
    case ING_OP_LT: *out = int_less(s, a, b); return true;
    case ING_OP_LE: *out = !int_less(s, b, a); return true;
    case ING_OP_GT: *out = int_less(s, b, a); return true;
    case ING_OP_GE: *out = !int_less(s, a, b); return true;
    case ING_OP_EQ: *out = a == b; return true;
    case ING_OP_NE: *out = a != b; return true;
    case ING_OP_NEG: r = 0 - a; break;
    case ING_OP_NOT: r = ~a; break;
    case ING_OP_ABS: r = s && (int64_t)a < 0 ? 0 - a : a; break;
    case ING_OP_SGN: r = s && (int64_t)a < 0 ? UINT64_MAX : a != 0; break;
    case ING_OP_FLOOR:
    case ING_OP_CEIL:
    case ING_OP_ROUND:
    case ING_OP_TRUNC: r = a; break;
    case ING_OP_POPCNT: r = int_count(t, a); break;
    case ING_OP_FFS: r = a ? (uint64_t)__builtin_ctzll(a) + 1 : 0; break;
    case ING_OP_CLZ: r = int_clz(t, a); break;
    default: return false;
    }
    *out = ing_ir_norm(t, r);
    return true;
}

/* ---- floats --------------------------------------------------------------------------
 * The same list twice, once in each width, since a result is rounded by the operation
 * itself; f16 uses the f32 list and rounds the result again. Needs -std=c11 (no
 * contraction of a - b * c). FLOAT_CASES(type, suffix of libm names) */

/* `%` and `//` as Python defines them: the remainder is exact but for one rounding and has
 * the divisor's sign, the quotient is the integer that belongs to it. By zero: NaN, and the
 * infinity that `/` gives. */
#define FLOAT_DIVMOD(F, sfx)                           \
    static F py_mod##sfx(F a, F b) {                   \
        F m = fmod##sfx(a, b);                         \
        if (m == 0) return copysign##sfx(0, b);        \
        return (m < 0) != (b < 0) ? m + b : m;         \
    }                                                  \
    static F py_floordiv##sfx(F a, F b) {              \
        if (b == 0) return a / b;                      \
        F m = fmod##sfx(a, b), q = (a - m) / b;        \
        if (m != 0 && (m < 0) != (b < 0)) q -= 1;      \
        if (q == 0) return copysign##sfx(0, a / b);    \
        F whole = floor##sfx(q);                       \
        return q - whole > (F)0.5 ? whole + 1 : whole; \
    }
FLOAT_DIVMOD(float, f)
FLOAT_DIVMOD(double, )

#define FLOAT_CASES(F, sfx)                                         \
    case ING_OP_ADD: *r = a + b; return true;                       \
    case ING_OP_SUB: *r = a - b; return true;                       \
    case ING_OP_MUL: *r = a * b; return true;                       \
    case ING_OP_DIV: *r = a / b; return true;                       \
    case ING_OP_REM: *r = fmod##sfx(a, b); return true;             \
    case ING_OP_FLOORDIV: *r = py_floordiv##sfx(a, b); return true; \
    case ING_OP_MOD: *r = py_mod##sfx(a, b); return true;           \
    case ING_OP_POW: *r = pow##sfx(a, b); return true;              \
    case ING_OP_MIN: *r = b < a || a != a ? b : a; return true;     \
    case ING_OP_MAX: *r = b > a || a != a ? b : a; return true;     \
    case ING_OP_ATAN2: *r = atan2##sfx(a, b); return true;          \
    case ING_OP_NEG: *r = -a; return true;                          \
    case ING_OP_ABS: *r = fabs##sfx(a); return true;                \
    case ING_OP_SGN: *r = (F)((a > 0) - (a < 0)); return true;      \
    case ING_OP_FLOOR: *r = floor##sfx(a); return true;             \
    case ING_OP_CEIL: *r = ceil##sfx(a); return true;               \
    case ING_OP_ROUND: *r = round##sfx(a); return true;             \
    case ING_OP_TRUNC: *r = trunc##sfx(a); return true;             \
    case ING_OP_SQRT: *r = sqrt##sfx(a); return true;               \
    case ING_OP_RSQRT: *r = (F)1 / sqrt##sfx(a); return true;       \
    case ING_OP_SIN: *r = sin##sfx(a); return true;                 \
    case ING_OP_COS: *r = cos##sfx(a); return true;                 \
    case ING_OP_TAN: *r = tan##sfx(a); return true;                 \
    case ING_OP_ASIN: *r = asin##sfx(a); return true;               \
    case ING_OP_ACOS: *r = acos##sfx(a); return true;               \
    case ING_OP_TANH: *r = tanh##sfx(a); return true;               \
    case ING_OP_EXP: *r = exp##sfx(a); return true;                 \
    case ING_OP_LOG: *r = log##sfx(a); return true;                 \
    case ING_OP_SINH: *r = sinh##sfx(a); return true;               \
    case ING_OP_COSH: *r = cosh##sfx(a); return true;               \
    case ING_OP_ASINH: *r = asinh##sfx(a); return true;             \
    case ING_OP_ACOSH: *r = acosh##sfx(a); return true;             \
    case ING_OP_ATANH: *r = atanh##sfx(a); return true;             \
    case ING_OP_ATAN: *r = atan##sfx(a); return true;               \
    case ING_OP_ERF: *r = erf##sfx(a); return true;                 \
    case ING_OP_ERFC: *r = erfc##sfx(a); return true;               \
    case ING_OP_EXP2: *r = exp2##sfx(a); return true;               \
    case ING_OP_EXPM1: *r = expm1##sfx(a); return true;             \
    case ING_OP_LOG2: *r = log2##sfx(a); return true;               \
    case ING_OP_LOG10: *r = log10##sfx(a); return true;             \
    case ING_OP_LOG1P: *r = log1p##sfx(a); return true;             \
    case ING_OP_CBRT: *r = cbrt##sfx(a); return true;               \
    case ING_OP_HYPOT: *r = hypot##sfx(a, b); return true;          \
    default: return false;

static bool f32_op(ing_op op, float a, float b, float *r) {
    switch (op) { FLOAT_CASES(float, f) }
}

static bool f64_op(ing_op op, double a, double b, double *r) {
    switch (op) { FLOAT_CASES(double, ) }
}

static bool compare(ing_op op, double a, double b, uint64_t *out) {
    switch (op) {
    case ING_OP_LT: *out = a < b; return true;
    case ING_OP_LE: *out = a <= b; return true;
    case ING_OP_GT: *out = a > b; return true;
    case ING_OP_GE: *out = a >= b; return true;
    case ING_OP_EQ: *out = a == b; return true;
    case ING_OP_NE: *out = a != b; return true;
    default: return false;
    }
}

static bool eval_float(ing_op op, ing_dtype t, uint64_t a, uint64_t b, uint64_t *out) {
    if (t == ING_F64) {
        double r, x = to_f64(a), y = to_f64(b);
        if (compare(op, x, y, out)) return true;
        if (!f64_op(op, x, y, &r)) return false;
        *out = of_f64(r);
        return true;
    }
    bool half = t == ING_F16;
    float r;
    float x = half ? ing_f16_to_f32((uint16_t)a) : to_f32(a);
    float y = half ? ing_f16_to_f32((uint16_t)b) : to_f32(b);
    if (compare(op, x, y, out)) return true;
    if (!f32_op(op, x, y, &r)) return false;
    *out = half ? ing_f32_to_f16(r) : of_f32(r);
    return true;
}

bool ing_ir_eval(ing_op op, ing_dtype t, uint64_t a, uint64_t b, uint64_t *out) {
    if (ing_dtype_is_float(t)) return eval_float(op, t, a, b, out);
    return ing_dtype_is_int(t) && eval_int(op, t, a, b, out);
}

/* ---- conversions ----------------------------------------------------------------- */

static double float_of(ing_dtype t, uint64_t v) { /* exact */
    if (t == ING_F64) return to_f64(v);
    return t == ING_F32 ? to_f32(v) : ing_f16_to_f32((uint16_t)v);
}

static uint64_t float_to_int(double d, ing_dtype to) {
    uint32_t bits = ing_dtype_bits(to);
    if (to == ING_U1) return d != 0;
    if (d != d) return 0;
    if (ing_dtype_is_signed(to)) {
        double top = ldexp(1.0, (int)bits - 1);
        uint64_t min = ~UINT64_C(0) << (bits - 1);
        if (d >= top) return ~min;
        return d <= -top ? min : (uint64_t)(int64_t)d;
    }
    if (d <= 0) return 0;
    return d >= ldexp(1.0, (int)bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)d;
}

static uint64_t float_to_float(ing_dtype from, ing_dtype to, uint64_t v) {
    if (from == to) return v;
    if (to == ING_F64) return of_f64(float_of(from, v));
    if (to == ING_F32) return of_f32((float)float_of(from, v));
    if (from == ING_F64) return ing_f64_to_f16(to_f64(v));
    return ing_f32_to_f16(to_f32(v));
}

static uint64_t int_to_float(ing_dtype from, ing_dtype to, uint64_t v) {
    bool s = ing_dtype_is_signed(from);
    if (to == ING_F64) return of_f64(s ? (double)(int64_t)v : (double)v);
    /* by way of f32 to f16 is exact where f16 is finite */
    float f = s ? (float)(int64_t)v : (float)v;
    return to == ING_F32 ? of_f32(f) : ing_f32_to_f16(f);
}

uint64_t ing_ir_eval_cast(ing_dtype from, ing_dtype to, uint64_t v) {
    bool ff = ing_dtype_is_float(from), tf = ing_dtype_is_float(to);
    if (ff && tf) return float_to_float(from, to, v);
    if (ff) return float_to_int(float_of(from, v), to);
    if (tf) return int_to_float(from, to, v);
    return to == ING_U1 ? v != 0 : ing_ir_norm(to, v);
}

/* ---- updates of integers ------------------------------------------------------------- */

uint64_t ing_ir_neutral(ing_ir_atomic kind, ing_dtype t) {
    uint64_t low = ing_dtype_is_signed(t) ? UINT64_MAX << (ing_dtype_bits(t) - 1) : 0;
    switch (kind) {
    case ING_IR_ATOMIC_MUL: return 1;
    case ING_IR_ATOMIC_AND: return ing_ir_norm(t, UINT64_MAX);
    case ING_IR_ATOMIC_MIN: return ing_ir_norm(t, ~low);
    case ING_IR_ATOMIC_MAX: return low;
    default: return 0;
    }
}

bool ing_ir_tally_of(const ing_ir_mod *m, ing_type array, ing_ir_tally *out) {
    const ing_type_info *a = ing_ir_type(m, array), *elem = ing_ir_type(m, a->elem);
    bool flat = elem->kind == ING_TYPE_SCALAR || elem->kind == ING_TYPE_TENSOR;
    if (a->kind != ING_TYPE_ARRAY || !flat || !elem->dtype) return false;
    uint64_t bytes = a->place ? ing_place_span(a->place) : elem->size;
    uint64_t width = bytes / ing_dtype_bytes((ing_dtype)elem->dtype);
    *out = (ing_ir_tally){.width = (uint32_t)width,
                          .at = a->place ? (uint64_t)a->place->at : 0,
                          .ndim = a->place ? 0 : a->rank,
                          .dtype = elem->dtype};
    return width <= UINT32_MAX;
}

bool ing_ir_tally_ok(ing_ir_atomic kind, ing_dtype t) {
    bool known = kind < ING_IR_ATOMIC_XCHG && kind != ING_IR_ATOMIC_SUB;
    bool sum = kind == ING_IR_ATOMIC_ADD && (t == ING_F32 || t == ING_F64);
    return sum || (known && ing_dtype_is_int(t) && t != ING_U1);
}
