/* Math functions through the vector library (libmvec) as LLVM IR. Called by llvm_op.c under
 * fast math, when the machine has the library and 256-bit vectors; must never be used
 * without fast math: the library is accurate to 4 ulp, not exact.
 *
 *  VEC1 A kernel calls @ing.<name>, a function of one element; its `vector-function-abi-variant`
 *     names what computes eight (f32) or four of them, with 512-bit vectors twice as many, so the
 *     loop vectoriser can take that.
 *  VEC2 @ing.<name> itself computes with the same library function, on one lane. So an element
 *     gets the same value in vector code and in the rest of a loop, wherever a piece of it
 *     begins (R23).
 *  VEC3 There are variants of fewer elements down to four, for loops that also hold wider values
 *     and for the rest of a row: the same function with its elements repeated; and of twice as many,
 *     for loops that also hold narrower ones: two calls.
 *  VEC4 the variants are kept in @llvm.compiler.used until the vectoriser ran.
 *  VEC5 tasks with a call prefer vectors of the function's width, and align their stack to them:
 *     every vector is kept there across a call, and LLVM would let it straddle two cache lines.
 *     Nine functions of f32, 2**18 elements: 1.88 ms of 512 bits without that, 1.51 with it;
 *     1.88 of 256 bits.
 *  VEC6 Where a power is not a normal number the library computes element by element. So the argument
 *     of such an element is moved by `shift`, exactly, and the power multiplied by that of `shift`.
 *  VEC7 Where no vector can be made of a call (PLAN11 in llvm_plan.c), functions that take less time there are
 *     the C library's. ns of one number, Zen 5, f32 and f64: pow 20 -> 3.5 and 17 -> 8.4, exp 8.7 -> 2.1 and 8.2
 *     -> 3.3, sin 3.2 -> 2.2 of f32, but 3.7 -> 7.8 of f64; special numbers are dealt with sixteen times: log of
 *     what is below 0 40 -> 2.4. */
#include "gen/gen_int.h"

#include <stdio.h>
#include <string.h>

typedef ing_gen_txt txt;

typedef struct vector_fn {
    const char *name; /* f64; f32 adds an f */
    uint8_t since;    /* of ing_gen_options.vector_math */
    uint8_t narrow;   /* bits: f64, f32 take less time as two of 256 bits (VEC5) */
    /* bits: f64, f32 take less time in the C library, one number (VEC7) */
    uint8_t alone;
} vector_fn;

static const vector_fn vector_fns[ING_OP_N] = {
    [ING_OP_SIN] = {"sin", 1, 0, 2},   [ING_OP_COS] = {"cos", 1, 0, 2},
    [ING_OP_EXP] = {"exp", 1, 0, 3},   [ING_OP_LOG] = {"log", 1, 0, 3},
    [ING_OP_POW] = {"pow", 1, 0, 3},   [ING_OP_TAN] = {"tan", 2},
    [ING_OP_ASIN] = {"asin", 2, 2, 3}, [ING_OP_ACOS] = {"acos", 2, 0, 1},
    [ING_OP_TANH] = {"tanh", 2},       [ING_OP_ATAN2] = {"atan2", 2},
    [ING_OP_SINH] = {"sinh", 2},       [ING_OP_COSH] = {"cosh", 2},
    [ING_OP_ASINH] = {"asinh", 2},     [ING_OP_ACOSH] = {"acosh", 2},
    [ING_OP_ATANH] = {"atanh", 2},     [ING_OP_ATAN] = {"atan", 2, 0, 2},
    [ING_OP_ERF] = {"erf", 2, 2, 3},   [ING_OP_ERFC] = {"erfc", 2},
    [ING_OP_EXP2] = {"exp2", 2, 0, 3}, [ING_OP_EXPM1] = {"expm1", 2},
    [ING_OP_LOG2] = {"log2", 2, 0, 3}, [ING_OP_LOG10] = {"log10", 2},
    [ING_OP_LOG1P] = {"log1p", 2},     [ING_OP_CBRT] = {"cbrt", 2},
    [ING_OP_HYPOT] = {"hypot", 2},
};

enum { WIDEST = 16 }; /* elements of a variant */

