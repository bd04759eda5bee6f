/* Random numbers as LLVM IR. Called by llvm_flow.c, and by llvm_service.c for each RANDOM. Repeats
 * src/ir/random.c word for word (RAND1 to RAND3); a test compares the two.
 *
 *  DRAW1 A function that draws keeps its stream (%rand.mask, and %rand.state, which each draw moves) in
 *     locals that LLVM makes registers: a loop that draws can be vectorised.
 *  DRAW2 They are in the context around calls of funcs that draw, and at the entry and the return
 *     of these. Those accesses never join the access group of a parallel loop: all iterations of a
 *     thread share the context.
 *  DRAW3 A task computes its two words once, at its entry. */
#include "gen/gen_int.h"

#include <stddef.h>

typedef ing_gen_txt txt;

#define TAG ", !tbaa !4" /* ING_GEN_MD_LAUNCH */
_Static_assert(ING_GEN_MD_LAUNCH == 4, "the literal above");

#define STEP "-7046029254386353131" /* ING_MIX_STEP */
_Static_assert((int64_t)ING_MIX_STEP == -7046029254386353131, "the literal above");

/* Whether the current function keeps its stream in locals (DRAW1). */
static bool has_stream(const ing_gen *g) {
    return g->f->kind == ING_IR_TASK ? g->plan->draws : g->plan->random;
}

static void move(ing_gen *g, const char *local, size_t field, bool to_context) {
    txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu", field);
    if (to_context) {
        txt v = ing_gen_def(g, "load i64, ptr %%rand.%s, align 8", local);
        ing_gen_put(g, "  store i64 %s, ptr %s, align 8" TAG "\n", v.s, p.s);
    } else {
        txt v = ing_gen_def(g, "load i64, ptr %s, align 8" TAG, p.s);
        ing_gen_put(g, "  store i64 %s, ptr %%rand.%s, align 8\n", v.s, local);
    }
}

void ing_gen_stream_entry(ing_gen *g) {
    if (!has_stream(g)) return;
    ing_bytes_puts(&g->entry, "  %rand.state = alloca i64, align 8\n"
                              "  %rand.mask = alloca i64, align 8\n");
    if (g->f->kind != ING_IR_TASK) {
        move(g, "state", offsetof(ing_ctx, draw), false);
        move(g, "mask", offsetof(ing_ctx, stream), false);
        return;
    }
    ing_bytes_puts(&g->entry, "  %rand.seed = call { i64, i64 } @ing_seed(ptr %ctx)\n"
                              "  %rand.0 = extractvalue { i64, i64 } %rand.seed, 0\n"
                              "  %rand.1 = extractvalue { i64, i64 } %rand.seed, 1\n");
    ing_gen_stream(g, ing_gen_text("0"));
}

/* RAND2 */
void ing_gen_stream(ing_gen *g, txt index) {
    if (!has_stream(g)) return;
    txt far = ing_gen_def(g, "mul i64 %s, " STEP, index.s);
    txt at = ing_gen_def(g, "add i64 %%rand.0, %s", far.s);
    txt s = ing_gen_def(g, "call i64 @ing_mix(i64 %s, i64 0)", at.s);
    txt mask = ing_gen_def(g, "xor i64 %s, %%rand.1", s.s);
    ing_gen_put(g,
                "  store i64 %s, ptr %%rand.state, align 8\n"
                "  store i64 %s, ptr %%rand.mask, align 8\n",
                s.s, mask.s);
}

void ing_gen_stream_call(ing_gen *g, uint32_t callee, bool before) {
    if (!has_stream(g) || !g->plans[callee].draws) return;
    move(g, "state", offsetof(ing_ctx, draw), before);
    if (before && g->f->kind == ING_IR_TASK)
        move(g, "mask", offsetof(ing_ctx, stream), true);
}

void ing_gen_stream_return(ing_gen *g) {
    if (has_stream(g) && g->f->kind != ING_IR_TASK)
        move(g, "state", offsetof(ing_ctx, draw), true);
}

/* ---- the functions ------------------------------------------------------------------------ */

static void put_mix(ing_gen *g) {
    ing_bytes_printf(g->out,
                     "\ndefine internal i64 @ing_mix(i64 %%x, i64 %%mask) alwaysinline "
                     "nounwind willreturn memory(none) {\n"
                     "  %%a = lshr i64 %%x, 30\n  %%b = xor i64 %%x, %%a\n"
                     "  %%c = mul i64 %%b, %lld\n  %%d = xor i64 %%c, %%mask\n"
                     "  %%e = lshr i64 %%d, 27\n  %%f = xor i64 %%d, %%e\n"
                     "  %%g = mul i64 %%f, %lld\n  %%h = lshr i64 %%g, 31\n"
                     "  %%i = xor i64 %%g, %%h\n  ret i64 %%i\n}\n",
                     (long long)ING_MIX_A, (long long)ING_MIX_B);
}

