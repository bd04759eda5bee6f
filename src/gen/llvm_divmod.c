/* `//` and `%` of floats as LLVM IR: functions of the module, called by llvm_op.c. Whatever
 * fast math allows elsewhere, these two follow src/ir/eval.c to the bit in every mode: no flag
 * is ever written here.
 *
 *  MOD1 With q = floor(a / b), |a / b| < LIMIT, q is the floor of the exact quotient or one above
 *     it, and fma(-q, b, a) is exact or rounds once, as the sum of fmod and b does. The sign of
 *     that remainder tells which: then one more b is added, and q is one less.
 *  MOD2 Beyond LIMIT, for infinities, NaN and a divisor of 0 the definition itself is computed,
 *     with fmod. LIMIT leaves four bits of the mantissa: there the definition's quotient, which
 *     rounds twice, is the exact one as well.
 *  MOD3 Several elements at once as VEC1 says; when MOD1 does not hold for one of
 *     them, all go through the function of one element.
 *  MOD4 Machines without fma compute the definition always: the results are the same. */
#include "gen/gen_int.h"

#include <stdio.h>
#include <string.h>

typedef ing_gen_txt txt;

typedef struct form { /* one element, or several */
    bool mod, f32;
    uint32_t lanes; /* 1: scalar */
    char ty[32];    /* float, <8 x float> */
    char bits[32];  /* i1, <8 x i1> */
    char sfx[24];   /* f32, v8f32 */
} form;

static form make_form(bool mod, bool f32, uint32_t lanes) {
    form f = {.mod = mod, .f32 = f32, .lanes = lanes};
    const char *ty = f32 ? "float" : "double", *sfx = f32 ? "f32" : "f64";
    if (lanes == 1) {
        snprintf(f.ty, sizeof f.ty, "%s", ty);
        snprintf(f.bits, sizeof f.bits, "i1");
        snprintf(f.sfx, sizeof f.sfx, "%s", sfx);
    } else {
        snprintf(f.ty, sizeof f.ty, "<%u x %s>", lanes, ty);
        snprintf(f.bits, sizeof f.bits, "<%u x i1>", lanes);
        snprintf(f.sfx, sizeof f.sfx, "v%u%s", lanes, sfx);
    }
    return f;
}

static const char *name_of(const form *f) {
    static const char *const names[2][2] = {{"ing.floordiv_f64", "ing.floordiv_f32"},
                                            {"ing.mod_f64", "ing.mod_f32"}};
    return names[f->mod][f->f32];
}

/* A number in every element; only such as both widths hold exactly. */
static txt number(const form *f, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const char *ty = f->f32 ? "float" : "double";
    if (f->lanes == 1) return ing_gen_text("0x%016llX", (unsigned long long)bits);
    return ing_gen_text("splat (%s 0x%016llX)", ty, (unsigned long long)bits);
}

static bool has_fma(const ing_gen *g) {
    return ing_gen_level_of(g).fma;
}

static uint32_t bit_of(bool mod, bool f32) {
    return (uint32_t)(mod ? ING_OP_MOD : ING_OP_FLOORDIV) * 2 + f32;
}

txt ing_gen_divmod_call(ing_gen *g, ing_op op, ing_dtype t, txt a, txt b) {
    form f = make_form(op == ING_OP_MOD, t == ING_F32, 1);
    uint32_t bit = bit_of(f.mod, f.f32);
    g->vector_calls[bit / 64] |= 1ull << bit % 64;
    if (!has_fma(g))
        return ing_gen_def(g, "call %s @%s.slow(%s %s, %s %s)", f.ty, name_of(&f), f.ty,
                           a.s, f.ty, b.s);
    return ing_gen_def(g, "call %s @%s(%s %s, %s %s) #%u", f.ty, name_of(&f), f.ty, a.s,
                       f.ty, b.s, ING_GEN_ATTR_VECTOR + bit);
}

/* ---- the functions ------------------------------------------------------------------------ */

static void declare1(ing_gen *g, const form *f, const char *fn) {
    ing_gen_declare(g, "%s @llvm.%s.%s(%s)", f->ty, fn, f->sfx, f->ty);
}

static void declare_used(ing_gen *g, const form *f) {
    declare1(g, f, "floor");
    declare1(g, f, "fabs");
    ing_gen_declare(g, "%s @llvm.copysign.%s(%s, %s)", f->ty, f->sfx, f->ty, f->ty);
    ing_gen_declare(g, "%s @llvm.fma.%s(%s, %s, %s)", f->ty, f->sfx, f->ty, f->ty,
                    f->ty);
    if (f->lanes > 1)
        ing_gen_declare(g, "i1 @llvm.vector.reduce.and.v%ui1(%s)", f->lanes, f->bits);
}