/* VEC6. From `zero` down powers are 0, from `huge` on infinite; between `low` and `high` they are normal. exp(-200)
 * took 3.4 ns of f32 and exp(-2000) 5.2 of f64, where exp(1.5) takes 0.24 and 0.56. */
typedef struct reach {
    double zero, low, high, huge, shift;
    double up, down; /* the powers of shift and of -shift */
} reach;

static const reach of_exp[2] = {
    {-746, -707, 708, 1024, 512, 0x1.9476504ba852ep+738, 0x1.44109edb20931p-739},
    {-104, -87, 88, 128, 64, 0x1.425982p+92, 0x1.969d48p-93},
};

static const reach of_exp2[2] = {
    {-1076, -1021, 1022, 1400, 512, 0x1p512, 0x1p-512},
    {-151, -125, 126, 160, 64, 0x1p64, 0x1p-64},
};

static bool is_binary(uint32_t op) {
    return ing_op_get((ing_op)op)->operands[1] == 'v';
}

/* 512-bit vectors (VEC5). */
static bool is_wide(const ing_gen *g) {
    return ing_gen_level_of(g).vector_bits == 512;
}

bool ing_gen_has_vector(const ing_gen *g, uint32_t op) {
    uint8_t since = vector_fns[op].since;
    bool any = ing_gen_level_of(g).vector_bits != 0;
    return g->o->fast_math && any && since && since <= g->o->vector_math;
}

bool ing_gen_takes_vector(const ing_gen *g, uint32_t op, ing_dtype t) {
    if (!ing_gen_has_vector(g, op)) return false;
    if (!(vector_fns[op].alone & (t == ING_F32 ? 2 : 1))) return true;
    return g->loop ? !(g->plan->loops[g->loop] & ING_GEN_KNOTTY) : g->plan->exposed;
}

uint32_t ing_gen_vector_width(const ing_gen *g) {
    for (uint32_t bit = 0; bit < 2 * ING_OP_N; bit++)
        if (vector_fns[bit / 2].name && g->vector_calls[bit / 64] >> bit % 64 & 1)
            return is_wide(g) ? 512 : 256;
    return 0;
}

static txt unary(ing_gen *g, uint32_t bit, txt a) {
    const char *ty = bit & 1 ? "float" : "double";
    return ing_gen_def(g, "call %s%s @ing.%s%s(%s %s) #%u", g->fmf, ty,
                       vector_fns[bit / 2].name, bit & 1 ? "f" : "", ty, a.s,
                       ING_GEN_ATTR_VECTOR + bit);
}

static txt real(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return ing_gen_text("0x%016llX", (unsigned long long)bits);
}

/* `yes` where `is` holds, else `no`; all of type ty. */
static txt either(ing_gen *g, const char *ty, txt is, txt yes, txt no) {
    return ing_gen_def(g, "select i1 %s, %s %s, %s %s", is.s, ty, yes.s, ty, no.s);
}

/* VEC6. No flags: NaN passes every comparison, and sums stay as they are written. */
static txt power(ing_gen *g, uint32_t bit, const reach *r, txt a) {
    const char *ty = bit & 1 ? "float" : "double";
    txt low = ing_gen_def(g, "fcmp olt %s %s, %s", ty, a.s, real(r->low).s);
    txt high = ing_gen_def(g, "fcmp ogt %s %s, %s", ty, a.s, real(r->high).s);
    txt zero = ing_gen_def(g, "fcmp olt %s %s, %s", ty, a.s, real(r->zero).s);
    txt huge = ing_gen_def(g, "fcmp ogt %s %s, %s", ty, a.s, real(r->huge).s);
    txt by = either(g, ty, low, real(r->shift), real(0));
    txt times = either(g, ty, low, real(r->down), real(1));
    by = either(g, ty, high, real(-r->shift), by);
    times = either(g, ty, high, real(r->up), times);
    a = either(g, ty, huge, real(r->huge), either(g, ty, zero, real(r->zero), a));
    a = ing_gen_def(g, "fadd %s %s, %s", ty, a.s, by.s);
    return ing_gen_def(g, "fmul %s %s, %s", ty, unary(g, bit, a).s, times.s);
}

