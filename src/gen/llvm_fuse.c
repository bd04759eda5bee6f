/* Sums of products as fused operations, with fast math only. Called by llvm_op.c for each
 * sum and difference of floats; answers whether it wrote one.
 *
 * LLVM fuses by itself, but late: by then it has shared a product between two sums, or
 * carried it around a loop, and keeps multiplication and addition apart, one behind the
 * other. A chain of dependent iterations (an orbit, a recurrence) waits for both.
 *
 *  FUSE1 A product that is an operand of a sum in the same loop is fused with it, whatever else
 *     uses it: the same number of instructions, and a shorter chain.
 *  FUSE2 (p + q) + e, where p and q are such products, nobody else uses their sum, and e comes
 *     from outside the loop, is p + (q + e): two operations instead of three. An e from the
 *     loop itself may be what the next iteration waits for, and stays last.
 *  FUSE3 What a branch adds to a local is not fused with it: LLVM vectorises a loop with such a sum,
 *     but not if it is a fused one (densities of particles: 1.5 times). It fuses it after that. */
#include "gen/gen_int.h"

typedef ing_gen_txt txt;

static bool is_product(const ing_gen *g, uint32_t id) {
    return ing_gen_inst(g, id)->op == ING_OP_MUL && g->homes[id] == g->loop;
}

static txt negated(ing_gen *g, const char *ty, txt v) {
    return ing_gen_def(g, "fneg %s%s %s", g->fmf, ty, v.s);
}

/* product + rest, or rest - product. */
static txt fuse(ing_gen *g, const char *ty, uint32_t product, bool minus, txt rest) {
    const ing_ir_inst *p = ing_gen_inst(g, product);
    txt a = minus ? negated(g, ty, g->vals[p->a]) : g->vals[p->a];
    const char *suffix = p->type == ING_F32 ? "f32" : "f64";
    ing_gen_declare(g, "%s @llvm.fmuladd.%s(%s, %s, %s)", ty, suffix, ty, ty, ty);
    return ing_gen_def(g, "call %s%s @llvm.fmuladd.%s(%s %s, %s %s, %s %s)",
                       g->fmf_fused, ty, suffix, ty, a.s, ty, g->vals[p->b].s, ty,
                       rest.s);
}

static bool is_sum(const ing_ir_inst *i) {
    return i->op == ING_OP_ADD || i->op == ING_OP_SUB;
}

/* FUSE2: the sum `x` of products, with sign, and `e`, with sign. */
static bool fuse_both(ing_gen *g, const char *ty, uint32_t x, bool minus_x, uint32_t e,
                      bool minus_e, txt *out) {
    const ing_ir_inst *s = ing_gen_inst(g, x);
    if (!is_sum(s) || g->uses[x] != 1 || g->homes[e] == g->loop) return false;
    if (!is_product(g, s->a) || !is_product(g, s->b)) return false;
    bool minus_q = minus_x != (s->op == ING_OP_SUB);
    txt rest = minus_e ? negated(g, ty, g->vals[e]) : g->vals[e];
    *out = fuse(g, ty, s->a, minus_x, fuse(g, ty, s->b, minus_q, rest));
    return true;
}

static bool is_local(const ing_gen *g, uint32_t id) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    return i->op == ING_OP_LOAD && ing_gen_inst(g, i->a)->op == ING_OP_ALLOCA;
}

static bool in_branch(const ing_gen *g) {
    uint32_t n = g->frames.len;
    return n && g->loop && ing_gen_inst(g, g->frames.at[n - 1].inst)->op == ING_OP_IF;
}

bool ing_gen_fused(ing_gen *g, uint32_t id, txt *out) {
    const ing_ir_inst *i = ing_gen_inst(g, id);
    bool known = i->type == ING_F32 || i->type == ING_F64;
    if (!g->o->fast_math || !is_sum(i) || !known) return false;
    if ((is_local(g, i->a) || is_local(g, i->b)) && in_branch(g))
        return false; /* FUSE3 */
    const char *ty = i->type == ING_F32 ? "float" : "double";
    bool minus = i->op == ING_OP_SUB;
    if (fuse_both(g, ty, i->a, false, i->b, minus, out) ||
        fuse_both(g, ty, i->b, minus, i->a, false, out))
        return true;
    if (is_product(g, i->b))
        *out = fuse(g, ty, i->b, minus, g->vals[i->a]);
    else if (is_product(g, i->a))
        *out = fuse(g, ty, i->a, false,
                    minus ? negated(g, ty, g->vals[i->b]) : g->vals[i->b]);
    else
        return false;
    return true;
}
