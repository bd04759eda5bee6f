/* Arithmetic, comparisons, conversions and math functions as LLVM IR. Called by
 * llvm_flow.c for each instruction and by llvm_mem.c for plain updates. Every result must
 * equal the interpreter's: integers wrap, division by zero gives 0, shift counts are
 * masked, floats convert by saturation; f16 is computed in f32 and rounded after each
 * operation. Flags that would assume the absence of NaN or infinity are never written. */
#include "gen/gen_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef ing_gen_txt txt;

static txt scalar(ing_dtype t) {
    static const char *const names[ING_DTYPE_N] = {
        [ING_VOID] = "void",  [ING_U1] = "i1",    [ING_I8] = "i8",
        [ING_I16] = "i16",    [ING_I32] = "i32",  [ING_I64] = "i64",
        [ING_U8] = "i8",      [ING_U16] = "i16",  [ING_U32] = "i32",
        [ING_U64] = "i64",    [ING_F16] = "half", [ING_F32] = "float",
        [ING_F64] = "double",
    };
    return ing_gen_text("%s", names[t]);
}

/* ---- constants ------------------------------------------------------------------------ */

/* LLVM writes a float as the bits of the double of the same value; a NaN keeps its
 * payload that way, which a conversion in C might not. */
static uint64_t widen_f32_bits(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits >> 31) << 63;
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return sign | 0x7ff0000000000000u | (uint64_t)(bits & 0x7fffffu) << 29;
    float f;
    memcpy(&f, &bits, sizeof f);
    double d = f;
    uint64_t out;
    memcpy(&out, &d, sizeof out);
    return out;
}

static txt constant(ing_gen *g, const ing_ir_inst *i) {
    uint64_t bits = ing_ir_const_bits(i);
    switch (i->type) {
    case ING_U1: return ing_gen_text("%s", bits & 1 ? "true" : "false");
    case ING_F16: return ing_gen_text("0xH%04X", (unsigned)(bits & 0xffff));
    case ING_F32:
        return ing_gen_text("0x%016llX",
                            (unsigned long long)widen_f32_bits((uint32_t)bits));
    case ING_F64: return ing_gen_text("0x%016llX", (unsigned long long)bits);
    case ING_I8: return ing_gen_text("%d", (int8_t)bits);
    case ING_I16: return ing_gen_text("%d", (int16_t)bits);
    case ING_I32: return ing_gen_text("%d", (int32_t)bits);
    case ING_U8: return ing_gen_text("%u", (uint8_t)bits);
    case ING_U16: return ing_gen_text("%u", (uint16_t)bits);
    case ING_U32: return ing_gen_text("%u", (uint32_t)bits);
    case ING_I64: return ing_gen_text("%lld", (long long)bits);
    case ING_U64: return ing_gen_text("%llu", (unsigned long long)bits);
    default:
        ing_gen_fail(g, "constant of a type that has none");
        return ing_gen_text("0");
    }
}

/* The integer of a float that is in the range of its type. */
static txt truncated(ing_gen *g, txt ft, ing_dtype to, txt x) {
    bool narrow = ing_dtype_bits(to) < 32;
    const char *op = narrow || ing_dtype_is_signed(to) ? "fptosi" : "fptoui";
    txt r =
        ing_gen_def(g, "%s %s %s to %s", op, ft.s, x.s, narrow ? "i32" : scalar(to).s);
    return narrow ? ing_gen_def(g, "trunc i32 %s to %s", r.s, scalar(to).s) : r;
}

/* ---- integer division ------------------------------------------------------------------ */

typedef struct division {  /* operands made safe, and what to do with the result */
    txt safe;              /* divisor that cannot trap */
    txt is_zero, is_minus; /* u1, "" when impossible */
} division;

/* The divisor of a division that must not trap: 0 and (signed) -1 become 1. A constant
 * other than these needs no guard, which keeps division by constants optimisable. */
static division guard(ing_gen *g, ing_dtype t, txt b, const ing_ir_inst *b_const) {
    division d = {.safe = b};
    txt ty = scalar(t);
    bool is_signed = ing_dtype_is_signed(t);
    int64_t c = b_const ? (int64_t)ing_ir_const_bits(b_const) : 0;
    if (b_const && c != 0 && !(is_signed && c == -1)) return d;
    d.is_zero = ing_gen_def(g, "icmp eq %s %s, 0", ty.s, b.s);
    txt bad = d.is_zero;
    if (is_signed) {
        d.is_minus = ing_gen_def(g, "icmp eq %s %s, -1", ty.s, b.s);
        bad = ing_gen_def(g, "or i1 %s, %s", d.is_zero.s, d.is_minus.s);
    }
    d.safe = ing_gen_def(g, "select i1 %s, %s 1, %s %s", bad.s, ty.s, ty.s, b.s);
    return d;
}