txt ing_gen_vector_call(ing_gen *g, uint32_t op, ing_dtype t, txt a, txt b) {
    bool f32 = t == ING_F32;
    const char *ty = f32 ? "float" : "double";
    uint32_t bit = op * 2 + f32;
    g->vector_calls[bit / 64] |= 1ull << bit % 64;
    if (op == ING_OP_EXP) return power(g, bit, &of_exp[f32], a);
    if (op == ING_OP_EXP2) return power(g, bit, &of_exp2[f32], a);
    if (!is_binary(op)) return unary(g, bit, a);
    return ing_gen_def(g, "call %s%s @ing.%s%s(%s %s, %s %s) #%u", g->fmf, ty,
                       vector_fns[op].name, f32 ? "f" : "", ty, a.s, ty, b.s,
                       ING_GEN_ATTR_VECTOR + bit);
}

/* ---- the functions ------------------------------------------------------------------------ */

typedef struct fn { /* one that is wanted */
    char name[16];  /* sinf */
    const char *ty;
    uint32_t lanes, n_args;
    uint32_t most;       /* lanes of a variant */
    char isa;            /* d: 256 bits, e: 512 */
    const char *mangled; /* v or vv */
} fn;

static bool wanted(const ing_gen *g, uint32_t bit, fn *out) {
    uint32_t op = bit / 2;
    if (!vector_fns[op].name || !(g->vector_calls[bit / 64] >> bit % 64 & 1))
        return false;
    bool f32 = bit & 1, two = is_binary(op);
    snprintf(out->name, sizeof out->name, "%s%s", vector_fns[op].name, f32 ? "f" : "");
    out->ty = f32 ? "float" : "double";
    bool wide = is_wide(g) && !(vector_fns[op].narrow >> f32 & 1);
    out->lanes = (f32 ? 8 : 4) * (wide ? 2 : 1);
    out->isa = wide ? 'e' : 'd';
    out->most = is_wide(g) ? WIDEST : out->lanes;
    out->n_args = two ? 2 : 1;
    out->mangled = two ? "vv" : "v";
    return true;
}

/* Of lanes k * f->lanes and on: %rk of %wk.0 and %wk.1. */
static void put_library_call(ing_gen *g, const fn *f, uint32_t k) {
    ing_bytes_printf(g->out, "  %%r%u = call <%u x %s> @_ZGV%cN%u%s_%s(", k, f->lanes,
                     f->ty, f->isa, f->lanes, f->mangled, f->name);
    for (uint32_t a = 0; a < f->n_args; a++)
        ing_bytes_printf(g->out, "%s<%u x %s> %%w%u.%u", a ? ", " : "", f->lanes, f->ty,
                         k, a);
    ing_bytes_puts(g->out, ")\n");
}

static void put_signature(ing_gen *g, const fn *f, const char *ret, const char *name) {
    ing_bytes_printf(g->out, "\ndefine internal %s @%s(", ret, name);
    for (uint32_t k = 0; k < f->n_args; k++)
        ing_bytes_printf(g->out, "%s%s %%x%u", k ? ", " : "", ret, k);
    ing_bytes_printf(g->out, ") #%u {\n", ING_GEN_ATTR_MATH);
}

/* One element (VEC2): all lanes hold it, so that none raises what it would not. */
static void put_scalar(ing_gen *g, const fn *f) {
    char name[32];
    snprintf(name, sizeof name, "ing.%s", f->name);
    put_signature(g, f, f->ty, name);
    for (uint32_t k = 0; k < f->n_args; k++)
        ing_bytes_printf(g->out,
                         "  %%v%u = insertelement <%u x %s> poison, %s %%x%u, i32 0\n"
                         "  %%w0.%u = shufflevector <%u x %s> %%v%u, <%u x %s> poison, "
                         "<%u x i32> zeroinitializer\n",
                         k, f->lanes, f->ty, f->ty, k, k, f->lanes, f->ty, k, f->lanes,
                         f->ty, f->lanes);
    put_library_call(g, f, 0);
    ing_bytes_printf(g->out,
                     "  %%e = extractelement <%u x %s> %%r0, i32 0\n  ret %s %%e\n}\n",
                     f->lanes, f->ty, f->ty);
}

/* Lanes from, from + 1, ... of n, again and again, as the mask of a shuffle to `to` lanes. */
static void put_mask(ing_gen *g, uint32_t from, uint32_t n, uint32_t to) {
    ing_bytes_printf(g->out, "<%u x i32> <", to);
    for (uint32_t k = 0; k < to; k++)
        ing_bytes_printf(g->out, "%si32 %u", k ? ", " : "", (from + k) % n);
    ing_bytes_puts(g->out, ">\n");
}