/* %low: the remainder %r is not zero and its sign is not the divisor's. */
static void put_low(ing_gen *g, const form *f) {
    txt zero = number(f, 0);
    ing_bytes_printf(g->out,
                     "  %%rn = fcmp olt %s %%r, %s\n"
                     "  %%bn = fcmp olt %s %%b, %s\n"
                     "  %%odd = xor %s %%rn, %%bn\n"
                     "  %%some = fcmp une %s %%r, %s\n"
                     "  %%low = and %s %%odd, %%some\n",
                     f->ty, zero.s, f->ty, zero.s, f->bits, f->ty, zero.s, f->bits);
}

/* %mod from %r and %low: with the sign of the divisor, zero too. */
static void put_mod(ing_gen *g, const form *f) {
    ing_bytes_printf(g->out,
                     "  %%s = fadd %s %%r, %%b\n"
                     "  %%m = select %s %%low, %s %%s, %s %%r\n"
                     "  %%z = call %s @llvm.copysign.%s(%s %s, %s %%b)\n"
                     "  %%mod = select %s %%some, %s %%m, %s %%z\n",
                     f->ty, f->bits, f->ty, f->ty, f->ty, f->sfx, f->ty, number(f, 0).s,
                     f->ty, f->bits, f->ty, f->ty);
}

/* MOD1: %ok, and %mod or %div. */
static void put_quick(ing_gen *g, const form *f) {
    const char *ty = f->ty, *sfx = f->sfx;
    double limit = f->f32 ? 0x1p20 : 0x1p49;
    declare_used(g, f);
    ing_bytes_printf(g->out,
                     "  %%x = fdiv %s %%a, %%b\n"
                     "  %%q = call %s @llvm.floor.%s(%s %%x)\n"
                     "  %%n = fneg %s %%q\n"
                     "  %%r = call %s @llvm.fma.%s(%s %%n, %s %%b, %s %%a)\n",
                     ty, ty, sfx, ty, ty, ty, sfx, ty, ty, ty);
    ing_bytes_printf(g->out,
                     "  %%ax = call %s @llvm.fabs.%s(%s %%x)\n"
                     "  %%near = fcmp olt %s %%ax, %s\n"
                     "  %%num = fcmp ord %s %%r, %s\n"
                     "  %%ok = and %s %%near, %%num\n",
                     ty, sfx, ty, ty, number(f, limit).s, ty, number(f, 0).s, f->bits);
    put_low(g, f);
    if (f->mod) {
        put_mod(g, f);
        return;
    }
    ing_bytes_printf(g->out,
                     "  %%m = fsub %s %%q, %s\n"
                     "  %%div = select %s %%low, %s %%m, %s %%q\n",
                     ty, number(f, 1).s, f->bits, ty, ty);
}

/* MOD2: Python's definition, as in eval.c. */
static void put_slow(ing_gen *g, const form *f) {
    const char *ty = f->ty, *sfx = f->sfx;
    declare_used(g, f);
    ing_bytes_printf(g->out,
                     "\ndefine internal %s @%s.slow(%s %%a, %s %%b) cold noinline "
                     "nounwind willreturn memory(none) {\n"
                     "  %%r = frem %s %%a, %%b\n",
                     ty, name_of(f), ty, ty, ty);
    put_low(g, f);
    if (f->mod) {
        put_mod(g, f);
        ing_bytes_printf(g->out, "  ret %s %%mod\n}\n", ty);
        return;
    }
    txt zero = number(f, 0), one = number(f, 1);
    ing_bytes_printf(g->out,
                     "  %%x = fdiv %s %%a, %%b\n"
                     "  %%by0 = fcmp oeq %s %%b, %s\n"
                     "  %%d = fsub %s %%a, %%r\n"
                     "  %%e = fdiv %s %%d, %%b\n"
                     "  %%e1 = fsub %s %%e, %s\n"
                     "  %%v = select i1 %%low, %s %%e1, %s %%e\n"
                     "  %%fl = call %s @llvm.floor.%s(%s %%v)\n"
                     "  %%over = fsub %s %%v, %%fl\n"
                     "  %%up = fcmp ogt %s %%over, %s\n",
                     ty, ty, zero.s, ty, ty, ty, one.s, ty, ty, ty, sfx, ty, ty, ty,
                     number(f, 0.5).s);
    ing_bytes_printf(g->out,
                     "  %%fl1 = fadd %s %%fl, %s\n"
                     "  %%w = select i1 %%up, %s %%fl1, %s %%fl\n"
                     "  %%none = fcmp oeq %s %%v, %s\n"
                     "  %%z = call %s @llvm.copysign.%s(%s %s, %s %%x)\n"
                     "  %%y = select i1 %%none, %s %%z, %s %%w\n"
                     "  %%div = select i1 %%by0, %s %%x, %s %%y\n"
                     "  ret %s %%div\n}\n",
                     ty, one.s, ty, ty, ty, zero.s, ty, sfx, ty, zero.s, ty, ty, ty, ty,
                     ty, ty);
}