static txt unless_zero(ing_gen *g, const division *d, txt ty, txt v) {
    if (!d->is_zero.s[0]) return v;
    return ing_gen_def(g, "select i1 %s, %s 0, %s %s", d->is_zero.s, ty.s, ty.s, v.s);
}

/* u1 that tells whether the truncated quotient is one above the floor: the remainder is
 * not zero and its sign is not the divisor's. */
static txt needs_floor(ing_gen *g, txt ty, txt rem, txt b) {
    txt ne = ing_gen_def(g, "icmp ne %s %s, 0", ty.s, rem.s);
    txt x = ing_gen_def(g, "xor %s %s, %s", ty.s, rem.s, b.s);
    txt lt = ing_gen_def(g, "icmp slt %s %s, 0", ty.s, x.s);
    return ing_gen_def(g, "and i1 %s, %s", ne.s, lt.s);
}

/* Exponent of a signed constant that is a power of two above 1, else 0. */
static int power_of_two(ing_dtype t, const ing_ir_inst *b_const) {
    if (!b_const || !ing_dtype_is_signed(t)) return 0;
    int64_t c = (int64_t)ing_ir_const_bits(b_const);
    return c > 1 && (c & (c - 1)) == 0 ? __builtin_ctzll((uint64_t)c) : 0;
}

/* Whether a division is better done in floats: there are vectors of them. Only where iterations
 * do not wait for each other and can become vectors: one after the other an integer is faster. */
static bool divides_in_floats(const ing_gen *g, ing_dtype t,
                              const ing_ir_inst *b_const) {
    return !b_const && t != ING_U1 && ing_dtype_bits(t) <= 32 && g->loop &&
           g->plan->loops[g->loop] & ING_GEN_WIDE;
}

/* The quotient, by way of floats that hold both operands and more than twice their bits: it is
 * at least 1 / |a| of itself away from the next integer, so division rounds it to none. */
static txt float_quotient(ing_gen *g, bool floor, ing_dtype t, txt a, txt b) {
    bool s = ing_dtype_is_signed(t), narrow = ing_dtype_bits(t) <= 16;
    txt ft = scalar(narrow ? ING_F32 : ING_F64), it = scalar(t);
    const char *op = s ? "sitofp" : "uitofp", *sfx = narrow ? "f32" : "f64";
    txt x = ing_gen_def(g, "%s %s %s to %s", op, it.s, a.s, ft.s);
    txt y = ing_gen_def(g, "%s %s %s to %s", op, it.s, b.s, ft.s);
    txt q = ing_gen_def(g, "fdiv %s %s, %s", ft.s, x.s, y.s);
    if (floor && s) {
        ing_gen_declare(g, "%s @llvm.floor.%s(%s)", ft.s, sfx, ft.s);
        q = ing_gen_def(g, "call %s @llvm.floor.%s(%s %s)", ft.s, sfx, ft.s, q.s);
    }
    return truncated(g, ft, t, q);
}

static txt int_quotient(ing_gen *g, bool floor, ing_dtype t, txt a, txt b,
                        const ing_ir_inst *b_const) {
    txt ty = scalar(t);
    int shift = floor ? power_of_two(t, b_const) : 0;
    if (shift) return ing_gen_def(g, "ashr %s %s, %d", ty.s, a.s, shift);
    division d = guard(g, t, b, b_const);
    bool floats = divides_in_floats(g, t, b_const);
    txt q;
    if (floats)
        q = float_quotient(g, floor, t, a, d.safe);
    else
        q = ing_gen_def(g, "%s %s %s, %s", ing_dtype_is_signed(t) ? "sdiv" : "udiv",
                        ty.s, a.s, d.safe.s);
    if (!ing_dtype_is_signed(t)) return unless_zero(g, &d, ty, q);
    if (floor && !floats) {
        txt r = ing_gen_def(g, "srem %s %s, %s", ty.s, a.s, d.safe.s);
        txt low = needs_floor(g, ty, r, d.safe);
        txt one = ing_gen_def(g, "sext i1 %s to %s", low.s, ty.s);
        q = ing_gen_def(g, "add %s %s, %s", ty.s, q.s, one.s);
    }
    if (d.is_minus.s[0]) {
        txt neg = ing_gen_def(g, "sub %s 0, %s", ty.s, a.s);
        q = ing_gen_def(g, "select i1 %s, %s %s, %s %s", d.is_minus.s, ty.s, neg.s,
                        ty.s, q.s);
    }
    return unless_zero(g, &d, ty, q);
}