/* One vector of n lanes from %r0 and %r1, or from a part of %r0. */
static void put_result(ing_gen *g, const fn *f, uint32_t n, uint32_t calls) {
    ing_bytes_printf(g->out, "  %%h = shufflevector <%u x %s> %%r0, <%u x %s> %s, ",
                     f->lanes, f->ty, f->lanes, f->ty, calls > 1 ? "%r1" : "poison");
    put_mask(g, 0, calls > 1 ? 2 * f->lanes : n, calls > 1 ? 2 * f->lanes : n);
    ing_bytes_printf(g->out, "  ret <%u x %s> %%h\n}\n", n, f->ty);
}

/* Fewer elements, or twice as many (VEC3). */
static void put_part(ing_gen *g, const fn *f, uint32_t n) {
    char name[32], ty[24];
    uint32_t calls = n > f->lanes ? 2 : 1;
    snprintf(name, sizeof name, "ing.%s.%u", f->name, n);
    snprintf(ty, sizeof ty, "<%u x %s>", n, f->ty);
    put_signature(g, f, ty, name);
    for (uint32_t k = 0; k < calls; k++) {
        for (uint32_t a = 0; a < f->n_args; a++) {
            ing_bytes_printf(g->out, "  %%w%u.%u = shufflevector %s %%x%u, %s poison, ",
                             k, a, ty, a, ty);
            put_mask(g, k * f->lanes, n, f->lanes);
        }
        put_library_call(g, f, k);
    }
    put_result(g, f, n, calls);
}

/* The next number of lanes that there is a variant for, besides the library's own: 0 = none. */
static uint32_t next_part(const fn *f, uint32_t n) {
    n = n ? n / 2 : f->most;
    while (n > 2 * f->lanes || n == f->lanes) n /= 2;
    return n >= 4 ? n : 0;
}

static void put_declaration(ing_gen *g, const fn *f) {
    ing_bytes_printf(g->out, "\ndeclare <%u x %s> @_ZGV%cN%u%s_%s(", f->lanes, f->ty,
                     f->isa, f->lanes, f->mangled, f->name);
    for (uint32_t k = 0; k < f->n_args; k++)
        ing_bytes_printf(g->out, "%s<%u x %s>", k ? ", " : "", f->lanes, f->ty);
    ing_bytes_printf(g->out, ") #%u\n", ING_GEN_ATTR_MATH);
}

/* The attribute of the calls (VEC1): which function computes how many elements. */
static void put_attribute(ing_gen *g, const fn *f, uint32_t bit) {
    ing_bytes_printf(
        g->out,
        "attributes #%u = { \"vector-function-abi-variant\"=\"_ZGV%cN%u%s_ing."
        "%s(_ZGV%cN%u%s_%s)",
        ING_GEN_ATTR_VECTOR + bit, f->isa, f->lanes, f->mangled, f->name, f->isa,
        f->lanes, f->mangled, f->name);
    for (uint32_t n = next_part(f, 0); n; n = next_part(f, n))
        ing_bytes_printf(g->out, ",_ZGVdN%u%s_ing.%s(ing.%s.%u)", n, f->mangled,
                         f->name, f->name, n);
    ing_bytes_puts(g->out, "\" }\n");
}

void ing_gen_vector_functions(ing_gen *g) {
    fn f;
    for (uint32_t bit = 0; bit < 2 * ING_OP_N; bit++) {
        if (!wanted(g, bit, &f)) continue;
        put_declaration(g, &f);
        put_scalar(g, &f);
        for (uint32_t n = next_part(&f, 0); n; n = next_part(&f, n)) put_part(g, &f, n);
        put_attribute(g, &f, bit);
        /* The attribute says how many arguments there are: none is to be left out because it
         * is a constant in every call. */
        ing_gen_keep(g, "ing.%s", f.name);
        ing_gen_keep(g, "_ZGV%cN%u%s_%s", f.isa, f.lanes, f.mangled, f.name);
        for (uint32_t n = next_part(&f, 0); n; n = next_part(&f, n))
            ing_gen_keep(g, "ing.%s.%u", f.name, n);
    }
}
