/* What code asks of its context besides memory: printing and the details of an error; random
 * numbers are in llvm_random.c. Called by llvm_flow.c for each instruction.
 *
 * None of these accesses may join the access group of a parallel loop: all iterations of a
 * thread share the context and the one record of a function. */
#include "gen/gen_int.h"

#include <stddef.h>

typedef ing_gen_txt txt;

static txt context_field(ing_gen *g, size_t offset) {
    return ing_gen_def(g, "getelementptr inbounds i8, ptr %%ctx, i64 %zu", offset);
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
    case ING_OP_RANDOM:
        g->vals[id] = ing_gen_random(g, (ing_dtype)i->type);
        return true;
    case ING_OP_PRINT: print_record(g, i); return true;
    case ING_OP_DETAIL: set_detail(g, i); return true;
    default: return false;
    }
}