static txt int_remainder(ing_gen *g, bool floor, ing_dtype t, txt a, txt b,
                         const ing_ir_inst *b_const) {
    txt ty = scalar(t);
    int shift = floor ? power_of_two(t, b_const) : 0;
    if (shift) return ing_gen_def(g, "and %s %s, %lld", ty.s, a.s, (1ll << shift) - 1);
    division d = guard(g, t, b, b_const);
    if (divides_in_floats(g, t, b_const)) {
        txt q = float_quotient(g, floor, t, a, d.safe);
        txt whole = ing_gen_def(g, "mul %s %s, %s", ty.s, q.s, d.safe.s);
        txt r = ing_gen_def(g, "sub %s %s, %s", ty.s, a.s, whole.s);
        return ing_dtype_is_signed(t) ? r : unless_zero(g, &d, ty, r);
    }
    if (!ing_dtype_is_signed(t))
        return unless_zero(g, &d, ty,
                           ing_gen_def(g, "urem %s %s, %s", ty.s, a.s, d.safe.s));
    /* A divisor of 0 or -1 was replaced by 1: the remainder is 0 already. */
    txt r = ing_gen_def(g, "srem %s %s, %s", ty.s, a.s, d.safe.s);
    if (!floor) return r;
    txt low = needs_floor(g, ty, r, d.safe);
    txt add = ing_gen_def(g, "select i1 %s, %s %s, %s 0", low.s, ty.s, d.safe.s, ty.s);
    return ing_gen_def(g, "add %s %s, %s", ty.s, r.s, add.s);
}

/* ---- integers ---------------------------------------------------------------------------- */

static txt int_intrinsic2(ing_gen *g, const char *name, ing_dtype t, txt a, txt b) {
    txt ty = scalar(t);
    ing_gen_declare(g, "%s @llvm.%s.%s(%s, %s)", ty.s, name, ty.s, ty.s, ty.s);
    return ing_gen_def(g, "call %s @llvm.%s.%s(%s %s, %s %s)", ty.s, name, ty.s, ty.s,
                       a.s, ty.s, b.s);
}

static txt int_intrinsic1(ing_gen *g, const char *name, bool flag, ing_dtype t, txt a) {
    txt ty = scalar(t);
    ing_gen_declare(g, "%s @llvm.%s.%s(%s%s)", ty.s, name, ty.s, ty.s,
                    flag ? ", i1" : "");
    return ing_gen_def(g, "call %s @llvm.%s.%s(%s %s%s)", ty.s, name, ty.s, ty.s, a.s,
                       flag ? ", i1 false" : "");
}

static txt int_shift(ing_gen *g, const char *name, ing_dtype t, txt a, txt b) {
    txt ty = scalar(t);
    if (t == ING_U1) return a; /* every count is 0 modulo 1 */
    txt n = ing_gen_def(g, "and %s %s, %u", ty.s, b.s, ing_dtype_bits(t) - 1);
    return ing_gen_def(g, "%s %s %s, %s", name, ty.s, a.s, n.s);
}

static txt int_sign(ing_gen *g, ing_dtype t, txt a) {
    txt ty = scalar(t);
    txt pos = ing_gen_def(g, "icmp %s %s %s, 0", ing_dtype_is_signed(t) ? "sgt" : "ne",
                          ty.s, a.s);
    if (t == ING_U1) return pos;
    txt p = ing_gen_def(g, "zext i1 %s to %s", pos.s, ty.s);
    if (!ing_dtype_is_signed(t)) return p;
    txt neg = ing_gen_def(g, "icmp slt %s %s, 0", ty.s, a.s);
    txt n = ing_gen_def(g, "sext i1 %s to %s", neg.s, ty.s);
    return ing_gen_def(g, "or %s %s, %s", ty.s, p.s, n.s);
}

static txt int_ffs(ing_gen *g, ing_dtype t, txt a) {
    txt ty = scalar(t);
    if (t == ING_U1) return a;
    txt n = int_intrinsic1(g, "cttz", true, t, a);
    txt at = ing_gen_def(g, "add %s %s, 1", ty.s, n.s);
    txt zero = ing_gen_def(g, "icmp eq %s %s, 0", ty.s, a.s);
    return ing_gen_def(g, "select i1 %s, %s 0, %s %s", zero.s, ty.s, ty.s, at.s);
}

static txt int_power(ing_gen *g, ing_dtype t, txt a, txt b) {
    txt ty = scalar(t);
    g->pow_types |= 1u << t;
    return ing_gen_def(g, "call %s @ing_pow_%s(%s %s, %s %s)", ty.s, ing_dtype_name(t),
                       ty.s, a.s, ty.s, b.s);
}