/* RAND1 */
static void put_seed(ing_gen *g) {
    ing_bytes *o = g->out;
    ing_bytes_printf(
        o,
        "\ndefine internal { i64, i64 } @ing_seed(ptr %%ctx) noinline #0 {\n"
        "  %%place.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
        "  %%place = load i64, ptr %%place.p, align 8" TAG "\n"
        "  %%key.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
        "  %%key = load i64, ptr %%key.p, align 8" TAG "\n",
        offsetof(ing_ctx, place), offsetof(ing_ctx, key));
    ing_bytes_puts(o,
                   "  %both = call { i64, i64 } @ing_words(i64 %key, i64 %place)\n"
                   "  ret { i64, i64 } %both\n}\n"
                   "\ndefine internal { i64, i64 } @ing_words(i64 %key, i64 %place) "
                   "nounwind willreturn memory(none) {\nentry:\n"
                   "  %p.high = lshr i64 %place, 32\n  %k.high = lshr i64 %key, 32\n"
                   "  %i0 = trunc i64 %place to i32\n  %i1 = trunc i64 %p.high to i32\n"
                   "  %j0 = trunc i64 %key to i32\n  %j1 = trunc i64 %k.high to i32\n"
                   "  br label %round\nround:\n");
    static const char *const carried[] = {"c0", "c1", "c2", "c3", "k0", "k1"};
    static const char *const first[] = {"%i0", "%i1", "0", "0", "%j0", "%j1"};
    for (int k = 0; k < 6; k++)
        ing_bytes_printf(o, "  %%%s = phi i32 [ %s, %%entry ], [ %%n.%s, %%round ]\n",
                         carried[k], first[k], carried[k]);
    ing_bytes_printf(o,
                     "  %%n = phi i32 [ 0, %%entry ], [ %%n.n, %%round ]\n"
                     "  %%w0 = zext i32 %%c0 to i64\n  %%a = mul i64 %%w0, %u\n"
                     "  %%w2 = zext i32 %%c2 to i64\n  %%b = mul i64 %%w2, %u\n",
                     ING_PHILOX_M0, ING_PHILOX_M1);
    ing_bytes_puts(o, "  %a.h = lshr i64 %a, 32\n  %a.hi = trunc i64 %a.h to i32\n"
                      "  %b.h = lshr i64 %b, 32\n  %b.hi = trunc i64 %b.h to i32\n"
                      "  %x0 = xor i32 %b.hi, %c1\n  %n.c0 = xor i32 %x0, %k0\n"
                      "  %n.c1 = trunc i64 %b to i32\n"
                      "  %x2 = xor i32 %a.hi, %c3\n  %n.c2 = xor i32 %x2, %k1\n"
                      "  %n.c3 = trunc i64 %a to i32\n");
    ing_bytes_printf(o,
                     "  %%n.k0 = add i32 %%k0, %d\n  %%n.k1 = add i32 %%k1, %d\n"
                     "  %%n.n = add i32 %%n, 1\n  %%more = icmp ult i32 %%n.n, 10\n"
                     "  br i1 %%more, label %%round, label %%done\ndone:\n",
                     (int32_t)ING_PHILOX_W0, (int32_t)ING_PHILOX_W1);
    for (int k = 0; k < 4; k++)
        ing_bytes_printf(o, "  %%o%d = zext i32 %%n.c%d to i64\n", k, k);
    ing_bytes_puts(o, "  %u1 = shl i64 %o1, 32\n  %s0 = or i64 %o0, %u1\n"
                      "  %u3 = shl i64 %o3, 32\n  %s1 = or i64 %o2, %u3\n"
                      "  %r0 = insertvalue { i64, i64 } poison, i64 %s0, 0\n"
                      "  %r1 = insertvalue { i64, i64 } %r0, i64 %s1, 1\n"
                      "  ret { i64, i64 } %r1\n}\n");
}

void ing_gen_random_functions(ing_gen *g) {
    if (!g->uses_random) return;
    put_mix(g);
    put_seed(g);
}

/* SEED: as RAND1, of any place. */
txt ing_gen_seed(ing_gen *g, uint32_t which, uint32_t place) {
    txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu",
                        offsetof(ing_ctx, key));
    txt key = ing_gen_def(g, "load i64, ptr %s, align 8" TAG, p.s);
    txt both =
        ing_gen_def(g, "call { i64, i64 } @ing_words(i64 %s, i64 %u)", key.s, place);
    return ing_gen_def(g, "extractvalue { i64, i64 } %s, %u", both.s, which);
}

/* ---- draws ---------------------------------------------------------------------------------- */

static txt next_bits(ing_gen *g) {
    txt old = ing_gen_def(g, "load i64, ptr %%rand.state, align 8");
    txt state = ing_gen_def(g, "add i64 %s, " STEP, old.s);
    ing_gen_put(g, "  store i64 %s, ptr %%rand.state, align 8\n", state.s);
    txt mask = ing_gen_def(g, "load i64, ptr %%rand.mask, align 8");
    return ing_gen_def(g, "call i64 @ing_mix(i64 %s, i64 %s)", state.s, mask.s);
}

txt ing_gen_random(ing_gen *g, ing_dtype t) {
    txt bits = next_bits(g);
    if (!ing_dtype_is_float(t)) {
        txt top = ing_gen_def(g, "lshr i64 %s, %u", bits.s, 64 - ing_dtype_bits(t));
        if (t == ING_U1) return ing_gen_def(g, "trunc i64 %s to i1", top.s);
        return ing_gen_cast(g, ING_U64, t, top);
    }
    /* Few enough bits for the type, then a power of two: exact in every step. */
    uint32_t keep = t == ING_F64 ? 53 : t == ING_F32 ? 24 : 11;
    ing_dtype wide = t == ING_F64 ? ING_F64 : ING_F32;
    txt ty = ing_gen_type(g, wide);
    txt top = ing_gen_def(g, "lshr i64 %s, %u", bits.s, 64 - keep);
    txt f = ing_gen_def(g, "uitofp i64 %s to %s", top.s, ty.s);
    double scale = 1.0 / (double)(UINT64_C(1) << keep);
    union {
        double d;
        uint64_t bits;
    } u = {scale};
    f = ing_gen_def(g, "fmul %s %s, 0x%016llX", ty.s, f.s, (unsigned long long)u.bits);
    return ing_gen_cast(g, wide, t, f);
}
