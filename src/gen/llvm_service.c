/* What code asks of its context besides memory: random numbers, printing, the details of
 * an error. Called by llvm_flow.c for each instruction. The random function repeats
 * src/ir/random.c word for word; a test compares the two.
 *
 * None of these accesses may join the access group of a parallel loop: all iterations of a
 * thread share the context and the one record of a function. */
#include "gen/gen_int.h"

#include <stddef.h>

typedef ing_gen_txt txt;

#define TAG ", !tbaa !4" /* ING_GEN_MD_LAUNCH */
_Static_assert(ING_GEN_MD_LAUNCH == 4, "the literal above");

static txt context_field(ing_gen *g, size_t offset) {
    return ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu", offset);
}

/* ---- random numbers --------------------------------------------------------------------- */

void ing_gen_stream(ing_gen *g, txt index) {
    if (!g->uses_random) return;
    ing_gen_put(g, "  store i64 %s, ptr %s, align 8" TAG "\n", index.s,
                context_field(g, offsetof(ing_ctx, stream)).s);
    ing_gen_put(g, "  store i64 0, ptr %s, align 8" TAG "\n",
                context_field(g, offsetof(ing_ctx, draw)).s);
}

/* 64 random bits; the one function that every RANDOM of the module calls. */
void ing_gen_random_function(ing_gen *g) {
    if (!g->uses_random) return;
    static const char *const fields[] = {"draw", "stream", "place", "key"};
    static const size_t at[] = {offsetof(ing_ctx, draw), offsetof(ing_ctx, stream),
                                offsetof(ing_ctx, place), offsetof(ing_ctx, key)};
    ing_bytes *o = g->out;
    ing_bytes_puts(o, "\ndefine internal i64 @ing_random(ptr %ctx) #0 {\nentry:\n");
    for (int k = 0; k < 4; k++)
        ing_bytes_printf(o,
                         "  %%%s.p = getelementptr inbounds i8, ptr %%ctx, i64 %zu\n"
                         "  %%%s = load i64, ptr %%%s.p, align 8" TAG "\n",
                         fields[k], at[k], fields[k], fields[k]);
    ing_bytes_puts(
        o, "  %next = add i64 %draw, 1\n"
           "  store i64 %next, ptr %draw.p, align 8" TAG "\n"
           "  %above = lshr i64 %draw, 32\n  %shifted = shl i64 %above, 16\n"
           "  %top = add i64 %place, %shifted\n  %s.high = lshr i64 %stream, 32\n"
           "  %k.high = lshr i64 %key, 32\n"
           "  %i0 = trunc i64 %draw to i32\n  %i1 = trunc i64 %stream to i32\n"
           "  %i2 = trunc i64 %s.high to i32\n  %i3 = trunc i64 %top to i32\n"
           "  %j0 = trunc i64 %key to i32\n  %j1 = trunc i64 %k.high to i32\n"
           "  br label %round\nround:\n");
    static const char *const carried[] = {"c0", "c1", "c2", "c3", "k0", "k1"};
    static const char *const first[] = {"%i0", "%i1", "%i2", "%i3", "%j0", "%j1"};
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
    ing_bytes_printf(
        o,
        "  %%n.k0 = add i32 %%k0, %d\n  %%n.k1 = add i32 %%k1, %d\n"
        "  %%n.n = add i32 %%n, 1\n  %%more = icmp ult i32 %%n.n, 10\n"
        "  br i1 %%more, label %%round, label %%done\ndone:\n"
        "  %%lo = zext i32 %%n.c0 to i64\n  %%hi = zext i32 %%n.c1 to i64\n"
        "  %%up = shl i64 %%hi, 32\n  %%r = or i64 %%lo, %%up\n"
        "  ret i64 %%r\n}\n",
        (int32_t)ING_PHILOX_W0, (int32_t)ING_PHILOX_W1);
}

static txt random_value(ing_gen *g, ing_dtype t) {
    txt bits = ing_gen_def(g, "call i64 @ing_random(ptr %%ctx)");
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

/* ---- records ----------------------------------------------------------------------------- */

txt ing_gen_word(ing_gen *g, ing_dtype t, txt v) {
    uint32_t bits = ing_dtype_bits(t);
    if (ing_dtype_is_float(t)) {
        v = ing_gen_def(g, "bitcast %s %s to i%u", ing_gen_type(g, t).s, v.s, bits);
        t = bits == 16 ? ING_U16 : bits == 32 ? ING_U32 : ING_U64;
    }
    return ing_gen_cast(g, t, ING_I64, v);
}

static void put_words(ing_gen *g, const ing_ir_inst *i, const char *base,
                      size_t offset) {
    for (uint32_t k = 0; k < i->c; k++) {
        uint32_t id = g->f->extra.at[i->b + k];
        txt w = ing_gen_word(g, (ing_dtype)ing_gen_type_of(g, id), g->vals[id]);
        txt p = ing_gen_def(g, "getelementptr inbounds i8, ptr %s, i64 %zu", base,
                            offset + 8 * (size_t)k);
        ing_gen_put(g, "  store i64 %s, ptr %s, align 8\n", w.s, p.s);
    }
}

static void print_record(ing_gen *g, const ing_ir_inst *i) {
    const uint32_t head[4] = {i->a, g->fi, i->loc, i->c};
    if (g->printed_words < i->c + 2) g->printed_words = i->c + 2;
    for (uint32_t k = 0; k < 4; k++) {
        txt p =
            ing_gen_def(g, "getelementptr inbounds i8, ptr %%printed, i64 %u", 4 * k);
        ing_gen_put(g, "  store i32 %d, ptr %s, align 4\n", (int32_t)head[k], p.s);
    }
    put_words(g, i, "%printed", offsetof(ing_printed, words));
    g->print_fn = true;
    ing_gen_put(g,
                "  call void @" ING_ABI_PRINT "(ptr %%ctx, ptr %%printed) nounwind\n");
}

static void set_detail(ing_gen *g, const ing_ir_inst *i) {
    txt e = ing_gen_def(g, "load ptr, ptr %s, align 8, !invariant.load !%d",
                        context_field(g, offsetof(ing_ctx, error)).s, ING_GEN_MD_EMPTY);
    put_words(g, i, e.s, offsetof(ing_error_slot, detail));
}

bool ing_gen_service_op(ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    switch (i->op) {
    case ING_OP_RANDOM: g->vals[id] = random_value(g, (ing_dtype)i->type); return true;
    case ING_OP_PRINT: print_record(g, i); return true;
    case ING_OP_DETAIL: set_detail(g, i); return true;
    default: return false;
    }
}