static txt int_arith(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b,
                     const ing_ir_inst *b_const) {
    txt ty = scalar(t);
    bool s = ing_dtype_is_signed(t);
    switch (op) {
    case ING_OP_ADD: return ing_gen_def(g, "add %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_SUB: return ing_gen_def(g, "sub %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_MUL: return ing_gen_def(g, "mul %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_DIV: return int_quotient(g, false, t, a, b, b_const);
    case ING_OP_FLOORDIV: return int_quotient(g, true, t, a, b, b_const);
    case ING_OP_REM: return int_remainder(g, false, t, a, b, b_const);
    case ING_OP_MOD: return int_remainder(g, true, t, a, b, b_const);
    case ING_OP_POW: return int_power(g, t, a, b);
    case ING_OP_MIN: return int_intrinsic2(g, s ? "smin" : "umin", t, a, b);
    case ING_OP_MAX: return int_intrinsic2(g, s ? "smax" : "umax", t, a, b);
    case ING_OP_AND: return ing_gen_def(g, "and %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_OR: return ing_gen_def(g, "or %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_XOR: return ing_gen_def(g, "xor %s %s, %s", ty.s, a.s, b.s);
    case ING_OP_SHL: return int_shift(g, "shl", t, a, b);
    case ING_OP_SHR: return int_shift(g, "lshr", t, a, b);
    case ING_OP_SAR: return int_shift(g, s ? "ashr" : "lshr", t, a, b);
    case ING_OP_NEG: return ing_gen_def(g, "sub %s 0, %s", ty.s, a.s);
    case ING_OP_NOT: return ing_gen_def(g, "xor %s %s, -1", ty.s, a.s);
    case ING_OP_ABS: return s ? int_intrinsic1(g, "abs", true, t, a) : a;
    case ING_OP_SGN: return int_sign(g, t, a);
    case ING_OP_FLOOR:
    case ING_OP_CEIL:
    case ING_OP_ROUND:
    case ING_OP_TRUNC: return a;
    case ING_OP_POPCNT: return int_intrinsic1(g, "ctpop", false, t, a);
    case ING_OP_FFS: return int_ffs(g, t, a);
    case ING_OP_CLZ: return int_intrinsic1(g, "ctlz", true, t, a);
    default: ing_gen_fail(g, "integer operation that does not exist"); return a;
    }
}

/* Power by squaring; a negative exponent leaves 1, -1 or 0, as exact division would. */
void ing_gen_pow_functions(ing_gen *g) {
    for (uint32_t t = 0; t < ING_DTYPE_N; t++) {
        if (!(g->pow_types >> t & 1)) continue;
        const char *n = ing_dtype_name((ing_dtype)t);
        txt y = scalar((ing_dtype)t);
        ing_bytes_printf(
            g->out, "\ndefine internal %s @ing_pow_%s(%s %%a, %s %%b) #0 {\nentry:\n",
            y.s, n, y.s, y.s);
        if (ing_dtype_is_signed((ing_dtype)t))
            ing_bytes_printf(g->out,
                             "  %%neg = icmp slt %s %%b, 0\n"
                             "  br i1 %%neg, label %%below, label %%loop\n"
                             "below:\n"
                             "  %%odd.b = trunc %s %%b to i1\n"
                             "  %%one = icmp eq %s %%a, 1\n"
                             "  %%mone = icmp eq %s %%a, -1\n"
                             "  %%m = select i1 %%odd.b, %s -1, %s 1\n"
                             "  %%x = select i1 %%mone, %s %%m, %s 0\n"
                             "  %%y = select i1 %%one, %s 1, %s %%x\n"
                             "  ret %s %%y\n",
                             y.s, y.s, y.s, y.s, y.s, y.s, y.s, y.s, y.s, y.s, y.s);
        else
            ing_bytes_puts(g->out, "  br label %loop\n");
        ing_bytes_printf(g->out,
                         "loop:\n"
                         "  %%r = phi %s [ %s, %%entry ], [ %%r2, %%next ]\n"
                         "  %%p = phi %s [ %%a, %%entry ], [ %%p2, %%next ]\n"
                         "  %%e = phi %s [ %%b, %%entry ], [ %%e2, %%next ]\n"
                         "  %%end = icmp eq %s %%e, 0\n"
                         "  br i1 %%end, label %%done, label %%next\nnext:\n",
                         y.s, t == ING_U1 ? "true" : "1", y.s, y.s, y.s);
        ing_bytes_printf(g->out,
                         t == ING_U1 ? "  %%odd = and i1 %%e, true\n"
                                     : "  %%odd = trunc %s %%e to i1\n",
                         y.s);
        ing_bytes_printf(g->out,
                         "  %%rp = mul %s %%r, %%p\n"
                         "  %%r2 = select i1 %%odd, %s %%rp, %s %%r\n"
                         "  %%p2 = mul %s %%p, %%p\n",
                         y.s, y.s, y.s, y.s);
        ing_bytes_printf(g->out,
                         t == ING_U1 ? "  %%e2 = xor i1 %%e, %%e\n"
                                     : "  %%e2 = lshr %s %%e, 1\n",
                         y.s);
        ing_bytes_printf(g->out, "  br label %%loop\ndone:\n  ret %s %%r\n}\n", y.s);
    }
}

/* As LLVM writes a number that is exact in its type. */
static txt float_number(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return ing_gen_text("0x%016llX", (unsigned long long)bits);
}

/* ---- floats -------------------------------------------------------------------------------- */

typedef struct math_fn {
    const char *intrinsic; /* llvm.<name>.f32 / .f64, or NULL */
    const char *libm;      /* f64 name; f32 adds an f; NULL: exact by definition */
} math_fn;

static const math_fn math_fns[ING_OP_N] = {
    [ING_OP_ABS] = {"fabs", NULL},    [ING_OP_FLOOR] = {"floor", NULL},
    [ING_OP_CEIL] = {"ceil", NULL},   [ING_OP_ROUND] = {"round", NULL},
    [ING_OP_TRUNC] = {"trunc", NULL}, [ING_OP_SQRT] = {"sqrt", NULL},
    [ING_OP_SIN] = {"sin", "sin"},    [ING_OP_COS] = {"cos", "cos"},
    [ING_OP_EXP] = {"exp", "exp"},    [ING_OP_LOG] = {"log", "log"},
    [ING_OP_POW] = {"pow", "pow"},    [ING_OP_MIN] = {"minnum", NULL},
    [ING_OP_MAX] = {"maxnum", NULL},  [ING_OP_TAN] = {NULL, "tan"},
    [ING_OP_ASIN] = {NULL, "asin"},   [ING_OP_ACOS] = {NULL, "acos"},
    [ING_OP_TANH] = {NULL, "tanh"},   [ING_OP_ATAN2] = {NULL, "atan2"},
    [ING_OP_SINH] = {NULL, "sinh"},   [ING_OP_COSH] = {NULL, "cosh"},
    [ING_OP_ASINH] = {NULL, "asinh"}, [ING_OP_ACOSH] = {NULL, "acosh"},
    [ING_OP_ATANH] = {NULL, "atanh"}, [ING_OP_ATAN] = {NULL, "atan"},
    [ING_OP_ERF] = {NULL, "erf"},     [ING_OP_ERFC] = {NULL, "erfc"},
    [ING_OP_EXP2] = {NULL, "exp2"},   [ING_OP_EXPM1] = {NULL, "expm1"},
    [ING_OP_LOG2] = {NULL, "log2"},   [ING_OP_LOG10] = {NULL, "log10"},
    [ING_OP_LOG1P] = {NULL, "log1p"}, [ING_OP_CBRT] = {NULL, "cbrt"},
    [ING_OP_HYPOT] = {NULL, "hypot"},
};

static bool is_binary(ing_op op) {
    return ing_op_get(op)->operands[1] == 'v';
}

/* Without fast math the library's own function is called, also for constants, and not what
 * LLVM knows of one of that name: it folds f32 constants in f64 and makes a square root of
 * x ** 0.5, which differ in the last bit (R23). */
static txt float_call(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b) {
    const math_fn *f = &math_fns[op];
    txt ty = scalar(t);
    char name[32];
    bool library = f->libm && (!g->o->fast_math || !f->intrinsic);
    if (!library)
        snprintf(name, sizeof name, "llvm.%s.f%u", f->intrinsic, ing_dtype_bits(t));
    else
        snprintf(name, sizeof name, "%s%s", f->libm, t == ING_F32 ? "f" : "");
    const char *attr = !library ? "" : g->o->fast_math ? " #2" : " #3";
    const char *afn = g->o->fast_math ? "afn " : "";
    if (is_binary(op)) {
        ing_gen_declare(g, "%s @%s(%s, %s)%s", ty.s, name, ty.s, ty.s, attr);
        return ing_gen_def(g, "call %s%s%s @%s(%s %s, %s %s)%s", g->fmf, afn, ty.s,
                           name, ty.s, a.s, ty.s, b.s, attr);
    }
    ing_gen_declare(g, "%s @%s(%s)%s", ty.s, name, ty.s, attr);
    /* Without afn a square root stays exact under fast math, and costs no more. */
    return ing_gen_def(g, "call %s%s%s @%s(%s %s)%s", g->fmf,
                       op == ING_OP_SQRT ? "" : afn, ty.s, name, ty.s, a.s, attr);
}

static txt float_sign(ing_gen *g, ing_dtype t, txt a) {
    txt ty = scalar(t);
    txt pos = ing_gen_def(g, "fcmp ogt %s %s, 0.0", ty.s, a.s);
    txt neg = ing_gen_def(g, "fcmp olt %s %s, 0.0", ty.s, a.s);
    txt n = ing_gen_def(g, "select i1 %s, %s -1.0, %s 0.0", neg.s, ty.s, ty.s);
    return ing_gen_def(g, "select i1 %s, %s 1.0, %s %s", pos.s, ty.s, ty.s, n.s);
}

/* The one that is first unless the other is truly beyond it or it is a NaN; decides the
 * sign of zero too, which the intrinsics leave open. */
static txt float_min_max(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b) {
    txt ty = scalar(t);
    txt beyond = ing_gen_def(g, "fcmp %s %s %s, %s", op == ING_OP_MIN ? "olt" : "ogt",
                             ty.s, b.s, a.s);
    txt nan = ing_gen_def(g, "fcmp uno %s %s, %s", ty.s, a.s, a.s);
    txt take = ing_gen_def(g, "or i1 %s, %s", beyond.s, nan.s);
    return ing_gen_def(g, "select i1 %s, %s %s, %s %s", take.s, ty.s, b.s, ty.s, a.s);
}

static txt float2(ing_gen *g, const char *op, const char *more, ing_dtype t, txt a,
                  txt b) {
    return ing_gen_def(g, "%s %s%s%s %s, %s", op, g->fmf, more, scalar(t).s, a.s, b.s);
}

static double exponent_of(const ing_ir_inst *c) {
    uint64_t bits = ing_ir_const_bits(c);
    if (c->type == ING_F32) bits = widen_f32_bits((uint32_t)bits);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* An exponent for which LLVM has products and a root: 3, -2, 1.5. */
static bool is_half_integer(const ing_ir_inst *c) {
    double v = c ? exponent_of(c) : NAN;
    return isfinite(v) && fabs(v) < 1e6 && 2 * v == floor(2 * v);
}

/* One that takes two roots: 1.75, -0.25. More products would lose accuracy. */
static bool is_quarter(const ing_ir_inst *c) {
    double v = c ? exponent_of(c) : NAN;
    return fabs(v) < 4 && 4 * v == floor(4 * v) && 2 * v != floor(2 * v);
}

bool ing_gen_calls_vector(const ing_gen *g, const ing_ir_func *f,
                          const ing_ir_inst *i) {
    if (!ing_gen_has_vector(g, i->op)) return false;
    const ing_ir_inst *e = i->op == ING_OP_POW ? &f->insts.at[i->b] : NULL;
    return !e || e->op != ING_OP_CONST || !(is_half_integer(e) || is_quarter(e));
}

/* x ** e as a product of powers 1/4, 1/2 and 1, in turn of what is left; of x = -inf, which has no
 * root, it is that of inf. A negative exponent is the reciprocal. */
static txt quarter_power(ing_gen *g, ing_dtype t, txt x, double e) {
    txt ty = scalar(t), r, none = ing_gen_text("0.0");
    txt low = float_number(-INFINITY), high = float_number(INFINITY);
    txt is = ing_gen_def(g, "fcmp oeq %s %s, %s", ty.s, x.s, low.s);
    txt p = ing_gen_def(g, "select i1 %s, %s %s, %s %s", is.s, ty.s, high.s, ty.s, x.s);
    txt half = float_call(g, ING_OP_SQRT, t, p, none);
    r = float_call(g, ING_OP_SQRT, t, half, none);
    unsigned quarters = (unsigned)(4 * fabs(e));
    if (quarters & 2) r = float2(g, "fmul", "", t, r, half);
    for (unsigned k = 0; k < quarters / 4; k++) r = float2(g, "fmul", "", t, r, p);
    if (e > 0) return r;
    return ing_gen_def(g, "fdiv %s%s 1.0, %s", g->fmf, ty.s, r.s);
}

/* t is f32 or f64. */
static txt float_arith(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b,
                       const ing_ir_inst *b_const) {
    txt ty = scalar(t);
    /* Reciprocals only of constants: elsewhere arcp would make LLVM use the 12-bit
     * estimate instructions in vector code. */
    const char *arcp = b_const && g->o->fast_math ? "arcp " : "";
    switch (op) {
    case ING_OP_ADD: return float2(g, "fadd", "", t, a, b);
    case ING_OP_SUB: return float2(g, "fsub", "", t, a, b);
    case ING_OP_MUL: return float2(g, "fmul", "", t, a, b);
    case ING_OP_DIV: return float2(g, "fdiv", arcp, t, a, b);
    case ING_OP_REM: return float2(g, "frem", "", t, a, b);
    case ING_OP_FLOORDIV:
    case ING_OP_MOD: return ing_gen_divmod_call(g, op, t, a, b);
    case ING_OP_MIN:
    case ING_OP_MAX:
        if (!g->o->fast_math) return float_min_max(g, op, t, a, b);
        break;
    case ING_OP_NEG: return ing_gen_def(g, "fneg %s %s", ty.s, a.s);
    case ING_OP_SGN: return float_sign(g, t, a);
    case ING_OP_RSQRT:
        return ing_gen_def(g, "fdiv %s%s 1.0, %s", g->fmf, ty.s,
                           float_call(g, ING_OP_SQRT, t, a, b).s);
    default: break;
    }
    if (op == ING_OP_POW && g->o->fast_math && is_quarter(b_const))
        return quarter_power(g, t, a, exponent_of(b_const));
    bool two = op == ING_OP_POW && strcmp(a.s, "0x4000000000000000") == 0;
    if (two && ing_gen_takes_vector(g, ING_OP_EXP2, t))
        return ing_gen_vector_call(g, ING_OP_EXP2, t, b, b);
    if (ing_gen_takes_vector(g, op, t) &&
        !(op == ING_OP_POW && is_half_integer(b_const)))
        return ing_gen_vector_call(g, op, t, a, b);
    if (math_fns[op].intrinsic || math_fns[op].libm) return float_call(g, op, t, a, b);
    ing_gen_fail(g, "float operation that does not exist");
    return a;
}

txt ing_gen_arith(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b,
                  const ing_ir_inst *b_const) {
    if (ing_dtype_is_int(t)) return int_arith(g, op, t, a, b, b_const);
    if (t == ING_F16) {
        txt wa = ing_gen_def(g, "fpext half %s to float", a.s), wb = b;
        if (is_binary(op)) wb = ing_gen_def(g, "fpext half %s to float", b.s);
        txt r = float_arith(g, op, ING_F32, wa, wb, NULL);
        return ing_gen_def(g, "fptrunc float %s to half", r.s);
    }
    if (ing_dtype_is_float(t)) return float_arith(g, op, t, a, b, b_const);
    ing_gen_fail(g, "arithmetic on a type that has none");
    return a;
}

/* ---- comparisons, conversions ------------------------------------------------------------ */

static txt compare(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b) {
    static const char *const names[3][6] = {
        {"slt", "sle", "sgt", "sge", "eq", "ne"},
        {"ult", "ule", "ugt", "uge", "eq", "ne"},
        {"olt", "ole", "ogt", "oge", "oeq", "une"},
    };
    int row = ing_dtype_is_float(t) ? 2 : !ing_dtype_is_signed(t);
    return ing_gen_def(g, "%s %s %s %s, %s", row == 2 ? "fcmp" : "icmp",
                       names[row][op - ING_OP_LT], scalar(t).s, a.s, b.s);
}

/* x above `low`, else `low`, which NaN becomes too. */
static txt at_least(ing_gen *g, txt ft, txt x, double low) {
    txt c = float_number(low),
        is = ing_gen_def(g, "fcmp ogt %s %s, %s", ft.s, x.s, c.s);
    return ing_gen_def(g, "select i1 %s, %s %s, %s %s", is.s, ft.s, x.s, ft.s, c.s);
}

/* Saturates, and makes 0 of NaN, in steps that there are for vectors: llvm.fptosi.sat becomes
 * code for one element at a time. Where the type of the float has the greatest integer, both
 * bounds are applied before; else a float that reaches beyond is found by comparison. */
static txt float_to_int(ing_gen *g, ing_dtype from, ing_dtype to, txt a) {
    if (from == ING_F16) {
        a = ing_gen_def(g, "fpext half %s to float", a.s);
        from = ING_F32;
    }
    bool is_signed = ing_dtype_is_signed(to);
    txt ft = scalar(from), it = scalar(to), r;
    uint32_t bits = ing_dtype_bits(to) - is_signed;
    double beyond = ldexp(1.0, (int)bits);
    txt y = at_least(g, ft, a, is_signed ? -beyond : 0.0);
    if (bits <= (from == ING_F32 ? 24 : 53)) {
        txt top = float_number(beyond - 1.0);
        txt in = ing_gen_def(g, "fcmp olt %s %s, %s", ft.s, y.s, top.s);
        y = ing_gen_def(g, "select i1 %s, %s %s, %s %s", in.s, ft.s, y.s, ft.s, top.s);
        r = truncated(g, ft, to, y);
    } else {
        txt over =
            ing_gen_def(g, "fcmp oge %s %s, %s", ft.s, a.s, float_number(beyond).s);
        y = ing_gen_def(g, "select i1 %s, %s 0.0, %s %s", over.s, ft.s, ft.s, y.s);
        r = truncated(g, ft, to, y);
        uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        r = ing_gen_def(g, "select i1 %s, %s %llu, %s %s", over.s, it.s,
                        (unsigned long long)most, it.s, r.s);
    }
    if (!is_signed) return r;
    txt number = ing_gen_def(g, "fcmp ord %s %s, 0.0", ft.s, a.s);
    return ing_gen_def(g, "select i1 %s, %s %s, %s 0", number.s, it.s, r.s, it.s);
}

txt ing_gen_cast(ing_gen *g, ing_dtype from, ing_dtype to, txt a) {
    txt ft = scalar(from), tt = scalar(to);
    bool ff = ing_dtype_is_float(from), tf = ing_dtype_is_float(to);
    uint32_t fb = ing_dtype_bits(from), tb = ing_dtype_bits(to);
    if (from == to) return a;
    if (to == ING_U1)
        return ff ? ing_gen_def(g, "fcmp une %s %s, 0.0", ft.s, a.s)
                  : ing_gen_def(g, "icmp ne %s %s, 0", ft.s, a.s);
    if (ff && !tf) return float_to_int(g, from, to, a);
    if (!ff &&
        to == ING_F16) { /* rounds as once: f32 has twice the bits and two more */
        txt w = ing_gen_cast(g, from, ING_F32, a);
        return ing_gen_def(g, "fptrunc float %s to half", w.s);
    }
    const char *op;
    if (ff)
        op = tb > fb ? "fpext" : "fptrunc";
    else if (tf)
        op = ing_dtype_is_signed(from) ? "sitofp" : "uitofp";
    else if (tb == fb)
        return a;
    else if (tb < fb)
        op = "trunc";
    else
        op = ing_dtype_is_signed(from) ? "sext" : "zext";
    return ing_gen_def(g, "%s %s %s to %s", op, ft.s, a.s, tt.s);
}

static txt bit_cast(ing_gen *g, ing_type from, ing_type to, txt a) {
    if (from >= ING_DTYPE_N || to >= ING_DTYPE_N) {
        ing_gen_fail(g, "bitcast of an aggregate");
        return a;
    }
    txt ft = scalar((ing_dtype)from), tt = scalar((ing_dtype)to);
    if (strcmp(ft.s, tt.s) == 0) return a;
    return ing_gen_def(g, "bitcast %s %s to %s", ft.s, a.s, tt.s);
}

/* ---- dispatch ------------------------------------------------------------------------------ */

/* R22: no signed wrap only where the pass proved that a subscript is the sole use. */
static txt subscript_arith(ing_gen *g, const ing_ir_inst *i, ing_dtype t, txt a,
                           txt b) {
    const char *op = i->op == ING_OP_ADD ? "add" : i->op == ING_OP_SUB ? "sub" : "mul";
    return ing_gen_def(g, "%s nsw %s %s, %s", op, scalar(t).s, a.s, b.s);
}

/* ING_IR_NUMBERS: LLVM knows the least of all iterations by these flags. */
static txt least_number(ing_gen *g, const ing_ir_inst *i, txt a, txt b) {
    txt ty = scalar((ing_dtype)i->type);
    const char *name = math_fns[i->op].intrinsic;
    uint32_t bits = ing_dtype_bits((ing_dtype)i->type);
    ing_gen_declare(g, "%s @llvm.%s.f%u(%s, %s)", ty.s, name, bits, ty.s, ty.s);
    return ing_gen_def(g, "call nnan nsz %s @llvm.%s.f%u(%s %s, %s %s)", ty.s, name,
                       bits, ty.s, a.s, ty.s, b.s);
}

bool ing_gen_value_op(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    txt *v = g->vals;
    if (i->op == ING_OP_CONST) {
        v[id] = constant(g, i);
        return true;
    }
    if (!ing_op_is_arith(i->op) && ing_op_class_of(i->op) != ING_OPC_CONVERT)
        return false;
    ing_type from = ing_gen_type_of(g, i->a);
    ing_dtype t = from < ING_DTYPE_N ? (ing_dtype)from : ING_VOID;
    switch (i->op) {
    case ING_OP_CAST:
        v[id] = ing_gen_cast(g, t, (ing_dtype)i->type, v[i->a]);
        return true;
    case ING_OP_BITCAST: v[id] = bit_cast(g, from, i->type, v[i->a]); return true;
    case ING_OP_SELECT: {
        txt ty = ing_gen_type(g, i->type);
        v[id] = ing_gen_def(g, "select i1 %s, %s %s, %s %s", v[i->a].s, ty.s, v[i->b].s,
                            ty.s, v[i->c].s);
        return true;
    }
    default: break;
    }
    bool binary = is_binary((ing_op)i->op);
    txt b = binary ? v[i->b] : ing_gen_text("0");
    const ing_ir_inst *bi = binary ? ing_gen_inst(g, i->b) : NULL;
    if (bi && bi->op != ING_OP_CONST) bi = NULL;
    bool sum = i->op == ING_OP_ADD || i->op == ING_OP_SUB || i->op == ING_OP_MUL;
    bool nsw = (i->flags & ING_IR_NSW) && ing_dtype_is_signed(t) && sum;
    if (ing_op_class_of(i->op) == ING_OPC_COMPARE)
        v[id] = compare(g, (ing_op)i->op, t, v[i->a], b);
    else if (i->flags & ING_IR_NUMBERS)
        v[id] = least_number(g, i, v[i->a], b);
    else if (nsw)
        v[id] = subscript_arith(g, i, t, v[i->a], b);
    else if (!ing_gen_fused(g, id, &v[id]))
        v[id] = ing_gen_arith(g, (ing_op)i->op, t, v[i->a], b, bi);
    return true;
}