static void put_scalar(ing_gen *g, const form *f) {
    const char *ty = f->ty, *name = name_of(f);
    ing_bytes_printf(g->out, "\ndefine internal %s @%s(%s %%a, %s %%b) #%d {\n", ty,
                     name, ty, ty, ING_GEN_ATTR_MATH);
    put_quick(g, f);
    ing_bytes_printf(
        g->out,
        "  br i1 %%ok, label %%quick, label %%slow, !prof !%d\n"
        "quick:\n  ret %s %%%s\n"
        "slow:\n  %%c = call %s @%s.slow(%s %%a, %s %%b)\n  ret %s %%c\n}\n",
        ING_GEN_MD_LIKELY, ty, f->mod ? "mod" : "div", ty, name, ty, ty, ty);
}

/* MOD3 */
static void put_vector(ing_gen *g, const form *f) {
    const char *ty = f->ty, *name = name_of(f), *one = f->f32 ? "float" : "double";
    ing_bytes_printf(g->out, "\ndefine internal %s @%s.%u(%s %%a, %s %%b) #%d {\n", ty,
                     name, f->lanes, ty, ty, ING_GEN_ATTR_MATH);
    put_quick(g, f);
    ing_bytes_printf(g->out,
                     "  %%all = call i1 @llvm.vector.reduce.and.v%ui1(%s %%ok)\n"
                     "  br i1 %%all, label %%quick, label %%slow, !prof !%d\n"
                     "quick:\n  ret %s %%%s\nslow:\n",
                     f->lanes, f->bits, ING_GEN_MD_LIKELY, ty, f->mod ? "mod" : "div");
    char made[16] = "poison";
    for (uint32_t k = 0; k < f->lanes; k++) {
        ing_bytes_printf(g->out,
                         "  %%a%u = extractelement %s %%a, i32 %u\n"
                         "  %%b%u = extractelement %s %%b, i32 %u\n"
                         "  %%c%u = call %s @%s(%s %%a%u, %s %%b%u)\n"
                         "  %%v%u = insertelement %s %s, %s %%c%u, i32 %u\n",
                         k, ty, k, k, ty, k, k, one, name, one, k, one, k, k, ty, made,
                         one, k, k);
        snprintf(made, sizeof made, "%%v%u", k);
    }
    ing_bytes_printf(g->out, "  ret %s %s\n}\n", ty, made);
    ing_gen_keep(g, "%s.%u", name, f->lanes);
}

static void put_functions(ing_gen *g, bool mod, bool f32) {
    form f = make_form(mod, f32, 1);
    uint32_t bit = bit_of(mod, f32), most = f32 ? 8 : 4;
    put_slow(g, &f);
    if (!has_fma(g)) return;
    put_scalar(g, &f);
    ing_gen_keep(g, "%s", name_of(&f)); /* nobody takes its parameters apart (VEC4) */
    ing_bytes_printf(g->out, "attributes #%u = { \"vector-function-abi-variant\"=\"",
                     ING_GEN_ATTR_VECTOR + bit);
    for (uint32_t lanes = most; lanes >= 4; lanes /= 2)
        ing_bytes_printf(g->out, "%s_ZGVdN%uvv_%s(%s.%u)", lanes == most ? "" : ",",
                         lanes, name_of(&f), name_of(&f), lanes);
    ing_bytes_puts(g->out, "\" }\n");
    for (uint32_t lanes = most; lanes >= 4; lanes /= 2) {
        form wide = make_form(mod, f32, lanes);
        put_vector(g, &wide);
    }
}

void ing_gen_divmod_functions(ing_gen *g) {
    for (int k = 0; k < 4; k++) {
        uint32_t bit = bit_of(k & 2, k & 1);
        if (g->vector_calls[bit / 64] >> bit % 64 & 1) put_functions(g, k & 2, k & 1);
    }
}
